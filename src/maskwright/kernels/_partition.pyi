from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def counting(keys: Array, n_keys: int, order: Array) -> None: ...
def deal(owner: Array, start: Array, items: Array) -> None: ...
def ranges(codes: Array, d: int, order: Array, lo: Array, hi: Array, least: Array, most: Array) -> None: ...
def cut(
    codes: Array, d: int, order: Array, lo: Array, hi: Array, dims: Array, mode: int, parts: int, cell: int,
    fresh: Array, bounds: Array,
) -> None: ...  # fmt: skip
def choose(
    codes: Array, d: int, order: Array, lo: Array, hi: Array, parts: int, cell: int, blocks: Array,
    leaves: Array, first: Array, size: Array, levels: Array, base: Array, scale: Array, dims: Array,
) -> None: ...  # fmt: skip
def count(
    values: Array, radix: int, order: Array, lo: Array, hi: Array, start: Array, codes: Array, counts: Array
) -> int: ...
def firsts(
    ids: Array, n_ids: int, order: Array, lo: Array, hi: Array, fresh: Array, start: Array
) -> None: ...
def greedy(
    values: Array, rules: Array, radix: Array, n: int, bucket: int, extend: Array, closes: Array
) -> None: ...
def anatomy(
    counts: Array, n_values: int, l: int, rows: Array, group_of: Array, groups: Array, cursor: Array
) -> None: ...
