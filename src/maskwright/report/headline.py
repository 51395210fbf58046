"""The first thing to know of a release: the one worst belief, whom it concerns, why, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from maskwright.attacks import ATTACKS
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import NOT_COMPUTED, Beliefs
from maskwright.domain.promise import Status
from maskwright.domain.release import Release


@dataclass(frozen=True)
class Headline:
    """The worst belief of all attacks on values and rows; `status` is explained by `basis`."""

    beliefs: Beliefs
    status: Status
    basis: str


def worst_belief(release: Release) -> Headline | None:
    """The worst belief; one in a range of values is none in a value, so that it is no headline."""
    computed = [b for b in release.beliefs if b.kind != NOT_COMPUTED]
    counted = [b for b in computed if ATTACKS[b.attack].about != "ranges"]
    if not counted:
        return None
    worst = max(counted, key=lambda b: (b.worst.upper, ATTACKS[b.attack].about == "values", -b.worst.before))
    status, basis = _basis(release, worst)
    return Headline(worst, status, basis)


def belief_figure(value: Fraction) -> str:
    """A belief as a large figure: 1/5, or 41%."""
    return str(value) if value.denominator <= 20 else f"{float(value):.1%}"


def _basis(release: Release, found: Beliefs) -> tuple[Status, str]:
    if release.target is None:
        return "measured", "how the release was made is not known here"
    if ATTACKS[found.attack].about == "rows":
        return _of_rows(release.target, found)
    return _of_values(release, found)


def _of_rows(target: Target, found: Beliefs) -> tuple[Status, str]:
    """A class shows how many people may be meant, however it was made."""
    k = max((model.least_size(target.context) for model in target.models), default=1)
    if target.exact:
        return (
            "measured",
            "the quasi-identifiers are published as they are, so that people can be found by them",
        )
    if k > 1 and found.worst.upper <= Fraction(1, k):
        return (
            "guaranteed",
            f"at least {k} people in every class were required, and counted in what was written",
        )
    return "measured", "no least number of people in a class was required"


def _of_values(release: Release, found: Beliefs) -> tuple[Status, str]:
    """What the promises of the whole policy say about the belief in a value."""
    for promise in release.promises:
        if promise.status == "measured":
            return "measured", promise.why
    target = release.target
    if target is not None and ATTACKS[found.attack].takes & {"facts", "values"}:
        if target.worlds_alike:
            return "measured", "the worst facts for this release; knowing the method adds nothing to them"
        return "measured", "no bound is proven for somebody who knows the method and facts"
    bounds = [promise.bound for promise in release.promises]
    largest = max((b for b in bounds if b is not None), default=None)
    why = release.promises[0].why if release.promises else ""
    if largest is not None and None not in bounds and found.worst.upper <= largest:
        return "guaranteed", why
    return "measured", f"counted in this release; {why}" if why else "no sensitive column was declared"
