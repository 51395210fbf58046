"""Messy columns: what is wrong with the values of a column, and the `prepare` section that makes them plain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from maskwright.domain.exact import text_of
from maskwright.prepare import Preparation
from maskwright.prepare.date_formats import date_formats
from maskwright.prepare.digits import lost_zeros
from maskwright.prepare.lists import list_cells
from maskwright.prepare.numbers import number_format
from maskwright.prepare.spellings import spellings_found
from maskwright.suggest.profile import MISSING, PERHAPS_MISSING, ColumnProfile, Facts
from maskwright.suggest.roles import NUMERIC_TOPICS, looks_identifying
from maskwright.suggest.topics import name_topic

# Words that stand in for a number or a date where somebody had to write something.
NO_ANSWER = frozenset(
    ("unk", "n.k.", "nk", "refused", "declined", "not known", "not available", "not applicable", "no answer",
     "keine angabe", "tbd", "pending", "nil", "x", "xx", "xxx", "...", "*")
)  # fmt: skip
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True)
class Mess:
    """What is done to a messy column, and what to check by hand."""

    column: str
    steps: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()  # of the texts in `missing`, those that mean it in any column
    gone: int = 0  # rows with the others

    @property
    def preparation(self) -> Preparation:
        """The steps as settings."""
        return Preparation.model_validate(self.steps)

    @property
    def written(self) -> dict[str, Any]:
        """The steps as the policy writes them: texts that mean missing in any column stand elsewhere."""
        own = [text for text in self.steps.get("missing", ()) if text not in self.tokens]
        others = {key: value for key, value in self.steps.items() if key != "missing"}
        return {**({"missing": own} if own else {}), **others}


@dataclass(frozen=True)
class Length:
    """A length that can be published in place of dates: its column, what it is computed from, and why."""

    column: str
    dates: tuple[str, ...]
    between: Mapping[str, Any]
    widths: tuple[int, ...]
    why: str

    @property
    def note(self) -> str:
        """What is said beside the last of the dates."""
        lines = "the # before its two lines (under prepare and under columns)"
        place = "in its place" if len(self.dates) == 1 else "in their place"
        instead = f"put one before {' and before '.join(self.dates)}"
        return f"{self.why}; to publish {self.column} {place}, take away {lines} and {instead}"


def find_mess(facts: Facts) -> Mess | None:
    """What is wrong with a column; None where nothing is, or where it is not to be published anyway."""
    topic = name_topic(facts.name)
    key = topic.key if topic else None
    if not facts.values or looks_identifying(facts):
        return None
    values = dict(zip(facts.values, facts.counts, strict=True))
    found = _codes(facts, values) if key == "postcode" else None
    if key != "postcode" and facts.kind == "text":
        found = _dates(facts, values, key) or _numbers(facts, values, key) or _words(facts, values, key)
    if found is None:
        return None
    gone = sum(values.get(text, 0) for text in found.steps.get("missing", ()))
    return replace(found, tokens=facts.tokens, gone=gone)


def lengths_on_offer(profiles: Sequence[ColumnProfile], facts: Sequence[Facts]) -> list[Length]:
    """What could be published in place of days: an age for a date of birth, the time between two other dates."""
    days = [
        (p, min(f.values), max(f.values))
        for p, f in zip(profiles, facts, strict=True)
        if p.role == "quasi-identifier" and f.values and all(_DAY.match(v) for v in f.values[:100])
    ]
    born = next((p.name for p, _, _ in days if p.topic == "birth-date"), None)
    others = sorted((first, last[:10], p.name) for p, first, last in days if p.name != born)
    taken, offers = {p.name for p in profiles}, list[Length]()
    if born is not None and others and "age" not in taken:
        last_day = max(last for _, last, _ in others)
        why = f"an age reveals less than {born}; it is counted on the last day in the table"
        offers.append(
            Length("age", (born,), {"from": born, "to": last_day, "unit": "years"}, (5, 10, 20), why)
        )
    if len(others) == 2 and "days" not in taken:
        start, end = (name for _, _, name in others)
        why = f"if something lasted from {start} to {end}, its length reveals less than the two dates"
        offers.append(Length("days", (start, end), {"from": start, "to": end}, (7, 28), why))
    return offers


def _codes(facts: Facts, values: Mapping[str, int]) -> Mess | None:
    found = lost_zeros(values)
    if found is None:
        return None
    steps: dict[str, Any] = {"digits": found.width}
    if found.suffix == "drop":
        steps["digits"] = {"width": found.width, "suffix": "drop"}
    return Mess(facts.name, {**steps, "otherwise": "missing"})


def _dates(facts: Facts, values: Mapping[str, int], key: str | None) -> Mess | None:
    """Dates in several formats, or with words among them."""
    rest, gone = _without_words(values)
    found = (
        date_formats(rest, birth=key == "birth-date") if any(map(str.isdigit, "".join(rest)[:200])) else None
    )
    if found is None or (len(found.setting.formats) == 1 and len(rest) == len(values)):
        return None
    if all(v.isdigit() for v in rest):
        return None  # numbers of eight digits
    options = found.setting.options()
    notes: tuple[str, ...] = ()
    if found.unclear:
        notes = (
            f"in {found.unclear:,} rows day and month could be exchanged, and both orders occur: they become missing; "
            "where the order is known, remove the other format",
        )
    for form, rows in found.other_order.items():
        exchanged = form.translate(str.maketrans("dm", "md"))
        notes += (
            f"{rows:,} rows are read as {form} and could be {exchanged} as well, which no row is for certain",
        )
    return Mess(facts.name, _steps({"dates": options}, _with_tokens(facts, gone)), notes)


def _numbers(facts: Facts, values: Mapping[str, int], key: str | None) -> Mess | None:
    """Numbers with signs, separators or units, or with words among them."""
    rest, gone = _without_words(values)
    padded = any(len(v) > 1 and v[0] == "0" and v.isdigit() for v in rest)
    if (padded and key not in NUMERIC_TOPICS) or any(_has_exponent(v) for v in rest):
        return None
    found = number_format(values if len(rest) == len(values) else rest)
    if found is None:
        if len(rest) == len(values) or facts_of(facts, rest).numbers is None:
            return None
        return Mess(facts.name, _steps({"numbers": {}}, _with_tokens(facts, gone)))
    form, either = found
    options: dict[str, Any] = form.options()
    if form.units:
        options["units"] = {unit: text_of(factor) for unit, factor in form.units.items()}
    if not options and len(rest) == len(values) and all(not v.strip("0123456789.+-") for v in rest):
        return None
    notes = []
    if either:
        mark = form.thousands[0] if form.thousands else ""
        notes.append(
            f"in {either:,} rows the only mark may stand before decimals or between thousands"
            + (f"; {mark!r} is taken to stand between thousands" if mark in (".", ",") else "")
        )
    if len(form.units) > 1:
        notes.append("several units: numbers without one count as they are; check the factors")
    return Mess(facts.name, _steps({"numbers": options}, _with_tokens(facts, gone)), tuple(notes))


def _words(facts: Facts, values: Mapping[str, int], key: str | None) -> Mess | None:
    """Spellings of one value, missing in several spellings, and lists in cells."""
    if facts.near_unique or not facts.complete or facts.looks_like is not None:
        return None
    gone = sorted(v for v in values if v.casefold() in PERHAPS_MISSING)
    steps: dict[str, Any] = {}
    if len(gone) + len(facts.tokens) > 1 and gone:
        steps["missing"] = gone
    rest = {v: n for v, n in values.items() if v not in steps.get("missing", ())}
    if (several := list_cells(rest)) is not None:
        first = several.separators[0]
        cells = sum(n for v, n in rest.items() if any(mark in v for mark in several.separators))
        note = (
            f"{cells:,} cells hold several values; of a sensitive column write multivalued: {first!r}, so that each "
            "counts by itself, or keep one of them: lists: {separators: [...], keep: first}"
        )
        if len(several.separators) > 1:
            steps["lists"] = {"separators": list(several.separators)}
        return Mess(facts.name, steps, (note,))
    found = spellings_found(rest)
    if found:
        steps["spellings"] = {value: list(others) for value, others in found.items()}
    return Mess(facts.name, steps) if steps else None


def _with_tokens(facts: Facts, gone: Sequence[str]) -> list[str]:
    """Words that mean missing, with the texts that mean it in any column: they are not what fits nothing."""
    return sorted({*gone, *facts.tokens})


def _steps(kind: Mapping[str, Any], gone: list[str]) -> dict[str, Any]:
    """The steps with the words that mean missing; whatever else does not fit counts as missing too, and is counted."""
    return {**({"missing": gone} if gone else {}), **kind, "otherwise": "missing"}


def _without_words(values: Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
    """The values without words that mean missing among numbers or dates, and those words."""
    gone = sorted(v for v in values if v.casefold() in MISSING | PERHAPS_MISSING | NO_ANSWER)
    return {v: n for v, n in values.items() if v not in gone}, gone


def facts_of(facts: Facts, values: Mapping[str, int]) -> Facts:
    """The facts of a column with some values only."""
    return replace(facts, values=tuple(values), counts=tuple(values.values()))


def _has_exponent(value: str) -> bool:
    mantissa, _, power = value.lower().partition("e")
    return bool(power) and mantissa[-1:].isdigit() and power.lstrip("+-").isdigit()
