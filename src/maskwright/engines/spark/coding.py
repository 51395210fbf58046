"""Values as codes on Spark: looked up by canonical text, so that no pass is needed to list what occurs."""

from __future__ import annotations

from sqlglot import exp

from maskwright.engines import sql
from maskwright.engines.coding import Coded, Runner


class TextCoded(Coded):
    """`Coded`, with the domains themselves (small, so sent to every worker) as dictionaries."""

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
