"""Rules as records of integers, which the compiled kernel keeps up to date while rows are added to a group.

The layout of a record is written down in kernels/_partition_greedy.h.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.core.exact import entropy_at_least
from maskwright.core.rules import (
    Closeness,
    DistinctAtLeast,
    EntropyAtLeast,
    Recursive,
    Rule,
    ShareAtMost,
    SizeAtLeast,
)
from maskwright.kernels.partition import Int32s
from maskwright.kernels.rules import closeness_tables
from maskwright.methods.rows import Rows

SIZE, DISTINCT, SHARE, ENTROPY, RECURSIVE, CLOSENESS = range(6)
MOST_TOP = 64  # of the kernel: values that a recursive rule ranks
WORD = 2**62
Sets = tuple[tuple[int, ...], ...] | None


def decidable(rule: Rule, n: int) -> bool:
    """Can the kernel decide this rule for groups of up to n rows without leaving 64 bits, or 128 in products?"""
    if isinstance(rule, SizeAtLeast | DistinctAtLeast):
        return (rule.k if isinstance(rule, SizeAtLeast) else rule.l) < WORD
    if isinstance(rule, ShareAtMost):
        return _small(rule.share)
    if rule.missing != "out":
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
            for sets in apart(rule.sets):
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
        else:
            self.words.append(self._closeness(rule))

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


def apart(sets: Sets) -> list[Sets]:
    """Sets that overlap become rules of their own; disjoint ones can share a column."""
    if sets is None:
        return [None]
    codes = [code for members in sets for code in members]
    return [sets] if len(set(codes)) == len(codes) else [(members,) for members in sets]
