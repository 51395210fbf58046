"""Candidates: other tools' tables beside the releases of the policies, by the same figures."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

import maskwright as mw
from maskwright.cli import main
from maskwright.errors import InputError, UsageError
from tests.auditing.test_controlled import people

POLICY = """
version: 1
columns:
  age: {role: quasi-identifier, hierarchy: {intervals: [10, 20, 60]}}
  zip: {role: quasi-identifier, hierarchy: {mask: right}}
  job: {role: quasi-identifier, hierarchy: suppress}
  disease: sensitive
require:
  - {model: k-anonymity, k: 4}
"""


@pytest.fixture
def halves(tmp_path: Path) -> Path:
    source = pd.DataFrame(people(120, 1))
    shuffled = source.apply(
        lambda column: column.sample(
            frac=1, random_state=len(str(column.name)) + ord(str(column.name)[0])
        ).to_numpy()
    )
    frames = {"source": source, "control": pd.DataFrame(people(120, 2)), "copy": source, "shuffled": shuffled}
    for name, frame in frames.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "p.yaml").write_text(POLICY)
    return tmp_path


def test_candidates_stand_beside_policies(halves: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = [
        "compare",
        str(halves / "source.csv"),
        "-p",
        str(halves / "p.yaml"),
        "--grid",
        "method=optimal-lattice,mondrian",
    ]
    both = ["--candidate", str(halves / "copy.csv"), "--candidate", str(halves / "shuffled.csv")]
    control = ["--control", str(halves / "control.csv"), "--metric", "none", "-o", str(halves / "out")]
    assert main([*run, *both, *control]) == 0
    out = capsys.readouterr().out
    assert "Tables compared on people who were held out" in out
    said = {t["name"]: t for t in json.loads((halves / "out" / "comparison.json").read_text())["tables"]}
    assert set(said) == {"copy.csv", "shuffled.csv", "method=optimal-lattice", "method=mondrian"}
    assert said["copy.csv"]["pair_distance"] == pytest.approx(0)
    assert said["copy.csv"]["risks"]["membership"]["low"] > 0.5
    for name in ("shuffled.csv", "method=mondrian"):
        assert said[name]["risks"]["membership"]["risk"] < said["copy.csv"]["risks"]["membership"]["risk"]
        assert 0 < said[name]["pair_distance"] < 1
    lines = list(csv.DictReader((halves / "out" / "tables.csv").read_text().splitlines()))
    assert {line["table"] for line in lines} == set(said)
    page = (halves / "out" / "index.html").read_text()
    assert "shuffled.csv" in page
    assert "pair distance" in page
    assert main([*run, *both, *control, "--overwrite"]) == 0  # tables.csv is a file of the comparison


def test_what_is_refused(halves: Path) -> None:
    with pytest.raises(UsageError, match="--control"):
        mw.compare(halves / "source.csv", halves / "p.yaml", candidates=[halves / "copy.csv"])
    frame = pd.read_csv(halves / "copy.csv", dtype=str)
    with pytest.raises(InputError, match=r"candidate 1 has no column 'job'"):
        mw.compare(
            halves / "source.csv", halves / "p.yaml", metrics=[], candidates=[frame.drop(columns="job")],
            control=halves / "control.csv",
        )  # fmt: skip
