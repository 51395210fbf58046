"""Releases that share stable pseudonyms: what they tell together, against joining the published tables."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.cli.commands import main
from maskwright.domain.beliefs import Beliefs


def policy(width: int, group: str | None = "people", **more: Any) -> dict[str, Any]:
    who: dict[str, Any] = {"role": "identifier", "publish": "pseudonym"}
    who |= {"stable": True, "group": group} if group else {}
    return {
        "columns": {
            "who": who,
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [width]}, "levels": [1]},
            "ill": "sensitive",
        },
        "require": [{"model": "k-anonymity", "k": 1}],
        **more,
    }


def people(first: int = 0) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "who": [f"p{i}" for i in range(first, first + 40)],
            "age": [20 + i % 40 for i in range(first, first + 40)],
            "ill": [["flu", "cold", "ulcer"][i % 3] for i in range(first, first + 40)],
        }
    )


def linked(releases: list[Any]) -> Beliefs | None:
    found = mw.attack(releases)
    assert isinstance(found, list)
    return next((b for b in found if b.attack == "linked-releases"), None)


def test_what_is_found_is_what_joining_the_tables_shows(tmp_path: Path) -> None:
    """Two recodings of overlapping people; in memory as from the folders."""
    one, two = mw.anonymize(people(), policy(10)), mw.anonymize(people(10), policy(7))
    joined = one.table.merge(two.table, on="who", suffixes=("", "_"))
    assert len(joined) == 30
    alike = joined.groupby(["age", "age_"])
    worst = max(Fraction(int(n), len(rows)) for _, rows in alike for n in rows["ill"].value_counts())
    found = linked([one, two])
    assert found is not None and found.kind == "exact" and found.worst.after == worst
    assert found.measures["smallest_match"] == alike.size().min() < 5
    assert found.measures["people_found"] == (alike.size() == 1).sum() > 0
    assert found.measures["people_in_several_releases"] == 30
    one.save(tmp_path / "one")
    two.save(tmp_path / "two")
    again = linked([tmp_path / "one", tmp_path / "two"])
    assert again is not None and again.as_dict() == found.as_dict()


@pytest.mark.parametrize("groups", [(None, None), ("people", None), ("people", "others")])
def test_other_pseudonyms_join_nothing(groups: tuple[str | None, str | None]) -> None:
    assert (
        linked([mw.anonymize(people(), policy(w, g)) for w, g in zip((10, 7), groups, strict=True)]) is None
    )
    assert linked([mw.anonymize(people(), policy(10))]) is None


def test_visits_join_as_well() -> None:
    """People with several rows: all labels of a person count, and all values."""
    frame = pd.concat([people(), people().assign(age=lambda t: t["age"] + 3, ill="cough")])
    releases = [mw.anonymize(frame, policy(w, unit="who")) for w in (10, 7)]
    found = linked(releases)
    assert found is not None
    shown = [
        release.table.groupby("who")["age"].agg(lambda rows: tuple(sorted(rows))) for release in releases
    ]
    sizes = pd.concat(shown, axis=1, keys=["a", "b"]).groupby(["a", "b"]).size()
    assert found.measures["smallest_match"] == sizes.min()
    assert found.worst.after == 1  # everybody had a cough in some visit


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, width in (("one", 10), ("two", 7)):
        mw.anonymize(people(), policy(width), tmp_path / name)
    assert main(["attack", str(tmp_path / "one"), str(tmp_path / "two")]) == 0
    assert "linked-releases" in capsys.readouterr().out
