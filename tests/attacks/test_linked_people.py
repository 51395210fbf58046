"""People whose visits a pseudonym links: facts, the method and what is learned, against all that can be listed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import maskwright as mw
from maskwright.attacks._people.linked_people import worst_linked_facts
from maskwright.attacks._shared.secrets import secrets_of
from maskwright.attacks.learned import Learned, LearnedModel, seen_groups
from maskwright.domain.beliefs import Beliefs
from maskwright.errors import PolicyNotMet
from maskwright.pipeline.attacking import adversary_named, attack_target, target_of
from tests.amounts import amount
from tests.promise.draws import chance

Person = tuple[Counter[Any], frozenset[str]]  # the classes of the visits, and everything that the person has


def policy(events: int = 1, *more: dict[str, Any]) -> dict[str, Any]:
    """Visits that stay together, in wards that are published as they are."""
    return {
        "unit": {"column": "who", "publish": "pseudonym", "events": events},
        "columns": {"who": "identifier", "ward": "quasi-identifier", "ill": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 1}, *more],
    }


def visits(number: int, n: int = 8, values: str = "xyz") -> pd.DataFrame:
    """A few visits of four people."""
    draw = chance(number)
    who = ["A", "B", "C", "D", *(draw.choice("ABCD") for _ in range(n - 4))]
    return pd.DataFrame(
        {"who": who, "ward": [draw.choice("12") for _ in who], "ill": [draw.choice(values) for _ in who]}
    )


def published_people(table: pd.DataFrame) -> list[Person]:
    """Who is behind each pseudonym."""
    return [(Counter(rows["ward"]), frozenset(rows["ill"])) for _, rows in table.astype(str).groupby("who")]


def matching(people: list[Person], events: int) -> dict[tuple[str, ...], list[int]]:
    """By the visits that may be known, none included, who matches."""
    sizes = range(events + 1)
    known = {
        tuple(sorted(c))
        for own, _ in people
        for m in sizes
        for c in itertools.combinations(own.elements(), m)
    }
    return {k: [i for i, (own, _) in enumerate(people) if not Counter(k) - own] for k in known}


def with_facts(people: list[Person], events: int, k: int) -> Fraction:
    """The largest belief from k implications between statements about the person and one other: all are tried."""
    values, best = sorted(set().union(*(has for _, has in people))), Fraction(0)
    match = matching(people, events)
    for mine, others in itertools.product(match.values(), match.values()):
        worlds = [(t, q) for t in mine for q in others if t != q]
        atoms = [(p, v) for p in (0, 1) for v in values]
        true = {a: np.array([a[1] in people[w[a[0]]][1] for w in worlds], dtype=bool) for a in atoms}
        for facts in itertools.combinations(itertools.product(atoms, repeat=2), k):
            left = np.ones(len(worlds), dtype=bool)
            for if_, then in facts:
                left &= ~true[if_] | true[then]
            if left.any():
                best = max(best, *(Fraction(int((true[0, v] & left).sum()), int(left.sum())) for v in values))
    return best


@pytest.mark.parametrize("number", range(amount(6, 200)))
def test_facts_tell_no_more_than_the_bound(number: int) -> None:
    events, k = 1 + number % 2, 1 + (number % 6 == 5)
    release = mw.anonymize(visits(number, values="xy" if k == 2 else "xyz"), policy(events))
    found = mw.attack(release, "background-knowledge", adversary="insider", facts=k)
    assert isinstance(found, Beliefs)
    true = with_facts(published_people(release.table), events, k)
    assert found.kind == "bounded" and true <= found.worst.after
    assert found.worst.before <= true


def test_a_bound_on_facts_that_is_below_one() -> None:
    """Six people with a value each: one fact about two people leaves 5/1 · 4/6, which is a belief of 3/13."""
    table = pd.DataFrame({"who": list("abcdef") * 2, "ward": ["1"] * 12, "ill": list("uvwxyz") * 2})
    release = mw.anonymize(table, policy())
    target = target_of(release)
    found = worst_linked_facts(target, secrets_of(target)[0], 1, Fraction(1, 5))
    assert found.belief.after == Fraction(3, 13)
    assert found.vulnerable == 6
    assert worst_linked_facts(target, secrets_of(target)[0], 1, Fraction(3, 12)).vulnerable == 0
    assert with_facts(published_people(release.table), 1, 1) == Fraction(1, 5)
    both = attack_target(target, ["combined", "background-knowledge"], adversary_named("insider", 1))
    assert {(b.attack, b.kind, b.worst.after) for b in both} == {
        ("combined", "bounded", Fraction(3, 13)), ("background-knowledge", "bounded", Fraction(3, 13)),
    }  # fmt: skip


def worlds_of(table: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Every table in which the same is behind the pseudonyms: people with the same visits exchanged."""
    parts = {who: rows.sort_values("ward", kind="stable") for who, rows in table.groupby("who")}
    alike: dict[tuple[str, ...], list[str]] = {}
    for who, rows in parts.items():
        alike.setdefault(tuple(rows["ward"]), []).append(who)
    different = set[tuple[tuple[str, ...], ...]]()
    for dealt in itertools.product(*(itertools.permutations(names) for names in alike.values())):
        has = tuple(tuple(parts[name]["ill"]) for name in itertools.chain(*dealt))
        if has in different:
            continue
        different.add(has)
        exchanged = dict(zip(itertools.chain(*alike.values()), itertools.chain(*dealt), strict=True))
        yield pd.concat(
            [rows.assign(ill=parts[exchanged[who]]["ill"].to_numpy()) for who, rows in parts.items()]
        )


def test_the_method_adds_nothing_about_people_who_are_known_by_their_visits() -> None:
    """Over all worlds in which the same is published: whoever matches has the secret with the share of those who do."""
    asked = policy(1, {"model": "distinct-l-diversity", "l": 2})
    asked["columns"]["ward"] = {"role": "quasi-identifier", "hierarchy": {"groups": [["1", "2"]]}}
    compared = 0
    for number in range(amount(3, 60)):
        table = visits(number, 6, "xy")
        try:
            release = mw.anonymize(table, asked)
        except PolicyNotMet:
            continue
        shown = Counter((frozenset(own.items()), has) for own, has in published_people(release.table))
        kept = list[pd.DataFrame]()
        for world in worlds_of(table):
            try:
                again = published_people(mw.anonymize(world, asked).table)
            except PolicyNotMet:
                continue
            if Counter((frozenset(own.items()), has) for own, has in again) == shown:
                kept.append(world)
        label = dict(zip(table["ward"], release_labels(release, table), strict=True))
        worst = Fraction(0)
        for known in set(label.values()):
            of = [w[w["ward"].map(label) == known]["who"].unique() for w in kept]
            for value in "xy":
                held = [Fraction(sum(value in set(w[w["who"] == p]["ill"]) for p in people), len(people))
                        for w, people in zip(kept, of, strict=True)]  # fmt: skip
                worst = max(worst, sum(held, Fraction(0)) / len(kept))
        found = mw.attack(release, "minimality", adversary="knows-method")
        assert isinstance(found, Beliefs)
        assert (found.kind, found.worst.after) == ("estimated", worst)
        compared += len(kept) > 1
    assert compared


def release_labels(release: mw.Release, table: pd.DataFrame) -> list[str]:
    """The published ward of each row."""
    grouping = release.parts[0].grouping
    level = (grouping.levels or (0,))[0]
    hierarchy = grouping.summary.attributes[0]
    codes = [hierarchy.values.index(w) + 1 for w in table["ward"]]
    return [str(hierarchy.levels[level].blocks[c]) for c in codes]


@pytest.mark.parametrize("number", range(amount(4, 40)))
@pytest.mark.parametrize("linked", [True, False])
def test_what_is_learned_is_that_of_every_weighted_order(linked: bool, number: int) -> None:
    """Every order of the published rows of the only class, weighted by the model: which row is whose.

    With a pseudonym a row of somebody shows everything of the person; without, beliefs are about some row, and the sum
    over the rows is no less.
    """
    draw = chance(number)
    who = ["A", "B", "C", *(draw.choice("ABCD") for _ in range(3))]
    rows = [(p, draw.choice("123"), draw.choice("xy")) for p in who]
    table = pd.DataFrame(rows, columns=["who", "ward", "ill"])
    asked = policy()
    asked["columns"]["ward"] = {"role": "quasi-identifier", "levels": [1]}
    asked["unit"] = asked["unit"] if linked else "who"
    target = target_of(mw.anonymize(table, asked))
    [found] = attack_target(target, [Learned(rounds=1)], adversary_named("learns"))
    assert found.kind == "estimated"
    wards, ills = sorted(set(table["ward"])), sorted(set(table["ill"]))
    deals = seen_groups(target.grouping, target.grouping.row_counts("ill"))
    model = LearnedModel.fitted(deals, deals.even_shares())
    log = {
        (w, v): float(model.weights(np.array([[i]]), np.array([j + 1]))[0])
        for (i, w), (j, v) in itertools.product(enumerate(wards), enumerate(ills))
    }
    orders = list(itertools.permutations(rows))  # of published rows, one for each row of the table
    weight = np.array(
        [np.exp(sum(log[w, v] for (_, w, _), (_, _, v) in zip(rows, o, strict=True))) for o in orders]
    )
    has = {p: {v for q, _, v in rows if q == p} for p in who}
    best = least = 0.0
    for secret in ills:
        if linked:
            marks = [[secret in has[p] for p, _, _ in o] for o in orders]
        else:
            marks = [[v == secret for _, _, v in o] for o in orders]
        of_row = weight @ np.array(marks) / weight.sum()
        if linked:
            best = max(best, of_row.max())
        else:
            best = max(best, *(min(1.0, of_row[[q == p for q in who]].sum()) for p in who))
            some = [[any(m for m, q in zip(o, who, strict=True) if q == p) for p in who] for o in marks]
            least = max(least, float((weight @ np.array(some) / weight.sum()).max()))
    assert float(found.worst.after) == pytest.approx(best)
    assert best >= least - 1e-9
