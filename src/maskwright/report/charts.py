"""Charts as plain SVG: no script, no network, light and dark, readable without colour.

One chart is one `Chart` with series of points; lines, marks or both. Series differ by colour *and* by the shape of
their marks, so that a printed or colour-blind reading loses nothing, and every mark has a tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from maskwright.report.html import Markup, joined_markup, tag

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 48
MARKS = ("circle", "square", "triangle", "diamond", "cross", "ring")
LIGHT = """--ink: #1c2330; --soft: #5b6577; --line: #d9dee7; --s0: #2458a6; --s1: #b4531a;
 --s2: #1d7a4c; --s3: #8a3ea8; --s4: #6b6f00; --s5: #a3231d;"""
DARK = """--ink: #e8ebf1; --soft: #a7b0c0; --line: #333c4a;
 --s0: #7fb0ff; --s1: #ffb07a; --s2: #7ddba2; --s3: #d9a2f0; --s4: #d4d774; --s5: #ff9c94;"""
RULES = (
    "svg.chart text { fill: var(--ink); font: 12px system-ui, sans-serif; }",
    "svg.chart .soft { fill: var(--soft); }",
    "svg.chart .grid { stroke: var(--line); stroke-width: 1; }",
    "svg.chart .limit { stroke: var(--soft); stroke-dasharray: 5 4; }",
    "svg.chart .series { fill: none; stroke: currentColor; stroke-width: 2; }",
    "svg.chart .error { stroke: currentColor; opacity: .55; }",
    "svg.chart .bar { stroke: var(--s0); stroke-width: 1.2; fill: var(--s0); }",
    "svg.chart .bar.before { stroke: var(--soft); fill: none; }",
    "svg.chart .mark { fill: currentColor; stroke: currentColor; }",
    "svg.chart .mark.open { fill: none; stroke-width: 2; }",
    *(f"svg.chart .c{i} {{ color: var(--s{i}); }}" for i in range(6)),
)
STYLE = "\n".join(
    (
        f"\nsvg.chart {{ color-scheme: light dark; {LIGHT} }}",
        f"@media screen and (prefers-color-scheme: dark) {{ svg.chart {{ {DARK} }} }}",
        *RULES,
        "",
    )
)


LETTER = 7  # pixels: about the width of one


@dataclass(frozen=True)
class Series:
    """Points of one kind.

    Attributes:
        name: as the legend shows it.
        points: (x, y).
        errors: half the length of a vertical bar at each point (a standard error, say).
        texts: the tooltip of each point; default: its coordinates.
        labels: what is written beside each point; default: nothing.
        join: draw a line through the points, in their order.
        marks: draw the points themselves.
    """

    name: str
    points: Sequence[tuple[float, float]]
    errors: Sequence[float] = ()
    texts: Sequence[str] = ()
    labels: Sequence[str] = ()
    join: bool = True
    marks: bool = True


@dataclass(frozen=True)
class Chart:
    """What is drawn.

    Attributes:
        alt: what the picture shows, for those who do not see it.
        x, y: the titles of the axes.
        series: what is drawn, in the order of the legend.
        limits: horizontal lines with a name, a threshold say.
        x_names: names instead of numbers on the x axis, for x = 0, 1, 2, ...
        zero: the y axis begins at 0.
        scale: "log" for a logarithmic x axis.
    """

    alt: str
    x: str
    y: str
    series: Sequence[Series]
    limits: Sequence[tuple[str, float]] = ()
    x_names: Sequence[str] = ()
    zero: bool = True
    scale: Literal["linear", "log"] = "linear"
    span: tuple[float | None, float | None] = field(default=(None, None))

    def svg(self) -> Markup:
        """The chart for a page that has the style of charts."""
        frame = _Axes.of(self)
        parts = [*frame.grid(self), *_limits(self, frame)]
        for i, series in enumerate(self.series):
            parts.append(tag("g", *_drawn(series, frame, i), class_=f"c{i % 6}"))
        parts += _legend(self.series)
        height = HEIGHT + 20 * _legend_lines(self.series)
        return tag(
            "svg", tag("title", self.alt), *parts,
            viewBox=f"0 0 {WIDTH} {height}", role="img", aria_label=self.alt, class_="chart",
        )  # fmt: skip

    def file(self) -> str:
        """The chart as a file of its own."""
        body = str(self.svg()).replace(
            "<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" ', 1
        )
        return body.replace("</title>", f"</title><style>{STYLE}</style>", 1) + "\n"


@dataclass(frozen=True)
class _Axes:
    """Where coordinates lie on the picture."""

    x0: float
    x1: float
    y0: float
    y1: float
    log: bool

    @staticmethod
    def of(chart: Chart) -> _Axes:
        """The axes that hold every point of a chart."""
        xs = [x for s in chart.series for x, _ in s.points if math.isfinite(x)]
        ys = [v for s in chart.series for v in _heights(s) if math.isfinite(v)]
        ys += [y for _, y in chart.limits]
        log = chart.scale == "log" and min(xs, default=1) > 0
        if chart.x_names:
            xs += [-0.4, len(chart.x_names) - 0.6]
        low, high = min(ys, default=0.0), max(ys, default=1.0)
        low = min(0.0, low) if chart.zero else low
        low = chart.span[0] if chart.span[0] is not None else low
        high = chart.span[1] if chart.span[1] is not None else high + 0.05 * (high - low)
        left, right = min(xs, default=0.0), max(xs, default=1.0)
        pad = 0.0 if chart.x_names or log else 0.02 * (right - left)
        return _Axes(
            left - pad, right + pad if right > left else left + 1, low, high if high > low else low + 1, log
        )

    def x(self, value: float) -> float:
        """Where a value lies from left to right, in pixels."""
        a, b, v = (math.log(t) for t in (self.x0, self.x1, value)) if self.log else (self.x0, self.x1, value)
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (v - a) / (b - a), 1)

    def y(self, value: float) -> float:
        """Where a value lies from top to bottom, in pixels."""
        share = (min(max(value, self.y0), self.y1) - self.y0) / (self.y1 - self.y0)
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share, 1)

    def grid(self, chart: Chart) -> Iterator[Markup]:
        """Grid lines with their numbers or names."""
        bottom = HEIGHT - BOTTOM
        for value in axis_ticks(self.y0, self.y1):
            y = self.y(value)
            yield tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid")
            yield tag("text", _axis_number(value), x=LEFT - 8, y=y + 4, text_anchor="end", class_="soft")
        named: Sequence[tuple[float, str]] = list(enumerate(chart.x_names)) or [
            (v, _axis_number(v)) for v in self._x_ticks(chart)
        ]
        taken = -math.inf  # how far to the right the last name reaches: two are never written over each other
        for place, name in named:
            x, half = self.x(place), LETTER * len(name) / 2 + 3
            yield tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, class_="grid")
            if x - half >= taken:
                taken = x + half
                yield tag("text", name, x=x, y=bottom + 18, text_anchor="middle", class_="soft")
        middle = TOP + (bottom - TOP) / 2
        yield tag("text", chart.x, x=LEFT + (WIDTH - LEFT - RIGHT) / 2, y=HEIGHT - 8, text_anchor="middle")
        yield tag("text", chart.y, x=14, y=middle, text_anchor="middle", transform=f"rotate(-90 14 {middle})")

    def _x_ticks(self, chart: Chart) -> Sequence[float]:
        places = sorted({x for s in chart.series for x, _ in s.points})
        if self.log or len(places) <= 8:
            return places[:12]
        return axis_ticks(self.x0, self.x1)


def axis_ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers between two ends."""
    step = 10 ** math.floor(math.log10((high - low) / about))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= about)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _axis_number(value: float) -> str:
    """A number as an axis shows it."""
    if value and (abs(value) >= 1e5 or abs(value) < 1e-3):
        return f"{value:.2g}"
    return f"{value:,.4g}"


def _heights(series: Series) -> Iterator[float]:
    for i, (_, y) in enumerate(series.points):
        error = series.errors[i] if i < len(series.errors) else 0.0
        yield from (y - error, y + error)


def _limits(chart: Chart, frame: _Axes) -> Iterator[Markup]:
    for name, value in chart.limits:
        y = frame.y(value)
        yield tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="limit")
        yield tag("text", name, x=WIDTH - RIGHT, y=y - 5, text_anchor="end", class_="soft")


def _drawn(series: Series, frame: _Axes, which: int) -> Iterator[Markup]:
    places = [(frame.x(x), frame.y(y)) for x, y in series.points if math.isfinite(x) and math.isfinite(y)]
    if series.join and len(places) > 1:
        yield tag("polyline", points=" ".join(f"{x},{y}" for x, y in places), class_="series")
    for i, (x, y) in enumerate(series.points):
        if not (math.isfinite(x) and math.isfinite(y)):
            continue
        error = series.errors[i] if i < len(series.errors) else 0.0
        if error:
            yield tag(
                "line",
                x1=frame.x(x),
                x2=frame.x(x),
                y1=frame.y(y - error),
                y2=frame.y(y + error),
                class_="error",
            )
        if series.marks:
            text = (
                series.texts[i]
                if i < len(series.texts)
                else f"{series.name}: {_axis_number(x)}, {_axis_number(y)}"
            )
            yield tag("g", tag("title", text), _series_mark(which, frame.x(x), frame.y(y)))
        if i < len(series.labels) and series.labels[i]:
            end = frame.x(x) > WIDTH - RIGHT - 80
            place = {"x": frame.x(x) + (-9 if end else 9), "y": max(TOP + 12, frame.y(y) - 8)}
            yield tag("text", series.labels[i], **place, text_anchor="end" if end else "start")


def _series_mark(which: int, x: float, y: float, r: float = 4.5) -> Markup:
    """The mark of the series number `which`."""
    shape = MARKS[which % len(MARKS)]
    if shape in ("circle", "ring"):
        return tag("circle", cx=x, cy=y, r=r, class_="mark" if shape == "circle" else "mark open")
    if shape == "square":
        return tag("rect", x=round(x - r, 1), y=round(y - r, 1), width=2 * r, height=2 * r, class_="mark")
    steps = {
        "triangle": ((0, -r), (r, r), (-r, r)),
        "diamond": ((0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)),
        "cross": ((-r, -r), (r, r), (0, 0), (-r, r), (r, -r), (0, 0)),
    }[shape]
    points = " ".join(f"{round(x + dx, 1)},{round(y + dy, 1)}" for dx, dy in steps)
    return tag("polygon", points=points, class_="mark open" if shape == "cross" else "mark")


def _legend_positions(series: Sequence[Series]) -> list[tuple[int, int]]:
    """Where each name of the legend begins: (x, line)."""
    x, line, places = LEFT, 0, []
    for s in series:
        width = 30 + 7 * len(s.name)
        if x + width > WIDTH and x > LEFT:
            x, line = LEFT, line + 1
        places.append((x, line))
        x += width
    return places


def _legend_lines(series: Sequence[Series]) -> int:
    return _legend_positions(series)[-1][1] + 1 if len(series) > 1 else 0


def _legend(series: Sequence[Series]) -> Iterator[Markup]:
    if len(series) < 2:
        return
    for i, (x, line) in enumerate(_legend_positions(series)):
        y = HEIGHT + 12 + 20 * line
        yield joined_markup((
            tag("g", _series_mark(i, x + 6, y - 4), class_=f"c{i % 6}"), tag("text", series[i].name, x=x + 18, y=y),
        ))  # fmt: skip
