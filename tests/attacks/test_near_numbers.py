"""Numbers near the truth: windows by every guess, beliefs by every possible world, and whole releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maskwright as mw
from maskwright.attacks.homogeneity import Homogeneity
from maskwright.attacks.learned import Learned
from maskwright.attacks.minimality import Minimality
from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.near_numbers import largest_window, number_windows
from maskwright.methods.mondrian import Mondrian
from maskwright.models.belief import BeliefAtMost
from maskwright.models.k_anonymity import KAnonymity
from maskwright.perturb.near_truth import near_truth
from maskwright.perturb.publication import PerturbedFamily, log_likelihoods, perturbed_family
from maskwright.pipeline.gates import judge_belief
from maskwright.policy.policy import Policy
from maskwright.policy.published_column import Publishing
from maskwright.report.details import detail_lines
from maskwright.report.risk_and_usefulness import risk_section
from tests.amounts import LONG
from tests.attacks.build import Values, beliefs_by_counting, release, target_of
from tests.promise.posterior import broken, enumerated
from tests.promise.tables import Case, near_by_guessing
from tests.support import summarise

TENTH = Fraction(1, 10)
LEARNS = Adversary("learns", True, learns=True)
NUMBERS = st.sampled_from(
    ["-110", "-100", "-5.5", "0", "5", "5.5", "91", "100", "104", "109", "1e2", "300", None]
)
# every order of the values of every class is a world: 14 thousand of three classes of four, a million of five
CLASSES = st.lists(st.lists(NUMBERS, min_size=1, max_size=5 if LONG else 4), min_size=1, max_size=3)
SHARES = st.sampled_from([Fraction(0), Fraction(1, 100), TENTH, Fraction(1, 3), Fraction(9, 10)])


@given(st.lists(NUMBERS.filter(lambda v: v is not None), min_size=1, unique=True), SHARES)
def test_windows_are_what_one_guess_comes_near_to(values: list[str], within: Fraction) -> None:
    found = {frozenset(window) for window in number_windows(tuple(values), within)}
    assert found == {frozenset(s) for s in near_by_guessing(values, within)}


def target(classes: Sequence[Values], within: Fraction = TENTH, largest: str = "1/2", **more: Any) -> Target:
    models = [BeliefAtMost(max=Fraction(largest), attribute="s", within=within)]
    named = [{f"t{g}": values} for g, values in enumerate(classes)]
    return release(named, models=models, **more)


def test_the_example_of_the_page() -> None:
    found = Homogeneity().run(target([["100", "104", "109", "300"], ["40", "60", "80", "120"]]), Adversary())
    assert found.worst.after == Fraction(3, 4)
    assert found.worst.before == Fraction(
        4, 8
    )  # 100, 104, 109, 120: 120 lies within 10 % of 108, and 100 as well
    assert found.worst.why == "3 of them have s between 100 and 120, and the class shows it"


@given(CLASSES, SHARES)
def test_beliefs_are_those_of_possible_worlds(classes: list[Values], within: Fraction) -> None:
    known = [v for values in classes for v in values if v is not None]
    guesses = [sorted(s) for s in near_by_guessing(known, within)]
    named = [{f"t{g}": values} for g, values in enumerate(classes)]
    counted = beliefs_by_counting(named, lambda world: True, guesses) if guesses else {}
    worst = max((x for row in (counted or {}).values() for x in row), default=0)
    attacked = target(classes, within)
    assert Homogeneity().run(attacked, Adversary()).worst.after == worst
    shares = attacked.models[0].shares(attacked.grouping.classes)  # type: ignore[attr-defined]
    assert max(shares) == worst


@given(CLASSES, SHARES)
def test_many_windows_lose_no_largest_one(classes: list[Values], within: Fraction) -> None:
    counts = target(classes).grouping.classes.sensitive["s"]
    windows = number_windows(counts.values, within)
    every = windows.gathered(counts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maskwright.domain.near_numbers.MOST_WINDOWS", 0)
        largest = windows.gathered(counts)
    for found in (every, largest):
        most = [max(found.of_class(c).values(), default=0) for c in range(counts.n_classes)]
        assert most == largest_window(counts, within).tolist()


def test_who_learns_adds_up_what_is_learned_of_the_numbers_in_a_window() -> None:
    """Smokers earn about 100, others about 300: who learns it tells the two of a mixed class apart."""
    smoker = ["yes", "no", "yes", "yes", "no", "no"]
    group = ["1", "1", "2", "2", "3", "3"]
    incomes = ["100", "300", "104", "109", "310", "290"]
    columns = [Hierarchy.of("smoker", ["no", "yes"], []), Hierarchy.of("zip", ["1", "2", "3"], [])]
    summary = summarise(columns, [smoker, group], {"s": incomes})
    bound = BeliefAtMost(max=Fraction(1, 2), attribute="s", within=TENTH)
    near = target_of(summary, summary.codes[1].astype(np.int64) - 1, [bound])
    sets = tuple(tuple(s) for s in number_windows(summary.sensitive["s"].values, TENTH))
    assert len(sets) == 2
    found = Learned().run(near, LEARNS).measures["attributes"]["s"]
    by_hand = Learned().run(replace(near, secrets={"s": sets}), LEARNS).measures["attributes"]["s"]
    assert (
        (found["people_above"], found["worst"].after)
        == (by_hand["people_above"], by_hand["worst"].after)
        == (4, 1)
    )


def test_who_knows_the_method_believes_what_the_worlds_say() -> None:
    """The same windows as sets of values that a policy names: every attack says the same of both."""
    table = [{"t1": ["100"], "t2": ["104"], "t3": ["300"], "t4": ["310"]}, {"u1": ["20"], "u2": ["21"]}]
    settings = {"method": Mondrian(cut="strict"), "models": [KAnonymity(k=2)]}
    bound = BeliefAtMost(max=Fraction(1, 2), attribute="s", within=TENTH)
    near = release(table, method=settings["method"], models=[*settings["models"], bound])
    sets = tuple(tuple(s) for s in number_windows(tuple(near.grouping.classes.sensitive["s"].values), TENTH))
    named = replace(near, secrets={"s": sets})
    knows = Adversary("knows-method", True)
    if Minimality().applies(near):
        assert Minimality().run(near, knows).worst.after == Minimality().run(named, knows).worst.after
    verdict = judge_belief(bound, near)
    by_sets = judge_belief(BeliefAtMost(max=Fraction(1, 2), attribute="s", sets=sets), near)
    assert (verdict.ok, verdict.worst) == (by_sets.ok, by_sets.worst)


def a_table(incomes: Sequence[int | str]) -> pd.DataFrame:
    ages = ["20"] * (len(incomes) // 2) + ["60"] * (len(incomes) - len(incomes) // 2)
    return pd.DataFrame({"age": ages, "income": list(map(str, incomes))})


def a_policy(largest: str, **more: Any) -> dict[str, Any]:
    asked = {"model": "belief", "max": largest, "attribute": "income", "within": "10%", **more}
    return {
        "unit": "none",
        "columns": {"age": "quasi-identifier", "income": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 2}, asked],
        "method": {"name": "optimal-lattice"},
    }


def test_a_release_is_refused_and_one_that_holds_is_guaranteed() -> None:
    incomes = [100, 104, 109, 300, 40, 60, 80, 120]
    made = mw.anonymize(a_table(incomes), a_policy("3/4"))
    [verdict] = [v for v in made.verdicts if v.model == "belief"]
    assert (verdict.ok, verdict.worst, verdict.status) == (True, Fraction(3, 4), "guaranteed")
    [promise] = verdict.promises
    assert "within 0.1 of the truth" in [i.setting for i in promise.ingredients]
    with pytest.raises(mw.MaskwrightError, match=r"belief.*(3/4|0.75)"):
        mw.anonymize(a_table(incomes), a_policy("1/2"))


def test_somebody_who_knows_facts_is_not_promised_anything() -> None:
    incomes = [100, 104, 300, 400, 50, 100, 200, 400]
    with pytest.raises(mw.MaskwrightError, match=r"belief is taken to be 1"):
        mw.anonymize(a_table(incomes), a_policy("1/2", adversary="insider", facts=1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"within": "1"}, "share of the truth from 0 to below 1"),
        ({"within": "-1%"}, "share of the truth from 0 to below 1"),
        ({"sets": [["100", "104"]]}, "keep one"),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    with pytest.raises(mw.MaskwrightError, match=message):
        mw.anonymize(a_table([1, 2, 3, 4]), a_policy("1/2", **change))


def test_values_that_are_no_numbers_are_refused_before_the_search() -> None:
    with pytest.raises(mw.MaskwrightError, match=r"'income' holds 'flu'.*prepare"):
        mw.anonymize(a_table([1, 2, "flu", 4]), a_policy("1/2"))


def test_few_ranges_are_attacked_one_by_one_and_nothing_is_said_of_single_numbers() -> None:
    made = mw.anonymize(a_table([100, 104, 109, 300, 40, 60, 80, 120]), a_policy("3/4"))
    assert next(b for b in made.beliefs if b.attack == "homogeneity").worst.after == Fraction(3, 4)
    assert "each number by itself" not in risk_section(made.beliefs) + " ".join(made.notes)


def test_too_many_numbers_are_counted_and_the_rest_is_taken_for_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.domain.near_numbers.MOST_WINDOWS", 1)
    incomes = [100, 104, 109, 300, 40, 60, 80, 120]
    made = mw.anonymize(a_table(incomes), a_policy("3/4"))
    [verdict] = [v for v in made.verdicts if v.model == "belief"]
    assert (verdict.ok, verdict.worst, verdict.status) == (True, Fraction(3, 4), "guaranteed")
    attacked = next(b for b in made.beliefs if b.attack == "homogeneity")
    assert attacked.worst.after == Fraction(1, 4), (
        "the attacks of the report look at single numbers, and say so"
    )
    said = "income: what is stated is about each number by itself. The requirement asks about numbers within 10 % of"
    assert [said in line for line in made.notes].count(True) == 1
    assert [said in line for line in detail_lines(attacked)].count(True) == 1
    assert said in risk_section(made.beliefs)
    with pytest.raises(mw.MaskwrightError, match=r"is taken to be 1"):
        mw.anonymize(a_table(incomes), a_policy("3/4", adversary="learns"))


def test_every_assignment_of_a_small_table() -> None:
    """Balanced cuts, guaranteed: worlds that make the same release, one by one, keep the bound for every guess."""
    case = Case(
        ("q1",), tuple((v,) for v in "1122"), tuple("abcd"), {"s": ("100", "104", "300")}, {"s": (1, 1, 1)}
    )
    bound = {"model": "belief", "max": "1/2", "attribute": "s", "within": "10%"}
    policy = Policy.load(
        {
            "columns": {"q1": "quasi-identifier", "s": "sensitive"},
            "require": [{"model": "k-anonymity", "k": 2}, bound],
            "method": "mondrian",
        }
    )
    outputs = enumerated(case, policy, 3000)
    assert any(b.guaranteed for told in outputs.values() for b in told.bounds)
    assert not broken(case, outputs)


@st.composite
def perturbed(draw: st.DrawFn) -> tuple[PerturbedFamily, list[int]]:
    """One column in any of the ways, and the classes of its rows."""
    ways: list[dict[str, Any]] = [
        {"noise": {"share": "0.2"}}, {"rank-swap": "0.3"}, {"microaggregate": 2}, {"round": "20"}, {"top-code": "105"},
        {"pram": "0.7"},
    ]  # fmt: skip
    values = draw(
        st.lists(st.sampled_from(["100", "104", "109", "130", "300", None]), min_size=5, max_size=9)
    )
    texts = {"x": np.array([*values, "100", "300"], dtype=object)}
    publishing = Publishing.model_validate(draw(st.sampled_from(ways)))
    family = perturbed_family(["x"], publishing, texts, np.random.default_rng(draw(st.integers(0, 99))))
    return family, [draw(st.integers(0, 1)) for _ in texts["x"]]


@given(perturbed(), SHARES)
def test_changed_numbers_by_bayes_row_by_row(
    drawn: tuple[PerturbedFamily, list[int]], within: Fraction
) -> None:
    """P(truth i | row j) ∝ P(row j | truth i), over every row of the table; the best guess, by all of them."""
    family, classes = drawn
    n = len(classes)
    true = family.true[:, 0]
    coded = bool(family.categories)
    texts = [None if np.isnan(v) else family.categories[int(v)] if coded else f"{v:g}" for v in true]
    everybody = np.arange(n)
    worst = 0.0
    for group in set(classes):
        rows = [j for j in range(n) if classes[j] == group]
        believed: dict[str | None, float] = dict.fromkeys(texts, 0.0)
        for j in rows:
            logs = log_likelihoods(family, everybody, family.shown, family.shown[[j]])[:, 0]
            likely = np.exp(logs - logs.max())
            for i in range(n):
                believed[texts[i]] += float(likely[i] / likely.sum()) / len(rows)
        near = near_by_guessing(texts, within)
        worst = max(worst, *(sum(believed[v] for v in window) for window in near))
    found = near_truth(family, "x", within, everybody, np.array(classes))
    assert found.worst == pytest.approx(worst, abs=1e-9)


def test_means_of_groups_tell_more_than_the_true_values() -> None:
    """100 and 130 are far apart; in groups {100, 115, 130} each may be 115 or 130, which are not."""
    texts = {"x": np.array(["100", "115", "130"] * 2, dtype=object)}
    family = perturbed_family(["x"], Publishing(microaggregate=3), texts, np.random.default_rng(0))
    assert len(set(family.shown[:, 0])) == 2  # {100, 100, 115}, {115, 130, 130}
    found = near_truth(family, "x", Fraction(1, 10), np.array([0, 2]), np.array([0, 0]))
    assert (found.worst, found.low, found.high) == (pytest.approx(2 / 3), "115", "130")


def test_a_requirement_on_changed_numbers_counts_what_they_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    incomes = [100, 130, 300, 400, 115, 115, 300, 400] * 2
    policy = a_policy("1/2")
    policy["columns"]["income"] = {"role": "sensitive", "publish": {"round": 100}}
    made = mw.anonymize(a_table(incomes), policy)
    [verdict] = [v for v in made.verdicts if v.model == "belief"]
    assert (verdict.ok, verdict.status) == (True, "measured")
    [found] = [b for b in made.beliefs if b.attack == "perturbed-numbers"]
    assert found.worst.after == verdict.worst
    policy["require"][1]["max"] = "1"
    policy["columns"]["income"] = {"role": "sensitive", "publish": {"noise": {"share": "0.1"}}}
    [whole] = [
        b for b in mw.anonymize(a_table(incomes), policy, seed=1).beliefs if b.attack == "perturbed-numbers"
    ]
    monkeypatch.setattr("maskwright.perturb.near_truth.MOST_PAIRS", 64)
    monkeypatch.setattr("maskwright.perturb.near_truth.FEWEST_VALUES", 4)
    [some] = [
        b for b in mw.anonymize(a_table(incomes), policy, seed=1).beliefs if b.attack == "perturbed-numbers"
    ]
    assert (whole.kind, some.kind) == ("exact", "estimated")
    assert float(some.worst.after) == pytest.approx(float(whole.worst.after), abs=0.1)
    monkeypatch.setattr("maskwright.perturb.near_truth.MOST_PAIRS", 1)
    policy["require"][1]["max"] = "1/2"
    with pytest.raises(
        mw.MaskwrightError, match=r"different true values are too many to compare.*taken to be 1"
    ):
        mw.anonymize(a_table([*incomes[:-1], 90]), policy)
