/* The ChaCha20 stream as a source of random bits for numpy (numpy/random/bitgen.h: the table of functions below).
 *
 * Words of 32 bits are taken one after the other: 64 bits are two of them, the lower one first. The key has 256 bits;
 * the counter of blocks has 64 and begins at 0; the nonce is 0, because every purpose has a key of its own. The plain
 * twin in randomness.py gives the same stream.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LANES 8 /* blocks that are made together, so that the compiler can use vectors */
#define WORDS 16

/* as numpy declares it; it is copied by whoever uses it */
typedef struct {
    void *state;
    uint64_t (*next_uint64)(void *);
    uint32_t (*next_uint32)(void *);
    double (*next_double)(void *);
    uint64_t (*next_raw)(void *);
} Functions;

typedef struct {
    Functions functions;
    uint32_t key[8];
    uint64_t counter;
    int at; /* the next word of `ready` */
    uint32_t ready[LANES * WORDS];
} Stream;

#define TURN(x, n) (((x) << (n)) | ((x) >> (32 - (n))))

static void quarter(uint32_t x[WORDS][LANES], int a, int b, int c, int d)
{
    for (int l = 0; l < LANES; l++) {
        x[a][l] += x[b][l];
        x[d][l] = TURN(x[d][l] ^ x[a][l], 16);
        x[c][l] += x[d][l];
        x[b][l] = TURN(x[b][l] ^ x[c][l], 12);
        x[a][l] += x[b][l];
        x[d][l] = TURN(x[d][l] ^ x[a][l], 8);
        x[c][l] += x[d][l];
        x[b][l] = TURN(x[b][l] ^ x[c][l], 7);
    }
}

static void refill(Stream *s)
{
    static const uint32_t constants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    uint32_t first[WORDS][LANES], x[WORDS][LANES];
    for (int l = 0; l < LANES; l++) {
        for (int i = 0; i < 4; i++)
            first[i][l] = constants[i];
        for (int i = 0; i < 8; i++)
            first[4 + i][l] = s->key[i];
        first[12][l] = (uint32_t)(s->counter + l);
        first[13][l] = (uint32_t)((s->counter + l) >> 32);
        first[14][l] = first[15][l] = 0;
    }
    memcpy(x, first, sizeof x);
    for (int round = 0; round < 20; round += 2) {
        for (int i = 0; i < 4; i++)
            quarter(x, i, 4 + i, 8 + i, 12 + i);
        for (int i = 0; i < 4; i++)
            quarter(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
    }
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < WORDS; i++)
            s->ready[l * WORDS + i] = x[i][l] + first[i][l];
    s->counter += LANES;
    s->at = 0;
}

static uint32_t next_uint32(void *state)
{
    Stream *s = state;
    if (s->at == LANES * WORDS)
        refill(s);
    return s->ready[s->at++];
}

static uint64_t next_uint64(void *state)
{
    uint64_t low = next_uint32(state);
    return low | (uint64_t)next_uint32(state) << 32;
}

static double next_double(void *state)
{
    return (double)(next_uint64(state) >> 11) * (1.0 / 9007199254740992.0);
}

static void forget(PyObject *capsule)
{
    Stream *s = PyCapsule_GetPointer(capsule, "BitGenerator");
    if (s == NULL)
        return;
    memset(s, 0, sizeof *s);
    free(s);
}

static PyObject *bit_generator(PyObject *self, PyObject *args)
{
    const char *key;
    Py_ssize_t length;
    (void)self;
    if (!PyArg_ParseTuple(args, "y#", &key, &length))
        return NULL;
    if (length != 32) {
        PyErr_SetString(PyExc_ValueError, "a key has 32 bytes");
        return NULL;
    }
    Stream *s = calloc(1, sizeof *s);
    if (s == NULL)
        return PyErr_NoMemory();
    s->functions = (Functions){s, next_uint64, next_uint32, next_double, next_uint64};
    for (int i = 0; i < 8; i++) {
        const unsigned char *b = (const unsigned char *)key + 4 * i;
        s->key[i] = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    }
    s->at = LANES * WORDS;
    PyObject *capsule = PyCapsule_New(s, "BitGenerator", forget); /* the functions come first in the stream */
    if (capsule == NULL)
        free(s);
    return capsule;
}

/* ---- shuffles ---------------------------------------------------------------------------------------- */

#define BATCH 32 /* places that are drawn before they are used, so that memory can be asked for them in time */
#if defined(__GNUC__)
#define ASK_FOR(place) __builtin_prefetch(place, 1)
#else
#define ASK_FOR(place) ((void)0)
#endif

/* A number below n, each with the same chance: the upper half of a product; what would favour some is drawn again. */
static uint32_t below(Stream *s, uint32_t n)
{
    uint64_t product = (uint64_t)next_uint32(s) * n;
    if ((uint32_t)product < n) {
        uint32_t least = (uint32_t)(-n) % n;
        while ((uint32_t)product < least)
            product = (uint64_t)next_uint32(s) * n;
    }
    return (uint32_t)(product >> 32);
}

/* From the last place down, each changes places with one that is not after it [Fisher, Yates; Durstenfeld 1964]. */
static void shuffle(Stream *s, int32_t *values, int64_t n)
{
    uint32_t other[BATCH];
    for (int64_t i = n - 1; i > 0; i -= BATCH) {
        int batch = i < BATCH ? (int)i : BATCH;
        for (int j = 0; j < batch; j++) {
            other[j] = below(s, (uint32_t)(i - j + 1));
            ASK_FOR(values + other[j]);
        }
        for (int j = 0; j < batch; j++) {
            int32_t kept = values[i - j];
            values[i - j] = values[other[j]];
            values[other[j]] = kept;
        }
    }
}

static PyObject *shuffle_within(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    Py_buffer values, start;
    (void)self;
    if (!PyArg_ParseTuple(args, "Ow*y*", &capsule, &values, &start))
        return NULL;
    Stream *s = PyCapsule_GetPointer(capsule, "BitGenerator");
    const int64_t *at = start.buf;
    Py_ssize_t bounds = start.len / 8, n = values.len / 4;
    int fits = s != NULL && (bounds == 0 || at[0] >= 0);
    for (Py_ssize_t g = 1; g < bounds && fits; g++)
        fits = at[g - 1] <= at[g] && at[g] - at[g - 1] <= INT32_MAX;
    fits = fits && (bounds == 0 || at[bounds - 1] <= n);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t g = 1; g < bounds; g++)
            shuffle(s, (int32_t *)values.buf + at[g - 1], at[g] - at[g - 1]);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&values);
    PyBuffer_Release(&start);
    if (s == NULL)
        return NULL;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "arrays do not fit together");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"shuffle_within", shuffle_within, METH_VARARGS, "shuffle_within(capsule, values, start)"},
    {"bit_generator", bit_generator, METH_VARARGS, "bit_generator(key) -> capsule for numpy.random.Generator"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_chacha", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__chacha(void)
{
    return PyModule_Create(&module);
}
