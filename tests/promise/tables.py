"""Small tables: what everybody knows of each row, and which sensitive values it may have."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from tests.promise.small_engine import Row, SmallTable, Text, members

MOST_WORLDS = 7000
MOST_SORTS = 130  # of worlds that the product is run on
UNIT, INSENSITIVE, SET = "id", "room", "drugs"
SEPARATOR = ";"
NUMBERS: tuple[tuple[Text, ...], ...] = (("1", "5", "9"), ("1", "4", "5"), ("1", "5"), ("0", "9", None))


def near_by_guessing(values: Sequence[Text], within: Fraction) -> list[tuple[str, ...]]:
    """Of each guess that could be best, the values that it comes near to: |g − x| ≤ w·|x|."""
    known = sorted({v for v in values if v is not None})
    guesses = {Fraction(v) * (1 + sign * within) for v in known for sign in (-1, 1)}
    near = [{v for v in known if abs(g - Fraction(v)) <= within * abs(Fraction(v))} for g in guesses]
    return [tuple(sorted(s)) for s in near if s and not any(s < other for other in near)]


@dataclass(frozen=True)
class Case:
    """Rows without their sensitive values, and the values that they may have.

    Attributes:
        names: the columns that everybody knows.
        known: what the rows hold there.
        owners: whose row it is; a person may have several.
        domains: per sensitive column its possible values (None: missing), and
        weights: how likely each of them is.
    """

    names: tuple[str, ...]
    known: tuple[Row, ...]
    owners: tuple[str, ...]
    domains: Mapping[str, tuple[Text, ...]]
    weights: Mapping[str, tuple[int, ...]]

    @property
    def quasi_identifiers(self) -> list[str]:
        return [n for n in self.names if n not in (UNIT, INSENSITIVE)]

    @property
    def people(self) -> list[str]:
        return list(dict.fromkeys(self.owners))

    @property
    def several(self) -> bool:
        """Has somebody several rows?"""
        return len(self.people) < len(self.owners)

    @cached_property
    def values(self) -> list[Row]:
        """What one row may hold in all sensitive columns."""
        return list(product(*self.domains.values()))

    @cached_property
    def kinds(self) -> list[list[int]]:
        """Rows that are alike to everybody: only how often each value occurs among them matters to the product."""
        rows: dict[Any, list[int]] = {}
        for i, (known, owner) in enumerate(zip(self.known, self.owners, strict=True)):
            same = tuple(v for n, v in zip(self.names, known, strict=True) if n != UNIT)
            mine = owner if self.owners.count(owner) > 1 else None
            rows.setdefault((same, mine), []).append(i)
        return list(rows.values())

    @property
    def n_worlds(self) -> int:
        return len(self.values) ** len(self.known)

    @property
    def n_sorts(self) -> int:
        """How many worlds `worlds` has."""
        return math.prod(math.comb(len(self.values) + len(rows) - 1, len(rows)) for rows in self.kinds)

    def worlds(self) -> Iterator[tuple[int, ...]]:
        """One world of each sort: the number of its value in `values` for each row, ascending among rows alike."""
        choices = [combinations_with_replacement(range(len(self.values)), len(rows)) for rows in self.kinds]
        for chosen in product(*choices):
            world = [0] * len(self.known)
            for rows, values in zip(self.kinds, chosen, strict=True):
                for i, value in zip(rows, values, strict=True):
                    world[i] = value
            yield tuple(world)

    def table(self, world: Sequence[int]) -> SmallTable:
        rows = [(*k, *self.values[v]) for k, v in zip(self.known, world, strict=True)]
        return SmallTable((*self.names, *self.domains), tuple(rows))

    # --- all worlds at once ---------------------------------------------------------------------------

    @cached_property
    def every(self) -> Any:
        """All worlds: one line for each, with the number of the value of each row."""
        return np.indices((len(self.values),) * len(self.known)).reshape(len(self.known), -1).T

    @cached_property
    def prior(self) -> Any:
        """The weight of each of all worlds."""
        one = np.array([np.prod(w) for w in product(*(self.weights[c] for c in self.domains))], dtype=float)
        weights = (one / one.sum())[self.every].prod(axis=1)
        return weights / weights.sum()

    @cached_property
    def sort_of(self) -> dict[tuple[int, ...], Any]:
        """Which of all worlds are of the sort of each of `worlds`."""
        sorted_ = self.every.copy()
        for rows in self.kinds:
            sorted_[:, rows] = np.sort(sorted_[:, rows], axis=1)
        key = sorted_ @ (len(self.values) ** np.arange(len(self.known)))
        order = np.argsort(key, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(key[order])) + 1)
        return {tuple(sorted_[part[0]].tolist()): part for part in parts}

    def holds(self, person: str, column: str, wanted: Sequence[str]) -> Any:
        """For all worlds: does the person hold one of these values in some row?"""
        at, bit = (list(self.domains).index(column.split("=")[0]), column.split("=")[1:])
        one = [v[at] for v in self.values]
        if bit:
            there = np.array([bit[0] in members(v, SEPARATOR) for v in one])
        else:
            there = np.array([v in wanted for v in one])
        mine = [i for i, owner in enumerate(self.owners) if owner == person]
        return there[self.every[:, mine]].any(axis=1)

    def secrets(self, column: str) -> list[tuple[str, ...]]:
        """Every value of a column by itself."""
        if "=" in column:
            return [("true",)]
        return [(v,) for v in self.domains[column] if v is not None]

    def near(self, column: str, within: Fraction) -> list[tuple[str, ...]]:
        """The numbers of a column that one guess comes near to."""
        return near_by_guessing(self.domains[column], within)

    def facts(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """What an insider may know: of a person, that she holds a value of a column."""
        columns: list[str] = []
        for name, domain in self.domains.items():
            found = sorted({v for cell in domain for v in members(cell, SEPARATOR)})
            columns += [f"{name}={v}" for v in found] if name == SET else [name]
        return [(p, c, s) for p in self.people for c in columns for s in self.secrets(c)]


def random_case(draw: random.Random, several: bool = False, numbers: bool = False) -> Case:
    """A table of a few rows; `several`: somebody has several of them; `numbers`: the secret is one."""
    most = draw.choice(
        [MOST_SORTS // 2, MOST_SORTS // 2, MOST_SORTS]
    )  # half of them take a third of the time
    while True:  # with other values each time: of nine there are too many sorts of worlds in any table
        domains = {"s": draw.choice(NUMBERS)} if numbers else _domains(draw, several)
        sizes = [3, 4, 4, 5] if len(domains) > 1 else [3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 6, 7, 7, 8, 8]
        found = _random_rows(draw, domains, draw.choice(sizes), several)
        if found.n_worlds <= MOST_WORLDS and found.n_sorts <= most:
            return found


def _domains(draw: random.Random, several: bool) -> dict[str, tuple[Text, ...]]:
    choices: list[tuple[Text, ...]] = [
        ("a", "b"),
        ("a", "b", "c"),
        ("a", "b", None),
        ("1", "5"),
        ("1", "5", "9"),
    ]
    domains = {"s": draw.choices(choices, [8, 5, 2, 1, 1])[0]}
    kind = draw.random()
    if kind < 0.28:
        domains = {"s": draw.choice([("a", "b"), ("a", "b"), ("a", "b", "c")])}
        if kind < 0.2 or several:
            domains["t"] = ("x", "y")
        else:
            domains[SET] = draw.choice([("u", "v"), ("u", "u;v", None)])
    return domains


def _random_rows(
    draw: random.Random, domains: Mapping[str, tuple[Text, ...]], rows: int, several: bool
) -> Case:
    quasi = [_quasi_identifier(draw, rows)]
    if draw.random() < 0.4:
        quasi.append(_quasi_identifier(draw, rows))
    columns = {f"q{i + 1}": values for i, values in enumerate(quasi)}
    if draw.random() < 0.12:
        at = draw.randrange(rows)
        columns["q1"] = [None if i == at else v for i, v in enumerate(columns["q1"])]
    if draw.random() < 0.15:
        columns[INSENSITIVE] = [draw.choice("AB") for _ in range(rows)]
    owners = [f"p{i}" for i in range(rows)]
    if several:
        for _ in range(draw.choice([1, 1, 2])):
            one = draw.randrange(rows)
            for i in draw.sample(range(rows), draw.randint(1, max(1, rows - 2))):
                owners[i] = owners[one]
        columns[UNIT] = list(owners)
    weights = {name: _weights(draw, len(d)) for name, d in domains.items()}
    known = tuple(zip(*columns.values(), strict=True))
    return Case(tuple(columns), known, tuple(owners), domains, weights)


def _quasi_identifier(draw: random.Random, rows: int) -> list[Text]:
    n = draw.choice([1, 2, 2, 2, 3, 3, 4])
    values = draw.choice([["1", "2", "3", "4"], ["10", "25", "31", "47"], ["ax", "ay", "bx", "by"]])[:n]
    drawn = [draw.choice(values) for _ in range(rows)]
    if draw.random() < 0.4:  # as even as can be
        drawn = [values[i * n // rows] for i in range(rows)]
    return list(drawn)


def _weights(draw: random.Random, n: int) -> tuple[int, ...]:
    return draw.choice([(1,) * n, (1,) * n, tuple(range(1, n + 1)), (1,) + (3,) * (n - 1)])
