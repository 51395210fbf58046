"""Linked visits: where a pseudonym keeps the visits of a person together, the sequence of visits identifies.

Somebody knows the classes of up to m visits of a person (`unit: {events: m}`) and is left with the people who have all
of these among theirs; one of them is the person, and everything that is published under that pseudonym is the person's.
The belief in a secret is the share of these people who have it in *some* visit, known or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._shared.secrets import NOTHING, Secrets, accompanying_figures, secrets_of
from maskwright.attacks.homogeneity import OwnedRows
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount
from maskwright.domain.grouping import Grouping
from maskwright.domain.known_visits import KnownVisits, every_visit, known_visits
from maskwright.domain.segments import Ratios


class LinkedVisits(Attack):
    """The belief in a sensitive value from some known visits of a person, where a pseudonym links all of them."""

    name: ClassVar[str] = "linked-visits"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()
    linked: ClassVar[bool] = True

    def applies(self, target: Target) -> bool:
        """Whether visits are linked, and it is known whose they are."""
        linked = target.design is not None and bool(target.design.linked)
        return linked and bool(target.grouping.published_classes.sensitive) and not self.unable(target)

    def unable(self, target: Target) -> str:
        """Why the attack cannot run: values were changed, so that those of the people are not what is published."""
        if target.design is None or not target.design.linked or target.grouping.changes is None:
            return ""
        return "visits are linked by a pseudonym, and values were changed: what links reveal about them is not computed"

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst share of a secret among the people who match what is known."""
        events = target.design.linked if target.design is not None else 1
        levels = list(known_levels(target.grouping, events))
        found = secrets_of(target)
        measures: dict[str, Any] = {}
        for secrets in found:
            held = holders_of(target.grouping, secrets.attribute, secrets.sets)
            by_level = [worst_match(level, held, secrets) for level in levels]
            known = max(by_level[:-1], key=lambda b: (b.after, -b.before), default=NOTHING)
            measures[secrets.attribute] = {"worst": known, "every visit": by_level[-1]}
        worst = max((m["worst"] for m in measures.values()), key=lambda b: (b.after, -b.before))
        return Beliefs(
            self.name,
            adversary.name,
            "exact",
            worst,
            {"attributes": measures, **accompanying_figures(target, found)},
        )


def known_levels(grouping: Grouping, events: int) -> Iterator[KnownVisits]:
    """What may be known of one visit up to so many, and last of every visit.

    The classes of visits are those that the published labels tell apart.
    """
    owned, n, shown = OwnedRows.of(grouping), grouping.classes.n, class_numbers(grouping)
    pairs, number = np.unique(owned.person * n + shown[owned.group], return_inverse=True)
    visits = pairs // n, pairs % n, exact_bincount(number.reshape(-1), owned.rows, len(pairs))
    yield from known_visits(*visits, events)
    yield every_visit(*visits)


def class_numbers(grouping: Grouping) -> Ints:
    """A number for what the labels of each group say: groups with the same one cannot be told apart."""
    labels = np.array([x.of_group for x in grouping.published_labels], dtype=np.int64).reshape(
        -1, grouping.classes.n
    )
    return np.unique(labels, axis=1, return_inverse=True)[1].reshape(-1)


def holders_of(grouping: Grouping, attribute: str, sets: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
    """Who has a value of each set (from 1) in some published visit; 0: who has none there in some visit."""
    cells = grouping.summary.personal
    if cells is None or cells.people is None:
        raise ValueError("this summary does not say whose rows they are")
    published, _, _ = grouping.cells
    place = list(grouping.summary.sensitive).index(attribute)
    codes, people = cells.values[place][published], cells.people[published]
    code = {value: i + 1 for i, value in enumerate(grouping.summary.sensitive[attribute].values)}
    held = np.zeros((len(sets) + 1, int(cells.people.max(initial=-1)) + 1), dtype=bool)
    held[0, people[codes == 0]] = True
    for s, members in enumerate(sets):
        held[s + 1, people[np.isin(codes, [code[v] for v in members if v in code])]] = True
    return held


def worst_match(level: KnownVisits, held: NDArray[np.bool_], secrets: Secrets) -> Belief:
    """The largest share of a secret among the people who match a set of visits."""
    worst = NOTHING
    for code in range(1, len(held)):
        having = np.bincount(level.known[held[code][level.person]], minlength=len(level.matches))
        shares = Ratios(having, level.matches)
        top = shares.argmax()
        if top is None or shares[top] <= worst.after:
            continue
        many, people = int(having[top]), int(level.matches[top])
        known = {0: "every visit is", 1: "one visit is"}.get(level.visits, f"{level.visits} visits are")
        worst = Belief(
            secrets.before(code), Fraction(many, people), f"somebody of whom {known} known",
            f"{people} people match, and {many} of them have {secrets.name(code)} in some visit",
        )  # fmt: skip
    return worst
