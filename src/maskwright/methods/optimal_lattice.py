"""Optimal full-domain recoding: of all lattice nodes that satisfy the policy, the one that loses least.

Every quasi-identifier is published at one level of its hierarchy. The search is exact: the node is proven to
be optimal, ties going to the lexicographically smallest levels (flash-style searches [Kohlmayer et al. 2012]
with bounds in the manner of OLA [El Emam et al. 2009] and of ARX). With a time budget, or in lattices too
large to be listed, the best node found is returned with a proven bound on how far it is from the optimum.

That *anytime search* is `_lattice/anytime.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Decisions, Method, Rival, RowShare, Task
from maskwright.domain.rules import Rule
from maskwright.domain.unmet_requirements import refuse_no_rows
from maskwright.domain.verdict import plain_number
from maskwright.errors import Cancelled, MaskwrightError, NotVerified, PolicyNotMet
from maskwright.kernels.compiled import CompiledChecker
from maskwright.kernels.node_check import Check, Checks, LatticeColumn, NodeProblem, node_checker
from maskwright.methods._lattice import infeasibility
from maskwright.methods._lattice.anytime import Anytime, Relaxed
from maskwright.methods._lattice.full_domain import full_domain
from maskwright.methods._lattice.lattice import Lattice
from maskwright.methods._lattice.node_evaluation import Evaluator, rules_of
from maskwright.methods._lattice.objectives import Bounds, Objective, ObjectiveName, build_objective
from maskwright.methods._lattice.sweep import FastSearch, LatticeSearch, SearchResult, Stop
from maskwright.methods._rows.anatomize import Anatomize, anatomize_groups, no_stars_in_buckets
from maskwright.runtime.time_budget import TimeBudget, TimeTaken


class CountedChecks:
    """Checks whose work is counted."""

    def __init__(self, checks: Checks, work: Callable[[], None]) -> None:
        self.checks, self.work = checks, work
        self.kills = checks.kills

    def check(self, places: tuple[int, ...]) -> Check:
        """Check a node, after its work was counted."""
        self.work()
        return self.checks.check(places)


class Screened:
    """Checks of models of which only some are rules: a kernel decides those first, and most nodes with them.

    Whoever asks for more suppresses no fewer rows, so that a node at which the rules fail fails as a whole.
    """

    def __init__(self, rules: Checks, models: Evaluator) -> None:
        self.rules, self.models = rules, models
        self.kills = models.kills

    def check(self, places: tuple[int, ...]) -> Check:
        """Check a node by its rules, and by everything where they hold."""
        first = self.rules.check(places)
        return self.models.check(places) if first.feasible else first


def _counted(task: Task, checks: Checks) -> Checks:
    """The checks; counted, where work is."""
    if not task.progress.counts_work:
        return checks
    by_kernel = isinstance(checks, CompiledChecker)
    usual_s = task.summary.n_tuples * len(task.summary.codes) * (CHECK_S if by_kernel else MODEL_CHECK_S)
    return CountedChecks(checks, lambda: task.progress.work(ANY_CHECK_S + usual_s))


FAST_CHECK_S = 0.5e-9  # usual seconds for a value of a tuple, in a check of a node without Python in between
ANY_CHECK_S = 50e-6  # usual seconds of any other check, and for each value:
CHECK_S = 1e-9  # in a check by a kernel
MODEL_CHECK_S = 10e-9  # in a check by the models themselves
FAST_S = 1.0  # usual seconds of a counted search through a whole lattice
LISTED = 400_000  # lattices up to this size are searched to the end
# for larger ones, unless the policy says otherwise: some seconds, and one more for so many codes of tuples, because
# what a check takes, and all other work, grows with them
BUDGET_S, CODES_PER_S, MOST_S = 10.0, 1_000_000, 50.0
POINTS = 20  # of the curve of an anytime search, which are kept


class NodeSearch(Method):
    """The options of every search for one node of the lattice."""

    proven_settings: ClassVar[frozenset[str]] = frozenset(
        {"objective", "suppression", "suppress", "suppressed_rows", "anatomize"}
    )
    whole_columns: ClassVar[bool] = True

    objective: ObjectiveName = "information-loss"
    suppression: RowShare = Field(default=0, validate_default=True)
    suppress: Literal["small-classes", "failing-classes"] = "small-classes"
    suppressed_rows: Literal["drop", "star"] = "drop"
    anatomize: Anatomize = None

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        return no_stars_in_buckets(self)

    def decisions(self) -> Decisions:
        """One node for all tuples, blind without models of values."""
        drops = self.suppress == "failing-classes" and self.suppression > 0
        return Decisions(blind=True, shape="node", by_tuples=True, drops_failing=drops)

    def most_left_out(self, task: Task) -> int | None:
        """The rows that may be suppressed."""
        return int(self.suppression * task.summary.n_rows)

    def optimal(self) -> OptimalLattice:
        """The optimal search with the same options: it knows how to check a node, and how to refuse."""
        return OptimalLattice(
            objective=self.objective,
            suppression=self.suppression,
            suppress=self.suppress,
            suppressed_rows=self.suppressed_rows,
        )

    def refuse(self, task: Task) -> MaskwrightError:
        """Why no node satisfies the policy."""
        try:
            found = self.optimal().group(task)
        except PolicyNotMet as problem:
            return problem
        return NotVerified(f"{self.name} missed the node {list(found.levels or ())}; please report this")


class OptimalLattice(NodeSearch):
    """The best full-domain recoding that satisfies the policy, proven optimal.

    Attributes:
        objective: what is made as small as possible.
        suppression: the share of rows that may be suppressed.
        suppress: small-classes removes classes with fewer than k people; failing-classes removes every class
            that fails a requirement (then absence itself is information).
        suppressed_rows: drop them, or publish them as `*`; then they must satisfy the policy as a group.
        budget_s: stop after so many seconds with the best node found and a proven bound.
        anatomize: split the classes further into buckets with this many different values of the sensitive column.
    """

    name: ClassVar[str] = "optimal-lattice"
    proven_settings: ClassVar[frozenset[str]] = NodeSearch.proven_settings | {"budget_s"}

    budget_s: float | None = Field(default=None, gt=0)

    def group(self, task: Task) -> Grouping:
        """Search the lattice, and publish the best node."""
        taken = TimeTaken()
        refuse_no_rows(task.summary)
        lattice = Lattice.of(task.summary.attributes, task.levels)
        objective = build_objective(self.objective, lattice, task.summary, task.weights)
        problem = self.problem(task, lattice, objective)
        found = self._search(task, lattice, objective, problem)
        if found.best is None:
            raise self._refusal(task, lattice, problem, found)
        node = lattice.node(found.best)
        report = self._report(lattice, objective, found)
        report |= taken.as_dict()
        grouping = full_domain(task, problem, node, found.suppressed, report)
        return anatomize_groups(task, grouping, self.anatomize) if self.anatomize else grouping

    def rivals(self, task: Task, published: Grouping) -> list[Rival] | None:
        """The nodes of a better score that fail for their values."""
        from maskwright.methods._lattice.rivals import by_score, rival_nodes

        return None if published.levels is None else rival_nodes(task, published.levels, self, by_score)

    def problem(
        self, task: Task, lattice: Lattice, objective: Objective, limit: int | None = None
    ) -> NodeProblem:
        """The task as the kernels see it."""
        summary = task.summary
        rules = rules_of(list(task.search), task.context) or ()
        columns = []
        for a, codes in enumerate(summary.codes):
            blocks = tuple(lattice.level(a, place).blocks for place in range(lattice.shape[a]))
            costs, cap = ((), 0) if objective.kind != "rows" else (objective.costs[a], objective.caps[a])
            if lattice.allowed[a] == (lattice.attributes[a].top,):
                codes = np.zeros_like(codes)  # every value alike: nothing to tell apart
            columns.append(LatticeColumn(codes, blocks, costs, cap))
        problem = NodeProblem(
            tuple(columns),
            summary.rows,
            summary.sizes,
            {},
            (),
            max((m.least_size(task.context) for m in task.search), default=1),
            self.suppress == "small-classes",
            self.suppressed_rows == "star",
            int(self.suppression * summary.n_rows) if limit is None else limit,
        )
        return self._asking(task, problem, rules)

    def checks(self, task: Task, lattice: Lattice, problem: NodeProblem) -> Checks:
        """The fastest way to check a node that is right for these models."""
        evaluator = Evaluator(task, problem, lattice.allowed)
        if not task.summary.whole_tuples_are_people:
            return evaluator
        if problem.rules:  # all models are rules
            return node_checker(problem)
        known = [model for model in task.search if model.kernel(task.context) is not None]
        if len(known) == len(task.search):
            return node_checker(problem)
        rules = rules_of(known, task.context)
        if not rules or problem.star:  # more rows in the starred group may make it pass
            return evaluator
        return Screened(node_checker(self._asking(task, problem, rules)), evaluator)

    @staticmethod
    def _asking(task: Task, problem: NodeProblem, rules: tuple[Rule, ...]) -> NodeProblem:
        """The problem with these rules, and the values that they look at."""
        names = sorted({rule.looks_at for rule in rules if rule.looks_at is not None})
        return replace(problem, rules=rules, sensitive={name: task.summary.sensitive[name] for name in names})

    def _search(
        self, task: Task, lattice: Lattice, objective: Objective, problem: NodeProblem
    ) -> SearchResult:
        bounds = Bounds(objective, lattice, problem.least, task.summary)
        listed = lattice.n_nodes <= LISTED
        budget = self.budget_s if listed else self._seconds(task)
        stop = Stop(time=None if budget is None else TimeBudget(budget, time.monotonic))
        cells, counted = max(1, task.summary.n_tuples * len(task.summary.codes)), task.progress.counts_work
        if counted:
            stop = Stop(checks=max(1, int(FAST_S / (FAST_CHECK_S * cells))) if listed else None)

        def _watch(text: str, share: float) -> None:
            task.progress.share(share, text)

        checks = self.checks(task, lattice, problem)
        if counted and not (listed and isinstance(checks, CompiledChecker)):
            checks = _counted(task, checks)
        if not listed:
            project = partial(self._project, task, problem.limit)
            return Anytime(lattice, bounds, checks, problem.limit, _watch, project).run(stop)
        if isinstance(checks, CompiledChecker):
            found = FastSearch(lattice, bounds, checks, _watch).run(stop)
            task.progress.work(FAST_CHECK_S * cells * found.checked)
            if counted and found.best is None and not found.complete:
                raise Cancelled("not found by the work that is allowed")
            return found
        return LatticeSearch(lattice, bounds, checks, problem.limit, _watch).run(stop)

    def _seconds(self, task: Task) -> float:
        """The time of a search through a lattice that is too large to be listed."""
        codes = task.summary.n_tuples * len(task.summary.attributes)
        return self.budget_s or min(MOST_S, BUDGET_S + codes / CODES_PER_S)

    def _project(self, task: Task, limit: int, chosen: frozenset[int] | None) -> LatticeSearch:
        """A search over the chosen columns alone, all others at their top: what must be lost there is lost.

        None chosen: over all columns, with their tops where the policy leaves them out.
        """
        summary = task.summary
        full = Lattice.of(summary.attributes, task.levels)
        columns = enumerate(summary.attributes)
        if chosen is None:
            allowed = tuple(tuple(sorted({*full.allowed[a], h.top})) for a, h in columns)
        else:
            allowed = tuple(full.allowed[a] if a in chosen else (h.top,) for a, h in columns)
        lattice = Lattice(full.attributes, allowed)
        whole = build_objective(self.objective, lattice, summary, task.weights)
        factors = tuple(f if chosen is None or a in chosen else 0 for a, f in enumerate(whole.factors))
        objective = replace(whole, factors=factors)
        problem = self.problem(task, lattice, objective, limit)
        checks = Relaxed(_counted(task, self.checks(task, lattice, problem)), limit)
        bounds = Bounds(objective, lattice, problem.least, summary)
        return LatticeSearch(lattice, bounds, checks, limit, lambda text, share: task.progress.check())

    def _report(self, lattice: Lattice, objective: Objective, found: SearchResult) -> dict[str, Any]:
        assert found.best is not None  # noqa: S101 - for the type checker
        score = objective.score(found.vector)
        lower = float(score) if found.complete or found.lower is None else min(float(score), found.lower)
        others = sorted((s, n) for s, n in found.others if n != found.best)[:5]
        every = -(-len(found.curve) // POINTS) or 1
        names = ("seconds", "score", "bound")
        curve = [dict(zip(names, point, strict=True)) for point in found.curve[::-every][::-1]]
        return {
            "objective": self.objective,
            "score": plain_number(score),
            "levels": lattice.names(lattice.node(found.best)),
            "nodes": lattice.n_nodes,
            "checked": found.checked,
            "optimal": found.complete,
            "bound": lower,
            "gap": (float(score) - lower) / float(score) if score else 0.0,
            **({"curve": curve} if curve else {}),
            "alternatives": [
                {"levels": lattice.names(lattice.node(n)), "score": objective.unscaled(s)} for s, n in others
            ],
        }

    def _refusal(
        self, task: Task, lattice: Lattice, problem: NodeProblem, found: SearchResult
    ) -> PolicyNotMet:
        """Search again for the node that suppresses least, to say what would work."""
        if not found.complete:
            return PolicyNotMet(
                f"no node that satisfies the policy was found within {self._seconds(task):g} s "
                f"({found.checked} of {lattice.n_nodes} nodes checked); allow more time (budget_s)"
            )
        rows = task.summary.n_rows
        if problem.limit < rows:
            objective = build_objective("suppressed", lattice, task.summary, task.weights)
            relaxed = self.problem(task, lattice, objective, limit=rows)
            best = self._search(task, lattice, objective, relaxed)
            if best.best is not None:
                node = lattice.node(best.best)
                return infeasibility.too_much_suppressed(task, lattice, node, best.vector[0], problem.limit)
        return infeasibility.no_node_error(task, Evaluator(task, problem, lattice.allowed), lattice)
