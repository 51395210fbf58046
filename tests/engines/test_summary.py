"""The frequency set, against counting in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.summary import Summary
from maskwright.engines.base import Engine, Reading, SensitiveSpec, SummarySpec
from maskwright.engines.sql.packed_keys import Packing, number
from maskwright.errors import HierarchyError, InputError
from tests.engines.conftest import flat
from tests.support import needs

Write = Callable[..., Path]
Row = tuple[str | None, ...]
A, B, S, T = ("a0", "a1", "a2"), ("b0", "b1"), ("s0", "s1", "s2"), ("t0", "t1")


def rows_of(people: bool) -> st.SearchStrategy[list[Row]]:
    def maybe(values: Sequence[str]) -> st.SearchStrategy[str | None]:
        return st.one_of(st.none(), st.sampled_from(values), st.sampled_from(values))

    person = st.sampled_from(["p0", "p1", "p2", "p3", "p4"]) if people else st.just("p")
    return st.lists(st.tuples(maybe(A), maybe(B), maybe(S), maybe(T), person), min_size=1, max_size=25)


def open_rows(engine: Engine, rows: Sequence[Row]) -> Any:
    pl = needs("polars")
    return engine.open(pl.DataFrame(rows, schema=dict.fromkeys("abstu", pl.String), orient="row"), Reading())


def spec(**options: Any) -> SummarySpec:
    return SummarySpec(
        [flat("a", A), flat("b", B)], [SensitiveSpec("s", S), SensitiveSpec("t", T, True)], **options
    )


def tuple_of(summary: Summary, i: int) -> Row:
    codes = summary.codes[:, i]
    return tuple(h.values[c - 1] if c else None for h, c in zip(summary.attributes, codes, strict=True))


@given(rows_of(people=False), st.booleans())
def test_rows_as_people(engine: Engine, rows: list[Row], drop: bool) -> None:
    summary = engine.summarise(open_rows(engine, rows), spec(drop_missing=drop))
    kept = [r for r in rows if not drop or None not in r[:4]]
    assert summary.dropped_missing == len(rows) - len(kept)
    expected = Counter(r[:2] for r in kept)
    found = {tuple_of(summary, i): int(n) for i, n in enumerate(summary.rows)}
    assert found == expected
    assert summary.shared is None
    np.testing.assert_array_equal(summary.sizes, summary.rows)
    for position, name in ((2, "s"), (3, "t")):
        counts = summary.sensitive[name]
        assert counts.ordered == (name == "t")
        for i in range(summary.n_tuples):
            of_tuple = Counter(r[position] for r in kept if r[:2] == tuple_of(summary, i))
            assert counts.of_class(i) == of_tuple
    codes = summary.codes.T.tolist()
    assert codes == sorted(codes)
    joint = Counter(r[:4] for r in kept)
    cells = summary.joint
    assert cells is not None
    decoded = {
        (*tuple_of(summary, int(t)), S[s - 1] if s else None, T[v - 1] if v else None): int(n)
        for t, s, v, n in zip(cells.tuples, *cells.values, cells.rows, strict=True)
    }
    assert decoded == joint
    order = np.stack([cells.tuples, *cells.values]).T.tolist()
    assert order == sorted(order)


@given(rows_of(people=True), st.booleans(), st.data())
def test_units_count_people(engine: Engine, rows: list[Row], drop: bool, data: st.DataObject) -> None:
    summary = engine.summarise(open_rows(engine, rows), spec(unit="u", drop_missing=drop))
    kept = [r for r in rows if not drop or None not in r[:4]]
    assert summary.dropped_missing == len(rows) - len(kept)
    assert summary.n_people == len({r[4] for r in kept})
    n = summary.n_tuples
    group_of = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)), dtype=np.int64)
    group = {tuple_of(summary, i): int(g) for i, g in enumerate(group_of)}
    assert group.keys() == {r[:2] for r in kept}
    classes = summary.classes(group_of, 3)
    people: dict[int, set[str | None]] = defaultdict(set)
    values: dict[tuple[str, int], set[tuple[str | None, str | None]]] = defaultdict(set)
    for row in kept:
        g = group[row[:2]]
        people[g].add(row[4])
        values["s", g].add((row[4], row[2]))
        values["t", g].add((row[4], row[3]))
    for g in range(3):
        assert classes.sizes[g] == len(people[g])
        assert classes.rows[g] == sum(group[r[:2]] == g for r in kept)
        for name in "st":
            assert classes.sensitive[name].of_class(g) == Counter(v for _, v in values[name, g])
    if summary.shared is not None:
        assert set(summary.shared.people.tolist()) == set(range(summary.shared.n_people))
        in_tuples = defaultdict(set)
        for t, p in zip(summary.shared.tuples.tolist(), summary.shared.people.tolist(), strict=True):
            in_tuples[p].add(t)
        assert all(len(t) > 1 for t in in_tuples.values())
        entries = list(zip(summary.shared.tuples.tolist(), summary.shared.people.tolist(), strict=True))
        assert entries == sorted(entries)


def test_everybody_in_one_tuple_needs_no_shared(engine: Engine) -> None:
    summary = engine.summarise(open_rows(engine, [("a0", "b0", "s0", "t0", "p")] * 3), spec(unit="u"))
    assert summary.shared is None
    assert (summary.sizes.tolist(), summary.rows.tolist()) == ([1], [3])
    assert summary.sensitive["s"].of_class(0) == {"s0": 1}


def test_a_person_without_a_name_is_refused(engine: Engine, file: Write) -> None:
    table = engine.open(file("a,who\nx,1\nx,\n"), Reading())
    with pytest.raises(InputError, match="column 'who' tells persons apart, but is missing in 1 rows"):
        engine.summarise(table, SummarySpec([flat("a", ["x"])], unit="who"))


@pytest.mark.parametrize("unit", [None, "who"])
def test_values_that_the_hierarchy_does_not_know(engine: Engine, file: Write, unit: str | None) -> None:
    table = engine.open(file("a,s,who\nx,1,p\ny,2,q\nz,1,p\nw,1,p\nv,1,p\n,1,p\n"), Reading())
    with pytest.raises(
        HierarchyError, match=r"column 'a': its hierarchy does not know 'v', 'w', 'y' and 1 more"
    ):
        engine.summarise(table, SummarySpec([flat("a", ["x"])], unit=unit))
    known = flat("a", ["v", "w", "x", "y", "z"])
    with pytest.raises(InputError, match="column 's' holds values outside its declared domain") as caught:
        engine.summarise(table, SummarySpec([known], [SensitiveSpec("s", ("1",))], unit=unit))
    assert "'2'" not in str(caught.value)


def test_typed_columns_are_compared_as_text(engine: Engine) -> None:
    pl = needs("polars")
    frame = pl.DataFrame({"age": [39.0, 40.0, None, float("nan"), 39.0], "zip": ["a ", "a", " a", "?", ""]})
    table = engine.open(frame, Reading(missing=("?",)))
    summary = engine.summarise(table, SummarySpec([flat("age", ["39", "40"]), flat("zip", ["a"])]))
    found = {tuple_of(summary, i): int(n) for i, n in enumerate(summary.rows)}
    assert found == {("39", "a"): 1, ("40", "a"): 1, (None, "a"): 1, (None, None): 1, ("39", None): 1}


@pytest.mark.parametrize("unit", [None, "who"])
def test_keys_of_several_words(engine: Engine, unit: str | None) -> None:
    """Twelve attributes of 200 values each do not fit into 64 bits."""
    pl = needs("polars")
    rng = np.random.default_rng(5)
    values = [f"v{i}" for i in range(200)]
    names = [f"q{i}" for i in range(12)]
    base = rng.integers(0, 200, (60, 12))
    rows = base[rng.integers(0, 60, 400)]
    frame = pl.DataFrame({n: [values[c] for c in rows[:, i]] for i, n in enumerate(names)})
    frame = frame.with_columns(
        s=pl.Series([f"s{i}" for i in rng.integers(0, 300, 400)]), who=pl.Series(range(400))
    )
    assert len(Packing.of([202] * 12).words) == 2
    domain = tuple(f"s{i}" for i in range(300))
    made = SummarySpec([flat(n, values) for n in names], [SensitiveSpec("s", domain)], unit=unit)
    summary = engine.summarise(engine.open(frame, Reading()), made)
    expected = Counter(tuple(r) for r in frame.select(names).iter_rows())
    assert {tuple_of(summary, i): int(n) for i, n in enumerate(summary.rows)} == expected
    joint = Counter((r[:12], r[12]) for r in frame.select([*names, "s"]).iter_rows())
    for i in range(summary.n_tuples):
        for value, n in summary.sensitive["s"].of_class(i).items():
            assert joint[tuple_of(summary, i), value] == n


def test_without_quasi_identifiers_there_is_one_tuple(engine: Engine) -> None:
    table = open_rows(engine, [("a0", "b0", "s0", "t0", "p"), ("a1", "b0", "s1", "t0", "p")])
    summary = engine.summarise(table, SummarySpec([], [SensitiveSpec("s", S)]))
    assert summary.rows.tolist() == [2]
    assert summary.codes.shape == (0, 1)


@given(st.lists(st.integers(1, 2**31), min_size=1, max_size=8), st.integers(0, 2**32))
def test_packing_round_trip(radices: list[int], seed: int) -> None:
    packing = Packing.of(radices)
    rng = np.random.default_rng(seed)
    digits = np.stack([rng.integers(0, r, 20) for r in radices])
    packed = packing.pack(digits)
    for i in range(len(radices)):
        np.testing.assert_array_equal(packing.unpack(packed, i), digits[i])
    for width in range(len(radices) + 1):
        head = packing.head(packed, width)
        for mine, theirs in zip(head, Packing.of(radices[:width]).pack(digits[:width]), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_numbering(pairs: list[tuple[int, int]]) -> None:
    keys = [np.array([p[i] for p in pairs], dtype=np.int64) for i in range(2)]
    unique, numbers = number(keys, len(pairs))
    distinct = sorted(set(pairs))
    assert list(zip(*(u.tolist() for u in unique), strict=True)) == distinct
    assert [distinct[i] for i in numbers] == pairs
