"""Insensitive columns count in singling out, together with the published labels: `anonymize` says what `audit` says."""

from __future__ import annotations

from pathlib import Path

import maskwright as mw
from maskwright.cli.terminal import release_lines

COLUMNS = {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": ["10"]}}, "bmi": "insensitive"}
POLICY = {"columns": COLUMNS, "require": [{"model": "k-anonymity", "k": 2}], "method": "optimal-lattice"}


def table(path: Path, shift: int) -> Path:
    """Forty people, four of an age; two of them share their BMI, or (shifted) nobody of an age does."""
    rows = [f"{20 + i // 4},{20 + (i % 4) // (1 + (shift == 0))}" for i in range(40)]
    path.write_text("age,bmi\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_the_first_lines_say_how_many_are_singled_out(tmp_path: Path) -> None:
    policy = {**POLICY, "columns": {**COLUMNS, "age": {"role": "quasi-identifier", "levels": [0]}}}
    release = mw.anonymize(table(tmp_path / "alone.csv", 1), policy, tmp_path / "out")
    expected = "whoever also knows the insensitive column bmi can single out 40 of 40 rows (100 %)"
    assert release.warnings[0] == expected
    assert release.as_dict()["warnings"][0] == expected
    assert list(release_lines(release))[1] == f"But {expected}"
    assert expected in (tmp_path / "out" / "private" / "report.html").read_text(encoding="utf-8")
    found = mw.audit(release.path / "public" / "data.csv", ["age"])  # type: ignore[operator]
    assert "40 of 40" in str(found)


def test_nothing_is_said_where_nobody_is(tmp_path: Path) -> None:
    policy = {**POLICY, "columns": {**COLUMNS, "age": {"role": "quasi-identifier", "levels": [0]}}}
    release = mw.anonymize(table(tmp_path / "pairs.csv", 0), policy)
    assert release.singled_out == ()
