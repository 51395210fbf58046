"""CSV and Parquet files: what is read, and what is refused, with the line and the remedy."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from maskwright.engines.base import Engine, Reading
from maskwright.errors import InputError, UsageError
from tests.engines.conftest import flat, plan
from tests.support import needs

Write = Callable[..., Path]


def rows(engine: Engine, path: Path, **reading: object) -> list[dict[str, str | None]]:
    return engine.sample(engine.open(path, Reading(**reading)), 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(engine: Engine, file: Write, delimiter: str) -> None:
    path = file(f"zip{delimiter}name\n007{delimiter}Ann\n0010{delimiter}\n")
    assert rows(engine, path) == [{"zip": "007", "name": "Ann"}, {"zip": "0010", "name": None}]


def test_decimal_commas_do_not_mislead(engine: Engine, file: Write) -> None:
    path = file("a;b\n1,5;2,5\n3,5;4,5\n")
    assert rows(engine, path)[0] == {"a": "1,5", "b": "2,5"}


def test_quotes_line_ends_and_blanks(engine: Engine, file: Write) -> None:
    path = file('a,b\r\n"x, ""y""\nz", 1 \r\n"","  "\r\n')
    assert rows(engine, path) == [{"a": 'x, "y"\nz', "b": "1"}, {"a": None, "b": None}]


def test_a_stray_quote_stays(engine: Engine, file: Write) -> None:
    assert rows(engine, file('size,b\n5" pipe,1\n'))[0]["size"] == '5" pipe'


def test_other_quote_and_none(engine: Engine, file: Write) -> None:
    path = file("a,b\n'x,y',1\n")
    assert rows(engine, path, quote="'") == [{"a": "x,y", "b": "1"}]
    assert rows(engine, file('a,b\n"x,1\n'), quote="") == [{"a": '"x', "b": "1"}]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_encodings_are_found(engine: Engine, file: Write, encoding: str) -> None:
    path = file("größe,b\nÄÖ,€\n", encoding=encoding)
    assert rows(engine, path) == [{"größe": "ÄÖ", "b": "€"}]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "mac-roman", "shift_jis"])
def test_other_encodings_are_named(engine: Engine, file: Write, encoding: str) -> None:
    word = "日本" if encoding == "shift_jis" else "Zürich"
    path = file(f"a,b\n{word},2\n", encoding=encoding)
    assert rows(engine, path, encoding=encoding) == [{"a": word, "b": "2"}]
    with pytest.raises(InputError, match=r"line 2 is not valid utf-8; name the encoding.*encoding: cp1252"):
        engine.open(path, Reading())


def test_wrong_encoding_far_down_names_the_line(engine: Engine, file: Write) -> None:
    path = file(b"a,b\n" + b"1,2\n" * 600_000 + b"\xe9,2\n" + b"1,2\n" * 10)
    with pytest.raises(InputError, match="line 600002 is not valid utf-8"):
        engine.open(path, Reading())
    bad = file("a,b\n1,2\n".encode("utf-16") + b"\x00\xd8\x31\x00", "bad.csv")
    with pytest.raises(InputError, match="line 3 is not valid utf-16"):
        engine.open(bad, Reading())


def test_gzip(engine: Engine, file: Write) -> None:
    packed = gzip.compress("a;b\n1;é\n".encode())
    assert rows(engine, file(packed, "t.csv.gz")) == [{"a": "1", "b": "é"}]
    with pytest.raises(InputError, match="cannot be read"):
        engine.open(file(packed[:-12], "cut.csv.gz"), Reading())


def test_no_header(engine: Engine, file: Write) -> None:
    assert rows(engine, file("1,2\n3,4\n"), header=False) == [
        {"column1": "1", "column2": "2"},
        {"column1": "3", "column2": "4"},
    ]


def test_one_column_keeps_its_missing_values(engine: Engine, file: Write) -> None:
    assert [r["a"] for r in rows(engine, file("a\n1\n\n2\n"))] == ["1", None, "2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("   \n \n", "nothing but blanks"),
        ("\na,b\n1,2\n", "line 1 is empty"),
        ("a,b\n", "column names but no rows"),
        ("a,b\n1,2\nsecret-name\n", r"line 3 has only 1 fields of the 2 of the header \(delimiter ','\)"),
        ("a,b\n1,2\nsecret-name,4,5\n", "line 3 has more fields than the 2 of the header"),
        ('a,b\n"x\n\ny",2\nsecret-name\n', "line 5 has only 1 fields"),
        ("a,b\n\n\n1,2\nsecret-name\n", "line 5 has only 1 fields"),
        ('a,b\n1,2\n"secret-name,3\n4,5\n', "line 3 cannot be read as CSV: a quoted value"),
        ('a,b\n1,2\n"secret"-name,3\n', "line 3 cannot be read as CSV: a quoted value"),
        ("a,b\n1,2\nsecret-name,4\r\n5,6\n", r"line 3 ends differently"),
        ("a,a\n1,2\n", "column 'a' occurs twice"),
        ("Age,age\n1,2\n", "column 'age' occurs beside 'Age': names must differ in more than case"),
        ("a,,c\n1,2,3\n", "column 2 has no name"),
        (b"a,b\n1,2\nsecret-name,\x00\n", "line 3 holds a NUL byte"),
        (b"a,b\n1,2\nsecret-name,\xff\n", "line 3 is not valid utf-8"),
    ],
)
def test_refused(engine: Engine, file: Write, content: str | bytes, message: str) -> None:
    path = file(content)
    with pytest.raises(InputError, match=message) as caught:
        engine.open(path, Reading())
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value).replace(str(path), "") + caught.value.details
    assert caught.value.__cause__ is None
    assert "secret" not in str(caught.value.__context__)


@pytest.mark.parametrize("line", [1_999, 700_001])
def test_ragged_far_down(engine: Engine, file: Write, line: int) -> None:
    lines = ["a,b,c"] + ["12,34,56"] * 700_010
    lines[line - 1] = "12,34"
    with pytest.raises(InputError, match=f"line {line} has only 2 fields of the 3 of the header"):
        engine.open(file("\n".join(lines)), Reading())


def test_ragged_is_not_padded_or_skipped_anywhere(engine: Engine, file: Write) -> None:
    for position in range(1, 6):
        for broken in ("1", "1,2,3", '1,2,"3"', ",,", "1,2,", '1,2,""'):
            lines = ["a,b"] + ["1,2"] * 5
            lines[position] = broken
            with pytest.raises(InputError, match=f"line {position + 1} has"):
                engine.open(file("\n".join(lines) + "\n"), Reading())


def test_a_value_longer_than_a_line_may_be(engine: Engine, file: Write) -> None:
    with pytest.raises(InputError, match="line 2 is longer than 2 MB"):
        engine.open(file("a,b\n1," + "z" * 3_000_000 + "\n"), Reading())


def test_paths_that_are_none(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        engine.open(tmp_path / "none.csv", Reading())
    with pytest.raises(InputError, match="this is a folder"):
        engine.open(tmp_path, Reading())
    with pytest.raises(InputError, match="hand in a path or"):
        engine.open(42, Reading())
    with pytest.raises(InputError, match=r"no such file|embedded null"):
        engine.open("a\0b", Reading())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(engine: Engine, file: Write) -> None:  # pragma: no cover
    path = file("a,b\n1,2\n")
    path.chmod(0)
    with pytest.raises(InputError, match="no permission"):
        engine.open(path, Reading())


def test_bad_settings(engine: Engine, file: Write) -> None:
    path = file("a,b\n1,2\n")
    with pytest.raises(InputError, match="there is no encoding 'utf-99'"):
        engine.open(path, Reading(encoding="utf-99"))
    with pytest.raises(InputError, match="delimiter must be one character"):
        engine.open(path, Reading(delimiter="||"))


def test_names_that_look_like_patterns(engine: Engine, file: Write) -> None:
    file("a,b\nwrong,2\n", "t1.csv")
    assert rows(engine, file("a,b\nright,2\n", "t[1].csv"))[0]["a"] == "right"
    assert rows(engine, file("a,b\nright,2\n", "t*.csv"))[0]["a"] == "right"
    assert len(rows(engine, file("a,b\nright,2\n", "x=1 '; drop --.csv"))) == 1


HOSTILE = [
    'say "hi"',
    "a;b",
    "new\nline",
    '"; DROP TABLE source_1; --',
    "rowid",
    "c1",
    "t",
    "raw",
    "select",
    "日本",
    "r",
]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_hostile_column_names(engine: Engine, tmp_path: Path, kind: str) -> None:
    header = ",".join('"' + name.replace('"', '""') + '"' for name in HOSTILE)
    path = tmp_path / "hostile.csv"
    path.write_text(header + "\n" + "\n".join(",".join(f"v{r}" for _ in HOSTILE) for r in range(4)) + "\n")
    table = engine.open(path, Reading())
    hierarchies = {name: (flat(name, ["v0", "v1", "v2", "v3"]), i % 2) for i, name in enumerate(HOSTILE[:-1])}
    published = engine.recode(table, plan(HOSTILE, hierarchies))
    out = tmp_path / f"out.{kind}"
    engine.write(published, out, kind, "allow")  # a spreadsheet might run the name that begins with DROP
    back = engine.open(out, Reading())
    assert tuple(c.name for c in back.columns) == tuple(HOSTILE)
    assert sorted(r["r"] or "" for r in engine.sample(back, 9)) == ["v0", "v1", "v2", "v3"]
    assert {r["a;b"] for r in engine.sample(back, 9)} == {"*"}
    found = engine.recount(back, HOSTILE[:2], [HOSTILE[3]])
    assert found.rows.tolist() == [1, 1, 1, 1]


# --- parquet ------------------------------------------------------------------------------------------


def test_parquet_keeps_types(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    duckdb.sql("SELECT 1::BIGINT a, 'x' b, 1.5::DOUBLE c, DATE '2024-01-31' d, true e, "
               "TIMESTAMP '2024-01-31 12:00:00' f, [1,2] g, 2.50::DECIMAL(9,2) h, "
               "'u'::ENUM('u','v') i").write_parquet(str(path))  # fmt: skip
    table = engine.open(path, Reading())
    kinds = ["integer", "text", "number", "date", "boolean", "timestamp", "other", "number", "text"]
    assert [c.kind for c in table.columns] == kinds
    assert list(engine.sample(table, 1)[0].values()) == [
        "1", "x", "1.5", "2024-01-31", "true", "2024-01-31 12:00:00", "[1, 2]", "2.5", "u",
    ]  # fmt: skip


def test_parquet_refused(engine: Engine, file: Write, tmp_path: Path) -> None:
    good = tmp_path / "good.parquet"
    duckdb.sql("SELECT 1 a, 2 b").write_parquet(str(good))
    content = good.read_bytes()
    with pytest.raises(InputError, match="not a complete Parquet file"):
        engine.open(file("a,b\n1,2\n", "t.parquet"), Reading())
    with pytest.raises(InputError, match="not a complete Parquet file"):
        engine.open(file(content[:-20], "cut.parquet"), Reading())
    broken = content[:4] + b"\x00" * (len(content) - 12) + content[-8:]
    with pytest.raises(InputError, match="damaged"):
        engine.open(file(broken, "broken.parquet"), Reading())
    empty = tmp_path / "empty.parquet"
    duckdb.sql("SELECT 1 a WHERE false").write_parquet(str(empty))
    with pytest.raises(InputError, match="no rows"):
        engine.open(empty, Reading())


def test_parquet_with_damaged_pages(engine: Engine, file: Write, tmp_path: Path) -> None:
    good = tmp_path / "good.parquet"
    duckdb.sql("SELECT 'value' || i AS a FROM range(20000) t(i)").write_parquet(str(good), compression="zstd")
    content = bytearray(good.read_bytes())
    content[200:900] = bytes(reversed(content[200:900]))
    with pytest.raises(InputError, match="damaged"):
        table = engine.open(file(bytes(content), "pages.parquet"), Reading())
        engine.domain(table, "a")


def test_parquet_names_as_the_file_has_them(engine: Engine, tmp_path: Path) -> None:
    pa = needs("pyarrow")
    import pyarrow.parquet as pq

    for names, message in (
        (["a", "a"], "occurs twice"),
        (["Age", "age"], "more than case"),
        (["a", ""], "has no name"),
    ):
        path = tmp_path / "t.parquet"
        pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=names), path)
        with pytest.raises(InputError, match=message):
            engine.open(path, Reading())
    nested = pa.table({"s": pa.array([{"a": 1, "a2": [1]}]), "a": pa.array([2])})
    pq.write_table(nested, path)
    assert [c.name for c in engine.open(path, Reading()).columns] == ["s", "a"]


def test_a_file_that_changes_between_the_passes(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    duckdb.sql("SELECT 'x' a").write_parquet(str(path))
    table = engine.open(path, Reading())
    duckdb.sql("SELECT unnest(['x', 'y']) a").write_parquet(str(path))
    with pytest.raises(InputError, match="was changed while"):
        engine.recode(table, plan(["a"], {"a": (flat("a", ["x"]), 0)}))


def test_format_can_be_stated(engine: Engine, file: Write) -> None:
    with pytest.raises(InputError, match="Parquet"):
        engine.open(file("a,b\n1,2\n"), Reading(format="parquet"))
    table = engine.open(file("a,b\n1,2\n", "strange.parquet"), Reading(format="csv"))
    assert table.format == "csv"


def test_unknown_format_to_write(engine: Engine, file: Write, tmp_path: Path) -> None:
    table = engine.open(file("a,b\n1,2\n"), Reading())
    with pytest.raises(UsageError, match="no format 'xlsx'"):
        engine.write(engine.recode(table, plan(["a"], {})), tmp_path / "x", "xlsx")


def parts(folder: Path, *ranges: range) -> Path:
    """A table in several Parquet files, as Spark writes it."""
    folder.mkdir()
    for i, numbers in enumerate(ranges):
        target = str(folder / f"part-{i:05}.parquet")
        numbered = duckdb.sql("SELECT range AS n FROM range(?, ?)", params=[numbers.start, numbers.stop])
        numbered.write_parquet(target)
    (folder / "_SUCCESS").touch()
    return folder


def test_a_folder_of_parquet_files_is_one_table(engine: Engine, tmp_path: Path) -> None:
    folder = parts(tmp_path / "numbers [1]", range(2), range(10, 13))
    table = engine.open(folder, Reading())
    assert [row["n"] for row in engine.sample(table, 9)] == ["0", "1", "10", "11", "12"]
    hierarchy = flat("n", ["0", "1", "10", "11", "12"])
    recoded = engine.recode(table, plan(["n"], {"n": (hierarchy, 0)}))
    assert sorted(row["n"] or "" for row in engine.sample(recoded, 9)) == ["0", "1", "10", "11", "12"]
    [codes] = engine.in_order(table, ["n"], [hierarchy.values], 9)
    assert codes.tolist() == [1, 2, 3, 4, 5]
    duckdb.sql("SELECT 7 AS n").write_parquet(str(folder / "part-00002.parquet"))
    with pytest.raises(InputError, match="changed while it was being read"):
        engine.recode(table, plan(["n"], {"n": (hierarchy, 0)}))


def test_a_folder_with_a_damaged_or_foreign_file_is_refused(engine: Engine, tmp_path: Path) -> None:
    folder = parts(tmp_path / "numbers", range(2), range(3))
    (folder / "part-00001.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match=r"part-00001.parquet: this is not a complete Parquet file"):
        engine.open(folder, Reading())
    (folder / "notes.txt").touch()
    with pytest.raises(InputError, match="this is a folder"):
        engine.open(folder, Reading())


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("inside", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("header", [True, False])
def test_a_quoted_line_end_in_the_first_line(
    engine: Engine, file: Callable[..., Path], end: str, inside: str, header: bool
) -> None:
    """The database would take it for the end of the lines and skip the whole table as a header."""
    path = file(end.join([f'a,"x{inside}y"', "1,2", f'3,"4{inside}5"', "6,7", ""]))
    if end != "\n" and inside != end:
        with pytest.raises(InputError, match="line 1 holds a quoted line end"):
            engine.open(path, Reading(header=header))
        return
    table = engine.open(path, Reading(header=header))
    assert engine.count(table) == (3 if header else 4)
    if header:
        assert [c.name for c in table.columns] == ["a", f"x{inside}y"]
    assert f"4{inside}5" in engine.domain(table, table.columns[1].name).values
