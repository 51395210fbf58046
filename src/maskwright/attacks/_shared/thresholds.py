"""Thresholds: requirements on sensitive values as caps, so that worlds can be counted by the arithmetic of the papers.

"At most a share of the class holds any of these values" is a *threshold*. Simple l-diversity and (α,k)-anonymity are
made of thresholds; with a single one that matters, the beliefs of an adversary who knows that somebody was refused are
known in closed form. All other requirements go through the general ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from maskwright.attacks._minimality.refusals import RefusedParts
from maskwright.domain.adversary import Target
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.model import Context, Model
from maskwright.domain.segments import class_sums, exact_product
from maskwright.worlds.counting.credibility import Merged


@dataclass(frozen=True)
class Threshold:
    """At most `share` of the people of a class hold a value of `attribute` whose code is in `codes`."""

    attribute: str
    codes: frozenset[int]
    share: Fraction

    def held(self, counts: ValueCounts) -> Ints:
        """The people of each class who hold such a value."""
        inside = np.zeros(len(counts.values) + 1, dtype=bool)
        inside[list(self.codes)] = True
        return class_sums(np.where(inside[counts.codes], counts.counts, 0), counts.start)

    def caps(self, sizes: Ints, least: int = 0) -> Ints:
        """The most of them that classes of these sizes may hold; −1 where a class is too small anyway."""
        return np.where(sizes < least, -1, share_caps(self.share, sizes)).astype(np.int64)


def share_caps(share: Fraction, sizes: Ints) -> Ints:
    """The most people of classes of these sizes that are at most this share of them."""
    share = min(share, Fraction(1))  # nobody can hold more than all
    return (exact_product(sizes, share.numerator) // share.denominator).astype(np.int64)


def values_of(target: Target, threshold: Threshold) -> list[str]:
    """The values of a threshold, in words."""
    values = target.grouping.classes.sensitive[threshold.attribute].values
    return [values[code - 1] for code in sorted(threshold.codes)]


def thresholds_of(models: Sequence[Model], context: Context) -> list[Threshold] | None:
    """The models as thresholds, the strictest share for each set; None where one of them is something else."""
    found: dict[tuple[str, frozenset[int]], Fraction] = {}
    for model in models:
        rules = model.kernel(context)
        if rules is None:
            return None
        for rule in rules:
            if rule.looks_at is None:
                continue
            cap = rule.cap
            if cap is None:
                return None
            sets = cap.sets
            if sets is None:
                sets = tuple((code + 1,) for code in range(len(context.domains.get(cap.attribute, ()))))
            for codes in sets:
                key = cap.attribute, frozenset(codes)
                found[key] = min(cap.share, found.get(key, cap.share))
    return [Threshold(attribute, codes, share) for (attribute, codes), share in found.items()]


def _can_exceed(threshold: Threshold, parts: RefusedParts, published: Classes, least: int = 0) -> bool:
    """Whether some part could hold more than the threshold allows, by what its group shows."""
    if not len(parts.sizes):
        return False
    held = threshold.held(published.sensitive[threshold.attribute])[parts.group]
    return bool((np.minimum(held, parts.sizes) > threshold.caps(parts.sizes, least)).any())


def deciding_threshold(
    thresholds: Sequence[Threshold] | None, parts: Sequence[RefusedParts], published: Classes
) -> Threshold | None:
    """The only threshold that can have decided anything; None where there are several, or none."""
    if thresholds is None:
        return None
    found = [t for t in thresholds if any(_can_exceed(t, p, published) for p in parts)]
    return found[0] if len(found) == 1 else None


def merged_classes(threshold: Threshold, parts: RefusedParts, published: Classes, least: int = 0) -> Grouped:
    """Every published group as the parts that it was merged from."""
    order = np.argsort(parts.group, kind="stable")
    groups, first = np.unique(parts.group[order], return_index=True)
    held = threshold.held(published.sensitive[threshold.attribute])[groups].tolist()
    sizes, caps = parts.sizes[order].tolist(), threshold.caps(parts.sizes, least)[order].tolist()
    ends = [*first[1:].tolist(), len(order)]
    merged = [
        Merged(tuple(sizes[a:b]), h, tuple(caps[a:b]))
        for a, b, h in zip(first.tolist(), ends, held, strict=True)
    ]
    members = [order[a:b] for a, b in zip(first.tolist(), ends, strict=True)]
    return Grouped(groups, members, merged)


@dataclass(frozen=True, eq=False)
class Grouped:
    """Published groups with the parts that each was merged from (`members`), as the counting of worlds wants them."""

    groups: Ints
    members: list[Ints]
    merged: list[Merged]
