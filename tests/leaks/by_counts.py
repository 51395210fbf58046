"""The models as on paper, from counts by value, because nobody can list billions of people.

Each function gets a table and yields settings on the boundary and beside it, with the verdict of every class. Shares
are fractions; what has a logarithm is computed with 100 digits, and settings have 30.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from typing import Any

from tests.models.definitions import DOMAIN

NUMBERS = {"a": "-5", "b": "7", "c": "10", "d": "61/2"}  # the values, where numbers are asked for
TINY = Fraction(1, 2**100)
DIGITS = Context(prec=100)

Row = dict[str | None, int]
Verdicts = Iterator[tuple[dict[str, Any], list[bool]]]


@dataclass(frozen=True)
class Table:
    """Per class: how many people have each value (None: missing), and how many people of the population match."""

    rows: list[Row]
    people: list[int]

    @property
    def sizes(self) -> list[int]:
        return [sum(row.values()) for row in self.rows]

    @property
    def known(self) -> list[dict[str, int]]:
        return [{v: n for v, n in row.items() if v is not None} for row in self.rows]

    @property
    def whole(self) -> dict[str, int]:
        return {v: sum(row.get(v, 0) for row in self.rows) for v in DOMAIN}

    @property
    def shares(self) -> list[Fraction]:
        """Of the most frequent value."""
        return [
            Fraction(max(row.values(), default=0), n) for row, n in zip(self.known, self.sizes, strict=True)
        ]

    @property
    def lifts(self) -> list[dict[str, Fraction]]:
        """How much more frequent each value is than in the whole table."""
        whole, everybody = self.whole, sum(self.whole.values())
        return [
            {v: Fraction(n * everybody, sum(row.values()) * whole[v]) for v, n in row.items()}
            for row in self.known
        ]


def log(x: Fraction) -> Fraction:
    return Fraction(DIGITS.subtract(DIGITS.ln(Decimal(x.numerator)), DIGITS.ln(Decimal(x.denominator))))


def around(
    measured: Sequence[Fraction | int], least: Fraction | int = TINY, most: float = float("inf")
) -> list[Fraction]:
    """The smallest and the largest number measured, rounded where it is endless, and the numbers just beside them."""
    whole = all(isinstance(x, int) for x in measured)
    step = Fraction(1) if whole else TINY
    found: set[Fraction] = set()
    for x in (Fraction(min(measured)), Fraction(max(measured))):
        middle = x if x.denominator < 2**200 else round(x / TINY) * TINY
        found |= {middle - step, middle, middle + step}
    return sorted(x for x in found if least <= x <= most)


# --- sizes and populations ----------------------------------------------------------------------------


def k_anonymity(t: Table) -> Verdicts:
    for k in around(t.sizes, 1):
        yield {"k": int(k)}, [n >= k for n in t.sizes]


def k_map(t: Table) -> Verdicts:
    for k in around(t.people, 1):
        yield {"k": int(k)}, [n >= k for n in t.people]


def highest_risk(t: Table) -> Verdicts:
    for adversary, people in (("prosecutor", t.sizes), ("journalist", t.people)):
        risks = [Fraction(1, n) for n in people]
        for most in around(risks, TINY, 1):
            yield {"max": most, "adversary": adversary}, [x <= most for x in risks]


def average_risk(t: Table) -> Verdicts:
    for adversary, people in (("prosecutor", t.sizes), ("marketer", t.people)):
        linked = sum((Fraction(n, m) for n, m in zip(t.sizes, people, strict=True)), Fraction(0))
        average = linked / sum(t.sizes)
        for most in around([average], TINY, 1):
            yield {"max": most, "adversary": adversary}, [average <= most] * len(t.rows)


def delta_presence(t: Table) -> Verdicts:
    shares = [Fraction(n, m) for n, m in zip(t.sizes, t.people, strict=True)]
    for low, high in product(around(shares, 0, 1), around(shares, TINY, 1)):
        if low <= high:
            yield {"delta_min": low, "delta_max": high}, [low <= x <= high for x in shares]


def individual_risk(t: Table) -> Verdicts:
    """(p/f)·Σ k!·(1−p)^k / ((f+1)…(f+k)): a double says which side of a setting it is on, from 50 bits apart on."""
    risks = [_mean_inverse(n, Fraction(n, m)) for n, m in zip(t.sizes, t.people, strict=True)]
    for edge, side in product({min(risks), max(risks)}, (-1, 1)):
        most = edge * (1 + Fraction(side, 2**49))
        if most <= 1 and all(abs(x / most - 1) > Fraction(1, 2**50) for x in risks):
            yield {"max": most}, [x <= most for x in risks]


def _mean_inverse(f: int, p: Fraction) -> Fraction:
    total = term = Fraction(1)
    k = 1
    while term > TINY:
        term = term * k * (1 - p) / (f + k)
        total, k = total + round(term / TINY**2) * TINY**2, k + 1
    return p / f * total


def population_uniqueness(t: Table) -> Verdicts:
    """Zayatz. Of a class of billions nobody is drawn alone, as at least a fifth of the population is drawn: a
    person who is alone in the sample is alone in the population, and c of them among n people stand for c·N/n."""
    assert all(n == 1 or n > 10**6 for n in t.sizes)
    assert 5 * sum(t.sizes) >= sum(t.people)
    share = Fraction(t.sizes.count(1), sum(t.sizes))
    for side in (-1, 1):
        most = share * (1 + Fraction(side, 2**48)) or TINY
        if most <= 1:
            yield {"max": most, "estimator": "zayatz"}, [share <= most] * len(t.rows)


# --- values -------------------------------------------------------------------------------------------


def simple(t: Table) -> Verdicts:
    for share in around(t.shares):
        yield {"l": 1 / share}, [x <= share for x in t.shares]


def belief(t: Table) -> Verdicts:
    for share in around(t.shares, TINY, 1):
        yield {"max": share}, [x <= share for x in t.shares]


def personalised(t: Table) -> Verdicts:
    """In every class somebody guards each of its values."""
    for share in around(t.shares, TINY, 1):
        yield {"p": share, "guarding": "g"}, [x <= share for x in t.shares]


def m_confidentiality(t: Table) -> Verdicts:
    """Of classes that were not merged: the share, as it says itself."""
    for share in around(t.shares):
        yield {"m": 1 / share}, [x <= share for x in t.shares]


def alpha_k(t: Table) -> Verdicts:
    for share, k in product(around(t.shares, TINY, 1), around(t.sizes, 1)):
        both = zip(t.shares, t.sizes, strict=True)
        yield {"alpha": share, "k": int(k)}, [x <= share and n >= k for x, n in both]


def distinct(t: Table) -> Verdicts:
    found = [len(row) for row in t.known]
    for l in around(found, 1):  # noqa: E741 - the literature's name
        yield {"l": int(l)}, [n >= l for n in found]


def p_sensitive(t: Table) -> Verdicts:
    found = [len(row) for row in t.known]
    for p, k in product(around(found, 1), around(t.sizes, 1)):
        both = zip(found, t.sizes, strict=True)
        yield {"p": int(p), "k": int(k)}, [x >= p and n >= k for x, n in both]


def entropy(t: Table) -> Verdicts:
    found = [_effective(list(row.values())) for row in t.known]
    for l in around(found):  # noqa: E741
        yield {"l": l}, [x >= l for x in found]


def _effective(counts: list[int]) -> Fraction:
    """e to the entropy: of values that are equally frequent exactly how many they are."""
    if len(set(counts)) < 2:
        return Fraction(len(counts))
    n = sum(counts)
    nats = sum((Fraction(c, n) * log(Fraction(n, c)) for c in counts), Fraction(0))
    return Fraction(DIGITS.exp(DIGITS.divide(Decimal(nats.numerator), Decimal(nats.denominator))))


def recursive(t: Table) -> Verdicts:
    for l in (1, 2, 3):  # noqa: E741
        ordered = [sorted(row.values(), reverse=True) for row in t.known]
        parts = [(r[0], sum(r[l - 1 :])) for r in ordered if len(r) >= l]
        for c in around([Fraction(top, rest) for top, rest in parts] or [Fraction(1)]):
            yield {"c": c, "l": l}, [bool(r) and r[0] < c * sum(r[l - 1 :]) for r in ordered]


def distances(t: Table, distance: str) -> list[Fraction]:
    everybody, found = sum(t.whole.values()), []
    for row in t.known:
        n = max(sum(row.values()), 1)
        apart = [Fraction(row.get(v, 0), n) - Fraction(t.whole[v], max(everybody, 1)) for v in DOMAIN]
        if not row:
            found.append(Fraction(0))
        elif distance == "equal":
            found.append(sum(map(abs, apart), Fraction(0)) / 2)
        else:
            steps = [abs(sum(apart[: i + 1], Fraction(0))) for i in range(len(DOMAIN) - 1)]
            found.append(sum(steps, Fraction(0)) / (len(DOMAIN) - 1))
    return found


def t_closeness(t: Table) -> Verdicts:
    for distance in ("equal", "ordered"):
        found = distances(t, distance)
        for most in around(found, 0):
            yield {"t": most, "distance": distance}, [x <= most for x in found]


def nt_closeness(t: Table) -> Verdicts:
    """The whole table is the only larger group."""
    found = distances(t, "equal")
    for n, most in product(around([sum(t.sizes)], 1), around(found, 0)):
        yield {"n": int(n), "t": most}, [sum(t.sizes) >= n and x <= most for x in found]


def ke_anonymity(t: Table) -> Verdicts:
    numbers = [[Fraction(NUMBERS[v]) for v in row] for row in t.known]
    ranges = [max(row) - min(row) if row else Fraction(0) for row in numbers]
    for by_distinct, sizes in ((False, t.sizes), (True, [len(row) for row in numbers])):
        for k, e in product(around(sizes, 1), around(ranges, 0)):
            both = zip(sizes, ranges, strict=True)
            verdict = [n >= k and x >= e for n, x in both]
            yield {"k": int(k), "e": e, "distinct": by_distinct}, verdict


def delta_disclosure(t: Table) -> Verdicts:
    found = [max((abs(log(x)) for x in row.values()), default=Fraction(0)) for row in t.lifts]
    shown = {v for v, n in t.whole.items() if n}
    for delta, strict in product(around(found), (False, True)):
        both = zip(found, t.known, strict=True)
        verdict = [x < delta and (not strict or set(row) == shown) for x, row in both]
        yield {"delta": delta, "strict": strict}, verdict


def beta_likeness(t: Table) -> Verdicts:
    everybody = sum(t.whole.values())
    gains = [{v: x - 1 for v, x in row.items()} for row in t.lifts]
    rare = {v: log(Fraction(everybody, n)) for v, n in t.whole.items() if n}
    for beta in around([max(row.values(), default=Fraction(0)) for row in gains]):
        yield {"beta": beta}, [all(x <= beta for x in row.values()) for row in gains]
        verdict = [all(x <= 0 or x <= min(beta, rare[v]) for v, x in row.items()) for row in gains]
        yield {"beta": beta, "enhanced": True}, verdict


# (c,k)-safety is about the release as a whole, see below
PAPER: dict[str, Callable[[Table], Verdicts]] = {
    "k-anonymity": k_anonymity, "simple-l-diversity": simple, "distinct-l-diversity": distinct,
    "entropy-l-diversity": entropy, "recursive-cl-diversity": recursive, "alpha-k-anonymity": alpha_k,
    "p-sensitive-k-anonymity": p_sensitive, "t-closeness": t_closeness, "nt-closeness": nt_closeness,
    "ke-anonymity": ke_anonymity, "m-confidentiality": m_confidentiality, "belief": belief,
    "personalised-privacy": personalised,
    "delta-disclosure": delta_disclosure, "beta-likeness": beta_likeness, "delta-presence": delta_presence,
    "k-map": k_map, "average-risk": average_risk, "highest-risk": highest_risk,
    "individual-risk": individual_risk, "population-uniqueness": population_uniqueness,
}  # fmt: skip


def most_believed(rows: Sequence[Row], facts: int) -> Fraction:
    """The largest belief that somebody has a value, for who knows so many implications (0 or 1) [Martin et al. 2007].

    Knowing that B implies A, A is believed with P(A) / (1 - P(B and not A)). B is another value of the same person, or
    any value of another person of the class or of another class.
    """
    best = Fraction(0)
    for c, row in enumerate(rows):
        n = sum(row.values())
        for value, held in row.items():
            if value is None:
                continue
            ruled_out = [Fraction(0)]
            if facts:
                ruled_out += [Fraction(m, n) for v, m in row.items() if v != value]
                if n > 1:
                    ruled_out += [
                        Fraction(m * (n - held - (v != value)), n * (n - 1)) for v, m in row.items()
                    ]
                ruled_out += [
                    Fraction(m, sum(other.values())) * Fraction(n - held, n)
                    for d, other in enumerate(rows) if d != c for m in other.values()
                ]  # fmt: skip
            best = max(best, Fraction(held, n) / (1 - max(ruled_out)))
    return best
