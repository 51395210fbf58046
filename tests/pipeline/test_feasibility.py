"""Room for a bound: told before the search, from the histogram alone, and true of what the search then makes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.domain.method import Task
from maskwright.errors import PolicyNotMet
from maskwright.pipeline.feasibility import (
    Holders,
    bounds_of,
    halves_kept,
    more_than,
    room_for,
    room_warnings,
    round_share,
)
from maskwright.pipeline.job import Job
from maskwright.pipeline.session import Prepared, prepared_run
from tests.amounts import amount, crossed
from tests.patients import Command, write_csv

ROWS, HOLDING = 2000, 498  # one in 4.016


def table(folder: Path, rows: int = ROWS, holding: int = HOLDING, seed: int = 1) -> Path:
    """People of whom so many have cancer, whatever their age and zip."""
    draw = np.random.default_rng(seed)
    disease = draw.permutation(["cancer"] * holding + ["flu"] * (rows - holding))
    ages, zips = draw.integers(20, 84, rows), draw.integers(0, 40, rows)
    cells = [[str(a), f"1{z:02}", str(d)] for a, z, d in zip(ages, zips, disease, strict=True)]
    return write_csv(folder / "t.csv", cells, ["age", "zip", "disease"])


def policy(bound: Any, method: Any = "mondrian", model: str = "belief", **more: Any) -> mw.Policy:
    setting = {"belief": "max", "simple-l-diversity": "l", "alpha-k-anonymity": "alpha"}[model]
    asked = {"model": model, setting: bound, "attribute": "disease", **more}
    return mw.Policy.load(
        {
            "columns": {
                "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [4, 16]}},
                "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
                "disease": {"role": "sensitive", "sensitive_sets": [["cancer"]]},
            },
            "require": [{"model": "k-anonymity", "k": 4}, asked],
            "method": method,
        }
    )


def sorted_table(folder: Path) -> Path:
    """Who is older lives further away and has cancer, so that no cut keeps a bound near the share of all."""
    cells = [
        [str(20 + i // 32), f"1{i // 50:02}", "flu" if i < ROWS - 490 else "cancer"] for i in range(ROWS)
    ]
    return write_csv(folder / "t.csv", cells, ["age", "zip", "disease"])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return table(tmp_path)


def warned(source: Path, made: mw.Policy) -> list[str]:
    with prepared_run(Job(source, made)) as ready:
        return room_warnings(ready.task, ready.resolved.method, ready.resolved.models)


# -- the estimate against counting --------------------------------------------------------------------------


def test_the_chance_is_the_hypergeometric_one() -> None:
    for people, holding, drawn in [(12, 3, 6), (12, 5, 4), (30, 7, 15), (9, 9, 3), (9, 0, 3)]:
        for allowed in range(-1, drawn + 1):
            ways = sum(
                comb(holding, x) * comb(people - holding, drawn - x) for x in range(allowed + 1, drawn + 1)
            )
            exact = Fraction(ways, comb(people, drawn))
            assert more_than(allowed, people, holding, drawn) == pytest.approx(float(exact), abs=1e-9)


def test_the_chance_of_large_tables_is_that_of_exact_integers() -> None:
    people, holding, drawn, allowed = 6_000, 1_500, 3_000, 770
    ways = sum(comb(holding, x) * comb(people - holding, drawn - x) for x in range(allowed + 1, holding + 1))
    exact = Fraction(ways, comb(people, drawn))
    assert more_than(allowed, people, holding, drawn) == pytest.approx(float(exact), rel=1e-6)


def every_half(values: Sequence[int], share: Fraction) -> Fraction:
    """The share of the divisions into two halves in which no value has more than a share of either."""
    n, good, every = len(values), 0, 0
    for half in combinations(range(n), n // 2):
        inside = [values[i] for i in half]
        outside = [v for i, v in enumerate(values) if i not in half]
        every += 1
        good += all(
            part.count(v) <= share * len(part) for part in (inside, outside) for v in set(values) - {0}
        )
    return Fraction(good, every)


@pytest.mark.parametrize("counts", [(2,), (3,), (4,), (2, 2), (3, 2), (3, 3, 3), (2, 2, 2, 2)])
def test_halves_against_every_division(counts: tuple[int, ...]) -> None:
    """For one value exactly, for several at least: 0 stands for what nobody asks about."""
    values = [v for v, c in enumerate(counts, 1) for _ in range(c)]
    values += [0] * (10 - len(values)) if len(values) < 10 else []
    values = values if len(values) % 2 == 0 else [*values, 0]
    for share in (Fraction(2, 5), Fraction(1, 2), Fraction(3, 5)):
        holders = Holders(len(values), tuple(sorted(counts, reverse=True)), "it")
        found, true = halves_kept(holders, share, len(values) // 2), every_half(values, share)
        assert found <= float(true) + 1e-9
        if len(counts) == 1:
            assert found == pytest.approx(float(true))


@pytest.mark.parametrize("share", ["0.25", "0.27", "0.3", "1/3", "0.4"])
def test_room_is_how_many_classes_random_halvings_make(share: str) -> None:
    """Simulated: the classes of a table whose quasi-identifiers say nothing, halved as long as both halves keep it."""
    bound, draw, least = Fraction(share), np.random.default_rng(7), 4
    made = [
        _halved(draw.permutation([1] * HOLDING + [0] * (ROWS - HOLDING)), bound, least) for _ in range(40)
    ]
    room = room_for(Holders(ROWS, (HOLDING,), "it"), bound, least)
    assert room / 4 <= np.mean(made) <= 4 * room


def _halved(values: Any, share: Fraction, least: int) -> int:
    half = len(values) // 2
    parts = [values[:half], values[half : 2 * half]]
    if half < least or any(part.sum() > share * half for part in parts):
        return 1
    return sum(_halved(part, share, least) for part in parts)


@pytest.mark.parametrize(
    ("share", "l", "rounds_to"),
    [
        ("0.2546", False, "1/3"), ("0.36", False, "2/5"), ("0.51", False, "3/5"), ("0.893", False, "9/10"),
        ("0.0125", False, "1/80"), ("0.013", False, "1/70"), ("0.2546", True, "3"), ("0.36", True, "5/2"),
        ("0.55", True, "9/5"), ("0.5", False, "1/2"), ("0.01", True, "100"),
    ],
)  # fmt: skip
def test_bounds_are_rounded_to_what_people_write(share: str, l: bool, rounds_to: str) -> None:  # noqa: E741
    found = round_share(Fraction(share), inverse=l)
    assert found == Fraction(rounds_to)
    assert (1 / found if l else found) >= Fraction(share), "it has the room that was asked for"


# -- what is said -------------------------------------------------------------------------------------------


def test_no_room_is_told_with_exact_numbers_and_the_bound_that_has_it(source: Path) -> None:
    told = warned(source, policy("1/4"))
    assert len(told) == 1
    assert told[0].startswith(
        "belief of disease with max: 0.25 leaves no room: one person in 4.02 holds 'cancer' (498 of 2,000)"
    )
    assert "max: 1/3 leaves room" in told[0]


METHODS: list[Any] = [
    "mondrian", {"name": "mondrian", "dimensions": "widest"}, {"name": "mondrian", "cut": "relaxed"}, "optimal-lattice",
    "symmetric-grouping", "alpha-k-local", "local-recoding",
]  # fmt: skip


@pytest.mark.parametrize(("method", "seed"), crossed(METHODS, [1, 2, 3]), ids=str)
def test_the_offered_bound_publishes_more_than_one_class(method: Any, seed: int, tmp_path: Path) -> None:
    source = table(tmp_path, seed=seed)
    model, bound = ("belief", "1/4") if method == "mondrian" else ("simple-l-diversity", "4")
    told = warned(source, policy(bound, method, model))
    assert len(told) == 1
    offered = re.search(r"(?:max|l): (\S+) leaves room", told[0])
    assert offered is not None
    assert warned(source, policy(offered[1], method, model)) == []
    with prepared_run(Job(source, policy(offered[1], method, model))) as ready:
        assert ready.resolved.method.group(ready.task).classes.n > 1


def test_a_belief_that_needs_more_of_the_method_says_so(source: Path) -> None:
    told = warned(source, policy("1/3", "symmetric-grouping"))
    assert (
        "with max: 1/3 (for which symmetric-grouping needs l-diversity with l = 4) leaves no room" in told[0]
    )
    offered = re.search(r"max: (\S+) leaves room", told[0].partition("leaves no room")[2])
    assert offered is not None
    assert warned(source, policy(offered[1], "symmetric-grouping")) == []


@pytest.mark.parametrize(
    ("bound", "method", "model"),
    [
        ("1/2", "mondrian", "belief"), ("0.4", "mondrian", "belief"), ("2", "optimal-lattice", "simple-l-diversity"),
        ("1/4", "greedy-grouping", "belief"), ("0.26", "optimal-lattice", "belief"),
    ],
)  # fmt: skip
def test_nothing_is_said_where_there_is_room_or_nothing_is_searched(
    bound: str, method: str, model: str, source: Path
) -> None:
    assert warned(source, policy(bound, method, model)) == []


def test_what_is_said_depends_on_the_histogram_alone(tmp_path: Path) -> None:
    """However the values are dealt to the people, the words are the same."""
    found = set()
    for seed in range(5):
        (tmp_path / str(seed)).mkdir()
        found.add(tuple(warned(table(tmp_path / str(seed), 400, 99, seed), policy("1/4"))))
    assert len(found) == 1
    assert found != {()}


# -- refused in advance -------------------------------------------------------------------------------------


def impossible(ready: Prepared) -> Iterator[bool]:
    """Is the share above the bound in whatever is published, counted from the whole table?"""
    task: Task = ready.task
    left = ready.resolved.method.most_left_out(task)
    assert left is not None
    for bound in bounds_of(ready.resolved.models, ready.resolved.method, task.context):
        yield bound.holders.most - left > bound.share * (task.summary.n_rows - left)


def test_a_bound_below_the_share_is_refused_before_the_search(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwright.methods.mondrian import Mondrian

    def searched(*_: Any) -> Any:
        raise AssertionError("it was searched for")

    monkeypatch.setattr(Mondrian, "group", searched)
    with pytest.raises(PolicyNotMet) as refused:
        mw.anonymize(source, policy("1/5"))
    said = str(refused.value)
    assert "with max: 0.2 cannot be kept: one person in 4.02 holds 'cancer' (498 of 2,000)" in said
    assert "max: 1/3 leaves room" in said


@pytest.mark.parametrize(
    ("method", "model", "bound"),
    [
        ("optimal-lattice", "simple-l-diversity", "5"), ("anatomy", "simple-l-diversity", "5"),
        ("symmetric-grouping", "simple-l-diversity", "5"), ("local-recoding", "alpha-k-anonymity", "0.2"),
        ("samarati", "simple-l-diversity", "5"), ("alpha-k-local", "alpha-k-anonymity", "0.2"),
    ],
)  # fmt: skip
def test_one_message_for_every_method(method: str, model: str, bound: str, tmp_path: Path) -> None:
    more = {"k": 4} if model == "alpha-k-anonymity" else {}
    with pytest.raises(PolicyNotMet, match=r"cannot be kept: one person in 4 holds 'cancer' \(100 of 400\)"):
        mw.anonymize(table(tmp_path, 400, 100), policy(bound, method, model, values=["cancer"], **more))


def test_a_value_that_nobody_holds_needs_no_room(tmp_path: Path) -> None:
    """Of a small table that may lose half of its rows hardly any classes are left, whatever the bound."""
    source = write_csv(
        tmp_path / "t.csv", [[age, "flu"] for age in ("31", "31", "47", "47")], ["age", "disease"]
    )
    method = {"name": "optimal-lattice", "suppression": "50%", "suppress": "failing-classes"}
    columns = {"age": "quasi-identifier", "disease": {"role": "sensitive", "sensitive_sets": [["cancer"]]}}
    asked = [
        {"model": "k-anonymity", "k": 2},
        {"model": "simple-l-diversity", "l": "3/2", "attribute": "disease"},
    ]
    release = mw.anonymize(source, {"columns": columns, "method": method, "require": asked})
    assert release.tables["data"].shape[0] == 4
    assert not release.warnings


def test_suppression_is_taken_into_account(tmp_path: Path) -> None:
    """What leaving rows out can reach is searched for, not refused in advance."""
    source = table(tmp_path, 400, 110)
    drops = {"name": "optimal-lattice", "suppression": "10%", "suppress": "failing-classes"}
    with prepared_run(Job(source, policy("4", drops, "simple-l-diversity"))) as ready:
        assert not any(impossible(ready))
    with prepared_run(Job(source, policy("4", drops | {"suppression": "1%"}, "simple-l-diversity"))) as ready:
        assert any(impossible(ready))


def test_what_is_refused_in_advance_no_search_could_have_found(tmp_path: Path) -> None:
    """Small tables, shares around the bound: where the method finds something, nothing was refused before it."""
    from maskwright.pipeline.feasibility import refuse_impossible

    refused = found = 0
    for seed in range(amount(30, 60)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        draw = np.random.default_rng(seed)
        source = table(folder, int(draw.integers(9, 24)), int(draw.integers(1, 9)), seed)
        method = [
            {"name": "mondrian"},
            {"name": "optimal-lattice", "suppression": "25%", "suppress": "failing-classes"},
        ]
        made = policy("2", method[seed % 2], "simple-l-diversity").model_copy(
            update={
                "require": policy(
                    str(draw.choice(["2", "3", "4"])), "mondrian", "simple-l-diversity"
                ).require[1:]
            }
        )
        with prepared_run(Job(source, made)) as ready:
            try:
                refuse_impossible(ready.task, ready.resolved.method, ready.resolved.models)
            except PolicyNotMet:
                refused += 1
                with pytest.raises(PolicyNotMet):
                    ready.resolved.method.group(ready.task)
            else:
                found += 1
    assert min(refused, found) >= amount(5, 10)


# -- never green without a word -----------------------------------------------------------------------------


def test_one_class_is_said_in_the_first_lines(maskwright: Command, tmp_path: Path) -> None:
    source = sorted_table(tmp_path)
    made = policy("1/4", {"name": "mondrian", "dimensions": "widest"})
    (tmp_path / "p.yaml").write_text(made.to_yaml(), encoding="utf-8")
    done = maskwright("anonymize", source, "-p", tmp_path / "p.yaml", "-o", tmp_path / "r")
    assert done.code == 0, done.err
    record = json.loads((tmp_path / "r/private/manifest.json").read_bytes())
    assert record["verdicts"][0]["groups"] == 1, "the table was chosen so that it ends in one class"
    first = done.out.splitlines()[1:4]
    assert first[0].startswith("But all 1,9") and first[0].endswith(
        "rows are one class: nobody is told apart"
    )
    assert first[1].endswith("which are * throughout: age, zip")
    assert "leaves no room" in first[2]
    assert "note: belief of disease with max: 0.25 leaves no room" in done.err, "and before the search"
    assert record["warnings"] == [line[4:] for line in first]
    assert record["warnings"][2] in record["notes"]
    report = (tmp_path / "r/private/report.html").read_text(encoding="utf-8")
    answer = report[report.index('id="answer"') : report.index('class="worst"')]
    assert "are one class: nobody is told apart" in answer
    assert "leaves no room" in answer
    public = "".join(p.read_text(encoding="utf-8") for p in (tmp_path / "r/public").iterdir())
    assert "leaves no room" not in public, "it is for the publisher"


def test_a_column_that_is_gone_is_named(tmp_path: Path) -> None:
    source = table(tmp_path, 60, 10)
    made = {
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": "suppress", "levels": ["any"]},
            "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
            "disease": {"role": "insensitive", "near_unique": "allow"},
        },
        "require": [{"model": "k-anonymity", "k": 4}],
        "method": "optimal-lattice",
    }
    release = mw.anonymize(source, made)
    assert release.warnings[0] == "nothing is left of these columns, which are * throughout: age"
    assert release.warnings[0] in str(release)


def test_one_group_of_a_bucketized_release(tmp_path: Path) -> None:
    made = policy("1/4", {"name": "mondrian", "dimensions": "widest"})
    made = mw.Policy.load(made.to_dict() | {"recoding": "bucketize"})
    release = mw.anonymize(sorted_table(tmp_path), made)
    assert release.grouping.classes.n == 1
    assert "are one group" in release.warnings[0]


def test_a_release_with_classes_and_columns_says_nothing(source: Path) -> None:
    assert mw.anonymize(source, policy("1/2")).warnings == ()
