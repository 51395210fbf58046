"""The command line as a user has it: in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from maskwright.cli import main
from maskwright.cli.commands import PARTICULARS
from maskwright.models import MODELS
from maskwright.policy.policy import Particulars, Policy
from tests.patients import Command, leftovers


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


@pytest.mark.parametrize(
    "what",
    ["import maskwright", "from maskwright.cli.commands import command_parser as p; p().format_help()"],
)
def test_import_and_help_load_nothing_heavy(what: str) -> None:
    heavy = ("duckdb", "numpy", "pandas", "pydantic", "yaml")
    code = f"{what}; import sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_evidence_asks_for_every_particular() -> None:
    assert list(PARTICULARS) == list(Particulars.model_fields)


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
    assert {"zip", "sex"} <= {*policy.quasi_identifiers}
    assert "age" in (tmp_path / "policy.yaml").read_text(encoding="utf-8"), "left out, and said"
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


def test_demo(maskwright: Command, tmp_path: Path) -> None:
    done = maskwright("demo")
    assert done.code == 0, done.err
    assert "MAY BE PUBLISHED" in done.out
    kept = re.search(
        r"Usefulness: ([0-9.]+) % of the detail .* is kept, in ([0-9.]+) % of the rows", done.out
    )
    assert kept is not None
    assert min(map(float, kept.groups())) > 90
    assert "But " not in done.out, "nothing that the first lines must warn of"
    assert re.search(r"people alone in their class +[\d,]+ +0\n", done.out)
    assert (tmp_path / "maskwright-demo/private/report.html").exists()
    assert maskwright("demo").code == 0, "a second time replaces the first"


def optimised(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a Python that forgets docstrings and assertions (-OO)."""
    command = [sys.executable, "-OO", "-m", "maskwright.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", ["models", "methods", "attacks", "metrics"])
def test_lists_where_python_forgets_docstrings(maskwright: Command, tmp_path: Path, kind: str) -> None:
    done = optimised(tmp_path, kind)
    assert (done.returncode, done.stdout) == (0, maskwright(kind).out), done.stderr


def test_commands_where_python_forgets_docstrings(table: Path, policy: Path, tmp_path: Path) -> None:
    for arguments in (
        ["schema"],
        ["init", table, "-o", "guessed.yaml"],
        ["anonymize", table, "-p", policy, "-o", "release"],
        ["verify", "release"],
        ["attack", "release"],
        ["compare", table, "-p", policy],
        ["audit", table, "--qi", "sex"],
    ):
        done = optimised(tmp_path, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)
    card = (tmp_path / "release/public/data-card.html").read_text(encoding="utf-8")
    assert MODELS["k-anonymity"].summary_line() in card


def test_the_word_that_was_meant(maskwright: Command, table: Path, policy: Path) -> None:
    assert "did you mean 'anonymize'?" in maskwright("anonymise", table).error
    assert "did you mean" not in maskwright("fly").error
    policy.write_text(policy.read_text().replace("disease: sensitive", "disease: senstive"))
    done = maskwright("anonymize", table, "-p", policy, "-o", "release")
    assert "did you mean 'sensitive'?" in done.error


@pytest.mark.parametrize("bound", ["25", "0", "-1/4", "1.01"])
def test_a_belief_is_above_0_and_at_most_1(
    maskwright: Command, table: Path, policy: Path, bound: str
) -> None:
    assert maskwright("anonymize", table, "-p", policy, "-o", "release").code == 0
    for command in (["attack", "release"], ["audit", table, "--qi", "sex"]):
        done = maskwright(*command, f"--max-belief={bound}")
        assert (done.code, "at most 1" in done.error) == (2, True)
    assert maskwright("attack", "release", "--max-belief=1").code == 0


def test_a_refusal_is_one_line(maskwright: Command, table: Path, policy: Path) -> None:
    """Not followed by what a library says as Python ends."""
    policy.write_text(policy.read_text().replace("k: 4", "k: 0"))
    done = maskwright("anonymize", table, "-p", policy, "-o", "release")
    assert done.err == "maskwright: require[0].k: 0 is too small; the least allowed is 1\n"


def test_init_finds_the_encoding_or_takes_it(maskwright: Command, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_bytes("name,age\nJosé,3\nAnna,4\n".encode("latin-1"))
    for option, expected in [((), "cp1252"), (("--encoding", "latin-1"), "latin-1")]:
        assert maskwright("init", "l.csv", "-o", f"{expected}.yaml", *option).code == 0
        assert Policy.load(tmp_path / f"{expected}.yaml").input.encoding == expected


def test_a_line_that_is_too_long(maskwright: Command, tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text(f"name,age\nx,1\n{'x' * 2_100_000},3\n")
    error = maskwright("init", "long.csv").error
    assert "line 3 is longer than 2 MB" in error
    assert "Parquet" in error


def test_a_command_does_not_search_for_garbage_while_it_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """That was a tenth of a short command."""
    asked: list[int] = []
    monkeypatch.setattr("gc.set_threshold", lambda first, *_: asked.append(first))
    assert main(["--version"]) == 0
    assert asked
    assert asked[0] >= 50_000


def test_the_help_loads_neither_numpy_nor_pydantic() -> None:
    """Not either when the command line is imported as an attribute of the package."""
    names = "{'numpy', 'pydantic'}"
    code = f"import sys; from maskwright import cli; cli.main(['--help']); print({names} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
