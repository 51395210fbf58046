"""The first thing to know of a release: the one worst belief, whom it concerns, why, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from maskwright.attacks import ATTACKS
from maskwright.core.adversary import Target
from maskwright.core.beliefs import Beliefs
from maskwright.core.exact import text_of
from maskwright.core.guarantees import promise
from maskwright.core.release import Release

Status = Literal["guaranteed", "measured"]


@dataclass(frozen=True)
class Headline:
    """The worst belief of all attacks on values and rows; `status` is explained by `basis`."""

    beliefs: Beliefs
    status: Status
    basis: str


def headline(release: Release) -> Headline | None:
    """The worst belief; one in a range of values is none in a value, so that it is no headline."""
    counted = [b for b in release.beliefs if ATTACKS[b.attack].about != "ranges"]
    if not counted:
        return None
    worst = max(counted, key=lambda b: (b.worst.upper, ATTACKS[b.attack].about == "values", -b.worst.before))
    status, basis = _basis(release, worst)
    return Headline(worst, status, basis)


def chance(value: Fraction) -> str:
    """A belief as a large figure: 1/5, or 41%."""
    return str(value) if value.denominator <= 20 else f"{float(value):.1%}"


def _basis(release: Release, found: Beliefs) -> tuple[Status, str]:
    if release.target is None:
        return "measured", "how the release was made is not known here"
    tables = release.target.tables
    if len(tables) > 1:
        return "measured", "no bound is proven for several tables about the same people"
    if ATTACKS[found.attack].about == "rows":
        return _of_rows(release.target, found)
    status, basis = _of_values(release.target, found)
    looked = release.target.chosen_by_looking
    return ("measured", looked) if looked and status == "guaranteed" else (status, basis)


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


def _of_values(target: Target, found: Beliefs) -> tuple[Status, str]:
    method = target.method
    if method is None:
        return "measured", "the method is not known"
    settings = method.name, method.options(), target.models
    search = target.grouping.search
    promises = [promise(*settings, target.context, c, search) for c in target.grouping.classes.sensitive]
    for one in promises:
        if one.status == "measured":
            return "measured", one.why
    if "facts" in ATTACKS[found.attack].takes:
        if target.worlds_alike:
            return "measured", "the worst facts for this release; knowing the method adds nothing to them"
        return "measured", "no bound is proven for somebody who knows the method and facts"
    bounds = [one.bound for one in promises if one.bound is not None and one.about == "every value"]
    why = promises[0].why if promises else ""
    if promises and len(bounds) == len(promises) and found.worst.upper <= max(bounds):
        return "guaranteed", f"proven to stay at or below {text_of(max(bounds))} for any data: {why}"
    return "measured", f"counted in this release; knowing the method adds nothing to it: {why}"
