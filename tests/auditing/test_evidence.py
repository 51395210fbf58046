"""The evidence page: every line has an answer, its numbers are those of the release, and verify notices a change."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.auditing.evidence_page import SOURCES, write_evidence_page
from maskwright.cli.commands import main
from maskwright.errors import DestinationError, InputError, NotVerified, PolicyError
from maskwright.folder.later_files import release_hash
from maskwright.verification.verify import verify_folder

ABOUT = {
    "title": "Heart study", "contact": "office@hospital.example", "licence": "for one study", "date": "2026-05-31",
    "recipient": "University of Somewhere", "purpose": "survival",
    "approved_by": "Board 4", "approved_on": "2026-06-01",
}  # fmt: skip


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name_of_person": [f"p{i}" for i in range(60)],
            "age": [30 + 10 * (i % 2) for i in range(60)],
            "ill": [["flu", "cold", "ulcer"][i % 3] for i in range(60)],
        }
    )


def policy(**more: Any) -> dict[str, Any]:
    return {
        "columns": {"name_of_person": "identifier", "age": "quasi-identifier", "ill": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 5}],
        **more,
    }


def released(place: Path, **more: Any) -> Path:
    mw.anonymize(people(), policy(**more), place)
    return place


def answers(content: Any, source: str) -> dict[str, tuple[str, str]]:
    return {line["line"]: (line["answer"], line["basis"]) for line in content["guidance"][source]}


def test_every_line_has_an_answer_and_what_it_rests_on(tmp_path: Path) -> None:
    content = write_evidence_page(released(tmp_path / "r", about=ABOUT)).content
    assert set(content["guidance"]) == set(SOURCES)
    lines = [line for found in content["guidance"].values() for line in found]
    assert all(
        line["answer"] in ("met", "not met", "not assessed", "shown") and line["basis"] for line in lines
    )
    assert len(answers(content, "gdpr-wp216")) == 3 and len(answers(content, "hipaa-safe-harbor")) == 19
    assert answers(content, "gdpr-wp216")["singling out"] == ("met", "30 people in the smallest class of age")
    assert answers(content, "gdpr-wp216")["inference"][0] == "not assessed"
    assert answers(content, "nist-800-188")["disclosure review boards"][1].endswith("approved on 2026-06-01")
    assert answers(content, "nist-800-188")["data life cycle"][0] == "not assessed"
    assert answers(content, "iso-27559")["7.2.2 data principals"] == ("shown", "60 people")
    assert content["verdicts"][0]["worst"] == 30 and content["rows"]["published"] == 60
    assert content["dropped"] == ["name_of_person"] and content["about"] == ABOUT
    page = (tmp_path / "r" / "private" / "evidence.html").read_text(encoding="utf-8")
    assert all(text in page for text in ABOUT.values()) and content["release"] in page
    assert not re.search(r"<script|https?://", page)


def test_numbers_follow_the_release(tmp_path: Path) -> None:
    """A bound that was asked for answers the line; pseudonyms that are stable do not meet linkability."""
    bound = {"model": "belief", "max": "1/2", "adversary": "neighbour"}
    columns = policy()["columns"] | {
        "name_of_person": {"role": "identifier", "publish": "pseudonym", "stable": True}
    }
    folder = released(
        tmp_path / "r", require=[{"model": "k-anonymity", "k": 3}, bound], columns=columns, method="mondrian"
    )
    found = answers(write_evidence_page(folder).content, "gdpr-wp216")
    answer, basis = found["inference"]
    assert answer == "met" and "ill: at most 0.5 asked (neighbour)" in basis and "highest belief" in basis
    assert (
        found["linkability"][0] == "not met"
        and "stable pseudonyms in 'name_of_person'" in found["linkability"][1]
    )


def test_whom_passing_columns_single_out_is_not_met(tmp_path: Path) -> None:
    frame = people().assign(room=range(60))
    shown = policy()
    shown["columns"]["room"] = {"role": "insensitive", "near_unique": "allow"}
    mw.anonymize(frame, shown, tmp_path / "r")
    answer, basis = answers(write_evidence_page(tmp_path / "r").content, "gdpr-wp216")["singling out"]
    assert answer == "not met" and "can single out 60 of 60 rows" in basis


def test_what_is_not_stated_is_left_to_be_filled_in(tmp_path: Path) -> None:
    found = write_evidence_page(released(tmp_path / "r"), {"recipient": "anybody"})
    page = (tmp_path / "r" / "private" / "evidence.html").read_text(encoding="utf-8")
    assert "Approved by ____" in page and "not stated" in page and "anybody" in page
    assert answers(found.content, "nist-800-188")["disclosure review boards"][0] == "not assessed"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda r: _edit(r / "private" / "evidence.json", "Board 4", "Board 5"), "its seal does not fit"),
        (lambda r: _edit(r / "private" / "evidence.html", "Board 4", "Board 5"), "missing, or was changed"),
        (lambda r: (r / "private" / "evidence.html").unlink(), "missing, or was changed"),
        (lambda r: (r / "private" / "evidence.json").unlink(), "has no evidence.json"),
        (lambda r: (r / "private" / "evidence.json").write_text("{"), "not what was written"),
    ],
)
def test_a_change_is_noticed_by_verify(tmp_path: Path, change: Any, problem: str) -> None:
    folder = released(tmp_path / "r", about=ABOUT)
    write_evidence_page(folder)
    assert verify_folder(folder).ok
    change(folder)
    assert any(problem in p for p in verify_folder(folder).problems)


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_evidence_of_another_release_is_noticed(tmp_path: Path) -> None:
    one, two = released(tmp_path / "a", about=ABOUT), released(tmp_path / "b", method="mondrian")
    write_evidence_page(one)
    assert release_hash(one) != release_hash(two)
    for name in ("evidence.json", "evidence.html"):
        (two / "private" / name).write_bytes((one / "private" / name).read_bytes())
    assert any("about another release" in p for p in verify_folder(two).problems)


def test_nothing_is_certified_that_does_not_verify(tmp_path: Path) -> None:
    folder = released(tmp_path / "r")
    (folder / "public" / "data-card.html").write_text("another", encoding="utf-8")
    with pytest.raises(NotVerified, match=r"data-card.html was changed"):
        write_evidence_page(folder)
    mw.anonymize(people(), policy(), tmp_path / "n", keep_private="none")
    with pytest.raises(InputError, match="for its custodian"):
        write_evidence_page(tmp_path / "n")
    assert not list(tmp_path.rglob("evidence.*"))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = released(tmp_path / "r")
    assert main(["evidence", str(folder), "--approved-by", "Board 4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["evidence"]["about"]["approved_by"] == "Board 4" and told["answers"]["not assessed"] > 5
    assert main(["evidence", str(folder)]) == 2 and "use --overwrite" in capsys.readouterr().err
    assert main(["evidence", str(folder), "--overwrite"]) == 0
    assert "lines of guidance: " in capsys.readouterr().out
    assert main(["evidence", str(folder), "--overwrite", "--approved-on", "yesterday"]) == 2
    assert verify_folder(folder).ok  # what was there is kept
    with pytest.raises(DestinationError, match="exists"):
        write_evidence_page(folder)


def test_readers_see_what_is_for_readers_and_no_more(tmp_path: Path) -> None:
    """Title, contact, licence and date are on the data card, and nobody who approved; without them no date at all."""
    public = released(tmp_path / "r", about=ABOUT) / "public"
    card = (public / "data-card.html").read_text(encoding="utf-8")
    assert (
        "Data card: Heart study" in card
        and "contact: office@hospital.example · licence: for one study" in card
    )
    every = b"".join(p.read_bytes() for p in public.iterdir())
    assert b"Board 4" not in every and b"University" not in every and b"2026-06-01" not in every
    bare = released(tmp_path / "bare") / "public"
    assert not re.search(rb"20\d\d-\d\d-\d\d", b"".join(p.read_bytes() for p in bare.iterdir()))


def test_words_about_a_release_decide_nothing(tmp_path: Path) -> None:
    """The same rows in the same order, and no look more."""
    one, two = mw.anonymize(people(), policy()), mw.anonymize(people(), policy(about=ABOUT))
    assert one.table.equals(two.table)
    assert {p.status for p in one.promises} == {p.status for p in two.promises}
    for day in ("31.5.2026", "2026-02-30"):
        with pytest.raises(PolicyError, match="about"):
            mw.Policy.load(policy(about={"date": day}))


def test_it_is_the_owners_alone_and_replaces_no_page_that_is_there(tmp_path: Path) -> None:
    release, before = released(tmp_path / "r"), os.umask(0)
    try:
        write_evidence_page(release)
    finally:
        os.umask(before)
    page, content = release / "private" / "evidence.html", release / "private" / "evidence.json"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (page, content)] == [0o600, 0o600]
    content.unlink()
    page.write_text("my notes")
    with pytest.raises(DestinationError, match=r"evidence\.html' exists"):
        write_evidence_page(release)
    assert page.read_text() == "my notes"


@pytest.mark.parametrize(
    "spoilt", ['{"a": "\\ud800"}', "[" * 100_000, "{}", '{"seal": 3, "release": [1]}', "3"]
)
def test_damaged_evidence_is_told_by_verify_and_can_be_made_anew(tmp_path: Path, spoilt: str) -> None:
    release = released(tmp_path / "r")
    write_evidence_page(release)
    (release / "private" / "evidence.json").write_text(spoilt)
    assert any("evidence.json was changed" in problem for problem in verify_folder(release).problems)
    write_evidence_page(release, overwrite=True)
    assert verify_folder(release).ok


def test_half_a_character_is_refused_wherever_it_is_said(tmp_path: Path) -> None:
    """In a policy before any work is done, and in what is said of a release later; no file could hold it."""
    with pytest.raises(PolicyError, match=r"about.title: half a character"):
        released(tmp_path / "r", about={"title": "a\ud800"})
    with pytest.raises(PolicyError, match="half a character"):
        mw.Policy.load(policy(prepare={"ill": {"missing": ["\udfff"]}}))
    with pytest.raises(PolicyError, match="half a character"):
        write_evidence_page(released(tmp_path / "r"), {"title": "\udcff"})
    assert main(["evidence", str(tmp_path / "r"), "--title", "\udcff"]) == 2
    assert not (tmp_path / "r" / "private" / "evidence.html").exists()
