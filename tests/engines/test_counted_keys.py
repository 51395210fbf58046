"""Keys are counted by sorting them here, or by the engine where they are too many: the same summary and recount."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import maskwright as mw
from maskwright.engines.duckdb.database import Database
from tests.patients import HEADER, patients

POLICY = {
    "version": 1,
    "columns": {
        "name": "identifier",
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}},
        "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
        "sex": "quasi-identifier",
        "disease": "sensitive",
    },
    "unit": "none",
    "require": [{"model": "k-anonymity", "k": 3}],
    "method": {"name": "optimal-lattice", "suppression": "0.1"},
}


def test_sorted_and_grouped_keys_are_counted_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "table.csv"
    table.write_text("\n".join(",".join(map(str, row)) for row in [HEADER, *patients(60)]) + "\n")
    asked: list[bool] = []
    found = []
    for sorting in (True, False):
        monkeypatch.setattr(Database, "holds_keys", lambda _, rows, said=sorting: asked.append(said) or said)
        release = mw.anonymize(table, POLICY, tmp_path / str(sorting), seed=1)
        summary, joint = release.grouping.summary, release.grouping.summary.joint
        assert joint is not None
        found.append([*summary.codes, summary.rows, joint.tuples, *joint.values, joint.rows])
    assert {True, False} == set(asked)
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
    one, two = (tmp_path / str(name) / "public" / "data.csv" for name in (True, False))
    assert one.read_bytes() == two.read_bytes()
