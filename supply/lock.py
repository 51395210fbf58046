"""Lock the versions that Maskwright is developed with: `make lock` writes requirements-dev.txt, with hashes.

From it come the versions for users, constraints.txt: those of the lock that an installation with extras needs;
`python -m supply.lock --constraints` makes it anew and leaves the lock alone. Both are for every platform and every
Python from 3.11 on. uv does the work, and is installed for it where there is none.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.txt"
CONSTRAINTS = ROOT / "constraints.txt"
EXTRAS = ("frames", "predict", "redact", "files", "postgres", "spark")
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


CONSTRAINTS_HEADER = """\
# The versions that Maskwright was tested with, of everything that it needs at run time, extras included:
#   pip install maskwright -c constraints.txt
# Made by `make lock` from requirements-dev.txt.
"""


def compiled(uv: str, *options: str) -> str:
    """What uv resolves pyproject.toml to."""
    command = [uv, "pip", "compile", "--universal", "--python-version", "3.11", "--no-header", "--no-emit-index-url",
               "--quiet", *options, "pyproject.toml"]  # fmt: skip
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tool = uv(Path(folder))
        if "--constraints" not in sys.argv[1:]:
            made = compiled(tool, "--generate-hashes", "--extra", "dev", *sys.argv[1:])
            LOCK.write_text(HEADER + made, encoding="utf-8")
            print(f"wrote {LOCK.relative_to(ROOT)}: {made.count('==')} packages")
        extras = [word for extra in EXTRAS for word in ("--extra", extra)]
        made = compiled(tool, *extras, "--no-annotate", "--constraint", LOCK.name)
    CONSTRAINTS.write_text(CONSTRAINTS_HEADER + made, encoding="utf-8")
    print(f"wrote {CONSTRAINTS.relative_to(ROOT)}: {made.count('==')} packages")


if __name__ == "__main__":
    main()
