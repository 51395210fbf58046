"""Correct releases of every kind, and what makes a published table safe: counted with csv and dictionaries."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import maskwright as mw
from maskwright.policy.policy import Policy
from tests.patients import forget

QIS = ["age", "zip", "sex"]
HEADER = ["name", "age", "zip", "sex", "disease", "job"]
Rows = list[dict[str, str]]


def people(n: int = 60) -> Rows:
    """n people; a few stand alone, so that something has to be suppressed."""
    rng = Random(5)  # noqa: S311 - a table for tests
    rows = [
        {
            "name": f"P{i:03d}",
            "age": str(20 + rng.randrange(20)),
            "zip": f"130{rng.randrange(2)}{rng.randrange(3)}",
            "sex": rng.choice("mf"),
            "disease": rng.choice(["flu", "flu", "asthma", "cancer", "ulcer"]),
            "job": rng.choice(["cook", "vet", "clerk"]),
        }
        for i in range(n)
    ]
    return [*rows, {"name": "P900", "age": "88", "zip": "99999", "sex": "m", "disease": "flu", "job": "vet"}]


@dataclass(frozen=True)
class Kind:
    """A kind of release: how it is made, and what the policy asks of its classes."""

    name: str
    method: dict[str, Any]
    k: int = 3
    distinct: int = 2
    recoding: str = "generalise"
    secrets: tuple[str, ...] = ("disease",)
    format: str = "csv"
    keep_private: str = "all"
    at_most: tuple[str, Fraction] | None = None  # no more than this share may have this value

    @property
    def policy(self) -> Policy:
        columns: dict[str, Any] = {
            "name": "identifier",
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}},
            "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
            "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
        }
        columns |= dict.fromkeys(self.secrets, "sensitive")
        require: list[Any] = [{"model": "k-anonymity", "k": self.k}]
        if self.distinct > 1:
            require.append({"model": "distinct-l-diversity", "l": self.distinct})
        if self.at_most:
            value, share = self.at_most
            require.append({"model": "simple-l-diversity", "l": str(1 / share), "values": [value]})
        return Policy.load(
            {"columns": columns, "require": require, "method": self.method, "recoding": self.recoding,
             "output": {"format": self.format}}
        )  # fmt: skip

    def make(self, folder: Path) -> Path:
        source = folder.with_suffix(".input.csv")
        write_csv(source, people(), HEADER)
        forget()
        keep: Any = self.keep_private
        mw.anonymize(source, self.policy, folder, seed=3, keep_private=keep)
        return folder

    # -- what is safe, by nothing but counting ---------------------------------------------------------------------

    def safe(self, folder: Path) -> bool:
        """Is what the public tables say now allowed by the policy?"""
        tables = [read(path) for path in tables_in(folder)]
        if any(rows is None or not rows[1] for rows in tables):
            return False
        whole = [(names, rows) for table in tables if table is not None for names, rows in [table]]
        allowed = {*QIS, *self.secrets, *(["group"] if self.recoding != "generalise" else [])}
        if any(set(names) - allowed for names, _ in whole):
            return False
        held = Counter(name for names, _ in whole for name in names if name in self.secrets)
        if any(held[name] != 1 for name in self.secrets):
            return False
        if self.recoding == "bucketize":
            return self._pair_is_safe(whole)
        by = QIS if self.recoding == "generalise" else ["group"]
        return all(
            set(QIS) | set(by) <= set(names) and self._classes_are_safe(rows, by, names)
            for names, rows in whole
        )

    def _pair_is_safe(self, tables: list[tuple[list[str], Rows]]) -> bool:
        if len(tables) != 2 or any("group" not in names for names, _ in tables):
            return False
        known = next((t for t in tables if set(QIS) <= set(t[0])), None)
        secret = next((t for t in tables if set(self.secrets) <= set(t[0])), None)
        if known is None or secret is None or known is secret:
            return False
        same = Counter(r["group"] for r in known[1]) == Counter(r["group"] for r in secret[1])
        return same and self._classes_are_safe(secret[1], ["group"], secret[0])

    def _classes_are_safe(self, rows: Rows, by: list[str], names: list[str]) -> bool:
        classes: dict[tuple[str, ...], Rows] = defaultdict(list)
        for row in rows:
            classes[tuple(row[c] for c in by)].append(row)
        for members in classes.values():
            if len(members) < self.k:
                return False
            for secret in set(self.secrets) & set(names):
                values = Counter(row[secret] for row in members if row[secret] != "")
                if len(values) < self.distinct:
                    return False
                if self.at_most and values[self.at_most[0]] > self.at_most[1] * len(members):
                    return False
        return True


KINDS = [
    Kind("lattice", {"name": "optimal-lattice", "suppression": "20%"}),
    Kind("star", {"name": "optimal-lattice", "suppression": "30%", "suppressed_rows": "star"}, distinct=1),
    Kind("mondrian", {"name": "mondrian", "cut": "relaxed"}),
    Kind("parquet", {"name": "optimal-lattice", "suppression": "20%"}, format="parquet"),
    Kind("permute", {"name": "mondrian", "cut": "relaxed"}, recoding="permute"),
    Kind("bucketize", {"name": "mondrian", "cut": "relaxed"}, recoding="bucketize"),
    Kind("mask", {"name": "mask"}, distinct=1, at_most=("flu", Fraction(1, 2))),
    Kind("codip", {"name": "codip", "plan": [["disease"], ["job"]], "base": {"name": "optimal-lattice",
                   "suppression": "20%"}}, secrets=("disease", "job")),
]  # fmt: skip


def tables_in(folder: Path) -> list[Path]:
    beside = {"mapping.csv"}
    return sorted(
        p for p in (folder / "public").iterdir() if p.suffix in (".csv", ".parquet") and p.name not in beside
    )


def read(path: Path) -> tuple[list[str], Rows] | None:
    """The column names and the rows as text; a missing value is the empty text. None: it is no table."""
    if path.suffix == ".parquet":
        from pyarrow import parquet

        table = parquet.read_table(path)
        rows = [{k: "" if v is None else str(v) for k, v in row.items()} for row in table.to_pylist()]
        return table.column_names, rows
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = list(csv.reader(file))
    lines[:1] = [
        [name.strip() for name in line] for line in lines[:1]
    ]  # blanks around a name are no part of it
    if not lines or any(len(line) != len(lines[0]) for line in lines):
        return None
    return lines[0], [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def write_csv(path: Path, rows: Rows, names: list[str], **how: Any) -> None:
    with path.open("w", newline="", encoding=how.pop("encoding", "utf-8")) as file:
        writer = csv.writer(file, **how)
        writer.writerow(names)
        writer.writerows([[row[n] for n in names] for row in rows])


def write(path: Path, rows: Rows, names: list[str]) -> None:
    """In the container that the name says."""
    if path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table({n: [row[n] or None for row in rows] for n in names}), path)
    else:
        write_csv(path, rows, names)
