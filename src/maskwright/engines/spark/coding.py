"""Values as codes on Spark: looked up by canonical text, so that no pass is needed to list what occurs."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from maskwright.engines import sql
from maskwright.engines.coding import Arrays, Coded, Runner, texts_of


@dataclass(frozen=True)
class TextCoded(Coded):
    """`Coded`, with the domains themselves (small, so sent to every worker) as dictionaries.

    `labels`: per column what each value is published as; `label(i)` is then that of a row.
    """

    labels: tuple[tuple[str | None, ...], ...] = ()

    def label(self, i: int) -> exp.Expression:
        return sql.column("t", f"d{i}")

    def content(self) -> dict[str, Arrays]:
        known = super().content()
        for i, labels in enumerate(self.labels):
            known[f"v{i}"] = {**known[f"v{i}"], "t": texts_of(labels)}
        return known

    def code(self, i: int) -> exp.Expression:
        absent = sql.case(
            (sql.is_null(self.table.text(self.names[i])), sql.integer(0)),
            otherwise=sql.integer(self.unknown(i)),
        )
        return exp.Coalesce(this=sql.column("k", f"d{i}"), expressions=[absent])

    def joins(self) -> list[exp.Join]:
        return [
            sql.left_join(
                sql.relation(f"v{i}", f"d{i}"), sql.equal(sql.column("v", f"d{i}"), self.table.text(name))
            )
            for i, name in enumerate(self.names)
        ]

    def tables(self) -> dict[str, exp.Select]:
        return {}

    def unknown_values(self, runner: Runner, i: int) -> list[str]:
        text = self.table.text(self.names[i])
        unknown = sql.equal(self.code(i), sql.integer(self.unknown(i)))
        query = sql.select(
            [sql.alias(text, "v")],
            self.table.source(),
            joins=[self.joins()[i]],
            where=[unknown],
            distinct=True,
        )
        return sorted(str(row[0]) for row in runner.rows(query, self.table.parameters))
