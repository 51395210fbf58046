"""Queries as sqlglot expressions: written once, rendered for each engine, identifiers quoted by construction.

Columns are addressed by position (`c0`, `c1` …), so that no name of the user's enters a query before the
published table is given its names. Values enter as parameters or as tables, never as text of a query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from typing import Any

from sqlglot import exp, parse_one

from maskwright.domain.missing_values import BLANKS, NOT_A_NUMBER, missing_texts
from maskwright.engines.base import ColumnInfo, Kind
from maskwright.engines.sql.packed_keys import Packing
from maskwright.identifiers.date_shifts import DIGITS
from maskwright.identifiers.pseudonyms import LETTERS

_FLOATS = ("FLOAT", "REAL", "DOUBLE")
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINT", "UBIGINT",
             "UHUGEINT", "LONG", "SHORT", "BYTE")  # fmt: skip
_TEXTS = ("VARCHAR", "TEXT", "STRING", "CHAR", "BPCHAR", "ENUM")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def kind_of(type_name: str) -> Kind:
    """What a type of DuckDB, Spark or PostgreSQL is to us."""
    name = type_name.upper()
    if name.endswith("]") or name.startswith(("STRUCT", "MAP", "UNION", "ARRAY", "INTERVAL")):
        return "other"
    if name.startswith(_TEXTS):
        return "text"
    if name.startswith((*_FLOATS, "DECIMAL", "NUMERIC")):
        return "number"
    if name.startswith(_INTEGERS):
        return "integer"
    exact: dict[str, Kind] = {"BOOLEAN": "boolean", "DATE": "date"}
    return "timestamp" if name.startswith("TIMESTAMP") else exact.get(name, "other")


# Builders own their arguments: nothing is copied behind the scenes, so an expression that is used twice is
# copied where it is (sqlglot's default of copying at every step costs more than the queries do).


def select(
    items: Sequence[exp.Expression],
    source: exp.Expression,
    *,
    joins: Sequence[exp.Join] = (),
    where: Sequence[exp.Expression] = (),
    group: Sequence[exp.Expression] = (),
    order: Sequence[exp.Expression] = (),
    limit: int | None = None,
    distinct: bool = False,
    tables: Mapping[str, exp.Select] | None = None,
) -> exp.Select:
    """A query; `tables` are named queries that are evaluated once and that its joins may use."""
    query = exp.Select().select(*items, copy=False).from_(source, copy=False)
    for join in joins:
        query.append("joins", join)
    if where:
        query.where(*where, copy=False)
    if group:
        query.group_by(*group, copy=False)
    if order:
        query.order_by(*order, copy=False)
    if limit is not None:
        query.limit(limit, copy=False)
    for name, table in (tables or {}).items():
        query.with_(exp.to_identifier(name, quoted=True), as_=table, materialized=True, copy=False)
    return query.distinct(copy=False) if distinct else query


def column(name: str, table: str | None = None) -> exp.Column:
    """A column by its name."""
    return exp.column(name, table=table, quoted=True)


def columns(names: Iterable[str]) -> list[exp.Expression]:
    """Columns by their names."""
    return [column(name) for name in names]


def alias(expression: exp.Expression, name: str) -> exp.Alias:
    """An expression under a name."""
    return exp.Alias(this=expression, alias=exp.to_identifier(name, quoted=True))


def relation(name: str, as_: str | None = None) -> exp.Table:
    """A table by its name."""
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    if as_:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(as_, quoted=True)))
    return table


def parameter(name: str) -> exp.Placeholder:
    """A parameter of the query."""
    return exp.Placeholder(this=name)


def used(expression: exp.Expression, values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a query really has: engines refuse superfluous ones."""
    return {p.name: values[p.name] for p in expression.find_all(exp.Placeholder)} if values else {}


def integer(value: int) -> exp.Expression:
    """A whole number."""
    return exp.Literal.number(value)


def cast(value: exp.Expression, to: str) -> exp.Expression:
    """A value in another type; refused by the engine where it does not fit."""
    return exp.cast(value, to, copy=False)


def try_cast(value: exp.Expression, to: str) -> exp.Expression:
    """A value in another type, null where it does not fit."""
    return exp.TryCast(this=value, to=exp.DataType.build(to, udt=True), safe=True)


def case(*branches: tuple[exp.Expression, exp.Expression], otherwise: exp.Expression) -> exp.Case:
    """The value of the first condition that holds."""
    result = exp.Case()
    for condition, value in branches:
        result.when(condition, value, copy=False)
    return result.else_(otherwise, copy=False)


def is_null(value: exp.Expression) -> exp.Expression:
    """Is a value missing?"""
    return exp.Is(this=value, expression=exp.null())


def not_null(value: exp.Expression) -> exp.Expression:
    """Is a value there?"""
    return exp.Not(this=is_null(value))


def equal(left: exp.Expression, right: exp.Expression) -> exp.EQ:
    """Are two values equal? Unknown where one is missing."""
    return exp.EQ(this=left, expression=right)


def all_of(conditions: Sequence[exp.Expression]) -> exp.Expression:
    """Do all conditions hold?"""
    return reduce(lambda left, right: exp.And(this=left, expression=right), conditions)


def left_join(table: exp.Expression, on: exp.Expression) -> exp.Join:
    """A join that keeps every row."""
    return exp.Join(this=table, side="LEFT", on=on)


def count() -> exp.Expression:
    """The number of rows."""
    return exp.Count(this=exp.Star())


def count_distinct(name: str) -> exp.Expression:
    """The number of distinct values of a column."""
    return exp.Count(this=exp.Distinct(expressions=[column(name)]))


def row_hash(*values: exp.Expression) -> exp.Anonymous:
    """A hash of some values in 64 bits, the engine's own: quick and not cryptographic."""
    return exp.Anonymous(this="hash", expressions=list(values))


def row_number_within(by: Sequence[str], order: Sequence[exp.Expression]) -> exp.Expression:
    """The number of a row among those that have the same in some columns, from 1."""
    return exp.Window(
        this=exp.RowNumber(), partition_by=columns(by), order=exp.Order(expressions=list(order))
    )


def keyed_hash(text: exp.Expression, inner: exp.Expression, outer: exp.Expression) -> exp.Expression:
    """HMAC-SHA256 of a text in 64 hexadecimal digits, from the two padded keys (see identifiers/pseudonyms.py)."""
    coded = exp.Encode(this=text, charset=exp.Literal.string("UTF-8"))
    inside = _sha256(exp.DPipe(this=inner, expression=coded))
    return _sha256(exp.DPipe(this=outer, expression=exp.Unhex(this=inside)))


def _sha256(value: exp.Expression) -> exp.Expression:
    return exp.SHA2(this=value, length=integer(256))


def pseudonym(digest: exp.Expression) -> exp.Expression:
    """The first 80 bits of hexadecimal digits in base 32 (see identifiers/pseudonyms.py)."""
    letters: list[exp.Expression] = []
    for begin in (1, 11):  # 40 bits each: 10 digits, 8 letters
        part = exp.Substring(this=digest.copy(), start=integer(begin), length=integer(10))
        value = cast(exp.DPipe(this=exp.Literal.string("0x"), expression=part), "BIGINT")
        value.meta["of"] = "HEX"
        for bits in range(35, -1, -5):
            five = exp.Mod(
                this=exp.Paren(this=exp.IntDiv(this=value.copy(), expression=integer(1 << bits))),
                expression=integer(32),
            )
            place = exp.Add(this=exp.Paren(this=five), expression=integer(1))
            letters.append(
                exp.Substring(this=exp.Literal.string(LETTERS), start=cast(place, "INT"), length=integer(1))
            )
    return reduce(lambda left, right: exp.DPipe(this=left, expression=right), letters)


def moved_day(day: exp.Expression, digest: exp.Expression, steps: int, step: int) -> exp.Expression:
    """A date moved by the days that a keyed hash gives (see identifiers/date_shifts.py), as text."""
    part = exp.Substring(this=digest, start=integer(1), length=integer(DIGITS))
    value = cast(exp.DPipe(this=exp.Literal.string("0x"), expression=part), "BIGINT")
    value.meta["of"] = "HEX"
    place = exp.Paren(this=exp.Mod(this=value, expression=integer(2 * steps)))
    late = exp.GTE(this=place.copy(), expression=integer(steps))
    more = exp.Case(ifs=[exp.If(this=late, true=integer(1))], default=integer(0))
    moved = exp.Add(this=exp.Sub(this=place, expression=integer(steps)), expression=more)
    days = exp.Mul(this=exp.Paren(this=moved), expression=integer(step))
    return cast(exp.Add(this=day, expression=cast(exp.Paren(this=days), "INT")), "TEXT")


def create_table(name: str, query: exp.Expression, kind: str = "TABLE") -> exp.Create:
    """The statement that stores a query as a table."""
    return exp.Create(this=relation(name), kind=kind, expression=query)


def insert_into(name: str, query: exp.Expression) -> exp.Insert:
    """The statement that adds the rows of a query to a table."""
    return exp.Insert(this=relation(name), expression=query)


def update(name: str, values: Mapping[str, exp.Expression]) -> exp.Update:
    """The statement that sets columns in every row."""
    return exp.Update(this=relation(name), expressions=[equal(column(c), v) for c, v in values.items()])


@cache
def _drop() -> Any:
    return parse_one("DROP TABLE x")  # the arguments of exp.Drop differ between versions of sqlglot


def drop_table(name: str) -> exp.Expression:
    """The statement that removes a table."""
    statement: Any = _drop().copy()
    statement.find(exp.Identifier).replace(exp.to_identifier(name, quoted=True))
    result: exp.Expression = statement
    return result


# --- canonical values ---------------------------------------------------------------------------------


def token_parameters(tokens: Iterable[str], trim: bool = True) -> dict[str, Any]:
    """The parameters that `cleaned` refers to: the blanks, and each missing token."""
    distinct = sorted(missing_texts(tokens) - {""})
    return {"blanks": BLANKS if trim else "", **{f"m{i}": token for i, token in enumerate(distinct)}}


def cleaned(value: exp.Expression, info: ColumnInfo, parameters: Mapping[str, Any]) -> exp.Expression:
    """A value of its own type, but missing where it counts as missing: what is published of a column.

    Text loses its surrounding blanks (categories become plain text); NaN becomes missing, -0 becomes 0.
    """
    tokens = [parameter(m) for m, token in parameters.items() if m != "blanks" and _fits(token, info.kind)]
    if info.kind == "text":
        clean: exp.Expression = exp.Nullif(this=_trimmed(value, info), expression=exp.Literal.string(""))
        for token in tokens:
            clean = exp.Nullif(this=clean, expression=token)
        return clean
    text = text_of(value.copy(), info)
    if info.type.upper().startswith(_FLOATS):
        # Not by a comparison, nor by isnan: where the statistics of a Parquet file leave NaN out, as they should,
        # DuckDB takes both for false (duckdb/duckdb#25521). What is not finite is rare, so its text is looked at.
        finite = equal(exp.Sub(this=value.copy(), expression=value.copy()), integer(0))
        nan = exp.In(
            this=cast(value.copy(), "TEXT"), expressions=[exp.Literal.string(n) for n in NOT_A_NUMBER]
        )
        zero = (equal(value.copy(), integer(0)), integer(0))
        value = cast(case(zero, (finite, value), (nan, exp.null()), otherwise=value.copy()), info.type)
    if tokens:
        value = case((exp.In(this=text, expressions=tokens), exp.null()), otherwise=value)
    return value


def text_of(value: exp.Expression, info: ColumnInfo) -> exp.Expression:
    """Canonical text of a cleaned value (see engines/base.py)."""
    name = info.type.upper()
    if info.kind == "text":
        return value
    if (found := re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", name)) and found[1] == found[2] != "38":
        value = cast(value, f"DECIMAL({int(found[1]) + 1}, {found[2]})")  # else .1 is printed, not 0.1
    text = cast(value.copy(), "TEXT")
    text.meta["of"] = name  # what engines print differently is rendered by their dialect
    if name.startswith(_FLOATS):
        small = exp.LT(this=exp.Abs(this=value.copy()), expression=exp.Literal.number("9e18"))
        whole = equal(value.copy(), exp.Floor(this=value.copy()))
        return case((all_of([small, whole]), cast(cast(value, "BIGINT"), "TEXT")), otherwise=text)
    if name.startswith(("DECIMAL", "NUMERIC")) and not re.search(r",\s*0\)", name):
        for end in ("0", "."):
            text = exp.Trim(this=text, expression=exp.Literal.string(end), position="TRAILING")
    return text


def _trimmed(value: exp.Expression, info: ColumnInfo) -> exp.Expression:
    """Text without blanks at its ends. Looking at the two ends first is eight times as fast as trimming."""
    text = value if info.type.upper() == "VARCHAR" else cast(value, "TEXT")
    ends = [side(this=text.copy(), expression=integer(1)) for side in (exp.Left, exp.Right)]
    blank = [
        exp.GT(this=exp.StrPosition(this=parameter("blanks"), substr=e), expression=integer(0)) for e in ends
    ]
    trim = exp.Trim(this=text.copy(), expression=parameter("blanks"))
    return case((exp.Or(this=blank[0], expression=blank[1]), trim), otherwise=text)


def _fits(token: str, kind: Kind) -> bool:
    """Could a value of this kind read like the token? Others need not be compared."""
    if kind in ("integer", "number"):
        return bool(NUMBER.fullmatch(token)) or token in ("inf", "-inf")
    if kind == "boolean":
        return token in ("true", "false")
    return kind in ("text", "other") or token[:1].isdigit()


def canonical(value: exp.Expression, info: ColumnInfo, parameters: Mapping[str, Any]) -> exp.Expression:
    """Canonical text of a value as it is in the source."""
    return text_of(cleaned(value, info, parameters), info)


# --- queries over a source ----------------------------------------------------------------------------


def dictionary(
    source: exp.Expression, raw: exp.Expression, text: exp.Expression, codes: str, unknown: int
) -> exp.Select:
    """For each distinct value of a column (`raw`) its code `k`.

    Values are made canonical here, once each, and not once per row: `text` is the canonical text of the
    column `raw`. `codes` is a table (v, k); a missing value has code 0, one that is not there `unknown`.
    """
    distinct = select([alias(raw, "raw")], source, distinct=True).subquery("a", copy=False)
    values = select([column("raw"), alias(text, "v")], distinct).subquery("x", copy=False)
    absent = case((is_null(column("v", "x")), integer(0)), otherwise=integer(unknown))
    found = exp.Coalesce(this=column("k", codes), expressions=[absent])
    items = [column("raw", "x"), alias(column("v", "x"), "v"), alias(found, "k")]
    join = left_join(relation(codes), equal(column("v", codes), column("v", "x")))
    return select(items, values, joins=[join], where=[not_null(column("raw", "x"))])


def values_of(
    source: exp.Expression, raw: exp.Expression, info: ColumnInfo, parameters: Mapping[str, Any], codes: str
) -> exp.Select:
    """For each code `k` of a column the value `t` in its own type; `codes` is a table (v, k).

    A value that does not occur in the source (distorted columns may publish one) is made from its text.
    """
    distinct = select([alias(raw, "raw")], source, distinct=True).subquery("a", copy=False)
    value = cleaned(column("raw", "a"), info, parameters)
    found = select([alias(value.copy(), "t"), alias(text_of(value, info), "v")], distinct)
    one: exp.Expression = column("t", "x")
    if info.kind != "other":
        made = try_cast(column("v", codes), info.type)
        one = exp.Coalesce(this=one, expressions=[made])
    join = left_join(found.subquery("x", copy=False), equal(column("v", "x"), column("v", codes)))
    items = [column("k", codes), alias(exp.AnyValue(this=one), "t")]
    return select(items, relation(codes), joins=[join], group=[column("k", codes)])


def packed(codes: Sequence[exp.Expression], packing: Packing) -> list[exp.Expression]:
    """One 64-bit key per word of the packing."""
    words = []
    for word in packing.words:
        key: exp.Expression = cast(codes[word[0]].copy(), "BIGINT")
        for i in word[1:]:
            scaled = exp.Mul(this=exp.Paren(this=key), expression=integer(packing.radices[i]))
            key = exp.Add(this=scaled, expression=codes[i].copy())
        words.append(key)
    return words


def digit(packing: Packing, i: int, table: str, words: str = "w") -> exp.Expression:
    """Digit i of a packed key whose words are the columns w0, w1 … of a table."""
    at, after = packing.place(i)
    word = column(f"{words}{at}", table)
    return exp.Mod(
        this=exp.Paren(this=exp.IntDiv(this=word, expression=integer(after))),
        expression=integer(packing.radices[i]),
    )


def side_by_side(
    items: Sequence[exp.Expression],
    source: exp.Expression,
    row: exp.Expression,
    stored: exp.Expression,
    ordered: bool = True,
) -> exp.Select:
    """A source beside a stored table `x` that has one row for each of its rows; sorted by `x.place`, if not negative.

    Rows are matched by their position, which costs next to nothing; that the numbers of both agree is checked for
    every single row.
    """
    same = equal(column("rowid", "x"), row)
    wrong = exp.Anonymous(
        this="error", expressions=[exp.Literal.string("the rows are not those that were counted")]
    )
    place = case((same, column("place", "x")), otherwise=wrong)
    there = exp.GTE(this=place, expression=integer(0))
    beside = exp.Join(this=stored, method="POSITIONAL")
    return select(
        items, source, joins=[beside], where=[there], order=[column("place", "x")] if ordered else []
    )


def count_by(query: exp.Select, groups: Sequence[str], *counted: exp.Expression) -> exp.Select:
    """Per combination of the named output columns of a query: `counted`, or its rows as `n`."""
    counts = counted or (alias(count(), "n"),)
    return select([*columns(groups), *counts], query.subquery("q", copy=False), group=columns(groups))
