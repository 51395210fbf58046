"""Every utility metric against its definition, row by row."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import numpy as np

from maskwright.domain.grouping import Grouping
from maskwright.domain.settings import build_registered
from maskwright.errors import PolicyNotMet
from maskwright.methods import METHODS
from maskwright.metrics import METRICS
from maskwright.metrics.queries import Workload, _drawn, _QueryTable, query_errors
from tests.differential.subjects import Subject
from tests.differential.subjects.lattices import task_of
from tests.differential.subjects.partitions import Setup, groups_of
from tests.oracles import metrics as plain
from tests.oracles.lattices import Problem
from tests.oracles.models import Asked
from tests.oracles.partitions import Associations
from tests.oracles.tables import Value, small

# how well a model predicts is not defined by a formula; tests/metrics/test_usefulness.py pins its two ends
NOT_COMPARED = {"predictive-utility": "a trained model has no second definition to be compared with"}


def release(rng: Random) -> tuple[Problem, Grouping, plain.Shown] | None:
    """A random node with small classes suppressed."""
    table = small(rng)
    node = rng.choice(table.nodes)
    weights = {key.name: Fraction(rng.randint(1, 3)) for key in table.keys} if rng.random() < 0.5 else {}
    made = Problem(
        table, [Asked("k-anonymity", {"k": rng.randint(1, 3)})], suppression=Fraction(1), star=rng.random() < 0.4,
        weights=weights, levels={key.name: [n] for key, n in zip(table.keys, node, strict=True)},
    )  # fmt: skip
    truth = made.evaluate(node)
    how = build_registered(METHODS, "method", "optimal-lattice", made.options(), "here")
    try:
        grouping = how.group(task_of(made))
    except PolicyNotMet:
        assert truth is None
        return None
    assert truth is not None
    shown = plain.Shown(table, node, truth.kept, truth.gone, made.star, rng.random() < 0.4)
    return made, grouping, shown


def score(made: Problem, shown: plain.Shown, objective: str, weighted: bool = True) -> Any:
    asked = replace(made, objective=objective, weights=made.weights if weighted else {})
    return asked.score(shown.node, shown.kept, shown.gone)


def expected(name: str, made: Problem, shown: plain.Shown) -> Fraction | float:
    n, gone = shown.table.n, len(shown.gone)
    if name in ("information-loss", "discernibility", "average-class-size", "non-uniform-entropy"):
        return score(made, shown, name)
    if name == "granularity":
        return 1 - score(made, shown, "information-loss", weighted=False)
    if name == "precision":
        return score(made, shown, name, weighted=False)
    if name == "arx-loss":
        return float(score(made, shown, name, weighted=False)) ** (1 / len(shown.table.keys)) - 1
    if name == "suppression":
        return Fraction(gone, n)
    if name == "correlation-change":
        return plain.correlation_change(shown)
    if name == "two-way-distance":
        return plain.two_way_distance(shown)
    pairs = shown.pairs()
    if name == "distribution-distance":
        return sum(plain.variation(b, a) for b, a in pairs.values()) / len(pairs)
    assert name == "earth-movers-distance"
    return sum(plain.earth_movers(shown, x, b, a) for x, (b, a) in pairs.items()) / len(pairs)


def labels(name: str, rng: Random) -> str:
    found = release(rng)
    if found is None:
        return "refused"
    made, grouping, shown = found
    reads_groups = METRICS[name].reads == "groups"
    if not reads_groups:
        shown = replace(shown, exact=False)
    measured = METRICS[name].measure(grouping, made.weights, shown.exact)
    truth = expected(name, made, shown)
    close = 2e-4 if name == "non-uniform-entropy" else 1e-9  # the oracle rounds bits to four digits
    if math.isnan(truth):  # of a single column there are no pairs
        assert math.isnan(measured)
        return "undefined"
    assert math.isclose(float(measured), float(truth), rel_tol=1e-9, abs_tol=close), (measured, truth)
    if isinstance(truth, Fraction) and isinstance(measured, Fraction):
        assert measured == truth
    return "suppressed" if shown.gone else "published"


def queries(rng: Random) -> str:
    found = release(rng)
    if found is None:
        return "refused"
    _, grouping, shown = found
    table, name = shown.table, "s"
    workload = Workload(queries=8, dimension=rng.randint(1, 3), selectivity=0.4, seed=rng.randrange(2**31))
    answered = query_errors(grouping, workload, shown.exact)
    truth, estimates = [], []
    domains: list[list[Value]] = [[None, *key.hierarchy.values] for key in table.keys]
    values: list[Value] = [None, *table.domains[name]]
    for allowed, wanted in _drawn(_QueryTable.of(grouping, workload, shown.exact), workload):
        assert wanted is not None
        for q in range(wanted.shape[1]):
            asked = [{d[c] for c in np.flatnonzero(x[:, q])} for d, x in zip(domains, allowed, strict=True)]
            having = {values[c] for c in np.flatnonzero(wanted[:, q])}
            if count := plain.actual(shown, asked, having, name):
                truth.append(count)
                estimates.append(plain.estimate(shown, asked, having, name))
    assert answered.actual.tolist() == truth
    assert np.allclose(answered.estimate, estimates, atol=1e-9)
    errors = [abs(e - t) / t for e, t in zip(estimates, truth, strict=True)]
    if errors:
        assert math.isclose(answered.mean, sum(errors) / len(errors), abs_tol=1e-9)
    return "answered" if errors else "nobody matches"


def distortion(rng: Random) -> str:
    """How many published values are wrong, where MASK changed some."""
    table = small(rng, secrets=1, missing=False)
    value = rng.choice(table.domains["s"])
    asked = [Asked("k-anonymity", {"k": rng.randint(1, 3)}),
             Asked("simple-l-diversity", {"l": "2", "values": [value], "attribute": "s"})]  # fmt: skip
    made = Setup(table, asked, rng.randrange(2**32))
    found = made.run("mask", base=rng.choice(["optimal-lattice", "mondrian"]))
    if found is None:
        return "refused"
    groups, _ = groups_of(made, found)
    assert found.published is not None
    wrong = sum(
        (Counter(table.values("s", rows)) - Counter(found.published["s"].of_class(g))).total()
        for g, rows in enumerate(groups)
    )
    assert METRICS["sensitive-distortion"].measure(found, {}) == Fraction(wrong, sum(map(len, groups)))
    return "wrong values" if wrong else "none wrong"


def plans(name: str, rng: Random) -> str:
    table = small(rng, secrets=2)
    together = rng.random() < 0.5
    plan = [["s", "t"]] if together else [["s"], ["t"]]
    how = build_registered(METHODS, "method", "codip", {"plan": plan}, "here")
    pieces = how.parts(task_of(Problem(table, [Asked("k-anonymity", {"k": 1})])))
    figures = Associations(list(table.secrets.values()))
    truth = {"association-loss": figures.alpha, "information-exposure": figures.beta}[name](
        [[0, 1]] if together else [[0], [1]]
    )
    assert math.isclose(float(METRICS[name].measure(pieces[0].grouping, {})), truth, abs_tol=1e-9)
    return "one table" if together else "two tables"


LABELS = ["information-loss", "granularity", "arx-loss", "precision", "non-uniform-entropy", "discernibility",
          "average-class-size", "suppression", "distribution-distance", "earth-movers-distance",
          "correlation-change", "two-way-distance"]  # fmt: skip
SUBJECTS = [
    *(Subject("metric", name, partial(labels, name), ("published", "suppressed")) for name in LABELS),
    Subject("metric", "query-error", queries, ("answered",)),
    Subject("metric", "sensitive-distortion", distortion, ("wrong values", "none wrong")),
    *(
        Subject("metric", name, partial(plans, name), ("one table", "two tables"))
        for name in ("association-loss", "information-exposure")
    ),
]
