"""Top-down local recoding for (α,k)-anonymity on taxonomies [Wong et al. 2006].

All rows start in one group with every attribute fully generalised. A group is specialised along the attribute that
gains most: its rows go to the child values that cover theirs. A child that fails the models gives its rows back
to the unspecialised remainder; if the remainder then fails, further rows are taken back from children that stay
valid without them, the largest first. It is a *minimal* algorithm: what it did not specialise says something
about the values, which is why it is the textbook target of the minimality attack.

Groups do not depend on each other, so that all groups of one generation are decided together.

Rows that children give back to a remainder which fails the models are decided on histograms alone. Whether a group
passes depends on how many rows of each *kind* (combination of sensitive values) it holds, so that the kinds to be
moved are settled first. Which rows of a kind move is drawn later, and only where it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Allocation, Grouping, Labels, allocated_classes
from maskwright.domain.method import Decisions, Method, Task
from maskwright.domain.rules import DistinctAtLeast, ShareAtMost, SizeAtLeast
from maskwright.domain.summary import Joint, Summary
from maskwright.methods._lattice.node_evaluation import rules_of
from maskwright.methods._rows.anatomize import Anatomize, anatomize_groups
from maskwright.methods._rows.group_requirement import Bools, GroupRequirement, refuse_unless_met
from maskwright.methods._rows.rows import Rows

Histogram = list[int]  # rows of each kind
Passes = Callable[[Histogram], bool]


def rows_given_back(
    children: list[Histogram], remainder: Histogram, passes: Passes, alike: list[int] | None = None
) -> list[Histogram] | None:
    """Rows to be moved from each child, by kind, so that the remainder passes; None: no rows help.

    The largest child gives first, as long as it stays valid. First choice is a kind with which the remainder passes,
    then the one that it has least of. `alike`: kinds with the same number are the same to every model.
    """
    alike = alike or list(range(len(remainder)))
    given = [[0] * len(remainder) for _ in children]
    remainder = remainder.copy()
    for c in sorted(range(len(children)), key=lambda c: (-sum(children[c]), c)):
        child = children[c].copy()
        while (kind := _spared(child, remainder, passes, alike)) is not None:
            child[kind] -= 1
            remainder[kind] += 1
            given[c][kind] += 1
            if passes(remainder):
                return given
    return None


def _spared(child: Histogram, remainder: Histogram, passes: Passes, alike: list[int]) -> int | None:
    """The kind of the row that the child gives next."""
    if sum(child) <= 1:
        return None
    kinds = [kind for kind, rows in enumerate(child) if rows]
    examples = {alike[kind]: kind for kind in kinds}
    spared = {a for a, kind in examples.items() if _passes_with(child, kind, -1, passes)}
    if not spared:
        return None
    helps = {a: _passes_with(remainder, examples[a], 1, passes) for a in spared}
    return min(
        (not helps[alike[kind]], remainder[kind], kind) for kind in kinds if alike[kind] in spared
    )[2]  # fmt: skip


def _passes_with(histogram: Histogram, kind: int, change: int, passes: Passes) -> bool:
    """Would the group pass with so many rows of a kind more? The histogram is left as it was."""
    histogram[kind] += change
    result = passes(histogram)
    histogram[kind] -= change
    return result


class Kinds:
    """The combinations of sensitive values that occur, numbered, and the models as tests of histograms over them."""

    def __init__(self, summary: Summary, joint: Joint, requirement: GroupRequirement) -> None:
        self.summary, self.requirement = summary, requirement
        _, example, of_cell = np.unique(joint.values, axis=1, return_index=True, return_inverse=True)
        self.of_cell: Ints = of_cell.reshape(-1).astype(np.int64)
        self.example: NDArray[np.int64] = example  # a cell of each kind
        self.codes = dict(zip(summary.sensitive, joint.values[:, example].tolist(), strict=True))
        self.n = len(example)
        self.known: dict[tuple[int, ...], bool] = {}
        self.alike = list(range(self.n))
        self.tests = self._counting()

    def passes(self, histogram: Histogram) -> bool:
        """Does a group with so many rows of each kind satisfy the models?"""
        if self.tests is not None:
            for test in self.tests:  # noqa: SIM110 - twice as fast as all(), and called a million times
                if not test(histogram):
                    return False
            return True
        key = tuple(histogram)
        if key not in self.known:
            there = np.flatnonzero(histogram)
            rows = np.array(histogram, dtype=np.int64)[there]
            one = self.summary.cell_classes(
                self.example[there], np.zeros(len(there), dtype=np.int64), rows, 1
            )
            self.known[key] = bool(self.requirement.decide(one)[0])
        return self.known[key]

    def _counting(self) -> list[Passes] | None:
        """Tests of rules that only count, without arrays; None where a model is something else."""
        rules = rules_of(self.requirement.models, self.requirement.context)
        if rules is None:
            return None
        tests: list[Passes] = []
        named: list[list[int]] = []  # kinds in the same of these sets are the same to every rule
        for rule in rules:
            if isinstance(rule, SizeAtLeast):
                tests.append(_at_least(rule.k))
            elif isinstance(rule, DistinctAtLeast):
                sets = self._with_codes(rule.attribute, None)
                named += sets
                tests.append(_distinct(sets, rule.l))
            elif isinstance(rule, ShareAtMost):
                sets = self._with_codes(rule.attribute, rule.sets)
                named += sets
                tests.append(_share(sets, rule.share.numerator, rule.share.denominator))
            else:
                return None
        roles = [tuple(kind in kinds for kinds in named) for kind in range(self.n)]
        self.alike = [roles.index(role) for role in roles]
        return tests

    def _with_codes(self, attribute: str, sets: tuple[tuple[int, ...], ...] | None) -> list[list[int]]:
        """For each set of codes the kinds that count for it; None: each code but missing is a set."""
        codes = self.codes[attribute]
        wanted = sets if sets is not None else tuple((code,) for code in sorted(set(codes) - {0}))
        return [[kind for kind, code in enumerate(codes) if code in members] for members in wanted]


def _at_least(k: int) -> Passes:
    return lambda histogram: sum(histogram) >= k


def _distinct(sets: list[list[int]], l: int) -> Passes:  # noqa: E741
    return lambda histogram: sum(any(histogram[kind] for kind in kinds) for kinds in sets) >= l


def _share(sets: list[list[int]], numerator: int, denominator: int) -> Passes:
    if len(sets) > 1 and all(len(kinds) == 1 for kinds in sets):  # every value by itself
        alone = itemgetter(*(kinds[0] for kinds in sets))
        return lambda histogram: max(alone(histogram)) * denominator <= sum(histogram) * numerator

    def _test(histogram: Histogram) -> bool:
        most = max((sum(histogram[kind] for kind in kinds) for kinds in sets), default=0)
        return most * denominator <= sum(histogram) * numerator

    return _test


class AlphaKLocal(Method):
    """Specialises groups along taxonomies from the top, taking rows back where a child fails the models.

    Attributes:
        anatomize: split the groups further into buckets with this many different values of the sensitive column.
    """

    name: ClassVar[str] = "alpha-k-local"

    anatomize: Anatomize = None

    def decisions(self) -> Decisions:
        """Groups are recoded class by class, as the models decide."""
        return Decisions(shape="local")

    def most_left_out(self, task: Task) -> int | None:
        """No row is left out."""
        return 0

    def group(self, task: Task) -> Grouping:
        """Specialise from one group with everything generalised, as far as the models allow."""
        rows = Rows.expand(task, self.name)
        search = _Specialisation(task, rows, GroupRequirement(task, rows, self.name))
        grouping = search.grouping(search.run())
        refuse_unless_met(task, grouping.classes, self.name)
        return anatomize_groups(task, grouping, self.anatomize) if self.anatomize else grouping


@dataclass(frozen=True, eq=False)
class _CellGroups:
    """Groups: entry i puts `rows[i]` rows of cell `cells[i]` into group `owner[i]` (ascending).

    `places[a, g]` is the place of attribute a in group g on its way down, 0 being the top.
    """

    cells: Ints
    rows: Ints
    owner: Ints
    places: Ints

    @property
    def n(self) -> int:
        """The number of groups."""
        return int(self.places.shape[1])

    @property
    def first(self) -> Ints:
        """The first entry of each group."""
        return np.searchsorted(self.owner, np.arange(self.n))

    def take(self, keep: Bools) -> _CellGroups:
        """The chosen groups, numbered anew."""
        inside = keep[self.owner]
        number = np.cumsum(keep) - 1
        return _CellGroups(
            self.cells[inside], self.rows[inside], number[self.owner[inside]], self.places[:, keep]
        )


@dataclass(frozen=True, eq=False)
class _Tried:
    """All groups specialised along one attribute.

    Attributes:
        child: of each entry of the groups.
        group: of each child, ascending.
        block: of each child.
        kept: which children pass.
        back: per group, are there children that fail?
        gains: per group the loss that would go away, −1: refused.
        open: per group, does its remainder fail, so that rows would have to be taken back? The gain is then a bound.
    """

    child: Ints
    group: Ints
    block: Ints
    kept: Bools
    back: Bools
    gains: Ints
    open: Bools


class _Specialisation:
    def __init__(self, task: Task, rows: Rows, requirement: GroupRequirement) -> None:
        self.task, self.requirement = task, requirement
        self.summary: Summary = rows.summary
        self.joint: Joint = rows.joint
        self.paths = [h.path_down(task.levels.get(h.attribute)) for h in self.summary.attributes]
        self.codes = self.summary.codes[:, self.joint.tuples]  # of each cell
        self.blocks, self.coverage = self._tables()
        weights = [task.weights.get(h.attribute, Fraction(1)) for h in self.summary.attributes]
        bases = [h.base for h in self.summary.attributes]
        scale = [w / (b - 1) if b > 1 else Fraction(0) for w, b in zip(weights, bases, strict=True)]
        common = math.lcm(*(s.denominator for s in scale))
        self.scale = [int(s * common) for s in scale]  # gains are compared exactly: integers of any size
        self.kinds = Kinds(self.summary, self.joint, requirement)

    def _tables(self) -> tuple[list[Ints], list[Ints]]:
        """Per attribute: the block of each code at each place of its path, and how many values each block covers."""
        blocks, coverage = [], []
        for h, path in zip(self.summary.attributes, self.paths, strict=True):
            blocks.append(np.stack([h.levels[j].blocks for j in path]).astype(np.int64))
            table = np.ones((len(path), max(len(h.levels[j].leaves) for j in path)), dtype=np.int64)
            for place, j in enumerate(path):
                table[place, : len(h.levels[j].leaves)] = np.maximum(1, h.levels[j].leaves)
            coverage.append(table)
        return blocks, coverage

    def run(self) -> list[_CellGroups]:
        """Specialise generation after generation; the groups that were finished in each."""
        waiting = self.coarsest()
        classes = self.summary.cell_classes(waiting.cells, waiting.owner, waiting.rows, waiting.n)
        refuse_unless_met(self.task, classes, "even with everything generalised as far as allowed")
        done = []
        while waiting.n:
            self.task.progress.check()
            finished, waiting = self.specialise(waiting)
            done.append(finished)
        return done

    def coarsest(self) -> _CellGroups:
        """All rows as one group; several where the policy does not allow the top level of every column."""
        blocks = [table[0][codes] for table, codes in zip(self.blocks, self.codes, strict=True)]
        cells = np.arange(len(self.joint.rows))
        _, owner = np.unique(np.stack([*blocks, 0 * cells]), axis=1, return_inverse=True)
        order = np.argsort(owner.reshape(-1), kind="stable")
        places = np.zeros((len(self.paths), int(owner.max()) + 1), dtype=np.int64)
        return _CellGroups(cells[order], self.joint.rows[order], owner.reshape(-1)[order], places)

    def specialise(self, groups: _CellGroups) -> tuple[_CellGroups, _CellGroups]:
        """Every group along the attribute that gains most: those for which all are refused, and the new ones."""
        tried = [self.attempt(groups, a) for a in range(len(self.paths))]
        chosen = np.full(groups.n, -1, dtype=np.int64)
        given: dict[int, list[Histogram]] = {}
        for g, attributes in self._by_gain(tried, groups.n):
            best = -1
            for bound, a in attributes:
                if chosen[g] >= 0 and (bound, -a) < (best, -chosen[g]):
                    break  # not even with nothing taken back
                moved = self.repair(groups, tried[a], g) if tried[a].open[g] else []
                if moved is None:
                    continue
                gain = bound - self.scale[a] * self._lost(groups, tried[a], a, g, moved)
                if chosen[g] < 0 or (gain, -a) > (best, -chosen[g]):
                    chosen[g], best = a, gain
                    given.pop(g, None)
                    if moved:
                        given[g] = moved
        parts = [
            part
            for a in range(len(self.paths))
            for part in self._parts(groups, tried[a], a, chosen == a, given)
        ]
        return groups.take(chosen < 0), _joined(parts, len(self.paths))

    def attempt(self, groups: _CellGroups, a: int) -> _Tried:
        """All groups along attribute a."""
        deeper = groups.places[a] + 1 < len(self.paths[a])
        place = np.where(deeper, groups.places[a] + 1, groups.places[a])
        blocks = self.blocks[a][place[groups.owner], self.codes[a][groups.cells]]
        radix = self.coverage[a].shape[1]
        keys, child = np.unique(groups.owner * radix + blocks, return_inverse=True)
        child, group = child.reshape(-1), keys // radix
        kept = self.decide(groups, child, len(keys)) & deeper[group]
        size = np.bincount(child, weights=groups.rows).astype(np.int64)
        above = self.coverage[a][groups.places[a], self._block(groups, a)]
        gain = np.where(kept, size * (above[group] - self.coverage[a][place[group], keys % radix]), 0)
        gains = np.bincount(group, weights=gain, minlength=groups.n).astype(np.int64)
        some = np.bincount(group, weights=kept, minlength=groups.n) > 0
        back = some & (np.bincount(group, weights=~kept, minlength=groups.n) > 0)
        returned = (back[group] & ~kept)[child]
        number = np.cumsum(back) - 1
        part = _CellGroups(
            groups.cells[returned], groups.rows[returned], groups.owner[returned], groups.places
        )
        open_ = np.zeros(groups.n, dtype=bool)
        if back.any():
            open_[back] = ~self.decide(part, number[part.owner], int(back.sum()))
        return _Tried(child, group, keys % radix, kept, back, np.where(some, gains, -1), open_)

    def _block(self, groups: _CellGroups, a: int) -> Ints:
        """The block of attribute a that each group is published under."""
        return np.asarray(self.blocks[a][groups.places[a], self.codes[a][groups.cells[groups.first]]])

    def decide(self, groups: _CellGroups, owner: Ints, n: int) -> Bools:
        """Which of n groups pass, `owner` being the group of each entry."""
        return self.requirement.decide(self.summary.cell_classes(groups.cells, owner, groups.rows, n))

    def _by_gain(self, tried: list[_Tried], n: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Per group the attributes that are not refused, with their gains, the largest first."""
        gains = [t.gains.tolist() for t in tried]
        for g in range(n):
            known = [(self.scale[a] * gains[a][g], a) for a in range(len(tried)) if gains[a][g] >= 0]
            yield g, sorted(known, key=lambda pair: (-pair[0], pair[1]))

    def repair(self, groups: _CellGroups, tried: _Tried, g: int) -> list[Histogram] | None:
        """The rows that each child of group g that passes has to give back, by kind; None: refused.

        Where people have several rows it is refused: which kinds of rows help depends on whose they are.
        """
        if self.joint.people is not None:
            return None
        entries = slice(*np.searchsorted(groups.owner, [g, g + 1]).tolist())
        first, end = np.searchsorted(tried.group, [g, g + 1]).tolist()
        key = (tried.child[entries] - first) * self.kinds.n + self.kinds.of_cell[groups.cells[entries]]
        table = np.bincount(key, weights=groups.rows[entries], minlength=(end - first) * self.kinds.n)
        table = table.astype(np.int64).reshape(end - first, self.kinds.n)
        kept = tried.kept[first:end]
        children, remainder = table[kept].tolist(), table[~kept].sum(axis=0).tolist()
        return rows_given_back(children, remainder, self.kinds.passes, self.kinds.alike)

    def _lost(self, groups: _CellGroups, tried: _Tried, a: int, g: int, moved: list[Histogram]) -> int:
        """What the gain loses by the rows that go back."""
        if not moved:
            return 0
        place = int(groups.places[a, g])
        entry = int(np.searchsorted(groups.owner, g))
        above = int(self.coverage[a][place, self.blocks[a][place, self.codes[a][groups.cells[entry]]]])
        children = slice(*np.searchsorted(tried.group, [g, g + 1]).tolist())
        blocks = tried.block[children][tried.kept[children]].tolist()
        below = [int(self.coverage[a][place + 1, b]) for b in blocks]
        return sum(sum(rows) * (above - covered) for rows, covered in zip(moved, below, strict=True))

    def _parts(
        self, groups: _CellGroups, tried: _Tried, a: int, chosen: Bools, given: dict[int, list[Histogram]]
    ) -> Iterator[_CellGroups]:
        """The children along attribute a of the groups that chose it, and their remainders."""
        if not chosen.any():
            return
        entry = chosen[groups.owner]
        kept = tried.kept[tried.child] & entry
        stay, leave = groups.rows * kept, groups.rows * (entry & ~kept)
        for g in np.flatnonzero(chosen).tolist():
            if g in given:
                first, end = np.searchsorted(groups.owner, [g, g + 1]).tolist()
                inside = first + np.flatnonzero(kept[first:end])
                moved = self._drawn(groups, tried, inside, given[g])
                stay[inside] -= moved
                leave[inside] += moved
        deeper = groups.places.copy()
        deeper[a] += 1
        yield _numbered(groups.cells, stay, tried.child, deeper[:, tried.group])
        yield _numbered(groups.cells, leave, groups.owner, groups.places)

    def _drawn(self, groups: _CellGroups, tried: _Tried, inside: Ints, given: list[Histogram]) -> Ints:
        """How many rows of each entry go back: of each child and kind so many as given, drawn at random."""
        moved = np.zeros(len(inside), dtype=np.int64)
        number = np.unique(tried.child[inside], return_inverse=True)[1].reshape(-1)
        kinds = self.kinds.of_cell[groups.cells[inside]]
        for c, histogram in enumerate(given):
            for kind in np.flatnonzero(histogram).tolist():
                at = np.flatnonzero((number == c) & (kinds == kind))
                moved[at] = self.task.rng.multivariate_hypergeometric(
                    groups.rows[inside[at]], histogram[kind], method="marginals"
                )
        return moved

    def grouping(self, done: list[_CellGroups]) -> Grouping:
        """Published labels are those of the levels reached, each the smallest of its path that covers the group.

        A group passes, so that it would have passed as the only child, too: it would have been specialised.
        """
        groups = _joined(done, len(self.paths))
        order = np.lexsort((groups.owner, groups.cells))
        cells = groups.cells[order]
        allocation = Allocation(
            self.joint.tuples[cells].astype(np.int64), groups.owner[order], groups.rows[order], cells
        )
        labels = tuple(self._labels(groups, a) for a in range(len(self.paths)))
        classes = allocated_classes(self.summary, allocation, groups.n)
        return Grouping(
            self.summary, allocation, labels, classes, search={"groups": groups.n}, labelling="reached"
        )

    def _labels(self, groups: _CellGroups, a: int) -> Labels:
        hierarchy, path = self.summary.attributes[a], self.paths[a]
        radix = self.coverage[a].shape[1]
        keys, of_group = np.unique(groups.places[a] * radix + self._block(groups, a), return_inverse=True)
        levels = [(hierarchy.levels[path[k // radix]], k % radix) for k in keys.tolist()]
        texts = tuple(level.labels[block] for level, block in levels)
        leaves = np.array([level.leaves[block] for level, block in levels], dtype=np.int64)
        numbers = tuple(path[k // radix] for k in keys.tolist())
        return Labels(hierarchy.attribute, texts, leaves, of_group.reshape(-1).astype(np.int32), numbers)


def _numbered(cells: Ints, rows: Ints, owner: Ints, places: Ints) -> _CellGroups:
    """Groups of the entries that have rows, numbered anew and in order; entries of one cell stay apart."""
    there = rows > 0
    index = np.flatnonzero(there)[np.argsort(owner[there], kind="stable")]
    old, number = np.unique(owner[index], return_inverse=True)
    return _CellGroups(cells[index], rows[index], number.reshape(-1), places[:, old])


def _joined(parts: list[_CellGroups], attributes: int) -> _CellGroups:
    """All groups of several lists, one after another."""
    before = np.cumsum([0, *(part.n for part in parts)])
    none: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    return _CellGroups(
        np.concatenate([none, *(part.cells for part in parts)]),
        np.concatenate([none, *(part.rows for part in parts)]),
        np.concatenate([none, *(part.owner + n for part, n in zip(parts, before, strict=False))]),
        np.concatenate([np.empty((attributes, 0), np.int64), *(part.places for part in parts)], axis=1),
    )
