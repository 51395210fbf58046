"""Deny by default: a setting that no ingredient of the promise is about makes the promise measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from maskwright.domain.missing_values import Missing
from maskwright.domain.settings import Settings
from maskwright.methods import METHODS
from maskwright.methods.mondrian import Mondrian
from maskwright.pipeline.attacking import ADVERSARIES
from maskwright.policy import binding
from maskwright.policy.policy import Column, Policy, Recoding
from maskwright.prepare import Preparation

POLICY = Policy.model_validate(
    {
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5]}, "weight": 2},
            "disease": "sensitive",
        },
        "require": [{"model": "k-anonymity", "k": 2}, {"model": "belief", "max": "1/2"}],
        "method": "mondrian",
        "missing": {"tokens": ["?"]},
        "prepare": {"age": {"numbers": {"units": {"years": 1}}}},
        "recoding": {"name": "bucketize", "quasi_identifiers": "generalised"},
    }
)


def promise_label(policy: Policy) -> tuple[bool, list[str]]:
    """Is the policy guaranteed, and which settings are not covered?"""
    [promise] = binding.promises_before(policy, ADVERSARIES["knows-method"])
    return promise.status == "guaranteed", [i.setting for i in promise.ingredients if not i.covered]


def test_the_policy_is_guaranteed() -> None:
    assert promise_label(POLICY) == (True, [])


def test_a_population_is_named(tmp_path: Path) -> None:
    (tmp_path / "everybody.csv").write_text("age\n20\n", encoding="utf-8")
    beside = Policy.model_validate(
        {**POLICY.to_dict(), "population": {"file": str(tmp_path / "everybody.csv")}}
    )
    [promise] = binding.promises_before(beside, ADVERSARIES["knows-method"])
    assert promise.status == "guaranteed"
    assert [i.covered for i in promise.ingredients if i.name == "population"] == [True]


@pytest.mark.parametrize(
    ("proven", "forgotten", "setting"),
    [
        (Policy, "missing", "missing"),
        (Policy, "prepare", "prepare"),
        (Column, "weight", "columns.age.weight"),
        (Missing, "tokens", "missing.tokens"),
        (Preparation, "numbers", "prepare.age.numbers"),
        (Recoding, "quasi_identifiers", "recoding.quasi_identifiers"),
    ],
)
def test_what_no_proof_names_is_measured(
    proven: type[Settings], forgotten: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the setting had been added to policies, and nobody had asked what it does to the promise."""
    monkeypatch.setitem(binding.PROVEN, proven, binding.PROVEN[proven] - {forgotten})
    assert promise_label(POLICY) == (False, [setting])


def test_a_setting_of_the_method_that_no_proof_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert promise_label(with_method(cut="relaxed", least=3))[0]
    monkeypatch.setattr(Mondrian, "proven_settings", Mondrian.proven_settings - {"least"})
    assert promise_label(POLICY)[0]
    label, [setting] = promise_label(with_method(cut="relaxed", least=3))
    assert not label
    assert setting.startswith("mondrian, searching on")


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        ({"column": "name", "rows": 2}, ["name, at most 2 rows"]),
        ({"column": "name", "publish": "pseudonym"}, ["unit.publish"]),
        ({"column": "name", "publish": "pseudonym", "events": 2}, ["unit.publish", "unit.events"]),
    ],
    ids=str,
)
def test_what_else_is_said_of_people_is_measured(unit: dict[str, Any], told: list[str]) -> None:
    """Rows that are drawn per person, and visits that a pseudonym links, are named by no proof."""
    columns = {**POLICY.to_dict()["columns"], "name": "identifier"}
    whole = {**POLICY.to_dict(), "columns": columns, "method": "optimal-lattice", "recoding": "generalise"}
    assert promise_label(Policy.model_validate({**whole, "unit": "name"})) == (True, [])
    assert promise_label(Policy.model_validate({**whole, "unit": unit})) == (False, told)


PLAIN = {**POLICY.to_dict(), "recoding": "generalise", "method": "optimal-lattice"}
COLUMNS = PLAIN["columns"]
NAME = {"name": {"role": "identifier", "publish": "pseudonym"}}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"columns": COLUMNS | {"pay": {"role": "insensitive", "publish": {"round": 10}}}}, "columns.pay.publish"),
        (
            {"columns": COLUMNS | {"disease": {"role": "sensitive", "publish": {"round": 10}}}},
            "columns.disease.publish",
        ),
        ({"columns": COLUMNS | NAME}, "columns.name.publish"),
        ({"columns": COLUMNS | {"name": NAME["name"] | {"stable": True, "group": "g"}}}, "columns.name.stable"),
        (
            {"columns": COLUMNS | {"age": COLUMNS["age"] | {"direct_identifiers": "allow"}}},
            "columns.age.direct_identifiers",
        ),
        (
            {
                "columns": COLUMNS | {"name": "identifier", "day": "insensitive"},
                "shift_dates": {"columns": ["day"], "within": 30, "person": "name"},
            },
            "shift_dates",
        ),
        ({"method": {"name": "mondrian", "labels": "fixed"}}, "mondrian, searching on k-anonymity"),
        ({"method": {"name": "local-recoding", "labels": "fixed"}}, "local-recoding, searching on k-anonymity"),
    ],
    ids=["numbers", "secret numbers", "pseudonym", "stable", "direct identifiers", "dates", "labels", "local labels"],
)  # fmt: skip
def test_what_changes_or_adds_cells_is_measured(change: dict[str, Any], told: str) -> None:
    """Pseudonyms, moved dates, perturbed numbers, labels of another form: no proof names them."""
    label, settings = promise_label(Policy.model_validate(PLAIN | change))
    assert not label
    assert told in settings


@pytest.mark.parametrize("used", ["weight", "household", "unit"])
def test_a_column_without_a_role_that_is_computed_from_a_secret(used: str) -> None:
    """Nobody publishes it, but a table may be refused, or people told apart, by what it holds."""
    seen = {"since": {"between": {"from": "disease", "to": "2024-01-01"}}}
    whole = {**POLICY.to_dict(), "prepare": seen, "method": "optimal-lattice", "recoding": "generalise"}
    survey = {"unit": "since"} if used == "unit" else {used: "since", "population": {"size": 1000}}
    label, told = promise_label(Policy.model_validate({**whole, **survey}))
    assert not label
    assert "since" in told


def with_method(**settings: Any) -> Policy:
    return Policy.model_validate({**POLICY.to_dict(), "method": {"name": "mondrian", **settings}})


def test_every_setting_of_a_method_with_a_proof_was_asked_about() -> None:
    """Whoever adds one says in the method's own file that its proofs hold with it, or leaves it measured."""
    for name, method in METHODS.items():
        known = getattr(method, "proven_settings", frozenset())
        assert known <= set(method.model_fields), name


def test_preparing_is_covered_unless_it_tells_of_a_secret() -> None:
    [promise] = binding.promises_before(POLICY, ADVERSARIES["knows-method"])
    assert [i.covered for i in promise.ingredients if i.name == "prepare"] == [True]
    seen = {"between": {"from": "disease", "to": "2024-01-01"}}
    columns = {**POLICY.to_dict()["columns"], "since": "quasi-identifier"}
    telling = Policy.model_validate({**POLICY.to_dict(), "columns": columns, "prepare": {"since": seen}})
    assert promise_label(telling) == (False, ["since"])
    secret = Policy.model_validate(
        {
            **telling.to_dict(),
            "columns": {**columns, "since": "sensitive"},
            "require": [{"model": "k-anonymity", "k": 2}],
        }
    )
    assert all(
        i.covered for p in binding.promises_before(secret, ADVERSARIES["knows-method"]) for i in p.ingredients
        if i.name == "prepare"
    )  # fmt: skip


def test_values_of_a_secret_that_do_not_fit_are_refused_which_tells_of_those_who_are_left_out() -> None:
    """As with a list of values: a table in which somebody who is dropped has another one is not published."""
    whole = {
        "method": {"name": "optimal-lattice", "suppression": "25%"},
        "require": [{"model": "k-anonymity", "k": 2}],
    }
    for step, refuses in (
        ({"numbers": {"decimal": [","]}}, True),
        ({"numbers": {"decimal": [","]}, "otherwise": "missing"}, False),
        ({"spellings": {"flu": ["Flu"]}}, False),
    ):
        policy = Policy.model_validate({**POLICY.to_dict(), **whole, "prepare": {"disease": step}})
        [promise] = binding.promises_before(policy, ADVERSARIES["knows-method"])
        assert [i.covered for i in promise.ingredients if i.name == "listed values"] == [False] * refuses, (
            step
        )
