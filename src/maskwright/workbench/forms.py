"""Forms for everything that is registered, derived from its own fields and docstring; and what they do to a policy.

A change takes and gives the plain mapping of a policy file. The result is checked by `Project.save_policy`, and written
only if it is a valid policy.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from maskwright.domain.exact import text_of
from maskwright.domain.settings import Registered, Settings, docstring_of
from maskwright.errors import PolicyError, UsageError
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.policy.policy import ONE_ROW_EACH, Recoding
from maskwright.policy.yaml_text import load_yaml
from maskwright.suggest.sections import yaml_flow

Kind = Literal["whole", "number", "choice", "attribute", "columns", "text", "list"]
USES = {
    "search": "the method looks for a release that satisfies it",
    "gate": "the method does not look at it; a release that fails it is refused",
}
# What a newcomer is likely to want, where a setting has no default of its own.
USUAL: dict[str, dict[str, str]] = {
    "k-anonymity": {"k": "11"}, "simple-l-diversity": {"l": "3", "use": "gate"},
    "distinct-l-diversity": {"l": "3", "use": "gate"}, "entropy-l-diversity": {"l": "2", "use": "gate"},
    "recursive-cl-diversity": {"c": "3", "l": "3", "use": "gate"}, "alpha-k-anonymity": {"alpha": "1/2", "k": "5"},
    "p-sensitive-k-anonymity": {"p": "2", "k": "5"}, "t-closeness": {"t": "0.3", "use": "gate"},
    "nt-closeness": {"n": "1000", "t": "0.3", "use": "gate"}, "ke-anonymity": {"k": "5", "e": "1"},
    "ck-safety": {"c": "0.8", "k": "2", "use": "gate"}, "m-confidentiality": {"m": "2", "use": "gate"},
    "personalised-privacy": {"p": "1/2", "guarding": "guarding"},
    "delta-disclosure": {"delta": "1", "use": "gate"}, "beta-likeness": {"beta": "2", "use": "gate"},
    "delta-presence": {"delta_max": "0.5"}, "k-map": {"k": "5"}, "average-risk": {"max": "0.05"},
    "highest-risk": {"max": "0.2"}, "belief": {"max": "1/2"},
}  # fmt: skip


@dataclass(frozen=True)
class Field:
    """One input. `values` of a choice are the choices; `help` says what it means."""

    name: str
    kind: Kind
    required: bool
    default: str
    help: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Form:
    """A registered thing: its name, one line about it, and its inputs."""

    name: str
    summary: str
    about: str
    fields: tuple[Field, ...]

    @property
    def offered(self) -> dict[str, str]:
        """What a new form begins with."""
        likely = {"whole": "2", "number": "1/2"}
        guessed = {f.name: likely.get(f.kind, "") for f in self.fields if f.required}
        return guessed | USUAL.get(self.name, {})

    def shown(self, parameters: Mapping[str, Any]) -> dict[str, str]:
        """Parameters of a policy as the texts of the inputs."""
        return {
            f.name: "" if parameters.get(f.name) is None else as_text(parameters[f.name])
            for f in self.fields
            if f.name in parameters
        }

    def read(self, inputs: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The inputs as parameters of a policy; empty ones, and those at their default, are left out."""
        result: dict[str, Any] = {}
        known = {f.name: f for f in self.fields}
        for name, text in inputs.items():
            field = known.get(name)
            if field is None or not isinstance(text, str):
                result[name] = text
            elif text.strip() and (text.strip() != field.default or field.required):
                result[name] = self._parsed(field, text.strip(), where)
        return result

    def _parsed(self, field: Field, text: str, where: str) -> Any:
        if field.kind != "list":
            return text
        try:
            return load_yaml(text.encode(), f"{where}.{field.name}")
        except PolicyError as problem:
            raise PolicyError(f"{where}.{field.name}: write a list, e.g. [a, b]; {problem}") from None


def as_text(value: Any) -> str:
    """A setting as its input field shows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return text_of(value)
    return yaml_flow(value) if isinstance(value, (list, tuple, Mapping)) else str(value)


@cache
def model_forms() -> dict[str, Form]:
    """The form of every model, by its name."""
    return {name: _form(cls, cls.about) for name, cls in MODELS.items()}


@cache
def method_forms() -> dict[str, Form]:
    """The form of every method, by its name."""
    return {name: _form(cls, "method") for name, cls in METHODS.items()}


@cache
def recoding_summaries() -> dict[str, str]:
    """Name → what it does, from the docstring."""
    text = " ".join(docstring_of(Recoding).split())
    parts = re.split(r"\b(generalise|bucketize|permute): ", text)[1:]
    return dict(zip(parts[::2], (p.strip() for p in parts[1::2]), strict=True))


def _form(cls: type[Registered], about: str) -> Form:
    explained = _field_explanations(cls)
    fields = [_field(name, cls, explained.get(name, "")) for name in cls.model_fields]
    # what must be said first, then what may be said; `use` last, because it is about the requirement as a whole
    fields.sort(key=lambda f: (f.name == "use", not f.required, f.name == "attribute"))
    return Form(cls.name, cls.summary_line(), about, tuple(fields))


def _field(name: str, cls: type[Settings], help_: str) -> Field:
    info = cls.model_fields[name]
    default = "" if info.is_required() or info.default is None else as_text(info.default)
    if info.default_factory is not None:
        default = ""
    annotation = _inner(info.annotation)
    help_ = help_ or info.description or ""
    kind: Kind = "list"
    values: tuple[str, ...] = ()
    if name == "use":
        kind, values = "choice", tuple(USES)
        help_ = "; ".join(f"{key}: {text}" for key, text in USES.items())
    elif name == "attribute":
        kind = "attribute"
    elif get_origin(annotation) is Literal:
        kind, values = "choice", tuple(str(v) for v in get_args(annotation))
    elif annotation is bool:
        kind, values = "choice", ("true", "false")
    elif annotation is int:
        kind = "whole"
    elif annotation in (float, Fraction):
        kind = "number"
    elif annotation is str:
        kind = "text"
    return Field(name, kind, info.is_required(), default, help_, values)


def _inner(annotation: Any) -> Any:
    """The type without None and without what validates it."""
    while True:
        if hasattr(annotation, "__metadata__"):
            annotation = annotation.__origin__
            continue
        some = [a for a in get_args(annotation) if a is not NoneType]
        if NoneType in get_args(annotation) and len(some) == 1:
            annotation = some[0]
            continue
        return annotation


def _field_explanations(cls: type) -> dict[str, str]:
    """What the docstring's Attributes section says of each field; base classes fill the gaps."""
    found: dict[str, str] = {}
    for base in cls.__mro__:
        text = docstring_of(base)
        _, _, section = text.partition("Attributes:\n")
        name = ""
        for line in section.splitlines():
            if not line.strip():
                break
            head = re.match(r"    (\w+): (.*)", line)
            if head and not line.startswith("     "):
                name = head[1]
                found.setdefault(name, head[2])
            elif name and base is cls:
                found[name] += " " + line.strip()
    return found


Values = dict[str, Any]
DEFAULT_REQUIREMENT = {"model": "k-anonymity", "k": "11"}
DEFAULT_METHOD = {
    "name": "optimal-lattice", "objective": "information-loss", "suppression": "0.02", "budget_s": "60",
}  # fmt: skip


def empty_policy(profile: Mapping[str, Any]) -> Values:
    """A policy without columns, for a table of which nothing could be guessed."""
    reading = {k: v for k, v in (profile.get("reading") or {}).items() if v not in (None, "", True)}
    if reading.get("header") is False:
        reading["header"] = "false"
    return {
        "version": 1,
        **({"input": reading} if reading else {}),
        "columns": {},
        "require": [dict(DEFAULT_REQUIREMENT)],
        "method": dict(DEFAULT_METHOD),
        "recoding": "generalise",
    }


def set_roles(
    values: Mapping[str, Any], roles: Mapping[str, str], profile: Mapping[str, Any]
) -> tuple[Values, list[str]]:
    """Give columns their roles; what hangs on an old role goes with it. Also returns what else changed, in words."""
    result: Values = copy.deepcopy(dict(values))
    known = {c["name"]: c for c in profile["columns"]}
    columns: dict[str, Any] = {}
    for name, role in roles.items():
        if name not in known:
            raise UsageError(f"the table has no column {name!r}")
        if role == "drop":
            continue
        before = result["columns"].get(name)
        if isinstance(before, Mapping) and before.get("role") == role:
            columns[name] = before
        elif role == "quasi-identifier" and known[name].get("hierarchy") is not None:
            columns[name] = {"role": role, "hierarchy": known[name]["hierarchy"]}
        elif role == "quasi-identifier":
            columns[name] = {"role": role, "hierarchy": "suppress"}
        else:
            columns[name] = role
    result["columns"] = columns
    person = _person_column(result.get("unit"))
    if person is not None and _role(columns.get(person)) != "identifier":
        result.pop("unit")
    elif isinstance(unit := result.get("unit"), Mapping) and unit.get("own"):
        own = [n for n in unit["own"] if _role(columns.get(n)) == "quasi-identifier"]
        result["unit"] = {**unit, "own": own}
    if keep := result.get("keep"):
        result["keep"] = {
            n: level for n, level in keep.items() if _role(columns.get(n)) == "quasi-identifier"
        }
    kept, notes = _still_meaningful(result["require"], columns)
    result["require"] = kept
    result.pop("preset", None)  # what was edited no longer is the preset
    return result, notes


def _person_column(unit: Any) -> str | None:
    """The column that tells persons apart, of a unit as a policy file writes it."""
    column = unit.get("column") if isinstance(unit, Mapping) else unit
    return None if column == ONE_ROW_EACH else column


def _role(column: Any) -> str | None:
    return column.get("role") if isinstance(column, Mapping) else column


def _still_meaningful(
    require: Sequence[Mapping[str, Any]], columns: Mapping[str, Any]
) -> tuple[list[Any], list[str]]:
    sensitive = [name for name, c in columns.items() if _role(c) == "sensitive"]
    kept, notes = [], []
    for item in require:
        attribute, model = item.get("attribute"), str(item["model"])
        about_values = model in MODELS and MODELS[model].about == "sensitive"
        if (attribute is not None and attribute not in sensitive) or (about_values and not sensitive):
            notes.append(
                f"the requirement {model} was removed, because {attribute or 'no column'} is not sensitive"
            )
        else:
            kept.append(item)
    return kept or [dict(DEFAULT_REQUIREMENT)], notes


def set_table(
    values: Mapping[str, Any], missing: Sequence[str], rows: str, unit: str | Mapping[str, Any] | None
) -> Values:
    """What means missing, what happens to such rows, and which column tells persons apart, with its settings."""
    result = copy.deepcopy(dict(values))
    result["missing"] = {"tokens": [t for t in missing if t], "rows": rows}
    result["unit"] = unit or None
    if person := _person_column(result["unit"]):
        result["columns"].setdefault(person, "identifier")
    return result


def set_keep(values: Mapping[str, Any], keep: Mapping[str, str]) -> Values:
    """What must stay of quasi-identifiers; an empty text asks for nothing."""
    asked = {name: text.strip() for name, text in keep.items() if text.strip()}
    known = {
        name: text for name, text in asked.items() if _role(values["columns"].get(name)) == "quasi-identifier"
    }
    result = {key: value for key, value in copy.deepcopy(dict(values)).items() if key != "keep"}
    return {**result, "keep": known} if known else result


def set_sample(values: Mapping[str, Any], size: str, weight: str, household: str) -> Values:
    """How many people there are of whom the table holds some, and the columns of survey weights and households."""
    result = copy.deepcopy(dict(values))
    named = {"weight": weight.strip(), "household": household.strip()}
    for key, name in named.items():
        result.pop(key, None)
        if name:
            result[key] = name
    if size.strip():
        result["population"] = {"size": size.strip()}
    elif "size" in (result.get("population") or {}):
        result.pop("population")
    return result


def set_multivalued(values: Mapping[str, Any], separators: Mapping[str, str]) -> Values:
    """Sensitive columns whose cells hold several values, with what separates them; empty: a cell is one value."""
    result = copy.deepcopy(dict(values))
    for name, separator in separators.items():
        column = result["columns"].get(name)
        if _role(column) != "sensitive":
            continue
        after = {**column} if isinstance(column, Mapping) else {"role": column}
        if after.pop("multivalued", None) is True and not separator:
            after["multivalued"] = True  # a list of a frame, which no form can say
        elif separator:
            for single in ("hierarchy", "order", "publish"):
                after.pop(single, None)
            after["multivalued"] = separator
        result["columns"][name] = after
    return result


def set_prepare(values: Mapping[str, Any], wanted: Mapping[str, bool], mess: Mapping[str, Any]) -> Values:
    """Messy columns made plain, or left as they are; the steps are those of the policy, else those that were found."""
    result = copy.deepcopy(dict(values))
    prepare = dict(result.pop("prepare", None) or {})
    for name, on in wanted.items():
        if not on:
            prepare.pop(name, None)
        elif name not in prepare and name in mess:
            prepare[name] = mess[name]["steps"]
    return {**result, "prepare": prepare} if prepare else result


def set_hierarchy(values: Mapping[str, Any], column: str, spec: Any, weight: str | None = None) -> Values:
    """How a column may be coarsened; limits to single levels go, because the levels are others now."""
    result = copy.deepcopy(dict(values))
    before = result["columns"].get(column)
    role = _role(before)
    if role not in ("quasi-identifier", "sensitive"):
        raise PolicyError(f"column {column!r} is not a quasi-identifier; give it that role first")
    after: Values = dict(before) if isinstance(before, Mapping) else {"role": role}
    after.pop("levels", None)
    after["hierarchy"] = spec
    if weight is not None and role == "quasi-identifier":
        after["weight"] = weight
    result["columns"][column] = after
    return result


def set_levels(values: Mapping[str, Any], levels: Mapping[str, str] | None) -> Values:
    """Publish each quasi-identifier at one given level (a choice of the solution space), or at any (None)."""
    result = copy.deepcopy(dict(values))
    for name, column in result["columns"].items():
        if _role(column) != "quasi-identifier":
            continue
        after = dict(column) if isinstance(column, Mapping) else {"role": column}
        after.pop("levels", None)
        if levels is not None:
            if name not in levels:
                raise UsageError(f"no level is given for column {name!r}; look at the choices again")
            after["levels"] = [levels[name]]
        result["columns"][name] = after
    return result


def with_sections(values: Mapping[str, Any], **changes: Any) -> Values:
    """Whole sections replaced."""
    return {**copy.deepcopy(dict(values)), **changes}
