"""Several rows per person: every method and recoding, recounted with pandas from the release and the input alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.methods import METHODS
from maskwright.pipeline.attacking import target_of
from maskwright.verification.verify import verify_folder
from tests.amounts import LONG, crossed
from tests.hospital import hospital_visits

pytestmark = pytest.mark.usefixtures("hasty")

SIZE = {"model": "k-anonymity", "k": 5}
METHOD: dict[str, dict[str, Any]] = {name: {} for name in METHODS} | {
    "mask": {"l": 3, "values": ["HIV"]},
    "codip": {"plan": [["disease"], ["stay"]]},
    "anatomy": {"l": 4},
}
CUTS = {f"mondrian, cut: {cut}": {"name": "mondrian", "cut": cut} for cut in ("relaxed", "strict")}
PLACES = ["tens", "ones", "more"]  # together the number of the row, which tells whose it is


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    table = hospital_visits() if LONG else hospital_visits(400, 210)
    number = pd.Series(range(len(table)))
    for place, name in enumerate(PLACES):
        table[name] = number // 30**place % 30
    return table


def policy(name: str, recoding: str) -> dict[str, Any]:
    return {
        "unit": "patient_id",
        "columns": {
            "patient_id": "identifier",
            "birth_year": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20, 40]}},
            "sex": "quasi-identifier",
            "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
            "disease": "sensitive",
            **({"stay": "sensitive"} if name == "codip" else {}),
            **dict.fromkeys(PLACES, "insensitive"),
        },
        "require": [{"model": "simple-l-diversity", "l": 4}] if name == "anatomy" else [SIZE],
        "method": CUTS.get(name) or {"name": name, **METHOD[name]},
        "recoding": recoding,
    }


def whose_rows(release: mw.Release, visits: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The first published table with the person of each row, and the columns that tell classes apart."""
    shown = pd.read_parquet(next(iter(release.tables.values()))).astype(str)
    owner = visits.astype(str).set_index(PLACES)["patient_id"]
    shown["who"] = owner.loc[list(map(tuple, shown[PLACES].to_numpy()))].to_numpy()
    return shown, ["group"] if "group" in shown else ["birth_year", "sex", "zip"]


@pytest.mark.parametrize(
    ("name", "recoding"), crossed([*METHOD, *CUTS], ["generalise", "bucketize", "permute"])
)
def test_classes_hold_people(name: str, recoding: str, visits: pd.DataFrame, tmp_path: Path) -> None:
    release = mw.anonymize(visits, policy(name, recoding), tmp_path / "r")
    assert verify_folder(tmp_path / "r").ok
    shown, by = whose_rows(release, visits)
    people = shown.groupby(by)["who"].nunique()
    assert people.min() >= (4 if name == "anatomy" else 5)
    assert shown["who"].nunique() + dropped_people(release) == visits["patient_id"].nunique()
    first = release.parts[0].grouping
    for grouping in (first, target_of(tmp_path / "r").grouping):  # in memory, and as it was kept
        merged = Counter[tuple[str, ...]]()
        for group, size in enumerate(grouping.classes.sizes.tolist()):
            merged[tuple(str(x.texts[x.of_group[group]]) for x in grouping.published_labels)] += size
        if len(merged) == grouping.classes.n:  # no two groups share their labels
            assert sorted(merged.values()) == sorted(people.tolist())


def dropped_people(release: mw.Release) -> int:
    return next(b for b in release.beliefs if b.attack == "linkage").measures["dropped_people"]


def test_values_are_counted_once_for_each_person(visits: pd.DataFrame, tmp_path: Path) -> None:
    """Each class of a mondrian release: how many of its people have each disease in some row of the class."""
    release = mw.anonymize(visits, policy("mondrian", "generalise"), tmp_path / "r")
    shown, by = whose_rows(release, visits)
    held = shown.groupby([*by, "disease"])["who"].nunique()
    grouping, found = release.grouping, Counter[tuple[str, ...]]()
    counts = grouping.classes.sensitive["disease"]
    for owner, code, n in zip(
        counts.owner.tolist(), counts.codes.tolist(), counts.counts.tolist(), strict=True
    ):
        labels = tuple(str(x.texts[x.of_group[owner]]) for x in grouping.published_labels)
        found[(*labels, counts.values[code - 1])] += n
    if len({key[:-1] for key in found}) == grouping.classes.n:
        assert found == dict(held.items())
