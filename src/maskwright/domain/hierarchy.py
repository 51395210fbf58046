"""A hierarchy: the ways one attribute can be coarsened, as partitions ordered by refinement.

Level 0 is the identity. A chain (age → 5 years → 10 years → `*`) is the usual case; a DAG
(day → week, day → month → year) is the same thing with a partial order. The last level is always the
top: one block, `*`. Coverage and base fall out of block sizes.

Codes: ground value `values[i]` has code i + 1; code 0 is *missing*. Missing is a block of its own at every
level below the top and joins the rest there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.value_labels import ValueLabels
from maskwright.errors import HierarchyError

TOP = "*"
Codes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Level:
    """One partition. `blocks[code]` is the block of a code; `labels[block]` its published text.

    Block 0 is missing, with label None, except at the top, where block 0 is everything.
    """

    name: str
    labels: tuple[str | None, ...]
    blocks: Codes

    @cached_property
    def leaves(self) -> NDArray[np.int64]:
        """Coverage: how many ground values each block holds (missing counts as none where it is alone)."""
        counts = np.bincount(self.blocks[1:], minlength=len(self.labels))
        return counts.astype(np.int64)

    @cached_property
    def hidden(self) -> NDArray[np.int64]:
        """How many other values each code's block covers; a missing value that is alone covers none."""
        return (np.maximum(self.leaves, 1) - 1)[self.blocks]


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The levels of one attribute. Build it with `Hierarchy.of`, which checks that levels nest."""

    attribute: str
    values: tuple[str, ...]
    levels: tuple[Level, ...]
    # refines[i, j]: every block of level i lies inside one block of level j (reflexive and transitive).
    refines: NDArray[np.bool_]
    ordered: bool = False  # the values are in a meaningful order (numbers, dates, a declared order)
    origin: tuple[Hierarchy, int] | None = (
        None  # `cut_at`: the whole hierarchy, and its level that is level 0 here
    )

    @property
    def base(self) -> int:
        """The number of ground values; at least 1."""
        return max(1, len(self.values))

    @property
    def top(self) -> int:
        """The number of the coarsest level."""
        return len(self.levels) - 1

    def path_down(self, allowed: Iterable[int] | None = None) -> list[int]:
        """The levels from the coarsest to the finest, each refining the one before (in a DAG: one such path)."""
        numbers = range(len(self.levels)) if allowed is None else sorted(set(allowed))
        path: list[int] = []
        for j in sorted(numbers, key=lambda j: (-int(self.heights[j]), j)):
            if not path or self.refines[j, path[-1]]:
                path.append(j)
        return path

    @cached_property
    def height(self) -> int:
        """The longest path from level 0 to the top."""
        return int(self.heights[self.top])

    @cached_property
    def heights(self) -> NDArray[np.int64]:
        """Longest path from level 0 to each level. Its order is a linear extension of refinement."""
        result = np.zeros(len(self.levels), dtype=np.int64)
        for j in np.argsort(self.refines.sum(axis=0), kind="stable"):
            below = self.refines[:, j].copy()
            below[j] = False
            result[j] = 1 + result[below].max() if below.any() else 0
        return result

    @cached_property
    def covers(self) -> tuple[tuple[int, ...], ...]:
        """For each level its immediate coarsenings (the edges of the Hasse diagram, upwards)."""
        strict = self.refines & ~np.eye(len(self.levels), dtype=bool)
        reachable = (strict.astype(np.int64) @ strict.astype(np.int64)) > 0
        return tuple(tuple(int(j) for j in np.flatnonzero(row)) for row in strict & ~reachable)

    def level_of(self, name_or_index: str | int) -> int:
        """A level by its number or its name; a number wins over a name that is written the same."""
        text = str(name_or_index)
        known = [str(i) for i in self.numbers] + [level.name for level in self.levels]
        if text in known:
            return known.index(text) % len(self.levels)
        names = ", ".join(f"{i} ({level.name})" for i, level in zip(self.numbers, self.levels, strict=True))
        without = "levels that merge nothing in this table are left out"
        if self.origin is not None:
            without += "; those below `finest` too"
        raise HierarchyError(f"column {self.attribute!r} has no level {text!r}; it has {names} ({without})")

    def level_to_keep(self, words: str) -> int:
        """The coarsest level that shows so much: a level by number or name, or `3 digits` of every value."""
        asked = re.fullmatch(r"(\d+) (?:digits?|characters?)", words.strip())
        if asked is None or words.strip() in [level.name for level in self.levels]:
            return self.level_of(words.strip())
        shown = [
            min((sum(c.isalnum() for c in text) for text in level.labels[1:] if text), default=0)
            for level in self.levels
        ]
        enough = [i for i, characters in enumerate(shown) if characters >= int(asked[1])]
        if not enough:
            raise HierarchyError(
                f"column {self.attribute!r} cannot keep {words}: its shortest value has {shown[0]}; keep: exact keeps "
                "it as it is"
            )
        return max(enough, key=lambda i: (int(self.heights[i]), i))

    def levels_within(self, coarsest: int) -> list[int]:
        """The levels that tell at least as much as one of them."""
        return [int(i) for i in np.flatnonzero(self.refines[:, coarsest])]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The number of each level in the hierarchy that the policy describes."""
        if self.origin is None:
            return tuple(range(len(self.levels)))
        whole, level = self.origin
        return tuple(np.flatnonzero(whole.refines[level]).tolist())

    def uncut(self, level: int) -> tuple[Hierarchy, int]:
        """The hierarchy of the values as they are in the table, and what a level of this one is called there."""
        return (self, level) if self.origin is None else (self.origin[0], self.numbers[level])

    def members(self, code: int) -> tuple[str, ...]:
        """The values in the table that a code stands for: one, unless the hierarchy was cut."""
        if self.origin is None or code == 0:
            return () if code == 0 else (self.values[code - 1],)
        whole, level = self.origin
        return tuple(whole.values[i] for i in np.flatnonzero(whole.levels[level].blocks[1:] == code).tolist())

    def codes_of(self, text: str | None, coverage: int) -> NDArray[np.int64]:
        """The codes that a published label stands for: a block of a level, a range, a set or `*`.

        `coverage` says which is meant where levels use a text twice. Refused where no label reads so.
        """
        if text is None or text == TOP:
            return np.arange(0 if text is None else len(self.values) + 1)[: 1 if text is None else None]
        for level in self.levels:
            for block in [
                b for b, label in enumerate(level.labels) if label == text and level.leaves[b] == coverage
            ]:
                return np.flatnonzero(level.blocks == block)
        listed = self.value_labels.listed_codes(text, coverage)
        if listed is None:
            raise HierarchyError(f"column {self.attribute!r}: no label of so many values reads {text!r}")
        return listed

    @cached_property
    def value_labels(self) -> ValueLabels:
        """How ranges and sets of the values are written."""
        return ValueLabels(self.values)

    def cut_at(self, level: int) -> Hierarchy:
        """The hierarchy from a level upwards, whose labels become the ground values."""
        ground = self.levels[level]
        first = np.zeros(len(ground.labels), dtype=np.int64)  # of each block the code of one of its values
        first[ground.blocks] = np.arange(len(ground.blocks))
        first[0] = 0
        kept = np.flatnonzero(self.refines[level])
        levels = [
            Level(self.levels[j].name, self.levels[j].labels, self.levels[j].blocks[first]) for j in kept
        ]
        ordered = self.ordered and bool((np.diff(ground.blocks) >= 0).all())
        values = tuple(str(text) for text in ground.labels[1:])
        refines = self.refines[np.ix_(kept, kept)]
        return Hierarchy(self.attribute, values, tuple(levels), refines, ordered, (self, level))

    @staticmethod
    def of(
        attribute: str,
        values: Sequence[str],
        levels: Sequence[tuple[str, Sequence[str]]],
        *,
        chain: bool = True,
        ordered: bool = False,
        kept: Collection[str] = (),
    ) -> Hierarchy:
        """Make a hierarchy from the label of each ground value at each level above the ground.

        `levels` holds (name, labels), finest first, `labels[i]` belonging to `values[i]`; the identity and
        the top are added here. With `chain` each level must be refined by the one before it; without, the
        order is whatever the partitions say, and a level comes after all that refine it. Levels that change
        nothing are dropped, unless `kept` names them.
        """
        if len(set(values)) < len(values):
            twice = Counter(values).most_common(1)[0][0]
            raise HierarchyError(f"hierarchy of column {attribute!r}: {twice!r} is listed twice")
        given = [_level("exact", list(values), values), *(_level(n, list(ls), values) for n, ls in levels)]
        if chain:
            for lower, upper in pairwise(given):
                _check_nesting(attribute, values, lower, upper)
        built: list[Level] = []
        for level in given:
            single = len(level.labels) <= 2 and len(values) > 1 and built  # one block: that is the top
            new = not single and all(not np.array_equal(level.blocks, other.blocks) for other in built)
            if new or level.name in kept:
                built.append(level)
        if not chain:
            built = _finest_first(built)
        built.append(Level("any", (TOP,), np.zeros(len(values) + 1, dtype=np.int32)))
        # levels that nest and differ are ordered strictly, so that a chain needs no comparisons
        refines = np.triu(np.ones((len(built), len(built)), dtype=bool)) if chain else _refinement(built)
        return Hierarchy(attribute, tuple(values), tuple(built), refines, ordered)

    @property
    def is_chain(self) -> bool:
        """Is each level refined by the one before it?"""
        return bool(self.refines[np.triu_indices(len(self.levels))].all())

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the ground values, and their labels at every level between the exact one and the top."""
        if self.origin is not None:
            return self.origin[0].to_dict() | {"finest": self.origin[1]}
        return {
            "attribute": self.attribute,
            "values": list(self.values),
            "ordered": self.ordered,
            "chain": self.is_chain,
            "levels": [
                {"name": level.name, "labels": [level.labels[block] for block in level.blocks[1:].tolist()]}
                for level in self.levels[1:-1]
            ],
        }

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Hierarchy:
        """What `to_dict` gave; refused when it is anything else."""
        try:
            attribute, values = stored["attribute"], stored["values"]
            levels = [(level["name"], level["labels"]) for level in stored["levels"]]
            flags = (stored["chain"], stored["ordered"])
            texts = [attribute, *values, *(text for name, labels in levels for text in (name, *labels))]
            if not all(isinstance(t, str) for t in texts) or not all(isinstance(f, bool) for f in flags):
                raise TypeError("not text")  # noqa: TRY301
            names = [name for name, _ in levels]
            whole = Hierarchy.of(attribute, values, levels, chain=flags[0], ordered=flags[1], kept=names)
            return whole.cut_at(range(whole.top)[stored["finest"]]) if "finest" in stored else whole
        except (KeyError, IndexError, TypeError, ValueError):
            raise HierarchyError(
                "a stored hierarchy is damaged: it needs attribute, values, ordered, chain, and levels "
                "with a name and one label per value"
            ) from None


def _level(name: str, labels: list[str], values: Sequence[str]) -> Level:
    if len(labels) != len(values):
        raise ValueError(f"level {name!r} has {len(labels)} labels for {len(values)} values")
    index: dict[str, int] = {}
    blocks = np.zeros(len(values) + 1, dtype=np.int32)
    for i, label in enumerate(labels):
        blocks[i + 1] = index.setdefault(label, len(index) + 1)
    return Level(name, (None, *index), blocks)


def _split_pair(lower: Level, upper: Level) -> tuple[int, int] | None:
    """Two ground values (0-based) that are together in `lower` and apart in `upper`, if any."""
    low, up = lower.blocks[1:], upper.blocks[1:]
    first = np.full(len(lower.labels), -1, dtype=np.int64)
    order = np.arange(len(low))[::-1]
    first[low[::-1]] = order  # the last write wins, so this is the first value of each block
    apart = np.flatnonzero(up != up[first[low]]) if len(low) else np.array([], dtype=np.int64)
    return (int(first[low[apart[0]]]), int(apart[0])) if len(apart) else None


def _check_nesting(attribute: str, values: Sequence[str], lower: Level, upper: Level) -> None:
    pair = _split_pair(lower, upper)
    if pair is None:
        return
    a, b = pair
    raise HierarchyError(
        f"hierarchy of column {attribute!r}: {values[a]!r} and {values[b]!r} are together at level "
        f"{lower.name!r} ({lower.labels[lower.blocks[a + 1]]!r}) but apart at the coarser level "
        f"{upper.name!r} ({upper.labels[upper.blocks[a + 1]]!r} and {upper.labels[upper.blocks[b + 1]]!r}); "
        "put them together there too, or apart below"
    )


def _finest_first(levels: Sequence[Level]) -> list[Level]:
    """The levels in an order in which each comes after all that refine it, moved no further than needed.

    Levels that tell the same values apart stay in the order in which they are given.
    """

    def finer(one: Level, other: Level) -> bool:
        """Does the first level tell apart all that the other does, and more?"""
        return _split_pair(one, other) is None and _split_pair(other, one) is not None

    waiting, result = list(levels), list[Level]()
    while waiting:
        ready = next(level for level in waiting if not any(finer(other, level) for other in waiting))
        waiting.remove(ready)
        result.append(ready)
    return result


def _refinement(levels: Sequence[Level]) -> NDArray[np.bool_]:
    n = len(levels)
    result = np.zeros((n, n), dtype=bool)
    for i in range(n):
        for j in range(n):
            result[i, j] = _split_pair(levels[i], levels[j]) is None
    # of two that tell the same values apart, such as exact and any of a single value, the later is the coarser
    return np.triu(result)
