"""Controlled attacks on any table: generalised, synthetic, or another tool's [Giomi et al. 2023].

Four adversaries attack people of the original, and in the same way people of a *control* whom the table does not know.
What succeeds against the control succeeds without the table; the risk is the rest of it:

    risk = (attack - control) / (1 - control)

with the share of attacks that succeed against each. Both shares have exact intervals (Clopper, Pearson) of 97.5 %, so
that the interval of the risk, from their worst corners, holds with at least 95 %. Denominators are the attacks *made*.
A label (a range, a set, `*`) is as near to a value as it says of it: 1 - 1/(values it stands for).

Candidates of a comparison are tables that some tool made of the same people, and may have no groups (synthetic ones).
So all of them, the releases of the policies too, are held against the original and the control by the same attacks, and
their usefulness is how far their pairs of values are from the true ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.auditing.original import stands_for
from maskwright.comparing import Comparison, TablePoint
from maskwright.domain.hierarchy import Hierarchy
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Reading
from maskwright.errors import InputError
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from maskwright.policy.binding import reading_options
from maskwright.policy.policy import Policy
from maskwright.runtime.events import Event
from maskwright.worlds.sampling.belief_intervals import exact_interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = Mapping[str, Sequence[str | None]]  # texts by column

MOST_ATTACKS = 1_000  # of each kind, against either half
END = 0.05 / 4  # the chance that one end of one of the two intervals is missed
PIECE = 4_000_000  # distances at a time


@dataclass(frozen=True)
class ControlledRisk:
    """What one kind of attack reaches.

    Attributes:
        attack: linkability, inference of a column, singling out, membership.
        about: the column that is inferred; empty: none is.
        made: attacks that were made on people of the original, and
        succeeded: those of them that did.
        control_made: and on people of the control, and
        control_succeeded: those of them that did.
    """

    attack: str
    about: str
    made: int
    succeeded: int
    control_made: int
    control_succeeded: int

    @property
    def shares(self) -> tuple[float, float]:
        """Of the attacks on people of the original, and of the control, that succeeded."""
        return self.succeeded / self.made, self.control_succeeded / self.control_made

    @property
    def risk(self) -> float:
        """What the table adds; below 0 by chance only."""
        return excess_risk(*self.shares)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the risk is with at least 95 %; never below 0, where the table adds nothing."""
        low, high = share_interval(self.succeeded, self.made)
        control_low, control_high = share_interval(self.control_succeeded, self.control_made)
        return max(0.0, excess_risk(low, control_high)), max(0.0, excess_risk(high, control_low))

    def sentence(self) -> str:
        """The result in words."""
        low, high = self.interval
        what = f"{self.attack} of {self.about}" if self.about else self.attack
        ours, theirs = self.shares
        return (
            f"{what}: risk {max(0.0, self.risk):.3f} ({low:.3f} to {high:.3f} with 95 %); {self.succeeded:,} of "
            f"{self.made:,} attacks succeed ({ours:.1%}), against people of the control {theirs:.1%}"
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        low, high = self.interval
        return {
            "attack": self.attack, "column": self.about or None, "risk": max(0.0, self.risk), "low": low, "high": high,
            "made": self.made, "succeeded": self.succeeded, "control_made": self.control_made,
            "control_succeeded": self.control_succeeded,
        }  # fmt: skip


@lru_cache(maxsize=4096)
def share_interval(succeeded: int, made: int) -> tuple[float, float]:
    """The exact interval of one share, which holds with 97.5 %."""
    low, high = exact_interval(np.array([float(succeeded)]), float(made), END)
    return float(low[0]), float(high[0])


def excess_risk(attack: float, control: float) -> float:
    """(attack - control) / (1 - control); 0 where the control leaves nothing to add."""
    return (attack - control) / (1 - control) if control < 1 else 0.0


def controlled_risks(
    published: Rows, original: Rows, control: Rows, known: Sequence[str], secret: Sequence[str]
) -> tuple[list[ControlledRisk], float]:
    """Every controlled attack that can be made on a table, and how far its pairs of values are from the true ones.

    Args:
        published: the table.
        original: the people it was made from.
        control: as many other people as there are, from the same population.
        known: the columns that an attacker may know.
        secret: the columns that are inferred.
    """
    refuse_empty(published, original, control)
    rng = np.random.default_rng(0)  # an audit is repeatable; nothing that is published depends on it
    table = _Attacked(published, original, control, [*known, *secret])
    n = min(MOST_ATTACKS, table.people[0], table.people[1])
    halves = [np.sort(rng.choice(people, n, replace=False)) for people in table.people]
    found = [_singling_out(table, known, n, rng)]
    if len(known) >= 2:
        found.append(_linkability(table, known, halves, rng))
    found += [_inference(table, known, name, halves, rng) for name in secret]
    found.append(_membership(table, known, halves))
    return [risk for risk in found if risk is not None], table.pair_distance()


def refuse_empty(*tables: Rows) -> None:
    """Refuse tables without rows."""
    if any(not len(texts) for rows in tables for texts in rows.values()):
        raise InputError("controlled attacks need people in the table, in the original and in the control")


class _Attacked:
    """A table beside the original and the control, coded: the distance of each label from each value, by column."""

    def __init__(self, published: Rows, original: Rows, control: Rows, names: Sequence[str]) -> None:
        self.labels: dict[str, Ints] = {}
        self.values: dict[str, tuple[Ints, Ints]] = {}
        self.fits: dict[str, NDArray[np.bool_]] = {}
        self.far: dict[str, Floats] = {}
        for name in names:
            for rows, what in (
                (published, "the table"),
                (original, "the original"),
                (control, "the control"),
            ):
                if name not in rows:
                    raise InputError(f"{what} has no column {name!r}")
            labels, self.labels[name] = _numbered(published[name])
            both, codes = _numbered([*original[name], *control[name]])
            first = len(original[name])
            self.values[name] = codes[:first], codes[first:]
            here = [value for value in both if value is not None]
            fits = stands_for(labels, here, Hierarchy.of(name, tuple(here), []))
            place = np.array([0 if v is None else 1 + here.index(v) for v in both], dtype=np.int64)
            self.fits[name] = fits[:, place]
            wide = np.maximum(1, self.fits[name].sum(axis=1))
            self.far[name] = np.where(self.fits[name], (1 - 1 / wide)[:, None], 1.0)
            _add_numbers(self.far[name], labels, both)
        self.people = (len(original[names[0]]), len(control[names[0]]))
        self.published = len(published[names[0]])

    def nearest(
        self, names: Sequence[str], half: int, targets: Ints, rng: np.random.Generator | None
    ) -> tuple[Ints, Floats]:
        """The published row that is nearest to each target by some columns (ties by chance), and how near it is."""
        rows, near = np.zeros(len(targets), np.int64), np.zeros(len(targets))
        step = max(1, PIECE // self.published)
        for at in range(0, len(targets), step):
            part = targets[at : at + step]
            total = np.zeros((len(part), self.published))
            for name in names:
                total += self.far[name].T[self.values[name][half][part]][:, self.labels[name]]
            near[at : at + step] = total.min(axis=1)
            if rng is not None:
                total += rng.random(total.shape) * 1e-9
            rows[at : at + step] = total.argmin(axis=1)
        return rows, near

    def pair_distance(self) -> float:
        """The mean distance of the published pairs of values from the true ones, labels spread evenly (0: the same)."""
        spread = {}
        for name, fits in self.fits.items():
            wide = fits.sum(axis=1, keepdims=True)
            spread[name] = np.divide(fits, wide, out=np.zeros(fits.shape), where=wide > 0)
        found = []
        for one, other in combinations(self.labels, 2):
            shown = np.zeros((len(self.fits[one]), len(self.fits[other])))
            np.add.at(shown, (self.labels[one], self.labels[other]), 1 / self.published)
            told = spread[one].T @ shown @ spread[other]
            true = np.zeros(told.shape)
            np.add.at(true, (self.values[one][0], self.values[other][0]), 1 / self.people[0])
            found.append((np.abs(told - true).sum() + 1 - told.sum()) / 2)  # the rest stands for no value
        return float(np.mean(found)) if found else 0.0


def _numbered(texts: Sequence[str | None]) -> tuple[list[str | None], Ints]:
    """The distinct texts, and the number of each row's."""
    number: dict[str | None, int] = {}
    codes = np.array([number.setdefault(text, len(number)) for text in texts], dtype=np.int64)
    return list(number), codes


def _add_numbers(far: Floats, labels: Sequence[str | None], values: Sequence[str | None]) -> None:
    """Numbers that are not equal are as far apart as they are, in shares of the range of the values."""
    numbers = np.array([_number(v) for v in values])
    if np.isnan(numbers).sum() > sum(v is None for v in values) or not len(numbers):
        return
    width = np.nanmax(numbers) - np.nanmin(numbers)
    for i, label in enumerate(labels):
        x = _number(label)
        if not np.isnan(x) and width > 0:
            away = np.abs(numbers - x) / width
            far[i] = np.where(np.isnan(away), far[i], np.minimum(1, away))


def _number(text: str | None) -> float:
    try:
        return float(text) if text is not None else float("nan")
    except ValueError:
        return float("nan")


def _singling_out(
    table: _Attacked, known: Sequence[str], n: int, rng: np.random.Generator
) -> ControlledRisk | None:
    """Descriptions by one to three columns of a published row that no other row has: do they fit exactly one person?

    The halves are made of one size, so that a description fits one person of either by chance alike.
    """
    size = min(table.people)
    chosen = [np.sort(rng.choice(people, size, replace=False)) for people in table.people]
    halves = [{name: table.values[name][half][chosen[half]] for name in known} for half in (0, 1)]
    made, hits = set[tuple[tuple[str, int], ...]](), [0, 0]
    for _ in range(3 * n):
        if len(made) == n:
            break
        row = int(rng.integers(table.published))
        names = sorted(
            rng.choice(len(known), min(len(known), int(rng.integers(1, 4))), replace=False).tolist()
        )
        asked = tuple((known[i], int(table.labels[known[i]][row])) for i in names)
        same = np.logical_and.reduce([table.labels[name] == label for name, label in asked])
        if asked in made or same.sum() != 1:
            continue
        made.add(asked)
        for half in (0, 1):
            fit = np.logical_and.reduce(
                [table.fits[name][label][halves[half][name]] for name, label in asked]
            )
            hits[half] += int(fit.sum() == 1)
    return ControlledRisk("singling out", "", len(made), hits[0], len(made), hits[1]) if made else None


def _linkability(
    table: _Attacked, known: Sequence[str], halves: Sequence[Ints], rng: np.random.Generator
) -> ControlledRisk:
    """Somebody knows half of the columns of a person from one place, the rest from another: is it the same row?"""
    hits = []
    for half in (0, 1):
        one, _ = table.nearest(known[::2], half, halves[half], rng)
        other, _ = table.nearest(known[1::2], half, halves[half], rng)
        hits.append(int((one == other).sum()))
    return ControlledRisk("linkability", "", len(halves[0]), hits[0], len(halves[1]), hits[1])


def _inference(
    table: _Attacked, known: Sequence[str], secret: str, halves: Sequence[Ints], rng: np.random.Generator
) -> ControlledRisk:
    """The secret of the nearest row is taken for that of the person; a label for one of the values it stands for."""
    hits = []
    for half in (0, 1):
        rows, _ = table.nearest(known, half, halves[half], rng)
        label, value = table.labels[secret][rows], table.values[secret][half][halves[half]]
        chance = np.where(
            table.fits[secret][label, value], 1 / np.maximum(1, table.fits[secret][label].sum(axis=1)), 0
        )
        hits.append(int((rng.random(len(chance)) < chance).sum()))
    return ControlledRisk("inference", secret, len(halves[0]), hits[0], len(halves[1]), hits[1])


def _membership(table: _Attacked, known: Sequence[str], halves: Sequence[Ints]) -> ControlledRisk | None:
    """Whoever is nearer to a published row than usual is taken for one of the original.

    What is usual is learned from one half of the control, so that the other half can say how often that is wrong.
    """
    usual, tried = halves[1][::2], halves[1][1::2]
    if not len(tried):
        return None
    _, distances = table.nearest(known, 1, usual, None)
    nearer = distances[distances < np.median(distances)]
    limit = float(nearer.max(initial=distances.min()))  # where many are equally near, the nearest of all
    _, ours = table.nearest(known, 0, halves[0], None)
    _, theirs = table.nearest(known, 1, tried, None)
    return ControlledRisk(
        "membership", "", len(ours), int((ours <= limit).sum()), len(theirs), int((theirs <= limit).sum())
    )


def attacked_tables(
    comparison: Comparison,
    source: Any,
    control: Any,
    candidates: Sequence[Any],
    policy: Policy,
    seed: int | None,
    memory: str | None,
    on_event: Callable[[Event], None] | None = None,
) -> tuple[TablePoint, ...]:
    """The candidates and the releases of the policies that hold; `policy` says which columns are known and secret."""
    known, secret = policy.quasi_identifiers, policy.sensitive
    names = [*known, *secret]
    engine = open_engine()
    try:
        reading = reading_options(policy)
        original = _texts(engine, source, names, reading, "the table")
        kept_back = _texts(engine, control, names, reading, "the control")

        def point(name: str, table: Any, how: Reading) -> TablePoint:
            """What a table risks and keeps."""
            texts = _texts(engine, table, names, how, name)
            risks, distance = controlled_risks(texts, original, kept_back, known, secret)
            figures = {
                f"{r.attack} of {r.about}" if r.about else r.attack: (max(0.0, r.risk), *r.interval)
                for r in risks
            }
            return TablePoint(name, figures, distance)

        found = []
        for number, table in enumerate(candidates, start=1):
            name = Path(table).name if isinstance(table, (str, Path)) else f"candidate {number}"
            found.append(point(name, table, Reading(missing=policy.missing.tokens)))
        for each in comparison.points:
            if each.status != "holds":
                continue
            made = publish_release(Job(source, each.policy, seed=seed, memory=memory), on_event)
            if len(made.parts) > 1:
                why = "it has several tables, which are not attacked in this way"
                found.append(TablePoint(each.name, {}, None, why))
                continue
            found.append(point(each.name, made.table, Reading()))
    finally:
        engine.close()
    return tuple(found)


def _texts(engine: Engine, table: Any, names: Sequence[str], reading: Reading, what: str) -> Rows:
    opened = engine.open(table, reading)
    there: Mapping[str, object] = {c.name: c for c in opened.columns}
    if missing := [name for name in names if name not in there]:
        raise InputError(f"{what} has no column {missing[0]!r}, which the policy is about")
    return {name: texts.tolist() for name, texts in engine.row_texts(opened, names)[0].items()}
