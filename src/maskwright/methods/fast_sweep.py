"""Dive and sweep in the compiled kernel: the same search as `sweep.py`, without Python between two checks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.core.exact import show
from maskwright.kernels.compiled import CompiledChecker, kernel
from maskwright.methods.bounds import Bounds
from maskwright.methods.lattice import Lattice
from maskwright.methods.objectives import Objective
from maskwright.methods.sweep import Found, Stop, dives, sweep_order

KINDS = {"rows": 0, "height": 1, "squares": 2, "classes": 3, "suppressed": 4}
SLICE_S = 0.1  # how long the kernel runs before progress is told and cancellation asked
FOREVER = 2**62


class FastSearch:
    """One search over a lattice that is small enough to be listed."""

    def __init__(
        self, lattice: Lattice, bounds: Bounds, checker: CompiledChecker, watch: Callable[[str, float], None]
    ) -> None:
        self.lattice = lattice
        self.bounds = bounds
        self.objective = bounds.objective
        self.checker = checker
        self.watch = watch
        self.handle = kernel().search(
            checker.handle, KINDS[self.objective.kind], self.objective.shape == "product", _is_exact(self.objective),
            sweep_order(lattice), _flat(self.objective.totals, np.int64), _flat(bounds.blocks, np.float64),
            *_steps(lattice.coarser), *_steps(lattice.finer),
            np.array(self.objective.factors, dtype=np.float64), _divisors(self.objective), self.objective.compare,
        )  # fmt: skip

    def run(self, stop: Stop) -> Found:
        most = FOREVER if stop.checks is None else stop.checks
        state: Any = (-1, (), 0, 0, np.inf, 0)
        for spread in dives(self.bounds, self.checker.problem.limit):
            flat = None if spread is None else _flat(spread, np.float64)
            for number in self.lattice.maximal:
                state = kernel().dive(self.handle, number, flat, most)
        while state[3] < self.lattice.n_nodes:
            left = np.inf if stop.at is None else stop.at - time.monotonic()
            if state[2] >= most or left <= 0:
                state = kernel().sweep(self.handle, most, 0.0, True)
                break
            state = kernel().sweep(self.handle, most, min(SLICE_S, left), False)
            if state[3] < self.lattice.n_nodes:
                self._tell(state)
        return self._found(state)

    def _found(self, state: Any) -> Found:
        best, vector, checked, _, least_open, suppressed = state
        found = Found(None if best < 0 else best, vector, checked, not np.isfinite(least_open))
        if not found.complete:
            found.lower = self.objective.unscaled(self._root(least_open))
        if found.best is not None:
            found.suppressed = suppressed
            found.others = self._others(found.best)
        return found

    def _others(self, best: int) -> list[tuple[float, int]]:
        """The next best of the nodes that were checked."""
        scores = np.empty(self.lattice.n_nodes)
        kernel().scores(self.handle, scores)
        scores[best] = np.nan
        known = np.flatnonzero(~np.isnan(scores))
        few = known[np.argsort(scores[known], kind="stable")[:5]]
        return [(self._root(float(scores[n])), int(n)) for n in few]

    def _root(self, value: float) -> float:
        """The kernel multiplies; `Objective.approximate` takes the root."""
        if self.objective.shape == "linear" or not np.isfinite(value):
            return value
        return float(value ** (1 / max(1, sum(self.objective.factors))))

    def _tell(self, state: Any) -> None:
        best = "none yet" if state[0] < 0 else show(float(self.objective.score(state[1])))
        self.watch(f"{state[2]} nodes checked, best score {best}", state[3] / self.lattice.n_nodes)


def _is_exact(objective: Objective) -> bool:
    """Are the scores integers that a float holds exactly?"""
    if objective.shape == "product":
        return False
    largest = objective.rows**2
    if objective.kind == "rows":
        largest = sum(
            f * objective.rows * cap for f, cap in zip(objective.factors, objective.caps, strict=True)
        )
    elif objective.kind == "height":
        largest = sum(f * max(t) for f, t in zip(objective.factors, objective.totals, strict=True))
    return largest < 2**53


def _divisors(objective: Objective) -> NDArray[np.float64]:
    if objective.shape == "product":
        return np.array([d or 1 for d in objective.divisors], dtype=np.float64)
    return np.ones(max(len(objective.factors), 1))


def _flat(tables: Any, dtype: Any) -> NDArray[Any]:
    return np.array([x for table in tables for x in table], dtype=dtype)


@lru_cache(maxsize=64)
def _steps(
    directions: tuple[tuple[tuple[int, ...], ...], ...],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    places = [step for column in directions for step in column]
    starts = np.cumsum([0, *(len(step) for step in places)]).astype(np.int32)
    return starts, np.array([q for step in places for q in step], dtype=np.int32)
