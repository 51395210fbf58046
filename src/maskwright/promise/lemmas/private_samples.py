"""Differential privacy of a sample without its rare rows [Li, Qardaji, Su 2012; Bild, Kuhn, Prasser 2018].

**Lemma (private samples).** Let the class of a row be a function of that row alone, and let a release be the number of
rows of each class, where each row was kept with probability b = 1 − e^−ε, independently and by chance that nobody
knows, and numbers below k are published as 0. Then the release is (ε, δ)-differentially private for every table, with
δ the largest over n of δ(n) = Σ over x ≥ k of max(0, B(x; n, b) − e^ε·B(x; n − 1, b)), B the binomial distribution.

*Proof.* Add or remove one row: one class has n rows in one table and n − 1 in the other, all other classes are the same
and independent of it. So the release is as private as the number of that one class. From n − 1 to n no outcome is more
than e^ε times as likely without the row: B(x; n−1)/B(x; n) = (n − x)/(n(1 − b)) ≤ 1/(1 − b) = e^ε, and the outcome 0,
which stands for all numbers below k, is a sum of these. With the row, outcome 0 is at most as likely as without it, and
x ≥ k is more than e^ε times as likely just where x/n > 1 − (1 − b)²: what exceeds e^ε times there adds up to δ(n). No
prior is assumed, and whatever is computed from the release has the same ε and δ. ∎

**What voids it**, and is refused: levels or suppression chosen from the data; a published column that is no part of the
class; labels that depend on other rows; a seed, or a key that is not kept; numbers of rows that were sampled out.
Several releases of a table add up: their ε and δ are summed, and a sum above what the policy allows is refused.

δ is computed in floating point with its error added: Chernoff's bound P(X ≥ n·g) ≤ e^(−n·KL(g, b)) says where no larger
n, and no larger x, matters.

**Checked** by `tests/promise/test_private_samples.py`, which enumerates every sample of small tables.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from maskwright.domain.promise import Lemma

PRIVATE_SAMPLES = Lemma(
    "private samples",
    "adding or removing a row changes the probability of no set of releases by more than a factor of e^ε and a term δ",
    (
        "the class of a row, all published columns of it, follows from that row and the policy alone",
        "rows are kept with probability 1 − e^−ε by cryptographic randomness, and classes below k left out",
        "no number of rows that were left out is published",
    ),
    "tests/promise/test_private_samples.py",
    __name__,
)
WORD = 1 << 64  # a row is kept when a random word is below a threshold
ROUNDING = 1e-8  # more than what floating point adds to the logarithms of factorials up to 100,000!


def keeping_threshold(epsilon: Fraction) -> int:
    """The number of words of 64 bits for which a row is kept: the probability 1 − e^−ε, rounded down."""
    with localcontext() as context:
        context.prec = 60
        share = 1 - (-(Decimal(epsilon.numerator) / Decimal(epsilon.denominator))).exp()
        return int(share * WORD)


def delta_at_most(k: int, keep: float) -> float:
    """The δ of samples whose classes below k are left out, rows kept with this probability: at its largest n."""
    cut = keep * (2 - keep)  # 1 − (1 − keep)²
    decay = _divergence(cut, keep)
    largest, n = 0.0, k
    factorials = _log_factorials(2 * k + 64)
    while n == k or math.exp(-n * decay) > largest:
        if n >= len(factorials):
            factorials = _log_factorials(2 * n)
        largest = max(largest, _excess(n, k, keep, cut, factorials))
        n += 1
    return min(1.0, largest * (1 + ROUNDING))


def smallest_k(delta: float, keep: float) -> int:
    """The smallest k with δ at most this; a larger one merges outcomes, so that it has no larger δ."""
    high = 2
    while delta_at_most(high, keep) > delta:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_at_most(middle, keep) <= delta else (middle, high)
    return high


def _excess(n: int, k: int, keep: float, cut: float, log_factorial: np.ndarray) -> float:
    """Σ over x ≥ k of what B(x; n) exceeds e^ε·B(x; n − 1) by: C(n, x) b^x (1−b)^(n−2−x) ((1−b)² − (n−x)/n)."""
    first = max(k, math.floor(n * cut))
    last = min(n, first + 64 + math.ceil(12 * math.sqrt(n)))
    x = np.arange(first, last + 1)
    logs = log_factorial[n] - log_factorial[x] - log_factorial[n - x]
    logs = logs + x * math.log(keep) + (n - x) * math.log1p(-keep)
    terms = np.exp(logs) * np.maximum(0.0, 1 - (n - x) / (n * (1 - keep) ** 2))
    beyond = math.exp(-n * _divergence((last + 1) / n, keep)) if last < n else 0.0
    return float(terms.sum()) + beyond


def _divergence(share: float, keep: float) -> float:
    """KL divergence of two coins, of which the first shows heads more often."""
    rest = 0.0 if share >= 1 else (1 - share) * math.log((1 - share) / (1 - keep))
    return share * math.log(share / keep) + rest


def _log_factorials(n: int) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
