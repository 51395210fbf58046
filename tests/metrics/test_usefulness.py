"""Entropy, distances, associations and query errors against their definitions, row by row and world by world."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from maskwright.domain.hierarchy import Hierarchy
from maskwright.errors import UsageError
from maskwright.metrics import METRICS
from maskwright.metrics._shared.supports import supports_of
from maskwright.metrics.distributions import (
    attribute_associations,
    attribute_distributions,
    attribute_earth_movers,
    attribute_total_variation,
    cramers_v,
    earth_movers,
)
from maskwright.metrics.loss import attribute_bits, non_uniform_entropy
from maskwright.metrics.prediction import measure_prediction
from maskwright.metrics.queries import CHUNK, Workload, _drawn, _QueryTable, query_errors
from maskwright.worlds.reference_methods import count_actual, count_estimate, relative_error
from tests.metrics.releases import AGES, ATTRIBUTES, JOBS, Example, Row, cases, example, rows

NAMES = ("age", "job")


@given(cases)
def test_labels_stand_for_what_they_cover(case: Any) -> None:
    made = example(case)
    for a, supports in enumerate(supports_of(made.grouping)):
        labels = made.grouping.labels[a]
        for i in np.unique(labels.of_group):
            codes = supports.codes[supports.start[i] : supports.start[i + 1]]
            assert (codes > 0).sum() == labels.coverage[i]
    for row in made.rows:
        if row.group >= 0:
            assert all(code in inside for code, inside in zip(row.codes, row.supports, strict=True))


@given(cases)
def test_non_uniform_entropy(case: Any) -> None:
    made = example(case)
    bits = attribute_bits(made.grouping)
    for a, name in enumerate(NAMES):
        expected = 0.0
        for row in made.rows:
            gone = row.group < 0 or row.group == made.grouping.starred
            published = sum(gone or other.codes[a] in row.supports[a] for other in made.rows)
            expected += math.log2(published / sum(other.codes[a] == row.codes[a] for other in made.rows))
        assert math.isclose(bits[name], expected, abs_tol=1e-9)
    weights = {"age": Fraction(3), "job": Fraction(1)}
    total = non_uniform_entropy(made.grouping, weights)
    assert math.isclose(total, 3 * bits["age"] + bits["job"], abs_tol=1e-9)


def spread(made: Example, a: int) -> dict[int, Fraction]:
    result: Counter[int] = Counter()
    published = [row for row in made.rows if row.group >= 0]
    for row in published:
        for code in made.shown(row, a):
            result[code] += Fraction(1, len(made.shown(row, a)) * len(published))  # type: ignore[assignment]
    return dict(result)  # type: ignore[arg-type]


@given(cases)
def test_distributions_and_their_distances(case: Any) -> None:
    made = example(case)
    found = attribute_distributions(made.grouping, made.exact)
    variation = attribute_total_variation(made.grouping, made.exact)
    n = len(made.rows)
    for a, name in enumerate(NAMES):
        before = {c: Fraction(k, n) for c, k in Counter(row.codes[a] for row in made.rows).items()}
        after = spread(made, a)
        width = len(ATTRIBUTES[a].values) + 1
        assert np.allclose(found[name][0], [float(before.get(c, 0)) for c in range(width)], atol=1e-12)
        assert np.allclose(found[name][1], [float(after.get(c, 0)) for c in range(width)], atol=1e-12)
        difference = sum(abs(before.get(c, 0) - after.get(c, 0)) for c in range(width)) / 2
        assert math.isclose(variation[name], difference, abs_tol=1e-12)
    kept = Counter(row.value for row in made.rows if row.group >= 0)
    values = made.grouping.summary.sensitive["s"].values
    assert np.allclose(found["s"][1], [kept[c] / sum(kept.values()) for c in range(len(values) + 1)])
    for metric, each in (("distribution-distance", variation), ("earth-movers-distance", None)):
        each = each or attribute_earth_movers(made.grouping, made.exact)
        measured = METRICS[metric].measure(made.grouping, {}, made.exact)
        assert math.isclose(measured, sum(each.values()) / 3, abs_tol=1e-12)


def transport(p: np.ndarray[Any, Any], q: np.ndarray[Any, Any], cost: np.ndarray[Any, Any]) -> float:
    """The cheapest way to turn p into q, by linear programming."""
    n = len(p)
    equal = [np.kron(np.eye(n)[i], np.ones(n)) for i in range(n)]
    equal += [np.kron(np.ones(n), np.eye(n)[i]) for i in range(n)]
    solved = linprog(cost.reshape(-1), A_eq=np.array(equal), b_eq=np.concatenate([p, q]))
    assert solved.status == 0
    return float(solved.fun)


TREE = Hierarchy.of("t", list("abcdef"), [("one", list("uuvvww")), ("two", list("xxxxyy"))])


@given(
    st.lists(st.integers(0, 5), min_size=6, max_size=6).filter(any),
    st.lists(st.integers(0, 5), min_size=6, max_size=6).filter(any),
    st.sampled_from(["ordered", "tree", "equal"]),
    st.integers(0, 4),
)
def test_earth_movers_is_the_cheapest_transport(
    before: list[int], after: list[int], kind: str, missing: int
) -> None:
    p, q = np.array(before) / sum(before), np.array(after) / sum(after)
    blocks = [level.blocks[1:] for level in TREE.levels]

    def apart(i: int, j: int) -> float:
        if kind == "ordered":
            return abs(i - j) / 5
        if kind == "equal":
            return float(i != j)
        return next(h for h, b in enumerate(blocks) if b[i] == b[j]) / 3

    cost = np.array([[apart(i, j) for j in range(6)] for i in range(6)])
    found = earth_movers(
        np.array([missing, *before], float), np.array([0, *after], float), TREE if kind == "tree" else None,
        kind == "ordered",
    )  # fmt: skip
    assert math.isclose(found, transport(p, q, cost), abs_tol=1e-7)


@given(cases)
def test_associations(case: Any) -> None:
    made = example(case)
    found = attribute_associations(made.grouping, made.exact)
    published = [row for row in made.rows if row.group >= 0]
    sizes = Counter(row.group for row in published)
    held = Counter((row.group, row.value) for row in published)

    def table(pairs: Any, shape: tuple[int, int]) -> np.ndarray[Any, Any]:
        result = np.zeros(shape)
        for i, j, weight in pairs:
            result[i, j] += weight
        return result

    def before_after(before: Any, after: Any, shape: tuple[int, int]) -> tuple[float, float]:
        first = table(before, shape)
        scale = (int((first.sum(axis=1) > 0).sum()), int((first.sum(axis=0) > 0).sum()))
        return cramers_v(first, *scale), cramers_v(table(after, shape), *scale)

    def even(row: Row, a: int) -> list[tuple[int, float]]:
        return [(c, 1 / len(made.shown(row, a))) for c in made.shown(row, a)]

    both = before_after(
        [(*row.codes, 1) for row in made.rows],
        [
            (i, j, p * q)
            for row in published
            for (i, p), (j, q) in itertools.product(even(row, 0), even(row, 1))
        ],
        (7, 5),
    )
    assert np.allclose(found["age", "job"], both, atol=1e-9)
    for a, name in enumerate(NAMES):
        after = [
            (i, v, p * held[row.group, v] / sizes[row.group])
            for row in published for i, p in even(row, a) for v in range(4)
        ]  # fmt: skip
        expected = before_after([(r.codes[a], r.value, 1) for r in made.rows], after, ((7, 5)[a], 4))
        assert np.allclose(found[name, "s"], expected, atol=1e-9)
    change = sum(abs(b - a) for a, b in found.values()) / 3
    assert math.isclose(METRICS["correlation-change"].measure(made.grouping, {}, made.exact), change)


def test_cramers_v_at_both_ends() -> None:
    assert cramers_v(np.eye(3) * 5, 3, 3) == pytest.approx(1)
    assert cramers_v(np.ones((3, 3)), 3, 3) == pytest.approx(0, abs=1e-12)


# -- COUNT queries -----------------------------------------------------------------------------------------------

SMALL = Workload(queries=25, dimension=1, selectivity=0.4)


def queries_of(made: Example, workload: Workload) -> list[tuple[list[set[int]], set[int]]]:
    """The drawn queries as sets of codes."""
    result = []
    for allowed, wanted in _drawn(_QueryTable.of(made.grouping, workload, made.exact), workload):
        assert wanted is not None
        for q in range(wanted.shape[1]):
            sets = [set(np.flatnonzero(sets[:, q]).tolist()) for sets in allowed]
            result.append((sets, set(np.flatnonzero(wanted[:, q]).tolist())))
    return result


@given(cases, st.integers(1, 3), st.sampled_from(["expected", "uniform"]))
def test_answers_are_those_of_the_definition(case: Any, dimension: int, sizes: Any) -> None:
    made = example(case)
    workload = Workload(queries=25, dimension=dimension, selectivity=0.4, sizes=sizes)
    found = query_errors(made.grouping, workload, made.exact)
    published = [row for row in made.rows if row.group >= 0]
    size = Counter(row.group for row in published)
    actual, estimate = [], []
    for sets, wanted in queries_of(made, workload):
        predicate = dict(enumerate(sets))
        true = count_actual([(r.codes, r.value) for r in made.rows], predicate, wanted)
        total = Fraction(0)
        for row in published:
            share = Fraction(1)
            for a in range(2):
                shown = made.shown(row, a)
                share *= Fraction(sum(c in sets[a] for c in shown), len(shown))
            held = sum(o.value in wanted for o in published if o.group == row.group)
            total += share * Fraction(held, size[row.group])
        if true:
            actual.append(true)
            estimate.append(total)
    assert found.actual.tolist() == actual
    assert found.skipped == 25 - len(actual)
    assert np.allclose(found.estimate, [float(e) for e in estimate], atol=1e-9)
    errors = [relative_error(e, a) for e, a in zip(estimate, actual, strict=True)]
    if errors:
        assert math.isclose(found.mean, sum(errors) / len(errors), abs_tol=1e-9)  # type: ignore[arg-type]
    if made.exact and made.grouping.starred is None:
        groups = [
            ([r.codes for r in published if r.group == g], [r.value for r in published if r.group == g])
            for g in sorted(size)
        ]
        plain = [
            count_estimate(groups, dict(enumerate(sets)), wanted)
            for sets, wanted in queries_of(made, workload)
            if count_actual([(r.codes, r.value) for r in made.rows], dict(enumerate(sets)), wanted)
        ]
        assert plain == estimate


@given(
    rows.filter(lambda r: len(r) <= 6),
    st.sampled_from([("anatomy", {"l": 2}), ("mondrian", {})]),
    st.booleans(),
)
def test_the_estimate_is_the_mean_over_all_worlds(table: Any, method: Any, exact: bool) -> None:
    """Every way to deal the values of a group to its rows, and every value that a label leaves open."""
    made = example((table, method, exact))
    found = query_errors(made.grouping, SMALL, exact)
    published = [row for row in made.rows if row.group >= 0]
    groups = sorted({row.group for row in published})
    dealt = list(
        itertools.product(
            *(itertools.permutations([r.value for r in published if r.group == g]) for g in groups)
        )
    )
    members = [row for g in groups for row in published if row.group == g]
    open_to = [list(itertools.product(made.shown(r, 0), made.shown(r, 1))) for r in members]
    means = []
    for sets, wanted in queries_of(made, SMALL):
        if not any(r.codes[0] in sets[0] and r.codes[1] in sets[1] and r.value in wanted for r in made.rows):
            continue
        # quasi-identifiers and values are dealt independently, so the mean over worlds goes row by row
        total = Fraction(0)
        for i in range(len(members)):
            inside = sum(x in sets[0] and y in sets[1] for x, y in open_to[i])
            having = sum([v for part in world for v in part][i] in wanted for world in dealt)
            total += Fraction(inside * having, len(open_to[i]) * len(dealt))
        means.append(total)
    assert np.allclose(found.estimate, [float(m) for m in means], atol=1e-9)


@given(cases)
def test_the_most_correlated_queries(case: Any) -> None:
    made = example(case)
    found = query_errors(made.grouping, SMALL, made.exact)
    n = len(made.rows)
    phi = []
    for sets, wanted in queries_of(made, SMALL):
        first = [all(c in s for c, s in zip(r.codes, sets, strict=True)) for r in made.rows]
        second = [r.value in wanted for r in made.rows]
        if not any(x and y for x, y in zip(first, second, strict=True)):
            continue
        constant = len(set(first)) == 1 or len(set(second)) == 1
        phi.append(0.0 if constant else float(np.corrcoef(first, second)[0, 1]))
    assert np.allclose(found.correlation, phi, atol=1e-9)
    if n and phi:
        top = found.most_correlated("positive", 3)
        assert np.allclose(sorted(top.correlation), sorted(phi)[-3:], atol=1e-9)
        low = found.most_correlated("negative", 3)
        assert np.allclose(sorted(low.correlation), sorted(phi)[:3], atol=1e-9)


def one_release(**more: Any) -> Example:
    table = [(AGES[i % 6], JOBS[i % 4], "abc"[i % 3]) for i in range(60)]
    return example((table, ("optimal-lattice", {"suppression": "10%"} | more), False))


def test_a_workload_is_the_same_for_every_release_of_a_table() -> None:
    first, second = one_release(), one_release(objective="height")
    workload = Workload(queries=CHUNK + 10, dimension=2, selectivity=0.2)
    assert queries_of(first, workload) == queries_of(second, workload)
    other = Workload(queries=CHUNK + 10, dimension=2, selectivity=0.2, seed=2)
    assert queries_of(first, workload) != queries_of(first, other)
    for sets, wanted in queries_of(first, workload):
        asked = [len(s) for s, h in zip(sets, ATTRIBUTES, strict=True) if len(s) <= len(h.values)]
        assert len(asked) == 2
        assert asked == [math.ceil(6 * 0.2 ** (1 / 3)), math.ceil(4 * 0.2 ** (1 / 3))]
        assert len(wanted) == math.ceil(3 * 0.2 ** (1 / 3))


@pytest.mark.parametrize(
    ("settings_", "words"),
    [
        ({"queries": 0}, "at least one query"),
        ({"selectivity": 0}, "selectivity 0"),
        ({"selectivity": 1.5}, "selectivity 1.5"),
        ({"sizes": "odd"}, "neither"),
        ({"selectivity": float("nan")}, "selectivity nan"),
        ({"selectivity": 10**5000}, "not between"),
        ({"selectivity": "5%"}, "not a number"),
        ({"queries": "5"}, "not a whole number"),
        ({"queries": 2.5}, "not a whole number"),
        ({"queries": True}, "not a whole number"),
        ({"queries": 10**5000}, "at most 1,000,000"),
        ({"dimension": None}, "not a whole number"),
        ({"seed": -1}, "negative"),
        ({"attribute": 3}, "not the name"),
    ],
)
def test_bad_workloads_are_refused(settings_: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Workload(**settings_)


def test_a_workload_that_asks_for_no_sensitive_column_is_refused() -> None:
    with pytest.raises(UsageError, match="job"):
        query_errors(one_release().grouping, Workload(attribute="job"))


# -- prediction --------------------------------------------------------------------------------------------------


def test_prediction_is_perfect_where_the_release_keeps_what_decides() -> None:
    table = [(AGES[i % 6], JOBS[i // 6 % 4], "ab"[i // 6 % 4 // 2]) for i in range(240)]
    kept = example((table, ("optimal-lattice", {}), False))
    found = measure_prediction(kept.grouping, seed=3)
    assert found.target == "s"
    assert found.original == found.release == 1.0
    assert found.commonest < 0.8
    assert METRICS["predictive-utility"].measure(kept.grouping, {}) == 1.0


def test_prediction_is_guessing_where_values_are_shuffled_over_everybody() -> None:
    table = [(AGES[i % 6], JOBS[i // 6 % 4], "ab"[i // 6 % 4 // 2]) for i in range(240)]
    built = example((table, ("anatomy", {"l": 2}), True))
    lost = measure_prediction(built.grouping, exact=True, seed=3)
    assert lost.original == 1.0
    assert lost.release < 0.8  # every group holds as many a as b, whatever the job


def test_prediction_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(UsageError, match=r"maskwright\[predict\]"):
        measure_prediction(one_release().grouping)
