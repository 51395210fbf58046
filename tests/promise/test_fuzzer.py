"""Random whole policies on small tables: what is labelled guaranteed is true of every possible world."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest

from maskwright.domain.method import Decisions
from maskwright.errors import PolicyError
from maskwright.methods import METHODS
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.models import MODELS
from maskwright.models.distinct_l_diversity import DistinctLDiversity
from maskwright.pipeline.attacking import ADVERSARIES
from maskwright.policy.binding import promises_before
from maskwright.policy.policy import Policy
from tests.amounts import cases
from tests.promise.draws import chance
from tests.promise.fuzzing import Examined, examined
from tests.promise.policies import UNPROVEN, random_policy, with_unproven
from tests.promise.tables import random_case

CHUNK = 100
# These four take as long as the other two hundred: a gate's worlds are enumerated again for each world of theirs.
HEAVY = (13, 30, 134, 174)
SEEDS = [seed for seed in range(200 + len(HEAVY)) if seed not in HEAVY]
FIRST = range(0, len(SEEDS), CHUNK)
LONG = range(100_000, 120_000, CHUNK)


def examine_all(seeds: Sequence[int], record_property: pytest.RecordProperty) -> list[Examined]:
    """Examine the policies of some seeds, and say how many were guaranteed; fails with every broken promise.

    At least a fifth must be guaranteed, and a third publish something: of fewer the fuzzer would test little. That is
    asked of every hundred, and so of the whole run.
    """
    found = [examined(seed) for seed in seeds]
    numbers = {name: sum(getattr(one, name) for one in found) for name in ("published", "guaranteed")}
    for name, number in {"policies": len(found), **numbers}.items():
        record_property(name, number)
    print(f"{len(found)} policies: {numbers['published']} published, {numbers['guaranteed']} guaranteed")
    broken = [one for one in found if one.broken]
    assert not broken, "\n\n".join(map(str, broken))
    assert numbers["published"] >= len(found) / 3
    assert numbers["guaranteed"] >= len(found) / 5
    return found


@pytest.mark.parametrize("first", cases(FIRST, brief=FIRST[:1]))
def test_promises_are_kept(first: int, record_property: pytest.RecordProperty) -> None:
    examine_all(SEEDS[first : first + CHUNK], record_property)


@pytest.mark.long
@pytest.mark.parametrize("seed", HEAVY)
def test_promises_are_kept_where_that_takes_long(seed: int) -> None:
    found = examined(seed)
    assert not found.broken, str(found)


@pytest.mark.long
@pytest.mark.parametrize("first", LONG)
def test_promises_are_kept_by_many(first: int, record_property: pytest.RecordProperty) -> None:
    """20,000 policies."""
    examine_all(range(first, first + CHUNK), record_property)


def in_twenties(first: int, last: int) -> list[Any]:
    """Where each twenty seeds begin; all but the first twenty belong to the long run."""
    return [first, *(pytest.param(n, marks=pytest.mark.long) for n in range(first + 20, last, 20))]


def twenty_kept(first: int, **which: bool) -> list[Examined]:
    """Twenty policies of a kind, none of which breaks its promise."""
    found = [examined(seed, **which) for seed in range(first, first + 20)]
    broken = [one for one in found if one.broken]
    assert not broken, "\n\n".join(map(str, broken))
    return found


@pytest.mark.parametrize("first", in_twenties(300_000, 301_000))
def test_promises_are_kept_with_more_settings(first: int) -> None:
    """Weights, levels, orders and hierarchies of secrets, a population, preparing: 1,000 in the long run."""
    assert sum(one.guaranteed for one in twenty_kept(first, more=True)) >= 2


@pytest.mark.parametrize("first", in_twenties(800_000, 800_500))
def test_promises_about_numbers_near_the_truth_are_kept(first: int) -> None:
    """A secret that is a number, and one more requirement on it (`within`): 500 in the long run."""
    assert any(one.near for one in twenty_kept(first, near=True))


class ForeignMethod(OptimalLattice):
    """A method of others that says of itself what ours says."""

    name: ClassVar[str] = "foreign"

    def decisions(self) -> Decisions:
        return OptimalLattice().decisions()


class ForeignModel(DistinctLDiversity):
    """A model of others."""

    name: ClassVar[str] = "foreign"


@pytest.fixture
def of_others() -> Iterator[None]:
    METHODS.add("foreign", ForeignMethod)
    MODELS.add("foreign", ForeignModel)
    yield
    METHODS.remove("foreign")
    MODELS.remove("foreign")


def labels(policy: Policy) -> set[str | None]:
    """What the policy promises before any row is read; nothing where it is refused."""
    try:
        return {promise.status for promise in promises_before(policy, ADVERSARIES["knows-method"])}
    except PolicyError:
        return set()


@pytest.mark.usefixtures("of_others")
@pytest.mark.parametrize("kind", UNPROVEN)
def test_an_ingredient_that_no_proof_names_is_measured_in_every_policy(kind: str) -> None:
    """Whatever else the policy says: of fifty random ones none is guaranteed with it, and some are without it."""
    tried = before = 0
    for seed in range(500_000, 500_050):
        draw = chance(seed)
        case = random_case(draw, several=draw.random() < 0.15)
        policy = Policy.load(random_policy(draw, case))
        try:
            beside = Policy.load(with_unproven(draw, case, policy, kind))
        except PolicyError:  # does not go with the rest
            continue
        if found := labels(beside):
            assert found == {"measured"}, (seed, beside.to_dict())
            tried, before = tried + 1, before + ("guaranteed" in labels(policy))
    assert tried > 10
    assert before > 2
