"""Advice: three answers lead to a policy that publishes, with its reasons; what cannot serve a table is told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.csv
import pytest

import maskwright as mw
from maskwright.cli.commands import main
from maskwright.errors import PolicyError, UsageError
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.report.glossary import GLOSSARY
from maskwright.suggest.advice import QUESTIONS, Answers, find_unsuited
from tests.suggest.test_suggest_tried import credit

GLOSSARY_PAGE = Path(__file__).parents[2] / "docs" / "glossary.md"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four hundred people, two sensitive columns."""
    monkeypatch.setenv("MASKWRIGHT_STATE", str(tmp_path / "state"))
    pyarrow.csv.write_csv(credit(), tmp_path / "people.csv")
    return tmp_path / "people.csv"


def test_who_gets_it_decides_k_and_what_they_know_and_need_the_method(table: Path) -> None:
    for answers, k, methods in (
        (Answers("researchers", "people", "detail"), 5, {"optimal-lattice", "mondrian", "local-recoding"}),
        (Answers("anybody", "method", "detail"), 11, {"optimal-lattice", "mondrian"}),
        (Answers("regulator", "method", "same-labels"), 12, {"optimal-lattice"}),
    ):
        found = mw.suggest_policy(table, answers=answers)
        assert found.policy.require[0].parameters["k"] == str(k)
        assert {a.policy.method.name for a in found.tried} == methods
        assert found.policy.method.name in methods
        plain = re.sub(r"\n# +", " ", found.text)
        assert all(reason in plain for reason in answers.reasons())
        assert mw.anonymize(table, found.policy).ok


def test_a_guarantee_is_one_because_nobody_looked(table: Path) -> None:
    found = mw.suggest_policy(table, answers=Answers(needs="guarantee"))
    assert found.tried == ()
    release = mw.anonymize(table, found.policy)
    assert release.promises
    assert all(promise.status == "guaranteed" for promise in release.promises)


def test_what_is_no_answer_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(UsageError, match="did you mean 'researchers'"):
        Answers(recipient="researcher")


def test_unsuited_is_what_a_run_refuses_for_what_it_is(table: Path) -> None:
    """Each reason is the message of a real refusal, on the whole table as on a few rows."""
    policy = mw.suggest_policy(table, tried=False).policy
    found = find_unsuited(table, policy)
    assert set(found.methods) < set(METHODS)
    assert {"k-map", "delta-presence"} <= set(found.models) < set(MODELS)
    assert "population" in found.models["k-map"]
    changed = {**policy.to_dict(), "require": [{"model": "k-map", "k": 2, "use": "gate"}]}
    with pytest.raises(PolicyError) as refused:
        mw.anonymize(table, changed)
    assert str(refused.value).endswith(found.models["k-map"])
    without = mw.Policy.of(
        {"columns": {"age_in_years": "quasi-identifier"}, "require": policy.to_dict()["require"][:1]},
        "policy",
    )
    models = find_unsuited(table, without).models
    assert all(name in models for name, cls in MODELS.items() if cls.about == "sensitive")


def test_what_people_with_several_rows_are_told_instead_would_work(tmp_path: Path) -> None:
    """A bound on belief that is named in place of a model is one that a policy takes."""
    path = tmp_path / "visits.csv"
    rows = [f"p{i // 2},{20 + i % 40},{'flu' if i % 3 else 'cold'}" for i in range(80)]
    path.write_text("person,age,disease\n" + "\n".join(rows) + "\n", encoding="utf-8")
    policy = mw.Policy.of(
        {"unit": "person", "require": [{"model": "k-anonymity", "k": 2}],
         "columns": {"person": "identifier", "age": "quasi-identifier", "disease": "sensitive"}}, "policy",
    )  # fmt: skip
    models = find_unsuited(path, policy).models
    for name in ("ck-safety", "m-confidentiality"):
        assert "require[" not in models[name]
        [proposed] = re.findall(r"{(model: belief[^}]*)}", models[name])
        requirement = dict(pair.split(": ") for pair in proposed.split(", "))
        mw.Policy.of(policy.to_dict() | {"require": [requirement]}, "policy")


def test_the_command(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = table.parent / "policy.yaml"
    asked = ["advise", str(table), "-o", str(policy), "--recipient", "researchers", "--needs", "guarantee"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert all(question in shown for question, _ in QUESTIONS.values())
    assert "model k-map" in shown
    assert mw.Policy.load(policy).preset == "research"
    assert main([*asked, "--overwrite", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["reasons"] == Answers("researchers", needs="guarantee").reasons()
    assert set(answer["unsuited"]) == {"methods", "models"}
    assert main(["advise", str(table), "-o", str(policy), "--overwrite", "--knows", "methods"]) == 2
    assert "did you mean 'method'" in capsys.readouterr().err


def test_the_glossary_is_that_of_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    rows = re.findall(r"\| \*\*(.+?)\*\* \| (.+) \|", GLOSSARY_PAGE.read_text(encoding="utf-8"))
    plain = {word: re.sub(r" \(\[.*?\]\(.*?\)\)|(?<!\\)\*|\\", "", text) for word, text in rows}
    assert plain == GLOSSARY
    assert main(["glossary"]) == 0
    assert all(word in capsys.readouterr().out for word in ("quasi-identifier",))
