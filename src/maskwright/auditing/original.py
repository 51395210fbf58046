"""The published table beside the original: who is behind each class, what was changed, whether the order was kept.

Labels that are read: the value itself, `*`, masked characters (`130**`), ranges (`20-29`, `20..29`, `[20, 30)`, `<50`,
`≥50`, `50+`), lists (`{a, b}`, `a|b`), shortened dates (`2024-03` for 2024-03-15), and the labels of a hierarchy where
one is given. A column with labels that cannot be read is left out of the linking, so that what is said is the least
that an attacker can do.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maskwright.auditing.published import AuditedTable, require_columns
from maskwright.auditing.row_order import DEVIATIONS, class_numbers, middle_ranks, pearson_correlation
from maskwright.domain.classes import Ints
from maskwright.domain.exact import to_fraction
from maskwright.domain.grouping import Allocation, Grouping
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.summary import Summary
from maskwright.engines.base import Engine, SummarySpec, Table

MOST_PAIRS = (
    400_000_000  # classes × raw tuples × columns that are compared; beyond, only some of the classes are
)

MOST_PLACED, SHUFFLES = 20_000, 20


@dataclass(frozen=True, eq=False)
class Linked:
    """The classes of a published table and the raw tuples that may be behind them.

    Attributes:
        summary: the original, by its own quasi-identifiers.
        left_out: columns whose labels could not be read.
        candidates: per raw tuple, the published rows that may be this person's.
        people: per published class, the people of the original whom its labels fit.
        class_of: per raw tuple its class where exactly one fits, -1 where none does, -2 where several do.
        complete: every class was looked at.
    """

    summary: Summary
    left_out: tuple[str, ...]
    candidates: Ints
    people: Ints
    class_of: Ints
    complete: bool

    @property
    def found(self) -> tuple[Fraction, Fraction, int]:
        """The largest and the average chance to pick the right row, and how many people fit a single row."""
        inside = self.candidates > 0
        if not inside.any():
            return Fraction(0), Fraction(0), 0
        sizes = self.summary.tuple_sizes[inside]
        rows = self.candidates[inside]
        kinds, number = np.unique(rows, return_inverse=True)
        people = np.bincount(number.reshape(-1), weights=sizes).astype(np.int64)
        linked = sum(
            (Fraction(p, c) for p, c in zip(people.tolist(), kinds.tolist(), strict=True)), Fraction(0)
        )
        return Fraction(1, int(rows.min())), linked / int(sizes.sum()), int(sizes[rows == 1].sum())


def link_original(
    engine: Engine, published: AuditedTable, original: Table, population: bool = False
) -> Linked:
    """Find out which raw tuples fit which classes.

    Of a population, labels that fit nobody fit nobody: the comparison then says that nobody is like these people.
    """
    names = published.quasi_identifiers
    require_columns(original, names, "the population table" if population else "the original")
    policy = published.question.policy
    hierarchies, fits, left_out = [], [], []
    for labels in published.shown.labels:
        values = published.domains.of(original, labels.attribute).values
        column = policy.columns.get(labels.attribute) if policy else None
        built = None
        if policy is not None and column is not None and column.hierarchy is not None:
            built = column.hierarchy.build(
                labels.attribute, values, policy.folder, policy.missing.tokens, column.order
            )
        hierarchy = built or Hierarchy.of(labels.attribute, values, [])
        table = stands_for(labels.texts, hierarchy.values, built)
        used = np.unique(labels.of_group)
        if not table[used[used > 0]].any(axis=1).all():
            left_out.append(labels.attribute)
            table |= not population
        fits.append(table)
        hierarchies.append(hierarchy)
    unit = published.question.unit
    if population and unit not in [c.name for c in original.columns]:
        unit = None  # each of its rows is a person
    spec = SummarySpec(tuple(hierarchies), published.specs, unit)
    summary = engine.summarise(original, spec)
    return replace(_compared(published.shown, summary, fits), left_out=tuple(left_out))


def _compared(shown: Grouping, summary: Summary, fits: Sequence[Bools]) -> Linked:
    """Hold every class against every raw tuple."""
    sizes, raw = shown.classes.sizes, summary.tuple_sizes
    n, m = shown.classes.n, summary.n_tuples
    chosen = np.arange(n)
    if n * m * max(1, len(fits)) > MOST_PAIRS:
        chosen = np.unique(
            np.linspace(0, n - 1, max(1, MOST_PAIRS // (m * max(1, len(fits)))), dtype=np.int64)
        )
    candidates, people = np.zeros(m, np.int64), np.zeros(n, np.int64)
    class_of = np.full(m, -1, dtype=np.int64)
    for g in chosen.tolist():
        fit = np.ones(m, dtype=bool)
        for labels, table, codes in zip(shown.labels, fits, summary.codes, strict=True):
            fit &= table[labels.of_group[g]][codes]
        people[g] = raw[fit].sum()
        candidates[fit] += sizes[g]
        class_of[fit] = np.where(class_of[fit] == -1, g, -2)
    return Linked(summary, (), candidates, people, class_of, len(chosen) == n)


def rebuilt_grouping(published: AuditedTable, linked: Linked) -> Grouping | None:
    """The grouping as its publisher knew it, where the labels tell it: who is in which class, who was dropped.

    None where a raw tuple fits several classes, or a class does not hold exactly the people (and the values) that fit.
    """
    shown, summary = published.shown, linked.summary
    if published.question.group is not None or linked.left_out or not linked.complete:
        return None
    if (linked.class_of == -2).any() or summary.shared is not None:
        return None
    classes = summary.classes(linked.class_of, shown.classes.n)
    if not np.array_equal(classes.sizes, shown.classes.sizes) or changed_classes(published, linked):
        return None
    allocation = Allocation(np.arange(summary.n_tuples), linked.class_of, summary.rows)
    return Grouping(
        summary,
        allocation,
        shown.labels,
        classes,
        _levels(published, summary, linked.class_of),
        shown.starred,
    )


def _levels(published: AuditedTable, summary: Summary, class_of: Ints) -> tuple[int, ...] | None:
    """The lattice node, where every column is published at one level of its hierarchy."""
    there = np.flatnonzero(class_of >= 0)
    levels = []
    for hierarchy, codes, labels in zip(
        summary.attributes, summary.codes, published.shown.labels, strict=True
    ):
        shown = np.array([labels.texts[i] or "" for i in labels.of_group[class_of[there]]], dtype=object)
        for number, level in enumerate(hierarchy.levels):
            texts = np.array([t or "" for t in level.labels], dtype=object)
            if (texts[level.blocks[codes[there]]] == shown).all():
                levels.append(number)
                break
        else:
            return None
    return tuple(levels)


def changed_classes(published: AuditedTable, linked: Linked) -> int:
    """Classes whose sensitive values are not those of the people behind them (only where that is decided)."""
    decided = linked.class_of >= 0
    classes = linked.summary.classes(np.where(decided, linked.class_of, -1), published.shown.classes.n)
    same = classes.sizes == published.shown.classes.sizes
    wrong = np.zeros(len(same), dtype=bool)
    if published.question.group is None:
        for name, theirs in classes.sensitive.items():
            mine = published.classes.classes.sensitive[name]
            for c in np.flatnonzero(same).tolist():
                wrong[c] |= mine.of_class(c) != theirs.of_class(c)
    return int(wrong.sum())


@dataclass(frozen=True)
class Kept:
    """How far the order of the original shines through.

    Attributes:
        correlation: between positions here and (expected) positions there.
        same_rows: the share of rows i here that fit row i there; None where the tables differ in length.
        by_chance: that share if one of the tables were shuffled.
        placed: the share of rows that can be placed in the original one after the other, and
        placed_by_chance: that share in shuffled tables.
        kept: more than chance explains.
    """

    correlation: float
    same_rows: float | None
    by_chance: float
    placed: float
    placed_by_chance: float
    kept: bool

    def sentence(self) -> str:
        """What that means for somebody who knows the order of the original."""
        text = f"the rows are in the order of the original (correlation {self.correlation:+.2f}; {self.placed:.0%} can "
        text += f"be placed there one after the other, by chance {self.placed_by_chance:.0%}"
        if self.same_rows is not None:
            text += f"; {self.same_rows:.0%} fit the row in the same place, by chance {self.by_chance:.0%}"
        certain = "knows every row" if self.same_rows == 1 else "knows more than the labels say"
        return f"{text}): whoever knows that order {certain}"


def order_kept(
    engine: Engine, published: AuditedTable, original: Table, linked: Linked, limit: int
) -> Kept | None:
    """Compare positions of rows that fit each other; None where labels decide nothing."""
    names = published.quasi_identifiers
    secret = published.sensitive if published.values is published.table else ()
    domains = [h.values for h in linked.summary.attributes]
    secrets = [s.values for s in published.specs] if secret else []
    theirs = dict(zip((*names, *secret), engine.in_order(
        original, (*names, *secret), (*domains, *secrets), limit), strict=True))  # fmt: skip
    shown = [h.values for h in published.shown.summary.attributes]
    mine = dict(zip((*names, *secret), engine.in_order(
        published.table, (*names, *secret), (*shown, *secrets), limit), strict=True))  # fmt: skip
    ours = _kinds(mine, names, published.shown.summary.codes, np.arange(published.shown.classes.n))
    other = _kinds(theirs, names, linked.summary.codes, linked.class_of)
    both = np.concatenate([ours, other])
    kind = class_numbers([both + 2, *(np.concatenate([mine[s], theirs[s]]) for s in secret)])
    here, there = kind[: len(ours)], kind[len(ours) :]
    known = other >= 0
    number = np.bincount(there[known], minlength=int(kind.max()) + 1)
    total = np.bincount(there[known], weights=np.flatnonzero(known), minlength=len(number))
    usable = number[here] > 0
    if usable.sum() < 10:
        return None
    expected = (total[here] / np.maximum(number[here], 1))[usable]
    rho = pearson_correlation(middle_ranks(expected), np.arange(int(usable.sum()), dtype=np.float64))
    placed, usual, spread = in_sequence(here[usable][:MOST_PLACED], np.where(known, there, -1))
    kept = abs(rho) * math.sqrt(int(usable.sum()) - 1) > DEVIATIONS or placed - usual > DEVIATIONS * spread
    if published.rows != linked.summary.n_rows:
        return Kept(rho, None, 0.0, placed, usual, kept)
    share = float((here == there).mean())
    chance = float((np.bincount(here, minlength=len(number)) * number).sum()) / len(here) ** 2
    deviation = math.sqrt(max(chance * (1 - chance), 1e-12) / len(here))
    return Kept(rho, share, chance, placed, usual, kept or share - chance > DEVIATIONS * deviation)


def in_sequence(here: Ints, there: Ints) -> tuple[float, float, float]:
    """The share of rows that can be placed in the original one after the other; its mean and spread when shuffled."""
    places = {kind: np.flatnonzero(there == kind).tolist() for kind in np.unique(here).tolist()}

    def placed(kinds: list[int]) -> float:
        """The share of the rows that can be matched one after the other."""
        at, count = -1, 0
        for kind in kinds:
            i = bisect_right(places[kind], at)
            if i < len(places[kind]):
                at, count = places[kind][i], count + 1
        return count / len(kinds)

    rng = np.random.default_rng(0)  # only to see what chance does; nothing that is published depends on it
    usual = [placed(rng.permutation(here).tolist()) for _ in range(SHUFFLES)]
    return placed(here.tolist()), float(np.mean(usual)), max(float(np.std(usual)), 1 / len(here))


def _kinds(rows: dict[str, Ints], names: Sequence[str], codes: NDArray[np.int32], class_of: Ints) -> Ints:
    """The class of each row, by its tuple of codes."""
    number = class_numbers(
        [np.concatenate([codes[i].astype(np.int64), rows[name]]) for i, name in enumerate(names)]
    )
    tuples, mine = number[: codes.shape[1]], number[codes.shape[1] :]
    of_number = np.full(int(number.max()) + 1, -1, dtype=np.int64)
    of_number[tuples] = class_of
    result: Ints = of_number[mine]
    return result


Bools = NDArray[np.bool_]
Number = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_BRACKETS = re.compile(
    rf"(?P<open>[\[(\]])\s*(?P<low>{Number})\s*(?:,|;|-|–|\.\.|to)\s*(?P<high>{Number})\s*(?P<close>[\])\[])"
)
_BARE = re.compile(rf"(?P<low>{Number})\s*(?:-|–|\.\.|\bto\b)\s*(?P<high>{Number})")
_ONE_SIDE = re.compile(rf"(?P<sign><=|>=|≤|≥|<|>)\s*(?P<end>{Number})|(?P<from>{Number})\s*\+")
_LIST = re.compile(r"\{(?P<inside>.*)\}", re.DOTALL)


def label_reader(label: str) -> Callable[[str], bool]:
    """What a label stands for, as a test of a value."""
    tests: list[Callable[[str], bool]] = [lambda value: value == label]
    if "*" in label:
        tests.append(_masked(label))
    numbers = _range(label)
    if numbers is not None:
        tests.append(numbers)
    listed = _LIST.fullmatch(label)
    parts = re.split(r"[,;]", listed["inside"]) if listed else label.split("|")
    if len(parts) > 1 or listed:
        inside = [label_reader(part.strip()) for part in parts if part.strip()]
        tests.append(lambda value: any(test(value) for test in inside))
    if re.fullmatch(r"\d{4}(-\d{2})?", label):
        tests.append(
            lambda value: re.match(r"\d{4}-\d{2}", value) is not None and value.startswith(f"{label}-")
        )
    return lambda value: any(test(value) for test in tests)


def _masked(label: str) -> Callable[[str], bool]:
    """Each star hides a character; a single one at the end may hide any number of them."""
    head = label.removesuffix("*")

    def fits(value: str) -> bool:
        """Is a value one that this mask can hide?"""
        if not label.strip("*"):
            return True
        if len(label) == len(value):
            return all(a in ("*", b) for a, b in zip(label, value, strict=True))
        return "*" not in head and label.endswith("*") and value.startswith(head)

    return fits


def _range(label: str) -> Callable[[str], bool] | None:
    low = high = None
    with_low = with_high = True
    if found := _BRACKETS.fullmatch(label) or _BARE.fullmatch(label):
        low, high = to_fraction(found["low"]), to_fraction(found["high"])
        ends = found.groupdict()
        with_low, with_high = ends.get("open", "[") == "[", ends.get("close", "]") == "]"
    elif found := _ONE_SIDE.fullmatch(label):
        if found["from"]:
            low = to_fraction(found["from"])
        elif found["sign"].startswith(("<", "≤")):
            high, with_high = to_fraction(found["end"]), found["sign"] != "<"
        else:
            low, with_low = to_fraction(found["end"]), found["sign"] != ">"
    if low is None and high is None:
        return None

    def inside(value: str) -> bool:
        """Is a value a number within the range?"""
        if not re.fullmatch(Number, value):
            return False
        x = to_fraction(value)
        above = low is None or x > low or (with_low and x == low)
        return above and (high is None or x < high or (with_high and x == high))

    return inside


def stands_for(
    labels: Sequence[str | None], values: Sequence[str], hierarchy: Hierarchy | None = None
) -> Bools:
    """`result[l, v]`: may label l stand for the value with code v (0: missing, i + 1: `values[i]`)?"""
    result = np.zeros((len(labels), len(values) + 1), dtype=bool)
    known: dict[str, set[str]] = {}
    if hierarchy is not None:
        for level in hierarchy.levels:
            for value, block in zip(hierarchy.values, level.blocks[1:].tolist(), strict=True):
                known.setdefault(str(level.labels[block]), set()).add(value)
    for i, label in enumerate(labels):
        if label is None:
            result[i, 0] = True
            continue
        if label in known:
            result[i, 1:] = [value in known[label] for value in values]
        else:
            result[i, 1:] = list(map(label_reader(label), values))
        result[i, 0] = not label.strip("*")  # `*` may be missing, too
    return result
