"""The anytime search, for lattices too large to be listed: it improves both ends until they meet or the time is over.

*Upper end*: several greedy descents from the top (among them the steepest, which tries every step), then improvement: a
step up in one column and a new descent that may not undo it; then restarts, a few random steps up and down again.
*Lower end*: cut the columns into disjoint parts, and search each part alone with all other columns at their top.
What must be lost at such a coarse node must be lost at every node below it; so the cost of a part, minimised over
its own small lattice, is a lower bound on what the part costs in any node, and the parts add up (or multiply).
Then `NodeFrontier` decides the columns one after another.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from maskwright.domain.exact import number_text
from maskwright.kernels.node_check import Check, Checks
from maskwright.methods._lattice.frontier import NodeFrontier, term_of
from maskwright.methods._lattice.lattice import Lattice
from maskwright.methods._lattice.objectives import Bounds
from maskwright.methods._lattice.sweep import LatticeSearch, SearchResult, Stop, dive_spreads
from maskwright.runtime.time_budget import TimeBudget

PART_NODES = (
    200,
    4_000,
    20_000,
    200_000,
)  # parts are made of columns while their own lattice stays this small
STEPS_SHARE = 0.6  # of the time, for the first descents and improvements at most
TURN_S = 0.5  # the two ends take turns of so many seconds
IDLE = 200  # restarts in a row that meet no new node end a turn


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
    """A search that stops in time. `project` makes the search over some columns alone; of all, with their tops."""

    def __init__(
        self, lattice: Lattice, bounds: Bounds, checks: Checks, limit: int, watch: Callable[[str, float], None],
        project: Callable[[frozenset[int] | None], LatticeSearch],
    ) -> None:  # fmt: skip
        super().__init__(lattice, bounds, checks, limit, watch)
        self.project = project
        self._parts: list[tuple[int, ...]] = []
        self._costs: dict[frozenset[int], float] = {}
        self.lower = self._trivial()
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
        self._take_turns(stop)
        if self.found.best is not None:
            self.found.suppressed = self.results[self.found.best].suppressed
        self._note()
        self.found.lower = self.lower
        self.found.complete = self.found.complete or self._closed()
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
        self._note()
        best = "none yet" if self.found.best is None else number_text(self._score())
        budget = self._stop.time
        share = 0.0 if budget is None else min(1.0, budget.spent / max(1e-9, budget.seconds))
        self.watch(
            f"{self.found.checked} nodes checked, best score {best}, proven at least {number_text(self.lower)}",
            share,
        )

    def _note(self) -> None:
        """Add to the curve, where an end has moved."""
        if self.found.best is None or self._stop.time is None:
            return
        point = (self._stop.time.spent, self._score(), min(self.lower, self._score()))
        if not self.found.curve or self.found.curve[-1][1:] != point[1:]:
            self.found.curve.append(point)

    def _until(self, share: float) -> Stop:
        """A stop after a share of the time that is left."""
        if self._stop.time is None:
            return self._stop
        return Stop(self._stop.checks, TimeBudget(share * self._stop.time.left, time.monotonic))

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

    def _partitions(self) -> Iterator[list[tuple[int, ...]]]:
        """Ways to cut the columns into parts: small parts first, then larger ones, largest columns together or not."""
        shape = self.lattice.shape
        by_size = sorted(range(len(shape)), key=lambda a: (-self.bounds.blocks[a][0], a))
        for nodes in PART_NODES if self._stop.time is not None else PART_NODES[:-1]:
            for order in (by_size, by_size[::2] + by_size[1::2]):
                cuts, product = [0], 1
                for i, a in enumerate(order):
                    if product > 1 and product * shape[a] > nodes:
                        cuts.append(i)
                        product = 1
                    product *= shape[a]
                yield [tuple(order[i:j]) for i, j in pairwise([*cuts, len(order)])]

    def _raise_bound(self, parts: list[tuple[int, ...]], stop: Stop) -> bool:
        """Add up the parts. False: a part cannot be published at all, so nothing can."""
        if self.bounds.objective.kind not in ("rows", "height"):
            return True
        costs = [self._part_cost(frozenset(part), stop) for part in parts]
        if None in costs:
            return False
        score = self._least_score(math.fsum(cost or 0.0 for cost in costs))
        if score > self.lower or not self._parts:
            self._parts = parts
        self.lower = max(self.lower, score)
        return True

    def _part_cost(self, part: frozenset[int], stop: Stop) -> float | None:
        """What these columns cost at least, alone or with others; None: they cannot be published."""
        if part not in self._costs:
            search = self.project(part)
            for number in search.lattice.maximal:
                search.dive(number, None, stop)
            search.sweep(stop)
            found, objective = search.found, search.bounds.objective
            if found.best is None and found.complete:
                return None
            score = float(objective.score(found.vector)) if found.best is not None else math.inf
            least = score if found.complete or found.lower is None else min(score, found.lower)
            if not math.isfinite(least):
                return 0.0
            if objective.shape == "linear":
                cost = least + objective.offset / objective.divisors[0]
            else:
                cost = sum(objective.factors) * math.log1p(least)
            self._costs[part] = cost
            self._tell(0.0)
        return self._costs[part]

    def _least_score(self, cost: float) -> float:
        """The score of a node that costs so much, rounded down a little for the floats."""
        objective = self.bounds.objective
        if objective.shape == "linear":
            score = cost - objective.offset / objective.divisors[0]
        else:
            score = math.expm1(cost / max(1, sum(objective.factors)))
        return score - 1e-12 * (1 + abs(score))

    def _frontier(self, stop: Stop) -> NodeFrontier | None:
        """The columns in the order of the best parts, and what the last of them cost alone."""
        if self.bounds.objective.kind not in ("rows", "height"):
            return None
        rest, order = [0.0], list[int]()
        for part in reversed(self._parts):
            later = rest[0]
            for i in reversed(range(len(part))):
                alone = 0.0 if stop.now(self.found) else self._part_cost(frozenset(part[i:]), stop)
                rest.insert(0, later + (alone or 0.0))
            order = [*part, *order]
        return NodeFrontier(self.project(None), order, rest, self.lattice)

    def _take_turns(self, stop: Stop) -> None:
        """Raise the bound and look for better nodes, until they meet, nothing is new or it is time to stop.

        A search whose work is counted, so that it is the same everywhere, takes no turns: the clock divides them.
        """
        if stop.time is None or stop.now(self.found) or self._closed():
            return
        frontier, idle = self._frontier(stop), 0
        rng = np.random.default_rng(0)
        while not stop.now(self.found) and (frontier is not None or idle < IDLE):
            turn = Stop(stop.checks, TimeBudget(TURN_S, time.monotonic))
            while frontier is not None and not (turn.now(self.found) or stop.now(self.found)):
                least = self._least_score(frontier.least) if frontier.least < math.inf else math.inf
                if self.found.best is None and least == math.inf:
                    self.found.complete = True
                    return
                self.lower = max(self.lower, least if self.found.best is None else min(least, self._score()))
                if self._closed():
                    return
                self._go_on(frontier)
                self._tell(0.0)
            turn = Stop(stop.checks, TimeBudget(TURN_S, time.monotonic))
            idle = idle if frontier is None else 0
            while idle < IDLE and not (turn.now(self.found) or stop.now(self.found)):
                known = self.found.checked
                if self.found.best is not None:
                    self._restart(rng, stop)
                idle = 0 if self.found.checked > known else idle + 1

    def _go_on(self, frontier: NodeFrontier) -> None:
        """Take the frontier one step further; a node at its end is checked for itself."""
        if self.found.best is not None:
            terms = (term_of(self.bounds.objective, c, v) for c, v in enumerate(self.found.vector))
            frontier.most = math.fsum(terms) * (1 + 1e-9) + 1e-9
        node = frontier.take()
        if node is not None:
            self.check(self.lattice.number(node))

    def _restart(self, rng: np.random.Generator, stop: Stop) -> None:
        """A few random steps up from the best node, and down again by a random spread."""
        number = self.found.best
        assert number is not None  # noqa: S101 - for the type checker
        for _ in range(int(rng.integers(1, 6))):
            steps = list(self.lattice.steps(number, self.lattice.coarser))
            if not steps:
                break
            number = steps[int(rng.integers(len(steps)))]
        spreads = dive_spreads(self.bounds, self.limit)
        chosen = spreads[int(rng.integers(len(spreads)))]
        self.dive(number, chosen, stop, set())

    def _trivial(self) -> float:
        """What any node scores at least: that of the finest levels without any suppression."""
        finest = tuple(sizes.index(min(sizes)) for sizes in self.lattice.down_sets)
        if self.bounds.objective.kind in ("squares", "classes", "suppressed"):
            return float(self.bounds.objective.score(self.bounds.bound(finest, 0, ())))
        least = tuple(min(totals) for totals in self.bounds.objective.totals)
        return float(self.bounds.objective.score(least))
