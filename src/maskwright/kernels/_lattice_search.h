/* Dive and sweep: the twin is methods/sweep.py. */

enum { ROWS, HEIGHT, SQUARES, CLASSES, SUPPRESSED };
#define SAMPLED 8   /* every so many nodes are counted to the end */
#define TELLING 0.4 /* of what a node suppresses, its refinements lose as much */

enum { CHECKED = 1, FEASIBLE = 2 };

typedef struct {
    Problem *P;
    PyObject *owner, *compare;
    int kind, product, exact, width, n_cols, n_excess; /* n_excess: 0 where nothing can be suppressed */
    int64_t n_nodes, stride[MAX_COLUMNS], checked, best, position;
    uint8_t *places, *status;
    int64_t *lost, *excess, *totals, *above, *room; /* room: what a suppressed row adds at least, by column and place */
    int32_t *order, *up_start, *up, *down_start, *down;
    int32_t base[MAX_COLUMNS]; /* where a column's places begin in totals, blocks, up_start and down_start */
    double lost_whole, gone_whole; /* of nodes that were counted to the end: rows lost in refinements, rows suppressed */
    double *blocks, *score, factor[MAX_COLUMNS], divisor[MAX_COLUMNS], best_value, least_open;
    int64_t best_vector[MAX_COLUMNS], best_suppressed;
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
            v[c] = S->totals[S->base[c] + place[c]] + (S->n_excess ? excess[c] : 0);
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

/* What suppression adds at least to the cost of a row, by column and place. */
static int64_t *least_costs(const Problem *P, int n_places) {
    int64_t *room = take_zero(8 * (size_t)(n_places + 1)), *at = room;
    for (int c = 0; room && c < P->n_cols; c++) for (int p = 0; p < P->shape[c]; p++, at++) {
        const int64_t *cost = P->costs ? P->cost[c] + (size_t)p * (size_t)P->n_codes[c] : NULL;
        for (int32_t v = 0; cost && v < P->n_codes[c]; v++)
            if (!v || P->cap[c] - cost[v] < *at) *at = P->cap[c] - cost[v];
    }
    return room;
}

/* The most rows that a node may suppress to be as good as the best, or one that is not much smaller. */
static int64_t rows_to_win(const Search *S, const uint8_t *place) {
    if (S->best < 0 || S->kind != ROWS || !S->n_excess) return INT64_MAX;
    int64_t low = 0, high = S->P->n_rows + 1, v[MAX_COLUMNS];
    double worse = S->best_value + 1e-9 * fabs(S->best_value);
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        for (int c = 0; c < S->n_cols; c++)
            v[c] = S->totals[S->base[c] + place[c]] + middle * S->room[S->base[c] + place[c]];
        if (value_of(S, v) > worse) high = middle; else low = middle;
    }
    return low;
}

/* Check a node once: two columns at a time, where that can decide, else all of them. *value is its score when it is feasible;
 * with `to_win` a node that cannot win may count as one that is not. */
static int visit(Search *S, int64_t node, int64_t *vector, double *value, int to_win) {
    const uint8_t *place = S->places + node * S->n_cols;
    int32_t places[MAX_COLUMNS];
    Result R;
    for (int c = 0; c < S->n_cols; c++) places[c] = place[c];
    int fails = hopeless(S->P, place);
    S->checked++;
    S->status[node] |= CHECKED;
    if (fails > 0) { S->lost[node] = S->P->limit + 1; return 0; }
    /* what a whole count says of refinements may be worth it: nodes that are counted anyway tell */
    int whole = !to_win || S->checked % SAMPLED == 0 || S->lost_whole > TELLING * S->gone_whole;
    S->P->most = whole ? INT64_MAX : rows_to_win(S, place);
    if (fails < 0 || check_node(S->P, places, &R)) return -1;
    if (whole && R.lost <= S->P->limit) { S->lost_whole += (double)R.lost; S->gone_whole += (double)R.suppressed; }
    S->P->most = INT64_MAX;
    if (R.lost > S->lost[node]) S->lost[node] = R.lost;
    for (int c = 0; c < S->n_excess; c++) {
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
        S->best_suppressed = R.suppressed;
        memcpy(S->best_vector, vector, sizeof S->best_vector);
    }
    return 0;
}

/* Greedy descent. Steps are tried in the order of what they may gain, or of that gain per growth of `spread`. */
static int dive(Search *S, int64_t node, const double *spread, int64_t max_checks) {
    int64_t here[MAX_COLUMNS] = {0}, there[MAX_COLUMNS] = {0};
    double here_value = 0, there_value = 0;
    if (!(S->status[node] & CHECKED) && visit(S, node, here, &here_value, 0)) return -1;
    if (!(S->status[node] & FEASIBLE)) return 0;
    here_value = S->score[node];
    uint8_t refused[MAX_COLUMNS][256];
    memset(refused, 0, sizeof refused);
    while (S->checked < max_checks) {
        const uint8_t *place = S->places + node * S->n_cols;
        const int64_t *excess = S->excess + node * S->n_excess;
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
        else if (visit(S, target, there, &there_value, 0)) return -1;
        if ((S->status[target] & FEASIBLE) && there_value < here_value) { node = target; here_value = there_value; }
        else refused[col][to] = 1;
    }
    return 0;
}

/* Go on with the sweep; stop after max_checks or at a time. With `close`, check nothing more. Where nothing may be
 * suppressed, nodes that cannot win are checked too: most of them fail, and everything below a failing node fails; not
 * so when pairs of columns are known, which decide what is below at no cost. */
static int sweep(Search *S, int64_t max_checks, double until, int close) {
    int n = S->n_cols, w = S->n_excess;
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
            if (lost > limit) break;
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
        if (!go && (limit || close || S->P->pairs)) continue;
        if (close) { if (value < S->least_open) S->least_open = value; continue; }
        if (S->checked >= max_checks || now_s() >= until) return 0;
        if (visit(S, node, vector, &value, 1)) return -1;
    }
    return 0;
}
