"""Policies: strict, exact, and the same after a round trip."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.errors import PolicyError
from maskwright.policy.policy import Policy
from maskwright.policy.yaml_text import dump_yaml, load_yaml

GOOD: dict[str, Any] = {
    "version": 1,
    "columns": {"age": {"role": "quasi-identifier"}, "disease": "sensitive", "name": "identifier"},
    "require": [{"model": "k-anonymity", "k": 5}],
}


def refused(match: str, **changes: Any) -> None:
    with pytest.raises(PolicyError, match=match) as caught:
        Policy.load(GOOD | changes)
    assert "\n" not in str(caught.value)


def test_shorthand_roles_and_defaults() -> None:
    policy = Policy.load(GOOD)
    assert policy.quasi_identifiers == ["age"]
    assert policy.sensitive == ["disease"]
    assert policy.method.name == "optimal-lattice"
    assert policy.missing.rows == "keep"


def test_round_trip_through_yaml(tmp_path: Path) -> None:
    policy = Policy.load(
        GOOD
        | {
            "unit": "name",
            "missing": {"tokens": ["?", "NA"], "rows": "drop"},
            "input": {"delimiter": ";", "encoding": "latin-1"},
            "columns": {
                "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}, "weight": "1/3"},
                "no": {"role": "quasi-identifier", "hierarchy": "suppress", "levels": [0, 1]},
                "disease": {"role": "sensitive", "sensitive_sets": [["HIV"], ["NO", "null", "007"]]},
                "name": "identifier",
            },
            "method": {"name": "optimal-lattice", "suppression": 0.02},
        }
    )
    path = tmp_path / "policy.yaml"
    path.write_text(policy.to_yaml(), encoding="utf-8")
    again = Policy.load(path)
    assert again.to_yaml() == policy.to_yaml()
    assert again.require[0].parameters == {"k": "5"}
    assert again.columns == policy.columns
    assert again.columns["age"].weight == Fraction(1, 3)
    assert again.columns["disease"].sensitive_sets == (("HIV",), ("NO", "null", "007"))
    assert again.folder == tmp_path


def test_numbers_are_what_is_written() -> None:
    text = (
        b"version: 1\ncolumns:\n  a: {role: quasi-identifier, weight: 0.1}\nrequire: [{model: m, t: 0.1}]\n"
    )
    policy = Policy.of(load_yaml(text, "p"), "p")
    assert policy.columns["a"].weight == Fraction(1, 10)
    assert policy.require[0].parameters == {"t": "0.1"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": {}}, "quasi-identifier"),
        ({"columns": {"a": "quasi-identifer"}}, "columns.a.role"),
        (
            {"columns": {"a": {"role": "quasi-identifier", "hierachy": "suppress"}}},
            "did you mean 'hierarchy'",
        ),
        (
            {"columns": {"a": "quasi-identifier", "b": {"role": "sensitive", "weight": 2}}},
            "'weight' means nothing",
        ),
        ({"require": []}, "require"),
        ({"require": [{"k": 5}]}, "names no model"),
        ({"version": 2}, "version"),
        ({"unit": "age"}, "role must be identifier"),
        ({"method": {"suppression": 1}}, "names no method"),
        ({"missing": {"rows": "maybe"}}, "missing.rows"),
        ({"columns": {"a": {"role": "quasi-identifier", "weight": "nan"}}}, "not a number"),
        ({"columns": {"a": {"role": "quasi-identifier", "weight": -1}}}, "weight"),
        ({"surprise": 1}, "unknown key 'surprise'"),
        (
            {"columns": {"a": "quasi-identifier", "b": {"role": "sensitive", "publish": {"noise": "1/10"}}}},
            "expected settings, {with: …, share: …, correlated: …}",
        ),
        (
            {
                "columns": {
                    "a": "quasi-identifier",
                    "b": {"role": "sensitive", "publish": {"rank-swap": "10"}},
                }
            },
            "10 is not allowed; expected less than or equal to 1",
        ),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    refused(message, **changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a: &x 1\nb: *x\n", "anchors and aliases"),
        (b"a: 1\na: 2\n", "'a' is given twice"),
        (b"? [1, 2]\n: 3\n", "plain text"),
        (b"[" * 100 + b"]" * 100, "nested too deeply"),
        (b"a: [1\n", "not valid YAML"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"a: \x00\n", "not valid YAML"),
        (b"x" * (2 << 20), "larger than"),
        (b"--- a\n--- b\n", "not valid YAML"),
    ],
)
def test_hostile_yaml(text: bytes, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        load_yaml(text, "policy.yaml")


def test_yaml_scalars_stay_text() -> None:
    values = load_yaml(b"[NO, 1.10, 0x10, 2024-01-31, true, ~, null, '', \"null\", 12:30, .inf]", "p")
    assert values == ["NO", "1.10", "0x10", "2024-01-31", "true", None, None, "", "null", "12:30", ".inf"]


def test_a_yaml_bomb_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40)]
    with pytest.raises(PolicyError, match="anchors"):
        load_yaml("\n".join(lines).encode(), "p")


scalars = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(scalars, inner, max_size=4),
    max_leaves=12,
)


@given(trees)
def test_what_is_dumped_is_loaded(value: Any) -> None:
    assert load_yaml(dump_yaml(value).encode(), "p") == value


@given(st.binary(max_size=200))
def test_any_bytes_are_loaded_or_refused(data: bytes) -> None:
    try:
        values = load_yaml(data, "p")
        Policy.of(values, "p")
    except PolicyError as problem:
        assert "\n" not in str(problem)
