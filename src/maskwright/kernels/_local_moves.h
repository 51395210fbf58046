/* Moves: a tuple leaves its group for another where that lowers the cost. */

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
