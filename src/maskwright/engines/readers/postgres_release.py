"""A release in PostgreSQL: written to staging tables, read back, and renamed into place, all in one transaction.

Until the commit nobody else sees anything of it, and the old release stays; killed at any point, nothing remains.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.engines.base import Engine, Reading, Table
from maskwright.engines.readers.postgres import (
    Postgres,
    Snapshot,
    begin,
    connect,
    reason_of,
    relation_of,
    server_failures,
)
from maskwright.errors import DestinationError, NotVerified, UsageError
from maskwright.runtime.time_budget import TimeBudget

if TYPE_CHECKING:
    import psycopg

MARK = "Maskwright release"
PATIENCE = 20.0  # seconds to find out what became of a commit whose answer was lost
UNCHANGED = "the database has what it had before"
UNKNOWN = (
    "it is not known whether the database has the new release or what it had before: look at the table when "
    "the server answers again (whichever it is, it is whole)"
)
BLOCK = 1 << 20
_TYPES = {  # of the engine, and what the server has for them; all others are text
    "BOOLEAN": "boolean", "TINYINT": "smallint", "UTINYINT": "smallint", "SMALLINT": "smallint",
    "USMALLINT": "integer", "INTEGER": "integer", "UINTEGER": "bigint", "BIGINT": "bigint",
    "UBIGINT": "numeric(20,0)", "FLOAT": "real", "DOUBLE": "double precision", "DATE": "date",
    "TIMESTAMP": "timestamp", "TIMESTAMP_S": "timestamp", "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp", "TIMESTAMP WITH TIME ZONE": "timestamptz",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Pending:
    """Tables that were written and not yet put in place. `tables` are they, read back by the engine."""

    tables: Mapping[str, Table]
    target: Postgres
    _connection: psycopg.Connection[Any] = field(repr=False)
    _names: Mapping[str, tuple[str, ...]]  # staging name → name to be
    _schema: tuple[str, ...]

    def swap(self) -> None:
        """Put the tables in place of the old ones, for this transaction only so far."""
        from psycopg import sql

        with server_failures(self.target, DestinationError), self._connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '60s'")
            for staging, final in self._names.items():
                cursor.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(*final)))
                rename = sql.SQL("ALTER TABLE {} RENAME TO {}")
                cursor.execute(
                    rename.format(sql.Identifier(*self._schema, staging), sql.Identifier(final[-1]))
                )

    def commit(self) -> None:
        """Make them visible to all. If the connection breaks just then, the server is asked what became of it."""
        import psycopg

        try:
            with server_failures(self.target, DestinationError):
                number = self._connection.execute("SELECT txid_current()").fetchone()
        except DestinationError as problem:
            raise DestinationError(f"{problem}; {UNCHANGED}") from None
        try:
            self._connection.commit()
        except psycopg.Error as problem:
            lost = self._connection.closed or self._connection.broken
            outcome = _outcome(self.target, number) if lost else "aborted"
            if outcome == "committed":
                return
            reason = UNCHANGED if outcome == "aborted" else UNKNOWN
            raise DestinationError(f"{self.target}: {reason_of(problem)}; {reason}") from None


@contextmanager
def staged(
    engine: Engine, tables: Mapping[str, Table], target: Postgres, overwrite: bool, temp: Path
) -> Iterator[Pending]:
    """Write tables to staging tables and read them back. Without `commit` nothing remains.

    A release of one table gets the name of the target; of several, that name and theirs (`name_sensitive`).
    """
    finals = names_of(target, list(tables))
    connection = connect(target, DestinationError)
    import psycopg

    try:
        with server_failures(target, DestinationError):
            begin(connection)
            _check(connection, target, finals.values(), overwrite)
        schema = target.parts[:-1]
        read, names = {}, {}
        for name, table in tables.items():
            staging = f"maskwright_{secrets.token_hex(8)}"
            with server_failures(target, DestinationError):
                _write(connection, engine, table, (*schema, staging), temp)
            with server_failures(target, DestinationError):
                read[name] = engine.open(Snapshot(connection, (*schema, staging)), Reading())
            names[staging] = finals[name]
        yield Pending(read, target, connection, names, schema)
    finally:
        with suppress(psycopg.Error):  # of a connection that was lost; the server rolls back by itself
            connection.rollback()
        connection.close()


def _outcome(target: Postgres, number: Any) -> str | None:
    """What became of a transaction: committed, aborted, or None when that cannot be found out."""
    import psycopg

    patience = TimeBudget(PATIENCE, time.monotonic)
    while not patience.is_over:
        with suppress(psycopg.Error, TypeError), psycopg.connect(target.url, connect_timeout=5) as again:
            [found] = again.execute("SELECT txid_status(%s)", number).fetchone() or [None]
            if found in ("committed", "aborted"):
                return str(found)
        time.sleep(0.2)  # the server is starting, or still at it
    return None


def names_of(target: Postgres, tables: list[str]) -> dict[str, tuple[str, ...]]:
    """The name of each table of a release in the database."""
    if target.table is None:
        raise UsageError("a release is written to a table, not to a query; name it: schema.name")
    *schema, name = target.parts
    if len(tables) == 1:
        return {tables[0]: target.parts}
    return {table: (*schema, f"{name}_{table.replace('-', '_')}") for table in tables}


def check_target(target: Postgres, overwrite: bool, tables: list[str], source: Any = None) -> None:
    """Refuse, before any work is done, a place where the release could not be put, or that is read from."""
    finals = names_of(target, tables)
    read = _read(source) if isinstance(source, Postgres) else set[_Identity]()
    with server_failures(target, DestinationError), connect(target, DestinationError) as connection:
        _check(connection, target, finals.values(), overwrite)
        for final in finals.values() if read else ():
            if read & _identities(connection, [final]):
                shown = sql_name(connection, final)
                raise DestinationError(
                    f"{target}: the input is read from {shown}, which would be replaced; choose another name"
                )
        connection.rollback()


_Identity = tuple[
    Any, ...
]  # of a table, by whatever address and name: the server's start, the database, the table


def _read(source: Postgres) -> set[_Identity]:
    """The tables that a table, view or query is read from, as the server plans it."""
    from psycopg import sql

    def relations(plan: Any) -> Iterator[tuple[str, ...]]:
        """The relations that a query plan reads."""
        if isinstance(plan, dict) and "Relation Name" in plan:
            yield plan["Schema"], plan["Relation Name"]
        for below in plan.values() if isinstance(plan, dict) else plan if isinstance(plan, list) else ():
            yield from relations(below)

    with server_failures(source), connect(source) as connection:
        connection.read_only = True
        begin(connection)
        explain = sql.SQL("EXPLAIN (VERBOSE, FORMAT JSON) SELECT * FROM {}").format(relation_of(source))
        # prepared: the server takes one statement only
        [plan] = connection.execute(explain, prepare=True).fetchone() or [None]
        found = _identities(connection, {*relations(plan), *([source.parts] if source.query is None else [])})
        connection.rollback()
    return found


def _identities(connection: psycopg.Connection[Any], names: Iterable[tuple[str, ...]]) -> set[_Identity]:
    asked = (
        "SELECT to_char(pg_postmaster_start_time() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), d.oid, "
        "to_regclass(%s)::oid FROM pg_database d WHERE d.datname = current_database()"
    )
    found = [connection.execute(asked, (sql_name(connection, name),)).fetchone() for name in names]
    return {tuple(row) for row in found if row is not None and row[-1] is not None}


def sql_name(connection: psycopg.Connection[Any], name: tuple[str, ...]) -> str:
    """The name of a table as statements have it."""
    from psycopg import sql

    return sql.Identifier(*name).as_string(connection)


def _check(connection: psycopg.Connection[Any], target: Postgres, finals: Any, overwrite: bool) -> None:
    """An existing table is replaced only when it is a release of ours, and only when that is wanted."""
    for final in finals:
        shown = sql_name(connection, final)
        if len(final[-1].encode()) > 63:
            raise DestinationError(f"{target}: the name {final[-1]!r} is too long for the database")
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT obj_description(c.oid, 'pg_class'), c.relkind FROM pg_class c WHERE c.oid = to_regclass(%s)",
                (shown,),
            )
            found = cursor.fetchone()
        if found is None:
            continue
        if found[1] != "r" or not str(found[0]).startswith(MARK):
            raise DestinationError(
                f"{target}: {shown} exists and is not a Maskwright release; choose another name"
            )
        if not overwrite:
            raise DestinationError(f"{target}: {shown} exists; use --overwrite to replace that release")


def _write(
    connection: psycopg.Connection[Any], engine: Engine, table: Table, place: tuple[str, ...], temp: Path
) -> None:
    """Create a table and copy the rows into it; the server makes values of its own types from their text."""
    from psycopg import sql

    columns = [sql.Identifier(c.name) for c in table.columns]
    for column in table.columns:
        if len(column.name.encode()) > 63:
            raise DestinationError(
                f"the name of column {column.name!r} is too long for the database; shorten it"
            )
    path = temp / "release.csv"
    engine.write(table, path, "csv", "allow")  # on its way into the database: no spreadsheet sees it
    try:
        with connection.cursor() as cursor:
            types = [sql.SQL(t) for t in _stored(cursor, table)]
            items = [sql.SQL("{} {}").format(c, t) for c, t in zip(columns, types, strict=True)]
            where = sql.Identifier(*place)
            cursor.execute(sql.SQL("CREATE TABLE {} ({})").format(where, sql.SQL(", ").join(items)))
            cursor.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(where, sql.Literal(MARK)))
            every = sql.SQL(", ").join(columns)
            copy = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv, HEADER true, FORCE_NULL ({}))")
            with path.open("rb") as file, cursor.copy(copy.format(where, every, every)) as blocks:
                while block := file.read(BLOCK):
                    blocks.write(block)
            cursor.execute(sql.SQL("SELECT count(*) FROM {}").format(where))
            if (cursor.fetchone() or [0])[0] == 0:
                raise NotVerified("the table that was written to the database has no rows")
    finally:
        path.unlink(missing_ok=True)


def _stored(cursor: psycopg.Cursor[Any], table: Table) -> list[str]:
    """The type of each column in the server: that of the source where it is kept and known there."""
    origin: Mapping[str, str] = getattr(table, "origin", {})
    typed: frozenset[str] = getattr(table, "typed", frozenset())
    found = []
    for column in table.columns:
        stored = origin.get(column.name) if column.name in typed else None
        if stored is not None:
            cursor.execute("SELECT to_regtype(%s)", (stored,))
            stored = stored if (cursor.fetchone() or [None])[0] is not None else "text"
        elif column.type.startswith("DECIMAL"):
            stored = column.type.replace("DECIMAL", "numeric")
        found.append(stored or _TYPES.get(column.type, "text"))
    return found
