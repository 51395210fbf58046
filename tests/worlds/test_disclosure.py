"""Maximum disclosure against enumeration of all worlds and all knowledge, and the errata of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.worlds.statements.disclosure import (
    Atom,
    Bucket,
    Counts,
    Ratio,
    belief_of_ratio,
    max_disclosure,
    values_by_frequency,
)
from tests.oracles.knowledge import BOB, CHARLIE, ED, FIGURE_3, HANNAH, Worlds, counted

tiny_bucket = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=4)
tiny = st.one_of(
    st.tuples(tiny_bucket),
    st.tuples(*[st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=3)] * 2),
)
counts = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "e", None]), st.integers(1, 12), min_size=1, max_size=6
)
figure_3 = [counted(bucket) for bucket in FIGURE_3]


@given(tiny, st.integers(0, 2))
def test_no_set_of_simple_implications_discloses_more_and_one_discloses_as_much(buckets, k):
    if len(buckets) == 2 and sum(map(len, buckets)) > 5:
        k = min(k, 1)
    found = max_disclosure([counted(bucket) for bucket in buckets], k)
    assert found.implications[k] == Worlds(buckets).by_implications(k)


@pytest.mark.parametrize(
    "bucket", [["a", "a", "b"], ["a", "b", "c"], ["a", None, None], ["a", "a", "b", "b"]]
)
def test_conjunctions_and_disjunctions_disclose_no_more_than_simple_implications(bucket):
    """Theorem 9, for all basic implications with up to two atoms on each side."""
    worlds = Worlds([bucket])
    sides = [c for size in (1, 2) for c in combinations(worlds.atoms, size)]
    facts = [worlds.implies(left, right) for left in sides for right in sides]
    assert worlds.largest(facts, 1) == max_disclosure([counted(bucket)], 1).implications[1]


@given(tiny, st.integers(0, 3))
def test_negations_against_enumeration(buckets, k):
    found = max_disclosure([counted(bucket) for bucket in buckets], k)
    assert found.negations[k] == Worlds(buckets).by_negations(k)


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=5), st.integers(0, 4))
def test_minimize1_against_all_sets_of_atoms(bucket, k):
    assert Bucket.of(counted(bucket), k).none(k) == Worlds([bucket]).least_none(k)


def minimize2(buckets: Sequence[Bucket], k: int) -> Ratio:
    """MINIMIZE2 as in the paper, corrected: O(|B|·k²) steps. The product finds the same from minima alone.

    It starts with A not placed; past the last bucket the result is 1 if A has been placed, infinite if not.
    """
    placed: list[Ratio] = [Fraction(1)] * (k + 1)
    open_: list[Ratio] = [None] * (k + 1)
    for bucket in reversed(buckets):
        none = [bucket.none(g) for g in range(k + 1)]
        here = [bucket.ratio(g + 1) for g in range(k + 1)]
        open_ = [
            _least([_times(here[g], placed[h - g]) for g in range(h + 1)]
                   + [_times(none[g], open_[h - g]) for g in range(h + 1)])
            for h in range(k + 1)
        ]  # fmt: skip
        placed = [_least([_times(none[g], placed[h - g]) for g in range(h + 1)]) for h in range(k + 1)]
    return open_[k]


def _times(a: Ratio, b: Ratio) -> Ratio:
    return None if a is None or b is None else a * b


def _least(ratios: Sequence[Ratio]) -> Ratio:
    return min((r for r in ratios if r is not None), default=None)


@given(st.lists(counts, max_size=5), st.integers(0, 6))
def test_independent_minima_give_what_minimize2_finds_over_different_buckets(buckets, k):
    """The lemma of the module, against the dynamic programme over buckets of the paper."""
    found = max_disclosure(buckets, k)
    rows = [Bucket.of(c, k + 1) for c in buckets]
    assert [minimize2(rows, j) for j in range(k + 1)] == list(found.ratios)


@given(counts, st.integers(1, 4), st.integers(1, 4))
def test_a_bucket_that_takes_the_atoms_of_two_discloses_no_less(bucket, g, h):
    b = Bucket.of(bucket, g + h)
    assert b.none(g + h) <= b.none(g) * b.none(h)
    if b.target:
        assert b.ratio(g + h) <= b.ratio(g) * b.none(h)


def test_a_worst_case_may_need_two_buckets():
    """The first bucket is better for two atoms, the second for A alone: R = 2/17 · (6/12)/(6/12)."""
    buckets = [{"a": 8, "b": 7, "c": 1, "d": 1}, {"a": 6, "b": 4, "c": 1, "d": 1}]
    found = max_disclosure(buckets, 2)
    assert found.implications[2] == Fraction(17, 19)
    assert max(max_disclosure([b], 2).implications[2] for b in buckets) == Fraction(8, 9)
    witness = found.witness(2)
    assert witness.target == Atom(1, 0, "a")
    assert witness.antecedents == (Atom(0, 0, "a"), Atom(0, 0, "b"))


@given(tiny, st.integers(0, 4))
def test_the_witness_brings_about_what_it_claims(buckets, k):
    found = max_disclosure([counted(bucket) for bucket in buckets], k)
    witness = found.witness(k)
    if all(value is None for bucket in buckets for value in bucket):
        assert witness is None and found.implications[k] == 0
        return
    assert len(witness.antecedents) <= k
    assert witness.target.value is not None
    assert Worlds(buckets).of_witness(witness) == found.implications[k] == witness.belief


@given(st.lists(counts, min_size=2, max_size=4), st.integers(0, 5))
def test_merging_buckets_never_raises_maximum_disclosure(buckets, k):
    """Theorem 14."""
    first, second, *rest = buckets
    union = {value: first.get(value, 0) + second.get(value, 0) for value in {**first, **second}}
    before, after = max_disclosure(buckets, k), max_disclosure([union, *rest], k)
    assert all(a <= b for a, b in zip(after.implications, before.implications, strict=True))


@given(st.lists(counts, min_size=1, max_size=4), st.integers(0, 5))
def test_more_knowledge_never_discloses_less(buckets, k):
    curve = max_disclosure(buckets, k).implications
    assert list(curve) == sorted(curve)


def test_figure_3_as_the_text_tells_it():
    worlds = Worlds(FIGURE_3)
    ed = Atom(*ED, "lung cancer")
    assert worlds.belief(ed, []) == Fraction(2, 5)
    not_mumps = worlds.implies([Atom(*ED, "mumps")], [ed])
    assert worlds.belief(ed, [not_mumps]) == Fraction(1, 2)
    not_flu = worlds.implies([Atom(*ED, "flu")], [ed])
    assert worlds.belief(ed, [not_mumps, not_flu]) == 1
    charlie = Atom(*CHARLIE, "flu")
    assert worlds.belief(charlie, [worlds.implies([Atom(*HANNAH, "flu")], [charlie])]) == Fraction(10, 19)


def test_m1_figure_3_with_one_implication_discloses_two_thirds_by_one_person():
    found = max_disclosure(figure_3, 2)
    assert found.implications == (Fraction(2, 5), Fraction(2, 3), Fraction(1))
    witness = found.witness(1)
    assert witness.antecedents[0][:2] == witness.target[:2]
    worlds = Worlds(FIGURE_3)
    assert worlds.of_witness(witness) == Fraction(2, 3)
    target = Atom(*BOB, "flu")
    named = worlds.belief(target, [worlds.implies([Atom(*CHARLIE, "lung cancer")], [target])])
    assert named == Fraction(1, 2)
    two_people = [
        worlds.belief(a, [worlds.implies([b], [a])])
        for a in worlds.atoms
        for b in worlds.atoms
        if a[:2] != b[:2]
    ]
    assert max(two_people) == Fraction(4, 7)
    simple = {
        worlds.belief(target, [worlds.implies([a], [b])])
        for a in worlds.atoms
        for b in worlds.atoms
        for target in worlds.atoms
    }
    assert Fraction(5, 8) not in simple


def printed_minimize2(buckets, i, h, placed, end):
    """The algorithm as the paper prints it; `end` is what it returns after the last bucket."""
    if i == len(buckets):
        return end(placed)
    b = buckets[i]
    ways = []
    for g in range(h + 1):
        ways.append(b.none(g) * printed_minimize2(buckets, i + 1, h - g, placed, end))
        if not placed:
            ways.append(b.ratio(g + 1) * printed_minimize2(buckets, i + 1, h - g, True, end))
    return min(ways)


def test_m2_and_m3_the_start_and_the_end_of_minimize2():
    rows = [Bucket.of(c, 3) for c in figure_3]
    infinite = float("inf")
    assert printed_minimize2(rows, 0, 1, False, lambda placed: infinite) == infinite
    assert printed_minimize2(rows, 0, 1, True, lambda placed: infinite) == infinite
    wrong_start = printed_minimize2(rows, 0, 1, True, lambda placed: Fraction(1))
    assert (wrong_start, belief_of_ratio(wrong_start)) == (Fraction(3, 5), Fraction(5, 8))
    for k in range(3):
        right = printed_minimize2(rows, 0, k, False, lambda placed: Fraction(1) if placed else infinite)
        assert right == minimize2(rows, k) == max_disclosure(figure_3, k).ratios[k]


def test_m4_more_atoms_than_people_or_values_add_nothing():
    one = Bucket.of({"a": 1}, 6)
    assert [one.none(k) for k in range(7)] == [1, 0, 0, 0, 0, 0, 0]
    pair = Bucket.of({"a": 1, "b": 1}, 6)
    assert [pair.none(k) for k in range(7)] == [1, Fraction(1, 2), 0, 0, 0, 0, 0]
    missing = Bucket.of({None: 2}, 3)
    assert [missing.ratio(k) for k in range(1, 4)] == [None, None, None]
    assert Bucket.of({}, 3).none(3) == 1
    # three people denied a value that three of four hold: 1/4 · 0/3 · (−1)/2, which counts as 0
    assert Bucket.of({"a": 3, "b": 1}, 3).none(3) == 0


def test_m5_negations_never_disclose_more_and_may_disclose_as_much():
    found = max_disclosure(figure_3, 1)
    assert found.negations == found.implications == (Fraction(2, 5), Fraction(2, 3))
    apart = max_disclosure([{"x": 2, "y": 1, "z": 1}], 1)
    assert (apart.negations[1], apart.implications[1]) == (Fraction(2, 3), Fraction(3, 4))


@given(st.lists(counts, min_size=1, max_size=4), st.integers(0, 5))
def test_m5_negations_never_disclose_more(buckets, k):
    found = max_disclosure(buckets, k)
    assert all(n <= i for n, i in zip(found.negations, found.implications, strict=True))


def test_m6_minimize2_takes_quadratic_time_in_k(monkeypatch):
    steps = []
    times = _times
    monkeypatch.setitem(globals(), "_times", lambda a, b: steps.append(1) or times(a, b))

    def count(buckets: int, k: int) -> int:
        steps.clear()
        minimize2([Bucket.of({"a": 3, "b": 2, "c": 2}, k + 1)] * buckets, k)
        return len(steps)

    for buckets in (1, 5):
        for k in (0, 3, 12):
            assert count(buckets, k) == buckets * 3 * (k + 1) * (k + 2) // 2


def test_values_are_ranked_with_missing_last_among_equals():
    assert values_by_frequency({None: 2, "a": 2, "b": 3, "c": 0}) == ["b", "a", None]


def test_missing_may_be_known_but_is_nothing_to_learn():
    bucket: Counts = {None: 6, "a": 1, "b": 1}
    found = max_disclosure([bucket], 1)
    assert found.implications == (Fraction(1, 8), Fraction(1, 2))
    witness = found.witness(1)
    assert witness.target == Atom(0, 0, "a")
    assert witness.antecedents == (Atom(0, 0, None),)
    assert "does not have a missing value" in witness.in_words()


def test_no_buckets_disclose_nothing():
    found = max_disclosure([], 3)
    assert found.implications == found.negations == (0, 0, 0, 0)
    assert found.witness(3) is None


def test_a_witness_in_words():
    one_person = max_disclosure(figure_3, 1).witness(1)
    assert one_person.in_words({BOB: "Bob"}) == (
        "knowing that Bob does not have lung cancer: the belief that Bob has flu is 66.67 % (2/3)"
    )
    two = max_disclosure([{"x": 2, "y": 1, "z": 1}], 1).witness(1)
    assert two.in_words() == (
        "knowing that if person 2 of group 1 has x, then person 1 of group 1 has x: "
        "the belief that person 1 of group 1 has x is 75 % (3/4)"
    )
    nothing = max_disclosure(figure_3, 0).witness(0)
    assert nothing.in_words({BOB: "Bob"}) == "the belief that Bob has flu is 40 % (2/5)"
