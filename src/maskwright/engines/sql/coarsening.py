"""Columns at a coarser level, before anything is counted: a view of the source, which shows labels.

Where rows have no order, labels are joined (`coarsen_unordered`). Where they have one, they must stay in it, because
later passes match them by position, and joins do not promise that: there (`coarsen_in_order`) labels are looked up in a
list, which costs more the longer it is; for columns with very many values they are joined, and the rows stored in their
order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

from maskwright.domain.hierarchy import Hierarchy
from maskwright.engines.base import ColumnInfo
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Labelled, Relation, RowRunner, Runner, refuse_unknown
from maskwright.engines.sql.table_queries import level_texts
from maskwright.errors import PolicyError

C = TypeVar("C", bound=Labelled)
R = TypeVar("R", bound=Relation)
LISTED = 20_000  # values; beyond that a list is slower than a copy of the table (0.3 s for a million rows)


def coarsen_in_order(db: RowRunner, t: R, hierarchies: Sequence[Hierarchy]) -> R:
    """The table with those columns as texts: the labels of the level at which each hierarchy was cut."""
    coded = _coded_at(t, hierarchies, Labelled)
    names, view = coded.names, db.new_name("coarse")
    shown, joins = dict[str, exp.Expression](), list[exp.Join]()
    with db.tables(coded.content()):
        for i, (name, dictionary) in enumerate(zip(names, coded.tables().values(), strict=True)):
            db.run(clauses.create_table(f"{view}_{i}", dictionary), t.parameters)
            refuse_unknown(name, _unknown(db, f"{view}_{i}", coded.unknown(i)))
            if len(coded.domains[i]) <= LISTED:
                shown[name] = _listed(db, f"{view}_{i}", t.raw(name))
                continue
            same = clauses.equal(clauses.column("raw", f"d{i}"), t.raw(name))
            joins.append(clauses.left_join(clauses.relation(f"{view}_{i}", f"d{i}"), same))
            shown[name] = clauses.column("t", f"d{i}")
    columns, items = _with_labels(t, shown)
    items.append(clauses.alias(t.row_number(), "r"))
    in_order = [t.row_number()] if joins else []
    query = clauses.select(items, t.source(), joins=joins, order=in_order)
    db.run(clauses.create_table(view, query, kind="TABLE" if joins else "VIEW"), {})
    return replace(t, columns=columns, relation=view, row="r")


def coarsen_unordered(
    runner: Runner, t: R, hierarchies: Sequence[Hierarchy], coding: Callable[..., Labelled]
) -> R:
    """The table with those columns as texts, as above, for an engine whose rows have no order."""
    coded = _coded_at(t, hierarchies, coding)
    for i, name in enumerate(coded.names):
        refuse_unknown(name, coded.unknown_values(runner, i))
    columns, items = _with_labels(t, {name: coded.label(i) for i, name in enumerate(coded.names)})
    items.append(clauses.alias(t.row_number(), t.row))
    view, query = runner.new_name("coarse"), clauses.select(items, t.source(), joins=coded.joins())
    with runner.tables(coded.content()):
        runner.run(clauses.create_table(view, query, kind="VIEW"), {})
    return replace(t, columns=columns, relation=view)


def _coded_at(t: Relation, hierarchies: Sequence[Hierarchy], coding: Callable[..., C]) -> C:
    """The values of those columns with the labels of the level at which each hierarchy was cut."""
    whole = [h.origin for h in hierarchies if h.origin is not None]
    for h, level in whole:
        _check_labels(t, h, level)
    names, values = tuple(h.attribute for h, _ in whole), tuple(h.values for h, _ in whole)
    return coding(t, names, values, tuple(level_texts(*o) for o in whole))


def _with_labels(
    t: Relation, shown: Mapping[str, exp.Expression]
) -> tuple[tuple[ColumnInfo, ...], list[exp.Expression]]:
    """The columns of a table, and what they are made from, when some show labels in place of their values."""
    columns = tuple(ColumnInfo(c.name, "text", "VARCHAR") if c.name in shown else c for c in t.columns)
    return columns, [
        clauses.alias(shown.get(c.name, t.raw(c.name)), f"c{i}") for i, c in enumerate(t.columns)
    ]


def _unknown(db: RowRunner, dictionary: str, code: int) -> list[str]:
    unknown = clauses.equal(clauses.column("k"), clauses.integer(code))
    query = clauses.select(
        [clauses.column("v")], clauses.relation(dictionary), where=[unknown], order=[clauses.column("v")]
    )
    return [str(row[0]) for row in db.rows(query, {})]


def _listed(db: RowRunner, dictionary: str, raw: exp.Expression) -> exp.Expression:
    """The label of a value, null where it is missing. Not a join, which would not keep the rows in their order.

    The values are members of an enumeration, and their labels a variable: a list in the order of the members.
    """
    text, names = clauses.cast(clauses.column("raw"), "TEXT"), f"{dictionary}_values"
    query = clauses.select(
        [text, exp.AnyValue(this=clauses.column("t"))], clauses.relation(dictionary), group=[text.copy()]
    )
    labels = dict(db.rows(query, {}))
    member = exp.TryCast(this=clauses.cast(raw, "TEXT"), to=db.enumeration(names, list(labels)))
    code = clauses.cast(exp.Anonymous(this="enum_code", expressions=[member]), "BIGINT")
    return db.lookup_text(names, list(labels.values()), code, published=False)


def _check_labels(t: Relation, hierarchy: Hierarchy, level: int) -> None:
    """A label that reads like a missing value, or changes when it is read, cannot stand for one."""
    tokens = {token for name, token in t.parameters.items() if name != "blanks"}
    for label in hierarchy.levels[level].labels[1:]:
        if label is None or not label or label.strip() != label or label in tokens:
            raise PolicyError(
                f"column {hierarchy.attribute!r}: level {hierarchy.levels[level].name!r} has the label {label!r},"
                " which is empty, has blanks at its ends or means missing; rename it, or choose another `finest`"
            )
