"""The verdict in words: percentages, no tautologies, and a sentence where a belief is above what was required."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pandas as pd
import yaml

import maskwright as mw
from maskwright.attacks.background_knowledge import NOT_PROTECTED, TAUTOLOGY
from maskwright.cli.terminal import release_lines
from maskwright.domain.beliefs import NOT_COMPUTED, Belief, Beliefs
from maskwright.report.report import report_page, worst_belief
from maskwright.report.verdict_words import headline_beliefs, reconciling_words, verdict_words

AGES = {"age": {"role": "quasi-identifier", "levels": [0]}, "disease": "sensitive"}


def released(diseases: dict[int, list[str]], *require: dict[str, Any]) -> mw.Release:
    """One class for each age, with these diseases."""
    rows = [(age, disease) for age, found in diseases.items() for disease in found]
    asked = [{"model": "k-anonymity", "k": 2}, *require]
    return mw.anonymize(pd.DataFrame(rows, columns=["age", "disease"]), {"columns": AGES, "require": asked})


def background(release: mw.Release) -> Beliefs:
    return next(b for b in release.beliefs if b.attack == "background-knowledge")


def test_what_follows_without_the_release_is_no_finding() -> None:
    """Who has not flu has a cold, whatever is published."""
    release = released({30: ["flu", "cold"] * 2, 40: ["flu", "cold", "cold"]})
    assert background(release).worst.after == 1
    assert background(release).measures["idle"] == TAUTOLOGY
    assert background(release) not in headline_beliefs(release)
    found = worst_belief(release)
    assert found is not None
    assert found.beliefs.worst.upper < 1
    audit = mw.audit(release.table, ["age"], ["disease"])
    said = [severity for severity, text in audit.sentences() if text.startswith("background-knowledge")]
    assert said == ["note"]


def test_what_the_release_excludes_is_one() -> None:
    release = released({30: ["flu", "cold"] * 2, 40: ["flu", "cold", "mumps"]})
    assert background(release).worst.after == 1
    assert "idle" not in background(release).measures
    assert background(release) in headline_beliefs(release)


def test_values_that_the_policy_does_not_protect_head_nothing() -> None:
    release = released(
        {30: ["flu"] * 3 + ["cold"], 40: ["HIV", "cold", "flu", "flu"]},
        {"model": "simple-l-diversity", "l": 2, "attribute": "disease", "values": ["HIV"]},
    )
    assert background(release).measures["idle"] == NOT_PROTECTED
    assert background(release) not in headline_beliefs(release)


def test_risk_and_usefulness_in_percent() -> None:
    words = list(verdict_words(released({30: ["flu", "cold"] * 2, 40: ["flu", "cold", "mumps", "HIV"]})))
    assert words[0] == (
        "Risk: nobody is found with more than a chance of 1 in 4; 0 people were alone in their class before, 0 are now."
    )
    assert (
        words[-1] == "Usefulness: 100 % of the detail of the quasi-identifiers is kept, in 100 % of the rows."
    )
    release = released({30: ["flu", "cold"] * 2, 40: ["flu", "cold", "mumps"]})
    assert not any("e-" in line or "/1" in line for line in verdict_words(release))
    assert all(line in list(release_lines(release)) for line in verdict_words(release))


def test_a_chance_to_find_somebody_by_more_than_the_quasi_identifiers_is_in_the_first_sentence() -> None:
    items = ["a,b", "a,b", "a", "c,b", "a", "a", "b", "b,a"]
    table = pd.DataFrame({"age": [30] * 4 + [40] * 4, "items": items})
    columns = {"age": AGES["age"], "items": {"role": "sensitive", "multivalued": ","}}
    sentences = {}
    for shown in ("items", "nothing"):
        rows = table.assign(items="a,b") if shown == "nothing" else table
        release = mw.anonymize(rows, {"columns": columns, "require": [{"model": "k-anonymity", "k": 2}]})
        sentences[shown] = next(verdict_words(release))
    more = "1 in 4 by the quasi-identifiers alone, but with 100 % by more than these (known-items); 0 people"
    assert more in sentences["items"]
    assert "1 in 4; 0 people" in sentences["nothing"]


def test_a_bound_is_told_as_a_bound_beside_what_was_counted() -> None:
    release = released({30: ["flu", "cold"] * 2, 40: ["flu", "cold", "mumps", "HIV"]})
    tenth, half = Fraction(1, 10), Fraction(1, 2)
    bounded = Beliefs(
        "minimality", "insider", "bounded", Belief(tenth, Fraction(1), "anybody", "too few worlds")
    )
    counted = Beliefs("homogeneity", "insider", "exact", Belief(tenth, half, "somebody", "a share"))
    words = " ".join(verdict_words(replace(release, beliefs=(bounded, counted))))
    assert (
        "is at most 100 % (minimality; 1 in 10 before the release); what was counted exactly is 1 in 2"
        in words
    )
    heads = {kind: report_page(replace(release, beliefs=(found,)), {}, {}) for kind, found in
             (("bounded", bounded), ("exact", counted))}  # fmt: skip
    assert '<p class="figure">at most 100 %<span>' in heads["bounded"]
    assert '<p class="figure">1 in 2<span>' in heads["exact"]
    sure = Beliefs("homogeneity", "insider", "exact", Belief(half, Fraction(1), "somebody", "a share"))
    words = " ".join(verdict_words(replace(release, beliefs=(bounded, sure))))
    assert "is 100 % (homogeneity; 1 in 2 before the release)." in words, (
        "of equal ones the one that is no mere bound"
    )


def test_what_was_drawn_is_told_beside_the_upper_end_of_its_interval() -> None:
    release = released({30: ["flu", "cold"] * 2, 40: ["flu", "cold", "mumps", "HIV"]})
    drawn = Belief(Fraction(1, 10), Fraction(1, 8), "somebody", "drawn", (0.05, 0.25))
    words = " ".join(
        verdict_words(replace(release, beliefs=(Beliefs("minimality", "insider", "sampled", drawn),)))
    )
    assert (
        "is 1 in 4 (minimality; 1 in 10 before the release; 1 in 8 in what was drawn, of which this is"
        in words
    )


def test_what_was_not_computed_is_in_the_sentence_with_the_number() -> None:
    release = released({30: ["flu", "cold"] * 2, 40: ["flu", "cold", "mumps", "HIV"]})
    unknown = Belief(Fraction(0), Fraction(1), "anybody", "too large")
    lost = [Beliefs(name, "insider", NOT_COMPUTED, unknown) for name in ("intersection", "absence")]
    sets = Beliefs("known-items", "insider", NOT_COMPUTED, unknown)
    two = "; not computed: intersection, absence, which count as 100 %"
    cut = replace(release, beliefs=(*release.beliefs, *lost, sets))
    words = list(verdict_words(cut))
    assert words[0].endswith("0 are now; not computed: known-items, which counts as 100 %.")
    assert words[1].startswith("Risk: the most that anybody can believe about a person's value is ")
    assert words[1].endswith(f"){two}.")
    assert all(line in list(release_lines(cut)) for line in words)
    page = report_page(cut, {}, {})
    assert (
        "<h2>The most that anybody can believe about anybody; not computed: intersection, absence, known-items, which "
        "count as 100 %</h2>" in page
    )
    assert any(two in line for line in verdict_words(replace(release, beliefs=tuple(lost))))
    assert not any("not computed" in line for line in verdict_words(release))


def test_values_that_nobody_else_has_are_in_the_first_lines() -> None:
    alone = released({30: ["1.17", "2.40", "3.99", "4.01"], 40: ["5.55", "6", "7.25", "7.25"]})
    [line] = [line for line in alone.warnings if "occur once" in line]
    assert line.startswith("75 % of the values of disease occur once")
    shared = released({30: ["flu", "cold"] * 2, 40: ["flu", "cold", "mumps", "HIV"]})
    assert not any("occur once" in line for line in shared.warnings)
    paid = pd.DataFrame({"age": [30] * 6, "pay": [1001, 1002, 1003, 2001, 2002, 2003]})
    columns = {"age": "quasi-identifier", "pay": {"role": "sensitive", "publish": {"round": 1000}}}
    rounded = mw.anonymize(paid, {"columns": columns, "require": [{"model": "k-anonymity", "k": 2}]})
    assert not any("occur once" in line for line in rounded.warnings), "what is published occurs three times"


def test_a_belief_above_what_was_required_is_explained_and_one_below_is_not() -> None:
    rule = {"model": "simple-l-diversity", "l": 2, "attribute": "disease"}
    release = released({30: ["flu", "cold"] * 2, 40: ["flu", "cold", "mumps"]}, rule)
    worst = background(release)
    [sentence] = reconciling_words(release, worst)
    assert "none of them bounds this belief (background-knowledge: " in sentence
    assert "or bound it" not in sentence, (
        "who has no flu has a cold or mumps: of all people 4 in 5 have a cold"
    )
    assert sentence in list(verdict_words(release))
    assert list(reconciling_words(release, Beliefs.of(worst.as_dict()))) == [sentence], (
        "also of a loaded release"
    )
    low = Belief(Fraction(1, 4), Fraction(1, 2), "somebody", "a share")
    assert list(reconciling_words(release, Beliefs("homogeneity", "neighbour", "exact", low))) == []
    # a bound below the table's own share is no advice
    high = Belief(Fraction(2, 3), Fraction(1), "somebody", "a share")
    [other] = reconciling_words(release, Beliefs("homogeneity", "neighbour", "exact", high))
    assert "max:" not in other


ILLS = ["flu", "cold", "mumps", "ulcer"]
KNOWN = {"model": "simple-l-diversity", "l": 2, "attribute": "disease"}


def remedy(release: mw.Release, worst: Beliefs) -> dict[str, Any]:
    """The requirement, and perhaps the method, that the sentence on a belief proposes."""
    [sentence] = reconciling_words(release, worst)
    rule, _, method = sentence.partition("or bound it")[2].partition(" with method: ")
    found = {"require": [yaml.safe_load(rule[rule.index("{") : rule.index("}") + 1])]}
    return found | ({"method": yaml.safe_load(method.rstrip("."))} if method else {})


def bounded(diseases: dict[int, list[str]], changed: dict[str, Any]) -> mw.Release:
    """The same rows, with what was proposed."""
    rows = [(age, disease) for age, found in diseases.items() for disease in found]
    asked = [{"model": "k-anonymity", "k": 2}, KNOWN, *changed.pop("require")]
    columns = {**AGES, "age": {"role": "quasi-identifier", "hierarchy": "suppress"}}
    return mw.anonymize(
        pd.DataFrame(rows, columns=["age", "disease"]), {"columns": columns, "require": asked, **changed}
    )


def test_what_is_proposed_against_facts_bounds_what_they_tell() -> None:
    people = {30: ["flu", "cold"] * 3, 40: ILLS * 4}
    release = released(people, KNOWN)
    assert background(release).worst.after == 1
    proposed = remedy(release, background(release))
    assert proposed["require"][0]["model"] == "ck-safety"
    assert background(bounded(people, proposed)).worst.after < Fraction(1, 2)


def test_what_is_proposed_against_who_knows_the_method_bounds_the_belief() -> None:
    people = {30: ["flu", "cold"] * 3, 40: ILLS * 4}
    release = released(people, KNOWN)
    worst = Beliefs("minimality", "knows-method", "exact", Belief(Fraction(1, 4), Fraction(1), "", ""))
    proposed = remedy(release, worst)
    assert proposed["method"]["cut"] == "balanced"
    again = bounded(people, proposed)
    assert again.ok
    assert next(v for v in again.verdicts if v.model == "belief").ok


def test_a_tautology_is_told_in_a_few_words() -> None:
    release = released({30: ["flu", "cold"] * 2, 40: ["flu", "cold", "cold"]})
    [line] = [line for line in release_lines(release) if "background-knowledge" in line]
    assert line == f"  background-knowledge: no finding (100 %), because {TAUTOLOGY}"


def test_where_little_is_left_the_reason_stands_beside_it() -> None:
    people = [(i, i % 2, "flu") for i in range(40)]
    frame = pd.DataFrame(people, columns=["age", "sex", "disease"])
    columns = {"age": {"role": "quasi-identifier", "hierarchy": "suppress"}, "sex": "quasi-identifier"}
    asked = {"columns": columns, "require": [{"model": "k-anonymity", "k": 5}]}
    one_level = mw.anonymize(frame, {**asked, "method": {"name": "optimal-lattice"}})
    assert "* throughout: age" in " ".join(one_level.great_losses)
    assert one_level.warnings[-1].startswith(
        "the reason is that this method publishes each column at one level"
    )
    by_class = mw.anonymize(frame, {**asked, "method": {"name": "local-recoding"}})
    assert by_class.great_losses
    assert by_class.warnings[-1].startswith(
        "the reason is that 2 quasi-identifiers have 40 different combinations, and 40 people make at most 8 classes"
    )
    assert released({30: ["flu", "cold"] * 2, 40: ["flu", "cold"] * 2}).loss_reasons == ()
