"""Marginals: how many published rows have each ground value of a column, beside labels that hide which [Kifer, Gehrke].

Whoever reads labels spreads the rows of each over the values that it stands for; evenly, if nothing else is known. The
counts of the column say better how: the shares that fit them, and are otherwise as even as they can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount

Floats = NDArray[np.float64]
MOST_ROUNDS = 200  # of fitting
NEAR = 1e-9  # as a share of the rows


@dataclass(frozen=True, eq=False)
class Marginal:
    """The counts of one column.

    Attributes:
        attribute: the column.
        cells: the codes of some values (0: missing), and how many published rows have one of them.
        n_codes: how many codes the column has.
    """

    attribute: str
    cells: tuple[tuple[Ints, int], ...]
    n_codes: int

    def weights(self) -> Floats:
        """The rows of each code; those of merged values evenly."""
        found = np.zeros(self.n_codes)
        for codes, rows in self.cells:
            found[codes] = rows / len(codes)
        return found

    def as_dict(self, texts: Sequence[str | None]) -> list[dict[str, Any]]:
        """For readers: the texts of each cell's values, and its rows."""
        return [{"values": [texts[c] for c in codes.tolist()], "rows": rows} for codes, rows in self.cells]


def merged_marginal(attribute: str, counts: Ints, k: int) -> Marginal:
    """The counts of a column in which every cell has at least k rows: rarer values are merged, rarest first.

    No cell at all where there are fewer than k rows.
    """
    there = np.flatnonzero(counts)
    there = there[np.argsort(counts[there], kind="stable")]
    rows = counts[there]
    merged = int((rows < k).sum())
    if merged:  # together they may still be too few
        enough = np.flatnonzero(np.cumsum(rows) >= k)
        merged = max(merged, int(enough[0]) + 1) if len(enough) else len(there) + 1
    if merged > len(there):
        return Marginal(attribute, (), len(counts))
    cells = [(np.sort(there[:merged]), int(rows[:merged].sum()))] if merged else []
    cells += [(there[i : i + 1], int(rows[i])) for i in range(merged, len(there))]
    cells.sort(key=lambda cell: int(cell[0][0]))
    return Marginal(attribute, tuple(cells), len(counts))


def fitted_shares(label: Ints, code: Ints, rows: Floats | Ints, weights: Floats) -> Floats:
    """How the rows of each label are spread over its values, so that the values add up to their weights.

    Args:
        label, code: the entries: label i may stand for this value.
        rows: of each label.
        weights: rows of each value; where a label's values have none, its rows are spread evenly.
    """
    n = len(rows)
    even = 1 / np.maximum(1, np.bincount(label, minlength=n))[label]
    factor = weights[code].astype(np.float64)
    shares = even
    for _ in range(MOST_ROUNDS):
        total = np.bincount(label, factor, n)[label]
        shares = np.where(total > 0, factor / np.where(total > 0, total, 1), even)
        expected = np.bincount(code, shares * rows[label], len(weights))
        if np.abs(expected - weights).sum() <= NEAR * max(1.0, float(weights.sum())):
            break
        factor = factor * np.where(expected > 0, weights / np.where(expected > 0, expected, 1), 0)[code]
    return np.asarray(shares, dtype=np.float64)


def column_counts(codes: Ints, rows: Ints, n_codes: int) -> Ints:
    """How many rows have each code."""
    return exact_bincount(codes.astype(np.int64), rows, n_codes)


@dataclass(frozen=True)
class ReadColumn:
    """What a reader knows of a column: the values of each label, and the rows of each value."""

    labels: Mapping[str, Sequence[str | None]]
    cells: Sequence[tuple[Sequence[str | None], int]]

    def shares(self, rows: Mapping[str, int]) -> dict[str, dict[str | None, float]]:
        """Of each label with so many rows, the probability of each of its values."""
        values = list(dict.fromkeys(v for members in self.labels.values() for v in members))
        number = {value: i for i, value in enumerate(values)}
        weights = np.zeros(len(values))
        for members, count in self.cells:
            for value in members:
                if value in number:
                    weights[number[value]] = count / len(members)
        names = list(self.labels)
        label = np.repeat(np.arange(len(names)), [len(self.labels[n]) for n in names])
        code = np.array([number[v] for n in names for v in self.labels[n]], dtype=np.int64)
        found = fitted_shares(label, code, np.array([rows.get(n, 0) for n in names]), weights)
        shares: dict[str, dict[str | None, float]] = {name: {} for name in names}
        for i, j, p in zip(label.tolist(), code.tolist(), found.tolist(), strict=True):
            shares[names[i]][values[j]] = p
        return shares
