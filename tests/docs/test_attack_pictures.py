"""Every page about an attack has a picture of its example, with the numbers that the attack answers today."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from maskwright.attacks import ATTACKS

ATTACK_PAGES = sorted(path.stem for path in (Path(__file__).parents[2] / "docs" / "attacks").glob("*.md"))


def script() -> ModuleType:
    """docs/attack_pictures.py, which is no package."""
    path = Path(__file__).parents[2] / "docs" / "attack_pictures.py"
    spec = importlib.util.spec_from_file_location("attack_pictures", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["attack_pictures"] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


DRAWING = script()


@cache
def picture(name: str) -> Any:
    return DRAWING.PICTURES[name]()


def test_every_attack_has_one() -> None:
    assert set(ATTACKS) <= set(DRAWING.PICTURES)
    assert sorted(DRAWING.PICTURES) == ATTACK_PAGES


@pytest.mark.parametrize("name", ATTACK_PAGES)
def test_the_picture_of_a_page_is_current(name: str) -> None:
    text = DRAWING.drawn(name, picture(name))
    assert (DRAWING.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == text, "old: run make docs"
    assert f"]({name}.svg)" in (DRAWING.FOLDER / f"{name}.md").read_text(encoding="utf-8")


def test_pictures_show_more_than_nothing() -> None:
    """Whatever an attack uses makes a belief grow in its example."""
    for name in DRAWING.PICTURES:
        bars = picture(name).bars
        hollow, filled = [b.share for b in bars if b.hollow], [b.share for b in bars if not b.hollow]
        grows = name != "linkage"  # in a raw table everybody is found: the release is what makes it less
        assert hollow and filled
        assert (max(filled) > max(hollow)) == grows, name
