"""Learned beliefs on Adult: what whoever learns from a release believes of the truth, against l, for several methods.

Run as `python -m experiments.learned_beliefs TABLE`, with UCI's Adult as a Parquet file (48,842 rows).
"""

from __future__ import annotations

import sys
import time

import duckdb

import maskwright as mw

COLUMNS = {
    "age": {"intervals": [5, 10, 20]}, "workclass": "suppress", "education": "suppress", "marital-status": "suppress",
    "relationship": "suppress", "race": "suppress", "sex": "suppress", "hours-per-week": {"intervals": [10, 20]},
    "native-country": "suppress", "income": "suppress",
}  # fmt: skip
METHODS = ("anatomy", "mondrian")


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


if __name__ == "__main__":
    print("| method | l | random worlds | learned | not in the release | seconds of CPU |")
    print("| --- | --- | --- | --- | --- | --- |")
    for method in METHODS:
        for diversity in (2, 3, 4, 5, 6):
            even, learned, outside, seconds = learned_figures(sys.argv[1], diversity, method)
            print(f"| {method} | {diversity} | {even:.3f} | {learned:.3f} | {outside:.3f} | {seconds:.1f} |")
