"""The coverage of every interval that an attack prints: drawn again and again, how often does it miss the truth?

The truth is counted, world by world, on examples that are small enough; then counting is switched off. An attack draws
the same worlds every time, so that reports are repeatable: here each run has draws of its own. What is drawn for
functions of one's own is in test_row_worlds.py, what controlled attacks print in tests/auditing/test_controlled.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.attacks._minimality import drawn_worlds, local_credibility
from maskwright.attacks._minimality.replay import replay_method
from maskwright.attacks._minimality.row_methods import possible_worlds
from maskwright.attacks._people import people_worlds
from maskwright.attacks.minimality import Minimality
from maskwright.domain.adversary import Adversary
from maskwright.domain.beliefs import Beliefs
from maskwright.worlds.counting.credibility import ListedPeople, credibility_listed
from maskwright.worlds.counting.mask_worlds import mask_estimate, mask_posterior
from maskwright.worlds.sampling import world_sampler
from maskwright.worlds.sampling.belief_intervals import belief_intervals
from maskwright.worlds.sampling.possible_worlds import deterministic_likelihood, posterior_beliefs
from maskwright.worlds.statements.fact_beliefs import (
    RestrictedBucket,
    belief_in_fact,
    beliefs_given_facts,
    implication_fact,
)
from tests.amounts import amount
from tests.attacks.test_local_credibility import Truth, credible
from tests.attacks.test_local_credibility import model as local_model
from tests.attacks.test_local_credibility import release as local_release
from tests.attacks.test_minimality import model
from tests.attacks.test_minimality import publish as publish_alone
from tests.attacks.test_people_worlds import policy, table
from tests.attacks.test_replay import PATIENCE, drawn, publish
from tests.attacks.test_row_worlds import greedy, misses
from tests.oracles.absent_people import dropped_class

SRC = Path(mw.__file__).parent
ROWS = [("1", "x", "p"), ("1", "x", "p"), ("2", "x", "q"), ("2", "y", "r"), ("3", "y", "q"), ("4", "y", "r"),
        ("4", "x", "p"), ("3", "x", "q")]  # fmt: skip
MODELS = [model("k-anonymity", k=2), model("simple-l-diversity", l=2)]
Covers = Callable[[int], bool]  # whether the interval of the run with this seed holds the truth


@contextmanager
def own_draws(seed: int) -> Iterator[pytest.MonkeyPatch]:
    """Every generator of the product is seeded otherwise."""
    numpy_rng, python_rng = np.random.default_rng, random.Random
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "default_rng", lambda s=0: numpy_rng(1000 * (seed + 1) + (s or 0)))
        patch.setattr(random, "Random", lambda s=0: python_rng(1000 * (seed + 1) + (s or 0)))
        yield patch


def refused_nodes() -> Covers:
    """minimality, of full-domain searches whose worlds are too many to list."""
    target = publish_alone(ROWS, "optimal-lattice", MODELS)
    truth = Minimality(seconds=60).run(target, Adversary())
    assert truth.measures["arithmetic"] == "exact"

    def covers(seed: int) -> bool:
        with own_draws(seed) as patch:
            patch.setattr(drawn_worlds, "CELLS", 0)
            found = Minimality(draws=200).run(target, Adversary())
        assert found.worst.interval is not None
        return found.worst.interval[0] <= truth.worst.after <= found.worst.upper

    return covers


def shares_that_are_kept() -> Covers:
    """combined, and every bound that follows from how many worlds are kept."""
    target = publish(ROWS, "optimal-lattice", MODELS)
    truth = kept_shares(replay_method(target, PATIENCE))
    return lambda seed: bool((kept_shares(drawn(target, 100, seed)) <= truth + 1e-12).all())


def kept_shares(replayed: Any) -> Any:
    tally = replayed.tally
    return belief_intervals(tally, np.zeros((tally.space.n_items, 0), dtype=bool)).least


def chains() -> Covers:
    """minimality by Markov chains (estimated)."""
    values = list("ppqqprq")
    qi = [(i,) for i in range(len(values))]
    groups = greedy(qi, values, np.random.default_rng(0))
    truth = posterior_beliefs(values, groups, deterministic_likelihood(lambda v: greedy(qi, v, None))).beliefs  # type: ignore[arg-type]
    assert truth is not None

    def noisy(known: Any, held: Any, rng: Any) -> Any:
        rng.random()  # so that it is not listed
        return greedy(known, held, rng)

    def covers(seed: int) -> bool:
        with own_draws(seed) as patch:
            patch.setattr(world_sampler, "RARE", 1.1)
            patch.setattr(world_sampler, "ENOUGH_RARE", 10**9)
            found = possible_worlds(qi, values, groups, noisy, draws=4_000, seconds=60, seed=seed)
        assert found.kind in ("estimated", "sampled")  # sampled where the chains do not agree
        return not misses(found, truth)

    return covers


def several_rows() -> Covers:
    """minimality and combined, where people have several rows."""
    rows = [
        ("p0", "a", "v"),
        ("p0", "b", "w"),
        ("p1", "a", "v"),
        ("p2", "b", "w"),
        ("p3", "b", "x"),
        ("p1", "b", "v"),
    ]
    wanted = [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "l": 2}]
    asked = policy("1") | {"method": {"name": "mondrian", "cut": "strict"}, "require": wanted}
    release = mw.anonymize(table(rows), asked, seed=1)
    truth = mw.attack(release, Minimality(seconds=60))
    assert isinstance(truth, Beliefs) and truth.kind == "exact"

    def covers(seed: int) -> bool:
        with own_draws(seed) as patch:
            patch.setattr(people_worlds, "explained_worlds", lambda *_: None)
            found = mw.attack(release, Minimality(draws=150, seconds=60))
        assert isinstance(found, Beliefs) and found.kind == "sampled" and found.worst.interval is not None
        return found.worst.interval[0] <= truth.worst.after <= found.worst.upper

    return covers


def local_classes() -> Covers:
    """minimality of local recoding, where multisets are too many to count."""
    rows = [
        ("a", 0, "p"),
        ("a", 0, "q"),
        ("b", 0, "p"),
        ("b", 1, "q"),
        ("b", 0, "r"),
        ("c", 1, "p"),
        ("c", 1, "q"),
    ]
    requirement = local_model("simple-l-diversity", l=2)
    target, truth = local_release(rows, [requirement]), Truth(rows, requirement)
    classes = sorted({c for c, _, _ in rows})

    def refuse(*_: Any) -> None:
        raise local_credibility.TooManyWorlds("for the test")

    def covers(seed: int) -> bool:
        with own_draws(seed) as patch:
            patch.setattr(local_credibility.Teller, "_counted", refuse)
            found = credible(target, 300)
        return all(
            abs(found.value(at, s) - float(truth.credibility(classes[number], members)))
            <= found.half[at] + 1e-12
            for at, number in enumerate(found.classes.tolist())
            for s, members in enumerate(found.secrets.sets)
        )

    return covers


def longer_lists() -> Covers:
    """minimality with a population table, where worlds are too many to count."""
    classes, share = [ListedPeople(2), ListedPeople(3, 1, 1), ListedPeople(6)], Fraction(1, 2)
    truth = credibility_listed(classes, 8, 3, share)
    assert truth is not None

    def covers(seed: int) -> bool:
        with own_draws(seed) as patch:
            patch.setattr("maskwright.worlds.counting.credibility.STEPS", 0)
            found = credibility_listed(classes, 8, 3, share, draws=1_000, asked=3)
        assert found is not None and found.half > 0
        return all(abs(a - b) <= found.half for a, b in zip(truth.beliefs, found.beliefs, strict=True))

    return covers


def masked_classes() -> Covers:
    """minimality of mask, by four chains (estimated)."""
    asked = ([4, 4, 4, 6, 6], [1, 2, 2, 3, 1], Fraction(2))
    truth = mask_posterior(*asked, Fraction(1, 3))
    assert truth is not None

    def covers(seed: int) -> bool:
        found = mask_estimate(*asked, 1 / 3, 2_000, seed=seed)
        near = zip(truth, found.beliefs, found.half, strict=True)
        return all(abs(float(t) - b) <= half + 1e-9 for t, b, half in near)

    return covers


def statements() -> Covers:
    """background-knowledge with facts that are given, and written knowledge about people with several rows."""
    buckets = [RestrictedBucket.of(values) for values in (["a", "a", "b", "c"], ["a", "b", "b", "d"])]
    facts = [implication_fact([((0, 0), "a")], [((1, 0), "b")])]
    asked = implication_fact([((0, 1), "a")], [((1, 1), "a")])
    truth, whole = beliefs_given_facts(buckets, {}, facts), belief_in_fact(asked, buckets, {}, facts)
    assert truth is not None and whole is not None

    def covers(seed: int) -> bool:
        with own_draws(seed):
            found = beliefs_given_facts(buckets, {}, facts, limit=0, draws=300)
            one = belief_in_fact(asked, buckets, {}, facts, limit=0, draws=300)
        assert found is not None and one is not None and found.half > 0 and one[1] > 0
        pairs = [(truth.named[p], found.named[p]) for p in truth.named]
        pairs += [(truth.others[k], found.others[k]) for k in truth.others]
        near = all(abs(a.get(v, 0) - b.get(v, 0)) <= found.half for a, b in pairs for v in {*a, *b})
        return near and abs(whole[0] - one[0]) <= one[1]

    return covers


def missing_rows() -> Covers:
    """absence, where people have several rows: a ward of five people is missing, somebody else has two rows."""
    held = {"1": 1, "2": 1, "3": 0, "4": 3}
    rows = [(f"p{w}{i}", w, "HIV" if i < n else "none") for w, n in held.items() for i in range(5)]
    rows.append(("p34", "3", "none"))
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("who", "ward", "disease"))}
    wanted = {"model": "simple-l-diversity", "l": 2, "values": ["HIV"]}
    asked = {
        "unit": "who", "columns": {"who": "identifier", "ward": "quasi-identifier", "disease": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 2}, wanted],
        "method": {"name": "optimal-lattice", "suppression": "30%", "suppress": "failing-classes"},
    }  # fmt: skip
    release = mw.anonymize(pa.table(columns), asked, seed=1)
    truth = dropped_class(5, 2, Fraction(2, 16))
    assert truth is not None

    def covers(seed: int) -> bool:
        with own_draws(seed):
            found = mw.attack(release, "absence")
        assert isinstance(found, Beliefs) and found.worst.interval is not None
        return bool(found.worst.interval[0] <= truth <= found.worst.upper)

    return covers


def empty_boxes() -> Covers:
    """singling-out: the share of boxes that hold nobody of a control of thirty, drawn from forty places."""
    rows = {"place": [f"{i:02d}" for i in range(20) for _ in range(2)]}
    asked = {"columns": {"place": "quasi-identifier"}, "require": [{"model": "k-anonymity", "k": 2}]}
    release, truth = mw.anonymize(pa.table(rows), asked, seed=1), (1 - 1 / 40) ** 30

    def covers(seed: int) -> bool:
        places = np.random.default_rng(seed).integers(0, 40, 30)
        outside = [{"place": f"{i:02d}"} for i in places]
        found = mw.attack(release, mw.attacks.SinglingOut(control=outside))
        assert isinstance(found, Beliefs)
        low, high = found.measures["empty_share_interval"]
        return bool(low <= truth <= high)

    return covers


# interval → (how it is drawn, the chance to miss that is stated, runs in make test)
INTERVALS: dict[str, tuple[Callable[[], Covers], float, int]] = {
    "refused nodes": (refused_nodes, 0.01, 60), "shares that are kept": (shares_that_are_kept, 0.01, 15),
    "Markov chains": (chains, 0.01, 8), "several rows": (several_rows, 0.01, 4),
    "local recoding": (local_classes, 0.01, 60), "longer lists": (longer_lists, 0.01, 60),
    "mask": (masked_classes, 0.01, 6), "given facts": (statements, 0.01, 30), "empty boxes": (empty_boxes, 0.05, 20),
    "missing rows": (missing_rows, 0.01, 10),
}  # fmt: skip


@pytest.mark.parametrize("name", INTERVALS)
def test_intervals_miss_no_more_often_than_stated(name: str) -> None:
    made, risk, brief = INTERVALS[name]
    covers, runs = made(), amount(brief, 20 * brief)
    missed = sum(not covers(seed) for seed in range(runs))
    assert missed <= allowed(runs, risk), f"{missed} of {runs}"


def allowed(runs: int, risk: float) -> int:
    """The misses that a rate of `risk` exceeds in less than one of a thousand tests."""
    chances, below, k = np.random.default_rng(0).binomial(runs, risk, 200_000), 0.0, -1
    while below < 0.999:
        k += 1
        below = float((chances <= k).mean())
    return k


# the files that make an interval of what is drawn, and the tests of their coverage
MAKERS = {
    "attacks/_people/absent_people.py": "missing rows",
    "attacks/_minimality/drawn_worlds.py": "refused nodes", "attacks/_minimality/replay.py": "shares that are kept",
    "attacks/_minimality/row_methods.py": "test_row_worlds.py",
    "attacks/_minimality/local_credibility.py": "local recoding",
    "attacks/_minimality/original_class_beliefs.py": "local recoding",
    "attacks/_minimality/credibility_analyses.py": "longer lists", "attacks/_people/people_worlds.py": "several rows",
    "attacks/_people/people_knowledge.py": "given facts", "attacks/background_knowledge.py": "given facts",
    "attacks/combined.py": "shares that are kept", "attacks/singling_out.py": "empty boxes",
    "auditing/controlled.py": "test_controlled.py",
}  # fmt: skip
MAKING = ("exact_interval(", "belief_intervals(", "binomial_lower(", "chernoff_interval(", ".half")


def test_no_interval_is_left_out() -> None:
    making = {
        file.relative_to(SRC).as_posix()
        for folder in ("attacks", "auditing")
        for file in (SRC / folder).rglob("*.py")
        if any(word in file.read_text(encoding="utf-8") for word in MAKING)
    }
    assert making == set(MAKERS)
    tests = Path(__file__).parents[1]
    for covered in set(MAKERS.values()):
        assert covered in INTERVALS or any(tests.rglob(covered)), covered
