"""Every file and every module of ours that a page of the documentation names is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = (ROOT, ROOT / "src" / "maskwright", ROOT / "tests")  # pages leave out what goes without saying
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if path.name != "CHANGELOG.md"  # which tells what was, too
)
FILE = re.compile(r"(?<![\w./-])((?:[\w-]+/)+[\w-]+\.py)\b")
MODULE = re.compile(r"(?<![\w./-])maskwright(?:\.[A-Za-z_]\w*)+")


def absent_files(text: str) -> Iterator[str]:
    """The Python files of ours that a text names and that are not there."""
    for name in FILE.findall(text):
        ours = [root for root in ROOTS if (root / name.split("/")[0]).is_dir()]
        if ours and not any((root / name).is_file() for root in ours):
            yield name


def absent_modules(text: str) -> Iterator[str]:
    """The modules, functions and classes that a text names by their full name and that are not there."""
    for name in set(MODULE.findall(text)):
        module, rest = name, list[str]()
        while not _is_module(module):
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
        found: object = import_module(module)
        for step in rest:
            if not hasattr(found, step):
                yield name
                break
            found = getattr(found, step)


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [*absent_files(text), *absent_modules(text)] == []


def test_what_is_not_there_is_found() -> None:
    text = "`pipeline/gone.py`, `src/maskwright/pipeline/gone.py`, `pipeline/publish.py`, `tests/amounts.py`"
    assert set(absent_files(text)) == {"pipeline/gone.py", "src/maskwright/pipeline/gone.py"}
    assert list(absent_modules("`maskwright.pipeline.publish.gone`, `maskwright.api.compare`")) == [
        "maskwright.pipeline.publish.gone"
    ]
