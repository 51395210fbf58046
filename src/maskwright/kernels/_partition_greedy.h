/* Greedy grouping: buckets of rows are added to the open group until it passes every rule.
 *
 * A rule is a record of integers (see `Tables` in methods/collect.py):
 *   SIZE       kind, 0, k
 *   DISTINCT   kind, column, l
 *   SHARE      kind, column, numerator, denominator
 *   ENTROPY    kind, column, ⌈l⌉; log l stands in `logs`
 *   RECURSIVE  kind, column, l, numerator of c, denominator of c
 *   CLOSENESS  kind, column, numerator and denominator of t·(common denominator of the weights), total, change, number of
 *              sets, weights, references, where the sets of each code begin, and those sets
 * Everything is decided in integers. Logarithms are rounded to a multiple of 1/UNIT once and then added and taken away
 * without error; what comes nearer to the bound than those roundings is decided by Python, exactly. */

enum { SIZE, DISTINCT, SHARE, ENTROPY, RECURSIVE, CLOSENESS };

#define UNIT ((double)(1 << 26)) /* n·log n of two billion rows still fits into 64 bits */
#define KNOWN 4096               /* counts whose logarithms are kept */
#define MOST_TOP 64

/* One column of codes (0: does not count) and what the open group holds of it. */
typedef struct {
    const int32_t *values;
    int64_t radix, *table, most, distinct, held, logs; /* logs: Σ c·log c in units */
    int32_t *codes;                                    /* the distinct ones */
    int weighed;                                       /* is there a rule about entropy? */
} Tally;

typedef struct {
    int kind;
    const int64_t *word;
    double log;
    Tally *tally;
    int64_t *inside, wait; /* closeness: the count of each set; no group below `wait` values can pass */
} Rule;

static int64_t c_log_c(int64_t c) { return (int64_t)(UNIT * (double)c * log((double)c) + 0.5); }

static void tally_rows(Tally *t, Py_ssize_t first, Py_ssize_t end, const int64_t *known)
{
    for (Py_ssize_t i = first; i < end; i++) {
        int32_t v = t->values[i];
        if (v == 0)
            continue;
        int64_t now = ++t->table[v];
        t->held++;
        if (now == 1)
            t->codes[t->distinct++] = v;
        t->most = now > t->most ? now : t->most;
        if (t->weighed && now > 1)
            t->logs += now < KNOWN ? known[now] - known[now - 1] : c_log_c(now) - c_log_c(now - 1);
    }
}

static void tally_clear(Tally *t)
{
    for (int64_t i = 0; i < t->distinct; i++)
        t->table[t->codes[i]] = 0;
    t->most = t->distinct = t->held = t->logs = 0;
}

/* decide(rule, counts) of Python, which needs its lock */
static int ask(PyObject *decide, Py_ssize_t rule, const Tally *t)
{
    PyGILState_STATE state = PyGILState_Ensure();
    int truth = -1;
    PyObject *counts = PyList_New(0), *answer = NULL;
    for (int64_t i = 0; counts && i < t->distinct; i++) {
        PyObject *c = PyLong_FromLongLong(t->table[t->codes[i]]);
        if (!c || PyList_Append(counts, c) < 0)
            Py_CLEAR(counts);
        Py_XDECREF(c);
    }
    if (counts)
        answer = PyObject_CallFunction(decide, "nO", rule, counts);
    if (answer)
        truth = PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    Py_XDECREF(counts);
    PyGILState_Release(state);
    return truth;
}

/* 1: entropy ≥ log l, 0: less, 2: too near to tell */
static int is_mixed(const Tally *t, double log_l, int64_t least)
{
    if (t->most * t->distinct == t->held) /* all values equally frequent: the entropy is the log of their number */
        return t->held > 0 && t->distinct >= least;
    double n = (double)t->held, all = (double)c_log_c(t->held), asked = UNIT * n * log_l;
    double gap = all - (double)t->logs - asked;
    double rounding = (double)t->distinct + 4 + 1e-14 * (all + fabs(asked));
    return gap > rounding ? 1 : gap < -rounding ? 0 : 2;
}

/* r_1 < c·(r_l + r_(l+1) + …), counts in falling order */
static int is_recursive(const Tally *t, const int64_t *word)
{
    int64_t top[MOST_TOP], head = 0;
    int have = 0, want = (int)word[2] - 1;
    for (int64_t i = 0; i < t->distinct && want; i++) {
        int64_t c = t->table[t->codes[i]];
        if (have < want)
            have++;
        else if (c <= top[want - 1])
            continue;
        int j = have - 1;
        for (; j > 0 && top[j - 1] < c; j--)
            top[j] = top[j - 1];
        top[j] = c;
    }
    for (int i = 0; i < have; i++)
        head += top[i];
    return (__int128)t->most * word[4] < (__int128)(t->held - head) * word[3];
}

/* Σ weight·|c·total − n·reference| over sets ≤ n·total·t. A row changes the left side by at most `change`, so that a group
 * far from the bound need not be looked at for a while. */
static int is_close(Rule *r)
{
    const int64_t *w = r->word, n_sets = w[6], *weight = w + 7, *reference = weight + n_sets;
    int64_t n = r->tally->held;
    __int128 moved = 0;
    if (n < r->wait)
        return 0;
    for (int64_t j = 0; j < n_sets; j++) {
        __int128 off = (__int128)r->inside[j] * w[4] - (__int128)n * reference[j];
        moved += weight[j] * (off < 0 ? -off : off);
    }
    __int128 over = moved * w[3] - (__int128)n * w[4] * w[2];
    if (over <= 0)
        return 1;
    __int128 step = (__int128)w[5] * w[3] + (__int128)w[4] * w[2];
    r->wait = n + (int64_t)((over + step - 1) / step);
    return 0;
}

static void count_sets(Rule *r, Py_ssize_t first, Py_ssize_t end)
{
    const int64_t *start = r->word + 7 + 2 * r->word[6], *items = start + r->tally->radix + 1;
    for (Py_ssize_t i = first; i < end; i++) {
        int32_t v = r->tally->values[i];
        for (int64_t e = start[v]; e < start[v + 1]; e++)
            r->inside[items[e]]++;
    }
}

/* Does the open group of `size` rows pass? -1: Python failed. */
static int group_passes(Rule *rules, Py_ssize_t n_rules, int64_t size, PyObject *decide)
{
    for (Py_ssize_t i = 0; i < n_rules; i++) {
        Rule *r = rules + i;
        int passes = 0;
        switch (r->kind) {
        case SIZE:
            passes = size >= r->word[2];
            break;
        case DISTINCT:
            passes = r->tally->distinct >= r->word[2];
            break;
        case SHARE:
            passes = (__int128)r->tally->most * r->word[3] <= (__int128)size * r->word[2];
            break;
        case ENTROPY:
            passes = is_mixed(r->tally, r->log, r->word[2]);
            if (passes == 2)
                passes = ask(decide, i, r->tally);
            break;
        case RECURSIVE:
            passes = is_recursive(r->tally, r->word);
            break;
        case CLOSENESS:
            passes = is_close(r);
        }
        if (passes != 1)
            return passes;
    }
    return 1;
}

/* closes[i] = 1 where a group ends after bucket i; extend[i]: a group that could end there goes on instead. */
static int collect(Tally *tallies, Py_ssize_t columns, Rule *rules, Py_ssize_t n_rules, Py_ssize_t buckets,
                   Py_ssize_t bucket, const uint8_t *extend, uint8_t *closes, const int64_t *known, PyObject *decide)
{
    Py_ssize_t begin = 0;
    for (Py_ssize_t b = 0; b < buckets; b++) {
        Py_ssize_t end = (b + 1) * bucket;
        for (Py_ssize_t c = 0; c < columns; c++)
            tally_rows(tallies + c, end - bucket, end, known);
        for (Py_ssize_t r = 0; r < n_rules; r++)
            if (rules[r].kind == CLOSENESS)
                count_sets(rules + r, end - bucket, end);
        int passes = group_passes(rules, n_rules, end - begin, decide);
        if (passes < 0)
            return -1;
        closes[b] = (uint8_t)(passes && (b + 1 == buckets || !extend[b]));
        if (!closes[b])
            continue;
        for (Py_ssize_t c = 0; c < columns; c++)
            tally_clear(tallies + c);
        for (Py_ssize_t r = 0; r < n_rules; r++)
            if (rules[r].kind == CLOSENESS) {
                memset(rules[r].inside, 0, sizeof(int64_t) * (size_t)rules[r].word[6]);
                rules[r].wait = 0;
            }
        begin = end;
    }
    return 0;
}

/* Is the record complete, and does it name only what there is? */
static int record_fits(const int64_t *word, int64_t words, const int64_t *radix, Py_ssize_t columns)
{
    static const int least[] = {3, 3, 4, 3, 5, 7};
    if (words < 3 || word[0] < SIZE || word[0] > CLOSENESS || words < least[word[0]])
        return 0;
    if (word[0] != SIZE && (word[1] < 0 || word[1] >= columns))
        return 0;
    if (word[0] == RECURSIVE)
        return word[2] >= 1 && word[2] <= MOST_TOP;
    if (word[0] != CLOSENESS)
        return 1;
    int64_t n_sets = word[6], codes = radix[word[1]];
    if (word[2] < 0 || word[3] < 1 || word[4] < 0 || word[5] < 0 || word[5] + word[4] < 1 || n_sets < 0 ||
        n_sets > words || words < 7 + 2 * n_sets + codes + 1)
        return 0;
    const int64_t *start = word + 7 + 2 * n_sets, *items = start + codes + 1;
    int64_t room = words - (7 + 2 * n_sets + codes + 1);
    if (start[0] != 0 || start[codes] != room)
        return 0;
    for (int64_t v = 0; v < codes; v++)
        if (start[v + 1] < start[v] || start[v + 1] > room)
            return 0;
    for (int64_t e = 0; e < room; e++)
        if (items[e] < 0 || items[e] >= n_sets)
            return 0;
    return 1;
}

static PyObject *greedy(PyObject *self, PyObject *args)
{
    Buffers s = {.n = 7};
    Py_ssize_t n, bucket;
    PyObject *decide;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*nny*w*O", &s.b[0], &s.b[1], &s.b[2], &s.b[3], &s.b[4], &n, &bucket, &s.b[5],
                          &s.b[6], &decide))
        return NULL;
    const int32_t *values = s.b[0].buf; /* n to a column */
    const int64_t *words = s.b[1].buf, *at = s.b[2].buf, *radix = s.b[4].buf;
    const double *logs = s.b[3].buf;
    Py_ssize_t n_words = s.b[1].len / 8, n_rules = s.b[2].len / 8 - 1, columns = s.b[4].len / 8;
    int bad = n < 0 || bucket < 1 || s.b[0].len / 4 != n * columns || n_rules < 0 || s.b[3].len / 8 != n_rules;
    Py_ssize_t buckets = bad ? 0 : n / bucket;
    bad = bad || s.b[5].len != buckets || s.b[6].len != buckets;
    int64_t cells = 0, sets = 0;
    for (Py_ssize_t c = 0; c < columns && !bad; c++) {
        bad = radix[c] < 1 || radix[c] > INT32_MAX;
        for (Py_ssize_t i = 0; i < n && !bad; i++)
            bad = values[c * n + i] < 0 || values[c * n + i] >= radix[c];
        cells += radix[c];
    }
    for (Py_ssize_t r = 0; r < n_rules && !bad; r++) {
        bad = at[r] < 0 || at[r + 1] < at[r] || at[r + 1] > n_words ||
              !record_fits(words + at[r], at[r + 1] - at[r], radix, columns);
        sets += bad || words[at[r]] != CLOSENESS ? 0 : words[at[r] + 6];
    }
    if (bad)
        return finish(&s, -2, NULL);
    int64_t *table = calloc((size_t)cells + 1, sizeof(int64_t)), *known = calloc(KNOWN, sizeof(int64_t));
    int64_t *inside = calloc((size_t)sets + 1, sizeof(int64_t));
    int32_t *codes = calloc((size_t)cells + 1, sizeof(int32_t));
    Tally *tallies = calloc((size_t)columns + 1, sizeof(Tally));
    Rule *rules = calloc((size_t)n_rules + 1, sizeof(Rule));
    int failed = !table || !known || !inside || !codes || !tallies || !rules, raised = 0;
    if (!failed) {
        for (Py_ssize_t c = 0, from = 0; c < columns; from += radix[c], c++)
            tallies[c] = (Tally){.values = values + c * n, .radix = radix[c], .table = table + from, .codes = codes + from};
        int64_t *next = inside;
        for (Py_ssize_t r = 0; r < n_rules; r++) {
            const int64_t *word = words + at[r];
            rules[r] = (Rule){(int)word[0], word, logs[r], word[0] == SIZE ? NULL : tallies + word[1], next, 0};
            if (word[0] == ENTROPY)
                rules[r].tally->weighed = 1;
            next += word[0] == CLOSENESS ? word[6] : 0;
        }
        for (int64_t c = 2; c < KNOWN; c++)
            known[c] = c_log_c(c);
        Py_BEGIN_ALLOW_THREADS
        raised = collect(tallies, columns, rules, n_rules, buckets, bucket, s.b[5].buf, s.b[6].buf, known, decide);
        Py_END_ALLOW_THREADS
    }
    free(table);
    free(known);
    free(inside);
    free(codes);
    free(tallies);
    free(rules);
    if (raised) {
        release(&s);
        return NULL;
    }
    return finish(&s, failed ? -1 : 0, failed ? NULL : none());
}
