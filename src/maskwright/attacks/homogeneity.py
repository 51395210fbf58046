"""Homogeneity: what the class alone tells about its people [Machanavajjhala et al. 2006].

Nobody has to find a person's row to learn the person's value: it is enough that the class shows it. After the release
the belief in a secret is its share in the class, before it the share in the whole table.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
    accompanying_figures,
    people_in_words,
    reference_of,
    secrets_of,
    threshold_of,
)
from maskwright.attacks._shared.several_rows import worst_person
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.distances import class_distances
from maskwright.domain.grouping import Grouping


class Homogeneity(Attack):
    """The belief in a sensitive value from the person's class alone: its share in the class."""

    name: ClassVar[str] = "homogeneity"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()

    def applies(self, target: Target) -> bool:
        """Whether sensitive values are published, and it is known whose rows they are."""
        return bool(target.grouping.published_classes.sensitive) and not self.unable(target)

    def unable(self, target: Target) -> str:
        """Why the attack cannot run: people have several rows, and it is not known how many."""
        summary = target.grouping.summary
        if summary.sensitive and summary.owned is None and not summary.rows_are_people:
            return (
                "people have several rows, and the release does not say how many; anonymize the table again"
            )
        return ""

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst share of a secret in a class, or the worst belief about a person with several rows."""
        found = secrets_of(target)
        only = len(found) == 1
        measures = {s.attribute: _column_measures(target, s, only) for s in found}
        worst = max((m["worst"] for m in measures.values()), key=lambda b: (b.after, -b.before))
        people = target.grouping.summary.owned is not None
        bounded = not people and any(s.several and any(len(members) > 1 for members in s.sets) for s in found)
        return Beliefs(
            self.name, adversary.name, "bounded" if bounded else "exact", worst,
            {"attributes": measures, **accompanying_figures(target, found)},
        )  # fmt: skip


def _column_measures(target: Target, secrets: Secrets, only: bool) -> dict[str, Any]:
    """Everything that is reported about one sensitive column."""
    grouping, shares, owner = target.grouping, secrets.shares(), secrets.counts.owner
    threshold = threshold_of(target.models, secrets.attribute, only)
    alike, above = (
        np.unique(owner[secrets.counts.counts == secrets.sizes[owner]]),
        owner[~shares.at_most(threshold)],
    )
    whole, _ = reference_of(target, secrets.attribute)
    worst, vulnerable = worst_share(grouping, secrets), int(secrets.sizes[np.unique(above)].sum())
    published = int(secrets.sizes.sum())
    if grouping.summary.owned is not None:
        worst, vulnerable = worst_person(grouping, secrets, threshold)
        published = grouping.summary.owned.n_people
    distance = class_distances(grouping.published_classes.sensitive[secrets.attribute], whole, "equal")
    farthest = distance.argmax()
    return {
        "worst": worst,
        "homogeneous_classes": len(alike),
        "people_in_homogeneous_classes": int(secrets.sizes[alike].sum()),
        "share_in_homogeneous_classes": _of(int(secrets.sizes[alike].sum()), secrets),
        "threshold": threshold,
        "vulnerable_people": vulnerable,
        "vulnerable_share": Fraction(vulnerable, published) if published else Fraction(0),
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
    """The belief that one entry of the counts shows, in words."""
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
