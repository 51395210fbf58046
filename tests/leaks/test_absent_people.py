"""What is published must not depend on the values of people who are not: pairs of tables that differ only in them."""

from __future__ import annotations

import datetime
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.domain.release import Release
from maskwright.errors import HierarchyError, PolicyNotMet
from maskwright.policy.policy import Policy
from maskwright.verification.verify import verify_folder
from tests.amounts import amount

LATTICE = "{name: optimal-lattice, suppression: 60%, suppress: small-classes}"
POLICY = """
version: 1
columns:
  age: {{role: quasi-identifier, {how}}}
  sex: {{role: quasi-identifier, hierarchy: suppress}}
  disease: sensitive
missing: {{rows: {missing}}}
require: [{{model: k-anonymity, k: 2}}]
method: {method}
output: {{format: {format}}}
{more}
"""


def release(
    folder: Path, rows: list[str], how: str, method: str = LATTICE, missing: str = "keep", format: str = "csv",
    more: str = "",
) -> tuple[Release, dict[str, bytes]]:  # fmt: skip
    """The release of a table with the columns age, sex and disease, and the files of public/."""
    folder.mkdir()
    (folder / "t.csv").write_text("\n".join(["age,sex,disease", *rows]) + "\n", encoding="utf-8")
    text = POLICY.format(how=how, method=method, missing=missing, format=format, more=more)
    (folder / "p.yaml").write_text(text, encoding="utf-8")
    made = mw.anonymize(folder / "t.csv", Policy.load(folder / "p.yaml"), seed=1)
    made.save(folder / "out")
    public = folder / "out" / "public"
    assert verify_folder(folder / "out").ok
    return made, {p.name: p.read_bytes() for p in sorted(public.iterdir())}


def ages(files: dict[str, bytes]) -> set[str]:
    lines = files["data.csv"].decode().splitlines()[1:]
    return {line.rsplit(",", 2)[0].strip('"') for line in lines}


INTERVALS = "hierarchy: {intervals: [5, 10, 20]}"
TWENTIES = ["20,m,flu", "21,m,cold", "22,m,flu", "23,m,hiv"]
THIRTIES = ["30,m,flu", "31,m,cold"]


def test_a_dropped_fraction_does_not_change_how_intervals_are_written(tmp_path: Path) -> None:
    _, without = release(tmp_path / "a", [*TWENTIES, *THIRTIES], INTERVALS)
    for i, stranger in enumerate(["97.5,m,flu", "97,m,flu", "-3,m,flu"]):
        made, with_one = release(tmp_path / f"b{i}", [*TWENTIES, *THIRTIES, stranger], INTERVALS)
        assert made.grouping.dropped_rows == 1
        assert with_one == without
    assert ages(without) == {"20-24", "30-34"}


def test_a_published_fraction_does(tmp_path: Path) -> None:
    _, files = release(tmp_path / "a", [*TWENTIES, *THIRTIES, "97.5,m,flu", "96,m,flu"], INTERVALS)
    assert ages(files) == {"[20, 25)", "[30, 35)", "[95, 100)"}


def test_a_dropped_outlier_does_not_decide_whether_a_block_is_the_top(tmp_path: Path) -> None:
    rows = ["20,m,flu", "38,m,cold", "21,m,flu", "37,m,hiv", "29,m,flu"]
    how = "hierarchy: {intervals: [20]}"
    one, without = release(tmp_path / "a", rows, how, "{name: optimal-lattice, suppression: 20%}")
    two, with_one = release(
        tmp_path / "b", [*rows, "97,m,flu"], how, "{name: optimal-lattice, suppression: 20%}"
    )
    assert (one.grouping.dropped_rows, two.grouping.dropped_rows) == (0, 1)
    assert with_one == without
    assert ages(without) == {"*"}


@pytest.mark.parametrize("stranger", ["-3,m,", "a-b,m,", "7,m,"])
@pytest.mark.parametrize("method", ["{name: mondrian, cut: relaxed, labels: ranges}", "mondrian"])
def test_ranges_and_sets_tell_nothing_of_rows_that_miss_a_value(
    tmp_path: Path, stranger: str, method: str
) -> None:
    rows = [*TWENTIES, *THIRTIES, "40,m,flu", "41,m,hiv"]
    _, without = release(tmp_path / "a", rows, "hierarchy: suppress", method, missing="drop")
    made, with_one = release(tmp_path / "b", [*rows, stranger], "hierarchy: suppress", method, missing="drop")
    assert made.grouping.summary.dropped_missing == 1
    assert with_one == without
    assert ages(without) & {"20-21", "20-22", "20-23"}


def test_a_restricted_level_keeps_its_text_where_all_who_remain_share_it(tmp_path: Path) -> None:
    rows = [*TWENTIES, *THIRTIES]
    how = 'hierarchy: {intervals: [20, 40]}, levels: ["width 20"]'
    _, files = release(tmp_path / "a", [*rows, "97,m,flu"], how)
    assert ages(files) == {"20-39"}


def test_finest_is_never_undercut(tmp_path: Path) -> None:
    """Where each published block holds one value, its label is still that of the level the policy asks for."""
    rows = ["20,m,flu", "20,m,cold", "30,m,flu", "30,m,hiv"]
    how = 'hierarchy: {intervals: [5, 10, 20]}, finest: "width 10"'
    for more in ("", "recoding: {name: permute, quasi_identifiers: exact}"):
        _, files = release(tmp_path / f"a{len(more)}", [*rows, "26,f,flu", "97,f,flu"], how, more=more)
        shown = files["data.csv"].decode()
        assert "20-29" in shown
        assert "30-39" in shown


BUILDERS = {
    "intervals": (INTERVALS, st.one_of(st.integers(-9, 60), st.sampled_from([0.5, 12.25, 44.5, 97.5])).map(str)),
    "domain": ("hierarchy: {intervals: [5, 10, 20], domain: [0, 60]}", st.integers(0, 60).map(str)),
    "dates": (
        "hierarchy: {dates: [week, month, year]}",
        st.dates(*(np.datetime64(d).item() for d in ("2023-12-01", "2024-02-28"))).map(str),
    ),
    "mask": ("hierarchy: {mask: right}", st.text("12", min_size=1, max_size=4)),
    "long mask": (
        "hierarchy: {mask: right}",
        st.tuples(st.text("12", min_size=3, max_size=3), st.integers(8, 30)).map(lambda x: x[0].ljust(x[1], "7")),
    ),
    "tree": ("hierarchy: {tree: {low: {l: [a, b], m: [c]}, high: [d, e]}}", st.sampled_from("abcde")),
    "groups": ("hierarchy: {groups: [[[a, b], [c], [d, e]], [[a, b, c], [d, e]]]}", st.sampled_from("abcde")),
    "suppress": ("hierarchy: suppress", st.sampled_from(["1", "2", "10", "-4", "x", "a,b", "{"])),
}  # fmt: skip
METHODS = [
    LATTICE,
    "{name: local-recoding, suppression: 60%}",
    "{name: optimal-lattice, suppression: 60%, suppressed_rows: star}",
    "{name: mondrian, cut: relaxed}",
    "{name: mondrian, cut: strict, labels: ranges}",
]


def groups_of(made: Release) -> set[tuple[tuple[str, int], ...]]:
    """The groups as multisets of published values, and what is starred."""
    grouping = made.grouping
    texts = [
        [h.levels[0].labels[code] for code in codes.tolist()]
        for h, codes in zip(grouping.summary.attributes, grouping.summary.codes, strict=True)
    ]
    found: dict[int, list[tuple[str, int]]] = {}
    entries = zip(*(x.tolist() for x in (grouping.allocation.tuples, grouping.allocation.groups,
                                         grouping.allocation.rows)), strict=True)  # fmt: skip
    for t, g, rows in entries:
        if g >= 0:
            found.setdefault(g, []).append((repr([column[t] for column in texts]), rows))
    return {tuple(sorted(members)) for members in found.values()}


@pytest.mark.parametrize("builder", BUILDERS)
@settings(
    max_examples=amount(1, 6), deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)
@given(data=st.data())
def test_two_tables_with_the_same_groups_are_published_alike(builder: str, data: st.DataObject) -> None:
    """Whoever was dropped and why: the same people in the same groups are the same bytes."""
    how, values = BUILDERS[builder]
    method = data.draw(st.sampled_from(METHODS))
    twice = [v for v in data.draw(st.lists(values, min_size=2, max_size=4, unique=True)) for _ in range(2)]
    rows = [f'"{v}",m,{d}' for v, d in zip(twice, "abcdabcd", strict=False)]
    strangers = data.draw(st.lists(values, max_size=2, unique=True)), data.draw(st.lists(values, max_size=2))
    tables = [
        [*rows, *(f'"{v}",f{i},' if missing else f'"{v}",f{i},a' for i, v in enumerate(some))]
        for some in strangers
        for missing in ["mondrian" in method or data.draw(st.booleans())]
    ]
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = [release(Path(folder) / str(i), t, how, method, "drop") for i, t in enumerate(tables)]
        except PolicyNotMet:
            assume(False)
        (one, public), (two, other) = made
        starred = [r.grouping.starred is not None for r in (one, two)]
        assume(groups_of(one) == groups_of(two) and starred[0] == starred[1])
        levels = [
            None
            if g.levels is None
            else [h.top == j for h, j in zip(g.summary.attributes, g.levels, strict=True)]
            for g in (one.grouping, two.grouping)
        ]
        assume(levels[0] == levels[1])  # whether a column is given up altogether is a choice of the search
        assert public == other


DAY, NOON = datetime.date(2024, 1, 31), datetime.datetime(2024, 1, 30, 12)
STRANGERS: dict[str, tuple[list[Any], list[Any]]] = {
    "whole numbers": ([20, 30], [97, 97.5, None, "x", 2**70]),
    "dates": ([DAY, DAY.replace(day=1)], [DAY, NOON, None, "x"]),
    "times": (
        [NOON, NOON.replace(microsecond=500_000)],
        [NOON, DAY, None, NOON.replace(tzinfo=datetime.UTC)],
    ),
    "decimals": ([Decimal("1.50"), Decimal(2)], [Decimal(3), None, 1.25, "x"]),
    "yes and no": ([True, False], [True, None, 1, "x"]),
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_a_dropped_value_of_another_type_changes_no_text(kind: str) -> None:
    """In a column of objects, which has no type but that of its values: of each role, as CSV."""
    values, strangers = STRANGERS[kind]
    columns: dict[str, Any] = {"q": "quasi-identifier", "sex": "quasi-identifier", "s": "sensitive"}
    columns["i"] = {"role": "insensitive", "near_unique": "allow"}
    policy = {
        "unit": "none", "columns": columns, "require": [{"model": "k-anonymity", "k": 2}],
        "output": {"format": "csv"},
        "method": {"name": "optimal-lattice", "suppression": "60%"},
    }  # fmt: skip
    published = []
    for stranger in strangers:
        column = pd.Series([*values, *values, stranger], dtype=object)
        frame = pd.DataFrame({"q": column, "sex": [*"mmmm", "f"], "s": column, "i": column})
        with tempfile.TemporaryDirectory() as folder:
            made = mw.anonymize(frame, policy, Path(folder) / "out", seed=1)
            text = (Path(folder) / "out" / "public" / "data.csv").read_text()
        assert made.grouping.dropped_rows == 1
        published.append(sorted(text.splitlines()))
    assert published == [published[0]] * len(strangers)


def test_a_dropped_time_of_a_sheet_makes_no_midnights(tmp_path: Path) -> None:
    """Excel cells say for themselves whether they have a time; the dates of the others stay dates."""
    days = [DAY, DAY, DAY.replace(day=1), DAY.replace(day=1)]
    policy = {
        "unit": "none", "columns": {"q": {"role": "quasi-identifier", "hierarchy": {"dates": ["month", "year"]}},
        "sex": "quasi-identifier", "s": "sensitive"}, "require": [{"model": "k-anonymity", "k": 2}],
        "method": {"name": "optimal-lattice", "suppression": "60%"},
    }  # fmt: skip
    published = []
    for i, stranger in enumerate((DAY, NOON)):
        frame = pd.DataFrame(
            {"q": [*days, stranger], "sex": [*"mmmm", "f"], "s": [*"abab", "a"]}, dtype=object
        )
        frame.to_excel(tmp_path / f"{i}.xlsx", index=False)
        mw.anonymize(tmp_path / f"{i}.xlsx", policy, tmp_path / str(i), seed=1)
        published.append(sorted((tmp_path / str(i) / "public" / "data.csv").read_text().splitlines()))
    assert published[0] == published[1]
    assert published[0][0].startswith("2024-01-01,")


def test_types_given_back_tell_of_nobody_who_misses_a_value() -> None:
    """A missing value needs another type in pandas; one that is not published does not."""
    policy = {
        "unit": "none", "columns": {"q": "quasi-identifier", "sex": "quasi-identifier", "s": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 2}],
        "method": {"name": "optimal-lattice", "suppression": "60%"},
    }  # fmt: skip
    for values in (["a", "b"], [1, 2], [True, False]):
        for column in (pd.Categorical, lambda x: pd.Series(x, dtype=object)):
            dtypes = set()
            for stranger in (values[0], None):
                frame = pd.DataFrame({"q": column([*values, *values, stranger]), "sex": [*"mmmm", "f"],
                                      "s": [*"abab", "a"]})  # fmt: skip
                dtypes.add(str(mw.anonymize(frame, policy).table["q"].dtype))
            assert len(dtypes) == 1, (values, column)


def test_new_rows_are_written_like_the_release(tmp_path: Path) -> None:
    """The recoding of a release is that of its published values: a fraction was dropped, and would not fit."""
    release(tmp_path / "a", [*TWENTIES, *THIRTIES, "97.5,m,flu"], INTERVALS)
    recoder = mw.Recoder.from_release(tmp_path / "a" / "out", check="report", order="keep")
    new = pd.DataFrame({"age": ["22", "34", "97"], "sex": ["m", "m", "m"], "disease": ["flu", "cold", "flu"]})
    assert recoder.transform(new)["age"].tolist() == ["20-24", "30-34", "95-99"]
    with pytest.raises(HierarchyError, match=r"97\.5"):
        recoder.transform(new.assign(age=["22", "34", "97.5"]))
