"""The figures of docs/attacks/ that take minutes: pictures are those of their tables, and small parts are made anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from experiments import minimality_on_adult
from experiments.common import read_csv
from experiments.composed_releases import composed_chart
from experiments.defence_costs import sequence_figures
from experiments.fixed_labels import fixed_chart
from experiments.four_risks import FIGURES, METHODS, four_risks, four_risks_chart
from experiments.learned_beliefs import learned_chart
from maskwright.methods import METHODS as EVERY
from maskwright.models import MODELS
from maskwright.report.charts import Chart

FOLDER = Path(__file__).parents[2] / "docs" / "attacks"
Row = Mapping[str, Any]


def numbers(rows: Sequence[Row]) -> list[Row]:
    """What a table holds, with numbers as numbers."""
    return [{k: number(v) for k, v in row.items()} for row in rows]


def number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


@pytest.mark.parametrize(
    ("name", "chart"),
    [
        ("learned-beliefs", learned_chart), ("composed-releases", composed_chart),
        ("downcoded-cells", fixed_chart), ("four-risks", four_risks_chart),
    ],
)  # fmt: skip
def test_a_picture_is_that_of_its_table(name: str, chart: Callable[[Any], Chart]) -> None:
    rows = numbers(read_csv(FOLDER / f"{name}.csv"))
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == chart(rows).file()


# of Adult: certain by own classes, and the mean belief by these [the figures that the experiment reproduces]
COMPOSED = {
    (3, 2): (0.241, 0.559), (3, 3): (0.409, 0.671), (3, 4): (0.524, 0.742),
    (5, 2): (0.054, 0.365), (5, 3): (0.185, 0.506), (5, 4): (0.325, 0.614),
}  # fmt: skip


def test_composed_releases_are_within_sampling_error() -> None:
    rows = {(int(r["l"]), int(r["releases"])): r for r in read_csv(FOLDER / "composed-releases.csv")}
    assert set(rows) == set(COMPOSED)
    for key, row in rows.items():
        assert (float(row["certain"]), float(row["own_classes"])) == pytest.approx(COMPOSED[key], abs=0.005)


def test_four_risks_are_of_every_method_or_say_why() -> None:
    rows = {r["method"]: r for r in read_csv(FOLDER / "four-risks.csv")}
    assert list(rows) == list(METHODS)
    assert {name.partition(",")[0] for name in rows} == set(EVERY)
    for row in rows.values():
        assert all(row[figure] for figure in (*FIGURES, "kept")) or row["why not"]


def test_minimality_on_adult_is_of_every_method_and_model_or_says_why() -> None:
    rows = {(r["method"], r["model"]): r for r in read_csv(FOLDER / minimality_on_adult.NAME)}
    asked = minimality_on_adult.METHODS, minimality_on_adult.MODELS
    assert list(rows) == [(method, model) for method in asked[0] for model in asked[1]]
    assert {name.partition(",")[0] for name in asked[0]} == set(EVERY)
    no_values = {name for name in MODELS if MODELS[name].about == "quasi-identifiers"}
    assert set(asked[1]) == set(MODELS) - no_values | {"k-anonymity"}
    for pair, row in rows.items():
        if not row["label"]:
            assert row["why"], pair
            continue
        low, high = float(row["low"]), float(row["high"])
        assert 0 <= low <= high <= 1, pair
        assert float(row["seconds"]) <= 60, pair
        assert high < 1 or low == 1 or row["why"], pair
        assert row["label"] != "exact" or low == high, pair


@pytest.mark.long
def test_a_row_of_minimality_on_adult_is_made_anew(tmp_path: Path) -> None:
    again = minimality_on_adult.attacked_pair(
        "anatomy", "simple-l-diversity", minimality_on_adult.prepared(tmp_path)
    )
    rows = read_csv(FOLDER / minimality_on_adult.NAME)
    row = next(r for r in rows if (r["method"], r["model"]) == ("anatomy", "simple-l-diversity"))
    for figure in ("use", "label", "shown", "low", "high"):
        assert str(again[figure]) == row[figure], figure


@pytest.mark.long
def test_a_row_of_the_four_risks_is_made_anew() -> None:
    row = next(r for r in read_csv(FOLDER / "four-risks.csv") if r["method"] == "mondrian")
    again = four_risks("mondrian")
    for figure in (*FIGURES, "kept", "query error"):
        assert float(again[figure]) == pytest.approx(float(row[figure]), abs=0.01), figure


def test_a_sequence_stays_at_one_over_l() -> None:
    assert sequence_figures(True, 300)["risk"] == pytest.approx(1 / 3, abs=1e-9)
    assert sequence_figures(False, 300)["risk"] > 0.5
