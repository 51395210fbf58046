"""The groups that classes were split from: trees, merged classes, and (n,t)-closeness, against plain sets."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from maskwright.domain.classes import Ancestors, Classes, ValueCounts, tree_of
from maskwright.domain.model import Context
from maskwright.models import MODELS
from tests.amounts import repeated


def random_tree(rng: np.random.Generator, most: int = 12) -> Ancestors:
    """A tree by repeated splits, as the methods make them: numbers from the root down."""
    parent, leaves = [-1], [0]
    for _ in range(int(rng.integers(0, most))):
        leaf = leaves.pop(int(rng.integers(len(leaves))))
        for _ in range(int(rng.integers(2, 4))):
            parent.append(leaf)
            leaves.append(len(parent) - 1)
    rng.shuffle(leaves)
    return tree_of(np.array(leaves), np.array(parent))


def families(tree: Ancestors) -> dict[int, list[frozenset[int]]]:
    """For each class its ancestors, nearest first, as sets of classes."""
    inside: dict[int, set[int]] = {}
    chains: dict[int, list[int]] = {}
    for c in range(tree.n):
        node, chain = int(tree.parent[c]), []
        while node >= 0:
            inside.setdefault(node, set()).add(c)
            chain.append(node)
            node = int(tree.parent[node])
        chains[c] = chain
    return {c: [frozenset(inside[node]) for node in chain] for c, chain in chains.items()}


@pytest.mark.parametrize("seed", repeated(60))
def test_trees_sums_and_merged_classes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    found = families(tree)
    assert all(len(family) for family in found.values()) == (tree.n > 1)
    for c, family in found.items():
        assert all(c in group for group in family)
        assert all(small < large for small, large in pairwise(family))
        assert not family or family[-1] == frozenset(range(tree.n))
    sizes = rng.integers(1, 9, tree.n)
    sums = tree.sums(sizes)
    for c, family in found.items():
        node = int(tree.parent[c])
        assert not family or int(sums[node]) == sum(int(sizes[i]) for i in family[0])
    n = int(rng.integers(1, tree.n + 1))
    class_of = np.concatenate([np.arange(n), rng.integers(-1, n, tree.n - n)])
    rng.shuffle(class_of)
    after = families(tree.merged(class_of, n))
    for c in range(n):
        parts = [i for i in range(tree.n) if class_of[i] == c]
        expected = []
        for group in found[parts[0]]:
            new = {int(class_of[i]) for i in group if class_of[i] >= 0}
            members = {i for i in range(tree.n) if class_of[i] in new}
            if members <= group:  # no class is cut
                expected.append(frozenset(new))
        assert after[c] == expected


@pytest.mark.parametrize("seed", repeated(40))
def test_nt_closeness_takes_the_ancestors_as_supersets(seed: int) -> None:
    """The tree says the same as the lists of classes that the definition speaks of, with the whole table added."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    owner = np.repeat(np.arange(tree.n), 3)
    counts = ValueCounts.collect(
        ("a", "b", "c"), tree.n, owner, np.tile(np.arange(1, 4), tree.n), rng.integers(0, 5, 3 * tree.n) + 1
    )
    sizes = np.array([sum(counts.of_class(c).values()) for c in range(tree.n)])
    plain = Classes(sizes, sizes, {"s": counts})
    context = Context(reference={"s": counts.totals}, n_people=int(sizes.sum()))
    everybody = [frozenset(range(tree.n))]
    lists = [[sorted(group) for group in [*family, *everybody]] for family in families(tree).values()]
    model = MODELS["nt-closeness"](n=int(rng.integers(1, 30)), t=Fraction(1, 5), attribute="s")
    ours = model.check(Classes(sizes, sizes, {"s": counts}, ancestors=tree), context)
    theirs = model.check(plain, Context(context.reference, context.n_people, supersets=lists))
    assert ours.passes.tolist() == theirs.passes.tolist()
    assert list(ours.values) == list(theirs.values)
    alone = model.check(plain, context)
    assert all(a <= b for a, b in zip(ours.values, alone.values, strict=True))


def test_a_circle_is_refused() -> None:
    for parent in ([2, 2, 1], [1, -1], [5, -1]):
        with pytest.raises(ValueError, match="higher number"):
            Ancestors(2, np.array(parent))
