"""Options, refusals, progress and what the method reports."""

from __future__ import annotations

import itertools
import re
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.model import Model
from maskwright.domain.rules import DistinctAtLeast, SizeAtLeast
from maskwright.domain.settings import parse_settings
from maskwright.domain.summary import Shared, Summary
from maskwright.errors import Cancelled, NotVerified, PolicyError, PolicyNotMet
from maskwright.kernels import compiled
from maskwright.methods import METHODS, optimal_lattice
from maskwright.methods._lattice import sweep
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.models import MODELS
from maskwright.runtime.events import Event, Progress
from tests.support import Monotone, Rules, adult, summarise, task_of

AGE = Hierarchy.of("age", ["30", "31", "40", "41"], [("decade", ["3*", "3*", "4*", "4*"])])
SEX = Hierarchy.of("sex", ["f", "m"], [])
K2 = Monotone(rules=(SizeAtLeast(2),))


def table(ages: str, sexes: str) -> Summary:
    return summarise([AGE, SEX], [ages.split(), sexes.split()])


def test_registered_and_parsed_from_a_policy() -> None:
    method = parse_settings(
        METHODS["optimal-lattice"], {"suppression": "2%", "objective": "precision"}, "method"
    )
    assert isinstance(method, OptimalLattice)
    assert method.suppression == Fraction(1, 50)


@pytest.mark.parametrize(
    "values", [{"suppression": 1.5}, {"objective": "beauty"}, {"budget_s": 0}, {"suppress": "all"}, {"k": 3}]
)
def test_refuses_bad_options(values: dict[str, object]) -> None:
    with pytest.raises(PolicyError):
        parse_settings(OptimalLattice, values, "method")


def test_the_page_names_every_model_without_a_rule() -> None:
    page = (Path(__file__).parents[2] / "docs/methods/optimal-lattice.md").read_text(encoding="utf-8")
    table = page.split("## Which models are compiled")[1].split("## Large lattices")[0]
    named = {
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([^`]+)`", line)
    }
    assert named == {name for name, model in MODELS.items() if model.kernel is Model.kernel}


def test_the_grouping_has_labels_classes_and_levels() -> None:
    grouping = OptimalLattice().group(task_of(table("30 31 40 41", "f f m m"), [K2]))
    assert grouping.levels == (1, 0)
    texts = [[labels.texts[i] for i in labels.of_group] for labels in grouping.labels]
    assert texts == [["3*", "4*"], ["f", "m"]]
    assert grouping.classes.sizes.tolist() == [2, 2]
    assert grouping.search["levels"] == {"age": "decade", "sex": "exact"}
    assert grouping.search["optimal"]


def test_dropped_rows_are_in_no_group_and_starred_rows_are_one() -> None:
    summary = table("30 30 40 41 31", "f f m m f")
    task = task_of(summary, [K2], levels={"age": [0], "sex": [0]})
    dropped = OptimalLattice(suppression="3/5").group(task)
    assert (dropped.suppressed_rows, dropped.dropped_rows, dropped.starred) == (3, 3, None)
    starred = OptimalLattice(suppression="3/5", suppressed_rows="star").group(task)
    assert (starred.suppressed_rows, starred.dropped_rows, starred.starred) == (3, 0, 1)
    assert [labels.texts[labels.of_group[1]] for labels in starred.labels] == ["*", "*"]
    assert starred.classes.rows.tolist() == [2, 3]


def test_a_starred_group_that_is_too_small_makes_a_node_infeasible() -> None:
    task = task_of(table("30 30 31", "f f f"), [K2])
    dropped = OptimalLattice(objective="height", suppression="1/3")
    starred = OptimalLattice(objective="height", suppression="1/3", suppressed_rows="star")
    assert dropped.group(task).levels == (0, 0)
    assert starred.group(task).levels == (1, 0)


def test_small_classes_says_nothing_about_values_and_failing_classes_does() -> None:
    summary = summarise([AGE], [["30", "30", "31", "31"]], {"disease": ["a", "b", "a", "a"]})
    models = [Monotone(rules=(SizeAtLeast(2), DistinctAtLeast("disease", 2)))]
    by_size = OptimalLattice(suppression="1/2").group(task_of(summary, models))
    failing = OptimalLattice(suppression="1/2", suppress="failing-classes").group(task_of(summary, models))
    assert (by_size.levels, by_size.suppressed_rows) == ((1,), 0)
    assert (failing.levels, failing.suppressed_rows) == ((1,), 0)
    exact = task_of(summary, models, levels={"age": [0]})
    assert OptimalLattice(suppression="1/2", suppress="failing-classes").group(exact).suppressed_rows == 2
    with pytest.raises(PolicyNotMet):
        OptimalLattice(suppression="1/2").group(exact)


def test_too_few_people_names_the_largest_k() -> None:
    from maskwright.models import MODELS

    task = task_of(table("30 31 40", "f m m"), [MODELS["k-anonymity"](k=5)])
    with pytest.raises(
        PolicyNotMet, match="even with everything generalised the table has 3 people; the largest k"
    ):
        OptimalLattice(suppression="1").group(task)


def test_too_much_suppression_names_the_share_that_would_do() -> None:
    task = task_of(table("30 30 30 31", "f f f f"), [K2], levels={"age": [0], "sex": [0]})
    with pytest.raises(PolicyNotMet, match=r"suppresses 1 rows \(25 %\); suppression: 0.25 would suffice"):
        OptimalLattice(suppression="0.2").group(task)
    assert OptimalLattice(suppression="0.25").group(task).suppressed_rows == 1


def test_the_named_share_is_enough() -> None:
    from maskwright.methods._lattice.infeasibility import sufficient_share

    for rows, total in [(1, 3), (14, 500), (1, 30162), (30162, 30162), (299, 1000), (2, 10**9)]:
        share = Fraction(sufficient_share(rows, total))
        assert share * total >= rows
        assert share <= Fraction(rows, total) * Fraction(106, 100) + Fraction(1, 1000)


def test_a_node_that_suppresses_everything_is_no_answer() -> None:
    task = task_of(table("30 31", "f m"), [Monotone(rules=(SizeAtLeast(3),))])
    with pytest.raises(PolicyNotMet):
        OptimalLattice(suppression="1").group(task)


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(PolicyNotMet, match="no rows"):
        OptimalLattice().group(task_of(summarise([AGE], [[]]), [K2]))


def test_people_with_several_rows_count_once() -> None:
    """Three rows in two tuples, all of one person and another: the class at the top has two people, not three."""
    summary = replace(
        table("30 31", "f f"),
        rows=np.array([2, 1]),
        sizes=np.array([1, 0]),
        shared=Shared(np.array([0, 1]), np.array([0, 0]), 1),
    )
    assert OptimalLattice().group(task_of(summary, [K2])).levels == (1, 0)
    with pytest.raises(PolicyNotMet):
        OptimalLattice().group(task_of(summary, [Monotone(rules=(SizeAtLeast(3),))]))


def test_a_kernel_that_disagrees_with_its_model_is_caught() -> None:
    class Wrong(Rules):
        def kernel(self, context: object) -> tuple[SizeAtLeast, ...]:
            return ()

    summary = summarise([AGE], [["30", "31"]], {"disease": ["a", "b"]})
    with pytest.raises(NotVerified, match="please report"):
        OptimalLattice().group(task_of(summary, [Wrong(rules=(DistinctAtLeast("disease", 2),))]))


def test_cancelled_while_searching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "kernel_available", lambda: False)
    task = task_of(adult(), [K2], progress=Progress(cancelled=lambda: True))
    with pytest.raises(Cancelled):
        OptimalLattice(suppression="0.02").group(task)


def test_a_budget_gives_a_proven_gap_and_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which a hundredth of a second passes at every look, on any machine."""
    events: list[Event] = []
    optimum = float(
        Fraction(OptimalLattice(suppression="0.02").group(task_of(adult(), [K2])).search["score"])
    )
    task = task_of(
        adult(), [Monotone(rules=(SizeAtLeast(2),), known=False)], progress=Progress(events.append)
    )
    clock = SimpleNamespace(monotonic=itertools.count(0, 0.01).__next__, process_time=time.process_time)
    for module in (optimal_lattice, sweep):
        monkeypatch.setattr(module, "time", clock)
    found = OptimalLattice(suppression="0.02", budget_s=1).group(task)
    score = float(Fraction(found.search["score"]))
    assert not found.search["optimal"]
    assert found.search["bound"] <= optimum <= score
    assert found.search["gap"] == pytest.approx((score - found.search["bound"]) / score)
    assert any("best score" in event.text for event in events)


@pytest.mark.parametrize("weight", [Fraction(0), Fraction(1, 3), Fraction(5)])
def test_weights_decide_what_is_kept(weight: Fraction) -> None:
    ages, sexes = "30 30 31 31 40 40 41 41", "f m f m f m f m"
    task = task_of(table(ages, sexes), [K2], weights={"sex": weight})
    levels = OptimalLattice().group(task).levels
    assert levels == ((0, 1) if weight < 1 else (1, 0))
