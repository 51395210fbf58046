"""Methods that partition rows: CPU seconds and memory of the grouping step on synthetic tables, and loss on Adult.

    python benchmarks/bench_grouping.py                 Mondrian on 1 M rows, the others on 10 M; then Adult
    python benchmarks/bench_grouping.py 100000 1000000  the same with other numbers of rows

Eight independent quasi-identifiers (the worst case: almost every row is a tuple of its own) and one sensitive
attribute of twenty values. Limits: Mondrian 1 M rows 2 s; greedy, symmetric and Anatomy 10 M rows 10 s;
alpha-k-local on Adult 2 s. Memory is the peak of the process during the grouping besides the summary, per row
(Linux; elsewhere what numpy holds, without the kernels' own tables). Where pandas and anonypy can be imported,
anonypy's Mondrian is timed on Adult in the same run.
"""

from __future__ import annotations

import csv
import ctypes
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.targets import Targets
from maskwright.domain.classes import ValueCounts
from maskwright.domain.grouping import Grouping
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Method, Task
from maskwright.domain.model import Model
from maskwright.domain.summary import Joint, Summary
from maskwright.methods.alpha_k_local import AlphaKLocal
from maskwright.methods.anatomy import Anatomy
from maskwright.methods.greedy_grouping import GreedyGrouping
from maskwright.methods.mondrian import Mondrian
from maskwright.methods.symmetric_grouping import SymmetricGrouping
from maskwright.models import MODELS
from maskwright.pipeline.job import Job
from maskwright.pipeline.session import prepared_run
from maskwright.policy.policy import Policy
from tests.support import ADULT, adult, context_of

TARGETS = Targets()
SIZES = (90, 50, 20, 16, 8, 7, 5, 2)
VALUES = 20


def attribute(name: str, size: int) -> Hierarchy:
    """Numbers with two levels of intervals for the larger ones, unordered values with one level for the others."""
    values = [str(v) for v in range(size)]
    steps = [s for s in (5, 20) if s * 2 < size]
    levels = [(f"by {s}", [f"{v // s * s}-{v // s * s + s - 1}" for v in range(size)]) for s in steps]
    return Hierarchy.of(name, values, levels, ordered=size > 16)


def synthetic(n: int, seed: int = 0) -> Summary:
    rng = np.random.default_rng(seed)
    columns = [np.minimum(rng.geometric(min(0.6, 3 / s), n), s).astype(np.int64) for s in SIZES]
    value = np.minimum(rng.geometric(0.15, n), VALUES).astype(np.int64)
    key = np.zeros(n, dtype=np.int64)
    for size, column in zip((*SIZES, VALUES), (*columns, value), strict=True):
        key = key * (size + 1) + column
    key.sort()
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    cells, rows = key[first], np.diff(np.append(first, n))
    owner = np.cumsum(np.concatenate([[False], np.diff(cells // (VALUES + 1)) != 0]))
    tuples = cells[np.concatenate([[True], np.diff(owner) > 0])] // (VALUES + 1)
    codes = np.empty((len(SIZES), len(tuples)), dtype=np.int32)
    for a in reversed(range(len(SIZES))):
        codes[a], tuples = tuples % (SIZES[a] + 1), tuples // (SIZES[a] + 1)
    values = (cells % (VALUES + 1)).astype(np.int32)
    domain = tuple(f"v{i:02d}" for i in range(VALUES))
    total = np.zeros(codes.shape[1], dtype=np.int64)
    np.add.at(total, owner, rows)
    counts = ValueCounts.collect(domain, len(total), owner, values.astype(np.int64), rows)
    attributes = tuple(attribute(f"q{a}", size) for a, size in enumerate(SIZES))
    return Summary(attributes, codes, total, total, {"s": counts}, joint=Joint(owner, values[None, :], rows))


def task_of(summary: Summary, models: list[Model], seed: int = 0) -> Task:
    return Task(summary, models, context_of(summary), np.random.default_rng(seed))


def loss(grouping: Grouping) -> float:
    """Information loss with equal weights, as a float; a dropped row costs 1."""
    total = 0.0
    for h, labels in zip(grouping.summary.attributes, grouping.labels, strict=True):
        covered = np.maximum(0, labels.coverage[labels.of_group] - 1) * grouping.classes.rows
        total += float(covered.sum()) / max(1, h.base - 1) / len(grouping.labels)
    return (total + grouping.dropped_rows) / grouping.summary.n_rows


def measure(summary: Summary, method: Method, models: list[Model], limit: float | None) -> None:
    task, begin = task_of(summary, models), time.process_time()
    grouping = method.group(task)
    spent = time.process_time() - begin
    asked = ", ".join(f"{m.name} {m.parameters()}" for m in models)
    what = f"{method.name} {method.options()} {asked}, {summary.n_rows} rows"
    verdict = TARGETS.met(what, spent, limit)
    print(
        f"{method.name:20}{method.options()!s:66}{asked[:32]:34}{summary.n_rows:>10}{grouping.classes.n:>9}"
        f"{loss(grouping):8.4f}{spent:8.2f} s   {verdict}",
        flush=True,
    )


def memory(summary: Summary, method: Method, models: list[Model]) -> None:
    task = task_of(summary, models)
    most = peak(lambda: method.group(task))
    print(
        f"{method.name:20}{method.options()!s:66}{summary.n_rows:>10}{most / summary.n_rows:6.0f} bytes per row",
        flush=True,
    )


def peak(work: Callable[[], Any]) -> int:
    """The most bytes that the process holds during the work, besides what it holds before."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if reset.exists():
        ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back to the system
        reset.write_text("5")  # the peak is forgotten

        def held(name: str) -> int:
            line = next(x for x in status.read_text().splitlines() if x.startswith(name))
            return int(line.split()[1]) * 1024

        before = held("VmRSS")
        kept = work()
        after = held("VmHWM")
        del kept
        return after - before
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def against_anonypy(k: int = 5) -> None:
    """Adult, eight quasi-identifiers, age as a number: both from the same data frame in memory to groups.

    Ours opens the engine, reads the frame and summarises it, as any run does. Imports are not counted, nothing is
    written.
    """
    try:
        import anonypy
        import pandas
    except ImportError:
        print("anonypy is not installed: not compared")
        return
    names = [h.attribute for h in adult("occupation").attributes]
    with (ADULT / "adult.csv").open(newline="", encoding="utf-8") as file:
        frame = pandas.DataFrame(list(csv.DictReader(file)))
    frame["age"] = frame["age"].astype(int)
    for name in names:
        if name != "age":
            frame[name] = frame[name].astype("category")
    begin = time.process_time()
    anonypy.Preserver(frame, names, "occupation").anonymize_k_anonymity(k=k)
    theirs = time.process_time() - begin
    columns = dict.fromkeys(names, "quasi-identifier") | {"occupation": "sensitive"}
    policy = Policy.load(
        {
            "version": 1,
            "columns": columns,
            "method": "mondrian",
            "require": [{"model": "k-anonymity", "k": k}],
        }
    )
    for _ in range(2):  # the first run imports what it needs
        begin = time.process_time()
        with prepared_run(Job(frame, policy)) as ready:
            Mondrian().group(ready.task)
            ours = time.process_time() - begin
    print(
        f"Adult, 8 quasi-identifiers, k = {k}: anonypy {theirs:.1f} s, ours {ours:.3f} s: "
        f"{theirs / ours:.0f} times"
    )


def joint_of(summary: Summary, sensitive: str) -> tuple[Any, Any, Any]:
    """Tuples, values and rows of the cells of a table with one sensitive attribute."""
    counts = summary.sensitive[sensitive]
    return counts.owner.astype(np.int64), counts.codes[None, :].astype(np.int32), counts.counts


def sorting(rows: int) -> float:
    """What no method that sorts can avoid."""
    keys = np.random.default_rng(0).integers(0, 2**63, rows)
    begin = time.process_time()
    keys.sort()
    return time.process_time() - begin


def big(rows: int, methods: list[tuple[Method, list[Model], float | None]]) -> None:
    summary = synthetic(rows)
    print(
        f"{rows} rows, {summary.n_tuples} tuples; numpy sorts as many random 64-bit keys in {sorting(rows):.2f} s"
    )
    for method, models, limit in methods:
        measure(summary, method, models, limit)


def on_adult() -> None:
    """Adult, nine quasi-identifiers, k-anonymity; then eight with occupation sensitive."""
    plain = adult()
    plain = replace(
        plain, joint=Joint(np.arange(plain.n_tuples), np.zeros((0, plain.n_tuples), np.int32), plain.rows)
    )
    for k in (2, 5, 10, 50):
        for options in ({}, {"choose": "range"}, {"ties": "random"}, {"choose": "range", "ties": "random"}):
            measure(plain, Mondrian(cut="relaxed", **options), [MODELS["k-anonymity"](k=k)], None)
    table = adult("occupation")
    table = replace(table, joint=Joint(*joint_of(table, "occupation")))
    diverse: list[tuple[str, dict[str, Any]]] = [
        ("simple-l-diversity", {"l": 3}), ("entropy-l-diversity", {"l": 4}), ("t-closeness", {"t": "1/3"})
    ]  # fmt: skip
    for name, parameters in diverse:
        models = [MODELS[name](attribute="occupation", **parameters)]
        for method in (Mondrian(), Mondrian(splits="halves"), Mondrian(cut="relaxed"),
                       Mondrian(cut="relaxed", dimensions="fallback"), GreedyGrouping(), SymmetricGrouping(),
                       GreedyGrouping(order="hilbert"), SymmetricGrouping(order="hilbert")):  # fmt: skip
            measure(table, method, models, None)
    measure(table, Anatomy(l=3), [], None)
    measure(table, Anatomy(l=3, block=7000), [], None)
    half = MODELS["alpha-k-anonymity"](alpha="1/2", k=2, attribute="occupation")
    few = ["Tech-support", "Handlers-cleaners"]
    tenth = MODELS["alpha-k-anonymity"](alpha="1/10", k=10, attribute="occupation", values=few)
    for model in (half, tenth):
        measure(table, AlphaKLocal(), [model], 2.0)


def main() -> int:
    few, many = (int(x) for x in sys.argv[1:3]) if len(sys.argv) > 2 else (1_000_000, 10_000_000)
    k10 = [MODELS["k-anonymity"](k=10)]
    simple = [MODELS["simple-l-diversity"](l=3, attribute="s")]
    entropy = [MODELS["entropy-l-diversity"](l=3, attribute="s")]
    closeness = [MODELS["t-closeness"](t="1/2", attribute="s")]
    big(few, [(Mondrian(cut=cut), models, 2.0) for models in (k10, simple) for cut in ("balanced", "relaxed", "strict")]
        + [(Mondrian(cut="relaxed", dimensions="fallback"), simple, None), (Mondrian(), entropy, 2.0)])  # fmt: skip
    big(many, [(method, models, 10.0) for models in (simple, entropy, closeness)
               for method in (GreedyGrouping(), SymmetricGrouping())]
        + [(GreedyGrouping(order="hilbert"), simple, 10.0), (SymmetricGrouping(order="hilbert"), simple, 10.0),
           (Anatomy(l=3), [], 10.0), (Anatomy(l=3, block=1000), [], 10.0)])  # fmt: skip
    for rows in (few, 4 * few):
        table = synthetic(rows)
        for method, models in ((Mondrian(), simple), (GreedyGrouping(), simple), (SymmetricGrouping(), simple),
                               (GreedyGrouping(order="hilbert"), simple), (Anatomy(l=3), []),
                               (Anatomy(l=3, block=1000), [])):  # fmt: skip
            memory(table, method, models)
    on_adult()
    against_anonypy()
    return TARGETS.end()


if __name__ == "__main__":
    sys.exit(main())
