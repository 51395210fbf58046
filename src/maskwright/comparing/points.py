"""From policies and grids to the points of a comparison: each is a policy of its own, with a name."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from maskwright.domain.settings import did_you_mean
from maskwright.errors import PolicyError, UsageError
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.pipeline.history import policy_hash
from maskwright.policy.binding import method_of, models_of
from maskwright.policy.policy import AnyPolicy, Policy

MOST = 1000  # points of one comparison
RECODINGS = ("generalise", "bucketize", "permute")


@dataclass(frozen=True)
class Candidate:
    """A policy that takes part, under a name that nobody else has."""

    name: str
    policy: Policy
    notes: tuple[str, ...] = ()


def policy_candidates(policies: Sequence[AnyPolicy], grid: Mapping[str, Sequence[Any]]) -> list[Candidate]:
    """Every policy, crossed with the grid where there is one; equal ones take part once. Refuses bad ones at once."""
    if not policies:
        raise UsageError("a comparison needs at least one policy")
    found: dict[str, Candidate] = {}
    several = len(policies) > 1
    for number, given in enumerate(policies, start=1):
        base = Policy.load(given)
        stem = Path(given).stem if isinstance(given, (str, Path)) else f"policy-{number}"
        for name, policy, notes in _crossed_with_grid(base, grid):
            whole = " ".join(([stem] if several or not name else []) + ([name] if name else []))
            try:
                (
                    models_of(policy),
                    method_of(policy),
                )  # unknown names and settings are refused before anything runs
            except PolicyError as problem:
                hint = _settings_of_others(policy, grid)
                raise PolicyError(f"{whole}: {problem}{hint}", problem.details) from None
            if policy_hash(policy) not in found:
                found[policy_hash(policy)] = Candidate(whole, policy, notes)
    return _distinct(list(found.values()))


def _crossed_with_grid(
    base: Policy, grid: Mapping[str, Sequence[Any]]
) -> list[tuple[str, Policy, tuple[str, ...]]]:
    """A policy for each combination of the grid's values, named by them."""
    for key, values in grid.items():
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
            raise UsageError(f"grid: {key!r} needs a list of values, e.g. {key}=2,5,10")
    size = 1
    for values in grid.values():
        size *= len(values)
    if size > MOST:
        raise UsageError(f"the grid has {size} points; the most that can be compared at once are {MOST}")
    # the method comes first: which options there are depends on it
    keys = sorted(grid, key=lambda key: key != "method")
    result = []
    for chosen in itertools.product(*(grid[key] for key in keys)):
        settings, notes = base.to_dict(), list[str]()
        for key, value in zip(keys, chosen, strict=True):
            notes += _set(settings, key, _plain(value))
        policy = Policy.of(settings, "grid").beside(base)
        pairs = dict(zip(keys, chosen, strict=True))
        result.append((" ".join(f"{key}={pairs[key]}" for key in grid), policy, tuple(notes)))
    return result


def _set(values: dict[str, Any], key: str, value: Any) -> list[str]:
    """Change one setting of a policy; notes say what had to go with it."""
    if key == "method":
        return _set_method(values, str(value))
    if key == "recoding":
        if value not in RECODINGS:
            raise UsageError(f"grid: there is no recoding {value!r}; {did_you_mean(str(value), RECODINGS)}")
        values["recoding"] = value
        return []
    places = _entries_with(values, key)
    if len(places) > 1:
        names = " or ".join(f"{name}.{key.rpartition('.')[2]}" for name, _ in places)
        raise UsageError(f"grid: {key!r} could mean {names}; write which")
    if not places and key.partition(".")[0] in METHODS:
        return []  # an option of a method that other points of the grid use
    if not places:
        raise UsageError(
            f"grid: {key!r} is no setting of this policy; {_known(values)}{_of_methods([(key, value)])}"
        )
    places[0][1][key.rpartition(".")[2]] = value
    return []


def _set_method(values: dict[str, Any], name: str) -> list[str]:
    if name not in METHODS:
        raise UsageError(f"grid: there is no method {name!r}; {did_you_mean(name, METHODS)}")
    old = values["method"]
    if name == old["name"]:
        return []
    kept = {k: v for k, v in old.items() if k in METHODS[name].model_fields}
    left = sorted(set(old) - set(kept) - {"name"})
    values["method"] = {"name": name, **kept}
    return [f"{name} has no option {', '.join(left)}: left out"] if left else []


def _entries_with(values: dict[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    """Where a key such as `k`, `k-anonymity.k` or `mondrian.cut` belongs: the requirements, and the method."""
    owner, _, setting = key.rpartition(".")
    found = []
    for requirement in values["require"]:
        name = requirement["model"]
        if owner in ("", name) and name in MODELS and setting in MODELS[name].model_fields:
            found.append((name, requirement))
    method = values["method"]
    name = method["name"]
    if owner in ("", name) and name in METHODS and setting in METHODS[name].model_fields:
        found.append((name, method))
    if owner == "" and len(found) > 1:  # settings that the policy writes down are meant before defaults
        written = [(name, place) for name, place in found if setting in place]
        found = written or found
    return found


def _known(values: dict[str, Any]) -> str:
    known = ["method", "recoding"]
    for requirement in values["require"]:
        if requirement["model"] in MODELS:
            known += [f"{requirement['model']}.{f}" for f in MODELS[requirement["model"]].model_fields]
    name = values["method"]["name"]
    known += [f"{name}.{f}" for f in METHODS[name].model_fields] if name in METHODS else []
    return "known: " + ", ".join(known)


def _settings_of_others(policy: Policy, grid: Mapping[str, Sequence[Any]]) -> str:
    """What to write where a setting of the grid is meant for other methods than that of a policy."""
    name = str(policy.to_dict()["method"]["name"])
    said = [(key, _plain(value)) for key, values in grid.items() if "." not in key for value in values]
    refused = [(key, value) for key, value in said if name in METHODS and not _takes(name, key, value)]
    return _of_methods([pair for pair in refused if pair[0] in METHODS[name].model_fields] if refused else [])


def _of_methods(settings: Sequence[tuple[str, Any]]) -> str:
    """How values of settings are written so that they are for those methods alone that take them."""
    named = [f"{name}.{key}=..., " for key, value in settings for name in METHODS if _takes(name, key, value)]
    if not named:
        return ""
    return ". For the methods that take it alone write " + "".join(dict.fromkeys(named)).removesuffix(", ")


def _takes(method: str, setting: str, value: Any) -> bool:
    """Whether a method has a setting that may have this value."""
    field = METHODS[method].model_fields.get(setting)
    if field is None:
        return False
    try:
        TypeAdapter[Any](Annotated[field.annotation, field]).validate_python(value)  # type: ignore[arg-type]
    except ValidationError:
        return False
    return True


def _plain(value: Any) -> Any:
    """Values of a command line as a policy file would have them."""
    if not isinstance(value, str):
        return value
    if re.fullmatch(r"-?\d{1,18}", value):
        return int(value)
    return {"true": True, "false": False, "yes": True, "no": False}.get(value.lower(), value)


def parse_grid(texts: Sequence[str]) -> dict[str, list[str]]:
    """`k=2,5,10` from the command line."""
    grid: dict[str, list[str]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        parts = [part.strip() for part in values.split(",")]
        if not equals or not key.strip() or not all(parts):
            raise UsageError(f"--grid {text!r}: write a setting and its values, e.g. --grid k=2,5,10")
        if key.strip() in grid:
            raise UsageError(f"--grid names {key.strip()!r} twice; give all its values at once")
        grid[key.strip()] = parts
    return grid


def _distinct(found: list[Candidate]) -> list[Candidate]:
    """No two with the same name: policy files of the same name are told apart by a number."""
    names: dict[str, int] = {}
    result = []
    for candidate in found:
        names[candidate.name] = names.get(candidate.name, 0) + 1
        number = names[candidate.name]
        name = candidate.name if number == 1 else f"{candidate.name} ({number})"
        result.append(Candidate(name, candidate.policy, candidate.notes))
    return result


def with_absolute_paths(policy: Policy) -> Policy:
    """The policy with absolute paths, so that it can be written to another folder and run from there."""
    return policy.with_files(lambda file: str((policy.folder / file).resolve()))
