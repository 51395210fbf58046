"""Beliefs about the original classes that local recoding generalised, from what each generalised class tells.

Only secrets that some published class of an original class holds are looked at, so that thousands of different values
cost no more than a few: all other beliefs are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._shared.findings import Finding, belief_limit, worse_elsewhere
from maskwright.attacks._shared.original_classes import ClassesInGroups, Mixed, SetsOfItems
from maskwright.attacks._shared.secrets import Secrets, in_words, label_text
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Ints
from maskwright.domain.exact import number_text
from maskwright.worlds.counting.credibility import Number
from maskwright.worlds.counting.general_credibility import LocalCredibility

Arithmetic = Literal["exact", "float", "sampled"]
ASSUMPTION = (
    "a class is generalised only where an original class in it violates the requirement, and which of its rows are "
    "generalised is decided without a look at their values"
)


@dataclass(frozen=True, eq=False)
class ClassCredibility:
    """What a generalised class tells about the rows of each original class in it.

    Attributes:
        group: the class.
        kind: of each item of the class (`ClassesInGroups.held`), which values are told apart.
        alone: the expected shares of the kinds, and the probability of a violation.
        half: half the width of the interval around every share that was drawn; 0: counted.
        arithmetic: how it was found.
    """

    group: int
    kind: Ints
    alone: LocalCredibility
    half: float = 0.0
    arithmetic: Arithmetic = "exact"

    def matrix(self) -> NDArray[np.float64]:
        """The shares as a matrix, original class × kind."""
        kinds = int(self.kind.max()) + 1
        return np.array([[float(row.get(k, 0)) for k in range(kinds)] for row in self.alone.shares])

    @staticmethod
    def of(mixed: Mixed, kind: Ints, alone: LocalCredibility, half: float = 0.0) -> ClassCredibility:
        """What was counted; with an interval, what was drawn. Kinds are those of all items of `mixed`."""
        how: Arithmetic = "sampled" if half else "float" if alone.relative_error else "exact"
        return ClassCredibility(mixed.group, kind[mixed.held > 0], alone, half, how)


@dataclass(eq=False)
class Credible:
    """The belief in every secret about every original class that was generalised, wholly or in part."""

    target: Target
    spread: ClassesInGroups
    secrets: Secrets
    told: Sequence[ClassCredibility]

    def __post_init__(self) -> None:
        spread = self.spread
        self.classes = np.array(sorted(spread.entries_of), dtype=np.int64)
        self.place = np.full(spread.cells.n_tuples, -1, dtype=np.int64)
        self.place[self.classes] = np.arange(len(self.classes))
        self.by_group = {t.group: t for t in self.told}
        self.sets = self._sets_of_items()
        self.sizes = spread.sizes[self.classes]
        self.half = np.zeros(len(self.classes))
        place, items, rows = spread.known(self.classes)
        which, secret = self.sets.each(items)
        keys, amounts = [self._key(place[which], secret)], [rows[which].astype(np.float64)]
        for group in np.flatnonzero(spread.mixed).tolist():
            part, told = spread.parts(group), self.by_group.get(group)
            where = self.place[spread.classes[part]]
            secret, shares = self._shares(group, told)
            keys.append(self._key(where[:, None], secret).reshape(-1))
            amounts.append((spread.rows[part][:, None] * shares).reshape(-1))
            if told is not None:
                self.half[where] += spread.rows[part] * told.half
        self.half = self.half / self.sizes
        self._collect(np.concatenate(keys), np.concatenate(amounts), keys[0], amounts[0])

    def _key(self, place: Ints, secret: Ints) -> Ints:
        """One number for a class and a secret."""
        return place * max(1, len(self.secrets.sets)) + secret

    def _collect(
        self, keys: Ints, amounts: NDArray[np.float64], known: Ints, rows: NDArray[np.float64]
    ) -> None:
        """One entry for each class and secret: `at`, `secret`, the rows that are known, and the belief."""
        if self.secrets.sets:  # the first secret stands for all that nobody of a class may hold
            bare = np.setdiff1d(np.arange(len(self.classes)), keys // len(self.secrets.sets))
            keys = np.concatenate([keys, self._key(bare, np.zeros_like(bare))])
            amounts = np.concatenate([amounts, np.zeros(len(bare))])
        self.keys, where = np.unique(keys, return_inverse=True)
        held = np.bincount(where.reshape(-1), amounts, len(self.keys))
        self.at, self.secret = np.divmod(self.keys, max(1, len(self.secrets.sets)))
        self.known = np.bincount(np.searchsorted(self.keys, known), rows, len(self.keys)).astype(np.int64)
        self.values = held / self.sizes[self.at]
        self.upper = self.values + self.half[self.at]

    def _sets_of_items(self) -> SetsOfItems:
        """The secrets that each item belongs to."""
        counts = self.target.grouping.classes.sensitive[self.secrets.attribute]
        number = {v: i + 1 for i, v in enumerate(counts.values)}
        codes = [{number[v] for v in members if v in number} for members in self.secrets.sets]
        return SetsOfItems.of(self.spread.cells, [(self.secrets.attribute, c) for c in codes])

    def _shares(self, group: int, told: ClassCredibility | None) -> tuple[Ints, NDArray[np.float64]]:
        """The secrets of a mixed group; original class × one of them; inside a kind all values are spread evenly."""
        items, held = self.spread.held(group)
        place, numbers = self.sets.each(items)
        secrets, where = np.unique(numbers, return_inverse=True)
        inside = np.zeros((len(items), len(secrets)), dtype=np.int64)
        inside[place, where.reshape(-1)] = 1
        if told is None:
            return secrets, ((held @ inside) / held.sum())[None, :]
        kinds = int(told.kind.max()) + 1
        total = np.bincount(told.kind, held, kinds)
        mine = np.zeros((kinds, len(secrets)))
        np.add.at(mine, told.kind, held[:, None] * inside)
        return secrets, told.matrix() @ (mine / np.maximum(total, 1)[:, None])

    def _entry(self, at: int, s: int) -> int | None:
        """The entry of a class and a secret; None where nobody of the class may hold it."""
        key = at * max(1, len(self.secrets.sets)) + s
        e = int(np.searchsorted(self.keys, key))
        return e if e < len(self.keys) and self.keys[e] == key else None

    def value(self, at: int, s: int) -> float:
        """The belief of a class and a secret, to the precision of a float."""
        e = self._entry(at, s)
        return 0.0 if e is None else float(self.values[e])

    def exact(self, at: int, s: int) -> Fraction:
        """One belief in fractions, as far as what was counted is exact."""
        spread, c = self.spread, int(self.classes[at])
        entry = self._entry(at, s)
        held = Fraction(0 if entry is None else int(self.known[entry]))
        for e in spread.entries_of[c]:
            group = int(spread.group[e])
            (items, rows), told = spread.held(group), self.by_group.get(group)
            inside = self.sets.inside(items, s)
            if told is None:
                share: Number = Fraction(int(rows[inside].sum()), int(rows.sum()))
            else:
                row = told.alone.shares[e - int(spread.start[group])]
                share = Fraction(0)
                for k, p in row.items():
                    of_kind = told.kind == k
                    if total := int(rows[of_kind].sum()):
                        share += Fraction(p) * Fraction(int(rows[of_kind & inside].sum()), total)
            held += int(spread.rows[e]) * Fraction(share)
        return held / int(self.sizes[at])

    def worst(self) -> tuple[int, int] | None:
        """The original class and the secret of the largest belief; for what was sampled its upper end counts."""
        if not self.values.size:
            return None
        upper = np.minimum(self.upper, 1)
        near = np.flatnonzero(upper >= upper.max() * (1 - 1e-9))
        known: dict[tuple[float, float, int], Fraction] = {}
        best: tuple[Fraction, int, int] | None = None
        for e in near.tolist():
            at, s = int(self.at[e]), int(self.secret[e])
            key = float(self.values[e]), float(self.half[at]), int(self.sizes[at])
            if key not in known:
                known[key] = self.exact(at, s) + Fraction(float(self.half[at]))
                if best is None or known[key] > best[0]:
                    best = known[key], at, s
        return None if best is None else best[1:]

    @cached_property
    def above(self) -> NDArray[np.bool_]:
        """Whether the belief of each entry is above the policy's bound."""
        bound = belief_limit(self.target, self.secrets)
        over: NDArray[np.bool_] = self.upper > float(bound) + 1e-9
        if all(t.arithmetic == "exact" for t in self.told):
            for e in np.flatnonzero(abs(self.upper - float(bound)) <= 1e-9).tolist():
                over[e] = self.exact(int(self.at[e]), int(self.secret[e])) > bound
        return over

    def problematic(self) -> dict[str, Any]:
        """The sensitive rows in original classes with a credibility above the bound, as the paper counts them.

        What was sampled counts when it may be above; `beyond_doubt` are the rows whose whole interval is.
        """
        over, half = self.above, self.half[self.at]
        beyond = self.values - half > float(belief_limit(self.target, self.secrets)) + 1e-9
        certain = over & ((half == 0) | beyond)
        return {
            "attribute": self.secrets.attribute,
            "original_classes": len(np.unique(self.at[over])),
            **self._counted(over),
            "beyond_doubt": self._counted(certain),
        }

    def _counted(self, over: NDArray[np.bool_]) -> dict[str, Any]:
        """The sensitive rows in these original classes, and their average credibility."""
        rows = np.where(over, self._true, 0)
        whole = int(self.secrets.reference[1:].sum())
        return {
            "sensitive_rows": int(rows.sum()),
            "share_of_sensitive_rows": Fraction(int(rows.sum()), whole) if whole else Fraction(0),
            "average_credibility": float((rows * self.values).sum() / rows.sum()) if rows.any() else None,
        }

    @cached_property
    def _true(self) -> Ints:
        """The rows of each entry's class that truly have its secret."""
        cells = self.spread.cells
        there = self.place[cells.tuples] >= 0
        which, secret = self.sets.each(cells.items[there])
        keys = self._key(self.place[cells.tuples[there]][which], secret)
        rows = np.bincount(np.searchsorted(self.keys, keys), cells.rows[there][which], len(self.keys))
        return rows.astype(np.int64)

    def finding(self, reason: str) -> Finding:
        """The worst belief in words; classes that were published as they are show what they show."""
        others = ~self.spread.mixed
        worst = self.worst()
        if worst is None:
            return worse_elsewhere(self.target, self.secrets, others, None)
        at, s = worst
        vulnerable = int(self.sizes[np.unique(self.at[self.above])].sum())
        found = Finding(self._in_words(at, s, reason), "estimated", vulnerable)
        return worse_elsewhere(self.target, self.secrets, others, found)

    def _in_words(self, at: int, s: int, reason: str) -> Belief:
        spread, c = self.spread, int(self.classes[at])
        entries = spread.entries_of[c]
        e = max(entries, key=lambda e: int(spread.rows[e]))
        group, n = int(spread.group[e]), int(self.sizes[at])
        items, held = spread.held(group)
        shown = Fraction(int(held[self.sets.inside(items, s)].sum()), int(held.sum()))
        grouping = self.target.grouping
        labels = [
            f"{h.attribute} {label_text(h.levels[0].labels[h.levels[0].blocks[codes[c]]])}"
            for h, codes in zip(grouping.summary.attributes, grouping.summary.codes, strict=True)
        ]
        who = "the only person" if n == 1 else f"each of the {n} people"
        part = "" if int(spread.rows[e]) == n else f"{int(spread.rows[e])} of them "
        reason = f"; but it was generalised, so {reason} violates the requirement" if self.told else ""
        why = (
            f"{part}published with {in_words(grouping, group)}, where {number_text(shown)} have "
            f"{self.secrets.name(s + 1)}{reason} (assuming that {ASSUMPTION})"
        )
        after, half = self.exact(at, s), float(self.half[at])
        interval = None if not half else (max(0.0, float(after) - half), min(1.0, float(after) + half))
        whom = f"{who} with {', '.join(labels)}"
        return Belief(self.secrets.before(s + 1), after, whom, why, interval)
