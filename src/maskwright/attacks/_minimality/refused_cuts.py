"""Even-split methods under any requirement: a group was published undivided because a part of it violates.

Only the group's own refused cut tells anything, so that every group is a story of its own. Which part somebody is in is
taken to be known: exact for people whose place in the order follows from their quasi-identifiers, and the most that is
believed where several people share them. (With one set of values that decides, `partitions` counts in closed form.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maskwright.attacks._minimality.partitions import even_sizes, fewest_of_part, ways_of
from maskwright.attacks._minimality.refusals import looked_at_values
from maskwright.attacks._minimality.replay import Replayed
from maskwright.attacks._minimality.world_tables import Places
from maskwright.domain.adversary import Target
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.promise.lemmas.even_splits import EVEN_SPLIT
from maskwright.worlds.sampling.possible_worlds import WorldSpace
from maskwright.worlds.sampling.world_sampler import Bools, WorldBudget, explore_worlds


def cuts_evenly(target: Target) -> bool:
    """Whether the method cuts groups evenly, once each, by models that look at one part at a time."""
    method = target.method
    if method is None or method.options().get("anatomize"):
        return False
    even = method.decisions().lemma is EVEN_SPLIT
    return even and all(m.is_local() and not m.needs() for m in target.models if m.use == "search")


def cut_worlds(target: Target, budget: WorldBudget) -> Replayed:
    """The worlds of each group in which its cut is refused."""
    places, ways = Places.of(target), ways_of(target)
    search, context = [m for m in target.models if m.use == "search"], target.context
    number = np.searchsorted(places.groups, places.group)
    n_groups = len(places.groups)
    sizes = np.bincount(number, minlength=n_groups)
    cut = sizes // ways >= fewest_of_part(target)
    part = np.concatenate([
        np.repeat(np.arange(ways), even_sizes(int(n), ways)) if tried else np.zeros(int(n), dtype=np.int64)
        for n, tried in zip(sizes.tolist(), cut.tolist(), strict=True)
    ])  # fmt: skip
    _, unit = np.unique(number * ways + part, return_inverse=True)
    unit = unit.reshape(-1).astype(np.int64)
    n_units = int(unit.max()) + 1
    group_of_unit = np.zeros(n_units, dtype=np.int64)
    group_of_unit[unit] = number
    people = np.bincount(unit, minlength=n_units).astype(np.int64)
    looked = looked_at_values(search)
    small = np.zeros(n_units, dtype=bool)
    for model in search:
        if model.about != "sensitive":
            small |= ~model.passing(Classes(people, people), context)

    def _judge(world: Ints) -> Bools:
        ones = np.ones(len(world), dtype=np.int64)
        sensitive = {
            name: ValueCounts.collect(vc.values, n_units, unit, places.codes[name][world], ones, vc.ordered)
            for name, vc in target.grouping.summary.sensitive.items()
        }
        fails = small.copy()
        for model in looked:
            fails |= ~model.passing(Classes(people, people, sensitive), context)
        return np.asarray((np.bincount(group_of_unit, fails, n_groups) > 0) | ~cut, dtype=bool)

    space = WorldSpace(number, places.items, np.arange(n_groups))
    tally = explore_worlds(space, unit, n_units, _judge, budget, np.random.default_rng(0), lambda: False)
    first = np.zeros(n_units, dtype=np.int64)
    first[unit[::-1]] = places.tuples[::-1]
    return Replayed(replace(places, unit=unit, tuples_of_units=first), tally, places_known=False)
