"""Releases that are expanded without reading rows: every order equally likely, and the same rows as by reading them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

import maskwright as mw
from maskwright.engines.base import Engine
from maskwright.engines.sql import expansion
from maskwright.recode.plans import generalisation_plan
from tests.recode.groups import PLAIN, example, fetch, people
from tests.support import needs

TRIALS = 6000


def entries(rows: Sequence[int], groups: Sequence[int]) -> expansion.PublishedEntries:
    column = expansion.ShownColumn("v", tuple(f"v{i}" for i in range(len(rows))), None)
    codes = np.arange(1, len(rows) + 1)
    return expansion.PublishedEntries.of([column], [np.array(groups), codes], np.array(rows))


def orders(parts: Sequence[expansion.PublishedEntries]) -> Counter[tuple[tuple[int, ...], ...]]:
    """How often each order of rows (as the values of all parts) comes out, over many keys."""
    found: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for trial in range(TRIALS):
        [chunk] = expansion._shuffled(parts, expansion.generator(f"{trial:064x}", "order of rows"))
        columns = [p.packing.unpack([chunk[f"p{i}w0"]], 1).tolist() for i, p in enumerate(parts)]
        found[tuple(zip(*columns, strict=True))] += 1
    return found


def uniform(found: Counter[tuple[tuple[int, ...], ...]], outcomes: int, limit: float) -> None:
    """Chi-square with outcomes - 1 degrees of freedom; chance exceeds the limit once in 10,000."""
    assert len(found) == outcomes
    expected = TRIALS / outcomes
    assert sum((k - expected) ** 2 / expected for k in found.values()) < limit


def test_every_order_is_equally_likely() -> None:
    uniform(orders([entries([1, 1, 1, 1], [1, 1, 2, 2])]), 24, 57.1)


def test_equal_rows_are_interchangeable() -> None:
    uniform(orders([entries([2, 1, 1], [0, 0, 0])]), 12, 37.4)


def test_every_match_inside_the_groups_is_equally_likely() -> None:
    """Groups of two and one: 2 ways to match, and 6 orders of three rows."""
    rows, values = entries([1, 1, 1], [1, 1, 2]), entries([1, 1, 1], [1, 1, 2])
    found = orders([rows, values])
    uniform(found, 12, 37.4)
    assert all((pair[0] == 3) == (pair[1] == 3) for order in found for pair in order)


def test_what_is_shuffled_does_not_depend_on_the_input() -> None:
    """The same release from entries in another order, and split in another way, comes out in the same order."""
    column = expansion.ShownColumn("v", ("x", "y", "z"), None)
    zero = np.zeros(5, dtype=np.int64)
    one = expansion.PublishedEntries.of(
        [column], [zero, np.array([1, 2, 3, 2, 1])], np.array([4, 1, 2, 2, 1])
    )
    two = expansion.PublishedEntries.of([column], [zero[:3], np.array([3, 1, 2])], np.array([2, 5, 3]))
    made = [
        list(expansion._shuffled([e], expansion.generator("7" * 64, "order of rows"))) for e in (one, two)
    ]
    assert made[0][0]["p0w0"].tolist() == made[1][0]["p0w0"].tolist()


def test_chunks_keep_their_order(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of the database do not change the order that was drawn."""
    table = people(4000) * 50
    made = example(engine, table, [i % 7 for i in range(len(table))])

    def order() -> list[tuple[str | None, ...]]:
        plan = generalisation_plan(made.grouping, PLAIN, (), "5" * 64)
        return [tuple(row.values()) for row in fetch(engine, engine.recode(made.table, plan))]

    whole = order()
    monkeypatch.setattr(expansion, "CHUNK", 30_000)
    assert order() == whole
    assert whole != sorted(whole, key=str)
    assert len(whole) == len(table)


@pytest.mark.parametrize(
    "settings",
    [
        {"method": {"name": "optimal-lattice", "suppression": "0.1"}},
        {"method": {"name": "optimal-lattice", "suppression": "0.1", "suppressed_rows": "star"}},
        {"method": {"name": "mondrian"}},
    ],
    ids=["dropped", "starred", "mondrian"],
)
def test_expanded_is_what_reading_gives(settings: dict[str, object]) -> None:
    """With a column that passes through, the rows are read; the others hold the same."""
    pl = needs("polars")
    rng = np.random.default_rng(4)
    n = 700
    data = {
        "age": rng.integers(20, 60, n),
        "score": rng.integers(0, 4, n) / 2,
        "town": [None if t == 5 else f"t{t}" for t in rng.integers(0, 6, n).tolist()],
        "illness": [f"i{v}" for v in rng.integers(0, 4, n).tolist()],
        "note": ["x"] * n,
    }
    columns = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
        "score": "quasi-identifier", "town": "quasi-identifier", "illness": "sensitive",
    }  # fmt: skip
    require = [{"model": "k-anonymity", "k": 5}]
    kept = list(columns)

    def published(more: dict[str, str]) -> tuple[Counter[tuple[object, ...]], list[object]]:
        policy = {"version": 1, "columns": columns | more, "require": require} | settings
        table = mw.anonymize(pl.DataFrame(data), policy, seed=3).table.select(kept)
        return Counter(table.rows()), list(table.schema.values())

    assert published({}) == published({"note": {"role": "insensitive", "near_unique": "allow"}})
