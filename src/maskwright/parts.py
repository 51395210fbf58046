"""One part of a release: a grouping of the rows, the tables that it becomes, and what is found in them again.

Most releases have one part; codip makes one for each subset of the sensitive attributes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maskwright.core.classes import Classes, Originals
from maskwright.core.grouping import Grouping
from maskwright.core.method import Piece
from maskwright.core.model import Model, Need
from maskwright.core.plan import GroupPlan, Plan
from maskwright.core.population import furnished
from maskwright.core.projection import concerning
from maskwright.core.verdict import Verdict
from maskwright.engines.base import Engine, Recount, Table
from maskwright.errors import NotVerified, PolicyError
from maskwright.resolve import Resolved
from maskwright.tables import (
    Layout,
    check_members,
    class_names,
    compare,
    labels_of,
    make_tables,
    plan_tables,
    planned,
    recounted,
)
from maskwright.verify import classes_from, measure


@dataclass(frozen=True, eq=False)
class MadePart:
    """A part whose tables are recoded, and not yet written.

    Attributes:
        piece: what the method made.
        resolved: the policy, and the table that it met.
        models: the requirements that concern this part.
        classes: of the grouping, with what the models need to know of them.
        plan: what the engine did, and
        layouts: what its tables look like.
        tables: the tables.
        counted: the people of each class, where a person may have several rows.
    """

    piece: Piece
    resolved: Resolved
    models: Sequence[Model]
    classes: Classes
    plan: Plan | GroupPlan
    layouts: Sequence[Layout]
    tables: Mapping[str, Table]
    counted: list[Recount] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.piece.name

    @property
    def grouping(self) -> Grouping:
        return self.piece.grouping

    @property
    def needs(self) -> frozenset[Need]:
        return needs_of(self.models)

    def recount(self, engine: Engine, tables: Mapping[str, Table]) -> tuple[Verdict, ...]:
        """Measure tables as they are, and refuse them unless they are exactly what was planned and asked."""
        policy, summary = self.resolved.policy, self.grouping.summary
        found = recounted(engine, tables, self.layouts)
        compare(planned(self.grouping, self.plan, policy.recoding.name), found)
        check_members(engine, tables, self.layouts, self.plan)
        if policy.unit:
            found = self.people(engine)
        specs = [s for s in self.resolved.spec.sensitive if s.name in summary.sensitive]
        classes = classes_from(found, self.layouts[0].classes_by, specs)
        verdicts = measure(self.furnish(classes, found), self.models, self.piece.task.context)
        for verdict in verdicts:
            if not verdict.ok:
                raise NotVerified(f"the recounted table does not satisfy the policy: {verdict.sentence()}")
        return verdicts

    def kept(self, engine: Engine) -> MadePart:
        """The same, for tables that will be read more than once."""
        return replace(self, tables={name: engine.keep(table) for name, table in self.tables.items()})

    def people(self, engine: Engine) -> Recount:
        """Count people per class: recode once more with the unit column, which is never published. Counted once."""
        if not self.counted:
            policy, unit = self.resolved.policy, self.resolved.policy.unit or ""
            plan = replace(self.plan, columns=(*self.plan.columns, unit))
            with_unit = engine.keep(engine.recode(self.resolved.source, plan))
            sensitive = tuple(self.grouping.summary.sensitive)
            self.counted.append(engine.recount(with_unit, policy.quasi_identifiers, sensitive, unit))
        return self.counted[0]

    def recorded_classes(self, engine: Engine, written: Mapping[str, Table]) -> dict[str, Any] | None:
        """What nobody can count in the public table, for a later `verify`."""
        unit = self.resolved.policy.unit
        ancestors = "ancestors" in self.needs and self.grouping.ancestors is not None
        if not unit and not ancestors and not self.needs & {"population", "originals"}:
            return None
        found = self.people(engine) if unit else recounted(engine, written, self.layouts)
        classes = self.furnish(Classes(found.people, found.rows), found)
        record: dict[str, Any] = {"labels": found.labels}
        record |= {"rows": found.rows.tolist(), "people": found.people.tolist()}
        record["values"] = {name: found.entries(name) for name in found.values} if unit else {}
        if classes.population is not None:
            record["population"] = classes.population.tolist()
        if classes.originals is not None:
            record["originals"] = [classes.originals.start.tolist(), classes.originals.sizes.tolist()]
        if classes.ancestors is not None:
            record["ancestors"] = classes.ancestors.parent.tolist()
        return record

    def furnish(self, classes: Classes, found: Recount) -> Classes:
        """Add to recounted classes what the models need to know of them and no table shows."""
        classes = self._with_ancestors(classes, found)
        if not self.needs & {"population", "originals"}:
            return classes
        if self.layouts[0].classes_by != tuple(x.attribute for x in self.grouping.labels):
            raise PolicyError("population tables and m-confidentiality need recoding: generalise")
        group = {labels_of(self.grouping, g): g for g in range(self.grouping.classes.n)}
        order = np.array([group[labels] for labels in found.labels])
        mine, changes = self.classes, dict[str, Any]()
        if mine.population is not None:
            changes["population"] = mine.population[order]
        if mine.originals is not None:
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            class_of = np.repeat(place, np.diff(mine.originals.start))
            changes["originals"] = Originals.of(class_of, mine.originals.sizes, len(order))
        return replace(classes, **changes)

    def _with_ancestors(self, classes: Classes, found: Recount) -> Classes:
        """The groups that classes were split from; groups that share their labels are one class."""
        if "ancestors" not in self.needs or self.grouping.ancestors is None:
            return classes
        place = {labels: c for c, labels in enumerate(found.labels)}
        names = class_names(self.grouping, self.plan, self.resolved.policy.recoding.name)
        class_of = np.array([place[labels] for labels in names], dtype=np.int64)
        return replace(classes, ancestors=self.grouping.ancestors.merged(class_of, classes.n))


def needs_of(models: Sequence[Model]) -> frozenset[Need]:
    return frozenset[Need]().union(*(model.needs() for model in models))


def classes_of(piece: Piece, models: Sequence[Model]) -> Classes:
    """The classes of a piece as its models look at them; a method may have distorted values."""
    classes = furnished(piece.grouping, needs_of(models), piece.task.census)
    return replace(classes, sensitive=piece.grouping.published_classes.sensitive)


def models_for(piece: Piece, resolved: Resolved) -> list[Model]:
    """The requirements that concern a piece, in the order of the policy."""
    return concerning(resolved.models, tuple(piece.grouping.summary.sensitive))


def make_part(
    engine: Engine | None, piece: Piece, resolved: Resolved, first: bool, key: str, rng: np.random.Generator
) -> MadePart:
    """Recode the tables of a piece; the first one of a release also has the insensitive columns.

    Without an engine everything is planned and nothing recoded.
    """
    policy, mine = resolved.policy, set(piece.grouping.summary.sensitive)
    every = [s.name for s in resolved.spec.sensitive]
    insensitive = set(policy.with_role("insensitive"))
    columns = [
        c for c in resolved.published if c in mine or (c not in every and (first or c not in insensitive))
    ]
    drop = [*policy.quasi_identifiers, *every] if resolved.spec.drop_missing else []
    # a key of its own, so that the order of rows is drawn anew and nothing joins the tables of a release
    own = hashlib.sha256(f"{piece.name}\0{key}".encode()).hexdigest()
    plan, layouts = plan_tables(piece, policy.recoding, columns, drop, own, rng)
    tables = make_tables(engine, resolved.source, plan, layouts) if engine is not None else {}
    models = models_for(piece, resolved)
    return MadePart(piece, resolved, models, classes_of(piece, models), plan, layouts, tables)
