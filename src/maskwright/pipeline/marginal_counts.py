"""Marginals of a release: counted on the rows that are published, merged below k, and as readers get them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping
from maskwright.domain.marginals import Marginal, column_counts, merged_marginal
from maskwright.domain.method import Part
from maskwright.errors import PolicyError
from maskwright.folder.store import read_json
from maskwright.metrics._shared.supports import label_supports
from maskwright.policy.policy import Policy
from maskwright.verification.marginal_recount import MARGINALS


def with_marginals(parts: Sequence[Part], policy: Policy) -> list[Part]:
    """The parts with the counts of their quasi-identifiers, where the policy publishes them."""
    if not policy.publish.marginals:
        return list(parts)
    if len(parts) > 1:
        raise PolicyError(
            f"publish: {parts[0].method.name} makes several tables, and marginals are read with one; use another "
            "method, or remove `marginals`"
        )
    [part] = parts
    k = max(
        (m.least_size(part.task.context) for m in [*part.task.search, *part.task.gates, *part.models]),
        default=1,
    )
    return [replace(part, grouping=replace(part.grouping, marginals=marginals_of(part.grouping, max(2, k))))]


def marginals_of(grouping: Grouping, k: int) -> tuple[Marginal, ...]:
    """The counts of each quasi-identifier in the published rows, every cell of at least k of them."""
    allocation, summary = grouping.allocation, grouping.summary
    there = allocation.groups >= 0
    tuples, rows = allocation.tuples[there], allocation.rows[there]
    return tuple(
        merged_marginal(h.attribute, column_counts(codes[tuples], rows, len(h.values) + 1), k)
        for h, codes in zip(summary.attributes, summary.codes, strict=True)
    )


def marginals_as_json(grouping: Grouping) -> dict[str, Any]:
    """What readers get: the rows of each value, and the values that each label stands for."""
    found = {}
    for a, (hierarchy, marginal) in enumerate(
        zip(grouping.summary.attributes, grouping.marginals or (), strict=True)
    ):
        texts = (None, *hierarchy.values) if grouping.renderings is None else grouping.renderings[a].ground
        found[hierarchy.attribute] = {
            "cells": marginal.as_dict(texts),
            "labels": _values_of_labels(grouping, a, texts),
        }
    return {"columns": found}


def miscounted_marginals(part: Part, public: Path) -> str:
    """What is wrong with the published counts, by what was kept of the table; empty: nothing."""
    if part.grouping.marginals is None or not (public / MARGINALS).exists():
        return ""
    told = json.loads(json.dumps(marginals_as_json(part.grouping)))
    return (
        "" if read_json(public / MARGINALS) == told else f"{MARGINALS} does not hold the counts of the table"
    )


def _values_of_labels(grouping: Grouping, a: int, texts: Sequence[str | None]) -> dict[str, list[str | None]]:
    """Of each label that is published, the published values that it stands for."""
    shown, made = grouping.published_labels[a], grouping.labels[a]
    held = _published_codes(grouping, a)
    supports = label_supports(grouping.summary.attributes[a], made).without_missing
    found: dict[str, set[int]] = {}
    for inner, outer in sorted(set(zip(made.of_group.tolist(), shown.of_group.tolist(), strict=True))):
        text = shown.texts[outer]
        if text is not None:
            codes = supports.codes[supports.start[inner] : supports.start[inner + 1]]
            found.setdefault(text, set()).update(np.intersect1d(codes, held).tolist())
    return {text: [texts[code] for code in sorted(codes)] for text, codes in found.items()}


def _published_codes(grouping: Grouping, a: int) -> Ints:
    tuples = grouping.allocation.tuples[grouping.allocation.groups >= 0]
    return np.unique(grouping.summary.codes[a][tuples]).astype(np.int64)
