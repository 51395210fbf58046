"""Intervals [a, b) of numbers, by widths or cut points: a value on a boundary belongs to the upper one."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from maskwright.domain.exact import Exact, short_repr, text_of, to_fraction
from maskwright.domain.missing_values import missing_texts
from maskwright.domain.value_labels import interval_label
from maskwright.domain.values import check_covered, number_of_text
from maskwright.errors import HierarchyError
from maskwright.hierarchies.builder import Builder, Ladder, refuse_order

MAX_LEVELS = 30
MAX_CUTS = 10_000
MAX_DOMAIN = 1_000_000

Entry = Fraction | tuple[Fraction, ...]  # a width, or cut points


def _entries(value: Any) -> tuple[Entry, ...]:
    items = value if isinstance(value, (list, tuple)) else [value]
    if not 0 < len(items) <= MAX_LEVELS:
        raise ValueError(f"{len(items)} levels of intervals; give between 1 and {MAX_LEVELS}")
    return tuple(_cuts(item) if isinstance(item, (list, tuple)) else _width(item) for item in items)


def _exact(value: Any) -> Fraction:
    if isinstance(value, (list, tuple, Mapping)):
        raise ValueError(f"{short_repr(value)} is not a number")  # noqa: TRY004
    return to_fraction(value)


def _width(value: Any) -> Fraction:
    width = _exact(value)
    if width <= 0:
        raise ValueError(f"the width {text_of(width)} is not positive")
    return width


def _cuts(value: Sequence[Any]) -> tuple[Fraction, ...]:
    cuts = tuple(_exact(item) for item in value)
    if not 0 < len(cuts) <= MAX_CUTS:
        raise ValueError(f"{len(cuts)} cut points; give between 1 and {MAX_CUTS}")
    for a, b in pairwise(cuts):
        if a >= b:
            raise ValueError(f"cut points must ascend, but {text_of(b)} follows {text_of(a)}")
    return cuts


def _dump(entries: tuple[Entry, ...]) -> list[Any]:
    return [[text_of(c) for c in e] if isinstance(e, tuple) else text_of(e) for e in entries]


def _range(value: Any) -> tuple[int, int]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(
            f"{short_repr(value)} is not a range; write the lowest and the highest number, [0, 120]"
        )
    low, high = (_exact(item) for item in value)
    if low.denominator != 1 or high.denominator != 1 or low > high:
        raise ValueError(f"[{text_of(low)}, {text_of(high)}] is not an ascending range of whole numbers")
    if high - low >= MAX_DOMAIN:
        raise ValueError(
            f"[{text_of(low)}, {text_of(high)}] has more than {MAX_DOMAIN} values; leave `domain` out"
        )
    return int(low), int(high)


_NUMBER_SCHEMA = {"type": ["number", "string"]}
Entries = Annotated[
    tuple[Entry, ...],
    PlainValidator(_entries),
    PlainSerializer(_dump, return_type=list[Any]),
    WithJsonSchema(
        {"type": "array", "items": {"anyOf": [_NUMBER_SCHEMA, {"type": "array", "items": _NUMBER_SCHEMA}]}}
    ),
]
Range = Annotated[
    tuple[int, int],
    PlainValidator(_range),
    PlainSerializer(list, return_type=list[int]),
    WithJsonSchema({"type": "array", "items": _NUMBER_SCHEMA, "minItems": 2, "maxItems": 2}),
]


class Intervals(Builder):
    """Intervals of numbers, each level coarser than the one before."""

    intervals: Entries = Field(description="per level a width (5), or a list of cut points ([18, 40, 65])")
    origin: Exact = Field(Fraction(0), description="a boundary of every width")
    below: Exact | None = Field(None, description="bottom coding: smaller values are published as '<20'")
    above: Exact | None = Field(None, description="top coding: this and larger values are published as '≥80'")
    domain: Range | None = Field(
        None, description="[lowest, highest] possible whole number; default: the values in the data"
    )

    @model_validator(mode="after")
    def _ends(self) -> Intervals:
        below, above = self.below, self.above
        if below is not None and above is not None and below >= above:
            raise ValueError(f"below ({text_of(below)}) must be smaller than above ({text_of(above)})")
        for cut in (c for entry in self.intervals if isinstance(entry, tuple) for c in entry):
            if (below is not None and cut < below) or (above is not None and cut > above):
                raise ValueError(f"the cut point {text_of(cut)} lies outside `below` and `above`")
        return self

    def ladder(
        self,
        attribute: str,
        values: Sequence[str],
        folder: Path,
        missing: Collection[str],
        order: Sequence[str] | None = None,
    ) -> Ladder:
        """Label every number by its interval at each level."""
        refuse_order(attribute, order, "numbers")
        self._check_nesting(attribute)
        numbers = self._numbers(attribute, values, missing)
        ground = sorted(numbers, key=numbers.__getitem__)
        levels = _Scaled(self, numbers).levels(ground)
        return Ladder(ground, levels, True)

    def _numbers(
        self, attribute: str, values: Sequence[str], missing: Collection[str]
    ) -> dict[str, int | Fraction]:
        """The ground values with the numbers they write."""
        numbers: dict[str, int | Fraction] = {}
        for text in values:
            x = number_of_text(text)
            if x is None:
                raise HierarchyError(
                    f"column {attribute!r}: {short_repr(text)} is not a number, so it lies in no interval; "
                    "correct it, declare it as missing, or use `groups`, `tree` or `file`"
                )
            numbers[text] = x
        if self.domain is None:
            return numbers
        (low, high), absent = self.domain, missing_texts(missing)
        ground = {str(i): i for i in range(low, high + 1) if str(i) not in absent}
        where = f"the domain [{low}, {high}]"
        check_covered(attribute, values, ground, where, "widen `domain`, or declare them as missing")
        return dict(ground)

    def _check_nesting(self, attribute: str) -> None:
        """Every boundary of a level must be one of the level below it, whatever values the data holds."""
        ends = {end for end in (self.below, self.above) if end is not None}
        for finer, coarser in pairwise(self.intervals):
            if isinstance(finer, Fraction):
                if isinstance(coarser, Fraction):
                    if coarser % finer:
                        raise HierarchyError(
                            f"column {attribute!r}: intervals of {text_of(finer)} do not nest in intervals "
                            f"of {text_of(coarser)}; make {text_of(coarser)} a multiple of {text_of(finer)}"
                        )
                    continue
                stray = [c for c in coarser if c not in ends and (c - self.origin) % finer]
            else:
                boundaries = coarser if isinstance(coarser, tuple) else self._multiples(coarser, len(finer))
                known = ends.union(finer)
                stray = [c for c in boundaries if c not in known]
            if stray:
                raise HierarchyError(
                    f"column {attribute!r}: {_name(coarser)} has the boundary {text_of(stray[0])}, which the "
                    f"finer level {_name(finer)} does not have; add it there, or remove it above"
                )

    def _multiples(self, width: Fraction, n_cuts: int) -> Iterable[Fraction]:
        """Boundaries of a width between the ends, enough of them to show one that is not among `n_cuts`."""
        start = self.above if self.below is None else self.below
        first = 0 if start is None else math.ceil((start - self.origin) / width)
        step = -1 if self.below is None and self.above is not None else 1
        for i in range(n_cuts + 3):
            boundary = self.origin + (first + step * i) * width
            if self.below is not None and self.above is not None and boundary > self.above:
                return
            if self.above is None or boundary <= self.above:
                yield boundary


def _name(entry: Entry) -> str:
    if isinstance(entry, Fraction):
        return f"width {text_of(entry)}"
    some = ", ".join(text_of(c) for c in entry[:4])
    return f"cut at {some}" if len(entry) <= 4 else f"cut at {some} and {len(entry) - 4} more"


class _Scaled:
    """Intervals in integers: every number times the common denominator."""

    def __init__(self, spec: Intervals, numbers: Mapping[str, int | Fraction]) -> None:
        cuts = [c for entry in spec.intervals for c in (entry if isinstance(entry, tuple) else (entry,))]
        settings = [spec.origin, *cuts, *(end for end in (spec.below, spec.above) if end is not None)]
        denominators = {x.denominator for x in numbers.values()} | {x.denominator for x in settings}
        self.spec = spec
        self.unit = math.lcm(*denominators)
        self.numbers = {text: self.scale(x) for text, x in numbers.items()}
        self.origin = self.scale(spec.origin)
        self.below = None if spec.below is None else self.scale(spec.below)
        self.above = None if spec.above is None else self.scale(spec.above)

    def scale(self, x: int | Fraction) -> int:
        """The integer that a number becomes."""
        return x.numerator * (self.unit // x.denominator)

    def levels(self, ground: Sequence[str]) -> list[tuple[str, list[str]]]:
        """The name of each level, and the label of every ground value at it."""
        return [(_name(entry), self._labels(entry, ground)) for entry in self.spec.intervals]

    def _labels(self, entry: Entry, ground: Sequence[str]) -> list[str]:
        known: dict[tuple[int | None, int | None], str] = {}
        find = self._between(entry) if isinstance(entry, tuple) else self._wide(self.scale(entry))
        bounds = [find(self.numbers[text]) for text in ground]
        for pair in set(bounds):
            low, high = (None if end is None else Fraction(end, self.unit) for end in pair)
            known[pair] = interval_label(low, high, self.unit == 1)
        return [known[pair] for pair in bounds]

    def _wide(self, width: int) -> Any:
        below, above, origin = self.below, self.above, self.origin

        def _find(x: int) -> tuple[int | None, int | None]:
            if below is not None and x < below:
                return None, below
            if above is not None and x >= above:
                return above, None
            low = x - (x - origin) % width
            high = low + width
            return (
                low if below is None else max(low, below),
                high if above is None else min(high, above),
            )

        return _find

    def _between(self, cuts: tuple[Fraction, ...]) -> Any:
        ends = [end for end in (self.below, self.above) if end is not None]
        inner = sorted({*(self.scale(c) for c in cuts), *ends})
        edges: list[int | None] = [None, *inner, None]

        def _find(x: int) -> tuple[int | None, int | None]:
            i = bisect_right(inner, x)
            return edges[i], edges[i + 1]

        return _find
