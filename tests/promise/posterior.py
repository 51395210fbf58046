"""The true beliefs: the product on every possible world, and what its public outputs tell about everybody."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maskwright.policy.policy import Policy
from maskwright.worlds.sampling.choices import every_choice
from tests.promise.draws import Draws
from tests.promise.product import Bound, Outcome, Public, published
from tests.promise.tables import Case

SLACK = 1e-9  # of sums of floating numbers
World = tuple[int, ...]


@dataclass(frozen=True)
class Broken:
    """A belief above what was guaranteed."""

    bound: Bound
    person: str
    secret: tuple[str, ...]
    published: bool
    prior: float
    posterior: float
    fact: tuple[str, str, tuple[str, ...]] | None
    public: Public
    world: World

    def __str__(self) -> str:
        whose = "published" if self.published else "not published"
        fact = f", knowing {self.fact}" if self.fact else ""
        return (
            f"{self.person} ({whose}) is believed to hold {self.secret} in {self.bound.column} with "
            f"{self.posterior:.4f}{fact}; guaranteed at most {self.bound.max} (prior {self.prior:.4f})"
        )


@dataclass
class Told:
    """One public output: how likely each world makes it, and what is said of it there."""

    likelihood: dict[World, float] = field(default_factory=dict)
    runs: dict[World, int] = field(default_factory=dict)
    bounds: tuple[Bound, ...] = ()
    there: list[bool] = field(default_factory=list)

    def add(self, world: World, chance: float, outcome: Outcome) -> None:
        self.likelihood[world] = self.likelihood.get(world, 0.0) + chance
        self.runs[world] = self.runs.get(world, 0) + 1
        self.bounds = outcome.bounds
        sure = [t is True for t in outcome.there]
        self.there = [a and b for a, b in zip(self.there, sure, strict=True)] if self.there else sure


Outputs = dict[Public, Told]


def enumerated(case: Case, policy: Policy, most: int) -> Outputs:
    """The exact chances of every output, with every random choice; raises `TooManyChoices`."""
    outputs: Outputs = {}
    for world in case.worlds():
        table = case.table(world)
        for draws in every_choice(most):
            _put(outputs, world, published(table, policy, draws), lambda d=draws: float(d.probability))
            most -= 1
    return outputs


def drawn(case: Case, policy: Policy, times: int, chance: random.Random, seed: int | None = None) -> Outputs:
    """The same with some draws for each world."""
    outputs: Outputs = {}
    for world in case.worlds():
        table = case.table(world)
        for _ in range(times):
            draws = Draws(chance)
            outcome = published(table, policy, draws, seed)
            if not draws.at:  # nothing was left to chance
                _put(outputs, world, outcome, lambda: 1.0)
                break
            _put(outputs, world, outcome, lambda: 1 / times)
    return outputs


def pooled(first: Outputs, second: Outputs, share: float) -> Outputs:
    """Two sets of draws of the same worlds as one; the first is a `share` of both."""
    found: Outputs = {}
    for outputs, part in ((first, share), (second, 1 - share)):
        for public, told in outputs.items():
            all_told = found.setdefault(public, Told(bounds=told.bounds, there=told.there))
            for world, chance in told.likelihood.items():
                all_told.likelihood[world] = all_told.likelihood.get(world, 0.0) + part * chance
                all_told.runs[world] = all_told.runs.get(world, 0) + told.runs[world]
            all_told.there = [a and b for a, b in zip(all_told.there, told.there, strict=True)]
    return found


def _put(outputs: Outputs, world: World, outcome: Outcome, chance: Any) -> None:
    if outcome.public is not None:
        outputs.setdefault(outcome.public, Told()).add(world, chance(), outcome)


def broken(case: Case, outputs: Mapping[Public, Told], bounds: str = "guaranteed") -> list[Broken]:
    """Every belief above its bound; `bounds`: of those that are guaranteed, or of all."""
    found = []
    for public, told in outputs.items():
        wanted = [b for b in told.bounds if b.guaranteed or bounds == "all"]
        if wanted:
            weight = case.prior * _spread(case, told.likelihood)
            for bound in dict.fromkeys(wanted):
                found += [
                    Broken(bound, *rest, public, next(iter(told.likelihood)))
                    for rest in _beliefs(case, bound, weight, told.there)
                ]
    return sorted(found, key=lambda b: b.posterior - max(float(b.bound.max), 0 if b.published else b.prior))[
        ::-1
    ]


def _spread(case: Case, likelihood: Mapping[World, float]) -> Any:
    """What is known of sorts of worlds, for all worlds."""
    result = np.zeros(len(case.every))
    for world, chance in likelihood.items():
        result[case.sort_of[world]] = chance
    return result


def _beliefs(case: Case, bound: Bound, weight: Any, there: Sequence[bool]) -> Iterable[tuple[Any, ...]]:
    """The beliefs above a bound that these weights of all worlds come to."""
    total = weight.sum()
    sets = bound.sets if bound.sets is not None and "=" not in bound.column else case.secrets(bound.column)
    if bound.within is not None:
        sets = case.near(bound.column, bound.within)
    for person in case.people:
        here = all(t for t, owner in zip(there, case.owners, strict=True) if owner == person)
        for secret in sets:
            holds = case.holds(person, bound.column, secret)
            prior = float(case.prior[holds].sum())
            limit = float(bound.max) if here else max(float(bound.max), prior)
            belief = float(weight[holds].sum() / total)
            if belief > limit + SLACK:
                yield person, secret, here, prior, belief, None
            for fact in case.facts() if bound.facts else ():
                if fact[0] == person and fact[1].split("=")[0] == bound.column.split("=")[0]:
                    continue
                known = case.holds(*fact)
                mass = float(weight[known].sum())
                if mass > SLACK * total:
                    belief = float(weight[known & holds].sum() / mass)
                    if belief > limit + SLACK:
                        yield person, secret, here, prior, belief, fact


def belief_after(
    case: Case, outputs: Outputs, public: Public, column: str, person: str, secret: Sequence[str]
) -> float:
    """What is believed of one person after one output."""
    weight = case.prior * _spread(case, outputs[public].likelihood)
    return float(weight[case.holds(person, column, secret)].sum() / weight.sum())
