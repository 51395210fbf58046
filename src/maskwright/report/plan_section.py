"""The plan of a release in several tables: what is together, what that costs, and what other plans would give."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from maskwright.domain.release import Release
from maskwright.domain.spreadsheets import escape_row
from maskwright.report.charts import Chart, Series
from maskwright.report.html import Markup, html_table, page_section, tag


def frontier_of(release: Release) -> Mapping[str, Any] | None:
    """The frontier that codip found, where the release was made by it."""
    return release.grouping.search.get("frontier")


def plan_section(release: Release) -> Markup:
    """For the private report; nothing for a release that was not made by codip."""
    found, search = frontier_of(release), release.grouping.search
    if found is None:
        return Markup("")
    rows = [(f"table {i + 1}", ", ".join(names)) for i, names in enumerate(search["plan"])]
    figures = [
        ("association loss Γα", f"{search['association_loss']:.4f}"),
        ("information exposure Γβ", f"{search['information_exposure']:.4f}"),
    ]
    if "greedy_association_loss" in search:
        gap = search["greedy_association_loss"] - search["association_loss"]
        figures.append(("Γα of the greedy plan", f"{search['greedy_association_loss']:.4f} ({gap:.4f} more)"))
        figures.append(
            ("is it the best plan?", "proven" if search["proven_best"] else "not proven: too many plans")
        )
    exact = (
        "All plans were considered."
        if found["exact"]
        else "Only plans on the way of greedy merging are shown."
    )
    return page_section(
            "plan", "Which sensitive attributes are together",
            html_table(("table", "sensitive attributes"), rows, caption="The plan"),
            html_table(("figure", "value"), figures, numbers=(1,), caption="What the plan costs"),
            tag("p", "Plans that no other plan beats: less association is lost, or less is exposed. ", exact),
            tag("figure", frontier_chart(found, search["information_exposure"], search["association_loss"]).svg()),
    )  # fmt: skip


def frontier_chart(
    found: Mapping[str, Any], exposure: float | None = None, loss: float | None = None
) -> Chart:
    """Γα against Γβ, one line for each bound on closeness; the chosen plan is a mark of its own."""
    series = [_series(front) for front in found["fronts"]]
    if exposure is not None and loss is not None:
        series.append(Series("this release", [(exposure, loss)], join=False))
    return Chart(
        alt="Association loss against information exposure of the plans that no other plan beats",
        x="information exposure Γβ", y="association loss Γα", series=series, span=(0.0, 1.0),
    )  # fmt: skip


def _series(front: Mapping[str, Any]) -> Series:
    limit = front["closeness_at_most"]
    name = "all plans" if limit is None else f"closeness at most {limit:.3f}"
    points = [(p["information_exposure"], p["association_loss"]) for p in front["points"]]
    return Series(name, points, texts=[_words(p) for p in front["points"]], marks=len(points) <= 40)


def _words(point: Mapping[str, Any]) -> str:
    near = "" if point["closeness"] is None else f", closeness {point['closeness']:.3f}"
    figures = f"Γβ {point['information_exposure']:.3f}, Γα {point['association_loss']:.3f}{near}"
    return f"{figures}: " + " | ".join(", ".join(names) for names in point["plan"])


def frontier_csv(found: Mapping[str, Any]) -> str:
    """The frontier as a table: one line for each plan."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["closeness_at_most", "tables", "association_loss", "information_exposure", "closeness", "plan"]
    )
    for front in found["fronts"]:
        for p in front["points"]:
            writer.writerow(escape_row([
                _blank(front["closeness_at_most"]), len(p["plan"]), p["association_loss"],
                p["information_exposure"], _blank(p["closeness"]), _plan(p["plan"]),
            ]))  # fmt: skip
    return text.getvalue()


def _plan(tables: Sequence[Sequence[str]]) -> str:
    return " | ".join(", ".join(names) for names in tables)


def _blank(value: float | None) -> float | str:
    return "" if value is None else value
