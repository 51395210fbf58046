"""The engine itself: settings, no network, nothing left behind, no dataframe library needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from maskwright.engines import ENGINES, open_engine
from maskwright.engines.base import Reading
from maskwright.engines.duckdb.engine import DuckDBEngine
from maskwright.errors import UsageError
from tests.engines.conftest import plan


def test_registry() -> None:
    assert "duckdb" in ENGINES
    with pytest.raises(UsageError, match="there is no engine 'duckbd'; did you mean 'duckdb'"):
        open_engine("duckbd")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": "lots"}, "memory 'lots' is not an amount"),
        ({"threads": 0}, "does not start with memory None and threads 0"),
        ({"memory": "-1GB"}, "memory '-1GB' is not an amount"),
    ],
)
def test_bad_settings(options: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        open_engine(temp=tmp_path, **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_settings_reach_the_database_and_are_locked(tmp_path: Path) -> None:
    engine = open_engine(memory="300MB", temp=tmp_path, threads=1)
    assert isinstance(engine, DuckDBEngine)
    names = ("memory_limit", "threads", "autoinstall_known_extensions", "autoload_known_extensions",
             "lock_configuration", "enable_progress_bar_print", "python_enable_replacements",
             "temp_directory")  # fmt: skip
    value = {n: engine._db.con.execute("SELECT current_setting($1)", [n]).fetchall()[0][0] for n in names}
    assert value["memory_limit"] == "286.1 MiB"
    assert value["threads"] == 1
    assert value["lock_configuration"] is True
    assert not any(value[n] for n in names[2:4] + names[5:7])
    assert Path(value["temp_directory"]).is_relative_to(tmp_path)
    engine.close()


def test_the_temporary_folder_is_private_and_goes(tmp_path: Path) -> None:
    engine = open_engine(temp=tmp_path)
    [folder] = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    path = tmp_path / "t.csv"
    path.write_text("a,b\nä,1\n", encoding="cp1252")
    engine.open(path, Reading(encoding="cp1252"))
    assert not [p for p in folder.rglob("*") if p.is_file()]
    path.unlink()
    engine.close()
    assert list(tmp_path.iterdir()) == []


def test_a_table_larger_than_memory_spills_and_works(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    with path.open("w") as file:
        file.write("a,b\n")
        file.writelines(
            f"value number {i} of many that are long enough to matter,{i % 7}\n" for i in range(700_000)
        )
    engine = open_engine(memory="70MB", temp=tmp_path, threads=1)
    table = engine.open(path, Reading())
    made = engine.recode(table, plan(["a", "b"], {}))
    engine.write(made, tmp_path / "out.parquet", "parquet")
    back = engine.open(tmp_path / "out.parquet", Reading())
    assert engine.count(back) == 700_000
    assert engine.recount(back, ["b"]).rows.tolist() == [100_000] * 7
    engine.close()
    assert {p.name for p in tmp_path.iterdir()} == {"t.csv", "out.parquet"}


def test_too_little_memory_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    with path.open("w") as file:
        file.write("a,b\n")
        file.writelines(f"{i},{'x' * 50}{i}\n" for i in range(400_000))
    engine = open_engine(memory="8MB", temp=tmp_path, threads=1)
    with pytest.raises(UsageError, match="not enough memory"):
        engine.recode(engine.open(path, Reading()), plan(["a", "b"], {}))
    engine.close()


WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pandas", "polars", "pyarrow"):
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Blocked())
from pathlib import Path
import numpy as np
import maskwright.engines
assert not {"duckdb", "sqlglot"} & set(sys.modules), "imported before an engine is opened"
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.recoding_plan import ColumnMap, Plan
from maskwright.engines.base import Reading, SensitiveSpec, SummarySpec
folder = Path(sys.argv[1])
(folder / "t.csv").write_text("a,s,who\\nx,1,p\\ny,2,p\\nx,,q\\n,1,r\\n")
engine = maskwright.engines.open_engine(temp=folder)
table = engine.open(folder / "t.csv", Reading())
values = engine.domain(table, "a").values
hierarchy = Hierarchy.of("a", values, [])
for unit in (None, "who"):
    summary = engine.summarise(table, SummarySpec([hierarchy], [SensitiveSpec("s", ("1", "2"))], unit))
    assert summary.n_rows == 4
empty = Hierarchy.of("s", ("1", "2"), [])
codes = np.array([[2], [2]], dtype=np.int32)
texts = (None, *values)
maps = [ColumnMap(hierarchy, texts, True), ColumnMap(empty, ("*", "*", "*"), False)]
published = engine.recode(table, Plan(["a", "s"], maps, codes, True, (), "ab"))
for kind in ("csv", "parquet"):
    engine.write(published, folder / ("out." + kind), kind)
    back = engine.open(folder / ("out." + kind), Reading())
    assert engine.recount(back, ["a"], ["s"]).rows.tolist() == [1, 2, 1], kind
    engine.fingerprint(back), engine.uniqueness(back, ["a"]), engine.sample(back, 2), engine.count(back)
assert len(engine.hand_over(published).fetchall()) == 4
engine.close()
print("fine")
"""


def test_files_need_no_dataframe_library(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr
