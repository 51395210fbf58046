"""What the forms do to a policy: from what the policy file says now to what it says next.

Each function takes and gives the plain mapping of a policy file. The result is checked by `Project.save_policy`,
and written only if it is a valid policy.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from maskwright.errors import PolicyError, UsageError
from maskwright.models import MODELS

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
    if result.get("unit") is not None and _role(columns.get(result["unit"])) != "identifier":
        result.pop("unit")
    kept, notes = _still_meaningful(result["require"], columns)
    result["require"] = kept
    result.pop("preset", None)  # what was edited no longer is the preset
    return result, notes


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


def set_table(values: Mapping[str, Any], missing: Sequence[str], rows: str, unit: str | None) -> Values:
    """What means missing, what happens to such rows, and which column tells persons apart."""
    result = copy.deepcopy(dict(values))
    result["missing"] = {"tokens": [t for t in missing if t], "rows": rows}
    result["unit"] = unit or None
    if unit:
        result["columns"].setdefault(unit, "identifier")
    return result


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


def with_(values: Mapping[str, Any], **changes: Any) -> Values:
    """Whole sections replaced."""
    return {**copy.deepcopy(dict(values)), **changes}
