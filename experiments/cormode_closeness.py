"""Minimizing minimality [Cormode et al. 2010]: Figure 3 (c), (d), greedy grouping for t-closeness."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from experiments.common import ADULT, Experiment, Outcome, Verdict, mean_and_error, task, verdict_of
from experiments.cormode import COLUMNS, PAPER, POSITIVES, QUASI, kinds_of
from maskwright.domain.grouping import Grouping
from maskwright.methods.greedy_grouping import GreedyGrouping
from maskwright.report.charts import Chart, Series

ROWS = 45_222
ENOUGH = 1_000  # accepted draws per group, where all occupations are looked at
TRIES = 20_000  # draws after which a group is given up
LARGEST = 60  # rows; larger groups are not drawn
DIFFERS = (
    "How rows are put into buckets under t-closeness, and which values of t were used, is not printed. Shown are: one "
    "occupation against all others, row by row and in buckets of ⌈1/(share + t)⌉ rows (the smallest that may hold "
    "somebody), with beliefs computed, not drawn; and all 14 occupations row by row, where beliefs are drawn: orders "
    f"of a group's values are drawn until {ENOUGH:,} are accepted because no shorter prefix is close. That can only be "
    f"done for groups of at most {LARGEST} rows and 12 groups a run; 'judged' in the CSV is the share of all rows in "
    "groups of that size. A distance that is drawn is overstated by chance by about 0.05. Orders of attributes as in "
    "(a), (b)."
)


@cache
def table(positive: str | None) -> Any:
    """Adult, with the occupation only told apart from all others where one is named."""
    told = (
        "occupation"
        if positive is None
        else f"CASE WHEN occupation = '{positive}' THEN occupation ELSE 'other' END"
    )
    return duckdb.sql(f"SELECT * REPLACE ({told} AS occupation) FROM '{ADULT}'").to_arrow_table()  # noqa: S608


def grouped(positive: str | None, t: Fraction, bucket: int, seed: int) -> Grouping:
    priority = tuple(np.random.default_rng(seed).permutation(QUASI).tolist())
    model = {"model": "t-closeness", "t": str(t), "attribute": "occupation"}
    with task(COLUMNS, table(positive), require=[model], seed=seed) as ready:
        return GreedyGrouping(priority=priority, l=bucket).group(ready)


def close(rows: int, held: int, share: Fraction, t: Fraction) -> bool:
    return abs(Fraction(held, rows) - share) <= t


@cache
def beliefs(bucket: int, buckets: int, positives: int, share: Fraction, t: Fraction) -> tuple[float, ...]:
    """Per bucket, the belief that a row of it is positive: no shorter prefix of the group is close.

    Worlds are counted from both ends. Each positive weighs the group's odds, which changes no belief (their number is
    fixed) but keeps the numbers within the range of floats.
    """
    n = bucket * buckets
    if buckets == 1 or positives in (0, n):
        return (positives / n,) * buckets
    odds = positives / (n - positives)
    ways = np.array([math.comb(bucket, k) * odds**k for k in range(min(bucket, positives) + 1)])
    before = [np.eye(1, positives + 1)[0]]
    after = [np.eye(1, positives + 1, positives)[0]]
    kept = [_apart(bucket * i, positives, share, t) for i in range(1, buckets)]
    for i in range(1, buckets):
        before.append(_scaled(np.convolve(before[-1], ways)[: positives + 1] * kept[i - 1]))
        grown = np.convolve(after[-1][::-1], ways)[: positives + 1][::-1]
        after.append(_scaled(grown * kept[-i]))
    result = []
    for start, end in zip(before, reversed(after), strict=True):
        by_k = np.array(
            [w * (start[: positives + 1 - k] @ end[k:]) for k, w in enumerate(ways.tolist())],
            dtype=np.float64,
        )
        result.append(float(by_k @ np.arange(len(ways)) / by_k.sum() / bucket))
    return tuple(result)


def _apart(rows: int, positives: int, share: Fraction, t: Fraction) -> NDArray[np.float64]:
    """Which numbers of positives among so many rows are not close: 1 or 0."""
    low, high = math.ceil((share - t) * rows), math.floor((share + t) * rows)
    held = np.arange(positives + 1)
    return ((held < low) | (held > high)).astype(np.float64)


def _scaled(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total = weights.sum()
    if not total > 0:
        raise ValueError("greedy grouping makes no such group")
    return np.asarray(weights / total)


def binary_risk(positive: str, t: Fraction, bucket: int, seed: int) -> dict[str, float]:
    """The share of rows whose belief is farther than t from the whole table, and the largest distance."""
    grouping = grouped(positive, t, bucket, seed)
    whole = grouping.summary.sensitive["occupation"]
    share = Fraction(int(whole.totals[whole.values.index(positive) + 1]), grouping.summary.n_rows)
    vulnerable, largest = 0, 0.0
    for (size, positives), groups in kinds_of(grouping, positive).items():
        for belief in beliefs(bucket, size // bucket, positives, share, t):
            distance = abs(belief - float(share))
            vulnerable += groups * bucket * (distance > float(t) + 1e-9)
            largest = max(largest, distance)
    return {
        "vulnerable": vulnerable / grouping.published_rows,
        "largest": largest / float(t),
        "size": grouping.published_rows / grouping.classes.n,
        "judged": 1.0,
    }


def drawn_beliefs(
    counts: NDArray[np.int64], whole: NDArray[np.float64], t: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], int]:
    """Row × value: beliefs from accepted orders of a group's values, and how many were accepted."""
    n, values = int(counts.sum()), len(counts)
    items = np.repeat(np.arange(values), counts)
    seen, accepted, tried = np.zeros((n, values)), 0, 0
    while accepted < ENOUGH and tried < TRIES:
        orders = rng.permuted(np.tile(items, (1000, 1)), axis=1)
        shown = orders[:, :, None] == np.arange(values)
        prefix = shown.cumsum(axis=1)[:, :-1] / np.arange(1, n)[:, None]
        distance = np.abs(prefix - whole).sum(axis=2) / 2
        good = shown[(distance > t + 1e-9).all(axis=1)]
        seen += good.sum(axis=0)
        accepted, tried = accepted + len(good), tried + 1000
    return seen / max(accepted, 1), accepted


def drawn_risk(t: Fraction, seed: int, groups: int) -> dict[str, float]:
    """The same for all 14 occupations, from some of the groups that are small enough."""
    grouping = grouped(None, t, 1, seed)
    counts, whole = grouping.classes.sensitive["occupation"], grouping.summary.sensitive["occupation"]
    shares = np.bincount(whole.codes, whole.counts, len(whole.values) + 1)[1:] / grouping.summary.n_rows
    rng = np.random.default_rng(seed)
    small = np.flatnonzero(grouping.classes.sizes <= LARGEST)
    above, rows, largest, accepted = 0, 0, 0.0, []
    for g in rng.permutation(small)[:groups].tolist():
        inside = slice(int(counts.start[g]), int(counts.start[g + 1]))
        held = np.bincount(counts.codes[inside], counts.counts[inside], len(shares) + 1)[1:].astype(np.int64)
        found, enough = drawn_beliefs(held, shares, float(t), rng)
        accepted.append(enough)
        if enough < ENOUGH:
            continue
        distance = np.abs(found - shares).sum(axis=1) / 2
        above += int((distance > float(t) + 0.05).sum())
        rows += len(distance)
        largest = max(largest, float(distance.max()))
    return {
        "vulnerable": above / max(rows, 1),
        "largest": largest / float(t),
        "size": grouping.published_rows / grouping.classes.n,
        "judged": float(grouping.classes.sizes[small].sum() / grouping.published_rows),
        "accepted": float(np.mean(accepted)),
    }


def averaged(
    kind: str, positive: str, t: Fraction, bucket: int, runs: Sequence[Mapping[str, float]]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "occupation": positive,
        "kind": kind,
        "t": float(t),
        "bucket": bucket,
        "runs": len(runs),
    }
    for name in ("vulnerable", "largest", "size", "judged", "accepted"):
        known = [r[name] for r in runs if name in r]
        mean, error = mean_and_error(known) if known else ("", "")
        row |= {name: mean, f"{name} (error)": error}
    return row


def of_one(positive: str, t: Fraction, kind: str, seeds: Sequence[int]) -> dict[str, Any]:
    share = duckdb.sql(f"SELECT count(*) FROM '{ADULT}' WHERE occupation = '{positive}'").fetchall()[0][0]  # noqa: S608
    bucket = 1 if kind == "rows" else math.ceil(1 / (Fraction(share, ROWS) + t))
    return averaged(kind, positive, t, bucket, [binary_risk(positive, t, bucket, seed) for seed in seeds])


def figure_3cd(quick: bool) -> Outcome:
    steps = [
        Fraction(x) for x in (("0.1", "0.2") if quick else ("0.02", "0.05", "0.1", "0.15", "0.2", "0.3"))
    ]
    seeds = range(1 if quick else 4)
    rows = [of_one(p, t, kind, seeds) for p in POSITIVES for kind in ("rows", "buckets") for t in steps]
    for t in [Fraction(x) for x in (("0.5",) if quick else ("0.3", "0.4", "0.5"))]:
        runs = [drawn_risk(t, seed, 3 if quick else 12) for seed in seeds[: 1 if quick else 3]]
        rows.append(averaged("rows, drawn", "all", t, 1, runs))
    series = []
    for occupation, kind in dict.fromkeys((r["occupation"], r["kind"]) for r in rows):
        series.append(
            (f"{occupation}, {kind}", [r for r in rows if (r["occupation"], r["kind"]) == (occupation, kind)])
        )
    charts = {
        part: Chart(words, "t", title, [
            Series(name, [(r["t"], r[y]) for r in own], [r[f"{y} (error)"] for r in own]) for name, own in series
        ])
        for part, y, title, words in (
            ("c", "vulnerable", "share of vulnerable rows", "Rows whose belief is farther than t from the table"),
            ("d", "largest", "largest distance / t", "The largest distance of a belief, in units of t"),
        )
    }  # fmt: skip
    return Outcome(rows, charts, *judged(rows), DIFFERS)


def judged(rows: Sequence[Mapping[str, Any]]) -> tuple[str, Verdict]:
    parts, held = [], []
    for kind, words in (("rows", "Row by row"), ("buckets", "In buckets")):
        own = [r for r in rows if r["kind"] == kind]
        most, far = max(own, key=lambda r: r["vulnerable"]), max(own, key=lambda r: r["largest"])
        rare = [r for r in own if r["vulnerable"] <= 0.02]
        near = [r for r in own if r["largest"] <= 2]
        by = {(r["occupation"], r["t"]): r["vulnerable"] for r in own}
        ends = [(p, sorted(t for q, t in by if q == p)) for p in POSITIVES]
        falling = sum(by[p, ts[-1]] < by[p, ts[0]] for p, ts in ends)
        parts.append(
            f"{words}, {len(rare)} of {len(own)} settings have at most 2 % vulnerable rows (most: "
            f"{most['vulnerable']:.1%}, {most['occupation']}, t = {most['t']:g}), {len(near)} a largest distance of "
            f"at most 2t (most: {far['largest']:.1f}t, {far['occupation']}, t = {far['t']:g}); there are fewer at the "
            f"largest t than at the smallest for {falling} of 2 occupations."
        )
        held += [len(rare) == len(own), len(near) == len(own), falling == 2]
    drawn = [r for r in rows if r["kind"] == "rows, drawn"]
    parts.append(
        "With all occupations, from "
        + "; ".join(
            f"{r['accepted']:,.0f} accepted draws per group on average at t = {r['t']:g} ({r['judged']:.0%} of rows "
            f"in groups of that size): {r['vulnerable']:.1%} of the rows beyond t + 0.05, largest {r['largest']:.1f}t"
            for r in drawn
        )
        + "."
    )
    held += [r["largest"] <= 2 for r in drawn]
    return " ".join(parts), verdict_of(held)


def again() -> list[Mapping[str, Any]]:
    return [of_one("Tech-support", Fraction("0.1"), kind, range(4)) for kind in ("rows", "buckets")]


EXPERIMENTS = [
    Experiment(
        "cormode-fig3cd", PAPER, "Figure 3 (c), (d)",
        "Under t-closeness at most about 2 % of the rows are vulnerable to somebody who knows the method, more for "
        "smaller t, and no belief is farther than 2t from the whole table.",
        figure_3cd, again,
    )
]  # fmt: skip
