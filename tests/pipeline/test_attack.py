"""Attacking a release later: from its folder, from memory, from the command line."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import maskwright as mw
from maskwright.errors import InputError, UsageError
from tests.patients import Command


@pytest.fixture
def folder(table: Path, policy: Path, tmp_path: Path) -> Path:
    mw.anonymize(table, policy, tmp_path / "release")
    return tmp_path / "release"


def test_the_folder_gives_the_same_beliefs_as_memory(table: Path, policy: Path, folder: Path) -> None:
    release = mw.anonymize(table, policy)
    for name in ("linkage", "homogeneity", "background-knowledge"):
        here, there = mw.attack(release, name), mw.attack(folder, name)
        assert not isinstance(here, list)
        assert not isinstance(there, list)
        assert here.worst == there.worst
        assert here.measures == there.measures


def test_every_attack_that_applies_worst_first(folder: Path) -> None:
    found = mw.attack(folder)
    assert isinstance(found, list)
    beliefs = [b.worst.upper for b in found]
    assert beliefs == sorted(beliefs, reverse=True)
    assert {"linkage", "homogeneity", "background-knowledge"} <= {b.attack for b in found}


def test_homogeneity_is_the_largest_share(folder: Path, table: Path, policy: Path) -> None:
    release = mw.anonymize(table, policy)
    counts = release.grouping.classes.sensitive["disease"]
    shares = [
        Fraction(n, int(release.grouping.classes.sizes[c]))
        for c in range(counts.n_classes)
        for n in counts.of_class(c).values()
    ]
    found = mw.attack(release, "homogeneity")
    assert not isinstance(found, list)
    assert found.worst.after == max(shares)


def test_more_facts_never_help_less(folder: Path) -> None:
    worst = []
    for facts in range(4):
        found = mw.attack(folder, "background-knowledge", facts=facts)
        assert not isinstance(found, list)
        worst.append(found.worst.after)
    assert worst == sorted(worst)


def test_the_command(maskwright: Command, folder: Path) -> None:
    done = maskwright("attack", folder)
    assert done.code == 0, done.err
    assert "linkage (exact)" in done.out
    only = maskwright("attack", folder, "--attack", "linkage", "--json").json
    assert [b["attack"] for b in only["beliefs"]] == ["linkage"]
    assert maskwright("attack", folder, "--attack", "linkage", "--max-belief", "1/4").code == 0
    above = maskwright("attack", folder, "--max-belief", "0.01")
    assert above.code == 1
    assert "ABOVE THE BOUND" in above.out


def test_what_was_not_attacked_is_not_below_a_bound(maskwright: Command, folder: Path) -> None:
    """The intersection of several releases says nothing about one: that is said, and is no success."""
    done = maskwright("attack", folder, "--attack", "intersection", "--max-belief", "1")
    assert done.code == 1
    assert "No attack applies to this release" in done.out
    told = maskwright("attack", folder, "--attack", "intersection", "--max-belief", "1", "--json")
    assert (told.code, told.json["ok"]) == (1, False)


@pytest.mark.parametrize(
    ("options", "word"),
    [(["--attack", "linkag"], "did you mean 'linkage'"), (["--adversary", "nobody"], "neighbour"),
     (["--max-belief", "much"], "--max-belief")],
)  # fmt: skip
def test_bad_usage(maskwright: Command, folder: Path, options: list[str], word: str) -> None:
    done = maskwright("attack", folder, *options)
    assert done.code == 2
    assert word in done.error


def test_what_cannot_be_attacked(table: Path, policy: Path, tmp_path: Path) -> None:
    mw.anonymize(table, policy, tmp_path / "r", keep_private="report")
    with pytest.raises(InputError, match="keep-private"):
        mw.attack(tmp_path / "r")
    with pytest.raises(UsageError, match="no attack"):
        mw.attack(mw.anonymize(table, policy), "magic")


def test_who_does_not_know_the_method_cannot_reason_about_it(folder: Path) -> None:
    known, unknown = mw.attack(folder, adversary="insider"), mw.attack(folder, adversary="neighbour")
    assert isinstance(known, list)
    assert isinstance(unknown, list)
    assert {b.attack for b in known} - {b.attack for b in unknown} == {"minimality", "combined"}
    with pytest.raises(UsageError, match="neighbour does not know enough"):
        mw.attack(folder, "minimality", adversary="neighbour")


def test_details_follow_the_sentences(maskwright: Command, folder: Path) -> None:
    lines = maskwright("attack", folder, "--adversary", "insider").out.splitlines()
    first = lines.index("")
    assert any("linkage (exact)" in line for line in lines[:first])
    details = lines[first:]
    assert "linkage, adversary insider:" in details
    assert any("people are vulnerable" in line for line in details)
    assert any(
        "singled out before the release by at most 3 attributes: 40 people" in line for line in details
    )
    assert any("known facts: " in line for line in details)
