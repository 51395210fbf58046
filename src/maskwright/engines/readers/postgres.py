"""PostgreSQL as a source: a table or query is copied in as one snapshot, with its types. And as a destination, see
pg_release.py. psycopg is installed as the extra `postgres`.

What is shown of a source (in logs, reports, manifests, errors) is `str(source)`: never the URL, which may hold a
password, and never what the server says, which may hold values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.addresses import scheme_of, shown_address
from maskwright.engines.readers.csv_files import check_names
from maskwright.errors import InputError, MaskwrightError, UsageError

if TYPE_CHECKING:
    import psycopg

SCHEMES = ("postgresql://", "postgres://")
SETTINGS = {  # how the server writes values as text, whatever its configuration says
    "timezone": "UTC", "datestyle": "ISO", "intervalstyle": "postgres", "bytea_output": "hex",
    "extra_float_digits": "1", "client_encoding": "UTF8",
}  # fmt: skip
_NUMERIC = 1700
_TYPES = {  # of the server by number, and what the engine makes of them; all others are text
    16: "BOOLEAN", 20: "BIGINT", 21: "SMALLINT", 23: "INTEGER", 700: "FLOAT", 701: "DOUBLE",
    1082: "DATE", 1114: "TIMESTAMP", 1184: "TIMESTAMP WITH TIME ZONE",
}  # fmt: skip
_DATES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
_PART = re.compile(r'"((?:[^"]|"")+)"|([^."]+)')
_REASONS = {
    "28000": "the server does not accept these credentials", "28P01": "the server does not accept these credentials",
    "3D000": "there is no such database", "3F000": "there is no such schema",
    "42P01": "there is no such table (names are taken as they are written, upper and lower case)",
    "42703": "the query names a column that is not there", "42601": "the query is not valid SQL",
    "42501": "permission denied; ask for the right to read or write there",
    "53100": "the disk of the server is full", "55P03": "the table is locked by somebody else; try again",
    "2BP01": "something else (a view?) depends on the old table; drop that first",
    "25006": "a query must only read",
}  # fmt: skip


@dataclass(frozen=True)
class Postgres:
    """A table or query of a PostgreSQL database.

    Args:
        url: as libpq has it, postgresql://user@host/database; leave the password to PGPASSWORD or ~/.pgpass.
        table: `name` or `schema.name`; parts that hold a dot in double quotes.
        query: a SELECT in place of a table.
    """

    url: str = field(repr=False)
    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if not self.url.startswith(SCHEMES):
            raise UsageError("the address of a database begins with postgresql://")
        if (self.table is None) == (self.query is None):
            raise UsageError("name a table of the database (schema.name), or a query: one of the two")
        if self.table is not None:
            _ = self.parts

    @property
    def parts(self) -> tuple[str, ...]:
        """The name of the table, taken apart."""
        text = self.table or ""
        found = [quoted.replace('""', '"') or plain for quoted, plain in _PART.findall(text)]
        whole = ".".join(m.group() for m in _PART.finditer(text))
        if whole != text or len(found) not in (1, 2):
            raise UsageError(f"{text!r} is not the name of a table; write name or schema.name")
        return tuple(found)

    def __str__(self) -> str:
        return f"the table {self.table}" if self.table else "the query"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A table in a transaction of ours, as it is there."""

    connection: psycopg.Connection[Any] = field(repr=False)
    table: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "the table that was written"


@dataclass(frozen=True)
class PostgresColumn:
    """A column: its name, its type in the server, and the type of the engine that holds it."""

    name: str
    stored: str
    type: str


def refuse_address(source: object) -> None:
    """An address alone is no table, and no file."""
    scheme = scheme_of(source)
    if scheme is None:
        return
    if scheme.startswith("postgres"):
        raise UsageError(
            "name the table of the database: postgresql://user@host/name --table schema.name, or "
            "mw.Postgres(url, 'schema.name') in Python"
        )
    raise UsageError(f"{shown_address(source)!r} is an address; download the table, and name the file")


def connect(source: Postgres, failure: type[MaskwrightError] = InputError) -> psycopg.Connection[Any]:
    """A connection whose transaction has not begun."""
    try:
        import psycopg
    except ImportError:
        raise UsageError(
            "PostgreSQL is reached with psycopg, which is not installed; "
            "install it with: pip install 'maskwright[postgres]'"
        ) from None
    try:
        psycopg.conninfo.conninfo_to_dict(source.url)
    except psycopg.Error:
        raise UsageError(
            "the address of the database cannot be read; write postgresql://user@host/database, with special "
            "characters as %.."
        ) from None
    try:
        return psycopg.connect(source.url, application_name="maskwright", prepare_threshold=None)
    except psycopg.Error as problem:
        raise failure(f"{source}: {_no_connection(str(problem))}") from None


def begin(connection: psycopg.Connection[Any]) -> None:
    """Start a transaction with settings of its own."""
    with connection.cursor() as cursor:
        for name, value in SETTINGS.items():
            cursor.execute("SELECT set_config(%s, %s, true)", (name, value))


def _no_connection(text: str) -> str:
    if "authentication failed" in text or "no password" in text:
        return _REASONS["28P01"]
    if "does not exist" in text:
        return "there is no such database, or no such user"
    return "the server cannot be reached; check host and port, and whether it is running"


@contextmanager
def server_failures(where: object, failure: type[MaskwrightError] = InputError) -> Iterator[None]:
    """Turn what the server says into an error of ours, which does not repeat it."""
    import psycopg

    try:
        yield
    except psycopg.Error as problem:
        raise failure(f"{where}: {reason_of(problem)}") from None


def reason_of(problem: psycopg.Error) -> str:
    """What went wrong, in words of ours."""
    import psycopg

    code = problem.sqlstate or ""
    if code in _REASONS:
        return _REASONS[code]
    if code.startswith(("08", "57P")) or (not code and isinstance(problem, psycopg.OperationalError)):
        return "the connection to the server was lost"
    return f"the server reports an error ({f'{type(problem).__name__} {code}'.strip()})"


def fetch(
    source: Postgres | Snapshot, temp: Path, load: Callable[[Path, list[PostgresColumn]], None]
) -> list[PostgresColumn]:
    """Copy all rows, as one snapshot, into a private file; hand it to `load`, and remove it.

    The file is CSV: null is an empty field, all else is quoted, and a last field keeps rows of one null apart from
    empty lines.
    """
    if isinstance(source, Snapshot):
        return _fetch(source.connection, source, temp, load)
    with server_failures(source), connect(source) as connection:
        connection.read_only = True
        connection.isolation_level = _repeatable_read()
        begin(connection)
        found = _fetch(connection, source, temp, load)
        connection.rollback()
    return found


def relation_of(source: Postgres | Snapshot) -> psycopg.sql.Composable:
    """What is read, as a statement has it after FROM."""
    from psycopg import sql

    if isinstance(source, Postgres) and source.query is not None:
        inner = sql.SQL(source.query.strip().rstrip(";"))  # the user's own query
        return sql.SQL("({}\n) AS maskwright_query").format(inner)
    return sql.Identifier(*(source.parts if isinstance(source, Postgres) else source.table))


def _fetch(
    connection: psycopg.Connection[Any],
    source: Postgres | Snapshot,
    temp: Path,
    load: Callable[[Path, list[PostgresColumn]], None],
) -> list[PostgresColumn]:
    from psycopg import sql

    relation = relation_of(source)
    columns = _columns(connection, relation, source)
    items = [_item(column) for column in columns]
    copy = sql.SQL("COPY (SELECT {}, 1 FROM {}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)")
    path = temp / "rows.csv"
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            statement = copy.format(sql.SQL(", ").join(items), relation)
            with connection.cursor() as cursor, cursor.copy(statement) as blocks:
                for block in blocks:
                    file.write(block)
        load(path, columns)
    finally:
        path.unlink(missing_ok=True)
    return columns


def _columns(connection: psycopg.Connection[Any], relation: Any, where: object) -> list[PostgresColumn]:
    from psycopg import sql

    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(relation))
        result = cursor.pgresult
        if result is None or cursor.description is None:
            raise InputError(f"{where}: there are no columns")
        names = check_names([column.name for column in cursor.description], str(where))
        kinds = [(result.ftype(i), result.fmod(i)) for i in range(result.nfields)]
        found = []
        for name, (number, modifier) in zip(names, kinds, strict=True):
            cursor.execute("SELECT format_type(%s, %s)", (number, modifier))
            [stored] = cursor.fetchone() or ("text",)
            found.append(PostgresColumn(name, str(stored), _type(number, modifier)))
    return found


def _type(number: int, modifier: int) -> str:
    """Of numeric columns only those with a declared precision have a type that holds all their values."""
    if number == _NUMERIC and modifier >= 4:
        precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
        if precision <= 38 and scale <= precision:
            return f"DECIMAL({precision},{scale})"
    return _TYPES.get(number, "VARCHAR")


def _item(column: PostgresColumn) -> Any:
    """What is copied of a column: not-a-number is missing, and a free numeric is text without trailing zeros.

    A year before Christ is copied as what the engine refuses: it would take it for one after.
    """
    from psycopg import sql

    name = sql.Identifier(column.name)
    if column.type in _DATES:
        early = sql.SQL("CASE WHEN isfinite({0}) AND {0} < '0001-01-01' THEN 'BC' ELSE {0}::text END")
        return early.format(name)
    if not column.stored.startswith("numeric") or column.stored.endswith("]"):
        return name
    number = sql.SQL("NULLIF({}, 'NaN')").format(name)
    return number if column.type != "VARCHAR" else sql.SQL("trim_scale({})").format(number)


def _repeatable_read() -> Any:
    import psycopg

    return psycopg.IsolationLevel.REPEATABLE_READ
