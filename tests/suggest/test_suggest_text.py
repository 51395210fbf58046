"""The commented policy: whatever columns are called and hold, it parses back to the policy, and leaks nothing."""

from __future__ import annotations

import string
from fractions import Fraction
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.exact import percent_text
from maskwright.errors import PolicyError
from maskwright.policy.policy import Policy
from maskwright.policy.yaml_text import load_yaml
from maskwright.prepare import Preparation
from maskwright.suggest import Suggestion
from maskwright.suggest.sections import comment_lines, yaml_flow, yaml_scalar
from tests.suggest.conftest import Suggest

HOSTILE = [
    "no", "null", "Null", "~", "yes", "y", "true", "a: b", "#x", "a #b", "- a", "-", "?", "? a", ": a",
    "*a", "&a", "!a", "!!int 3", "%a", "@a", "`a", "{a}", "[a]", "a, b", "'", '"', "\\", "a'b\"c", "\n",
    "a\nb: c", "\r\n", "\t", " a", "a ", "", " ", "1", "1.0", "1e3", "0x1f", "012", "2024-01-01",
    "12:30:45", "<<", "=", "---", "...", "--- a", "|", ">", "ä ö ü ß", "名前", "😀", "\u2028", "\x85",
    "\u00a0a", "\ufeffa", "\x00", "\x07", "\x7f", "\uffff", "e\u0301", "a" * 3000,
    "ab cd" * 400, "version", "columns", "role", "identifier", "require", "k-anonymity", "# yaml",
    "a\u200bb", "\U000e0001",
]  # fmt: skip

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=())) | st.sampled_from(HOSTILE)
WORDS = st.text(string.ascii_lowercase + "#:{}[],&*!|>'\"%@`\\\n\t -?0123456789äß", max_size=12)


def parsed(found: Suggestion) -> Policy:
    return Policy.of(load_yaml(found.text.encode(), "policy"), "policy")


def check(found: Suggestion, names: list[str]) -> None:
    assert parsed(found) == found.policy
    assert list(found.policy.columns) == names
    for profile in found.profiles:
        assert found.policy.columns[profile.name].role == profile.role
    by_others = yaml.safe_load(found.text)  # a reader that knows numbers, truth values and dates
    assert list(by_others["columns"]) == names
    assert all(line.isprintable() for line in found.text.split("\n"))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_column_names(name: str) -> None:
    data = {
        name: ["u", "v", "w"] * 20,
        "age": [20 + i % 40 for i in range(60)],
        "disease": ["a", "b", "c", "d"] * 15,
    }
    check(Suggest()(data, name="x.csv"), [name, "age", "disease"])


def test_a_name_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(PolicyError, match="half a character"):
        Suggest()({"\ud800": ["u", "v"] * 30, "age": [20 + i % 40 for i in range(60)]}, name="x.csv")


@given(st.lists(ANY_TEXT | WORDS, unique=True, max_size=6), ANY_TEXT)
def test_any_column_names(names: list[str], title: str) -> None:
    names = [name for name in names if name != "age"]
    data: dict[str, Any] = {name: ["u", "v", "w"] * 4 for name in names}
    found = Suggest()({**data, "age": list(range(20, 32))}, name=title)
    check(found, [*names, "age"])


@given(st.lists(st.sampled_from(HOSTILE) | WORDS, min_size=4, max_size=9, unique_by=str.strip))
def test_any_values(values: list[str]) -> None:
    """Values stand in the text as tokens, as protected sensitive values, and nowhere else."""
    values = [v.strip() for v in values if v.strip()] or ["a"]
    rows = [values[0]] * (4 * len(values)) + values
    data = {"job": rows, "disease": rows, "age": [20 + i % 40 for i in range(len(rows))]}
    found = Suggest()(data)
    check(found, ["job", "disease", "age"])
    protected = [r.parameters.get("values") for r in found.policy.require if r.name == "simple-l-diversity"]
    tokens = set(found.policy.missing.tokens)
    made = found.policy.prepare.get("disease", Preparation())
    tokens |= set(made.missing)
    spelled = {other: value for value, others in made.spellings.items() for other in others}
    for listed in filter(None, protected):
        meant = {spelled.get(v, v) for v in values[1:] if v not in tokens}
        assert set(listed) == meant - ({spelled.get(values[0], values[0])} if made.spellings else set())


@given(st.text(st.characters(codec=None, exclude_categories=())), st.booleans())
def test_a_scalar_is_the_text_it_was(text: str, numbers: bool) -> None:
    for written in (yaml_scalar(text, numbers=numbers), yaml_flow({"key": [text]}, numbers=numbers)):
        assert written.isprintable()
        read = load_yaml(written.encode(), "x")
        assert (read["key"][0] if isinstance(read, dict) else read) == text
    assert yaml.safe_load(yaml_scalar(text)) == text


@pytest.mark.parametrize("length", [999, 1001, 1025, 5000])
def test_long_keys_are_read_again(length: int) -> None:
    made = {"spellings": {"a" * length: ["b"], "c": ["d"]}}
    assert load_yaml(yaml_flow(made).encode(), "x") == made


def test_bare_words_are_not_quoted() -> None:
    assert [yaml_scalar(t) for t in ("age", "marital-status", "Größe", "birth date")] == [
        "age", "marital-status", "Größe", "birth date",
    ]  # fmt: skip
    assert yaml_scalar("5", numbers=True) == "5"
    assert [yaml_scalar(t) for t in ("5", "y", "N", "no", "a b ")] == ['"5"', '"y"', '"N"', '"no"', '"a b "']


def test_comments_stay_comments() -> None:
    lines = comment_lines("a\nversion: 2\r\u2028b " * 40, indent=2)
    assert len(lines) > 3
    assert all(line.startswith("  # ") and line.isprintable() for line in lines)


def test_percentages_never_hide_somebody() -> None:
    assert [percent_text(Fraction(n, 10_000)) for n in (0, 1, 10, 1234, 9_999, 10_000)] == [
        "0 %", "less than 0.1 %", "0.1 %", "12.3 %", "99.9 %", "100 %",
    ]  # fmt: skip


def test_no_value_of_an_identifier_is_written() -> None:
    secrets = [f"Zq{i}xK" for i in range(60)]
    data = {
        "name": secrets,
        "code": [s + "w" for s in secrets],
        "patient_id": [s[:4] + "q" for s in secrets],
        "measure": [987654.125 + i for i in range(60)],
        "note": [f"{s} was seen by {s} at the clinic and went home on the same day" for s in secrets],
        "age": [20 + i % 40 for i in range(60)],
    }
    found = Suggest()(data)
    dropped = [p.name for p in found.profiles if p.role == "identifier"]
    assert dropped == ["name", "code", "patient_id", "measure", "note"]
    shown = found.text + repr(found.profiles) + repr(found.uniqueness) + repr(found.policy)
    for column in dropped:
        assert not [value for value in data[column] if str(value) in shown]
