"""Insensitive columns count in singling out, together with the published labels: `anonymize` says what `audit` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.cli.commands import main
from maskwright.cli.terminal import release_lines
from maskwright.errors import PolicyNotMet
from maskwright.pipeline.alternatives import alternatives_to
from maskwright.pipeline.job import Job

BMI = {"role": "insensitive", "near_unique": "allow"}
COLUMNS: dict[str, Any] = {"age": {"role": "quasi-identifier", "levels": [0]}, "bmi": BMI}
POLICY = {"columns": COLUMNS, "require": [{"model": "k-anonymity", "k": 2}], "method": "optimal-lattice"}
ASKED = {**POLICY, "columns": {**COLUMNS, "bmi": "insensitive"}}
FOUND = "whoever also knows the insensitive column bmi can single out 40 of 40 rows (100 %)"


def table(path: Path, shift: int) -> Path:
    """Forty people, four of an age; two of them share their BMI, or (shifted) nobody of an age does."""
    rows = [f"{20 + i // 4},{20 + (i % 4) // (1 + (shift == 0))}" for i in range(40)]
    path.write_text("age,bmi\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_the_first_lines_say_how_many_are_singled_out_where_that_is_accepted(tmp_path: Path) -> None:
    release = mw.anonymize(table(tmp_path / "alone.csv", 1), POLICY, tmp_path / "out")
    expected = f"{FOUND}; the policy accepts that (near_unique: allow)"
    assert release.warnings[0] == expected
    assert release.as_dict()["warnings"][0] == expected
    assert any(f"But {expected}" in line for line in release_lines(release))
    assert expected in (tmp_path / "out" / "private" / "report.html").read_text(encoding="utf-8")
    found = mw.audit(release.path / "public" / "data.csv", ["age"])  # type: ignore[operator]
    assert "40 of 40" in str(found)


def test_nothing_is_said_where_nobody_is(tmp_path: Path) -> None:
    release = mw.anonymize(table(tmp_path / "pairs.csv", 0), ASKED)
    assert release.singled_out == ()


def test_what_nobody_accepted_is_refused_and_every_remedy_works(tmp_path: Path) -> None:
    path = table(tmp_path / "alone.csv", 1)
    with pytest.raises(PolicyNotMet) as refused:
        mw.anonymize(path, ASKED, tmp_path / "out")
    assert str(refused.value).startswith(FOUND)
    assert not (tmp_path / "out").exists()
    for bmi in (BMI, "identifier", "quasi-identifier"):
        age = {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20]}}
        assert mw.anonymize(path, {**POLICY, "columns": {"age": age, "bmi": bmi}, "unit": "none"}).ok


def test_trials_refuse_what_a_run_would_and_alternatives_do_without_it(tmp_path: Path) -> None:
    path = table(tmp_path / "alone.csv", 1)
    compared = mw.compare(path, [ASKED, POLICY], metrics=(), cache=False)
    assert [point.status for point in compared.points] == ["not met", "holds"]
    found = alternatives_to(Job(path, mw.Policy.of(ASKED, "policy")))
    assert found.found
    assert not any("allow" in a.policy.to_yaml() for a in found.found)  # that is for the publisher to say
    assert all(mw.anonymize(path, a.policy).ok for a in found.found)


def test_people_are_counted_where_they_have_several_rows(tmp_path: Path) -> None:
    """Both rows of a person are alike: nobody's row is unique, and everybody can be found; combinations are counted."""
    path = tmp_path / "visits.csv"
    path.write_text("who,age,bmi\n" + "".join(f"p{i},30,{20 + i}\n" * 2 for i in range(5)), encoding="utf-8")
    policy = {**ASKED, "unit": "who", "columns": {**ASKED["columns"], "who": "identifier"}}
    with pytest.raises(PolicyNotMet, match="finds 5 combinations of values that one person alone has"):
        mw.anonymize(path, policy)


def test_the_command_exits_with_1_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, policy = table(tmp_path / "alone.csv", 1), tmp_path / "policy.yaml"
    policy.write_text(mw.Policy.of(ASKED, "policy").to_yaml(), encoding="utf-8")
    assert main(["anonymize", str(path), "-p", str(policy), "-o", str(tmp_path / "out")]) == 1
    assert FOUND in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
