"""Texts of which none is rare get groups of values whose people are alike, and nothing sensitive is looked at."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.suggest.merged_values import FEWEST, IN_GROUPS, similar_values_merged
from tests.suggest.test_suggest_roles import facts

AGES = {"pupil": 16, "student": 18, "nurse": 40, "cook": 42, "retired": 75, "widow": 78}


def people(seed: int = 1) -> pa.Table:
    """Jobs that go with ages; diseases that go with nothing, and are another draw for another seed."""
    rng, more = random.Random(1), random.Random(seed)  # noqa: S311
    jobs = [rng.choice(list(AGES)) for _ in range(600)]
    columns: dict[str, list[Any]] = {
        "job kind": jobs,
        "age": [max(10, int(rng.gauss(AGES[job], 3))) for job in jobs],
        "sex": [rng.choice("FM") for _ in jobs],
        "disease": [more.choice(["flu", "cold", "HIV", "ulcer"]) for _ in jobs],
    }
    return pa.table(columns)


def groups_of(table: pa.Table, column: str = "job kind") -> Any:
    found = mw.suggest_policy(table, tried=False)
    [profile] = [p for p in found.profiles if p.name == column]
    assert IN_GROUPS in profile.notes
    return profile.hierarchy["groups"]


def test_values_whose_people_are_alike_are_together() -> None:
    [level] = groups_of(people())
    assert sorted(map(sorted, level)) == [["cook", "nurse"], ["pupil", "student"], ["retired", "widow"]]


def test_two_of_three_values_are_together_and_codes_are_values() -> None:
    """The codes 1 and 3 are held by young people, 2 by old ones: order is no likeness."""
    rng = random.Random(5)  # noqa: S311
    codes = [rng.choice([1, 2, 3]) for _ in range(600)]
    ages = [int(rng.gauss(70 if code == 2 else 25, 4)) for code in codes]
    table = pa.table({"kind of job": codes, "age": ages, "sex": [rng.choice("FM") for _ in codes]})
    assert groups_of(table, "kind of job") == [[["1", "3"], ["2"]]]


def test_what_is_sensitive_changes_no_group() -> None:
    assert groups_of(people(1)) == groups_of(people(2))


def test_the_policy_with_such_groups_publishes() -> None:
    table = people()
    release = mw.anonymize(table, mw.suggest_policy(table, tried=False).policy)
    assert release.ok


def test_levels_nest_and_hold_every_value() -> None:
    rng = random.Random(3)  # noqa: S311
    names = [f"v{i}" for i in range(24)]
    cells = [rng.choice(names) for _ in range(2_000)]
    ages = [str(20 + names.index(cell) // 6 * 15 + rng.randrange(10)) for cell in cells]
    found = similar_values_merged(facts("job", cells), cells, {"age": (facts("age", ages), ages)})
    assert found is not None
    assert [len(level) for level in found["groups"]] == [12, 6, 3]
    for level in found["groups"]:
        assert sorted(value for group in level for value in group) == sorted(names)
    for finer, coarser in zip(found["groups"], found["groups"][1:], strict=False):
        assert all(any(set(group) <= set(wider) for wider in coarser) for group in finer)


@pytest.mark.parametrize("number", [2, FEWEST - 1, 61])
def test_too_few_or_too_many_values_get_none(number: int) -> None:
    cells = [f"v{i % number}" for i in range(300)]
    assert similar_values_merged(facts("job", cells), cells, {"age": (facts("age", cells), cells)}) is None
