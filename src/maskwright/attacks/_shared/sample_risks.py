"""The journalist without a list: how many of the population match is estimated from the sample alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.adversary import Target
from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping
from maskwright.domain.references import class_weights
from maskwright.domain.sample import Floats, Sample, weight_totals
from maskwright.population.estimates import KNOWN_ACCURACY
from maskwright.population.figures import SampledClasses, household_figures
from maskwright.population.wildcard import wildcard_totals


def sampled_risks(target: Target, grouping: Grouping) -> tuple[Floats, Floats, dict[str, Any]] | None:
    """The estimated risk of each raw tuple and of each published class, and figures; None: no population is known."""
    sample, summary = target.context.sample, grouping.summary
    if sample is None:
        return None
    before = _classes(sample, summary.codes, summary.codes == 0, summary.tuple_sizes, summary.weights)
    labels = [x.of_group for x in grouping.labels]
    lost = [np.array([text is None for text in x.texts])[x.of_group] for x in grouping.labels]
    weights = None if summary.weights is None else class_weights(grouping, summary.weights)
    after = _classes(sample, np.array(labels), np.array(lost), grouping.classes.sizes, weights)
    then, now = before.risks(), after.risks()
    measures: dict[str, Any] = {
        "population": sample.as_dict() | {"fraction": sample.people / sample.size},
        "before": before.figures(then),
        "after": after.figures(now),
        "accuracy": KNOWN_ACCURACY,
    }
    if (homes := summary.households) is not None:
        for when, risks in (("before", then), ("after", _of_tuples(grouping, now))):
            found = household_figures(risks[homes.tuples], homes.people, homes.rows, homes.n_people)
            measures[when]["households"] = found
    return then, now, measures


def _classes(
    sample: Sample, codes: NDArray[Any], missing: NDArray[np.bool_], sizes: Ints, weights: Floats | None
) -> SampledClasses:
    """Classes with the people of the sample who match them, and those whom these stand for."""
    stand_for = sample.stands_for(sizes) if weights is None else weights
    if not sample.wildcard:
        return SampledClasses(sizes, sizes, stand_for, sample.size)
    people, more = wildcard_totals(codes, missing, sizes, stand_for)
    return SampledClasses(sizes, people, more, sample.size)


def _of_tuples(grouping: Grouping, risks: Floats) -> Floats:
    """The mean risk of the rows of each tuple: that of their classes, and 0 of rows that are not published."""
    allocation = grouping.allocation
    kept = allocation.groups >= 0
    parts = risks[allocation.groups[kept]] * allocation.rows[kept]
    found = weight_totals(allocation.tuples[kept], parts, grouping.summary.n_tuples)
    return np.asarray(found / grouping.summary.rows, dtype=np.float64)
