"""Every permutation is equally likely: chi-square over all orders of groups of three, through the whole pipeline.

The limits are exceeded by chance once in a million; there are about 40 such tests here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import maskwright as mw
from maskwright.domain.method import Method
from maskwright.domain.model import Model
from maskwright.kernels.randomness import random_generator, secret_key
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from tests.amounts import cases
from tests.leaks.tables import as_kind, columns_of
from tests.methods.row_tables import Table, build

ONCE_IN = 1e6
TOWNS = 600
THREE = 3


def uniform(found: Counter[Any], outcomes: Iterable[Hashable]) -> None:
    """All outcomes are equally likely, and there are no others."""
    outcomes = list(outcomes)
    assert set(found) <= set(outcomes)
    expected = found.total() / len(outcomes)
    assert expected >= 20, "too few to tell"
    chi = sum((found[o] - expected) ** 2 / expected for o in outcomes)
    assert chi < chi2.isf(1 / ONCE_IN, len(outcomes) - 1), dict(found)


def test_a_biased_shuffle_is_seen() -> None:
    """Swapping each card with any card, the classic mistake, is caught with as many groups as are used here."""
    rng, found = np.random.default_rng(0), Counter[Any]()
    for _ in range(8 * TOWNS):
        cards = [0, 1, 2]
        for i in range(3):
            j = int(rng.integers(3))
            cards[i], cards[j] = cards[j], cards[i]
        found[tuple(cards)] += 1
    with pytest.raises(AssertionError):
        uniform(found, permutations(range(3)))


def towns() -> dict[str, list[Any]]:
    """Three people in each of many towns, in order of town and age; each has a disease and a ward of their own."""
    rows = [(t, p) for t in range(TOWNS) for p in range(THREE)]
    return {
        "town": [f"t{t:03d}" for t, _ in rows],
        "age": [20 + p for _, p in rows],
        "disease": [f"d{p}" for _, p in rows],
        "ward": [f"w{p}" for _, p in rows],
    }


def published(recoding: str, passes: bool, seed: int | None, folder: Path) -> dict[str, dict[str, list[Any]]]:
    columns: dict[str, Any] = {
        "town": {"role": "quasi-identifier", "hierarchy": "suppress", "levels": [0]},
        "age": {"role": "quasi-identifier", "hierarchy": "suppress"},
        "disease": "sensitive",
    }
    if passes:
        columns["ward"] = {"role": "insensitive", "near_unique": "allow"}
    made = mw.Policy.load(
        {"version": 1, "columns": columns, "require": [{"model": "k-anonymity", "k": 3}],
         "method": {"name": "optimal-lattice"}, "recoding": recoding}
    )  # fmt: skip
    job = Job(as_kind(towns(), "polars", folder), made, seed=seed, attacks=())
    return {name: columns_of(table, "polars") for name, table in publish_release(job).tables.items()}


CASES = [("generalise", True), ("generalise", False), ("bucketize", True), ("bucketize", False),
         ("permute", True), ("permute", False)]  # fmt: skip


BRIEF = [(case, [None, 1, 1][i % 3]) for i, case in enumerate(CASES)]


@pytest.mark.parametrize(("how", "seed"), cases(product(CASES, [None, 1]), brief=BRIEF), ids=str)
def test_rows_groups_and_values(how: tuple[str, bool], seed: int | None, tmp_path: Path) -> None:
    recoding, passes = how
    tables = published(recoding, passes, seed, tmp_path)
    for columns in tables.values():
        by = columns.get("town") or columns["group"]
        who = columns["age"] if "town" in columns and recoding != "generalise" else columns["disease"]
        orders = defaultdict[str, list[str]](list)
        for group, person in zip(by, who, strict=True):
            orders[group].append(person)
        assert len(orders) == TOWNS
        uniform(Counter(map(tuple, orders.values())), permutations(sorted(set(who))))
        if "town" in columns:  # all towns: which of three neighbours comes first in the file
            first = {town: i for i, town in reversed(list(enumerate(columns["town"])))}
            uniform(Counter(_order([first[t] for t in three]) for three in _threes()), permutations(range(3)))
        if "group" in columns and "town" in columns:
            number = dict(zip(columns["town"], map(int, columns["group"]), strict=True))
            uniform(
                Counter(_order([number[t] for t in three]) for three in _threes()), permutations(range(3))
            )
    if recoding == "permute":  # who gets which value
        columns = tables["data"]
        match = defaultdict[str, dict[str, str]](dict)
        for town, age, disease in zip(columns["town"], columns["age"], columns["disease"], strict=True):
            match[town][age] = disease
        uniform(
            Counter(tuple(m[a] for a in sorted(m)) for m in match.values()), permutations(["d0", "d1", "d2"])
        )


def _threes() -> list[list[str]]:
    return [[f"t{3 * i + j:03d}" for j in range(3)] for i in range(TOWNS // 3)]


def _order(numbers: list[int]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argsort(numbers))


# --- methods that choose among equals -----------------------------------------------------------------


def grouped(method: Method, table: Table, model: Model, trial: int | None) -> frozenset[Any]:
    """The groups, each as the multiset of its people: their quasi-identifier and their value."""
    task = replace(table.task([model], 0), rng=random_generator(secret_key(trial), "method"))
    grouping = method.group(task)
    joint = grouping.summary.joint
    assert joint is not None
    groups = defaultdict[int, list[tuple[int, int, int]]](list)
    for cell, group, rows in zip(*(column.tolist() for column in grouping.cells), strict=True):
        tuple_ = int(joint.tuples[cell])
        groups[group].append((int(grouping.summary.codes[0][tuple_]), int(joint.values[0][cell]), rows))
    return frozenset(tuple(sorted(g)) for g in groups.values())


SAME = [(1,)] * 4
TWO = {"model": "k-anonymity", "k": 2}
DIVERSE = {"model": "simple-l-diversity", "l": 2}


@pytest.mark.parametrize("seeded", [True, False], ids=["seeded", "unseeded"])
@pytest.mark.parametrize(
    ("method", "options", "requirement", "qi", "values", "outcomes"),
    [
        # two of the four in the middle go to the left half
        ("mondrian", {"cut": "relaxed"}, TWO, [(0,), *[(1,)] * 4, (2,)], "xabcdy", 6),
        ("mondrian", {"cut": "balanced"}, TWO, [(0,), *[(1,)] * 4, (2,)], "xabcdy", 6),
        # two buckets of a and b: the a of the first person comes with the b of either
        ("anatomy", {"l": 2}, DIVERSE, [(1,), (2,), (1,), (2,)], "aabb", 2),
        # four people whom nothing tells apart, two by two
        ("symmetric-grouping", {}, DIVERSE, SAME, "abcd", 3),
        ("greedy-grouping", {}, DIVERSE, SAME, "abcd", 3),
    ],
)
def test_which_equals_come_together(
    method: str,
    options: dict[str, Any],
    requirement: dict[str, Any],
    qi: Any,
    values: str,
    outcomes: int,
    seeded: bool,
) -> None:
    made, table = METHODS[method](**options), build(qi, {"s": list(values)})
    model = MODELS[requirement["model"]](**{k: v for k, v in requirement.items() if k != "model"})
    found = Counter(grouped(made, table, model, t if seeded else None) for t in range(60 * outcomes))
    assert len(found) == outcomes
    uniform(found, list(found))
