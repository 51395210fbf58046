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
    return Markup(f"<{name}{attrs}>{joined_markup(children)}</{name}>")


def joined_markup(children: Iterable[object]) -> Markup:
    """Pieces of a page one after the other; what is not `Markup` is escaped."""
    return Markup("".join(c if isinstance(c, Markup) else escape(str(c)) for c in children))


def page_section(name: str, title: str, *children: object) -> Markup:
    """A part of a page with a heading of its own; `name` is what links lead to."""
    return tag("section", tag("h2", title, id=f"{name}-title"), *children, id=name,
               aria_labelledby=f"{name}-title")  # fmt: skip


def folded_details(summary: str, *children: object) -> Markup:
    """What not everybody wants to read: shown on request, and always in print."""
    return tag("details", tag("summary", summary), *children)


def bullet_list(lines: Iterable[object]) -> Markup:
    """A bulleted list."""
    return tag("ul", *(tag("li", line) for line in lines))


def html_table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    numbers: Sequence[int] = (),
    caption: str = "",
    *,
    named: bool = True,
) -> Markup:
    """A table; the columns in `numbers` are aligned to the right. None is shown as a missing value.

    The first cell of a row names it, so that a screen reader can say which row a figure belongs to; unless the rows
    are records (`named` false), which have no names.
    """

    def cell(i: int, value: object) -> Markup:
        """The cell in column i."""
        shown = tag("em", "missing") if value is None else value
        if i == 0 and named:
            return tag("th", shown, scope="row")
        return tag("td", shown, class_="number") if i in numbers else tag("td", shown)

    def title(i: int, text: str) -> Markup:
        """The heading of column i."""
        if not text:
            return tag("td")  # an empty heading would be read out as one
        return tag("th", text, scope="col", **({"class_": "number"} if i in numbers else {}))

    parts = [tag("caption", caption)] if caption else []
    if any(head):
        parts.append(tag("thead", tag("tr", *(title(i, text) for i, text in enumerate(head)))))
    parts.append(tag("tbody", *(tag("tr", *(cell(i, v) for i, v in enumerate(row))) for row in rows)))
    name = caption or ", ".join(filter(None, head)) or "figures"
    kind = {} if named else {"class_": "records"}
    return tag(
        "div", tag("table", *parts, **kind), class_="scroll", tabindex=0, role="region", aria_label=name
    )


def html_page(title: str, *body: object, contents: Sequence[tuple[str, str]] = ()) -> str:
    """A whole document: nothing is loaded from anywhere. `contents` are (name, title) of its sections."""
    from maskwright.report.charts import STYLE  # charts are made of the blocks above

    style = files("maskwright.report").joinpath("style.css").read_text(encoding="utf-8") + STYLE
    head = joined_markup(
        (
            Markup(
                '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            ),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
            Markup('<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'),
            tag("title", title),
            Markup(f"<style>{style}</style>"),
        )
    )
    links = [tag("a", text, href=f"#{name}") for name, text in contents]
    nav = tag("nav", *links, aria_label="Sections") if links else Markup("")
    main = tag("main", *body, id="content", tabindex=-1)
    skip = tag("a", "Skip to the content", href="#content", class_="skip")
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{skip}{nav}{main}</body></html>\n'
