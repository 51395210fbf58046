"""Twelve promises that were once made and not kept: each a small table and a policy, and what all its worlds say.

A release that is labelled *guaranteed* must keep its bound. Whether these policies are refused, measured or repaired is
not asked here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwright.policy.policy import Policy
from maskwright.worlds.sampling.choices import TooManyChoices
from tests.patients import write_csv
from tests.promise.draws import Draws, chance
from tests.promise.posterior import Outputs, belief_after, broken, drawn, enumerated
from tests.promise.product import minimality_of, published, published_to
from tests.promise.small_engine import Row, SmallTable, Text
from tests.promise.tables import SET, Case

QUASI = "quasi-identifier"
SIZE = {"model": "k-anonymity", "k": 2}


def a_case(
    known: list[Row], owners: str = "", names: tuple[str, ...] = ("q1",), **domains: tuple[Text, ...]
) -> Case:
    """Rows with equally likely sensitive values; `owners` has a letter for each row."""
    people = tuple(owners) or tuple(f"p{i}" for i in range(len(known)))
    return Case(names, tuple(known), people, domains, {n: (1,) * len(d) for n, d in domains.items()})


def a_policy(case: Case, *require: dict[str, Any], method: Any = "optimal-lattice", **more: Any) -> Policy:
    columns: dict[str, Any] = {name: "identifier" if name == "id" else QUASI for name in case.names}
    columns |= dict.fromkeys(case.domains, "sensitive") | more.pop("columns", {})
    return Policy.load({"columns": columns, "require": list(require), "method": method, **more})


def belief(largest: str, attribute: str = "s", **more: Any) -> dict[str, Any]:
    return {"model": "belief", "max": largest, "attribute": attribute, **more}


def keeps_its_promises(case: Case, policy: Policy, seed: int | None = None) -> Outputs:
    """Every random choice where there are few, else some draws: for these tables the beliefs are the same."""
    try:
        outputs = enumerated(case, policy, 3000 if seed is None else 0)
    except TooManyChoices:
        outputs = drawn(case, policy, 30, chance(0), seed)
    found = broken(case, outputs)
    assert not found, "\n".join(map(str, found[:5]))
    return outputs


def test_one_person_has_most_rows_of_a_class() -> None:
    """Seven of ten rows are one person's. Of four people one has HIV: 1/4 of the people, but it is hers with 7/10."""
    own = "AAAAAAABCD"
    case = a_case([("1", o) for o in own], own, ("q1", "id"), s=("hiv", "flu"))
    keeps_its_promises(case, a_policy(case, {**SIZE, "k": 4}, belief("1/4", sets=[["hiv"]]), unit="id"))


def test_seven_tenths() -> None:
    """The number itself: one of ten rows has HIV, seven are hers."""
    own = "AAAAAAABCD"
    case = a_case([("1", o) for o in own], own, ("q1", "id"), s=("hiv", "flu"))
    weight = np.array([(world == 0).sum() == 1 for world in case.every]) * case.prior
    assert weight[case.holds("A", "s", ("hiv",))].sum() / weight.sum() == pytest.approx(7 / 10)


def test_somebody_who_is_published_with_some_rows_only() -> None:
    """One row in a class of two, one of which has a, and two rows that were left out: 1 − 1/2·(2/3)² = 7/9."""
    case = a_case([("1", "B"), ("1", "A"), ("2", "A"), ("3", "A")], "BAAA", ("q1", "id"), s=("a", "b", "c"))
    method = {"name": "incognito", "suppression": "50%"}
    assert keeps_its_promises(case, a_policy(case, SIZE, belief("3/4"), method=method, unit="id"))


def test_an_insider_with_facts_beside_unit() -> None:
    """A has two of four rows, and all values differ: 1/2 for each. Who knows another person's value believes 2/3."""
    own = "AABC"
    case = a_case([("1", o) for o in own], own, ("q1", "id"), s=("a", "b", "c", "d"))
    keeps_its_promises(case, a_policy(case, SIZE, belief("1/2", adversary="insider", facts=1), unit="id"))


def test_an_insider_who_knows_another_column_of_the_same_row() -> None:
    """(a, x), (b, x), (c, y): who knows that somebody has y knows that she has c."""
    case = a_case([("1",)] * 3, s=("a", "b", "c"), t=("x", "y"))
    keeps_its_promises(case, a_policy(case, {**SIZE, "k": 3}, belief("1/2", adversary="insider", facts=1)))


def test_an_insider_who_asks_about_a_set_of_values() -> None:
    """a, b, c, c: three of four have a or c, of each of which one fact leaves 3/4. Who knows b knows them all."""
    case = a_case([("1",)] * 4, s=("a", "b", "c"))
    asked = belief("3/4", adversary="insider", facts=1, sets=[["a", "c"]])
    keeps_its_promises(case, a_policy(case, {**SIZE, "k": 4}, asked))


def test_values_of_one_set_in_several_tables() -> None:
    """No set is empty: who is in a class without v in the one table has u, whatever the other shows."""
    case = a_case([("1",), ("1",), ("2",), ("2",)], s=("a",), **{SET: ("u", "v", "u;v")})
    method = {"name": "codip", "plan": [["s", f"{SET}=u"], [f"{SET}=v"]], "base": {"name": "mondrian"}}
    columns = {SET: {"role": "sensitive", "multivalued": ";"}}
    keeps_its_promises(case, a_policy(case, SIZE, belief("3/4", SET), method=method, columns=columns))


@pytest.mark.parametrize("plan", ["greedy", "best"])
def test_a_plan_that_was_chosen_by_looking(plan: str) -> None:
    """Which columns share a table depends on their association, which tells about people.

    One of the first two has a, and the table of t shows that the second has x, which nobody else has. If she had a, a
    and x went together and were published together. They are not, so the first one has a: 1 for a bound of 1/2.
    """
    case = a_case([("1",), ("2",), ("3",), ("4",)], s=("a", "b"), t=("x", "y"))
    method = {"name": "codip", "plan": plan, "beta": "1/2", "base": {"name": "mondrian"}}
    policy = a_policy(case, {**SIZE, "k": 1}, belief("1/2", sets=[["a"]]), method=method)
    outputs = keeps_its_promises(case, policy)
    assert not any(bound.guaranteed for told in outputs.values() for bound in told.bounds)
    values = [("a", "y"), ("b", "x"), ("b", "y"), ("b", "y")]
    [public] = [p for p, told in outputs.items() if tuple(map(case.values.index, values)) in told.likelihood]
    assert [world[0] for world in outputs[public].likelihood] == [case.values.index(("a", "y"))]
    assert belief_after(case, outputs, public, "s", "p0", ("a",)) == 1
    assert broken(case, outputs, bounds="all")


def test_a_gate_whose_reference_is_the_whole_table() -> None:
    """aaab is published: it is within 1/10 of the table only if she who was dropped has a (3/4 and 4/5)."""
    case = a_case([("1",)] * 4 + [("2",)], s=("a", "b"))
    close = {"model": "t-closeness", "t": "1/10", "attribute": "s", "use": "gate"}
    method = {"name": "optimal-lattice", "suppression": "25%"}
    keeps_its_promises(case, a_policy(case, SIZE, close, belief("3/4"), method=method))


@pytest.mark.parametrize(
    "close", [{"model": "t-closeness", "t": "1/10"}, {"model": "delta-disclosure", "delta": "1/2"}], ids=str
)
def test_a_searched_model_whose_reference_is_the_whole_table(close: dict[str, Any]) -> None:
    """Balanced cuts drop one of five at random. aaab is published only if that one has a: 4/5 for everybody."""
    case = a_case([("1",)] * 5, s=("a", "b"))
    keeps_its_promises(
        case, a_policy(case, SIZE, close | {"attribute": "s"}, belief("3/4"), method="mondrian")
    )


def test_whoever_was_dropped_does_not_decide_whether_it_is_published() -> None:
    """One of five is dropped at random: four are published, or not, whatever the fifth has."""
    case = a_case([("1",)] * 5, s=("a", "b"))
    outputs = keeps_its_promises(case, a_policy(case, SIZE, belief("3/4"), method="mondrian"))
    assert outputs
    for told in outputs.values():
        assert len({sum(world) for world in told.likelihood}) == 2
        assert any(bound.guaranteed for bound in told.bounds)


def test_a_value_that_does_not_occur() -> None:
    """The policy names b, and would have been refused if nobody had it. aaa is published: the fourth has b."""
    case = a_case([("1",)] * 3 + [("2",)], s=("a", "b"))
    method = {"name": "optimal-lattice", "suppression": "25%"}
    keeps_its_promises(case, a_policy(case, SIZE, belief("3/4", sets=[["b"]]), method=method))


@pytest.mark.parametrize(
    "listing", [{"order": ["a", "b"]}, {"hierarchy": {"groups": {"g": ["a"], "h": ["b"]}}}], ids=str
)
def test_a_value_that_is_not_listed(listing: dict[str, Any]) -> None:
    """The policy lists a and b, and refuses c: she who was dropped has a with 1/2, and not with 1/3."""
    case = a_case([("1",)] * 3 + [("2",)], s=("a", "b", "c"))
    method = {"name": "optimal-lattice", "suppression": "25%"}
    asked = belief("2/5", sets=[["a"]])
    policy = a_policy(case, SIZE, asked, method=method, columns={"s": {"role": "sensitive", **listing}})
    assert keeps_its_promises(case, policy)
    everybody = a_policy(case, asked, columns={"s": {"role": "sensitive", **listing}})
    assert any(b.guaranteed for told in keeps_its_promises(case, everybody).values() for b in told.bounds)


def test_rows_with_missing_values_that_are_dropped() -> None:
    """Was she who is alone left out for that, or because her value is missing? The label told: a with 1/2, not 1/3."""
    case = a_case([("1",)] * 4 + [("2",)], s=("a", "b", None))
    method = {"name": "optimal-lattice", "suppression": "25%"}
    asked = belief("2/5", sets=[["a"]])
    policy = a_policy(case, SIZE, asked, method=method, missing={"rows": "drop"})
    assert keeps_its_promises(case, policy)
    everybody = a_policy(case, asked, missing={"rows": "drop"})
    assert any(b.guaranteed for told in keeps_its_promises(case, everybody).values() for b in told.bounds)


@pytest.mark.parametrize("values", [("1", "2", "0"), ("1", "2", None)], ids=["weight", "household"])
def test_a_secret_that_weighs_rows_or_tells_households_apart(values: tuple[Text, ...]) -> None:
    """A weight of 0, and a household that is missing, are refused: she who was dropped holds 1 with 1/2, not 1/3."""
    case = a_case([("1",)] * 4 + [("2",)], s=values)
    survey: dict[str, Any] = {"household" if None in values else "weight": "s", "population": {"size": 1000}}
    asked = belief("2/5", sets=[["1"]])
    method = {"name": "optimal-lattice", "suppression": "25%"}
    assert keeps_its_promises(case, a_policy(case, SIZE, asked, method=method, **survey))
    everybody = keeps_its_promises(case, a_policy(case, asked, **survey))
    assert any(b.guaranteed for told in everybody.values() for b in told.bounds)


def test_whose_identifiers_are_found_among_secrets() -> None:
    """Addresses in a set of somebody who was dropped do not decide whether the others are published."""
    case = a_case([("1",)] * 4 + [("2",)], s=("a",), **{SET: ("u", "anna@example.org;otto@example.org")})
    policy = a_policy(
        case, SIZE, method={"name": "optimal-lattice", "suppression": "25%"},
        columns={SET: {"role": "sensitive", "multivalued": ";"}},
    )  # fmt: skip
    one, other = (published(case.table([0, 0, 0, 0, hers]), policy, Draws(chance(0))) for hers in (0, 1))
    assert one.public is not None
    assert one.public == other.public


def test_a_seeded_release() -> None:
    """Who guesses the seed can run Anatomy on every world: of four people one is then known for certain."""
    case = a_case([("0",), ("1",), ("2",), ("3",)], s=("a", "b", "c"))
    policy = a_policy(case, belief("1/2"), method={"name": "anatomy", "l": 2}, recoding="bucketize")
    keeps_its_promises(case, policy, seed=0)


ANATOMY: dict[str, Any] = {
    "columns": {"q1": QUASI, "s": "sensitive"},
    "require": [belief("1/2")],
    "method": {"name": "anatomy", "l": 2},
    "recoding": "bucketize",
}


def test_the_same_policy_twice(tmp_path: Path) -> None:
    """Two draws of Anatomy put together: somebody with a and b in one bucket, a and c in the other, has a."""
    rows = [[str(i), v] for i, v in enumerate("aabc")]
    source = write_csv(tmp_path / "t.csv", rows, ["q1", "s"])
    policy = Policy.load(ANATOMY)
    seen: dict[Any, set[tuple[str, str]]] = {}
    for i in range(8):
        outcome = published_to(tmp_path / str(i), source, policy)
        if not outcome.guaranteed:
            return
        seen[outcome.public] = _possible(tmp_path / str(i) / "public")
    together = set.intersection(*seen.values())
    largest = max(1 / sum(q == mine for q, _ in together) for mine in "0123")
    assert largest <= 1 / 2, f"{len(seen)} guaranteed releases of one table: {sorted(together)}"


def _possible(public: Path) -> set[tuple[str, str]]:
    """Who may have which value, after one release."""
    people, values = (
        [line.split(",") for line in (public / f"{name}.csv").read_text(encoding="utf-8").split()[1:]]
        for name in ("quasi-identifiers", "sensitive")
    )
    return {(q, v) for g, q in people for h, v in values if g == h}


def test_running_again_until_a_draw_pleases(tmp_path: Path) -> None:
    """A gate on another column that some buckets pass and some do not: the same policy gives the same outcome."""
    rows = [[str(i), s, t] for i, (s, t) in enumerate(zip("aabb", "xyxy", strict=True))]
    source = write_csv(tmp_path / "t.csv", rows, ["q1", "s", "t"])
    gate = {"model": "distinct-l-diversity", "l": 2, "attribute": "t", "use": "gate"}
    made = ANATOMY | {
        "columns": {"q1": QUASI, "s": "sensitive", "t": "sensitive"},
        "method": {"name": "anatomy", "l": 2, "attribute": "s"},
        "require": [gate, belief("1/2")],
    }
    outcomes = set()
    for i in range(12):
        outcome = published_to(tmp_path / str(i), source, Policy.load(made))
        label = "guaranteed" if outcome.guaranteed else "measured"
        assert "PolicyError" not in outcome.why
        outcomes.add("refused" if outcome.public is None else label)
    assert len(outcomes) == 1 or "guaranteed" not in outcomes, outcomes


class Copied(Case):
    """A table with a second column that holds the same as the first sensitive one."""

    def table(self, world: Any) -> SmallTable:
        plain = super().table(world)
        at = plain.names.index("s")
        return SmallTable((*plain.names, "copy"), tuple((*row, row[at]) for row in plain.rows))


def test_an_insensitive_column_that_is_a_copy() -> None:
    """It is published beside the exact quasi-identifiers, and says everything."""
    plain = a_case([("0",), ("1",), ("2",), ("3",)], s=("a", "b"))
    case = Copied(plain.names, plain.known, plain.owners, plain.domains, plain.weights)
    columns = {"copy": "insensitive"}
    keeps_its_promises(case, a_policy(case, SIZE, belief("1/2"), columns=columns, recoding="bucketize"))


def test_an_insensitive_column_that_tells_the_rows_of_a_class_apart() -> None:
    """Everybody knows who is in which room: the class of four is two classes of two."""
    known: list[Row] = [("1", room) for room in "AABB"]
    case = a_case(known, names=("q1", "room"), s=("a", "b"))
    columns = {"room": {"role": "insensitive", "near_unique": "allow"}}
    keeps_its_promises(case, a_policy(case, {**SIZE, "k": 4}, belief("1/2"), columns=columns))


@pytest.mark.parametrize("other", ["97.5", "-3", "1e3"])
def test_labels_say_nothing_about_somebody_who_is_not_published(other: str) -> None:
    """The label of the others was 20-24, and [20, 25) as soon as somebody who was dropped is 97.5 years old."""
    case = a_case([("20",)], s=("a", "b"))
    policy = a_policy(
        case, SIZE, belief("1/2"), method={"name": "optimal-lattice", "suppression": "25%"},
        columns={"q1": {"role": QUASI, "hierarchy": {"intervals": [5, 10]}}},
    )  # fmt: skip

    def outcome(age: str) -> Any:
        table = SmallTable(("q1", "s"), tuple(zip(["20", "21", "22", "23", age], "ababa", strict=True)))
        return published(table, policy, Draws(chance(0)))

    usual, odd = outcome("97"), outcome(other)
    assert usual.public is not None
    assert odd.public == usual.public or not (usual.guaranteed and odd.guaranteed)


DIVERSE = {"model": "distinct-l-diversity", "l": 2, "attribute": "s"}


def test_groups_with_the_same_labels_are_one_class_to_a_reader() -> None:
    """What the attack calls exact must be what the worlds say: 1/2 of aaabbb in groups of any kind, and not 2/3."""
    case = a_case([(q,) for q in "AAABBB"], s=("a", "b"))
    policy = a_policy(case, SIZE, DIVERSE, belief("99/100"), method="mondrian")
    outputs = enumerated(case, policy, 4000)
    for public, told in outputs.items():
        world = next(iter(told.likelihood))
        kind, largest = minimality_of(case.table(world), policy, public)
        true = max(belief_after(case, outputs, public, "s", p, (v,)) for p in case.people for v in "ab")
        assert kind != "exact" or largest == pytest.approx(true), (public, kind, largest, true)


@pytest.mark.long  # the same of two rows more, which takes ten times as long
def test_eight_rows_in_groups_with_the_same_labels() -> None:
    """All are `*` to a reader: 13/20 where three have a and five b, which was 3/4, exact, of the groups apart.

    Where labels overlap (`A` and `*`), the share in a class is no less than what somebody believes who does not know
    which of them a person is in.
    """
    case = a_case([(q,) for q in "AAAAABBB"], s=("a", "b"))
    policy = a_policy(case, SIZE, DIVERSE, method="mondrian")
    outputs = enumerated(case, policy, 6000)
    found = {}
    for public, told in outputs.items():
        [[_, _, rows]] = public[0]  # type: ignore[index]
        kind, largest = minimality_of(case.table(next(iter(told.likelihood))), policy, public, whole=True)
        true = max(belief_after(case, outputs, public, "s", p, (v,)) for p in case.people for v in "ab")
        assert largest >= true - 1e-9
        assert kind != "exact" or largest == pytest.approx(true), (
            public,
            largest,
            true,
        )  # overlapping labels, too
        if {label for label, _ in rows} == {"*"}:
            assert (kind, largest) == ("exact", pytest.approx(true))
            found["".join(sorted(value for _, value in rows))] = true
    assert found["aaabbbbb"] == found["aaaaabbb"] == pytest.approx(13 / 20)


@pytest.mark.long  # the same on a larger table, by draws
def test_more_groups_with_the_same_labels() -> None:
    case = a_case([(q,) for q in "AAABBBCC"], s=("a", "b", "c"))
    policy = a_policy(case, SIZE, DIVERSE, belief("99/100"), method="mondrian")
    outputs = drawn(case, policy, 8, chance(0))
    for public, told in outputs.items():
        if sum(told.runs.values()) < 30:
            continue
        world = next(iter(told.likelihood))
        kind, largest = minimality_of(case.table(world), policy, public)
        true = max(belief_after(case, outputs, public, "s", p, (v,)) for p in case.people for v in "abc")
        assert kind != "exact" or true <= float(largest) + 0.05, (public, kind, largest, true)
