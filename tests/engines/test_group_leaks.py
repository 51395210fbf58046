"""What a reader of shuffled tables could learn beyond the groups: nothing, from order, numbers or containers."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from maskwright.engines.base import Engine
from maskwright.recode.plans import generalisation_plan, shuffled_plan
from tests.amounts import amount
from tests.recode.groups import ALL, KEY, PLAIN, Example, Row, example, fetch, numbers, people


def published_order(
    engine: Engine, made: Example, key: str, seed: int = 0
) -> tuple[list[int], list[str], list[int]]:
    plan = shuffled_plan(made.grouping, ALL, (), key, np.random.default_rng(seed), together=[["s", "t"]])
    quasi, sensitive = (fetch(engine, t) for t in engine.bucketize(made.table, plan).values())
    return (
        [int(r["p"] or 0) for r in quasi],
        [f"{r['s']}{r['t']}" for r in sensitive],
        [int(r["group"] or 0) for r in quasi],
    )


def test_the_two_orders_are_independent(engine: Engine) -> None:
    n = 6000
    made = example(engine, people(n), [0] * n)
    first, values, _ = published_order(engine, made, "11" * 32)
    again = published_order(engine, made, "11" * 32)
    assert (first, values) == again[:2]  # a retried task gives the same answer
    other, other_values, _ = published_order(engine, made, "22" * 32)
    place = np.argsort(other)
    limit = 5 / np.sqrt(n)
    assert abs(np.corrcoef(first, np.arange(n))[0, 1]) < limit
    assert abs(np.corrcoef(place[first], np.arange(n))[0, 1]) < limit
    true = [f"{s}{t}" for _, _, s, t in made.rows]
    for order, column in ((first, values), (other, other_values)):
        hits = sum(true[p] == v for p, v in zip(order, column, strict=True))
        assert abs(hits - n / 6) < 5 * np.sqrt(n * 5 / 36)  # the same line in both tables tells nothing
    codes = np.unique(values, return_inverse=True)[1]
    assert abs(np.corrcoef(codes, np.arange(n))[0, 1]) < limit
    assert abs(np.corrcoef(codes, first)[0, 1]) < limit
    plan = shuffled_plan(made.grouping, PLAIN, (), "33" * 32, np.random.default_rng(0), together=[["s", "t"]])
    quasi, sensitive = (fetch(engine, t) for t in engine.bucketize(made.table, plan).values())
    pairs = {row[:2]: row[2:] for row in made.rows}
    lines = zip(quasi, sensitive, strict=True)
    hits = sum(pairs[q["a"], q["b"]] == (v["s"], v["t"]) for q, v in lines)
    assert abs(hits - n / 6) < 5 * np.sqrt(n * 5 / 36)


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.parametrize("key", ["11" * 32, "22" * 32])
def test_every_permutation_is_equally_likely(engine: Engine, passes: bool, key: str) -> None:
    """Many groups of three: each is shuffled independently, and s apart from t."""
    table: list[Row] = [("1", "b0", "flu", "10"), ("2", "b0", "HIV", "10"), ("3", "b0", "cold", "20")]
    trials = 1800
    made = example(engine, table * trials, [i // 3 for i in range(3 * trials)])
    plan = shuffled_plan(made.grouping, ALL if passes else PLAIN, (), key, np.random.default_rng(1))
    groups = defaultdict[str | None, list[tuple[str | None, ...]]](list)
    for row in fetch(engine, engine.recode(made.table, plan)):
        groups[row["group"]].append((row["a"], row["s"], row["t"]))
    orders: Counter[tuple[str | None, ...]] = Counter()
    places: Counter[tuple[int, int]] = Counter()
    for group in groups.values():
        _, s, t = zip(*sorted(group), strict=True)
        orders[s] += 1
        places[s.index("cold"), t.index("20")] += 1
    assert len(groups) == trials
    assert set(orders) == set(permutations(["flu", "HIV", "cold"]))
    expected = trials / 6
    assert (
        sum((k - expected) ** 2 / expected for k in orders.values()) < 25.7
    )  # 1 in 10,000, 5 degrees of freedom
    expected = trials / 9
    chi = sum((places[i, j] - expected) ** 2 / expected for i in range(3) for j in range(3))
    assert chi < 31.8  # 1 in 10,000, 8 degrees of freedom


def test_which_rows_of_a_cell_go_where_is_drawn(engine: Engine) -> None:
    """Four equal rows, one of them in each group: with the key each of them is in each group equally often."""
    table: list[Row] = [("1", "b0", "flu", "10")] * 4
    made = example(engine, table, [0, 1, 2, 3])
    count: Counter[tuple[str | None, int]] = Counter()
    trials = amount(40, 80)
    for trial in range(trials):
        plan = generalisation_plan(made.grouping, ALL, (), f"{trial:064x}")
        for row in fetch(engine, engine.recode(made.table, plan)):
            count[row["a"], int(row["p"] or 0)] += 1
    assert len(count) == 16
    assert (
        sum((k - trials / 4) ** 2 / (trials / 4) for k in count.values()) < 33.7
    )  # 1 in 10,000, 9 degrees of freedom


def test_group_numbers_say_nothing(engine: Engine) -> None:
    table = people(48)
    made = example(engine, table, [i // 4 for i in range(48)])  # twelve groups in the order of the input
    ranks = []
    for seed in range(40):
        plan = shuffled_plan(made.grouping, ALL, (), KEY, np.random.default_rng(seed))
        group = numbers(made, plan)
        ranks.append([group[i] for i in range(1, 13)])
    mean = np.mean([np.corrcoef(r, np.arange(12))[0, 1] for r in ranks])
    assert abs(mean) < 5 / np.sqrt(40 * 11)
    assert len({tuple(r) for r in ranks}) == 40
    plans = [shuffled_plan(made.grouping, ALL, (), KEY, np.random.default_rng(7)) for _ in range(2)]
    assert numbers(made, plans[0]) == numbers(made, plans[1])


@pytest.mark.parametrize("columns", [ALL, PLAIN])
def test_containers_hold_published_values_only(
    engine: Engine, tmp_path: Path, columns: tuple[str, ...]
) -> None:
    table: list[Row] = [("1", "b0", "flu", "10"), ("2", "b0", "HIV", "20"), ("3", "b1", "cold", "10")] * 30
    made = example(engine, table, [0, -1, 1] * 30)  # nobody with HIV or a = 2 is published
    rng = np.random.default_rng(3)
    published = engine.bucketize(made.table, shuffled_plan(made.grouping, columns, (), KEY, rng))
    published["permuted"] = engine.recode(made.table, shuffled_plan(made.grouping, columns, (), KEY, rng))
    published["generalised"] = engine.recode(made.table, generalisation_plan(made.grouping, columns, (), KEY))
    for name, written in published.items():
        for form in ("csv", "parquet"):
            engine.write(written, tmp_path / name, form)
            content = (tmp_path / name).read_bytes()
            assert b"HIV" not in content
            assert b"place" not in content
        rows_ = fetch(engine, written)
        assert len(rows_) == 60
        assert all(r.get("a") != "2" and r.get("t") != "20" for r in rows_)
