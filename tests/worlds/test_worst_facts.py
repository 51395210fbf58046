"""The worst facts on top of any worlds, against every set of implications and negations."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maskwright.worlds.statements.disclosure import WorldBlock, bound_when_left, max_disclosure, worst_facts
from tests.oracles.facts import atoms_of, largest_belief
from tests.oracles.worlds import orders

World = tuple[int, ...]


def implications(worlds: list[World], k: int) -> Fraction:
    """The largest belief from at most k implications between atoms, any to any."""
    everything, atoms = (1 << len(worlds)) - 1, atoms_of(worlds, range(len(worlds[0]))).values()
    return largest_belief(everything, atoms, ((everything & ~a) | b for a in atoms for b in atoms), k)


def negations(worlds: list[World], k: int) -> Fraction:
    """The same from negations of atoms."""
    everything, atoms = (1 << len(worlds)) - 1, atoms_of(worlds, range(len(worlds[0]))).values()
    return largest_belief(everything, atoms, (everything & ~a for a in atoms), k)


WORLDS = st.lists(st.tuples(*[st.integers(1, 2)] * 3), min_size=1, max_size=6)


@given(WORLDS, st.integers(1, 2))
def test_against_every_set_of_facts(worlds: list[World], k: int) -> None:
    block = WorldBlock(np.array(worlds), np.arange(3), 0, k)
    found = worst_facts([block], k)
    assert found is not None
    most = implications(worlds, k)
    assert found.belief == most
    assert block.negated[k] <= most
    assert block.negated[k] == negations(worlds, k)


@given(WORLDS, WORLDS, st.integers(1, 2))
def test_independent_blocks_are_combined(one: list[World], two: list[World], k: int) -> None:
    blocks = [WorldBlock(np.array(one), np.arange(3), 0, k), WorldBlock(np.array(two), np.arange(3, 6), 0, k)]
    both = [a + b for a, b in product(one, two)]
    whole = worst_facts([WorldBlock(np.array(both), np.arange(6), 0, k)], k)
    found = worst_facts(blocks, k)
    assert found is not None and whole is not None
    assert found.belief == whole.belief
    target, *others = found.atoms
    left = [w for w in both if all(w[p] != v or w[target[0]] == target[1] for p, v in others)]
    assert found.belief == Fraction(sum(w[target[0]] == target[1] for w in left), len(left))


def test_where_every_deal_is_possible_it_is_maximum_disclosure() -> None:
    worlds = orders([1, 1, 2, 3])
    for k in range(3):
        found = worst_facts([WorldBlock(np.array(worlds), np.arange(4), 0, k)], k)
        assert found is not None
        assert found.belief == max_disclosure([{"a": 2, "b": 1, "c": 1}], k).implications[k]


def test_more_facts_than_there_are_atoms() -> None:
    found = worst_facts([WorldBlock(np.array([[1], [1]]), np.arange(1), 0, 3)], 3)
    assert found is not None and found.belief == 1


def test_missing_is_nothing_to_learn() -> None:
    assert worst_facts([WorldBlock(np.zeros((3, 2), dtype=np.int64), np.arange(2), 0, 1)], 1) is None


@given(
    st.lists(st.integers(1, 3), min_size=2, max_size=4), st.integers(0, 2), st.randoms(use_true_random=False)
)
def test_the_bound_is_one(values: list[int], k: int, random: object) -> None:
    """Whatever worlds are left, nobody believes more than the bound says for so many of them."""
    everything = orders(values)
    left = [w for w in everything if random.random() < 0.8] or everything  # type: ignore[attr-defined]
    counts = {str(v): values.count(v) for v in set(values)}
    ratio = max_disclosure([counts], k).ratios[k]
    assert ratio is not None
    found = worst_facts([WorldBlock(np.array(left), np.arange(len(values)), 0, k)], k)
    assert found is not None
    assert found.belief <= bound_when_left(ratio, Fraction(len(left), len(everything)), k)


def test_the_bound_is_sharp_without_a_method() -> None:
    assert bound_when_left(Fraction(1, 2), Fraction(1), 3) == Fraction(2, 3)
    assert bound_when_left(Fraction(1, 2), Fraction(1, 2), 1) == 1
