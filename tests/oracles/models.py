"""Every privacy model as on paper: random parameters, which classes pass, and the worst measured value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.models import definitions as paper
from tests.oracles.facts import with_facts
from tests.oracles.tables import Small, Value
from tests.oracles.worlds import credibility_of_sets


@dataclass(frozen=True)
class Published:
    """Classes as they were published: their rows, their labels, how many of a population match each, and its size."""

    table: Small
    classes: list[list[int]]
    labels: list[tuple[Value, ...]]
    matching: list[int]
    reference: list[int] | None = None  # the rows that classes are compared with; None: all of the table
    population: int = 0
    guards: Sequence[
        frozenset[str] | None
    ] = ()  # of each row: the values that must not be known of its person

    def values(self, asked: Asked) -> list[list[Value]]:
        return [self.table.values(asked.attribute, members) for members in self.classes]

    def whole(self, asked: Asked) -> list[Value]:
        rows = range(self.table.n) if self.reference is None else self.reference
        return self.table.values(asked.attribute, list(rows))

    def domain(self, asked: Asked) -> tuple[str, ...]:
        return self.table.domains[asked.attribute]


@dataclass(frozen=True)
class Asked:
    """A model with parameters, as a policy would write it."""

    name: str
    parameters: dict[str, Any]
    tree: dict[str, str] | None = None  # child → parent, where distances need one

    @property
    def attribute(self) -> str:
        return str(self.parameters.get("attribute", "s"))

    @property
    def least(self) -> int:
        """The k below which a class is small, whatever its values."""
        if self.name == "highest-risk" and self.parameters.get("adversary", "prosecutor") == "prosecutor":
            return math.ceil(1 / Fraction(self.parameters["max"]))
        sized = ("k-anonymity", "alpha-k-anonymity", "p-sensitive-k-anonymity", "ke-anonymity")
        return int(self.parameters["k"]) if self.name in sized and "on" not in self.parameters else 1

    def __getitem__(self, key: str) -> Any:
        return self.parameters[key]


@dataclass(frozen=True)
class Judged:
    """Which classes pass, the worst value (None: not compared), and whether the release as a whole does."""

    passes: list[bool]
    worst: Fraction | float | None = None

    @property
    def ok(self) -> bool:
        return all(self.passes)


Judge = Callable[[Published, Asked], Judged]


def _shares(values: Sequence[Value], sets: Sequence[Sequence[str]] | None) -> Fraction:
    counts = paper.known(values)
    held = [sum(counts[v] for v in members) for members in sets or [[v] for v in counts]]
    return Fraction(max(held, default=0), len(values))


# -- sizes and populations -----------------------------------------------------------------------------------------


def k_anonymity(p: Published, a: Asked) -> Judged:
    sizes = []
    for i, members in enumerate(p.classes):
        alike = [len(members)]
        if "on" in a.parameters:
            places = [[[key.name for key in p.table.keys].index(c) for c in on] for on in a["on"]]
            alike = [
                sum(len(m) for m, x in zip(p.classes, p.labels, strict=True)
                    if all(x[c] == p.labels[i][c] for c in on))
                for on in places
            ]  # fmt: skip
        sizes.append(min(alike))
    return Judged([n >= a["k"] for n in sizes], Fraction(min(sizes)))


def highest_risk(p: Published, a: Asked) -> Judged:
    people = p.matching if a.parameters.get("adversary") == "journalist" else [len(m) for m in p.classes]
    risks = [Fraction(1, n) for n in people]
    return Judged([r <= Fraction(a["max"]) for r in risks], max(risks))


def average_risk(p: Published, a: Asked) -> Judged:
    sizes = [len(m) for m in p.classes]
    people = p.matching if a.parameters.get("adversary") == "marketer" else sizes
    average = sum((Fraction(n, m) for n, m in zip(sizes, people, strict=True)), Fraction(0)) / sum(sizes)
    return Judged([average <= Fraction(a["max"])] * len(sizes), average)


def k_map(p: Published, a: Asked) -> Judged:
    return Judged([n >= a["k"] for n in p.matching], Fraction(min(p.matching)))


def delta_presence(p: Published, a: Asked) -> Judged:
    shares = [Fraction(len(m), n) for m, n in zip(p.classes, p.matching, strict=True)]
    low, high = Fraction(a["delta_min"]), Fraction(a["delta_max"])
    return Judged([low <= x <= high for x in shares])


# -- values ----------------------------------------------------------------------------------------------------


def simple(p: Published, a: Asked) -> Judged:
    sets = a.parameters.get("sets") or [[v] for v in a.parameters.get("values", ())] or None
    shares = [_shares(v, sets) for v in p.values(a)]
    return Judged([x * Fraction(a["l"]) <= 1 for x in shares], max(shares))


def belief(p: Published, a: Asked) -> Judged:
    shares = [_shares(v, a.parameters.get("sets")) for v in p.values(a)]
    return Judged([x <= Fraction(a["max"]) for x in shares], max(shares))


def alpha_k(p: Published, a: Asked) -> Judged:
    sets = a.parameters.get("sets")
    if sets is None:
        return Judged([paper.alpha_k(v, Fraction(a["alpha"]), a["k"]) for v in p.values(a)])
    return Judged([len(v) >= a["k"] and _shares(v, sets) <= Fraction(a["alpha"]) for v in p.values(a)])


def distinct(p: Published, a: Asked) -> Judged:
    found = [len(paper.known(v)) for v in p.values(a)]
    return Judged([n >= a["l"] for n in found], Fraction(min(found)))


def p_sensitive(p: Published, a: Asked) -> Judged:
    def passes(members: list[int]) -> bool:
        columns = [p.table.values(name, members) for name in p.table.secrets]
        return len(members) >= a["k"] and all(len(paper.known(column)) >= a["p"] for column in columns)

    return Judged([passes(members) for members in p.classes])


def entropy(p: Published, a: Asked) -> Judged:
    return Judged([paper.entropy(v, Fraction(a["l"])) for v in p.values(a)])


def recursive(p: Published, a: Asked) -> Judged:
    return Judged([paper.recursive(v, Fraction(a["c"]), a["l"]) for v in p.values(a)])


def distance(values: Sequence[Value], whole: Sequence[Value], kind: str, p: Published, a: Asked) -> Fraction:
    domain = p.domain(a)
    if kind == "equal":
        return paper.equal(values, whole, domain)
    if kind == "ordered":
        return paper.ordered(values, whole, domain)
    assert a.tree is not None
    return paper.hierarchical(values, whole, a.tree, domain)


def t_closeness(p: Published, a: Asked) -> Judged:
    far = [distance(v, p.whole(a), a["distance"], p, a) for v in p.values(a)]
    return Judged([x <= Fraction(a["t"]) for x in far], max(far))


def nt_closeness(p: Published, a: Asked) -> Judged:
    """Without groups that classes were split from, the whole table is the only superset."""
    far = [distance(v, p.whole(a), "equal", p, a) for v in p.values(a)]
    return Judged([p.table.n >= a["n"] and x <= Fraction(a["t"]) for x in far])


def ke_anonymity(p: Published, a: Asked) -> Judged:
    def passes(values: list[Value]) -> bool:
        numbers = [Fraction(v) for v in values if v is not None]
        spread = max(numbers) - min(numbers) if numbers else Fraction(0)
        return (len(set(numbers)) if a["distinct"] else len(values)) >= a["k"] and spread >= Fraction(a["e"])

    return Judged([passes(v) for v in p.values(a)])


def delta_disclosure(p: Published, a: Asked) -> Judged:
    whole = p.whole(a)
    return Judged([paper.delta_disclosure(v, whole, Fraction(a["delta"]), a["strict"]) for v in p.values(a)])


def beta_likeness(p: Published, a: Asked) -> Judged:
    whole = p.whole(a)
    return Judged([paper.beta_likeness(v, whole, Fraction(a["beta"]), a["enhanced"]) for v in p.values(a)])


def ck_safety(p: Published, a: Asked) -> Judged:
    """The release is safe or not as a whole; that is all the definition says."""
    found = with_facts(p.values(a), a["k"])
    return Judged([found < Fraction(a["c"])], found)


def m_confidentiality(p: Published, a: Asked) -> Judged:
    """Credibility in each class from the sizes of the raw classes in it, counted over all possible worlds."""
    worst = []
    for members in p.classes:
        sizes = sorted(Counter(p.table.rows[i] for i in members).values())
        counts = paper.known(p.table.values(a.attribute, members))
        held = [
            n for s in a.parameters.get("sets") or [[v] for v in counts] if (n := sum(counts[v] for v in s))
        ]
        share = Fraction(max(held, default=0), len(members))
        found = credibility_of_sets(sizes, held, Fraction(a.parameters.get("l", a["m"]))) if held else None
        merged = found is not None and len(sizes) > 1
        worst.append(max(x for row in found for x in row) if merged and found else share)
    return Judged([x * Fraction(a["m"]) <= 1 for x in worst], max(worst))


def individual_risk(p: Published, a: Asked) -> Judged:
    """(p^f/f)·₂F₁(f, f; f+1; 1−p), term by term: all people were sampled with the same probability."""
    risks = []
    for members in p.classes:
        f, share = len(members), p.table.n / p.population
        total, term, k = 0.0, 1.0, 0
        while term > 1e-18 * max(total, 1):
            total += term
            term *= (f + k) * (f + k) * (1 - share) / ((f + 1 + k) * (k + 1))
            k += 1
        risks.append(share**f / f * total)
    return Judged([risk <= Fraction(a["max"]) for risk in risks], max(risks))


def population_uniqueness(p: Published, a: Asked) -> Judged:
    """Zayatz: by Bayes, with the hypergeometric probability that one of a class is drawn."""
    sizes, everybody = Counter(len(members) for members in p.classes), p.population
    n = sum(i * c for i, c in sizes.items())
    drawn = sum(
        (
            Fraction(c * i * math.comb(everybody - i, n - 1), math.comb(everybody, n))
            for i, c in sizes.items()
        ),
        Fraction(0),
    )
    share = sizes[1] ** 2 * Fraction(n, everybody) / drawn / n if sizes[1] else Fraction(0)
    return Judged([share <= Fraction(a["max"])] * len(p.classes), share)


def personalised(p: Published, a: Asked) -> Judged:
    """In each class the largest share of the people under a node that guards one of them."""
    shares = []
    for members, values in zip(p.classes, p.values(a), strict=True):
        asked = {node for i in members if (node := p.guards[i]) is not None}
        held = [sum(v in node for v in values) for node in asked]
        shares.append(Fraction(max(held, default=0), len(members)))
    return Judged([x <= Fraction(a["p"]) for x in shares], max(shares))


JUDGES: dict[str, Judge] = {
    "k-anonymity": k_anonymity, "simple-l-diversity": simple, "distinct-l-diversity": distinct,
    "entropy-l-diversity": entropy, "recursive-cl-diversity": recursive, "alpha-k-anonymity": alpha_k,
    "p-sensitive-k-anonymity": p_sensitive, "t-closeness": t_closeness, "nt-closeness": nt_closeness,
    "ke-anonymity": ke_anonymity, "ck-safety": ck_safety, "m-confidentiality": m_confidentiality,
    "belief": belief, "delta-disclosure": delta_disclosure, "beta-likeness": beta_likeness,
    "delta-presence": delta_presence, "k-map": k_map, "average-risk": average_risk, "highest-risk": highest_risk,
    "individual-risk": individual_risk, "population-uniqueness": population_uniqueness,
    "personalised-privacy": personalised,
}  # fmt: skip

# models that can be asked of one class by itself: what is dropped elsewhere does not change their verdict
LOCAL = [
    "k-anonymity", "simple-l-diversity", "distinct-l-diversity", "entropy-l-diversity", "recursive-cl-diversity",
    "alpha-k-anonymity", "p-sensitive-k-anonymity", "t-closeness", "delta-disclosure", "beta-likeness",
    "highest-risk", "k-map", "delta-presence",
]  # fmt: skip


def satisfied(published: Published, asked: Sequence[Asked]) -> bool:
    """Does the release satisfy every model?"""
    return all(JUDGES[a.name](published, a).ok for a in asked)
