"""Gates: a release is refused here, before it is written by what its classes show, after it by what attacks found.

Which attacks decide a requirement on belief follows from what the adversary knows and what each attack takes into
account. Where no attack takes all of it into account, and nothing is proven, nothing is known: then the belief is taken
to be 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from maskwright.attacks import ATTACKS
from maskwright.attacks._shared.secrets import secrets_of
from maskwright.attacks.known_items import held_items, rare_sets
from maskwright.attacks.linked_visits import known_levels
from maskwright.domain.adversary import Adversary, Target, drops_failing
from maskwright.domain.beliefs import NOT_COMPUTED, Beliefs
from maskwright.domain.classes import Classes
from maskwright.domain.exact import text_of
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Part
from maskwright.domain.model import Model
from maskwright.domain.near_numbers import NumberWindows
from maskwright.domain.promise import Design, Promise
from maskwright.domain.references import References
from maskwright.domain.verdict import Measured, Verdict
from maskwright.errors import NotVerified, PolicyError, PolicyNotMet
from maskwright.folder.store import PRIVATE, PUBLIC
from maskwright.methods._rows.own_columns import differing_labels
from maskwright.models.belief import BeliefAtMost
from maskwright.pipeline.attacking import adversary_named, attack_target, kept_parts, target_of
from maskwright.pipeline.marginal_counts import miscounted_marginals
from maskwright.policy.policy import Policy, Unit
from maskwright.promise.policy_promise import promise_of, promise_of_rows
from maskwright.verification.against_policy import check_against_policy
from maskwright.verification.marginal_recount import MARGINALS
from maskwright.verification.pseudonym_links import too_few_matches
from maskwright.verification.verify import Verification, verify_folder

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


def decide_beliefs(verdicts: Sequence[Verdict], target: Target) -> tuple[Verdict, ...]:
    """The verdicts of a release; those on belief are decided anew, by attacking the release."""
    return tuple(_judged(verdict, target) for verdict in verdicts)


def _judged(verdict: Verdict, target: Target) -> Verdict:
    tables = target.tables
    for i, table in enumerate(tables):
        for model in table.models:
            mine = verdict.part in (None, table.name) and _same(model, verdict)
            if mine and isinstance(model, BeliefAtMost):
                others = tables[:i] + tables[i + 1 :]
                return replace(judge_belief(model, replace(table, beside=others)), part=verdict.part)
    return verdict


def promises_of(target: Target) -> tuple[Promise, ...]:
    """What a release promises of each sensitive attribute to somebody who knows the method; or of every row."""
    if target.method is not None and target.design is not None:
        found = promise_of_rows(target.method, target.design)
        if found is not None:
            return (found,)
    tables, adversary = target.tables, adversary_named("knows-method")
    return tuple(
        promise_of(replace(table, beside=tables[:i] + tables[i + 1 :]), attribute, adversary)
        for i, table in enumerate(tables)
        for attribute in table.grouping.classes.sensitive
    )


def _same(model: Model, verdict: Verdict) -> bool:
    mine = model.name, model.parameters(), model.attribute_name()
    return mine == (verdict.model, verdict.parameters, verdict.attribute)


def judge_belief(model: BeliefAtMost, target: Target) -> Verdict:
    """Attack the release as the adversary of one requirement, and hold the worst belief against the bound.

    The table that the requirement is about comes first; the others of the release are attacked together with it.
    """
    columns = [model.attribute] if model.attribute else list(target.grouping.classes.sensitive)
    secrets = {column: model.secrets_among(_values_of(target, column)) for column in columns}
    about = replace(target, secrets=secrets)
    adversary = adversary_named(model.adversary, model.facts)
    promises = [
        promise_of(about, column, adversary, model.sets, model.max, model.within) for column in columns
    ]
    promise = next((p for p in promises if p.status == "measured"), promises[0])
    chosen, many = counting_attacks(adversary), ""
    if any(isinstance(s, NumberWindows) and not s.few for s in secrets.values()):
        chosen = [name for name in chosen if ATTACKS[name].many_values]
        many = TOO_MANY_NUMBERS if target.beside or not target.grouping.summary.rows_are_people else ""
    found = (
        []
        if many
        else attack_target(replace(about, beside=()), chosen, adversary) + _joint_beliefs(about, adversary)
    )
    found = [b for b in found if b.kind != NOT_COMPUTED]
    unknown = (
        many
        or _not_followed(about, adversary, found)
        or _unanswered(about, adversary, found, proven=promise.status == "guaranteed")
    )
    worst = max(found, key=lambda b: (b.worst.upper, len(ATTACKS[b.attack].takes)), default=None)
    upper = worst.worst.upper if worst else Fraction(0)
    value: Measured = upper if worst is None or worst.worst.interval is None else float(upper)
    status, why = promise.status, promise.why
    if unknown:
        upper = value = Fraction(1)
        why = f"{why}; {unknown}"
    elif worst:
        why = f"{why}; {worst.attack} ({worst.kind})"
    ok = upper <= model.max
    if not ok:
        if worst and not unknown:
            why += f" finds it for {worst.worst.whom}: {worst.worst.why}"
        if status == "guaranteed" and not unknown and upper > _without_the_method(found):
            why += "; this contradicts the proof, please report it"
        else:  # the classes show too much: nothing is published, so that nothing is promised
            why = f"{why}; {_instead(model, adversary, target.design)}"
        status = "measured"
    return Verdict(
        model.name, model.parameters(), model.attribute, ok, np.array([ok]), [value], value, 0,
        f"at most {text_of(model.max)}", f"belief ({adversary.name})", model.use, status, why, promises=tuple(promises),
    )  # fmt: skip


TOO_MANY_NUMBERS = (
    "the column has too many different numbers to compute what several rows of a person, or several tables, reveal "
    "about them, so the belief is taken to be 1"
)


def _not_followed(about: Target, adversary: Adversary, found: Sequence[Beliefs]) -> str:
    """Why it is not known how near changed numbers bring somebody to the truth; empty: it is, or nobody asks."""
    changed = about.perturbed.get("columns", {})
    asked = any(n in changed and isinstance(s, NumberWindows) for n, s in (about.secrets or {}).items())
    if not asked or not adversary.knows_method or any(b.attack == "perturbed-numbers" for b in found):
        return ""
    why = ATTACKS["perturbed-numbers"]().unable(about) or "it was not computed for this release"
    return f"what the changed numbers reveal is not known ({why}), so the belief is taken to be 1"


def _values_of(target: Target, column: str) -> tuple[str, ...]:
    """The values of a column, in the table or as published."""
    grouping = target.grouping
    if column not in grouping.summary.sensitive:
        return ()
    values = grouping.summary.sensitive[column].values
    return tuple(dict.fromkeys((*values, *grouping.published_classes.sensitive[column].values)))


def _joint_beliefs(target: Target, adversary: Adversary) -> list[Beliefs]:
    """What the tables of a release tell together about the secrets of the first one."""
    if not target.beside:
        return []
    found = attack_target(target, [n for n, a in ATTACKS.items() if "releases" in a.takes], adversary)
    mine = set(target.secrets or ())
    mine |= {s.name for s in target.context.sets if mine & set(s.bits)}
    result = []
    for beliefs in found:
        about = [m for name, m in beliefs.measures.get("attributes", {}).items() if name in mine]
        worst = max((m["worst"] for m in about), key=lambda b: b.upper, default=None)
        if worst is not None:
            result.append(replace(beliefs, worst=worst))
    return result


def _without_the_method(found: Sequence[Beliefs]) -> Fraction:
    """The worst belief of the attacks that know nothing of the method."""
    shown = [b.worst.upper for b in found if "method" not in ATTACKS[b.attack].takes]
    return max(shown, default=Fraction(0))


def counting_attacks(adversary: Adversary) -> list[str]:
    """The attacks on sensitive values that this adversary can run."""
    known = adversary.knowledge
    return [name for name, attack in ATTACKS.items() if attack.about == "values" and attack.takes <= known]


def _unanswered(
    target: Target, adversary: Adversary, found: Sequence[Beliefs], proven: bool = False
) -> str | None:
    """What the adversary knows that no attack took into account and no proof covers; None: there is no such thing."""
    needed, published, dropped = adversary.knowledge, [], False
    for beliefs in found:
        attack = ATTACKS[beliefs.attack]
        if attack.whom == "published":
            # what was only assumed about the method was not taken into account
            published.append(attack.takes - ({"method"} if beliefs.measures.get("method assumed") else set()))
        dropped |= attack.whom == "dropped"
    if target.design is not None and target.design.insensitive and not target.passing:
        return "what the insensitive columns reveal was not computed, so the belief is taken to be 1"
    if adversary.facts and any(len(members) > 1 for s in secrets_of(target) for members in s.sets):
        return (
            "no attack takes facts about a set of several values into account, so the belief is taken to be 1"
        )
    if target.worlds_alike or proven:
        needed = needed - {"method"}
    if not any(beside_in_row(target, column) for column in target.secrets or ()):
        needed = needed - {"values"}
    if not any(takes >= needed for takes in published):
        what = " and ".join(KNOWN[knowledge] for knowledge in sorted(needed, reverse=True)) or "the classes"
        return f"no attack on such a release takes {what} into account, so the belief is taken to be 1"
    if "method" in needed and _dropped_for_values(target) and not dropped:
        return "people were dropped because of their values, so the belief about them is taken to be 1"
    return None


KNOWN: dict[str, str] = {
    "method": "the method", "facts": "facts", "values": "facts about other sensitive values of the same row",
    "releases": "the other tables", "correlations": "what is learned from the release",
}  # fmt: skip


def beside_in_row(target: Target, attribute: str) -> list[str]:
    """The sensitive attributes that a row shows together with this one."""
    blocks = [tuple(target.grouping.summary.sensitive)] if target.joined is None else target.joined
    return [n for names in blocks if attribute in names for n in names if n != attribute]


def _dropped_for_values(target: Target) -> bool:
    grouping = target.grouping
    looked = any(m.use == "search" and m.about == "sensitive" for m in target.models)
    failing = grouping.dropped_rows > 0 and drops_failing(target)
    return bool(grouping.trace.dropped_for_values) or (failing and looked)


def _instead(model: BeliefAtMost, adversary: Adversary, design: Design | None) -> str:
    """What would help, of the things that this policy allows."""
    if design is not None and design.insensitive:
        return f"do not publish {design.insensitive[0]!r}, or make it a quasi-identifier"
    if design is not None and design.unit:
        return "larger classes (a larger k) leave nobody so large a share of one"
    if model.within is not None:
        return (
            "larger classes (a larger k), or quasi-identifiers that say less of it, leave more to choose from"
        )
    return INSTEAD_OF_FACTS if "facts" in adversary.knowledge else INSTEAD


def decided_by_classes(models: Sequence[Model], policy: Policy) -> Sequence[Model]:
    """The requirements that classes alone decide; beliefs about people with several rows are not among them."""
    return [m for m in models if not (policy.person_column and isinstance(m, BeliefAtMost))]


def refuse_unmet(classes: Classes, models: Sequence[Model], references: References, people: bool) -> None:
    """Refuse before anything is written when a requirement does not hold for the grouping."""
    for model in models:
        verdict = references.check(model, classes)
        if verdict.ok:
            continue
        near = references.nearest(model, classes)
        remedy = f"; this release would satisfy {near}" if near else ""
        if isinstance(model, BeliefAtMost):
            remedy += f"; {INSTEAD}"
        elif people and model.use == "search":  # of each group it holds
            remedy += (
                "; groups whose labels read alike are one class, in which somebody with rows in several of them counts "
                "once: recoding: bucketize tells them apart"
            )
        elif people:
            remedy += (
                "; or let a method search for it (use: search), e.g. mondrian: what its choice then says about the "
                "values of people with several rows is measured by the attacks"
            )
        elif model.use == "gate" and model.needs():
            remedy += (
                "; or let a method with one level for each column search for it (use: search, optimal-lattice): its "
                "choice then says something about the values"
            )
        elif model.use == "gate":
            remedy += (
                "; or let a method search for it (use: search): mondrian with cut: balanced gives nothing away by "
                "that, the choice of other methods then says something about the values"
            )
            if _has_room(references, model):
                remedy += (
                    ". Or require what is meant, a belief: {model: belief, max: 1/4} with that method chooses the "
                    "parameter and guarantees it"
                )
        raise PolicyNotMet(f"{verdict.sentence()}{remedy}; nothing was published")


def refuse_matching_visits(grouping: Grouping, models: Sequence[Model], people: Unit | None) -> None:
    """Refuse visits when fewer people match what may be known of them together than the policy asks."""
    if people is None or (people.publish is None and people.events == 1):
        return
    other = "do not link them (no publish: pseudonym)" if people.publish else "write events: 1"
    matches = min(level.fewest for level in known_levels(grouping, people.events) if level.visits)
    for model in models:
        if problem := too_few_matches(model, matches, people.events):
            raise PolicyNotMet(
                f"{problem}; keep fewer rows of each person (unit: {{rows: 1}} leaves nothing to link), coarsen what "
                f"differs from visit to visit (its `levels`, or a larger k), or {other}; nothing was published"
            )


def refuse_rare_items(part: Part, policy: Policy, parts: int) -> None:
    """Refuse sets of which a few values are held by fewer people than the policy asks."""
    for column in part.task.sets:
        asked = policy.known_items.get(column.name)
        if asked is None:
            continue
        if parts > 1 or part.grouping.changes is not None or part.grouping.summary.cells is None:
            raise PolicyError(
                f"columns.{column.name}.known_items: which values are held together is not counted with method "
                f"{policy.method.name}; use another method, e.g. mondrian, or leave `known_items` out"
            )
        linked = policy.people is not None and policy.people.publish is not None
        holder, item, _, owner = held_items(part.grouping, column, linked)
        found = rare_sets(holder, item, asked.m, asked.k, owner)
        if len(holder) and found.fewest < asked.k:
            raise PolicyNotMet(
                f"column {column.name!r}: some {found.size} of its values are held together by {found.fewest} of those "
                f"who are published, asked at least {asked.k}; write rare: suppress (or merge), a smaller k or m"
                + (", or let nobody be left out (suppression: 0)" if asked.rare != "refuse" else "")
                + "; nothing was published"
            )


def refuse_differing_labels(grouping: Grouping, policy: Policy) -> None:
    """Refuse a column of the person that is published differently in rows of one person, where that can be seen.

    Whoever knows somebody's own columns knows them in every row, also in those that are not known otherwise. So where a
    pseudonym links rows, that goes for any column that is the same in all rows of everybody.
    """
    linked = policy.people is not None and policy.people.publish is not None
    if not linked and not policy.own_columns:
        return
    same = dict(differing_labels(grouping))
    named = [name for name, there in same.items() if there if linked or name in policy.own_columns]
    if not named:
        return
    if set(named) & set(policy.own_columns):
        raise NotVerified(
            f"column {named[0]!r} was to be published alike in all rows of a person, and is not"
        )
    own = ", ".join(same)
    raise PolicyNotMet(
        f"column {named[0]!r} is the same in all rows of each person, but {policy.method.name} coarsens it differently "
        "from row to row: rows that a pseudonym links would reveal more about a person than each of them does. "
        f"Declare it the person's own (unit: {{own: [{own}]}}); nothing was published"
    )


def _has_room(references: References, model: Model) -> bool:
    """Whether no value of the model's attribute is held by more than a quarter of the table as it is."""
    counts = references.search.reference.get(model.attribute_name() or "")
    return counts is not None and 4 * int(counts.max(initial=0)) <= int(counts.sum())


def _with_kept_marginals(result: Verification, folder: Path) -> Verification:
    """Marginals are held against what was kept of the table, too, where it was."""
    if not (folder / PUBLIC / MARGINALS).exists() or not (folder / PRIVATE / "state.json").exists():
        return result
    problem = miscounted_marginals(kept_parts(folder / PRIVATE)[0], folder / PUBLIC)
    return replace(result, problems=(*result.problems, problem)) if problem else result


def verify_release(
    folder: str | Path, recount_only: bool = False, policy: Policy | None = None
) -> Verification:
    """`verify_folder`, and where the release promises a belief and its private state was kept: attack it again.

    With a policy the files are held against that alone; what a manifest or `private/` says is not looked at.
    """
    if policy is not None:
        result = check_against_policy([folder], policy)
        asks = any(v.model == BeliefAtMost.name for v in result.verdicts)
        return replace(result, notes=(*result.notes, PUBLIC_ONLY)) if asks else result
    result = _with_kept_marginals(verify_folder(folder, recount_only), Path(folder))
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
    return replace(result, verdicts=decide_beliefs(result.verdicts, target))
