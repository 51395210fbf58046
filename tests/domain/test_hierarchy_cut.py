"""A hierarchy without what is finer than a level."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.errors import HierarchyError

VALUES = [str(i) for i in range(24)]


def by(width: int) -> list[str]:
    return [f"{i // width}/{width}" for i in range(24)]


CHAIN = Hierarchy.of("a", VALUES, [("two", by(2)), ("four", by(4)), ("twelve", by(12))], ordered=True)
DAG = Hierarchy.of(
    "a", VALUES, [("two", by(2)), ("three", by(3)), ("six", by(6)), ("twelve", by(12))], chain=False
)


@pytest.mark.parametrize("whole", [CHAIN, DAG], ids=["chain", "DAG"])
@given(st.data())
def test_every_value_keeps_its_labels(whole: Hierarchy, data: st.DataObject) -> None:
    level = data.draw(st.integers(0, whole.top - 1))
    cut = whole.cut_at(level)
    code = {value: i + 1 for i, value in enumerate(cut.values)} | {None: 0}
    for number, mine in zip(cut.numbers, cut.levels, strict=True):
        theirs = whole.levels[number]
        assert mine.name == theirs.name
        for raw in range(len(VALUES) + 1):
            ground = whole.levels[level].labels[whole.levels[level].blocks[raw]]
            assert mine.labels[mine.blocks[code[ground]]] == theirs.labels[theirs.blocks[raw]]
    assert cut.levels[-1].labels == (TOP,)
    assert sorted(v for c in range(1, len(cut.values) + 1) for v in cut.members(c)) == sorted(VALUES)
    again = Hierarchy.from_dict(cut.to_dict())
    assert (again.values, again.numbers, again.ordered) == (cut.values, cut.numbers, cut.ordered)
    assert (again.refines == cut.refines).all()


def test_levels_keep_their_numbers_and_names() -> None:
    cut = CHAIN.cut_at(2)
    assert cut.numbers == (2, 3, 4)
    assert [cut.level_of(x) for x in (2, "four", "3", "twelve", 4, "any")] == [0, 0, 1, 1, 2, 2]
    assert cut.uncut(1) == (CHAIN, 3)
    assert CHAIN.uncut(1) == (CHAIN, 1)
    with pytest.raises(
        HierarchyError, match=r"no level '1'; it has 2 \(four\), 3 .*those below `finest` too"
    ):
        cut.level_of(1)


def test_of_a_partial_order_only_what_is_coarser_is_left() -> None:
    names = [level.name for level in DAG.cut_at(DAG.level_of("three")).levels]
    assert names == ["three", "six", "twelve", "any"]


def test_order_is_kept_where_blocks_are_runs() -> None:
    assert CHAIN.cut_at(1).ordered
    odd = Hierarchy.of("a", VALUES, [("parity", [str(i % 2) for i in range(24)])], ordered=True)
    assert not odd.cut_at(1).ordered


def test_a_stored_cut_that_cannot_be() -> None:
    for finest in (-99, 99, "two", None):
        with pytest.raises(HierarchyError, match="a stored hierarchy is damaged"):
            Hierarchy.from_dict(CHAIN.to_dict() | {"finest": finest})
