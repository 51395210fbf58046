"""Comparisons: every point is shown, can be run, is reused when nothing changed, and is remembered."""

from __future__ import annotations

import csv
import json
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import maskwright as mw
from maskwright.comparing import pareto_front
from maskwright.comparing.points import parse_grid
from maskwright.domain.exact import share_text
from maskwright.errors import Cancelled, DestinationError, MaskwrightError, PolicyError, UsageError
from maskwright.pipeline.history import state_folder
from maskwright.runtime.events import Event
from tests.patients import POLICY, Command, forget, patients, write_csv

GRID = {"k": [2, 4], "method": ["optimal-lattice", "mondrian"]}
pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12)


@given(pairs)
def test_the_pareto_front_by_looking_at_every_pair(points: list[tuple[int, int]]) -> None:
    beaten = {
        i for i, (x, y) in enumerate(points) for u, v in points if u <= x and v <= y and (u, v) != (x, y)
    }
    front = pareto_front(points)
    assert sorted(front) == [i for i in range(len(points)) if i not in beaten]
    assert [points[i] for i in front] == sorted(points[i] for i in front)


def steps(events: list[str]) -> Callable[[Event], None]:
    def listen(event: Event) -> None:
        if event.kind == "step":
            events.append(event.text)

    return listen


def test_a_grid_gives_one_point_per_combination(table: Path, policy: Path) -> None:
    events: list[str] = []
    found = mw.compare(table, policy, grid=GRID, on_event=steps(events))
    assert sorted(p.name for p in found.points) == sorted(
        f"k={k} method={m}" for k in (2, 4) for m in ("optimal-lattice", "mondrian")
    )
    assert next(e for e in events if e.startswith("comparing")) == f"comparing 1 of 4: {found.points[0].name}"
    for point in found.points:
        assert point.status == "holds"
        assert point.worst == max(
            v for a, v in point.beliefs.items() if mw.attacks.ATTACKS[a].about != "ranges"
        )
        assert {"information-loss", "query-error"} <= set(point.metrics)


def test_a_point_is_what_a_release_under_its_policy_measures(table: Path, policy: Path) -> None:
    found = mw.compare(table, policy, grid=GRID)
    for point in found.points:
        release = mw.anonymize(table, point.policy, seed=0, metrics=["query-error"])
        assert {b.attack: b.worst.upper for b in release.beliefs} == point.beliefs
        assert release.metrics == point.metrics
        assert release.grouping.published_rows == point.rows["published"]


def test_the_front_is_that_of_belief_and_utility(table: Path, policy: Path) -> None:
    found = mw.compare(table, policy, grid={"k": [2, 4, 8, 10], "method": ["optimal-lattice", "mondrian"]})
    values = {p.name: (p.worst or Fraction(0), p.metrics["information-loss"]) for p in found.shown}
    for p in found.shown:
        x, y = values[p.name]
        beaten = any(u <= x and v <= y and (u, v) != (x, y) for u, v in values.values())
        assert (p in found.front) == (not beaten)
    upside_down = mw.compare(table, policy, grid={"k": [2, 4, 8]}, utility="granularity")
    assert upside_down.front[-1].metrics["granularity"] == max(
        p.metrics["granularity"] for p in upside_down.points
    )


def test_a_policy_that_is_not_met_is_shown_with_its_reason(table: Path, policy: Path, tmp_path: Path) -> None:
    found = mw.compare(table, policy, tmp_path / "out", grid={"k": [4, 1000]})
    good, bad = found.points
    assert (good.status, bad.status) == ("holds", "not met")
    assert bad.reason
    assert found.ok
    with (tmp_path / "out" / "comparison.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [line["status"] for line in lines] == ["holds", "not met"]
    assert lines[1]["reason"] == bad.reason
    assert bad.reason.split(";")[0][:40] in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_the_folder(table: Path, policy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = mw.compare(table, policy, out, grid=GRID)
    assert sorted(p.name for p in out.iterdir()) == [
        "chart.svg", "comparison.csv", "comparison.json", "index.html", "policies",
    ]  # fmt: skip
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    record = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert [p["name"] for p in record["points"] if p["pareto"]] == [
        p.name for p in found.points if p in found.front
    ]
    for item in record["points"]:
        again = mw.anonymize(table, out / item["policy"], seed=0)
        assert float(again.metrics["information-loss"]) == float(
            Fraction(item["metrics"]["information-loss"])
        )
    page = (out / "index.html").read_text(encoding="utf-8")
    chart = (out / "chart.svg").read_text(encoding="utf-8")
    legend = 0 if len(found.front) == len(found.shown) else 2
    assert chart.count('class="mark"') == len(found.shown) + legend
    assert chart.strip() in page
    assert "prefers-color-scheme" in chart
    assert 'role="img"' in chart
    assert not re.search(r"src=|href=(?!\"#)", page), "a page loads nothing"
    assert all(share_text(p.worst) in page for p in found.points if p.worst is not None)  # 1 in 4, not "1"
    with pytest.raises(DestinationError, match="--overwrite"):
        mw.compare(table, policy, out)
    mw.compare(table, policy, out, grid={"k": [4]}, overwrite=True)
    assert len(list((out / "policies").iterdir())) == 1
    (tmp_path / "else").mkdir()
    with pytest.raises(DestinationError, match="not a comparison"):
        mw.compare(table, policy, tmp_path / "else", overwrite=True)
    assert not [p.name for p in tmp_path.iterdir() if "maskwright-" in p.name]


def test_policies_with_files_can_be_run_from_anywhere(table: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "sex.csv").write_text("level0,level1\nm,person\nf,person\n", encoding="utf-8")
    text = POLICY.replace("sex: {role: quasi-identifier, hierarchy: suppress}",
                          "sex: {role: quasi-identifier, hierarchy: {file: sex.csv}}")  # fmt: skip
    (tmp_path / "sub" / "p.yaml").write_text(text, encoding="utf-8")
    mw.compare(table, tmp_path / "sub" / "p.yaml", tmp_path / "out")
    [written] = (tmp_path / "out" / "policies").iterdir()
    release = mw.anonymize(table, written)
    assert release.ok
    assert not release.history["chosen_by_looking"], "it is the same policy, wherever its files are"


def test_results_are_reused_until_something_changes(table: Path, policy: Path, tmp_path: Path) -> None:
    def cached(**more: Any) -> list[bool]:
        return [p.cached for p in mw.compare(table, policy, grid={"k": [2, 4]}, **more).points]

    assert cached() == [False, False]
    assert cached() == [True, True]
    assert cached(cache=False) == [False, False]
    assert cached(cache=tmp_path / "own") == [False, False]
    assert cached(seed=1) == [False, False]
    assert cached(metrics=[]) == [False, False]
    policy.write_text(POLICY.replace("5%", "6%"), encoding="utf-8")
    assert cached() == [False, False]
    assert cached() == [True, True]
    write_csv(table, patients(41))
    assert cached() == [False, False]
    first = mw.compare(table, policy, grid={"k": [2, 4]})
    again = mw.compare(table, policy, grid={"k": [2, 4]}, cache=False)
    for a, b in zip(first.points, again.points, strict=True):
        assert (a.beliefs, a.metrics, a.rows) == (b.beliefs, b.metrics, b.rows)


def test_the_cache_is_private_and_holds_no_values(table: Path, policy: Path) -> None:
    mw.compare(table, policy, grid=GRID)
    folder = state_folder()
    files = [p for p in folder.rglob("*") if p.is_file()]
    assert files
    for path in [folder, *folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    text = "".join(p.read_text(encoding="utf-8") for p in files)
    for word in ("asthma", "cancer", "130", "age", "zip", "P001", str(table.parent)):
        assert not re.search(
            rf'"[^"]*\b{word}\b[^"]*"\s*:|: "[^"]*\b{word}\b', text.replace("average", "")
        ), word


def test_a_damaged_result_is_measured_again(table: Path, policy: Path) -> None:
    mw.compare(table, policy)
    [path] = (state_folder() / "comparisons").iterdir()
    path.write_text('{"key": "', encoding="utf-8")
    assert not mw.compare(table, policy).points[0].cached


def test_cancelled_in_the_middle_and_resumed(table: Path, policy: Path) -> None:
    events: list[str] = []
    with pytest.raises(Cancelled):
        mw.compare(
            table, policy, grid={"k": [2, 3, 4, 5]}, on_event=steps(events),
            cancelled=lambda: len(events) >= 3,
        )  # fmt: skip
    found = mw.compare(table, policy, grid={"k": [2, 3, 4, 5]})
    assert [p.cached for p in found.points] == [True, True, False, False]


def test_killed_in_the_middle_and_resumed(table: Path, policy: Path, tmp_path: Path) -> None:
    script = f"""
import os, signal, maskwright as mw
def listen(event):
    if event.text.startswith("comparing 3"):
        os.kill(os.getpid(), signal.SIGKILL)
mw.compare({str(table)!r}, {str(policy)!r}, {str(tmp_path / "out")!r}, grid={{"k": [2, 3, 4, 5]}}, on_event=listen)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, timeout=600)
    assert done.returncode == -9
    assert not (tmp_path / "out").exists()
    found = mw.compare(table, policy, tmp_path / "out", grid={"k": [2, 3, 4, 5]})
    assert [p.cached for p in found.points] == [True, True, False, False]


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (
            {"q": [1]},
            "'q' is no setting of this policy; known: method, recoding, k-anonymity.use, k-anonymity.k",
        ),
        ({"k": []}, "needs a list"),
        ({"k": "25"}, "needs a list"),
        ({"method": ["mondriaan"]}, "did you mean 'mondrian'"),
        ({"recoding": ["shuffle"]}, "there is no recoding 'shuffle'"),
        ({"k": list(range(1, 1200))}, "1199 points"),
        ({"l-diversity.l": [2]}, "is no setting"),
    ],
)
def test_a_bad_grid_is_refused(table: Path, policy: Path, grid: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        mw.compare(table, policy, grid=grid)


@pytest.mark.parametrize("other", ["optimal-lattice", "greedy-grouping"])
def test_a_setting_of_some_methods_names_the_form_that_works(table: Path, policy: Path, other: str) -> None:
    """Bare, it is asked of every method of the grid; one has no labels, one has others."""
    values = ["hierarchy", "fixed"]
    with pytest.raises(MaskwrightError, match=r"write .*mondrian\.labels=\.\.\."):
        mw.compare(table, policy, grid={"labels": values, "method": ["mondrian", other]})
    found = mw.compare(table, policy, grid={"mondrian.labels": values, "method": ["mondrian", other]})
    assert len(found.points) == 3
    with pytest.raises(MaskwrightError) as refused:
        mw.compare(table, policy, grid={"labels": ["round"], "method": ["mondrian"]})
    assert "mondrian.labels=" not in str(refused.value), "no method takes that"


def test_a_bad_value_names_the_point(table: Path, policy: Path) -> None:
    with pytest.raises(PolicyError, match=r"k=many: require\[0\]\.k"):
        mw.compare(table, policy, grid={"k": [3, "many"]})


def test_a_setting_that_could_mean_two_things(table: Path, tmp_path: Path) -> None:
    text = POLICY + "recoding: generalise\n"
    text = text.replace(
        "  - {model: simple", "  - {model: p-sensitive-k-anonymity, p: 2, k: 3}\n  - {model: simple"
    )
    (tmp_path / "two.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"k-anonymity\.k or p-sensitive-k-anonymity\.k"):
        mw.compare(table, tmp_path / "two.yaml", grid={"k": [4]})
    found = mw.compare(table, tmp_path / "two.yaml", grid={"k-anonymity.k": [4, 5]})
    assert [dict(p.policy.require[0].parameters)["k"] for p in found.points] == [4, 5]


def test_options_of_one_method_do_not_multiply_the_others(table: Path, policy: Path) -> None:
    grid = {"method": ["optimal-lattice", "mondrian"], "mondrian.cut": ["strict", "balanced"]}
    found = mw.compare(table, policy, grid=grid)
    assert [p.policy.method.name for p in found.points] == ["optimal-lattice", "mondrian", "mondrian"]
    assert any("suppression: left out" in note for p in found.points for note in p.notes)


def test_a_policy_that_does_not_fit_the_table_is_shown(table: Path, policy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(
        POLICY.replace("ward: {role: insensitive, near_unique: allow}", "wart: insensitive"), encoding="utf-8"
    )
    found = mw.compare(table, [policy, other])
    assert [(p.name, p.status) for p in found.points] == [("policy", "holds"), ("other", "refused")]
    assert "wart" in found.points[1].reason
    with pytest.raises(MaskwrightError, match="wart"):
        mw.compare(table, other)


def test_parse_grid() -> None:
    assert parse_grid(["k=2, 5", "method=mondrian"]) == {"k": ["2", "5"], "method": ["mondrian"]}
    for text in ("k", "k=", "=3", "k=2,,3"):
        with pytest.raises(UsageError, match=r"e\.g\. --grid k=2,5,10"):
            parse_grid([text])
    with pytest.raises(UsageError, match="twice"):
        parse_grid(["k=1", "k=2"])


def test_the_command(maskwright: Command, table: Path, policy: Path, tmp_path: Path) -> None:
    done = maskwright("compare", table, "-p", policy, "--grid", "k=2,4,1000", "-o", "out", "--json")
    assert done.code == 0, done.err
    assert [p["status"] for p in done.json["points"]] == ["holds", "holds", "not met"]
    shown = maskwright("compare", table, "-p", policy, "--grid", "k=2,4,1000", "-o", "out", "--overwrite")
    assert shown.code == 0
    assert "k=1000" in shown.out
    assert "not met" in shown.out
    assert "guarantees nothing" in shown.out
    none = maskwright("compare", table, "-p", policy, "--grid", "k=900,1000", "-o", "none")
    assert none.code == 1
    bad = maskwright("compare", table, "-p", policy, "--grid", "k", "-o", "bad")
    assert bad.code == 2
    assert "--grid" in bad.error
    assert not (tmp_path / "bad").exists()
    for option, value in (("--utility", "beauty"), ("--metric", "beauty"), ("--risk", "beauty")):
        wrong = maskwright("compare", table, "-p", policy, option, value, "-o", "bad")
        assert wrong.code == 2
        assert "beauty" in wrong.error
    assert not (tmp_path / "bad").exists()


# -- what was tried is remembered ------------------------------------------------------------------------------


def test_the_first_settings_are_fixed_in_advance(table: Path, policy: Path) -> None:
    for _ in range(2):  # and again: the same settings choose nothing
        release = mw.anonymize(table, policy)
        assert release.history["chosen_by_looking"] is False
        assert not any("tried" in note for note in release.notes)


def test_a_release_remembers_comparisons(table: Path, policy: Path, tmp_path: Path) -> None:
    mw.compare(table, policy, grid={"k": [2, 3, 4]})
    release = mw.anonymize(table, policy, tmp_path / "release")
    assert release.history == {
        "compared": 2, "run": 0, "draws": 0, "since": release.history["since"], "damaged": False,
        "chosen_by_looking": True,
        "why": f"other settings were tried on this input since {release.history['since']} (2 compared): a bound that "
        "holds for settings fixed in advance is only measured here",
    }  # fmt: skip
    assert any("only measured" in note for note in release.notes)
    private = json.loads((tmp_path / "release" / "private" / "manifest.json").read_text(encoding="utf-8"))
    assert private["history"] == release.history
    report = (tmp_path / "release" / "private" / "report.html").read_text(encoding="utf-8")
    assert release.history["why"] in report
    public = "".join(p.read_text(encoding="utf-8") for p in (tmp_path / "release" / "public").iterdir())
    assert "compared" not in public


def test_reused_results_are_looks_too(table: Path, policy: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    mw.compare(table, policy, grid={"k": [2, 3]}, cache=cache)
    forget()
    assert all(p.cached for p in mw.compare(table, policy, grid={"k": [2, 3]}, cache=cache).points)
    assert mw.anonymize(table, policy).history["compared"] == 2


def test_runs_with_other_settings_count(table: Path, policy: Path) -> None:
    mw.anonymize(table, policy)
    other = mw.Policy.load(
        {**mw.Policy.load(policy).to_dict(), "require": [{"model": "k-anonymity", "k": 3}]}
    )
    release = mw.anonymize(table, other)
    assert (release.history["run"], release.history["compared"]) == (1, 0)
    with pytest.raises(MaskwrightError):
        mw.anonymize(table, {**other.to_dict(), "require": [{"model": "k-anonymity", "k": 1000}]})
    assert mw.anonymize(table, other).history["run"] == 2, "a refusal is an outcome too"


def test_another_table_starts_afresh(table: Path, policy: Path) -> None:
    mw.compare(table, policy, grid={"k": [2, 3]})
    write_csv(table, patients(39))
    assert not mw.anonymize(table, policy).history["chosen_by_looking"]


def _balanced(policy: Path) -> dict[str, Any]:
    """A policy that is guaranteed: no column passes through."""
    made = mw.Policy.load(policy).to_dict()
    return {
        **made,
        "unit": "none",
        "columns": made["columns"] | {"ward": "identifier"},
        "require": [{"model": "simple-l-diversity", "l": 2}],
        "method": {"name": "mondrian", "cut": "balanced"},
    }


def test_guaranteed_becomes_measured(table: Path, policy: Path) -> None:
    balanced = _balanced(policy)

    def status() -> set[Any]:
        beliefs = mw.anonymize(table, balanced).beliefs
        return {b.measures["status"] for b in beliefs if "status" in b.measures}

    assert status() == {"guaranteed"}
    mw.compare(table, [balanced, policy])
    assert status() == {"measured"}
    forget()
    assert status() == {"guaranteed"}


def test_an_attack_on_the_folder_remembers_it_too(table: Path, policy: Path, tmp_path: Path) -> None:
    balanced = _balanced(policy)

    def status(name: str) -> Any:
        mw.anonymize(table, balanced, tmp_path / name)
        found = mw.attack(tmp_path / name, "minimality")
        assert not isinstance(found, list)
        return found.measures["status"]

    assert status("first") == "guaranteed"
    mw.compare(table, [balanced, policy])
    assert status("second") == "measured"


def test_a_damaged_record_guarantees_nothing(table: Path, policy: Path) -> None:
    mw.anonymize(table, policy)
    [path] = (state_folder() / "inputs").iterdir()
    path.write_text("rubbish\n", encoding="utf-8")
    release = mw.anonymize(table, policy)
    assert release.history["damaged"]
    assert release.history["chosen_by_looking"]
    assert any("cannot be read" in note for note in release.notes)


def test_a_state_folder_that_cannot_be_written(
    table: Path, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("MASKWRIGHT_STATE", str(tmp_path / "file" / "state"))
    release = mw.anonymize(table, policy)  # a release is not refused for it, but says so
    assert any("MASKWRIGHT_STATE" in note for note in release.notes)
    with pytest.raises(DestinationError, match="MASKWRIGHT_STATE"):
        mw.compare(table, policy, grid={"k": [2, 3]}, cache=False)


def test_the_record_holds_hashes_and_days_only(table: Path, policy: Path) -> None:
    mw.anonymize(table, policy)
    [path] = (state_folder() / "inputs").iterdir()
    assert re.fullmatch(r"[0-9a-f]{64}\.jsonl", path.name)
    line = json.loads(path.read_text(encoding="utf-8"))
    assert sorted(line) == ["day", "key", "kind", "policy"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", line["day"])
    assert re.fullmatch(r"[0-9a-f]{64}", line["policy"])


def test_a_differentially_private_release_stands_beside_the_others(
    maskwright: Command, tmp_path: Path
) -> None:
    """What it would promise is told with its figures: the beliefs beside it are those of random worlds."""
    rows = [["fm"[i % 2], ["flu", "cold"][i % 3 % 2]] for i in range(400)]
    table = write_csv(tmp_path / "t.csv", rows, ["sex", "disease"])
    columns = {"sex": {"role": "quasi-identifier", "levels": ["exact"]}, "disease": "sensitive"}
    policies = []
    for name, method in (
        ("private", {"name": "dp-sample", "epsilon": 1, "delta": "1e-3"}),
        ("plain", "mondrian"),
    ):
        asked = {
            "columns": columns,
            "require": [{"model": "k-anonymity", "k": 2}],
            "method": method,
            "unit": "none",
        }
        (tmp_path / f"{name}.yaml").write_text(json.dumps(asked), encoding="utf-8")
        policies += ["-p", tmp_path / f"{name}.yaml"]
    shown = maskwright("compare", table, *policies, "-o", "out")
    assert shown.code == 0, shown.err
    assert "  1: differentially private where its settings are fixed in advance (ε = 1" in shown.out
    assert "2: diff" not in shown.out
    page = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    assert "differentially private where" in page
