"""The installation key: made once, the same for everybody who makes it at once, and never one that others know."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.errors import UsageError
from maskwright.pipeline import history
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from maskwright.pipeline.random_keys import NAME, NAMED, Chance, content_hash, installation_key
from maskwright.pipeline.session import prepared_run

TABLE = {"age": [20, 21, 40, 41] * 3, "disease": ["a", "b", "c", "d"] * 3}
POLICY: dict[str, Any] = {
    "version": 1,
    "columns": {"age": {"role": "quasi-identifier", "hierarchy": "suppress"}, "disease": "sensitive"},
    "require": [{"model": "simple-l-diversity", "l": 2}],
    "method": {"name": "anatomy", "l": 2},
    "recoding": "bucketize",
}


def table() -> Any:
    import pandas as pd

    return pd.DataFrame(TABLE)


def place() -> Path:
    return history.state_folder() / NAME


def test_made_once_for_its_owner_only() -> None:
    umask = os.umask(0)
    try:
        first = installation_key()
    finally:
        os.umask(umask)
    assert installation_key() == first
    assert len(first.secret) == 32
    assert first.secret.hex() == place().read_text(encoding="ascii").strip()
    assert stat.S_IMODE(place().stat().st_mode) == 0o600
    assert stat.S_IMODE(place().parent.stat().st_mode) == 0o700
    assert [p.name for p in place().parent.iterdir()] == [NAME], "nothing else is left there"
    place().unlink()
    assert installation_key().secret != first.secret


def test_processes_that_make_it_at_once_have_the_same() -> None:
    code = (
        "import sys; from maskwright.pipeline.random_keys import installation_key\n"
        "print('ready', flush=True); sys.stdin.readline(); print(installation_key().secret.hex())"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    assert [p.stdout.readline() for p in running if p.stdout] == ["ready\n"] * 4
    for process in running:
        if process.stdin:
            process.stdin.write("go\n")
            process.stdin.flush()
    found = {process.communicate(timeout=600)[0].strip() for process in running}
    assert found == {installation_key().secret.hex()}


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("", 0o600, "damaged"),
        ("ab" * 31 + "\n", 0o600, "damaged"),
        ("ab" * 33 + "\n", 0o600, "damaged"),
        ("\0" * 64, 0o600, "damaged"),
        ("xy" * 32, 0o600, "damaged"),
        ("ab" * 32 + "\n", 0o640, "by others"),
        ("ab" * 32 + "\n", 0o604, "by others"),
        ("ab" * 32 + "\n", 0o620, "by others"),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_refused(
    text: str, mode: int, said: str, named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key" if named else place()
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="ascii")
    path.chmod(mode)
    if named:
        monkeypatch.setenv(NAMED, str(path))
    with pytest.raises(UsageError, match=said) as problem:
        publish_release(Job(table(), mw.Policy.load(POLICY), tmp_path / "release", attacks=()))
    assert str(path) in str(problem.value)
    assert "ab" * 8 not in str(problem.value)
    assert not (tmp_path / "release").exists()
    assert path.read_text(encoding="ascii") == text, "a key is never replaced"


def test_a_file_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAMED, str(tmp_path / "key"))
    with pytest.raises(UsageError, match="openssl rand -hex 32"):
        installation_key()
    assert not (tmp_path / "key").exists()
    (tmp_path / "secret").write_text("0f" * 32, encoding="ascii")
    (tmp_path / "secret").chmod(0o400)
    (tmp_path / "key").symlink_to("secret")  # as containers are given them
    assert installation_key().secret == b"\x0f" * 32
    assert not place().exists()


@pytest.mark.parametrize("how", ["no folder can be made", "no home"])
def test_a_key_that_cannot_be_kept(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on with a key of its own, says so, and is marked."""
    if how == "no home":
        for name in ("MASKWRIGHT_STATE", "XDG_STATE_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("none")))
    else:
        (tmp_path / "file").write_text("", encoding="ascii")
        monkeypatch.setenv("MASKWRIGHT_STATE", str(tmp_path / "file" / "state"))
    policy = mw.Policy.load(POLICY)
    first, second = (
        publish_release(Job(table(), policy, tmp_path / name, attacks=())) for name in ("first", "second")
    )
    assert not first.repeatable
    assert any("installation key could not be kept" in note for note in first.notes)
    assert json.loads((tmp_path / "first/private/manifest.json").read_bytes())["repeatable"] is False
    files = [
        {p.name: p.read_bytes() for p in (tmp_path / n / "public").iterdir()} for n in ("first", "second")
    ]
    assert files[0] != files[1]
    assert second.grouping.published_rows == 12


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_key_that_cannot_be_read() -> None:
    installation_key()
    place().chmod(0)
    assert installation_key().why_not_kept == "Permission denied"


# --- keys of runs -------------------------------------------------------------------------------------


def test_keys_of_a_run_tell_nothing_of_each_other() -> None:
    with prepared_run(Job(table(), mw.Policy.load(POLICY))) as ready:
        chance = Chance(b"k" * 32)
        keys = chance.keys(ready.resolved, ready.content, ready.fingerprint)
        assert keys == chance.keys(ready.resolved, ready.content, ready.fingerprint)
        others = [
            Chance(b"l" * 32).keys(ready.resolved, ready.content, ready.fingerprint),
            chance.keys(ready.resolved, "0" * 64, ready.fingerprint),
        ]
        assert len({key for k in (keys, *others) for key in (k.groups, k.order)}) == 6
        reordered = chance.keys(ready.resolved, ready.content, "another table")
        assert (reordered.groups, reordered.order == keys.order) == (keys.groups, False)


def test_content_does_not_depend_on_the_names_of_people() -> None:
    import pandas as pd

    def content(names: list[str], ages: list[int]) -> str:
        made = POLICY | {"unit": "who", "method": "optimal-lattice", "recoding": "generalise"}
        frame = pd.DataFrame({"who": names, "age": ages, "disease": list("aabbabab")})
        with prepared_run(Job(frame, mw.Policy.load(made))) as ready:
            return content_hash(ready.task.summary)

    ages = [20, 30, 20, 30, 40, 40, 20, 20]
    first = content(["p", "p", "q", "q", "r", "r", "s", "t"], ages)
    assert first == content(["z", "z", "y", "y", "x", "x", "w", "v"], ages)
    others = [
        content(["p", "q", "q", "p", "r", "r", "s", "t"], ages),  # other people have the values
        content(["p", "p", "q", "q", "r", "r", "s", "s"], ages),
        content(["p", "p", "q", "q", "r", "r", "s", "t"], [20, 30, 20, 30, 40, 30, 20, 20]),
    ]
    assert len({first, *others}) == 4


# --- what is remembered -------------------------------------------------------------------------------


def looked(release: Any) -> tuple[int, int, bool]:
    return release.history["run"], release.history["draws"], release.history["chosen_by_looking"]


def test_the_same_settings_are_another_look_only_with_another_key() -> None:
    def again(**options: Any) -> tuple[int, int, bool]:
        return looked(publish_release(Job(table(), mw.Policy.load(POLICY), attacks=(), **options)))

    assert again() == (0, 0, False)
    assert again() == (0, 0, False)
    place().unlink()
    assert again() == (0, 1, True)
    assert again(seed=1) == (0, 2, True)
    assert again() == (0, 2, True)
    other = mw.Policy.load(POLICY | {"method": {"name": "anatomy", "l": 3}})
    assert looked(publish_release(Job(table(), other, attacks=()))) == (1, 0, True)
    assert again() == (1, 2, True)


def test_runs_of_earlier_versions_had_keys_of_their_own() -> None:
    first = publish_release(Job(table(), mw.Policy.load(POLICY), attacks=()))
    assert looked(first) == (0, 0, False)
    [path] = (history.state_folder() / "inputs").iterdir()
    line = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({k: v for k, v in line.items() if k != "key"}) + "\n", encoding="utf-8")
    again = publish_release(Job(table(), mw.Policy.load(POLICY), attacks=()))
    assert looked(again) == (0, 1, True)
    assert "other random choices" in again.history["why"]
