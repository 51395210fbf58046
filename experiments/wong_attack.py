"""Minimality attack [Wong et al. 2007]: Figure 2, the attack on the (α,k) algorithm."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.common import Experiment, Outcome, Verdict, mean_and_error, task, verdict_of
from experiments.hierarchies import SENSITIVE, at_most_one_in, columns
from maskwright.attacks.minimality import Minimality
from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.method import Part
from maskwright.methods.alpha_k_local import AlphaKLocal
from maskwright.report.charts import Chart, Series

PAPER = "Minimality attack"
ALL = 8  # quasi-identifiers
MEASURES = ("share", "credibility", "at most", "generalised classes", "grouping seconds", "attack seconds")
DIFFERS = (
    f"The sensitive set is {', '.join(SENSITIVE)} (the printed 1,566 rows). Of taxonomies only heights are printed; "
    "experiments/hierarchies.py reconstructs them. The algorithm is named, not printed: it is the method alpha-k-local "
    "with k = 1, which takes rows back at random where a remainder fails, hence several runs. The credibility is that "
    "of the paper, one published class at a time, with original classes tested (W-2). A large published class shows a "
    "share of exactly 1/m, and what it tells lies within chance of it: where worlds had to be drawn, the share counts "
    "rows that are above 1/m beyond doubt, and 'at most' in the CSV those that may be. Seconds are CPU time here."
)


def one_run(m: int, size: int, seed: int) -> dict[str, float | None]:
    """Publish, attack, and count the sensitive rows in original classes with a credibility above 1/m."""
    with task(columns(size), require=[at_most_one_in(m)], seed=seed) as ready:
        begin = time.process_time()
        method = AlphaKLocal()
        grouping = method.group(ready)
        made = time.process_time()
        target = Target.of(Part("data", ready, method, grouping, ready.search))
        found = Minimality().run(target, Adversary("knows-method", knows_method=True)).measures
        done = time.process_time()
    (problematic,) = found["problematic"]
    return {
        "share": float(problematic["beyond_doubt"]["share_of_sensitive_rows"]),
        "credibility": problematic["beyond_doubt"]["average_credibility"],
        "at most": float(problematic["share_of_sensitive_rows"]),
        "generalised classes": float(found["generalised classes"]),
        "grouping seconds": made - begin,
        "attack seconds": done - made,
    }


def averaged(m: int, size: int, seeds: Sequence[int]) -> dict[str, Any]:
    runs = [one_run(m, size, seed) for seed in seeds]
    row: dict[str, Any] = {"m": m, "QI size": size, "runs": len(runs)}
    for name in MEASURES:
        known = [v for run in runs if (v := run[name]) is not None]  # nobody problematic: no credibility
        row |= dict(zip((name, f"{name} (error)"), mean_and_error(known) if known else ("", ""), strict=True))
    return row


def drawn(rows: Sequence[Mapping[str, Any]], x: str, y: str, by: str, kept: Sequence[int]) -> list[Series]:
    result = []
    for value in kept:
        own = sorted((r for r in rows if r[by] == value and r[y] != ""), key=lambda r: int(r[x]))
        name = f"m = {value}" if by == "m" else f"{value} quasi-identifiers"
        result.append(Series(name, [(r[x], r[y]) for r in own], [r[f"{y} (error)"] for r in own]))
    return result


def figure_2(quick: bool) -> Outcome:
    ms = (2, 10) if quick else (2, 3, 4, 6, 8, 10)
    sizes = (3, ALL) if quick else (2, 3, 4, 5, 6, ALL)
    seeds = range(1 if quick else 4)
    points = [(m, ALL) for m in ms]
    points += [(m, size) for m in (2, 10) for size in sizes if (m, size) not in points]
    return told([averaged(m, size, seeds) for m, size in points])


def told(rows: Sequence[Mapping[str, Any]]) -> Outcome:
    largest = [r for r in rows if r["QI size"] == ALL]
    shares = [
        Series(name, [(r["m"], r[y]) for r in largest], [r[f"{y} (error)"] for r in largest])
        for y, name in (("share", "beyond doubt"), ("at most", "at most"))
    ]
    charts = {
        "a": Chart("Problematic rows among sensitive ones, against m", "m", "share of sensitive rows",
                   shares),
        "b": Chart("Average credibility of problematic rows, against m", "m", "average credibility",
                   drawn(rows, "m", "credibility", "QI size", (ALL,))),
        "c": Chart("Problematic rows among sensitive ones, against the number of quasi-identifiers",
                   "quasi-identifiers", "share of sensitive rows", drawn(rows, "QI size", "share", "m", (2, 10))),
        "d": Chart("Average credibility of problematic rows, against the number of quasi-identifiers",
                   "quasi-identifiers", "average credibility", drawn(rows, "QI size", "credibility", "m", (2, 10))),
    }  # fmt: skip
    ms = sorted({r["m"] for r in largest})
    sizes = sorted({r["QI size"] for r in rows})
    return Outcome(rows, charts, *judged(rows, ms, sizes), DIFFERS)


def judged(rows: Sequence[Mapping[str, Any]], ms: Sequence[int], sizes: Sequence[int]) -> tuple[str, Verdict]:
    by = {(r["m"], r["QI size"]): r for r in rows}
    along_m = [by[m, ALL] for m in ms]
    along_qi = [by[2, size] for size in sizes]
    known = [r for r in along_qi if r["credibility"] != ""]
    most = max(along_m, key=lambda r: r["share"])
    near = [r for r in known if abs(r["credibility"] - 0.9) <= 0.15]
    claims: dict[str, bool | None] = {  # None: within chance, it may be either
        "a": along_m[-1]["share"] > along_m[0]["at most"]
        or _perhaps(along_m[-1]["at most"] > along_m[0]["share"]),
        "b": along_m[-1]["credibility"] < along_m[0]["credibility"],
        "c": along_qi[-1]["share"] > along_qi[0]["share"],
        "d": len(near) == len(known),
    }
    text = (
        f"With {ALL} quasi-identifiers the share of problematic rows is {along_m[0]['share']:.1%} at m = {ms[0]}, "
        f"{most['share']:.1%} at m = {most['m']} where it is largest, and {along_m[-1]['share']:.1%} at m = {ms[-1]} "
        f"(at most {along_m[0]['at most']:.1%}, {most['at most']:.1%} and {along_m[-1]['at most']:.1%}); their average "
        f"credibility goes from {along_m[0]['credibility']:.2f} to {along_m[-1]['credibility']:.2f}. For "
        f"m = 2 the share goes from {along_qi[0]['share']:.1%} with {sizes[0]} to {along_qi[-1]['share']:.1%} with "
        f"{sizes[-1]} quasi-identifiers, with credibilities between {min(r['credibility'] for r in known):.2f} and "
        f"{max(r['credibility'] for r in known):.2f}. The attack takes {along_m[0]['attack seconds']:.1f} s at m = "
        f"{ms[0]} and {along_m[-1]['attack seconds']:.1f} s at m = {ms[-1]} (printed: 173 and 239 s on a Pentium IV). "
        f"Of the four trends, {_listed(claims, True)} hold ((d): within 0.15 of 0.9), {_listed(claims, False)} not"
        + (f", {_listed(claims, None)} cannot be decided." if None in claims.values() else ".")
    )
    return text, verdict_of([held is True for held in claims.values()])


def _listed(claims: Mapping[str, bool | None], which: bool | None) -> str:
    return ", ".join(f"({c})" for c, held in claims.items() if held is which) or "none"


def _perhaps(possible: bool) -> bool | None:
    return None if possible else False


def again() -> list[Mapping[str, Any]]:
    row = averaged(2, 4, range(4))
    return [{k: v for k, v in row.items() if "seconds" not in k}]


EXPERIMENTS = [
    Experiment(
        "wong-fig2", PAPER, "Figure 2",
        "Against the (α,k) algorithm with α = 1/m, k = 1: (a) the share of problematic rows among the sensitive ones "
        "rises with m, (b) their average credibility falls with m, (c) the share rises with the number of "
        "quasi-identifiers, (d) the credibility stays near 0.9 for m = 2.",
        figure_2, again,
    )
]  # fmt: skip
