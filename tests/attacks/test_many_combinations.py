"""Combinations of several sensitive values can be too many to be counted: then minimality finds another way."""

from __future__ import annotations

import random

import pandas as pd
import pytest

import maskwright as mw
from maskwright.attacks._minimality import replay
from maskwright.worlds.sampling import world_sampler


def test_combinations_count_not_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """An internal error of anonymize: each column had few values, and both together very many."""
    rng = random.Random(1)  # noqa: S311
    rows = [(20 + i % 20, rng.randrange(6), rng.randrange(6)) for i in range(120)]
    policy = {
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}},
            "a": "sensitive",
            "b": "sensitive",
        },
        "require": [
            {"model": "k-anonymity", "k": 2},
            *({"model": "simple-l-diversity", "l": 2, "attribute": name} for name in "ab"),
        ],
        "method": {"name": "optimal-lattice", "suppression": "5%"},
    }
    for module in (replay, world_sampler):
        monkeypatch.setattr(module, "CELLS", 200)
    release = mw.anonymize(pd.DataFrame(rows, columns=["age", "a", "b"]), policy)
    assert release.ok
    assert any(b.attack == "minimality" for b in release.beliefs)
