"""Individual risk: the chance that a record is re-identified in the population [Benedetti, Franconi 1998].

A class of f people in the sample stands for F in the population; given f, F is taken to be negative binomial with
success probability p = f/ΣW, the share of the class that was sampled. The risk is the mean of 1/F,

    r(f, p) = (p^f / f)·₂F₁(f, f; f+1; 1−p) = (p/f)·₂F₁(1, 1; f+1; 1−p) = p·∫₀¹ u^(f−1) / (p + (1−p)u) du.

The middle form is a series of positive terms, and needs few of them unless both f and p are small; there
r(1, p) = −p·ln p/(1−p) and r(f+1, p) = p/(1−p)·(1/f − r(f, p)), whose errors shrink while p < 1/2.

From these the figures of a sample follow: what the journalist and the marketer find in the population, all of it
estimated. With wildcards a missing value matches every value, as statisticians count frequencies: (Male, Secondary
complete, Employed), (Male, Secondary incomplete, Employed) and (Male, –, Employed) have frequencies of 2, 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.segments import dense_numbers
from maskwright.population.counts import SampleCounts
from maskwright.population.estimates import uniqueness_estimates

Floats = NDArray[np.float64]

STEPS = 40  # of the recurrence; for larger classes the series ends sooner than that
PRECISE = 1e-17  # of a sum of at least 1: what comes after such a term does not change it


def individual_risks(frequencies: NDArray[Any], weights: NDArray[Any]) -> Floats:
    """The risk of each class, from its people in the sample and the people that it stands for.

    Args:
        frequencies: people of each class in the sample, at least 1.
        weights: the sum of their survey weights; less than the frequency counts as that many.
    """
    f = np.asarray(frequencies, dtype=np.float64)
    share = np.minimum(f / np.maximum(np.asarray(weights, dtype=np.float64), f), 1.0)
    few = (f <= STEPS) & (share < 0.5)
    result = np.empty(f.shape)
    result[few] = _by_recurrence(f[few], share[few])
    result[~few] = _by_series(f[~few], share[~few])
    return result


def _by_recurrence(f: Floats, p: Floats) -> Floats:
    """r(f, p) for small classes of which less than half was sampled."""
    odds = p / (1 - p)
    risk = -odds * np.log(p)
    left = np.flatnonzero(f > 1)
    step = 1
    while len(left):
        risk[left] = odds[left] * (1 / step - risk[left])
        step += 1
        left = left[f[left] > step]
    return risk


def _by_series(f: Floats, p: Floats) -> Floats:
    """r(f, p) by (p/f)·Σ k!·(1−p)^k / ((f+1)…(f+k))."""
    rest = 1 - p
    total, term = np.ones(f.shape), np.ones(f.shape)
    left = np.flatnonzero(rest > 0)
    k = 0
    while len(left):
        k += 1
        term[left] *= k * rest[left] / (f[left] + k)
        total[left] += term[left]
        left = left[term[left] > PRECISE]
    return p / f * total


def household_risks(risks: NDArray[Any], households: NDArray[Any], n_households: int) -> Floats:
    """The chance that at least one member of each household is re-identified: 1 − Π(1 − r).

    Args:
        risks: of each person.
        households: the number of each person's household, from 0 on.
        n_households: how many households there are.
    """
    with np.errstate(divide="ignore"):  # a person who is found for certain: the logarithm of 0
        none = np.log1p(-np.minimum(np.asarray(risks, dtype=np.float64), 1.0))
    return -np.expm1(np.bincount(households, weights=none, minlength=n_households))


def wildcard_totals(
    codes: NDArray[np.integer], missing: NDArray[np.bool_], *amounts: NDArray[Any]
) -> list[NDArray[Any]]:
    """For each tuple the total of each amount (people, weights) over the tuples that match it.

    Tuples are compared on what is missing in neither of them. Patterns of what is missing are few: for each, those that
    leave the same columns to compare are one grouping.

    Args:
        codes: one row per attribute, one column per tuple; not negative.
        missing: which of the codes are missing.
        amounts: what is added up; tuples may be equal.
    """
    patterns, of_pattern = np.unique(missing, axis=1, return_inverse=True)
    of_pattern = of_pattern.reshape(-1)
    results = [np.zeros(codes.shape[1], dtype=amount.dtype) for amount in amounts]
    for p in range(patterns.shape[1]):
        mine = np.flatnonzero(of_pattern == p)
        unions, of_union = np.unique(patterns | patterns[:, [p]], axis=1, return_inverse=True)
        union_of_tuple = of_union.reshape(-1)[of_pattern]
        for u in range(unions.shape[1]):
            theirs = np.flatnonzero(union_of_tuple == u)
            number = _numbers(codes[~unions[:, u]], np.concatenate([mine, theirs]))
            for result, amount in zip(results, amounts, strict=True):
                sums = np.zeros(int(number.max()) + 1, dtype=amount.dtype)
                np.add.at(sums, number[len(mine) :], amount[theirs])
                result[mine] += sums[number[: len(mine)]]
    return results


def _numbers(codes: NDArray[np.integer], tuples: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each tuple, the same where all codes are."""
    number, count = np.zeros(len(tuples), dtype=np.int64), 1
    for column in codes:
        radix = int(column.max(initial=0)) + 1
        if count * radix >= 2**62:
            number, count = dense_numbers(number, count)
        number, count = number * radix + column[tuples], count * radix
    return dense_numbers(number, count)[0]


Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SampledClasses:
    """Classes of a sample, and the people of the population that they stand for.

    Attributes:
        sizes: people of each class.
        frequencies: people who match each class: the same, unless a missing value matches every value.
        weights: people of the population that those stand for.
        population: the size of the population.
        n_people: people of the sample, who may be in several classes.
    """

    sizes: Ints
    frequencies: Ints
    weights: Floats
    population: int
    n_people: int

    def risks(self) -> Floats:
        """The individual risk of each class."""
        return individual_risks(self.frequencies, self.weights)

    def figures(self, risks: Floats) -> dict[str, Any]:
        """The risks of the journalist and the marketer, and the share of population uniques by every estimator."""
        marketer = float((self.sizes * risks).sum()) / max(1, int(self.sizes.sum()))
        uniqueness = uniqueness_estimates(SampleCounts.of_people(self.sizes, self.n_people, self.population))
        return {
            "people": self.n_people,
            "highest": float(risks.max()),
            "marketer": marketer,
            "expected_reidentifications": marketer * self.n_people,
            "sample_uniques": int((self.sizes == 1).sum()),
            "population_uniques": dict(uniqueness.shares),
            "dankars_rule": uniqueness.chosen,
        }


def household_figures(risks: Floats, households: Ints, rows: Ints, n_households: int) -> dict[str, Any]:
    """The highest risk of a household, and the people who are expected to live in one of which somebody is found.

    Args:
        risks: of the people of each entry.
        households: the household of each entry, from 0 on.
        rows: how many people of the household it is.
        n_households: how many households there are.
    """
    found = household_risks(np.repeat(risks, rows), np.repeat(households, rows), n_households)
    members = np.bincount(households, weights=rows, minlength=n_households)
    return {
        "households": int((members > 0).sum()),
        "highest": float(found.max(initial=0.0)),
        "expected_people": float((found * members).sum()),
    }
