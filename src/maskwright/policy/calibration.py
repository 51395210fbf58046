"""Calibrate: the parameter that a requirement on belief asks of a method, chosen before any row is read.

What is here sees the policy and nothing else. That is what makes a proven bound a guarantee: a parameter that was
chosen by looking at the outcome would itself tell something about the values.
"""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.domain.exact import text_of
from maskwright.domain.method import Method
from maskwright.domain.model import Context, Model
from maskwright.models.belief import BeliefAtMost
from maskwright.models.simple_l_diversity import SimpleLDiversity
from maskwright.promise.method_promise import promise_of_method

OTHER = "\x00"  # stands for the values of a column that no model names


def calibrated_models(models: Sequence[Model], method: Method) -> list[Model]:
    """The models, and the diversity under which the method keeps every belief that they bound.

    A diversity is added only where it makes the bound a proven one. Everything else is left to the attack.
    """
    result = list(models)
    for model in models:
        if isinstance(model, BeliefAtMost) and model.max < 1:
            wanted = diversity_of(model, method, result)
            if wanted is not None and wanted not in result and _proven(model, method, [*result, wanted]):
                result.append(wanted)
    return result


def in_words(models: Sequence[Model], method: Method) -> list[str]:
    """What was added for which requirement, and why."""
    lines = []
    for model in models:
        wanted = diversity_of(model, method, models) if isinstance(model, BeliefAtMost) else None
        if isinstance(model, BeliefAtMost) and wanted is not None and wanted in models:
            lines.append(
                f"belief of {model.attribute} at most {text_of(model.max)}: by its proven bound {method.name} needs "
                f"simple-l-diversity with l = {text_of(wanted.l)}"
            )
    return lines


def diversity_of(belief: BeliefAtMost, method: Method, models: Sequence[Model]) -> SimpleLDiversity | None:
    """The diversity that the bound of the method is about, with the parameter that it needs."""
    if method.options().get("anatomize") or belief.within is not None:
        return None  # no diversity of values says how near numbers are
    context = policy_context([belief, *models])
    least = max((m.least_size(context) for m in models if m.use == "search"), default=1)
    found = method.diversity_for(belief.max, belief.sets, belief.attribute, least)
    return found and SimpleLDiversity(l=found[0], attribute=belief.attribute, sets=found[1])


def _proven(belief: BeliefAtMost, method: Method, models: Sequence[Model]) -> bool:
    if belief.attribute is None:
        return False
    found = promise_of_method(method, models, policy_context(models), belief.attribute)
    return found.shown or (found.bound is not None and found.bound <= belief.max)


def policy_context(models: Sequence[Model]) -> Context:
    """The columns with the values that the models name, and one more: nothing of the data."""
    named: dict[str, dict[str, None]] = {}
    for model in models:
        attribute = model.attribute_name()
        if attribute is not None:
            values: list[str] = getattr(model, "named_values", list)()
            named.setdefault(attribute, {}).update(dict.fromkeys(values))
    return Context(domains={a: (*values, OTHER) for a, values in named.items()})
