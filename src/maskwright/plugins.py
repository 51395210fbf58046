"""Models, methods, attacks and metrics of other packages: what they derive from, how they are registered and tried.

A package offers them by entry points in groups called like ours (`maskwright.models`, `.methods`, `.attacks`,
`.metrics`), a notebook by `mw.register`, or by handing an instance in wherever a name is taken. Nothing of a third
party is ever labelled guaranteed. What a model says of itself is tried on small classes before a search relies on it.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from inspect import getmembers, isabstract, isclass
from math import isfinite, isnan
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from maskwright.api import anonymize
from maskwright.api import attack as attack_release
from maskwright.domain.adversary import Adversary, Attack, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Classes
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Decisions, Method, Task
from maskwright.domain.metric import Metric
from maskwright.domain.model import Context, Model
from maskwright.domain.model_contract import contract_breaches
from maskwright.domain.registry import is_outside, register_class
from maskwright.domain.release import Release
from maskwright.domain.settings import Registered, likely_settings, parse_settings
from maskwright.domain.verdict import Verdict
from maskwright.errors import MaskwrightError, PolicyNotMet, UsageError
from maskwright.metrics import METRICS
from maskwright.policy.policy import Policy

__all__ = [
    "Adversary", "Attack", "Belief", "Beliefs", "Classes", "Context", "Decisions", "Grouping", "Method", "Metric",
    "Model", "Target", "Task", "Verdict", "contract_findings", "register",
]  # fmt: skip

PEOPLE = 240  # rows of the table that plug-ins are tried on


def register(thing: type[Registered] | Metric) -> Any:
    """Make a model, method, attack or metric of your own known by its name; also as a decorator of a class.

    Args:
        thing: a class derived from `Model`, `Method` or `Attack` with a `name`, or a `Metric`.
    """
    if isinstance(thing, Metric):
        if thing.name in METRICS and not is_outside(METRICS[thing.name].function):
            raise UsageError(f"metric {thing.name!r}: this name is taken; give it another")
        METRICS[thing.name] = thing
        return thing
    register_class(thing)
    return thing


def contract_findings(package: str) -> Iterator[tuple[str, list[str]]]:
    """Everything that a package offers, each with what is wrong with it.

    Args:
        package: the name of a package or module that can be imported.
    """
    offered = list(_offered(package))
    if not offered:
        raise UsageError(
            f"{package!r} offers no model, method, attack or metric: a class derived from Model, Method or Attack "
            "(maskwright.plugins) that has a `name`, or a Metric"
        )
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "people.csv"
        _write_people(table)
        for thing in offered:
            yield _name_of(thing), _findings(thing, table)


def _offered(package: str) -> Iterator[Any]:
    """The classes and metrics that the modules of a package define, in the order of their names."""
    found: dict[int, Any] = {}
    for module in _modules(package):
        for _, thing in getmembers(module):
            metric = isinstance(thing, Metric) and is_outside(thing.function)
            ours = isclass(thing) and issubclass(thing, (Model, Method, Attack)) and not isabstract(thing)
            if metric or (ours and is_outside(thing) and bool(getattr(thing, "name", ""))):
                found[id(thing)] = thing
    yield from sorted(found.values(), key=_name_of)


def _modules(package: str) -> Iterator[ModuleType]:
    try:
        top = import_module(package)
        yield top
        for info in iter_modules(getattr(top, "__path__", [])):
            yield import_module(f"{package}.{info.name}")
    except Exception as problem:  # whatever an import of somebody else's code can raise
        raise UsageError(f"{package!r} cannot be imported: {type(problem).__name__}: {problem}") from None


def _name_of(thing: Any) -> str:
    return f"{thing.name} ({'metric' if isinstance(thing, Metric) else thing.kind.removesuffix('s')})"


def _write_people(path: Path) -> None:
    """A table without chance: ages in every decade, three wards, four diagnoses that go round."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "ward", "value"])
        writer.writerows([20 + i % 40, "abc"[i % 3], (i * 7 + i // 5) % 4 + 1] for i in range(PEOPLE))


def _policy(**sections: Any) -> Policy:
    columns = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20]}},
        "ward": {"role": "quasi-identifier", "hierarchy": "suppress"},
        "value": {"role": "sensitive", "order": ["1", "2", "3", "4"]},
    }
    return Policy.of(
        {"columns": columns, "require": [{"model": "k-anonymity", "k": 3}], **sections}, "contract"
    )


def _findings(thing: Any, table: Path) -> list[str]:
    """What is wrong with one plug-in; nothing: it keeps the contract."""
    try:
        if isinstance(thing, Metric):
            return list(_of_metric(thing, table))
        register_class(thing)
        found = (
            []
            if thing.summary_line()
            else ["it has no docstring: its first line is shown wherever it is listed"]
        )
        made = parse_settings(thing, {**likely_settings(thing)}, thing.name)
        return [*found, *TRIED[thing.kind](made, table)]
    except MaskwrightError as problem:
        return [str(problem)]
    except Exception as problem:  # somebody else's code
        return [f"{type(problem).__name__}: {problem}"]


def _of_model(model: Model, table: Path) -> Iterator[str]:
    breaches = contract_breaches(model)
    yield from breaches
    if breaches:
        return  # no search would take it
    with suppress(PolicyNotMet):  # it may ask for more than this table has
        anonymize(table, _policy(require=[{"model": model.name, **model.options()}]), seed=1)


def _of_method(method: Method, table: Path) -> Iterator[str]:
    policy = _policy(method={"name": method.name, **method.options()})
    first, second = (anonymize(table, policy, seed=1) for _ in range(2))
    if first.grouping.allocation.groups.tolist() != second.grouping.allocation.groups.tolist():
        yield "group: with the same seed it makes other groups; draw from task.rng alone"
    if not first.ok:
        yield "group: its groups do not satisfy the models of task.search"


def _of_attack(attack: Attack, table: Path) -> Iterator[str]:
    release = anonymize(table, _policy(), seed=1)
    first, second = (_attacked(release, attack) for _ in range(2))
    if first is None or second is None:
        return  # it has nothing to do here
    if not 0 <= first.worst.before <= 1 or not 0 <= first.worst.after <= 1:
        yield f"run: a belief lies between 0 and 1, not {first.worst.before} and {first.worst.after}"
    if first.worst.upper < first.worst.after:
        yield "run: the upper end of the interval is below the belief"
    if (first.kind, first.worst) != (second.kind, second.worst):
        yield "run: attacking the same release twice gives two answers; draw from a generator with a fixed seed"


def _attacked(release: Release, attack: Attack) -> Beliefs | None:
    try:
        found = attack_release(release, attack, adversary="insider")
    except UsageError:
        return None
    return found if isinstance(found, Beliefs) else found[0]


def _of_metric(metric: Metric, table: Path) -> Iterator[str]:
    if not metric.summary_line():
        yield "its function has no docstring: its first line is shown in the report"
    release = anonymize(table, _policy(), seed=1)
    value = float(metric.measure(release.grouping, {}, False))
    if not isfinite(value) and not isnan(value):
        yield f"it is {value} for a small release; NaN says that it is not defined"


TRIED: dict[str, Callable[[Any, Path], Iterator[str]]] = {
    "models": _of_model,
    "methods": _of_method,
    "attacks": _of_attack,
}
