"""Crossed cuts of Mondrian on Adult: how often everybody ends in one class, and what is lost, over many seeds.

    python benchmarks/bench_crossed.py        100 seeds of each policy (ten where nothing is dropped at random)
    python benchmarks/bench_crossed.py 10     ten

The bundled Adult table with occupation as the secret: the policies of docs/compare.md (five quasi-identifiers) and some
with all eight. `groups` are those that were made, `classes` what a reader can tell apart: groups with the same labels
are one class. Targets: crossed cuts never end in one class, and never lose more than `widest` with the same seed.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bench_grouping import loss
from benchmarks.targets import Targets
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Task
from maskwright.domain.model import Model
from maskwright.methods.mondrian import Mondrian
from maskwright.models import MODELS
from maskwright.pipeline.job import Job
from maskwright.pipeline.session import prepared_run
from maskwright.policy.policy import Policy
from tests.support import ADULT, context_of

TARGETS = Targets()
FIVE = ("sex", "age", "race", "marital-status", "education")
EIGHT = (*FIVE, "workclass", "native-country", "salary-class")
WAYS = {
    "widest": Mondrian(dimensions="widest"),
    "crossed": Mondrian(dimensions="crossed"),
    "relaxed": Mondrian(cut="relaxed"),
    "fallback": Mondrian(cut="relaxed", dimensions="fallback"),
}
Policies = list[tuple[tuple[str, ...], int, str, dict[str, Any]]]
POLICIES: Policies = [(FIVE, k, "simple-l-diversity", {"l": ell}) for ell in (2, 4) for k in (5, 20, 100)]
POLICIES += [(FIVE, 5, "simple-l-diversity", {"l": ell}) for ell in (3, 5, "11/2")]
POLICIES += [
    (EIGHT, 5, name, asked)
    for name, asked in (
        ("simple-l-diversity", {"l": 2}), ("simple-l-diversity", {"l": 3}), ("simple-l-diversity", {"l": 4}),
        ("simple-l-diversity", {"l": 5}), ("simple-l-diversity", {"l": "11/2"}),
        ("entropy-l-diversity", {"l": 4}), ("t-closeness", {"t": "1/3"}),
        ("t-closeness", {"t": "1/5"}),
    )
]  # fmt: skip


def task_of(columns: tuple[str, ...]) -> Task:
    """Adult with these quasi-identifiers, summarised once."""
    made: dict[str, Any] = {
        name: {"role": "quasi-identifier", "hierarchy": {"file": str(ADULT / "hierarchies" / f"{name}.csv")}}
        for name in columns
    }
    policy = {
        "version": 1,
        "columns": made | {"occupation": "sensitive"},
        "method": "mondrian",
        "require": [{"model": "k-anonymity", "k": 2}],
    }
    with prepared_run(Job(ADULT / "adult.csv", Policy.load(policy))) as ready:
        return ready.task


def classes_of(grouping: Grouping) -> int:
    """How many different labels the groups have."""
    codes = np.stack([labels.of_group for labels in grouping.labels])
    return int(np.unique(codes, axis=1).shape[1])


def measure(task: Task, columns: int, k: int, model: Model, seeds: int) -> None:
    asked = " ".join(f"{k}={v}" for k, v in model.parameters().items() if k in ("l", "t"))
    what = f"{columns} columns, k={k}, {model.name} {asked}"
    task = replace(task, search=[MODELS["k-anonymity"](k=k), model], context=context_of(task.summary))
    found: dict[str, list[tuple[int, int, float]]] = {}
    for name, method in WAYS.items():
        runs = seeds if method.cut == "balanced" else min(seeds, 10)
        made = [method.group(replace(task, rng=np.random.default_rng(seed))) for seed in range(runs)]
        found[name] = [(g.classes.n, classes_of(g), loss(g)) for g in made]
        groups, classes, losses = zip(*found[name], strict=True)
        print(
            f"{what:44}{name:10}{classes.count(1):5}{min(classes):8}{fmean(classes):9.1f}{fmean(groups):9.1f}"
            f"{fmean(losses):9.4f}{made[0].dropped_rows:9}",
            flush=True,
        )
    TARGETS.met(f"{what}: runs that end in one class", sum(c == 1 for _, c, _ in found["crossed"]), 0, "runs")
    pairs = zip(found["crossed"], found["widest"], strict=True)
    worse = sum(mine[2] > theirs[2] + 1e-12 for mine, theirs in pairs)
    TARGETS.met(f"{what}: runs that lose more than widest", worse, 0, "runs")


def main() -> int:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(
        f"{'policy':66}{'cuts':10}{'one':>6}{'fewest':>7}{'groups':>9}{'loss':>9}{'alike':>8}{'dropped':>8}"
    )
    tasks = {columns: task_of(columns) for columns in (FIVE, EIGHT)}
    for columns, k, name, asked in POLICIES:
        measure(tasks[columns], len(columns), k, MODELS[name](attribute="occupation", **asked), seeds)
    return TARGETS.end()


if __name__ == "__main__":
    sys.exit(main())
