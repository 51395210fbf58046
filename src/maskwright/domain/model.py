"""What a privacy model is. One file per model lives in `maskwright/models`.

`fewest_rows` is what models say of the size of a group by their parameters alone, whatever the table.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints
from maskwright.domain.distances import ValueTree
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.rules import Rule
from maskwright.domain.sample import Sample
from maskwright.domain.settings import Registered
from maskwright.domain.value_sets import SetColumn
from maskwright.domain.verdict import Verdict

Need = Literal["labels", "population", "originals", "ancestors", "sample", "guards"]


@dataclass(frozen=True, eq=False)
class Context:
    """What a model may compare a class with.

    Attributes:
        reference: counts of each sensitive value in the whole table before suppression (index = code).
        n_people: people in the table before suppression.
        hierarchies: of sensitive attributes, where the policy gives one.
        supersets: per class the lists of classes (its ancestors) that (n,t)-closeness may compare it with.
        published: true when `reference` is the distribution of those who are published: of gates, and where nothing
            else is known (audit).
        domains: the values of each sensitive attribute, by code from 1 on; kernels of models that name values
            need it, and p-sensitivity of all attributes.
        trees: of sensitive attributes whose hierarchy is given as a tree and not as levels.
        flagged: the sets of values of an attribute that are sensitive, where the policy says so; by default each
            value is one. Of the bits of a multi-valued attribute, only presence is.
        sets: the multi-valued columns of the whole table.
        sample: the population that the table was drawn from, where the policy says so.
    """

    reference: Mapping[str, Ints] = field(default_factory=dict)
    n_people: int = 0
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    supersets: Sequence[Sequence[Sequence[int]]] | None = None
    published: bool = False
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trees: Mapping[str, ValueTree] = field(default_factory=dict)
    flagged: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    sets: tuple[SetColumn, ...] = ()
    sample: Sample | None = None


class Model(Registered):
    """A privacy requirement: `check` measures every class and says which pass.

    Class attributes that searches rely on:
        merge_safe: merging classes that satisfy the model gives a class that does.
        hereditary: a part of a failing class fails too (so what is suppressed at a node is suppressed below it).
        about: "quasi-identifiers" when only class sizes are looked at, "sensitive" when values are.
        of_bits: can it be asked of a bit of a multi-valued attribute, of which only presence is sensitive? (Models
            that take `sets` or `values` can: they are given presence. Those that count values cannot.)
        share_setting: the setting that bounds the share of a value in a class; `l` stands for one in l.
    """

    kind: ClassVar[str] = "models"
    merge_safe: ClassVar[bool]
    hereditary: ClassVar[bool]
    about: ClassVar[Literal["quasi-identifiers", "sensitive"]]
    of_bits: ClassVar[bool] = False
    share_setting: ClassVar[str] = ""

    use: Literal["search", "gate"] = "search"

    @abstractmethod
    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure every class."""

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Which classes pass. Searches call this often: override it where the measured value costs more."""
        return self.check(classes, context).passes

    def surviving(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Which classes stay where failing ones are suppressed; a model of the whole release says how few must go."""
        return self.passing(classes, context)

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """The model as a conjunction of rules that a compiled kernel can decide, or None where it is not one.

        A class passes the model exactly when it passes every rule (the empty tuple: every class passes).
        """
        return None

    def least_size(self, context: Context) -> int:
        """The k below which a class is *small*: suppression by size removes classes with fewer people."""
        return max((rule.size for rule in self.kernel(context) or ()), default=1)

    def fewest_rows(self, context: Context, named: bool = True) -> int:
        """The fewest rows of a group by the parameters alone; see the function."""
        rules = self.kernel(context) or ()
        return max(1, self.least_size(context), *(rule.fewest_rows(named) for rule in rules))

    def is_local(self) -> bool:
        """Does a class pass or fail by itself? If not, dropping other classes can change its verdict."""
        return True

    def unfit_for_people(self) -> str:
        """Why the model cannot be asked where people have several rows, and what can; empty: it counts people."""
        return ""

    def needs(self) -> frozenset[Need]:
        """What the model must know of a class besides sizes and values (see `Classes`)."""
        return frozenset()

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The nearest setting that these classes would satisfy, as the policy would write it ("k: 3")."""
        return None

    def refuse_unknown(self, domains: Mapping[str, Sequence[str]]) -> None:
        """Raise `PolicyError` when the model names a sensitive attribute that the input lacks."""
        return

    def named_values(self) -> list[str]:
        """The sensitive values that the parameters name."""
        return []

    def attribute_name(self) -> str | None:
        """The sensitive attribute that the model names, if it names one."""
        return getattr(self, "attribute", None)

    def parameters(self) -> dict[str, Any]:
        """The settings as a policy writes them, without `use` and `attribute`."""
        return {k: v for k, v in self.model_dump(mode="json").items() if k not in ("use", "attribute")}

    def verdict(
        self, passes: NDArray[np.bool_], values: Any, worst_group: int | None, bound: str, quantity: str
    ) -> Verdict:
        """Wrap what was measured."""
        worst = None if worst_group is None else values[worst_group]
        if isinstance(worst, np.generic):
            worst = worst.item()
        return Verdict(
            self.name, self.parameters(), self.attribute_name(), bool(passes.all()), passes, values, worst,
            worst_group, bound, quantity, self.use,
        )  # fmt: skip


def fewest_rows(models: Iterable[Model], context: Context, named: bool = True) -> int:
    """The fewest rows of a group under these models: k, ⌈l⌉, p.

    Where a model limits named values only, groups without them pass however small they are. `named` counts ⌈l⌉ there,
    too: the guard of the methods that cut evenly, whose bounds need parts of so many rows. Without it nothing smaller
    can pass (apart from groups of missing values).
    """
    return max((model.fewest_rows(context, named) for model in models), default=1)
