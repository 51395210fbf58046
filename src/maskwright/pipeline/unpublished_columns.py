"""Columns that are counted and never published: survey weights, households, and the nodes that guard people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.guards import Guards
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.sample import Sample, weight_totals
from maskwright.domain.settings import did_you_mean
from maskwright.domain.summary import Owned, Summary
from maskwright.engines.base import Engine, SensitiveSpec, SummarySpec
from maskwright.errors import InputError, PolicyError
from maskwright.models.personalised_privacy import PersonalisedPrivacy
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
    place = _places_in(summary, found, every_tuple=True)
    return weight_totals(place[counts.owner], amounts, summary.n_tuples)


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
    place = _places_in(summary, found, every_tuple=True)
    return replace(found.owned, tuples=place[found.owned.tuples], values={})


def _spec(resolved: Resolved, more: Sequence[SensitiveSpec], unit: str | None = None) -> SummarySpec:
    """What to count beside the summary: the same rows, so that those with missing values are left out as there."""
    drop = resolved.spec.drop_missing
    known = [s for s in resolved.spec.sensitive if drop and s.name not in {m.name for m in more}]
    return SummarySpec(resolved.spec.attributes, (*known, *more), unit, drop)


def with_guards(engine: Engine, resolved: Resolved, summary: Summary) -> Summary:
    """The summary with the nodes that guard somebody of each tuple, where a requirement asks for them."""
    asking: dict[str, PersonalisedPrivacy] = {}
    for model in resolved.models:
        if isinstance(model, PersonalisedPrivacy) and model.attribute is not None:
            first = asking.setdefault(model.attribute, model)
            if (first.guarding, first.unnamed) != (model.guarding, model.unnamed):
                raise PolicyError(
                    f"{model.name}: two requirements about {model.attribute!r} name different guarding columns, or "
                    "different `unnamed`; use one"
                )
    if not asking:
        return summary
    return replace(
        summary, guards={name: _guards(engine, resolved, model, summary) for name, model in asking.items()}
    )


def _guards(engine: Engine, resolved: Resolved, model: PersonalisedPrivacy, summary: Summary) -> Guards:
    """The nodes of one requirement by tuple. No message says what the column holds, or how often."""
    column, attribute = model.guarding, model.attribute or ""
    where = f"{model.name}: guarding: column {column!r}"
    names = [c.name for c in resolved.source.columns]
    if column not in names:
        raise InputError(f"{where} is not in the table; {did_you_mean(column, names)}")
    if column in resolved.published:
        raise PolicyError(
            f"{where} would be published with its role; a guarding column is never: leave it out of `columns`"
        )
    domain = engine.domain(resolved.source, column)
    if domain.missing and model.unnamed == "refuse":
        raise InputError(
            f"{where} is empty for some people; name a node for everybody, or write unnamed: unguarded if any value "
            "may be known of them"
        )
    values = next(s.values for s in resolved.spec.sensitive if s.name == attribute)
    known = nodes_of(values, resolved.hierarchies.get(attribute))
    if not set(domain.values) <= known.keys():
        able = sorted(text for text, members in known.items() if not members >= set(values))
        shown = ", ".join(map(repr, able[:20])) + (", …" if len(able) > 20 else "")
        raise InputError(
            f"{where} holds something that is not a node of the hierarchy of {attribute!r}; its nodes are {shown}; if "
            f"a node is missing, give {attribute!r} a hierarchy that has it"
        )
    nodes = [known[text] for text in domain.values]
    if any(len(values) > 1 and members >= set(values) for members in nodes):
        raise InputError(
            f"{where} names a node with all values of {attribute!r} under it, and that somebody has one of them is "
            "certain; name a lower node"
        )
    spec = SensitiveSpec(column, domain.values)
    found = engine.summarise(resolved.source, _spec(resolved, [spec]))
    counts = found.sensitive[column]
    named = counts.codes > 0
    place = _places_in(summary, found)
    return Guards.of(nodes, place[counts.owner[named]], counts.codes[named].astype(np.int64) - 1)


def nodes_of(values: Sequence[str], hierarchy: Hierarchy | None) -> Mapping[str, frozenset[str]]:
    """The values under each node of a sensitive column: of every label of its hierarchy, and of each value.

    A text that several levels use stands for all values under any of them: that is the stricter way.
    """
    nodes = {value: {value} for value in values}
    for level in hierarchy.levels if hierarchy is not None else ():
        for code, value in enumerate(hierarchy.values if hierarchy is not None else (), start=1):
            text = level.labels[level.blocks[code]]
            if text is not None:
                nodes.setdefault(text, set()).add(value)
    return {text: frozenset(members) for text, members in nodes.items()}


def _places_in(summary: Summary, found: Summary, every_tuple: bool = False) -> NDArray[np.int64]:
    """For each tuple of another summary, of some of the same rows, its place in this one.

    `every_tuple`: it is of the same rows, and has all tuples.
    """
    together = np.concatenate([summary.codes, found.codes], axis=1)
    _, number = np.unique(together, axis=1, return_inverse=True)
    number = number.reshape(-1)
    place = np.full(int(number.max(initial=-1)) + 1, -1, dtype=np.int64)
    place[number[: summary.n_tuples]] = np.arange(summary.n_tuples)
    result = place[number[summary.n_tuples :]]
    if (result < 0).any() or (every_tuple and found.n_tuples != summary.n_tuples):
        raise InputError(CHANGED)
    return result
