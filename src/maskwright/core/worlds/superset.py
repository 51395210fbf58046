"""Credibility for an adversary whose list of people is longer than the table [Wong et al. 2007, section 3].

People of the list whose quasi-identifiers cannot be generalised to what a class shows change nothing. The others may or
may not be among its rows: a world chooses the rows of the class among all who match, and deals them the values. An
original class violates the requirement by the rows that it then has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from maskwright.core.worlds.limits import refuse_beyond

STEPS = 2_000_000
RISK = 0.01


@dataclass(frozen=True)
class Listed:
    """People of the list with the same quasi-identifiers.

    Attributes:
        candidates: those who may be among the rows of the generalised class.
        rows: rows with these quasi-identifiers that were published as they are, and
        sensitive: the sensitive ones among them.
    """

    candidates: int
    rows: int = 0
    sensitive: int = 0

    @property
    def people(self) -> int:
        return self.candidates + self.rows

    def violates(self, rows: int, sensitive: int, share: Fraction) -> bool:
        return self.sensitive + sensitive > share * (self.rows + rows)


@dataclass(frozen=True)
class OnTheList:
    """Per class of the list, the probability that a person of it is in the table and sensitive; `half`: ± so much."""

    beliefs: list[Fraction]
    violation: Fraction
    half: float = 0.0


def credibility_listed(
    classes: Sequence[Listed], rows: int, sensitive: int, share: Fraction, draws: int = 0, asked: int = 1
) -> OnTheList | None:
    """Beliefs about people of the list; None: no world in which a class violates.

    Args:
        classes: the list, by quasi-identifiers: all who may be among the rows of one generalised class.
        rows: of that class, and
        sensitive: the sensitive ones among them.
        share: the most sensitive rows a class may have, as a share.
        draws: worlds to draw where counting takes too long; 0: refuse (`TooManyWorlds`).
        asked: so many beliefs must lie in their intervals at once.
    """
    kinds = Counter(classes)
    work = sum(m * (c.candidates + 1) * (min(c.candidates, sensitive) + 1) for c, m in kinds.items())
    work *= (rows + 1) * (sensitive + 1) * (len(kinds) + 1)
    if work > STEPS and draws:
        return _drawn(classes, rows, sensitive, share, draws, asked)
    refuse_beyond(work, STEPS)
    everybody = sum(c.candidates for c in classes)
    worlds = math.comb(everybody, rows) * math.comb(rows, sensitive)
    safe = _safe(kinds, None, rows, sensitive, share)
    kept = worlds - safe
    if not kept:
        return None
    found: dict[Listed, Fraction] = {}
    for kind in kinds:
        held = Fraction(worlds * kind.candidates * sensitive, everybody) if everybody else Fraction(0)
        held -= _safe(kinds, kind, rows, sensitive, share)
        found[kind] = (kind.sensitive + held / kept) / kind.people if kind.people else Fraction(0)
    return OnTheList([found[c] for c in classes], Fraction(kept, worlds))


def _safe(kinds: Counter[Listed], marked: Listed | None, rows: int, sensitive: int, share: Fraction) -> int:
    """Worlds in which no class violates; with a marked kind, the sensitive rows of one class of it over all of them."""
    ways = {(0, 0): 1}
    for kind, many in kinds.items():
        parts = {
            (m, j): math.comb(kind.candidates, m) * math.comb(m, j)
            for m in range(min(kind.candidates, rows) + 1)
            for j in range(min(m, sensitive) + 1)
            if not kind.violates(m, j, share)
        }
        for number in range(many):
            weighted = kind == marked and number == 0
            after: dict[tuple[int, int], int] = {}
            for (m, j), w in ways.items():
                for (dm, dj), p in parts.items():
                    if m + dm <= rows and j + dj <= sensitive:
                        key = m + dm, j + dj
                        after[key] = after.get(key, 0) + w * p * (dj if weighted else 1)
            ways = after
    return ways.get((rows, sensitive), 0)


def _drawn(
    classes: Sequence[Listed], rows: int, sensitive: int, share: Fraction, draws: int, asked: int
) -> OnTheList | None:
    """Draw worlds independently; those without a violation are thrown away."""
    rng = np.random.default_rng(0)
    room = [c.candidates for c in classes]
    m = rng.multivariate_hypergeometric(room, rows, draws)
    j = np.stack([rng.multivariate_hypergeometric(x, sensitive) for x in m])
    known, seen = np.array([c.rows for c in classes]), np.array([c.sensitive for c in classes])
    over = (seen + j) * share.denominator > share.numerator * (known + m)
    kept = j[over.any(axis=1)]
    if not len(kept):
        return None
    people = np.array([max(1, c.people) for c in classes])
    means = (seen + kept.mean(axis=0)) / people
    half = math.sqrt(math.log(2 * asked / RISK) / (2 * len(kept)))
    return OnTheList([Fraction(x) for x in means.tolist()], Fraction(len(kept), draws), half)
