"""Minimality attack [Wong et al. 2007]: Figures 3 to 6, MASK against the (α,k) algorithm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.common import Experiment, Outcome, mean_and_error, median_and_spread, task, verdict_of
from experiments.hierarchies import at_most_one_in, columns
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Task
from maskwright.methods.alpha_k_local import AlphaKLocal
from maskwright.methods.mask import Mask
from maskwright.metrics.distributions import sensitive_distortion
from maskwright.metrics.loss import information_loss
from maskwright.metrics.queries import Workload, query_errors
from maskwright.report.charts import Chart, Series

PAPER = "Minimality attack"
ALL, KS, SELECTIVITY = 8, (2, 10, 20), 0.05
METHODS = ("MASK", "(α,k)")
QUERIES, RUNS = 500, 3  # per run; the runs have different queries
DIFFERS = (
    f"{RUNS} runs of {QUERIES:,} queries each instead of 100 of 10,000: the standard errors are shown. Taxonomies are "
    "reconstructed from their printed heights (experiments/hierarchies.py). How MASK k-anonymises is not printed: "
    "the same local recoding is used, without a look at education. Each set of a query holds the share s^(1/(qd + 1)) "
    "of its values, so that s is the expected selectivity. Seconds are CPU time, the median of the runs (its error in "
    "the CSV: half the distance between the quartiles); step 1 is timed by itself beside it."
)
USUAL = {"selectivity": SELECTIVITY, "share": 0.5}  # where the dimension varies
WORDS = {"selectivity": "selectivity", "share": "the share of each predicate"}
READINGS = {
    "selectivity": DIFFERS,
    "share": (
        f"{RUNS} runs of {QUERIES:,} queries each. A second reading of the same figure: each of the qd + 1 sets of a "
        "query holds a fixed share of its values (half of them where the dimension varies), so that queries of more "
        "dimensions match fewer people; with a fixed expected selectivity, the first reading, sets grow with the "
        "dimension."
    ),
}
Row = Mapping[str, Any]


def made(name: str, ready: Task) -> Grouping:
    return (Mask(base="alpha-k-local") if name == "MASK" else AlphaKLocal()).group(ready)


def prepared(k: int, m: int, size: int, seed: int) -> Any:
    return task(columns(size), require=[{"model": "k-anonymity", "k": k}, at_most_one_in(m)], seed=seed)


def error(grouping: Grouping, seed: int, exact: bool, qd: int, selectivity: float, queries: int) -> float:
    workload = Workload(queries, qd, selectivity, attribute="education", seed=seed)
    return query_errors(grouping, workload, exact).mean


def averaged(row: dict[str, Any], runs: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    row["runs"] = len(runs)
    for name in runs[0]:
        told = median_and_spread if name.startswith("seconds") else mean_and_error
        middle, spread = told([r[name] for r in runs])
        row |= {name: middle, f"{name} (error)": spread}
    return row


def lines(rows: Iterable[Row], x: str, y: str, name: Callable[[Row], str], scale: int = 1) -> list[Series]:
    """One line per name, along x."""
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda r: float(r[x])):
        found.setdefault(name(row), []).append(row)
    return [
        Series(n, [(r[x], scale * r[y]) for r in own], [scale * r[f"{y} (error)"] for r in own])
        for n, own in found.items()
    ]


def rises(series: Sequence[Series]) -> int:
    """How many lines end higher than they begin."""
    return sum(s.points[-1][1] > s.points[0][1] for s in series)


def falls(series: Sequence[Series]) -> int:
    return sum(s.points[-1][1] < s.points[0][1] for s in series)


# --- Figures 3 and 4: generalised tables, against the number of quasi-identifiers ---------------------


def generalised(name: str, m: int, k: int, size: int, seeds: Sequence[int], queries: int) -> dict[str, Any]:
    runs = []
    for seed in seeds:
        with prepared(k, m, size, seed) as ready:
            first = 0.0
            if name == "MASK":  # its first step by itself, to see which share of the time it takes
                alone = replace(ready, search=[s for s in ready.search if s.about == "quasi-identifiers"])
                begin = time.process_time()
                AlphaKLocal().group(alone)
                first = time.process_time() - begin
            begin = time.process_time()
            grouping = made(name, ready)
            seconds = time.process_time() - begin
            runs.append({
                "seconds": seconds,
                "seconds of step 1": first,
                "error": error(grouping, seed, False, size, SELECTIVITY, queries),
                "loss": float(information_loss(grouping, ready.weights)),
                "distortion": float(sensitive_distortion(grouping, ready.weights)),
            })  # fmt: skip
    return averaged({"method": name, "m": m, "k": k, "QI size": size}, runs)


def against_size(m: int, quick: bool) -> Outcome:
    sizes = (2, 5) if quick else (2, 4, 6, ALL)
    seeds, queries = (range(1), 200) if quick else (range(RUNS), QUERIES)
    ks = KS[::2] if quick else KS
    return told_against_size([
        generalised(n, m, k, size, seeds, queries) for n in METHODS for k in ks for size in sizes
    ])  # fmt: skip


def told_against_size(rows: Sequence[Row]) -> Outcome:
    m = rows[0]["m"]
    sizes, ks = sorted({r["QI size"] for r in rows}), sorted({r["k"] for r in rows})
    mask = [r for r in rows if r["method"] == "MASK"]

    def label(row: Row) -> str:
        return f"{row['method']}, k = {row['k']}"

    charts = {
        part: Chart(f"{words} against the number of quasi-identifiers, m = {m}", "quasi-identifiers", unit,
                    lines(shown, "QI size", y, label, scale))
        for part, y, unit, words, shown, scale in (
            ("a", "seconds", "CPU seconds", "Time", rows, 1),
            ("b", "error", "mean relative error", "Relative error of COUNT queries", rows, 1),
            ("c", "loss", "information loss", "Information loss", rows, 1),
            ("d", "distortion", "distortion × 1,000", "Distortion of education by MASK", mask, 1000),
        )
    }  # fmt: skip
    by = {(r["method"], r["k"], r["QI size"]): r for r in rows}
    low, high, last = ks[0], ks[-1], sizes[-1]
    grow = {p: rises(charts[p].series) for p in "abcd"}
    by_k = {
        y: [by[n, high, last][y] - by[n, low, last][y] for n in METHODS] for y in ("seconds", "error", "loss")
    }
    less = by["MASK", high, last]["distortion"] < by["MASK", low, last]["distortion"]
    step = min(r["seconds of step 1"] / r["seconds"] for r in mask if r["QI size"] == last)
    more = sum(by["(α,k)", k, s]["loss"] > by["MASK", k, s]["loss"] for k in ks for s in sizes)
    text = (
        f"Of {len(charts['a'].series)} lines {grow['a']} rise in time, {grow['b']} in error and {grow['c']} in loss "
        f"from {sizes[0]} to {last} quasi-identifiers, and {grow['d']} of {len(charts['d'].series)} in distortion. "
        f"With {last} and k = {low} and {high}, MASK has an error of {by['MASK', low, last]['error']:.3f} and "
        f"{by['MASK', high, last]['error']:.3f} ((α,k): {by['(α,k)', low, last]['error']:.3f} and "
        f"{by['(α,k)', high, last]['error']:.3f}), a loss of {by['MASK', low, last]['loss']:.3f} and "
        f"{by['MASK', high, last]['loss']:.3f} ({by['(α,k)', low, last]['loss']:.3f} and "
        f"{by['(α,k)', high, last]['loss']:.3f}), a distortion of {by['MASK', low, last]['distortion']:.4f} and "
        f"{by['MASK', high, last]['distortion']:.4f}, and takes {by['MASK', low, last]['seconds']:.1f} and "
        f"{by['MASK', high, last]['seconds']:.1f} s. Step 1 takes at least {step:.0%} of that. (α,k) loses more than "
        f"MASK at {more} of {len(ks) * len(sizes)} points."
    )
    claims = [
        grow["a"] == len(charts["a"].series), grow["b"] == len(charts["b"].series),
        grow["c"] == len(charts["c"].series), grow["d"] == len(charts["d"].series),
        max(by_k["seconds"]) < 0, min(by_k["error"]) > 0, min(by_k["loss"]) > 0, less, step >= 0.98, more > 0,
    ]  # fmt: skip
    return Outcome(rows, charts, text, verdict_of(claims), DIFFERS)


# --- Figure 5: two tables, against m and k ------------------------------------------------------------


def two_tables(
    name: str, m: int, k: int, size: int, seeds: Sequence[int], queries: int = QUERIES
) -> dict[str, Any]:
    runs = []
    for seed in seeds:
        with prepared(k, m, size, seed) as ready:
            begin = time.process_time()
            grouping = made(name, ready)
            runs.append({
                "seconds": time.process_time() - begin,
                "error": error(grouping, seed, True, size, SELECTIVITY, queries),
                "distortion": float(sensitive_distortion(grouping, ready.weights)),
            })  # fmt: skip
    return averaged({"method": name, "m": m, "k": k, "QI size": size}, runs)


def figure_5(quick: bool) -> Outcome:
    ms, ks = ((2, 10), (2, 20)) if quick else ((2, 6, 10), KS)
    seeds, queries = (range(1), 200) if quick else (range(RUNS), QUERIES)
    return told_two_tables([
        two_tables(n, m, k, ALL, seeds, queries) for n in METHODS for m in ms for k in ks
    ])  # fmt: skip


def told_two_tables(rows: Sequence[Row]) -> Outcome:
    ms, ks = sorted({r["m"] for r in rows}), sorted({r["k"] for r in rows})
    mask = [r for r in rows if r["method"] == "MASK"]
    charts = {
        "a": Chart("Relative error of two tables against m", "m", "mean relative error",
                   lines(rows, "m", "error", lambda r: f"{r['method']}, k = {r['k']}")),
        "b": Chart("Distortion of MASK against m", "m", "distortion × 1,000",
                   lines(mask, "m", "distortion", lambda r: f"k = {r['k']}", 1000)),
        "c": Chart("Relative error of two tables against k", "k", "mean relative error",
                   lines([r for r in rows if r["m"] in (ms[0], ms[-1])], "k", "error",
                         lambda r: f"{r['method']}, m = {r['m']}")),
        "d": Chart("Distortion of MASK against k", "k", "distortion × 1,000",
                   lines([r for r in mask if r["m"] in (ms[0], ms[-1])], "k", "distortion",
                         lambda r: f"m = {r['m']}", 1000)),
    }  # fmt: skip
    counts = {p: (rises(c.series), len(c.series)) for p, c in charts.items()}
    lower = falls(charts["d"].series)
    by = {(r["method"], r["m"], r["k"]): r for r in rows}
    parts = "; ".join(
        f"m = {m}, k = {k}: MASK {by['MASK', m, k]['error']:.4f} ± {by['MASK', m, k]['error (error)']:.4f}, (α,k) "
        f"{by['(α,k)', m, k]['error']:.4f} ± {by['(α,k)', m, k]['error (error)']:.4f}"
        for m in (ms[0], ms[-1])
        for k in (ks[0], ks[-1])
    )
    text = (
        f"The error of two tables rises with m for {counts['a'][0]} of {counts['a'][1]} lines and with k for "
        f"{counts['c'][0]} of {counts['c'][1]}; the distortion rises with m for {counts['b'][0]} of {counts['b'][1]} "
        f"and falls with k for {lower} of {counts['d'][1]}. {parts}."
    )
    claims = [counts[p][0] == counts[p][1] for p in "abc"] + [lower == counts["d"][1]]
    return Outcome(rows, charts, text, verdict_of(claims), DIFFERS)


# --- Figure 6: against the dimension of queries and their selectivity ---------------------------------


def answered(
    name: str,
    m: int,
    size: int,
    points: Sequence[tuple[int, float]],
    seeds: Sequence[int],
    queries: int = QUERIES,
    knob: str = "selectivity",
) -> list[dict[str, Any]]:
    """Both versions, one generalised table and two tables, answer the same queries.

    `knob` says what the second number of a point is: the expected "selectivity" of a query, or the "share" of its
    values that each predicate holds.
    """
    runs: dict[tuple[str, int, float], list[dict[str, float]]] = {}
    for seed in seeds:
        with prepared(10, m, size, seed) as ready:
            grouping = made(name, ready)
        for qd, amount in points:
            selectivity = amount if knob == "selectivity" else amount ** (qd + 1)
            for version, exact in (("one table", False), ("two tables", True)):
                value = error(grouping, seed, exact, qd, selectivity, queries)
                runs.setdefault((version, qd, amount), []).append({"error": value})
    return [
        averaged({"method": name, "version": v, "m": m, "k": 10, "qd": qd, knob: amount}, of)
        for (v, qd, amount), of in runs.items()
    ]


def figure_6(quick: bool, knob: str = "selectivity") -> Outcome:
    size = 4 if quick else ALL
    dimensions = (1, size) if quick else (1, 2, 4, 6, ALL)
    usual = USUAL[knob]
    amounts = {"selectivity": (0.02, 0.05, 0.1, 0.2), "share": (0.5, 0.6, 0.7, 0.8)}[knob]
    points = [(qd, usual) for qd in dimensions]
    points += [(size, a) for a in (amounts[::3] if quick else amounts) if a != usual]
    seeds, queries = (range(1), 200) if quick else (range(RUNS), QUERIES)
    return told_answered([
        r for n in METHODS for m in (2, 10) for r in answered(n, m, size, points, seeds, queries, knob)
    ])  # fmt: skip


def told_answered(rows: Sequence[Row]) -> Outcome:
    size, knob = max(r["qd"] for r in rows), "share" if "share" in rows[0] else "selectivity"
    usual = USUAL[knob]

    def label(row: Row) -> str:
        return f"{row['method']}, m = {row['m']}"

    charts = {}
    for part, version in (("a", "one table"), ("c", "two tables")):
        own = [r for r in rows if r["version"] == version]
        charts[part] = Chart(
            f"Relative error against the dimension of queries, {version}", "dimension of queries",
            "mean relative error", lines([r for r in own if r[knob] == usual], "qd", "error", label),
        )  # fmt: skip
        charts[chr(ord(part) + 1)] = Chart(
            f"Relative error against {WORDS[knob]}, {version}", WORDS[knob], "mean relative error",
            lines([r for r in own if r["qd"] == size], knob, "error", label),
        )  # fmt: skip
    by = {tuple(r[n] for n in ("method", "version", "m", "qd", knob)): r["error"] for r in rows}
    pairs = [(key, value) for key, value in by.items() if key[2] == 2]
    larger = sum(by[(*key[:2], 10, *key[3:])] > value for key, value in pairs)
    up = rises(charts["a"].series) + rises(charts["c"].series)
    down = falls(charts["b"].series) + falls(charts["d"].series)
    text = (
        f"The error rises with the dimension (1 to {size}) for {up} of 8 lines and falls with {WORDS[knob]} for {down} "
        f"of 8; with m = 10 it is larger than with m = 2 at {larger} of {len(pairs)} points. MASK, one table, m = 2: "
        f"{by['MASK', 'one table', 2, 1, usual]:.4f} at dimension 1 and "
        f"{by['MASK', 'one table', 2, size, usual]:.4f} at {size}; two tables: "
        f"{by['MASK', 'two tables', 2, 1, usual]:.4f} and {by['MASK', 'two tables', 2, size, usual]:.4f}."
    )
    differs = READINGS[knob] + (
        " Here k = 10; the printed k is not known, so both versions of the tables are shown."
    )
    return Outcome(rows, charts, text, verdict_of([up == 8, down == 8, larger == len(pairs)]), differs)


def without_seconds(row: Row) -> Row:
    return {k: v for k, v in row.items() if "seconds" not in k}


CLAIM = (
    "MASK against local-recoding (α,k) with m = {m}: time, error, information loss and distortion rise with the number "
    "of quasi-identifiers; larger k saves time and distortion but raises error and loss; step 1 of MASK takes over "
    "98 % of its time; (α,k) sometimes loses more than MASK."
)
EXPERIMENTS = [
    Experiment(
        "wong-fig3", PAPER, "Figure 3", CLAIM.format(m=2), lambda quick: against_size(2, quick),
        lambda: [without_seconds(generalised("MASK", 2, 10, 4, range(RUNS), QUERIES))],
    ),
    Experiment(
        "wong-fig4", PAPER, "Figure 4", CLAIM.format(m=10), lambda quick: against_size(10, quick),
        lambda: [without_seconds(generalised("(α,k)", 10, 20, 4, range(RUNS), QUERIES))],
    ),
    Experiment(
        "wong-fig5", PAPER, "Figure 5",
        "Two tables instead of a generalised one: the same trends; error and distortion rise with m, the error rises "
        "and the distortion falls with k.",
        figure_5, lambda: [without_seconds(two_tables("MASK", 10, 20, ALL, range(RUNS)))],
    ),
    Experiment(
        "wong-fig6", PAPER, "Figure 6",
        "The error rises with the dimension of queries, falls with their selectivity, and is larger for m = 10 than "
        "for m = 2.",
        figure_6, lambda: answered("MASK", 2, ALL, [(2, SELECTIVITY)], range(RUNS)),
    ),
    Experiment(
        "wong-fig6-share", PAPER, "Figure 6, second reading",
        "The error rises with the dimension of queries, falls with the share of values that a query asks for, and is "
        "larger for m = 10 than for m = 2.",
        lambda quick: figure_6(quick, "share"),
        lambda: answered("MASK", 2, ALL, [(2, 0.5)], range(RUNS), knob="share"),
        quick="it has four quasi-identifiers instead of eight, and with these m = 10 has the larger error at every "
        "point (holds).",
    ),
]  # fmt: skip
