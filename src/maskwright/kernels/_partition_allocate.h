/* Allocation: how many rows of each cell went to each group.
 *
 * Group g holds the rows listed[start[g]..start[g + 1]), each named by its cell. Groups are visited in their order, so that
 * the entries of a cell come about by group: they are counted first, so that they need no more room than they fill. */

static int allocation_fits(const int32_t *listed, Py_ssize_t n, const int64_t *start, Py_ssize_t groups, Py_ssize_t n_cells)
{
    if (groups < 0 || groups > INT32_MAX || n_cells > INT32_MAX || start[0] != 0 || start[groups] != n)
        return 0;
    for (Py_ssize_t g = 0; g < groups; g++)
        if (start[g + 1] < start[g])
            return 0;
    return order_fits(listed, n, n_cells);
}

/* first[c] = where the entries of cell c begin, left[c] = its rows that are not listed. */
static PyObject *count_entries(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 5};
    if (!PyArg_ParseTuple(args, "y*y*y*w*w*", &s.b[0], &s.b[1], &s.b[2], &s.b[3], &s.b[4]))
        return NULL;
    const int32_t *listed = s.b[0].buf;
    const int64_t *start = s.b[1].buf, *cell_rows = s.b[2].buf;
    int64_t *first = s.b[3].buf, *left = s.b[4].buf, used = 0;
    Py_ssize_t n = s.b[0].len / 4, groups = s.b[1].len / 8 - 1, n_cells = s.b[2].len / 8;
    if (s.b[3].len / 8 != n_cells + 1 || s.b[4].len / 8 != n_cells || !allocation_fits(listed, n, start, groups, n_cells))
        return finish(&s, -2, NULL);
    typedef struct {
        int32_t entries, group; /* so many so far, the last one with this group */
    } Last;
    Last *last = malloc(sizeof(Last) * (size_t)(n_cells + 1));
    int bad = 0;
    if (last) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t c = 0; c < n_cells; c++) {
            last[c] = (Last){0, -1};
            left[c] = cell_rows[c];
        }
        for (Py_ssize_t g = 0; g < groups; g++)
            for (int64_t i = start[g]; i < start[g + 1]; i++) {
                if (i + AHEAD < n) {
                    ASK_FOR(last, listed[i + AHEAD]);
                    ASK_FOR(left, listed[i + AHEAD]);
                }
                Last *cell = last + listed[i];
                left[listed[i]]--;
                cell->entries += cell->group != (int32_t)g;
                cell->group = (int32_t)g;
            }
        for (Py_ssize_t c = 0; c < n_cells; c++) {
            bad |= left[c] < 0; /* listed more often than there are rows of it */
            first[c] = used;
            used += last[c].entries + (left[c] > 0);
        }
        first[n_cells] = used;
        Py_END_ALLOW_THREADS
    }
    int status = !last ? -1 : bad ? -2 : 0;
    free(last);
    return finish(&s, status, status ? NULL : PyLong_FromLongLong(used));
}

/* Entries (cell, group, rows) by cell, then group; group -1 first: the rows that are not listed. */
static PyObject *allocate(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 7};
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*w*w*", &s.b[0], &s.b[1], &s.b[2], &s.b[3], &s.b[4], &s.b[5], &s.b[6]))
        return NULL;
    const int32_t *listed = s.b[0].buf;
    const int64_t *start = s.b[1].buf, *first = s.b[2].buf, *left = s.b[3].buf;
    int64_t *out_cell = s.b[4].buf, *out_group = s.b[5].buf, *out_rows = s.b[6].buf;
    Py_ssize_t n = s.b[0].len / 4, groups = s.b[1].len / 8 - 1, n_cells = s.b[3].len / 8, room = s.b[4].len / 8;
    int bad = s.b[2].len / 8 != n_cells + 1 || s.b[5].len / 8 != room || s.b[6].len / 8 != room ||
              !allocation_fits(listed, n, start, groups, n_cells) || first[0] != 0 || first[n_cells] != room;
    for (Py_ssize_t c = 0; c < n_cells && !bad; c++)
        bad = first[c + 1] < first[c] || first[c] + (left[c] > 0) > first[c + 1];
    if (bad)
        return finish(&s, -2, NULL);
    int64_t *at = malloc(sizeof(int64_t) * (size_t)(n_cells + 1)); /* the entry that a cell is at */
    if (at) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t c = 0; c < n_cells; c++) {
            at[c] = first[c] - 1;
            if (left[c] > 0) {
                at[c]++;
                out_group[at[c]] = -1;
                out_rows[at[c]] = left[c];
            }
            for (int64_t e = first[c]; e < first[c + 1]; e++)
                out_cell[e] = c;
        }
        for (Py_ssize_t g = 0; g < groups && !bad; g++)
            for (int64_t i = start[g]; i < start[g + 1]; i++) {
                if (i + 2 * AHEAD < n) {
                    ASK_FOR(at, listed[i + 2 * AHEAD]);
                    ASK_FOR(out_group, at[listed[i + AHEAD]] + 1);
                    ASK_FOR(out_rows, at[listed[i + AHEAD]] + 1);
                }
                int32_t c = listed[i];
                int64_t e = at[c];
                if (e >= first[c] && out_group[e] == g) {
                    out_rows[e]++;
                    continue;
                }
                if (++e >= first[c + 1]) {
                    bad = 1;
                    break;
                }
                out_group[e] = g;
                out_rows[e] = 1;
                at[c] = e;
            }
        for (Py_ssize_t c = 0; c < n_cells; c++)
            bad |= at[c] + 1 != first[c + 1];
        Py_END_ALLOW_THREADS
    }
    int status = !at ? -1 : bad ? -2 : 0;
    free(at);
    return finish(&s, status, status ? NULL : none());
}
