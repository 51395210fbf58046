"""Common runs: a method is run once for all worlds in which its tests of values come out alike.

A method that looks at values only through the models of its search decides the same in two worlds as long as every
test comes out the same in both. So it is run on one world, each class that a model is asked about is counted in all
others, too, and those in which some answer differs are left for another run. Which rows a class holds is told by a
sensitive column of tags, one for each row, that no model sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._minimality.refusals import looked_at_values
from maskwright.attacks._minimality.replay import Again
from maskwright.attacks._minimality.world_tables import PublishedPeople
from maskwright.domain.adversary import Target
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.grouping import Grouping
from maskwright.domain.model import Context, Model
from maskwright.domain.registry import is_outside
from maskwright.domain.summary import Joint, Summary
from maskwright.worlds.sampling.choices import Choices, TooManyChoices

TAGS = "\0rows"
LARGEST = 2**62

Bools = NDArray[np.bool_]


def decides_by_models(target: Target) -> bool:
    """Whether the method sees values only through its models, which see nothing but the values of classes."""
    method = target.method
    if method is None or not method.decisions().blind or method.buckets_people:
        return False
    return not any(
        is_outside(thing) or _sees_more(thing) for thing in (method, *looked_at_values(target.models))
    )


def _sees_more(thing: Any) -> bool:
    return isinstance(thing, Model) and bool(thing.needs())


class NotCommon(Exception):  # noqa: N818 - what the runs are not
    """A test compares with something that differs between worlds, or is too large to be counted."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the method makes of some worlds with some random choices: the group of each row; None: nothing."""

    worlds: Ints
    probability: Fraction
    made: Grouping | None
    group_of_row: Ints


class CommonRuns:
    """The runs of a method on many worlds; `items` has a line for each world and the item of each row in it.

    Attributes:
        tuples: of each row, ascending; the items of rows that are alike ascend, too.
        runs: how many there were.
    """

    def __init__(
        self, target: Target, places: PublishedPeople, items: Ints, settled: bool, most: int, stop: Callable[[], bool]
    ) -> None:  # fmt: skip
        self.target, self.places, self.items = target, places, items
        self.tuples = np.sort(places.tuples)
        self.again = Again(target)
        self.settled, self.most, self.stop = settled, most, stop
        self.codes = {name: codes.astype(np.int64) for name, codes in places.codes.items()}
        self.n_items = int(items.max(initial=-1)) + 1
        if (items.shape[1] + 1) ** self.n_items > LARGEST:
            raise NotCommon
        self.runs = 0
        self._worlds = np.zeros(0, dtype=np.int64)  # those that agree so far with the one that is looked at
        self._others: list[Ints] = []

    def outcomes(self) -> Iterator[Outcome]:
        """Every outcome, with the worlds that lead to it; raises `TooManyChoices` or `NotCommon`."""
        waiting: list[tuple[Ints, list[tuple[int, tuple[int, ...]]]]] = [(np.arange(len(self.items)), [])]
        while waiting:
            if self.runs == self.most or self.stop():
                raise TooManyChoices
            self._worlds, path = waiting.pop()
            self._others = []
            choices = None if self.settled else Choices(path, (self.tuples, np.arange(len(self.tuples))))
            made = self._made(choices)
            waiting += [(others, path) for others in self._others if len(others)]
            groups = np.full(len(self.tuples), -1, dtype=np.int64)
            if made is not None:
                cells, owner, _ = made.cells
                groups[cells] = owner
            yield Outcome(self._worlds, choices.probability if choices else Fraction(1), made, groups)
            if choices is not None and (following := choices.following()) is not None:
                waiting.append((self._worlds, following))

    def _made(self, choices: Choices | None) -> Grouping | None:
        self.runs += 1
        looked = looked_at_values(self.target.models)
        models = [
            cast(Model, _Watched(m, self)) if m in looked else m
            for m in self.target.models
            if m.use == "search"
        ]
        return self.again.run(self._tagged(int(self._worlds[0])), models, choices)

    def _tagged(self, world: int) -> Summary:
        """The table in one world, with the column of tags: every row is a cell of its own."""
        whole, n = self.target.grouping.summary, len(self.tuples)
        each, ones = self.items[world], np.ones(n, dtype=np.int64)
        tags = ValueCounts.collect(
            tuple(map(str, range(n))), whole.n_tuples, self.tuples, np.arange(n) + 1, ones
        )
        counted = {
            name: ValueCounts.collect(
                vc.values, whole.n_tuples, self.tuples, self.codes[name][each], ones, vc.ordered
            )
            for name, vc in whole.sensitive.items()
        }
        values = np.stack([*(self.codes[name][each] for name in whole.sensitive), np.arange(n) + 1])
        joint = Joint(self.tuples, values.astype(np.int32), ones)
        return replace(whole, sensitive={**counted, TAGS: tags}, joint=joint)

    def answers(
        self, ask: Callable[[Classes, Context], Bools], local: bool, classes: Classes, context: Context
    ) -> Bools:
        """What a model says of classes in the world that is looked at; worlds where it says otherwise are put aside."""
        self._refuse_other_references(context)
        codes = self._codes(classes)
        if local:
            kinds, number = np.unique(codes, return_inverse=True)
            passes = ask(self._counted(kinds), context)[number.reshape(codes.shape)]
        else:
            lines, which = np.unique(codes, axis=0, return_inverse=True)
            each = []
            for line in lines:
                if self.stop():
                    raise TooManyChoices
                each.append(ask(self._counted(line), context))
            passes = np.array(each).reshape(len(lines), -1)[which.reshape(-1)]
        same = (passes == passes[0]).all(axis=1)
        self._others.append(self._worlds[~same])
        self._worlds = self._worlds[same]
        return np.array(passes[0], dtype=bool)

    def _refuse_other_references(self, context: Context) -> None:
        mine = self.target.context.reference
        if any(
            name in mine and not np.array_equal(mine[name], counts)
            for name, counts in context.reference.items()
        ):
            raise NotCommon

    def _codes(self, classes: Classes) -> Ints:
        """What each class holds in each world, as one number: how often each item."""
        tags = classes.sensitive[TAGS]
        result = np.zeros((len(self._worlds), classes.n), dtype=np.int64)
        worth = (len(self.tuples) + 1) ** np.arange(self.n_items)
        for owner, row in zip(tags.owner.tolist(), (tags.codes - 1).tolist(), strict=True):
            result[:, owner] += worth[self.items[self._worlds, row]]
        return result

    def _counted(self, kinds: Ints) -> Classes:
        """Classes of which it is known how often they hold each item."""
        held = kinds[:, None] // (len(self.tuples) + 1) ** np.arange(self.n_items) % (len(self.tuples) + 1)
        owner, item = np.nonzero(held)
        sizes = held.sum(axis=1)
        sensitive = {
            name: ValueCounts.collect(
                vc.values, len(kinds), owner, self.codes[name][item], held[owner, item], vc.ordered
            )
            for name, vc in self.target.grouping.summary.sensitive.items()
        }
        return Classes(sizes, sizes, sensitive)

    def held(self, worlds: Ints, group_of_row: Ints) -> Ints:
        """How often each group holds each item, world × group × item."""
        n = int(group_of_row.max(initial=-1)) + 1
        result = np.zeros((len(worlds), n, self.n_items), dtype=np.int64)
        each = np.arange(len(worlds))
        for row, group in enumerate(group_of_row.tolist()):
            if group >= 0:
                result[each, group, self.items[worlds, row]] += 1
        return result


class _Watched:
    """A model that is asked about all worlds at once; whatever else it is asked, it answers itself."""

    def __init__(self, model: Model, runs: CommonRuns) -> None:
        self._model, self._runs = model, runs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def kernel(self, context: Context) -> None:
        """No rules: kernels would decide without asking."""

    def passing(self, classes: Classes, context: Context) -> Bools:
        """Which classes pass."""
        return self._runs.answers(self._model.passing, self._model.is_local(), classes, context)

    def surviving(self, classes: Classes, context: Context) -> Bools:
        """Which classes stay."""
        return self._runs.answers(self._model.surviving, self._model.is_local(), classes, context)

    def check(self, classes: Classes, context: Context) -> Any:
        """For the words of a refusal."""
        return self._model.check(_without_tags(classes), context)

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """For the words of a refusal."""
        return self._model.nearest(_without_tags(classes), context)


def _without_tags(classes: Classes) -> Classes:
    return replace(classes, sensitive={n: vc for n, vc in classes.sensitive.items() if n != TAGS})


def rows_of_worlds(worlds: Sequence[Sequence[Sequence[int]]]) -> Ints:
    """The item of each row in each world that is given as units with how often they hold each item."""
    counts = np.array(worlds, dtype=np.int64)
    flat = np.tile(np.arange(counts.shape[2]), counts.shape[1])
    return np.array([np.repeat(flat, line) for line in counts.reshape(len(counts), -1)])
