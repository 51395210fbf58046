"""Every attack that applies to a release says how many people are vulnerable, and what its worst belief leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest

import maskwright as mw
from maskwright.attacks import ATTACKS
from maskwright.domain.beliefs import Beliefs
from tests.patients import POLICY, patients, write_csv


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Beliefs]:
    """Releases with a dropped person, whose method looked at the values, and of whose values one is not flagged."""
    folder = tmp_path_factory.mktemp("attacked")
    table = write_csv(folder / "p.csv", [*patients(), ["P999", "95", "99999", "m", "rabies", "A"]])
    rule = "l: 2, values: [flu, asthma, cancer], use: search"
    beliefs: list[Beliefs] = []
    for suppress in ("small-classes", "failing-classes"):
        policy = folder / f"{suppress}.yaml"
        text = POLICY.replace("l: 2, use: gate", rule).replace("5%", f"5%, suppress: {suppress}")
        policy.write_text(text, encoding="utf-8")
        attacked = mw.attack(mw.anonymize(table, policy))
        assert isinstance(attacked, list)
        beliefs += attacked
    return beliefs


def test_most_attacks_apply(found: list[Beliefs]) -> None:
    assert (
        {"linkage", "homogeneity", "background-knowledge", "minimality"}
        <= {b.attack for b in found}
        <= ATTACKS.keys()
    )


def test_dropped_people_are_counted_beside_every_belief(found: list[Beliefs]) -> None:
    for beliefs in found:
        name = beliefs.attack
        assert beliefs.measures["dropped_people"] == 1, name


def test_the_share_of_vulnerable_people(found: list[Beliefs]) -> None:
    for beliefs in found:
        name = beliefs.attack
        shares = list(_all("vulnerable_share", beliefs.measures))
        assert shares, name
        assert all(0 <= Fraction(share) <= 1 for share in shares)


def test_values_that_are_not_flagged_are_counted(found: list[Beliefs]) -> None:
    for beliefs in found:
        name = beliefs.attack
        if name != "linkage":  # which is not about values
            assert beliefs.measures["values_not_flagged"] >= 1, name


def _all(key: str, measures: object) -> list[object]:
    """Everything under a key, at any depth."""
    if not isinstance(measures, Mapping):
        return []
    here = [measures[key]] if key in measures else []
    return here + [x for value in measures.values() for x in _all(key, value)]
