"""Top-down (α,k) local recoding: what it promises, a worked example, and that nothing more can be specialised."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.domain.grouping import Grouping
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Task
from maskwright.errors import PolicyNotMet
from maskwright.methods.alpha_k_local import AlphaKLocal
from maskwright.models import MODELS
from tests.amounts import repeated
from tests.methods.row_tables import Table, adult_rows, as_test, build, holds


def alpha_k(alpha: str, k: int, **more: Any) -> Any:
    return MODELS["alpha-k-anonymity"](alpha=alpha, k=k, attribute="s", **more)


def texts(grouping: Grouping, g: int) -> tuple[str | None, ...]:
    return tuple(x.texts[x.of_group[g]] for x in grouping.labels)


def random_tree_table(rng: np.random.Generator) -> Table:
    n = int(rng.integers(2, 25))
    attributes = [
        Hierarchy.of("a", list("abcd"), [("pairs", ["ab", "ab", "cd", "cd"])]),
        Hierarchy.of("b", list("xyz"), [("xy", ["xy", "xy", "z"])]),
    ]
    qi = [[str(rng.choice(list("abcd"))), str(rng.choice(list("xyz")))] for _ in range(n)]
    sa = [str(v) for v in rng.choice(list("Pqr"), n, p=[0.4, 0.4, 0.2])]
    return build(qi, {"s": sa}, attributes, domains={"s": ("P", "q", "r")})


def labels_contain(grouping: Grouping) -> None:
    """Every row lies under the label of its group."""
    allocation = grouping.allocation
    for a, (h, labels) in enumerate(zip(grouping.summary.attributes, grouping.labels, strict=True)):
        for t, g in zip(allocation.tuples.tolist(), allocation.groups.tolist(), strict=True):
            text, code = labels.texts[labels.of_group[g]], grouping.summary.codes[a][t]
            assert any(level.labels[level.blocks[code]] == text for level in h.levels)


@pytest.mark.parametrize("seed", repeated(150))
def test_promises(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_tree_table(rng)
    models = [alpha_k(["1/2", "2/3"][seed % 2], int(rng.integers(1, 4)), values=["P"])]
    task = table.task(models, seed)
    try:
        grouping = AlphaKLocal().group(task)
    except PolicyNotMet:
        assert not models[0].check(table.summary.totals(), task.context).ok
        return
    holds(grouping, task)
    labels_contain(grouping)
    assert grouping.dropped_rows == 0
    assert not specialisable(grouping, task)


def specialisable(grouping: Grouping, task: Task) -> bool:
    """Could a whole group go one step down in an attribute, all its children passing? Then it is not minimal."""
    summary, allocation = grouping.summary, grouping.allocation
    assert summary.joint is not None
    assert allocation.cells is not None
    for g in range(grouping.classes.n):
        inside = allocation.groups == g
        cells, rows = allocation.cells[inside], allocation.rows[inside]
        for a, h in enumerate(summary.attributes):
            labels = grouping.labels[a]
            path = h.path_down()
            codes = summary.codes[a][summary.joint.tuples[cells]]
            text = labels.texts[labels.of_group[g]]
            at = [j for j in path if h.levels[j].labels[h.levels[j].blocks[codes[0]]] == text][-1]
            finer = path[path.index(at) + 1 :]
            if not finer:
                continue
            blocks = h.levels[finer[0]].blocks[codes]
            owner = np.unique(blocks, return_inverse=True)[1].reshape(-1)
            classes = summary.cell_classes(cells, owner, rows, int(owner.max()) + 1)
            if all(m.passing(classes, task.context).all() for m in task.search):
                return True
    return False


def test_rows_of_one_class_end_in_groups_of_different_generality() -> None:
    """Six rows of a, one of b. With α = 1/2 and k = 3 the one of b is too few, and a must give two rows back."""
    hierarchy = Hierarchy.of("a", ["a", "b"], [])
    rows = [["a"]] * 6 + [["b"]] * 1
    table = build(rows, {"s": ["P", "P", "q", "q", "q", "q", "P"]}, [hierarchy])
    grouping = AlphaKLocal().group(table.task([alpha_k("1/2", 3, values=["P"])]))
    found = {
        texts(grouping, g): grouping.classes.sensitive["s"].of_class(g) for g in range(grouping.classes.n)
    }
    assert found == {("a",): {"P": 2, "q": 2}, ("*",): {"P": 1, "q": 2}}


def test_the_attribute_with_the_larger_gain_goes_first() -> None:
    """b has more values below the top, and its weight can be overruled."""
    attributes = [Hierarchy.of("a", ["x", "y"], []), Hierarchy.of("b", list("1234"), [])]
    rows = [["x", "1"], ["x", "1"], ["y", "2"], ["y", "2"]]
    table = build(rows, {"s": ["P", "q", "P", "q"]}, attributes)
    task = table.task([alpha_k("1/2", 2)])
    assert AlphaKLocal().group(task).classes.n == 2
    mixed = build([["x", "1"], ["x", "2"], ["y", "1"], ["y", "2"]], {"s": ["P", "q", "q", "P"]}, attributes)
    plain = AlphaKLocal().group(mixed.task([alpha_k("1/2", 2)]))
    assert {texts(plain, g) for g in range(2)} == {("x", "*"), ("y", "*")}  # equal gain: the first attribute
    heavy = AlphaKLocal().group(mixed.task([alpha_k("1/2", 2)], weights={"b": Fraction(5)}))
    assert {texts(heavy, g) for g in range(2)} == {("*", "1"), ("*", "2")}


def test_restricted_levels() -> None:
    attributes = [Hierarchy.of("a", list("abcd"), [("pairs", ["ab", "ab", "cd", "cd"])])]
    table = build([["a"], ["b"], ["c"], ["d"]], {"s": ["P", "q", "P", "q"]}, attributes)
    grouping = AlphaKLocal().group(table.task([alpha_k("1/2", 2)], levels={"a": [1]}))
    assert {texts(grouping, g) for g in range(grouping.classes.n)} == {("ab",), ("cd",)}
    with pytest.raises(PolicyNotMet, match="as far as allowed"):
        AlphaKLocal().group(table.task([alpha_k("1/2", 2)], levels={"a": [0]}))


def test_seeded_runs_reproduce() -> None:
    table = build(
        [["a"]] * 6 + [["b"]], {"s": ["P", "P", "q", "q", "r", "r", "P"]}, [Hierarchy.of("a", ["a", "b"], [])]
    )
    runs = [AlphaKLocal().group(table.task([alpha_k("1/2", 3)], seed)).allocation for seed in (1, 1)]
    assert np.array_equal(runs[0].rows, runs[1].rows)
    assert np.array_equal(runs[0].groups, runs[1].groups)


@pytest.mark.parametrize("recoding", ["generalise", "bucketize"])
def test_three_rows_take_no_time(recoding: str) -> None:
    """With the attacks on the method, which have many seconds for it, and took eight."""
    table = pa.table({"age": ["20", "21", "22"], "s": ["P", "q", "P"]})
    started = time.process_time()
    mw.anonymize(table, {
        "columns": {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4, 8]}}, "s": "sensitive"},
        "require": [{"model": "alpha-k-anonymity", "alpha": "2/3", "k": 2}],
        "method": "alpha-k-local",
        "recoding": recoding,
    })  # fmt: skip
    assert time.process_time() - started < 3


def test_adult() -> None:
    table = adult_rows("occupation")
    task = table.task([MODELS["alpha-k-anonymity"](alpha="1/2", k=20, attribute="occupation")])
    grouping = AlphaKLocal().group(task)
    holds(grouping, task)
    assert grouping.classes.n > 500


def outcome_of(grouping: Grouping) -> frozenset[Any]:
    """The groups, as labels and the rows below them."""
    summary, allocation = grouping.summary, grouping.allocation
    assert summary.joint is not None
    assert allocation.cells is not None
    groups: list[Counter[Any]] = [Counter() for _ in range(grouping.classes.n)]
    for cell, g, rows in zip(allocation.cells, allocation.groups, allocation.rows, strict=True):
        t = summary.joint.tuples[cell]
        qi = tuple(h.values[c - 1] for h, c in zip(summary.attributes, summary.codes[:, t], strict=True))
        groups[g][qi, summary.sensitive["s"].values[summary.joint.values[0, cell] - 1]] += int(rows)
    return publication_of((texts(grouping, g), rows) for g, rows in enumerate(groups))


def publication_of(groups: Iterable[tuple[Any, Counter[Any]]]) -> frozenset[Any]:
    return frozenset(Counter((labels, frozenset(rows.items())) for labels, rows in groups).items())


class Plain:
    """The algorithm as its definition reads: groups are counters of (quasi-identifiers, value), one at a time."""

    def __init__(
        self, attributes: Sequence[Hierarchy], models: Sequence[Any], context: Any, rng: Any
    ) -> None:
        self.attributes, self.rng = attributes, rng
        self.paths = [h.path_down() for h in attributes]
        test = as_test(models, context, ("P", "q", "r"))
        self.passes = lambda rows: bool(rows) and test(self.values(rows))

    @staticmethod
    def values(rows: Counter[Any]) -> Counter[str]:
        found: Counter[str] = Counter()
        for (_, value), n in rows.items():
            found[value] += n
        return found

    def label(self, a: int, place: int, value: str) -> tuple[str, int]:
        level = self.attributes[a].levels[self.paths[a][place]]
        block = level.blocks[self.attributes[a].values.index(value) + 1]
        return level.labels[block], int(level.leaves[block])

    def run(self, rows: Counter[Any]) -> frozenset[Any]:
        waiting, done = [((0,) * len(self.paths), rows)], []
        while waiting:
            places, group = waiting.pop()
            tried = [(a, self.specialised(places, group, a)) for a in range(len(places))]
            gains = [(self.gain(places, group, a, parts), -a, parts) for a, parts in tried if parts]
            if gains:
                waiting += max(gains, key=lambda found: found[:2])[2]
            else:
                qi = next(iter(group))[0]
                labels = tuple(self.label(a, p, qi[a])[0] for a, p in enumerate(places))
                done.append((labels, group))
        return publication_of(done)

    def gain(self, places: Any, group: Any, a: int, parts: Any) -> Fraction:
        before = self.label(a, places[a], next(iter(group))[0][a])[1]
        lost = sum(
            n * (before - self.label(a, at[a], qi[a])[1]) for at, rows in parts for (qi, _), n in rows.items()
        )
        return Fraction(lost, self.attributes[a].base - 1)

    def specialised(self, places: Any, group: Counter[Any], a: int) -> Any:
        if places[a] + 1 == len(self.paths[a]):
            return None
        children: dict[str, Counter[Any]] = {}
        for (qi, value), n in group.items():
            children.setdefault(self.label(a, places[a] + 1, qi[a])[0], Counter())[qi, value] += n
        kept = [rows for _, rows in sorted(children.items()) if self.passes(rows)]
        remainder = sum((rows for rows in children.values() if not self.passes(rows)), Counter())
        if not kept or (remainder and not self.passes(remainder) and not self.repaired(kept, remainder)):
            return None
        deeper = (*places[:a], places[a] + 1, *places[a + 1 :])
        return [(deeper, rows) for rows in kept] + ([(places, remainder)] if remainder else [])

    def repaired(self, kept: list[Counter[Any]], remainder: Counter[Any]) -> bool:
        for child in sorted(kept, key=lambda rows: -rows.total()):
            while self.moved(child, remainder):
                if self.passes(remainder):
                    return True
        return False

    def moved(self, child: Counter[Any], remainder: Counter[Any]) -> bool:
        held = self.values(remainder)
        choices = []
        for value in self.values(child):
            rows = [row for row in child.elements() if row[1] == value]
            row = rows[int(self.rng.integers(len(rows)))]
            choices.append((not self.passes(remainder + Counter([row])), held[value], value, row))
        for *_, row in sorted(choices):
            if self.passes(child - Counter([row])):
                child.subtract([row])
                child += Counter()
                remainder.update([row])
                return True
        return False


@pytest.mark.parametrize("seed", repeated(24))
def test_the_plain_definition(seed: int) -> None:
    """Sixty draws of the method and sixty of the definition: the same outcomes, about equally often."""
    rng = np.random.default_rng(1000 + seed)
    table = random_tree_table(rng)
    models = [alpha_k(["1/2", "2/3"][seed % 2], int(rng.integers(2, 4)), values=["P"])]
    if seed % 3 == 0:
        models = [MODELS["entropy-l-diversity"](l="3/2", attribute="s"), MODELS["k-anonymity"](k=2)]
    if not all(m.check(table.summary.totals(), table.task([]).context).ok for m in models):
        return
    rows: Counter[Any] = Counter()
    summary, joint = table.summary, table.rows.joint
    for t, value, n in zip(joint.tuples, joint.values[0], joint.rows, strict=True):
        qi = tuple(h.values[c - 1] for h, c in zip(summary.attributes, summary.codes[:, t], strict=True))
        rows[qi, summary.sensitive["s"].values[value - 1]] = int(n)
    plain = Plain(summary.attributes, models, table.task([]).context, rng)
    theirs = Counter(plain.run(rows.copy()) for _ in range(60))
    ours = Counter(outcome_of(AlphaKLocal().group(table.task(models, s))) for s in range(60))
    assert set(ours) == set(theirs)
    assert sum((ours - theirs).values()) <= 18


def test_sets_of_values_of_the_column() -> None:
    """The column's `sensitive_sets` are what (α,k)-anonymity is about, in the search and in the release."""
    import pandas as pd

    import maskwright as mw

    table = pd.DataFrame(
        {"age": [str(20 + i // 2) for i in range(16)], "s": ["HIV", "hepatitis", "flu", "cold"] * 4}
    )
    asked = {
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4, 8]}},
            "s": {"role": "sensitive", "sensitive_sets": [["HIV", "hepatitis"]]},
        },
        "require": [{"model": "alpha-k-anonymity", "alpha": "1/2", "k": 2}],
        "method": "alpha-k-local",
    }
    release = mw.anonymize(table, asked, seed=1)
    held = release.table.assign(bad=release.table["s"].isin(["HIV", "hepatitis"])).groupby("age")["bad"]
    assert (held.sum() * 2 <= held.count()).all()
    assert held.count().min() >= 4  # two rows of an age are both of the set, or neither
