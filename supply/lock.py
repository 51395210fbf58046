"""Lock the versions that Maskwright is developed with: `make lock` writes requirements-dev.txt, with hashes.

One file for every platform and every Python from 3.11 on. uv does the work, and is installed for it where there
is none.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.txt"
HEADER = """\
# The versions that Maskwright is developed and tested with, each with the hashes of its files.
# Made by `make lock`; installed by `make setup`. The least versions are in pyproject.toml (`make test-minimum`).
"""


def uv(folder: Path) -> str:
    found = shutil.which("uv")
    if found is None:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", "uv"], check=True)
        found = str(folder / "bin" / "uv")
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(
            [uv(Path(folder)), "pip", "compile", "--universal", "--python-version", "3.11", "--generate-hashes",
             "--extra", "dev", "--no-header", "--no-emit-index-url", "--quiet", *sys.argv[1:], "pyproject.toml"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    LOCK.write_text(HEADER + made, encoding="utf-8")
    print(f"wrote {LOCK.relative_to(ROOT)}: {made.count('==')} packages")


if __name__ == "__main__":
    main()
