"""The promise of a method with its settings and models alone: one ingredient of the promise of a policy.

A bound holds for an adversary who knows the quasi-identifiers of everybody, the release, the method and its parameters,
under exactly the conditions of the lemma that the method names. Parameters that were chosen by looking at the outcome
guarantee nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from maskwright.domain.grouping import Trace
from maskwright.domain.method import Method
from maskwright.domain.model import Context, Model
from maskwright.domain.promise import Lemma
from maskwright.domain.registry import is_outside
from maskwright.domain.rules import Rule, ShareAtMost
from maskwright.promise.lemmas.value_blind import BLIND


@dataclass(frozen=True)
class MethodPromise:
    """What a method promises about belief in the values of one sensitive attribute.

    Attributes:
        lemma: what it rests on; None: nothing is proven, and
        why: the reason, in words.
        bound: the largest belief, where one is known in advance; None: belief is what each group shows.
        strict: belief stays below the bound.
        every_value: is the bound about every value? If not, about those that the models name.
        codes: of the values that the bound is about; None: of every value, or of those that the models name.
    """

    lemma: Lemma | None
    why: str
    bound: Fraction | None = None
    strict: bool = False
    every_value: bool = True
    codes: frozenset[int] | None = None

    @property
    def shown(self) -> bool:
        """Is belief what each group shows, so that a bound on shares is a bound on beliefs?"""
        return self.lemma is not None and self.lemma.shown


def promise_of_method(
    method: Method, models: Sequence[Model], context: Context, attribute: str, trace: Trace | None = None
) -> MethodPromise:
    """What a release by this method, with these models, promises about `attribute`.

    Args:
        method: with its settings.
        models: all requirements, searched for and gates.
        context: of the models.
        attribute: the sensitive attribute in question.
        trace: of the run; None: before it.
    """
    trace = trace or Trace()
    if foreign := next((thing for thing in (method, *models) if is_outside(thing)), None):
        return _unproven(f"{foreign.name} is no part of Maskwright, and nothing of a third party is proven")
    looked = [m for m in models if m.use == "search" and m.about == "sensitive"]
    if void := method.voided(looked, trace):
        return _unproven(void)
    how = method.decisions()
    lemma = BLIND if how.blind and not looked else how.lemma
    if lemma is None:
        return _unproven(f"no bound is proven for {method.name} with these options")
    if not lemma.shown:
        return _by_diversity(lemma, method, looked, models, context, attribute)
    shown, every = largest_share(models, context, attribute)
    if (
        trace.distinct
        and trace.attribute == attribute
        and (not every or shown is None or shown * trace.distinct > 1)
    ):
        shown, every = Fraction(1, trace.distinct), True  # all values of a group differ
    return MethodPromise(lemma, lemma.says, shown, False, every)


def _unproven(why: str) -> MethodPromise:
    return MethodPromise(None, why)


def largest_share(models: Sequence[Model], context: Context, attribute: str) -> tuple[Fraction | None, bool]:
    """The largest share of a value that a published group can show, by the models; and: of every value?"""
    rules = [r.cap for r in _rules(models, context) if r.cap is not None and r.looks_at == attribute]
    whole = [r.share for r in rules if r.sets is None or _all_covered(r, context)]
    if whole or not rules:
        return min(whole, default=None), True
    return max(r.share for r in rules), False


def _all_covered(rule: ShareAtMost, context: Context) -> bool:
    codes = {code for members in rule.sets or () for code in members}
    return len(codes) == len(context.domains.get(rule.attribute, ())) > 0


def _rules(models: Sequence[Model], context: Context) -> list[Rule]:
    return [rule for model in models for rule in model.kernel(context) or ()]


def _by_diversity(
    lemma: Lemma,
    method: Method,
    looked: Sequence[Model],
    models: Sequence[Model],
    context: Context,
    attribute: str,
) -> MethodPromise:
    """Bounds that hold for one diversity test on one set of values, when nothing else looks at values."""
    only = _only_test(looked, context)
    if only is None or only.attribute != attribute:
        return _unproven("the proof needs one diversity model as the only look at values")
    if only.sets is None or len(only.sets) != 1:
        return _unproven(
            "the proof covers one set of values; for several nothing above the bound was found by enumeration, "
            "but that is no proof"
        )
    ell = 1 / only.share
    if unmet := method.unmet_condition(ell, models, context):
        return _unproven(unmet)
    assert lemma.bound is not None  # noqa: S101 - for the type checker
    value, strict = lemma.bound(ell)
    return MethodPromise(lemma, lemma.says, value, strict, False, frozenset(only.sets[0]))


def _only_test(looked: Sequence[Model], context: Context) -> ShareAtMost | None:
    """The one test of sensitive values that the models come to; None where there are several, or another kind.

    The same test with different shares is one test: the strictest.
    """
    found: set[ShareAtMost] = set()
    for model in looked:
        for rule in model.kernel(context) or (None,):
            if rule is not None and rule.looks_at is None:
                continue
            if rule is None or rule.cap is None:
                return None
            found.add(rule.cap)
    if len({(rule.attribute, rule.sets) for rule in found}) != 1:
        return None
    return min(found, key=lambda rule: rule.share)
