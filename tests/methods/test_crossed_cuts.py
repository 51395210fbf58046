"""Lemma B by enumeration: crossed balanced cuts give nothing away, in every world of small tables, run by the product.

A problem is a table, models and a method. The product groups the table; then it groups every table that deals each
published group's values anew to its rows. Where the groups are the same, the world is one that an adversary who knows
the method is left with. Beliefs must be exactly what the groups show. The same enumeration finds leaks as soon as the
cells are taken out.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from maskwright.domain.classes import Classes
from maskwright.domain.model import Context, Model
from maskwright.domain.summary import Joint, Summary
from maskwright.domain.verdict import Verdict
from maskwright.kernels import partition
from maskwright.methods._rows.axes import axes_of, tuple_ranks
from maskwright.methods._rows.group_requirement import GroupRequirement
from maskwright.methods._rows.rows import Rows
from maskwright.methods.mondrian import Cutter, Mondrian
from maskwright.models import MODELS
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.sampling.possible_worlds import Posterior, deterministic_likelihood, posterior_beliefs
from tests.amounts import amount
from tests.methods import row_tables as rt

PLANS = {8: (2, 2, 2), 12: (2, 3, 2), 16: (2, 2, 2, 2)}
WORLDS = 400  # of a problem; those with more are left out


class Arbitrary(Model):
    """Any predicate of the size and of the number of `a` in each column, drawn at random."""

    name: ClassVar[str] = "arbitrary"
    about: ClassVar[Any] = "sensitive"
    seed: int = 0
    share: Fraction = Fraction(1, 2)

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        held = [[vc.of_class(i).get("a", 0) for vc in classes.sensitive.values()] for i in range(classes.n)]
        sizes = classes.sizes.tolist()
        return np.array(
            [_drawn(self.seed, n, *h) < self.share for n, h in zip(sizes, held, strict=True)], dtype=bool
        )

    def check(self, classes: Classes, context: Context) -> Verdict:
        raise AssertionError("the search asks which classes pass, and nothing else")


@cache
def _drawn(*key: int) -> float:
    return float(np.random.default_rng(key).random())


@dataclass
class Problem:
    """A small table whose rows are told apart, the models, and how it is grouped."""

    qi: list[list[int]]
    sa: list[tuple[str, ...]]
    models: list[Model]
    method: Mondrian
    crossings: int = 0

    def __post_init__(self) -> None:
        names = [f"s{i}" for i in range(len(self.sa[0]))]
        columns = {name: [v[i] for v in self.sa] for i, name in enumerate(names)}
        table = rt.build(self.qi, columns, domains=dict.fromkeys(names, ("a", "b", "c")))
        self.items = list(itertools.product(("a", "b", "c"), repeat=len(names)))
        codes = np.array([["abc".index(v) + 1 for v in item] for item in self.items], dtype=np.int32).T
        n, tuples = len(self.items), table.summary.n_tuples
        joint = Joint(
            np.repeat(np.arange(tuples), n), np.tile(codes, tuples), np.ones(n * tuples, dtype=np.int64)
        )
        self.summary: Summary = replace(table.summary, joint=joint)
        self.tuples = table.rows.tuples.astype(np.int64)
        self.task = table.task(self.models)
        self.requirement = GroupRequirement(self.task, table.rows, "test")
        order, axes = np.arange(len(self.qi), dtype=np.int32), axes_of(table.summary)
        codes = tuple_ranks(table.summary, axes)[table.rows.tuples]
        chooser = self.method._chooser(self.task, axes, codes, order)  # sees quasi-identifiers only
        crossed = self.method.tried == "crossed"
        least = self.method.least if crossed else self.method.min_child
        self.cutter = Cutter(self.requirement, chooser, codes, "even", least or 1, crossed)
        self.plan = PLANS[len(order)] if crossed else None

    def groups(self, values: Sequence[tuple[str, ...]]) -> list[list[int]]:
        """What the product publishes when the rows hold these values."""
        items = [self.items.index(value) for value in values]
        rows = Rows(self.summary, (self.tuples * len(self.items) + items).astype(np.int32))
        self.requirement.rows = rows
        found, how = self.cutter.run(self.task, np.arange(rows.n, dtype=np.int32), self.plan)
        self.crossings = how.get("crossings", 0)
        return [found.order[a:b].tolist() for a, b in itertools.pairwise(found.start.tolist())]

    def attacked(self, only: bool = False) -> tuple[list[list[int]], Posterior | None]:
        """The groups, and what is believed by who knows the method; None: there are too many worlds.

        `only`: where no cut was accepted below a refused one the worlds are not looked at, either.
        """
        published = self.groups(self.sa)
        crossings = self.crossings
        if only and not crossings:
            return published, None
        try:
            found = posterior_beliefs(self.sa, published, deterministic_likelihood(self.groups), WORLDS)
        except TooManyWorlds:
            return published, None
        self.crossings = crossings
        return published, found


def models(rng: np.random.Generator, columns: int) -> list[Model]:
    """One or two models, each about one of the columns."""

    def of(name: str, **more: Any) -> Model:
        return MODELS[name](attribute=f"s{int(rng.integers(0, columns))}", **more)

    kind = int(rng.integers(0, 8))
    simple = of("simple-l-diversity", l=["3/2", "2", "3"][int(rng.integers(0, 3))])
    drawn: list[list[Model]] = [
        [simple],
        [of("simple-l-diversity", l=2, values=["a"])],
        [of("distinct-l-diversity", l=2)],
        [of("entropy-l-diversity", l=["3/2", "2"][int(rng.integers(0, 2))])],
        [of("t-closeness", t=["1/4", "3/8", "1/2"][int(rng.integers(0, 3))])],
        [simple, of("t-closeness", t="3/8")],
        [Arbitrary(seed=int(rng.integers(0, 2**31)))],
        [Arbitrary(seed=int(rng.integers(0, 2**31)), share=Fraction(3, 4))],
    ]  # fmt: skip
    return drawn[kind]


def problem(rng: np.random.Generator, n: int, method: Mondrian) -> Problem:
    """8 rows, 12 or 16, two or three dimensions (with equal values), one sensitive column or two."""
    dims, columns = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    qi = [[int(v) for v in rng.integers(0, int(rng.choice([3, n])), dims)] for _ in range(n)]
    values = "ab" if n > 8 or columns == 2 else "abc"
    sa = [tuple(str(v) for v in rng.choice(list(values), columns)) for _ in range(n)]
    return Problem(qi, sa, models(rng, columns), method)


def leaks(groups: list[list[int]], sa: Sequence[Any], found: Posterior) -> bool:
    """Is anybody's belief not what the group shows?"""
    assert found.beliefs is not None
    for group in groups:
        shown = {v: Fraction(c, len(group)) for v, c in Counter(sa[i] for i in group).items()}
        if any(found.beliefs[i] != shown for i in group):
            return True
    return False


METHODS = {
    "loss": Mondrian(least=1),
    "range": Mondrian(least=1, choose="range"),
    "larger groups": Mondrian(least=2),
}


def askew(method: Mondrian) -> Problem:
    """Eight rows whose two dimensions have almost the same median: without cells two refusals tell that rows 3 and 4
    do not hold an a."""
    qi = [[i, place] for i, place in enumerate([0, 1, 2, 4, 3, 5, 6, 7])]
    sa = [("a",) if i < 3 else ("b",) for i in range(8)]
    return Problem(qi, sa, [MODELS["simple-l-diversity"](l=2, values=["a"], attribute="s0")], method)


def gives_nothing_away(how: Mondrian, n: int, problems: int, seed: int) -> None:
    """In every world of so many problems that hold a cut accepted below a refused one, and of some others."""
    rng = np.random.default_rng([n, seed])
    crossing = 0
    for number in range(60 * problems):
        made = problem(rng, n, how) if number else askew(how)
        groups, found = made.attacked(only=number % 8 > 0)
        if found is not None:
            assert not leaks(groups, made.sa, found), f"leak: {made.qi}, {made.sa}, {made.models}, {groups}"
            crossing += made.crossings > 0
        if crossing == problems:
            break
    assert crossing == problems, "too few of the problems hold such a cut"


@pytest.mark.parametrize("how", METHODS)
@pytest.mark.parametrize(("n", "problems"), [(8, amount(25, 100)), (12, amount(5, 15)), (16, amount(5, 20))])
def test_lemma_b_belief_is_the_group_fraction(n: int, problems: int, how: str) -> None:
    """Problems in which a cut is accepted below a refused one, 405 in the long run: every belief is exactly what the
    group shows."""
    gives_nothing_away(METHODS[how], n, problems, list(METHODS).index(how))


@pytest.mark.parametrize("how", METHODS)
def test_without_the_cells_the_same_enumeration_fails(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product itself, with the one argument taken out that makes a cut cross the refused ones."""
    whole = partition.cut_segments
    monkeypatch.setattr(partition, "cut_segments", lambda *args: whole(*args[:-1], 0))
    with pytest.raises(AssertionError, match="leak"):
        gives_nothing_away(METHODS[how], 8, 100, 0)


def test_plain_fallback_leaks() -> None:
    """Equal halves, further dimensions after a refusal, no cells."""
    with pytest.raises(AssertionError, match="leak"):
        gives_nothing_away(Mondrian(cut="relaxed", dimensions="fallback", min_child=1), 8, 100, 0)


def test_cells_are_cut_by_themselves() -> None:
    """Root along x is refused; along y every half of x is cut at its own median, and both children hold both halves."""
    qi = [[i, y] for i, y in enumerate([0, 1, 2, 3, 4, 5, 6, 7])]
    sa = [("a",) if i < 4 else ("b",) for i in range(8)]
    diverse = [MODELS["distinct-l-diversity"](l=2, attribute="s0")]
    made = Problem(qi, sa, diverse, Mondrian(least=2))
    # the first two of both halves, and the last two; then the first and the last of each
    assert rt.as_sets(made.groups(sa)) == rt.as_sets([[0, 4], [1, 5], [2, 6], [3, 7]])
    assert made.crossings == 3
