"""Anatomization after a look at sensitive values voids the bound (erratum C-16): by enumeration, and by the product."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import pytest

from maskwright.attacks.minimality import Minimality
from maskwright.domain.adversary import Target
from maskwright.methods import METHODS
from maskwright.methods.symmetric_grouping import SymmetricGrouping
from maskwright.models import MODELS
from maskwright.models.belief import BeliefAtMost
from maskwright.pipeline.gates import judge_belief
from maskwright.promise.method_promise import promise_of_method
from maskwright.worlds import reference_methods
from maskwright.worlds.reference_methods import anatomy_publications
from tests.methods.row_tables import build

VALUES = "ppabcd"
QI = [[i] for i in range(6)]
DIVERSE = MODELS["simple-l-diversity"](l=2, attribute="s")
# a release: the rows of each bucket with the values that it shows
Publication = frozenset[tuple[frozenset[int], str]]


def whole_group(sa: tuple[str, ...]) -> bool:
    """Symmetric grouping with 2-diversity refuses the halves 3 + 3, so that the six rows are one group."""
    found = reference_methods.symmetric_grouping(QI, sa, lambda c: max(c.values()) * 2 <= sum(c.values()), 2)
    return len(found) == 1


def publications(sa: tuple[str, ...]) -> dict[Publication, Fraction]:
    """What Anatomy with l = 2 makes of the group, with its probability."""
    result: Counter[Publication] = Counter()
    for groups, chance in anatomy_publications(list(sa), 2).items():
        shown = frozenset((frozenset(g), "".join(sorted(sa[i] for i in g))) for g in groups)
        result[shown] += chance
    return dict(result)


@pytest.fixture(scope="module")
def likelihood() -> dict[Publication, Counter[tuple[str, ...]]]:
    """Release → table → the probability that this table is published so."""
    result: dict[Publication, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for sa in sorted(set(itertools.permutations(VALUES))):
        if whole_group(sa):
            for publication, chance in publications(sa).items():
                result[publication][sa] += chance
    return result


def worst(tables: Counter[tuple[str, ...]]) -> Fraction:
    total = sum(tables.values(), Fraction(0))
    held = (
        sum((p for sa, p in tables.items() if sa[row] == value), Fraction(0))
        for row in range(6)
        for value in "pabcd"
    )
    return max(held) / total


def test_half_of_the_releases_give_a_belief_of_one(
    likelihood: dict[Publication, Counter[tuple[str, ...]]],
) -> None:
    weight = {r: sum(tables.values(), Fraction(0)) for r, tables in likelihood.items()}
    certain = sum((weight[r] for r, tables in likelihood.items() if worst(tables) == 1), Fraction(0))
    assert certain / sum(weight.values()) == Fraction(1, 2)
    # every bucket shows a half at most: that is what an adversary who does not know the method believes
    assert all(len(rows) == 2 and len(set(shown)) == 2 for r in likelihood for rows, shown in r)


def test_without_the_split_test_anatomy_gives_nothing_away() -> None:
    tables: dict[Publication, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for sa in sorted(set(itertools.permutations(VALUES))):
        for publication, chance in publications(sa).items():
            tables[publication][sa] += chance
    assert {worst(t) for t in tables.values()} == {Fraction(1, 2)}


def published(sa: str, seed: int) -> tuple[Target, Publication]:
    """What the product makes of a table with these values."""
    table = build(QI, {"s": list(sa)})
    task = table.task([DIVERSE], seed)
    method = SymmetricGrouping(anatomize=2)
    grouping = method.group(task)
    owner = dict(zip(grouping.allocation.tuples.tolist(), grouping.allocation.groups.tolist(), strict=True))
    buckets: dict[int, set[int]] = defaultdict(set)
    for row, group in owner.items():
        buckets[group].add(row)
    shown = frozenset((frozenset(b), "".join(sorted(sa[i] for i in b))) for b in buckets.values())
    return Target(grouping, [DIVERSE], method, task.context), shown


def test_the_product_publishes_exactly_these(
    likelihood: dict[Publication, Counter[tuple[str, ...]]],
) -> None:
    seen = {published("ppabcd", seed)[1] for seed in range(40)}
    assert seen == {r for r, tables in likelihood.items() if tables[tuple("ppabcd")]}


@pytest.mark.parametrize("options", [{"anatomize": 2}, {"anatomize": 2, "cut": "relaxed"}])
@pytest.mark.parametrize("method", ["symmetric-grouping", "mondrian", "greedy-grouping"])
def test_nothing_is_promised(method: str, options: dict[str, Any]) -> None:
    target, _ = published("ppabcd", 0)
    if method != "mondrian":
        options = {"anatomize": 2}
    how = METHODS[method](**options)
    found = promise_of_method(how, [DIVERSE], target.context, "s")
    assert (found.lemma, found.bound) == (None, None)
    assert "anatomized" in found.why
    size = MODELS["k-anonymity"](k=2)  # groups that were made from quasi-identifiers alone keep the bound
    blind = METHODS["mondrian"](anatomize=2)
    assert promise_of_method(blind, [size], target.context, "s").shown


def test_the_belief_of_who_knows_the_method_is_not_vouched_for() -> None:
    target, _ = published("ppabcd", 0)
    assert not Minimality().applies(target)
    asked = BeliefAtMost(max="1/2", attribute="s")
    found = judge_belief(asked, target)
    assert (found.ok, found.status, found.worst) == (False, "measured", 1)
    assert "anatomized" in found.why
    assert judge_belief(BeliefAtMost(max="1/2", attribute="s", adversary="neighbour"), target).ok
