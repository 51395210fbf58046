"""How many worlds are counted one by one before the exact computation is refused, and checks of its input."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from maskwright.errors import UsageError

WORLDS = 2_000_000


class TooManyWorlds(UsageError):  # noqa: N818 - the caller may sample instead
    """The exact computation would take too long."""


def refuse_beyond(count: int, limit: int = WORLDS) -> None:
    """Raise `TooManyWorlds` when there is more to count than is reasonable."""
    if count > limit:
        shown = str(count) if count < 10**15 else f"about 10^{len(str(count)) - 1}"
        raise TooManyWorlds(
            f"{shown} possible worlds are too many to count one by one (limit {limit}); sample"
        )


def whole_numbers(name: str, values: Sequence[int], least: int = 0) -> None:
    """Refuse a list that is not made of integers of at least `least`."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{name}: {value!r} is not a whole number of at least {least}")


def positive_fraction(name: str, value: Fraction | int) -> Fraction:
    """The value as a fraction; refused unless it is above 0."""
    if value <= 0:
        raise UsageError(f"{name} is {value}; it must be greater than 0")
    return Fraction(value)


def share_fraction(name: str, value: Fraction | int) -> Fraction:
    """The value as a fraction; refused unless it lies between 0 and 1."""
    if not 0 <= value <= 1:
        raise UsageError(f"{name} is {value}; it must lie between 0 and 1")
    return Fraction(value)
