"""The page that explains the report quotes figures of the demo: they must be the ones that come out."""

from __future__ import annotations

import re
from importlib.resources import as_file, files
from pathlib import Path

import maskwright as mw

PAGE = Path(__file__).parents[2] / "docs" / "report.md"
IMAGES = PAGE.parent / "images"


def test_the_figures_are_those_of_the_demo(tmp_path: Path) -> None:
    with as_file(files("maskwright").joinpath("data", "adult")) as folder:
        mw.anonymize(folder / "adult.csv", mw.Policy.load(folder / "arx.yaml"), tmp_path / "r")
    report = (tmp_path / "r/private/report.html").read_text(encoding="utf-8")
    quoted = set(re.findall(r"`([\d,./]+%?|1 in \d+|\d+ %)`", PAGE.read_text(encoding="utf-8")))
    assert {"1 in 5", "100 %", "15,512", "12,060", "35.7%"} <= quoted
    if "Not looked at: " in report:  # a machine that is busy: the other settings take too long
        quoted -= {"28.8%", "38.6%"}
    cells = set(re.findall(r">([\d,./]+%?)<", report))
    cells |= set(re.findall(r">(1 in \d+|\d+ %)[ <]", report))
    cells |= set(re.findall(r"Before: ([\d,]+) people", report))
    assert quoted - cells == set()


def test_the_pictures_are_small() -> None:
    assert {p.name for p in IMAGES.glob("*.png")} >= {"report.png", "data-card.png"}
    for name in ("report.png", "data-card.png"):
        assert (IMAGES / name).stat().st_size < 200_000
