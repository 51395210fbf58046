"""Build the source distribution and the wheel, and install each where there is no compiler: `make dist-test`.

The wheel brings the compiled kernels. The source distribution must install without a compiler too and then uses their
plain twins: the same seeded release comes out, byte for byte. Nothing of tests, private data or of this machine may be
in either. Both name the same dependencies, so these are installed once, with the versions of constraints.txt: first
with the wheel, which then gives way to the source distribution.
"""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

from supply.lock import CONSTRAINTS

ROOT = Path(__file__).parents[1]
KERNELS = ("_chacha", "_disclosure", "_lattice", "_local", "_partition")
PIP = ("-m", "pip", "install", "-q", "--disable-pip-version-check")
ONLY = ("maskwright/", "maskwright-")  # what a wheel may hold at its top
PROBE = """
import importlib.util, sys, maskwright, pathlib
assert pathlib.Path(maskwright.__file__).is_relative_to(sys.prefix), maskwright.__file__
print([k for k in {kernels} if importlib.util.find_spec("maskwright.kernels." + k)])
"""
RELEASE = """
import maskwright as mw, pathlib, sys
rows = [[20 + i % 17, f"1{{i % 5}}", "abc"[i // 7 % 3]] for i in range(200)]
text = "age,zip,disease\\n" + "\\n".join(",".join(map(str, r)) for r in rows) + "\\n"
pathlib.Path("t.csv").write_text(text)
for name, options in [("mondrian", {{}}), ("local-recoding", {{}}), ("optimal-lattice", {{"suppression": "5%"}}),
                      ("anatomy", {{"l": 2}})]:
    roles = {{"age": "quasi-identifier", "zip": "quasi-identifier", "disease": "sensitive"}}
    policy = {{"version": 1, "columns": roles,
              "require": [{{"model": "simple-l-diversity", "l": 2}}], "method": {{"name": name, **options}}}}
    mw.anonymize("t.csv", policy, f"r-{{name}}", seed=1, keep_private="none")
"""


def run(*command: object, cwd: Path, path: str, capture: bool = False) -> str:
    environment = {"PATH": path, "HOME": str(cwd), "LANG": "C.UTF-8", "CC": "no-such-compiler"}
    environment |= {
        k: v for k, v in os.environ.items() if k.startswith(("PIP_", "SSL_", "REQUESTS_", "http", "HTTP"))
    }
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command[:4]))} failed:\n{done.stdout}")
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """The source distribution, and the wheel made from it."""
    tools = folder / "tools"
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    subprocess.run([sys.executable, "-m", "venv", tools], check=True)
    subprocess.run([tools / "bin" / "python", *PIP, "build", *needed], check=True)
    # without environments of their own: pip makes one when it installs the source distribution
    subprocess.run(
        [tools / "bin" / "python", "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    [source], [wheel] = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    return source, wheel


def folders_in(content: bytes, compiled: bool, own: Iterable[Path] = (ROOT, Path.home())) -> list[str]:
    """Folders of the builder that a file names; a compiled one may name no absolute path at all."""
    found = [
        str(here) for here in own if here != Path("/") and re.search(re.escape(f"{here}/").encode(), content)
    ]
    if compiled:  # the text table of an object file: RUNPATH, debugging symbols
        found += [text.decode() for text in re.findall(rb"(?<=\0)/[!-~]+/[ -~]+(?=\0)", content)]
    return found


def dependencies(metadata: bytes) -> list[str]:
    """What a distribution says that it needs."""
    return email.message_from_bytes(metadata).get_all("Requires-Dist", [])


def check_contents(source: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        outside = [n for n in names if not n.startswith(ONLY)]
        assert not outside, f"not ours: {outside}"
        compiled = [
            k for k in KERNELS if any(n.startswith(f"maskwright/kernels/{k}.") and ".so" in n for n in names)
        ]
        assert compiled == list(KERNELS), f"kernels in the wheel: {compiled}"
        assert "abi3" in wheel.name, "one wheel for every Python"
        strays = [n for n in names if "test" in Path(n).name.lower() or n.endswith((".pyc", ".yaml~"))]
        assert not strays, strays
        for name in names:
            found = folders_in(archive.read(name), compiled=name.endswith((".so", ".pyd", ".dylib")))
            assert not found, f"{name} names {found}"
        [metadata] = [n for n in names if n.endswith(".dist-info/METADATA")]
        described = archive.read(metadata)
    with tarfile.open(source) as tar:
        inside = [m.name.split("/", 1)[-1] for m in tar.getmembers()]
        assert not [n for n in inside if n.endswith((".so", ".pyc"))], (
            "compiled files in the source distribution"
        )
        assert {f"src/maskwright/kernels/{k}.c" for k in KERNELS} <= set(inside)
        assert any(n.endswith("_partition_cut.h") for n in inside)
        assert CONSTRAINTS.name in inside
        [there] = [m for m in tar.getmembers() if m.name.count("/") == 1 and m.name.endswith("/PKG-INFO")]
        content = tar.extractfile(there)
        assert content is not None
        assert dependencies(content.read()) == dependencies(described) != []


def without_compiler(folder: Path) -> str:
    """A PATH with the few tools that a shell needs, and no compiler."""
    tools = folder / "no-compiler"
    tools.mkdir()
    for name in ("sh", "env", "uname", "ls", "cat"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    for compiler in ("cc", "gcc", "g++", "clang", "c++"):
        assert shutil.which(compiler, path=str(tools)) is None
    return str(tools)


def installed(what: Path, environment: Path, work: Path, path: str) -> tuple[str, dict[str, bytes]]:
    """Install into an environment that has none of us; gives the kernels that are there and the tables of seeded
    releases."""
    work.mkdir()
    python = environment / "bin" / "python"
    run(python, *PIP, what, "-c", CONSTRAINTS, cwd=work, path=path)
    kernels = run(python, "-c", PROBE.format(kernels=KERNELS), cwd=work, path=path).strip()
    run(python, "-c", RELEASE.format(), cwd=work, path=path)
    tables = {p.parts[-3]: p.read_bytes() for p in sorted(work.glob("r-*/public/data.csv"))}
    assert len(tables) == 4
    return kernels, tables


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="dist-test-") as name:
        folder = Path(name)
        source, wheel = built(folder)
        check_contents(source, wheel)
        path = without_compiler(folder)
        environment, work = folder / "installed", folder / "wheel-work"
        program = environment / "bin" / "maskwright"
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        kernels, tables = installed(wheel, environment, work, path)
        assert kernels == str(list(KERNELS)), kernels
        shown = run(program, "demo", cwd=work, path=path)
        assert "MAY BE PUBLISHED" in shown, shown
        run(environment / "bin" / "pip", "uninstall", "-q", "-y", "maskwright", cwd=work, path=path)
        assert not program.exists()
        work = folder / "source-work"
        plain, same = installed(source, environment, work, path)
        assert plain == "[]", f"compiled without a compiler: {plain}"
        said = run(program, "--version", cwd=work, path=path)
        assert "there was no compiler" in said, said
        assert same == tables, "the plain twins make another release than the kernels"
        size = wheel.stat().st_size / 2**20
        print(
            f"{wheel.name} ({size:.1f} MB) and {source.name}: installed without a compiler, alike in what they publish"
        )


if __name__ == "__main__":
    main()
