"""A policy meets a table: which columns there are, their domains, hierarchies and models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from maskwright.calibrate import calibrated, in_words
from maskwright.core.builders import Suppress
from maskwright.core.events import Progress
from maskwright.core.hierarchy import Hierarchy
from maskwright.core.method import Method
from maskwright.core.model import Model
from maskwright.core.policy import Policy
from maskwright.core.settings import build, nearest
from maskwright.engines.base import Engine, Reading, SensitiveSpec, SummarySpec, Table
from maskwright.errors import InputError, PolicyError
from maskwright.methods import METHODS
from maskwright.models import MODELS


def reading(policy: Policy) -> Reading:
    """How the policy says that the file is to be read."""
    i = policy.input
    return Reading(
        i.format, i.delimiter, i.quote, i.encoding, i.header, policy.missing.tokens, i.sheet, i.labels
    )  # fmt: skip


def models_of(policy: Policy) -> list[Model]:
    """The requirements as models; one that concerns a sensitive attribute but names none is asked of each.

    A requirement on belief brings the diversity with it that the method needs for a proven bound, where there is one.
    """
    result: list[Model] = []
    for i, requirement in enumerate(policy.require):
        where = f"require[{i}]"
        model = build(MODELS, "model", requirement.name, requirement.parameters, where)
        if model.about == "sensitive" and not policy.sensitive:
            raise PolicyError(
                f"{where}: {model.name} needs a column with the role sensitive, and there is none"
            )
        if policy.unit and "labels" in model.needs():
            raise PolicyError(
                f"{where}: `on` cannot be combined with a unit; people in several classes would count twice"
            )
        result.extend(_per_attribute(model, policy, where))
    return calibrated(result, method_of(policy))


def _per_attribute(model: Model, policy: Policy, where: str) -> list[Model]:
    if "attribute" not in type(model).model_fields:
        return [model]
    named = model.attribute_name()
    if named is not None and named not in policy.sensitive:
        raise PolicyError(
            f"{where}: attribute {named!r} is not a sensitive column; {nearest(named, policy.sensitive)}"
        )
    attributes = [named] if named else policy.sensitive
    result = []
    for attribute in attributes:
        update: dict[str, object] = {"attribute": attribute}
        sets = policy.columns[attribute].sensitive_sets
        if sets and "sets" in type(model).model_fields and "sets" not in model.model_fields_set:
            update["sets"] = sets
        result.append(model.model_copy(update=update))
    return result


def method_of(policy: Policy) -> Method:
    return build(METHODS, "method", policy.method.name, policy.method.parameters, "method")


@dataclass(frozen=True, eq=False)
class Resolved:
    """Everything the pipeline needs to know about this table under this policy."""

    policy: Policy
    models: Sequence[Model]
    census: Table | None  # the population, opened
    method: Method
    spec: SummarySpec
    hierarchies: dict[str, Hierarchy]  # of quasi-identifiers, and of sensitive columns that have one
    published: list[str]  # columns of the release, in the order of the table
    dropped: list[str]  # columns of the table that are not published

    @property
    def weights(self) -> dict[str, Fraction]:
        return {q: self.policy.columns[q].weight for q in self.policy.quasi_identifiers}

    @property
    def levels(self) -> dict[str, list[int]]:
        """Allowed levels by number, for the columns that restrict them."""
        return {
            q: sorted({self.hierarchies[q].level_of(name) for name in levels})
            for q in self.policy.quasi_identifiers
            if (levels := self.policy.columns[q].levels) is not None
        }


def resolve(policy: Policy, engine: Engine, table: Table, progress: Progress) -> Resolved:
    """Check the table against the policy and build what the policy describes."""
    models, method = models_of(policy), method_of(policy)
    for line in in_words(models, method):
        progress.note(line)
    _check_columns(policy, table)
    census = _census(policy, engine, models)
    hierarchies: dict[str, Hierarchy] = {}
    sensitive: list[SensitiveSpec] = []
    for name in policy.quasi_identifiers:
        progress.check()
        hierarchies[name] = _hierarchy(policy, engine, [table, *([census] if census else [])], name)
    for name in policy.sensitive:
        progress.check()
        column = policy.columns[name]
        if column.hierarchy is not None or column.order is not None:
            hierarchies[name] = _hierarchy(policy, engine, [table], name)
            sensitive.append(SensitiveSpec(name, hierarchies[name].values, hierarchies[name].ordered))
        else:
            domain = engine.domain(table, name)
            sensitive.append(SensitiveSpec(name, domain.values, domain.numeric))
    for model in models:
        model.refuse_unknown({s.name: s.values for s in sensitive})
    for name in policy.with_role("insensitive"):
        _refuse_near_unique(policy, engine, table, name)
    spec = SummarySpec(
        attributes=tuple(hierarchies[q] for q in policy.quasi_identifiers),
        sensitive=tuple(sensitive),
        unit=policy.unit,
        drop_missing=policy.missing.rows == "drop",
    )
    published = [
        c.name
        for c in table.columns
        if c.name in policy.columns and policy.columns[c.name].role != "identifier"
    ]
    dropped = [c.name for c in table.columns if c.name not in published]
    _tell_dropped(policy, dropped, progress)
    return Resolved(policy, models, census, method, spec, hierarchies, published, dropped)


def _census(policy: Policy, engine: Engine, models: Sequence[Model]) -> Table | None:
    """The population table, opened; refused where a model asks for one and there is none, or it lacks a column."""
    asking = [model.name for model in models if "population" in model.needs()]
    if policy.population is None:
        if asking:
            raise PolicyError(f"{asking[0]} needs a population table; name it: population: {{file: ...}}")
        return None
    path = policy.folder / policy.population.file
    census = engine.open(path, Reading(missing=policy.missing.tokens))
    names = [c.name for c in census.columns]
    for name in policy.quasi_identifiers:
        if name not in names:
            raise InputError(f"the population table has no column {name!r}; {nearest(name, names)}")
    return census


def _check_columns(policy: Policy, table: Table) -> None:
    names = [c.name for c in table.columns]
    for name in [*policy.columns, *([policy.unit] if policy.unit else [])]:
        if name not in names:
            raise InputError(
                f"the policy names a column {name!r} that the table does not have; {nearest(name, names)}"
            )


def _hierarchy(policy: Policy, engine: Engine, tables: Sequence[Table], name: str) -> Hierarchy:
    domains = [engine.domain(table, name).values for table in tables]
    values = domains[0] if len(domains) == 1 else tuple(sorted({v for d in domains for v in d}))
    return hierarchy_of(policy, name, values)


def hierarchy_of(policy: Policy, name: str, values: Sequence[str]) -> Hierarchy:
    """The hierarchy that the policy describes for a column with these values."""
    column = policy.columns[name]
    builder = column.hierarchy or Suppress()
    return builder.build(name, values, policy.folder, policy.missing.tokens, column.order)


def _refuse_near_unique(policy: Policy, engine: Engine, table: Table, name: str) -> None:
    if policy.columns[name].near_unique == "allow":
        return
    _, alone = engine.uniqueness(table, [name])
    rows = engine.count(table)
    if 2 * alone >= rows:
        raise InputError(
            f"column {name!r} is declared insensitive, but {alone} of its {rows} values occur only once, so it "
            "singles people out; make it a quasi-identifier or an identifier, or say near_unique: allow"
        )


def _tell_dropped(policy: Policy, dropped: list[str], progress: Progress) -> None:
    unnamed = [name for name in dropped if name not in policy.columns and name != policy.unit]
    if unnamed:
        progress.note(f"not named in the policy, so not published: {', '.join(unnamed)}", columns=unnamed)
    identifiers = [name for name in dropped if name not in unnamed]
    if identifiers:
        progress.note(f"identifiers, not published: {', '.join(identifiers)}", columns=identifiers)
