"""The figures of a sample: what the journalist and the marketer find in the population, all of it estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.population.counts import SampleCounts
from maskwright.population.estimates import uniqueness_estimates
from maskwright.population.individual import Floats, household_risks, individual_risks

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SampledClasses:
    """Classes of a sample, and the people of the population that they stand for.

    Attributes:
        sizes: people of each class.
        frequencies: people who match each class: the same, unless a missing value matches every value.
        weights: people of the population that those stand for.
        population: the size of the population.
    """

    sizes: Ints
    frequencies: Ints
    weights: Floats
    population: int

    def risks(self) -> Floats:
        """The individual risk of each class."""
        return individual_risks(self.frequencies, self.weights)

    def figures(self, risks: Floats) -> dict[str, Any]:
        """The risks of the journalist and the marketer, and the share of population uniques by every estimator."""
        expected, people = float((self.sizes * risks).sum()), int(self.sizes.sum())
        uniqueness = uniqueness_estimates(SampleCounts.of(self.sizes, self.population))
        return {
            "people": people,
            "highest": float(risks.max()),
            "marketer": expected / people,
            "expected_reidentifications": expected,
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
