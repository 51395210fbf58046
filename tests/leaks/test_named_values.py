"""A policy that names a value: whether somebody who is not published holds it must not show in the release."""

from __future__ import annotations

from pathlib import Path

import pytest

import maskwright as mw
from maskwright.errors import PolicyError
from maskwright.policy.policy import Policy
from tests.amounts import cases, crossed

PEOPLE = [
    f"{age},{disease}" for age, disease in zip([20, 21, 22, 23, 30, 31, 32, 33], "abcaabcb", strict=True)
]
MODELS = {
    "simple-l-diversity": "{model: simple-l-diversity, l: 4/3, sets: [[X]], use: %s}",
    "two sets": "{model: simple-l-diversity, l: 4/3, sets: [[X], [c]], use: %s}",
    "values": "{model: simple-l-diversity, l: 4/3, values: [X, c], use: %s}",
    "alpha-k-anonymity": "{model: alpha-k-anonymity, alpha: 3/4, k: 2, values: [X], use: %s}",
    "m-confidentiality": "{model: m-confidentiality, m: 4/3, sets: [[X, c]], use: %s}",
    "belief": "{model: belief, max: 3/4, sets: [[X]]}",
    "belief of two": "{model: belief, max: 3/4, sets: [[X], [c]]}",
}
POLICY = """
version: 1
columns:
  age: {{role: quasi-identifier, hierarchy: {{intervals: [5, 10]}}}}
  disease: {{role: sensitive{more}}}
require: [{{model: k-anonymity, k: 2}}, {model}]
method: {method}
"""


def public(folder: Path, rows: list[str], model: str, more: str = "", method: str = "") -> dict[str, bytes]:
    folder.mkdir()
    (folder / "t.csv").write_text("\n".join(["age,disease", *rows]) + "\n")
    method = method or "{name: optimal-lattice, suppression: 20%, suppress: small-classes}"
    (folder / "p.yaml").write_text(POLICY.format(model=model, more=more, method=method))
    made = mw.anonymize(folder / "t.csv", Policy.load(folder / "p.yaml"), seed=1)
    made.save(folder / "out")
    assert made.grouping.dropped_rows == len(rows) - len(PEOPLE)
    notes = [note for note in made.notes if "does not occur" in note]
    assert bool(notes) == (not any(row.endswith("X") for row in rows)), made.notes
    assert all("'X'" in note and "'disease'" in note for note in notes)
    return {p.name: p.read_bytes() for p in sorted((folder / "out" / "public").iterdir())}


USES = [(name, use) for name in MODELS for use in ("search", "gate") if "belief" not in name or use == "gate"]


@pytest.mark.parametrize(
    ("name", "use"),
    cases(USES, brief=[("simple-l-diversity", "search"), *(case for case in USES if case[1] == "gate")]),
)
def test_a_dropped_person_may_hold_the_named_value(tmp_path: Path, name: str, use: str) -> None:
    model = MODELS[name] % use if "%s" in MODELS[name] else MODELS[name]
    holds = public(tmp_path / "holds", [*PEOPLE, "97,X"], model)
    not_so = public(tmp_path / "not", [*PEOPLE, "97,a"], model)
    assert holds == not_so
    assert b"does not occur" not in b"".join(not_so.values())


def test_sensitive_sets_of_a_column_may_name_it(tmp_path: Path) -> None:
    model, sets = "{model: simple-l-diversity, l: 4/3}", ", sensitive_sets: [[X], [c]]"
    assert public(tmp_path / "a", [*PEOPLE, "97,X"], model, sets) == public(
        tmp_path / "b", [*PEOPLE, "97,a"], model, sets
    )


@pytest.mark.parametrize(
    ("method", "name"),
    crossed(
        ["mondrian", "{name: mondrian, cut: relaxed}", "local-recoding", "greedy-grouping", "anatomy"],
        ["two sets", "alpha-k-anonymity", "belief of two"],
    ),
)
def test_every_method_copes_with_a_value_that_nobody_holds(tmp_path: Path, method: str, name: str) -> None:
    model = MODELS[name] % "search" if "%s" in MODELS[name] else MODELS[name]
    public(tmp_path / "release", PEOPLE, model, method=method)


def test_a_column_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="illness"):
        public(tmp_path / "a", PEOPLE, "{model: simple-l-diversity, l: 2, attribute: illness, sets: [[X]]}")
