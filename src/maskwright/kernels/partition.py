"""Partitions of rows: ranges and cuts of many groups at once, and the value counts of groups.

A group is a segment lo..hi of `order`, which lists rows; `codes` holds the rank of each quasi-identifier, one line
per row. A group may consist of cells, runs of `cell` rows, each of which is then cut at its own median. Nothing but
their places in `order` tells rows apart: it may as well list the combinations of values that rows share, again and
again, with one line of `codes` for each. Each function calls the compiled kernel where it is installed and its numpy
twin where it is not; the results are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints, ValueCounts

compiled: ModuleType | None
try:
    from maskwright.kernels import _partition as compiled
except ImportError:  # not compiled at installation
    compiled = None

Int32s = NDArray[np.int32]
Mode = Literal["even", "lt", "le"]
SAMPLE = 2048
RUN = 32  # members of a cell in a sample, at least
WORD = 62  # ranks that share a mask
MODES: dict[Mode, int] = {"even": 0, "lt": 1, "le": 2}


@dataclass(frozen=True, eq=False)
class Covers:
    """How many ground values the label of a range of ranks covers, for every attribute.

    `blocks[first[a] + j*size[a] + rank]` is the block of a rank at the j-th level that labels may use, finest
    first, and `leaves` its ground values. Attributes without levels are labelled by the range itself. Rank 0 is
    missing. `scale` turns a sum of (coverage − 1) into weighted loss.
    """

    blocks: Int32s
    leaves: Int32s
    first: Ints
    size: Ints
    levels: Ints
    base: Ints
    scale: NDArray[np.float64]

    def of(self, a: int, low: Int32s, high: Int32s) -> Ints:
        """The coverage of the ranges low..high of attribute a."""
        result = np.where(high == 0, 0, self.base[a])
        if self.levels[a] == 0:
            return np.where(low > 0, high.astype(np.int64) - low + 1, result)
        for j in reversed(range(int(self.levels[a]))):
            at = int(self.first[a] + j * self.size[a])
            result = np.where(self.blocks[at + low] == self.blocks[at + high], self.leaves[at + low], result)
        return result


def segment_members(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """The places in `order` of all segments, segment after segment, and the segment of each."""
    sizes = hi - lo
    owner = np.repeat(np.arange(len(lo)), sizes)
    before = np.cumsum(sizes) - sizes
    return np.arange(int(sizes.sum())) + np.repeat(lo - before, sizes), owner


def segment_ranges(
    codes: Int32s, order: Int32s, lo: Ints, hi: Ints, kernel: ModuleType | None = compiled
) -> tuple[Int32s, Int32s]:
    """The least and the largest rank of each attribute in each (non-empty) segment, one line per segment."""
    low, high, _ = segment_spans(codes, order, lo, hi, [], kernel)
    return low, high


def segment_spans(
    codes: Int32s,
    order: Int32s,
    lo: Ints,
    hi: Ints,
    wanted: Sequence[tuple[int, int]],
    kernel: ModuleType | None = compiled,
) -> tuple[Int32s, Int32s, Ints]:
    """The least and the largest rank of each attribute in each segment, and which ranks occur.

    Args:
        codes: the rank of each row (line) in each attribute.
        order, lo, hi: the rows of the segments, and where each begins and ends among them.
        wanted: pairs of an attribute and a first rank; for each the WORD ranks from there on that occur, as bits.
        kernel: the compiled kernel; None: numpy.
    """
    n, d = len(lo), codes.shape[1]
    least, most = np.empty((n, d), dtype=np.int32), np.empty((n, d), dtype=np.int32)
    masks = np.zeros((n, len(wanted)), dtype=np.int64)
    if kernel is not None and d:
        column, first = np.array(wanted, dtype=np.int64).reshape(-1, 2).T.copy()
        kernel.ranges(codes, d, order, lo, hi, least, most, column, first, masks)
        return least, most, masks
    if not n:
        return least, most, masks
    places, _ = segment_members(lo, hi)
    starts = np.cumsum(hi - lo) - (hi - lo)
    rows = codes[order[places]]
    for j, (a, begin) in enumerate(wanted):
        bit = rows[:, a].astype(np.int64) - begin
        inside = (bit >= 0) & (bit < WORD)
        masks[:, j] = np.bitwise_or.reduceat(
            np.where(inside, np.int64(1) << bit.clip(0, WORD - 1), 0), starts
        )
    return np.minimum.reduceat(rows, starts, axis=0), np.maximum.reduceat(rows, starts, axis=0), masks


def _sorted(values: Int32s, owner: Ints) -> Ints:
    """The sorted position of each member in its segment, ties in the order of the members."""
    index = np.lexsort((values, owner))  # stable
    place = np.empty(len(values), dtype=np.int64)
    first = np.searchsorted(owner, owner)
    place[index] = np.arange(len(values)) - first[index]
    return place


def _cells(owner: Ints, cell: int) -> Ints:
    """The cell of each member, of segments that consist of cells; 0: a segment is one cell."""
    return np.arange(len(owner)) // cell if cell else owner


def even_bounds(lo: Ints, hi: Ints, parts: int) -> Ints:
    """Where `parts` parts of each segment begin, and its end: sizes differ by at most one, larger ones first."""
    j = np.arange(parts + 1)
    return np.asarray(lo[:, None] + -(-(j * (hi - lo)[:, None]) // parts), dtype=np.int64)


def cut_segments(
    codes: Int32s,
    order: Int32s,
    lo: Ints,
    hi: Ints,
    dims: Int32s,
    mode: Mode = "even",
    parts: int = 2,
    cell: int = 0,
    kernel: ModuleType | None = compiled,
) -> tuple[Int32s, Ints]:
    """Cut each segment along its dimension: the rows part after part, and the bounds of the parts.

    even: by (rank, place in `order`) into parts whose sizes differ by at most one. `cell`: each run of so many rows is
    cut by itself, and a part is the union of the runs' parts, run after run (0: a segment is one run).
    lt: ranks below that at sorted place ⌊n/2⌋ to the left. le: ranks up to that at ⌊(n−1)/2⌋ to the left.
    """
    fresh = order.copy()
    bounds = np.empty((len(lo), parts + 1), dtype=np.int64)
    if kernel is not None:
        kernel.cut(codes, codes.shape[1], order, lo, hi, dims, MODES[mode], parts, cell, fresh, bounds)
        return fresh, bounds
    places, owner = segment_members(lo, hi)
    values = codes[order[places], dims[owner]]
    place, sizes = _sorted(values, _cells(owner, cell)), (hi - lo)[owner]
    if mode == "even":
        part = place * parts // (cell or sizes)
        runs = (hi - lo) // cell if cell else np.ones(len(lo), dtype=np.int64)
        bounds = lo[:, None] + runs[:, None] * even_bounds(0 * lo, (hi - lo) // np.maximum(runs, 1), parts)
    else:
        at = sizes // 2 if mode == "lt" else (sizes - 1) // 2
        middle = np.zeros(len(lo), dtype=np.int32)
        middle[owner[place == at]] = values[place == at]
        part = (values >= middle[owner] if mode == "lt" else values > middle[owner]).astype(np.int64)
        left = np.bincount(owner[part == 0], minlength=len(lo))
        bounds = np.stack([lo, lo + left, hi], axis=1)
    fresh[places] = order[places[np.lexsort((part, owner))]]
    return fresh, bounds


def choose_dimensions(
    codes: Int32s,
    order: Int32s,
    lo: Ints,
    hi: Ints,
    parts: int,
    covers: Covers,
    cell: int = 0,
    kernel: ModuleType | None = compiled,
) -> Int32s:
    """The dimension whose even cut leaves the least loss, ties: the first; −1 where no rank differs (within a cell).

    Large segments are judged by evenly spaced members, of evenly spaced cells where there are many.
    """
    dims = np.full(len(lo), -1, dtype=np.int32)
    large = hi - lo > 4 * SAMPLE
    cells = (hi - lo) // cell if cell else np.ones(len(lo), dtype=np.int64)
    for number in np.unique(cells[large]).tolist():
        some = np.flatnonzero(large & (cells == number))
        sample, run = _sampled(order, lo[some], hi[some], number)
        size = len(sample) // len(some)
        begin = np.arange(len(some), dtype=np.int64) * size
        dims[some] = _choose(codes, sample, begin, begin + size, parts, covers, run, kernel)
    rest = np.flatnonzero(dims < 0)
    dims[rest] = _choose(codes, order, lo[rest], hi[rest], parts, covers, cell, kernel)
    return dims


def _sampled(order: Int32s, lo: Ints, hi: Ints, cells: int) -> tuple[Int32s, int]:
    """Evenly spaced members of evenly spaced cells of segments of so many cells each; and how many of a cell."""
    if cells == 1:
        step = (hi - lo)[:, None] * np.arange(SAMPLE) // SAMPLE
        return order[(lo[:, None] + step).ravel()], SAMPLE
    size = int(hi[0] - lo[0]) // cells
    run = min(size, max(RUN, SAMPLE // cells))
    runs = min(cells, SAMPLE // run)
    places = (cells * np.arange(runs) // runs * size)[:, None] + size * np.arange(run) // run
    return order[(lo[:, None] + places.ravel()).ravel()], run


def _choose(
    codes: Int32s,
    order: Int32s,
    lo: Ints,
    hi: Ints,
    parts: int,
    covers: Covers,
    cell: int,
    kernel: ModuleType | None,
) -> Int32s:
    dims = np.full(len(lo), -1, dtype=np.int32)
    c = covers
    if kernel is not None and int(c.size.max(initial=0)) <= 1 << 24:
        kernel.choose(
            codes, codes.shape[1], order, lo, hi, parts, cell, c.blocks, c.leaves, c.first, c.size, c.levels,
            c.base, c.scale, dims,
        )  # fmt: skip
        return dims
    if not len(lo):
        return dims
    places, owner = segment_members(lo, hi)
    rows, sizes, cells = codes[order[places]], hi - lo, _cells(owner, cell)
    best = np.full(len(lo), np.inf)
    for a in range(codes.shape[1]):
        place = _sorted(rows[:, a], cells)
        part = owner * parts + place * parts // (cell or sizes[owner])
        loss = _loss(rows, part, len(lo) * parts, c).reshape(len(lo), parts, -1).sum(axis=1)
        total = np.zeros(len(lo))
        for b in range(codes.shape[1]):  # in this order, as the compiled kernel adds
            total = total + loss[:, b] * c.scale[b]
        step = (rows[1:, a] != rows[:-1, a]) & (cells[1:] == cells[:-1])
        differs = np.bincount(owner[1:][step], minlength=len(lo)) > 0
        better = differs & (total < best)
        dims[better], best[better] = a, total[better]
    return dims


def _loss(rows: Int32s, part: Ints, n_parts: int, covers: Covers) -> Ints:
    """(coverage − 1)·rows of each part and attribute."""
    index = np.argsort(part, kind="stable")
    sizes = np.bincount(part, minlength=n_parts)
    filled = np.flatnonzero(sizes)
    starts = (np.cumsum(sizes) - sizes)[filled]
    low, high = np.minimum.reduceat(rows[index], starts), np.maximum.reduceat(rows[index], starts)
    loss = np.zeros((n_parts, rows.shape[1]), dtype=np.int64)
    for b in range(rows.shape[1]):
        loss[filled, b] = np.maximum(0, covers.of(b, low[:, b], high[:, b]) - 1) * sizes[filled]
    return loss


def first_rows(
    ids: Int32s, n_ids: int, order: Int32s, lo: Ints, hi: Ints, kernel: ModuleType | None = compiled
) -> tuple[Int32s, Ints]:
    """Segment after segment the listed rows that are the first with their id, and where each segment begins and ends.

    Segments may overlap. With the person of each row as its id, every person of a segment is listed once.
    """
    if kernel is not None:
        fresh, start = np.empty(int((hi - lo).sum()), dtype=np.int32), np.empty(len(lo) + 1, dtype=np.int64)
        kernel.firsts(ids, n_ids, order, lo, hi, fresh, start)
        return fresh[: int(start[-1])], start
    places, owner = segment_members(lo, hi)
    _, first = np.unique(owner * n_ids + ids[order[places]], return_index=True)
    kept = np.sort(first)
    sizes = np.bincount(owner[kept], minlength=len(lo))
    return order[places[kept]], np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def count_values(
    values: Int32s,
    domain: tuple[str, ...],
    order: Int32s,
    lo: Ints,
    hi: Ints,
    ordered: bool = False,
    kernel: ModuleType | None = compiled,
) -> ValueCounts:
    """How often each code of `values` (one per number that `order` may list) occurs in each segment."""
    radix = len(domain) + 1
    if kernel is None:
        places, owner = segment_members(lo, hi)
        codes = values[order[places]].astype(np.int64)
        return ValueCounts.collect(
            domain, len(lo), owner, codes, np.ones(len(codes), dtype=np.int64), ordered
        )
    room = int(np.minimum(hi - lo, radix).sum())
    start = np.empty(len(lo) + 1, dtype=np.int64)
    found, counts = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int64)
    used = kernel.count(values, radix, order, lo, hi, start, found, counts)
    # views would keep the room for every row: most of it where many rows of a group share a value
    return ValueCounts(domain, start, found[:used].copy(), counts[:used].copy(), ordered)
