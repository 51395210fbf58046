"""What each generalised class tells by itself: one threshold in closed form, any requirement by counting or drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._shared.original_classes import ClassSpread, Mixed
from maskwright.attacks._shared.thresholds import Threshold
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.model import Context, Model
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.counting.general_credibility import (
    LocalCredibility,
    OtherClass,
    any_requirement_credibility,
    one_set_credibility,
)
from maskwright.worlds.counting.multisets import Counts, Test, memoised_test

Arithmetic = Literal["exact", "float", "sampled"]
CELLS = 400_000  # values that are dealt at a time
RISK = 0.01  # that any of the sampled beliefs lies outside of its interval


@dataclass(frozen=True, eq=False)
class Told:
    """What a generalised class tells about the rows of each original class in it.

    Attributes:
        group: the class.
        kind: of each item, which values are told apart; −1: none of this class.
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


@dataclass(frozen=True, eq=False)
class Requirement:
    """What an original class may have violated.

    Attributes:
        models: those that looked at sensitive values.
        thresholds: the same as thresholds, where they are such; otherwise None.
        context: of the models.
        least: classes with fewer people violate it, whatever their values.
        draws: how many worlds are drawn where they cannot be counted.
    """

    models: Sequence[Model]
    thresholds: Sequence[Threshold] | None
    context: Context
    least: int
    draws: int


class Teller:
    """Asks every mixed class of a release what it tells."""

    def __init__(self, spread: ClassSpread, requirement: Requirement) -> None:
        self.spread, self.requirement = spread, requirement
        self.passes = memoised_test(self._test)
        self.rng = np.random.default_rng(0)  # the draws are no secret, and a report should be repeatable

    def all(self, secrets: int) -> list[Told]:
        """The credibility of each class that gives anything away; intervals hold for all beliefs in so many secrets."""
        asked = max(1, secrets * int(self.spread.mixed[self.spread.group].sum()))
        found = []
        for group in np.flatnonzero(self.spread.mixed).tolist():
            mixed = self.spread.mixed_class(group)
            if (mixed.sizes < self.requirement.least).any():
                continue  # a class that is too small explains everything, whatever its values
            try:
                told = self._counted(mixed)
            except TooManyWorlds:
                told = self._drawn(mixed, asked)
            if told is not None:
                found.append(told)
        return found

    def _counted(self, mixed: Mixed) -> Told | None:
        thresholds = self.requirement.thresholds
        if thresholds is None:
            kind = np.where(mixed.held > 0, np.cumsum(mixed.held > 0) - 1, -1)
            item = {k: i for i, k in enumerate(mixed.labelled(kind).tolist())}
            return self._any(mixed, kind, lambda counts: self.passes({item[v]: c for v, c in counts.items()}))
        able = [t for t in thresholds if self._able(t, mixed)]
        if not able:
            return None
        if len(able) == 1:
            return self._one_set(mixed, able[0])
        kind = self._kinds(able, mixed.held)
        return self._any(mixed, kind, self._threshold_test(able, mixed.labelled(kind)))

    def _inside(self, threshold: Threshold) -> NDArray[np.bool_]:
        return np.isin(self.spread.cells.codes[threshold.attribute], list(threshold.codes))

    def _able(self, threshold: Threshold, mixed: Mixed) -> bool:
        """Could some original class hold more than the threshold allows?"""
        inside = self._inside(threshold)
        most = np.minimum(mixed.rows, mixed.held[inside].sum()) + mixed.known[:, inside].sum(axis=1)
        for members in mixed.elsewhere.values():
            for i, n in members.items():
                most[i] += n
        return bool((most > threshold.caps(mixed.sizes)).any())

    def _one_set(self, mixed: Mixed, threshold: Threshold) -> Told | None:
        inside = self._inside(threshold)
        caps = threshold.caps(mixed.sizes) - mixed.known[:, inside].sum(axis=1)
        others = []
        for other, members in mixed.elsewhere.items():
            there = self.spread.held(other)
            others.append(OtherClass(members, int(there.sum()), int(there[inside].sum())))
        found = one_set_credibility(mixed.rows.tolist(), caps.tolist(), int(mixed.held[inside].sum()), others)
        if found is None:
            return None
        kind = np.where(mixed.held > 0, inside.astype(np.int64), -1)
        return Told(mixed.group, kind, found, arithmetic="float" if found.relative_error else "exact")

    def _kinds(self, thresholds: Sequence[Threshold], held: Ints) -> Ints:
        """Items that belong to the same sets are of one kind."""
        signs, there = np.stack([self._inside(t) for t in thresholds]), np.flatnonzero(held)
        _, number = np.unique(signs[:, there], axis=1, return_inverse=True)
        kind = np.full(len(held), -1, dtype=np.int64)
        kind[there] = number.reshape(-1)
        return kind

    def _any(self, mixed: Mixed, kind: Ints, passes: Test) -> Told | None:
        """Any requirement, by counting multisets."""
        if mixed.elsewhere:
            raise TooManyWorlds("an original class is generalised to several values; draw")
        labelled = mixed.labelled(kind)
        known = [np.repeat(labelled, row).tolist() for row in mixed.known]
        found = any_requirement_credibility(
            mixed.rows.tolist(), np.repeat(kind, mixed.held).tolist(), known, passes
        )
        return None if found is None else Told(mixed.group, kind, found)

    def _threshold_test(self, thresholds: Sequence[Threshold], labelled: Ints) -> Test:
        members = [(frozenset(labelled[self._inside(t)].tolist()), t.share) for t in thresholds]

        def _passes(counts: Counts) -> bool:
            n = sum(counts.values())
            return all(sum(c for v, c in counts.items() if v in m) <= share * n for m, share in members)

        return _passes

    def _test(self, counts: Counts) -> bool:
        """Does a class with these items pass every model?"""
        items = np.array(list(counts), dtype=np.int64)
        rows = np.array(list(counts.values()), dtype=np.int64)
        return bool(self.passing(np.zeros(len(items), np.int64), items, rows, 1)[0])

    def passing(self, owner: Ints, items: Ints, rows: Ints, n: int) -> NDArray[np.bool_]:
        """Whether each of n classes passes every model, given their items."""
        need, codes = self.requirement, self.spread.cells.codes
        sizes = np.bincount(owner, rows, n).astype(np.int64)
        if need.thresholds is not None:
            kept = np.ones(n, dtype=bool)
            for t in need.thresholds:
                held = np.bincount(owner, np.where(self._inside(t)[items], rows, 0), n).astype(np.int64)
                kept &= held <= t.caps(sizes)
            return kept
        sensitive = {
            name: ValueCounts.collect(need.context.domains[name], n, owner, code[items], rows)
            for name, code in codes.items()
        }
        classes = Classes(sizes, sizes, sensitive)
        result = np.ones(n, dtype=bool)
        for model in need.models:
            result &= model.passing(classes, need.context)
        return result

    def _drawn(self, mixed: Mixed, asked: int) -> Told:
        """Draw worlds independently and keep those in which some class fails."""
        draw, wanted = _Draw(self, mixed), self.requirement.draws
        total, kept, drawn = np.zeros((len(mixed.rows), len(mixed.held))), 0, 0
        while kept < wanted and drawn < 20 * wanted:
            n = max(1, min(wanted, CELLS // int(mixed.rows.sum())))
            good, counts = draw.worlds(n)
            drawn, kept, total = drawn + n, kept + good, total + counts
        there = mixed.held > 0
        kind = np.where(there, np.cumsum(there) - 1, -1)
        if not kept:  # no world was seen that explains the class, so that nothing can be said
            even = dict(enumerate((mixed.held / mixed.held.sum())[there].tolist()))
            return Told(
                mixed.group, kind, LocalCredibility([even] * len(mixed.rows), 1 / drawn), 1.0, "sampled"
            )
        shares = (total / (kept * mixed.rows[:, None]))[:, there].tolist()
        half = math.sqrt(math.log(2 * asked / RISK) / (2 * kept))  # Hoeffding, for all beliefs at once
        return Told(
            mixed.group,
            kind,
            LocalCredibility([dict(enumerate(s)) for s in shares], kept / drawn),
            half,
            "sampled",
        )


class _Draw:
    """Worlds of one mixed class, and of the others that hold rows of the same original classes."""

    def __init__(self, teller: Teller, mixed: Mixed) -> None:
        self.teller, self.shape = teller, (len(mixed.rows), len(mixed.held))
        self.values = np.repeat(np.arange(len(mixed.held)), mixed.held)
        self.owner = np.repeat(np.arange(len(mixed.rows)), mixed.rows)
        who, what = np.nonzero(mixed.known)
        self.known = who, what, mixed.known[who, what]
        self.others: list[tuple[Ints, Ints]] = []
        for other, members in mixed.elsewhere.items():
            there = teller.spread.held(other)
            places = np.repeat(list(members), list(members.values()))
            self.others.append((np.repeat(np.arange(len(there)), there), places))

    def worlds(self, n: int) -> tuple[int, NDArray[np.float64]]:
        """The number of worlds kept of n, and original class × item → rows in this group, over all of them."""
        rng, (u, n_items) = self.teller.rng, self.shape
        first = np.arange(n)[:, None] * u
        dealt = rng.permuted(np.tile(self.values, (n, 1)), axis=1)
        owners, items = [(first + self.owner).reshape(-1)], [dealt.reshape(-1)]
        for values, places in self.others:
            there = rng.permuted(np.tile(values, (n, 1)), axis=1)[:, : len(places)]
            owners.append((first + places).reshape(-1))
            items.append(there.reshape(-1))
        rows = [np.ones(len(x), dtype=np.int64) for x in items]
        who, what, many = self.known
        owners.append((first + who).reshape(-1))
        items.append(np.tile(what, n))
        rows.append(np.tile(many, n))
        everything = np.concatenate(owners), np.concatenate(items), np.concatenate(rows)
        passing = self.teller.passing(*everything, n * u)
        kept = dealt[~passing.reshape(n, u).all(axis=1)]
        counts = np.bincount((self.owner * n_items + kept).reshape(-1), minlength=u * n_items)
        return len(kept), counts.reshape(u, n_items).astype(np.float64)
