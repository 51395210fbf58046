"""Files on Spark: those of a folder are one table, and every text is what the bytes say; or else they are refused."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import maskwright as mw
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Reading
from maskwright.errors import InputError, NotVerified
from tests.amounts import cases
from tests.patients import HEADER, POLICY, patients, write_csv
from tests.spark import MARKS
from tests.spark.people import POLICIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS
AS_FOUND = Reading()
PLACES = {"here": str, "remote": lambda path: f"file://{path}"}  # an address is not looked into from here


@pytest.fixture
def engine(spark: SparkSession) -> Iterator[Engine]:
    engine = open_engine("spark")
    yield engine
    engine.close()


def folder(place: Path, **files: bytes) -> Path:
    path = place / "people.csv"
    path.mkdir()
    for name, content in files.items():
        (path / f"{name}.csv").write_bytes(content)
    return path


def rows(engine: Engine, source: Any, reading: Reading = AS_FOUND) -> Counter[tuple[Any, ...]]:
    table = engine.open(source, reading)
    return Counter(tuple(row.items()) for row in engine.sample(table, 100))


OTHERS = {
    "order": (b"zip,age\n113,22\n", "column 1 is not called"),
    "names": (b"age,code\n22,113\n", "column 2 is not called"),
    "case": (b"Age,zip\n22,113\n", "column 1 is not called"),
    "no header": (b"22,113\n23,113\n", "column 1 is not called"),
    "fewer": (b"age\n22\n", "1 columns and 2 in 'a.csv'"),
    "more": (b"age,zip,name\n22,113,Ada\n", "3 columns and 2 in 'a.csv'"),
    "delimiter": (b"age;zip\n22;113\n", "end with ';' and in 'a.csv' with ','"),
    "encoding": ("age,zip\n22,113\n".encode("utf-16"), "it is utf-16 and 'a.csv' is utf-8"),
    "empty": (b"", "b.csv: the file is empty"),
    "compressed": (gzip.compress(b"age,zip\n22,113\n"), "rename it to end in .gz"),
    "parquet": (b"PAR1", "'a.csv' is text and 'b.csv' is Parquet"),
}


@pytest.mark.parametrize("difference", cases(OTHERS, brief=["order", "encoding", "empty"]))
def test_csv_files_that_differ_are_not_one_table(difference: str, engine: Engine, tmp_path: Path) -> None:
    content, why = OTHERS[difference]
    source = folder(tmp_path, a=b"age,zip\n20,111\n", b=content)
    with pytest.raises(InputError) as refused:
        engine.open(source, Reading())
    message = str(refused.value)
    assert why in message and "b.csv" in message
    assert not [value for value in ("113", "22", "Ada") if value in message.replace(str(tmp_path), "")]


@pytest.mark.parametrize(
    "difference",
    cases(["order", "names", "no header", "fewer", "more", "delimiter"], brief=["order", "more"]),
)
def test_headers_of_remote_files_are_compared(difference: str, engine: Engine, tmp_path: Path) -> None:
    source = folder(tmp_path, a=b"age,zip\n20,111\n", b=OTHERS[difference][0])
    with pytest.raises(
        InputError, match=r"file://.*b\.csv: its header is not that of the other files"
    ) as refused:
        engine.open(f"file://{source}", Reading())
    assert "113" not in str(refused.value).replace(str(tmp_path), "")


@pytest.mark.parametrize("header", cases(["age,age", "age,"], brief=["age,age"]))
def test_a_remote_header_must_name_every_column_once(header: str, engine: Engine, tmp_path: Path) -> None:
    source = folder(tmp_path, a=f"{header}\n20,111\n".encode())
    with pytest.raises(InputError, match="has no name for a column, or a name twice"):
        engine.open(f"file://{source}", Reading())


@pytest.mark.parametrize("place", PLACES)
def test_csv_files_that_agree_are_one_table(place: str, engine: Engine, tmp_path: Path) -> None:
    """One with a mark of its encoding, one that is compressed, one without rows; what is hidden is no part of it."""
    source = folder(
        tmp_path, a=b"a.b,zip\n20,111\n", b=b"\xef\xbb\xbfa.b,zip\n21,112\n", c=b"a.b,zip\n",
        _hidden=b"zip\n", d=b"a.b,zip\n24,x",
    )  # fmt: skip
    (source / "e.csv.gz").write_bytes(gzip.compress("a.b,zip\n22,1é3\n".encode()))
    (source / "f.csv._COPYING_").write_bytes(b"a.b\n")
    found = rows(engine, PLACES[place](source), Reading(format="csv"))
    assert found == Counter(
        (("a.b", a), ("zip", b)) for a, b in (("20", "111"), ("21", "112"), ("22", "1é3"), ("24", "x"))
    )


@pytest.mark.parametrize("place", cases(PLACES, brief=["remote"]))
def test_a_csv_file_of_one_column(place: str, engine: Engine, tmp_path: Path) -> None:
    """Missing values are quoted in it, as we write them; an empty line would be lost."""
    source = folder(tmp_path, a=b'age\n20\n""\n"2""1"\n22', b=b"age\r\n20\r\n")
    expected = Counter({(("age", "20"),): 2, (("age", None),): 1, (("age", '2"1'),): 1, (("age", "22"),): 1})
    assert rows(engine, PLACES[place](source)) == expected
    for empty in (b"\n", b"\r\n", b" \t\n"):
        (source / "b.csv").write_bytes(b"age\n20\n" + empty + b"21\n")
        with pytest.raises(InputError, match="an empty line of a CSV file of one column is a missing value"):
            engine.open(PLACES[place](source), Reading())


@pytest.mark.parametrize("place", cases(PLACES, brief=["here"]))
def test_a_column_of_texts_in_two_bytes_each(place: str, engine: Engine, tmp_path: Path) -> None:
    source = folder(tmp_path, a="age\n20\n\n21\n".encode("utf-16"))
    with pytest.raises(InputError, match="CSV files of one column in utf-16"):
        engine.open(PLACES[place](source), Reading(encoding="utf-16"))


def test_a_release_of_one_column(spark: SparkSession, tmp_path: Path) -> None:
    ages = ["20"] * 30 + [""] * 12 + ["30", "40"]
    (tmp_path / "people.csv").write_text("age,name\n" + "".join(f"{a},x\n" for a in ages), encoding="utf-8")
    policy = {
        "unit": "none",
        "columns": {"age": {"role": "quasi-identifier", "hierarchy": "suppress"}, "name": "identifier"},
        "require": [{"model": "k-anonymity", "k": 5}],
        "method": {"name": "optimal-lattice", "suppression": "5%"},
    }
    for name in ("spark", "duckdb"):
        mw.anonymize(tmp_path / "people.csv", policy, tmp_path / name, engine=name)
        with (tmp_path / name / "public/data.csv").open(encoding="utf-8", newline="") as file:
            assert sorted(csv.reader(file)) == sorted([["age"], *[["20"]] * 30, *[[""]] * 12])


def test_partitions_are_found_at_an_address(engine: Engine, tmp_path: Path) -> None:
    for year in (2024, 2025):
        part = tmp_path / "people" / f"year={year}"
        part.mkdir(parents=True)
        parquet.write_table(pa.table({"a": [1, year]}), part / "part-0.parquet")
    found = rows(engine, f"file://{tmp_path}/people")
    assert found == Counter(
        (("a", a), ("year", y)) for a, y in (("1", "2024"), ("2024", "2024"), ("1", "2025"), ("2025", "2025"))
    )


def test_nothing_is_published_of_a_folder_of_different_files(spark: SparkSession, tmp_path: Path) -> None:
    people = patients(40)
    source = tmp_path / "people.csv"
    source.mkdir()
    write_csv(source / "a.csv", people[:20])
    swapped = ["disease", *HEADER[1:4], "name", "ward"]
    write_csv(source / "b.csv", [[row[4], *row[1:4], row[0], row[5]] for row in people[20:]], swapped)
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    with pytest.raises(InputError, match=r"b\.csv: column 1"):
        mw.anonymize(source, tmp_path / "policy.yaml", tmp_path / "out", engine="spark")
    assert {p.name for p in tmp_path.iterdir()} == {"people.csv", "policy.yaml"}


PARTS: dict[str, tuple[pa.Table, str]] = {
    "fewer": (pa.table({"a": [3]}), r"column 'b' is in 'part-0\.parquet' and not in 'part-1\.parquet'"),
    "more": (
        pa.table({"a": [3], "b": ["z"], "c": [1]}), r"'c' is in 'part-1\.parquet' and not in 'part-0\.parquet'"
    ),
    "type": (pa.table({"a": ["03"], "b": ["z"]}), "column 'a' is of different types in 'part-0.*part-1"),
    "width": (pa.table({"a": pa.array([3], pa.int32()), "b": ["z"]}), "column 'a' is of different types"),
}  # fmt: skip


@pytest.mark.parametrize("place", cases(PLACES, brief=["remote"]))
@pytest.mark.parametrize("difference", cases(PARTS, brief=["type"]))
def test_parquet_files_that_differ_are_not_one_table(
    difference: str, place: str, engine: Engine, tmp_path: Path
) -> None:
    source = tmp_path / "a [b] %20"
    source.mkdir()
    other, why = PARTS[difference]
    parquet.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), source / "part-0.parquet")
    parquet.write_table(other, source / "part-1.parquet")
    address = source if place == "here" else f"file://{source.parent}/a*"
    with pytest.raises(InputError, match=why):
        engine.open(address, Reading())


def test_parquet_files_that_agree_are_one_table(engine: Engine, tmp_path: Path) -> None:
    """In whichever order their columns are, and whether values may be missing or not; as DuckDB reads them."""
    schema = pa.schema([pa.field("b", pa.string(), nullable=False), pa.field("a", pa.int64())])
    parquet.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "part-0.parquet")
    parquet.write_table(pa.table({"b": ["z"], "a": [3]}, schema), tmp_path / "part-1.parquet")
    (tmp_path / "_SUCCESS").touch()
    duck = open_engine("duckdb")
    assert rows(engine, tmp_path) == rows(duck, tmp_path)
    duck.close()


def test_a_folder_in_the_folder_is_refused(engine: Engine, tmp_path: Path) -> None:
    """Its files would be left out."""
    parquet.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "part-0.parquet")
    (tmp_path / "year=2020").mkdir()
    with pytest.raises(InputError, match=r"'year=2020' in it is a folder; .* give the address, file:///"):
        engine.open(tmp_path, Reading())


# --- texts --------------------------------------------------------------------------------------------

LATE = b"n,s\n" + b"Jose,x\n" * 200_000  # more than is looked at to find out the layout
WRONG = {
    "é": (LATE + b"Jos\xe9,y\nJos\xe8,y\n", "utf-8", "line 200002 is not valid utf-8"),
    "half": (LATE + b"y,Jos\xc3", "utf-8", "line 200002 is not valid utf-8"),
    "NUL": (LATE + b"J\0os,y\n", "utf-8", "line 200002 holds a NUL byte"),
    "cp1252": (LATE + b"Jos\x81,y\nJos\x8d,y\n", "cp1252", "line 200002 is not valid cp1252"),
}


@pytest.mark.parametrize("why", cases(WRONG, brief=["é"]))
def test_bytes_that_are_no_text_are_refused(why: str, engine: Engine, tmp_path: Path) -> None:
    """In whichever file, and wherever in it: Spark would read them all as the same character. As DuckDB does."""
    content, encoding, message = WRONG[why]
    source = folder(tmp_path, a=b"n,s\nAda,x\n", b=content)
    with pytest.raises(InputError, match=rf"b\.csv: {message}"):
        engine.open(source, Reading(encoding=encoding))
    duck = open_engine("duckdb")
    with pytest.raises(InputError, match=rf"b\.csv: {message}"):
        duck.open(source / "b.csv", Reading(encoding=encoding))
    duck.close()


@pytest.mark.parametrize("why", cases(WRONG, brief=["NUL"]))
def test_bytes_that_are_no_text_are_refused_from_afar(why: str, engine: Engine, tmp_path: Path) -> None:
    content, encoding, _ = WRONG[why]
    source = folder(tmp_path, a=b"n,s\nAda,x\n", b=content[:4] + content[len(LATE) :])
    holds = {"NUL": "'n' holds a NUL", "half": "'s' holds bytes that"}.get(why, "'n' holds bytes that")
    with pytest.raises(InputError, match=f"people.csv: column {holds}"):
        engine.open(f"file://{source}", Reading(encoding=encoding))


@pytest.mark.parametrize(
    "encoding",
    cases(
        ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"],
        brief=["utf-8-sig", "utf-16-be"],
    ),
)
def test_texts_of_every_encoding_are_read_as_they_are(encoding: str, engine: Engine, tmp_path: Path) -> None:
    """The character for what is no text is one, too, where a file can hold it."""
    odd = "\ufffd" if encoding.startswith("utf") else "¿"
    text = f"n,s\nJosé,{odd}\nJosè,ß\n"
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    found = rows(engine, tmp_path / "a.csv", Reading(encoding=encoding))
    assert found == Counter([(("n", "José"), ("s", odd)), (("n", "Josè"), ("s", "ß"))])
    if encoding in (
        "utf-16-le",
        "utf-16-be",
    ):  # no mark: which order it is was said, or is that of this machine
        native = open_engine("duckdb")
        try:
            expected = rows(native, tmp_path / "a.csv", Reading(encoding="utf-16"))
        except InputError as problem:
            with pytest.raises(InputError, match=str(problem).rpartition(":")[2][:20]):
                engine.open(tmp_path / "a.csv", Reading(encoding="utf-16"))
        else:
            assert rows(engine, tmp_path / "a.csv", Reading(encoding="utf-16")) == expected
        native.close()


def test_an_encoding_that_only_python_knows_is_refused(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"n,s\nAda,x\n")
    with pytest.raises(InputError, match="Spark does not know the encoding"):
        engine.open(tmp_path / "a.csv", Reading(encoding="mac-roman"))


def test_a_parquet_file_with_bytes_that_are_no_text_is_refused(engine: Engine, tmp_path: Path) -> None:
    names = pa.array([b"Jos\xe9", b"Jos\xe8"])
    texts = pa.Array.from_buffers(pa.string(), 2, names.buffers())
    parquet.write_table(pa.table({"n": texts, "s": ["x", "y"]}), tmp_path / "a.parquet")
    table = engine.open(tmp_path / "a.parquet", Reading())
    with pytest.raises(InputError, match=r"a\.parquet: column 'n' holds text that is not UTF-8"):
        engine.domain(table, "n")


def test_a_published_table_is_read_with_its_blanks(engine: Engine, tmp_path: Path) -> None:
    """As `verify` reads it with DuckDB: blanks that somebody put there are seen."""
    texts = ["flu", " flu", "flu ", "", "\u00a0", None]
    parquet.write_table(pa.table({"a": texts, "b": ["x"] * 6}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f"{t or ''},x\n" for t in texts), encoding="utf-8")
    duck = open_engine("duckdb")
    for file in ("a.parquet", "a.csv"):
        found = [e.domain(e.open(tmp_path / file, Reading(trim=False)), "a") for e in (duck, engine)]
        assert found[0] == found[1] and set(found[1].values) == {"flu", " flu", "flu ", "\u00a0"}
        assert engine.domain(engine.open(tmp_path / file, Reading()), "a").values == ("flu",)
    duck.close()


def test_blanks_that_were_published_are_found(
    spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    from maskwright.engines.spark import published_rows

    write = published_rows.write_parquet

    def blank(frame: Any, names: Any, path: Path) -> None:
        place = f"c{list(names).index('disease')}"
        write(frame.withColumn(place, F.concat(F.col(place), F.lit(" "))), names, path)

    monkeypatch.setattr(published_rows, "write_parquet", blank)
    with pytest.raises(NotVerified):
        mw.anonymize(source, POLICIES["mondrian"], tmp_path / "out", engine="spark")
    assert list(tmp_path.iterdir()) == []
