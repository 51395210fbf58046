"""Ready hierarchies: each says where it comes from, is nested, and knows what it lists."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

import maskwright as mw
from maskwright.errors import HierarchyError, PolicyError
from maskwright.hierarchies.library import _blocks_of, _tree_of, library_entry, library_names
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
    "naics": [*map(str, (11, *range(21, 24), 31, 32, 33, 42, 44, 45, 48, 49, *range(51, 57), 61, 62, 71, 72, 81, 92))],
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


@pytest.mark.parametrize("name", [n for n in library_names() if "blocks" in library_entry(n).data])
def test_blocks_do_not_overlap_and_lie_in_one_range_each(name: str) -> None:
    """Each code of each block has the labels of the others, and no block is listed twice."""
    spans = _blocks_of(name)
    for (first, last), (following, _) in pairwise(spans):
        assert first <= last < following
    for first, last in spans:
        ends = [library_entry(name).labels_of(code) for code in (first, last)]
        assert ends[0] is not None and ends[1] is not None
        assert ends[0][1:] == ends[1][1:]


def test_chapters_of_icd_10_have_their_blocks() -> None:
    """As the WHO counts them in the version of 2019: 21 to 24 of the infectious ones, 11 of mental disorders."""
    chapters = Counter(labels[2].split()[0] for first, _ in _blocks_of("icd-10")
                       if (labels := library_entry("icd-10").labels_of(first)))  # fmt: skip
    assert (chapters["V"], chapters["IX"], chapters["X"], chapters["VII"]) == (11, 10, 10, 11)


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
        ("icd-10", "D48.9", ("D48", "D37-D48", "II neoplasms")),
        ("icd-10", "h60", ("H60", "H60-H62", "VIII ear")),
        ("icd-10", "E08.9", ("E08", "E08-E14", "IV endocrine, nutritional and metabolic")),
        ("icd-10", "Y02", ("Y02", "X85-Y09", "XX external causes")),
        ("icd-10", "M1A.00", ("M1A", "M05-M14", "XIII musculoskeletal system")),
        ("icd-10", "C50.911", ("C50", "C50", "II neoplasms")),
        ("naics", "322110", ("32", "31-33", "manufacturing")),
        ("naics", "522110", ("52", "52", "information, finance and business")),
        ("zip-us", "02139-4307", ("0213", "021", "MA", "New England", "Northeast")),
        ("countries", "united-states", ("Northern America", "Americas")),
        ("countries", "NA", ("Southern Africa", "Africa")),
        ("us-states", "District of Columbia", ("South Atlantic", "South")),
        ("us-states", "06", ("Pacific", "West")),
        ("us-states", "6", ("Pacific", "West")),
        ("us-states", "72", ("Territories", "Outside the states")),
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


def test_how_many_there_are_of_each() -> None:
    """What the sources count: 249 countries and areas but Antarctica, and Kosovo; 50 states and DC; 22 chapters …"""
    trees = {name: library_entry(name).data["tree"] for name in ("countries", "us-states", "isced")}
    leaves = {
        name: [v for subs in tree.values() for vs in subs.values() for v in vs]
        for name, tree in trees.items()
    }
    codes = [leaf.split(" ")[:2] for leaf in leaves["countries"]]
    assert len({a for a, _ in codes}) == len({b for _, b in codes}) == len(codes) == 249
    assert list(trees["countries"]) == ["Africa", "Americas", "Asia", "Europe", "Oceania"]
    assert sum(len(subs) for subs in trees["countries"].values()) == 22
    states = {k: v for k, v in trees["us-states"].items() if k != "Outside the states"}
    assert (len(states), sum(map(len, states.values()))) == (4, 9)
    assert sum(len(vs) for subs in states.values() for vs in subs.values()) == 51
    sizes = {name: len(library_entry(name).data["ranges"]) for name in ("icd-10", "isco-08", "nace")}
    assert sizes == {"icd-10": 22, "isco-08": 10, "nace": 21}
    two_digits = {name: sum(map(bool, map(library_entry(name).labels_of, CODES[name]))) for name in CODES}
    assert two_digits == {"isco-08": 43, "nace": 88, "soc-2018": 23, "naics": 24}
    assert all(
        len({tuple(vs) for vs in subs.values()}) == len(subs)
        for tree in trees.values()
        for subs in tree.values()
    )


CODES = {
    "isco-08": [f"{i:02}" for i in range(100)],
    "nace": [f"{i:02}" for i in range(100)],
    "soc-2018": [f"{i}-1011" for i in range(11, 56, 2)],
    "naics": [*map(str, (11, *range(21, 24), 31, 32, 33, 42, 44, 45, 48, 49, *range(51, 57), 61, 62, 71, 72, 81, 92))],
}  # fmt: skip
