"""The strongest setting of every model that a table satisfies: the largest k and l, the smallest t and alpha …

Each model is first asked for the impossible; its own `nearest` then says what these classes would satisfy, and the
model with that setting measures them. So a figure here is decided by the code that decides about releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from maskwright.domain.classes import Classes
from maskwright.domain.model import Context, Model
from maskwright.domain.settings import build_registered
from maskwright.domain.verdict import Verdict
from maskwright.errors import InputError, PolicyError
from maskwright.models import MODELS

MUCH, LITTLE = 10**9, "1e-9"
FACTS = 20  # how many known facts (c,k)-safety is asked to withstand

# What no table satisfies, per model; a model that is not listed needs more than a table to be measured.
IMPOSSIBLE: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "k-anonymity": [{"k": MUCH}],
    "simple-l-diversity": [{"l": MUCH}],
    "distinct-l-diversity": [{"l": MUCH}],
    "entropy-l-diversity": [{"l": MUCH}],
    "recursive-cl-diversity": [{"c": LITTLE, "l": 2}, {"c": LITTLE, "l": 3}],
    "alpha-k-anonymity": [{"alpha": LITTLE, "k": MUCH}],
    "p-sensitive-k-anonymity": [{"p": MUCH, "k": MUCH}],
    "t-closeness": [{"t": 0, "distance": d} for d in ("equal", "ordered", "hierarchical")],
    "ke-anonymity": [{"k": MUCH, "e": MUCH}],
    "ck-safety": [{"c": 1, "k": FACTS}],
    "delta-disclosure": [{"delta": LITTLE}],
    "beta-likeness": [{"beta": LITTLE}],
    "delta-presence": [{"delta_min": 0, "delta_max": LITTLE}, {"delta_min": 1, "delta_max": 1}],
    "k-map": [{"k": MUCH}],
    "average-risk": [{"max": LITTLE}],
    "highest-risk": [{"max": LITTLE}],
}


def strongest_verdicts(shown: Classes, classes: Classes, context: Context) -> list[Verdict]:
    """The strongest verdicts that hold, and those that fail for every setting.

    Args:
        shown: classes of equal published quasi-identifiers.
        classes: classes whose sensitive values are published together.
        context: what distributions are compared with.
    """
    found = []
    for name, settings in IMPOSSIBLE.items():
        about = MODELS[name].about
        where = shown if about == "quasi-identifiers" else classes
        for values in settings:
            attributes = list(classes.sensitive) if "attribute" in MODELS[name].model_fields else [None]
            if about == "sensitive" and not classes.sensitive:
                continue
            for attribute in attributes:
                if _makes_sense(name, values, attribute, where, context):
                    verdict = _strongest(name, values, attribute, where, context)
                    found += [verdict] if verdict is not None else []
    return found


def _makes_sense(
    name: str, values: Mapping[str, Any], attribute: str | None, classes: Classes, context: Context
) -> bool:
    if name in ("k-map", "delta-presence"):
        return classes.population is not None
    ordered = attribute is not None and classes.sensitive[attribute].ordered
    distance = values.get("distance", "equal")
    if name == "ke-anonymity" or distance == "ordered":
        return ordered
    return distance != "hierarchical" or attribute in context.hierarchies


def _strongest(
    name: str, values: Mapping[str, Any], attribute: str | None, classes: Classes, context: Context
) -> Verdict | None:
    about = {"attribute": attribute} if attribute else {}
    try:
        impossible = _built(name, {**values, **about})
        near = impossible.nearest(classes, context)
        if near is None:
            return impossible.check(classes, context)
        return _built(name, {**values, **about, **_settings(near)}).check(classes, context)
    except (
        PolicyError,
        InputError,
    ):  # the table does not fit the model: several values per person, no numbers …
        return None


def _built(name: str, values: Mapping[str, Any]) -> Model:
    return build_registered(MODELS, "model", name, values, name)


def _settings(near: str) -> dict[str, str]:
    """`k: 3, e: 2` as the settings it names."""
    return dict(part.split(": ", 1) for part in near.split(", "))
