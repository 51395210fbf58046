/* Arrays that arrive as buffers: held together, checked against each other, let go of. */

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

/* Rows that are visited in no order of memory are asked for so many steps before they are needed. */
#define AHEAD 12
#if defined(__GNUC__)
#define ASK_FOR(array, index) __builtin_prefetch((const void *)((uintptr_t)(array) + (uintptr_t)(index) * sizeof *(array)))
#else
#define ASK_FOR(array, index) ((void)0)
#endif
