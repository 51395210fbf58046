"""What is said while a release is made, or is not: no value of an identifier or of a column that is not published.

Messages name the column, the value and the remedy. The value is that of a quasi-identifier or a sensitive column, where
it does not fit the policy: without it nobody could correct a hierarchy. Values of identifiers, of columns that the
policy drops and of the other cells of a row are never shown, not in messages, details, tracebacks, events or logs.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.cli import commands
from maskwright.errors import MaskwrightError
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.pipeline.history import state_folder
from maskwright.runtime.events import Event
from tests.patients import write_csv

MARK = "Wv8"
HEADER = ["name", "age", "zip", "disease", "note", "ward"]
POLICY = """\
version: 1
columns:
  name: identifier
  age: {role: quasi-identifier, hierarchy: {intervals: [10, 20]}}
  zip: {role: quasi-identifier, hierarchy: {mask: right}}
  disease: sensitive
  ward: {role: insensitive, near_unique: allow}
require:
  - {model: k-anonymity, k: 4}
method: {name: optimal-lattice, suppression: 10%}
"""


def rows(n: int = 40) -> list[list[str]]:
    return [
        [
            f"{MARK}name{i}",
            str(20 + i % 16),
            f"13{i % 3}",
            ["flu", "cough"][i % 2],
            f"{MARK}note{i}",
            "AB"[i // 2 % 2],
        ]
        for i in range(n)
    ]


class Watched:
    """A table and a policy to spoil, and everything that is said about them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = write_csv(folder / "t.csv", rows(), HEADER)
        self.policy = folder / "policy.yaml"
        self.policy.write_text(POLICY, encoding="utf-8")

    def spoil(self, old: str, new: str) -> None:
        text = self.table.read_text(encoding="utf-8")
        assert old in text
        self.table.write_text(text.replace(old, new), encoding="utf-8")

    def edit(self, old: str, new: str) -> None:
        text = self.policy.read_text(encoding="utf-8")
        assert old in text
        self.policy.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def ragged(w: Watched) -> None:
    w.spoil(f"{MARK}note7,B", f"{MARK}note7,B,{MARK}more")


def short(w: Watched) -> None:
    w.spoil(f"{MARK}name9,29,130,cough,{MARK}note9,A", f"{MARK}name9,29")


def quoted(w: Watched) -> None:
    w.spoil(f"{MARK}name3,", f'"{MARK}name3,')


def encoded(w: Watched) -> None:
    w.table.write_bytes(
        w.table.read_bytes().replace(f"{MARK}name5".encode(), f"{MARK}n\xe4me5".encode("latin-1"))
    )


def nul(w: Watched) -> None:
    w.spoil(f"{MARK}name5", f"{MARK}na\0me5")


def not_a_number(w: Watched) -> None:
    w.spoil(f"{MARK}name4,24,", f"{MARK}name4,old,")


def outside(w: Watched) -> None:
    w.edit("{mask: right}", "{tree: {low: ['130', '131']}}")


def too_large(w: Watched) -> None:
    w.edit("k: 4", "k: 41")


def gate(w: Watched) -> None:
    w.edit("k: 4}", "k: 4}\n  - {model: distinct-l-diversity, l: 9, use: gate}")


def alone(w: Watched) -> None:
    w.edit("ward: {role: insensitive, near_unique: allow}", "note: insensitive")


def missing(w: Watched) -> None:
    w.edit("disease: sensitive", "diseas: sensitive")


def unit(w: Watched) -> None:
    w.spoil(f"{MARK}name5,", f"{MARK}name4,")


def sets(w: Watched) -> None:
    w.edit("disease: sensitive", "note: {role: sensitive, multivalued: true}")


def empty(w: Watched) -> None:
    write_csv(w.table, [], HEADER)


def twice(w: Watched) -> None:
    w.spoil("name,age,zip", "name,age,age")


def damaged(w: Watched) -> None:
    import pandas as pd

    path = w.folder / "t.parquet"
    pd.read_csv(w.table, dtype=str).to_parquet(path)
    content = bytearray(path.read_bytes())
    content[100:160] = bytes(60)
    path.write_bytes(content)
    w.table = path


FAULTS: list[Callable[[Watched], None]] = [
    ragged, short, quoted, encoded, nul, not_a_number, outside, too_large, gate, alone, missing, unit, sets, empty,
    twice, damaged,
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_refusals(
    fault: Callable[[Watched], None], watched: Watched, caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """By the API and by the command: message, details, the whole chain of a traceback, events, logs, output."""
    fault(watched)
    caplog.set_level(logging.DEBUG)
    events: list[Event] = []
    with pytest.raises(MaskwrightError) as caught:
        mw.anonymize(watched.table, watched.policy, watched.folder / "r", on_event=events.append)
    said = "".join(traceback.format_exception(caught.value))
    said += str(caught.value) + caught.value.details + str(events) + caplog.text
    arguments = ["anonymize", str(watched.table), "-p", str(watched.policy), "-o", str(watched.folder / "r")]
    for more in ([], ["--verbose"], ["--json"]):
        assert commands.main([*arguments, *more]) in (1, 2)
    captured = capfd.readouterr()
    assert MARK not in said + captured.out + captured.err
    assert not (watched.folder / "r").exists()


def test_the_markers_are_in_the_table(watched: Watched) -> None:
    assert watched.table.read_text(encoding="utf-8").count(MARK) == 80


def test_values_that_do_not_fit_are_named(watched: Watched) -> None:
    """The documented exception: somebody must correct the hierarchy."""
    outside(watched)
    with pytest.raises(MaskwrightError, match="'132'"):
        mw.anonymize(watched.table, watched.policy)


def test_a_release_that_is_made(
    watched: Watched, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Progress lines, notes and the summary on the terminal tell no identifier and nothing of dropped columns."""
    caplog.set_level(logging.DEBUG)
    events: list[Event] = []
    mw.anonymize(watched.table, watched.policy, watched.folder / "r", on_event=events.append)
    assert len(events) > 8
    arguments = [
        str(watched.table),
        "-p",
        str(watched.policy),
        "-o",
        str(watched.folder / "r"),
        "--overwrite",
    ]
    assert commands.main(["anonymize", *arguments, "--verbose"]) == 0
    assert commands.main(["attack", str(watched.folder / "r")]) == 0
    assert commands.main(["verify", str(watched.folder / "r")]) == 0
    captured = capfd.readouterr()
    assert "MAY BE PUBLISHED" in captured.out
    assert MARK not in str(events) + caplog.text + captured.out + captured.err


def test_an_internal_error_tells_only_its_kind(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> Any:
        raise ValueError(f"cannot divide {MARK}name3 by zero")

    monkeypatch.setattr(OptimalLattice, "group", fail)
    arguments = ["anonymize", str(watched.table), "-p", str(watched.policy), "-o", str(watched.folder / "r")]
    assert commands.main(arguments) == 70
    captured = capfd.readouterr()
    assert "internal error: ValueError in test_words.py" in captured.err
    assert MARK not in captured.out + captured.err
    assert commands.main([*arguments, "--verbose"]) == 70
    assert "may show data" in capfd.readouterr().err


def test_what_is_remembered(watched: Watched) -> None:
    """The history holds days and hashes, and where releases lie: no value, no name of a column or of what was read.

    Only its owner can read it.
    """
    mw.anonymize(watched.table, watched.policy, watched.folder / "release")
    folder = state_folder()
    files = [p for p in folder.rglob("*") if p.is_file()]
    assert files
    for path in [folder, *folder.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
    told = "\n".join(str(p.relative_to(folder)) + p.read_text(encoding="utf-8") for p in files)
    where = json.dumps(str((watched.folder / "release").absolute()))
    assert told.count(where) == 1
    told = told.replace(where, "").replace(".releases.jsonl", "")  # the place, and the file that names it
    words = [
        MARK,
        "flu",
        "cough",
        "130",
        "t.csv",
        "zip",
        "disease",
        "k-anonymity",
        "release",
        str(watched.folder),
    ]
    assert [w for w in words if w in told] == []


def test_temporary_files(watched: Watched, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The owner's alone from the first moment, whatever the umask, and gone at the end, also after an error."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    before, seen = os.umask(0), set[str]()
    output = tmp_path / "out"
    output.mkdir()

    def look(_: Event) -> None:
        for parent in (place, output):
            for path in parent.iterdir():
                if path.name != "r":
                    seen.add(path.name)
                    assert path.stat().st_mode & 0o077 == 0, path

    try:
        mw.anonymize(watched.table, watched.policy, output / "r", on_event=look)
        release = mw.anonymize(watched.table, watched.policy, on_event=look)
        del release
        watched.edit("k: 4", "k: 41")
        for destination in (output / "other", None):
            with pytest.raises(MaskwrightError):
                mw.anonymize(watched.table, watched.policy, destination, on_event=look)
    finally:
        os.umask(before)
    assert len(seen) >= 3, "the test must see some"
    assert list(place.iterdir()) == []
    assert [p.name for p in output.iterdir()] == ["r"]
    assert (output / "r" / "private").stat().st_mode & 0o077 == 0
