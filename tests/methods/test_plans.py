"""Γα, Γβ and plans against their definitions, and the searches against all partitions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.association import Association, Contingency, Subset, Tables
from maskwright.domain.value_sets import SetColumn
from maskwright.methods._plans.table_plans import (
    Remembered,
    best_plan,
    greedy_plan,
    merge_sequence,
    pareto_frontier,
    singleton_plan,
)

TABLE_1 = [["HT", "HT", "DB", "AS"], ["HT", "DB", "HT", "AS"], ["teacher", "lawyer", "farmer", "teacher"]]


def associate(columns: Sequence[Sequence[str]], harmless: dict[int, list[str]] | None = None) -> Association:
    domains = [sorted(set(c)) for c in columns]
    codes = np.array(
        [[d.index(v) + 1 for v in c] for c, d in zip(columns, domains, strict=True)], dtype=np.int32
    )
    counts = Contingency.of_codes(
        [str(i) for i in range(len(columns))], [len(d) + 1 for d in domains], codes,
        np.ones(codes.shape[1], dtype=np.int64),
    )  # fmt: skip
    coded = {
        i: [domains[i].index(v) + 1 for v in vs if v in domains[i]] for i, vs in (harmless or {}).items()
    }
    return Association.of(counts, coded)


def tables_of(
    columns: int, rows: tuple[int, int] = (2, 8), values: str = "abc"
) -> st.SearchStrategy[list[list[str]]]:
    def table(n: int) -> st.SearchStrategy[list[list[str]]]:
        column = st.lists(st.sampled_from(values), min_size=n, max_size=n)
        return st.lists(column, min_size=columns, max_size=columns)

    return st.integers(*rows).flatmap(table)


def entropy(column: Sequence[object]) -> float:
    return -sum(c / len(column) * math.log2(c / len(column)) for c in Counter(column).values())


@given(tables_of(3), st.lists(st.sampled_from("abc"), max_size=2))
def test_the_definitions(columns: list[list[str]], harmless: list[str]) -> None:
    found = associate(columns, {0: harmless})
    n = len(columns[0])
    for i, column in enumerate(columns):
        assert found.entropy[i] == pytest.approx(entropy(column), abs=1e-12)
    for i, j in itertools.combinations(range(3), 2):
        both = list(zip(columns[i], columns[j], strict=True))
        information = entropy(columns[i]) + entropy(columns[j]) - entropy(both)
        assert found.information[i, j] == pytest.approx(information, abs=1e-12)
        exposure = sum(
            c / n * (
                (i != 0 or v not in harmless) * (entropy(columns[i]) - information)
                + (j != 0 or w not in harmless) * (entropy(columns[j]) - information)
            )
            for (v, w), c in Counter(both).items()
        )  # fmt: skip
        assert found.exposure[i, j] == pytest.approx(exposure, abs=1e-12)


@given(tables_of(4))
def test_merging_lowers_the_loss_and_raises_the_exposure(columns: list[list[str]]) -> None:
    found = associate(columns)
    for tables in all_plans(4):
        for a, b in itertools.combinations(tables, 2):
            merged = tuple(sorted([*(s for s in tables if s not in (a, b)), tuple(sorted(a + b))]))
            assert found.alpha(merged) <= found.alpha(tables) + 1e-12
            assert found.beta(merged) >= found.beta(tables) - 1e-12
    whole = (tuple(range(4)),)
    informative, exposed = any(found.information.values()), any(found.exposure.values())
    assert found.alpha(singleton_plan(4)) == pytest.approx(1.0 if informative else 0.0)
    assert found.beta(whole) == pytest.approx(1.0 if exposed else 0.0)
    assert found.alpha(whole) == found.beta(singleton_plan(4)) == 0.0


def test_the_boundary_is_decided_as_on_paper() -> None:
    """Γα = 2/3 and Γβ = 2/9 exactly, for all three plans of Table 1 with two tables."""
    found = associate(TABLE_1)
    tiny = Fraction(1, 10**30)
    for tables in (((0, 1), (2,)), ((0, 2), (1,)), ((0,), (1, 2))):
        assert found.alpha_at_most(tables, Fraction(2, 3))
        assert not found.alpha_at_most(tables, Fraction(2, 3) - tiny)
        assert found.beta_at_most(tables, Fraction(2, 9))
        assert not found.beta_at_most(tables, Fraction(2, 9) - tiny)


@given(tables_of(3), st.fractions(0, 1, max_denominator=12))
def test_thresholds_agree_with_the_floats_where_those_are_clear(
    columns: list[list[str]], bound: Fraction
) -> None:
    found = associate(columns)
    for tables in all_plans(3):
        for value, decided in (
            (found.alpha(tables), found.alpha_at_most(tables, bound)),
            (found.beta(tables), found.beta_at_most(tables, bound)),
        ):
            if abs(value - float(bound)) > 1e-7:
                assert decided == (value <= float(bound))


@given(tables_of(3))
def test_a_plan_is_within_the_bound_that_it_reaches(columns: list[list[str]]) -> None:
    """0 and 1 are reached exactly, not up to rounding."""
    found, whole = associate(columns), ((0, 1, 2),)
    assert found.alpha_at_most(whole, Fraction(0))
    assert found.beta_at_most(singleton_plan(3), Fraction(0))
    assert found.alpha_at_most(singleton_plan(3), Fraction(1))
    assert found.beta_at_most(whole, Fraction(1))


def monotone(bad: list[Subset]) -> Remembered:
    """A table is good unless it contains a bad one."""
    return Remembered(lambda s: not any(set(b) <= set(s) for b in bad))


SUBSETS = [s for n in (1, 2, 3) for s in itertools.combinations(range(5), n)]


@given(tables_of(5), st.fractions(0, 1, max_denominator=9), st.lists(st.sampled_from(SUBSETS), max_size=3))
def test_the_best_plan_is_the_best_of_all(
    columns: list[list[str]], beta: Fraction, bad: list[Subset]
) -> None:
    found, good = associate(columns), monotone(bad)
    allowed = [t for t in all_plans(5) if found.beta_at_most(t, beta) and all(monotone(bad)(s) for s in t)]
    best = best_plan(found, beta, good)
    if not allowed:
        assert best.tables is None
        return
    assert best.tables in allowed
    least = min(map(found.alpha, allowed))
    assert found.alpha(best.tables) == pytest.approx(least, abs=1e-11)
    equal = [t for t in allowed if found.alpha(t) <= least + 1e-12]
    assert found.beta(best.tables) <= min(map(found.beta, equal)) + 1e-9
    star = greedy_plan(found, beta, monotone(bad)).tables
    assert star is not None
    assert found.alpha(best.tables) <= found.alpha(star) + 1e-12


@given(tables_of(5), st.one_of(st.none(), st.integers(1, 4)))
def test_the_frontier_is_that_of_all_plans(columns: list[list[str]], widest: int | None) -> None:
    found = associate(columns)
    limit = None if widest is None else float(widest)

    def inside(tables: Tables) -> bool:
        return limit is None or all(len(s) <= limit for s in tables)

    points = [(found.alpha(t), found.beta(t)) for t in all_plans(5) if inside(t)]
    front = pareto_frontier(found, closeness=lambda s: float(len(s)), limit=limit)
    assert front.exact
    shown = [(p.alpha, p.beta) for p in front.points]
    for alpha, beta in points:  # every plan is beaten or matched by one that is shown
        assert any(a <= alpha + 1e-9 and b <= beta + 1e-9 for a, b in shown)
    for a, b in shown:  # and none that is shown is beaten
        assert not any(alpha < a - 1e-9 and beta <= b for alpha, beta in points)
        assert not any(alpha <= a and beta < b - 1e-9 for alpha, beta in points)
        assert any(abs(alpha - a) < 1e-9 and abs(beta - b) < 1e-9 for alpha, beta in points)


def test_the_number_of_plans() -> None:
    assert [sum(1 for _ in all_plans(n)) for n in range(1, 7)] == [1, 2, 5, 15, 52, 203]
    assert len(set(all_plans(5))) == 52


def test_greedy_stops_at_the_first_refusal_and_says_why() -> None:
    found = associate(TABLE_1)
    assert greedy_plan(found, Fraction(1), monotone([])).tables == ((0, 1, 2),)
    stopped = greedy_plan(found, Fraction(2, 9), monotone([]))
    assert (stopped.tables, stopped.why, stopped.refused) == (((0, 1), (2,)), "beta", (0, 1, 2))
    refused = greedy_plan(found, Fraction(1), monotone([(0, 1)]))
    assert (refused.tables, refused.why, refused.refused) == (singleton_plan(3), "requirements", (0, 1))
    nothing = greedy_plan(found, Fraction(1), monotone([(2,)]))
    assert (nothing.tables, nothing.failing) == (None, (2,))


def test_merges_take_the_first_of_equal_unions() -> None:
    assert [m.tables for m in merge_sequence(associate(TABLE_1))] == [((0, 1), (2,)), ((0, 1, 2),)]


def test_one_attribute_alone() -> None:
    found = associate([["a", "b"]])
    assert found.alpha(((0,),)) == found.beta(((0,),)) == 0.0
    assert best_plan(found, Fraction(0), monotone([])).tables == ((0,),)


def test_a_part_of_a_column_of_sets() -> None:
    column = SetColumn("symptoms", ("cough", "fever", "rash"), ";")
    assert column.bits == ("symptoms=cough", "symptoms=fever", "symptoms=rash")
    assert column.only({"symptoms=rash"}) == SetColumn("symptoms", ("rash",), ";")


def all_plans(n: int) -> Iterator[Tables]:
    """Every partition of n attributes."""

    def grow(i: int, tables: tuple[Subset, ...]) -> Iterator[Tables]:
        if i == n:
            yield tables
            return
        for u in range(len(tables)):
            yield from grow(i + 1, (*tables[:u], (*tables[u], i), *tables[u + 1 :]))
        yield from grow(i + 1, (*tables, (i,)))

    return itertools.chain(grow(0, ()))
