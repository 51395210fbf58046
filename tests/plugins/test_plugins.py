"""A package of somebody else: installed by its entry points, handed in as instances, tried by `maskwright contract`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.attacks import ATTACKS
from maskwright.domain.registry import is_outside, plugin_entries
from maskwright.methods import METHODS
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.metrics import METRICS
from maskwright.models import MODELS
from maskwright.plugins import (
    Adversary,
    Attack,
    Belief,
    Beliefs,
    Classes,
    Context,
    Decisions,
    Grouping,
    Method,
    Metric,
    Model,
    Target,
    Task,
    Verdict,
    register,
)
from tests.patients import patients, write_csv

PACKAGE = Path(__file__).parent / "outside"
TABLE = pa.table({"age": [20 + i % 12 for i in range(60)], "ill": ["pqr"[i // 12 % 3] for i in range(60)]})


class TwoValues(Model):
    """At least so many different values in every class."""

    name: ClassVar[str] = "two-values"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True
    about: ClassVar[Any] = "sensitive"
    values: int = 2
    attribute: str | None = None

    def check(self, classes: Classes, context: Context) -> Verdict:
        counts = classes.sensitive[self.attribute or next(iter(classes.sensitive))]
        different = counts.start[1:] - counts.start[:-1]
        worst = int(different.argmin()) if len(different) else None
        return self.verdict(
            different >= self.values, different, worst, f"at least {self.values}", "different values"
        )


class ExactlyTwo(TwoValues):
    """Exactly two different values in every class, which merging does not keep."""

    name: ClassVar[str] = "exactly-two"

    def check(self, classes: Classes, context: Context) -> Verdict:
        counts = classes.sensitive[self.attribute or next(iter(classes.sensitive))]
        different = counts.start[1:] - counts.start[:-1]
        worst = 0 if len(different) else None
        return self.verdict(different == 2, different, worst, "exactly 2", "different values")


class Blind(Method):
    """Calls itself blind to values, and so it is: one class of everybody."""

    name: ClassVar[str] = "one-class"

    def decisions(self) -> Decisions:
        return Decisions(blind=True)

    def group(self, task: Task) -> Grouping:
        top = {h.attribute: [h.top] for h in task.summary.attributes}
        return OptimalLattice().group(Task(task.summary, task.search, task.context, task.rng, levels=top))


class Certain(Attack):
    """Believes everything with a fifth."""

    name: ClassVar[str] = "a-fifth"

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        return Beliefs(
            self.name, adversary.name, "exact", Belief(Fraction(1, 9), Fraction(1, 5), "anybody", "of it")
        )


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    before = [(registry, set(registry)) for registry in (MODELS, METHODS, ATTACKS)]
    yield
    for registry, names in before:
        for name in set(registry) - names:
            registry.remove(name)


def policy(**sections: Any) -> mw.PolicyDraft:
    draft: mw.PolicyDraft = mw.Policy()  # type: ignore[call-arg, assignment]
    draft = draft.quasi_identifier("age", mw.intervals(3, 6)).sensitive("ill")
    return draft.require(mw.KAnonymity(k=3)).set(**sections)


def test_an_instance_is_taken_wherever_a_name_is() -> None:
    asked = policy().require(TwoValues(values=2)).method(Blind())
    release = mw.anonymize(TABLE, asked)
    assert {v.model for v in release.verdicts} == {"k-anonymity", "two-values"}
    found = mw.attack(release, Certain())
    assert isinstance(found, mw.attacks.Minimality) is False
    assert isinstance(found, Beliefs)
    assert found.worst.after == Fraction(1, 5)
    assert "a-fifth" in ATTACKS
    again = mw.Policy.load(mw.Policy.load(asked).to_dict())
    assert again.to_yaml() == asked.to_yaml()


def test_nothing_of_a_third_party_is_guaranteed() -> None:
    """A method that calls itself blind would be covered by a lemma, if it were ours."""
    [ours] = mw.anonymize(TABLE, policy()).promises
    assert ours.status == "guaranteed"
    for asked, name in (
        (policy().method(Blind()), "one-class"),
        (policy().require(TwoValues(values=2), use="gate"), "two-values"),
    ):
        release = mw.anonymize(TABLE, asked)
        [promise] = release.promises
        assert promise.status == "measured"
        assert f"{name} is no part of Maskwright" in promise.why


def test_a_search_does_not_rely_on_what_is_not_true() -> None:
    with pytest.raises(
        mw.PolicyError, match=r"exactly-two.*cannot be relied on: .*merge_safe: .* pass, and merged"
    ):
        mw.anonymize(TABLE, policy().require(ExactlyTwo()))


def test_what_is_registered() -> None:
    assert register(TwoValues) is TwoValues
    assert register(TwoValues) is TwoValues  # a cell of a notebook is run twice
    assert MODELS["two-values"] is TwoValues

    def halves(grouping: Grouping, weights: Any) -> float:
        """Half of everything."""
        return 0.5

    register(Metric("halves", halves, "always the same", "low"))
    try:
        assert mw.anonymize(TABLE, policy()).metrics["halves"] == 0.5
    finally:
        del METRICS["halves"]


def test_names_of_ours_cannot_be_taken() -> None:
    class Taken(TwoValues):
        name: ClassVar[str] = "k-anonymity"

    with pytest.raises(mw.UsageError, match="this name is taken"):
        register(Taken)
    with pytest.raises(mw.UsageError, match="derive it from Model, Method or Attack"):
        register(dict)  # type: ignore[arg-type]
    assert not is_outside(MODELS["k-anonymity"])


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as pip leaves it: its module, and the folder that names its entry points."""
    site = tmp_path_factory.mktemp("site")
    for source in PACKAGE.iterdir():
        if source.is_file():
            (site / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    info = site / "outside_rules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: outside-rules\nVersion: 1.0\n", encoding="utf-8"
    )
    (site / "entry_points.txt").rename(info / "entry_points.txt")
    return site


def command(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "maskwright.cli", *arguments], capture_output=True, text=True, check=False,
        cwd=site, env=os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])},
    )  # fmt: skip


def test_an_installed_package_is_found_by_name(installed: Path, tmp_path: Path) -> None:
    write_csv(tmp_path / "patients.csv", patients())
    columns = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}},
        "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
        "disease": "sensitive",
    }
    asked = {
        "columns": columns,
        "require": [{"model": "outside-size", "people": 4}], "method": "outside-method",
    }  # fmt: skip
    (tmp_path / "policy.yaml").write_text(json.dumps(asked), encoding="utf-8")
    done = command(
        installed, "anonymize", str(tmp_path / "patients.csv"), "-p", str(tmp_path / "policy.yaml"), "-o",
        str(tmp_path / "release"), "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["verdicts"][0]["model"] == "outside-size"
    assert answer["metrics"]["outside-metric"] == 0.25
    assert "outside-attack" in {b["attack"] for b in answer["beliefs"]}
    assert answer["promises"][0]["status"] == "measured"
    for kind in ("models", "methods", "attacks", "metrics"):
        assert "outside-" in command(installed, kind).stdout, kind
    report = (tmp_path / "release/private/report.html").read_text(encoding="utf-8")
    assert "outside-size" in report
    assert "outside-attack" in report


def test_the_contract_of_a_package(installed: Path) -> None:
    kept = command(installed, "contract", "outside_rules")
    assert kept.returncode == 0, kept.stdout + kept.stderr
    assert kept.stdout.count("keeps the contract") == 4
    broken = command(installed, "contract", "broken_rules")
    assert broken.returncode == 1
    assert "merge_safe" in broken.stdout
    assert "hereditary" in broken.stdout
    assert "a belief lies between 0 and 1" in broken.stdout
    assert "draw from task.rng" in broken.stdout
    missing = command(installed, "contract", "no_such_rules")
    assert (missing.returncode, "cannot be imported" in missing.stderr) == (2, True)


def test_a_plug_in_that_cannot_be_imported_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    entry = EntryPoint("lost", "no_such_package:Lost", "maskwright.models")
    refused = pytest.raises(mw.UsageError, match=r"plug-in 'lost'.*cannot be imported.*uninstall")
    with monkeypatch.context() as installed, refused:
        installed.setattr("maskwright.domain.registry.plugin_entries", lambda package: {"lost": entry})
        MODELS["lost"]
    assert plugin_entries("maskwright.models") == {}
