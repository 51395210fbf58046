"""The same policy on the same input gives the same release, byte for byte; nothing is drawn again by running it again.

Two independent Anatomy releases of the same people can be intersected, and whoever may run a policy until a draw passes
a gate has chosen by the values. So every random choice is a function of installation key, input and policy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.engines.duckdb.engine import DuckDBEngine
from maskwright.errors import PolicyNotMet
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from maskwright.pipeline.random_keys import NAMED
from tests.amounts import amount, cases, crossed
from tests.leaks.tables import KINDS, METHODS, RECODINGS, as_kind, columns_of, forget_key, people, policy

DATA = people(160)
ANATOMY = policy("anatomy", "bucketize", passes=True)
CASES = [
    (method, recoding, passes)
    for method in METHODS
    for recoding in (["generalise"] if method == "codip" else RECODINGS)
    for passes in (False, True)
]
BRIEF = [  # every method, every recoding, with and without columns that pass
    (method, "generalise" if method == "codip" else [*RECODINGS][i % len(RECODINGS)], i % 2 == 0)
    for i, method in enumerate(METHODS)
]


def public(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted((folder / "public").iterdir())}


def released(source: Any, made: dict[str, Any], folder: Path) -> dict[str, bytes]:
    publish_release(Job(source, mw.Policy.load(made), folder, attacks=(), keep_private="none"))
    return public(folder)


def together(tables: dict[str, dict[str, list[Any]]]) -> list[Any]:
    """Who is with whom: the people of each group (by `when` or what else is published of them), without its number."""
    groups = defaultdict[str, Counter[tuple[Any, ...]]](Counter)
    for name, columns in tables.items():
        others = [columns[c] for c in columns if c != "group"]
        for row in zip(columns.get("group", ["data"] * len(others[0])), *others, strict=True):
            groups[row[0]][(name, *row[1:])] += 1
    return sorted(sorted(group.items()) for group in groups.values())


def grouped(source: Any, made: dict[str, Any], kind: str) -> list[Any]:
    found = publish_release(Job(source, mw.Policy.load(made), attacks=()))
    return together({name: columns_of(table, kind) for name, table in found.tables.items()})


# --- the same again -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "recoding", "passes"), cases(CASES, brief=BRIEF))
def test_every_method_and_recoding(method: str, recoding: str, passes: bool, tmp_path: Path) -> None:
    kind = "parquet" if passes else "csv"
    source, made = as_kind(DATA, kind, tmp_path), policy(method, recoding, passes)
    first = released(source, made, tmp_path / "first")
    assert released(source, made, tmp_path / "second") == first
    forget_key()
    other = released(source, made, tmp_path / "other")
    assert [n for n in first if n.endswith((".csv", ".parquet")) and other[n] != first[n]], "the key decides"


def test_two_runs_of_anatomy_with_everything(tmp_path: Path) -> None:
    """Attacks, report and data card included; what is guaranteed stays guaranteed."""
    source = as_kind(DATA, "csv", tmp_path)
    both = [mw.anonymize(source, ANATOMY, tmp_path / name) for name in ("first", "second")]
    assert public(tmp_path / "first") == public(tmp_path / "second")
    assert all(r.repeatable and not r.seeded and r.history["draws"] == 0 for r in both)
    found = json.loads((tmp_path / "first/private/manifest.json").read_bytes())
    assert found["repeatable"] is True
    assert found["seeded"] is False


PROCESS = """
import sys
from pathlib import Path
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from maskwright.policy.policy import Policy
source, policy, folder = sys.argv[1:]
publish_release(Job(source, Policy.load(policy), Path(folder), attacks=(), keep_private="none"))
"""


def test_other_processes(tmp_path: Path) -> None:
    """Texts are hashed otherwise in each process, and no key is there yet when all three begin."""
    source = as_kind(DATA, "parquet", tmp_path)
    file = tmp_path / "policy.yaml"
    file.write_text(mw.Policy.load(policy("local-recoding", "permute", True)).to_yaml(), encoding="utf-8")
    names = ("first", "second", "third")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(source), str(file), str(tmp_path / name)],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
        )
        for seed, name in enumerate(names)
    ]
    assert [process.wait(600) for process in running] == [0, 0, 0]
    first, *others = (public(tmp_path / name) for name in names)
    assert others == [first, first]


@pytest.mark.parametrize(
    ("how", "kind"),
    crossed(
        [
            ("optimal-lattice", "generalise", True),
            ("mondrian", "permute", True),
            ("anatomy", "bucketize", False),
        ],
        ["csv", "parquet"],
    ),
)
def test_many_rows_and_threads(
    how: tuple[str, str, bool], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several threads read and write the rows, in parts that differ from run to run."""
    before = DuckDBEngine.__init__

    def threaded(self: DuckDBEngine, memory: Any = None, temp: Any = None, threads: Any = None) -> None:
        before(self, memory, temp, 8)

    monkeypatch.setattr(DuckDBEngine, "__init__", threaded)
    source, made = as_kind(people(amount(150_000, 250_000)), kind, tmp_path), policy(*how)
    made["method"].pop("suppression", None)
    first = released(source, made, tmp_path / "first")
    for name in ("second", "third")[: amount(1, 2)]:
        assert released(source, made, tmp_path / name) == first


# --- the same in other clothes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "kind"), crossed([("anatomy", "bucketize"), ("mask", "bucketize-generalised")], KINDS)
)
def test_another_container(how: tuple[str, str], kind: str, tmp_path: Path) -> None:
    """The same people are in the same groups, and of equals the same ones."""
    method, recoding = how
    made = policy(method, recoding, passes=True)
    first = grouped(as_kind(DATA, "polars", tmp_path), made, "polars")
    destination = tmp_path / "release" if kind in ("csv", "parquet") else None
    job = Job(as_kind(DATA, kind, tmp_path), mw.Policy.load(made), destination, attacks=())
    found = {name: columns_of(table, kind) for name, table in publish_release(job).tables.items()}
    assert together(found) == first


@pytest.mark.parametrize("passes", [False, True], ids=["rows are expanded", "rows are read"])
@pytest.mark.parametrize("method", ["anatomy", "mondrian", "mask", "symmetric-grouping"])
def test_another_order_of_rows(method: str, passes: bool, tmp_path: Path) -> None:
    """Also where people whom nothing else tells apart are in several groups: who of them is where is drawn once."""
    data = people(160)
    data["age"] = [a // 20 for a in data["age"]]  # many equals
    data["disease"] = [d if i % 4 else "d3" for i, d in enumerate(data["disease"])]  # mask replaces some
    data["when"] = list(range(160))
    made = policy(method, "generalise" if method == "mask" else "bucketize", passes)
    if passes:
        made["columns"]["when"] = {"role": "insensitive", "near_unique": "allow"}
    first = grouped(as_kind(data, "polars", tmp_path), made, "polars")
    order = np.random.default_rng(1).permutation(160)
    other = {name: [values[i] for i in order] for name, values in data.items()}
    assert grouped(as_kind(other, "polars", tmp_path), made, "polars") == first
    forget_key()
    assert grouped(as_kind(data, "polars", tmp_path), made, "polars") != first, "the groups are drawn"


CHANGES: dict[str, Any] = {
    "another gate": {"require": [*ANATOMY["require"], {"model": "k-anonymity", "k": 1, "use": "gate"}]},
    "another format": {"output": {"format": "parquet"}},
    "a preset for the record": {"preset": "open-data"},
    "another word for missing": {"missing": {"tokens": ["n/a"]}},
    "the default written out": {"method": {"name": "anatomy", "l": 2, "block": None}},
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_policies_that_differ_in_what_the_method_does_not_see(change: str, tmp_path: Path) -> None:
    source = as_kind(people(160), "polars", tmp_path)
    assert grouped(source, ANATOMY | CHANGES[change], "polars") == grouped(source, ANATOMY, "polars")


def test_a_column_more_that_nobody_publishes(tmp_path: Path) -> None:
    more = people(160) | {"name": [f"somebody {i}" for i in range(160)]}
    sources = [as_kind(data, "polars", tmp_path) for data in (people(160), more)]
    assert grouped(sources[0], ANATOMY, "polars") == grouped(sources[1], ANATOMY, "polars")


@pytest.mark.parametrize(
    "change", [{"method": {"name": "anatomy", "l": 3}}, {"method": "symmetric-grouping"}]
)
def test_another_method_draws_its_own(change: dict[str, Any], tmp_path: Path) -> None:
    source = as_kind(people(160), "polars", tmp_path)
    assert grouped(source, ANATOMY | change, "polars") != grouped(source, ANATOMY, "polars")


def test_another_person_draws_everything_anew(tmp_path: Path) -> None:
    data = people(160)
    other = data | {"disease": ["d4" if data["disease"][0] != "d4" else "d3", *data["disease"][1:]]}
    first, second = (grouped(as_kind(d, "polars", tmp_path), ANATOMY, "polars") for d in (data, other))
    same = sum(group in first for group in second)
    assert same < len(first) / 4


# --- what is in line ----------------------------------------------------------------------------------


def lines(source: Any, made: dict[str, Any]) -> list[Any]:
    """`when` of the published rows, in their order."""
    found = publish_release(Job(source, mw.Policy.load(made), attacks=())).tables
    return next(columns["when"] for t in found.values() if "when" in (columns := columns_of(t, "polars")))


@pytest.mark.parametrize(("method", "recoding"), [("optimal-lattice", "generalise"), ("mondrian", "permute")])
def test_two_policies_do_not_have_their_rows_in_the_same_order(
    method: str, recoding: str, tmp_path: Path
) -> None:
    """Otherwise the same line of two releases would be the same person."""
    data = people(160) | {"when": list(range(160))}
    made = policy(method, recoding, passes=True)
    made["method"] = {"name": method}
    made["columns"]["when"] = {"role": "insensitive", "near_unique": "allow"}
    gated = made | {"require": [*made["require"], {"model": "k-anonymity", "k": 1, "use": "gate"}]}
    source = as_kind(data, "polars", tmp_path)
    first, second = lines(source, made), lines(source, gated)
    assert sorted(first) == sorted(second)
    assert sum(a == b for a, b in zip(first, second, strict=True)) < 12
    # two orders of one table, with one policy: who knows one of them must not learn the other
    order = np.random.default_rng(1).permutation(160)
    other = {name: [values[i] for i in order] for name, values in data.items()}
    third = lines(as_kind(other, "polars", tmp_path), made)
    place = {str(when): i for i, when in enumerate(other["when"])}
    assert sum(int(a) == place[b] for a, b in zip(first, third, strict=True)) < 12


# --- no second chance ---------------------------------------------------------------------------------


def test_running_again_until_a_draw_passes_a_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that a third of all draws would pass: with the same key the answer is the same however often one tries."""
    data = {"age": [0, 1, 1, 1, 1, 2], "disease": list("aabcdb")}
    made = {
        "version": 1,
        "columns": {"age": {"role": "quasi-identifier", "hierarchy": "suppress"}, "disease": "sensitive"},
        "require": [
            {"model": "k-anonymity", "k": 3},
            {"model": "distinct-l-diversity", "l": 3, "use": "gate"},
        ],
        "method": {"name": "mondrian", "cut": "relaxed"},
        "recoding": "permute",
    }

    def outcome() -> str:
        try:
            publish_release(Job(as_kind(data, "polars", tmp_path), mw.Policy.load(made), attacks=()))
        except PolicyNotMet:
            return "refused"
        return "published"

    assert len({outcome() for _ in range(10)}) == 1
    answers = Counter[str]()
    monkeypatch.setenv(NAMED, str(tmp_path / "key"))
    for i in range(12):
        (tmp_path / "key").write_text(f"{i:064x}", encoding="ascii")
        (tmp_path / "key").chmod(0o600)
        first = outcome()
        assert outcome() == first
        answers[first] += 1
    assert answers.keys() == {"published", "refused"}, "another key could have another answer"
