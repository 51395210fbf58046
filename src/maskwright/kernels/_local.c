/* Local recoding: nearest neighbours, agglomeration and moves. `local_twin.py` does the same in numpy, and says what
 * each step means; the results are equal, ties included. Tuples are numbered in the order of the trie. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "_local_types.h"
#include "_local_neighbours.h"
#include "_local_merge.h"
#include "_local_moves.h"

static void release(Problem *p)
{
    if (!p)
        return;
    for (Py_ssize_t i = 0; i < p->n_held; i++)
        PyBuffer_Release(&p->held[i]);
    free(p->held);
    free(p->columns);
    free(p->groups);
    free(p->states);
    free(p->next);
    free(p->of);
    free(p->lists);
    free(p->heap);
    free(p);
}

static void destroy(PyObject *capsule) { release(PyCapsule_GetPointer(capsule, NAME)); }

static Problem *problem_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, NAME); }

/* The data of a buffer that stays held as long as the problem lives; NULL with an error where the length is wrong. */
static const void *hold(Problem *p, PyObject *object, Py_ssize_t length)
{
    Py_buffer *b = &p->held[p->n_held];
    if (!object || PyObject_GetBuffer(object, b, PyBUF_SIMPLE))
        return NULL;
    p->n_held++;
    if (b->len != length) {
        PyErr_SetString(PyExc_ValueError, "arrays do not fit together");
        return NULL;
    }
    return b->buf;
}

static int below(const int32_t *codes, Py_ssize_t n, int32_t limit)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (codes[i] < 0 || codes[i] >= limit)
            return 0;
    return 1;
}

static int small(const uint8_t *states, Py_ssize_t n, int32_t limit)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (states[i] >= limit)
            return 0;
    return 1;
}

static int read_column(Problem *p, Column *c, PyObject *item)
{
    PyObject *table, *blocks, *meet, *price, *codes, *node_code, *node_first, *node_start;
    if (!PyArg_ParseTuple(item, "iiinOOOOOOOO", &c->values, &c->states, &c->levels, &c->nodes, &table, &blocks,
                          &meet, &price, &codes, &node_code, &node_first, &node_start))
        return 0;
    Py_ssize_t v = c->values, s = c->states, m = c->nodes;
    if (v < 1 || s < 1 || s > 256 || c->levels < 1 || m < 1 || m > p->n) {
        PyErr_SetString(PyExc_ValueError, "a column does not make sense");
        return 0;
    }
    if (table != Py_None && !(c->table = hold(p, table, v * v)))
        return 0;
    if (table == Py_None && !(c->blocks = hold(p, blocks, 4 * v * c->levels)))
        return 0;
    if (!(c->meet = hold(p, meet, s * s)) || !(c->price = hold(p, price, 4 * v * s)) ||
        !(c->codes = hold(p, codes, 4 * (Py_ssize_t)p->n)) || !(c->node_code = hold(p, node_code, 4 * m)) ||
        !(c->node_first = hold(p, node_first, 4 * m)) || !(c->node_start = hold(p, node_start, 4 * (m + 1))))
        return 0;
    int fits = below(c->codes, p->n, c->values) && below(c->node_code, m, c->values) && small(c->meet, s * s, c->states) &&
               (c->table ? small(c->table, v * v, c->states) : c->levels < s);
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "a column holds a code or state that it does not have");
    return fits;
}

static int set_up(Problem *p)
{
    size_t n = (size_t)p->n, attributes = (size_t)p->attributes;
    p->groups = calloc(n, sizeof *p->groups);
    p->states = calloc(n, attributes);
    p->next = malloc(n * sizeof *p->next);
    p->of = malloc(n * sizeof *p->of);
    p->lists = malloc(n * (size_t)p->width * sizeof *p->lists);
    if (!p->groups || !p->states || !p->next || !p->of || !p->lists) {
        PyErr_NoMemory();
        return 0;
    }
    memset(p->lists, 0xff, n * (size_t)p->width * sizeof *p->lists);
    for (int32_t t = 0; t < p->n; t++) {
        p->groups[t].head = -1;
        add(p, t, t);
    }
    return 1;
}

static PyObject *open_problem(PyObject *self, PyObject *args)
{
    PyObject *columns, *rows, *sizes;
    Problem *p = calloc(1, sizeof *p);
    if (!p)
        return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "iO!OOLiLL", &p->n, &PyTuple_Type, &columns, &rows, &sizes, &p->k, &p->width, &p->limit,
                          &p->full))
        goto failed;
    Py_ssize_t attributes = PyTuple_Size(columns);
    if (p->n < 1 || p->width < 1 || attributes < 1) {
        PyErr_SetString(PyExc_ValueError, "there must be tuples, columns and neighbours");
        goto failed;
    }
    p->attributes = (int32_t)attributes;
    p->columns = calloc((size_t)attributes, sizeof *p->columns);
    p->held = calloc((size_t)attributes * BUFFERS + 2, sizeof *p->held);
    if (!p->columns || !p->held) {
        PyErr_NoMemory();
        goto failed;
    }
    if (!(p->rows = hold(p, rows, 8 * (Py_ssize_t)p->n)) || !(p->sizes = hold(p, sizes, 8 * (Py_ssize_t)p->n)))
        goto failed;
    for (Py_ssize_t a = 0; a < attributes; a++)
        if (!read_column(p, &p->columns[a], PyTuple_GetItem(columns, a)))
            goto failed;
    if (!set_up(p))
        goto failed;
    PyObject *capsule = PyCapsule_New(p, NAME, destroy);
    if (capsule)
        return capsule;
failed:
    release(p);
    return NULL;
}

static PyObject *find_neighbours(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    int lo, hi;
    Problem *p;
    if (!PyArg_ParseTuple(args, "Oii", &capsule, &lo, &hi) || !(p = problem_of(capsule)))
        return NULL;
    int64_t *cost = malloc((size_t)p->width * sizeof *cost);
    if (!cost)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    for (int32_t t = lo < 0 ? 0 : lo; t < hi && t < p->n; t++)
        nearest(p, t, p->width, cost, p->lists + (size_t)t * (size_t)p->width);
    Py_END_ALLOW_THREADS
    free(cost);
    Py_RETURN_NONE;
}

static PyObject *run_agglomerate(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    Py_ssize_t most;
    Problem *p;
    int more;
    if (!PyArg_ParseTuple(args, "On", &capsule, &most) || !(p = problem_of(capsule)))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    more = agglomerate(p, most);
    Py_END_ALLOW_THREADS
    return p->failed ? PyErr_NoMemory() : PyBool_FromLong(more);
}

static PyObject *run_moves(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    int lo, hi;
    Problem *p;
    Py_ssize_t moved = 0;
    if (!PyArg_ParseTuple(args, "Oii", &capsule, &lo, &hi) || !(p = problem_of(capsule)))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    for (int32_t t = lo < 0 ? 0 : lo; t < hi && t < p->n; t++)
        moved += move(p, t);
    Py_END_ALLOW_THREADS
    return PyLong_FromSsize_t(moved);
}

static PyObject *result(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    Py_buffer of, lists;
    Problem *p;
    if (!PyArg_ParseTuple(args, "Ow*w*", &capsule, &of, &lists))
        return NULL;
    p = problem_of(capsule);
    size_t n = p ? (size_t)p->n * sizeof *p->of : 0;
    if (p && ((size_t)of.len != n || (size_t)lists.len != n * (size_t)p->width)) {
        PyErr_SetString(PyExc_ValueError, "arrays do not fit together");
        p = NULL;
    }
    if (p) {
        memcpy(of.buf, p->of, n);
        memcpy(lists.buf, p->lists, n * (size_t)p->width);
    }
    PyBuffer_Release(&of);
    PyBuffer_Release(&lists);
    if (!p)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"open", open_problem, METH_VARARGS, "open(n, columns, rows, sizes, k, width, limit, full) -> problem"},
    {"neighbours", find_neighbours, METH_VARARGS, "neighbours(problem, lo, hi)"},
    {"agglomerate", run_agglomerate, METH_VARARGS, "agglomerate(problem, most) -> is there more to do"},
    {"move", run_moves, METH_VARARGS, "move(problem, lo, hi) -> tuples that moved"},
    {"result", result, METH_VARARGS, "result(problem, group of each tuple, neighbours)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_local", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__local(void) { return PyModule_Create(&module); }
