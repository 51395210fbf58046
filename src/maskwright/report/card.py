"""The data card: what a recipient needs to know. It is made from public facts only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from maskwright.report.html import Markup, page, table, tag

ESTIMATE = (
    "To count the people with certain quasi-identifiers and certain sensitive values, add up over the groups: (rows of "
    "the group with these quasi-identifiers) × (share of these sensitive values in the group). This is the mean of the "
    "true count over everything that the release leaves open."
)
HOW = {
    "generalise": (
        "Each row is one record of the original table. Values of recoded columns are labels that stand for sets of "
        "original values: count and group by them as they are, and do not read exact values into them.",
    ),
    "bucketize": (
        "There are two tables. Rows with the same group number belong together, but which sensitive row belongs to "
        "which row of quasi-identifiers inside a group is not published, and cannot be found out from row order.",
        ESTIMATE,
    ),
    "permute": (
        "Inside each group the sensitive values were shuffled over the rows: a row does not show the sensitive value "
        "of the person it describes, only one of the values that occur in the group.",
        ESTIMATE,
    ),
}


def write_data_card(
    path: Path, dictionary: Mapping[str, Any], promised: Sequence[Mapping[str, Any]], seeded: bool
) -> None:
    """Write the card. Its arguments are what is in public/ already; nothing else can get into it."""
    path.write_text(data_card(dictionary, promised, seeded), encoding="utf-8")


def data_card(dictionary: Mapping[str, Any], promised: Sequence[Mapping[str, Any]], seeded: bool) -> str:
    several = len({c["table"] for c in dictionary["columns"]}) > 1
    rows = [
        ((f"{c['table']}: " if several else "") + c["name"], c["role"], _meaning(c), _labels(c))
        for c in dictionary["columns"]
    ]
    warning = (
        [tag("p", "This release was made with a fixed seed, for a test or an experiment.")] if seeded else []
    )
    return page(
        "Data card",
        tag("h1", "Data card"),
        tag(
            "p",
            f"{dictionary['rows']} rows, {len(rows)} columns. Row order carries no information.",
            class_="lead",
        ),
        *warning,
        tag("h2", "Columns"),
        table(("column", "role", "what it holds now", "values"), rows),
        tag("h2", "What was promised"),
        tag("ul", *(tag("li", promise(p)) for p in promised)),
        *_relation(dictionary.get("parts", ())),
        tag("h2", "How to compute with it"),
        *(tag("p", text) for text in HOW[dictionary["recoding"]]),
        tag("p", "Records that would have been too rare may be absent, so totals can be slightly lower."),
    )


def _relation(parts: Sequence[Mapping[str, Any]]) -> list[Markup]:
    """How several tables about the same people relate, and what cannot be linked."""
    if not parts:
        return []
    rows = [(p["name"], p["rows"], ", ".join(p["sensitive"])) for p in parts]
    return [
        tag("h2", "How the tables relate"),
        table(("table", "rows", "sensitive columns"), rows, numbers=(1,)),
        tag(
            "p",
            f"The {len(parts)} tables describe the same people, each with the quasi-identifiers and with some of the "
            "sensitive columns. They cannot be joined: there is no key, each has its own order of rows, and each was "
            "recoded on its own, so the same person may carry other labels in another table.",
        ),
        tag(
            "p",
            "Within a table, columns of a row belong to the same person. Across tables nothing can be said about "
            "one person, and associations between columns of different tables are not in this release: do not "
            "estimate them by joining on quasi-identifiers.",
        ),
    ]


def _meaning(column: Mapping[str, Any]) -> str:
    if column["role"] == "group":
        return "the number of the group, the same in every table"
    if "set_of" in column:
        how = "a list" if column["separator"] is None else f"separated by “{column['separator']}”"
        return f"a set of values ({how}); empty: none of these values"
    if column["role"] != "quasi-identifier":
        return "as collected"
    if not column["recoded"]:
        return "as collected"
    return f"recoded to level “{column['published_as']}”"


def _labels(column: Mapping[str, Any]) -> str:
    labels = column.get("labels", column.get("set_of"))
    if labels is None:
        return ""
    more = f" … ({len(labels)} in all)" if len(labels) > 12 else ""
    return ", ".join(labels[:12]) + more + (" or missing" if column.get("missing") else "")


def promise(item: Mapping[str, Any]) -> str:
    """A requirement as one phrase: k-anonymity (k 5), of disease."""
    settings = ", ".join(f"{k} {v}" for k, v in item["parameters"].items() if v is not None)
    about = f", for {item['attribute']}" if item.get("attribute") else ""
    status = f": {item['status']}" if item.get("status") else ""
    return f"{item['model']} ({settings}){about}{status}"
