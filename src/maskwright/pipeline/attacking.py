"""Be the adversary: run attacks on a release that is in memory or on disk."""

from __future__ import annotations

import csv
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from maskwright.attacks import ATTACKS, WITHOUT_VALUES
from maskwright.domain.adversary import MOST_FACTS, Adversary, Attack, PassingBelief, StableRows, Target
from maskwright.domain.beliefs import NOT_COMPUTED, Belief, Beliefs
from maskwright.domain.exact import short_repr, to_fraction
from maskwright.domain.method import Part, Task
from maskwright.domain.projection import context_for, models_about
from maskwright.domain.promise import Design
from maskwright.domain.registry import is_outside, register_class
from maskwright.domain.release import Release
from maskwright.domain.settings import did_you_mean
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.errors import InputError, MaskwrightError, UsageError
from maskwright.folder.saved_state import load_census, load_grouping, part_folder
from maskwright.folder.store import MALFORMED, MANIFEST, PRIVATE, PUBLIC, read_json, read_object
from maskwright.kernels.randomness import random_generator, secret_key
from maskwright.pipeline.marginal_counts import with_marginals
from maskwright.pipeline.sequence import kept_place
from maskwright.policy.binding import allowed_levels, design_of, flagged_of, method_of, models_of
from maskwright.policy.policy import Policy
from maskwright.policy.yaml_text import MAX_BYTES
from maskwright.runtime.events import Progress
from maskwright.verification.verify import REFERENCE, reference_from

# what reading a file raises that somebody changed: JSON, numbers, arrays in a zip file
DAMAGED = (*MALFORMED, OSError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)

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
    target: Target | Sequence[Target],
    attacks: Sequence[Attack | str],
    adversary: Adversary,
    progress: Progress | None = None,
) -> list[Beliefs]:
    """Every attack that applies to a release (or to several about the same people) and that this adversary knows
    enough for; the worst belief first."""
    progress = progress or Progress()
    releases = [target] if isinstance(target, Target) else target
    tables = [table for release in releases for table in release.tables]
    if not any(table.grouping.classes.sensitive for table in tables):
        attacks = [a for a in attacks if not isinstance(a, str) or a in WITHOUT_VALUES or a not in ATTACKS]
    able = [a for a in map(_built, attacks) if a.suits(adversary)]
    if all(table.design is not None and table.design.linked for table in tables):
        able = [a for a in able if not a.within_links]
    apart = [a for a in able if a.about == "values" and _takes_apart(a, tables)]
    found = []
    for i, a in enumerate(able):
        progress.share(i / len(able), a.name)
        belief = (a not in apart and a.over(tables, adversary)) or _not_computed(
            a, tables, adversary, a in apart
        )
        if belief:
            found.append(belief)
    return sorted(found, key=lambda b: (ATTACKS[b.attack].about == "ranges", -b.worst.upper))


LINKED = "a pseudonym links the visits of a person, and this attack takes them apart"


def _takes_apart(attack: Attack, tables: Sequence[Target]) -> bool:
    """Whether an attack concerns a release that links visits, which it knows nothing of."""
    linked = [t for t in tables if t.design is not None and t.design.linked]
    return any(attack.applies(t) and not attack.sees_links(t) for t in linked)


def _not_computed(
    attack: Attack, tables: Sequence[Target], adversary: Adversary, apart: bool = False
) -> Beliefs | None:
    """An attack that concerns a release and cannot say anything about it; what is not computed counts as 1."""
    reason = LINKED if apart else next((why for table in tables if (why := attack.unable(table))), "")
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
    """Several releases about overlapping people; their tables are named by release."""
    result = []
    for i, release in enumerate(releases):
        named = [replace(t, name=f"release {i + 1}: {t.name}", beside=()) for t in target_of(release).tables]
        result.append(replace(named[0], beside=tuple(named[1:]), stable=stable_rows(release, named[0])))
    return result


def stable_rows(release: Release | str | Path, target: Target) -> StableRows | None:
    """The rows of a release by its stable pseudonyms, read from the published table; None: it has none."""
    in_memory = isinstance(release, Release)
    policy = (
        release.policy
        if isinstance(release, Release)
        else Policy.load(Path(release) / PRIVATE / "policy.yaml")
    )
    columns = [n for n in policy.pseudonyms if n in policy.columns and policy.columns[n].stable]
    if not columns:
        return None
    source: Any = release.table if isinstance(release, Release) else None
    reading = Reading()
    if not in_memory or isinstance(source, Path):
        folder = source.parent if isinstance(source, Path) else Path(str(release)) / PUBLIC
        listed = read_json(folder / MANIFEST)["tables"][0]
        source, reading = folder / listed["file"], Reading.back(listed["format"], bool(listed.get("escaped")))
    by, names = policy.quasi_identifiers, list(target.grouping.summary.sensitive)
    engine = open_engine()
    try:
        table = engine.open(source, reading)
        sets = [s for s in target.context.sets if set(s.bits) & set(names)]
        table = engine.unfold(table, sets) if sets else table
        found = engine.recount(table, [*by, columns[0]], names)
    finally:
        engine.close()
    shown: dict[str, list[tuple[str | None, ...]]] = {}
    for (*labels, token), rows in zip(found.labels, found.rows.tolist(), strict=True):
        if token is not None:
            shown.setdefault(token, []).extend([tuple(labels)] * rows)
    values: dict[str, dict[str, set[str]]] = {name: {} for name in names}
    for name in names:
        for place, value, _ in found.entries(name):
            token = found.labels[place][-1]
            if token is not None and value is not None:
                values[name].setdefault(token, set()).add(value)
    ordered = {
        token: tuple(sorted(labels, key=lambda row: [(x is None, x or "") for x in row]))
        for token, labels in shown.items()
    }
    return StableRows(
        ordered, {n: {t: frozenset(v) for t, v in by_token.items()} for n, by_token in values.items()}
    )


MOST_EARLIER = 5  # releases, the latest, that a new one is attacked together with


@dataclass(frozen=True)
class ComposedBeliefs:
    """What a release tells together with earlier ones.

    Attributes:
        beliefs: what is believed by whoever has all of them, and
        attacked: the folders of the earlier ones that were at hand.
        missing: how many were not.
    """

    beliefs: tuple[Beliefs, ...] = ()
    attacked: tuple[Path, ...] = ()
    missing: int = 0


def attack_with_earlier(target: Target, folders: Sequence[Path], fingerprint: str) -> ComposedBeliefs:
    """Attack a release together with earlier ones of the same table, as far as they are still in their folders."""
    tables = [replace(t, name=f"this release: {t.name}", beside=()) for t in target.tables]
    attacked, missing = list[Path](), 0
    for folder in folders:
        if len(attacked) == MOST_EARLIER or not _is_of(folder, fingerprint):
            missing += 1
            continue
        try:
            earlier = target_of(folder)
        except MaskwrightError:
            missing += 1
            continue
        attacked.append(folder)
        name = f"earlier release {len(attacked)}"
        tables += [replace(t, name=f"{name}: {t.name}", beside=()) for t in earlier.tables]
    if not attacked:
        return ComposedBeliefs(missing=missing)
    whole = replace(tables[0], beside=tuple(tables[1:]))
    try:
        found = attack_target(whole, ["intersection"], ADVERSARIES["knows-method"])
    except UsageError as problem:
        unknown = Belief(Fraction(0), Fraction(1), "anybody", f"earlier releases: {problem}")
        return ComposedBeliefs(
            (Beliefs("intersection", "knows-method", NOT_COMPUTED, unknown),), tuple(attacked), missing
        )
    from maskwright.attacks.minimality import chosen_twice  # for the few runs with earlier releases

    told, twice = {"earlier_releases": len(attacked)}, chosen_twice(tables)
    several = [_with_choices(b, tables, twice) if twice else b for b in found]
    beliefs = tuple(
        replace(b, measures={**b.measures, **told})
        for b in several
        if b.kind == NOT_COMPUTED or b.measures["in_several_tables"]  # otherwise nothing is gained
    )
    return ComposedBeliefs(beliefs, tuple(attacked), missing)


def _with_choices(found: Beliefs, tables: Sequence[Target], attributes: Sequence[str]) -> Beliefs:
    """What several releases show, where their methods looked at values: with what that tells together, where it can
    be counted; otherwise it counts as 1."""
    if found.kind == NOT_COMPUTED:
        return found
    from maskwright.attacks.minimality import Minimality, with_choices

    joint = Minimality().told_together(tables, ADVERSARIES["knows-method"])
    if joint is not None:
        worse = with_choices(found, joint)
        measures = {**found.measures, "choices of methods": {"kind": joint.kind, **joint.measures}}
        return replace(found, kind=worse.kind, worst=worse.worst, measures=measures)
    why = (
        f"{found.worst.why}; what the choices of the methods tell together about {' and '.join(attributes)} is NOT "
        "COMPUTED, and counts as 1"
    )
    return replace(found, kind="estimated", worst=replace(found.worst, why=why, interval=(0.0, 1.0)))


def _is_of(folder: Path, fingerprint: str) -> bool:
    """Whether a folder holds a release of the input with this fingerprint."""
    said = read_object(folder / PRIVATE / MANIFEST).get("input")
    return isinstance(said, dict) and said.get("fingerprint") == fingerprint


def _built(attack: Attack | str) -> Attack:
    if isinstance(attack, Attack):
        if is_outside(attack):
            register_class(type(attack))
        return attack
    if not isinstance(attack, str) or attack not in ATTACKS:
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


def listed_people(path: Path, option: str) -> list[dict[str, str]]:
    """People one by one, from a CSV file with a header that an option of the command names."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.DictReader(file, strict=True)
            rows = [{str(name): value or "" for name, value in row.items()} for row in lines]
    except (OSError, ValueError, csv.Error) as problem:
        reason = getattr(problem, "strerror", None) or f"it is not a CSV file in UTF-8 ({problem})"
        raise InputError(f"{option}: {str(path)!r} cannot be read: {reason}") from None
    if not rows:
        raise InputError(f"{option}: {str(path)!r} names nobody")
    return rows


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


def kept_parts(private: Path) -> list[Part]:
    """The tables of a release as its private/ folder keeps them, without the published tables themselves."""
    policy = Policy.load(private / "policy.yaml")
    stored = read_json(private / REFERENCE)
    _, context = reference_from(stored)
    models, method = models_of(policy, context.sets), method_of(policy)
    context = replace(context, flagged=flagged_of(policy, context.sets))
    names = stored.get("parts", ["data"])
    found = []
    for name in names:
        grouping = load_grouping(part_folder(private, name, len(names)))
        attributes, mine = grouping.summary.attributes, tuple(grouping.summary.sensitive)
        about = models_about(models, mine)
        task = Task(  # that was done: nothing is drawn any more
            grouping.summary, [m for m in about if m.use == "search"], context_for(context, mine),
            random_generator(secret_key(), "nothing"),
            {h.attribute: policy.columns[h.attribute].weight for h in attributes}, allowed_levels(policy, attributes),
            census=load_census(private, attributes), sets=context.sets,
        )  # fmt: skip
        found.append(Part(name, task, method.for_one_table(), grouping, about))
    return with_marginals(found, policy)


def _kept_target(private: Path) -> Target:
    policy = Policy.load(private / "policy.yaml")
    manifest = read_json(private / MANIFEST)
    design = design_of(policy, method_of(policy), Design.facts(manifest.get("run", {})))
    passing = [PassingBelief.of(stored) for stored in manifest.get("passing", [])]
    targets = []
    for part in kept_parts(private):
        mine = tuple(part.grouping.summary.sensitive)
        joined = policy.recoding.blocks(mine, part.task.sets)
        known = tuple(p for p in passing if p.attribute in mine)
        targets.append(Target.of(part, policy.recoding.exact, joined, known, design))
    perturbed = manifest.get("perturbed", {})
    return replace(targets[0], beside=tuple(targets[1:]), perturbed=perturbed, place=kept_place(private))


def published_parts(folder: Path) -> tuple[Part, ...]:
    """Each published table of a release that kept its private/ part; `table` is its file."""
    kept = kept_parts(folder / PRIVATE)
    public = read_json(folder / PUBLIC / MANIFEST)
    found = []
    for table in public["tables"]:
        part = next((p for p in kept if p.name == table.get("part")), kept[0])
        found.append(
            Part(
                Path(table["file"]).stem, part.task, part.method, part.grouping, part.models, part.grouping.classes,
                columns=tuple(map(str, table["columns"])), recoding=str(public["recoding"]),
                table=folder / PUBLIC / table["file"],
            )
        )  # fmt: skip
    return tuple(found)
