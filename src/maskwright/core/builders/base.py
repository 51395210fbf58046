"""What all builders of hierarchies share: values as canonical text, their order, and their coverage."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Container, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema

from maskwright.core.exact import text_of, to_fraction
from maskwright.core.hierarchy import Hierarchy
from maskwright.core.settings import Settings, shown
from maskwright.errors import HierarchyError

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
MAX_NUMBER_LENGTH = 400  # a double needs 309 digits at most; longer texts are no measurements


class Builder(Settings):
    """One way to write a hierarchy in a policy."""

    model_config = ConfigDict(defer_build=True)  # a policy compiles them all together; alone, on first use

    def build(
        self,
        attribute: str,
        values: Sequence[str],
        folder: Path,
        missing: Collection[str],
        order: Sequence[str] | None = None,
    ) -> Hierarchy:
        """The hierarchy of a column.

        Args:
            attribute: the column's name.
            values: the distinct canonical texts found in the data, without missing ones.
            folder: where relative files are looked up.
            missing: the texts that mean missing; they never become ground values.
            order: the column's values from lowest to highest, where the policy declares it.
        """
        raise NotImplementedError


def canonical(value: Any) -> str:
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
    raise ValueError(f"{shown(value)} is not a value; write text or a number")


Value = Annotated[
    str, BeforeValidator(canonical), WithJsonSchema({"type": ["string", "number", "boolean"]})
]  # fmt: skip


def number(text: str) -> int | Fraction | None:
    """The exact number that a text writes, or None ("nan", "inf", "1/4" and "12a" are none)."""
    if len(text) > MAX_NUMBER_LENGTH or not _NUMBER.fullmatch(text):
        return None
    return int(text) if text.isdecimal() else Fraction(text)


def arrange(
    attribute: str, values: Iterable[str], order: Sequence[str] | None = None
) -> tuple[tuple[str, ...], bool]:
    """Ground values in their order, and whether that order means something (declared, or all numbers)."""
    distinct = sorted(set(values))
    if order is not None:
        position = _positions(attribute, order)
        check_covered(attribute, distinct, position, "the order", "add them to `order`")
        return tuple(sorted(distinct, key=position.__getitem__)), True
    numbers = {text: number(text) for text in distinct}
    if distinct and all(x is not None for x in numbers.values()):
        return tuple(sorted(distinct, key=lambda text: numbers[text])), True  # type: ignore[arg-type,return-value]
    return tuple(distinct), False


def _positions(attribute: str, order: Sequence[str]) -> dict[str, int]:
    position: dict[str, int] = {}
    for text in map(canonical, order):
        if text in position:
            raise HierarchyError(f"column {attribute!r}: the order lists {shown(text)} twice; list it once")
        position[text] = len(position)
    return position


def check_covered(
    attribute: str, values: Iterable[str], known: Container[str], where: str, remedy: str
) -> None:
    """Refuse values that `where` does not list: name up to three, and say what to do."""
    absent = [value for value in values if value not in known]
    if absent:
        names = ", ".join(shown(value) for value in absent[:3])
        more = f" and {len(absent) - 3} more" if len(absent) > 3 else ""
        raise HierarchyError(f"column {attribute!r}: {where} does not list {names}{more}; {remedy}")


def refuse_order(attribute: str, order: Sequence[str] | None, kind: str) -> None:
    """Numbers and dates have an order already; a second one could only contradict it."""
    if order is not None:
        raise HierarchyError(f"column {attribute!r}: {kind} have their own order; remove `order`")


def finish(
    attribute: str,
    values: Sequence[str],
    levels: Sequence[tuple[str, Sequence[str]]],
    missing: Collection[str],
    *,
    ordered: bool,
    chain: bool = True,
) -> Hierarchy:
    """The hierarchy, once no label could be mistaken for a missing value."""
    for name, labels in levels:
        for bad in {"", *missing}.intersection(labels):
            at = values[list(labels).index(bad)]
            raise HierarchyError(
                f"column {attribute!r}: the label {bad!r} of {shown(at)} at level {name!r} reads as missing; "
                "give it another label"
            )
    return Hierarchy.of(attribute, values, levels, chain=chain, ordered=ordered)


def listed(value: Any) -> Any:
    """One entry may stand for a list of one."""
    return value if isinstance(value, (list, tuple)) else [value]


Domain = Annotated[
    tuple[Value, ...], BeforeValidator(listed), PlainSerializer(list, return_type=list[str])
]  # fmt: skip


def declared(
    attribute: str, values: Sequence[str], domain: Sequence[str] | None, missing: Collection[str]
) -> Sequence[str]:
    """The ground values: the declared domain, which must cover the data, or else what the data holds."""
    if domain is None:
        return values
    ground = dict.fromkeys(v for v in domain if v and v not in missing)
    check_covered(attribute, values, ground, "the domain", "add them to `domain`, or declare them as missing")
    return list(ground)
