"""Several sensitive attributes in several tables: made, recounted from disk, verified, attacked later."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import maskwright as mw
from maskwright.errors import NotVerified, PolicyError, PolicyNotMet
from maskwright.verification.verify import verify_folder
from tests.amounts import crossed
from tests.patients import Command, write_csv

HEADER = ["name", "age", "sex", "job", "income", "ward", "symptoms"]
SYMPTOMS = ["cough", "fever", "pain", "rash"]


def people(n: int = 120) -> list[list[str]]:
    """Income follows the job, symptoms follow nothing."""
    draw = random.Random(3)  # noqa: S311 - a table for tests
    rows = []
    for i in range(n):
        job = draw.choice("abc")
        income = {"a": "high", "b": "middle", "c": "low"}[job] if draw.random() < 0.8 else "middle"
        held = "; ".join(draw.sample(SYMPTOMS, draw.choice([0, 1, 1, 2, 3])))
        rows.append([f"P{i:03d}", str(20 + i % 30), "mf"[i % 2], job, income, "ABC"[i % 3], held])
    return rows


ROWS = people()


def policy(method: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "columns": {
            "name": "identifier",
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}},
            "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
            "job": "sensitive",
            "income": "sensitive",
            "ward": {"role": "insensitive", "near_unique": "allow"},
            "symptoms": {"role": "sensitive", "multivalued": ";"},
        },
        "require": [{"model": "k-anonymity", "k": 4}, {"model": "t-closeness", "t": "0.4"}],
        "method": {"name": "codip", **(method or {})},
        **more,
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "t.csv", ROWS, HEADER)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


GIVEN = {"plan": [["job", "income"], ["symptoms"]]}


@pytest.mark.parametrize(
    ("base", "recoding"),
    crossed(
        ["optimal-lattice", "incognito", "mondrian", "local-recoding"], ["generalise", "bucketize", "permute"]
    ),
)
def test_any_method_makes_the_tables(base: str, recoding: str, source: Path, tmp_path: Path) -> None:
    release = mw.anonymize(source, policy({**GIVEN, "base": base}, recoding=recoding), tmp_path / "r")
    assert release.ok
    checked = verify_folder(tmp_path / "r")
    assert checked.ok, checked.problems
    assert {v.part for v in checked.verdicts} == {"table-1", "table-2"}
    assert len(release.groupings) == 2
    shown = Counter(json.loads((tmp_path / "r/public/manifest.json").read_text())["tables"][0]["columns"])
    assert shown["symptoms"] == 0
    sensitive = {n: t for n, t in release.tables.items() if "quasi" not in n}
    first, second = (table(path) for path in sensitive.values())
    jobs = Counter((row[3], row[4]) for row in ROWS)
    if recoding == "generalise":  # otherwise columns are shuffled apart
        assert Counter((row["job"], row["income"]) for row in first) == jobs
    assert Counter(row["job"] for row in first) == Counter(row[3] for row in ROWS)
    sets = Counter(frozenset(filter(None, row[6].split("; "))) for row in ROWS)
    assert Counter(frozenset(filter(None, row["symptoms"].split(";"))) for row in second) == sets


def test_insensitive_columns_are_in_one_table_and_nothing_joins_them(source: Path, tmp_path: Path) -> None:
    release = mw.anonymize(source, policy(GIVEN), tmp_path / "r")
    assert [p.columns for p in release.parts] == [
        ("age", "sex", "job", "income", "ward"),
        ("age", "sex", "symptoms"),
    ]
    first, second = (table(path) for path in release.tables.values())
    # the same quasi-identifiers, and yet another order: rows cannot be matched by their place
    same = sum(a["age"] == b["age"] and a["sex"] == b["sex"] for a, b in zip(first, second, strict=True))
    classes = Counter((row["age"], row["sex"]) for row in first)
    by_chance = sum(c * c for c in classes.values()) / len(first)
    assert same < 2 * by_chance + 10
    with pytest.raises(ValueError, match="2 tables"):
        _ = release.table


def test_orders_of_rows_are_drawn_for_each_table(tmp_path: Path) -> None:
    """With unique quasi-identifiers and no recoding, the same key would give the same order."""
    rows = [[f"P{i}", str(i), "m", "ab"[i % 2], "cd"[i % 2], "A", ""] for i in range(40)]
    made = policy({"plan": [["job"], ["income"]]}, require=[{"model": "k-anonymity", "k": 1}])
    del made["columns"]["symptoms"]
    for seed in (None, 1):
        release = mw.anonymize(write_csv(tmp_path / "u.csv", rows, HEADER), made, seed=seed)
        first, second = (
            list(t["age"])
            for t in (pd.read_csv(p) if isinstance(p, Path) else p.df() for p in release.tables.values())
        )
        assert sorted(first) == sorted(second)
        assert first != second


@pytest.mark.parametrize("plan", ["greedy", "best"])
def test_plans_are_chosen_under_the_thresholds(plan: str, source: Path, tmp_path: Path) -> None:
    made = policy(
        {"plan": plan, "beta": "0.1", "discernibility": 4000}, require=[{"model": "k-anonymity", "k": 4}]
    )
    release = mw.anonymize(source, made, tmp_path / "r")
    search = release.grouping.search
    assert all(g.discernibility <= 4000 for g in release.groupings)
    assert release.metrics["information-exposure"] <= 0.1
    assert ["job", "income"] in search["plan"]
    assert len(search["plan"]) == len(release.parts)
    if plan == "best":
        assert search["proven_best"]
        assert search["association_loss"] <= search["greedy_association_loss"]
    written = json.loads((tmp_path / "r/private/plans.json").read_text())
    assert written["exact"]
    assert any(front["closeness_at_most"] is not None for front in written["fronts"])
    lines = table(tmp_path / "r/private/plans.csv")
    assert len(lines) == sum(len(front["points"]) for front in written["fronts"])
    report = (tmp_path / "r/private/report.html").read_text()
    assert "information exposure Γβ" in report
    assert "<polyline" in report or "<path" in report
    card = (tmp_path / "r/public/data-card.html").read_text()
    assert "They cannot be joined" in card


def test_it_can_be_attacked_later(source: Path, tmp_path: Path) -> None:
    release = mw.anonymize(source, policy(GIVEN), tmp_path / "r")
    later = mw.attack(tmp_path / "r")
    assert isinstance(later, list)
    assert {b.attack for b in later} == {b.attack for b in release.beliefs}
    for before in release.beliefs:
        after = next(b for b in later if b.attack == before.attack)
        if before.kind in ("exact", "bounded"):
            assert (after.worst.after, after.worst.whom) == (before.worst.after, before.worst.whom)
        else:  # worlds are drawn anew
            assert float(after.worst.after) == pytest.approx(float(before.worst.after), abs=0.05)
    shares = next(b for b in later if b.attack == "homogeneity")
    assert set(shares.measures["tables"]) == {"table-1", "table-2"}
    assert "absent" not in shares.worst.why
    assert "false" not in shares.worst.why


def test_the_command_attacks_one_release_or_several(
    source: Path, tmp_path: Path, maskwright: Command
) -> None:
    for name, recoding in (("r", "generalise"), ("s", "bucketize")):
        mw.anonymize(source, policy(GIVEN, recoding=recoding), tmp_path / name)
    one = maskwright("attack", tmp_path / "r", "--attack", "intersection")
    assert one.code == 0, one.err
    assert "rows of table-1 and table-2: two belong together" in one.out
    both = maskwright("attack", tmp_path / "r", tmp_path / "s", "--attack", "intersection", "--json")
    assert both.code == 0, both.err
    measures = both.json["beliefs"][0]["measures"]
    assert set(measures["in_several_tables"]) >= {"job", "income", "symptoms=cough"}
    everything = maskwright("attack", tmp_path / "r")
    assert "background-join" in everything.out


def test_a_changed_table_is_noticed(source: Path, tmp_path: Path) -> None:
    mw.anonymize(source, policy(GIVEN), tmp_path / "r")
    path = tmp_path / "r/public/table-2.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    found = verify_folder(tmp_path / "r", recount_only=True)
    assert not found.ok
    path.write_text("\n".join([*lines[:-1], lines[-1].rpartition(",")[0] + ",plague"]) + "\n")
    changed = verify_folder(tmp_path / "r")
    assert not changed.ok
    path.unlink()
    with pytest.raises(NotVerified, match="missing"):
        verify_folder(tmp_path / "r")


REFUSED = [
    ({"plan": [["job", "income"]]}, PolicyError, "'symptoms=cough' is in no table"),
    ({"plan": [["job", "income"], ["job", "symptoms"]]}, PolicyError, "'job' is in two tables"),
    ({"plan": [["jop"], ["income", "symptoms"]]}, PolicyError, "did you mean 'job'"),
    ({"plan": "grredy"}, PolicyError, "is no plan"),
    ({"base": "codip"}, PolicyError, "its own base"),
    ({"base": {"name": "mondrian", "cutt": 1}}, PolicyError, "unknown key 'cutt'"),
    ({"alpha": 2}, PolicyError, "between 0 and 1"),
    ({"alpha": "0.01", "beta": "0.1"}, PolicyNotMet, r"association loss Γα is 0\.\d+, asked at most 1 in 100"),
    ({"alpha": "0.01", "beta": "0.1", "plan": "best"}, PolicyNotMet, "the least of all plans"),
    ({**GIVEN, "beta": "0.01"}, PolicyNotMet, r"information exposure Γβ of the plan is 0\.\d+"),
    ({"discernibility": 100}, PolicyNotMet, r"of job cannot be made: discernibility is \d+, asked at most 100"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "error", "text"), REFUSED)
def test_refusals_say_what_failed_and_what_was_reached(
    method: dict[str, Any], error: type[Exception], text: str, source: Path
) -> None:
    with pytest.raises(error, match=text):
        mw.anonymize(source, policy(method))


def test_a_requirement_that_one_attribute_cannot_meet_is_named(source: Path) -> None:
    made = policy(
        require=[
            {"model": "k-anonymity", "k": 4},
            {"model": "simple-l-diversity", "l": "5/2", "attribute": "job", "use": "gate"},
        ]
    )
    with pytest.raises(PolicyNotMet, match=r"the table of job cannot be made: .*simple-l-diversity of job"):
        mw.anonymize(source, made)


def test_a_requirement_that_no_table_can_meet_is_refused_in_advance(source: Path) -> None:
    asked = {"model": "simple-l-diversity", "l": 3, "attribute": "job"}
    made = policy(require=[{"model": "k-anonymity", "k": 4}, asked])
    with pytest.raises(
        PolicyNotMet, match=r"diversity of job with l: 3 cannot be kept: .*\(45 of 120\).*l: "
    ):
        mw.anonymize(source, made)


def test_gates_are_asked_of_each_table(source: Path) -> None:
    gate = {"model": "simple-l-diversity", "l": 3, "use": "gate", "attribute": "job"}
    with pytest.raises(PolicyNotMet, match="job"):
        mw.anonymize(source, policy(GIVEN, require=[{"model": "k-anonymity", "k": 4}, gate]))


def test_values_that_are_counted_are_refused_for_sets(source: Path) -> None:
    for model in ({"model": "distinct-l-diversity", "l": 2}, {"model": "entropy-l-diversity", "l": "1.1"},
                  {"model": "p-sensitive-k-anonymity", "p": 2, "k": 2}):  # fmt: skip
        with pytest.raises(PolicyError, match="only presence is sensitive"):
            mw.anonymize(source, policy(GIVEN, require=[model]))
    one = {"model": "distinct-l-diversity", "l": 2, "attribute": "job"}
    assert mw.anonymize(source, policy(GIVEN, require=[{"model": "k-anonymity", "k": 4}, one])).ok


def test_sets_in_one_table_of_any_kind(source: Path) -> None:
    frame = pl.read_csv(source).with_columns(pl.col("symptoms").str.split("; "))
    made = policy(method={"name": "optimal-lattice"})
    made["method"] = "optimal-lattice"
    made["columns"]["symptoms"] = {"role": "sensitive", "multivalued": True}
    published = mw.anonymize(frame, made).table
    assert published.schema["symptoms"] == pl.List(pl.String)
    assert Counter(map(frozenset, published["symptoms"].to_list())) == Counter(
        frozenset(filter(None, row[6].split("; "))) for row in ROWS
    )
    made["output"] = {"format": "csv"}
    with pytest.raises(PolicyError, match="CSV cannot"):
        mw.anonymize(frame, made)


def test_settings_survive_the_round_trip() -> None:
    method = mw.methods.Codip(plan=[["a"], ["b"]], base={"name": "mondrian", "cut": "balanced"}, beta="1/3")
    made = mw.Policy.load(policy() | {"method": method})
    again = mw.Policy.of(made.to_dict(), "again")
    assert again.method.parameters == made.method.parameters
    assert made.method.parameters["base"] == {"name": "mondrian", "cut": "balanced"}


def test_one_sensitive_attribute_needs_no_codip(source: Path) -> None:
    made = policy()
    del made["columns"]["income"], made["columns"]["symptoms"]
    with pytest.raises(PolicyError, match="at least two sensitive"):
        mw.anonymize(source, made)


def test_the_frontier_without_a_release(source: Path) -> None:
    found = mw.plan_frontier(source, policy())
    assert found["exact"]
    points = found["fronts"][0]["points"]
    assert (points[0]["association_loss"], points[0]["information_exposure"]) == (1.0, 0.0)
    assert points[-1]["plan"] == [["job", "income", *(f"symptoms={s}" for s in SYMPTOMS)]]
    assert points[-1]["association_loss"] == 0.0
    losses = [p["association_loss"] for p in points]
    assert losses == sorted(losses, reverse=True)


def test_requirements_on_belief_are_judged_table_by_table(source: Path) -> None:
    belief = {"model": "belief", "max": "0.95", "adversary": "neighbour"}
    made = policy(GIVEN, require=[{"model": "k-anonymity", "k": 8}, belief])
    made["columns"]["ward"] = "identifier"  # it would tell rows of a class apart
    made["unit"] = "none"
    verdicts = [v for v in mw.anonymize(source, made).verdicts if v.model == "belief"]
    assert {(v.part, v.attribute) for v in verdicts} == {
        ("table-1", "job"), ("table-1", "income"), *(("table-2", f"symptoms={s}") for s in SYMPTOMS)
    }  # fmt: skip
    made["require"][1] = belief | {"max": "0.1"}
    with pytest.raises(PolicyNotMet, match="belief"):
        mw.anonymize(source, made)
