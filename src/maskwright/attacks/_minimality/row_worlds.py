"""`possible_worlds`: the belief of an adversary who can run a method that is given as a plain Python function.

    def f(qi, sa, rng): ...                   # → groups of row numbers; what is in no group is dropped
    found = possible_worlds(qi, sa, groups, f)
    found.worst                               # the largest belief, whom it concerns, and why
    found.rows[0]["flu"]                      # the belief that row 0 has flu, with its ends

Worlds deal the values of each published group to its rows. Where they are few, f is run on all of them; where they are
many, on worlds drawn at random; and where hardly one of these is published again, along Markov chains.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.attacks._minimality.row_methods import NOT_REPRODUCED, RowMethod, Runs
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Ints
from maskwright.domain.exact import number_text
from maskwright.errors import UsageError
from maskwright.worlds.sampling.belief_intervals import KINDS, RISK, BeliefIntervals, Kind, belief_intervals
from maskwright.worlds.sampling.possible_worlds import WorldSpace, as_publication, check_groups
from maskwright.worlds.sampling.world_sampler import Bools, WorldBudget, explore_worlds


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
            f"the method published the same groups in {kept} of {looked} runs on worlds drawn at random: what it tells "
            "could not be narrowed down", (low, high),
        )  # fmt: skip
    before = Fraction(sum(v == values[item] for v in sa), len(sa))
    return Belief(before, after, f"row {int(rows[place])}", why, None if kind == "exact" else (low, high))
