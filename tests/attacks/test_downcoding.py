"""Downcoding: the published fractions, every assignment listed, and whole releases recounted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maskwright as mw
from maskwright.attacks.downcoding import range_beliefs, set_beliefs, split_beliefs

TENTHS = (Fraction(1, 10),) * 10
SHARES = st.lists(st.integers(1, 5), min_size=2, max_size=4).map(
    lambda parts: tuple(Fraction(p, sum(parts)) for p in parts)
)


def test_published_fractions() -> None:
    assert split_beliefs((Fraction(9, 10), Fraction(1, 10)), 2) == (Fraction(1, 2), Fraction(1, 2))
    assert split_beliefs((Fraction(2, 100), Fraction(98, 100)), 5)[0] == Fraction(42517, 204250)
    assert range_beliefs(TENTHS, 5)[0] == range_beliefs(TENTHS, 5)[-1] == Fraction(3439, 14670)
    assert range_beliefs(TENTHS, 2) == (Fraction(1, 2), *[Fraction(0)] * 8, Fraction(1, 2))


def by_listing(shares: Sequence[Fraction], rows: int, fits: Callable[[set[int]], bool]) -> list[Fraction]:
    """P(the first row lies in each part), over all assignments of parts to rows that fit."""
    found, total = [Fraction(0)] * len(shares), Fraction(0)
    for parts in product(range(len(shares)), repeat=rows):
        if fits(set(parts)):
            weight = Fraction(1)
            for part in parts:
                weight *= shares[part]
            found[parts[0]] += weight
            total += weight
    return [f / total for f in found] if total else list(shares)


@given(SHARES, st.integers(2, 4))
def test_by_listing_every_assignment(shares: tuple[Fraction, ...], rows: int) -> None:
    last = len(shares) - 1
    assert list(split_beliefs(shares, rows)) == by_listing(shares, rows, lambda there: len(there) > 1)
    assert list(range_beliefs(shares, rows)) == by_listing(shares, rows, lambda there: {0, last} <= there)
    assert list(set_beliefs(shares, rows)) == by_listing(
        shares, rows, lambda there: len(there) == len(shares)
    )


def policy(**method: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}},
            "town": {"role": "quasi-identifier", "hierarchy": "suppress"},
        },
        "require": [{"model": "k-anonymity", "k": 2}], "method": method,
    }  # fmt: skip


TABLE = pd.DataFrame({"age": [20, 20, 20, 31, 40, 40], "town": ["a"] * 4 + ["b"] * 2})


def test_a_pair_is_known(tmp_path: Path) -> None:
    """Local recoding: the class of the person of 31 holds others, and its label says so."""
    release = mw.anonymize(TABLE, policy(name="local-recoding"))
    release.save(tmp_path / "r")
    found = mw.attack(tmp_path / "r", "downcoding")
    assert mw.attack(release, "downcoding").as_dict() == found.as_dict()
    wide = sum(str(age) not in ("20", "31", "40") for age in release.table["age"])
    wide += sum(town not in ("a", "b") for town in release.table["town"])
    assert (found.kind, found.measures["generalised_cells"]) == ("exact", wide)
    # 20 with 1/2, 31 with 1/6 and 40 with 1/3 before; the four rows with age * are not all of one age
    before = Fraction(1, 2), Fraction(1, 6), Fraction(1, 3)
    after = split_beliefs(before, 4)
    gains = [(b, a) for a, b in zip(before, after, strict=True) if b > a]
    worst = found.measures["columns"]["age"]["worst"]
    assert (worst.after, worst.before) == max(gains)


def test_two_rows_in_two_children_are_determined() -> None:
    table = pd.DataFrame({"age": [20, 31, 40, 40], "town": ["a", "a", "b", "b"]})
    found = mw.attack(mw.anonymize(table, policy(name="mondrian")), "downcoding")
    assert (found.measures["generalised_cells"], found.measures["determined_cells"]) == (2, 2)
    assert found.worst.after == 0, "both ages were as likely before"


def test_large_classes_are_counted_in_floating_point() -> None:
    """Of 200 rows, one of another age: exact fractions would have hundreds of digits."""
    table = pd.DataFrame({"age": [20] * 199 + [31], "town": ["a"] * 200})
    worst = mw.attack(mw.anonymize(table, policy(name="local-recoding")), "downcoding").worst
    exact = split_beliefs((Fraction(199, 200), Fraction(1, 200)), 200)
    assert float(worst.after) == pytest.approx(float(exact[1]), rel=1e-9)
    assert worst.before == Fraction(1, 200)
    assert worst.upper >= exact[1]


def test_levels_of_the_whole_table_tell_nothing() -> None:
    with pytest.raises(mw.errors.UsageError, match="does not apply"):
        mw.attack(mw.anonymize(TABLE, policy(name="optimal-lattice")), "downcoding")
