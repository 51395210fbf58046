"""How much is tested: some of every kind in `make test`, all of it in `make test-long` (see docs/testing.md).

MASKWRIGHT_TEST_LONG=1 means all; 0.1 a tenth of the repetitions of the long run.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from itertools import product
from typing import Any

import pytest

LONG = float(os.environ.get("MASKWRIGHT_TEST_LONG") or 0)


def amount(brief: int, long: int) -> int:
    """The number of repetitions: of random tables, inputs, or moments of a fault."""
    return max(brief, round(long * LONG)) if LONG else brief


def cases(every: Iterable[Any], brief: Collection[Any]) -> list[Any]:
    """All cases of a test, as values of a parameter; those that are not among the brief ones are marked `long`."""
    listed = list(every)
    assert all(case in listed for case in brief), "a brief case that there is not"
    values = [case if isinstance(case, tuple) else (case,) for case in listed]
    marks = [() if case in brief else pytest.mark.long for case in listed]
    return [pytest.param(*value, marks=mark) for value, mark in zip(values, marks, strict=True)]


def repeated(number: int) -> list[Any]:
    """The numbers of equal repetitions (seeds, blocks of seeds), as values of a parameter; a quarter are brief."""
    return cases(range(number), brief=range(-(-number // 4)))


def crossed(*lists: Iterable[Any]) -> list[Any]:
    """All combinations, as values of several parameters; the brief ones have each value of each list at least once."""
    listed = [list(values) for values in lists]
    longest = max(map(len, listed))
    return cases(product(*listed), brief=[tuple(v[i % len(v)] for v in listed) for i in range(longest)])


def first_of_each(every: Iterable[tuple[Any, ...]]) -> list[Any]:
    """All cases, as values of several parameters; brief is the first of each value of the first parameter."""
    listed = list(every)
    return cases(listed, brief=list({case[0]: case for case in reversed(listed)}.values()))


def hurry(patched: pytest.MonkeyPatch) -> None:
    """From now on attacks on possible worlds take a tenth of their seconds."""
    from maskwright.runtime.time_budget import TimeBudget
    from maskwright.worlds.sampling.world_sampler import WorldBudget

    def shortened(budget: WorldBudget, times: int = 1) -> TimeBudget:
        return TimeBudget(budget.seconds * times / 10)

    patched.setattr(WorldBudget, "time", shortened)
