"""Hundreds of changed releases: `verify` rejects each; a recount exactly those that brute force calls unsafe."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from maskwright.domain.verdict import Verdict
from maskwright.errors import MaskwrightError
from maskwright.pipeline.gates import verify_release
from maskwright.verification import verify
from tests.amounts import amount, cases
from tests.verification import mutations as change
from tests.verification.releases import KINDS, Kind, tables_in

Record = Callable[[str, object], None]
Change = Callable[..., Any]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
EDITS: list[Change] = [*change.TABLES, *change.TABLES, *change.COLUMNS]
BRIEF, LONG = 16, 100  # changed releases of a block
BLOCKS = range(4)  # each is a test of its own, so that they run side by side; `make test` has the first


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One correct release of each kind, made when it is first asked for."""
    os.environ.setdefault("MASKWRIGHT_STATE", str(tmp_path_factory.mktemp("state") / "state"))
    return Made(tmp_path_factory.mktemp("releases"))


class Made(dict[str, Path]):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> Path:
        kind = next(k for k in KINDS if k.name == name)
        self[name] = kind.make(self.folder / name)
        return self[name]


@pytest.fixture
def copy(made: dict[str, Path], tmp_path: Path) -> Iterator[Callable[[Kind], Path]]:
    """A fresh copy of a correct release."""
    number = iter(range(10**6))

    def fresh(kind: Kind) -> Path:
        for old in tmp_path.iterdir():
            old.unlink() if old.is_symlink() or old.is_file() else shutil.rmtree(old)
        return Path(shutil.copytree(made[kind.name], tmp_path / f"release{next(number)}"))

    yield fresh


def accepted(folder: Path, recount_only: bool = False, kind: Kind | None = None) -> bool:
    """Does verification accept it? A refusal is one clear error or a verdict; anything else is a bug."""
    try:
        return verify_release(folder, recount_only, kind.policy if kind else None).ok
    except MaskwrightError as problem:
        assert "\n" not in str(problem)
        return False


@each_kind
def test_what_was_made_is_accepted_and_safe(kind: Kind, copy: Callable[[Kind], Path]) -> None:
    folder = copy(kind)
    assert kind.safe(folder)
    assert accepted(folder)
    assert accepted(folder, recount_only=True)
    assert accepted(folder, kind=kind)


def rewritten(kind: Kind, copy: Callable[[Kind], Path], seed: int) -> None:
    rng = Random(f"rewrite {kind.name} {seed}")  # noqa: S311
    folder = copy(kind)
    how = rng.choice(change.REWRITES)
    for path in tables_in(folder):
        how(path, rng)
    words = f"{how.__name__}, seed {seed}"
    assert kind.safe(folder), words
    assert not accepted(folder), words
    assert accepted(folder, recount_only=True), words
    assert accepted(folder, kind=kind), words


def changed(kind: Kind, copy: Callable[[Kind], Path], seed: int, how: Change | None = None) -> bool:
    """A random change of a table: was it safe?"""
    rng = Random(f"change {kind.name} {seed}")  # noqa: S311
    folder = copy(kind)
    before = {p: p.read_bytes() for p in tables_in(folder)}
    how = how or rng.choice(EDITS)
    if how in change.TABLES:
        change.change_table(folder, how, rng)
    else:
        how(folder, rng)
    words = f"{how.__name__}, seed {seed}"
    same = all(p.is_file() and p.read_bytes() == data for p, data in before.items())
    safe = kind.safe(folder)
    assert accepted(folder) == same, words
    assert accepted(folder, kind=kind) == safe, (words, safe)
    if not safe:
        assert not accepted(folder, recount_only=True), words
    return safe


def broken(kind: Kind, copy: Callable[[Kind], Path], seed: int, how: Change | None = None) -> None:
    rng = Random(f"break {kind.name} {seed}")  # noqa: S311
    folder = copy(kind)
    how = how or rng.choice(change.FOLDERS)
    how(folder, rng)
    assert not accepted(folder), f"{how.__name__}, seed {seed}"


@each_kind
@pytest.mark.parametrize("block", cases(BLOCKS, brief=[0]))
def test_random_changes(
    kind: Kind, block: int, copy: Callable[[Kind], Path], record_property: Record
) -> None:
    seeds = range(block * LONG, block * LONG + amount(BRIEF, LONG))
    kinds: Counter[bool] = Counter()
    for seed in seeds:
        if seed % 8 == 0:
            rewritten(kind, copy, seed)
        elif seed % 8 in (1, 2):
            broken(kind, copy, seed)
        else:
            kinds[changed(kind, copy, seed)] += 1
    record_property("mutations", len(seeds))
    assert kinds[False], "no unsafe change turned up"


@pytest.mark.parametrize("kind", cases([KINDS[0], KINDS[-1]], brief=[KINDS[0]]), ids=lambda kind: kind.name)
def test_every_field_of_the_manifest(
    kind: Kind, made: dict[str, Path], copy: Callable[[Kind], Path], record_property: Record
) -> None:
    """Whatever is edited, it is not the manifest that was written."""
    document = json.loads((made[kind.name] / "public/manifest.json").read_text())
    fields = list(change.leaves(document))
    folder = copy(kind)
    original = (folder / "public/manifest.json").read_bytes()
    for path in fields:
        change.edit(folder / "public/manifest.json", path)
        assert not accepted(folder), path
        assert not accepted(folder, recount_only=True), path
        (folder / "public/manifest.json").write_bytes(original)
    assert accepted(folder)
    record_property("mutations", len(fields))
    assert len(fields) > 20


def test_tables_of_two_releases_are_exchanged(copy: Callable[[Kind], Path], made: dict[str, Path]) -> None:
    folder = copy(KINDS[0])
    shutil.copy(made["mondrian"] / "public/data.csv", folder / "public/data.csv")
    assert not accepted(folder)
    folder = copy(KINDS[0])
    shutil.rmtree(folder / "public")
    shutil.copytree(made["mondrian"] / "public", folder / "public")
    assert not accepted(folder)


# -- a broken product is noticed ------------------------------------------------------------------------------------

measure, compare_files = verify.measure_models, verify._compare_files


def nothing(*_: object) -> list[Any]:
    return []


def the_first(*given: Any) -> tuple[Verdict, ...]:
    return measure(*given)[:1]


def all_but(words: str) -> Callable[..., list[str]]:
    """Files are compared, but of these problems nothing is said."""
    return lambda *given: [problem for problem in compare_files(*given) if words not in problem]


@pytest.mark.parametrize(
    ("parts", "instead", "what", "how"),
    [
        ("verify.Verification.ok", True, changed, change.drop),
        ("verify.measure_models against_policy.measure_models", nothing, changed, change.split),
        ("verify.measure_models against_policy.measure_models", the_first, changed, change.one_value_for_all),
        ("against_policy._not_published", nothing, changed, change.add_column),
        ("verify._compare_files", nothing, broken, change.flip),
        ("verify._compare_files", all_but("was changed"), broken, change.append),
        ("verify._compare_files", all_but("is missing"), broken, change.remove),
        ("verify._compare_files", all_but("is not in the manifest"), broken, change.add),
        ("verify._compare_files", all_but("is a link"), broken, change.link_out),
    ],
    ids=["everything", "requirements", "all but one requirement", "hidden columns", "files", "changed files",
         "missing files", "more files", "links"],
)  # fmt: skip
def test_a_verification_that_leaves_something_out_is_noticed(
    parts: str,
    instead: Any,
    what: Change,
    how: Change,
    copy: Callable[[Kind], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    what(KINDS[0], copy, 0, how)
    for part in parts.split():
        monkeypatch.setattr(f"maskwright.verification.{part}", instead)
    with pytest.raises(AssertionError, match=f"{how.__name__}, seed"):
        for seed in range(30):
            what(KINDS[0], copy, seed, how)


def test_manifests_that_are_not_compared_are_noticed(
    made: dict[str, Path], copy: Callable[[Kind], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwright.verification.verify._compare_manifests", nothing)
    with pytest.raises(AssertionError, match="assert not True"):
        test_every_field_of_the_manifest(KINDS[0], made, copy, lambda *_: None)
