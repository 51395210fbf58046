"""Exact ties, missing values, huge counts, and the answers that other tools get wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from maskwright.domain.classes import Classes
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.model import Context
from maskwright.errors import HierarchyError, InputError, PolicyError
from tests.models.build import classes_of, context_of, model, weighted


def ok(name: str, values: str | list[str | None], table: str | None = None, /, **parameters: object) -> bool:
    classes = classes_of([list(values)])
    return model(name, **parameters).check(classes, context_of(classes, table and list(table))).ok


@pytest.mark.parametrize("values", [2, 3, 4])
def test_entropy_of_equally_frequent_values_is_their_number(values: int) -> None:
    for copies in (1, 2, 7, 1000):
        classes = weighted([dict.fromkeys("abcd"[:values], copies)])
        verdict = model("entropy-l-diversity", l=values).check(classes, Context())
        assert verdict.ok
        assert verdict.worst == values
        assert model("entropy-l-diversity", l=5).nearest(classes, Context()) == f"l: {values}"
        above = model("entropy-l-diversity", l=f"{values}.000001")
        assert not above.check(classes, Context()).ok


def test_entropy_ties_of_unequal_counts_are_decided_exactly() -> None:
    # {4, 1, 1, 1, 1}: 8⁸ = 4⁸·4⁴, a tie at l = 4 that floats cannot be trusted with
    domain = tuple("abcde")
    for scale in (1, 3, 10**6, 10**12):
        row = {"a": 4 * scale, "b": scale, "c": scale, "d": scale, "e": scale}
        near = {**row, "a": 4 * scale + 1}
        classes = weighted([row, near], domain)
        assert model("entropy-l-diversity", l=4).passing(classes, Context()).tolist() == [True, False]
        assert model("entropy-l-diversity", l=4).check(classes, Context()).passes.tolist() == [True, False]


def test_entropy_decides_many_tied_classes_quickly() -> None:
    classes = weighted([{"a": 4, "b": 1, "c": 1, "d": 1, "e": 1}] * 2000, tuple("abcde"))
    assert model("entropy-l-diversity", l=4).passing(classes, Context()).all()


def test_recursive_diversity_sorts_falling() -> None:
    # counts 5, 2, 1: r₁ = 5 < c·(2 + 1) needs c > 5/3; sorted the other way 1 < c·7 would nearly always hold
    assert not ok("recursive-cl-diversity", "aaaaabbc", c=1, l=2)
    assert not ok("recursive-cl-diversity", "aaaaabbc", c="5/3", l=2)  # strict
    assert ok("recursive-cl-diversity", "aaaaabbc", c="1.67", l=2)
    assert not ok("recursive-cl-diversity", "aaaaabbc", c=5, l=3)  # 5 < 5·1 is false
    assert ok("recursive-cl-diversity", "aaaaabbc", c="5.01", l=3)
    assert not ok("recursive-cl-diversity", "aaaaabbc", c=1000, l=4)  # fewer than l values


def test_recursive_nearest_is_above_the_strict_bound() -> None:
    classes = classes_of([list("aaaaabbc")])
    text = model("recursive-cl-diversity", c=1, l=2).nearest(classes, Context())
    assert text is not None
    key, c = text.split(": ")
    assert key == "c"
    assert model("recursive-cl-diversity", c=c, l=2).check(classes, Context()).ok
    assert Fraction(5, 3) < Fraction(c) <= Fraction(5, 3) + Fraction(1, 1000)


def test_simple_diversity_on_the_boundary() -> None:
    assert ok("simple-l-diversity", "aabbcc", l=3)
    assert not ok("simple-l-diversity", "aabbcc", l="3.0001")
    assert ok("simple-l-diversity", "aabbc", l="5/2")
    assert ok("simple-l-diversity", "a", l=2, values=["b"])  # no sensitive row: passes, whatever its size
    assert not ok("simple-l-diversity", "abcd", l=2, sets=[["a", "b", "c"]])


def test_alpha_k_with_alpha_one_over_l_and_k_one_is_simple_l_diversity() -> None:
    for values in ("aab", "ab", "aabb", "abc", "aaabbb"):
        assert ok("alpha-k-anonymity", values, alpha="1/2", k=1) == ok("simple-l-diversity", values, l=2)


def test_t_closeness_counts_its_threshold() -> None:
    # a threshold that is ignored would accept everything
    assert ok("t-closeness", "aab", "aaabbb", t="1/6")
    assert not ok("t-closeness", "aab", "aaabbb", t="0.1666")
    assert not ok("t-closeness", "aaa", "aaabbb", t="0.49")
    assert ok("t-closeness", "ab", "aaabbb", t=0)


def test_the_papers_table_10_is_not_close() -> None:
    classes = classes_of([list("aa"), list("bbba")])
    verdict = model("t-closeness", t="0.2").check(classes, context_of(classes))
    assert list(verdict.values) == [Fraction(1, 2), Fraction(1, 4)]
    assert not verdict.passes.any()


def test_missing_values_are_never_diversity() -> None:
    assert not ok("distinct-l-diversity", ["a", None, None], l=2)
    assert not ok("p-sensitive-k-anonymity", ["a", None, None], p=2, k=2)
    assert not ok("entropy-l-diversity", ["a", None], l=2)
    assert not ok("entropy-l-diversity", [None, None], l="1/2")
    assert not ok("recursive-cl-diversity", ["a", "a", None, None, None], c=1, l=2)
    assert not ok("recursive-cl-diversity", [None], c=1, l=1)
    numbers = classes_of([[None, None]], ("10", "20"))
    assert not model("ke-anonymity", k=2, e=1).check(numbers, Context()).ok


def test_missing_rows_count_as_people() -> None:
    assert ok("k-anonymity", ["a", None, None, None, None], k=5)
    assert ok("simple-l-diversity", ["a", None], l=2)
    assert ok("alpha-k-anonymity", ["a", None], alpha="1/2", k=2)


def test_missing_values_are_left_out_of_distributions() -> None:
    assert ok("t-closeness", ["a", "b", None, None], "aabb", t=0)
    assert ok("t-closeness", [None], "aabb", t=0)
    assert ok("beta-likeness", ["a", "b", None], "aabb", beta="0.001")
    assert ok("delta-disclosure", ["a", "b", None], "aabb", delta="0.001", strict=True)
    assert not ok("delta-disclosure", ["a", "b", None], "aabbc", delta=3, strict=True)


def test_classes_smaller_than_l_fail_by_themselves() -> None:
    for name in ("simple-l-diversity", "distinct-l-diversity", "entropy-l-diversity"):
        assert not ok(name, "ab", l=3)


def test_k_larger_than_the_table_is_not_satisfied() -> None:
    assert not ok("k-anonymity", "aab", k=4)


def test_highest_risk_is_taken_literally() -> None:
    eleven, twelve = (Classes(np.array([n]), np.array([n])) for n in (11, 12))
    m = model("highest-risk", max="0.09")  # 1/11 is 0.0909…
    assert not m.check(eleven, Context()).ok
    assert m.check(twelve, Context()).ok
    assert m.least_size(Context()) == 12


def test_huge_counts_do_not_overflow() -> None:
    big = 3 * 10**15
    rows = [{"a": big, "b": big + 1, "c": 1}, {"a": big, "b": big, "c": 1}]
    classes = weighted(rows)
    context = context_of(classes)
    n, total = 2 * big + 2, 4 * big + 3
    assert model("simple-l-diversity", l="1.99999999999").passing(classes, context).all()
    assert model("simple-l-diversity", l=2).passing(classes, context).tolist() == [True, True]
    assert not model("simple-l-diversity", l=2).passing(weighted([{"a": big + 1, "b": big}]), context).any()
    exact = model("t-closeness", t=0).check(classes, context)
    share = Fraction(big + 1, n) - Fraction(2 * big + 1, total)
    other = Fraction(1, n) - Fraction(2, total)
    assert exact.values[0] == max(share, 0) + max(other, 0) + max(
        Fraction(big, n) - Fraction(2 * big, total), 0
    )
    for distance in ("equal", "ordered"):
        values = model("t-closeness", t=1, distance=distance).check(classes, context).values
        assert all(0 < value < Fraction(1, 10**14) for value in values)
    gains = model("beta-likeness", beta="1e-20").check(classes, context)
    assert not gains.passes.any()


def test_beta_and_delta_on_the_boundary() -> None:
    assert ok("beta-likeness", "aab", "aabbbb", beta=1)  # 2/3 against 1/3: exactly twice
    assert not ok("beta-likeness", "aab", "aabbbb", beta="0.9999")
    # ln 2 = 0.693147180559945309417…
    assert not ok("delta-disclosure", "aab", "aabbbb", delta="0.69314718055994530")
    assert ok("delta-disclosure", "aab", "aabbbb", delta="0.69314718055994531")
    # enhanced: q = 1/2 allows a gain of ln 2 only: p = 5/6 gains 2/3, p = 6/7 gains 5/7
    half = "aaaaaabbbbbb"
    assert ok("beta-likeness", "aaaaab", half, beta=1, enhanced=True)
    assert not ok("beta-likeness", "aaaaaab", half, beta=1, enhanced=True)
    assert ok("beta-likeness", "aaaaaab", half, beta=1)


def test_the_worst_group_is_the_one_that_fails_most() -> None:
    classes = classes_of([list("aabb"), list("aaab"), list("ab")])
    verdict = model("simple-l-diversity", l=2).check(classes, Context())
    assert (verdict.worst_group, verdict.worst, verdict.failing.tolist()) == (1, Fraction(3, 4), [1])
    assert verdict.sentence() == (
        "simple-l-diversity FAILS in 1 of 3 groups: worst share of one sensitive value 75 % (3/4), asked at most 0.5"
    )
    alone = model("simple-l-diversity", l=2).check(classes_of([list("aaab")]), Context())
    assert "FAILS in 1 of 1 group: " in alone.sentence()


def test_k_is_reported_before_the_values_when_a_class_is_too_small() -> None:
    classes = classes_of([list("ab"), list("aaab")])
    verdict = model("alpha-k-anonymity", alpha="1/2", k=3).check(classes, Context())
    assert (verdict.worst, verdict.quantity) == (2, "people in the class")
    verdict = model("alpha-k-anonymity", alpha="1/2", k=2).check(classes, Context())
    assert (verdict.worst, verdict.worst_group) == (Fraction(3, 4), 1)


NEAREST = [
    ("k-anonymity", {"k": 9}, "k: 2"),
    ("simple-l-diversity", {"l": 9}, "l: 4/3"),
    ("distinct-l-diversity", {"l": 9}, "l: 1"),
    ("alpha-k-anonymity", {"alpha": "1/9", "k": 9}, "alpha: 1, k: 2"),
    ("p-sensitive-k-anonymity", {"p": 9, "k": 9}, "p: 1, k: 2"),
    ("t-closeness", {"t": 0}, "t: 3/7"),
    ("beta-likeness", {"beta": "1/9"}, "beta: 0.75"),
    ("highest-risk", {"max": "1/9"}, "max: 1/2"),
    ("average-risk", {"max": "1/99"}, "max: 2/7"),
]


@pytest.mark.parametrize(("name", "parameters", "expected"), NEAREST, ids=[row[0] for row in NEAREST])
def test_the_nearest_setting_is_exact_and_satisfied(
    name: str, parameters: dict[str, object], expected: str
) -> None:
    classes = classes_of(
        [list("aabbb"), list("aa")] if name != "simple-l-diversity" else [list("aaab"), list("ab")]
    )
    context = context_of(classes)
    m = model(name, **parameters)
    assert not m.check(classes, context).ok
    assert m.nearest(classes, context) == expected
    setting = dict(part.split(": ") for part in expected.split(", "))
    assert model(name, **{**parameters, **setting}).check(classes, context).ok


def test_ke_needs_numbers() -> None:
    with pytest.raises(PolicyError, match="'s' must hold numbers, and 'a' is none"):
        model("ke-anonymity", k=2, e=1, attribute="s").check(classes_of([["a", "b"]]), Context())


def test_ke_takes_decimals_exactly() -> None:
    classes = classes_of([["0.1", "0.3"]], ("0.1", "0.3"))
    assert model("ke-anonymity", k=2, e="0.2").check(classes, Context()).ok
    assert not model("ke-anonymity", k=2, e="0.2000001").check(classes, Context()).ok


@pytest.mark.parametrize("name", ["k-map", "delta-presence", "highest-risk", "average-risk"])
def test_a_population_is_asked_for(name: str) -> None:
    parameters = {
        "k-map": {"k": 2},
        "delta-presence": {"delta_max": "1/2"},
        "highest-risk": {"max": "1/2", "adversary": "journalist"},
        "average-risk": {"max": "1/2", "adversary": "marketer"},
    }[name]
    classes = classes_of([list("ab")])
    m = model(name, **parameters)
    with pytest.raises(PolicyError, match="needs a population table"):
        m.check(classes, Context())


def test_a_population_must_hold_the_table() -> None:
    with pytest.raises(InputError, match="fewer people"):
        model("delta-presence", delta_max=1).check(
            replace(classes_of([list("ab")]), population=np.array([1])), Context()
        )


def test_attributes_are_named_when_they_are_unknown_or_unclear() -> None:
    classes = classes_of([list("ab")], disease=[list("ab")])
    with pytest.raises(PolicyError, match="no sensitive column 'diseas'; did you mean 'disease'"):
        model("distinct-l-diversity", l=2, attribute="diseas").check(classes, Context())
    with pytest.raises(PolicyError, match="say which attribute"):
        model("distinct-l-diversity", l=2).check(classes, Context())
    with pytest.raises(PolicyError, match="needs a sensitive column"):
        model("distinct-l-diversity", l=2).check(Classes(np.array([2]), np.array([2])), Context())
    with pytest.raises(PolicyError, match="no sensitive column 'x'"):
        model("p-sensitive-k-anonymity", p=2, k=2, attributes=["x"]).check(classes, Context())
    with pytest.raises(PolicyError, match="the distribution of 's' in the whole table is not known"):
        model("t-closeness", t=1, attribute="s").check(classes, Context())


def test_a_value_that_does_not_occur_is_held_by_nobody() -> None:
    """Refusing it would tell, of every release that names it, that somebody holds it: perhaps one who was dropped."""
    domains = {"disease": ("HIV", "flu"), "job": ("nurse",)}
    classes = classes_of([list("ab"), list("bb")])
    for m in (
        model("simple-l-diversity", l=2, values=["hiv"], attribute="disease"),
        model("simple-l-diversity", l=2, sets=[["hiv"], ["aids"]]),
        model("alpha-k-anonymity", alpha="1/2", k=2, values=["hiv"]),
        model("belief", max="1/4", sets=[["hiv"]]),
    ):
        m.refuse_unknown(domains)
        m = m.model_copy(update={"attribute": None})
        assert m.check(classes, Context()).ok
    context = Context(domains={"s": ("HIV", "flu")})
    (rule,) = model("simple-l-diversity", l=2, sets=[["hiv"], ["HIV"]], attribute="s").kernel(context)
    assert rule.sets == ((), (1,))
    with pytest.raises(PolicyError, match="no sensitive column 'illness'"):
        model("simple-l-diversity", l=2, attribute="illness").refuse_unknown(domains)


def test_hierarchical_distance_needs_a_chain_of_levels() -> None:
    classes = classes_of([list("ab"), list("cd")])
    m = model("t-closeness", t="1/2", distance="hierarchical", attribute="s")
    with pytest.raises(PolicyError, match="needs a hierarchy for 's'"):
        m.check(classes, context_of(classes))
    chain = Hierarchy.of("s", "abcd", [("pair", ["x", "x", "y", "y"])])
    values = m.check(classes, context_of(classes, hierarchies={"s": chain})).values
    assert list(values) == [Fraction(1, 2), Fraction(1, 2)]
    branching = Hierarchy.of(
        "s", "abcd", [("pair", ["x", "x", "y", "y"]), ("other", ["x", "y", "x", "y"])], chain=False
    )
    with pytest.raises(HierarchyError, match="levels in a chain"):
        m.check(classes, context_of(classes, hierarchies={"s": branching}))
    short = Hierarchy.of("s", "abc", [("pair", ["x", "x", "y"])])
    with pytest.raises(HierarchyError, match="lacks the value 'd'"):
        m.check(classes, context_of(classes, hierarchies={"s": short}))


def test_combinations_of_columns() -> None:
    codes = np.array([[1, 1, 2], [1, 2, 2]], dtype=np.int32)
    classes = Classes(np.array([3, 2, 4]), np.array([3, 2, 4]), {}, ("age", "zip"), codes)
    m = model("k-anonymity", k=5, on=[["age"], ["zip"]])
    verdict = m.check(classes, Context())
    assert verdict.values.tolist() == [3, 5, 4]
    assert not m.is_local()
    with pytest.raises(PolicyError, match="'zipp', which is no quasi-identifier; did you mean 'zip'"):
        model("k-anonymity", k=5, on=[["zipp"]]).check(classes, Context())
    with pytest.raises(PolicyError, match="needs the published values"):
        m.check(Classes(classes.sizes, classes.rows), Context())
    assert m.check(classes.take(np.array([True, False, True])), Context()).values.tolist() == [3, 4]


def test_an_infinite_measure_can_be_written_as_json() -> None:
    classes = classes_of([list("aa"), list("ab")])
    verdict = model("delta-disclosure", delta=1, strict=True).check(classes, context_of(classes))
    assert math.isinf(verdict.values[0])
    assert verdict.as_dict()["worst"] == "inf"


def test_results_do_not_depend_on_the_order_of_entries() -> None:
    """Compressed rows whose codes are not sorted inside a class mean the same."""
    classes = classes_of([list("aabd"), list("dc")])
    counts = classes.sensitive["s"]
    order = np.concatenate([np.arange(b)[a:][::-1] for a, b in pairwise(counts.start.tolist())])
    shuffled = type(counts)(counts.values, counts.start, counts.codes[order], counts.counts[order], True)
    other = Classes(classes.sizes, classes.rows, {"s": shuffled})
    for distance in ("equal", "ordered"):
        m = model("t-closeness", t=1, distance=distance)
        assert list(m.check(classes, context_of(classes)).values) == list(
            m.check(other, context_of(classes)).values
        )


def test_alpha_of_a_set_of_values() -> None:
    """As Table 1(b) of the minimality attack: whoever has HIV or hepatitis, whichever."""
    assert ok("alpha-k-anonymity", "abcd", alpha="1/4", k=4)
    assert not ok("alpha-k-anonymity", "abcd", alpha="1/3", k=4, sets=[["a", "b"], ["c"]])
    assert ok("alpha-k-anonymity", "abcd", alpha="1/2", k=4, sets=[["a", "b"], ["c"]])
    assert not ok("alpha-k-anonymity", "abcd", alpha="1/2", k=5, sets=[["a", "b"]])
    with pytest.raises(PolicyError, match="values or sets, not both"):
        model("alpha-k-anonymity", alpha="1/2", k=2, values=["a"], sets=[["b"]])
