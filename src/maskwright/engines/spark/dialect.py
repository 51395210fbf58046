"""The SQL of Spark where sqlglot's own rendering does not say what we mean."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from maskwright.engines import sql

# A floating number `v.n`, whose Java text is `v.s`, as DuckDB prints it: 0.0001, 12345678.5, 1e-05, 1.5e+20, inf.
# Whole numbers below 9e18 never get here (see `sql.text_of`). A decimal with 16 digits before the point and 22 after
# it holds every other number between 0.0001 and 1e16 exactly as Java spells it.
_NUMBER = """CASE
WHEN v.s IN ('Infinity', '-Infinity') THEN REPLACE(v.s, 'Infinity', 'inf')
WHEN v.s = 'NaN' THEN 'nan'
WHEN ABS(v.n) >= 1e-4D AND ABS(v.n) < 1e16D THEN
  TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST(CAST(v.s AS DECIMAL(38, 22)) AS STRING)))
ELSE CONCAT(
  REGEXP_REPLACE(SUBSTRING_INDEX(v.s, 'E', 1), '[.]0$', ''),
  CASE WHEN INSTR(v.s, 'E-') > 0 THEN 'e-' ELSE 'e+' END,
  CASE WHEN LENGTH(REPLACE(SUBSTRING_INDEX(v.s, 'E', -1), '-', '')) = 1 THEN '0' ELSE '' END,
  REPLACE(SUBSTRING_INDEX(v.s, 'E', -1), '-', ''))
END""".replace("\n", " ")


class MaskwrightSpark(Spark):
    """Spark with ANSI rules, in which texts of values are those that DuckDB gives."""

    class Generator(Spark.Generator):  # type: ignore[misc, valid-type]
        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            """Texts of floating numbers and of instants are spelled alike on all engines."""
            kind = str(expression.meta.get("of", ""))
            inner = self.sql(expression, "this")
            if kind.startswith(("FLOAT", "DOUBLE")):  # the number is computed once, whatever it takes
                pair = f"NAMED_STRUCT('n', {inner}, 's', CAST({inner} AS STRING))"
                return f"ELEMENT_AT(TRANSFORM(ARRAY({pair}), v -> {_NUMBER}), 1)"
            if kind == "TIMESTAMP":
                return f"CONCAT(CAST({inner} AS STRING), '+00')"
            return str(super().cast_sql(expression, safe_prefix))

        def trycast_sql(self, expression: exp.TryCast) -> str:
            return f"TRY_CAST({self.sql(expression, 'this')} AS {self.sql(expression, 'to')})"

        def cte_sql(self, expression: exp.CTE) -> str:
            expression.set("materialized", None)
            return str(super().cte_sql(expression))


def rendered(query: exp.Expression, parameters: Any) -> tuple[str, dict[str, Any]]:
    """A query as text, with the parameters that it has."""
    return query.sql(MaskwrightSpark), sql.used(query, parameters)
