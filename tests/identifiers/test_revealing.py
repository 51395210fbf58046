"""Identifiers that are published as pseudonyms: what they tell apart, who can tell whose they are, where keys lie."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.cli.commands import main
from maskwright.domain.promise import Promise
from maskwright.engines.sql import preparing
from maskwright.errors import InputError, NotVerified, PolicyError, UsageError
from maskwright.folder.later_files import later_problems, log_reveal
from maskwright.pipeline import random_keys
from maskwright.pipeline.revealing import KEYS, kept_pseudonyms, reveal_people
from maskwright.recoder import Recoder
from maskwright.verification.against_policy import check_against_policy
from maskwright.verification.verify import verify_folder

MARK = "Zq9"
SHOWN = {"role": "identifier", "publish": "pseudonym"}
STABLE = SHOWN | {"stable": True}


def people(n: int = 40, first: int = 0) -> pd.DataFrame:
    """People with a record number that nobody else has."""
    return pd.DataFrame(
        {
            "mrn": [f"{MARK}{first + i:05d}" for i in range(n)],
            "age": [30 + 10 * (i % 2) for i in range(n)],
            "ill": [["flu", "cold", "ulcer"][i % 3] for i in range(n)],
        }
    )


def policy(mrn: Any = SHOWN, name: str = "mrn", **more: Any) -> dict[str, Any]:
    return {
        "columns": {name: mrn, "age": "quasi-identifier", "ill": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 2}],
        **more,
    }


def tokens(release: mw.Release, name: str = "mrn") -> set[str]:
    return set(release.table[name])


def test_every_value_has_a_pseudonym_of_its_own_in_every_release() -> None:
    one, two = mw.anonymize(people(), policy()), mw.anonymize(people(), policy(method="mondrian"))
    other = mw.anonymize(people(40, first=20), policy())
    assert len(tokens(one)) == len(one.table) == 40
    assert not tokens(one) & tokens(two) and not tokens(one) & tokens(other)
    assert tokens(mw.anonymize(people(), policy())) == tokens(one)
    for release in (one, other):
        assert all(isinstance(p, Promise) and p.status == "measured" for p in release.promises)


def test_stable_pseudonyms_are_shared_by_releases_of_a_group_and_by_no_other() -> None:
    one = mw.anonymize(people(), policy(STABLE | {"group": "people"}))
    moved = people(40, first=20).rename(columns={"mrn": "patient"})
    two = mw.anonymize(moved, policy(STABLE | {"group": "people"}, "patient"))
    other = mw.anonymize(people(), policy(STABLE))
    assert len(tokens(one) & tokens(two, "patient")) == 20
    assert not tokens(one) & tokens(other)
    assert any("linkability" in note for note in one.notes)
    assert {p.status for p in one.promises} == {"measured"}


def test_a_key_that_does_not_last_makes_no_stable_pseudonyms(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> random_keys.InstallationKey:
        return random_keys.InstallationKey(b"k" * 32, "the disk is full")

    monkeypatch.setattr(random_keys, "installation_key", lost)
    with pytest.raises(UsageError, match=r"could not be kept \(the disk is full\)"):
        mw.anonymize(people(), policy(STABLE))
    assert mw.anonymize(people(), policy()).ok


def test_revealed_by_the_custodian_alone_and_written_down(tmp_path: Path) -> None:
    """Round trip; what is asked is logged before it is answered, and a changed log is found out."""
    people().to_csv(tmp_path / "t.csv", index=False)
    mw.anonymize(tmp_path / "t.csv", policy(), tmp_path / "r")
    table = pd.read_csv(tmp_path / "r" / "public" / "data.csv")
    every = reveal_people(tmp_path / "r", tmp_path / "t.csv", list(table["mrn"]), "a test")
    assert every.ok and sorted(v for values in every.values.values() for v in values) == list(people()["mrn"])
    by_value = people().set_index("mrn")
    for token, (value,) in every.values.items():  # it is that person's row
        row = table[table["mrn"] == token].iloc[0]
        assert str(row["ill"]) == by_value.loc[value, "ill"]
    nobody = reveal_people(tmp_path / "r", tmp_path / "t.csv", ["A" * 16], "another")
    assert not nobody.ok and nobody.unknown == ("A" * 16,)
    log = tmp_path / "r" / "private" / "reveals.jsonl"
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [entry["reason"] for entry in told] == ["a test", "another"]
    assert set(told[0]["pseudonyms"]) == set(table["mrn"]) and MARK not in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert verify_folder(tmp_path / "r").ok
    log.write_text(log.read_text().replace("a test", "no test"))
    assert any("reveals.jsonl was changed: line 2" in p for p in verify_folder(tmp_path / "r").problems)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (([], "why", None), "name the pseudonyms"),
        ((["Ann"], "why", None), "number 1 of what is to be revealed is no pseudonym"),
        ((["A" * 16], " ", None), "say why"),
        ((["A" * 16], "why", "age"), "no pseudonyms in a column 'age'"),
    ],
)
def test_what_cannot_be_revealed_is_not_logged(tmp_path: Path, asked: tuple[Any, ...], message: str) -> None:
    mw.anonymize(people(), policy(), tmp_path / "r")
    with pytest.raises(UsageError, match=message):
        reveal_people(tmp_path / "r", people(), *asked)
    assert not (tmp_path / "r" / "private" / "reveals.jsonl").exists()


def test_nothing_is_revealed_that_cannot_be_logged(tmp_path: Path) -> None:
    release = mw.anonymize(people(), policy(), tmp_path / "r")
    [token, *_] = pd.read_parquet(release.path / "public" / "data.parquet")["mrn"]
    (tmp_path / "r" / "private" / "reveals.jsonl").mkdir()
    with pytest.raises(mw.errors.DestinationError, match="nothing is revealed"):
        reveal_people(tmp_path / "r", people(), [token], "why")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people().to_csv(tmp_path / "t.csv", index=False)
    mw.anonymize(tmp_path / "t.csv", policy(), tmp_path / "r")
    token = pd.read_csv(tmp_path / "r" / "public" / "data.csv")["mrn"][0]
    (tmp_path / "list").write_text(f"{token}\n")
    said = ["reveal", str(tmp_path / "r"), f"@{tmp_path / 'list'}", "--source", str(tmp_path / "t.csv")]
    assert main([*said, "--reason", "adverse event"]) == 0
    assert f"{token}  mrn {MARK}" in capsys.readouterr().out
    assert main([*said[:3], "BBBBBBBBBBBBBBBB", *said[3:], "--reason", "x", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["unknown"] == ["BBBBBBBBBBBBBBBB"]
    assert main(said) == 2


def test_keys_and_values_are_not_in_public(tmp_path: Path) -> None:
    """The key lies in one private file, and only where all that is private is kept."""
    for keep in ("all", "report", "none"):
        mw.anonymize(people(), policy(STABLE), tmp_path / keep, keep_private=keep)
    [kept] = kept_pseudonyms(tmp_path / "all").values()
    for keep in ("all", "report", "none"):
        holding = set()
        for file in (p for p in (tmp_path / keep).rglob("*") if p.is_file()):
            content = file.read_bytes()
            if kept.key in content or kept.key.hex().encode() in content.lower():
                holding.add(file.relative_to(tmp_path / keep).as_posix())
            assert file.parent.name != "public" or MARK.encode() not in content, file
        assert holding == ({f"private/{KEYS}"} if keep == "all" else set())
    with pytest.raises(InputError, match="nobody can tell whose they are"):
        reveal_people(tmp_path / "report", people(), ["A" * 16], "why")


def test_collisions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With pseudonyms of one letter and nothing else, forty people share at most 32 of them."""
    whole = preparing.clauses.pseudonym

    def short(digest: Any) -> Any:
        from sqlglot import exp

        first = exp.Substring(this=whole(digest), start=exp.Literal.number(1), length=exp.Literal.number(1))
        return exp.DPipe(this=first, expression=exp.Literal.string("A" * 15))

    monkeypatch.setattr(preparing.clauses, "pseudonym", short)
    with pytest.raises(NotVerified, match="the same pseudonym in several rows"):
        mw.anonymize(people(), policy())
    visits = pd.concat([people(), people()])
    release = mw.anonymize(visits, policy("identifier", unit={"column": "mrn", "publish": "pseudonym"}))
    shared = 40 - release.table["mrn"].nunique()
    assert shared >= 8
    assert f"column 'mrn': {shared} values share their pseudonym with another" in release.notes


def test_one_setting_serves_people_with_several_rows() -> None:
    """`publish` of the column is the `publish` of the unit: the same promise, attacks and refusals."""
    visits = pd.concat([people(), people()])
    one = mw.anonymize(visits, policy(SHOWN, unit="mrn"))
    two = mw.anonymize(visits, policy("identifier", unit={"column": "mrn", "publish": "pseudonym"}))
    assert tokens(one) and len(tokens(one)) == len(tokens(two)) == 40
    assert [b.attack for b in one.beliefs] == [b.attack for b in two.beliefs]
    assert "linked-visits" in {b.attack for b in one.beliefs}
    stable = mw.anonymize(visits, policy(STABLE, unit="mrn"))
    assert tokens(stable) == tokens(mw.anonymize(people(), policy(STABLE)))


def test_missing_identifiers_stay_missing() -> None:
    frame = people()
    frame.loc[[3, 5], "mrn"] = None
    release = mw.anonymize(frame, policy())
    assert release.table["mrn"].isna().sum() == 2 and release.table["mrn"].nunique() == 38


def test_rows_of_a_group_would_be_linked() -> None:
    frame = people().assign(clinic=["north", "south"] * 20)
    shown = policy(unit="none")
    shown["columns"]["clinic"] = SHOWN
    with pytest.raises(PolicyError, match=r"columns.clinic: some values occur in several rows"):
        mw.anonymize(frame, shown)


@pytest.mark.parametrize(
    ("mrn", "more", "message"),
    [
        (
            {"role": "identifier", "stable": True},
            {},
            "stable: true is about pseudonyms, and none are published",
        ),
        (SHOWN | {"group": "x"}, {}, "group: without stable: true"),
        ({"role": "sensitive", "publish": "pseudonym"}, {}, "'publish' means nothing"),
        (SHOWN, {"recoding": "permute"}, "use recoding: generalise"),
    ],
)
def test_what_cannot_be_is_refused(mrn: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        mw.Policy.load(policy(mrn, **more))


def test_two_columns_of_a_table_share_no_group() -> None:
    shown = policy(STABLE | {"group": "people"})
    shown["columns"]["mother"] = STABLE | {"group": "people"}
    with pytest.raises(PolicyError, match="'mrn' has the same group"):
        mw.Policy.load(shown)
    shown["method"] = "codip"
    shown["columns"]["mother"] = SHOWN
    with pytest.raises(PolicyError, match="a pseudonym would join them"):
        mw.anonymize(people().assign(mother=range(40), more="x"), shown)


def test_names_in_place_of_pseudonyms_are_found_out(tmp_path: Path) -> None:
    """By verify, with the manifest and with the policy alone; a release as it was written passes both."""
    mw.anonymize(people(), policy(), tmp_path / "r")
    data = tmp_path / "r" / "public" / "data.parquet"
    rules = mw.Policy.load(policy())
    assert verify_folder(tmp_path / "r", recount_only=True).ok
    assert check_against_policy([data], rules).ok
    table = pd.read_parquet(data)
    for changed, problem in (
        (table.assign(mrn=people()["mrn"]), "holds something else"),
        (table.assign(mrn=table["mrn"].iloc[0]), "the same pseudonym in several rows"),
    ):
        changed.to_parquet(data, index=False)
        for checked in (
            verify_folder(tmp_path / "r", recount_only=True),
            check_against_policy([data], rules),
        ):
            assert not checked.ok and any(problem in p for p in checked.problems)


def test_new_rows_are_not_added_to_them(tmp_path: Path) -> None:
    mw.anonymize(people(), policy(), tmp_path / "r")
    with pytest.raises(UsageError, match="pseudonyms in column 'mrn'"):
        Recoder(tmp_path / "r").transform(people(10, first=100))


def test_a_key_that_was_changed_reveals_nobody(tmp_path: Path) -> None:
    """It would tell that no value has the pseudonym, or name somebody else."""
    mw.anonymize(people(), policy(), tmp_path / "r")
    kept = tmp_path / "r" / "private" / KEYS
    whole = kept.read_text()
    token = pd.read_parquet(tmp_path / "r" / "public" / "data.parquet")["mrn"][0]
    for spoilt in (
        whole.replace('"key": "', '"key": "00'),
        '{"columns": {}}',
        whole.replace("release", "\\ud800"),
    ):
        kept.write_text(spoilt)
        with pytest.raises(InputError, match="was changed since the release was made"):
            reveal_people(tmp_path / "r", people(), [token], "why")
    assert not (tmp_path / "r" / "private" / "reveals.jsonl").exists()


def test_a_log_of_any_reason_and_with_any_end_goes_on(tmp_path: Path) -> None:
    """A reason with bytes that are no text, half a line of a killed process, a line without its end."""
    mw.anonymize(people(), policy(), tmp_path / "r")
    log = tmp_path / "r" / "private" / "reveals.jsonl"
    for reason, left in (("\udcff", b'{"at"'), ("a\nb\u2028c", b""), ("third", b"")):
        reveal_people(tmp_path / "r", people(), ["A" * 16], reason)
        with log.open("ab") as file:
            file.write(left)
    log.write_bytes(log.read_bytes().rstrip())
    reveal_people(tmp_path / "r", people(), ["A" * 16], "the last")
    told = [json.loads(line)["reason"] for line in log.read_bytes().splitlines()]
    assert told == ["\udcff", "a\nb\u2028c", "third", "the last"]
    assert verify_folder(tmp_path / "r").ok


def test_who_reveals_at_the_same_time_breaks_no_chain(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    one_log = partial(log_reveal, private, "mrn", ["A" * 16])
    with ThreadPoolExecutor(8) as several:
        list(several.map(one_log, map(str, range(100))))
    assert len((private / "reveals.jsonl").read_bytes().splitlines()) == 100
    assert not list(later_problems(tmp_path))


@pytest.mark.parametrize(
    "spoilt", [b"[" * 100_000 + b"\n", b'{"before": "\\ud800"}\n', b"\xff\xfe\n\n", b"{}\n", b"3\n"]
)
def test_a_spoilt_log_is_told_by_verify(tmp_path: Path, spoilt: bytes) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "reveals.jsonl").write_bytes(spoilt)
    assert any("line 1 does not follow" in problem for problem in later_problems(tmp_path))
