"""Be the adversary: run attacks on a release that is in memory or on disk."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from maskwright.attacks import ATTACKS, WITHOUT_VALUES
from maskwright.domain.adversary import MOST_FACTS, Adversary, Attack, PassingBelief, Target
from maskwright.domain.beliefs import NOT_COMPUTED, Belief, Beliefs
from maskwright.domain.exact import short_repr, to_fraction
from maskwright.domain.projection import context_for, models_about
from maskwright.domain.promise import Design
from maskwright.domain.release import Release
from maskwright.domain.settings import did_you_mean
from maskwright.errors import InputError, MaskwrightError, UsageError
from maskwright.folder.saved_state import load_census, load_grouping, part_folder
from maskwright.folder.store import MANIFEST, PRIVATE
from maskwright.policy.binding import allowed_levels, design_of, flagged_of, method_of, models_of
from maskwright.policy.policy import Policy
from maskwright.policy.yaml_text import MAX_BYTES
from maskwright.verification.verify import REFERENCE, read_json, reference_from

# what reading a file raises that somebody changed: JSON, numbers, arrays in a zip file
DAMAGED = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, EOFError, RecursionError,
    NotImplementedError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip

# What each of them knows is explained in docs/threat-model.md.
ADVERSARIES: dict[str, Adversary] = {
    "neighbour": Adversary("neighbour"),
    "journalist": Adversary("journalist"),
    "knows-method": Adversary("knows-method", knows_method=True),
    "insider": Adversary("insider", knows_method=True, facts=3),
    "learns": Adversary("learns", knows_method=True, learns=True),
}


def adversary_named(name: str, facts: int | None = None) -> Adversary:
    """A preset, with another number of facts if wanted."""
    if name not in ADVERSARIES:
        raise UsageError(f"there is no adversary {name!r}; {did_you_mean(name, ADVERSARIES)}")
    if facts is not None and not 0 <= facts <= MOST_FACTS:
        raise UsageError(f"facts: {facts} is not allowed; 0 to {MOST_FACTS} facts can be known")
    preset = ADVERSARIES[name]
    return preset if facts is None else replace(preset, facts=facts)


def attack_target(
    target: Target | Sequence[Target], attacks: Sequence[Attack | str], adversary: Adversary
) -> list[Beliefs]:
    """Every attack that applies to a release (or to several about the same people) and that this adversary knows
    enough for; the worst belief first."""
    releases = [target] if isinstance(target, Target) else target
    tables = [table for release in releases for table in release.tables]
    if not any(table.grouping.classes.sensitive for table in tables):
        attacks = [a for a in attacks if not isinstance(a, str) or a in WITHOUT_VALUES or a not in ATTACKS]
    able = [a for a in map(_built, attacks) if a.suits(adversary)]
    found = [
        b for a in able if (b := a.over(tables, adversary) or _not_computed(a, tables, adversary)) is not None
    ]
    return sorted(found, key=lambda b: (ATTACKS[b.attack].about == "ranges", -b.worst.upper))


def _not_computed(attack: Attack, tables: Sequence[Target], adversary: Adversary) -> Beliefs | None:
    """An attack that concerns a release and cannot say anything about it; what is not computed counts as 1."""
    reason = next((why for table in tables if (why := attack.unable(table))), "")
    if not reason:
        return None
    return Beliefs(
        attack.name, adversary.name, NOT_COMPUTED, Belief(Fraction(0), Fraction(1), "anybody", reason)
    )


def belief_bound(value: Any, name: str) -> Fraction | None:
    """The largest belief that is allowed, above 0 and at most 1; None: any."""
    if value is None:
        return None
    try:
        bound = to_fraction(value)
    except ValueError as problem:
        raise UsageError(f"{name}: {problem}") from None
    if not 0 < bound <= 1:
        raise UsageError(
            f"{name}: {short_repr(value)} is no belief; write a number above 0 and at most 1, e.g. 1/4 or 25%"
        )
    return bound


def beliefs_above(found: Sequence[Beliefs], bound: Fraction | None) -> list[Beliefs]:
    """The attacks that lead to more than a stated bound. A belief in a range of values is none in a value."""
    if bound is None:
        return []
    return [b for b in found if ATTACKS[b.attack].about != "ranges" and b.worst.upper > bound]


def targets_of(releases: Sequence[Release | str | Path]) -> list[Target]:
    """Several releases about the same people; their tables are named by release."""
    result = []
    for i, release in enumerate(releases):
        named = [replace(t, name=f"release {i + 1}: {t.name}", beside=()) for t in target_of(release).tables]
        result.append(replace(named[0], beside=tuple(named[1:])))
    return result


def _built(attack: Attack | str) -> Attack:
    if isinstance(attack, Attack):
        return attack
    if attack not in ATTACKS:
        raise UsageError(f"there is no attack {attack!r}; {did_you_mean(attack, ATTACKS)}")
    return ATTACKS[attack]()


def knowledge_statements(given: Sequence[str]) -> tuple[str, ...]:
    """Statements as the command line has them; `@file` stands for the statements in a file."""
    found = []
    for text in given:
        if not text.startswith("@"):
            found.append(text)
            continue
        try:
            with Path(text[1:]).open("rb") as file:
                said = file.read(MAX_BYTES + 1)
            if len(said) > MAX_BYTES:
                raise InputError(f"--knowing: {text[1:]!r} is larger than {MAX_BYTES >> 20} MiB")
            found.append(said.decode("utf-8"))
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", None) or "it is not a text file in UTF-8"
            raise InputError(f"--knowing: {text[1:]!r} cannot be read: {reason}") from None
    return tuple(found)


def target_of(release: Release | str | Path) -> Target:
    """What an attack needs to know of a release: from memory, or from its private/ folder."""
    if isinstance(release, Release):
        if release.target is None:
            raise UsageError("this release does not say how it was made; give its folder instead")
        return release.target
    try:
        private = Path(release) / PRIVATE
    except TypeError:
        raise UsageError(f"a release or its folder is needed, not a {type(release).__name__}") from None
    if not any(private.glob("**/state.json")):
        raise InputError(
            f"{str(release)!r} has no private/state.json: only a release that was made with --keep-private all "
            "can be attacked later"
        )
    try:
        return _kept_target(private)
    except MaskwrightError:
        raise
    except DAMAGED:
        raise InputError(f"{str(private)!r} does not hold what was written there") from None


def _kept_target(private: Path) -> Target:
    policy = Policy.load(private / "policy.yaml")
    stored = read_json(private / REFERENCE)
    _, context = reference_from(stored)
    models, method = models_of(policy, context.sets), method_of(policy)
    context = replace(context, flagged=flagged_of(policy, context.sets))
    names = stored.get("parts", ["data"])
    manifest = read_json(private / MANIFEST)
    design = design_of(policy, method, Design.facts(manifest.get("run", {})))
    passing = [PassingBelief.of(stored) for stored in manifest.get("passing", [])]
    targets = []
    for name in names:
        grouping = load_grouping(part_folder(private, name, len(names)))
        attributes, mine = grouping.summary.attributes, tuple(grouping.summary.sensitive)
        levels = allowed_levels(policy, attributes)
        weights = {h.attribute: policy.columns[h.attribute].weight for h in attributes}
        targets.append(
            Target(
                grouping, models_about(models, mine), method.for_one_table(), context_for(context, mine),
                load_census(private, attributes), policy.recoding.exact, weights=weights, levels=levels, name=name,
                joined=policy.recoding.blocks(mine, context.sets), design=design,
                passing=tuple(p for p in passing if p.attribute in mine),
            )
        )  # fmt: skip
    return replace(targets[0], beside=tuple(targets[1:]))
