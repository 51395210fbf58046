/* Orders of rows: counting sorts, places on a Hilbert curve, and rows listed tuple by tuple. */

/* order = the places of `keys` (each in 0..n_keys) by key, equal ones in their order */
static PyObject *counting(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 2};
    Py_ssize_t n_keys;
    if (!PyArg_ParseTuple(args, "y*nw*", &s.b[0], &n_keys, &s.b[1]))
        return NULL;
    const int32_t *keys = s.b[0].buf;
    int32_t *order = s.b[1].buf;
    Py_ssize_t n = s.b[0].len / 4;
    if (n_keys < 0 || n > INT32_MAX || s.b[1].len / 4 != n || !order_fits(keys, n, n_keys))
        return finish(&s, -2, NULL);
    int32_t *at = calloc((size_t)n_keys + 1, sizeof(int32_t));
    if (at) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < n; i++)
            at[keys[i] + 1]++;
        for (Py_ssize_t k = 0; k < n_keys; k++)
            at[k + 1] += at[k];
        for (Py_ssize_t i = 0; i < n; i++)
            order[at[keys[i]]++] = (int32_t)i;
        Py_END_ALLOW_THREADS
    }
    int failed = !at;
    free(at);
    return finish(&s, failed ? -1 : 0, failed ? NULL : none());
}

/* ---- rows that take turns ------------------------------------------------------------------------------ */

/* owner[i] becomes the next item of its owner, whose items are items[start[k]:start[k + 1]]; a negative one stays. */
static PyObject *deal(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 3};
    if (!PyArg_ParseTuple(args, "w*y*y*", &s.b[0], &s.b[1], &s.b[2]))
        return NULL;
    int32_t *owner = s.b[0].buf;
    const int64_t *start = s.b[1].buf;
    const int32_t *items = s.b[2].buf;
    Py_ssize_t n = s.b[0].len / 4, owners = s.b[1].len / 8 - 1, room = s.b[2].len / 4;
    int fits = owners >= 0 && start[0] == 0 && start[owners] == room;
    for (Py_ssize_t k = 0; k < owners && fits; k++)
        fits = start[k] <= start[k + 1] && start[k + 1] - start[k] <= INT32_MAX;
    if (!fits)
        return finish(&s, -2, NULL);
    int32_t *taken = calloc((size_t)owners + 1, sizeof(int32_t));
    if (taken) {
        Py_BEGIN_ALLOW_THREADS
        Py_ssize_t dealt = 0;
        for (Py_ssize_t i = 0; i < n && fits; i++) {
            if (i + 2 * AHEAD < n && owner[i + 2 * AHEAD] >= 0 && owner[i + 2 * AHEAD] < owners) {
                ASK_FOR(taken, owner[i + 2 * AHEAD]);
                ASK_FOR(start, owner[i + 2 * AHEAD]);
            }
            if (i + AHEAD < n && owner[i + AHEAD] >= 0 && owner[i + AHEAD] < owners)
                ASK_FOR(items, start[owner[i + AHEAD]] + taken[owner[i + AHEAD]]);
            if (owner[i] < 0)
                continue;
            fits = owner[i] < owners && start[owner[i]] + taken[owner[i]] < start[owner[i] + 1];
            if (fits) {
                int64_t at = start[owner[i]] + taken[owner[i]]++;
                owner[i] = items[at];
                dealt++;
            }
        }
        fits = fits && dealt == room;
        Py_END_ALLOW_THREADS
    }
    int status = taken == NULL ? -1 : fits ? 0 : -2;
    free(taken);
    return finish(&s, status, status ? NULL : none());
}

/* ---- ranks ------------------------------------------------------------------------------------------- */

/* out[t * d + a] = table[first[a] + codes[a * n + t]]: the ranks of the attributes, one line per tuple. */
static PyObject *ranked(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 5};
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*", &s.b[0], &s.b[1], &s.b[2], &s.b[3], &s.b[4]))
        return NULL;
    const int32_t *codes = s.b[0].buf, *table = s.b[1].buf;
    const int64_t *first = s.b[2].buf, *size = s.b[3].buf;
    int32_t *out = s.b[4].buf;
    Py_ssize_t d = s.b[2].len / 8, n = d > 0 ? s.b[0].len / 4 / d : 0, room = s.b[1].len / 4;
    int bad = d < 1 || s.b[3].len / 8 != d || s.b[4].len != s.b[0].len || s.b[0].len / 4 != n * d;
    for (Py_ssize_t a = 0; a < d && !bad; a++)
        bad = first[a] < 0 || size[a] < 1 || size[a] > INT32_MAX || first[a] + size[a] > room;
    if (bad)
        return finish(&s, -2, NULL);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t block = 0; block < n && !bad; block += 256) { /* few enough lines to stay in the cache */
        Py_ssize_t end = block + 256 < n ? block + 256 : n;
        for (Py_ssize_t a = 0; a < d; a++)
            for (Py_ssize_t t = block; t < end; t++) {
                int32_t code = codes[a * n + t];
                int fits = code >= 0 && code < size[a];
                bad |= !fits;
                out[t * d + a] = table[first[a] + (fits ? code : 0)];
            }
    }
    Py_END_ALLOW_THREADS
    return finish(&s, bad ? -2 : 0, bad ? NULL : none());
}

/* ---- Hilbert curve ----------------------------------------------------------------------------------- */

#define POINTS 128 /* handled side by side, so that the compiler can use vector registers */

/* Skilling's transform of coordinates to the transposed index, d lines of POINTS points. */
static void transposed(uint16_t *x, Py_ssize_t d, int bits)
{
    for (int b = bits - 1; b > 0; b--) {
        uint16_t low = (uint16_t)((1u << b) - 1);
        for (Py_ssize_t i = 0; i < d; i++) {
            uint16_t *line = x + i * POINTS;
            for (int j = 0; j < POINTS; j++) {
                uint16_t flip = (uint16_t)-(uint16_t)(line[j] >> b & 1);
                uint16_t swap = (uint16_t)((x[j] ^ line[j]) & low & ~flip);
                line[j] ^= swap; /* for i = 0 there is nothing to exchange: swap is 0 */
                x[j] ^= (uint16_t)(swap | (flip & low));
            }
        }
    }
    for (Py_ssize_t i = 1; i < d; i++)
        for (int j = 0; j < POINTS; j++)
            x[i * POINTS + j] ^= x[(i - 1) * POINTS + j];
    uint16_t t[POINTS] = {0};
    for (int b = bits - 1; b > 0; b--)
        for (int j = 0; j < POINTS; j++)
            t[j] ^= (uint16_t)((uint16_t)-(uint16_t)(x[(d - 1) * POINTS + j] >> b & 1) & ((1u << b) - 1));
    for (Py_ssize_t i = 0; i < d; i++)
        for (int j = 0; j < POINTS; j++)
            x[i * POINTS + j] ^= t[j];
}

/* digits[w * n + t] = the w-th group of `width` bits of the index of point t, most significant first, where
 * coordinate a of t is stretched[first[a] + ranks[a * n + t]], of `bits` bits. */
static PyObject *hilbert(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 5};
    int bits, width;
    if (!PyArg_ParseTuple(args, "y*y*y*y*iiw*", &s.b[0], &s.b[1], &s.b[2], &s.b[3], &bits, &width, &s.b[4]))
        return NULL;
    const int32_t *ranks = s.b[0].buf;
    const uint16_t *stretched = s.b[1].buf;
    const int64_t *first = s.b[2].buf, *size = s.b[3].buf;
    int32_t *digits = s.b[4].buf;
    Py_ssize_t d = s.b[2].len / 8, n = d > 0 ? s.b[0].len / 4 / d : 0, room = s.b[1].len / 2;
    int bad = d < 1 || bits < 1 || bits > 16 || width < 1 || width > 30 || s.b[3].len / 8 != d ||
              s.b[0].len / 4 != n * d || s.b[4].len / 4 != (d * bits + width - 1) / width * n;
    for (Py_ssize_t a = 0; a < d && !bad; a++)
        bad = first[a] < 0 || size[a] < 1 || size[a] > INT32_MAX || first[a] + size[a] > room;
    if (bad)
        return finish(&s, -2, NULL);
    uint16_t *x = calloc((size_t)(d * POINTS), sizeof(uint16_t));
    if (x) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t block = 0; block < n; block += POINTS) {
            Py_ssize_t m = n - block < POINTS ? n - block : POINTS;
            for (Py_ssize_t a = 0; a < d; a++)
                for (Py_ssize_t j = 0; j < m; j++) {
                    int32_t rank = ranks[a * n + block + j];
                    int fits = rank >= 0 && rank < size[a];
                    bad |= !fits;
                    x[a * POINTS + j] = stretched[first[a] + (fits ? rank : 0)];
                }
            transposed(x, d, bits);
            int32_t *out = digits + block;
            int used = 0;
            memset(out, 0, sizeof(int32_t) * (size_t)m);
            for (int b = bits - 1; b >= 0; b--)
                for (Py_ssize_t i = 0; i < d; i++) {
                    if (used == width) {
                        used = 0;
                        out += n;
                        memset(out, 0, sizeof(int32_t) * (size_t)m);
                    }
                    used++;
                    for (Py_ssize_t j = 0; j < m; j++)
                        out[j] = out[j] << 1 | (x[i * POINTS + j] >> b & 1);
                }
        }
        Py_END_ALLOW_THREADS
    }
    int status = !x ? -1 : bad ? -2 : 0;
    free(x);
    return finish(&s, status, status ? NULL : none());
}

/* ---- rows tuple by tuple ------------------------------------------------------------------------------ */

typedef struct {
    uint64_t key;
    int64_t row;
} Drawn;

static int by_key(const void *a, const void *b)
{
    const Drawn *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* List the rows tuple after tuple in the order of `sorting`, those of one tuple by their keys. Tuple t has the rows
 * start[t]..start[t + 1]; cells[i] = the cell of the i-th row listed. */
static PyObject *arrange(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 5};
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*", &s.b[0], &s.b[1], &s.b[2], &s.b[3], &s.b[4]))
        return NULL;
    const int32_t *sorting = s.b[0].buf, *cell_of = s.b[3].buf;
    const int64_t *start = s.b[1].buf;
    const uint64_t *keys = s.b[2].buf;
    int32_t *cells = s.b[4].buf;
    Py_ssize_t n_tuples = s.b[0].len / 4, n = s.b[3].len / 4;
    int bad = s.b[1].len / 8 != n_tuples + 1 || s.b[2].len / 8 != n || s.b[4].len / 4 != n ||
              !order_fits(sorting, n_tuples, n_tuples) || start[0] != 0 || start[n_tuples] != n;
    int64_t longest = 0, listed = 0;
    for (Py_ssize_t t = 0; t < n_tuples && !bad; t++) {
        bad = start[t + 1] < start[t];
        longest = start[t + 1] - start[t] > longest ? start[t + 1] - start[t] : longest;
        listed += start[sorting[t] + 1] - start[sorting[t]];
    }
    if (bad || listed != n) /* `sorting` names every tuple once */
        return finish(&s, -2, NULL);
    Drawn *run = malloc(sizeof(Drawn) * (size_t)(longest + 1));
    if (run) {
        Py_BEGIN_ALLOW_THREADS
        int64_t at = 0;
        for (Py_ssize_t i = 0; i < n_tuples; i++) {
            if (i + 2 * AHEAD < n_tuples) {
                ASK_FOR(start, sorting[i + 2 * AHEAD]);
                ASK_FOR(cell_of, start[sorting[i + AHEAD]]);
            }
            int64_t begin = start[sorting[i]], m = start[sorting[i] + 1] - begin;
            if (m == 1) {
                cells[at++] = cell_of[begin];
                continue;
            }
            for (int64_t j = 0; j < m; j++)
                run[j] = (Drawn){keys[begin + j], begin + j};
            if (m > 16)
                qsort(run, (size_t)m, sizeof(Drawn), by_key);
            else
                for (int64_t j = 1; j < m; j++) {
                    Drawn x = run[j];
                    int64_t k = j;
                    for (; k > 0 && run[k - 1].key > x.key; k--)
                        run[k] = run[k - 1];
                    run[k] = x;
                }
            for (int64_t j = 0; j < m; j++)
                cells[at + j] = cell_of[run[j].row];
            at += m;
        }
        Py_END_ALLOW_THREADS
    }
    int failed = !run;
    free(run);
    return finish(&s, failed ? -1 : 0, failed ? NULL : none());
}
