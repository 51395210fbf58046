"""Metrics of releases against the plain definition, row by row, and the example of the docs page."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.grouping import Allocation, Grouping, Labels
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.settings import build_registered
from maskwright.domain.summary import Summary
from maskwright.methods import METHODS
from maskwright.metrics import METRICS
from maskwright.metrics.distributions import attribute_earth_movers, attribute_total_variation
from maskwright.metrics.loss import attribute_losses
from maskwright.models import MODELS
from tests.support import adult, task_of

DOCS = Path(__file__).parents[2] / "docs" / "metrics" / "README.md"


def grouping(levels: list[int], rows: list[tuple[int, ...]], drop: set[int], star: bool = False) -> Grouping:
    """Rows of codes 1..4 for each of two attributes, published at `levels`; tuples in `drop` suppressed."""
    hierarchies = tuple(
        Hierarchy.of(name, ["21", "22", "23", "24"], [("pairs", ["21-22", "21-22", "23-24", "23-24"])])
        for name in ("a", "b")
    )
    tuples = sorted(set(rows))
    counts = np.array([rows.count(t) for t in tuples], dtype=np.int64)
    codes = np.array(tuples, dtype=np.int32).T
    summary = Summary(hierarchies, codes, counts, counts, {})
    keys: dict[tuple[int, ...], int] = {}
    group_of = np.full(len(tuples), -1, dtype=np.int64)
    for i, t in enumerate(tuples):
        if i not in drop:
            key = tuple(int(h.levels[n].blocks[c]) for h, n, c in zip(hierarchies, levels, t, strict=True))
            group_of[i] = keys.setdefault(key, len(keys))
    starred = len(keys) if star and drop else None
    if starred is not None:
        group_of[sorted(drop)] = starred
    blocks = list(keys) + ([(0, 0)] if starred is not None else [])
    labels = []
    for a, h in enumerate(hierarchies):
        level = h.levels[levels[a]]
        texts, coverage = (*level.labels, "*"), np.append(level.leaves, h.base)
        of_group = np.array([len(level.labels) if g == starred else key[a] for g, key in enumerate(blocks)])
        labels.append(Labels(h.attribute, texts, coverage, of_group.astype(np.int32)))
    allocation = Allocation(np.arange(len(tuples)), group_of, counts)
    classes = summary.classes(group_of, len(blocks))
    return Grouping(summary, allocation, tuple(labels), classes, tuple(levels), starred)


WIDTH = {0: 1, 1: 2, 2: 4}
cases = st.tuples(
    st.lists(st.integers(0, 2), min_size=2, max_size=2),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=2, max_size=12),
    st.booleans(),
    st.booleans(),
)


@given(cases)
def test_against_the_definitions(case: tuple[list[int], list[tuple[int, int]], bool, bool]) -> None:
    levels, rows, some_dropped, star = case
    tuples = sorted(set(rows))
    drop = {0} if some_dropped and len(tuples) > 1 else set()
    g = grouping(levels, rows, drop, star)
    gone = [r in {tuples[i] for i in drop} for r in rows]
    loss = [
        Fraction(sum(3 if lost else WIDTH[level] - 1 for lost in gone), 3 * len(rows)) for level in levels
    ]
    assert list(attribute_losses(g).values()) == loss
    weights = {"a": Fraction(1), "b": Fraction(3)}
    measured = {name: m.measure(g, weights) for name, m in METRICS.items() if not m.on_request}
    assert measured["information-loss"] == (loss[0] + 3 * loss[1]) / 4
    assert measured["granularity"] == 1 - (loss[0] + loss[1]) / 2
    assert math.isclose(measured["arx-loss"], math.sqrt((1 + loss[0]) * (1 + loss[1])) - 1, abs_tol=1e-12)
    precision = [Fraction(sum(2 if lost else level for lost in gone), 2 * len(rows)) for level in levels]
    assert measured["precision"] == sum(precision) / 2
    kept: dict[tuple[int, ...], int] = {}
    for r, lost in zip(rows, gone, strict=True):
        if not lost:
            key = tuple((c - 1) // WIDTH[level] for c, level in zip(r, levels, strict=True))
            kept[key] = kept.get(key, 0) + 1
    assert measured["discernibility"] == sum(n * n for n in kept.values()) + sum(gone) * len(rows)
    assert measured["average-class-size"] == Fraction(len(rows), len(kept) + any(gone))
    assert measured["suppression"] == Fraction(sum(gone), len(rows))


def test_the_example_of_the_docs() -> None:
    ages = [(1, 1)] * 2 + [(2, 1)] * 2 + [(3, 1), (4, 1)]
    g = grouping([1, 0], ages, set())
    assert attribute_losses(g)["a"] == Fraction(1, 3)
    measured = {name: m.measure(g, {}) for name, m in METRICS.items()}
    assert measured["discernibility"] == 20
    assert measured["average-class-size"] == 3
    assert measured["suppression"] == 0
    assert math.isclose(measured["non-uniform-entropy"], 4 * 1 + 2 * 1)
    assert measured["distribution-distance"] == 0
    assert measured["earth-movers-distance"] == 0
    uneven = grouping([1, 0], [(1, 1)] * 3 + [(2, 1)] + [(3, 1), (4, 1)], set())
    assert math.isclose(attribute_total_variation(uneven)["a"], 1 / 6)
    assert math.isclose(attribute_earth_movers(uneven)["a"], 1 / 12)


@pytest.mark.parametrize("objective", ["non-uniform-entropy", "information-loss", "arx-loss", "precision"])
@pytest.mark.parametrize("suppressed_rows", ["drop", "star"])
def test_the_metric_is_the_score_that_the_search_minimised(objective: str, suppressed_rows: str) -> None:
    summary = adult("occupation")
    options = {"objective": objective, "suppression": "3%", "suppressed_rows": suppressed_rows}
    method = build_registered(METHODS, "method", "optimal-lattice", options, "test")
    weights = {"age": Fraction(3), "sex": Fraction(1, 2)} if objective != "precision" else {}
    models = [build_registered(MODELS, "model", "k-anonymity", {"k": 5}, "test")]
    found = method.group(task_of(summary, models, weights=weights))
    assert found.suppressed_rows > 0
    score = float(Fraction(found.search["score"]))
    if objective == "arx-loss":  # the metric is ARX's own score, without weights
        weights, found = {}, method.group(task_of(summary, models))
        score = float(Fraction(found.search["score"]))
    assert math.isclose(METRICS[objective].measure(found, weights), score, rel_tol=1e-6)


def test_every_metric_has_its_section() -> None:
    headings = [line[3:] for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("## ")]
    assert sorted(headings) == sorted(METRICS)
