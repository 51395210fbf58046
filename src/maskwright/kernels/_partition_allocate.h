/* Allocation: how many rows of each cell went to each group. */

/* Group g holds the rows order[start[g]..start[g + 1]); rows that are not listed were dropped (group -1). Entries (cell,
 * group, rows) come out by cell, then group. `slots` is room for one number per row; listed[i]: row i is in a group. Returns how many entries there are. */
static int64_t allocate_rows(const int32_t *cells, Py_ssize_t n, const int32_t *order, const int64_t *start,
                             Py_ssize_t groups, const int64_t *cell_rows, Py_ssize_t n_cells, int64_t *at,
                             const uint8_t *listed, int32_t *slots, int32_t *out_cell, int32_t *out_group, int64_t *out_rows)
{
    for (Py_ssize_t c = 0, sum = 0; c < n_cells; sum += cell_rows[c], c++)
        at[c] = sum;
    for (Py_ssize_t i = 0; i < n && start[groups] < n; i++)
        if (!listed[i])
            slots[at[cells[i]]++] = -1;
    for (Py_ssize_t g = 0; g < groups; g++)
        for (int64_t i = start[g]; i < start[g + 1]; i++) {
            if (i + 2 * AHEAD < start[groups]) {
                ASK_FOR(cells, order[i + 2 * AHEAD]);
                ASK_FOR(at, cells[order[i + AHEAD]]);
            }
            slots[at[cells[order[i]]]++] = (int32_t)g;
        }
    int64_t used = 0, from = 0;
    for (Py_ssize_t c = 0; c < n_cells; c++) {
        int64_t end = from + cell_rows[c];
        while (from < end) {
            int64_t same = from + 1;
            while (same < end && slots[same] == slots[from])
                same++;
            out_cell[used] = (int32_t)c;
            out_group[used] = slots[from];
            out_rows[used++] = same - from;
            from = same;
        }
    }
    return used;
}

static PyObject *allocate(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 7};
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*w*w*", &s.b[0], &s.b[1], &s.b[2], &s.b[3], &s.b[4], &s.b[5], &s.b[6]))
        return NULL;
    const int32_t *cells = s.b[0].buf, *order = s.b[1].buf;
    const int64_t *start = s.b[2].buf, *cell_rows = s.b[3].buf;
    Py_ssize_t n = s.b[0].len / 4, listed_rows = s.b[1].len / 4, groups = s.b[2].len / 8 - 1, n_cells = s.b[3].len / 8;
    int bad = groups < 0 || groups > INT32_MAX || n_cells > INT32_MAX || s.b[4].len / 4 != n || s.b[5].len / 4 != n ||
              s.b[6].len / 8 != n || !order_fits(order, listed_rows, n) || !order_fits(cells, n, n_cells) ||
              start[0] != 0 || start[groups] != listed_rows;
    for (Py_ssize_t g = 0; g < groups && !bad; g++)
        bad = start[g + 1] < start[g];
    int64_t *at = bad ? NULL : calloc((size_t)n_cells + 1, sizeof(int64_t)), used = 0;
    uint8_t *listed = bad ? NULL : calloc((size_t)n + 1, 1);
    int32_t *slots = bad ? NULL : malloc(sizeof(int32_t) * (size_t)(n + 1));
    int failed = !bad && (!at || !listed || !slots);
    if (!bad && !failed) {
        for (Py_ssize_t i = 0; i < n; i++)
            at[cells[i]]++;
        for (Py_ssize_t c = 0; c < n_cells; c++)
            bad |= at[c] != cell_rows[c]; /* every row of every cell is there */
        for (Py_ssize_t i = 0; i < listed_rows && !bad; i++)
            bad = listed[order[i]]++; /* once */
    }
    if (!bad && !failed) {
        Py_BEGIN_ALLOW_THREADS
        used = allocate_rows(cells, n, order, start, groups, cell_rows, n_cells, at, listed, slots, s.b[4].buf, s.b[5].buf,
                             s.b[6].buf);
        Py_END_ALLOW_THREADS
    }
    free(at);
    free(listed);
    free(slots);
    int status = bad ? -2 : failed ? -1 : 0;
    return finish(&s, status, status ? NULL : PyLong_FromLongLong(used));
}
