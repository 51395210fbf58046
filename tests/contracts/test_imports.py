"""What a module must not import, not even through others."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "unwanted"), [("maskwright.pipeline.job", "maskwright.report"), ("maskwright.api", "pyspark")]
)
def test_what_is_not_needed_is_not_imported(module: str, unwanted: str) -> None:
    code = f"import sys, {module}; print([name for name in sys.modules if name.startswith({unwanted!r})])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"
