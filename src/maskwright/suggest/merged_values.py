"""Merged values: groups for texts and codes, of the rare ones, or of those with similar people.

Two values are near where the people who have them are alike in the other quasi-identifiers. Identifiers and sensitive
columns are not looked at, so that no group says anything about them. Values are merged pair by pair, those first whose
merging changes the averages least (Ward).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.suggest.profile import Facts

Floats = NDArray[np.float64]
FEWEST, MOST = 3, 60  # values of a column that are put together so
COMMON = 12  # values of another text column that are counted one by one
LEVELS = 3
OTHER = "other values"
MOST_GROUPED = 150  # values of a column whose groups are written out
IN_GROUPS = (
    "values whose people are alike in the other quasi-identifiers are grouped (no sensitive column was looked "
    "at): change the groups where they make no sense"
)


def rare_values_merged(facts: Facts) -> dict[str, Any] | None:
    """Groups that merge rare values first: those of fewer than 1, 5 and 20 % of the rows.

    They are written into the policy, so that no label depends on who is in a table. Of very many values only the common
    ones are written, and whatever is not written is among the others.
    """
    if not facts.complete or len(facts.values) < 3 or OTHER in facts.values:
        return None
    commonest = sorted(zip(facts.values, facts.counts, strict=True), key=lambda item: (-item[1], item[0]))
    many = len(commonest) > MOST_GROUPED
    levels: list[dict[str, list[str]]] = []
    merged = 1
    for share in (1000, 200, 50, 10) if many else (100, 20, 5):
        rare = sorted(v for v, n in commonest if n * share < facts.present)
        kept = {v: [v] for v, _ in commonest[: len(commonest) - len(rare)]}
        if merged < len(rare) < len(commonest) and len(kept) <= MOST_GROUPED:
            levels.append(kept if many else {**kept, OTHER: rare})
            merged = len(rare)
    if not levels:
        return None
    return {"groups": levels, "others": OTHER} if many else {"groups": levels}


def similar_values_merged(
    facts: Facts, cells: Sequence[str | None], others: Mapping[str, tuple[Facts, Sequence[str | None]]]
) -> dict[str, Any] | None:
    """Groups of a half, a quarter and an eighth as many values; None where the column has too few or too many.

    Args:
        facts: of the column.
        cells: its values in some rows, and
        others: the other quasi-identifiers in the same rows.
    """
    if not facts.complete or not FEWEST <= len(facts.values) <= MOST or not others:
        return None
    code = {value: i for i, value in enumerate(sorted(facts.values))}
    rows = np.array([i for i, cell in enumerate(cells) if cell in code])
    held = np.array([code[cells[i]] for i in rows.tolist()])
    sizes = np.bincount(held, minlength=len(code)).astype(float)
    columns = [_as_numbers(known, [values[i] for i in rows.tolist()]) for known, values in others.values()]
    features = np.concatenate(columns, axis=1)
    sums = np.zeros((len(code), features.shape[1]))
    np.add.at(sums, held, features)
    values = list(code)
    levels = [
        [[values[i] for i in group] for group in groups] for groups in _merged(sums, np.maximum(sizes, 1))
    ]
    return {"groups": levels}


def _as_numbers(facts: Facts, cells: Sequence[str | None]) -> Floats:
    """A column as numbers of about the same weight: standardised, or one for each of the commonest values."""
    if facts.numbers is not None:
        of = dict(zip(facts.values, map(float, facts.numbers), strict=True))
        numbers = np.array([of.get(c or "", np.nan) for c in cells])
        spread = np.nanstd(numbers) if np.isfinite(numbers).any() else 0.0
        if not spread:
            return np.zeros((len(cells), 1))
        standard: Floats = np.nan_to_num((numbers - np.nanmean(numbers)) / spread)
        return standard[:, None]
    common = sorted(zip(facts.counts, facts.values, strict=True), key=lambda item: (-item[0], item[1]))[
        :COMMON
    ]
    shares: Floats = np.array([[float(c == value) for _, value in common] for c in cells])
    return shares.reshape(len(cells), -1)


def _merged(sums: Floats, sizes: Floats) -> list[list[list[int]]]:
    """Groups of values after merging down to a half, a quarter, an eighth of them; the finest first."""
    groups, sums, sizes = [[i] for i in range(len(sizes))], sums.copy(), sizes.copy()
    wanted = [n for n in (max(2, len(groups) // 2), len(groups) // 4, len(groups) // 8)[:LEVELS] if n > 1]
    found = []
    while wanted:
        means = sums / sizes[:, None]
        apart = ((means[:, None] - means[None]) ** 2).sum(axis=2)
        cost = apart * sizes[:, None] * sizes[None] / (sizes[:, None] + sizes[None])
        cost[np.tril_indices(len(groups))] = np.inf
        a, b = divmod(int(cost.argmin()), len(groups))
        groups[a] = sorted(groups[a] + groups[b])
        sums[a] += sums[b]
        sizes[a] += sizes[b]
        del groups[b]
        sums, sizes = np.delete(sums, b, axis=0), np.delete(sizes, b)
        if len(groups) == wanted[0]:
            found.append([list(group) for group in groups])
            wanted.pop(0)
    return found
