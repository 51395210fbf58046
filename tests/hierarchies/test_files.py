"""Hierarchy files: what is read, and what is refused in one line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskwright.domain.hierarchy import Hierarchy
from maskwright.errors import HierarchyError
from maskwright.hierarchies import File
from maskwright.hierarchies import files as file_module
from tests.hierarchies.test_builders import labels


def build(folder: Path, content: str | bytes, values: tuple[str, ...] = (), **options: Any) -> Hierarchy:
    missing = options.pop("missing", ())
    order = options.pop("order", None)
    data = content.encode() if isinstance(content, str) else content
    (folder / "h.csv").write_bytes(data)
    return File(file="h.csv", **options).build("x", values, folder, missing, order)


def refused(folder: Path, content: str | bytes, values: tuple[str, ...] = (), **options: Any) -> str:
    with pytest.raises(HierarchyError) as caught:
        build(folder, content, values, **options)
    assert "\n" not in str(caught.value)
    assert "column 'x': " in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("start", ["", "level0;level1;level2\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_delimiters_headers_marks_and_line_ends(
    tmp_path: Path, delimiter: str, start: str, bom: bytes, newline: str
) -> None:
    text = start + 'Ph.D.;higher;*\n\n M.A. ;higher; *\n"Primary";basic;*\n'
    data = bom + text.replace(";", delimiter).replace("\n", newline).encode()
    hierarchy = build(tmp_path, data, ("M.A.",))
    assert hierarchy.values == ("M.A.", "Ph.D.", "Primary")
    assert labels(hierarchy, "M.A.") == ["M.A.", "higher", "*"]
    assert [level.name for level in hierarchy.levels] == ["exact", "level1", "any"]
    assert not hierarchy.ordered


def test_a_header_may_be_declared_and_names_the_levels(tmp_path: Path) -> None:
    hierarchy = build(
        tmp_path, "city,country,continent\nBonn,DE,EU\nUlm,DE,EU\nRome,IT,EU\nRio,BR,SA\n", header=True
    )
    assert [level.name for level in hierarchy.levels] == ["exact", "country", "continent", "any"]
    assert "city" not in hierarchy.values


def test_several_roots_get_a_top(tmp_path: Path) -> None:
    assert labels(build(tmp_path, "a;P\nb;P\nc;Q\n"), "c") == ["c", "Q", "*"]
    assert labels(build(tmp_path, "a;P;all\nb;P;all\nc;Q;all\n"), "c") == ["c", "Q", "*"]


def test_quoted_cells_may_hold_the_delimiter(tmp_path: Path) -> None:
    hierarchy = build(tmp_path, '"a, b";"x; y";*\nc;"say ""z""";*\nd;"x; y";*\n')
    assert labels(hierarchy, "a, b") == ["a, b", "x; y", "*"]
    assert labels(hierarchy, "c")[1] == 'say "z"'
    assert build(tmp_path, '"a;b",P\nc,P\nd,Q\n').values == ("a;b", "c", "d")
    assert build(tmp_path, "a|P\nb|Q\n", delimiter="|").values == ("a", "b")


def test_a_semicolon_goes_before_a_comma(tmp_path: Path) -> None:
    assert build(tmp_path, "a, b;P, x\nc, d;P, x\ne, f;Q, y\n").values == ("a, b", "c, d", "e, f")


def test_numbers_match_as_text_and_are_in_numeric_order(tmp_path: Path) -> None:
    hierarchy = build(tmp_path, "10,10+\n9,0-9\n39,10+\n", ("39",))
    assert hierarchy.values == ("9", "10", "39")
    assert hierarchy.ordered


def test_a_declared_order_orders_the_values(tmp_path: Path) -> None:
    hierarchy = build(tmp_path, "b;P\na;P\nc;Q\n", order=("c", "b", "a", "never seen"))
    assert hierarchy.values == ("c", "b", "a")
    assert hierarchy.ordered


def test_values_the_data_lacks_stay_and_missing_ones_go(tmp_path: Path) -> None:
    hierarchy = build(tmp_path, "a;P\nb;Q\n?;P\n;\nc;Q\na;P\n", ("a",), missing=("?",))
    assert hierarchy.values == ("a", "b", "c")


def test_a_value_that_is_not_listed_is_named(tmp_path: Path) -> None:
    message = refused(tmp_path, "a;P\nb;Q\n", ("a", "u", "v", "w", "z"))
    assert message == (
        "column 'x': the hierarchy does not list 'u', 'v', 'w' and 1 more; "
        "add them to 'h.csv', or declare them as missing"
    )


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("a;P;*\nb;P\n", "line 2 has 2 cells where the first has 3"),
        ("", "it is empty"),
        (" \n\n", "it is empty"),
        (b"\xef\xbb\xbf", "it is empty"),
        (";;\n", "it cannot be read"),
        ("level0;level1\n", "it lists no values"),
        ("?;P\n", "it lists no values"),
        ("a;P\nb;P\na;Q\n", "line 3: 'a' is listed twice, with different labels"),
        ("a;P;X\nb;P;Y\nc;Q;Y\n", "'a' and 'b' are together at level 'level1'"),
        ("a;P;X\nb;;X\n", "line 2: 'b' has an empty cell"),
        ("a;?\nb;P\nc;P\n", "the label '?' of 'a' at level 'level1' reads as missing"),
        (b"a;P\n\xff\xfe;P\n", "it is not UTF-8 text (byte 4)"),
        ('a;"P\nb;Q\n', "it cannot be read"),
        ("level0;n;n\na;P;Q\nb;R;Q\n", "two columns have the same name"),
        ("a" + ";P" * 101 + "\n", "102 columns"),
        ("a;" + "P" * 200_000 + "\n", "it cannot be read"),
        ("\x00;P\nb;Q\x00\nb;R\n", "'b' is listed twice"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path: Path, content: str | bytes, part: str) -> None:
    assert part in refused(tmp_path, content, missing=("?",))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for name in ("nowhere.csv", ".", "a\x00b", "x" * 5000):
        with pytest.raises(HierarchyError, match="column 'x': hierarchy file") as caught:
            File(file=name).build("x", [], tmp_path, ())
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.name != "posix", reason="named pipes")
def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(HierarchyError, match="no such file"):
        File(file="pipe").build("x", [], tmp_path, ())


def test_a_file_of_unreasonable_size_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "big.csv").open("wb") as big:
        big.truncate(file_module.MAX_BYTES + 1)
    with pytest.raises(HierarchyError, match="larger than 64 MiB"):
        File(file="big.csv").build("x", [], tmp_path, ())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60) | st.text('ab;,\t"\n\r* ?', max_size=40).map(str.encode))
def test_whatever_the_bytes_it_is_a_hierarchy_or_one_line(tmp_path: Path, content: bytes) -> None:
    try:
        hierarchy = build(tmp_path, content, missing=("?",))
    except HierarchyError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert hierarchy.base >= 1
        assert not {"", "?"} & set(hierarchy.values)
