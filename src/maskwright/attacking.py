"""Be the adversary: run attacks on a release that is in memory or on disk."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from maskwright.attacks import ATTACKS
from maskwright.core.adversary import Adversary, Attack, Target
from maskwright.core.beliefs import Beliefs
from maskwright.core.persist import load_census, load_grouping
from maskwright.core.policy import Policy
from maskwright.core.release import Release
from maskwright.core.settings import nearest
from maskwright.errors import InputError, UsageError
from maskwright.resolve import method_of, models_of
from maskwright.store import PRIVATE
from maskwright.verify import REFERENCE, read_json, reference_from

# What each of them knows is explained in docs/threat-model.md.
ADVERSARIES: dict[str, Adversary] = {
    "neighbour": Adversary("neighbour"),
    "journalist": Adversary("journalist"),
    "knows-method": Adversary("knows-method", knows_method=True),
    "insider": Adversary("insider", knows_method=True, facts=3),
}

# Attacks that reason about the method: nothing for somebody who does not know it.
BY_METHOD = frozenset({"minimality"})


def adversary_named(name: str, facts: int | None = None) -> Adversary:
    """A preset, with another number of facts if wanted."""
    if name not in ADVERSARIES:
        raise UsageError(f"there is no adversary {name!r}; {nearest(name, ADVERSARIES)}")
    preset = ADVERSARIES[name]
    return preset if facts is None else Adversary(preset.name, preset.knows_method, facts)


def attack_target(target: Target, attacks: Sequence[Attack | str], adversary: Adversary) -> list[Beliefs]:
    """Every attack that applies and that this adversary knows enough for, the worst belief first."""
    chosen = [_built(a) for a in attacks]
    able = [a for a in chosen if adversary.knows_method or a.name not in BY_METHOD]
    found = [a.run(target, adversary) for a in able if a.suits(adversary) and a.applies(target)]
    return sorted(found, key=lambda b: (ATTACKS[b.attack].about == "ranges", -b.worst.upper))


def exceeding(found: Sequence[Beliefs], bound: Fraction | None) -> list[Beliefs]:
    """The attacks that lead to more than a stated bound. A belief in a range of values is none in a value."""
    if bound is None:
        return []
    return [b for b in found if ATTACKS[b.attack].about != "ranges" and b.worst.upper > bound]


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
            found.append(Path(text[1:]).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as problem:
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
    if not (private / "state.json").is_file():
        raise InputError(
            f"{str(release)!r} has no private/state.json: only a release that was made with --keep-private all "
            "can be attacked later"
        )
    policy = Policy.load(private / "policy.yaml")
    _, context = reference_from(read_json(private / REFERENCE))
    try:
        grouping = load_grouping(private)
        census = load_census(private, grouping.summary.attributes)
    except (OSError, ValueError, KeyError):
        raise InputError(f"{str(private)!r} does not hold what was written there") from None
    attributes = grouping.summary.attributes
    levels = {
        h.attribute: sorted({h.level_of(name) for name in allowed})
        for h in attributes
        if (allowed := policy.columns[h.attribute].levels) is not None
    }
    return Target(
        grouping, models_of(policy), method_of(policy), context, census, policy.recoding.exact,
        weights={h.attribute: policy.columns[h.attribute].weight for h in attributes}, levels=levels,
    )  # fmt: skip
