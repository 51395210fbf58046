"""Markov chains over possible worlds, for methods that publish the same groups again only in very few of them.

From the real world on, values are exchanged inside groups, and a change is accepted when the method still publishes the
same (Metropolis; proposals are symmetric: a few swaps, or some groups dealt anew). A randomised method is run several
times on each proposal, and the share in which it publishes the same stands for its likelihood: that is kept with the
state, so that the chain still has the right limit [Andrieu and Roberts 2009].

A chain proves nothing: it may not have found all of the worlds that are left. Four of them, each cut in halves, must
agree (split R-hat), and successive states must tell enough new (effective sample size, by batch means); otherwise their
result is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.core.worlds.deals import Deals, Ints

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

CHAINS = 4
BATCHES = 8  # per chain; when there are twice as many, neighbours are merged
RUNS = 5  # of a randomised method, for each likelihood
STARTS = 40  # tries to find the real world possible, for a randomised method
CELLS = 100_000  # beliefs that are watched
R_HAT = 1.1  # beyond, the chains do not agree
EFFECTIVE = 50  # fewer independent draws than this tell too little


class Chains:
    """Four chains for some of the blocks, all blocks of a chain moving at once, each accepted by itself."""

    def __init__(
        self, deals: Deals, unit: Ints, n_units: int, judge: Callable[[Ints], Bools], blocks: Bools, chance: bool,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.deals, self.unit, self.n_units, self.judge = deals, unit, n_units, judge
        self.blocks, self.rng = np.flatnonzero(blocks), rng
        self.runs_each = RUNS if chance else 1
        block_of_place = deals.block[deals.group]
        self.places = np.flatnonzero(blocks[block_of_place])
        self.places = self.places[np.argsort(block_of_place[self.places], kind="stable")]
        self.start = np.searchsorted(block_of_place[self.places], self.blocks)
        self.length = np.append(self.start[1:], len(self.places)) - self.start
        self.cells = np.unique(self._keys(deals.items, every=True))
        self.sizes = np.bincount(unit, minlength=n_units)[self.cells // deals.n_items].astype(np.float64)
        self.block_of_cell = np.zeros(len(self.cells), dtype=np.int64)
        of_unit = np.zeros(n_units, dtype=np.int64)
        of_unit[unit] = block_of_place
        self.block_of_cell = of_unit[self.cells // deals.n_items]
        self.sums: list[list[Floats]] = [[] for _ in range(CHAINS)]
        self.squares: list[list[Floats]] = [[] for _ in range(CHAINS)]
        self.batch, self.accepted, self.proposed = 1, np.zeros(deals.n_blocks), 0

    def _keys(self, world: Ints, every: bool = False) -> Ints:
        """The (unit, item) pairs that a world makes true; `every`: that any world may."""
        n, places = self.deals.n_items, self.places
        if not every:
            return self.unit[places] * n + world[places]
        groups = np.unique(np.stack([self.unit[places], self.deals.group[places]]), axis=1)
        held = np.unique(np.stack([self.deals.group[places], self.deals.items[places]]), axis=1)
        first = np.searchsorted(held[0], groups[1], side="left")
        many = np.searchsorted(held[0], groups[1], side="right") - first
        if int(many.sum()) > 4 * CELLS:
            return np.zeros(0, dtype=np.int64)
        inside = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        return np.asarray(np.repeat(groups[0], many) * n + held[1][np.repeat(first, many) + inside])

    def run(self, go_on: Callable[[], bool], spent: Callable[[], float]) -> None:
        """Walk until the budget is used up; the first quarter is forgotten."""
        if not 0 < len(self.cells) <= CELLS:
            return
        states = [self.deals.items.copy() for _ in range(CHAINS)]
        likelihood = self._start()
        chances = [likelihood.copy() for _ in range(CHAINS)]
        began = spent()
        while go_on() and spent() < began + (1 - began) / 4:
            for c in range(CHAINS):
                self._step(states, chances, c)
        self.accepted[:], self.proposed = 0, 0
        while go_on():
            for c in range(CHAINS):
                self._fill(states, chances, c)
            if len(self.sums[0]) == 2 * BATCHES:
                self._merge()

    def _start(self) -> Floats:
        """How likely the method publishes each block again from the real values."""
        found = np.zeros(self.deals.n_blocks)
        for tries in range(1, STARTS + 1):
            found += self.judge(self.deals.items)
            if self.runs_each == 1 or (tries >= RUNS and found[self.blocks].all()):
                break
        return np.asarray(found / tries)

    def _fill(self, states: list[Ints], chances: list[Floats], c: int) -> None:
        """One batch of one chain."""
        total, square = np.zeros(len(self.cells)), np.zeros(len(self.cells))
        for _ in range(self.batch):
            self._step(states, chances, c)
            where = np.searchsorted(self.cells, self._keys(states[c]))
            share = np.bincount(where, minlength=len(self.cells)) / self.sizes
            total += share
            square += share * share
        self.sums[c].append(total)
        self.squares[c].append(square)

    def _merge(self) -> None:
        for lists in (self.sums, self.squares):
            for c in range(CHAINS):
                lists[c] = [a + b for a, b in zip(lists[c][::2], lists[c][1::2], strict=True)]
        self.batch *= 2

    def _step(self, states: list[Ints], chances: list[Floats], c: int) -> None:
        proposal = self._proposal(states[c])
        found = np.zeros(self.deals.n_blocks)
        for _ in range(self.runs_each):
            found += self.judge(proposal)
        found /= self.runs_each
        accepted = (found > 0) & (self.rng.random(len(found)) * chances[c] < found)
        block = self.deals.block[self.deals.group[self.places]]
        moved = np.bincount(block[proposal[self.places] != states[c][self.places]], minlength=len(found)) > 0
        self.accepted += accepted & moved
        self.proposed += 1
        chances[c] = np.where(accepted, found, chances[c])
        mine = self.places[accepted[block]]
        states[c][mine] = proposal[mine]

    def _proposal(self, world: Ints) -> Ints:
        """A few swaps in each block, or some groups dealt anew; either is as likely as its way back."""
        how = self.rng.random()
        if how < 0.5:
            groups = np.zeros(len(self.deals.block), dtype=bool)
            groups[self.deals.group[self._some_places()]] = True
            if how < 0.15:
                share = self.rng.random() ** 3
                groups |= (self.rng.random(len(groups)) < share) & np.isin(self.deals.block, self.blocks)
            return self.deals.draw(self.rng, world, groups)
        result = world.copy()
        lengths = np.array([part.stop - part.start for part in self.deals.segments])
        starts = np.array([part.start for part in self.deals.segments])
        for _ in range(int(2 ** self.rng.integers(0, 4))):
            one = self._some_places()
            group = self.deals.group[one]
            other = starts[group] + (self.rng.random(len(one)) * lengths[group]).astype(np.int64)
            result[one], result[other] = result[other].copy(), result[one].copy()
        return result

    def _some_places(self) -> Ints:
        """One place of each block, at random."""
        return self.places[self.start + (self.rng.random(len(self.start)) * self.length).astype(np.int64)]

    @property
    def steps(self) -> int:
        """Steps of all chains that count."""
        return sum(self.batch * len(batches) for batches in self.sums)

    def held(self) -> Ints:
        """Unit × item: people with the item, over all steps."""
        total = np.zeros(self.n_units * self.deals.n_items)
        for batches in self.sums:
            for one in batches:
                total[self.cells] += one * self.sizes
        return np.rint(total).astype(np.int64).reshape(self.n_units, self.deals.n_items)

    def r_hat(self) -> Floats:
        """Split R-hat of every belief [Gelman et al.]: how far half-chains differ, relative to how each varies."""
        half = len(self.sums[0]) // 2
        if not half:
            return np.full(len(self.cells), np.inf)
        n = half * self.batch
        means, variances = [], []
        for sums, squares in zip(self.sums, self.squares, strict=True):
            for part in (slice(0, half), slice(len(sums) - half, None)):
                mean = np.add.reduce(sums[part]) / n
                means.append(mean)
                variances.append((np.add.reduce(squares[part]) / n - mean * mean) * n / max(1, n - 1))
        within, between = np.mean(variances, axis=0), np.var(means, axis=0, ddof=1)
        within = np.where(within < 1e-12, 0.0, within)
        ratio = np.divide(between, within, out=np.where(between > 1e-12, np.inf, 0.0), where=within > 0)
        return np.asarray(np.sqrt((n - 1) / n + ratio))

    def effective(self) -> Floats:
        """How many independent draws each belief is worth, by the variance of batch means over all chains."""
        batches = [one / self.batch for chain in self.sums for one in chain]
        if len(batches) < 2:
            return np.zeros(len(self.cells))
        mean = np.mean(batches, axis=0)
        squares = sum(np.add.reduce(chain) for chain in self.squares) / self.steps
        variance, noise = squares - mean * mean, np.var(batches, axis=0, ddof=1) * self.batch
        varies = (variance > 1e-12) & (noise > 1e-15)
        worth = np.divide(variance * self.steps, noise, out=np.full(len(mean), np.inf), where=varies)
        # what never changed is worth no more than the least of what did, nor than there were changes
        least = min(float(worth.min(initial=np.inf)), float(self.accepted[self.blocks].min()))
        return np.minimum(np.where(varies, worth, least), self.steps)

    @property
    def mixed(self) -> Bools:
        """Per block: may the result be used?"""
        result = np.zeros(self.deals.n_blocks, dtype=bool)
        if self.steps and len(self.sums[0]) >= 2:
            result[self.blocks] = self.accepted[self.blocks] > 0
            bad = (self.r_hat() > R_HAT) | (self.effective() < EFFECTIVE)
            result[self.block_of_cell[bad]] = False
        return result

    def report(self) -> dict[str, Any]:
        """The diagnostics."""
        if not self.steps:
            return {"chains": CHAINS, "steps": 0, "agree": False}
        rate = self.accepted[self.blocks] / max(1, self.proposed)
        return {
            "chains": CHAINS,
            "steps": self.steps,
            "accepted": round(float(rate.min()), 4),
            "largest split R-hat": round(float(self.r_hat().max(initial=1)), 3),
            "least effective sample": int(self.effective().min()),
            "agree": bool(self.mixed[self.blocks].all()),
        }
