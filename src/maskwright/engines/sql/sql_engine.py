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
from maskwright.domain.exact import exact_bincount
from maskwright.domain.summary import Joint, Owned, Shared, Summary, personal_cells
from maskwright.engines.base import Domain, SummarySpec, Table
from maskwright.engines.sql import clauses, set_columns, table_queries
from maskwright.engines.sql.coding import Coded, Relation, Runner, check_known
from maskwright.engines.sql.packed_keys import Packing, ascending, number, numbered
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
    found = runner.arrays(clauses.count_by(query, words), table.parameters)
    keys = [found[w].astype(np.int64, copy=False) for w in words]
    counts = found["n"].astype(np.int64, copy=False)
    order = ascending(keys, len(counts))
    return [k[order] for k in keys], counts[order]


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
    with runner.stored("coded", query, table.parameters):
        everything = clauses.select([exp.Star()], clauses.relation("coded"))
        pairs = clauses.count_by(everything, [*q, "u"], clauses.alias(clauses.count(), "r"))
        with runner.stored("pairs", pairs, {}), runner.stored("persons", _persons(), {}):
            return _count_people(runner, table, spec, coded, packing, q, s)


def _count_people(
    runner: Runner,
    table: Relation,
    spec: SummarySpec,
    coded: Coded,
    packing: Packing,
    q: list[str],
    s: list[str],
) -> Summary:
    everything = clauses.select([exp.Star()], clauses.relation("coded"))
    by_tuple = runner.arrays(clauses.count_by(everything, [*q, *s]), {})
    width = len(spec.attributes)
    keys = [by_tuple[w].astype(np.int64) for w in q]
    digits = [packing.unpack(keys, i) for i in range(width)] + [by_tuple[c] for c in s]
    check_known(runner, coded, digits, width)
    counts = by_tuple["n"].astype(np.int64)
    tuples, owner = number(keys, len(counts))
    n = int(owner.max()) + 1 if len(owner) else 0

    def fetch(source: str, columns: list[str], shared: bool) -> list[Ints]:
        """Distinct combinations of columns over the people in several tuples, or counts over the others."""
        one = clauses.equal(clauses.column("tuples"), clauses.integer(1))
        joined = clauses.select(
            clauses.columns([*q, *columns, "p"]),
            clauses.relation(source),
            joins=[exp.Join(this=clauses.relation("persons"), using=[exp.to_identifier("u", quoted=True)])],
            where=[exp.Not(this=one) if shared else one],
            distinct=shared,
        )
        people = clauses.alias(clauses.count_distinct("p"), "n")
        found = runner.arrays(joined if shared else clauses.count_by(joined, [*q, *columns], people), {})
        index = _locate(tuples, [found[w].astype(np.int64) for w in q], len(found["p" if shared else "n"]))
        parts = [index, *(found[c].astype(np.int64) for c in [*columns, "p" if shared else "n"])]
        order = np.lexsort(tuple(reversed(parts)))  # the same order on every run
        return [part[order] for part in parts]

    index, alone = fetch("pairs", [], False)
    sizes = exact_bincount(index, alone, n)
    sensitive, values = {}, {}
    for column, spec_ in zip(s, spec.sensitive, strict=True):
        at, code, found = fetch("coded", [column], False)
        sensitive[spec_.name] = ValueCounts.collect(spec_.values, n, at, code, found, spec_.ordered)
        at, code, person = fetch("coded", [column], True)
        values[spec_.name] = (at, person, code)
    at, person = fetch("pairs", [], True)
    shared = None
    if len(at):
        # persons are numbered 0.. among those in several tuples only
        numbers = np.unique(person)
        values = {k: (t, np.searchsorted(numbers, p), c) for k, (t, p, c) in values.items()}
        shared = Shared(at, np.searchsorted(numbers, person), len(numbers), values)
    owned = _owned(runner, tuples, q)
    personal, names = _personal(runner, tuples, q, s, spec.named)
    by_rows = {
        spec_.name: ValueCounts.collect(
            spec_.values, n, owner, by_tuple[column].astype(np.int64), counts, spec_.ordered
        )
        for column, spec_ in zip(s, spec.sensitive, strict=True)
    }
    all_rows = runner.rows(clauses.select([clauses.count()], table.source()), table.parameters)[0][0]
    dropped = int(all_rows - counts.sum())
    return Summary(
        tuple(spec.attributes), _codes(coded, width, tuples, n), exact_bincount(owner, counts, n), sizes, sensitive,
        shared, dropped, None, replace(owned, values=by_rows), personal=personal, names=names,
    )  # fmt: skip


def _owned(runner: Runner, tuples: list[Ints], q: list[str]) -> Owned:
    """How many rows each person has in each tuple."""
    using = [exp.Join(this=clauses.relation("persons"), using=[exp.to_identifier("u", quoted=True)])]
    found = runner.arrays(
        clauses.select(clauses.columns([*q, "p", "r"]), clauses.relation("pairs"), joins=using), {}
    )
    index = _locate(tuples, [found[w].astype(np.int64) for w in q], len(found["p"]))
    numbers, person = np.unique(found["p"].astype(np.int64), return_inverse=True)
    order = np.lexsort((person.reshape(-1), index))  # the same order on every run
    rows = found["r"].astype(np.int64)
    return Owned(index[order], person.reshape(-1)[order], rows[order], len(numbers))


def _personal(
    runner: Runner, tuples: list[Ints], q: list[str], s: list[str], named: bool
) -> tuple[Joint, tuple[str, ...] | None]:
    """The cells of each person, and the names of the persons where they are wanted."""
    using = [exp.Join(this=clauses.relation("persons"), using=[exp.to_identifier("u", quoted=True)])]
    rows = clauses.select(clauses.columns([*q, *s, "p"]), clauses.relation("coded"), joins=using)
    found = runner.arrays(clauses.count_by(rows, [*q, *s, "p"]), {})
    index = _locate(tuples, [found[w].astype(np.int64) for w in q], len(found["p"]))
    values = np.array([found[c] for c in s], dtype=np.int32).reshape(len(s), len(index))
    counts, codes = found["n"].astype(np.int64), found["p"].astype(np.int64)
    numbers, person = np.unique(codes, return_inverse=True)
    joint, rank = personal_cells(index, values, counts, person.reshape(-1))
    if not named:
        return joint, None
    listed = runner.arrays(clauses.select(clauses.columns(["p", "u"]), clauses.relation("persons")), {})
    names = np.empty(len(numbers), dtype=object)
    names[rank[np.searchsorted(numbers, listed["p"].astype(np.int64))]] = listed["u"]
    return joint, tuple(names.tolist())


def _persons() -> exp.Select:
    """Each person with the number of tuples, and a number that does not follow the order of the names."""
    order = exp.Order(expressions=[exp.MD5(this=clauses.column("u")), clauses.column("u")])
    pairs = clauses.select([exp.Star()], clauses.relation("pairs"))
    return clauses.select(
        [
            clauses.column("u"),
            clauses.alias(clauses.column("n"), "tuples"),
            clauses.alias(exp.Window(this=exp.RowNumber(), order=order), "p"),
        ],
        clauses.count_by(pairs, ["u"]).subquery("c", copy=False),
    )


def _locate(tuples: list[Ints], keys: list[Ints], length: int) -> Ints:
    """The number of each key among the tuples, where all of them occur."""
    if not keys:
        return np.zeros(length, dtype=np.int64)
    n = len(tuples[0])
    both = [np.concatenate([t, k]) for t, k in zip(tuples, keys, strict=True)]
    return number(both, n + length)[1][n:]


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

    def uniqueness(self, table: Table, columns: Sequence[str]) -> tuple[int, int, int]:
        """See `Engine.uniqueness`."""
        return table_queries.uniqueness(self._runner, self._own(table), columns)

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
