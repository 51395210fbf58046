/* Agglomeration: groups that are too small merge with their cheapest neighbour, cheapest offer first. */

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
