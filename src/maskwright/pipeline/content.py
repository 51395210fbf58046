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
from maskwright.domain.summary import Shared, Summary

Words = NDArray[np.uint64]


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
    if (joint := summary.joint) is not None:  # says everything about the rest
        parts.array(joint.tuples, "<i8")
        parts.array(joint.values, "<i4")
        parts.array(joint.rows, "<i8")
        return
    parts.array(summary.rows, "<i8")
    parts.array(summary.sizes, "<i8")
    for counts in summary.sensitive.values():
        for values in (counts.start, counts.codes, counts.counts):
            parts.array(values, "<i8")
    if summary.shared is not None:
        parts.array(_people(summary.shared), "<u8")


def _add_hierarchy(parts: _Parts, hierarchy: Hierarchy) -> None:
    parts.texts([hierarchy.attribute, "ordered" if hierarchy.ordered else "", *hierarchy.values])
    for level in hierarchy.levels:
        parts.texts([level.name, *level.labels])
        parts.array(level.blocks, "<i4")


def _people(shared: Shared) -> Words:
    """A number for each person by what the person has, ascending: how people are numbered does not matter."""
    people = np.zeros(shared.n_people, dtype=np.uint64)
    np.add.at(people, shared.people, _mixed(_mixed(shared.tuples)))
    for i, (tuples, person, codes) in enumerate(shared.values.values(), 1):
        np.add.at(people, person, _mixed(_mixed(_mixed(tuples) + codes.astype(np.uint64)) + np.uint64(i)))
    return np.sort(people)


def _mixed(values: NDArray[np.integer]) -> Words:
    """splitmix64: numbers that are near become numbers that are not."""
    x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
