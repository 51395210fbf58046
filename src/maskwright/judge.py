"""Judge: requirements on belief, decided by what the attacks found.

Which attacks count follows from what the adversary knows and what each attack takes into account. Where no attack
takes all of it into account, and nothing is proven, nothing is known: then the belief is taken to be 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np

from maskwright.attacking import adversary_named, attack_target, target_of
from maskwright.attacks import ATTACKS
from maskwright.core.adversary import Adversary, Target
from maskwright.core.beliefs import Beliefs
from maskwright.core.exact import text_of
from maskwright.core.guarantees import Promise, promise
from maskwright.core.model import Model
from maskwright.core.policy import Policy
from maskwright.core.verdict import Measured, Verdict
from maskwright.models.belief import BeliefAtMost
from maskwright.recheck import recheck
from maskwright.store import PRIVATE
from maskwright.verify import Verification, verify

PUBLIC_ONLY = (
    "belief: only what each class shows was recounted; what a stronger adversary believes needs the attack, and that "
    "needs private/ (--keep-private all)"
)
INSTEAD = (
    "mondrian with cut: balanced meets such a bound by construction, for any models and any number of columns"
)
INSTEAD_OF_FACTS = (
    "against facts help larger groups (ck-safety as a gate), by anatomy or a method blind to values"
)


def judged(verdicts: Sequence[Verdict], target: Target) -> tuple[Verdict, ...]:
    """The verdicts of a release; those on belief are decided anew, by attacking the table that they are about."""
    found = (_judged(verdict, target) for verdict in verdicts)
    return tuple(_only_measured(verdict, target.chosen_by_looking) for verdict in found)


def _only_measured(verdict: Verdict, chosen_by_looking: str) -> Verdict:
    """Nothing is guaranteed for settings that may have been chosen by their outcome; whether it holds is the same."""
    if not chosen_by_looking or verdict.status != "guaranteed":
        return verdict
    return replace(verdict, status="measured", why=f"{chosen_by_looking}; {verdict.why}")


def _judged(verdict: Verdict, target: Target) -> Verdict:
    for table in target.tables:
        for model in table.models:
            mine = (
                verdict.part in (None, table.name)
                and isinstance(model, BeliefAtMost)
                and _same(model, verdict)
            )
            if mine and isinstance(model, BeliefAtMost):
                return replace(judge(model, replace(table, beside=())), part=verdict.part)
    return verdict


def _same(model: Model, verdict: Verdict) -> bool:
    mine = model.name, model.parameters(), model.attribute_name()
    return mine == (verdict.model, verdict.parameters, verdict.attribute)


def judge(model: BeliefAtMost, target: Target) -> Verdict:
    """Attack the release as the adversary of one requirement, and hold the worst belief against the bound."""
    columns = [model.attribute] if model.attribute else list(target.grouping.classes.sensitive)
    about = replace(target, secrets=dict.fromkeys(columns, model.sets))
    adversary = adversary_named(model.adversary, model.facts)
    found = attack_target(about, counting(adversary), adversary)
    basis = _basis(model, about, adversary)
    unknown = unanswered(about, adversary, found) if basis.status == "measured" else None
    worst = max(found, key=lambda b: (b.worst.upper, len(ATTACKS[b.attack].takes)), default=None)
    upper = worst.worst.upper if worst else Fraction(0)
    value: Measured = upper if worst is None or worst.worst.interval is None else float(upper)
    why = f"{basis.why}; {worst.attack} ({worst.kind})" if worst else basis.why
    if unknown:
        upper = value = Fraction(1)
        why = f"{basis.why}, and {unknown}"
    ok = upper <= model.max
    if not ok:
        if worst and not unknown:
            why += f" finds it for {worst.worst.whom}: {worst.worst.why}"
        if basis.status == "guaranteed" and upper > _without_the_method(found):
            why += "; this contradicts the proof, please report it"
        else:  # the classes show too much: nothing is published, so that nothing is promised
            basis, why = replace(basis, status="measured"), f"{why}; {_instead(adversary)}"
    return Verdict(
        model.name, model.parameters(), model.attribute, ok, np.array([ok]), [value], value, 0,
        f"at most {text_of(model.max)}", f"belief ({adversary.name})", model.use, basis.status, why,
    )  # fmt: skip


def _without_the_method(found: Sequence[Beliefs]) -> Fraction:
    """The worst belief of the attacks that know nothing of the method."""
    shown = [b.worst.upper for b in found if "method" not in ATTACKS[b.attack].takes]
    return max(shown, default=Fraction(0))


def counting(adversary: Adversary) -> list[str]:
    """The attacks on sensitive values that this adversary can run."""
    known = adversary.knowledge
    return [name for name, attack in ATTACKS.items() if attack.about == "values" and attack.takes <= known]


def unanswered(target: Target, adversary: Adversary, found: Sequence[Beliefs]) -> str | None:
    """What the adversary knows that no attack took into account, in words; None: all of it was."""
    needed, published, dropped = adversary.knowledge, [], False
    for beliefs in found:
        attack = ATTACKS[beliefs.attack]
        if attack.whom == "published":
            # what was only assumed about the method was not taken into account
            published.append(attack.takes - ({"method"} if beliefs.measures.get("method assumed") else set()))
        dropped |= attack.whom == "dropped"
    if target.worlds_alike:
        needed = needed - {"method"}
    if not any(takes >= needed for takes in published):
        what = " and ".join(f"the {knowledge}" for knowledge in sorted(needed, reverse=True)) or "the classes"
        return f"no attack on such a release takes {what} into account, so that the belief is taken to be 1"
    if "method" in needed and _dropped_for_values(target) and not dropped:
        return "people were dropped because of their values, so that the belief about them is taken to be 1"
    return None


def _dropped_for_values(target: Target) -> bool:
    grouping = target.grouping
    failing = getattr(target.method, "suppress", "") == "failing-classes" and grouping.dropped_rows > 0
    looked = any(m.use == "search" and m.about == "sensitive" for m in target.models)
    return bool(grouping.search.get("dropped_for_their_values")) or (failing and looked)


@dataclass(frozen=True)
class _Basis:
    """What a statement about belief rests on."""

    status: Literal["guaranteed", "measured"]
    why: str


def _basis(model: BeliefAtMost, target: Target, adversary: Adversary) -> _Basis:
    """Is the bound proven before any data are seen, for this adversary and these values?"""
    if not adversary.knowledge:
        return _Basis("guaranteed", "this adversary believes what the class shows, whatever the method")
    if target.method is None:
        return _Basis("measured", "the method is not known")
    if "facts" in adversary.knowledge and not target.worlds_alike:
        return _Basis("measured", "no bound is proven for somebody who knows the method and facts")
    settings = target.method.name, target.method.options(), target.models, target.context
    promises = [promise(*settings, column, target.grouping.search) for column in target.secrets or ()]
    bases = [
        _of_promise(model, found, target, column)
        for found, column in zip(promises, target.secrets or (), strict=True)
    ]
    return next((b for b in bases if b.status == "measured"), bases[0])


def _of_promise(model: BeliefAtMost, found: Promise, target: Target, column: str) -> _Basis:
    if found.status == "measured":
        return _Basis("measured", found.why)
    if found.shown:
        return _Basis("guaranteed", found.why)
    values = target.context.domains.get(column, ())
    codes = {i + 1 for i, v in enumerate(values) if model.sets is None or v in model.named_values()}
    if found.codes is not None and not codes <= found.codes:
        return _Basis("measured", "the proof covers fewer values than the requirement")
    if found.bound is None or found.bound > model.max:
        shown = "none" if found.bound is None else text_of(found.bound)
        return _Basis(
            "measured", f"the proven bound of the method with its parameters is {shown}, which is more"
        )
    return _Basis("guaranteed", f"proven to stay {'below' if found.strict else 'at or below'} "
                                f"{text_of(found.bound)}, where {found.why}")  # fmt: skip


def _instead(adversary: Adversary) -> str:
    return INSTEAD_OF_FACTS if "facts" in adversary.knowledge else INSTEAD


def verify_release(
    folder: str | Path, recount_only: bool = False, policy: Policy | None = None
) -> Verification:
    """`verify`, and where the release promises a belief and its private state was kept: attack it again.

    With a policy the files are held against that alone; what a manifest or `private/` says is not looked at.
    """
    if policy is not None:
        result = recheck([folder], policy)
        asks = any(v.model == BeliefAtMost.name for v in result.verdicts)
        return replace(result, notes=(*result.notes, PUBLIC_ONLY)) if asks else result
    result = verify(folder, recount_only)
    if not any(v.model == BeliefAtMost.name for v in result.verdicts):
        return result
    if not any((Path(folder) / PRIVATE).glob("**/state.json")):
        return replace(result, notes=(*result.notes, PUBLIC_ONLY))
    target = target_of(folder)
    if not all(
        any(_same(m, v) for t in target.tables for m in t.models)
        for v in result.verdicts
        if v.model == BeliefAtMost.name
    ):
        problem = "private/policy.yaml does not ask for what the manifest promises"
        return replace(result, problems=(*result.problems, problem))
    return replace(result, verdicts=judged(result.verdicts, target))
