"""Singling out on Adult: publish one half, count its boxes in the other, k = 5.

Run as `python -m experiments.singling_out`, with the bundled table (30,162 rows, nine quasi-identifiers).
"""

from __future__ import annotations

import csv
import random

import pyarrow as pa

import maskwright as mw
from experiments.fixed_labels import ADULT, bundled_policy

METHODS = ("optimal-lattice", "mondrian", "local-recoding")


def singled_out(method: str, seed: int) -> tuple[int, int, list[float]]:
    """Boxes that hold nobody of the other half, boxes, and the interval of their share."""
    with (ADULT / "adult.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    random.Random(seed).shuffle(rows)  # noqa: S311 - an experiment
    half, outside = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    columns = bundled_policy("policy.yaml")["columns"]
    settings = {"name": method} | ({} if method == "mondrian" else {"suppression": "2%"})
    made = {
        "version": 1,
        "columns": columns,
        "require": [{"model": "k-anonymity", "k": 5}],
        "method": settings,
    }
    release = mw.anonymize(pa.Table.from_pylist(half), made, seed=seed)
    found = mw.attack(release, mw.attacks.SinglingOut(control=outside))
    assert not isinstance(found, list)  # noqa: S101 - one attack
    m = found.measures
    return m["empty_boxes"], m["classes"], m["empty_share_interval"]


if __name__ == "__main__":
    print("method,seed,empty_boxes,boxes,low,high")
    for name in METHODS:
        for number in (1, 2, 3):
            empty, boxes, (low, high) = singled_out(name, number)
            print(name, number, empty, boxes, round(low, 4), round(high, 4), sep=",", flush=True)
