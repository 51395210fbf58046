"""`keep:` of a policy: what must stay of a quasi-identifier; the search respects it, or says what it would take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.errors import HierarchyError, PolicyError, PolicyNotMet
from maskwright.hierarchies.masking import Masking
from maskwright.pipeline.alternatives import alternatives_to
from maskwright.pipeline.job import Job
from maskwright.policy.policy import Policy

COLUMNS = {
    "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
}


def people(path: Path) -> Path:
    """Sixteen people: women and men in two areas of two ZIP codes each; two of every kind."""
    zips = ("02138", "02139", "10115", "10117")
    rows = [f"{sex},{code}" for sex in "FM" for code in zips for _ in range(2)]
    path.write_text("sex,zip\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def policy(keep: dict[str, str], k: int = 4, method: str = "optimal-lattice") -> dict[str, Any]:
    return {
        "columns": COLUMNS,
        "require": [{"model": "k-anonymity", "k": k}],
        "method": {"name": method},
        "keep": keep,
    }


@pytest.mark.parametrize("method", ["optimal-lattice", "local-recoding"])
def test_the_search_keeps_what_it_is_told(tmp_path: Path, method: str) -> None:
    table = people(tmp_path / "people.csv")
    for keep in ({"sex": "exact"}, {"zip": "exact"}, {"sex": "exact", "zip": "3 digits"}):
        release = mw.anonymize(table, policy(keep, method=method), tmp_path / "out", overwrite=True)
        lines = (tmp_path / "out" / "public" / "data.csv").read_text(encoding="utf-8").split()[1:]
        cells = [line.split(",") for line in lines]
        if "sex" in keep:
            assert {sex for sex, _ in cells} == {"F", "M"}
        if keep.get("zip") == "exact":
            assert {code for _, code in cells} == {"02138", "02139", "10115", "10117"}
        elif "zip" in keep:
            assert all(sum(c.isdigit() for c in code) >= 3 for _, code in cells)
        assert release.ok


def test_what_cannot_be_kept_is_refused_and_told_what_it_would_take(tmp_path: Path) -> None:
    table = people(tmp_path / "people.csv")
    asked = Policy.of(policy({"sex": "exact", "zip": "exact"}), "policy")
    with pytest.raises(PolicyNotMet):
        mw.anonymize(table, asked)
    found = alternatives_to(Job(table, asked)).found
    assert any("coarser than `keep` says" in attempt.change for attempt in found)


def test_errors_name_the_column(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"keep\.age: only quasi-identifiers"):
        Policy.of(policy({"age": "exact"}), "policy")
    table = people(tmp_path / "people.csv")
    with pytest.raises(HierarchyError, match="column 'zip' cannot keep 7 digits"):
        mw.anonymize(table, policy({"zip": "7 digits"}))
    with pytest.raises(HierarchyError, match="column 'sex' has no level 'half'"):
        mw.anonymize(table, policy({"sex": "half"}))
    both = policy({"sex": "exact"})
    both["columns"] = {**COLUMNS, "sex": {"role": "quasi-identifier", "levels": ["any"]}}
    with pytest.raises(PolicyError, match=r"keep\.sex: `levels` of the column allows no level"):
        mw.anonymize(table, both)


def test_it_stays_in_the_policy_file() -> None:
    made = Policy.of(policy({"sex": "exact", "zip": "3 digits"}), "policy")
    assert made.to_dict()["keep"] == {"sex": "exact", "zip": "3 digits"}
    assert Policy.of(made.to_dict(), "policy") == made
    assert Policy.of(policy({}), "policy").to_dict().get("keep") is None


def test_digits_are_those_of_the_shortest_value() -> None:
    h = Masking(mask="right").build("zip", ["02138", "021"], Path(), ())
    assert h.levels[h.level_to_keep("3 digits")].name == "exact"
