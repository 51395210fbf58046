"""Which ground values a published label stands for, and what somebody who has only labels can make of them.

A label is a block of its hierarchy, a range (`20-35`), a set (`{a, b}`), a single value, missing, or `*`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount
from maskwright.domain.grouping import Grouping, Labels
from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.domain.marginals import Marginal, fitted_shares
from maskwright.errors import UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Supports:
    """Label i of an attribute stands for the codes `codes[start[i]:start[i + 1]]` (0: missing), never none.

    `shares`: how a row with the label is spread over them; None: evenly.
    """

    start: Ints
    codes: Ints
    n_codes: int
    shares: Floats | None = None

    @property
    def label(self) -> Ints:
        """The label of each entry of `codes`."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def sums(self, by_code: NDArray[np.generic]) -> NDArray[np.generic]:
        """Per label, the sum of `by_code` over the codes it stands for (further axes are kept)."""
        result: NDArray[np.generic] = np.add.reduceat(by_code[self.codes], self.start[:-1], axis=0)
        return result

    @property
    def without_missing(self) -> Supports:
        """Without the missing value where a label stands for others too: nobody reads `*` as missing."""
        keep = self._read
        kept = np.bincount(self.label[keep], minlength=len(self.start) - 1)
        shares = None if self.shares is None else self.shares[keep]
        return Supports(np.concatenate([[0], np.cumsum(kept)]), self.codes[keep], self.n_codes, shares)

    @property
    def _read(self) -> NDArray[np.bool_]:
        """The entries that readers take a label for."""
        alone = np.diff(self.start) == 1
        return np.asarray((self.codes > 0) | alone[self.label])

    def fitted(self, rows: Ints, marginal: Marginal) -> Supports:
        """The same labels, whose rows are spread as the counts of the column say; evenly where there are none."""
        if not marginal.cells:
            return self
        keep, shares = self._read, np.zeros(len(self.codes))
        shares[keep] = fitted_shares(self.label[keep], self.codes[keep], rows, marginal.weights())
        return replace(self, shares=shares)

    def spread(self) -> tuple[Ints, Ints, Floats]:
        """(label, code, share) of each value that a label stands for: evenly, or as the counts of the column say."""
        read = self.without_missing
        even = (1 / np.diff(read.start))[read.label]
        return read.label, read.codes, even if read.shares is None else read.shares

    def spread_rows(self, rows: Floats | Ints) -> Floats:
        """Rows by code when the rows of each label are spread over the values it stands for."""
        label, codes, shares = self.spread()
        return np.bincount(codes, weights=rows[label] * shares, minlength=self.n_codes).astype(np.float64)

    def matrix(self) -> Floats:
        """label × code: how a row with the label is spread over values."""
        label, codes, shares = self.spread()
        result = np.zeros((len(self.start) - 1, self.n_codes))
        result[label, codes] = shares
        return result

    def expected(self, by_code: Floats) -> Floats:
        """Per label, the mean of `by_code` over the values that its rows are spread over (further axes are kept)."""
        read = self.without_missing
        shares = self.spread()[2]
        weighted = by_code[read.codes] * shares.reshape(-1, *[1] * (by_code.ndim - 1))
        return np.asarray(np.add.reduceat(weighted, read.start[:-1], axis=0), dtype=np.float64)


_KNOWN: WeakKeyDictionary[Grouping, tuple[Supports, ...]] = WeakKeyDictionary()


def supports_of(grouping: Grouping) -> tuple[Supports, ...]:
    """The supports of every quasi-identifier, found once per grouping."""
    if grouping not in _KNOWN:
        pairs = zip(grouping.summary.attributes, grouping.labels, strict=True)
        found = [label_supports(hierarchy, labels) for hierarchy, labels in pairs]
        for a, marginal in enumerate(grouping.marginals or ()):
            of_group = grouping.labels[a].of_group
            rows = exact_bincount(
                of_group.astype(np.int64), grouping.classes.rows, len(grouping.labels[a].texts)
            )
            found[a] = found[a].fitted(rows, marginal)
        _KNOWN[grouping] = tuple(found)
    return _KNOWN[grouping]


def label_supports(hierarchy: Hierarchy, labels: Labels) -> Supports:
    """What each label of one attribute stands for; its size is the coverage that the method stated."""
    wanted = set(labels.texts)
    blocks: dict[str | None, list[tuple[int, int]]] = {}
    for number, level in enumerate(hierarchy.levels):
        for block, text in enumerate(level.labels):
            shown = (text.strip() or None) if text is not None else None
            for form in {text, shown} & wanted:
                blocks.setdefault(form, []).append((number, block))
    members = _Members(hierarchy)
    found = []
    for text, coverage in zip(labels.texts, labels.coverage.tolist(), strict=True):
        found.append(_support(hierarchy, members, text, coverage, blocks.get(text, [])))
    start = np.concatenate([[0], np.cumsum([len(codes) for codes in found])]).astype(np.int64)
    codes = np.concatenate([*found, np.empty(0, np.int64)]).astype(np.int64)
    return Supports(start, codes, len(hierarchy.values) + 1)


class _Members:
    """The codes of the blocks of a hierarchy, sorted out level by level when they are first needed."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.hierarchy = hierarchy
        self.levels: dict[int, tuple[Ints, Ints]] = {}

    def of(self, number: int, block: int) -> Ints:
        """The codes of a block of a level."""
        if number not in self.levels:
            blocks = self.hierarchy.levels[number].blocks
            order = np.argsort(blocks, kind="stable").astype(np.int64)
            labels = len(self.hierarchy.levels[number].labels)
            self.levels[number] = (order, np.searchsorted(blocks[order], np.arange(labels + 1)))
        order, start = self.levels[number]
        return order[start[block] : start[block + 1]]


def _support(
    hierarchy: Hierarchy, members: _Members, text: str | None, coverage: int, blocks: list[tuple[int, int]]
) -> Ints:
    if text is None:
        return np.zeros(1, dtype=np.int64)
    everything = np.arange(len(hierarchy.values) + 1, dtype=np.int64)
    if text == TOP and coverage == hierarchy.base:
        return everything
    parts = [members.of(number, block) for number, block in blocks]
    for part in parts:
        if (part > 0).sum() == coverage:
            return part
    if parts:  # one text for several blocks stands for all of them
        union = np.unique(np.concatenate(parts))
        if (union > 0).sum() == coverage:
            return union
    listed = hierarchy.value_labels.listed_codes(text, coverage)
    if listed is not None:
        return listed
    raise UsageError(f"it is not known which {coverage} values of {hierarchy.attribute!r} a label stands for")
