"""`init` finds every kind of mess, writes what it means and how often it occurs, and the policy repairs it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

import maskwright as mw
from maskwright.engines import open_engine
from maskwright.policy.binding import reading_options
from maskwright.prepare import repairs as words
from maskwright.suggest.mess import Mess, find_mess
from tests.prepare.messy import messy_table
from tests.suggest.test_suggest_roles import facts

GONE = {"otherwise": "missing"}


def mess_of(name: str, values: list[str]) -> dict[str, Any]:
    """What is found in a column with these values, each in ten rows."""
    found: Mess | None = find_mess(facts(name, values * 10))
    return dict(found.steps) if found else {}


def test_a_messy_table_is_understood(tmp_path: Path) -> None:
    made = messy_table(600)
    path = made.write(tmp_path / "messy.csv")
    policy = mw.suggest_policy(path).policy
    engine = open_engine()
    try:
        table = engine.open(path, reading_options(policy))
        rows = engine.sample(table, 1000)
    finally:
        engine.close()
    same = ("charges", "weight", "born", "admitted", "left", "zip", "disease")
    for row, truth in zip(rows, made.truth, strict=True):
        assert {name: row[name] for name in same} == {name: truth[name] for name in same}
        assert (row["sex"] or "").lower() == (truth["sex"] or "").lower()
    counted: Counter[tuple[str, str]] = Counter()
    for repair in table.repairs:
        counted[repair.column, repair.what] += repair.rows
    for key, count in made.found.items():
        if key[1] not in (words.SPELLED, words.MISSING, words.UNFIT, words.LIST):
            assert counted[key] == count
    unfit = made.found["charges", words.UNFIT] + made.found["charges", words.MISSING]
    assert sum(row["charges"] is None for row in rows) == unfit


@pytest.mark.parametrize(
    ("name", "values", "steps"),
    [
        ("sex", ["F", "f", "Female", "female", "M", "male"],
         {"spellings": {"female": ["F", "Female", "f"], "male": ["M"]}}),
        ("city", ["New York", "new york", "NEW  YORK", "Bern"], {"spellings": {"new york": ["NEW  YORK", "New York"]}}),
        ("smoker", ["yes", "Y", "no", "N", "ja"], {"spellings": {"yes": ["Y", "ja"], "no": ["N"]}}),
        ("job", ["baker", "smith", "unknown", "not stated"], {"missing": ["not stated", "unknown"]}),
        ("income", ["12,5", "13,25", "1.300,5"], {"numbers": {"decimal": [","], "thousands": ["."]}, **GONE}),
        ("size", ["1 200", "12 000", "900"], {"numbers": {"thousands": [" "]}, **GONE}),
        ("height", ["180 cm", "175 cm", "169"], {"numbers": {"units": {"cm": "1"}}, **GONE}),
        ("age", ["31", "42", "53", "27", "refused"], {"missing": ["refused"], "numbers": {}, **GONE}),
        ("plz", ["1067", "10115", "20095", "80331"], {"digits": 5, **GONE}),
        ("visit", ["2024-01-31", "31.01.2023", "2023-05-05"],
         {"dates": {"formats": ["%Y-%m-%d", "%d.%m.%Y"]}, **GONE}),
        # nothing is wrong with these
        ("sex", ["F", "M"], {}),
        ("age", ["31", "42", "53"], {}),
        ("visit", ["31.01.2024", "01.02.2024"], {}),
        ("ratio", ["1e5", "2.5e-3", "7"], {}),
        ("age band", ["20-29", "30-39", "80+"], {}),
        ("status", ["A11", "A12", "A13", "A14"], {}),
        ("code", ["0012", "0130", "1200"], {}),
        ("telephone", ["+1 555 123 4567", "+1 555 123 4568"], {}),
        ("income", ["<=50K", ">50K"], {}),
        ("zip", ["02139", "10001"], {}),
        ("income", ["- 50000."] * 9 + ["50000+."], {}),
        ("distance", ["100 km"] * 9 + ["120 km", "130 km", "more than 500 km"], {}),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_column(name: str, values: list[str], steps: dict[str, Any]) -> None:
    assert mess_of(name, values) == steps


def test_several_sorts_of_lists_get_one_separator() -> None:
    cells = [
        "cough; fever",
        "fever|pain",
        "pain",
        "cough",
        "cough; pain",
        "rash; fever",
        "rash|pain; cough",
        "rash",
    ]
    assert mess_of("symptoms", cells) == {"lists": {"separators": [";", "|"]}}


def test_what_could_be_exchanged_or_stands_for_nothing_is_told() -> None:
    """Dates of one order that the other would fit, days and answers that mean that nobody knows, made names."""
    days = ["2024-01-31", "02/17/2024", "02/03/2024", "02/02/2024"]
    found = find_mess(facts("visit", days * 10))
    assert found is not None
    assert found.notes == (
        "10 rows are read as %m/%d/%Y and could be %d/%m/%Y as well, which no row is for certain",
    )
    assert find_mess(facts("charges", ["$1,5", "$2,5", "$3", "n/a"] * 9)).steps["missing"] == ["n/a"]  # type: ignore[union-attr]


def test_sentinels_are_mentioned_and_made_names_listed(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    rows = [
        f"{1950 + i % 60}-0{1 + i % 9}-11,{'refused' if i % 9 == 0 else 'abc'[i % 3]},{i % 7},{i % 5}"
        for i in range(200)
    ]
    rows += ["1900-01-01,a,1,2"] * 5
    path.write_text("born,job,,job\n" + "\n".join(rows) + "\n", encoding="utf-8")
    text = mw.suggest_policy(path, tried=False).text
    assert "they are now called column3, job_2." in text
    assert "'1900-01-01' in born; 'refused' in job" in text.replace("\n# ", " ")


STAYS = [
    (f"{1940 + i % 50}-0{1 + i % 9}-1{i % 9}", f"2023-0{1 + i % 6}-05", f"2023-0{1 + i % 6}-{10 + i % 18}", "FM"[i % 2])
    for i in range(300)
]  # fmt: skip


def stays(tmp_path: Path, symptoms: list[str]) -> Path:
    """Stays with three dates, and lists of symptoms."""
    path = tmp_path / "stays.csv"
    rows = [(*row, symptoms[i % len(symptoms)]) for i, row in enumerate(STAYS)]
    lines = [",".join(row) for row in [("born on", "admitted", "left", "sex", "symptoms"), *rows]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_lengths_that_are_on_offer_can_be_published(tmp_path: Path) -> None:
    """The # before their lines is taken away, and one put before the dates, as the notes say."""
    found = mw.suggest_policy(stays(tmp_path, ["cough", "fever", "pain"]), tried=False)
    notes = {p.name: " ".join(p.notes) for p in found.profiles}
    for column, name, place in (("born on", "age", "its"), ("left", "days", "their")):
        assert (
            f"to publish {name} in {place} place, take away the # before its two lines (under"
            in notes[column]
        )
    assert "age" not in found.policy.columns
    text = re.sub(r"(?m)^  # (age|days): \{", r"  \1: {", found.text).replace("# prepare:", "prepare:")
    text = re.sub(r"(?m)^  (born on|admitted|left): ", r"  # \1: ", text)
    release = mw.anonymize(tmp_path / "stays.csv", yaml.safe_load(text))
    assert release.ok
    assert {"age", "days", "sex"} == set(release.policy.quasi_identifiers)


def test_a_text_that_means_missing_is_counted_once(tmp_path: Path) -> None:
    """`n/a` means missing in every column; beside a number `tbd` does, too. The policy counts what a release counts."""
    path = tmp_path / "charges.csv"
    charges = [f"${n},000" for n in range(1, 40)] * 5 + ["n/a"] * 7 + ["tbd"] * 5
    path.write_text(
        "sex,charges\n" + "".join(f'{"FM"[i % 2]},"{c}"\n' for i, c in enumerate(charges)), encoding="utf-8"
    )
    found = mw.suggest_policy(path, tried=False)
    assert found.policy.to_dict()["prepare"]["charges"]["missing"] == ["tbd"]
    assert "n/a" in found.policy.missing.tokens
    assert "a text that means missing: 5 rows, counted as missing" in found.text
    counted = {
        r.what: r.rows
        for r in mw.anonymize(
            path, {**found.policy.to_dict(), "require": [{"model": "k-anonymity", "k": 2}]}
        ).repairs
    }
    assert counted[words.MISSING] == 5


def test_lists_with_one_separator_are_told_of_a_sensitive_column(tmp_path: Path) -> None:
    cells = ["cough; fever", "cough", "fever; pain", "pain", "cough; pain", "rash", "rash; cough"]
    found = mw.suggest_policy(stays(tmp_path, cells), tried=False)
    [note] = next(p.notes for p in found.profiles if p.name == "symptoms")
    held = sum(";" in cells[i % len(cells)] for i in range(len(STAYS)))
    assert note.startswith(f"{held} cells hold several values; of a sensitive column write multivalued: ';'")
    assert not found.policy.prepare
