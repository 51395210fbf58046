"""What became of each column: shares before and after, in an order that can be read."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import maskwright as mw
from maskwright.report.bars import as_percent, distribution_bars, paired_bars
from maskwright.report.risk_and_usefulness import Shares, named_groupings, spreads_of
from tests.patients import POLICY, patients, write_csv


@pytest.mark.parametrize("recoding", ["generalise", "bucketize"])
def test_shares_are_those_of_the_files(tmp_path: Path, recoding: str) -> None:
    source = write_csv(tmp_path / "patients.csv", patients())
    made = mw.anonymize(
        source, mw.Policy.load(yaml.safe_load(POLICY) | {"recoding": recoding}), tmp_path / "r"
    )
    tables = [pd.read_csv(p, dtype=str) for p in sorted((tmp_path / "r/public").glob("*.csv"))]
    before = pd.read_csv(source, dtype=str)
    found = spreads_of(made.grouping, made.policy.recoding.exact)
    assert [s.name for s in found] == ["age", "zip", "sex", "disease"]
    for spread in found:
        after = next(t[spread.name] for t in tables if spread.name in t)
        assert dict(spread.before.values) == pytest.approx(_shares(before[spread.name]))
        assert dict(spread.after.values) == pytest.approx(_shares(after))


def _shares(column: pd.Series) -> dict[str, float]:
    return {str(value): n / len(column) for value, n in Counter(column).items()}


def test_numbers_are_in_their_own_order_and_names_by_how_common_they_are() -> None:
    labels = ["100-199", "[20, 40)", "*", ">=200", "3"]
    assert [n for n, _ in Shares.of(labels, np.ones(5), False).values] == [
        "3",
        "[20, 40)",
        "100-199",
        ">=200",
        "*",
    ]
    found = Shares.of(["rare", None, "common", "never"], np.array([1, 2, 7, 0]), False)
    assert found == Shares([("common", 0.7), ("missing", 0.2), ("rare", 0.1)], ordered=False)
    assert [n for n, _ in Shares.of(["low", "high"], np.array([1, 9]), True).values] == ["low", "high"]


def test_each_part_is_shown_once(tmp_path: Path) -> None:
    values = yaml.safe_load(POLICY)
    values["columns"]["ward"] = "sensitive"
    values |= {"method": {"name": "codip", "plan": [["disease"], ["ward"]]}, "require": values["require"][:1]}
    source = write_csv(tmp_path / "patients.csv", patients())
    two = mw.anonymize(source, mw.Policy.load(values), tmp_path / "r")
    names = [name for name, _ in named_groupings(two)]
    assert len(names) == 2 and set(names) == set(two.tables)
    report = (tmp_path / "r/private/report.html").read_text(encoding="utf-8")
    assert all(f"What each column lost in {name}" in report for name in names)
    one = mw.anonymize(source, mw.Policy.load(yaml.safe_load(POLICY) | {"recoding": "bucketize"}))
    assert [name for name, _ in named_groupings(one)] == [""]


def _widths(picture: str) -> list[float]:
    return [float(w) for w in re.findall(r'<rect[^>]* width="([\d.]+)"', picture)]


def test_bars_are_as_long_as_their_shares() -> None:
    first, second = _widths(paired_bars("alt", [("a", 0.5, 0.25)], full=1.0))
    assert first == pytest.approx(2 * second, abs=0.2)
    whole = _widths(paired_bars("alt", [("a", None, 1.0)], full=1.0))
    assert whole[0] == pytest.approx(2 * first, abs=0.2)


def test_many_values_are_put_together() -> None:
    many = [(f"v{i}", 1 / 100) for i in range(100)]
    assert len(_widths(distribution_bars("alt", many, "before", ordered=True))) <= 40
    shown = distribution_bars("alt", many, "before")
    assert len(_widths(shown)) == 10 and "91 others" in shown and "91.0%" in shown


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0%"), (1, "100%"), (0.2, "20.0%"), (0.0312, "3.1%"), (0.0004, "0.04%")]
)
def test_percent(share: float, text: str) -> None:
    assert as_percent(share) == text
