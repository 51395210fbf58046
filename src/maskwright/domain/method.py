"""What a method is: a search or partition that turns a summary into a grouping."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator

from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Classes
from maskwright.domain.exact import Exact
from maskwright.domain.grouping import Grouping, Trace
from maskwright.domain.model import Context, Model, Need
from maskwright.domain.promise import DifferentialPrivacy, Lemma
from maskwright.domain.recoding_plan import GroupPlan, Layout, Plan
from maskwright.domain.settings import Registered
from maskwright.domain.summary import Summary
from maskwright.domain.value_sets import SetColumn
from maskwright.runtime.events import Progress

if TYPE_CHECKING:
    from maskwright.engines.base import Recount, Table


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
        own: the quasi-identifiers that are the person's own, where a person may have several rows.
        given: the groups of a sequence of releases, where they follow from earlier ones: by the texts of a row's
            quasi-identifiers and sensitive value, the group of each such row; empty: the method makes them.
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
    own: tuple[str, ...] = ()
    given: Mapping[tuple[str | None, ...], Sequence[int]] = field(default_factory=dict)

    def needs(self) -> frozenset[Need]:
        """What the models of the search must know of a class besides sizes and values."""
        return frozenset[Need]().union(*(model.needs() for model in self.search))


def _is_share(value: Fraction) -> Fraction:
    if not 0 <= value <= 1:
        raise ValueError("suppression is a share of the rows, between 0 and 1")
    return value


Sets = tuple[tuple[str, ...], ...]
RowShare = Annotated[Exact, AfterValidator(_is_share)]  # the option `suppression` of every method that has it


@dataclass(frozen=True, eq=False)
class Rival:
    """A node that a search would rather have published: its levels, and the class of each tuple (−1: dropped)."""

    levels: tuple[int, ...]
    class_of: NDArray[np.int64]


@dataclass(frozen=True)
class Decisions:
    """What whoever knows a method knows of how it decides.

    Attributes:
        blind: without a model of values in its search, groups follow from quasi-identifiers and chance alone.
        lemma: what bounds belief when its search looks at values; None: nothing is proven then.
        shape: what it decides: a *node* of the lattice for all; *cuts* of groups, each by its own values alone;
            recoding class by class (*local*); values to *disguise*; or something else.
        by_tuples: does it always make the same groups of the same tuples, though it orders their rows at random?
        picks_at_random: are rows picked by value, each row of a value with equal probability?
        drops_failing: are classes dropped that fail a model, and so because of their values?
        ways: parts that a group is cut into, where cuts are even.
        fewest: rows of the smallest part that a cut may leave; None: as the models need.
        extend: the probability that a group goes on though it could end.
        analysis: how to attack it, for a method that brings its own; see `Analysis`.
    """

    blind: bool = False
    lemma: Lemma | None = None
    shape: Literal["node", "cuts", "local", "disguise", "other"] = "other"
    by_tuples: bool = False
    picks_at_random: bool = False
    drops_failing: bool = False
    ways: int = 2
    fewest: int | None = None
    extend: Fraction = Fraction(0)
    analysis: Analysis | None = None

    @property
    def shaped_by_bounds(self) -> bool:
        """Are groups as large as the searched models make them, so that a bound without room ends in one class?"""
        return self.shape in ("node", "cuts", "local")


class Analysis(Protocol):
    """How a method of one's own is attacked by somebody who knows it: the belief in one column's secrets."""

    def __call__(self, grouping: Grouping, attribute: str, sets: Sets) -> Belief:
        """The worst belief about anybody in the grouping, in any of the sets of values of the attribute."""
        ...


class Method(Registered):
    """Turns a summary into a grouping. Options are fields; data never is."""

    kind: ClassVar[str] = "methods"
    whole_columns: ClassVar[bool] = False  # one level for each column: no row is ever listed
    several_tables: ClassVar[bool] = False  # may it decide by the data how many tables a release has?
    proven_settings: ClassVar[frozenset[str]] = (
        frozenset()
    )  # that its proofs name; with any other they are void

    def decisions(self) -> Decisions:
        """How this method decides, with these settings, as far as whoever knows it can rely on that."""
        return Decisions()

    def diversity_for(
        self, largest: Fraction, sets: Sets | None, attribute: str | None, least: int
    ) -> tuple[Fraction, Sets | None] | None:
        """The l of simple l-diversity, and of which sets, that keeps every belief at or below `largest`.

        Whatever the data, by the lemma of the method; None: there is none. `attribute` is the column in question,
        `least` the size that other models ask of every group.
        """
        lemma = self.decisions().lemma
        if lemma is None:
            return None
        if lemma.bound is None:
            return 1 / largest, sets
        l = max(math.ceil(1 / largest), 2)  # noqa: E741 - the literature's name
        while lemma.bound(Fraction(l))[0] > largest:
            l += 1  # noqa: E741
        return Fraction(l), sets

    def deals_alike(self, models: Sequence[Model], trace: Trace) -> bool:
        """Would the method decide the same however the values of each group were dealt?

        Then knowing the method adds nothing to any other knowledge. Of balanced cuts that is not true: there each
        person's belief is what the group shows, but a refused cut may tell more to somebody who knows a fact.
        """
        looked = [m for m in models if m.use == "search" and m.about == "sensitive"]
        if self.voided(looked, trace):
            return False
        how = self.decisions()
        return (not looked and how.blind) or how.picks_at_random

    @property
    def buckets_people(self) -> bool:
        """Does the method put rows of different people with different values into buckets?"""
        return self.decisions().picks_at_random or getattr(self, "anatomize", None) is not None

    def voided(self, looked: Sequence[Model], trace: Trace) -> str:
        """Why no lemma holds for a run that looked at values by these models; empty: there is no such reason."""
        for setting, field_ in type(self).model_fields.items() if self._has_proofs else ():
            if setting not in self.proven_settings and getattr(self, setting) != field_.get_default():
                return f"no proof names the setting {setting} of {self.name}"
        if getattr(self, "anatomize", None) and looked:
            return "groups that were made by looking at sensitive values were anatomized"
        if self.decisions().drops_failing and looked:
            return "rows may be suppressed because of their sensitive values"
        if trace.dropped_for_values:
            return "rows were dropped because of their sensitive values: their absence is information"
        return ""

    @property
    def _has_proofs(self) -> bool:
        how = self.decisions()
        return how.blind or how.lemma is not None

    def unmet_condition(self, ell: Fraction, models: Sequence[Model], context: Context) -> str:
        """The condition of its lemma that these settings do not meet, for one diversity test with this l; empty: none.

        Asked where a lemma rests on such a test as the only look at values.
        """
        guard = self.decisions().fewest
        if guard is not None and guard < ell:
            return f"the proof needs parts of at least {ell} rows (min_child)"
        return ""

    @abstractmethod
    def group(self, task: Task) -> Grouping:
        """Group the rows so that every model of `task.search` holds, or raise `PolicyNotMet`."""

    def most_left_out(self, task: Task) -> int | None:
        """The most rows that a release may leave out, from numbers of rows alone; None: nothing is known of that."""
        return None

    def rivals(self, task: Task, published: Grouping) -> list[Rival] | None:
        """What this method publishes instead, as soon as it satisfies the models of sensitive values; for attacks.

        Decided by quasi-identifiers alone. None: it cannot be said, the method has to be run again.
        """
        return None

    def lasting_by(self) -> str | None:
        """The column by which the people of a sequence of releases are known again; None: releases stand alone."""
        return None

    def for_one_table(self) -> Method:
        """The method that makes the groups of one table: for codip its base, for all others themselves."""
        return self

    def privacy(self) -> DifferentialPrivacy | None:
        """The differential privacy of every release of this method; None: it has none.

        Where it has, labels are made from each value alone, and what would void it is refused.
        """
        return None

    def plan_by_values(self) -> str:
        """How the tables of a release depend on sensitive values that no table shows together; empty: not at all."""
        return ""

    def parts(self, task: Task) -> list[Part]:
        """The tables of the release: one with everything, for all methods but codip."""
        return [Part("data", task, self, self.group(task))]


NO_CLASSES = Classes(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
NO_PLAN = Plan((), (), np.zeros((0, 0), dtype=np.int32), False, (), "")


@dataclass(frozen=True, eq=False)
class Part:
    """One table of a release, from the method to the folder; filled stage by stage.

    Attributes:
        name: of the table.
        task: what had to be made: the table with its own sensitive attributes, and the models about them.
        method: the method that made its groups.
        grouping: the groups.
        models: the requirements that concern it, in the order of the policy.
        classes: of the grouping, with what the models need to know of them.
        plan: what the engine does to the rows.
        layouts: what the tables look like that it becomes; one, or for bucketized releases two.
        tables: those tables, recoded, by name.
        counted: the people of each class, where a person may have several rows.
        recorded: what nobody can count in its tables, for a later `verify`.
        collisions: of each column of pseudonyms, how many values share theirs with another.
        perturbed: its rows where columns are published with changes.
        columns: of the published table.
        recoding: how it was recoded.
        table: the published table itself, or where it lies.
    """

    name: str
    task: Task = field(repr=False)
    method: Method
    grouping: Grouping = field(repr=False)
    models: Sequence[Model] = field(default=(), repr=False)
    classes: Classes = field(default=NO_CLASSES, repr=False)
    plan: Plan | GroupPlan = field(default=NO_PLAN, repr=False)
    layouts: Sequence[Layout] = field(default=(), repr=False)
    tables: Mapping[str, Table] = field(default_factory=dict, repr=False)
    counted: list[Recount] = field(default_factory=list, repr=False)
    recorded: Mapping[str, Any] | None = field(default=None, repr=False)
    collisions: Mapping[str, int] = field(default_factory=dict, repr=False)
    perturbed: Any = field(default=None, repr=False)
    columns: tuple[str, ...] = ()
    recoding: str = ""
    table: Any = None

    def published(self, recoding: str, places: Mapping[str, Any]) -> list[Part]:
        """What a reader gets: a part for each of its tables, with what was handed over or where it lies."""
        return [
            Part(
                layout.name, self.task, self.method, self.grouping, self.models, self.classes,
                columns=layout.columns, recoding=recoding, table=places[layout.name],
            )
            for layout in self.layouts
        ]  # fmt: skip
