"""Suggested hierarchies fit every value, have nice widths, and lump sparse ends together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.engines.base import Kind
from maskwright.suggest.hierarchy_guess import (
    SPARSE,
    build_on_values,
    guess_hierarchy,
    nested_intervals,
    plain_number,
    round_number,
    without_exact,
)
from tests.suggest.test_suggest_roles import facts


def spec(name: str, topic: str | None, values: Sequence[Any], kind: Kind = "text", k: int = 5) -> Any:
    return guess_hierarchy(facts(name, values, kind), topic, k).hierarchy


def test_ages_get_the_usual_widths() -> None:
    assert spec("age", "age", [20 + i % 60 for i in range(600)]) == {"intervals": ["5", "10", "20"]}


def test_sparse_ends_are_lumped_together() -> None:
    ages = [20 + i % 60 for i in range(600)] + [5, 92, 97, 101]
    assert spec("age", "age", ages) == {"intervals": ["5", "10", "20"], "below": "25", "above": "75"}


def test_an_end_with_enough_rows_is_left_alone() -> None:
    assert "above" not in spec("age", "age", [20 + i % 60 for i in range(600)] + [92] * 5, k=5)
    assert spec("age", "age", [20 + i % 60 for i in range(600)] + [92] * 5, k=6)["above"] == "75"


@pytest.mark.parametrize(
    ("values", "widths"),
    [
        ([i % 101 for i in range(1010)], ["10", "20", "40"]),
        ([i % 12 for i in range(240)], ["2", "4"]),
        ([(i % 41) / 10 for i in range(820)], ["0.5", "1", "2"]),
        ([(i % 100) * 1000 for i in range(2000)], ["10000", "20000", "40000"]),
        ([-(i % 101) for i in range(1010)], ["10", "20", "40"]),
    ],
)
def test_widths_follow_the_range(values: list[float], widths: list[str]) -> None:
    assert spec("height", "body", values)["intervals"] == widths


def test_few_unknown_numbers_may_be_codes() -> None:
    assert spec("x", None, [1, 2, 3, 4] * 20) == "suppress"
    many = guess_hierarchy(facts("x", [i % 40 for i in range(400)]), None, 5)
    assert "intervals" in many.hierarchy
    assert "codes" in many.notes[0]


def test_codes_are_no_amounts() -> None:
    """Rare codes are merged first; where the name says so, of more than twelve values, too."""
    marital = [1] * 500 + [2] * 300 + [3] * 150 + [4] * 40 + [5] * 6 + [6] * 4
    found = guess_hierarchy(facts("marital_status", marital), "marital-status", 5)
    assert set(found.hierarchy["groups"][0]["other values"]) == {"5", "6"}
    assert not found.notes, "marital status is no amount"
    assert "taken for codes" in guess_hierarchy(facts("visits", marital), None, 5).notes[0]
    many = [i % 20 for i in range(2000)] + [20, 21, 22]
    assert "groups" in spec("reason_code", None, many)
    assert "intervals" in spec("reason", "body", many)
    assert spec("x", None, [0, 1] * 30) == "suppress"
    assert guess_hierarchy(facts("x", [0, 1] * 30), None, 5).notes == (), "nothing is between exact and *"


def test_numbers_of_states_are_known_where_the_name_says_so() -> None:
    for values in (["01", "06", "36", "48"] * 20, [1, 6, 36, 48] * 20):
        assert spec("state_fips", "state", values) == {"library": "us-states"}
        assert "library" not in spec("region", "state", values)
    assert "library" not in spec("x", None, [1, 2, 4, 5, 6, 8, 9, 10, 11, 12, 13] * 20)


def test_rare_values_are_merged_first() -> None:
    jobs = ["baker"] * 500 + ["smith"] * 300 + ["miller"] * 150 + ["king"] * 40 + ["poet"] * 6 + ["spy"] * 4
    others = [{"poet", "spy"}, {"king", "poet", "spy"}, {"king", "miller", "poet", "spy"}]
    levels = spec("job", "occupation", jobs)["groups"]
    assert [set(level["other values"]) for level in levels] == others
    assert spec("job", "occupation", ["a", "b"] * 9) == "suppress"
    assert spec("job", "occupation", ["a", "b", "c"] * 9) == "suppress", "there are no rare ones"


def test_ready_hierarchies_are_taken_where_they_know_every_value() -> None:
    ready = guess_hierarchy(facts("country", ["Germany", "United-States", "Japan"] * 30), "country", 5)
    assert ready.hierarchy == {"library": "countries"}
    assert "knows all 3 values" in ready.notes[0]
    partly = guess_hierarchy(facts("country", ["Germany", "Japan"] * 40 + ["Atlantis"]), "country", 5)
    assert "library" not in partly.hierarchy
    assert "knows 2 of 3 values" in partly.notes[0]
    assert spec("education", "education", ["HS-grad", "Bachelors", "9th"] * 20) == {"library": "isced"}
    assert spec("state", "state", ["NY", "CA", "TX"] * 20) == {"library": "us-states"}
    assert spec("bmi", "body", [f"{18 + i % 20}.5" for i in range(200)]) == {"library": "bmi-who"}
    assert spec("isco", "occupation", [2211, 5120, 9111] * 20) == {"library": "isco-08"}
    assert spec("job_soc", "occupation", ["11-1011", "29-1141"] * 20) == {"library": "soc-2018"}
    assert spec("naics", "occupation", [622110, 722511, 111110] * 20) == {"library": "naics"}
    assert spec("NACE", "occupation", ["86.10", "01.11", "62.01"] * 20) == {"library": "nace"}
    assert spec("occupation", "occupation", [2211, 5120, 9111] * 20) != {"library": "isco-08"}, "any numbers"


def test_values_alone_are_enough_where_they_can_be_nothing_else() -> None:
    where = ["Peru", "Chile", "Brazil", "Germany", "Japan", "Spain", "Italy", "France"]
    found = guess_hierarchy(facts("from", where * 9), None, 5)
    assert found.hierarchy == {"library": "countries"}
    assert "confidence medium, though its name does not say so" in found.notes[0]
    assert "confidence high" in guess_hierarchy(facts("country", where * 9), "country", 5).notes[0]
    assert spec("name of a saint", None, ["Georgia", "Jordan"] * 30) == "suppress"


def test_very_many_values_get_the_common_ones_and_the_others() -> None:
    towns = [f"town {i}" for i in range(400)] * 2 + ["Bern"] * 300 + ["Basel"] * 100
    found = spec("town", "place", towns)
    assert found["others"] == "other values"
    assert [set(level) for level in found["groups"]] == [{"Bern", "Basel"}, {"Bern"}]
    hierarchy = build_on_values(facts("town", [*towns, "a new one"]), found)
    named = dict(zip(hierarchy.values, hierarchy.levels[1].blocks[1:].tolist(), strict=True))
    assert named["a new one"] == named["town 7"] != named["Bern"]


def test_one_number_has_no_intervals() -> None:
    assert spec("age", "age", [40] * 50) == "suppress"


@pytest.mark.parametrize(
    ("written", "form"),
    [("{d:02}.{m:02}.1970", "%d.%m.%Y"), ("{d}/{m}/1970", "%d/%m/%Y"), ("{m}/{d}/1970", "%m/%d/%Y"),
     ("1970/{m:02}/{d:02}", "%Y/%m/%d"), ("{d:02}-{m:02}-1970 08:30", "%d-%m-%Y %H:%M")],
)  # fmt: skip
def test_the_format_of_dates_is_found(written: str, form: str) -> None:
    values = [written.format(d=d, m=m) for d in range(1, 29) for m in range(1, 13)]
    found = guess_hierarchy(facts("x", values), "date", 5)
    assert found.hierarchy == {"dates": ["week", "month", "quarter", "year"], "format": form}
    assert found.notes == ()


def test_iso_dates_need_no_format() -> None:
    values = [f"1970-01-{d:02}" for d in range(1, 29)]
    assert spec("dob", "birth-date", values) == {"dates": ["month", "quarter", "year", "decade"]}


def test_days_that_may_be_months_are_pointed_out() -> None:
    found = guess_hierarchy(
        facts("x", [f"0{d}/0{m}/1970" for d in range(1, 9) for m in range(1, 9)]), "date", 5
    )
    assert "day or month" in found.notes[0]


def test_a_value_that_does_not_fit_leaves_suppression() -> None:
    values = [f"{d:02}.01.1970" for d in range(1, 29)] + ["spring 1970"]
    found = guess_hierarchy(facts("x", values), "date", 5)
    assert found.hierarchy == "suppress"
    assert "do not fit" in found.notes[0]
    assert "spring" not in str(found.notes)


def test_postcodes_are_masked_from_the_right() -> None:
    assert spec("zip", "postcode", [10000 + i % 50 for i in range(500)]) == {"mask": "right"}, (
        "all in one state"
    )
    assert spec("zip", "postcode", ["02139", "10001", "94103"] * 99) == {"library": "zip-us"}
    assert spec("plz", "postcode", ["02139", "10001", "94103"] * 99) == {"mask": "right"}, "no ZIP codes"
    assert spec("pc", "postcode", [f"M{i % 9} 1A{c}" for i in range(30) for c in "ABC"])["by"] == [
        "2",
        "3",
        "5",
    ]


def test_lost_zeros_are_pointed_out() -> None:
    found = guess_hierarchy(facts("zip", [501, 1001, 90210] * 9, "integer"), "postcode", 5)
    assert "leading zeros" in found.notes[0]


def test_bands_are_merged_with_their_neighbours() -> None:
    bands = ["0-9", "10-19", "20-29", "30-39", "40-49", "50+"]
    assert spec("age", "age", bands * 9) == {
        "groups": [{"0-19": ["0-9", "10-19"], "20-39": ["20-29", "30-39"], "40+": ["40-49", "50+"]}]
    }
    finer = [f"{a}-{a + 4}" for a in range(0, 80, 5)]
    assert [len(level) for level in spec("age", "age", finer * 9)["groups"]] == [8, 4]
    assert spec("age", "age", ["<18", "18-39", "40-64", ">64"] * 9)["groups"][0] == {
        "<18 … 18-39": ["<18", "18-39"],
        "40-64 … >64": ["40-64", ">64"],
    }
    assert spec("age", "age", [*bands, "old"] * 9) == "suppress"


def test_without_exact_leaves_every_level_but_the_first() -> None:
    seen = facts("age", [20 + i % 60 for i in range(600)])
    found = without_exact(seen, guess_hierarchy(seen, "age", 5))
    hierarchy = build_on_values(seen, found.hierarchy)
    assert found.levels is not None
    assert [hierarchy.level_of(level) for level in found.levels] == [1, 2, 3, 4]
    assert hierarchy.top == 4

    asked = ["0.03", "0.7", "1", "1.1", "3", "7", "11", "60", "4000"]
    rounded = ["0.05", "1", "1", "2", "5", "10", "20", "100", "5000"]
    assert [plain_number(round_number(Decimal(x))) for x in asked] == rounded


@given(
    st.lists(st.integers(-500, 500) | st.decimals(-500, 500, places=2), min_size=1, max_size=80),
    st.sampled_from(["age", "birth-year", "body", None]),
    st.integers(2, 12),
)
def test_intervals_always_fit_and_their_ends_hold_enough(
    numbers: list[int | Decimal], topic: str | None, k: int
) -> None:
    seen = facts("x", [plain_number(Decimal(n)) for n in numbers])
    assert seen.numbers is not None
    found = nested_intervals(seen.numbers, seen.counts, topic, k)
    if found is None:
        return
    hierarchy = build_on_values(seen, found)
    enough = max(k, len(numbers) // SPARSE)
    as_numbers = Counter(Decimal(n) for n in numbers)
    if "below" in found:
        assert sum(c for n, c in as_numbers.items() if n < Decimal(found["below"])) >= enough
    if "above" in found:
        assert sum(c for n, c in as_numbers.items() if n >= Decimal(found["above"])) >= enough
    assert hierarchy.values == tuple(sorted(seen.values, key=Decimal))
    widths = [Decimal(w) for w in found["intervals"]]
    assert widths == sorted(widths)
    assert all(b % a == 0 for a, b in pairwise(widths))


@pytest.mark.parametrize(("values", "first"), [(range(1, 13), "1-3"), (["01", "02", "11", "99"], "01-03")])
def test_months_are_merged_by_quarter_and_half_year(values: Sequence[object], first: str) -> None:
    known = facts("month of birth", [str(v) for v in values] * 30)
    found = guess_hierarchy(known, None, 5)
    [quarters, halves] = found.hierarchy["groups"]  # type: ignore[index]
    assert next(iter(quarters)) == first
    assert [len(members) for members in halves.values()][:2] == [6, 6], (
        "months that nobody has are known, too"
    )
    assert ("99" in values) == ("other values" in quarters)
    assert (
        guess_hierarchy(facts("floor", [str(v) for v in values] * 30), None, 5).hierarchy != found.hierarchy
    )


def test_numbers_of_education_are_those_of_isced_only_where_the_name_says_so() -> None:
    """1 may be the graduate school, as in the credit card table of UCI; the library takes it for primary education."""
    levels = [0] * 50 + [1] * 350 + [2] * 465 + [3] * 165 + [4] * 40 + [5] * 20 + [6] * 10
    assert guess_hierarchy(facts("education", levels), "education", 5).hierarchy != {"library": "isced"}
    assert guess_hierarchy(facts("isced_education", levels), "education", 5).hierarchy == {"library": "isced"}


def test_months_are_known_at_the_end_of_a_word() -> None:
    months = [month for month in range(1, 13) for _ in range(40)] + [99] * 5
    levels = guess_hierarchy(facts("ideathmon", months), None, 5).hierarchy["groups"]
    assert levels[0]["1-3"] == ["1", "2", "3"]
