"""Addresses in place of files: shown as they were written, and never with their password."""

from __future__ import annotations

from pathlib import Path

import pytest

from maskwright.addresses import without_passwords
from maskwright.cli import commands
from maskwright.errors import InputError, UsageError
from maskwright.pipeline.job import Job, command_of, name_of
from maskwright.policy.policy import Policy

PASSWORD = "sEcReT"  # noqa: S105
ADDRESSES = [
    f"postgresql://bob:{PASSWORD}@h/db",
    f"postgresql+psycopg2://bob:{PASSWORD}@h/db",
    f"POSTGRESQL://bob:{PASSWORD}@h/db",
    f" postgresql://bob:{PASSWORD}@h/db",
    f"mysql://bob:{PASSWORD}@h/db",
    f"mysql://bob:{PASSWORD}@h",
    f"mysql://bob:a@{PASSWORD}@h/db",
    f"mysql://bob:a/{PASSWORD}@h/db",
    f"mysql://bob:a {PASSWORD}@h/db",
    f"mysql://:{PASSWORD}@h/db",
    f"https://bob:{PASSWORD}@h/patients.csv",
    f"postgresql://h/db?user=bob&password={PASSWORD}",
]
# other ways to write one: hidden in every text, tried with few commands
ODD_ADDRESSES = [
    f"//bob:{PASSWORD}@h/db",
    f"mssql+pyodbc:///?odbc_connect=Driver%3D%7Bx%7D%3BPWD%3D{PASSWORD}",
    f"https://h/patients.csv?token={PASSWORD}",
    f"https://h/patients.csv?X-Amz-Date=1&X-Amz-Signature={PASSWORD}",
    f"s3://a-key:{PASSWORD}@bucket/patients.csv",
]
COMMANDS = {
    "anonymize": ["anonymize", "ADDRESS", "-p", "policy.yaml", "-o", "new"],
    "its policy": ["anonymize", "patients.csv", "-p", "ADDRESS", "-o", "new"],
    "its output": ["anonymize", "patients.csv", "-p", "policy.yaml", "-o", "ADDRESS"],
    "into": ["anonymize", "patients.csv", "-p", "policy.yaml", "-o", "new", "--into", "t", "--database", "ADDRESS"],
    "table": ["anonymize", "ADDRESS", "--table", "a.b.c", "-p", "policy.yaml", "-o", "new"],
    "init": ["init", "ADDRESS", "-o", "new"],
    "advise": ["advise", "ADDRESS", "-o", "new"],
    "check": ["check", "patients.csv", "ADDRESS"],
    "policy of a check": ["check", "patients.csv", "-p", "ADDRESS"],
    "verify": ["verify", "ADDRESS"],
    "attack": ["attack", "ADDRESS"],
    "audit": ["audit", "ADDRESS", "--qi", "age"],
    "original": ["audit", "patients.csv", "--qi", "age", "--original", "ADDRESS"],
    "compare": ["compare", "ADDRESS", "-p", "policy.yaml"],
    "an argument too many": ["models", "ADDRESS"],
    "the command": ["ADDRESS"],
}  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("place", COMMANDS)
def test_no_message_shows_a_password(
    table: Path, policy: Path, tmp_path: Path, address: str, place: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    words = [address if word == "ADDRESS" else word for word in COMMANDS[place]]
    assert commands.main([*words, "--json", "--verbose"]) == 2
    said = capsys.readouterr()
    assert PASSWORD not in said.out + said.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("address", ODD_ADDRESSES)
def test_nor_however_the_address_is_written(
    table: Path, policy: Path, tmp_path: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in ("anonymize", "its policy", "verify", "audit"):
        words = [address if word == "ADDRESS" else word for word in COMMANDS[place]]
        words = [
            str({"policy.yaml": policy, "patients.csv": table, "new": tmp_path / "new"}.get(w, w))
            for w in words
        ]
        assert commands.main(words) == 2
        said = capsys.readouterr()
        assert PASSWORD not in said.out + said.err
    assert "a key=5, a sign=3 and k=2 stay" in without_passwords("a key=5, a sign=3 and k=2 stay")


@pytest.mark.parametrize("file", ["hierarchy", "population"])
def test_nor_does_one_about_a_file_of_a_policy(
    table: Path, policy: Path, tmp_path: Path, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = f"{{file: 'https://bob:{PASSWORD}@h/x.csv'}}"
    text = policy.read_text()
    policy.write_text(
        text.replace("hierarchy: suppress", f"hierarchy: {named}")
        if file == "hierarchy"
        else f"{text}population: {named}\n"
    )
    assert commands.main(["anonymize", str(table), "-p", str(policy), "-o", str(tmp_path / "r")]) == 2
    assert PASSWORD not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["anonymize", "https://h/a/p.csv", "-p", "policy.yaml", "-o", "new"], "'https://h/a/p.csv' is an address"),
        (["init", "https://bob:x@h/a/p.csv", "-o", "new"], "'https://bob:…@h/a/p.csv' is an address"),
        (["verify", "s3://bucket/r"], "'s3://bucket/r' is an address"),
        (["init", "postgresql://bob@h/db", "-o", "new"], "--table schema.name"),
    ],
)  # fmt: skip
def test_an_address_is_shown_as_it_was_written(
    table: Path, policy: Path, tmp_path: Path, arguments: list[str], shown: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert commands.main(arguments) == 2
    assert shown in capsys.readouterr().err


def test_nothing_that_is_kept_shows_a_password(policy: Path) -> None:
    """Spark reads from addresses; what they are called is in reports and manifests."""
    job = Job(f"s3a://key:{PASSWORD}@bucket", Policy.load(policy), engine="spark")
    assert PASSWORD not in name_of(job.source) + command_of(job)


def test_what_looks_like_no_password_stays() -> None:
    for text in (
        "write postgresql://user@host/database",
        "12:30 a@b",
        "C:/data/x.csv: there is no such file",
        "k = 5, l=2",
        "see https://example.org:8080/x",
    ):
        assert without_passwords(text) == text
        assert str(InputError(text)) == text
    assert PASSWORD not in UsageError("x", f"mysql://a:{PASSWORD}@h").details


def test_a_folder_whose_name_looks_like_a_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data:").mkdir()
    (tmp_path / "data:" / "p.csv").write_text("sex\nm\nf\n")
    assert commands.main(["audit", "data:/p.csv", "--qi", "sex"]) == 0
