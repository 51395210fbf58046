"""What every engine that speaks SQL does alike: the questions that are one statement, rendered for the engine.

Among them the frequency set: one pass over the rows that groups by packed codes; the rest is arithmetic on arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.exact import exact_bincount, numbered_values, sorted_distinct
from maskwright.domain.summary import Joint, Owned, Shared, Summary, personal_cells
from maskwright.engines.base import Domain, Row, SummarySpec, Table, Wanted
from maskwright.engines.sql import clauses, set_columns, table_queries
from maskwright.engines.sql.coded_columns import Coded, Relation, Runner, check_known
from maskwright.engines.sql.packed_keys import Packing, number, numbered
from maskwright.errors import InputError


def frequency_set(runner: Runner, table: Relation, spec: SummarySpec) -> Summary:
    """The frequency set of a table: cells with their rows, people and sensitive values."""
    names = tuple(h.attribute for h in spec.attributes)
    wanted = (*names, *(s.name for s in spec.sensitive))
    domains = (*(h.values for h in spec.attributes), *(s.values for s in spec.sensitive))
    coded = Coded.of(table, wanted, tuple(domains))
    with coded.at_hand(runner):
        if spec.unit is None:
            return _of_rows(runner, table, spec, coded)
        return _of_people(runner, table, spec, coded)


def _of_rows(runner: Runner, table: Relation, spec: SummarySpec, coded: Coded) -> Summary:
    """Every row is a person: group once by the codes of everything."""
    width = len(spec.attributes)
    packing = Packing.of(coded.radices)
    keys, counts = _cells(runner, table, coded, packing)
    check_known(runner, coded, (packing.unpack(keys, i) for i in range(len(coded.names))), width)
    keep = np.ones(len(counts), dtype=bool)
    if spec.drop_missing:
        for i in range(len(coded.names)):
            keep &= packing.unpack(keys, i) > 0
    dropped = int(counts[~keep].sum())
    keys, counts = [k[keep] for k in keys], counts[keep]
    tuples, owner = numbered(packing.head(keys, width), len(counts))
    n = int(owner[-1]) + 1 if len(owner) else 0
    rows = exact_bincount(owner, counts, n)
    values = np.empty((len(spec.sensitive), len(counts)), dtype=np.int32)
    for j in range(len(spec.sensitive)):
        values[j] = packing.unpack(keys, width + j)
    sensitive = {
        s.name: ValueCounts.collect(s.values, n, owner, values[j].astype(np.int64), counts, s.ordered)
        for j, s in enumerate(spec.sensitive)
    }
    codes = _codes(coded, width, tuples, n)
    joint = Joint(owner, values, counts)
    return Summary(tuple(spec.attributes), codes, rows, rows, sensitive, None, dropped, joint)


def _cells(runner: Runner, table: Relation, coded: Coded, packing: Packing) -> tuple[list[Ints], Ints]:
    """The distinct combinations of codes as packed keys, ascending, with their rows."""
    words = [f"k{w}" for w in range(len(packing.words))]
    packed = clauses.packed([coded.code(i) for i in range(len(coded.names))], packing)
    items = [clauses.alias(key, word) for word, key in zip(words, packed, strict=True)]
    query = clauses.select(
        items or [clauses.integer(1)], table.source(), joins=coded.joins(), tables=coded.tables()
    )
    return table_queries.counted_keys(runner, table, query, words)


def _codes(coded: Coded, width: int, tuples: list[Ints], n: int) -> NDArray[np.int32]:
    """The code of each quasi-identifier in each tuple."""
    packing = Packing.of(coded.radices[:width])
    codes = np.empty((width, n), dtype=np.int32)
    for i in range(width):
        codes[i] = packing.unpack(tuples, i)
    return codes


# --- several rows per person --------------------------------------------------------------------------


def _of_people(runner: Runner, table: Relation, spec: SummarySpec, coded: Coded) -> Summary:
    """Rows are not persons: count the people of each tuple, apart from those who are in several tuples."""
    assert spec.unit is not None  # noqa: S101 - for the type checker
    unit = table.text(spec.unit)
    without = clauses.select([clauses.count()], table.source(), where=[clauses.is_null(unit.copy())])
    if lost := runner.rows(without, table.parameters)[0][0]:
        raise InputError(
            f"column {spec.unit!r} tells persons apart, but is missing in {lost} rows; complete it or remove the rows"
        )
    width, every = len(spec.attributes), range(len(coded.names))
    packing = Packing.of(coded.radices[:width])
    q = [f"q{w}" for w in range(len(packing.words))]
    s = [f"s{j}" for j in range(len(spec.sensitive))]
    codes = [coded.code(i) for i in every]
    values = zip([*q, *s, "u"], [*clauses.packed(codes, packing), *codes[width:], unit], strict=True)
    query = clauses.select(
        [clauses.alias(value, name) for name, value in values],
        table.source(),
        joins=coded.joins(),
        tables=coded.tables(),
        where=[exp.NEQ(this=c.copy(), expression=clauses.integer(0)) for c in codes]
        if spec.drop_missing
        else [],
    )
    with runner.stored("coded", query, table.parameters), runner.stored("persons", _persons(), {}):
        using = [exp.Join(this=clauses.relation("persons"), using=[exp.to_identifier("u", quoted=True)])]
        rows = clauses.select(clauses.columns([*q, *s, "p"]), clauses.relation("coded"), joins=using)
        found = runner.arrays(clauses.count_by(rows, [*q, *s, "p"]), {})
        names = None
        if spec.named:
            names = runner.arrays(
                clauses.select(clauses.columns(["p", "u"]), clauses.relation("persons")), {}
            )
    keys = [found[w].astype(np.int64, copy=False) for w in q]
    codes_of = np.array([found[c] for c in s], dtype=np.int32).reshape(len(s), len(found["n"]))
    check_known(runner, coded, [*(packing.unpack(keys, i) for i in range(width)), *codes_of], width)
    tuples, owner = number(keys, len(found["n"]))
    cells = Joint(
        owner, codes_of, found["n"].astype(np.int64, copy=False), found["p"].astype(np.int64, copy=False) - 1
    )
    n = int(owner.max()) + 1 if len(owner) else 0
    all_rows = runner.rows(clauses.select([clauses.count()], table.source()), table.parameters)[0][0]
    summary = _counted_people(spec, _codes(coded, width, tuples, n), cells)
    summary = replace(summary, dropped_missing=int(all_rows - cells.rows.sum()))
    assert cells.people is not None  # noqa: S101 - for the type checker
    joint, rank = personal_cells(owner, codes_of, cells.rows, cells.people)
    if names is None:
        return replace(summary, personal=joint)
    listed = np.empty(len(rank), dtype=object)
    listed[rank[names["p"].astype(np.int64) - 1]] = names["u"]
    return replace(summary, personal=joint, names=tuple(listed.tolist()))


def _counted_people(spec: SummarySpec, codes: NDArray[np.int32], cells: Joint) -> Summary:
    """The people of each tuple, apart from those who are in several tuples, from the cells of each person."""
    assert cells.people is not None  # noqa: S101 - for the type checker
    n, n_people = codes.shape[1], int(cells.people.max(initial=-1)) + 1
    pairs, owner = numbered_values(cells.tuples * n_people + cells.people)
    at, person = pairs // max(n_people, 1), pairs % max(n_people, 1)
    owned = Owned(at, person, exact_bincount(owner, cells.rows, len(pairs)), n_people)
    several = np.bincount(person, minlength=n_people) > 1
    sizes = np.bincount(at[~several[person]], minlength=n).astype(np.int64)
    place = np.cumsum(several) - 1  # persons in several tuples are numbered among themselves
    in_several = several[cells.people]
    sensitive, values, by_rows = {}, {}, {}
    for codes_here, spec_ in zip(cells.values, spec.sensitive, strict=True):
        radix = len(spec_.values) + 1
        code = codes_here.astype(np.int64)
        by_rows[spec_.name] = ValueCounts.collect(
            spec_.values, n, cells.tuples, code, cells.rows, spec_.ordered
        )
        once = sorted_distinct((owner * radix + code)[~in_several])
        here = at[once // radix]
        ones = np.ones(len(once), dtype=np.int64)
        sensitive[spec_.name] = ValueCounts.collect(spec_.values, n, here, once % radix, ones, spec_.ordered)
        held = sorted_distinct((owner * radix + code)[in_several])
        pair, code = held // radix, held % radix
        order = np.lexsort((place[person[pair]], code, at[pair]))
        values[spec_.name] = (at[pair][order], place[person[pair]][order], code[order])
    shared = None
    if several.any():
        there = several[person]
        shared = Shared(at[there], place[person[there]], int(several.sum()), values)
    rows = exact_bincount(cells.tuples, cells.rows, n)
    return Summary(
        tuple(spec.attributes), codes, rows, sizes, sensitive, shared, owned=replace(owned, values=by_rows)
    )


def _persons() -> exp.Select:
    """Each person with a number that does not follow the order of the names."""
    order = exp.Order(expressions=[clauses.row_hash(clauses.column("u")), clauses.column("u")])
    everybody = clauses.select([clauses.column("u")], clauses.relation("coded"), distinct=True)
    return clauses.select(
        [clauses.column("u"), clauses.alias(exp.Window(this=exp.RowNumber(), order=order), "p")],
        everybody.subquery("c", copy=False),
    )


class SqlEngine(ABC):
    """The part of an `Engine` that asks questions; what makes and writes rows is the engine's own."""

    @property
    @abstractmethod
    def _runner(self) -> Runner:
        """What runs the queries."""

    @abstractmethod
    def _own(self, table: Table) -> Relation:
        """The table, which must be one of this engine."""

    def count(self, table: Table) -> int:
        """See `Engine.count`."""
        return table_queries.row_count(self._runner, self._own(table))

    def fingerprint(self, table: Table) -> str:
        """See `Engine.fingerprint`."""
        return table_queries.fingerprint(self._runner, self._own(table))

    def domain(self, table: Table, column: str, limit: int | None = None) -> Domain:
        """See `Engine.domain`."""
        return table_queries.domain(self._runner, self._own(table), column, limit)

    def domains(self, table: Table, columns: Sequence[str], limit: int | None = None) -> Iterator[Domain]:
        """See `Engine.domains`."""
        return (self.domain(table, name, limit) for name in columns)

    def elements(self, table: Table, column: str, separator: str | None) -> Domain:
        """See `Engine.elements`."""
        return set_columns.set_elements(self._runner, self._own(table), column, separator)

    def sample(
        self, table: Table, rows: int, columns: Sequence[str] | None = None
    ) -> list[dict[str, str | None]]:
        """See `Engine.sample`."""
        return table_queries.sample(self._runner, self._own(table), rows, columns)

    def look_up(self, table: Table, wanted: Wanted, first: int, rows: int) -> tuple[list[Row], int]:
        """See `Engine.look_up`."""
        return table_queries.look_up(self._runner, self._own(table), wanted, first, rows)

    def uniqueness(
        self, table: Table, columns: Sequence[str], person: str | None = None
    ) -> tuple[int, int, int]:
        """See `Engine.uniqueness`."""
        return table_queries.uniqueness(self._runner, self._own(table), columns, person)

    def lone_values(self, table: Table, columns: Sequence[str], beside: Sequence[str] = ()) -> list[int]:
        """See `Engine.lone_values`."""
        return [self.uniqueness(table, [*beside, name])[1] for name in columns]

    def combinations(
        self, table: Table, spec: SummarySpec, choices: Sequence[Mapping[str, int]]
    ) -> list[int]:
        """See `Engine.combinations`."""
        return table_queries.combinations(self._runner, self._own(table), spec, choices)

    def summarise(self, table: Table, spec: SummarySpec) -> Summary:
        """See `Engine.summarise`."""
        return frequency_set(self._runner, self._own(table), spec)
