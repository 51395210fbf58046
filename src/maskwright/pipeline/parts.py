"""One part of a release: a grouping of the rows, the tables that it becomes, and what is found in them again.

Most releases have one part; codip makes one for each subset of the sensitive attributes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.attacks.passing_columns import associated_belief, narrowed_belief
from maskwright.domain.adversary import PassingBelief
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Classes, Originals
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Piece
from maskwright.domain.model import Model, Need
from maskwright.domain.projection import models_about
from maskwright.domain.recoding_plan import GroupPlan, Plan
from maskwright.domain.references import References, furnished_classes
from maskwright.domain.sample import weight_totals
from maskwright.domain.verdict import Verdict
from maskwright.engines.base import Engine, Recount, Table
from maskwright.errors import NotVerified, PolicyError
from maskwright.models.belief import BeliefAtMost
from maskwright.pipeline.published_tables import (
    Layout,
    check_members,
    class_names,
    labels_of,
    make_tables,
    plan_tables,
    planned_recount,
    recounted_classes,
    require_equal_counts,
)
from maskwright.policy.binding import Resolved
from maskwright.recode.plans import plan_with_persons
from maskwright.verification.verify import classes_from, measure_models


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
        """The name of the part; empty for the only one."""
        return self.piece.name

    @property
    def grouping(self) -> Grouping:
        """The classes of the part."""
        return self.piece.grouping

    @property
    def references(self) -> References:
        """The distributions of the whole table that models compare with."""
        return References.of(self.grouping, self.piece.task.context)

    @property
    def needs(self) -> frozenset[Need]:
        """The figures of a class that the part's models need."""
        return needs_of(self.models)

    def recount(self, engine: Engine, tables: Mapping[str, Table]) -> tuple[Verdict, ...]:
        """Measure tables as they are, and refuse them unless they are exactly what was planned and asked."""
        policy, summary = self.resolved.policy, self.grouping.summary
        found = recounted_classes(engine, tables, self.layouts)
        require_equal_counts(planned_recount(self.grouping, self.plan, policy.recoding.name), found)
        check_members(engine, tables, self.layouts, self.plan)
        if policy.person_column:
            found = self.people(engine)
        specs = [s for s in self.resolved.spec.sensitive if s.name in summary.sensitive]
        classes = classes_from(found, self.layouts[0].classes_by, specs)
        verdicts = measure_models(self.furnish(classes, found), self.models, self.references)
        for verdict in verdicts:
            about_rows = policy.person_column and verdict.model == BeliefAtMost.name  # judged by the attack
            if not verdict.ok and not about_rows:
                raise NotVerified(f"the recounted table does not satisfy the policy: {verdict.sentence()}")
        return verdicts

    def singled_out(self, engine: Engine, tables: Mapping[str, Table]) -> str:
        """How many rows the insensitive columns single out together with the published labels; empty: none more."""
        layout = self.layouts[0]
        insensitive = [c for c in self.resolved.policy.with_role("insensitive") if c in layout.columns]
        if not insensitive or not tables or self.resolved.policy.recoding.name != "generalise":
            return ""
        rows, alone = self.grouping.published_rows, int((self.grouping.classes.rows == 1).sum())
        _, found, _ = engine.uniqueness(tables[layout.name], [*layout.classes_by, *insensitive])
        if found <= alone:
            return ""
        what = f"insensitive column{'s' if len(insensitive) > 1 else ''} {', '.join(insensitive)}"
        return f"whoever also knows the {what} can single out {found:,} of {rows:,} rows ({100 * found / rows:.3g} %)"

    def passing(self, engine: Engine, tables: Mapping[str, Table]) -> tuple[PassingBelief, ...]:
        """What the insensitive columns tell about the secrets of the requirements on belief."""
        asked = [m for m in self.models if isinstance(m, BeliefAtMost) and m.attribute]
        insensitive = self.resolved.policy.with_role("insensitive")
        if not asked or not insensitive:
            return ()
        layout = self.layouts[0]
        in_rows = self.resolved.policy.recoding.name == "generalise" and set(insensitive) <= set(
            layout.columns
        )
        specs = [s for s in self.resolved.spec.sensitive if s.name in self.grouping.summary.sensitive]
        names = [s.name for s in specs]
        source: dict[str | None, tuple[Table, list[str]]] = {
            column: (self.resolved.source, [column]) for column in insensitive
        }
        if in_rows:
            made = tables or make_tables(
                engine, self.resolved.source, self.plan, self.layouts
            )  # of a trial: none
            table = made[layout.name]
            shown = engine.unfold(table, layout.sets) if layout.sets else table
            source = {None: (shown, [*layout.classes_by, *insensitive])}
        found = []
        for column, (table, by) in source.items():
            classes = classes_from(engine.recount(table, by, names), by, specs)
            for model in asked:
                prior = Belief(self._share_before(model), Fraction(0), "", "")
                shares = model.shares(classes)
                belief = (
                    narrowed_belief(shares, prior, insensitive)
                    if column is None
                    else associated_belief(shares, classes, float(model.max), prior, column)
                )
                found.append(PassingBelief(model.attribute or "", model.sets, belief, in_rows))
        return tuple(found)

    def _share_before(self, model: BeliefAtMost) -> Fraction:
        """The largest share of a secret of a requirement in the whole table."""
        shares = model.shares(self.grouping.summary.totals())
        worst = shares.argmax()
        return Fraction(0) if worst is None else shares[worst]

    def kept(self, engine: Engine) -> MadePart:
        """The same, for tables that will be read more than once."""
        return replace(self, tables={name: engine.keep(table) for name, table in self.tables.items()})

    def people(self, engine: Engine) -> Recount:
        """Count people per class: recode once more with the unit column, which is never published. Counted once."""
        if not self.counted:
            unit = self.resolved.policy.person_column or ""
            plan = plan_with_persons(self.plan, self.grouping, unit)
            with_unit = engine.keep(engine.recode(self.resolved.source, plan))
            sensitive = tuple(self.grouping.summary.sensitive)
            self.counted.append(engine.recount(with_unit, self.layouts[0].classes_by, sensitive, unit))
        return self.counted[0]

    def recorded_classes(self, engine: Engine, written: Mapping[str, Table]) -> dict[str, Any] | None:
        """What nobody can count in the public table, for a later `verify`."""
        unit = self.resolved.policy.person_column
        ancestors = "ancestors" in self.needs and self.grouping.ancestors is not None
        if not unit and not ancestors and not self.needs & {"population", "originals", "sample"}:
            return None
        found = self.people(engine) if unit else recounted_classes(engine, written, self.layouts)
        classes = self.furnish(Classes(found.people, found.rows), found)
        record: dict[str, Any] = {"labels": found.labels}
        record |= {"rows": found.rows.tolist(), "people": found.people.tolist()}
        record["values"] = {name: found.entries(name) for name in found.values} if unit else {}
        if classes.population is not None:
            record["population"] = classes.population.tolist()
        if classes.originals is not None:
            record["originals"] = [classes.originals.start.tolist(), classes.originals.sizes.tolist()]
        if classes.weights is not None:
            record["weights"] = classes.weights.tolist()
        if classes.ancestors is not None:
            record["ancestors"] = classes.ancestors.parent.tolist()
        return record

    def furnish(self, classes: Classes, found: Recount) -> Classes:
        """Add to recounted classes what the models need to know of them and no table shows."""
        classes = self._with_groups(classes, found)
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

    def _with_groups(self, classes: Classes, found: Recount) -> Classes:
        """The classes with what they were split from, and their weights; groups with the same labels are one class."""
        ancestors = self.grouping.ancestors if "ancestors" in self.needs else None
        if ancestors is None and self.classes.weights is None:
            return classes
        place = {labels: c for c, labels in enumerate(found.labels)}
        names = class_names(self.grouping, self.plan, self.resolved.policy.recoding.name)
        class_of = np.array([place[labels] for labels in names], dtype=np.int64)
        changes: dict[str, Any] = {}
        if ancestors is not None:
            changes["ancestors"] = ancestors.merged(class_of, classes.n)
        if self.classes.weights is not None:
            changes["weights"] = weight_totals(class_of, self.classes.weights, classes.n)
        return replace(classes, **changes)


def needs_of(models: Sequence[Model]) -> frozenset[Need]:
    """The figures of a class that any of these models needs."""
    return frozenset[Need]().union(*(model.needs() for model in models))


def classes_of(piece: Piece, models: Sequence[Model]) -> Classes:
    """The classes of a piece as its models look at them; a method may have distorted values."""
    classes = furnished_classes(piece.grouping, needs_of(models), piece.task.census)
    return replace(classes, sensitive=piece.grouping.published_classes.sensitive)


def models_for(piece: Piece, resolved: Resolved) -> list[Model]:
    """The requirements that concern a piece, in the order of the policy."""
    return models_about(resolved.models, tuple(piece.grouping.summary.sensitive))


def make_part(
    engine: Engine | None,
    piece: Piece,
    resolved: Resolved,
    first: bool,
    keys: tuple[str, str],
    rng: np.random.Generator,
) -> MadePart:
    """Recode the tables of a piece; the first one of a release also has the insensitive columns.

    Without an engine everything is planned and nothing recoded. One of the `keys` is behind the order of rows, the
    other behind who of equal people is in which group; `rng` draws group numbers.
    """
    policy, mine = resolved.policy, set(piece.grouping.summary.sensitive)
    every = [s.name for s in resolved.spec.sensitive]
    insensitive = set(policy.with_role("insensitive"))
    columns = [
        c for c in resolved.published if c in mine or (c not in every and (first or c not in insensitive))
    ]
    drop = [*policy.quasi_identifiers, *every] if resolved.spec.drop_missing else []
    # a key of its own, so that the order of rows is drawn anew and nothing joins the tables of a release
    order, members = (hashlib.sha256(f"{piece.name}\0{key}".encode()).hexdigest() for key in keys)
    plan, layouts = plan_tables(piece, policy.recoding, columns, drop, order, rng, policy.person_column)
    if isinstance(plan, GroupPlan):
        plan = replace(plan, members_key=members)
    tables = make_tables(engine, resolved.source, plan, layouts) if engine is not None else {}
    models = models_for(piece, resolved)
    return MadePart(piece, resolved, models, classes_of(piece, models), plan, layouts, tables)
