"""Gauges of re-identification for the private report: prosecutor, journalist and marketer, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from maskwright.domain.beliefs import Beliefs
from maskwright.report.bars import as_percent, paired_bars
from maskwright.report.html import Markup, html_table, tag

ESTIMATORS = {
    "pitman": "Pitman (maximum likelihood, exact expectation)",
    "zayatz": "Zayatz",
    "snb": "SNB (shifted negative binomial)",
}
Gauge = tuple[str, float, float, str]


def gauge_parts(beliefs: Beliefs) -> list[Markup]:
    """The gauges of an attack that counted classes of people, and the estimates of a survey."""
    measures = beliefs.measures
    before, after = measures.get("before"), measures.get("after")
    if not (isinstance(before, Mapping) and isinstance(after, Mapping) and "sizes" in after):
        return []
    gauges = _gauges(measures)
    alt = "Risk of re-identification for three adversaries, before and after; figures are in the table"
    rows = [(name, _number(first), _number(last), kind) for name, first, last, kind in gauges]
    parts = [
        tag("h3", "Who could re-identify people"),
        tag("p", "The prosecutor looks for somebody who is known to be in the table, the journalist for anybody of the "
                 "population, the marketer for as many as possible."),
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
        ("highest individual risk", _number(before["highest"]), _number(after["highest"])),
        ("expected re-identifications", *(_number(x["expected_reidentifications"]) for x in (before, after))),
        ("average individual risk (global risk)", _number(before["marketer"]), _number(after["marketer"])),
    ]
    if "households" in after:
        homes = before["households"], after["households"]
        rows.append(("highest risk of a household", *(_number(x["highest"]) for x in homes)))
        rows.append(
            (
                "people expected in a household with a re-identification",
                *(_number(x["expected_people"]) for x in homes),
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


def _number(value: float) -> str:
    return f"{value:.4g}"


def _share(value: float | None) -> str:
    return "no answer" if value is None else as_percent(value)
