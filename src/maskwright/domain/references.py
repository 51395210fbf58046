"""What classes are compared with (the whole table, or those who are published), and what models must know of them.

A method that drops people after it looked, by their number, compares with the table before suppression. A gate is asked
of the release, so that it compares with the release: what it says is then a function of what is published, and says
nothing of those who are not. So does a method that drops rows at random before it looks at any value.

Some models must know of a class besides sizes and values who matches it, or what it was made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints, Originals, ValueCounts
from maskwright.domain.grouping import Grouping, allocated_classes
from maskwright.domain.guards import Guards
from maskwright.domain.model import Context, Model, Need
from maskwright.domain.sample import weight_totals
from maskwright.domain.summary import Summary
from maskwright.domain.values import arrange_values
from maskwright.domain.verdict import Verdict
from maskwright.errors import PolicyError


@dataclass(frozen=True, eq=False)
class References:
    """The contexts of models: of those that a method searched for, and of gates."""

    search: Context
    gates: Context

    @staticmethod
    def of(grouping: Grouping, context: Context) -> References:
        """What the models of a grouping compare its classes with; `context` is that of the whole table."""
        gates = released_context(grouping, context)
        return References(gates if grouping.trace.dropped_first else context, gates)

    def context_of(self, model: Model) -> Context:
        """The context that a model is checked in, by its use."""
        return self.gates if model.use == "gate" else self.search

    def check(self, model: Model, classes: Classes) -> Verdict:
        """What a model says about classes, whose values may be coded as in the whole table."""
        context = self.context_of(model)
        return model.check(coded_as(classes, context), context)

    def nearest(self, model: Model, classes: Classes) -> str | None:
        """The nearest setting of a model that classes would satisfy."""
        context = self.context_of(model)
        return model.nearest(coded_as(classes, context), context)


def released_context(grouping: Grouping, context: Context) -> Context:
    """The context by the people who are published."""
    whole = grouping.summary.dropped_missing == 0 and grouping.dropped_rows == 0
    if whole and not grouping.published:
        return context
    groups = np.minimum(grouping.allocation.groups, 0)
    kept = allocated_classes(grouping.summary, replace(grouping.allocation, groups=groups), 1)
    counts = {name: vc.totals for name, vc in kept.sensitive.items()}
    counts |= {name: vc.totals for name, vc in (grouping.published or {}).items()}
    return context_of_rows(context, counts, int(kept.sizes[0]))


def context_of_rows(context: Context, counts: Mapping[str, Ints], people: int) -> Context:
    """The context by some of the rows: how often they hold each value (index = code), and of how many people they are.

    A value that none of them holds is none, unless a hierarchy of the attribute lists it.
    """
    reference, domains = dict(context.reference), dict(context.domains)
    for name, totals in counts.items():
        values = context.domains.get(name)
        if name not in context.reference or values is None:
            continue
        reference[name] = totals
        hierarchy = context.hierarchies.get(name)
        if (hierarchy is not None and len(hierarchy.levels) > 2) or not _told_apart(name, context):
            continue
        held = {value: int(n) for value, n in zip(values, totals[1:].tolist(), strict=True) if n}
        order = [v for v in values if v in held] if hierarchy is not None else arrange_values(name, held)[0]
        domains[name] = tuple(order)
        reference[name] = np.array([totals[0], *(held[v] for v in order)], dtype=np.int64)
    return replace(context, reference=reference, n_people=people, domains=domains, published=True)


def _told_apart(name: str, context: Context) -> bool:
    """Are the values of the attribute those that occur? Bits of sets are true or false whatever occurs."""
    return not any(name in column.bits for column in context.sets)


def coded_as(classes: Classes, context: Context) -> Classes:
    """The classes with their sensitive values coded by the domains of a context."""
    changed = {
        name: _translated(counts, context.domains[name])
        for name, counts in classes.sensitive.items()
        if name in context.domains and counts.values != context.domains[name]
    }
    return replace(classes, sensitive={**classes.sensitive, **changed}) if changed else classes


def _translated(counts: ValueCounts, values: tuple[str, ...]) -> ValueCounts:
    code = {value: i + 1 for i, value in enumerate(values)}
    number = np.array([0, *(code.get(value, -1) for value in counts.values)], dtype=np.int64)
    codes = number[counts.codes]
    if (codes < 0).any():
        raise ValueError("a class holds a value that the reference does not know")
    return ValueCounts.collect(values, counts.n_classes, counts.owner, codes, counts.counts, counts.ordered)


def population_matches(model: Model, classes: Classes) -> Ints:
    """People of the population per class; refused where there is no population table."""
    if classes.population is None:
        raise PolicyError(f"{model.name} needs a population table to compare the classes with; name one")
    return classes.population


def count_matches(census: Summary, blocks: Sequence[NDArray[np.int32]], codes: NDArray[np.int32]) -> Ints:
    """People of the population whose tuple falls into each class of a full-domain recoding.

    Args:
        census: the population, summarised with the hierarchies of the table.
        blocks: per attribute the block of each code at the published level.
        codes: per attribute and class the block that the class publishes.
    """
    theirs = np.array([b[c] for b, c in zip(blocks, census.codes, strict=True)], dtype=np.int64)
    n = codes.shape[1]
    together = np.concatenate(
        [codes.astype(np.int64).reshape(len(blocks), n), theirs.reshape(len(blocks), -1)], axis=1
    )
    _, number = np.unique(together, axis=1, return_inverse=True)
    class_of = np.full(int(number.max(initial=-1)) + 1, -1, dtype=np.int64)
    class_of[number[:n]] = np.arange(n)
    return census.classes(class_of[number[n:]], n).sizes


def class_weights(grouping: Grouping, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of survey weights of each class, from that of each tuple.

    Where the rows of a tuple are split over classes, which of them went where is drawn at random, and not known here:
    each counts with the mean weight of the tuple.
    """
    tuples, rows = grouping.allocation.tuples, grouping.allocation.rows
    parts = weights[tuples] * (rows / grouping.summary.rows[tuples])
    return weight_totals(grouping.allocation.groups, parts, grouping.classes.n)


def class_guards(grouping: Grouping) -> dict[str, Guards] | None:
    """The nodes that guard somebody of each class: those of every tuple of which it holds a row.

    Which of the people with the same quasi-identifiers is in which class is not known, so that all their nodes count in
    each of them.
    """
    allocation = grouping.allocation
    if grouping.summary.guards is None:
        return None
    found = {}
    for name, guards in grouping.summary.guards.items():
        there = np.argsort(allocation.tuples, kind="stable")
        tuples, groups = allocation.tuples[there], allocation.groups[there]
        first = np.searchsorted(tuples, guards.owner)
        many = np.searchsorted(tuples, guards.owner, side="right") - first
        inside = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        owner, node = groups[np.repeat(first, many) + inside], np.repeat(guards.node, many)
        found[name] = Guards.of(guards.nodes, owner[owner >= 0], node[owner >= 0])
    return found


def furnished_classes(grouping: Grouping, needs: frozenset[Need], census: Summary | None) -> Classes:
    """The classes of a grouping with what the models need to know of them."""
    summary, allocation, classes = grouping.summary, grouping.allocation, grouping.classes
    changes: dict[str, Any] = {"attributes": tuple(labels.attribute for labels in grouping.labels)}
    if needs & {"labels", "population"}:  # a copy, and there may be millions of classes
        published = np.array([labels.of_group for labels in grouping.labels])
        changes["codes"] = published.reshape(len(grouping.labels), classes.n)
    if "originals" in needs:
        if allocation.cells is not None:
            raise PolicyError("m-confidentiality can be checked only where the rows of a tuple stay together")
        class_of = np.full(summary.n_tuples, -1, dtype=np.int64)
        class_of[allocation.tuples] = allocation.groups
        changes["originals"] = Originals.of(class_of, summary.sizes, classes.n)
    if "ancestors" in needs:
        changes["ancestors"] = grouping.ancestors
    if "sample" in needs and summary.weights is not None:
        changes["weights"] = class_weights(grouping, summary.weights)
    if "guards" in needs:
        changes["guards"] = class_guards(grouping)
    if "population" in needs and census is not None:
        if grouping.levels is None:
            raise PolicyError(
                "a population can be compared only with a full-domain recoding (optimal-lattice …)"
            )
        levels = zip(summary.attributes, grouping.levels, strict=True)
        people = count_matches(census, [h.levels[n].blocks for h, n in levels], changes["codes"])
        if grouping.starred is not None:  # `*` may be anybody
            people[grouping.starred] = census.n_people
        changes["population"] = people
    return replace(classes, **changes)
