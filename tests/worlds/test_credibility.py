"""The minimality attack: global, local and for a whole release [Wong et al. 2007], with errata W-1 … W-3."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.counting.credibility import (
    Merged,
    credibility_each,
    credibility_global,
    credibility_local,
    credibility_release,
    vector_table,
    violation_weights,
)
from tests.oracles.worlds import after_violation, positive_rows

ELL = st.fractions(Fraction(1, 2), 6, max_denominator=4)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), ELL, st.data())
def test_global_recoding(sizes: list[int], ell: Fraction, data: st.DataObject) -> None:
    sensitive = data.draw(st.integers(0, sum(sizes)))
    found = credibility_global(sizes, sensitive, ell)
    expected = after_violation(sizes, sensitive, [math.floor(n / ell) for n in sizes])
    assert (None if found is None else list(found.values)) == expected
    table = vector_table(sizes, sensitive, ell)
    assert bool(table) == (expected is not None)
    assert sum(w for _, w in table) == sum(
        any(j * ell > n for j, n in zip(world, sizes, strict=True))
        for world in positive_rows(sizes, sensitive)
    )


def _local_by_hand(
    sizes: list[int], published: list[int], seen: list[int], sensitive: int, ell: Fraction
) -> list[Fraction] | None:
    """Worlds over the generalised rows; the original classes, published rows included, are tested."""
    kept = []
    for world in positive_rows([n - u for n, u in zip(sizes, published, strict=True)], sensitive):
        whole = [s + j for s, j in zip(seen, world, strict=True)]
        if any(j * ell > n for j, n in zip(whole, sizes, strict=True)):
            kept.append(whole)
    if not kept:
        return None
    return [Fraction(sum(w[i] for w in kept), len(kept) * n) for i, n in enumerate(sizes)]


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4),
    ELL,
    st.data(),
)
def test_local_recoding(rows: list[tuple[int, int, int]], ell: Fraction, data: st.DataObject) -> None:
    sizes = [n for n, _, _ in rows]
    published = [min(n, u) for n, u, _ in rows]
    seen = [min(n, u, s) for n, u, s in rows]
    free = sum(sizes) - sum(published)
    sensitive = data.draw(st.integers(0, min(free, 5)))
    expected = _local_by_hand(sizes, published, seen, sensitive, ell)
    for exact in (True, None):
        found = credibility_local(sizes, published, seen, sensitive, ell, exact=exact)
        assert (None if found is None else list(found.values)) == expected
    floats = credibility_local(sizes, published, seen, sensitive, ell, exact=False)
    assert (floats is None) == (expected is None)
    if floats is not None and expected is not None:
        assert list(map(float, floats.values)) == pytest.approx(list(map(float, expected)), abs=1e-12)


@given(
    st.lists(
        st.tuples(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(0, 3)),
        min_size=1,
        max_size=3,
    ),
    ELL,
)
def test_the_whole_release_agrees_with_enumeration(parts: list[tuple[list[int], int]], ell: Fraction) -> None:
    parts = [(sizes, min(s, sum(sizes))) for sizes, s in parts]
    merged = [Merged.of(sizes, s, ell) for sizes, s in parts]
    kept = [
        world
        for world in itertools.product(*(list(positive_rows(sizes, s)) for sizes, s in parts))
        if any(
            j * ell > n
            for (sizes, _), w in zip(parts, world, strict=True)
            for j, n in zip(w, sizes, strict=True)
        )
    ]
    found = credibility_release(merged)
    if not kept:
        assert found is None
        return
    assert found is not None
    for g, (sizes, _) in enumerate(parts):
        expected = [Fraction(sum(w[g][i] for w in kept), len(kept) * n) for i, n in enumerate(sizes)]
        assert list(found[g].values) == expected
    floats = credibility_release(merged, exact=False)
    assert floats is not None
    for a, b in zip(found, floats, strict=True):
        assert list(map(float, b.values)) == pytest.approx(list(map(float, a.values)), rel=1e-11, abs=1e-13)


def test_a_violation_anywhere_explains_a_full_domain_release() -> None:
    """Sizes 2 + 5 with two positives: 1 alone, less the more classes might be the reason."""
    part = Merged.of([2, 5], 2, 2)
    worst = []
    for copies in (1, 2, 20):
        found = credibility_release([part] * copies)
        assert found is not None
        worst.append(found[0].values[0])
    assert worst[0] == 1
    assert float(worst[1]) == pytest.approx(0.63, abs=0.005)
    assert float(worst[2]) == pytest.approx(0.31, abs=0.005)
    many = credibility_release([part] * 3000)
    assert many is not None and many[0].arithmetic == "float"
    assert float(many[0].values[0]) == pytest.approx(2 / 7, abs=1e-6)


@given(st.lists(st.fractions(0, 1, max_denominator=50), min_size=1, max_size=6))
def test_what_explains_a_release(violations: list[Fraction]) -> None:
    """Against every combination of classes that violate or do not; and in floating point, scaled down and not."""
    here, anywhere = [Fraction(0)] * len(violations), Fraction(0)
    for combination in itertools.product([True, False], repeat=len(violations)):
        chance = math.prod(
            (v if x else 1 - v for v, x in zip(violations, combination, strict=True)), start=Fraction(1)
        )
        anywhere += chance * any(combination)
        if sum(combination) == 1:
            here[combination.index(True)] += chance
    # the violation is in this class, and in none of the others
    expected = [x / anywhere if anywhere else Fraction(0) for x in here]
    assert violation_weights(violations) == (anywhere, expected)
    total, weights = violation_weights([float(v) for v in violations])
    assert [total, *weights] == pytest.approx(
        [float(x) for x in (anywhere, *expected)], rel=1e-12, abs=1e-300
    )
    tiny = [v / 10**1000 for v in violations]
    total, weights = violation_weights(tiny)
    summed = sum(violations)
    if summed:
        assert total / summed * 10**1000 == pytest.approx(1, rel=1e-12)
        assert [float(w) for w in weights] == pytest.approx(
            [float(v / summed) for v in violations], rel=1e-11
        )


def test_a_release_of_classes_too_unlikely_for_floating_point() -> None:
    """The likelier explanation is believed in, although both are below the smallest number."""
    merged = [
        Merged((600, 1200), 600, (595, 1200)),
        Merged((600, 1200), 600, (594, 1200)),
        Merged((3, 3), 2, (3, 3)),
    ]
    alone = [credibility_global(m.sizes, m.sensitive, caps=m.caps, exact=True) for m in merged]
    assert alone[0] and alone[1] and alone[2] is None
    first, second = Fraction(alone[0].violation), Fraction(alone[1].violation)
    assert second < Fraction(1, 10**300) and first * 100 < second
    found = credibility_release(merged)
    assert found is not None
    for i, v in enumerate((first, second)):
        weight = v / (first + second)
        expected = weight * alone[i].values[0] + (1 - weight) * Fraction(1, 3)
        assert abs(Fraction(found[i].values[0]) / expected - 1) < Fraction(found[i].relative_error)
        assert found[i].relative_error < 1e-10
    assert found[2].values == pytest.approx([1 / 3, 1 / 3])


def test_classes_that_hold_too_few_to_violate_stay_below_one_in_l() -> None:
    found = credibility_global([2, 2, 10], 5, 2)
    assert found is not None
    assert list(found.values) == [Fraction(53, 86), Fraction(53, 86), Fraction(109, 430)]
    assert found.values[2] <= Fraction(1, 2) and found.worst == Fraction(53, 86)
    assert found.sentence() == "exact"


def test_the_share_is_that_of_the_merged_class_when_every_world_is_kept() -> None:
    """Theorem 1."""
    found = credibility_global([1, 1, 3], 3, 5)
    assert found is not None and set(found.values) == {Fraction(3, 5)} and found.violation == 1


def test_w2_the_original_classes_are_tested_and_not_their_generalised_parts() -> None:
    right = credibility_local([5, 8], [4, 7], [2, 1], 1, 2)
    wrong = credibility_global([1, 1], 1, 2)
    assert right is not None and wrong is not None
    assert right.values[0] == Fraction(3, 5)
    assert (wrong.values[0] + 2) / 5 == Fraction(1, 2)


def test_w3_sensitive_rows_are_those_of_the_merged_class() -> None:
    inside, everywhere = credibility_global([2, 5], 2, 2), credibility_global([2, 5], 3, 2)
    assert inside is not None and everywhere is not None
    assert inside.values[0] == 1 and everywhere.values[0] < 1


def test_an_adult_sized_release_takes_under_a_second() -> None:
    rng = random.Random(5)  # noqa: S311 - test data
    merged, left = [], 1566
    while left > 0:  # one large rest, many small merged classes
        sizes = [rng.choice([1, 1, 1, 2, 2, 3, 5, 9]) for _ in range(rng.choice([2, 3, 6, 20, 100]))]
        sensitive = min(left, max(1, sum(sizes) // rng.choice([3, 8, 20])))
        merged.append(Merged.of(sizes, sensitive, 2))
        left -= sensitive
    merged.append(Merged.of([rng.choice([1, 1, 2, 3, 4, 7, 15, 40]) for _ in range(8000)], 800, 2))
    started = time.process_time()
    found = list(credibility_each(merged))
    together = credibility_release(merged)
    assert time.process_time() - started < 3  # measured: 0.2 s
    assert together is not None
    for part, one in zip(merged, found, strict=True):
        if one is not None:
            held = math.fsum(n * float(x) for n, x in zip(part.sizes, one.values, strict=True))
            assert held == pytest.approx(part.sensitive, rel=1e-9)
    assert {one.arithmetic for one in found if one} == {"exact", "float"}


def test_bad_input_is_refused() -> None:
    for sizes, sensitive, ell in ([0, 2], 1, 2), ([2], -1, 2), ([2], 1, 0), ([2.0], 1, 2), ([True], 1, 2):
        with pytest.raises(UsageError):
            credibility_global(sizes, sensitive, ell)
    with pytest.raises(UsageError, match="either l or the caps"):
        credibility_global([2], 1)
    with pytest.raises(UsageError, match="2 caps are given for 1 classes"):
        credibility_global([2], 1, caps=[1, 1])
    with pytest.raises(UsageError, match="more published rows"):
        credibility_local([2], [3], [0], 0, 2)
    with pytest.raises(TooManyWorlds):
        vector_table([50] * 20, 500, 2)
    assert credibility_global([2, 2], 5, 2) is None
    assert credibility_global([2, 2], 2, caps=[1, 1]) is not None


def test_the_order_of_classes_does_not_matter() -> None:
    sizes = [1, 7, 2, 2, 12, 5]
    found = credibility_global(sizes, 6, 3)
    turned = credibility_global(sizes[::-1], 6, 3)
    assert found is not None and turned is not None
    assert list(found.values) == list(turned.values)[::-1]
    assert Counter(found.values)[found.values[2]] >= 2
