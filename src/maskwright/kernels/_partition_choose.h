/* The dimension whose even cut leaves the least loss. */

/* blocks, leaves: for attribute a and its level j the table at first[a] + j * size[a], by rank. */
typedef struct {
    const int32_t *blocks, *leaves;
    const int64_t *first, *size, *levels, *base;
} Labels;

static int64_t coverage(const Labels *t, Py_ssize_t a, int32_t low, int32_t high)
{
    for (int64_t j = 0; j < t->levels[a]; j++) {
        int64_t at = t->first[a] + j * t->size[a];
        if (t->blocks[at + low] == t->blocks[at + high])
            return t->leaves[at + low];
    }
    if (t->levels[a] == 0 && low > 0) /* labels are ranges */
        return (int64_t)high - low + 1;
    return high == 0 ? 0 : t->base[a];
}

#define LANES 8 /* attributes are handled side by side, so that the compiler can use vector registers */
#define ROOM 24 /* ranks up to 2^24 are exact as floats, which every processor compares in vectors */

/* low, high of the members of each part; d is a multiple of LANES */
static void part_ranges(const float *rows, const int32_t *place, Py_ssize_t n, Py_ssize_t d, const int32_t *inner,
                        Py_ssize_t q, float *low, float *high)
{
    for (Py_ssize_t x = 0; x < q * d; x++) {
        low[x] = (float)(1 << ROOM);
        high[x] = -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t part = part_of(place[i], inner, q);
        for (Py_ssize_t b = 0; b < d; b += LANES) {
            float *l = low + part * d + b, *h = high + part * d + b;
            const float *row = rows + i * d + b;
            for (int j = 0; j < LANES; j++) {
                l[j] = row[j] < l[j] ? row[j] : l[j];
                h[j] = row[j] > h[j] ? row[j] : h[j];
            }
        }
    }
}

/* w->place = the sorted position of each member's value of attribute `a` in its cell; 0: no cell has two values. */
static int places_in_cells(Work *w, const float *rows, Py_ssize_t n, Py_ssize_t cell, Py_ssize_t wide, Py_ssize_t a)
{
    int32_t *value = w->value, *place = w->place;
    int differ = 0;
    for (Py_ssize_t from = 0; from < n && !w->failed; from += cell) {
        int32_t least = INT32_MAX, most = INT32_MIN;
        for (Py_ssize_t i = 0; i < cell; i++) {
            int32_t v = (int32_t)rows[(from + i) * wide + a];
            value[i] = v;
            least = v < least ? v : least;
            most = v > most ? v : most;
        }
        differ |= least < most;
        w->place = place + from;
        positions(w, cell, least, most, 0);
    }
    w->place = place;
    return differ;
}

/* rows: n members, cell after cell, of `wide` (a multiple of LANES) attributes, d of which there are. */
static int32_t best_dimension(Work *w, const Labels *t, const double *scale, const float *rows, Py_ssize_t n,
                              Py_ssize_t cell, Py_ssize_t d, Py_ssize_t wide, Py_ssize_t q, const float *range,
                              float *low, float *high, int32_t *inner)
{
    inner_bounds(cell, q, inner);
    double best = 0;
    int32_t chosen = -1;
    for (Py_ssize_t a = 0; a < d; a++) {
        if (range[a] >= range[wide + a] || !places_in_cells(w, rows, n, cell, wide, a))
            continue;
        if (w->failed)
            return -1;
        part_ranges(rows, w->place, n, wide, inner, q, low, high);
        double loss = 0;
        for (Py_ssize_t b = 0; b < d; b++) {
            int64_t sum = 0;
            for (Py_ssize_t p = 0; p < q; p++) {
                int64_t members = (((p + 1) * cell + q - 1) / q - (p * cell + q - 1) / q) * (n / cell);
                int64_t c = members ? coverage(t, b, (int32_t)low[p * wide + b], (int32_t)high[p * wide + b]) : 0;
                sum += c > 1 ? (c - 1) * members : 0;
            }
            loss += (double)sum * scale[b];
        }
        if (chosen < 0 || loss < best) {
            best = loss;
            chosen = (int32_t)a;
        }
    }
    return chosen;
}

static int labels_fit(const Labels *t, Py_ssize_t d, Py_ssize_t room)
{
    for (Py_ssize_t a = 0; a < d; a++)
        if (t->levels[a] < 0 || t->size[a] < 1 || t->first[a] < 0 || t->levels[a] > 10000 ||
            t->size[a] > 1 << ROOM ||
            t->first[a] + t->levels[a] * t->size[a] > room)
            return 0;
    return 1;
}

static PyObject *choose(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 12};
    Py_ssize_t d, q, cell;
    if (!PyArg_ParseTuple(args, "y*ny*y*y*nny*y*y*y*y*y*y*w*", &s.b[0], &d, &s.b[1], &s.b[2], &s.b[3], &q, &cell,
                          &s.b[4], &s.b[5], &s.b[6], &s.b[7], &s.b[8], &s.b[9], &s.b[10], &s.b[11]))
        return NULL;
    const int32_t *codes = s.b[0].buf, *order = s.b[1].buf;
    const int64_t *lo = s.b[2].buf, *hi = s.b[3].buf;
    Labels t = {s.b[4].buf, s.b[5].buf, s.b[6].buf, s.b[7].buf, s.b[8].buf, s.b[9].buf};
    const double *scale = s.b[10].buf;
    int32_t *dims = s.b[11].buf;
    Py_ssize_t groups = s.b[2].len / 8, n = s.b[1].len / 4, rows = d > 0 ? s.b[0].len / 4 / d : 0;
    int bad = d < 1 || q < 2 || q > 1000000 || s.b[3].len / 8 != groups || s.b[11].len / 4 != groups ||
              s.b[4].len != s.b[5].len || !segments_fit(lo, hi, groups, n) || !cells_fit(lo, hi, groups, cell);
    for (int i = 6; i <= 10 && !bad; i++)
        bad = s.b[i].len / 8 != d;
    bad = bad || !labels_fit(&t, d, s.b[4].len / 4);
    if (bad)
        return finish(&s, -2, NULL);
    Py_ssize_t largest = largest_segment(lo, hi, groups), wide = (d + LANES - 1) / LANES * LANES;
    Work w;
    int failed = work_new(&w, largest) < 0;
    float *members = malloc(sizeof(float) * (size_t)(largest * wide + 1));
    float *range = malloc(sizeof(float) * (size_t)(2 * wide)), *low = malloc(sizeof(float) * (size_t)(q * wide));
    float *high = malloc(sizeof(float) * (size_t)(q * wide));
    int32_t *first = calloc((size_t)(largest + 1), sizeof(int32_t)), *inner = malloc(sizeof(int32_t) * (size_t)q);
    failed = failed || !members || !range || !low || !high || !first || !inner;
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS
        memset(members, 0, sizeof(float) * (size_t)(largest * wide));
        for (Py_ssize_t g = 0; g < groups && !w.failed; g++) {
            Py_ssize_t m = hi[g] - lo[g];
            for (Py_ssize_t i = 0; i < m; i++) {
                if ((uint32_t)order[lo[g] + i] >= (size_t)rows) {
                    bad = 1;
                    break;
                }
                const int32_t *row = codes + (Py_ssize_t)order[lo[g] + i] * d;
                for (Py_ssize_t a = 0; a < d; a++)
                    members[i * wide + a] = (float)row[a];
            }
            if (bad)
                break;
            part_ranges(members, first, m, wide, inner, 1, range, range + wide);
            for (Py_ssize_t a = 0; a < d && m; a++)
                bad |= range[a] < 0 || range[wide + a] >= (float)t.size[a];
            if (bad)
                break;
            dims[g] = -1;
            if (m)
                dims[g] = best_dimension(&w, &t, scale, members, m, cell ? cell : m, d, wide, q, range, low, high, inner);
        }
        Py_END_ALLOW_THREADS
        failed = w.failed;
    }
    work_free(&w);
    free(members);
    free(range);
    free(low);
    free(high);
    free(first);
    free(inner);
    int status = failed ? -1 : bad ? -2 : 0;
    return finish(&s, status, status ? NULL : none());
}
