"""Possible worlds of any method: listed where they are few, drawn where they are many [Cormode et al. 2010].

A *judge* runs the method on a world and says for each block of groups whether it was published again. Then

    listed    every world of the block is looked at: exact.
    drawn     worlds at random, those are kept that the method publishes again: independent draws from the adversary's
              posterior. That is so for a randomised method, too: a world is kept exactly as often as the method, with
              its own randomness, publishes the same.
    walked    where hardly a world is kept: a Markov chain that starts from the real world and changes values inside
              groups.

How many are drawn depends on how many were kept and on the time, never on what they hold: kept ones are independent.

In a chain values are exchanged inside groups, and a change is accepted when the method still publishes the same
(Metropolis; proposals are symmetric: a few swaps, or some groups assigned anew). A randomised method is run several
times on each proposal, and the share in which it publishes the same stands for its likelihood: that is kept with the
state, so that the chain still has the right limit [Andrieu and Roberts 2009]. A chain proves nothing: it may not have
found all of the worlds that are left. Four of them, each cut in halves, must agree (split R-hat), and successive states
must tell enough new (effective sample size, by batch means); otherwise their result is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.runtime.time_budget import TimeBudget
from maskwright.worlds.sampling.possible_worlds import Ints, WorldSpace

Bools = NDArray[np.bool_]
Judge = Callable[[Ints], Bools]  # a world → per block: would the method publish it again?

Keep = Callable[[Ints, Bools], None]

RARE = 0.02  # below this share of kept worlds a chain is better, unless drawing will keep `ENOUGH_RARE` all the same
ENOUGH_RARE = 30  # of the kept worlds: they narrow a belief down, and are independent
ENOUGH = 2_000  # kept worlds: more would hardly narrow anything down
COLD = 0.02  # seconds for one world that are looked at twice
PILOT = 0.25  # the share of the budget after which that is decided
BESIDE = (
    300  # worlds of a block that are listed where there are several: the others are drawn at the same time
)
CELLS = 20_000_000  # units times items that are counted
Floats = NDArray[np.float64]
CHAINS = 4
BATCHES = 8  # per chain; when there are twice as many, neighbours are merged
RUNS = 5  # of a randomised method, for each likelihood
STARTS = 40  # tries to find the real world possible, for a randomised method
WATCHED = 100_000  # beliefs that are watched
R_HAT = 1.1  # beyond, the chains do not agree
EFFECTIVE = 50  # fewer independent draws than this tell too little


@dataclass(frozen=True)
class WorldBudget:
    """How long to look: worlds on which the method is run at most, and seconds of computing."""

    draws: int = 10_000
    seconds: float = 3.0

    def time(self, times: int = 1) -> TimeBudget:
        """The seconds, or several times as many, from now on."""
        return TimeBudget(times * self.seconds)


@dataclass(eq=False)
class Tally:
    """What was found, block by block.

    Attributes:
        looked: worlds on which the method was run, independently of each other, and
        kept: those in which it published the same.
        held: unit × item: people of the unit with the item, over all worlds that count (`worlds` of them).
        worlds: per block the worlds in `held`: kept ones, or steps of the chains.
        listed: blocks of which every world was looked at.
        walked: blocks whose `held` comes from chains.
        chains: what the chains say about themselves; None where there were none.
        reproduced: blocks that the method publishes again from the real values, as it must unless it is randomised.
        chance: did the method use its random numbers?
        runs, seconds: how often the method was run, and how long all took.
    """

    space: WorldSpace
    unit: Ints
    n_units: int
    looked: Ints
    kept: Ints
    held: Ints
    worlds: Ints
    listed: Bools
    walked: Bools
    reproduced: Bools
    chance: bool
    chains: MarkovChains | None = None
    runs: int = 0
    seconds: float = 0.0

    @property
    def sizes(self) -> Ints:
        """The people of each unit."""
        return np.bincount(self.unit, minlength=self.n_units).astype(np.int64)

    @property
    def block_of_unit(self) -> Ints:
        """The block in which each unit lies."""
        result = np.zeros(self.n_units, dtype=np.int64)
        result[self.unit] = self.space.block[self.space.group]
        return result

    def count(self, world: Ints, good: Bools) -> None:
        """Add one world to the blocks in question."""
        self.worlds[good] += 1
        n = self.space.n_items
        inside = slice(None) if good.all() else good[self.space.block[self.space.group]]
        key = self.unit[inside] * n + world[inside]
        self.held += np.bincount(key, minlength=self.n_units * n).reshape(self.n_units, n)

    def report(self) -> dict[str, Any]:
        """The extent of the search, for people."""
        found: dict[str, Any] = {"runs of the method": self.runs, "seconds": round(self.seconds, 2)}
        drawn = ~self.listed
        if self.listed.any():
            found["blocks of which every world was looked at"] = int(self.listed.sum())
        if drawn.any():
            found["worlds drawn"] = int(self.looked[drawn].max())
            found["worlds kept"] = int(self.kept[drawn].min())
        if self.chains is not None:
            found["chains"] = self.chains.report()
        return found


class _SamplingClock:
    """Counts the runs of a method, and the time."""

    def __init__(self, budget: WorldBudget) -> None:
        self.draws, self.time, self.runs = budget.draws, budget.time(), 0

    def used(self) -> float:
        """The share of the budget that is used up."""
        return max(self.runs / self.draws, self.time.spent / self.time.seconds)

    def left(self, share: float = 1.0) -> bool:
        """Whether less than this share of the budget is used up."""
        return self.used() < share


def explore_worlds(
    space: WorldSpace,
    unit: Ints,
    n_units: int,
    judge: Judge,
    budget: WorldBudget,
    rng: np.random.Generator,
    chance: Callable[[], bool],
    keep: Keep | None = None,
) -> Tally:
    """Explore the worlds of every block: list, draw or walk, whichever suits it.

    Args:
        space: the worlds.
        unit: per place, whom a belief is about: people whom the adversary cannot tell apart are one unit.
        n_units: how many there are.
        judge: runs the method.
        budget: how long.
        rng: draws the worlds.
        chance: has the method used random numbers so far? Then running it once on every world is not enough.
        keep: called with every world that is kept by listing or drawing, and in which blocks.
    """
    if n_units * space.n_items > CELLS:
        raise ValueError("too many people and values to be counted one by one")
    clock = _SamplingClock(budget)
    n = space.n_blocks
    real = space.items

    def _run(world: Ints) -> Bools:
        clock.runs += 1
        return judge(world)

    reproduced = _run(real)
    space.draw(rng, real)
    cost = max(clock.time.spent, 1e-6)
    random = chance()
    if cost > COLD and not random:  # the first run may have loaded modules: that is not what a world costs
        before = clock.time.spent
        _run(real)
        cost = max(min(cost, clock.time.spent - before), 1e-6)
    none = np.zeros(n, dtype=np.int64)
    tally = Tally(
        space, unit, n_units, none, none.copy(), np.zeros((n_units, space.n_items), dtype=np.int64), none.copy(),
        np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), reproduced, random,
    )  # fmt: skip
    most = budget.draws if n == 1 else min(budget.draws, BESIDE)
    limit = 0 if random else int(min(most, 0.5 * clock.time.seconds / cost))
    worlds = np.array([min(w, limit + 1) for w in space.worlds(limit)], dtype=np.int64)
    tally.listed = worlds <= limit
    _draw(tally, _run, worlds, clock, rng, keep)
    if chance() and not random:  # it does not look so on the real values, but elsewhere
        return explore_worlds(space, unit, n_units, judge, budget, rng, chance, keep)
    rare = ~tally.listed & (tally.kept < RARE * np.maximum(tally.looked, 1)) & (tally.kept < ENOUGH_RARE)
    if rare.any() and clock.left():
        _walk(tally, _run, rare, clock, rng)
    tally.runs, tally.seconds = clock.runs, clock.time.spent
    return tally


def _draw(
    tally: Tally,
    judge: Judge,
    worlds: Ints,
    clock: _SamplingClock,
    rng: np.random.Generator,
    keep: Keep | None,
) -> None:
    """List and draw: both at once, as long as some block needs it."""
    space = tally.space
    listing = space.listing(tally.listed, int(worlds.max(initial=0)))
    random_groups = ~tally.listed[space.block]
    world, number = space.items.copy(), 0
    while True:
        listing_on = number < listing.length
        rare = ~tally.listed & (tally.kept < RARE * np.maximum(tally.looked, 1))
        pilot_over = not clock.left(PILOT)
        # those of which too few will be kept are left to the chains, the others go on
        drawing = ~tally.listed & (tally.kept < ENOUGH)
        rare &= tally.kept < ENOUGH_RARE * clock.used()
        if pilot_over:
            drawing &= ~rare
        go_on = bool(drawing.any()) and clock.left(PILOT if rare.any() else 1.0)
        if not listing_on and not go_on:
            break
        if listing_on:
            listing.put(number, world)
        if random_groups.any():
            world = space.draw(rng, world, random_groups)
        good = judge(world)
        counted = np.where(tally.listed, number < worlds, go_on)
        tally.looked[counted] += 1
        good &= counted
        tally.kept[good] += 1
        tally.count(world, good)
        if keep is not None:
            keep(world, good)
        number += 1


def _walk(tally: Tally, judge: Judge, rare: Bools, clock: _SamplingClock, rng: np.random.Generator) -> None:
    """Chains for the blocks of which hardly a world is kept; what was drawn of them stays if the chains fail."""
    chains = MarkovChains(tally.space, tally.unit, tally.n_units, judge, rare, tally.chance, rng)
    chains.run(clock.left, clock.used)
    tally.chains = chains
    block = tally.block_of_unit
    good = chains.mixed & (chains.steps > 0)
    tally.walked = good
    replaced = good[block]
    tally.held[replaced] = chains.held()[replaced]
    tally.worlds[good] = chains.steps


class MarkovChains:
    """Four chains for some of the blocks, all blocks of a chain moving at once, each accepted by itself."""

    def __init__(
        self, space: WorldSpace, unit: Ints, n_units: int, judge: Callable[[Ints], Bools], blocks: Bools, chance: bool,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.space, self.unit, self.n_units, self.judge = space, unit, n_units, judge
        self.blocks, self.rng = np.flatnonzero(blocks), rng
        self.runs_each = RUNS if chance else 1
        block_of_place = space.block[space.group]
        self.places = np.flatnonzero(blocks[block_of_place])
        self.places = self.places[np.argsort(block_of_place[self.places], kind="stable")]
        self.start = np.searchsorted(block_of_place[self.places], self.blocks)
        self.length = np.append(self.start[1:], len(self.places)) - self.start
        self.cells = np.unique(self._keys(space.items, every=True))
        self.cell_of_key = np.zeros(n_units * space.n_items, dtype=np.int32)
        self.cell_of_key[self.cells] = np.arange(len(self.cells))
        self.sizes = np.bincount(unit, minlength=n_units)[self.cells // space.n_items].astype(np.float64)
        self.block_of_cell = np.zeros(len(self.cells), dtype=np.int64)
        of_unit = np.zeros(n_units, dtype=np.int64)
        of_unit[unit] = block_of_place
        self.block_of_cell = of_unit[self.cells // space.n_items]
        self.sums: list[list[Floats]] = [[] for _ in range(CHAINS)]
        self.squares: list[list[Floats]] = [[] for _ in range(CHAINS)]
        self.batch, self.accepted, self.proposed = 1, np.zeros(space.n_blocks), 0

    def _keys(self, world: Ints, every: bool = False) -> Ints:
        """The (unit, item) pairs that a world makes true; `every`: that any world may."""
        n, places = self.space.n_items, self.places
        if not every:
            return self.unit[places] * n + world[places]
        groups = np.unique(np.stack([self.unit[places], self.space.group[places]]), axis=1)
        held = np.unique(np.stack([self.space.group[places], self.space.items[places]]), axis=1)
        first = np.searchsorted(held[0], groups[1], side="left")
        many = np.searchsorted(held[0], groups[1], side="right") - first
        if int(many.sum()) > 4 * WATCHED:
            return np.zeros(0, dtype=np.int64)
        inside = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        return np.asarray(np.repeat(groups[0], many) * n + held[1][np.repeat(first, many) + inside])

    def run(self, go_on: Callable[[], bool], spent: Callable[[], float]) -> None:
        """Walk until the budget is used up; the first quarter is forgotten."""
        if not 0 < len(self.cells) <= WATCHED:
            return
        states = [self.space.items.copy() for _ in range(CHAINS)]
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
        found = np.zeros(self.space.n_blocks)
        for tries in range(1, STARTS + 1):
            found += self.judge(self.space.items)
            if self.runs_each == 1 or (tries >= RUNS and found[self.blocks].all()):
                break
        return np.asarray(found / tries)

    def _fill(self, states: list[Ints], chances: list[Floats], c: int) -> None:
        """One batch of one chain."""
        total, square = np.zeros(len(self.cells)), np.zeros(len(self.cells))
        for _ in range(self.batch):
            self._step(states, chances, c)
            where = self.cell_of_key[self._keys(states[c])]
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
        found = np.zeros(self.space.n_blocks)
        for _ in range(self.runs_each):
            found += self.judge(proposal)
        found /= self.runs_each
        accepted = (found > 0) & (self.rng.random(len(found)) * chances[c] < found)
        block = self.space.block[self.space.group[self.places]]
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
            groups = np.zeros(len(self.space.block), dtype=bool)
            groups[self.space.group[self._some_places()]] = True
            if how < 0.15:
                share = self.rng.random() ** 3
                groups |= (self.rng.random(len(groups)) < share) & np.isin(self.space.block, self.blocks)
            return self.space.draw(self.rng, world, groups)
        result = world.copy()
        lengths = np.array([part.stop - part.start for part in self.space.segments])
        starts = np.array([part.start for part in self.space.segments])
        for _ in range(int(2 ** self.rng.integers(0, 4))):
            one = self._some_places()
            group = self.space.group[one]
            other = starts[group] + (self.rng.random(len(one)) * lengths[group]).astype(np.int64)
            result[one], result[other] = result[other].copy(), result[one].copy()
        return result

    def _some_places(self) -> Ints:
        """One place of each block, at random."""
        return self.places[self.start + (self.rng.random(len(self.start)) * self.length).astype(np.int64)]

    @property
    def steps(self) -> int:
        """The number of steps of all chains that count."""
        return sum(self.batch * len(batches) for batches in self.sums)

    def held(self) -> Ints:
        """The number of people with each item, unit × item, over all steps."""
        total = np.zeros(self.n_units * self.space.n_items)
        for batches in self.sums:
            for one in batches:
                total[self.cells] += one * self.sizes
        return np.rint(total).astype(np.int64).reshape(self.n_units, self.space.n_items)

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
        """The effective sample size of each belief, from the variance of batch means over all chains."""
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
        """Whether the result may be used, per block."""
        result = np.zeros(self.space.n_blocks, dtype=bool)
        if self.steps and len(self.sums[0]) >= 2:
            result[self.blocks] = self.accepted[self.blocks] > 0
            bad = (self.r_hat() > R_HAT) | (self.effective() < EFFECTIVE)
            result[self.block_of_cell[bad]] = False
        return result

    def report(self) -> dict[str, Any]:
        """The diagnostics of the chains, for people."""
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
