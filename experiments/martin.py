"""Worst-case background knowledge [Martin et al. 2007]: Figures 5 and 6 on Adult."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from experiments.common import Experiment, Outcome, task, verdict_of
from maskwright.domain.classes import ValueCounts
from maskwright.kernels.max_disclosure import max_disclosure
from maskwright.methods._lattice.lattice import group_tuples
from maskwright.report.charts import Chart, Series
from maskwright.worlds.statements.disclosure import Disclosure

PAPER = "Worst-case background knowledge"
# Adult on age (exact, 5, 10, 20, 40 years, suppressed), marital status (3), race (2) and gender (2): 72 tables
COLUMNS = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20, 40]}},
    "marital-status": {
        "role": "quasi-identifier",
        "hierarchy": {
            "groups": [
                ["Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent"],
                ["Divorced", "Never-married", "Separated", "Widowed"],
            ]
        },
    },
    "race": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "occupation": "sensitive",
}
KNOWLEDGE = (1, 3, 5, 7, 9, 11)
DIFFERS = (
    "The paper does not print the middle level of marital status: married and not married is assumed here. Age "
    "intervals begin at multiples of their width."
)


@cache
def buckets() -> dict[tuple[int, ...], ValueCounts]:
    """The occupations per bucket of each of the 72 tables, by levels (age, marital status, race, sex)."""
    with task(COLUMNS) as ready:
        summary = ready.summary
        shape = [len(h.levels) for h in summary.attributes]
        found = {}
        for node in itertools.product(*(range(n) for n in shape)):
            group_of, n = group_tuples(summary, node)
            found[node] = summary.classes(group_of, n).sensitive["occupation"]
        return found


def disclosure(node: tuple[int, ...], k: int) -> Disclosure:
    return max_disclosure(buckets()[node], k)


def least_entropy(counts: ValueCounts) -> float:
    """The smallest entropy (in nats, as the paper's axis) of a bucket."""
    least = math.inf
    for c in range(counts.n_classes):
        values = [n for n in counts.of_class(c).values() if n]
        size = sum(values)
        least = min(least, -sum(n / size * math.log(n / size) for n in values))
    return least


def figure_5(quick: bool) -> Outcome:
    node = (3, 2, 1, 1)  # age in 20-year intervals, all else suppressed
    most = 13
    found = disclosure(node, most)
    rows = [
        {"k": k, "implications": float(a), "negations": float(b)}
        for k, (a, b) in enumerate(zip(found.implications, found.negations, strict=True))
    ]
    return told_knowledge(rows)


def told_knowledge(rows: Sequence[Mapping[str, Any]]) -> Outcome:
    """What Figure 5 shows."""
    above = all(r["implications"] >= r["negations"] for r in rows)
    rising = all(a["implications"] <= b["implications"] for a, b in itertools.pairwise(rows))
    certain = next((r["k"] for r in rows if r["implications"] == 1), None)
    chart = Chart(
        "Maximum disclosure rises with the number of pieces of knowledge, to 1 at 13",
        "pieces of knowledge k", "maximum disclosure",
        [Series(name, [(r["k"], r[name]) for r in rows]) for name in ("implications", "negations")],
    )  # fmt: skip
    gap = max(r["implications"] - r["negations"] for r in rows)
    text = (
        f"Disclosure is {rows[0]['implications']:.3f} without knowledge and {rows[6]['implications']:.3f} with 6 "
        f"pieces; implications are above negations by at most {gap:.3f}; "
        + ("1 is never reached." if certain is None else f"1 is reached at k = {certain}.")
    )
    return Outcome(rows, {"": chart}, text, verdict_of([above, rising, certain == 13]), DIFFERS)


def figure_6(quick: bool) -> Outcome:
    return told_entropies(list(least_disclosure()))


def told_entropies(rows: Sequence[Mapping[str, Any]]) -> Outcome:
    """What Figure 6 shows."""
    series = []
    falls = True
    for k in KNOWLEDGE:
        points = [(r["entropy"], r["disclosure"]) for r in rows if r["k"] == k]
        front = list(envelope(points))
        series.append(Series(f"k = {k}", front))
        falls &= front[0][1] >= front[-1][1]
    rises = all(
        a["disclosure"] <= b["disclosure"]
        for a, b in itertools.pairwise(sorted(rows, key=lambda r: (r["table"], r["k"])))
        if a["table"] == b["table"]
    )
    chart = Chart(
        "The least maximum disclosure falls as the smallest entropy of a bucket grows, for every k",
        "smallest entropy of a bucket (nats)", "least maximum disclosure", series,
    )  # fmt: skip
    text = (
        f"Over the 72 tables: with k = 1 the least disclosure falls from {series[0].points[0][1]:.3f} to "
        f"{series[0].points[-1][1]:.3f}, with k = 11 from {series[-1].points[0][1]:.3f} to "
        f"{series[-1].points[-1][1]:.3f}, "
        f"as the smallest entropy grows; more knowledge {'never' if rises else 'sometimes'} discloses less."
    )
    return Outcome(rows, {"": chart}, text, verdict_of([falls, rises]), DIFFERS)


def least_disclosure() -> Iterator[dict[str, Any]]:
    for node, counts in buckets().items():
        found = disclosure(node, max(KNOWLEDGE))
        entropy = least_entropy(counts)
        for k in KNOWLEDGE:
            yield {
                "table": "-".join(map(str, node)), "entropy": entropy, "k": k,
                "disclosure": float(found.implications[k]), "negations": float(found.negations[k]),
            }  # fmt: skip


def envelope(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """For each entropy the least disclosure of the tables with that entropy (rounded to a hundredth, as plotted)."""
    at: dict[float, float] = {}
    for x, y in points:
        place = round(x, 2)
        at[place] = min(y, at.get(place, 1.0))
    yield from sorted(at.items())


def again_5() -> list[Mapping[str, Any]]:
    return list(figure_5(True).rows)


def again_6() -> list[Mapping[str, Any]]:
    return [r for r in least_disclosure() if r["table"] in ("3-2-1-1", "5-2-1-1")]


EXPERIMENTS = [
    Experiment(
        "martin-fig5", PAPER, "Figure 5",
        "Disclosure rises with k; implications disclose slightly more than negations; with 13 pieces (14 "
        "occupations) it is certain.",
        figure_5, again_5,
    ),
    Experiment(
        "martin-fig6", PAPER, "Figure 6",
        "The least maximum disclosure falls as the smallest entropy of a bucket grows, and rises with k.",
        figure_6, again_6,
    ),
]  # fmt: skip
