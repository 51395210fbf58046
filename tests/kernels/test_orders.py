"""Rows that take turns: the kernel and its twin, and arrays that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.kernels.tuple_orders import compiled, items_of_owners

KERNELS = [None] if compiled is None else [None, compiled]


@given(st.lists(st.integers(-1, 5), max_size=200))
def test_rows_take_the_items_of_their_owner_in_order(owners: list[int]) -> None:
    rows = [owners.count(k) for k in range(7)]  # the last owner has none
    start = np.append(0, np.cumsum(rows))
    items = np.arange(100, 100 + start[-1], dtype=np.int32)
    left = {k: items[start[k] : start[k + 1]].tolist() for k in range(7)}
    expected = [-1 if k < 0 else left[k].pop(0) for k in owners]
    for kernel in KERNELS:
        assert items_of_owners(np.array(owners, dtype=np.int32), start, items, kernel).tolist() == expected


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("owners", [[0, 0, 1], [0, 1, 1, 1], [0, 2, 1], [0, 1], [1, 1, 1]])
def test_rows_that_are_not_those_of_the_items_are_refused(owners: list[int], kernel: object) -> None:
    start, items = np.array([0, 1, 3]), np.arange(3, dtype=np.int32)
    with pytest.raises(ValueError, match="do not fit"):
        items_of_owners(np.array(owners, dtype=np.int32), start, items, kernel)  # type: ignore[arg-type]
