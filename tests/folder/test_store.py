"""Release folders: private while they are built, recovered after a crash, never replaced by mistake."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from maskwright.errors import DestinationError
from maskwright.folder import store
from maskwright.version import __version__


def fill(stage: store.Staging, text: str) -> None:
    (stage.public / "data.csv").write_text(text)
    (stage.private / "report.html").write_text("secret")
    product = {"product": f"maskwright {__version__}"}
    public = {"format": 1, "tables": [], "files": {"data.csv": "…"}, **product}
    (stage.public / store.MANIFEST).write_text(json.dumps(public))
    (stage.private / store.MANIFEST).write_text(json.dumps({"files": {"report.html": "…"}, **product}))


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
    assert (tmp_path / "r/public/data.csv").read_text() == "one"
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
    assert (tmp_path / "r/public/data.csv").read_text() == "one"
    publish(tmp_path / "r", "two", overwrite=True)
    assert (tmp_path / "r/public/data.csv").read_text() == "two"
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
    assert len(store.recover_destination(tmp_path / "r")) == 2
    assert (tmp_path / "r/public/data.csv").read_text() == "old"
    assert hidden(tmp_path) == []


def test_recovery_leaves_a_live_run_alone(tmp_path: Path) -> None:
    with store.Staging(tmp_path / "r") as stage:
        fill(stage, "live")
        assert store.recover_destination(tmp_path / "r") == []
        stage.commit()
    assert (tmp_path / "r/public/data.csv").read_text() == "live"


def test_recovery_leaves_other_names_alone(tmp_path: Path) -> None:
    (tmp_path / ".other.maskwright-0123456789abcdef.new").mkdir()
    (tmp_path / ".r.backup").mkdir()
    assert store.recover_destination(tmp_path / "r") == []
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


def test_when_the_new_release_cannot_be_moved_the_old_one_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path / "r", "old")
    monkeypatch.setattr(store, "_exchange", lambda a, b: False)
    rename, calls = Path.rename, []

    def fails_once(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails_once)
    with (
        pytest.raises(DestinationError, match="No space"),
        store.Staging(tmp_path / "r", overwrite=True) as stage,
    ):
        fill(stage, "new")
        stage.commit()
    assert (tmp_path / "r/public/data.csv").read_text() == "old"
    assert hidden(tmp_path) == []


def test_nothing_is_left_when_staging_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "mkdir", full)
        with pytest.raises(DestinationError, match="No space"):
            store.Staging(tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_recovery_does_not_follow_links_or_take_what_others_planted(tmp_path: Path) -> None:
    victim, token = tmp_path / "victim", "0123456789abcdef"
    victim.mkdir()
    (victim / "file").write_text("precious")
    for what in ("old", "new"):
        (tmp_path / f".r.maskwright-{token}.{what}").symlink_to(victim)
    (tmp_path / f".r.maskwright-{token}.lock").symlink_to(victim / "created")
    assert store.recover_destination(tmp_path / "r") == []
    assert [p.name for p in victim.iterdir()] == ["file"]
    assert not (tmp_path / "r").exists()
    if os.geteuid() == 0:
        planted = tmp_path / ".r.maskwright-fedcba9876543210.old"
        planted.mkdir()
        os.chown(planted, 65534, 65534)
        store.recover_destination(tmp_path / "r")
        assert not (tmp_path / "r").exists()


def test_recovery_where_nothing_can_be_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` of a release on a read-only disk must not fail because of a leftover beside it."""
    (tmp_path / ".r.maskwright-0123456789abcdef.new").mkdir()
    opened = os.open

    def protected(path: object, flags: int, *more: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(30, "Read-only file system")
        return opened(path, flags, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", protected)
    assert store.recover_destination(tmp_path / "r") == []


def test_recovery_keeps_the_old_release_when_its_place_was_taken_before_the_new_one_came(
    tmp_path: Path,
) -> None:
    publish(tmp_path / "r", "old")
    (tmp_path / "r").rename(tmp_path / ".r.maskwright-0123456789abcdef.old")
    (tmp_path / ".r.maskwright-0123456789abcdef.new" / "release").mkdir(
        parents=True
    )  # killed before it was moved
    (tmp_path / "r").mkdir()  # and the user made the folder anew
    [told, _] = store.recover_destination(tmp_path / "r")
    kept = tmp_path / "r-old-0123456789abcdef"
    assert str(kept) in told
    assert (kept / "public/data.csv").read_text() == "old"
    assert (list((tmp_path / "r").iterdir()), hidden(tmp_path)) == ([], [])


def test_what_comes_into_a_release_while_it_is_being_replaced_is_not_lost(tmp_path: Path) -> None:
    publish(tmp_path / "r", "old")
    with (
        pytest.raises(DestinationError, match="thesis"),
        store.Staging(tmp_path / "r", overwrite=True) as stage,
    ):
        fill(stage, "new")
        (tmp_path / "r" / "thesis.txt").write_text("mine")
        stage.commit()
    assert (tmp_path / "r/thesis.txt").read_text() == "mine"
    assert (tmp_path / "r/public/data.csv").read_text() == "old"
    assert hidden(tmp_path) == []


def test_a_folder_that_appears_while_one_is_made_is_not_replaced_by_overwrite(tmp_path: Path) -> None:
    with (
        pytest.raises(DestinationError, match="not a Maskwright release"),
        store.Staging(tmp_path / "r", overwrite=True) as stage,
    ):
        fill(stage, "new")
        (tmp_path / "r").mkdir()
        (tmp_path / "r" / "thesis.txt").write_text("mine")
        stage.commit()
    assert [p.name for p in (tmp_path / "r").iterdir()] == ["thesis.txt"]
