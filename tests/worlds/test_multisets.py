"""Tables of counts: how many there are, against listing them all."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from maskwright.worlds.counting.multisets import count_tables


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.data())
def test_tables_of_counts_as_listed(items: list[int], data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    rows = [list(product(*(range(n + 1) for n in items)))] * len(sizes)
    listed = sum(
        all(sum(row) == size for row, size in zip(table, sizes, strict=True))
        and all(sum(column) <= n for column, n in zip(zip(*table, strict=True), items, strict=True))
        for table in product(*rows)
    )
    assert count_tables(tuple(items), sizes, 10**6) == listed
    assert count_tables(tuple(items), sizes, 3) == min(listed, 4)


def test_too_many_tables_are_not_counted_to_the_end() -> None:
    assert count_tables((1,) * 80, [2] * 40, 1000) == 1001
