"""What each preset promises is in the policy that it leads to."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from maskwright.errors import UsageError
from maskwright.policy.policy import Policy
from maskwright.suggest import PRESETS, Suggestion
from maskwright.suggest.presets import EMA_RISK, least_k
from tests.suggest.conftest import Suggest

N = 400
CLINIC: dict[str, list[Any]] = {
    "name": [f"Person{i}" for i in range(N)],
    "zip": [10000 + 37 * (i % 90) for i in range(N)],
    "city": [("Springfield", "Shelbyville")[i % 2] for i in range(N)],
    "state": [("NY", "NJ")[i % 2] for i in range(N)],
    "birth_date": [f"{1930 + i % 80}-0{1 + i % 9}-1{i % 10}" for i in range(N)],
    "admission": [f"202{i % 3}-0{1 + i % 9}-1{i % 10}" for i in range(N)],
    "age": [20 + i % 78 for i in range(N)],
    "birth_year": [1920 + i % 90 for i in range(N)],
    "sex": ["FM"[i % 2] for i in range(N)],
    "disease": ["abcde"[i % 5] for i in range(N)],
}


def allowed_labels(found: Suggestion, column: str) -> set[str | None]:
    """Everything that the policy lets a column publish."""
    settings = found.policy.columns[column]
    assert settings.hierarchy is not None
    values = sorted({str(v) for v in CLINIC[column]})
    hierarchy = settings.hierarchy.build(column, values, Path(), ())
    levels = settings.levels or [str(i) for i in range(len(hierarchy.levels))]
    return {label for level in levels for label in hierarchy.levels[hierarchy.level_of(level)].labels}


def k_of(policy: Policy) -> int:
    return int(next(r.parameters["k"] for r in policy.require if r.name == "k-anonymity"))


@pytest.mark.parametrize(
    ("name", "k"),
    [(None, 11), ("open-data", 11), ("research", 5), ("hipaa-safe-harbor", 5), ("ema-clinical", 12),
     ("small-cells-11", 11)],
)  # fmt: skip
def test_k_of_each_preset(suggested: Suggest, name: str | None, k: int) -> None:
    found = suggested(CLINIC, preset=name)
    assert k_of(found.policy) == k
    assert found.policy.preset == name


@pytest.mark.parametrize("name", PRESETS)
def test_presets_state_their_source(suggested: Suggest, name: str) -> None:
    text = " ".join(suggested(CLINIC, preset=name).text.replace("#", " ").split())
    assert PRESETS[name].name == name
    assert PRESETS[name].description in text
    assert "Source:" in text
    assert "not legal advice" in text
    for change in PRESETS[name].changes:
        assert change in text


def test_least_k_for_a_risk() -> None:
    assert least_k(EMA_RISK) == 12
    assert Fraction(1, 11) > EMA_RISK >= Fraction(1, 12)
    for denominator in range(1, 40):
        k = least_k(Fraction(3, denominator))
        assert Fraction(1, k) <= Fraction(3, denominator)
        assert k == 1 or Fraction(1, k - 1) > Fraction(3, denominator)


def test_unknown_preset_names_the_nearest(suggested: Suggest) -> None:
    with pytest.raises(UsageError, match="did you mean 'open-data'"):
        suggested(CLINIC, preset="opendata")


class TestSafeHarbor:
    @pytest.fixture
    def found(self, suggested: Suggest) -> Suggestion:
        return suggested(CLINIC, preset="hipaa-safe-harbor")

    def test_identifiers_and_small_places_are_dropped(self, found: Suggestion) -> None:
        assert found.policy.columns["name"].role == "identifier"
        assert found.policy.columns["city"].role == "identifier"
        assert found.policy.columns["state"].role == "quasi-identifier"

    def test_zip_codes_keep_three_digits(self, found: Suggestion) -> None:
        assert "100**" in allowed_labels(found, "zip")
        assert all(label is None or len(label.rstrip("*")) <= 3 for label in allowed_labels(found, "zip"))
        assert "20,000 people or fewer (current Census data) must become 000" in found.text

    @pytest.mark.parametrize("column", ["birth_date", "admission"])
    def test_dates_keep_the_year(self, found: Suggestion, column: str) -> None:
        assert "2021" in allowed_labels(found, "admission")
        assert all(label is None or len(label) <= 5 for label in allowed_labels(found, column))

    def test_ages_over_89_are_one_category(self, found: Suggestion) -> None:
        labels = allowed_labels(found, "age")
        assert {"89", "≥90"} <= labels
        assert not {str(age) for age in range(90, 120)} & labels

    def test_single_years_stay_where_only_one_age_is_over_89(self, suggested: Suggest) -> None:
        ages = [20 + i % 70 for i in range(N - 1)] + [94]
        column = suggested({**CLINIC, "age": ages}, preset="hipaa-safe-harbor").policy.columns["age"]
        assert column.hierarchy is not None
        assert column.levels is not None
        built = column.hierarchy.build("age", sorted({str(age) for age in ages}), Path(), ())
        labels = {x for level in column.levels for x in built.levels[built.level_of(level)].labels}
        assert {"20", "89", "≥90"} <= labels
        assert "94" not in labels

    def test_years_of_birth_that_show_such_an_age_are_one_category(self, found: Suggestion) -> None:
        oldest = date.today().year - 89
        labels = allowed_labels(found, "birth_year")
        assert f"<{oldest}" in labels
        assert not {str(year) for year in range(1900, oldest)} & labels
        assert str(oldest) in labels

    def test_it_says_what_it_does_not_do(self, found: Suggestion) -> None:
        assert "actual knowledge" in " ".join(found.text.replace("#", " ").split())

    def test_zip_codes_of_several_lengths_are_dropped(self, suggested: Suggest) -> None:
        zips = [*(["12345-6789"] * (N // 2)), *(["1234567"] * (N // 2))]
        found = suggested({**CLINIC, "zip": zips}, preset="hipaa-safe-harbor")
        assert found.policy.columns["zip"].role == "identifier"

    def test_zip_codes_with_and_without_four_more_digits_become_alike(self, suggested: Suggest) -> None:
        zips = [*(["12345-6789"] * (N // 2)), *(["12345"] * (N // 2))]
        found = suggested({**CLINIC, "zip": zips}, preset="hipaa-safe-harbor")
        assert found.policy.columns["zip"].role == "quasi-identifier"
        assert found.policy.to_dict()["prepare"]["zip"]["digits"] == {"width": 5, "suffix": "drop"}

    def test_zip_plus_four_keeps_three_digits(self, suggested: Suggest) -> None:
        zips = [f"1{i % 20:02}45-678{i % 10}" for i in range(N)]
        found = suggested({**CLINIC, "zip": zips}, preset="hipaa-safe-harbor")
        hierarchy = found.policy.columns["zip"].hierarchy
        assert hierarchy is not None
        built = hierarchy.build("zip", sorted(set(zips)), Path(), ())
        assert found.policy.columns["zip"].levels
        for level in found.policy.columns["zip"].levels:
            labels = built.levels[built.level_of(level)].labels
            assert all(x is None or len(x.rstrip("*")) <= 3 for x in labels)

    def test_a_level_that_vanishes_never_leaves_a_finer_one(self, suggested: Suggest) -> None:
        """Where years tell dates apart as well as days do, the level is not there: nothing finer may take its place."""
        days = {**CLINIC, "admission": [f"20{10 + i % 5}-03-04" for i in range(N)]}
        found = suggested(days, preset="hipaa-safe-harbor")
        column = found.policy.columns["admission"]
        assert column.levels is not None
        assert column.hierarchy is not None
        built = column.hierarchy.build("admission", sorted(set(days["admission"])), Path(), ())
        labels = {x for level in column.levels for x in built.levels[built.level_of(level)].labels}
        assert not labels & set(days["admission"])
