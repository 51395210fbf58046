"""All subjects on random small tables: a few thousand in `make test`, more than 100,000 in `make test-long`.

Other tables: MASKWRIGHT_FROM=100000.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from maskwright.attacks import ATTACKS
from maskwright.errors import PolicyNotMet
from maskwright.methods import METHODS
from maskwright.methods._lattice.objectives import OBJECTIVES
from maskwright.metrics import METRICS
from maskwright.models import MODELS
from tests.amounts import amount
from tests.differential.subjects import Subject, compare, every_subject
from tests.differential.subjects.metrics import NOT_COMPARED

SUBJECTS = every_subject()
BRIEF, LONG = 40, 1600  # tables of each subject, times its weight
FIRST = int(os.environ.get("MASKWRIGHT_FROM", "0"))


def compared(subject: Subject, cases: int, first: int = 0) -> None:
    """Compare tables; nobody is right by refusing everything, and among many every kind of case turns up."""
    kinds = compare(subject, first, cases)
    assert kinds.keys() & set(subject.expect) - {"refused"}, f"nothing was compared: {dict(kinds)}"
    enough = cases >= 1000 * subject.weight
    assert set(subject.expect) <= kinds.keys() or not enough, f"some cases never turned up: {dict(kinds)}"


@pytest.mark.parametrize("name", SUBJECTS)
def test_random_tables(name: str, record_property: Callable[[str, object], None]) -> None:
    weight = SUBJECTS[name].weight
    cases = amount(int(BRIEF * min(1, weight)), int(LONG * weight))
    compared(SUBJECTS[name], cases, FIRST)
    record_property("tables", cases)


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("method:local-recoding", 116),  # groups of a full-domain recoding kept wide labels
        ("method:local-recoding", 1437),
        ("method:greedy-grouping:promise", 49),  # the oracle compared with the rows that were left
    ],
)
def test_what_once_differed(name: str, case: int) -> None:
    assert compare(SUBJECTS[name], case, 1)


def test_the_long_run_has_more_than_a_hundred_thousand_tables() -> None:
    assert sum(int(LONG * subject.weight) for subject in SUBJECTS.values()) > 100_000
    assert sum(int(BRIEF * min(1, subject.weight)) for subject in SUBJECTS.values()) > 3_000


@pytest.mark.parametrize(
    ("kind", "registered"),
    [
        ("model", MODELS),
        ("method", METHODS),
        ("attack", ATTACKS),
        ("metric", set(METRICS) - set(NOT_COMPARED)),
    ],
)
def test_everything_that_is_registered_is_compared(kind: str, registered: object) -> None:
    """A new model, method, attack or metric needs an oracle in plain Python (see CONTRIBUTING.md)."""
    assert {s.name for s in SUBJECTS.values() if s.kind == kind} == set(registered)  # type: ignore[call-overload]


def test_every_objective_is_compared() -> None:
    for method in ("optimal-lattice", "samarati", "incognito"):
        compared = {s.detail for s in SUBJECTS.values() if s.name == method}
        assert compared == set(OBJECTIVES)


def test_a_difference_says_how_to_see_it_again() -> None:
    """The runner is no use if it swallows a difference."""

    def wrong(rng: Random) -> str:
        assert rng.random() < 0.5, "larger"
        return "smaller"

    with pytest.raises(
        AssertionError, match=r"see it again: python -m tests\.differential model:k-anonymity \d+"
    ):
        compare(replace(SUBJECTS["model:k-anonymity"], case=wrong), 0, 50)


def test_refusals_alone_are_no_comparison() -> None:
    with pytest.raises(AssertionError, match=r"nothing was compared: \{'refused': 40\}"):
        compared(replace(SUBJECTS["method:mask"], case=lambda rng: "refused"), BRIEF)


@pytest.mark.parametrize("name", [id for id, subject in SUBJECTS.items() if subject.kind == "method"])
def test_a_method_that_refuses_everything_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PolicyNotMet("never")

    method = METHODS[SUBJECTS[name].name]
    for way in ("group", "parts"):
        monkeypatch.setattr(method, way, refuse)
    with pytest.raises(AssertionError, match=f"{name}, case \\d+ differs"):
        compared(SUBJECTS[name], BRIEF)
