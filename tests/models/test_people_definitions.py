"""Several rows per person: every model that counts, on up to eight rows, against sets of (person, value) pairs."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.errors import PolicyError, PolicyNotMet
from tests.amounts import amount
from tests.promise.draws import chance

Row = tuple[str, str, str]  # person, class, value
Held = Counter[str]
MODELS: dict[str, dict[str, Any]] = {
    "k-anonymity": {"k": 1},
    "simple-l-diversity": {"l": 1},
    "distinct-l-diversity": {"l": 1},
    "entropy-l-diversity": {"l": 1},
    "alpha-k-anonymity": {"alpha": 1, "k": 1},
    "p-sensitive-k-anonymity": {"p": 1, "k": 1},
    "t-closeness": {"t": 1},
    "delta-disclosure": {"delta": 99},
    "beta-likeness": {"beta": 99},
    "ke-anonymity": {"k": 1, "e": 0},
    "highest-risk": {"max": 1},
    "average-risk": {"max": 1},
    "recursive-cl-diversity": {"c": 1000, "l": 2},
    "nt-closeness": {"n": 1, "t": 1},
    "k-map": {"k": 1},
    "delta-presence": {"delta_max": 1},
    "individual-risk": {"max": 1},
    "population-uniqueness": {"max": 1, "estimator": "zayatz"},
}
SEARCHED = ("k-anonymity", "highest-risk")


def holders(rows: list[Row]) -> Held:
    """How many people have each value in some row."""
    return Counter(value for _, value in {(person, value) for person, _, value in rows})


def on_paper(model: str, rows: list[Row], table: list[Row], everybody: list[Row]) -> float:
    """What a model measures of one class, from the pairs of its people and values, and whom of everybody it fits."""
    held, whole, people = holders(rows), holders(table), len({person for person, _, _ in rows})
    share = {v: Fraction(held[v], held.total()) for v in whole}
    before = {v: Fraction(whole[v], whole.total()) for v in whole}
    lift = [share[v] / before[v] for v in held]
    falling = sorted(held.values(), reverse=True)
    sizes = sorted(Counter(name for _, name in {(p, q) for p, q, _ in table}).values())
    fitting = len({person for person, name, _ in everybody if name == rows[0][1]})
    number, sampled = len({p for p, _, _ in everybody}), len({p for p, _, _ in table})
    size_of = Counter(name for _, name in {(p, q) for p, q, _ in table})
    most = {p: max(Fraction(1, size_of[q]) for o, q, _ in table if o == p) for p, _, _ in table}
    measured: dict[str, Any] = {
        "k-anonymity": people,
        "simple-l-diversity": Fraction(max(held.values()), people),
        "distinct-l-diversity": len(held),
        "entropy-l-diversity": math.exp(-sum(float(p) * math.log(p) for p in share.values() if p)),
        "recursive-cl-diversity": Fraction(sum(falling[1:]), falling[0]),
        "alpha-k-anonymity": Fraction(max(held.values()), people),
        "p-sensitive-k-anonymity": len(held),
        "t-closeness": sum((abs(share[v] - before[v]) for v in whole), Fraction(0)) / 2,
        "nt-closeness": sum((abs(share[v] - before[v]) for v in whole), Fraction(0)) / 2,
        "delta-disclosure": max(abs(math.log(x)) for x in lift),
        "beta-likeness": max(max(x - 1 for x in lift), Fraction(0)),
        "ke-anonymity": max(map(int, held)) - min(map(int, held)),
        "highest-risk": Fraction(1, people),
        "average-risk": sum(most.values(), Fraction(0)) / sampled,
        "k-map": fitting,
        "delta-presence": Fraction(people, fitting),
        "individual-risk": mean_of_one_over(people, Fraction(sampled, number)),
        "population-uniqueness": zayatz(sizes, round(Fraction(number * sum(sizes), sampled))),
    }
    return float(measured[model])


def mean_of_one_over(people: int, chance_of_each: Fraction) -> float:
    """The mean of 1/F, where F people are asked one after the other until so many were drawn."""
    p = float(chance_of_each)
    return math.fsum(
        math.comb(f - 1, people - 1) * p**people * (1 - p) ** (f - people) / f for f in range(people, 2000)
    )


def zayatz(sizes: list[int], number: int) -> Fraction:
    """The estimated share of uniques of so many, each of whom is in one class."""
    drawn, alone = sum(sizes), sizes.count(1)
    number = max(number, drawn)
    alone_in_sample = sum(
        Fraction(size * math.comb(number - size, drawn - 1), math.comb(number, drawn)) for size in sizes
    )
    return alone * alone * Fraction(drawn, number) / alone_in_sample / drawn if alone else Fraction(0)


@pytest.mark.parametrize("number", range(amount(8, 150)))
def test_every_model_counts_people(number: int, tmp_path: Path) -> None:
    draw = chance(number)
    rows = [
        (draw.choice("ABCD"), draw.choice("xyz"), draw.choice(["10", "20", "50"]))
        for _ in range(draw.randint(4, 8))
    ]
    rows[:2] = ("A", *rows[0][1:]), ("A", *rows[1][1:])
    everybody = [
        *rows,
        *((draw.choice("ABCDEFG"), draw.choice("wxyz"), "") for _ in range(draw.randint(0, 9))),
    ]
    (tmp_path / "all.csv").write_text(
        "id,q\n" + "".join(f"{person},{name}\n" for person, name, _ in everybody)
    )
    people, classes, values = map(list, zip(*rows, strict=True))
    parts = [[row for row in rows if row[1] == name] for name in sorted(set(classes))]
    diverse = min(len(holders(part)) for part in parts) > 1
    required = {name: given for name, given in MODELS.items() if diverse or name != "recursive-cl-diversity"}
    asked = {
        "unit": "id",
        "population": {"file": str(tmp_path / "all.csv")},
        "columns": {"id": "identifier", "q": "quasi-identifier",
                    "s": {"role": "sensitive", "order": sorted(set(values))}},
        "method": "optimal-lattice",
        "require": [
            {"model": name, **given} | ({} if name in SEARCHED else {"use": "gate"})
            for name, given in required.items()
        ],
    }  # fmt: skip
    release = mw.anonymize(pa.table({"id": people, "q": classes, "s": values}), asked)
    assert {row["q"] for row in release.table.to_pylist()} == set(classes)
    found = {v.model: v.values for v in release.verdicts}
    assert found.keys() == required.keys()
    for model in required:
        wanted = sorted(on_paper(model, part, rows, everybody) for part in parts)
        assert sorted(map(float, found[model])) == pytest.approx(wanted, abs=1e-9), (model, rows, everybody)


def test_a_group_of_n_people_is_not_one_of_n_values() -> None:
    """Two people with three values each are no group of three."""
    table = pa.table({"id": list("AAABBB"), "q": ["x"] * 6, "s": list("uvwuvw")})
    asked = {
        "unit": "id",
        "columns": {"id": "identifier", "q": "quasi-identifier", "s": "sensitive"},
        "method": "optimal-lattice",
        "require": [{"model": "k-anonymity", "k": 1}, {"model": "nt-closeness", "n": 2, "t": 1}],
    }
    mw.anonymize(table, asked)
    asked["require"] = [{"model": "k-anonymity", "k": 1}, {"model": "nt-closeness", "n": 3, "t": 1}]
    with pytest.raises(PolicyNotMet):
        mw.anonymize(table, asked)


VISITS = "id,q\nA,x\nA,x\nA,y\nB,x\nB,x\nC,y\nC,y\nC,y\nD,y\n"  # x: A and B; y: A, C and D
ASKED: dict[str, Any] = {
    "unit": {"column": "id", "publish": "pseudonym"},
    "columns": {"id": "identifier", "q": "quasi-identifier", "s": "sensitive"},
    "require": [{"model": "k-anonymity", "k": 1}],
}


def journeys(folder: Path) -> tuple[pa.Table, str]:
    (folder / "all.csv").write_text(VISITS)
    return pa.table({"id": list("AABC"), "q": list("xyxy"), "s": list("uuvv")}), str(folder / "all.csv")


@pytest.mark.parametrize("method", ["optimal-lattice", "incognito"])
def test_the_journalist_counts_the_people_of_the_population(method: str, tmp_path: Path) -> None:
    """In memory, and in what is kept of the population beside a release."""
    table, everybody = journeys(tmp_path)
    asked = ASKED | {"method": method, "population": {"file": everybody}}
    asked["require"] = [*ASKED["require"], {"model": "k-map", "k": 2}]
    release = mw.anonymize(table, asked, tmp_path / "r")
    assert sorted(next(v for v in release.verdicts if v.model == "k-map").values) == [2, 3]
    for made in (release, tmp_path / "r"):
        found = mw.attack(made, "linkage", adversary="journalist")
        assert not isinstance(found, list)
        assert found.measures["journalist"]["after"]["smallest_match"] == 2


def test_an_audit_counts_people_where_the_population_tells_whose_rows_are_whose(tmp_path: Path) -> None:
    table, everybody = journeys(tmp_path)
    bare = tmp_path / "bare.csv"
    bare.write_text("q\nx\nx\nx\nx\ny\ny\ny\ny\ny\n")
    for population, people in ((everybody, "2"), (bare, "4")):
        found = mw.audit(table, ["q"], unit="id", sensitive=["s"], population=population)
        [verdict] = [v for v in found.measured if v.model == "k-map"]
        assert str(verdict.worst) == people


def test_an_audit_says_which_models_are_not_asked_of_people(tmp_path: Path) -> None:
    table, _ = journeys(tmp_path)
    apart = mw.audit(table, ["q"], ["s"], unit="none")
    assert not any("not measured" in note for note in apart.notes)
    assert "ck-safety" in {v.model for v in apart.measured}
    found = mw.audit(table, ["q"], ["s"], unit="id")
    assert "ck-safety" not in {v.model for v in found.measured}
    for model in ("ck-safety", "m-confidentiality"):
        assert f"note: not measured: {model}" in str(found)
    with pytest.raises(PolicyError, match=r"several rows.*require \{model: belief"):
        mw.audit(table, ["q"], ["s"], unit="id", require=["ck-safety c=1 k=1"])
