"""What a table gives away besides its classes: starred rows, identifiers, the order of rows, the container, cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from maskwright.auditing.published import AuditedTable, Domains, is_star
from maskwright.auditing.result import AuditFinding
from maskwright.auditing.row_order import InOrder, Trend, class_numbers, column_trends, sorted_inside
from maskwright.domain.classes import Ints
from maskwright.domain.spreadsheets import would_run
from maskwright.engines.base import Engine, Table
from maskwright.engines.readers.csv_files import Container, examine
from maskwright.identifiers.detection import detect_inside
from maskwright.suggest.profile import NUMBER, Facts, look_at_all
from maskwright.suggest.roles import guess_role

LIMIT = 1_000_000  # so many rows are looked at for their order


def starred_rows(published: AuditedTable) -> Iterator[AuditFinding]:
    """Rows without quasi-identifiers are a class like any other, and must not hide."""
    shown, people = published.shown, published.shown.classes.sizes
    partly = np.zeros(shown.classes.n, dtype=bool)
    for labels in shown.labels:
        partly |= np.array([t is not None and is_star(t) for t in labels.texts])[labels.of_group]
    total = int(people.sum())
    if shown.starred is not None:
        size = int(people[shown.starred])
        others = int(np.delete(people, shown.starred).min(initial=total))
        rank = " It is the smallest class." if size < others else f" The smallest other class has {others:,}."
        yield AuditFinding(
            "rows", "warning" if size < others else "note",
            f"{size:,} of {total:,} people ({size / total:.1%}) are published with * in every quasi-identifier; they "
            f"are one class, and were measured like the others.{rank}",
            {"people": size, "share": size / total, "smallest_other_class": others},
        )  # fmt: skip
        partly[shown.starred] = False
    constant = [x.attribute for x in shown.labels if len(np.unique(x.of_group)) == 1]
    some = int(people[partly].sum())
    if some and some < total and not constant:
        yield AuditFinding(
            "rows", "note",
            f"{some:,} people have * in some of the quasi-identifiers: such a class is taken as it is written, "
            "although its people could also be in others",
            {"people": some},
        )  # fmt: skip
    missing = int(people[_missing(published)].sum())
    if missing:
        yield AuditFinding(
            "rows", "note",
            f"{missing:,} people have no value in some quasi-identifier; missing counts as a value of its own, not as "
            "something that matches everything",
            {"people": missing},
        )  # fmt: skip


def _missing(published: AuditedTable) -> Any:
    missing = np.zeros(published.shown.classes.n, dtype=bool)
    for labels in published.shown.labels:
        missing |= np.array([t is None for t in labels.texts])[labels.of_group]
    return missing


def identifying_columns(engine: Engine, published: AuditedTable) -> Iterator[AuditFinding]:
    """Direct identifiers, near-unique columns, and columns that together with the others single people out."""
    rows, unit = published.rows, published.question.unit
    not_asked, facts = (published.question.group, published.question.unit), dict[str, Facts]()
    for table in dict.fromkeys((published.table, published.values)):
        asked = [info for info in table.columns if info.name not in not_asked]
        facts |= {found.name: found for found in look_at_all(engine, table, asked, rows)}
    for name, found in facts.items():
        yield from _identifier(published, name, found)
    if published.shown.classes.n and published.question.sensitive_table is None:
        alone = int((published.shown.classes.sizes == 1).sum())
        other = [name for name in published.other if _harmless_alone(facts[name])]
        by = published.quasi_identifiers
        singled = (
            engine.lone_values(published.table, other, by)
            if unit is None
            else [engine.uniqueness(published.table, [*by, name], unit)[1] for name in other]
        )
        for name, more in zip(other, singled, strict=True):
            if more > alone:
                found_by_it = (
                    f"can single out {more:,} of {rows:,} people ({alone:,} without it)"
                    if unit is None
                    else f"finds {more:,} combinations of values that one person alone has ({alone:,} without it)"
                )
                yield AuditFinding(
                    "columns", "warning",
                    f"column {name!r} was not named as a quasi-identifier; whoever knows it as well {found_by_it}",
                    {"column": name, "unique": more, "without": alone},
                )  # fmt: skip


def _harmless_alone(facts: Facts) -> bool:
    """Is a column worth asking what it tells together with others? Those that tell people apart are told anyway."""
    return guess_role(facts).role != "identifier" and not facts.near_unique and facts.distinct >= 2


def _identifier(published: AuditedTable, name: str, facts: Facts) -> Iterator[AuditFinding]:
    found = guess_role(facts)
    reason = found.reason.removesuffix(": dropped")
    if found.role == "identifier" and facts.present and (found.topic is not None or facts.near_unique):
        if name in published.sensitive and found.topic is None:
            return  # a measurement may well differ from person to person; models and attacks judge it
        kind = "looks like a direct identifier" if found.topic is not None else "tells nearly everybody apart"
        yield AuditFinding(
            "columns", "high", f"column {name!r} {kind}: {reason.split(': dropped')[0]}",
            {"column": name, "distinct": facts.distinct, "unique_rows": facts.unique_rows},
        )  # fmt: skip
    elif (inside := detect_inside(facts.values)) is not None:
        yield AuditFinding(
            "columns", "high", f"column {name!r} holds direct identifiers: {inside.sentence()}",
            {"column": name, "kind": inside.kind.key, "values": inside.passing},
        )  # fmt: skip


def row_order(engine: Engine, published: AuditedTable) -> Iterator[AuditFinding]:
    """Is the order of the rows random? If not, it may tell what the labels hide."""
    secret = published.sensitive if published.values is published.table else ()
    group = (published.question.group,) if published.question.group else ()
    names = [*published.quasi_identifiers, *secret, *published.other]
    names = [n for n in names if any(c.name == n for c in published.table.columns)]
    rows = in_order(engine, published, [*names, *group])
    found = column_trends([InOrder(name, rows[name]) for name in names])
    yield from _sorted([t for t in found if t.sorted])
    yield from _not_random([t for t in found if not t.sorted and not t.random])
    classes = class_numbers([rows[name] for name in group or published.quasi_identifiers])
    for name in secret:
        if sorted_inside(classes, InOrder(name, rows[name])):
            yield AuditFinding(
                "order", "warning",
                f"inside every class the rows are in the order of {name!r}: harmless only if they were sorted after "
                "the classes were made; shuffle them",
                {"column": name},
            )  # fmt: skip


def _sorted(found: Sequence[Trend]) -> Iterator[AuditFinding]:
    if found:
        names = ", ".join(repr(t.column) for t in found)
        yield AuditFinding(
            "order", "warning",
            f"the rows are sorted by {names}: if that was done before they were recoded, neighbours in the table are "
            "also neighbours in what it hides; shuffle them",
            {"columns": [t.column for t in found]},
        )  # fmt: skip


def _not_random(found: Sequence[Trend]) -> Iterator[AuditFinding]:
    if found:
        worst = max(found, key=lambda t: max(abs(t.correlation), t.neighbours - t.expected))
        yield AuditFinding(
            "order", "warning",
            f"the rows are not in random order ({', '.join(repr(t.column) for t in found)}): in {worst.column!r} "
            f"{worst.neighbours:.0%} of neighbouring rows agree where chance gives {worst.expected:.0%}, and the "
            f"correlation with the position is {worst.correlation:+.2f}; shuffle the rows",
            {t.column: {"correlation": t.correlation, "neighbours": t.neighbours, "expected": t.expected}
             for t in found},
        )  # fmt: skip


def in_order(engine: Engine, published: AuditedTable, names: Sequence[str]) -> dict[str, Ints]:
    """Columns in the order of the rows, as codes that rise with what the values mean."""
    domains = [domain.values for domain in published.domains.of_all(published.table, names)]
    codes = engine.in_order(published.table, names, domains, LIMIT)
    result = {}
    for name, values, rows in zip(names, domains, codes, strict=True):
        rank = np.zeros(len(values) + 1, dtype=np.int64)
        rank[1 + np.array(_risen(values), dtype=np.int64)] = np.arange(1, len(values) + 1)
        result[name] = rank[rows]
    return result


def _risen(values: Sequence[str]) -> list[int]:
    """Positions of labels from low to high: by the number that each begins with, if each does; else as text."""
    numbers = [re.match(r"[^\d+-]{0,2}([+-]?\d+(?:\.\d+)?)", v) for v in values]
    if all(numbers):
        return sorted(range(len(values)), key=lambda i: (Decimal(numbers[i][1]), values[i]))  # type: ignore[index]
    return sorted(range(len(values)), key=values.__getitem__)


def file_contents(published: AuditedTable) -> Iterator[AuditFinding]:
    """What the files hold besides their rows."""
    question = published.question
    yield from _container(published.domains, published.table, examine(question.table, published.table.format))
    if question.sensitive_table is not None:
        found = examine(question.sensitive_table, published.values.format)
        yield from _container(published.domains, published.values, found)


def _container(domains: Domains, table: Table, found: Container) -> Iterator[AuditFinding]:
    if found.index:
        yield AuditFinding("container", "high", f"the file tells rows apart: {found.index}")
    if found.pandas_columns:
        names = ", ".join(map(repr, found.pandas_columns[:5]))
        yield AuditFinding(
            "container", "warning", f"the pandas schema in the file names columns that were not published: {names}",
            {"columns": list(found.pandas_columns)},
        )  # fmt: skip
    for name, idle in found.unused.items():
        yield AuditFinding(
            "container", "high",
            f"column {name!r}: the dictionary in the file holds {idle:,} values that no row has",
            {"column": name, "values": idle},
        )  # fmt: skip
    yield from _statistics(domains, table, found)
    if found.metadata:
        names = ", ".join(map(repr, list(found.metadata)[:5]))
        text = f"the file carries metadata of its own under {names}: read it before you hand it over"
        yield AuditFinding("container", "warning", text, {"keys": list(found.metadata)})
    if found.comments:
        text = "the file begins or ends with a line that looks like a comment (#): read it before you hand it over"
        yield AuditFinding("container", "warning", text, {"lines": found.comments})
    if found.bom:
        yield AuditFinding(
            "container", "note", "the file begins with a byte order mark, which some programs read as text"
        )
    for what in found.unread:
        yield AuditFinding("container", "note", f"not looked at: {what}")


def _statistics(domains: Domains, table: Table, found: Container) -> Iterator[AuditFinding]:
    """Least and greatest values in a Parquet footer that no row has."""
    known = {c.name: c for c in table.columns}
    for name in dict.fromkeys(c for c, _, _ in found.statistics if c in known):
        domain = domains.of(table, name)
        if not domain.values or known[name].kind in ("boolean", "other", "date", "timestamp"):
            continue
        ends = [e for c, low, high in found.statistics if c == name for e in (low, high)]
        if known[name].kind == "text":
            beyond = [e for e in ends if e not in domain.values and len(e) < 60 and e.strip() in (e, "")]
        elif domain.numeric:
            low, high = Decimal(domain.values[0]), Decimal(domain.values[-1])
            beyond = [e for e in ends if NUMBER.fullmatch(e) and not low <= Decimal(e) <= high]
        else:
            beyond = []
        if beyond:
            yield AuditFinding(
                "container", "high",
                f"column {name!r}: the statistics in the file tell a least or greatest value that no row has",
                {"column": name, "values": len(beyond)},
            )  # fmt: skip


def formula_cells(published: AuditedTable) -> Iterator[AuditFinding]:
    """Cells that a spreadsheet would run as formulas."""
    for table in dict.fromkeys((published.table, published.values)):
        names = [info.name for info in table.columns if info.kind == "text"]
        for name, domain in zip(names, published.domains.of_all(table, names), strict=True):
            bad = [
                n for v, n in zip(domain.values, domain.counts, strict=True)
                if would_run(v)
            ]  # fmt: skip
            if bad:
                yield AuditFinding(
                    "cells", "warning",
                    f"column {name!r}: {sum(bad):,} cells begin with =, +, - or @, and a spreadsheet may run them "
                    "as formulas",
                    {"column": name, "cells": sum(bad)},
                )  # fmt: skip
