"""Anatomy: buckets of different values, random picks, blocks, ranges, and anatomization of other groups."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.kernels import partition
from maskwright.methods._rows.anatomize import anatomize_groups, bucket_rows, eligible_blocks
from maskwright.methods._rows.rows import Partition
from maskwright.methods.anatomy import Anatomy, cut_into_blocks
from maskwright.methods.greedy_grouping import GreedyGrouping
from maskwright.methods.mondrian import Mondrian
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.methods.symmetric_grouping import SymmetricGrouping
from maskwright.models import MODELS
from maskwright.worlds.reference_methods import anatomy_counts, anatomy_publications
from maskwright.worlds.sampling.possible_worlds import as_publication
from tests.methods.row_tables import adult_rows, build, groups_of, holds


def random_blocks(rng: np.random.Generator, l: int) -> tuple[np.ndarray, Partition]:  # noqa: E741
    """Values of rows, and blocks of them that are eligible (by trial)."""
    while True:
        n = int(rng.integers(l, 40))
        values = rng.integers(0, int(rng.integers(l, 8)), n).astype(np.int32)
        order = rng.permutation(n).astype(np.int32)
        start = np.unique([0, n, int(rng.integers(0, n + 1))]).astype(np.int64)
        blocks = Partition(order, start)
        if eligible_blocks(values, 8, blocks, l)[0].all():
            return values, blocks


@pytest.mark.parametrize("kernel", [partition.compiled, None])
@pytest.mark.parametrize("l", [1, 2, 3])
def test_buckets(l: int, kernel: object) -> None:  # noqa: E741
    rng = np.random.default_rng(l)
    for _ in range(150):
        values, blocks = random_blocks(rng, l)
        made = bucket_rows(values, 8, blocks, l, np.random.default_rng(3), kernel)  # type: ignore[arg-type]
        assert sorted(made.order.tolist()) == sorted(blocks.order.tolist())
        home = {i: b for b, block in enumerate(groups_of(blocks)) for i in block}
        formed = Counter()
        for bucket in groups_of(made):
            held = [int(values[i]) for i in bucket]
            assert len(set(held)) == len(held) >= l
            assert len({home[i] for i in bucket}) == 1
            formed[home[next(iter(bucket))]] += 1
        for b, block in enumerate(groups_of(blocks)):
            counted, _ = anatomy_counts(list(Counter(int(values[i]) for i in block).values()), l)
            assert formed[b] == counted


def test_the_kernel_and_its_twin_pick_the_same_rows() -> None:
    if partition.compiled is None:
        pytest.skip("no compiled kernel")
    rng = np.random.default_rng(9)
    for _ in range(100):
        values, blocks = random_blocks(rng, 2)
        ours, theirs = (
            bucket_rows(values, 8, blocks, 2, np.random.default_rng(1), k) for k in (partition.compiled, None)
        )
        assert groups_of(ours) == groups_of(theirs)


def test_publications_have_the_probabilities_of_the_definition() -> None:
    """6,000 draws against the exact distribution: no row is preferred, which is what makes Anatomy safe."""
    sa = ["a", "a", "b", "b", "c"]
    exact = anatomy_publications(sa, 2)
    values = np.array([{"a": 1, "b": 2, "c": 3}[v] for v in sa], dtype=np.int32)
    rng, seen = np.random.default_rng(0), Counter()
    for _ in range(6000):
        seen[as_publication(groups_of(bucket_rows(values, 4, cut_into_blocks(5, 5), 2, rng)))] += 1
    assert set(seen) == set(exact)
    for outcome, chance in exact.items():
        assert abs(seen[outcome] / 6000 - chance) < 0.03
    assert len(exact) > 3


@pytest.mark.parametrize("options", [{"l": 3}, {}, {"l": 3, "block": 7000, "order": "hilbert"}])
def test_promises_on_adult(options: dict[str, object]) -> None:
    table = adult_rows("occupation")
    models = [MODELS["simple-l-diversity"](l=3, attribute="occupation")]
    task = table.task(models)
    grouping = Anatomy(**options).group(task)
    holds(grouping, task)
    assert grouping.dropped_rows == 0
    assert int(grouping.classes.sizes.max()) < 2 * grouping.search["l"]
    again, other = (Anatomy(**options).group(table.task(models, seed)) for seed in (0, 1))
    assert np.array_equal(grouping.allocation.groups, again.allocation.groups)
    assert not np.array_equal(grouping.allocation.groups, other.allocation.groups)


def test_ranges_of_a_numeric_value() -> None:
    sa = [str(v) for v in (5, 1, 3, 2, 4, 2, 9)]
    table = build(
        [[i] for i in range(7)], {"s": sa}, domains={"s": [str(v) for v in range(10)]}, ordered=True
    )
    task = table.task([MODELS["distinct-l-diversity"](l=2, attribute="s")])
    grouping = Anatomy(by="ranges").group(task)
    holds(grouping, task)
    counts = grouping.classes.sensitive["s"]
    ranges = [sorted(int(v) for v in counts.of_class(c)) for c in range(counts.n_classes)]
    assert ranges == [[1, 2], [2, 3], [4, 5, 9]]


def test_anatomization_of_a_full_domain_grouping() -> None:
    """Classes of optimal-lattice, rows suppressed and all: the suppressed rows stay dropped."""
    table = adult_rows("occupation")
    task = table.task([MODELS["k-anonymity"](k=3)])
    base = OptimalLattice(suppression="2%").group(task)
    grouping = anatomize_groups(task, base, 3)
    holds(grouping, task)
    assert grouping.dropped_rows == base.dropped_rows > 0
    assert grouping.classes.n > 2 * base.classes.n
    assert "note" not in grouping.search


def test_what_is_refused() -> None:
    table = build([[i] for i in range(5)], {"s": ["a", "a", "a", "b", "c"]})
    with pytest.raises(PolicyNotMet, match="3 of the 5 rows of the table, more than one in 2"):
        Anatomy(l=2).group(table.task([]))
    with pytest.raises(PolicyNotMet, match=r"block 1 of 2.*larger blocks"):
        Anatomy(l=2, block=2).group(table.task([]))
    with pytest.raises(PolicyError, match="give l"):
        Anatomy().group(table.task([MODELS["k-anonymity"](k=2)]))
    with pytest.raises(PolicyError, match="needs values with an order"):
        Anatomy(by="ranges").group(table.task([MODELS["k-anonymity"](k=2)]))
    two = build([[0], [1]], {"s": ["a", "b"], "t": ["a", "b"]})
    with pytest.raises(PolicyError, match="say which attribute; sensitive are s, t"):
        Anatomy(l=2).group(two.task([]))
    assert Anatomy(l=2, attribute="t").group(two.task([])).classes.n == 1


@pytest.mark.parametrize(
    "method", [Mondrian(anatomize=3), GreedyGrouping(anatomize=3), SymmetricGrouping(anatomize=3)]
)
def test_anatomization_of_other_groups(method: Mondrian | GreedyGrouping | SymmetricGrouping) -> None:
    table = adult_rows("occupation")
    task = table.task([MODELS["simple-l-diversity"](l=3, attribute="occupation")])
    grouping = method.group(task)
    holds(grouping, task)
    assert grouping.search["groups"] > 3 * grouping.search["groups_before"] / 2
    assert int(grouping.classes.sizes.max()) < 6
    assert "the method's bound does not hold" in grouping.search["note"]
    found = Mondrian(cut="relaxed", min_child=30, anatomize=3).group(table.task([MODELS["k-anonymity"](k=3)]))
    # groups made from quasi-identifiers alone keep the bound; those with a too frequent value stay whole
    assert "note" not in found.search
    counts = found.classes.sensitive["occupation"]
    whole = sum(int(counts.counts[s:e].max()) * 3 > int(n)
                for s, e, n in zip(counts.start, counts.start[1:], found.classes.sizes, strict=False))  # fmt: skip
    assert whole == found.search["groups_left_whole"]
