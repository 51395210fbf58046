/* Memory that outlives a search: the pages of a large block cost more to get than to fill, so that blocks which a
 * search gives back are kept for the next one, up to KEPT bytes in all. Callers hold the GIL. */

#ifdef __SANITIZE_ADDRESS__
#define KEPT ((size_t)0) /* so that every block ends where it should */
#else
#define KEPT ((size_t)64 << 20)
#endif
#define LARGE ((size_t)1 << 14) /* smaller blocks are left to malloc */
#define N_CLASSES 192           /* four sizes of blocks per power of two */

typedef struct Block { struct Block *next; size_t bytes; } Block; /* precedes what callers get */

static Block *kept[N_CLASSES];
static size_t kept_bytes;

/* The number of the smallest block size that is large enough, and that size. */
static int class_of(size_t *bytes) {
    int power = 14;
    while (power < 61 && ((size_t)1 << power) < *bytes) power++;
    size_t step = (size_t)1 << (power - 3), half = (size_t)1 << (power - 1);
    size_t quarter = *bytes > half ? (*bytes - half + step - 1) / step : 1; /* 1 to 4 */
    *bytes = half + quarter * step;
    return (power - 14) * 4 + (int)quarter - 1;
}

/* Uninitialised memory, or NULL. */
static void *take(size_t bytes) {
    if (bytes > SIZE_MAX / 4) return NULL;
    Block *b = NULL;
    if (KEPT && bytes >= LARGE) {
        int class = class_of(&bytes);
        b = kept[class];
        if (b) {
            kept[class] = b->next;
            kept_bytes -= bytes;
        }
    }
    if (!b) b = malloc(sizeof *b + bytes);
    if (!b) return NULL;
    b->bytes = bytes;
    return b + 1;
}

static void *take_zero(size_t bytes) {
    void *p = take(bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

static void give(void *p) {
    if (!p) return;
    Block *b = (Block *)p - 1;
    size_t bytes = b->bytes;
    if (bytes < LARGE || kept_bytes + bytes > KEPT) { free(b); return; }
    int class = class_of(&bytes);
    b->next = kept[class];
    kept[class] = b;
    kept_bytes += bytes;
}

/* A scratch array with room for `n` items; what was in it is lost. Returns -1 on lack of memory. */
static int make_room(void **array, size_t *room, size_t n, size_t item) {
    if (*room >= n && *array) return 0;
    give(*array);
    *array = n <= SIZE_MAX / 8 / item ? take(n * item) : NULL;
    *room = *array ? n : 0;
    return *array ? 0 : -1;
}
