"""`verify` believes nothing but the bytes: whatever breaks a release or its promise is found."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import maskwright as mw
from maskwright.errors import InputError, MaskwrightError, NotVerified
from maskwright.verification.verify import verify_folder


@pytest.fixture
def release(table: Path, policy: Path, tmp_path: Path) -> Path:
    mw.anonymize(table, policy, tmp_path / "release")
    return tmp_path / "release"


def lines(release: Path) -> list[str]:
    return (release / "public/data.csv").read_text().splitlines()


def rewrite(release: Path, new: list[str]) -> None:
    (release / "public/data.csv").write_text("\n".join(new) + "\n")


def fails(release: Path, recount_only: bool = False) -> bool:
    try:
        return not verify_folder(release, recount_only).ok
    except (NotVerified, InputError):
        return True


def test_as_written(release: Path) -> None:
    result = verify_folder(release)
    assert result.ok
    assert result.rows == len(lines(release)) - 1


@pytest.mark.parametrize("row", [1, 7, 20])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_relabelled_row_is_found_even_without_hashes(release: Path, row: int, column: int) -> None:
    rows = list(csv.reader(lines(release)))
    rows[row][column] = "something else"
    rewrite(release, [",".join(r) for r in rows])
    assert fails(release)
    assert fails(release, recount_only=True), "a class of one is not four"


def test_a_row_added(release: Path) -> None:
    rewrite(release, [*lines(release), "99,99999,x,flu,A"])
    assert fails(release, recount_only=True)


def test_a_row_removed(release: Path) -> None:
    rewrite(release, lines(release)[:-1])
    assert fails(release)
    assert fails(release, recount_only=True)


def test_another_order_fails_the_hash_and_passes_the_recount(release: Path) -> None:
    header, *rows = lines(release)
    rewrite(release, [header, *sorted(rows)])
    assert fails(release)
    assert verify_folder(release, recount_only=True).ok


def test_one_value_of_the_same_class_fails_the_hash_only(release: Path) -> None:
    text = (release / "public/data.csv").read_text()
    (release / "public/data.csv").write_text(text.replace("\r\n", "\n") + "")
    card = release / "public/data-card.html"
    card.write_text(card.read_text() + "<!-- -->")
    assert fails(release)
    assert verify_folder(release, recount_only=True).ok


EDITS: list[Callable[[dict], None]] = [  # type: ignore[type-arg]
    lambda m: m["promised"][0]["parameters"].update(k=2),
    lambda m: m["tables"][0].update(rows=1),
    lambda m: m["tables"][0].update(quasi_identifiers=["sex"]),
    lambda m: m["files"].pop("data.csv"),
    lambda m: m.update(seeded=True),
]


@pytest.mark.parametrize("number", range(len(EDITS)))
def test_an_edited_manifest(release: Path, number: int) -> None:
    path = release / "public/manifest.json"
    manifest = json.loads(path.read_text())
    EDITS[number](manifest)
    path.write_text(json.dumps(manifest))
    assert fails(release)


@pytest.mark.parametrize("name", ["data.csv", "data-card.html", "data-dictionary.json", "manifest.json"])
def test_a_missing_file(release: Path, name: str) -> None:
    (release / "public" / name).unlink()
    assert fails(release)


def test_an_extra_file(release: Path) -> None:
    shutil.copy(release / "public/data.csv", release / "public/more.csv")
    assert fails(release)


def test_an_edited_private_file(release: Path) -> None:
    (release / "private/policy.yaml").write_text("k: 1\n")
    assert fails(release)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"tables": []}', "not json", '{"tables": [{"file": "../x"}]}']
)
def test_a_broken_manifest_is_one_clear_error(release: Path, text: str) -> None:
    (release / "public/manifest.json").write_text(text)
    with pytest.raises(MaskwrightError):
        verify_folder(release)


def test_a_manifest_cannot_point_outside(release: Path, tmp_path: Path) -> None:
    shutil.copy(release / "public/data.csv", tmp_path / "data.csv")
    path = release / "public/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["tables"][0]["file"] = "../../data.csv"
    path.write_text(json.dumps(manifest))
    with pytest.raises(NotVerified, match="missing"):
        verify_folder(release, recount_only=True)


def test_not_a_release(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is this a release"):
        verify_folder(tmp_path)


@pytest.mark.parametrize("label", ["", "+1", "1.0", "01", "a"])
@pytest.mark.parametrize("file", ["quasi-identifiers.csv", "sensitive.csv"])
def test_groups_of_two_tables_that_are_not_written_alike(
    table: Path, policy: Path, tmp_path: Path, file: str, label: str
) -> None:
    """The groups of one table are whole numbers, those of the other no longer: refused in words."""
    asked = yaml.safe_load(policy.read_text()) | {"method": {"name": "mondrian"}, "recoding": "bucketize"}
    mw.anonymize(table, asked, tmp_path / "release")
    path = tmp_path / "release/public" / file
    with path.open(newline="") as source:
        rows = list(csv.DictReader(source))
    rows[0]["group"] = label
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    for recount_only in (False, True):
        with pytest.raises(NotVerified, match="do not have the same groups"):
            verify_folder(tmp_path / "release", recount_only)
