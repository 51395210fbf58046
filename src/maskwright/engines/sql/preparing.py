"""Messy columns made plain, for every engine that speaks SQL: what `prepare` says, as expressions of a row's own cells.

Every expression takes the canonical text of a cell and gives a canonical text, or null where the cell does not fit.
What was found is counted over the distinct texts of a column; nothing that is counted decides what becomes of a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from sqlglot import exp

from maskwright.domain.exact import text_of
from maskwright.engines.base import ColumnInfo
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Relation, Runner
from maskwright.errors import InputError
from maskwright.identifiers.date_shifts import DateOffsets
from maskwright.identifiers.pseudonyms import Pseudonyms
from maskwright.prepare import (
    DateFormats,
    Digits,
    ListCells,
    NumberFormat,
    Preparation,
    Redaction,
    Repair,
    Span,
)
from maskwright.prepare import repairs as words
from maskwright.prepare.date_formats import MONTHS, WrittenDate
from maskwright.prepare.numbers import DECIMALS

Preparing = Sequence[tuple[str, Preparation]]
Selected = tuple[tuple[ColumnInfo, ...], list[exp.Expression], dict[str, Any]]  # columns, items, parameters


@dataclass
class _Cells:
    """The texts of a column as they are made plain; user's texts become parameters."""

    table: Relation
    parameters: dict[str, Any] = field(default_factory=dict)

    def policy_text(self, value: str) -> exp.Expression:
        """A text of the policy, as a parameter."""
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return clauses.cast(clauses.parameter(name), "TEXT")

    def group(self, text: exp.Expression, pattern: str, number: int) -> exp.Expression:
        """What a group of a regular expression matches; empty where it matches nothing."""
        return _call("regexp_extract", text.copy(), self.policy_text(pattern), clauses.integer(number))

    def among(self, text: exp.Expression, values: Sequence[str]) -> exp.Expression:
        """Whether a text is one of these."""
        return exp.In(this=text.copy(), expressions=[self.policy_text(value) for value in values])


@dataclass(frozen=True)
class _Rule:
    """What becomes of a cell: a plain text, and in words what it was; both null where it does not fit."""

    value: exp.Expression
    what: exp.Expression


def prepared_columns(t: Relation, preparing: Preparing) -> Selected:
    """The columns of a prepared table, what they show, and the parameters of that."""
    cells = _Cells(t, dict(t.parameters))
    steps = dict(preparing)
    columns, items = list[ColumnInfo](), list[exp.Expression]()
    for info in t.columns:
        step = steps.get(info.name)
        columns.append(info if step is None else ColumnInfo(info.name, "text", "VARCHAR"))
        items.append(t.raw(info.name) if step is None else _shown(cells, t.text(info.name), step))
    for name, step in _new_columns(t, preparing):
        assert step.between is not None  # noqa: S101 - for the type checker
        columns.append(ColumnInfo(name, "text", "VARCHAR"))
        items.append(_span_rule(cells, step.between, steps).value)
    return tuple(columns), [clauses.alias(item, f"c{i}") for i, item in enumerate(items)], cells.parameters


def pseudonymised_columns(
    t: Relation, pseudonyms: Mapping[str, Pseudonyms], more: Sequence[exp.Expression] = ()
) -> tuple[tuple[ColumnInfo, ...], exp.Select, dict[str, Any]]:
    """The columns of a table that shows pseudonyms in some of them (null where missing), its query, and parameters.

    `more` are further items that the query is to have.
    """
    parameters, made = dict(t.parameters), list[exp.Expression]()
    inside = [clauses.alias(t.raw(info.name), f"c{i}") for i, info in enumerate(t.columns)]
    for i, (name, function) in enumerate(pseudonyms.items()):
        parameters |= {f"inner{i}": function.inner, f"outer{i}": function.outer}
        keys = [clauses.parameter(f"{key}{i}") for key in ("inner", "outer")]
        inside.append(clauses.alias(clauses.keyed_hash(t.text(name), *keys), f"h{i}"))
    hashed = [*pseudonyms]
    for i, info in enumerate(t.columns):
        shown: exp.Expression = clauses.column(f"c{i}", "h")
        if info.name in pseudonyms:
            shown = clauses.pseudonym(clauses.column(f"h{hashed.index(info.name)}", "h"))
        made.append(clauses.alias(shown, f"c{i}"))
    further = [clauses.column(item.alias, "h") for item in more]
    rows = clauses.select([*inside, *more], t.source()).subquery("h", copy=False)
    infos = tuple(ColumnInfo(c.name, "text", "VARCHAR") if c.name in pseudonyms else c for c in t.columns)
    return infos, clauses.select([*made, *further], rows), parameters


def shifted_columns(
    t: Relation, names: Sequence[str], person: str, offsets: DateOffsets
) -> tuple[tuple[ColumnInfo, ...], exp.Select, exp.Select, dict[str, Any]]:
    """The columns of a table with moved dates, its query, one of the rows whose dates cannot be moved, and parameters.

    The second query has for each column how many of its values are no days, and for how many nobody is named.
    """
    parameters = {**t.parameters, "inner": offsets.draw.inner, "outer": offsets.draw.outer}
    keys = [clauses.parameter("inner"), clauses.parameter("outer")]
    inside = [clauses.alias(t.raw(info.name), f"c{i}") for i, info in enumerate(t.columns)]
    inside.append(clauses.alias(clauses.keyed_hash(t.text(person), *keys), "h"))
    made, wrong = list[exp.Expression](), list[exp.Expression]()
    for i, info in enumerate(t.columns):
        if info.name not in names:
            made.append(clauses.alias(clauses.column(f"c{i}", "h"), f"c{i}"))
            continue
        inside.append(clauses.alias(t.text(info.name), f"d{i}"))
        day = clauses.try_cast(clauses.column(f"d{i}", "h"), "DATE")
        moved = clauses.moved_day(day, clauses.column("h", "h"), offsets.steps, offsets.step)
        made.append(clauses.alias(moved, f"c{i}"))
        text = clauses.column(f"d{i}", "h")
        short = exp.NEQ(this=exp.Length(this=text.copy()), expression=clauses.integer(len("2026-05-31")))
        odd = exp.And(
            this=exp.Not(this=clauses.is_null(text)),
            expression=exp.Paren(this=exp.Or(this=clauses.is_null(day.copy()), expression=short)),
        )
        nobody = exp.And(this=exp.Not(this=clauses.is_null(text.copy())),
                         expression=clauses.is_null(clauses.column("h", "h")))  # fmt: skip
        for condition in (odd, nobody):
            wrong.append(exp.Sum(this=exp.Case(ifs=[exp.If(this=condition, true=clauses.integer(1))],
                                               default=clauses.integer(0))))  # fmt: skip
    wrong = [clauses.alias(item, f"w{i}") for i, item in enumerate(wrong)]
    rows = clauses.select(inside, t.source()).subquery("h", copy=False)
    infos = tuple(ColumnInfo(c.name, "text", "VARCHAR") if c.name in names else c for c in t.columns)
    return infos, clauses.select(made, rows), clauses.select(wrong, rows.copy()), parameters


def drawn_rows(t: Relation, most: int, person: str, draw: Pseudonyms) -> tuple[exp.Select, dict[str, Any]]:
    """The rows of a table that are kept of each person (see `Engine.draw_rows`), with their number, and parameters.

    Equal rows of a person are numbered, so that each has a draw of its own.
    """
    content = clauses.row_hash(*map(t.hashable, t.names))
    first = [clauses.alias(t.raw(name), f"c{i}") for i, name in enumerate(t.names)]
    first += [
        clauses.alias(t.text(person), "u"),
        clauses.alias(content, "g"),
        clauses.alias(t.row_number(), "r"),
    ]
    rows = clauses.select(first, t.source()).subquery("a", copy=False)
    alike = clauses.row_number_within(["u", "g"], [clauses.column("r")])
    counted = clauses.select([exp.Star(), clauses.alias(alike, "o")], rows).subquery("b", copy=False)
    parts = [
        clauses.cast(clauses.column("g"), "TEXT"),
        clauses.cast(clauses.column("o"), "TEXT"),
        clauses.column("u"),
    ]
    message = exp.DPipe(
        this=exp.DPipe(
            this=parts[0], expression=exp.DPipe(this=exp.Literal.string("/"), expression=parts[1])
        ),
        expression=exp.DPipe(this=exp.Literal.string("/"), expression=parts[2]),
    )
    hashed = clauses.keyed_hash(message, clauses.parameter("inner"), clauses.parameter("outer"))
    drawn = clauses.select([exp.Star(), clauses.alias(hashed, "h")], counted).subquery("d", copy=False)
    place = clauses.row_number_within(["u"], clauses.columns("hr"))
    placed = clauses.select([exp.Star(), clauses.alias(place, "n")], drawn).subquery("e", copy=False)
    few = exp.LTE(this=clauses.column("n"), expression=clauses.integer(most))
    kept = exp.Or(this=few, expression=clauses.is_null(clauses.column("u")))
    names = clauses.columns([*(f"c{i}" for i in range(len(t.names))), "r"])
    query = clauses.select(names, placed, where=[kept], order=[clauses.column("r")])
    return query, {**t.parameters, "inner": draw.inner, "outer": draw.outer}


def redactions(t: Relation, preparing: Preparing) -> dict[str, Redaction]:
    """The functions that an engine must have before the columns of a table are prepared, by their names."""
    forms = [step.redact for name, step in preparing if step.redact is not None and name in t.names]
    return {_function_name(form): form for form in forms}


def _function_name(form: Redaction) -> str:
    return f"redacted_{sha256(form.model_dump_json().encode()).hexdigest()[:16]}"


def counted_repairs(runner: Runner, t: Relation, preparing: Preparing) -> tuple[Repair, ...]:
    """What is found in each column that is prepared. Refuses what the policy does not allow, by form and count."""
    found = list[Repair]()
    for name, step in preparing:
        if name in t.names:
            found += _repairs(runner, t, name, step)
    for name, step in _new_columns(t, preparing):
        found += _lengths(runner, t, name, step, dict(preparing))
    return tuple(found)


def _new_columns(t: Relation, preparing: Preparing) -> list[tuple[str, Preparation]]:
    """The lengths whose dates the table has."""
    found = []
    for name, step in preparing:
        if step.between is None:
            continue
        if name in t.names:
            raise InputError(
                f"prepare: {name!r} should be a new column, but the table has one of that name; choose another name"
            )
        if all(column in t.names for column in step.between.columns):
            found.append((name, step))
    return found


def _shown(cells: _Cells, text: exp.Expression, step: Preparation) -> exp.Expression:
    rule = _rule(cells, text, step)
    if step.otherwise == "keep":
        fits = clauses.not_null(rule.what)
        return clauses.case((fits, rule.value), otherwise=text.copy())
    return rule.value


def _rule(cells: _Cells, text: exp.Expression, step: Preparation) -> _Rule:
    """What becomes of a text: missing, one of the listed spellings, or what the kind of the column makes of it."""
    kind = _of_kind(cells, text, step)
    values, whats = (
        list[tuple[exp.Expression, exp.Expression]](),
        list[tuple[exp.Expression, exp.Expression]](),
    )
    if step.missing:
        values.append((cells.among(text, step.missing), exp.null()))
        whats.append((cells.among(text, step.missing), _said(words.MISSING)))
    for meant, others in step.spellings.items():
        if others:
            values.append((cells.among(text, others), cells.policy_text(meant)))
            whats.append((cells.among(text, others), _said(words.SPELLED)))
        values.append((cells.among(text, [meant]), cells.policy_text(meant)))
        whats.append((cells.among(text, [meant]), _said("")))
    if not values:
        return kind
    return _Rule(clauses.case(*values, otherwise=kind.value), clauses.case(*whats, otherwise=kind.what))


def _of_kind(cells: _Cells, text: exp.Expression, step: Preparation) -> _Rule:
    for name, rule in KINDS.items():
        setting = getattr(step, name)
        if setting is not None:
            made: _Rule = rule(cells, text, setting)
            return made
    return _Rule(text.copy(), clauses.case((clauses.not_null(text.copy()), _said("")), otherwise=exp.null()))


# --- the kinds ----------------------------------------------------------------------------------------


def _number_rule(cells: _Cells, text: exp.Expression, form: NumberFormat) -> _Rule:
    """Whole part and decimals without marks, zeros that say nothing, and signs; times the factor of the unit."""
    sign, whole, decimals, unit = (cells.group(text, form.pattern, i) for i in range(1, 5))
    for mark in form.thousands:
        whole = _call("replace", whole, cells.policy_text(mark), _said(""))
    plain = _plain_number(sign, whole, decimals)
    there = exp.NEQ(this=_joined(whole.copy(), decimals.copy()), expression=_said(""))
    value: exp.Expression = clauses.case((there, plain), otherwise=exp.null())
    scaled = [(u, f) for u, f in form.units.items() if f != 1]
    if scaled:
        short = exp.LTE(this=exp.Length(this=decimals.copy()), expression=clauses.integer(DECIMALS))
        branches = [
            (clauses.all_of([clauses.equal(unit.copy(), cells.policy_text(u)), short.copy()]),
             _scaled(value.copy(), text_of(f)))
            for u, f in scaled
        ]  # fmt: skip
        long = [(cells.among(unit.copy(), [u for u, _ in scaled]), exp.null())]
        value = clauses.case(*branches, *long, otherwise=value)
    return _Rule(value, _changed(text, value, words.NUMBER))


def _plain_number(sign: exp.Expression, whole: exp.Expression, decimals: exp.Expression) -> exp.Expression:
    """A number as canonical text: -1234.5."""
    left = exp.Trim(this=whole, expression=_said("0"), position="LEADING")
    right = exp.Trim(this=decimals, expression=_said("0"), position="TRAILING")
    whole = clauses.case((clauses.equal(left.copy(), _said("")), _said("0")), otherwise=left)
    after = clauses.case(
        (clauses.equal(right.copy(), _said("")), _said("")), otherwise=_joined(_said("."), right.copy())
    )
    number = _joined(whole, after)
    negative = clauses.all_of(
        [
            exp.Not(this=exp.In(this=sign, expressions=[_said(""), _said("+")])),
            exp.NEQ(this=number.copy(), expression=_said("0")),
        ]
    )
    return _joined(clauses.case((negative, _said("-")), otherwise=_said("")), number)


def _scaled(value: exp.Expression, factor: str) -> exp.Expression:
    """A number times a factor, exactly; null where it is too large for that."""
    number = clauses.try_cast(value, f"DECIMAL(20, {DECIMALS})")
    by = clauses.cast(exp.Literal.string(factor), f"DECIMAL(12, {DECIMALS})")
    text: exp.Expression = clauses.cast(exp.Mul(this=number, expression=by), "TEXT")
    for end in ("0", "."):
        text = exp.Trim(this=text, expression=_said(end), position="TRAILING")
    return text


def _date_rule(cells: _Cells, text: exp.Expression, form: DateFormats) -> _Rule:
    """The day that the first fitting format reads."""
    days = [_day(cells, text, written, form.first_year) for written in form.written]
    first = (
        exp.Coalesce(this=days[0].copy(), expressions=[d.copy() for d in days[1:]]) if days[1:] else days[0]
    )
    length = {"day": 10, "month": 7, "year": 4}[form.show]
    value = exp.Substring(this=first, start=clauses.integer(1), length=clauses.integer(length))
    read = [
        (clauses.not_null(day.copy()), _said(f"{words.DATE} {written}"))
        for day, written in zip(days, form.formats, strict=True)
    ]
    what: exp.Expression = clauses.case(*read, otherwise=exp.null())
    twice = [exp.NEQ(this=days[i].copy(), expression=days[j].copy()) for i, j in form.exchangeable]
    if twice and form.ambiguous != "first":
        unclear = twice[0]
        for other in twice[1:]:
            unclear = exp.Or(this=unclear, expression=other)  # type: ignore[assignment]
        value = clauses.case((unclear, exp.null()), otherwise=value)  # type: ignore[assignment]
        what = clauses.case((unclear.copy(), _said(words.AMBIGUOUS)), otherwise=what)
    return _Rule(value, what)


def _day(cells: _Cells, text: exp.Expression, written: WrittenDate, first_year: int | None) -> exp.Expression:
    """The day that a text means in a format, as 2024-01-31; null where it means none."""
    year, month, day = (
        cells.group(text, written.pattern, i) for i in (written.year, written.month, written.day)
    )
    if written.short:
        start = first_year or 0
        number = clauses.try_cast(year, "INT")
        late = exp.LT(this=number.copy(), expression=clauses.integer(start % 100))
        century = start - start % 100
        base = clauses.case((late, clauses.integer(century + 100)), otherwise=clauses.integer(century))
        year = clauses.cast(exp.Add(this=base, expression=number), "TEXT")
    if written.named:
        start_of = exp.Lower(
            this=exp.Substring(this=month, start=clauses.integer(1), length=clauses.integer(3))
        )
        numbers = [
            (clauses.equal(start_of.copy(), _said(name)), _said(f"{i:02}"))
            for i, name in enumerate(MONTHS, 1)
        ]
        month = clauses.case(*numbers, otherwise=_said("00"))
    two = [_call("lpad", part, clauses.integer(2), _said("0")) for part in (month, day)]
    whole = _joined(year, _said("-"), two[0], _said("-"), two[1])
    return clauses.cast(clauses.try_cast(whole, "DATE"), "TEXT")


def _digit_rule(cells: _Cells, text: exp.Expression, form: Digits) -> _Rule:
    """The code with its leading zeros."""
    code = cells.group(text, form.pattern, 1)
    padded = _call("lpad", code.copy(), clauses.integer(form.width), _said("0"))
    value = clauses.case((exp.NEQ(this=code, expression=_said("")), padded), otherwise=exp.null())
    return _Rule(value, _changed(text, value, words.DIGITS))


def _list_rule(cells: _Cells, text: exp.Expression, form: ListCells) -> _Rule:
    """The list with one separator; its first value; or the number of its values."""
    value: exp.Expression = text.copy()
    first = cells.policy_text(form.separators[0])
    for other in form.separators[1:]:
        value = _call("replace", value, cells.policy_text(other), first.copy())
    if form.keep == "first":
        value = _call("split_part", value, first.copy(), clauses.integer(1))
        value = exp.Nullif(this=exp.Trim(this=value), expression=_said(""))
    elif form.keep == "count":
        parts = exp.Split(this=value, expression=first.copy())
        blank = exp.EQ(this=exp.Trim(this=clauses.column("u")), expression=_said(""))
        full = exp.Lambda(this=exp.Not(this=blank), expressions=[exp.to_identifier("u")])
        there = exp.ArrayFilter(this=parts, expression=full)
        size = clauses.cast(exp.ArraySize(this=there), "TEXT")
        value = clauses.case((clauses.not_null(text.copy()), size), otherwise=exp.null())
    return _Rule(value, _changed(text, value, words.LIST))


def _redaction_rule(_cells: _Cells, text: exp.Expression, form: Redaction) -> _Rule:
    """The text without what a program took out of it; null where the program failed."""
    value = _call(_function_name(form), text.copy())
    return _Rule(value, _changed(text, value, words.REDACTED))


def _span_rule(cells: _Cells, span: Span, steps: Mapping[str, Preparation]) -> _Rule:
    """The whole units from one date to another; null where one is missing, or the second is before the first."""
    start, end = (_end_of(cells, name, span, steps) for name in (span.start, span.end))
    days: exp.Expression = exp.DateDiff(this=end, expression=start, unit=exp.var("DAY"))
    length = clauses.cast(days, "BIGINT")
    if span.unit == "weeks":
        length = exp.IntDiv(this=length, expression=clauses.integer(7))
    elif span.unit in ("months", "years"):
        months = _months(start, end)
        length = (
            months
            if span.unit == "months"
            else exp.IntDiv(this=exp.Paren(this=months), expression=clauses.integer(12))
        )
    after = exp.GTE(this=end.copy(), expression=start.copy())
    value = clauses.case((after, clauses.cast(length, "TEXT")), otherwise=exp.null())
    both = clauses.all_of([clauses.not_null(start.copy()), clauses.not_null(end.copy())])
    what = clauses.case((after.copy(), _said(words.LENGTH)), (both, _said(words.UNFIT)), otherwise=_said(""))
    return _Rule(value, what)


def _months(start: exp.Expression, end: exp.Expression) -> exp.Expression:
    """Whole months from one day to another."""

    def part(day: exp.Expression, first: int, length: int) -> exp.Expression:
        """A number in the text of a day: its year, its month."""
        text = clauses.cast(day.copy(), "TEXT")
        piece = exp.Substring(this=text, start=clauses.integer(first), length=clauses.integer(length))
        return clauses.cast(piece, "INT")

    years = exp.Mul(
        this=exp.Paren(this=exp.Sub(this=part(end, 1, 4), expression=part(start, 1, 4))),
        expression=clauses.integer(12),
    )
    months = exp.Paren(this=exp.Sub(this=part(end, 6, 2), expression=part(start, 6, 2)))
    early = exp.LT(this=part(end, 9, 2), expression=part(start, 9, 2))
    less = clauses.case((early, clauses.integer(1)), otherwise=clauses.integer(0))
    return exp.Sub(this=exp.Add(this=years, expression=months), expression=less)


def _end_of(cells: _Cells, name: str, span: Span, steps: Mapping[str, Preparation]) -> exp.Expression:
    """One end of a length, as a date."""
    if name in span.columns:
        text = cells.table.text(name)
        step = steps.get(name)
        shown = text if step is None else _shown(cells, text, step)
    else:
        shown = cells.policy_text(name)
    day = exp.Substring(this=shown, start=clauses.integer(1), length=clauses.integer(10))
    return clauses.try_cast(day, "DATE")


KINDS: dict[str, Callable[..., _Rule]] = {
    "numbers": _number_rule,
    "dates": _date_rule,
    "digits": _digit_rule,
    "lists": _list_rule,
    "redact": _redaction_rule,
}


# --- what was found -----------------------------------------------------------------------------------


def _repairs(runner: Runner, t: Relation, name: str, step: Preparation) -> list[Repair]:
    """What is found in one column; what does not fit is refused where the policy says so."""
    cells = _Cells(t, dict(t.parameters))
    rule = _rule(cells, clauses.column("v", "g"), step)
    text = clauses.alias(t.text(name), "v")
    distinct = clauses.count_by(clauses.select([text], t.source()), ["v"])
    there = clauses.not_null(clauses.column("v", "g"))
    found = clauses.select(
        [clauses.column("v", "g"), clauses.alias(rule.what, "w"), clauses.column("n", "g")],
        distinct.subquery("g", copy=False), where=[there],
    )  # fmt: skip
    counted = clauses.count_by(
        found,
        ["w"],
        clauses.alias(exp.Sum(this=clauses.column("n")), "rows"),
        clauses.alias(clauses.count(), "texts"),
    )
    kinds = {what: (int(rows), int(texts)) for what, rows, texts in runner.rows(counted, cells.parameters)}
    result = []
    for what in sorted(w for w in kinds if w):
        became = "missing" if what == words.MISSING else ""
        if what == words.AMBIGUOUS:
            became = "missing"
            if step.dates is not None and step.dates.ambiguous == "refuse":
                raise _unclear(name, step.dates, *kinds[what])
        result.append(Repair(name, what, *kinds[what], became))
    if None in kinds:
        rows, texts = kinds[None]
        if step.otherwise == "refuse":
            unfit = clauses.select(
                clauses.columns(["v", "n"]), found.subquery("x", copy=False),
                where=[clauses.is_null(clauses.column("w"))],
                order=[exp.Ordered(this=clauses.column("n"), desc=True), clauses.column("v")], limit=100,
            )  # fmt: skip
            raise _unfit(name, step, rows, texts, runner.rows(unfit, cells.parameters))
        result.append(Repair(name, words.UNFIT, rows, texts, {"keep": "kept"}.get(step.otherwise, "missing")))
    return result


def _lengths(
    runner: Runner, t: Relation, name: str, step: Preparation, steps: Mapping[str, Preparation]
) -> list[Repair]:
    """How many lengths were computed, and how many end before they begin."""
    assert step.between is not None  # noqa: S101 - for the type checker
    cells = _Cells(t, dict(t.parameters))
    rule = _span_rule(cells, step.between, steps)
    items = [clauses.alias(rule.what, "w"), clauses.alias(rule.value, "v")]
    texts = exp.Count(this=exp.Distinct(expressions=[clauses.column("v")]))
    counted = clauses.count_by(
        clauses.select(items, t.source()), ["w"],
        clauses.alias(clauses.count(), "rows"), clauses.alias(texts, "texts"),
    )  # fmt: skip
    kinds = {what: (int(rows), int(texts)) for what, rows, texts in runner.rows(counted, cells.parameters)}
    result = [Repair(name, words.LENGTH, *kinds[words.LENGTH])] if words.LENGTH in kinds else []
    if words.UNFIT in kinds:
        rows, _ = kinds[words.UNFIT]
        if step.otherwise == "refuse":
            raise InputError(
                f"prepare.{name}: {rows:,} row{'s' if rows != 1 else ''} have {step.between.end} before "
                f"{step.between.start}; correct them, or write otherwise: missing"
            )
        result.append(Repair(name, "ends before it begins", rows, 1, "missing"))
    return result


def _unfit(
    name: str, step: Preparation, rows: int, texts: int, commonest: Sequence[tuple[str, int]]
) -> InputError:
    kind = next((k for k in KINDS if getattr(step, k) is not None), "spellings")
    different = f", {texts:,} different texts" if texts > 1 else ""
    return InputError(
        f"column {name!r}: {rows:,} row{'s' if rows != 1 else ''}{different}, do not fit prepare.{name}.{kind}; their "
        f"form (digits as 9, letters as a): {words.shape_list(commonest)}. Add what they mean to prepare.{name}, as "
        "`missing: [...]` or `spellings: {...}`, or write `otherwise: missing` to count them as missing"
    )


def _unclear(name: str, form: DateFormats, rows: int, texts: int) -> InputError:
    one, two = form.exchangeable[0]
    return InputError(
        f"column {name!r}: {rows:,} row{'s' if rows != 1 else ''} ({texts:,} different texts) can be read as "
        f"{form.formats[one]} and as {form.formats[two]}, which are different days; remove one of the formats from "
        f"prepare.{name}.dates, or write `ambiguous: first` or `ambiguous: missing` there"
    )


def _changed(text: exp.Expression, value: exp.Expression, what: str) -> exp.Expression:
    """In words what a cell was: nothing to say where it stays as it is, null where it does not fit."""
    same = clauses.equal(text.copy(), value.copy())
    return clauses.case((clauses.is_null(value.copy()), exp.null()), (same, _said("")), otherwise=_said(what))


def _said(text: str) -> exp.Expression:
    """A constant text of ours."""
    return exp.Literal.string(text)


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _joined(*texts: exp.Expression) -> exp.Expression:
    """Texts one after another."""
    return _call("concat", *texts)
