"""Background knowledge: the most that anybody can believe who knows k facts besides the release [Martin et al. 2007].

A fact is an implication between the values of people: "if Hannah has flu, then Charlie has flu". "Ed has not mumps" is
one, too. Which facts somebody knows cannot be foreseen; how *many* can be limited. So the attack looks for the k facts
that reveal most, exactly, and says which they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

from pydantic import Field

from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
    accompanying_figures,
    columns_of,
    in_words,
    people_in_words,
    secrets_of,
    threshold_of,
)
from maskwright.attacks._written_knowledge import Predicate, beliefs_with_knowledge
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Classes
from maskwright.domain.grouping import Grouping
from maskwright.domain.segments import class_sums
from maskwright.domain.value_sets import BIT_VALUES
from maskwright.kernels.max_disclosure import max_disclosure, measure_disclosure
from maskwright.worlds.statements.disclosure import Disclosure, Witness
from maskwright.worlds.statements.language import parse_statements


def _is_bit(target: Target, attribute: str) -> bool:
    """Whether it is a bit of a multi-valued column: one fact settles it, and facts about others add nothing."""
    return (
        target.grouping.summary.sensitive[attribute].values == BIT_VALUES
        and attribute in target.context.flagged
    )


class BackgroundKnowledge(Attack):
    """The largest belief that k facts about other people's values can bring about, with the worst facts in words.

    With `knowing` (and `predicate`) it is the belief given exactly that.

    Attributes:
        most: how far the curve goes, in facts; further when the adversary knows more.
        knowing: statements about people that somebody knows to be true (see the page of this attack).
        predicate: a Python function of name → column → value for the people that `knowing` declares; True where the
            values agree with what is known.
        draws: how many worlds are drawn where they cannot be counted.
    """

    name: ClassVar[str] = "background-knowledge"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"facts"})
    by_rows: ClassVar[bool] = True

    most: int = Field(default=5, ge=0, le=100)
    knowing: tuple[str, ...] = ()
    predicate: Predicate | None = Field(default=None, exclude=True)
    draws: int = Field(default=20_000, ge=100, le=10_000_000)

    def applies(self, target: Target) -> bool:
        """Whether everybody has one value of some column that is not a bit of a set."""
        if not target.grouping.summary.rows_are_people:
            return False
        classes = target.grouping.published_classes
        return any(one_value_each(classes, n) and not _is_bit(target, n) for n in columns_of(target))

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief given the written knowledge, or given the worst k facts."""
        secrets = secrets_of(target)
        if self.knowing or self.predicate is not None:
            found = beliefs_with_knowledge(
                target, parse_statements("\n".join(self.knowing)), self.predicate, self.draws
            )
            return Beliefs(
                self.name,
                adversary.name,
                found.kind,
                found.worst,
                found.measures | accompanying_figures(target, secrets),
            )
        return self._curve(target, adversary, secrets)

    def _curve(self, target: Target, adversary: Adversary, secrets: Sequence[Secrets]) -> Beliefs:
        k = adversary.facts or 1
        attacked = [s for s in secrets if not s.several and not _is_bit(target, s.attribute)]
        columns = {s.attribute: self._column(target, s, k, len(secrets) == 1) for s in attacked}
        worst = max((m["worst"] for m in columns.values()), key=lambda b: (b.after, -b.before))
        return Beliefs(
            self.name, adversary.name, "exact", worst,
            {
                "facts": k,
                "attributes": columns,
                "not_attacked": [s.attribute for s in secrets if s not in attacked],
                **accompanying_figures(target, secrets),
            },
        )  # fmt: skip

    def _column(self, target: Target, secrets: Secrets, k: int, only: bool) -> dict[str, Any]:
        """The curve of one sensitive column, and the worst case for k facts."""
        grouping = target.grouping
        counts = grouping.published_classes.sensitive[secrets.attribute]
        threshold = threshold_of(target.models, secrets.attribute, only)
        disclosure = max_disclosure(counts, max(self.most, k))
        _, _, reached = measure_disclosure(counts, k, threshold)
        vulnerable, published = int(secrets.sizes[reached].sum()), int(secrets.sizes.sum())
        curve, witness = disclosure.implications, disclosure.witness(k)
        flagged = {value for members in secrets.sets for value in members}
        return {
            "worst": worst_case(grouping, secrets.attribute, disclosure, k),
            "implications": list(curve),
            "negations": list(disclosure.negations),
            "certain_from": next((n for n, belief in enumerate(curve) if belief == 1), None),
            "threshold": threshold,
            "vulnerable_people": vulnerable,
            "vulnerable_share": Fraction(vulnerable, published) if published else Fraction(0),
            "classes": {} if witness is None else {b + 1: in_words(grouping, b) for b in witness.buckets},
            "flagged": witness is not None and witness.target.value in flagged,
            "values_not_flagged": secrets.values_not_flagged,
        }


def one_value_each(classes: Classes, attribute: str) -> bool:
    """Whether everybody has one value of this column, or a missing one; facts about sets are another matter."""
    counts = classes.sensitive[attribute]
    return bool((class_sums(counts.counts, counts.start) == classes.sizes).all())


def worst_case(grouping: Grouping, attribute: str, disclosure: Disclosure, k: int) -> Belief:
    """The largest belief with k facts; before them, the largest with none."""
    witness = disclosure.witness(k)
    if witness is None:
        return NOTHING
    bucket = witness.target.bucket
    facts = f"who knows {k} fact{'' if k == 1 else 's'}"
    return Belief(
        before=disclosure.implications[0],
        after=disclosure.implications[k],
        whom=f"{people_in_words(grouping, bucket)} (class {bucket + 1}) and somebody {facts}",
        why=f"{attribute}: {witness.in_words(_witness_names(witness))}",
    )


def _witness_names(witness: Witness) -> dict[tuple[int, int], str]:
    """The people of a witness in words: "a person of class 3"; further ones of a class are numbered."""
    result = {}
    for atom in (witness.target, *witness.antecedents):
        who = "a person" if atom.person == 0 else f"person no. {atom.person + 1}"
        result[atom.bucket, atom.person] = f"{who} of class {atom.bucket + 1}"
    return result
