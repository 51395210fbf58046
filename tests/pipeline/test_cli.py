"""The command line as a user has it: in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from maskwright.core.policy import Policy
from patients import Command, leftovers


def cpu(code: str) -> float:
    """User and system seconds of a fresh process; the least of three, because machines are noisy."""
    script = f"import resource; {code}; u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    return min(float(done.stdout.split()[-1]) for done in runs)


def test_import_is_fast() -> None:
    assert cpu("import maskwright") < 0.3


def test_help_is_fast_and_short() -> None:
    run = "import contextlib, maskwright.cli as c\nwith contextlib.suppress(SystemExit): c.main(['--help'])\npass"
    assert cpu(f"exec({run!r})") < 0.5


def test_import_loads_nothing_heavy() -> None:
    heavy = ("duckdb", "numpy", "pandas", "pydantic", "yaml")
    code = f"import sys, maskwright; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_anonymize_and_verify(maskwright: Command, table: Path, policy: Path, tmp_path: Path) -> None:
    done = maskwright("anonymize", table, "-p", policy, "-o", "release")
    assert done.code == 0, done.err
    assert done.out.startswith("MAY BE PUBLISHED")
    assert re.search(r"smallest class +1 +\d+", done.out)
    assert "release/public" in done.out
    assert "release/private/report.html" in done.out
    assert "identifiers, not published: name" in done.err
    checked = maskwright("verify", "release")
    assert checked.code == 0
    assert "VERIFIED" in checked.out


def test_json(maskwright: Command, table: Path, policy: Path) -> None:
    done = maskwright("anonymize", table, "-p", policy, "-o", "release", "--json")
    assert done.code == 0
    result = done.json
    assert result["ok"] is True
    assert result["rows"]["input"] == 40
    assert result["verdicts"][0]["model"] == "k-anonymity"
    assert {"linkage", "homogeneity"} <= {b["attack"] for b in result["beliefs"]}
    assert maskwright("verify", "release", "--json").json["ok"] is True
    failed = maskwright("anonymize", table, "-p", policy, "-o", "release", "--json")
    assert failed.code == 2
    assert failed.json["ok"] is False
    assert "--overwrite" in failed.json["error"]


def test_a_policy_that_is_not_met_exits_with_1(
    maskwright: Command, table: Path, policy: Path, tmp_path: Path
) -> None:
    policy.write_text(policy.read_text().replace("l: 2", "l: 5"))
    done = maskwright("anonymize", table, "-p", policy, "-o", "release")
    assert done.code == 1
    assert "simple-l-diversity" in done.error
    assert not (tmp_path / "release").exists()
    assert not leftovers(tmp_path)


def test_a_tampered_release_exits_with_1(
    maskwright: Command, table: Path, policy: Path, tmp_path: Path
) -> None:
    assert maskwright("anonymize", table, "-p", policy, "-o", "release").code == 0
    data = tmp_path / "release/public/data.csv"
    data.write_text(data.read_text().replace("flu", "ulcer", 1))
    done = maskwright("verify", "release")
    assert done.code == 1
    assert "public/data.csv was changed" in done.out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["anonymize"],
        ["anonymize", "x.csv"],
        ["verify"],
        ["models", "--colour"],
        ["anonymize", "x", "-p"],
    ],
)
def test_bad_usage(maskwright: Command, arguments: list[str]) -> None:
    done = maskwright(*arguments)
    assert done.code == 2
    assert "--help" in done.error


@pytest.mark.parametrize("kind", ["models", "methods", "attacks", "metrics"])
def test_lists(maskwright: Command, kind: str) -> None:
    done = maskwright(kind)
    assert done.code == 0
    for line in done.out.splitlines():
        name, _, text = line.partition("  ")
        assert re.fullmatch(r"[a-z-]+", name)
        assert len(text.strip()) > 15
    assert set(maskwright(kind, "--json").json) == {line.split()[0] for line in done.out.splitlines()}


def test_init_then_anonymize(maskwright: Command, table: Path, tmp_path: Path) -> None:
    done = maskwright("init", table)
    assert done.code == 0, done.err
    policy = Policy.load(tmp_path / "policy.yaml")
    assert policy.columns["name"].role == "identifier"
    assert policy.columns["disease"].role == "sensitive"
    assert "age" in policy.quasi_identifiers
    assert "maskwright anonymize" in done.out
    again = maskwright("init", table)
    assert again.code == 2
    assert "--overwrite" in again.error
    assert maskwright("anonymize", table, "-p", "policy.yaml", "-o", "release").code in (0, 1)


def test_init_with_a_preset(maskwright: Command, table: Path, tmp_path: Path) -> None:
    assert maskwright("init", table, "--preset", "ema-clinical").code == 0
    policy = Policy.load(tmp_path / "policy.yaml")
    k = next(r.parameters["k"] for r in policy.require if r.name == "k-anonymity")
    assert int(k) == 12
    bad = maskwright("init", table, "--preset", "ema", "-o", "other.yaml")
    assert bad.code == 2
    assert "ema-clinical" in bad.error


def test_schema(maskwright: Command) -> None:
    schema = json.loads(maskwright("schema").out)
    names = {
        item["properties"]["model"]["const"] for item in schema["properties"]["require"]["items"]["oneOf"]
    }
    assert "k-anonymity" in names


@pytest.mark.slow
def test_demo(maskwright: Command, tmp_path: Path) -> None:
    done = maskwright("demo")
    assert done.code == 0, done.err
    assert "MAY BE PUBLISHED" in done.out
    assert "0.313713" in done.out, "ARX's optimum"
    assert re.search(r"people alone in their class +[\d,]+ +0\n", done.out)
    assert (tmp_path / "maskwright-demo/private/report.html").exists()
    assert maskwright("demo").code == 0, "a second time replaces the first"
