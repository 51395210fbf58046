"""From the worlds in which a method publishes the same again to findings: the worst belief, and the largest distance.

Where beliefs were drawn, what is reported as the worst lies between two ends that hold for everybody at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.attacks._minimality.refusals import part_in_words, raw_classes
from maskwright.attacks._minimality.replay import Replayed, known_only_in_part
from maskwright.attacks._shared.findings import Finding, belief_limit
from maskwright.attacks._shared.findings import Kind as Kinds
from maskwright.attacks._shared.secrets import NOTHING, Secrets, in_words, models_about, reference_of
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import ValueCounts
from maskwright.domain.distances import Kind, ValueTree, class_distances
from maskwright.domain.exact import number_text
from maskwright.domain.model import Model
from maskwright.domain.sensitive import SensitiveModel, tree_of
from maskwright.worlds.sampling.belief_intervals import KINDS, RISK, BeliefIntervals, belief_intervals
from maskwright.worlds.sampling.world_sampler import Bools


def believed_in(target: Target, secrets: Secrets, replayed: Replayed) -> BeliefIntervals:
    """Beliefs in the secrets of one column, with their intervals."""
    return belief_intervals(replayed.tally, inside_of(target, secrets, replayed))


def inside_of(target: Target, secrets: Secrets, replayed: Replayed) -> Bools:
    """Whether an item makes a secret true, item × secret."""
    values = target.grouping.classes.sensitive[secrets.attribute].values
    number = {value: i + 1 for i, value in enumerate(values)}
    codes = replayed.places.codes[secrets.attribute]
    columns = [np.isin(codes, [number[v] for v in members if v in number]) for members in secrets.sets]
    inside = np.stack(columns, axis=1) if columns else np.zeros((len(codes), 0), dtype=bool)
    return inside[: replayed.tally.space.n_items]


def replay_findings(
    target: Target, secrets: Sequence[Secrets], replayed: Replayed
) -> tuple[list[Finding], dict[str, Any]]:
    """The worst belief in each column, and all that is to be said besides."""
    findings = [replay_finding(target, s, replayed) for s in secrets]
    measures: dict[str, Any] = {"looked at": replayed.tally.report()}
    measures["vulnerable people, with confidence"] = {
        s.attribute: more for s, (_, more) in zip(secrets, findings, strict=True) if more
    }
    assumption = known_only_in_part(target)
    if assumption:
        measures["assumption"] = assumption
    return [f for f, _ in findings], measures | posterior_distances(target, secrets, replayed)


def replay_finding(target: Target, secrets: Secrets, replayed: Replayed) -> tuple[Finding, dict[str, Any]]:
    """The worst belief, and how many people are above the policy's bound: surely, and possibly."""
    found, bound = believed_in(target, secrets, replayed), belief_limit(target, secrets)
    worst = found.worst()
    if worst is None:
        return Finding(NOTHING, "exact", 0), {}
    sizes = replayed.tally.sizes
    unit, secret = worst
    low, high = found.range_of_worst()
    matters = found.high.max(axis=1, initial=0.0) >= low - 1e-12
    kind = KINDS[int(found.kind[matters].max(initial=0))]
    if kind == "bounded" and replayed.tally.space.n_blocks > 1:
        unit, secret = _loosest(found)
    above = np.array([_exceeds(found, u, bound) for u in range(len(sizes))], dtype=bool)
    interval = None if kind == "exact" else (low, high)
    after = found.exact(unit, secret)
    if kind == "bounded":
        after = max(after, Fraction(high))
    belief = Belief(
        secrets.before(secret + 1), after, _whom(target, replayed, unit) if kind != "bounded" else "anybody",
        _why(target, secrets, replayed, found, (unit, secret)), interval,
    )  # fmt: skip
    more = {
        "surely": int(sizes[(found.low > float(bound) + 1e-12).any(axis=1)].sum()),
        "possibly": int(sizes[(found.high > float(bound) + 1e-12).any(axis=1)].sum()),
    }
    trust: Kinds = kind if replayed.places_known or kind != "exact" else "bounded"
    return Finding(belief, trust, int(sizes[above].sum())), {} if kind == "exact" else more


def _loosest(found: BeliefIntervals) -> tuple[int, int]:
    """The belief of which least is known, for the words."""
    unit, secret = np.unravel_index(int(found.high.argmax()), found.high.shape)
    return int(unit), int(secret)


def _exceeds(found: BeliefIntervals, unit: int, bound: Fraction) -> bool:
    row = found.estimate[unit]
    if not len(row) or row.max() < float(bound) - 1e-9:
        return False
    return any(found.exact(unit, int(s)) > bound for s in np.flatnonzero(row >= float(bound) - 1e-9))


def _whom(target: Target, replayed: Replayed, unit: int) -> str:
    """People of one tuple, in words; as the raw classes of the release name them."""
    raw = raw_classes(target.grouping, starred=True)
    tuple_ = replayed.places.tuples_of_units[unit]
    some_dropped = replayed.atoms is None and raw.class_of[tuple_] < 0
    if not replayed.places_known or some_dropped:
        group = int(replayed.places.group[np.flatnonzero(replayed.places.unit == unit)[0]])
        size = int(target.grouping.classes.sizes[group])
        return f"some of the {size} people with {in_words(target.grouping, group)}"
    if replayed.atoms is not None:
        return part_in_words(target, replayed.atoms, unit)
    return part_in_words(target, raw, int(raw.class_of[tuple_]))


def _why(
    target: Target, secrets: Secrets, replayed: Replayed, found: BeliefIntervals, worst: tuple[int, int]
) -> str:
    tally, places = replayed.tally, replayed.places
    unit, secret = worst
    block = int(tally.block_of_unit[unit])
    group = int(places.group[np.flatnonzero(places.unit == unit)[0]])
    what = "these people together" if tally.space.n_blocks > 1 else "the same groups"
    start = f"published with {in_words(target.grouping, group)}; but the method publishes {what}"
    name, looked, kept = secrets.name(secret + 1), int(tally.looked[block]), int(tally.kept[block])
    kind = KINDS[int(found.kind[unit])]
    if kind == "exact":
        share = number_text(Fraction(kept, looked))
        return f"{start} only in {share} of all worlds, and in this share of those they have {name}"
    sure = f"{1 - RISK:.0%} confidence for everybody at once"
    if kind == "sampled":
        return f"{start} in {kept} of {looked} worlds drawn, and in this share of those they have {name} ({sure})"
    if kind == "estimated":
        return (
            f"{start} in {kept} of {looked} worlds drawn, and in this share of those that Markov chains visited they "
            f"have {name} (estimated: the chains may have missed some)"
        )
    return f"{start} in {kept} of {looked} worlds drawn: what it tells could not be narrowed down"


def close_models(models: Sequence[Model]) -> list[SensitiveModel]:
    """t-closeness and its kin: they bound a distance from the table, so that is what the attack measures, too."""
    return [m for m in models if isinstance(m, SensitiveModel) and hasattr(m, "t") and hasattr(m, "distance")]


def posterior_distances(
    target: Target, secrets: Sequence[Secrets], replayed: Replayed | None = None
) -> dict[str, Any]:
    """The largest distance between belief about a person and the table, for each model of distances.

    Without a replay beliefs are what the groups show. Where worlds were drawn `at most` is a bound: a distribution
    changes by no more than the share of worlds that is not kept.
    """
    result: dict[str, dict[str, Any]] = {}
    for s in secrets:
        about = models_about(close_models(target.models), s.attribute, len(secrets) == 1)
        for model in close_models(about):
            classes = target.grouping.classes
            tree = tree_of(model, model.distance, classes, target.context)  # type: ignore[attr-defined]
            kind: Kind = model.distance  # type: ignore[attr-defined]
            result[f"{model.name} of {s.attribute}"] = {
                "distance": kind, "t": model.t,  # type: ignore[attr-defined]
                **_largest(target, s.attribute, kind, tree, replayed),
            }  # fmt: skip
    return {"posterior distance": result} if result else {}


def _largest(
    target: Target, attribute: str, kind: Kind, tree: ValueTree | None, replayed: Replayed | None
) -> dict[str, Any]:
    published, (whole, _) = target.grouping.classes.sensitive[attribute], reference_of(target, attribute)
    shown = class_distances(published, whole, kind, tree)
    top = shown.argmax()
    nothing = Fraction(0)
    if replayed is None or top is None:
        return {"largest": nothing if top is None else shown[top], "kind": "exact"}
    tally, places = replayed.tally, replayed.places
    unit, item = np.nonzero(tally.held)
    codes = places.codes[attribute][item]
    posterior = ValueCounts.collect(
        published.values, tally.n_units, unit, codes, tally.held[unit, item], published.ordered
    )
    after = class_distances(posterior, whole, kind, tree)
    if tally.listed.all():
        worst = after.argmax()
        return {"largest": nothing if worst is None else after[worst], "kind": "exact"}
    floats = np.array([float(x) for x in after])
    least = belief_intervals(tally, np.zeros((tally.space.n_items, 0), dtype=bool)).least
    before = np.zeros(tally.n_units)
    np.maximum.at(before, places.unit, np.array([float(x) for x in shown])[places.group])
    ceiling = np.where(tally.listed[tally.block_of_unit], floats, before + 1 - least[tally.block_of_unit])
    estimated = np.where(tally.worlds[tally.block_of_unit] > 0, np.minimum(floats, ceiling), ceiling)
    return {
        "largest": min(1.0, float(estimated.max(initial=0))),
        "at most": min(1.0, float(ceiling.max(initial=0))),
        "kind": "estimated" if tally.walked.any() else "sampled",
    }
