"""Secrets: what an adversary must not learn, counted class by class; what the attacks on sensitive values share.

A secret is a value of a sensitive column, or a set of values of which holding *any* is what must not be known. They
are the values that the policy's models name; where a model about shares names none, every value is one. Missing is
never a secret. What is left out is counted beside every belief, so that unflagging and dropping cannot hide anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.grouping import Grouping
from maskwright.domain.hierarchy import TOP
from maskwright.domain.model import Model
from maskwright.domain.near_numbers import NumberWindows, number_windows
from maskwright.domain.segments import Ratios, class_sums, known_counts

Sets = Sequence[tuple[str, ...]]
HALF = Fraction(1, 2)  # what counts as vulnerable where the policy states no bound
MOST_STARS = 3  # columns of a class that are * throughout and still named one by one
NOTHING = Belief(Fraction(0), Fraction(0), "nobody", "no published class holds a sensitive value")


@dataclass(frozen=True, eq=False)
class Secrets:
    """The secrets of one sensitive column in every published class.

    Attributes:
        attribute: the column.
        sets: the values of each secret; the one with code s is `sets[s - 1]`.
        counts: class → secret → people, at most the people of the class.
        sizes: people per class.
        reference: people with each secret in the whole table (index = code), and
        people: people in the whole table.
        flagged: did the policy's models name the secrets?
        left_out: class → value → people for the values that are part of no secret.
        several: does somebody have several values? Then a set may count a person twice, and shares are bounds.
        too_many: the windows of numbers that requirements ask about, where there are too many to look at one by one,
            so that each number by itself is a secret here.
    """

    attribute: str
    sets: Sets
    counts: ValueCounts
    sizes: Ints
    reference: Ints
    people: int
    flagged: bool
    left_out: ValueCounts
    several: bool
    too_many: NumberWindows | None = None

    def name(self, code: int) -> str:
        """The secret in words: `disease HIV or hepatitis`, `income between 100 and 109`."""
        if isinstance(self.sets, NumberWindows):
            return f"{self.attribute} {self.sets.in_words(code - 1)}"
        return f"{self.attribute} {' or '.join(self.sets[code - 1])}"

    def shares(self) -> Ratios:
        """Per entry of `counts`, the share of its class that has the secret."""
        return Ratios(self.counts.counts, self.sizes[self.counts.owner])

    def before(self, code: int) -> Fraction:
        """The share of the whole table that has the secret."""
        return Fraction(int(self.reference[code]), self.people)

    @property
    def values_not_flagged(self) -> int:
        """The number of values that are part of no secret."""
        return len(np.unique(self.left_out.codes))

    def worst_not_flagged(self) -> Fraction:
        """The largest share in a class of a value that is no secret."""
        shares = Ratios(self.left_out.counts, self.sizes[self.left_out.owner])
        worst = shares.argmax()
        return Fraction(0) if worst is None else shares[worst]


def secrets_of(target: Target) -> list[Secrets]:
    """The secrets of every sensitive column of a release."""
    return [_secrets(target, name) for name in columns_of(target)]


def columns_of(target: Target) -> list[str]:
    """The sensitive columns that the attack is about."""
    return [
        n
        for n in target.grouping.published_classes.sensitive
        if target.secrets is None or n in target.secrets
    ]


def _secrets(target: Target, attribute: str) -> Secrets:
    classes = target.grouping.published_classes
    counts = known_counts(classes.sensitive[attribute])
    too_many = None
    if target.secrets is None:
        named = flagged_sets(target.models, attribute, len(classes.sensitive) == 1)
        if named is None:  # of the bits of a multi-valued attribute only presence is a secret
            named = target.context.flagged.get(attribute)
        share = share_of_the_truth(target.models, attribute, len(classes.sensitive) == 1)
        near = number_windows(counts.values, share) if share is not None else None
        if near is not None and near.few:
            named = near
        else:
            too_many = near
    else:
        named = target.secrets[attribute]
    sets = tuple((v,) for v in counts.values) if named is None else named
    whole, people = reference_of(target, attribute)
    table = ValueCounts.collect(
        counts.values, 1, np.zeros(len(whole), np.int64), np.arange(len(whole)), whole, counts.ordered
    )
    inside = np.ones(len(counts.values) + 1, dtype=bool)  # every number is in a window
    if not isinstance(sets, NumberWindows):
        code = {value: i + 1 for i, value in enumerate(counts.values)}
        inside[:] = False
        inside[[code[v] for members in sets for v in members if v in code]] = True
    reference = np.minimum(gather_counts(table, sets).totals, people)
    every = classes.sensitive[attribute]
    several = bool((class_sums(every.counts, every.start) != classes.sizes).any())
    return Secrets(
        attribute, sets, clipped_counts(gather_counts(counts, sets), classes.sizes), classes.sizes, reference, people,
        named is not None, _only(counts, ~inside), several, too_many,
    )  # fmt: skip


def share_of_the_truth(models: Sequence[Model], attribute: str, only: bool = False) -> Fraction | None:
    """How near to a number nobody may come, where all bounds on belief about the column are about that."""
    asked = [m for m in models_about(models, attribute, only) if hasattr(m, "within")]
    shares = {getattr(m, "within", None) for m in asked}
    only_one = shares.pop() if len(shares) == 1 else None
    return only_one if isinstance(only_one, Fraction) else None


def flagged_sets(models: Sequence[Model], attribute: str, only: bool = False) -> Sets | None:
    """The sets of values that models about this column name; None: every value is a secret.

    Args:
        models: the requirements.
        attribute: the column.
        only: is it the only sensitive column? Then a model that names no column is about it.
    """
    named: list[tuple[str, ...]] = []
    for model in models_about(models, attribute, only):
        fields = type(model).model_fields.keys() & {"values", "sets"}
        if not fields:
            continue
        values, sets = (_named_tuple(model, key) for key in ("values", "sets"))
        if values is None and sets is None:
            return None
        named += [*((v,) for v in values or ()), *(tuple(s) for s in sets or ())]
    return tuple(dict.fromkeys(named)) or None


def models_about(models: Sequence[Model], attribute: str, only: bool = False) -> list[Model]:
    """The models that look at the values of this column."""
    return [
        m
        for m in models
        if m.about == "sensitive"
        and (m.attribute_name() == attribute or (m.attribute_name() is None and (only or _of_each(m))))
    ]


def _of_each(model: Model) -> bool:
    """Is the model about every sensitive column at once?"""
    return "attribute" not in type(model).model_fields


def threshold_of(models: Sequence[Model], attribute: str, only: bool = False) -> Fraction:
    """The belief beyond which a person is vulnerable: the policy's own bound, 1/l or the like; otherwise 1/2."""
    bounds = []
    asked = models_about(models, attribute, only)
    stated = [m for m in asked if isinstance(getattr(m, "max", None), Fraction)]  # a bound on belief itself
    if stated:
        return min(Fraction(getattr(m, "max", 1)) for m in stated)
    for model in asked:
        settings: dict[str, Any] = {name: getattr(model, name) for name in type(model).model_fields}
        if isinstance(settings.get("alpha"), Fraction):
            bounds.append(settings["alpha"])
        elif settings.get("m"):
            bounds.append(1 / Fraction(settings["m"]))
        elif settings.get("l"):
            bounds.append(1 / Fraction(settings["l"]))
        elif "k" in settings and isinstance(settings.get("c"), Fraction):
            bounds.append(settings["c"])
    return min([b for b in bounds if b < 1], default=HALF)


def gather_counts(counts: ValueCounts, sets: Sets) -> ValueCounts:
    """The people of each class with any value of each set; somebody with two of them counts twice."""
    if isinstance(sets, NumberWindows):
        return sets.gathered(counts)
    if sets == tuple((value,) for value in counts.values) and (counts.codes > 0).all():
        return counts  # every value is a secret of its own: nothing to add up
    code = {value: i + 1 for i, value in enumerate(counts.values)}
    owners, codes, amounts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    number = np.zeros(len(counts.values) + 1, dtype=np.int64)
    disjoint = len({v for s in sets for v in s}) == sum(len(set(s)) for s in sets)
    for portion in [range(len(sets))] if disjoint else [range(s, s + 1) for s in range(len(sets))]:
        number[:] = 0
        for s in portion:
            number[[code[v] for v in sets[s] if v in code]] = s + 1
        there = number[counts.codes] > 0
        owners.append(counts.owner[there])
        codes.append(number[counts.codes[there]])
        amounts.append(counts.counts[there])
    return ValueCounts.collect(
        tuple(" or ".join(s) for s in sets), counts.n_classes,
        np.concatenate(owners), np.concatenate(codes), np.concatenate(amounts),
    )  # fmt: skip


def clipped_counts(counts: ValueCounts, sizes: Ints) -> ValueCounts:
    """Counts of which none is above the people of its class."""
    most = sizes[counts.owner]
    if (counts.counts <= most).all():
        return counts
    return ValueCounts(counts.values, counts.start, counts.codes, np.minimum(counts.counts, most))


def _only(counts: ValueCounts, inside: Any) -> ValueCounts:
    there = inside[counts.codes]
    return ValueCounts.collect(
        counts.values, counts.n_classes, counts.owner[there], counts.codes[there].astype(np.int64),
        counts.counts[there],
    )  # fmt: skip


def reference_of(target: Target, attribute: str) -> tuple[Ints, int]:
    """The number of people with each value (index = code) in the whole table, and of all people."""
    if attribute in target.context.reference and target.context.n_people:
        return target.context.reference[attribute], target.context.n_people
    summary = target.grouping.summary
    return summary.totals().sensitive[attribute].totals, summary.n_people


def dropped_people(grouping: Grouping) -> int:
    """People of the input of whom no row was published."""
    summary, allocation = grouping.summary, grouping.allocation
    if allocation.cells is not None and summary.joint is not None:
        return grouping.dropped_rows
    bare = replace(summary, sensitive={})  # people are counted, whatever they have
    if allocation.cells is not None:
        here = np.where(allocation.groups >= 0, 0, -1)
        return summary.n_people - int(bare.cell_classes(allocation.cells, here, allocation.rows, 1).sizes[0])
    group_of = np.full(summary.n_tuples, -1, dtype=np.int64)
    group_of[allocation.tuples[allocation.groups >= 0]] = 0
    return summary.n_people - int(bare.classes(group_of, 1).sizes[0])


def accompanying_figures(target: Target, secrets: Sequence[Secrets]) -> dict[str, Any]:
    """Figures that a worst belief leaves out: it must not be improved by dropping people or unflagging values."""
    changes = target.grouping.changes
    too_many = {s.attribute: s.too_many for s in secrets if s.too_many is not None}
    single = {name: {"within": w.within, "ranges": len(w)} for name, w in too_many.items()}
    return {
        **({"single_numbers": single} if single else {}),
        "dropped_people": dropped_people(target.grouping),
        "values_changed": 0 if changes is None else int(changes.rows.sum()),
        "dropped_for_missing_values": target.grouping.summary.dropped_missing,
        "values_not_flagged": sum(s.values_not_flagged for s in secrets),
        "worst_share_of_a_value_not_flagged": max(
            (s.worst_not_flagged() for s in secrets), default=Fraction(0)
        ),
    }


def in_words(grouping: Grouping, group: int) -> str:
    """The published labels of a group: `age 30-39, sex m`."""
    if group == grouping.starred:
        return "all quasi-identifiers published as *"
    labels = {x.attribute: label_text(x.texts[x.of_group[group]]) for x in grouping.published_labels}
    shown = {name: label for name, label in labels.items() if label != TOP}
    if len(labels) - len(shown) <= MOST_STARS:
        shown = labels
    parts = [f"{name} {label}" for name, label in shown.items()]
    if stars := len(labels) - len(shown):
        parts.append(f"{stars} {'others' if parts else 'quasi-identifiers'} {TOP}")
    return ", ".join(parts) or "no quasi-identifiers"


def people_in_words(grouping: Grouping, group: int, classes: Classes | None = None) -> str:
    """The people of a group in words: `each of the 5 people with age 30-39, sex m`."""
    size = int((classes or grouping.classes).sizes[group])
    who = "the only person" if size == 1 else f"each of the {size} people"
    return f"{who} with {in_words(grouping, group)}"


def label_text(label: str | None) -> str:
    """A published label as text; missing has none of its own."""
    return "(missing)" if label is None else label


def _named_tuple(model: Model, setting: str) -> tuple[Any, ...] | None:
    """The values that a setting names; None where a model of somebody else calls something else so."""
    found = getattr(model, setting, None)
    return found if isinstance(found, tuple) else None
