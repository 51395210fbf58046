"""What each defence brings and costs: a risk without and with it, and the error of COUNT queries without and with it.

Run as `python -m experiments.defence_costs FOLDER` after `four_risks` and `fixed_labels`, whose tables are read there;
it adds a sequence of two releases (3,000 people of Adult, of whom a tenth leave and a tenth come) and leaves
`defence-costs.csv`.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

import maskwright as mw
from experiments.common import read_csv, write_csv
from experiments.fixed_labels import ADULT
from maskwright.domain.beliefs import Beliefs
from maskwright.metrics.queries import Workload, query_errors

QUASI = ("sex", "age", "race", "marital-status", "education")
PEOPLE = 3_000
FIGURES = ("risk", "query error")


def two_years(people: int) -> tuple[pa.Table, pa.Table]:
    """Some of Adult with a number for each person: nine tenths of them, and another nine tenths."""
    table = duckdb.read_csv(str(ADULT / "adult.csv"), sep=",")
    numbered = table.project("*, row_number() over ()::varchar as who, who as person")
    everybody = numbered.project(
        ", ".join(f'"{c}"' for c in (*QUASI, "occupation", "who", "person"))
    ).to_arrow_table()
    rows = random.Random(1).sample(range(everybody.num_rows), people)  # noqa: S311 - an experiment
    tenth = len(rows) // 10
    return everybody.take(rows[tenth:]), everybody.take(rows[:-tenth])


def sequence_figures(follow: bool, people: int = PEOPLE) -> dict[str, float]:
    """The mean belief in the truth of somebody who has both releases, and knows everybody by number; the error of
    queries that the second answers, and its counterfeits."""
    known = {c: {"role": "quasi-identifier", "hierarchy": "suppress"} for c in (*QUASI, "who")}
    policy = {
        "version": 1, "columns": {**known, "person": "identifier", "occupation": "sensitive"},
        "require": [{"model": "simple-l-diversity", "l": 3, "use": "gate"}],
        "method": {"name": "anatomy", "l": 3, "person": "person"}, "recoding": "bucketize",
    }  # fmt: skip
    first, second = two_years(people)
    with TemporaryDirectory() as folder:
        one, two = Path(folder) / "one", Path(folder) / "two"
        mw.anonymize(first, policy, one, seed=1)
        release = mw.anonymize(second, policy, two, seed=2, after=one if follow else None)
        found = mw.attack([one, two], "intersection")
        written = json.loads((two / "public" / "manifest.json").read_text(encoding="utf-8"))
    assert isinstance(found, Beliefs)  # noqa: S101 - one attack
    return {
        "risk": found.measures["expected_belief"]["by everybody's"],
        "query error": query_errors(release.grouping, Workload(), exact=True).mean,
        "counterfeits": written.get("counterfeits", 0),
    }


def defence(name: str, against: str, without: Any, with_it: Any, more: str = "") -> dict[str, Any]:
    """A line of the table."""
    row: dict[str, Any] = {"defence": name, "against": against}
    for figure in FIGURES:
        row |= {f"{figure} without": round(without[figure], 3), f"{figure} with": round(with_it[figure], 3)}
    return row | {"also": more}


def main(folder: Path) -> None:
    """Write the table."""
    cells = {r["method"]: r for r in read_csv(folder / "downcoded-cells.csv")}
    risks = {r["method"]: r for r in read_csv(folder / "four-risks.csv")}
    rows = []
    for name in ("mondrian", "local-recoding"):
        pair = [cells[name], cells[f"{name}, labels: fixed"]]
        shares = [
            {
                "risk": int(r["determined cells"]) / int(r["generalised cells"]),
                "query error": float(r["query error"]),
            }
            for r in pair
        ]
        loss = " to ".join(f"{float(r['information loss']):.3f}" for r in pair)
        rows.append(
            defence(
                f"{name}, labels: fixed",
                "downcoding (determined cells)",
                shares[0],
                shares[1],
                f"loss from {loss}",
            )
        )
    for name in ("mondrian", "symmetric-grouping"):
        both = [{"risk": float(risks[m]["learned"]), "query error": float(risks[m]["query error"])}
                for m in ("anatomy", name)]  # fmt: skip
        rows.append(defence(f"{name} in place of anatomy", "learned", both[0], both[1]))
    apart, following = sequence_figures(False), sequence_figures(True)
    more = f"{following['counterfeits']:,} counterfeits beside {PEOPLE * 9 // 10:,} people"
    rows.append(
        defence("--after in place of two independent releases", "intersection", apart, following, more)
    )
    for row in rows:
        print(*row.values(), sep=",", flush=True)
    write_csv(folder / "defence-costs.csv", rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
