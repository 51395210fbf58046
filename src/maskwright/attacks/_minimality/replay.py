"""Replay: run the method again, on what it could have been given. Whoever knows the method can do the same.

Without the models of sensitive values it publishes what the quasi-identifiers alone decide. If that is what was
published, values decided nothing. Otherwise it is run on possible worlds: those in which it publishes the same groups
are the worlds that an adversary is left with [Cormode et al. 2010]; `world_sampler` lists or draws them.

The findings from these worlds are the worst belief and the largest distance (`replay_findings`). Where beliefs were
drawn, what is reported as the worst lies between two ends that hold for everybody at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from maskwright.attacks._minimality.fingerprints import group_fingerprints
from maskwright.attacks._minimality.refusals import (
    RefusedParts,
    finest_levels,
    group_of_tuples,
    looked_at_values,
    part_in_words,
    raw_classes,
)
from maskwright.attacks._minimality.world_tables import PublishedPeople
from maskwright.attacks._shared.findings import Finding, belief_limit
from maskwright.attacks._shared.findings import Kind as Kinds
from maskwright.attacks._shared.secrets import NOTHING, Secrets, in_words, models_about, reference_of
from maskwright.domain.adversary import Target, drops_failing
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.distances import Kind, ValueTree, class_distances
from maskwright.domain.exact import number_text, numbered_columns, sorted_distinct
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Method, Rival, Task
from maskwright.domain.model import Context, Model
from maskwright.domain.sensitive import SensitiveModel, tree_of
from maskwright.domain.summary import Summary
from maskwright.errors import PolicyNotMet
from maskwright.worlds.sampling.belief_intervals import KINDS, RISK, BeliefIntervals, belief_intervals
from maskwright.worlds.sampling.choices import Choices
from maskwright.worlds.sampling.possible_worlds import WorldSpace, WorldTables
from maskwright.worlds.sampling.world_sampler import CELLS, Bools, Keep, Tally, WorldBudget, explore_worlds

LISTED_ROWS = 16  # of a small release, of which every world is looked at
LISTED = 40_000_000  # numbers of people, for all worlds, units and items
CHUNK = 50_000  # worlds that are looked at together
REMEMBERED = 6  # classes of a rival that failed before, and are looked at first
MORE = 4  # times the seconds that drawing worlds may take: for an exact answer


def can_replay(target: Target) -> bool:
    """Whether all is known that the method was given, it was run to its end, and people were not grouped first."""
    if target.design is not None and target.design.own and target.grouping.levels is None:
        return False
    known = target.method is not None and target.weights is not None and target.levels is not None
    return known and target.grouping.trace.complete


def can_draw(target: Target) -> bool:
    """Whether possible worlds can be made, and are not too large to be counted."""
    grouping, summary = target.grouping, target.grouping.summary
    if (
        summary.shared is not None
        or grouping.changes is not None
        or not np.array_equal(summary.rows, summary.sizes)
    ):
        return False
    several = len(summary.sensitive) > 1
    if several and (summary.joint is None or target.exact):
        return False  # values that belong together are not known, or were shuffled one column at a time
    items = max((len(vc.values) + 1 for vc in summary.sensitive.values()), default=1)
    if several and summary.joint is not None:  # an item is a combination of values
        items = numbered_columns(summary.joint.values)[0].shape[1]
    allocation = grouping.allocation
    units = len(sorted_distinct(allocation.tuples * (grouping.classes.n + 2) + allocation.groups + 1))
    return units * items <= CELLS


def same_without_values(target: Target) -> bool:
    """Whether the same groups would have been published if the search had not looked at sensitive values."""
    blind = [m for m in target.models if m.use == "search" and m.about != "sensitive"]
    found = Again(target).run(target.grouping.summary, blind)
    return found is not None and _same(found, target.grouping)


def _same(found: Grouping, published: Grouping) -> bool:
    return found.levels == published.levels and np.array_equal(
        np.sort(group_fingerprints(found)), np.sort(group_fingerprints(published))
    )


class Again:
    """The method of a release, run again and again; `chance` says whether it ever used its random numbers."""

    def __init__(self, target: Target) -> None:
        self.target, self.chance = target, False
        self.rng = np.random.default_rng(1)  # the runs are no secret, and a report should be repeatable

    def run(
        self, summary: Summary, models: Sequence[Model], choices: Choices | None = None
    ) -> Grouping | None:
        """The grouping that the method makes of a table; None: nothing. `choices`: in place of random ones."""
        method, task = self._task(summary, models)
        if choices is not None:
            task = replace(task, rng=cast(np.random.Generator, choices))  # it answers what methods ask of one
        before = self.rng.bit_generator.state
        try:
            return method.group(task)
        except PolicyNotMet:
            return None
        finally:
            self.chance |= self.rng.bit_generator.state != before

    def rivals(self) -> list[Rival] | None:
        """The groupings that the method would rather have published, if they are known without running it."""
        grouping = self.target.grouping
        method, task = self._task(grouping.summary, [m for m in self.target.models if m.use == "search"])
        return method.rivals(task, grouping)

    def _task(self, summary: Summary, models: Sequence[Model]) -> tuple[Method, Task]:
        target = self.target
        if target.method is None or target.weights is None or target.levels is None:
            raise ValueError("the method cannot be run again: not all that it was given is known")
        rng, levels = self.rng, target.levels
        return target.method, Task(
            summary, models, target.context, rng, target.weights, levels, census=target.census
        )


def replay_method(target: Target, budget: WorldBudget, keep: Keep | None = None) -> Replayed:
    """The worlds in which the method publishes the same groups, listed or drawn."""
    again = Again(target)
    found = again.rivals()
    if found is not None:
        return against_rivals(target, found, budget, keep)
    places = PublishedPeople.of(target)
    search = [m for m in target.models if m.use == "search"]
    published = group_fingerprints(target.grouping)
    blocks = blocks_of(target)
    block = np.zeros(len(places.groups), dtype=np.int64) if blocks is None else blocks[places.groups]
    sorted_once = np.sort(published)

    def _judge(world: Ints) -> Bools:
        found = again.run(places.summary(world), search)
        if found is None or found.levels != target.grouping.levels:
            return np.zeros(space.n_blocks, dtype=bool)
        prints = group_fingerprints(found)
        if blocks is not None:
            absent = ~np.isin(published[places.groups], prints)
            return np.asarray(np.bincount(block, absent, space.n_blocks) == 0)
        return np.array([np.array_equal(np.sort(prints), sorted_once)])

    number = np.searchsorted(places.groups, places.group)
    space = WorldSpace(number, places.items, block)
    settled = decided_by_tuples(target)
    rng = np.random.default_rng(0)
    return Replayed(
        places,
        explore_worlds(
            space,
            places.unit,
            places.n_units,
            _judge,
            budget,
            rng,
            lambda: again.chance and not settled,
            keep,
        ),
    )


def against_rivals(
    target: Target, rivals: Sequence[Rival], budget: WorldBudget, keep: Keep | None = None
) -> Replayed:
    """The worlds in which every rival fails. People whom no rival tells apart are alike, and are counted together."""
    context, looked = target.context, looked_at_values(target.models)
    kinds = np.stack([group_of_tuples(target.grouping), *(r.class_of for r in rivals)])
    places, atom_of = PublishedPeople.of(target).told_apart_by(kinds)
    # the dropped ones keep their values; each is an atom of its own kind, behind those that are published
    kind_of, kinds_dropped = places.dropped_kinds(kinds)
    published, n_items = places.n_units, len(next(iter(places.codes.values())))
    n = published + kinds_dropped.shape[1]
    fixed = np.bincount((published + kind_of) * n_items + places.dropped[1], minlength=n * n_items)
    parts = []
    for i, rival in enumerate(rivals):
        of_atom = np.concatenate([np.full(published, -1), kinds_dropped[i + 1]])
        of_atom[atom_of[atom_of >= 0]] = rival.class_of[atom_of >= 0]
        numbers, dense = np.unique(of_atom[of_atom >= 0], return_inverse=True)
        of_atom[of_atom >= 0] = dense.reshape(-1)
        parts.append((of_atom, len(numbers)))

    key = places.unit * n_items
    tester = _RivalTester(parts, n_items, lambda *held: _classes(*held), looked, context)

    def _judge(world: Ints) -> Bools:
        return np.array([tester.all_fail(np.bincount(key + world, minlength=n * n_items) + fixed)])

    def _classes(owner: Ints, item: Ints, amount: Ints, m: int) -> Classes:
        sizes = np.bincount(owner, amount, m).astype(np.int64)
        sensitive = {
            name: ValueCounts.collect(vc.values, m, owner, places.codes[name][item], amount, vc.ordered)
            for name, vc in target.grouping.summary.sensitive.items()
        }
        return Classes(sizes, sizes, sensitive)

    number = np.searchsorted(places.groups, places.group)
    space = WorldSpace(number, places.items, np.zeros(len(places.groups), dtype=np.int64))
    listed = None
    if keep is None and n == published:  # nobody was dropped
        again = _judge(places.items)
        tests = _RivalTests(looked, context, _classes, budget)
        listed = tests.tally(space, places.unit, [(o[:published], m) for o, m in parts], again)
    tally = listed or explore_worlds(
        space, places.unit, published, _judge, budget, np.random.default_rng(0), lambda: False, keep
    )
    levels = finest_levels(target.grouping, [r.levels for r in rivals])
    return Replayed(
        places, tally, RefusedParts.of(target.grouping, atom_of, levels, ""), [r.levels for r in rivals]
    )


class _RivalTester:
    """Whether every rival fails in a world. What is remembered of earlier worlds only saves time.

    Classes that failed in a world before are looked at first (models that look at each class alone fail there or not,
    whatever the others hold), and before them the rival that passed most often.
    """

    def __init__(
        self, rivals: Sequence[tuple[Ints, int]], n_items: int, classes: Callable[..., Classes],
        looked: Sequence[Model], context: Context,
    ) -> None:  # fmt: skip
        self.rivals, self.n_items, self.classes = rivals, n_items, classes
        self.looked, self.context = looked, context
        self.local = all(m.is_local() for m in looked)
        self.passed = np.zeros(len(rivals), dtype=np.int64)
        self.failed: list[dict[int, Ints]] = [
            {} for _ in rivals
        ]  # classes that did, the latest last: their atoms

    def all_fail(self, counts: Ints) -> bool:
        """Whether each of them has a failing class, by how often each atom holds each item."""
        there = np.flatnonzero(counts)
        world = (*np.divmod(there, self.n_items), counts[there])
        order = np.argsort(-self.passed, kind="stable").tolist()
        hot = order[:1] if order and self.passed[order[0]] else []
        if hot and self._passes(hot[0], *world):
            return False
        return not any(
            self._passes(i, *world)
            for i in self._unexplained(order[len(hot) :], counts.reshape(-1, self.n_items))
        )

    def _unexplained(self, rivals: list[int], held: Ints) -> list[int]:
        """The rivals of which no class fails now that failed before."""
        known = [(i, atoms) for i in rivals for atoms in self.failed[i].values()]
        if not known:
            return rivals
        number = np.repeat(np.arange(len(known)), [len(atoms) for _, atoms in known])
        entries = held[np.concatenate([atoms for _, atoms in known])]
        entry, item = np.nonzero(entries)
        failing = self._failing(number[entry], item, entries[entry, item], len(known))
        explained = {known[place][0] for place in np.flatnonzero(failing).tolist()}
        return [i for i in rivals if i not in explained]

    def _passes(self, rival: int, atom: Ints, item: Ints, amount: Ints) -> bool:
        of_atom, m = self.rivals[rival]
        owner = of_atom[atom]
        kept = owner >= 0
        failing = self._failing(owner[kept], item[kept], amount[kept], m)
        if not failing.any():
            self.passed[rival] += 1
            return True
        if self.local:
            known, found = self.failed[rival], int(failing.argmax())
            known[found] = np.flatnonzero(of_atom == found)
            if len(known) > REMEMBERED:
                del known[next(iter(known))]
        return False

    def _failing(self, owner: Ints, item: Ints, amount: Ints, m: int) -> Bools:
        classes = self.classes(owner, item, amount, m)
        failing = np.zeros(m, dtype=bool)
        for model in self.looked:
            failing |= ~model.passing(classes, self.context)
        return failing


class _RivalTests:
    """Tests of rivals on all worlds of a small release at once: what classes hold the same is tested once."""

    def __init__(
        self, looked: Sequence[Model], context: Context, classes: Callable[..., Classes], budget: WorldBudget
    ) -> None:
        self.local = [m for m in looked if m.is_local()]
        self.whole = [m for m in looked if not m.is_local()]
        self.context, self.classes, self.time = context, classes, budget.time(MORE)
        self.known: dict[bytes, bool] = {}

    def tally(
        self, space: WorldSpace, unit: Ints, rivals: list[tuple[Ints, int]], again: Bools
    ) -> Tally | None:
        """The worlds in which every rival fails; None: there are too many, or it takes too long."""
        n_units = int(unit.max(initial=-1)) + 1
        worlds = space.tables(unit, n_units, LISTED) if len(space.items) <= LISTED_ROWS else None
        if worlds is None or not worlds.can_be_coded:
            return None
        kept = np.ones(len(worlds.weights), dtype=bool)
        for class_of, n in rivals:
            for chunk in np.array_split(np.flatnonzero(kept), 1 + int(kept.sum()) // CHUNK):
                passes = self._passing(worlds, chunk, class_of, n)
                if passes is None:
                    return None
                kept[chunk] = ~passes
        looked, one = int(worlds.weights.sum()), np.ones(1, dtype=np.int64)
        left = one * int(worlds.weights[kept].sum())
        return Tally(
            space, unit, n_units, one * looked, left, worlds.held(kept), left, one.astype(bool), ~one.astype(bool),
            again, False, runs=len(self.known), seconds=self.time.spent,
        )  # fmt: skip

    def _passing(self, worlds: WorldTables, chunk: Ints, class_of: Ints, n: int) -> Bools | None:
        """In which of these worlds a rival passes every model."""
        codes = worlds.codes(chunk, class_of, n)
        kinds, number = np.unique(codes, return_inverse=True)
        number = number.reshape(codes.shape)
        every = worlds.decoded(kinds)
        passes = np.ones(len(kinds), dtype=bool)
        for model in self.local:
            passes &= model.passing(self._of_counts(every), self.context)
        result: Bools = np.asarray(passes[number].all(axis=1))
        if not self.whole:
            return result
        there = np.flatnonzero(result)
        rows, which = np.unique(np.sort(number[there], axis=1), axis=0, return_inverse=True)
        found = np.ones(len(rows), dtype=bool)
        for i, row in enumerate(rows):
            counts = every[row]
            key = np.sort(kinds[row]).tobytes()
            if key not in self.known:
                if self.time.is_over:
                    return None
                classes = self._of_counts(counts)
                self.known[key] = all(bool(m.passing(classes, self.context).all()) for m in self.whole)
            found[i] = self.known[key]
        result[there] = found[which.reshape(-1)]
        return result

    def _of_counts(self, counts: Ints) -> Classes:
        owner, item = np.nonzero(counts)
        return self.classes(owner, item, counts[owner, item], len(counts))


@dataclass(frozen=True, eq=False)
class Replayed:
    """Places and what was found about them.

    Attributes:
        places, tally: who, and what.
        atoms: units in words, where they are not the raw classes.
        rivals: the levels that would have been published, where they are known.
        places_known: does it follow from the quasi-identifiers which unit somebody is in? If not, beliefs are bounds.
        by_labels: is what a reader sees all that counts, also where several groups have the same labels?
    """

    places: PublishedPeople
    tally: Tally
    atoms: RefusedParts | None = None
    rivals: Sequence[tuple[int, ...]] | None = None
    places_known: bool = True
    by_labels: bool = False


def blocks_of(target: Target) -> Ints | None:
    """The block of each group, where blocks are explained by themselves; None: only all groups together are.

    In methods that cut, where no cut separated equal tuples for good, each group is a block. Groups below a cut that
    was accepted after another one had been refused are one: the refusal is about the values of them all.
    """
    method, grouping = target.method, target.grouping
    if method is None or method.decisions().shape != "cuts" or method.options().get("anatomize"):
        return None
    if not whole_tuples(grouping):
        return None
    together = grouping.trace.together
    return np.arange(len(grouping.classes.sizes)) if together is None else together


def whole_tuples(grouping: Grouping) -> bool:
    """Whether all rows of each tuple lie in one group."""
    allocation = grouping.allocation
    pairs = sorted_distinct(allocation.tuples * (grouping.classes.n + 2) + allocation.groups + 2)
    return len(sorted_distinct(pairs // (grouping.classes.n + 2))) == len(pairs)


def decided_by_tuples(target: Target) -> bool:
    """Whether the method makes the same groups of the same tuples, though it orders their rows at random."""
    method = target.method
    if method is None:
        return False
    return method.decisions().by_tuples


def known_only_in_part(target: Target) -> str | None:
    """The assumption that a replay makes, if any: that the values of people dropped for them are known."""
    grouping = target.grouping
    for_values = drops_failing(target) or grouping.trace.dropped_for_values
    if for_values and grouping.dropped_rows:
        return "the values of the people who were dropped are known"
    return None


def replay_assumption(target: Target) -> str | None:
    """What a replay takes to be known of what is not published, if anything."""
    guarded = any("guards" in m.needs() for m in target.models if m.use == "search")
    return known_only_in_part(target) or (GUARDS_KNOWN if guarded else None)


GUARDS_KNOWN = "it is known which nodes guard somebody with the same quasi-identifiers"


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
    assumption = replay_assumption(target)
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
    if found.high[unit, secret] < 1:
        return f"{start} in {kept} of {looked} worlds drawn: whatever that reveals, not more of them can have {name}"
    return f"{start} in {kept} of {looked} worlds drawn: what it reveals could not be narrowed down"


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
