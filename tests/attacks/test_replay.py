"""Methods run again on possible worlds: every way to look at them against brute force, for all kinds of methods."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from maskwright.attacks._minimality import replay
from maskwright.attacks._minimality.enumeration import every_world
from maskwright.attacks._minimality.replay import Again, believed_in, blocks_of, replay_method
from maskwright.attacks._minimality.world_tables import PublishedPeople
from maskwright.attacks._shared.secrets import secrets_of
from maskwright.attacks.minimality import Minimality
from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.settings import build_registered
from maskwright.domain.summary import Joint, Summary
from maskwright.errors import PolicyNotMet
from maskwright.folder.saved_state import load_grouping, save_grouping
from maskwright.methods import METHODS
from maskwright.worlds.sampling import world_sampler
from maskwright.worlds.sampling.possible_worlds import WorldSpace
from maskwright.worlds.sampling.world_sampler import Tally, WorldBudget
from tests.amounts import crossed
from tests.attacks.test_minimality import MODEL, ROWS, A, B, Row, model
from tests.support import adult, summarise, task_of

PATIENCE = WorldBudget(10_000, 120.0)
KNOWS = Adversary("knows-method", True)
LATTICE = st.sampled_from(["optimal-lattice", "samarati", "incognito"])
OPTIONS = st.sampled_from(
    [{}, {"suppression": "0.3"}, {"suppression": "0.3", "suppressed_rows": "star"}, {"objective": "height"}]
)


# the cut along the first column is refused, that along the second accepted: the refusal is about both of its parts
REFUSED_FIRST = [("1", "x", "q"), ("1", "y", "q"), ("2", "x", "p"), ("2", "y", "p"), ("2", "y", "p")]


# the same in one half of the table, and not in the other
REFUSED_IN_PART = [("1", "x", "q"), ("1", "y", "p"), ("2", "x", "p"), ("2", "y", "q"), ("3", "x", "p"), ("3", "y", "q"),
                   ("4", "y", "q")]  # fmt: skip
FALLBACK: tuple[str, dict[str, Any]] = ("mondrian", {"cut": "strict", "dimensions": "fallback"})


def with_joint(summary: Summary) -> Summary:
    """The joint counts of a single sensitive column."""
    counts = next(iter(summary.sensitive.values()))
    return replace(summary, joint=Joint(counts.owner, counts.codes[None, :], counts.counts))


def publish(rows: list[Row], method: str, models: list[Any], **options: Any) -> Target:
    columns = list(zip(*rows, strict=True))
    summary = with_joint(summarise([A, B], columns[:2], {"s": columns[2]}, {"s": ("p", "q", "r")}))
    task = task_of(summary, models)
    how = build_registered(METHODS, "method", method, options, "here")
    try:
        return Target(how.group(task), models, how, task.context, weights={}, levels={})
    except PolicyNotMet:
        assume(False)
        raise


def print_of(target: Target) -> Any:
    """What was published, without numbers of groups: tuples, values and labels of each."""
    grouping = target.grouping
    groups: dict[int, tuple[Counter[int], Any]] = {}
    for t, g, n in zip(
        grouping.allocation.tuples.tolist(), grouping.allocation.groups.tolist(), grouping.allocation.rows.tolist(),
        strict=True,
    ):  # fmt: skip
        groups.setdefault(g, (Counter(), None))[0][t] += n
    found = []
    for g, (tuples, _) in groups.items():
        values = (
            tuple(sorted(map(str, grouping.classes.sensitive["s"].of_class(g).items()))) if g >= 0 else ()
        )
        labels = tuple(x.texts[x.of_group[g]] for x in grouping.labels) if g >= 0 else ()
        found.append((tuple(sorted(tuples.items())), values, labels, g == grouping.starred, g < 0))
    return grouping.levels, tuple(sorted(found, key=str))


def beliefs_by_running(
    target: Target, method: str, models: list[Any], **options: Any
) -> dict[int, dict[str, Fraction]]:
    """Tuple → value → belief, over all worlds in which the method publishes the same."""
    places = PublishedPeople.of(target)
    values = ("", *target.grouping.classes.sensitive["s"].values)
    word = [values[c] for c in places.codes["s"]]
    labels = [
        tuple(h.values[c - 1] for h, c in zip((A, B), codes, strict=True))
        for codes in target.grouping.summary.codes.T.tolist()
    ]
    segments = [np.flatnonzero(places.group == g).tolist() for g in places.groups.tolist()]
    gone = [
        (*labels[t], word[i])
        for t, i in zip(places.dropped[0].tolist(), places.dropped[1].tolist(), strict=True)
    ]
    kept, held = 0, Counter()
    for dealt in product(*(sorted(set(permutations(places.items[s].tolist()))) for s in segments)):
        items = np.zeros(len(places.items), dtype=int)
        for segment, mine in zip(segments, dealt, strict=True):
            items[segment] = mine
        rows = [(*labels[t], word[i]) for t, i in zip(places.tuples.tolist(), items.tolist(), strict=True)]
        columns = list(zip(*(rows + gone), strict=True))
        summary = with_joint(summarise([A, B], columns[:2], {"s": columns[2]}, {"s": ("p", "q", "r")}))
        how = build_registered(METHODS, "method", method, options, "here")
        try:
            again = Target(how.group(replace(task_of(summary, models), context=target.context)), models, how)
        except PolicyNotMet:
            continue
        if print_of(again) == print_of(target):
            kept += 1
            held.update((t, word[i]) for t, i in zip(places.tuples.tolist(), items.tolist(), strict=True))
    sizes = Counter(places.tuples.tolist())
    return {t: {v: Fraction(held[t, v], kept * sizes[t]) for v in "pqr"} for t in sizes}


def compare(target: Target, truth: dict[int, dict[str, Fraction]]) -> None:
    replayed, secrets = replay_method(target, PATIENCE), secrets_of(target)[0]
    assert replayed.tally.listed.all()
    found = believed_in(target, secrets, replayed)
    unit_of = dict(zip(replayed.places.tuples.tolist(), replayed.places.unit.tolist(), strict=True))
    for t, row in truth.items():
        for s, members in enumerate(secrets.sets):
            assert found.exact(unit_of[t], s) == sum(row[v] for v in members)


@given(ROWS, LATTICE, MODEL, st.integers(1, 2), OPTIONS)
def test_a_lattice_search_is_known_by_its_rivals(
    rows: list[Row], method: str, asked: tuple[str, dict[str, Any]], k: int, options: dict[str, Any]
) -> None:
    models = [model("k-anonymity", k=k), model(asked[0], **asked[1])]
    target = publish(rows, method, models, **options)
    compare(target, beliefs_by_running(target, method, models, **options))


@given(
    ROWS, MODEL,
    st.sampled_from(
        [
            ("mondrian", {"cut": "strict"}),
            ("mondrian", {"cut": "strict", "choose": "range", "side": "le"}),
            FALLBACK,
            ("optimal-lattice", {"suppression": "0.4", "suppress": "failing-classes"}),
        ]
    ),
)  # fmt: skip
@example(REFUSED_FIRST, ("simple-l-diversity", {"l": "3/2"}), FALLBACK)
@example(REFUSED_IN_PART, ("simple-l-diversity", {"l": "3/2"}), FALLBACK)
def test_methods_without_a_formula_are_run_again(
    rows: list[Row], asked: tuple[str, dict[str, Any]], how: tuple[str, dict[str, Any]]
) -> None:
    models = [model("k-anonymity", k=1), model(asked[0], **asked[1])]
    target = publish(rows, how[0], models, **how[1])
    assert Again(target).rivals() is None
    assert (blocks_of(target) is not None) == (how[0] == "mondrian")
    compare(target, beliefs_by_running(target, how[0], models, **how[1]))
    found = Minimality(seconds=120).run(target, KNOWS)
    dropped = how[0] != "mondrian" and target.grouping.dropped_rows
    assert found.kind == ("estimated" if dropped else "exact")
    assert found.measures["looked at"]["runs of the method"] > 0
    assert 0 <= found.measures["vulnerable_share"] <= 1


def test_a_refused_cut_ties_the_groups_below_it_together(tmp_path: Path) -> None:
    """Those of the other half of the table are explained by themselves; a saved release says so, too."""
    models = [model("k-anonymity", k=1), model("simple-l-diversity", l="3/2")]
    whole = publish(REFUSED_FIRST, FALLBACK[0], models, **FALLBACK[1])
    half = publish(REFUSED_IN_PART, FALLBACK[0], models, **FALLBACK[1])
    for target, blocks in ((whole, [0, 0]), (half, [0, 1, 1])):
        save_grouping(target.grouping, tmp_path)
        for grouping in (target.grouping, load_grouping(tmp_path)):
            found = blocks_of(replace(target, grouping=grouping))
            assert found is not None and found.tolist() == blocks


def test_rare_methods_say_so() -> None:
    """Local recoding orders rows at random: small tables are drawn, and what cannot be narrowed down is said to be."""
    rows = [(a, b, v) for a in "1234" for b, v in zip("xyxy", "pqqr", strict=True)]
    models = [model("k-anonymity", k=2), model("simple-l-diversity", l=2)]
    for method in ("local-recoding", "alpha-k-local", "anatomy"):
        asked = [model("alpha-k-anonymity", alpha="1/2", k=2)] if method == "alpha-k-local" else models
        target = publish(rows, method, asked)
        if not Minimality().applies(target):
            continue
        found = Minimality(draws=100, seconds=30).run(target, KNOWS)
        assert found.kind in ("sampled", "estimated", "bounded", "exact")
        assert found.worst.upper <= 1
        assert "dropped_people" in found.measures


def drawn(target: Target, draws: int, seed: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorldSpace, "worlds", lambda self, limit: [limit + 1] * self.n_blocks)
        patch.setattr(WorldSpace, "tables", lambda *_: None)
        patch.setattr(world_sampler, "RARE", 0.0)
        real = np.random.default_rng
        patch.setattr(np.random, "default_rng", lambda s=None: real(seed * 1000 + (s or 0)))
        return replay_method(target, WorldBudget(draws, 120.0))


@pytest.mark.parametrize("asked", [("entropy-l-diversity", {"l": 2}), ("t-closeness", {"t": "0.4"})])
def test_what_failed_before_only_saves_time(
    asked: tuple[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remembered classes change no answer: each world is judged as if it were the first."""
    rows = [(str(i % 4 + 1), "xy"[i // 8], "pqqrpqrpqrppqrqr"[i]) for i in range(16)]
    models = [model("k-anonymity", k=2), model(asked[0], **asked[1])]
    target = publish(rows, "optimal-lattice", models)
    rivals = [r for r in Again(target).rivals() or [] if len(np.unique(r.class_of)) > 1]
    assert rivals
    judges = []

    def explored(space: WorldSpace, unit: Any, n_units: int, judge: Any, *_: Any) -> Tally:
        judges.append((space, judge))
        raise InterruptedError

    monkeypatch.setattr(WorldSpace, "tables", lambda *_: None)
    monkeypatch.setattr(replay, "explore_worlds", explored)
    for _ in range(30):
        with pytest.raises(InterruptedError):
            replay_method(target, PATIENCE)
    rng, (space, remembers) = np.random.default_rng(1), judges[0]
    worlds = [space.draw(rng, space.items) for _ in judges[1:]]
    fresh = [bool(judge(world)[0]) for world, (_, judge) in zip(worlds, judges[1:], strict=True)]
    assert [bool(remembers(world)[0]) for world in worlds] == fresh
    assert 0 < sum(fresh) < len(fresh)


def test_drawn_beliefs_lie_within_their_ends() -> None:
    """Units of several people (people whom no rival tells apart), many independent results."""
    rows = [("1", "x", "p"), ("1", "x", "p"), ("2", "x", "q"), ("2", "y", "r"), ("3", "y", "q"), ("4", "y", "r"),
            ("4", "x", "p"), ("3", "x", "q")]  # fmt: skip
    models = [model("k-anonymity", k=2), model("simple-l-diversity", l=2)]
    target = publish(rows, "optimal-lattice", models)
    secrets = secrets_of(target)[0]
    exact = believed_in(target, secrets, replay_method(target, PATIENCE))
    assert not exact.kind.any()
    outside = 0
    for seed in range(40):
        found = believed_in(target, secrets, drawn(target, 100, seed))
        assert (found.kind == 1).all()
        inside = (found.low <= exact.estimate + 1e-12) & (exact.estimate <= found.high + 1e-12)
        outside += not inside.all()
        assert (found.low <= found.estimate).all() and (found.estimate <= found.high).all()
    assert outside <= 3  # at most 0.4 are expected


def test_posterior_distance_of_t_closeness() -> None:
    rows = [
        ("1", "x", "p"),
        ("1", "x", "p"),
        ("2", "x", "q"),
        ("2", "x", "q"),
        ("3", "y", "p"),
        ("4", "y", "q"),
    ]
    models = [model("k-anonymity", k=1), model("t-closeness", t="0.2", attribute="s")]
    target = publish(rows, "optimal-lattice", models)
    found = Minimality().run(target, KNOWS)
    distance = found.measures["posterior distance"]["t-closeness of s"]
    truth = beliefs_by_running(target, "optimal-lattice", models)
    largest = max(sum(abs(row[v] - Fraction(1, 2)) for v in "pq") / 2 for row in truth.values())
    assert (distance["largest"], distance["kind"], distance["t"]) == (largest, "exact", Fraction(1, 5))
    sampled = Minimality(draws=10, seconds=60).run(target, KNOWS).measures["posterior distance"]
    assert sampled["t-closeness of s"]["kind"] in ("exact", "sampled")


@pytest.mark.parametrize(
    ("method", "asked"),
    crossed(
        ["optimal-lattice", "samarati", "incognito"],
        [("simple-l-diversity", {"l": 3}), ("entropy-l-diversity", {"l": 3})],
    ),
)
def test_adult_is_drawn_in_a_few_seconds(method: str, asked: tuple[str, dict[str, Any]]) -> None:
    import time

    summary = adult("occupation")
    models = [model("k-anonymity", k=5), model(asked[0], **asked[1])]
    task = task_of(summary, models)
    how = build_registered(METHODS, "method", method, {}, "here")
    target = Target(how.group(task), models, how, task.context, weights={}, levels={})
    started = time.process_time()
    found = Minimality(seconds=2).run(target, KNOWS)
    assert time.process_time() - started < 6
    assert found.measures["knowing"] == "the method and its parameters"
    assert found.measures["looked at"]["worlds drawn"] > 20
    assert found.worst.interval is not None
    shown = max(secrets_of(target)[0].shares())
    assert found.worst.upper >= shown or found.kind == "sampled"


@given(
    st.lists(st.sampled_from("pqr"), min_size=2, max_size=7),
    st.sampled_from([("simple-l-diversity", {"l": 2}), ("distinct-l-diversity", {"l": 2}),
                     ("t-closeness", {"t": "0.4", "attribute": "s"})]),
    st.sampled_from([("symmetric-grouping", {}), ("mondrian", {"cut": "relaxed", "choose": "range"})]),
)  # fmt: skip
def test_even_cuts_under_any_requirement(
    values: list[str], asked: tuple[str, dict[str, Any]], how: tuple[str, dict[str, Any]]
) -> None:
    """Rows that all differ in their quasi-identifiers: the place of everybody is known, and beliefs are exact."""
    from maskwright.attacks._minimality.partitions import cut_worlds, cuts_evenly
    from maskwright.domain.hierarchy import Hierarchy

    names = [f"{i}" for i in range(len(values))]
    line = Hierarchy.of("n", names, [])
    models = [model("k-anonymity", k=1), model(asked[0], **asked[1])]
    method = build_registered(METHODS, "method", how[0], how[1], "here")

    def made(world: list[str], context: Any = None) -> Target:
        summary = with_joint(summarise([line], [names], {"s": world}, {"s": ("p", "q", "r")}))
        task = task_of(summary, models)
        task = task if context is None else replace(task, context=context)
        return Target(method.group(task), models, method, task.context, weights={}, levels={})

    try:
        target = made(values)
    except PolicyNotMet:
        assume(False)
    assert cuts_evenly(target)
    found = cut_worlds(target, PATIENCE)
    group_of = np.zeros(len(values), dtype=int)
    group_of[target.grouping.allocation.tuples] = target.grouping.allocation.groups
    segments = [np.flatnonzero(group_of == g).tolist() for g in range(group_of.max() + 1)]
    kept, held = 0, Counter()
    for dealt in product(*(sorted(set(permutations([values[i] for i in s]))) for s in segments)):
        world = [""] * len(values)
        for segment, mine in zip(segments, dealt, strict=True):
            for i, v in zip(segment, mine, strict=True):
                world[i] = v
        try:
            again = made(world, target.context)
        except PolicyNotMet:
            continue
        if print_of(again) == print_of(target):
            kept += 1
            held.update(enumerate(world))
    secrets = secrets_of(target)[0]
    beliefs = believed_in(target, secrets, found)
    for i, unit in zip(found.places.tuples.tolist(), found.places.unit.tolist(), strict=True):
        for s, (value,) in enumerate(secrets.sets):
            assert beliefs.exact(unit, s) == Fraction(held[i, value], kept)


TOLD = [("3", "x", "r"), ("4", "y", "p"), ("1", "x", "p"), ("4", "y", "p"), ("2", "y", "q"), ("2", "x", "q")]


@pytest.mark.long
def test_rows_that_are_taken_back_at_random() -> None:
    """(α,k) local recoding: where labels say who is in which group, drawn worlds agree with all of them, listed."""
    target = publish(TOLD, "alpha-k-local", [model("alpha-k-anonymity", alpha="2/3", k=2)])
    listed = every_world(target, WorldBudget(20_000, 60.0))
    assert listed is not None
    drawn_ = replay_method(target, WorldBudget(1_500, 60.0))
    [secrets] = secrets_of(target)
    exact, found = (believed_in(target, secrets, x) for x in (listed, drawn_))
    assert listed.places.tuples_of_units.tolist() == drawn_.places.tuples_of_units.tolist()
    assert (found.kind == 1).all(), "sampled"
    assert (found.low - 1e-9 <= exact.estimate).all()
    assert (exact.estimate <= found.high + 1e-9).all()


def test_local_recoding_is_drawn_where_it_comes_out_again() -> None:
    """Beyond what can be listed: an interval where enough worlds were seen, else what rests on an assumption."""

    def rows(n: int) -> list[Row]:
        return [("1234"[i % 4], "xy"[i // 4 % 2], "pqr"[(i * i + i // 4) % 3]) for i in range(n)]

    found = {}
    for n in (20, 100):
        target = publish(rows(n), "alpha-k-local", [model("alpha-k-anonymity", alpha="2/3", k=2)])
        found[n] = Minimality(draws=120, seconds=60).run(target, KNOWS).measures
    assert "method assumed" not in found[20]
    assert 20 <= found[20]["looked at"]["worlds kept"] < found[20]["looked at"]["worlds drawn"]
    assert found[20]["credibility (paper)"]
    assert found[100]["method assumed"]
