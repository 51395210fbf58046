"""A table with only some of its sensitive attributes: what codip publishes one of for each subset."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from maskwright.domain.method import Task
from maskwright.domain.model import Context, Model
from maskwright.domain.summary import Joint, Shared, Summary

V = TypeVar("V")


def project_summary(summary: Summary, names: Sequence[str]) -> Summary:
    """The summary of the same rows with the quasi-identifiers and these sensitive attributes."""
    if tuple(names) == tuple(summary.sensitive):
        return summary
    shared = None
    if summary.shared is not None:
        s = summary.shared
        shared = Shared(s.tuples, s.people, s.n_people, _only(s.values, names))
    joint = None if summary.joint is None else _regrouped(summary, summary.joint, names)
    personal = None if summary.personal is None else _regrouped(summary, summary.personal, names)
    owned = summary.owned and replace(summary.owned, values=_only(summary.owned.values, names))
    sensitive = {name: summary.sensitive[name] for name in names}
    return replace(summary, sensitive=sensitive, shared=shared, joint=joint, personal=personal, owned=owned)


def _regrouped(summary: Summary, joint: Joint, names: Sequence[str]) -> Joint:
    """Cells that differ only in other attributes become one; ascending by tuple, values and person."""
    places = [list(summary.sensitive).index(name) for name in names]
    number = joint.tuples
    first = np.arange(len(number))
    for place in places:
        radix = len(list(summary.sensitive.values())[place].values) + 1
        _, first, number = np.unique(
            number * radix + joint.values[place], return_index=True, return_inverse=True
        )
    if joint.people is not None:
        people = int(joint.people.max(initial=0)) + 1
        _, first, number = np.unique(number * people + joint.people, return_index=True, return_inverse=True)
    elif not places:
        _, first, number = np.unique(number, return_index=True, return_inverse=True)
    rows = np.zeros(len(first), dtype=np.int64)
    np.add.at(rows, number, joint.rows)
    people_ = None if joint.people is None else joint.people[first]
    return Joint(joint.tuples[first], joint.values[places][:, first], rows, people_)


def models_about(models: Sequence[Model], names: Collection[str]) -> list[Model]:
    """The models that a table with these sensitive attributes must satisfy."""
    result = []
    for model in models:
        several = getattr(model, "attributes", None)
        if several is not None:
            here = tuple(name for name in several if name in names)
            if here:
                result.append(model.model_copy(update={"attributes": here}))
        elif model.about == "quasi-identifiers" or model.attribute_name() in (None, *names):
            result.append(model)
    return result


def _only(mapping: Mapping[str, V], names: Collection[str]) -> dict[str, V]:
    return {name: value for name, value in mapping.items() if name in names}


def context_for(context: Context, names: Collection[str]) -> Context:
    """What models may compare a table with these sensitive attributes with."""
    return replace(
        context,
        reference=_only(context.reference, names),
        domains=_only(context.domains, names),
        flagged=_only(context.flagged, names),
    )


def task_for(task: Task, names: Sequence[str]) -> Task:
    """The task of making a table with these sensitive attributes."""
    return replace(
        task,
        summary=project_summary(task.summary, names),
        search=models_about(task.search, names),
        gates=models_about(task.gates, names),
        context=context_for(task.context, names),
        sets=tuple(part for s in task.sets if (part := s.only(names)).values),
    )
