"""How many people of the population table match each class."""

from __future__ import annotations

from maskwright.core.classes import Classes, Ints
from maskwright.core.model import Context, Model
from maskwright.errors import PolicyError


def matches(model: Model, classes: Classes, context: Context) -> Ints:
    """People of the population per class; refused where there is no population table."""
    if context.population is None:
        raise PolicyError(f"{model.name} needs a population table to compare the classes with; name one")
    if len(context.population) != classes.n:
        raise PolicyError(
            f"{model.name}: the population is counted for {len(context.population)} classes of {classes.n}"
        )
    return context.population
