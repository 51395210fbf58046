"""Be the adversary: run attacks on a release that is in memory or on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from maskwright.attacks import ATTACKS, WITHOUT_VALUES
from maskwright.core.adversary import MOST_FACTS, Adversary, Attack, Target
from maskwright.core.beliefs import Beliefs
from maskwright.core.grouping import Grouping
from maskwright.core.persist import load_census, load_grouping, part_folder
from maskwright.core.policy import Policy
from maskwright.core.projection import concerning, context_for
from maskwright.core.release import Release
from maskwright.core.settings import nearest
from maskwright.core.summary import Summary
from maskwright.core.yaml_text import MAX_BYTES
from maskwright.errors import InputError, UsageError
from maskwright.resolve import flagged_of, method_of, models_of
from maskwright.store import MANIFEST, PRIVATE
from maskwright.verify import REFERENCE, read_json, reference_from

# What each of them knows is explained in docs/threat-model.md.
ADVERSARIES: dict[str, Adversary] = {
    "neighbour": Adversary("neighbour"),
    "journalist": Adversary("journalist"),
    "knows-method": Adversary("knows-method", knows_method=True),
    "insider": Adversary("insider", knows_method=True, facts=3),
}


def adversary_named(name: str, facts: int | None = None) -> Adversary:
    """A preset, with another number of facts if wanted."""
    if name not in ADVERSARIES:
        raise UsageError(f"there is no adversary {name!r}; {nearest(name, ADVERSARIES)}")
    if facts is not None and not 0 <= facts <= MOST_FACTS:
        raise UsageError(f"facts: {facts} is not allowed; 0 to {MOST_FACTS} facts can be known")
    preset = ADVERSARIES[name]
    return preset if facts is None else Adversary(preset.name, preset.knows_method, facts)


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
    found = [b for a in able if (b := a.over(tables, adversary)) is not None]
    looked = next((t.chosen_by_looking for t in tables if t.chosen_by_looking), "")
    if looked:
        found = [_only_measured(beliefs, looked) for beliefs in found]
    return sorted(found, key=lambda b: (ATTACKS[b.attack].about == "ranges", -b.worst.upper))


def exceeding(found: Sequence[Beliefs], bound: Fraction | None) -> list[Beliefs]:
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


def _only_measured(beliefs: Beliefs, why: str) -> Beliefs:
    """Nothing is guaranteed for settings that may have been chosen by their outcome."""
    if beliefs.measures.get("status") != "guaranteed":
        return beliefs
    return replace(beliefs, measures={**beliefs.measures, "status": "measured", "why": why})


def _built(attack: Attack | str) -> Attack:
    if isinstance(attack, Attack):
        return attack
    if attack not in ATTACKS:
        raise UsageError(f"there is no attack {attack!r}; {nearest(attack, ATTACKS)}")
    return ATTACKS[attack]()


def knowledge(given: Sequence[str]) -> tuple[str, ...]:
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
    private = Path(release) / PRIVATE
    if not any(private.glob("**/state.json")):
        raise InputError(
            f"{str(release)!r} has no private/state.json: only a release that was made with --keep-private all "
            "can be attacked later"
        )
    policy = Policy.load(private / "policy.yaml")
    stored = read_json(private / REFERENCE)
    _, context = reference_from(stored)
    models, method = models_of(policy, context.sets), method_of(policy)
    context = replace(context, flagged=flagged_of(policy, context.sets))
    names = stored.get("parts", ["data"])
    looked = read_json(private / MANIFEST).get("history", {}).get("why", "")
    targets = []
    for name in names:
        grouping = _grouping(part_folder(private, name, len(names)))
        attributes, mine = grouping.summary.attributes, tuple(grouping.summary.sensitive)
        levels = {
            h.attribute: sorted({h.level_of(level) for level in allowed})
            for h in attributes
            if (allowed := policy.columns[h.attribute].levels) is not None
        }
        weights = {h.attribute: policy.columns[h.attribute].weight for h in attributes}
        targets.append(
            Target(
                grouping, concerning(models, mine), method.for_one_table(), context_for(context, mine),
                _census(private, grouping), policy.recoding.exact, weights=weights, levels=levels, name=name,
                joined=policy.recoding.blocks(mine, context.sets), chosen_by_looking=looked,
            )
        )  # fmt: skip
    return replace(targets[0], beside=tuple(targets[1:]))


def _grouping(folder: Path) -> Grouping:
    try:
        return load_grouping(folder)
    except (OSError, ValueError, KeyError):
        raise InputError(f"{str(folder)!r} does not hold what was written there") from None


def _census(private: Path, grouping: Grouping) -> Summary | None:
    try:
        return load_census(private, grouping.summary.attributes)
    except (OSError, ValueError, KeyError):
        raise InputError(f"{str(private)!r} does not hold what was written there") from None
