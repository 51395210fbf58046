"""Hostile names and values from PostgreSQL and back: nothing is run there either, and all comes out as it went in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.errors import DestinationError
from tests.hostile import groups, policy, table
from tests.postgres.conftest import Server

RUNS = "DROP TABLE canary"


def names_for_a_server(names: list[str]) -> list[str]:
    """The names that a server can hold: 63 bytes at most."""
    return [n.replace("COPY (SELECT 1) TO 'canary.csv'", RUNS) for n in names if len(n.encode()) <= 63]


def create(server: Server, schema: str, names: list[str], rows: list[tuple[str, ...]]) -> None:
    import psycopg
    from psycopg import sql

    place = sql.SQL(f"{schema}.hostile")
    columns = sql.SQL(", ").join(sql.SQL("{} text").format(sql.Identifier(n)) for n in names)
    marks = sql.SQL(", ").join(sql.Placeholder() * len(names))
    with psycopg.connect(server.url()) as connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE TABLE {} ({})").format(place, columns))
        cursor.executemany(sql.SQL("INSERT INTO {} VALUES ({})").format(place, marks), rows)


def columns_of(server: Server, schema: str, name: str) -> list[str]:
    query = (
        "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"
    )
    return [row[0] for row in server.run(query, f"{schema}.{name}")]


@pytest.mark.parametrize(("recoding", "shift"), [("generalise", 0), ("bucketize", 1), ("permute", 2)])
def test_there_and_back(server: Server, schema: str, tmp_path: Path, recoding: str, shift: int) -> None:
    server.run(f"CREATE TABLE {schema}.canary AS SELECT 1 AS n")
    for i, some in enumerate(groups(40)):
        names = names_for_a_server(some[shift:] + some[:shift])
        rows = table(names)
        create(server, schema, names, rows)
        source = mw.Postgres(server.url(), f"{schema}.hostile")
        into = mw.Postgres(server.url(), f'{schema}."pub""lished; --"')
        mw.anonymize(source, policy(names, recoding), tmp_path / str(i), into=into)
        parts = ["_quasi_identifiers", "_sensitive"] if recoding == "bucketize" else [""]
        found: Counter[Any] = Counter()
        shown = []
        for part in parts:
            name = f'"pub""lished; --{part}"'
            columns = columns_of(server, schema, name)
            shown += columns
            for row in server.run(f"SELECT * FROM {schema}.{name}"):
                found.update(zip(columns, row, strict=True))
            server.run(f"DROP TABLE {schema}.{name}")
        assert set(names[1:]) <= set(shown)
        for j in range(3, len(names)):
            for value, n in Counter(row[j] for row in rows).items():
                assert found[names[j], value] == n, (names[j], value)
        server.run(f"DROP TABLE {schema}.hostile")
    assert server.run(f"SELECT n FROM {schema}.canary") == [(1,)], "something of the table was run"


def test_a_name_that_is_too_long_for_the_server_is_refused(
    server: Server, schema: str, tmp_path: Path
) -> None:
    names = ["id", "a", "b", "c" * 64, "d"]
    source = tmp_path / "t.csv"
    source.write_text(
        "\n".join(",".join(row) for row in [names, *[["x", "1", "2", "y", "z"]] * 8]), encoding="utf-8"
    )
    into = mw.Postgres(server.url(), f"{schema}.published")
    with pytest.raises(DestinationError, match="too long"):
        mw.anonymize(source, policy(names, "generalise"), into=into)
    assert server.run("SELECT count(*) FROM pg_tables WHERE schemaname = %s", schema.strip('"')) == [(0,)]
