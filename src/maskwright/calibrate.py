"""Calibrate: the parameter that a requirement on belief asks of a method, chosen before any row is read.

What is here sees the policy and nothing else. That is what makes a proven bound a guarantee: a parameter that was
chosen by looking at the outcome would itself tell something about the values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from maskwright.core.exact import text_of
from maskwright.core.guarantees import family, l_for, promise
from maskwright.core.method import Method
from maskwright.core.model import Context, Model
from maskwright.models.belief import BeliefAtMost
from maskwright.models.simple_l_diversity import SimpleLDiversity

OTHER = "\x00"  # stands for the values of a column that no model names


def calibrated(models: Sequence[Model], method: Method) -> list[Model]:
    """The models, and the diversity under which the method keeps every belief that they bound.

    A diversity is added only where it makes the bound a proven one. Everything else is left to the attack.
    """
    result = list(models)
    for model in models:
        if isinstance(model, BeliefAtMost) and model.max < 1:
            wanted = _diversity(model, method, result)
            if wanted is not None and wanted not in result and _proven(model, method, [*result, wanted]):
                result.append(wanted)
    return result


def in_words(models: Sequence[Model], method: Method) -> list[str]:
    """What was added for which requirement, and why."""
    lines = []
    for model in models:
        wanted = _diversity(model, method, models) if isinstance(model, BeliefAtMost) else None
        if isinstance(model, BeliefAtMost) and wanted is not None and wanted in models:
            lines.append(
                f"belief of {model.attribute} at most {text_of(model.max)}: by its proven bound {method.name} needs "
                f"simple-l-diversity with l = {text_of(wanted.l)}"
            )
    return lines


def _diversity(belief: BeliefAtMost, method: Method, models: Sequence[Model]) -> SimpleLDiversity | None:
    """The diversity that the bound of the method is about, with the parameter that it needs."""
    l = l_for(method.name, method.options(), belief.max)  # noqa: E741 - the literature's name
    if l is None or method.options().get("anatomize"):
        return None
    sets, name = belief.sets, family(method.name, method.options())
    if name == "anatomy":
        if getattr(method, "attribute", None) not in (None, belief.attribute):
            return None  # its buckets are about another column
        # a bucket holds each value once, so that a set of values occurs as often as it has members
        members = max((len(set(s)) for s in sets or ()), default=1)
        l, sets = math.ceil(members / belief.max), None  # noqa: E741
    elif name in ("greedy", "randomised-greedy"):
        context = _context([belief, *models])
        sizes = [m.least_size(context) for m in models if m.use == "search"]
        l = max([math.ceil(l), *sizes])  # noqa: E741 - buckets of l rows must be large enough for every model
    return SimpleLDiversity(l=Fraction(l), attribute=belief.attribute, sets=sets)


def _proven(belief: BeliefAtMost, method: Method, models: Sequence[Model]) -> bool:
    if belief.attribute is None:
        return False
    found = promise(method.name, method.options(), models, _context(models), belief.attribute)
    within = found.bound is not None and found.bound <= belief.max
    return found.status == "guaranteed" and (found.shown or within)


def _context(models: Sequence[Model]) -> Context:
    """The columns with the values that the models name, and one more: nothing of the data."""
    named: dict[str, dict[str, None]] = {}
    for model in models:
        attribute = model.attribute_name()
        if attribute is not None:
            values: list[str] = getattr(model, "named_values", list)()
            named.setdefault(attribute, {}).update(dict.fromkeys(values))
    return Context(domains={a: (*values, OTHER) for a, values in named.items()})
