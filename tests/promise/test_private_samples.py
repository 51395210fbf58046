"""δ by every sample of small tables, both ways, and by exact sums; and the fewest rows of a class that δ asks for."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from maskwright.domain.grouping import Grouping
from maskwright.errors import PolicyNotMet
from maskwright.methods.dp_sample import DpSample
from maskwright.promise.lemmas.private_samples import WORD, delta_at_most, keeping_threshold, smallest_k
from tests.methods.row_tables import build

HALF = WORD // 2  # the threshold of ε = ln 2


def exact_delta(k: int, keep: Fraction, most: int) -> Fraction:
    """The hockey-stick divergence of truncated binomials from its definition, both ways, for n up to `most`."""
    factor = 1 / (1 - keep)

    def truncated(n: int) -> dict[int, Fraction]:
        found: Counter[int] = Counter()
        for x in range(n + 1):
            found[x if x >= k else 0] += math.comb(n, x) * keep**x * (1 - keep) ** (n - x)  # type: ignore[assignment]
        return dict(found)  # type: ignore[arg-type]

    worst = Fraction(0)
    for n in range(1, most + 1):
        with_row, without = truncated(n), truncated(n - 1)
        for p, q in ((with_row, without), (without, with_row)):
            above = sum((max(Fraction(0), p[x] - factor * q.get(x, 0)) for x in p), Fraction(0))
            worst = max(worst, above)
    return worst


@pytest.mark.parametrize(
    ("k", "delta"), [(3, Fraction(1, 8)), (5, Fraction(3, 64)), (10, Fraction(31, 4096))]
)
def test_delta_of_published_figures(k: int, delta: Fraction) -> None:
    assert exact_delta(k, Fraction(1, 2), 4 * k) == delta
    found = delta_at_most(k, 0.5)
    assert delta <= found < delta * Fraction(1_000_001, 1_000_000)


@pytest.mark.parametrize(
    ("epsilon", "delta", "k"), [(1, 1e-5, 46), (1, 1e-6, 58), (2, 1e-5, 92), (None, 1e-5, 39)]
)
def test_fewest_rows_of_a_class(epsilon: int | None, delta: float, k: int) -> None:
    keep = 0.5 if epsilon is None else keeping_threshold(Fraction(epsilon)) / WORD
    assert smallest_k(delta, keep) == k
    assert delta_at_most(k - 1, keep) > delta


def bound_of_the_paper(k: int, epsilon: float) -> float:
    """The δ of SafePub (Bild, Kuhn, Prasser 2018): max over n ≥ k/γ − 1 of P(Bin(n, β) > γ·n)."""
    beta = 1 - math.exp(-epsilon)
    gamma = (math.exp(epsilon) - 1 + beta) / math.exp(epsilon)
    first = max(1, math.ceil(k / gamma - 1))
    return max(float(stats.binom.sf(math.floor(gamma * n), n, beta)) for n in range(first, first + 60))


@pytest.mark.parametrize(
    ("epsilon", "delta", "k"),
    [(1.0, 1e-5, 61), (math.log(2), 1e-5, 53), (1.0, 1e-6, 74), (2.0, 1e-5, 113)],
)
def test_the_usual_bound_asks_for_more(epsilon: float, delta: float, k: int) -> None:
    """The figures of the page that ours stand beside."""
    assert bound_of_the_paper(k, epsilon) <= delta < bound_of_the_paper(k - 1, epsilon)


@pytest.mark.parametrize("keep", [Fraction(1, 20), Fraction(1, 3), Fraction(1, 2), Fraction(19, 20)])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_delta_is_no_less_than_the_exact_one(keep: Fraction, k: int) -> None:
    exact = exact_delta(k, keep, 60 if keep > Fraction(1, 10) else 130)
    assert exact <= delta_at_most(k, float(keep)) <= float(exact) * (1 + 1e-6)


def test_threshold_keeps_no_more_than_asked() -> None:
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(10)):
        keep = Fraction(keeping_threshold(epsilon), WORD)
        assert math.isclose(-math.log1p(-float(keep)), epsilon, rel_tol=1e-9)
        assert float(1 - keep) >= math.exp(-float(epsilon)) * (1 - 1e-12)


class Listed:
    """Random words that are given: of rows that are kept, and of others."""

    def __init__(self, kept: tuple[int, ...]) -> None:
        self.kept = kept

    def integers(self, low: int, high: int, count: int, dtype: Any) -> np.ndarray:
        assert (low, high, count) == (0, WORD, len(self.kept))
        return np.array([0 if k else WORD - 1 for k in self.kept], dtype=dtype)


def outcomes(rows: list[tuple[str, str]], method: DpSample) -> dict[Any, Fraction]:
    """What is published of a table, with its probability: all samples are listed."""
    table = build([[q] for q, _ in rows], {"s": [s for _, s in rows]}, ordered=False)
    task = table.task([])
    keep = Fraction(keeping_threshold(method.epsilon), WORD)
    found: Counter[Any] = Counter()
    for kept in itertools.product((0, 1), repeat=len(rows)):
        try:
            drawn = replace(
                task, rng=Listed(kept), levels={h.attribute: [0] for h in table.summary.attributes}
            )
            shown = published(method.group(drawn))
        except PolicyNotMet:
            shown = ()
        found[shown] += math.prod(keep if k else 1 - keep for k in kept)  # type: ignore[assignment]
    assert sum(found.values()) == 1
    return dict(found)  # type: ignore[arg-type]


def published(grouping: Grouping) -> tuple[Any, ...]:
    """The rows of every class of all columns, as a reader counts them."""
    counts = grouping.classes.sensitive["s"]
    texts = [grouping.labels[0].texts[i] for i in grouping.labels[0].of_group.tolist()]
    return tuple(
        sorted(
            (texts[g], counts.values[code - 1], n)
            for g in range(grouping.classes.n)
            for code, n in zip(
                counts.codes[counts.start[g] : counts.start[g + 1]].tolist(),
                counts.counts[counts.start[g] : counts.start[g + 1]].tolist(),
                strict=True,
            )
        )
    )


@pytest.mark.parametrize("row", [("a", "x"), ("a", "y"), ("b", "x"), ("c", "z")])
def test_every_sample_of_two_tables_that_differ_in_a_row(row: tuple[str, str]) -> None:
    """No set of releases is more than e^ε times as likely, and δ more, with the row than without it."""
    method = DpSample(epsilon="0.7", delta="1/2", k=2)
    table = [("a", "x")] * 3 + [("a", "y")] * 2 + [("b", "x")]
    without, with_row = outcomes(table, method), outcomes([*table, row], method)
    factor = 1 / (1 - Fraction(keeping_threshold(method.epsilon), WORD))
    delta = delta_at_most(2, float(1 - 1 / factor))
    for p, q in ((with_row, without), (without, with_row)):
        above = sum((max(Fraction(0), p[x] - factor * q.get(x, 0)) for x in p), Fraction(0))
        assert above <= delta
    n = Counter(table)[row] + 1  # what was computed for one class is what the whole table shows
    one_class = exact_delta(2, 1 - 1 / factor, n) if n >= 2 else Fraction(0)
    largest = max(
        sum((max(Fraction(0), with_row[x] - factor * without.get(x, 0)) for x in with_row), Fraction(0)),
        Fraction(0),
    )
    assert largest <= one_class


def test_the_worst_number_of_rows_is_reached() -> None:
    """With three rows of a class before, and a fourth: exactly the δ of n = 4."""
    method = DpSample(epsilon="0.7", delta="1/2", k=2)
    keep = Fraction(keeping_threshold(method.epsilon), WORD)
    without, with_row = outcomes([("a", "x")] * 3, method), outcomes([("a", "x")] * 4, method)
    above = sum(
        (max(Fraction(0), with_row[x] - without.get(x, 0) / (1 - keep)) for x in with_row), Fraction(0)
    )
    only = [exact_delta(2, keep, n) for n in (3, 4)]
    assert above <= only[1]
    assert above > 0
