/* Types of the local recoding kernel, and what it costs to put two groups under one label. */

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
