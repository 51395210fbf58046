"""Rows of a plan, made by the engine itself: every entry is repeated, and shuffled values find rows by their place.

The places of a group are consecutive numbers. Rows take them in the order of the entries, values in an order that is
drawn with a key: so each assignment of the values of a group to its rows is equally likely.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from maskwright.core.classes import Ints
from maskwright.engines import sql
from maskwright.engines.coding import Arrays, Runner

if TYPE_CHECKING:
    from maskwright.engines.expansion import Entries

PIECE = 1 << 14  # rows that a run has at most: each is a list for a moment


def derived_key(key: str, purpose: str) -> str:
    """A key of its own for each purpose, short enough for one block of the hash."""
    return hashlib.sha256(purpose.encode() + b"\0" + key.encode()).hexdigest()[:32]


def shuffled(row: exp.Expression, key: str = "key") -> exp.Expression:
    """A keyed hash of the row number: an order that says nothing about the source without the key."""
    return exp.MD5(this=exp.DPipe(this=sql.parameter(key), expression=sql.cast(row, "TEXT")))


def numbered(partition: exp.Expression, row: exp.Expression, key: str) -> exp.Expression:
    """The number of a row among those of its part, from 0, in an order drawn with a key."""
    order = exp.Order(expressions=[shuffled(row, key), row.copy()])
    number = exp.Window(this=exp.RowNumber(), partition_by=[partition], order=order)
    return exp.Sub(this=number, expression=sql.integer(1))


def repeated(name: str, times: str) -> exp.Select:
    """Each row of a table as often as its column `times` says, the copies numbered 0, 1 … in column `i`."""
    last = exp.Sub(this=sql.column(times), expression=sql.integer(1))
    copies = exp.Explode(this=exp.GenerateSeries(start=sql.integer(0), end=last))
    return sql.select([exp.Star(), sql.alias(copies, "i")], sql.relation(name))


def not_sent(query: exp.Select, *names: str) -> exp.Select:
    """Joins with these relations sort both sides: Spark takes repeated rows for few, and would send all of them."""
    if names:
        merge = exp.Anonymous(this="MERGE", expressions=[exp.to_identifier(name) for name in names])
        query.set("hint", exp.Hint(expressions=[merge]))
    return query


def matched(runner: Runner, target: str, parts: Sequence[Entries], key: str, purpose: str) -> None:
    """Create a view with the words of all parts, row by row: `p0w0`, `p0w1` … `p1w0` …"""
    content: dict[str, Arrays] = {}
    parameters: dict[str, Any] = {}
    names: list[str] = []
    first = f"{target}_p0"
    rows = _repeated(first)
    joins = []
    for p, part in enumerate(parts):
        words = {f"p{p}w{w}": key for w, key in enumerate(part.keys)}
        names += words
        content[f"{target}_p{p}"] = _runs(part, words)
        if p:
            parameters[f"draw{p}"] = derived_key(key, f"{purpose}\0{p}")
            places = _drawn(f"{target}_p{p}", list(words), f"draw{p}").subquery(f"x{p}", copy=False)
            same = sql.equal(sql.column("place", f"x{p}"), sql.column("place", "x0"))
            joins.append(exp.Join(this=places, on=same))
    query = sql.select(sql.columns(names), rows.subquery("x0", copy=False), joins=joins)
    not_sent(query, *(f"x{p}" for p in range(1, len(parts))))
    with runner.tables(content):
        runner.run(sql.create_table(target, query), parameters)


def in_pieces(runs: Mapping[str, Any], moving: Sequence[str]) -> dict[str, Any]:
    """Runs of `n` rows, cut so that none is long; `moving` columns count rows and go on from piece to piece."""
    n = np.asarray(runs["n"])
    pieces = -(-n // PIECE)
    index = np.repeat(np.arange(len(n)), pieces)
    before = (np.arange(len(index)) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * PIECE
    cut = {name: values[index] for name, values in runs.items()}
    cut["n"] = np.minimum(cut["n"] - before, PIECE)
    for name in moving:
        if name in cut:
            cut[name] = cut[name] + before
    return cut


def _runs(part: Entries, words: Mapping[str, Ints]) -> Arrays:
    groups, lo = part.groups(), np.cumsum(part.rows) - part.rows
    first = lo[np.searchsorted(groups, groups)]
    return in_pieces({"n": part.rows, "lo": lo, "first": first, "g": groups, **words}, ("lo",))


def _repeated(name: str) -> exp.Select:
    """Each row of the first part, entries are in the order of the groups: its number is its place."""
    copies = repeated(name, "n").subquery("r", copy=False)
    place = exp.Add(this=sql.column("lo", "r"), expression=sql.column("i", "r"))
    return sql.select(
        [exp.Column(this=exp.Star(), table=exp.to_identifier("r")), sql.alias(place, "place")], copies
    )


def _drawn(name: str, words: Sequence[str], key: str) -> exp.Select:
    """Each value of another part with a place in its group that is drawn with a key."""
    rows = _repeated(name).subquery("q", copy=False)
    number = numbered(sql.column("g", "q"), sql.column("place", "q"), key)
    place = exp.Add(this=sql.column("first", "q"), expression=exp.Paren(this=number))
    return sql.select([sql.alias(place, "place"), *(sql.column(w, "q") for w in words)], rows)
