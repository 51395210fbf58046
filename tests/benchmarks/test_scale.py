"""The benchmark of scale, on a small table: it runs to its end, within its memory, with every recoding."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.bench_scale import CASES, make
from tests.amounts import amount, cases

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "option", cases(["", "--pass-through", "--format=csv", "--few"], brief=["--pass-through"])
)
def test_it_prints_the_ratios_and_stays_within_its_memory(option: str) -> None:
    command = [sys.executable, "benchmarks/bench_scale.py", "--rows", "60000", "--times", str(amount(1, 5))]
    command += [option] if option else []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = re.findall(
        r"^  (\S+): pipeline .* = (\S+) x the copy.*; (\d+) MiB \(limit 4096 MiB: met\); ([\d,]+) cells$",
        done.stdout,
        re.M,
    )
    assert [case for case, *_ in lines] == list(CASES)
    for _, ratio, megabytes, cells in lines:
        assert float(ratio) > 0
        assert int(megabytes) < 450
        least, most = (10_000, 20_000) if option == "--few" else (40_000, 60_000)
        assert least < int(cells.replace(",", "")) <= most
    assert len(re.findall(r"^seconds for a million rows", done.stdout, re.M)) == 1 + len(CASES)


def test_the_table_is_the_same_in_every_run(tmp_path: Path) -> None:
    import duckdb

    for name, fine in (("one", False), ("two", False), ("fine", True)):
        make(5000, tmp_path / f"{name}.parquet", fine)
    read = {name: f"(SELECT * FROM '{tmp_path}/{name}.parquet')" for name in ("one", "two", "fine")}  # noqa: S608
    differ = duckdb.sql(f"SELECT count(*) FROM ({read['one']} EXCEPT ALL {read['two']})").fetchall()  # noqa: S608
    assert differ == [(0,)]
    cells = {
        name: duckdb.sql(
            f"SELECT count(*) FROM (SELECT DISTINCT sex, race, marital, education FROM {source})"  # noqa: S608
        ).fetchall()[0][0]
        for name, source in read.items()
    }
    assert cells["one"] < cells["fine"]
