"""Credibility under the minimality attack equals what enumerating every possible world gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.classes import Originals
from maskwright.domain.model import Context
from maskwright.errors import PolicyError
from maskwright.worlds.counting import general_credibility
from maskwright.worlds.counting.credibility import credibility_global
from maskwright.worlds.counting.general_credibility import several_sets_credibility
from tests.models.build import classes_of, model
from tests.oracles.worlds import credibility_of_sets


def one_set(sizes: Sequence[int], held: int, ell: Fraction) -> list[Fraction] | None:
    found = credibility_global(sizes, held, ell)
    return None if found is None else [Fraction(x) for x in found.values]


problems = st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda sizes: sum(sizes) <= 7)
ratio = st.fractions(1, 4, max_denominator=2)


@given(st.data(), problems, ratio)
def test_several_sets(data: st.DataObject, sizes: list[int], ell: Fraction) -> None:
    held: list[int] = []
    for _ in range(data.draw(st.integers(1, 4))):
        left = sum(sizes) - sum(held)
        if left:
            held.append(data.draw(st.integers(1, left)))
    assert several_sets_credibility(sizes, held, ell) == credibility_of_sets(sizes, held, ell)


def test_one_set_too_unlikely_for_floating_point() -> None:
    """Part of a class is elsewhere; the probabilities that are added up are all below the smallest number."""
    case = ([600, 1200], [597, 1200], 600, [general_credibility.OtherClass({0: 3}, 40, 9)])
    exact, floats = (
        general_credibility.one_set_credibility(*case, exact=True),
        general_credibility.one_set_credibility(*case, exact=False),
    )
    assert exact is not None and floats is not None
    assert exact.violation < Fraction(1, 10**300)
    assert 0 < floats.relative_error < 1e-10
    assert abs(Fraction(floats.violation) / Fraction(exact.violation) - 1) < floats.relative_error
    for found, expected in zip(floats.shares, exact.shares, strict=True):
        assert isinstance(found[True], float)
        assert float(found[True]) == pytest.approx(float(expected[True]), rel=floats.relative_error)


@given(st.data(), problems, ratio)
def test_one_set(data: st.DataObject, sizes: list[int], ell: Fraction) -> None:
    held = data.draw(st.integers(1, sum(sizes)))
    expected = credibility_of_sets(sizes, [held], ell)
    assert one_set(sizes, held, ell) == (None if expected is None else [row[0] for row in expected])


def test_the_papers_tables() -> None:
    two = Fraction(2)
    assert one_set([2, 5], 2, two) == [1, 0]  # Table 1(c)
    assert one_set([2, 2, 10], 5, two) == [Fraction(53, 86), Fraction(53, 86), Fraction(109, 430)]  # Table 5
    assert one_set([4, 2], 3, two) == [Fraction(1, 2), Fraction(1, 2)]  # section 4.3
    assert one_set([4, 4], 1, two) is None  # not explained by minimality


def originals(sizes: list[int], class_of: list[int] | None = None) -> Originals:
    """Raw classes of these sizes, all in one published class unless said otherwise."""
    return Originals.of(np.array(class_of or [0] * len(sizes)), np.array(sizes), 1)


def check(groups: list[list[str]], m: object, **parameters: object) -> Fraction:
    """Credibility in one published class, from the values of the original classes in it."""
    classes = classes_of([[value for group in groups for value in group]])
    classes = replace(classes, originals=originals([len(group) for group in groups]))
    verdict = model("m-confidentiality", m=m, **parameters).check(classes, Context())
    assert verdict.ok == (verdict.values[0] * Fraction(str(m)) <= 1)
    return Fraction(verdict.values[0])


def test_m_confidentiality_sees_what_simple_diversity_does_not() -> None:
    groups = [list("aa"), list("bcdbc")]
    assert (
        check(groups, 2, sets=[["a"]]) == 1
    )  # merged, the two a's are two in seven; who knows why is certain
    assert check([list("aabcdbc")], 2, sets=[["a"]]) == Fraction(2, 7)
    # with every value sensitive a class of one violates in any world, so merging it says nothing
    assert check([list("a"), list("bcdbc")], 2) == Fraction(1, 3)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), min_size=2, max_size=3).filter(
    lambda groups: sum(map(len, groups)) <= 7))  # fmt: skip
def test_m_confidentiality_against_enumeration(groups: list[list[str]]) -> None:
    counts = Counter(value for group in groups for value in group)
    found = credibility_of_sets([len(group) for group in groups], list(counts.values()), Fraction(2))
    share = Fraction(max(counts.values()), counts.total())
    assert check(groups, 2) == (share if found is None else max(x for row in found for x in row))
    other = credibility_of_sets([len(group) for group in groups], list(counts.values()), Fraction(3, 2))
    assert check(groups, 2, l="3/2") == (share if other is None else max(x for row in other for x in row))


def test_what_cannot_be_checked_is_refused() -> None:
    classes = classes_of([list("ab")])
    m = model("m-confidentiality", m=2)
    with pytest.raises(PolicyError, match="the classes before recoding are not known"):
        m.check(classes, Context())
    with pytest.raises(PolicyError, match="rows in several classes"):
        m.check(replace(classes, originals=originals([2, 2])), Context())


def test_counting_too_many_worlds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(general_credibility, "TABLES", 1)
    with pytest.raises(PolicyError, match="too large to count"):
        check([list("aabbcc"), list("aabbcc")], 2)


def test_dropped_originals_do_not_count() -> None:
    classes = classes_of([list("aabcdbc")])
    classes = replace(classes, originals=originals([2, 5, 3], [0, 0, -1]))
    assert model("m-confidentiality", m=2, sets=[["a"]]).check(classes, Context()).worst == 1
