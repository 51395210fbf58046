"""Every builder on random input: its levels against brute force, and against a computation of its own."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskwright.domain.exact import text_of
from maskwright.domain.hierarchy import Hierarchy
from maskwright.hierarchies import Dates, File, Groups, Intervals, Masking, Suppress, Tree
from tests.domain.test_hierarchy import check_against_brute_force, partition

HERE = Path()
words = st.text("ab1*", min_size=1, max_size=5)


def of(spec: dict[str, Any], way: Any, values: list[str], folder: Path = HERE) -> Hierarchy:
    return way.model_validate(spec).build("x", values, folder, ())  # type: ignore[no-any-return]


def same_partition(hierarchy: Hierarchy, level: int, block: Callable[[str], object]) -> bool:
    """Does a level tell apart exactly the pairs of values that `block` tells apart?"""
    found = partition(hierarchy, level)
    return all(
        (found[a] == found[b]) == (block(a) == block(b)) for a in hierarchy.values for b in hierarchy.values
    )


def has_partition(hierarchy: Hierarchy, block: Callable[[str], object]) -> bool:
    return any(same_partition(hierarchy, i, block) for i in range(len(hierarchy.levels)))


decimals = st.tuples(st.integers(-400, 400), st.integers(0, 2)).map(lambda t: Fraction(t[0], 10 ** t[1]))


def written(x: Fraction) -> str:
    return str(x.numerator) if x.denominator == 1 else f"{float(x):.2f}".rstrip("0")


@st.composite
def interval_cases(draw: st.DrawFn) -> tuple[dict[str, Any], list[Fraction]]:
    numbers = draw(st.lists(decimals, max_size=8, unique=True))
    width = draw(decimals.filter(lambda x: x > 0))
    widths = [width]
    for factor in draw(st.lists(st.integers(1, 4), max_size=2)):
        widths.append(widths[-1] * factor)
    spec: dict[str, Any] = {"intervals": [str(w) for w in widths], "origin": str(draw(decimals))}
    ends = sorted(draw(st.lists(decimals, min_size=2, max_size=2, unique=True)))
    for key, end in zip(("below", "above"), ends, strict=True):
        if draw(st.booleans()):
            spec[key] = str(end)
    return spec, numbers


def interval_of(x: Fraction, width: Fraction, spec: dict[str, Any]) -> tuple[Any, Any]:
    """The interval of a number, from the definition: the largest boundary ≤ x and the smallest > x."""
    origin = Fraction(spec["origin"])
    below, above = (Fraction(spec[key]) if key in spec else None for key in ("below", "above"))
    if below is not None and x < below:
        return None, below
    if above is not None and x >= above:
        return above, None
    low = origin + math.floor((x - origin) / width) * width
    return max([low] + [below] * (below is not None)), min([low + width] + [above] * (above is not None))


def parsed(label: str) -> tuple[Fraction | None, Fraction | None]:
    """The bounds that a label tells, in either style, as a half-open interval."""
    if label.startswith("<"):
        return None, Fraction(label[1:])
    if label.startswith("≥"):
        return Fraction(label[1:]), None
    if label.startswith("["):
        low, high = label[1:-1].split(", ")
        return Fraction(low), Fraction(high)
    if ".." in label:
        low, high = label.split("..")
    elif "-" in label[1:]:
        low, high = label.split("-")
    else:
        low = high = label
    return Fraction(low), Fraction(high) + 1


@given(interval_cases())
def test_intervals(case: tuple[dict[str, Any], list[Fraction]]) -> None:
    spec, numbers = case
    values = {written(x): x for x in numbers}
    hierarchy = of(spec, Intervals, list(values))
    check_against_brute_force(hierarchy)
    assert [values[v] for v in hierarchy.values] == sorted(numbers)
    for text in spec["intervals"]:
        width = Fraction(text)
        assert has_partition(hierarchy, lambda v, w=width: interval_of(values[v], w, spec))  # type: ignore[misc]
    for level in hierarchy.levels[1:-1]:
        width = Fraction(level.name.removeprefix("width "))
        for value, block in zip(hierarchy.values, level.blocks[1:].tolist(), strict=True):
            label = level.labels[block]
            assert label is not None
            assert parsed(label) == interval_of(values[value], width, spec)


@given(
    st.lists(st.integers(-30, 130), unique=True, max_size=10),
    st.lists(st.sets(st.integers(-20, 100), min_size=1, max_size=6), min_size=1, max_size=3),
)
def test_cut_points(numbers: list[int], cut_sets: list[set[int]]) -> None:
    levels = [
        sorted(set.union(*cut_sets[i:])) for i in range(len(cut_sets))
    ]  # each a subset of the one before
    hierarchy = of({"intervals": levels}, Intervals, [str(x) for x in numbers])
    check_against_brute_force(hierarchy)
    for cuts in levels:
        assert has_partition(hierarchy, lambda v, c=tuple(cuts): sum(cut <= int(v) for cut in c))  # type: ignore[misc]


@given(
    st.lists(words, unique=True, max_size=9),
    st.sampled_from(["left", "right"]),
    st.none() | st.sets(st.integers(1, 6), min_size=1).map(sorted),
)
def test_masks(values: list[str], side: str, by: list[int] | None) -> None:
    hierarchy = of({"mask": side, "by": by}, Masking, values)
    check_against_brute_force(hierarchy)
    longest = max(map(len, values), default=0)
    for count in by or range(1, longest):

        def visible(value: str, count: int = count) -> str:
            left = max(0, len(value) - count)
            return value[:left] if side == "right" else value[len(value) - left :]

        # a value whose text holds the mask character may meet another's label; levels then only get coarser
        if not any("*" in value for value in values):
            assert has_partition(hierarchy, visible)


@given(
    st.lists(st.dates(date(1899, 12, 1), date(2101, 2, 1)), unique=True, max_size=10),
    st.lists(st.integers(-400, 400), max_size=6),
    st.sets(st.sampled_from(["day", "week", "month", "quarter", "year", "decade"]), min_size=1),
)
def test_dates(some: list[date], offsets: list[int], units: set[str]) -> None:
    near = {some[0] + timedelta(days=d) for d in offsets} if some else set()
    values = sorted({d.isoformat() for d in {*some, *near}})
    hierarchy = of({"dates": sorted(units)}, Dates, values)
    check_against_brute_force(hierarchy)
    assert hierarchy.values == tuple(values)
    monday = date(1800, 1, 6)  # a Monday; weeks are seven days from a Monday on
    assert monday.weekday() == 0
    blocks: dict[str, Callable[[date], object]] = {
        "day": lambda d: d,
        "week": lambda d: (d - monday).days // 7,
        "month": lambda d: (d.year, d.month),
        "quarter": lambda d: (d.year, math.ceil(d.month / 3)),
        "year": lambda d: d.year,
        "decade": lambda d: str(d.year)[:3],
    }
    for unit in units:
        assert has_partition(hierarchy, lambda v, u=unit: blocks[u](date.fromisoformat(v)))  # type: ignore[misc]
    for level in hierarchy.levels[1:-1]:
        for value, block in zip(values, level.blocks[1:].tolist(), strict=True):
            if level.name == "week":
                found = datetime.strptime(f"{level.labels[block]}-1", "%G-W%V-%u").date()
                assert 0 <= (date.fromisoformat(value) - found).days < 7


@st.composite
def nested_groups(draw: st.DrawFn) -> list[list[list[str]]]:
    """Levels of groups, each made by merging groups of the level before."""
    level = [[value] for value in draw(st.lists(words, unique=True, min_size=1, max_size=7))]
    levels = []
    for _ in range(draw(st.integers(1, 3))):
        keys = draw(st.lists(st.integers(0, 3), min_size=len(level), max_size=len(level)))
        merged = [
            [value for group, k in zip(level, keys, strict=True) if k == key for value in group]
            for key in sorted(set(keys))
        ]
        level = merged
        levels.append(level)
    return levels


@given(nested_groups(), st.booleans())
def test_groups(levels: list[list[list[str]]], named: bool) -> None:
    values = sorted(value for group in levels[0] for value in group)
    spec = [{f"#{i}": g for i, g in enumerate(level)} if named else level for level in levels]
    hierarchy = of({"groups": spec}, Groups, values)
    check_against_brute_force(hierarchy)
    assert sorted(hierarchy.values) == values
    for level in levels:
        owner = {value: i for i, group in enumerate(level) for value in group}
        assert has_partition(hierarchy, owner.__getitem__)


trees = st.recursive(
    st.just(None), lambda child: st.lists(child, min_size=1, max_size=3), max_leaves=9
).filter(lambda tree: tree is not None)


@given(trees, st.booleans())
def test_trees(shape: Any, named: bool) -> None:
    counter = iter(range(10_000))
    paths: dict[str, tuple[str, ...]] = {}

    def fill(node: Any, above: tuple[str, ...]) -> Any:
        if node is None:
            leaf = f"leaf{next(counter)}"
            paths[leaf] = (*above, leaf)
            return leaf
        name = f"node{next(counter)}"
        children = [fill(child, (*above, name)) for child in node]
        return {name: children} if named else children

    tree = [fill(child, ()) for child in shape]
    hierarchy = of({"tree": tree}, Tree, sorted(paths))
    check_against_brute_force(hierarchy)
    assert sorted(hierarchy.values) == sorted(paths)
    for depth in range(1, max(map(len, paths.values())) + 1):
        assert has_partition(hierarchy, lambda v, d=depth: paths[v][:d])  # type: ignore[misc]
    for level in hierarchy.levels[1:-1]:
        depth = int(level.name.removeprefix("depth "))
        for value, block in zip(hierarchy.values, level.blocks[1:].tolist(), strict=True):
            if named:
                assert level.labels[block] == paths[value][min(depth, len(paths[value])) - 1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(levels=nested_groups(), delimiter=st.sampled_from([";", ",", "\t"]))
def test_files(tmp_path: Path, levels: list[list[list[str]]], delimiter: str) -> None:
    values = sorted(value for group in levels[0] for value in group)
    owners = [{value: f"#{i}" for i, group in enumerate(level) for value in group} for level in levels]
    rows = [delimiter.join([value, *(owner[value] for owner in owners)]) for value in values]
    (tmp_path / "h.csv").write_text("\n".join(rows), encoding="utf-8")
    hierarchy = of({"file": "h.csv"}, File, values, tmp_path)
    check_against_brute_force(hierarchy)
    for owner in owners:
        assert has_partition(hierarchy, owner.__getitem__)


@given(st.lists(words, unique=True, max_size=6))
def test_suppression(values: list[str]) -> None:
    hierarchy = Suppress().build("x", values, HERE, ())
    check_against_brute_force(hierarchy)
    assert len(hierarchy.levels) == 2


@given(st.integers(-(10**40), 10**40), st.integers(0, 12))
def test_the_text_of_a_number_is_exact(n: int, places: int) -> None:
    text = text_of(Fraction(n, 10**places))
    assert "/" not in text
    assert Fraction(text) == Fraction(n, 10**places)
    assert not re.search(r"\.\d*0$", text)
