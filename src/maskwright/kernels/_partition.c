/* Partitions of rows: ranges and cuts of groups (Mondrian), value counts of groups, greedy grouping, Anatomy.
 *
 * Arrays arrive as buffers. `codes` holds the ranks of the quasi-identifiers row by row, d to a row; a group is
 * a segment lo..hi of `order`, which lists rows, or their cells once for each row: only their places in `order` break
 * ties. The numpy twin in partition.py gives the same results.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "_partition_buffers.h"
#include "_partition_order.h"
#include "_partition_segments.h"
#include "_partition_cut.h"
#include "_partition_choose.h"
#include "_partition_greedy.h"
#include "_partition_anatomy.h"
#include "_partition_allocate.h"

static PyMethodDef methods[] = {
    {"counting", counting, METH_VARARGS, "counting(keys, n_keys, order)"},
    {"deal", deal, METH_VARARGS, "deal(owner, start, items)"},
    {"ranked", ranked, METH_VARARGS, "ranked(codes, table, first, size, out)"},
    {"hilbert", hilbert, METH_VARARGS, "hilbert(ranks, stretched, first, size, bits, width, digits)"},
    {"arrange", arrange, METH_VARARGS, "arrange(sorting, start, keys, cell_of, cells)"},
    {"ranges", ranges, METH_VARARGS, "ranges(codes, d, order, lo, hi, least, most, column, from, masks)"},
    {"cut", cut, METH_VARARGS, "cut(codes, d, order, lo, hi, dims, mode, parts, cell, fresh, bounds)"},
    {"choose", choose, METH_VARARGS,
     "choose(codes, d, order, lo, hi, parts, cell, blocks, leaves, first, size, levels, base, scale, dims)"},
    {"count", count, METH_VARARGS, "count(values, radix, order, lo, hi, start, codes, counts)"},
    {"firsts", firsts, METH_VARARGS, "firsts(ids, n_ids, order, lo, hi, fresh, start)"},
    {"greedy", greedy, METH_VARARGS, "greedy(values, words, at, logs, radix, n, bucket, extend, closes, decide)"},
    {"anatomy", anatomy, METH_VARARGS, "anatomy(counts, n_values, l, rows, group_of, groups, cursor)"},
    {"count_entries", count_entries, METH_VARARGS, "count_entries(listed, start, cell_rows, first, left)"},
    {"allocate", allocate, METH_VARARGS, "allocate(listed, start, first, left, out_cells, out_groups, out_rows)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_partition", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__partition(void)
{
    return PyModule_Create(&module);
}
