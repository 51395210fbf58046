"""What a privacy model is. One file per model lives in `maskwright/models`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.core.classes import Classes, Ints
from maskwright.core.distances import Tree
from maskwright.core.hierarchy import Hierarchy
from maskwright.core.multivalued import SetColumn
from maskwright.core.rules import Rule, SizeAtLeast
from maskwright.core.settings import Registered
from maskwright.core.verdict import Verdict

Need = Literal["labels", "population", "originals", "ancestors"]


@dataclass(frozen=True, eq=False)
class Context:
    """What a model may compare a class with.

    Attributes:
        reference: counts of each sensitive value in the whole table before suppression (index = code).
        n_people: people in the table before suppression.
        hierarchies: of sensitive attributes, where the policy gives one.
        supersets: per class the lists of classes (its ancestors) that (n,t)-closeness may compare it with.
        published: true when `reference` is the published distribution, because nothing else is known (audit).
        domains: the values of each sensitive attribute, by code from 1 on; kernels of models that name values
            need it, and p-sensitivity of all attributes.
        trees: of sensitive attributes whose hierarchy is given as a tree and not as levels.
        flagged: the sets of values of an attribute that are sensitive, where the policy says so; by default each
            value is one. Of the bits of a multi-valued attribute, only presence is.
        sets: the multi-valued columns of the whole table.
    """

    reference: Mapping[str, Ints] = field(default_factory=dict)
    n_people: int = 0
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    supersets: Sequence[Sequence[Sequence[int]]] | None = None
    published: bool = False
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trees: Mapping[str, Tree] = field(default_factory=dict)
    flagged: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    sets: tuple[SetColumn, ...] = ()


class Model(Registered):
    """A privacy requirement: `check` measures every class and says which pass.

    Class attributes that searches rely on:
        merge_safe: merging classes that satisfy the model gives a class that does.
        hereditary: a part of a failing class fails too (so what is suppressed at a node is suppressed below it).
        about: "quasi-identifiers" when only class sizes are looked at, "sensitive" when values are.
        of_bits: can it be asked of a bit of a multi-valued attribute, of which only presence is sensitive? (Models
            that take `sets` or `values` can: they are given presence. Those that count values cannot.)
    """

    merge_safe: ClassVar[bool]
    hereditary: ClassVar[bool]
    about: ClassVar[Literal["quasi-identifiers", "sensitive"]]
    of_bits: ClassVar[bool] = False

    use: Literal["search", "gate"] = "search"

    @abstractmethod
    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure every class."""

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Which classes pass. Searches call this often: override it where the measured value costs more."""
        return self.check(classes, context).passes

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """The model as a conjunction of rules that a compiled kernel can decide, or None where it is not one.

        A class passes the model exactly when it passes every rule (the empty tuple: every class passes).
        """
        return None

    def least_size(self, context: Context) -> int:
        """The k below which a class is *small*: suppression by size removes classes with fewer people."""
        sizes = [rule.k for rule in self.kernel(context) or () if isinstance(rule, SizeAtLeast)]
        return max(sizes, default=1)

    def is_local(self) -> bool:
        """Does a class pass or fail by itself? If not, dropping other classes can change its verdict."""
        return True

    def needs(self) -> frozenset[Need]:
        """What the model must know of a class besides sizes and values (see `Classes`)."""
        return frozenset()

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The nearest setting that these classes would satisfy, as the policy would write it ("k: 3")."""
        return None

    def refuse_unknown(self, domains: Mapping[str, Sequence[str]]) -> None:
        """Raise `PolicyError` when the model names a sensitive attribute or value that the input lacks."""
        return

    def attribute_name(self) -> str | None:
        return getattr(self, "attribute", None)

    def parameters(self) -> dict[str, Any]:
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
