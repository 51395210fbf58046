"""Several rows per person: every method and recoding, recounted with pandas from the release and the input alone."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.errors import PolicyError
from maskwright.methods import METHODS
from maskwright.metrics.distributions import attribute_distributions, attribute_total_variation
from maskwright.pipeline.attacking import target_of
from maskwright.verification.verify import verify_folder
from tests.amounts import LONG, crossed
from tests.hospital import hospital_visits

SIZE = {"model": "k-anonymity", "k": 5}
BUCKETS = 5 if LONG else 4  # of the small table one in five rows has the most frequent disease, and more
# dp-sample protects rows, and refuses several of one person (tests/methods/test_dp_sample.py)
METHOD: dict[str, dict[str, Any]] = {name: {} for name in METHODS if name != "dp-sample"} | {
    "mask": {"l": 3, "values": ["HIV"]},
    "codip": {"plan": [["disease"], ["stay"]]},
    "anatomy": {"l": BUCKETS},
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
            **{place: {"role": "insensitive", "near_unique": "allow"} for place in PLACES},
        },
        "require": [SIZE | {"k": BUCKETS} if name == "anatomy" else SIZE],
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
    assert people.min() >= (BUCKETS if name == "anatomy" else 5)
    assert shown["who"].nunique() + dropped_people(release) == visits["patient_id"].nunique()
    first = release.parts[0].grouping
    for grouping in (first, target_of(tmp_path / "r").grouping):  # in memory, and as it was kept
        merged = Counter[tuple[str, ...]]()
        for group, size in enumerate(grouping.classes.sizes.tolist()):
            merged[tuple(str(x.texts[x.of_group[group]]) for x in grouping.published_labels)] += size
        if len(merged) == grouping.classes.n:  # no two groups share their labels
            assert sorted(merged.values()) == sorted(people.tolist())


@pytest.mark.parametrize("name", ["optimal-lattice", "samarati", "local-recoding"])
def test_risks_and_distributions_are_those_of_people(name: str, visits: pd.DataFrame, tmp_path: Path) -> None:
    """Who is alone, vulnerable, found by rows; what rows show: all of it counted with pandas."""
    asked = policy(name, "generalise") | {"require": [{"model": "k-anonymity", "k": 2}]}
    asked["method"] |= {"suppression": "1/20"} if name == "optimal-lattice" else {}
    release = mw.anonymize(visits, asked, tmp_path / "r")
    shown, by = whose_rows(release, visits)
    found = next(b for b in release.beliefs if b.attack == "linkage")
    quasi = ["birth_year", "sex", "zip"]
    for side, table, columns, who in (("before", visits, quasi, "patient_id"), ("after", shown, by, "who")):
        people = table.groupby(columns)[who].transform("nunique")
        smallest = people.groupby(table[who]).min()
        assert found.measures[side]["people"] == len(smallest)
        assert found.measures[side]["unique"] == (smallest == 1).sum()
        assert found.measures[side]["smallest_class"] == people.min()
        assert float(Fraction(found.measures[side]["average"])) == pytest.approx((1 / smallest).mean())
        mine = table.groupby([*columns, who]).size()
        share = mine / table.groupby(columns).size().reindex(mine.index.droplevel(who)).to_numpy()
        assert float(found.measures["by_rows"][side]) == pytest.approx(share.max())
    assert found.worst.after == found.measures["by_rows"]["after"] >= Fraction(1, int(people.min()))
    assert found.measures["vulnerable_people"] == 0  # k = 2 is kept
    spread = attribute_distributions(release.grouping)["disease"]
    values = release.grouping.summary.sensitive["disease"].values
    for part, table in zip(spread, (visits, shown), strict=True):
        wanted = table["disease"].value_counts(normalize=True)
        assert part[1:].tolist() == pytest.approx([wanted.get(v, 0.0) for v in values])
    if len(shown) == len(visits):
        assert attribute_total_variation(release.grouping)["disease"] == 0


def test_people_below_k_are_counted_once(visits: pd.DataFrame) -> None:
    """A class per combination: vulnerable is who is in some class of fewer than five people."""
    asked = policy("optimal-lattice", "generalise")
    asked["require"] = [{"model": "k-anonymity", "k": 1}]
    for name in ("birth_year", "zip"):
        asked["columns"][name] |= {"levels": [0]}
    asked["columns"]["sex"] = {"role": "quasi-identifier", "levels": [0]}
    release = mw.anonymize(visits, asked)
    found = next(b for b in release.beliefs if b.attack == "linkage")
    people = visits.groupby(["birth_year", "sex", "zip"])["patient_id"].transform("nunique")
    alone = people.groupby(visits["patient_id"]).min() < 2  # without a k: a chance above 1/2
    assert found.measures["vulnerable_people"] == alone.sum() > 0
    assert found.measures["vulnerable_share"] == Fraction(int(alone.sum()), len(alone))


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


@pytest.mark.parametrize("column", ["patient_id", "stay"])
def test_an_identifier_that_repeats_is_a_question(column: str, visits: pd.DataFrame) -> None:
    asked = policy("optimal-lattice", "generalise") | {"unit": None}
    asked["columns"] |= {"patient_id": "identifier", column: "identifier"}
    with pytest.raises(
        PolicyError, match=r"is an identifier, and some of its values occur in several rows"
    ) as refused:
        mw.anonymize(visits, asked)
    name = str(refused.value).split("'")[1]
    for answer in (name, "none"):  # both that it names do
        assert f"unit: {answer}" in str(refused.value)
        release = mw.anonymize(visits, asked | {"unit": answer})
        assert (release.grouping.summary.rows_are_people, release.policy.to_dict()["unit"]) == (
            answer == "none",
            answer,
        )


def test_missing_identifiers_are_nobody_who_repeats() -> None:
    table = pd.DataFrame(
        {"id": ["a", None, None, "b", "c", "d"], "q": [1, 1, 2, 2, 3, 3], "s": list("xyxyxy")}
    )
    asked = {"columns": {"id": "identifier", "q": "quasi-identifier", "s": "sensitive"},
             "require": [{"model": "k-anonymity", "k": 2}], "method": "optimal-lattice"}  # fmt: skip
    assert mw.anonymize(table, asked).ok
    with pytest.raises(PolicyError, match="'id' is an identifier, and some of its values"):
        mw.anonymize(table.assign(id=["a", None, None, "b", "b", "d"]), asked)


@pytest.mark.parametrize("name", ["optimal-lattice", "mondrian"])
def test_averages_count_everybody_once(name: str, visits: pd.DataFrame, tmp_path: Path) -> None:
    """The average risk against pandas: each person once, with the smallest class; also by those who are dropped."""
    asked = policy(name, "generalise")
    asked["require"] = [SIZE] if name == "mondrian" else [SIZE | {"k": 2}]
    asked["require"].append(
        {"model": "average-risk", "max": "1/5", "use": "gate" if name == "mondrian" else "search"}
    )
    asked["require"].append({"model": "population-uniqueness", "max": 1, "use": "gate"})
    asked["population"] = {"size": 4 * visits["patient_id"].nunique()}
    if name != "mondrian":
        asked["method"] = {"name": name, "suppression": "20%"}
    release = mw.anonymize(visits, asked, tmp_path / "r")
    shown, by = whose_rows(release, visits)
    pairs = shown[[*by, "who"]].drop_duplicates()
    pairs["size"] = pairs.groupby(by)["who"].transform("count")
    smallest = pairs.groupby("who")["size"].min()
    verdict = next(v for v in release.verdicts if v.model == "average-risk")
    assert float(verdict.worst) == pytest.approx(float((1 / smallest).mean()))
    checked = verify_folder(tmp_path / "r")
    assert checked.ok
    again = next(v for v in checked.verdicts if v.model == "average-risk")
    assert again.worst == verdict.worst
    linkage = next(b for b in release.beliefs if b.attack == "linkage")
    assert linkage.measures["estimated"]["after"]["people"] == shown["who"].nunique()


INSTEAD: dict[str, tuple[dict[str, Any], str]] = {
    "marginals": ({"publish": {"marginals": True}}, "make a table with one row per person"),
    "weight": ({"weight": "w"}, "make a table with one row per person"),
    "numbers": (
        {"columns": {"stay": {"role": "sensitive", "publish": {"round": 10}}}},
        "make a table with one row per person",
    ),
    "sequence": (
        {"method": {"name": "anatomy", "l": 2, "person": "patient_id"}, "recoding": "bucketize"},
        "make a table with one row per person",
    ),
    "ck-safety": (
        {"require": [{"model": "ck-safety", "c": "1/2", "k": 1, "attribute": "disease"}]},
        "require {model: belief",
    ),
    "personalised-privacy": (
        {
            "require": [
                {"model": "personalised-privacy", "p": "1/2", "attribute": "disease", "guarding": "sex"}
            ]
        },
        "require {model: belief",
    ),
    "k-anonymity on": (
        {"require": [{"model": "k-anonymity", "k": 2, "on": [["sex"]]}]},
        "require k-anonymity of all quasi-identifiers",
    ),
}


@pytest.mark.parametrize("what", INSTEAD)
def test_what_is_refused_with_several_rows_names_what_does_it_instead(
    what: str, visits: pd.DataFrame
) -> None:
    more, remedy = INSTEAD[what]
    asked = policy("mondrian", "generalise")
    del asked["columns"]["tens"], asked["columns"]["ones"], asked["columns"]["more"]
    asked |= more | {"columns": asked["columns"] | more.get("columns", {})}
    with pytest.raises(PolicyError) as refused:
        mw.anonymize(visits.assign(w=1), asked)
    assert remedy in str(refused.value)
    for advice in ("remove `unit`", "remove unit", "or remove it", "unit: none"):
        assert advice not in str(refused.value)
