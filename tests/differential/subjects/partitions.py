"""Methods that group rows: what they promise about every release, and the very groups where they are determined."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations, pairwise
from random import Random
from typing import Any

import numpy as np

from maskwright.domain.grouping import Grouping
from maskwright.domain.settings import build_registered
from maskwright.errors import PolicyNotMet
from maskwright.methods import METHODS
from maskwright.methods.dp_sample import DpSample
from maskwright.methods.local_suppression import LocalSuppression, suppressed_cells
from tests.differential.subjects import Subject
from tests.differential.subjects.lattices import task_of
from tests.oracles import partitions as plain
from tests.oracles.draws import draw
from tests.oracles.lattices import Problem
from tests.oracles.models import Asked, Published, satisfied
from tests.oracles.tables import Key, Small, small

GROUPWISE = ["k-anonymity", "simple-l-diversity", "distinct-l-diversity", "entropy-l-diversity",
             "recursive-cl-diversity", "alpha-k-anonymity", "p-sensitive-k-anonymity", "t-closeness",
             "beta-likeness", "delta-disclosure"]  # fmt: skip


@dataclass(frozen=True)
class Setup:
    """A table, what is asked of its groups, and a seed for the method."""

    table: Small
    asked: list[Asked]
    seed: int

    def passes(self, rows: list[int], reference: list[int] | None = None) -> bool:
        """Are the rows a group that satisfies what is asked, compared with `reference` (None: the whole table)?"""
        labels: list[Any] = [()]
        return satisfied(Published(self.table, [rows], labels, [len(rows)], reference), self.asked)

    def may_fail_without(self, gone: int, dropped_first: bool = True) -> bool:
        """Is there a way to leave out so many rows after which the others are no group? Rows that are dropped before
        anything is compared do not count in the table that groups are compared with."""
        left = combinations(range(self.table.n), self.table.n - gone)
        return any(
            not rows or not self.passes(list(rows), list(rows) if dropped_first else None) for rows in left
        )

    def run(self, name: str, **options: Any) -> Grouping | None:
        how = build_registered(METHODS, "method", name, options, "here")
        task = replace(task_of(Problem(self.table, self.asked)), rng=np.random.default_rng(self.seed))
        try:
            return how.group(task)
        except PolicyNotMet as refused:
            assert "\n" not in str(refused)
            return None


def setup(rng: Random, names: list[str] | None = None, **more: Any) -> Setup:
    table = small(rng, **more)
    chosen = rng.sample(names or GROUPWISE, rng.choice([1, 1, 2]) if names is None or len(names) > 1 else 1)
    asked = [draw(rng, table, name) for name in chosen]
    asked = [replace(a, parameters={k: v for k, v in a.parameters.items() if k != "on"}) for a in asked]
    return Setup(table, asked, rng.randrange(2**32))


def groups_of(made: Setup, found: Grouping) -> tuple[list[list[int]], list[int]]:
    """The rows of each group and those dropped; rows that are alike in everything are interchangeable."""
    table, summary = made.table, found.summary
    assert summary.joint is not None
    waiting: dict[Any, list[int]] = {}
    for i, row in enumerate(table.rows):
        waiting.setdefault((row, tuple(c[i] for c in table.secrets.values())), []).append(i)
    tuples = table.tuples()
    domains = [(None, *table.domains[name]) for name in table.secrets]
    allocation = found.allocation
    if allocation.cells is None:
        group_of = dict(zip(allocation.tuples.tolist(), allocation.groups.tolist(), strict=True))
        joint = summary.joint
        entries = [(c, group_of[int(joint.tuples[c])], int(joint.rows[c])) for c in range(len(joint.rows))]
    else:
        entries = list(
            zip(allocation.cells.tolist(), allocation.groups.tolist(), allocation.rows.tolist(), strict=True)
        )
    groups: list[list[int]] = [[] for _ in range(found.classes.n)]
    dropped: list[int] = []
    for cell, g, n in entries:
        values = tuple(d[c] for d, c in zip(domains, summary.joint.values[:, cell].tolist(), strict=True))
        taken = [waiting[tuples[int(summary.joint.tuples[cell])], values].pop() for _ in range(n)]
        (groups[g] if g >= 0 else dropped).extend(taken)
    assert not any(waiting.values()), "somebody is neither published nor dropped"
    assert found.classes.sizes.tolist() == list(map(len, groups))
    return groups, dropped


def promised(
    made: Setup, found: Grouping, by_level: bool = False, dropped_first: bool = False
) -> tuple[list[list[int]], list[int]]:
    """Rows are partitioned, every group satisfies the models, and its labels are the narrowest that cover it.

    `by_level`: labels come from the hierarchy alone; otherwise ranges and sets stand in where it has no levels.
    `dropped_first`: rows are dropped before any value is looked at, so that groups are compared with those who remain.
    """
    groups, dropped = groups_of(made, found)
    reference = sorted(i for rows in groups for i in rows) if dropped_first else None
    for rows in groups:
        assert rows
        assert made.passes(rows, reference), [made.table.rows[i] for i in rows]
    for a, (key, labels) in enumerate(zip(made.table.keys, found.labels, strict=True)):
        for g, rows in enumerate(groups):
            if g != found.starred:
                held = {made.table.rows[i][a] for i in rows}
                narrow = _narrowest(key, held) if by_level or key.height > 1 else _range_or_set(key, held)
                assert int(labels.coverage[labels.of_group[g]]) == narrow, (key.name, held)
    return groups, dropped


def _range_or_set(key: Key, held: set[Any]) -> int:
    """Ground values from the least to the largest one, or those that occur; with a missing one: all there are."""
    if None in held:
        return 0 if held == {None} else len(key.values)
    places = [key.hierarchy.values.index(v) for v in held]
    return max(places) - min(places) + 1 if key.hierarchy.ordered else len(held)


def _narrowest(key: Key, held: set[Any]) -> int:
    """Ground values covered by the finest label that all these values share; missing alone covers none."""
    if held == {None} and key.height:
        return 0
    level = next(n for n in range(len(key.levels)) if len({key.label(n, v) for v in held}) == 1)
    return len(key.values) if level == key.height else key.covered(level, next(iter(held)))


def as_sets(groups: list[list[int]]) -> set[frozenset[int]]:
    return set(map(frozenset, groups))


# -- exact where quasi-identifiers are numbers and all different ---------------------------------------------------


def in_a_row(rng: Random) -> tuple[Setup, list[list[int]], list[int]]:
    """A table of numbers with different rows, the columns of numbers, and the sizes of their domains."""
    while True:
        made = setup(rng, missing=False)
        numbers = [_numbers(key) for key in made.table.keys]
        if len(set(made.table.rows)) == made.table.n and all(numbers):
            columns = [[n[row[a]] for row in made.table.rows] for a, n in enumerate(numbers) if n is not None]
            return made, columns, [len(key.values) + 1 for key in made.table.keys]


def _numbers(key: Key) -> dict[Any, int] | None:
    """Values as positions on a line, where the hierarchy gives them one that needs no tree."""
    if not key.hierarchy.ordered:
        return None
    if all(v.lstrip("-").isdigit() for v in key.values):
        return {v: int(v) for v in key.values}
    return {v: i for i, v in enumerate(key.hierarchy.values)}


def greedy(rng: Random) -> str:
    made, columns, sizes = in_a_row(rng)
    bucket = rng.randint(1, 3)
    expected = plain.greedy(plain.lexicographic(columns, sizes), bucket, made.passes)
    found = made.run("greedy-grouping", l=bucket)
    if found is None:
        assert not expected
        return "refused"
    groups, _ = promised(made, found)
    assert as_sets(groups) == as_sets(expected)
    return "several" if len(groups) > 1 else "one"


def symmetric(rng: Random) -> str:
    made, columns, sizes = in_a_row(rng)
    least, ways = rng.randint(0, 2), rng.choice([2, 2, 3])
    expected = plain.symmetric(plain.lexicographic(columns, sizes), ways, least, made.passes)
    found = made.run("symmetric-grouping", min_child=least, ways=ways)
    if found is None:
        assert len(expected) == 1
        assert not made.passes(expected[0])
        return "refused"
    groups, _ = promised(made, found)
    assert as_sets(groups) == as_sets(expected)
    return "several" if len(groups) > 1 else "one"


def mondrian(cut: str, rng: Random) -> str:
    made, columns, sizes = in_a_row(rng)
    strict, fallback, side = cut == "strict", rng.random() < 0.4, rng.choice(["lt", "le"])
    least = rng.randint(0, 2)
    order = plain.lexicographic(columns, sizes)
    expected = plain.mondrian(columns, order, strict, fallback, side, least, made.passes)
    options = {
        "cut": cut,
        "dimensions": "fallback" if fallback else "widest",
        "choose": "range",
        "side": side,
    }
    found = made.run("mondrian", min_child=least, **options)
    if found is None:
        assert not all(map(made.passes, expected))
        return "refused"
    groups, _ = promised(made, found)
    assert as_sets(groups) == as_sets(expected)
    return "several" if len(groups) > 1 else "one"


def crossed(rng: Random) -> str:
    """Crossed cuts in a table whose rows all differ and of which none has to be dropped."""
    while True:
        made, columns, sizes = in_a_row(rng)
        if made.table.n in (4, 6, 8) and any(a.name != "k-anonymity" for a in made.asked):
            break
    order, n = plain.lexicographic(columns, sizes), made.table.n
    found = made.run("mondrian", choose="range", least=(least := rng.choice([1, 2])), splits="halves")
    ways = {4: (2, 2), 6: (2, 3), 8: (2, 2, 2)}[n]
    if n == 6 and least == 1:  # four parts of one row, and two rows dropped
        return crossed(rng)
    expected = plain.crossed(columns, order, ways, least, made.passes)
    if found is None:
        assert not all(map(made.passes, expected))
        return "refused"
    groups, dropped = promised(made, found)
    assert not dropped
    assert as_sets(groups) == as_sets(expected)
    return "across" if found.search["crossings"] else "several" if len(groups) > 1 else "one"


def balanced(rng: Random) -> str:
    """Equal parts all the way down, hardly a row dropped, and everybody's group passes."""
    made = setup(rng)
    least = rng.choice([None, 2, 3])
    cuts = rng.choice(["crossed", "widest"])
    found = made.run("mondrian", least=least, splits=rng.choice(["mixed", "halves"]), dimensions=cuts)
    equal = any(a.name != "k-anonymity" for a in made.asked)
    odd = made.table.n % 2 if equal else 0  # of at most 8 rows no plan drops more
    if found is None:
        assert made.may_fail_without(0) or made.may_fail_without(odd), "all rows in one group would suffice"
        return "refused"
    groups, dropped = promised(made, found, dropped_first=True)
    sizes = sorted(set(map(len, groups)))
    assert len(dropped) <= odd
    if equal:
        whole = made.table.n - len(dropped)
        assert all(whole % n == 0 for n in sizes)
        assert all(b % a == 0 for a, b in pairwise(sizes))
    return "several" if len(groups) > 1 else "one"


def loose(name: str, rng: Random) -> str:
    """Any quasi-identifiers, ties and missing values: what is promised, and a refusal only with a reason."""
    made = setup(rng)
    bucket = rng.randint(1, 3) if name == "greedy-grouping" else 1
    found = made.run(name, **({} if name != "greedy-grouping" else {"l": bucket}))
    if found is None:  # all whole buckets together do not pass
        assert made.may_fail_without(made.table.n % bucket, dropped_first=False)
        return "refused"
    groups, dropped = promised(made, found)
    assert name == "greedy-grouping" or not dropped
    return "several" if len(groups) > 1 else "one"


def anatomy(rng: Random) -> str:
    made = setup(rng, ["distinct-l-diversity"], secrets=1, missing=False)
    ell = rng.randint(1, 3)
    made = replace(made, asked=[Asked("distinct-l-diversity", {"l": ell, "attribute": "s"})])
    counts = Counter(made.table.secrets["s"])
    expected = plain.anatomy_buckets(list(counts.values()), ell)
    found = made.run("anatomy", l=ell)
    if found is None:
        assert expected is None
        return "refused"
    groups, dropped = promised(made, found)
    assert not dropped
    assert len(groups) == expected
    for rows in groups:
        held = made.table.values("s", rows)
        assert len(set(held)) == len(held) >= ell
    return "several" if len(groups) > 1 else "one"


# -- local recoding ------------------------------------------------------------------------------------------------


def loss_of(made: Setup, found: Grouping, groups: list[list[int]], dropped: list[int]) -> Fraction:
    """Mean over rows and attributes of (coverage − 1)/(base − 1); whoever is suppressed has lost everything."""
    total = Fraction(0)
    for a, (key, labels) in enumerate(zip(made.table.keys, found.labels, strict=True)):
        if len(key.values) == 1:
            continue
        for g, rows in enumerate(groups):
            held = {made.table.rows[i][a] for i in rows}
            wide = len(key.values) if g == found.starred else max(1, _narrowest(key, held))
            assert wide == max(1, int(labels.coverage[labels.of_group[g]]))
            total += len(rows) * Fraction(wide - 1, len(key.values) - 1)
        total += len(dropped)
    return total / (made.table.n * len(made.table.keys))


def local_recoding(rng: Random) -> str:
    made = setup(rng, most=7)
    share, star = Fraction(rng.randint(0, 4), 10), rng.random() < 0.3
    found = made.run("local-recoding", suppression=share, suppressed_rows="star" if star else "drop")
    full = Problem(made.table, made.asked, suppression=share, star=star)
    if found is None:
        assert not full.satisfying, "a full-domain recoding would suffice"
        return "refused"
    groups, dropped = promised(made, found, by_level=True)
    gone = len(dropped) + (len(groups[found.starred]) if found.starred is not None else 0)
    assert gone <= share * made.table.n
    if full.satisfying:
        best = min(e.score for e in full.satisfying.values())
        assert loss_of(made, found, groups, dropped) <= best
    return "several" if len(groups) > 1 else "one"


def alpha_k_local(rng: Random) -> str:
    made = setup(rng, ["alpha-k-anonymity"])
    found = made.run("alpha-k-local")
    everything = list(range(made.table.n))
    if found is None:
        assert not made.passes(everything)
        return "refused"
    groups, dropped = groups_of(made, found)
    assert not dropped
    assert all(map(made.passes, groups))
    for g, rows in enumerate(groups):
        for a, (key, labels) in enumerate(zip(made.table.keys, found.labels, strict=True)):
            coverage = int(labels.coverage[labels.of_group[g]])
            held = {made.table.rows[i][a] for i in rows}
            fits = [n for n in range(len(key.levels)) if len({key.label(n, v) for v in held}) == 1]
            widths = {n: _narrow(key, n, next(iter(held))) for n in fits}
            assert coverage in widths.values(), "the label covers other values than the group has"
            level = min(n for n in fits if widths[n] == coverage)
            if level:  # one step further down some part must fail, or the group was not minimal
                parts: dict[Any, list[int]] = {}
                for i in rows:
                    parts.setdefault(key.label(level - 1, made.table.rows[i][a]), []).append(i)
                assert not all(map(made.passes, parts.values())), "it could be specialised further"
    return "several" if len(groups) > 1 else "one"


def _narrow(key: Key, level: int, value: Any) -> int:
    if level == key.height:
        return len(key.values)
    return 0 if value is None else key.covered(level, value)


# -- MASK and CODIP ------------------------------------------------------------------------------------------------


def mask(rng: Random) -> str:
    table = small(rng, secrets=1, missing=False)
    k, ell = rng.randint(1, 3), Fraction(rng.randint(3, 6), 2)
    value = rng.choice(table.domains["s"])
    base = rng.choice(["optimal-lattice", "mondrian", "alpha-k-local"])
    made = Setup(table, [Asked("k-anonymity", {"k": k})], rng.randrange(2**32))
    whole = replace(made, asked=[*made.asked, Asked("simple-l-diversity",
                                                    {"l": str(ell), "values": [value], "attribute": "s"})])  # fmt: skip
    found = whole.run("mask", base=base)
    if found is None:
        alone = made.run(base, **({"cut": "relaxed"} if base == "mondrian" else {}))
        assert (alone is None) == (k > table.n)
        if alone is not None:
            assert _targets(groups_of(made, alone)[0], table, value, ell) is None, "there is a model"
        return "refused"
    groups, dropped = groups_of(made, found)
    assert all(map(made.passes, groups)), "the classes are too small"
    assert found.published is not None
    targets = _targets(groups, table, value, ell)
    assert targets is not None
    for g, rows in enumerate(groups):
        true = Counter(table.values("s", rows))
        shown = Counter(found.published["s"].of_class(g))
        if g not in targets:
            assert shown == true
            continue
        assert shown.total() == true.total()
        assert shown[value] in targets[g]
        assert shown[value] * ell <= shown.total()
        harmless = {v for v in true if v != value} or {v for v in table.domains["s"] if v != value}
        assert all(shown[v] >= n for v, n in true.items() if v != value)
        assert {v for v in shown if v != value} <= harmless
    assert sorted(i for rows in [*groups, dropped] for i in rows) == list(range(table.n))
    return "disguised" if targets else "nothing to do"


def _targets(groups: list[list[int]], table: Small, value: str, ell: Fraction) -> dict[int, set[int]] | None:
    held = [table.values("s", rows).count(value) for rows in groups]
    return plain.mask_targets([len(rows) for rows in groups], held, ell)


def codip(rng: Random) -> str:
    table = small(rng, secrets=2)
    k = rng.randint(1, 3)
    asked = [Asked("k-anonymity", {"k": k})]
    if rng.random() < 0.5:
        asked += [draw(rng, table, "t-closeness")]
        asked[1] = replace(asked[1], parameters={**asked[1].parameters, "distance": "equal"}, tree=None)
    made = Setup(table, asked, rng.randrange(2**32))
    beta, alpha = Fraction(rng.randint(0, 4), 4), Fraction(rng.randint(0, 4), 4)
    plan = rng.choice(["greedy", "best"])
    how = build_registered(METHODS, "method", "codip", {"plan": plan, "alpha": alpha, "beta": beta}, "here")
    task = replace(task_of(Problem(table, asked)), rng=np.random.default_rng(0))
    names = list(table.secrets)
    figures = plain.Associations(list(table.secrets.values()))
    allowed = []
    for candidate in plain.plans(2):
        ok = figures.beta(candidate) <= float(beta) + 1e-9 and figures.alpha(candidate) <= float(alpha) + 1e-9
        if ok and all(_feasible(table, asked, [names[i] for i in s]) for s in candidate):
            allowed.append(candidate)
    near = any(
        abs(x - float(bound)) < 1e-6
        for c in plain.plans(2)
        for x, bound in ((figures.alpha(c), alpha), (figures.beta(c), beta))
    )
    try:
        pieces = how.parts(task)
    except PolicyNotMet:
        assert near or not allowed, allowed
        return "refused"
    chosen = [[names.index(n) for n in piece.grouping.summary.sensitive] for piece in pieces]
    assert sorted(i for s in chosen for i in s) == [0, 1]
    assert near or sorted(chosen) in [sorted(c) for c in allowed]
    if not near:
        assert figures.alpha(chosen) <= min(figures.alpha(c) for c in allowed) + 1e-9
    for piece in pieces:
        mine = [
            a for a in asked if a.name == "k-anonymity" or a.attribute in piece.grouping.summary.sensitive
        ]
        own = replace(table, secrets={n: table.secrets[n] for n in piece.grouping.summary.sensitive},
                      domains={n: table.domains[n] for n in piece.grouping.summary.sensitive})  # fmt: skip
        groups, dropped = groups_of(own_setup := Setup(own, mine, 0), piece.grouping)
        assert not dropped
        assert all(map(own_setup.passes, groups))
    assert made.table is table
    return f"{len(pieces)} tables"


def _feasible(table: Small, asked: list[Asked], names: list[str]) -> bool:
    """Can the table with these sensitive attributes be made?"""
    mine = [a for a in asked if a.name == "k-anonymity" or a.attribute in names]
    return bool(Problem(table, mine).satisfying)


THREE = ("several", "one", "refused")


def divisions(rows: list[int], k: int) -> list[list[list[int]]]:
    """All ways to divide rows into groups of at least k."""
    if not rows:
        return [[]]
    found = []
    for size in range(k, len(rows) + 1):
        for others in combinations(rows[1:], size - 1):
            left = [i for i in rows[1:] if i not in others]
            found += [[[rows[0], *others], *more] for more in divisions(left, k)]
    return found


def local_suppression(rng: Random) -> str:
    """No division of the rows suppresses less, by weight."""
    table, k = small(rng, most=6), rng.randint(1, 4)
    weights = {key.name: Fraction(rng.randint(0, 3)) for key in table.keys}
    task = replace(task_of(Problem(table, [Asked("k-anonymity", {"k": k})])), weights=weights)
    prices = list(weights.values())

    def lost(groups: list[list[int]]) -> Fraction:
        differ = [
            (g, a) for g in groups for a in range(len(prices)) if len({table.rows[i][a] for i in g}) > 1
        ]
        return sum((prices[a] * len(g) for g, a in differ), Fraction(0))

    try:
        grouping = LocalSuppression().group(task)
    except PolicyNotMet:
        assert table.n < k
        return "refused"
    assert int(grouping.classes.sizes.min()) >= k
    shown = sum((weights[name] * n for name, n in suppressed_cells(grouping).items()), Fraction(0))
    assert shown == min(map(lost, divisions(list(range(table.n)), k)))
    return "suppressed" if shown else "as it is"


class Words:
    """Random words of the product, remembered."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.drawn = rng, list[int]()

    def integers(self, low: int, high: int, count: int, dtype: Any) -> Any:
        mine = [self.rng.randrange(low, high) for _ in range(count)]
        self.drawn += mine
        return np.array(mine, dtype=dtype)


def dp_sample(rng: Random) -> str:
    """The sample is that of the words that were drawn, and classes of all columns with fewer than k are left out."""
    table, method, words = (
        small(rng, most=12),
        DpSample(epsilon=rng.choice(["0.7", "1.1"]), delta="1/2", k=2),
        Words(rng),
    )
    node = [rng.choice(key.numbers()) for key in table.keys]
    levels = {key.name: [level] for key, level in zip(table.keys, node, strict=True)}
    task = replace(task_of(Problem(table, [])), rng=words, levels=levels)
    try:
        grouping = method.group(task)
    except PolicyNotMet:
        grouping = None
    order = [{None: 0} | {v: i + 1 for i, v in enumerate(key.hierarchy.values)} for key in table.keys]
    order += [{None: 0} | {v: i + 1 for i, v in enumerate(table.domains[name])} for name in table.secrets]
    every = [(*row, *(held[i] for held in table.secrets.values())) for i, row in enumerate(table.rows)]
    every.sort(key=lambda row: [codes[v] for codes, v in zip(order, row, strict=True)])
    kept = [r for r, w in zip(every, words.drawn, strict=True) if w < 2**64 * (1 - math.exp(-method.epsilon))]
    width = len(table.keys)
    levels_of = [key.hierarchy.levels[number] for key, number in zip(table.keys, node, strict=True)]
    texts = [
        {v: at.labels[at.blocks[i]] for v, i in c.items()} for at, c in zip(levels_of, order, strict=False)
    ]
    found = Counter((*(text[v] for text, v in zip(texts, row, strict=False)), *row[width:]) for row in kept)
    expected = {shown: n for shown, n in found.items() if n >= 2}
    if grouping is None:
        assert not expected
        return "refused"
    cells, groups, rows = grouping.cells
    assert grouping.summary.joint is not None
    columns = grouping.summary.joint.values[:, cells]
    got: Counter[Any] = Counter()
    for entry, (group, n) in enumerate(zip(groups.tolist(), rows.tolist(), strict=True)):
        labels = [x.texts[x.of_group[group]] for x in grouping.labels]
        held = [(None, *table.domains[name])[columns[i][entry]] for i, name in enumerate(table.secrets)]
        got[(*labels, *held)] += n
    assert got == expected
    return "several" if len(expected) > 1 else "one"


SUBJECTS = [
    Subject("method", "local-suppression", local_suppression, ("suppressed", "as it is", "refused")),
    Subject("method", "dp-sample", dp_sample, ("several", "one", "refused")),
    Subject("method", "greedy-grouping", greedy, THREE, "exact"),
    Subject("method", "greedy-grouping", partial(loose, "greedy-grouping"), THREE, "promise"),
    Subject("method", "symmetric-grouping", symmetric, THREE, "exact"),
    Subject("method", "symmetric-grouping", partial(loose, "symmetric-grouping"), THREE, "promise"),
    Subject("method", "mondrian", partial(mondrian, "strict"), THREE, "strict"),
    Subject("method", "mondrian", partial(mondrian, "relaxed"), THREE, "relaxed"),
    Subject("method", "mondrian", balanced, THREE, "balanced"),
    Subject("method", "mondrian", crossed, ("across", *THREE), "crossed"),
    Subject("method", "anatomy", anatomy, THREE),
    Subject("method", "local-recoding", local_recoding, THREE),
    Subject("method", "alpha-k-local", alpha_k_local, THREE),
    Subject("method", "mask", mask, ("disguised", "nothing to do", "refused")),
    Subject("method", "codip", codip, ("1 tables", "2 tables", "refused")),
]
