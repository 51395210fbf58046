"""Charts: coordinates fall where they should, and no text gets in unescaped."""

import itertools
import re
from xml.etree import ElementTree

import pytest

from maskwright.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Chart, Series, axis_ticks

SVG = "{http://www.w3.org/2000/svg}"


def drawn(chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(chart.file())  # noqa: S314 - our own text


def points(picture: ElementTree.Element) -> list[list[tuple[float, ...]]]:
    lines = [p.get("points", "") for p in picture.iter(f"{SVG}polyline")]
    return [[tuple(map(float, pair.split(","))) for pair in line.split()] for line in lines]


def test_a_line_goes_through_its_points() -> None:
    (line,) = points(drawn(Chart("alt", "x", "y", [Series("s", [(0, 0), (5, 5), (10, 10)])], span=(0, 10))))
    middle = (LEFT + (WIDTH - LEFT - RIGHT) / 2, TOP + (HEIGHT - BOTTOM - TOP) / 2)
    assert line[1] == pytest.approx(middle)
    assert line[0][1] == HEIGHT - BOTTOM
    assert line[2][1] == TOP


def test_a_logarithmic_axis_spaces_ratios_evenly() -> None:
    (line,) = points(drawn(Chart("alt", "x", "y", [Series("s", [(1, 0), (10, 1), (100, 2)])], scale="log")))
    assert line[1][0] - line[0][0] == pytest.approx(line[2][0] - line[1][0], abs=0.2)


def test_series_differ_by_more_than_colour() -> None:
    several = [Series(f"s{i}", [(i, i)]) for i in range(6)]
    picture = drawn(Chart("alt", "x", "y", several))
    shapes = set()
    for group in picture.findall(f"{SVG}g"):
        if group.find(f"{SVG}g") is not None:  # a series, not the legend
            inner = group.find(f"{SVG}g")
            assert inner is not None
            shape = next(e for e in inner if e.tag != f"{SVG}title")
            corners = len(shape.get("points", "").split())
            shapes.add((shape.tag, shape.get("class"), corners))
    assert len(shapes) == 6


def test_texts_are_escaped_and_the_alternative_is_there() -> None:
    text = Chart("<script>", "a & b", "y", [Series("<b>", [(0, 1)]), Series("t", [(0, 2)])]).file()
    assert "<script>" not in text and "<b>" not in text and "a &amp; b" in text
    assert (
        drawn(Chart("what it shows", "x", "y", [Series("s", [(0, 1)])])).get("aria-label") == "what it shows"
    )


def test_every_mark_has_a_tooltip() -> None:
    chart = Chart("alt", "x", "y", [Series("s", [(1, 2), (3, 4)], texts=["first", "second"])])
    titles = [t.text for t in drawn(chart).iter(f"{SVG}title")]
    assert titles == ["alt", "first", "second"]


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.0137), (3, 977), (-2, 2), (0, 45_222)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    found = axis_ticks(low, high)
    assert 2 <= len(found) <= 8
    assert all(low <= t <= high for t in found)
    mantissas = {re.sub(r"[.0e+-]", "", f"{found[1] - found[0]:.6g}")}
    assert mantissas <= {"1", "2", "5"}


def test_an_empty_or_constant_series_draws() -> None:
    assert "<svg" in Chart("alt", "x", "y", [Series("s", [])]).file()
    assert "<svg" in Chart("alt", "x", "y", [Series("s", [(1, 1), (1, 1)])]).file()


@pytest.mark.parametrize("names", [(), ("a rather long name", "another long name", "and a third one", "b")])
def test_no_two_names_of_an_axis_are_written_over_each_other(names: tuple[str, ...]) -> None:
    places = [(0.1604, 1.0), (0.3333, 0.8), (0.3419, 1.0), (0.4221, 0.6)]
    at = [(float(i), y) for i, (_, y) in enumerate(places)] if names else places
    more = names * 4  # sixteen names do not fit beside each other
    picture = drawn(Chart("alt", "x", "y", [Series("s", at)], x_names=more))
    row = [t for t in picture.iter(f"{SVG}text") if t.get("y") == str(HEIGHT - BOTTOM + 18)]
    ends = [(float(t.get("x", 0)), len(t.text or "") * 6.2 / 2) for t in row]  # px: a letter of this size
    assert len(row) > 1
    assert all(x + half < y - other for (x, half), (y, other) in itertools.pairwise(ends))
