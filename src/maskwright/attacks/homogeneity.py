"""Homogeneity: what the class alone tells about its people [Machanavajjhala et al. 2006].

Nobody has to find a person's row to learn the person's value: it is enough that the class shows it. After the release
the belief in a secret is its share in the class, before it the share in the whole table.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from maskwright.attacks.secrets import (
    NOTHING,
    Secrets,
    beside,
    people_in_words,
    reference_of,
    secrets_of,
    threshold_of,
)
from maskwright.core.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.core.beliefs import Belief, Beliefs
from maskwright.core.distances import distances
from maskwright.core.grouping import Grouping


class Homogeneity(Attack):
    """The belief in a sensitive value from the person's class alone: its share in the class."""

    name: ClassVar[str] = "homogeneity"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()

    def applies(self, target: Target) -> bool:
        return bool(target.grouping.published_classes.sensitive)

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        found = secrets_of(target)
        only = len(found) == 1
        measures = {s.attribute: measured(target, s, only) for s in found}
        worst = max((m["worst"] for m in measures.values()), key=lambda b: (b.after, -b.before))
        bounded = any(s.several and any(len(members) > 1 for members in s.sets) for s in found)
        return Beliefs(
            self.name, adversary.name, "bounded" if bounded else "exact", worst,
            {"attributes": measures, **beside(target, found)},
        )  # fmt: skip


def measured(target: Target, secrets: Secrets, only: bool) -> dict[str, Any]:
    """Everything that is reported about one sensitive column."""
    grouping, shares, owner = target.grouping, secrets.shares(), secrets.counts.owner
    threshold = threshold_of(target.models, secrets.attribute, only)
    alike, above = (
        np.unique(owner[secrets.counts.counts == secrets.sizes[owner]]),
        owner[~shares.at_most(threshold)],
    )
    whole, _ = reference_of(target, secrets.attribute)
    distance = distances(grouping.published_classes.sensitive[secrets.attribute], whole, "equal")
    farthest = distance.argmax()
    return {
        "worst": worst_share(grouping, secrets),
        "homogeneous_classes": len(alike),
        "people_in_homogeneous_classes": int(secrets.sizes[alike].sum()),
        "share_in_homogeneous_classes": _of(int(secrets.sizes[alike].sum()), secrets),
        "threshold": threshold,
        "vulnerable_people": (vulnerable := int(secrets.sizes[np.unique(above)].sum())),
        "vulnerable_share": _of(vulnerable, secrets),
        "largest_distance": Fraction(0) if farthest is None else distance[farthest],
        "values_not_flagged": secrets.values_not_flagged,
        "worst_share_of_a_value_not_flagged": secrets.worst_not_flagged(),
    }


def _of(people: int, secrets: Secrets) -> Fraction:
    """A number of people as a share of those published, class by class."""
    published = int(secrets.sizes.sum())
    return Fraction(people, published) if published else Fraction(0)


def worst_share(grouping: Grouping, secrets: Secrets) -> Belief:
    """The largest share of a secret in a class."""
    worst = secrets.shares().argmax()
    return NOTHING if worst is None else shown_belief(grouping, secrets, worst)


def shown_belief(grouping: Grouping, secrets: Secrets, entry: int) -> Belief:
    group, code = int(secrets.counts.owner[entry]), int(secrets.counts.codes[entry])
    held, size = int(secrets.counts.counts[entry]), int(secrets.sizes[group])
    return Belief(
        before=secrets.before(code),
        after=Fraction(held, size),
        whom=people_in_words(grouping, group),
        why=f"{'all' if held == size else held} of them have {secrets.name(code)}, and the class shows it"
        if size > 1
        else f"that person has {secrets.name(code)}, and the class shows it",
    )
