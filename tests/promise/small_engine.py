"""An engine for tables of a few rows: the same answers as DuckDB's in a fraction of a millisecond.

Every possible world of a table is published here, some hundred of them for each policy. What decides is the product's
own; only the reading and writing of rows is done in Python. `test_product.py` holds it against the DuckDB engine.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maskwright.domain.classes import ValueCounts
from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.domain.recoding_plan import GroupPlan, Plan
from maskwright.domain.summary import Joint, Owned, Shared, Summary, personal_cells
from maskwright.domain.value_sets import ABSENT, PRESENT, SetColumn
from maskwright.engines.base import ColumnInfo, Domain, Found, Reading, Recount, SummarySpec
from maskwright.engines.sql.recoding import label
from maskwright.engines.sql.table_queries import domain_of, level_texts
from maskwright.errors import InputError

Text = str | None
Row = tuple[Text, ...]


@dataclass(frozen=True)
class SmallTable:
    """Column names and rows of texts; None is missing."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]
    caller: str = "small"
    format: str = "csv"
    repairs: tuple[()] = ()

    @property
    def columns(self) -> tuple[ColumnInfo, ...]:
        return tuple(ColumnInfo(name, "text", "VARCHAR") for name in self.names)

    def of(self, name: str) -> list[Text]:
        at = self.names.index(name)
        return [row[at] for row in self.rows]

    def picked(self, names: Sequence[str]) -> list[Row]:
        at = [self.names.index(name) for name in names]
        return [tuple(row[i] for i in at) for row in self.rows]


@dataclass
class SmallEngine:
    """See `maskwright.engines.base.Engine`; `rng` draws which rows of a unit go to which of its entries."""

    rng: Any = None
    name: str = "small"
    _drawn: dict[bytes, list[int]] = field(default_factory=dict)

    # --- small questions ------------------------------------------------------------------------------

    def open(self, source: SmallTable, reading: Reading) -> SmallTable:
        if not reading.missing:
            return source
        rows = [tuple(None if v in reading.missing else v for v in row) for row in source.rows]
        return replace(source, rows=tuple(rows))

    def count(self, table: SmallTable) -> int:
        return len(table.rows)

    def fingerprint(self, table: SmallTable) -> str:
        rows = sorted(map(repr, table.rows))
        return hashlib.sha256(repr((table.names, rows)).encode()).hexdigest()

    def domain(self, table: SmallTable, column: str, limit: int | None = None) -> Domain:
        return domain_of(Counter(table.of(column)).items(), limit)

    def domains(
        self, table: SmallTable, columns: Sequence[str], limit: int | None = None
    ) -> Iterator[Domain]:
        return (self.domain(table, name, limit) for name in columns)

    def elements(self, table: SmallTable, column: str, separator: str | None) -> Domain:
        found = Counter(v for cell in table.of(column) for v in members(cell, separator))
        values = sorted(found)
        return Domain(tuple(values), tuple(found[v] for v in values), 0, False)

    def unfold(self, table: SmallTable, columns: Sequence[SetColumn]) -> SmallTable:
        by_name = {s.name: s for s in columns}
        names = tuple(b for n in table.names for b in (by_name[n].bits if n in by_name else (n,)))
        rows = [
            tuple(v for n, cell in zip(table.names, row, strict=True) for v in _bits(by_name.get(n), cell))
            for row in table.rows
        ]
        return replace(table, names=names, rows=tuple(rows))

    def fold(self, table: SmallTable, columns: Sequence[SetColumn]) -> SmallTable:
        owner = {bit: s for s in columns for bit in s.bits}
        names = tuple(dict.fromkeys(owner[n].name if n in owner else n for n in table.names))
        by_name = {s.name: s for s in columns}
        rows = []
        for row in table.rows:
            cell = dict(zip(table.names, row, strict=True))
            rows.append(tuple(_folded(by_name[n], cell) if n in by_name else cell[n] for n in names))
        return replace(table, names=names, rows=tuple(rows))

    def coarsen(self, table: SmallTable, hierarchies: Sequence[Hierarchy]) -> SmallTable:
        shown = {h.attribute: coarse_labels(h) for h in hierarchies}
        rows = [
            tuple(shown[n][v] if n in shown else v for n, v in zip(table.names, row, strict=True))
            for row in table.rows
        ]
        return replace(table, rows=tuple(rows))

    def sample(
        self, table: SmallTable, rows: int, columns: Sequence[str] | None = None
    ) -> list[dict[str, Text]]:
        names = [n for n in table.names if columns is None or n in columns]
        return [dict(zip(names, row, strict=True)) for row in table.picked(names)[:rows]]

    def lone_values(self, table: SmallTable, columns: Sequence[str], beside: Sequence[str] = ()) -> list[int]:
        counted = [Counter(table.picked([*beside, name])) for name in columns]
        return [sum(n == 1 for n in found.values()) for found in counted]

    def uniqueness(
        self, table: SmallTable, columns: Sequence[str], person: str | None = None
    ) -> tuple[int, int, int]:
        rows = table.picked(list(columns))
        if person is not None:
            rows = [row[:-1] for row in sorted(set(table.picked([*columns, person])), key=str)]
        found = Counter(rows).values()
        return len(found), sum(n == 1 for n in found), min(found, default=0)

    # --- the three passes -----------------------------------------------------------------------------

    def summarise(self, table: SmallTable, spec: SummarySpec) -> Summary:
        return _people(table, spec) if spec.unit is not None else _cells(table, spec)

    def recode(self, table: SmallTable, plan: Plan | GroupPlan) -> SmallTable:
        if isinstance(plan, Plan):
            return _full_domain(table, plan)
        names = _with_group(plan, plan.columns)
        shuffled = _values(plan)
        rows = []
        for shown in self._entries(table, plan):
            for block in plan.blocks:
                shown |= shuffled[block.names][shown["group"]].pop()
            rows.append(tuple(shown[_GROUP if n == plan.group_column else n] for n in names))
        return SmallTable(names, tuple(rows))

    def bucketize(self, table: SmallTable, plan: GroupPlan) -> dict[str, SmallTable]:
        apart = {name for block in plan.blocks for name in block.names}
        first = _with_group(plan, [n for n in plan.columns if n not in apart])
        second = _with_group(plan, [n for n in plan.columns if n in apart])
        quasi = [
            tuple(shown[_GROUP if n == plan.group_column else n] for n in first)
            for shown in self._entries(table, plan)
        ]
        shuffled = _values(plan)
        lines = []
        for group, size in enumerate(plan.sizes.tolist()):
            for _ in range(size if group else 0):
                shown: dict[str, Text] = {_GROUP: str(group)}
                for block in plan.blocks:
                    shown |= shuffled[block.names][str(group)].pop()
                lines.append(tuple(shown[_GROUP if n == plan.group_column else n] for n in second))
        return {
            "quasi-identifiers": SmallTable(first, tuple(quasi)),
            "sensitive": SmallTable(second, tuple(lines)),
        }

    def _entries(self, table: SmallTable, plan: GroupPlan) -> Iterator[dict[str, Any]]:
        """What each published row shows, apart from shuffled values."""
        if not plan.passed:
            for e, (group, n) in enumerate(zip(plan.groups.tolist(), plan.rows.tolist(), strict=True)):
                for _ in range(n if group else 0):
                    yield _shown(plan, e)
            return
        codes = list(map(tuple, plan.units.codes.T.tolist()))
        unit_of = {code: u for u, code in enumerate(codes)}
        waiting: dict[int, list[int]] = {u: [] for u in range(len(codes))}
        for e, (unit, n) in enumerate(zip(plan.unit.tolist(), plan.rows.tolist(), strict=True)):
            waiting[unit] += [e] * n
        for unit, entries in waiting.items():
            if len(set(entries)) > 1:
                waiting[unit] = self._dealt(entries, f"{plan.key} {unit}".encode())
        code_of = [{None: 0} | {v: i + 1 for i, v in enumerate(d)} for d in plan.units.domains]
        for row in table.rows:
            cell = dict(zip(table.names, row, strict=True))
            if any(cell[name] is None for name in plan.drop_missing):
                continue
            key = tuple(c[cell[n]] for c, n in zip(code_of, plan.units.names, strict=True))
            e = waiting[unit_of[key]].pop()
            if plan.groups[e]:
                yield {name: cell[name] for name in plan.passed} | _shown(plan, e)

    def _dealt(self, entries: list[int], key: bytes) -> list[int]:
        """The entries of a unit in random order, the same for the same key."""
        if key not in self._drawn:
            order = np.array(entries)
            self.rng.shuffle(order)
            self._drawn[key] = order.tolist()
        return list(self._drawn[key])

    def keep(self, table: SmallTable) -> SmallTable:
        return table

    def forget(self, table: SmallTable) -> None:
        pass

    def recount(
        self,
        table: SmallTable,
        columns: Sequence[str],
        sensitive: Sequence[str] = (),
        unit: str | None = None,
    ) -> Recount:
        found = table.picked(columns)
        classes = sorted(set(found), key=_none_last)
        place = {labels: c for c, labels in enumerate(classes)}
        people = table.of(unit) if unit else list(range(len(found)))
        texts = [(*sorted({t for t in table.of(c) if t is not None}), None) for c in columns]
        codes = [[t.index(labels[i]) for labels in classes] for i, t in enumerate(texts)]
        values = {}
        for name in sensitive:
            domain = (*sorted({t for t in table.of(name) if t is not None}), None)
            held = set(zip(found, table.of(name), people, strict=True))
            counted = sorted(Counter((place[f], domain.index(v)) for f, v, _ in held).items())
            owner, code, n = (np.array([x[i] for x in _flat(counted)], dtype=np.int64) for i in range(3))
            values[name] = Found(domain, owner, code, n)
        rows = Counter(place[f] for f in found)
        each = Counter(place[f] for f, _ in set(zip(found, people, strict=True)))
        return Recount(
            tuple(texts),
            np.array(codes, dtype=np.int32).reshape(len(columns), len(classes)),
            np.array([rows[c] for c in range(len(classes))], dtype=np.int64),
            np.array([each[c] for c in range(len(classes))], dtype=np.int64),
            values,
        )

    def holds(self, table: SmallTable, columns: Sequence[str], rows: Iterable[Recount]) -> bool:
        wanted: Counter[Row] = Counter()
        for piece in rows:
            for labels, n in zip(piece.labels, piece.rows.tolist(), strict=True):
                wanted[labels] += n
        return wanted == Counter(table.picked(columns))

    def hand_over(self, table: SmallTable) -> SmallTable:
        return table

    def allow(self, memory: int) -> None:
        pass

    @contextmanager
    def watch(self, progress: Any) -> Iterator[None]:
        yield

    def close(self) -> None:
        pass


_GROUP = "group"  # no column of the small tables has this name


def coarse_labels(hierarchy: Hierarchy) -> dict[Text, Text]:
    """What each value of the table is called where its hierarchy was cut (`Hierarchy.cut_at`)."""
    if hierarchy.origin is None:
        return {None: None} | {value: value for value in hierarchy.values}
    whole, level = hierarchy.origin
    return {None: None} | dict(zip(whole.values, level_texts(whole, level), strict=True))


def members(cell: Text, separator: str | None) -> set[str]:
    """The values of a set that is written as a text."""
    return {v.strip() for v in (cell or "").split(separator or ";")} - {""}


def _bits(column: SetColumn | None, cell: Text) -> tuple[Text, ...]:
    if column is None:
        return (cell,)
    held = members(cell, column.separator)
    return tuple(PRESENT if v in held else ABSENT for v in column.values)


def _folded(column: SetColumn, cell: Mapping[str, Text]) -> Text:
    held = [v for v, bit in zip(column.values, column.bits, strict=True) if cell.get(bit) == PRESENT]
    return (column.separator or ";").join(held) or None


def _none_last(labels: Row) -> tuple[Any, ...]:
    return tuple((t is None, t or "") for t in labels)


def _flat(counted: Iterable[tuple[tuple[int, int], int]]) -> list[tuple[int, int, int]]:
    return [(a, b, n) for (a, b), n in counted]


# --- the frequency set ----------------------------------------------------------------------------------


def _coded(table: SmallTable, spec: SummarySpec) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Quasi-identifiers and sensitive values of each row as codes, with the row's number."""
    names = [h.attribute for h in spec.attributes]
    codes = [{None: 0} | {v: i + 1 for i, v in enumerate(h.values)} for h in spec.attributes]
    inside = [{None: 0} | {v: i + 1 for i, v in enumerate(s.values)} for s in spec.sensitive]
    quasi, values = table.picked(names), table.picked([s.name for s in spec.sensitive])
    found = []
    for i, (q, s) in enumerate(zip(quasi, values, strict=True)):
        coded = tuple(c[v] for c, v in zip(codes, q, strict=True))
        held = tuple(c[v] for c, v in zip(inside, s, strict=True))
        if not spec.drop_missing or 0 not in (*coded, *held):
            found.append((coded, held, i))
    return found


def _codes(tuples: Sequence[tuple[int, ...]], width: int) -> Any:
    return np.array(tuples, dtype=np.int32).reshape(len(tuples), width).T.copy()


def _int(values: Iterable[int]) -> Any:
    return np.array(list(values), dtype=np.int64)


def _cells(table: SmallTable, spec: SummarySpec) -> Summary:
    """Every row is a person."""
    rows = _coded(table, spec)
    cells = sorted(Counter((q, s) for q, s, _ in rows).items())
    tuples = sorted({q for q, _, _ in rows})
    place = {q: i for i, q in enumerate(tuples)}
    owner = _int(place[q] for (q, _), _ in cells)
    counts = _int(n for _, n in cells)
    values = (
        np.array([s for (_, s), _ in cells], dtype=np.int32).reshape(len(cells), len(spec.sensitive)).T.copy()
    )
    n = len(tuples)
    sizes = np.bincount(owner, weights=counts, minlength=n).astype(np.int64) if n else _int([])
    sensitive = {
        s.name: ValueCounts.collect(s.values, n, owner, values[j].astype(np.int64), counts, s.ordered)
        for j, s in enumerate(spec.sensitive)
    }
    codes = _codes(tuples, len(spec.attributes))
    lost = len(table.rows) - len(rows)
    return Summary(
        tuple(spec.attributes), codes, sizes, sizes, sensitive, None, lost, Joint(owner, values, counts)
    )


def _people(table: SmallTable, spec: SummarySpec) -> Summary:
    """Rows are not people: those with rows in several tuples are listed apart."""
    owners = table.of(spec.unit or "")
    if None in owners:
        raise InputError(f"column {spec.unit!r} tells persons apart, but is missing")
    rows = [(q, s, str(owners[i])) for q, s, i in _coded(table, spec)]
    tuples = sorted({q for q, _, _ in rows})
    place = {q: i for i, q in enumerate(tuples)}
    where: dict[str, set[int]] = {}
    for q, _, person in rows:
        where.setdefault(person, set()).add(place[q])
    several = [p for p in sorted(where, key=_digest) if len(where[p]) > 1]
    number = {p: i for i, p in enumerate(several)}
    n = len(tuples)
    alone = Counter(next(iter(at)) for at in where.values() if len(at) == 1)
    sensitive, shared = {}, {}
    for j, s in enumerate(spec.sensitive):
        held = {(place[q], values[j], p) for q, values, p in rows}
        mine = sorted(Counter((t, v) for t, v, p in held if p not in number).items())
        parts = [_int(x[i] for x in _flat(mine)) for i in range(3)]
        sensitive[s.name] = ValueCounts.collect(s.values, n, *parts, s.ordered)
        theirs = sorted((t, v, number[p]) for t, v, p in held if p in number)
        shared[s.name] = tuple(_int(x[i] for x in theirs) for i in (0, 2, 1))
    pairs = sorted({(place[q], number[p]) for q, _, p in rows if p in number})
    counts = Counter(place[q] for q, _, _ in rows)
    return Summary(
        tuple(spec.attributes), _codes(tuples, len(spec.attributes)), _int(counts[t] for t in range(n)),
        _int(alone[t] for t in range(n)), sensitive,
        Shared(_int(t for t, _ in pairs), _int(p for _, p in pairs), len(several), shared) if pairs else None,
        len(table.rows) - len(rows), None, _owned(rows, place, spec), personal=_personal(rows, place)[0],
        names=_personal(rows, place)[1] if spec.named else None,
    )  # fmt: skip


def _personal(
    rows: Sequence[tuple[tuple[int, ...], tuple[int, ...], str]], place: Mapping[tuple[int, ...], int]
) -> tuple[Joint, tuple[str, ...]]:
    """Cells by person, and the names of the persons."""
    everybody = sorted({p for _, _, p in rows}, key=_digest)
    cells = Counter((place[q], values, everybody.index(p)) for q, values, p in rows)
    width = len(rows[0][1]) if rows else 0
    values = np.array([held for _, held, _ in cells], dtype=np.int32).reshape(len(cells), width).T
    tuples, people = _int(t for t, _, _ in cells), _int(p for _, _, p in cells)
    joint, rank = personal_cells(tuples, values, _int(cells.values()), people)
    return joint, tuple(everybody[i] for i in np.argsort(rank).tolist())


def _owned(
    rows: Sequence[tuple[tuple[int, ...], tuple[int, ...], str]],
    place: Mapping[tuple[int, ...], int],
    spec: SummarySpec,
) -> Owned:
    """Whose rows they are."""
    everybody = sorted({p for _, _, p in rows}, key=_digest)
    entries = sorted(Counter((place[q], everybody.index(p)) for q, _, p in rows).items())
    values = {}
    for j, s in enumerate(spec.sensitive):
        cells = _flat(sorted(Counter((place[q], held[j]) for q, held, _ in rows).items()))
        parts = [_int(x[i] for x in cells) for i in range(3)]
        values[s.name] = ValueCounts.collect(s.values, len(place), *parts, s.ordered)
    tuples, people, numbers = (_int(x[i] for x in _flat(entries)) for i in range(3))
    return Owned(tuples, people, numbers, len(everybody), values)


def _digest(person: str) -> tuple[str, str]:
    return hashlib.md5(person.encode(), usedforsecurity=False).hexdigest(), person


# --- recoding -------------------------------------------------------------------------------------------


def _full_domain(table: SmallTable, plan: Plan) -> SmallTable:
    maps = plan.by_name
    names = list(maps)
    away = set(map(tuple, plan.suppressed.T.tolist()))
    codes = {n: {None: 0} | {v: i + 1 for i, v in enumerate(m.hierarchy.values)} for n, m in maps.items()}
    rows = []
    for row in table.rows:
        cell = dict(zip(table.names, row, strict=True))
        if any(cell[name] is None for name in plan.drop_missing):
            continue
        code = {name: codes[name][cell[name]] for name in names}
        gone = tuple(code[name] for name in names) in away
        if gone and not plan.star:
            continue
        shown = {name: TOP if gone else label(maps[name].texts[code[name]]) for name in names}
        rows.append(tuple((cell | shown)[name] for name in plan.columns))
    return SmallTable(tuple(plan.columns), tuple(rows))


def _with_group(plan: GroupPlan, columns: Sequence[str]) -> tuple[str, ...]:
    return (*((plan.group_column,) if plan.group_column else ()), *columns)


def _shown(plan: GroupPlan, entry: int) -> dict[str, Any]:
    """What is known of an entry."""
    shown: dict[str, Any] = {_GROUP: str(plan.groups[entry])}
    for p in plan.published:
        texts = p.texts if p.texts is not None else (None, *p.domain)
        shown[p.name] = label(texts[int(p.shown(np.array([entry]))[0])])
    return shown


def _values(plan: GroupPlan) -> dict[tuple[str, ...], dict[str, list[dict[str, Text]]]]:
    """For each block and group the values that are shuffled in it."""
    found: dict[tuple[str, ...], dict[str, list[dict[str, Text]]]] = {}
    for block in plan.blocks:
        mine = found.setdefault(block.names, {})
        for i, (group, n) in enumerate(zip(block.groups.tolist(), block.rows.tolist(), strict=True)):
            texts = [(None, *d)[int(block.codes[j, i])] for j, d in enumerate(block.domains)]
            mine.setdefault(str(group), []).extend(
                dict(zip(block.names, texts, strict=True)) for _ in range(n)
            )
    return found
