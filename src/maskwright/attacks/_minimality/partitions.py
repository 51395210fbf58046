"""Methods that cut ordered rows: what a refused split, or a further bucket, gives away [Cormode et al. 2010].

An even-split method publishes a group undivided because a part of it violates the requirement; greedy grouping closes a
group as soon as it may. Each group tells its own story, independently of the others. Which part somebody is in follows
from the quasi-identifiers, unless several people share them: then what is computed here is the most that is believed.

With one set of values that decides, worlds are counted in closed form; under any other requirement on even splits
(`cut_worlds`) they are run through one by one. Only the group's own refused cut tells anything, so that every group is
a story of its own. Which part somebody is in is taken to be known: exact for people whose place in the order follows
from their quasi-identifiers, and the most that is believed where several people share them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._minimality.closed_form import PartBelief
from maskwright.attacks._minimality.refusals import RefusedParts, looked_at_values
from maskwright.attacks._minimality.replay import Replayed
from maskwright.attacks._minimality.world_tables import PublishedPeople
from maskwright.attacks._shared.findings import Finding, as_shown, belief_limit
from maskwright.attacks._shared.secrets import Secrets, gather_counts, in_words
from maskwright.attacks._shared.thresholds import Threshold, deciding_threshold, thresholds_of
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.exact import number_text
from maskwright.domain.model import fewest_rows
from maskwright.domain.segments import known_counts
from maskwright.promise.lemmas.even_splits import EVEN_SPLIT
from maskwright.promise.lemmas.greedy_buckets import GREEDY
from maskwright.worlds.counting.credibility import credibility_global
from maskwright.worlds.counting.group_beliefs import greedy_ceiling, randomised_group
from maskwright.worlds.sampling.possible_worlds import WorldSpace
from maskwright.worlds.sampling.world_sampler import Bools, WorldBudget, explore_worlds

BUCKETS = 100  # beyond so many the ceiling of all greedy groups is used

Number = Fraction | float
# people of a group, positives among them → the least and the largest credibility in its parts
OfKind = Callable[[int, int], tuple[Number, Number]]
Floats = NDArray[np.float64]


def cut_family(target: Target) -> str | None:
    """The family of a cutting method, even-split or greedy, where one threshold is all that it looked at; else None."""
    method = target.method
    rules = thresholds_of(looked_at_values(target.models), target.context)
    if method is None or not rules or method.options().get("anatomize"):
        return None
    if len(target.grouping.classes.sensitive) > 1:  # what one column gives away tells about the others, too
        return None
    lemma = method.decisions().lemma
    if lemma is EVEN_SPLIT:
        several = deciding_threshold(rules, [_refused_halves(target)], target.grouping.classes) is None
        return None if several and len(rules) > 1 else "even-split"
    bucket = target.grouping.trace.bucket
    if lemma is GREEDY and len(rules) == 1 and bucket:
        fits = rules[0].share * bucket == 1 and target.least_people <= bucket
        return "greedy" if fits else None
    return None


def cut_finding(target: Target, secrets: Secrets) -> Finding:
    """The worst belief of somebody who knows the method."""
    rules = thresholds_of(looked_at_values(target.models), target.context) or []
    if cut_family(target) == "even-split":
        threshold = deciding_threshold(rules, [_refused_halves(target)], target.grouping.classes)
        if threshold is None:
            return as_shown(target, secrets, "no part of a group can have violated the requirement")
        why = "the group was not divided, so a part of it violates the requirement"
        return _worst(
            target, secrets, threshold, _shares(target, threshold, _of_halves(target, threshold)), why
        )
    why = "the group was not closed earlier, so its first buckets violate the requirement"
    return _worst(target, secrets, rules[0], _shares(target, rules[0], _of_buckets(target)), why)


def even_sizes(n: int, ways: int) -> list[int]:
    """The sizes of parts that differ by at most one, larger ones first."""
    ends = [-(-j * n // ways) for j in range(ways + 1)]
    return [b - a for a, b in pairwise(ends)]


def _refused_halves(target: Target) -> RefusedParts:
    """The parts that each published group was not divided into; groups too small to be divided stay whole."""
    sizes = target.grouping.classes.sizes
    ways = ways_of(target)
    divided = sizes // ways >= fewest_of_part(target)
    group = np.repeat(np.arange(len(sizes)), np.where(divided, ways, 1))
    first = np.repeat(
        np.cumsum(np.where(divided, ways, 1)) - np.where(divided, ways, 1), np.where(divided, ways, 1)
    )
    place, n = np.arange(len(group)) - first, sizes[group]
    even = -(-((place + 1) * n) // ways) - -(-(place * n) // ways)
    return RefusedParts(None, "", np.zeros(0, np.int64), np.where(divided[group], even, n), group)


def ways_of(target: Target) -> int:
    """The parts that a group would have been cut into."""
    return 2 if target.method is None else target.method.decisions().ways


def fewest_of_part(target: Target) -> int:
    """The fewest people of a part; a group that would have a smaller one was never divided."""
    given = None if target.method is None else target.method.decisions().fewest
    if given is not None:
        return max(1, given)
    return fewest_rows([m for m in target.models if m.use == "search"], target.context)


def _shares(target: Target, threshold: Threshold, of_kind: OfKind) -> PartCredibilities:
    """The smallest and the largest credibility in each group; equal groups are looked at once."""
    classes = target.grouping.classes
    held = threshold.held(classes.sensitive[threshold.attribute])
    kinds, number = np.unique(np.stack([classes.sizes, held]), axis=1, return_inverse=True)
    found = [of_kind(n, positives) for n, positives in kinds.T.tolist()]
    return PartCredibilities(number.reshape(-1), held, found)


@dataclass(frozen=True, eq=False)
class PartCredibilities:
    """Per kind of group the credibilities of the deciding set in its parts; `kind` of each group, and what it holds."""

    kind: Ints
    held: Ints
    found: list[tuple[Number, Number]]

    def floats(self, side: int) -> Floats:
        """The smallest (side 0) or largest (side 1) credibility in the parts of each group."""
        return np.array([float(pair[side]) for pair in self.found])[self.kind]


def _of_halves(target: Target, threshold: Threshold) -> OfKind:
    guard, ways, least = fewest_of_part(target), ways_of(target), target.least_people

    def _of_kind(n: int, positives: int) -> tuple[Number, Number]:
        sizes = even_sizes(n, ways) if n // ways >= guard else [n]
        caps = threshold.caps(np.array(sizes), least).tolist()
        found = credibility_global(sizes, positives, caps=caps)
        shown = Fraction(positives, n)
        return (shown, shown) if found is None else (min(found.values), max(found.values))

    return _of_kind


def _of_buckets(target: Target) -> OfKind:
    bucket = target.grouping.trace.bucket or 1
    extend = Fraction(0) if target.method is None else target.method.decisions().extend

    def _of_kind(n: int, positives: int) -> tuple[Number, Number]:
        buckets = n // bucket
        if buckets > BUCKETS:
            return Fraction(0), greedy_ceiling(bucket)
        found = randomised_group(bucket, buckets, positives, extend) if buckets > 1 else None
        shown = Fraction(positives, n)
        return (shown, shown) if found is None else (min(found), max(found))

    return _of_kind


def _worst(
    target: Target, secrets: Secrets, threshold: Threshold, shares: PartCredibilities, why: str
) -> Finding:
    """Belief is linear in the credibility of the set, so that its ends decide; floats find them, fractions settle."""
    counts, sizes = secrets.counts, target.grouping.classes.sizes
    mine, bound = inside_of(target, secrets, threshold), belief_limit(target, secrets)
    held, people = shares.held[counts.owner], sizes[counts.owner]
    values = np.zeros((2, len(counts.counts)))
    for side in (0, 1):
        share = shares.floats(side)[counts.owner]
        rest = (1 - share) * (counts.counts - mine) / np.maximum(people - held, 1)
        values[side] = share * mine / np.maximum(held, 1) + rest

    def _row(side: int, entry: int) -> PartBelief:
        group = int(counts.owner[entry])
        share = shares.found[int(shares.kind[group])][side]
        own = int(mine[entry])
        return PartBelief((group,), int(counts.codes[entry]), share, own, int(counts.counts[entry]) - own,
                   int(held[entry]), int(people[entry]), 0.0)  # fmt: skip

    if not values.size:
        return as_shown(target, secrets, "no group holds a sensitive value")
    # equal groups are very many: one entry of each kind is looked at exactly
    kinds = np.stack([shares.kind[counts.owner], counts.counts, mine])
    _, first, number = np.unique(kinds, axis=1, return_index=True, return_inverse=True)
    some = values[:, first]
    near = np.argwhere(some >= some.max() * (1 - 1e-9)).tolist()
    worst = max((_row(side, int(first[i])) for side, i in near), key=PartBelief.exact)
    over = some > float(bound)
    for side, i in np.argwhere(abs(some - float(bound)) <= 1e-9).tolist():
        over[side, i] = _row(side, int(first[i])).exact() > bound
    above = over[:, number.reshape(-1)]
    groups = np.unique(counts.owner[above.any(axis=0)])
    return Finding(_in_words(target, secrets, worst, why), "bounded", int(sizes[groups].sum()))


def inside_of(target: Target, secrets: Secrets, threshold: Threshold) -> Ints:
    """The people, per entry of `secrets.counts`, whose value belongs to the deciding set, too."""
    counts = secrets.counts
    values = target.grouping.classes.sensitive[secrets.attribute].values
    decided = {values[code - 1] for code in threshold.codes}
    both = gather_counts(
        known_counts(target.grouping.classes.sensitive[secrets.attribute]),
        tuple(tuple(v for v in members if v in decided) for members in secrets.sets),
    )
    radix = len(secrets.sets) + 1
    where = np.searchsorted(counts.owner * radix + counts.codes, both.owner * radix + both.codes)
    result = np.zeros(len(counts.counts), dtype=np.int64)
    result[where] = both.counts
    return result


def _in_words(target: Target, secrets: Secrets, row: PartBelief, why: str) -> Belief:
    shown = Fraction(row.mine + row.rest, row.people)
    whom = f"some of the {row.people} people with {in_words(target.grouping, row.parts[0])}"
    words = f"{number_text(shown)} of them have {secrets.name(row.code)}; but {why}"
    return Belief(secrets.before(row.code), row.exact(), whom, words)


def cuts_evenly(target: Target) -> bool:
    """Whether the method cuts groups evenly, once each, by models that look at one part at a time."""
    method = target.method
    if method is None or method.options().get("anatomize"):
        return False
    even = method.decisions().lemma is EVEN_SPLIT
    return even and all(m.is_local() and not m.needs() for m in target.models if m.use == "search")


def cut_worlds(target: Target, budget: WorldBudget) -> Replayed:
    """The worlds of each group in which its cut is refused."""
    places, ways = PublishedPeople.of(target), ways_of(target)
    search, context = [m for m in target.models if m.use == "search"], target.context
    number = np.searchsorted(places.groups, places.group)
    n_groups = len(places.groups)
    sizes = np.bincount(number, minlength=n_groups)
    cut = sizes // ways >= fewest_of_part(target)
    part = np.concatenate([
        np.repeat(np.arange(ways), even_sizes(int(n), ways)) if tried else np.zeros(int(n), dtype=np.int64)
        for n, tried in zip(sizes.tolist(), cut.tolist(), strict=True)
    ])  # fmt: skip
    _, unit = np.unique(number * ways + part, return_inverse=True)
    unit = unit.reshape(-1).astype(np.int64)
    n_units = int(unit.max()) + 1
    group_of_unit = np.zeros(n_units, dtype=np.int64)
    group_of_unit[unit] = number
    people = np.bincount(unit, minlength=n_units).astype(np.int64)
    looked = looked_at_values(search)
    small = np.zeros(n_units, dtype=bool)
    for model in search:
        if model.about != "sensitive":
            small |= ~model.passing(Classes(people, people), context)

    def _judge(world: Ints) -> Bools:
        ones = np.ones(len(world), dtype=np.int64)
        sensitive = {
            name: ValueCounts.collect(vc.values, n_units, unit, places.codes[name][world], ones, vc.ordered)
            for name, vc in target.grouping.summary.sensitive.items()
        }
        fails = small.copy()
        for model in looked:
            fails |= ~model.passing(Classes(people, people, sensitive), context)
        return np.asarray((np.bincount(group_of_unit, fails, n_groups) > 0) | ~cut, dtype=bool)

    space = WorldSpace(number, places.items, np.arange(n_groups))
    tally = explore_worlds(space, unit, n_units, _judge, budget, np.random.default_rng(0), lambda: False)
    if (
        untried := tally.listed & (tally.kept == 0)
    ).any():  # no world explains a refusal: equal rows are not cut
        cut &= ~untried
        tally = explore_worlds(space, unit, n_units, _judge, budget, np.random.default_rng(0), lambda: False)
    first = np.zeros(n_units, dtype=np.int64)
    first[unit[::-1]] = places.tuples[::-1]
    return Replayed(replace(places, unit=unit, tuples_of_units=first), tally, places_known=False)
