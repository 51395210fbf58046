"""Downcoding: the published fractions, every assignment listed, and whole releases recounted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maskwright as mw
from maskwright.attacks.downcoding import range_beliefs, set_beliefs, split_beliefs
from tests.amounts import amount
from tests.promise.draws import chance

TENTHS = (Fraction(1, 10),) * 10
SHARES = st.lists(st.integers(1, 5), min_size=2, max_size=4).map(
    lambda parts: tuple(Fraction(p, sum(parts)) for p in parts)
)


def test_published_fractions() -> None:
    assert split_beliefs((Fraction(9, 10), Fraction(1, 10)), 2) == (Fraction(1, 2), Fraction(1, 2))
    assert split_beliefs((Fraction(2, 100), Fraction(98, 100)), 5)[0] == Fraction(42517, 204250)
    assert range_beliefs(TENTHS, 5)[0] == range_beliefs(TENTHS, 5)[-1] == Fraction(3439, 14670)
    assert range_beliefs(TENTHS, 2) == (Fraction(1, 2), *[Fraction(0)] * 8, Fraction(1, 2))


def by_listing(shares: Sequence[Fraction], rows: int, fits: Callable[[set[int]], bool]) -> list[Fraction]:
    """P(the first row lies in each part), over all assignments of parts to rows that fit."""
    found, total = [Fraction(0)] * len(shares), Fraction(0)
    for parts in product(range(len(shares)), repeat=rows):
        if fits(set(parts)):
            weight = Fraction(1)
            for part in parts:
                weight *= shares[part]
            found[parts[0]] += weight
            total += weight
    return [f / total for f in found] if total else list(shares)


@given(SHARES, st.integers(2, 4))
def test_by_listing_every_assignment(shares: tuple[Fraction, ...], rows: int) -> None:
    last = len(shares) - 1
    assert list(split_beliefs(shares, rows)) == by_listing(shares, rows, lambda there: len(there) > 1)
    assert list(range_beliefs(shares, rows)) == by_listing(shares, rows, lambda there: {0, last} <= there)
    assert list(set_beliefs(shares, rows)) == by_listing(
        shares, rows, lambda there: len(there) == len(shares)
    )


def policy(**method: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}},
            "town": {"role": "quasi-identifier", "hierarchy": "suppress"},
        },
        "require": [{"model": "k-anonymity", "k": 2}], "method": method,
    }  # fmt: skip


TABLE = pd.DataFrame({"age": [20, 20, 20, 31, 40, 40], "town": ["a"] * 4 + ["b"] * 2})


def test_a_pair_is_known(tmp_path: Path) -> None:
    """Local recoding: the class of the person of 31 holds others, and its label says so."""
    release = mw.anonymize(TABLE, policy(name="local-recoding"))
    release.save(tmp_path / "r")
    found = mw.attack(tmp_path / "r", "downcoding")
    assert mw.attack(release, "downcoding").as_dict() == found.as_dict()
    wide = sum(str(age) not in ("20", "31", "40") for age in release.table["age"])
    wide += sum(town not in ("a", "b") for town in release.table["town"])
    assert (found.kind, found.measures["generalised_cells"]) == ("exact", wide)
    # 20 with 1/2, 31 with 1/6 and 40 with 1/3 before; the four rows with age * are not all of one age
    before = Fraction(1, 2), Fraction(1, 6), Fraction(1, 3)
    after = split_beliefs(before, 4)
    gains = [(b, a) for a, b in zip(before, after, strict=True) if b > a]
    worst = found.measures["columns"]["age"]["worst"]
    assert (worst.after, worst.before) == max(gains)


def test_two_rows_in_two_children_are_determined() -> None:
    table = pd.DataFrame({"age": [20, 31, 40, 40], "town": ["a", "a", "b", "b"]})
    found = mw.attack(mw.anonymize(table, policy(name="mondrian")), "downcoding")
    assert (found.measures["generalised_cells"], found.measures["determined_cells"]) == (2, 2)
    assert found.worst.after == 0, "both ages were as likely before"


def test_large_classes_are_counted_in_floating_point() -> None:
    """Of 200 rows, one of another age: exact fractions would have hundreds of digits."""
    table = pd.DataFrame({"age": [20] * 199 + [31], "town": ["a"] * 200})
    worst = mw.attack(mw.anonymize(table, policy(name="local-recoding")), "downcoding").worst
    exact = split_beliefs((Fraction(199, 200), Fraction(1, 200)), 200)
    assert float(worst.after) == pytest.approx(float(exact[1]), rel=1e-9)
    assert worst.before == Fraction(1, 200)
    assert worst.upper >= exact[1]


def test_levels_of_the_whole_table_tell_nothing() -> None:
    with pytest.raises(mw.errors.UsageError, match="does not apply"):
        mw.attack(mw.anonymize(TABLE, policy(name="optimal-lattice")), "downcoding")


# --- labels: fixed ------------------------------------------------------------------------------------

ROWS = st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc")), min_size=4, max_size=24)


def labels_by_row(
    rows: list[tuple[int, str]], **method: Any
) -> list[tuple[tuple[str | None, ...], int, str]]:
    """What is published of every row, and what is true of it."""
    table = pd.DataFrame({"age": [a for a, _ in rows], "town": [t for _, t in rows]})
    made = policy(name="mondrian", labels="fixed", **method)
    columns = made["columns"]
    columns["age"] = {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}}
    grouping = mw.anonymize(table, made, seed=1).grouping
    summary, allocation = grouping.summary, grouping.allocation
    found = []
    for t, g in zip(allocation.tuples.tolist(), allocation.groups.tolist(), strict=True):
        texts = tuple(labels.texts[labels.of_group[g]] for labels in grouping.published_labels)
        ground = [h.values[c - 1] for h, c in zip(summary.attributes, summary.codes[:, t], strict=True)]
        found.append((texts, int(ground[0]), ground[1]))
    return found


@given(ROWS, st.sampled_from(["relaxed", "strict"]))
def test_fixed_labels_cover_their_rows(rows: list[tuple[int, str]], cut: str) -> None:
    """Against the texts themselves; the release is recounted besides."""
    for (age, town), true_age, true_town in labels_by_row(rows, cut=cut):
        assert age is not None and town is not None
        if age != "*":
            low, _, high = age.partition("-")
            assert int(low) <= true_age <= int(high or low)
        assert town == "*" or true_town in town.strip("{}").split(", ")


DECADES = {"groups": [[str(10 * d + i) for i in range(10)] for d in range(4)]}


def towns_published(codes: list[int], **method: Any) -> list[str]:
    """Eight rows that are cut in the middle, by a column whose hierarchy names forty values in decades."""
    made = policy(name="mondrian", min_child=4, **method)
    made["columns"]["town"] = {
        "role": "quasi-identifier", "hierarchy": DECADES, "order": [str(i) for i in range(40)],
    }  # fmt: skip
    table = pd.DataFrame({"age": [30] * 8, "town": [str(c) for c in codes]})
    return sorted(mw.anonymize(table, made, seed=1).table["town"])


def test_fixed_labels_do_not_follow_the_rows() -> None:
    """They are cut at 20: whatever lies on either side of it, the labels are the same."""
    near, far = [12, 13, 13, 14, 20, 20, 21, 22], [3, 9, 14, 19, 20, 20, 38, 39]
    assert towns_published(near, labels="fixed") == towns_published(far, labels="fixed")
    assert towns_published(near) != towns_published(far), "the usual labels do follow them"


def test_fixed_labels_are_measured_and_not_attacked() -> None:
    for method in ("mondrian", "local-recoding"):
        made = mw.anonymize(TABLE.assign(d=list("xyxyxy")), policy(name=method, labels="fixed") | {
            "columns": policy()["columns"] | {"d": "sensitive"}})  # fmt: skip
        assert "downcoding" not in [b.attack for b in made.beliefs]
        assert {p.status for p in made.promises} == {"measured"}
        assert "labels" in made.promises[0].why
    with pytest.raises(mw.errors.PolicyError, match="anatomize"):
        mw.anonymize(TABLE, policy(name="mondrian", labels="fixed", anatomize=2))


def test_fixed_labels_of_values_that_are_not_published() -> None:
    """Balanced cuts drop rows at random: labels are made of the values that remain."""
    table = pd.DataFrame(
        {"age": range(23), "town": list("abcdefghijklmnopqrstuvw"), "d": list("xyz") * 7 + ["x", "y"]}
    )
    made = policy(name="mondrian", labels="fixed", splits="halves") | {
        "columns": policy()["columns"] | {"d": "sensitive"},
        "require": [{"model": "simple-l-diversity", "l": 2}],
    }
    release = mw.anonymize(table, made, seed=3)
    assert release.grouping.renderings is not None
    shown = " ".join(release.table["town"])
    gone = set(table["town"]) - set("".join(c for c in shown if c.isalpha()))
    assert gone or "*" in shown, "nobody who is not published is named"


@pytest.mark.parametrize("number", range(amount(6, 100)))
def test_rows_of_a_person_are_drawn_once(number: int) -> None:
    """Up to eight rows of four people, one age each: every way to give them ages of two decades."""
    draw = chance(number)
    ages = {p: draw.choice([20, 31, 31]) for p in "ABCD"} | {"A": 20, "B": 31}
    who = ["A", "B", *(draw.choice("ABCD") for _ in range(draw.randint(2, 6)))]
    table = pd.DataFrame({"who": who, "age": [ages[p] for p in who], "town": "a"})
    asked = policy(name="local-recoding") | {"unit": "who"}
    asked["columns"] |= {"who": "identifier"}
    asked["require"] = [{"model": "k-anonymity", "k": len(set(who))}]
    people = sorted(set(who))
    before = Fraction(sum(ages[p] == 31 for p in people), len(people))
    weights = {20: 1 - before, 31: before}
    worlds = [w for w in itertools.product((20, 31), repeat=len(people)) if len(set(w)) > 1]
    weight = [math.prod((weights[age] for age in w), start=Fraction(1)) for w in worlds]
    after = sum((x for w, x in zip(worlds, weight, strict=True) if w[0] == 31), Fraction(0)) / sum(weight)
    worst = mw.attack(mw.anonymize(table, asked), "downcoding").measures["columns"]["age"]["worst"]
    gains = [(a, b) for a, b in ((after, before), (1 - after, 1 - before)) if a > b]
    assert worst.after == max((a for a, _ in gains), default=0)
    if gains:
        assert f"a person of a class of {len(people)} with" in worst.whom


# --- labels at the levels that groups reached ---------------------------------------------------------


@pytest.mark.parametrize("ages", [[20, 31, 31, 31], [20, 31, 45, 45]])
def test_levels_that_a_group_reached_by_running_the_method_on_every_table(
    ages: list[int], tmp_path: Path
) -> None:
    """All rows must be together: whatever ages they have, the method decides what they are published as."""
    asked = policy(name="alpha-k-local")
    asked["require"][0]["k"] = len(ages)
    labels: dict[tuple[int, ...], list[str]] = {}
    for ordered in itertools.combinations_with_replacement(sorted(set(ages)), len(ages)):
        table = pd.DataFrame({"age": list(ordered), "town": "a"})
        labels[ordered] = sorted(map(str, mw.anonymize(table, asked).table["age"]))
    release = mw.anonymize(pd.DataFrame({"age": ages, "town": "a"}), asked)
    shown = sorted(map(str, release.table["age"]))
    share = {age: Fraction(ages.count(age), len(ages)) for age in ages}
    found: dict[int, Fraction] = dict.fromkeys(share, Fraction(0))
    for world in product(share, repeat=len(ages)):
        if labels[tuple(sorted(world))] == shown:
            found[world[0]] += math.prod((share[age] for age in world), start=Fraction(1))
    total = sum(found.values())
    gains = [(after / total, before) for after, before in zip(found.values(), share.values(), strict=True)]
    release.save(tmp_path / "r")
    attacked = mw.attack(tmp_path / "r", "downcoding")
    assert (attacked.kind, attacked.measures["generalised_cells"]) == ("exact", len(ages))
    assert (attacked.worst.after, attacked.worst.before) == max(pair for pair in gains if pair[0] > pair[1])


def test_a_group_that_fails_does_not_lie_in_one_part() -> None:
    """Six rows in two decades, k = 2: what is left over is published as the level above, and that is attacked."""
    table = pd.DataFrame({"age": [20, 20, 20, 31, 40, 40], "town": ["a"] * 6})
    release = mw.anonymize(table, policy(name="alpha-k-local"), seed=1)
    found = mw.attack(release, "downcoding")
    n = list(map(str, release.table["age"])).count("*")
    before = Fraction(1, 2), Fraction(1, 6), Fraction(1, 3)
    gains = [(a, b) for a, b in zip(split_beliefs(before, n), before, strict=True) if a > b]
    assert n and (found.worst.after, found.worst.before) == max(gains)
