"""Random parameters of every model, near the edge between passing and failing for small tables."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

from tests.oracles.models import Asked
from tests.oracles.tables import Small


def draw(rng: Random, table: Small, name: str) -> Asked:
    """The model with random parameters."""
    attribute = rng.choice(numeric(table) if name == "ke-anonymity" else sorted(table.secrets))
    values = table.domains[attribute]
    about: dict[str, Any] = {"attribute": attribute}
    tree: dict[str, str] | None = None
    k, half = rng.randint(1, 4), str(Fraction(rng.randint(2, 8), 2))
    part = str(Fraction(rng.randint(1, 6), 6))
    if name == "k-anonymity":
        found = {"k": k} | ({"on": combinations(rng, table)} if rng.random() < 0.3 else {})
    elif name == "highest-risk":
        found = {"max": part, "adversary": rng.choice(["prosecutor", "journalist"])}
    elif name == "average-risk":
        found = {"max": part, "adversary": rng.choice(["prosecutor", "marketer"])}
    elif name == "individual-risk":
        found = {
            "max": str(Fraction(rng.randint(10, 100), 101))
        }  # no risk of a small table is on such an edge
    elif name == "population-uniqueness":
        found = {"max": str(Fraction(rng.randint(1, 100), 101)), "estimator": "zayatz"}
    elif name == "k-map":
        found = {"k": rng.randint(1, 8)}
    elif name == "delta-presence":
        low, high = sorted([Fraction(rng.randint(0, 4), 8), Fraction(rng.randint(2, 8), 8)])
        found = {"delta_min": str(low), "delta_max": str(high)}
    elif name == "simple-l-diversity":
        found = about | {"l": half}
        if values and rng.random() < 0.5:
            found["sets" if rng.random() < 0.5 else "values"] = sets(rng, values)
            if "values" in found:
                found["values"] = sorted({v for s in found["values"] for v in s})
    elif name == "distinct-l-diversity":
        found = about | {"l": rng.randint(1, 3)}
    elif name == "entropy-l-diversity":
        found = about | {"l": rng.choice(["1", "3/2", "2", "5/2", "3", "1.7548"])}
    elif name == "recursive-cl-diversity":
        found = about | {"c": half, "l": rng.randint(1, 3)}
    elif name == "alpha-k-anonymity":
        found = about | {"alpha": part, "k": k}
        if values and rng.random() < 0.4:
            found["sets"] = sets(rng, values)
    elif name == "p-sensitive-k-anonymity":
        found = {"p": rng.randint(1, 3), "k": k}
    elif name in ("t-closeness", "nt-closeness"):
        found = about | {"t": str(Fraction(rng.randint(0, 8), 12))}
        if name == "nt-closeness":
            found["n"] = rng.randint(1, 9)
        else:
            found["distance"] = rng.choice(["equal", "ordered", "hierarchical"])
            tree = parents(rng, values)
    elif name == "ke-anonymity":
        found = about | {"k": k, "e": half, "distinct": rng.random() < 0.5}
    elif name == "ck-safety":
        found = about | {"c": str(Fraction(rng.randint(2, 8), 8)), "k": rng.choice([0, 1, 1, 2])}
    elif name == "m-confidentiality":
        found = about | {"m": half} | ({"l": half} if rng.random() < 0.3 else {})
        if values and rng.random() < 0.4:
            found["sets"] = [[v] for v in rng.sample(values, rng.randint(1, len(values)))]
    elif name == "belief":
        found = about | {"max": part} | ({"sets": sets(rng, values)} if values and rng.random() < 0.3 else {})
    elif name == "personalised-privacy":
        found = about | {"p": part, "guarding": "g"}
    elif name == "delta-disclosure":
        found = about | {"delta": str(Fraction(rng.randint(1, 12), 8)), "strict": rng.random() < 0.3}
    elif name == "beta-likeness":
        found = about | {"beta": str(Fraction(rng.randint(1, 12), 6)), "enhanced": rng.random() < 0.4}
    else:
        raise KeyError(f"no random parameters for the model {name!r}; write them")
    return Asked(name, found, tree)


def sets(rng: Random, values: tuple[str, ...]) -> list[list[str]]:
    return [sorted(rng.sample(values, rng.randint(1, len(values)))) for _ in range(rng.randint(1, 2))]


def combinations(rng: Random, table: Small) -> list[list[str]]:
    names = [key.name for key in table.keys]
    return [rng.sample(names, rng.randint(1, len(names))) for _ in range(rng.randint(1, 2))]


def parents(rng: Random, values: tuple[str, ...]) -> dict[str, str]:
    """A random tree: values under some of two inner nodes, those under the root."""
    tree = {v: rng.choice(["x", "y", "root"]) for v in values}
    if "x" in tree.values():
        tree["x"] = rng.choice(["root", "z"])
    for node in ("y", "z"):
        if node in tree.values():
            tree[node] = "root"
    return tree


def numeric(table: Small) -> list[str]:
    """Sensitive columns that hold numbers."""
    return [n for n, values in table.domains.items() if not any(v.isalpha() for v in values)]
