"""A table of a million rows: pages stay quick while a run is going on."""

from __future__ import annotations

import itertools
import statistics
import time
from pathlib import Path

import duckdb
import pytest

from tests.amounts import amount
from tests.browser.conftest import User

ROWS = 1_000_000
LOADS = amount(20, 60)
TARGET_MS = 300
# Time until the page was loaded and its scripts had run, as the browser measured it.
LOAD_TIME = "performance.getEntriesByType('navigation')[0].loadEventEnd"


@pytest.fixture
def million(tables: Path) -> None:
    query = f"""
        COPY (SELECT i AS id, 18 + i * 7919 % 70 AS age, 'FM'[1 + i % 2] AS sex, 10000 + i * 31 % 900 AS zip,
                     DATE '1950-01-01' + CAST(i * 17 % 20000 AS INTEGER) AS birth, i * 13 % 40 AS town,
                     i * 101 % 12 AS diagnosis, round(i * 37 % 90000 / 7, 2) AS income
              FROM range({ROWS}) t(i)) TO '{tables / "million.csv"}' (HEADER)
    """  # noqa: S608 - numbers and a path of our own
    with duckdb.connect() as connection:
        connection.execute(query)


def slowdown() -> float:
    """How many times longer computing takes than it should, because others use this machine; at least 1."""
    ratios = []
    for _ in range(20):
        wall, cpu = time.perf_counter(), time.process_time()
        while time.process_time() - cpu < 0.03:
            pass
        ratios.append((time.perf_counter() - wall) / (time.process_time() - cpu))
    return max(1.0, statistics.quantiles(ratios, n=20)[-1])


@pytest.mark.alone
def test_a_million_rows(user: User, million: None) -> None:
    """95 in 100 page loads take less than 300 ms while a run is going on.

    On a machine that is busy with other things the bound is stretched by as much as plain computing is slowed down
    before the run begins; the run itself must not slow the pages down, because it has a lower priority.
    """
    page = user.page
    page.reload()
    page.get_by_role("button", name="million.csv").click()
    page.wait_for_url("**/advice", timeout=180_000)
    project = user.project
    user.step("Requirements")
    page.get_by_label("k *").fill("5")
    user.remove("simple-l-diversity")
    user.save()

    def running() -> bool:
        return bool(user.server.api(f"/api/projects/{project}")["running"])

    stretch = slowdown()
    taken: list[float] = []
    paths = itertools.cycle(
        [
            "",
            "/register",
            *(
                f"/p/{project}/{p}"
                for p in ("columns", "columns/1", "requirements", "method", "run", "policy")
            ),
        ]
    )
    until = time.monotonic() + 240
    while len(taken) < LOADS and time.monotonic() < until:
        if not running():
            user.go(f"/p/{project}/run")
            page.get_by_role("button", name="Make the release").click()
            page.get_by_role("heading", name="Running").wait_for()
        user.go(next(paths))
        page.wait_for_function(f"{LOAD_TIME} > 0")
        if running():
            taken.append(float(page.evaluate(LOAD_TIME)))
    assert len(taken) == LOADS, "the runs end before the pages can be measured"
    taken.sort()
    p95 = taken[int(len(taken) * 0.95) - 1]
    print(
        f"page loads while a run goes on: median {statistics.median(taken):.0f} ms, 95 % below {p95:.0f} ms "
        f"(other work slows this machine down {stretch:.2f} times)"
    )
    assert p95 < TARGET_MS * stretch
