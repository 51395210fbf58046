"""COUNT-query error: how far off are the answers that a release gives to a workload of random queries?

A query asks how many people have certain values of some quasi-identifiers and one of certain sensitive values. The
release answers with the mean of the true count over everything that it leaves open: Σ over groups of (rows of the
group that match the quasi-identifiers) · (share of its sensitive values that are asked for). Where labels are
published, a row matches with the share of its label's values that are asked for, attribute by attribute. Queries that
nobody matches have no relative error and are left out [Xiao, Tao 2006; Wong et al. 2007; Cormode et al. 2010].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.exact import short_repr
from maskwright.domain.grouping import Grouping
from maskwright.domain.metric import Weights
from maskwright.errors import UsageError
from maskwright.metrics._shared.supports import Floats, supports_of

Bools = NDArray[np.bool_]
CHUNK = 512  # queries that are answered at once; part of what a seed stands for
MOST = 1_000_000  # queries of a workload: minutes of work
BLOCK = 256  # groups (or entries) that are looked at at once, so that they fit the cache


@dataclass(frozen=True)
class Workload:
    """Random COUNT queries, the same for every release of a table with the same seed.

    Attributes:
        queries: how many.
        dimension: quasi-identifiers in each; where there are fewer, all of them.
        selectivity: what `sizes` makes of it.
        sizes: "expected": each of the qd + 1 sets holds the share selectivity^(1/(qd + 1)) of its values, so that a
            query matches that share of the rows if attributes are independent and even [Xiao, Tao 2006]; "uniform":
            set sizes are uniform on 1 .. selectivity · values [Cormode et al. 2010].
        attribute: the sensitive one that is asked for; default the first. Without any, quasi-identifiers alone.
        seed: of the drawing.
    """

    queries: int = 1000
    dimension: int = 3
    selectivity: float = 0.05
    sizes: Literal["expected", "uniform"] = "expected"
    attribute: str | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("queries", "dimension", "seed"):
            if not isinstance(value := getattr(self, name), Integral) or isinstance(value, bool):
                raise UsageError(f"{name} of a workload: {short_repr(value)} is not a whole number")
        if self.queries < 1 or self.dimension < 1:
            raise UsageError("a workload needs at least one query of at least one dimension")
        if self.queries > MOST:
            raise UsageError(f"a workload has at most {MOST:,} queries")
        if self.seed < 0:
            raise UsageError("the seed of a workload is negative")
        if not isinstance(self.selectivity, Real) or isinstance(self.selectivity, bool):
            raise UsageError(f"the selectivity {short_repr(self.selectivity)} is not a number")
        if not 0 < self.selectivity <= 1:
            raise UsageError(f"the selectivity {short_repr(self.selectivity)} is not between 0 and 1")
        if self.sizes not in ("expected", "uniform"):
            raise UsageError(f"sizes: {short_repr(self.sizes)} is neither 'expected' nor 'uniform'")
        if not isinstance(self.attribute, str | None):
            raise UsageError(
                f"attribute of a workload: {short_repr(self.attribute)} is not the name of a column"
            )


@dataclass(frozen=True, eq=False)
class QueryErrors:
    """The queries that somebody matches: true and estimated counts, and how the two conditions correlate.

    `correlation` is Pearson's φ between matching the quasi-identifiers and having one of the sensitive values;
    `skipped` counts the queries that nobody matches.
    """

    actual: Ints
    estimate: Floats
    correlation: Floats
    skipped: int

    @property
    def errors(self) -> Floats:
        """|estimate − actual| / actual."""
        return np.asarray(np.abs(self.estimate - self.actual) / self.actual, dtype=np.float64)

    @property
    def mean(self) -> float:
        """The mean relative error; NaN without queries."""
        return float(self.errors.mean()) if len(self.actual) else math.nan

    @property
    def median(self) -> float:
        """The median relative error; NaN without queries."""
        return float(np.median(self.errors)) if len(self.actual) else math.nan

    def most_correlated(self, sign: Literal["positive", "negative"], queries: int = 100) -> QueryErrors:
        """The queries whose two conditions go together most, or exclude each other most."""
        order = np.argsort(self.correlation, kind="stable")
        chosen = order[::-1][:queries] if sign == "positive" else order[:queries]
        return QueryErrors(self.actual[chosen], self.estimate[chosen], self.correlation[chosen], 0)


def query_error(grouping: Grouping, weights: Weights, exact: bool = False) -> float:
    """Mean relative error of 1,000 random COUNT queries of three quasi-identifiers and a sensitive attribute."""
    return query_errors(grouping, Workload(), exact).mean


def query_errors(grouping: Grouping, workload: Workload, exact: bool = False) -> QueryErrors:
    """Answer a workload from a release; `exact`: quasi-identifiers are published as they are."""
    table = _QueryTable.of(grouping, workload, exact)
    actual, estimate, phi = [], [], []
    for allowed, wanted in _drawn(table, workload):
        matched = _matched(table.codes, allowed)
        estimate.append(_estimates(table, allowed, matched, wanted))
        side = _weighted(table.grouping.summary.rows, matched)
        if wanted is None:
            actual.append(side)
            phi.append(np.zeros(len(side)))
            continue
        both = _weighted(table.rows, matched[table.tuples] & wanted[table.value])
        having = _weighted(np.bincount(table.value, table.rows, minlength=len(wanted)), wanted)
        actual.append(both)
        phi.append(_phi(both, side, having, float(table.rows.sum())))
    counts = np.concatenate(actual)
    some = counts > 0
    return QueryErrors(
        counts[some].astype(np.int64), np.concatenate(estimate)[some], np.concatenate(phi)[some],
        int((~some).sum()),
    )  # fmt: skip


def _weighted(rows: Ints | Floats, inside: Bools) -> Floats:
    """Per query, the rows that are inside; exact, because sums below 2^24 fit a short float."""
    short = rows.sum() < 2**24
    kind = np.float32 if short else np.float64
    return np.asarray(rows.astype(kind) @ inside.astype(kind), dtype=np.float64)


def _phi(both: Floats, first: Floats, second: Floats, n: float) -> Floats:
    variance = first * (n - first) * second * (n - second)
    return np.where(variance > 0, (n * both - first * second) / np.sqrt(np.maximum(variance, 1)), 0.0)


@dataclass(frozen=True, eq=False)
class _QueryTable:
    """What the answers need: the true rows by (tuple, value), and the groups as they are published."""

    grouping: Grouping
    codes: NDArray[np.int32]
    tuples: Ints
    value: Ints
    rows: Floats
    published: ValueCounts | None
    exact: bool

    @staticmethod
    def of(grouping: Grouping, workload: Workload, exact: bool) -> _QueryTable:
        """Collect the true rows and the published groups; refused where rows are not people."""
        summary = grouping.summary
        name = workload.attribute or next(iter(summary.sensitive), None)
        if name is None:
            tuples = np.arange(summary.n_tuples)
            return _QueryTable(
                grouping, summary.codes, tuples, tuples, summary.rows.astype(np.float64), None, exact
            )
        if name not in summary.sensitive:
            raise UsageError(
                f"the workload asks for {name!r}, which is not a sensitive column of the release"
            )
        if summary.shared is not None or not np.array_equal(summary.rows, summary.sizes):
            raise UsageError(
                "COUNT queries need one row per person: rows and people would be mixed up; two-way-distance and "
                "distribution-distance compare what rows show"
            )
        true = summary.sensitive[name]
        published = grouping.published_classes.sensitive[name]
        return _QueryTable(
            grouping, summary.codes, true.owner, true.codes.astype(np.int64), true.counts.astype(np.float64),
            published, exact,
        )  # fmt: skip


def _drawn(table: _QueryTable, workload: Workload) -> Iterator[tuple[list[Bools], Bools | None]]:
    """Blocks of queries: per quasi-identifier, and for the sensitive attribute, code × query: is it asked for?"""
    rng = np.random.default_rng(workload.seed)
    widths = [len(h.values) + 1 for h in table.grouping.summary.attributes]
    dimension = min(workload.dimension, len(widths))
    parts = dimension + (table.published is not None)
    there = [np.unique(codes[codes > 0]) for codes in table.codes]
    for begin in range(0, workload.queries, CHUNK):
        n = min(CHUNK, workload.queries - begin)
        chosen = np.argsort(rng.random((len(widths), n)), axis=0) < dimension
        allowed = []
        for a, width in enumerate(widths):
            sets = _sets(rng, there[a], width, n, workload, parts)
            allowed.append(sets | ~chosen[a])  # an attribute that is not asked for excludes nobody
        wanted = None
        if table.published is not None:
            values = np.unique(table.value[table.value > 0])
            wanted = _sets(rng, values, len(table.published.values) + 1, n, workload, parts)
        yield allowed, wanted


def _sets(rng: np.random.Generator, there: Ints, width: int, n: int, workload: Workload, parts: int) -> Bools:
    """Random sets of the values that occur, one per query."""
    if workload.sizes == "expected":
        size = np.full(n, math.ceil(len(there) * workload.selectivity ** (1 / parts) - 1e-9))
    else:
        size = rng.integers(1, max(1, int(len(there) * workload.selectivity)) + 1, size=n)
    result = np.zeros((width, n), dtype=bool)
    if len(there):
        drawn = rng.random((n, len(there)))
        last = np.sort(drawn, axis=1)[np.arange(n), np.maximum(1, size) - 1]  # the smallest draws are in
        result[there] = (drawn <= last[:, None]).T
    return result


def _matched(codes: NDArray[np.int32], allowed: list[Bools]) -> Bools:
    """tuple × query: eight queries at a time, as bits."""
    n = allowed[0].shape[1]
    bits = np.full((codes.shape[1], (n + 7) // 8), 255, dtype=np.uint8)
    for of_attribute, sets in zip(codes, allowed, strict=True):
        bits &= np.packbits(sets, axis=1)[of_attribute]
    return np.unpackbits(bits, axis=1, count=n).view(bool)


def _estimates(table: _QueryTable, allowed: list[Bools], matched: Bools, wanted: Bools | None) -> Floats:
    """Σ over groups of (rows that match) · (values that are asked for) / (rows), block by block of groups."""
    grouping = table.grouping
    estimate: Floats = np.zeros(matched.shape[1])
    by_label = np.arange(grouping.classes.n)
    if table.exact:
        by_label = by_label[:0] if grouping.starred is None else np.array([grouping.starred])
        entries, size = grouping.allocation, grouping.classes.rows
        kept = np.flatnonzero((entries.groups >= 0) & ~np.isin(entries.groups, by_label))
        kept = kept[np.argsort(entries.groups[kept], kind="stable")]
        for part in _blocks(kept):
            groups, inverse = np.unique(entries.groups[part], return_inverse=True)
            held = _held(table, groups, wanted)[inverse] * matched[entries.tuples[part]]
            estimate += (entries.rows[part] / size[entries.groups[part]]) @ held
    of_labels = _shares_of_labels(grouping, allowed) if len(by_label) else []
    for groups in _blocks(by_label):
        share = _label_shares(of_labels, grouping, groups)
        estimate += np.einsum("gq,gq->q", share, _held(table, groups, wanted))
    return estimate


def _blocks(items: Ints) -> Iterator[Ints]:
    for begin in range(0, len(items), BLOCK):
        yield items[begin : begin + BLOCK]


def _held(table: _QueryTable, groups: Ints, wanted: Bools | None) -> Floats:
    """group × query: how many of the published sensitive values of a group are asked for."""
    counts = table.published
    if counts is None or wanted is None:
        return table.grouping.classes.rows[groups, None].astype(np.float64)
    dense = np.zeros((len(groups), len(counts.values) + 1))
    for i, (begin, end) in enumerate(zip(counts.start[groups], counts.start[groups + 1], strict=True)):
        dense[i, counts.codes[begin:end]] = counts.counts[begin:end]
    return np.asarray(dense @ wanted)


def _shares_of_labels(grouping: Grouping, allowed: list[Bools]) -> list[Floats]:
    """Per quasi-identifier, label × query: the share of the label's rows whose values are asked for."""
    result = []
    for supports, sets in zip(supports_of(grouping), allowed, strict=True):
        result.append(supports.expected(sets.astype(np.float64)))
    return result


def _label_shares(of_labels: list[Floats], grouping: Grouping, groups: Ints) -> Floats:
    """group × query: the share of a group's rows that match if each label is spread evenly over its values."""
    first, *others = (
        of[labels.of_group[groups]] for of, labels in zip(of_labels, grouping.labels, strict=True)
    )
    for share in others:
        first *= share
    return first
