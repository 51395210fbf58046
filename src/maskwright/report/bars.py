"""Shares as bars: paired (before, after) under names, or one bar for each of many values.

Like `charts`, plain SVG: light and dark, readable without colour (before is outlined, after is filled).
"""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.report.html import Markup, tag

KINDS = ("before", "after")
NAMED = 10  # bars with names
MOST = 40  # bars of a histogram; neighbours share one beyond that


def paired_bars(
    alt: str, rows: Sequence[tuple[str, float | None, float | None]], full: float | None = None
) -> Markup:
    """Horizontal bars with their names: what was before and what is after, as shares of 1.

    `full` is the share that takes the whole width; by default the largest one. None: no bar.
    """
    most = full or max((v for row in rows for v in row[1:] if v is not None), default=1.0) or 1.0
    longest = max((len(row[0]) for row in rows), default=0)
    left, width = min(230, 20 + 7 * longest), 640
    room, parts, y = width - left - 60, list[Markup](), 4
    for name, *shares in rows:
        there = [(kind, v) for kind, v in zip(KINDS, shares, strict=True) if v is not None]
        parts.append(tag("text", _short(name, 30), x=left - 8, y=y + 7 * len(there) + 4, text_anchor="end"))
        for kind, share in there:
            long = round(max(1.0, room * min(share / most, 1.0)), 1) if share else 0.0
            bar = tag("rect", x=left, y=y + 1, width=long, height=10, class_=f"bar {kind}")
            parts.append(tag("g", tag("title", f"{name}, {kind}: {as_percent(share)}"), bar))
            parts.append(tag("text", as_percent(share), x=left + long + 6, y=y + 11, class_="soft"))
            y += 14
        y += 8
    return _picture(alt, parts, width, max(y, 20))


def distribution_bars(
    alt: str, values: Sequence[tuple[str, float]], kind: str, ordered: bool = False
) -> Markup:
    """How rows are spread over values: with names where they are few; of many ordered ones a histogram."""
    if len(values) > NAMED:
        if ordered:
            return _histogram(alt, values, kind)
        rest = values[NAMED - 1 :]
        values = [*values[: NAMED - 1], (f"{len(rest):,} others", sum(share for _, share in rest))]
    width, parts = 320, list[Markup]()
    most = max((share for _, share in values), default=1.0) or 1.0
    longest = max((len(name) for name, _ in values), default=0)
    left = min(170, 16 + 7 * longest)
    for i, (name, share) in enumerate(values):
        y = 4 + 18 * i
        long = round(max(1.0, (width - left - 54) * share / most), 1)
        bar = tag("rect", x=left, y=y, width=long, height=12, class_=f"bar {kind}")
        parts.append(tag("text", _short(name, 22), x=left - 8, y=y + 11, text_anchor="end"))
        parts.append(tag("g", tag("title", f"{name}: {as_percent(share)}"), bar))
        parts.append(tag("text", as_percent(share), x=left + long + 6, y=y + 11, class_="soft"))
    return _picture(alt, parts, width, 8 + 18 * len(values))


def _histogram(alt: str, values: Sequence[tuple[str, float]], kind: str) -> Markup:
    width, height = 320, 96
    bins = _binned(values)
    most = max((share for _, share in bins), default=1.0) or 1.0
    step = width / len(bins)
    parts = []
    for i, (name, share) in enumerate(bins):
        tall = round(max(0.5, height * share / most), 1)
        bar = tag(
            "rect", x=round(i * step + step * 0.08, 1), y=round(4 + height - tall, 1),
            width=round(step * 0.84, 1), height=tall, class_=f"bar {kind}",
        )  # fmt: skip
        parts.append(tag("g", tag("title", f"{name}: {as_percent(share)}"), bar))
    base = height + 4
    parts.append(tag("line", x1=0, x2=width, y1=base, y2=base, class_="grid"))
    parts.append(tag("text", _short(values[0][0], 22), x=0, y=base + 15, class_="soft"))
    parts.append(
        tag("text", _short(values[-1][0], 22), x=width, y=base + 15, text_anchor="end", class_="soft")
    )
    return _picture(alt, parts, width, base + 22)


def _binned(values: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    size = -(-len(values) // MOST)
    if size <= 1:
        return list(values)
    parts = [values[i : i + size] for i in range(0, len(values), size)]
    return [(f"{p[0][0]} to {p[-1][0]}", sum(share for _, share in p)) for p in parts]


def _picture(alt: str, parts: Sequence[Markup], width: int, height: int) -> Markup:
    return tag("svg", tag("title", alt), *parts, viewBox=f"0 0 {width} {height}", role="img", aria_label=alt,
               width=width, class_="chart")  # fmt: skip


def as_percent(share: float) -> str:
    """100%, 20%, 3.4%, 0.08%."""
    return (
        f"{share:.0%}"
        if share >= 0.995 or share == 0
        else f"{share:.1%}"
        if share >= 0.001
        else f"{share:.2%}"
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
