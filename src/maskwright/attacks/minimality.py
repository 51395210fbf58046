"""Minimality: what an adversary learns who knows the method and its parameters [Wong et al. 2007; Cormode et al. 2010].

A method that recodes no more than it must gives away that it *had* to: where a finer recoding was refused, some class
of it violates the requirement. The belief in a secret is its share over the possible worlds in which that is so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from pydantic import Field

from maskwright.attacks.counting import counted
from maskwright.attacks.draws import can_deal, every_world, refused_at_least
from maskwright.attacks.external_list import with_list
from maskwright.attacks.findings import Finding, Kind, as_shown, at_most, enumerated
from maskwright.attacks.partitions import cut_family, cut_finding
from maskwright.attacks.refusals import (
    FULL_DOMAIN,
    Parts,
    looked_at_values,
    raw_classes,
    refusals,
    some_levels_were_excluded,
)
from maskwright.attacks.refused_cuts import cut_worlds, cuts_evenly
from maskwright.attacks.replay import (
    Replayed,
    can_draw,
    can_replay,
    replay,
    same_without_values,
)
from maskwright.attacks.replayed import posterior_distances, replay_findings
from maskwright.attacks.routes import other_route
from maskwright.attacks.row_methods import replayed_by
from maskwright.attacks.secrets import (
    Secrets,
    beside,
    secrets_of,
)
from maskwright.attacks.thresholds import Threshold, deciding, thresholds_of
from maskwright.attacks.timed import Timed
from maskwright.core.adversary import About, Adversary, Knowledge, Target
from maskwright.core.beliefs import Beliefs
from maskwright.core.guarantees import BLIND, family, promise
from maskwright.core.worlds.explore import Budget


class Minimality(Timed):
    """The belief of somebody who knows the method, and so why nothing finer was published.

    Attributes:
        method: a function f(qi, sa, rng) → groups of row numbers, in place of the release's own method.
    """

    name: ClassVar[str] = "minimality"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"method"})

    method: Callable[..., Any] | None = Field(default=None, exclude=True)

    def applies(self, target: Target) -> bool:
        if other_route(target) is not None:
            return True
        classes = target.grouping.classes
        if not classes.sensitive or target.grouping.changes is not None:
            return False
        if target.grouping.summary.shared is not None or any(s.several for s in secrets_of(target)):
            return False
        if self.method is not None:
            return can_draw(target)
        if target.method is None:
            return False
        proven = shows_all(target) or searched_a_lattice(target) or cut_family(target) is not None
        return proven or (can_draw(target) and (can_replay(target) or cuts_evenly(target)))

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        secrets = secrets_of(target)
        measures: dict[str, Any] = beside(target, secrets)
        measures["status"] = "measured" if self.method is not None else _status(target, secrets)
        replayed = self._replayed(target)
        if replayed is not None:
            found, more = replay_findings(target, secrets, replayed)
        else:
            found, more = self._without_worlds(target, secrets)
        measures |= {"knowing": METHOD} | more
        if self.method is None and searched_a_lattice(target):
            measures |= self._refused(target, secrets)
        measures |= with_list(target, secrets)
        worst = max(found, key=lambda f: (f.belief.upper, f.belief.after, -f.belief.before))
        published = int(target.grouping.classes.sizes.sum())
        measures["vulnerable_people"] = max(f.vulnerable for f in found)
        measures["vulnerable_share"] = Fraction(measures["vulnerable_people"], published)
        measures["arithmetic"] = worst.kind
        rests = measures["knowing"] != METHOD or "assumption" in measures
        return Beliefs(
            self.name, adversary.name, "estimated" if rests else worst.kind, worst.belief, measures
        )

    def _replayed(self, target: Target) -> Replayed | None:
        """What is left of all possible worlds, where nothing better fits."""
        budget = Budget(self.draws, self.seconds)
        if self.method is not None:
            return replayed_by(target, self.method, budget)
        if other_route(target) is not None or shows_all(target) or cut_family(target) is not None:
            return None
        if cuts_evenly(target) and can_draw(target):
            return cut_worlds(target, budget)
        if not (can_replay(target) and can_draw(target)):
            return None
        if searched_a_lattice(target) and same_without_values(target):
            return None
        return replay(target, budget)

    def _without_worlds(
        self, target: Target, secrets: Sequence[Secrets]
    ) -> tuple[list[Finding], dict[str, Any]]:
        """By what is proven or counted in closed form."""
        route = other_route(target)
        if route is not None:
            return route(target, secrets, ROUTE_DRAWS)
        if cut_family(target) is not None and not shows_all(target):
            return [cut_finding(target, s) for s in secrets], {}
        if not shows_all(target) and not (can_replay(target) and can_draw(target)):
            return self._refusals_alone(target, secrets)
        why = BLIND_METHOD if shows_all(target) else SAME
        return [as_shown(target, s, why) for s in secrets], posterior_distances(target, secrets)

    def _refused(self, target: Target, secrets: Sequence[Secrets]) -> dict[str, Any]:
        """What a full-domain search refused, and what each refusal alone tells."""
        refused, others = refusals(target)
        rules = thresholds_of(looked_at_values(target.models), target.context)
        classes, raw = target.grouping.classes, raw_classes(target.grouping)
        decided, paper = deciding(rules, refused, classes), deciding(rules, [raw], classes)
        return {
            "refused": [p.words for p in refused],
            "others": others,
            "one refusal at a time": [
                {
                    "refused": parts.words,
                    "whole release": counted(target, s, decided, parts, "release").as_measure(),
                    "per class": counted(target, s, decided, parts, "class").as_measure(),
                }
                for s in secrets
                for parts in refused
                if decided is not None and decided.attribute == s.attribute
            ],
            "per class (paper)": [
                counted(target, s, paper, raw, "class", target.least_people).as_measure()
                for s in secrets
                if paper is not None and paper.attribute == s.attribute
            ],
        }

    def _refusals_alone(
        self, target: Target, secrets: Sequence[Secrets]
    ) -> tuple[list[Finding], dict[str, Any]]:
        """The search cannot be repeated: what is used is that finer nodes were refused."""
        refused, _ = refusals(target)
        rules = thresholds_of(looked_at_values(target.models), target.context)
        decided = deciding(rules, refused, target.grouping.classes)
        more: dict[str, Any] = {"knowing": REFUSALS}
        if some_levels_were_excluded(target.grouping) or target.grouping.search.get("optimal") is False:
            more["assumption"] = "every finer level was allowed, and tried"
        return self._knowing_all(target, secrets, refused, decided), more

    def _knowing_all(
        self, target: Target, secrets: Sequence[Secrets], refused: Sequence[Parts], decided: Threshold | None
    ) -> list[Finding]:
        """The belief of somebody who knows that every one of these nodes was refused."""
        if not refused:
            why = "no finer node was refused for its sensitive values alone"
            return [as_shown(target, s, why) for s in secrets]
        listed = every_world(target, refused)
        if listed is not None and not len(listed.kept):
            return [as_shown(target, s, "no world explains what was refused") for s in secrets]
        findings = []
        chance: Fraction | None = None if listed is None else listed.chance
        for s in secrets:
            if listed is not None and s.attribute in listed.crowd.codes:
                findings.append(enumerated(target, s, listed, [p.words for p in refused]))
            elif (
                listed is None
                and len(refused) == 1
                and decided is not None
                and decided.attribute == s.attribute
            ):
                findings.append(counted(target, s, decided, refused[0], "release"))
            else:
                kind: Kind = "sampled" if listed is None else "bounded"
                if chance is None:
                    chance = Fraction(refused_at_least(target, refused, min(self.draws, REFUSAL_DRAWS)))
                findings.append(at_most(target, s, chance, len(refused), kind))
        return findings


REFUSAL_DRAWS = 400
ROUTE_DRAWS = 2_000
METHOD = "the method and its parameters"
REFUSALS = "that finer nodes were refused; what nodes that are not finer tell is left out"
SAME = "the same would have been published without a look at sensitive values"
BLIND_METHOD = "the method gives nothing away: it would decide the same if the group's values were dealt anew"


def shows_all(target: Target) -> bool:
    """Does the method give nothing away: is the belief what each group shows, provably?"""
    method = target.method
    if method is None:
        return False
    if not looked_at_values(target.models) and method.name in BLIND:
        return True
    proven = family(method.name, method.options()) in ("balanced", "anatomy")
    return proven and _status(target, secrets_of(target)) == "guaranteed"


def _status(target: Target, secrets: Sequence[Secrets]) -> str:
    """Guaranteed, when it is proven for the method whatever the data, or measured on this release."""
    method = target.method
    if method is None:
        return "measured"
    settings = method.name, method.options(), target.models, target.context
    promises = [promise(*settings, s.attribute, target.grouping.search).status for s in secrets]
    return "guaranteed" if set(promises) == {"guaranteed"} else "measured"


def searched_a_lattice(target: Target) -> bool:
    """Is it a full-domain search whose refusals can be judged?"""
    method, looked = target.method, looked_at_values(target.models)
    if method is None or method.name not in FULL_DOMAIN or target.grouping.levels is None:
        return False
    if getattr(method, "suppress", "") == "failing-classes" and getattr(method, "suppression", 0):
        return False
    return can_deal(target) and all(m.is_local() and not m.needs() for m in looked)
