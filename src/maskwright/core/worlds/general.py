"""Credibility for any requirement: worlds in which some original class violates it [Wong et al. 2007].

A release is a list of groups; each tells how many rows of each original class it holds, and its multiset of values.
An original class may be spread over several groups (local recoding). A *world* deals each group's values to its
rows. Kept are the worlds in which at least one original class fails the requirement, and with `strict`
(Definition 3 of the paper) only those in which no part of the generalised rows could have been published as it was.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from maskwright.core.worlds.limits import refuse_beyond
from maskwright.core.worlds.multisets import Test, add, arrangements, parts, remembered, subtract
from maskwright.errors import UsageError

Vector = tuple[int, ...]  # counts of each value
State = tuple[Vector, ...]  # what is left of each group


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
    found = explained(groups, passes, strict)
    return None if found is None else found.beliefs


@dataclass(frozen=True)
class Explained:
    """Original class → value → probability, and the share of all worlds that are kept."""

    beliefs: dict[str, dict[Any, Fraction]]
    kept: Fraction


def explained(groups: Sequence[Group], passes: Test, strict: bool = False) -> Explained | None:
    """As `credibility_general`, with the probability that there is anything to explain."""
    release = _Release.of(groups, remembered(passes))
    kept, held = _strictly(release) if strict else _counted(release)
    if not kept:
        return None
    result = {}
    for name, counts in held.items():
        size = release.sizes[name]
        shares = zip(release.values, counts, strict=True)
        result[name] = {v: Fraction(c, kept * size) for v, c in shares if c}
    return Explained(result, Fraction(kept, release.worlds()))


@dataclass(frozen=True)
class _Release:
    """Groups with values numbered; `fixed` is what a class has in groups of its own."""

    values: list[Any]
    sizes: dict[str, int]
    fixed: dict[str, Vector]
    mixed: list[tuple[dict[str, int], Vector]]
    passes: Test

    @classmethod
    def of(cls, groups: Sequence[Group], passes: Test) -> _Release:
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
                fixed[name] = add(fixed[name], vector)
            elif members:
                mixed.append((members, vector))
        return cls(values, dict(sizes), fixed, mixed, passes)

    def satisfied(self, vector: Vector) -> bool:
        return self.passes(dict(zip(self.values, vector, strict=True)))

    def worlds(self) -> int:
        return math.prod(arrangements(vector) for _, vector in self.mixed)


def _counted(release: _Release) -> tuple[int, dict[str, list[int]]]:
    """Kept worlds, and per class how often each value occurs in it over all of them.

    Classes that share no group are independent, up to the violation that may be in any of them: kept worlds are
    all worlds less those in which every component is safe.
    """
    everything = safe = 1
    tables = []
    for names, groups in _components(release):
        chain = _Chain(release, names, groups)
        table = chain.safe_counts()
        tables.append((names, groups, table))
        everything *= math.prod(arrangements(vector) for _, vector in groups)
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


def _components(release: _Release) -> list[tuple[list[str], list[tuple[dict[str, int], Vector]]]]:
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


class _Chain:
    """The classes of a component one after the other; the state is what is left of each of its groups."""

    def __init__(
        self, release: _Release, names: list[str], groups: list[tuple[dict[str, int], Vector]]
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

        def deal(
            at: int, left: State, vector: Vector, ways: int
        ) -> Iterator[tuple[State, State, Vector, int]]:
            if at == len(state):
                if release.satisfied(vector):
                    yield state, left, vector, ways
                return
            for part in parts(state[at], self.groups[at][0].get(name, 0)):
                more = (*left, subtract(state[at], part))
                yield from deal(at + 1, more, add(vector, part), ways * arrangements(part))

        yield from deal(0, (), release.fixed[name], 1)


Cell = tuple[int, str, Vector]  # group, class, what the class has of the group


def _strictly(release: _Release) -> tuple[int, dict[str, list[int]]]:
    """As `_counted`, table by table, with Definition 3."""
    kept, held = 0, {name: [0] * len(release.values) for name in release.sizes}
    refuse_beyond(release.worlds())
    for cells, ways in _tables(release):
        classes = dict(release.fixed)
        for _, name, part in cells:
            classes[name] = add(classes[name], part)
        if all(map(release.satisfied, classes.values())) or _could_be_specialised(release, cells):
            continue
        kept += ways
        for name, vector in classes.items():
            held[name] = [h + ways * x for h, x in zip(held[name], vector, strict=True)]
    return kept, held


def _tables(release: _Release) -> Iterator[tuple[list[Cell], int]]:
    """Every way to deal the values of the mixed groups to the classes in them, and how many worlds it is."""
    wanted = [(g, name, m) for g, (members, _) in enumerate(release.mixed) for name, m in members.items()]

    def deal(cells: list[Cell], left: State, ways: int) -> Iterator[tuple[list[Cell], int]]:
        if len(cells) == len(wanted):
            yield cells, ways
            return
        g, name, m = wanted[len(cells)]
        for part in parts(left[g], m):
            rest = (*left[:g], subtract(left[g], part), *left[g + 1 :])
            yield from deal([*cells, (g, name, part)], rest, ways * arrangements(part))

    yield from deal([], tuple(vector for _, vector in release.mixed), 1)


def _could_be_specialised(release: _Release, cells: list[Cell]) -> bool:
    """Is there a non-empty part of the rows of mixed groups that, published as they were, leaves all well?"""
    nothing = (0,) * len(release.values)
    last_of_group = {g: i for i, (g, _, _) in enumerate(cells)}
    last_of_class = {name: i for i, (_, name, _) in enumerate(cells)}
    alone = [vector for name, vector in release.fixed.items() if name not in last_of_class]
    if not all(map(release.satisfied, alone)):
        return False

    def search(at: int, classes: dict[str, Vector], remaining: Vector, moved: bool) -> bool:
        if at == len(cells):
            return moved
        g, name, vector = cells[at]
        for part in parts(vector):
            mine, rest = add(classes[name], part), add(remaining, subtract(vector, part))
            closed = last_of_group[g] == at
            if closed and not release.satisfied(rest):
                continue
            if last_of_class[name] == at and not release.satisfied(mine):
                continue
            if search(at + 1, {**classes, name: mine}, nothing if closed else rest, moved or any(part)):
                return True
        return False

    return search(0, dict(release.fixed), nothing, False)
