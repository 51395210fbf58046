"""A chart of points with their Pareto front, as an image of its own or inside a page; light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from maskwright.report.html import Markup, join, tag

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 20, 60
STYLE = """
.paper{fill:#fff}text{font:13px system-ui,sans-serif;fill:#1c2330}.soft{fill:#5b6577}.grid{stroke:#d9dee7}
.front{stroke:#2458a6;fill:none;stroke-width:2;stroke-dasharray:5 4}.on{fill:#2458a6;stroke:#2458a6}
.off{fill:#fff;stroke:#5b6577;stroke-width:2}
@media (prefers-color-scheme:dark){.paper{fill:#14181f}text{fill:#e8ebf1}.soft{fill:#a7b0c0}.grid{stroke:#333c4a}
.front{stroke:#7fb0ff}.on{fill:#7fb0ff;stroke:#7fb0ff}.off{fill:#14181f;stroke:#a7b0c0}}
"""


@dataclass(frozen=True)
class Dot:
    """One point: where it is, the number it has in the table, its name, and whether it is on the front."""

    x: float
    y: float
    number: int
    name: str
    front: bool


def scatter(dots: Sequence[Dot], x_title: str, y_title: str, alt: str) -> Markup:
    """A chart with y from 0 to 1; dots of the front are filled and joined, all others are hollow."""
    right = nice(max((d.x for d in dots), default=1.0))

    def px(x: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * x / right, 1)

    def py(y: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(1.0, y), 1)

    parts = [tag("rect", width=WIDTH, height=HEIGHT, class_="paper")]
    for i in range(6):
        x, y = right * i / 5, i / 5
        parts += [
            tag("line", x1=px(x), x2=px(x), y1=py(0), y2=py(1), class_="grid"),
            tag("line", x1=px(0), x2=px(right), y1=py(y), y2=py(y), class_="grid"),
            tag("text", f"{x:.3g}", x=px(x), y=py(0) + 20, text_anchor="middle", class_="soft"),
            tag("text", f"{y:.1f}", x=px(0) - 8, y=py(y) + 4, text_anchor="end", class_="soft"),
        ]
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts += [
        tag("text", x_title, x=px(right / 2), y=HEIGHT - 12, text_anchor="middle"),
        tag("text", y_title, x=18, y=middle, text_anchor="middle", transform=f"rotate(-90 18 {middle})"),
    ]
    front = sorted({(px(d.x), py(d.y)) for d in dots if d.front})
    if len(front) > 1:
        parts.append(tag("polyline", points=" ".join(f"{x},{y}" for x, y in front), class_="front"))
    for d in sorted(dots, key=lambda d: d.front):  # the front is drawn over the others
        title = tag("title", f"{d.number}: {d.name}")
        parts.append(tag("circle", title, cx=px(d.x), cy=py(d.y), r=6, class_="on" if d.front else "off"))
    for here in clusters([(px(d.x), py(d.y)) for d in dots]):
        x, y = max(px(dots[i].x) for i in here), min(py(dots[i].y) for i in here)
        left = x > WIDTH * 0.85
        if left:
            x = min(px(dots[i].x) for i in here)
        place = {"x": x - 10 if left else x + 10, "y": y - 8 if y > TOP + 20 else y + 18}
        label = ", ".join(str(dots[i].number) for i in here)
        parts.append(tag("text", label, **place, text_anchor="end" if left else "start"))
    return tag(
        "svg", tag("title", alt), tag("style", Markup(STYLE)), join(parts), xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=alt,
    )  # fmt: skip


def clusters(places: Sequence[tuple[float, float]], near: float = 18) -> list[list[int]]:
    """Points so near to each other that their labels would overlap share one."""
    result: list[list[int]] = []
    for i in sorted(range(len(places)), key=lambda i: places[i]):
        for members in result:
            if any(math.dist(places[i], places[j]) < near for j in members):
                members.append(i)
                break
        else:
            result.append([i])
    return [sorted(members) for members in result]


def nice(largest: float) -> float:
    """A round number that is at least as large, for the end of an axis."""
    if largest <= 0 or not math.isfinite(largest):
        return 1.0
    unit = 10.0 ** math.floor(math.log10(largest))
    return next(unit * step for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if unit * step >= largest - 1e-12)
