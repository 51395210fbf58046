"""Estimates of population uniqueness side by side, with what is known of their accuracy.

No estimator is right for all tables, so all of them are shown. Dankar's rule says which one to look at first
[Dankar et al. 2012]: Pitman up to a sampling fraction of 1/10, beyond it the smaller one of SNB and Zayatz.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from maskwright.population.counts import SampleCounts
from maskwright.population.negative_binomial import shifted_uniques
from maskwright.population.pitman import pitman_uniques
from maskwright.population.zayatz import zayatz_uniques

Estimator = Literal["dankar", "pitman", "zayatz", "snb"]
UNIQUES: Mapping[str, Callable[[SampleCounts], float | None]] = {
    "pitman": pitman_uniques,
    "zayatz": zayatz_uniques,
    "snb": shifted_uniques,
}
SMALL_FRACTION = 0.1  # Dankar's rule: up to here Pitman
KNOWN_ACCURACY = (  # measured by experiments/population.py
    "With 299,285 people of Census-Income as the population, samples of a tenth led to 0.94 to 1.56 times the true "
    "share of uniques, samples of a hundredth to 1.52 to 5.29 times. These are estimates, and no guarantee."
)


@dataclass(frozen=True)
class UniquenessEstimates:
    """The estimated share of population uniques, by estimator.

    Attributes:
        shares: for each estimator; None: it gives no answer for these class sizes.
        chosen: the estimator that Dankar's rule picks; None: none of them gives an answer.
    """

    shares: Mapping[str, float | None]
    chosen: str | None


def uniqueness_estimates(counts: SampleCounts) -> UniquenessEstimates:
    """The share of the population that is unique, by every estimator."""
    shares = {name: _share(counts, name) for name in UNIQUES}
    return UniquenessEstimates(shares, _chosen(shares.__getitem__, counts.fraction))


def estimated_share(counts: SampleCounts, estimator: Estimator) -> float | None:
    """The share by one estimator, or by the one that Dankar's rule picks; None: it gives no answer."""
    found: dict[str, float | None] = {}

    def share(name: str) -> float | None:
        if name not in found:
            found[name] = _share(counts, name)
        return found[name]

    name = _chosen(share, counts.fraction) if estimator == "dankar" else estimator
    return None if name is None else share(name)


def _share(counts: SampleCounts, name: str) -> float | None:
    """The share of population uniques by one estimator; counted where the sample is the population."""
    whole = counts.people == counts.population
    uniques = float(counts.of_size(1)) if whole else UNIQUES[name](counts)
    return None if uniques is None else uniques / counts.population


def _chosen(share: Callable[[str], float | None], fraction: float) -> str | None:
    """The estimator that Dankar's rule picks, among those that give an answer."""
    if fraction <= SMALL_FRACTION and share("pitman") is not None:
        return "pitman"
    answers = {name: found for name in ("snb", "zayatz") if (found := share(name)) is not None}
    return min(answers, key=lambda name: answers[name]) if answers else None
