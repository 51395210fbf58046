"""Plans: which sensitive attributes are published together, one table for each subset [CODIP].

Merging two tables never raises Γα and never lowers Γβ, and the closeness (or any other requirement) that can be
reached for a table never improves when attributes are added to it. The searches rely on nothing else.

CODIP* (`greedy`) merges tables while it may. The best plan and the frontier of plans are exact, for up to about a dozen
sensitive attributes. A plan adds up over its tables: 1 − Γα is the sum of the mutual information inside them, Γβ the
sum of what each exposes. So the best plan is found by assigning one attribute after the other with a bound on what is
still lost, and the frontier by dynamic programming over subsets of attributes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.association import NEAR, Association, Subset, Tables

Good = Callable[[Subset], bool]  # can a table with these attributes satisfy the requirements?
TIE = 1e-12  # averages of mutual information that differ by less are equal on paper
MOST = 12  # attributes of which all plans are considered for a frontier: 4 million
VISITS = 500_000  # partial plans that a search for the best looks at; a dozen attributes need a few thousand
Floats = NDArray[np.float64]


def singleton_plan(n: int) -> Tables:
    """The plan with each of n attributes in a table of its own."""
    return tuple((i,) for i in range(n))


def normal_form(subsets: Sequence[Sequence[int]]) -> Tables:
    """A plan in its normal form: each subset ascending, subsets by their smallest attribute."""
    return tuple(sorted(tuple(sorted(s)) for s in subsets))


@dataclass(frozen=True)
class Merge:
    """One step of CODIP*: the plan after it, the union that was made, and its average mutual information."""

    tables: Tables
    union: Subset
    average: float


def merge_sequence(association: Association, start: Tables | None = None) -> Iterator[Merge]:
    """CODIP* without thresholds: always the union with the largest average I of all its pairs, until one is left."""
    tables = start or singleton_plan(association.size)
    while len(tables) > 1:
        best: tuple[float, Subset, tuple[Subset, Subset]] | None = None
        for a, b in itertools.combinations(tables, 2):
            union = tuple(sorted(a + b))
            pairs = len(union) * (len(union) - 1) // 2
            average = association.inside(union) / pairs
            if best is None or average > best[0] + TIE:
                best = average, union, (a, b)
        assert best is not None  # noqa: S101 - there are two subsets
        average, union, parts = best
        tables = normal_form([*(s for s in tables if s not in parts), union])
        yield Merge(tables, union, average)


@dataclass(frozen=True)
class GreedyPlan:
    """What CODIP* found.

    Attributes:
        tables: the last good plan, None when not even singletons are good.
        merges: how many merges were accepted.
        refused: the merge that was not accepted, and `why`: "beta" or "requirements"; None: one table is left.
        failing: singletons that do not satisfy the requirements.
    """

    tables: Tables | None
    merges: int = 0
    refused: Subset | None = None
    why: str = ""
    failing: tuple[int, ...] = ()


def greedy_plan(association: Association, beta: Fraction, good: Good) -> GreedyPlan:
    """CODIP*: merge while Γβ ≤ beta and the new table is good; other merges are not tried after a refusal."""
    tables = singleton_plan(association.size)
    failing = tuple(i for (i,) in tables if not good((i,)))
    if failing or not association.beta_at_most(tables, beta):
        return GreedyPlan(None, why="requirements" if failing else "beta", failing=failing)
    done = 0
    for merge in merge_sequence(association):
        if not association.beta_at_most(merge.tables, beta):
            return GreedyPlan(tables, done, merge.union, "beta")
        if not good(merge.union):
            return GreedyPlan(tables, done, merge.union, "requirements")
        tables, done = merge.tables, done + 1
    return GreedyPlan(tables, done)


@dataclass
class Remembered:
    """A test of subsets that is asked as little as possible: what contains a bad subset is bad."""

    good: Good
    bad: list[frozenset[int]] = field(default_factory=list)
    known: dict[Subset, bool] = field(default_factory=dict)

    def __call__(self, subset: Subset) -> bool:
        if subset not in self.known:
            members = frozenset(subset)
            passes = not any(b <= members for b in self.bad) and self.good(subset)
            if not passes:
                self.bad.append(members)
            self.known[subset] = passes
        return self.known[subset]


@dataclass(frozen=True)
class Best:
    """The plan with the least Γα among those that satisfy everything else; then the one with the least Γβ.

    Attributes:
        tables: the plan; None where there is none.
        visited: partial plans that were looked at.
        asked: tables for which the requirements were tested.
        failing: attributes that do not satisfy the requirements even alone.
        proven: the search ended before its limit, so no plan is better.
    """

    tables: Tables | None
    visited: int = 0
    asked: int = 0
    failing: tuple[int, ...] = ()
    proven: bool = True


def best_plan(association: Association, beta: Fraction, good: Good, limit: int = VISITS) -> Best:
    """Search all plans with Γβ ≤ beta whose tables are good; what contains a bad table is taken to be bad.

    After `limit` partial plans the search stops, and the plan is not `proven` to be the best.
    """
    test = good if isinstance(good, Remembered) else Remembered(good)
    start = greedy_plan(association, beta, test)
    if start.tables is None:
        return Best(None, asked=len(test.known), failing=start.failing)
    search = _PlanSearch(association, beta, test, limit)
    search.found = (association.alpha(start.tables), association.beta(start.tables), start.tables)
    search.descend([], 0.0, 0.0, 0)
    return Best(search.found[2], search.visited, len(test.known), proven=search.visited < limit)


@dataclass
class _PlanSearch:
    """Branch and bound over restricted growth: attribute after attribute joins a table or begins one."""

    association: Association
    beta: Fraction
    good: Good
    limit: int
    visited: int = 0
    found: tuple[float, float, Tables] = field(default_factory=lambda: (2.0, 2.0, ()))

    def __post_init__(self) -> None:
        a = self.association
        n, total = a.size, sum(a.information.values())
        self.share = np.zeros((n, n))
        for (i, j), value in a.information.items():
            self.share[i, j] = self.share[j, i] = value / total if total else 0.0
        # attributes that tell most about the others first: bounds bite early
        self.order = sorted(range(n), key=lambda i: (-self.share[i].sum(), i))
        self.exposed: dict[Subset, float] = {}

    def descend(self, tables: list[Subset], cut: float, exposed: float, depth: int) -> None:
        """Put the next attribute into each table in turn, and into a new one."""
        if self.visited >= self.limit:
            return
        self.visited += 1
        if depth == len(self.order):
            self._keep(normal_form(tables))
            return
        if cut + self._still_lost(tables, depth) > self.found[0] + TIE:
            return
        x = self.order[depth]
        inside = [sum(self.share[x, v] for v in table) for table in tables]
        every = sum(inside)
        choices = sorted(range(len(tables)), key=lambda u: -inside[u])
        for u in [*choices, -1]:
            old = tables[u] if u >= 0 else ()
            new = tuple(sorted((*old, x)))
            more = exposed + self._exposed(new) - self._exposed(old)
            lost = cut + every - (inside[u] if u >= 0 else 0.0)
            if more > float(self.beta) + NEAR or lost > self.found[0] + TIE or not self.good(new):
                continue
            rest = [*tables[:u], *tables[u + 1 :]] if u >= 0 else tables
            self.descend([*rest, new], lost, more, depth + 1)

    def _still_lost(self, tables: list[Subset], depth: int) -> float:
        """What every attribute that is not assigned yet will lose at least: all but one table."""
        lost = 0.0
        for x in self.order[depth:]:
            inside = [sum(self.share[x, v] for v in table) for table in tables]
            lost += sum(inside) - max(inside, default=0.0)
        return lost

    def _exposed(self, subset: Subset) -> float:
        if subset not in self.exposed:
            self.exposed[subset] = self.association.exposed(subset)
        return self.exposed[subset]

    def _keep(self, tables: Tables) -> None:
        if not self.association.beta_at_most(tables, self.beta):
            return
        alpha, beta, now = self.association.alpha(tables), self.association.beta(tables), self.found
        better = alpha < now[0] - TIE
        equal = abs(alpha - now[0]) <= TIE
        if better or (equal and (beta < now[1] - TIE or (abs(beta - now[1]) <= TIE and tables < now[2]))):
            self.found = (alpha, beta, tables)


# --- the frontier -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlanPoint:
    """A plan with its figures; `closeness` is None where it was not measured."""

    tables: Tables
    alpha: float
    beta: float
    closeness: float | None = None


@dataclass(frozen=True)
class Frontier:
    """Plans that no other plan beats in both Γα and Γβ, by falling Γα.

    Attributes:
        points: the plans.
        exact: all plans were considered; otherwise only those that CODIP* passes through.
        limit: only plans of at most this closeness were considered.
    """

    points: tuple[PlanPoint, ...]
    exact: bool
    limit: float | None = None


def pareto_frontier(
    association: Association, closeness: Callable[[Subset], float] | None = None, limit: float | None = None
) -> Frontier:
    """The frontier of all plans, or of those whose tables all have at most some closeness."""

    def _allowed(subset: Subset) -> bool:
        return limit is None or closeness is None or closeness(subset) <= limit

    exact = association.size <= MOST
    plans = _all_best(association, _allowed) if exact else _along_merges(association, _allowed)
    points = []
    for tables in plans:
        near = None if closeness is None else max(map(closeness, tables))
        points.append(PlanPoint(tables, association.alpha(tables), association.beta(tables), near))
    points.sort(key=lambda p: (p.beta, p.alpha))
    kept: list[PlanPoint] = []
    for point in points:
        if not kept or point.alpha < kept[-1].alpha - TIE:
            kept.append(point)
    return Frontier(tuple(kept), exact, limit)


def _along_merges(association: Association, allowed: Good) -> Iterator[Tables]:
    for tables in (singleton_plan(association.size), *(m.tables for m in merge_sequence(association))):
        if all(map(allowed, tables)):
            yield tables


def _all_best(association: Association, allowed: Good) -> list[Tables]:
    """For every subset of attributes the partitions of it that no other beats: largest I inside, least exposure."""
    n = association.size
    subsets = [tuple(i for i in range(n) if mask >> i & 1) for mask in range(1 << n)]
    usable = [bool(s) and allowed(s) for s in subsets]
    inside = [association.inside(s) for s in subsets]
    exposed = [association.exposed(s) for s in subsets]
    fronts: list[_Front | None] = [
        _Front(np.zeros(1), np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int64))
    ]
    for mask in range(1, 1 << n):
        fronts.append(_front(mask, fronts, usable, inside, exposed))
    last = fronts[-1]
    if last is None:
        return []
    return [_trace(fronts, subsets, k) for k in range(len(last.inside))]


@dataclass(frozen=True, eq=False)
class _Front:
    """Partitions of a subset: mutual information inside, exposure, and where they came from."""

    inside: Floats
    exposed: Floats
    first: NDArray[np.int64]  # the table that holds the smallest attribute
    rest: NDArray[np.int64]  # the partition of the other attributes, by its place in their front


def _front(
    mask: int, fronts: Sequence[_Front | None], usable: Sequence[bool], inside: Sequence[float],
    exposed: Sequence[float],
) -> _Front | None:  # fmt: skip
    low = mask & -mask
    others = mask ^ low
    parts = []
    sub = others
    while True:  # every table that holds the smallest attribute
        table = sub | low
        left = fronts[mask ^ table]
        if usable[table] and left is not None:
            size = len(left.inside)
            parts.append(
                (left.inside + inside[table], left.exposed + exposed[table], np.full(size, table), size)
            )
        if not sub:
            break
        sub = (sub - 1) & others
    if not parts:
        return None
    gains, costs = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    tables = np.concatenate([p[2] for p in parts])
    places = np.concatenate([np.arange(p[3]) for p in parts])
    order = np.lexsort((-gains, costs))
    best = np.maximum.accumulate(gains[order])
    keep = np.ones(len(order), dtype=bool)
    keep[1:] = gains[order][1:] > best[:-1] + TIE
    kept = order[keep]
    return _Front(gains[kept], costs[kept], tables[kept], places[kept])


def _trace(fronts: Sequence[_Front | None], subsets: Sequence[Subset], place: int) -> Tables:
    mask, tables = len(subsets) - 1, list[Subset]()
    while mask:
        front = fronts[mask]
        assert front is not None  # noqa: S101 - it was built from this one
        table, place = int(front.first[place]), int(front.rest[place])
        tables.append(subsets[table])
        mask ^= table
    return normal_form(tables)
