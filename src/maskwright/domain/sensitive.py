"""The base of models about one sensitive attribute, and the thresholds that models share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator

from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.distances import Kind, ValueTree
from maskwright.domain.exact import Exact
from maskwright.domain.model import Context, Model
from maskwright.domain.rules import Rule, ShareAtMost
from maskwright.domain.segments import LIMIT, Whole, class_max, class_sums, known_counts
from maskwright.domain.settings import did_you_mean
from maskwright.errors import PolicyError


def _whole(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError(f"{value!r} is not a whole number (write 1, 2, 3 …)")  # noqa: TRY004 - for pydantic
    return value


def _from_one(value: int) -> int:
    if not 1 <= value < 2**62:
        raise ValueError(f"{value} is too {'small' if value < 1 else 'large'}; the least allowed is 1")
    return value


def _positive(value: Fraction) -> Fraction:
    if value <= 0:
        raise ValueError(f"{value} must be greater than 0")
    return value


def _not_negative(value: Fraction) -> Fraction:
    if value < 0:
        raise ValueError(f"{value} must not be negative")
    return value


def _share(value: Fraction) -> Fraction:
    if not 0 < value <= 1:
        raise ValueError(f"{value} is not a share: it must be greater than 0 and at most 1")
    return value


T = TypeVar("T")


def not_empty(value: tuple[T, ...]) -> tuple[T, ...]:
    """Refuse an empty list of values: it would make a requirement that everything satisfies."""
    if not value:
        raise ValueError("the list is empty; name at least one value")
    return value


Count = Annotated[int, BeforeValidator(_whole), AfterValidator(_from_one)]
Positive = Annotated[Exact, AfterValidator(_positive)]
NotNegative = Annotated[Exact, AfterValidator(_not_negative)]
Share = Annotated[Exact, AfterValidator(_share)]
Chosen = Annotated[tuple[str, ...], AfterValidator(not_empty)]
Sets = Annotated[tuple[Chosen, ...], AfterValidator(not_empty)]


class SensitiveModel(Model):
    """A model about one sensitive attribute; without `attribute` it is asked of each of them."""

    about: ClassVar[Literal["quasi-identifiers", "sensitive"]] = "sensitive"

    attribute: str | None = None

    def counts(self, classes: Classes) -> ValueCounts:
        """The counts of the attribute in question."""
        return classes.sensitive[self.attribute_of(classes)]

    def attribute_of(self, classes: Classes) -> str:
        """The attribute in question; where there is only one it need not be named."""
        if self.attribute is not None:
            if self.attribute not in classes.sensitive:
                raise PolicyError(
                    f"{self.name}: there is no sensitive column {self.attribute!r}; "
                    + (
                        did_you_mean(self.attribute, classes.sensitive)
                        if classes.sensitive
                        else "the table has none"
                    )
                )
            return self.attribute
        if len(classes.sensitive) == 1:
            return next(iter(classes.sensitive))
        if not classes.sensitive:
            raise PolicyError(f"{self.name} needs a sensitive column; give one column the role sensitive")
        raise PolicyError(f"{self.name}: say which attribute; sensitive are " + ", ".join(classes.sensitive))

    def reference(self, classes: Classes, context: Context) -> Ints:
        """How often each value (index = code) occurs in the whole table before suppression."""
        attribute = self.attribute_of(classes)
        if attribute not in context.reference:
            raise PolicyError(
                f"{self.name}: the distribution of {attribute!r} in the whole table is not known"
            )
        return context.reference[attribute]

    def refuse_unknown(self, domains: Mapping[str, Sequence[str]]) -> None:
        """Refuse an `attribute` that is no sensitive column of the table."""
        if self.attribute is not None and self.attribute not in domains:
            hint = did_you_mean(self.attribute, domains) if domains else "the table has none"
            raise PolicyError(f"{self.name}: there is no sensitive column {self.attribute!r}; {hint}")


M = TypeVar("M", bound=SensitiveModel)


def refuse_both_choices(model: M) -> M:
    """Refuse a model that is given values and sets of values."""
    if getattr(model, "values", None) is not None and getattr(model, "sets", None) is not None:
        raise ValueError("give values or sets, not both; a value alone is a set of one")
    return model


def values_in(values: Chosen | None, sets: Sets | None) -> list[str]:
    """The values that are named, one by one or in sets."""
    return [*(values or ()), *(value for members in sets or () for value in members)]


def largest_count(counts: ValueCounts, sets: Sequence[Sequence[str]] | None) -> Ints:
    """Per class the most people that hold one value, or that hold any value of one set; missing is no value.

    Somebody with two values of a set (several rows per person) counts twice, which errs on the safe side.
    """
    code = {value: i + 1 for i, value in enumerate(counts.values)}
    if sets is None:
        return class_max(np.where(counts.codes > 0, counts.counts, 0), counts.start)
    largest = np.zeros(counts.n_classes, dtype=np.int64)
    for members in sets:
        inside = np.zeros(len(counts.values) + 1, dtype=bool)
        inside[[code[value] for value in members if value in code]] = True
        largest = np.maximum(
            largest, class_sums(np.where(inside[counts.codes], counts.counts, 0), counts.start)
        )
    return largest


def distinct_values(counts: ValueCounts) -> Ints:
    """How many different values each class holds; missing is none."""
    return class_sums((counts.codes > 0).astype(np.int64), counts.start)


def tree_of(model: SensitiveModel, kind: Kind, classes: Classes, context: Context) -> ValueTree | None:
    """The tree that a hierarchical distance needs; None for the other distances."""
    if kind != "hierarchical":
        return None
    attribute = model.attribute_of(classes)
    if attribute in context.trees:
        return context.trees[attribute]
    if attribute not in context.hierarchies:
        raise PolicyError(
            f"{model.name}: distance hierarchical needs a hierarchy for {attribute!r}; give it one"
        )
    return ValueTree.of_hierarchy(context.hierarchies[attribute], classes.sensitive[attribute].values)


@dataclass(frozen=True, eq=False)
class Lifts:
    """How much more frequent each value is in its class than in the whole table, entry by entry.

    The lift of an entry is p/q = up/down, with up = c·N and down = r·n: c of the n values of its class, r of the
    N values of the table. Missing values are left out of all four.
    """

    counts: ValueCounts
    up: Whole
    down: Whole
    reference: Ints
    total: int

    def floats(self) -> NDArray[np.float64]:
        """The lift of every entry as a float."""
        return self.up.astype(np.float64) / self.down.astype(np.float64)

    def of(self, entry: int) -> Fraction:
        """The exact lift of an entry."""
        return Fraction(int(self.up[entry]), int(self.down[entry]))


def value_lifts(model: SensitiveModel, classes: Classes, context: Context) -> Lifts:
    """The lift of every value in every class."""
    counts, whole = known_counts(model.counts(classes)), model.reference(classes, context)
    here, total = class_sums(counts.counts, counts.start), int(whole[1:].sum())
    reference = whole[counts.codes]
    if len(reference) and not reference.all():
        raise PolicyError(
            f"{model.name}: a class holds a value that the reference distribution does not have"
        )
    amounts, sizes = counts.counts, here[counts.owner]
    if len(here) and int(here.max()) * total >= LIMIT:
        amounts, sizes = amounts.astype(object), sizes.astype(object)
    return Lifts(counts, amounts * total, reference * sizes, reference, total)


def kernel_attribute(model: SensitiveModel, context: Context) -> str | None:
    """The attribute a kernel rule is about, where the context leaves no doubt."""
    if model.attribute is not None:
        return model.attribute
    return next(iter(context.domains)) if len(context.domains) == 1 else None


def reference_shares(model: SensitiveModel, context: Context) -> tuple[str, list[Fraction]] | None:
    """The attribute of a kernel rule and each code's share of the reference; None where that is not known."""
    attribute = kernel_attribute(model, context)
    if attribute is None or attribute not in context.reference:
        return None
    counts = [0, *context.reference[attribute][1:].tolist()]
    total = sum(counts)
    return (attribute, [Fraction(count, total) for count in counts]) if total else None


def share_rules(
    model: SensitiveModel, share: Fraction, sets: Sequence[Sequence[str]] | None, context: Context
) -> tuple[Rule, ...] | None:
    """The rule that no value, or no set of values, is held by more than a share of the class.

    A value that does not occur is held by nobody. A set of such values stays a set, so that what is proven of the rule
    does not depend on whether somebody holds them.
    """
    attribute = kernel_attribute(model, context)
    if attribute is None:
        return None
    if sets is None:
        return (ShareAtMost(attribute, share),)
    if attribute not in context.domains:
        return None
    code = {value: i + 1 for i, value in enumerate(context.domains[attribute])}
    coded = tuple(tuple(sorted({code[v] for v in members if v in code})) for members in sets)
    return (ShareAtMost(attribute, share, coded),)
