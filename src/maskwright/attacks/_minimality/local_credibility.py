"""Credibility of a release by local recoding: per class, as in the paper, and for the release as a whole [Wong 2007].

Every generalised class needs a reason of its own: some original class in it, all its rows counted, violates the
requirement. The worlds assume that *which* rows of a class were generalised was decided without a look at their values.
No concrete algorithm promises that, so the result is called estimated, however exactly it was counted.

The credibility of a class by itself is found in closed form for one threshold, and by counting or drawing worlds for
any other requirement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._minimality.original_class_beliefs import (
    ASSUMPTION,
    Arithmetic,
    ClassCredibility,
    Credible,
)
from maskwright.attacks._minimality.refusals import looked_at_values
from maskwright.attacks._shared.findings import Finding
from maskwright.attacks._shared.original_classes import ClassesInGroups, Mixed, SetsOfItems, cells_of
from maskwright.attacks._shared.secrets import Secrets
from maskwright.attacks._shared.thresholds import Threshold, share_caps, thresholds_of
from maskwright.domain.adversary import Target
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.model import Context, Model
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.counting.credibility import Number, violation_weights
from maskwright.worlds.counting.general_credibility import (
    LocalCredibility,
    OtherClass,
    any_requirement_credibility,
    one_set_credibility,
)
from maskwright.worlds.counting.multisets import Counts, Test, memoised_test

CELLS = 400_000  # values that are dealt at a time
RISK = 0.01  # that any of the sampled beliefs lies outside of its interval


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

    def __init__(self, spread: ClassesInGroups, requirement: Requirement) -> None:
        self.spread, self.requirement = spread, requirement
        self.passes = memoised_test(self._test)
        rules = requirement.thresholds or ()
        self.sets = SetsOfItems.of(spread.cells, [(t.attribute, t.codes) for t in rules])
        self.shares, self.share_of = _numbered([t.share for t in rules])
        self.rng = np.random.default_rng(0)  # the draws are no secret, and a report should be repeatable

    def all(self, secrets: int) -> list[ClassCredibility]:
        """The credibility of each class that gives anything away; intervals hold for all beliefs in so many secrets."""
        asked = max(1, secrets * int(self.spread.mixed[self.spread.group].sum()))
        found = []
        for group in np.flatnonzero(self.spread.mixed).tolist():
            sizes = self.spread.sizes[self.spread.classes[self.spread.parts(group)]]
            if (sizes < self.requirement.least).any():
                continue  # a class that is too small explains everything, whatever its values
            mixed = self.spread.mixed_class(group)
            try:
                told = self._counted(mixed)
            except TooManyWorlds:
                told = self._drawn(mixed, asked)
            if told is not None:
                found.append(told)
        return found

    def _counted(self, mixed: Mixed) -> ClassCredibility | None:
        thresholds = self.requirement.thresholds
        if thresholds is None:
            kind = np.where(mixed.held > 0, np.cumsum(mixed.held > 0) - 1, -1)
            item = dict(zip(mixed.labelled(kind).tolist(), mixed.items.tolist(), strict=True))
            return self._any(mixed, kind, lambda counts: self.passes({item[v]: c for v, c in counts.items()}))
        able = self._able(mixed)
        if not able:
            return None
        if len(able) == 1:
            return self._one_set(mixed, able[0])
        kind = self._kinds(able, mixed)
        return self._any(mixed, kind, self._threshold_test(able, mixed, kind))

    def _caps(self, numbers: Ints, sizes: Ints) -> Ints:
        """The most that classes of these sizes may hold of these thresholds, one by one."""
        caps = np.zeros(len(numbers), dtype=np.int64)
        for share in np.unique(self.share_of[numbers]).tolist():
            there = self.share_of[numbers] == share
            caps[there] = share_caps(self.shares[share], sizes[there])
        return caps

    def _able(self, mixed: Mixed) -> list[int]:
        """The thresholds that some original class could exceed, by what its groups hold."""
        place, numbers = self.sets.each(mixed.items)
        others = {other: self._in_sets(*self.spread.held(other)) for other in mixed.elsewhere}
        known = np.unique(np.concatenate([numbers, *(there for there, _ in others.values())]))
        where = np.searchsorted(known, numbers)
        held = np.bincount(where, mixed.held[place], len(known)).astype(np.int64)
        most = np.minimum(mixed.rows[:, None], held)
        np.add.at(most.T, where, mixed.known[:, place].T)
        for other, members in mixed.elsewhere.items():
            there, many = others[other]
            for i, n in members.items():
                most[i, np.searchsorted(known, there)] += np.minimum(n, many)
        every = np.broadcast_to(known, most.shape).reshape(-1)
        caps = self._caps(every, np.repeat(mixed.sizes, len(known))).reshape(most.shape)
        able: list[int] = known[(most > caps).any(axis=0)].tolist()
        return able

    def _in_sets(self, items: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """The thresholds with a value among these items, and the rows of each."""
        place, numbers = self.sets.each(items)
        there, where = np.unique(numbers, return_inverse=True)
        return there, np.bincount(where.reshape(-1), rows[place], len(there)).astype(np.int64)

    def _one_set(self, mixed: Mixed, threshold: int) -> ClassCredibility | None:
        inside = self.sets.inside(mixed.items, threshold)
        number = np.full(len(mixed.rows), threshold)
        caps = self._caps(number, mixed.sizes) - mixed.known[:, inside].sum(axis=1)
        others = []
        for other, members in mixed.elsewhere.items():
            items, there = self.spread.held(other)
            sensitive = int(there[self.sets.inside(items, threshold)].sum())
            others.append(OtherClass(members, int(there.sum()), sensitive))
        found = one_set_credibility(mixed.rows.tolist(), caps.tolist(), int(mixed.held[inside].sum()), others)
        return None if found is None else ClassCredibility.of(mixed, inside.astype(np.int64), found)

    def _kinds(self, thresholds: Sequence[int], mixed: Mixed) -> Ints:
        """Items that belong to the same sets are of one kind."""
        there = np.flatnonzero(mixed.held)
        signs = np.stack([self.sets.inside(mixed.items[there], t) for t in thresholds])
        _, number = np.unique(signs, axis=1, return_inverse=True)
        kind = np.full(len(mixed.held), -1, dtype=np.int64)
        kind[there] = number.reshape(-1)
        return kind

    def _any(self, mixed: Mixed, kind: Ints, passes: Test) -> ClassCredibility | None:
        """Any requirement, by counting multisets."""
        if mixed.elsewhere:
            raise TooManyWorlds("an original class is generalised to several values; draw")
        labelled = mixed.labelled(kind)
        known = [np.repeat(labelled, row).tolist() for row in mixed.known]
        found = any_requirement_credibility(
            mixed.rows.tolist(), np.repeat(kind, mixed.held).tolist(), known, passes
        )
        return None if found is None else ClassCredibility.of(mixed, kind, found)

    def _threshold_test(self, thresholds: Sequence[int], mixed: Mixed, kind: Ints) -> Test:
        labelled = mixed.labelled(kind)
        members = [
            (frozenset(labelled[self.sets.inside(mixed.items, t)].tolist()), self.shares[self.share_of[t]])
            for t in thresholds
        ]

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
            place, numbers = self.sets.each(items)
            key, where = np.unique(owner[place] * len(need.thresholds) + numbers, return_inverse=True)
            held = np.bincount(where.reshape(-1), rows[place], len(key)).astype(np.int64)
            classes, numbers = np.divmod(key, max(1, len(need.thresholds)))
            kept = np.ones(n, dtype=bool)
            kept[classes[held > self._caps(numbers, sizes[classes])]] = False
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

    def _drawn(self, mixed: Mixed, asked: int) -> ClassCredibility:
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
            return ClassCredibility.of(
                mixed, kind, LocalCredibility([even] * len(mixed.rows), 1 / drawn), 1.0
            )
        shares = (total / (kept * mixed.rows[:, None]))[:, there].tolist()
        half = math.sqrt(math.log(2 * asked / RISK) / (2 * kept))  # Hoeffding, for all beliefs at once
        found = LocalCredibility([dict(enumerate(s)) for s in shares], kept / drawn)
        return ClassCredibility.of(mixed, kind, found, half)


class _Draw:
    """Worlds of one mixed class, and of the others that hold rows of the same original classes."""

    def __init__(self, teller: Teller, mixed: Mixed) -> None:
        self.teller, self.shape, self.items = teller, (len(mixed.rows), len(mixed.held)), mixed.items
        self.values = np.repeat(np.arange(len(mixed.held)), mixed.held)
        self.owner = np.repeat(np.arange(len(mixed.rows)), mixed.rows)
        who, what = np.nonzero(mixed.known)
        self.known = who, mixed.items[what], mixed.known[who, what]
        self.others: list[tuple[Ints, Ints]] = []
        for other, members in mixed.elsewhere.items():
            places = np.repeat(list(members), list(members.values()))
            self.others.append((np.repeat(*teller.spread.held(other)), places))

    def worlds(self, n: int) -> tuple[int, NDArray[np.float64]]:
        """The number of worlds kept of n, and original class × item → rows in this group, over all of them."""
        rng, (u, n_items) = self.teller.rng, self.shape
        first = np.arange(n)[:, None] * u
        dealt = rng.permuted(np.tile(self.values, (n, 1)), axis=1)
        owners, items = [(first + self.owner).reshape(-1)], [self.items[dealt].reshape(-1)]
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


def recoded_locally(target: Target) -> bool:
    """Whether the method generalises class by class, under a requirement about values."""
    method, looked = target.method, looked_at_values(target.models)
    if method is None or method.decisions().shape != "local" or not looked or cells_of(target) is None:
        return False
    if method.options().get("anatomize"):  # its buckets are not what the method decided about
        return False
    return all(m.is_local() and not m.needs() for m in looked)


def requirement_of(target: Target, draws: int) -> Requirement:
    """The requirement that the method asked of a class."""
    looked = looked_at_values(target.models)
    rules = thresholds_of(looked, target.context)
    return Requirement(looked, rules, target.context, target.least_people, draws)


def local_findings(
    target: Target, secrets: Sequence[Secrets], requirement: Requirement
) -> tuple[list[Finding], dict[str, Any]]:
    """The worst belief in each column, one generalised class at a time; and figures to put beside it."""
    cells = cells_of(target)
    if cells is None:
        raise ValueError("it is not known which values belong to one row")
    spread = ClassesInGroups.of(cells)
    told = Teller(spread, requirement).all(sum(len(s.sets) for s in secrets))
    alone = [Credible(target, spread, s, told) for s in secrets]
    anywhere = _anywhere(told, spread)
    whole = [Credible(target, spread, s, anywhere) for s in secrets] if told else alone
    several = sum(len(entries) > 1 for entries in spread.entries_of.values())
    found = [c.finding("a class in it") for c in alone]
    measures = {
        "generalised classes": int(spread.mixed.sum()),
        "of them explained by a violation": len(told),
        "original classes in them": len(spread.entries_of),
        "original classes generalised to several values": several,
        "sampled classes": sum(t.arithmetic == "sampled" for t in told),
        "per class (paper)": [f.as_measure() for f in found],
        "problematic": [c.problematic() for c in alone],
        "whole release": [c.finding("a class of the release").as_measure() for c in whole],
        "assumption": ASSUMPTION,
    }
    return found, measures


def _numbered(shares: Sequence[Fraction]) -> tuple[list[Fraction], Ints]:
    """The different shares, and the number of each one's."""
    number = {share: i for i, share in enumerate(dict.fromkeys(shares))}
    return list(number), np.array([number[share] for share in shares], dtype=np.int64)


def _anywhere(told: Sequence[ClassCredibility], spread: ClassesInGroups) -> list[ClassCredibility]:
    """The credibility of classes when it is known only that some class of the release violates."""
    if not told:
        return []
    exactly = all(t.arithmetic == "exact" for t in told)
    anywhere, weights = violation_weights([t.alone.violation for t in told])
    found = []
    for t, here in zip(told, weights, strict=True):
        held = np.bincount(t.kind, spread.held(t.group)[1]).astype(np.int64).tolist()
        rows = []
        for row in t.alone.shares:
            mine: dict[Any, Number] = {}
            for k, n in enumerate(held):
                even = Fraction(n, sum(held))
                mine[k] = here * row.get(k, 0) + (1 - here) * even
            rows.append(mine)
        how: Arithmetic = "sampled" if t.arithmetic == "sampled" else "float"
        if exactly and isinstance(here, Fraction):
            how = "exact"
        found.append(ClassCredibility(t.group, t.kind, LocalCredibility(rows, anywhere), t.half, how))
    return found


def readable_thresholds(target: Target, secrets: Sequence[Secrets]) -> list[Threshold]:
    """The strictest share of every secret that all published classes satisfy: what can be read off a release."""
    found = []
    for s in secrets:
        values = target.grouping.classes.sensitive[s.attribute].values
        shares = s.shares()
        for code, members in enumerate(s.sets, start=1):
            mine = np.flatnonzero(s.counts.codes == code)
            if len(mine):
                largest = max(shares[int(e)] for e in mine)
                codes = frozenset(i + 1 for i, v in enumerate(values) if v in members)
                found.append(Threshold(s.attribute, codes, largest))
    return found
