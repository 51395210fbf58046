"""A survey from file to report: weights, households, the size of the population, and what is refused."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.domain.beliefs import Beliefs
from maskwright.errors import InputError, MaskwrightError, PolicyError, PolicyNotMet
from maskwright.pipeline.job import Job
from maskwright.pipeline.session import prepared_run
from maskwright.verification.verify import verify_folder
from tests.patients import write_csv

COLUMNS = ["age", "sex", "disease", "home", "w"]
ROWS = [
    [
        str(20 + i % 6),
        "" if i % 11 == 5 else "mf"[i % 2],
        ["flu", "ulcer", "asthma"][i % 3],
        f"h{i // 3}",
        f"{2 + i % 7}.5",
    ]
    for i in range(48)
]


def policy(*require: dict[str, Any], **more: Any) -> mw.Policy:
    columns = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4]}},
        "sex": "quasi-identifier",
        "disease": "sensitive",
    }
    asked = list(require) or [{"model": "k-anonymity", "k": 3}]
    return mw.Policy.load({"columns": columns, "require": asked} | more)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "t.csv", ROWS, COLUMNS)


def plain_risk(f: int, weight: float) -> float:
    """Individual risk by its recurrence in plain Python; the shares here are below one half."""
    p = f / weight
    risk = -p * math.log(p) / (1 - p)
    for i in range(1, f):
        risk = p / (1 - p) * (1 / i - risk)
    return risk


def by_class(keys: list[tuple[str, ...]]) -> dict[tuple[str, ...], tuple[int, float]]:
    people: Counter[tuple[str, ...]] = Counter(keys)
    weights: dict[tuple[str, ...], float] = defaultdict(float)
    for key, row in zip(keys, ROWS, strict=True):
        weights[key] += float(row[4])
    return {key: (n, weights[key]) for key, n in people.items()}


def linkage(release: mw.Release | Path, adversary: str = "journalist") -> Beliefs:
    found = mw.attack(release, "linkage", adversary=adversary)
    assert isinstance(found, Beliefs)
    return found


def test_weights_and_households_before_the_release(source: Path) -> None:
    found = linkage(mw.anonymize(source, policy(weight="w", household="home"))).measures["estimated"]
    keys = [(row[0], row[1]) for row in ROWS]
    classes = by_class(keys)
    risks = [plain_risk(*classes[key]) for key in keys]
    assert found["before"]["highest"] == pytest.approx(max(risks))
    assert found["before"]["expected_reidentifications"] == pytest.approx(sum(risks))
    assert found["before"]["marketer"] == pytest.approx(sum(risks) / 48)
    assert found["population"]["size"] == round(sum(float(row[4]) for row in ROWS))
    homes: dict[str, float] = defaultdict(lambda: 1.0)
    for row, risk in zip(ROWS, risks, strict=True):
        homes[row[3]] *= 1 - risk
    assert found["before"]["households"]["households"] == 16
    assert found["before"]["households"]["highest"] == pytest.approx(1 - min(homes.values()))
    assert found["before"]["households"]["expected_people"] == pytest.approx(
        sum(3 * (1 - x) for x in homes.values())
    )


@pytest.mark.parametrize("method", ["optimal-lattice", "incognito", "mondrian", "local-recoding"])
def test_the_gate_is_what_is_recounted(method: str, source: Path, tmp_path: Path) -> None:
    """Weights of classes are carried through recount, folder and `verify`; the release shows no weight."""
    require = [{"model": "k-anonymity", "k": 3}, {"model": "individual-risk", "max": "1/5", "use": "gate"}]
    made = policy(*require, weight="w", household="home", method={"name": method})
    release = mw.anonymize(source, made, tmp_path / "r")
    public = pd.read_csv(tmp_path / "r/public/data.csv", dtype=str, keep_default_na=False)
    assert list(public.columns) == ["age", "sex", "disease"]
    (gate,) = [v for v in release.verdicts if v.model == "individual-risk"]
    assert verify_folder(tmp_path / "r").ok
    (again,) = [v for v in verify_folder(tmp_path / "r").verdicts if v.model == "individual-risk"]
    assert again.worst == gate.worst
    saved, here = linkage(tmp_path / "r"), linkage(release)
    assert saved.as_dict() == here.as_dict()
    assert saved.kind == "estimated"
    assert float(saved.worst.after) == pytest.approx(gate.worst)
    assert linkage(release, "neighbour").kind == "exact"
    stored = json.loads((tmp_path / "r/private/classes.json").read_text("utf-8"))
    assert sum(stored["weights"]) == pytest.approx(sum(float(row[4]) for row in ROWS))


def test_searched_for_by_weight(source: Path) -> None:
    """Full-domain methods find the level at which every class stands for enough people."""
    strict = {"model": "individual-risk", "max": "0.06"}
    for method in ("optimal-lattice", "samarati", "incognito"):
        release = mw.anonymize(source, policy(strict, weight="w", method={"name": method}))
        level = release.grouping.levels
        assert level is not None and sum(level) > 0
        assert all(v.ok for v in release.verdicts)
    for method in ("mondrian", "local-recoding"):
        with pytest.raises(PolicyError, match="use: gate"):
            mw.anonymize(source, policy(strict, weight="w", method={"name": method}))
    with pytest.raises(PolicyNotMet, match=r"individual-risk FAILS.*this release would satisfy max: "):
        mw.anonymize(
            source, policy({"model": "k-anonymity", "k": 2}, {"model": "individual-risk", "max": "0.01", "use": "gate"},
                           weight="w")
        )  # fmt: skip


def test_a_size_alone(source: Path, tmp_path: Path) -> None:
    require = [
        {"model": "k-anonymity", "k": 3},
        {"model": "population-uniqueness", "max": "1/10", "use": "gate"},
    ]
    release = mw.anonymize(source, policy(*require, population={"size": 480}), tmp_path / "r")
    found = linkage(release).measures["estimated"]
    assert found["population"] == {
        "size": 480,
        "people": 48,
        "weighted": False,
        "wildcard": False,
        "fraction": 0.1,
    }
    sizes = Counter((row[0], row[1]) for row in ROWS)
    assert found["before"]["highest"] == pytest.approx(max(plain_risk(f, 10 * f) for f in sizes.values()))
    assert verify_folder(tmp_path / "r").ok
    page = (tmp_path / "r/private/report.html").read_text("utf-8")
    for text in ("Who could re-identify people", "Estimated for the population", "Zayatz", "no guarantee"):
        assert text in page
    assert "Zayatz" not in (tmp_path / "r/public/data-card.html").read_text("utf-8")
    assert mw.Policy.load(tmp_path / "r/private/policy.yaml").population == release.policy.population


def test_missing_as_a_wildcard(source: Path) -> None:
    plain, wild = (
        linkage(mw.anonymize(source, policy(weight="w", missing={"wildcard": on}))).measures["estimated"]
        for on in (False, True)
    )
    keys = [(row[0], row[1]) for row in ROWS]
    classes = by_class(keys)

    def alike(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
        return all(x == y or not x or not y for x, y in zip(a, b, strict=True))

    risks = [
        plain_risk(*map(sum, zip(*(v for k, v in classes.items() if alike(k, key)), strict=True)))
        for key in keys
    ]
    assert wild["before"]["highest"] == pytest.approx(max(risks))
    assert wild["before"]["expected_reidentifications"] == pytest.approx(sum(risks))
    assert wild["before"]["expected_reidentifications"] < plain["before"]["expected_reidentifications"]


def test_rows_with_missing_values_are_left_out_of_the_weights(source: Path) -> None:
    release = mw.anonymize(source, policy(weight="w", household="home", missing={"rows": "drop"}))
    kept = [row for row in ROWS if row[1]]
    found = linkage(release).measures["estimated"]["population"]
    assert (found["people"], found["size"]) == (len(kept), round(sum(float(row[4]) for row in kept)))


def test_weights_are_scaled_to_a_known_size(tmp_path: Path) -> None:
    rows = [[*row[:4], str(float(row[4]) / 6)] for row in ROWS]
    scaled = write_csv(tmp_path / "scaled.csv", rows, COLUMNS)
    with pytest.raises(InputError, match=r"less than the 48 rows.*population: \{size: 100000\}"):
        mw.anonymize(scaled, policy(weight="w", population=None))
    size = 4800
    one = linkage(mw.anonymize(scaled, policy(weight="w", population={"size": size}))).measures["estimated"]
    source = write_csv(tmp_path / "t.csv", ROWS, COLUMNS)
    other = linkage(mw.anonymize(source, policy(weight="w", population={"size": size}))).measures["estimated"]
    assert one["before"]["highest"] == pytest.approx(other["before"]["highest"])
    assert one["population"] == other["population"]


def test_a_population_table_counts_and_estimates(source: Path, tmp_path: Path) -> None:
    everybody = [row[:2] for row in ROWS for _ in range(3)]
    write_csv(tmp_path / "everybody.csv", everybody, COLUMNS[:2])
    made = policy(population={"file": str(tmp_path / "everybody.csv")})
    found = linkage(mw.anonymize(source, made))
    assert found.kind == "exact"
    assert {"journalist", "estimated"} <= found.measures.keys()
    assert found.measures["estimated"]["population"]["size"] == 144


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"population": {}}, "name either a table of everybody"),
        ({"population": {"size": 100, "file": "x.csv"}}, "name either a table of everybody"),
        ({"population": {"size": 0}}, "size"),
        ({"household": "home"}, r"population: \{size: 100000\}"),
        ({"missing": {"wildcard": True}}, "missing.wildcard"),
        ({"weight": "age"}, "'age' is a quasi-identifier"),
        ({"weight": "w", "household": "w"}, "holds the weights"),
        ({"weight": "w", "unit": "home"}, "several rows"),
        ({"population": {"size": 100}, "household": "home", "unit": "id"}, "several rows"),
        ({"require": [{"model": "individual-risk", "max": "1/2"}]}, r"population: \{size: 100000\}"),
        ({"require": [{"model": "k-map", "k": 2}], "population": {"size": 100}}, "individual-risk estimates"),
    ],
)
def test_what_a_policy_cannot_say(settings: dict[str, Any], message: str, source: Path) -> None:
    with pytest.raises(PolicyError, match=message) as caught:
        mw.anonymize(source, policy(**settings))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("weight", "home", "message"),
    [
        ("", "h1", "'w' is missing in 1 rows"),
        ("many", "h1", "'many', which is no weight"),
        ("-3", "h1", "numbers above 0"),
        ("inf", "h1", "numbers above 0"),
        ("3", "", "'home' is missing in 1 rows"),
    ],
)
def test_what_a_survey_cannot_hold(weight: str, home: str, message: str, tmp_path: Path) -> None:
    rows = [*ROWS, ["21", "m", "flu", home, weight]]
    table = write_csv(tmp_path / "t.csv", rows, COLUMNS)
    with pytest.raises(InputError, match=message):
        mw.anonymize(table, policy(weight="w", household="home"), tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_columns_and_sizes_that_do_not_fit(source: Path) -> None:
    with pytest.raises(MaskwrightError, match=r"'wt' that the table does not have.*'w'"):
        mw.anonymize(source, policy(weight="wt"))
    with pytest.raises(InputError, match="a population of 40 cannot have 48 people"):
        mw.anonymize(source, policy(population={"size": 40}))


def test_a_promise_names_the_weights(source: Path) -> None:
    require = [
        {"model": "k-anonymity", "k": 3},
        {"model": "individual-risk", "max": "1/2", "use": "gate"},
    ]
    covered = {}
    for name, settings in (("weight", {"weight": "w"}), ("size", {"population": {"size": 480}})):
        promises = mw.anonymize(source, policy(*require, **settings)).promises
        covered[name] = [i.covered for p in promises for i in p.ingredients if i.name == "weights"]
    assert covered["weight"] and not any(covered["weight"])
    assert covered["size"] == []


def test_weights_that_no_search_looks_at_are_no_way_to_draw_again(source: Path, tmp_path: Path) -> None:
    """The key behind the groups is the same with any weights and without, unless a search looks at them."""
    rows = [[*row[:4], "9"] for row in ROWS]
    other = write_csv(tmp_path / "o.csv", rows, COLUMNS)
    gate = {"model": "individual-risk", "max": "1/2", "use": "gate"}
    size = {"model": "k-anonymity", "k": 3}

    def key(table: Path, made: mw.Policy) -> bytes:
        with prepared_run(Job(table, made)) as ready:
            return ready.keys.groups

    asked = [policy(size), policy(size, weight="w"), policy(size, gate, weight="w", household="home")]
    assert len({key(table, made) for table in (source, other) for made in asked}) == 1
    searched = policy(gate | {"use": "search"}, weight="w")
    assert key(source, searched) != key(other, searched)
