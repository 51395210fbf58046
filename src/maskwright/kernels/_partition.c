/* Partitions of rows: ranges and cuts of groups (Mondrian), value counts of groups, greedy grouping, Anatomy.
 *
 * Arrays arrive as buffers. `codes` holds the ranks of the quasi-identifiers row by row, d to a row; a group is
 * a segment lo..hi of `order`, which lists row numbers in ascending order inside each group. The numpy twin in
 * partition.py gives the same results.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BUFFERS 16

typedef struct {
    Py_buffer b[MAX_BUFFERS];
    int n;
} Buffers;

static void release(Buffers *set)
{
    for (int i = 0; i < set->n; i++)
        PyBuffer_Release(&set->b[i]);
}

static PyObject *finish(Buffers *set, int status, PyObject *value)
{
    release(set);
    if (status == 0)
        return value;
    Py_XDECREF(value);
    if (status == -1)
        PyErr_NoMemory();
    else
        PyErr_SetString(PyExc_ValueError, "arrays do not fit together");
    return NULL;
}

static PyObject *none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

/* Are the segments inside 0..n, and the rows of `order` inside 0..rows? */
static int segments_fit(const int64_t *lo, const int64_t *hi, Py_ssize_t groups, Py_ssize_t n)
{
    for (Py_ssize_t g = 0; g < groups; g++)
        if (lo[g] < 0 || hi[g] < lo[g] || hi[g] > n)
            return 0;
    return 1;
}

static int order_fits(const int32_t *order, Py_ssize_t n, Py_ssize_t rows)
{
    int32_t most = -1, least = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        most = order[i] > most ? order[i] : most;
        least = order[i] < least ? order[i] : least;
    }
    return least >= 0 && most < rows;
}

/* ---- counting sort ----------------------------------------------------------------------------------- */

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

/* ---- ranges ------------------------------------------------------------------------------------------ */

static PyObject *ranges(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 6};
    Py_ssize_t d;
    if (!PyArg_ParseTuple(args, "y*ny*y*y*w*w*", &s.b[0], &d, &s.b[1], &s.b[2], &s.b[3], &s.b[4], &s.b[5]))
        return NULL;
    const int32_t *codes = s.b[0].buf, *order = s.b[1].buf;
    const int64_t *lo = s.b[2].buf, *hi = s.b[3].buf;
    int32_t *least = s.b[4].buf, *most = s.b[5].buf;
    Py_ssize_t groups = s.b[2].len / 8, n = s.b[1].len / 4;
    if (d < 1 || s.b[3].len / 8 != groups || s.b[4].len / 4 != groups * d || s.b[5].len / 4 != groups * d ||
        !segments_fit(lo, hi, groups, n) || !order_fits(order, n, s.b[0].len / 4 / d))
        return finish(&s, -2, NULL);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t g = 0; g < groups; g++) {
        int32_t *low = least + g * d, *high = most + g * d;
        for (Py_ssize_t a = 0; a < d; a++) {
            low[a] = INT32_MAX;
            high[a] = INT32_MIN;
        }
        for (int64_t i = lo[g]; i < hi[g]; i++) {
            const int32_t *row = codes + (Py_ssize_t)order[i] * d;
            for (Py_ssize_t a = 0; a < d; a++) {
                low[a] = row[a] < low[a] ? row[a] : low[a];
                high[a] = row[a] > high[a] ? row[a] : high[a];
            }
        }
    }
    Py_END_ALLOW_THREADS
    return finish(&s, 0, none());
}

/* ---- sorted positions -------------------------------------------------------------------------------- */

typedef struct {
    int32_t *table;   /* histogram */
    Py_ssize_t room;
    uint64_t *keys, *other; /* value << 32 | index */
    int32_t *place;   /* sorted position of each member, ties in the order of the members */
    int32_t *value;
} Work;

static int work_new(Work *w, Py_ssize_t largest)
{
    w->room = 4 * largest + 1024;
    w->table = malloc(sizeof(int32_t) * (size_t)w->room);
    w->keys = malloc(sizeof(uint64_t) * (size_t)(largest + 1));
    w->other = malloc(sizeof(uint64_t) * (size_t)(largest + 1));
    w->place = malloc(sizeof(int32_t) * (size_t)(largest + 1));
    w->value = malloc(sizeof(int32_t) * (size_t)(largest + 1));
    return w->table && w->keys && w->other && w->place && w->value ? 0 : -1;
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
    if (range <= 4 * n + 16 && range < w->room) {
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

/* ---- cut --------------------------------------------------------------------------------------------- */

enum { EVEN, STRICT_LT, STRICT_LE };

/* fresh[lo..hi) = the rows of a group, part after part; bounds = where the parts begin, and the end. */
static void cut_group(Work *w, const int32_t *codes, Py_ssize_t d, const int32_t *order, int64_t lo, int64_t hi,
                      Py_ssize_t dim, int mode, Py_ssize_t q, int32_t *fresh, int64_t *bounds, int64_t *cursor,
                      int32_t *inner)
{
    Py_ssize_t n = hi - lo;
    int32_t least = INT32_MAX, most = INT32_MIN;
    for (Py_ssize_t i = 0; i < n; i++) {
        int32_t v = codes[(Py_ssize_t)order[lo + i] * d + dim];
        w->value[i] = v;
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    Py_ssize_t at = mode == STRICT_LE ? (n - 1) / 2 : n / 2;
    int32_t middle = n ? positions(w, n, least, most, at) : 0;
    if (mode != EVEN) {
        int64_t left = 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            w->place[i] = mode == STRICT_LT ? w->value[i] >= middle : w->value[i] > middle;
            left += !w->place[i];
        }
        bounds[0] = lo;
        bounds[1] = lo + left;
        bounds[2] = hi;
        cursor[0] = lo;
        cursor[1] = lo + left;
        for (Py_ssize_t i = 0; i < n; i++)
            fresh[cursor[w->place[i]]++] = order[lo + i];
        return;
    }
    inner_bounds(n, q, inner);
    bounds[0] = cursor[0] = lo;
    bounds[q] = hi;
    for (Py_ssize_t j = 1; j < q; j++)
        bounds[j] = cursor[j] = lo + inner[j - 1];
    for (Py_ssize_t i = 0; i < n; i++)
        fresh[cursor[part_of(w->place[i], inner, q)]++] = order[lo + i];
}

static PyObject *cut(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 7};
    Py_ssize_t d, q;
    int mode;
    if (!PyArg_ParseTuple(args, "y*ny*y*y*y*inw*w*", &s.b[0], &d, &s.b[1], &s.b[2], &s.b[3], &s.b[4], &mode, &q,
                          &s.b[5], &s.b[6]))
        return NULL;
    const int32_t *codes = s.b[0].buf, *order = s.b[1].buf, *dims = s.b[4].buf;
    const int64_t *lo = s.b[2].buf, *hi = s.b[3].buf;
    int32_t *fresh = s.b[5].buf;
    int64_t *bounds = s.b[6].buf;
    Py_ssize_t groups = s.b[2].len / 8, n = s.b[1].len / 4;
    int bad = d < 1 || q < 2 || q > 1000000 || (mode != EVEN && q != 2) || s.b[3].len / 8 != groups ||
              s.b[4].len / 4 != groups || s.b[5].len / 4 != n || s.b[6].len / 8 != groups * (q + 1) ||
              !segments_fit(lo, hi, groups, n) || !order_fits(order, n, s.b[0].len / 4 / d);
    for (Py_ssize_t g = 0; g < groups && !bad; g++)
        bad = dims[g] < 0 || dims[g] >= d;
    if (bad)
        return finish(&s, -2, NULL);
    Work w;
    int64_t *cursor = malloc(sizeof(int64_t) * (size_t)(q + 1));
    int32_t *inner = malloc(sizeof(int32_t) * (size_t)q);
    int failed = work_new(&w, largest_segment(lo, hi, groups)) < 0 || !cursor || !inner;
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t g = 0; g < groups; g++)
            cut_group(&w, codes, d, order, lo[g], hi[g], dims[g], mode, q, fresh, bounds + g * (q + 1), cursor, inner);
        Py_END_ALLOW_THREADS
    }
    work_free(&w);
    free(cursor);
    free(inner);
    return finish(&s, failed ? -1 : 0, failed ? NULL : none());
}

/* ---- the dimension whose even cut leaves the least loss ----------------------------------------------- */

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

/* rows: n members of `wide` (a multiple of LANES) attributes, d of which there are. */
static int32_t best_dimension(Work *w, const Labels *t, const double *scale, const float *rows, Py_ssize_t n,
                              Py_ssize_t d, Py_ssize_t wide, Py_ssize_t q, const float *range, float *low, float *high,
                              int32_t *inner)
{
    inner_bounds(n, q, inner);
    double best = 0;
    int32_t chosen = -1;
    for (Py_ssize_t a = 0; a < d; a++) {
        if (range[a] >= range[wide + a])
            continue;
        for (Py_ssize_t i = 0; i < n; i++)
            w->value[i] = (int32_t)rows[i * wide + a];
        positions(w, n, (int32_t)range[a], (int32_t)range[wide + a], 0);
        part_ranges(rows, w->place, n, wide, inner, q, low, high);
        double loss = 0;
        for (Py_ssize_t b = 0; b < d; b++) {
            int64_t sum = 0;
            for (Py_ssize_t p = 0; p < q; p++) {
                int64_t members = ((p + 1) * n + q - 1) / q - (p * n + q - 1) / q;
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
            t->first[a] + t->levels[a] * t->size[a] > room)
            return 0;
    return 1;
}

static PyObject *choose(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 12};
    Py_ssize_t d, q;
    if (!PyArg_ParseTuple(args, "y*ny*y*y*ny*y*y*y*y*y*y*w*", &s.b[0], &d, &s.b[1], &s.b[2], &s.b[3], &q, &s.b[4],
                          &s.b[5], &s.b[6], &s.b[7], &s.b[8], &s.b[9], &s.b[10], &s.b[11]))
        return NULL;
    const int32_t *codes = s.b[0].buf, *order = s.b[1].buf;
    const int64_t *lo = s.b[2].buf, *hi = s.b[3].buf;
    Labels t = {s.b[4].buf, s.b[5].buf, s.b[6].buf, s.b[7].buf, s.b[8].buf, s.b[9].buf};
    const double *scale = s.b[10].buf;
    int32_t *dims = s.b[11].buf;
    Py_ssize_t groups = s.b[2].len / 8, n = s.b[1].len / 4, rows = d > 0 ? s.b[0].len / 4 / d : 0;
    int bad = d < 1 || q < 2 || q > 1000000 || s.b[3].len / 8 != groups || s.b[11].len / 4 != groups ||
              s.b[4].len != s.b[5].len || !segments_fit(lo, hi, groups, n) || !order_fits(order, n, rows);
    for (int i = 6; i <= 10 && !bad; i++)
        bad = s.b[i].len / 8 != d;
    bad = bad || !labels_fit(&t, d, s.b[4].len / 4);
    for (Py_ssize_t i = 0; i < rows && !bad; i++)
        for (Py_ssize_t a = 0; a < d; a++)
            bad |= codes[i * d + a] < 0 || codes[i * d + a] >= t.size[a] || codes[i * d + a] >= 1 << ROOM;
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
        for (Py_ssize_t g = 0; g < groups; g++) {
            Py_ssize_t m = hi[g] - lo[g];
            for (Py_ssize_t i = 0; i < m; i++) {
                const int32_t *row = codes + (Py_ssize_t)order[lo[g] + i] * d;
                for (Py_ssize_t a = 0; a < d; a++)
                    members[i * wide + a] = (float)row[a];
            }
            part_ranges(members, first, m, wide, inner, 1, range, range + wide);
            dims[g] = best_dimension(&w, &t, scale, members, m, d, wide, q, range, low, high, inner);
        }
        Py_END_ALLOW_THREADS
    }
    work_free(&w);
    free(members);
    free(range);
    free(low);
    free(high);
    free(first);
    free(inner);
    return finish(&s, failed ? -1 : 0, failed ? NULL : none());
}

/* ---- value counts of segments -------------------------------------------------------------------------- */

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
              s.b[6].len / 8 != room || !segments_fit(lo, hi, groups, n) || !order_fits(order, n, rows);
    for (Py_ssize_t g = 0; g < groups && !bad; g++)
        total += hi[g] - lo[g] < radix ? hi[g] - lo[g] : radix;
    for (Py_ssize_t i = 0; i < rows && !bad; i++)
        bad = values[i] < 0 || values[i] >= radix;
    if (bad || total > room)
        return finish(&s, -2, NULL);
    int64_t *table = calloc((size_t)radix, sizeof(int64_t)), used = 0;
    if (table) {
        Py_BEGIN_ALLOW_THREADS
        start[0] = 0;
        for (Py_ssize_t g = 0; g < groups; g++) {
            int64_t first = used;
            for (int64_t i = lo[g]; i < hi[g]; i++) {
                int32_t v = values[order[i]];
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
    int failed = !table;
    free(table);
    return finish(&s, failed ? -1 : 0, failed ? NULL : PyLong_FromSsize_t(used));
}

/* ---- greedy grouping ----------------------------------------------------------------------------------- */

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

/* ---- Anatomy -------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t left;
    int32_t value;
} Item;

/* more rows first, then the smaller value */
static int before(Item a, Item b)
{
    return a.left > b.left || (a.left == b.left && a.value < b.value);
}

static void sift_down(Item *heap, Py_ssize_t n, Py_ssize_t i)
{
    Item item = heap[i];
    for (;;) {
        Py_ssize_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && before(heap[child + 1], heap[child]))
            child++;
        if (!before(heap[child], item))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = item;
}

static void sift_up(Item *heap, Py_ssize_t i, Item item)
{
    while (i > 0 && before(item, heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = item;
}

/* One block: counts of each value (rows listed value by value in `rows`); returns the next free group. */
static int64_t anatomy_block(const int64_t *counts, Py_ssize_t n_values, Py_ssize_t l, const int32_t *rows,
                             int64_t *cursor, Item *heap, Item *taken, int64_t group, int32_t *group_of)
{
    Py_ssize_t n = 0;
    int64_t at = 0;
    for (Py_ssize_t v = 0; v < n_values; v++) {
        cursor[v] = at;
        at += counts[v];
        if (counts[v])
            heap[n++] = (Item){counts[v], (int32_t)v};
    }
    for (Py_ssize_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i);
    while (n >= l) {
        for (Py_ssize_t j = 0; j < l; j++) {
            taken[j] = heap[0];
            heap[0] = heap[--n];
            sift_down(heap, n, 0);
        }
        for (Py_ssize_t j = 0; j < l; j++) {
            group_of[rows[cursor[taken[j].value]++]] = (int32_t)group;
            if (--taken[j].left)
                sift_up(heap, n++, taken[j]);
        }
        group++;
    }
    return group;
}

static PyObject *anatomy(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 5};
    Py_ssize_t n_values, l;
    /* per block the number of rows of each value; rows: block by block, value by value */
    if (!PyArg_ParseTuple(args, "y*nny*w*w*w*", &s.b[0], &n_values, &l, &s.b[1], &s.b[2], &s.b[3], &s.b[4]))
        return NULL;
    const int64_t *counts = s.b[0].buf;
    const int32_t *rows = s.b[1].buf;
    int32_t *group_of = s.b[2].buf;
    int64_t *groups = s.b[3].buf; /* per block the first group that is not its own */
    Py_ssize_t n = s.b[1].len / 4, blocks = s.b[3].len / 8;
    int bad = n_values < 1 || l < 1 || s.b[0].len / 8 != blocks * n_values || s.b[2].len / 4 != n ||
              s.b[4].len / 8 != n_values || !order_fits(rows, n, n);
    int64_t total = 0;
    for (Py_ssize_t i = 0; i < blocks * n_values && !bad; i++) {
        bad = counts[i] < 0 || counts[i] > n;
        total += counts[i];
    }
    if (bad || total != n)
        return finish(&s, -2, NULL);
    Item *heap = malloc(sizeof(Item) * (size_t)(n_values + 1)), *taken = malloc(sizeof(Item) * (size_t)(l + 1));
    int failed = !heap || !taken;
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS
        int64_t group = 0, at = 0;
        for (Py_ssize_t b = 0; b < blocks; b++) {
            const int64_t *here = counts + b * n_values;
            group = anatomy_block(here, n_values, l, rows + at, s.b[4].buf, heap, taken, group, group_of);
            for (Py_ssize_t v = 0; v < n_values; v++)
                at += here[v];
            groups[b] = group;
        }
        Py_END_ALLOW_THREADS
    }
    free(heap);
    free(taken);
    return finish(&s, failed ? -1 : 0, failed ? NULL : none());
}

static PyMethodDef methods[] = {
    {"counting", counting, METH_VARARGS, "counting(keys, n_keys, order)"},
    {"ranges", ranges, METH_VARARGS, "ranges(codes, d, order, lo, hi, least, most)"},
    {"cut", cut, METH_VARARGS, "cut(codes, d, order, lo, hi, dims, mode, parts, fresh, bounds)"},
    {"choose", choose, METH_VARARGS,
     "choose(codes, d, order, lo, hi, parts, blocks, leaves, first, size, levels, base, scale, dims)"},
    {"count", count, METH_VARARGS, "count(values, radix, order, lo, hi, start, codes, counts)"},
    {"greedy", greedy, METH_VARARGS, "greedy(values, rules, radix, n, bucket, extend, closes)"},
    {"anatomy", anatomy, METH_VARARGS, "anatomy(counts, n_values, l, rows, group_of, groups, cursor)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_partition", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__partition(void)
{
    return PyModule_Create(&module);
}
