"""Deny by default: a setting that no ingredient of the promise is about makes the promise measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from maskwright.pipeline.attacking import ADVERSARIES
from maskwright.policy import binding
from maskwright.policy.policy import Policy

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
        ("PROVEN_POLICY", "missing", "missing"),
        ("PROVEN_POLICY", "prepare", "prepare"),
        ("PROVEN_COLUMN", "weight", "columns.age.weight"),
    ],
)
def test_what_no_proof_names_is_measured(
    proven: str, forgotten: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the setting had been added to policies, and nobody had asked what it does to the promise."""
    monkeypatch.setattr(binding, proven, getattr(binding, proven) - {forgotten})
    assert promise_label(POLICY) == (False, [setting])


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
