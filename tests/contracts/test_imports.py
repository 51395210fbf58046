"""What a module must not import, not even through others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import maskwright


@pytest.mark.parametrize(
    ("module", "unwanted"), [("maskwright.pipeline.job", "maskwright.report"), ("maskwright.api", "pyspark")]
)
def test_what_is_not_needed_is_not_imported(module: str, unwanted: str) -> None:
    code = f"import sys, {module}; print([name for name in sys.modules if name.startswith({unwanted!r})])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_a_run_of_files_imports_no_frames_and_nothing_of_spark(
    table: Path, policy: Path, tmp_path: Path
) -> None:
    """Frames are asked for by those who hand one over: they take longer to import than a small release to be made."""
    code = (
        "import sys; from maskwright.cli import main; code = main(sys.argv[1:]); "
        "unwanted = ('pandas', 'polars', 'pyarrow', 'pyspark', 'py4j', 'maskwright.engines.spark'); "
        "print([name for name in unwanted if name in sys.modules]); sys.exit(code)"
    )
    arguments = ["anonymize", table, "-p", policy, "-o", tmp_path / "out"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_target_is_made_of_a_part_or_of_a_table_of_unknown_origin() -> None:
    """Fields that one place fills and another forgets are a wrong answer that nobody notices."""
    source = Path(maskwright.__path__[0])
    made = {
        path.relative_to(source).as_posix(): len(re.findall(r"(?<!class )\bTarget\(", text))
        for path in source.rglob("*.py")
        if "Target(" in (text := path.read_text(encoding="utf-8"))
    }
    assert made == {"domain/adversary.py": 2}
