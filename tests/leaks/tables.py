"""Tables of people in a telling order, policies for them, and tables of every kind that can be handed in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import maskwright as mw
from maskwright.pipeline.history import state_folder
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from maskwright.pipeline.random_keys import NAME

KINDS = ("csv", "parquet", "pandas", "polars", "pyarrow", "duckdb")
RECODINGS: dict[str, Any] = {
    "generalise": "generalise",
    "bucketize": "bucketize",
    "permute": "permute",
    "bucketize-generalised": {"name": "bucketize", "quasi_identifiers": "generalised"},
    "permute-generalised": {"name": "permute", "quasi_identifiers": "generalised"},
}
SIZE = {"model": "k-anonymity", "k": 4}
DIVERSE = {"model": "simple-l-diversity", "l": 2}
METHODS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "optimal-lattice": ({"suppression": "10%"}, [SIZE, DIVERSE]),
    "samarati": ({"suppression": "10%"}, [SIZE, DIVERSE]),
    "incognito": ({"suppression": "10%"}, [SIZE, DIVERSE]),
    "local-recoding": ({}, [SIZE, DIVERSE]),
    "local-suppression": ({"suppression": "10%"}, [SIZE, DIVERSE]),
    "mondrian": ({}, [SIZE, DIVERSE]),
    "greedy-grouping": ({}, [DIVERSE]),
    "symmetric-grouping": ({}, [DIVERSE]),
    "anatomy": ({"l": 2}, [DIVERSE]),
    "alpha-k-local": ({}, [{"model": "alpha-k-anonymity", "alpha": "1/2", "k": 4}]),
    "mask": ({"l": 3, "values": ["d3"]}, [SIZE]),
    "codip": ({"plan": [["disease"], ["habit"]]}, [SIZE, {**DIVERSE, "attribute": "disease"}]),
}


def people(n: int, seed: int = 0) -> dict[str, list[Any]]:
    """n people in the order of their age; `when` counts the input's rows in blocks of ten."""
    rng = np.random.default_rng(seed)
    return {
        "age": np.sort(rng.integers(20, 84, n)).tolist(),
        "zip": [f"1{z}" for z in rng.integers(0, 8, n).tolist()],
        "disease": [f"d{d}" for d in rng.integers(0, 5, n).tolist()],
        "habit": [f"h{d}" for d in rng.integers(0, 3, n).tolist()],
        "when": [i // 10 for i in range(n)],
    }


def policy(method: str, recoding: str = "generalise", passes: bool = False, **more: Any) -> dict[str, Any]:
    """`passes`: the column `when` is published as it is, so that rows are read again."""
    options, require = METHODS[method]
    columns: dict[str, Any] = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [4, 16, 32]}},
        "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
        "disease": "sensitive",
    }
    if method == "codip":
        columns["habit"] = "sensitive"
    if passes:
        columns["when"] = {"role": "insensitive", "near_unique": "allow"}
    return {
        "version": 1,
        "columns": columns,
        "require": require,
        "method": {"name": method, **options},
        "recoding": RECODINGS[recoding],
    } | more


def as_kind(data: Mapping[str, list[Any]], kind: str, folder: Path) -> Any:
    """The same table as a file, or as a table of a library."""
    frame = pd.DataFrame(data)
    if kind == "csv":
        frame.to_csv(folder / "input.csv", index=False)
        return folder / "input.csv"
    if kind == "parquet":
        frame.to_parquet(folder / "input.parquet", index=False)
        return folder / "input.parquet"
    if kind == "polars":
        return pl.DataFrame(dict(data))
    if kind == "pyarrow":
        return pa.table(dict(data))
    if kind == "duckdb":
        return duckdb.connect().from_df(frame)
    return frame


def columns_of(table: Any, kind: str) -> dict[str, list[Any]]:
    """What came back, in its order, as text."""
    if kind in ("csv", "parquet"):
        frame = pd.read_csv(table, dtype=str) if kind == "csv" else pd.read_parquet(table)
        return {c: frame[c].astype(str).tolist() for c in frame.columns}
    if kind == "polars":
        return {name: [str(v) for v in values] for name, values in table.to_dict(as_series=False).items()}
    if kind == "pyarrow":
        return {name: [str(v) for v in values] for name, values in table.to_pydict().items()}
    frame = table.df() if kind == "duckdb" else table
    return {c: frame[c].astype(str).tolist() for c in frame.columns}


def forget_key() -> None:
    """The next run is on a new installation: it makes a key of its own."""
    (state_folder() / NAME).unlink(missing_ok=True)


def publish(
    data: Mapping[str, list[Any]], made: dict[str, Any], kind: str, folder: Path, seed: int | None = None
) -> dict[str, dict[str, list[Any]]]:
    """The tables of a release by the whole pipeline but for the attacks, as anybody would read them.

    Each release without a seed is drawn with an installation key of its own.
    """
    forget_key()
    source = as_kind(data, kind, folder)
    destination = folder / "release" if kind in ("csv", "parquet") else None
    job = Job(source, mw.Policy.load(made), destination, True, seed, attacks=(), keep_private="none")
    return {name: columns_of(table, kind) for name, table in publish_release(job).tables.items()}
