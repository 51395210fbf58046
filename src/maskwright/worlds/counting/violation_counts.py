"""Classes that hold j₁ … j_u sensitive rows, Σj = r, weighted ∏C(n_i, j_i), where some class exceeds its cap.

This is the arithmetic behind the minimality attack and even-split methods: classes of n_i rows hold r sensitive
rows together, and what the adversary knows is that j_i > cap_i for at least one i. A cap below 0 says that the
class violates whatever it gets. The worlds in which *none* exceeds its cap are the coefficient of x^r in
∏ Σ_{j ≤ cap_i} C(n_i, j) x^j; identical classes are one factor with an exponent. The polynomials have large
integer coefficients and are cut off at a degree. What would take too long exactly is counted in floating point:

**On a circle through the saddle point** (`count_in_floats`): the coefficient of x^r by a trapezoid sum. Tilted by
θ = r/N, class k holds a binomial number of sensitive rows with generating function T_k = A_k + B_k: within the cap,
and beyond it. At frequency w write T_k(w) for T_k(e^{iw})·e^{−iwn_kθ}, and so on. Then, over all worlds with a
violation somewhere,

    V(w)    = ∏T_k − ∏A_k = −T·expm1(Σ_k log(1 − B_k/T_k)),
    held_i(w) = B_i'·T_{−i} + A_i'·V_{−i}        (': every term times its number of sensitive rows)

and a sum over w gives the coefficient of x^r. Nothing cancels: V is made of what violates, not of a difference,
so rare violations keep their relative accuracy. |T(w)| falls like exp(−w²σ²/2), so only a few dozen frequencies
matter however many rows there are, and leaving one class out is one subtraction of logarithms. The number of points
and of frequencies follow from bounds, not from guesses: Chernoff's for the coefficients x^{r ± L} that alias onto x^r,
and |A_k(w)| ≤ min(P(A_k), |T_k(w)| + P(B_k)) for frequencies left out.

**By tails** (`count_rare_violations`): the numbers j_i of sensitive rows in the classes are negatively associated
[Joag-Dev, Proschan 1983]: that two given classes exceed their caps is at most as likely as if they were independent.
So with V₁ = Σ_i P(j_i > cap_i), the probability V of a violation lies between V₁ − V₁²/2 and V₁, and the expected
number of sensitive rows in a class is as close to the sum over the one class that violates. What is left are tails of
hypergeometric distributions; in logarithms they never underflow, and beyond its mode such a tail falls faster than a
geometric series.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwright.errors import UsageError
from maskwright.worlds.counting.binomial import Floats, log_binomial

Kind = tuple[int, int]  # size and cap of a class
QUICK, PATIENT = 0.1, 30.0  # seconds
ACCURATE = 1e-9
Polynomial = list[int]


@dataclass(frozen=True)
class ViolationCount:
    """What counting the worlds gave.

    Attributes:
        share: by size and cap of a class, the expected share of sensitive rows in it given a violation.
        violation: the probability, over all worlds, that some class exceeds its cap; a fraction also where it is
            too small for floating point.
        before: the share of sensitive rows over all classes, r/Σn.
        arithmetic: "exact" (fractions) or "float".
        relative_error: how far `violation` may be off, and a share, relative to the larger of it and `before`;
            0 when exact.
    """

    share: dict[Kind, Fraction] | dict[Kind, float]
    violation: Fraction | float
    before: Fraction
    arithmetic: Literal["exact", "float"]
    relative_error: float = 0.0


def kept_vectors(
    sizes: Sequence[int], caps: Sequence[int], sensitive: int
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Every vector with a violation and its weight, in ascending lexicographic order."""
    room = [0] * (len(sizes) + 1)
    for i in reversed(range(len(sizes))):
        room[i] = room[i + 1] + sizes[i]

    def _extend(
        prefix: tuple[int, ...], left: int, weight: int, violated: bool
    ) -> Iterator[tuple[tuple[int, ...], int]]:
        i = len(prefix)
        if i == len(sizes):
            if violated:
                yield prefix, weight
            return
        for j in range(max(0, left - room[i + 1]), min(sizes[i], left) + 1):
            yield from _extend(
                (*prefix, j), left - j, weight * math.comb(sizes[i], j), violated or j > caps[i]
            )

    if 0 <= sensitive <= room[0]:
        yield from _extend((), sensitive, 1, False)


def count_violations(
    kinds: Counter[Kind], sensitive: int, exact: bool | None = None
) -> ViolationCount | None:
    """Count the worlds with a violation; None when there is none.

    Args:
        kinds: how many classes there are of each size and cap.
        sensitive: the sensitive rows in all of them together.
        exact: True: in integers, whatever it takes; False: in floating point; None: in integers where that
            takes at most about a tenth of a second, or half a minute where floating point is not accurate.
    """
    everybody = sum(n * m for (n, _), m in kinds.items())
    if not 0 <= sensitive <= everybody or not everybody:
        return None
    before = Fraction(sensitive, everybody)
    if not violable_kinds(kinds, sensitive):
        return None
    if any(cap < 0 for _, cap in kinds) or sensitive == everybody:
        return ViolationCount(dict.fromkeys(kinds, before), Fraction(1), before, "exact")
    seconds = math.inf if exact is False else _seconds(kinds, sensitive, everybody)
    if exact or seconds < QUICK:
        return _count_exactly(kinds, sensitive, everybody)

    found = count_in_floats(kinds, sensitive, everybody)
    if found.relative_error > ACCURATE:  # so rare that floats end before, or rounding drowns it
        found = min(found, count_rare_violations(kinds, sensitive, everybody), key=lambda x: x.relative_error)
    if found.relative_error > ACCURATE and seconds < PATIENT:
        return _count_exactly(kinds, sensitive, everybody)
    return found


def violable_kinds(kinds: Counter[Kind], sensitive: int) -> dict[Kind, int]:
    """The kinds of classes that can exceed their cap, and how many there are of each."""
    return {(n, cap): m for (n, cap), m in kinds.items() if cap < min(n, sensitive)}


def _seconds(kinds: Counter[Kind], sensitive: int, everybody: int) -> float:
    """About how long exact counting takes, from above."""
    share = sensitive / everybody
    bits = 64.0
    if 0 < share < 1:
        bits += everybody * -(share * math.log2(share) + (1 - share) * math.log2(1 - share))
    short = sum(3 * sensitive * min(cap, sensitive) for _, cap in kinds)
    long = sum(1 for (_, cap), m in kinds.items() if cap * m > 24)
    seconds: float = short * (2e-7 + bits * 1.5e-10) + long * (bits * sensitive / 1e6) ** 1.6 * 0.006
    return seconds


def _count_exactly(kinds: Counter[Kind], sensitive: int, everybody: int) -> ViolationCount:
    capped = violable_kinds(kinds, sensitive)
    free = everybody - sum(n * m for (n, _), m in capped.items())  # rows of classes that cannot violate
    safe = {(n, cap): [math.comb(n, j) for j in range(cap + 1)] for n, cap in capped}
    product = [1]
    for kind, m in sorted(capped.items(), key=lambda item: item[0][1] * item[1]):
        product = multiply_polynomials(product, polynomial_power(safe[kind], m, sensitive), sensitive)
    product = multiply_polynomials(
        product, [math.comb(free, j) for j in range(min(free, sensitive) + 1)], sensitive
    )
    product += [0] * (sensitive + 1 - len(product))
    worlds = math.comb(everybody, sensitive)
    kept = worlds - product[sensitive]
    spread = math.comb(everybody - 1, sensitive - 1)  # worlds in which a given row is sensitive
    share: dict[Kind, Fraction] = {}
    for n, cap in capped:
        others = divide_series(product, safe[n, cap])
        held = sum(j * c * others[sensitive - j] for j, c in enumerate(safe[n, cap]))
        share[n, cap] = Fraction(n * spread - held, n * kept)
    if free:
        rest = sensitive - sum(m * n * share[n, cap] for (n, cap), m in capped.items())
        share |= dict.fromkeys(kinds.keys() - capped.keys(), Fraction(rest) / free)
    return ViolationCount(share, Fraction(kept, worlds), Fraction(sensitive, everybody), "exact")


def caps_of(sizes: Sequence[int], ell: Fraction) -> list[int]:
    """The most sensitive rows a class of each size may hold: j·ℓ ≤ n."""
    if ell <= 0:
        raise UsageError(f"l is {ell}; it must be greater than 0")
    return [n * ell.denominator // ell.numerator for n in sizes]


def multiply_polynomials(a: Sequence[int], b: Sequence[int], degree: int) -> Polynomial:
    """a·b up to x^degree; coefficients are not negative."""
    a, b = a[: degree + 1], b[: degree + 1]
    if len(a) < len(b):
        a, b = b, a
    return _shifted(a, b, degree) if _packing_is_slower(a, b) else _packed(a, b, degree)


def _packing_is_slower(a: Sequence[int], b: Sequence[int]) -> bool:
    """Compare estimates, in nanoseconds, of multiplying term by term and of Karatsuba's algorithm on the whole."""
    if len(b) < 8:
        return True
    bits_a, bits_b = max(a).bit_length(), max(b).bit_length()
    slot = (bits_a + bits_b) / 30
    terms = len(a) * len(b) * (130 + bits_a * bits_b / 1600)
    packed: float = 7 * (len(b) * slot) ** 1.585 * (len(a) / len(b))
    return terms < packed


def _shifted(a: Sequence[int], b: Sequence[int], degree: int) -> Polynomial:
    length = min(degree + 1, len(a) + len(b) - 1)
    row = np.array(a, dtype=object)
    result = np.zeros(length, dtype=object)
    for j, factor in enumerate(b):
        if factor and j < length:
            stop = min(length, j + len(row))
            result[j:stop] += row[: stop - j] * factor
    found: Polynomial = result.tolist()
    return found


def _packed(a: Sequence[int], b: Sequence[int], degree: int) -> Polynomial:
    """Kronecker's substitution: every coefficient in a slot of its own of one large integer."""
    bits = max(a).bit_length() + max(b).bit_length() + len(b).bit_length()
    width = bits // 8 + 1
    product = _pack(a, width) * _pack(b, width)
    length = len(a) + len(b) - 1
    data = product.to_bytes(length * width, "little")
    stop = min(length, degree + 1)
    return [int.from_bytes(data[i * width : (i + 1) * width], "little") for i in range(stop)]


def _pack(a: Sequence[int], width: int) -> int:
    return int.from_bytes(b"".join(x.to_bytes(width, "little") for x in a), "little")


def polynomial_power(f: Sequence[int], exponent: int, degree: int) -> Polynomial:
    """f^exponent up to x^degree, for f starting with 1 (Miller's recurrence: k·g_k from the g before it)."""
    if exponent == 1:
        return list(f[: degree + 1])
    length = min(degree, (len(f) - 1) * exponent) + 1
    g = np.zeros(length, dtype=object)
    g[0] = 1
    falling = np.array(f[:0:-1], dtype=object)  # f_d … f_1, to meet g_{k−d} … g_{k−1}
    leading = falling * np.arange(len(f) - 1, 0, -1) * (exponent + 1)
    for k in range(1, length):
        window = min(k, len(falling))
        factors = leading[len(leading) - window :] - k * falling[len(falling) - window :]
        g[k] = np.dot(factors, g[k - window : k]) // k
    found: Polynomial = g.tolist()
    return found


def divide_series(a: Sequence[int], b: Sequence[int]) -> Polynomial:
    """a/b as a power series, exact up to the degree of a; b starts with 1."""
    result = np.array(a, dtype=object)
    falling = np.array(b[:0:-1], dtype=object)
    if len(falling):
        for i in range(1, len(result)):
            window = min(i, len(falling))
            result[i] -= np.dot(falling[len(falling) - window :], result[i - window : i])
    found: Polynomial = result.tolist()
    return found


Complexes = NDArray[np.complex128]
CELLS = 400_000  # entries of a block of the class × frequency table
DIGITS = 45.0  # what is left out is below e^-45 of the result
GOOD = 1e-12
EPSILON = float(np.finfo(np.float64).eps)
LEFT_OUT = 60.0  # classes that contribute less than e^-60 of the result are left out


def count_in_floats(kinds: Counter[Kind], sensitive: int, everybody: int) -> ViolationCount:
    """The count of violations, for 0 < sensitive < everybody, caps from 0 on and at least one class that can violate.

    Tilted to the mean of all worlds, violations that are both rare and large lie far out, where rounding errors
    drown them; then a second attempt is tilted to the mean of the worlds in which the likeliest class violates.
    """
    even = sensitive / everybody
    found = _count(kinds, sensitive, everybody, even)
    if found.relative_error > GOOD:
        again = _count(kinds, sensitive, everybody, _tilt(kinds, sensitive, everybody))
        found = min(found, again, key=lambda counted: counted.relative_error)
    return found


def _count(kinds: Counter[Kind], sensitive: int, everybody: int, theta: float) -> ViolationCount:
    tails = _TailTerms.of(kinds, sensitive, everybody, theta)
    before = Fraction(sensitive, everybody)
    if tails.precision > 600:  # near the smallest numbers, which have fewer digits
        return ViolationCount(dict.fromkeys(kinds, float(before)), 0.0, before, "float", math.inf)
    violation, free, shares, error = _integrate(tails)
    share = dict.fromkeys(kinds, free)
    share |= dict(zip(tails.kinds, shares.tolist(), strict=True))
    return ViolationCount(share, violation, before, "float", error)


def _tilt(kinds: Counter[Kind], sensitive: int, everybody: int) -> float:
    """The θ at which r is the expected number once the class likeliest to violate is just beyond its cap."""
    _, n, first, _ = violable_classes(kinds, sensitive)
    j = np.maximum(first, sensitive - (everybody - n))
    best = int(np.argmax(log_terms(n, j, sensitive, everybody)))
    least = 1 / (4 * everybody)
    if everybody == n[best]:
        return sensitive / everybody
    return float(min(max((sensitive - j[best]) / (everybody - n[best]), least), 1 - least))


@dataclass(frozen=True, eq=False)
class _TailTerms:
    """The classes that can violate, one of each kind, by rising width of what is looked at beyond the cap.

    Attributes:
        n, many: rows of a class of this kind, and how many such classes there are.
        start, width: the numbers of sensitive rows looked at are start, start + 1, …, start + width − 1.
        precision: terms below e^-precision can be left out.
    """

    kinds: list[Kind]
    n: Floats
    many: Floats
    start: Floats
    width: Floats
    sensitive: int
    everybody: int
    theta: float
    precision: float

    @staticmethod
    def of(kinds: Counter[Kind], sensitive: int, everybody: int, theta: float) -> _TailTerms:
        """The tails of these classes, tilted by theta."""
        active, n, first, many = violable_classes(kinds, sensitive)
        j = np.maximum(first, sensitive - (everybody - n))
        precision = DIGITS - float(log_terms(n, j, sensitive, everybody, theta).max())
        # Bernstein: further than `reach` from its mean, or from a cap above it, a binomial is below e^-precision
        reach = precision / 3 + np.sqrt(precision**2 / 9 + 2 * precision * n * theta * (1 - theta))
        mean = n * theta
        start = np.maximum(first, np.floor(mean - reach))
        stop = np.minimum(np.minimum(n, sensitive), np.ceil(np.maximum(first, mean) + reach))
        width = stop - start + 1
        order = np.argsort(width, kind="stable")
        chosen = [active[i] for i in order]
        return _TailTerms(
            chosen, n[order], many[order], start[order], width[order], sensitive, everybody, theta, precision
        )

    def blocks(self, columns: int) -> Iterator[tuple[slice, Floats]]:
        """Some classes at a time, with the probability of each number of sensitive rows (0 past the width)."""
        at = 0
        while at < len(self.n):
            stop = at + 1
            while stop < len(self.n) and (stop + 1 - at) * max(self.width[stop], columns) <= CELLS:
                stop += 1
            part = slice(at, stop)
            step = np.arange(self.width[stop - 1])[None, :]
            inside = step < self.width[part, None]
            j = np.where(inside, self.start[part, None] + step, 0.0)
            n = np.broadcast_to(self.n[part, None], j.shape)
            yield part, np.where(inside, np.exp(log_binomial(j, n, self.theta)), 0.0)
            at = stop


def violable_classes(kinds: Counter[Kind], sensitive: int) -> tuple[list[Kind], Floats, Floats, Floats]:
    """One class of each kind that can violate: its rows, the least number beyond its cap, and how many there are."""
    active = violable_kinds(kinds, sensitive)
    columns = zip(*((n, cap + 1, m) for (n, cap), m in active.items()), strict=True)
    n, first, many = (np.array(column, dtype=np.float64) for column in columns)
    return list(active), n, first, many


def log_worlds(sensitive: int, everybody: int, theta: float) -> float:
    """The logarithm of what all worlds together weigh."""
    return float(log_binomial(np.array(float(sensitive)), np.array(float(everybody)), theta))


def log_terms(n: Floats, j: Floats, sensitive: int, everybody: int, theta: float | None = None) -> Floats:
    """Per class the logarithm of one term of the result, hence a lower bound: j sensitive rows in this class."""
    tilt = sensitive / everybody if theta is None else theta
    return log_binomial(j, n, tilt) + log_binomial(sensitive - j, everybody - n, tilt)


def _frequencies(tails: _TailTerms) -> tuple[Floats, Floats]:
    """The frequencies that matter, and their weights (a frequency stands for its mirror image too)."""
    points = _points(tails)
    beyond = np.concatenate([q.sum(axis=1) for _, q in tails.blocks(1)])
    rest = tails.everybody - float(tails.n @ tails.many)

    def _negligible(k: int) -> bool:
        shrink = float(_shrink(tails.theta, np.array(math.sin(math.pi * k / points) ** 2)))
        size = np.exp(tails.n * shrink)
        within = np.log(np.minimum(1 - np.minimum(beyond, 1 - EPSILON), size + beyond + 1e-300))
        all_within = float(tails.many @ within) + rest * shrink - float(within.min())  # one class left out
        all_classes = (tails.everybody - float(tails.n.max())) * shrink
        return max(all_within, all_classes) < -tails.precision - math.log(points)

    last = _first(_negligible, 1, points // 2)
    frequencies: Floats = np.arange(last + 1, dtype=np.float64) * (2 * math.pi / points)
    weights: Floats = np.full(last + 1, 2.0 / points)
    weights[0] = 1.0 / points
    if points % 2 == 0 and last == points // 2:
        weights[-1] = 1.0 / points
    return frequencies, weights


def _shrink(theta: float, half: Floats) -> Floats:
    """log|1 − θ + θe^{iw}|, given sin²(w/2); kept finite where it is −∞ (θ = ½, w = π)."""
    return 0.5 * np.log1p(np.maximum(-4 * theta * (1 - theta) * half, EPSILON - 1))


def _points(tails: _TailTerms) -> int:
    """The least L such that x^(r ± L) and beyond weigh below e^-precision (N + 1: there is nothing beyond)."""
    n, r, theta = tails.everybody, tails.sensitive, tails.theta

    def _far(length: int) -> bool:
        beyond = r - length < n * theta < r + length
        return beyond and min(_chernoff(x, n, theta) for x in (r - length, r + length)) > tails.precision + 1

    return _first(_far, 1, n + 1)


def _chernoff(x: int, n: int, theta: float) -> float:
    """−log of Chernoff's bound for a binomial (n trials) to lie at x or further out from its mean."""
    if not 0 <= x <= n:
        return math.inf
    low = x * math.log(x / (n * theta)) if x else 0.0
    high = (n - x) * math.log((n - x) / (n * (1 - theta))) if x < n else 0.0
    return low + high


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least number from low on for which a monotone property holds; high if none below it does."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return max(low, high)


class _Circle(NamedTuple):
    """The frequencies with what all classes share there; a class of n rows has T(w) = exp(n·log_z)."""

    w: Floats
    weights: Floats
    log_z: Complexes
    log_all: Complexes  # turned so that the sum over w is the coefficient of x^r
    lift: Complexes  # e^{iw}/z: one more row is sensitive

    @staticmethod
    def of(tails: _TailTerms) -> _Circle:
        """The circle on which these tails are summed."""
        w, weights = _frequencies(tails)
        theta, half = tails.theta, np.sin(w / 2) ** 2
        angle = np.arctan2(theta * np.sin(w), 1 - 2 * theta * half) - theta * w
        log_z = _shrink(theta, half) + 1j * angle
        log_all = tails.everybody * log_z - 1j * (tails.sensitive - tails.everybody * theta) * w
        return _Circle(w, weights, log_z, log_all, np.exp(1j * (1 - theta) * w - log_z))


def _integrate(tails: _TailTerms) -> tuple[float, float, Floats, float]:
    """P(violation), the share in classes that cannot violate, the shares in those that can, relative error."""
    circle = _Circle.of(tails)
    safe = np.zeros(len(circle.w), dtype=np.complex128)
    for part, q in tails.blocks(len(circle.w)):
        beyond, _ = _transforms(tails, part, q, circle.w)
        safe += tails.many[part] @ _log_safe(beyond, tails.n[part, None] * circle.log_z)
    violating = _without(safe, circle.log_all)
    total = float(circle.weights @ violating.real)
    all_worlds = log_worlds(tails.sensitive, tails.everybody, tails.theta)
    log_violation = min(math.log(total) - all_worlds, 0.0) if total > 0 else -math.inf
    if log_violation < -600:
        return 0.0, 0.0, np.zeros(len(tails.n)), math.inf
    free = tails.theta * float(circle.weights @ (circle.lift * violating).real) / total
    shares, growth = _shares(tails, circle, safe, total)
    growth = max(growth, float(circle.weights @ np.abs(violating)) / total)
    error = 100 * growth * (1 + math.sqrt(tails.sensitive) / 100) + 4 * (tails.precision - log_violation)
    return math.exp(log_violation), min(max(free, 0.0), 1.0), shares, EPSILON * error


def _shares(tails: _TailTerms, circle: _Circle, safe: Complexes, total: float) -> tuple[Floats, float]:
    """The share of sensitive rows in each class that can violate, and how much rounding errors grow."""
    shares, growth = [], 0.0
    for part, q in tails.blocks(len(circle.w)):
        n = tails.n[part]
        log_class = n[:, None] * circle.log_z
        beyond, counted = _transforms(tails, part, q, circle.w)
        log_others = circle.log_all - log_class
        others = _without(safe - _log_safe(beyond, log_class), log_others)
        within = (n * tails.theta)[:, None] * circle.lift * np.exp(log_class) - counted
        held = counted * np.exp(log_others) + within * others
        found = held.real @ circle.weights / (n * total)
        scale = np.maximum(found, tails.sensitive / tails.everybody) * n * total
        growth = max(growth, float((np.abs(held) @ circle.weights / scale).max()))
        shares.append(np.clip(found, 0.0, 1.0))
    return np.concatenate(shares), growth


def _transforms(tails: _TailTerms, part: slice, q: Floats, w: Floats) -> tuple[Complexes, Complexes]:
    """B_k(w), and the same with every term times its number of sensitive rows."""
    step = np.arange(q.shape[1])
    angle = np.outer(step, w)
    cosine, sine = np.cos(angle), np.sin(angle)
    turn = np.exp(1j * np.outer(tails.start[part] - tails.n[part] * tails.theta, w))
    counted = q * (tails.start[part, None] + step)
    return turn * (q @ cosine + 1j * (q @ sine)), turn * (counted @ cosine + 1j * (counted @ sine))


def _log_safe(beyond: Complexes, log_class: Complexes) -> Complexes:
    """log(A_k/T_k) = log(1 − B_k/T_k), accurate where B_k is small and where T_k vanishes."""
    whole = np.exp(log_class)
    with np.errstate(all="ignore"):
        ratio = -beyond / whole
        small = np.abs(ratio) < 0.5
        x, y = np.where(small, ratio.real, 0.0), np.where(small, ratio.imag, 0.0)
        near = 0.5 * np.log1p(2 * x + x * x + y * y) + 1j * np.arctan2(y, 1 + x)
        within = whole - beyond
        far = np.log(np.where(within == 0, 1e-300, within)) - log_class
    return np.where(small, near, far)


def _without(log_ratio: Complexes, log_whole: Complexes) -> Complexes:
    """T − A, given log(A/T) and log T."""
    whole = np.exp(log_whole)
    small = np.abs(log_ratio) < 0.5
    a, b = np.where(small, log_ratio.real, 0.0), np.where(small, log_ratio.imag, 0.0)
    grown = np.expm1(a)
    near = (grown * np.cos(b) - 2 * np.sin(b / 2) ** 2) + 1j * (1 + grown) * np.sin(b)
    return np.where(small, -whole * near, whole - np.exp(log_whole + log_ratio))


def count_rare_violations(kinds: Counter[Kind], sensitive: int, everybody: int) -> ViolationCount:
    """The count of rare violations, under the conditions of `count_in_floats`.

    The probability is a fraction, because a float may not go so low; its error is that of floating point, and infinite
    where violations are not rare.
    """
    before = Fraction(sensitive, everybody)
    tails = _RareTails.of(kinds, sensitive, everybody)
    if tails is None or tails.log_total >= 0:
        return ViolationCount(dict.fromkeys(kinds, float(before)), 0.0, before, "float", math.inf)
    alone = tails.weight / tails.many  # of one class of a kind
    others = (sensitive - tails.mean) / (everybody - tails.n)  # the share outside of a violating class
    total, log_violation = math.fsum(tails.weight), tails.log_total
    elsewhere = math.fsum(tails.weight * others)
    here = np.clip((elsewhere + alone * (tails.mean / tails.n - others)) / total, 0.0, 1.0)
    share = dict.fromkeys(kinds, min(elsewhere / total, 1.0))
    share |= dict(zip(tails.kinds, here.tolist(), strict=True))
    rounding = EPSILON * (100 + 16 * abs(log_violation) + 4 * tails.steps)
    together = math.exp(log_violation) * (1 + everybody / sensitive)
    return ViolationCount(share, _power(log_violation), before, "float", rounding + together)


def _power(logarithm: float) -> Fraction:
    """e to a power below 0, however low."""
    halvings = math.ceil(-logarithm / math.log(2))
    return Fraction(math.exp(logarithm + halvings * math.log(2))) / (1 << halvings)


@dataclass(frozen=True, eq=False)
class _RareTails:
    """The classes that matter, one of each kind.

    Attributes:
        n, many: rows of a class of this kind, and how many such classes there are.
        weight: P(j > cap) for all classes of a kind together, in units of e^log_unit.
        mean: the expected number of sensitive rows in one of them, given that it exceeds its cap.
        steps: how many terms the longest sum has.
    """

    kinds: list[Kind]
    n: Floats
    many: Floats
    weight: Floats
    mean: Floats
    log_unit: float
    steps: int

    @property
    def log_total(self) -> float:
        """The logarithm of the probability of a violation."""
        return self.log_unit + math.log(math.fsum(self.weight))

    @staticmethod
    def of(kinds: Counter[Kind], sensitive: int, everybody: int) -> _RareTails | None:
        """The tails of these classes; None where a class violates even with an ordinary number of sensitive rows."""
        active, n, first, many = violable_classes(kinds, sensitive)
        falls = _ratio(first, n, sensitive, everybody)
        if (sensitive - (everybody - n) >= first).any() or (falls >= 1).any():
            return None
        start = log_terms(n, first, sensitive, everybody) - log_worlds(
            sensitive, everybody, sensitive / everybody
        )
        unit = float(start.max())
        most = start - np.log1p(-falls) + np.log(many)
        kept = most > unit - LEFT_OUT - math.log(len(active))
        total, steps, longest = _sums(first[kept], n[kept], sensitive, everybody)
        weight = np.exp(start[kept] - unit) * total * many[kept]
        chosen = [kind for kind, here in zip(active, kept, strict=True) if here]
        return _RareTails(chosen, n[kept], many[kept], weight, first[kept] + steps / total, unit, longest)


def _ratio(j: Floats, n: Floats, sensitive: int, everybody: int) -> Floats:
    """P(j + 1) / P(j); it falls with j."""
    return (n - j) * (sensitive - j) / ((j + 1) * np.maximum(everybody - n - sensitive + j + 1, 1.0))


def _sums(first: Floats, n: Floats, sensitive: int, everybody: int) -> tuple[Floats, Floats, int]:
    """Σ P(first + i) and Σ i·P(first + i) over i ≥ 0, in units of P(first); and the number of terms."""
    term, total, steps, i = np.ones_like(n), np.ones_like(n), np.zeros_like(n), 0
    while True:
        ratio = _ratio(first + i, n, sensitive, everybody)
        term = term * ratio
        i += 1
        total += term
        steps += i * term
        # the rest is below a geometric series with this ratio, each term with its number
        rest = term * (i + 1 / (1 - ratio)) / (1 - ratio)
        if (rest <= EPSILON / 16 * total).all():
            return total, steps, i
