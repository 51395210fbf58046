/* Snapshots: the tuples of a problem merged at the levels of its first segments. */

static int64_t combo_of(const Segment *seg, const int32_t *places) {
    int64_t combo = 0;
    for (int i = 0; i < seg->n_cols; i++) combo += places[seg->cols[i]] * seg->stride[i];
    return combo;
}

/* The codes of a column, by tuple. */
static void column_codes(const Problem *P, int column, uint32_t *out) {
    const Segment *seg = &P->seg[P->col_seg[column]];
    const uint32_t *fused = P->root->codes[P->col_seg[column]], *raw = seg->raw;
    for (int i = 0; seg->cols[i] != column; i++) raw += seg->n_codes;
    for (uint32_t i = 0; i < P->root->n; i++) out[i] = raw[fused[i]];
}

static Table *table_of(Problem *P, Segment *seg, const int32_t *places) {
    int64_t combo = combo_of(seg, places);
    Table *t = seg->tables[combo];
    if (t) return t;
    t = take_zero(sizeof *t);
    if (!t) return NULL;
    t->id = take(sizeof(uint32_t) * (seg->n_codes + 1));
    uint64_t *key = take(sizeof(uint64_t) * (seg->n_codes + 1));
    uint32_t *first = take(sizeof(uint32_t) * (seg->n_codes + 1));
    size_t cap = 16;
    while (cap < 2 * (size_t)seg->n_codes) cap *= 2;
    uint32_t *slots = take(sizeof(uint32_t) * cap);
    if (!t->id || !key || !first || !slots) { give(t->id); give(t); give(key); give(first); give(slots); return NULL; }
    memset(slots, 0xff, sizeof(uint32_t) * cap);
    memset(key, 0, sizeof(uint64_t) * seg->n_codes);
    for (int i = 0; i < seg->n_cols; i++) {
        int c = seg->cols[i];
        const int32_t *blocks = P->blocks[c] + (size_t)places[c] * P->n_codes[c];
        const uint32_t *raw = seg->raw + (size_t)i * seg->n_codes;
        uint64_t radix = (uint64_t)P->n_codes[c]; /* blocks never outnumber codes */
        for (uint32_t f = 0; f < seg->n_codes; f++) key[f] = key[f] * radix + (uint64_t)blocks[raw[f]];
    }
    uint32_t n = 0;
    for (uint32_t f = 0; f < seg->n_codes; f++) {
        size_t h = (size_t)((key[f] * 0x9E3779B97F4A7C15ull) >> 20) & (cap - 1);
        while (slots[h] != UINT32_MAX && key[first[slots[h]]] != key[f]) h = (h + 1) & (cap - 1);
        if (slots[h] == UINT32_MAX) { slots[h] = n; first[n++] = f; }
        t->id[f] = slots[h];
    }
    t->n_blocks = n;
    if (P->costs) {
        t->left = take(sizeof(int64_t) * ((size_t)n * seg->n_cols + 1));
        if (!t->left) { give(t->id); give(t); give(key); give(first); give(slots); return NULL; }
        for (int i = 0; i < seg->n_cols; i++) {
            int c = seg->cols[i];
            const int64_t *cost = P->cost[c] + (size_t)places[c] * P->n_codes[c];
            for (uint32_t b = 0; b < n; b++)
                t->left[(size_t)b * seg->n_cols + i] = P->cap[c] - cost[seg->raw[(size_t)i * seg->n_codes + first[b]]];
        }
    }
    give(key); give(first); give(slots);
    seg->tables[combo] = t;
    return t;
}

static void free_snap(Problem *P, Snap *s) {
    if (!s) return;
    if (s->child) for (int64_t i = 0; i < s->n_child; i++) free_snap(P, s->child[i]);
    give(s->child); give(s->asked); give(s->pre); give(s->start); give(s->digits); give(s->suffix);
    for (int i = 0; i < P->n_segs; i++) give(s->codes[i]);
    if (s->rows != s->size) give(s->rows);
    give(s->size);
    for (int a = 0; a < P->n_attrs; a++) {
        give(s->mask[a]); give(s->entries[a].start); give(s->entries[a].value); give(s->entries[a].count);
    }
    give(s);
}

static int need_rows(Problem *P, size_t n) {
    uint32_t **arrays[] = {&P->index, &P->order, &P->number, &P->first, &P->old, &P->block};
    for (int i = 0; i < 6; i++) {
        size_t room = P->cap_rows;
        if (make_room((void **)arrays[i], &room, n + 1, 4)) { P->cap_rows = 0; return -1; }
    }
    if (P->cap_rows < n + 1) P->cap_rows = n + 1;
    return 0;
}

/* Marks for numbers below `n`, and stamps for `runs` runs that have not been used. */
static int need_marks(Problem *P, size_t n, uint32_t runs) {
    int fresh = P->cap_marks < n || !P->marks;
    if (make_room((void **)&P->marks, &P->cap_marks, n, sizeof(Mark))) return -1;
    if (fresh || P->clock > UINT32_MAX - runs - 1) {
        memset(P->marks, 0, P->cap_marks * sizeof(Mark));
        P->clock = 0;
    }
    return 0;
}

/* The number of `value` in the run that `clock` stands for; first[*n] = i where it is new. Without branches:
 * whether a value is new is a coin toss. */
static inline uint32_t number_of(Mark *marks, uint32_t value, uint32_t clock, uint32_t i, uint32_t *n, uint32_t *first) {
    Mark *mark = &marks[value];
    uint32_t fresh = mark->stamp != clock, number = fresh ? *n : mark->number;
    mark->stamp = clock;
    mark->number = number;
    first[*n] = i;
    *n += fresh;
    return number;
}

/* Number the values that occur: out[i] in order of first occurrence, P->first[number] an index. Returns how many. */
static int64_t number_values(Problem *P, const uint32_t *value, uint32_t n, size_t space, uint32_t *out) {
    uint32_t used = 0;
    if (need_marks(P, space, 1)) return -1;
    P->clock++;
    for (uint32_t i = 0; i < n; i++) out[i] = number_of(P->marks, value[i], P->clock, i, &used, P->first);
    return used;
}

/* Number the pairs (a, b) that occur, in order of a: out[i], P->first[number] an index, start[a] the first number of
 * each a and, after the last, how many there are. A counting sort by a, then a run per a: no hashing. */
static int64_t number_pairs(
    Problem *P, uint32_t n, const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b, uint32_t *out, uint32_t *start
) {
    if (need_marks(P, n_b, n_a)) return -1;
    memset(start, 0, 4 * ((size_t)n_a + 1));
    for (uint32_t i = 0; i < n; i++) start[a[i]]++;
    uint32_t sum = 0, used = 0, from = 0;
    for (uint32_t x = 0; x < n_a; x++) { uint32_t c = start[x]; start[x] = sum; sum += c; }
    for (uint32_t i = 0; i < n; i++) P->order[start[a[i]]++] = i;
    for (uint32_t x = 0; x < n_a; x++) {
        uint32_t to = start[x], clock = ++P->clock;
        start[x] = used;
        for (; from < to; from++) {
            uint32_t i = P->order[from];
            out[i] = number_of(P->marks, b[i], clock, i, &used, P->first);
        }
    }
    start[n_a] = used;
    return used;
}

/* Sensitive values of the tuples of `from`, added up by P->index. */
static int merge_entries(Problem *P, const Snap *from, Snap *to, int a) {
    const Entries *in = &from->entries[a];
    Entries *out = &to->entries[a];
    uint32_t total = in->start[from->n], *members = P->order, *at = P->number; /* both have served */
    size_t room = P->cap_entries;
    if (make_room((void **)&P->entry_value, &room, (size_t)total + 1, 4) ||
        make_room((void **)&P->entry_count, &P->cap_entries, (size_t)total + 1, 4)) {
        P->cap_entries = 0;
        return -1;
    }
    if (need_marks(P, P->n_values[a], to->n) || !(out->start = take(4 * ((size_t)to->n + 1)))) return -1;
    uint32_t *value = P->entry_value, sum = 0, used = 0, next = 0;
    int32_t *count = P->entry_count;
    Mark *marks = P->marks;
    memset(at, 0, 4 * (size_t)to->n);
    for (uint32_t i = 0; i < from->n; i++) at[P->index[i]]++;
    for (uint32_t j = 0; j < to->n; j++) { uint32_t c = at[j]; at[j] = sum; sum += c; }
    for (uint32_t i = 0; i < from->n; i++) members[at[P->index[i]]++] = i;
    for (uint32_t j = 0; j < to->n; j++) {
        uint32_t clock = ++P->clock, alone = at[j] - next == 1;
        out->start[j] = used;
        for (; next < at[j]; next++) {
            uint32_t i = members[next], end = in->start[i + 1];
            if (alone) for (uint32_t e = in->start[i]; e < end; e++, used++) {
                value[used] = in->value[e];
                count[used] = in->count[e];
            } else for (uint32_t e = in->start[i]; e < end; e++) { /* without branches, as in number_of */
                uint32_t v = in->value[e], fresh = marks[v].stamp != clock, number = fresh ? used : marks[v].number;
                marks[v].stamp = clock;
                marks[v].number = number;
                value[number] = v;
                count[number] = (fresh ? 0 : count[number]) + in->count[e];
                used += fresh;
            }
        }
    }
    out->start[to->n] = used;
    out->value = take(4 * (size_t)used);
    out->count = take(4 * (size_t)used);
    if (!out->value || !out->count) return -1;
    memcpy(out->value, value, 4 * (size_t)used);
    memcpy(out->count, count, 4 * (size_t)used);
    return 0;
}

/* Split the prefixes of `from` by the blocks of its next segment. P->number[i]: the prefix of each tuple, in the order
 * of the old ones; P->old and P->block: what each is made of. Returns how many, or -1. */
static int64_t split_prefixes(Problem *P, const Snap *from, const Table *t) {
    if (need_marks(P, t->n_blocks, from->n_pre)) return -1;
    const uint32_t *code = from->codes[from->depth];
    uint32_t m = 0;
    for (uint32_t p = 0; p < from->n_pre; p++) {
        uint32_t clock = ++P->clock;
        for (uint32_t i = from->start[p]; i < from->start[p + 1]; i++) {
            uint32_t block = t->id[code[i]];
            P->block[m] = block;
            P->number[i] = number_of(P->marks, block, clock, p, &m, P->old);
        }
    }
    return m;
}

/* Sums and sensitive values of the tuples of `from`, by P->index. */
static int merge_counts(Problem *P, const Snap *from, Snap *to) {
    size_t n = to->n;
    to->size = take_zero(4 * n);
    to->rows = P->units ? take_zero(4 * n) : to->size;
    if (!to->size || !to->rows) return -1;
    for (uint32_t i = 0; i < from->n; i++) to->size[P->index[i]] += from->size[i];
    if (P->units) for (uint32_t i = 0; i < from->n; i++) to->rows[P->index[i]] += from->rows[i];
    to->bytes = (int64_t)n * 4 * (3 + P->units + P->n_segs - to->depth);
    for (int a = 0; a < P->n_attrs; a++) {
        if (!P->use_mask[a]) {
            if (merge_entries(P, from, to, a)) return -1;
            to->bytes += 8 * (int64_t)to->entries[a].start[n] + 4 * (int64_t)n;
            continue;
        }
        if (!(to->mask[a] = take_zero(8 * n))) return -1;
        for (uint32_t i = 0; i < from->n; i++) to->mask[a][P->index[i]] |= from->mask[a][i];
        to->bytes += 8 * (int64_t)n;
    }
    return 0;
}

/* What the tuples of `to` have in common with the first of those that were merged. */
static int copy_codes(Problem *P, const Snap *from, Snap *to) {
    int d = from->depth, S = P->n_segs;
    uint32_t n = to->n, m = to->n_pre;
    const uint32_t *first = P->first;
    to->pre = take(4 * (size_t)n);
    to->digits = take(4 * (size_t)m * (d + 1));
    to->suffix = d + 2 < S ? take(4 * (size_t)n) : NULL;
    if (!to->pre || !to->digits || (d + 2 < S && !to->suffix)) return -1;
    for (int s = d + 1; s < S; s++) {
        uint32_t *codes = to->codes[s] = take(4 * (size_t)n);
        if (!codes) return -1;
        for (uint32_t j = 0; j < n; j++) codes[j] = from->codes[s][first[j]];
    }
    if (to->suffix) for (uint32_t j = 0; j < n; j++) to->suffix[j] = P->seg[d + 1].to_next[from->suffix[first[j]]];
    for (uint32_t p = 0; p < m; p++) {
        for (uint32_t j = to->start[p]; j < to->start[p + 1]; j++) to->pre[j] = p;
        for (int s = 0; s < d; s++) to->digits[(size_t)s * m + p] = from->digits[(size_t)s * from->n_pre + P->old[p]];
        to->digits[(size_t)d * m + p] = P->block[p];
    }
    if (d + 1 == S - 1) return 0;
    to->n_child = P->seg[d + 1].n_combos;
    to->child = take_zero((size_t)to->n_child * sizeof *to->child);
    to->asked = take_zero((size_t)to->n_child);
    return to->child && to->asked ? 0 : -1;
}

/* The tuples of `from` merged at the levels of its next segment. Returns NULL on lack of memory. */
static Snap *merge(Problem *P, const Snap *from, const int32_t *places) {
    const Segment *rest = &P->seg[from->depth + 1];
    const Table *t = table_of(P, &P->seg[from->depth], places);
    if (!t || need_rows(P, from->n)) return NULL;
    P->merges++;
    P->visits += from->n;
    P->merge_visits += from->n;
    int64_t m = split_prefixes(P, from, t), n = -1;
    Snap *to = m < 0 ? NULL : take_zero(sizeof *to);
    if (!to) return NULL;
    to->depth = from->depth + 1;
    to->n_pre = (uint32_t)m;
    to->start = take(4 * ((size_t)m + 1));
    if (to->start) n = number_pairs(P, from->n, P->number, to->n_pre, from->suffix, rest->n_suffix, P->index, to->start);
    to->n = n < 0 ? 0 : (uint32_t)n;
    if (n < 0 || copy_codes(P, from, to) || merge_counts(P, from, to)) { free_snap(P, to); return NULL; }
    return to;
}

/* Do prefixes and all segments that are left fit into one key? */
static int fits_key(const Problem *P, const Snap *s) {
    double space = s->n_pre;
    for (int d = s->depth; d < P->n_segs; d++) space *= P->seg[d].n_codes;
    return space < 4e18;
}

/* The tuples merged at the levels of the first segments, as many as have been asked for repeatedly: a snapshot is
 * made when it was asked for more than PATIENCE times. Beyond the memory cap it is not stored: then *own says that the caller must free it. */
static Snap *snapshot(Problem *P, const int32_t *places, int *own) {
    Snap *s = P->root;
    *own = 0;
    while (s->depth < P->n_segs - 1) {
        int64_t combo = combo_of(&P->seg[s->depth], places);
        Snap *next = *own ? NULL : s->child[combo];
        if (!next) {
            if ((*own || s->asked[combo]++ < PATIENCE) && fits_key(P, s)) return s;
            next = merge(P, s, places);
            if (*own) free_snap(P, s);
            if (!next) return NULL;
            if (!*own && P->memory + next->bytes <= P->memory_cap) {
                P->memory += next->bytes;
                s->child[combo] = next;
            } else *own = 1;
        }
        s = next;
    }
    return s;
}
