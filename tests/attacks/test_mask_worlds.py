"""MASK against somebody who knows it: exact where classes are few, by Markov chains where they are many."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from maskwright.attacks._minimality import credibility_analyses
from maskwright.attacks.minimality import Minimality
from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.settings import build_registered
from maskwright.domain.summary import Joint
from maskwright.errors import PolicyNotMet
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.worlds.counting.mask_worlds import mask_estimate, mask_posterior
from tests.support import summarise, task_of


def masked(classes: list[str], ell: Any = 2) -> Target:
    """Classes of people whose values are letters, p being sensitive, published by MASK."""
    names = [f"z{i}" for i in range(len(classes))]
    columns = [[name for name, c in zip(names, classes, strict=True) for _ in c]]
    summary = summarise(
        [Hierarchy.of("zip", names, [])],
        columns,
        {"s": [v for c in classes for v in c]},
        {"s": ("p", "q", "r")},
    )
    counts = summary.sensitive["s"]
    summary = replace(summary, joint=Joint(counts.owner, counts.codes[None, :], counts.counts))
    models = [
        build_registered(MODELS, "model", "k-anonymity", {"k": 1}, "here"),
        build_registered(MODELS, "model", "simple-l-diversity", {"l": ell, "values": ["p"]}, "here"),
    ]
    task, how = task_of(summary, models), METHODS["mask"]()
    return Target(how.group(task), models, how, task.context)


def test_w5_belief_is_above_one_in_l() -> None:
    """Two classes of two, both published with one sensitive row: (2 + θ)/4 for θ = 3/4."""
    target = masked(["pp", "pq"])
    found = Minimality().run(target, Adversary("knows-method", True))
    assert Minimality().applies(target)
    assert found.worst.before == Fraction(3, 4)
    assert found.worst.after == (2 + Fraction(3, 4)) / 4 > Fraction(1, 2)
    assert (found.kind, found.measures["knowing"]) == ("estimated", "MASK and its parameters")
    assert found.measures["arithmetic"] == "exact"
    assert "independently" in found.measures["assumption"]
    assert found.measures["vulnerable_people"] == 4


@given(
    st.lists(st.text("pqr", min_size=1, max_size=4), min_size=1, max_size=5), st.sampled_from([2, "3/2", 3])
)
def test_beliefs_are_those_of_mask_posterior(classes: list[str], ell: Any) -> None:
    try:
        target = masked(classes, ell)
    except PolicyNotMet:
        assume(False)
    found = Minimality().run(target, Adversary())
    seen = target.grouping.published_classes.sensitive["s"]
    held = [seen.of_class(c).get("p", 0) for c in range(len(classes))]
    theta = Fraction(sum(c.count("p") for c in classes), sum(map(len, classes)))
    sizes = target.grouping.classes.sizes.tolist()
    expected = mask_posterior(sizes, held, Fraction(ell), theta) if 0 < theta < 1 else None
    shown = max(Fraction(h, n) for h, n in zip(held, sizes, strict=True))
    assert found.worst.after == max(expected or [shown])


@pytest.mark.parametrize(
    ("sizes", "held", "ell", "theta"),
    [
        ([2, 2], [1, 1], Fraction(2), Fraction(1, 3)),
        ([4, 4, 4, 6, 6], [1, 2, 2, 3, 1], Fraction(2), Fraction(1, 3)),
        ([5, 5, 5, 5, 7], [1, 1, 0, 1, 2], Fraction(3), Fraction(1, 4)),
        ([3, 3, 3, 3, 3, 3], [1, 1, 1, 1, 0, 0], Fraction(5, 2), Fraction(1, 2)),
    ],
)
def test_the_chain_finds_the_exact_beliefs(
    sizes: list[int], held: list[int], ell: Fraction, theta: Fraction
) -> None:
    exact = mask_posterior(sizes, held, ell, theta)
    assert exact is not None
    found = mask_estimate(sizes, held, ell, float(theta), 8_000, seed=3)
    assert found.rhat < 1.05
    for truth, belief, half in zip(exact, found.beliefs, found.half, strict=True):
        assert abs(float(truth) - belief) <= half + 1e-9
        assert half < 0.05


def test_many_classes_go_through_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    classes = ["".join(rng.choice(list("pqr"), 5, p=[0.3, 0.4, 0.3])) for _ in range(40)]
    exact = Minimality().run(masked(classes), Adversary())
    monkeypatch.setattr(credibility_analyses, "EXACT", 0)
    found = Minimality().run(masked(classes), Adversary())
    assert exact.measures["arithmetic"] == "exact"
    assert found.measures["arithmetic"] == "estimated"
    assert found.worst.interval is not None
    assert found.worst.interval[0] <= exact.worst.after <= found.worst.interval[1]
    assert found.measures["chains agree (R-hat)"] < 1.1
