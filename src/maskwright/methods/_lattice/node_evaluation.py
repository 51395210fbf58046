"""The plain evaluation of a node: `Summary.classes` counts, the models decide. Right for every model.

The compiled kernel is a faster way to the same figures; whatever node a search returns is evaluated here once
more before it is published.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints, Originals
from maskwright.domain.guards import merged_guards
from maskwright.domain.method import Task
from maskwright.domain.model import Context, Model
from maskwright.domain.references import count_matches
from maskwright.domain.rules import Rule
from maskwright.domain.sample import weight_totals
from maskwright.domain.summary import Summary
from maskwright.kernels.node_check import Check, ClassFates, NodeProblem, summarise_node
from maskwright.kernels.rule_checks import Bools, decide_classes
from maskwright.methods._lattice.lattice import Node, group_tuples


@dataclass(frozen=True)
class Suppression:
    """What may be suppressed: `limit` rows; small classes only (`by_size`), or whatever fails; starred or not."""

    limit: int
    by_size: bool
    star: bool


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A node, evaluated: the class of each tuple, all classes before suppression, and their fate."""

    group_of: Ints
    classes: Classes
    outcome: ClassFates


class Evaluator:
    """Checks nodes with `Summary.classes` and `Model.passing`; works for units, too."""

    def __init__(self, task: Task, problem: NodeProblem, allowed: tuple[tuple[int, ...], ...]) -> None:
        self.task = task
        self.problem = problem
        self.allowed = allowed
        self.local = all(m.is_local() for m in task.search)
        self.kills = task.summary.shared is None and all(
            m.is_local() and (m.merge_safe or m.hereditary or m.kernel(task.context) is not None)
            for m in task.search
        )

    @cached_property
    def _by_size(self) -> Evaluator:
        """The same without sensitive values, which take longest to count, where the search does not look at them."""
        summary = self.task.summary
        if not summary.sensitive or any(m.about != "quasi-identifiers" for m in self.task.search):
            return self
        return Evaluator(
            replace(self.task, summary=replace(summary, sensitive={})), self.problem, self.allowed
        )

    def check(self, places: tuple[int, ...]) -> Check:
        """Check the node at these places among the allowed levels."""
        node = tuple(levels[place] for levels, place in zip(self.allowed, places, strict=True))
        found = self._by_size.evaluate(node)
        first = np.zeros(found.classes.n, dtype=np.int64)
        first[found.group_of[::-1]] = np.arange(len(found.group_of))[::-1]
        return summarise_node(self.problem, places, first, found.classes.rows, found.outcome)

    def evaluate(self, node: Node) -> Evaluation:
        """Count the classes of a node, and decide which of them are suppressed."""
        summary = self.task.summary
        group_of, n_groups = group_tuples(summary, node)
        classes = _furnish(self.task, node, group_of, summary.classes(group_of, n_groups))
        passes, lost = self._verdicts(classes)
        if self.problem.by_size:
            gone = classes.sizes < self.problem.least
            lost = np.where(gone, classes.rows, lost)
        else:
            gone = self._failing(classes, passes)
        return Evaluation(
            group_of, classes, ClassFates(gone, lost, self._holds(node, group_of, classes, gone))
        )

    def _verdicts(self, classes: Classes) -> tuple[Bools, Ints]:
        """Which classes pass every model that decides class by class, and what failing classes must lose at least."""
        passes = np.ones(classes.n, dtype=bool)
        lost = np.zeros(classes.n, dtype=np.int64)
        for model in self.task.search:
            if not model.is_local():
                continue  # what it says of a class depends on which others are dropped
            ok = model.passing(classes, self.task.context)
            passes &= ok
            lost = np.maximum(lost, self._must_lose(model, classes, ok))
        return passes, lost

    def _must_lose(self, model: Model, classes: Classes, ok: Bools) -> Ints:
        """Rows that every feasible refinement of a failing class loses; 0 where nothing is known."""
        none = np.zeros(classes.n, dtype=np.int64)
        rules = model.kernel(self.task.context)
        if self.task.summary.shared is not None:  # people do not add up: only these rules stay monotone
            rules = tuple(r for r in rules or () if r.adds_up)
        if rules is not None:
            return _max_of([decide_classes(rule, classes)[1] for rule in rules], none)
        if model.hereditary:
            return np.where(ok, 0, classes.rows)
        return np.where(ok, 0, 1) if model.merge_safe else none

    def _failing(self, classes: Classes, passes: Bools) -> Bools:
        """Failing classes; where classes depend on each other, until those that remain pass together."""
        if self.local:
            return ~passes
        while passes.any():
            kept = classes.take(passes)
            ok = np.ones(kept.n, dtype=bool)
            for model in self.task.search:
                ok &= model.surviving(kept, self.task.context)
            if ok.all():
                break
            passes = passes.copy()
            passes[np.flatnonzero(passes)[~ok]] = False
        return ~passes

    def _holds(self, node: Node, group_of: Ints, classes: Classes, gone: Bools) -> bool:
        """Do all models hold on what would be published?"""
        if self.local and not gone.any():
            return all(bool(m.passing(classes, self.task.context).all()) for m in self.task.search)
        published, _ = published_groups(self.task.summary, node, group_of, gone, self.problem.star)
        classes = what_is_published(self.task, node, published, classes, gone, self.problem.star)
        return classes.n > 0 and all(
            bool(m.passing(classes, self.task.context).all()) for m in self.task.search
        )


def _max_of(arrays: list[Ints], none: Ints) -> Ints:
    return np.maximum.reduce(arrays) if arrays else none


def published_groups(
    summary: Summary, node: Node, group_of: Ints, gone: Bools, star: bool
) -> tuple[Ints, int | None]:
    """The published group of each tuple (-1: dropped), kept classes in order, then the starred group if any."""
    number = np.where(gone, -1, np.cumsum(~gone) - 1)
    starred = int((~gone).sum()) if star and gone.any() else None
    if starred is not None:
        number[gone] = starred
    return number[group_of], starred


def _furnish(task: Task, node: Node, group_of: Ints, classes: Classes, starred: bool = False) -> Classes:
    """Add to the classes what the models of the search need to know of them; the last one may be starred."""
    needs = task.needs()
    if "originals" in needs:
        classes = replace(classes, originals=Originals.of(group_of, task.summary.sizes, classes.n))
    if "sample" in needs and task.summary.weights is not None:
        classes = replace(classes, weights=weight_totals(group_of, task.summary.weights, classes.n))
    if "guards" in needs:
        classes = replace(classes, guards=merged_guards(task.summary.guards, group_of))
    if needs & {"labels", "population"}:
        classes = replace(
            classes,
            attributes=tuple(h.attribute for h in task.summary.attributes),
            codes=_codes(task.summary, node, group_of, classes.n, starred),
        )
    if "population" in needs and task.census is not None and classes.codes is not None:
        blocks = [h.levels[n].blocks for h, n in zip(task.summary.attributes, node, strict=True)]
        population = count_matches(task.census, blocks, classes.codes)
        if starred:  # `*` may be anybody
            population[-1] = task.census.n_people
        classes = replace(classes, population=population)
    return classes


def _codes(summary: Summary, node: Node, group_of: Ints, n: int, starred: bool) -> NDArray[np.int32]:
    """The block that each class publishes in each column; a starred one differs, except where all is `*`."""
    first = np.zeros(n, dtype=np.int64)
    inside = np.flatnonzero(group_of >= 0)[::-1]
    first[group_of[inside]] = inside
    codes = np.empty((len(node), n), dtype=np.int32)
    for a, (h, c, number) in enumerate(zip(summary.attributes, summary.codes, node, strict=True)):
        codes[a] = h.levels[number].blocks[c[first]]
        if starred:
            codes[a, -1] = 0 if number == h.top else len(h.levels[number].labels)
    return codes


def what_is_published(
    task: Task, node: Node, published: Ints, classes: Classes, gone: Bools, star: bool
) -> Classes:
    """The classes that remain, and the starred one if there is one."""
    if not gone.any():
        return classes
    if not star:
        return classes.take(~gone)
    n_groups = int(published.max()) + 1
    return _furnish(task, node, published, task.summary.classes(published, n_groups), starred=True)


def rules_of(models: list[Model], context: Context) -> tuple[Rule, ...] | None:
    """All models as rules, or None when one of them is not a conjunction of rules."""
    rules: list[Rule] = []
    for model in models:
        part = model.kernel(context)
        if part is None:
            return None
        rules.extend(part)
    return tuple(dict.fromkeys(rules))
