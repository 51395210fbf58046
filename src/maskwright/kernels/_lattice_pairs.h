/* Pairs of columns, for searches that may suppress nothing: where two columns alone, at their levels in a node, have a
 * class that is too small, so has the node, and everything below it. A look at all pairs costs less than a check and
 * settles most of the nodes that fail. */

#define PAIR_COLUMNS 16  /* with more columns there are too many pairs */
#define PAIR_FAILURES 3  /* checks that fail by size before the pairs are counted */

enum { UNKNOWN, HOLDS, FAILS };

static uint8_t *verdict_of(const Problem *P, int a, int b, int32_t p, int32_t q) {
    uint8_t *verdicts = P->pairs[a * P->n_cols + b].verdicts;
    return verdicts ? verdicts + p * P->shape[b] + q : NULL;
}

static void count_pair(const Problem *P, const uint32_t *codes, int a, int b) {
    uint32_t n = P->root->n, width = (uint32_t)P->n_codes[b];
    const uint32_t *x = codes + (size_t)a * n, *y = codes + (size_t)b * n;
    const int32_t *size = P->root->size;
    int32_t *people = P->pairs[a * P->n_cols + b].people;
    if (people) for (uint32_t i = 0; i < n; i++) people[x[i] * width + y[i]] += size[i];
}

/* People by the codes of each pair of columns; pairs with too many combinations are left out. */
static int count_pairs(Problem *P) {
    int n = P->n_cols;
    uint32_t n_tuples = P->root->n;
    size_t largest = 0;
    for (int a = 0; a < n; a++) for (int b = a + 1; b < n; b++) {
        Pair *pair = &P->pairs[a * n + b];
        size_t cells = (size_t)P->n_codes[a] * (size_t)P->n_codes[b];
        if (cells > 4096 && cells > n_tuples) continue;
        pair->people = take_zero(4 * cells);
        pair->verdicts = take_zero((size_t)P->shape[a] * (size_t)P->shape[b]);
        if (!pair->people || !pair->verdicts) return -1;
        if (cells > largest) largest = cells;
    }
    P->folded = take(4 * largest);
    uint32_t *codes = take(4 * (size_t)n_tuples * (size_t)n);
    if (!P->folded || !codes) { give(codes); return -1; }
    for (int a = 0; a < n; a++) column_codes(P, a, codes + (size_t)a * n_tuples);
    for (int a = 0; a < n; a++) for (int b = a + 1; b < n; b++) count_pair(P, codes, a, b);
    give(codes);
    return 0;
}

/* Are all classes of these two columns large enough? */
static uint8_t judge_pair(const Problem *P, int a, int b, int32_t p, int32_t q) {
    size_t n_a = (size_t)P->n_codes[a], n_b = (size_t)P->n_codes[b];
    const int32_t *to_a = P->blocks[a] + (size_t)p * n_a, *to_b = P->blocks[b] + (size_t)q * n_b;
    const int32_t *people = P->pairs[a * P->n_cols + b].people;
    int32_t most_a = 0, most_b = 0, *folded = P->folded;
    for (size_t x = 0; x < n_a; x++) if (to_a[x] > most_a) most_a = to_a[x];
    for (size_t y = 0; y < n_b; y++) if (to_b[y] > most_b) most_b = to_b[y];
    size_t width = (size_t)most_b + 1, cells = ((size_t)most_a + 1) * width; /* blocks never outnumber codes */
    memset(folded, 0, 4 * cells);
    for (size_t x = 0; x < n_a; x++) {
        int32_t *row = folded + (size_t)to_a[x] * width;
        for (size_t y = 0; y < n_b; y++) row[to_b[y]] += people[x * n_b + y];
    }
    for (size_t j = 0; j < cells; j++) if (folded[j] && folded[j] < P->threshold) return FAILS;
    return HOLDS;
}

static void free_pairs(Problem *P) {
    for (int i = 0; P->pairs && i < P->n_cols * P->n_cols; i++) { give(P->pairs[i].people); give(P->pairs[i].verdicts); }
    give(P->pairs); give(P->folded);
    P->pairs = NULL; P->folded = NULL;
}

/* 1: some pair of columns fails, so that the node and its refinements do; 0: not known; -1: lack of memory. */
static int hopeless(Problem *P, const uint8_t *places) {
    if (P->limit || P->small_failures < PAIR_FAILURES || P->n_cols > PAIR_COLUMNS) return 0;
    if (!P->pairs) {
        P->pairs = take_zero((size_t)P->n_cols * (size_t)P->n_cols * sizeof(Pair));
        if (!P->pairs || count_pairs(P)) { free_pairs(P); return -1; }
    }
    for (int a = 0; a < P->n_cols; a++) for (int b = a + 1; b < P->n_cols; b++) {
        uint8_t *verdict = verdict_of(P, a, b, places[a], places[b]);
        if (!verdict) continue;
        if (*verdict == UNKNOWN) *verdict = judge_pair(P, a, b, places[a], places[b]);
        if (*verdict == FAILS) return 1;
    }
    return 0;
}
