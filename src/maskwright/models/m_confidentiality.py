"""m-confidentiality: no credibility above 1/m, even for those who know the method to be minimal [Wong et al. 2007]."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np
from pydantic import model_validator

from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.exact import exact_bincount, text_of
from maskwright.domain.model import Context, Need
from maskwright.domain.segments import rounded_down
from maskwright.domain.sensitive import Positive, SensitiveModel, Sets
from maskwright.domain.verdict import Verdict
from maskwright.errors import PolicyError
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.counting.general_credibility import several_sets_credibility


class MConfidentiality(SensitiveModel):
    """An attacker who knows that classes were merged only to satisfy l-diversity believes nothing above 1/m.

    Credibility is that of global recoding, one published class at a time, as the paper has it: the original
    classes inside it were merged because at least one of them violated l-diversity. Where that cannot be the
    reason, and where nothing was merged, it is the share of the value in the class.

    Attributes:
        m: one in m; any number above 0.
        l: the diversity that the method was asked for (default: m).
        attribute: the sensitive column; each of them when it is not named.
        sets: the sensitive sets of values, disjoint (default: every value is a set of its own).
    """

    name: ClassVar[str] = "m-confidentiality"
    merge_safe: ClassVar[bool] = False
    hereditary: ClassVar[bool] = False

    m: Positive
    l: Positive | None = None  # noqa: E741 - the literature's name
    sets: Sets | None = None

    @model_validator(mode="after")
    def _disjoint(self) -> MConfidentiality:
        named = self.named_values()
        if len(set(named)) < len(named):
            raise ValueError("a value is in two sets; the sets must be disjoint")
        return self

    def named_values(self) -> list[str]:
        """The values in `sets`."""
        return [v for s in self.sets or () for v in s]

    def unfit_for_people(self) -> str:
        """Why it is not asked of people with several rows."""
        largest = text_of(min(1 / self.m, Fraction(1)))
        return (
            "m-confidentiality counts a row for a person, so its credibility would be too low; require "
            f"{{model: belief, max: {largest}}}, which is about some row of a person"
        )

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the largest credibility in each class."""
        parts = self._originals(classes)
        counts = self.counts(classes)
        set_of = self._set_of(counts)
        known: dict[tuple[tuple[int, ...], tuple[int, ...]], Fraction] = {}
        values = []
        for c in range(classes.n):
            part = slice(int(counts.start[c]), int(counts.start[c + 1]))
            held = exact_bincount(set_of[counts.codes[part]], counts.counts[part], set_of.max(initial=0) + 1)
            key = tuple(sorted(parts[c])), tuple(sorted(held[1:][held[1:] > 0].tolist()))
            if key not in known:
                known[key] = self._worst(*key, int(classes.sizes[c]))
            values.append(known[key])
        passes = np.array([value * self.m <= 1 for value in values], dtype=bool)
        worst = max(range(classes.n), key=values.__getitem__) if values else None
        return self.verdict(passes, values, worst, f"at most {text_of(1 / self.m)}", "credibility")

    def _worst(self, sizes: tuple[int, ...], held: tuple[int, ...], n: int) -> Fraction:
        """The largest credibility in a published class: sizes of its original classes, people of each set."""
        if not held:
            return Fraction(0)
        if sum(sizes) != n or sum(held) > n:
            raise PolicyError(f"{self.name} cannot be checked where one person has rows in several classes")
        share = Fraction(max(held), n)
        if len(sizes) == 1:
            return share
        try:
            found = several_sets_credibility(sizes, held, self.l or self.m)
            if (
                found is not None and abs(float(max(map(max, found)) * self.m) - 1) < 1e-6
            ):  # settle ties exactly
                found = several_sets_credibility(sizes, held, self.l or self.m, exact=True)
        except TooManyWorlds:
            raise PolicyError(
                f"{self.name}: a class of {len(sizes)} original classes and {len(held)} sensitive sets is too large "
                "to count its possible worlds; name fewer sets, or bound the belief after the attack instead"
            ) from None
        return share if found is None else Fraction(max(map(max, found)))

    def _originals(self, classes: Classes) -> list[list[int]]:
        """The sizes of the original classes in each published one."""
        if classes.originals is None:
            raise PolicyError(
                f"{self.name} cannot be checked here: the classes before recoding are not known"
            )
        sizes, start = classes.originals.sizes.tolist(), classes.originals.start.tolist()
        return [sizes[a:b] for a, b in pairwise(start)]

    def _set_of(self, counts: ValueCounts) -> Ints:
        """The number of the set each code belongs to, from 1 on; 0: no sensitive set."""
        if self.sets is None:
            return np.arange(len(counts.values) + 1)
        result = np.zeros(len(counts.values) + 1, dtype=np.int64)
        number = {value: i + 1 for i, members in enumerate(self.sets) for value in members}
        for code, value in enumerate(counts.values):
            result[code + 1] = number.get(value, 0)
        return result

    def needs(self) -> frozenset[Need]:
        """The classes before recoding that each published class consists of."""
        return frozenset({"originals"})

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The m that these classes satisfy, with l spelt out where it followed m."""
        worst = self.check(classes, context).worst
        if not worst:
            return None
        # what is believed depends on the diversity that was asked for, which is m unless it is said
        asked = "" if self.l is not None else f", l: {text_of(self.m)}"
        return f"m: {rounded_down(1 / Fraction(worst))}{asked}"
