"""What a search relies on in a model of somebody else, tried before it does: on random small classes, exactly.

A model says of itself that merging keeps it (`merge_safe`) and that parts of failing classes fail (`hereditary`).
Searches skip work for that: a model that says so and is not would publish classes that break its own requirement.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from maskwright.domain.classes import Classes, Originals, ValueCounts
from maskwright.domain.model import Context, Model
from maskwright.errors import PolicyError

Group = tuple[str, ...]  # the sensitive values of the people of a class
VALUES = ("1", "4", "6")
LARGEST = 4  # people of a class that is tried
UNTRIED = frozenset({"labels", "ancestors", "guards"})  # what cannot be made up for classes alone


def small_classes(values: Sequence[str] = VALUES, largest: int = LARGEST) -> list[Group]:
    """Every class of up to so many people, each with one of these values."""
    found: list[Group] = []
    last: list[Group] = [()]
    for _ in range(largest):
        last = [(*g, v) for g in last for v in values if not g or v >= g[-1]]
        found += last
    return found


def passing_groups(
    model: Model, groups: Sequence[Group], attribute: str, values: Sequence[str]
) -> list[bool]:
    """Which classes pass: all at once where each is judged by itself, else each as a table of its own."""
    if model.is_local():
        return [bool(ok) for ok in model.passing(*_table(groups, attribute, values))]
    return [bool(model.passing(*_table([g], attribute, values)).all()) for g in groups]


def _table(groups: Sequence[Group], attribute: str, values: Sequence[str]) -> tuple[Classes, Context]:
    sizes = np.array([len(g) for g in groups], dtype=np.int64)
    owner = np.repeat(np.arange(len(groups)), sizes)
    code = {value: i + 1 for i, value in enumerate(values)}
    codes = np.array([code[v] for g in groups for v in g], dtype=np.int64)
    counts = ValueCounts.collect(
        tuple(values), len(groups), owner, codes, np.ones(len(codes), dtype=np.int64), True
    )
    reference = np.array([0, *(6 - i % 5 for i in range(len(values)))], dtype=np.int64)
    context = Context(
        reference={attribute: reference}, n_people=int(reference.sum()), domains={attribute: tuple(values)}
    )  # fmt: skip
    originals = Originals.of(np.arange(len(groups)), sizes, len(groups))
    made = Classes(
        sizes, sizes, {attribute: counts}, population=2 * sizes, originals=originals, weights=sizes.astype(np.float64)
    )  # fmt: skip
    return made, context


def contract_breaches(model: Model) -> list[str]:
    """Where a model is not what it says of itself, each with the smallest counterexample that was found."""
    if model.needs() & UNTRIED:
        claims = [name for name in ("merge_safe", "hereditary") if getattr(model, name)]
        return [
            f"{name}: this cannot be tried, as it needs {', '.join(sorted(model.needs() & UNTRIED))}; declare it False"
            for name in claims
        ]
    attribute = model.attribute_name() or "value"
    values = tuple(sorted({*VALUES, *model.named_values()}))
    groups = small_classes(values[:5])
    passes = dict(zip(groups, passing_groups(model, groups, attribute, values), strict=True))
    checked = model.check(*_table(groups, attribute, values))
    found = []
    if model.is_local() and checked.passes.tolist() != list(passes.values()):
        found.append("passing: it decides otherwise than `check`")
    if len(checked.values) != len(groups):
        found.append("check: it measures another number of classes than it was given")
    if model.merge_safe and (pair := _broken_merge(model, passes, attribute, values)):
        found.append(f"merge_safe: {pair[0]} and {pair[1]} pass, and merged they fail; declare it False")
    if model.hereditary and (pair := _broken_part(passes)):
        found.append(f"hereditary: {pair[0]} fails, and its part {pair[1]} passes; declare it False")
    return found


def _broken_merge(
    model: Model, passes: dict[Group, bool], attribute: str, values: Sequence[str]
) -> tuple[Group, Group] | None:
    good = sorted((g for g, ok in passes.items() if ok), key=len)
    pairs = [(a, b) for i, a in enumerate(good) for b in good[i:] if len(a) + len(b) <= LARGEST + 2]
    merged = [tuple(sorted(a + b)) for a, b in pairs]
    decided = passing_groups(model, merged, attribute, values) if merged else []
    return next((pair for pair, ok in zip(pairs, decided, strict=True) if not ok), None)


def _broken_part(passes: dict[Group, bool]) -> tuple[Group, Group] | None:
    """Taking one person out at a time reaches every part."""
    for group, ok in sorted(passes.items(), key=lambda item: len(item[0])):
        for i in range(len(group) if not ok and len(group) > 1 else 0):
            if passes[(*group[:i], *group[i + 1 :])]:
                return group, (*group[:i], *group[i + 1 :])
    return None


@cache
def refuse_broken_contract(model: Model) -> None:
    """Raise where a model of another package is not what it says of itself: searches would rely on it."""
    if found := contract_breaches(model):
        raise PolicyError(
            f"{model.name} ({type(model).__module__}) cannot be relied on: {found[0]}", "\n".join(found[1:])
        )
