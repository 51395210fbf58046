"""The content of a summary in 256 bits: the same for the same people, in whatever order, file or engine they come.

Only what a method sees counts: the quasi-identifiers with their hierarchies, and the sensitive values. A column that is
not published, one that passes through, and the names of people change nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.summary import Summary


def content_hash(*summaries: Summary | None) -> str:
    """A hash of the content of some summaries, of which there may be none."""
    parts = _Parts()
    for summary in summaries:
        parts.texts(["summary" if summary is not None else "none"])
        if summary is not None:
            _add(parts, summary)
    return parts.hash.hexdigest()


class _Parts:
    """A hash of texts and arrays, each with its length, so that no two lists of them look alike."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256(b"maskwright content 1\0")

    def texts(self, texts: Iterable[str | None]) -> None:
        """Add texts to the hash, each with its length."""
        coded = [b"-" if t is None else b"+" + t.encode("utf-8", "surrogatepass") for t in texts]
        self.hash.update(np.array([len(coded), *map(len, coded)], dtype="<i8").tobytes())
        self.hash.update(b"".join(coded))

    def array(self, values: NDArray[Any], kind: str) -> None:
        """Add an array to the hash, with its shape."""
        self.hash.update(np.array([values.ndim, *values.shape], dtype="<i8").tobytes())
        self.hash.update(np.ascontiguousarray(values, dtype=kind).data)


def _add(parts: _Parts, summary: Summary) -> None:
    for hierarchy in summary.attributes:
        _add_hierarchy(parts, hierarchy)
    parts.array(summary.codes, "<i4")
    if summary.weights is not None:
        parts.texts(["weights"])
        parts.array(summary.weights, "<f8")
    for name, counts in summary.sensitive.items():
        parts.texts([name, "ordered" if counts.ordered else "", *counts.values])
    if (cells := summary.cells) is not None:  # says everything about the rest
        parts.array(cells.tuples, "<i8")
        parts.array(cells.values, "<i4")
        parts.array(cells.rows, "<i8")
        if cells.people is not None:  # numbered by what they have
            parts.array(cells.people, "<i8")
        return
    parts.array(summary.rows, "<i8")
    parts.array(summary.sizes, "<i8")
    for counts in summary.sensitive.values():
        for values in (counts.start, counts.codes, counts.counts):
            parts.array(values, "<i8")


def _add_hierarchy(parts: _Parts, hierarchy: Hierarchy) -> None:
    parts.texts([hierarchy.attribute, "ordered" if hierarchy.ordered else "", *hierarchy.values])
    for level in hierarchy.levels:
        parts.texts([level.name, *level.labels])
        parts.array(level.blocks, "<i4")
