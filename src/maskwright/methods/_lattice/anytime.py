"""Anytime search: lattices too large to be listed. The best node found, and how far from the optimum it can be.

*Upper end*: several greedy descents from the top (among them the steepest, which tries every step), then
improvement: a step up in one column and a new descent that may not undo it.
*Lower end*: cut the columns into disjoint parts, and search each part alone with all other columns at their top.
What must be lost at such a coarse node must be lost at every node below it; so the cost of a part, minimised over
its own small lattice, is a lower bound on what the part costs in any node, and the parts add up (or multiply).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

from maskwright.domain.exact import number_text
from maskwright.kernels.node_check import Check, Checks
from maskwright.methods._lattice.lattice import Lattice
from maskwright.methods._lattice.objectives import Bounds, Objective
from maskwright.methods._lattice.sweep import LatticeSearch, SearchResult, Stop, dive_spreads

PART_NODES = (200, 4_000, 20_000)  # parts are made of columns while their own lattice stays this small
STEPS_SHARE = 0.6  # of the time, for the descents


class Relaxed:
    """Checks that ask only for what every refinement must lose, and charge only for that."""

    def __init__(self, checks: Checks, limit: int) -> None:
        self.checks = checks
        self.kills = checks.kills
        self.limit = limit

    def check(self, places: tuple[int, ...]) -> Check:
        """Check a node by what all its refinements lose."""
        found = self.checks.check(places)
        return found._replace(feasible=found.lost <= self.limit, suppressed=found.lost, extra=found.excess)


class Anytime(LatticeSearch):
    """A search that stops in time. `project` makes the search over some columns alone."""

    def __init__(
        self, lattice: Lattice, bounds: Bounds, checks: Checks, limit: int, watch: Callable[[str, float], None],
        project: Callable[[frozenset[int]], LatticeSearch],
    ) -> None:  # fmt: skip
        super().__init__(lattice, bounds, checks, limit, watch)
        self.project = project
        self.lower = self._trivial()
        self._started = time.monotonic()
        self._stop = Stop()

    def run(self, stop: Stop) -> SearchResult:
        """Search until the gap is closed or it is time to stop."""
        self._stop = stop
        descend = self._until(STEPS_SHARE)
        for spread in dive_spreads(self.bounds, self.limit):
            for number in self.lattice.maximal:
                self.dive(number, spread, descend)
        parts = self._partitions()
        if not self._raise_bound(next(parts), stop):
            self.found.complete = True  # not even the columns of one part can be published
            return self.found
        for number in self.lattice.maximal:
            self._steepest(number, descend)
        self._improve(descend)
        for columns in parts:
            if stop.now(self.found) or self._closed():
                break
            self._raise_bound(columns, stop)
        self._improve(stop)
        if self.found.best is not None:
            self.found.suppressed = self.results[self.found.best].suppressed
        self.found.lower = self.lower
        self.found.complete = self._closed()
        return self.found

    def check(self, number: int) -> Check:
        """Check a node once, and tell the progress."""
        known = number in self.results
        result = super().check(number)
        if not known:
            self._tell(0.0)
        return result

    def _tell(self, share: float) -> None:
        """Progress is the share of the time; the text has both ends."""
        now = time.monotonic()
        if now - self._told < 0.2:
            return
        self._told = now
        best = "none yet" if self.found.best is None else number_text(self._score())
        at = self._stop.at
        share = 0.0 if at is None else min(1.0, (now - self._started) / max(1e-9, at - self._started))
        self.watch(
            f"{self.found.checked} nodes checked, best score {best}, proven at least {number_text(self.lower)}",
            share,
        )

    def _until(self, share: float) -> Stop:
        """A stop after a share of the time that is left."""
        if self._stop.at is None:
            return self._stop
        now = time.monotonic()
        return Stop(self._stop.checks, now + share * (self._stop.at - now))

    def _score(self) -> float:
        return float(self.bounds.objective.score(self.found.vector))

    def _closed(self) -> bool:
        """Is the best node proven to be optimal? (Equal scores may hide a lexicographically smaller node.)"""
        return False if self.found.best is None else self._score() <= self.lower

    def _steepest(self, number: int, stop: Stop) -> None:
        """Greedy descent that tries all steps and takes the best."""
        check = self.check(number)
        if not check.feasible:
            return
        here = self.bounds.vector(self.lattice.places_of(number), check)
        while not stop.now(self.found):
            best = None
            for step in self.lattice.steps(number, self.lattice.finer):
                found = self.check(step)
                if found.feasible:
                    vector = self.bounds.vector(self.lattice.places_of(step), found)
                    if self.bounds.objective.compare(vector, here) < 0:
                        best, here = step, vector
            if best is None:
                return
            number = best

    def _improve(self, stop: Stop) -> None:
        """From the best node: one step up, then down again another way, as long as that helps."""
        spreads = dive_spreads(self.bounds, self.limit)
        while self.found.best is not None:
            start = self.found.best
            for step in list(self.lattice.steps(start, self.lattice.coarser)):
                for spread in spreads:
                    if stop.now(self.found):
                        return
                    self.dive(step, spread, stop, {self._move(step, start)})
            if self.found.best == start:
                return

    def _partitions(self) -> Iterator[list[frozenset[int]]]:
        """Ways to cut the columns into parts: small parts first, then larger ones, largest columns together or not."""
        shape = self.lattice.shape
        by_size = sorted(range(len(shape)), key=lambda a: (-self.bounds.blocks[a][0], a))
        for nodes in PART_NODES:
            for order in (by_size, by_size[::2] + by_size[1::2]):
                cuts, product = [0], 1
                for i, a in enumerate(order):
                    if product > 1 and product * shape[a] > nodes:
                        cuts.append(i)
                        product = 1
                    product *= shape[a]
                yield [frozenset(order[i:j]) for i, j in pairwise([*cuts, len(order)])]

    def _raise_bound(self, parts: list[frozenset[int]], stop: Stop) -> bool:
        """Add up the parts. False: a part cannot be published at all, so nothing can."""
        objective = self.bounds.objective
        if objective.kind not in ("rows", "height"):
            return True
        scores = []
        for part in parts:
            search = self.project(part)
            for number in search.lattice.maximal:
                search.dive(number, None, stop)
            search.sweep(stop)
            found = search.found
            if found.best is None and found.complete:
                return False
            score = float(search.bounds.objective.score(found.vector)) if found.best is not None else math.inf
            least = score if found.complete or found.lower is None else min(score, found.lower)
            scores.append((search.bounds.objective, least if math.isfinite(least) else 0.0))
            self._tell(0.0)
        self.lower = max(self.lower, _joined(objective, scores))
        return True

    def _trivial(self) -> float:
        """What any node scores at least: that of the finest levels without any suppression."""
        finest = tuple(sizes.index(min(sizes)) for sizes in self.lattice.down_sets)
        if self.bounds.objective.kind in ("squares", "classes", "suppressed"):
            return float(self.bounds.objective.score(self.bounds.bound(finest, 0, ())))
        least = tuple(min(totals) for totals in self.bounds.objective.totals)
        return float(self.bounds.objective.score(least))


def _joined(objective: Objective, parts: list[tuple[Objective, float]]) -> float:
    """The score of all columns from the scores of disjoint parts, rounded down a little for the floats."""
    if objective.shape == "linear":
        offset = objective.offset / objective.divisors[0]
        total = math.fsum(score + offset for _, score in parts) - offset
    else:
        logs = math.fsum(sum(part.factors) * math.log1p(score) for part, score in parts)
        total = math.expm1(logs / max(1, sum(objective.factors)))
    return total - 1e-12 * (1 + abs(total))
