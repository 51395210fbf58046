"""A differentially private sample: rows kept by chance, classes of all columns, rare classes left out.

Levels are fixed in advance, and all published columns, sensitive ones included, are the class of a row [Li, Qardaji, Su
2012; Bild, Kuhn, Prasser 2018]. What it rests on, and what would void it: `promise/lemmas/private_samples.py`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, field_validator, model_validator

from maskwright.domain.classes import Ints
from maskwright.domain.exact import Exact, exact_bincount, text_of
from maskwright.domain.grouping import Allocation, Grouping, Labels, Trace, allocated_classes
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Method, Task
from maskwright.domain.promise import DifferentialPrivacy
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.methods._rows.group_requirement import refuse_unless_met
from maskwright.promise.lemmas.private_samples import WORD, delta_at_most, keeping_threshold, smallest_k

MANY = 1 << 20  # random words at a time
VOIDS: dict[str, str] = {
    "suppression": "a share of rows to leave out would make levels follow from the data",
    "suppress": "classes are left out by their number of rows in the sample, and by nothing else",
    "suppressed_rows": "rows that are left out must not be published as * either, not even their number",
    "objective": "levels that are chosen by their loss are chosen from the data; name one level per column",
    "seed": "whoever guesses a seed knows which rows were kept",
    "counts": "the number of rows that were sampled out of a class tells how many there were",
    "anatomize": "values that are dealt inside a class are no longer part of it",
}


class DpSample(Method):
    """Keeps each row with a fixed chance and publishes classes of k rows or more: (ε, δ)-differentially private.

    Attributes:
        epsilon: how many times as likely, as a power of e, a release may become by one row.
        delta: the probability that is left out of that.
        k: the fewest rows of a class in the sample; default: the smallest that gives `delta`.
        total_epsilon: what all releases of this table may spend together (default: `epsilon`, so that there is one).
        total_delta: the same for delta.
    """

    name: ClassVar[str] = "dp-sample"

    epsilon: Exact = Field(default=1, validate_default=True)
    delta: Exact = Field(default="1e-5", validate_default=True)
    k: int | None = Field(default=None, ge=2, le=10**6)
    total_epsilon: Exact | None = None
    total_delta: Exact | None = None

    @model_validator(mode="before")
    @classmethod
    def _nothing_that_voids_it(cls, values: Any) -> Any:
        for name in values if isinstance(values, dict) else ():
            if name in VOIDS:
                raise ValueError(f"{name}: {VOIDS[name]}; that voids differential privacy, remove it")
        return values

    @field_validator("epsilon")
    @classmethod
    def _useful_epsilon(cls, value: Fraction) -> Fraction:
        if not Fraction(1, 100) <= value <= 10:
            raise ValueError("epsilon is a number from 0.01 to 10; 1 is usual")
        return value

    @field_validator("delta")
    @classmethod
    def _small_delta(cls, value: Fraction) -> Fraction:
        if not Fraction(1, 10**15) <= value <= Fraction(1, 2):
            raise ValueError(
                "delta is a probability from 1e-15 to 1/2; less than one in the number of rows is usual"
            )
        return value

    @model_validator(mode="after")
    def _enough(self) -> DpSample:
        found = self.privacy()
        if self.k is not None and found.delta > self.delta:
            least = smallest_k(float(self.delta), found.keep)
            raise ValueError(
                f"k: {self.k} rows give delta {found.delta:.3g}, more than {float(self.delta):.3g}; "
                f"k: {least} would suffice"
            )
        if found.allowed[0] < self.epsilon or found.allowed[1] < found.delta:
            raise ValueError("total_epsilon and total_delta are at least what one release spends")
        return self

    def privacy(self) -> DifferentialPrivacy:
        """ε as it is asked for, and the δ that k gives."""
        keep = keeping_threshold(self.epsilon) / WORD
        k = self.k or smallest_k(float(self.delta), keep)
        delta = delta_at_most(k, keep)
        total = delta if self.total_delta is None else float(self.total_delta)
        return DifferentialPrivacy(self.epsilon, delta, keep, k, (self.total_epsilon or self.epsilon, total))

    def group(self, task: Task) -> Grouping:
        """Sample the rows of each cell, and publish the classes that keep k of them."""
        summary, joint, privacy = task.summary, task.summary.joint, self.privacy()
        if joint is None:
            raise PolicyError(
                "dp-sample protects a row, and people have several (unit); make a table with one row per person"
            )
        levels = [_only_level(task, h.attribute, h.top) for h in summary.attributes]
        kept = sampled_rows(task.rng, joint.rows, keeping_threshold(self.epsilon))
        blocks = [
            h.levels[j].blocks[c] for h, j, c in zip(summary.attributes, levels, summary.codes, strict=True)
        ]
        labels = np.stack(blocks)[:, joint.tuples]
        _, of_cell = np.unique(np.concatenate([labels, joint.values]), axis=1, return_inverse=True)
        of_cell = of_cell.reshape(-1)
        shown = exact_bincount(of_cell, kept, int(of_cell.max()) + 1)[of_cell] >= privacy.k
        if not (kept[shown] > 0).any():
            raise PolicyNotMet(
                f"no class of all published columns has {privacy.k} rows in the sample; take coarser levels, publish "
                "fewer columns, or allow a larger epsilon or delta"
            )
        there = np.flatnonzero(shown & (kept > 0))
        shapes, group = np.unique(labels[:, there], axis=1, return_inverse=True)
        out = np.where(np.isin(np.arange(len(kept)), there), joint.rows - kept, joint.rows)
        left = np.flatnonzero(out)
        cells = np.concatenate([left, there])
        order = np.argsort(cells, kind="stable")
        allocation = Allocation(
            joint.tuples[cells][order],
            np.concatenate([np.full(len(left), -1), group.reshape(-1)]).astype(np.int64)[order],
            np.concatenate([out[left], kept[there]])[order],
            cells[order],
        )
        classes = allocated_classes(summary, allocation, shapes.shape[1])
        refuse_unless_met(task, classes, self.name)
        made = tuple(
            _published_labels(h, j, row) for h, j, row in zip(summary.attributes, levels, shapes, strict=True)
        )
        names = {h.attribute: h.levels[j].name for h, j in zip(summary.attributes, levels, strict=True)}
        search: dict[str, Any] = {
            "epsilon": text_of(self.epsilon), "delta": privacy.delta, "k": privacy.k, "kept with": privacy.keep,
            "levels": names,
        }  # fmt: skip
        gone = int(kept[~shown].sum())  # in the sample, and in classes too small
        trace = Trace(dropped_for_values=gone if summary.sensitive else 0)
        return Grouping(summary, allocation, made, classes, search=search, labelling="given", trace=trace)


def _only_level(task: Task, attribute: str, top: int) -> int:
    allowed = task.levels.get(attribute, ())
    if len(allowed) != 1:
        raise PolicyError(
            f"columns.{attribute}: dp-sample publishes each column at one level that is fixed in advance: a level "
            "that is chosen from the data reveals something about it. Name one, levels: [exact] or another of 0 to "
            f"{top}"
        )
    return int(allowed[0])


def _published_labels(hierarchy: Hierarchy, number: int, blocks: Ints) -> Labels:
    """The labels of the classes that are published, and no others."""
    level, (used, of_group) = hierarchy.levels[number], np.unique(blocks, return_inverse=True)
    texts = tuple(level.labels[block] for block in used.tolist())
    return Labels(hierarchy.attribute, texts, level.leaves[used], of_group.reshape(-1).astype(np.int32))


def sampled_rows(rng: np.random.Generator, rows: Ints, threshold: int) -> Ints:
    """How many of so many rows of each cell are kept, each with `threshold` of 2^64 chances."""
    ends = np.cumsum(rows)
    kept = np.zeros(len(rows) + 1, dtype=np.int64)
    for first in range(0, int(ends[-1]) if len(ends) else 0, MANY):
        count = min(MANY, int(ends[-1]) - first)
        words = rng.integers(0, WORD, count, dtype=np.uint64)
        chosen = first + np.flatnonzero(words < np.uint64(threshold))
        kept += np.bincount(np.searchsorted(ends, chosen, side="right"), minlength=len(rows) + 1)
    return kept[:-1]
