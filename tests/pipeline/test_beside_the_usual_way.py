"""What went wrong beside the usual way: huge numbers, odd names, inputs that go away, refusals at the end."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import maskwright as mw
from maskwright.engines.duckdb.database import Database, translated_failures
from maskwright.engines.duckdb.engine import DuckDBEngine, _foreign
from maskwright.errors import InputError, PolicyError, PolicyNotMet, UsageError
from maskwright.folder.store import is_readable
from maskwright.pipeline.attacking import adversary_named
from maskwright.runtime.memory_budget import MemoryBudget, machine_memory
from maskwright.verification.verify import verify_folder
from tests.patients import leftovers, write_csv

AGES: dict[str, Any] = {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 40]}}}


def policy(columns: dict[str, Any], **more: Any) -> dict[str, Any]:
    whole = {"version": 1, "columns": columns, "method": "mondrian"}
    return whole | {"require": [{"model": "k-anonymity", "k": 2}]} | more


def test_numbers_of_64_bits_without_a_sign(tmp_path: Path) -> None:
    """They were refused as damaged: 64 bits with a sign do not hold them."""
    ids = [2**64 - 1 - i % 10 for i in range(40)]
    kinds: dict[str, Any] = {"number": pl.UInt64, "d": pl.String}
    frame = pl.DataFrame({"number": ids, "d": ["abcd"[i % 4] for i in range(40)]}, schema=kinds)
    frame.write_parquet(tmp_path / "t.parquet")
    asked = policy(
        {"number": "quasi-identifier", "d": "sensitive"}, method={"name": "anatomy", "l": 2},
        require=[{"model": "simple-l-diversity", "l": 2}],
        recoding={"name": "bucketize", "quasi_identifiers": "exact"},
    )  # fmt: skip
    mw.anonymize(tmp_path / "t.parquet", asked, tmp_path / "r")
    there = pl.read_parquet(tmp_path / "r/public/quasi-identifiers.parquet")
    assert Counter(map(int, there["number"].to_list())) == Counter(ids)
    assert verify_folder(tmp_path / "r").ok


def test_names_with_another_delimiter(tmp_path: Path) -> None:
    """The delimiter of our own file was guessed."""
    rows = [[f"{20 + i % 5};1;2", "ab"[i % 2]] for i in range(40)]
    source = write_csv(tmp_path / "t.csv", rows, ["age;x;y", "d"])
    asked = policy({"age;x;y": "quasi-identifier", "d": "sensitive"}, input={"delimiter": ","})
    assert mw.anonymize(source, asked, tmp_path / "r").ok
    assert verify_folder(tmp_path / "r").ok
    (tmp_path / "r/public/data.csv").write_text(
        (tmp_path / "r/public/data.csv").read_text().replace(";", "_").replace(",", ";"), encoding="utf-8"
    )
    with pytest.raises(InputError):
        verify_folder(tmp_path / "r", recount_only=True)  # read with the delimiter that it has: other columns


def people(path: Path, n: int = 60) -> Path:
    values = {"age": [20 + i % 40 for i in range(n)], "d": ["ab"[i % 2] for i in range(n)]}
    pl.DataFrame({**values, "ward": ["xyz"[i % 3] for i in range(n)]}).write_parquet(path)
    return path


WARDS = {**AGES, "d": "sensitive", "ward": {"role": "insensitive", "near_unique": "allow"}}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_input_that_is_replaced_while_the_release_is_written(tmp_path: Path, kind: str) -> None:
    source = people(tmp_path / "t.parquet")

    def replaced(event: Any) -> None:
        if event.kind == "step" and event.text == "writing":
            people(source, 30)

    asked = policy(WARDS, output={"format": kind})
    with pytest.raises(InputError, match="changed while it was being read"):
        mw.anonymize(source, asked, tmp_path / "r", on_event=replaced)
    assert not (tmp_path / "r").exists()
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("keep", ["all", "none"])
@pytest.mark.parametrize("unit", ["none", "who"])
def test_saved_when_the_input_is_gone(tmp_path: Path, keep: str, unit: str) -> None:
    source = people(tmp_path / "t.parquet")
    pl.read_parquet(source).with_columns(who=pl.Series([i // 2 for i in range(60)])).write_parquet(source)
    columns = {**AGES, "d": "sensitive", "who": "identifier", "ward": "identifier"}
    method = "mondrian" if unit == "none" else {"name": "optimal-lattice"}
    release = mw.anonymize(source, policy(columns, method=method) | {"unit": unit})
    source.unlink()
    release.save(tmp_path / "r", keep_private=keep)
    if keep == "all":
        assert verify_folder(tmp_path / "r").ok


def test_no_copy_of_the_release_stays_in_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[str]()
    forget = DuckDBEngine.forget

    def looked(engine: DuckDBEngine, table: Any) -> None:
        forget(engine, table)
        seen.extend(
            name for (name,) in engine._db.con.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        )

    monkeypatch.setattr(DuckDBEngine, "forget", looked)
    mw.anonymize(people(tmp_path / "t.parquet"), policy(WARDS, output={"format": "csv"}), tmp_path / "r")
    assert not [name for name in seen if name.startswith("kept")]


def test_nothing_is_handed_over_before_it_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    handed = list[str]()

    def refused(verdicts: tuple[Any, ...], _: Any) -> Any:
        return [replace(verdict, ok=False) for verdict in verdicts]

    monkeypatch.setattr(DuckDBEngine, "hand_over", lambda *_: handed.append("a table"))
    monkeypatch.setattr("maskwright.pipeline.publish.decide_beliefs", refused)
    frame = pl.DataFrame({"age": [20 + i // 4 for i in range(40)], "d": ["a", "a", "a", "b"] * 10})
    with pytest.raises(PolicyNotMet):
        mw.anonymize(frame, policy({"age": "quasi-identifier", "d": "sensitive"}))
    assert handed == []


@pytest.mark.parametrize("memory", ["99999999TB", "9" * 400 + "GB", "1000%"])
def test_more_memory_than_there_is(memory: str, tmp_path: Path) -> None:
    """The engine did not understand so much, and its folder stayed."""
    assert MemoryBudget.of(memory).limit <= machine_memory()
    release = mw.anonymize(people(tmp_path / "t.parquet"), policy(WARDS), tmp_path / "r", memory=memory)
    assert release.ok
    assert not leftovers(tmp_path)


def test_an_engine_that_refuses_its_memory_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = list[bool]()
    close = Database.close

    def refuse(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(Database, "allow", refuse)
    monkeypatch.setattr(Database, "close", lambda db: (closed.append(True), close(db)))
    with pytest.raises(RuntimeError, match="no"):
        mw.anonymize(people(tmp_path / "t.parquet"), policy(WARDS))
    assert closed == [True]


@pytest.mark.parametrize(
    "text", ["KeyboardInterrupt", "Query interrupted", "while scanning: KeyboardInterrupt: \n"]
)
def test_a_ctrl_c_is_no_fault_of_the_table(text: str) -> None:
    with pytest.raises(KeyboardInterrupt), translated_failures():
        raise duckdb.InvalidInputException(text)
    with pytest.raises(KeyboardInterrupt), _foreign("the pandas table"):
        raise duckdb.Error(text)
    with pytest.raises(InputError), translated_failures():
        raise duckdb.InvalidInputException(f"{text} is a value")


@pytest.mark.parametrize(
    ("field", "value"),
    [("promised", ["x"]), ("tables.sets", ["x"]), ("tables.columns", [1, "a"]), ("tables.classes_by", [["a"]]),
     ("tables.sensitive", {"a": 1}), ("tables.format", "doc"), ("tables.format", ["csv"]), ("tables", "x")],
)  # fmt: skip
def test_a_manifest_of_wrong_types(field: str, value: Any, tmp_path: Path) -> None:
    mw.anonymize(people(tmp_path / "t.parquet"), policy(WARDS), tmp_path / "r")
    file = tmp_path / "r/public/manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    place, *inner = field.split(".")
    if inner:
        manifest[place][0][inner[0]] = value
    else:
        manifest[place] = value
    file.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(InputError, match="not a manifest of ours"):
        verify_folder(tmp_path / "r")


def test_private_may_belong_to_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who cannot read private/ verifies what they have, as if it had not been kept."""
    mw.anonymize(people(tmp_path / "t.parquet"), policy(WARDS), tmp_path / "r")
    is_file = Path.is_file

    def refused(path: Path) -> bool:
        if "private" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refused)  # root may read everything
    monkeypatch.setattr("os.access", lambda path, mode: "private" not in Path(path).parts)
    assert not is_readable(tmp_path / "r/private/manifest.json")
    result = verify_folder(tmp_path / "r")
    assert result.ok
    assert any("belongs to somebody else" in note for note in result.notes)


@pytest.mark.parametrize("facts", [-1, 101, 2**31])
def test_nobody_knows_so_many_facts(facts: int) -> None:
    """Memory and time grow with their number: it hung, or memory was said to be short."""
    with pytest.raises(UsageError, match=f"facts: {facts} is not allowed; 0 to 100"):
        adversary_named("insider", facts)
    asked = [{"model": "belief", "max": 1, "adversary": "insider", "facts": facts}]
    with pytest.raises(PolicyError, match="facts"):
        mw.anonymize(
            pl.DataFrame({"age": [20] * 4, "d": list("abab")}),
            policy({**AGES, "d": "sensitive"}, require=asked),
        )
