"""Composition on Adult: who is certain after several independent Anatomy releases of the same people.

Run as `python -m experiments.composed_releases TABLE FOLDER`, with UCI's Adult as a Parquet file (48,842 rows).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

import maskwright as mw
from experiments.common import write_csv
from experiments.learned_beliefs import COLUMNS
from maskwright.report.charts import Chart, Series


def composed_figures(path: str, l: int, releases: int) -> list[float]:  # noqa: E741 - the literature's
    """People; those whose own classes leave one value, and the mean belief in the truth by these; people believed with
    .99 by everybody's classes, and the mean by these; seconds of CPU of the attack."""
    table = duckdb.read_parquet(path)
    for column in ("workclass", "occupation", "native-country"):
        table = table.filter(duckdb.ColumnExpression(column) != duckdb.ConstantExpression("?"))
    columns = {c: {"role": "quasi-identifier", "hierarchy": h} for c, h in COLUMNS.items()}
    # whoever is in the table is known with row numbers: everybody is told apart
    numbered = table.project("*, row_number() over ()::varchar as who").arrow().read_all()
    policy = {
        "version": 1,
        "columns": {**columns, "who": {"role": "quasi-identifier", "hierarchy": "suppress"}, "occupation": "sensitive"},
        "require": [{"model": "distinct-l-diversity", "l": l}], "method": {"name": "anatomy", "l": l},
        "recoding": "bucketize",
    }  # fmt: skip
    made = [mw.anonymize(numbered, policy, seed=seed) for seed in range(1, releases + 1)]
    start = time.process_time()
    found = mw.attack(made, "intersection")
    took = time.process_time() - start
    assert not isinstance(found, list)  # noqa: S101 - one attack
    m, expected = found.measures, found.measures["expected_belief"]
    return [
        m["people"]["in_any"], m["certain_people"], round(expected["by the person's classes alone"], 3),
        m["almost_certain_people"], round(expected["by everybody's"], 3), round(took),
    ]  # fmt: skip


def composed_chart(rows: Sequence[Mapping[str, float]]) -> Chart:
    """Who is certain, and what is believed of the truth, against the number of releases, a line for each l."""
    lines = [
        Series(f"{name}, l = {ell:g}", [(r["releases"], r[figure]) for r in rows if r["l"] == ell])
        for ell in sorted({r["l"] for r in rows})
        for figure, name in (
            ("certain", "certain by own classes"),
            ("everybody", "mean belief by everybody's"),
        )
    ]
    title = "Independent Anatomy releases of the same people, put together"
    return Chart(title, "releases", "share of people, mean belief in the truth", lines, span=(0.0, 1.0))


def main(path: str, folder: Path) -> None:
    """Write composed-releases.csv and .svg."""
    rows = []
    for diversity in (3, 5):
        for number in (2, 3, 4):
            people, certain, own, almost, everybody, _ = composed_figures(path, diversity, number)
            shares = {"certain": round(certain / people, 3), "almost_certain": round(almost / people, 3)}
            rows.append(
                {"l": diversity, "releases": number, **shares, "own_classes": own, "everybody": everybody}
            )
            print(*rows[-1].values(), sep=",", flush=True)
    write_csv(folder / "composed-releases.csv", rows)
    (folder / "composed-releases.svg").write_text(composed_chart(rows).file(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
