"""Usefulness of a full-domain release as on paper: what each row shows, spread over what its labels stand for."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.oracles.tables import Node, Small, Value

Spread = Mapping[Value, float]


@dataclass(frozen=True)
class Shown:
    """A release at a node: its classes, the rows that were suppressed, and whether those are starred."""

    table: Small
    node: Node
    kept: list[list[int]]
    gone: list[int]
    star: bool
    exact: bool  # quasi-identifiers are published as they are

    @property
    def groups(self) -> list[list[int]]:
        return [*self.kept, self.gone] if self.star and self.gone else self.kept

    def is_starred(self, rows: list[int]) -> bool:
        return self.star and rows is self.gone

    def label_spread(self, rows: list[int], i: int, a: int) -> Spread:
        """What the label of row i could stand for."""
        key, value = self.table.keys[a], self.table.rows[i][a]
        if self.is_starred(rows):
            return dict.fromkeys(key.values, 1 / len(key.values))
        label = key.label(self.node[a], value)
        known = [v for v in key.values if key.label(self.node[a], v) == label]
        return dict.fromkeys(known, 1 / len(known)) if known else {None: 1.0}

    def row_spread(self, rows: list[int], i: int, a: int) -> Spread:
        if self.exact and not self.is_starred(rows):
            return {self.table.rows[i][a]: 1.0}
        return self.label_spread(rows, i, a)

    def pairs(self) -> dict[str, tuple[dict[Value, float], dict[Value, float]]]:
        """Per published attribute its shares before and after."""
        result = {}
        published = [(rows, i) for rows in self.groups for i in rows]
        for a, key in enumerate(self.table.keys):
            after: dict[Value, float] = defaultdict(float)
            for rows, i in published:
                for v, p in self.row_spread(rows, i, a).items():
                    after[v] += p
            result[key.name] = (shares(Counter(r[a] for r in self.table.rows)), shares(after))
        for name, column in self.table.secrets.items():
            result[name] = (shares(Counter(column)), shares(Counter(column[i] for _, i in published)))
        return result


def shares(counts: Mapping[Value, Any]) -> dict[Value, float]:
    total = sum(counts.values())
    return {v: c / total for v, c in counts.items()} if total else {}


def variation(before: Spread, after: Spread) -> float:
    return sum(abs(before.get(v, 0) - after.get(v, 0)) for v in {*before, *after}) / 2


def known(distribution: Spread) -> dict[Value, float]:
    return shares({v: p for v, p in distribution.items() if v is not None})


def earth_movers(shown: Shown, name: str, before: Spread, after: Spread) -> float:
    p, q = known(before), known(after)
    key = next((key for key in shown.table.keys if key.name == name), None)
    values = key.hierarchy.values if key is not None else shown.table.domains[name]
    if len(values) < 2 or not p or not q:
        return 0.0 if bool(p) == bool(q) else 1.0
    if key is None or key.hierarchy.ordered:
        ahead = list(itertools.accumulate(p.get(v, 0) - q.get(v, 0) for v in values))
        return sum(map(abs, ahead[:-1])) / (len(values) - 1)
    blocks = {
        frozenset(v for v in key.values if level[v] == b) for level in key.levels for b in level.values()
    }
    height: dict[frozenset[str], int] = {}
    total = 0.0
    for block in sorted(blocks, key=len):  # a level at which a block does not grow adds no height
        inside = [other for other in blocks if other < block]
        height[block] = max((height[other] + 1 for other in inside), default=0)
        children = [c for c in inside if not any(c < other for other in inside)]
        moved = [sum(p.get(v, 0) - q.get(v, 0) for v in child) for child in children]
        total += height[block] * min(sum(m for m in moved if m > 0), -sum(m for m in moved if m < 0))
    return total / max(height.values())


def cramers_v(table: Mapping[tuple[Value, Value], float], rows: int, columns: int) -> float:
    n, least = sum(table.values()), min(rows, columns) - 1
    if n <= 0 or least < 1:
        return 0.0
    left: dict[Value, float] = defaultdict(float)
    right: dict[Value, float] = defaultdict(float)
    for (x, y), c in table.items():
        left[x] += c
        right[y] += c
    chi = sum((table.get((x, y), 0) - a * b / n) ** 2 / (a * b / n) for x, a in left.items() for y, b in right.items()
              if a > 0 and b > 0)  # fmt: skip
    return min(1.0, math.sqrt(chi / n / least))


def two_way_tables(shown: Shown) -> list[tuple[Counter[Any], dict[Any, float]]]:
    """Of each two quasi-identifiers the rows of each two values, before and after."""
    found = []
    for a, b in itertools.combinations(range(len(shown.table.keys)), 2):
        before = Counter((row[a], row[b]) for row in shown.table.rows)
        after: dict[Any, float] = defaultdict(float)
        for rows in shown.groups:
            for i in rows:
                for (x, p), (y, q) in itertools.product(
                    shown.row_spread(rows, i, a).items(), shown.row_spread(rows, i, b).items()
                ):
                    after[x, y] += p * q
        found.append((before, after))
    return found


def two_way_distance(shown: Shown) -> float:
    found = []
    for before, after in two_way_tables(shown):
        n, m = sum(before.values()), sum(after.values())
        keys = {*before, *after}
        found.append(sum(abs(before[key] / n - (after.get(key, 0) / m if m else 0)) for key in keys) / 2)
    return sum(found) / len(found) if found else math.nan


def correlation_change(shown: Shown) -> float:
    table = shown.table
    names = range(len(table.keys))
    changes = [_change(before, after) for before, after in two_way_tables(shown)]
    for a in names:
        for column in table.secrets.values():
            before = Counter((row[a], column[i]) for i, row in enumerate(table.rows))
            after = defaultdict(float)
            for rows in shown.groups:
                held = Counter(column[i] for i in rows)
                for i in rows:
                    for x, p in shown.row_spread(rows, i, a).items():
                        for v, c in held.items():
                            after[x, v] += p * c / len(rows)
            changes.append(_change(before, after))
    return sum(changes) / len(changes)


def _change(before: Mapping[Any, float], after: Mapping[Any, float]) -> float:
    shape = len({x for x, _ in before}), len({y for _, y in before})
    return abs(cramers_v(before, *shape) - cramers_v(after, *shape))


def estimate(shown: Shown, asked: list[set[Value]], wanted: set[Value], name: str) -> float:
    """The mean of the true count over everything that the release leaves open."""
    total = 0.0
    for rows in shown.groups:
        share = sum(shown.table.secrets[name][i] in wanted for i in rows) / len(rows)
        for i in rows:
            inside = 1.0
            for a, allowed in enumerate(asked):
                inside *= sum(p for v, p in shown.row_spread(rows, i, a).items() if v in allowed)
            total += inside * share
    return total


def actual(shown: Shown, asked: list[set[Value]], wanted: set[Value], name: str) -> int:
    return sum(
        all(v in allowed for v, allowed in zip(row, asked, strict=True))
        and shown.table.secrets[name][i] in wanted
        for i, row in enumerate(shown.table.rows)
    )
