/* Checking and searching the nodes of a generalisation lattice. The numpy twin is kernels/lattice.py with
 * methods/sweep.py; read those first. What is different here, and why it is fast:
 *
 * - Columns are fused into a few segments. A table per segment and choice of levels maps a fused code to the
 *   number of its block, so that the class of a tuple costs one gather per segment.
 * - Snapshots: the tuples merged at the levels of the first segments are kept, so that a check starts from the
 *   few thousand tuples that are left rather than from all of them.
 * - Classes are counted in a dense table where the keys are few, in a hash table otherwise.
 * - Costs of suppressed classes are added per block of a segment first, and multiplied once.
 *
 * Decisions are exact: integers of 128 bits, and a call back to Python where logarithms come too near. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_COLUMNS 64
#define MAX_RULES 32
#define MAX_ATTRS 16
#define NEAR 1e-11
#define PATIENCE 1 /* a snapshot is made when it was asked for more often than this */
#define WIDTH (1 << 14)

typedef __int128 wide;

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE_VECTORS __attribute__((target_clones("avx2", "default"))) /* chosen when the program runs */
#else
#define WIDE_VECTORS
#endif

typedef struct { uint32_t *id, n_blocks; int64_t *left; } Table; /* left[block * n_cols + col] = cap - cost */

typedef struct {
    int n_cols, cols[MAX_COLUMNS];
    int64_t n_combos, stride[MAX_COLUMNS];
    uint32_t n_codes, *raw; /* raw[col * n_codes + fused] */
    Table **tables;
    uint32_t n_suffix, *to_next; /* combinations of this and all later segments; the combination without this one */
} Segment;

typedef struct { uint32_t *start, *value; int32_t *count; } Entries;

typedef struct Snap {
    uint32_t n, n_pre;
    int depth;
    uint32_t *pre;             /* per tuple: number of its prefix */
    uint32_t *digits;          /* digits[s * n_pre + prefix] = block in segment s */
    uint32_t *codes[MAX_COLUMNS]; /* fused codes of the segments that are not merged yet */
    uint32_t *suffix;          /* per tuple: number of its codes in all segments after the next */
    int32_t *size, *rows;
    uint64_t *mask[MAX_ATTRS];
    Entries entries[MAX_ATTRS];
    struct Snap **child;       /* by choice of levels of segment `depth` */
    uint8_t *asked;            /* how often each child was asked for before it was made */
    int64_t n_child, bytes;
} Snap;

enum { SIZE, DISTINCT, SHARE, ENTROPY, RECURSIVE, CLOSENESS };

typedef struct {
    int kind, attr, first, small;
    int64_t a, b, l;           /* numerators and denominators, see the constructors in kernels/compiled.py */
    int64_t total, whole;
    double x, y;
    int n_sets;
    uint32_t *set_start, *set_item;
    int64_t *weight, *reference;
    double *share;             /* of singletons with equal weights: the reference by code, else NULL */
} Rule;

typedef struct {
    int n_cols, n_segs, n_attrs, n_rules, units, by_size, star, costs, hereditary;
    int32_t shape[MAX_COLUMNS];
    int32_t *blocks[MAX_COLUMNS]; /* blocks[c][place * n_codes + code] */
    int64_t *cost[MAX_COLUMNS], cap[MAX_COLUMNS];
    int32_t n_codes[MAX_COLUMNS];
    int col_seg[MAX_COLUMNS];
    Segment seg[MAX_COLUMNS];
    uint32_t n_values[MAX_ATTRS];
    int use_mask[MAX_ATTRS];
    Rule rules[MAX_RULES];
    int64_t threshold, least, limit, n_rows, n_people, memory, memory_cap;
    Snap *root;
    PyObject *decide;          /* decide(rule, counts) -> bool, for logarithms too near to call */
    /* scratch */
    size_t cap_rows, cap_table, cap_hist, cap_slots, cap_mass;
    uint32_t *index;
    int32_t *cnt, *cnt_rows;
    uint64_t *keys;
    int32_t *hist;
    int32_t *slot;
    uint32_t *slot_pos;
    uint64_t *slot_mask;
    uint8_t *slot_ok;
    int64_t *slot_lost, *mass, *mass_lost;
    double *xlogx;
    uint32_t n_xlogx;
    int64_t *sums;
    int32_t *star_hist;
    uint32_t *seen, *where;
    int64_t visits, merges, merge_visits;
} Problem;

typedef struct {
    int feasible;
    int64_t suppressed, lost, classes, squares, extra[MAX_COLUMNS], excess[MAX_COLUMNS];
} Result;

static void *grow(void *p, size_t need, size_t item) {
    void *q = realloc(p, need * item + 64);
    if (!q) free(p);
    return q;
}

/* ---------------------------------------------------------------- tables and snapshots */

static int64_t combo_of(const Segment *seg, const int32_t *places) {
    int64_t combo = 0;
    for (int i = 0; i < seg->n_cols; i++) combo += places[seg->cols[i]] * seg->stride[i];
    return combo;
}

static Table *table_of(Problem *P, Segment *seg, const int32_t *places) {
    int64_t combo = combo_of(seg, places);
    Table *t = seg->tables[combo];
    if (t) return t;
    t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->id = malloc(sizeof(uint32_t) * (seg->n_codes + 1));
    uint64_t *key = malloc(sizeof(uint64_t) * (seg->n_codes + 1));
    uint32_t *first = malloc(sizeof(uint32_t) * (seg->n_codes + 1));
    size_t cap = 16;
    while (cap < 2 * (size_t)seg->n_codes) cap *= 2;
    uint32_t *slots = malloc(sizeof(uint32_t) * cap);
    if (!t->id || !key || !first || !slots) { free(t->id); free(t); free(key); free(first); free(slots); return NULL; }
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
        t->left = malloc(sizeof(int64_t) * ((size_t)n * seg->n_cols + 1));
        if (!t->left) { free(t->id); free(t); free(key); free(first); free(slots); return NULL; }
        for (int i = 0; i < seg->n_cols; i++) {
            int c = seg->cols[i];
            const int64_t *cost = P->cost[c] + (size_t)places[c] * P->n_codes[c];
            for (uint32_t b = 0; b < n; b++)
                t->left[(size_t)b * seg->n_cols + i] = P->cap[c] - cost[seg->raw[(size_t)i * seg->n_codes + first[b]]];
        }
    }
    free(key); free(first); free(slots);
    seg->tables[combo] = t;
    return t;
}

static void free_snap(Problem *P, Snap *s) {
    if (!s) return;
    if (s->child) for (int64_t i = 0; i < s->n_child; i++) free_snap(P, s->child[i]);
    free(s->child); free(s->asked); free(s->pre); free(s->digits); free(s->suffix);
    for (int i = 0; i < MAX_COLUMNS; i++) free(s->codes[i]);
    if (s->rows != s->size) free(s->rows);
    free(s->size);
    for (int a = 0; a < MAX_ATTRS; a++) {
        free(s->mask[a]); free(s->entries[a].start); free(s->entries[a].value); free(s->entries[a].count);
    }
    free(s);
}

static int need_rows(Problem *P, size_t n) {
    if (P->cap_rows >= n) return 0;
    P->index = grow(P->index, n, sizeof(uint32_t));
    P->cap_rows = n;
    return P->index ? 0 : -1;
}

static int need_table(Problem *P, size_t n) {
    if (P->cap_table < n) {
        free(P->cnt); free(P->cnt_rows); free(P->keys); free(P->slot);
        P->cnt = malloc(n * 4 + 64); P->keys = malloc(n * 8 + 64); P->slot = malloc(n * 4 + 64);
        P->cnt_rows = P->units ? malloc(n * 4 + 64) : NULL;
        P->cap_table = n;
        if (!P->cnt || !P->keys || !P->slot || (P->units && !P->cnt_rows)) { P->cap_table = 0; return -1; }
    }
    memset(P->cnt, 0, n * 4);
    if (P->units) memset(P->cnt_rows, 0, n * 4);
    return 0;
}

static int merge_entries(Problem *P, const Snap *from, Snap *to, int a) {
    const Entries *in = &from->entries[a];
    Entries *out = &to->entries[a];
    uint32_t total = in->start[from->n];
    uint32_t *fill = calloc((size_t)to->n + 2, 4);
    out->value = malloc(4 * (size_t)total + 4);
    out->count = malloc(4 * (size_t)total + 4);
    out->start = malloc(4 * ((size_t)to->n + 1));
    if (!fill || !out->value || !out->count || !out->start) { free(fill); return -1; }
    for (uint32_t i = 0; i < from->n; i++) fill[P->index[i] + 1] += in->start[i + 1] - in->start[i];
    for (uint32_t j = 0; j < to->n; j++) fill[j + 1] += fill[j];
    memcpy(out->start, fill, 4 * ((size_t)to->n + 1));
    for (uint32_t i = 0; i < from->n; i++) {
        uint32_t at = fill[P->index[i]];
        for (uint32_t e = in->start[i]; e < in->start[i + 1]; e++, at++) {
            out->value[at] = in->value[e];
            out->count[at] = in->count[e];
        }
        fill[P->index[i]] = at;
    }
    memset(P->seen, 0, 4 * ((size_t)P->n_values[a] + 1));
    uint32_t used = 0, begin = 0;
    for (uint32_t j = 0; j < to->n; j++) {
        uint32_t end = out->start[j + 1], from_here = used;
        for (uint32_t e = begin; e < end; e++) {
            uint32_t v = out->value[e];
            if (P->seen[v] == j + 1) { out->count[P->where[v]] += out->count[e]; continue; }
            P->seen[v] = j + 1;
            P->where[v] = used;
            out->value[used] = v;
            out->count[used++] = out->count[e];
        }
        begin = end;
        out->start[j] = from_here;
    }
    out->start[to->n] = used;
    free(fill);
    return 0;
}

/* Number equal keys alike: out[i] in order of first occurrence, first[number] an index. Returns how many. */
static int64_t number_keys(Problem *P, const uint64_t *key, uint32_t n, uint64_t space, uint32_t *out, uint32_t *first) {
    int dense = space <= 8 * (uint64_t)n || space <= 4096, bits = 6;
    while (!dense && ((size_t)1 << bits) < 2 * (size_t)n) bits++;
    size_t cap = dense ? (size_t)space : (size_t)1 << bits;
    if (need_table(P, cap)) return -1;
    uint32_t used = 0;
    if (dense) for (uint32_t i = 0; i < n; i++) {
        int32_t *c = &P->cnt[key[i]];
        if (!*c) { first[used] = i; *c = (int32_t)++used; }
        out[i] = (uint32_t)*c - 1;
    } else for (uint32_t i = 0; i < n; i++) {
        size_t h = (size_t)((key[i] * 0x9E3779B97F4A7C15ull) >> (64 - bits));
        while (P->cnt[h] && P->keys[h] != key[i]) h = (h + 1) & (cap - 1);
        if (!P->cnt[h]) { P->keys[h] = key[i]; first[used] = i; P->cnt[h] = (int32_t)++used; }
        out[i] = (uint32_t)P->cnt[h] - 1;
    }
    return used;
}

/* The tuples of `from` merged at the levels of its next segment. Returns NULL on lack of memory. */
static Snap *merge(Problem *P, const Snap *from, const int32_t *places) {
    int d = from->depth, S = P->n_segs;
    Segment *seg = &P->seg[d], *rest = &P->seg[d + 1];
    Table *t = table_of(P, seg, places);
    if (!t || need_rows(P, from->n)) return NULL;
    Snap *to = calloc(1, sizeof *to);
    uint64_t *key = malloc(8 * (size_t)from->n + 8);
    uint32_t *first = malloc(4 * (size_t)from->n + 4), *first_pre = malloc(4 * (size_t)from->n + 4);
    int bad = !to || !key || !first || !first_pre;
    int64_t n = 0, m = 0;
    P->merges++;
    P->merge_visits += from->n;
    if (!bad) {
        P->visits += from->n;
        uint64_t width = rest->n_suffix, blocks = t->n_blocks;
        for (uint32_t i = 0; i < from->n; i++)
            key[i] = ((uint64_t)from->pre[i] * blocks + t->id[from->codes[d][i]]) * width + from->suffix[i];
        n = number_keys(P, key, from->n, (uint64_t)from->n_pre * blocks * width, P->index, first);
        bad = n < 0;
    }
    if (!bad) {
        to->n = (uint32_t)n;
        to->depth = d + 1;
        to->size = calloc((size_t)n + 1, 4);
        to->rows = P->units ? calloc((size_t)n + 1, 4) : to->size;
        to->pre = malloc(4 * (size_t)n + 4);
        to->suffix = d + 2 < S ? malloc(4 * (size_t)n + 4) : NULL;
        bad = !to->size || !to->rows || !to->pre || (d + 2 < S && !to->suffix);
    }
    for (int s = d + 1; s < S && !bad; s++) {
        to->codes[s] = malloc(4 * (size_t)n + 4);
        bad = !to->codes[s];
        if (!bad) for (int64_t j = 0; j < n; j++) to->codes[s][j] = from->codes[s][first[j]];
    }
    if (!bad && to->suffix) for (int64_t j = 0; j < n; j++) to->suffix[j] = rest->to_next[from->suffix[first[j]]];
    if (!bad) for (uint32_t i = 0; i < from->n; i++) to->size[P->index[i]] += from->size[i];
    if (!bad && P->units) for (uint32_t i = 0; i < from->n; i++) to->rows[P->index[i]] += from->rows[i];
    for (int a = 0; a < P->n_attrs && !bad; a++) {
        if (P->use_mask[a]) {
            to->mask[a] = calloc((size_t)n + 1, 8);
            bad = !to->mask[a];
            if (!bad) for (uint32_t i = 0; i < from->n; i++) to->mask[a][P->index[i]] |= from->mask[a][i];
        } else bad = merge_entries(P, from, to, a) != 0;
    }
    if (!bad) { /* number the prefixes that occur, densely */
        for (int64_t j = 0; j < n; j++) {
            uint32_t i = first[j];
            key[j] = (uint64_t)from->pre[i] * t->n_blocks + t->id[from->codes[d][i]];
        }
        m = number_keys(P, key, to->n, (uint64_t)from->n_pre * t->n_blocks, to->pre, first_pre);
        to->n_pre = (uint32_t)m;
        to->digits = m < 0 ? NULL : malloc(4 * (size_t)m * (d + 1) + 4);
        bad = !to->digits;
    }
    if (!bad) for (int64_t p = 0; p < m; p++) {
        uint64_t raw_key = key[first_pre[p]], old = raw_key / t->n_blocks;
        for (int s = 0; s < d; s++) to->digits[(size_t)s * m + p] = from->digits[(size_t)s * from->n_pre + old];
        to->digits[(size_t)d * m + p] = (uint32_t)(raw_key % t->n_blocks);
    }
    if (!bad && d + 1 < S - 1) {
        to->n_child = rest->n_combos;
        to->child = calloc((size_t)to->n_child + 1, sizeof *to->child);
        to->asked = calloc((size_t)to->n_child + 1, 1);
        bad = !to->child || !to->asked;
    }
    free(key); free(first); free(first_pre);
    if (bad) { free_snap(P, to); return NULL; }
    to->bytes = (int64_t)n * 4 * (4 + S - d);
    for (int a = 0; a < P->n_attrs; a++) to->bytes += P->use_mask[a] ? 8 * n : 8 * (int64_t)to->entries[a].start[n] + 4 * n;
    return to;
}

/* Do prefixes and all segments that are left fit into one key? */
static int fits_key(const Problem *P, const Snap *s) {
    double space = s->n_pre;
    for (int d = s->depth; d < P->n_segs; d++) space *= P->seg[d].n_codes;
    return space < 4e18;
}

/* The tuples merged at the levels of the first segments, as many as have been asked for repeatedly: a snapshot is
 * made at the second request. Beyond the memory cap it is not stored: then *own says that the caller must free it. */
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

/* ---------------------------------------------------------------- rules */

static int64_t at_least_one(double bound) {
    double b = ceil(bound * (1 - 1e-9) - 1e-9);
    return b < 1 ? 1 : (int64_t)b;
}

static double x_log_x(const Problem *P, int32_t c) {
    return (uint32_t)c < P->n_xlogx ? P->xlogx[c] : (double)c * log((double)c);
}

static int ask_python(Problem *P, int rule, const int32_t *hist, uint32_t n_values, uint32_t first) {
    PyObject *counts = PyList_New(0);
    if (!counts) return -1;
    for (uint32_t v = first; v < n_values; v++) {
        if (!hist[v]) continue;
        PyObject *c = PyLong_FromLong(hist[v]);
        if (!c || PyList_Append(counts, c)) { Py_XDECREF(c); Py_DECREF(counts); return -1; }
        Py_DECREF(c);
    }
    PyObject *answer = PyObject_CallFunction(P->decide, "iO", rule, counts);
    Py_DECREF(counts);
    if (!answer) return -1;
    int truth = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return truth;
}

/* Σ |c·total − n·reference| over codes; exact, because everything stays below 2^53. */
WIDE_VECTORS
static double distance_of(const int32_t *hist, const double *reference, uint32_t n_values, double total, double n) {
    double moved = 0, part[4] = {0, 0, 0, 0};
    uint32_t v = 0;
    for (; v + 4 <= n_values; v += 4)
        for (int i = 0; i < 4; i++) part[i] += fabs((double)hist[v + i] * total - n * reference[v + i]);
    for (; v < n_values; v++) moved += fabs((double)hist[v] * total - n * reference[v]);
    return moved + part[0] + part[1] + part[2] + part[3];
}

static int is_close(Problem *P, const Rule *r, const int32_t *hist, int64_t n, double *bound) {
    int64_t *sums = P->sums;
    uint32_t n_values = P->n_values[r->attr];
    if (r->share) {
        int64_t moved = r->weight[0] * (int64_t)distance_of(hist, r->share, n_values, (double)r->total, (double)n);
        if (moved * r->b <= n * r->total * r->a) return 1;
        *bound = (double)moved / ((double)n * (double)r->total) / (double)r->whole;
        return 0;
    }
    if (r->small) {
        int64_t moved = 0;
        for (int j = 0; j < r->n_sets; j++) {
            int64_t c = 0;
            for (uint32_t e = r->set_start[j]; e < r->set_start[j + 1]; e++) {
                uint32_t item = r->set_item[e];
                c += item < n_values ? hist[item] : sums[item - n_values];
            }
            sums[j] = c;
            int64_t off = c * r->total - n * r->reference[j];
            moved += r->weight[j] * (off < 0 ? -off : off);
        }
        if (moved * r->b <= n * r->total * r->a) return 1;
        *bound = (double)moved / ((double)n * (double)r->total) / (double)r->whole;
        return 0;
    }
    wide moved = 0;
    for (int j = 0; j < r->n_sets; j++) {
        int64_t c = 0;
        for (uint32_t e = r->set_start[j]; e < r->set_start[j + 1]; e++) {
            uint32_t item = r->set_item[e];
            c += item < n_values ? hist[item] : sums[item - n_values];
        }
        sums[j] = c;
        wide off = (wide)c * r->total - (wide)n * r->reference[j];
        moved += (wide)r->weight[j] * (off < 0 ? -off : off);
    }
    if (moved * r->b <= (wide)n * r->total * r->a) return 1;
    *bound = (double)moved / ((double)n * (double)r->total) / (double)r->whole;
    return 0;
}

/* 1: passes, 0: fails and *lost is what any refinement loses at least, -1: error */
static int decide(Problem *P, int number, const int32_t *hist, uint64_t mask, int64_t size, int64_t rows, int64_t *lost) {
    const Rule *r = &P->rules[number];
    uint32_t n_values = r->kind == SIZE ? 0 : P->n_values[r->attr];
    double bound = 0;
    *lost = 0;
    switch (r->kind) {
    case SIZE:
        return 1; /* decided by the threshold, before any value is looked at */
    case DISTINCT: {
        int64_t d = 0;
        if (hist) for (uint32_t v = 1; v < n_values; v++) d += hist[v] > 0;
        else d = __builtin_popcountll(mask);
        if (d >= r->l) return 1;
        *lost = rows;
        return 0;
    }
    case SHARE: {
        int64_t most = 0;
        if (r->n_sets < 0) { for (uint32_t v = 1; v < n_values; v++) if (hist[v] > most) most = hist[v]; }
        else for (int j = 0; j < r->n_sets; j++) {
            int64_t c = 0;
            for (uint32_t e = r->set_start[j]; e < r->set_start[j + 1]; e++) c += hist[r->set_item[e]];
            if (c > most) most = c;
        }
        if ((wide)most * r->b <= (wide)size * r->a) return 1;
        bound = ((double)most - r->x * (double)size) / (size == rows && r->x < 1 ? 1 - r->x : 1.0);
        break;
    }
    case ENTROPY: {
        int64_t n = 0;
        double sum = 0;
        for (uint32_t v = (uint32_t)r->first; v < n_values; v++)
            if (hist[v]) { n += hist[v]; sum += x_log_x(P, hist[v]); }
        if (n) {
            double gap = log((double)n) - sum / (double)n - r->x;
            int ok = gap > 0;
            if (fabs(gap) < 1e-9) ok = ask_python(P, number, hist, n_values, (uint32_t)r->first);
            if (ok) return ok;
            if (r->x > 0) bound = (double)n * (-gap - 1e-6) / r->x;
        }
        break;
    }
    case RECURSIVE: {
        int32_t top[64];
        int64_t n = 0, head = 0;
        int have = 0, want = (int)r->l - 1; /* l <= 64: checked in Python */
        int32_t first = 0;
        for (uint32_t v = (uint32_t)r->first; v < n_values; v++) {
            int32_t c = hist[v];
            if (!c) continue;
            n += c;
            if (c > first) first = c;
            if (!want) continue;
            if (have < want) have++;
            else if (c <= top[want - 1]) continue;
            int i = have - 1;
            for (; i > 0 && top[i - 1] < c; i--) top[i] = top[i - 1];
            top[i] = c;
        }
        for (int i = 0; i < have; i++) head += top[i];
        int64_t tail = n - head;
        if ((wide)first * r->b < (wide)tail * r->a) return 1;
        bound = (double)first - r->x * (double)tail;
        break;
    }
    case CLOSENESS: {
        int64_t n = 0;
        for (uint32_t v = (uint32_t)r->first; v < n_values; v++) n += hist[v];
        int32_t saved = hist[0];
        if (r->first) ((int32_t *)hist)[0] = 0;
        int ok = n == 0 || is_close(P, r, hist, n, &bound);
        ((int32_t *)hist)[0] = saved;
        if (ok) return 1;
        bound = r->y > 0 ? (double)n * (bound - r->x) / r->y : 0;
        break;
    }
    }
    *lost = at_least_one(bound);
    if (*lost > rows) *lost = rows;
    return 0;
}

/* ---------------------------------------------------------------- one node */

/* The segments that are left when the classes of a node are counted. `width`: combinations of their blocks. */
typedef struct { Table *t[MAX_COLUMNS]; int n; uint64_t width; size_t cap; int dense, shift; } Keys;

static int count_classes(Problem *P, const Snap *s, const int32_t *places, Keys *k, int want_index) {
    k->n = P->n_segs - s->depth;
    k->width = 1;
    for (int i = 0; i < k->n; i++) {
        k->t[i] = table_of(P, &P->seg[s->depth + i], places);
        if (!k->t[i]) return -1;
        k->width *= k->t[i]->n_blocks;
    }
    uint64_t space = s->n_pre * k->width;
    k->dense = space <= 8 * (uint64_t)s->n || space <= 4096;
    int bits = 6;
    while (!k->dense && ((size_t)1 << bits) < 2 * (size_t)s->n) bits++;
    k->cap = k->dense ? (size_t)space : (size_t)1 << bits;
    k->shift = 64 - bits;
    if (need_table(P, k->cap) || (want_index && need_rows(P, s->n))) return -1;
    P->visits += s->n;
    const uint32_t *pre = s->pre, n = s->n;
    const int32_t *size = s->size;
    int32_t *cnt = P->cnt;
    const uint32_t *c0 = s->codes[s->depth], *id0 = k->t[0]->id, b0 = k->t[0]->n_blocks;
    if (k->dense && !want_index && !P->units && k->n <= 3) {
        if (k->n == 1) {
            for (uint32_t i = 0; i < n; i++) cnt[pre[i] * b0 + id0[c0[i]]] += size[i];
            return 0;
        }
        const uint32_t *c1 = s->codes[s->depth + 1], *id1 = k->t[1]->id, b1 = k->t[1]->n_blocks;
        if (k->n == 2) {
            for (uint32_t i = 0; i < n; i++) cnt[(pre[i] * b0 + id0[c0[i]]) * b1 + id1[c1[i]]] += size[i];
            return 0;
        }
        const uint32_t *c2 = s->codes[s->depth + 2], *id2 = k->t[2]->id, b2 = k->t[2]->n_blocks;
        for (uint32_t i = 0; i < n; i++)
            cnt[((pre[i] * b0 + id0[c0[i]]) * b1 + id1[c1[i]]) * b2 + id2[c2[i]]] += size[i];
        return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t key = (uint64_t)pre[i] * b0 + id0[c0[i]];
        for (int j = 1; j < k->n; j++) key = key * k->t[j]->n_blocks + k->t[j]->id[s->codes[s->depth + j][i]];
        size_t h = (size_t)key;
        if (!k->dense) {
            h = (size_t)((key * 0x9E3779B97F4A7C15ull) >> k->shift);
            while (cnt[h] && P->keys[h] != key) h = (h + 1) & (k->cap - 1);
            P->keys[h] = key;
        }
        cnt[h] += size[i];
        if (P->units) P->cnt_rows[h] += s->rows[i];
        if (want_index) P->index[i] = (uint32_t)h;
    }
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
    size_t n = s->n_pre + (k->width <= WIDTH ? (size_t)k->width : 0);
    if (P->cap_mass < n) {
        P->mass = grow(P->mass, n, 8);
        P->mass_lost = P->hereditary ? NULL : grow(P->mass_lost, n, 8);
        P->cap_mass = n;
        if (!P->mass || (!P->hereditary && !P->mass_lost)) { P->cap_mass = 0; return -1; }
    }
    memset(P->mass, 0, 8 * n);
    if (!P->hereditary) memset(P->mass_lost, 0, 8 * n);
    return 0;
}

static inline void add_mass(Problem *P, const Snap *s, const Keys *k, uint64_t key, int64_t amount, int64_t lost, Result *R) {
    uint64_t pre = key / k->width, rest = key - pre * k->width;
    P->mass[pre] += amount;
    if (!P->hereditary) P->mass_lost[pre] += lost;
    if (k->width > WIDTH) { add_rest(P, s, k, rest, amount, lost, R); return; }
    P->mass[s->n_pre + rest] += amount;
    if (!P->hereditary) P->mass_lost[s->n_pre + rest] += lost;
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

/* Evaluate the classes that are large enough; fills slot_ok and slot_lost. Stops when *total exceeds the limit. */
static int evaluate_slots(Problem *P, const Snap *s, uint32_t n_slots, int64_t *total) {
    for (uint32_t j = 0; j < n_slots; j++) { P->slot_ok[j] = 1; P->slot_lost[j] = 0; }
    for (int a = 0; a < P->n_attrs; a++) {
        uint32_t n_values = P->n_values[a];
        if (P->use_mask[a]) {
            if (n_slots) memset(P->slot_mask, 0, 8 * (size_t)n_slots);
            for (uint32_t i = 0; i < s->n; i++) {
                int32_t slot = P->slot[P->index[i]];
                if (slot >= 0) P->slot_mask[slot] |= s->mask[a][i];
            }
        } else {
            size_t need = (size_t)n_slots * n_values;
            if (P->cap_hist < need) {
                free(P->hist);
                P->hist = malloc(4 * need + 64);
                P->cap_hist = P->hist ? need : 0;
                if (!P->hist) return -1;
            }
            if (need) memset(P->hist, 0, 4 * need);
            const Entries *en = &s->entries[a];
            for (uint32_t i = 0; i < s->n; i++) {
                int32_t slot = P->slot[P->index[i]];
                if (slot < 0) continue;
                int32_t *h = P->hist + (size_t)slot * n_values;
                for (uint32_t e = en->start[i]; e < en->start[i + 1]; e++) h[en->value[e]] += en->count[e];
            }
        }
        for (int q = 0; q < P->n_rules; q++) {
            if (P->rules[q].kind == SIZE || P->rules[q].attr != a) continue;
            for (uint32_t j = 0; j < n_slots; j++) {
                int64_t size = P->cnt[P->slot_pos[j]], lost;
                int64_t rows = P->units ? P->cnt_rows[P->slot_pos[j]] : size;
                const int32_t *h = P->use_mask[a] ? NULL : P->hist + (size_t)j * n_values;
                int ok = decide(P, q, h, P->use_mask[a] ? P->slot_mask[j] : 0, size, rows, &lost);
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
            int ok = decide(P, q, h, 0, size, rows, &lost);
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

/* Decide the classes that are large enough. Returns how many fail, or -1. */
static int64_t check_values(Problem *P, const Snap *s, const Keys *k, int64_t large, Result *R) {
    const int32_t *cnt = P->cnt, *rows = P->units ? P->cnt_rows : P->cnt;
    if (P->cap_slots < (size_t)large) {
        size_t n = (size_t)large;
        P->slot_pos = grow(P->slot_pos, n, 4);
        P->slot_mask = grow(P->slot_mask, n, 8);
        P->slot_ok = grow(P->slot_ok, n, 1);
        P->slot_lost = grow(P->slot_lost, n, 8);
        P->cap_slots = n;
        if (!P->slot_pos || !P->slot_mask || !P->slot_ok || !P->slot_lost) { P->cap_slots = 0; return -1; }
    }
    uint32_t n_slots = 0;
    for (size_t h = 0; h < k->cap; h++) {
        int big = cnt[h] >= P->threshold;
        P->slot[h] = big ? (int32_t)n_slots : -1;
        if (big) P->slot_pos[n_slots++] = (uint32_t)h;
    }
    if (evaluate_slots(P, s, n_slots, &R->lost)) return -1;
    if (R->lost > P->limit) return 0;
    int64_t failing = 0;
    for (uint32_t j = 0; j < n_slots; j++) {
        if (P->slot_ok[j]) continue;
        if (!P->by_size) R->suppressed += rows[P->slot_pos[j]];
        failing++;
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

static void sum_squares(const Problem *P, const Keys *k, Result *R) {
    const int32_t *cnt = P->cnt, *rows = P->units ? P->cnt_rows : P->cnt;
    for (size_t h = 0; h < k->cap; h++) {
        if (cnt[h] < P->threshold) continue;
        if (P->n_attrs && !P->by_size && !P->slot_ok[P->slot[h]]) continue;
        R->squares += (int64_t)rows[h] * rows[h];
    }
}

static int check_from(Problem *P, const Snap *s, const int32_t *places, Result *R) {
    Keys k;
    if (count_classes(P, s, places, &k, P->n_attrs > 0)) return -1;
    int64_t small, large, failing = 0;
    count_small(P, &k, &small, &large);
    R->suppressed = R->lost = small;
    if (small > P->limit) return 0;
    if (P->n_attrs && (failing = check_values(P, s, &k, large, R)) < 0) return -1;
    if (R->lost > P->limit) return 0;
    R->classes = P->by_size ? large : large - failing;
    R->feasible = R->suppressed <= P->limit && R->classes > 0 && !(P->by_size && failing);
    if (P->star && R->feasible && R->suppressed && check_star(P, s, &k, R)) return -1;
    if (!P->costs) { sum_squares(P, &k, R); return 0; }
    if (!small && !failing) return 0;
    const int32_t *cnt = P->cnt, *rows = P->units ? P->cnt_rows : P->cnt;
    if (start_mass(P, s, &k)) return -1;
    if (small && k.dense && k.width <= WIDTH) add_small(P, s, (size_t)k.width, P->threshold, rows);
    else if (small) for (size_t h = 0; h < k.cap; h++)
        if (cnt[h] && cnt[h] < P->threshold) add_mass(P, s, &k, k.dense ? h : P->keys[h], rows[h], rows[h], R);
    for (int64_t j = 0; failing && j < large; j++) {
        if (P->slot_ok[j]) continue;
        size_t h = P->slot_pos[j];
        add_mass(P, s, &k, k.dense ? h : P->keys[h], P->by_size ? 0 : rows[h], P->slot_lost[j], R);
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

/* ---------------------------------------------------------------- the search */

enum { ROWS, HEIGHT, SQUARES, CLASSES, SUPPRESSED };
enum { CHECKED = 1, FEASIBLE = 2 };

typedef struct {
    Problem *P;
    PyObject *owner, *compare;
    int kind, product, exact, width, n_cols;
    int64_t n_nodes, stride[MAX_COLUMNS], checked, best, position;
    uint8_t *places, *status;
    int64_t *lost, *excess, *totals, *above;
    int32_t *order, *up_start, *up, *down_start, *down;
    int32_t base[MAX_COLUMNS]; /* where a column's places begin in totals, blocks, up_start and down_start */
    double *blocks, *score, factor[MAX_COLUMNS], divisor[MAX_COLUMNS], best_value, least_open;
    int64_t best_vector[MAX_COLUMNS];
} Search;

static double now_s(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double value_of(const Search *S, const int64_t *v) {
    if (!S->product) {
        double sum = 0;
        for (int i = 0; i < S->width; i++) sum += S->factor[i] * (double)v[i];
        return sum;
    }
    double product = 1;
    for (int i = 0; i < S->width; i++) {
        double f = S->factor[i], x = 1 + (double)v[i] / S->divisor[i];
        if (f == 1) product *= x;
        else if (f != 0) product *= pow(x, f);
    }
    return product;
}

static PyObject *as_tuple(const int64_t *v, int n) {
    PyObject *t = PyTuple_New(n);
    for (int i = 0; t && i < n; i++) {
        PyObject *x = PyLong_FromLongLong(v[i]);
        if (!x || PyTuple_SetItem(t, i, x)) { Py_DECREF(t); return NULL; }
    }
    return t;
}

/* -1, 0, 1 as the score of v is below, equal to or above that of b; 2 on error */
static int compare_to(Search *S, const int64_t *v, double value, const int64_t *b, double other) {
    double room = NEAR * fabs(other);
    if (value < other - room) return -1;
    if (value > other + room) return 1;
    if (S->exact) return value < other ? -1 : value > other;
    if (!memcmp(v, b, sizeof(int64_t) * (size_t)S->width)) return 0;
    PyObject *x = as_tuple(v, S->width), *y = as_tuple(b, S->width), *answer = NULL;
    if (x && y) answer = PyObject_CallFunction(S->compare, "OO", x, y);
    Py_XDECREF(x);
    Py_XDECREF(y);
    if (!answer) return 2;
    long order = PyLong_AsLong(answer);
    Py_DECREF(answer);
    return order == -1 && PyErr_Occurred() ? 2 : (int)order;
}

/* Is a node with this vector better than the best, or as good and lexicographically smaller? -1: error */
static int wins(Search *S, const int64_t *v, double value, int64_t node) {
    if (S->best < 0) return 1;
    int order = compare_to(S, v, value, S->best_vector, S->best_value);
    return order == 2 ? -1 : order < 0 || (order == 0 && node < S->best);
}

static void bound_of(const Search *S, const uint8_t *place, int64_t lost, const int64_t *excess, int64_t *v) {
    const Problem *P = S->P;
    if (S->kind == ROWS || S->kind == HEIGHT) {
        for (int c = 0; c < S->n_cols; c++)
            v[c] = S->totals[S->base[c] + place[c]] + (S->kind == ROWS ? excess[c] : 0);
        return;
    }
    int64_t kept = P->n_rows - lost;
    if (S->kind == SUPPRESSED) { v[0] = lost; return; }
    double possible = 1;
    for (int c = 0; c < S->n_cols; c++) possible *= S->blocks[S->base[c] + place[c]];
    if (S->kind == CLASSES) {
        int64_t most = kept / P->least;
        if (possible < (double)most) most = (int64_t)possible;
        v[0] = -(most + 1);
        return;
    }
    if (possible == 1) { v[0] = P->n_rows * P->n_rows; return; }
    int64_t a = kept * P->least, b = possible < 9e18 ? (int64_t)(((wide)kept * kept + (int64_t)possible - 1) / (int64_t)possible) : 1;
    v[0] = lost * P->n_rows + (a > b ? a : b);
}

static void vector_of(const Search *S, const uint8_t *place, const Result *R, int64_t *v) {
    const Problem *P = S->P;
    switch (S->kind) {
    case ROWS: case HEIGHT:
        for (int c = 0; c < S->n_cols; c++)
            v[c] = S->totals[S->base[c] + place[c]] + (S->kind == ROWS ? R->extra[c] : 0);
        return;
    case SQUARES: v[0] = R->squares + R->suppressed * P->n_rows; return;
    case CLASSES: v[0] = -(R->classes + (R->suppressed > 0)); return;
    default: v[0] = R->suppressed;
    }
}

/* Check a node once. *value is its score when it is feasible. */
static int visit(Search *S, int64_t node, int64_t *vector, double *value) {
    const uint8_t *place = S->places + node * S->n_cols;
    int32_t places[MAX_COLUMNS];
    Result R;
    for (int c = 0; c < S->n_cols; c++) places[c] = place[c];
    if (check_node(S->P, places, &R)) return -1;
    S->checked++;
    S->status[node] |= CHECKED;
    if (R.lost > S->lost[node]) S->lost[node] = R.lost;
    if (S->kind == ROWS) for (int c = 0; c < S->n_cols; c++) {
        int64_t *x = &S->excess[node * S->n_cols + c];
        if (R.excess[c] > *x) *x = R.excess[c];
    }
    if (!R.feasible) return 0;
    S->status[node] |= FEASIBLE;
    vector_of(S, place, &R, vector);
    *value = S->score[node] = value_of(S, vector);
    int better = wins(S, vector, *value, node);
    if (better < 0) return -1;
    if (better) {
        S->best = node;
        S->best_value = *value;
        memcpy(S->best_vector, vector, sizeof S->best_vector);
    }
    return 0;
}

/* Greedy descent. Steps are tried in the order of what they may gain, or of that gain per growth of `spread`. */
static int dive(Search *S, int64_t node, const double *spread, int64_t max_checks) {
    int64_t here[MAX_COLUMNS] = {0}, there[MAX_COLUMNS] = {0};
    double here_value = 0, there_value = 0;
    if (!(S->status[node] & CHECKED) && visit(S, node, here, &here_value)) return -1;
    if (!(S->status[node] & FEASIBLE)) return 0;
    here_value = S->score[node];
    uint8_t refused[MAX_COLUMNS][256];
    memset(refused, 0, sizeof refused);
    while (S->checked < max_checks) {
        const uint8_t *place = S->places + node * S->n_cols;
        const int64_t *excess = S->kind == ROWS ? S->excess + node * S->n_cols : NULL;
        double best = 0;
        int64_t target = -1;
        int col = 0, to = 0;
        for (int c = 0; c < S->n_cols; c++) {
            int at = S->base[c] + place[c];
            for (int e = S->down_start[at]; e < S->down_start[at + 1]; e++) {
                int q = S->down[e];
                if (refused[c][q]) continue;
                int64_t other = node + (q - place[c]) * S->stride[c], v[MAX_COLUMNS];
                bound_of(S, S->places + other * S->n_cols, S->lost[node], excess, v);
                double gain = here_value - value_of(S, v);
                if (spread && gain > 0) gain /= fmax(1e-9, spread[S->base[c] + q] - spread[at]);
                if (gain > best) { best = gain; target = other; col = c; to = q; }
            }
        }
        if (target < 0) return 0;
        int seen = S->status[target] & CHECKED;
        if (seen) there_value = S->score[target]; /* from an earlier dive: good enough to steer by */
        else if (visit(S, target, there, &there_value)) return -1;
        if ((S->status[target] & FEASIBLE) && there_value < here_value) { node = target; here_value = there_value; }
        else refused[col][to] = 1;
    }
    return 0;
}

/* Go on with the sweep; stop after max_checks or at a time. With `close`, check nothing more. Where nothing may be
 * suppressed, nodes that cannot win are checked too: most of them fail, and everything below a failing node fails. */
static int sweep(Search *S, int64_t max_checks, double until, int close) {
    int n = S->n_cols, w = S->kind == ROWS ? n : 0;
    int64_t limit = S->P->limit;
    for (; S->position < S->n_nodes; S->position++) {
        int64_t node = S->order[S->position], lost = S->lost[node];
        const uint8_t *place = S->places + node * n;
        int64_t *above = S->above;
        int n_above = 0;
        for (int c = 0; c < n; c++) {
            int at = S->base[c] + place[c];
            for (int e = S->up_start[at]; e < S->up_start[at + 1]; e++) {
                int64_t other = node + (S->up[e] - place[c]) * S->stride[c];
                if (S->lost[other] > lost) lost = S->lost[other];
                above[n_above++] = other;
            }
        }
        S->lost[node] = lost;
        if (lost > limit) continue;
        int64_t *excess = S->excess + node * w, vector[MAX_COLUMNS] = {0};
        if (w && lost) for (int i = 0; i < n_above; i++) {
            const int64_t *x = S->excess + above[i] * w;
            for (int c = 0; c < w; c++) excess[c] = x[c] > excess[c] ? x[c] : excess[c];
        }
        if (S->status[node] & CHECKED) continue;
        bound_of(S, place, lost, excess, vector);
        double value = value_of(S, vector);
        int go = wins(S, vector, value, node);
        if (go < 0) return -1;
        if (!go && (limit || close)) continue;
        if (close) { if (value < S->least_open) S->least_open = value; continue; }
        if (S->checked >= max_checks || now_s() >= until) return 0;
        if (visit(S, node, vector, &value)) return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- Python */

static void free_problem(Problem *P) {
    if (!P) return;
    free_snap(P, P->root);
    for (int s = 0; s < P->n_segs; s++) {
        Segment *seg = &P->seg[s];
        if (seg->tables) for (int64_t i = 0; i < seg->n_combos; i++) if (seg->tables[i]) {
            free(seg->tables[i]->id); free(seg->tables[i]->left); free(seg->tables[i]);
        }
        free(seg->tables); free(seg->raw); free(seg->to_next);
    }
    for (int c = 0; c < P->n_cols; c++) { free(P->blocks[c]); free(P->cost[c]); }
    for (int q = 0; q < P->n_rules; q++) {
        free(P->rules[q].set_start); free(P->rules[q].set_item); free(P->rules[q].weight); free(P->rules[q].reference);
        free(P->rules[q].share);
    }
    free(P->index); free(P->cnt); free(P->cnt_rows); free(P->keys); free(P->hist); free(P->slot); free(P->slot_pos);
    free(P->slot_mask); free(P->slot_ok); free(P->slot_lost); free(P->mass); free(P->mass_lost); free(P->xlogx);
    free(P->sums); free(P->star_hist); free(P->seen); free(P->where);
    Py_XDECREF(P->decide);
    free(P);
}

static void drop_problem(PyObject *capsule) { free_problem(PyCapsule_GetPointer(capsule, "lattice.problem")); }

/* A copy of the bytes of a contiguous buffer. */
static void *copy_of(PyObject *object, Py_ssize_t *bytes) {
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE)) return NULL;
    void *p = malloc((size_t)view.len + 8);
    if (p) memcpy(p, view.buf, (size_t)view.len);
    else PyErr_NoMemory();
    if (bytes) *bytes = view.len;
    PyBuffer_Release(&view);
    return p;
}

static int read_column(Problem *P, int c, PyObject *spec) {
    PyObject *blocks, *costs;
    long long cap;
    if (!PyArg_ParseTuple(spec, "iiiOOL", &P->shape[c], &P->n_codes[c], &P->col_seg[c], &blocks, &costs, &cap)) return -1;
    P->cap[c] = cap;
    P->blocks[c] = copy_of(blocks, NULL);
    if (!P->blocks[c]) return -1;
    if (P->costs) { P->cost[c] = copy_of(costs, NULL); if (!P->cost[c]) return -1; }
    return 0;
}

/* Fuse the columns of each segment, and number the combinations of each segment with all later ones. */
static int fuse(Problem *P, const int32_t *codes) {
    Snap *root = P->root;
    uint32_t n = root->n;
    uint64_t *key = malloc(8 * (size_t)n + 8);
    uint32_t *first = malloc(4 * (size_t)n + 4), *suffix = malloc(4 * (size_t)n + 4), *longer = malloc(4 * (size_t)n + 4);
    int bad = !key || !first || !suffix || !longer;
    for (int s = P->n_segs - 1; s >= 0 && !bad; s--) {
        Segment *seg = &P->seg[s];
        uint64_t space = 1;
        for (uint32_t i = 0; i < n; i++) key[i] = 0;
        seg->n_combos = 1;
        for (int c = 0; c < P->n_cols; c++) {
            if (P->col_seg[c] != s) continue;
            seg->stride[seg->n_cols] = seg->n_combos;
            seg->cols[seg->n_cols++] = c;
            seg->n_combos *= P->shape[c];
            const int32_t *column = codes + (size_t)c * n;
            uint64_t radix = (uint64_t)P->n_codes[c];
            for (uint32_t i = 0; i < n; i++) key[i] = key[i] * radix + (uint64_t)column[i];
            space *= radix;
        }
        seg->tables = calloc((size_t)seg->n_combos, sizeof(Table *));
        root->codes[s] = malloc(4 * (size_t)n + 4);
        bad = !seg->tables || !root->codes[s];
        if (bad) break;
        int64_t used = number_keys(P, key, n, space, root->codes[s], first);
        bad = used < 0 || !(seg->raw = malloc(4 * (size_t)used * seg->n_cols + 4));
        if (bad) break;
        seg->n_codes = (uint32_t)used;
        for (int i = 0; i < seg->n_cols; i++)
            for (int64_t f = 0; f < used; f++)
                seg->raw[i * used + f] = (uint32_t)codes[(size_t)seg->cols[i] * n + first[f]];
        if (s == P->n_segs - 1) {
            memcpy(suffix, root->codes[s], 4 * (size_t)n);
            seg->n_suffix = seg->n_codes;
        } else if (s > 0) {
            uint64_t width = P->seg[s + 1].n_suffix;
            for (uint32_t i = 0; i < n; i++) key[i] = root->codes[s][i] * width + suffix[i];
            used = number_keys(P, key, n, seg->n_codes * width, longer, first);
            bad = used < 0 || !(seg->to_next = malloc(4 * (size_t)used + 4));
            if (bad) break;
            seg->n_suffix = (uint32_t)used;
            for (int64_t f = 0; f < used; f++) seg->to_next[f] = suffix[first[f]];
            uint32_t *swap = suffix;
            suffix = longer;
            longer = swap;
        }
    }
    free(key); free(first); free(longer);
    root->suffix = suffix;
    return bad ? -1 : 0;
}

static int read_attribute(Problem *P, int a, PyObject *spec) {
    PyObject *mask, *start, *value, *count;
    if (!PyArg_ParseTuple(spec, "IpOOOO", &P->n_values[a], &P->use_mask[a], &mask, &start, &value, &count)) return -1;
    if (P->use_mask[a]) return (P->root->mask[a] = copy_of(mask, NULL)) ? 0 : -1;
    Entries *e = &P->root->entries[a];
    e->start = copy_of(start, NULL);
    e->value = copy_of(value, NULL);
    e->count = copy_of(count, NULL);
    return e->start && e->value && e->count ? 0 : -1;
}

/* The equal distance has a shorter form: every code alone, all weights equal, products that a double holds. */
static int singletons(Problem *P, Rule *r) {
    uint32_t n_values = P->n_values[r->attr];
    double most = (double)(P->n_people > r->total ? P->n_people : r->total);
    if (!r->small || most * most * 4 > 9e15 || (uint32_t)r->n_sets + 1 != n_values || !r->first)
        return 0;
    for (int j = 0; j < r->n_sets; j++)
        if (r->set_start[j + 1] - r->set_start[j] != 1 || r->set_item[j] != (uint32_t)j + 1 || r->weight[j] != r->weight[0])
            return 0;
    r->share = calloc(n_values, sizeof(double));
    if (!r->share) return -1;
    for (int j = 0; j < r->n_sets; j++) r->share[j + 1] = (double)r->reference[j];
    return 0;
}

static int read_rule(Problem *P, int q, PyObject *spec) {
    Rule *r = &P->rules[q];
    PyObject *starts, *items, *weights, *references;
    long long a, b, l, total, whole;
    if (!PyArg_ParseTuple(spec, "iiiiLLLLLddiOOOO", &r->kind, &r->attr, &r->first, &r->small, &a, &b, &l, &total, &whole,
                          &r->x, &r->y, &r->n_sets, &starts, &items, &weights, &references)) return -1;
    r->a = a; r->b = b; r->l = l; r->total = total; r->whole = whole;
    r->set_start = copy_of(starts, NULL);
    r->set_item = copy_of(items, NULL);
    r->weight = copy_of(weights, NULL);
    r->reference = copy_of(references, NULL);
    if (!r->set_start || !r->set_item || !r->weight || !r->reference) return -1;
    return r->kind == CLOSENESS ? singletons(P, r) : 0;
}

static int prepare(Problem *P) {
    int64_t most = 0, sets = 0;
    int entropy = 0, simple = 1;
    for (int a = 0; a < P->n_attrs; a++) if (P->n_values[a] > most) most = P->n_values[a];
    for (int q = 0; q < P->n_rules; q++) {
        if (P->rules[q].n_sets > sets) sets = P->rules[q].n_sets;
        entropy |= P->rules[q].kind == ENTROPY;
        simple &= P->rules[q].kind == SIZE || P->rules[q].kind == DISTINCT;
    }
    P->hereditary = P->n_attrs == 0 || (simple && !P->by_size);
    P->sums = malloc(8 * (size_t)(sets + 1));
    P->star_hist = malloc(4 * (size_t)(most + 1));
    P->seen = malloc(4 * (size_t)(most + 1));
    P->where = malloc(4 * (size_t)(most + 1));
    if (!P->sums || !P->star_hist || !P->seen || !P->where) return -1;
    if (entropy) {
        P->n_xlogx = P->n_people < 4096 ? (uint32_t)P->n_people + 1 : 4096;
        P->xlogx = malloc(8 * (size_t)P->n_xlogx);
        if (!P->xlogx) return -1;
        P->xlogx[0] = 0;
        for (uint32_t c = 1; c < P->n_xlogx; c++) P->xlogx[c] = (double)c * log((double)c);
    }
    Snap *root = P->root;
    root->n_pre = 1;
    root->pre = calloc((size_t)root->n + 1, 4);
    root->digits = calloc(1, 4);
    root->n_child = P->seg[0].n_combos;
    root->child = calloc((size_t)root->n_child + 1, sizeof *root->child);
    root->asked = calloc((size_t)root->n_child + 1, 1);
    return root->pre && root->digits && root->child && root->asked ? 0 : -1;
}

/* problem(n, columns, n_segs, codes, size, rows or None, attributes, rules, threshold, least, limit, n_rows, n_people,
 *         by_size, star, costs, memory_cap, decide) */
static PyObject *py_problem(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *columns, *codes, *size, *rows, *attributes, *rules, *decide;
    long long threshold, least, limit, n_rows, n_people, memory;
    Problem *P = calloc(1, sizeof *P);
    if (!P || !(P->root = calloc(1, sizeof *P->root))) { free(P); return PyErr_NoMemory(); }
    if (!PyArg_ParseTuple(args, "IOiOOOOOLLLLLpppLO", &P->root->n, &columns, &P->n_segs, &codes, &size, &rows, &attributes, &rules,
                          &threshold, &least, &limit, &n_rows, &n_people, &P->by_size, &P->star, &P->costs, &memory,
                          &decide)) { free_problem(P); return NULL; }
    P->threshold = threshold < 1 ? 1 : threshold; P->least = least; P->limit = limit; P->n_rows = n_rows; P->n_people = n_people;
    P->memory_cap = memory;
    P->units = rows != Py_None; /* scratch tables depend on it: known before any is made */
    P->decide = decide;
    Py_INCREF(decide);
    Py_ssize_t n_cols = PyTuple_Size(columns), n_attrs = PyTuple_Size(attributes),
               n_rules = PyTuple_Size(rules);
    if (n_cols < 1 || n_cols > MAX_COLUMNS || P->n_segs < 1 || P->n_segs > n_cols || n_attrs > MAX_ATTRS || n_rules > MAX_RULES) {
        PyErr_SetString(PyExc_ValueError, "too many columns, sensitive attributes or rules for the kernel");
        free_problem(P);
        return NULL;
    }
    P->n_cols = (int)n_cols; P->n_attrs = (int)n_attrs; P->n_rules = (int)n_rules;
    int bad = 0;
    for (int i = 0; i < n_cols && !bad; i++) bad = read_column(P, i, PyTuple_GetItem(columns, i));
    if (!bad) {
        Py_buffer view;
        bad = PyObject_GetBuffer(codes, &view, PyBUF_SIMPLE);
        if (!bad) { bad = fuse(P, view.buf); PyBuffer_Release(&view); }
    }
    for (int i = 0; i < n_attrs && !bad; i++) bad = read_attribute(P, i, PyTuple_GetItem(attributes, i));
    for (int i = 0; i < n_rules && !bad; i++) bad = read_rule(P, i, PyTuple_GetItem(rules, i));
    if (!bad) bad = !(P->root->size = copy_of(size, NULL));
    if (!bad) bad = !(P->root->rows = P->units ? copy_of(rows, NULL) : P->root->size);
    if (!bad) bad = prepare(P);
    PyObject *capsule = bad ? NULL : PyCapsule_New(P, "lattice.problem", drop_problem);
    if (!capsule) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        free_problem(P);
    }
    return capsule;
}

static PyObject *py_check(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *list;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &list)) return NULL;
    Problem *P = PyCapsule_GetPointer(capsule, "lattice.problem");
    if (!P) return NULL;
    int32_t places[MAX_COLUMNS];
    for (int c = 0; c < P->n_cols; c++) {
        PyObject *item = PyTuple_GetItem(list, c);
        long place = item ? PyLong_AsLong(item) : -1;
        if (place < 0 || place >= P->shape[c]) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no such level");
            return NULL;
        }
        places[c] = (int32_t)place;
    }
    Result R;
    if (check_node(P, places, &R)) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    PyObject *extra = as_tuple(R.extra, P->costs ? P->n_cols : 0), *excess = as_tuple(R.excess, P->costs ? P->n_cols : 0);
    PyObject *feasible = PyBool_FromLong(R.feasible);
    return Py_BuildValue("NLLNNLL", feasible, (long long)R.suppressed, (long long)R.lost, extra, excess,
                         (long long)R.classes, (long long)R.squares);
}

static void free_search(Search *S) {
    if (!S) return;
    free(S->places); free(S->status); free(S->lost); free(S->excess); free(S->totals); free(S->order); free(S->up_start);
    free(S->up); free(S->above); free(S->down_start); free(S->down); free(S->blocks); free(S->score);
    Py_XDECREF(S->owner);
    Py_XDECREF(S->compare);
    free(S);
}

static void drop_search(PyObject *capsule) { free_search(PyCapsule_GetPointer(capsule, "lattice.search")); }

/* search(problem, kind, product, exact, order, totals, blocks, up_start, up, down_start, down, factors, divisors, compare) */
static PyObject *py_search(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *order, *totals, *blocks, *us, *u, *ds, *d, *factors, *divisors, *compare;
    Search *S = calloc(1, sizeof *S);
    if (!S) return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "OippOOOOOOOOOO", &capsule, &S->kind, &S->product, &S->exact, &order, &totals, &blocks, &us,
                          &u, &ds, &d, &factors, &divisors, &compare)) { free(S); return NULL; }
    S->P = PyCapsule_GetPointer(capsule, "lattice.problem");
    if (!S->P) { free(S); return NULL; }
    S->owner = capsule; Py_INCREF(capsule);
    S->compare = compare; Py_INCREF(compare);
    int n = S->n_cols = S->P->n_cols;
    S->width = S->kind == ROWS || S->kind == HEIGHT ? n : 1;
    S->best = -1;
    S->least_open = INFINITY;
    S->n_nodes = 1;
    int base = 0;
    for (int c = 0; c < n; c++) { S->base[c] = base; base += S->P->shape[c]; }
    for (int c = n - 1; c >= 0; c--) { S->stride[c] = S->n_nodes; S->n_nodes *= S->P->shape[c]; }
    double *f = copy_of(factors, NULL), *g = f ? copy_of(divisors, NULL) : NULL;
    if (f && g) for (int i = 0; i < S->width; i++) { S->factor[i] = f[i]; S->divisor[i] = g[i]; }
    int bad = !f || !g;
    free(f); free(g);
    bad = bad || !(S->order = copy_of(order, NULL)) || !(S->totals = copy_of(totals, NULL)) ||
          !(S->blocks = copy_of(blocks, NULL)) || !(S->up_start = copy_of(us, NULL)) || !(S->up = copy_of(u, NULL)) ||
          !(S->down_start = copy_of(ds, NULL)) || !(S->down = copy_of(d, NULL));
    size_t nodes = (size_t)S->n_nodes;
    if (!bad) {
        size_t most = 1; /* immediate coarsenings that a node can have */
        for (int c = 0; c < n; c++) {
            int widest = 0;
            for (int p = 0; p < S->P->shape[c]; p++) {
                int up = S->up_start[S->base[c] + p + 1] - S->up_start[S->base[c] + p];
                if (up > widest) widest = up;
            }
            most += (size_t)widest;
        }
        S->above = malloc(8 * most);
        S->places = malloc(nodes * n);
        S->status = calloc(nodes, 1);
        S->lost = calloc(nodes, 8);
        S->excess = calloc(S->kind == ROWS ? nodes * n : 1, 8);
        S->score = malloc(nodes * 8);
        bad = !S->places || !S->status || !S->lost || !S->excess || !S->score || !S->above;
    }
    if (!bad) {
        uint8_t at[MAX_COLUMNS] = {0};
        for (size_t i = 0; i < nodes; i++) {
            memcpy(S->places + i * n, at, (size_t)n);
            for (int c = n - 1; c >= 0 && ++at[c] == S->P->shape[c]; c--) at[c] = 0;
        }
    }
    PyObject *result = bad ? NULL : PyCapsule_New(S, "lattice.search", drop_search);
    if (!result) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        free_search(S);
    }
    return result;
}

static PyObject *state_of(Search *S) {
    PyObject *vector = as_tuple(S->best_vector, S->best < 0 ? 0 : S->width);
    return Py_BuildValue("LNLLd", (long long)S->best, vector, (long long)S->checked, (long long)S->position, S->least_open);
}

/* dive(search, node, spread or None, max_checks), sweep(search, max_checks, seconds, close): (best, vector, checked, position, least open) */
static PyObject *py_dive(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *spread;
    long long node, max_checks;
    if (!PyArg_ParseTuple(args, "OLOL", &capsule, &node, &spread, &max_checks)) return NULL;
    Search *S = PyCapsule_GetPointer(capsule, "lattice.search");
    double *x = NULL;
    if (!S || (spread != Py_None && !(x = copy_of(spread, NULL)))) return NULL;
    int status = dive(S, node, x, max_checks);
    free(x);
    if (status) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    return state_of(S);
}

static PyObject *py_sweep(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule;
    long long max_checks;
    double seconds;
    int close;
    if (!PyArg_ParseTuple(args, "OLdp", &capsule, &max_checks, &seconds, &close)) return NULL;
    Search *S = PyCapsule_GetPointer(capsule, "lattice.search");
    if (!S) return NULL;
    if (sweep(S, max_checks, now_s() + seconds, close)) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    return state_of(S);
}

/* feasible(search, out: float64 per node): scores of the feasible nodes that were checked, NaN elsewhere */
static PyObject *py_scores(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *out;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &out)) return NULL;
    Search *S = PyCapsule_GetPointer(capsule, "lattice.search");
    Py_buffer view;
    if (!S || PyObject_GetBuffer(out, &view, PyBUF_WRITABLE)) return NULL;
    if (view.len == (Py_ssize_t)(8 * S->n_nodes)) {
        double *x = view.buf;
        for (int64_t i = 0; i < S->n_nodes; i++) x[i] = S->status[i] & FEASIBLE ? S->score[i] : NAN;
    }
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

static PyObject *py_visits(PyObject *self, PyObject *capsule) {
    (void)self;
    Problem *P = PyCapsule_GetPointer(capsule, "lattice.problem");
    return P ? PyLong_FromLongLong(P->visits) : NULL;
}

static PyObject *py_stats(PyObject *self, PyObject *capsule) {
    (void)self;
    Problem *P = PyCapsule_GetPointer(capsule, "lattice.problem");
    return P ? Py_BuildValue("LLL", (long long)P->merges, (long long)P->merge_visits, (long long)P->memory) : NULL;
}

static PyMethodDef methods[] = {
    {"problem", py_problem, METH_VARARGS, "A problem for the kernel."},
    {"check", py_check, METH_VARARGS, "Check one node."},
    {"search", py_search, METH_VARARGS, "The state of a search."},
    {"dive", py_dive, METH_VARARGS, "Greedy descent."},
    {"sweep", py_sweep, METH_VARARGS, "Visit the nodes in order."},
    {"scores", py_scores, METH_VARARGS, "Scores of the checked nodes."},
    {"stats", py_stats, METH_O, ""},
    {"visits", py_visits, METH_O, "Tuples looked at so far."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_lattice", "Lattice kernels.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__lattice(void) { return PyModule_Create(&module); }
