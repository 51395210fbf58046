"""CODIP: several sensitive attributes in several tables, so that none of them gives the others away [CODIP].

Each table has all quasi-identifiers and some of the sensitive attributes, is grouped on its own, and has its rows in
an order of its own. What is lost is the association between attributes of different tables (Γα); what is gained is
that whoever knows one attribute of a person learns less about the others (Γβ), and that each table can be closer.

Each subset of the sensitive attributes is grouped by a method of its own choice, once. How close to the whole table
such tables can be is measured over all full-domain recodings that are allowed: the least largest distance of a class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from maskwright.domain.association import Association, Contingency, Subset, Tables
from maskwright.domain.distances import class_distances
from maskwright.domain.exact import Exact, number_text
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Method, Part, Task
from maskwright.domain.model import Need
from maskwright.domain.projection import task_for
from maskwright.domain.references import furnished_classes
from maskwright.domain.sensitive import Count
from maskwright.domain.settings import build_registered, did_you_mean
from maskwright.domain.unmet_requirements import unmet_requirement
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.methods._lattice.lattice import Lattice, group_tuples
from maskwright.methods._plans.table_plans import (
    MOST,
    Best,
    Frontier,
    Remembered,
    best_plan,
    greedy_plan,
    normal_form,
    pareto_frontier,
)
from maskwright.policy.policy import MethodChoice, Named

MOST_CHECKS = 2000  # nodes times attributes: beyond this it takes more than a few seconds


@dataclass(eq=False)
class Projections:
    """Makes the table of a subset of attributes, or says why it cannot be made. Every subset is tried once.

    Attributes:
        task: the whole table.
        base: the method that groups each table.
        cap: the largest discernibility allowed of a table.
        made, refused: what was tried so far.
    """

    task: Task
    base: Method
    cap: int | None = None
    made: dict[Subset, Part] = field(default_factory=dict)
    refused: dict[Subset, PolicyNotMet] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The sensitive attributes of the table."""
        return tuple(self.task.summary.sensitive)

    def good(self, subset: Subset) -> bool:
        """Can this table be made so that every requirement about it holds?"""
        if subset not in self.made and subset not in self.refused:
            self.task.progress.check()
            try:
                self.made[subset] = self._make(subset)
            except PolicyNotMet as reason:
                self.refused[subset] = reason
        return subset in self.made

    def _make(self, subset: Subset) -> Part:
        task = task_for(self.task, [self.names[i] for i in subset])
        grouping = self.base.group(task)
        _refuse_failing_gates(task, grouping)
        if self.cap is not None and grouping.discernibility > self.cap:
            raise PolicyNotMet(
                f"discernibility is {grouping.discernibility}, asked at most {self.cap}"
                + ("; base: {objective: discernibility} may do better" if self.other_objective else "")
            )
        return Part("data", task, self.base, grouping)

    @property
    def other_objective(self) -> bool:
        """Could the base method look for the least discernibility, but does not?"""
        return getattr(self.base, "objective", "discernibility") != "discernibility"

    def in_words(self, subset: Subset) -> str:
        """The names of the attributes of a subset."""
        return ", ".join(self.names[i] for i in subset)


def _refuse_failing_gates(task: Task, grouping: Grouping) -> None:
    needs = frozenset[Need]().union(*(model.needs() for model in task.gates))
    classes = furnished_classes(grouping, needs, task.census)
    classes = replace(classes, sensitive=grouping.published_classes.sensitive)
    for model in task.gates:
        verdict = model.check(classes, task.context)
        if not verdict.ok:
            raise unmet_requirement(model, verdict, classes, task.context)


@dataclass(eq=False)
class NodeCloseness:
    """`distance[c, a]` is the largest distance (equal) of a class from the whole table at candidate c, attribute a."""

    distance: NDArray[np.float64]
    known: dict[Subset, float] = field(default_factory=dict)

    def of(self, subset: Subset) -> float:
        """The closeness that a table with these attributes can reach."""
        if subset not in self.known:
            self.known[subset] = float(self.distance[:, list(subset)].max(axis=1).min())
        return self.known[subset]

    def levels(self, most: int = 3) -> list[float]:
        """A few closenesses between what singletons and what one table can reach."""
        n = self.distance.shape[1]
        low, high = max(self.of((i,)) for i in range(n)), self.of(tuple(range(n)))
        between = np.unique(self.distance[(self.distance >= low) & (self.distance < high)])
        if not len(between):
            return []
        return sorted({float(between[round(q * (len(between) - 1))]) for q in np.linspace(0, 1, most)})


def node_closeness(task: Task, cap: int | None = None, most: int = MOST_CHECKS) -> NodeCloseness | None:
    """The closeness at every node that satisfies the models about quasi-identifiers and a cap on discernibility.

    None: there is no such node, or there are too many to look at. Suppression is not considered.
    """
    summary = task.summary
    lattice = Lattice.of(summary.attributes, task.levels)
    if lattice.n_nodes * len(summary.sensitive) > most or summary.shared is not None:
        return None
    models = [m for m in (*task.search, *task.gates) if m.about == "quasi-identifiers" and not m.needs()]
    found = []
    for number in range(lattice.n_nodes):
        task.progress.check()
        group_of, n = group_tuples(summary, lattice.node(number))
        rows = np.bincount(group_of, weights=summary.rows, minlength=n)
        if cap is not None and float((rows * rows).sum()) > cap:
            continue
        if not all(m.passing(summary.classes(group_of, n), task.context).all() for m in models):
            continue
        classes = summary.classes(group_of, n)
        found.append(
            [
                max(map(float, class_distances(vc, task.context.reference[name], "equal")), default=0.0)
                for name, vc in classes.sensitive.items()
            ]
        )
    return NodeCloseness(np.array(found)) if found else None


def _share(value: Fraction) -> Fraction:
    if not 0 <= value <= 1:
        raise ValueError("alpha and beta are shares, between 0 and 1")
    return value


def _plan(value: Any) -> Any:
    if isinstance(value, str) and value not in ("greedy", "best"):
        raise ValueError(f"{value!r} is no plan; write greedy, best, or lists of columns: [[a, b], [c]]")
    return value


Share = Annotated[Exact, AfterValidator(_share)]
Columns = tuple[tuple[str, ...], ...]
Plan = Annotated[Literal["greedy", "best"] | Columns, BeforeValidator(_plan)]
Base = Annotated[
    MethodChoice,
    PlainSerializer(lambda chosen: chosen.as_policy("name"), return_type=dict[str, Any]),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
]


class Codip(Method):
    """Publishes the sensitive attributes in several tables that cannot be joined (CODIP, CODIP*).

    Attributes:
        plan: which attributes share a table: lists of columns; `greedy` (CODIP*) merges the most associated ones as
            long as all thresholds hold; `best` finds the plan with the least association loss.
        base: the method that groups each table, with its settings (default: optimal-lattice).
        alpha: the largest association loss Γα.
        beta: the largest information exposure Γβ.
        discernibility: the largest discernibility of a table.
    """

    name: ClassVar[str] = "codip"
    several_tables: ClassVar[bool] = True

    plan: Plan = "greedy"
    base: Base | None = None
    alpha: Share = Fraction(1)
    beta: Share = Fraction(1)
    discernibility: Count | None = None

    def group(self, task: Task) -> Grouping:
        """The groups of one table with every sensitive attribute, as the base method makes them."""
        return self.for_one_table().group(task)

    def for_one_table(self) -> Method:
        """The base method, with the cap on discernibility."""
        from maskwright.methods import METHODS

        chosen = self.base or Named(name="optimal-lattice")
        if chosen.name == self.name:
            raise PolicyError(
                "method.base: codip cannot be its own base; name a method that groups one table"
            )
        parameters = dict(chosen.parameters)
        capped = self.discernibility is not None and chosen.name in METHODS
        if capped and "objective" in METHODS[chosen.name].model_fields:
            parameters.setdefault("objective", "discernibility")  # or the cap would refuse what can be had
        return build_registered(METHODS, "method", chosen.name, parameters, "method.base")

    def plan_by_values(self) -> str:
        """How the plan, or whether it is published, depends on the sensitive columns."""
        if isinstance(self.plan, str):
            return "the plan was chosen by looking at how the sensitive columns are associated"
        if self.alpha < 1 or self.beta < 1:
            return "whether it is published depends on how the sensitive columns are associated (alpha, beta)"
        return ""

    def parts(self, task: Task) -> list[Part]:
        """One table for each subset of the plan."""
        if len(task.summary.sensitive) < 2:
            raise PolicyError(
                "method codip needs at least two sensitive attributes; with fewer there is only one table"
            )
        projections = Projections(task, self.for_one_table(), self.discernibility)
        chooser = Chooser(self, projections, association_of(task))
        tables = chooser.tables()
        figures = chooser.figures(tables)
        plans = {"frontier": frontier_of(task, chooser.association, self.discernibility)}
        parts = []
        for i, subset in enumerate(tables):
            part = projections.made[subset]
            found = {**figures, **part.grouping.search, **(plans if i == 0 else {})}
            grouping = replace(part.grouping, search=found)
            name = "data" if len(tables) == 1 else f"table-{i + 1}"
            parts.append(replace(part, name=name, grouping=grouping))
        return parts


def association_of(task: Task) -> Association:
    """What the sensitive attributes of a table tell about each other; only flagged values expose."""
    counts = Contingency.of(task.summary)
    harmless = {}
    for i, (name, vc) in enumerate(task.summary.sensitive.items()):
        flagged = task.context.flagged.get(name)
        if flagged is not None:
            kept = {value for members in flagged for value in members}
            harmless[i] = [code + 1 for code, value in enumerate(vc.values) if value not in kept]
    return Association.of(counts, harmless)


class Chooser:
    """Chooses the plan, or says which threshold cannot be met and what came nearest."""

    def __init__(self, method: Codip, projections: Projections, association: Association) -> None:
        self.method, self.projections, self.association = method, projections, association
        self.good = Remembered(projections.good)
        self.found: dict[str, Any] = {}

    def tables(self) -> Tables:
        """The plan: given, greedy or best."""
        plan = self.method.plan
        if plan == "greedy":
            return self._greedy()
        if plan == "best":
            return self._best()
        return self._fixed_tables(self._attributes(plan))

    def figures(self, tables: Tables) -> dict[str, Any]:
        """What is reported of the plan."""
        return {
            "plan": [[self.projections.names[i] for i in subset] for subset in tables],
            "association_loss": self.association.alpha(tables),
            "information_exposure": self.association.beta(tables),
            **self.found,
            "tables_tried": len(self.projections.made) + len(self.projections.refused),
        }

    # -- the three kinds of plans ----------------------------------------------------------------------

    def _fixed_tables(self, tables: Tables) -> Tables:
        for subset in tables:
            if not self.projections.good(subset):
                raise self._refused(subset)
        for name, holds, value, bound in (
            ("alpha", self.association.alpha_at_most, self.association.alpha(tables), self.method.alpha),
            ("beta", self.association.beta_at_most, self.association.beta(tables), self.method.beta),
        ):
            if not holds(tables, bound):
                raise PolicyNotMet(
                    f"{WHAT[name]} of the plan is {number_text(value)}, asked at most {number_text(bound)}; {name}: "
                    f"{_up(value)} would suffice, or another plan (plan: best)"
                )
        return tables

    def _greedy(self) -> Tables:
        found = greedy_plan(self.association, self.method.beta, self.good)
        if found.tables is None:
            raise self._refused((found.failing[0],))
        self.found = {"merges": found.merges}
        if self.association.alpha_at_most(found.tables, self.method.alpha):
            return found.tables
        why = "no table is left to merge"
        if found.refused is not None:
            union = self.projections.in_words(found.refused)
            reason = self.projections.refused.get(found.refused)
            why = f"merging {union} would raise {WHAT['beta']} above {number_text(self.method.beta)}"
            if found.why == "requirements":
                why = f"the table of {union} cannot be made: {reason}"
        raise self._too_much_lost(found.tables, f"the least that greedy merging reached, because {why}; plan: best "
                                  "may reach less")  # fmt: skip

    def _best(self) -> Tables:
        found: Best = best_plan(self.association, self.method.beta, self.good)
        if found.tables is None:
            raise self._refused((found.failing[0],))
        star = greedy_plan(self.association, self.method.beta, self.good).tables
        assert star is not None  # noqa: S101 - there is a plan
        self.found = {
            "plans_looked_at": found.visited,
            "proven_best": found.proven,
            "greedy_association_loss": self.association.alpha(star),
            "greedy_information_exposure": self.association.beta(star),
        }
        if self.association.alpha_at_most(found.tables, self.method.alpha):
            return found.tables
        raise self._too_much_lost(found.tables, "the least of all plans that satisfy the rest" if found.proven else
                                  "the least that was found")  # fmt: skip

    # -- words -----------------------------------------------------------------------------------------

    def _refused(self, subset: tuple[int, ...]) -> PolicyNotMet:
        reason = self.projections.refused.get(subset, "a part of it cannot be made")
        return PolicyNotMet(
            f"codip: the table of {self.projections.in_words(subset)} cannot be made: {reason}"
        )

    def _too_much_lost(self, tables: Tables, what: str) -> PolicyNotMet:
        value = self.association.alpha(tables)
        plan = " | ".join(self.projections.in_words(subset) for subset in tables)
        return PolicyNotMet(
            f"{WHAT['alpha']} is {number_text(value)}, asked at most {number_text(self.method.alpha)}; this is {what} "
            f"(plan {plan}); alpha: {_up(value)} would suffice"
        )

    def _attributes(self, plan: Sequence[Sequence[str]]) -> Tables:
        """A plan of columns as one of attributes: a column of sets stands for all its values."""
        names = self.projections.names
        bits = {s.name: s.bits for s in self.projections.task.sets}
        tables = [[b for name in columns for b in bits.get(name, (name,))] for columns in plan]
        # a value of a set that nobody holds is no attribute
        empty = {b for columns in tables for b in columns if b not in names and b.split("=")[0] in bits}
        tables = [kept for columns in tables if (kept := [b for b in columns if b not in empty])]
        listed = [name for columns in tables for name in columns]
        for name in listed:
            if name not in names:
                raise PolicyError(
                    f"method.plan: {name!r} is not sensitive; {did_you_mean(name, [*names, *bits])}"
                )
            if listed.count(name) > 1:
                raise PolicyError(
                    f"method.plan: {name!r} is in two tables; publishing it twice could reveal it"
                )
        if left := [name for name in names if name not in listed]:
            raise PolicyError(f"method.plan: {left[0]!r} is in no table; add it, or drop the column")
        if not all(tables):
            raise PolicyError("method.plan: a table without sensitive attributes is of no use; remove it")
        return normal_form([[names.index(name) for name in columns] for columns in tables])


WHAT = {"alpha": "association loss Γα", "beta": "information exposure Γβ"}


def _up(value: float) -> str:
    """A bound that is met: the value, rounded up."""
    return f"{min(1.0, math.ceil(value * 10_000) / 10_000):g}"


def frontier_of(task: Task, association: Association, cap: int | None) -> dict[str, Any]:
    """The frontier of plans as data; with the closeness of full-domain tables where that is quickly measured.

    Without a cap on discernibility everything in one class is perfectly close, and there is nothing to compare.
    """
    closeness = None if cap is None else node_closeness(task, cap)
    found: list[Frontier] = [pareto_frontier(association, closeness.of if closeness else None)]
    if closeness and found[0].exact:
        found += [pareto_frontier(association, closeness.of, limit) for limit in closeness.levels()]
    names = tuple(task.summary.sensitive)
    return {
        "exact": found[0].exact,
        "most_attributes_for_exact": MOST,
        "fronts": [
            {
                "closeness_at_most": front.limit,
                "points": [
                    {
                        "plan": [[names[i] for i in subset] for subset in p.tables],
                        "association_loss": p.alpha,
                        "information_exposure": p.beta,
                        "closeness": p.closeness,
                    }
                    for p in front.points
                ],
            }
            for front in found
            if front.points
        ],
    }
