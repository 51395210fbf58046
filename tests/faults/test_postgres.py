"""The same for releases in PostgreSQL, and what can go wrong with a server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.amounts import LONG, amount
from tests.faults.conftest import FINE, MOMENTS, Harness, moments, only
from tests.faults.outputs import DatabaseTarget, Place
from tests.postgres.conftest import Server, initialised

NETWORK = {"connection cut": 9, "backend terminated": 5, "server crashed": 2}
ALSO = ("Ctrl-C twice", "SIGHUP", "Ctrl-C at a step", "disk error at a step")


@dataclass(frozen=True)
class Crashing:
    """How the harness reaches a server, and how it stops it and starts it again."""

    settings: dict[str, Any]
    server: Server


@pytest.fixture
def crashing() -> Iterator[Crashing]:
    with initialised() as made:
        tool = [made.binaries / "pg_ctl", "-D", made.data, "-l", made.folder / "log", "-w", "-o",
                " ".join(f"'{option}'" if option else "''" for option in made.options)]  # fmt: skip
        subprocess.run([*tool, "start"], check=True, stdout=subprocess.DEVNULL, cwd=made.folder, **made.user)
        server = Server(made.port)
        server.run("CREATE SCHEMA published")
        try:
            yield Crashing(
                {"url": server.url(), "table": "published.people",
                 "server": {"tool": list(map(str, tool)), "user": made.user}}, server,
            )  # fmt: skip
        finally:
            subprocess.run([*tool, "stop", "-m", "immediate"], check=True, stdout=subprocess.DEVNULL,
                           cwd=made.folder, **made.user)  # fmt: skip


def nothing_beside(server: Server) -> None:
    """Staging tables of killed runs are gone."""
    [(number,)] = server.run("SELECT count(*) FROM pg_class WHERE relname LIKE 'maskwright%%'")
    assert number == 0


def test_a_table_of_a_database(harness: Harness, crashing: Crashing, tmp_path: Path) -> None:
    faults = {
        "killed": 3,
        "killed at a step": 5,
        "Ctrl-C": 3,
        "SIGTERM": 2,
        "disk full from a step on": 4,
        **NETWORK,
    }
    total = only(harness("postgres", moments(faults, also=ALSO), seed=9, **crashing.settings))
    least = amount(6, MOMENTS // 4)
    assert all(total[outcome] >= least for outcome in (FINE if LONG else ("old", "new"))), total
    nothing_beside(crashing.server)
    target = DatabaseTarget(Place(tmp_path, "postgres", crashing.settings["url"], crashing.settings["table"]))
    whole = target.state()
    crashing.server.run(
        "UPDATE published.people SET ward = '?' WHERE ctid = (SELECT min(ctid) FROM published.people)"
    )
    assert target.state() != whole, "a table that was changed in place is not the old one"
