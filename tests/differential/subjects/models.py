"""Every model against its definition: on the classes of a random lattice node, with small ones dropped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from maskwright.domain.distances import ValueTree
from maskwright.domain.guards import Guards
from maskwright.domain.model import Context, Model
from maskwright.domain.references import furnished_classes
from maskwright.domain.sample import Sample
from maskwright.domain.settings import build_registered
from maskwright.domain.summary import Summary
from maskwright.methods import METHODS
from maskwright.models import MODELS
from tests.differential.subjects import Subject
from tests.methods import row_tables
from tests.oracles.draws import draw
from tests.oracles.models import JUDGES, Asked, Published
from tests.oracles.tables import Node, Small, Value, small, task
from tests.support import context_of, passes

MOST_ROWS = {"ck-safety": 6, "m-confidentiality": 6}  # more worlds than that take too long to list


def model_of(asked: Asked, **more: Any) -> Model:
    return build_registered(MODELS, "model", asked.name, {**asked.parameters, **more}, "here")


def population(rng: Random, table: Small) -> list[tuple[Value, ...]]:
    """Everybody in the table, and others: some like them, some with values that nobody in the table has."""
    alike = [rng.choice(table.rows) for _ in range(rng.randint(0, 3))]
    other = [tuple(rng.choice(key.values) for key in table.keys) for _ in range(rng.randint(0, 4))]
    return [*table.rows, *alike, *other]


def published(table: Small, node: Node, least: int, people: Sequence[tuple[Value, ...]]) -> Published:
    """The classes of a node with at least so many rows, in plain Python."""
    kept = [(label, members) for label, members in table.classes(node).items() if len(members) >= least]
    matching = [sum(table.label(node, row) == label for row in people) for label, _ in kept]
    return Published(table, [members for _, members in kept], [label for label, _ in kept], matching)


def context(table: Small, asked: Asked) -> Context:
    found = context_of(table.built.summary)
    if asked.tree is None or asked.parameters.get("distance") != "hierarchical":
        return found
    tree = ValueTree.of_parents(table.domains[asked.attribute], asked.tree)
    return replace(found, trees={asked.attribute: tree})


def guarded(rng: Random, table: Small, attribute: str) -> tuple[Summary, list[frozenset[str] | None]]:
    """The table's summary with random guarding nodes, and the node of each row; None: whoever guards nothing."""
    values = table.domains[attribute]
    nodes = [frozenset(rng.sample(values, rng.randint(1, len(values)))) for _ in values]
    chosen = [rng.choice([None, *range(len(nodes))]) for _ in table.rows]
    number = {row: i for i, row in enumerate(table.tuples())}
    pairs = [(number[row], c) for row, c in zip(table.rows, chosen, strict=True) if c is not None]
    owner, node = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    summary = replace(table.built.summary, guards={attribute: Guards.of(nodes, owner, node)})
    return summary, [None if c is None else nodes[c] for c in chosen]


def compare(name: str, rng: Random) -> str:
    table = small(rng, most=MOST_ROWS.get(name, 8), numbers=True if name == "ke-anonymity" else None)
    asked = draw(rng, table, name)
    node, least = rng.choice(table.nodes), rng.choice([1, 1, 2])
    people = population(rng, table)
    truth = replace(published(table, node, least, people), population=len(people))
    if not truth.classes:
        return "nothing left"
    summary = table.built.summary
    if name == "personalised-privacy":
        summary, guards = guarded(rng, table, asked.attribute)
        truth = replace(truth, guards=guards)
    census = row_tables.build(people, {}, [key.hierarchy for key in table.keys]).summary
    levels = {key.name: [level] for key, level in zip(table.keys, node, strict=True)}
    method = build_registered(METHODS, "method", "optimal-lattice", {"suppression": 1}, "here")
    k = build_registered(MODELS, "model", "k-anonymity", {"k": least}, "here")
    grouping = method.group(replace(task(table, [k], levels=levels), summary=summary))
    assert grouping.levels == node
    model, known = model_of(asked), replace(context(table, asked), sample=Sample(len(people), table.n))
    classes = furnished_classes(grouping, model.needs(), census)
    verdict = model.check(classes, known)
    expected = JUDGES[name](truth, asked)
    assert verdict.ok == expected.ok, (verdict.sentence(), asked)
    labels = [tuple(x.texts[x.of_group[g]] for x in grouping.labels) for g in range(classes.n)]
    if name != "ck-safety":  # which classes fail is a choice there; that the release does is not
        mine = dict(zip(truth_labels(table, node, truth), expected.passes, strict=True))
        assert dict(zip(labels, verdict.passes.tolist(), strict=True)) == mine, asked
        assert dict(zip(labels, model.passing(classes, known).tolist(), strict=True)) == mine
        _rules(model, known, classes, dict(zip(labels, verdict.passes.tolist(), strict=True)), labels)
    near = model.nearest(classes, known)
    if near is not None:  # what a refusal recommends would really do
        milder = replace(asked, parameters={**asked.parameters, **_parsed(near)})
        assert JUDGES[name](truth, milder).ok, (near, asked)
    if expected.worst is not None:
        assert same(verdict.worst, expected.worst), (verdict.worst, expected.worst, asked)
    return "passes" if expected.ok else "fails"


def _parsed(setting: str) -> dict[str, Any]:
    """ "k: 3, e: 1.5" as parameters."""
    pairs = (part.split(": ") for part in setting.split(", "))
    return {key: int(text) if text.isdigit() else text for key, text in pairs}


def truth_labels(table: Small, node: Node, truth: Published) -> list[tuple[Value, ...]]:
    """The labels as the product writes them: intervals and masks have texts of their own."""
    found = []
    for members in truth.classes:
        row = table.rows[members[0]]
        texts: list[Value] = []
        for key, level, value in zip(table.keys, node, row, strict=True):
            code = 0 if value is None else key.hierarchy.values.index(value) + 1
            texts.append(key.hierarchy.levels[level].labels[key.hierarchy.levels[level].blocks[code]])
        found.append(tuple(texts))
    return found


def _rules(model: Model, known: Context, classes: Any, expected: dict[Any, bool], labels: list[Any]) -> None:
    """What the model tells a compiled kernel is the same requirement."""
    rules = model.kernel(known)
    if rules is None:
        return
    for g, label in enumerate(labels):
        ok = True
        for rule in rules:
            counts = {}
            if getattr(rule, "attribute", None):
                vc = classes.sensitive[rule.attribute]
                part = slice(int(vc.start[g]), int(vc.start[g + 1]))
                counts = dict(zip(vc.codes[part].tolist(), vc.counts[part].tolist(), strict=True))
            ok &= passes(rule, int(classes.sizes[g]), counts)
        assert ok == expected[label], (rules, label)


def same(found: Any, expected: Fraction | float) -> bool:
    if found is None:
        return expected == 0
    exact = isinstance(found, (int, Fraction)) and isinstance(expected, Fraction)
    return found == expected if exact else math.isclose(float(found), float(expected), rel_tol=1e-9)


def _subject(name: str) -> Subject:
    return Subject("model", name, lambda rng: compare(name, rng), ("passes", "fails"))


SUBJECTS = [_subject(name) for name in JUDGES]
