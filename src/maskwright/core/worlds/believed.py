"""Beliefs from what was listed, drawn or walked: each between two ends, all of them at once with stated confidence.

The largest of many beliefs is known only if all are: the ends hold *simultaneously* (the risk is shared out among all
beliefs in question). Two ways narrow a belief down, and both are used: how often the secret was seen among the worlds
that were kept, and how many were kept at all, for

    P(secret | kept) ≤ P(secret) / P(kept),   P(secret | kept) ≥ (P(secret) − P(not kept)) / P(kept).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.core.worlds.binomial import Floats
from maskwright.core.worlds.explore import Bools, Tally
from maskwright.core.worlds.intervals import binomial_lower, chernoff, clopper_pearson

RISK = 0.01  # one minus the confidence of all intervals together
FEW = 20  # fewer worlds than this narrow nothing down
Kind = Literal["exact", "sampled", "estimated", "bounded"]
KINDS: tuple[Kind, ...] = ("exact", "sampled", "estimated", "bounded")


@dataclass(frozen=True, eq=False)
class Believed:
    """The belief that a person of a unit has a secret: unit × secret.

    Attributes:
        tally: where it comes from.
        inside: item × secret: does the item make the secret true?
        estimate: the belief; exact where `kind` is 0.
        low, high: its ends.
        kind: per unit the place in `KINDS`.
        least: per block, at least so many of all worlds are kept.
    """

    tally: Tally
    inside: Bools
    estimate: Floats
    low: Floats
    high: Floats
    kind: NDArray[np.int64]
    least: Floats

    def exact(self, unit: int, secret: int) -> Fraction:
        """The belief as a fraction; where it was not listed, the estimate to a millionth."""
        if self.kind[unit]:
            return Fraction(round(float(self.estimate[unit, secret]) * 10**6), 10**6)
        tally = self.tally
        worlds = int(tally.worlds[tally.block_of_unit[unit]]) * int(tally.sizes[unit])
        return Fraction(int(tally.held[unit][self.inside[:, secret]].sum()), worlds)

    def worst(self) -> tuple[int, int] | None:
        """The unit and the secret of the largest belief; among equals the one with the larger upper end."""
        if not self.estimate.size:
            return None
        top = float(self.estimate.max())
        near = np.argwhere(self.estimate >= top - 1e-9).tolist()
        unit, secret = max(near, key=lambda x: (self.exact(x[0], x[1]), self.high[x[0], x[1]]))
        return int(unit), int(secret)

    def range_of_worst(self) -> tuple[float, float]:
        """Between these ends lies the largest of all beliefs."""
        return float(self.low.max(initial=0.0)), float(self.high.max(initial=0.0))


def believed(tally: Tally, inside: Bools, risk: float = RISK) -> Believed:
    """Beliefs in secrets that are sets of items."""
    sizes, block = tally.sizes.astype(np.float64), tally.block_of_unit
    prior = tally.deals.shares(tally.unit, tally.n_units) @ inside
    worlds = tally.worlds[block].astype(np.float64)
    held = (tally.held @ inside).astype(np.float64)
    share = np.divide(held, (worlds * sizes)[:, None], out=prior.copy(), where=(worlds * sizes > 0)[:, None])
    listed, walked = tally.listed[block], tally.walked[block]
    open_ = ~listed
    in_question = max(1, int((prior[open_] > 0).sum()))
    drawn_blocks = max(1, int((~tally.listed).sum()))
    least = np.where(
        tally.listed, tally.kept / np.maximum(tally.looked, 1),
        binomial_lower(tally.kept.astype(np.float64), tally.looked.astype(np.float64), risk / 2 / drawn_blocks),
    )  # fmt: skip
    low, high = share.copy(), share.copy()
    each = risk / 4 / in_question
    if open_.any():
        trials = np.where(walked, _effective(tally), worlds)[:, None]
        single = (sizes == 1) & ~walked
        ends = chernoff(share, np.broadcast_to(trials, share.shape), each)
        exact_ends = clopper_pearson(held[single], np.broadcast_to(trials, share.shape)[single], each)
        for end, tight, target in zip(ends, exact_ends, (low, high), strict=True):
            end[single] = tight
            target[open_] = end[open_]
        kept = least[block][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            above = np.where(kept > 0, np.minimum(prior / kept, 1.0), (prior > 0) * 1.0)
            below = np.where(kept > 0, np.maximum(1 - (1 - prior) / kept, 0.0), 0.0)
        high = np.where(open_[:, None], np.minimum(high, above), high)
        low = np.where(open_[:, None], np.maximum(low, below), low)
        low = np.minimum(low, high)
    estimate = np.clip(share, low, high)
    nothing = open_ & (worlds < FEW)
    kind = np.where(listed, 0, np.where(walked, 2, 1))
    kind = np.where(nothing, 3, kind)
    return Believed(tally, inside, estimate, low, high, kind.astype(np.int64), least)


def _effective(tally: Tally) -> Floats:
    """Per unit, how many independent draws its beliefs are worth at least, where they come from chains."""
    result = np.full(tally.n_units, np.inf)
    if tally.chains is not None and tally.walked.any():
        worth = tally.chains.effective()
        np.minimum.at(result, tally.chains.cells // tally.deals.n_items, worth)
    return np.where(np.isinf(result), tally.worlds[tally.block_of_unit], result)
