"""A survey meets its table: the weights and households of its rows, and the population that they stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.sample import Sample, weight_totals
from maskwright.domain.summary import Owned, Summary
from maskwright.engines.base import Engine, SensitiveSpec, SummarySpec
from maskwright.errors import InputError
from maskwright.policy.binding import Resolved

CHANGED = "the input changed while it was being read; nothing was published, run it again"


def with_survey_design(
    engine: Engine, resolved: Resolved, summary: Summary, census: Summary | None
) -> tuple[Summary, Sample | None]:
    """The summary with weights and households, and the population behind it; None: nothing is known of one."""
    policy = resolved.policy
    size = policy.population.size if policy.population is not None else None
    if census is not None:
        size = max(census.n_people, summary.n_people)  # whoever is in the table is one of them
    if size is not None and size < summary.n_people:
        raise InputError(
            f"population: a population of {size:,} cannot have {summary.n_people:,} people in the table; correct `size`"
        )
    if policy.weight is not None:
        weights = _weights(engine, resolved, policy.weight, summary)
        total = float(weights.sum())
        if size is None and total < summary.n_rows:
            raise InputError(
                f"weight: the weights of column {policy.weight!r} add up to {total:.6g}, less than the "
                f"{summary.n_rows:,} rows themselves, as if they were scaled; say how many people they stand for, "
                "population: {size: 100000} with the real number, to which they are then scaled"
            )
        size = size or round(total)
        summary = replace(summary, weights=weights * (size / total))
    if size is None:
        return summary, None
    if policy.household is not None:
        summary = replace(summary, households=_households(engine, resolved, policy.household, summary))
    wildcard = policy.missing.wildcard
    return summary, Sample(size, summary.n_people, policy.weight is not None, wildcard)


def _weights(engine: Engine, resolved: Resolved, column: str, summary: Summary) -> NDArray[np.float64]:
    """The sum of the weights of each tuple: distinct weights are counted like the values of a sensitive column."""
    domain = engine.domain(resolved.source, column)
    if domain.missing:
        raise InputError(
            f"weight: column {column!r} is missing in {domain.missing} rows; complete it or remove the rows"
        )
    values = np.array([_weight(text, column) for text in domain.values], dtype=np.float64)
    spec = SensitiveSpec(column, domain.values)
    found = engine.summarise(resolved.source, _spec(resolved, [spec]))
    counts = found.sensitive[column]
    amounts = counts.counts * values[counts.codes - 1]
    return weight_totals(counts.owner, amounts, found.n_tuples)[_places(summary, found)]


def _weight(text: str, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise InputError(
            f"weight: column {column!r} holds {text[:40]!r}, which is no weight; weights are numbers above 0"
        )
    return value


def _households(engine: Engine, resolved: Resolved, column: str, summary: Summary) -> Owned:
    """How many rows of each tuple are of which household."""
    if missing := engine.domain(resolved.source, column, limit=1).missing:
        raise InputError(
            f"household: column {column!r} is missing in {missing} rows; complete it or remove the rows"
        )
    found = engine.summarise(resolved.source, _spec(resolved, [], column))
    if found.owned is None:
        raise InputError(CHANGED)
    place = np.empty(found.n_tuples, dtype=np.int64)
    place[_places(summary, found)] = np.arange(summary.n_tuples)
    return replace(found.owned, tuples=place[found.owned.tuples], values={})


def _spec(resolved: Resolved, more: Sequence[SensitiveSpec], unit: str | None = None) -> SummarySpec:
    """What to count beside the summary: the same rows, so that those with missing values are left out as there."""
    drop = resolved.spec.drop_missing
    known = [s for s in resolved.spec.sensitive if drop and s.name not in {m.name for m in more}]
    return SummarySpec(resolved.spec.attributes, (*known, *more), unit, drop)


def _places(summary: Summary, found: Summary) -> NDArray[np.int64]:
    """For each tuple of a summary its place in another one of the same rows."""
    mine, theirs = np.lexsort(summary.codes), np.lexsort(found.codes)
    if not np.array_equal(summary.codes[:, mine], found.codes[:, theirs]):
        raise InputError(CHANGED)
    places = np.empty(summary.n_tuples, dtype=np.int64)
    places[mine] = theirs
    return places
