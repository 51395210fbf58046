/* Sizes and types of the lattice kernel. */

#define MAX_COLUMNS 64
#define MAX_RULES 32
#define MAX_ATTRS 16
#define NEAR 1e-11
#define PATIENCE 3 /* a snapshot is made when it was asked for more often than this */
#define WIDTH (1 << 14) /* combinations of blocks that have a mass of their own */
#define PARTS 32 /* of the tuples, in which values are counted */
#define TABLED 1024 /* people of a class whose bounds on values are in a table, and values that such a table has at most */
#define DENSE 4 /* a table with a place for every key may have so many places per tuple */

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

typedef struct { uint32_t stamp, number; } Mark; /* the number counts only where the stamp is the latest */

typedef struct Snap {
    uint32_t n, n_pre;
    int depth;
    uint32_t *pre;             /* per tuple: number of its prefix; tuples are in the order of their prefixes */
    uint32_t *start;           /* start[prefix]: its first tuple */
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

typedef struct { int32_t *people; uint8_t *verdicts; } Pair; /* of columns: by codes, by places */

enum { SIZE, DISTINCT, SHARE, ENTROPY, RECURSIVE, CLOSENESS, WITHIN };

typedef struct {
    int kind, attr, first, small;
    int64_t a, b, l;           /* numerators and denominators, see the constructors in kernels/compiled.py */
    int64_t total, whole;
    double x, y;
    int n_sets;
    uint32_t *set_start, *set_item;
    int64_t *weight, *reference;
    double *lacks;             /* of closeness: see most_close */
    int exceeds;               /* has any set a weight for its complement? */
    int32_t *bounds;           /* of shares: the most and least of each value, by people; made when asked for */
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
    Pair *pairs;
    int32_t *folded;
    int64_t small_failures;    /* checks that failed because classes were too small */
    PyObject *decide;          /* decide(rule, counts) -> bool, for logarithms too near to call */
    /* scratch */
    size_t cap_rows, cap_cnt, cap_cnt_rows, cap_keys, cap_slot, cap_hist, cap_slots, cap_mass, cap_marks,
        cap_entries;
    uint32_t *index, *order, *number, *first, *old, *block; /* by tuple, see merge */
    int32_t *cnt, *cnt_rows;   /* by class: people and rows */
    uint64_t *keys;
    Mark *marks;
    uint32_t clock;            /* the last stamp */
    uint32_t *entry_value;
    int32_t *entry_count;
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
    int64_t visits, merges, merge_visits;
    int64_t most;              /* a node that suppresses more rows need not be counted to the end */
} Problem;

typedef struct {
    int feasible;
    int64_t suppressed, lost, large, classes, squares, extra[MAX_COLUMNS], excess[MAX_COLUMNS];
} Result;
