/* The nearest tuples of a group: a walk down the trie of the tuples that leaves a branch once it is too dear. */

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
