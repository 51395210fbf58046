/* One node: its classes, which of them are suppressed, and what that costs. */

/* The segments that are left when the classes of a node are counted. `width`: combinations of their blocks. */
typedef struct {
    const Table *t[MAX_COLUMNS];
    const uint32_t *codes[MAX_COLUMNS], *id[MAX_COLUMNS];
    uint64_t blocks[MAX_COLUMNS], width;
    size_t cap;
    int n, dense;
} Keys;

/* The combination of the blocks of a tuple in the segments that are left. `n` is a constant for the compiler, and `k` a
 * copy that nothing else can point to. */
static inline __attribute__((always_inline)) uint64_t rest_of(const Keys *k, int n, uint64_t key, uint32_t i) {
    for (int j = 0; j < n; j++) key = key * k->blocks[j] + k->id[j][k->codes[j][i]];
    return key;
}

/* Classes in a table with a place for every key; tuples come in the order of their prefixes, so that it is filled
 * from one end to the other. */
static inline __attribute__((always_inline)) void count_dense(Problem *P, const Snap *s, const Keys *keys, int n, int want_index) {
    const uint32_t *pre = s->pre, n_tuples = s->n;
    const int32_t *size = s->size, *rows = s->rows;
    int32_t *cnt = P->cnt, *cnt_rows = P->cnt_rows;
    uint32_t *index = P->index;
    const Keys k = *keys;
    for (uint32_t i = 0; i < n_tuples; i++) {
        uint32_t key = (uint32_t)rest_of(&k, n, pre[i], i);
        cnt[key] += size[i];
        if (want_index) index[i] = key;
    }
    if (P->units) for (uint32_t i = 0; i < n_tuples; i++) cnt_rows[rest_of(&k, n, pre[i], i)] += rows[i];
}

/* Classes in a hash table in which every prefix has its own part, twice as large as it has tuples. */
static inline __attribute__((always_inline)) void count_hashed(Problem *P, const Snap *s, const Keys *all, int n, int want_index) {
    const int32_t *size = s->size, *rows = s->rows;
    int32_t *cnt = P->cnt, *cnt_rows = P->cnt_rows;
    uint64_t *keys = P->keys;
    uint32_t *index = P->index;
    const Keys k = *all;
    const int units = P->units;
    for (uint32_t p = 0; p < s->n_pre; p++) {
        uint32_t from = s->start[p], to = s->start[p + 1];
        size_t begin = 2 * (size_t)from, end = 2 * (size_t)to;
        uint64_t room = end - begin;
        for (uint32_t i = from; i < to; i++) {
            uint64_t key = rest_of(&k, n, 0, i);
            size_t h = begin + (size_t)((((key * 0x9E3779B97F4A7C15ull) >> 32) * room) >> 32);
            while (cnt[h] && keys[h] != key) if (++h == end) h = begin;
            keys[h] = key;
            cnt[h] += size[i];
            if (units) cnt_rows[h] += rows[i];
            if (want_index) index[i] = (uint32_t)h;
        }
    }
}

#define COUNT(how)                                              \
    switch (want_index ? -1 : k->n) {                           \
    case 1: how(P, s, k, 1, 0); break;                          \
    case 2: how(P, s, k, 2, 0); break;                          \
    case 3: how(P, s, k, 3, 0); break;                          \
    case 4: how(P, s, k, 4, 0); break;                          \
    default: switch (k->n) {                                    \
        case 1: how(P, s, k, 1, 1); break;                      \
        case 2: how(P, s, k, 2, 1); break;                      \
        case 3: how(P, s, k, 3, 1); break;                      \
        default: how(P, s, k, k->n, 1);                         \
        }                                                       \
    }

static int count_classes(Problem *P, const Snap *s, const int32_t *places, Keys *k, int want_index) {
    k->n = P->n_segs - s->depth;
    k->width = 1;
    for (int i = 0; i < k->n; i++) {
        k->t[i] = table_of(P, &P->seg[s->depth + i], places);
        if (!k->t[i]) return -1;
        k->codes[i] = s->codes[s->depth + i];
        k->id[i] = k->t[i]->id;
        k->blocks[i] = k->t[i]->n_blocks;
        k->width *= k->t[i]->n_blocks;
    }
    uint64_t space = s->n_pre * k->width;
    k->dense = (space <= DENSE * (uint64_t)s->n && space < UINT32_MAX) || space <= 4096;
    k->cap = k->dense ? (size_t)space : 2 * (size_t)s->n;
    if (need_rows(P, s->n) || make_room((void **)&P->cnt, &P->cap_cnt, k->cap, 4) ||
        (P->units && make_room((void **)&P->cnt_rows, &P->cap_cnt_rows, k->cap, 4)) ||
        (!k->dense && make_room((void **)&P->keys, &P->cap_keys, k->cap, 8))) return -1;
    memset(P->cnt, 0, 4 * k->cap);
    if (P->units) memset(P->cnt_rows, 0, 4 * k->cap);
    P->visits += s->n;
    if (k->dense) { COUNT(count_dense) } else { COUNT(count_hashed) }
    return 0;
}

static void add_costs(const Problem *P, int segment, const Table *t, uint32_t block, int64_t m, int64_t l, Result *R) {
    const Segment *seg = &P->seg[segment];
    const int64_t *left = t->left + (size_t)block * seg->n_cols;
    for (int i = 0; i < seg->n_cols; i++) {
        R->extra[seg->cols[i]] += m * left[i];
        R->excess[seg->cols[i]] += l * left[i];
    }
}

/* Costs of one block in each of the segments that were left; `key` without its prefix. */
static void add_rest(const Problem *P, const Snap *s, const Keys *k, uint64_t key, int64_t m, int64_t l, Result *R) {
    for (int i = k->n - 1; i >= 0; i--) {
        uint64_t b = k->t[i]->n_blocks, q = key / b;
        add_costs(P, s->depth + i, k->t[i], (uint32_t)(key - q * b), m, l, R);
        key = q;
    }
}

/* Masses are first added per prefix and per combination of the segments that were left: two additions a class.
 * Where there are too many combinations, the costs of a class are added at once. */
static int start_mass(Problem *P, const Snap *s, const Keys *k) {
    size_t n = s->n_pre + (k->width <= WIDTH ? (size_t)k->width : 0), room = P->cap_mass;
    if (make_room((void **)&P->mass, &room, n, 8)) { P->cap_mass = 0; return -1; }
    if (make_room((void **)&P->mass_lost, &P->cap_mass, n, 8)) return -1;
    memset(P->mass, 0, 8 * n);
    if (!P->hereditary) memset(P->mass_lost, 0, 8 * n);
    return 0;
}

static inline void add_mass(
    Problem *P, const Snap *s, const Keys *k, uint32_t pre, uint64_t rest, int64_t amount, int64_t lost, Result *R
) {
    P->mass[pre] += amount;
    if (!P->hereditary) P->mass_lost[pre] += lost;
    if (k->width > WIDTH) { add_rest(P, s, k, rest, amount, lost, R); return; }
    P->mass[s->n_pre + rest] += amount;
    if (!P->hereditary) P->mass_lost[s->n_pre + rest] += lost;
}

/* The small classes, prefix by prefix. */
static void add_small_hashed(Problem *P, const Snap *s, const Keys *k, const int32_t *rows, Result *R) {
    const int32_t *cnt = P->cnt;
    for (uint32_t p = 0; p < s->n_pre; p++) {
        size_t from = k->dense ? p * (size_t)k->width : 2 * (size_t)s->start[p];
        size_t to = k->dense ? from + (size_t)k->width : 2 * (size_t)s->start[p + 1];
        for (size_t h = from; h < to; h++)
            if (cnt[h] && cnt[h] < P->threshold) add_mass(P, s, k, p, k->dense ? h - from : P->keys[h], rows[h], rows[h], R);
    }
}

/* The prefix of a class. */
static uint32_t prefix_at(const Snap *s, const Keys *k, size_t h) {
    if (k->dense) return (uint32_t)(h / (size_t)k->width);
    uint32_t low = 0, high = s->n_pre; /* no prefix is empty */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (2 * (size_t)s->start[middle] <= h) low = middle; else high = middle;
    }
    return low;
}

/* All small classes of a dense table. */
WIDE_VECTORS
static void add_small(Problem *P, const Snap *s, size_t width, int64_t threshold, const int32_t *rows) {
    const int32_t *cnt = P->cnt;
    int32_t t = threshold > INT32_MAX ? INT32_MAX : (int32_t)threshold;
    int64_t *last = P->mass + s->n_pre;
    for (uint32_t pre = 0; pre < s->n_pre; pre++, cnt += width, rows += width) {
        int64_t sum = 0;
        for (size_t j = 0; j < width; j++) {
            int64_t m = cnt[j] < t ? rows[j] : 0;
            last[j] += m;
            sum += m;
        }
        P->mass[pre] += sum;
    }
    if (!P->hereditary) memcpy(P->mass_lost, P->mass, 8 * (s->n_pre + width));
}

/* From masses to costs by column. */
static int finish_mass(Problem *P, const Snap *s, const Keys *k, const int32_t *places, Result *R) {
    const int64_t *mass = P->mass, *lost = P->hereditary ? P->mass : P->mass_lost;
    for (int d = 0; d < s->depth; d++) {
        const Table *t = table_of(P, &P->seg[d], places);
        if (!t) return -1;
        const uint32_t *digits = s->digits + (size_t)d * s->n_pre;
        for (uint32_t pre = 0; pre < s->n_pre; pre++)
            if (mass[pre] || lost[pre]) add_costs(P, d, t, digits[pre], mass[pre], lost[pre], R);
    }
    if (k->width > WIDTH) return 0;
    mass += s->n_pre;
    lost += s->n_pre;
    for (uint64_t j = 0; j < k->width; j++)
        if (mass[j] || lost[j]) add_rest(P, s, k, j, mass[j], lost[j], R);
    return 0;
}

/* Evaluate the classes in `slot` up to `end`, which are those of the tuples `from` up to `to`; fills slot_ok and slot_lost.
 * Stops when *total exceeds the limit. In a node that need not be counted to the end, bounds on refinements are worth
 * their time only where the limit is so near that they can rule all of them out. */
static int evaluate_slots(Problem *P, const Snap *s, uint32_t from, uint32_t to, uint32_t slot, uint32_t end, int64_t *total) {
    int brief = P->most < P->limit;
    for (int a = 0; a < P->n_attrs; a++) {
        uint32_t n_values = P->n_values[a];
        if (P->use_mask[a]) {
            if (end > slot) memset(P->slot_mask + slot, 0, sizeof *P->slot_mask * (size_t)(end - slot));
            for (uint32_t i = from; i < to; i++) {
                int32_t own = P->slot[P->index[i]];
                if (own >= 0) P->slot_mask[own] |= s->mask[a][i];
            }
        } else {
            size_t need = (size_t)(end - slot) * n_values;
            if (make_room((void **)&P->hist, &P->cap_hist, need, 4)) return -1;
            if (need) memset(P->hist, 0, 4 * need);
            const Entries *en = &s->entries[a];
            for (uint32_t i = from; i < to; i++) {
                int32_t own = P->slot[P->index[i]];
                if (own < 0) continue;
                int32_t *h = P->hist + (size_t)((uint32_t)own - slot) * n_values;
                for (uint32_t e = en->start[i]; e < en->start[i + 1]; e++) h[en->value[e]] += en->count[e];
            }
        }
        for (int q = 0; q < P->n_rules; q++) {
            if (P->rules[q].kind == SIZE || P->rules[q].attr != a) continue;
            for (uint32_t j = slot; j < end; j++) {
                int64_t size = P->cnt[P->slot_pos[j]], lost;
                int64_t rows = P->units ? P->cnt_rows[P->slot_pos[j]] : size;
                const int32_t *h = P->use_mask[a] ? NULL : P->hist + (size_t)(j - slot) * n_values;
                int ok = decide(P, q, h, P->use_mask[a] ? P->slot_mask[j] : 0, size, rows, &lost, brief);
                if (ok < 0) return -1;
                if (ok) continue;
                P->slot_ok[j] = 0;
                if (lost <= P->slot_lost[j]) continue;
                *total += lost - P->slot_lost[j];
                P->slot_lost[j] = lost;
                if (*total > P->limit) return 0;
            }
        }
    }
    return 0;
}

/* Does the starred group pass? Its counts are those of the table minus those of the kept classes. */
static int star_passes(Problem *P, const Snap *s, int64_t size, int64_t rows) {
    for (int a = 0; a < P->n_attrs; a++) {
        uint32_t n_values = P->n_values[a];
        int32_t *h = P->star_hist;
        memset(h, 0, 4 * (size_t)n_values);
        const Entries *en = &s->entries[a];
        for (uint32_t i = 0; i < s->n; i++) {
            int32_t slot = P->slot[P->index[i]];
            if (slot >= 0 && (P->by_size || P->slot_ok[slot])) continue;
            for (uint32_t e = en->start[i]; e < en->start[i + 1]; e++) h[en->value[e]] += en->count[e];
        }
        for (int q = 0; q < P->n_rules; q++) {
            if (P->rules[q].kind == SIZE || P->rules[q].attr != a) continue;
            int64_t lost;
            int ok = decide(P, q, h, 0, size, rows, &lost, 1);
            if (ok <= 0) return ok;
        }
    }
    for (int q = 0; q < P->n_rules; q++)
        if (P->rules[q].kind == SIZE && size < P->rules[q].a) return 0;
    return 1;
}

/* How many rows are in classes below the threshold, and how many classes are not. */
WIDE_VECTORS
static void count_small(const Problem *P, const Keys *k, int64_t *small, int64_t *large) {
    const int32_t *cnt = P->cnt, *rows = P->units ? P->cnt_rows : P->cnt;
    int32_t t = P->threshold > INT32_MAX ? INT32_MAX : (int32_t)P->threshold, below = 0, many = 0;
    for (size_t h = 0; h < k->cap; h++) { /* totals stay below 2^31 */
        below += cnt[h] < t ? rows[h] : 0;
        many += cnt[h] >= t;
    }
    *small = below;
    *large = many;
}

static int need_slots(Problem *P, size_t n) {
    size_t a = P->cap_slots, b = a, c = a;
    if (make_room((void **)&P->slot_pos, &a, n, 4) || make_room((void **)&P->slot_mask, &b, n, 8) ||
        make_room((void **)&P->slot_ok, &c, n, 1) || make_room((void **)&P->slot_lost, &P->cap_slots, n, 8)) {
        P->cap_slots = 0;
        return -1;
    }
    return 0;
}

/* Where the classes of a prefix begin. */
static size_t place_of(const Snap *s, const Keys *k, uint32_t prefix) {
    return k->dense ? prefix * (size_t)k->width : 2 * (size_t)s->start[prefix];
}

/* Slots for the large classes between two places, after those there are: how many there are then. */
static uint32_t fill_slots(Problem *P, size_t from, size_t to, uint32_t n_slots) {
    const int32_t *cnt = P->cnt, t = P->threshold > INT32_MAX ? INT32_MAX : (int32_t)P->threshold;
    int32_t *slot = P->slot, next = (int32_t)n_slots;
    uint32_t *pos = P->slot_pos;
    for (size_t h = from; h < to; h++) { /* without branches: whether a class is large is a coin toss */
        int big = cnt[h] >= t;
        slot[h] = big ? next : -1;
        pos[next] = (uint32_t)h;
        next += big;
    }
    memset(P->slot_ok + n_slots, 1, (size_t)next - n_slots);
    memset(P->slot_lost + n_slots, 0, 8 * ((size_t)next - n_slots));
    return (uint32_t)next;
}

/* Decide the classes that are large enough, part by part: more rows suppressed than `most` are not counted to the end.
 * Returns how many fail, or -1. */
static int64_t check_values(Problem *P, const Snap *s, const Keys *k, int64_t large, Result *R) {
    const int32_t *rows = P->units ? P->cnt_rows : P->cnt;
    if (need_slots(P, (size_t)large + 1) || make_room((void **)&P->slot, &P->cap_slot, k->cap, 4)) return -1;
    uint32_t part = P->most < INT64_MAX ? s->n / PARTS + 1 : s->n;
    int64_t failing = 0;
    for (uint32_t p = 0, slot = 0; p < s->n_pre && R->suppressed <= P->most;) {
        uint32_t from = s->start[p], begin = slot;
        size_t place = place_of(s, k, p);
        while (p < s->n_pre && s->start[p] - from < part) p++;
        slot = fill_slots(P, place, place_of(s, k, p), slot);
        if (evaluate_slots(P, s, from, s->start[p], begin, slot, &R->lost)) return -1;
        if (R->lost > P->limit) return 0;
        for (uint32_t j = begin; j < slot; j++) {
            if (P->slot_ok[j]) continue;
            if (!P->by_size) R->suppressed += rows[P->slot_pos[j]];
            failing++;
        }
    }
    return failing;
}

static int check_star(Problem *P, const Snap *s, const Keys *k, Result *R) {
    const int32_t *cnt = P->cnt, *rows = P->units ? P->cnt_rows : P->cnt;
    int64_t size = P->n_people, n_rows = P->n_rows;
    for (size_t h = 0; h < k->cap; h++) {
        if (cnt[h] < P->threshold) continue;
        if (P->n_attrs && !P->by_size && !P->slot_ok[P->slot[h]]) continue;
        size -= cnt[h];
        n_rows -= rows[h];
    }
    int ok = star_passes(P, s, size, n_rows);
    R->feasible = ok > 0;
    return ok < 0 ? -1 : 0;
}

WIDE_VECTORS
static int64_t squares_of_large(const int32_t *cnt, const int32_t *rows, size_t n, int32_t threshold) {
    int64_t sum = 0;
    for (size_t h = 0; h < n; h++) {
        int32_t kept = cnt[h] >= threshold ? rows[h] : 0;
        sum += (int64_t)kept * kept;
    }
    return sum;
}

static void sum_squares(const Problem *P, const Keys *k, Result *R) {
    const int32_t *rows = P->units ? P->cnt_rows : P->cnt;
    R->squares = squares_of_large(P->cnt, rows, k->cap, P->threshold > INT32_MAX ? INT32_MAX : (int32_t)P->threshold);
    if (!P->n_attrs || P->by_size) return;
    for (int64_t j = 0; j < R->large; j++) {
        int64_t gone = P->slot_ok[j] ? 0 : rows[P->slot_pos[j]];
        R->squares -= gone * gone;
    }
}

static int check_from(Problem *P, const Snap *s, const int32_t *places, Result *R) {
    Keys k;
    if (count_classes(P, s, places, &k, P->n_attrs > 0)) return -1;
    int64_t small, large, failing = 0;
    count_small(P, &k, &small, &large);
    R->suppressed = R->lost = small;
    R->large = large;
    if (small > P->limit) { P->small_failures++; return 0; }
    if (P->n_attrs && small <= P->most && (failing = check_values(P, s, &k, large, R)) < 0) return -1;
    if (R->lost > P->limit || R->suppressed > P->most) return 0;
    R->classes = P->by_size ? large : large - failing;
    R->feasible = R->suppressed <= P->most && R->suppressed <= P->limit && R->classes > 0 && !(P->by_size && failing);
    if (P->star && R->feasible && R->suppressed && check_star(P, s, &k, R)) return -1;
    if (!P->costs) { sum_squares(P, &k, R); return 0; }
    if (!small && !failing) return 0;
    const int32_t *rows = P->units ? P->cnt_rows : P->cnt;
    if (start_mass(P, s, &k)) return -1;
    if (small && k.dense && k.width <= WIDTH) add_small(P, s, (size_t)k.width, P->threshold, rows);
    else if (small) add_small_hashed(P, s, &k, rows, R);
    for (int64_t j = 0; failing && j < large; j++) {
        if (P->slot_ok[j]) continue;
        size_t h = P->slot_pos[j];
        uint32_t pre = prefix_at(s, &k, h);
        add_mass(P, s, &k, pre, k.dense ? h - pre * (size_t)k.width : P->keys[h], P->by_size ? 0 : rows[h], P->slot_lost[j], R);
    }
    return finish_mass(P, s, &k, places, R);
}

static int check_node(Problem *P, const int32_t *places, Result *R) {
    memset(R, 0, sizeof *R);
    int own;
    Snap *s = snapshot(P, places, &own);
    if (!s) return -1;
    int status = check_from(P, s, places, R);
    if (own) free_snap(P, s);
    return status;
}
