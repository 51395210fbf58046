"""The kernel and its twin give the same floats; the answers are exact, however many buckets and ties there are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.live_disclosure import LiveDisclosure
from maskwright.domain.classes import ValueCounts
from maskwright.errors import UsageError
from maskwright.kernels import max_disclosure as kernel
from maskwright.kernels import max_disclosure as search
from maskwright.worlds.statements import disclosure as exact
from maskwright.worlds.statements.disclosure import Bucket
from tests.oracles.knowledge import packed

needs_compiler = pytest.mark.skipif(kernel.compiled is None, reason="the kernel was not compiled")
twins = pytest.mark.parametrize("module", [pytest.param(kernel.compiled, marks=needs_compiler, id="C"), None])
counts = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "e", "f", None]),
    st.one_of(st.integers(1, 4), st.integers(1, 40), st.integers(1, 10**12)),
    min_size=0,
    max_size=7,
)
many = st.lists(counts, max_size=12)


def same(found: exact.Disclosure, wanted: exact.Disclosure) -> bool:
    return found.ratios == wanted.ratios and found.negations == wanted.negations


@needs_compiler
@given(many, st.integers(0, 14))
def test_both_twins_give_the_same_bits(buckets, k):
    vc = packed(buckets)
    a, b = (kernel.rank_buckets(vc, 0, len(buckets), k + 1, module) for module in (kernel.compiled, None))
    for mine, theirs in zip(vars(a).values(), vars(b).values(), strict=True):
        assert mine.dtype == theirs.dtype and (mine == theirs).all()
    for mine, theirs in zip(
        kernel.bucket_minima(a, kernel.compiled), kernel.bucket_minima(a, None), strict=True
    ):
        assert mine.tobytes() == theirs.tobytes()


@twins
@given(many, st.integers(0, 8))
def test_floats_are_within_the_stated_error(module, buckets, k):
    vc = packed(buckets)
    table = kernel.bucket_columns(kernel.rank_buckets(vc, 0, len(buckets), k + 1, module), module)
    for b, bucket in enumerate(buckets):
        for c, value in enumerate(exact.bucket_columns(Bucket.of(bucket, k + 1), k)):
            if value is None:
                assert table[c, b] == np.inf
            else:
                assert abs(Fraction(float(table[c, b])) - value) <= Fraction(kernel.relative_error(k)) * value


@twins
@given(many, st.integers(0, 6))
def test_many_buckets_give_what_fractions_give(module, buckets, k):
    found, wanted = search.max_disclosure(packed(buckets), k, module), exact.max_disclosure(buckets, k)
    assert same(found, wanted)
    witness = found.witness(k)
    assert (witness is None) == (wanted.witness(k) is None)
    if witness is not None:
        assert len(witness.antecedents) <= k
        assert recomputed(buckets, witness) == found.implications[k]


def recomputed(buckets, witness) -> Fraction:
    """P(A | each antecedent → A) = P(A) / (P(A) + P(no atom)), bucket by bucket."""
    denied: dict[int, dict[int, set]] = {}
    for atom in (witness.target, *witness.antecedents):
        denied.setdefault(atom.bucket, {}).setdefault(atom.person, set()).add(atom.value)
    none = Fraction(1)
    for b, people in denied.items():
        total = sum(buckets[b].values())
        for i, values in enumerate(sorted(people.values(), key=len, reverse=True)):  # nested sets
            left = total - i - sum(buckets[b][value] for value in values)
            none *= Fraction(max(left, 0), total - i)
    home = buckets[witness.target.bucket]
    target = Fraction(home[witness.target.value], sum(home.values()))
    return target / (target + none)


@twins
def test_near_ties_beyond_the_precision_of_floats_are_decided_exactly(module):
    """Quotients of Fibonacci numbers differ by 1e-24: as floats they are one number."""
    f = [1, 1]
    while len(f) < 60:
        f.append(f[-1] + f[-2])
    buckets = [{"a": f[i], "b": f[i + 1] - f[i]} for i in range(55, 59)]
    shares = [Fraction(bucket["a"], sum(bucket.values())) for bucket in buckets]
    assert len(set(shares)) == 4 and len(set(map(float, shares))) == 1
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        vc = packed([buckets[i] for i in order])
        assert search.max_disclosure(vc, 0, module).implications[0] == max(shares)
        for c in shares:
            fails = search.measure_disclosure(vc, 0, c, module)[2]
            assert fails.tolist() == [shares[i] >= c for i in order]


@twins
def test_exact_ties_between_many_different_buckets_are_settled_in_sets(module, monkeypatch):
    """Equal size and top count, different tails: all tie, and few are looked at one by one."""
    rng = np.random.default_rng(1)
    rows = 40_000
    tails = rng.integers(50, 110, (rows, 20))
    table = np.column_stack([np.full(rows, 2000), tails, 2000 - tails.sum(axis=1)]).astype(np.int64)
    table = table[table[:, -1] > 0]
    width = table.shape[1]
    vc = ValueCounts(
        tuple(map(str, range(width))), np.arange(0, table.size + 1, width),
        np.tile(np.arange(1, width + 1, dtype=np.int32), len(table)), table.ravel(),
    )  # fmt: skip
    looks = []
    bound_of = search.bound_of
    monkeypatch.setattr(search, "bound_of", lambda *args: looks.append(1) or bound_of(*args))
    found = search.max_disclosure(vc, 3, module)
    assert len(looks) < 2000
    some = [vc.of_class(int(b)) for b in rng.choice(len(table), 200, replace=False)]
    alone = exact.max_disclosure(some, 3)
    assert found.implications[:3] == alone.implications[:3]  # all atoms deny the one frequent value
    assert found.implications[3] >= alone.implications[3]


@twins
def test_floats_that_underflow_do_not_decide(module):
    """With 61 atoms and 10^12 people nearly all of one value, products near 1e-600 become 0 as floats."""
    buckets = [{"a": 10**12, **{f"v{i}": 1 for i in range(n)}} for n in (71, 70, 72)]
    table = kernel.bucket_columns(kernel.rank_buckets(packed(buckets), 0, 3, 61, module), module)
    found = search.max_disclosure(packed(buckets), 60, module)
    assert (table[59] == 0).all() and found.ratios[60] > 0
    assert found.ratios == exact.max_disclosure(buckets, 60).ratios


@twins
@given(many, st.integers(0, 4), st.fractions(min_value="1/50", max_value=1, max_denominator=50))
def test_which_buckets_reach_c_alone(module, buckets, k, c):
    disclosure, alone, fails = search.measure_disclosure(packed(buckets), k, c, module)
    wanted = [exact.max_disclosure([bucket], k).implications[k] for bucket in buckets]
    assert list(alone) == wanted
    assert fails.tolist() == [belief >= c for belief in wanted]
    assert np.allclose(alone.floats(), [float(w) for w in wanted], rtol=1e-12)
    for on_the_edge in {w for w in wanted if w > 0}:
        again = search.measure_disclosure(packed(buckets), k, on_the_edge, module)[2]
        assert again.tolist() == [belief >= on_the_edge for belief in wanted]
    assert same(disclosure, exact.max_disclosure(buckets, k))


@twins
def test_many_portions_give_what_one_gives(module, monkeypatch):
    rng = np.random.default_rng(7)
    buckets = [{v: int(n) for v, n in zip("abcdef", rng.integers(1, 30, 6), strict=True)} for _ in range(700)]
    whole = search.max_disclosure(packed(buckets), 4, module)
    monkeypatch.setattr(kernel, "CHUNK", 64)
    parts = search.max_disclosure(packed(buckets), 4, module)
    assert same(parts, whole) and same(whole, exact.max_disclosure(buckets, 4))


@needs_compiler
def test_the_kernel_refuses_arrays_that_do_not_fit():
    module = kernel.compiled
    start, codes, people = np.array([0, 2]), np.array([1, 2], np.int32), np.array([3, 4])
    out = (np.empty(1, np.int64), np.empty((3, 1), np.int64), np.empty(1, np.int64), np.empty(1, bool))
    with pytest.raises(ValueError, match="do not fit"):
        module.rank(start, codes, people, 0, 2, 2, *out)
    with pytest.raises(ValueError, match="out of range"):
        module.rank(np.array([0, 9]), codes, people, 0, 1, 2, *out)
    with pytest.raises(ValueError, match="do not fit"):
        module.minima(out[0], out[1], 5, np.empty((3, 1)), np.empty((3, 1)))
    with pytest.raises(ValueError, match="contiguous"):
        module.minima(np.zeros((2, 2), np.int64)[:, 0], out[1], 2, np.empty((3, 1)), np.empty((3, 1)))


def test_too_many_people_for_exact_floats_are_refused():
    with pytest.raises(OverflowError):
        search.max_disclosure(packed([{"a": 2**53}]), 1)


changes = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "merge"]), st.lists(counts, min_size=1, max_size=3), st.randoms()
    ),
    max_size=6,
)


@twins
@given(many, changes, st.integers(0, 4))
def test_a_live_disclosure_equals_one_from_scratch_after_every_change(module, buckets, changes, k):
    live = LiveDisclosure(packed(buckets), k, module)
    there = dict(enumerate(buckets))
    for what, new, random in changes:
        chosen = random.sample(sorted(there), min(len(there), random.randint(1, 3)))
        if what == "add" or not chosen:
            there.update(zip(live.add(new), new, strict=True))
        elif what == "remove":
            live.remove(chosen)
            for b in chosen:
                del there[b]
        else:
            union: dict[str | None, int] = {}
            for b in chosen:
                for value, n in there.pop(b).items():
                    union[value] = union.get(value, 0) + n
            there[live.merge(chosen)] = union
        found = live.disclosure()
        assert same(found, exact.max_disclosure(list(there.values()), k))
        assert {b for plan in found.plans for b, _ in plan} <= there.keys()
        if (witness := found.witness(k)) is not None:
            assert recomputed(there, witness) == found.implications[k]


def test_a_live_disclosure_over_many_blocks():
    rng = np.random.default_rng(3)
    buckets = [
        {v: int(n) for v, n in zip("abcdef", rng.integers(1, 40, 6), strict=True)} for _ in range(3000)
    ]
    live = LiveDisclosure(packed(buckets), 3)
    there = dict(enumerate(buckets))
    for _ in range(40):
        worst = [b for b, _ in live.disclosure().plans[3]]
        live.remove(worst)
        for b in worst:
            del there[b]
    assert same(live.disclosure(), search.max_disclosure(packed(list(there.values())), 3))


def test_a_live_disclosure_refuses_buckets_it_does_not_have():
    live = LiveDisclosure(packed([{"a": 1, "b": 2}, {"a": 2}]), 1)
    live.remove([0])
    for call in (lambda: live.remove([0]), lambda: live.merge([1, 7]), lambda: live.counts_of(-1)):
        with pytest.raises(UsageError, match="no bucket"):
            call()
    with pytest.raises(UsageError, match="twice"):
        live.remove([1, 1])
    with pytest.raises(UsageError, match="at least one"):
        live.merge([])
    live.remove([1])
    assert live.disclosure().implications == (0, 0)
