"""The report: may this be published, what was asked, what was measured, what was lost. Private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from maskwright.core.exact import show
from maskwright.core.grouping import exact_view
from maskwright.core.release import Release
from maskwright.metrics import METRICS
from maskwright.metrics.distributions import attribute_earth_movers, attribute_total_variation
from maskwright.metrics.entropy import attribute_bits
from maskwright.metrics.loss import attribute_losses
from maskwright.report.html import Markup, bars, join, page, table, tag
from maskwright.report.plans import plan_section

Examples = Mapping[str, Sequence[Mapping[str, str | None]]]


def write_report(path: Path, release: Release, examples: Examples, dictionary: Mapping[str, Any]) -> None:
    path.write_text(report(release, examples, dictionary), encoding="utf-8")


def report(release: Release, examples: Examples, dictionary: Mapping[str, Any]) -> str:
    return page(
        "Release report",
        tag("h1", "Release report"),
        tag(
            "p",
            "Private: this report describes the original data. Do not hand it over with the release.",
            class_="lead",
        ),
        _answer(release),
        _figures(release),
        _asked(release),
        _risk(release),
        plan_section(release),
        _usefulness(release, dictionary),
        _examples(examples),
        _search(release),
        _repeat(release),
    )


def _answer(release: Release) -> Markup:
    worst = max(release.beliefs, key=lambda b: b.worst.after, default=None)
    lines = [tag("p", worst.sentence())] if worst else []
    if release.history.get("chosen_by_looking"):
        lines.append(tag("p", f"Measured, not guaranteed: {release.history['why']}."))
    if release.seeded:
        lines.append(tag("p", "Made with a fixed seed: for tests and experiments only."))
    text = "Yes: every requirement holds" if release.ok and not release.seeded else "No"
    if release.seeded and release.ok:
        text = "Not with a fixed seed: the requirements hold, but the row order can be predicted"
    return tag("section", tag("strong", text), *lines, class_="verdict " + ("yes" if release.ok else "no"))


def _figures(release: Release) -> Markup:
    g, tables = release.grouping, release.groupings
    facts = [
        *([(str(len(tables)), "tables that cannot be joined")] if len(tables) > 1 else []),
        (f"{g.published_rows:,}", f"rows published of {g.summary.n_rows + g.summary.dropped_missing:,}"),
        (f"{sum(x.suppressed_rows for x in tables):,}", "rows suppressed"),
        (f"{sum(x.classes.n for x in tables):,}", "classes"),
        (show(release.metrics["information-loss"]).split(" ")[0][:7], "information loss (0 to 1)"),
    ]
    return tag(
        "div", *(tag("div", tag("b", n), tag("span", t), class_="card") for n, t in facts), class_="cards"
    )


def _asked(release: Release) -> Markup:
    rows = [
        (v.model, " in ".join(filter(None, (v.attribute, v.part))), v.bound,
         show(v.worst) if v.worst is not None else "", v.quantity, v.use, "holds" if v.ok else "fails")
        for v in release.verdicts
    ]  # fmt: skip
    head = ("requirement", "attribute", "asked", "worst measured", "quantity", "used as", "verdict")
    beliefs = [tag("p", tag("b", f"{v.model}, {v.status}: "), v.why) for v in release.verdicts if v.status]
    title = "What was asked, and what was measured on the written table"
    return join((tag("h2", title), table(head, rows), *beliefs))


def _risk(release: Release) -> Markup:
    worst = [
        (b.attack, show(b.worst.before), show(b.worst.after), b.kind, f"{b.worst.whom}: {b.worst.why}")
        for b in release.beliefs
    ]
    parts: list[object] = [
        tag("h2", "Risk before and after"),
        tag("p", "The largest belief that each attack leads to, for an adversary who knows the method."),
        table(("attack", "before", "after", "", "whom it concerns, and why"), worst),
    ]
    for beliefs in release.beliefs:
        before, after = beliefs.measures.get("before"), beliefs.measures.get("after")
        if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
            continue
        rows = [
            ("people who are alone in their class", f"{before['unique']:,}", f"{after['unique']:,}"),
            ("smallest class", before["smallest_class"], after["smallest_class"]),
            ("highest risk of being matched", before["highest"], after["highest"]),
            ("average risk", _short(before["average"]), _short(after["average"])),
            ("classes", f"{before['classes']:,}", f"{after['classes']:,}"),
        ]
        parts.append(table((beliefs.attack, "before", "after"), rows, numbers=(1, 2)))
        parts.append(
            tag(
                "p", "People by the size of their class:",
                tag("span", class_="key", style="background:var(--before)"), "before",
                tag("span", class_="key", style="background:var(--after)"), "after",
            )
        )  # fmt: skip
        parts.append(
            bars(
                [
                    (b["size"], b["people"] / before["people"], a["people"] / after["people"])
                    for b, a in zip(before["sizes"], after["sizes"], strict=True)
                ],
                "Share of people by class size, before and after; the table above gives the main figures",
            )
        )
    return join(parts)


def _short(ratio: object) -> str:
    top, _, bottom = str(ratio).partition("/")
    return f"{int(top) / int(bottom or 1):.4g}"


def _usefulness(release: Release, dictionary: Mapping[str, Any]) -> Markup:
    exact = release.policy.recoding.exact
    rows = []
    for part in {id(p.grouping): p for p in release.parts}.values():
        shown = exact_view(part.grouping) if exact else part.grouping
        losses, bits = attribute_losses(shown), attribute_bits(shown)
        moved, work = (
            attribute_total_variation(part.grouping, exact),
            attribute_earth_movers(part.grouping, exact),
        )
        tables = {p.name for p in release.parts if p.grouping is part.grouping}
        rows += [
            (
                f"{c['table']}: {c['name']}" if len(release.groupings) > 1 else c["name"],
                c.get("published_as", "as collected"), len(c["labels"]) if "labels" in c else "",
                f"{float(losses[c['name']]):.1%}" if c["name"] in losses else "",
                f"{bits[c['name']]:,.0f}" if c["name"] in bits else "",
                f"{moved[c['name']]:.4f}", f"{work[c['name']]:.4f}",
            )
            for c in dictionary["columns"]
            if c["table"] in tables and c["name"] in moved
        ]  # fmt: skip
    head = ("column", "published at level", "labels", "loss", "bits lost", "total variation", "earth mover's")
    metrics = [
        (name, show(value), METRICS[name].meaning, METRICS[name].summary_line())
        for name, value in release.metrics.items()
    ]
    return join(
        (
            tag("h2", "Usefulness"),
            table(head, rows, numbers=(2, 3, 4, 5, 6)),
            table(("metric", "value", "scale", "what it is"), metrics),
        )
    )


def _examples(examples: Examples) -> Markup:
    parts: list[object] = [tag("h2", "Example rows")]
    for name, rows in examples.items():
        if rows:
            parts.append(
                tag("p", "Before (not the same people):" if name == "before" else f"{name.capitalize()}:")
            )
            parts.append(table(tuple(rows[0]), [tuple(row.values()) for row in rows]))
    return join(parts)


def _search(release: Release) -> Markup:
    found = release.grouping.search.items()
    rows = [(key.replace("_", " "), _plain(value)) for key, value in found if key != "frontier"]
    return join((tag("h2", "The search"), table(("", ""), rows)))


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {v}" for k, v in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _repeat(release: Release) -> Markup:
    notes = tag("ul", *(tag("li", n) for n in release.notes)) if release.notes else tag("p", "None.")
    times = [(name, f"{seconds:.2f} s") for name, seconds in release.timings.items()]
    return join(
        (
            tag("h2", "What was left out"), notes,
            tag("h2", "To repeat it"),
            tag("pre", release.policy.to_yaml()),
            table(("step", "time"), times, numbers=(1,)),
        )
    )  # fmt: skip
