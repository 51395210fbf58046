"""One random policy on one random table: is what it promises true of all worlds?"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from maskwright.policy.policy import Policy
from maskwright.worlds.sampling.choices import TooManyChoices
from tests.promise.draws import Draws, chance
from tests.promise.policies import random_policy, with_more_settings, with_near_numbers
from tests.promise.posterior import Broken, Outputs, broken, drawn, enumerated, pooled
from tests.promise.product import published
from tests.promise.tables import Case, random_case

TRIED = 2  # policies for a table, until one publishes something
PILOTS = 6  # worlds that are tried first: where nothing is guaranteed, nothing can be broken
LEAVES = 2000  # runs for an exact answer
FIRST = 2  # draws for each world: do they differ?
DRAWS = 6  # for each world, where they do
SURE = 1e-6  # the chance of an error in a confirmed belief that was drawn


@dataclass
class Examined:
    """What became of one policy."""

    seed: int
    case: Case
    policy: dict[str, Any]
    published: bool = False
    guaranteed: bool = False
    near: bool = False  # is it guaranteed that nobody comes near to a number?
    broken: list[Broken] = field(default_factory=list)
    exact: bool = True
    refusals: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        rows = "\n  ".join(map(str, self.case.known))
        return (
            f"seed {self.seed}: {self.broken[0] if self.broken else 'nothing broken'}\n  {self.case.names}\n  {rows}\n"
            f"  owners {self.case.owners}\n  domains {dict(self.case.domains)} weights {dict(self.case.weights)}\n"
            f"  policy {self.policy}"
        )


def examined(seed: int, more: bool = False, near: bool = False) -> Examined:
    """Draw a table and a policy, and compare what is guaranteed with what is true.

    A policy that publishes none of some worlds promises nothing: then another one is drawn, once. `more`: with settings
    that are usually left at their defaults. `near`: the secret is a number, and nobody may come near to it.
    """
    draw = chance(seed)
    case = random_case(draw, several=draw.random() < 0.15, numbers=near)
    for _ in range(TRIED):
        policy = random_policy(draw, case)
        if more:
            policy = with_more_settings(draw, case, policy)
        if near:
            policy = with_near_numbers(draw, policy)
        found = examine(seed, case, policy, draw.randrange(100) if draw.random() < 0.04 else None)
        if found.published:
            break
    return found


def examine(number: int, case: Case, plain: dict[str, Any], seed: int | None = None) -> Examined:
    """The same for a given table and policy; `seed`: of the run."""
    result = Examined(number, case, plain)
    policy, draw = Policy.load(plain), chance(number)
    for world in pilots(case, draw):
        outcome = published(case.table(world), policy, Draws(draw), seed)
        result.published |= outcome.public is not None
        result.guaranteed |= outcome.guaranteed
        result.near |= any(b.guaranteed and b.within is not None for b in outcome.bounds)
        if outcome.why:
            result.refusals[outcome.why] += 1
        if result.guaranteed:
            break
    if result.guaranteed:
        outputs = drawn(case, policy, FIRST, draw, seed)
        found = broken(case, outputs)
        if not alike(outputs):
            more = drawn(case, policy, DRAWS - FIRST, draw, seed)
            outputs = pooled(outputs, more, FIRST / DRAWS)
            found = _suspected(broken(case, outputs), outputs)
        if found:
            result.broken, result.exact = confirmed(case, policy, found, draw, seed)
    return result


def alike(outputs: Outputs) -> bool:
    """Did every world have one output, whatever was drawn?"""
    return all(share == 1 for told in outputs.values() for share in told.likelihood.values())


def pilots(case: Case, draw: random.Random) -> list[tuple[int, ...]]:
    """Some worlds; first those with many different values, which are published rather than others."""
    worlds = list(case.worlds())
    draw.shuffle(worlds)
    even = sorted(worlds, key=lambda w: sum(n * n for n in Counter(w).values()))[: PILOTS // 2]
    return [*even, *worlds[: PILOTS - len(even)]]


def _suspected(found: list[Broken], outputs: Outputs) -> list[Broken]:
    """Beliefs that are hardly too large by accident."""
    result = []
    for one in found:
        runs, limit = sum(outputs[one.public].runs.values()), _limit(one)
        if runs > DRAWS and one.posterior - limit > 3 * math.sqrt(limit * (1 - limit) / runs):
            result.append(one)
    return result


def _limit(one: Broken) -> float:
    return float(one.bound.max) if one.published else max(float(one.bound.max), one.prior)


def confirmed(
    case: Case, policy: Policy, suspects: list[Broken], draw: random.Random, seed: int | None = None
) -> tuple[list[Broken], bool]:
    """What is broken for certain: by every random choice, or by an exact lower bound from fresh draws."""
    if seed is not None:
        return suspects, True
    try:
        return broken(case, enumerated(case, policy, LEAVES)), True
    except TooManyChoices:
        return [one for one in suspects[:3] if one.fact is None and _surely(case, policy, one, draw)], False


def _surely(case: Case, policy: Policy, one: Broken, draw: random.Random) -> bool:
    """Clopper-Pearson on worlds drawn from the prior: is the belief after this output above its limit?"""
    holds = case.holds(one.person, one.bound.column, one.secret)
    hits = held = 0
    for w in draw.choices(range(len(case.every)), case.prior.tolist(), k=LEAVES):
        if published(case.table(case.every[w].tolist()), policy, Draws(draw)).public == one.public:
            hits, held = hits + 1, held + bool(holds[w])
    return hits > 0 and chance_of_as_many(held, hits, _limit(one)) < SURE


def chance_of_as_many(held: int, hits: int, share: float) -> float:
    """The chance of at least `held` among `hits` where each comes with probability `share`."""
    return sum(math.comb(hits, i) * share**i * (1 - share) ** (hits - i) for i in range(held, hits + 1))
