"""Ties do not depend on the order of the input: a seeded release of the same rows in another order is the same.

Where the search or the grouping meets equals, the choice is by a rule on values or by the secret key, never by which
row came first. So for a fixed key everything but the order of equal rows is a function of the table as a set of rows.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from tests.amounts import amount
from tests.leaks.tables import METHODS, as_kind, columns_of, forget_key, people, policy

N = 160


def tied(seed: int) -> dict[str, list[Any]]:
    """Few values, many equal rows and symmetric columns: ties wherever there can be one."""
    rng = np.random.default_rng(seed)
    data = people(N, seed)
    data["age"] = (20 + 4 * rng.integers(0, 6, N)).tolist()
    data["zip"] = [f"1{z}" for z in rng.integers(0, 6, N).tolist()]
    return data


def rearranged(data: dict[str, list[Any]], order: Any) -> dict[str, list[Any]]:
    return {name: [values[i] for i in order] for name, values in data.items()}


def released(data: dict[str, list[Any]], made: dict[str, Any], folder: Path) -> tuple[Any, ...]:
    """Groups by their labels and counts, and the rows of every table as a multiset."""
    job = Job(as_kind(data, "polars", folder), mw.Policy.load(made), seed=11, attacks=())
    release = publish_release(job)
    tables = {}
    for name, table in release.tables.items():
        columns = columns_of(table, "polars")
        tables[name] = Counter(zip(*columns.values(), strict=True))
    groups = [
        (g.levels, g.classes.sizes.tolist(), [[lb.texts[i] for i in lb.of_group.tolist()] for lb in g.labels],
         {n: (v.start.tolist(), v.codes.tolist(), v.counts.tolist()) for n, v in g.classes.sensitive.items()})
        for g in release.groupings
    ]  # fmt: skip
    return groups, tables, {k: str(v) for k, v in release.metrics.items()}


CASES = [(method, "generalise" if method == "codip" else "permute") for method in METHODS]
CASES += [("mondrian", "generalise"), ("optimal-lattice", "bucketize")]


@pytest.mark.parametrize(("method", "recoding"), CASES)
def test_the_same_release_from_another_order(method: str, recoding: str, tmp_path: Path) -> None:
    made = policy(method, recoding)
    data = tied(5)
    expected = released(data, made, tmp_path)
    orders = [
        np.lexsort((data["age"], data["disease"])),
        np.random.default_rng(3).permutation(N),
    ]
    for order in orders[: amount(1, 2)]:
        assert released(rearranged(data, order), made, tmp_path) == expected


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    made = policy("mondrian")
    other = tied(5)
    other["age"][0] = 40 if other["age"][0] != 40 else 20
    assert released(other, made, tmp_path) != released(tied(5), made, tmp_path)


def test_unseeded_ties_are_drawn(tmp_path: Path) -> None:
    """Without a seed equal people do not end in the same groups on another installation; on the same one they do."""
    source = as_kind(tied(5), "polars", tmp_path)
    made = mw.Policy.load(policy("anatomy", "permute"))
    groups = list[Any]()
    for i in range(12):
        if i % 2 == 0:
            forget_key()
        grouping = publish_release(Job(source, made, attacks=())).grouping
        groups.append((tuple(grouping.allocation.cells.tolist()), tuple(grouping.allocation.groups.tolist())))
    assert groups[::2] == groups[1::2]
    assert len(set(groups)) == 6
