"""The load test of the workbench in brief: everybody is answered, and the server does not grow with them."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from benchmarks.bench_workbench import Load, measured

BRIEF = Load(connections=200, asks=2, users=6, requests=6, rows=20_000)


def test_everybody_is_answered() -> None:
    with ThreadPoolExecutor(1) as apart:  # a browser's tests may have left a loop of events in this thread
        begin, crowd, peace, busy, own = apart.submit(lambda: list(measured(BRIEF))).result()
    assert len(crowd.times) == BRIEF.connections // 2 * BRIEF.asks
    assert len(peace.times) == len(busy.times) == BRIEF.users * BRIEF.requests
    assert len(own.times) >= BRIEF.users
    for found in (crowd, peace, busy, own):
        assert found.bad == [], found.load
        assert found.quantile(0.95) < 20  # seconds, on a machine that is shared
        assert found.load in str(found)
        if sys.platform == "linux":  # where a process can be asked for its memory
            assert 0 < found.memory < begin.memory + 100
    assert sys.platform != "linux" or own.with_runs > own.memory - 50  # the runs are counted, too
