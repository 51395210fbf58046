"""Worked examples of the papers and small random cases, with exact answers, through the adapters."""

from __future__ import annotations

import copy
import itertools
import json
import math
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.golden.adapter import FUNCTIONS

# Functions of the case files that no part of the product answers yet. Take a name out when its adapter is added.
PENDING: set[str] = set()


def load(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((Path(__file__).parent / name).read_text("utf-8"))["cases"]
    return cases


CASES = [*load("papers.json"), *load("random.json")]
NAMES = {case["function"] for case in CASES}


def rational(value: Any) -> Fraction | None:
    """A rational as the cases allow it: a fraction, an integer, or "a/b"; never a float or a truth value."""
    if isinstance(value, bool) or not isinstance(value, (int, Fraction, str)):
        return None
    if isinstance(value, str) and not value.removeprefix("-").replace("/", "", 1).isdigit():
        return None
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        return None


def same(expected: Any, found: Any) -> bool:
    """Does an answer match, by the rules of the case files?"""
    if expected is None or isinstance(expected, bool):
        return type(found) is type(expected) and found == expected
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return False
        keyed = {str(key): value for key, value in found.items()}
        return (
            len(keyed) == len(found)
            and keyed.keys() == expected.keys()
            and all(same(expected[key], keyed[key]) for key in expected)
        )
    if isinstance(expected, list):
        return (
            isinstance(found, (list, tuple))
            and len(found) == len(expected)
            and all(same(e, f) for e, f in zip(expected, found, strict=True))
        )
    if isinstance(expected, float):
        number = isinstance(found, (int, float, Fraction)) and not isinstance(found, bool)
        return number and abs(found - expected) <= 1e-9
    if isinstance(expected, int):
        return type(found) is int and found == expected
    exact = rational(expected)
    return found == expected if exact is None else rational(found) == exact


def chance_of_none(bucket: list[str], denied: list[set[str]]) -> Fraction:
    """P(nobody holds a value denied to them), for as many people of a bucket as there are sets."""
    named = sorted(set().union(*denied))
    rest = sum(1 for value in bucket if value not in named)

    @cache
    def draw(i: int, left: tuple[int, ...]) -> Fraction:
        if i == len(denied):
            return Fraction(1)
        total = Fraction(0)
        for j, count in enumerate(left):
            if count and (j == len(named) or named[j] not in denied[i]):
                after = (*left[:j], count - 1, *left[j + 1 :])
                total += Fraction(count, len(bucket) - i) * draw(i + 1, after)
        return total

    return draw(0, (*(bucket.count(value) for value in named), rest))


def witness_holds(case: dict[str, Any], found: Any) -> bool:
    """Recompute P(A | A_1 → A, …) from the buckets and the atoms that were returned."""
    if not isinstance(found, dict) or set(found) != {"target", "antecedents"}:
        return False
    buckets, target, antecedents = case["input"]["buckets"], found["target"], found["antecedents"]
    if not isinstance(antecedents, (list, tuple)) or len(antecedents) > case["input"]["k"]:
        return False
    atoms = [((b, i), value) for (b, i), value in [target, *antecedents]]
    if not all(0 <= b < len(buckets) and 0 <= i < len(buckets[b]) for (b, i), _ in atoms):
        return False
    denied: dict[int, dict[int, set[str]]] = {}
    for (b, i), value in atoms:
        denied.setdefault(b, {}).setdefault(i, set()).add(value)
    none = math.prod(chance_of_none(buckets[b], list(people.values())) for b, people in denied.items())
    (b, _), value = atoms[0]
    is_target = Fraction(buckets[b].count(value), len(buckets[b]))
    return is_target + none > 0 and is_target / (is_target + none) == Fraction(
        case["expected"]["implications"]
    )


def matches(case: dict[str, Any], found: Any) -> bool:
    if case["function"] != "max_disclosure":
        return same(case["expected"], found)
    if not isinstance(found, dict) or "witness" not in found:
        return False
    rest = {key: value for key, value in case["expected"].items() if key != "witness"}
    answer = {key: value for key, value in found.items() if key != "witness"}
    return same(rest, answer) and witness_holds(case, found["witness"])


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["function"] not in PENDING], ids=lambda case: case["id"]
)
def test_case(case: dict[str, Any]) -> None:
    found = FUNCTIONS[case["function"]](copy.deepcopy(case["input"]))
    assert matches(case, found), f"{case['function']}: expected {case['expected']}, found {found}"


def test_every_function_has_an_adapter_or_is_listed_as_pending() -> None:
    assert len(NAMES) == 33
    assert NAMES - FUNCTIONS.keys() == PENDING
    assert FUNCTIONS.keys() <= NAMES


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["function"] == "max_disclosure"], ids=lambda c: c["id"]
)
def test_the_witness_check_accepts_the_published_witness_and_no_other_value(case: dict[str, Any]) -> None:
    witness = case["expected"]["witness"]
    assert witness_holds(case, witness)
    changed = {**case, "expected": {**case["expected"], "implications": "1/97"}}
    assert not witness_holds(changed, witness)
    assert not witness_holds(case, {**witness, "more": 1})
    assert not witness_holds(case, {**witness, "antecedents": [witness["target"]] * (case["input"]["k"] + 1)})
    assert not witness_holds(case, {**witness, "target": [[99, 0], "x"]})


ALIKE = [("1/2", Fraction(2, 4)), ("1/2", "2/4"), ("3", 3), ("3", "3"), (0.5, 0.5 + 5e-10), (1.0, 1), (None, None),
         (True, True), (3, 3), ([1, "1/2"], (1, Fraction(1, 2))), ({"1": 2}, {1: 2}), ("flu", "flu")]  # fmt: skip
UNLIKE = [("1/2", 0.5), ("1", True), ("1", 1.0), (0.5, 0.5 + 2e-9), (1.0, True), (None, 0), (None, False),
          (True, 1), (False, 0), (3, 3.0), (1, True), (3, "3"), ([1], [1, 1]), ([1, 2], [2, 1]), ([1], {1}),
          ({"a": 1}, {"a": 1, "b": 0}), ({"a": 1}, {}), ({"a": 1}, [1]), ("flu", "Flu"), ("flu", None),
          ({"1": 2}, {1: 2, "1": 2})]  # fmt: skip


@pytest.mark.parametrize(("expected", "found"), ALIKE)
def test_the_comparison_accepts(expected: Any, found: Any) -> None:
    assert same(expected, found)


@pytest.mark.parametrize(("expected", "found"), UNLIKE)
def test_the_comparison_refuses(expected: Any, found: Any) -> None:
    assert not same(expected, found)


def test_cases_have_unique_ids() -> None:
    ids = [case["id"] for case in CASES]
    assert [a for a, b in itertools.pairwise(sorted(ids)) if a == b] == []
