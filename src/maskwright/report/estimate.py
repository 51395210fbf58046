"""Counting with groups in which values are not attached to rows: the estimator, its error, its certain bounds.

In a group of n rows, a of which have the quasi-identifiers in question and m the sensitive values, every way to deal
the values to the rows is as likely as any other. So the count has a hypergeometric distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from maskwright.report.html import Markup, html_table, tag

EXAMPLE = ((4, 3, 2), (5, 1, 1))  # (n, a, m) of two groups


@dataclass(frozen=True)
class Estimate:
    """The count of people with certain quasi-identifiers and certain sensitive values."""

    mean: Fraction
    variance: Fraction
    least: int
    most: int


def estimate_count(groups: Sequence[tuple[int, int, int]]) -> Estimate:
    """What is known of the count, from (n, a, m) of each group."""
    mean = sum((Fraction(a * m, n) for n, a, m in groups), Fraction(0))
    spread = (Fraction(a * m * (n - a) * (n - m), n * n * (n - 1)) for n, a, m in groups if n > 1)
    least = sum(max(0, a + m - n) for n, a, m in groups)
    return Estimate(mean, sum(spread, Fraction(0)), least, sum(min(a, m) for _, a, m in groups))


def worked_example() -> list[Markup]:
    """The estimator in words, in numbers, and as a table."""
    found = estimate_count(EXAMPLE)
    rows = []
    for i, (n, a, m) in enumerate(EXAMPLE, 1):
        one = estimate_count([(n, a, m)])
        rows.append((f"group {i}", n, a, m, f"{a} × {m}/{n} = {float(one.mean):.4g}", f"{float(one.variance):.4g}",
                     f"{one.least} to {one.most}"))  # fmt: skip
    error = float(found.variance) ** 0.5
    total = f"{float(found.mean):.4g}"
    rows.append(("both", sum(g[0] for g in EXAMPLE), sum(g[1] for g in EXAMPLE), sum(g[2] for g in EXAMPLE), total,
                 f"{float(found.variance):.4g}", f"{found.least} to {found.most}"))  # fmt: skip
    head = ("", "rows n", "women a", "flu m", "expected a × m/n", "variance", "certainly")
    return [
        tag("p", "An example with made-up numbers: how many women have flu?"),
        html_table(head, rows, numbers=(1, 2, 3, 4, 5, 6), caption="Worked example"),
        tag("p", f"The estimate is {total}, with a standard error of {error:.2f} (the square root of the sum of the "
                 "variances a m (n − a)(n − m) / (n² (n − 1))). What is certain is that it is between "
                 f"{found.least} and {found.most}."),
    ]  # fmt: skip


def as_sql(dictionary: Mapping[str, Any]) -> str | None:
    """The estimator as SQL on the files of this release; None where there is nothing to estimate."""
    columns = dictionary["columns"]
    group = next((c for c in columns if c["role"] == "group"), None)
    known = next((c for c in columns if c["role"] == "quasi-identifier" and c.get("labels")), None)
    secret = next((c for c in columns if c["role"] == "sensitive"), None)
    if group is None or known is None or secret is None:
        return None
    by, here, there = _name(group["name"]), _name(known["table"]), _name(secret["table"])
    value = "'" + known["labels"][0].replace("'", "''") + "'"
    counts = f"SELECT {by}, count(*) AS n FROM"
    return (
        f"SELECT sum(a.n * m.n * 1.0 / g.n) AS estimate\n"
        f"FROM ({counts} {here} WHERE {_name(known['name'])} = {value} GROUP BY {by}) AS a\n"
        f"JOIN ({counts} {there} WHERE {_name(secret['name'])} = 'VALUE' GROUP BY {by}) AS m\n"
        f"  ON m.{by} = a.{by}\n"
        f"JOIN ({counts} {there} GROUP BY {by}) AS g ON g.{by} = a.{by}"
    )


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
