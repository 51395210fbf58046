"""A gate compares with those who are published: that a release was made says nothing of those who are not in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import maskwright as mw
from maskwright.domain.release import Release
from maskwright.errors import PolicyNotMet
from maskwright.pipeline.gates import verify_release
from maskwright.policy.policy import Policy

POLICY = """
version: 1
columns:
  age: {{role: quasi-identifier, hierarchy: {{intervals: [10]}}}}
  disease: sensitive
require: [{{model: k-anonymity, k: 2}}, {model}]
method: {method}
"""
SMALL = "{name: optimal-lattice, suppression: 40%, suppress: small-classes}"
ABC = ("a", "b", "c", "d")


def attempt(
    folder: Path, rows: list[str], model: str, method: str = SMALL
) -> tuple[Release, dict[str, bytes]] | None:
    """The release and its public files; None: refused."""
    folder.mkdir(parents=True)
    (folder / "t.csv").write_text("\n".join(["age,disease", *rows]) + "\n")
    (folder / "p.yaml").write_text(POLICY.format(model=model, method=method))
    try:
        made = mw.anonymize(folder / "t.csv", Policy.load(folder / "p.yaml"), seed=1)
    except PolicyNotMet:
        return None
    made.save(folder / "out")
    return made, {p.name: p.read_bytes() for p in sorted((folder / "out" / "public").iterdir())}


# The groups 20-29 (a, a, b) and 30-39 (a, b, b); one person of 97, who is dropped. The distance of either from those
# who are published is 1/6; from the whole table it is 1/6, more, or less, by the value of that person.
PUBLISHED = ["20,a", "21,a", "22,b", "30,a", "31,b", "32,b"]
GATES = {
    "t-closeness": "{model: t-closeness, t: 1/6, use: gate}",
    "ordered": "{model: t-closeness, t: 1/6, distance: ordered, use: gate}",
    "nt-closeness": "{model: nt-closeness, n: 3, t: 1/6, use: gate}",
    "delta-disclosure": "{model: delta-disclosure, delta: 0.41, use: gate}",
    "beta-likeness": "{model: beta-likeness, beta: 1/3, use: gate}",
}


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_says_nothing_of_the_value_of_a_dropped_person(tmp_path: Path, gate: str) -> None:
    """Enumerate the values that the person of 97 might have: all of them are published, and all alike."""
    worlds = [attempt(tmp_path / v, [*PUBLISHED, f"97,{v}"], GATES[gate]) for v in ABC]
    assert all(world is not None for world in worlds)
    files = [world[1] for world in worlds if world]
    assert all(other == files[0] for other in files)
    assert all(world[0].grouping.dropped_rows == 1 for world in worlds if world)


@pytest.mark.parametrize("gate", GATES)
def test_whoever_has_the_public_files_recounts_the_same(tmp_path: Path, gate: str) -> None:
    made = attempt(tmp_path / "a", [*PUBLISHED, "97,d"], GATES[gate])
    assert made is not None
    mine = made[0].verdicts[-1]
    kept = verify_release(tmp_path / "a" / "out")
    policy = Policy.load(tmp_path / "a" / "p.yaml")
    assert kept.ok
    assert mine.worst == kept.verdicts[-1].worst
    if gate != "nt-closeness":  # it needs the groups that classes were split from
        alone = verify_release(tmp_path / "a" / "out" / "public" / "data.csv", policy=policy)
        assert alone.ok
        assert mine.worst == alone.verdicts[-1].worst
    stored = json.loads((tmp_path / "a" / "out" / "private" / "reference.json").read_text())
    assert stored["released"]["data"]["sensitive"][0]["values"] == ["a", "b"]


def test_a_release_of_an_earlier_version_is_verified_as_it_was_made(tmp_path: Path) -> None:
    """Its private/reference.json knows the whole table only."""
    made = attempt(tmp_path / "a", [*PUBLISHED, "97,d"], GATES["t-closeness"])
    assert made is not None
    file = tmp_path / "a" / "out" / "private" / "reference.json"
    stored = json.loads(file.read_text())
    del stored["released"]
    file.write_text(json.dumps(stored))
    found = verify_release(tmp_path / "a" / "out", recount_only=True)
    assert found.verdicts[-1].quantity == "distance (equal) from the whole table"
    assert found.verdicts[-1].worst != made[0].verdicts[-1].worst


def test_a_search_by_other_methods_keeps_the_table_before_suppression(tmp_path: Path) -> None:
    model = "{model: t-closeness, t: 1/4}"
    made = attempt(tmp_path / "a", [*PUBLISHED, "97,d"], model)
    assert made is not None
    assert made[0].verdicts[-1].quantity == "distance (equal) from the whole table"


def test_nothing_changes_where_nobody_is_dropped(tmp_path: Path) -> None:
    made = attempt(tmp_path / "a", PUBLISHED, GATES["t-closeness"])
    assert made is not None
    assert made[0].verdicts[-1].quantity == "distance (equal) from the whole table"
    stored = json.loads((tmp_path / "a" / "out" / "private" / "reference.json").read_text())
    assert stored["released"] == {"data": None}


@pytest.mark.parametrize("distance", ["equal", "ordered"])
def test_balanced_cuts_compare_with_the_rows_that_were_not_dropped_at_random(
    tmp_path: Path, distance: str
) -> None:
    """The same draw in every world: the release does not depend on the value of the person whom it drops."""
    model = f"{{model: t-closeness, t: 1/3, distance: {distance}}}"
    rows = [f"{20 + i},{'ab'[i % 2]}" for i in range(9)]
    method = "{name: mondrian, splits: halves, least: 4}"
    first = attempt(tmp_path / "first", rows, model, method)
    assert first is not None
    grouping = first[0].grouping
    gone = grouping.allocation.tuples[grouping.allocation.groups < 0]
    assert len(gone) == 1
    published = set()
    for value in ABC:
        mine = [f"{row.split(',')[0]},{value}" if i == int(gone[0]) else row for i, row in enumerate(rows)]
        world = attempt(tmp_path / value, mine, model, method)
        assert world is not None
        assert (
            world[0].grouping.allocation.tuples[world[0].grouping.allocation.groups < 0].tolist()
            == gone.tolist()
        )
        assert world[0].verdicts[-1].quantity.endswith("from the published table")
        assert verify_release(tmp_path / value / "out").ok
        published.add(tuple(world[1].items()))
    assert len(published) == 1
