"""The profile of a column: how many different values, how many missing, and what the values look like."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from maskwright.engines.base import ColumnInfo, Domain, Engine, Kind, Table
from maskwright.identifiers.detection import Detection, detect_identifier, spread_sample
from maskwright.policy.policy import Role

# At most so many values of a column are looked at; beyond, the engine only counts them.
DOMAIN_LIMIT = 5000
# A column is near-unique when it has at least so many different values per row, or so many rows of their own.
NEAR_UNIQUE = Fraction(8, 10)
MOSTLY_SINGLE = Fraction(1, 2)
LABELS = 50  # so many different sentences can be the labels of a category

# Texts that mean missing wherever they stand, and texts that may mean it.
MISSING = frozenset({"?", "na", "n/a", "n.a.", "null", "nan", "#n/a", "<na>", ".", "-", "--"})
PERHAPS_MISSING = frozenset(
    (
        "unknown",
        "unbekannt",
        "inconnu",
        "desconocido",
        "missing",
        "none",
        "not stated",
        "unspecified",
        "k.a.",
        "n.d.",
    )
)
PERHAPS_CODES = frozenset(("-1", "-9", "-99", "-999", "99", "999", "9999"))
# Answers that were not given, and days that stand for one that nobody knows.
NOT_GIVEN = frozenset(
    ("refused", "declined", "no answer", "not available", "not applicable", "not known", "prefer not to say",
     "keine angabe")
)  # fmt: skip
NO_DAY = frozenset(
    ("0001-01-01", "1800-01-01", "1899-12-30", "1899-12-31", "1900-01-01", "1901-01-01", "1970-01-01", "2999-12-31",
     "9999-12-31")
)  # fmt: skip
NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,2})?")


@dataclass(frozen=True)
class Facts:
    """What was seen of a column. `values` and `counts` leave missing tokens out."""

    name: str
    kind: Kind
    rows: int
    values: tuple[str, ...]
    counts: tuple[int, ...]
    complete: bool  # `values` are all there are
    distinct: int
    missing: int  # rows without a value, tokens included
    unique_rows: int  # rows whose value nobody else has
    tokens: tuple[str, ...]  # texts found that mean missing
    perhaps: tuple[str, ...]  # texts found that may mean missing

    @property
    def present(self) -> int:
        """The number of rows with a value."""
        return self.rows - self.missing

    @property
    def unique_share(self) -> Fraction:
        """The share of those rows whose value nobody else has."""
        return Fraction(self.unique_rows, self.present) if self.present else Fraction(0)

    @property
    def near_unique(self) -> bool:
        """Does nearly every row have a value of its own?"""
        if self.distinct < 2:
            return False
        return self.distinct >= NEAR_UNIQUE * self.present or self.unique_share > MOSTLY_SINGLE

    @cached_property
    def numbers(self) -> list[Decimal] | None:
        """The values as numbers, in the order of `values`; None unless each of them is one."""
        if not self.values or not all(NUMBER.fullmatch(v) for v in self.values):
            return None
        return [Decimal(v) for v in self.values]

    @cached_property
    def looks_like(self) -> str | None:
        """The first pattern that at least 80 % of the values follow."""
        tried = spread_sample(self.values)
        if not tried:
            return None
        for name, fits in PATTERNS.items():
            if sum(map(fits, tried)) * 10 >= len(tried) * 8:
                return name
        return None

    @cached_property
    def identifier(self) -> Detection | None:
        """The direct identifier that the values are, by content alone."""
        return detect_identifier(self.values, self.near_unique or self.distinct > LABELS)


@dataclass(frozen=True)
class ColumnProfile:
    """A column as `init` sees it, with the guess and why.

    Attributes:
        name: the column.
        kind: text, integer, number, boolean, date, timestamp or other.
        distinct: different values, missing ones not counted.
        missing: rows without a value.
        unique_share: the share of rows whose value nobody else has.
        minimum: the least number (None for other columns, and for identifiers).
        maximum: the greatest number, likewise.
        role: the guess.
        reason: why, in words; never holds a value of an identifier.
        hierarchy: the suggested hierarchy, as the policy writes it.
        levels: the only levels allowed, where a preset restricts them.
        notes: what to check by hand.
        topic: what the column is about ("age", "postcode"), where that is known.
    """

    name: str
    kind: Kind
    distinct: int
    missing: int
    unique_share: Fraction
    minimum: str | None
    maximum: str | None
    role: Role
    reason: str
    hierarchy: Any = None
    levels: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    topic: str | None = None


def look_at_all(engine: Engine, table: Table, columns: Sequence[ColumnInfo], rows: int) -> Iterator[Facts]:
    """`look_at` each column; many small ones are read together."""
    found = engine.domains(table, [column.name for column in columns], limit=DOMAIN_LIMIT)
    return (look_at(engine, table, c, rows, domain) for c, domain in zip(columns, found, strict=True))


def look_at(
    engine: Engine, table: Table, column: ColumnInfo, rows: int, domain: Domain | None = None
) -> Facts:
    """One pass over a column, unless its values are given; a second one only where it has very many of them."""
    if domain is None:
        domain = engine.domain(table, column.name, limit=DOMAIN_LIMIT)
    values, counts, tokens, perhaps = [], [], [], []
    missing, lone_tokens = domain.missing, 0
    codes = _two_letter_codes(domain.values)
    for value, count in zip(domain.values, domain.counts, strict=True):
        word = value.casefold()
        if word in MISSING and not (codes and value.isalpha()):
            tokens.append(value)
            missing += count
            lone_tokens += count == 1
            continue
        if word in PERHAPS_MISSING | PERHAPS_CODES | MISSING | NOT_GIVEN or (
            word[:10] in NO_DAY and count > 1
        ):
            perhaps.append(value)
        values.append(value)
        counts.append(count)
    complete = len(domain.values) < DOMAIN_LIMIT
    distinct, unique_rows = len(values), sum(c == 1 for c in counts)
    if not complete:
        combinations, single, _ = engine.uniqueness(table, [column.name])
        # the engine counts missing, and what means missing, as combinations like any other
        distinct = combinations - len(tokens) - (domain.missing > 0)
        unique_rows = single - lone_tokens - (domain.missing == 1)
    return Facts(
        column.name, column.kind, rows, tuple(values), tuple(counts), complete, distinct, missing, unique_rows,
        tuple(tokens), _odd_ones(perhaps, values),
    )  # fmt: skip


def _two_letter_codes(values: Sequence[str]) -> bool:
    """Two-letter codes of countries or states, among which NA is Namibia."""
    return len(values) > 5 and all(len(v) == 2 and v.isalpha() for v in spread_sample(values))


def _odd_ones(perhaps: Sequence[str], values: Sequence[str]) -> tuple[str, ...]:
    """99 may mean missing only where it lies far from the other numbers."""
    words = [v for v in perhaps if not NUMBER.fullmatch(v)]
    numbers = sorted(Decimal(v) for v in values if NUMBER.fullmatch(v))
    if len(numbers) < 3:
        return tuple(words)
    low, high = numbers[0], numbers[-1]
    if str(high) in perhaps and high > 2 * abs(numbers[-2]):
        words.append(str(high))
    if str(low) in perhaps and low < 0 <= numbers[1]:
        words.append(str(low))
    return tuple(words)


_DATES = re.compile(
    r"(?P<y>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?"
    r"|(?P<a>\d{1,2})(?P<t>[-/.])(?P<b>\d{1,2})(?P=t)(?P<year>\d{4})(?:[ T]\d{2}:\d{2}(?::\d{2})?)?"
)


def is_date(text: str) -> bool:
    """A day of the calendar: 2024-01-31, 31.01.2024, 31/01/2024, 01/31/2024 (a time may follow)."""
    found = _DATES.fullmatch(text)
    if found is None:
        return False
    if found["y"]:
        return _exists(found["y"], found["m"], found["d"])
    return _exists(found["year"], found["b"], found["a"]) or _exists(found["year"], found["a"], found["b"])


def _exists(year: str, month: str, day: str) -> bool:
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return False
    return True


def _fits(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


PATTERNS: dict[str, Callable[[str], bool]] = {
    "keys or hashes": _fits(r"(?i)[0-9a-f]{32,128}"),
    "dates": is_date,
    "UK postcodes": _fits(r"(?i)[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}"),
    "ZIP codes": _fits(r"\d{5}(?:-\d{4})"),
    "ICD-10 codes": _fits(r"[A-TV-Z]\d[0-9AB](?:\.[0-9A-Z]{1,4})?"),
}
