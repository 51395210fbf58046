"""A release is attacked together with the earlier ones of the same table that are still there."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.cli import main
from maskwright.domain.beliefs import Beliefs
from maskwright.report.verdict_words import verdict_words

# docs/attacks/intersection.md: each release leaves 1/2, both together nothing
TABLE = pd.DataFrame({"p": list("1212"), "q": list("xyyx"), "diagnosis": ["HT", "HT", "DB", "AS"]})


def policy(suppressed: str, **more: Any) -> dict[str, Any]:
    return {
        "columns": {
            name: {"role": "quasi-identifier", "hierarchy": "suppress", "levels": ["1" if name == suppressed else "0"]}
            for name in "pq"
        }
        | {"diagnosis": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 2}],
        **more,
    }  # fmt: skip


def together(release: mw.Release) -> list[Beliefs]:
    return [b for b in release.beliefs if b.attack == "intersection"]


def test_two_releases_of_a_table(tmp_path: Path) -> None:
    first = mw.anonymize(TABLE, policy("q"))
    assert not together(first)
    first.save(tmp_path / "first")
    second = mw.anonymize(TABLE, policy("p"))
    (found,) = together(second)
    assert (found.worst.after, found.kind) == (Fraction(1), "exact")
    assert found.measures["earlier_releases"] == 1
    assert found.measures["certain_people"] == 4
    assert "'first'" in " ".join(second.notes)
    words = " ".join(verdict_words(second))
    assert "hand out the earlier one again" in words
    assert "or bound it" not in words, "a requirement is about one release and would not"
    assert not together(mw.anonymize(TABLE, policy("q")))  # the same settings: the same release again
    assert not together(mw.anonymize(TABLE.assign(p=list("3434")), policy("p")))  # another table


def refused(folder: Path, **second: str) -> Beliefs:
    """Two releases together: p was refused in one of them, q in the other."""
    table = pd.DataFrame(
        {"p": list("11122"), "q": list("xxyxy"), "diagnosis": list("aabbb"), "ward": list("vwxyz")}
    )
    ask = {"model": "simple-l-diversity", "l": 2, "values": ["a"], "attribute": "diagnosis"}
    for kept in "qp":
        chosen = policy(kept, require=[ask])
        chosen["columns"]["pq".replace(kept, "")]["levels"] = ["0", "1"]
        chosen["columns"] |= {"ward": "identifier"} | (second if kept == "p" else {})
        release = mw.anonymize(table, chosen, folder / kept)
    (found,) = together(release)
    return found


def test_choices_by_looking_at_values_are_counted_together(tmp_path: Path) -> None:
    """Only one world refuses both, so that two people are certain to have it."""
    found = refused(tmp_path)
    assert (found.worst.after, found.kind) == (Fraction(1), "exact")
    assert found.measures["choices of methods"]["vulnerable_people"] == 2


def test_choices_that_are_not_counted_count_as_one(tmp_path: Path) -> None:
    found = refused(tmp_path, ward="sensitive")  # it shows more than the other one
    assert found.worst.after == Fraction(2, 5), "both show one class of five"
    assert (found.worst.upper, found.kind) == (1, "estimated")
    assert "NOT COMPUTED, and counts as 1" in found.sentence()


def test_what_is_not_at_hand_is_said(tmp_path: Path) -> None:
    mw.anonymize(TABLE, policy("q")).save(tmp_path / "first")
    shutil.rmtree(tmp_path / "first")
    lost = mw.anonymize(TABLE, policy("p"))
    assert not together(lost)
    assert "an earlier release of this table was replaced" in " ".join(lost.notes)
    lost.save(tmp_path / "second", keep_private="report")
    third = mw.anonymize(TABLE, policy("p", method={"name": "optimal-lattice", "suppression": "50%"}))
    assert "2 earlier releases of this table were replaced" in " ".join(third.notes)


def test_a_replaced_release_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    TABLE.to_csv(tmp_path / "t.csv", index=False)
    for name in "pq":
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({"version": 1, **policy(name)}))
    run = ["anonymize", str(tmp_path / "t.csv"), "-o", str(tmp_path / "out"), "--overwrite", "-p"]
    assert main([*run, str(tmp_path / "q.yaml")]) == 0
    assert "earlier release" not in capsys.readouterr().err
    assert main([*run, str(tmp_path / "p.yaml")]) == 0
    assert "an earlier release of this table was replaced" in capsys.readouterr().err


def test_people_with_several_rows(tmp_path: Path) -> None:
    table = pd.concat([TABLE.assign(who=range(4)), TABLE.assign(who=range(4), diagnosis="HT")])

    def several(name: str) -> dict[str, Any]:
        made = policy(name, unit="who")
        made["columns"]["who"] = "identifier"
        return made

    mw.anonymize(table, several("q")).save(tmp_path / "first")
    (found,) = together(mw.anonymize(table, several("p")))
    assert (found.kind, found.worst.after) == ("exact", 1)  # everybody has HT, and the cuts tell the rest


def test_that_nobody_learned_from_it_is_said() -> None:
    """Beside a promise under random worlds; not where the policy asks for a bound on what is learned."""
    plain = mw.anonymize(TABLE, policy("q"))
    assert [line.partition(":")[0] for line in plain.label["not_attacked"]] == ["learned"]
    asked = {"model": "belief", "max": 1, "adversary": "learns"}
    bounded = mw.anonymize(TABLE, policy("q") | {"require": [{"model": "k-anonymity", "k": 2}, asked]})
    assert not any("--adversary learns" in line for line in bounded.label["not_attacked"])
    nobody = policy("q")
    nobody["columns"] = {name: c for name, c in nobody["columns"].items() if name != "diagnosis"}
    assert not mw.anonymize(TABLE, nobody).label["not_attacked"]
