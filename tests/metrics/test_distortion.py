"""Distortion of sensitive values against the definition, change by change, and the example of the docs page."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import maskwright as mw
from maskwright.domain.grouping import Changes, Grouping, exact_view
from maskwright.domain.hierarchy import Hierarchy
from maskwright.folder.saved_state import load_grouping, save_grouping
from maskwright.methods.mask import Mask
from maskwright.metrics import METRICS
from maskwright.models import MODELS
from tests.methods.row_tables import build
from tests.patients import write_csv

VALUES = ("cold", "flu", "fracture", "burn")
TREE = [("kind", ["infection", "infection", "injury", "injury"])]
HIERARCHY = Hierarchy.of("s", VALUES, TREE)
DISTANCE = {  # (true, published) → (ground values below the nearest common ancestor − 1) ÷ 3
    (a, b): Fraction(0)
    if a == b
    else Fraction(1, 3)
    if {a, b} in ({"cold", "flu"}, {"fracture", "burn"})
    else 1
    for a in VALUES
    for b in VALUES
}


def distorted(true: list[str], published: list[str], hierarchy: Hierarchy | None) -> Grouping:
    """One class in which row i is published with another value."""
    table = build([[i] for i in range(len(true))], {"s": true}, domains={"s": VALUES})
    base = Mask(l=1, values=["cold"], attribute="s").group(table.task([MODELS["k-anonymity"](k=1)]))
    codes = np.array([VALUES.index(v) + 1 for v in published], dtype=np.int32)
    wrong = np.array([a != b for a, b in zip(true, published, strict=True)])
    cells = np.flatnonzero(wrong)
    assert base.allocation.groups.tolist() == list(range(len(true)))
    changes = Changes("s", cells, cells, codes[wrong], np.ones(len(cells), np.int64), hierarchy)
    return replace(base, changes=changes)


def distortion(grouping: Grouping) -> object:
    return METRICS["sensitive-distortion"].function(grouping, {})


@given(st.lists(st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES)), min_size=1, max_size=8))
def test_the_definition(pairs: list[tuple[str, str]]) -> None:
    true, published = [a for a, _ in pairs], [b for _, b in pairs]
    expected = sum((Fraction(DISTANCE[pair]) for pair in pairs), Fraction(0)) / len(pairs)
    made = distorted(true, published, HIERARCHY)
    assert distortion(made) == expected
    assert distortion(exact_view(made)) == expected  # also where quasi-identifiers are published as they are
    plain = distorted(true, published, None)
    assert distortion(plain) == Fraction(sum(a != b for a, b in pairs), len(pairs))


def test_the_example_of_the_docs() -> None:
    true = ["cold"] * 10
    published = ["flu", "fracture"] + ["cold"] * 8
    assert distortion(distorted(true, published, HIERARCHY)) == Fraction(2, 15)
    assert distortion(distorted(true, published, None)) == Fraction(1, 5)


def test_a_release_by_mask_says_how_far_it_is_from_the_truth(tmp_path: Path) -> None:
    rows = [
        [str(i // 4), v] for i, v in enumerate(["cold"] * 3 + ["burn"] + ["cold", "cold", "burn", "flu"] * 5)
    ]
    source = write_csv(tmp_path / "t.csv", rows, ["age", "s"])
    policy = {
        "columns": {
            "age": {"role": "quasi-identifier"},
            "s": {
                "role": "sensitive",
                "hierarchy": {"tree": {"infection": ["cold", "flu"], "injury": ["burn"]}},
            },
        },
        "require": [{"model": "k-anonymity", "k": 4}],
        "method": {"name": "mask", "l": 2, "values": ["cold"]},
    }
    release = mw.anonymize(source, policy)
    assert release.metrics["sensitive-distortion"] == Fraction(
        1, 24
    )  # one cold of 24 became a burn, which is far away
    bucketized = mw.anonymize(source, policy | {"recoding": "bucketize"})
    assert bucketized.metrics["sensitive-distortion"] == Fraction(1, 24)
    truthful = mw.anonymize(source, policy | {"method": "optimal-lattice"})
    assert truthful.metrics["sensitive-distortion"] == 0


def test_what_was_changed_is_kept_for_later_attacks(tmp_path: Path) -> None:
    made = distorted(["cold", "cold", "flu"], ["flu", "cold", "burn"], HIERARCHY)
    save_grouping(made, tmp_path)
    read = load_grouping(tmp_path)
    assert made.changes is not None
    assert read.changes is not None
    for name in ("cells", "groups", "codes", "rows"):
        assert getattr(read.changes, name).tolist() == getattr(made.changes, name).tolist()
    assert read.changes.attribute == "s"
    assert read.published is not None
    assert made.published is not None
    assert read.published["s"].counts.tolist() == made.published["s"].counts.tolist()
    assert read.search["note"] == made.search["note"]
