/* Cuts of groups: sorted positions by a histogram or a radix sort, then the rows part after part. */

typedef struct {
    Py_ssize_t largest; /* members of a group */
    int failed;       /* there was no memory */
    int32_t *table;   /* histogram */
    Py_ssize_t room;
    uint64_t *keys, *other; /* value << 32 | index */
    int32_t *place;   /* sorted position of each member, ties in the order of the members */
    int32_t *value;
} Work;

static int work_new(Work *w, Py_ssize_t largest)
{
    *w = (Work){.largest = largest};
    w->place = malloc(sizeof(int32_t) * (size_t)(largest + 1));
    w->value = malloc(sizeof(int32_t) * (size_t)(largest + 1));
    return w->place && w->value ? 0 : -1;
}

/* The histogram is as large as the ranges met so far, the keys are there once they are needed: with hundreds of millions
 * of rows they would take more than all else. */
static int with_table(Work *w, Py_ssize_t range)
{
    if (range > w->room) {
        free(w->table);
        w->room = range + range / 2;
        w->table = malloc(sizeof(int32_t) * (size_t)w->room);
        w->room = w->table ? w->room : 0;
    }
    return w->table != NULL;
}

static int with_keys(Work *w)
{
    if (!w->keys)
        w->keys = malloc(sizeof(uint64_t) * (size_t)(w->largest + 1));
    if (!w->other)
        w->other = malloc(sizeof(uint64_t) * (size_t)(w->largest + 1));
    return w->keys && w->other;
}

static void work_free(Work *w)
{
    free(w->table);
    free(w->keys);
    free(w->other);
    free(w->place);
    free(w->value);
}

static void sort_keys(uint64_t *keys, uint64_t *other, Py_ssize_t n, uint64_t range)
{
    if (n <= 48) {
        for (Py_ssize_t i = 1; i < n; i++) {
            uint64_t key = keys[i];
            Py_ssize_t j = i;
            for (; j > 0 && keys[j - 1] > key; j--)
                keys[j] = keys[j - 1];
            keys[j] = key;
        }
        return;
    }
    uint64_t *from = keys, *to = other;
    for (int shift = 32; (range >> (shift - 32)) > 0; shift += 8) { /* stable: ties stay in their order */
        Py_ssize_t count[257] = {0};
        for (Py_ssize_t i = 0; i < n; i++)
            count[((from[i] >> shift) & 255) + 1]++;
        for (int b = 0; b < 256; b++)
            count[b + 1] += count[b];
        for (Py_ssize_t i = 0; i < n; i++)
            to[count[(from[i] >> shift) & 255]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, sizeof(uint64_t) * (size_t)n);
}

/* The sorted position of w->value[0..n), all within least..most; and the value at position `at`. */
static int32_t positions(Work *w, Py_ssize_t n, int32_t least, int32_t most, Py_ssize_t at)
{
    Py_ssize_t range = (Py_ssize_t)most - least + 1;
    int32_t found = least;
    if (range <= 4 * n + 16) {
        if (!with_table(w, range)) {
            w->failed = 1;
            return found;
        }
        memset(w->table, 0, sizeof(int32_t) * (size_t)range);
        for (Py_ssize_t i = 0; i < n; i++)
            w->table[w->value[i] - least]++;
        int32_t before = 0;
        for (Py_ssize_t v = 0; v < range; v++) {
            int32_t here = w->table[v];
            if (before <= at && at < before + here)
                found = least + (int32_t)v;
            w->table[v] = before;
            before += here;
        }
        for (Py_ssize_t i = 0; i < n; i++)
            w->place[i] = w->table[w->value[i] - least]++;
        return found;
    }
    if (!with_keys(w)) {
        w->failed = 1;
        return found;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        w->keys[i] = (uint64_t)(uint32_t)(w->value[i] - least) << 32 | (uint64_t)i;
    sort_keys(w->keys, w->other, n, (uint64_t)range);
    for (Py_ssize_t i = 0; i < n; i++)
        w->place[w->keys[i] & 0xffffffffu] = (int32_t)i;
    return n ? least + (int32_t)(w->keys[at] >> 32) : least;
}

static Py_ssize_t largest_segment(const int64_t *lo, const int64_t *hi, Py_ssize_t groups)
{
    Py_ssize_t most = 0;
    for (Py_ssize_t g = 0; g < groups; g++)
        most = hi[g] - lo[g] > most ? hi[g] - lo[g] : most;
    return most;
}

/* The part of a sorted position: how many of the q − 1 inner bounds it has reached. A division per row is slower. */
static inline Py_ssize_t part_of(int32_t place, const int32_t *inner, Py_ssize_t q)
{
    Py_ssize_t part = 0;
    for (Py_ssize_t j = 0; j < q - 1; j++)
        part += place >= inner[j];
    return part;
}

/* Parts whose sizes differ by at most one, the larger ones first: bound j is ⌈j·n/q⌉. */
static void inner_bounds(Py_ssize_t n, Py_ssize_t q, int32_t *inner)
{
    for (Py_ssize_t j = 1; j < q; j++)
        inner[j - 1] = (int32_t)((j * n + q - 1) / q);
}

enum { EVEN, STRICT_LT, STRICT_LE };

/* w->value[0..n) = the ranks of order[from..from + n); `least`, `most`: their ends. */
static void load_values(Work *w, const int32_t *codes, Py_ssize_t d, const int32_t *order, int64_t from, Py_ssize_t n,
                        Py_ssize_t dim, int32_t *least, int32_t *most)
{
    *least = INT32_MAX;
    *most = INT32_MIN;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            ASK_FOR(codes, (Py_ssize_t)order[from + i + AHEAD] * d + dim);
        int32_t v = codes[(Py_ssize_t)order[from + i] * d + dim];
        w->value[i] = v;
        *least = v < *least ? v : *least;
        *most = v > *most ? v : *most;
    }
}

/* fresh[lo..hi) = the rows of a group, left part first; bounds = where the parts begin, and the end. */
static void cut_strictly(Work *w, const int32_t *codes, Py_ssize_t d, const int32_t *order, int64_t lo, int64_t hi,
                         Py_ssize_t dim, int mode, int32_t *fresh, int64_t *bounds)
{
    Py_ssize_t n = hi - lo;
    int32_t least, most;
    load_values(w, codes, d, order, lo, n, dim, &least, &most);
    int32_t middle = n ? positions(w, n, least, most, mode == STRICT_LE ? (n - 1) / 2 : n / 2) : 0;
    if (w->failed)
        return;
    int64_t left = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        w->place[i] = mode == STRICT_LT ? w->value[i] >= middle : w->value[i] > middle;
        left += !w->place[i];
    }
    bounds[0] = lo;
    bounds[1] = lo + left;
    bounds[2] = hi;
    int64_t cursor[2] = {lo, lo + left};
    for (Py_ssize_t i = 0; i < n; i++)
        fresh[cursor[w->place[i]]++] = order[lo + i];
}

/* The same into q parts of each cell of `cell` rows: the first parts of all cells, then their second parts, ... */
static void cut_evenly(Work *w, const int32_t *codes, Py_ssize_t d, const int32_t *order, int64_t lo, int64_t hi,
                       Py_ssize_t dim, Py_ssize_t q, Py_ssize_t cell, int32_t *fresh, int64_t *bounds, int64_t *cursor,
                       int32_t *inner)
{
    Py_ssize_t n = hi - lo, cells = cell ? n / cell : 0;
    inner_bounds(cell, q, inner);
    bounds[0] = cursor[0] = lo;
    bounds[q] = hi;
    for (Py_ssize_t j = 1; j < q; j++)
        bounds[j] = cursor[j] = lo + inner[j - 1] * cells;
    for (Py_ssize_t c = 0; c < cells; c++) {
        int64_t from = lo + c * cell;
        int32_t least, most;
        load_values(w, codes, d, order, from, cell, dim, &least, &most);
        positions(w, cell, least, most, 0);
        if (w->failed)
            return;
        for (Py_ssize_t i = 0; i < cell; i++)
            fresh[cursor[part_of(w->place[i], inner, q)]++] = order[from + i];
    }
}

/* Are all segments of cells of this size? (0: each is one cell) */
static int cells_fit(const int64_t *lo, const int64_t *hi, Py_ssize_t groups, Py_ssize_t cell)
{
    for (Py_ssize_t g = 0; g < groups && cell > 0; g++)
        if ((hi[g] - lo[g]) % cell)
            return 0;
    return cell >= 0;
}

static PyObject *cut(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 7};
    Py_ssize_t d, q, cell;
    int mode;
    if (!PyArg_ParseTuple(args, "y*ny*y*y*y*innw*w*", &s.b[0], &d, &s.b[1], &s.b[2], &s.b[3], &s.b[4], &mode, &q,
                          &cell, &s.b[5], &s.b[6]))
        return NULL;
    const int32_t *codes = s.b[0].buf, *order = s.b[1].buf, *dims = s.b[4].buf;
    const int64_t *lo = s.b[2].buf, *hi = s.b[3].buf;
    int32_t *fresh = s.b[5].buf;
    int64_t *bounds = s.b[6].buf;
    Py_ssize_t groups = s.b[2].len / 8, n = s.b[1].len / 4;
    int bad = d < 1 || q < 2 || q > 1000000 || (mode != EVEN && (q != 2 || cell)) || s.b[3].len / 8 != groups ||
              s.b[4].len / 4 != groups || s.b[5].len / 4 != n || s.b[6].len / 8 != groups * (q + 1) ||
              !segments_fit(lo, hi, groups, n) || !cells_fit(lo, hi, groups, cell) ||
              !order_fits(order, n, s.b[0].len / 4 / d);
    for (Py_ssize_t g = 0; g < groups && !bad; g++)
        bad = dims[g] < 0 || dims[g] >= d;
    if (bad)
        return finish(&s, -2, NULL);
    Work w;
    int64_t *cursor = malloc(sizeof(int64_t) * (size_t)(q + 1));
    int32_t *inner = malloc(sizeof(int32_t) * (size_t)q);
    int failed = work_new(&w, cell ? cell : largest_segment(lo, hi, groups)) < 0 || !cursor || !inner;
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t g = 0; g < groups && !w.failed; g++) {
            int64_t *ends = bounds + g * (q + 1);
            if (mode == EVEN)
                cut_evenly(&w, codes, d, order, lo[g], hi[g], dims[g], q, cell ? cell : hi[g] - lo[g], fresh, ends,
                           cursor, inner);
            else
                cut_strictly(&w, codes, d, order, lo[g], hi[g], dims[g], mode, fresh, ends);
        }
        Py_END_ALLOW_THREADS
        failed = w.failed;
    }
    work_free(&w);
    free(cursor);
    free(inner);
    return finish(&s, failed ? -1 : 0, failed ? NULL : none());
}
