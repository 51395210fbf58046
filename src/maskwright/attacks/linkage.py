"""Linkage: somebody who knows a person's quasi-identifiers looks for that person's row.

The prosecutor knows that the person is in the table; the chance to pick the right row is one over the number
of people in the class. The marketer links everybody; the share linked correctly is the average of those risks.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from maskwright.core.adversary import Adversary, Attack, Knowledge, Target
from maskwright.core.beliefs import Belief, Beliefs
from maskwright.core.classes import Ints
from maskwright.core.grouping import exact_view


class Linkage(Attack):
    """The chance that a person who is known to be in the table is matched to the right row."""

    name: ClassVar[str] = "linkage"
    about: ClassVar[Literal["values", "rows"]] = "rows"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        grouping = exact_view(target.grouping) if target.exact else target.grouping
        before = grouping.summary.tuple_classes().sizes
        after = grouping.classes.sizes
        smallest = int(np.argmin(after))
        whom = ", ".join(
            f"{labels.attribute} {_word(labels.texts[labels.of_group[smallest]])}"
            for labels in grouping.labels
        )
        return Beliefs(
            attack=self.name,
            adversary=adversary.name,
            kind="exact",
            worst=Belief(
                before=Fraction(1, int(before.min())),
                after=Fraction(1, int(after[smallest])),
                whom=f"each of the {int(after[smallest])} people with {whom}",
                why="they share one class, and nothing in the release tells them apart",
            ),
            measures={"before": risks(before), "after": risks(after)},
        )


def _word(label: str | None) -> str:
    return "(missing)" if label is None else label


def risks(sizes: Ints) -> dict[str, object]:
    """Re-identification risks of classes of these sizes (people)."""
    people, smallest = int(sizes.sum()), int(sizes.min())
    unique = int((sizes == 1).sum())
    return {
        "classes": len(sizes),
        "people": people,
        "smallest_class": smallest,
        "highest": str(Fraction(1, smallest)),
        "average": str(Fraction(len(sizes), people)),
        "unique": unique,
        "unique_share": unique / people,
        "sizes": histogram(sizes),
    }


EDGES = (1, 2, 3, 5, 10, 20, 50, 100, 1000)


def histogram(sizes: Ints) -> list[dict[str, object]]:
    """People by the size of their class."""
    result: list[dict[str, object]] = []
    for low, high in zip(EDGES, (*EDGES[1:], None), strict=True):
        inside = (sizes >= low) & (sizes < high) if high else sizes >= low
        text = str(low) if high == low + 1 else f"{low}-{high - 1}" if high else f"{low}+"
        result.append({"size": text, "people": int(sizes[inside].sum())})
    return result
