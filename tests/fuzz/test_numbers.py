"""Every number that a policy can hold, at its extremes, through the whole pipeline: refused or right, never a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import maskwright as mw
from maskwright.errors import MaskwrightError
from maskwright.methods import METHODS
from maskwright.models import MODELS
from tests.amounts import first_of_each
from tests.fuzz.harness import check_message
from tests.patients import HEADER, POLICY, forget, patients, write_csv

EXTREME = ["0", "2147483648", "9223372036854775808", "1e100", "1e-100", "nan"]
# numbers that nobody refuses: where an extreme one is refused, it is for being extreme
USUAL = {"k": "2", "l": "2", "c": "0.9", "p": "1", "t": "0.9", "n": "2", "e": "0.1", "m": "0.9", "max": "1",
         "alpha": "0.9", "delta": "5", "beta": "0.9", "delta_max": "1", "delta_min": "0", "facts": "1",
         "suppression": "0.5", "budget_s": "5", "anatomize": "2", "neighbours": "4", "rounds": "2", "least": "2",
         "min_child": "2", "extend": "0.5", "ways": "2", "block": "8", "discernibility": "256",
         "epsilon": "1", "total_epsilon": "1", "total_delta": "0.1"}  # fmt: skip
# settings without which a number is not reached
MORE: dict[str, dict[str, Any]] = {
    "ke-anonymity": {"attribute": "age"},
    "belief": {"adversary": "insider"},
    "personalised-privacy": {"guarding": "mind"},
    "anatomy": {"l": "2"},
    "mask": {"l": "2", "values": ["flu"]},
    "dp-sample": {"delta": "0.5"},
}
OTHER_COLUMNS: dict[str, dict[str, Any]] = {
    "ke-anonymity": {"age": "sensitive", "ward": {"role": "quasi-identifier", "hierarchy": "suppress"}},
    "codip": {"ward": "sensitive"},
    # levels that are fixed in advance, and nothing beside the class
    "dp-sample": {
        "age": {
            "role": "quasi-identifier",
            "hierarchy": {"intervals": [5, 20], "domain": [0, 99]},
            "levels": ["any"],
        },
        "zip": {"role": "quasi-identifier", "hierarchy": "suppress", "levels": ["any"]},
        "sex": {"role": "quasi-identifier", "levels": ["any"]},
        "ward": {"role": "quasi-identifier", "levels": ["any"]},
    },
}


def numeric(registry: Any) -> list[tuple[str, str]]:
    """(name, field) of every setting that is a number."""
    kinds = ("int", "Fraction", "float")
    return [
        (name, field)
        for name, cls in registry.items()
        for field, info in cls.model_fields.items()
        if any(kind in str(info.annotation) for kind in kinds)
    ]


def policy(folder: Path, name: str, field: str, value: str) -> dict[str, Any]:
    """A policy that holds the value in a setting of this model or method."""
    cls: Any = MODELS.get(name) or METHODS[name]
    needed = {f: USUAL[f] for f, info in cls.model_fields.items() if info.is_required() and f in USUAL}
    given = {**needed, **MORE.get(name, {}), field: value}
    asked: dict[str, Any] = yaml.safe_load(POLICY) | {"require": [{"model": "k-anonymity", "k": 2}]}
    asked["columns"] |= OTHER_COLUMNS.get(name, {})
    if name in METHODS:
        if (name, field) == ("mondrian", "least"):  # where no value is looked at nobody asks for it
            asked["require"].append({"model": "distinct-l-diversity", "l": 2})
        return asked | {"method": {"name": name, **given}}
    if name in ("k-map", "delta-presence"):
        asked["population"] = {"file": str(folder / "population.csv")}
    if name in ("individual-risk", "population-uniqueness"):
        asked["population"] = {"size": 32}
    return asked | {"require": [{"model": name, **given}]}


def refusal(folder: Path, asked: dict[str, Any]) -> MaskwrightError | None:
    """Publish: why not, in one line; None: it was published."""
    forget()
    try:
        mw.anonymize(folder / "patients.csv", asked)
    except MaskwrightError as refused:
        assert check_message(refused).startswith("refused: "), refused
        return refused
    return None


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    mind = [[*row, row[HEADER.index("disease")]] for row in patients(16)]
    write_csv(tmp_path / "patients.csv", mind, [*HEADER, "mind"])
    write_csv(tmp_path / "population.csv", patients(32))
    return tmp_path


@pytest.mark.parametrize(("name", "field"), first_of_each([*numeric(MODELS), *numeric(METHODS)]))
def test_settings(name: str, field: str, tables: Path) -> None:
    assert refusal(tables, policy(tables, name, field, USUAL[field])) is None
    for value in EXTREME:
        refusal(tables, policy(tables, name, field, value))


@pytest.mark.parametrize(
    ("column", "given"),
    [
        ("zip", lambda value: {"hierarchy": {"mask": "right"}, "weight": value}),
        ("age", lambda value: {"hierarchy": {"intervals": [value]}}),
        ("age", lambda value: {"hierarchy": {"intervals": [[value, "30"]]}}),
        ("age", lambda value: {"hierarchy": {"intervals": [5], "origin": value}}),
        ("age", lambda value: {"hierarchy": {"intervals": [5], "below": value}}),
    ],
    ids=["weight", "width", "bounds", "origin", "below"],
)
def test_columns(column: str, given: Any, tables: Path) -> None:
    asked = yaml.safe_load(POLICY) | {"require": [{"model": "k-anonymity", "k": 2}]}
    for value in ["25", *EXTREME]:
        asked["columns"][column] = {"role": "quasi-identifier", **given(value)}
        refused = refusal(tables, asked)
        assert value in EXTREME or refused is None
