/* Local recoding: nearest neighbours, agglomeration and moves. `local_twin.py` does the same in numpy, and says what
 * each step means; the results are equal, ties included. Tuples are numbered in the order of the trie. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NEVER ((int64_t)1 << 30) /* the price where no label covers all values */
#define FALLBACK 8               /* tuples looked at where no neighbour will do */
#define BUFFERS 8                /* per column */
#define NAME "maskwright.local"

typedef struct {
    int32_t values, states, levels;
    Py_ssize_t nodes;
    const uint8_t *table;  /* values x values: where two codes agree; NULL: compare their blocks */
    const int32_t *blocks; /* levels x values */
    const uint8_t *meet;   /* states x states */
    const int32_t *price;  /* values x states */
    const int32_t *codes;  /* by tuple */
    const int32_t *node_code, *node_first, *node_start;
} Column;

typedef struct {
    double key;
    int32_t x, y;
    uint32_t vx, vy;
} Offer;

typedef struct {
    int64_t rows, size, cost;
    int32_t head, count;
    uint32_t version;
} Group;

typedef struct {
    int32_t n, width, attributes;
    int64_t k, limit, full, suppressed;
    Column *columns;
    Py_buffer *held;
    Py_ssize_t n_held;
    const int64_t *rows, *sizes;
    Group *groups;
    uint8_t *states; /* groups x attributes */
    int32_t *next, *of, *lists;
    Offer *heap;
    size_t offers, room;
    int begun, failed;
} Problem;

typedef struct {
    const Problem *p;
    int32_t tuple, group, want, found;
    const uint8_t *states;
    int64_t *cost;
    int32_t *who;
} Query;

static inline int agree(const Column *c, int32_t a, int32_t b)
{
    if (c->table)
        return c->table[(size_t)a * (size_t)c->values + (size_t)b];
    int level = 0;
    for (const int32_t *block = c->blocks; level < c->levels && block[a] != block[b]; block += c->values)
        level++;
    return level;
}

static inline uint8_t *states_of(const Problem *p, int32_t g) { return p->states + (size_t)g * (size_t)p->attributes; }

/* The price of one label for tuple x and what has the states sx, together with tuple y and states sy (NULL: alone). */
static int64_t join(const Problem *p, int32_t x, const uint8_t *sx, int32_t y, const uint8_t *sy, int64_t most)
{
    int64_t sum = 0;
    for (int a = 0; a < p->attributes; a++) {
        const Column *c = &p->columns[a];
        int32_t own = c->codes[x];
        int s = c->meet[sx[a] * c->states + agree(c, own, c->codes[y])];
        if (sy)
            s = c->meet[s * c->states + sy[a]];
        sum += c->price[(size_t)own * (size_t)c->states + (size_t)s];
        if (sum > most)
            return NEVER;
    }
    return sum;
}

/* ---- nearest tuples ----------------------------------------------------------------------------------------- */

static inline int promising(const Query *q, int64_t cost, int32_t first)
{
    if (q->found < q->want)
        return 1;
    int64_t worst = q->cost[q->want - 1];
    return cost < worst || (cost == worst && first < q->who[q->want - 1]);
}

static void insert(Query *q, int64_t cost, int32_t tuple)
{
    int i = q->found < q->want ? q->found++ : q->want - 1;
    for (; i && (q->cost[i - 1] > cost || (q->cost[i - 1] == cost && q->who[i - 1] > tuple)); i--) {
        q->cost[i] = q->cost[i - 1];
        q->who[i] = q->who[i - 1];
    }
    q->cost[i] = cost;
    q->who[i] = tuple;
}

static void walk(Query *q, int depth, int32_t lo, int32_t hi, int64_t sum)
{
    const Problem *p = q->p;
    const Column *c = &p->columns[depth];
    const int32_t own = c->codes[q->tuple];
    const uint8_t *meet = c->meet + q->states[depth] * c->states;
    const int32_t *price = c->price + (size_t)own * (size_t)c->states;
    for (int other = 0; other < 2; other++) /* the same value first: it tends to be the nearest */
        for (int32_t i = lo; i < hi; i++) {
            const int32_t code = c->node_code[i];
            if ((code != own) != other)
                continue;
            const int64_t cost = sum + price[meet[agree(c, own, code)]];
            if (cost >= NEVER || !promising(q, cost, c->node_first[i]))
                continue;
            if (depth + 1 < p->attributes)
                walk(q, depth + 1, c->node_start[i], c->node_start[i + 1], cost);
            else if (p->of[i] != q->group)
                insert(q, cost, i);
        }
}

/* The `want` tuples outside a group whose values would fit best under one label with it. */
static int32_t nearest(const Problem *p, int32_t group, int32_t want, int64_t *cost, int32_t *who)
{
    Query q = {p, p->groups[group].head, group, want, 0, states_of(p, group), cost, who};
    walk(&q, 0, 0, (int32_t)p->columns[0].nodes, 0);
    return q.found;
}

/* ---- agglomeration ------------------------------------------------------------------------------------------ */

static inline int before(const Offer *a, const Offer *b) { return a->key < b->key || (a->key == b->key && a->x < b->x); }

static void push(Problem *p, Offer e)
{
    if (p->offers == p->room) {
        size_t room = p->room * 2 + 1024;
        Offer *heap = realloc(p->heap, room * sizeof *heap);
        if (!heap) {
            p->failed = 1;
            return;
        }
        p->heap = heap;
        p->room = room;
    }
    size_t i = p->offers++;
    for (; i && before(&e, &p->heap[(i - 1) / 2]); i = (i - 1) / 2)
        p->heap[i] = p->heap[(i - 1) / 2];
    p->heap[i] = e;
}

static Offer pop(Problem *p)
{
    Offer top = p->heap[0], e = p->heap[--p->offers];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < p->offers) {
        if (child + 1 < p->offers && before(&p->heap[child + 1], &p->heap[child]))
            child++;
        if (!before(&p->heap[child], &e))
            break;
        p->heap[i] = p->heap[child];
        i = child;
    }
    p->heap[i] = e;
    return top;
}

/* What a merge adds to the loss, per row that leaves a group that is too small; dearer the larger the result. */
static double key_of(const Problem *p, const Group *x, const Group *y, int64_t cost)
{
    int64_t added = (x->rows + y->rows) * cost - x->rows * x->cost - y->rows * y->cost;
    int64_t helped = (x->size < p->k ? x->rows : 0) + (y->size < p->k ? y->rows : 0);
    int64_t size = x->size + y->size > p->k ? x->size + y->size : p->k;
    return (double)added * (double)size / (double)helped;
}

static void consider(const Problem *p, int32_t x, int32_t y, double *key, int32_t *best)
{
    const Group *gx = &p->groups[x], *gy = &p->groups[y];
    int64_t cost = join(p, gx->head, states_of(p, x), gy->head, states_of(p, y), NEVER - 1);
    if (cost >= NEVER)
        return;
    double found = key_of(p, gx, gy, cost);
    if (*best < 0 || found < *key) {
        *key = found;
        *best = y;
    }
}

/* Offer the best merge of a group that is too small, if there is any. */
static void offer(Problem *p, int32_t x)
{
    double key = 0;
    int32_t best = -1;
    for (int32_t t = p->groups[x].head; t >= 0; t = p->next[t]) {
        const int32_t *list = p->lists + (size_t)t * (size_t)p->width;
        for (int32_t j = 0; j < p->width && list[j] >= 0; j++)
            if (p->of[list[j]] != x)
                consider(p, x, p->of[list[j]], &key, &best);
    }
    if (best < 0) {
        int64_t cost[FALLBACK];
        int32_t who[FALLBACK], found = nearest(p, x, FALLBACK, cost, who);
        for (int32_t j = 0; j < found; j++)
            consider(p, x, p->of[who[j]], &key, &best);
    }
    if (best >= 0)
        push(p, (Offer){key, x, best, p->groups[x].version, p->groups[best].version});
}

static void merge(Problem *p, int32_t x, int32_t y)
{
    Group *gx = &p->groups[x], *gy = &p->groups[y];
    uint8_t *sx = states_of(p, x), *sy = states_of(p, y);
    gx->cost = 0;
    for (int a = 0; a < p->attributes; a++) {
        const Column *c = &p->columns[a];
        int32_t own = c->codes[gx->head];
        int s = c->meet[sx[a] * c->states + agree(c, own, c->codes[gy->head])];
        sx[a] = c->meet[s * c->states + sy[a]];
        gx->cost += c->price[(size_t)own * (size_t)c->states + sx[a]];
    }
    int32_t last = gy->head;
    for (int32_t t = gy->head; t >= 0; t = p->next[t]) {
        p->of[t] = x;
        last = t;
    }
    p->next[last] = gx->head;
    gx->head = gy->head;
    gx->count += gy->count;
    gx->rows += gy->rows;
    gx->size += gy->size;
    gy->head = -1;
    gx->version++;
    gy->version++;
}

/* Carry out up to `most` of the cheapest merges. Is there more to do? */
static int agglomerate(Problem *p, Py_ssize_t most)
{
    if (!p->begun) {
        p->begun = 1;
        for (int32_t t = 0; t < p->n; t++)
            if (p->groups[t].size < p->k)
                offer(p, t);
    }
    for (; most > 0 && p->offers && !p->failed; most--) {
        Offer e = pop(p);
        const Group *x = &p->groups[e.x], *y = &p->groups[e.y];
        if (x->head < 0 || x->version != e.vx || x->size >= p->k)
            continue;
        if (y->head >= 0 && y->version == e.vy)
            merge(p, e.x, e.y);
        if (x->size < p->k)
            offer(p, e.x);
    }
    return p->offers > 0;
}

/* ---- moves -------------------------------------------------------------------------------------------------- */

static void add(Problem *p, int32_t g, int32_t t)
{
    Group *x = &p->groups[g];
    uint8_t *states = states_of(p, g);
    x->cost = 0;
    for (int a = 0; a < p->attributes; a++) {
        const Column *c = &p->columns[a];
        int32_t own = c->codes[t];
        states[a] = x->count ? c->meet[states[a] * c->states + agree(c, own, c->codes[x->head])] : 0;
        x->cost += c->price[(size_t)own * (size_t)c->states + states[a]];
    }
    p->next[t] = x->head;
    x->head = t;
    x->count++;
    x->rows += p->rows[t];
    x->size += p->sizes[t];
    p->of[t] = g;
}

/* Take a tuple out of a group of several. */
static void take(Problem *p, int32_t g, int32_t t)
{
    Group *x = &p->groups[g];
    int32_t *at = &x->head;
    while (*at != t)
        at = &p->next[*at];
    *at = p->next[t];
    x->count--;
    x->rows -= p->rows[t];
    x->size -= p->sizes[t];
    x->cost = 0;
    uint8_t *states = states_of(p, g);
    for (int a = 0; a < p->attributes; a++) {
        const Column *c = &p->columns[a];
        int32_t own = c->codes[x->head];
        int s = 0;
        for (int32_t u = p->next[x->head]; u >= 0; u = p->next[u])
            s = c->meet[s * c->states + agree(c, own, c->codes[u])];
        states[a] = (uint8_t)s;
        x->cost += c->price[(size_t)own * (size_t)c->states + (size_t)s];
    }
}

/* Move a tuple where it adds least to the loss, or suppress it if that is less. Did it move? */
static int move(Problem *p, int32_t t)
{
    int32_t from = p->of[t];
    if (from < 0 || p->groups[from].count < 2 || p->groups[from].size - p->sizes[t] < p->k)
        return 0;
    int64_t least = p->groups[from].rows * p->groups[from].cost;
    take(p, from, t);
    least -= p->groups[from].rows * p->groups[from].cost;
    int32_t to = from;
    const int32_t *list = p->lists + (size_t)t * (size_t)p->width;
    for (int32_t j = 0; j < p->width && list[j] >= 0; j++) {
        int32_t h = p->of[list[j]];
        if (h < 0 || h == from || h == to)
            continue;
        const Group *y = &p->groups[h];
        int64_t rows = y->rows + p->rows[t], was = y->rows * y->cost;
        int64_t cost = join(p, y->head, states_of(p, h), t, NULL, (least + was) / rows);
        if (cost < NEVER && rows * cost - was < least) {
            least = rows * cost - was;
            to = h;
        }
    }
    if (p->rows[t] * p->full < least && p->suppressed + p->rows[t] <= p->limit) {
        p->suppressed += p->rows[t];
        p->of[t] = -1;
        return 1;
    }
    add(p, to, t);
    return to != from;
}

/* ---- Python ------------------------------------------------------------------------------------------------- */

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
