"""Symmetric grouping against the plain definition, its guard, and splits into more than two parts."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from maskwright.errors import PolicyNotMet
from maskwright.methods.symmetric_grouping import SymmetricGrouping
from maskwright.models import MODELS
from maskwright.worlds import reference_methods
from maskwright.worlds.sampling.possible_worlds import deterministic_likelihood, posterior_beliefs
from tests.amounts import repeated
from tests.methods import row_tables as rt
from tests.oracles import partitions


@pytest.mark.parametrize("block", repeated(10))
def test_the_plain_definition(block: int) -> None:
    rng = np.random.default_rng(block)
    several = 0
    for _ in range(150):
        qi, sa, table = rt.random_table(rng, 24)
        models, least = rt.random_models(rng), int(rng.integers(0, 3))
        passes = table.test(models)
        order = reference_methods.row_order(qi)
        requirement, ways = table.requirement(models), int(rng.integers(2, 5))
        rows = np.array(order, dtype=np.int32)
        found = SymmetricGrouping(min_child=least).partition(requirement, rows)
        assert rt.groups_of(found) == rt.as_sets(reference_methods.symmetric_grouping(qi, sa, passes, least))
        more = SymmetricGrouping(min_child=least, ways=ways).partition(requirement, rows)
        judged = lambda part: passes(Counter(sa[i] for i in part))  # noqa: E731, B023
        assert rt.groups_of(more) == rt.as_sets(partitions.symmetric(order, ways, least, judged))
        several += found.n_groups > 2
    assert several > 20


def test_the_guard_is_what_makes_it_safe() -> None:
    """Erratum C-5: three rows and one positive; without a guard the refused split gives the positive away."""
    qi, sa = [[0], [1], [2]], ["a", "a", "P"]
    table = rt.build(qi, {"s": sa})
    models = [MODELS["simple-l-diversity"](l=2, values=["P"], attribute="s")]
    requirement = table.requirement(models)
    assert SymmetricGrouping().guard(requirement) == 2
    passes = rt.as_test(models, table.task([]).context, ("P", "a"))
    groups = reference_methods.symmetric_grouping(qi, sa, passes)
    after = posterior_beliefs(
        sa, groups, deterministic_likelihood(lambda w: reference_methods.symmetric_grouping(qi, w, passes))
    )
    assert after.beliefs is not None
    assert max(max(b.values()) for b in after.beliefs) == 1
    after = posterior_beliefs(
        sa, groups, deterministic_likelihood(lambda w: reference_methods.symmetric_grouping(qi, w, passes, 2))
    )
    assert after.beliefs is not None
    assert max(b.get("P", Fraction(0)) for b in after.beliefs) == Fraction(1, 3)


@pytest.mark.parametrize("options", [{}, {"ways": 3}, {"order": "hilbert"}, {"labels": "ranges"}])
def test_promises_on_adult(options: dict[str, Any]) -> None:
    table = rt.adult_rows("occupation")
    for models in (
        [MODELS["simple-l-diversity"](l=3, attribute="occupation")],
        [MODELS["t-closeness"](t="1/3", attribute="occupation"), MODELS["k-anonymity"](k=5)],
    ):
        grouping = table.promises(SymmetricGrouping(**options), models)
        assert grouping.dropped_rows == 0
        assert grouping.classes.n > 10
        other = SymmetricGrouping(**options).group(table.task(models, 5))
        assert not np.array_equal(grouping.allocation.groups, other.allocation.groups)


def test_a_table_that_fails_as_a_whole_is_refused() -> None:
    table = rt.build([[0], [1]], {"s": ["a", "a"]})
    with pytest.raises(PolicyNotMet, match="even with all rows in one group"):
        SymmetricGrouping().group(table.task([MODELS["simple-l-diversity"](l=2, attribute="s")]))
