/* Orders of rows: counting sorts. */


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
