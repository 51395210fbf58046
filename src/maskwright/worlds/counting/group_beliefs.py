"""What greedy grouping and even splits give away, and bounds on it before any data are seen [Cormode et al. 2010].

Greedy grouping cuts the rows, in order, into buckets of ℓ and adds buckets to a group until it is diverse. So in a
group of m buckets no proper prefix is diverse. The randomised version extends a diverse group with probability p, and
a world weighs p to the number of its diverse proper prefixes. An even-split method divides a group into children whose
sizes differ by at most one row, and publishes it undivided because a child violates ℓ-diversity: the worlds are those
of the minimality attack.

Each bound holds only under the conditions it names, for an adversary who knows the method and its parameters. Retrying
with other parameters after looking at the outcome, dropping people because of their values, a second dimension after a
refusal, and Anatomy inside groups that were made by looking at sensitive values void all of them: then beliefs can only
be measured.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import (
    positive_fraction,
    refuse_beyond,
    share_fraction,
    whole_numbers,
)
from maskwright.worlds.counting.credibility import credibility_global


@dataclass(frozen=True)
class GreedyBeliefs:
    """Beliefs in one group of greedy grouping under binary ℓ-diversity.

    Attributes:
        beliefs: per bucket, that a given row of it is positive.
        first_bucket: N_k, the number of worlds with k positives in the first bucket, divided by m!(mℓ−m)!.
    """

    beliefs: list[Fraction]
    first_bucket: dict[int, Fraction]


def greedy_group(ell: int, buckets: int) -> GreedyBeliefs:
    """Beliefs in a group of that many buckets; it holds as many positives as buckets."""
    whole_numbers("l and the number of buckets", [ell, buckets], 1)
    beliefs = [Fraction(1, ell)] if buckets == 1 else randomised_group(ell, buckets, buckets, Fraction(0))
    if beliefs is None:
        raise UsageError(f"with l = {ell} greedy grouping makes no group of {buckets} buckets")
    rows = ell * (buckets - 1)
    first = {
        k: Fraction(k - 1, buckets - 1) * math.comb(ell, k) * math.comb(rows, buckets - k)
        for k in range(2, min(ell, buckets) + 1)
    }
    return GreedyBeliefs(beliefs, first)


def randomised_group(ell: int, buckets: int, positives: int, p: Fraction | int) -> list[Fraction] | None:
    """Beliefs per bucket in a group of randomised greedy grouping; None when there is no such group.

    Args:
        ell: rows in a bucket, and the diversity asked for.
        buckets: buckets in the group.
        positives: positive rows in the group.
        p: the probability of extending a diverse group (0: plain greedy grouping).
    """
    whole_numbers("l and the number of buckets", [ell, buckets], 1)
    whole_numbers("positives", [positives])
    p = share_fraction("p", p)
    if positives > buckets:
        return None
    ways = [math.comb(ell, k) for k in range(min(ell, positives) + 1)]
    before = [[1] + [0] * positives]  # before[i][s]: weight of the first i buckets with s positives
    for i in range(1, buckets):
        before.append(_weighed(_add_bucket(before[-1], ways), i, p))
    after = [
        [0] * positives + [1]
    ]  # after[m − i][s]: weight of the buckets past i, given s positives up to i
    for i in range(buckets - 1, 0, -1):
        after.append(_weighed(_add_bucket(after[-1][::-1], ways)[::-1], i, p))
    after.reverse()
    total = sum(a * c * b for a, c, b in _steps(before[0], after[0], ways))
    if not total:
        return None
    result = []
    for start, end in zip(before, after, strict=True):
        held = sum(
            start[s] * k * c * end[s + k]
            for s in range(positives + 1) if start[s]
            for k, c in enumerate(ways) if s + k <= positives
        )  # fmt: skip
        result.append(Fraction(held, total * ell))
    return result


def _steps(start: list[int], end: list[int], ways: list[int]) -> Iterator[tuple[int, int, int]]:
    """One bucket between two rows of weights: weight before it, ways to fill it, weight after it."""
    for s, weight in enumerate(start):
        if weight:
            for k, c in enumerate(ways[: len(end) - s]):
                yield weight, c, end[s + k]


def _add_bucket(weights: list[int], ways: list[int]) -> list[int]:
    """Weights by number of positives once another bucket is added."""
    result = [0] * len(weights)
    for s, weight in enumerate(weights):
        if weight:
            for k, c in enumerate(ways[: len(weights) - s]):
                result[s + k] += weight * c
    return result


def _weighed(weights: list[int], prefix: int, p: Fraction) -> list[int]:
    """A diverse prefix was extended with probability p = a/b; weights are kept whole by b for the others."""
    return [w * (p.numerator if s <= prefix else p.denominator) for s, w in enumerate(weights)]


def greedy_group_of_values(counts: Sequence[int], ell: int, buckets: int) -> list[list[Fraction]] | None:
    """Beliefs (bucket, value) in a group of greedy grouping under simple ℓ-diversity; None without worlds.

    The first i < m buckets hold some value more than i times, all m of them no value more than m times.

    Args:
        counts: how often each value occurs in the group, ℓ·m together.
        ell: rows in a bucket, and the diversity asked for.
        buckets: buckets in the group, m.
    """
    whole_numbers("l and the number of buckets", [ell, buckets], 1)
    whole_numbers("counts", counts)
    if sum(counts) != ell * buckets:
        raise UsageError(f"the values occur {sum(counts)} times, not l·m = {ell * buckets} times")
    if max(counts) > buckets:
        return None
    table = _Prefixes(tuple(sorted(counts)), ell, buckets)
    found = table.beliefs()
    if found is None:
        return None
    return [[row[c] for c in counts] for row in found]


class _Prefixes:
    """Dynamic programming over what the first buckets have used of each value.

    Values that occur equally often are interchangeable, so states that differ by their order are one.
    """

    def __init__(self, counts: tuple[int, ...], ell: int, buckets: int) -> None:
        self.counts, self.ell, self.buckets = counts, ell, buckets
        self.equal = [[v for v, c in enumerate(counts) if c == number] for number in sorted(set(counts))]

    def beliefs(self) -> list[dict[int, Fraction]] | None:
        """Per bucket: multiplicity of a value in the group → probability that a row has that value."""
        layers = [{(0,) * len(self.counts): 1}]
        steps = []
        for i in range(1, self.buckets + 1):
            arrows = {state: list(self._fill(state)) for state in layers[-1]}
            layer: dict[tuple[int, ...], int] = defaultdict(int)
            for state, weight in layers[-1].items():
                for more, ways in arrows[state]:
                    reached = self._canonical(state, more)
                    if i == self.buckets or max(reached) > i:
                        layer[reached] += weight * ways
            steps.append(arrows)
            layers.append(dict(layer))
            refuse_beyond(sum(map(len, arrows.values())))
        total = layers[-1].get(self.counts, 0)
        return self._backwards(layers, steps, total) if total else None

    def _backwards(
        self,
        layers: list[dict[tuple[int, ...], int]],
        steps: list[dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]]],
        total: int,
    ) -> list[dict[int, Fraction]]:
        many = Counter(self.counts)
        onwards = {self.counts: 1}
        result = []
        for layer, arrows in zip(reversed(layers[:-1]), reversed(steps), strict=True):
            held: dict[int, int] = dict.fromkeys(many, 0)
            here = {}
            for state, weight in layer.items():
                rest = 0
                for more, ways in arrows[state]:
                    worlds = ways * onwards.get(self._canonical(state, more), 0)
                    rest += worlds
                    for v, x in enumerate(more):
                        held[self.counts[v]] += weight * worlds * x
                here[state] = rest
            onwards = here
            result.append({c: Fraction(h, total * self.ell * many[c]) for c, h in held.items()})
        return result[::-1]

    def _canonical(self, state: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
        reached = [a + b for a, b in zip(state, more, strict=True)]
        return tuple(x for values in self.equal for x in sorted(reached[v] for v in values))

    def _fill(self, state: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int]]:
        """Every way to fill one bucket: how many rows of each value, and in how many orders."""
        room = [c - s for c, s in zip(self.counts, state, strict=True)]

        def _extend(prefix: tuple[int, ...], left: int, ways: int) -> Iterator[tuple[tuple[int, ...], int]]:
            v = len(prefix)
            if v == len(room):
                if not left:
                    yield prefix, ways
                return
            for x in range(min(room[v], left) + 1):
                yield from _extend((*prefix, x), left - x, ways * math.comb(left, x))

        yield from _extend((), self.ell, 1)


def even_split_beliefs(sizes: Sequence[int], sensitive: int, ell: Fraction | int) -> list[Fraction] | None:
    """The belief that a row of each child is sensitive, after the split was refused; None without worlds.

    Args:
        sizes: the rows of each child.
        sensitive: the sensitive rows in the group.
        ell: the diversity that every child had to satisfy.
    """
    found = credibility_global(sizes, sensitive, ell, exact=True)
    return None if found is None else [Fraction(x) for x in found.values]


def greedy_ceiling(ell: int) -> Fraction:
    """The bound (ℓ/(ℓ−1))^{ℓ−1}/ℓ on belief for greedy grouping, plain or randomised with any p (1 for ℓ = 2).

    Groups of more and more buckets approach it from below. Buckets have ℓ rows, binary or value-set diversity is the
    only requirement, and people in the dropped tail are not covered.
    """
    whole_numbers("l", [ell], 2)
    return Fraction(ell, ell - 1) ** (ell - 1) / ell


def even_split_bound(ell: Fraction | int) -> Fraction:
    """The bound 1/(ℓ−1) on belief for methods that split evenly: run with ℓ = l + 1 they keep belief below 1/l.

    Binary or value-set diversity is the only requirement; a group is split once, into two children whose sizes differ
    by at most one row, each of at least ℓ rows; nobody is dropped because of a value. Below ℓ = 2 nothing is bounded.
    """
    ell = positive_fraction("l", ell)
    return Fraction(1) if ell <= 2 else 1 / (ell - 1)
