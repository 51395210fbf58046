"""CODIP: mutual information, Γα and Γβ, merges, plans, closeness, and the bitmap of multi-valued attributes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from experiments.codip import best_closeness
from maskwright.domain.association import Association, Contingency
from maskwright.domain.classes import ValueCounts
from maskwright.domain.value_sets import SetColumn
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.methods._plans.table_plans import greedy_plan, merge_sequence, normal_form

Case = dict[str, Any]


def association_of(case: Case) -> Association:
    columns = case["columns"]
    domains = [sorted(set(column)) for column in columns]
    codes = np.array(
        [[d.index(v) + 1 for v in c] for c, d in zip(columns, domains, strict=True)], dtype=np.int32
    )
    ones = np.ones(codes.shape[1], dtype=np.int64)
    counts = Contingency.of_codes(
        [str(i) for i in range(len(columns))], [len(d) + 1 for d in domains], codes, ones
    )
    given = case.get("nonsensitive") or [[]] * len(columns)
    harmless = {
        i: [domains[i].index(v) + 1 for v in values or () if v in domains[i]]
        for i, values in enumerate(given)
    }
    return Association.of(counts, harmless)


def mi(case: Case) -> Case:
    found = association_of(case)
    n = found.size
    matrix = [
        [found.information[min(i, j), max(i, j)] if i != j else None for j in range(n)] for i in range(n)
    ]
    return {"H": found.entropy, "I": matrix}


def gamma(case: Case) -> Case:
    found, tables = association_of(case), normal_form(case["plan"])
    return {"gamma_alpha": found.alpha(tables), "gamma_beta": found.beta(tables)}


def merge_order(case: Case) -> list[Case]:
    found = association_of(case)
    return [
        {
            "plan": merge.tables,
            "avg_mi": merge.average,
            "gamma_alpha": found.alpha(merge.tables),
            "gamma_beta": found.beta(merge.tables),
        }
        for merge in merge_sequence(found)
    ]


def _candidates(case: Case) -> tuple[list[dict[str, ValueCounts]], dict[str, Any]]:
    """The classes of each partition, per column; and the whole columns."""
    candidates, whole = [], {}
    for classes in case["partitions"]:
        owner = np.array([c for c, rows in enumerate(classes) for _ in rows], dtype=np.int64)
        order = [r for rows in classes for r in rows]
        candidate = {}
        for i, column in enumerate(case["columns"]):
            domain = tuple(sorted(set(column)))
            codes = np.array([domain.index(column[r]) + 1 for r in order], dtype=np.int64)
            ones = np.ones(len(order), dtype=np.int64)
            candidate[str(i)] = ValueCounts.collect(domain, len(classes), owner, codes, ones)
            whole[str(i)] = candidate[str(i)].totals
        candidates.append(candidate)
    return candidates, whole


def plan_closeness(case: Case) -> Case:
    candidates, whole = _candidates(case)
    found = [best_closeness(candidates, [str(i) for i in subset], whole) for subset in case["plan"]]
    return {"per_table": found, "plan": max(f for f in found if f is not None)}


def codip_star(case: Case) -> Any:
    association = association_of(case)

    def good(subset: tuple[int, ...]) -> bool:
        if case.get("t") is None:
            return True
        candidates, whole = _candidates(case)
        closeness = best_closeness(candidates, [str(i) for i in subset], whole)
        return closeness is not None and closeness <= Fraction(case["t"])

    found = greedy_plan(association, Fraction(str(case["beta"])), good).tables
    alpha = Fraction(str(case["alpha"]))
    return found if found is not None and association.alpha_at_most(found, alpha) else None


def bitmap(case: Case) -> list[list[int]]:
    column = SetColumn("s", tuple(case["domain"]))
    sets = [list(members) for members in case["column"]]
    frame = pl.DataFrame({"n": range(len(sets)), "s": sets}, schema_overrides={"s": pl.List(pl.String)})
    engine = open_engine(threads=1)
    try:
        unfolded = engine.unfold(engine.open(frame, Reading(lists=("s",))), [column])
        rows = sorted(engine.sample(unfolded, len(frame)), key=lambda row: int(row["n"] or 0))
    finally:
        engine.close()
    return [[int(row[bit] == "true") for row in rows] for bit in column.bits]


FUNCTIONS = {
    "mi": mi,
    "gamma": gamma,
    "merge_order": merge_order,
    "codip_star": codip_star,
    "plan_closeness": plan_closeness,
    "bitmap": bitmap,
}
