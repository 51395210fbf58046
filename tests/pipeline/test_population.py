"""Requirements about more than the table itself: a population, original classes, chosen columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.errors import InputError, NotVerified, PolicyError, PolicyNotMet
from maskwright.verification.verify import verify_folder
from tests.patients import write_csv

COLUMNS = ["zip", "sex", "disease"]
ROWS = [["10", "m", "flu"], ["10", "m", "flu"], ["11", "f", "ulcer"], ["11", "f", "flu"], ["20", "m", "flu"]]
OTHERS = [
    ["12", "f", ""],
    ["13", "m", ""],
    ["20", "m", ""],
    ["20", "m", ""],
    ["21", "m", ""],
    ["99", "x", ""],
]


def policy(tmp_path: Path, *require: dict[str, Any], **more: Any) -> mw.Policy:
    write_csv(tmp_path / "everybody.csv", [row[:2] for row in ROWS + OTHERS], COLUMNS[:2])
    return mw.Policy.load(
        {
            "population": {"file": str(tmp_path / "everybody.csv")},
            "columns": {
                "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
                "sex": "quasi-identifier",
                "disease": "sensitive",
            },
            "require": list(require),
        }
        | more
    )


def people_matching(tmp_path: Path, zip_: str, sex: str) -> int:
    def fits(label: str, value: str) -> bool:
        return label == "*" or all(a in ("*", b) for a, b in zip(label, value, strict=True))

    return sum(fits(zip_, row[0]) and fits(sex, row[1]) for row in ROWS + OTHERS)


def test_k_map_counts_the_population(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "t.csv", ROWS, COLUMNS)
    release = mw.anonymize(source, policy(tmp_path, {"model": "k-map", "k": 3}), tmp_path / "r")
    found = pd.read_csv(tmp_path / "r/public/data.csv", dtype=str)
    for zip_, sex in zip(found["zip"], found["sex"], strict=True):
        assert people_matching(tmp_path, zip_, sex) >= 3
    assert release.grouping.levels == (1, 0), "1* f has three people in the population, and 2* m four"
    assert release.verdicts[0].worst == min(
        people_matching(tmp_path, z, s) for z, s in zip(found["zip"], found["sex"], strict=True)
    )
    assert verify_folder(tmp_path / "r").ok
    (tmp_path / "r/private/classes.json").unlink()
    with pytest.raises(NotVerified, match="more than its own rows"):
        verify_folder(tmp_path / "r", recount_only=True)


def test_delta_presence(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "t.csv", ROWS, COLUMNS)
    release = mw.anonymize(source, policy(tmp_path, {"model": "delta-presence", "delta_max": "2/3"}))
    labels = [[x.texts[i] for i in x.of_group] for x in release.grouping.labels]
    for g, size in enumerate(release.grouping.classes.sizes.tolist()):
        assert 3 * size <= 2 * people_matching(tmp_path, str(labels[0][g]), str(labels[1][g]))


def test_a_population_is_asked_for(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "t.csv", ROWS, COLUMNS)
    with pytest.raises(PolicyError, match="population"):
        mw.anonymize(source, policy(tmp_path, {"model": "k-map", "k": 3}, population=None))


def test_a_population_must_have_the_columns(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "t.csv", ROWS, COLUMNS)
    made = policy(tmp_path, {"model": "k-map", "k": 3})
    write_csv(tmp_path / "everybody.csv", [["10"]], ["zip"])
    with pytest.raises(InputError, match="'sex'"):
        mw.anonymize(source, made)


def test_m_confidentiality_as_a_gate_and_in_the_search(tmp_path: Path) -> None:
    rows = [["q1", "m", "HIV"]] * 2 + [["q2", "m", "none"]] * 5
    source = write_csv(tmp_path / "t.csv", rows, COLUMNS)
    diverse = {"model": "simple-l-diversity", "l": 2, "sets": [["HIV"]]}
    confidential = {"model": "m-confidentiality", "m": 2, "sets": [["HIV"]]}
    merged = mw.anonymize(source, policy(tmp_path, diverse, population=None))
    assert merged.grouping.classes.n == 1
    with pytest.raises(PolicyNotMet, match=r"m-confidentiality.*worst credibility 1"):
        mw.anonymize(source, policy(tmp_path, diverse, confidential | {"use": "gate"}, population=None))
    with pytest.raises(PolicyNotMet, match="m-confidentiality"):
        mw.anonymize(source, policy(tmp_path, diverse, confidential, population=None))


def test_k_anonymity_of_chosen_columns(tmp_path: Path) -> None:
    rows = [["10", "m", "a"], ["10", "f", "b"], ["11", "m", "a"], ["11", "f", "b"]]
    source = write_csv(tmp_path / "t.csv", rows, COLUMNS)
    one = {"model": "k-anonymity", "k": 2, "on": [["zip"], ["sex"]]}
    release = mw.anonymize(source, policy(tmp_path, one, population=None), tmp_path / "r")
    assert release.grouping.levels == (0, 0), "each column alone is shared by two"
    assert verify_folder(tmp_path / "r").ok
    both = {"model": "k-anonymity", "k": 2, "on": [["zip", "sex"]]}
    assert mw.anonymize(source, policy(tmp_path, both, population=None)).grouping.levels != (0, 0)
    with pytest.raises(PolicyError, match="unit"):
        mw.anonymize(source, policy(tmp_path, one, population=None, unit="id"))
