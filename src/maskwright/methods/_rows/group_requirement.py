"""The group requirement: all models that a method searches on, decided for many groups of rows at once."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints
from maskwright.domain.method import Task
from maskwright.domain.model import Model, fewest_rows
from maskwright.domain.references import coded_as, context_of_rows
from maskwright.domain.unmet_requirements import unmet_requirement
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.kernels.partition import Int32s
from maskwright.methods._rows.rows import Rows

Bools = NDArray[np.bool_]


class GroupRequirement:
    """Decides groups of rows by the models of a task.

    Attributes:
        least: the fewest rows that a group must have by the parameters of the models alone: k, ⌈l⌉, p. The same
            for every table, so that a method may rely on it without looking at the data.
        looks_at_values: does any model look at sensitive values? If not, no decision says anything about one.
    """

    def __init__(self, task: Task, rows: Rows, method: str) -> None:
        self.rows, self.context, self.progress = rows, task.context, task.progress
        self.models = list(task.search)
        for model in self.models:
            if not model.is_local() or model.needs():
                raise _asked_of_all(method, model)
        self.least = fewest_rows(self.models, task.context)
        self.looks_at_values = any(model.about == "sensitive" for model in self.models)
        self.sensitive = self._attributes()

    def among(self, order: Int32s) -> GroupRequirement:
        """The requirement on groups of some rows only, which are then what groups are compared with."""
        all_ = self.rows.classes(order, np.array([0]), np.array([len(order)]))
        counts = {name: vc.totals for name, vc in all_.sensitive.items()}
        result = copy(self)
        result.context = context_of_rows(self.context, counts, int(all_.sizes[0]))
        return result

    def _attributes(self) -> list[str]:
        """The sensitive attributes that have to be counted."""
        names: set[str] = set()
        for model in self.models:
            rules = model.kernel(self.context)
            if rules is None:
                return list(self.rows.summary.sensitive)
            names |= {rule.looks_at for rule in rules if rule.looks_at is not None}
        return [name for name in self.rows.summary.sensitive if name in names]

    def passing(self, order: Int32s, lo: Ints, hi: Ints) -> Bools:
        """Which segments of `order` satisfy every model."""
        result = hi - lo >= max(1, self._size())
        if not self.models or not result.any():
            return np.asarray(result)
        lo, hi = np.ascontiguousarray(lo[result]), np.ascontiguousarray(hi[result])
        result[result] = self.decide(self.rows.classes(order, lo, hi, self.sensitive))
        return np.asarray(result)

    def decide(self, classes: Classes) -> Bools:
        """Which classes satisfy every model."""
        passes = np.ones(classes.n, dtype=bool)
        classes = coded_as(classes, self.context)
        for model in self.models:
            passes &= model.passing(classes, self.context)
        return passes

    def _size(self) -> int:
        return max((model.least_size(self.context) for model in self.models), default=1)


def refuse_guards(task: Task, method: str) -> None:
    """Refuse to search on guarding nodes, which are known of whole tuples, where the rows of one may be split."""
    for model in task.search:
        if "guards" in model.needs():
            raise _asked_of_all(method, model)


def _asked_of_all(method: str, model: Model) -> PolicyError:
    return PolicyError(
        f"method {method} decides group by group, which {model.name} does not allow; write use: gate for {model.name}, "
        "so that it is asked of the whole release"
    )


def refuse_unless_met(task: Task, classes: Classes, where: str) -> None:
    """Raise `PolicyNotMet` for the first model that does not hold for the classes."""
    classes = coded_as(classes, task.context)
    if not classes.n:
        raise PolicyNotMet(f"{where}: no group is left to publish")
    for model in task.search:
        if not model.passing(classes, task.context).all():
            raise unmet_requirement(model, model.check(classes, task.context), classes, task.context, where)
