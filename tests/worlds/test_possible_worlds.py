"""Belief of an adversary who can run the method, for every known method; errata C-3 … C-5, C-13, C-14, C-16."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.counting.credibility import credibility_global
from maskwright.worlds.counting.group_beliefs import greedy_group, randomised_group
from maskwright.worlds.reference_methods import (
    ReferenceMondrian,
    anatomy_counts,
    anatomy_publications,
    first_row_anatomy,
    global_recoding,
    greedy_grouping,
    randomised_greedy,
    symmetric_grouping,
)
from maskwright.worlds.sampling.possible_worlds import (
    as_publication,
    deterministic_likelihood,
    posterior_beliefs,
    randomised_likelihood,
)
from tests.oracles.worlds import at_most_one_in, beliefs, binary, dealt, distinct

Method = Callable[[Sequence[Any]], Any]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[int]], list[str]]:
    n = draw(st.integers(1, 6))
    qi = [[draw(st.integers(0, 3)), draw(st.integers(0, 3))] for _ in range(n)]
    return qi, draw(st.lists(st.sampled_from("PNM"), min_size=n, max_size=n))


def methods(qi: list[list[int]], passes: Callable[[Any], bool]) -> dict[str, Method]:
    found: dict[str, Method] = {
        "gg": lambda sa: greedy_grouping(qi, sa, passes, 2),
        "gg by rows": lambda sa: greedy_grouping(qi, sa, passes),
        "sg": lambda sa: symmetric_grouping(qi, sa, passes, 1),
        "global": lambda sa: global_recoding(qi, sa, passes),
    }
    for strict, policy, side in itertools.product((True, False), ("widest", "fallback"), ("lt", "le")):
        mondrian = ReferenceMondrian(strict, policy, side)
        found[f"mondrian {strict} {policy} {side}"] = lambda sa, m=mondrian: m.group(qi, sa, passes)
    return found


@given(tables(), st.sampled_from([at_most_one_in(2), binary(2), distinct(2)]), st.data())
def test_every_deterministic_method(table: Any, passes: Callable[[Any], bool], data: st.DataObject) -> None:
    qi, sa = table
    name = data.draw(st.sampled_from(sorted(methods(qi, passes))))
    method = methods(qi, passes)[name]
    published = [sorted(g) for g in method(sa)]
    if not published:
        return
    found = posterior_beliefs(sa, published, deterministic_likelihood(method))
    rows = [(g, [sa[i] for i in g]) for g in published]
    worlds = []
    for world in dealt(rows):
        values = [world.get(i, sa[i]) for i in range(len(sa))]
        same = {frozenset(g) for g in method(values)} == {frozenset(g) for g in published}
        worlds.append((world, Fraction(int(same))))
    expected = beliefs(worlds)
    assert expected is not None and found.beliefs is not None  # the true table is one of the worlds
    assert found.worlds == len(worlds) and found.consistent == sum(w for _, w in worlds)
    assert found.beliefs == [expected.get(i, {}) for i in range(len(sa))]
    for i, row in enumerate(found.beliefs):
        assert not row or (sum(row.values()) == 1 and row[sa[i]] > 0)


@given(tables(), st.fractions(0, 1, max_denominator=4), st.data())
def test_randomised_greedy_grouping(table: Any, p: Fraction, data: st.DataObject) -> None:
    qi, sa = table
    passes = at_most_one_in(2)
    everything = randomised_greedy(qi, sa, passes, 2, p)
    assert sum(everything.values()) == 1
    seen = data.draw(st.sampled_from(sorted(everything, key=repr)))
    assert randomised_greedy(qi, sa, passes, 2, p, seen) == {seen: everything[seen]}
    if p == 0:
        assert everything == {as_publication(greedy_grouping(qi, sa, passes, 2)): 1}
    if seen:
        slow = posterior_beliefs(
            sa, seen, randomised_likelihood(lambda values: randomised_greedy(qi, values, passes, 2, p))
        )
        fast = posterior_beliefs(sa, seen, lambda v, g: randomised_greedy(qi, v, passes, 2, p, g).get(g, 0))
        assert slow == fast and slow.consistent > 0


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), st.integers(1, 3), st.data())
def test_anatomy_with_random_picks_gives_nothing_away(sa: list[str], ell: int, data: st.DataObject) -> None:
    """Claim 4 of the paper: belief is the share in the group."""
    everything = anatomy_publications(sa, ell)
    eligible = all(c * ell <= len(sa) for c in Counter(sa).values())
    assert sum(everything.values()) <= 1
    assert sum(everything.values()) == 1 or not eligible
    if not everything:
        return
    seen = data.draw(st.sampled_from(sorted(everything, key=repr)))
    assert anatomy_publications(sa, ell, seen) == {seen: everything[seen]}
    found = posterior_beliefs(
        sa, seen, lambda values, groups: anatomy_publications(values, ell, groups).get(groups, 0)
    )
    assert found.beliefs is not None
    if eligible:
        for group in seen:
            share = {v: Fraction(c, len(group)) for v, c in Counter(sa[i] for i in group).items()}
            assert all(found.beliefs[i] == share for i in group)


def test_c13_anatomy_that_picks_first_rows_leaks() -> None:
    sa = ["a", "b", "b", "a", "a", "c"]
    worst = Fraction(0)
    for values in sorted(set(itertools.permutations(sa))):
        groups = first_row_anatomy(values, 2)
        assert groups is not None
        found = posterior_beliefs(
            values, groups, lambda v, seen: int(as_publication(first_row_anatomy(v, 2) or ()) == seen)
        )
        assert found.beliefs is not None
        worst = max(worst, *(p for row in found.beliefs for p in row.values()))
    assert worst == 1


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 4))
def test_anatomy_on_frequencies_is_anatomy_on_rows(frequencies: list[int], ell: int) -> None:
    rounds, left = anatomy_counts(frequencies, ell)
    assert sum(frequencies) == rounds * ell + sum(left) and len(left) < ell
    values = [v for v, f in enumerate(frequencies) for _ in range(f)]
    groups = first_row_anatomy(values, ell)
    if groups is not None:
        assert len(groups) == rounds
    if max(frequencies) * ell <= sum(frequencies):
        assert groups is not None and set(left) <= {1}


@pytest.mark.parametrize(("ell", "buckets"), [(2, 2), (2, 3), (3, 2), (3, 3)])
def test_running_greedy_grouping_agrees_with_its_formula(ell: int, buckets: int) -> None:
    n = ell * buckets
    sa = ["P"] * buckets + ["N"] * (n - buckets)
    qi = [[i] for i in range(n)]
    found = posterior_beliefs(
        sa, [range(n)], deterministic_likelihood(lambda v: greedy_grouping(qi, v, binary(ell), ell))
    )
    assert found.beliefs is not None
    assert [found.beliefs[b * ell].get("P", 0) for b in range(buckets)] == greedy_group(ell, buckets).beliefs


def test_running_randomised_greedy_agrees_with_its_formula() -> None:
    p, qi = Fraction(2, 5), [[i] for i in range(6)]
    for positives in range(1, 4):
        sa = ["P"] * positives + ["N"] * (6 - positives)
        found = posterior_beliefs(
            sa, [range(6)], lambda v, g: randomised_greedy(qi, v, binary(2), 2, p, g).get(g, 0)
        )
        expected = randomised_group(2, 3, positives, p)
        assert found.beliefs is not None and expected is not None
        assert [found.beliefs[2 * b].get("P", 0) for b in range(3)] == expected


def test_global_recoding_agrees_with_its_formula() -> None:
    qi, sa = [["a"]] * 2 + [["b"]] * 2 + [["c"]] * 3, ["P", "P", "N", "N", "P", "N", "N"]
    found = posterior_beliefs(
        sa, [range(7)], deterministic_likelihood(lambda v: global_recoding(qi, v, binary(2)))
    )
    formula = credibility_global([2, 2, 3], 3, 2)
    assert found.beliefs is not None and formula is not None
    assert [found.beliefs[i]["P"] for i in (0, 2, 4)] == list(formula.values)


def test_c3_a_second_dimension_after_a_refusal_leaks() -> None:
    qi = [[0, 6], [1, 0], [2, 1], [3, 2], [4, 3], [5, 4], [6, 5]]
    sa = ["N"] * 5 + ["P"] * 2
    worst = {}
    for policy in ("widest", "fallback"):
        mondrian = ReferenceMondrian(False, policy, min_child=2)
        found = posterior_beliefs(
            sa, [range(7)], deterministic_likelihood(lambda v, m=mondrian: m.group(qi, v, binary(2)))
        )
        assert found.beliefs is not None
        worst[policy] = max(row.get("P", Fraction(0)) for row in found.beliefs)
    assert worst["fallback"] == 1
    assert worst["widest"] <= Fraction(2, 3)  # 1/(l − ½)


def test_c4_row_by_row_a_negative_row_is_a_group() -> None:
    qi = [[i] for i in range(4)]
    assert greedy_grouping(qi, "NPNN", binary(2)) == [[0], [1, 2], [3]]
    assert greedy_grouping(qi, "NPNN", binary(2), 2) == [[0, 1], [2, 3]]


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=12), st.integers(1, 3))
def test_both_variants_of_greedy_grouping_coincide_for_simple_diversity(sa: list[str], ell: int) -> None:
    qi = [[i] for i in range(len(sa))]
    by_rows, by_buckets = (greedy_grouping(qi, sa, at_most_one_in(ell), size) for size in (1, ell))
    assert by_rows == by_buckets


def test_c5_without_a_least_size_halving_leaks() -> None:
    qi, sa = [[1], [2], [3]], ["N", "N", "P"]
    worst = []
    for least in (0, 2):
        found = posterior_beliefs(
            sa,
            [range(3)],
            deterministic_likelihood(lambda v, k=least: symmetric_grouping(qi, v, binary(2), k)),
        )
        assert found.beliefs is not None
        worst.append(max(row.get("P", Fraction(0)) for row in found.beliefs))
    assert worst == [1, Fraction(1, 3)]


def test_c14_the_posterior_distance_reaches_three_times_t() -> None:
    """One positive in four, t = 1/4: a group may hold at most half of positives, and belief becomes 1."""
    qi, sa = [[i] for i in range(4)], ["P", "N", "N", "N"]

    def close(counts: Any) -> bool:
        return abs(Fraction(counts.get("P", 0), sum(counts.values())) - Fraction(1, 4)) <= Fraction(1, 4)

    groups = greedy_grouping(qi, sa, close)
    found = posterior_beliefs(sa, groups, deterministic_likelihood(lambda v: greedy_grouping(qi, v, close)))
    assert found.beliefs is not None and groups == [[0, 1], [2], [3]]
    assert found.beliefs[0] == {"P": 1} and found.beliefs[0]["P"] - Fraction(1, 4) == 3 * Fraction(1, 4)


def test_c16_anatomy_inside_a_group_whose_split_was_refused_leaks() -> None:
    """Two p among six rows, refused because both are in one half: half of the releases give belief 1."""
    qi = [[i] for i in range(6)]

    def method(values: Sequence[str]) -> dict[Any, Fraction]:
        if len(symmetric_grouping(qi, values, at_most_one_in(2), 2)) > 1:
            return {}
        return anatomy_publications(values, 2)

    certain = {}
    for order in ("ppabcd", "ppbacd", "ppcabd", "ppdabc"):  # who else is in the half of the two p
        releases = method(order)
        assert sum(releases.values()) == 1
        certain[order[2]] = Fraction(0)
        for seen, chance in releases.items():
            found = posterior_beliefs(order, seen, randomised_likelihood(method))
            assert found.beliefs is not None
            if any(row.get("p") == 1 for row in found.beliefs):
                certain[order[2]] += chance
    assert certain == {"a": 1, "b": 0, "c": 0, "d": 1}


def test_lemma_a_balanced_splits_give_nothing_away() -> None:
    """Equal halves and one split per group: belief is the share, whatever the model."""
    qi = [[i] for i in range(8)]
    for passes in (at_most_one_in(2), binary(3), distinct(3)):
        for sa in ("PPNNMMNN", "PNPNMMPN", "PPPPNNNM"):
            groups = symmetric_grouping(qi, sa, passes)
            found = posterior_beliefs(
                sa, groups, deterministic_likelihood(lambda v, t=passes: symmetric_grouping(qi, v, t))
            )
            assert found.beliefs is not None
            for group in groups:
                share = {v: Fraction(c, len(group)) for v, c in Counter(sa[i] for i in group).items()}
                assert all(found.beliefs[i] == share for i in group)


def test_strict_mondrian_leaks_and_relaxed_with_one_dimension_does_not() -> None:
    qi, sa = [[1], [2], [3], [3], [3], [4]], ["P", "P", "N", "N", "N", "N"]
    strict, relaxed = ReferenceMondrian(True), ReferenceMondrian(False, "widest", min_child=2)
    for mondrian, expected in ((strict, 1), (relaxed, Fraction(1, 3))):
        found = posterior_beliefs(
            sa, [range(6)], deterministic_likelihood(lambda v, m=mondrian: m.group(qi, v, binary(2)))
        )
        assert found.beliefs is not None and found.beliefs[0]["P"] == expected


def test_a_release_that_the_method_cannot_make_has_no_beliefs() -> None:
    qi = [[0], [1]]
    found = posterior_beliefs(
        "PN", [[0], [1]], deterministic_likelihood(lambda v: greedy_grouping(qi, v, at_most_one_in(2), 2))
    )
    assert (found.worlds, found.consistent, found.beliefs) == (1, 0, None)


def test_bad_input_is_refused() -> None:
    never = deterministic_likelihood(lambda v: [])
    for groups in ([[0, 0]], [[0], [0]], [[5]], [[]]):
        with pytest.raises(UsageError):
            posterior_beliefs("ab", groups, never)
    with pytest.raises(TooManyWorlds, match="possible worlds are too many"):
        posterior_beliefs([str(i) for i in range(12)], [range(12)], never)
    with pytest.raises(UsageError):
        greedy_grouping([[0]], "a", distinct(1), 0)
