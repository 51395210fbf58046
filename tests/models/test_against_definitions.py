"""Every model decides as its definition on paper does, class by class, with `passing` and with `check`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.classes import Classes
from maskwright.domain.model import Context, Model
from maskwright.domain.rules import DistinctAtLeast, SizeAtLeast
from tests.models import definitions as paper
from tests.models.build import PARENT, Values, classes_of, context_of, model, tree

value = st.sampled_from(["a", "b", "c", "d", None])
tables = st.lists(st.lists(value, min_size=1, max_size=9), max_size=5)
small = st.integers(1, 5)
ratio = st.fractions(Fraction(1, 3), 5, max_denominator=4)
share = st.fractions(Fraction(1, 5), 1, max_denominator=6)
extra = st.lists(value, max_size=6)


def agree(m: Model, classes: Classes, context: Context, expected: Sequence[bool]) -> None:
    verdict = m.check(classes, context)
    assert verdict.passes.tolist() == list(expected)
    assert m.passing(classes, context).tolist() == list(expected)
    assert len(verdict.values) == classes.n
    assert verdict.ok == all(expected)
    assert (verdict.worst is None) == (classes.n == 0)


def each(classes: Sequence[Values], test: Callable[..., bool], *parameters: Any) -> list[bool]:
    return [test(values, *parameters) for values in classes]


@given(tables, small)
def test_k_anonymity(table: list[Values], k: int) -> None:
    classes = classes_of(table)
    agree(model("k-anonymity", k=k), classes, Context(), each(table, lambda v: len(v) >= k))


@given(tables, ratio, st.sampled_from([None, [["a"]], [["a", "b"], ["c"]], [["a", "b", "c", "d"]]]))
def test_simple_l_diversity(table: list[Values], ell: Fraction, sets: Any) -> None:
    m = model("simple-l-diversity", l=ell, **({} if sets is None else {"sets": sets}))
    agree(m, classes_of(table), Context(), each(table, paper.simple, ell, sets))


@given(tables, ratio)
def test_chosen_values_are_sets_of_one(table: list[Values], ell: Fraction) -> None:
    m = model("simple-l-diversity", l=ell, values=["a", "d"])
    agree(m, classes_of(table), Context(), each(table, paper.simple, ell, [["a"], ["d"]]))


@given(tables, small)
def test_distinct_l_diversity(table: list[Values], ell: int) -> None:
    agree(
        model("distinct-l-diversity", l=ell), classes_of(table), Context(), each(table, paper.distinct, ell)
    )


@given(tables, st.one_of(ratio, st.integers(1, 4).map(Fraction)))
def test_entropy_l_diversity(table: list[Values], ell: Fraction) -> None:
    agree(model("entropy-l-diversity", l=ell), classes_of(table), Context(), each(table, paper.entropy, ell))


@given(tables, ratio, small)
def test_recursive_cl_diversity(table: list[Values], c: Fraction, ell: int) -> None:
    m = model("recursive-cl-diversity", c=c, l=ell)
    agree(m, classes_of(table), Context(), each(table, paper.recursive, c, ell))


@given(tables, share, small)
def test_alpha_k_anonymity(table: list[Values], alpha: Fraction, k: int) -> None:
    m = model("alpha-k-anonymity", alpha=alpha, k=k)
    agree(m, classes_of(table), Context(), each(table, paper.alpha_k, alpha, k))


@given(st.lists(st.lists(st.tuples(value, value), min_size=1, max_size=6), max_size=4), small, small)
def test_p_sensitive_k_anonymity(rows: list[list[tuple[str | None, str | None]]], p: int, k: int) -> None:
    first, second = ([[row[i] for row in group] for group in rows] for i in (0, 1))
    classes = classes_of(first, second=second)
    both = [
        len(a) >= k and paper.distinct(a, p) and paper.distinct(b, p)
        for a, b in zip(first, second, strict=True)
    ]
    agree(model("p-sensitive-k-anonymity", p=p, k=k), classes, Context(), both)
    rules = model("p-sensitive-k-anonymity", p=p, k=k).kernel(context_of(classes))
    assert rules == (SizeAtLeast(k), DistinctAtLeast("s", p), DistinctAtLeast("second", p))
    one = [len(b) >= k and paper.distinct(b, p) for b in second]
    agree(model("p-sensitive-k-anonymity", p=p, k=k, attributes=["second"]), classes, Context(), one)


@given(tables, extra, st.fractions(0, 1, max_denominator=8))
def test_t_closeness(table: list[Values], more: Values, t: Fraction) -> None:
    classes, whole = classes_of(table), [*(v for values in table for v in values), *more, "a"]
    context = context_of(classes, whole, trees={"s": tree()})
    for distance, test in (
        ("equal", paper.equal),
        ("ordered", paper.ordered),
        ("hierarchical", lambda values, whole: paper.hierarchical(values, whole, PARENT)),
    ):
        m = model("t-closeness", t=t, distance=distance)
        exact = [test(values, whole) for values in table]
        assert list(m.check(classes, context).values) == exact
        agree(m, classes, context, [x <= t for x in exact])


@given(st.data(), tables, st.fractions(0, 1, max_denominator=8), st.integers(1, 12))
def test_nt_closeness(data: st.DataObject, table: list[Values], t: Fraction, n: int) -> None:
    classes = classes_of(table)
    others = st.lists(st.sampled_from(range(len(table))), max_size=3) if table else st.just([])
    families = [data.draw(st.lists(others, max_size=2)) for _ in table]
    families = [[[i, *members] for members in family] for i, family in enumerate(families)]
    expected = []
    for values, family in zip(table, families, strict=True):
        unions = [[v for i in set(members) for v in table[i]] for members in family]
        fits = [u for u in unions if len(u) >= n and paper.equal(values, u if paper.known(u) else "a") <= t]
        expected.append(bool(fits))
    agree(model("nt-closeness", n=n, t=t), classes, context_of(classes, supersets=families), expected)


@given(tables, extra, st.fractions(0, 1, max_denominator=8), st.integers(1, 40))
def test_nt_closeness_to_the_whole_table(table: list[Values], more: Values, t: Fraction, n: int) -> None:
    classes, whole = classes_of(table), [*(v for values in table for v in values), *more, "a"]
    expected = [len(whole) >= n and paper.equal(values, whole) <= t for values in table]
    agree(model("nt-closeness", n=n, t=t), classes, context_of(classes, whole), expected)


number = st.sampled_from(["10", "-5", "7", "30", None])


@given(
    st.lists(st.lists(number, min_size=1, max_size=5), max_size=4), small, st.integers(0, 36), st.booleans()
)
def test_ke_anonymity(table: list[Values], k: int, e: int, distinct: bool) -> None:
    m = model("ke-anonymity", k=k, e=e, distinct=distinct)
    classes = classes_of(table, ("10", "-5", "7", "30"))
    agree(m, classes, Context(), each(table, paper.ke, k, e, distinct))


@given(tables, extra, st.fractions(Fraction(1, 4), 2, max_denominator=7), st.booleans())
def test_delta_disclosure(table: list[Values], more: Values, delta: Fraction, strict: bool) -> None:
    classes, whole = classes_of(table), [*(v for values in table for v in values), *more, "a"]
    m = model("delta-disclosure", delta=delta, strict=strict)
    agree(m, classes, context_of(classes, whole), each(table, paper.delta_disclosure, whole, delta, strict))


@given(tables, extra, st.fractions(Fraction(1, 4), 3, max_denominator=7), st.booleans())
def test_beta_likeness(table: list[Values], more: Values, beta: Fraction, enhanced: bool) -> None:
    classes, whole = classes_of(table), [*(v for values in table for v in values), *more, "a"]
    m = model("beta-likeness", beta=beta, enhanced=enhanced)
    agree(m, classes, context_of(classes, whole), each(table, paper.beta_likeness, whole, beta, enhanced))


people = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=5)


def sized(pairs: list[tuple[int, int]]) -> tuple[Classes, Context]:
    """Classes of given sizes and how many more people of the population match them."""
    sizes = np.array([size for size, _ in pairs], dtype=np.int64)
    population = np.array([size + more for size, more in pairs], dtype=np.int64)
    return Classes(sizes, sizes, population=population), Context()


@given(people, small, share, share)
def test_models_that_need_a_population(
    pairs: list[tuple[int, int]], k: int, low: Fraction, high: Fraction
) -> None:
    classes, context = sized(pairs)
    agree(model("k-map", k=k), classes, context, [size + more >= k for size, more in pairs])
    low, high = min(low, high), max(low, high)
    inside = [low <= Fraction(size, size + more) <= high for size, more in pairs]
    agree(model("delta-presence", delta_min=low, delta_max=high), classes, context, inside)
    journalist = [Fraction(1, size + more) <= high for size, more in pairs]
    agree(model("highest-risk", max=high, adversary="journalist"), classes, context, journalist)


@given(people, share)
def test_risks(pairs: list[tuple[int, int]], bound: Fraction) -> None:
    classes, context = sized(pairs)
    risks = [Fraction(1, size) for size, _ in pairs]
    agree(model("highest-risk", max=bound), classes, context, [risk <= bound for risk in risks])
    everybody = sum(size for size, _ in pairs)
    if everybody:
        average = sum(size * Fraction(1, size) for size, _ in pairs) / everybody
        marketer = sum(Fraction(size, size + more) for size, more in pairs) / everybody
        agree(model("average-risk", max=bound), classes, context, [average <= bound] * len(pairs))
        m = model("average-risk", max=bound, adversary="marketer")
        agree(m, classes, context, [marketer <= bound] * len(pairs))
        assert m.check(classes, context).worst == marketer


@given(st.data(), st.lists(st.tuples(small, small, small), min_size=1, max_size=6), st.integers(1, 12))
def test_k_anonymity_of_combinations(
    data: st.DataObject, codes: list[tuple[int, int, int]], k: int
) -> None:  # fmt: skip
    codes = sorted(set(codes))
    sizes = np.array([data.draw(small) for _ in codes], dtype=np.int64)
    classes = Classes(sizes, sizes, {}, ("x", "y", "z"), np.array(codes, dtype=np.int32).T)
    expected = []
    for row in codes:
        matching = []
        for on in ((0,), (2, 1)):
            alike = [all(other[i] == row[i] for i in on) for other in codes]
            matching.append(sum(size for size, same in zip(sizes.tolist(), alike, strict=True) if same))
        expected.append(min(matching) >= k)
    agree(model("k-anonymity", k=k, on=[["x"], ["z", "y"]]), classes, Context(), expected)
