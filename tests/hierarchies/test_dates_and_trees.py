"""Dates, trees, and how a policy tells the ways of building a hierarchy apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maskwright.domain.settings import parse_settings
from maskwright.hierarchies import WAYS, Intervals
from tests.amounts import amount
from tests.hierarchies.test_builders import Document, build, labels, refused, rejected, spec

# dates


def test_dates_are_a_dag_with_iso_weeks() -> None:
    values = [
        "2024-12-30",
        "2025-01-05",
        "2025-01-06",
        "2024-02-29",
        "2019-07-01",
        "2025-01-31",
        "2025-02-01",
    ]
    written = {"dates": ["year", "week", "month", "quarter", "decade"]}
    hierarchy = build(written, values)
    assert hierarchy.ordered
    assert hierarchy.values == tuple(sorted(values))
    assert [level.name for level in hierarchy.levels] == [
        "exact", "week", "month", "quarter", "year", "decade", "any",
    ]  # fmt: skip
    assert labels(hierarchy, "2024-12-30")[1:6] == ["2025-W01", "2024-12", "2024-Q4", "2024", "2020s"]
    assert labels(hierarchy, "2024-02-29")[1:6] == ["2024-W09", "2024-02", "2024-Q1", "2024", "2020s"]
    week, month, year = (hierarchy.level_of(name) for name in ("week", "month", "year"))
    assert not hierarchy.refines[week, month]
    assert not hierarchy.refines[week, year]
    assert hierarchy.refines[month, year]
    assert not hierarchy.is_chain


def test_timestamps_have_days() -> None:
    values = [
        "2024-01-31 12:00:00",
        "2024-01-31 12:00:00.5",
        "2024-02-01 00:00:00",
        "2024-02-02T08:30:00+01:00",
    ]
    hierarchy = build({"dates": ["day", "month"]}, values)
    assert labels(hierarchy, values[1]) == [values[1], "2024-01-31", "2024-01", "*"]
    assert labels(hierarchy, values[3])[1] == "2024-02-02"


def test_dates_in_another_format_are_ordered_by_time() -> None:
    hierarchy = build({"dates": "month", "format": "%d.%m.%Y"}, ["01.02.2024", "02.01.2024", "31.01.2024"])
    assert hierarchy.values == ("02.01.2024", "31.01.2024", "01.02.2024")
    assert labels(hierarchy, "02.01.2024") == ["02.01.2024", "2024-01", "*"]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("2024-02-30", {"dates": ["month"]}),
        ("31.01.2024", {"dates": ["month"]}),
        ("20240131", {"dates": ["month"]}),
        ("0000-01-01", {"dates": ["month"]}),
        ("2024-01-31 25:00:00", {"dates": ["month"]}),
        ("soon", {"dates": ["month"], "format": "%d.%m.%Y"}),
        ("2024", {"dates": ["month"], "format": "%Y %"}),
        ("2024", {"dates": ["month"], "format": "%Y%Y"}),
        ("2024", {"dates": ["month"], "format": "%Y%Q"}),
        ("2024", {"dates": ["month"], "format": "%G"}),
    ],
)
def test_what_is_no_date_is_refused(value: str, written: Any) -> None:
    assert f"{value!r} is not a date" in refused(written, [value])


def test_dates_have_their_own_order() -> None:
    assert "remove `order`" in refused({"dates": ["year"]}, ["2024-01-01"], order=["2024-01-01"])
    assert "remove `order`" in refused({"intervals": [5]}, ["3"], order=["3"])


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ({"dates": ["fortnight"]}, "hierarchy.dates[0]: 'fortnight' is not allowed"),
        ({"dates": ["week", "week"]}, "'week' is listed twice"),
        ({"dates": []}, "hierarchy.dates"),
        ({"dates": ["week"], "format": "%d %m"}, "has no year"),
        ({"dates": ["week"], "format": "%d %%Y"}, "has no year"),
    ],
)
def test_dates_that_make_no_sense_are_rejected(written: Any, part: str) -> None:
    assert part in rejected(written)


# tree


def test_an_unbalanced_tree() -> None:
    tree = {"Married": {"present": ["civ", "AF"], "absent": ["away"]}, "Single": ["never"], "unknown": None}
    hierarchy = build({"tree": tree}, ["AF", "never"])
    assert [level.name for level in hierarchy.levels] == ["exact", "depth 2", "depth 1", "any"]
    assert hierarchy.base == 5
    assert labels(hierarchy, "civ") == ["civ", "present", "Married", "*"]
    assert labels(hierarchy, "never") == ["never", "never", "Single", "*"]
    assert labels(hierarchy, "unknown") == ["unknown", "unknown", "unknown", "*"]


def test_lists_mappings_and_nodes_without_names_mix() -> None:
    hierarchy = build({"tree": ["a", {"B": ["b", {"C": "c"}]}, ["d", "e"]]}, ["a"])
    assert labels(hierarchy, "c") == ["c", "B", "*"]  # C holds nothing but c
    assert labels(hierarchy, "d") == ["d", "{d, e}", "*"]
    assert hierarchy.values == ("a", "b", "c", "d", "e")


def test_a_node_may_be_called_as_one_of_its_leaves() -> None:
    hierarchy = build({"tree": {"Single": ["Single", "Widowed"], "Married": ["m"]}}, ["m"])
    assert labels(hierarchy, "Widowed") == ["Widowed", "Single", "*"]


def test_trees_name_what_is_wrong() -> None:
    assert "lists 'a' twice" in refused({"tree": {"p": ["a", "b"], "q": ["a"]}})
    assert "called 'n'" in refused({"tree": {"p": {"n": ["a", "b"]}, "q": {"n": ["c", "d"]}}})
    assert "called 'q'" in refused({"tree": {"p": ["q", "b"], "r": {"q": ["c", "d"], "s": [{"t": ["e"]}]}}})
    assert "does not list 'z'; add them to the tree" in refused({"tree": {"p": ["a"]}}, ["a", "z"])


@pytest.mark.parametrize(
    ("tree", "part"),
    [
        ("a", "is no tree"),
        ({}, "empty"),
        ({"p": []}, "empty"),
        ({"p": ["a", None]}, "None is not a value"),
        ({None: ["a"]}, "None is not a value"),
        ({"p": [object()]}, "is not a value"),
        ({1: ["a"], "1": ["b"]}, "the same name"),
    ],
)
def test_trees_that_make_no_sense_are_rejected(tree: Any, part: str) -> None:
    assert part in rejected({"tree": tree})


def test_hostile_nesting_is_one_line() -> None:
    deep: list[Any] = []
    for _ in range(amount(20_000, 100_000)):
        deep = [deep]
    endless: list[Any] = ["a"]
    endless.append(endless)
    bomb: list[Any] = ["a"]
    for _ in range(25):
        bomb = [bomb, bomb]
    assert "30 deep" in rejected({"tree": deep})
    assert "30 deep" in rejected({"tree": endless})
    assert "more than 1000000 nodes" in rejected({"tree": bomb})
    for written in ({"groups": deep}, {"intervals": deep}, {"intervals": [deep]}, {"mask": deep}, deep):
        assert rejected(written)
    for key in ("origin", "below", "domain"):
        with pytest.raises(Exception, match="policy") as caught:
            spec({"intervals": [5], key: deep})
        assert type(caught.value).__name__ == "PolicyError"


# the union


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"interval": [5]}, "unknown way to build a hierarchy 'interval'; did you mean 'intervals'?"),
        (
            {"origin": 5, "interval": [5]},
            "unknown way to build a hierarchy 'interval'; did you mean 'intervals'?",
        ),
        ("supress", "unknown way to build a hierarchy 'supress'; did you mean 'suppress'?"),
        ("age.csv", "to read the hierarchy from a file, write {file: 'age.csv'}"),
        ("mask", "'mask' needs a setting; write {mask: ...}"),
        ({"mask": "left", "file": "x"}, "'mask' and 'file' are two ways to build a hierarchy; keep one"),
        ({"suppress": True}, "write the bare word: hierarchy: suppress"),
        (5, "expected 'suppress' or a mapping such as {intervals: [5, 10]}, got 5"),
        ({"mask": "right", "chr": "#"}, "unknown key 'chr'; did you mean 'char'?"),
        ({"file": "x", "headers": True}, "unknown key 'headers'; did you mean 'header'?"),
        ({}, "expected 'suppress' or a mapping such as {intervals: [5, 10]}, got {}"),
        ([5, 10], "expected 'suppress' or a mapping such as {intervals: [5, 10]}, got [5, 10]"),
    ],
)
def test_an_unknown_way_says_which_there_are(written: Any, message: str) -> None:
    assert rejected(written) == "hierarchy: " + message


WRITTEN: list[Any] = [
    "suppress",
    {"intervals": ["5", [10, 20.5], "1/3"], "origin": "0.1", "below": 0, "above": 1000, "domain": [0, 120]},
    {"intervals": [5]},
    {"groups": [["a", 1], [True]]},
    {"groups": [[["a"], ["b"]], [["a", "b"]]]},
    {"groups": {"young": [1, 2], 5: ["c"]}},
    {"groups": [{"young": [1, 2], "old": 3}, [[1, 2], 3]]},
    {"mask": "left", "by": 2, "char": "#", "domain": [1, "b"]},
    {"dates": ["year", "week"], "format": "%d.%m.%Y", "domain": "01.01.2024"},
    {"tree": {"Married": {"p": ["x", 1.0], "q": "y"}, "z": None, "l": ["m", ["n", {"o": ["r"]}]]}},
    {"file": "education.csv", "header": "true", "delimiter": ";"},
    {"library": "countries"},
]


@pytest.mark.parametrize("written", WRITTEN)
def test_what_is_dumped_parses_to_the_same(written: Any) -> None:
    document = parse_settings(Document, {"columns": {"x": {"hierarchy": written}}}, "policy")
    dumped = document.model_dump(mode="json", exclude_defaults=True)
    assert parse_settings(Document, json.loads(json.dumps(dumped)), "policy") == document
    again = parse_settings(
        Document, {"columns": {"x": {"hierarchy": document.columns["x"].hierarchy}}}, "policy"
    )
    assert again == document


def test_every_way_is_round_tripped() -> None:
    assert {type(spec(written)) for written in WRITTEN} == set(WAYS.values())


def test_the_union_has_every_way_and_a_schema() -> None:
    schema = Document.model_json_schema()
    assert {way.__name__ for way in WAYS.values()} <= set(schema["$defs"])
    assert schema["$defs"]["Suppress"]["const"] == "suppress"
    json.dumps(schema)


def test_an_object_may_stand_in_the_policy() -> None:
    assert spec(Intervals(intervals=[5, 10])) == spec({"intervals": ["5", "10"]})  # type: ignore[arg-type]
