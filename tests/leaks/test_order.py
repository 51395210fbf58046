"""The order of rows and the numbers of groups against the order of the input.

Each statistic is beyond its limit by chance less than once in 1.7 million; this file looks at about 500 of them, so
that it fails by chance less than once in 3,000 runs. That the statistics see what they must is shown on orders that are
wrong, and on the product itself with its shuffling switched off.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwright.engines import expansion, grouped
from maskwright.methods import METHODS as REGISTERED
from tests.leaks.chance import ODDS, statistics, telling, together
from tests.leaks.tables import KINDS, METHODS, RECODINGS, people, policy, publish

N = 600
RUNS = 6


def found_in(tables: dict[str, dict[str, list[Any]]]) -> dict[str, float]:
    """Every column of every table along its rows; the numbers of groups against the age of their members."""
    found = {}
    for name, columns in tables.items():
        for column, values in columns.items():
            found |= {f"{name} {column} {k}": z for k, z in statistics(values).items()}
        if "group" in columns and ("age" in columns or "when" in columns):
            of_group: dict[int, list[float]] = {}
            for g, value in zip(columns["group"], columns.get("when", columns.get("age", [])), strict=True):
                if value != "*":
                    of_group.setdefault(int(g), []).append(float(value.split("-")[0]))
            means = [float(np.mean(of_group[g])) for g in sorted(of_group)]
            found |= (
                {f"{name} numbers {k}": z for k, z in statistics(means).items()} if len(means) > 20 else {}
            )
    return found


def test_every_method_is_here() -> None:
    assert set(METHODS) == set(REGISTERED)
    assert ODDS < 1 / 1_700_000


# --- the statistics see what they must ----------------------------------------------------------------


def wrong_orders(n: int) -> dict[str, list[int]]:
    rng = np.random.default_rng(1)
    rows = np.arange(n)
    blocks = rows.reshape(-1, 10)
    return {
        "as it was": rows.tolist(),
        "backwards": rows[::-1].tolist(),
        "begun in the middle": np.roll(rows, n // 2).tolist(),
        "blocks of ten in random order": rng.permutation(blocks).reshape(-1).tolist(),
        "shuffled inside blocks of ten": rng.permuted(blocks, axis=1).reshape(-1).tolist(),
        "pairs in random order": rng.permutation(rows.reshape(-1, 2)).reshape(-1).tolist(),
        "a tenth of the rows left in place": np.where(rows % 10 == 0, rows, rng.permutation(n)).tolist(),
    }


@pytest.mark.parametrize("kind", list(wrong_orders(N)))
def test_wrong_orders_are_seen(kind: str) -> None:
    runs = [statistics([row // 10 for row in wrong_orders(N)[kind]]) for _ in range(RUNS)]
    assert telling(together(runs))


def test_random_orders_are_not() -> None:
    """Of 4,000 random orders of tied values none is called telling, and the statistics are as normal as promised."""
    rng = np.random.default_rng(2)
    found = [statistics(rng.permutation([i // 10 for i in range(200)]).tolist()) for _ in range(4000)]
    assert not any(telling(f) for f in found)
    for name in ("trend", "neighbours"):
        z = np.array([f[name] for f in found])
        assert abs(z.mean()) < 5 / np.sqrt(4000)
        assert abs(z.std() - 1) < 0.06


@pytest.mark.parametrize("passes", [True, False], ids=["rows are read", "rows are expanded"])
@pytest.mark.parametrize("recoding_", ["generalise", "bucketize", "permute"])
def test_the_product_without_its_shuffling_is_caught(
    recoding_: str, passes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def still(*_: Any) -> None:
        """Everything stays where it is."""

    monkeypatch.setattr(expansion, "shuffle_within", still)
    monkeypatch.setattr(grouped, "shuffle_within", still)
    made = policy("mondrian", recoding_, passes)
    found = found_in(publish(people(N), made, "pandas", tmp_path))
    tables = {key.split(" ")[0] for key in telling(found)}
    assert tables == {key.split(" ")[0] for key in found}, "every table shows its order"


# --- the product --------------------------------------------------------------------------------------


@pytest.mark.parametrize("passes", [True, False], ids=["rows are read", "rows are expanded"])
@pytest.mark.parametrize("recoding_", list(RECODINGS))
@pytest.mark.parametrize("seeded", [True, False], ids=["seeded", "unseeded"])
def test_over_many_runs(recoding_: str, passes: bool, seeded: bool, tmp_path: Path) -> None:
    made = policy("mondrian", recoding_, passes)
    runs = [
        found_in(publish(people(N), made, "pandas", tmp_path, seed=i if seeded else None))
        for i in range(RUNS if seeded else 2)
    ]
    assert telling(together(runs)) == {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("recoding_", ["generalise", "bucketize", "permute"])
def test_in_every_container(kind: str, recoding_: str, tmp_path: Path) -> None:
    """Many rows, so that files have several parts and the engine several threads."""
    data = people(30_000 if recoding_ == "generalise" else 6_000)
    for passes in (True, False):
        assert telling(found_in(publish(data, policy("mondrian", recoding_, passes), kind, tmp_path))) == {}


@pytest.mark.parametrize("method", list(METHODS))
def test_of_every_method(method: str, tmp_path: Path) -> None:
    for recoding_ in ["generalise" if method == "codip" else "permute"]:
        runs = [
            found_in(publish(people(N // 2, seed), policy(method, recoding_), "pandas", tmp_path, seed))
            for seed in range(2)
        ]
        assert (
            telling(together([{k: r[k] for k in runs[0] if all(k in o for o in runs)} for r in runs])) == {}
        )


@pytest.mark.parametrize(("method", "recoding_"), [("codip", "generalise"), ("mondrian", "bucketize")])
def test_the_same_line_of_two_tables(method: str, recoding_: str, tmp_path: Path) -> None:
    """Tables of one release are in orders of their own: the same line is about the same class by chance only."""
    first, second = publish(people(3000), policy(method, recoding_), "pandas", tmp_path).values()
    shared = [c for c in first if c in second]
    assert shared in (["age", "zip"], ["group"])
    rows = [list(zip(*(t[c] for c in shared), strict=True)) for t in (first, second)]
    hits = sum(a == b for a, b in zip(*rows, strict=True))
    classes, counts = np.unique(np.array([str(r) for r in rows[0]]), return_counts=True)
    others = dict(zip(*np.unique(np.array([str(r) for r in rows[1]]), return_counts=True), strict=True))
    chance = sum(int(n) * int(others.get(c, 0)) for c, n in zip(classes, counts, strict=True)) / len(rows[0])
    assert abs(hits - chance) < 5 * np.sqrt(chance) + 5
