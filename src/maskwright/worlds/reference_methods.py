"""Published methods as an adversary knows them, and COUNT queries: plain functions of rows, to run on possible worlds.

They work row by row on small tables and follow the papers to the letter (ties by row number); the methods that
make releases are elsewhere. A requirement is a test on the counts of each value in a group. Deterministic methods
return groups of row numbers; randomised ones the probability of every publication, or only of the one asked for.

Greedy, randomised greedy and symmetric grouping [Cormode et al. 2010], Mondrian, global recoding. Anatomy
[Xiao, Tao 2006]: while at least ℓ values have rows left, a group is formed of one row each of the ℓ values with most
rows left (ties: smaller value); what is left over joins, by row number, groups that lack its value. COUNT queries on
bucketized data: the estimate is the mean of the true count over all possible worlds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from maskwright.worlds.counting.counting_limits import share_fraction, whole_numbers
from maskwright.worlds.counting.multisets import Test
from maskwright.worlds.sampling.possible_worlds import Publication, as_publication

Qi = Sequence[Sequence[Any]]
Rows = list[int]
Distribution = dict[Publication, Fraction]
Groups = tuple[frozenset[int], ...]
Predicate = Mapping[int, Collection[Any]]  # attribute number → allowed values; all must hold


def row_order(qi: Qi) -> Rows:
    """Rows by quasi-identifiers, lexicographically, then by row number."""
    return sorted(range(len(qi)), key=lambda i: (tuple(qi[i]), i))


def _satisfied(values: Sequence[Any], rows: Rows, passes: Test) -> bool:
    return passes(Counter(values[i] for i in rows))


def greedy_grouping(qi: Qi, values: Sequence[Any], passes: Test, bucket: int = 1) -> list[Rows]:
    """GG: add buckets of rows in order until the group passes; what never passes is dropped.

    Args:
        qi: quasi-identifiers of each row.
        values: sensitive value of each row.
        passes: the requirement on a group.
        bucket: rows in a bucket; 1 is the row-by-row variant.
    """
    whole_numbers("bucket size", [bucket], 1)
    order = row_order(qi)
    groups: list[Rows] = []
    group: Rows = []
    for start in range(0, len(order) - bucket + 1, bucket):
        group = [*group, *order[start : start + bucket]]
        if _satisfied(values, group, passes):
            groups.append(group)
            group = []
    return groups


def randomised_greedy(
    qi: Qi,
    values: Sequence[Any],
    passes: Test,
    bucket: int,
    p: Fraction | int,
    only: Publication | None = None,
) -> Distribution:
    """RGG: like GG, but a group that passes is extended with probability p while there are buckets.

    Args:
        qi, values, passes, bucket: as for `greedy_grouping`.
        p: the probability of extending.
        only: follow only what can become this publication.
    """
    whole_numbers("bucket size", [bucket], 1)
    p = share_fraction("p", p)
    order = row_order(qi)
    found: Distribution = {}

    def _walk(start: int, group: Rows, done: tuple[frozenset[int], ...], chance: Fraction) -> None:
        if not chance:
            return
        if start + bucket > len(order):
            passing = bool(group) and _satisfied(values, group, passes)
            last = as_publication((*done, group) if passing else done)
            if only in (None, last):
                found[last] = found.get(last, Fraction(0)) + chance
            return
        if group and _satisfied(values, group, passes):
            closed = frozenset(group)
            if only is None or closed in only:
                _walk(start, [], (*done, closed), chance * (1 - p))
            chance *= p
        _walk(start + bucket, [*group, *order[start : start + bucket]], done, chance)

    _walk(0, [], (), Fraction(1))
    return found


def symmetric_grouping(qi: Qi, values: Sequence[Any], passes: Test, min_child: int = 0) -> list[Rows]:
    """SG: halve the ordered rows while both halves pass and have at least `min_child` rows."""

    def _split(rows: Rows) -> list[Rows]:
        half = -(-len(rows) // 2)
        children = rows[:half], rows[half:]
        if not _allowed(values, passes, min_child, children):
            return [rows]
        return [group for child in children for group in _split(child)]

    return _split(row_order(qi)) if qi else []


def _allowed(values: Sequence[Any], passes: Test, least: int, children: tuple[Rows, Rows]) -> bool:
    return all(len(c) >= max(1, least) and _satisfied(values, c, passes) for c in children)


@dataclass(frozen=True)
class ReferenceMondrian:
    """Mondrian: cut at the median of the relatively widest dimension while both sides pass.

    Attributes:
        strict: equal values stay on one side; otherwise rows are halved.
        policy: "widest" tries one dimension per group, "fallback" the next widest after a refusal.
        side: where a strict cut puts its own value: "lt" left of it is below, "le" up to and including it.
        min_child: the fewest rows of a side.
    """

    strict: bool
    policy: Literal["widest", "fallback"] = "fallback"
    side: Literal["lt", "le"] = "lt"
    min_child: int = 0

    def group(self, qi: Qi, values: Sequence[Any], passes: Test) -> list[Rows]:
        """The groups of these rows; no row is dropped."""
        everything = list(range(len(qi)))
        spans = [_span(qi, everything, d) for d in range(len(qi[0]))] if qi else []

        def _split(rows: Rows) -> list[Rows]:
            for d in self._ranking(qi, rows, spans):
                children = self._cut(qi, rows, d)
                if _allowed(values, passes, self.min_child, children):
                    return [group for child in children for group in _split(child)]
            return [rows]

        return _split(everything) if qi else []

    def _ranking(self, qi: Qi, rows: Rows, spans: list[Any]) -> list[int]:
        wide = [d for d in range(len(spans)) if _span(qi, rows, d)]
        wide.sort(key=lambda d: (-Fraction(_span(qi, rows, d), spans[d]), d))
        return wide[:1] if self.policy == "widest" else wide

    def _cut(self, qi: Qi, rows: Rows, d: int) -> tuple[Rows, Rows]:
        order = sorted(rows, key=lambda i: (qi[i][d], i))
        if not self.strict:
            half = -(-len(order) // 2)
            return order[:half], order[half:]
        if self.side == "lt":
            at = qi[order[len(order) // 2]][d]
            left = [i for i in order if qi[i][d] < at]
        else:
            at = qi[order[(len(order) - 1) // 2]][d]
            left = [i for i in order if qi[i][d] <= at]
        return left, order[len(left) :]


def _span(qi: Qi, rows: Rows, d: int) -> Any:
    return max(qi[i][d] for i in rows) - min(qi[i][d] for i in rows)


def global_recoding(qi: Qi, values: Sequence[Any], passes: Test) -> list[Rows]:
    """Publish the classes of equal quasi-identifiers if all of them pass, otherwise everything as one group."""
    classes: dict[tuple[Any, ...], Rows] = {}
    for i, row in enumerate(qi):
        classes.setdefault(tuple(row), []).append(i)
    if all(_satisfied(values, rows, passes) for rows in classes.values()):
        return list(classes.values())
    return [list(range(len(qi)))]


def anatomy_counts(frequencies: Sequence[int], ell: int) -> tuple[int, list[int]]:
    """The number of groups that Anatomy forms of values with these frequencies, and what is left, descending."""
    whole_numbers("frequencies", frequencies)
    whole_numbers("l", [ell], 1)
    left = sorted((f for f in frequencies if f), reverse=True)
    rounds = 0
    while len(left) >= ell:
        left = sorted((f for f in (*(x - 1 for x in left[:ell]), *left[ell:]) if f), reverse=True)
        rounds += 1
    return rounds, left


def _most_frequent(values: Sequence[Any], left: Iterable[int], ell: int) -> list[Any] | None:
    """The ℓ values with most rows left; None when fewer values have any."""
    counts = Counter(values[i] for i in left)
    return None if len(counts) < ell else sorted(counts, key=lambda v: (-counts[v], v))[:ell]


def first_row_anatomy(values: Sequence[Any], ell: int) -> list[list[int]] | None:
    """Anatomy that picks the first row of a value, and the first group that lacks it; None: no publication.

    It leaks where the order of the rows is known (erratum C-13).
    """
    whole_numbers("l", [ell], 1)
    left, groups = set(range(len(values))), []
    while (chosen := _most_frequent(values, left, ell)) is not None:
        groups.append([min(i for i in left if values[i] == v) for v in chosen])
        left -= set(groups[-1])
    for i in sorted(left):
        home = next((g for g in groups if all(values[j] != values[i] for j in g)), None)
        if home is None:
            return None
        home.append(i)
    return groups


def anatomy_publications(
    values: Sequence[Any], ell: int, only: Publication | None = None
) -> dict[Publication, Fraction]:
    """The probability of each publication when rows, and groups for what is left over, are picked at random.

    Where a row that is left over finds no group the table has no publication; those probabilities are missing.

    Args:
        values: sensitive value of each row.
        ell: values in a group.
        only: follow only what can become this publication.
    """
    whole_numbers("l", [ell], 1)
    walk = _AnatomyCourses(values, ell, only)
    walk.form((), frozenset(range(len(values))), Fraction(1))
    return walk.found


class _AnatomyCourses:
    """Every course Anatomy may take, with its probability."""

    def __init__(self, values: Sequence[Any], ell: int, only: Publication | None) -> None:
        self.values, self.ell, self.only = values, ell, only
        self.found: dict[Publication, Fraction] = {}

    def form(self, groups: Groups, left: frozenset[int], chance: Fraction) -> None:
        """Form the next group."""
        chosen = _most_frequent(self.values, left, self.ell)
        if chosen is None:
            self.join(groups, sorted(left), chance)
        else:
            self.pick(groups, chosen, frozenset(), left, chance)

    def pick(
        self, groups: Groups, chosen: list[Any], group: frozenset[int], left: frozenset[int], chance: Fraction
    ) -> None:
        """Pick one row of each chosen value."""
        if not chosen:
            self.form((*groups, group), left, chance)
            return
        rows = [i for i in left if self.values[i] == chosen[0]]
        for i in rows:
            if self.fits(group | {i}):
                self.pick(groups, chosen[1:], group | {i}, left - {i}, chance / len(rows))

    def join(self, groups: Groups, left: list[int], chance: Fraction) -> None:
        """Let the rows that are left over join groups."""
        if not left:
            published = frozenset(groups)
            if self.only in (None, published):
                self.found[published] = self.found.get(published, Fraction(0)) + chance
            return
        i = left[0]
        open_to = [k for k, g in enumerate(groups) if all(self.values[j] != self.values[i] for j in g)]
        for k in open_to:
            grown = groups[k] | {i}
            if self.fits(grown):
                self.join((*groups[:k], grown, *groups[k + 1 :]), left[1:], chance / len(open_to))

    def fits(self, group: frozenset[int]) -> bool:
        """Whether the group can still become one of the publication that is followed."""
        return self.only is None or any(group <= target for target in self.only)


def _matches(row: Sequence[Any], predicate: Predicate) -> bool:
    """Whether a row of quasi-identifiers satisfies every condition."""
    return all(row[a] in allowed for a, allowed in predicate.items())


def count_estimate(
    groups: Iterable[tuple[Sequence[Sequence[Any]], Sequence[Any]]],
    predicate: Predicate,
    wanted: Collection[Any],
) -> Fraction:
    """The estimate of a count: Σ over groups of (rows that match)·(values wanted)/(rows in the group).

    Args:
        groups: quasi-identifiers of the rows of each group, and its sensitive values.
        predicate: the condition on quasi-identifiers.
        wanted: the sensitive values that are counted.
    """
    total = Fraction(0)
    for rows, values in groups:
        if rows:
            hits = sum(_matches(row, predicate) for row in rows)
            total += Fraction(hits * sum(v in wanted for v in values), len(rows))
    return total


def count_actual(
    rows: Iterable[tuple[Sequence[Any], Any]], predicate: Predicate, wanted: Collection[Any]
) -> int:
    """The number of original rows that match both conditions."""
    return sum(_matches(qi, predicate) and value in wanted for qi, value in rows)


def relative_error(estimate: Fraction, actual: int) -> Fraction | None:
    """The relative error |estimate − actual|/actual; None when nothing matches, where it is undefined."""
    return abs(estimate - actual) / actual if actual else None
