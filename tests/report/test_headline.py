"""The first screen: yes or no, the one worst belief, and what it rests on."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

import maskwright as mw
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.pipeline.gates import promises_of
from maskwright.report.report import report_page, worst_belief
from tests.patients import POLICY, patients, write_csv

BALANCED = {
    "method": {"name": "mondrian", "cut": "balanced"},
    "require": [{"model": "simple-l-diversity", "l": 2}],
}


def release(folder: Path, **changes: Any) -> mw.Release:
    source = write_csv(folder / "patients.csv", patients())
    policy = yaml.safe_load(POLICY) | changes
    policy["columns"] = {name: c for name, c in policy["columns"].items() if "insensitive" not in str(c)}
    return mw.anonymize(source, mw.Policy.load(policy))


def believed(attack: str, after: Fraction) -> Beliefs:
    return Beliefs(attack, "knows-method", "exact", Belief(Fraction(1, 10), after, "somebody", "a reason"))


def only(made: mw.Release, *attacks: str) -> mw.Release:
    return replace(made, beliefs=tuple(b for b in made.beliefs if b.attack in attacks))


def test_the_worst_belief_is_the_headline_but_not_one_about_a_range(tmp_path: Path) -> None:
    made = release(tmp_path)
    third, half, sure = Fraction(1, 3), Fraction(1, 2), Fraction(1)
    found = replace(
        made,
        beliefs=(believed("similarity", sure), believed("linkage", third), believed("homogeneity", half)),
    )
    first = worst_belief(found)
    assert first is not None
    assert (first.beliefs.attack, first.beliefs.worst.after) == ("homogeneity", half)
    text = report_page(found, {}, {})
    assert "somebody" in text and "belief that a person has a value" in text
    assert worst_belief(replace(made, beliefs=(believed("similarity", sure),))) is None


def test_of_equal_beliefs_the_one_about_a_value_comes_first(tmp_path: Path) -> None:
    half = Fraction(1, 2)
    found = replace(release(tmp_path), beliefs=(believed("linkage", half), believed("homogeneity", half)))
    first = worst_belief(found)
    assert first is not None and first.beliefs.attack == "homogeneity"


def test_an_interval_counts_with_its_upper_end(tmp_path: Path) -> None:
    wide = Beliefs("minimality", "knows-method", "sampled",
                   Belief(Fraction(0), Fraction(2, 5), "x", "y", (0.3, 0.9)))  # fmt: skip
    first = worst_belief(replace(release(tmp_path), beliefs=(believed("linkage", Fraction(1, 2)), wide)))
    assert first is not None and first.beliefs is wide


def test_classes_of_k_are_guaranteed_by_counting(tmp_path: Path) -> None:
    first = worst_belief(only(release(tmp_path), "linkage"))
    assert first is not None
    assert (first.status, "at least 4 people" in first.basis) == ("guaranteed", True)
    without = release(tmp_path, require=[{"model": "distinct-l-diversity", "l": 2}])
    first = worst_belief(only(without, "linkage"))
    assert first is not None and first.status == "measured"
    exact = worst_belief(only(release(tmp_path, recoding="bucketize"), "linkage"))
    assert exact is not None and exact.status == "measured" and "as they are" in exact.basis


def test_belief_in_values_is_guaranteed_only_where_it_is_proven(tmp_path: Path) -> None:
    proven = worst_belief(only(release(tmp_path, **BALANCED), "minimality", "homogeneity"))
    assert proven is not None
    assert (proven.status, "at or below 0.5" in proven.basis) == ("guaranteed", True)
    searched = release(tmp_path, require=[*BALANCED["require"], {"model": "k-anonymity", "k": 4}])
    found = worst_belief(only(searched, "homogeneity"))
    assert found is not None and found.status == "measured"


def test_whoever_looked_before_is_guaranteed_nothing_about_values(tmp_path: Path) -> None:
    made = only(release(tmp_path, **BALANCED), "homogeneity")
    assert made.target is not None and made.target.design is not None
    design = replace(made.target.design, looked="other settings were tried")
    looked = replace(made, promises=promises_of(replace(made.target, design=design)))
    found = worst_belief(looked)
    assert found is not None and found.status == "measured"
    assert "other settings were tried" in found.basis


def test_facts_are_not_known_before_the_release(tmp_path: Path) -> None:
    made = only(release(tmp_path), "background-knowledge")
    text = report_page(made, {}, {})
    assert "without that knowledge: " in text and "before the release: " not in text


def test_yes_and_no(tmp_path: Path) -> None:
    made = release(tmp_path)
    text = report_page(made, {}, {})
    order = ["Yes, this may be published", "The most that anybody can believe", "What was asked"]
    assert sorted(order, key=text.index) == order
    failing = replace(made, verdicts=(replace(made.verdicts[0], ok=False), *made.verdicts[1:]))
    assert "No, do not publish this" in report_page(failing, {}, {})
    assert "FAILS" in report_page(failing, {}, {})
    seeded = report_page(replace(made, seeded=True), {}, {})
    assert "No, do not publish this" in seeded and "fixed seed" in seeded


@pytest.mark.parametrize("text", ["maskwright anonymize patients.csv", "sha256-or-so"])
def test_what_is_needed_to_repeat_it_is_there(tmp_path: Path, text: str) -> None:
    source = {"command": "maskwright anonymize patients.csv -p policy.yaml", "fingerprint": "sha256-or-so"}
    page = report_page(release(tmp_path), {}, source)
    assert text in page
    assert "k-anonymity" in page[page.index("The policy (also in") :]
