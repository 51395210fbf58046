"""Values as canonical text: how they are written, which texts are numbers, and the order of a column's values."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from maskwright.domain.exact import short_repr, text_of, to_fraction
from maskwright.errors import HierarchyError

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


MAX_NUMBER_LENGTH = 400  # a double needs 309 digits at most; longer texts are no measurements


def canonical_text(value: Any) -> str:
    """A value written in a policy, as the engines would print it: 39, 0.5, true, 2024-01-31, text."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (int, Fraction)) or (isinstance(value, Decimal) and value.is_finite()):
        return text_of(to_fraction(value))
    raise ValueError(f"{short_repr(value)} is not a value; write text or a number")


Value = Annotated[
    str, BeforeValidator(canonical_text), WithJsonSchema({"type": ["string", "number", "boolean"]})
]  # fmt: skip


def number_of_text(text: str) -> int | Fraction | None:
    """The exact number that a text writes, or None ("nan", "inf", "1/4" and "12a" are none)."""
    if len(text) > MAX_NUMBER_LENGTH or not _NUMBER.fullmatch(text):
        return None
    return int(text) if text.isdecimal() else Fraction(text)


def arrange_values(
    attribute: str, values: Iterable[str], order: Sequence[str] | None = None
) -> tuple[tuple[str, ...], bool]:
    """Ground values in their order, and whether that order means something (declared, or all numbers)."""
    distinct = sorted(set(values))
    if order is not None:
        position = _positions(attribute, order)
        check_covered(attribute, distinct, position, "the order", "add them to `order`")
        return tuple(sorted(distinct, key=position.__getitem__)), True
    numbers = {text: number_of_text(text) for text in distinct}
    if distinct and all(x is not None for x in numbers.values()):
        return tuple(sorted(distinct, key=lambda text: numbers[text])), True  # type: ignore[arg-type,return-value]
    return tuple(distinct), False


def _positions(attribute: str, order: Sequence[str]) -> dict[str, int]:
    position: dict[str, int] = {}
    for text in map(canonical_text, order):
        if text in position:
            raise HierarchyError(
                f"column {attribute!r}: the order lists {short_repr(text)} twice; list it once"
            )
        position[text] = len(position)
    return position


def check_covered(
    attribute: str, values: Iterable[str], known: Container[str], where: str, remedy: str
) -> None:
    """Refuse values that `where` does not list: name up to three, and say what to do."""
    absent = [value for value in values if value not in known]
    if absent:
        names = ", ".join(short_repr(value) for value in absent[:3])
        more = f" and {len(absent) - 3} more" if len(absent) > 3 else ""
        raise HierarchyError(f"column {attribute!r}: {where} does not list {names}{more}; {remedy}")
