/* Maximum disclosure, the two loops over buckets: rank (most frequent values) and minima (MINIMIZE1).
 *
 * Arrays arrive as buffers and are laid out by level: entry [j][b] of an array with m buckets is at j*m + b.
 * The numpy twin in disclosure.py performs the same floating-point operations in the same order.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

#define LANES 8 /* buckets handled side by side, so that the compiler can use vector registers */

/* Keep `top` (falling, `used` long, at most `atoms`) the largest counts seen. */
static Py_ssize_t insert(int64_t *top, Py_ssize_t used, Py_ssize_t atoms, int64_t count)
{
    Py_ssize_t j;
    if (used == atoms) {
        if (atoms == 0 || top[used - 1] >= count)
            return used;
        used--;
    }
    for (j = used; j > 0 && top[j - 1] < count; j--)
        top[j] = top[j - 1];
    top[j] = count;
    return used + 1;
}

static int rank_all(const int64_t *start, const int32_t *codes, const int64_t *counts, Py_ssize_t entries,
                    Py_ssize_t lo, Py_ssize_t m, Py_ssize_t atoms, int64_t *top, int64_t *sizes,
                    int64_t *sums, int64_t *target, uint8_t *hidden)
{
    for (Py_ssize_t b = 0; b < m; b++) {
        int64_t first = start[lo + b], last = start[lo + b + 1], n = 0, best = 0, missing = 0;
        Py_ssize_t used = 0;
        if (first < 0 || last < first || last > entries)
            return -1;
        for (int64_t e = first; e < last; e++) {
            n += counts[e];
            if (codes[e] == 0)
                missing = counts[e];
            else if (counts[e] > best)
                best = counts[e];
            used = insert(top, used, atoms, counts[e]);
        }
        int64_t sum = 0;
        sums[b] = 0;
        for (Py_ssize_t j = 0; j < atoms; j++) {
            sum += j < used ? top[j] : 0;
            sums[(j + 1) * m + b] = sum;
        }
        sizes[b] = n;
        target[b] = best;
        hidden[b] = missing > best;
    }
    return 0;
}

static PyObject *rank(PyObject *self, PyObject *args)
{
    Py_buffer start, codes, counts, sizes, sums, target, hidden;
    Py_ssize_t lo, hi, atoms;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*nnnw*w*w*w*", &start, &codes, &counts, &lo, &hi, &atoms, &sizes, &sums,
                          &target, &hidden))
        return NULL;
    Py_ssize_t m = hi - lo, entries = counts.len / 8;
    int64_t *top = NULL;
    int status = 0;
    if (lo < 0 || m < 0 || atoms < 0 || atoms > 100000 || start.len / 8 < hi + 1 || codes.len / 4 != entries ||
        sizes.len / 8 < m || target.len / 8 < m || hidden.len < m || sums.len / 8 / (atoms + 1) < m) {
        PyErr_SetString(PyExc_ValueError, "arrays do not fit together");
        goto done;
    }
    top = malloc((size_t)(atoms + 1) * sizeof *top);
    if (!top) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    status = rank_all(start.buf, codes.buf, counts.buf, entries, lo, m, atoms, top, sizes.buf, sums.buf,
                      target.buf, hidden.buf);
    Py_END_ALLOW_THREADS
    if (status)
        PyErr_SetString(PyExc_ValueError, "bucket boundaries are out of range");
    else {
        Py_INCREF(Py_None);
        result = Py_None;
    }
done:
    free(top);
    PyBuffer_Release(&start);
    PyBuffer_Release(&codes);
    PyBuffer_Release(&counts);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&sums);
    PyBuffer_Release(&target);
    PyBuffer_Release(&hidden);
    return result;
}

/* MINIMIZE1 for LANES buckets: cells[i][h], see Bucket._minima in core/disclosure.py. `wide` starts above any
 * probability: with fewer than two atoms there is no person with two. */
static void minima_block(Py_ssize_t atoms, const double *n, const double *sums, double *cells, double *wide)
{
    const Py_ssize_t row = (atoms + 1) * LANES;
    double x[LANES];
    for (Py_ssize_t i = 0; i <= atoms; i++)
        for (Py_ssize_t at = 0; at < (atoms - i + 1) * LANES; at++)
            cells[i * row + at] = 1.0;
    for (Py_ssize_t at = 0; at < row; at++)
        wide[at] = 2.0;
    for (Py_ssize_t cap = 1; cap <= atoms; cap++) {
        for (Py_ssize_t i = atoms / cap - 1; i >= 0; i--) {
            for (int l = 0; l < LANES; l++) {
                double people = n[l] - (double)i, left = people - sums[cap * LANES + l];
                left = left > 0.0 ? left : 0.0;
                left = people > 0.0 ? left : 1.0; /* nobody left: more atoms add nothing */
                people = people > 0.0 ? people : 1.0;
                x[l] = left / people;
            }
            double *to = i == 0 && cap > 1 ? wide : cells + i * row;
            const double *from = cells + (i + 1) * row - cap * LANES;
            for (Py_ssize_t h = cap; h <= atoms - i * cap; h++)
                for (int l = 0; l < LANES; l++) {
                    double way = x[l] * from[h * LANES + l], old = to[h * LANES + l];
                    to[h * LANES + l] = way < old ? way : old;
                }
        }
    }
}

static PyObject *minima(PyObject *self, PyObject *args)
{
    Py_buffer sizes, sums, narrow, wide;
    Py_ssize_t atoms;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*nw*w*", &sizes, &sums, &atoms, &narrow, &wide))
        return NULL;
    Py_ssize_t m = sizes.len / 8, levels = atoms + 1;
    double *work = NULL;
    if (atoms < 0 || atoms > 100000 || sums.len / 8 != m * levels || narrow.len / 8 != m * levels ||
        wide.len / 8 != m * levels) {
        PyErr_SetString(PyExc_ValueError, "arrays do not fit together");
        goto done;
    }
    work = malloc(sizeof *work * LANES * (size_t)(1 + levels * (levels + 2)));
    if (!work) {
        PyErr_NoMemory();
        goto done;
    }
    const int64_t *size = sizes.buf, *sum = sums.buf;
    double *out[2] = {narrow.buf, wide.buf};
    Py_BEGIN_ALLOW_THREADS
    double *n = work, *s = n + LANES, *w = s + levels * LANES, *cells = w + levels * LANES;
    for (Py_ssize_t b = 0; b < m; b += LANES) {
        int used = m - b < LANES ? (int)(m - b) : LANES;
        for (int l = 0; l < LANES; l++) {
            n[l] = l < used ? (double)size[b + l] : 0.0;
            for (Py_ssize_t j = 0; j < levels; j++)
                s[j * LANES + l] = l < used ? (double)sum[j * m + b + l] : 0.0;
        }
        minima_block(atoms, n, s, cells, w);
        for (Py_ssize_t j = 0; j < levels; j++)
            for (int l = 0; l < used; l++) {
                out[0][j * m + b + l] = cells[j * LANES + l];
                out[1][j * m + b + l] = w[j * LANES + l];
            }
    }
    Py_END_ALLOW_THREADS
    Py_INCREF(Py_None);
    result = Py_None;
done:
    free(work);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&sums);
    PyBuffer_Release(&narrow);
    PyBuffer_Release(&wide);
    return result;
}

static PyMethodDef methods[] = {
    {"rank", rank, METH_VARARGS, "rank(start, codes, counts, lo, hi, atoms, sizes, sums, target, hidden)"},
    {"minima", minima, METH_VARARGS, "minima(sizes, sums, atoms, narrow, wide)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_disclosure", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__disclosure(void)
{
    return PyModule_Create(&module);
}
