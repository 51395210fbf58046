"""A published table as an audit sees it: its labels are opaque values, and equal labels make a class."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.domain.grouping import Allocation, Grouping, Labels
from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.domain.model import Context, Model
from maskwright.domain.settings import did_you_mean
from maskwright.domain.summary import Summary
from maskwright.engines.base import Domain, Engine, Reading, SensitiveSpec, SummarySpec, Table
from maskwright.errors import InputError, UsageError
from maskwright.policy.binding import models_of
from maskwright.policy.policy import ONE_ROW_EACH, Policy
from maskwright.suggest.profile import look_at_all
from maskwright.suggest.roles import guess_role


@dataclass(frozen=True)
class Question:
    """What is asked about a table.

    Attributes:
        table: a path or a frame; of a bucketized release the table of quasi-identifiers.
        quasi_identifiers: the columns an attacker could know.
        sensitive: the columns nobody should be able to infer.
        policy: roles, requirements, hierarchies and (with the original) the method that made the table.
        require: further requirements, as a policy lists them.
        original: the raw table, where it is known.
        sensitive_table: of a bucketized release the table of sensitive values.
        group: the column that says which rows belong together, in bucketized and permuted releases.
        unit: the column that tells people apart, if they have several rows; `none`: every row is a person.
        population: a table of everybody who could be in the data.
        reading: how the files are to be read.
        max_belief: the largest belief allowed.
        control: people like those of the original of whom the table was not made.
    """

    table: Any
    quasi_identifiers: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    policy: Policy | None = None
    require: tuple[Any, ...] = ()
    original: Any = None
    sensitive_table: Any = None
    group: str | None = None
    unit: str | None = None
    population: Any = None
    reading: Reading = field(default_factory=Reading)
    max_belief: Fraction | None = None
    control: Any = None


class Domains:
    """The values of columns, each counted once however often they are asked for."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.known: dict[tuple[int, str], tuple[Table, Domain]] = {}

    def of(self, table: Table, name: str) -> Domain:
        """The values of a column, counted once."""
        return self.of_all(table, [name])[0]

    def of_all(self, table: Table, names: Sequence[str]) -> list[Domain]:
        """The values of each column, counted once."""
        number = id(table)  # the table is kept beside its domains, so that the number stays its own
        new = [name for name in names if (number, name) not in self.known]
        for name, domain in zip(new, self.engine.domains(table, new), strict=True):
            self.known[number, name] = table, domain
        return [self.known[number, name][1] for name in names]


@dataclass(frozen=True, eq=False)
class AuditedTable:
    """The table, counted.

    Attributes:
        shown: the classes of people with equal published quasi-identifiers.
        classes: the classes whose sensitive values are published together: the same, unless a group column says so.
        other: columns that are neither quasi-identifiers, sensitive, group nor unit.
        domains: the values of the columns.
    """

    question: Question
    table: Table
    values: Table  # the table that holds the sensitive values
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    other: tuple[str, ...]
    specs: tuple[SensitiveSpec, ...]
    shown: Grouping
    classes: Grouping
    domains: Domains

    @property
    def rows(self) -> int:
        """The number of published rows."""
        return self.shown.published_rows


def open_published(engine: Engine, question: Question, original: Table | None) -> AuditedTable:
    """Open the table or tables, check the names, and count the classes."""
    policy = question.policy
    known = question.quasi_identifiers or tuple(policy.quasi_identifiers if policy else ())
    secret = question.sensitive or tuple(policy.sensitive if policy else ())
    if not known:
        raise UsageError("say which columns an attacker could know: --qi age,zip,sex (or -p policy.yaml)")
    if question.sensitive_table is not None and question.group is None:
        raise UsageError(
            "two tables are joined by a group column: name it with --group (Maskwright calls it 'group')"
        )
    if both := set(known) & set(secret):
        raise UsageError(f"column {min(both)!r} cannot be a quasi-identifier and sensitive at once")
    table = engine.open(question.table, replace(question.reading, prepare=()))
    values = (
        engine.open(question.sensitive_table, replace(question.reading, prepare=()))
        if question.sensitive_table is not None
        else table
    )
    question = replace(question, unit=_person_column(engine, question, table, original, (*known, *secret)))
    extra = tuple(c for c in (question.group, question.unit) if c)
    require_columns(table, (*known, *extra), "the published table")
    require_columns(
        values, (*secret, *((question.group,) if question.group else ())),
        "the published table" if values is table else "the table of sensitive values",
    )  # fmt: skip
    domains = Domains(engine)
    specs = tuple(_spec(domains, values, original, name, policy) for name in secret)
    shown, classes = _groupings(domains, question, table, values, known, specs)
    other = tuple(
        c.name for c in {i.name: i for i in (*table.columns, *values.columns)}.values()
        if c.name not in (*known, *secret, *extra)
    )  # fmt: skip
    return AuditedTable(question, table, values, known, secret, other, specs, shown, classes, domains)


def _person_column(
    engine: Engine, question: Question, table: Table, original: Table | None, named: Sequence[str]
) -> str | None:
    """The column that tells persons apart; None: every row is one. Refuses to guess where an identifier repeats."""
    if question.unit is not None:
        if question.unit not in (ONE_ROW_EACH, *(c.name for c in table.columns)):
            raise InputError(
                f"the published table has no column {question.unit!r}, so it does not show which rows are whose; "
                "write --unit none, and every figure is about rows"
            )
        return None if question.unit == ONE_ROW_EACH else question.unit
    policy = question.policy
    if policy is not None and policy.unit is not None:
        return policy.person_column if policy.person_column in {c.name for c in table.columns} else None
    ask_whose_rows(engine, table, (*named, question.group), policy)
    if original is not None and (name := _repeating_identifier(engine, original, named, policy)):
        raise UsageError(
            f"column {name!r} of the original looks like an identifier, and some of its values occur in several rows; "
            "the published table does not show which rows are whose: write --unit none, and every figure is about rows"
        )
    return None


def ask_whose_rows(engine: Engine, table: Table, named: Sequence[str | None], policy: Policy | None) -> None:
    """Refuse to guess whether the rows that share an identifier are one person's."""
    if name := _repeating_identifier(engine, table, named, policy):
        raise UsageError(
            f"column {name!r} looks like an identifier, and some of its values occur in several rows: if these are "
            f"the rows of one person, write --unit {name}, and people are counted; if every row is a person, --unit "
            "none"
        )


def _repeating_identifier(
    engine: Engine, table: Table, named: Sequence[str | None], policy: Policy | None
) -> str | None:
    """A column that repeats and is an identifier: the policy says so, or it looks like one and has no role."""
    told = policy.with_role("identifier") if policy is not None else ()
    roles = policy.columns.keys() - set(told) if policy is not None else set[str]()
    others = [c for c in table.columns if c.name not in (*named, *roles)]
    for facts in look_at_all(engine, table, others, engine.count(table)):
        if facts.distinct < facts.present:
            found = guess_role(facts)
            if facts.name in told or (found.role == "identifier" and found.topic is not None):
                return facts.name
    return None


def require_columns(table: Table, names: Sequence[str], what: str) -> None:
    """Refuse a table that lacks one of these columns."""
    there = [c.name for c in table.columns]
    for name in names:
        if name not in there:
            raise InputError(f"{what} has no column {name!r}; {did_you_mean(name, there)}")


def _spec(
    domains: Domains, table: Table, original: Table | None, name: str, policy: Policy | None
) -> SensitiveSpec:
    """The values of a sensitive column: those published, those of the original, in their order."""
    found = [domains.of(table, name)]
    if original is not None:
        require_columns(original, [name], "the original")
        found.append(domains.of(original, name))
    numeric = all(d.numeric for d in found)
    values = {v for d in found for v in d.values}
    order = policy.columns[name].order if policy and name in policy.columns else None
    if order is not None:
        return SensitiveSpec(name, (*order, *sorted(values - set(order))), ordered=values <= set(order))
    ranked = sorted(values, key=lambda v: (Fraction(v), v)) if numeric else sorted(values)
    return SensitiveSpec(name, tuple(ranked), numeric)


def _groupings(
    domains: Domains, question: Question, table: Table, values: Table, known: Sequence[str],
    specs: Sequence[SensitiveSpec],
) -> tuple[Grouping, Grouping]:  # fmt: skip
    engine = domains.engine
    attributes = tuple(_opaque_hierarchy(domains, table, name) for name in known)
    if question.group is None:
        made = as_published(engine.summarise(table, SummarySpec(attributes, specs, question.unit)))
        return made, made
    shown = as_published(engine.summarise(table, SummarySpec(attributes, (), question.unit)))
    groups = (_opaque_hierarchy(domains, values, question.group),)
    unit = question.unit if values is table else None
    classes = as_published(engine.summarise(values, SummarySpec(groups, specs, unit)))
    if values is not table:
        mine, theirs = (
            dict(zip(found.labels, found.rows.tolist(), strict=True))
            for found in (engine.recount(table, [question.group]), engine.recount(values, [question.group]))
        )
        if mine != theirs:
            wrong = min((g for g in mine.keys() | theirs.keys() if mine.get(g) != theirs.get(g)), key=str)
            raise InputError(
                f"group {wrong[0]!r} has {mine.get(wrong, 0)} rows in the table of quasi-identifiers and "
                f"{theirs.get(wrong, 0)} in that of sensitive values; they do not belong together"
            )
    return shown, classes


def _opaque_hierarchy(domains: Domains, table: Table, name: str) -> Hierarchy:
    """A column whose values are taken as they are."""
    domain = domains.of(table, name)
    return Hierarchy.of(name, domain.values, [], ordered=domain.numeric)


def as_published(summary: Summary) -> Grouping:
    """Every distinct tuple of labels is a class; rows whose labels are all `*` are the starred one."""
    n = summary.n_tuples
    labels, star = [], np.ones(n, dtype=bool)
    for hierarchy, codes in zip(summary.attributes, summary.codes, strict=True):
        level = hierarchy.levels[0]
        of_group = level.blocks[codes].astype(np.int32)
        labels.append(Labels(hierarchy.attribute, level.labels, level.leaves, of_group))
        star &= np.array([text is not None and is_star(text) for text in level.labels])[of_group]
    starred = np.flatnonzero(star)
    everything = np.arange(n, dtype=np.int64)
    return Grouping(
        summary, Allocation(everything, everything, summary.rows), tuple(labels), summary.tuple_classes(),
        tuple(0 for _ in labels), int(starred[0]) if len(starred) == 1 else None,
    )  # fmt: skip


def is_star(text: str) -> bool:
    """Does a label say nothing at all? `*`, `**`, as tools write suppressed values."""
    return bool(text) and not text.strip(TOP)


def context_of(published: AuditedTable, original: Mapping[str, Any] | None, people: int | None) -> Context:
    """What distributions are compared with: the original's where it is known, otherwise the published ones."""
    whole = published.classes.summary.totals().sensitive
    if original is not None and people is not None:
        reference = dict(original)
    else:
        reference = {name: counts.totals for name, counts in whole.items()}
    return Context(
        reference=reference,
        n_people=people or published.classes.summary.n_people,
        hierarchies=_sensitive_hierarchies(published),
        published=original is None,
        domains={s.name: s.values for s in published.specs},
    )


def _sensitive_hierarchies(published: AuditedTable) -> dict[str, Hierarchy]:
    policy = published.question.policy
    found = {}
    for spec in published.specs:
        column = policy.columns.get(spec.name) if policy else None
        if policy is not None and column is not None and column.hierarchy is not None:
            found[spec.name] = column.hierarchy.build(
                spec.name, spec.values, policy.folder, policy.missing.tokens, column.order
            )
    return found


def stated_models(published: AuditedTable) -> list[Model]:
    """The models that the question states, by its policy and by itself."""
    question = published.question
    asked = [*(r.as_policy("model") for r in (question.policy.require if question.policy else ()))]
    asked += [_parsed_requirement(r) if isinstance(r, str) else r for r in question.require]
    if not asked:
        return []
    roles: dict[str, Any] = {
        **dict.fromkeys(published.quasi_identifiers, "quasi-identifier"),
        **dict.fromkeys(published.sensitive, "sensitive"),
    }
    for name in published.sensitive:
        column = question.policy.columns.get(name) if question.policy else None
        if column is not None and column.sensitive_sets:
            roles[name] = {"role": "sensitive", "sensitive_sets": column.sensitive_sets}
    return models_of(Policy.of({"columns": roles, "require": asked}, "requirements"))


def _parsed_requirement(text: str) -> dict[str, Any]:
    """`k-anonymity k=5`, as a command line writes it; lists as `values=[HIV, cancer]`."""
    try:
        name, *settings = shlex.split(re.sub(r"\[([^\]]*)\]", lambda m: m[0].replace(" ", ""), text))
        pairs = [part.split("=", 1) for part in settings]
        values = {key: value[1:-1].split(",") if value.startswith("[") else value for key, value in pairs}
    except ValueError:
        raise UsageError(f"{text!r} is no requirement; write one as 'k-anonymity k=5'") from None
    return {"model": name, **values}
