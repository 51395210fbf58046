"""Known visits against brute force: multisets of classes, subsets counted one by one."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain import known_visits as module
from maskwright.domain.known_visits import every_visit, known_visits
from maskwright.errors import PolicyError

PEOPLE = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=1, max_size=6)


def entries(people: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Person, class and rows."""
    found = [(p, g, n) for p, visits in enumerate(people) for g, n in Counter(visits).items()]
    return tuple(np.array(column, dtype=np.int64) for column in zip(*found, strict=True))  # type: ignore[return-value]


@given(PEOPLE, st.integers(1, 3))
def test_every_set_of_visits_and_who_matches(people: list[list[int]], most: int) -> None:
    found = list(known_visits(*entries(people), most))
    assert [f.visits for f in found] == list(range(1, min(most, max(map(len, people))) + 1))
    for level in found:
        sets = {
            (p, tuple(sorted(chosen)))
            for p, visits in enumerate(people)
            for chosen in combinations(visits, level.visits)
        }
        counts = {s: sum(not Counter(s) - Counter(visits) for visits in people) for _, s in sets}
        mine = Counter((p, counts[s]) for p, s in sets)
        theirs = zip(level.person.tolist(), level.matches[level.known].tolist(), strict=True)
        assert Counter(theirs) == mine and level.fewest == min(counts.values())
        assert level.found == len({p for p, s in sets if counts[s] == 1})


@given(PEOPLE)
def test_whole_histories(people: list[list[int]]) -> None:
    found = every_visit(*entries(people))
    alike = Counter(tuple(sorted(visits)) for visits in people)
    assert found.matches[found.known].tolist() == [
        alike[tuple(sorted(people[p]))] for p in found.person.tolist()
    ]


def test_k_to_the_m_of_the_literature() -> None:
    """{abc, ab, ac, bc}: every pair is in two sets, the triple in one."""
    found = list(known_visits(*entries([[0, 1, 2], [0, 1], [0, 2], [1, 2]]), 3))
    assert [level.fewest for level in found] == [3, 2, 1]


def test_too_many_sets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENTRIES", 5)
    with pytest.raises(PolicyError, match="too many to count; keep fewer rows"):
        list(known_visits(*entries([[0, 1, 2, 3]] * 2), 2))
