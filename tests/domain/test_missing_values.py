"""What means missing is one rule: the tokens of a policy mean the same to an engine and to every kind of hierarchy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.domain.missing_values import missing_texts
from maskwright.hierarchies import WAYS
from maskwright.recode.rare_items import items_of

TOKENS = (" NA ", "-1", "")
BUILDERS: dict[str, dict[str, Any]] = {
    "groups": {"groups": [["5", "NA"], ["6", "-1"]]},
    "tree": {"tree": {"low": ["5", "NA", "-1"], "high": ["6"]}},
    "mask": {"mask": "right", "domain": ["5", "6", "NA", "-1"]},
    "intervals": {"intervals": [5], "domain": [-1, 6]},
}


@pytest.mark.parametrize("kind", BUILDERS)
def test_a_token_is_no_value_of_a_hierarchy(kind: str) -> None:
    made = WAYS[kind](**BUILDERS[kind]).build("x", ["5", "6"], Path(), TOKENS)
    assert {"5", "6"} <= set(made.values) and not {"NA", "-1", ""} & set(made.values)


def test_a_token_is_no_value_of_a_table_or_set() -> None:
    assert missing_texts(TOKENS) == {"", "NA", "-1"}
    assert items_of("a; NA ;;b", ";", TOKENS) == {"a", "b"}
    table = pd.DataFrame({"x": ["a", " NA", "b", ""] * 3})
    columns = {"x": {"role": "quasi-identifier", "hierarchy": {"groups": [["a", "NA"], ["b"]]}}}
    policy = {
        "version": 1,
        "missing": {"tokens": [" NA "]},
        "columns": columns,
        "require": [{"model": "k-anonymity", "k": 2}],
    }
    assert set(mw.anonymize(table, mw.Policy.of(policy, "policy")).table["x"].dropna()) == {"a", "b"}
