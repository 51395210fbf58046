"""What a method is: a search or partition that turns a summary into a grouping."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator

from maskwright.core.events import Progress
from maskwright.core.exact import Exact
from maskwright.core.grouping import Grouping
from maskwright.core.model import Context, Model, Need
from maskwright.core.multivalued import SetColumn
from maskwright.core.settings import Registered
from maskwright.core.summary import Summary


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is given besides its own options.

    Attributes:
        summary: the frequency set.
        search: the models that the method must satisfy while it searches.
        context: reference distributions and the like for the models.
        weights: per quasi-identifier, as in the policy (default 1).
        levels: per quasi-identifier the allowed levels, or None for all.
        census: the population table, summarised with the same hierarchies, where the policy names one.
        rng: the source of every random choice.
        progress: events, and cancellation.
        gates: the models that are checked when the method is done.
        sets: the columns of sets whose bits are among the sensitive attributes.
    """

    summary: Summary
    search: Sequence[Model]
    context: Context
    rng: np.random.Generator
    weights: Mapping[str, Fraction] = field(default_factory=dict)
    levels: Mapping[str, Sequence[int]] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    census: Summary | None = None
    gates: Sequence[Model] = ()
    sets: Sequence[SetColumn] = ()

    def needs(self) -> frozenset[Need]:
        """What the models of the search must know of a class besides sizes and values."""
        return frozenset[Need]().union(*(model.needs() for model in self.search))


def _is_share(value: Fraction) -> Fraction:
    if not 0 <= value <= 1:
        raise ValueError("suppression is a share of the rows, between 0 and 1")
    return value


RowShare = Annotated[Exact, AfterValidator(_is_share)]  # the option `suppression` of every method that has it


@dataclass(frozen=True, eq=False)
class Rival:
    """A node that a search would rather have published: its levels, and the class of each tuple (−1: dropped)."""

    levels: tuple[int, ...]
    class_of: NDArray[np.int64]


class Method(Registered):
    """Turns a summary into a grouping. Options are fields; data never is."""

    guarantee: ClassVar[str] = "measured"
    whole_columns: ClassVar[bool] = False  # one level for each column: no row is ever listed

    @abstractmethod
    def group(self, task: Task) -> Grouping:
        """Group the rows so that every model of `task.search` holds, or raise `PolicyNotMet`."""

    def rivals(self, task: Task, published: Grouping) -> list[Rival] | None:
        """What this method publishes instead, as soon as it satisfies the models of sensitive values; for attacks.

        Decided by quasi-identifiers alone. None: it cannot be said, the method has to be run again.
        """
        return None

    def for_one_table(self) -> Method:
        """The method that makes the groups of one table: for codip its base, for all others themselves."""
        return self

    def pieces(self, task: Task) -> list[Piece]:
        """The tables of the release: one with everything, for all methods but codip."""
        return [Piece("data", task, self, self.group(task))]


@dataclass(frozen=True, eq=False)
class Piece:
    """One table of a release as a method made it.

    Attributes:
        name: of the table.
        task: what had to be made: the table with its own sensitive attributes, and the models about them.
        method: the method that made its groups.
        grouping: the groups.
    """

    name: str
    task: Task
    method: Method
    grouping: Grouping
