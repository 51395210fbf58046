"""Small random tables in plain Python: rows, hierarchies as dictionaries, and how the product is told of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from maskwright.domain.hierarchy import Hierarchy
from maskwright.hierarchies import Intervals, Masking
from tests.methods import row_tables

Value = str | None
Node = tuple[int, ...]
Classes = dict[tuple[Value, ...], list[int]]
TOP = "*"


@dataclass(frozen=True)
class Key:
    """A quasi-identifier: per level the label of each ground value. Level 0 is the value itself, the last is `*`."""

    name: str
    values: tuple[str, ...]
    levels: tuple[dict[str, str], ...]
    hierarchy: Hierarchy

    @property
    def height(self) -> int:
        return len(self.levels) - 1

    def numbers(self) -> range:
        return range(len(self.levels))

    def height_of(self, level: int) -> int:
        """Levels are a chain here: each is one step above the one before."""
        return level

    def refines(self, level: int, other: int) -> bool:
        return level <= other

    def label(self, level: int, value: Value) -> Value:
        """Missing is missing, until everything is one."""
        if level == self.height:
            return TOP
        return None if value is None else self.levels[level][value]

    def covered(self, level: int, value: Value) -> int:
        """Ground values that the published label stands for; missing stands for none but counts as one."""
        mine = self.label(level, value)
        return max(1, sum(self.label(level, v) == mine for v in self.values))


@dataclass(frozen=True)
class Small:
    """A table: the quasi-identifiers of each row, and the sensitive columns."""

    keys: tuple[Key, ...]
    rows: tuple[tuple[Value, ...], ...]
    secrets: dict[str, tuple[Value, ...]]
    domains: dict[str, tuple[str, ...]]  # the values that occur, in their order

    @property
    def n(self) -> int:
        return len(self.rows)

    @cached_property
    def nodes(self) -> list[Node]:
        return list(itertools.product(*(range(len(key.levels)) for key in self.keys)))

    @property
    def top(self) -> Node:
        return tuple(key.height for key in self.keys)

    def label(self, node: Node, row: Sequence[Value]) -> tuple[Value, ...]:
        return tuple(key.label(level, v) for key, level, v in zip(self.keys, node, row, strict=True))

    def classes(self, node: Node) -> Classes:
        """Rows by what is published of them at this node."""
        found: Classes = {}
        for i, row in enumerate(self.rows):
            found.setdefault(self.label(node, row), []).append(i)
        return found

    def values(self, name: str, members: Iterable[int]) -> list[Value]:
        return [self.secrets[name][i] for i in members]

    @cached_property
    def built(self) -> row_tables.Table:
        """The same table as the product has it."""
        return row_tables.build(
            self.rows, self.secrets, [key.hierarchy for key in self.keys], self.domains, ordered=True
        )

    def tuples(self) -> list[tuple[Value, ...]]:
        """The distinct rows of quasi-identifiers in the order in which the product numbers them."""
        codes = [{None: 0} | {v: i + 1 for i, v in enumerate(key.hierarchy.values)} for key in self.keys]
        order = lambda row: [c[v] for c, v in zip(codes, row, strict=True)]  # noqa: E731
        return sorted(set(self.rows), key=order)

    def __repr__(self) -> str:
        """Everything that is needed to see the case by eye."""
        lines = [
            f"{key.name}: {[sorted(set(map(str, m.items()))) for m in key.levels[1:-1]]}" for key in self.keys
        ]
        columns = list(zip(*self.secrets.values(), strict=True))
        lines += [f"{row} {columns[i] if columns else ''}" for i, row in enumerate(self.rows)]
        return "\n".join(["a table", *lines])


def small(
    rng: Random,
    secrets: int | None = None,
    most: int = 8,
    keys: int | None = None,
    missing: bool = True,
    numbers: bool | None = None,
    levels: bool = True,
) -> Small:
    """A random table of 2 to `most` rows, 1 to 3 quasi-identifiers and 1 or 2 sensitive columns."""
    n = rng.randint(2, most)
    made = [_key(rng, f"q{a}", n, missing) for a in range(keys or rng.randint(1, 3))]
    columns = [column for _, column in made]
    held: dict[str, tuple[Value, ...]] = {}
    domains: dict[str, tuple[str, ...]] = {}
    for name in ["s", "t"][: rng.choice([1, 1, 2]) if secrets is None else secrets]:
        as_numbers = rng.random() < 0.3 if numbers is None else numbers
        pool = ["-1", "2", "2.5", "7", "30"] if as_numbers else ["a", "b", "c", "d"]
        chosen = pool[: rng.randint(1, len(pool))] if as_numbers else pool[: rng.randint(1, 4)]
        column = _column(rng, chosen, n, missing)
        held[name] = tuple(column)
        domains[name] = tuple(v for v in pool if v in column)
    return Small(tuple(key for key, _ in made), tuple(zip(*columns, strict=True)), held, domains)


def _key(rng: Random, name: str, n: int, missing: bool) -> tuple[Key, list[Value]]:
    kind = rng.choice(["tree", "tree", "intervals", "mask", "suppress"])
    if kind == "intervals":
        values = sorted(rng.sample(range(0, 40), rng.randint(1, 5)))
        widths = rng.choice([(5,), (5, 10), (10, 20), (3, 9), (20,)])
        texts = [str(v) for v in values]
        maps = [{str(v): f"from {v // w * w}" for v in values} for w in widths]
        hierarchy = Intervals(intervals=list(widths)).build(name, texts, Path(), ())
    elif kind == "mask":
        texts = sorted({"".join(rng.choice("12") for _ in range(3)) for _ in range(rng.randint(1, 5))})
        side = rng.choice(["right", "left"])
        cut = (lambda v, c: v[: 3 - c]) if side == "right" else (lambda v, c: v[c:])
        maps = [{v: "visible " + cut(v, c) for v in texts} for c in (1, 2)]
        hierarchy = Masking(mask=side).build(name, texts, Path(), ())
    else:
        texts = [f"v{i}" for i in range(rng.randint(1, 5))]
        maps = _coarser(rng, texts) if kind == "tree" else []
        hierarchy = Hierarchy.of(
            name,
            texts,
            [(f"up {i}", [m[v] for v in texts]) for i, m in enumerate(maps)],
            ordered=rng.random() < 0.3,
        )
    key = Key(name, tuple(texts), _levels(texts, maps), hierarchy)
    assert [_blocks(m, texts) for m in key.levels] == [
        frozenset(
            frozenset(v for i, v in enumerate(hierarchy.values) if level.blocks[i + 1] == b)
            for b in set(level.blocks[1:].tolist())
        )
        for level in hierarchy.levels
    ], "the hierarchy is not what was asked for"
    return key, _column(rng, texts, n, missing)


def _coarser(rng: Random, texts: Sequence[str]) -> list[dict[str, str]]:
    """Random partitions, each a coarsening of the one before."""
    maps, label = [], {v: v for v in texts}
    for i in range(rng.randint(0, 3)):
        names = sorted(set(label.values()))
        joined = {x: f"L{i}{rng.choice(names)}" for x in names}
        label = {v: joined[label[v]] for v in texts}
        maps.append(dict(label))
    return maps


def _levels(texts: Sequence[str], maps: Sequence[dict[str, str]]) -> tuple[dict[str, str], ...]:
    """With the ground and the top; a level that changes nothing is none."""
    levels: list[dict[str, str]] = [{v: v for v in texts}]
    for m in maps:
        blocks = _blocks(m, texts)
        if all(_blocks(other, texts) != blocks for other in levels) and len(blocks) > 1:
            levels.append(m)
    return (*levels, dict.fromkeys(texts, TOP))


def _blocks(labels: dict[str, str], texts: Sequence[str]) -> frozenset[frozenset[str]]:
    found: dict[str, set[str]] = {}
    for v in texts:
        found.setdefault(labels[v], set()).add(v)
    return frozenset(map(frozenset, found.values()))


def _column(rng: Random, values: Sequence[str], n: int, missing: bool) -> list[Value]:
    """Values of n rows: even, skewed or nearly constant; sometimes with missing ones."""
    weights = [rng.choice([1, 1, 1, 4]) for _ in values]
    holes = missing and rng.random() < 0.25
    return [None if holes and rng.random() < 0.25 else v for v in rng.choices(list(values), weights, k=n)]


def task(table: Small, models: Sequence[Any], seed: int = 0, **more: Any) -> Any:
    return table.built.task(models, seed, **more)
