"""What several test files need: summaries built by hand, the bundled tables, tiny models, and when to skip."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray

import maskwright
from maskwright.domain.classes import Classes, ValueCounts
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Task
from maskwright.domain.model import Context, Model
from maskwright.domain.rules import (
    Closeness,
    DistinctAtLeast,
    EntropyAtLeast,
    Recursive,
    Rule,
    ShareAtMost,
    SharesWithin,
    SizeAtLeast,
)
from maskwright.domain.summary import Summary
from maskwright.domain.verdict import Verdict

ADULT = Path(maskwright.__path__[0]) / "data" / "adult"
FARS = Path(__file__).parent / "data" / "fars"


def unavailable(reason: str) -> NoReturn:
    """Skip a test for what is missing on this machine; in CI everything is there, and nothing is skipped."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}, but in CI this test must run", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def needs(module: str) -> Any:
    """The module, where it is installed."""
    if importlib.util.find_spec(module) is None:
        unavailable(f"{module} is not installed")
    return importlib.import_module(module)


def hierarchy_from_csv(attribute: str, path: Path) -> Hierarchy:
    """A hierarchy file with header level0, level1, …"""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    levels = [(header[i], [row[i] for row in rows]) for i in range(1, len(header))]
    return Hierarchy.of(attribute, [row[0] for row in rows], levels)


def summarise(
    attributes: Sequence[Hierarchy],
    columns: Sequence[Sequence[str | None]],
    sensitive: Mapping[str, Sequence[str | None]] | None = None,
    domains: Mapping[str, tuple[str, ...]] | None = None,
) -> Summary:
    """The frequency set of a table given by columns (`columns` in the order of `attributes`)."""
    coded = []
    for hierarchy, column in zip(attributes, columns, strict=True):
        code = {value: i + 1 for i, value in enumerate(hierarchy.values)}
        coded.append([code[v] if v is not None else 0 for v in column])
    table = np.array(coded, dtype=np.int32).reshape(len(attributes), -1)
    tuples, inverse, rows = np.unique(table, axis=1, return_inverse=True, return_counts=True)
    inverse = inverse.reshape(-1).astype(np.int64)
    counts = {}
    for name, values in (sensitive or {}).items():
        domain = (domains or {}).get(name) or tuple(sorted({v for v in values if v is not None}))
        code = {value: i + 1 for i, value in enumerate(domain)}
        codes = np.array([code[v] if v is not None else 0 for v in values], dtype=np.int64)
        counts[name] = ValueCounts.collect(
            domain, len(rows), inverse, codes, np.ones(len(codes), dtype=np.int64)
        )
    rows = rows.astype(np.int64)
    return Summary(tuple(attributes), np.ascontiguousarray(tuples), rows, rows, counts)


def context_of(summary: Summary) -> Context:
    reference = {name: vc.totals for name, vc in summary.sensitive.items()}
    domains = {name: vc.values for name, vc in summary.sensitive.items()}
    return Context(reference=reference, n_people=summary.n_people, domains=domains)


def task_of(summary: Summary, models: Sequence[Model], **more: Any) -> Task:
    return Task(summary, models, context_of(summary), np.random.default_rng(0), **more)


@cache
def adult(sensitive: str | None = None) -> Summary:
    """The bundled Adult table, quasi-identifiers in the order of ARX's benchmarks."""
    order = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation",
             "salary-class"]  # fmt: skip
    with (ADULT / "adult.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    names = [name for name in order if name != sensitive]
    attributes = [hierarchy_from_csv(name, ADULT / "hierarchies" / f"{name}.csv") for name in names]
    extra = {sensitive: columns[sensitive]} if sensitive else {}
    domains = {name: hierarchy_from_csv(name, ADULT / "hierarchies" / f"{name}.csv").values for name in extra}
    return summarise(attributes, [columns[name] for name in names], extra, domains)


@cache
def fars(sensitive: str | None = None) -> Summary:
    """The integer-coded FARS table."""
    import duckdb

    order = ["iage", "irace", "ideathmon", "ideathday", "isex", "ihispanic", "istatenum", "iinjury"]
    table = duckdb.sql(f"SELECT * FROM '{FARS / 'fars.parquet'}'").fetchnumpy()  # noqa: S608
    columns = {name: [str(v) for v in table[name].tolist()] for name in order}
    names = [name for name in order if name != sensitive]
    attributes = [hierarchy_from_csv(name, FARS / "hierarchies" / f"{name}.csv") for name in names]
    extra = {sensitive: columns[sensitive]} if sensitive else {}
    return summarise(attributes, [columns[name] for name in names], extra)


def equal_sets(n_values: int) -> tuple[tuple[Fraction, tuple[int, ...]], ...]:
    return tuple((Fraction(1, 2), (v,)) for v in range(1, n_values + 1))


def ordered_sets(n_values: int) -> tuple[tuple[Fraction, tuple[int, ...]], ...]:
    weight = Fraction(1, max(1, n_values - 1))
    return tuple((weight, tuple(range(1, i + 1))) for i in range(1, n_values))


def tree_sets(hierarchy: Hierarchy, values: Sequence[str]) -> tuple[tuple[Fraction, tuple[int, ...]], ...]:
    """The sets of a balanced tree: the blocks of each level below the top, weight 1/(2·height)."""
    sets = []
    for level in hierarchy.levels[:-1]:
        blocks: dict[int, list[int]] = {}
        for code, value in enumerate(values, start=1):
            blocks.setdefault(int(level.blocks[hierarchy.values.index(value) + 1]), []).append(code)
        sets.extend((Fraction(1, 2 * hierarchy.height), tuple(codes)) for codes in blocks.values())
    return tuple(sets)


def passes(rule: Rule, size: int, counts: dict[int, int]) -> bool:
    """One class against one rule, straight from the definition."""
    if isinstance(rule, SizeAtLeast):
        return size >= rule.k
    if isinstance(rule, DistinctAtLeast):
        return sum(1 for v, c in counts.items() if v and c) >= rule.l
    if isinstance(rule, ShareAtMost):
        sets = rule.sets if rule.sets is not None else [(v,) for v in counts if v]
        return all(sum(counts.get(v, 0) for v in s) <= rule.share * size for s in sets)
    if isinstance(rule, SharesWithin):
        n = sum(c for v, c in counts.items() if v)
        values = [v for v in range(1, len(rule.most)) if rule.absent or counts.get(v)]
        if n == 0:
            return not rule.absent
        return all(rule.least[v] * n <= counts.get(v, 0) <= rule.most[v] * n for v in values)
    left = {v: c for v, c in counts.items() if c and (v or rule.missing == "value")}
    n = sum(left.values())
    if isinstance(rule, EntropyAtLeast):
        product = 1
        for c in left.values():
            product *= c**c
        return n > 0 and n**n >= rule.l**n * product
    if isinstance(rule, Recursive):
        falling = sorted(left.values(), reverse=True)
        return bool(falling) and falling[0] < rule.c * sum(falling[rule.l - 1 :])
    assert isinstance(rule, Closeness)
    total = sum(rule.reference)
    if n == 0:
        return True
    distance = Fraction(0)
    for weight, codes in rule.sets:
        inside = Fraction(sum(left.get(v, 0) for v in codes), n)
        distance += weight * abs(inside - Fraction(sum(rule.reference[v] for v in codes), total))
    return distance <= rule.t


class Rules(Model):
    """Tiny model for tests: a conjunction of rules, decided one class at a time from the definitions."""

    name: ClassVar[str] = "rules"
    merge_safe: ClassVar[bool] = False
    hereditary: ClassVar[bool] = False
    about: ClassVar[Literal["quasi-identifiers", "sensitive"]] = "sensitive"

    rules: tuple[Any, ...]
    known: bool = True  # does the model tell the kernel about its rules?

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        result = np.ones(classes.n, dtype=bool)
        for rule in self.rules:
            attribute = getattr(rule, "attribute", None)
            for c in range(classes.n):
                counts: Counter[int] = Counter()
                if attribute:
                    vc = classes.sensitive[attribute]
                    part = slice(int(vc.start[c]), int(vc.start[c + 1]))
                    counts.update(dict(zip(vc.codes[part].tolist(), vc.counts[part].tolist(), strict=True)))
                result[c] &= passes(rule, int(classes.sizes[c]), counts)
        return result

    def check(self, classes: Classes, context: Context) -> Verdict:
        ok = self.passing(classes, context)
        worst = int(ok.argmin()) if len(ok) else None
        return self.verdict(ok, ok.astype(np.int64), worst, "1", "whether it passes")

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        return self.rules if self.known else None

    def least_size(self, context: Context) -> int:
        return max((r.k for r in self.rules if isinstance(r, SizeAtLeast)), default=1)


class Monotone(Rules):
    """Sizes and distinct values: merge-safe and hereditary."""

    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True


class MergeSafe(Rules):
    """Any of the rules: merge-safe, not hereditary."""

    merge_safe: ClassVar[bool] = True


class Odd(Model):
    """Neither merge-safe nor hereditary: a class passes when its size is odd."""

    name: ClassVar[str] = "odd"
    merge_safe: ClassVar[bool] = False
    hereditary: ClassVar[bool] = False
    about: ClassVar[Literal["quasi-identifiers", "sensitive"]] = "quasi-identifiers"

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        return classes.sizes % 2 == 1

    def check(self, classes: Classes, context: Context) -> Verdict:
        ok = self.passing(classes, context)
        return self.verdict(ok, classes.sizes, int(ok.argmin()) if len(ok) else None, "odd", "people")
