"""p-sensitive k-anonymity: k people, and p different values of *every* sensitive column [Truta, Vinay 2006]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints
from maskwright.domain.model import Context, Model
from maskwright.domain.rules import DistinctAtLeast, Rule, SizeAtLeast
from maskwright.domain.sensitive import Chosen, Count, distinct_values
from maskwright.domain.settings import did_you_mean
from maskwright.domain.verdict import Verdict
from maskwright.errors import PolicyError


class PSensitiveKAnonymity(Model):
    """Every class holds at least k people and at least p different values of each sensitive column.

    Attributes:
        p: the least number of different values; missing is not one.
        k: the least number of people in a class.
        attributes: the sensitive columns concerned (default: all of them).
    """

    name: ClassVar[str] = "p-sensitive-k-anonymity"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True
    about: ClassVar[Literal["quasi-identifiers", "sensitive"]] = "sensitive"

    p: Count
    k: Count
    attributes: Chosen | None = None

    def _fewest(self, classes: Classes) -> Ints:
        """Per class the fewest different values over the columns concerned."""
        self.refuse_unknown({name: counts.values for name, counts in classes.sensitive.items()})
        names = self.attributes or classes.sensitive
        fewest: Ints = np.min([distinct_values(classes.sensitive[name]) for name in names], axis=0)
        return fewest

    def refuse_unknown(self, domains: Mapping[str, Sequence[str]]) -> None:
        """Refuse a table without sensitive columns, and columns in `attributes` that it lacks."""
        if not domains:
            raise PolicyError(f"{self.name} needs a sensitive column; give one column the role sensitive")
        for name in self.attributes or ():
            if name not in domains:
                hint = did_you_mean(name, domains)
                raise PolicyError(f"{self.name}: there is no sensitive column {name!r}; {hint}")

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes of at least k people with at least p different values in every column concerned."""
        return (classes.sizes >= self.k) & (self._fewest(classes) >= self.p)

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """A rule on the size and one on the different values of each column concerned."""
        names = self.attributes or tuple(context.domains)
        if not names:
            return None
        return (SizeAtLeast(self.k), *(DistinctAtLeast(name, self.p) for name in names))

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the people of each class where one is too small, else its fewest different values."""
        fewest, sizes = self._fewest(classes), classes.sizes
        passes = (sizes >= self.k) & (fewest >= self.p)
        if classes.n and sizes.min() < self.k:
            worst = int(sizes.argmin())
            return self.verdict(passes, sizes, worst, f"at least {self.k}", "people in the class")
        worst_group = int(fewest.argmin()) if classes.n else None
        what = "different values of a sensitive column"
        return self.verdict(passes, fewest, worst_group, f"at least {self.p}", what)

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The p and the k that these classes satisfy."""
        if not classes.n:
            return None
        p, k = min(self.p, int(self._fewest(classes).min())), min(self.k, int(classes.sizes.min()))
        return f"p: {p}, k: {k}" if p else None
