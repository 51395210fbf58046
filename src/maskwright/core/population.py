"""What some models must know of a class besides sizes and values: who matches it, what it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.core.classes import Classes, Ints, Originals
from maskwright.core.grouping import Grouping
from maskwright.core.model import Model, Need
from maskwright.core.summary import Summary
from maskwright.errors import PolicyError


def matches(model: Model, classes: Classes) -> Ints:
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


def furnished(grouping: Grouping, needs: frozenset[Need], census: Summary | None) -> Classes:
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
