"""The whole suggestion: defaults, gates, units, missing tokens, uniqueness, and how often the data is read."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from maskwright.engines.base import Reading
from maskwright.errors import InputError
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.suggest import Suggestion
from tests.suggest.conftest import Suggest

N = 120
PEOPLE: dict[str, list[Any]] = {
    "age": [20 + i % 40 for i in range(N)],
    "sex": ["FM"[i % 2] for i in range(N)],
    "disease": ["abcd"[i % 4] for i in range(N)],
}


def gates(found: Suggestion) -> list[dict[str, Any]]:
    return [r.parameters for r in found.policy.require if r.name == "simple-l-diversity"]


def flat(found: Suggestion) -> str:
    return " ".join(found.text.replace("#", " ").split())


def test_the_defaults_for_a_newcomer(suggested: Suggest) -> None:
    policy = suggested(PEOPLE).policy
    assert policy.require[0].as_policy("model") == {"model": "k-anonymity", "k": "11"}
    assert policy.require[1].as_policy("model") == {
        "model": "simple-l-diversity", "l": "3", "attribute": "disease", "use": "search",
    }  # fmt: skip
    assert policy.method.as_policy("name") == {"name": "mondrian", "cut": "balanced"}
    assert policy.recoding.name == "generalise"
    assert policy.missing.rows == "keep"


def test_requirements_and_method_are_ones_that_exist(suggested: Suggest) -> None:
    policy = suggested({**PEOPLE, "religion": ["x"] * 80 + ["y"] * 20 + ["z"] * 20}).policy
    assert [r.name for r in policy.require] == ["k-anonymity", "simple-l-diversity", "simple-l-diversity"]
    for requirement in policy.require:
        MODELS[requirement.name].model_validate(requirement.parameters)
    METHODS[policy.method.name].model_validate(policy.method.parameters)


def test_without_a_sensitive_column_there_is_no_gate(suggested: Suggest) -> None:
    found = suggested({"age": PEOPLE["age"], "sex": PEOPLE["sex"]})
    assert gates(found) == []
    assert "No column looks sensitive" in found.text
    assert "simple-l-diversity" in found.text


def test_only_values_that_can_be_protected_are(suggested: Suggest) -> None:
    found = suggested({**PEOPLE, "disease": ["none of it"] * 81 + ["HIV"] * 39})
    assert [g["values"] for g in gates(found)] == [["HIV"]]
    assert "Only these values are protected" in found.text
    exactly_a_third = suggested({**PEOPLE, "disease": ["a"] * 40 + ["b"] * 40 + ["c"] * 40})
    assert "values" not in gates(exactly_a_third)[0]


def test_when_no_value_can_be_protected_it_says_so(suggested: Suggest) -> None:
    found = suggested({**PEOPLE, "disease": ["HIV"] * N})
    assert found.policy.columns["disease"].role == "sensitive"
    assert gates(found) == []
    assert "No requirement on disease" in found.text


def test_too_many_values_to_list(suggested: Suggest) -> None:
    values = ["healthy"] * 500 + [f"d{i % 250}" for i in range(500)]
    found = suggested({"sex": ["FM"[i % 2] for i in range(1000)], "disease": values})
    assert gates(found) == []
    assert "List the values to protect" in flat(found)


def test_several_rows_per_person(suggested: Suggest) -> None:
    found = suggested({**PEOPLE, "patient_id": [1000 + i // 3 for i in range(N)]})
    assert found.policy.unit == "patient_id"
    assert "k counts people" in found.text
    each = suggested({**PEOPLE, "patient_id": list(range(N))})
    assert each.policy.unit is None
    assert (
        found.policy.method.name == each.policy.method.name == "mondrian"
    )  # of several rows no cut is proven
    assert ["give nothing away" in flat(f) for f in (found, each)] == [False, True]
    assert "is measured when it is published" in flat(found)
    some_missing = [None, *(1000 + i // 3 for i in range(N - 1))]
    assert suggested({**PEOPLE, "patient_id": some_missing}).policy.unit is None


def test_a_column_that_singles_out_and_repeats_without_naming_anybody(suggested: Suggest) -> None:
    found = suggested({**PEOPLE, "measured": [f"{max(i, 1) * 7919 % 104729}" for i in range(N)]})
    assert found.policy.columns["measured"].role == "identifier"
    assert "unit: none" in found.text
    assert "Every row is taken for a person" in flat(found)


@pytest.mark.parametrize(
    ("name", "values", "unit"),
    [
        ("Vorname", ["Anna", "Ben", "Cem"], "none"),
        ("email", [f"a{i}@example.org" for i in range(N // 2)], "email"),
    ],
)
def test_identifiers_that_repeat_are_those_of_several_people_or_of_one(
    suggested: Suggest, name: str, values: list[str], unit: str
) -> None:
    """First names are shared, e-mail addresses are not: the policy says so, and is not refused for the question."""
    found = suggested({**PEOPLE, name: [values[i % len(values)] for i in range(N)]})
    assert found.policy.columns[name].role == "identifier"
    assert found.policy.unit == unit
    assert f"unit: {unit}" in found.text


def test_a_table_smaller_than_k(suggested: Suggest) -> None:
    found = suggested({"sex": ["F", "F", "M", "M"]})
    assert "only 4 people" in found.text
    by_person = suggested({**PEOPLE, "patient_id": [i // 20 for i in range(N)]})
    assert "only 6 people" in by_person.text


def test_missing_tokens_become_part_of_the_policy(suggested: Suggest) -> None:
    found = suggested(
        {**PEOPLE, "age": ["?", "NA", *PEOPLE["age"][2:]], "job": ["baker", "unknown", "N/A"] * 40}
    )
    assert set(found.policy.missing.tokens) == {"?", "NA", "N/A"}
    assert found.policy.prepare["job"].missing == ("unknown",), "beside N/A it means missing too"
    alone = suggested({**PEOPLE, "job": ["baker", "unknown", "smith"] * 40})
    assert "'unknown' in job" in alone.text
    assert not alone.policy.prepare
    assert found.policy.columns["age"].hierarchy is not None
    assert found.profiles[0].hierarchy["intervals"] == ["5", "10", "20"]
    assert found.profiles[0].missing == 2


def test_tokens_of_dropped_columns_are_left_alone(suggested: Suggest) -> None:
    assert suggested({**PEOPLE, "phone": ["-", "?"] * 60}).policy.missing.tokens == ()


def test_without_tokens_there_is_no_such_section(suggested: Suggest) -> None:
    assert "missing:" not in suggested(PEOPLE).text


def test_a_token_that_is_a_value_elsewhere_is_pointed_out(suggested: Suggest) -> None:
    codes = ["NA", "DE", "FR", "GB", "US", "ES"]
    found = suggested({**PEOPLE, "country": codes * 20, "age": ["NA", *PEOPLE["age"][1:]]})
    assert found.policy.missing.tokens == ("NA",)
    assert "may be a real value in column country" in found.text


def test_many_quasi_identifiers(suggested: Suggest) -> None:
    extra = {f"q{i}": ["a", "b", "c"] * 40 for i in range(13)}
    text = flat(suggested({**PEOPLE, **extra, "q13": ["a", "b", "c", "d"] * 30}))
    assert "16 quasi-identifiers are many" in text
    assert "to look at first: q13, q0, q1, q2 " in text
    assert "are many" not in suggested(PEOPLE).text


class TestUniqueness:
    def test_share_and_the_column_that_adds_most(self, suggested: Suggest) -> None:
        data = {"age": list(range(10)) * 2, "sex": ["F"] * 10 + ["M"] * 10, "job": (["a", "b"] * 10)}
        found = suggested(data).uniqueness
        assert (found.rows, found.combinations, found.unique_rows) == (20, 20, 20)
        assert (found.share, found.smallest_class) == (1, 1)
        assert found.adds_most == "age"
        assert found.without_it == 0

    def test_no_row_is_unique(self, suggested: Suggest) -> None:
        found = suggested({"sex": ["F"] * 7 + ["M"] * 3, "job": ["a"] * 10, "race": ["x"] * 7 + ["y"] * 3})
        assert found.uniqueness.columns == ("sex", "job", "race")
        assert (found.uniqueness.share, found.uniqueness.smallest_class) == (0, 3)
        assert found.uniqueness.adds_most is None
        assert "the rarest combination has 3 rows" in found.text

    def test_a_single_column(self, suggested: Suggest) -> None:
        found = suggested({"age": [1, 1, 1, 2, 2, 3]})
        assert (found.uniqueness.share, found.uniqueness.adds_most) == (Fraction(1, 6), "age")

    def test_no_column_alone_makes_a_difference(self, suggested: Suggest) -> None:
        found = suggested(
            {"age": list(range(20, 50)), "weight": list(range(50, 80)), "height": list(range(150, 180))}
        )
        assert found.uniqueness.share == 1
        assert found.uniqueness.adds_most is None
        assert "no column alone" in flat(found)


def test_the_data_is_read_no_more_than_needed(suggested: Suggest) -> None:
    suggested({**PEOPLE, "job": ["a", "b", "c"] * 40})
    read = [call for call in suggested.engine.calls if call[0] == "domain"]
    assert read == [("domain", (name,)) for name in (*PEOPLE, "job")]
    # once for the rows, once per column, once for all quasi-identifiers, once without each of the three
    assert len(suggested.engine.calls) <= 1 + 4 + 1 + 3


def test_progress(suggested: Suggest) -> None:
    seen: list[tuple[str, int, int]] = []
    suggested(PEOPLE, on_column=lambda *step: seen.append(step))
    assert seen == [("age", 0, 3), ("sex", 1, 3), ("disease", 2, 3)]


def test_profiles(suggested: Suggest) -> None:
    age, sex, disease = suggested({**PEOPLE, "age": [19, *PEOPLE["age"][1:]]}, {"age": "integer"}).profiles
    assert (age.kind, age.distinct, age.minimum, age.maximum) == ("integer", 41, "19", "59")
    assert age.unique_share == Fraction(1, N)
    assert (sex.role, sex.hierarchy, sex.minimum) == ("quasi-identifier", "suppress", None)
    assert (disease.role, disease.hierarchy, disease.missing) == ("sensitive", None, 0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"age": []}, "no rows"),
        ({"name": ["a", "b"]}, "no column looks like something an attacker could know"),
        ({"disease": ["a", "b"] * 5}, "quasi-identifier"),
    ],
)
def test_what_cannot_be_guessed(suggested: Suggest, data: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message) as problem:
        suggested(data, name="x.csv")
    assert "x.csv" in str(problem.value)


def test_how_the_file_was_read_is_part_of_the_policy(suggested: Suggest) -> None:
    reading = Reading(delimiter=";", encoding="cp1252", header=False, missing=("kA",))
    policy = suggested(PEOPLE, reading=reading).policy
    assert (policy.input.delimiter, policy.input.encoding, policy.input.header) == (";", "cp1252", False)
    assert policy.missing.tokens == ("kA",)
    assert "input:" not in suggested(PEOPLE, reading=Reading()).text


def test_what_a_program_gets(suggested: Suggest) -> None:
    found = suggested({**PEOPLE, "income": range(N)})
    shown = json.loads(json.dumps(found.as_dict()))
    assert [c["role"] for c in shown["columns"]] == ["quasi-identifier"] * 2 + ["sensitive"] * 2
    assert shown["uniqueness"]["rows"] == N
    assert shown["uniqueness"]["share"] == found.uniqueness.unique_rows / N
    first, second = found.summary_lines()
    assert "As it is now" in first
    assert second.startswith("income: nearly every row")
