"""Collecting buckets until a group passes: where greedy grouping closes its groups.

Models that are rules are decided by the compiled kernel while it walks (see `records`). For all others, and without
the kernel, the windows that begin at many buckets are decided together.

`Records` writes rules as integers, which the compiled kernel keeps up to date while rows are added to a group; the
layout of a record is written down in kernels/_partition_greedy.h.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from types import ModuleType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints, ValueCounts
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
from maskwright.kernels import partition
from maskwright.kernels.partition import Int32s
from maskwright.kernels.rule_checks import closeness_tables
from maskwright.methods._lattice.node_evaluation import rules_of
from maskwright.methods._rows.group_requirement import Bools, GroupRequirement
from maskwright.methods._rows.rows import Rows

CHUNK, WINDOW = 4096, 8  # buckets whose windows are decided together, and how many buckets long those get
DENSE = 1 << 22  # numbers in the tables of long groups
SIZE, DISTINCT, SHARE, ENTROPY, RECURSIVE, CLOSENESS = range(6)
MOST_TOP = 64  # of the kernel: values that a recursive rule ranks
WORD = 2**62
Sets = tuple[tuple[int, ...], ...] | None


def group_ends(
    requirement: GroupRequirement,
    order: Int32s,
    bucket: int,
    extend: NDArray[np.uint8],
    kernel: ModuleType | None = partition.compiled,
) -> Bools:
    """After which buckets of `order` a group ends; `extend[i]`: one that could end after bucket i goes on."""
    rules = rules_of(requirement.models, requirement.context)
    counts_rows = requirement.rows.people is None  # so does the kernel
    if (
        kernel is not None
        and counts_rows
        and rules is not None
        and all(_decidable(rule, len(order)) for rule in rules)
    ):
        closes = np.zeros(len(extend), dtype=np.uint8)
        records = Records(requirement.rows, order, rules)
        kernel.greedy(*records.arrays(), len(order), bucket, extend, closes, records.decide)
        return closes.astype(bool)
    return _BucketWalk(requirement, order, bucket, extend).run()


class _BucketWalk:
    """Follows the groups from bucket to bucket; decides windows of many starts at once, long groups by prefix."""

    def __init__(
        self, requirement: GroupRequirement, order: Int32s, bucket: int, extend: NDArray[np.uint8]
    ) -> None:
        self.requirement, self.order, self.bucket = requirement, order, bucket
        self.extend, self.n = extend.astype(bool), len(extend)
        summary = requirement.rows.summary
        self.codes = {name: requirement.rows.values(name)[order] for name in requirement.sensitive}
        self.radix = {name: len(summary.sensitive[name].values) + 1 for name in requirement.sensitive}
        # a person counts once in a group, and so does a value of the person: at the first place of the group
        rows, people = requirement.rows, requirement.rows.people
        self.before = None if people is None else previous_places(people[order])
        self.had = {n: previous_places(rows.having(n)[0][order]) for n in self.codes if people is not None}

    def run(self) -> Bools:
        """Which buckets end a group."""
        closes = np.zeros(self.n, dtype=bool)
        begin, known, ends = 0, 0, np.empty(0, dtype=np.int64)
        while begin < self.n:
            if begin >= known + len(ends):
                self.requirement.progress.check()
                known, ends = begin, self._windows(begin, min(begin + CHUNK, self.n))
            last = int(ends[begin - known])
            if last < 0:
                last = self._long(begin, begin + WINDOW)
            while 0 <= last < self.n - 1 and self.extend[last]:
                last = self._long(begin, last + 1)
            if last < 0:
                break
            closes[last] = True
            begin = last + 1
        return closes

    def _windows(self, first: int, stop: int) -> Ints:
        """For each start the last bucket of the shortest window that passes; −1: none up to WINDOW buckets."""
        ends = np.full(stop - first, -1, dtype=np.int64)
        for length in range(1, WINDOW + 1):
            open_ = np.flatnonzero(ends < 0)
            open_ = open_[first + open_ + length <= self.n]
            if not len(open_):
                break
            lo = (first + open_) * self.bucket
            good = self.requirement.passing(self.order, lo, lo + length * self.bucket)
            ends[open_[good]] = first + open_[good] + length - 1
        return ends

    def _long(self, begin: int, bucket: int) -> int:
        """The first bucket from `bucket` on after which the group that begins at `begin` passes; −1: none."""
        if bucket >= self.n:
            return -1
        before = {n: self._histogram(n, begin, begin, bucket, 1)[0] for n in self.codes}
        people = self._people(begin, begin, bucket)[-1] if bucket > begin else 0
        widest = max(self.radix.values(), default=1)
        step = 64
        while bucket < self.n:
            stop = min(self.n, bucket + min(step, max(1, DENSE // widest)))
            counts = {}
            for name in self.codes:
                table = before[name] + self._histogram(name, begin, bucket, stop, stop - bucket).cumsum(
                    axis=0
                )
                before[name] = table[-1]
                counts[name] = self._sparse(name, table)
            rows = (np.arange(bucket, stop, dtype=np.int64) + 1 - begin) * self.bucket
            sizes = people + self._people(begin, bucket, stop)
            people = sizes[-1]
            good = np.flatnonzero(self.requirement.decide(Classes(sizes, rows, counts)))
            if len(good):
                return bucket + int(good[0])
            bucket, step = stop, step * 2
        return -1

    def _people(self, begin: int, first: int, stop: int) -> Ints:
        """How many people the group that begins at `begin` gains in buckets first..stop, up to each of them."""
        places = slice(first * self.bucket, stop * self.bucket)
        if self.before is None:
            return (np.arange(stop - first, dtype=np.int64) + 1) * self.bucket
        new = (self.before[places] < begin * self.bucket).reshape(-1, self.bucket)
        return np.cumsum(new.sum(axis=1), dtype=np.int64)

    def _histogram(self, name: str, begin: int, first: int, stop: int, lines: int) -> Ints:
        """Counts of the codes in buckets first..stop of a group: one line per bucket, or one for all."""
        places = slice(first * self.bucket, stop * self.bucket)
        codes = self.codes[name][places].astype(np.int64)
        line = np.arange(len(codes)) // self.bucket if lines > 1 else np.zeros(len(codes), dtype=np.int64)
        if self.before is not None:
            new = self.had[name][places] < begin * self.bucket
            codes, line = codes[new], line[new]
        radix = self.radix[name]
        flat = np.bincount(line * radix + codes, minlength=max(1, lines) * radix)
        return cast(Ints, flat.reshape(-1, radix))

    def _sparse(self, name: str, table: Ints) -> ValueCounts:
        vc = self.requirement.rows.summary.sensitive[name]
        there = table > 0
        start = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        return ValueCounts(vc.values, start, np.nonzero(there)[1].astype(np.int32), table[there], vc.ordered)


def previous_places(ids: Int32s) -> Ints:
    """For each place of a list the last place before it with the same id; −1: there is none."""
    order = np.argsort(ids, kind="stable")
    result = np.full(len(ids), -1, dtype=np.int64)
    same = ids[order[1:]] == ids[order[:-1]]
    result[order[1:][same]] = order[:-1][same]
    return result


def _decidable(rule: Rule, n: int) -> bool:
    """Can the kernel decide this rule for groups of up to n rows without leaving 64 bits, or 128 in products?"""
    if isinstance(rule, SizeAtLeast | DistinctAtLeast):
        return (rule.k if isinstance(rule, SizeAtLeast) else rule.l) < WORD
    if isinstance(rule, ShareAtMost):
        return _small(rule.share)
    if isinstance(rule, SharesWithin) or rule.missing != "out":
        return False
    if isinstance(rule, EntropyAtLeast):
        return _small(rule.l)
    if isinstance(rule, Recursive):
        return _small(rule.c) and rule.l <= MOST_TOP
    table, whole, _ = closeness_tables(rule)
    total, asked = sum(rule.reference), rule.t * whole
    moved = sum(weight for weight, _ in table) * n * total
    return (
        _small(asked)
        and moved < WORD
        and 2 * moved * asked.denominator + n * total * asked.numerator < 2**126
    )


def _small(value: Fraction) -> bool:
    return max(value.numerator, value.denominator) < WORD


class Records:
    """The rules about some rows in their order, and the columns of codes (0: does not count) that they count."""

    def __init__(self, rows: Rows, order: Int32s, rules: Iterable[Rule]) -> None:
        self.rows, self.order = rows, order
        self.columns: dict[tuple[str, Sets], Int32s] = {}
        self.radix: list[int] = []
        self.words: list[list[int]] = []
        self.entropies: dict[int, Fraction] = {}
        self.decided: dict[tuple[int, ...], bool] = {}
        for rule in rules:
            self._add(rule)

    def _add(self, rule: Rule) -> None:
        if isinstance(rule, SizeAtLeast):
            self.words.append([SIZE, 0, rule.k])
        elif isinstance(rule, ShareAtMost):
            for sets in _apart(rule.sets):
                share = rule.share
                self.words.append(
                    [SHARE, self._column(rule.attribute, sets), share.numerator, share.denominator]
                )
        elif isinstance(rule, DistinctAtLeast):
            self.words.append([DISTINCT, self._column(rule.attribute), rule.l])
        elif isinstance(rule, EntropyAtLeast):
            self.entropies[len(self.words)] = rule.l
            self.words.append([ENTROPY, self._column(rule.attribute), math.ceil(rule.l)])
        elif isinstance(rule, Recursive):
            column = self._column(rule.attribute)
            self.words.append([RECURSIVE, column, rule.l, rule.c.numerator, rule.c.denominator])
        elif isinstance(rule, Closeness):
            self.words.append(self._closeness(rule))
        else:
            raise NotImplementedError(rule)  # `_decidable` says so

    def _column(self, attribute: str, sets: Sets = None) -> int:
        if (attribute, sets) not in self.columns:
            size = len(self.rows.summary.sensitive[attribute].values) + 1
            values = self.rows.values(attribute)[self.order]
            if sets is not None:
                number = np.zeros(size, dtype=np.int32)
                for i, codes in enumerate(sets, start=1):
                    number[list(codes)] = i
                values, size = number[values], len(sets) + 1
            self.columns[attribute, sets] = values
            self.radix.append(size)
        return list(self.columns).index((attribute, sets))

    def _closeness(self, rule: Closeness) -> list[int]:
        table, whole, reference = closeness_tables(rule)
        total, asked = sum(rule.reference), rule.t * whole
        column = self._column(rule.attribute)
        of_code: list[list[int]] = [[] for _ in range(self.radix[column])]
        for j, (_, codes) in enumerate(table):
            for code in codes:
                if code:
                    of_code[code].append(j)
        # a row outside every set moves each set by its reference; one inside by total − reference instead
        outside = sum(w * int(r) for (w, _), r in zip(table, reference, strict=True))
        change = max(
            outside + sum(table[j][0] * (total - 2 * int(reference[j])) for j in inside) for inside in of_code
        )
        starts = np.cumsum([0, *map(len, of_code)]).tolist()
        return [
            CLOSENESS, column, asked.numerator, asked.denominator, total, change, len(table),
            *(weight for weight, _ in table), *reference.tolist(), *starts, *(j for sets in of_code for j in sets),
        ]  # fmt: skip

    def arrays(self) -> tuple[Any, ...]:
        """Columns, records, where each record begins, the logarithms of entropy rules, and the number of codes."""
        columns = list(self.columns.values())
        none = np.empty((0, len(self.order)), dtype=np.int32)
        return (
            columns[0] if len(columns) == 1 else np.stack(columns) if columns else none,
            np.array([w for words in self.words for w in words], dtype=np.int64),
            np.cumsum([0, *map(len, self.words)], dtype=np.int64),
            np.array([math.log(self.entropies.get(r, Fraction(1))) for r in range(len(self.words))]),
            np.array(self.radix, dtype=np.int64),
        )

    def decide(self, rule: int, counts: list[int]) -> bool:
        """Entropies that are too near to their bound for the kernel, exactly."""
        key = (rule, *sorted(counts))
        if key not in self.decided:
            self.decided[key] = entropy_at_least(counts, self.entropies[rule])
        return self.decided[key]


def _apart(sets: Sets) -> list[Sets]:
    """Sets that overlap become rules of their own; disjoint ones can share a column."""
    if sets is None:
        return [None]
    codes = [code for members in sets for code in members]
    return [sets] if len(set(codes)) == len(codes) else [(members,) for members in sets]
