"""Mondrian multidimensional partitioning: cut the rows along one attribute, again and again [LeFevre et al. 2006].

`balanced` cuts every group into parts of exactly equal size along a dimension that is chosen from the
quasi-identifiers alone, tries one cut per group, and accepts it when all parts satisfy the models. Exchanging
the contents of the parts then maps refused tables to refused tables, so that an adversary who knows the method
believes exactly what the group shows, whatever the models. `relaxed` cuts at the median without dropping rows;
`strict` never separates equal values. `fallback` tries further dimensions after a refusal: better groups, but
each refusal says something about the values.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from maskwright.core.classes import Ints
from maskwright.core.grouping import Grouping
from maskwright.core.method import Method, Task
from maskwright.core.sensitive import Count
from maskwright.kernels import partition
from maskwright.kernels.partition import Covers, Int32s, Mode
from maskwright.methods.anatomize import Anatomize, anatomized
from maskwright.methods.axes import Axis, axes_of, tuple_ranks
from maskwright.methods.even_plan import EvenPlan, Splits, even_plan
from maskwright.methods.labels import LabelStyle, covers
from maskwright.methods.orders import arranged_cells
from maskwright.methods.requirement import Bools, Requirement, refuse_unless_met
from maskwright.methods.rows import Partition, Rows, SplitTree, to_grouping

VOID = {
    "widest": "no guarantee: a strict cut that was refused because of values exposes rows next to the median",
    "fallback": "no guarantee: several cuts that were refused because of values tell together which rows hold them",
}


class Mondrian(Method):
    """Cuts the rows along one attribute, again and again, as long as every part satisfies the models.

    Attributes:
        cut: balanced (equal parts), relaxed (at the median, equal values may be separated), strict (they may not).
        dimensions: widest tries the best dimension only; fallback tries the others after a refusal.
        choose: the best dimension is that whose cut leaves the least information loss, or that with the widest
            range relative to the table's.
        ties: rows with equal values along the cut are separated by their other quasi-identifiers, then at random;
            or at random only.
        side: strict cuts: values equal to the median go right (lt) or left (le).
        least: balanced: the fewest rows of a group (default: by the models' parameters).
        splits: balanced: mixed (thirds, fifths, sevenths near the root, so that hardly a row is dropped) or halves.
        min_child: relaxed and strict: the fewest rows of a part (default: by the models' parameters).
        labels: hierarchy (smallest block that covers the group) or ranges.
        anatomize: split the groups further into buckets with so many different values of the sensitive column.
    """

    name: ClassVar[str] = "mondrian"

    cut: Literal["balanced", "relaxed", "strict"] = "balanced"
    dimensions: Literal["widest", "fallback"] = "widest"
    choose: Literal["loss", "range"] | None = None
    ties: Literal["quasi-identifiers", "random"] = "quasi-identifiers"
    side: Literal["lt", "le"] = "lt"
    least: Count | None = None
    splits: Splits = "mixed"
    min_child: int | None = Field(default=None, ge=0, le=10**9)
    labels: LabelStyle = "hierarchy"
    anatomize: Anatomize = None

    @model_validator(mode="after")
    def _makes_sense(self) -> Mondrian:
        if self.dimensions == "fallback" and self.cut == "balanced":
            raise ValueError(
                "a balanced cut is tried along one dimension only: trying others would void its guarantee; "
                "write dimensions: widest, or cut: relaxed"
            )
        if self.dimensions == "fallback" and self.choose == "loss":
            raise ValueError("fallback tries dimensions by their range; write choose: range")
        return self

    def group(self, task: Task) -> Grouping:
        if self.ties == "random":
            order = Rows.expand(task, self.name).cells
            rows = Rows.one_of_each_cell(task.summary)
        else:
            rows, order = arranged_cells(task, "lexicographic", None, self.name)
        requirement = Requirement(task, rows, self.name)
        plan = self.plan(len(order), requirement)
        parts, depth = self.partition(task, rows, order, requirement, plan)
        del order
        search: dict[str, Any] = {"cut": self.cut, "dimensions": self.dimensions, "depth": depth}
        if requirement.looks_at_values and (self.cut == "strict" or self.dimensions == "fallback"):
            search["note"] = VOID[self.dimensions]
        if plan is not None:
            search |= {"parts": list(plan.parts), "least": plan.leaf, "dropped": "at random"}
        grouping = to_grouping(task, rows, parts, self.labels, search)
        refuse_unless_met(
            task, grouping.classes, "even with all rows in one group" if depth == 0 else "mondrian"
        )
        return anatomized(task, rows, parts, self.anatomize, self.labels, grouping)

    def plan(self, n: int, requirement: Requirement) -> EvenPlan | None:
        """The equal parts of a balanced cut; None for the other cuts, and where no value is looked at."""
        if self.cut != "balanced" or not requirement.looks_at_values:
            return None
        return even_plan(n, self.least or max(2, requirement.least), self.splits)

    def partition(
        self, task: Task, rows: Rows, order: Int32s, requirement: Requirement, plan: EvenPlan | None
    ) -> tuple[Partition, int]:
        """The groups, and how often the table was cut. `order` lists the rows (or one of each cell again and again)."""
        axes = axes_of(rows.summary)
        codes = tuple_ranks(rows.summary, axes)[rows.tuples]
        if plan is not None and plan.dropped:
            order = order[_kept(len(order), plan.dropped, task.rng)]
        chooser = self._chooser(task, axes, codes, order)
        least = self.min_child if self.min_child is not None else requirement.least
        mode: Mode = self.side if self.cut == "strict" else "even"
        cutter = Cutter(requirement, chooser, codes, mode, least if plan is None else 1)
        return cutter.run(task, order, plan.parts if plan else None)

    def _chooser(self, task: Task, axes: tuple[Axis, ...], codes: Int32s, order: Int32s) -> Chooser:
        if self.dimensions == "fallback" or self.choose == "range" or not len(axes):
            return ByRange(axes, codes, order, every=self.dimensions == "fallback")
        return ByLoss(covers(axes, task.levels, self.labels, task.weights), codes)


def _kept(n: int, dropped: int, rng: np.random.Generator) -> Bools:
    """All of n places but so many, drawn at random."""
    places = np.arange(n, dtype=np.int32)
    rng.shuffle(places)
    kept = np.ones(n, dtype=bool)
    kept[places[:dropped]] = False
    return kept


class ByLoss:
    """Ranks dimensions by the loss that an even cut along each leaves; looks at quasi-identifiers only."""

    def __init__(self, tables: Covers, codes: Int32s) -> None:
        self.tables, self.codes = tables, codes

    def ranking(self, order: Int32s, lo: Ints, hi: Ints, parts: int) -> Int32s:
        """One line per group: the dimensions to be tried in turn, −1: none."""
        return partition.choose(self.codes, order, lo, hi, parts, self.tables)[:, None]


class ByRange:
    """Ranks dimensions by their range inside the group relative to that in the table, exactly; ties: the first."""

    def __init__(self, axes: tuple[Axis, ...], codes: Int32s, order: Int32s, every: bool) -> None:
        self.positions, self.codes, self.every = [axis.position for axis in axes], codes, every
        whole = np.array([0]), np.array([len(order)])
        self.whole = (
            self._widths(order, *whole)[0] if len(order) and len(axes) else np.zeros(len(axes), np.int64)
        )

    def _widths(self, order: Int32s, lo: Ints, hi: Ints) -> Ints:
        low, high = partition.ranges(self.codes, order, lo, hi)
        columns = [p[high[:, a]] - p[low[:, a]] for a, p in enumerate(self.positions)]
        return np.stack(columns, axis=1) if columns else np.zeros((len(lo), 0), dtype=np.int64)

    def ranking(self, order: Int32s, lo: Ints, hi: Ints, parts: int) -> Int32s:
        widths = self._widths(order, lo, hi)
        d = widths.shape[1]
        result = np.full((len(lo), max(1, d if self.every else 1)), -1, dtype=np.int32)
        for a in range(d):
            # how many dimensions come before a: a wider share, or the same and an earlier place
            before = np.zeros(len(lo), dtype=np.int64)
            for b in range(d):
                ours, theirs = widths[:, a] * self.whole[b], widths[:, b] * self.whole[a]
                before += (theirs > ours) | ((theirs == ours) & (widths[:, b] > 0) & (b < a))
            tried = np.flatnonzero((widths[:, a] > 0) & (before < result.shape[1]))
            result[tried, before[tried]] = a
        return result


Chooser = ByLoss | ByRange


class Cutter:
    """Cuts all groups of one depth at once, until no cut is accepted."""

    def __init__(
        self, requirement: Requirement, chooser: Chooser, codes: Int32s, mode: Mode, least: int
    ) -> None:
        self.requirement, self.chooser, self.codes = requirement, chooser, codes
        self.mode, self.least = mode, max(1, least)

    def run(self, task: Task, order: Int32s, plan: tuple[int, ...] | None) -> tuple[Partition, int]:
        """The groups at the end, and the depth reached. Without a plan: halves as long as they are accepted."""
        lo, hi = np.array([0], dtype=np.int64), np.array([len(order)], dtype=np.int64)
        done: list[tuple[Ints, Ints]] = []
        splits = SplitTree()
        depth = 0
        while len(lo) and (plan is None or depth < len(plan)):
            task.progress.check()
            parts = 2 if plan is None else plan[depth]
            order, accepted, bounds = self._cut(order, lo, hi, parts)
            done.append((lo[~accepted], hi[~accepted]))
            splits.split(accepted, parts)
            lo, hi = bounds[:, :-1].ravel(), bounds[:, 1:].ravel()
            depth += bool(len(lo))
        done.append((lo, hi))
        lo, hi = (np.concatenate(side) for side in zip(*done, strict=True))
        return Partition.of_segments(order, lo, hi, splits), depth

    def _cut(self, order: Int32s, lo: Ints, hi: Ints, parts: int) -> tuple[Int32s, Bools, Ints]:
        """Try to cut every group: the new order, which cuts were accepted, and the bounds of their parts."""
        accepted = np.zeros(len(lo), dtype=bool)
        bounds = np.empty((len(lo), parts + 1), dtype=np.int64)
        large = np.flatnonzero((hi - lo) // parts >= (self.least if self.mode == "even" else 1))
        ranking = np.full((len(lo), 1), -1, dtype=np.int32)
        if len(large):
            found = self.chooser.ranking(order, lo[large], hi[large], parts)
            ranking = np.full((len(lo), found.shape[1]), -1, dtype=np.int32)
            ranking[large] = found
        for turn in range(ranking.shape[1]):
            tried = np.flatnonzero(~accepted & (ranking[:, turn] >= 0))
            if not len(tried):
                break
            dims = np.ascontiguousarray(ranking[tried, turn])
            fresh, ends = partition.cut(self.codes, order, lo[tried], hi[tried], dims, self.mode, parts)
            good = self._allowed(fresh, ends)
            accepted[tried[good]] = True
            bounds[tried[good]] = ends[good]
            if ranking.shape[1] == 1:
                order = fresh  # the order inside groups that are finished says nothing
            else:
                places, _ = partition.members(lo[tried[good]], hi[tried[good]])
                if turn == 0:
                    order = order.copy()  # it belongs to the caller
                order[places] = fresh[places]
        return order, accepted, bounds[accepted]

    def _allowed(self, fresh: Int32s, ends: Ints) -> Bools:
        """Are all parts large enough, and do they all satisfy the models?"""
        good = np.asarray((np.diff(ends, axis=1) >= self.least).all(axis=1))
        parts = ends[good]
        ok = self.requirement.passing(fresh, parts[:, :-1].ravel(), parts[:, 1:].ravel())
        good[good] = ok.reshape(len(parts), ends.shape[1] - 1).all(axis=1)
        return good
