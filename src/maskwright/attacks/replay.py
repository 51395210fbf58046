"""Replay: run the method again, on what it could have been given. Whoever knows the method can do the same.

Without the models of sensitive values it publishes what the quasi-identifiers alone decide. If that is what was
published, values decided nothing. Otherwise, where worlds are few, it is run on every one of them: those in which it
publishes the same groups are the worlds that an adversary is left with [Cormode et al. 2010].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from maskwright.attacks.draws import Crowd, Listed
from maskwright.attacks.refusals import group_of_tuples
from maskwright.core.adversary import Target
from maskwright.core.classes import Ints, ValueCounts
from maskwright.core.grouping import Grouping
from maskwright.core.method import Task
from maskwright.core.model import Model
from maskwright.core.summary import Summary
from maskwright.errors import PolicyNotMet

WORLDS = 100  # on which the method is run again


def can_replay(target: Target) -> bool:
    """Is all known that the method was given, and was it run to its end?"""
    known = target.method is not None and target.weights is not None and target.levels is not None
    return known and target.grouping.search.get("optimal") is not False


def same_without_values(target: Target) -> bool:
    """Would the same groups have been published if the search had not looked at sensitive values?"""
    blind = [m for m in target.models if m.use == "search" and m.about != "sensitive"]
    return _same(_run(target, target.grouping.summary, blind), target.grouping)


def replayed(target: Target) -> Listed | None:
    """All worlds in which the method publishes the same groups; None where there are too many to run it on."""
    every = np.ones(len(target.grouping.classes.sizes), dtype=bool)
    crowd = Crowd.of(target, every)
    if crowd.n_worlds() > WORLDS:
        return None
    search = [m for m in target.models if m.use == "search"]
    dealt = crowd.every_world()
    kept = [_same(_run(target, _world(crowd, world), search), target.grouping) for world in dealt]
    return Listed(crowd, dealt[kept], Fraction(sum(kept), len(kept)), every)


def _run(target: Target, summary: Summary, models: Sequence[Model]) -> Grouping | None:
    if target.method is None or target.weights is None or target.levels is None:
        raise ValueError("the method cannot be run again: not all that it was given is known")
    rng = np.random.default_rng(0)
    task = Task(summary, models, target.context, rng, target.weights, target.levels, census=target.census)
    try:
        return target.method.group(task)
    except PolicyNotMet:
        return None


def _same(found: Grouping | None, published: Grouping) -> bool:
    """The same rows together, the same ones dropped, under the same labels."""
    if found is None or found.levels != published.levels:
        return False
    return found.starred == published.starred and np.array_equal(
        group_of_tuples(found), group_of_tuples(published)
    )


def _world(crowd: Crowd, items: Ints) -> Summary:
    """The table as it would be in one world; people who were dropped keep their values."""
    summary = crowd.target.grouping.summary
    dropped = group_of_tuples(crowd.target.grouping) < 0
    sensitive = dict(summary.sensitive)
    for name, codes in crowd.codes.items():
        counts = summary.sensitive[name]
        gone = dropped[counts.owner]
        sensitive[name] = ValueCounts.collect(
            counts.values,
            summary.n_tuples,
            np.concatenate([crowd.tuples, counts.owner[gone]]),
            np.concatenate([codes[items], counts.codes[gone]]),
            np.concatenate([np.ones(len(items), np.int64), counts.counts[gone]]),
            counts.ordered,
        )
    return replace(summary, sensitive=sensitive, joint=None)
