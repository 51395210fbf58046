"""Release folders: private while they are built, recovered after a crash, never replaced by mistake."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from maskwright import store
from maskwright.errors import DestinationError


def fill(stage: store.Staging, text: str) -> None:
    (stage.public / store.MANIFEST).write_text(text)
    (stage.private / "report.html").write_text("secret")


def publish(place: Path, text: str, overwrite: bool = False) -> None:
    with store.Staging(place, overwrite) as stage:
        fill(stage, text)
        stage.commit()


def hidden(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if p.name.startswith(".")]


def test_nothing_remains_without_a_commit(tmp_path: Path) -> None:
    with store.Staging(tmp_path / "r") as stage:
        fill(stage, "x")
        assert stat.S_IMODE(stage.folder.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []


def test_a_commit_puts_it_in_place_with_private_files_private(tmp_path: Path) -> None:
    publish(tmp_path / "r", "one")
    assert (tmp_path / "r/public/manifest.json").read_text() == "one"
    assert stat.S_IMODE((tmp_path / "r/private").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "r/private/report.html").stat().st_mode) == 0o600
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("exchange", [True, False])
def test_replacing(tmp_path: Path, exchange: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not exchange:
        monkeypatch.setattr(store, "_exchange", lambda a, b: False)
    publish(tmp_path / "r", "one")
    with pytest.raises(DestinationError, match="--overwrite"):
        publish(tmp_path / "r", "two")
    assert (tmp_path / "r/public/manifest.json").read_text() == "one"
    publish(tmp_path / "r", "two", overwrite=True)
    assert (tmp_path / "r/public/manifest.json").read_text() == "two"
    assert hidden(tmp_path) == []


def test_a_destination_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(DestinationError, match="appeared"), store.Staging(tmp_path / "r") as stage:
        fill(stage, "one")
        (tmp_path / "r").mkdir()
        stage.commit()
    assert list((tmp_path / "r").iterdir()) == []


def test_recovery_puts_back_what_was_moved_aside(tmp_path: Path) -> None:
    publish(tmp_path / "r", "old")
    (tmp_path / "r").rename(tmp_path / ".r.maskwright-0123456789abcdef.old")
    (tmp_path / ".r.maskwright-0123456789abcdef.new").mkdir()
    assert len(store.recover(tmp_path / "r")) == 2
    assert (tmp_path / "r/public/manifest.json").read_text() == "old"
    assert hidden(tmp_path) == []


def test_recovery_leaves_a_live_run_alone(tmp_path: Path) -> None:
    with store.Staging(tmp_path / "r") as stage:
        fill(stage, "live")
        assert store.recover(tmp_path / "r") == []
        stage.commit()
    assert (tmp_path / "r/public/manifest.json").read_text() == "live"


def test_recovery_leaves_other_names_alone(tmp_path: Path) -> None:
    (tmp_path / ".other.maskwright-0123456789abcdef.new").mkdir()
    (tmp_path / ".r.backup").mkdir()
    assert store.recover(tmp_path / "r") == []
    assert sorted(hidden(tmp_path)) == [".other.maskwright-0123456789abcdef.new", ".r.backup"]


def test_unwritable_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        os, "access", lambda path, mode: False
    )  # root may write everywhere: say that it may not
    with pytest.raises(DestinationError, match="not writable"):
        store.Staging(tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_a_failing_disk_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_fsync", full)
    with pytest.raises(DestinationError, match="No space left"), store.Staging(tmp_path / "r") as stage:
        fill(stage, "x")
        stage.commit()
    assert list(tmp_path.iterdir()) == []


def test_the_destination_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("mine")
    with pytest.raises(DestinationError, match="not a Maskwright release"):
        store.Staging(tmp_path / "r", overwrite=True)
    assert (tmp_path / "r").read_text() == "mine"
