"""The DuckDB engine: embedded, the default. Reads files and tables from Python, and gives back the same kind."""

from __future__ import annotations

import glob
import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from maskwright.core.plan import Plan
from maskwright.core.summary import Summary
from maskwright.engines import frames, frequency, reading, recoding, sql
from maskwright.engines.base import ColumnInfo, Domain, Reading, Recount, SummarySpec, Table
from maskwright.errors import DestinationError, InputError, MaskwrightError, UsageError


@dataclass(frozen=True, eq=False)
class DuckTable:
    """A relation in the database.

    Attributes:
        relation: its name there.
        present: what each column is called there; empty when they are c0, c1 … and already clean.
        row: the column that numbers the rows.
        parameters: the missing tokens, for columns that are not clean yet.
        frame: what the caller handed in, when that was not a path.
        typed: published tables: the columns that keep the type of the source.
        stamp: the file's identity, size and time, where it is read again for each query.
    """

    columns: tuple[ColumnInfo, ...]
    caller: str
    format: str
    label: str
    relation: str
    present: tuple[str, ...] = ()
    row: str = "rowid"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    frame: frames.Frame | None = None
    typed: frozenset[str] = frozenset()
    stamp: tuple[int, ...] = ()

    def source(self, names: Iterable[str]) -> exp.Expression:
        """The relation as `t`, with (at least) the named columns clean, and its row number."""
        if not self.present:
            return sql.relation(self.relation, "t")
        items: list[exp.Expression] = [sql.alias(sql.column(self.row), "r")]
        for i in sorted({self.position(name) for name in names}):
            clean = sql.cleaned(sql.column(self.present[i]), self.columns[i], self.parameters)
            items.append(sql.alias(clean, f"c{i}"))
        return sql.select(items, sql.relation(self.relation)).subquery("t", copy=False)

    def row_number(self) -> exp.Expression:
        return sql.column("r" if self.present else self.row, "t")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(info.name for info in self.columns)

    def position(self, name: str) -> int:
        for i, info in enumerate(self.columns):
            if info.name == name:
                return i
        raise InputError(f"{self.label}: there is no column {name!r}")

    def value(self, name: str) -> exp.Expression:
        """A column in its own type."""
        return sql.column(f"c{self.position(name)}", "t")

    def text(self, name: str) -> exp.Expression:
        """A column as canonical text."""
        return sql.text_of(self.value(name), self.columns[self.position(name)])


class DuckDBEngine:
    """See `Engine`. One private in-memory database, which spills to `temp`."""

    name = "duckdb"

    def __init__(
        self, memory: str | None = None, temp: Path | None = None, threads: int | None = None
    ) -> None:
        self._own_temp = Path(tempfile.mkdtemp(prefix="maskwright-", dir=temp))
        config: dict[str, Any] = {
            "temp_directory": str(self._own_temp / "spill"),
            # nothing is fetched, loaded or looked up that a query did not ask for
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
            "python_enable_replacements": False,
        }
        if memory is not None:
            config["memory_limit"] = memory
        if threads is not None:
            config["threads"] = threads
        free = shutil.disk_usage(self._own_temp).free
        config["max_temp_directory_size"] = f"{free * 8 // 10}B"
        try:
            self._con = duckdb.connect(":memory:", config=config)
        except duckdb.Error:
            shutil.rmtree(self._own_temp, ignore_errors=True)
            raise UsageError(
                f"the engine does not start with memory {memory!r} and threads {threads!r}; "
                "write memory as 4GB or 500MB, threads as a positive number"
            ) from None
        self._con.execute("SET enable_progress_bar = false")
        self._con.execute("SET TimeZone = 'UTC'")
        self._con.execute("SET lock_configuration = true")
        self._tables = 0

    # --- opening ----------------------------------------------------------------------------------

    def open(self, source: Any, reading_: Reading) -> DuckTable:
        if isinstance(source, (str, Path)):
            table = self._open_path(Path(source), reading_)
        else:
            frame = frames.recognise(source, reading_)
            if frame is None:
                raise InputError(
                    f"cannot read a {type(source).__module__}.{type(source).__name__}; hand in a path or a pandas, "
                    "polars, pyarrow or DuckDB table"
                )
            table = self._open_frame(frame, reading_)
        if self.count(table) == 0:
            raise InputError(f"{table.label}: there are column names but no rows")
        return table

    def _open_path(self, path: Path, reading_: Reading) -> DuckTable:
        path = reading.check_file(path)
        parameters = sql.token_parameters(reading_.missing)
        if reading.format_of(path, reading_) == "parquet":
            return self._open_parquet(path, parameters)
        layout = reading.examine_csv(path, reading_)
        utf8 = reading.as_utf8(layout, self._own_temp)
        try:
            name = self._load_csv(layout, utf8, parameters)
        finally:
            if utf8 != path:
                utf8.unlink()
        columns = tuple(ColumnInfo(n, "text", "VARCHAR") for n in layout.names)
        return DuckTable(columns, "path", "csv", str(path), name)

    def _load_csv(self, layout: reading.CsvLayout, utf8: Path, parameters: Mapping[str, Any]) -> str:
        infos = [(f"c{i}", ColumnInfo(n, "text", "VARCHAR")) for i, n in enumerate(layout.names)]
        view, name = self._new("csv"), self._new("source")
        try:
            self._con.read_csv(
                glob.escape(str(utf8)),
                sep=layout.delimiter,
                quotechar=layout.quote,
                escapechar=layout.quote,
                header=layout.header,
                columns={c: "VARCHAR" for c, _ in infos},
                # every record must have every field: nothing is skipped, padded or guessed
                auto_detect=False,
                strict_mode=True,
                null_padding=False,
                ignore_errors=False,
                compression="none",
            ).create_view(view)
            self._store(name, view, infos, parameters)
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as problem:
            message = str(problem)  # holds the row itself: only numbers are taken from it
            record = re.search(r"CSV Error on Line: (\d+)", message)
            fields = re.search(r"Expected Number of Columns: \d+ Found: (\d+)", message)
            raise reading.explain_csv(
                layout, int(record[1]) if record else None, int(fields[1]) if fields else None, utf8
            ) from None
        self._run(sql.drop(view, "VIEW"), {})
        return name

    def _open_parquet(self, path: Path, parameters: Mapping[str, Any]) -> DuckTable:
        reading.check_parquet(path)
        view = self._new("parquet")
        stat = path.stat()
        pattern = glob.escape(str(path))
        try:
            names = self._parquet_names(pattern)
            relation = self._con.read_parquet(pattern, file_row_number=True, hive_partitioning=False)
            types = [str(t) for t in relation.types]
            present = relation.columns[:-1]
            relation.create_view(view)
        except duckdb.Error:
            raise InputError(
                f"{path}: the Parquet file is damaged, or of a kind that cannot be read"
            ) from None
        names = list(reading.check_names(names, str(path)))
        if "file_row_number" in (n.lower() for n in names):
            raise InputError(f"{path}: column 'file_row_number' has a name that is reserved; rename it")
        columns = _infos(names, types[:-1])
        stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        return DuckTable(
            columns, "path", "parquet", str(path), view, tuple(present), "file_row_number", parameters, None,
            frozenset(), stamp,
        )  # fmt: skip

    def _parquet_names(self, pattern: str) -> list[str]:
        """The names of the columns as the file has them (the database would rename duplicates)."""
        function = exp.Anonymous(this="parquet_schema", expressions=[sql.parameter("path")])
        query = sql.select(sql.columns(["name", "num_children"]), exp.Table(this=function))
        schema = iter(self._run(query, {"path": pattern}).fetchall())
        names = []
        for _ in range(next(schema)[1]):
            name, children = next(schema)
            names.append(name)
            pending = children or 0
            while pending:
                pending += (next(schema)[1] or 0) - 1
        return names

    def _open_frame(self, frame: frames.Frame, reading_: Reading) -> DuckTable:
        label = f"the {frame.caller} table"
        view, name = self._new("frame"), self._new("source")
        parameters = sql.token_parameters(reading_.missing)
        with self._foreign(label):
            self._con.register(view, frame.scannable)
            relation = self._con.view(view)
            names = frame.names or reading.check_names(relation.columns, label)
            columns = _infos(names, [str(t) for t in relation.types])
            infos = list(zip(relation.columns, columns, strict=True))
            self._store(name, view, infos, parameters)
            self._con.unregister(view)
        return DuckTable(columns, frame.caller, "parquet", label, name, frame=frame)

    @contextmanager
    def _foreign(self, label: str) -> Iterator[None]:
        try:
            yield
        except MaskwrightError:
            raise
        except duckdb.OutOfMemoryException:
            raise
        except Exception as problem:
            kind = type(problem).__name__
            raise InputError(
                f"{label}: a column has a type that cannot be read ({kind}); convert it"
            ) from None

    # --- small questions --------------------------------------------------------------------------

    def count(self, table: Table) -> int:
        t = _duck(table)
        return int(self._run(sql.select([sql.count()], t.source([])), t.parameters).fetchall()[0][0])

    def fingerprint(self, table: Table) -> str:
        t = _duck(table)
        cells: list[exp.Expression] = []
        for info in t.columns:
            text = t.text(info.name)
            length = sql.cast(exp.Length(this=text.copy()), "TEXT")
            tagged = exp.DPipe(
                this=exp.DPipe(this=length, expression=exp.Literal.string(":")), expression=text
            )
            cells.append(exp.Coalesce(this=tagged, expressions=[exp.Literal.string("-")]))
        row = sql.alias(exp.Concat(expressions=cells), "row")
        halves = [
            exp.Sum(this=exp.Anonymous(this=f"md5_number_{half}", expressions=[sql.column("row")]))
            for half in ("lower", "upper")
        ]
        rows = sql.select([row], t.source(t.names)).subquery("q", copy=False)
        result = self._run(sql.select([sql.count(), *halves], rows), t.parameters).fetchall()[0]
        return hashlib.sha256("\0".join([*map(str, result), *t.names]).encode()).hexdigest()

    def domain(self, table: Table, column: str, limit: int | None = None) -> Domain:
        t = _duck(table)
        query = sql.count_by(sql.select([sql.alias(t.text(column), "v")], t.source([column])), ["v"])
        if limit is not None:
            first = sql.case((sql.is_null(sql.column("v")), sql.integer(0)), otherwise=sql.integer(1))
            commonest = exp.Ordered(this=sql.column("n"), desc=True)
            query = query.order_by(first, commonest, sql.column("v")).limit(limit + 1)
        rows = dict(self._run(query, t.parameters).fetchall())
        missing = rows.pop(None, 0)
        values = list(rows)[:limit]
        numeric = bool(values) and all(map(sql.NUMBER.fullmatch, values))
        values = sorted(values, key=lambda v: (Decimal(v), v)) if numeric else sorted(values)
        return Domain(tuple(values), tuple(rows[v] for v in values), missing, numeric)

    def sample(self, table: Table, rows: int) -> list[dict[str, str | None]]:
        t = _duck(table)
        texts = [t.text(name) for name in t.names]
        found = self._run(sql.select(texts, t.source(t.names), limit=rows), t.parameters).fetchall()
        return [dict(zip(t.names, row, strict=True)) for row in found]

    def uniqueness(self, table: Table, columns: Sequence[str]) -> tuple[int, int]:
        t = _duck(table)
        names = [f"v{i}" for i in range(len(columns))]
        values = [sql.alias(t.value(c), n) for c, n in zip(columns, names, strict=True)]
        groups = sql.count_by(sql.select(values, t.source(columns)), names)
        alone = sql.equal(sql.column("n"), sql.integer(1))
        ones = exp.Count(this=sql.case((alone, sql.integer(1)), otherwise=exp.null()))
        distinct, unique = self._run(
            sql.select([sql.count(), ones], groups.subquery("g", copy=False)), t.parameters
        ).fetchall()[0]
        return int(distinct), int(unique)

    # --- the three passes -------------------------------------------------------------------------

    def summarise(self, table: Table, spec: SummarySpec) -> Summary:
        return frequency.summarise(self, _duck(table), spec)

    def recode(self, table: Table, plan: Plan) -> DuckTable:
        t = _duck(table)
        self._unchanged(t)
        name = self._new("published")
        recoded = recoding.recode(self, t, {c.name: c for c in t.columns}, plan, name)
        self._unchanged(t)
        return DuckTable(
            recoded.columns,
            t.caller,
            t.format,
            "the published table",
            name,
            frame=t.frame,
            typed=recoded.typed,
        )

    def write(self, table: Table, path: Path, format: str) -> None:
        t = _duck(table)
        try:
            if format == "csv":
                # a lone missing value would be an empty line, which readers skip
                quoting = 1 if len(t.columns) == 1 else None
                self._named(t, as_text=True).write_csv(
                    str(path), sep=",", header=True, quotechar='"', escapechar='"', na_rep="", quoting=quoting
                )
            elif format == "parquet":
                self._named(t).write_parquet(str(path), compression="zstd")
            else:
                raise UsageError(f"there is no format {format!r}; known: csv, parquet")
        except (duckdb.IOException, OSError):
            raise DestinationError(
                f"{path}: cannot be written; is the disk full, or the folder protected?"
            ) from None

    def recount(
        self, table: Table, columns: Sequence[str], sensitive: Sequence[str] = (), unit: str | None = None
    ) -> Recount:
        t = _duck(table)
        names = [f"l{i}" for i in range(len(columns))]
        needed = [*columns, *sensitive, *([unit] if unit else [])]

        def groups(more: Sequence[str], *counts: exp.Expression) -> list[tuple[Any, ...]]:
            labels = [*names, *(f"s{i}" for i in range(len(more)))]
            texts = [sql.alias(t.text(c), n) for c, n in zip([*columns, *more], labels, strict=True)]
            if unit:
                texts.append(sql.alias(t.text(unit), "u"))
            query = sql.count_by(sql.select(texts, t.source(needed)), labels, *counts)
            query.order_by(*sql.columns(labels), copy=False)
            return list(self._run(query, t.parameters).fetchall())

        def people() -> exp.Expression:
            return sql.count_distinct("u") if unit else sql.count()

        rows = groups([], sql.count(), people())
        width = len(columns)
        number = {row[:width]: i for i, row in enumerate(rows)}
        values = {
            name: [(number[row[:width]], row[width], row[-1]) for row in groups([name], people())]
            for name in sensitive
        }
        return Recount(list(number), [row[-2] for row in rows], [row[-1] for row in rows], values)

    def hand_over(self, table: Table) -> Any:
        t = _duck(table)
        give = t.frame.give if t.frame else frames.give_relation
        return give(self._named(t), t.typed)

    def close(self) -> None:
        self._con.close()
        shutil.rmtree(self._own_temp, ignore_errors=True)

    # --- for frequency.py and recoding.py ---------------------------------------------------------

    def run(self, query: exp.Expression, parameters: Mapping[str, Any]) -> None:
        self._run(query, parameters)

    def arrays(self, query: exp.Expression, parameters: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """The result of a query of integers without nulls, as one array per column."""
        return {k: np.asarray(v) for k, v in self._run(query, parameters).fetchnumpy().items()}

    def rows(self, query: exp.Expression, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return list(self._run(query, parameters).fetchall())

    @contextmanager
    def tables(self, content: Mapping[str, Mapping[str, np.ndarray[Any, Any]]]) -> Iterator[None]:
        """Small tables of values, there as long as the context."""
        try:
            for name, arrays in content.items():
                self._con.register(name, dict(arrays))
            yield
        finally:
            for name in content:
                self._con.unregister(name)

    def _named(self, t: DuckTable, as_text: bool = False) -> Any:
        """The table under its own column names, in the order of its rows."""
        values = ((name, t.text(name) if as_text else t.value(name)) for name in t.names)
        query = sql.select([sql.alias(value, name) for name, value in values], t.source(t.names))
        return self._con.sql(query.sql("duckdb"))

    def _unchanged(self, t: DuckTable) -> None:
        if t.stamp:
            stat = Path(t.label).stat()
            if t.stamp != (stat.st_ino, stat.st_size, stat.st_mtime_ns):
                raise InputError(f"{t.label}: the file was changed while it was being read; start again")

    def _store(
        self, name: str, view: str, columns: Sequence[tuple[str, ColumnInfo]], parameters: Mapping[str, Any]
    ) -> None:
        """Keep a source in the database, clean, its columns named c0, c1 …"""
        items: list[exp.Expression] = [
            sql.alias(sql.cleaned(sql.column(present), info, parameters), f"c{i}")
            for i, (present, info) in enumerate(columns)
        ]
        self._run(sql.create_table(name, sql.select(items, sql.relation(view))), parameters)

    def _new(self, kind: str) -> str:
        self._tables += 1
        return f"{kind}_{self._tables}"

    def _run(self, query: exp.Expression, parameters: Mapping[str, Any]) -> Any:
        try:
            return self._con.execute(query.sql("duckdb"), sql.used(query, parameters))
        except duckdb.OutOfMemoryException:
            raise UsageError(
                "not enough memory or temporary disk space for this table; raise --memory, or point --temp to a larger disk"
            ) from None


def _duck(table: Table) -> DuckTable:
    if not isinstance(table, DuckTable):
        raise TypeError(f"not a table of this engine: {type(table).__name__}")
    return table


def _infos(names: Sequence[str], types: Sequence[str]) -> tuple[ColumnInfo, ...]:
    return tuple(ColumnInfo(n, sql.kind_of(t), t) for n, t in zip(names, types, strict=True))
