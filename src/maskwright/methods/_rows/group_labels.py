"""Labels of groups of rows: the smallest block of the hierarchy that covers a group, a range, or a set.

Every label covers all values of its group. A group whose values are all missing is published as missing; one
that mixes missing and other values as `*`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_dot
from maskwright.domain.grouping import Grouping, Labels
from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.domain.method import Task
from maskwright.domain.summary import Summary
from maskwright.errors import PolicyNotMet
from maskwright.kernels.partition import WORD, Covers, Int32s, segment_spans
from maskwright.methods._rows.axes import Axis, axes_of, tuple_ranks

LabelStyle = Literal["hierarchy", "ranges"]
AnyStyle = Literal["hierarchy", "ranges", "fixed"]  # the last: of what the cuts leave, not of the rows
Numbers = NDArray[np.integer[Any]]
CHUNK = 1 << 20  # groups that are labelled at a time


def usable_levels(hierarchy: Hierarchy, levels: Mapping[str, Sequence[int]], style: LabelStyle) -> list[int]:
    """The levels that labels may come from, finest first; none: the label is a range or a set.

    A policy that restricts the levels of a column is obeyed in either style: a range could tell more.
    """
    allowed = levels.get(hierarchy.attribute)
    if allowed is not None:
        return sorted(set(allowed), key=lambda j: (int(hierarchy.heights[j]), j))
    if len(hierarchy.levels) <= 2 or (style == "ranges" and hierarchy.ordered):
        return []
    return sorted(range(len(hierarchy.levels)), key=lambda j: (int(hierarchy.heights[j]), j))


def label_covers(
    axes: Sequence[Axis],
    levels: Mapping[str, Sequence[int]],
    style: LabelStyle,
    weights: Mapping[str, Fraction],
) -> Covers:
    """What `label_groups` would cover, as tables by rank."""
    blocks, leaves, first, size, number, base = [], [], [], [], [], []
    at = 0
    for axis in axes:
        used = usable_levels(axis.hierarchy, levels, style)
        for level in (axis.hierarchy.levels[j] for j in used):
            blocks.append(level.blocks[axis.code])
            leaves.append(level.leaves[blocks[-1]])
        first.append(at)
        size.append(len(axis.code))
        number.append(len(used))
        base.append(axis.hierarchy.base)
        at += len(used) * len(axis.code)
    share = [weights.get(axis.hierarchy.attribute, Fraction(1)) for axis in axes]
    total = sum(share, Fraction(0)) or Fraction(1)
    scale = [float(w / total / (b - 1)) if b > 1 else 0.0 for w, b in zip(share, base, strict=True)]
    return Covers(
        blocks=np.concatenate([*blocks, np.empty(0, np.int32)]).astype(np.int32),
        leaves=np.concatenate([*leaves, np.empty(0, np.int32)]).astype(np.int32),
        first=np.array(first, dtype=np.int64),
        size=np.array(size, dtype=np.int64),
        levels=np.array(number, dtype=np.int64),
        base=np.array(base, dtype=np.int64),
        scale=np.array(scale, dtype=np.float64),
    )


def label_groups(
    summary: Summary, levels: Mapping[str, Sequence[int]], style: LabelStyle, tuples: Int32s, start: Ints
) -> tuple[tuple[Labels, ...], Int32s]:
    """The labels of groups; group g holds the rows with tuples `tuples[start[g]:start[g + 1]]`.

    Also their numbers, one line per attribute, which the labels share: there may be millions of groups.
    """
    axes = axes_of(summary)
    codes = np.empty((len(axes), len(start) - 1), dtype=np.int32)
    if not axes:
        return (), codes
    used = [usable_levels(axis.hierarchy, levels, style) for axis in axes]
    sets = [not used[a] and not axis.hierarchy.ordered for a, axis in enumerate(axes)]
    matrix = tuple_ranks(summary, axes)
    ends, words = _held(matrix, [len(axis.code) for axis in axes], sets, np.ascontiguousarray(tuples), start)
    result = []
    for a, axis in enumerate(axes):
        if sets[a]:
            labels = _sets(axis, words.pop(a))
        elif used[a]:
            labels = _blocks(axis, used[a], Spans(*ends.pop(a), matrix[:, a], tuples, start[:-1]))
        else:
            labels = _ranges(axis.hierarchy, *ends.pop(a))
        codes[a] = labels.of_group
        result.append(replace(labels, of_group=codes[a]))
    return tuple(result), codes


def label_regions(
    summary: Summary, levels: Mapping[str, Sequence[int]], low: Int32s, high: Int32s
) -> tuple[tuple[Labels, ...], Int32s]:
    """The labels of groups that are known by what their cuts leave of each column, not by their rows.

    `low` and `high` are the least and the largest rank, one line per group. See `label_groups`.
    """
    result = []
    codes = np.empty((low.shape[1], len(low)), dtype=np.int32)
    for a, axis in enumerate(axes_of(summary)):
        pairs, of_group = np.unique(np.stack([low[:, a], high[:, a]]), axis=1, return_inverse=True)
        least, most = pairs
        start = np.concatenate([[0], np.cumsum(most - least + 1)]).astype(np.int64)
        inside = (
            np.arange(start[-1]) - np.repeat(start[:-1], np.diff(start)) + np.repeat(least, np.diff(start))
        )
        every = replace(summary, attributes=(axis.hierarchy,), codes=axis.code[None, :])
        labels = label_groups(every, levels, "hierarchy", inside.astype(np.int32), start)[0][0]
        codes[a] = labels.of_group[of_group.reshape(-1)]
        result.append(replace(labels, of_group=codes[a]))
    return tuple(result), codes


def _held(
    matrix: Int32s, sizes: Sequence[int], sets: Sequence[bool], tuples: Int32s, start: Ints
) -> tuple[dict[int, tuple[Numbers, Numbers]], dict[int, list[Numbers]]]:
    """By attribute the least and the largest rank of each group; or, for sets, words that say which ranks it holds.

    Each in the smallest type that has room for it, for some groups at a time: together they are much smaller than
    what the kernel gives for all.
    """
    n, d = len(start) - 1, len(sizes)
    wanted = [(a, first) for a in range(d) if sets[a] for first in range(0, sizes[a], WORD)]
    bits = [min(WORD, sizes[a] - first) for a, first in wanted]
    found = [np.empty(n, dtype=np.min_scalar_type((1 << b) - 1)) for b in bits]
    ends = {
        a: tuple(np.empty(n, dtype=np.min_scalar_type(sizes[a])) for _ in range(2))
        for a in range(d)
        if not sets[a]
    }
    for at in range(0, n, CHUNK):
        part = slice(at, min(n, at + CHUNK))
        lo, hi = start[:-1][part].copy(), start[1:][part].copy()
        *least_and_most, masks = segment_spans(matrix, tuples, lo, hi, wanted)
        for a, pair in ends.items():
            for side, ranks in zip(pair, least_and_most, strict=True):
                side[part] = ranks[:, a]
        for j, word in enumerate(found):
            word[part] = masks[:, j]
    words: dict[int, list[Numbers]] = {a: [] for a in range(d) if sets[a]}
    for (a, _), word in zip(wanted, found, strict=True):
        words[a].append(word)
    return ends, words  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Spans:
    """The least and the largest rank of each group; and, where that is not enough, the rank of every row."""

    low: Numbers
    high: Numbers
    of_tuple: Int32s
    tuples: Int32s
    start: Ints

    def pairs(self, radix: int) -> tuple[Spans, Int32s]:
        """The few pairs of least and largest rank that occur, and the pair of each group."""
        low, high, of_group = _pairs(self.low, self.high, radix)
        return Spans(low, high, self.of_tuple, self.tuples, self.start), of_group

    def inside(self, blocks: Int32s) -> NDArray[np.bool_]:
        """Which groups lie in one block, by the rank of every row."""
        of_row = blocks[np.ascontiguousarray(self.of_tuple)[self.tuples]]
        return np.asarray(np.minimum.reduceat(of_row, self.start) == np.maximum.reduceat(of_row, self.start))


def information_loss(grouping: Grouping, shares: list[Fraction]) -> Fraction:
    """Weighted mean, over attributes and rows, of (coverage − 1)/(base − 1); a suppressed row loses everything.

    An attribute with a single ground value has nothing to lose.
    """
    rows = grouping.classes.rows.copy()
    if grouping.starred is not None:
        rows[grouping.starred] = 0
    loss = Fraction(0)
    for hierarchy, labels, share in zip(grouping.summary.attributes, grouping.labels, shares, strict=True):
        if hierarchy.base > 1:
            extra = np.maximum(labels.coverage[labels.of_group], 1) - 1
            lost = Fraction(exact_dot(extra, rows), hierarchy.base - 1)
            loss += share * (lost + grouping.suppressed_rows)
    return loss / grouping.summary.n_rows


def attribute_shares(task: Task) -> list[Fraction]:
    """How much each quasi-identifier weighs in the loss; they sum to 1."""
    raw = [task.weights.get(h.attribute, Fraction(1)) for h in task.summary.attributes]
    total = sum(raw)
    return [w / total for w in raw] if total else [Fraction(1, len(raw))] * len(raw)


def _blocks(axis: Axis, used: Sequence[int], held: Spans) -> Labels:
    """The smallest allowed block around each group; of equally small ones that of the finer level."""
    hierarchy = axis.hierarchy
    of_rank = [hierarchy.levels[j].blocks[axis.code] for j in used]
    neighbours = [_contiguous(blocks) for blocks in of_rank]
    of_pair: Int32s | None = None
    if all(neighbours):  # then the least and the largest rank decide
        held, of_pair = held.pairs(len(axis.code))
    low, high = held.low, held.high
    coverage = np.full(len(low), np.iinfo(np.int64).max, dtype=np.int64)
    chosen = np.full(len(low), -1, dtype=np.int64)
    radix = max(len(hierarchy.levels[j].labels) for j in used)
    for i, (j, blocks) in enumerate(zip(used, of_rank, strict=True)):
        leaves, block = hierarchy.levels[j].leaves, blocks[low]
        inside = block == blocks[high] if neighbours[i] else held.inside(blocks)
        better = inside & (leaves[block] < coverage)
        coverage[better] = leaves[block[better]]
        chosen[better] = i * radix + block[better]
    if (chosen < 0).any():
        names = ", ".join(hierarchy.levels[j].name for j in used)
        raise PolicyNotMet(
            f"column {hierarchy.attribute!r}: a group spreads over several labels of the coarsest allowed level "
            f"(allowed: {names}); allow the top level {hierarchy.levels[-1].name!r} in `levels`, leave the column "
            "out of `keep`, or take method optimal-lattice or local-recoding, which search within the levels allowed"
        )
    keys, of_group = _numbered(chosen, len(used) * radix)
    texts = [hierarchy.levels[used[k // radix]].labels[k % radix] for k in keys.tolist()]
    leaves_ = [int(hierarchy.levels[used[k // radix]].leaves[k % radix]) for k in keys.tolist()]
    return _labels(hierarchy, texts, leaves_, of_group if of_pair is None else of_group[of_pair])


def _contiguous(blocks: Int32s) -> bool:
    """Is every block a run of neighbouring ranks?"""
    return int((np.diff(blocks) != 0).sum()) + 1 == len(np.unique(blocks))


def _ranges(hierarchy: Hierarchy, low: Numbers, high: Numbers) -> Labels:
    """first-last; a single value is itself."""
    least, most, of_group = _pairs(low, high, hierarchy.base + 1)
    texts: list[str | None] = []
    leaves = []
    for a, b in zip(least.tolist(), most.tolist(), strict=True):
        everything = a == 0 or b - a + 1 == hierarchy.base
        if a == b:
            texts.append(hierarchy.values[a - 1] if a else None)
        else:
            texts.append(TOP if everything else hierarchy.value_labels.range_label(a, b))
        leaves.append(0 if b == 0 else hierarchy.base if a == 0 else b - a + 1)
    return _labels(hierarchy, texts, leaves, of_group)


def _sets(axis: Axis, words: Sequence[Numbers]) -> Labels:
    """{a, b}; a single value is itself, all of them are `*`. The words say which ranks a group holds, as bits."""
    hierarchy = axis.hierarchy
    if len(words) == 1:
        single, of_group = _numbered(words[0], 1 << min(WORD, len(axis.code)))
        keys: Numbers = single[None, :]
    else:
        keys, inverse = np.unique(np.stack(words), axis=1, return_inverse=True)
        of_group = inverse.reshape(-1).astype(np.int32)
    texts: list[str | None] = []
    leaves = []
    for column in keys.T.tolist():
        inside = [WORD * w + b for w, word in enumerate(column) for b in range(WORD) if word >> b & 1]
        if inside[0] == 0:
            texts.append(TOP if len(inside) > 1 else None)
            leaves.append(hierarchy.base if len(inside) > 1 else 0)
            continue
        held = axis.code[inside].tolist()
        one, whole = len(held) == 1, len(held) == hierarchy.base
        texts.append(
            hierarchy.values[held[0] - 1] if one else TOP if whole else hierarchy.value_labels.set_label(held)
        )
        leaves.append(len(held))
    return _labels(hierarchy, texts, leaves, of_group)


def _pairs(low: Numbers, high: Numbers, radix: int) -> tuple[Ints, Ints, Int32s]:
    """The distinct pairs of ranks (below radix), ascending, and which of them each pair is."""
    kind = np.min_scalar_type(radix * radix)
    keys, of_group = _numbered(low.astype(kind) * kind.type(radix) + high.astype(kind), radix * radix)
    return keys // radix, keys % radix, of_group


def _numbered(keys: Numbers, radix: int) -> tuple[Ints, Int32s]:
    """The distinct keys (from 0 to radix − 1), ascending, and which of them each key is."""
    chunks = [slice(at, at + CHUNK) for at in range(0, len(keys), CHUNK)]
    of_key = np.empty(len(keys), dtype=np.int32)
    if radix > max(1 << 16, len(keys)):
        found = np.unique(np.concatenate([np.unique(keys[part]) for part in chunks] or [keys]))
        for part in chunks:
            of_key[part] = np.searchsorted(found, keys[part])
        return found.astype(np.int64), of_key
    there = np.zeros(radix, dtype=bool)
    for part in chunks:
        there[keys[part]] = True
    number = (np.cumsum(there) - 1).astype(np.int32)
    for part in chunks:
        of_key[part] = number[keys[part]]
    return np.flatnonzero(there), of_key


def _labels(hierarchy: Hierarchy, texts: list[str | None], leaves: list[int], of_group: Int32s) -> Labels:
    return Labels(hierarchy.attribute, tuple(texts), np.array(leaves, dtype=np.int64), of_group)
