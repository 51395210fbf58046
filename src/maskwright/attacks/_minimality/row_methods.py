"""A method as a plain function of rows, `f(qi, sa, rng) -> groups`, attacked by running it on possible worlds.

`qi` and `sa` are the quasi-identifiers and the sensitive value of each row, `rng` a numpy generator; the answer is the
groups, as row numbers. Rows in no group are dropped. A method that uses `rng` is taken to be randomised.

`possible_worlds` is the belief of an adversary who can run such a method:

    def f(qi, sa, rng): ...                   # → groups of row numbers; what is in no group is dropped
    found = possible_worlds(qi, sa, groups, f)
    found.worst                               # the largest belief, whom it concerns, and why
    found.rows[0]["flu"]                      # the belief that row 0 has flu, with its ends

Worlds deal the values of each published group to its rows. Where they are few, f is run on all of them; where they are
many, on worlds drawn at random; and where hardly one of these is published again, along Markov chains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.attacks._minimality.fingerprints import Words, multiset_prints
from maskwright.attacks._minimality.replay import Replayed
from maskwright.attacks._minimality.world_tables import PublishedPeople
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Ints
from maskwright.domain.exact import number_text
from maskwright.errors import MaskwrightError, PolicyNotMet, UsageError
from maskwright.worlds.sampling.belief_intervals import KINDS, RISK, BeliefIntervals, Kind, belief_intervals
from maskwright.worlds.sampling.possible_worlds import Publication, WorldSpace, as_publication, check_groups
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
    places = PublishedPeople.of(target)
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


@dataclass(frozen=True)
class RowBelief:
    """The belief that a row has a value, and its ends (which coincide with it where it is exact)."""

    after: Fraction
    low: float
    high: float


@dataclass(frozen=True)
class PossibleWorlds:
    """What is left to believe.

    Attributes:
        kind: exact (every world was looked at), sampled (independent draws: all ends hold together with 99 %
            confidence), estimated (Markov chains), or bounded (nothing could be narrowed down).
        worst: the largest belief.
        rows: per row, value → belief; nothing for rows that were not published.
        measures: how far it got.
    """

    kind: Kind
    worst: Belief
    rows: Sequence[dict[Any, RowBelief]]
    measures: dict[str, Any]


def possible_worlds(
    qi: Sequence[Any],
    sa: Sequence[Hashable],
    groups: Iterable[Iterable[int]],
    method: RowMethod,
    *,
    secrets: Sequence[Hashable] | None = None,
    draws: int = 10_000,
    seconds: float = 3.0,
    seed: int = 0,
) -> PossibleWorlds:
    """Attack published groups of rows, knowing the method that made them.

    Args:
        qi: the quasi-identifiers of each row; handed to the method as they are.
        sa: the sensitive value of each row; None is missing.
        groups: the published groups, as row numbers.
        method: f(qi, sa, rng) → groups. It is randomised when it uses `rng`, and must use no other randomness.
        secrets: the values that must not be known; all of them when not given.
        draws: on how many worlds the method is run at most, and
        seconds: for how long.
        seed: of the draws.
    """
    published = [sorted(int(i) for i in group) for group in groups]
    if len(qi) != len(sa):
        raise UsageError(f"there are {len(qi)} rows of quasi-identifiers, but {len(sa)} sensitive values")
    check_groups(len(sa), published)
    if not published:
        raise UsageError("no group was published; there is nothing to attack")
    if draws < 1 or seconds <= 0:
        raise UsageError("draws and seconds must be above 0")
    values = list(dict.fromkeys(sa))
    code = {value: i for i, value in enumerate(values)}
    rows = np.array([i for group in published for i in group], dtype=np.int64)
    number = np.repeat(np.arange(len(published)), [len(g) for g in published])
    items = np.array([code[sa[i]] for i in rows], dtype=np.int64)
    target, runs, world_values = as_publication(published), Runs(method, qi, seed + 1), list(sa)

    def _judge(world: Ints) -> Bools:
        for i, item in zip(rows.tolist(), world.tolist(), strict=True):
            world_values[i] = values[item]
        return np.array([runs.groups(world_values) == target])

    again = _judge(items)
    if not runs.chance and not again[0]:
        raise UsageError(NOT_REPRODUCED)
    space = WorldSpace(number, items, np.zeros(len(published), dtype=np.int64))
    rng = np.random.default_rng(seed)
    tally = explore_worlds(
        space, np.arange(len(rows)), len(rows), _judge, WorldBudget(draws, seconds), rng, lambda: runs.chance
    )
    inside = np.eye(space.n_items, dtype=bool)
    found = belief_intervals(tally, inside)
    chosen = [v for v in values if v is not None and (secrets is None or v in secrets)]
    kind = KINDS[int(found.kind.max(initial=0))]
    beliefs: list[dict[Any, RowBelief]] = [{} for _ in sa]
    for place, i in enumerate(rows.tolist()):
        for item in np.flatnonzero(found.high[place] > 0).tolist():
            if values[item] is not None:
                ends = float(found.low[place, item]), float(found.high[place, item])
                beliefs[i][values[item]] = RowBelief(found.exact(place, item), *ends)
    measures = {
        **tally.report(),
        "rows dropped": len(sa) - len(rows),
        "values not flagged": len({v for v in values if v is not None} - set(chosen)),
    }
    return PossibleWorlds(kind, _worst(found, rows, sa, values, chosen, kind), beliefs, measures)


def _worst(
    found: BeliefIntervals, rows: Ints, sa: Sequence[Any], values: list[Any], chosen: list[Any], kind: Kind
) -> Belief:
    """The largest belief in one of the chosen values."""
    columns = [i for i, v in enumerate(values) if v in chosen and i < found.estimate.shape[1]]
    if not columns:
        return Belief(Fraction(0), Fraction(0), "nobody", "no published group holds a sensitive value")
    some = found.estimate[:, columns]
    place, column = np.unravel_index(int(some.argmax()), some.shape)
    item = columns[int(column)]
    after = found.exact(int(place), item)
    low, high = float(found.low[:, columns].max()), float(found.high[:, columns].max())
    tally = found.tally
    looked, kept = int(tally.looked[0]), int(tally.kept[0])
    if kind == "exact":
        why = f"the method publishes the same groups in {number_text(Fraction(kept, looked))} of the {looked} worlds"
    else:
        why = f"the method publishes the same groups in {kept} of {looked} worlds drawn"
    why += f"; in this share of those the row has {values[item]!r}"
    if kind == "sampled":
        why += f" ({1 - RISK:.0%} confidence for all rows at once)"
    elif kind == "estimated":
        why += " (estimated by Markov chains, which may have missed some)"
    elif kind == "bounded":
        return Belief(
            Fraction(sum(v == values[item] for v in sa), len(sa)), Fraction(high), "any row",
            f"the method published the same groups in {kept} of {looked} runs on worlds drawn at random: what it "
            "reveals could not be narrowed down", (low, high),
        )  # fmt: skip
    before = Fraction(sum(v == values[item] for v in sa), len(sa))
    return Belief(before, after, f"row {int(rows[place])}", why, None if kind == "exact" else (low, high))
