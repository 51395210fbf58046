"""What all builders of hierarchies share: values as canonical text, their order, and their coverage."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, PlainSerializer

from maskwright.domain.exact import short_repr
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.missing_values import missing_texts
from maskwright.domain.settings import Settings
from maskwright.domain.values import Value, check_covered
from maskwright.errors import HierarchyError


@dataclass(frozen=True, eq=False)
class Ladder:
    """What a builder makes of a column's values: their order, and one label for each of them at every level.

    Attributes:
        ground: the ground values in order.
        levels: (name, labels), finest first, without the exact level and the top.
        ordered: the order of the ground values means something.
        chain: each level is refined by the one before it.
    """

    ground: Sequence[str]
    levels: Sequence[tuple[str, Sequence[str]]]
    ordered: bool
    chain: bool = True


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
        """The hierarchy of a column: what `ladder` says of it, without levels that merge nothing in it."""
        made = self.ladder(attribute, values, folder, missing, order)
        _refuse_missing(attribute, made, missing)
        return Hierarchy.of(attribute, made.ground, made.levels, chain=made.chain, ordered=made.ordered)

    def ladder(
        self,
        attribute: str,
        values: Sequence[str],
        folder: Path,
        missing: Collection[str],
        order: Sequence[str] | None = None,
    ) -> Ladder:
        """The labels of every value at every level.

        Args:
            attribute: the column's name.
            values: the distinct canonical texts found in the data, without missing ones.
            folder: where relative files are looked up.
            missing: the texts that mean missing; they never become ground values.
            order: the column's values from lowest to highest, where the policy declares it.
        """
        raise NotImplementedError


def refuse_order(attribute: str, order: Sequence[str] | None, kind: str) -> None:
    """Numbers and dates have an order already; a second one could only contradict it."""
    if order is not None:
        raise HierarchyError(f"column {attribute!r}: {kind} have their own order; remove `order`")


def _refuse_missing(attribute: str, made: Ladder, missing: Collection[str]) -> None:
    """Refuse a label that could be mistaken for a missing value."""
    for name, labels in made.levels:
        for bad in missing_texts(missing).intersection(labels):
            at = made.ground[list(labels).index(bad)]
            raise HierarchyError(
                f"column {attribute!r}: the label {bad!r} of {short_repr(at)} at level {name!r} reads as missing; "
                "give it another label"
            )


def as_list(value: Any) -> Any:
    """One entry may stand for a list of one."""
    return value if isinstance(value, (list, tuple)) else [value]


Domain = Annotated[
    tuple[Value, ...], BeforeValidator(as_list), PlainSerializer(list, return_type=list[str])
]  # fmt: skip


def declared_values(
    attribute: str, values: Sequence[str], domain: Sequence[str] | None, missing: Collection[str]
) -> Sequence[str]:
    """The ground values: the declared domain, which must cover the data, or else what the data holds."""
    if domain is None:
        return values
    absent = missing_texts(missing)
    ground = dict.fromkeys(v for v in domain if v not in absent)
    check_covered(attribute, values, ground, "the domain", "add them to `domain`, or declare them as missing")
    return list(ground)
