"""The example of several rows per person on each page of a model: measured by the product, and told as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.errors import PolicyError
from maskwright.models import MODELS

PAGES = Path(__file__).parents[2] / "docs" / "models"
VALUES = ["flu", "flu", "HIV", "flu", "asthma", "flu", "HIV", "asthma"]
TABLE = {
    "id": ["Ann", "Ann", "Ann", "Bob", "Eve", "Dan", "Joe", "Kim"],
    "q": ["x"] * 5 + ["y"] * 3,
    "s": VALUES,
    "cost": [{"flu": "10", "asthma": "20", "HIV": "30"}[v] for v in VALUES],
}
FILE, SIZE = {"file": "people.csv"}, {"size": 1000}
# name: parameters, what the class of Ann, Bob and Eve measures, and the population
EXAMPLES: dict[str, tuple[dict[str, Any], str, Any]] = {
    "k-anonymity": ({"k": 1}, "3", None),
    "simple-l-diversity": ({"l": 1}, "2/3", None),
    "distinct-l-diversity": ({"l": 1}, "3", None),
    "entropy-l-diversity": ({"l": 1}, "2.83", None),
    "recursive-cl-diversity": ({"c": 9, "l": 2}, "1", None),
    "alpha-k-anonymity": ({"alpha": 1, "k": 1}, "2/3", None),
    "p-sensitive-k-anonymity": ({"p": 1, "k": 1}, "3", None),
    "t-closeness": ({"t": 1}, "1/14", None),
    "nt-closeness": ({"n": 2, "t": 1}, "1/14", None),
    "delta-disclosure": ({"delta": 9}, "0.154", None),
    "beta-likeness": ({"beta": 9}, "1/6", None),
    "ke-anonymity": ({"k": 1, "e": 1}, "20", None),
    "belief": ({"max": 1, "sets": [["HIV"]], "adversary": "neighbour"}, "3/5", None),
    "average-risk": ({"max": 1}, "1/3", None),
    "highest-risk": ({"max": 1}, "1/3", None),
    "k-map": ({"k": 1}, "9", FILE),
    "delta-presence": ({"delta_min": 0, "delta_max": 1}, "1/3", FILE),
    "individual-risk": ({"max": 1}, "0.00298", SIZE),
    "population-uniqueness": ({"max": 1}, "0.000592", SIZE),
}
REFUSED: dict[str, dict[str, Any]] = {
    "ck-safety": {"c": "1/2", "k": 1},
    "m-confidentiality": {"m": 2},
    "personalised-privacy": {"p": "1/2", "guarding": "mind"},
}
HEADING = "## Several rows per person\n"


def section_of(model: str) -> str:
    page = (PAGES / f"{model}.md").read_text(encoding="utf-8")
    assert page.count(HEADING) == 1, f"{model}: the page must say what it means with several rows per person"
    return page.split(HEADING)[1].split("\n## ")[0]


def policy_with(model: str, parameters: dict[str, Any], folder: Path, population: Any) -> dict[str, Any]:
    value = "cost" if model == "ke-anonymity" else "s"
    asked: dict[str, Any] = {
        "unit": "id",
        "columns": {"id": "identifier", "q": "quasi-identifier", value: "sensitive"},
        "method": "optimal-lattice",
        "require": [{"model": "k-anonymity", "k": 1}],
    }
    if model != "k-anonymity":
        asked["require"].append(
            {"model": model, **parameters, **({} if model == "belief" else {"use": "gate"})}
        )
    if population is FILE:
        (folder / "people.csv").write_text("q\n" + "x\n" * 9 + "y\n" * 6)
        population = {"file": str(folder / "people.csv")}
    return asked | ({"population": population} if population else {})


@pytest.mark.parametrize("model", EXAMPLES)
def test_the_example_of_a_page_is_what_is_measured(model: str, tmp_path: Path) -> None:
    parameters, text, population = EXAMPLES[model]
    release = mw.anonymize(pa.table(TABLE), policy_with(model, parameters, tmp_path, population))
    value = next(v for v in release.verdicts if v.model == model).values[0]
    shown = f"{float(value):.3g}" if isinstance(value, float) else str(value)
    assert shown == text
    assert f"**{text}**" in section_of(model)


@pytest.mark.parametrize("model", REFUSED)
def test_what_is_refused_says_what_to_require_instead(model: str, tmp_path: Path) -> None:
    """And that works."""
    with pytest.raises(PolicyError, match=r"people have several rows .*require \{model: belief") as refused:
        mw.anonymize(pa.table(TABLE), policy_with(model, REFUSED[model], tmp_path, None))
    assert "belief" in section_of(model)
    instead = {"max": "1/2"} | ({"adversary": "insider", "facts": 1} if model == "ck-safety" else {})
    assert all(str(key) in str(refused.value) for key in instead)
    mw.anonymize(pa.table(TABLE), policy_with("belief", instead | {"max": 1}, tmp_path, None))


@pytest.mark.parametrize("model", [*REFUSED, "k-anonymity"])
def test_one_row_of_each_person_is_a_table_of_people(model: str, tmp_path: Path) -> None:
    """What is refused otherwise is measured then, as in the table of the rows that are kept."""
    wide: dict[str, dict[str, Any]] = {
        "ck-safety": {"c": 1, "k": 0},
        "m-confidentiality": {"m": 1},
        "personalised-privacy": {"p": 1, "guarding": "mind"},
    }
    parameters = wide.get(model, {"k": 2, "on": [["q"]]})
    asked = policy_with(model, parameters, tmp_path, None)
    if model == "k-anonymity":
        asked["require"] = [{"model": model, **parameters}]
    asked["columns"]["row"] = {"role": "insensitive", "near_unique": "allow"}
    whole = pa.table(TABLE | {"row": [f"r{i}" for i in range(8)], "mind": VALUES})
    with pytest.raises(PolicyError, match=r"or keep one row of each person: unit: \{column: id, rows: 1\}"):
        mw.anonymize(whole, asked)
    release = mw.anonymize(whole, asked | {"unit": {"column": "id", "rows": 1}})
    kept = [int(row[1:]) for row in release.table["row"].to_pylist()]
    assert len(kept) == 6  # people
    alone = mw.anonymize(whole.take(kept), asked | {"unit": "none"})
    for mine, theirs in zip(release.verdicts, alone.verdicts, strict=True):
        assert (mine.model, mine.worst, sorted(mine.values)) == (
            theirs.model,
            theirs.worst,
            sorted(theirs.values),
        )


def test_every_model_has_an_example() -> None:
    assert {*EXAMPLES, *REFUSED} == set(MODELS)
