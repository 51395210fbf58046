"""Several rows per person: what is believed of some row of a person, against every world of whole tables."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.attacks import ATTACKS, intersection
from maskwright.attacks._joins import joined_rows
from maskwright.attacks._people.people_worlds import worst_people_facts
from maskwright.attacks._shared.secrets import secrets_of
from maskwright.attacks.homogeneity import RowBeliefs
from maskwright.attacks.minimality import Minimality
from maskwright.attacks.similarity import Similarity
from maskwright.cli.terminal import belief_lines
from maskwright.domain.beliefs import NOT_COMPUTED, Beliefs
from maskwright.pipeline.attacking import adversary_named, attack_target, target_of
from maskwright.policy.policy import Policy
from maskwright.worlds.sampling.choices import TooManyChoices
from tests.amounts import amount, crossed
from tests.attacks.test_several_rows import Row, policy, table
from tests.promise.draws import chance
from tests.promise.posterior import Outputs, belief_after, enumerated
from tests.promise.product import release_of
from tests.promise.tables import UNIT, Case

METHODS: dict[str, Any] = {
    "lattice": "optimal-lattice",
    "samarati": "samarati",
    "local": "local-recoding",
    "strict cuts": {"name": "mondrian", "cut": "strict"},
    "relaxed cuts": {"name": "mondrian", "cut": "relaxed"},
    "balanced cuts": "mondrian",
    "greedy": "greedy-grouping",
    "symmetric": "symmetric-grouping",
    "incognito": "incognito",
}
MODELS: list[dict[str, Any]] = [
    {"model": "simple-l-diversity", "l": "3/2"},
    {"model": "distinct-l-diversity", "l": 2, "use": "gate"},
    {"model": "distinct-l-diversity", "l": 2},
    {"model": "entropy-l-diversity", "l": "3/2"},
]


def a_case(number: int) -> Case:
    """Four to six rows of two to four people."""
    draw = chance(number)
    owners = [draw.choice("ABCD"[: draw.choice([2, 3, 4])]) for _ in range(draw.choice([4, 5, 6]))]
    owners[:3] = "ABA"
    known = tuple((draw.choice("123"), owner) for owner in owners)
    return Case(("q1", UNIT), known, tuple(owners), {"s": ("x", "y")}, {"s": (1, 1)})


def a_policy(method: Any, model: dict[str, Any]) -> Policy:
    return Policy.load({
        "unit": UNIT,
        "columns": {"q1": "quasi-identifier", UNIT: "identifier", "s": "sensitive"},
        "method": method,
        "require": [{"model": "k-anonymity", "k": 2}, model | {"attribute": "s"}],
    })  # fmt: skip


def attacked(
    case: Case, asked: Policy, public: Any, outputs: Outputs, attack: str, adversary: str
) -> Beliefs:
    world = next(iter(outputs[public].likelihood))
    target = target_of(release_of(case.table(world), asked, public))
    [found] = attack_target(
        target, [attack], adversary_named(adversary, 1 if adversary == "insider" else None)
    )
    return found


@pytest.mark.parametrize("name", METHODS)
def test_what_the_method_and_facts_tell_is_that_of_all_worlds(name: str) -> None:
    """What an attack calls exact is what the worlds of the whole table say; whatever it says is no less."""
    compared = 0
    for number in range(amount(2, 60)):
        case, asked = a_case(number), a_policy(METHODS[name], MODELS[number % len(MODELS)])
        try:
            outputs = enumerated(case, asked, 1500)
        except TooManyChoices:
            continue
        for public, told in itertools.islice(outputs.items(), 3):
            if not all(told.there):
                continue
            found = attacked(case, asked, public, outputs, "minimality", "knows-method")
            true = max(belief_after(case, outputs, public, "s", p, (v,)) for p in case.people for v in "xy")
            assert (found.kind, float(found.worst.after)) == ("exact", pytest.approx(true)), (number, public)
            found = attacked(case, asked, public, outputs, "combined", "insider")
            assert (found.kind, float(found.worst.after)) == (
                "exact",
                pytest.approx(with_a_fact(case, told)),
            ), number
            compared += 1
    assert compared


def with_a_fact(case: Case, told: Any) -> float:
    """The largest belief in "somebody has a value" given any one implication between two such statements."""
    weight = np.zeros(len(case.every))
    for world, likelihood in told.likelihood.items():
        weight[case.sort_of[world]] = likelihood
    weight = weight * case.prior
    atoms = [case.holds(p, "s", (v,)) for p in case.people for v in "xy"]
    best = 0.0
    for if_, then in itertools.product(atoms, repeat=2):
        left = weight * (~if_ | then)
        if left.sum() > 0:
            best = max(best, *(float(left[atom].sum() / left.sum()) for atom in atoms))
    return best


def every_dealing(rows: list[Row]) -> tuple[list[set[tuple[str, str]]], set[tuple[str, str]]]:
    """Who has what in each world that deals the values of each class anew, and everything that somebody can have."""
    classes: dict[str, list[Row]] = {}
    for row in rows:
        classes.setdefault(row[1], []).append(row)
    parts = [
        [set(zip([p for p, _, _ in members], dealt, strict=True))
         for dealt in itertools.permutations(v for _, _, v in members)]
        for members in classes.values()
    ]  # fmt: skip
    worlds = [set().union(*world) for world in itertools.product(*parts)]
    return worlds, set().union(*worlds)


def worst_by_listing(rows: list[Row], k: int) -> Fraction:
    """The largest belief given k implications between statements "somebody has a value": all of them are tried."""
    worlds, atoms = every_dealing(rows)
    implications = list(itertools.product(sorted(atoms), repeat=2))
    best = Fraction(0)
    for known in itertools.combinations(implications, k):
        left = [w for w in worlds if all(a not in w or b in w for a, b in known)]
        if left:
            best = max(best, *(Fraction(sum(atom in w for w in left), len(left)) for atom in atoms))
    return best


@pytest.mark.parametrize("number", range(amount(5, 60)))
def test_facts_about_people_are_those_of_every_world(number: int) -> None:
    """Exactly where worlds are listed; and the bound by atoms about rows is no less."""
    draw, k = chance(number), 1 + number % 2
    n = 4 if k == 2 else draw.randint(4, 6)
    rows = [(draw.choice("ABC"), draw.choice("xy"), draw.choice("pq" if k == 2 else "pqr")) for _ in range(n)]
    release = mw.anonymize(table(rows), policy("1"))
    found = mw.attack(release, "background-knowledge", adversary="insider", facts=k)
    assert isinstance(found, Beliefs)
    true = worst_by_listing(rows, k)
    assert (found.kind, found.worst.after) == ("exact", true)
    target = target_of(release)
    bound = worst_people_facts(target, secrets_of(target)[0], k, Fraction(1), None)
    assert bound.belief.after >= true
    assert bound.kind == "bounded" or bound.belief.after == 0


def test_a_bound_on_facts_that_is_below_one() -> None:
    """Two rows each, every value twice among twenty: 1/(1 + R/2), R for four atoms about rows."""
    rows = [(f"p{i % 10}", "x", f"v{i % 5}") for i in range(20)]
    found = mw.attack(
        mw.anonymize(table(rows), policy("1")), "background-knowledge", adversary="insider", facts=1
    )
    assert isinstance(found, Beliefs)
    assert found.kind == "bounded"
    assert Fraction(1, 2) < found.worst.after < 1
    assert "at most 4 about rows" in found.worst.why


def test_worlds_are_drawn_where_they_are_too_many() -> None:
    """Eighteen rows: the method is run on drawn worlds, and the ends hold the belief of the kept ones."""
    rows = [(f"p{i % 9}", "ab"[i // 9], "vwxyz"[i % 5]) for i in range(18)]
    asked = policy("1") | {
        "require": [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "l": 2}],
        "method": {"name": "mondrian", "cut": "strict"},
    }
    found = mw.attack(mw.anonymize(table(rows), asked), Minimality(draws=300))
    assert isinstance(found, Beliefs)
    assert found.kind in ("sampled", "bounded")
    low, high = found.worst.interval or (0, 1)
    assert low <= float(found.worst.after) <= high == float(found.worst.upper)


TWO = {
    "unit": "id",
    "columns": {"id": "identifier", "q": "quasi-identifier", "s": "sensitive", "t": "sensitive"},
}


def two_columns(number: int, n: int) -> dict[str, list[str]]:
    draw = chance(number)
    return {
        "id": [draw.choice("ABC") for _ in range(n)], "q": [draw.choice("xy") for _ in range(n)],
        "s": [draw.choice("pq") for _ in range(n)], "t": [draw.choice(["1", "2", "9"]) for _ in range(n)],
    }  # fmt: skip


@pytest.mark.parametrize("number", range(amount(3, 40)))
def test_ranges_and_known_columns_against_every_world(number: int) -> None:
    """Similarity is exact; somebody who knows one column of a person's rows believes no more than is said."""
    rows = two_columns(number, 5)
    asked = TWO | {"method": "optimal-lattice", "require": [{"model": "k-anonymity", "k": 1}]}
    release = mw.anonymize(pa.table(rows), asked)
    people, classes = rows["id"], rows["q"]
    dealings = [
        list(itertools.permutations(i for i, c in enumerate(classes) if c == q)) for q in sorted(set(classes))
    ]
    places = [i for q in sorted(set(classes)) for i, c in enumerate(classes) if c == q]
    worlds = [dict(zip(places, sum(dealt, ()), strict=True)) for dealt in itertools.product(*dealings)]
    near = known = Fraction(0)
    for person in sorted(set(people)):
        mine = [i for i, p in enumerate(people) if p == person]
        if len(set(rows["t"])) == 3:  # with fewer values there is no range to speak of
            inside = [any(rows["t"][w[i]] in "12" for i in mine) for w in worlds]
            near = max(near, Fraction(sum(inside), len(worlds)))
            nine = [any(rows["t"][w[i]] == "9" for i in mine) for w in worlds]
            near = max(near, Fraction(sum(nine), len(worlds)))
        for a, b in (("s", "t"), ("t", "s")):
            left = [w for w in worlds if all(rows[a][w[i]] == rows[a][i] for i in mine)]
            for value in set(rows[b]):
                held = sum(any(rows[b][w[i]] == value for i in mine) for w in left)
                known = max(known, Fraction(held, len(left)))
    found = {b.attack: b for b in attack_target(target_of(release), [Similarity(width="1/5"), "background-join"],
                                                adversary_named("insider"))}  # fmt: skip
    if near:
        assert (found["similarity"].kind, found["similarity"].worst.after) == ("exact", near)
    assert found["background-join"].kind == "bounded"
    assert found["background-join"].worst.after >= known


@pytest.mark.parametrize("number", range(amount(4, 60)))
def test_a_range_that_slides_finds_what_every_range_tells(number: int) -> None:
    """Many different numbers: the worst belief and the people above the bound, against each range on its own."""
    draw = chance(number)
    rows = {
        "id": [draw.choice("ABCDEFGH") for _ in range(30)], "q": [draw.choice("wxyz") for _ in range(30)],
        "t": [str(draw.randrange(40)) for _ in range(30)],
    }  # fmt: skip
    columns = {"id": "identifier", "q": "quasi-identifier", "t": "sensitive"}
    asked = {
        "columns": columns,
        "unit": "id",
        "require": [{"model": "k-anonymity", "k": 1}],
        "method": "mondrian",
    }
    target = target_of(mw.anonymize(pa.table(rows), asked))
    attack = Similarity(width=draw.choice(["0", "1/10", "1/3"]))
    found = attack.run(target, adversary_named("insider")).measures["attributes"]["t"]
    values = sorted({int(t) for t in rows["t"]})
    far = (values[-1] - values[0]) * attack.width
    ranges = tuple(tuple(str(v) for v in values if low <= v <= low + far) for low in values)
    beliefs = RowBeliefs.of(target.grouping, "t", ranges)
    exact = [[beliefs.exact(code, i) for i in range(len(beliefs.first))] for code in beliefs.codes]
    assert found["worst"].after == max(map(max, exact))
    assert found["vulnerable_people"] == sum(max(by) > found["threshold"] for by in zip(*exact, strict=True))


def test_people_with_one_row_each_are_believed_as_much_as_without_a_unit() -> None:
    rows = two_columns(3, 6) | {"id": list("ABCDEF")}
    asked = TWO | {"method": "optimal-lattice", "require": [{"model": "k-anonymity", "k": 2}]}
    releases = [mw.anonymize(pa.table(rows), asked | {"unit": unit}) for unit in ("id", "none")]
    for adversary in ("insider", "learns"):
        with_unit, without = (
            {b.attack: b for b in attack_target(target_of(r), list(ATTACKS), adversary_named(adversary))}
            for r in releases
        )
        for name in without:
            assert with_unit[name].worst.after == without[name].worst.after, (adversary, name)


def test_every_attack_is_told_in_words() -> None:
    """Also where the rows of somebody together are above a bound that none of them is above."""
    rows = two_columns(5, 8) | {"id": list("AAABBBCC"), "q": list("xxxxxxxx")}
    asked = TWO | {"method": "optimal-lattice", "require": [{"model": "k-anonymity", "k": 2}]}
    target = target_of(mw.anonymize(pa.table(rows), asked))
    for adversary in ("insider", "learns"):
        found = attack_target(target, list(ATTACKS), adversary_named(adversary))
        told = "\n".join(belief_lines(found, None))
        assert all(b.attack in told for b in found)
        assert "some row" in told


@pytest.mark.parametrize("number", range(amount(3, 40)))
def test_absence_is_that_of_all_worlds(number: int) -> None:
    """Classes are dropped because of the values of their people: what is believed of whoever has a row there."""
    method = {"name": "optimal-lattice", "suppress": "failing-classes", "suppression": 1}
    case, asked = a_case(number), a_policy(method, {"model": "distinct-l-diversity", "l": 2})
    outputs = enumerated(case, asked, 1500)
    for public, told in outputs.items():
        if all(told.there) or not any(told.there):
            continue
        release = release_of(case.table(next(iter(told.likelihood))), asked, public)
        [found] = attack_target(target_of(release), ["absence"], adversary_named("knows-method")) or [None]
        gone = {o for o, there in zip(case.owners, told.there, strict=True) if not there}
        dealt = same_histogram(case, outputs, public)
        true = max(dealt(p, v) for p in gone for v in "xy")
        assert found is not None
        assert found.kind == NOT_COMPUTED or float(found.worst.upper) == pytest.approx(true)


def same_histogram(case: Case, outputs: Outputs, public: Any) -> Any:
    """Beliefs when the values of the whole table are known: those of the real world."""
    told = outputs[public]
    real = next(iter(told.likelihood))
    weight = np.zeros(len(case.every))
    for world, likelihood in told.likelihood.items():
        weight[case.sort_of[world]] = likelihood
    weight = weight * (np.sort(case.every, axis=1) == np.sort(real)).all(axis=1)
    return lambda p, v: float(weight[case.holds(p, "s", (v,))].sum() / weight.sum())


def test_tables_with_a_column_each_and_with_the_same_column() -> None:
    rows = two_columns(1, 6)
    asked = TWO | {
        "method": {"name": "codip", "plan": [["s"], ["t"]]},
        "require": [{"model": "k-anonymity", "k": 2}],
    }
    release = mw.anonymize(pa.table(rows), asked)
    found = mw.attack(release, "intersection")
    assert isinstance(found, Beliefs)
    alone = mw.attack(release, "homogeneity")
    assert isinstance(alone, Beliefs)
    assert (found.kind, found.worst.after) == ("exact", alone.worst.after)
    both = mw.attack([release, release], "intersection")
    assert isinstance(both, Beliefs)
    assert (both.kind, both.worst.after) == ("exact", alone.worst.after)  # the same again


@pytest.mark.parametrize("number", range(amount(8, 150)))
def test_two_releases_of_the_same_rows(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each shows the values in other classes: exactly what every world says that fits both, and no sum is less."""
    draw, n = chance(number), 5 + number % 3
    drawn = {"id": "ABCD", "q": "xy", "r": "12"}
    rows = {c: [*of[:2], *(draw.choice(of) for _ in range(n - 2))] for c, of in drawn.items()}
    rows["s"] = [draw.choice("abc") for _ in range(n)]

    def classes_of(values: Any) -> list[list[tuple[str, str]]]:
        return [sorted(zip(rows[c], values, strict=True)) for c in "qr"]

    def released(exact: str) -> mw.Release:
        columns: dict[str, Any] = {"id": "identifier", "s": "sensitive"}
        for name in "qr":
            hierarchy = {"hierarchy": "suppress", "levels": [0 if name == exact else 1]}
            columns[name] = {"role": "quasi-identifier"} | hierarchy
        asked = {"unit": "id", "columns": columns, "require": [{"model": "k-anonymity", "k": 1}]}
        return mw.anonymize(pa.table(rows), asked | {"method": "optimal-lattice"})

    worlds = [w for w in set(itertools.permutations(rows["s"])) if classes_of(w) == classes_of(rows["s"])]
    true = max(
        Fraction(sum(any(w[i] == v for i in range(n) if rows["id"][i] == p) for w in worlds), len(worlds))
        for p in rows["id"] for v in rows["s"]
    )  # fmt: skip
    releases = [released("q"), released("r")]
    found = mw.attack(releases, "intersection")
    assert isinstance(found, Beliefs)
    assert (found.kind, found.worst.after) == ("exact", true)
    monkeypatch.setattr(joined_rows, "LISTED_ROWS", 0)
    bound = mw.attack(releases, "intersection")
    assert isinstance(bound, Beliefs)
    assert bound.kind == "bounded" and bound.worst.after >= true - Fraction(1, 10**6)
    monkeypatch.setattr(intersection, "MOST_PEOPLE", 0)
    fitted = mw.attack(releases, "intersection")
    assert isinstance(fitted, Beliefs)
    assert fitted.kind in ("estimated", "bounded") and fitted.worst.upper >= true - Fraction(1, 10**6)


def test_releases_number_their_rows_differently() -> None:
    """A column more, which goes with the other one, changes nothing that is believed, whichever release has it."""
    ages = [str(20 + i % 4) for i in range(16)]
    rows = {
        "id": [f"p{i // 8 * 4 + i % 4}" for i in range(16)],
        "age": ages,
        "left": [str(90 - int(a)) for a in ages],
    }
    rows["s"] = list("aaabbcdaaabdbdca")

    def released(*names: str) -> mw.Release:
        columns: dict[str, Any] = {name: {"role": "quasi-identifier", "levels": [0]} for name in names}
        asked = {"unit": "id", "require": [{"model": "k-anonymity", "k": 1}], "method": "optimal-lattice"}
        return mw.anonymize(
            pa.table(rows), asked | {"columns": {"id": "identifier", "s": "sensitive"} | columns}
        )

    def together(*releases: mw.Release) -> tuple[Fraction, Any]:
        found = mw.attack(list(releases), "intersection")
        assert isinstance(found, Beliefs)
        return found.worst.after, found.measures["attributes"]["s"]["vulnerable_people"]

    one, more = released("age"), released("left", "age")
    finer = mw.anonymize(pa.table(rows | {"place": [str(i) for i in range(16)]}), {
        "unit": "id", "require": [{"model": "k-anonymity", "k": 1}], "method": "optimal-lattice",
        "columns": {"id": "identifier", "s": "sensitive", "age": {"role": "quasi-identifier", "levels": [0]},
                    "place": {"role": "quasi-identifier", "hierarchy": "suppress", "levels": [1]}},
    })  # fmt: skip
    wanted = together(one, one)
    assert [together(one, more), together(more, one), together(one, finer), together(finer, one)] == [
        wanted
    ] * 4


def test_releases_without_a_common_column_are_not_put_together() -> None:
    rows = {"id": list("aabbcc"), "q": list("xyxyxy"), "r": list("uvvuuv"), "s": list("ststst")}
    base = {"unit": "id", "require": [{"model": "k-anonymity", "k": 1}], "method": "optimal-lattice"}
    columns = {"id": "identifier", "s": "sensitive"}
    releases = [
        mw.anonymize(pa.table(rows), base | {"columns": columns | {name: "quasi-identifier"}})
        for name in "qr"
    ]
    found = mw.attack(releases, "intersection")
    assert isinstance(found, Beliefs)
    assert (found.kind, found.worst.upper) == (NOT_COMPUTED, 1)
    assert "no quasi-identifier in common" in found.worst.why and "--people" not in found.worst.why


@pytest.mark.parametrize(
    ("pseudonym", "asked"),
    crossed(
        [None, "pseudonym"],
        [{"model": "distinct-l-diversity", "l": 2}, {"model": "simple-l-diversity", "l": "5/4"}],
    ),
)
def test_absence_of_many_rows_is_that_of_every_draw(asked: dict[str, Any], pseudonym: str | None) -> None:
    """Twenty rows: two of Ann and one of Bob and Eve each are missing; the ends hold what every draw of them says."""
    gone = ["Ann", "Ann", "Bob", "Eve"]
    rows = [(p, "z", "u") for p in gone]
    rows += [("Ann", "x", "u"), ("Bob", "y", "v")]
    rows += [(f"p{i}", "xy"[i % 2], "uvvw"[i // 2 % 4]) for i in range(14)]
    policy = {
        "unit": {"column": "id", "publish": pseudonym},
        "columns": {"id": "identifier", "q": {"role": "quasi-identifier", "levels": [0]}, "s": "sensitive"},
        "method": {"name": "optimal-lattice", "suppress": "failing-classes", "suppression": "1/4"},
        "require": [{"model": "k-anonymity", "k": 2}, asked],
    }
    release = mw.anonymize(
        pa.table(dict(zip(["id", "q", "s"], zip(*rows, strict=True), strict=True))), policy
    )
    assert release.parts[0].grouping.dropped_rows == 4
    shown = [row for row in rows if row[1] != "z"]
    prior = {v: sum(row[2] == v for row in shown) / len(shown) for v in "uvw"}
    worlds = [w for w in itertools.product("uvw", repeat=4) if violates(gone, w, asked)]
    weight = np.array([np.prod([prior[v] for v in w]) for w in worlds])
    true = 0.0
    for person, value in itertools.product(set(gone), "uvw"):
        held = np.array([(person, value) in zip(gone, w, strict=True) for w in worlds])
        spared = 1 - float(weight @ held / weight.sum())
        for q in "xy":
            if any((p, c) == (person, q) for p, c, _ in shown):
                there = [row for row in shown if row[1] == q]
                spared *= 1 - published_belief(shown, there, value, pseudonym)
        true = max(true, 1 - spared)
    [found] = attack_target(target_of(release), ["absence"], adversary_named("knows-method"))
    assert found.kind == "estimated"
    low, high = found.worst.interval or (1, 0)
    assert low <= true <= high <= min(1.0, true + 0.05)
    assert found.measures["dropped_for_values"] == 4


def test_too_many_kinds_of_rows_are_not_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """What limits it are kinds of rows, however many rows there are."""
    rows = [("ABCD"[i % 4], "xy"[i % 2], "pqr"[i % 3]) for i in range(24)]
    release = mw.anonymize(table(rows), policy("1"))
    found = mw.attack([release, release], "intersection")
    assert isinstance(found, Beliefs)
    assert found.kind != NOT_COMPUTED
    monkeypatch.setattr(intersection, "MOST_OF_ROWS", 5)  # two kinds of rows, three values
    found = mw.attack([release, release], "intersection")
    assert isinstance(found, Beliefs)
    assert (found.kind, found.worst.upper) == (NOT_COMPUTED, 1)
    assert "of 2 kinds with 3 values" in found.worst.why


def violates(owners: list[str], world: tuple[str, ...], asked: dict[str, Any]) -> bool:
    """Does a class with these values fail the requirement?"""
    held = Counter(v for _, v in set(zip(owners, world, strict=True)))
    if asked["model"] == "distinct-l-diversity":
        return len(held) < 2
    return Fraction(max(held.values()), len(set(owners))) > Fraction(4, 5)


def published_belief(shown: list[Row], there: list[Row], value: str, pseudonym: str | None) -> float:
    """What a class shows of somebody with one of its rows; with a pseudonym of everything that is theirs."""
    if pseudonym is None:
        return sum(v == value for _, _, v in there) / len(there)
    people = {p for p, _, _ in there}
    return sum(any(o == p and v == value for o, _, v in shown) for p in people) / len(people)


def test_absence_in_a_tail_is_not_computed_and_says_why() -> None:
    """A last group of greedy grouping, of more rows than can be listed."""
    rows = [(f"p{i // 2}", f"{i:02d}", "u" if i > 9 else "vw"[i % 2]) for i in range(24)]
    asked = {
        "unit": "id",
        "columns": {"id": "identifier", "q": "quasi-identifier", "s": "sensitive"},
        "method": "greedy-grouping",
        "require": [{"model": "k-anonymity", "k": 2}, {"model": "simple-l-diversity", "l": 2}],
    }
    release = mw.anonymize(pa.table(dict(zip(["id", "q", "s"], zip(*rows, strict=True), strict=True))), asked)
    assert release.grouping.trace.dropped_for_values
    [found] = attack_target(target_of(release), ["absence"], adversary_named("knows-method"))
    assert (found.kind, found.worst.upper) == (NOT_COMPUTED, 1)
    assert "every world is listed, which is done up to 16 rows" in " ".join(belief_lines([found], None))
