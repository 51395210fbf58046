"""Downcoding on Adult, k = 2: cells that labels determine, with and without `labels: fixed`, and what that costs.

Run as `python -m experiments.fixed_labels FOLDER`, with the bundled table (30,162 rows, nine quasi-identifiers); it
leaves `downcoded-cells.csv` and `downcoded-cells.svg` in the folder.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import maskwright as mw
from experiments.common import write_csv
from maskwright.metrics.queries import Workload, query_errors
from maskwright.report.charts import Chart, Series

ADULT = Path(str(files("maskwright").joinpath("data", "adult")))
METHODS: dict[str, dict[str, str]] = {
    "local-recoding": {}, "local-recoding, labels: fixed": {"labels": "fixed"},
    "mondrian": {}, "mondrian, labels: fixed": {"labels": "fixed"},
    "greedy-grouping": {}, "symmetric-grouping": {}, "optimal-lattice": {"suppression": "2%"},
}  # fmt: skip

SHORT = {
    "local-recoding": "local", "local-recoding, labels: fixed": "local fixed", "mondrian": "cuts",
    "mondrian, labels: fixed": "cuts fixed", "greedy-grouping": "greedy", "symmetric-grouping": "halves",
    "optimal-lattice": "lattice",
}  # fmt: skip


def bundled_policy(name: str) -> dict[str, Any]:
    """A policy of the bundled table, as it is written, with the paths of its hierarchies."""
    written = mw.Policy.load(ADULT / name).to_dict()
    for column in written["columns"].values():
        if isinstance(column, dict) and "hierarchy" in column:
            column["hierarchy"] = {"file": str(ADULT / column["hierarchy"]["file"])}
    return written


def fixed_figures(k: int, name: str) -> dict[str, float | str]:
    """Generalised cells, those that are determined, the information loss, and the error of COUNT queries."""
    columns = {n: c for n, c in bundled_policy("policy.yaml")["columns"].items() if c != "insensitive"}
    policy = mw.Policy.load({
        "version": 1, "columns": columns, "require": [{"model": "k-anonymity", "k": k}],
        "method": {"name": name.partition(",")[0], **METHODS[name]},
    })  # fmt: skip
    release = mw.anonymize(ADULT / "adult.csv", policy, seed=1)
    found = next((b for b in release.beliefs if b.attack == "downcoding"), None)
    cells = found.measures if found is not None else {"determined_cells": 0}
    wide = sum(
        int(release.grouping.classes.rows[(labels.coverage > 1)[labels.of_group]].sum())
        for labels in release.grouping.labels
    )
    return {
        "method": name, "k": k, "generalised cells": wide, "determined cells": int(cells["determined_cells"]),
        "information loss": round(float(release.metrics["information-loss"]), 4),
        "query error": round(query_errors(release.grouping, Workload()).mean, 4),
    }  # fmt: skip


def fixed_chart(rows: Sequence[Mapping[str, Any]]) -> Chart:
    """The share of generalised cells that are determined, and the loss, method by method."""

    def share(row: Mapping[str, Any]) -> float:
        return float(row["determined cells"] / max(1, row["generalised cells"]))

    series = [
        Series(
            "generalised cells that are determined",
            [(i, share(r)) for i, r in enumerate(rows)],
            join=False,
        ),
        Series(
            "information loss", [(i, float(r["information loss"])) for i, r in enumerate(rows)], join=False
        ),
    ]
    names = [SHORT.get(str(r["method"]), "") for r in rows]
    return Chart(
        "What labels give away, with and without labels: fixed, and what is lost, Adult, k = 2", "method", "share",
        series, x_names=names, span=(0.0, None),
    )  # fmt: skip


def main(folder: Path) -> None:
    """Write the table and the picture."""
    rows = []
    for name in METHODS:
        rows.append(fixed_figures(2, name))
        print(*rows[-1].values(), sep=",", flush=True)
    write_csv(folder / "downcoded-cells.csv", rows)
    (folder / "downcoded-cells.svg").write_text(fixed_chart(rows).file(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
