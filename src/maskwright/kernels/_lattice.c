/* Checking and searching the nodes of a generalisation lattice: what Python sees. The numpy twin is kernels/lattice.py
 * with methods/sweep.py; read those first. What is different here, and why it is fast:
 *
 * - Columns are fused into a few segments. A table per segment and choice of levels maps a fused code to the
 *   number of its block, so that the class of a tuple costs one gather per segment.
 * - Snapshots: the tuples merged at the levels of the first segments are kept, so that a check starts from the
 *   few thousand tuples that are left rather than from all of them (_lattice_snapshots.h).
 * - Tuples are in the order of their prefixes, the blocks of those segments: counting classes, in a table with a place
 *   for every key or in a hash table with a part for every prefix, goes from one end of memory to the other.
 * - Costs of suppressed classes are added per block of a segment first, and multiplied once (_lattice_check.h).
 * - Where nothing may be suppressed, pairs of columns settle most nodes without a check (_lattice_pairs.h).
 * - Large blocks of memory are kept for the next search (_lattice_memory.h).
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

#include "_lattice_types.h"
#include "_lattice_memory.h"
#include "_lattice_snapshots.h"
#include "_lattice_rules.h"
#include "_lattice_check.h"
#include "_lattice_pairs.h"
#include "_lattice_search.h"

static void free_problem(Problem *P) {
    if (!P) return;
    free_snap(P, P->root);
    free_pairs(P);
    for (int s = 0; s < P->n_segs; s++) {
        Segment *seg = &P->seg[s];
        if (seg->tables) for (int64_t i = 0; i < seg->n_combos; i++) if (seg->tables[i]) {
            give(seg->tables[i]->id); give(seg->tables[i]->left); give(seg->tables[i]);
        }
        give(seg->tables); give(seg->raw); give(seg->to_next);
    }
    for (int c = 0; c < P->n_cols; c++) { give(P->blocks[c]); give(P->cost[c]); }
    for (int q = 0; q < P->n_rules; q++) {
        give(P->rules[q].set_start); give(P->rules[q].set_item); give(P->rules[q].weight); give(P->rules[q].reference);
        give(P->rules[q].share);
        give(P->rules[q].lacks);
        give(P->rules[q].bounds);
    }
    give(P->index); give(P->order); give(P->number); give(P->first); give(P->old); give(P->block); give(P->cnt);
    give(P->cnt_rows); give(P->keys); give(P->marks); give(P->entry_value); give(P->entry_count); give(P->hist);
    give(P->slot); give(P->slot_pos); give(P->slot_mask); give(P->slot_ok); give(P->slot_lost); give(P->mass);
    give(P->mass_lost); give(P->xlogx); give(P->sums); give(P->star_hist);
    Py_XDECREF(P->decide);
    give(P);
}

static void drop_problem(PyObject *capsule) { free_problem(PyCapsule_GetPointer(capsule, "lattice.problem")); }

/* A copy of the bytes of a contiguous buffer. */
static void *copy_of(PyObject *object, Py_ssize_t *bytes) {
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE)) return NULL;
    void *p = take((size_t)view.len);
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

/* The codes of a segment's columns as one: out[i], P->first[fused] an index. Returns how many occur, or -1. */
static int64_t fuse_columns(Problem *P, const Segment *seg, const int32_t *codes, uint32_t *out, uint32_t *start) {
    uint32_t n = P->root->n, *key = P->number;
    uint64_t space = 1, most = 4 * (uint64_t)n > 1 << 14 ? 4 * (uint64_t)n : 1 << 14;
    for (int c = 0; c < seg->n_cols; c++) {
        const uint32_t *column = (const uint32_t *)codes + (size_t)seg->cols[c] * n;
        uint64_t radix = (uint64_t)P->n_codes[seg->cols[c]];
        if (!c) memcpy(key, column, 4 * (size_t)n);
        else if (space * radix <= most) for (uint32_t i = 0; i < n; i++) key[i] = key[i] * (uint32_t)radix + column[i];
        else {
            int64_t used = number_values(P, key, n, (size_t)space, key); /* at most n, so that `start` has room */
            if (used >= 0) used = number_pairs(P, n, key, (uint32_t)used, column, (uint32_t)radix, key, start);
            if (used < 0) return -1;
            space = (uint64_t)used;
            continue;
        }
        space *= radix;
    }
    return number_values(P, key, n, (size_t)space, out);
}

/* Fuse the columns of each segment, and number the combinations of each segment with all later ones. */
static int fuse(Problem *P, const int32_t *codes) {
    Snap *root = P->root;
    uint32_t n = root->n;
    uint32_t *suffix = take(4 * (size_t)n), *longer = take(4 * (size_t)n), *start = take(4 * (size_t)n + 4);
    int bad = !suffix || !longer || !start || need_rows(P, n);
    for (int s = P->n_segs - 1; s >= 0 && !bad; s--) {
        Segment *seg = &P->seg[s];
        seg->n_combos = 1;
        for (int c = 0; c < P->n_cols; c++) {
            if (P->col_seg[c] != s) continue;
            seg->stride[seg->n_cols] = seg->n_combos;
            seg->cols[seg->n_cols++] = c;
            seg->n_combos *= P->shape[c];
        }
        seg->tables = take_zero((size_t)seg->n_combos * sizeof(Table *));
        root->codes[s] = take(4 * (size_t)n);
        bad = !seg->tables || !root->codes[s];
        if (bad) break;
        int64_t used = fuse_columns(P, seg, codes, root->codes[s], start);
        bad = used < 0 || !(seg->raw = take(4 * (size_t)used * seg->n_cols + 4));
        if (bad) break;
        seg->n_codes = (uint32_t)used;
        for (int i = 0; i < seg->n_cols; i++)
            for (int64_t f = 0; f < used; f++)
                seg->raw[i * used + f] = (uint32_t)codes[(size_t)seg->cols[i] * n + P->first[f]];
        if (s == P->n_segs - 1) {
            memcpy(suffix, root->codes[s], 4 * (size_t)n);
            seg->n_suffix = seg->n_codes;
        } else if (s > 0) {
            used = number_pairs(P, n, root->codes[s], seg->n_codes, suffix, P->seg[s + 1].n_suffix, longer, start);
            bad = used < 0 || !(seg->to_next = take(4 * (size_t)used + 4));
            if (bad) break;
            seg->n_suffix = (uint32_t)used;
            for (int64_t f = 0; f < used; f++) seg->to_next[f] = suffix[P->first[f]];
            uint32_t *swap = suffix;
            suffix = longer;
            longer = swap;
        }
    }
    give(longer); give(start);
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
    r->share = take_zero(n_values * sizeof(double));
    if (!r->share) return -1;
    for (int j = 0; j < r->n_sets; j++) r->share[j + 1] = (double)r->reference[j];
    return 0;
}

static int read_rule(Problem *P, int q, PyObject *spec) {
    Rule *r = &P->rules[q];
    PyObject *starts, *items, *weights, *references, *lacks;
    long long a, b, l, total, whole;
    if (!PyArg_ParseTuple(spec, "iiiiLLLLLddiOOOOO", &r->kind, &r->attr, &r->first, &r->small, &a, &b, &l, &total, &whole,
                          &r->x, &r->y, &r->n_sets, &starts, &items, &weights, &references, &lacks)) return -1;
    r->a = a; r->b = b; r->l = l; r->total = total; r->whole = whole;
    r->set_start = copy_of(starts, NULL);
    r->set_item = copy_of(items, NULL);
    r->weight = copy_of(weights, NULL);
    r->reference = copy_of(references, NULL);
    r->lacks = copy_of(lacks, NULL);
    if (!r->set_start || !r->set_item || !r->weight || !r->reference || !r->lacks) return -1;
    for (int j = 0; r->kind == CLOSENESS && j < r->n_sets; j++) r->exceeds |= r->lacks[r->n_sets + j] > 0;
    if (r->kind == WITHIN) {
        uint32_t m = P->n_values[r->attr];
        if (!(r->share = take_zero(5 * m * sizeof(double)))) return -1;
        for (uint32_t i = 0; i < 4 * m; i++) r->share[i] = (double)r->weight[i];
        for (uint32_t v = 1; v < m; v++) r->share[4 * m + v] = r->share[v] / r->share[2 * m + v];
        r->share[0] = (double)INT32_MAX; /* however many are missing */
        if (m <= TABLED && !(r->bounds = take_zero(2 * TABLED * m * sizeof(int32_t)))) return -1;
    }
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
    P->sums = take(8 * (size_t)(sets + 1));
    P->star_hist = take(4 * (size_t)(most + 1));
    if (!P->sums || !P->star_hist) return -1;
    if (entropy) {
        P->n_xlogx = P->n_people < 4096 ? (uint32_t)P->n_people + 1 : 4096;
        P->xlogx = take(8 * (size_t)P->n_xlogx);
        if (!P->xlogx) return -1;
        P->xlogx[0] = 0;
        for (uint32_t c = 1; c < P->n_xlogx; c++) P->xlogx[c] = (double)c * log((double)c);
    }
    Snap *root = P->root;
    root->n_pre = 1;
    root->pre = take_zero(4 * (size_t)root->n);
    root->start = take_zero(8);
    root->digits = take_zero(4);
    root->n_child = P->seg[0].n_combos;
    root->child = take_zero((size_t)root->n_child * sizeof *root->child);
    root->asked = take_zero((size_t)root->n_child);
    if (!root->pre || !root->start || !root->digits || !root->child || !root->asked) return -1;
    root->start[1] = root->n;
    return 0;
}

/* problem(n, columns, n_segs, codes, size, rows or None, attributes, rules, threshold, least, limit, n_rows, n_people,
 *         by_size, star, costs, memory_cap, decide) */
static PyObject *py_problem(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *columns, *codes, *size, *rows, *attributes, *rules, *decide;
    long long threshold, least, limit, n_rows, n_people, memory;
    int n_segs;
    Problem *P = take_zero(sizeof *P);
    if (!P || !(P->root = take_zero(sizeof *P->root))) { give(P); return PyErr_NoMemory(); }
    if (!PyArg_ParseTuple(args, "IOiOOOOOLLLLLpppLO", &P->root->n, &columns, &n_segs, &codes, &size, &rows, &attributes, &rules,
                          &threshold, &least, &limit, &n_rows, &n_people, &P->by_size, &P->star, &P->costs, &memory,
                          &decide)) { free_problem(P); return NULL; }
    P->threshold = threshold < 1 ? 1 : threshold; P->least = least; P->limit = limit; P->n_rows = n_rows; P->n_people = n_people;
    P->memory_cap = memory;
    P->most = INT64_MAX;
    P->units = rows != Py_None; /* scratch tables depend on it: known before any is made */
    P->decide = decide;
    Py_INCREF(decide);
    Py_ssize_t n_cols = PyTuple_Size(columns), n_attrs = PyTuple_Size(attributes),
               n_rules = PyTuple_Size(rules);
    if (n_cols < 1 || n_cols > MAX_COLUMNS || n_segs < 1 || n_segs > n_cols || n_attrs > MAX_ATTRS || n_rules > MAX_RULES) {
        PyErr_SetString(PyExc_ValueError, "too many columns, sensitive attributes or rules for the kernel");
        free_problem(P);
        return NULL;
    }
    P->n_cols = (int)n_cols; P->n_segs = n_segs; P->n_attrs = (int)n_attrs; P->n_rules = (int)n_rules;
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
    give(S->places); give(S->status); give(S->lost); give(S->excess); give(S->totals); give(S->order); give(S->up_start);
    give(S->up); give(S->above); give(S->room); give(S->down_start); give(S->down); give(S->blocks); give(S->score);
    Py_XDECREF(S->owner);
    Py_XDECREF(S->compare);
    give(S);
}

static void drop_search(PyObject *capsule) { free_search(PyCapsule_GetPointer(capsule, "lattice.search")); }

/* search(problem, kind, product, exact, order, totals, blocks, up_start, up, down_start, down, factors, divisors, compare) */
static PyObject *py_search(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *order, *totals, *blocks, *us, *u, *ds, *d, *factors, *divisors, *compare;
    Search *S = take_zero(sizeof *S);
    if (!S) return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "OippOOOOOOOOOO", &capsule, &S->kind, &S->product, &S->exact, &order, &totals, &blocks, &us,
                          &u, &ds, &d, &factors, &divisors, &compare)) { give(S); return NULL; }
    S->P = PyCapsule_GetPointer(capsule, "lattice.problem");
    if (!S->P) { give(S); return NULL; }
    S->owner = capsule; Py_INCREF(capsule);
    S->compare = compare; Py_INCREF(compare);
    int n = S->n_cols = S->P->n_cols;
    S->width = S->kind == ROWS || S->kind == HEIGHT ? n : 1;
    S->n_excess = S->kind == ROWS && S->P->limit ? n : 0;
    S->best = -1;
    S->least_open = INFINITY;
    S->n_nodes = 1;
    int base = 0;
    for (int c = 0; c < n; c++) { S->base[c] = base; base += S->P->shape[c]; }
    for (int c = n - 1; c >= 0; c--) { S->stride[c] = S->n_nodes; S->n_nodes *= S->P->shape[c]; }
    double *f = copy_of(factors, NULL), *g = f ? copy_of(divisors, NULL) : NULL;
    if (f && g) for (int i = 0; i < S->width; i++) { S->factor[i] = f[i]; S->divisor[i] = g[i]; }
    int bad = !f || !g;
    give(f); give(g);
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
        S->above = take(8 * most);
        S->room = least_costs(S->P, base);
        S->places = take(nodes * n);
        S->status = take_zero(nodes);
        S->lost = take_zero(8 * nodes);
        S->excess = take_zero(8 * nodes * (size_t)S->n_excess);
        S->score = take(nodes * 8);
        bad = !S->places || !S->status || !S->lost || !S->excess || !S->score || !S->above || !S->room;
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
    return Py_BuildValue("LNLLdL", (long long)S->best, vector, (long long)S->checked, (long long)S->position, S->least_open,
                         (long long)S->best_suppressed);
}

/* dive(search, node, spread or None, max_checks), sweep(search, max_checks, seconds, close):
 * (best, vector, checked, position, least open, rows suppressed at the best) */
static PyObject *py_dive(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *spread;
    long long node, max_checks;
    if (!PyArg_ParseTuple(args, "OLOL", &capsule, &node, &spread, &max_checks)) return NULL;
    Search *S = PyCapsule_GetPointer(capsule, "lattice.search");
    double *x = NULL;
    if (!S || (spread != Py_None && !(x = copy_of(spread, NULL)))) return NULL;
    int status = dive(S, node, x, max_checks);
    give(x);
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

/* marginals(codes: int32 per column and tuple, rows: int64 or None, out: int64, widths): rows by code, for each column.
 * Without rows, 1 where a code occurs. Four sums at a time: the next row often has the same code. */
static PyObject *py_marginals(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *codes, *rows, *out, *widths;
    if (!PyArg_ParseTuple(args, "OOOO!", &codes, &rows, &out, &PyTuple_Type, &widths)) return NULL;
    Py_buffer c, r = {0}, o;
    if (PyObject_GetBuffer(codes, &c, PyBUF_SIMPLE)) return NULL;
    if (PyObject_GetBuffer(out, &o, PyBUF_WRITABLE)) { PyBuffer_Release(&c); return NULL; }
    int status = rows == Py_None ? 0 : PyObject_GetBuffer(rows, &r, PyBUF_SIMPLE);
    Py_ssize_t n_cols = PyTuple_Size(widths), n = n_cols ? c.len / 4 / n_cols : 0;
    int64_t *to = o.buf, *end = to + o.len / 8;
    if (!status && r.buf && r.len != 8 * n) status = 1;
    for (Py_ssize_t a = 0; a < n_cols && !status; a++) {
        long width = PyLong_AsLong(PyTuple_GetItem(widths, a));
        int64_t *sums = width > 0 && width <= end - to ? take_zero(32 * (size_t)width) : NULL;
        const uint32_t *code = (const uint32_t *)c.buf + a * n, limit = (uint32_t)width;
        const int64_t *row = r.buf;
        status = !sums;
        for (Py_ssize_t i = 0; i < n && !status; i++) {
            if (code[i] >= limit) status = 1;
            else if (row) sums[4 * (size_t)code[i] + (i & 3)] += row[i];
            else sums[4 * (size_t)code[i]] = 1;
        }
        for (long v = 0; v < width && !status; v++) to[v] = sums[4 * v] + sums[4 * v + 1] + sums[4 * v + 2] + sums[4 * v + 3];
        to += width;
        give(sums);
    }
    PyBuffer_Release(&c);
    PyBuffer_Release(&o);
    if (r.buf) PyBuffer_Release(&r);
    if (!status) Py_RETURN_NONE;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "codes beyond the width of their column");
    return NULL;
}

static PyObject *py_visits(PyObject *self, PyObject *capsule) {
    (void)self;
    Problem *P = PyCapsule_GetPointer(capsule, "lattice.problem");
    return P ? PyLong_FromLongLong(P->visits) : NULL;
}

static PyObject *py_stats(PyObject *self, PyObject *capsule) {
    (void)self;
    Problem *P = PyCapsule_GetPointer(capsule, "lattice.problem");
    return P ? Py_BuildValue("LLLO", (long long)P->merges, (long long)P->merge_visits, (long long)P->memory,
                             P->pairs ? Py_True : Py_False) : NULL;
}

static PyMethodDef methods[] = {
    {"problem", py_problem, METH_VARARGS, "A problem for the kernel."},
    {"check", py_check, METH_VARARGS, "Check one node."},
    {"search", py_search, METH_VARARGS, "The state of a search."},
    {"dive", py_dive, METH_VARARGS, "Greedy descent."},
    {"sweep", py_sweep, METH_VARARGS, "Visit the nodes in order."},
    {"scores", py_scores, METH_VARARGS, "Scores of the checked nodes."},
    {"marginals", py_marginals, METH_VARARGS, "Rows by code of each column."},
    {"stats", py_stats, METH_O, "Snapshots made, tuples merged, bytes of snapshots, whether pairs of columns were counted."},
    {"visits", py_visits, METH_O, "Tuples looked at so far."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_lattice", "Lattice kernels.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__lattice(void) { return PyModule_Create(&module); }
