"""Who attacks, what is attacked, and what an attack is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Method, Part
from maskwright.domain.model import Context, Model
from maskwright.domain.near_numbers import NumberWindows
from maskwright.domain.promise import Design
from maskwright.domain.sequence_place import SequencePlace
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
        within: the secret is a number, up to this share of the truth; None: values or sets of them.
    """

    attribute: str
    sets: tuple[tuple[str, ...], ...] | None
    belief: Belief
    in_rows: bool
    within: Fraction | None = None

    def as_dict(self) -> dict[str, Any]:
        """For `private/`."""
        found = {
            "attribute": self.attribute, "sets": self.sets, "belief": self.belief.as_dict(), "in_rows": self.in_rows,
        }  # fmt: skip
        return found if self.within is None else found | {"within": str(self.within)}

    def is_about(self, secrets: Sequence[tuple[str, ...]] | None) -> bool:
        """Is it about these secrets?"""
        if isinstance(secrets, NumberWindows):
            return self.within == secrets.within
        return self.within is None and self.sets == secrets

    @staticmethod
    def of(stored: Mapping[str, Any]) -> PassingBelief:
        """What `as_dict` stored."""
        sets, belief = stored["sets"], stored["belief"]
        return PassingBelief(
            str(stored["attribute"]),
            None if sets is None else tuple(tuple(map(str, members)) for members in sets),
            Belief(Fraction(belief["before"]), Fraction(belief["after"]), belief["whom"], belief["why"]),
            bool(stored["in_rows"]),
            Fraction(stored["within"]) if "within" in stored else None,
        )


@dataclass(frozen=True, eq=False)
class StableRows:
    """The published rows of a table by pseudonyms that other releases have, too.

    Attributes:
        shown: per pseudonym the labels of its rows, in order.
        values: per sensitive attribute and pseudonym the values of its rows.
    """

    shown: Mapping[str, tuple[tuple[str | None, ...], ...]]
    values: Mapping[str, Mapping[str, frozenset[str]]]


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
        perturbed: what was measured of columns that are published with changes; empty: there are none.
        stable: its rows by stable pseudonyms, where it has some and is attacked together with other releases.
        design: the other ingredients of the policy and its run; None: not known, so that nothing is guaranteed.
        place: in a sequence of releases, where it is of one: then it is known who is in it.
    """

    grouping: Grouping
    models: Sequence[Model] = ()
    method: Method | None = None
    context: Context = field(default_factory=Context)
    census: Summary | None = None
    exact: bool = False
    weights: Mapping[str, Fraction] | None = None
    levels: Mapping[str, Sequence[int]] | None = None
    secrets: Mapping[str, Sequence[tuple[str, ...]] | None] | None = None
    joined: Sequence[Sequence[str]] | None = None
    name: str = "data"
    beside: tuple[Target, ...] = ()
    passing: tuple[PassingBelief, ...] = ()
    design: Design | None = None
    perturbed: Mapping[str, Any] = field(default_factory=dict)
    stable: StableRows | None = None
    place: SequencePlace | None = None

    @staticmethod
    def of(
        part: Part,
        exact: bool = False,
        joined: Sequence[Sequence[str]] | None = None,
        passing: tuple[PassingBelief, ...] = (),
        design: Design | None = None,
    ) -> Target:
        """A table of a release as an attack looks at it."""
        task = part.task
        return Target(
            part.grouping, part.models, part.method, task.context, task.census, exact, task.weights, task.levels,
            joined=joined, name=part.name, passing=passing, design=design,
            perturbed=part.perturbed.findings if part.perturbed is not None else {},
        )  # fmt: skip

    @staticmethod
    def of_groups(grouping: Grouping, models: Sequence[Model], context: Context) -> Target:
        """A table whose method is not known, or decided nothing."""
        return Target(grouping, models, None, context)

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
        """Would the same be published in every world?

        Where people have several rows, requirements count them: buckets of different people, and whether a requirement
        about values holds, then depend on whose values they are.
        """
        method = self.method
        if method is None or not method.deals_alike(self.models, self.grouping.trace):
            return False
        if self.grouping.summary.rows_are_people:
            return True
        counted = any(m.about == "sensitive" and m.name != "belief" for m in self.models)
        return not counted and not method.buckets_people


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
        linked: does it take into account that a pseudonym links the visits of a person?
        within_links: where visits are linked, is what `linked-visits` finds of one known visit at least as much?
        many_values: can it be asked about a column with very many different values?
    """

    kind: ClassVar[str] = "attacks"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()
    whom: ClassVar[Literal["published", "dropped"]] = "published"
    linked: ClassVar[bool] = False
    within_links: ClassVar[bool] = False
    many_values: ClassVar[bool] = False

    def applies(self, target: Target) -> bool:
        """Is there anything for this attack to do? (It needs sensitive values, a known method …)"""
        return True

    def unable(self, target: Target) -> str:
        """Why this attack cannot say anything about a release that it concerns; empty: it can, or need not."""
        summary = target.grouping.summary
        if not summary.sensitive or summary.rows_are_people:
            return ""
        if summary.owned is None or summary.personal is None:
            return (
                "people have several rows, and the release does not say how many; anonymize the table again"
            )
        return ""

    def sees_links(self, target: Target) -> bool:
        """Does it take into account that a pseudonym links the visits of the people of this release?"""
        return self.linked

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

        None: there is nothing for this attack to do, or it is `unable` to say anything about one of them.
        """
        found = self.each(targets, adversary)
        if len(targets) == 1 or not found:
            return found[0][1] if found else None
        attacked = {id(t) for t, _ in found}
        if any(self.unable(t) for t in targets if id(t) not in attacked):
            return None
        table, worst = max(found, key=lambda item: item[1].worst.upper)
        named = replace(worst.worst, whom=f"{worst.worst.whom} in {table.name}")
        by_table = {t.name: {"worst": b.worst, "kind": b.kind} for t, b in found}
        return replace(worst, worst=named, measures={**worst.measures, "tables": by_table})
