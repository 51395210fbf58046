"""The compiled lattice kernel: translates a problem for `_lattice.c`, where it is installed and can take it."""

from __future__ import annotations

import math
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.exact import entropy_at_least
from maskwright.domain.rules import (
    Closeness,
    DistinctAtLeast,
    EntropyAtLeast,
    Recursive,
    Rule,
    ShareAtMost,
    SharesWithin,
    SizeAtLeast,
)
from maskwright.kernels.node_check import Check, NodeProblem
from maskwright.kernels.rule_checks import closeness_tables, largest_distance, shortfall_weights

_lattice: Any
try:
    _lattice = import_module("maskwright.kernels._lattice")
except ImportError:  # not compiled at installation
    _lattice = None

FUSED = 2048  # columns are fused while their values do not make more combinations than this
MEMORY = 1 << 29  # bytes for snapshots
HISTOGRAMS = 1 << 26  # classes times values that the kernel may count at once
SIZE, DISTINCT, SHARE, ENTROPY, RECURSIVE, CLOSENESS, WITHIN = range(7)


def kernel_available() -> bool:
    """Is the kernel installed?"""
    return _lattice is not None


def compiled_kernel() -> Any:
    """The compiled module: problem, check, search, dive, sweep, scores, visits."""
    return _lattice


def can_take(problem: NodeProblem) -> bool:
    """Is the problem within the kernel's fixed sizes? Otherwise the numpy twin serves."""
    if not kernel_available() or not problem.columns or not len(problem.rows):
        return False
    people, rows = int(problem.sizes.sum()), int(problem.rows.sum())
    sets = [rule.sets for rule in problem.rules if isinstance(rule, ShareAtMost | Closeness)]
    attributes = {rule.attribute for rule in problem.rules if not isinstance(rule, SizeAtLeast)}
    return (
        len(problem.columns) <= 64
        and all(len(c.blocks) < 250 and len(c.blocks[0]) < 2**30 for c in problem.columns)
        and max(people, rows) < 2**31 - 1
        and int(problem.sizes.min()) >= 1
        and len(problem.rules) <= 32
        and len(attributes) <= 16
        and all(_fits(rule, people) for rule in problem.rules)
        and all(_histograms(problem, name) <= HISTOGRAMS for name in attributes)
        and all(_entries(problem.sensitive[name]) < 2**31 for name in attributes)
        and sum(len(s) for s in sets if s) < 2**20
    )


def _entries(counts: ValueCounts) -> int:
    return max(len(counts.codes), int(counts.counts.sum()))


def _histograms(problem: NodeProblem, name: str) -> int:
    return min(len(problem.rows), int(problem.sizes.sum()) // max(1, problem.least)) * (
        len(problem.sensitive[name].values) + 1
    )


def _fits(rule: Rule, people: int) -> bool:
    """Do the rule's products fit into 127 bits?"""
    if isinstance(rule, ShareAtMost):
        return max(rule.share.numerator, rule.share.denominator) < 2**62
    if isinstance(rule, Recursive):
        return rule.l <= 64 and max(rule.c.numerator, rule.c.denominator) < 2**62
    if isinstance(rule, Closeness):
        table, whole, _ = closeness_tables(rule)
        asked, total = rule.t * whole, sum(rule.reference)
        moved = 2 * people * total * max(1, sum(w for w, _ in table))
        largest = max(moved * asked.denominator, people * total * asked.numerator)
        return largest < 2**126 and max(asked.numerator, asked.denominator, total, whole) < 2**62
    return True


def code_marginals(codes: NDArray[np.int32], rows: Ints | None, widths: tuple[int, ...]) -> list[Ints]:
    """Rows by code for each column (one row of `codes`); without `rows`, 1 where a code occurs."""
    out = np.empty(sum(widths), dtype=np.int64)
    _lattice.marginals(np.ascontiguousarray(codes, dtype=np.int32), rows, out, widths)
    return np.split(out, np.cumsum(widths)[:-1])


class CompiledChecker:
    """Checks nodes in the compiled kernel; same results as `kernels.lattice.Checker`."""

    kills = True

    def __init__(self, problem: NodeProblem) -> None:
        self.problem = problem
        names = [
            n for n in problem.sensitive if any(getattr(r, "attribute", None) == n for r in problem.rules)
        ]
        columns, n_segments, codes = _columns(problem)
        plain = problem.sizes is problem.rows or np.array_equal(problem.sizes, problem.rows)
        sizes = [rule.k for rule in problem.rules if isinstance(rule, SizeAtLeast)]
        threshold = problem.least if problem.by_size else max(sizes, default=1)
        self.handle = _lattice.problem(
            len(problem.rows),
            columns,
            n_segments,
            codes,
            problem.sizes.astype(np.int32),
            None if plain else problem.rows.astype(np.int32),
            tuple(_attribute(problem, name) for name in names),
            tuple(_rule(problem, rule, names) for rule in problem.rules),
            threshold,
            max(1, problem.least),
            problem.limit,
            int(problem.rows.sum()),
            int(problem.sizes.sum()),
            problem.by_size,
            problem.star,
            bool(problem.columns[0].costs),
            MEMORY,
            partial(_decide, problem.rules),  # not a method: the kernel must not own the checker that owns it
        )

    def check(self, places: tuple[int, ...]) -> Check:
        """Check the node at these places."""
        return Check(*_lattice.check(self.handle, places))


def _decide(rules: tuple[Rule, ...], number: int, counts: list[int]) -> bool:
    """Entropies too near to the threshold for floats."""
    rule = rules[number]
    return isinstance(rule, EntropyAtLeast) and entropy_at_least(counts, rule.l)


def _columns(problem: NodeProblem) -> tuple[tuple[Any, ...], int, Any]:
    """Columns with the segment each is fused into: the largest first, because merging them shrinks most."""
    codes = _stacked([column.codes for column in problem.columns])
    used = code_marginals(codes, None, tuple(len(column.blocks[0]) for column in problem.columns))
    present = [int(np.count_nonzero(column)) for column in used]  # hierarchies may list more values
    segment, number, product, room = {}, 0, 1, 1
    order = sorted(range(len(present)), key=lambda c: (-present[c], c))
    for c in order:
        width = len(problem.columns[c].blocks[0])
        rest = math.prod(len(problem.columns[d].blocks) for d in order[order.index(c) :])
        fused = (
            FUSED if rest >= 8 else 4 * FUSED
        )  # a last segment with hardly any levels of its own is not worth it
        if product > 1 and (product * present[c] > fused or room * width >= 2**62):
            number, product, room = number + 1, 1, 1
        segment[c] = number
        product, room = product * present[c], room * width
    result = []
    for c, column in enumerate(problem.columns):
        blocks = np.concatenate(column.blocks).astype(np.int32, copy=False)
        costs = np.concatenate(column.costs).astype(np.int64, copy=False) if column.costs else b""
        result.append((len(column.blocks), len(column.blocks[0]), segment[c], blocks, costs, column.cap))
    return tuple(result), number + 1, codes


def _stacked(rows: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The rows as one contiguous array; without copying where they already are one (a summary's codes)."""
    base = rows[0].base
    if isinstance(base, np.ndarray) and base.dtype == np.int32 and base.shape == (len(rows), len(rows[0])):
        same = all(row.base is base and row.ctypes.data == base[i].ctypes.data for i, row in enumerate(rows))
        if same and base.flags.c_contiguous:
            return base
    return np.array(rows, dtype=np.int32)


def _attribute(problem: NodeProblem, name: str) -> tuple[Any, ...]:
    counts = problem.sensitive[name]
    rules = [r for r in problem.rules if getattr(r, "attribute", None) == name]
    distinct = all(isinstance(r, DistinctAtLeast) for r in rules)
    if distinct and len(counts.values) <= 64 and not problem.star:
        mask = np.zeros(counts.n_classes, dtype=np.uint64)
        inside = counts.codes > 0
        bits = np.left_shift(np.uint64(1), (counts.codes[inside] - 1).astype(np.uint64))
        np.bitwise_or.at(mask, counts.owner[inside], bits)
        return len(counts.values) + 1, True, mask, b"", b"", b""
    return (
        len(counts.values) + 1,
        False,
        b"",
        counts.start.astype(np.uint32),
        counts.codes.astype(np.uint32),
        counts.counts.astype(np.int32),
    )


def _rule(problem: NodeProblem, rule: Rule, names: list[str]) -> tuple[Any, ...]:
    """kind, attribute, first code, small, a, b, l, total, whole, x, y, sets, starts, items, weights, shares, lacks."""
    nothing = (0, b"", b"", b"", b"", b"")
    if isinstance(rule, SizeAtLeast):
        return (SIZE, 0, 0, 0, min(rule.k, 2**62), 0, 0, 0, 0, 0.0, 0.0, *nothing)
    attribute = names.index(rule.attribute)
    if isinstance(rule, DistinctAtLeast):
        return (DISTINCT, attribute, 1, 0, 0, 0, min(rule.l, 2**62), 0, 0, 0.0, 0.0, *nothing)
    if isinstance(rule, ShareAtMost):
        sets = (-1, b"", b"", b"", b"", b"") if rule.sets is None else (*_sets(rule.sets), b"", b"", b"")
        a, b = rule.share.numerator, rule.share.denominator
        return (SHARE, attribute, 1, 0, a, b, 0, 0, 0, float(rule.share), 0.0, *sets)
    if isinstance(rule, SharesWithin):
        parts = (
            [getattr(x, part) for x in side]
            for part in ("numerator", "denominator")
            for side in (rule.most, rule.least)
        )
        bounds = np.array(list(parts), dtype=np.int64)
        small = int(problem.sizes.sum()) * int(bounds.max()) < 2**53
        looks_below = any(rule.least)
        return (
            WITHIN, attribute, 1, small, rule.absent, 0, looks_below, 0, 0, 0.0, 0.0, 0, b"", b"", bounds, b"", b"",
        )  # fmt: skip
    first = 0 if rule.missing == "value" else 1
    if isinstance(rule, EntropyAtLeast):
        return (ENTROPY, attribute, first, 0, 0, 0, 0, 0, 0, math.log(rule.l), 0.0, *nothing)
    if isinstance(rule, Recursive):
        a, b = rule.c.numerator, rule.c.denominator
        return (RECURSIVE, attribute, first, 0, a, b, rule.l, 0, 0, float(rule.c), 0.0, *nothing)
    table, whole, reference = closeness_tables(rule)
    n_values, total, asked = len(rule.reference), sum(rule.reference), rule.t * whole
    people, weight = int(problem.sizes.sum()), [w for w, _ in table]
    moved = 2 * people * total * max(1, sum(weight)) * asked.denominator
    small = max(moved, people * total * asked.numerator) < 2**62
    items = _nested([codes for _, codes in table], n_values)
    return (
        CLOSENESS,
        attribute,
        first,
        small,
        asked.numerator,
        asked.denominator,
        0,
        total,
        whole,
        float(rule.t),
        largest_distance(rule) - float(rule.t),
        *_sets(items),
        np.array(weight, dtype=np.int64),
        reference,
        np.concatenate([*shortfall_weights(rule), reference / max(total, 1)]),
    )


def _sets(sets: Any) -> tuple[int, Any, Any]:
    starts = np.cumsum([0, *(len(s) for s in sets)]).astype(np.uint32)
    return len(sets), starts, np.array([v for s in sets for v in s], dtype=np.uint32)


def _nested(sets: list[tuple[int, ...]], n_values: int) -> list[list[int]]:
    """Each set as single codes and earlier sets that lie in it (numbered from `n_values`): prefixes and trees
    then cost one or two additions per set instead of one per code."""
    result: list[list[int]] = []
    for j, codes in enumerate(sets):
        left, parts = set(codes), []
        for i in range(j - 1, max(-1, j - 64), -1):
            if sets[i] and left.issuperset(sets[i]):
                left.difference_update(sets[i])
                parts.append(n_values + i)
        result.append([*sorted(left), *parts])
    return result
