"""What fuzzing found, each as a test of its own; and the bombs that everybody knows."""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

import maskwright as mw
from maskwright.domain.exact import to_fraction
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.engines.duckdb.database import translated_failures
from maskwright.errors import LONGEST, HierarchyError, InputError, MaskwrightError, PolicyError
from maskwright.hierarchies import WAYS
from maskwright.hierarchies import files as hierarchy_file
from maskwright.pipeline.attacking import knowledge_statements
from maskwright.policy.policy import Policy
from maskwright.policy.yaml_text import dump_yaml, load_yaml
from tests.patients import POLICY, patients, write_csv
from tests.support import needs


def policy(**changes: Any) -> dict[str, Any]:
    return dict(yaml.safe_load(POLICY) | changes)


# --- messages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a\nb", "a\r\nb", "a\u2028b", "\x1e\x1e", "a\x85b", "\x1b[31mred", "\u202eback", "\ud800"]
)
def test_a_message_is_one_printable_line_whatever_it_names(name: str) -> None:
    with pytest.raises(PolicyError) as refused:
        Policy.load(policy(columns={name: {"role": "quasi-identifier", "order": [["x"]]}}))
    text = str(refused.value)
    assert text.isprintable()
    assert len(text.splitlines()) == 1
    text.encode()


def test_a_long_message_keeps_its_beginning_and_its_remedy() -> None:
    text = str(PolicyError("unknown key " + "x" * 100_000 + "; known: a, b"))
    assert len(text) < LONGEST + 20
    assert text.startswith("unknown key x")
    assert text.endswith("; known: a, b")
    codes = str(PolicyError("unknown key " + "\u2028" * 100_000 + "; known: a, b"))
    assert len(codes) < LONGEST + 20, "a character that does not print is told in several"
    assert codes.endswith("; known: a, b")
    assert str(PolicyError("Müdigkeit ≥ 5 日本")) == "Müdigkeit ≥ 5 日本", "what prints stays as it is"


# --- policies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["\x85", "a\x85b", "\u2028", "a\nb", "\ufeff", "\x00", "\ud800", " x ", "\t", "'", '"', "é"]
)
def test_what_is_written_as_yaml_is_read_again(text: str) -> None:
    assert load_yaml(dump_yaml({text: [text]}).encode(), "x") == {text: [text]}


@pytest.mark.parametrize("odd", [object, ..., 1j, {1, 2}, b"x", Path("x"), Decimal("nan")])
def test_settings_that_no_file_can_hold_do_not_break_the_dump(odd: Any) -> None:
    named = Policy.load(policy(method={"name": "optimal-lattice", "objective": odd}))
    assert str(odd) in str(named.to_dict()["method"]["objective"])


ABSURD: list[Any] = [
    10**5_000, -(10**5_000), Fraction(1, 10**5_000), Decimal("1e999999999"), Decimal("1e-999999999"), Decimal("sNaN"),
    "1e999999999", "1e-999999999", "9" * 5_000, "1/0", float("inf"), float("nan"),
]  # fmt: skip


@pytest.mark.parametrize("number", ABSURD, ids=range(len(ABSURD)))
def test_absurd_numbers_are_refused_at_once(number: Any) -> None:
    begin = time.process_time()
    with pytest.raises(ValueError, match=r"not a (finite )?number"):
        to_fraction(number)
    with pytest.raises(PolicyError):
        Policy.load(policy(columns={"a": {"role": "quasi-identifier", "hierarchy": {"intervals": [number]}}}))
    assert time.process_time() - begin < 1


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
BOMBS = {
    "billion laughs": (LAUGHS.encode(), "anchors and aliases"),
    "an alias of itself": (b"a: &a [*a]\n", "anchors and aliases"),
    "merge keys": (b"x: &x {k: 1}\ny: {<<: *x}\n", "anchors and aliases"),
    "deep nesting": (b"[" * 100_000, "nested too deeply"),
    "deep mappings": (b"{a: " * 50_000, "nested too deeply"),
    "a python object": (b"!!python/object/apply:os.system ['touch pwned']\n", "a policy is a mapping"),
    "a twin key": (b"version: 1\nversion: 1\n", "given twice"),
    "a large file": (b"#" * (100 << 20), "larger than"),
    "half a surrogate pair": (b'"\\ud800": 1\n', "half a character"),
    "utf-16": ("version: 1".encode("utf-16"), "UTF-8"),
    "NUL": (b"version: \x00\n", "not valid YAML"),
    "binary": (bytes(range(256)), "UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_quickly_and_in_little_memory(name: str, tmp_path: Path) -> None:
    data, why = BOMBS[name]
    (tmp_path / "policy.yaml").write_bytes(data)
    refused_quickly(lambda: Policy.load(tmp_path / "policy.yaml"), why)
    assert not (tmp_path / "pwned").exists()
    assert not Path("pwned").exists()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a file without an end")
def test_files_without_an_end() -> None:
    refused_quickly(lambda: Policy.load("/dev/zero"), "larger than")
    refused_quickly(lambda: knowledge_statements(["@/dev/zero"]), "larger than")
    refused_quickly(lambda: WAYS["file"](file="/dev/zero").build("a", ["x"], Path(), ()), "no such file")


def refused_quickly(call: Callable[[], object], why: str) -> None:
    begin, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MaskwrightError, match=why):
        call()
    assert time.process_time() - begin < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10, "KiB"


def test_a_policy_file_whose_name_holds_a_nul() -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        Policy.load("a\0b")


# --- hierarchy files ----------------------------------------------------------------------------------


def test_a_hierarchy_file_has_a_limit_of_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "h.csv").write_text("a;b\n" * 60, encoding="utf-8")
    monkeypatch.setattr(hierarchy_file, "MAX_CELLS", 100)
    with pytest.raises(HierarchyError, match="more than 100 cells"):
        WAYS["file"](file="h.csv").build("a", ["a"], tmp_path, ())


# --- tables -------------------------------------------------------------------------------------------


def test_an_encoding_with_a_nul_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n", encoding="utf-8")
    engine = open_engine()
    try:
        with pytest.raises(InputError, match="there is no encoding"):
            engine.open(tmp_path / "t.csv", Reading(encoding="utf-8\0"))
    finally:
        engine.close()


def test_what_the_database_says_of_damaged_text_may_be_no_text() -> None:
    with pytest.raises(InputError, match="damaged"), translated_failures():
        os.fsencode("\udcf4").decode()


def test_the_database_error_of_a_damaged_file_is_ours(tmp_path: Path) -> None:
    """The page of a column is overwritten: its name and schema are read, its rows are not."""
    pa = needs("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    parquet.write_table(
        pa.table({"a": ["é" * 50 + str(i) for i in range(200)]}),
        path,
        compression="none",
        use_dictionary=False,
    )
    data = bytearray(path.read_bytes())
    for i in range(200, 2_000):
        data[i] = 0xF4
    path.write_bytes(data)
    engine = open_engine()
    try:
        with pytest.raises(InputError):
            engine.domain(engine.open(path, Reading()), "a")
    finally:
        engine.close()


@pytest.mark.parametrize(
    "column", [5, {"role": "sensitive", "é\n" * 900: 1}, {"hierarchy": {"intervals": "x"}}]
)
def test_names_are_cut_in_messages(column: object) -> None:
    with pytest.raises(PolicyError) as refused:
        Policy.load({"version": 1, "columns": {"é\n" * 700: column}})
    assert len(str(refused.value)) < 600


def test_sets_beside_texts_under_local_recoding(tmp_path: Path) -> None:
    """A KeyError: the recoded table still cleans its texts, whose parameters were gone when sets were put together."""
    rows = patients(24)
    rows[7][5] = " "
    columns = {"name": "identifier", "age": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
               "zip": "sensitive", "sex": {"role": "insensitive", "near_unique": "allow"},
               "disease": {"role": "sensitive", "multivalued": "u"},
               "ward": {"role": "insensitive", "near_unique": "allow"}}  # fmt: skip
    require = [{"model": "k-anonymity", "k": 2}, {"model": "delta-disclosure", "delta": "1"}]
    asked = {"columns": columns, "require": require, "method": {"name": "alpha-k-local"}}
    made = mw.anonymize(write_csv(tmp_path / "t.csv", rows), asked)
    assert len(made.table) == 24


# --- releases that were edited ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [{"sets": ["x"]}, {"sensitive": [{"name": "disease", "values": ["flu"], "ordered": False, "counts": [0, 1, 2]}]},
     {"people": "many"}, {"sensitive": [[]]}],
)  # fmt: skip
def test_an_edited_reference_is_refused_by_whatever_reads_it(tmp_path: Path, change: dict[str, Any]) -> None:
    table = write_csv(tmp_path / "t.csv", patients(12))
    asked = {
        "columns": {"age": {"role": "quasi-identifier", "hierarchy": "suppress"}, "disease": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 2}],
    }  # fmt: skip
    mw.anonymize(table, asked, tmp_path / "r")
    path = tmp_path / "r" / "private" / "reference.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    for read in (
        mw.verify,
        mw.attack,
        lambda folder: mw.Recoder.from_release(folder, check="report").transform(table),
    ):
        with pytest.raises(
            InputError, match=r"is not what was written|it was changed|does not hold what was written"
        ):
            read(tmp_path / "r")
