"""Top-down local recoding for (α,k)-anonymity on taxonomies [Wong et al. 2006].

All rows start in one group with every attribute fully generalised. A group is specialised along the attribute that
gains most: its rows go to the child values that cover theirs. A child that fails the models gives its rows back
to the unspecialised remainder; if the remainder then fails, further rows are taken back from children that stay
valid without them, the largest first. It is a *minimal* algorithm: what it did not specialise says something
about the values, which is why it is the textbook target of the minimality attack.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from maskwright.core.classes import Classes, Ints
from maskwright.core.grouping import Allocation, Grouping, Labels, allocated
from maskwright.core.hierarchy import Hierarchy
from maskwright.core.method import Method, Task
from maskwright.core.summary import Joint
from maskwright.methods.anatomize import Anatomize, anatomize
from maskwright.methods.requirement import Requirement, refuse_unless_met
from maskwright.methods.rows import Rows


class AlphaKLocal(Method):
    """Specialises groups along taxonomies from the top, taking rows back where a child fails the models.

    Attributes:
        anatomize: split the groups further into buckets with so many different values of the sensitive column.
    """

    name: ClassVar[str] = "alpha-k-local"

    anatomize: Anatomize = None

    def group(self, task: Task) -> Grouping:
        rows = Rows.expand(task, self.name)
        search = _Search(task, rows, Requirement(task, rows, self.name))
        groups = search.run()
        grouping = search.grouping(groups)
        refuse_unless_met(task, grouping.classes, self.name)
        return anatomize(task, grouping, self.anatomize) if self.anatomize else grouping


@dataclass(frozen=True, eq=False)
class _Group:
    """Rows (`rows[i]` of cell `cells[i]`) and the place of each attribute on its way down, 0 being the top."""

    cells: Ints
    rows: Ints
    places: tuple[int, ...]


class _Search:
    def __init__(self, task: Task, rows: Rows, requirement: Requirement) -> None:
        self.task, self.requirement, self.summary = task, requirement, rows.summary
        self.joint: Joint = rows.joint
        self.paths = [path_down(h, task.levels.get(h.attribute)) for h in self.summary.attributes]
        weights = [task.weights.get(h.attribute, Fraction(1)) for h in self.summary.attributes]
        bases = [h.base for h in self.summary.attributes]
        self.scale = [w / (b - 1) if b > 1 else Fraction(0) for w, b in zip(weights, bases, strict=True)]
        # a row of this table lists the joint sensitive values, so that rows with equal ones are interchangeable
        _, self.kind = np.unique(self.joint.values, axis=1, return_inverse=True)
        self.kind = self.kind.reshape(-1).astype(np.int64)

    def run(self) -> list[_Group]:
        waiting = self.coarsest()
        refuse_unless_met(
            self.task, self.classes(waiting), "even with everything generalised as far as allowed"
        )
        done = []
        while waiting:
            self.task.progress.check()
            group = waiting.pop()
            parts = self.best(group)
            if parts is None:
                done.append(group)
            else:
                waiting += parts
        return done

    def coarsest(self) -> list[_Group]:
        """All rows as one group; several where the policy does not allow the top level of every column."""
        blocks = [
            h.levels[path[0]].blocks[codes][self.joint.tuples]
            for h, path, codes in zip(self.summary.attributes, self.paths, self.summary.codes, strict=True)
        ]
        _, owner = np.unique(np.stack(blocks), axis=1, return_inverse=True)
        parts = [np.flatnonzero(owner.reshape(-1) == g) for g in range(int(owner.max()) + 1)]
        return [_Group(cells, self.joint.rows[cells], (0,) * len(self.paths)) for cells in parts]

    def best(self, group: _Group) -> list[_Group] | None:
        """The parts of the specialisation that gains most; None when every one is refused."""
        found: list[_Group] | None = None
        most = Fraction(-1)
        for a in range(len(self.paths)):
            tried = self.specialised(group, a)
            if tried is not None and (gain := self.gain(group, a, tried)) > most:
                found, most = tried, gain
        return found

    def gain(self, group: _Group, a: int, parts: list[_Group]) -> Fraction:
        """The loss that goes away: rows times the coverage that their label loses."""
        before = self.coverage(group, a)
        rows = sum(int(p.rows.sum()) * (before - self.coverage(p, a)) for p in parts)
        return self.scale[a] * rows

    def coverage(self, group: _Group, a: int) -> int:
        level = self.summary.attributes[a].levels[self.paths[a][group.places[a]]]
        code = self.summary.codes[a][self.joint.tuples[group.cells[0]]]
        return max(1, int(level.leaves[level.blocks[code]]))

    def specialised(self, group: _Group, a: int) -> list[_Group] | None:
        """The children along attribute a, and the remainder if there is one; None: refused."""
        place = group.places[a] + 1
        if place >= len(self.paths[a]):
            return None
        places = (*group.places[:a], place, *group.places[a + 1 :])
        level = self.summary.attributes[a].levels[self.paths[a][place]]
        blocks = level.blocks[self.summary.codes[a][self.joint.tuples[group.cells]]]
        children = [
            _Group(group.cells[blocks == b], group.rows[blocks == b], places)
            for b in np.unique(blocks).tolist()
        ]
        good = self.decide(children)
        if not good.any():
            return None
        kept = [c for c, ok in zip(children, good.tolist(), strict=True) if ok]
        back = [c for c, ok in zip(children, good.tolist(), strict=True) if not ok]
        if not back:
            return kept
        remainder = _Group(
            np.concatenate([c.cells for c in back]), np.concatenate([c.rows for c in back]), group.places
        )
        return _Repair(self, kept, remainder).run()

    def decide(self, groups: list[_Group]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which groups satisfy the models."""
        return self.requirement.decide(self.classes(groups))

    def classes(self, groups: list[_Group]) -> Classes:
        owner = np.repeat(np.arange(len(groups)), [len(g.cells) for g in groups])
        cells = np.concatenate([g.cells for g in groups])
        return self.summary.cell_classes(cells, owner, np.concatenate([g.rows for g in groups]), len(groups))

    def grouping(self, groups: list[_Group]) -> Grouping:
        """Published labels are those of the levels reached, not smaller ones that would cover the group too."""
        number = np.repeat(np.arange(len(groups), dtype=np.int64), [len(g.cells) for g in groups])
        cells, rows = np.concatenate([g.cells for g in groups]), np.concatenate([g.rows for g in groups])
        order = np.lexsort((number, cells))
        cells, number, rows = cells[order], number[order], rows[order]
        allocation = Allocation(self.joint.tuples[cells].astype(np.int64), number, rows, cells)
        labels = tuple(self._labels(groups, a) for a in range(len(self.paths)))
        classes = allocated(self.summary, allocation, len(groups))
        return Grouping(self.summary, allocation, labels, classes, search={"groups": len(groups)})

    def _labels(self, groups: list[_Group], a: int) -> Labels:
        hierarchy = self.summary.attributes[a]
        known: dict[tuple[int, int], int] = {}
        of_group = np.empty(len(groups), dtype=np.int32)
        for g, group in enumerate(groups):
            index = self.paths[a][group.places[a]]
            code = self.summary.codes[a][self.joint.tuples[group.cells[0]]]
            of_group[g] = known.setdefault((index, int(hierarchy.levels[index].blocks[code])), len(known))
        texts = tuple(hierarchy.levels[j].labels[b] for j, b in known)
        leaves = np.array([hierarchy.levels[j].leaves[b] for j, b in known], dtype=np.int64)
        return Labels(hierarchy.attribute, texts, leaves, of_group)


class _Repair:
    """Takes rows back from the children, the largest first, until the remainder passes."""

    def __init__(self, search: _Search, children: list[_Group], remainder: _Group) -> None:
        self.search, self.children, self.remainder = search, children, remainder

    def run(self) -> list[_Group] | None:
        """The children and the remainder; None when no rows help."""
        if self.search.decide([self.remainder])[0]:
            return [*self.children, self.remainder]
        by_size = sorted(range(len(self.children)), key=lambda c: (-int(self.children[c].rows.sum()), c))
        for c in by_size:
            while self._take(c):
                if self.search.decide([self.remainder])[0]:
                    return [*self.children, self.remainder]
        return None

    def _take(self, c: int) -> bool:
        """Move one row that child c can spare, at random among those of its kind (its sensitive values).

        First choice is a kind with which the remainder passes, then the one that the remainder has least of.
        """
        child = self.children[c]
        kind_of = self.search.kind[child.cells]
        kinds = np.unique(kind_of).tolist()
        held = np.bincount(
            self.search.kind[self.remainder.cells], weights=self.remainder.rows, minlength=max(kinds) + 1
        )
        places = []
        for kind in kinds:
            inside = np.flatnonzero(kind_of == kind)
            places.append(int(inside[self._drawn(child.rows[inside])]))
        after = [_with(self.remainder, int(child.cells[p])) for p in places]
        good = self.search.decide(after)
        for i in sorted(range(len(kinds)), key=lambda i: (not good[i], held[kinds[i]], kinds[i])):
            smaller = _without(child, places[i])
            if len(smaller.cells) and self.search.decide([smaller])[0]:
                self.children[c], self.remainder = smaller, after[i]
                return True
        return False

    def _drawn(self, rows: Ints) -> int:
        """A place, with probability in proportion to its rows."""
        return int(
            np.searchsorted(np.cumsum(rows), self.search.task.rng.integers(int(rows.sum())), side="right")
        )


def _without(group: _Group, place: int) -> _Group:
    rows = group.rows.copy()
    rows[place] -= 1
    there = rows > 0
    return _Group(group.cells[there], rows[there], group.places)


def _with(group: _Group, cell: int) -> _Group:
    place = np.flatnonzero(group.cells == cell)
    if len(place):
        rows = group.rows.copy()
        rows[place[0]] += 1
        return _Group(group.cells, rows, group.places)
    return _Group(np.append(group.cells, cell), np.append(group.rows, 1), group.places)


def path_down(hierarchy: Hierarchy, allowed: Any) -> list[int]:
    """The levels from the coarsest to the finest, each refining the one before (in a DAG: one such path)."""
    numbers = range(len(hierarchy.levels)) if allowed is None else sorted(set(allowed))
    path: list[int] = []
    for j in sorted(numbers, key=lambda j: (-int(hierarchy.heights[j]), j)):
        if not path or hierarchy.refines[j, path[-1]]:
            path.append(j)
    return path
