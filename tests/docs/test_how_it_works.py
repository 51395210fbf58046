"""The page that says where things are: every place that it names is there, and the picture has every package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "maskwright"
PAGE = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
PLACES = sorted(
    set(re.findall(r"`(?:src/maskwright/)?((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", PAGE.partition("## A run")[0]))
)


def test_the_page_names_places() -> None:
    assert len(PLACES) > 20
    assert "promise/lemmas/greedy_buckets.py" in PLACES


@pytest.mark.parametrize("place", PLACES)
def test_every_place_is_there(place: str) -> None:
    assert any((SOURCE / above / place).exists() for above in ("", "worlds")), place


@pytest.mark.parametrize(
    ("place", "name"), [*re.findall(r"`([a-z_/]+\.py)` \(`(\w+)`", PAGE), ("attacks/minimality.py", "WAYS")]
)
def test_every_name_is_there(place: str, name: str) -> None:
    assert re.search(
        rf"^ *(def|class) {name}\b|^{name} = ", (SOURCE / place).read_text(encoding="utf-8"), re.M
    )


def test_the_picture_has_every_package() -> None:
    picture = PAGE.partition("<!-- packages -->")[2].partition("<!-- end of packages -->")[0]
    shown = {
        line.split()[1].partition(".")[0] for line in picture.splitlines() if line[:1] in "─┌│└" and line
    }
    there = {
        p.stem for p in SOURCE.iterdir() if (p.is_dir() and (p / "__init__.py").exists()) or p.suffix == ".py"
    }
    assert there - {"__init__", "version"} == shown  # a number, which imports nothing
