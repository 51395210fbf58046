"""Credibility for any requirement, and under local recoding [Wong et al. 2007, Definition 3 and section 4.2].

A release is a list of groups; each tells how many rows of each original class it holds, and its multiset of values.
An original class may be spread over several groups (local recoding). A *world* assigns each group's values to its
rows. Kept are the worlds in which at least one original class fails the requirement, and with `strict` (Definition 3
of the paper) only those in which no part of the generalised rows could have been published as it was.

Under local recoding one generalised class is looked at by itself. The other rows of an original class were published
as they are, so that their values are known, or went to *other* generalised classes, of which only the number of
sensitive rows is known. Worlds assume that which rows of a class were generalised was decided without a look at values.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import refuse_beyond
from maskwright.worlds.counting.credibility import Number, count_with_empty
from maskwright.worlds.counting.multisets import (
    Test,
    add_counts,
    count_orders,
    memoised_test,
    sub_multisets,
    subtract_counts,
)
from maskwright.worlds.counting.violation_counts import caps_of

Vector = tuple[int, ...]  # counts of each value
State = tuple[Vector, ...]  # what is left of each group
Cell = tuple[int, str, Vector]  # group, class, what the class has of the group
SPREAD = 500  # ways in which classes may hold rows elsewhere before counting is refused
TABLES = 4_000  # different multisets that the classes of one generalised class may have, roughly
PATIENCE = 10  # times as many for a model, which asks once for each kind of class


@dataclass(frozen=True)
class Group:
    """One published group: rows of each original class in it, and its sensitive values."""

    members: Mapping[str, int]
    values: Sequence[Any]


def credibility_general(
    groups: Sequence[Group], passes: Test, strict: bool = False
) -> dict[str, dict[Any, Fraction]] | None:
    """Original class → value → probability that a row of the class has the value; None when no world is kept.

    Values of probability 0 are left out. The work grows with the number of different multisets the classes may
    have, not with the number of worlds; with `strict` every different table is looked at.

    Args:
        groups: the publication.
        passes: the requirement, on the counts of each value in a class.
        strict: apply Definition 3.
    """
    found = violating_worlds(groups, passes, strict)
    return None if found is None else found.beliefs


@dataclass(frozen=True)
class ViolatingWorlds:
    """Original class → value → probability, and the share of all worlds that are kept."""

    beliefs: dict[str, dict[Any, Fraction]]
    kept: Fraction


def violating_worlds(groups: Sequence[Group], passes: Test, strict: bool = False) -> ViolatingWorlds | None:
    """Beliefs as in `credibility_general`, with the share of worlds in which some class violates."""
    release = _NumberedGroups.of(groups, memoised_test(passes))
    kept, held = _strictly(release) if strict else _counted_worlds(release)
    if not kept:
        return None
    result = {}
    for name, counts in held.items():
        size = release.sizes[name]
        shares = zip(release.values, counts, strict=True)
        result[name] = {v: Fraction(c, kept * size) for v, c in shares if c}
    return ViolatingWorlds(result, Fraction(kept, release.worlds()))


@dataclass(frozen=True)
class _NumberedGroups:
    """Groups with values numbered; `fixed` is what a class has in groups of its own."""

    values: list[Any]
    sizes: dict[str, int]
    fixed: dict[str, Vector]
    mixed: list[tuple[dict[str, int], Vector]]
    passes: Test

    @classmethod
    def of(cls, groups: Sequence[Group], passes: Test) -> _NumberedGroups:
        """The release with these groups; refused where a group has not as many values as rows."""
        values = sorted({v for group in groups for v in group.values}, key=lambda v: (str(type(v)), v))
        sizes: Counter[str] = Counter()
        mixed: list[tuple[dict[str, int], Vector]] = []
        fixed: dict[str, Vector] = {}
        for group in groups:
            members = {name: m for name, m in group.members.items() if m}
            if sum(members.values()) != len(group.values) or any(m < 0 for m in members.values()):
                raise UsageError(f"a group of {sum(members.values())} rows has {len(group.values)} values")
            counts = Counter(group.values)
            vector = tuple(counts[v] for v in values)
            sizes.update(members)
            for name in members:
                fixed.setdefault(name, (0,) * len(values))
            if len(members) == 1:
                name = next(iter(members))
                fixed[name] = add_counts(fixed[name], vector)
            elif members:
                mixed.append((members, vector))
        return cls(values, dict(sizes), fixed, mixed, passes)

    def satisfied(self, vector: Vector) -> bool:
        """Whether a class with these counts meets the requirement."""
        return self.passes(dict(zip(self.values, vector, strict=True)))

    def worlds(self) -> int:
        """The number of worlds: orders of the values of the mixed groups."""
        return math.prod(count_orders(vector) for _, vector in self.mixed)


def _counted_worlds(release: _NumberedGroups) -> tuple[int, dict[str, list[int]]]:
    """Kept worlds, and per class how often each value occurs in it over all of them.

    Classes that share no group are independent, up to the violation that may be in any of them: kept worlds are
    all worlds less those in which every component is safe.
    """
    everything = safe = 1
    tables = []
    for names, groups in _components(release):
        chain = _ClassChain(release, names, groups)
        table = chain.safe_counts()
        tables.append((names, groups, table))
        everything *= math.prod(count_orders(vector) for _, vector in groups)
        safe *= table[0]
    held: dict[str, list[int]] = {}
    for names, groups, (safe_here, counts) in tables:
        outside = math.prod(t[0] for ns, _, t in tables if ns is not names)
        for name in names:
            mean = [everything * Fraction(c) for c in release.fixed[name]]
            for members, vector in groups:
                share = Fraction(members.get(name, 0), sum(vector))
                mean = [m + everything * share * c for m, c in zip(mean, vector, strict=True)]
            there = counts.get(name, [0] * len(mean)) if safe_here else [0] * len(mean)
            held[name] = [int(m) - outside * c for m, c in zip(mean, there, strict=True)]
    return everything - safe, held


def _components(release: _NumberedGroups) -> list[tuple[list[str], list[tuple[dict[str, int], Vector]]]]:
    """Classes linked through mixed groups, with those groups."""
    label = {name: i for i, name in enumerate(release.sizes)}
    for members, _ in release.mixed:
        joined = {label[name] for name in members}
        label = {name: min(joined) if x in joined else x for name, x in label.items()}
    found = []
    for x in sorted(set(label.values())):
        names = [name for name in label if label[name] == x]
        found.append((names, [g for g in release.mixed if label[next(iter(g[0]))] == x]))
    return found


class _ClassChain:
    """The classes of a component one after the other; the state is what is left of each of its groups."""

    def __init__(
        self, release: _NumberedGroups, names: list[str], groups: list[tuple[dict[str, int], Vector]]
    ) -> None:
        self.release, self.names, self.groups = release, names, groups

    def safe_counts(self) -> tuple[int, dict[str, list[int]]]:
        """Worlds without a violation, and per class how often each value occurs in it over all of them."""
        layers: list[dict[State, int]] = [{tuple(vector for _, vector in self.groups): 1}]
        steps: list[list[tuple[State, State, Vector, int]]] = []
        for name in self.names:
            arrows = [arrow for state in layers[-1] for arrow in self._deal(name, state)]
            refuse_beyond(len(arrows))
            layer: dict[State, int] = {}
            for state, rest, _, ways in arrows:
                layer[rest] = layer.get(rest, 0) + layers[-1][state] * ways
            steps.append(arrows)
            layers.append(layer)
        total = sum(layers[-1].values())
        held: dict[str, list[int]] = {}
        onwards = dict.fromkeys(layers[-1], 1)
        for name, layer, arrows in zip(
            reversed(self.names), reversed(layers[:-1]), reversed(steps), strict=True
        ):
            here: dict[State, int] = {}
            counts = [0] * len(self.release.values)
            for state, rest, vector, ways in arrows:
                worlds = ways * onwards.get(rest, 0)
                here[state] = here.get(state, 0) + worlds
                for v, x in enumerate(vector):
                    counts[v] += layer[state] * worlds * x
            held[name], onwards = counts, here
        return total, held

    def _deal(self, name: str, state: State) -> Iterator[tuple[State, State, Vector, int]]:
        """Every way to deal values to a class that satisfies the requirement then."""
        release = self.release

        def _take(
            at: int, left: State, vector: Vector, ways: int
        ) -> Iterator[tuple[State, State, Vector, int]]:
            if at == len(state):
                if release.satisfied(vector):
                    yield state, left, vector, ways
                return
            for part in sub_multisets(state[at], self.groups[at][0].get(name, 0)):
                more = (*left, subtract_counts(state[at], part))
                yield from _take(at + 1, more, add_counts(vector, part), ways * count_orders(part))

        yield from _take(0, (), release.fixed[name], 1)


def _strictly(release: _NumberedGroups) -> tuple[int, dict[str, list[int]]]:
    """As `_counted_worlds`, table by table, with Definition 3."""
    kept, held = 0, {name: [0] * len(release.values) for name in release.sizes}
    refuse_beyond(release.worlds())
    for cells, ways in _tables(release):
        classes = dict(release.fixed)
        for _, name, part in cells:
            classes[name] = add_counts(classes[name], part)
        if all(map(release.satisfied, classes.values())) or _could_be_specialised(release, cells):
            continue
        kept += ways
        for name, vector in classes.items():
            held[name] = [h + ways * x for h, x in zip(held[name], vector, strict=True)]
    return kept, held


def _tables(release: _NumberedGroups) -> Iterator[tuple[list[Cell], int]]:
    """Every way to deal the values of the mixed groups to the classes in them, and how many worlds it is."""
    wanted = [(g, name, m) for g, (members, _) in enumerate(release.mixed) for name, m in members.items()]

    def _take(cells: list[Cell], left: State, ways: int) -> Iterator[tuple[list[Cell], int]]:
        if len(cells) == len(wanted):
            yield cells, ways
            return
        g, name, m = wanted[len(cells)]
        for part in sub_multisets(left[g], m):
            rest = (*left[:g], subtract_counts(left[g], part), *left[g + 1 :])
            yield from _take([*cells, (g, name, part)], rest, ways * count_orders(part))

    yield from _take([], tuple(vector for _, vector in release.mixed), 1)


def _could_be_specialised(release: _NumberedGroups, cells: list[Cell]) -> bool:
    """Is there a non-empty part of the rows of mixed groups that, published as they were, leaves all well?"""
    nothing = (0,) * len(release.values)
    last_of_group = {g: i for i, (g, _, _) in enumerate(cells)}
    last_of_class = {name: i for i, (_, name, _) in enumerate(cells)}
    alone = [vector for name, vector in release.fixed.items() if name not in last_of_class]
    if not all(map(release.satisfied, alone)):
        return False

    def _search(at: int, classes: dict[str, Vector], remaining: Vector, moved: bool) -> bool:
        if at == len(cells):
            return moved
        g, name, vector = cells[at]
        for part in sub_multisets(vector):
            mine, rest = add_counts(classes[name], part), add_counts(remaining, subtract_counts(vector, part))
            closed = last_of_group[g] == at
            if closed and not release.satisfied(rest):
                continue
            if last_of_class[name] == at and not release.satisfied(mine):
                continue
            if _search(at + 1, {**classes, name: mine}, nothing if closed else rest, moved or any(part)):
                return True
        return False

    return _search(0, dict(release.fixed), nothing, False)


@dataclass(frozen=True)
class OtherClass:
    """Another generalised class with rows of these original classes: `rows[i]` of class i, of `size` rows in all."""

    rows: Mapping[int, int]
    size: int
    sensitive: int


@dataclass(frozen=True)
class LocalCredibility:
    """What one generalised class tells by itself.

    Attributes:
        shares: per original class and kind of value, the expected share among its rows in this class.
        violation: the probability, over all worlds, that an original class in it violates.
        relative_error: 0 where the numbers are exact.
    """

    shares: list[dict[Any, Number]]
    violation: Number
    relative_error: float = 0.0


def one_set_credibility(
    rows: Sequence[int],
    caps: Sequence[int],
    sensitive: int,
    elsewhere: Sequence[OtherClass] = (),
    exact: bool | None = None,
) -> LocalCredibility | None:
    """The share of sensitive rows (key True) in each class when one threshold decided; None: no class can violate.

    Args:
        rows: of each original class in this generalised class.
        caps: the most sensitive rows it may have besides those that are known; below 0 it violates anyway.
        sensitive: the sensitive rows of the generalised class.
        elsewhere: other generalised classes that hold rows of these original classes.
        exact: True forces integers; otherwise they are used where they are fast.
    """
    total: Number = Fraction(0)
    held: list[Number] = [Fraction(0)] * len(rows)
    error = 0.0
    for there, chance in _rows_elsewhere(_that_matters(rows, caps, sensitive, elsewhere), len(rows)):
        left = [cap - x for cap, x in zip(caps, there, strict=True)]
        found = count_with_empty(rows, left, sensitive, exact)
        if found is None:
            continue
        error = max(error, found.relative_error)
        weight: Number = chance * found.violation
        total = total + weight
        for i, kind in enumerate(zip(rows, left, strict=True)):
            share = found.share[kind]  # in fractions where the weight may be too small for floating point
            held[i] = held[i] + weight * (Fraction(share) if isinstance(weight, Fraction) else share)
    if not total:
        return None
    shares: list[Number] = [float(x / total) if error else x / total for x in held]
    return LocalCredibility([{True: x, False: 1 - x} for x in shares], total, error)


def _that_matters(
    rows: Sequence[int], caps: Sequence[int], sensitive: int, elsewhere: Sequence[OtherClass]
) -> list[OtherClass]:
    """Without the original classes that violate already, or never: what they hold elsewhere changes nothing."""
    if any(cap < 0 for cap in caps):
        return []
    most = [min(n, sensitive) for n in rows]
    for other in elsewhere:
        for i, n in other.rows.items():
            most[i] += min(n, other.sensitive)
    kept = []
    for other in elsewhere:
        able = {i: n for i, n in other.rows.items() if most[i] > caps[i]}
        if able:
            kept.append(OtherClass(able, other.size, other.sensitive))
    return kept


def _rows_elsewhere(elsewhere: Sequence[OtherClass], classes: int) -> Iterator[tuple[list[int], Fraction]]:
    """How many sensitive rows each class may hold elsewhere, with the probability of that."""
    refuse_beyond(math.prod(n + 1 for other in elsewhere for n in other.rows.values()), SPREAD)
    ways = [list(_deal(other)) for other in elsewhere]
    for choice in itertools.product(*ways):
        there, chance = [0] * classes, Fraction(1)
        for other, (dealt, weight) in zip(elsewhere, choice, strict=True):
            chance *= weight
            for i, x in zip(other.rows, dealt, strict=True):
                there[i] += x
        yield there, chance


def _deal(other: OtherClass) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Multivariate hypergeometric: the sensitive rows among those of each class."""
    rest = other.size - sum(other.rows.values())
    worlds = math.comb(other.size, other.sensitive)
    for dealt in itertools.product(*(range(n + 1) for n in other.rows.values())):
        left = other.sensitive - sum(dealt)
        if 0 <= left <= rest:
            ways = math.prod(math.comb(n, x) for n, x in zip(other.rows.values(), dealt, strict=True))
            yield dealt, Fraction(ways * math.comb(rest, left), worlds)


def any_requirement_credibility(
    rows: Sequence[int],
    values: Sequence[Any],
    known: Sequence[Sequence[Any]],
    passes: Test,
    patience: int = 1,
) -> LocalCredibility | None:
    """The share of each value in each class under any requirement, by counting multisets.

    Refused (`TooManyWorlds`) where there are too many.

    Args:
        rows: of each original class in the generalised class.
        values: of the generalised class; kinds of values where the requirement tells only those apart.
        known: the values of the other rows of each original class.
        passes: the requirement, on the counts of each value in an original class.
        patience: how many times as much is counted before that.
    """
    counts = Counter(values)
    refuse_beyond(_work(rows, counts), patience * TABLES)
    names = [str(i) for i in range(len(rows))]
    groups = [Group(dict(zip(names, rows, strict=True)), list(values))]
    groups += [Group({name: len(k)}, list(k)) for name, k in zip(names, known, strict=True) if k]
    found = violating_worlds(groups, passes)
    if found is None:
        return None
    shares: list[dict[Any, Number]] = []
    for name, n, mine in zip(names, rows, known, strict=True):
        there = Counter(mine)
        shares.append(
            {v: (found.beliefs[name].get(v, Fraction(0)) * (n + len(mine)) - there[v]) / n for v in counts}
        )
    return LocalCredibility(shares, found.kept)


def several_sets_credibility(
    sizes: Sequence[int], held: Sequence[int], ell: Fraction, exact: bool | None = None
) -> list[list[Number]] | None:
    """Credibility of disjoint sets in classes that global recoding merged: [class][set]; None: nothing to explain.

    A world is kept when some class holds too much of *any* set. Sets too small to violate anywhere are spread evenly
    over what the others leave, so that only the rest has to be counted.

    Args:
        sizes: the rows of each original class.
        held: the rows of each set in all of them together.
        ell: the diversity asked for: a class violates when j·ℓ > n for a set.
        exact: as in `one_set_credibility`.
    """
    caps = caps_of(sizes, ell)
    able = [
        s for s, g in enumerate(held) if any(g > cap and n > cap for n, cap in zip(sizes, caps, strict=True))
    ]
    if not able:
        return None
    if len(able) == 1:
        found = one_set_credibility(sizes, caps, held[able[0]], exact=exact)
        shares = None if found is None else [{able[0]: row[True]} for row in found.shares]
    else:
        rest = sum(sizes) - sum(held[s] for s in able)
        refuse_beyond(
            _work(sizes, {s: held[s] for s in able} | {-1: rest}), PATIENCE * TABLES
        )  # before they are listed
        values = [s for s in able for _ in range(held[s])] + [-1] * rest
        passes: Test = lambda counts: all(  # noqa: E731
            c * ell <= sum(counts.values()) for s, c in counts.items() if s >= 0
        )
        found = any_requirement_credibility(sizes, values, [()] * len(sizes), passes, PATIENCE)
        shares = None if found is None else found.shares
    if shares is None:
        return None
    left = sum(sizes) - sum(held[s] for s in able)
    result = []
    for row in shares:
        others = 1 - sum(row[s] for s in able)
        result.append([row[s] if s in able else others * Fraction(g, left) for s, g in enumerate(held)])
    return result


def _work(rows: Sequence[int], counts: Mapping[Any, int]) -> int:
    """About how many multisets are looked at: states of what is left, times the parts that a class may take."""
    states = math.prod(c + 1 for c in counts.values())
    parts = max(math.prod(min(c, n) + 1 for c in counts.values()) for n in rows)
    return len(rows) * states * parts // 50
