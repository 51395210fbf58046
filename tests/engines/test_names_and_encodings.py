"""Header names that are empty or occur twice, and files that are not UTF-8: repaired where the policy says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import maskwright as mw
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.engines.readers.csv_files import repaired_names
from maskwright.errors import InputError


@pytest.mark.parametrize(
    ("names", "repaired"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "", "a", "A"], ["a", "column2", "a_2", "A_3"]),
        (["", "column1"], ["column1_2", "column1"]),
        (["a", "a", "a_2"], ["a", "a_3", "a_2"]),
    ],
)
def test_names_are_repaired_by_the_header_alone(names: list[str], repaired: list[str]) -> None:
    assert repaired_names(names) == repaired


def test_a_header_is_repaired_where_the_policy_says_so(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,,sex,sex\n30,x,F,F\n31,y,M,M\n", encoding="utf-8")
    engine = open_engine()
    try:
        with pytest.raises(InputError, match=r"column 2 has no name.*names: repair"):
            engine.open(path, Reading())
        table = engine.open(path, Reading(names="repair"))
        assert [c.name for c in table.columns] == ["age", "column2", "sex", "sex_2"]
    finally:
        engine.close()


def test_init_finds_encoding_and_names(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = [f"{20 + i % 40};{'Köln' if i % 2 else 'Zürich'};x{i % 3}" for i in range(200)]
    path.write_bytes(("age;city;city\n" + "\n".join(rows) + "\n").encode("cp1252"))
    found = mw.suggest_policy(path, tried=False)
    assert (found.policy.input.encoding, found.policy.input.names) == ("cp1252", "repair")
    assert set(found.policy.columns) == {"age", "city", "city_2"}
    assert "Read as cp1252" in found.text
    policy = found.policy.model_copy(update={"require": found.policy.require[:1]})
    assert mw.anonymize(path, policy).ok


def test_a_file_with_a_mark_of_its_encoding_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    for encoding in ("utf-8-sig", "utf-16"):
        path.write_bytes(("age,city\n" + "30,Köln\n31,Genf\n" * 30).encode(encoding))
        assert mw.suggest_policy(path, tried=False).policy.input.encoding == "utf-8"
