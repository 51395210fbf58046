"""A summary with some of its sensitive attributes is the summary of the projected table."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.association import Contingency
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.projection import project_summary
from maskwright.domain.summary import Summary
from maskwright.engines import open_engine
from maskwright.engines.base import Reading, SensitiveSpec, SummarySpec

ROWS = st.lists(st.tuples(*(st.sampled_from(v) for v in ("pq", "ab", "uvw", "xy"))), min_size=1, max_size=12)


def summarised(rows: list[tuple[str, ...]], names: list[str]) -> Summary:
    frame = pd.DataFrame(rows, columns=["q", "a", "b", "c"])
    engine = open_engine()
    try:
        table = engine.open(frame, Reading())
        specs = [SensitiveSpec(n, {"a": ("a", "b"), "b": ("u", "v", "w"), "c": ("x", "y")}[n]) for n in names]
        spec = SummarySpec([Hierarchy.of("q", ["p", "q"], [("top", ["*", "*"])])], specs)
        return engine.summarise(table, spec)
    finally:
        engine.close()


@given(ROWS, st.sampled_from([["a"], ["b", "c"], ["c", "a"], ["a", "b", "c"], []]))
def test_as_if_it_had_been_counted(rows: list[tuple[str, ...]], names: list[str]) -> None:
    found, expected = project_summary(summarised(rows, ["a", "b", "c"]), names), summarised(rows, names)
    assert list(found.sensitive) == list(expected.sensitive)
    assert found.joint is not None
    assert expected.joint is not None
    for part in ("tuples", "values", "rows"):
        assert np.array_equal(getattr(found.joint, part), getattr(expected.joint, part))
    for name in names:
        assert np.array_equal(found.sensitive[name].counts, expected.sensitive[name].counts)


@given(ROWS)
def test_pairs_are_counted_from_the_cells(rows: list[tuple[str, ...]]) -> None:
    counts = Contingency.of(summarised(rows, ["a", "b", "c"]))
    assert counts.rows == len(rows)
    for (i, x), (j, y) in (((0, "ab"), (1, "uvw")), ((0, "ab"), (2, "xy")), ((1, "uvw"), (2, "xy"))):
        both = Counter((row[i + 1], row[j + 1]) for row in rows)
        for v, first in enumerate(x):
            for w, second in enumerate(y):
                assert counts.pairs[i, j][v + 1, w + 1] == both[first, second]


def test_without_joint_counts_there_are_no_pairs() -> None:
    one = np.ones(1, dtype=np.int64)
    with pytest.raises(ValueError, match="joint"):
        Contingency.of(Summary((), np.zeros((0, 1), dtype=np.int32), one, one, {}))
