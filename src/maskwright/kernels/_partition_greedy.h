/* Greedy grouping. */

enum { SIZE, DISTINCT, SHARE };

/* Per rule: kind, column of `values` (n to a column), and two numbers: k, or l, or numerator and denominator.
 * closes[i] = 1 where a group ends after bucket i; extend[i]: a group that could end there goes on instead. */
static PyObject *greedy(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 5};
    Py_ssize_t n, bucket;
    if (!PyArg_ParseTuple(args, "y*y*y*nny*w*", &s.b[0], &s.b[1], &s.b[2], &n, &bucket, &s.b[3], &s.b[4]))
        return NULL;
    const int32_t *values = s.b[0].buf;
    const int64_t *rules = s.b[1].buf, *radix = s.b[2].buf;
    const uint8_t *extend = s.b[3].buf;
    uint8_t *closes = s.b[4].buf;
    Py_ssize_t n_rules = s.b[1].len / 32, columns = s.b[2].len / 8;
    int bad = n < 0 || bucket < 1 || s.b[0].len / 4 != n * columns;
    Py_ssize_t buckets = bad ? 0 : n / bucket;
    bad = bad || s.b[3].len != buckets || s.b[4].len != buckets;
    int64_t cells = 0;
    for (Py_ssize_t c = 0; c < columns && !bad; c++) {
        bad = radix[c] < 1 || radix[c] > INT32_MAX;
        for (Py_ssize_t i = 0; i < n && !bad; i++)
            bad = values[c * n + i] < 0 || values[c * n + i] >= radix[c];
        cells += radix[c];
    }
    for (Py_ssize_t r = 0; r < n_rules && !bad; r++)
        bad = rules[4 * r] < SIZE || rules[4 * r] > SHARE ||
              (rules[4 * r] != SIZE && (rules[4 * r + 1] < 0 || rules[4 * r + 1] >= columns));
    if (bad)
        return finish(&s, -2, NULL);
    int64_t *table = calloc((size_t)cells + 1, sizeof(int64_t));
    int64_t *most = calloc((size_t)columns + 1, sizeof(int64_t)), *distinct = calloc((size_t)columns + 1, sizeof(int64_t));
    int failed = !table || !most || !distinct;
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS
        Py_ssize_t begin = 0;
        for (Py_ssize_t b = 0; b < buckets; b++) {
            int64_t *t = table;
            for (Py_ssize_t c = 0; c < columns; t += radix[c], c++)
                for (Py_ssize_t i = b * bucket; i < (b + 1) * bucket; i++) {
                    int32_t v = values[c * n + i];
                    if (v == 0)
                        continue;
                    int64_t now = ++t[v];
                    distinct[c] += now == 1;
                    most[c] = now > most[c] ? now : most[c];
                }
            int64_t size = (b + 1) * bucket - begin;
            int passes = 1;
            for (Py_ssize_t r = 0; r < n_rules && passes; r++) {
                const int64_t *x = rules + 4 * r;
                if (x[0] == SIZE)
                    passes = size >= x[2];
                else if (x[0] == DISTINCT)
                    passes = distinct[x[1]] >= x[2];
                else
                    passes = (__int128)most[x[1]] * x[3] <= (__int128)size * x[2];
            }
            closes[b] = (uint8_t)(passes && (b + 1 == buckets || !extend[b]));
            if (!closes[b])
                continue;
            t = table;
            for (Py_ssize_t c = 0; c < columns; t += radix[c], c++) {
                for (Py_ssize_t i = begin; i < (b + 1) * bucket; i++)
                    t[values[c * n + i]] = 0;
                most[c] = distinct[c] = 0;
            }
            begin = (b + 1) * bucket;
        }
        Py_END_ALLOW_THREADS
    }
    free(table);
    free(most);
    free(distinct);
    return finish(&s, failed ? -1 : 0, failed ? NULL : none());
}
