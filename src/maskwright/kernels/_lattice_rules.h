/* Rules decided for one class: the twin is kernels/rule_checks.py. */

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

/* The rows of set j: those of its values, and of the sets before it that it contains. */
static inline int64_t set_sum(const Rule *r, int j, const int32_t *hist, const int64_t *sums, uint32_t n_values) {
    int64_t c = 0;
    for (uint32_t e = r->set_start[j]; e < r->set_start[j + 1]; e++) {
        uint32_t item = r->set_item[e];
        c += item < n_values ? hist[item] : sums[item - n_values];
    }
    return c;
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
            int64_t c = sums[j] = set_sum(r, j, hist, sums, n_values);
            int64_t off = c * r->total - n * r->reference[j];
            moved += r->weight[j] * (off < 0 ? -off : off);
        }
        if (moved * r->b <= n * r->total * r->a) return 1;
        *bound = (double)moved / ((double)n * (double)r->total) / (double)r->whole;
        return 0;
    }
    wide moved = 0;
    for (int j = 0; j < r->n_sets; j++) {
        int64_t c = sums[j] = set_sum(r, j, hist, sums, n_values);
        wide off = (wide)c * r->total - (wide)n * r->reference[j];
        moved += (wide)r->weight[j] * (off < 0 ? -off : off);
    }
    if (moved * r->b <= (wide)n * r->total * r->a) return 1;
    *bound = (double)moved / ((double)n * (double)r->total) / (double)r->whole;
    return 0;
}

#define KEPT_STEPS 4

/* The most people of a class that its parts can keep when no value may have more than share[v] of them: the kept R
 * satisfies R <= sum of min(c_v, share[v] * R), which is concave in R, so that Newton's steps from above stay above the
 * largest such R. */
static double most_kept(const int32_t *hist, const double *share, uint32_t n_values, double n) {
    double kept = n;
    for (int step = 0; step < KEPT_STEPS; step++) {
        double full = 0, slope = 0;
        for (uint32_t v = 0; v < n_values; v++) {
            double c = (double)hist[v];
            if (c <= share[v] * kept) full += c; else slope += share[v];
        }
        if (slope > 1 - 1e-9 || full / (1 - slope) >= kept) break;
        kept = full / (1 - slope);
    }
    return kept;
}

/* The same for few people, who are whole: R <= sum of min(c_v, most people of v among R). */
WIDE_VECTORS
static int64_t few_kept(const int32_t *hist, const int32_t *most, uint32_t m) {
    int32_t sum = 0;
    for (uint32_t v = 0; v < m; v++) sum += hist[v] < most[v] ? hist[v] : most[v];
    return sum;
}

/* How many values of a class are beyond their bounds. */
WIDE_VECTORS
static int outside(const int32_t *hist, const int32_t *most, const int32_t *least, uint32_t m, int absent, int *over) {
    int many = 0, few = 0;
    for (uint32_t v = 0; v < m; v++) {
        many += hist[v] > most[v];
        few += hist[v] < least[v] && (hist[v] > 0 || absent);
    }
    *over = many;
    return many + few;
}

/* The most and the least people of each value among n: row n of a table that is filled as it is needed. Missing people
 * do not count, and the mark that a row is filled has their place. */
static const int32_t *bounds_of(const Rule *r, uint32_t m, int64_t n) {
    int32_t *row = r->bounds + 2 * (size_t)n * m;
    if (row[m]) return row;
    for (uint32_t v = 1; v < m; v++) {
        row[v] = (int32_t)((wide)n * r->weight[v] / r->weight[2 * m + v]);
        row[m + v] = (int32_t)(((wide)n * r->weight[m + v] + r->weight[3 * m + v] - 1) / r->weight[3 * m + v]);
    }
    row[m] = 1;
    return row;
}

/* is_within for a class of few people; `brief`: without the bound */
static int few_within(const Rule *r, const int32_t *hist, uint32_t m, int64_t n, double *bound, int brief) {
    const int32_t *row = bounds_of(r, m, n);
    int over;
    if (!outside(hist + 1, row + 1, row + m + 1, m - 1, (int)r->a, &over)) return 1;
    if (brief) return 0;
    int64_t kept = n;
    for (int step = 0; over && step < 2 * KEPT_STEPS; step++) {
        int64_t next = few_kept(hist + 1, bounds_of(r, m, kept) + 1, m - 1);
        if (next >= kept) break;
        kept = next;
    }
    *bound = (double)(n - kept);
    if (r->a) for (uint32_t v = 1; v < m; v++) if (hist[v] < row[m + v]) {
        double lost = (double)n - (double)hist[v] * (double)r->weight[3 * m + v] / (double)r->weight[m + v];
        if (lost > *bound) *bound = lost;
    }
    return 0;
}

/* The most people of a class that parts at a distance of at most t can keep: sets whose share falls short of the
 * reference (`lacks`, with the weights of kernels/rule_checks.py), and sets whose complement does, must not add up to
 * more than t. Convex in the R who are kept, so that Newton's steps from above stay above the largest such R. */
static double most_close(Problem *P, const Rule *r, const int32_t *hist, double n) {
    uint32_t n_values = P->n_values[r->attr];
    int64_t *sums = P->sums;
    for (int j = 0; j < r->n_sets; j++) sums[j] = set_sum(r, j, hist, sums, n_values);
    int m = r->n_sets;
    const double *lacks = r->lacks, *exceeds = lacks + m, *share = exceeds + m;
    double kept = n;
    for (int step = 0; step < KEPT_STEPS; step++) {
        double held = 0, asked = -r->x;
        for (int j = 0; j < m; j++) {
            double q = share[j], c = (double)sums[j], w = lacks[j] * (q * kept > c);
            held += w * c;
            asked += w * q;
        }
        if (r->exceeds) for (int j = 0; j < m; j++) {
            double q = 1 - share[j], c = n - (double)sums[j], w = exceeds[j] * (q * kept > c);
            held += w * c;
            asked += w * q;
        }
        if (asked < 1e-9 || held / asked >= kept) break;
        kept = held / asked;
    }
    return kept;
}

/* How many values have more than their share of n; exact, because products stay below 2^53. */
WIDE_VECTORS
static int beyond(const int32_t *hist, const double *num, const double *den, uint32_t n_values, double n) {
    int many = 0, part[4] = {0, 0, 0, 0};
    uint32_t v = 0;
    for (; v + 4 <= n_values; v += 4)
        for (int i = 0; i < 4; i++) part[i] += (double)hist[v + i] * den[v + i] > n * num[v + i];
    for (; v < n_values; v++) many += (double)hist[v] * den[v] > n * num[v];
    return many + part[0] + part[1] + part[2] + part[3];
}

/* Is the share of every value between its bounds? By code, `weight` holds the numerators of the largest and of the least
 * shares, then the denominators, and `share` the same as doubles, then the largest shares (0 for missing, which does not
 * count). *bound is 0 where nothing need be lost: a value that is too rare in a class may be absent in its parts. */
static int is_within(const Rule *r, const int32_t *hist, uint32_t m, double *bound, int brief) {
    const int64_t *most = r->weight, *least = most + m, *most_den = least + m, *least_den = most_den + m;
    int64_t n = 0;
    int over = 0, under = 0;
    for (uint32_t v = 1; v < m; v++) n += hist[v];
    if (!n) return !r->a;
    if (n < TABLED && r->bounds) return few_within(r, hist, m, n, bound, brief);
    if (r->small) over = beyond(hist, r->share, r->share + 2 * m, m, (double)n);
    else for (uint32_t v = 1; v < m; v++) over += (wide)hist[v] * most_den[v] > (wide)n * most[v];
    if (r->l) for (uint32_t v = 1; v < m; v++)
        under += (hist[v] || r->a) && (wide)hist[v] * least_den[v] < (wide)n * least[v];
    if (!over && !under) return 1;
    if (brief) return 0;
    if (over) *bound = (double)n - most_kept(hist, r->share + 4 * m, m, (double)n);
    if (under && r->a) for (uint32_t v = 1; v < m; v++) {
        double lost = least[v] ? (double)n - (double)hist[v] * (double)least_den[v] / (double)least[v] : 0;
        if (lost > *bound) *bound = lost;
    }
    return 0;
}

/* 1: passes, 0: fails and *lost is what any refinement loses at least, -1: error. `brief`: for shares and distances, whose
 * bounds take longest, *lost need be no more than 1. */
static int decide(Problem *P, int number, const int32_t *hist, uint64_t mask, int64_t size, int64_t rows, int64_t *lost, int brief) {
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
        if (brief) return 0;
        bound = r->y > 0 ? (double)n * (bound - r->x) / r->y : 0;
        if (r->first) ((int32_t *)hist)[0] = 0;
        bound = fmax(bound, (double)n - most_close(P, r, hist, (double)n));
        ((int32_t *)hist)[0] = saved;
        break;
    }
    case WITHIN:
        if (is_within(r, hist, n_values, &bound, brief)) return 1;
        if (bound <= 0) return 0;
        break;
    }
    *lost = at_least_one(bound);
    if (rows - *lost < P->threshold) *lost = rows; /* what could be kept is too small for a class */
    return 0;
}
