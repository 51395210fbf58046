"""Who attacks, what is attacked, and what an attack is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Method
from maskwright.domain.model import Context, Model
from maskwright.domain.promise import Design
from maskwright.domain.settings import Registered
from maskwright.domain.summary import Summary

Knowledge = Literal["method", "facts", "values", "releases", "correlations"]
# that anybody is taken to know; the time to compute what follows grows with their square and more
MOST_FACTS = 100


@dataclass(frozen=True)
class Adversary:
    """What somebody knows: who is in the table and their quasi-identifiers, the method, and some facts.

    Whoever `learns` does not take all worlds for equally likely, but learns from the release which are.
    """

    name: str = "neighbour"
    knows_method: bool = False
    facts: int = 0
    learns: bool = False

    @property
    def knowledge(self) -> frozenset[Knowledge]:
        """What is known besides the release and everybody's quasi-identifiers."""
        known: set[Knowledge] = {"method"} if self.knows_method else set()
        known |= {"correlations"} if self.learns else set()
        return frozenset(known | ({"facts", "values"} if self.facts else set()))


@dataclass(frozen=True)
class PassingBelief:
    """What the columns that are published as they are tell about the secrets of one attribute.

    Attributes:
        attribute: the sensitive attribute, and
        sets: the secrets; None: each of its values.
        belief: the worst.
        in_rows: does a row show these columns beside its sensitive values?
    """

    attribute: str
    sets: tuple[tuple[str, ...], ...] | None
    belief: Belief
    in_rows: bool

    def as_dict(self) -> dict[str, Any]:
        """For `private/`."""
        return {
            "attribute": self.attribute, "sets": self.sets, "belief": self.belief.as_dict(), "in_rows": self.in_rows,
        }  # fmt: skip

    @staticmethod
    def of(stored: Mapping[str, Any]) -> PassingBelief:
        """What `as_dict` stored."""
        sets, belief = stored["sets"], stored["belief"]
        return PassingBelief(
            str(stored["attribute"]),
            None if sets is None else tuple(tuple(map(str, members)) for members in sets),
            Belief(Fraction(belief["before"]), Fraction(belief["after"]), belief["whom"], belief["why"]),
            bool(stored["in_rows"]),
        )


@dataclass(frozen=True, eq=False)
class Target:
    """What is attacked: a release as its publisher knows it.

    Attributes:
        grouping: which rows were published together, under which labels.
        models: the requirements, each with its `use` (a method that searched under one may have leaked by it).
        method: how the groups were made, with its settings; None for a table of unknown origin.
        context: reference distributions and the like, as the models had them.
        census: the population table, where there is one.
        exact: the quasi-identifiers are published as they are (bucketized or permuted releases).
        weights: of the quasi-identifiers, as the method had them, and
        levels: the levels that it was allowed; None: not known, so that its search cannot be repeated.
        secrets: the sensitive columns in question with the sets of values that must not be learned (None: each
            value), where it is not all that the models name.
        joined: the sensitive attributes that a row shows together, as lists; None: all of them.
        name: of the table, and
        beside: the other tables of the same release, which are about the same people.
        passing: what insensitive columns tell, as far as it was computed.
        design: the other ingredients of the policy and its run; None: not known, so that nothing is guaranteed.
    """

    grouping: Grouping
    models: Sequence[Model] = ()
    method: Method | None = None
    context: Context = field(default_factory=Context)
    census: Summary | None = None
    exact: bool = False
    weights: Mapping[str, Fraction] | None = None
    levels: Mapping[str, Sequence[int]] | None = None
    secrets: Mapping[str, tuple[tuple[str, ...], ...] | None] | None = None
    joined: Sequence[Sequence[str]] | None = None
    name: str = "data"
    beside: tuple[Target, ...] = ()
    passing: tuple[PassingBelief, ...] = ()
    design: Design | None = None

    @property
    def tables(self) -> tuple[Target, ...]:
        """Every table of the release."""
        return self, *self.beside

    @property
    def least_people(self) -> int:
        """The size that every class must have, by the parameters of the search alone."""
        return max((m.least_size(self.context) for m in self.models if m.use == "search"), default=1)

    @property
    def worlds_alike(self) -> bool:
        """Would the method publish the same in every world?"""
        return self.method is not None and self.method.deals_alike(self.models, self.grouping.trace)


def drops_failing(target: Target) -> bool:
    """Does the method drop classes that fail a model?"""
    return target.method is not None and target.method.decisions().drops_failing


About = Literal["values", "ranges", "rows"]


class Attack(Registered):
    """Plays the adversary against a release and says what may be believed afterwards.

    Class attributes that requirements on belief rely on:
        about: "values" when what is believed is that somebody has a sensitive value, "ranges" when it is that the
            value lies in a range or branch, "rows" when it is which row is somebody's. Bounds on belief are about
            values.
        takes: what it takes into account besides the release and everybody's quasi-identifiers. It counts for an
            adversary who knows all of that (by default: for everybody).
        whom: is it about people in the release, or about those who were dropped?
        by_rows: does it take every row for a person of its own?
    """

    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()
    whom: ClassVar[Literal["published", "dropped"]] = "published"
    by_rows: ClassVar[bool] = False

    def applies(self, target: Target) -> bool:
        """Is there anything for this attack to do? (It needs sensitive values, a known method …)"""
        return True

    def unable(self, target: Target) -> str:
        """Why this attack cannot say anything about a release that it concerns; empty: it can, or need not."""
        summary = target.grouping.summary
        if self.by_rows and summary.sensitive and not summary.rows_are_people:
            return "people have several rows, and this attack takes every row for a person"
        return ""

    def suits(self, adversary: Adversary) -> bool:
        """Has this adversary the knowledge that the attack uses? (Facts are always assumed by those who use them.)"""
        return adversary.knows_method or "method" not in self.takes

    @abstractmethod
    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """Attack one table."""

    def each(self, targets: Sequence[Target], adversary: Adversary) -> list[tuple[Target, Beliefs]]:
        """Attack each table where there is anything to do."""
        return [(t, self.run(t, adversary)) for t in targets if self.applies(t)]

    def over(self, targets: Sequence[Target], adversary: Adversary) -> Beliefs | None:
        """Attack all tables of a release, or of several: by default each by itself, and the worst belief counts.

        None: there is nothing for this attack to do.
        """
        found = self.each(targets, adversary)
        if len(targets) == 1 or not found:
            return found[0][1] if found else None
        table, worst = max(found, key=lambda item: item[1].worst.upper)
        named = replace(worst.worst, whom=f"{worst.worst.whom} in {table.name}")
        by_table = {t.name: {"worst": b.worst, "kind": b.kind} for t, b in found}
        return replace(worst, worst=named, measures={**worst.measures, "tables": by_table})
