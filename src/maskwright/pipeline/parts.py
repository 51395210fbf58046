"""One part of a release: a grouping of the rows, the tables that it becomes, and what is found in them again.

Most releases have one part; codip makes one for each subset of the sensitive attributes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks.passing_columns import associated_belief, narrowed_belief
from maskwright.domain.adversary import PassingBelief
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Classes, Ints, Originals, kept_pairs
from maskwright.domain.exact import exact_bincount, percent_text
from maskwright.domain.grouping import Grouping
from maskwright.domain.guards import merged_guards
from maskwright.domain.method import Part
from maskwright.domain.model import Model, Need
from maskwright.domain.projection import models_about
from maskwright.domain.recoding_plan import GroupPlan, Layout, Plan
from maskwright.domain.references import References, furnished_classes
from maskwright.domain.sample import weight_totals
from maskwright.domain.verdict import Verdict
from maskwright.engines.base import Engine, Found, Recount, Table, Texts, shared, spelled
from maskwright.engines.sql.packed_keys import Packing, number
from maskwright.errors import NotVerified, PolicyError, PolicyNotMet
from maskwright.identifiers.date_shifts import DateOffsets, DateShiftRisk, ShiftedEvents
from maskwright.identifiers.pseudonyms import Pseudonyms
from maskwright.models.belief import BeliefAtMost
from maskwright.perturb.publication import PerturbedFamily
from maskwright.pipeline.column_changes import ROW, measured_rows, shadow_of
from maskwright.policy.binding import Resolved
from maskwright.policy.policy import Recoding, Unit
from maskwright.recode.plans import generalisation_plan, group_column, plan_with_persons, shuffled_plan
from maskwright.verification.pseudonym_links import (
    differs_for_somebody,
    fewest_matches,
    too_few_matches,
    unlike_pseudonyms,
)
from maskwright.verification.verify import classes_from, measure_models, recount_tables

Labels = tuple[str | None, ...]
PIECE = (
    1 << 21
)  # entries of a plan that are compared at a time: all of them may be the largest arrays of a run


def plan_tables(
    part: Part,
    recoding: Recoding,
    columns: Sequence[str],
    drop_missing: Sequence[str],
    key: str,
    rng: np.random.Generator,
    person: str | None = None,
) -> tuple[Plan | GroupPlan, list[Layout]]:
    """What the engine must do, and what the tables will look like; `columns` name bits in place of sets.

    `person` is the column that tells persons apart, where they may have several rows.
    """
    grouping, sets, prefix = part.grouping, part.task.sets, "" if part.name == "data" else f"{part.name}-"
    sensitive = tuple(grouping.summary.sensitive)
    if recoding.name == "generalise":
        plan = generalisation_plan(grouping, columns, drop_missing, key, person)
        by = tuple(h.attribute for h in grouping.summary.attributes)
        return plan, [Layout.of(part.name, columns, by, sensitive, sets)]
    if not sensitive:
        raise PolicyError(f"recoding: {recoding.name} needs a sensitive column, and there is none")
    group = group_column(columns)
    plan = shuffled_plan(
        grouping, columns, drop_missing, key, rng, exact=recoding.quasi_identifiers == "exact",
        together=recoding.blocks(sensitive, sets) or (), group_column=group, person=person,
    )  # fmt: skip
    if recoding.name == "permute":
        return plan, [Layout.of(part.name, (group, *columns), (group,), sensitive, sets)]
    others = tuple(c for c in columns if c not in sensitive)
    inside = tuple(c for c in columns if c in sensitive)
    return plan, [
        Layout.of(f"{prefix}quasi-identifiers", (group, *others), (group,), (), ()),
        Layout.of(f"{prefix}sensitive", (group, *inside), (group,), sensitive, sets),
    ]


def make_tables(
    engine: Engine, source: Table, plan: Plan | GroupPlan, layouts: Sequence[Layout]
) -> dict[str, Table]:
    """The recoded tables by name, not yet written."""
    if len(layouts) == 1:
        made: Sequence[Table] = [engine.recode(source, plan)]
    elif isinstance(plan, GroupPlan):
        made = list(engine.bucketize(source, plan).values())
    else:
        raise TypeError("two tables need a plan by groups")
    return {
        layout.name: engine.fold(table, layout.sets) if layout.sets else table
        for layout, table in zip(layouts, made, strict=True)
    }


def recounted_classes(engine: Engine, tables: Mapping[str, Table], layouts: Sequence[Layout]) -> Recount:
    """The classes of the tables as they are."""
    there = {x.name: engine.unfold(tables[x.name], x.sets) if x.sets else tables[x.name] for x in layouts}
    return recount_tables(engine, [(there[x.name], x.classes_by, x.counted) for x in layouts])


def planned_recount(grouping: Grouping, plan: Plan | GroupPlan, recoding: str) -> Recount:
    """What must be found: rows per class, and (where rows are people) how often each value in each class.

    Groups that share their labels are listed apart, but are one class.
    """
    if recoding != "generalise" and isinstance(plan, GroupPlan):
        return _by_number(plan)
    rows, values = grouping.classes.rows, {}
    if grouping.summary.joint is not None:  # otherwise counts are of people, and the table shows rows
        for name, vc in grouping.published_classes.sensitive.items():
            values[name] = Found((None, *vc.values), vc.owner, vc.codes.astype(np.int64), vc.counts)
    shown = grouping.published_labels
    codes = np.stack([labels.of_group for labels in shown]) if shown else _none(len(rows))
    return Recount(tuple(labels.texts for labels in shown), codes, rows, rows, values)


def require_equal_counts(expected: Recount, found: Recount) -> None:
    """The table must hold exactly the classes that were planned, row for row and value for value."""
    classes, size = _classes(expected, found)
    if not _equal(*(_totals([c], x.rows) for c, x in zip(classes, (expected, found), strict=True))):
        raise NotVerified("the classes of the table that was written are not those that were planned")
    for name, mine in expected.values.items():
        theirs = found.values.get(name)
        if theirs is None:
            raise NotVerified(f"the values of column {name!r} were not written")
        one, two, radix = shared(mine.texts, theirs.texts)
        last = Packing.of([size, radix])
        planned = _totals(last.pack([classes[0][mine.owner], one[mine.codes]]), mine.counts)
        written = _totals(last.pack([classes[1][theirs.owner], two[theirs.codes]]), theirs.counts)
        if not _equal(planned, written):
            raise NotVerified(f"the values of column {name!r} that were written differ from the plan")


def check_members(
    engine: Engine, tables: Mapping[str, Table], layouts: Sequence[Layout], plan: Plan | GroupPlan
) -> None:
    """Where classes go by number: each group must hold the quasi-identifiers that were planned for it."""
    if not isinstance(plan, GroupPlan) or plan.group_column is None:
        return
    shown = [
        p for p in plan.published if p.name in layouts[0].columns and p.name not in layouts[-1].sensitive
    ]
    texts: list[Texts] = [p.texts if p.texts is not None else (None, *p.domain) for p in shown]
    kept = np.flatnonzero(plan.groups > 0)
    numbers = np.arange(len(plan.sizes))

    def pieces() -> Iterator[Recount]:
        """The planned members of the groups, in pieces that fit in memory."""
        for begin in range(0, max(1, len(kept)), PIECE):
            some = kept[begin : begin + PIECE]
            codes, rows = np.stack([plan.groups[some], *(p.shown(some) for p in shown)]), plan.rows[some]
            yield Recount((numbers, *texts), codes, rows, rows)

    columns = (plan.group_column, *(p.name for p in shown))
    if not engine.holds(tables[layouts[0].name], columns, pieces()):
        raise NotVerified("the quasi-identifiers that were written are not those planned for their groups")


def _classes(one: Recount, two: Recount) -> tuple[list[Ints], int]:
    """A key for each class of both, the same for classes with the same labels; and a bound of the keys."""
    both = [shared(mine, theirs) for mine, theirs in zip(one.texts, two.texts, strict=True)]
    radices = [radix for _, _, radix in both]
    packing = Packing.of(radices)
    sides = [([x[0] for x in both], one.codes), ([x[1] for x in both], two.codes)]
    keys = [packing.pack(_Translated(*side)) for side in sides]
    if len(packing.words) == 1:
        return [k[0] for k in keys], prod(radices)
    n, words = len(one.rows), [np.concatenate(pair) for pair in zip(*keys, strict=True)]
    numbers = number(words, n + len(two.rows))[1]
    return [numbers[:n], numbers[n:]], len(numbers) + 1


@dataclass(frozen=True, eq=False)
class _Translated:
    """The digits of classes, one column at a time: all of them together may be larger than everything else."""

    numbers: list[Ints]
    codes: NDArray[np.int32]

    def __getitem__(self, i: int) -> Ints:
        digits: Ints = self.numbers[i][self.codes[i]]
        return digits


def _totals(keys: Sequence[Ints], counts: Ints) -> tuple[list[Ints], Ints]:
    """Distinct keys, ascending, with the sum of their counts; keys without any are left out."""
    if len(keys) > 1 or not (np.diff(keys[0]) > 0).all():
        keys, numbers = number(keys, len(counts))
        counts = exact_bincount(numbers, counts, len(keys[0]))
    there = counts != 0
    return [k[there] for k in keys], counts[there]


def _equal(one: tuple[list[Ints], Ints], two: tuple[list[Ints], Ints]) -> bool:
    return all(map(np.array_equal, [*one[0], one[1]], [*two[0], two[1]]))


def _none(n: int) -> NDArray[np.int32]:
    return np.empty((0, n), dtype=np.int32)


def class_names(grouping: Grouping, plan: Plan | GroupPlan, recoding: str) -> list[Labels]:
    """What each group is told apart by in the release: its number, or its labels, which groups may share."""
    if recoding != "generalise" and isinstance(plan, GroupPlan) and plan.numbers is not None:
        return [(str(number),) for number in plan.numbers.tolist()]
    return [labels_of(grouping, g) for g in range(grouping.classes.n)]


def labels_of(grouping: Grouping, group: int) -> Labels:
    """The labels of one group, as they are published."""
    return tuple(labels.texts[labels.of_group[group]] for labels in grouping.published_labels)


def _by_number(plan: GroupPlan) -> Recount:
    """Classes by their published number."""
    there = np.flatnonzero(plan.sizes[1:]) + 1
    values = {}
    for block in plan.blocks:
        owner = np.searchsorted(there, block.groups)
        for i, name in enumerate(block.names):
            values[name] = Found(
                (None, *block.domains[i]), owner, block.codes[i].astype(np.int64), block.rows
            )
    rows = plan.sizes[there]
    return Recount((there,), np.arange(len(there), dtype=np.int32)[None, :], rows, rows, values)


def references_of(part: Part) -> References:
    """The distributions of the whole table that models compare with."""
    return References.of(part.grouping, part.task.context)


def recount_part(
    part: Part, resolved: Resolved, engine: Engine, tables: Mapping[str, Table]
) -> tuple[Verdict, ...]:
    """Measure tables as they are, and refuse them unless they are exactly what was planned and asked."""
    policy, summary = resolved.policy, part.grouping.summary
    found, planned = (
        recounted_classes(engine, tables, part.layouts),
        planned_recount(part.grouping, part.plan, policy.recoding.name),
    )
    if part.perturbed is not None:
        require_equal_counts(planned, part.perturbed.counted)
        _check_perturbed(part, engine, tables)
        planned = replace(planned, values={n: v for n, v in planned.values.items() if n in found.values})
    require_equal_counts(planned, found)
    if part.perturbed is not None:
        found = part.perturbed.counted
    check_members(engine, tables, part.layouts, part.plan)
    if policy.person_column:
        found = counted_people(part, resolved, engine)
    if policy.people is not None and policy.people.publish:
        _check_links(part, engine, tables, policy.people)
    elif policy.people is not None and policy.people.events > 1:
        unit = policy.people.column
        shown = engine.recode(resolved.source, plan_with_persons(part.plan, part.grouping, unit))
        _check_links(part, engine, {part.layouts[0].name: shown}, policy.people)
    for name in policy.pseudonyms:
        if problem := unlike_pseudonyms(
            engine, tables[part.layouts[0].name], name, name == policy.person_column
        ):
            raise NotVerified(problem)
    specs = [s for s in resolved.spec.sensitive if s.name in summary.sensitive]
    classes = classes_from(found, part.layouts[0].classes_by, specs)
    verdicts = measure_models(
        furnished_part(part, resolved, classes, found), part.models, references_of(part)
    )
    for verdict in verdicts:
        about_rows = policy.person_column and verdict.model == BeliefAtMost.name  # judged by the attack
        if not verdict.ok and not about_rows:
            raise NotVerified(f"the recounted table does not satisfy the policy: {verdict.sentence()}")
    return verdicts


def _check_perturbed(part: Part, engine: Engine, tables: Mapping[str, Table]) -> None:
    """Refuse a table whose perturbed columns do not show, class by class, what was drawn for its rows."""
    layout = part.layouts[0]
    found = engine.recount(tables[layout.name], [*layout.classes_by, *part.perturbed.names])
    try:
        require_equal_counts(part.perturbed.shown, found)
    except NotVerified:
        names = ", ".join(part.perturbed.names)
        raise NotVerified(
            f"columns {names} were to be published with changes, and differ from what was drawn"
        ) from None


def _check_links(part: Part, engine: Engine, tables: Mapping[str, Table], people: Unit) -> None:
    """Refuse a table whose linked visits single somebody out more than the policy allows."""
    layout = part.layouts[0]
    counted = engine.recount(tables[layout.name], [*layout.classes_by, people.column])
    if problem := differs_for_somebody(counted, layout.classes_by, people.own):
        raise NotVerified(f"the recounted table does not satisfy the policy: {problem}")
    matches = fewest_matches(counted, people.events)
    for model in part.models:
        if problem := too_few_matches(model, matches, people.events):
            raise NotVerified(f"the recounted table does not satisfy the policy: {problem}")


def singled_out_people(part: Part, resolved: Resolved, engine: Engine, tables: Mapping[str, Table]) -> str:
    """How many the insensitive columns single out together with the published labels; empty: nobody more."""
    found = _singled_out(part, resolved, engine, tables, _passing_columns(part, resolved))
    return f"{found}; the policy accepts that (near_unique: allow)" if found else ""


def refuse_singling_out(part: Part, resolved: Resolved, engine: Engine) -> None:
    """Refuse insensitive columns that single people out, unless the policy accepts it."""
    columns = resolved.policy.columns
    asked = [name for name in _passing_columns(part, resolved) if columns[name].near_unique != "allow"]
    found = _singled_out(part, resolved, engine, part.tables, asked)
    if found:
        names = ", ".join(asked)
        raise PolicyNotMet(
            f"{found}; make {names} quasi-identifier{'s' if len(asked) > 1 else ''} (coarsened until enough people "
            "share it) or identifier (left out), or write {role: insensitive, near_unique: allow} to accept it, "
            "which the report will say; nothing was published"
        )


def _passing_columns(part: Part, resolved: Resolved) -> list[str]:
    """The insensitive columns that stand beside labels; exact quasi-identifiers tell people apart anyway."""
    policy = resolved.policy
    if policy.recoding.name != "generalise" and policy.recoding.exact:
        return []
    drawn = {name for name, publishing in policy.perturbed.items() if publishing.random}
    return [c for c in policy.with_role("insensitive") if c in part.layouts[0].columns and c not in drawn]


def _singled_out(
    part: Part, resolved: Resolved, engine: Engine, tables: Mapping[str, Table], columns: Sequence[str]
) -> str:
    """How many these columns single out; `tables` may be empty: those of a trial are made here."""
    if not columns:
        return ""
    layout, policy, classes = part.layouts[0], resolved.policy, part.grouping.classes
    person = policy.person_column if policy.recoding.name == "generalise" else None
    alone, rows = int((classes.sizes == 1).sum()), part.grouping.published_rows
    if person:
        table = engine.recode(resolved.source, plan_with_persons(part.plan, part.grouping, person))
    else:
        made = tables or make_tables(engine, resolved.source, part.plan, part.layouts)
        table = made[layout.name]
    _, found, _ = engine.uniqueness(table, [*layout.classes_by, *columns], person)
    if found <= alone:
        return ""
    what = f"insensitive column{'s' if len(columns) > 1 else ''} {', '.join(columns)}"
    if person:
        return (
            f"whoever also knows the {what} finds {found:,} combinations of values that one person alone has"
        )
    share = percent_text(Fraction(found, max(1, rows)))
    return f"whoever also knows the {what} can single out {found:,} of {rows:,} rows ({share})"


def date_shift_risk(
    part: Part, resolved: Resolved, engine: Engine, offsets: DateOffsets
) -> DateShiftRisk | None:
    """What known events tell of the moved dates of a table; None: some of them were changed besides.

    A row is somebody of their own, unless a pseudonym links the rows of a person.
    """
    policy, plan, layout = resolved.policy, part.plan, part.layouts[0]
    shift, person = policy.shift_dates, policy.shifting_person
    if shift is None or part.grouping.changes is not None:
        return None
    if policy.person_column:
        plan = plan_with_persons(plan, part.grouping, person)
    elif isinstance(plan, Plan) and person not in plan.columns:
        plan = replace(plan, columns=(*plan.columns, person), key="")
    elif isinstance(plan, GroupPlan) and person not in plan.columns:
        again = generalisation_plan(part.grouping, (*plan.columns, person), plan.drop_missing, plan.key, None)
        plan = replace(again, members_key=plan.members_key) if isinstance(again, GroupPlan) else again
    columns = [name for name in layout.columns if name in shift.columns]
    found = engine.recount(engine.recode(resolved.source, plan), [*layout.classes_by, person, *columns])
    linked = policy.people is not None and policy.people.publish is not None
    return DateShiftRisk.of(_shifted_events(found, len(columns), offsets, linked), offsets, linked)


def _shifted_events(found: Recount, columns: int, offsets: DateOffsets, linked: bool) -> ShiftedEvents:
    """The days of a table, from a count by class, person and days."""
    first = len(found.texts) - columns
    classes = np.unique(found.codes[: first - 1], axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    names = spelled(found.texts[first - 1], np.arange(len(found.texts[first - 1])))
    moved = np.array([0 if name is None else offsets.days(name) for name in names], dtype=np.int64)
    rows = np.repeat(np.arange(len(found.rows)), found.rows)
    person = found.codes[first - 1][rows].astype(np.int64)
    parts = []
    for i in range(columns):
        texts = spelled(found.texts[first + i], np.arange(len(found.texts[first + i])))
        days = np.array([t if t is not None else "NaT" for t in texts], dtype="datetime64[D]")
        there = np.flatnonzero(~np.isnat(days)[found.codes[first + i][rows]])
        shown = days.astype(np.int64)[found.codes[first + i][rows[there]]]
        parts.append(
            (
                person[there] if linked else there, classes[rows[there]] * columns + i,
                np.full(len(there), i, np.int64), shown, shown - moved[person[there]],
            )
        )  # fmt: skip
    return ShiftedEvents(*(np.concatenate(x).astype(np.int64) for x in zip(*parts, strict=True)))


def passing_beliefs(
    part: Part, resolved: Resolved, engine: Engine, tables: Mapping[str, Table]
) -> tuple[PassingBelief, ...]:
    """What the insensitive columns tell about the secrets of the requirements on belief."""
    asked = [m for m in part.models if isinstance(m, BeliefAtMost) and m.attribute]
    insensitive = resolved.policy.with_role("insensitive")
    if not asked or not insensitive:
        return ()
    layout = part.layouts[0]
    in_rows = resolved.policy.recoding.name == "generalise" and set(insensitive) <= set(layout.columns)
    specs = [s for s in resolved.spec.sensitive if s.name in part.grouping.summary.sensitive]
    names = [s.name for s in specs]
    source: dict[str | None, tuple[Table, list[str]]] = {
        column: (resolved.source, [column]) for column in insensitive
    }
    counted = part.perturbed.passing if part.perturbed is not None else None
    if counted is not None:  # their true sensitive values are in no published table
        source = {None: (resolved.source, [*layout.classes_by, *insensitive])}
    elif in_rows:
        made = tables or make_tables(engine, resolved.source, part.plan, part.layouts)  # of a trial: none
        table = made[layout.name]
        shown = engine.unfold(table, layout.sets) if layout.sets else table
        source = {None: (shown, [*layout.classes_by, *insensitive])}
    found = []
    for column, (table, by) in source.items():
        classes = classes_from(counted or engine.recount(table, by, names), by, specs)
        for model in asked:
            prior = Belief(_share_before(part, model), Fraction(0), "", "")
            shares = model.shares(classes)
            belief = (
                narrowed_belief(shares, prior, insensitive)
                if column is None
                else associated_belief(shares, classes, float(model.max), prior, column)
            )
            found.append(PassingBelief(model.attribute or "", model.sets, belief, in_rows, model.within))
    return tuple(found)


def _share_before(part: Part, model: BeliefAtMost) -> Fraction:
    """The largest share of a secret of a requirement in the whole table."""
    shares = model.shares(part.grouping.summary.totals())
    worst = shares.argmax()
    return Fraction(0) if worst is None else shares[worst]


def kept_tables(part: Part, engine: Engine) -> Part:
    """The part with its tables kept by the engine: they will be read more than once."""
    return replace(part, tables={name: engine.keep(table) for name, table in part.tables.items()})


def counted_people(part: Part, resolved: Resolved, engine: Engine) -> Recount:
    """Count people per class: recode once more with the unit column, which is never published. Counted once."""
    if not part.counted:
        unit = resolved.policy.person_column or ""
        plan = plan_with_persons(part.plan, part.grouping, unit)
        with_unit = engine.keep(engine.recode(resolved.source, plan))
        sensitive = tuple(part.grouping.summary.sensitive)
        part.counted.append(engine.recount(with_unit, part.layouts[0].classes_by, sensitive, unit))
    return part.counted[0]


def recorded_classes(
    part: Part, resolved: Resolved, engine: Engine, written: Mapping[str, Table]
) -> dict[str, Any] | None:
    """What nobody can count in the public table, for a later `verify`."""
    unit = resolved.policy.person_column
    ancestors = "ancestors" in needs_of(part.models) and part.grouping.ancestors is not None
    perturbed = part.perturbed is not None and set(part.layouts[0].perturbed) & set(part.layouts[0].sensitive)
    if (
        not unit
        and not ancestors
        and not perturbed
        and not needs_of(part.models) & {"population", "originals", "sample", "guards"}
    ):
        return None
    found = (
        counted_people(part, resolved, engine) if unit else recounted_classes(engine, written, part.layouts)
    )
    if perturbed:
        found = part.perturbed.counted
    classes = furnished_part(part, resolved, Classes(found.people, found.rows), found)
    record: dict[str, Any] = {"labels": found.labels}
    record |= {"rows": found.rows.tolist(), "people": found.people.tolist()}
    record["values"] = {name: found.entries(name) for name in found.values} if unit else {}
    if perturbed:
        record["values"] = {name: part.perturbed.counted.entries(name) for name in sorted(perturbed)}
    if classes.population is not None:
        record["population"] = classes.population.tolist()
    if classes.originals is not None:
        record["originals"] = [classes.originals.start.tolist(), classes.originals.sizes.tolist()]
    if classes.weights is not None:
        record["weights"] = classes.weights.tolist()
    if classes.guards is not None:
        record["guards"] = {name: one.as_dict() for name, one in classes.guards.items()}
    if classes.several is not None:
        record["several"] = [x.tolist() for x in classes.several]
    if classes.ancestors is not None:
        record["ancestors"] = classes.ancestors.parent.tolist()
    return record


def furnished_part(part: Part, resolved: Resolved, classes: Classes, found: Recount) -> Classes:
    """Add to recounted classes what the models need to know of them and no table shows."""
    classes = _with_groups(part, resolved, classes, found)
    if part.classes.several is not None and not all(m.is_local() for m in part.models):
        class_of = _class_of_groups(part, resolved, found)
        classes = replace(classes, several=kept_pairs(part.classes.several, class_of))
    if not needs_of(part.models) & {"population", "originals"}:
        return classes
    if part.layouts[0].classes_by != tuple(x.attribute for x in part.grouping.labels):
        raise PolicyError("population tables and m-confidentiality need recoding: generalise")
    group = {labels_of(part.grouping, g): g for g in range(part.grouping.classes.n)}
    order = np.array([group[labels] for labels in found.labels])
    mine, changes = part.classes, dict[str, Any]()
    if mine.population is not None:
        changes["population"] = mine.population[order]
    if mine.originals is not None:
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        class_of = np.repeat(place, np.diff(mine.originals.start))
        changes["originals"] = Originals.of(class_of, mine.originals.sizes, len(order))
    return replace(classes, **changes)


def _with_groups(part: Part, resolved: Resolved, classes: Classes, found: Recount) -> Classes:
    """The classes with what they were split from, and their weights; groups with the same labels are one class."""
    ancestors = part.grouping.ancestors if "ancestors" in needs_of(part.models) else None
    guards = part.classes.guards
    if ancestors is None and part.classes.weights is None and guards is None:
        return classes
    class_of = _class_of_groups(part, resolved, found)
    changes: dict[str, Any] = {}
    if ancestors is not None:
        changes["ancestors"] = ancestors.merged(class_of, classes.n)
    if part.classes.weights is not None:
        changes["weights"] = weight_totals(class_of, part.classes.weights, classes.n)
    changes["guards"] = merged_guards(guards, class_of)
    return replace(classes, **changes)


def _class_of_groups(part: Part, resolved: Resolved, found: Recount) -> NDArray[np.int64]:
    """The recounted class of each group."""
    place = {labels: c for c, labels in enumerate(found.labels)}
    names = class_names(part.grouping, part.plan, resolved.policy.recoding.name)
    return np.array([place[labels] for labels in names], dtype=np.int64)


def needs_of(models: Sequence[Model]) -> frozenset[Need]:
    """The figures of a class that any of these models needs."""
    return frozenset[Need]().union(*(model.needs() for model in models))


def classes_of(part: Part, models: Sequence[Model]) -> Classes:
    """The classes of a part as its models look at them; a method may have distorted values."""
    classes = furnished_classes(part.grouping, needs_of(models), part.task.census)
    return replace(classes, sensitive=part.grouping.published_classes.sensitive)


def models_for(part: Part, resolved: Resolved) -> list[Model]:
    """The requirements that concern a part, in the order of the policy."""
    return models_about(resolved.models, tuple(part.grouping.summary.sensitive))


def make_part(
    engine: Engine | None,
    part: Part,
    resolved: Resolved,
    first: bool,
    keys: tuple[str, str],
    rng: np.random.Generator,
    pseudonyms: Mapping[str, Pseudonyms],
    families: Sequence[PerturbedFamily] = (),
) -> Part:
    """Recode the tables of a part; the first one of a release also has the insensitive columns.

    Without an engine everything is planned and nothing recoded. One of the `keys` is behind the order of rows, the
    other behind who of equal people is in which group; `rng` draws group numbers; columns that have `pseudonyms` show
    these.
    """
    policy, mine = resolved.policy, set(part.grouping.summary.sensitive)
    every = [s.name for s in resolved.spec.sensitive]
    insensitive = set(policy.with_role("insensitive"))
    columns = [
        c for c in resolved.published if c in mine or (c not in every and (first or c not in insensitive))
    ]
    drop = [*policy.quasi_identifiers, *every] if resolved.spec.drop_missing else []
    # a key of its own, so that the order of rows is drawn anew and nothing joins the tables of a release
    order, members = (hashlib.sha256(f"{part.name}\0{key}".encode()).hexdigest() for key in keys)
    perturbed = [c for c in columns if c in policy.perturbed]
    _refuse_perturbing(part, perturbed)
    behind = [*columns, *map(shadow_of, perturbed), ROW] if perturbed else columns
    plan, layouts = plan_tables(part, policy.recoding, behind, drop, order, rng, policy.person_column)
    if isinstance(plan, GroupPlan):
        plan = replace(plan, members_key=members)
    tables = make_tables(engine, resolved.source, plan, layouts) if engine is not None else {}
    rows = None
    if perturbed:
        kept = layouts[0].columns[: -1 - len(perturbed)]
        shown = {c: shadow_of(c) if c in perturbed else c for c in kept}
        layouts = [replace(layouts[0], columns=tuple(shown), perturbed=tuple(perturbed))]
    if perturbed and engine is not None:
        whole = engine.keep(tables[layouts[0].name])
        rows = measured_rows(engine, whole, resolved, families, layouts[0].classes_by)
        tables = {layouts[0].name: engine.shown_columns(whole, shown)}
    collisions: dict[str, int] = {}
    if engine is not None and pseudonyms:  # then there is one table
        [(table_name, table)] = tables.items()
        hidden = engine.pseudonymise(table, pseudonyms)
        tables = {table_name: hidden}
        collisions = {
            c: engine.uniqueness(table, [c])[0] - engine.uniqueness(hidden, [c])[0] for c in pseudonyms
        }
    models = models_for(part, resolved)
    return replace(
        part, models=models, classes=classes_of(part, models), plan=plan, layouts=layouts, tables=tables,
        collisions=collisions, perturbed=rows,
    )  # fmt: skip


def _refuse_perturbing(part: Part, perturbed: Sequence[str]) -> None:
    """Refuse to perturb what a method has disguised, or takes apart."""
    changes = part.grouping.changes
    if perturbed and part.method.several_tables:
        raise PolicyError(
            f"columns.{perturbed[0]}.publish: {part.method.name} makes several tables, whose values are published "
            "apart; use another method"
        )
    if changes is not None and changes.attribute in perturbed:
        raise PolicyError(
            f"columns.{changes.attribute}.publish: {part.method.name} already publishes other values of this column; "
            "use another method, or leave `publish` out"
        )
