"""A table with values of every kind that engines might spell differently, and policies that use them in every way."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

DISEASES = ["flu", "Grippe, schwer", 'the "English" one', "zwei\nZeilen", "Müdigkeit", "0", "1.50"]
SYMPTOMS = ["cough", "fever", "rash", "pain"]


def people(n: int = 240) -> pa.Table:
    draw = random.Random(11)  # noqa: S311 - a table that is the same every time
    start = datetime(2023, 12, 30, 23, 59, 59, 500000)
    rows: dict[str, list[Any]] = {
        "person": [f"p{i // 2:04}" for i in range(n)],  # two rows each
        "age": [draw.randrange(20, 60) for _ in range(n)],
        "height": [draw.choice([1.5, 1.625, 1.75, 2.0, float("nan"), -0.0, 1e20, 1.5e-7]) for _ in range(n)],
        "zip": [draw.choice(["00123", "00124", " 00123 ", "99900", "?"]) for _ in range(n)],
        "vip": [draw.choice([True, False, None]) for _ in range(n)],
        "born": [draw.choice([date(1970, 1, 1), date(1980, 2, 29), None]) for _ in range(n)],
        "disease": [draw.choice(DISEASES) for _ in range(n)],
        "ward": [draw.choice(["A", "B", None]) for _ in range(n)],
        "cost": [draw.choice([Decimal("1.00"), Decimal("12.50"), Decimal("0.10")]) for _ in range(n)],
        "seen": [start + timedelta(seconds=draw.randrange(3)) for _ in range(n)],
        "symptoms": [
            draw.choice([None, "", *SYMPTOMS, "cough;fever", "rash; cough ;rash"]) for _ in range(n)
        ],
        "note": [f"seen {i}" for i in range(n)],
    }
    return pa.table({name: pa.array(values, _TYPES.get(name)) for name, values in rows.items()})


_TYPES = {"cost": pa.decimal128(10, 2), "seen": pa.timestamp("us"), "age": pa.int32(), "vip": pa.bool_()}


def stored(folder: Path) -> Path:
    path = folder / "people.parquet"
    parquet.write_table(people(), path, row_group_size=50)
    return path


_COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 40]}},
    "height": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "vip": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "disease": "sensitive",
}
_PASSED = {
    "ward": {"role": "insensitive", "near_unique": "allow"},
    "cost": {"role": "insensitive", "near_unique": "allow"},
    "seen": {"role": "insensitive", "near_unique": "allow"},
    "born": {"role": "insensitive", "near_unique": "allow"},
}


def _policy(columns: dict[str, Any], require: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    missing = {"tokens": ["?", "2", "1.5e-07"], "rows": "keep"}
    return {"version": 1, "missing": missing, "columns": columns, "require": require, **more}


_K = {"model": "k-anonymity", "k": 4}
_L = {"model": "simple-l-diversity", "l": 2}
_LATTICE = {"name": "optimal-lattice", "suppression": "10%"}
_BALANCED = {"name": "mondrian", "cut": "relaxed"}
_ANATOMY = {"name": "anatomy", "l": 3}
POLICIES: dict[str, dict[str, Any]] = {
    "full-domain": _policy(_COLUMNS | _PASSED, [_K], method=_LATTICE),
    "full-domain-starred": _policy(_COLUMNS, [_K], method=_LATTICE | {"suppressed_rows": "star"}),
    "mondrian": _policy(_COLUMNS, [_K], method={"name": "mondrian"}),
    "mondrian-passed": _policy(_COLUMNS | _PASSED, [_K], method={"name": "mondrian"}),
    "bucketize": _policy(_COLUMNS, [_L], method=_ANATOMY, recoding="bucketize"),
    "bucketize-passed": _policy(_COLUMNS | _PASSED, [_L], method=_ANATOMY, recoding="bucketize"),
    "permute": _policy(_COLUMNS, [_L], method=_ANATOMY, recoding="permute"),
    "permute-passed": _policy(_COLUMNS | {"ward": _PASSED["ward"]}, [_L], method=_ANATOMY, recoding="permute"),
    "finest": _policy(
        _COLUMNS | _PASSED | {
            "age": _COLUMNS["age"] | {"finest": "width 5"}, "zip": _COLUMNS["zip"] | {"finest": 1},
        },
        [_K], method=_LATTICE,
    ),
    "finest-bucketize": _policy(
        _COLUMNS | {"age": _COLUMNS["age"] | {"finest": 1}}, [_L], method=_ANATOMY, recoding="bucketize"
    ),
    "unit": _policy(
        {"person": "identifier", "age": _COLUMNS["age"], "zip": _COLUMNS["zip"], "disease": "sensitive"},
        [_K], method=_LATTICE, unit="person",
    ),
    "sets": _policy(
        {"age": _COLUMNS["age"], "zip": _COLUMNS["zip"], "symptoms": {"role": "sensitive", "multivalued": ";"}},
        [_K], method=_LATTICE,
    ) | {"missing": {"tokens": ["?"], "rows": "drop"}},
}  # fmt: skip
