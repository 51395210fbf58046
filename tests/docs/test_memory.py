"""docs/memory.md: its example is run, and says what the page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from maskwright.cli.commands import main

PAGE = (Path(__file__).parents[2] / "docs" / "memory.md").read_text(encoding="utf-8")
RUN = """
import json, sys
import maskwright as mw
release = mw.anonymize(*sys.argv[1:4], memory="350MB")
# not ru_maxrss, which counts what the parent held when this process began
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
print(json.dumps({"peak": peak, "cells": release.grouping.summary.n_cells}))
"""


def block(kind: str, number: int = 0) -> str:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.DOTALL)[number]


def figures(text: str) -> list[float]:
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,.]*\d|\d", text)]


def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, policy = tmp_path / "people.parquet", tmp_path / "policy.yaml"
    with duckdb.connect() as con:
        con.execute(f"COPY ({block('sql')}) TO '{source}'")
    policy.write_text(block("yaml"))
    command = re.search(r"`maskwright (anonymize [^`]*)` says", PAGE)
    assert command is not None
    names = {"people.parquet": str(source), "policy.yaml": str(policy), "release": str(tmp_path / "release")}
    assert main([names.get(word, word) for word in command[1].split()]) == 2
    said, expected = capsys.readouterr().err.splitlines()[-1], " ".join(block("text").split())
    assert re.sub(r"[\d,.]+", "#", said) == re.sub(r"[\d,.]+", "#", expected)
    assert figures(said) == pytest.approx(
        figures(expected), rel=0.05
    )  # the hashes differ between versions of DuckDB

    [old, new] = [next(x for x in block("yaml", i).splitlines() if "age:" in x) for i in (0, 1)]
    policy.write_text(block("yaml").replace(old, new))
    run = [sys.executable, "-c", RUN, str(source), str(policy), str(tmp_path / "release")]
    found = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    left = re.search(r"In the example ([\d,]+) combinations are left", PAGE)
    assert left is not None
    assert found["cells"] == int(left[1].replace(",", ""))
    assert found["peak"] < 350 * 10**6
