"""Samarati's search with and without the two necessary conditions of p-sensitive k-anonymity, on Adult.

The paper left the running time open [Truta, Vinay 2006]. Both searches run in turn in one process and must find the
same node; the figure is the ratio of their CPU times (without / with), the best of nine runs each. With the
conditions, class sizes are counted first, and sensitive values only where sizes and condition 2 do not settle the
node. Where condition 2 cannot rule anything out (there are never more than people/k classes) the two searches are
the same, and their ratio shows the noise. `--numpy` measures without the compiled kernel, once.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import maskwright
from maskwright.domain.classes import ValueCounts
from maskwright.domain.grouping import Grouping
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Task
from maskwright.domain.model import Context
from maskwright.domain.summary import Summary
from maskwright.kernels import compiled
from maskwright.methods._lattice.nodes import Nodes
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.methods.samarati import Samarati, lowest_nodes
from maskwright.models import MODELS

ADULT = Path(maskwright.__path__[0]) / "data" / "adult"
REPEATS = 9
SENSITIVE = [
    ("occupation",),
    ("race", "native-country"),
    ("occupation", "salary-class"),
    ("workclass", "race"),
]


def read_adult() -> dict[str, list[str]]:
    with (ADULT / "adult.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


def hierarchy(name: str) -> Hierarchy:
    with (ADULT / "hierarchies" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    levels = [(header[i], [row[i] for row in rows]) for i in range(1, len(header))]
    return Hierarchy.of(name, [row[0] for row in rows], levels)


def codes(column: list[str], values: tuple[str, ...]) -> np.ndarray:
    number = {value: i + 1 for i, value in enumerate(values)}
    return np.array([number[value] for value in column], dtype=np.int64)


def summarise(table: dict[str, list[str]], sensitive: tuple[str, ...]) -> Summary:
    """The frequency set of all columns but the sensitive ones."""
    attributes = [hierarchy(name) for name in table if name not in sensitive]
    rows = np.stack([codes(table[h.attribute], h.values) for h in attributes])
    tuples, inverse, count = np.unique(rows, axis=1, return_inverse=True, return_counts=True)
    count = count.astype(np.int64)
    counts = {}
    for name in sensitive:
        values = tuple(sorted(set(table[name])))
        column = codes(table[name], values)
        counts[name] = ValueCounts.collect(
            values, len(count), inverse.reshape(-1), column, np.ones_like(column)
        )
    return Summary(tuple(attributes), tuples.astype(np.int32), count, count, counts)


def task_of(summary: Summary, p: int, k: int) -> Task:
    domains = {name: counts.values for name, counts in summary.sensitive.items()}
    model = MODELS["p-sensitive-k-anonymity"](p=p, k=k)
    return Task(
        summary, [model], Context(n_people=summary.n_people, domains=domains), np.random.default_rng(0)
    )


def timed(searches: dict[bool, Callable[[], Any]], repeats: int) -> tuple[dict[bool, float], dict[bool, Any]]:
    """The least CPU seconds of each search, taking turns, and what it found."""
    times: dict[bool, list[float]] = {name: [] for name in searches}
    found = {}
    for _, (name, search) in product(range(repeats), searches.items()):
        started = time.process_time()
        found[name] = search()
        times[name].append(time.process_time() - started)
    return {name: min(seconds) for name, seconds in times.items()}, found


def condition_two(summary: Summary, p: int, k: int, suppression: str, repeats: int) -> None:
    """Both searches for a node that exists."""
    task = task_of(summary, p, k)

    def search(conditions: bool) -> Grouping:
        return Samarati(suppression=suppression, conditions=conditions).group(task)

    best, found = timed({True: lambda: search(True), False: lambda: search(False)}, repeats)
    assert found[True].levels == found[False].levels, "the conditions changed the answer"
    report, plain = found[True].search, found[False].search
    groups = "none" if report["most_groups"] is None else report["most_groups"]
    print(
        f"{p:>2} {k:>3} {suppression:>5} {report['nodes']:>6} {report['strategy']:>11} {groups:>7} "
        f"{plain['checked']:>8} {report['checked']:>6} {report['ruled_out_by_size']:>6} "
        f"{report['ruled_out_by_condition']:>6} {1000 * best[False]:>9.1f} {1000 * best[True]:>8.1f} "
        f"{best[False] / best[True]:>6.2f}"
    )


def condition_one(summary: Summary, p: int, repeats: int) -> None:
    """Finding out that there is no node, without the explanation for the user."""
    task, options = task_of(summary, p, p), OptimalLattice(suppression="0.02")
    best, found = timed(
        {
            True: lambda: Nodes(task, options).most_groups,
            False: lambda: lowest_nodes(Nodes(task, options, conditions=False)),
        },
        repeats,
    )
    assert found == {True: 0, False: []}
    print(
        f"{p:>2} {p:>3}  0.02  no node, because a column has fewer than {p} values (condition 1)"
        f"{1000 * best[False]:>14.1f} {1000 * best[True]:>8.1f} {best[False] / best[True]:>6.1f}"
    )


def main() -> None:
    plain = "--numpy" in sys.argv[1:]
    repeats = 1 if plain else REPEATS
    if plain:
        compiled.kernel_available = lambda: False
    table = read_adult()
    print(f"{'compiled kernel' if compiled.kernel_available() else 'numpy'}; CPU ms, best of {repeats}")
    print(
        "without the conditions: nodes checked; with them: checked, ruled out by class sizes, by condition 2"
    )
    for sensitive in SENSITIVE:
        summary = summarise(table, sensitive)
        print(f"\nsensitive: {', '.join(sensitive)} ({summary.n_tuples:,} distinct tuples)")
        print(
            " p   k  supp  nodes    strategy  groups  without   with  sizes  cond2   without     with  ratio"
        )
        fewest = min(len(counts.values) for counts in summary.sensitive.values())
        for p, suppression in product(sorted({p for p in (2, 3, 5) if p < fewest} | {fewest}), ("0", "0.02")):
            condition_two(summary, p, max(5, p), suppression, repeats)
        condition_one(summary, fewest + 1, repeats)


if __name__ == "__main__":
    main()
