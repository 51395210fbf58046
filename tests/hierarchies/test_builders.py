"""Each way of writing a hierarchy: what it gives, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.settings import Settings, parse_settings
from maskwright.errors import HierarchyError, PolicyError
from maskwright.hierarchies import Builder, HierarchySpec, Suppress

HERE = Path(__file__).parent


class Column(Settings):
    hierarchy: HierarchySpec | None = None


class Document(Settings):
    columns: dict[str, Column]


def spec(written: Any) -> Builder:
    document = parse_settings(Document, {"columns": {"x": {"hierarchy": written}}}, "policy")
    found = document.columns["x"].hierarchy
    assert isinstance(found, Builder)
    return found


def build(
    written: Any,
    values: Sequence[str],
    folder: Path = HERE,
    missing: Sequence[str] = (),
    order: Sequence[str] | None = None,
) -> Hierarchy:
    return spec(written).build("x", values, folder, missing, order)


def labels(hierarchy: Hierarchy, value: str) -> list[str | None]:
    """The labels of one value from exact to the top."""
    code = hierarchy.values.index(value) + 1
    return [level.labels[level.blocks[code]] for level in hierarchy.levels]


def refused(written: Any, values: Sequence[str] = (), **options: Any) -> str:
    with pytest.raises(HierarchyError) as caught:
        build(written, values, **options)
    message = str(caught.value)
    assert message.startswith("column 'x': ")
    assert "\n" not in message
    return message


def rejected(written: Any) -> str:
    with pytest.raises(PolicyError) as caught:
        spec(written)
    message = str(caught.value)
    assert message.startswith("policy.columns.x.hierarchy")
    assert "\n" not in message
    assert "\x1f" not in message
    return message.removeprefix("policy.columns.x.")


# suppress


def test_suppress_has_two_levels_and_keeps_the_order_of_numbers() -> None:
    hierarchy = build("suppress", ["9", "10", "2.5"])
    assert hierarchy.values == ("2.5", "9", "10")
    assert hierarchy.ordered
    assert [level.name for level in hierarchy.levels] == ["exact", "any"]
    assert not build("suppress", ["b", "9"]).ordered
    assert isinstance(spec("suppress"), Suppress)


# intervals


def test_a_value_on_a_boundary_belongs_to_the_upper_interval() -> None:
    hierarchy = build({"intervals": ["5", "10", 20]}, ["19", "20", "24", "25", "39"])
    assert labels(hierarchy, "25") == ["25", "25-29", "20-29", "20-39", "*"]
    assert labels(hierarchy, "24") == ["24", "20-24", "20-29", "20-39", "*"]
    assert labels(hierarchy, "19") == ["19", "15-19", "10-19", "0-19", "*"]
    assert [level.name for level in hierarchy.levels] == ["exact", "width 5", "width 10", "width 20", "any"]
    assert hierarchy.ordered


def test_widths_of_a_tenth_are_exact() -> None:
    values = [f"0.{i}" for i in range(1, 10)] + ["0.35", "-0.05"]
    hierarchy = build({"intervals": ["0.1", "0.5"]}, values)
    assert labels(hierarchy, "0.3")[1] == "[0.3, 0.4)"
    assert labels(hierarchy, "0.35")[1] == "[0.3, 0.4)"
    assert labels(hierarchy, "0.7")[1:3] == ["[0.7, 0.8)", "[0.5, 1)"]
    assert labels(hierarchy, "-0.05")[1:3] == ["[-0.1, 0)", "[-0.5, 0)"]
    assert hierarchy.values[:2] == ("-0.05", "0.1")


def test_python_floats_mean_the_decimal_that_is_written() -> None:
    assert spec({"intervals": [0.1, 0.5]}) == spec({"intervals": ["0.1", "0.5"]})


def test_one_value_that_is_not_whole_turns_the_labels_of_all() -> None:
    assert labels(build({"intervals": [5]}, ["20", "21", "30.5"]), "20")[1] == "[20, 25)"


def test_open_ends() -> None:
    values = ["3", "18", "19", "20", "65", "79", "80", "101"]
    hierarchy = build({"intervals": [10, 20], "below": 18, "above": "80"}, values)
    assert labels(hierarchy, "3")[1:3] == ["<18", "<18"]
    assert labels(hierarchy, "18")[1:3] == ["18-19", "18-19"]
    assert labels(hierarchy, "79")[1:3] == ["70-79", "60-79"]
    assert labels(hierarchy, "80")[1:3] == labels(hierarchy, "101")[1:3] == ["≥80", "≥80"]


def test_cut_points() -> None:
    hierarchy = build({"intervals": [[18, 40, 65], [40]]}, ["17", "18", "39", "40", "64", "65"])
    assert [labels(hierarchy, v)[1] for v in hierarchy.values] == [
        "<18",
        "18-39",
        "18-39",
        "40-64",
        "40-64",
        "≥65",
    ]
    assert [labels(hierarchy, v)[2] for v in hierarchy.values] == ["<40"] * 3 + ["≥40"] * 3
    mixed = build({"intervals": [5, [20, 65]]}, ["19", "20", "60", "64", "65"])
    assert labels(mixed, "64") == ["64", "60-64", "20-64", "*"]


def test_origin_and_negative_numbers() -> None:
    hierarchy = build({"intervals": [10], "origin": 3}, ["-8", "-7", "2", "3", "12"])
    assert [labels(hierarchy, v)[1] for v in hierarchy.values] == [
        "-17..-8",
        "-7..2",
        "-7..2",
        "3-12",
        "3-12",
    ]


def test_a_huge_range_costs_nothing() -> None:
    hierarchy = build({"intervals": [1, 10, "1e90"]}, ["0", "1", "9" * 80, "1e300"])
    assert hierarchy.base == 4
    assert labels(hierarchy, "9" * 80)[1] == "9" * 79 + "0-" + "9" * 80


def test_the_declared_domain_is_the_base() -> None:
    hierarchy = build({"intervals": [5, 40], "domain": [0, 120]}, ["39"], missing=["99"])
    assert hierarchy.base == 120  # 99 means missing
    assert hierarchy.values[:2] == ("0", "1")
    level = hierarchy.levels[1]
    assert level.leaves[level.blocks[hierarchy.values.index("39") + 1]] == 5
    message = refused({"intervals": [5], "domain": [0, 120]}, ["39", "130", "-1", "7.5", "200"])
    assert "the domain [0, 120] does not list '130', '-1', '7.5' and 1 more; widen `domain`" in message


@pytest.mark.parametrize(
    "value", ["nan", "inf", "-Infinity", "12a", "1/4", "2%", "1_000", "٣", "1e9999", "0x1F"]
)
def test_what_is_no_number_lies_in_no_interval(value: str) -> None:
    assert f"{value!r} is not a number" in refused({"intervals": [5]}, ["39", value])


@pytest.mark.parametrize(
    ("intervals", "names"),
    [
        ([5, 12], ["5", "12", "multiple"]),
        (["0.2", "0.5"], ["0.2", "0.5"]),
        ([10, 5], ["10", "5"]),
        ([5, [18, 40]], ["width 5", "18"]),
        ([[18, 40], [18, 41]], ["41", "cut at 18, 40"]),
        ([[20, 40], 20], ["width 20", "boundary 0"]),
    ],
)
def test_intervals_that_do_not_nest_are_refused_whatever_the_data(intervals: Any, names: list[str]) -> None:
    message = refused({"intervals": intervals}, [])
    assert all(name in message for name in names)


def test_a_width_over_cut_points_needs_every_boundary() -> None:
    cuts = {"intervals": [[20, 40, 60], 20], "below": 20, "above": 80}
    assert labels(build(cuts, ["10", "20", "39", "59", "70", "99"]), "59")[1] == "40-59"
    assert "boundary 60" in refused({**cuts, "intervals": [[20, 40], 20]})
    assert "boundary" in refused({"intervals": [[20, 40, 60], 20], "below": 20})
    assert "boundary" in refused({"intervals": [[20, 40, 60], 20], "above": 60})


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ({"intervals": []}, "between 1 and"),
        ({"intervals": [0]}, "not positive"),
        ({"intervals": ["-5"]}, "not positive"),
        ({"intervals": ["nan"]}, "'nan' is not a number"),
        ({"intervals": [float("inf")]}, "finite"),
        ({"intervals": [[5, 5]]}, "must ascend"),
        ({"intervals": [[]]}, "cut points"),
        ({"intervals": [[[5]]]}, "[5] is not a number"),
        ({"intervals": [5], "below": 10, "above": 10}, "below (10) must be smaller than above (10)"),
        ({"intervals": [[5, 50]], "below": 10}, "cut point 5 lies outside"),
        ({"intervals": [5], "domain": [0, "1e9"]}, "more than 1000000"),
        ({"intervals": [5], "domain": [5, 0]}, "ascending"),
        ({"intervals": [5], "domain": 7}, "is not a range"),
        ({"intervals": [5], "orgin": 7}, "hierarchy: unknown key 'orgin'; did you mean 'origin'?"),
    ],
)
def test_intervals_that_make_no_sense_are_rejected(written: Any, part: str) -> None:
    assert part in rejected(written)


# groups


def test_one_level_of_groups_named_or_not() -> None:
    hierarchy = build({"groups": [["b", "a"], ["c"]]}, ["a", "c"])
    assert hierarchy.values == ("a", "b", "c")
    assert labels(hierarchy, "a") == ["a", "{a, b}", "*"]
    assert labels(hierarchy, "c") == ["c", "c", "*"]
    named = build({"groups": {"young": [1, 2], "old": [10]}}, ["1", "10", "2"])
    assert named.values == ("1", "2", "10")
    assert named.ordered
    assert labels(named, "2") == ["2", "young", "*"]


def test_several_levels_of_groups() -> None:
    hierarchy = build({"groups": [[["a", "b"], ["c"], ["d"]], [["a", "b", "c"], ["d"]]]}, ["a", "d"])
    assert labels(hierarchy, "b") == ["b", "{a, b}", "{a, b, c}", "*"]
    mixed = build({"groups": [{"p": ["a", "b"], "q": ["c"], "r": "d"}, [["a", "b", "c"], "d"]]}, ["a", "d"])
    assert labels(mixed, "c") == ["c", "q", "{a, b, c}", "*"]
    with pytest.raises(HierarchyError, match="'a' and 'b' are together"):
        build({"groups": [[["a", "b"], ["c"]], [["a", "c"], ["b"]]]}, [])


def test_ordered_groups_are_runs_of_the_order() -> None:
    order = ["primary", "secondary", "tertiary", "doctorate"]
    written = {"groups": [["secondary", "primary"], ["tertiary"], ["doctorate"]]}
    hierarchy = build(written, ["tertiary", "primary"], order=order)
    assert hierarchy.values == tuple(order)
    assert hierarchy.ordered
    assert labels(hierarchy, "secondary") == ["secondary", "primary..secondary", "*"]
    gap = {"groups": [["primary", "tertiary"], ["secondary", "doctorate"]]}
    assert "'primary' and 'tertiary' but not 'secondary'" in refused(gap, ["primary"], order=order)
    assert "the order does not list 'doctorate'; add" in refused(written, ["primary"], order=order[:3])
    assert "the order lists 'a' twice" in refused("suppress", ["a"], order=["a", "a"])


def test_groups_name_what_is_wrong() -> None:
    unlisted = refused({"groups": [["a", "b"]]}, ["a", "v", "w", "y", "z"])
    assert "the hierarchy does not list 'v', 'w', 'y' and 1 more; add them to a group" in unlisted
    assert "lists 'b' in two groups" in refused({"groups": [["a", "b"], ["b"]]})
    assert "level 2 of the groups does not list 'c'" in refused(
        {"groups": [[["a", "b"], ["c"]], [["a", "b"]]]}
    )
    assert "level 1 of the groups does not list 'c'" in refused(
        {"groups": [[["a", "b"]], [["a", "b"], ["c"]]]}
    )
    assert "'{a, b, c}'" in refused({"groups": [["a, b", "c"], ["a", "b, c"]]})
    assert "reads as missing" in refused({"groups": {"?": ["a"], "b": ["b"]}}, missing=["?"])


def test_a_missing_token_is_no_ground_value() -> None:
    hierarchy = build({"groups": [["a", "?"], ["b", ""]]}, ["a", "b"], missing=["?"])
    assert hierarchy.values == ("a", "b")
    assert build({"tree": {"p": ["a", "?"], "q": ["b"]}}, ["a"], missing=["?"]).values == ("a", "b")


@pytest.mark.parametrize(
    ("groups", "part"),
    [
        ([], "no list of groups"),
        ("a", "no list of groups"),
        ({}, "no list of groups"),
        ([[], ["a"]], "a group is empty"),
        ({"p": []}, "a group is empty"),
        ([["a", None]], "None is not a value"),
        ([["a", "b"], {"p": ["c"]}], "['a', 'b'] stands among whole levels"),
        ({1: ["a"], "1": ["b"]}, "the same name"),
        ([[["a"]]] * 31, "at most 30"),
    ],
)
def test_groups_that_make_no_sense_are_rejected(groups: Any, part: str) -> None:
    assert part in rejected({"groups": groups})


# mask


def test_masking_from_either_end() -> None:
    right = build({"mask": "right"}, ["12345", "12399", "54321"])
    assert labels(right, "12345") == ["12345", "123**", "*"]  # 1234* would tell apart what 12345 does
    assert labels(build({"mask": "right"}, ["121", "122", "133", "211"]), "121") == ["121", "12*", "1**", "*"]
    assert labels(build({"mask": "left", "char": "#"}, ["121", "221", "331", "212"]), "121") == [
        "121", "#21", "##1", "*",
    ]  # fmt: skip


def test_masking_by_chosen_numbers_of_characters() -> None:
    values = ["10115", "10117", "10997", "20095"]
    hierarchy = build({"mask": "right", "by": ["2", 3]}, values)
    assert [level.name for level in hierarchy.levels] == ["exact", "masked 2", "masked 3", "any"]
    assert labels(hierarchy, "10115") == ["10115", "101**", "10***", "*"]


def test_masking_values_of_different_lengths_nests() -> None:
    hierarchy = build({"mask": "right"}, ["1", "2", "12", "13", "123", "124", "139"])
    assert labels(hierarchy, "1") == ["1", "**", "**", "*"]
    assert labels(hierarchy, "12") == ["12", "1*", "**", "*"]
    assert labels(hierarchy, "124") == ["124", "12*", "1**", "*"]


def test_long_values_get_a_limited_number_of_levels() -> None:
    values = [f"{i:060b}" for i in range(0, 2**60, 2**60 // 997)]
    hierarchy = build({"mask": "right"}, values)
    assert 3 < len(hierarchy.levels) <= 12
    assert build({"mask": "left"}, []).base == 1


def test_mask_domain_is_the_base() -> None:
    hierarchy = build({"mask": "right", "domain": [10, 11, 20, "?"]}, ["10"], missing=["?"])
    assert hierarchy.values == ("10", "11", "20")
    assert "the domain does not list '12'" in refused({"mask": "right", "domain": [10, 11]}, ["12"])


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ({"mask": "rigth"}, "'rigth' is not allowed; expected 'right' or 'left'"),
        ({"mask": "right", "by": [3, 2]}, "2 after 3"),
        ({"mask": "right", "by": [0]}, "hierarchy.by[0]"),
        ({"mask": "right", "by": ["x"]}, "hierarchy.by[0]"),
        ({"mask": "right", "char": "**"}, "hierarchy.char"),
        ({"mask": "right", "char": " "}, "cannot be seen"),
    ],
)
def test_masks_that_make_no_sense_are_rejected(written: Any, part: str) -> None:
    assert part in rejected(written)
