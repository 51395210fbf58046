"""Written knowledge about people with several rows: beliefs about some row of each, against every dealing of rows."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.attacks._people import people_knowledge
from maskwright.attacks.background_knowledge import BackgroundKnowledge
from maskwright.cli.commands import main
from maskwright.domain.beliefs import NOT_COMPUTED, Beliefs
from maskwright.errors import UsageError
from maskwright.worlds.statements.language import parse_statements, people_of
from tests.amounts import amount
from tests.promise.draws import chance

Rows = list[tuple[str, str, str]]  # person, class, value
POLICY: dict[str, Any] = {
    "unit": "id",
    "columns": {
        "id": "identifier",
        "name": {"role": "quasi-identifier", "hierarchy": "suppress", "levels": ["any"]},
        "q": "quasi-identifier",
        "s": "sensitive",
    },
    "require": [{"model": "k-anonymity", "k": 1}],
    "method": "optimal-lattice",
}


def released(rows: Rows) -> mw.Release:
    people, classes, values = map(list, zip(*rows, strict=True))
    return mw.anonymize(pa.table({"id": people, "name": people, "q": classes, "s": values}), POLICY)


def attacked(rows: Rows, *knowing: str, **more: Any) -> Beliefs:
    found = mw.attack(released(rows), BackgroundKnowledge(knowing=knowing, **more))
    assert isinstance(found, Beliefs)
    return found


def every_world(rows: Rows) -> list[list[str]]:
    """The value of each row, for every way to deal the values of each class to its rows."""
    classes = sorted({q for _, q, _ in rows})
    places = [[i for i, (_, q, _) in enumerate(rows) if q == name] for name in classes]
    found = []
    for dealt in itertools.product(*(itertools.permutations(rows[i][2] for i in mine) for mine in places)):
        world = [""] * len(rows)
        for mine, values in zip(places, dealt, strict=True):
            for i, value in zip(mine, values, strict=True):
                world[i] = value
        found.append(world)
    return found


def believed(rows: Rows, worlds: list[list[str]], person: str, value: str) -> Fraction:
    """The share of worlds in which some row of the person holds the value."""
    held = sum(any(p == person and w[i] == value for i, (p, _, _) in enumerate(rows)) for w in worlds)
    return Fraction(held, len(worlds))


def agreeing(
    rows: Rows, worlds: list[list[str]], texts: tuple[str, ...], barred: tuple[str, str] | None
) -> Any:
    """The worlds in which what is known is true: of a person, that some row has a value."""
    formulas = [formula for _, formula in parse_statements("\n".join(texts)).formulas]
    left = []
    for world in worlds:
        if barred is not None and any(
            p == barred[0] and v == barred[1] for (p, _, _), v in zip(rows, world, strict=True)
        ):
            continue
        said = True
        for formula in formulas:
            values = {
                (who, "s"): [world[i] for i, row in enumerate(rows) if row[0] == dict(who.conditions)["name"]]
                for who in people_of(formula)
            }
            said &= formula.true(values)
        left += [world] if said else []
    return left


FACTS = (
    "person(name={a}).s = {x}",
    "not person(name={a}).s = {x}",
    "person(name={a}).s = {x} implies person(name={b}).s = {y}",
    "person(name={a}).s = {x} or not person(name={b}).s in {{{x}, {y}}}",
)


@pytest.mark.parametrize("number", range(amount(12, 200)))
def test_beliefs_are_those_of_every_world(number: int) -> None:
    draw = chance(number)
    rows = [
        (draw.choice("ABCD"), draw.choice("xy"), draw.choice("pqr")) for _ in range(draw.choice([4, 5, 6, 7]))
    ]
    rows[:2] = ("A", *rows[0][1:]), ("B", *rows[1][1:])
    people = sorted({p for p, _, _ in rows})
    texts = tuple(
        draw.choice(FACTS).format(
            a=draw.choice(people), b=draw.choice(people), x=draw.choice("pq"), y=draw.choice("pq")
        )
        for _ in range(1 + number % 2)
    )
    texts = tuple(t for t in texts if all(v in {v for _, _, v in rows} for v in "pq"))
    barred = (draw.choice(people), "p") if number % 3 == 0 and any(v == "p" for _, _, v in rows) else None
    said = texts + ((f"impossible(name={barred[0]}, s=p)",) if barred else ())
    if not said:
        return
    found, every = attacked(rows, *said), every_world(rows)
    left = agreeing(rows, every, texts, barred)
    assert found.measures["consistent"] == bool(left)
    if not left:
        return
    touched = {q for p, q, _ in rows if any(f"name={p})" in t for t in texts)}
    if barred:
        touched |= {q for p, q, _ in rows if p == barred[0] and (q, "p") in {(c, v) for _, c, v in rows}}
    true = Fraction(0)
    for person in people:
        if any(p == person and q in touched for p, q, _ in rows):
            for value in sorted({v for _, _, v in rows}):
                true = max(true, believed(rows, left, person, value))
                named = found.measures["people"].get(f"person(name={person})", {}).get(f"s {value}")
                if named is not None:
                    assert named == {
                        "before": believed(rows, every, person, value), "after": believed(rows, left, person, value)
                    }  # fmt: skip
    assert (found.kind, found.worst.after) == ("exact", true), (rows, said)


LARGE = [(f"p{i % 40}", "x", "uvwz"[i % 4]) for i in range(80)]


def test_worlds_are_drawn_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two rows each among 80: drawn beliefs lie about the exact ones, within their ends."""
    said = ("person(name=p1).s = u implies person(name=p2).s = v",)
    exact = attacked(LARGE, *said)
    assert exact.kind == "exact"
    for name in ("STEPS", "MOST_EVENTS"):
        monkeypatch.setattr(people_knowledge, name, 1)
    drawn = attacked(LARGE, *said, draws=4000)
    assert drawn.kind == "bounded"  # of everybody else, the sum over the rows
    assert drawn.worst.upper >= exact.worst.after
    for person in ("person(name=p1)", "person(name=p2)"):
        for secret, belief in exact.measures["people"][person].items():
            assert abs(float(drawn.measures["people"][person][secret]["after"] - belief["after"])) < 0.06


def test_a_predicate_is_given_the_values_of_all_rows() -> None:
    rows = [("A", "x", "p"), ("A", "x", "q"), ("B", "x", "q"), ("C", "x", "r")]
    ask = BackgroundKnowledge(
        knowing=("Ann is person(name=A)", "Bob is person(name=B)"),
        predicate=lambda world: (
            "q" in world["Ann"]["s"] and len(world["Ann"]["s"]) == 2 and world["Bob"]["s"] != ("p",)
        ),
    )
    found = mw.attack(released(rows), ask)
    assert isinstance(found, Beliefs)
    left = [w for w in every_world(rows) if "q" in w[:2] and w[2] != "p"]
    assert found.measures["people"]["Ann"]["s p"]["after"] == believed(rows, left, "A", "p")


def test_who_is_meant_must_be_clear() -> None:
    rows = [("A", "x", "p"), ("A", "y", "q"), ("B", "x", "q"), ("C", "x", "p"), ("C", "y", "q")]
    with pytest.raises(
        UsageError, match="3 people have a row with q=x, and their rows are in different classes"
    ):
        attacked(rows, "person(q=x).s = p")
    found = attacked(
        rows, "person(q=y).s = p", "Cleo is person(q=y)", "not Cleo.s = p"
    )  # Ann and Cleo are alike
    assert set(found.measures["people"]) >= {"person(q=y)", "Cleo"}
    with pytest.raises(UsageError, match="more people with q=y are named than there are"):
        attacked(
            rows, "a is person(q=y)", "b is person(q=y)", "c is person(q=y)", "a.s = p or b.s = p or c.s = p"
        )
    with pytest.raises(UsageError, match="nobody in the table has name=Z"):
        attacked(rows, "person(name=Z).s = p")


def test_the_command_weighs_what_is_known(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("A", "x", "p"), ("A", "x", "q"), ("B", "x", "q"), ("C", "x", "r")]
    people, classes, values = map(list, zip(*rows, strict=True))
    mw.anonymize(pa.table({"id": people, "name": people, "q": classes, "s": values}), POLICY, tmp_path / "r")
    arguments = [
        "attack",
        str(tmp_path / "r"),
        "--knowing",
        "not person(name=B).s = q",
        "--max-belief",
        "9/10",
    ]
    assert main(arguments) == 1
    assert "some row" in (told := capsys.readouterr().out) or "person(name=A)" in told
    assert "NOT COMPUTED" not in told
    changed = released(rows)
    assert changed.target is not None and NOT_COMPUTED not in {b.kind for b in changed.beliefs}
