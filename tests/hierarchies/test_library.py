"""Ready hierarchies: each says where it comes from, is nested, and knows what it lists."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import maskwright as mw
from maskwright.errors import HierarchyError, PolicyError
from maskwright.hierarchies.library import _tree_of, library_entry, library_names
from maskwright.policy.policy import Policy
from tests.hierarchies.test_builders import build

SAMPLES = {
    "age-groups": [*map(str, range(-1, 120)), "0.5", "64.9"],
    "bmi-who": ["-1", "0", "16", "18.4", "18.5", "24.9", "30", "39.99", "40", "70"],
    "money": ["-3", "0", "0.5", "1", "9.99", "1999", "2000", "123456789"],
    "icd-10": [f"{letter}{i:02}.{i % 9}" for letter in "ABCEFGIJKLMNPQRSTVWXYZU" for i in range(1, 90, 7)]
    + ["D48", "D50", "H59", "H60", "O9A"],
    "isco-08": ["0110", "1112", "2512", "9629", "96"],
    "nace": ["01", "01.1", "62.01", "6201", "99"],
    "naics": ["11", "111", "211", "311", "541511", "92"],
    "soc-2018": ["11-1011", "15-1252", "55-1011"],
    "zip-us": ["00501", "02139", "02139-4307", "10001", "20001", "33101", "60601", "73301", "90210", "96910", "99501"],
}  # fmt: skip


@pytest.mark.parametrize("name", library_names())
def test_it_says_where_it_comes_from_and_is_nested(name: str) -> None:
    entry = library_entry(name)
    assert entry.title and entry.source and entry.licence
    values = SAMPLES.get(name) or sorted(_tree_of(name))
    hierarchy = build({"library": name}, values, Path(), ())  # refuses levels that are not nested
    assert set(hierarchy.values) == set(values)
    assert len(hierarchy.levels) > 2
    assert {level.name for level in hierarchy.levels[1:-1]} <= set(entry.levels)


def test_every_kind_is_tried() -> None:
    trees = {name for name in library_names() if library_entry(name).kind == "tree"}
    assert trees | set(SAMPLES) == set(library_names())


@pytest.mark.parametrize("name", [n for n in library_names() if library_entry(n).kind == "ranges"])
def test_ranges_do_not_overlap(name: str) -> None:
    spans = sorted(
        (s.partition("-")[0], s.partition("-")[2] or s) for s in library_entry(name).data["ranges"]
    )
    for (first, last), (following, _) in pairwise(spans):
        assert first <= last < following


@pytest.mark.parametrize(
    ("name", "value", "labels"),
    [
        ("icd-10", "D48.9", ("D48", "D40-D49", "II neoplasms")),
        ("icd-10", "h60", ("H60", "H60-H69", "VIII ear")),
        ("zip-us", "02139-4307", ("021", "MA", "New England", "Northeast")),
        ("countries", "united-states", ("Northern America", "Americas")),
        ("countries", "NA", ("Southern Africa", "Africa")),
        ("us-states", "District of Columbia", ("South Atlantic", "South")),
        ("isced", "HS-grad", ("3 upper secondary", "medium")),
        ("age-groups", "0", ("0", "0-14", "0-14")),
        ("age-groups", "85", ("85+", "85+", "65+")),
        ("bmi-who", "18.5", ("18.5-<25", "18.5-<25")),
        ("money", "1999.99", ("1000-<2000", "1000-<10000", "100-<10000")),
        ("nace", "62.01", ("62", "J information and communication")),
        ("icd-10", "11", None),
        ("zip-us", "1234", None),
        ("countries", "Atlantis", None),
        ("age-groups", "old", None),
    ],
)
def test_labels(name: str, value: str, labels: tuple[str, ...] | None) -> None:
    assert library_entry(name).labels_of(value) == labels


def test_what_it_does_not_know_is_refused_by_name() -> None:
    with pytest.raises(HierarchyError, match=r"'countries' does not know 'Atlantis' \(1 of 2 values\)"):
        build({"library": "countries"}, ["Atlantis", "DE"], Path(), ())
    columns = {"country": {"role": "quasi-identifier", "hierarchy": {"library": "contries"}}}
    with pytest.raises(PolicyError, match="there is no ready hierarchy 'contries'; did you mean 'countries'"):
        Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 2}]}, "policy")


def test_a_release_with_it(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("country\n" + "DE\nFR\nIT\nES\nPL\nCZ\n" * 2, encoding="utf-8")
    columns = {"country": {"role": "quasi-identifier", "hierarchy": {"library": "countries"}}}
    release = mw.anonymize(path, {"columns": columns, "require": [{"model": "k-anonymity", "k": 4}]})
    shown = sorted(set(release.table.df()["country"]))
    assert shown == ["Eastern Europe", "Southern Europe", "Western Europe"]
