"""The combined adversary: method and facts at once, against every world in which the method publishes the same."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.attacks._minimality.replay import blocks_of, replay_method
from maskwright.attacks._minimality.world_tables import PublishedPeople
from maskwright.attacks.background_knowledge import BackgroundKnowledge
from maskwright.attacks.combined import Combined
from maskwright.attacks.minimality import Minimality
from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.hierarchy import Hierarchy
from maskwright.methods import METHODS
from maskwright.pipeline.attacking import attack_target
from maskwright.worlds.sampling.world_sampler import WorldBudget
from maskwright.worlds.statements import disclosure as facts_module
from maskwright.worlds.statements.disclosure import WorldBlock, worst_facts
from tests.attacks.test_minimality import MODEL, Row, model
from tests.attacks.test_replay import KNOWS, print_of, publish, with_joint
from tests.support import adult, summarise, task_of
from tests.worlds.test_worst_facts import implications

SMALL = st.lists(
    st.tuples(st.sampled_from("12"), st.sampled_from("xy"), st.sampled_from("pq")), min_size=3, max_size=5
)
HOW = st.sampled_from([("optimal-lattice", {}), ("mondrian", {"cut": "strict"}), ("incognito", {})])


def insider(k: int) -> Adversary:
    return Adversary("insider", True, k)


def left(target: Target, models: list[Any], method: str, options: dict[str, Any]) -> list[tuple[int, ...]]:
    """All worlds in which the method publishes the same: everybody's value."""
    places, summary = PublishedPeople.of(target), target.grouping.summary
    labels = [
        tuple(h.values[c - 1] for h, c in zip(summary.attributes, codes, strict=True))
        for codes in summary.codes.T.tolist()
    ]
    code = places.codes["s"]
    segments = [np.flatnonzero(places.group == g).tolist() for g in places.groups.tolist()]
    found = []
    for dealt in product(*(sorted(set(permutations(places.items[s].tolist()))) for s in segments)):
        items = np.zeros(len(places.items), dtype=int)
        for segment, mine in zip(segments, dealt, strict=True):
            items[segment] = mine
        world = code[items].tolist()
        rows: list[Row] = [
            (*labels[t], "pqr"[c - 1]) for t, c in zip(places.tuples.tolist(), world, strict=True)
        ]
        if print_of(publish(rows, method, models, **options)) == print_of(target):
            found.append(tuple(world))
    return found


@given(SMALL, MODEL, HOW, st.integers(1, 2))
def test_against_every_world_and_every_fact(
    rows: list[Row], asked: tuple[str, dict[str, Any]], how: tuple[str, dict[str, Any]], k: int
) -> None:
    models = [model("k-anonymity", k=1), model(asked[0], **asked[1])]
    target = publish(rows, how[0], models, **how[1])
    found = Combined(seconds=120).run(target, insider(k))
    assert found.kind == "exact"
    worlds = left(target, models, *how)
    exact = worst_facts([WorldBlock(np.array(worlds), np.arange(len(worlds[0])), 0, k)], k)
    assert exact is not None
    assert found.worst.after == exact.belief
    if len(worlds[0]) <= 3 or k == 1:  # and that is what going through all implications finds
        assert exact.belief == max(implications(worlds, h) for h in range(k + 1))
    facts_alone = BackgroundKnowledge().run(target, insider(k)).worst.after
    flags = model(asked[0], **asked[1])
    if getattr(flags, "values", None) is None:
        assert found.worst.after >= Minimality(seconds=120).run(target, KNOWS).worst.after
    assert found.measures["attributes"]["s"]["negations"] <= found.worst.after
    assert 0 <= facts_alone <= 1


def test_facts_and_method_together_tell_more_than_each() -> None:
    """Of four people two have p. The classes of two were merged because one showed p twice: but which?"""
    rows = [("1", "x", "p"), ("1", "x", "p"), ("2", "x", "q"), ("2", "x", "r")]
    models = [model("k-anonymity", k=2), model("simple-l-diversity", l=2)]
    target = publish(rows, "optimal-lattice", models)
    method = Minimality().run(target, KNOWS).worst.after
    facts = BackgroundKnowledge().run(target, insider(1)).worst.after
    both = Combined().run(target, insider(1))
    assert (method, facts, both.worst.after) == (Fraction(1, 2), Fraction(3, 4), 1)
    assert both.kind == "exact"
    assert both.measures["vulnerable_share"] == 1
    assert "no. " in both.worst.why and "has" in both.worst.why
    assert both.measures["dropped_people"] == 0 and "values_not_flagged" in both.measures


def test_where_the_method_tells_nothing_it_is_background_knowledge() -> None:
    rows = [("1", "x", "p"), ("1", "x", "q"), ("2", "x", "r"), ("2", "y", "q")]
    target = publish(rows, "optimal-lattice", [model("k-anonymity", k=2)])
    for k in (1, 2, 3):
        facts = BackgroundKnowledge().run(target, insider(k)).worst
        assert Combined().run(target, insider(k)).worst.after == facts.after


def test_beyond_small_tables_it_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("1", "x", "p"), ("1", "x", "p"), ("2", "x", "q"), ("2", "x", "q")]
    models = [model("k-anonymity", k=2), model("simple-l-diversity", l=2)]
    target = publish(rows, "optimal-lattice", models)
    exact = Combined().run(target, insider(1))
    monkeypatch.setattr("maskwright.attacks.combined.SETS", 0)
    bounded = Combined().run(target, insider(1))
    assert bounded.kind == "bounded"
    assert bounded.worst.after >= exact.worst.after
    assert facts_module.SETS > 0


def test_adult_is_bounded() -> None:
    from maskwright.domain.settings import build_registered
    from maskwright.methods import METHODS

    models = [model("k-anonymity", k=5), model("simple-l-diversity", l=3)]
    task = task_of(adult("occupation"), models)
    how = build_registered(METHODS, "method", "optimal-lattice", {}, "here")
    target = Target(how.group(task), models, how, task.context, weights={}, levels={})
    found = Combined(seconds=1).run(target, insider(1))
    assert found.kind == "bounded"
    assert found.worst.after >= BackgroundKnowledge().run(target, insider(1)).worst.after


def test_it_needs_an_adversary_with_method_and_facts() -> None:
    rows = [("1", "x", "p"), ("1", "x", "q"), ("2", "x", "r"), ("2", "y", "q")]
    target = publish(rows, "optimal-lattice", [model("k-anonymity", k=2)])
    assert attack_target(target, ["combined"], Adversary("neighbour", False, 3)) == []
    assert attack_target(target, ["combined"], KNOWS) == []
    assert len(attack_target(target, ["combined"], insider(2))) == 1
    assert not Combined().applies(Target(target.grouping, target.models, None, target.context))


def test_a_refused_cut_that_others_cross_ties_the_groups_together() -> None:
    """Eight people in a line, four p and four q: cutting the line in the middle is refused, and the crossed cuts
    publish four pairs {p, q}. Each person's belief is 1/2. But the first four are all p or all q, so that who knows
    one of them knows everybody: no pair tells its own story."""
    names = [str(i) for i in range(8)]
    line = Hierarchy.of("n", names, [], ordered=True)
    summary = with_joint(summarise([line], [names], {"s": "ppppqqqq"}, {"s": ("p", "q")}))
    models = [model("distinct-l-diversity", l=2)]
    how = METHODS["mondrian"](least=2)
    task = task_of(summary, models)
    target = Target(how.group(task), models, how, task.context, weights={}, levels={})
    assert target.grouping.classes.sizes.tolist() == [2, 2, 2, 2]
    assert target.grouping.search["crossings"] == 3
    blocks = blocks_of(target)
    assert blocks is not None and not blocks.any()
    found = replay_method(target, WorldBudget(10_000, 120.0)).tally
    assert (found.looked.tolist(), found.kept.tolist()) == ([16], [2])
    assert Minimality().run(target, KNOWS).worst.after == Fraction(1, 2)
