"""A comparison as a folder: one table, one chart, and every point as a policy that can be run. Private."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from maskwright.comparing.points import with_absolute_paths
from maskwright.domain.exact import share_text
from maskwright.domain.metric import metric_text
from maskwright.domain.spreadsheets import escape_row
from maskwright.errors import DestinationError
from maskwright.folder import store
from maskwright.metrics import METRICS
from maskwright.report.charts import Chart, Series
from maskwright.report.html import Markup, html_page, html_table, tag

if TYPE_CHECKING:
    from maskwright.comparing import Comparison, Point, TablePoint

RECORD = "comparison.json"
LOOKING = (
    "Whoever chooses a policy by looking at these outcomes has made the choice part of the method, and an attacker may "
    "know that. Bounds that are guaranteed for settings fixed in advance are therefore only measured for a release "
    "that is made from this input from now on; its report says so."
)


TABLES = "tables.csv"
PAGES = (RECORD, "comparison.csv", "chart.svg", "index.html", TABLES)


def comparison_files(folder: Path) -> set[str] | None:
    """The files that a comparison says it has; None: it is no comparison of ours."""
    record = store.read_object(folder / RECORD)
    points = record.get("points")
    if not {"ok", "utility", "risk"} <= record.keys() or not isinstance(points, list):
        return None
    return {*PAGES, *(str(point.get("policy")) for point in points if isinstance(point, dict))}


COMPARISON = store.Kind("comparison", comparison_files, mode=0o700)


def check_comparison_folder(destination: Path, overwrite: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse, before any work is done, a place where the comparison could not be put."""
    store.recover_destination(destination)
    store.check_destination(destination, overwrite, COMPARISON, inputs)


def save_comparison(comparison: Comparison, destination: Path, overwrite: bool) -> Path:
    """Write the folder beside its place, then rename it."""
    with store.Stage(destination, overwrite, COMPARISON, comparison.inputs) as stage:
        try:
            _fill(comparison, stage.content)
        except OSError as problem:
            raise DestinationError(
                f"cannot write the comparison to {str(destination)!r}: {problem.strerror}"
            ) from None
        stage.commit()
    return destination


def _fill(comparison: Comparison, folder: Path) -> None:
    (folder / "policies").mkdir()
    files = file_names(comparison)
    for point in comparison.points:
        (folder / files[point.name]).write_text(with_absolute_paths(point.policy).to_yaml(), encoding="utf-8")
    record = comparison.as_dict()
    for item in record["points"]:
        item["policy"] = files[item["name"]]
    (folder / RECORD).write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
    (folder / "comparison.csv").write_text(as_csv(comparison), encoding="utf-8")
    if comparison.tables:
        (folder / TABLES).write_text(tables_csv(comparison.tables), encoding="utf-8")
    (folder / "chart.svg").write_text(comparison_chart(comparison).file(), encoding="utf-8")
    (folder / "index.html").write_text(_page(comparison, files), encoding="utf-8")


def file_names(comparison: Comparison) -> dict[str, str]:
    """Point → the file of its policy."""
    result: dict[str, str] = {}
    for number, point in enumerate(comparison.points, start=1):
        slug = re.sub(r"[^a-zA-Z0-9.=_-]+", "-", point.name).strip("-.") or "policy"
        result[point.name] = f"policies/{number:02d}-{slug[:60]}.yaml"
    return result


def as_csv(comparison: Comparison) -> str:
    """One line per point: status, beliefs, metrics, rows."""
    attacks = sorted({a for p in comparison.points for a in p.beliefs})
    metrics = [name for name in METRICS if any(name in p.metrics for p in comparison.points)]
    front = {p.name for p in comparison.front}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["number", "name", "status", "pareto", "worst_belief", *(f"belief: {a}" for a in attacks), *metrics,
         "rows_published", "rows_suppressed", "reason"]
    )  # fmt: skip
    for number, point in enumerate(comparison.points, start=1):
        beliefs = [_number(point.beliefs.get(a)) for a in attacks]
        writer.writerow(escape_row(
            [number, point.name, point.status, "yes" if point.name in front else "no", _number(point.worst),
             *beliefs, *(_number(point.metrics.get(m)) for m in metrics), point.rows.get("published", ""),
             point.rows.get("suppressed", ""), point.reason]
        ))  # fmt: skip
    return text.getvalue()


def tables_csv(tables: Sequence[TablePoint]) -> str:
    """One line per table and attack: the risk with its interval, and how far pairs of values are from the true ones."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["table", "attack", "risk", "low", "high", "pair_distance", "reason"])
    for table in tables:
        for attack, risk in table.risks.items() or [("", ("", "", ""))]:
            distance = "" if table.distance is None else f"{table.distance:.6g}"
            writer.writerow(escape_row([table.name, attack, *risk, distance, table.why]))
    return text.getvalue()


def table_rows(tables: Sequence[TablePoint]) -> list[tuple[str, ...]]:
    """Name, largest risk with its interval, pair distance, and each attack's risk, as texts."""
    attacks = list(dict.fromkeys(a for t in tables for a in t.risks))
    rows = []
    for table in tables:
        worst = table.worst
        shown = f"{worst[0]:.3f} ({worst[1]:.3f} to {worst[2]:.3f})" if worst else table.why or "-"
        distance = "" if table.distance is None else f"{table.distance:.3f}"
        rows.append(
            (
                table.name,
                shown,
                distance,
                *(f"{table.risks[a][0]:.3f}" if a in table.risks else "" for a in attacks),
            )
        )
    return [("table", "largest risk", "pair distance", *attacks), *rows]


def tables_chart(tables: Sequence[TablePoint]) -> Chart:
    """The largest controlled risk against the distance of pairs of values."""
    shown = [(t, t.worst[0], t.distance) for t in tables if t.worst is not None and t.distance is not None]
    places = [(float(distance), float(risk)) for _, risk, distance in shown]
    label = shared_labels(places, [t.name for t, _, _ in shown])
    alt = f"largest controlled risk against the distance of pairs of values for {len(shown)} tables"
    series = Series("tables", places, (), [t.name for t, _, _ in shown], label, False)
    return Chart(
        alt, "pair distance (lower is better)", "controlled risk (lower is better)", [series], span=(0.0, 1.0)
    )


def _number(value: object) -> str:
    return "" if value is None else f"{float(value):.10g}"  # type: ignore[arg-type]


def comparison_chart(comparison: Comparison) -> Chart:
    """Worst belief against usefulness."""
    shown = comparison.shown
    places = [(float(p.metrics[comparison.utility]), float(p.risk(comparison.risk) or 0)) for p in shown]
    label = shared_labels(places, [str(_no(comparison, p)) for p in shown])
    on = sorted((i for i, p in enumerate(shown) if p in comparison.front), key=lambda i: places[i])
    off = [i for i, p in enumerate(shown) if p not in comparison.front]

    def series(name: str, members: list[int], join: bool) -> Series:
        """The points with these numbers as a series of the chart."""
        texts = [f"{_no(comparison, shown[i])}: {shown[i].name}" for i in members]
        return Series(name, [places[i] for i in members], (), texts, [label[i] for i in members], join)

    metric = METRICS[comparison.utility]
    better = "lower" if metric.better == "low" else "higher"
    risk = "worst belief" if comparison.risk == "worst" else f"worst belief ({comparison.risk})"
    alt = f"{risk} against {metric.name} for {len(shown)} policies; on the Pareto front are " + ", ".join(
        p.name for p in comparison.front
    )
    drawn = [series("Pareto front", on, True), *([series("other policies", off, False)] if off else [])]
    x, y = f"{metric.name} ({better} is better)", f"{risk} (lower is better)"
    return Chart(alt, x, y, drawn, span=(0.0, 1.0))


def shared_labels(places: list[tuple[float, float]], labels: list[str], near: float = 0.035) -> list[str]:
    """Points so near to each other that their labels would overlap share the label of the last of them."""
    width = max((x for x, _ in places), default=1.0) - min((x for x, _ in places), default=0.0) or 1.0
    scaled = [(x / width, y * 0.6) for x, y in places]  # as they lie on the picture
    result = [""] * len(places)
    groups: list[list[int]] = []
    for i in sorted(range(len(places)), key=lambda i: scaled[i]):
        for members in groups:
            if any(math.dist(scaled[i], scaled[j]) < near for j in members):
                members.append(i)
                break
        else:
            groups.append([i])
    for members in groups:
        result[members[-1]] = ", ".join(labels[i] for i in sorted(members))
    return result


def _page(comparison: Comparison, files: dict[str, str]) -> str:
    failed = [p for p in comparison.points if p.status != "holds"]
    parts: list[object] = [
        tag("h1", "Comparison"),
        tag("p", "Private: these figures describe the original data.", class_="lead"),
        tag("section", tag("strong", f"{len(comparison.points) - len(failed)} of {len(comparison.points)} policies "
            "hold"), tag("p", LOOKING), class_="verdict " + ("yes" if comparison.ok else "no")),
        tag("h2", "Risk against usefulness"),
        Markup(comparison_chart(comparison).file()),
        tag("p", "On the Pareto front no other policy is better in one thing without being worse in the other. "
            "Numbers are those of the table."),
        _points_table(comparison),
    ]  # fmt: skip
    if comparison.tables:
        head, *lines = table_rows(comparison.tables)
        parts += [
            tag("h2", "Tables compared on people who were held out"),
            tag("p", "What succeeds against people of the table beyond what succeeds against others, with 95 % "
                "intervals; and how far pairs of values are from the true ones."),
            Markup(tables_chart(comparison.tables).file()),
            html_table(head, lines),
        ]  # fmt: skip
    if failed:
        rows = [(_no(comparison, p), p.name, p.status, p.reason) for p in failed]
        parts += [tag("h2", "Policies that do not hold"), html_table(("", "policy", "", "why"), rows)]
    notes = [(p.name, "; ".join(p.notes)) for p in comparison.points if p.notes]
    if notes:
        parts += [tag("h2", "Notes"), html_table(("policy", "note"), notes)]
    command = (
        f"maskwright anonymize {comparison.source or 'table'} -p {next(iter(files.values()))} -o release/"
    )
    parts += [tag("h2", "To run one of them"), tag("pre", command)]
    return html_page("Comparison", *parts)


def _no(comparison: Comparison, point: Point) -> int:
    return comparison.points.index(point) + 1


def _short(point: Point, metric: str) -> str:
    return metric_text(metric, point.metrics[metric]) if metric in point.metrics else ""


def _points_table(comparison: Comparison) -> Markup:
    front = {p.name for p in comparison.front}
    names = [name for name in METRICS if any(name in p.metrics for p in comparison.points)]
    chosen = [comparison.utility, *(n for n in names if n != comparison.utility)]
    attacks = sorted({a for p in comparison.points for a in p.beliefs})
    head = ("", "policy", "Pareto", "worst belief", chosen[0], *attacks, *chosen[1:])
    rows = [
        (
            _no(comparison, p), p.name, "yes" if p.name in front else "",
            share_text(p.worst) if p.worst is not None else "",
            _short(p, chosen[0]),
            *(share_text(p.beliefs[a]) if a in p.beliefs else "" for a in attacks),
            *(_short(p, m) for m in chosen[1:]),
        )
        for p in comparison.points
        if p.status == "holds"
    ]  # fmt: skip
    return html_table(head, rows, numbers=(0, *range(3, len(head))))
