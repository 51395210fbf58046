/* Rules decided for one class: the twin is kernels/rules.py. */

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
