"""Reading from and writing to a real PostgreSQL server: types, one transaction, and no credentials anywhere."""

from __future__ import annotations

import datetime
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

import maskwright as mw
from maskwright.engines.base import Engine, Reading
from maskwright.engines.readers import postgres_release
from maskwright.errors import DestinationError, InputError, NotVerified, UsageError
from maskwright.runtime.events import Event
from tests.engines.conftest import engine
from tests.patients import HEADER, POLICY, leftovers, patients, write_csv
from tests.postgres.conftest import PASSWORD, QUOTED, Server

__all__ = ["engine"]
MODELS = [{"model": "k-anonymity", "k": 4}]


def policy(**changes: Any) -> mw.Policy:
    return mw.Policy.load(yaml.safe_load(POLICY) | changes)


@pytest.fixture
def people(server: Server, schema: str) -> str:
    """The patients as a table with an enumeration, an exact number, a day, a uuid and JSON beside them."""
    server.run(f"CREATE TYPE {schema}.sex AS ENUM ('f', 'm')")
    server.run(
        f"CREATE TABLE {schema}.people (name text, age smallint, zip char(6), sex {schema}.sex, disease varchar(20), "
        "ward text, cost numeric(10,2), free numeric, day date, seen timestamptz, key uuid, extra jsonb, words text[])"
    )
    for i, row in enumerate(patients()):
        rest = (Decimal("2.50") + i, Decimal("7.10"), datetime.date(2024, 1, 1 + i % 5),
                datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.UTC), uuid.UUID(int=i % 4), '{"a": 1}',
                ["x", None])  # fmt: skip
        server.run(f"INSERT INTO {schema}.people VALUES (" + ", ".join(["%s"] * 13) + ")", *row, *rest)
    return f"{schema}.people"


COLUMNS = {c: {"role": "insensitive", "near_unique": "allow"} for c in
           ("cost", "free", "day", "seen", "key", "extra", "words")}  # fmt: skip


def whole_policy(**changes: Any) -> mw.Policy:
    return policy(columns={**yaml.safe_load(POLICY)["columns"], **COLUMNS}, require=MODELS, **changes)


def types(server: Server, table: str) -> dict[str, str]:
    rows = server.run(
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum", table,
    )  # fmt: skip
    return dict(rows)


def test_all_kinds_of_values(server: Server, engine: Engine, schema: str) -> None:
    server.run(
        f"""CREATE TABLE {schema}.t AS SELECT 1::int AS n, 'a "quoted", line
end'::text AS text, ' '::text AS blank, ''::text AS empty, NULL::text AS nothing, true AS yes, 1.5::float8 AS f,
'NaN'::float8 AS nan, 0.1::float4 AS f4, 12345678901::bigint AS big, 2.50::numeric(10,2) AS exact,
7.10::numeric AS free,
'NaN'::numeric(5,1) AS none, '2024-01-31'::date AS day, '2024-01-31 12:00:00.25'::timestamp AS t,
'2024-01-31 12:00:00+02'::timestamptz AS tz, 'ab'::char(5) AS padded, ARRAY[1,2] AS list, '\\x00ff'::bytea AS bytes"""
    )
    table = engine.open(mw.Postgres(server.url(), f"{schema}.t"), Reading())
    [row] = engine.sample(table, 5)
    assert row == {
        "n": "1", "text": 'a "quoted", line\nend', "blank": None, "empty": None, "nothing": None, "yes": "true",
        "f": "1.5", "nan": None, "f4": "0.1", "big": "12345678901", "exact": "2.5", "free": "7.1", "none": None,
        "day": "2024-01-31", "t": "2024-01-31 12:00:00.25", "tz": "2024-01-31 10:00:00+00", "padded": "ab",
        "list": "{1,2}",
        "bytes": "\\x00ff",
    }  # fmt: skip
    kinds = {c.name: c.kind for c in table.columns}
    assert (kinds["n"], kinds["exact"], kinds["free"], kinds["day"], kinds["tz"]) == (
        "integer", "number", "text", "date", "timestamp",
    )  # fmt: skip


def test_one_column_of_nulls_and_a_query(server: Server, engine: Engine, schema: str) -> None:
    server.run(f"CREATE TABLE {schema}.t AS SELECT NULLIF(i, 2)::text AS c FROM generate_series(1, 3) AS i")
    domain = engine.domain(engine.open(mw.Postgres(server.url(), f"{schema}.t"), Reading()), "c")
    assert (domain.values, domain.missing) == (("1", "3"), 1)
    query = f"SELECT c, count(*) AS n FROM {schema}.t GROUP BY c -- by value\n;"
    assert engine.count(engine.open(mw.Postgres(server.url(), query=query), Reading())) == 3


def test_there_and_back(server: Server, schema: str, people: str, tmp_path: Path) -> None:
    source = mw.Postgres(server.url(), people)
    into = mw.Postgres(server.url(), f"{schema}.published")
    release = mw.anonymize(source, whole_policy(), tmp_path / "r", into=into, seed=1)
    before, after = types(server, people), types(server, f"{schema}.published")
    kept = ["disease", "ward", *COLUMNS]
    assert {c: after[c] for c in kept} == {c: before[c] for c in kept}
    assert list(after) == [c for c in before if c != "name"]
    coarse = [c for c in ("age", "zip", "sex") if release.mapping[c] != {v: (v,) for v in release.mapping[c]}]
    assert coarse
    assert all(after[c] == "text" for c in coarse)
    assert all(after[c] == before[c] for c in ("age", "zip", "sex") if c not in coarse)
    rows = server.run(f"SELECT age, zip, sex, disease, cost, extra, words FROM {schema}.published")
    assert len(rows) == release.grouping.published_rows
    assert min(Counter(row[:3] for row in rows).values()) >= 4
    originals = Counter(server.run(f"SELECT disease, cost, extra::text, words::text FROM {people}"))
    shown = server.run(f"SELECT disease, cost, extra::text, words::text FROM {schema}.published")
    assert not Counter(shown) - originals
    order = server.run(f"SELECT cost FROM {schema}.published")
    assert order != sorted(order)
    assert not server.run("SELECT relname FROM pg_class WHERE relname LIKE 'maskwright%%'")


@pytest.mark.parametrize("recoding", ["bucketize", "permute"])
def test_other_recodings(server: Server, schema: str, people: str, recoding: str) -> None:
    into = mw.Postgres(server.url(), f"{schema}.published")
    models = [{"model": "k-anonymity", "k": 4}]
    release = mw.anonymize(
        mw.Postgres(server.url(), people),
        policy(recoding=recoding, method="mondrian", require=models),
        into=into,
    )
    names = {
        t for (t,) in server.run("SELECT tablename FROM pg_tables WHERE schemaname = %s", schema.strip('"'))
    }
    if recoding == "permute":
        assert names == {"people", "published"}
        return
    assert names == {"people", "published_quasi_identifiers", "published_sensitive"}
    groups = [
        Counter(server.run(f'SELECT "group" FROM {schema}.published_{part}'))
        for part in ("quasi_identifiers", "sensitive")
    ]
    assert groups[0] == groups[1]
    assert sum(groups[0].values()) == release.grouping.published_rows


def test_several_parts_and_sets(server: Server, schema: str) -> None:
    server.run(
        f"CREATE TABLE {schema}.visits AS SELECT 20 + i AS age, (ARRAY['flu', 'ulcer', 'gout'])[1 + i % 3] AS disease, "
        "(ARRAY['cough;fever', 'cough', 'fever', 'rash'])[1 + i % 4] AS symptoms FROM generate_series(0, 39) AS i"
    )
    changes = {
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}},
            "disease": "sensitive",
            "symptoms": {"role": "sensitive", "multivalued": ";"},
        },
        "method": {"name": "codip", "base": {"name": "mondrian"}, "plan": [["disease"], ["symptoms"]]},
        "require": MODELS,
    }
    into = mw.Postgres(server.url(), f"{schema}.published")
    release = mw.anonymize(mw.Postgres(server.url(), f"{schema}.visits"), policy(**changes), into=into)
    assert len(release.tables) == 2
    for name in release.tables:
        table = f"{schema}.published_{name.replace('-', '_')}"
        rows = server.run(f"SELECT * FROM {table}")
        assert len(rows) == 40
        if "symptoms" in types(server, table):
            words = Counter(s for (s,) in server.run(f"SELECT symptoms FROM {table}"))
            assert words == Counter(s for (s,) in server.run(f"SELECT symptoms FROM {schema}.visits"))


def test_from_a_file(server: Server, schema: str, tmp_path: Path) -> None:
    table = write_csv(tmp_path / "p.csv", patients())
    into = mw.Postgres(server.url(), f"{schema}.published")
    release = mw.anonymize(table, policy(), into=into)
    assert server.run(f"SELECT count(*) FROM {schema}.published") == [(release.grouping.published_rows,)]
    assert set(types(server, f"{schema}.published").values()) == {"text"}


def test_an_old_release_is_replaced_only_when_asked(server: Server, schema: str, tmp_path: Path) -> None:
    table = write_csv(tmp_path / "p.csv", patients())
    into = mw.Postgres(server.url(), f"{schema}.published")
    mw.anonymize(table, policy(), into=into)
    with pytest.raises(DestinationError, match="use --overwrite"):
        mw.anonymize(table, policy(), into=into)
    write_csv(table, patients(32))
    release = mw.anonymize(table, policy(), into=into, overwrite=True)
    assert server.run(f"SELECT count(*) FROM {schema}.published") == [(release.grouping.published_rows,)]
    server.run(f"CREATE TABLE {schema}.theirs (a int)")
    with pytest.raises(DestinationError, match="is not a Maskwright release"):
        mw.anonymize(table, policy(), into=mw.Postgres(server.url(), f"{schema}.theirs"), overwrite=True)
    server.run(f"CREATE VIEW {schema}.v AS SELECT * FROM {schema}.published")
    with pytest.raises(DestinationError, match="depends on the old table"):
        mw.anonymize(table, policy(), tmp_path / "r", into=into, overwrite=True)
    assert not (tmp_path / "r").exists()
    assert server.run(f"SELECT count(*) FROM {schema}.v") == [(release.grouping.published_rows,)]


@pytest.mark.parametrize("way", ["table", "query", "another address"])
def test_what_is_read_is_never_replaced(server: Server, schema: str, tmp_path: Path, way: str) -> None:
    """A release of ours that is the input of the next run, by whatever name."""
    into = mw.Postgres(server.url(), f"{schema}.published")
    mw.anonymize(write_csv(tmp_path / "p.csv", patients()), policy(), into=into)
    server.run(f"ALTER TABLE {schema}.published ADD COLUMN name text DEFAULT 'P'")
    before = server.run(f"SELECT * FROM {schema}.published ORDER BY 1, 2, 3, 4, 5")
    sources = {
        "table": into,
        "query": mw.Postgres(server.url(), query=f"WITH all_of AS (SELECT * FROM {schema}.published) TABLE all_of"),
        "another address": mw.Postgres(f"{server.url()}{'&' if '?' in server.url() else '?'}application_name=other",
                                       f'{schema}."published"'),
    }  # fmt: skip
    columns = {"sex": {"role": "quasi-identifier", "hierarchy": "suppress"}, "disease": "sensitive"}
    again = {
        "version": 1,
        "columns": columns,
        "require": [{"model": "k-anonymity", "k": 4}],
        "method": "mondrian",
    }
    with pytest.raises(
        DestinationError, match=r"the input is read from .*published.*, which would be replaced"
    ):
        mw.anonymize(sources[way], again, tmp_path / "r", into=into, overwrite=True)
    assert server.run(f"SELECT * FROM {schema}.published ORDER BY 1, 2, 3, 4, 5") == before
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("where", ["write", "recount", "swap"])
def test_a_failure_leaves_the_old_release(
    server: Server, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    table = write_csv(tmp_path / "p.csv", patients())
    into = mw.Postgres(server.url(), f"{schema}.published")
    mw.anonymize(table, policy(), into=into, seed=1)
    before = server.run(f"SELECT * FROM {schema}.published ORDER BY 1, 2, 3, 4, 5")
    oid = server.run("SELECT %s::regclass::oid", f"{schema}.published")
    original = {"write": postgres_release._write, "swap": postgres_release.Pending.swap}

    def broken(*args: Any) -> None:
        if where in original:
            original[where](*args)
        raise KeyboardInterrupt

    def spoiled(connection: Any, engine: Any, table: Any, place: tuple[str, ...], temp: Path) -> None:
        """A server that does not store what it was given: one person with another label."""
        original["write"](connection, engine, table, place, temp)
        shown = ".".join(f'"{part}"' for part in place)
        connection.execute(f"UPDATE {shown} SET age = 'x' WHERE ctid = (SELECT min(ctid) FROM {shown})")

    if where == "swap":
        monkeypatch.setattr(postgres_release.Pending, "swap", broken)
    else:
        monkeypatch.setattr(postgres_release, "_write", broken if where == "write" else spoiled)
    with pytest.raises((KeyboardInterrupt, NotVerified)) as caught:
        mw.anonymize(table, policy(), tmp_path / "r", into=into, overwrite=True)
    assert caught.type is (NotVerified if where == "recount" else KeyboardInterrupt)
    monkeypatch.undo()
    assert server.run(f"SELECT * FROM {schema}.published ORDER BY 1, 2, 3, 4, 5") == before
    assert server.run("SELECT %s::regclass::oid", f"{schema}.published") == oid
    assert not server.run("SELECT relname FROM pg_class WHERE relname LIKE 'maskwright%%'")
    assert not (tmp_path / "r").exists()
    assert not leftovers(tmp_path)


def test_killed_after_the_swap_the_old_release_is_there(server: Server, schema: str, tmp_path: Path) -> None:
    table = write_csv(tmp_path / "p.csv", patients())
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    mw.anonymize(table, policy(), into=mw.Postgres(server.url(), f"{schema}.published"))
    oid = server.run("SELECT %s::regclass::oid", f"{schema}.published")
    code = f"""
import os, signal
import maskwright as mw
from maskwright.engines.readers.postgres_release import Pending
swap = Pending.swap
def killed(self):
    swap(self)
    print("swapped", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
Pending.swap = killed
into = mw.Postgres({server.url()!r}, {schema + ".published"!r})
mw.anonymize("p.csv", "policy.yaml", "r", into=into, overwrite=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("swapped\n", -signal.SIGKILL), done.stderr
    assert server.run("SELECT %s::regclass::oid", f"{schema}.published") == oid
    for _ in range(100):  # the server notices a moment later
        if not server.run("SELECT relname FROM pg_class WHERE relname LIKE 'maskwright%%'"):
            break
        time.sleep(0.1)
    assert not server.run("SELECT relname FROM pg_class WHERE relname LIKE 'maskwright%%'")
    assert not (tmp_path / "r").exists()


def test_readers_see_the_old_release_until_the_commit(
    server: Server, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write_csv(tmp_path / "p.csv", patients())
    into = mw.Postgres(server.url(), f"{schema}.published")
    mw.anonymize(table, policy(), into=into)
    write_csv(table, patients(32))
    seen: list[int] = []
    swap = postgres_release.Pending.swap

    def watched(self: Any) -> None:
        seen.append(server.run(f"SELECT count(*) FROM {schema}.published")[0][0])
        swap(self)

    monkeypatch.setattr(postgres_release.Pending, "swap", watched)
    mw.anonymize(table, policy(), into=into, overwrite=True)
    seen.append(server.run(f"SELECT count(*) FROM {schema}.published")[0][0])
    assert seen[0] > 32 >= seen[1]


def test_no_credentials_anywhere(
    server: Server, schema: str, people: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, into = mw.Postgres(server.url(), people), mw.Postgres(server.url(), f"{schema}.published")
    events: list[Event] = []
    release = mw.anonymize(source, whole_policy(), tmp_path / "r", into=into, on_event=events.append)
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    command = [sys.executable, "-m", "maskwright.cli", "anonymize", server.url(), "--table", people,
               "-p", "policy.yaml", "-o", "s", "--into", f"{schema}.published", "--overwrite", "--verbose"]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    init = [sys.executable, "-m", "maskwright.cli", "init", server.url(), "--table", people, "-o", "new.yaml"]
    guessed = subprocess.run(init, cwd=tmp_path, capture_output=True, text=True, check=True)
    wrong = subprocess.run(
        [sys.executable, "-m", "maskwright.cli", "anonymize", server.url(), "-p", "policy.yaml", "-o", "t", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert wrong.returncode == 2
    assert "--table schema.name" in wrong.stderr
    words = [repr(source), str(source), str(events), str(release), repr(release), str(release.as_dict()),
             *capfd.readouterr(), done.stdout, done.stderr, guessed.stdout, guessed.stderr, wrong.stdout,
             wrong.stderr]  # fmt: skip
    words += [p.read_bytes().decode("latin-1") for p in tmp_path.rglob("*") if p.is_file()]
    for text in words:
        assert QUOTED not in text
        assert PASSWORD not in text
        assert "battery" not in text


def test_what_goes_wrong(server: Server, engine: Engine, schema: str, people: str) -> None:
    def message(source: mw.Postgres, kind: type[Exception] = InputError) -> str:
        with pytest.raises(kind) as caught:
            engine.open(source, Reading())
        return str(caught.value)

    url = server.url()
    assert "no such table" in message(mw.Postgres(url, f"{schema}.nobody"))
    assert "credentials" in message(mw.Postgres(server.url("wrong"), people))
    assert "no such database" in message(mw.Postgres(url.replace("/postgres", "/other"), people))
    assert "cannot be reached" in message(mw.Postgres("postgresql://x:secret@127.0.0.1:1/d", people))
    assert "cannot be read" in message(mw.Postgres("postgresql://x:se cret@h:port/d", people), UsageError)
    assert "not valid SQL" in message(mw.Postgres(url, query="SELEC 1"))
    assert "column that is not there" in message(mw.Postgres(url, query=f"SELECT nobody FROM {people}"))
    assert "occurs twice" in message(mw.Postgres(url, query="SELECT 1 AS a, 2 AS a"))
    assert "no rows" in message(mw.Postgres(url, query="SELECT 1 AS a WHERE false"))
    for kind in ("date", "timestamp", "timestamptz"):
        query = f"SELECT '0044-03-15 BC'::{kind} AS day"
        assert "column 'day' holds a value" in message(mw.Postgres(url, query=query))
    server.run(
        f"CREATE FUNCTION {schema}.harm() RETURNS int LANGUAGE sql AS 'DELETE FROM {people} RETURNING 1'"
    )
    assert "must only read" in message(mw.Postgres(url, query=f"SELECT {schema}.harm() AS a"))
    assert server.run(f"SELECT count(*) FROM {people}") == [(40,)]
    with pytest.raises(UsageError, match="one of the two"):
        mw.Postgres(url)
    with pytest.raises(UsageError, match="is not the name of a table"):
        mw.Postgres(url, "a.b.c")
    with pytest.raises(UsageError, match=r"mw\.Postgres") as caught:
        mw.anonymize(url, policy())
    assert "battery" not in str(caught.value)


def test_new_rows_and_audit_from_the_database(server: Server, people: str) -> None:
    source = mw.Postgres(server.url(), people)
    release = mw.anonymize(source, policy(), seed=1)
    assert len(mw.Recoder.from_release(release).transform(source).fetchall()) == 40
    assert HEADER[1] in mw.suggest_policy(source).text
    with pytest.raises(UsageError, match="--unit none"):  # every row has the same key
        mw.audit(source, ["age", "zip", "sex"], ["disease"])
    assert mw.audit(source, ["age", "zip", "sex"], ["disease"], unit="none").as_dict()["rows"] == 40


@pytest.mark.parametrize("answer", ["lost", "never sent", "server gone"])
def test_what_became_of_a_commit_whose_answer_was_lost(
    server: Server, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """The server is asked again: a message must not be surer than anybody can be."""
    import psycopg

    table = write_csv(tmp_path / "p.csv", patients())
    into = mw.Postgres(server.url(), f"{schema}.published")
    mw.anonymize(table, policy(), into=into)
    oid = server.run("SELECT %s::regclass::oid", f"{schema}.published")
    commit = psycopg.Connection.commit

    def broken(self: Any) -> None:
        if answer == "lost":
            commit(self)
        self.close()
        monkeypatch.setattr(psycopg.Connection, "commit", commit)
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    put = postgres_release.Pending.commit

    def breaking(self: Any) -> None:
        monkeypatch.setattr(psycopg.Connection, "commit", broken)
        put(self)

    def publish() -> None:
        monkeypatch.setattr(postgres_release.Pending, "commit", breaking)
        mw.anonymize(table, policy(), tmp_path / "r", into=into, overwrite=True)

    if answer == "server gone":
        monkeypatch.setattr(postgres_release, "PATIENCE", 0.0)
    if answer == "lost":
        publish()
        assert server.run("SELECT %s::regclass::oid", f"{schema}.published") != oid
        return
    with pytest.raises(DestinationError) as caught:
        publish()
    said = "has what it had before" if answer == "never sent" else "it is not known whether"
    assert said in str(caught.value)
    assert "the connection to the server was lost" in str(caught.value)
    assert f"{str(tmp_path / 'r')!r} is the new release all the same" in str(caught.value)
    assert server.run("SELECT %s::regclass::oid", f"{schema}.published") == oid


def test_a_lost_connection_is_one_clear_error(
    server: Server, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write_csv(tmp_path / "p.csv", patients())
    swap = postgres_release.Pending.swap

    def cut(self: Any) -> None:
        server.run("SELECT pg_terminate_backend(%s)", self._connection.info.backend_pid)
        swap(self)

    monkeypatch.setattr(postgres_release.Pending, "swap", cut)
    with pytest.raises(DestinationError, match="the connection to the server was lost"):
        mw.anonymize(table, policy(), tmp_path / "r", into=mw.Postgres(server.url(), f"{schema}.published"))
    assert not (tmp_path / "r").exists()
    assert not leftovers(tmp_path)
