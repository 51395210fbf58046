"""Credibility for any requirement and any publication, against a literal enumeration, strict or not."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.counting.credibility import credibility_local
from maskwright.worlds.counting.general_credibility import Group, credibility_general
from tests.oracles.worlds import at_most_one_in, binary, dealt, distinct

NAMES = ["q1", "q2", "q3"]
TESTS: list[Callable[[Any], bool]] = [
    at_most_one_in(2), at_most_one_in(Fraction(3, 2)), at_most_one_in(3), binary(2, "a"), distinct(2),
    lambda counts: sum(counts.values()) >= 2 and counts.get("a", 0) <= 1,
]  # fmt: skip


@st.composite
def publications(draw: st.DrawFn) -> list[Group]:
    groups, left = [], 6
    while left and len(groups) < 3:
        members: Counter[str] = Counter(
            draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=min(left, 4)))
        )
        size = members.total()
        groups.append(
            Group(dict(members), draw(st.lists(st.sampled_from("abc"), min_size=size, max_size=size)))
        )
        left -= size
        if draw(st.booleans()):
            break
    return groups


def by_definition(groups: list[Group], passes: Callable[[Any], bool], strict: bool) -> Any:
    names: list[str] = []
    rows, mixed = [], []
    for group in groups:
        mine = [name for name, m in group.members.items() for _ in range(m)]
        start = len(names)
        names += mine
        rows.append((range(start, len(names)), list(group.values)))
        if len(set(mine)) > 1:
            mixed.append(range(start, len(names)))
    held: dict[str, Counter[Any]] = {name: Counter() for name in names}
    kept = 0
    for world in dealt(rows):
        classes = {name: Counter(world[i] for i, n in enumerate(names) if n == name) for name in names}
        if all(passes(c) for c in classes.values()):
            continue
        if strict and _good_enough(names, mixed, world, passes):
            continue
        kept += 1
        for name, counts in classes.items():
            held[name].update(counts)
    if not kept:
        return None
    sizes = Counter(names)
    return {n: {v: Fraction(c, kept * sizes[n]) for v, c in counts.items()} for n, counts in held.items()}


def _good_enough(
    names: list[str], mixed: list[range], world: dict[int, Any], passes: Callable[[Any], bool]
) -> bool:
    """Definition 3, literally: is there a non-empty set of generalised rows that could be given back?"""
    inside = [i for group in mixed for i in group]
    for size in range(1, len(inside) + 1):
        for chosen in itertools.combinations(inside, size):
            x = set(chosen)
            tables = [[i for i in group if i not in x] for group in mixed]
            tables += [
                [i for i, n in enumerate(names) if n == name and (i in x or i not in inside)]
                for name in set(names)
            ]
            if all(passes(Counter(world[i] for i in rows)) for rows in tables if rows):
                return True
    return False


@given(publications(), st.sampled_from(TESTS))
def test_any_requirement(groups: list[Group], passes: Callable[[Any], bool]) -> None:
    assert credibility_general(groups, passes) == by_definition(groups, passes, False)


@given(publications(), st.sampled_from(TESTS))
def test_definition_3(groups: list[Group], passes: Callable[[Any], bool]) -> None:
    assert credibility_general(groups, passes, strict=True) == by_definition(groups, passes, True)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=3),
    st.integers(0, 4),
)
def test_the_formula_for_local_recoding_is_a_special_case(
    rows: list[tuple[int, int, int]], sensitive: int
) -> None:
    sizes = [n for n, _, _ in rows]
    published = [min(n, u) for n, u, _ in rows]
    seen = [min(n, u, s) for n, u, s in rows]
    free = [n - u for n, u in zip(sizes, published, strict=True)]
    sensitive = min(sensitive, sum(free))
    groups = [
        Group({f"q{i}": u}, ["P"] * s + ["N"] * (u - s))
        for i, (u, s) in enumerate(zip(published, seen, strict=True))
    ]
    groups.append(
        Group({f"q{i}": g for i, g in enumerate(free)}, ["P"] * sensitive + ["N"] * (sum(free) - sensitive))
    )
    found = credibility_general(groups, binary(2))
    formula = credibility_local(sizes, published, seen, sensitive, 2)
    assert (found is None) == (formula is None)
    if found is not None and formula is not None:
        assert [found[f"q{i}"].get("P", Fraction(0)) for i in range(len(sizes))] == list(formula.values)


def _distance_at_most(t: Fraction, whole: dict[str, Fraction]) -> Callable[[Any], bool]:
    def passes(counts: Any) -> bool:
        n = sum(counts.values())
        return sum(abs(Fraction(counts.get(v, 0), n) - p) for v, p in whole.items()) / 2 <= t

    return passes


def test_w1_the_global_attack_on_t_closeness_fails() -> None:
    half = {"HIV": Fraction(1, 2), "none": Fraction(1, 2)}
    close = _distance_at_most(Fraction(1, 5), half)
    assert not close({"HIV": 1, "none": 3})  # the paper takes it for close: its distance is 1/4
    together = [Group({"q1": 2, "q2": 4}, ["HIV"] * 3 + ["none"] * 3)]
    found = credibility_general(together, close)
    assert found == {name: {"HIV": Fraction(1, 2), "none": Fraction(1, 2)} for name in ("q1", "q2")}
    local = [Group({"q1": 2, "q2": 1}, ["HIV", "HIV", "none"]), Group({"q2": 3}, ["none", "none", "HIV"])]
    found = credibility_general(local, close)
    assert found is not None and found["q1"] == {"HIV": 1}


def test_independent_groups_share_the_explanation() -> None:
    """A violation in one published class is reason enough; the other class keeps its share."""
    certain = Group({"a": 1, "b": 1}, ["P", "N"])
    calm = Group({"c": 2, "d": 2}, ["P", "N", "N", "N"])
    found = credibility_general([certain, calm], binary(2))
    assert found is not None
    assert found["c"] == {"P": Fraction(1, 4), "N": Fraction(3, 4)}


def test_larger_tables_do_not_need_every_world() -> None:
    groups = [Group({"a": 12, "b": 18, "c": 10}, ["x"] * 10 + ["y"] * 10 + ["z"] * 20)]
    found = credibility_general(groups, at_most_one_in(2))
    assert found is not None
    assert all(sum(row.values()) == 1 for row in found.values())
    assert 12 * found["a"]["x"] + 18 * found["b"]["x"] + 10 * found["c"]["x"] == 10


def test_bad_input_is_refused() -> None:
    with pytest.raises(UsageError, match="a group of 3 rows has 2 values"):
        credibility_general([Group({"a": 1, "b": 2}, ["x", "y"])], distinct(2))
    wide = [Group({"a": 15, "b": 15}, [str(i) for i in range(30)])]
    with pytest.raises(TooManyWorlds):
        credibility_general(wide, distinct(2), strict=True)
