"""Lattices of p-sensitive k-anonymity, and the two utility figures that lattice searches use."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.domain.classes import Classes, ValueCounts
from maskwright.domain.grouping import Allocation, Grouping, Labels
from maskwright.domain.hierarchy import Hierarchy, Level
from maskwright.domain.method import Task
from maskwright.domain.model import Context
from maskwright.domain.summary import Summary
from maskwright.methods._lattice.nodes import Nodes
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.metrics.loss import attribute_losses
from maskwright.metrics.loss import discernibility as discernibility_of
from maskwright.models import MODELS
from tests.oracles.lattice_cases import minimal_among, on_paper, plain_binary_search

Case = dict[str, Any]


def hierarchy_of(attribute: str, values: Sequence[str], levels: Sequence[Sequence[str]]) -> Hierarchy:
    """Levels exactly as given, each an own level of a chain, also where two are the same partition."""
    built = []
    for number, labels in enumerate(levels):
        block = {label: i + 1 for i, label in enumerate(dict.fromkeys(labels))}
        codes = np.array([0, *(block[label] for label in labels)], dtype=np.int32)
        built.append(Level(str(number), (None, *block), codes))
    order = np.triu(np.ones((len(levels), len(levels)), dtype=bool))
    return Hierarchy(attribute, tuple(values), tuple(built), order)


def summary_of(attributes: Sequence[Hierarchy], rows: Sequence[Sequence[str]], nkey: int) -> Summary:
    """The frequency set, a tuple for each row; `rows` hold the key attributes first, then the sensitive ones."""
    codes = [[h.values.index(row[a]) + 1 for row in rows] for a, h in enumerate(attributes)]
    ones = np.ones(len(rows), dtype=np.int64)
    sensitive = {}
    for a in range(nkey, len(rows[0]) if rows else nkey):
        domain = sorted({row[a] for row in rows})
        numbers = np.array([domain.index(row[a]) + 1 for row in rows], dtype=np.int64)
        sensitive[str(a)] = ValueCounts.collect(
            tuple(map(str, domain)), len(rows), np.arange(len(rows)), numbers, ones
        )
    table = np.array(codes, dtype=np.int32).reshape(len(attributes), len(rows))
    return Summary(tuple(attributes), table, ones, ones, sensitive)


def lattice(case: Case) -> Case:
    rows, nkey = case["rows"], case["nkey"]
    attributes = [
        hierarchy_of(str(a), list(levels[0]), [[level[value] for value in levels[0]] for level in levels])
        for a, levels in enumerate(case["hierarchies"])
    ]
    summary = summary_of(attributes, rows, nkey)
    k, p, ts = case["k"], case.get("p") or 1, case.get("ts") or 0
    sensitive = bool(summary.sensitive)
    name, extra = ("p-sensitive-k-anonymity", {"p": p}) if sensitive else ("k-anonymity", {})
    model = MODELS[name].model_validate({"k": k, **extra})
    domains = {name: counts.values for name, counts in summary.sensitive.items()}
    task = Task(summary, [model], Context(domains=domains), np.random.default_rng(0))
    share = Fraction(min(ts, len(rows)), max(1, len(rows)))
    nodes = Nodes(task, OptimalLattice(suppression=share), conditions=False)
    everywhere = range(nodes.lattice.n_nodes)
    answers = {number: on_paper(nodes, number) for number in everywhere}
    satisfying = [number for number in everywhere if answers[number][1]]
    satisfying.sort(key=lambda number: (nodes.heights[number], number))
    found = plain_binary_search(nodes, lambda number: answers[number][1])

    def levels_of(numbers: Sequence[int]) -> list[list[int]]:
        return [list(nodes.lattice.node(number)) for number in numbers]

    return {
        "violating": {"".join(map(str, nodes.lattice.node(n))): answers[n][0] for n in everywhere},
        "satisfying": levels_of(satisfying),
        "minimal": levels_of(minimal_among(nodes, satisfying)),
        "samarati": None
        if found is None
        else {"height": int(nodes.heights[found]), "node": levels_of([found])[0]},
    }


def _path(value: str, parent: dict[str, str]) -> list[str]:
    """From the root down to a value."""
    path = [value]
    while path[0] in parent:
        path.insert(0, parent[path[0]])
    return path


def _taxonomy(attribute: str, parent: dict[str, str]) -> Hierarchy:
    """The levels of a tree, by depth; a leaf that ends higher up stays itself."""
    leaves = [node for node in parent if node not in parent.values()]
    paths = [_path(leaf, parent) for leaf in leaves]
    depths = range(max(map(len, paths)) - 1, -1, -1)
    return hierarchy_of(attribute, leaves, [[path[min(d, len(path) - 1)] for path in paths] for d in depths])


def _release(trees: Sequence[Hierarchy], original: Sequence[Any], published: Sequence[Any]) -> Grouping:
    """A release in which every row is a group of its own."""
    labels = []
    number = np.arange(len(original), dtype=np.int32)
    for a, tree in enumerate(trees):
        coverage = []
        for before, after in zip(original, published, strict=True):
            code = tree.values.index(before[a]) + 1
            level = next(level for level in tree.levels if level.labels[level.blocks[code]] == after[a])
            coverage.append(int(level.leaves[level.blocks[code]]))
        texts = tuple(row[a] for row in published)
        labels.append(Labels(tree.attribute, texts, np.array(coverage, dtype=np.int64), number))
    summary = summary_of(trees, original, len(trees))
    allocation = Allocation(number.astype(np.int64), number.astype(np.int64), summary.rows)
    return Grouping(summary, allocation, tuple(labels), Classes(summary.rows, summary.rows))


def information_loss(case: Case) -> Case:
    trees = [_taxonomy(str(a), tree) for a, tree in enumerate(case["taxonomies"])]
    weights = case.get("weights") or [Fraction(1, len(trees))] * len(trees)

    def loss(original: Sequence[Any], published: Sequence[Any]) -> Fraction:
        # the metric itself takes weights of any sum and normalises them; the cases do not
        losses = attribute_losses(_release(trees, original, published)).values()
        return sum((Fraction(w) * x for w, x in zip(weights, losses, strict=True)), Fraction(0))

    rows = list(zip(case["original"], case["published"], strict=True))
    return {
        "per_tuple": [loss([original], [published]) for original, published in rows],
        "dist": loss(case["original"], case["published"]),
    }


def discernibility(case: Case) -> int:
    sizes, suppressed, n = case["class_sizes"], case.get("suppressed") or 0, case.get("n")
    rows = np.array([*sizes, suppressed], dtype=np.int64)
    groups = np.array([*range(len(sizes)), -1], dtype=np.int64)
    total = np.array([rows.sum() if n is None else n], dtype=np.int64)
    summary = Summary((), np.zeros((0, 1), dtype=np.int32), total, total, {})
    allocation = Allocation(np.zeros(len(rows), dtype=np.int64), groups, rows)
    return discernibility_of(Grouping(summary, allocation, (), Classes(rows[:-1], rows[:-1])), {})


FUNCTIONS = {"lattice": lattice, "information_loss": information_loss, "discernibility": discernibility}
