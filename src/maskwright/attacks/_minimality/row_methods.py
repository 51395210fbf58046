"""A method as a plain function of rows, `f(qi, sa, rng) -> groups`, attacked by running it on possible worlds.

`qi` and `sa` are the quasi-identifiers and the sensitive value of each row, `rng` a numpy generator; the answer is the
groups, as row numbers. Rows in no group are dropped. A method that uses `rng` is taken to be randomised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from maskwright.attacks._minimality.fingerprints import Words, multiset_prints
from maskwright.attacks._minimality.replay import Replayed
from maskwright.attacks._minimality.world_tables import Places
from maskwright.domain.adversary import Target
from maskwright.domain.classes import Ints
from maskwright.errors import MaskwrightError, PolicyNotMet, UsageError
from maskwright.worlds.sampling.possible_worlds import Publication, WorldSpace, as_publication
from maskwright.worlds.sampling.world_sampler import Bools, WorldBudget, explore_worlds

RowMethod = Callable[[Sequence[Any], Sequence[Any], np.random.Generator], Iterable[Iterable[int]]]


class Runs:
    """A row method, run again and again; `chance` says whether it ever used its random numbers."""

    def __init__(self, method: RowMethod, qi: Sequence[Any], seed: int = 1) -> None:
        if not callable(method):
            raise UsageError(
                f"the method must be a function f(qi, sa, rng) -> groups, not {type(method).__name__}"
            )
        self.method, self.qi, self.chance = method, qi, False
        self.rng = np.random.default_rng(seed)

    def groups(self, sa: Sequence[Any]) -> Publication | None:
        """The groups that it makes of these values; None: it refuses to publish."""
        before = self.rng.bit_generator.state
        try:
            found = as_publication(
                list(map(int, group)) for group in self.method(self.qi, list(sa), self.rng)
            )
        except PolicyNotMet:
            return None
        except MaskwrightError:
            raise
        except Exception as problem:
            raise UsageError(
                f"the method failed on a possible world ({type(problem).__name__}: {problem}); it must take any order "
                "of the published values, and return groups of row numbers"
            ) from problem
        finally:
            self.chance |= self.rng.bit_generator.state != before
        rows = [i for group in found for i in group]
        if len(rows) != len(set(rows)) or not all(0 <= i < len(self.qi) for i in rows):
            raise UsageError("the method puts a row into two groups, or names a row that there is not")
        return frozenset(group for group in found if group)


def replayed_by(target: Target, method: RowMethod, budget: WorldBudget) -> Replayed:
    """The worlds of a release in which a row method makes the groups that were published.

    Rows are given in the order of their quasi-identifiers. Rows that share them cannot be told apart by an adversary:
    groups are the same when they hold as many rows of each tuple, and the same values.
    """
    places = Places.of(target)
    tuples = np.concatenate([places.tuples, places.dropped[0]])
    order = np.argsort(tuples, kind="stable")
    summary = target.grouping.summary
    columns = [
        [h.values[c - 1] if c else None for c in codes.tolist()]
        for h, codes in zip(summary.attributes, summary.codes, strict=True)
    ]
    tuple_of_row = tuples[order]
    qi = [tuple(column[t] for column in columns) for t in tuple_of_row.tolist()]
    names = list(summary.sensitive)
    words = [
        [summary.sensitive[n].values[c - 1] if c else None for c in places.codes[n].tolist()] for n in names
    ]
    value_of = words[0] if len(names) == 1 else list(zip(*words, strict=True))
    runs = Runs(method, qi)
    number = np.searchsorted(places.groups, places.group)
    group_of_place = np.concatenate([number, np.full(len(places.dropped[0]), -1)])

    def _prints(groups: Ints, items: Ints, n: int) -> Words:
        ones = np.ones(len(items), dtype=np.int64)
        parts = multiset_prints(n, groups, tuple_of_row, ones, 1), multiset_prints(n, groups, items, ones, 2)
        with np.errstate(over="ignore"):
            return np.sort(parts[0] + parts[1])

    def _all_items(world: Ints) -> Ints:
        return np.concatenate([world, places.dropped[1]])[order]

    published = _prints(group_of_place[order], _all_items(places.items), len(places.groups))

    def _judge(world: Ints) -> Bools:
        items = _all_items(world)
        found = runs.groups([value_of[i] for i in items.tolist()])
        if found is None or len(found) != len(places.groups):
            return np.zeros(1, dtype=bool)
        group_of = np.full(len(items), -1, dtype=np.int64)
        for g, rows in enumerate(found):
            group_of[list(rows)] = g
        return np.array([np.array_equal(_prints(group_of, items, len(found)), published)])

    space = WorldSpace(number, places.items, np.zeros(len(places.groups), dtype=np.int64))
    again = _judge(places.items)
    if not runs.chance and not again[0]:
        raise UsageError(NOT_REPRODUCED)
    rng = np.random.default_rng(0)
    tally = explore_worlds(space, places.unit, places.n_units, _judge, budget, rng, lambda: runs.chance)
    return Replayed(places, tally)


NOT_REPRODUCED = (
    "run on the real values, the method does not make the groups that were published; give the method, with the "
    "parameters, that made them"
)
