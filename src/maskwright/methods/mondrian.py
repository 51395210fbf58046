"""Mondrian multidimensional partitioning: cut the rows along one attribute, again and again [LeFevre et al. 2006].

`balanced` cuts every group into parts of exactly equal size along a dimension that is chosen from the
quasi-identifiers alone, and accepts the cut when all parts satisfy the models. Exchanging the contents of the parts
then maps refused tables to refused tables, so that an adversary who knows the method believes exactly what the group
shows, whatever the models. `crossed` tries further cuts after a refusal that run evenly across every refused one,
which keeps that true (`promise/lemmas/balanced_cuts.py` has the proofs). `relaxed` cuts at the median without dropping
rows; `strict` never separates equal values. `fallback` tries further dimensions that do not cross: better groups, but
each refusal says something about the values.

How n rows are cut into equal parts all the way down is planned from n and the least group size alone. The plan looks
at no value of the table, so that it cannot say anything about one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping, Trace
from maskwright.domain.method import Decisions, Method, Task
from maskwright.domain.model import Model, fewest_rows
from maskwright.domain.references import References
from maskwright.domain.sensitive import Count
from maskwright.domain.summary import Summary
from maskwright.errors import PolicyError
from maskwright.kernels import partition
from maskwright.kernels.partition import Covers, Int32s, Mode
from maskwright.methods._rows.anatomize import Anatomize, anatomize_eligible
from maskwright.methods._rows.axes import Axis, axes_of, tuple_ranks
from maskwright.methods._rows.group_labels import (
    AnyStyle,
    LabelStyle,
    attribute_shares,
    information_loss,
    label_covers,
)
from maskwright.methods._rows.group_requirement import Bools, GroupRequirement, refuse_unless_met
from maskwright.methods._rows.own_columns import best_of_circles, other_columns, people_task
from maskwright.methods._rows.row_orders import arranged_cells
from maskwright.methods._rows.rows import Partition, Rows, SplitTree, to_grouping
from maskwright.promise.lemmas.balanced_cuts import CROSSED_CUTS, ONE_CUT
from maskwright.promise.lemmas.even_splits import EVEN_SPLIT

Splits = Literal["mixed", "halves"]

# Where dropping every row costs 1: groups that are twice as large, and a cut into thirds (both measured on Adult
# under diversity models, whose refusals matter more than the size at which a plan ends).
DOUBLING, THIRDS = 0.015, 0.006
LARGEST = 8  # groups of a plan are smaller than so many times the least size
FURTHER = (2, 3)  # ways in which the cells of crossed cuts are divided beyond a plan
FIRST = 4  # halves come first: a cut into thirds of the whole table would be refused more often


@dataclass(frozen=True)
class EvenPlan:
    """`parts[i]` equal parts at depth i; groups of `leaf` rows at the end; `dropped` rows do not fit."""

    parts: tuple[int, ...]
    leaf: int
    dropped: int

    def crossed(self) -> EvenPlan:
        """The plan of crossed cuts: the same, and as many cuts more as divide its leaf, which drop no row.

        A refused cut uses up one cut of the plan, so that a group may still be large when its cells are as small as a
        leaf. That the plan begins as this one makes crossed cuts a refinement of what it makes without them.
        """
        parts, cell = list(self.parts), self.leaf
        for ways in FURTHER:
            while cell % ways == 0:
                parts.append(ways)
                cell //= ways
        return EvenPlan(tuple(parts), cell, self.dropped)


def even_plan(n: int, least: int, splits: Splits) -> EvenPlan:
    """Equal parts down to groups of at least `least` rows.

    halves: 2^h parts, h as large as possible; n mod 2^h rows are dropped, fewer than one in `least`.
    mixed: up to two cuts into thirds, and somewhat larger groups at the end, so that hardly a row is dropped.
    """
    if n < 2 * least:
        return EvenPlan((), n, 0)
    depth = (n // least).bit_length() - 1
    if splits == "halves":
        return EvenPlan((2,) * depth, n >> depth, n % (1 << depth))
    plans = []
    for halves in range(depth + 1):
        for thirds in range(3):
            product = 3**thirds << halves
            leaf = n // product
            if product > 1 and least <= leaf < max(LARGEST * least, 2 * least + 1):
                cost = (n - leaf * product) / n + DOUBLING * math.log2(leaf / least) + THIRDS * thirds
                plans.append((cost, thirds, halves))
    _, thirds, halves = min(plans)
    first = min(halves, FIRST)
    parts = (2,) * first + (3,) * thirds + (2,) * (halves - first)
    product = math.prod(parts)
    return EvenPlan(parts, n // product, n % product)


VOID = {
    "widest": "no guarantee: a strict cut that was refused because of values exposes rows next to the median",
    "fallback": "no guarantee: several cuts that were refused because of values tell together which rows hold them",
}
CUT_S = 30e-9  # usual seconds for a value of a tuple, in a step that cuts all groups
CELLS = 1 << 20  # whose ranges are looked at at a time


class Mondrian(Method):
    """Cuts the rows along one attribute, again and again, as long as every part satisfies the models.

    Attributes:
        cut: balanced (equal parts), relaxed (at the median, equal values may be separated), strict (they may not).
        dimensions: widest tries the best dimension only; fallback tries the others after a refusal; crossed (balanced,
            its default) tries cuts that cross the refused ones evenly.
        choose: the best dimension is that whose cut leaves the least information loss, or that with the widest
            range relative to the table's.
        ties: rows with equal values along the cut are separated by their other quasi-identifiers, then at random;
            or at random only.
        side: strict cuts: values equal to the median go right (lt) or left (le).
        least: balanced: the fewest rows of a group (default: by the models' parameters).
        splits: balanced: mixed (thirds, fifths, sevenths near the root, so that hardly a row is dropped) or halves.
        min_child: relaxed and strict: the fewest rows of a part (default: by the models' parameters).
        labels: hierarchy (smallest block that covers the group), ranges, or fixed (smallest block that covers what the
            cuts leave of the column, whatever rows lie there: their form reveals nothing about the rows).
        anatomize: split the groups further into buckets with this many different values of the sensitive column.
    """

    name: ClassVar[str] = "mondrian"
    proven_settings: ClassVar[frozenset[str]] = frozenset(
        {"cut", "dimensions", "choose", "ties", "side", "least", "splits", "min_child", "labels", "anatomize"}
    )

    cut: Literal["balanced", "relaxed", "strict"] = "balanced"
    dimensions: Literal["crossed", "widest", "fallback"] | None = None
    choose: Literal["loss", "range"] | None = None
    ties: Literal["quasi-identifiers", "random"] = "quasi-identifiers"
    side: Literal["lt", "le"] = "lt"
    least: Count | None = None
    splits: Splits = "mixed"
    min_child: int | None = Field(default=None, ge=0, le=10**9)
    labels: AnyStyle = "hierarchy"
    anatomize: Anatomize = None

    @model_validator(mode="after")
    def _makes_sense(self) -> Mondrian:
        if self.dimensions == "fallback" and self.cut == "balanced":
            raise ValueError(
                "fallback would void the guarantee of balanced cuts; write dimensions: crossed, which tries further "
                "dimensions too, or cut: relaxed"
            )
        if self.dimensions == "crossed" and self.cut != "balanced":
            raise ValueError("crossed cuts are balanced; write cut: balanced, or dimensions: fallback")
        if self.dimensions == "fallback" and self.choose == "loss":
            raise ValueError("fallback tries dimensions by their range; write choose: range")
        if self.labels == "fixed" and self.anatomize is not None:
            raise ValueError(
                "the buckets of anatomize are labelled by their rows, so labels: fixed is not possible; remove one"
            )
        return self

    def voided(self, looked: Sequence[Model], trace: Trace) -> str:
        """Why no lemma holds: as for every method, and where labels show the cuts."""
        if self.labels == "fixed":
            return "no proof names labels: fixed of mondrian"
        return super().voided(looked, trace)

    def decisions(self) -> Decisions:
        """Blind without models of values; with them the lemma depends on how groups are cut."""
        lemma = None
        if self.cut == "balanced":
            lemma = CROSSED_CUTS if self.tried == "crossed" else ONE_CUT
        elif self.cut == "relaxed" and self.tried == "widest":
            lemma = EVEN_SPLIT
        if self.labels == "fixed":  # they show where the cuts are, and so which were refused
            lemma = None
        by_tuples = self.cut == "strict" and self.anatomize is None
        return Decisions(blind=True, lemma=lemma, shape="cuts", by_tuples=by_tuples, fewest=self.min_child)

    def most_left_out(self, task: Task) -> int | None:
        """The rows that do not fit into equal parts, where cuts are balanced."""
        plan = self._plan(task.summary.n_rows, *_asked(task))
        return plan.dropped if plan else 0

    def group(self, task: Task) -> Grouping:
        """Cut all rows as long as every part satisfies the models."""
        return self._people_first(task) if task.own else self._grouped(task)

    def _people_first(self, task: Task) -> Grouping:
        """Strict cuts along the person's own columns make circles of people, whose rows are cut along the others."""
        if self._plan(task.summary.n_rows, *_asked(task)) is not None:
            raise PolicyError(
                "method mondrian: balanced cuts under a model of sensitive values cut all columns together, so they "
                "cannot keep the person's own columns (unit: own) alike in all rows of a person; write cut: "
                "relaxed, or take optimal-lattice or local-recoding"
            )
        if self.labels == "fixed":
            raise PolicyError(
                "method mondrian: labels: fixed follow the cuts, and those along the columns of a person (own) are "
                "made anew for each circle of people; write labels: hierarchy"
            )
        weights = attribute_shares(task)

        def _of_circles(size: int) -> Grouping:
            people, number = people_task(task)
            first = Mondrian(cut="strict", choose=self.choose, side=self.side, min_child=size)
            made = first._grouped(people).allocation
            circle = np.zeros(people.summary.n_tuples, dtype=np.int64)
            circle[made.tuples] = made.groups
            return self._grouped(task, circle[number])

        return best_of_circles(task, _of_circles, lambda made: information_loss(made, weights))

    def _grouped(self, task: Task, circle: Ints | None = None) -> Grouping:
        """The groups; `circle`: of each tuple the part that it is in from the beginning."""
        if self.ties == "random":
            order = Rows.expand(task, self.name).cells
            rows = Rows.one_of_each_cell(task.summary)
        else:
            rows, order = arranged_cells(task, "lexicographic", None, self.name)
        requirement = GroupRequirement(task, rows, self.name)
        plan = self._plan(len(order), requirement.least, requirement.looks_at_values)
        parts, found = self.partition(task, rows, order, requirement, plan, circle)
        del order
        search: dict[str, Any] = {"cut": self.cut, "dimensions": self.tried, **found}
        if requirement.looks_at_values and (self.cut == "strict" or self.tried == "fallback"):
            search["note"] = VOID[self.tried]
        if plan is not None:
            crossed = self.tried == "crossed"
            least = (
                {"least": self._least(requirement.least), "cell": plan.leaf}
                if crossed
                else {"least": plan.leaf}
            )
            search |= {"parts": list(plan.parts), **least, "dropped": "at random"}
        trace = Trace(dropped_first=plan is not None, together=parts.together)
        grouping = to_grouping(task, rows, parts, self.labels, search, trace)
        task = replace(task, context=References.of(grouping, task.context).search)
        refuse_unless_met(
            task, grouping.classes, "even with all rows in one group" if found["depth"] == 0 else "mondrian"
        )
        if self.labels == "fixed":  # then nothing is anatomized
            return grouping
        return anatomize_eligible(task, rows, parts, self.anatomize, self.labels, grouping)

    @property
    def tried(self) -> str:
        """Which dimensions are tried: the option, or its default, which depends on the cut."""
        return self.dimensions or ("crossed" if self.cut == "balanced" else "widest")

    def _plan(self, n: int, fewest: int, looks_at_values: bool) -> EvenPlan | None:
        """The equal parts of a balanced cut; None for the other cuts, and where no value is looked at."""
        if self.cut != "balanced" or not looks_at_values:
            return None
        plan = even_plan(n, self._least(fewest), self.splits)
        return plan.crossed() if self.tried == "crossed" else plan

    def _least(self, fewest: int) -> int:
        """The fewest rows of a group of balanced cuts; the models ask for `fewest`."""
        return self.least or max(2, fewest)

    def partition(
        self,
        task: Task,
        rows: Rows,
        order: Int32s,
        requirement: GroupRequirement,
        plan: EvenPlan | None,
        circle: Ints | None = None,
    ) -> tuple[Partition, dict[str, int]]:
        """The groups, and how they were cut. `order` lists the rows (or one of each cell again and again)."""
        begin, summary = None, rows.summary
        if circle is not None:  # the person's own columns were cut before
            inside = circle[rows.tuples[order]]
            order = order[np.argsort(inside, kind="stable")]
            begin = np.concatenate([[0], np.cumsum(np.bincount(inside))]).astype(np.int64)
            summary = other_columns(summary, task.own)
        axes = axes_of(summary)
        codes = tuple_ranks(summary, axes)[rows.tuples]
        if plan is not None and plan.dropped:
            order = order[_kept(len(order), plan.dropped, task.rng)]
            requirement = requirement.among(order)
        chooser = self._chooser(task, axes, codes, order)
        mode: Mode = self.side if self.cut == "strict" else "even"
        if plan is not None:
            crossed = self.tried == "crossed"
            # without crossed cuts the plan alone ends in time
            least = self._least(requirement.least) if crossed else 1
            cutter = Cutter(requirement, chooser, codes, mode, least, crossed)
        else:
            least = self.min_child if self.min_child is not None else requirement.least
            cutter = Cutter(requirement, chooser, codes, mode, least)
        whole = Regions.whole(rows.summary, axes) if self.labels == "fixed" else None
        return cutter.run(task, order, plan.parts if plan is not None else None, whole, begin)

    def _chooser(self, task: Task, axes: tuple[Axis, ...], codes: Int32s, order: Int32s) -> Chooser:
        if self.tried == "fallback" or self.choose == "range" or not len(axes):
            return ByRange(axes, codes, order, every=self.tried == "fallback")
        style: LabelStyle = "ranges" if self.labels == "ranges" else "hierarchy"
        return ByLoss(label_covers(axes, task.levels, style, task.weights), codes)


def _asked(task: Task) -> tuple[int, bool]:
    """The fewest rows that the models ask of a group, and whether any looks at sensitive values."""
    return fewest_rows(task.search, task.context), any(model.about == "sensitive" for model in task.search)


def _kept(n: int, dropped: int, rng: np.random.Generator) -> Bools:
    """All of n places but so many, drawn at random."""
    kept = np.ones(n, dtype=bool)
    kept[:dropped] = False
    rng.shuffle(kept)
    return kept


class ByLoss:
    """Ranks dimensions by the loss that an even cut along each leaves; looks at quasi-identifiers only."""

    def __init__(self, tables: Covers, codes: Int32s) -> None:
        self.tables, self.codes = tables, codes

    def ranking(self, order: Int32s, lo: Ints, hi: Ints, parts: int, cell: int) -> Int32s:
        """One line per group (of cells of so many rows; 0: of one): the dimensions to be tried in turn, −1: none."""
        return partition.choose_dimensions(self.codes, order, lo, hi, parts, self.tables, cell)[:, None]


class ByRange:
    """Ranks dimensions by their range inside the group relative to that in the table, exactly; ties: the first.

    In groups that consist of cells, by the mean range of a cell: a cut divides each by itself.
    """

    def __init__(self, axes: tuple[Axis, ...], codes: Int32s, order: Int32s, every: bool) -> None:
        self.positions, self.codes, self.every = [axis.position for axis in axes], codes, every
        whole = np.array([0]), np.array([len(order)])
        self.whole = (
            self._widths(order, *whole)[0] if len(order) and len(axes) else np.zeros(len(axes), np.int64)
        )

    def _widths(self, order: Int32s, lo: Ints, hi: Ints) -> Ints:
        low, high = partition.segment_ranges(self.codes, order, lo, hi)
        columns = [p[high[:, a]] - p[low[:, a]] for a, p in enumerate(self.positions)]
        return np.stack(columns, axis=1) if columns else np.zeros((len(lo), 0), dtype=np.int64)

    def _mean_widths(self, order: Int32s, lo: Ints, hi: Ints, cell: int) -> Ints:
        """Of the cells of each group, rounded up: 0 only where no cell has two values."""
        cells = (hi - lo) // cell
        first, total = np.cumsum(cells) - cells, np.zeros((len(lo), len(self.positions)), dtype=np.int64)
        for at in range(0, int(cells.sum()), CELLS):
            number = np.arange(at, min(int(cells.sum()), at + CELLS))
            owner = np.searchsorted(first, number, side="right") - 1
            begin = lo[owner] + (number - first[owner]) * cell
            np.add.at(total, owner, self._widths(order, begin, begin + cell))
        return np.asarray(-(-total // cells[:, None]))

    def ranking(self, order: Int32s, lo: Ints, hi: Ints, parts: int, cell: int) -> Int32s:
        """The dimensions to cut each segment along, the widest first; −1: none is left."""
        widths = self._mean_widths(order, lo, hi, cell) if cell else self._widths(order, lo, hi)
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


@dataclass(frozen=True, eq=False)
class Open:
    """Groups that may yet be cut: segments of the order, how often each was cut, and how many cuts were refused."""

    lo: Ints
    hi: Ints
    cuts: Ints
    refusals: Ints

    def where(self, chosen: Bools) -> Open:
        """The chosen ones of the groups."""
        return Open(self.lo[chosen], self.hi[chosen], self.cuts[chosen], self.refusals[chosen])


@dataclass(frozen=True, eq=False)
class Regions:
    """What the cuts leave of each column to each group: the least and the largest rank, one line per group."""

    low: Int32s
    high: Int32s

    @staticmethod
    def whole(summary: Summary, axes: Sequence[Axis]) -> Regions:
        """Of one group that was not cut: every value of the hierarchy; missing ones only where somebody misses it."""
        missing = [bool((codes == 0).any()) for codes in summary.codes]
        low = np.array(
            [[0 if there or len(x.code) == 1 else 1 for there, x in zip(missing, axes, strict=True)]]
        )
        high = np.array([[len(axis.code) - 1 for axis in axes]])
        return Regions(
            low.astype(np.int32).reshape(1, len(axes)), high.astype(np.int32).reshape(1, len(axes))
        )

    def where(self, chosen: Bools) -> Regions:
        """The chosen ones of the groups."""
        return Regions(self.low[chosen], self.high[chosen])

    def with_more(self, others: Regions) -> Regions:
        """These, and others behind them."""
        return Regions(np.concatenate([self.low, others.low]), np.concatenate([self.high, others.high]))

    def cut(self, along: Int32s, parts: int, low: Int32s, high: Int32s, left: bool, single: Bools) -> Regions:
        """What is left to the parts of groups that were cut, of which the least and the largest rank are given.

        Only the value at which a cut was made is taken from there; with `left` it is the largest of the part before
        the cut, otherwise the least of the part behind it (of both, where equal values were separated). Groups that
        are not a `single` cell keep what they have: each of their cells was cut by itself.
        """
        result = Regions(np.repeat(self.low, parts, axis=0), np.repeat(self.high, parts, axis=0))
        place = np.arange(len(along) * parts).reshape(len(along), parts)
        narrow = np.flatnonzero(single)
        for i in range(parts - 1):
            before, behind, a = place[narrow, i], place[narrow, i + 1], along[narrow]
            last, first = high[before, a], low[behind, a]
            tied = last == first
            result.high[before, a] = last if left else np.where(tied, last, first - 1)
            result.low[behind, a] = last + 1 if left else first
        return result


class Cutter:
    """Cuts all groups of one depth at once, until no cut is accepted, or every crossed cut of the plan was tested.

    Attributes:
        least: the fewest rows of a part.
        crossed: after a refused cut the group stays open, its cells replaced by their parts.
    """

    def __init__(
        self,
        requirement: GroupRequirement,
        chooser: Chooser,
        codes: Int32s,
        mode: Mode,
        least: int,
        crossed: bool = False,
    ) -> None:
        self.requirement, self.chooser, self.codes = requirement, chooser, codes
        self.mode, self.least, self.crossed = mode, max(1, least), crossed

    def run(
        self,
        task: Task,
        order: Int32s,
        plan: tuple[int, ...] | None,
        regions: Regions | None = None,
        begin: Ints | None = None,
    ) -> tuple[Partition, dict[str, int]]:
        """The groups at the end, the depth reached, and the cuts accepted below a refused one.

        Without a plan: halves as long as they are accepted. `regions`: what is left of each column to the first group;
        `begin`: where parts begin that are cut from the start.
        """
        one = np.array([0], dtype=np.int64)
        groups = Open(one, one + len(order), one, one)
        done: list[Open] = []
        kept: list[Regions] = []
        splits = SplitTree()
        if begin is not None and len(begin) > 2:
            none = np.zeros(len(begin) - 1, dtype=np.int64)
            groups = Open(begin[:-1], begin[1:], none + 1, none)
            splits.split(np.ones(1, dtype=bool), len(begin) - 1)
        step = crossings = 0
        cell = len(order) if self.crossed else 0
        while len(groups.lo) and (plan is None or step < len(plan)):
            task.progress.check()
            task.progress.work(CUT_S * self.codes.size)
            parts = 2 if plan is None else plan[step]
            order, accepted, failed, bounds, along = self._cut(order, groups, parts, cell)
            refused = failed & ~accepted if self.crossed else np.zeros_like(accepted)
            late = failed | (groups.refusals > 0)
            done.append(groups.where(~accepted & ~refused))
            if regions is not None:
                single = (groups.hi - groups.lo)[accepted] <= (cell or len(order))
                found_low, found_high = partition.segment_ranges(
                    self.codes, order, bounds[:, :-1].ravel(), bounds[:, 1:].ravel()
                )
                kept.append(regions.where(~accepted & ~refused))
                cut = regions.where(accepted).cut(
                    along, parts, found_low, found_high, self.mode == "le", single
                )
                regions = cut.with_more(regions.where(refused))
            splits.split(accepted, parts, refused, late)
            crossings += int((groups.refusals[accepted] > 0).sum())
            groups = _after(groups, accepted, refused, bounds)
            cell, step = cell // parts, step + 1
        done.append(groups)
        if regions is not None:
            kept.append(regions)
        lo, hi, cuts = (np.concatenate([getattr(g, name) for g in done]) for name in ("lo", "hi", "cuts"))
        found = {"depth": int(cuts.max())} | ({"crossings": crossings} if self.crossed else {})
        made = Partition.of_segments(order, lo, hi, splits)
        if regions is None:
            return made, found
        index = np.argsort(lo, kind="stable")
        low, high = (np.concatenate([getattr(r, end) for r in kept])[index] for end in ("low", "high"))
        return replace(made, regions=(low, high)), found

    def _cut(
        self, order: Int32s, groups: Open, parts: int, cell: int
    ) -> tuple[Int32s, Bools, Bools, Ints, Int32s]:
        """Try to cut every group: the new order, which were cut, of which a cut failed the models, the bounds, and
        the dimensions of the cuts."""
        lo, hi = groups.lo, groups.hi
        accepted, failed = np.zeros(len(lo), dtype=bool), np.zeros(len(lo), dtype=bool)
        along = np.zeros(len(lo), dtype=np.int32)
        bounds = np.empty((len(lo), parts + 1), dtype=np.int64)
        large = np.flatnonzero((hi - lo) // parts >= (self.least if self.mode == "even" else 1))
        ranking = np.full((len(lo), 1), -1, dtype=np.int32)
        if len(large):
            found = self.chooser.ranking(order, lo[large], hi[large], parts, cell)
            ranking = np.full((len(lo), found.shape[1]), -1, dtype=np.int32)
            ranking[large] = found
        for turn in range(ranking.shape[1]):
            tried = np.flatnonzero(~accepted & (ranking[:, turn] >= 0))
            if not len(tried):
                break
            dims = np.ascontiguousarray(ranking[tried, turn])
            fresh, ends = partition.cut_segments(
                self.codes, order, lo[tried], hi[tried], dims, self.mode, parts, cell
            )
            large_enough = np.asarray((np.diff(ends, axis=1) >= self.least).all(axis=1))
            good = self._allowed(fresh, ends, large_enough)
            failed[tried[large_enough & ~good]] = True
            accepted[tried[good]] = True
            bounds[tried[good]], along[tried[good]] = ends[good], dims[good]
            if ranking.shape[1] == 1:
                order = fresh  # the order inside groups that are finished says nothing; refused ones keep their cells
            else:
                places, _ = partition.segment_members(lo[tried[good]], hi[tried[good]])
                if turn == 0:
                    order = order.copy()  # it belongs to the caller
                order[places] = fresh[places]
        return order, accepted, failed, bounds[accepted], along[accepted]

    def _allowed(self, fresh: Int32s, ends: Ints, large_enough: Bools) -> Bools:
        """Are all parts large enough, and do they all satisfy the models?"""
        good = large_enough.copy()
        parts = ends[good]
        ok = self.requirement.passing(fresh, parts[:, :-1].ravel(), parts[:, 1:].ravel())
        good[good] = ok.reshape(len(parts), ends.shape[1] - 1).all(axis=1)
        return good


def _after(groups: Open, accepted: Bools, refused: Bools, bounds: Ints) -> Open:
    """The parts of the accepted cuts, then the groups whose cut was refused and which stay open."""
    parts, whole = bounds.shape[1] - 1, groups.where(refused)
    cut = groups.where(accepted)
    return Open(
        np.concatenate([bounds[:, :-1].ravel(), whole.lo]),
        np.concatenate([bounds[:, 1:].ravel(), whole.hi]),
        np.concatenate([np.repeat(cut.cuts + 1, parts), whole.cuts]),
        np.concatenate([np.repeat(cut.refusals, parts), whole.refusals + 1]),
    )
