"""Every number that a policy can hold, at its extremes, through the whole pipeline: refused or right, never a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import maskwright as mw
from maskwright.core.settings import Registered
from maskwright.errors import MaskwrightError
from maskwright.methods import METHODS
from maskwright.models import MODELS
from patients import POLICY, forget, patients, write_csv
from tests.fuzz.harness import check_message

EXTREME = ["0", "2147483648", "9223372036854775808", "1e100", "1e-100", "nan"]
NEEDED = {"k": "2", "l": "2", "c": "0.9", "p": "1", "t": "0.9", "n": "2", "e": "0.1", "m": "0.9",
"max": "0.9", "alpha": "0.9",
          "delta": "5", "beta": "5", "delta_max": "1", "delta_min": "0"}  # fmt: skip


def numeric(registry: Any) -> list[tuple[str, str]]:
    """(name, field) of every setting that is a number."""
    kinds = ("int", "Fraction", "float")
    return [
        (name, field)
        for name, cls in registry.items()
        for field, info in cls.model_fields.items()
        if any(kind in str(info.annotation) for kind in kinds)
    ]


def settings(cls: type[Registered], key: str, field: str, value: str) -> dict[str, Any]:
    given = {f: NEEDED[f] for f, info in cls.model_fields.items() if info.is_required() and f in NEEDED}
    return {key: cls.name, **given, field: value}


def tried(folder: Path, **changes: Any) -> None:
    asked = yaml.safe_load(POLICY) | {"require": [{"model": "k-anonymity", "k": 2}]} | changes
    if changes.get("require", [{}])[0].get("model") == "ke-anonymity":
        asked["columns"]["age"], asked["columns"]["ward"] = (
            "sensitive",
            {"role": "quasi-identifier", "hierarchy": "suppress"},
        )
    forget()
    try:
        mw.anonymize(folder / "patients.csv", asked)
    except MaskwrightError as refused:
        assert check_message(refused).startswith("refused: "), refused


@pytest.mark.parametrize(("name", "field"), numeric(MODELS))
def test_models(name: str, field: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "patients.csv", patients(16))
    for value in EXTREME:
        tried(tmp_path, require=[settings(MODELS[name], "model", field, value)])


@pytest.mark.parametrize(("name", "field"), numeric(METHODS))
def test_methods(name: str, field: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "patients.csv", patients(16))
    for value in EXTREME:
        tried(tmp_path, method=settings(METHODS[name], "name", field, value))


def test_columns(tmp_path: Path) -> None:
    write_csv(tmp_path / "patients.csv", patients(16))
    for value in EXTREME:
        columns = yaml.safe_load(POLICY)["columns"]
        columns["zip"]["weight"] = value
        tried(tmp_path, columns=columns)
        for given in ({"intervals": [value]}, {"intervals": [[value, "30"]]}, {"intervals": [5],
        "origin": value},
                      {"intervals": [5], "below": value}):  # fmt: skip
            columns = yaml.safe_load(POLICY)["columns"]
            columns["age"]["hierarchy"] = given
            tried(tmp_path, columns=columns)
