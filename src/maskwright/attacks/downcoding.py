"""Downcoding: what the form of a label tells about the values that it hides [Cohen 2022].

Where a label is the *smallest* that covers its group, the group's rows are not all on one side of it: in no single
child of a block, and at both ends of a range; and every value of a listed set occurs. Somebody who knows how values
are distributed, and nobody's quasi-identifiers, concludes more than the distribution says. Labels of levels that were
chosen for the whole table tell nothing of the kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from maskwright.attacks._shared.secrets import label_text
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount, sorted_distinct
from maskwright.domain.grouping import Grouping
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.segments import Whole

Shares = tuple[Fraction, ...]
MOST_LISTED = 12  # values of a set whose subsets are counted
MOST_EXACT = 64  # rows of a class up to which powers are exact fractions; beyond, floating point
SMALLEST = {
    "block": "the label is the smallest block around its class, so that its rows do not all lie in one part of it",
    "range": "the label is the smallest range around its class, so that both ends occur",
    "set": "the label lists the values of its class, so that each of them occurs",
}
NOTHING = Belief(Fraction(0), Fraction(0), "nobody", "no label tells more than how values are distributed")


class Downcoding(Attack):
    """The belief in a finer value of a quasi-identifier, from the form of the label that hides it."""

    name: ClassVar[str] = "downcoding"
    about: ClassVar[About] = "ranges"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()

    def applies(self, target: Target) -> bool:
        """Whether labels were made group by group, and quasi-identifiers are not published as they are."""
        return target.grouping.labelling not in ("levels", "fixed", "given") and not target.exact

    def unable(self, target: Target) -> str:
        """Why the attack cannot run: labels that are not the smallest around their class; otherwise nothing."""
        if self.applies(target) and target.design is not None and target.design.own:
            return "columns of the person have one label in all rows of a person: what its form reveals is not computed"
        return super().unable(target)

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief in a finer value, and how many cells are determined by their labels."""
        grouping = target.grouping
        names = [hierarchy.attribute for hierarchy in grouping.summary.attributes]
        found = [
            _worst_of_column(grouping, a, (target.levels or {}).get(name)) for a, name in enumerate(names)
        ]
        columns = dict(zip(names, found, strict=True))
        worst = max((f["worst"] for f in found), key=lambda b: (b.after, -b.before), default=NOTHING)
        measures: dict[str, Any] = {
            "columns": columns,
            "generalised_cells": sum(f["generalised_cells"] for f in found),
            "determined_cells": sum(f["determined_cells"] for f in found),
        }
        return Beliefs(self.name, adversary.name, "exact", worst, measures)


@dataclass(frozen=True)
class Hidden:
    """What a label hides: names and shares of its parts, and what is known of a group under it.

    Attributes:
        names: of the children of a block, or of the values of a range or a set.
        shares: of each of them among the rows of the table that the label covers.
        form: "block": not all rows in one part; "range": both ends occur; "set": every part occurs.
    """

    names: tuple[str, ...]
    shares: Shares
    form: str

    def beliefs(self, rows: int) -> Shares:
        """P(a row lies in each part), given that a group of so many rows has this label."""
        found = BELIEFS[self.form]
        if rows <= MOST_EXACT:
            return found(self.shares, rows)
        near = found(tuple(map(float, self.shares)), rows)  # type: ignore[arg-type]
        return tuple(Fraction(min(1.0, max(0.0, float(x)))) for x in near)

    def determines(self, rows: int) -> bool:
        """Whether it is known how many of the rows lie in each part."""
        occurring = sum(1 for share in self.shares if share)
        if self.form == "range":
            return rows == 2
        return rows == occurring and (self.form == "set" or rows == 2)


def split_beliefs(shares: Shares, rows: int) -> Shares:
    """P(a row lies in each child), given that the rows do not all lie in one: (p − pⁿ)/(1 − Σ pⁿ)."""
    apart = 1 - sum(p**rows for p in shares)
    return tuple((p - p**rows) / apart if apart else p for p in shares)


def range_beliefs(shares: Shares, rows: int) -> Shares:
    """P(a row has each value), given that the lowest and the highest value occur among the rows."""
    low, high = shares[0], shares[-1]
    both = 1 - (1 - low) ** rows - (1 - high) ** rows + (1 - low - high) ** rows
    found = []
    for i, p in enumerate(shares):
        without_low = Fraction(0) if i == 0 else (1 - low) ** (rows - 1)
        without_high = Fraction(0) if i == len(shares) - 1 else (1 - high) ** (rows - 1)
        inside = 0 < i < len(shares) - 1
        without_both = (1 - low - high) ** (rows - 1) if inside else Fraction(0)
        found.append(p * (1 - without_low - without_high + without_both) / both if both else p)
    return tuple(found)


def set_beliefs(shares: Shares, rows: int) -> Shares:
    """P(a row has each value), given that every value occurs among the rows (inclusion and exclusion)."""
    parts, all_occur = range(len(shares)), Fraction(0)
    mine = [Fraction(0)] * len(shares)
    for size in range(len(shares) + 1):
        for left_out in combinations(parts, size):
            rest, sign = 1 - sum(shares[i] for i in left_out), (-1) ** size
            all_occur += sign * rest**rows
            for i in parts:
                if i not in left_out:
                    mine[i] += sign * shares[i] * rest ** (rows - 1)
    return tuple(m / all_occur for m in mine) if all_occur else shares


BELIEFS = {"block": split_beliefs, "range": range_beliefs, "set": set_beliefs}


def _worst_of_column(grouping: Grouping, a: int, allowed: Sequence[int] | None) -> dict[str, Any]:
    """The figures of one quasi-identifier: by the distribution of the table, or by its marginals if these tell more."""
    by_table = _of_column(grouping, a, allowed, _held_in_table(grouping, a))
    counts = _held_by_marginals(grouping, a)
    if counts is None:
        return by_table
    by_marginals = _of_column(grouping, a, allowed, counts)["worst"]
    worst = max(by_table["worst"], by_marginals, key=lambda b: (b.after, -b.before))
    return by_table | {"worst": worst, "by_marginals": by_marginals}


def _of_column(grouping: Grouping, a: int, allowed: Sequence[int] | None, held: Whole) -> dict[str, Any]:
    """The figures for one distribution; `allowed`: the levels that labels may come from, where restricted."""
    hierarchy = grouping.summary.attributes[a]
    of_people = _one_value_each(grouping, a)
    drawn = "row" if of_people is None else "person"
    worst, generalised, determined, not_counted = NOTHING, 0, 0, 0
    shown = grouping.published_labels[a]
    for label, codes, groups in _labels_with_groups(grouping, a):
        cells = grouping.classes.rows[groups]
        generalised += int(cells.sum())
        hidden = _hidden(grouping, a, label, codes, held, allowed)
        if hidden is None:
            not_counted += int(cells.sum())
            continue
        sizes = cells if of_people is None else grouping.classes.sizes[groups]
        for rows in np.unique(sizes).tolist():
            beliefs = hidden.beliefs(rows)
            determined += int(cells[sizes == rows].sum()) * hidden.determines(rows)
            gains = [i for i, share in enumerate(hidden.shares) if beliefs[i] > share]
            best = max(gains, key=lambda i: (beliefs[i], -hidden.shares[i]), default=None)
            if best is not None and (beliefs[best], -hidden.shares[best]) > (worst.after, -worst.before):
                text = label_text(shown.texts[label])
                whom = f"a {drawn} of a class of {rows} with {hierarchy.attribute} {text}"
                ends = None if rows <= MOST_EXACT else (0.0, min(1.0, float(beliefs[best]) * (1 + 1e-9)))
                why = f"{SMALLEST[hidden.form]}: {hidden.names[best]}"
                worst = Belief(hidden.shares[best], beliefs[best], whom, why, ends)
    return {
        "worst": worst, "generalised_cells": generalised, "determined_cells": determined, "not_counted": not_counted,
    }  # fmt: skip


def _held_in_table(grouping: Grouping, a: int) -> Whole:
    """How often each value occurs in the table; of a person once, whose rows all have the same."""
    summary, of_people = grouping.summary, _one_value_each(grouping, a)
    if of_people is not None:
        return np.bincount(of_people, minlength=len(summary.attributes[a].values) + 1)
    return exact_bincount(
        summary.codes[a].astype(np.int64), summary.rows, len(summary.attributes[a].values) + 1
    )


def _held_by_marginals(grouping: Grouping, a: int) -> Whole | None:
    """How often each value occurs by the published counts, as whole numbers; None: there are none."""
    if grouping.marginals is None or not grouping.marginals[a].cells:
        return None
    marginal = grouping.marginals[a]
    unit = math.lcm(*(len(codes) for codes, _ in marginal.cells))
    found = np.zeros(marginal.n_codes, dtype=object)
    for codes, rows in marginal.cells:
        found[codes] = rows * (unit // len(codes))
    return found


def _one_value_each(grouping: Grouping, a: int) -> Ints | None:
    """The code of each person in a column that is the same in all rows of everybody who has several; None: it is not.

    The rows of a person are one draw there, not several.
    """
    personal = grouping.summary.personal
    if personal is None or personal.people is None:
        return None
    pairs = np.unique(
        np.stack([personal.people, grouping.summary.codes[a][personal.tuples].astype(np.int64)]), axis=1
    )
    return None if (np.diff(pairs[0]) == 0).any() else pairs[1]


def _labels_with_groups(grouping: Grouping, a: int) -> Iterator[tuple[int, Ints, Ints]]:
    """Every label that covers several values: its number, the codes that occur under it, and its groups."""
    labels, allocation = grouping.labels[a], grouping.allocation
    there = allocation.groups >= 0
    if grouping.starred is not None:
        there &= allocation.groups != grouping.starred
    codes = grouping.summary.codes[a][allocation.tuples[there]].astype(np.int64)
    of_row = labels.of_group[allocation.groups[there]]
    for label in np.flatnonzero(labels.coverage > 1).tolist():
        groups = np.flatnonzero(labels.of_group == label)
        groups = groups[groups != (-1 if grouping.starred is None else grouping.starred)]
        if len(groups):
            yield label, sorted_distinct(codes[of_row == label]), groups


def _hidden(
    grouping: Grouping, a: int, label: int, codes: Ints, held: Whole, allowed: Sequence[int] | None
) -> Hidden | None:
    """What a label hides; None: a label that mixes missing values in, or a set of too many values."""
    hierarchy, text = grouping.summary.attributes[a], grouping.labels[a].texts[label]
    if 0 in codes.tolist():
        return None
    if _by_blocks(grouping, hierarchy, allowed):
        usable: Sequence[int] = range(len(hierarchy.levels)) if allowed is None else sorted(allowed)
        if grouping.labelling == "reached":
            usable = hierarchy.path_down(allowed)
        for number in sorted(usable, key=lambda j: (int(hierarchy.heights[j]), j)):
            level = hierarchy.levels[number]
            blocks = np.unique(level.blocks[codes])
            if len(blocks) == 1 and level.labels[int(blocks[0])] == text:
                return _block(hierarchy, number, int(blocks[0]), held, usable)
        return None
    inside = np.arange(codes.min(), codes.max() + 1) if hierarchy.ordered else codes
    if not hierarchy.ordered and len(inside) > MOST_LISTED:
        return None
    names = tuple(hierarchy.values[c - 1] for c in inside.tolist())
    return Hidden(names, _shares(held[inside]), "range" if hierarchy.ordered else "set")


def _by_blocks(grouping: Grouping, hierarchy: Hierarchy, allowed: Sequence[int] | None) -> bool:
    """Whether the labels of a column are blocks of its hierarchy; otherwise they are ranges, or lists of values."""
    if grouping.labelling in ("blocks", "reached") or allowed is not None:
        return True
    return len(hierarchy.levels) > 2 and not (grouping.labelling == "ranges" and hierarchy.ordered)


def _block(
    hierarchy: Hierarchy, number: int, block: int, held: Whole, usable: Sequence[int]
) -> Hidden | None:
    """A block of a level, divided by the usable finer level that divides it least; None: there is none."""
    inside = np.flatnonzero(hierarchy.levels[number].blocks == block)
    inside = inside[inside > 0]
    finer = [
        j
        for j in sorted(usable, key=lambda j: -int(hierarchy.heights[j]))
        if j != number
        and hierarchy.refines[j, number]
        and len(np.unique(hierarchy.levels[j].blocks[inside])) > 1
    ]
    if not finer:
        return None
    level = hierarchy.levels[finer[0]]
    children, where = np.unique(level.blocks[inside], return_inverse=True)
    sums = np.zeros(len(children), dtype=held.dtype)
    np.add.at(sums, where.reshape(-1), held[inside])
    return Hidden(tuple(str(level.labels[c]) for c in children.tolist()), _shares(sums), "block")


def _shares(rows: Whole) -> Shares:
    total = int(rows.sum())
    return tuple(Fraction(int(r), total) if total else Fraction(1, len(rows)) for r in rows.tolist())
