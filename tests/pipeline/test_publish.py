"""From a table to a verified release: in memory and on disk, in the caller's own kind, counted in people."""

from __future__ import annotations

import csv
import gc
import json
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.errors import Cancelled, InputError, NotVerified, PolicyNotMet
from maskwright.folder.saved_state import load_grouping
from maskwright.pipeline.history import state_folder
from maskwright.pipeline.random_keys import NAME
from maskwright.runtime.events import Event
from maskwright.verification.verify import verify_folder
from tests.amounts import LONG
from tests.patients import HEADER, POLICY, leftovers, linkage, patients, write_csv


def smallest(rows: list[tuple[Any, ...]]) -> int:
    return min(Counter(rows).values())


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_release_on_disk(table: Path, policy: Path, tmp_path: Path) -> None:
    release = mw.anonymize(table, policy, tmp_path / "release")
    assert release.ok
    assert release.path == tmp_path / "release"
    rows = read(tmp_path / "release/public/data.csv")
    assert list(rows[0]) == ["age", "zip", "sex", "disease", "ward"]
    assert smallest([(r["age"], r["zip"], r["sex"]) for r in rows]) >= 4
    assert len(rows) == release.grouping.published_rows >= 38
    names = {
        p.relative_to(tmp_path / "release").as_posix()
        for p in (tmp_path / "release").rglob("*")
        if p.is_file()
    }
    assert names == {
        "public/data.csv", "public/data-card.html", "public/data-dictionary.json", "public/manifest.json",
        "private/report.html", "private/policy.yaml", "private/manifest.json", "private/reference.json",
        "private/state.npz", "private/state.json", "private/mapping.csv",
    }  # fmt: skip
    assert stat.S_IMODE((tmp_path / "release/private").stat().st_mode) == 0o700
    assert not leftovers(tmp_path)
    assert verify_folder(tmp_path / "release").ok


def test_sensitive_and_insensitive_values_stay_with_their_rows(
    table: Path, policy: Path, tmp_path: Path
) -> None:
    release = mw.anonymize(table, policy, tmp_path / "release")
    levels = {h.attribute: h for h in release.grouping.summary.attributes}
    node = dict(zip(levels, release.grouping.levels or (), strict=True))

    def label(name: str, value: str) -> str:
        level = levels[name].levels[node[name]]
        return str(level.labels[level.blocks[levels[name].values.index(value) + 1]])

    expected = Counter(
        (label("age", age), label("zip", zip_), label("sex", sex), disease, ward)
        for _, age, zip_, sex, disease, ward in patients()
    )
    found = Counter(
        (r["age"], r["zip"], r["sex"], r["disease"], r["ward"])
        for r in read(tmp_path / "release/public/data.csv")
    )
    assert sum((expected - found).values()) == release.grouping.suppressed_rows
    assert not found - expected


def test_keep_private(table: Path, policy: Path, tmp_path: Path) -> None:
    mw.anonymize(table, policy, tmp_path / "a", keep_private="none")
    assert not (tmp_path / "a/private").exists()
    assert verify_folder(tmp_path / "a").ok
    mw.anonymize(table, policy, tmp_path / "b", keep_private="report")
    assert (tmp_path / "b/private/report.html").exists()
    assert not (tmp_path / "b/private/state.npz").exists()


def test_public_files_hold_no_private_words(table: Path, policy: Path, tmp_path: Path) -> None:
    release = mw.anonymize(table, policy, tmp_path / "release")
    published = {text for labels in release.grouping.labels for text in labels.texts if text}
    raw = {row[0] for row in patients()} | ({row[1] for row in patients()} - published)
    for file in (tmp_path / "release/public").iterdir():
        words = set(file.read_text(encoding="utf-8").replace(",", " ").replace('"', " ").split())
        assert not words & {w for w in raw if w.startswith("P")}, file
        assert "patients.csv" not in file.read_text(encoding="utf-8")
    manifest = json.loads((tmp_path / "release/public/manifest.json").read_text())
    assert "timings" not in manifest
    assert "fingerprint" not in json.dumps(manifest)


def test_row_order_says_nothing_and_differs_between_installations(tmp_path: Path) -> None:
    rows = [[f"P{i}", "30", "13000", "m", "flu", str(i % 40)] for i in range(400)]
    source = write_csv(tmp_path / "t.csv", rows)
    policy = mw.Policy.load(
        {
            "columns": {"age": "quasi-identifier", "ward": {"role": "insensitive", "near_unique": "allow"}},
            "require": [{"model": "k-anonymity", "k": 5}],
        }
    )
    orders = []
    for name in "abc":
        (state_folder() / NAME).unlink(missing_ok=True)
        mw.anonymize(source, policy, tmp_path / name)
        orders.append([int(r["ward"]) for r in read(tmp_path / name / "public/data.csv")])
    assert orders[0] != orders[1] != orders[2]
    for order in orders:
        assert abs(np.corrcoef(order, np.arange(400) % 40)[0, 1]) < 0.25


def test_a_seed_repeats_the_release_and_is_marked(table: Path, policy: Path, tmp_path: Path) -> None:
    for name in "ab":
        release = mw.anonymize(table, policy, tmp_path / name, seed=7)
        assert release.seeded
    data = [(tmp_path / name / "public/data.csv").read_bytes() for name in "ab"]
    assert data[0] == data[1]
    assert json.loads((tmp_path / "a/public/manifest.json").read_text())["seeded"] is True
    assert "seed" in (tmp_path / "a/private/report.html").read_text()


# -- frames ----------------------------------------------------------------------------------------------


def frame() -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {h: [row[i] for row in patients()] for i, h in enumerate(HEADER)}
    columns["age"] = [int(a) for a in columns["age"]]
    columns["ward"] = [i % 3 + 0.5 for i in range(40)]
    return columns


def keep_age_exact() -> mw.Policy:
    text = POLICY.replace("{intervals: [5, 10, 20]}}", "suppress, levels: [0]}").replace("k: 4", "k: 1")
    text = text.replace("  - {model: simple-l-diversity, l: 2, use: gate}\n", "")
    return mw.Policy.of(__import__("yaml").safe_load(text), "policy")


def test_pandas_in_pandas_out(policy: Path) -> None:
    data = pd.DataFrame(frame()).sample(frac=1, random_state=1)
    out = mw.anonymize(data, policy).table
    assert type(out) is pd.DataFrame
    assert list(out.columns) == ["age", "zip", "sex", "disease", "ward"]
    assert list(out.index) == list(range(len(out)))
    assert out["ward"].dtype == np.float64
    assert smallest(list(zip(out["age"], out["zip"], out["sex"], strict=True))) >= 4


def test_types_are_kept_where_a_column_is_not_recoded() -> None:
    out = mw.anonymize(pd.DataFrame(frame()), keep_age_exact()).table
    assert out["age"].dtype == np.int64
    assert sorted(out["age"]) == list(range(20, 60))
    out = mw.anonymize(pl.DataFrame(frame()), keep_age_exact()).table
    assert out.schema["age"] == pl.Int64
    assert out.schema["ward"] == pl.Float64


def test_sensitive_numbers_with_gaps_are_found_again_in_a_file(tmp_path: Path) -> None:
    """Numbers between them, which nobody has, are no values that the input did not have."""
    people = pd.DataFrame({"age": [30] * 8, "income": [0, 7, 3, 12] * 2})
    policy = {
        "columns": {"age": "quasi-identifier", "income": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 2}],
    }
    people.to_parquet(tmp_path / "people.parquet")
    release = mw.anonymize(tmp_path / "people.parquet", policy, tmp_path / "release")
    assert release.ok
    assert verify_folder(tmp_path / "release").ok


def test_polars_in_polars_out(policy: Path) -> None:
    out = mw.anonymize(pl.DataFrame(frame()), policy).table
    assert isinstance(out, pl.DataFrame)
    assert smallest(out.select("age", "zip", "sex").rows()) >= 4


def test_pyarrow_in_pyarrow_out(policy: Path) -> None:
    out = mw.anonymize(pa.table(frame()), policy).table
    assert isinstance(out, pa.Table)
    assert out.column_names == ["age", "zip", "sex", "disease", "ward"]


def test_a_path_gives_a_duckdb_relation(table: Path, policy: Path) -> None:
    release = mw.anonymize(table, policy)
    assert len(release.table.fetchall()) == release.grouping.published_rows


def test_save_writes_the_table_that_was_handed_over(policy: Path, tmp_path: Path) -> None:
    release = mw.anonymize(pd.DataFrame(frame()), policy)
    path = release.save(tmp_path / "release")
    assert verify_folder(path).ok
    assert len(pd.read_parquet(path / "public/data.parquet")) == len(release.table)
    with pytest.raises(mw_error("DestinationError")):
        release.save(tmp_path / "release")


def mw_error(name: str) -> type[Exception]:
    from maskwright import errors

    return getattr(errors, name)  # type: ignore[no-any-return]


# -- people ----------------------------------------------------------------------------------------------

VISITS = {
    "columns": {
        "patient": "identifier",
        "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
        "disease": "sensitive",
    },
    "unit": "patient",
    "require": [{"model": "k-anonymity", "k": 3}],
    "method": {"name": "optimal-lattice", "suppression": 0},
}


def visits() -> pd.DataFrame:
    """Postcode 10 has six visits of only two people; together with 11 there are three people."""
    rows = [("ann", "10", "flu")] * 3 + [("bob", "10", "flu")] * 3 + [("cid", "11", "flu")]
    rows += [("ann", "11", "ulcer")] + [(f"p{i}", "22", "flu") for i in range(3)]
    return pd.DataFrame(rows, columns=["patient", "zip", "disease"])


def test_people_are_counted_not_rows() -> None:
    release = mw.anonymize(visits(), VISITS)
    counts = Counter(release.table["zip"])
    assert counts == {"1*": 8, "2*": 3}, "six rows of two people are not a class of three"
    assert list(release.grouping.classes.sizes) == [3, 3]
    assert release.verdicts[0].worst == 3
    risk = linkage(release).measures["after"]
    assert risk["smallest_class"] == 3
    assert risk["highest"] == "1/3"
    rows = mw.anonymize(visits(), VISITS | {"unit": "none"})
    assert Counter(rows.table["zip"]) == {"1*": 8, "2*": 3}


def test_a_unit_release_is_verified_in_people(tmp_path: Path) -> None:
    mw.anonymize(visits(), VISITS, tmp_path / "r")
    result = verify_folder(tmp_path / "r")
    assert result.ok
    assert result.verdicts[0].worst == 3
    people = json.loads((tmp_path / "r/private/classes.json").read_text())
    assert sorted(people["people"]) == [3, 3]
    (tmp_path / "r/private/classes.json").unlink()
    with pytest.raises(NotVerified, match="rows per person"):
        verify_folder(tmp_path / "r")


def test_nobody_is_hidden_in_their_own_rows() -> None:
    data = pd.DataFrame({"patient": ["ann"] * 10, "zip": ["10"] * 10, "disease": ["flu"] * 10})
    with pytest.raises(PolicyNotMet, match="1"):
        mw.anonymize(data, VISITS)


# -- missing, cancelling, changing -------------------------------------------------------------------------


def test_missing_values_are_a_value_of_their_own_or_dropped() -> None:
    data = pd.DataFrame({"zip": ["1"] * 4 + [None] * 4 + ["?"] * 1, "disease": ["a", "b", "?"] * 3})
    policy = {
        "missing": {"tokens": ["?"]},
        "columns": {"zip": "quasi-identifier", "disease": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 4}],
    }
    release = mw.anonymize(data, policy)
    assert release.table["zip"].isna().sum() == 5
    assert release.table["disease"].isna().sum() == 3
    dropped = mw.anonymize(data, policy | {"missing": {"tokens": ["?"], "rows": "drop"}, "require": [
        {"model": "k-anonymity", "k": 2}]})  # fmt: skip
    assert dropped.grouping.summary.dropped_missing == 6
    assert len(dropped.table) == 3
    assert any("missing: 6" in note for note in dropped.notes)


def test_cancelling_leaves_nothing(table: Path, policy: Path, tmp_path: Path) -> None:
    steps: list[str] = []

    def watch(event: Event) -> None:
        steps.append(event.text)

    mw.anonymize(table, policy, tmp_path / "whole", on_event=watch)
    total = len(steps)
    assert total > 8
    for stop in range(1, total - 1, 1 if LONG else 3):
        steps.clear()
        with pytest.raises(Cancelled):
            mw.anonymize(
                table, policy, tmp_path / "r", on_event=watch, cancelled=lambda n=stop: len(steps) >= n
            )
        assert not (tmp_path / "r").exists()
        assert not leftovers(tmp_path)


def test_an_input_that_changes_while_it_is_read_is_refused(table: Path, policy: Path, tmp_path: Path) -> None:
    def change(event: Event) -> None:
        if event.text == "attacking":
            with table.open("a") as file:
                file.write("P999,20,13000,m,flu,A\n")

    with pytest.raises(InputError, match="changed while"):
        mw.anonymize(table, policy, tmp_path / "r", on_event=change)
    assert not (tmp_path / "r").exists()


def test_the_state_in_private_is_the_grouping(table: Path, policy: Path, tmp_path: Path) -> None:
    release = mw.anonymize(table, policy, tmp_path / "r")
    again = load_grouping(tmp_path / "r/private")
    assert again.levels == release.grouping.levels
    assert np.array_equal(again.classes.sizes, release.grouping.classes.sizes)
    assert np.array_equal(again.allocation.groups, release.grouping.allocation.groups)
    assert [x.texts for x in again.labels] == [x.texts for x in release.grouping.labels]
    assert again.classes.sensitive["disease"].of_class(0) == release.grouping.classes.sensitive[
        "disease"
    ].of_class(0)


def test_events_tell_the_story(table: Path, policy: Path) -> None:
    seen: list[Event] = []
    mw.anonymize(table, policy, on_event=seen.append)
    steps = [e.text for e in seen if e.kind == "step"]
    assert steps[:4] == ["reading", "summarising", "searching", "recoding"]
    assert seen[-1].kind == "done"
    assert any("not published: name" in e.text for e in seen if e.kind == "note")


def test_nothing_is_left_in_the_temporary_folder(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    release = mw.anonymize(pd.DataFrame(frame()), policy)
    assert list((tmp_path / "tmp").iterdir()), "the engine is kept for save()"
    release.save(tmp_path / "release")
    del release
    gc.collect()
    assert list((tmp_path / "tmp").iterdir()) == []
    with pytest.raises(PolicyNotMet):
        mw.anonymize(pd.DataFrame(frame()), mw.Policy.load(policy).to_dict() | {
            "require": [{"model": "k-anonymity", "k": 41}]})  # fmt: skip
    assert list((tmp_path / "tmp").iterdir()) == []
