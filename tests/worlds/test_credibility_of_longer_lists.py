"""A list of people that is longer than the table, against worlds chosen one by one."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.counting.credibility import (
    ListedPeople,
    credibility_global,
    credibility_listed,
    credibility_local,
)

CLASSES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)).map(
        lambda x: ListedPeople(x[0], x[1], min(x[1], x[2]))
    ),
    min_size=1,
    max_size=3,
)
SHARE = st.sampled_from([Fraction(1, 2), Fraction(1, 3), Fraction(2, 3)])


def by_hand(classes: list[ListedPeople], rows: int, sensitive: int, share: Fraction) -> list[Fraction] | None:
    """Choose who of the list is in the class, and who of those is sensitive."""
    owner = [i for i, c in enumerate(classes) for _ in range(c.candidates)]
    kept = 0
    held = [0] * len(classes)
    for chosen in itertools.combinations(range(len(owner)), rows):
        for positive in itertools.combinations(chosen, sensitive):
            m = [sum(owner[p] == i for p in chosen) for i in range(len(classes))]
            j = [sum(owner[p] == i for p in positive) for i in range(len(classes))]
            if any((c.sensitive + y) > share * (c.rows + x) for c, x, y in zip(classes, m, j, strict=True)):
                kept += 1
                held = [h + y for h, y in zip(held, j, strict=True)]
    if not kept:
        return None
    return [
        (c.sensitive + Fraction(h, kept)) / c.people if c.people else Fraction(0)
        for c, h in zip(classes, held, strict=True)
    ]


@given(CLASSES, SHARE, st.data())
def test_against_enumeration(classes: list[ListedPeople], share: Fraction, data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, min(5, sum(c.candidates for c in classes))))
    sensitive = data.draw(st.integers(0, rows))
    found = credibility_listed(classes, rows, sensitive, share)
    assert (None if found is None else found.beliefs) == by_hand(classes, rows, sensitive, share)


def test_a_list_that_is_the_table_gives_the_credibility_of_the_paper() -> None:
    sizes = [2, 2, 10]
    found = credibility_listed([ListedPeople(n) for n in sizes], 14, 5, Fraction(1, 2))
    paper = credibility_global(sizes, 5, 2)
    assert found is not None
    assert paper is not None
    assert found.beliefs == list(paper.values)
    local = credibility_local([2, 4], [0, 1], [0, 1], 2, 2)
    listed = credibility_listed([ListedPeople(2), ListedPeople(3, 1, 1)], 5, 2, Fraction(1, 2))
    assert local is not None
    assert listed is not None
    assert listed.beliefs == list(local.values)


def test_more_people_on_the_list_make_it_less_certain() -> None:
    """Two and five people merged, two HIV: certain for the two. With two more of them on the list it is not."""
    certain = credibility_listed([ListedPeople(2), ListedPeople(5)], 7, 2, Fraction(1, 2))
    assert certain is not None
    assert certain.beliefs == [1, 0]
    longer = credibility_listed([ListedPeople(4), ListedPeople(5)], 7, 2, Fraction(1, 2))
    assert longer is not None
    assert Fraction(2, 7) < longer.beliefs[0] < 1


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 3)])
def test_what_is_drawn_lies_in_its_interval(share: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = [ListedPeople(2), ListedPeople(3, 1, 1), ListedPeople(6)]
    exact = credibility_listed(classes, 8, 3, share)
    monkeypatch.setattr("maskwright.worlds.counting.credibility.STEPS", 0)
    drawn = credibility_listed(classes, 8, 3, share, draws=4_000, asked=3)
    assert exact is not None
    assert drawn is not None
    assert drawn.half < 0.06
    for a, b in zip(exact.beliefs, drawn.beliefs, strict=True):
        assert abs(a - b) <= drawn.half
    with pytest.raises(TooManyWorlds):
        credibility_listed(classes, 8, 3, share)
