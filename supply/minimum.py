"""The least versions that pyproject.toml allows, installed and tested: `make test-minimum`.

Direct dependencies are at their lower bounds; what those need besides is as new as they allow.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
EXTRAS = ("frames", "predict", "files", "postgres")
TOOLS = ("pytest", "hypothesis", "httpx", "nanoarrow", "openpyxl", "scipy")
# what depends on the libraries: reading, summarising, recoding, writing, handing back, the page of the workbench
TESTS = (
    "tests/engines", "tests/kernels/test_randomness.py", "tests/pipeline/test_recodings.py",
    "tests/cli/test_commands.py", "tests/report/test_nothing_private.py", "tests/leaks/test_containers.py",
    "tests/workbench/test_parts.py",
)  # fmt: skip


def least() -> list[str]:
    """`name==lower bound` for everything that users install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(r for e in EXTRAS for r in project["optional-dependencies"][e])]
    return [pinned(Requirement(text)) for text in wanted]


def pinned(requirement: Requirement) -> str:
    bounds = [s.version for s in requirement.specifier if s.operator == ">="]
    if len(bounds) != 1:
        raise ValueError(f"{requirement} has no lower bound")
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}=={bounds[0]}"


def main() -> int:
    folder = ROOT / "build" / "minimum"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    pins = least()
    print("least versions:", " ".join(pins), flush=True)
    subprocess.run([*pip, *pins, *TOOLS], check=True)
    subprocess.run([*pip, "--no-deps", "--force-reinstall", ROOT], check=True)
    tests = sys.argv[1:] or list(TESTS)
    return subprocess.run(
        [python, "-m", "pytest", "-m", "not long and not alone", *tests], cwd=ROOT
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
