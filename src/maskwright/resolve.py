"""A policy meets a table: which columns there are, their domains, hierarchies and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from maskwright.calibrate import calibrated, in_words
from maskwright.core.builders import Suppress
from maskwright.core.events import Progress
from maskwright.core.hierarchy import Hierarchy
from maskwright.core.method import Method
from maskwright.core.model import Model
from maskwright.core.multivalued import BIT_VALUES, PRESENT, SetColumn
from maskwright.core.policy import Policy
from maskwright.core.settings import build, nearest
from maskwright.engines.base import Engine, Reading, SensitiveSpec, SummarySpec, Table
from maskwright.errors import InputError, PolicyError
from maskwright.methods import METHODS
from maskwright.models import MODELS


def reading(policy: Policy) -> Reading:
    """How the policy says that the file is to be read."""
    i = policy.input
    lists = tuple(name for name, column in policy.columns.items() if column.multivalued is True)
    return Reading(
        i.format, i.delimiter, i.quote, i.encoding, i.header, policy.missing.tokens, lists, i.sheet, i.labels
    )  # fmt: skip


def sensitive_attributes(policy: Policy, sets: Sequence[SetColumn]) -> dict[str, list[str]]:
    """The sensitive columns with the attributes that are counted: themselves, or their bits."""
    bits = {s.name: list(s.bits) for s in sets}
    return {name: bits.get(name, [name]) for name in policy.sensitive}


def models_of(policy: Policy, sets: Sequence[SetColumn] = ()) -> list[Model]:
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
        result.extend(_per_attribute(model, policy, sets, where))
    return calibrated(result, method_of(policy).for_one_table())


def _per_attribute(model: Model, policy: Policy, sets: Sequence[SetColumn], where: str) -> list[Model]:
    fields = type(model).model_fields
    if "attribute" not in fields:
        if "attributes" in fields and not getattr(model, "attributes", None):
            _refuse_bits(model, sets, where)
        return [model]
    named = model.attribute_name()
    columns = sensitive_attributes(policy, sets)
    every = [name for names in columns.values() for name in names]
    if named is not None and named not in (*columns, *every):
        raise PolicyError(
            f"{where}: attribute {named!r} is not a sensitive column; {nearest(named, policy.sensitive)}"
        )
    bits = {bit for s in sets for bit in s.bits}
    result = []
    for attribute in columns.get(named, [named]) if named else every:
        update: dict[str, object] = {"attribute": attribute}
        if attribute in bits:
            _refuse_bits(model, sets, where)
            chosen: Sequence[Sequence[str]] | None = ((PRESENT,),)
        else:
            chosen = policy.columns[attribute].sensitive_sets
        if chosen and "sets" in fields and "sets" not in model.model_fields_set:
            update["sets"] = chosen
        elif attribute in bits and "values" in fields:
            update["values"] = (PRESENT,)
        result.append(model.model_copy(update=update))
    return result


def _refuse_bits(model: Model, sets: Sequence[SetColumn], where: str) -> None:
    if sets and not (type(model).of_bits or {"sets", "values"} & type(model).model_fields.keys()):
        raise PolicyError(
            f"{where}: {model.name} counts values, but of the multi-valued column {sets[0].name!r} only presence is "
            "sensitive; name another attribute, or use simple-l-diversity or t-closeness"
        )


def flagged_of(policy: Policy, sets: Sequence[SetColumn]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The sensitive values of the attributes of which not every value is."""
    declared = {name: policy.columns[name].sensitive_sets for name in policy.sensitive}
    return {name: s for name, s in declared.items() if s} | {
        bit: ((PRESENT,),) for s in sets for bit in s.bits
    }


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
    source: Table  # as it is counted: with bits in place of sets
    sets: tuple[SetColumn, ...]
    hierarchies: dict[str, Hierarchy]  # of quasi-identifiers, and of sensitive columns that have one
    published: list[str]  # columns of the release, in the order of the table; bits in place of sets
    dropped: list[str]  # columns of the table that are not published

    @property
    def weights(self) -> dict[str, Fraction]:
        return {q: self.policy.columns[q].weight for q in self.policy.quasi_identifiers}

    def under(self, policy: Policy) -> Resolved:
        """The same table under a policy with the same columns, but other requirements or another method."""
        models = models_of(policy, self.sets)
        _check_census(policy, models)
        _check_together(policy)
        _fits(models, {s.name: s.values for s in self.spec.sensitive})
        return replace(self, policy=policy, models=models, method=method_of(policy))

    @property
    def levels(self) -> dict[str, list[int]]:
        """Allowed levels by number, for the columns that restrict them."""
        return {
            q: sorted({self.hierarchies[q].level_of(name) for name in levels})
            for q in self.policy.quasi_identifiers
            if (levels := self.policy.columns[q].levels) is not None
        }


def _fits(models: Sequence[Model], sensitive: Mapping[str, tuple[str, ...]]) -> None:
    for model in models:
        model.refuse_unknown(sensitive)


def resolve(policy: Policy, engine: Engine, table: Table, progress: Progress) -> Resolved:
    """Check the table against the policy and build what the policy describes."""
    models, method = models_of(policy), method_of(policy)
    for line in in_words(models, method.for_one_table()):
        progress.note(line)
    _check_columns(policy, table)
    names = [c.name for c in table.columns]
    sets = set_columns(policy, engine, table)
    _check_together(policy)
    if sets:
        models, table = models_of(policy, sets), engine.unfold(table, sets)
    census = _census(policy, engine, models)
    hierarchies: dict[str, Hierarchy] = {}
    sensitive: list[SensitiveSpec] = []
    for name in policy.quasi_identifiers:
        progress.check()
        hierarchies[name] = _hierarchy(policy, engine, [table, *([census] if census else [])], name)
    if coarse := _cut(policy, hierarchies):
        hierarchies |= coarse
        table = engine.coarsen(table, list(coarse.values()))
        census = engine.coarsen(census, list(coarse.values())) if census else None
        _tell_coarse(coarse, progress)
    for name in policy.sensitive:
        progress.check()
        column = policy.columns[name]
        if column.multivalued:
            bits = next(s.bits for s in sets if s.name == name)
            sensitive.extend(SensitiveSpec(bit, BIT_VALUES) for bit in bits)
        elif column.hierarchy is not None or column.order is not None:
            hierarchies[name] = _hierarchy(policy, engine, [table], name)
            sensitive.append(SensitiveSpec(name, hierarchies[name].values, hierarchies[name].ordered))
        else:
            domain = engine.domain(table, name)
            sensitive.append(SensitiveSpec(name, domain.values, domain.numeric))
    _fits(models, {s.name: s.values for s in sensitive})
    for name in policy.with_role("insensitive"):
        _refuse_near_unique(policy, engine, table, name)
    spec = SummarySpec(
        attributes=tuple(hierarchies[q] for q in policy.quasi_identifiers),
        sensitive=tuple(sensitive),
        unit=policy.unit,
        drop_missing=policy.missing.rows == "drop",
    )
    kept = {name for name, column in policy.columns.items() if column.role != "identifier"}
    bits_of = {s.name: s.bits for s in sets}
    published = [part for name in names if name in kept for part in bits_of.get(name, (name,))]
    dropped = [name for name in names if name not in kept]
    _tell_dropped(policy, dropped, progress)
    return Resolved(policy, models, census, method, spec, table, sets, hierarchies, published, dropped)


def _check_together(policy: Policy) -> None:
    """`together` names sensitive columns, each once."""
    named = [name for names in policy.recoding.together for name in names]
    for name in named:
        if name not in policy.sensitive:
            raise PolicyError(
                f"recoding: `together` names {name!r}, which is not a sensitive column; "
                f"{nearest(name, policy.sensitive)}"
            )
        if named.count(name) > 1:
            raise PolicyError(f"recoding: `together` names {name!r} twice; name each column once")


MOST_BITS = 200  # values of one multi-valued column; each becomes an attribute of its own


def set_columns(policy: Policy, engine: Engine, table: Table) -> tuple[SetColumn, ...]:
    """The multi-valued columns of a table with the values that occur in them."""
    result: list[SetColumn] = []
    there = {c.name for c in table.columns}
    for name, column in policy.columns.items():
        if not column.multivalued or name not in there:
            continue
        separator = None if column.multivalued is True else str(column.multivalued)
        values = engine.elements(table, name, separator).values
        if not values:
            raise InputError(f"column {name!r}: all its sets are empty; drop it, or check the separator")
        if len(values) > MOST_BITS:
            raise InputError(
                f"column {name!r} holds {len(values)} different values, and each becomes an attribute of its own; "
                f"at most {MOST_BITS} are supported: group them before"
            )
        made = SetColumn(name, values, separator)
        taken = next((b for b in made.bits if b in {c.name for c in table.columns}), None)
        if taken is not None:
            raise InputError(
                f"there is a column {taken!r}, which is the name of a value of {name!r}; rename it"
            )
        result.append(made)
    if result and policy.unit:
        raise PolicyError(
            "multivalued columns cannot be combined with several rows per person; remove `unit`"
        )
    if result and policy.output.format == "csv" and any(s.separator is None for s in result):
        raise PolicyError(
            f"column {result[0].name!r} holds lists, which CSV cannot; write output: {{format: parquet}}"
        )
    return tuple(result)


def _census(policy: Policy, engine: Engine, models: Sequence[Model]) -> Table | None:
    """The population table, opened; refused where a model asks for one and there is none, or it lacks a column."""
    _check_census(policy, models)
    if policy.population is None:
        return None
    path = policy.folder / policy.population.file
    census = engine.open(path, Reading(missing=policy.missing.tokens))
    names = [c.name for c in census.columns]
    for name in policy.quasi_identifiers:
        if name not in names:
            raise InputError(f"the population table has no column {name!r}; {nearest(name, names)}")
    return census


def _check_census(policy: Policy, models: Sequence[Model]) -> None:
    asking = [model.name for model in models if "population" in model.needs()]
    if asking and policy.population is None:
        raise PolicyError(f"{asking[0]} needs a population table; name it: population: {{file: ...}}")


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


def _cut(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Hierarchy]:
    """The hierarchies of the columns that are coarsened before they are counted, without their finer levels."""
    result = {}
    for name in policy.quasi_identifiers:
        if (finest := policy.columns[name].finest) is None:
            continue
        level = hierarchies[name].level_of(finest)
        if level == hierarchies[name].top:
            raise PolicyError(
                f"column {name!r}: `finest` names the top level, at which nothing is left of it; "
                "make it an identifier, so that it is not published"
            )
        if level > 0:
            result[name] = hierarchies[name].cut_at(level)
    return result


def _tell_coarse(coarse: Mapping[str, Hierarchy], progress: Progress) -> None:
    levels = ", ".join(f"{name} ({h.levels[0].name})" for name, h in coarse.items())
    progress.note(
        f"coarsened before anything is counted, so what is lost by that is not measured: {levels}",
        columns=list(coarse),
    )


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
