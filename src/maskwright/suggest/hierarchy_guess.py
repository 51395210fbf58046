"""Suggest how a quasi-identifier may be coarsened: nice intervals, masked postcodes, parts of dates, merged bands."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_FLOOR, Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

from maskwright.domain.hierarchy import Hierarchy
from maskwright.errors import HierarchyError
from maskwright.hierarchies.library import library_entry
from maskwright.policy.policy import Column
from maskwright.suggest.merged_values import rare_values_merged
from maskwright.suggest.profile import Facts
from maskwright.suggest.roles import NUMERIC_TOPICS, is_years, looks_like_dates
from maskwright.suggest.topics import name_parts

SUPPRESS = "suppress"
# An end of a scale is sparse when its outermost interval holds fewer than one in so many rows (or than k rows).
SPARSE = 1000
# Whole numbers with so few values may be codes, which intervals would mix; so are more of them, where the name says so.
CODES, MOST_CODES = 12, 60
MONTH_WORDS = frozenset(("month", "monat", "mois", "mes", "mese"))
MONTH_ENDS = ("month", "monat", "mon")
CODED_TOPICS = {"sex", "ethnicity", "marital-status", "country", "state", "place", "language", "occupation"}
CODED_WORDS = frozenset(
    ["code", "status", "type", "kind", "class", "category", "group", "fips", "reason", "cause"]
)
AS_CODES = "these few whole numbers are taken for codes: if they are amounts, write {intervals: [...]}"
PERHAPS_CODES = "if these numbers are codes, intervals mix them: write suppress, or a tree"


@dataclass(frozen=True)
class ReadyMatch:
    """When a ready hierarchy is looked at for a column.

    Attributes:
        name: of the ready hierarchy.
        topic: what the column is about, and
        words: that its name must hold then; none: the topic is enough.
        alone: so many different texts, all of them known, are enough whatever the column is called; 0: never.
        numbered: one of `words` where the values are numbers, which could be those of anything.
    """

    name: str
    topic: str
    words: frozenset[str] = frozenset()
    alone: int = 0
    numbered: frozenset[str] = frozenset()

    def confidence(self, facts: Facts, topic: str | None) -> str:
        """How sure it is that a column whose values are all known is of this kind; empty: it is not considered."""
        numeric = facts.numbers is not None
        words = self.numbered if numeric and self.numbered else self.words
        if topic == self.topic and (not words or words & set(name_parts(facts.name))):
            return "high"
        alone = self.alone and topic is None and not numeric
        return "medium" if alone and facts.distinct >= self.alone else ""


READY = (
    ReadyMatch("countries", "country", alone=8),
    ReadyMatch("us-states", "state", alone=10, numbered=frozenset({"state", "fips", "istatenum"})),
    ReadyMatch("isced", "education", numbered=frozenset({"isced"})),
    ReadyMatch("zip-us", "postcode", frozenset({"zip", "zipcode"})),
    ReadyMatch("soc-2018", "occupation", alone=5),
    ReadyMatch("isco-08", "occupation", frozenset({"isco"})),
    ReadyMatch("nace", "occupation", frozenset({"nace"})),
    ReadyMatch("naics", "occupation", frozenset({"naics"})),
    ReadyMatch("icd-10", "health"),
    ReadyMatch("bmi-who", "body", frozenset({"bmi"})),
)
SEVERAL_STATES = 3  # ZIP codes of fewer are told apart better by their digits alone
FORMATS = tuple(
    day + time
    for day in (
        "%Y-%m-%d",
        "%d.%m.%Y",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d-%m-%Y",
        "%m-%d-%Y",
        "%Y/%m/%d",
        "%Y.%m.%d",
    )
    for time in ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S")
)
DAY_OR_MONTH_FIRST = {"%d/%m": "%m/%d", "%d-%m": "%m-%d"}


@dataclass(frozen=True)
class Coarsening:
    """A hierarchy as the policy writes it, the levels allowed (None: all), and what to check by hand."""

    hierarchy: Any
    levels: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


def guess_hierarchy(facts: Facts, topic: str | None, k: int) -> Coarsening:
    """The hierarchy for a column that was guessed to be a quasi-identifier; it fits every value that was seen."""
    if looks_like_dates(facts):
        return fitting_or_suppressed(facts, date_parts(facts, birth=topic == "birth-date"))
    ready, notes = ready_hierarchy(facts, topic)
    if ready is not None:
        return fitting_or_suppressed(facts, Coarsening({"library": ready}, notes=notes))
    found = _without_library(facts, topic, k)
    return replace(found, notes=(*notes, *found.notes))


def _without_library(facts: Facts, topic: str | None, k: int) -> Coarsening:
    if topic == "postcode":
        return fitting_or_suppressed(facts, _postcode(facts))
    if (months := months_merged(facts)) is not None:
        return fitting_or_suppressed(facts, Coarsening(months))
    numbers = None if topic == "code" else facts.numbers
    if numbers is None:
        return fitting_or_suppressed(facts, _words(facts))
    if may_be_codes(facts, topic):
        amounts = facts.distinct > 2 and topic not in CODED_TOPICS
        return fitting_or_suppressed(facts, replace(_words(facts), notes=(AS_CODES,) if amounts else ()))
    spec = nested_intervals(numbers, facts.counts, topic, k)
    if spec is None:
        return Coarsening(SUPPRESS)
    return fitting_or_suppressed(
        facts, Coarsening(spec, notes=() if topic in NUMERIC_TOPICS else (PERHAPS_CODES,))
    )


def months_merged(facts: Facts) -> dict[str, Any] | None:
    """Groups of the twelve months by quarter and by half-year; None where a column does not hold months."""
    words = name_parts(facts.name)
    if (
        not (MONTH_WORDS & set(words) or any(word.endswith(MONTH_ENDS) for word in words))
        or not facts.complete
    ):
        return None
    months = [v for v in facts.values if v.isdecimal() and 1 <= int(v) <= 12]
    others = sorted(set(facts.values) - set(months))
    if len(months) < 3 or len(others) > 2:  # a few stand for "not known"
        return None
    digits = "02" if any(v.startswith("0") for v in months) else ""
    written = [format(month, digits) for month in range(1, 13)]
    levels = []
    for width in (3, 6):
        parts = [written[i : i + width] for i in range(0, 12, width)]
        levels.append({f"{p[0]}-{p[-1]}": p for p in parts} | ({"other values": others} if others else {}))
    return {"groups": levels}


def may_be_codes(facts: Facts, topic: str | None) -> bool:
    """Are the values whole numbers of which intervals may make no sense: few, or so called?"""
    whole = facts.numbers is not None and all(n == n.to_integral_value() for n in facts.numbers)
    if not whole or topic in NUMERIC_TOPICS or is_years(facts):
        return False
    named = topic in CODED_TOPICS or bool(CODED_WORDS & set(name_parts(facts.name)))
    return facts.distinct <= (MOST_CODES if named else CODES)


def ready_hierarchy(facts: Facts, topic: str | None) -> tuple[str | None, tuple[str, ...]]:
    """The ready hierarchy that knows every value of a column, and why it is believed; or what it does not know."""
    if not facts.complete or not facts.values:
        return None, ()
    for match in READY:
        confidence = match.confidence(facts, topic)
        if not confidence:
            continue
        entry = library_entry(match.name)
        labels = {v: entry.labels_of(v) for v in facts.values}
        known = sum(n for v, n in zip(facts.values, facts.counts, strict=True) if labels[v] is not None)
        if known == facts.present:
            if (
                match.name == "zip-us"
                and len({found[2] for found in labels.values() if found}) < SEVERAL_STATES
            ):
                continue
            why = "" if confidence == "high" else ", though its name does not say so: check it"
            what = f"the ready hierarchy {match.name} knows all {len(labels)} values ({entry.title})"
            return match.name, (f"{what}, confidence {confidence}{why}",)
        if confidence == "high" and known * 5 >= facts.present * 4:
            missed = sum(found is not None for found in labels.values())
            return None, (
                f"the ready hierarchy {match.name} knows {missed} of {len(labels)} values; say what the others mean "
                f"by `spellings` under prepare, and write {{library: {match.name}}}",
            )
    return None, ()


def _words(facts: Facts) -> Coarsening:
    """Texts without a ready hierarchy: bands, or the rare values merged first."""
    bands = _bands(facts)
    return Coarsening(bands if bands is not None else rare_values_merged(facts) or SUPPRESS)


def build_on_values(facts: Facts, spec: Any) -> Hierarchy:
    """The hierarchy on the values that were seen; refused with `HierarchyError` where it does not fit them."""
    builder = Column(role="quasi-identifier", hierarchy=spec).hierarchy
    assert builder is not None  # noqa: S101 - it was just given
    return builder.build(facts.name, facts.values, Path(), facts.tokens)


def fitting_or_suppressed(facts: Facts, suggestion: Coarsening) -> Coarsening:
    """The suggestion, or suppression where it does not fit the values."""
    try:
        build_on_values(facts, suggestion.hierarchy)
    except HierarchyError:
        note = "some values do not fit a better hierarchy than full suppression: clean them, or list them as missing"
        return Coarsening(SUPPRESS, notes=(*suggestion.notes, note))
    return suggestion


def without_exact(facts: Facts, suggestion: Coarsening) -> Coarsening:
    """The guess with every level allowed but the exact values.

    By name: a level that is not there in other data is then refused, and no finer one takes its number.
    """
    return replace(
        suggestion,
        levels=tuple(level.name for level in build_on_values(facts, suggestion.hierarchy).levels[1:]),
    )


def date_parts(facts: Facts, *, birth: bool, parts: tuple[str, ...] = ()) -> Coarsening:
    """Parts of a date, with the format in which the column writes dates, if it is not the usual one."""
    parts = parts or (
        ("month", "quarter", "year", "decade") if birth else ("week", "month", "quarter", "year")
    )
    spec: dict[str, Any] = {"dates": list(parts)}
    if facts.kind in ("date", "timestamp"):
        return Coarsening(spec)
    fitting = [form for form in FORMATS if all(_is_written(value, form) for value in facts.values)]
    if not fitting or fitting[0].startswith("%Y-%m-%d"):
        return Coarsening(spec)
    spec["format"] = fitting[0]
    swapped = DAY_OR_MONTH_FIRST.get(fitting[0][:5])
    if swapped and any(form.startswith(swapped) for form in fitting):
        return Coarsening(spec, notes=("day or month may come first in every value: check the format",))
    return Coarsening(spec)


def _is_written(value: str, form: str) -> bool:
    try:
        datetime.strptime(value, form)
    except ValueError:
        return False
    return True


def _postcode(facts: Facts) -> Coarsening:
    if facts.looks_like == "UK postcodes":
        return Coarsening({"mask": "right", "by": ["2", "3", "5"]})
    return Coarsening({"mask": "right"}, notes=_lost_zeros(facts))


def _lost_zeros(facts: Facts) -> tuple[str, ...]:
    if facts.kind != "integer" or len({len(v) for v in facts.values}) < 2:
        return ()
    return ("read as numbers of different lengths: leading zeros may be lost; store postcodes as text",)


def nested_intervals(
    numbers: list[Decimal], counts: tuple[int, ...], topic: str | None, k: int
) -> dict[str, Any] | None:
    """Intervals of three nested widths, open where an end of the scale is sparse; None for too short a range."""
    rows = sorted(zip(numbers, counts, strict=True))
    enough = max(k, sum(counts) // SPARSE)
    low, high = _trimmed(rows, enough)
    widths = _widths(high - low, all(n == n.to_integral_value() for n in numbers), topic)
    if not widths:
        return None
    spec: dict[str, Any] = {"intervals": [plain_number(w) for w in widths]}
    below, above = _sparse_ends(rows, widths[0], enough)
    if below is not None:
        spec["below"] = plain_number(below)
    if above is not None:
        spec["above"] = plain_number(above)
    return spec


def plain_number(number: Decimal) -> str:
    """A number as people write it: 5, 0.5, 1000."""
    return format(number.normalize() + 0, "f")


def _trimmed(rows: list[tuple[Decimal, int]], enough: int) -> tuple[Decimal, Decimal]:
    """The range without the few lowest and highest rows, which would make every interval too wide."""
    total = sum(count for _, count in rows)
    running = list(accumulate(count for _, count in rows))
    skip = min(enough, total // 20)
    low = next(n for (n, _), seen in zip(rows, running, strict=True) if seen > skip)
    high = next(n for (n, _), seen in zip(rows, running, strict=True) if seen >= total - skip)
    return low, high


def _widths(span: Decimal, whole: bool, topic: str | None) -> list[Decimal]:
    """w, 2w, 4w: about sixteen intervals of the first width, at least two of the last."""
    if span <= 0:
        return []
    if topic in ("age", "birth-year") and span >= 20:
        return [Decimal(5), Decimal(10), Decimal(20)]
    first = round_number(span / 16)
    if whole:
        first = max(first, Decimal(2))
    return [w for w in (first, 2 * first, 4 * first) if w * 2 <= span]


def round_number(number: Decimal) -> Decimal:
    """The least of 1, 2, 5, 10, 20, 50 … (or 0.5, 0.2, 0.1 …) that is at least `number`."""
    power = Decimal(1).scaleb(number.adjusted())
    return next(step * power for step in map(Decimal, (1, 2, 5, 10)) if step * power >= number)


def _sparse_ends(
    rows: list[tuple[Decimal, int]], width: Decimal, enough: int
) -> tuple[Decimal | None, Decimal | None]:
    """Where to lump the lowest and the highest values together, so that each end holds enough rows."""
    cells: dict[Decimal, int] = {}
    for number, count in rows:
        start = (number / width).to_integral_value(ROUND_FLOOR) * width
        cells[start] = cells.get(start, 0) + count
    starts = sorted(cells)
    below = above = None
    if cells[starts[0]] < enough:
        below = _first_with(enough, starts, cells)
    if cells[starts[-1]] < enough:
        above = _first_with(enough, starts[::-1], cells)
    below = None if below is None else below + width
    if below is not None and above is not None and above - below < 2 * width:
        return None, None
    return (
        below if below is not None and below <= starts[-1] else None,
        above if above is not None and above > starts[0] else None,
    )


def _first_with(enough: int, starts: list[Decimal], cells: dict[Decimal, int]) -> Decimal | None:
    seen = accumulate(cells[start] for start in starts)
    return next((start for start, rows in zip(starts, seen, strict=True) if rows >= enough), None)


_BAND = re.compile(r"(?P<low>\d{1,4})\s*(?:-|–|to|bis|à)\s*(?P<high>\d{1,4})|(?:<|<=|≤)\s*(?P<under>\d{1,4})|"
                   r"(?:>|>=|≥)\s*(?P<over>\d{1,4})|(?P<plus>\d{1,4})\s*\+")  # fmt: skip


def _bands(facts: Facts) -> dict[str, Any] | None:
    """Ready-made bands ("20-29", "80+"): neighbours are merged two by two, then four by four."""
    found = {value: _BAND.fullmatch(value) for value in facts.values}
    if not facts.complete or not 4 <= len(found) <= 60 or not all(found.values()):
        return None
    order = sorted(found, key=lambda v: _position(found[v]))
    levels: list[dict[str, list[str]]] = []
    size = 2
    while len(order) / size > 1.5 and len(levels) < 2:
        runs = [order[i : i + size] for i in range(0, len(order), size)]
        levels.append({_band_name([found[v] for v in run]): run for run in runs})
        size *= 2
    return {"groups": levels}


def _band_name(run: list[re.Match[str] | None]) -> str:
    first, last = run[0], run[-1]
    if first is None or last is None or first is last:
        return first.string if first else ""
    if first["low"] and last["high"]:
        return f"{first['low']}-{last['high']}"
    if first["low"] and last["plus"]:
        return f"{first['low']}+"
    return f"{first.string} … {last.string}"


def _position(band: re.Match[str] | None) -> tuple[int, int]:
    if band is None:
        return (0, 0)
    if band["under"]:
        return (0, int(band["under"]))
    return (1, int(band["low"] or band["over"] or band["plus"]))
