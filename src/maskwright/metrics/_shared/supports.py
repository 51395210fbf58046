"""Which ground values a published label stands for, and what somebody who has only labels can make of them.

A label is a block of its hierarchy, a range (`20-35`), a set (`{a, b}`), a single value, missing, or `*`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping, Labels
from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.errors import UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Supports:
    """Label i of an attribute stands for the codes `codes[start[i]:start[i + 1]]` (0: missing), never none."""

    start: Ints
    codes: Ints
    n_codes: int

    @property
    def label(self) -> Ints:
        """The label of each entry of `codes`."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def sums(self, by_code: NDArray[np.generic]) -> NDArray[np.generic]:
        """Per label, the sum of `by_code` over the codes it stands for (further axes are kept)."""
        result: NDArray[np.generic] = np.add.reduceat(by_code[self.codes], self.start[:-1], axis=0)
        return result

    @property
    def spread(self) -> Supports:
        """Without the missing value where a label stands for others too: nobody reads `*` as missing."""
        alone = np.diff(self.start) == 1
        keep = (self.codes > 0) | alone[self.label]
        kept = np.bincount(self.label[keep], minlength=len(self.start) - 1)
        return Supports(np.concatenate([[0], np.cumsum(kept)]), self.codes[keep], self.n_codes)

    def spread_rows(self, rows: Floats | Ints) -> Floats:
        """Rows by code when the rows of each label are spread evenly over the values it stands for."""
        even = self.spread
        share = rows / np.diff(even.start)
        return np.bincount(even.codes, weights=share[even.label], minlength=self.n_codes).astype(np.float64)

    def matrix(self) -> Floats:
        """label × code: how a row with the label is spread evenly over values."""
        even = self.spread
        result = np.zeros((len(even.start) - 1, self.n_codes))
        result[even.label, even.codes] = (1 / np.diff(even.start))[even.label]
        return result


_KNOWN: WeakKeyDictionary[Grouping, tuple[Supports, ...]] = WeakKeyDictionary()


def supports_of(grouping: Grouping) -> tuple[Supports, ...]:
    """The supports of every quasi-identifier, found once per grouping."""
    if grouping not in _KNOWN:
        pairs = zip(grouping.summary.attributes, grouping.labels, strict=True)
        _KNOWN[grouping] = tuple(label_supports(hierarchy, labels) for hierarchy, labels in pairs)
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
    listed = _listed(hierarchy, text)
    if len(listed) == coverage:
        return listed
    raise UsageError(f"it is not known which {coverage} values of {hierarchy.attribute!r} a label stands for")


def _listed(hierarchy: Hierarchy, text: str) -> Ints:
    """The codes of a range or of a set, as `methods/_rows/group_labels.py` writes them."""
    code = {value: i + 1 for i, value in enumerate(hierarchy.values)}
    if text.startswith("{") and text.endswith("}"):
        values = text[1:-1].split(", ")
        if not all(value in code for value in values):
            try:
                values = json.loads(f"[{text[1:-1]}]")
            except ValueError:
                values = []
        if values and all(value in code for value in values):
            return np.array(sorted(code[value] for value in values), dtype=np.int64)
    for between in ("..", "-"):
        low, found, high = text.partition(between)
        if found and low in code and high in code:
            return np.arange(code[low], code[high] + 1, dtype=np.int64)
    return np.empty(0, dtype=np.int64)
