"""Minimality: what an adversary learns who knows the method and its parameters [Wong et al. 2007; Cormode et al. 2010].

A method that recodes no more than it must gives away that it *had* to: where a finer recoding was refused, some class
of it violates the requirement. The belief in a secret is its share over the possible worlds in which that is so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from pydantic import Field

from maskwright.attacks._minimality.closed_form import closed_form_finding
from maskwright.attacks._minimality.credibility_analyses import credibility_analysis, with_list
from maskwright.attacks._minimality.drawn_worlds import can_deal, refused_at_least, refusing_worlds
from maskwright.attacks._minimality.enumeration import (
    every_world,
    groups_are_told,
    in_one_group,
    labels_repeat,
)
from maskwright.attacks._minimality.local_credibility import recoded_locally
from maskwright.attacks._minimality.partitions import cut_family, cut_finding, cut_worlds, cuts_evenly
from maskwright.attacks._minimality.refusals import (
    RefusedParts,
    find_refusals,
    looked_at_values,
    raw_classes,
    some_levels_were_excluded,
)
from maskwright.attacks._minimality.replay import (
    Replayed,
    can_draw,
    can_replay,
    posterior_distances,
    replay_findings,
    replay_method,
    same_without_values,
)
from maskwright.attacks._minimality.row_methods import replayed_by
from maskwright.attacks._minimality.several_releases import found_together
from maskwright.attacks._people.linked_people import BY_VISITS, visits_known
from maskwright.attacks._people.people_worlds import people_findings
from maskwright.attacks._shared.findings import Finding, Kind, as_shown, at_most, enumerated_finding
from maskwright.attacks._shared.secrets import Secrets, accompanying_figures, dropped_people, secrets_of
from maskwright.attacks._shared.thresholds import Threshold, deciding_threshold, thresholds_of
from maskwright.attacks._shared.timed import Timed
from maskwright.attacks.intersection import JoinedPeople
from maskwright.attacks.linked_visits import LinkedVisits
from maskwright.domain.adversary import About, Adversary, Knowledge, Target
from maskwright.domain.beliefs import NOT_COMPUTED, Belief, Beliefs
from maskwright.domain.method import Analysis
from maskwright.errors import UsageError
from maskwright.promise.method_promise import promise_of_method
from maskwright.promise.policy_promise import promise_of
from maskwright.worlds.sampling.world_sampler import WorldBudget


class Minimality(Timed):
    """The belief of somebody who knows the method, and so why nothing finer was published.

    Attributes:
        method: a function f(qi, sa, rng) → groups of row numbers, in place of the release's own method.
        people: of several releases, who is in which: as `intersection` takes them.
    """

    name: ClassVar[str] = "minimality"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"method"})
    method: Callable[..., Any] | None = Field(default=None, exclude=True)
    people: Sequence[Mapping[str, Any]] | None = Field(default=None, exclude=True)

    def applies(self, target: Target) -> bool:
        """Whether some way to analyse this release is known."""
        if _private(target):
            return False
        if credibility_analysis(target) is not None:
            return True
        classes = target.grouping.classes
        if not classes.sensitive or target.grouping.changes is not None:
            return False
        if not target.grouping.summary.rows_are_people:
            return not self.unable(target)
        if any(s.several for s in secrets_of(target)):
            return False
        if self.method is not None:
            return can_draw(target)
        return target.method is not None and any(way.fits(target) for way in WAYS)

    def unable(self, target: Target) -> str:
        """Why the attack cannot run on rows that were sampled, or of people who have several; otherwise nothing."""
        if _private(target) and target.grouping.summary.sensitive:
            return (
                "what knowing the method adds is bounded by differential privacy, for any prior; how much that is "
                "where all worlds are equally likely is not computed"
            )
        if target.grouping.summary.rows_are_people or not target.grouping.summary.sensitive:
            return ""
        if why := super().unable(target):
            return why
        if self.method is not None:
            return "people have several rows, and a function of rows does not say whose they are"
        if visits_known(target):
            return LinkedVisits().unable(target)
        if target.grouping.changes is not None:
            return "people have several rows, and values were changed: whose they could be is not tried"
        several = len(target.grouping.summary.sensitive) > 1 and (target.exact or target.joined is not None)
        if not target.worlds_alike and (not can_replay(target) or several):
            return (
                "people have several rows, and the method cannot be run again on other assignments of the values to "
                "people"
            )
        return ""

    def over(self, targets: Sequence[Target], adversary: Adversary) -> Beliefs | None:
        """Each table by itself, and what the choices of methods tell *together* about one attribute."""
        found = super().over(targets, adversary)
        twice = chosen_twice(targets)
        if found is None or not twice:
            return found
        if (joint := self.told_together(targets, adversary)) is not None:
            worse = with_choices(found, joint)
            most = {
                n: max(found.measures[n], joint.measures[n]) for n in joint.measures if n.startswith("vulner")
            }
            return replace(
                worse,
                measures={**found.measures, **most, "together": {"worst": joint.worst, **joint.measures}},
            )
        why = (
            f"{' and '.join(twice)}: several tables show it, and the method looked at its values to make them. What "
            "each table's choice tells is counted table by table; what these choices tell together can be more, up to "
            "certainty, and is not counted. Publish it once, or by methods that do not look at values, or as a "
            "sequence (--after)"
        )
        return replace(
            found, kind=NOT_COMPUTED, worst=Belief(found.worst.before, Fraction(1), "anybody", why)
        )

    def told_together(self, targets: Sequence[Target], adversary: Adversary) -> Beliefs | None:
        """What the choices of the methods of several small releases tell whoever has all of them; None: not counted."""
        names = {t.name.partition(":")[0] for t in targets}
        several = any(t.beside or t.place is not None for t in targets) or len(names) < len(targets)
        planned = any(t.design is not None and t.design.plan for t in targets)
        if several or planned or self.method is not None:
            return None  # tables of one release are no choices of their own, those of a sequence know of each other
        if not all(t.grouping.summary.rows_are_people and self.applies(t) for t in targets):
            return None
        columns = {frozenset(h.attribute for h in t.grouping.summary.attributes) for t in targets}
        if self.people is None and len(columns) > 1:
            return None  # who of those with the same values in common is the same is not known
        try:
            crowd = JoinedPeople.of(targets, self.people)
        except UsageError:
            if self.people is not None:
                raise
            return None
        joint = found_together(targets, crowd, WorldBudget(self.draws, self.seconds))
        if joint is None:
            return None
        measures: dict[str, Any] = {
            "vulnerable_people": joint.vulnerable,
            "vulnerable_share": Fraction(joint.vulnerable, max(1, joint.people)),
            "people": {"known": crowd.how, "in_several_tables": crowd.common, "in_any": crowd.everybody},
        }
        measures |= {} if joint.assumption is None else {"assumption": joint.assumption}
        kind: Kind = "exact" if joint.assumption is None else "estimated"
        return Beliefs(self.name, adversary.name, kind, joint.worst, measures)

    def sees_links(self, target: Target) -> bool:
        """Whether it is the release's own method, which adds nothing to what links tell of known visits."""
        return self.method is None

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief over the worlds in which the method publishes the same."""
        if visits_known(target) and self.sees_links(target):
            return self._linked(target, adversary)
        secrets = secrets_of(target)
        measures: dict[str, Any] = accompanying_figures(target, secrets)
        measures["status"] = "measured" if self.method is not None else _status(target, secrets, KNOWS_METHOD)
        budget = WorldBudget(self.draws, self.seconds)
        if self.method is not None:
            found, more = replay_findings(target, secrets, replayed_by(target, self.method, budget))
        elif not target.grouping.summary.rows_are_people:
            found, more = people_findings(target, secrets, budget)
        else:
            found, more = _analysis(target, secrets, budget)
        if target.design is not None and target.design.plan:
            more.setdefault("assumption", GIVEN_PLAN)
        measures |= {"knowing": METHOD} | more
        alone = target.grouping.summary.rows_are_people
        if self.method is None and alone and searched_a_lattice(target):
            measures |= refused_nodes(target, secrets)
        measures |= with_list(target, secrets) if alone else {}
        worst = max(found, key=lambda f: (f.belief.upper, f.belief.after, -f.belief.before))
        published = target.grouping.summary.n_people - dropped_people(target.grouping)
        measures["vulnerable_people"] = max(f.vulnerable for f in found)
        measures["vulnerable_share"] = Fraction(measures["vulnerable_people"], published)
        measures["arithmetic"] = worst.kind
        rests = measures["knowing"] != METHOD or "assumption" in measures
        return Beliefs(
            self.name, adversary.name, "estimated" if rests else worst.kind, worst.belief, measures
        )

    def _linked(self, target: Target, adversary: Adversary) -> Beliefs:
        """What links tell: of people who are known by the classes of visits the method tells nothing more."""
        links = LinkedVisits().run(target, adversary)
        more: dict[str, Any] = {"knowing": METHOD, "arithmetic": "exact"}
        if target.worlds_alike:
            return replace(links, attack=self.name, measures={**links.measures, **more})
        worst = replace(links.worst, why=f"{links.worst.why}; {BY_VISITS}")
        more["assumption"] = BY_VISITS
        return Beliefs(self.name, adversary.name, "estimated", worst, {**links.measures, **more})


def with_choices(found: Beliefs, joint: Beliefs) -> Beliefs:
    """The worse of what is believed otherwise and of what choices tell together; what either rests on is said."""
    worse = joint if joint.worst.upper > found.worst.upper else found
    return replace(worse, kind=joint.kind) if worse.kind == "exact" else worse


def chosen_twice(targets: Sequence[Target]) -> list[str]:
    """The attributes that several tables show, one of which was made by a method that looked at values."""
    tables: dict[str, list[Target]] = {}
    for target in targets:
        for name in target.grouping.published_classes.sensitive:
            tables.setdefault(name, []).append(target)
    return [n for n, of in tables.items() if len(of) > 1 and not all(t.worlds_alike for t in of)]


def _private(target: Target) -> bool:
    return target.method is not None and target.method.privacy() is not None


Found = tuple[list[Finding], dict[str, Any]]


@dataclass(frozen=True)
class Way:
    """One way to find out what a method gives away.

    Attributes:
        fits: can it say anything about this release?
        findings: what it finds, for each column of secrets, and what is to be said besides; None: it could not.
        any_groups: does what it finds bound belief whoever is in the groups, as long as they show the same values?
    """

    fits: Callable[[Target], bool]
    findings: Callable[[Target, Sequence[Secrets], WorldBudget], Found | None]
    any_groups: bool = False


def _analysis(target: Target, secrets: Sequence[Secrets], budget: WorldBudget) -> Found:
    """The findings of the first way that fits and comes to an end."""
    for way in WAYS:
        found = way.findings(target, secrets, budget) if way.fits(target) else None
        if found is not None:
            return _as_readers_see(target, way, *found)
    raise ValueError("no way to attack this release by its method is known")


def _as_readers_see(target: Target, way: Way, findings: list[Finding], more: dict[str, Any]) -> Found:
    """Findings about groups of people, for somebody who only sees what they are labelled."""
    if more.pop("by labels", False):
        return findings, more
    if labels_repeat(target):
        more.setdefault("assumption", ONE_CLASS)
    elif not groups_are_told(target):
        if way.any_groups:
            findings = [replace(f, kind="bounded") if f.kind == "exact" else f for f in findings]
        else:
            more.setdefault("assumption", KNOWN_GROUPS)
    return findings, more


def _own(target: Target, secrets: Sequence[Secrets], budget: WorldBudget) -> Found | None:
    own = _own_analysis(target)
    if own is None:
        return None
    findings = [Finding(own(target.grouping, s.attribute, tuple(s.sets)), "exact", 0) for s in secrets]
    return findings, {"knowing": "the method, as its own analysis says"}


def _credibility(target: Target, secrets: Sequence[Secrets], budget: WorldBudget) -> Found | None:
    route = credibility_analysis(target)
    return None if route is None else route(target, secrets, ROUTE_DRAWS)


def _every_world(target: Target, secrets: Sequence[Secrets], budget: WorldBudget) -> Found | None:
    listed = every_world(target, budget)
    if listed is None:
        return None
    findings, more = replay_findings(target, secrets, listed)
    return findings, more | {"by labels": True}


def _replayed_locally(target: Target, secrets: Sequence[Secrets], budget: WorldBudget) -> Found | None:
    """The worlds in which groups that were recoded class by class come out again; None: too little could be seen.

    Beside it stands the credibility of the paper, which rests on what no method promises.
    """
    replayed = replay_method(target, budget)
    findings, more = replay_findings(target, secrets, replayed)
    if any(f.kind == "bounded" for f in findings):
        return None
    paper = _credibility(target, secrets, budget)
    if paper is not None:
        more["credibility (paper)"] = [f.as_measure() for f in paper[0]]
    return findings, more


def _shown(why: str) -> Callable[[Target, Sequence[Secrets], WorldBudget], Found]:
    """The belief is what each group shows, and why."""

    def _findings(target: Target, secrets: Sequence[Secrets], budget: WorldBudget) -> Found:
        found = [as_shown(target, s, why) for s in secrets]
        if not _each_in_one_group(
            target
        ):  # of others less may be believed than the worst of their groups shows
            found = [replace(f, kind="bounded") for f in found]
        return found, posterior_distances(target, secrets)

    return _findings


def _cuts(target: Target, secrets: Sequence[Secrets], budget: WorldBudget) -> Found:
    return [cut_finding(target, s) for s in secrets], {}


def _worlds(
    explored: Callable[[Target, WorldBudget], Replayed],
) -> Callable[[Target, Sequence[Secrets], WorldBudget], Found]:
    def _findings(target: Target, secrets: Sequence[Secrets], budget: WorldBudget) -> Found:
        return replay_findings(target, secrets, explored(target, budget))

    return _findings


def _can_run_again(target: Target) -> bool:
    return can_replay(target) and can_draw(target)


def refused_nodes(target: Target, secrets: Sequence[Secrets]) -> dict[str, Any]:
    """The nodes that a full-domain search refused, and what each refusal alone tells."""
    refused, others = find_refusals(target)
    rules = thresholds_of(looked_at_values(target.models), target.context)
    classes, raw = target.grouping.classes, raw_classes(target.grouping)
    decided, paper = deciding_threshold(rules, refused, classes), deciding_threshold(rules, [raw], classes)
    return {
        "refused": [p.words for p in refused],
        "others": others,
        "one refusal at a time": [
            {
                "refused": parts.words,
                "whole release": closed_form_finding(target, s, decided, parts, "release").as_measure(),
                "per class": closed_form_finding(target, s, decided, parts, "class").as_measure(),
            }
            for s in secrets
            for parts in refused
            if decided is not None and decided.attribute == s.attribute
        ],
        "per class (paper)": [
            closed_form_finding(target, s, paper, raw, "class", target.least_people).as_measure()
            for s in secrets
            if paper is not None and paper.attribute == s.attribute
        ],
    }


def _refusals_alone(
    target: Target, secrets: Sequence[Secrets], budget: WorldBudget
) -> tuple[list[Finding], dict[str, Any]]:
    """The search cannot be repeated: what is used is that finer nodes were refused."""
    refused, _ = find_refusals(target)
    rules = thresholds_of(looked_at_values(target.models), target.context)
    decided = deciding_threshold(rules, refused, target.grouping.classes)
    more: dict[str, Any] = {"knowing": REFUSALS}
    if some_levels_were_excluded(target.grouping) or not target.grouping.trace.complete:
        more["assumption"] = "every finer level was allowed, and tried"
    return _knowing_all(target, secrets, refused, decided, budget.draws), more


def _knowing_all(
    target: Target,
    secrets: Sequence[Secrets],
    refused: Sequence[RefusedParts],
    decided: Threshold | None,
    draws: int,
) -> list[Finding]:
    """The belief of somebody who knows that every one of these nodes was refused."""
    if not refused:
        why = "no finer node was refused for its sensitive values alone"
        return [as_shown(target, s, why) for s in secrets]
    listed = refusing_worlds(target, refused)
    if listed is not None and not len(listed.kept):
        return [as_shown(target, s, "no world explains what was refused") for s in secrets]
    findings = []
    chance: Fraction | None = None if listed is None else listed.chance
    for s in secrets:
        if listed is not None and s.attribute in listed.crowd.codes:
            findings.append(enumerated_finding(target, s, listed, [p.words for p in refused]))
        elif (
            listed is None and len(refused) == 1 and decided is not None and decided.attribute == s.attribute
        ):
            findings.append(closed_form_finding(target, s, decided, refused[0], "release"))
        else:
            kind: Kind = "sampled" if listed is None else "bounded"
            if chance is None:
                chance = Fraction(refused_at_least(target, refused, min(draws, REFUSAL_DRAWS)))
            findings.append(at_most(target, s, chance, len(refused), kind))
    return findings


KNOWS_METHOD = Adversary("knows-method", knows_method=True)
REFUSAL_DRAWS = 400
ROUTE_DRAWS = 2_000
LOCAL_ROWS = (
    500  # of a release that was recoded class by class: of more the same groups hardly ever come out again
)
ONE_CLASS = "it is known which of several groups with the same labels somebody is in"
KNOWN_GROUPS = "it is known who is in which group, even where the labels of several groups fit a person"
GIVEN_PLAN = (
    "the plan of the tables was given: that it was chosen by looking at values is not taken into account"
)
METHOD = "the method and its parameters"
REFUSALS = "that finer nodes were refused; what other nodes reveal is left out"
SAME = "the same would have been published without a look at sensitive values"
BLIND_METHOD = (
    "the method gives nothing away: it would decide the same if the group's values were dealt out anew"
)


# Tried in this order. What is proven or counted in closed form comes before what is counted world by world, and that
# before what is drawn; small releases are enumerated first, unless it is proven that there is nothing to find.
WAYS: tuple[Way, ...]


def _own_analysis(target: Target) -> Analysis | None:
    """The analysis that a method brings with it."""
    return None if target.method is None else target.method.decisions().analysis


def shows_all(target: Target) -> bool:
    """Whether the method provably gives nothing away, so that belief is what each group shows."""
    method = target.method
    if method is None:
        return False
    promises = [
        promise_of_method(method, target.models, target.context, s.attribute, target.grouping.trace)
        for s in secrets_of(target)
    ]
    return bool(promises) and all(p.shown for p in promises)


def _status(target: Target, secrets: Sequence[Secrets], adversary: Adversary) -> str:
    """Guaranteed, when a proof covers the whole policy, or measured on this release."""
    found = {promise_of(target, s.attribute, adversary).status for s in secrets}
    return "guaranteed" if found == {"guaranteed"} else "measured"


def _each_in_one_group(target: Target) -> bool:
    """Whether everybody knows who is in which group, and somebody is surely in the one that shows most."""
    if labels_repeat(target) or not groups_are_told(target):
        return False
    return not target.exact or all(in_one_group(target.grouping, s) for s in secrets_of(target))


def _recodes_class_by_class(target: Target) -> bool:
    return target.method is not None and target.method.decisions().shape == "local"


def _few_recoded_locally(target: Target) -> bool:
    return target.grouping.summary.n_rows <= LOCAL_ROWS and recoded_locally(target) and not shows_all(target)


def searched_a_lattice(target: Target) -> bool:
    """Whether it is a full-domain search whose refusals can be judged."""
    method, looked = target.method, looked_at_values(target.models)
    if method is None or method.decisions().shape != "node" or target.grouping.levels is None:
        return False
    if method.decisions().drops_failing:
        return False
    return can_deal(target) and all(m.is_local() and not m.needs() for m in looked)


WAYS = (
    Way(lambda t: _own_analysis(t) is not None, _own),
    Way(lambda t: _recodes_class_by_class(t) and _can_run_again(t), _every_world),
    Way(lambda t: _few_recoded_locally(t) and _can_run_again(t), _replayed_locally),
    Way(lambda t: credibility_analysis(t) is not None, _credibility),
    Way(lambda t: shows_all(t) and _each_in_one_group(t), _shown(BLIND_METHOD)),
    # what is guaranteed must not be judged by values of people who were dropped: being published would tell of them
    Way(lambda t: _can_run_again(t) and not (shows_all(t) and t.grouping.dropped_rows), _every_world),
    Way(shows_all, _shown(BLIND_METHOD), any_groups=True),
    Way(lambda t: cut_family(t) is not None, _cuts, any_groups=True),
    Way(lambda t: cuts_evenly(t) and can_draw(t), _worlds(cut_worlds), any_groups=True),
    Way(lambda t: _can_run_again(t) and searched_a_lattice(t) and same_without_values(t), _shown(SAME)),
    Way(_can_run_again, _worlds(replay_method)),
    Way(searched_a_lattice, _refusals_alone),
)
