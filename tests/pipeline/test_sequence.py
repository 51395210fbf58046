"""Releases that follow each other: the same values around everybody, counterfeits, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.cli import main
from maskwright.errors import InputError, MaskwrightError, PolicyError, PolicyNotMet

DISEASES = ["flu", "ulcer", "asthma", "gout"]
METHOD = {"name": "anatomy", "l": 2, "person": "id"}


def people(numbers: range, shift: int = 0) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": [f"P{i}" for i in numbers],
            "age": [str(20 + i) for i in numbers],
            "disease": [DISEASES[(i + shift) % 4] for i in numbers],
        }
    )


def policy(**more: Any) -> dict[str, Any]:
    return {
        "columns": {
            "id": "identifier",
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}},
            "disease": {"role": "sensitive", "order": DISEASES},
        },
        "require": [{"model": "simple-l-diversity", "l": 2, "use": "gate"}],
        "method": METHOD,
        "recoding": "bucketize",
        **more,
    }


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sequence") / "first"
    mw.anonymize(people(range(8)), policy(), folder)
    return folder


def signatures(folder: Path) -> dict[str, tuple[str, ...]]:
    said = json.loads((folder / "private" / "sequence.json").read_text())
    return {p: tuple(said["signatures"][s]) for p, (_, s) in said["register"].items()}


def test_an_update(first: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    release = mw.anonymize(people(range(3, 12)), policy(), second, after=first)
    before, after = signatures(first), signatures(second)
    assert len(before) == 8
    assert len(after) == 12
    assert before.items() <= after.items()
    assert "4 of 9 people are new, 3 of earlier ones are not in it" in " ".join(release.notes)

    keys = pd.read_parquet(second / "public" / "quasi-identifiers.parquet")
    values = pd.read_parquet(second / "public" / "sensitive.parquet")
    shown = values.groupby("group")["disease"].apply(lambda v: tuple(sorted(v)))
    assert len(keys) == len(values) == 9 + int(keys["age"].isna().sum())
    for group, age in keys.dropna().itertuples(index=False):
        assert shown[group] == tuple(sorted(after[f"P{int(age) - 20}"]))
    counterfeits = int(keys["age"].isna().sum())
    assert json.loads((second / "public" / "manifest.json").read_text())["counterfeits"] == counterfeits
    if counterfeits:
        assert (
            f"{counterfeits} of the rows are counterfeits"
            in (second / "public" / "data-card.html").read_text()
        )

    (together,) = [b for b in release.beliefs if b.attack == "intersection"]
    assert (together.worst.after, together.kind) == (Fraction(1, 2), "exact")
    assert together.measures["releases"] == 2
    (promise,) = release.promises
    assert promise.status == "guaranteed"
    assert "earlier releases" in {i.name for i in promise.ingredients}
    assert mw.verify(second).ok
    assert mw.load(second).promises[0].status == "guaranteed"
    # whoever knows everybody and has both, played by the attack, which knows nothing of signatures
    assert mw.attack([first, second], "intersection").worst.after == Fraction(1, 2)
    # without a sequence two releases of the same people tell much
    three = people(range(9)).assign(disease=DISEASES[:3] * 3)
    apart = [mw.anonymize(three, policy(method={"name": "anatomy", "l": 2}), seed=s) for s in (1, 2, 3)]
    assert mw.attack(apart, "intersection").worst.after > Fraction(1, 2)


def test_a_third_and_somebody_who_returns(first: Path, tmp_path: Path) -> None:
    mw.anonymize(people(range(4, 8)), policy(), tmp_path / "second", after=first)
    mw.anonymize(people(range(8)), policy(), tmp_path / "third", after=tmp_path / "second")
    assert signatures(tmp_path / "third") == signatures(first)


def test_people_of_the_same_age_are_believed_no_more_than_one_release_shows(tmp_path: Path) -> None:
    """Which of them is in which group is not known, but that everybody's group shows the same values is."""
    everybody = people(range(20)).assign(age=[str(20 + i % 6) for i in range(20)])
    mw.anonymize(everybody[3:], policy(), tmp_path / "one", seed=1)
    mw.anonymize(everybody[:-3], policy(), tmp_path / "two", seed=2, after=tmp_path / "one")
    both = [tmp_path / "one", tmp_path / "two"]
    found = mw.attack(both, "intersection")
    assert found.worst.after <= Fraction(1, 2)
    assert found.measures["certain_people"] == found.measures["almost_certain_people"] == 0
    unaware = mw.attack(both, "intersection", adversary="neighbour")
    assert unaware.worst.after > Fraction(1, 2), "whoever does not know the method takes more to be possible"


def test_releases_in_memory_are_known_as_a_sequence_too(tmp_path: Path) -> None:
    """Those of equal age in other groups would otherwise be paired in ways that the method excludes."""
    everybody = people(range(20)).assign(age=[str(20 + i % 6) for i in range(20)])
    one = mw.anonymize(everybody[3:], policy(), tmp_path / "one", seed=1)
    two = mw.anonymize(everybody[:-3], policy(), tmp_path / "two", seed=2, after=tmp_path / "one")
    for both in ([one, two], [two, one], [one, tmp_path / "two"], [mw.load(tmp_path / "one"), two]):
        found = mw.attack(both, "intersection")
        assert (found.worst.after, found.kind) == (Fraction(1, 2), "exact")
        assert found.measures["people"] == {"known": "listed", "in_several_tables": 14, "in_any": 20}
    fork = mw.anonymize(everybody[:-3], policy(), seed=3, after=tmp_path / "one")
    apart = mw.attack([two, fork], "intersection")
    assert apart.measures["people"]["known"] == "listed", "they know who is in them"
    assert apart.worst.after > Fraction(1, 2), "but nobody's values stay the same in a fork"


@pytest.mark.parametrize("most", [60, 0])
def test_counterfeits_are_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """What is believed is believed of people: counted and fitted it is one over l for everybody."""
    from maskwright.attacks import intersection

    monkeypatch.setattr(intersection, "MOST_PEOPLE", most)
    one = mw.anonymize(people(range(16)), policy(), tmp_path / "one", seed=1)
    two = mw.anonymize(people(range(5, 20)), policy(), seed=2, after=tmp_path / "one")
    assert two.target is not None
    assert sum("counterfeits" in note for note in two.notes) == 1
    found = mw.attack([one, two], "intersection")
    assert (found.worst.after, found.worst.upper) == (Fraction(1, 2), Fraction(1, 2))
    assert found.kind == "exact"
    assert found.measures["people"]["in_any"] == 20
    assert found.measures["vulnerable_people"] == 0
    by = found.measures["expected_belief"]
    assert by["by everybody's"] == pytest.approx(0.5, abs=1e-9)
    assert by["by the person's classes alone"] == pytest.approx(0.5, abs=1e-9)


def test_newcomers_alone(first: Path, tmp_path: Path) -> None:
    table = pd.concat([people(range(8)), people(range(8, 9))])
    with pytest.raises(PolicyNotMet, match=r"the 1 newcomer cannot .* newcomers: alone"):
        mw.anonymize(table, policy(), after=first)
    alone = policy(method={**METHOD, "newcomers": "alone"})
    release = mw.anonymize(table, alone, tmp_path / "second", after=first)
    assert "1 counterfeits in 1 of 5 groups" in " ".join(release.notes)
    del alone["columns"]["disease"]["order"]
    with pytest.raises(PolicyError, match=r"columns\.disease an `order`"):
        mw.anonymize(table, alone, after=first)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (people(range(8), shift=1), "8 people have another value"),
        (pd.concat([people(range(8)), people(range(8))]), "'id' repeats in 8 rows"),
        (people(range(8)).assign(id=None), "'id' is missing in 8 rows"),
        (people(range(8)).drop(columns="id"), "'id'"),
        (people(range(8)).assign(disease=None), "'disease' is missing in 8 rows"),
    ],
)
def test_bad_updates(first: Path, table: pd.DataFrame, message: str) -> None:
    with pytest.raises(MaskwrightError, match=message) as problem:
        mw.anonymize(table, policy(), after=first)
    assert "P1" not in str(problem.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": {"name": "anatomy", "l": 2}}, "method whose groups last"),
        ({"recoding": "permute"}, "recoding: bucketize"),
        ({"require": [{"model": "k-anonymity", "k": 2}]}, "k-anonymity would count counterfeits"),
        ({"missing": {"rows": "drop"}}, "keep them"),
        ({"unit": "id"}, "every person must have one row"),
        ({"method": {**METHOD, "person": "age"}}, "role must be identifier"),
        ({"method": {**METHOD, "block": 4}}, "groups that last"),
        ({"method": {"name": "anatomy", "l": 2, "newcomers": "alone"}}, "name the column `person`"),
    ],
)
def test_bad_policies(first: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        mw.anonymize(people(range(8)), policy(**change), after=first)


def test_what_cannot_be_followed(first: Path, tmp_path: Path) -> None:
    mw.anonymize(people(range(8)), policy(), tmp_path / "kept", keep_private="report")
    with pytest.raises(InputError, match=r"keep-private all, can be followed"):
        mw.anonymize(people(range(8)), policy(), after=tmp_path / "kept")
    with pytest.raises(MaskwrightError, match="would be replaced"):
        mw.anonymize(people(range(8)), policy(), first, after=first, overwrite=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.update(people=3.5),
        lambda said: said["people"][0].append([]),
        lambda said: said["signatures"][0].clear(),  # somebody would be in no group
        lambda said: said["register"].popitem(),  # somebody known would be new
    ],
)
def test_a_register_that_was_changed_is_refused(
    first: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(first, folder)
    path = folder / "private/sequence.json"
    said = json.loads(path.read_text())
    change(said)
    path.write_text(json.dumps(said))
    with pytest.raises(InputError, match=r"sequence.json' was changed since it was written"):
        mw.anonymize(people(range(8)), policy(), after=folder)
    with pytest.raises(InputError, match=r"sequence.json' was changed since it was written"):
        mw.attack([first, folder])


def test_by_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    (tmp_path / "p.yaml").write_text(yaml.safe_dump({"version": 1, **policy()}))
    people(range(8)).to_csv(tmp_path / "a.csv", index=False)
    people(range(2, 10)).to_csv(tmp_path / "b.csv", index=False, sep=";")
    run = ["anonymize", "-p", str(tmp_path / "p.yaml"), "-o"]
    assert main([*run, str(tmp_path / "one"), str(tmp_path / "a.csv")]) == 0
    assert main([*run, str(tmp_path / "two"), str(tmp_path / "b.csv"), "--after", str(tmp_path / "one")]) == 0
    out = capsys.readouterr()
    assert "release 2 of a sequence" in out.out + out.err
    assert main(["verify", str(tmp_path / "two")]) == 0
    assert (
        main(
            [
                "anonymize",
                str(tmp_path / "b.csv"),
                "-p",
                str(tmp_path / "p.yaml"),
                "-o",
                str(tmp_path / "x"),
                "--after",
                str(tmp_path),
            ]
        )
        == 2
    )
