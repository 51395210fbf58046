"""Columns as a policy publishes them: which are treated together, what is drawn for them, and who could undo it.

Rows are handed in by an order that follows from what they hold, so that the same table in another order gets the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.errors import InputError
from maskwright.perturb.microaggregation import (
    group_means,
    information_loss,
    mdav_groups,
    optimal_groups,
    standardised_columns,
)
from maskwright.perturb.perturbations import (
    invariant_matrix,
    noise_covariance,
    noisy_values,
    randomised_codes,
    rounded_values,
    swapped_values,
)
from maskwright.policy.published_column import Extreme, Publishing

Texts = NDArray[np.object_]  # canonical texts; None is missing
Floats = NDArray[np.float64]
FEWEST = 3  # rows beyond a limit whose mean may be published
_DECIMALS = re.compile(r"\.(\d+)$")


@dataclass(frozen=True, eq=False)
class PerturbedFamily:
    """Columns that are treated together, as all rows of the input have them and as they are published.

    Attributes:
        names: the columns.
        publishing: what is done to them.
        true: the numbers (or codes of categories) of all rows of the input, a column each; missing is NaN.
        coded: the same, with those beyond a limit replaced: what somebody who knows the policy makes of them.
        shown: those that are published.
        texts: the published texts by column.
        categories: of a categorical column; code i is the i-th of them.
        covariance: of the errors, where noise is added.
        matrix: of the probabilities of categories.
    """

    names: tuple[str, ...]
    publishing: Publishing
    true: Floats
    coded: Floats
    shown: Floats
    texts: Mapping[str, Texts]
    categories: tuple[str, ...] = ()
    covariance: Floats | None = None
    matrix: Floats | None = None


def perturbed_family(
    names: Sequence[str], publishing: Publishing, texts: Mapping[str, Texts], rng: np.random.Generator
) -> PerturbedFamily:
    """What is published of columns that are treated together; refuses values that are no numbers."""
    if publishing.pram is not None:
        return _changed_categories(names[0], publishing, texts[names[0]], rng)
    true = np.stack([numbers_of(texts[name], name) for name in names], axis=1)
    coded = true.copy()
    for c, name in enumerate(names):
        coded[:, c] = _within_limits(true[:, c], publishing, name)
    found, covariance = _changed_numbers(names, publishing, coded, rng)
    shown, written = found.copy(), dict[str, Texts]()
    for c, name in enumerate(names):
        places = publishing.decimals
        if places is None:
            places = most_decimals(texts[name])
        if publishing.round is not None or publishing.extremes:
            places = max(places, _places_of(publishing))
        written[name] = number_texts(found[:, c], places)
        shown[:, c] = numbers_of(written[name], name)
    return PerturbedFamily(tuple(names), publishing, true, coded, shown, written, covariance=covariance)


def numbers_of(texts: Texts, name: str) -> Floats:
    """The numbers that texts stand for, missing as NaN; refuses others, naming one."""
    found = np.full(len(texts), np.nan)
    there = np.array([t is not None for t in texts], dtype=bool)
    try:
        found[there] = texts[there].astype(np.float64)
    except ValueError:
        bad = next(t for t in texts[there] if not _is_number(t))
        raise InputError(
            f"column {name!r} is to be published as changed numbers, and holds {str(bad)[:40]!r}, which is none; "
            "say in `prepare` what it means, or use pram, which changes categories"
        ) from None
    if not np.isfinite(found[there]).all():
        raise InputError(f"column {name!r} is to be published as changed numbers, and holds an infinite one")
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def most_decimals(texts: Texts) -> int:
    """The most decimals that any number of a column has."""
    found = (_DECIMALS.search(t) for t in texts if t is not None)
    return min(12, max((len(match[1]) for match in found if match), default=0))


def _places_of(publishing: Publishing) -> int:
    """The decimals that multiples and limits of a policy need."""
    named = [publishing.round] if publishing.round is not None else []
    named += [e.limit for e in (publishing.top_code, publishing.bottom_code) if e is not None]
    return next((p for p in range(13) if all((value * 10**p).denominator == 1 for value in named)), 12)


def number_texts(values: Floats, places: int) -> Texts:
    """Numbers as canonical texts with so many decimals, superfluous zeros left out."""
    result = np.full(len(values), None, dtype=object)
    for i, value in enumerate(values.tolist()):
        if not math.isnan(value):
            text = f"{value:.{places}f}"
            text = text.rstrip("0").rstrip(".") if "." in text else text
            result[i] = "0" if text == "-0" else text
    return result


def _within_limits(values: Floats, publishing: Publishing, name: str) -> Floats:
    low = float(publishing.bottom_code.limit) if publishing.bottom_code else -math.inf
    high = float(publishing.top_code.limit) if publishing.top_code else math.inf
    found = np.clip(values, low, high)  # NaN stays
    beyond: list[tuple[Extreme | None, NDArray[np.bool_]]] = []
    for extreme, above in ((publishing.top_code, True), (publishing.bottom_code, False)):
        if extreme is None or extreme.shows == "limit":
            continue
        limit = float(extreme.limit)
        beyond.append((extreme, values > limit if above else values < limit))
    for extreme, rows in beyond:
        n = int(rows.sum())
        if 0 < n < FEWEST:
            word = "top-code" if extreme is publishing.top_code else "bottom-code"
            raise InputError(
                f"column {name!r}: {n} row{'s lie' if n > 1 else ' lies'} beyond the limit of {word}, and the mean "
                "of so few reveals their values; move the limit, or write shows: limit"
            )
        if n:
            found[rows] = values[rows].mean()
    return found


def _changed_numbers(
    names: Sequence[str], publishing: Publishing, values: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats | None]:
    there = ~np.isnan(values)
    if publishing.microaggregate is not None:
        return _group_means(names, publishing.microaggregate.k, values, there), None
    if publishing.noise is not None:
        whole = values[there.all(axis=1)]
        if len(whole) < 2:
            raise InputError(f"column {names[0]!r}: noise needs at least two rows that miss nothing")
        covariance = noise_covariance(whole, float(publishing.noise.share), publishing.noise.correlated)
        return noisy_values(values, covariance, rng), covariance
    found = values.copy()
    for c, name in enumerate(names):
        rows = np.flatnonzero(there[:, c])
        if publishing.rank_swap is not None:
            window = math.floor(publishing.rank_swap.window * len(rows))
            if window < 1:
                raise InputError(
                    f"column {name!r}: {publishing.rank_swap.window} of {len(rows)} ranks is less than one, so "
                    "nothing would be swapped; write a larger window"
                )
            found[rows, c] = swapped_values(values[rows, c], window, rng)
        elif publishing.round is not None:
            found[rows, c] = rounded_values(values[rows, c], float(publishing.round))
    return found, None


def _group_means(names: Sequence[str], k: int, values: Floats, there: NDArray[np.bool_]) -> Floats:
    """Means of groups: optimal ones of a single column, MDAV's of several."""
    if len(names) > 1 and not there.all():
        name = names[int((~there).any(axis=0).argmax())]
        raise InputError(
            f"column {name!r} is missing in {int((~there).any(axis=1).sum())} rows, so rows cannot be compared in "
            "all columns that are microaggregated together; complete them, or microaggregate each column by itself"
        )
    rows = np.flatnonzero(there.all(axis=1))
    if len(rows) < k:
        raise InputError(f"column {names[0]!r}: {len(rows)} rows have a number, too few for a group of {k}")
    found, part = values.copy(), values[rows]
    groups = optimal_groups(part[:, 0], k) if len(names) == 1 else mdav_groups(standardised_columns(part), k)
    found[rows] = group_means(part, groups)
    return found


def _changed_categories(
    name: str, publishing: Publishing, texts: Texts, rng: np.random.Generator
) -> PerturbedFamily:
    assert publishing.pram is not None  # noqa: S101 - for the type checker
    values = tuple(sorted({t for t in texts if t is not None}))
    place = {value: i for i, value in enumerate(values)}
    codes = np.array([place.get(t, -1) for t in texts], dtype=np.int64)
    rows = np.flatnonzero(codes >= 0)
    matrix = transition_matrix(publishing, values, name)
    if publishing.pram.invariant:
        shares = np.bincount(codes[rows], minlength=len(values)) / max(1, len(rows))
        matrix = invariant_matrix(matrix, shares)
    changed = codes.copy()
    changed[rows] = randomised_codes(codes[rows], matrix, rng)
    written = np.array([values[code] if code >= 0 else None for code in changed.tolist()], dtype=object)
    true, shown = (np.where(c >= 0, c, np.nan)[:, None].astype(np.float64) for c in (codes, changed))
    return PerturbedFamily((name,), publishing, true, true, shown, {name: written}, values, matrix=matrix)


def transition_matrix(publishing: Publishing, values: Sequence[str], name: str) -> Floats:
    """The probabilities by which categories are changed, before they are made invariant."""
    settings = publishing.pram
    assert settings is not None  # noqa: S101 - for the type checker
    n = len(values)
    if settings.matrix is None:
        stays = float(settings.keep or 1)
        if n < 2:
            raise InputError(f"column {name!r} has one value, which pram cannot change")
        return np.full((n, n), (1 - stays) / (n - 1)) + np.eye(n) * (stays - (1 - stays) / (n - 1))
    named = set(settings.matrix) | {v for row in settings.matrix.values() for v in row}
    for value in values:
        if value not in settings.matrix:
            raise InputError(
                f"columns.{name}.publish.pram.matrix says nothing of the value {value!r}; add it"
            )
    if strangers := sorted(named - set(values)):
        raise InputError(
            f"columns.{name}.publish.pram.matrix names {strangers[0]!r}, which nobody has; remove it"
        )
    return np.array([[float(settings.matrix[a].get(b, 0)) for b in values] for a in values])


def families_of(perturbed: Mapping[str, Publishing]) -> list[tuple[tuple[str, ...], Publishing]]:
    """The columns that are treated together, in the order of the policy; each of them with what is done."""
    found: dict[int, list[str]] = {}
    for name, publishing in perturbed.items():
        found.setdefault(id(publishing), []).append(name)
    return [(tuple(names), perturbed[names[0]]) for names in found.values()]


def log_likelihoods(
    family: PerturbedFamily, people: NDArray[Any], own: Floats, shown: Floats
) -> NDArray[np.float64]:
    """ln P(a published row | a person's true numbers), a line for each person, a column for each row.

    `people` are their places in the input; `own` what is published of them. Where nothing is drawn at random, only rows
    that show the same can be theirs. Missing numbers are published as missing.
    """
    true = family.true[people]
    absent, missing = np.isnan(true), np.isnan(shown)
    found = np.where((absent[:, None, :] == missing[None, :, :]).all(axis=2), 0.0, -np.inf)
    if family.covariance is not None:
        expected = np.nan_to_num(family.coded[people])
        away = np.nan_to_num(shown)[None] - expected[:, None]
        away = np.where(absent[:, None, :] | missing[None, :, :], 0, away)
        whiten = np.linalg.pinv(family.covariance)
        return np.asarray(found - np.einsum("ijk,kl,ijl->ij", away, whiten, away) / 2)
    if family.matrix is not None:
        with np.errstate(divide="ignore"):
            table = np.log(family.matrix)
        both = ~absent[:, :1] & ~missing[:, 0][None, :]
        a, b = np.nan_to_num(true[:, 0]).astype(int), np.nan_to_num(shown[:, 0]).astype(int)
        return np.asarray(found + np.where(both, table[a][:, b], 0.0))
    if family.publishing.rank_swap is not None:
        return np.asarray(np.where(_within_window(family, family.coded[people], shown), found, -np.inf))
    same = np.nan_to_num(own)[:, None, :] == np.nan_to_num(shown)[None, :, :]
    return np.asarray(np.where(same.all(axis=2), found, -np.inf))


def _within_window(family: PerturbedFamily, coded: Floats, shown: Floats) -> NDArray[np.bool_]:
    """Whether a row's ranks are within the window of a person's; the rank of a repeated value is a range."""
    assert family.publishing.rank_swap is not None  # noqa: S101 - for the type checker
    found = np.ones((len(coded), len(shown)), dtype=bool)
    for c in range(coded.shape[1]):
        known = family.coded[:, c]
        ordered = np.sort(known[~np.isnan(known)])
        window = math.floor(family.publishing.rank_swap.window * len(ordered))
        mine = coded[:, c]
        low, high = (np.searchsorted(ordered, mine, side=side) for side in ("left", "right"))
        first, last = (np.searchsorted(ordered, shown[:, c], side=side) for side in ("left", "right"))
        near = (first[None, :] - (high - 1)[:, None] <= window) & (
            low[:, None] - (last - 1)[None, :] <= window
        )
        found &= near | (np.isnan(mine)[:, None] & np.isnan(shown[:, c])[None, :])
    return found


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def changed_statistics(
    families: Sequence[PerturbedFamily], rows: NDArray[np.int64], others: Mapping[str, Floats]
) -> dict[str, Any]:
    """Of each column its figures with the true values of the published rows, and as they are published.

    `others` are numbers that are published as they are, by row: correlations and regressions also look at them.
    """
    before, after = dict(others), dict(others)
    for family in families:
        if not family.categories:
            before |= {n: family.true[rows, c] for c, n in enumerate(family.names)}
            after |= {n: family.shown[rows, c] for c, n in enumerate(family.names)}
    found: dict[str, Any] = {}
    for family in families:
        for c, name in enumerate(family.names):
            words = {"way": family.publishing.way, "published": family.publishing.in_words()}
            true, shown = family.true[rows, c], family.shown[rows, c]
            if family.categories:
                found[name] = words | _categories(family, true, shown)
                continue
            there = ~np.isnan(true)
            found[name] = words | {
                "before": _numbers(true),
                "after": _numbers(shown),
                "information_loss": information_loss(true[there], shown[there]) if there.any() else 0.0,
                "correlations": _correlations(name, before, after),
                "regression": _regression(name, before, after),
            }
    return found


def _numbers(values: Floats) -> dict[str, float]:
    known = values[~np.isnan(values)]
    if not len(known):
        return {}
    quantiles = np.quantile(known, QUANTILES)
    return {"mean": float(known.mean()), "variance": float(known.var())} | {
        f"quantile {q:.0%}": float(v) for q, v in zip(QUANTILES, quantiles, strict=True)
    }


def _categories(family: PerturbedFamily, true: Floats, shown: Floats) -> dict[str, Any]:
    """Shares of categories, how far they moved, and what is believed of a published one."""
    n = len(family.categories)
    shares = [
        np.bincount(v[~np.isnan(v)].astype(int), minlength=n) / max(1, (~np.isnan(v)).sum())
        for v in (true, shown)
    ]
    assert family.matrix is not None  # noqa: S101 - of categories
    joint = family.matrix * shares[0][:, None]
    seen = joint.sum(axis=0)
    believed = np.where(seen > 0, np.diag(joint) / np.where(seen > 0, seen, 1), 0)
    most = joint / np.where(seen > 0, seen, 1)
    return {
        "before": dict(zip(family.categories, shares[0].tolist(), strict=True)),
        "after": dict(zip(family.categories, shares[1].tolist(), strict=True)),
        "moved": float(np.abs(shares[0] - shares[1]).sum() / 2),
        "believed": dict(zip(family.categories, believed.tolist(), strict=True)),
        "most_believed": float(most[:, seen > 0].max(initial=0)),
    }


def _correlations(
    name: str, before: Mapping[str, Floats], after: Mapping[str, Floats]
) -> dict[str, list[float]]:
    """Pearson's correlation with every other number, before and after."""
    found = {}
    for other in before:
        if other != name:
            pair = [_correlation(x[name], x[other]) for x in (before, after)]
            if not any(np.isnan(pair)):
                found[other] = pair
    return found


def _correlation(a: Floats, b: Floats) -> float:
    both = ~np.isnan(a) & ~np.isnan(b)
    if both.sum() < 2 or a[both].std() == 0 or b[both].std() == 0:
        return float("nan")
    return float(np.corrcoef(a[both], b[both])[0, 1])


def _regression(
    name: str, before: Mapping[str, Floats], after: Mapping[str, Floats]
) -> dict[str, list[float]]:
    """Coefficients of the other numbers, and the constant, when this one is explained by them (least squares)."""
    others = [other for other in before if other != name]
    if not others:
        return {}
    found = []
    for table in (before, after):
        x = np.stack([table[other] for other in others], axis=1)
        there = ~np.isnan(x).any(axis=1) & ~np.isnan(table[name])
        if there.sum() <= len(others) + 1:
            return {}
        design = np.column_stack([x[there], np.ones(int(there.sum()))])
        found.append(np.linalg.lstsq(design, table[name][there], rcond=None)[0].tolist())
    return {label: [found[0][i], found[1][i]] for i, label in enumerate([*others, "constant"])}


Ints = NDArray[np.int64]
PEOPLE = 2000  # who are looked for, at most
PAIRS = 20_000_000  # of a person and a row, at most


@dataclass(frozen=True)
class LinkageFigures:
    """What linkage finds, over the people who were looked for.

    Attributes:
        people: how many, all of them or drawn at random.
        truth: the mean belief in the right row.
        right: the share of people whose likeliest row is their own; rows that are as likely share it.
        worst: the largest belief in the right row.
        nearest: the share found by the nearest row.
        before: the mean belief by the class alone.
        whole: were all published people looked for?
    """

    people: int
    truth: float
    right: float
    worst: float
    nearest: float
    before: float
    whole: bool

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))


def linkage_figures(
    families: Sequence[PerturbedFamily], rows: Ints, classes: Ints, rng: np.random.Generator
) -> LinkageFigures:
    """Look for people by all these columns; `rows` are the places of published rows in the input, with their class."""
    order = np.argsort(classes, kind="stable")
    start = np.searchsorted(classes[order], np.arange(int(classes.max(initial=-1)) + 2))
    sizes = np.diff(start)
    cost = float(sizes[classes].mean()) if len(classes) else 1.0
    n = min(len(rows), PEOPLE, max(1, int(PAIRS / max(cost, 1))))
    chosen = np.arange(len(rows)) if n == len(rows) else np.sort(rng.choice(len(rows), n, replace=False))
    scale = [np.where((s := np.nanstd(f.true, axis=0)) > 0, s, 1) for f in families]
    truth = right = near = before = worst = 0.0
    for group in np.unique(classes[chosen]).tolist():
        here, whom = order[start[group] : start[group + 1]], chosen[classes[chosen] == group]
        step = max(1, (1 << 22) // max(1, len(here)))
        for begin in range(0, len(whom), step):
            some = whom[begin : begin + step]
            own = (here[None, :] == some[:, None]).argmax(axis=1)
            total, away = np.zeros((len(some), len(here))), np.zeros((len(some), len(here)))
            for family, unit in zip(families, scale, strict=True):
                shown = family.shown[rows[here]]
                total += log_likelihoods(family, rows[some], family.shown[rows[some]], shown)
                away += _distances(family, family.true[rows[some]], shown, unit)
            beliefs = _shares(total)
            lines = np.arange(len(some))
            mine = beliefs[lines, own]
            truth, worst = truth + mine.sum(), max(worst, float(mine.max()))
            right += _hits(beliefs, own)
            near += _hits(-away, own)
            before += len(some) / len(here)
    return LinkageFigures(
        n,
        float(truth / n),
        float(right / n),
        float(worst),
        float(near / n),
        float(before / n),
        n == len(rows),
    )


def _distances(family: PerturbedFamily, people: Any, shown: Any, unit: Any) -> Any:
    apart = np.nan_to_num(people)[:, None, :] - np.nan_to_num(shown)[None, :, :]
    if family.categories:
        return (apart != 0).sum(axis=2)
    return ((apart / unit) ** 2).sum(axis=2)


def _shares(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Beliefs from logarithms; where no row is possible, all are as likely."""
    most = logs.max(axis=1, keepdims=True)
    weights = np.where(np.isfinite(most), np.exp(logs - np.where(np.isfinite(most), most, 0)), 1.0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _hits(scores: Any, own: Ints) -> float:
    lines, most = np.arange(len(scores)), scores.max(axis=1, keepdims=True)
    best = scores >= most
    return float((best[lines, own] / best.sum(axis=1)).sum())
