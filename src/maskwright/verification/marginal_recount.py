"""Marginals held against the table beside them: counts that no table with these labels can have are found."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from maskwright.domain.model import Context, Model
from maskwright.engines.base import Recount
from maskwright.errors import InputError
from maskwright.folder.store import read_json

MARGINALS = "marginals.json"
Value = str | None


def marginal_problems(
    public: Path, recount: Recount, by: Sequence[str], models: Sequence[Model]
) -> list[str]:
    """What is wrong with the counts beside a table that was counted by these columns; empty where there are none.

    Which value stands behind a label is not published, so that a count is held between the rows whose labels stand for
    values of the cell alone, and those whose labels stand for any of them. All cells together are all rows.
    """
    if not (public / MARGINALS).exists():
        return []
    least = max([2, *(model.least_size(Context()) for model in models)])
    try:
        columns = read_json(public / MARGINALS)["columns"]
        return [
            f"{MARGINALS}: {p}"
            for name in columns
            for p in _of_column(name, columns[name], recount, by, least)
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"{str(public / MARGINALS)!r} does not hold what was written there") from None


def _of_column(name: str, stored: Any, recount: Recount, by: Sequence[str], least: int) -> Iterator[str]:
    if name not in by:
        yield f"{name!r} is no column that classes are made of"
        return
    at, rows = list(by).index(name), dict[Value, int]()
    for labels, n in zip(recount.labels, recount.rows.tolist(), strict=True):
        rows[labels[at]] = rows.get(labels[at], 0) + n
    behind: Mapping[str, set[Value]] = {label: set(values) for label, values in stored["labels"].items()}
    cells = [(set(cell["values"]), int(cell["rows"])) for cell in stored["cells"]]
    if unknown := sorted(label for label in rows if label is not None and label not in behind):
        yield f"column {name!r} has the label {unknown[0]!r}, whose values are not told"
        return
    if not cells:
        return
    if sum(n for _, n in cells) != sum(rows.values()) or sum(map(len, (v for v, _ in cells))) != len(
        set[Value]().union(*(v for v, _ in cells))
    ):
        yield f"the counts of {name!r} are not those of {sum(rows.values()):,} rows"
    missing = sum(n for values, n in cells if None in values)  # a label may hide them, too
    for values, n in cells:
        whole = sum(r for label, r in rows.items() if _behind(label, behind) <= values)
        some = sum(r for label, r in rows.items() if _behind(label, behind) & values)
        shown = " or ".join(
            "(missing)" if v is None else v for v in sorted(values, key=lambda v: (v is None, v or ""))
        )
        if n < least:
            yield f"{n} rows of {name!r} are {shown[:60]}, fewer than {least}"
        elif None not in values and not whole - missing <= n <= some:
            yield f"{n} rows of {name!r} are said to be {shown[:60]}, and by their labels {whole} to {some} can be"


def _behind(label: Value, behind: Mapping[str, Collection[Value]]) -> set[Value]:
    return {None} if label is None else set(behind[label])
