"""Risk and usefulness, for the private report.

Risk before and after: classes, beliefs, knowledge, and what singles people out. Usefulness: what became of each column,
and every metric.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks import ATTACKS
from maskwright.domain.beliefs import Beliefs
from maskwright.domain.exact import belief_text, number_text, percent_text
from maskwright.domain.grouping import Grouping, exact_view
from maskwright.domain.release import Release, level_names
from maskwright.metrics import METRICS
from maskwright.metrics.distributions import attribute_earth_movers, attribute_total_variation
from maskwright.metrics.loss import attribute_bits, attribute_losses
from maskwright.report.bars import as_percent, distribution_bars, paired_bars
from maskwright.report.charts import Chart, Series
from maskwright.report.details import detail_lines, single_number_lines
from maskwright.report.html import (
    Markup,
    bullet_list,
    folded_details,
    html_table,
    joined_markup,
    page_section,
    tag,
)

INTRODUCTION = (
    "The largest belief that each attack leads to, for an adversary who knows the method, its settings and everybody's "
    "quasi-identifiers. Outlined: before the release. Filled: after it."
)
FACTS = " For background-knowledge, before means with the release, but without the fact."
ABOUT = {"values": "a value", "rows": "which row", "ranges": "a range of values"}


def risk_section(found: Sequence[Beliefs]) -> Markup:
    """The section on attacks: what could be believed before, and after."""
    if not found:
        return page_section("risk", "Risk before and after", tag("p", "No attack was run."))
    rows = [
        (b.attack, ABOUT[ATTACKS[b.attack].about], belief_text(b.worst.before), belief_text(b.worst.after), b.kind,
         f"{b.worst.whom}: {b.worst.why}")
        for b in found
    ]  # fmt: skip
    head = ("attack", "belief in", "before", "after", "kind", "whom it concerns, and why")
    single = dict.fromkeys(line for b in found for line in single_number_lines(b.measures))
    shares = [(b.attack, float(b.worst.before), float(b.worst.after)) for b in found]
    return page_section(
        "risk", "Risk before and after",
        tag("p", INTRODUCTION, FACTS if any("facts" in ATTACKS[b.attack].takes for b in found) else ""),
        *(tag("p", f"{line}.") for line in single),
        tag("figure", paired_bars("Largest belief per attack, before and after; figures in the table", shares, 1.0)),
        html_table(head, rows, caption="The worst belief of each attack"),
        *(part for b in found for part in _sizes(b)),
        *(part for b in found for part in gauge_parts(b.measures)),
        *(part for b in found for part in _knowledge(b)),
        *(part for b in found for part in _singled_out(b)),
        *_details(found),
    )  # fmt: skip


def _sizes(beliefs: Beliefs) -> list[Markup]:
    """How many people share their quasi-identifiers with how many."""
    before, after = beliefs.measures.get("before"), beliefs.measures.get("after")
    if not (isinstance(before, Mapping) and isinstance(after, Mapping) and "sizes" in after):
        return []
    by_rows = beliefs.measures.get("by_rows")
    rows = [
        ("people who are alone in their class", f"{before['unique']:,}", f"{after['unique']:,}"),
        ("smallest class", before["smallest_class"], after["smallest_class"]),
        ("highest chance to be found", _chance(before["highest"]), _chance(after["highest"])),
        *(
            (("the same by rows", *(belief_text(by_rows[side]) for side in ("before", "after"))),)
            if by_rows
            else ()
        ),
        ("average chance to be found", _chance(before["average"]), _chance(after["average"])),
        ("classes", f"{before['classes']:,}", f"{after['classes']:,}"),
    ]
    shares = [
        (f"{b['size']} {'person' if b['size'] == '1' else 'people'}", b["people"] / before["people"],
         a["people"] / after["people"])
        for b, a in zip(before["sizes"], after["sizes"], strict=True)
    ]  # fmt: skip
    while len(shares) > 1 and not any(shares[-1][1:]):
        shares.pop()
    alt = "Share of people by the size of their class, before and after; the table has the main figures"
    return [
        tag("h3", "How many people share their quasi-identifiers"),
        html_table(("", "before", "after"), rows, numbers=(1, 2), caption=f"Classes of people ({beliefs.attack})"),
        tag("figure", paired_bars(alt, shares),
            tag("figcaption", "Share of people by the size of the class they are in.")),
    ]  # fmt: skip


def _knowledge(beliefs: Beliefs) -> list[Markup]:
    """Disclosure against pieces of knowledge."""
    columns = beliefs.measures.get("attributes")
    known = columns.items() if isinstance(columns, Mapping) else ()
    curves = {name: c for name, c in known if isinstance(c, Mapping) and c.get("implications")}
    if not curves:
        return []
    series, parts = list[Series](), list[Markup]()
    for name, column in curves.items():
        some = f"{name}: " if len(curves) > 1 else ""
        series.append(_curve(f"{some}facts of any kind", column["implications"]))
        if column.get("negations", column["implications"]) != column["implications"]:
            series.append(_curve(f"{some}facts of the kind “not this value”", column["negations"]))
        certain = column.get("certain_from")
        text = "certainty is not reached with any number of facts that was tried"
        if certain is not None:
            text = f"{certain} fact{'' if certain == 1 else 's'} can be enough for certainty"
        parts.append(tag("li", f"{name}: {text}."))
    alt = "Largest belief against the number of facts known: " + "; ".join(
        f"{s.name} " + ", ".join(f"{y:.3g}" for _, y in s.points) for s in series
    )
    chart = Chart(alt, "facts known about other people", "largest belief", series, span=(0.0, 1.0))
    return [
        tag("h3", "What further knowledge would reveal"),
        tag("p", "The largest belief of somebody who knows this many facts about other people, each the worst "
                 "possible: “if Hannah has flu, then Charlie has flu”, or “Ed does not have mumps”."),
        tag("figure", chart.svg()), tag("ul", *parts),
    ]  # fmt: skip


def _curve(name: str, points: Sequence[Any]) -> Series:
    texts = [f"{n} fact{'' if n == 1 else 's'}: {number_text(p)}" for n, p in enumerate(points)]
    return Series(name, [(float(n), float(p)) for n, p in enumerate(points)], texts=texts)


def _singled_out(beliefs: Beliefs) -> list[Markup]:
    """The minimal unique sets: how few attributes are enough to single somebody out."""
    found = beliefs.measures.get("singled_out")
    if not isinstance(found, Mapping):
        return []
    parts: list[Markup] = [tag("h3", "How few attributes single somebody out")]
    for when in ("before", "after"):
        single = found[when]
        most = single["sets_up_to"]
        up_to = f"{most} attribute{'' if most == 1 else 's'}"
        share = f"{single['people']:,} people ({float(single['share']):.1%})"
        if not single["people"]:
            share = "Nobody"
        are = "is" if single["people"] in (0, 1) else "are"
        text = f"{when.capitalize()}: {share} {are} singled out by at most {up_to}."
        parts.append(tag("p", text))
        if single["sets"]:
            sets = [(" + ".join(s["attributes"]), f"{s['people']:,}") for s in single["sets"][:10]]
            caption = f"Minimal sets that single people out, {when} (the commonest)"
            parts.append(html_table(("attributes", "people"), sets, numbers=(1,), caption=caption))
            given = [(name, f"{float(x):.0%}") for name, x in single["contributions"].items() if x]
            caption = f"How often an attribute belongs to such a set, {when}"
            parts.append(folded_details(caption, html_table(("attribute", "share"), given, numbers=(1,))))
    return parts


def _details(found: Sequence[Beliefs]) -> list[Markup]:
    lines = [(b, detail_lines(b)) for b in found]
    parts = [joined_markup((tag("h3", b.attack), bullet_list(text))) for b, text in lines if text]
    return [folded_details("More figures of each attack", *parts)] if parts else []


def _chance(ratio: object) -> str:
    """A chance that is written as an exact ratio, for people."""
    return belief_text(Fraction(str(ratio)))


ESTIMATORS = {
    "pitman": "Pitman (maximum likelihood, exact expectation)",
    "zayatz": "Zayatz",
    "snb": "SNB (shifted negative binomial)",
}
Gauge = tuple[str, float, float, str]


def gauge_parts(measures: Mapping[str, Any]) -> list[Markup]:
    """The gauges of an attack that counted classes of people, and the estimates of a survey.

    `measures` are those of the attack, or what a manifest says of them.
    """
    before, after = measures.get("before"), measures.get("after")
    if not (isinstance(before, Mapping) and isinstance(after, Mapping) and "sizes" in after):
        return []
    gauges = _gauges(measures)
    alt = "Risk of re-identification for three adversaries, before and after; figures are in the table"
    rows = [(name, percent_text(first), percent_text(last), kind) for name, first, last, kind in gauges]
    parts = [
        tag("h3", "Who could re-identify people"),
        tag("p", "The prosecutor looks for somebody who is known to be in the table, the journalist for anybody in "
                 "the population, the marketer for as many as possible."),
        tag("figure", paired_bars(alt, [gauge[:3] for gauge in gauges], 1.0)),
        html_table(("adversary", "before", "after", "kind"), rows, numbers=(1, 2), caption="Risk of re-identification"),
    ]  # fmt: skip
    estimated = measures.get("estimated")
    return [*parts, *_estimates(estimated)] if isinstance(estimated, Mapping) else parts


def _gauges(measures: Mapping[str, Any]) -> list[Gauge]:
    """Name, before, after and kind of each gauge; the journalist is exact where there is a population table."""
    before, after = measures["before"], measures["after"]
    found: list[Gauge] = [
        ("prosecutor, highest", _float(before["highest"]), _float(after["highest"]), "exact")
    ]
    average: Gauge = ("marketer, average", _float(before["average"]), _float(after["average"]), "exact")
    for key, kind in (("journalist", "exact"), ("estimated", "estimated")):
        known = measures.get(key)
        if isinstance(known, Mapping):
            then, now = known["before"], known["after"]
            found.append(("journalist, highest", _float(then["highest"]), _float(now["highest"]), kind))
            average = ("marketer, average", _float(then["marketer"]), _float(now["marketer"]), kind)
            break
    return [*found, average]


def _estimates(estimated: Mapping[str, Any]) -> list[Markup]:
    """What is estimated of the population: re-identifications, households, and uniques by every estimator."""
    population, before, after = (estimated[key] for key in ("population", "before", "after"))
    how = "Survey weights say" if population["weighted"] else "The sampling fraction says"
    missing = " A missing value is counted as matching every value." if population["wildcard"] else ""
    rows = [
        ("highest individual risk", percent_text(before["highest"]), percent_text(after["highest"])),
        (
            "expected re-identifications",
            *(number_text(x["expected_reidentifications"]) for x in (before, after)),
        ),
        (
            "average individual risk (global risk)",
            percent_text(before["marketer"]),
            percent_text(after["marketer"]),
        ),
    ]
    if "households" in after:
        homes = before["households"], after["households"]
        rows.append(("highest risk of a household", *(percent_text(x["highest"]) for x in homes)))
        rows.append(
            (
                "people expected in a household with a re-identification",
                *(number_text(x["expected_people"]) for x in homes),
            )
        )
    uniques = [
        (
            "unique in the sample",
            *(_share(x["sample_uniques"] / x["people"]) for x in (before, after)),
            "",
        )
    ]
    for name, text in ESTIMATORS.items():
        shares = (_share(x["population_uniques"][name]) for x in (before, after))
        chosen = [when for when, x in (("before", before), ("after", after)) if x["dankars_rule"] == name]
        uniques.append((text, *shares, " and ".join(chosen)))
    return [
        tag("h3", "Estimated for the population"),
        tag("p", f"{population['people']:,} people were sampled from {population['size']:,} "
                 f"({as_percent(population['fraction'])}). {how} whom each of them stands for.{missing} Everything in "
                 "these tables is estimated."),
        html_table(("", "before", "after"), rows, numbers=(1, 2), caption="Risk in the population (estimated)"),
        html_table(("share of people who are unique", "before", "after", "picked by Dankar's rule"), uniques,
              numbers=(1, 2), caption="Population uniqueness (estimated)"),
        tag("p", estimated["accuracy"]),
    ]  # fmt: skip


def _float(value: object) -> float:
    """A measured number, which may be the text of a fraction."""
    return float(Fraction(value)) if isinstance(value, str) else float(value)  # type: ignore[arg-type]


def _share(value: float | None) -> str:
    return "no answer" if value is None else as_percent(value)


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
class ColumnShares:
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
    return page_section(
        "usefulness", "Usefulness",
        html_table(("metric", "value", "scale", "what it is"), metrics, numbers=(1,), caption="What was lost overall"),
        *column_pictures(release),
    )  # fmt: skip


def column_pictures(release: Release) -> list[Markup]:
    """What each column lost, and its values before and after."""
    parts: list[Markup] = []
    for name, grouping in named_groupings(release):
        spreads = spreads_of(grouping, release.policy.recoding.exact)
        about = f" in {name}" if name else ""
        parts += [_overview(spreads, about), *(_column(s, about) for s in spreads)]
    return parts


def named_groupings(release: Release) -> list[tuple[str, Grouping]]:
    """Each grouping with the name of its table; a name is not needed where there is one grouping."""
    several = len(release.groupings) > 1
    names = {id(part.grouping): part.name for part in reversed(release.parts)}
    return [(names[id(g)] if several else "", g) for g in release.groupings]


def spreads_of(grouping: Grouping, exact: bool) -> list[ColumnShares]:
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
            ColumnShares(
                name, Shares.of(level.labels, before, hierarchy.ordered),
                Shares.of(labels.texts, after, False),
                levels.get(name, "labels by group"), float(losses[name]), bits[name], moved[name], work[name],
            )
        )  # fmt: skip
    for name, counts in summary.sensitive.items():
        now = grouping.row_counts(name)
        found.append(
            ColumnShares(
                name, Shares.of((None, *counts.values), summary.row_totals(name), counts.ordered),
                Shares.of((None, *now.values), now.totals, counts.ordered), variation=moved[name], work=work[name],
            )
        )  # fmt: skip
    return found


def _overview(spreads: Sequence[ColumnShares], about: str) -> Markup:
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


def _column(spread: ColumnShares, about: str) -> Markup:
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


PERTURBED = "perturbed"


def perturbed_section(beliefs: Sequence[Beliefs]) -> Markup:
    """The section on perturbed columns; nothing where there are none."""
    found = next((b.measures[PERTURBED] for b in beliefs if PERTURBED in b.measures), None)
    if not found:
        return Markup("")
    linked = [
        (" and ".join(link["columns"]), link["way"], knowing, as_percent(m["before"]), as_percent(m["truth"]),
         as_percent(m["right"]), as_percent(m["nearest"]), f"{m['people']:,}" + ("" if m["whole"] else " (drawn)"))
        for link in found["linkage"]
        for knowing, m in (("class and numbers", link["in_class"]), ("numbers alone", link["alone"]))
    ]  # fmt: skip
    head = ("columns", "published by", "who knows", "before", "mean belief in the right row", "guesses it",
            "by the nearest row", "people")  # fmt: skip
    bars = [
        (" and ".join(link["columns"]), link["in_class"]["before"], link["in_class"]["truth"])
        for link in found["linkage"]
    ]
    return page_section(
        PERTURBED, "Numbers published with changes",
        tag("p", "Somebody may know the true numbers of a person, and how they were changed, and look for the row. "
                 "Outlined: what the class alone tells. Filled: with the numbers. The nearest row is what somebody "
                 "finds who knows nothing of the method; it is no measure of safety."),
        tag("figure", paired_bars("Mean belief in the right row, without and with the true numbers", bars, 1.0)),
        html_table(head, linked, numbers=range(3, 8), caption="Which row is whose, by true numbers"),
        tag("p", "Requirements and beliefs about these columns are counted on their true values, as if these were "
                 "published. What analysts see of them:"),
        *(_changed_column(name, column) for name, column in found["columns"].items()),
    )  # fmt: skip


def _changed_column(name: str, column: Mapping[str, Any]) -> Markup:
    """The figures of one column, of the true values of the published rows and as they are published."""
    rows: list[tuple[str, ...]] = [
        (key, _figure(value), _figure(column["after"].get(key))) for key, value in column["before"].items()
    ]
    rows += [
        (f"correlation with {other}", *map(_figure, pair))
        for other, pair in column.get("correlations", {}).items()
    ]
    regression: list[tuple[str, ...]] = [
        (other, *map(_figure, pair)) for other, pair in column.get("regression", {}).items()
    ]
    if "believed" in column:
        rows = [
            (
                value,
                as_percent(share),
                as_percent(column["after"][value]),
                as_percent(column["believed"][value]),
            )
            for value, share in column["before"].items()
        ]
        table = html_table(
            ("value", "share before", "after", "a published one is true with"), rows, numbers=(1, 2, 3),
            caption=f"Categories of {name}: {column['published']}",
        )  # fmt: skip
        return tag("div", tag("h3", name), table)
    loss = f"; information loss {column['information_loss']:.3g} %"
    parts = [
        tag("h3", name),
        html_table(
            ("", "before", "after"), rows, numbers=(1, 2), caption=f"{name}: {column['published']}{loss}"
        ),
    ]
    if regression:
        table = html_table(("explained by", "before", "after"), regression, numbers=(1, 2),
                           caption=f"{name}: coefficients of a linear regression on the other numbers")  # fmt: skip
        parts.append(folded_details(f"Regression of {name}", table))
    return tag("div", *parts)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.5g}"
