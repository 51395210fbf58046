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
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._minimality.refusals import looked_at_values
from maskwright.attacks._shared.findings import Finding, belief_limit, worse_elsewhere
from maskwright.attacks._shared.original_classes import ClassesInGroups, Mixed, cells_of
from maskwright.attacks._shared.secrets import Secrets, in_words, label_text
from maskwright.attacks._shared.thresholds import Threshold, thresholds_of
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.exact import number_text
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

Arithmetic = Literal["exact", "float", "sampled"]
CELLS = 400_000  # values that are dealt at a time
RISK = 0.01  # that any of the sampled beliefs lies outside of its interval


@dataclass(frozen=True, eq=False)
class ClassCredibility:
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

    def __init__(self, spread: ClassesInGroups, requirement: Requirement) -> None:
        self.spread, self.requirement = spread, requirement
        self.passes = memoised_test(self._test)
        self.rng = np.random.default_rng(0)  # the draws are no secret, and a report should be repeatable

    def all(self, secrets: int) -> list[ClassCredibility]:
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

    def _counted(self, mixed: Mixed) -> ClassCredibility | None:
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

    def _one_set(self, mixed: Mixed, threshold: Threshold) -> ClassCredibility | None:
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
        return ClassCredibility(
            mixed.group, kind, found, arithmetic="float" if found.relative_error else "exact"
        )

    def _kinds(self, thresholds: Sequence[Threshold], held: Ints) -> Ints:
        """Items that belong to the same sets are of one kind."""
        signs, there = np.stack([self._inside(t) for t in thresholds]), np.flatnonzero(held)
        _, number = np.unique(signs[:, there], axis=1, return_inverse=True)
        kind = np.full(len(held), -1, dtype=np.int64)
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
        return None if found is None else ClassCredibility(mixed.group, kind, found)

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
            return ClassCredibility(
                mixed.group, kind, LocalCredibility([even] * len(mixed.rows), 1 / drawn), 1.0, "sampled"
            )
        shares = (total / (kept * mixed.rows[:, None]))[:, there].tolist()
        half = math.sqrt(math.log(2 * asked / RISK) / (2 * kept))  # Hoeffding, for all beliefs at once
        return ClassCredibility(
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


ASSUMPTION = (
    "a class is generalised only where an original class in it violates the requirement, and which of its rows are "
    "generalised is decided without a look at their values"
)


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
    whole = [Credible(target, spread, s, _anywhere(told, spread)) for s in secrets]
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


def _anywhere(told: Sequence[ClassCredibility], spread: ClassesInGroups) -> list[ClassCredibility]:
    """The credibility of classes when it is known only that some class of the release violates."""
    if not told:
        return []
    exactly = all(t.arithmetic == "exact" for t in told)
    anywhere, weights = violation_weights([t.alone.violation for t in told])
    found = []
    for t, here in zip(told, weights, strict=True):
        held = np.bincount(t.kind[t.kind >= 0], spread.held(t.group)[t.kind >= 0]).astype(np.int64).tolist()
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
        self.inside = self._inside()
        self.known = spread.known(self.classes) @ self.inside
        self.sizes = spread.sizes[self.classes]
        held, half = self.known.astype(np.float64), np.zeros(len(self.classes))
        for group in np.flatnonzero(spread.mixed).tolist():
            part, told = spread.parts(group), self.by_group.get(group)
            where = self.place[spread.classes[part]]
            held[where] += spread.rows[part][:, None] * self._shares(group, told)
            if told is not None:
                half[where] += spread.rows[part] * told.half
        self.values = held / self.sizes[:, None]
        self.half = half / self.sizes

    def _inside(self) -> Ints:
        """Whether an item belongs to a secret, item × secret."""
        counts = self.target.grouping.classes.sensitive[self.secrets.attribute]
        codes = self.spread.cells.codes[self.secrets.attribute]
        number = {v: i + 1 for i, v in enumerate(counts.values)}
        table = np.zeros((len(codes), len(self.secrets.sets)), dtype=np.int64)
        for s, members in enumerate(self.secrets.sets):
            table[:, s] = np.isin(codes, [number[v] for v in members if v in number])
        return table

    def _shares(self, group: int, told: ClassCredibility | None) -> NDArray[np.float64]:
        """Original class × secret in one mixed group; inside a kind all values are spread evenly."""
        held = self.spread.held(group)
        if told is None:
            return np.broadcast_to((held @ self.inside) / held.sum(), (1, self.inside.shape[1]))
        kinds = int(told.kind.max()) + 1
        there = told.kind >= 0
        total = np.bincount(told.kind[there], held[there], kinds)
        mine = np.zeros((kinds, self.inside.shape[1]))
        np.add.at(mine, told.kind[there], held[there][:, None] * self.inside[there])
        return told.matrix() @ (mine / np.maximum(total, 1)[:, None])

    def exact(self, at: int, s: int) -> Fraction:
        """One belief in fractions, as far as what was counted is exact."""
        spread, c = self.spread, int(self.classes[at])
        held = Fraction(int(self.known[at, s]))
        for e in spread.entries_of[c]:
            group = int(spread.group[e])
            items, told = spread.held(group), self.by_group.get(group)
            inside = self.inside[:, s] > 0
            if told is None:
                share: Number = Fraction(int(items[inside].sum()), int(items.sum()))
            else:
                row = told.alone.shares[e - int(spread.start[group])]
                share = Fraction(0)
                for k, p in row.items():
                    of_kind = told.kind == k
                    if total := int(items[of_kind].sum()):
                        share += Fraction(p) * Fraction(int(items[of_kind & inside].sum()), total)
            held += int(spread.rows[e]) * Fraction(share)
        return held / int(self.sizes[at])

    def worst(self) -> tuple[int, int] | None:
        """The original class and the secret of the largest belief; for what was sampled its upper end counts."""
        if not self.values.size:
            return None
        upper = np.minimum(self.values + self.half[:, None], 1)
        near = np.argwhere(upper >= upper.max() * (1 - 1e-9)).tolist()
        known: dict[tuple[float, float, int], Fraction] = {}
        best: tuple[Fraction, int, int] | None = None
        for at, s in near:
            key = float(self.values[at, s]), float(self.half[at]), int(self.sizes[at])
            if key not in known:
                known[key] = self.exact(at, s) + Fraction(float(self.half[at]))
                if best is None or known[key] > best[0]:
                    best = known[key], at, s
        return None if best is None else best[1:]

    @cached_property
    def above(self) -> NDArray[np.bool_]:
        """Whether each belief, original class × secret, is above the policy's bound."""
        bound = belief_limit(self.target, self.secrets)
        upper = self.values + self.half[:, None]
        over: NDArray[np.bool_] = upper > float(bound) + 1e-9
        exactly = all(t.arithmetic == "exact" for t in self.told)
        for at, s in np.argwhere(exactly & (abs(upper - float(bound)) <= 1e-9)).tolist():
            over[at, s] = self.exact(at, s) > bound
        return over

    def problematic(self) -> dict[str, Any]:
        """The sensitive rows in original classes with a credibility above the bound, as the paper counts them.

        What was sampled counts when it may be above; `beyond_doubt` are the rows whose whole interval is.
        """
        over, doubtful = self.above, self.half > 0
        lower = self.values - self.half[:, None]
        certain = over & (
            ~doubtful[:, None] | (lower > float(belief_limit(self.target, self.secrets)) + 1e-9)
        )
        return {
            "attribute": self.secrets.attribute,
            "original_classes": int(over.any(axis=1).sum()),
            **self._counted(over),
            "beyond_doubt": self._counted(certain),
        }

    def _counted(self, over: NDArray[np.bool_]) -> dict[str, Any]:
        """The sensitive rows in these original classes, and their average credibility."""
        rows = np.where(over, self._true @ self.inside, 0)
        whole = int(self.secrets.reference[1:].sum())
        return {
            "sensitive_rows": int(rows.sum()),
            "share_of_sensitive_rows": Fraction(int(rows.sum()), whole) if whole else Fraction(0),
            "average_credibility": float((rows * self.values).sum() / rows.sum()) if rows.any() else None,
        }

    @cached_property
    def _true(self) -> Ints:
        """Original class × item → rows that truly have it."""
        true = np.zeros((len(self.classes), self.inside.shape[0]), dtype=np.int64)
        cells = self.spread.cells
        there = self.place[cells.tuples] >= 0
        np.add.at(true, (self.place[cells.tuples[there]], cells.items[there]), cells.rows[there])
        return true

    def finding(self, reason: str) -> Finding:
        """The worst belief in words; classes that were published as they are show what they show."""
        others = ~self.spread.mixed
        worst = self.worst()
        if worst is None:
            return worse_elsewhere(self.target, self.secrets, others, None)
        at, s = worst
        vulnerable = int(self.sizes[self.above.any(axis=1)].sum())
        found = Finding(self._in_words(at, s, reason), "estimated", vulnerable)
        return worse_elsewhere(self.target, self.secrets, others, found)

    def _in_words(self, at: int, s: int, reason: str) -> Belief:
        spread, c = self.spread, int(self.classes[at])
        entries = spread.entries_of[c]
        e = max(entries, key=lambda e: int(spread.rows[e]))
        group, n = int(spread.group[e]), int(self.sizes[at])
        held = spread.held(group)
        shown = Fraction(int(held @ self.inside[:, s]), int(held.sum()))
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
