"""Possible worlds of any method: listed where they are few, drawn where they are many [Cormode et al. 2010].

A *judge* runs the method on a world and says for each block of groups whether it was published again. Then

    listed    every world of the block is looked at: exact.
    drawn     worlds at random, those are kept that the method publishes again: independent draws from the adversary's
              posterior. That is so for a randomised method, too: a world is kept exactly as often as the method, with
              its own randomness, publishes the same.
    walked    where hardly a world is kept: a Markov chain that starts from the real world and changes values inside
              groups, see `chains`.

How many are drawn depends on how many were kept and on the time, never on what they hold: kept ones are independent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.core.worlds.chains import Chains
from maskwright.core.worlds.deals import Deals, Ints

Bools = NDArray[np.bool_]
Judge = Callable[[Ints], Bools]  # a world → per block: would the method publish it again?

Keep = Callable[[Ints, Bools], None]

RARE = 0.02  # below this share of kept worlds a chain is better
ENOUGH = 2_000  # kept worlds: more would hardly narrow anything down
COLD = 0.02  # seconds for one world that are looked at twice
PILOT = 0.25  # the share of the budget after which that is decided
BESIDE = (
    300  # worlds of a block that are listed where there are several: the others are drawn at the same time
)
CELLS = 20_000_000  # units times items that are counted


@dataclass(frozen=True)
class Budget:
    """How long to look: worlds on which the method is run at most, and seconds of computing."""

    draws: int = 10_000
    seconds: float = 3.0


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

    deals: Deals
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
    chains: Chains | None = None
    runs: int = 0
    seconds: float = 0.0

    @property
    def sizes(self) -> Ints:
        return np.bincount(self.unit, minlength=self.n_units).astype(np.int64)

    @property
    def block_of_unit(self) -> Ints:
        result = np.zeros(self.n_units, dtype=np.int64)
        result[self.unit] = self.deals.block[self.deals.group]
        return result

    def count(self, world: Ints, good: Bools) -> None:
        """Add one world to the blocks in question."""
        self.worlds[good] += 1
        n = self.deals.n_items
        inside = slice(None) if good.all() else good[self.deals.block[self.deals.group]]
        key = self.unit[inside] * n + world[inside]
        self.held += np.bincount(key, minlength=self.n_units * n).reshape(self.n_units, n)

    def report(self) -> dict[str, Any]:
        """How far it got, for people."""
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


@dataclass
class _Clock:
    """Counts seconds of computing, not of waiting: what is found must not depend on what else the machine does."""

    budget: Budget
    started: float = field(default_factory=time.thread_time)
    runs: int = 0

    @property
    def spent(self) -> float:
        return time.thread_time() - self.started

    def used(self) -> float:
        """The share of the budget that is used up."""
        return max(self.runs / self.budget.draws, self.spent / self.budget.seconds)

    def left(self, share: float = 1.0) -> bool:
        return self.used() < share


def explore(
    deals: Deals,
    unit: Ints,
    n_units: int,
    judge: Judge,
    budget: Budget,
    rng: np.random.Generator,
    chance: Callable[[], bool],
    keep: Keep | None = None,
) -> Tally:
    """Look at the worlds of every block, the way that suits it.

    Args:
        deals: the worlds.
        unit: per place, whom a belief is about: people whom the adversary cannot tell apart are one unit.
        n_units: how many there are.
        judge: runs the method.
        budget: how long.
        rng: draws the worlds.
        keep: told every world that is kept by listing or drawing, and in which blocks.
        chance: has the method used random numbers so far? Then running it once on every world is not enough.
    """
    if n_units * deals.n_items > CELLS:
        raise ValueError("too many people and values to be counted one by one")
    clock = _Clock(budget)
    n = deals.n_blocks
    real = deals.items

    def run(world: Ints) -> Bools:
        clock.runs += 1
        return judge(world)

    reproduced = run(real)
    deals.draw(rng, real)
    cost = max(clock.spent, 1e-6)
    random = chance()
    if cost > COLD and not random:  # the first run may have loaded modules: that is not what a world costs
        before = clock.spent
        run(real)
        cost = max(min(cost, clock.spent - before), 1e-6)
    none = np.zeros(n, dtype=np.int64)
    tally = Tally(
        deals, unit, n_units, none, none.copy(), np.zeros((n_units, deals.n_items), dtype=np.int64), none.copy(),
        np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), reproduced, random,
    )  # fmt: skip
    most = budget.draws if n == 1 else min(budget.draws, BESIDE)
    limit = 0 if random else int(min(most, 0.5 * budget.seconds / cost))
    worlds = np.array([min(w, limit + 1) for w in deals.worlds(limit)], dtype=np.int64)
    tally.listed = worlds <= limit
    _draw(tally, run, worlds, clock, rng, keep)
    if chance() and not random:  # it does not look so on the real values, but elsewhere
        return explore(deals, unit, n_units, judge, budget, rng, chance, keep)
    rare = ~tally.listed & (tally.kept < RARE * np.maximum(tally.looked, 1))
    if rare.any() and clock.left():
        _walk(tally, run, rare, clock, rng)
    tally.runs, tally.seconds = clock.runs, clock.spent
    return tally


def _draw(
    tally: Tally, judge: Judge, worlds: Ints, clock: _Clock, rng: np.random.Generator, keep: Keep | None
) -> None:
    """List and draw: both at once, as long as some block needs it."""
    deals = tally.deals
    listing = deals.listing(tally.listed, int(worlds.max(initial=0)))
    random_groups = ~tally.listed[deals.block]
    world, number = deals.items.copy(), 0
    while True:
        listing_on = number < listing.length
        rare = ~tally.listed & (tally.kept < RARE * np.maximum(tally.looked, 1))
        pilot_over = not clock.left(PILOT)
        # those that are seldom kept are left to the chains, the others go on
        drawing = ~tally.listed & (tally.kept < ENOUGH)
        if pilot_over:
            drawing &= ~rare
        go_on = bool(drawing.any()) and clock.left(PILOT if rare.any() else 1.0)
        if not listing_on and not go_on:
            break
        if listing_on:
            listing.put(number, world)
        if random_groups.any():
            world = deals.draw(rng, world, random_groups)
        good = judge(world)
        counted = np.where(tally.listed, number < worlds, go_on)
        tally.looked[counted] += 1
        good &= counted
        tally.kept[good] += 1
        tally.count(world, good)
        if keep is not None:
            keep(world, good)
        number += 1


def _walk(tally: Tally, judge: Judge, rare: Bools, clock: _Clock, rng: np.random.Generator) -> None:
    """Chains for the blocks of which hardly a world is kept; what was drawn of them stays if the chains fail."""
    chains = Chains(tally.deals, tally.unit, tally.n_units, judge, rare, tally.chance, rng)
    chains.run(clock.left, clock.used)
    tally.chains = chains
    block = tally.block_of_unit
    good = chains.mixed & (chains.steps > 0)
    tally.walked = good
    replaced = good[block]
    tally.held[replaced] = chains.held()[replaced]
    tally.worlds[good] = chains.steps
