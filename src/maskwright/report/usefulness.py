"""Usefulness, for the private report: what became of each column, and every metric."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.exact import number_text
from maskwright.domain.grouping import Grouping, exact_view
from maskwright.domain.release import Release, level_names
from maskwright.metrics import METRICS
from maskwright.metrics.distributions import attribute_earth_movers, attribute_total_variation
from maskwright.metrics.loss import attribute_bits, attribute_losses
from maskwright.report.bars import as_percent, distribution_bars, paired_bars
from maskwright.report.html import Markup, html_table, page_section, tag

NUMBER = re.compile(r"[\[(≤≥<>= ]*(-?\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Shares:
    """The values that occur with their shares: in their own order where they have one, else the commonest first."""

    values: Sequence[tuple[str, float]]
    ordered: bool

    @staticmethod
    def of(texts: Sequence[str | None], counts: NDArray[Any], ordered: bool) -> Shares:
        """Labels that begin with numbers are in the order of these numbers."""
        total = float(counts.sum()) or 1.0
        there = [
            ("missing" if t is None else t, float(n) / total) for t, n in zip(texts, counts, strict=True) if n
        ]
        first = {text: NUMBER.match(text) for text, _ in there}
        if all(match or text in ("*", "missing") for text, match in first.items()):
            place = {text: float(match[1]) if match else np.inf for text, match in first.items()}
            return Shares(sorted(there, key=lambda pair: place[pair[0]]), True)
        return Shares(there if ordered else sorted(there, key=lambda pair: -pair[1]), ordered)


@dataclass(frozen=True)
class Spread:
    """How the rows are spread over the values of a column, before and after."""

    name: str
    before: Shares
    after: Shares
    published_as: str | None = None  # of quasi-identifiers: the level
    loss: float | None = None
    bits: float | None = None
    variation: float = 0.0
    work: float = 0.0


def usefulness_section(release: Release) -> Markup:
    """The section on usefulness: metrics, and each column before and after."""
    metrics = [
        (name, number_text(value), METRICS[name].meaning, METRICS[name].summary_line())
        for name, value in release.metrics.items()
    ]
    parts: list[Markup] = []
    for name, grouping in named_groupings(release):
        spreads = spreads_of(grouping, release.policy.recoding.exact)
        about = f" in {name}" if name else ""
        parts += [_overview(spreads, about), *(_column(s, about) for s in spreads)]
    return page_section(
        "usefulness", "Usefulness",
        html_table(("metric", "value", "scale", "what it is"), metrics, numbers=(1,), caption="What was lost overall"),
        *parts,
    )  # fmt: skip


def named_groupings(release: Release) -> list[tuple[str, Grouping]]:
    """Each grouping with the name of its table; a name is not needed where there is one grouping."""
    several = len(release.groupings) > 1
    names = {id(part.grouping): part.name for part in reversed(release.parts)}
    return [(names[id(g)] if several else "", g) for g in release.groupings]


def spreads_of(grouping: Grouping, exact: bool) -> list[Spread]:
    """Every column that the grouping knows of, by rows."""
    shown = exact_view(grouping) if exact else grouping
    losses, levels, bits = attribute_losses(shown), level_names(shown) or {}, attribute_bits(shown)
    moved, work = attribute_total_variation(grouping, exact), attribute_earth_movers(grouping, exact)
    found = []
    summary = grouping.summary
    for hierarchy, codes, labels in zip(summary.attributes, summary.codes, shown.labels, strict=True):
        level, name = hierarchy.levels[0], hierarchy.attribute
        before = np.bincount(level.blocks[codes], weights=summary.rows, minlength=len(level.labels))
        after = np.bincount(labels.of_group, weights=shown.classes.rows, minlength=len(labels.texts))
        found.append(
            Spread(
                name, Shares.of(level.labels, before, hierarchy.ordered),
                Shares.of(labels.texts, after, False),
                levels.get(name, "labels by group"), float(losses[name]), bits[name], moved[name], work[name],
            )
        )  # fmt: skip
    for name, counts in summary.sensitive.items():
        now = grouping.row_counts(name)
        found.append(
            Spread(
                name, Shares.of((None, *counts.values), summary.row_totals(name), counts.ordered),
                Shares.of((None, *now.values), now.totals, counts.ordered), variation=moved[name], work=work[name],
            )
        )  # fmt: skip
    return found


def _overview(spreads: Sequence[Spread], about: str) -> Markup:
    rows = [
        (s.name, s.published_as or "as collected", f"{len(s.before.values):,}", f"{len(s.after.values):,}",
         "" if s.loss is None else as_percent(s.loss), "" if s.bits is None else f"{s.bits:,.0f}",
         f"{s.variation:.4f}", f"{s.work:.4f}")
        for s in spreads
    ]  # fmt: skip
    head = ("column", "published at level", "values before", "values after", "loss", "bits lost", "total variation",
            "earth mover's distance")  # fmt: skip
    return html_table(
        head, rows, numbers=range(2, 8), caption=f"What each column lost{about} (0 = as it was)"
    )


def _column(spread: Spread, about: str) -> Markup:
    """Two small pictures of a quasi-identifier; one of a sensitive column, whose values stay what they are."""
    title = f"{spread.name}{about}"
    if spread.loss is None:
        after = dict(spread.after.values)
        rows = [(name, share, after.pop(name, 0.0)) for name, share in spread.before.values]
        rows += [(name, 0.0, share) for name, share in after.items()]
        if len(rows) <= 30:
            picture = paired_bars(f"Values of {title} before and after", rows)
            note = " sensitive; outlined: in the input, filled: in the release"
            return tag(
                "div",
                tag("h3", title, tag("span", note)),
                tag("figure", picture),
                class_="column",
            )
    note = " sensitive" if spread.loss is None else f" {spread.published_as}, loss {as_percent(spread.loss)}"
    pictures = [_picture(title, "before", spread.before), _picture(title, "after", spread.after)]
    return tag(
        "div",
        tag("h3", title, tag("span", note)),
        tag("div", *pictures, class_="pair"),
        class_="column",
    )


def _picture(title: str, kind: str, shares: Shares) -> Markup:
    common = sorted(shares.values, key=lambda pair: -pair[1])[:3]
    most = ", ".join(f"{name} {as_percent(share)}" for name, share in common)
    alt = f"{title} {kind}: share of rows by value; the commonest: {most}"
    n = len(shares.values)
    words = tag("figcaption", f"{kind}: {n:,} value{'' if n == 1 else 's'}")
    return tag("figure", distribution_bars(alt, shares.values, kind, shares.ordered), words)


def examples_section(examples: Mapping[str, Sequence[Mapping[str, str | None]]]) -> Markup:
    """The section with a few rows before and after."""
    parts = []
    for name, rows in examples.items():
        if rows:
            title = "Before" if name == "before" else name.capitalize()
            parts.append(
                html_table(tuple(rows[0]), [tuple(row.values()) for row in rows], caption=title, named=False)
            )
    note = tag(
        "p",
        "A few rows before and after. They are not the same people: rows are published in a random order.",
    )
    return page_section("examples", "Example rows", note, *parts)
