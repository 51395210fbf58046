"""Values as codes on Spark: what occurs in a column is listed once, on the driver, and sent to every worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from maskwright.engines import sql
from maskwright.engines.coding import Arrays, Coded, Runner, texts_of

if TYPE_CHECKING:
    from maskwright.engines.spark.opening import SparkTable


@dataclass(frozen=True)
class SparkCoded(Coded):
    """`Coded`, by the values as they are stored: rows are neither trimmed nor spelled one by one.

    `labels`: per column what each value is published as; `label(i)` is then that of a row.
    """

    table: SparkTable
    labels: tuple[tuple[str | None, ...], ...] = ()

    def label(self, i: int) -> exp.Expression:
        return sql.column("t", f"d{i}")

    def content(self) -> dict[str, Arrays]:
        """For each stored value (`raw`) its code `k`, and its label `t`. Those that count as missing have code 0."""
        found = dict[str, Arrays]()
        for i, (name, domain) in enumerate(zip(self.names, self.domains, strict=True)):
            codes = {value: code for code, value in enumerate(domain, 1)}
            if len(codes) != len(domain):
                raise ValueError("a domain lists a value twice")
            stored, texts, _ = self.table.values(name)
            k = [0 if text is None else codes.get(text, self.unknown(i)) for text in texts]
            known = {"raw": stored, "k": np.array(k, dtype=np.int64)}
            if self.labels:
                shown = (None, *self.labels[i], None)
                known["t"] = texts_of([shown[code] for code in k])
            found[f"d{i}"] = known
        return found

    def joins(self) -> list[exp.Join]:
        return [
            sql.left_join(
                sql.relation(f"d{i}"), sql.equal(sql.column("raw", f"d{i}"), self.table.comparable(name))
            )
            for i, name in enumerate(self.names)
        ]

    def tables(self) -> dict[str, exp.Select]:
        return {}

    def unknown_values(self, runner: Runner, i: int) -> list[str]:
        _, texts, _ = self.table.values(self.names[i])
        return sorted({text for text in texts if text is not None} - set(self.domains[i]))
