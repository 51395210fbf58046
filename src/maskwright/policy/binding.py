"""A policy meets a table: which columns there are, their domains, hierarchies and models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.domain.adversary import Adversary
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Method
from maskwright.domain.missing_values import Missing
from maskwright.domain.model import Model
from maskwright.domain.model_contract import refuse_broken_contract
from maskwright.domain.promise import Design, Promise
from maskwright.domain.registry import is_outside
from maskwright.domain.settings import Settings, build_registered, did_you_mean
from maskwright.domain.summary import Summary
from maskwright.domain.value_sets import BIT_VALUES, PRESENT, SetColumn
from maskwright.engines.base import Engine, Reading, SensitiveSpec, SummarySpec, Table
from maskwright.errors import InputError, PolicyError
from maskwright.hierarchies.builder import Ladder
from maskwright.hierarchies.suppression import Suppress
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.models.belief import BeliefAtMost
from maskwright.policy.calibration import calibrated_models, in_words, policy_context
from maskwright.policy.policy import (
    Column,
    DateShift,
    Input,
    Output,
    Policy,
    Population,
    Recoding,
    Unit,
)
from maskwright.policy.private_release import refuse_voided_privacy
from maskwright.prepare import KINDS, Preparation
from maskwright.promise.policy_promise import PromiseQuestion, answer_question, promise_of_rows
from maskwright.runtime.events import Progress


def reading_options(policy: Policy) -> Reading:
    """How the policy says that the file is to be read."""
    i = policy.input
    lists = tuple(name for name, column in policy.columns.items() if column.multivalued is True)
    return Reading(
        i.format, i.delimiter, i.quote, i.encoding, i.header, policy.missing.tokens, lists, i.sheet, i.labels,
        prepare=tuple((name, step) for name, step in policy.prepare.items() if not step.idle), names=i.names,
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
        model = build_registered(MODELS, "model", requirement.name, requirement.parameters, where)
        if model.about == "sensitive" and not policy.sensitive:
            raise PolicyError(
                f"{where}: {model.name} needs a column with the role sensitive, and there is none"
            )
        if is_outside(model):
            refuse_broken_contract(model)
        alone = policy.people is None or policy.people.rows == 1
        if not alone and (unfit := model.unfit_for_people()):
            raise PolicyError(
                f"{where}: people have several rows (`unit`), and {unfit}; or keep one row of each person: "
                f"unit: {{column: {policy.person_column}, rows: 1}}"
            )
        result.extend(_per_attribute(model, policy, sets, where))
    return calibrated_models(result, method_of(policy).for_one_table())


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
            f"{where}: attribute {named!r} is not a sensitive column; {did_you_mean(named, policy.sensitive)}"
        )
    bits = {bit for s in sets for bit in s.bits}
    result = []
    for attribute in columns.get(named, [named]) if named else every:
        update: dict[str, object] = {"attribute": attribute}
        near = isinstance(model, BeliefAtMost) and model.within is not None
        if attribute in bits:
            _refuse_bits(model, sets, where)
            if near:
                raise PolicyError(
                    f"{where}: within: {attribute!r} is a value of a set, and no number; remove `within`"
                )
            chosen: Sequence[Sequence[str]] | None = ((PRESENT,),)
        else:
            chosen = policy.columns[attribute].sensitive_sets
        if chosen and not near and "sets" in fields and "sets" not in model.model_fields_set:
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
    """The method of a policy."""
    return build_registered(METHODS, "method", policy.method.name, policy.method.parameters, "method")


def design_of(policy: Policy, method: Method, facts: Mapping[str, Any]) -> Design:
    """The ingredients of a policy that are neither its method nor its models; `facts` are those of its run."""
    return Design(
        unit=policy.person_column,
        rows_kept=policy.people.rows if policy.people else None,
        linked=policy.people.events if policy.people and policy.people.publish else 0,
        known=policy.people.events if policy.people else 0,
        own=policy.own_columns,
        insensitive=tuple(policy.with_role("insensitive")),
        drops_missing=policy.missing.rows == "drop",
        recoding=policy.recoding.name,
        weight=policy.weight,
        plan=method.plan_by_values(),
        population=policy.population is not None,
        prepared=tuple(policy.prepare),
        derived=_derived(policy),
        listed=tuple(n for n in policy.sensitive if _refuses_values(policy, n)),
        unproven=unproven_settings(policy),
        **facts,
    )


def _derived(policy: Policy) -> tuple[str, ...]:
    """The columns that are computed from a sensitive one, and are not sensitive themselves.

    Those that the policy gives no role are among them: it may take people, weights or households from them.
    """
    return tuple(
        name
        for name, step in policy.prepare.items()
        if step.between is not None and set(step.between.columns) & set(policy.sensitive)
        if name not in policy.sensitive
    )


def _refuses_values(policy: Policy, name: str) -> bool:
    """Whether a table is refused for a value of this column that is not listed, or does not fit what is done with it.

    That is how it is prepared, or that it holds the weights or tells households apart.
    """
    column, step = policy.columns[name], policy.prepare.get(name)
    if column.order or column.hierarchy or name in (policy.weight, policy.household):
        return True
    return step is not None and step.otherwise == "refuse" and any(getattr(step, kind) for kind in KINDS)


# What the promise of a policy asks about, setting by setting; any other that is set makes the promise measured.
PROVEN: dict[type[Settings], frozenset[str]] = {
    Policy: frozenset(
        {
            "version",
            "input",
            "output",
            "unit",
            "missing",
            "prepare",
            "population",
            "weight",
            "household",  # decides nothing: it is in the figures of the private report alone
            "columns",
            "keep",  # fixes levels in advance, as `levels` of a column does; becomes the same restriction
            "require",
            "method",
            "recoding",
            "about",  # words for people
            "preset",
        }
    ),
    Column: frozenset(
        {
            "role",
            "hierarchy",
            "weight",
            "levels",
            "finest",
            "order",
            "sensitive_sets",
            "multivalued",
            "near_unique",
        }
    ),
    Population: frozenset({"file", "size"}),
    Unit: frozenset({"column", "rows", "own"}),  # `own` changes nothing, or is measured: by the method
    DateShift: frozenset(),
    Input: frozenset({"format", "delimiter", "quote", "encoding", "header", "names", "sheet", "labels"}),
    Output: frozenset({"format", "formulas"}),
    Missing: frozenset({"tokens", "rows", "wildcard"}),
    Recoding: frozenset({"name", "together", "quasi_identifiers"}),
    # each from the cell itself and the policy; `between` from other cells of the row, which `_derived` asks about
    Preparation: frozenset(
        {"missing", "spellings", "numbers", "dates", "digits", "lists", "between", "otherwise"}
    ),
}


def unproven_settings(policy: Policy) -> tuple[str, ...]:
    """The settings of a policy that no ingredient of the promise is about; method and models answer for their own."""
    parts: list[tuple[str, Settings | None]] = [("", policy), ("population.", policy.population)]
    parts += [("unit.", policy.people)]
    parts += [("input.", policy.input), ("output.", policy.output), ("missing.", policy.missing)]
    parts += [("recoding.", policy.recoding)]
    parts += [(f"columns.{name}.", column) for name, column in policy.columns.items()]
    parts += [(f"prepare.{name}.", step) for name, step in policy.prepare.items()]
    return tuple(
        f"{where}{name}"
        for where, settings in parts
        if settings is not None
        for name, field in type(settings).model_fields.items()
        if name not in PROVEN[type(settings)]
        and getattr(settings, name) != field.get_default(call_default_factory=True)
    )


def promises_before(policy: Policy, adversary: Adversary, looked: str = "") -> list[Promise]:
    """What a policy promises of each sensitive column before any row is read.

    What only a release can show, such as whether anybody was left out, is taken to be as bad as it can be. `looked`
    says what was tried on the same table before.
    """
    method, models = method_of(policy), models_of(policy)
    refuse_voided_privacy(policy, method, models)
    of_rows = promise_of_rows(method, design_of(policy, method, {"looked": looked}))
    if of_rows is not None:
        return [of_rows]
    bounded = {
        m.attribute: m for m in models if isinstance(m, BeliefAtMost) and m.adversary == adversary.name
    }
    found = []
    for name in policy.sensitive:
        asked = bounded.get(name)
        near = None if asked is None else asked.within
        question = PromiseQuestion(
            name, adversary, asked.sets if asked else policy.columns[name].sensitive_sets, asked.max if asked else None,
            method.for_one_table(), models, policy_context(models), design_of(policy, method, {"looked": looked}),
            policy.recoding.blocks(policy.sensitive), tuple(policy.sensitive),
            name if policy.columns[name].multivalued else None, within=near,
        )  # fmt: skip
        found.append(answer_question(question))
    return found


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
        """The weight of each quasi-identifier."""
        return {q: self.policy.columns[q].weight for q in self.policy.quasi_identifiers}

    def census_spec(self) -> SummarySpec:
        """What to count of the population: people, where it tells whose rows are whose, otherwise rows."""
        there = () if self.census is None else [c.name for c in self.census.columns]
        return SummarySpec(self.spec.attributes, unit=self.spec.unit if self.spec.unit in there else None)

    def under(self, policy: Policy) -> Resolved:
        """This table under another policy with the same columns, but other requirements or another method."""
        models = models_of(policy, self.sets)
        if (method_of(policy).privacy() is None) != (self.method.privacy() is None):
            raise PolicyError(
                "a differentially private release is made of a table that is read for it alone; run it by itself"
            )
        refuse_voided_privacy(policy, method_of(policy), models)
        _check_census(policy, models)
        _check_together(policy)
        _fits(models, {s.name: s.values for s in self.spec.sensitive})
        return replace(self, policy=policy, models=models, method=method_of(policy))

    @property
    def levels(self) -> dict[str, list[int]]:
        """Allowed levels by number, for the columns that restrict them."""
        return allowed_levels(self.policy, [self.hierarchies[q] for q in self.policy.quasi_identifiers])


def allowed_levels(policy: Policy, hierarchies: Sequence[Hierarchy]) -> dict[str, list[int]]:
    """The levels that `levels` and `keep` allow by number, for the columns that either of them restricts."""
    found: dict[str, list[int]] = {}
    for h in hierarchies:
        named, kept = policy.columns[h.attribute].levels, policy.keep.get(h.attribute)
        if named is None and kept is None:
            continue
        levels = set(range(len(h.levels))) if named is None else {h.level_of(name) for name in named}
        if kept is not None:
            levels &= set(h.levels_within(h.level_to_keep(kept)))
        if not levels:
            raise PolicyError(
                f"keep.{h.attribute}: `levels` of the column allows no level that keeps {kept!r}; change one of them"
            )
        found[h.attribute] = sorted(levels)
    return found


def _fits(models: Sequence[Model], sensitive: Mapping[str, tuple[str, ...]]) -> None:
    for model in models:
        model.refuse_unknown(sensitive)


def resolve_policy(policy: Policy, engine: Engine, table: Table, progress: Progress) -> Resolved:
    """Check the table against the policy and build what the policy describes."""
    models, method = models_of(policy), method_of(policy)
    refuse_voided_privacy(policy, method, models)
    for line in in_words(models, method.for_one_table()):
        progress.note(line)
    check_columns(policy, table)
    names = [c.name for c in table.columns]
    sets = set_columns(policy, engine, table)
    _check_together(policy)
    if sets:
        models, table = models_of(policy, sets), engine.unfold(table, sets)
    census = _census(policy, engine, models)
    hierarchies: dict[str, Hierarchy] = {}
    sensitive: list[SensitiveSpec] = []
    tables = [table, *([census] if census else [])]
    for name, built in _hierarchies(policy, engine, tables, policy.quasi_identifiers):
        progress.check()
        hierarchies[name] = built
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
            hierarchies |= _hierarchies(policy, engine, [table], [name])
            sensitive.append(SensitiveSpec(name, hierarchies[name].values, hierarchies[name].ordered))
        else:
            domain = engine.domain(table, name)
            sensitive.append(SensitiveSpec(name, domain.values, domain.numeric))
    _fits(models, {s.name: s.values for s in sensitive})
    _tell_absent(policy, models, {s.name: s.values for s in sensitive}, progress)
    _refuse_near_unique(policy, engine, table)
    spec = SummarySpec(
        attributes=tuple(hierarchies[q] for q in policy.quasi_identifiers),
        sensitive=tuple(sensitive),
        unit=policy.person_column,
        drop_missing=policy.missing.rows == "drop",
        named=bool(policy.person_column),
    )
    kept = {name for name, column in policy.columns.items() if column.role != "identifier"}
    kept.update(policy.pseudonyms)
    if method.several_tables and policy.pseudonyms:
        where = "unit" if policy.pseudonyms[0] == policy.person_column else f"columns.{policy.pseudonyms[0]}"
        raise PolicyError(
            f"{where}: {method.name} makes tables that cannot be joined, and a pseudonym would join them"
        )
    if method.several_tables and policy.people is not None and policy.people.events > 1:
        raise PolicyError(
            f"unit: several known visits are matched in one table, and {method.name} makes several; use another method "
            "(optimal-lattice), or events: 1"
        )
    if method.several_tables and policy.shift_dates is not None:
        raise PolicyError(
            f"shift_dates: {method.name} makes several tables, and what moved dates tell is attacked in one; use "
            "another method"
        )
    bits_of = {s.name: s.bits for s in sets}
    published = [part for name in names if name in kept for part in bits_of.get(name, (name,))]
    dropped = [name for name in names if name not in kept]
    _tell_dropped(policy, dropped, progress)
    ask_whose_rows(policy, engine, table)
    _refuse_linking(policy, engine, table)
    return Resolved(policy, models, census, method, spec, table, sets, hierarchies, published, dropped)


def _check_together(policy: Policy) -> None:
    """`together` names sensitive columns, each once."""
    named = [name for names in policy.recoding.together for name in names]
    for name in named:
        if name not in policy.sensitive:
            raise PolicyError(
                f"recoding: `together` names {name!r}, which is not a sensitive column; "
                f"{did_you_mean(name, policy.sensitive)}"
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
    if result and policy.output.format == "csv" and any(s.separator is None for s in result):
        raise PolicyError(
            f"column {result[0].name!r} holds lists, which CSV cannot; write output: {{format: parquet}}"
        )
    return tuple(result)


def _census(policy: Policy, engine: Engine, models: Sequence[Model]) -> Table | None:
    """The population table, opened; refused where a model asks for one and there is none, or it lacks a column."""
    _check_census(policy, models)
    if policy.population is None or policy.population.file is None:
        return None
    path = policy.folder / policy.population.file
    census = engine.open(path, Reading(missing=policy.missing.tokens))
    there = {c.name for c in census.columns}  # a length that it has is not computed again
    steps = reading_options(policy).prepare
    census = engine.prepare(
        census, [(n, step) for n, step in steps if step.between is None or n not in there]
    )
    names = [c.name for c in census.columns]
    for name in policy.quasi_identifiers:
        if name not in names:
            raise InputError(f"the population table has no column {name!r}; {did_you_mean(name, names)}")
    return census


def _check_census(policy: Policy, models: Sequence[Model]) -> None:
    asking = [model.name for model in models if "population" in model.needs()]
    if asking and (policy.population is None or policy.population.file is None):
        raise PolicyError(
            f"{asking[0]} needs a population table; name it: population: {{file: ...}}; where only the size of the "
            "population is known, individual-risk estimates how many match"
        )
    asking = [model.name for model in models if "sample" in model.needs()]
    if asking and policy.population is None and policy.weight is None:
        raise PolicyError(
            f"{asking[0]} estimates a risk in the population; say how large it is, population: {{size: 100000}}, or "
            "name the column of survey weights, weight: ..."
        )


def check_columns(policy: Policy, table: Table) -> None:
    """Refuse a policy that names columns which the table does not have."""
    names = [c.name for c in table.columns]
    for name, step in policy.prepare.items():
        for needed in step.between.columns if step.between is not None else (name,):
            if needed not in names:
                raise InputError(
                    f"prepare.{name}: the table has no column {needed!r}; {did_you_mean(needed, names)}"
                )
    shifting = policy.shifting_person if policy.shift_dates is not None else None
    for name in filter(
        None, [*policy.columns, policy.person_column, policy.weight, policy.household, shifting]
    ):
        if name not in names:
            raise InputError(
                f"the policy names a column {name!r} that the table does not have; {did_you_mean(name, names)}"
            )


def _hierarchies(
    policy: Policy, engine: Engine, tables: Sequence[Table], names: Sequence[str]
) -> Iterator[tuple[str, Hierarchy]]:
    """Each column with its hierarchy over the values that it has in any of the tables."""
    for name, *domains in zip(names, *(engine.domains(table, names) for table in tables), strict=True):
        values = domains[0].values
        if len(domains) > 1:
            values = tuple(sorted({v for domain in domains for v in domain.values}))
        yield name, hierarchy_of(policy, name, values)


def hierarchy_of(policy: Policy, name: str, values: Sequence[str]) -> Hierarchy:
    """The hierarchy that the policy describes for a column with these values."""
    if method_of(policy).privacy() is not None and name in policy.quasi_identifiers:
        return labelled_alone(policy, name, values)
    column = policy.columns[name]
    builder = column.hierarchy or Suppress()
    return builder.build(name, values, policy.folder, policy.missing.tokens, column.order)


def ladder_of(policy: Policy, name: str, values: Sequence[str]) -> Ladder:
    """The labels that the policy describes for a column with these values, at every level that it names."""
    column = policy.columns[name]
    builder = column.hierarchy or Suppress()
    return builder.ladder(name, values, policy.folder, policy.missing.tokens, column.order)


def labelled_alone(policy: Policy, name: str, values: Sequence[str]) -> Hierarchy:
    """The hierarchy of a column in which the labels of a value follow from the policy and that value alone.

    They are those that the policy describes for no value at all, where it lists the value, else for this one only.
    Every level is kept, whatever it merges in this table.
    """
    listed = ladder_of(policy, name, ())
    labels = {v: [texts[i] for _, texts in listed.levels] for i, v in enumerate(listed.ground)}
    for value in values:
        if value not in labels:
            alone = ladder_of(policy, name, (value,))
            at = list(alone.ground).index(value)
            labels[value] = [texts[at] for _, texts in alone.levels]
    ground = ladder_of(policy, name, values)  # for their order, and to refuse what the policy does not know
    levels = [
        (level, [labels[value][i] for value in ground.ground]) for i, (level, _) in enumerate(ground.levels)
    ]
    return Hierarchy.of(
        name, ground.ground, levels, chain=ground.chain, ordered=ground.ordered, kept=[n for n, _ in levels]
    )


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


def _refuse_near_unique(policy: Policy, engine: Engine, table: Table) -> None:
    asked = [n for n in policy.with_role("insensitive") if policy.columns[n].near_unique != "allow"]
    asked = [n for n in asked if n not in policy.perturbed]  # what is published of them is looked at later
    if not asked:
        return
    rows = engine.count(table)
    for name, alone in zip(asked, engine.lone_values(table, asked), strict=True):
        if 2 * alone >= rows:
            raise InputError(
                f"column {name!r} is declared insensitive, but {alone} of its {rows} values occur only once, so it "
                "singles people out; make it a quasi-identifier or an identifier, or write near_unique: allow"
            )


def ask_whose_rows(policy: Policy, engine: Engine, table: Table) -> None:
    """Refuse to guess whether rows that share an identifier are those of one person: the policy has to say."""
    there = {column.name for column in table.columns}
    names = [name for name in policy.with_role("identifier") if name in there]
    if policy.unit is not None or not names:
        return
    rows = engine.count(table)
    for name, lone in zip(names, engine.lone_values(table, names), strict=True):
        if lone == rows:
            continue
        distinct, alone, _ = engine.uniqueness(table, [name])
        several = distinct - alone
        if several == 1:  # the missing values, perhaps, which are nobody's
            several -= len(engine.domain(table, name).values) < distinct
        if several:
            raise PolicyError(
                f"column {name!r} is an identifier, and some of its values occur in several rows: if these "
                f"are the rows of one person, write unit: {name}, and people are counted; if every row is a person, "
                "write unit: none"
            )


def _refuse_linking(policy: Policy, engine: Engine, table: Table) -> None:
    """Refuse pseudonyms of a column, other than that of people, some of whose values occur in several rows."""
    asked = [name for name in policy.pseudonyms if name != policy.person_column]
    rows = engine.count(table) if asked else 0
    for name, alone in zip(asked, engine.lone_values(table, asked) if asked else (), strict=True):
        missing = 0 if alone == rows else engine.domain(table, name, limit=1).missing
        if alone + missing < rows:
            raise PolicyError(
                f"columns.{name}: some values occur in several rows, and their pseudonym would tell which rows belong "
                f"together; if they are the rows of one person, write unit: {{column: {name}, publish: pseudonym}}, "
                "which counts what that tells; otherwise make it a quasi-identifier, or do not publish it"
            )


def refuse_changing_columns(summary: Summary, own: Sequence[str]) -> None:
    """Refuse columns that are said to be the person's own, and differ between rows of a person."""
    cells = summary.personal
    for a, hierarchy in enumerate(summary.attributes):
        if hierarchy.attribute not in own or cells is None or cells.people is None:
            continue
        pairs = np.unique(cells.people * (len(hierarchy.values) + 1) + summary.codes[a][cells.tuples])
        if changing := int((np.bincount(pairs // (len(hierarchy.values) + 1)) > 1).sum()):
            whose = "1 person" if changing == 1 else f"{changing:,} people"
            raise InputError(
                f"column {hierarchy.attribute!r} is declared the person's own (unit: own), but it differs between the "
                f"rows of {whose} (a missing value is one, too); make it the same in all rows of a person, or leave it "
                "out of `own`"
            )


def _tell_absent(
    policy: Policy, models: Sequence[Model], domains: Mapping[str, Sequence[str]], progress: Progress
) -> None:
    """Say which named values nobody holds: they may be misspelt, but refusing them would tell who is in a release."""
    named: dict[tuple[str, str], str] = {}
    for model in models:
        attribute = model.attribute_name()
        for value in model.named_values():
            columns = [attribute] if attribute is not None else list(domains)
            if not any(value in domains.get(name, ()) for name in columns):
                named.setdefault((value, ", ".join(map(repr, columns))), model.name)
    for name in policy.sensitive:
        for value in (v for members in policy.columns[name].sensitive_sets or () for v in members):
            if value not in domains.get(name, (value,)):
                named.setdefault((value, repr(name)), "sensitive_sets")
    for (value, where), who in named.items():
        known = [v for name in domains for v in domains[name] if repr(name) in where]
        progress.note(
            f"the value {value!r} that {who} names does not occur in column {where}, and counts as held by nobody; "
            f"if it is misspelt: {did_you_mean(value, known)}"
        )


def _tell_dropped(policy: Policy, dropped: list[str], progress: Progress) -> None:
    unnamed = [name for name in dropped if name not in policy.columns and name != policy.person_column]
    if unnamed:
        progress.note(f"not named in the policy, so not published: {', '.join(unnamed)}", columns=unnamed)
    identifiers = [name for name in dropped if name not in unnamed]
    if identifiers:
        progress.note(f"identifiers, not published: {', '.join(identifiers)}", columns=identifiers)
