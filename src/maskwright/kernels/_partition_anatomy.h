/* Anatomy: buckets of l different values. */

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
