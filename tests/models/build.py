"""Classes and contexts from plain lists of values; None is a missing value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maskwright.domain.classes import Classes, ValueCounts
from maskwright.domain.distances import ValueTree
from maskwright.domain.model import Context, Model
from maskwright.domain.settings import build_registered
from maskwright.models import MODELS

Values = Sequence[str | None]
DOMAIN = ("a", "b", "c", "d")


def counts_of(classes: Sequence[Values], domain: Sequence[str] = DOMAIN) -> ValueCounts:
    code = {None: 0, **{value: i + 1 for i, value in enumerate(domain)}}
    owner = [c for c, values in enumerate(classes) for _ in values]
    codes = [code[value] for values in classes for value in values]
    return ValueCounts.collect(
        tuple(domain), len(classes), np.array(owner, dtype=np.int64), np.array(codes, dtype=np.int64),
        np.ones(len(codes), dtype=np.int64), ordered=True,
    )  # fmt: skip


def classes_of(
    classes: Sequence[Values], domain: Sequence[str] = DOMAIN, **more: Sequence[Values]
) -> Classes:
    """Classes with the sensitive attribute `s`, and others by name."""
    sizes = np.array([len(values) for values in classes], dtype=np.int64)
    sensitive = {name: counts_of(values, domain) for name, values in {"s": classes, **more}.items()}
    return Classes(sizes, sizes, sensitive)


def weighted(rows: Sequence[dict[str | None, int]], domain: Sequence[str] = DOMAIN) -> Classes:
    """Classes from counts by value, for numbers too large to list."""
    code = {None: 0, **{value: i + 1 for i, value in enumerate(domain)}}
    owner = np.array([c for c, row in enumerate(rows) for _ in row], dtype=np.int64)
    codes = np.array([code[value] for row in rows for value in row], dtype=np.int64)
    counts = np.array([count for row in rows for count in row.values()], dtype=np.int64)
    sizes = np.array([sum(row.values()) for row in rows], dtype=np.int64)
    return Classes(sizes, sizes, {"s": ValueCounts.collect(tuple(domain), len(rows), owner, codes, counts)})


def context_of(classes: Classes, table: Values | None = None, **more: Any) -> Context:
    """A context whose reference is `table`, or all classes together."""
    if table is None:
        reference = {name: counts.totals for name, counts in classes.sensitive.items()}
    else:
        reference = {"s": counts_of([table], classes.sensitive["s"].values).totals}
    domains = {name: counts.values for name, counts in classes.sensitive.items()}
    people = int(classes.sizes.sum()) if table is None else len(table)
    return Context(reference=reference, n_people=people, domains=domains, **more)


def model(name: str, **parameters: Any) -> Model:
    return build_registered(MODELS, "model", name, parameters, "require[0]")


PARENT = {"a": "ab", "b": "ab", "ab": "abc", "c": "abc", "abc": "root", "d": "root"}


def tree() -> ValueTree:
    """An uneven tree over the domain."""
    return ValueTree.of_parents(DOMAIN, PARENT)
