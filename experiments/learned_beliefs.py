"""Learned beliefs on Adult: what whoever learns from a release believes of the truth, against l, for several methods.

Run as `python -m experiments.learned_beliefs TABLE FOLDER [L ...]`, with UCI's Adult as a Parquet file (48,842 rows).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb

import maskwright as mw
from experiments.common import write_csv
from maskwright.report.charts import Chart, Series

COLUMNS = {
    "age": {"intervals": [5, 10, 20]}, "workclass": "suppress", "education": "suppress", "marital-status": "suppress",
    "relationship": "suppress", "race": "suppress", "sex": "suppress", "hours-per-week": {"intervals": [10, 20]},
    "native-country": "suppress", "income": "suppress",
}  # fmt: skip
METHODS = (
    "anatomy", "mondrian", "greedy-grouping", "symmetric-grouping", "optimal-lattice", "local-recoding",
)  # fmt: skip


def learned_figures(path: str, l: int, method: str) -> tuple[float, float, float, float]:  # noqa: E741 - the literature's
    """Mean belief in the true occupation: random worlds, learned, the control; and seconds of CPU of the attack."""
    table = duckdb.read_parquet(path)
    for column in ("workclass", "occupation", "native-country"):
        table = table.filter(duckdb.ColumnExpression(column) != duckdb.ConstantExpression("?"))
    columns = {c: {"role": "quasi-identifier", "hierarchy": h} for c, h in COLUMNS.items()}
    policy = {
        "version": 1, "columns": {**columns, "occupation": "sensitive"},
        "require": [{"model": "distinct-l-diversity", "l": l}],
        "method": {"name": method, "l": l} if method == "anatomy" else {"name": method},
        "recoding": "bucketize",
    }  # fmt: skip
    release = mw.anonymize(table.arrow().read_all(), policy, seed=1)
    start = time.process_time()
    found = mw.attack(release, "learned", adversary="learns")
    mean = found.measures["attributes"]["occupation"]["mean_belief_in_the_truth"]
    took = time.process_time() - start
    return mean["random worlds"], mean["learned"], mean["people who are not in it"], took


def learned_chart(rows: list[dict[str, float | str]]) -> Chart:
    """Learned belief against l, one line for each method."""
    names = list(dict.fromkeys(str(r["method"]) for r in rows))
    lines = [
        Series(name, [(float(r["l"]), float(r["learned"])) for r in rows if r["method"] == name])
        for name in names
    ]
    title = "What whoever learns from a release believes of the true occupation, against l"
    return Chart(title, "l", "mean belief in the truth", lines, span=(0.0, 1.0))


def main(table: str, folder: Path, ells: Sequence[int]) -> None:
    """Write learned-beliefs.csv and .svg, line by line."""
    rows: list[dict[str, float | str]] = []
    for name in METHODS:
        for diversity in ells:
            even, learned, outside, seconds = learned_figures(table, diversity, name)
            found = {
                "random worlds": round(even, 3),
                "learned": round(learned, 3),
                "outside": round(outside, 3),
            }
            rows.append({"method": name, "l": diversity, **found, "seconds": round(seconds, 1)})
            print(*rows[-1].values(), sep=",", flush=True)
            write_csv(folder / "learned-beliefs.csv", rows)
            (folder / "learned-beliefs.svg").write_text(learned_chart(rows).file(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [int(text) for text in sys.argv[3:]] or [2, 3, 4, 5, 6])
