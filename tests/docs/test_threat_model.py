"""docs/threat-model.md: what it says of attacks, refusals and statistics is what happens."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.attacks import ATTACKS
from maskwright.errors import PolicyNotMet
from maskwright.pipeline.attacking import adversary_named
from tests.patients import write_csv
from tests.support import needs

ROOT = Path(__file__).parents[2]
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/threat-model.md", "docs/security.md", "docs/promise.md")
}
PEOPLE, VALUES = 3, "ab"


def policy(*gates: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": 1,
        "columns": {"age": {"role": "quasi-identifier", "hierarchy": "suppress"}, "disease": "sensitive"},
        "require": [{"model": "k-anonymity", "k": PEOPLE}, *gates],
        "method": "mondrian",
    }


DIVERSE = {"model": "distinct-l-diversity", "l": 2, "use": "gate"}
BELIEF = {"model": "belief", "max": "2/3"}


def test_a_refusal_depends_on_values_and_tells_about_them(tmp_path: Path) -> None:
    """The same people, every assignment of two diseases: who learns of the refusal knows that all have the same one."""
    refused = []
    for world in itertools.product(VALUES, repeat=PEOPLE):
        table = write_csv(tmp_path / "t.csv", [["30", value] for value in world], ["age", "disease"])
        try:
            mw.anonymize(table, policy(DIVERSE))
        except PolicyNotMet:
            refused.append(world)
    assert refused == [("a",) * PEOPLE, ("b",) * PEOPLE]
    same = sum(world[0] == world[1] for world in refused)
    assert (Fraction(same, len(refused)), Fraction(1, 2)) == (1, Fraction(1, 2))  # afterwards, and before
    for page in ("docs/threat-model.md", "docs/security.md"):
        promised, not_promised = re.split(
            r"^## (?:What is not promised|Not promised)$", PAGES[page], flags=re.MULTILINE
        )
        assert "* **Refusals.**" in not_promised
        assert "simulated" not in promised
    assert "A refusal is not\npublished; it depends on values" in PAGES["docs/promise.md"]


def test_a_policy_that_was_changed_after_a_refusal_is_measured(tmp_path: Path) -> None:
    rows = [["30", "a"]] * 2 + [["30", "b"]]
    table = write_csv(tmp_path / "t.csv", rows, ["age", "disease"])
    untouched = write_csv(tmp_path / "other.csv", [*rows[:1], *rows], ["age", "disease"])
    with pytest.raises(PolicyNotMet):
        mw.anonymize(table, policy({**DIVERSE, "l": 3}))
    for source, status in ((table, "measured"), (untouched, "guaranteed")):
        made = mw.anonymize(source, policy({**BELIEF, "max": "3/4"}))
        [found] = [v for v in made.verdicts if v.model == "belief"]
        assert found.status == status


def test_statistics_of_a_parquet_file_are_said_to_be_there(tmp_path: Path) -> None:
    """Of published rows, no more: tests/leaks/test_containers.py. No page says that there are none."""
    parquet = needs("pyarrow.parquet")
    table = write_csv(tmp_path / "t.csv", [["30", v] for v in "abc"] + [["31", "z"]], ["age", "disease"])
    columns = {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5]}}, "disease": "sensitive"}
    asked = policy() | {"columns": columns, "output": {"format": "parquet"}}
    mw.anonymize(table, asked, tmp_path / "r")
    [file] = (tmp_path / "r" / "public").glob("*.parquet")
    groups = parquet.ParquetFile(file).metadata.row_group(0)
    found = [groups.column(i).statistics for i in range(groups.num_columns)]
    assert any(s is not None and s.has_min_max for s in found)
    for name, text in PAGES.items():
        flat = " ".join(text.split())
        assert not re.search(r"no (?:unused )?(?:\w+,? )*statistics", flat), name


PRESETS = ("neighbour", "journalist", "knows-method", "insider")


def test_the_table_of_attacks_has_all_of_them_and_who_runs_them() -> None:
    rows = re.findall(
        r"^\| \[([a-z-]+)\]\(attacks/.*?\) \| (.*) \|$", PAGES["docs/threat-model.md"], re.MULTILINE
    )
    table = {name: cells.split(" | ") for name, cells in rows}
    assert table.keys() == ATTACKS.keys()
    for name, cells in table.items():
        runs = [ATTACKS[name]().suits(adversary_named(preset, None)) for preset in PRESETS]
        assert [not cell.startswith("not run") for cell in cells] == runs, name


def test_which_attacks_speak_for_whom() -> None:
    """By what they take for known; a bound on belief is decided by those about values."""
    flat = " ".join(PAGES["docs/threat-model.md"].split())
    said = re.search(
        r"speak for whom: (.*?) for everybody; (.*?) for anybody who knows the method; (.*?) for the insider",
        flat,
    )
    assert said
    known = [adversary_named(p, None).knowledge for p in ("neighbour", "knows-method", "insider")]
    values = {name: attack().takes for name, attack in ATTACKS.items() if attack.about == "values"}
    before: set[str] = set()
    for words, knowledge in zip(said.groups(), known, strict=True):
        able = {name for name, takes in values.items() if takes <= knowledge}
        assert set(re.findall(r"\*([a-z-]+)\*", words)) == able - before
        before |= able
    for name in ATTACKS.keys() - before:
        assert (
            f"*{name}*" in flat.lower().partition("for the insider, with")[2].partition("the requirement")[0]
        )
