"""The data card: what a recipient needs to know. It is made from public facts only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from maskwright.domain.promise import LABELS, DifferentialPrivacy
from maskwright.models import MODELS
from maskwright.report.html import Markup, bullet_list, html_page, html_table, page_section, tag

ESTIMATE = (
    "To count the people with certain quasi-identifiers and certain sensitive values, add up over the groups: (rows of "
    "the group with these quasi-identifiers) × (share of these sensitive values in the group). This is the mean of the "
    "true count over everything that the release leaves open."
)
HOW = {
    "generalise": (
        "Each row is one record of the original table. Values of recoded columns are labels that stand for sets of "
        "original values: count and group by them as they are, and do not read exact values into them.",
        "A count over a part of a label (ages 20 to 24 of the label 20-39, say) is not in the data. To estimate it, "
        "take a share of the label's rows from another source, or assume that its values are equally frequent, and say "
        "which of the two was done.",
    ),
    "bucketize": (
        "There are two tables. Rows with the same group number belong together, but which sensitive row belongs to "
        "which row of quasi-identifiers inside a group is not published, and cannot be told from the order of rows.",
        ESTIMATE,
    ),
    "permute": (
        "Inside each group the sensitive values were shuffled over the rows: a row does not show the sensitive value "
        "of the person it describes, only one of the values that occur in the group.",
        ESTIMATE,
    ),
}
EXACT = (
    "The quasi-identifiers are published as they are. People can be found by them, so treat these rows as personal "
    "data; what is protected is the link to the sensitive values."
)
CONTENTS = [
    ("columns", "Columns"), ("promised", "What was promised"), ("relation", "How the tables relate"),
    ("compute", "How to compute with it"),
]  # fmt: skip
ABOUT = {
    "quasi-identifiers": "It is about finding somebody's row.",
    "sensitive": "It is about learning a sensitive value.",
}
STATUS = {
    "guaranteed": "This is guaranteed under random worlds: proven for the whole policy and whatever the data, against "
    "somebody to whom every assignment of values to people that fits the release is equally likely.",
    "measured": "This was measured on this release; it is not a property of the method.",
}

BY_CLASS = "labels that differ from class to class"  # of a column that is published at no one level


def write_data_card(
    path: Path, dictionary: Mapping[str, Any], promised: Sequence[Mapping[str, Any]], seeded: bool
) -> None:
    """Write the card. Its arguments are what is in public/ already; nothing else can get into it."""
    path.write_text(data_card(dictionary, promised, seeded), encoding="utf-8")


def data_card(dictionary: Mapping[str, Any], promised: Sequence[Mapping[str, Any]], seeded: bool) -> str:
    """The page that goes with the data: what it is, what was promised, how to use it."""
    warning = []
    if seeded:
        text = "This release was made with a fixed seed, for a test or an experiment."
        warning = [tag("div", tag("strong", "Not for use"), tag("p", text), class_="verdict no")]
    parts, about = dictionary.get("parts", ()), dictionary.get("about", {})
    names = {(c["table"], c["name"]) for c in dictionary["columns"]}
    return html_page(
        "Data card",
        tag("h1", f"Data card: {about['title']}" if about.get("title") else "Data card"),
        *_particulars(about),
        tag("p", f"{dictionary['rows']:,} rows, {len(names)} columns. Row order means nothing.", class_="lead"),
        *_counterfeits(dictionary),
        *warning,
        _columns(dictionary),
        _promises(promised, dictionary),
        *_relation(parts),
        _compute(dictionary),
        contents=[c for c in CONTENTS if parts or c[0] != "relation"],
    )  # fmt: skip


def _particulars(about: Mapping[str, str]) -> list[Markup]:
    """Who may be asked, what may be done with it, and of when it is, as far as the publisher said so."""
    said = [f"{name}: {about[name]}" for name in ("contact", "licence", "date") if about.get(name)]
    return [tag("p", " · ".join(said))] if said else []


def _of_known_items(column: Mapping[str, Any]) -> str:
    """What was done so that a few known values find nobody."""
    asked = column.get("known_items")
    if asked is None:
        return ""
    done = {"suppress": ", values were taken out of some sets", "merge": ", rare values were merged"}.get(
        asked["rare"], ""
    )
    return f"; at least {asked['k']} people hold any {asked['m']} of them that somebody holds{done}"


def _counterfeits(dictionary: Mapping[str, Any]) -> list[Markup]:
    """Rows that are nobody's, in a sequence of releases."""
    many = dictionary.get("counterfeits", 0)
    said = (
        f"{many:,} of the rows are counterfeits: they have a group and no quasi-identifiers, and one value of their "
        "group for each of them is nobody's. They keep the values of a group what they were in earlier releases."
    )
    return [tag("p", said)] if many else []


def _columns(dictionary: Mapping[str, Any]) -> Markup:
    columns, parts = dictionary["columns"], []
    tables = list(dict.fromkeys(c["table"] for c in columns))
    for name in tables:
        rows: list[tuple[str, ...]] = [
            (c["name"], c["role"], _meaning(c, dictionary["recoding"]), _labels(c))
            for c in columns
            if c["table"] == name
        ]
        head: tuple[str, ...] = ("column", "role", "what it holds now", "values")
        if not any(row[-1] for row in rows):
            head, rows = head[:-1], [row[:-1] for row in rows]
        caption = f"Table “{name}”" if len(tables) > 1 else "Columns of the table"
        parts.append(html_table(head, rows, caption=caption))
    roles = tag("p", "Quasi-identifier: something that others may know of a person. Sensitive: what nobody should "
                     "learn about a person. Insensitive: neither.", class_="note")  # fmt: skip
    return page_section("columns", "Columns", *parts, roles)


def _promises(promised: Sequence[Mapping[str, Any]], dictionary: Mapping[str, Any]) -> Markup:
    """Each requirement in the policy's words, and in plain ones; and what is not promised."""
    known = [c for c in dictionary["columns"] if c["role"] == "quasi-identifier"]
    private = _privacy(dictionary)
    exact = known and dictionary["recoding"] != "generalise" and not any(c["recoded"] for c in known)
    items = [
        part for p in promised for part in (tag("dt", _requirement_phrase(p)), tag("dd", _in_plain_words(p)))
    ]
    return page_section(
        "promised", "What was promised",
        tag("p", "A class is everybody who is published with the same quasi-identifiers, or under the same group "
                 "number. What follows was counted in the published files before they were handed over."),
        tag("dl", *items) if items else tag("p", "Nothing."),
        *([tag("p", EXACT)] if exact else []),
        *([tag("p", private.sentence())] if private is not None else []),
        tag("p", "Not promised: anything about insensitive columns, and anything about an adversary who knows more "
                 "than the requirements above speak of. Do not try to find people in it.", class_="note"),
    )  # fmt: skip


def _privacy(dictionary: Mapping[str, Any]) -> DifferentialPrivacy | None:
    stored = dictionary.get("differential_privacy")
    return None if stored is None else DifferentialPrivacy.of(stored)


def _relation(parts: Sequence[Mapping[str, Any]]) -> list[Markup]:
    """How several tables about the same people relate, and what cannot be linked."""
    if not parts:
        return []
    rows = [(p["name"], f"{p['rows']:,}", ", ".join(p["sensitive"])) for p in parts]
    return [
        page_section(
            "relation", "How the tables relate",
            html_table(("table", "rows", "sensitive columns"), rows, numbers=(1,), caption="Tables of this release"),
            tag("p", f"The {len(parts)} tables describe the same people, each with the quasi-identifiers and with some "
                     "of the sensitive columns. They cannot be joined: there is no key, each has its own order of "
                     "rows, and each was recoded on its own, so the same person may carry other labels elsewhere."),
            tag("p", "Within a table, columns of a row belong to the same person. Across tables nothing can be said "
                     "about one person, and associations between columns of different tables are not in this release: "
                     "do not estimate them by joining on quasi-identifiers."),
        )
    ]  # fmt: skip


def _compute(dictionary: Mapping[str, Any]) -> Markup:
    parts = [tag("p", text) for text in HOW[dictionary["recoding"]]]
    if dictionary["recoding"] != "generalise":
        parts += worked_example()
        if query := as_sql(dictionary):
            parts.append(
                tag("p", "The same as SQL, for one value of each; put the sensitive value for VALUE:")
            )
            parts.append(tag("pre", query, tabindex=0))
    lines = [
        "Records that would have been too rare may be absent, so totals can be slightly lower. They are not absent at "
        "random: rare combinations of values are more likely to be missing."
    ]
    private = _privacy(dictionary)
    if private is not None:
        lines.append(
            f"Each record was kept with the probability {private.keep:.4f}, and combinations of all columns with fewer "
            f"than {private.k} records left are absent: divide a count by {private.keep:.4f} to estimate what it was."
        )
    if dictionary.get("marginals"):
        lines.append(
            f"{dictionary['marginals']} says how many of the rows have each original value of every quasi-identifier "
            "(rare ones together), and which values a label stands for. Spread the rows of a label by these counts, "
            "not evenly: maskwright.read_release(folder) gives probabilities, or a table of drawn values."
        )
    if any("*" in c.get("labels", ()) for c in dictionary["columns"]):
        lines.append("The value * stands for any value: it says nothing about the person.")
    if changed := [c["name"] for c in dictionary["columns"] if c.get("distorted")]:
        lines.append(
            f"Some values of {', '.join(changed)} were replaced by others on purpose, and are not marked: treat the "
            "column as measured with error, and do not report single records."
        )
    if changed := [c["name"] for c in dictionary["columns"] if c.get("perturbed")]:
        lines.append(
            f"The values of {', '.join(changed)} were changed on purpose, as the columns say: treat them as measured "
            "with error, and do not report single records."
        )
    if dictionary.get("escaped"):
        lines.append(
            "Cells that a spreadsheet would run as a formula begin with an apostrophe (also after a semicolon, tab or "
            "line end inside a cell), and a cell that began with an apostrophe has two: take one away."
        )
    return page_section("compute", "How to compute with it", *parts, bullet_list(lines))


def _meaning(column: Mapping[str, Any], recoding: str) -> str:
    if column["role"] == "pseudonym":
        where = "the same in other releases" if column.get("stable") else "another one in every release"
        if column.get("one_row_each"):
            return f"a random text in place of each value, {where}"
        return f"a random text for each person, {where}: rows with the same one are one person's"
    if column["role"] == "group":
        return "the number of the group" + (", the same in both tables" if recoding == "bucketize" else "")
    if "moved" in column:
        by = "whole weeks" if column["moved"]["weekdays"] else "days"
        return (
            f"moved by {by}, at most {column['moved']['within']} days forwards or backwards, all dates of a person "
            "alike: the days between two of them are true, no date is"
        )
    if "set_of" in column:
        how = "a list" if column["separator"] is None else f"separated by “{column['separator']}”"
        return f"a set of values ({how}); empty: none of these values{_of_known_items(column)}"
    if column.get("redacted"):
        return (
            "text from which a program took names, places and the like, [LABEL] in their place; not verified"
        )
    if column.get("perturbed"):
        return f"not as collected: {column['perturbed']}"
    if column.get("distorted"):
        return "as collected, except that some values were replaced on purpose"
    if column["role"] == "sensitive" and recoding != "generalise":
        return "as collected, but not attached to a person: it belongs to somebody of the group"
    if column["role"] != "quasi-identifier" or not column["recoded"]:
        return "as collected"
    if column.get("labels") == ["*"]:
        return "nothing: every value is *"
    if column["published_as"] == BY_CLASS:
        return "coarsened class by class, here more, there less or not at all: a value can stand for several"
    return f"recoded to level “{column['published_as']}”: a value stands for several original ones"


def _labels(column: Mapping[str, Any]) -> str:
    labels = column.get("labels", column.get("set_of"))
    if labels is None:
        return ""
    more = f" … ({len(labels):,} in all)" if len(labels) > 12 else ""
    return ", ".join(labels[:12]) + more + (" or missing" if column.get("missing") else "")


def _requirement_phrase(item: Mapping[str, Any]) -> str:
    """A requirement as one phrase: k-anonymity (k 5), of disease."""
    settings = ", ".join(f"{k} {_listed(v)}" for k, v in item["parameters"].items() if v is not None)
    about = f", for {item['attribute']}" if item.get("attribute") else ""
    about += f" in {item['part']}" if item.get("part") else ""
    status = f": {LABELS[item['status']]}" if item.get("status") else ""
    return f"{item['model']} ({settings}){about}{status}"


def _listed(value: Any) -> str:
    """A setting as text: values of a list one after the other, sets of values with “or”."""
    if not isinstance(value, list | tuple):
        return str(value)
    return ", ".join(" or ".join(map(str, v)) if isinstance(v, list | tuple) else str(v) for v in value)


def _in_plain_words(item: Mapping[str, Any]) -> str:
    """A requirement in plain words: what the model says of itself, with the settings of this release."""
    model = MODELS[item["model"]]
    numbers = [f"{k} = {v}" for k, v in item["parameters"].items() if isinstance(v, (int, float, str))]
    settings = f" Here {' and '.join(numbers)}." if numbers else ""
    status = f" {STATUS[item['status']]}" if item.get("status") else ""
    return f"{model.summary_line()}{settings} {ABOUT[model.about]}{status}"


EXAMPLE = ((4, 3, 2), (5, 1, 1))  # (n, a, m) of two groups


@dataclass(frozen=True)
class Estimate:
    """The count of people with certain quasi-identifiers and certain sensitive values."""

    mean: Fraction
    variance: Fraction
    least: int
    most: int


def estimate_count(groups: Sequence[tuple[int, int, int]]) -> Estimate:
    """What is known of the count, from (n, a, m) of each group.

    In a group of n rows, a of which have the quasi-identifiers in question and m the sensitive values, every way to
    deal the values to the rows is as likely as any other. So the count has a hypergeometric distribution.
    """
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
