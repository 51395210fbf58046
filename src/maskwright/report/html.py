"""Small building blocks for self-contained HTML. Every text passes through `escape`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # a report loads nothing, ever


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element; children that are not `Markup` are escaped. `class_` stands for class."""
    attrs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{attrs}>{join(children)}</{name}>")


def join(children: Iterable[object]) -> Markup:
    return Markup("".join(c if isinstance(c, Markup) else escape(str(c)) for c in children))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[int] = ()) -> Markup:
    """A table; the columns in `numbers` are aligned to the right. None is shown as a missing value."""

    def cell(kind: str, i: int, value: object) -> Markup:
        shown = tag("em", "missing") if value is None else value
        return tag(kind, shown, class_="number") if i in numbers else tag(kind, shown)

    header = tag(
        "tr",
        *(tag("th", h, class_="number" if i in numbers else "", scope="col") for i, h in enumerate(head)),
    )
    body = join(tag("tr", *(cell("td", i, v) for i, v in enumerate(row))) for row in rows)
    return tag("div", tag("table", tag("thead", header), tag("tbody", body)), class_="scroll")


def bars(rows: Sequence[tuple[str, float, float]], alt: str) -> Markup:
    """Paired horizontal bars (before, after) per label, values as shares of 1."""
    height, left, width = 34, 90, 520
    parts = []
    for i, (label, before, after) in enumerate(rows):
        y = i * height
        parts.append(tag("text", label, x=left - 8, y=y + 19, text_anchor="end"))
        for offset, share, kind in ((4, before, "before"), (16, after, "after")):
            parts.append(
                tag("rect", x=left, y=y + offset, width=max(1.0, width * share), height=10, class_=kind)
            )
            parts.append(tag("text", f"{share:.1%}", x=left + width * share + 6, y=y + offset + 9))
    size = f"0 0 {left + width + 70} {max(1, len(rows)) * height}"
    return tag("svg", *parts, viewBox=size, role="img", aria_label=alt)


def page(title: str, *body: object) -> str:
    """A whole document: nothing is loaded from anywhere."""
    style = files("maskwright.report").joinpath("style.css").read_text(encoding="utf-8")
    head = join(
        (
            Markup(
                '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            ),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
            tag("title", title),
            Markup(f"<style>{style}</style>"),
        )
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{tag("main", *body)}</body></html>\n'
