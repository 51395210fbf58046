"""docs/notebook.md as somebody runs it: one cell after the other, each with the names that those before it left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from tests.pages import BLOCK

PAGE = Path(__file__).parents[2] / "docs" / "notebook.md"


def test_the_cells_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    cells = [match["code"] for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    assert len(cells) >= 2
    for cell in cells:
        exec(compile(cell, "a cell", "exec"), names)  # noqa: S102 - our own page
    assert "Every requirement holds" in names["release"]._repr_html_()
    assert mw.verify(tmp_path / "release").ok
