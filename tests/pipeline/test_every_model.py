"""Every registered model through the whole pipeline: searched for, published, recounted from disk, verified."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.errors import PolicyNotMet
from maskwright.folder.saved_state import load_grouping
from maskwright.models import MODELS
from maskwright.verification.verify import verify_folder
from tests.amounts import first_of_each
from tests.patients import write_csv

COLUMNS = ["age", "zip", "score", "disease", "guard"]
ROWS = [
    [
        str(20 + a),
        f"1{z}",
        str((a * 3 + z) % 7),
        ["flu", "asthma", "ulcer"][(a + 2 * z) % 3],
        ["x", "flu"][z % 2],
    ]
    for a, z in itertools.product(range(12), range(4))
]
REQUIRE: dict[str, dict[str, Any]] = {
    "k-anonymity": {"k": 4},
    "simple-l-diversity": {"l": 2, "attribute": "disease"},
    "distinct-l-diversity": {"l": 3},
    "entropy-l-diversity": {"l": 2},
    "recursive-cl-diversity": {"c": 3, "l": 2},
    "alpha-k-anonymity": {"alpha": "1/2", "k": 3, "attribute": "disease"},
    "p-sensitive-k-anonymity": {"p": 2, "k": 4},
    "personalised-privacy": {"p": "1/2", "guarding": "guard", "attribute": "disease"},
    "t-closeness": {"t": "0.3", "attribute": "disease", "distance": "hierarchical"},
    "nt-closeness": {"n": 20, "t": "0.3", "attribute": "score", "distance": "ordered"},
    "ke-anonymity": {"k": 3, "e": 4, "attribute": "score"},
    "ck-safety": {"c": "0.95", "k": 1, "attribute": "disease"},
    "m-confidentiality": {"m": 2, "attribute": "disease", "sets": [["ulcer"]]},
    "belief": {"max": "0.95", "adversary": "neighbour"},
    "delta-disclosure": {"delta": 1, "attribute": "disease"},
    "beta-likeness": {"beta": 1, "attribute": "disease"},
    "delta-presence": {"delta_max": "2/3"},
    "k-map": {"k": 6},
    "average-risk": {"max": "1/5"},
    "highest-risk": {"max": "0.2", "adversary": "journalist"},
    "individual-risk": {"max": "0.2"},
    "population-uniqueness": {"max": "0.2"},
}


def policy(tmp_path: Path, *require: dict[str, Any], **method: Any) -> mw.Policy:
    everybody = [row[:2] for row in ROWS for _ in range(2)]
    write_csv(tmp_path / "everybody.csv", everybody, COLUMNS[:2])
    return mw.Policy.load(
        {
            "population": {"file": str(tmp_path / "everybody.csv")},
            "columns": {
                "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4]}},
                "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
                "score": "sensitive",
                "disease": {
                    "role": "sensitive",
                    "hierarchy": {"tree": {"lungs": ["flu", "asthma"], "x": ["ulcer"]}},
                },
            },
            "require": list(require),
            "method": {"name": "optimal-lattice", **method},
        }
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "t.csv", ROWS, COLUMNS)


def test_every_model_is_here() -> None:
    assert set(REQUIRE) == set(MODELS)


USES = [
    (name, use)
    for name in sorted(REQUIRE)
    for use in ("search", "gate")
    if (name, use) != ("belief", "search")
]


@pytest.mark.parametrize(("name", "use"), first_of_each(USES))
def test_published_and_verified(name: str, use: str, source: Path, tmp_path: Path) -> None:
    wanted = {"model": name, **REQUIRE[name], "use": use}
    # as a gate it must hold for the k-anonymous optimum: coarse enough for all of them
    others = [{"model": "k-anonymity", "k": 24}] if use == "gate" else []
    release = mw.anonymize(source, policy(tmp_path, *others, wanted), tmp_path / "r")
    assert release.ok
    assert {v.model for v in release.verdicts} >= {name}
    result = verify_folder(tmp_path / "r")
    assert result.ok, result.problems
    measured = {(v.model, v.attribute): v.worst for v in release.verdicts}
    assert {(v.model, v.attribute): v.worst for v in result.verdicts} == measured


def test_all_of_them_together(source: Path, tmp_path: Path) -> None:
    require = [{"model": name, **parameters} for name, parameters in REQUIRE.items()]
    release = mw.anonymize(source, policy(tmp_path, *require), tmp_path / "r")
    assert release.ok
    assert verify_folder(tmp_path / "r").ok


@pytest.mark.parametrize("name", ["samarati", "incognito", "local-recoding"])
def test_other_methods(name: str, source: Path, tmp_path: Path) -> None:
    require = [{"model": m, **REQUIRE[m]} for m in ("k-anonymity", "t-closeness", "distinct-l-diversity")]
    release = mw.anonymize(source, policy(tmp_path, *require, name=name), tmp_path / "r")
    assert release.ok
    assert verify_folder(tmp_path / "r").ok


@pytest.mark.parametrize("rows", ["drop", "star"])
@pytest.mark.parametrize("suppress", ["small-classes", "failing-classes"])
def test_suppressed_rows(suppress: str, rows: str, source: Path, tmp_path: Path) -> None:
    lonely = [*ROWS, *(["99", "77", "1", "flu", "x"] for _ in range(4))]
    write_csv(source, lonely, COLUMNS)
    require = [{"model": "k-anonymity", "k": 5}, {"model": "distinct-l-diversity", "l": 1}]
    options = {"suppression": "10%", "suppress": suppress, "suppressed_rows": rows}
    release = mw.anonymize(source, policy(tmp_path, *require, **options), tmp_path / "r")
    assert release.ok
    assert verify_folder(tmp_path / "r").ok
    if rows == "drop":
        assert release.grouping.published_rows + release.grouping.suppressed_rows == 52
    else:
        assert release.grouping.published_rows == 52
        assert min(release.grouping.classes.sizes.tolist()) >= 5, (
            "the starred rows are a class like any other"
        )


def test_minimal_nodes_shows_every_choice(source: Path, tmp_path: Path) -> None:
    made = policy(tmp_path, {"model": "k-anonymity", "k": 4})
    nodes = mw.minimal_nodes(source, made)
    assert len(nodes) > 1
    best = mw.anonymize(source, made)
    assert best.grouping.levels in [n.levels for n in nodes]
    for a, b in itertools.permutations(nodes, 2):
        assert not all(x <= y for x, y in zip(a.levels, b.levels, strict=True))


@pytest.mark.parametrize("recoding", ["generalise", "bucketize", "permute"])
def test_classes_are_compared_with_the_groups_they_were_split_from(tmp_path: Path, recoding: str) -> None:
    """Two towns of twenty, three in four have flu in one and one in four in the other; the table is half and half.

    No class is like the table, and every class is like its town: (n,t)-closeness holds by the ancestors that Mondrian
    keeps, in the recount and in `verify`; and not for a method that keeps none.
    """
    rows = [
        [str(20 + i), town, "flu" if (i % 4 != 0) == (town == "10") else "ulcer"]
        for town in ("10", "25")
        for i in range(20)
    ]
    source = write_csv(tmp_path / "towns.csv", rows, ["age", "zip", "disease"])
    require = [
        {"model": "k-anonymity", "k": 4},
        {"model": "nt-closeness", "n": 15, "t": "1/5", "use": "gate"},
    ]

    def publish(out: str, **method: Any) -> Path:
        columns = {"zip": "quasi-identifier", "age": "quasi-identifier", "disease": "sensitive"}
        settings = {"columns": columns, "require": require, "method": method, "recoding": recoding}
        mw.anonymize(source, mw.Policy.load(settings), tmp_path / out, seed=1)
        return tmp_path / out

    folder = publish("out", name="mondrian", cut="relaxed", choose="range")
    verified = verify_folder(folder)
    assert verified.ok
    assert load_grouping(folder / "private").ancestors is not None
    (closeness,) = [v for v in verified.verdicts if v.model == "nt-closeness"]
    assert closeness.worst < Fraction(1, 5)
    with pytest.raises(PolicyNotMet, match="nt-closeness"):
        publish("other", name="greedy-grouping", l=4)
    (folder / "private" / "classes.json").unlink()
    without = verify_folder(folder, recount_only=True)
    assert not without.ok
    assert any("the whole table is the only group" in note for note in without.notes)
