"""Controlled attacks: what copies give away, what independent tables do not, and coverage by simulation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import maskwright as mw
from maskwright.auditing import controlled
from maskwright.auditing.controlled import ControlledRisk, controlled_risks
from maskwright.cli import main
from maskwright.errors import InputError, UsageError
from tests.amounts import amount
from tests.attacks.test_coverage import allowed

KNOWN, SECRET = ["age", "zip", "job"], ["disease"]


def people(n: int, seed: int) -> dict[str, list[str | None]]:
    rng = np.random.default_rng(seed)
    age, job = rng.integers(20, 70, n), rng.integers(0, 5, n)
    return {
        "age": [str(x) for x in age],
        "zip": [str(13000 + x) for x in rng.integers(0, 60, n)],
        "job": [f"job{x}" for x in job],
        "disease": [f"d{x}" for x in (job + rng.integers(0, 4, n)) % 6],
    }


def by_name(published: Any, original: Any, control: Any) -> dict[str, ControlledRisk]:
    return {r.attack: r for r in controlled_risks(published, original, control, KNOWN, SECRET)[0]}


def test_a_copy_gives_everything_away_and_an_independent_table_nothing() -> None:
    original, control = people(300, 1), people(300, 2)
    found = by_name(original, original, control)
    assert found["inference"].risk > 0.5
    assert found["membership"].risk > 0.9
    assert found["linkability"].risk > 0.05  # halves of one to two columns are often shared
    assert found["singling out"].risk > 0.5
    assert all(r.interval[0] > 0 for r in found.values())
    nothing = by_name(people(300, 3), original, control)
    assert all(r.interval[0] == 0 for r in nothing.values())


def test_ranges_say_less() -> None:
    original, control = people(300, 1), people(300, 2)
    coarse = dict(original)
    coarse["age"] = [f"{int(x or 0) // 10 * 10}-{int(x or 0) // 10 * 10 + 9}" for x in original["age"]]
    coarse["zip"] = ["*"] * 300
    exact, less = (by_name(t, original, control) for t in (original, coarse))
    for attack in ("inference", "membership"):
        assert less[attack].risk < exact[attack].risk
    (_, near), (_, far), (_, none) = (
        controlled_risks(t, original, control, KNOWN, SECRET) for t in (original, coarse, people(300, 3))
    )
    assert near == pytest.approx(0)
    assert 0 < none < 1
    assert 0 < far < 1


def test_the_formula() -> None:
    risk = ControlledRisk("inference", "s", 100, 60, 100, 20)
    assert risk.risk == pytest.approx(0.5)
    low, high = risk.interval
    # Clopper and Pearson with 1.25 % at each end: 60 of 100 .4829, .7098; 20 of 100 .1183, .3042
    assert (low, high) == (pytest.approx((0.4829 - 0.3042) / (1 - 0.3042), abs=2e-3),
                           pytest.approx((0.7098 - 0.1183) / (1 - 0.1183), abs=2e-3))  # fmt: skip
    assert ControlledRisk("x", "", 10, 10, 10, 10).risk == 0
    assert ControlledRisk("x", "", 10, 0, 10, 5).interval[0] == 0


@pytest.mark.parametrize(("p", "q", "n"), [(0.3, 0.3, 40), (0.9, 0.1, 25), (0.5, 0.2, 60), (1.0, 0.0, 10)])
def test_intervals_cover(p: float, q: float, n: int) -> None:
    rng = np.random.default_rng(7)
    true = max(0.0, (p - q) / (1 - q))
    trials = 400
    drawn = zip(rng.binomial(n, p, trials).tolist(), rng.binomial(n, q, trials).tolist(), strict=True)
    inside = 0
    for a, c in drawn:
        low, high = ControlledRisk("x", "", n, a, n, c).interval
        inside += low <= true <= high
    assert inside >= 0.95 * trials


def test_the_whole_attacks_cover_nothing_where_there_is_nothing() -> None:
    """Tables that were made of neither half: the interval of every attack must begin at 0, but for 1 in 40."""
    wrong = made = 0
    for seed in range(20):
        found = by_name(people(60, 3 * seed), people(60, 3 * seed + 1), people(60, 3 * seed + 2))
        wrong += sum(r.interval[0] > 0 for r in found.values())
        made += len(found)
    assert made >= 70
    assert wrong <= 0.05 * made


def test_the_whole_attacks_cover_a_true_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that gives some of its people away: sixty of them are attacked, and sixty of a control drawn anew.

    The truth is taken from the attacks of all runs together.
    """
    monkeypatch.setattr(controlled, "MOST_ATTACKS", 60)
    original, runs = people(240, 1), amount(24, 1_000)
    published = {
        n: [*texts[:160], *people(80, 2)[n]] for n, texts in original.items()
    }  # a third is somebody else
    found: dict[str, list[ControlledRisk]] = {}
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        shown, true = (
            {n: [texts[i] for i in order] for n, texts in rows.items()}
            for rows, order in ((published, rng.permutation(240)), (original, rng.permutation(240)))
        )
        for name, risk in by_name(shown, true, people(240, 1_000 + seed)).items():
            found.setdefault(name, []).append(risk)
    assert set(found) == {"singling out", "linkability", "inference", "membership"}
    for name, risks in found.items():
        ours, theirs = np.array([r.shares for r in risks]).mean(axis=0).tolist()
        truth = (ours - theirs) / (1 - theirs)
        assert truth > 0.05, name
        said = sum(r.interval[0] > 0 for r in risks)
        assert truth < 0.5 or said > 0.4 * runs, f"{name}: intervals that say nothing cover everything"
        missed = sum(not r.interval[0] <= truth <= r.interval[1] for r in risks)
        assert missed <= allowed(runs, 0.05), f"{name}: {missed} of {runs}"


def test_audit_by_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original = pd.DataFrame(people(80, 1))
    files = {
        "original": original,
        "control": pd.DataFrame(people(80, 2)),
        "copy": original.sample(frac=1, random_state=1),
    }
    for name, frame in files.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    asked = ["audit", str(tmp_path / "copy.csv"), "--qi", ",".join(KNOWN), "--sensitive", "disease"]
    halves = ["--original", str(tmp_path / "original.csv"), "--control", str(tmp_path / "control.csv")]
    assert main([*asked, *halves, "--html", str(tmp_path / "a.html")]) == 0
    out = capsys.readouterr().out
    assert "Attacks with a control" in out
    assert "inference of disease: risk" in out
    assert "Attacks with a control" in (tmp_path / "a.html").read_text()
    assert main([*asked, *halves, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert any("mean total variation" in note for note in said["notes"])
    assert {r["attack"] for r in said["controlled"]} == {
        "linkability",
        "inference",
        "singling out",
        "membership",
    }
    assert main([*asked, *halves[2:]]) == 2
    assert "--original" in capsys.readouterr().err


def test_what_is_refused() -> None:
    frame = pd.DataFrame(people(20, 1))
    with pytest.raises(UsageError, match="compared with the original"):
        mw.audit(frame, KNOWN, SECRET, control=frame)
    with pytest.raises(InputError, match="'job'"):
        mw.audit(frame, KNOWN, SECRET, original=frame, control=frame.drop(columns="job"))
    with pytest.raises(InputError, match="need people"):
        controlled_risks(people(5, 1), people(5, 2), people(0, 3), KNOWN, SECRET)
