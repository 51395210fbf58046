"""Which cells a spreadsheet would run, and that escaping them is safe and can be undone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.spreadsheets import escape_cell, escape_row, unescape_cell, would_run

TRICKY = st.text(st.sampled_from("=+-@'\"\t\r\n;, .|1x％＝＋－＠﹦﹢﹣﹫ \u00a0\u200b\ufeff"), max_size=8)


@pytest.mark.parametrize(
    "cell",
    ["=1+1", "+1+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!D2", "@SUM(1+1)", "\t=1", "\r=1", " =1", "\u00a0=1",
    "\u200b=1",
     "\ufeff=1", '"=1+1"', "＝1+1", "＋1+1", "－1x", "＠x", "\tx", "\rx", "x;=1+1", "x\n=1+1", "x\r=1", "x\t@a",
     "a; +b",
     "-1-2", "-3,5", "--1", "=", "-x", "+49 30 1234"],
)  # fmt: skip
def test_cells_that_run(cell: str) -> None:
    assert would_run(cell)
    assert not would_run(escape_cell(cell)), escape_cell(cell)
    assert unescape_cell(escape_cell(cell)) == cell


@pytest.mark.parametrize(
    "cell",
    ["", "a", "-3", "+3", "-3.5e2", "-.5", "-3%", "-10..-5", "-", "+", "--", "a=b", "a-b", "12-15", "x, =1",
    "'", "é", "<-5",
     "≥-5", "[-1.5, 2)", "*", "1e-5", "a+b;c-d"],
)  # fmt: skip
def test_cells_that_do_not(cell: str) -> None:
    assert not would_run(cell)


@given(TRICKY)
def test_escaping_is_safe_and_can_be_undone(cell: str) -> None:
    assert not would_run(escape_cell(cell))
    assert unescape_cell(escape_cell(cell)) == cell
    if not would_run(cell) and not cell.startswith("'") and "'" not in cell:
        assert escape_cell(cell) == cell, "what is harmless stays as it is"


@given(TRICKY, TRICKY)
def test_different_cells_stay_different(one: str, two: str) -> None:
    assert (escape_cell(one) == escape_cell(two)) == (one == two)


def test_numbers_in_a_row_are_not_texts() -> None:
    assert escape_row(["=a", -3, None, "-3", 0.5]) == ["'=a", -3, None, "-3", 0.5]
