"""Dive and sweep: the best node of a lattice, proven.

*Dive*: from the top, keep taking the most promising step down as long as the score improves; a few dives with
different notions of promising give a good incumbent after a few checks. *Sweep*: visit every node, coarser ones
first. A node inherits from the nodes above it what must be lost in any refinement; it is checked only if its bound
says that it could still win.

`Search` does it in Python for any model; `FastSearch` is the same search in the compiled kernel, without Python between
two checks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.exact import number_text
from maskwright.kernels.compiled import CompiledChecker, compiled_kernel
from maskwright.kernels.node_check import Check, Checks
from maskwright.methods._lattice.lattice import Lattice
from maskwright.methods._lattice.objectives import NEAR, Bounds, Objective, Spread, Vector
from maskwright.runtime.time_budget import TimeBudget

KINDS = {"rows": 0, "height": 1, "squares": 2, "classes": 3, "suppressed": 4}
SLICE_S = 0.1  # how long the kernel runs before progress is told and cancellation asked
FOREVER = 2**62


@dataclass(eq=False)
class SearchResult:
    """What a search knows: the best node so far, how many were checked, and what is proven.

    `complete`: the best node is optimal, or there is none. Otherwise `lower` is a score that no node can beat.
    """

    best: int | None = None
    vector: Vector = ()
    checked: int = 0
    complete: bool = False
    lower: float | None = None
    suppressed: int = 0
    others: list[tuple[float, int]] = field(default_factory=list)  # approximate score and number, if feasible
    curve: list[tuple[float, float, float]] = field(
        default_factory=list
    )  # seconds, best score, bound; if anytime


@dataclass(frozen=True)
class Stop:
    """When to give up: after so many checks, or when the time is over."""

    checks: int | None = None
    time: TimeBudget | None = None

    def now(self, found: SearchResult) -> bool:
        """Whether it is time to give up."""
        if self.checks is not None and found.checked >= self.checks:
            return True
        return self.time is not None and self.time.is_over


class LatticeSearch:
    """One search over a lattice that is small enough to be listed."""

    def __init__(
        self,
        lattice: Lattice,
        bounds: Bounds,
        checks: Checks,
        limit: int,
        watch: Callable[[str, float], None],
    ) -> None:
        self.lattice = lattice
        self.bounds = bounds
        self.checks = checks
        self.limit = limit
        # Where nothing may be suppressed, nodes that cannot win are checked too: most fail, and all below them
        self.kill = limit == 0 and checks.kills
        self.watch = watch
        self.found = SearchResult()
        self.results: dict[int, Check] = {}
        self._told = 0.0

    def run(self, stop: Stop) -> SearchResult:
        """Dive from every maximal node, then sweep."""
        for spread in dive_spreads(self.bounds, self.limit):
            for number in self.lattice.maximal:
                self.dive(number, spread, stop)
        self.sweep(stop)
        if self.found.best is not None:
            self.found.suppressed = self.results[self.found.best].suppressed
        return self.found

    def check(self, number: int) -> Check:
        """Check a node once, and remember it if it is the best."""
        if number in self.results:
            return self.results[number]
        places = self.lattice.places_of(number)
        check = self.checks.check(places)
        self.results[number] = check
        self.found.checked += 1
        if check.feasible:
            vector = self.bounds.vector(places, check)
            approximate = float(self.bounds.objective.approximate(np.array([vector], dtype=np.float64))[0])
            self.found.others.append((approximate, number))
            if self._wins(vector, number):
                self.found.best, self.found.vector = number, vector
        return check

    def _wins(self, vector: Vector, number: int) -> bool:
        """Is a node with this vector better than the best, or as good and lexicographically smaller?"""
        best = self.found.best
        if best is None:
            return True
        order = self.bounds.objective.compare(vector, self.found.vector)
        return order < 0 or (order == 0 and number < best)

    def dive(
        self, number: int, spread: Spread | None, stop: Stop, refused: set[tuple[int, int]] | None = None
    ) -> None:
        """Greedy descent: always the step that promises the most and does improve the score."""
        check = self.check(number)
        if not check.feasible:
            return
        here = self.bounds.vector(self.lattice.places_of(number), check)
        refused = set() if refused is None else refused
        while True:
            for step in self._steps_down(number, check, spread, here, refused):
                if stop.now(self.found):
                    return
                found = self.check(step)
                vector = self.bounds.vector(self.lattice.places_of(step), found) if found.feasible else None
                if vector is not None and self.bounds.objective.compare(vector, here) < 0:
                    number, check, here = step, found, vector
                    break
                refused.add(self._move(number, step))
            else:
                return

    def _move(self, number: int, step: int) -> tuple[int, int]:
        """The attribute and place that a step leads to: what failed once is not tried again further down."""
        pairs = zip(self.lattice.places_of(number), self.lattice.places_of(step), strict=True)
        return next((a, q) for a, (p, q) in enumerate(pairs) if p != q)

    def _steps_down(
        self, number: int, check: Check, spread: Spread | None, here: Vector, refused: set[tuple[int, int]]
    ) -> list[int]:
        """Steps that may improve the score: by their gain, or their gain per growth of `spread`."""
        steps = [
            s for s in self.lattice.steps(number, self.lattice.finer) if self._move(number, s) not in refused
        ]
        if not steps:
            return []
        places = np.array([self.lattice.places_of(s) for s in steps], dtype=np.int64).T
        lost = np.full(len(steps), check.lost, dtype=np.int64)
        excess = np.tile(np.array(check.excess, dtype=np.int64), (len(steps), 1))
        now = float(self.bounds.objective.approximate(np.array([here], dtype=np.float64))[0])
        gains = now - self.bounds.approximate(places, lost, excess)
        if spread is not None:
            moves = [self._move(number, s) for s in steps]
            at = self.lattice.places_of(number)
            growth = np.array([spread[a][q] - spread[a][at[a]] for a, q in moves])
            gains = gains / np.maximum(1e-9, growth)
        return [steps[i] for i in np.argsort(-gains, kind="stable") if gains[i] > 0]

    def sweep(self, stop: Stop) -> None:
        """Visit all nodes, coarser ones first, in batches of equally many refinements."""
        lattice = self.lattice
        numbers = np.arange(lattice.n_nodes, dtype=np.int64)
        places = lattice.level_indices(numbers)
        above = _above(lattice, places, numbers)
        lost = np.zeros(lattice.n_nodes + 1, dtype=np.int64)  # the last entry stands for "no node"
        excess = np.zeros((lattice.n_nodes + 1, self.bounds.width), dtype=np.int64)
        least_open = np.inf
        batches = _batches(lattice, places)
        for i, batch in enumerate(batches):
            lost[batch] = lost[above[batch]].max(axis=1)
            excess[batch] = excess[above[batch]].max(axis=1)
            scores = self.bounds.approximate(places[:, batch], lost[batch], excess[batch])
            open_nodes = lost[batch] <= self.limit
            for j in np.flatnonzero(open_nodes & (self.kill | (scores <= self._threshold()))):
                number = int(batch[j])
                wins = self._promising(number, int(lost[number]), tuple(excess[number].tolist()))
                if number in self.results or not (wins or self.kill):
                    continue
                if not stop.now(self.found):
                    self.check(number)
                elif wins:
                    least_open = min(least_open, float(scores[j]))
            for number in batch[[int(n) in self.results for n in batch]]:
                check = self.results[int(number)]
                lost[number] = max(lost[number], check.lost)
                excess[number] = np.maximum(excess[number], check.excess)
            self._tell((i + 1) / len(batches))
        self.found.complete = not np.isfinite(least_open)
        if not self.found.complete:
            self.found.lower = self.bounds.objective.unscaled(least_open)

    def _threshold(self) -> float:
        """Bounds above this float certainly lose."""
        if self.found.best is None:
            return np.inf
        best = float(self.bounds.objective.approximate(np.array([self.found.vector], dtype=np.float64))[0])
        return best + abs(best) * NEAR

    def _promising(self, number: int, lost: int, excess: tuple[int, ...]) -> bool:
        return self._wins(self.bounds.bound(self.lattice.places_of(number), lost, excess), number)

    def _tell(self, share: float) -> None:
        now = time.monotonic()
        if now - self._told < 0.2:
            return
        self._told = now
        best = "none yet"
        if self.found.best is not None:
            best = number_text(float(self.bounds.objective.score(self.found.vector)))
        self.watch(f"{self.found.checked} nodes checked, best score {best}", share)


def dive_spreads(bounds: Bounds, limit: int) -> list[Spread | None]:
    """The dives to make, by the spread that steps are weighed with. Where nothing may be suppressed, rare values
    are as bad as frequent ones, so that the number of blocks matters most; otherwise, what a step gains."""
    by_blocks: Spread = [[math.log(max(1, n)) for n in blocks] for blocks in bounds.blocks]
    return [by_blocks] if limit == 0 else [None, by_blocks, bounds.entropies]


def _above(lattice: Lattice, places: NDArray[np.int64], numbers: Ints) -> Ints:
    """The immediate coarsenings of every node, padded with the number after the last."""
    columns = []
    for a, stride in enumerate(lattice.strides):
        width = max(len(up) for up in lattice.coarser[a])
        for slot in range(width):
            target = np.array(
                [up[slot] if slot < len(up) else -1 for up in lattice.coarser[a]], dtype=np.int64
            )
            to = target[places[a]]
            columns.append(np.where(to < 0, lattice.n_nodes, numbers + (to - places[a]) * stride))
    if not columns:
        return np.full((lattice.n_nodes, 1), lattice.n_nodes, dtype=np.int64)
    return np.stack(columns, axis=1)


def sweep_order(lattice: Lattice) -> NDArray[np.int32]:
    """All nodes, coarser ones first: those with the most refinements, then by number."""
    return _order(lattice.down_sets)


@lru_cache(maxsize=16)
def _order(down_sets: tuple[tuple[int, ...], ...]) -> NDArray[np.int32]:
    down = np.ones(1, dtype=np.float64)
    for sizes in down_sets:
        down = np.multiply.outer(down, np.array(sizes, dtype=np.float64)).reshape(-1)
    return np.argsort(-down, kind="stable").astype(np.int32)


def _batches(lattice: Lattice, places: NDArray[np.int64]) -> list[Ints]:
    """The nodes in the order of the sweep, in runs of equally many refinements."""
    order = sweep_order(lattice).astype(np.int64)
    down = np.ones(lattice.n_nodes, dtype=np.float64)
    for a, place in enumerate(places):
        down *= np.array(lattice.down_sets[a], dtype=np.float64)[place]
    cuts = np.flatnonzero(np.diff(down[order])) + 1
    return np.split(order, cuts)


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
        self.handle = compiled_kernel().search(
            checker.handle, KINDS[self.objective.kind], self.objective.shape == "product", _is_exact(self.objective),
            sweep_order(lattice), _flat(self.objective.totals, np.int64), _flat(bounds.blocks, np.float64),
            *_steps(lattice.coarser), *_steps(lattice.finer),
            np.array(self.objective.factors, dtype=np.float64), _divisors(self.objective), self.objective.compare,
        )  # fmt: skip

    def run(self, stop: Stop) -> SearchResult:
        """Dive from every maximal node, then sweep in slices of time."""
        most = FOREVER if stop.checks is None else stop.checks
        state: Any = (-1, (), 0, 0, np.inf, 0)
        for spread in dive_spreads(self.bounds, self.checker.problem.limit):
            flat = None if spread is None else _flat(spread, np.float64)
            for number in self.lattice.maximal:
                state = compiled_kernel().dive(self.handle, number, flat, most)
        while state[3] < self.lattice.n_nodes:
            left = np.inf if stop.time is None else stop.time.left
            if state[2] >= most or left <= 0:
                state = compiled_kernel().sweep(self.handle, most, 0.0, True)
                break
            state = compiled_kernel().sweep(self.handle, most, min(SLICE_S, left), False)
            if state[3] < self.lattice.n_nodes:
                self._tell(state)
        return self._found(state)

    def _found(self, state: Any) -> SearchResult:
        best, vector, checked, _, least_open, suppressed = state
        found = SearchResult(None if best < 0 else best, vector, checked, not np.isfinite(least_open))
        if not found.complete:
            found.lower = self.objective.unscaled(self._root(least_open))
        if found.best is not None:
            found.suppressed = suppressed
            found.others = self._others(found.best)
        return found

    def _others(self, best: int) -> list[tuple[float, int]]:
        """The next best of the nodes that were checked."""
        scores = np.empty(self.lattice.n_nodes)
        compiled_kernel().scores(self.handle, scores)
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
        best = "none yet" if state[0] < 0 else number_text(float(self.objective.score(state[1])))
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
