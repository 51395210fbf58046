/* What segments hold: the ranges of their quasi-identifiers and the counts of their values. */

/* low, high = the least and the largest rank of each attribute in each segment. masks[g * m + j] = which of the 62 ranks
 * from from[j] on attribute column[j] has in segment g, a bit each. */
static PyObject *ranges(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 9};
    Py_ssize_t d;
    if (!PyArg_ParseTuple(args, "y*ny*y*y*w*w*y*y*w*", &s.b[0], &d, &s.b[1], &s.b[2], &s.b[3], &s.b[4], &s.b[5],
                          &s.b[6], &s.b[7], &s.b[8]))
        return NULL;
    const int32_t *codes = s.b[0].buf, *order = s.b[1].buf;
    const int64_t *lo = s.b[2].buf, *hi = s.b[3].buf, *column = s.b[6].buf, *from = s.b[7].buf;
    int32_t *least = s.b[4].buf, *most = s.b[5].buf;
    uint64_t *masks = s.b[8].buf;
    Py_ssize_t groups = s.b[2].len / 8, n = s.b[1].len / 4, m = s.b[6].len / 8, rows = d > 0 ? s.b[0].len / 4 / d : 0;
    int bad = d < 1 || s.b[3].len / 8 != groups || s.b[4].len / 4 != groups * d || s.b[5].len / 4 != groups * d ||
              s.b[7].len / 8 != m || s.b[8].len / 8 != groups * m || !segments_fit(lo, hi, groups, n);
    for (Py_ssize_t j = 0; j < m && !bad; j++)
        bad = column[j] < 0 || column[j] >= d;
    if (bad)
        return finish(&s, -2, NULL);
    Py_BEGIN_ALLOW_THREADS
    memset(masks, 0, sizeof(uint64_t) * (size_t)(groups * m));
    for (Py_ssize_t g = 0; g < groups && !bad; g++) {
        int32_t *restrict low = least + g * d, *restrict high = most + g * d;
        uint64_t *restrict held = masks + g * m;
        for (Py_ssize_t a = 0; a < d; a++) {
            low[a] = INT32_MAX;
            high[a] = INT32_MIN;
        }
        for (int64_t i = lo[g]; i < hi[g]; i++) {
            if (i + AHEAD < n)
                ASK_FOR(codes, (Py_ssize_t)order[i + AHEAD] * d);
            if ((uint32_t)order[i] >= (size_t)rows) {
                bad = 1;
                break;
            }
            const int32_t *restrict row = codes + (Py_ssize_t)order[i] * d;
            for (Py_ssize_t a = 0; a < d; a++) {
                low[a] = row[a] < low[a] ? row[a] : low[a];
                high[a] = row[a] > high[a] ? row[a] : high[a];
            }
            for (Py_ssize_t j = 0; j < m; j++) {
                uint64_t bit = (uint64_t)(row[column[j]] - from[j]);
                held[j] |= bit < 62 ? (uint64_t)1 << bit : 0;
            }
        }
    }
    Py_END_ALLOW_THREADS
    return finish(&s, bad ? -2 : 0, bad ? NULL : none());
}

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static PyObject *count(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 7};
    Py_ssize_t radix;
    if (!PyArg_ParseTuple(args, "y*ny*y*y*w*w*w*", &s.b[0], &radix, &s.b[1], &s.b[2], &s.b[3], &s.b[4], &s.b[5],
                          &s.b[6]))
        return NULL;
    const int32_t *values = s.b[0].buf, *order = s.b[1].buf;
    const int64_t *lo = s.b[2].buf, *hi = s.b[3].buf;
    int64_t *start = s.b[4].buf, *counts = s.b[6].buf;
    int32_t *codes = s.b[5].buf;
    Py_ssize_t groups = s.b[2].len / 8, n = s.b[1].len / 4, rows = s.b[0].len / 4, room = s.b[5].len / 4;
    int64_t total = 0;
    int bad = radix < 1 || radix > INT32_MAX || s.b[3].len / 8 != groups || s.b[4].len / 8 != groups + 1 ||
              s.b[6].len / 8 != room || !segments_fit(lo, hi, groups, n);
    for (Py_ssize_t g = 0; g < groups && !bad; g++)
        total += hi[g] - lo[g] < radix ? hi[g] - lo[g] : radix;
    if (bad || total > room)
        return finish(&s, -2, NULL);
    int64_t *table = calloc((size_t)radix, sizeof(int64_t)), used = 0;
    if (table) {
        Py_BEGIN_ALLOW_THREADS
        start[0] = 0;
        for (Py_ssize_t g = 0; g < groups && !bad; g++) {
            int64_t first = used;
            for (int64_t i = lo[g]; i < hi[g]; i++) {
                /* checked on the way: a caller that asks for a few segments should not pay for all rows */
                int32_t v = (uint32_t)order[i] < (size_t)rows ? values[order[i]] : -1;
                if ((uint32_t)v >= (size_t)radix) {
                    bad = 1;
                    break;
                }
                if (table[v]++ == 0)
                    codes[used++] = v;
            }
            if (used - first > 24 && (used - first) * 8 > radix) {
                used = first;
                for (Py_ssize_t v = 0; v < radix; v++)
                    if (table[v])
                        codes[used++] = (int32_t)v;
            } else if (used - first > 24) {
                qsort(codes + first, (size_t)(used - first), sizeof(int32_t), ascending);
            } else {
                for (int64_t i = first + 1; i < used; i++) {
                    int32_t key = codes[i];
                    int64_t j = i;
                    for (; j > first && codes[j - 1] > key; j--)
                        codes[j] = codes[j - 1];
                    codes[j] = key;
                }
            }
            for (int64_t e = first; e < used; e++) {
                counts[e] = table[codes[e]];
                table[codes[e]] = 0;
            }
            start[g + 1] = used;
        }
        Py_END_ALLOW_THREADS
    }
    int status = !table ? -1 : bad ? -2 : 0;
    free(table);
    return finish(&s, status, status ? NULL : PyLong_FromSsize_t(used));
}

/* fresh = segment after segment the listed rows whose id is the first of its kind in the segment; start = where each
 * segment begins in fresh, and the end. */
static PyObject *firsts(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 6};
    Py_ssize_t kinds;
    if (!PyArg_ParseTuple(args, "y*ny*y*y*w*w*", &s.b[0], &kinds, &s.b[1], &s.b[2], &s.b[3], &s.b[4], &s.b[5]))
        return NULL;
    const int32_t *ids = s.b[0].buf, *order = s.b[1].buf;
    const int64_t *lo = s.b[2].buf, *hi = s.b[3].buf;
    int32_t *fresh = s.b[4].buf;
    int64_t *start = s.b[5].buf, total = 0, used = 0;
    Py_ssize_t groups = s.b[2].len / 8, n = s.b[1].len / 4, rows = s.b[0].len / 4, room = s.b[4].len / 4;
    int bad = kinds < 0 || kinds > INT32_MAX || s.b[3].len / 8 != groups || s.b[5].len / 8 != groups + 1 ||
              !segments_fit(lo, hi, groups, n);
    for (Py_ssize_t g = 0; g < groups && !bad; g++)
        total += hi[g] - lo[g];
    if (bad || total > room)
        return finish(&s, -2, NULL);
    int64_t *seen = calloc((size_t)kinds + 1, sizeof(int64_t)); /* the last segment that had the id, from 1 */
    if (seen) {
        Py_BEGIN_ALLOW_THREADS
        start[0] = 0;
        for (Py_ssize_t g = 0; g < groups && !bad; g++) {
            for (int64_t i = lo[g]; i < hi[g]; i++) {
                int32_t id = (uint32_t)order[i] < (size_t)rows ? ids[order[i]] : -1;
                if ((uint32_t)id >= (size_t)kinds) {
                    bad = 1;
                    break;
                }
                if (seen[id] != g + 1) {
                    seen[id] = g + 1;
                    fresh[used++] = order[i];
                }
            }
            start[g + 1] = used;
        }
        Py_END_ALLOW_THREADS
    }
    int status = !seen ? -1 : bad ? -2 : 0;
    free(seen);
    return finish(&s, status, status ? NULL : none());
}
