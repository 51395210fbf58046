"""Privacy models, distances and the conditions of p-sensitivity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.domain.classes import Classes, ValueCounts
from maskwright.domain.distances import ValueTree, distance_between
from maskwright.domain.distances import class_distances as distances
from maskwright.domain.model import Context, Model
from maskwright.domain.sensitive import distinct_values
from maskwright.methods._lattice.nodes import max_groups, max_p
from maskwright.models import MODELS

Case = dict[str, Any]
KINDS = {"variational": "equal", "equal": "equal", "ordered": "ordered", "hierarchical": "hierarchical"}


def count(
    columns: dict[str, Sequence[Sequence[Any]]], domains: dict[str, Sequence[Any]] | None = None
) -> Classes:
    """Classes from the lists of their values, for each sensitive attribute."""
    sensitive = {}
    sizes: list[int] = []
    for name, classes in columns.items():
        domain = list((domains or {}).get(name) or sorted({value for values in classes for value in values}))
        domain += sorted({value for values in classes for value in values if value not in domain})
        code = {value: i + 1 for i, value in enumerate(domain)}
        owner = [c for c, values in enumerate(classes) for _ in values]
        codes = [code[value] for values in classes for value in values]
        sensitive[name] = ValueCounts.collect(
            tuple(map(str, domain)), len(classes), np.array(owner, dtype=np.int64), np.array(codes, dtype=np.int64),
            np.ones(len(codes), dtype=np.int64), ordered=True,
        )  # fmt: skip
        sizes = [len(values) for values in classes]
    people = np.array(sizes, dtype=np.int64)
    return Classes(people, people, sensitive)


def _tree(domain: Sequence[Any], parent: dict[str, str] | None) -> ValueTree | None:
    return None if parent is None else ValueTree.of_parents([str(value) for value in domain], parent)


def build_model(model: Case) -> Model:
    """The product's model for a model of the cases."""
    name = model["name"]
    sensitive = model.get("sensitive")
    chosen = {} if sensitive is None else {"values": tuple(map(str, sensitive))}
    parameters: dict[str, tuple[str, Case]] = {
        "k_anonymity": ("k-anonymity", {"k": model.get("k")}),
        "simple_l": ("simple-l-diversity", {"l": model.get("l"), **chosen}),
        "binary_l": ("simple-l-diversity", {"l": model.get("l"), "sets": [model.get("positive") or ["P"]]}),
        "set_l": ("simple-l-diversity", {"l": model.get("l"), "sets": [model.get("s")]}),
        "distinct_l": ("distinct-l-diversity", {"l": _ceil(model.get("l"))}),
        "entropy_l": ("entropy-l-diversity", {"l": model.get("l")}),
        "recursive_cl": ("recursive-cl-diversity", {"c": model.get("c"), "l": model.get("l")}),
        "alpha_k": ("alpha-k-anonymity", {"alpha": model.get("alpha"), "k": model.get("k"), **chosen}),
        "ke": ("ke-anonymity", {"k": model.get("k"), "e": model.get("e")}),
        "p_sensitive": ("p-sensitive-k-anonymity", {"p": model.get("p"), "k": model.get("k")}),
        "t_closeness": ("t-closeness", {"t": model.get("t"), "distance": _kind(model)}),
        "nt_closeness": (
            "nt-closeness", {"n": model.get("n"), "t": model.get("t"), "distance": _kind(model)}
        ),
    }  # fmt: skip
    registered, values = parameters[name]
    return MODELS[registered].model_validate(values)


def _ceil(value: Any) -> int | None:
    return None if value is None else math.ceil(Fraction(value))


def _kind(case: Case) -> str:
    return KINDS[case.get("kind") or "variational"]


def context_of(classes: Classes, model: Case) -> Context:
    counts = classes.sensitive["s"]
    tree = _tree(counts.values, model.get("parent"))
    return Context(
        reference={"s": counts.totals},
        n_people=int(classes.sizes.sum()),
        trees={} if tree is None else {"s": tree},
        supersets=model.get("supersets"),
    )


def privacy_check(case: Case) -> bool:
    model = case["model"]
    classes = count({"s": case["classes"]}, {"s": model.get("domain")})
    return build_model(model).check(classes, context_of(classes, model)).ok


def class_distances(case: Case) -> Case:
    classes = count({"s": case["classes"]}, {"s": case.get("domain")})
    counts = classes.sensitive["s"]
    tree = _tree(counts.values, case.get("parent"))
    found = list(distances(counts, counts.totals, _kind(case), tree))
    return {"per_class": found, "max": max(found)}


def emd(case: Case) -> Fraction:
    p, q = ([Fraction(x) for x in case[side]] for side in "pq")
    scale = math.lcm(*(x.denominator for x in p + q))
    tree = _tree(case.get("leaves") or (), case.get("parent"))
    return distance_between([int(x * scale) for x in p], [int(x * scale) for x in q], _kind(case), tree)


def p_sensitivity(case: Case) -> Case:
    groups: dict[tuple[Any, ...], list[list[Any]]] = {}
    for row in case["rows"]:
        groups.setdefault(tuple(row[: case["nkey"]]), []).append(row[case["nkey"] :])
    width = len(case["rows"][0]) - case["nkey"]
    classes = count({str(a): [[row[a] for row in rows] for rows in groups.values()] for a in range(width)})
    sizes = MODELS["k-anonymity"].model_validate({"k": 1}).check(classes, Context())
    values = MODELS["p-sensitive-k-anonymity"].model_validate({"p": 1, "k": 1}).check(classes, Context())
    alone = sum(int((distinct_values(counts) == 1).sum()) for counts in classes.sensitive.values())
    return {"k": sizes.worst, "p": values.worst, "attribute_disclosures": alone, "groups": classes.n}


def condition2(case: Case) -> Case:
    return {"maxP": max_p(case["freqs"]), "maxGroups": max_groups(case["freqs"], case["p"])}


FUNCTIONS = {
    "privacy_check": privacy_check,
    "class_distances": class_distances,
    "emd": emd,
    "p_sensitivity": p_sensitivity,
    "condition2": condition2,
}
