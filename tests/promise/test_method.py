"""The promise of a method: the parameter that its lemma asks for, what voids it, and the bounds by enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from maskwright.domain.grouping import Trace
from maskwright.domain.method import Method
from maskwright.domain.model import Context
from maskwright.domain.settings import build_registered
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.promise.method_promise import promise_of_method
from maskwright.worlds import reference_methods
from maskwright.worlds.counting.group_beliefs import greedy_ceiling
from maskwright.worlds.sampling.possible_worlds import deterministic_likelihood, posterior_beliefs

CONTEXT = Context(domains={"s": ("P", "a", "b")})


def binary(l: Any, **more: Any) -> Any:  # noqa: E741
    return MODELS["simple-l-diversity"](l=l, values=["P"], attribute="s", **more)


def method_named(name: str, options: dict[str, Any]) -> Method:
    return build_registered(METHODS, "method", name, options, "here")


def l_for(name: str, options: dict[str, Any], largest: Fraction) -> Fraction | None:
    """The l that the lemma of a method asks for, of one set of values."""
    found = method_named(name, options).diversity_for(largest, None, "s", 1)
    return None if found is None else found[0]


def worst_belief(n: int, method: Callable[[Any], list[list[int]]]) -> Fraction:
    """The largest belief in a positive over all tables of n rows."""
    worst = Fraction(0)
    for sa in itertools.product("Pa", repeat=n):
        groups = method(sa)
        after = posterior_beliefs(sa, groups, deterministic_likelihood(method))
        assert after.beliefs is not None
        worst = max([worst, *(b.get("P", Fraction(0)) for b in after.beliefs)])
    return worst


@pytest.mark.parametrize("n", range(2, 12))
@pytest.mark.parametrize("l", [2, 3])
def test_even_splits_with_one_more_stay_below(n: int, l: int) -> None:  # noqa: E741
    """Symmetric grouping run with l + 1 and its guard, on every table of n rows that satisfies it as a whole."""
    asked = l_for("symmetric-grouping", {}, Fraction(1, l))
    assert asked == l + 1
    qi = [[i] for i in range(n)]

    def method(sa: Any) -> list[list[int]]:
        return reference_methods.symmetric_grouping(
            qi, sa, lambda c: c.get("P", 0) * asked <= sum(c.values()), asked
        )

    worst = Fraction(0)
    for sa in itertools.product("Pa", repeat=n):
        if sa.count("P") * asked > n:
            continue  # refused as a whole
        after = posterior_beliefs(sa, method(sa), deterministic_likelihood(method))
        assert after.beliefs is not None
        worst = max([worst, *(b.get("P", Fraction(0)) for b in after.beliefs)])
    assert worst < Fraction(1, l)
    assert worst > 0 or n < asked


@pytest.mark.parametrize("n", [6, 9, 12])
def test_greedy_stays_below_its_ceiling(n: int) -> None:
    qi = [[i] for i in range(n)]

    def method(sa: Any) -> list[list[int]]:
        return reference_methods.greedy_grouping(qi, sa, lambda c: c.get("P", 0) * 3 <= sum(c.values()), 3)

    worst = worst_belief(n, method)
    assert Fraction(1, 3) < worst < greedy_ceiling(3)
    asked = l_for("greedy-grouping", {}, Fraction(1, 2))
    assert asked is not None
    assert greedy_ceiling(int(asked)) <= Fraction(1, 2) < greedy_ceiling(int(asked) - 1)


@pytest.mark.parametrize(
    ("method", "options", "asked"),
    [
        ("mondrian", {}, 4),
        ("mondrian", {"dimensions": "crossed"}, 4),
        ("mondrian", {"dimensions": "widest"}, 4),
        ("mondrian", {"cut": "relaxed"}, 5),
        ("mondrian", {"cut": "relaxed", "dimensions": "widest"}, 5),
        ("mondrian", {"cut": "relaxed", "dimensions": "fallback"}, None),
        ("mondrian", {"cut": "strict"}, None),
        ("symmetric-grouping", {}, 5),
        ("symmetric-grouping", {"ways": 3}, None),
        ("anatomy", {}, 4),
        ("anatomy", {"by": "ranges"}, None),
        ("greedy-grouping", {}, 11),
        ("greedy-grouping", {"extend": "1/2"}, 11),
        ("mask", {}, None),
        ("alpha-k-local", {}, None),
    ],
)
def test_the_parameter_for_a_belief_of_a_quarter(
    method: str, options: dict[str, Any], asked: int | None
) -> None:
    assert l_for(method, options, Fraction(1, 4)) == asked


SIZE = MODELS["k-anonymity"](k=5)
GATE = MODELS["simple-l-diversity"](l=3, attribute="s", use="gate")
ENTROPY = MODELS["entropy-l-diversity"](l=2, attribute="s")


@pytest.mark.parametrize(
    ("method", "options", "models", "bound", "strict", "about"),
    [
        ("mondrian", {}, [ENTROPY, binary(4)], "1/4", False, "the values that the models name"),
        (
            "mondrian",
            {},
            [MODELS["simple-l-diversity"](l=4, attribute="s"), ENTROPY],
            "1/4",
            False,
            "every value",
        ),
        ("mondrian", {}, [ENTROPY], None, False, "every value"),
        ("mondrian", {"cut": "relaxed"}, [binary(4)], "1/3", True, "the values that the models name"),
        ("mondrian", {"cut": "relaxed"}, [binary(4), SIZE], "1/3", True, "the values that the models name"),
        ("mondrian", {"cut": "strict"}, [SIZE, GATE], "1/3", False, "every value"),
        ("symmetric-grouping", {}, [binary("5/2")], "2/3", True, "the values that the models name"),
        ("greedy-grouping", {"l": 3}, [binary(3)], "3/4", True, "the values that the models name"),
        ("greedy-grouping", {"extend": "1/2"}, [binary(3)], "3/4", True, "the values that the models name"),
        ("greedy-grouping", {}, [binary(6), SIZE], "1296/3125", True, "the values that the models name"),
        # the same test twice is one test
        ("symmetric-grouping", {}, [binary(4), binary(3)], "1/3", True, "the values that the models name"),
        ("anatomy", {"l": 4}, [SIZE], "1/4", False, "every value"),
        ("local-recoding", {}, [SIZE, GATE], "1/3", False, "every value"),
        ("optimal-lattice", {}, [SIZE, GATE], "1/3", False, "every value"),
        ("optimal-lattice", {}, [SIZE], None, False, "every value"),
    ],
)
def test_what_is_guaranteed(
    method: str, options: dict[str, Any], models: Any, bound: str | None, strict: bool, about: str
) -> None:
    trace = Trace(attribute="s", distinct=4) if method == "anatomy" else Trace()
    found = promise_of_method(method_named(method, options), models, CONTEXT, "s", trace)
    assert found.lemma is not None
    assert found.bound == (None if bound is None else Fraction(bound))
    assert (found.strict, found.every_value) == (strict, about == "every value")


@pytest.mark.parametrize(
    ("method", "options", "models", "trace", "why"),
    [
        ("mondrian", {"cut": "strict"}, [binary(4)], None, "no bound is proven"),
        ("mondrian", {"cut": "relaxed", "dimensions": "fallback"}, [binary(4)], None, "no bound is proven"),
        ("mondrian", {"anatomize": 3}, [binary(4)], None, "anatomized"),
        ("mondrian", {"cut": "relaxed"}, [binary(4), ENTROPY], None, "only look"),
        (
            "mondrian",
            {"cut": "relaxed"},
            [MODELS["simple-l-diversity"](l=4, attribute="s")],
            None,
            "no proof",
        ),
        ("mondrian", {"cut": "relaxed", "min_child": 3}, [binary(4)], None, "at least 4 rows"),
        ("symmetric-grouping", {"ways": 3}, [binary(4)], None, "no bound is proven"),
        ("greedy-grouping", {"l": 4}, [binary(3)], None, "whole l"),
        ("greedy-grouping", {}, [binary("5/2")], None, "whole l"),
        ("greedy-grouping", {}, [binary(3)], Trace(dropped_for_values=2), "absence"),
        # buckets are k rows then, or a group of whole buckets is not closed by the diversity test alone
        ("greedy-grouping", {}, [binary(3), SIZE], None, "closed by the diversity test alone"),
        (
            "greedy-grouping",
            {},
            [binary(3), MODELS["k-map"](k=2)],
            None,
            "closed by the diversity test alone",
        ),
        ("optimal-lattice", {}, [SIZE, binary(3)], None, "no bound is proven"),
        (
            "optimal-lattice",
            {"suppress": "failing-classes", "suppression": "1/2"},
            [binary(3)],
            None,
            "suppressed because",
        ),
        ("mask", {"l": 2, "values": ["P"]}, [SIZE], None, "no bound is proven"),
        (
            "alpha-k-local",
            {},
            [MODELS["alpha-k-anonymity"](alpha="1/2", k=2, attribute="s")],
            None,
            "no bound",
        ),
        ("anatomy", {"by": "ranges"}, [SIZE], None, "no bound is proven"),
    ],
)
def test_what_is_only_measured(
    method: str, options: dict[str, Any], models: Any, trace: Trace | None, why: str
) -> None:
    found = promise_of_method(method_named(method, options), models, CONTEXT, "s", trace)
    assert (found.lemma, found.bound) == (None, None)
    assert why in found.why


def test_anatomy_promises_its_own_column() -> None:
    """Of another column a bucket may show anything: no bound, but belief is what it shows."""
    context = Context(domains={"s": ("P", "a"), "t": ("x", "y")})
    anatomy, trace = method_named("anatomy", {"l": 4}), Trace(attribute="s", distinct=4)
    assert promise_of_method(anatomy, [], context, "s", trace).bound == Fraction(1, 4)
    other = promise_of_method(anatomy, [], context, "t", trace)
    assert (other.bound, other.shown) == (None, True)


def test_equal_parts_do_not_cover_who_knows_a_fact_too() -> None:
    """Four rows, halves of two refused because one half holds both positives: who knows one of them knows the other.

    Each person's belief is the share in the group, 1/2. With one fact it would be 1/3 if the method had said nothing;
    knowing the method it is 1.
    """

    def refused(sa: tuple[str, ...]) -> bool:
        return any(half.count("P") * 2 > len(half) for half in (sa[:2], sa[2:]))

    worlds = [sa for sa in set(itertools.permutations("PPaa")) if refused(sa)]
    assert Fraction(sum(sa[0] == "P" for sa in worlds), len(worlds)) == Fraction(1, 2)
    knowing = [sa for sa in worlds if sa[1] == "P"]
    assert Fraction(sum(sa[0] == "P" for sa in knowing), len(knowing)) == 1
    assert not method_named("mondrian", {}).deals_alike([binary(2)], Trace())
    assert method_named("mondrian", {}).deals_alike([SIZE, GATE], Trace())
    assert method_named("anatomy", {"l": 2}).deals_alike([binary(2)], Trace())
    assert not method_named("greedy-grouping", {"anatomize": 2}).deals_alike([binary(2)], Trace())
