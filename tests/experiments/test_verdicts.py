"""Verdicts follow from what was found: each of them can be returned, on made-up figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Literal

import pytest

from experiments import (
    codip,
    cormode,
    cormode_closeness,
    cormode_queries,
    martin,
    truta,
    wong_attack,
    wong_mask,
)
from experiments.common import Outcome, median_and_spread, verdict_of

Kind = Literal["as printed", "in part", "the opposite"]
Rows = list[dict[str, Any]]
MEANS: dict[Kind, str] = {"as printed": "holds", "in part": "holds in part", "the opposite": "does not hold"}


@pytest.mark.parametrize(
    ("claims", "possible", "verdict"),
    [
        ([True, True], True, "holds"),
        ([True, False], True, "holds in part"),
        ([False, False], True, "does not hold"),
        ([True, True], False, "does not hold"),  # figures of ours that cannot be
    ],
)
def test_every_verdict_can_be_returned(claims: list[bool], possible: bool, verdict: str) -> None:
    assert verdict_of(claims, possible) == verdict


def with_errors(row: dict[str, Any], **figures: float) -> dict[str, Any]:
    return row | figures | {f"{name} (error)": 0.0 for name in figures}


def turned(value: float, kind: Kind) -> float:
    """What grows shrinks in the opposite."""
    return 1 / value if kind == "the opposite" else value


def attack_rows(kind: Kind) -> Rows:
    rows = []
    for m, size in [(2, 8), (10, 8), (2, 2), (10, 2)]:
        share = turned(m * size, kind) / 100
        credibility = {"as printed": 0.9 - m / 1000, "in part": 0.9, "the opposite": 0.1 + m / 100}[kind]
        figures = {"share": share, "at most": share, "credibility": credibility, "attack seconds": 1.0}
        rows.append(with_errors({"m": m, "QI size": size}, **figures))
    return rows


def size_rows(kind: Kind) -> Rows:
    step = 0.99 if kind == "as printed" else 0.5
    rows = []
    for method, k, size in product(wong_mask.METHODS, (2, 20), (2, 8)):
        more = (2 if kind != "the opposite" else 0.5) if method == "(α,k)" else 1.0
        seconds = turned(size / k, kind)
        figures = {
            "seconds": seconds, "seconds of step 1": step * seconds, "error": turned(size * k, kind),
            "loss": more * turned(size * k, kind), "distortion": turned(size / k, kind),
        }  # fmt: skip
        rows.append(with_errors({"method": method, "m": 2, "k": k, "QI size": size}, **figures))
    return rows


def two_table_rows(kind: Kind) -> Rows:
    return [
        with_errors(
            {"method": method, "m": m, "k": k},
            error=turned(m * k, kind),
            distortion=turned(m * k if kind == "in part" else m / k, kind),
        )
        for method, m, k in product(wong_mask.METHODS, (2, 10), (2, 20))
    ]


def answered_rows(kind: Kind, knob: str) -> Rows:
    usual = wong_mask.USUAL[knob]
    points = [(1, usual), (8, usual), (8, usual * 1.5)]
    return [
        with_errors(
            {"method": method, "version": version, "m": m, "qd": qd, knob: amount},
            error=turned(qd * (1 if kind == "in part" else m) / amount, kind),
        )
        for method, version, m, (qd, amount) in product(
            wong_mask.METHODS, ("one table", "two tables"), (2, 10), points
        )
    ]


def diversity_rows(kind: Kind) -> Rows:
    largest = {"as printed": 2.6, "in part": 2.2, "the opposite": 1.5}[kind]
    return [
        with_errors(
            {"positive": positive, "l": ell, "ceiling": 2.7},
            vulnerable=0.9 / ell if kind == "the opposite" else ell / 100,
            largest=largest,
        )
        for positive, ell in product(cormode.POSITIVES, (2, 4, 6))
    ]


def chance_rows(kind: Kind) -> Rows:
    left = {"as printed": 0.0, "in part": 0.1, "the opposite": 0.9}[kind]
    return [
        with_errors({"positive": p, "p": chance}, vulnerable=share, largest=1.0, size=6.0)
        for p, (chance, share) in product(cormode.POSITIVES, ((0.0, 0.5), (0.65, left)))
    ]


def closeness_rows(kind: Kind) -> Rows:
    far = 1.5 if kind == "as printed" else 3.0
    rows = [
        {"kind": name, "occupation": p, "t": t, "largest": far,
         "vulnerable": turned(0.001 / t, kind) if kind != "the opposite" else t}
        for name, p, t in product(("rows", "buckets"), cormode_closeness.POSITIVES, (0.1, 0.3))
    ]  # fmt: skip
    drawn = {"kind": "rows, drawn", "t": 0.5, "largest": far, "vulnerable": 0.1}
    return [*rows, {**drawn, "accepted": 1000, "judged": 1.0}]


def query_rows(kind: Kind) -> Rows:
    plain = dict(zip(cormode_queries.PLAIN, (2.0, 1.0, 3.0, 4.0), strict=True))
    base = plain | {f"{name} (Ana)": value / 2 for name, value in plain.items()}
    rows = []
    for name, (qd, share) in product(base, ((1, 0.5), (3, 0.5), (6, 0.5), (3, 0.2))):
        error = turned(base[name] / (1 if kind == "in part" else qd * share), kind)
        figures = {
            "error": error,
            "positive": error,
            "negative": error,
            "rows per group": 6.0,
            "published": 1.0,
        }
        rows.append(with_errors({"diverse": "X", "method": name, "qd": qd, "selectivity": share}, **figures))
    return rows


def beta_rows(kind: Kind) -> Rows:
    middle = {"as printed": 0.1, "in part": 0.6, "the opposite": 0.6}[kind]
    end = 0.1 if kind == "the opposite" else 1.0
    figures = [(1.0, 0.0, 1.0), (0.2, 0.15, middle), (0.0, end, 0.9)]
    return [
        {"beta": b, "association loss": a, "information exposure": e, "best association loss": a}
        for b, a, e in figures
    ]


def number_rows(kind: Kind) -> Rows:
    power = {"as printed": 1.5, "in part": 8.0, "the opposite": 0.9}[kind]
    return [
        {"tables": n, "association loss": 0.0 if kind == "the opposite" and n == 9 else share**power,
         "join-threat reduction": share ** (2 if kind == "the opposite" else 0.5)}
        for n in range(15, 0, -1) for share in [(n - 1) / 14]
    ]  # fmt: skip


def sample_rows(kind: Kind) -> Rows:
    def tables(s: int) -> float:
        return {"as printed": min(s, 9), "in part": s, "the opposite": 20 - s}[kind]

    return [
        {"attributes": s, "samples": 5, "mean tables": tables(s), "tables of the first attributes": s}
        for s in range(2, 16)
    ]


def cap_rows(kind: Kind) -> Rows:
    rows = []
    for cap, tables in product((1, 2), (1, 4, 15)):
        improvement = (tables - 1) / 100 / (cap if kind == "as printed" else 1 / cap)
        near = cap / 10 if kind == "the opposite" else 1 / cap
        if kind == "the opposite":
            improvement = cap / tables
        rows.append({"cap": cap, "tables": tables, "improvement": improvement, "closeness": near})
    return rows


def k_rows(kind: Kind) -> Rows:
    plans = {"as printed": (6, 6, 0), "in part": (6, 6, 6), "the opposite": (6, 5, 6)}[kind]
    backwards = kind == "the opposite"
    return [
        {"k": k, "k-anonymisations": 5 * (i + 1) if backwards else 9 - i, "plans with t = 0.4": n,
         "closeness of one table": 0.4, "best closeness of a plan": 0.5 if backwards else 0.3}
        for i, (k, n) in enumerate(zip((2, 20, 100), plans, strict=True))
    ]  # fmt: skip


def knowledge_rows(kind: Kind) -> Rows:
    def disclosed(k: int) -> float:
        return {"as printed": (k + 1) / 14, "in part": (k + 1) / 15, "the opposite": 0.5 - k / 100}[kind]

    more = 0.1 if kind == "the opposite" else -0.01
    return [{"k": k, "implications": disclosed(k), "negations": disclosed(k) + more} for k in range(14)]


def entropy_rows(kind: Kind) -> Rows:
    def disclosed(k: int, entropy: float) -> float:
        rising = k / 20 if kind == "as printed" else (12 - k) / 20
        return rising * entropy if kind == "the opposite" else rising / entropy

    return [
        {"table": str(e), "entropy": e, "k": k, "disclosure": disclosed(k, e)}
        for e, k in product((1.0, 2.0), martin.KNOWLEDGE)
    ]


def disclosure_rows(kind: Kind) -> Rows:
    found = {
        "as printed": {(400, 2): 6, (400, 3): 2, (4000, 2): 4, (4000, 3): 1},
        "in part": {(400, 2): 2, (400, 3): 6, (4000, 2): 4, (4000, 3): 1},
        "the opposite": {(400, 2): 0, (400, 3): 0, (4000, 2): 0, (4000, 3): 0},
    }[kind]
    names = ("disclosures at the printed node", "suppressed at the printed node")
    return [
        {"size": size, "k": k, "seed": 0, "disclosures": n, **dict.fromkeys(names, n)}
        for (size, k), n in found.items()
    ]


TOLD: dict[str, tuple[Callable[[Sequence[Any]], Outcome], Callable[[Kind], Rows]]] = {
    "wong 2": (wong_attack.told, attack_rows),
    "wong 3, 4": (wong_mask.told_against_size, size_rows),
    "wong 5": (wong_mask.told_two_tables, two_table_rows),
    "wong 6": (wong_mask.told_answered, lambda kind: answered_rows(kind, "selectivity")),
    "wong 6, second": (wong_mask.told_answered, lambda kind: answered_rows(kind, "share")),
    "cormode 3 ab": (cormode.told_diversity, diversity_rows),
    "cormode 4": (cormode.told_chances, chance_rows),
    "cormode 5": (cormode_queries.told_queries, query_rows),
    "codip 5": (codip.told_betas, beta_rows),
    "codip 6": (codip.told_numbers, number_rows),
    "codip 7": (codip.told_samples, sample_rows),
    "codip 8": (codip.told_caps, cap_rows),
    "codip 9": (codip.told_ks, k_rows),
    "martin 5": (martin.told_knowledge, knowledge_rows),
    "martin 6": (martin.told_entropies, entropy_rows),
    "truta 8": (truta.told_samples, disclosure_rows),
}


@pytest.mark.parametrize("kind", MEANS)
@pytest.mark.parametrize("figure", TOLD)
def test_each_figure_can_have_each_verdict(figure: str, kind: Kind) -> None:
    tell, rows = TOLD[figure]
    outcome = tell(rows(kind))
    assert outcome.verdict == MEANS[kind], outcome.found
    assert outcome.charts
    assert outcome.found


@pytest.mark.parametrize("kind", MEANS)
def test_the_figure_of_closeness_can_have_each_verdict(kind: Kind) -> None:
    assert cormode_closeness.judged(closeness_rows(kind))[1] == MEANS[kind]


def test_beliefs_above_their_ceiling_void_a_figure() -> None:
    rows = [row | {"ceiling": 2.4} for row in diversity_rows("as printed")]
    assert cormode.told_diversity(rows).verdict == "does not hold"


def test_times_are_medians() -> None:
    assert median_and_spread([1.0, 2.0, 3.0, 4.0, 100.0]) == (3.0, 1.0)
    assert median_and_spread([7.0]) == (7.0, 0.0)
