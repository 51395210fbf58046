"""Every snippet of the worked examples runs, and prints what its page says; no example of the papers is left out."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "worked-examples"
PAGES = [*sorted(FOLDER.glob("*.md")), ROOT / "docs" / "audit.md"]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
# Shown where the method that needs them is documented.
ELSEWHERE = {"D-gamma-all", "D-gamma-single", "D-gamma-2", "D-gamma-degenerate"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_prints_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert blocks or page.stem == "README"
    for code, expected in blocks:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, page.name, "exec"), names)  # noqa: S102
        assert said.getvalue() == expected, code


def test_no_example_of_the_papers_is_left_out() -> None:
    cases = json.loads((ROOT / "tests" / "golden" / "papers.json").read_text(encoding="utf-8"))
    known = {case["id"] for case in (cases if isinstance(cases, list) else cases["cases"])}
    text = "\n".join(page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md"))
    named = set(re.findall(r"`([WCTDM]-[\w-]+)`", text))
    assert named <= known, "a page names a case that does not exist"
    assert known - named == ELSEWHERE
