"""A refusal, or a release that loses much, comes with what else would work: tried, ranked, and one flag away."""

from __future__ import annotations

import json
import os
import random
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from maskwright.cli.commands import main
from maskwright.domain.verdict import plain_number
from maskwright.errors import UsageError
from maskwright.pipeline.alternatives import _candidates, alternatives_to, chosen_alternative
from maskwright.pipeline.history import state_folder
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from maskwright.policy.policy import Policy

N = 300
POLICY: dict[str, Any] = {
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": ["5", "10", "20"]}},
        "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
        "disease": "sensitive",
    },
    "require": [
        {"model": "k-anonymity", "k": "5"},
        {"model": "simple-l-diversity", "l": "3", "use": "gate"},
    ],
    "method": {"name": "optimal-lattice", "suppression": "0.02"},
}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MASKWRIGHT_STATE", str(tmp_path / "state"))
    rng = random.Random(5)  # noqa: S311
    rows = []
    for _ in range(N):
        age = rng.randint(20, 79)
        # the old have one disease more often, so that the finest levels fail the gate
        weights = [6, 1, 1, 1] if age > 60 else [1, 1, 1, 1]
        rows.append(f"{age},{rng.randint(10, 14)}{rng.randint(0, 9)},{rng.choices('abcd', weights)[0]}")
    path = tmp_path / "people.csv"
    path.write_text("age,zip,disease\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(Policy.load(POLICY).to_yaml(), encoding="utf-8")
    return path


def command(table: Path, *options: str) -> list[str]:
    folder = table.parent
    return ["anonymize", str(table), "-p", str(folder / "policy.yaml"), "-o", str(folder / "out"), *options]


def test_a_refusal_tells_what_was_tried_and_one_flag_takes_it(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(table)) == 1
    told = capsys.readouterr().err
    assert "1  keeps" in told
    assert not (table.parent / "out").exists()
    assert main(command(table, "--choose", "1", "--json")) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["ok"]
    assert main(command(table, "--choose", "99")) == 2


def test_what_is_kept_of_them_is_the_owners_and_holds_no_row(table: Path) -> None:
    """Policies only, whatever the umask: names of columns and settings, no value but those that the policy lists."""
    before = os.umask(0)
    try:
        assert main(command(table)) == 1
    finally:
        os.umask(before)
    folder = table.parent / "state" / "alternatives"
    [file] = folder.iterdir()
    assert [stat.S_IMODE(p.stat().st_mode) for p in (folder.parent, folder, file)] == [0o700, 0o700, 0o600]
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert kept
    for policy in kept:
        assert Policy.load(policy).columns.keys() <= POLICY["columns"].keys()
    for row in table.read_text(encoding="utf-8").splitlines()[1:]:
        assert row.split(",")[1] not in file.read_text(encoding="utf-8")


def test_json_has_the_policies_too(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(table, "--json")) == 1
    found = json.loads(capsys.readouterr().out)["alternatives"]
    assert found
    asked = [a["asks_less"] for a in found]
    assert asked == sorted(asked)
    for less in (False, True):
        losses = [Fraction(a["information_loss"]) for a in found if a["asks_less"] is less]
        assert losses == sorted(losses)
    for alternative in found:
        models = [r["model"] for r in alternative["policy"]["require"]]
        assert models == ["k-anonymity", "simple-l-diversity"], "no requirement is left out"


def test_what_is_offered_can_be_published(table: Path) -> None:
    job = Job(table, Policy.load(POLICY))
    for number, attempt in enumerate(alternatives_to(job).found, start=1):
        policy = chosen_alternative(job, number)
        release = publish_release(Job(table, policy))
        assert release.ok
        if set(policy.quasi_identifiers) == {"age", "zip"}:
            assert release.metrics["information-loss"] == attempt.loss


def test_without_looking_nothing_is_tried(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(table, "--no-alternatives", "--json")) == 1
    assert "alternatives" not in json.loads(capsys.readouterr().out)


def test_a_number_that_was_not_told_is_refused(table: Path) -> None:
    """Nor one that was told for another table, or another policy: what is tried anew can have another order."""
    job = Job(table, Policy.load(POLICY))
    with pytest.raises(
        UsageError, match="no alternatives were listed for this table and this policy; run without --choose"
    ):
        chosen_alternative(job, 1)
    alternatives_to(job)
    with pytest.raises(UsageError, match="there are"):
        chosen_alternative(job, 99)
    other = Policy.load({**POLICY, "columns": {**POLICY["columns"], "zip": "identifier"}})
    with pytest.raises(UsageError, match="no alternatives were listed"):
        chosen_alternative(Job(table, other), 1)
    with table.open("a") as file:
        file.write("50,120,a\n")
    with pytest.raises(UsageError, match="no alternatives were listed"):
        chosen_alternative(job, 1)


def test_what_is_chosen_is_written_as_the_policy_says_now(table: Path) -> None:
    """`output` and `about` decide no outcome, so that the alternatives are the same; they may have changed since."""
    alternatives_to(Job(table, Policy.load(POLICY | {"about": {"title": "an old title"}})))
    now = Policy.load(POLICY | {"output": {"format": "parquet"}, "about": {"title": "a new one"}})
    chosen = chosen_alternative(Job(table, now), 1)
    assert (chosen.output, chosen.about) == (now.output, now.about)
    assert chosen.to_dict() != now.to_dict()
    assert chosen_alternative(Job(table, Policy.load(POLICY)), 1).about is None


@pytest.mark.parametrize("kept", ["5", "{}", '{"a": 1}', "[5]", "[{}]", "null"])
def test_what_is_remembered_and_damaged_is_said_and_forgotten(table: Path, kept: str) -> None:
    job = Job(table, Policy.load(POLICY))
    alternatives_to(job)
    (file,) = (state_folder() / "alternatives").iterdir()
    file.write_text(kept, encoding="utf-8")
    with pytest.raises(UsageError, match="damaged"):
        chosen_alternative(job, 1)
    assert not file.exists()


def test_a_fraction_that_python_does_not_write_is_rounded_up() -> None:
    long = Fraction(10**5000 // 3, 10**5000 - 1)
    written = Fraction(str(plain_number(long)))
    assert long <= written <= long + Fraction(1, 10**30)


def test_a_larger_k_that_may_lose_less_is_explained_and_tried(table: Path) -> None:
    searched = [POLICY["require"][0], {"model": "simple-l-diversity", "l": "2"}]
    policy = Policy.of({**POLICY, "require": searched}, "policy")
    release = publish_release(Job(table, policy))
    assert any("a larger k can lose less, which is no mistake" in note for note in release.notes)
    assert any("failing-classes" in note for note in release.notes)
    changes = {change for change, _, _ in _candidates(policy)}
    assert "whatever fails is left out (suppress: failing-classes)" in changes
    assert "k = 10 instead of 5, which lets more people be left out" in changes
    lattice = {**POLICY["method"], "suppress": "failing-classes"}
    for other in ({"require": searched, "method": "mondrian"}, {"require": searched, "method": lattice}):
        without = Policy.of({**POLICY, **other}, "policy")
        assert not any("no mistake" in note for note in publish_release(Job(table, without)).notes)
        assert not any("failing-classes" in change for change, _, _ in _candidates(without))
