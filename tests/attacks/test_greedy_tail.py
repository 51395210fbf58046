"""The dropped tail of greedy grouping: beliefs by enumeration of who holds what."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from maskwright.attacks._shared.thresholds import Threshold
from maskwright.attacks.absence import Absence, Tail, tail_of
from maskwright.domain.adversary import Adversary, Target
from maskwright.methods.greedy_grouping import GreedyGrouping
from maskwright.models import MODELS
from tests.methods.row_tables import build

WHO = Adversary("knows-method", knows_method=True)


def counted(size: int, buckets: int, ell: Fraction, extend: Fraction, prior: Fraction) -> list[Fraction]:
    """Every way in which the people of the tail can hold the value, with its probability."""
    held, total = [Fraction(0)] * buckets, Fraction(0)
    for world in itertools.product((0, 1), repeat=size * buckets):
        chance = Fraction(1)
        for v in world:
            chance *= prior if v else 1 - prior
        for i in range(1, buckets + 1):
            violates = sum(world[: i * size]) * ell > i * size
            chance *= 1 if violates else extend if i < buckets else 0
        total += chance
        for i in range(buckets):
            held[i] += chance * Fraction(sum(world[i * size : (i + 1) * size]), size)
    return [h / total for h in held]


@pytest.mark.parametrize("prior", ["1/10", "2/5"])
@pytest.mark.parametrize("extend", ["0", "1/3"])
@pytest.mark.parametrize(("size", "buckets", "ell"), [(2, 1, "2"), (2, 3, "2"), (3, 3, "3"), (4, 2, "5/2")])
def test_the_definition(size: int, buckets: int, ell: str, extend: str, prior: str) -> None:
    rule = Threshold("s", frozenset({1}), 1 / Fraction(ell))
    found = Tail(rule, size, buckets, Fraction(extend)).beliefs(float(Fraction(prior)))
    wanted = counted(size, buckets, Fraction(ell), Fraction(extend), Fraction(prior))
    assert np.allclose(found, [float(w) for w in wanted], rtol=1e-12)


def test_long_tails_do_not_lose_precision() -> None:
    rule = Threshold("s", frozenset({1}), Fraction(1, 10))
    found = Tail(rule, 10, 300, Fraction(0)).beliefs(1e-3)  # 300 violations in a row are hardly ever seen
    assert np.isfinite(found).all()
    assert found[0] == pytest.approx(found.max())
    assert found.mean() > Fraction(1, 10)  # the tail as a whole violates
    assert (
        Tail(rule, 10, 3, Fraction(0)).beliefs(0.0) == 1
    ).all()  # nobody else holds it: no prior, no comfort


def published(sa: str, **options: object) -> Target:
    table = build([[i] for i in range(len(sa))], {"s": list(sa)}, domains={"s": ("P", "a", "b")})
    models = [MODELS["simple-l-diversity"](l=2, values=["P"], attribute="s")]
    task, method = table.task(models), GreedyGrouping(**options)
    return Target(method.group(task), models, method, task.context)


def test_people_dropped_by_greedy_grouping_get_beliefs() -> None:
    """Pa | ab | PP, buckets of two: the last bucket is dropped, and everybody knows why: both hold P."""
    target = published("PaabPP")
    assert tail_of(target) is not None
    found = Absence().run(target, WHO)
    assert float(found.worst.after) == pytest.approx(1)
    assert (found.kind, found.measures["dropped_for_values"]) == ("estimated", 2)
    longer = Absence().run(
        published("PaabPPPa"), WHO
    )  # PPPa never passes: 3 or 4 of four, the first two surely
    assert float(longer.worst.after) == pytest.approx(1)
    assert longer.measures["vulnerable_people"] == 4
    assert not Absence().applies(published("PaabPa"))
    mixed = [MODELS["entropy-l-diversity"](l="3/2", attribute="s"), *target.models]
    assert tail_of(Target(target.grouping, mixed, target.method, target.context)) is None
