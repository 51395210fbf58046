"""How much sensitive attributes tell about each other: entropy, mutual information, Γα and Γβ [CODIP].

Everything is computed from pairwise counts. With L(c) = Σ c·log c over the counts of a table of n rows,

    n·H(X) = L(n) − L(x),   n·I(X,Y) = L(xy) + L(n) − L(x) − L(y),   n·H(X|Y) = L(y) − L(xy),

so Γα and Γβ are ratios of sums of c·log c with rational weights. Their values are floats, but a comparison with a
threshold that floats cannot settle is decided in integers. A missing value is a value of its own here, and is not
sensitive.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.exact import sign_of_log
from maskwright.domain.summary import Summary

Subset = tuple[int, ...]  # attributes that are published together, ascending
Tables = tuple[Subset, ...]  # a plan: a partition of the attributes, ordered by smallest attribute
NEAR = 1e-9  # floats that are closer than this are compared in integers


@dataclass(frozen=True, eq=False)
class Contingency:
    """How often the values of sensitive attributes occur, alone and together.

    Attributes:
        names: the attributes.
        single: per attribute the rows of each code (0: missing).
        pairs: for i < j the rows of each pair of codes.
    """

    names: tuple[str, ...]
    single: tuple[Ints, ...]
    pairs: Mapping[tuple[int, int], Ints]

    @property
    def rows(self) -> int:
        """The rows of the table."""
        return int(self.single[0].sum()) if self.single else 0

    @staticmethod
    def of_codes(
        names: Sequence[str], sizes: Sequence[int], codes: NDArray[np.int32], rows: Ints
    ) -> Contingency:
        """From rows of codes: `codes[i, r]`, below `sizes[i]`, stands for `rows[r]` rows of the table."""
        weights = rows.astype(np.float64)  # sums stay below 2**53, so they are exact

        def _counted(key: NDArray[np.int64], size: int) -> Ints:
            return np.bincount(key, weights=weights, minlength=size).astype(np.int64)

        wide = codes.astype(np.int64)
        single = tuple(_counted(wide[i], sizes[i]) for i in range(len(names)))
        pairs = {
            (i, j): _counted(wide[i] * sizes[j] + wide[j], sizes[i] * sizes[j]).reshape(sizes[i], sizes[j])
            for i, j in itertools.combinations(range(len(names)), 2)
        }
        return Contingency(tuple(names), single, pairs)

    @staticmethod
    def of(summary: Summary) -> Contingency:
        """From the cells of a summary, which the engine counted in one pass over the rows."""
        if summary.cells is None:
            raise ValueError("pairwise counts need the joint counts of the sensitive attributes")
        names = tuple(summary.sensitive)
        sizes = [len(vc.values) + 1 for vc in summary.sensitive.values()]
        return Contingency.of_codes(names, sizes, summary.cells.values, summary.cells.rows)


@dataclass(frozen=True, eq=False)
class Association:
    """Entropy, mutual information and exposure of every pair of attributes, in bits; Γα and Γβ of plans.

    Attributes:
        counts: the contingency counts.
        sensitive: per attribute, which codes are sensitive; the *exposure* E of a pair is what is not known yet of
            the sensitive values of one attribute when the other is known.
    """

    counts: Contingency
    sensitive: Sequence[NDArray[np.bool_]]

    @staticmethod
    def of(counts: Contingency, harmless: Mapping[int, Sequence[int]] | None = None) -> Association:
        """All values are sensitive but missing ones and, per attribute, the codes in `harmless`."""
        flags = []
        for i, single in enumerate(counts.single):
            flag = np.ones(len(single), dtype=bool)
            flag[[0, *((harmless or {}).get(i, ()))]] = False
            flags.append(flag)
        return Association(counts, flags)

    @property
    def size(self) -> int:
        """The number of attributes."""
        return len(self.counts.names)

    @cached_property
    def entropy(self) -> list[float]:
        """H of each attribute."""
        n = self.counts.rows
        return [
            math.fsum(c / n * math.log2(n / c) for c in single.tolist() if c) for single in self.counts.single
        ]

    @cached_property
    def information(self) -> dict[tuple[int, int], float]:
        """I of each pair i < j; exactly 0 where the two are independent."""
        return {pair: self._information(*pair) for pair in self.counts.pairs}

    def _information(self, i: int, j: int) -> float:
        table, n = self.counts.pairs[i, j], self.counts.rows
        x, y = table.sum(axis=1), table.sum(axis=0)
        at, to = np.nonzero(table)
        c, a, b = (v.astype(np.float64) for v in (table[at, to], x[at], y[to]))
        if len(at) == np.count_nonzero(x) * np.count_nonzero(y) and all(
            cell * n == left * right
            for cell, left, right in zip(table[at, to].tolist(), x[at].tolist(), y[to].tolist(), strict=True)
        ):
            return 0.0
        return math.fsum((c / n * np.log2(c * n / (a * b))).tolist())

    @cached_property
    def exposure(self) -> dict[tuple[int, int], float]:
        """E of each pair i < j: [v sensitive]·H(A_i|A_j) + [v' sensitive]·H(A_j|A_i), on average over the rows."""
        result = {}
        for (i, j), table in self.counts.pairs.items():
            left = self._share(i) * _conditional(table)
            result[i, j] = left + self._share(j) * _conditional(table.T)
        return result

    def _share(self, i: int) -> float:
        return self._sensitive_rows(i) / self.counts.rows

    def _sensitive_rows(self, i: int) -> int:
        return int(self.counts.single[i][self.sensitive[i]].sum())

    # -- plans -----------------------------------------------------------------------------------------

    @cached_property
    def _total(self) -> tuple[float, float]:
        return math.fsum(self.information.values()), math.fsum(self.exposure.values())

    def inside(self, subset: Subset) -> float:
        """The mutual information of all pairs inside a subset."""
        return math.fsum(self.information[pair] for pair in itertools.combinations(subset, 2))

    def exposed(self, subset: Subset) -> float:
        """The part of Γβ that a subset adds to a plan."""
        total = self._total[1]
        if not total:
            return 0.0
        pairs = math.fsum(self.exposure[pair] for pair in itertools.combinations(subset, 2))
        return pairs / total * len(subset) / self.size

    def alpha(self, tables: Tables) -> float:
        """Γα, the association loss: the share of mutual information between attributes of different tables."""
        total = self._total[0]
        if not total:
            return 0.0
        cut = (self.information[pair] for pair in self.counts.pairs if not _together(tables, *pair))
        return math.fsum(cut) / total

    def beta(self, tables: Tables) -> float:
        """Γβ, the information exposure: how much knowing one attribute reveals of others in its table."""
        return math.fsum(map(self.exposed, tables))

    def alpha_at_most(self, tables: Tables, bound: Fraction) -> bool:
        """Γα ≤ bound, decided in integers where floats do not settle it."""
        gap = self.alpha(tables) - float(bound)
        if abs(gap) > NEAR or not self._total[0]:
            return gap <= 0
        sums = Counter[tuple[int, ...]]()
        for i, j in self.counts.pairs:
            factor = (not _together(tables, i, j)) * bound.denominator - bound.numerator
            for part, sign in (((i, j), 1), ((), 1), ((i,), -1), ((j,), -1)):
                sums[part] += sign * factor
        return self._sign(sums) <= 0

    def beta_at_most(self, tables: Tables, bound: Fraction) -> bool:
        """Γβ ≤ bound, decided in integers where floats do not settle it."""
        gap = self.beta(tables) - float(bound)
        if abs(gap) > NEAR or not self._total[1]:
            return gap <= 0
        sums = Counter[tuple[int, ...]]()
        for i, j in self.counts.pairs:
            size = next((len(s) for s in tables if i in s and j in s), 0)
            factor = size * bound.denominator - self.size * bound.numerator
            left, right = self._sensitive_rows(i) * factor, self._sensitive_rows(j) * factor
            sums[(j,)] += left
            sums[(i,)] += right
            sums[(i, j)] -= left + right
        return self._sign(sums) <= 0

    def _sign(self, sums: Mapping[tuple[int, ...], int]) -> int:
        """The sign of Σ weight·L(part), where () stands for the whole table, (i,) and (i, j) for their counts."""
        powers = Counter[int]()
        for part, weight in sums.items():
            if not weight:
                continue
            counts = [self.counts.rows] if not part else self._counts(part)
            for c in counts:
                powers[c] += c * weight
        return sign_of_log((base, e) for base, e in powers.items() if e)

    def _counts(self, part: tuple[int, ...]) -> list[int]:
        table = self.counts.single[part[0]] if len(part) == 1 else self.counts.pairs[part[0], part[1]]
        found: list[int] = table[table > 0].tolist()
        return found


def _conditional(table: Ints) -> float:
    """The entropy of the rows of a table of counts when its column is known; exactly 0 where that tells all."""
    columns = table.sum(axis=0)
    at, to = np.nonzero(table)
    c, b = table[at, to].astype(np.float64), columns[to].astype(np.float64)
    return math.fsum((c / columns.sum() * np.log2(b / c)).tolist())


def _together(tables: Tables, i: int, j: int) -> bool:
    return any(i in subset and j in subset for subset in tables)
