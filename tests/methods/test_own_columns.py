"""The person's own columns: alike in all rows of a person, so that no difference between rows singles somebody out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import maskwright as mw
from maskwright.attacks.linked_visits import known_levels
from maskwright.domain.release import Release
from maskwright.errors import InputError, PolicyError, PolicyNotMet
from maskwright.methods import METHODS
from maskwright.methods._rows.own_columns import connected_groups
from maskwright.pipeline import publish
from maskwright.verification.verify import verify_folder
from tests.amounts import amount, cases
from tests.hospital import hospital_visits

OWN = ("birth_year", "sex")
QUASI = ["birth_year", "sex", "zip"]
K = 5
MINE: dict[str, dict[str, Any]] = {"mask": {"l": 3, "values": ["HIV"]}}
METHODS_HERE = [{"name": name, **MINE.get(name, {})} for name in METHODS if name not in ("codip", "anatomy")]
METHODS_HERE += [
    {"name": "mondrian", "cut": "strict"},
    {"name": "mondrian", "cut": "relaxed", "choose": "range", "labels": "ranges"},
    {"name": "local-recoding", "suppression": "1/20", "suppressed_rows": "star"},
    {"name": "optimal-lattice", "suppression": "1/20", "suppressed_rows": "star"},
]
RECODED = [m for m in METHODS_HERE if m["name"] in ("mondrian", "local-recoding", "greedy-grouping")]


def policy(method: dict[str, Any], more: tuple[Any, ...] = (), **unit: Any) -> dict[str, Any]:
    return {
        "unit": {"column": "patient_id", "publish": "pseudonym", **unit},
        "columns": {
            "patient_id": "identifier",
            "birth_year": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20, 40]}},
            "sex": "quasi-identifier",
            "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
            "disease": "sensitive",
            "row": {"role": "insensitive", "near_unique": "allow"},
        },
        "require": [{"model": "k-anonymity", "k": K}, *more],
        "method": method,
    }


def visits(n: int = 300, people: int = 150) -> pd.DataFrame:
    table = hospital_visits(n, people)
    return table.assign(row=np.arange(len(table)))


def shown(release: Release, table: pd.DataFrame) -> pd.DataFrame:
    """The published rows that are not suppressed as a whole, with the person of each and the person's birth year."""
    found = release.table.astype(str).merge(
        table[["row", "birth_year", "sex"]].astype(str), on="row", suffixes=("", "_true")
    )
    return found[(found[QUASI] != "*").any(axis=1)]


def covers(label: str, value: str) -> bool:
    """Whether a published label may stand for a value."""
    if label in ("*", value):
        return True
    if label.startswith("{"):
        return value in label.strip("{}").split(", ")
    first, _, last = label.partition("-")
    return bool(last) and int(first) <= int(value) <= int(last)


def fewest_candidates(release: Release, table: pd.DataFrame) -> int:
    """By brute force: who knows a visit of somebody, and the own columns of them, is left with so many pseudonyms.

    Everything under a pseudonym must fit the own columns, also rows that are not known.
    """
    rows = shown(release, table)
    fits: dict[
        tuple[str, str], set[str]
    ] = {}  # the own columns of somebody: pseudonyms with nothing against them
    labels = {who: set(map(tuple, part[list(OWN)].to_numpy())) for who, part in rows.groupby("patient_id")}
    for year, sex in set(map(tuple, rows[["birth_year_true", "sex_true"]].to_numpy())):
        fits[year, sex] = {
            who
            for who, theirs in labels.items()
            if all(covers(y, year) and covers(s, sex) for y, s in theirs)
        }
    fewest = len(labels)
    for _, part in rows.groupby(QUASI):
        there = set(part["patient_id"])
        for year, sex in set(map(tuple, part[["birth_year_true", "sex_true"]].to_numpy())):
            fewest = min(fewest, len(there & fits[year, sex]))
    return fewest


@pytest.mark.parametrize("method", cases(METHODS_HERE, brief=METHODS_HERE[3:6] + METHODS_HERE[-2:]), ids=str)
def test_a_person_has_one_label_and_k_others_fit(method: dict[str, Any], tmp_path: Path) -> None:
    table = visits(amount(200, 2000), amount(100, 1000))
    release = mw.anonymize(table, policy(method, own=list(OWN)))
    release.save(tmp_path / "r")
    assert verify_folder(tmp_path / "r").ok
    rows = shown(release, table)
    assert (rows.groupby("patient_id")[list(OWN)].nunique() == 1).to_numpy().all()
    assert rows.groupby(QUASI)["patient_id"].nunique().min() >= K
    assert fewest_candidates(release, table) >= K
    assert min(level.fewest for level in known_levels(release.grouping, 1) if level.visits) >= K


@pytest.mark.parametrize("method", cases(RECODED, brief=RECODED[:2]), ids=str)
def test_labels_that_differ_single_out_and_are_refused(
    method: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = visits(500, 80)
    with pytest.raises(PolicyNotMet, match=r"is the same in all rows .*own: \[birth_year, sex\]"):
        mw.anonymize(table, policy(method))
    with monkeypatch.context() as patched:
        patched.setattr(publish, "refuse_differing_labels", lambda *_: None)
        assert fewest_candidates(mw.anonymize(table, policy(method)), table) < K
    assert mw.anonymize(table, policy(method, own=["birth_year", "sex"])).ok  # what the refusal says


def test_columns_that_change_are_refused() -> None:
    table = visits()
    person = table["patient_id"].value_counts().index[0]
    rows = table.index[table["patient_id"] == person]
    table.loc[rows[0], "sex"] = {"f": "m", "m": "f"}[table.loc[rows[0], "sex"]]
    with pytest.raises(
        InputError, match=r"'sex' is declared the person's own .* rows of 1 person"
    ) as refused:
        mw.anonymize(table, policy({"name": "optimal-lattice"}, own=["birth_year", "sex"]))
    assert person not in str(refused.value)
    assert mw.anonymize(table, policy({"name": "optimal-lattice"}, own=["birth_year"])).ok
    table.loc[rows[0], "sex"] = None
    with pytest.raises(InputError, match="a missing value is one, too"):
        mw.anonymize(table, policy({"name": "optimal-lattice"}, own=["birth_year", "sex"]))


def test_what_is_not_a_quasi_identifier_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"own: names quasi-identifiers .* 'disease' is none"):
        mw.anonymize(visits(), policy({"name": "optimal-lattice"}, own=["disease"]))


def test_balanced_cuts_that_look_at_values_say_what_does_it() -> None:
    more = ({"model": "simple-l-diversity", "l": 2},)
    with pytest.raises(PolicyError, match="write cut: relaxed, or take optimal-lattice or local-recoding"):
        mw.anonymize(visits(), policy({"name": "mondrian"}, more, own=list(OWN)))
    for method in (
        {"name": "mondrian", "cut": "relaxed"},
        {"name": "optimal-lattice"},
        {"name": "local-recoding"},
    ):
        assert mw.anonymize(visits(), policy(method, more, own=list(OWN))).ok


def test_a_changed_file_is_found(tmp_path: Path) -> None:
    table = visits()
    mw.anonymize(table, policy({"name": "mondrian"}, own=["birth_year", "sex"]), tmp_path / "r")
    file = next((tmp_path / "r" / "public").glob("data.*"))
    published = pd.read_parquet(file)
    assert json.loads((tmp_path / "r/public/manifest.json").read_text())["linked"]["own"] == [
        "birth_year",
        "sex",
    ]
    several = published["patient_id"].value_counts().index[0]
    row = published.index[published["patient_id"] == several][0]
    published.loc[row, "birth_year"] = "1930-1934"
    published.to_parquet(file, index=False)
    problems = verify_folder(tmp_path / "r", recount_only=True).problems
    assert any("is not the same in all rows of a person" in problem for problem in problems)


def test_groups_connected_by_people() -> None:
    table = visits(60, 30)
    asked = policy({"name": "greedy-grouping"}, own=[])
    asked["unit"] = "patient_id"
    grouping = mw.anonymize(table, asked).grouping
    circle = connected_groups(grouping)
    cells, groups, _ = grouping.cells
    people = grouping.summary.cells.people[cells]
    reach = np.eye(grouping.classes.n, dtype=bool)
    for person in np.unique(people):
        mine = np.unique(groups[people == person])
        reach[np.ix_(mine, mine)] = True
    while not np.array_equal(reach, wider := (reach.astype(int) @ reach.astype(int)) > 0):
        reach = wider
    assert np.array_equal(circle[:, None] == circle[None, :], reach)
