"""Counting with groups: against every way to deal the values, and as SQL on a real release."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from html import unescape
from pathlib import Path

import duckdb
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import maskwright as mw
from maskwright.report.card import EXAMPLE, estimate_count
from tests.patients import POLICY, patients, write_csv


@st.composite
def groups(draw: st.DrawFn) -> tuple[int, int, int]:
    n = draw(st.integers(1, 5))
    return n, draw(st.integers(0, n)), draw(st.integers(0, n))


@given(st.lists(groups(), min_size=1, max_size=2))
def test_against_every_dealing(drawn: list[tuple[int, int, int]]) -> None:
    by_group = []
    for n, a, m in drawn:
        values = [1] * m + [0] * (n - m)
        by_group.append([sum(dealt[:a]) for dealt in itertools.permutations(values)])
    counts = [sum(way) for way in itertools.product(*by_group)]
    found = estimate_count(drawn)
    mean = Fraction(sum(counts), len(counts))
    assert found.mean == mean
    assert found.variance == Fraction(sum(c * c for c in counts), len(counts)) - mean * mean
    assert (found.least, found.most) == (min(counts), max(counts))


def test_the_worked_example() -> None:
    found = estimate_count(EXAMPLE)
    assert (found.mean, found.variance, found.least, found.most) == (
        Fraction(17, 10),
        Fraction(41, 100),
        1,
        3,
    )


@pytest.mark.parametrize("recoding", ["bucketize", "permute"])
def test_the_query_of_the_card_runs_on_the_files(tmp_path: Path, recoding: str) -> None:
    source = write_csv(tmp_path / "patients.csv", patients())
    made = mw.Policy.load(yaml.safe_load(POLICY) | {"recoding": recoding})
    mw.anonymize(source, made, tmp_path / "r")
    public = tmp_path / "r/public"
    card = (public / "data-card.html").read_text(encoding="utf-8")
    query = unescape(card[card.index(">SELECT") + 1 : card.index("</pre>")]).replace("VALUE", "flu")
    frames = {p.stem: pd.read_csv(p, dtype=str) for p in public.glob("*.csv")}
    with duckdb.connect() as connection:
        for name, frame in frames.items():
            connection.register(name, frame)
        answer = connection.execute(query).fetchone()
    assert answer is not None

    tables = {name: frame.to_dict("records") for name, frame in frames.items()}
    known, secret = (
        tables.get("quasi-identifiers", tables.get("data")),
        tables.get("sensitive", tables.get("data")),
    )
    assert known is not None and secret is not None
    size = Counter(row["group"] for row in secret)
    having = Counter(
        row["group"] for row in known if row["age"] == "20"
    )  # the first label of the first column
    values = Counter(row["group"] for row in secret if row["disease"] == "flu")
    expected = estimate_count([(size[g], having[g], values[g]) for g in size])
    assert expected.mean > 0
    assert answer[0] == pytest.approx(float(expected.mean))
