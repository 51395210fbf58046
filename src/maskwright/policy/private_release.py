"""What voids differential privacy in a policy: refused with the reason, like all that is not known to be safe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from maskwright.domain.method import Method
from maskwright.domain.missing_values import Missing
from maskwright.domain.model import Model
from maskwright.domain.settings import Settings
from maskwright.errors import PolicyError
from maskwright.hierarchies.intervals import Intervals
from maskwright.hierarchies.masking import Masking
from maskwright.models.belief import BeliefAtMost
from maskwright.policy.policy import Column, Policy

# settings that decide nothing but what each row alone becomes, how files are read and written, or words for people
SAFE: dict[type[Settings], frozenset[str]] = {
    Policy: frozenset(
        {"version", "input", "output", "unit", "missing", "prepare", "columns", "require", "method", "recoding",
         "about", "preset"}
    ),
    Column: frozenset(
        {"role", "hierarchy", "weight", "levels", "order", "sensitive_sets", "direct_identifiers", "near_unique"}
    ),
    Missing: frozenset({"tokens", "rows"}),
}  # fmt: skip


def refuse_voided_privacy(policy: Policy, method: Method, models: Sequence[Model]) -> None:
    """Refuse a policy under which a method that is differentially private would not be."""
    if method.privacy() is None:
        return
    for where, why, instead in _reasons(policy, models):
        raise PolicyError(f"{where}: with {method.name}, {why}; {instead}")


def _reasons(policy: Policy, models: Sequence[Model]) -> Iterator[tuple[str, str, str]]:
    """What voids it: where, why, and what to do instead."""
    if policy.person_column is not None:
        yield (
            "unit",
            "one row is protected, and a person who has several would lose that many times epsilon",
            "make a table with one row per person",
        )
    for name in policy.with_role("insensitive"):
        yield (
            f"columns.{name}",
            "all published columns are the class of a row, and an insensitive one would be left out of it",
            "make it a quasi-identifier with one level, or an identifier, which is not published",
        )
    if policy.recoding.name != "generalise":
        yield (
            "recoding", "classes must show all columns of a row together",
            "use recoding: generalise",
        )  # fmt: skip
    for name, column in policy.columns.items():
        yield from _of_column(policy, name, column)
    for model in models:
        if model.needs() or isinstance(model, BeliefAtMost):
            yield (
                "require",
                f"{model.name} compares with rows that are not published, so publishing at all would reveal "
                "something about them",
                "require what the published classes show alone, such as k-anonymity or distinct-l-diversity",
            )
        if model.about == "sensitive" and model.use == "search":
            yield (
                "require",
                f"{model.name} would be searched for, and be compared with the whole table",
                "write use: gate, which looks at what is published alone",
            )
    for where, part in [("", policy), ("missing.", policy.missing)]:
        for name in _set_otherwise(part):
            yield f"{where}{name}", "it is not known to leave the privacy as it is", f"remove `{name}`"


def _of_column(policy: Policy, name: str, column: Column) -> Iterator[tuple[str, str, str]]:
    where = f"columns.{name}"
    if column.role == "identifier" and column.publish is None:
        return
    for setting in _set_otherwise(column):
        yield f"{where}.{setting}", "it is not known to leave the privacy as it is", f"remove `{setting}`"
    if column.role != "quasi-identifier":
        return
    if column.levels is None or len(column.levels) != 1:
        yield (
            where,
            "levels are fixed in advance, since a level that is chosen from the data reveals something about it",
            "name one, e.g. levels: [exact]",
        )
    made = column.hierarchy
    if isinstance(made, Intervals) and made.domain is None:
        yield (
            f"{where}.hierarchy",
            "how intervals are written must not depend on whether somebody's number is a whole one",
            "give the range of possible numbers, domain: [0, 120]",
        )
    if isinstance(made, Masking) and made.domain is None and not made.by:
        yield (
            f"{where}.hierarchy",
            "how many levels of masking there are must not depend on the longest value",
            "say how many characters are masked, by: [1, 2]",
        )


def _set_otherwise(part: Settings) -> list[str]:
    """The settings that are not at their defaults, and not known to be safe."""
    return [
        name
        for name, field in type(part).model_fields.items()
        if name not in SAFE[type(part)]
        and getattr(part, name) != field.get_default(call_default_factory=True)
    ]
