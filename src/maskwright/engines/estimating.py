"""About how many distinct combinations there are, in one pass that groups nothing: keys are sampled by their hash.

Whether a combination is in the sample depends on its hash alone, however often it occurs. So the number of distinct
ones in the sample, times the inverse of its share, is an unbiased estimate; its standard error is the square root of
that number. Values are taken as they come: spellings that will be one value (" 39", "39") count apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from maskwright.core.hierarchy import Hierarchy
from maskwright.engines import sql
from maskwright.engines.base import SummarySpec
from maskwright.engines.coding import Labelled, Runner, Source

SAMPLE = 1 << 17  # combinations to look at, if every row had one of its own


Hash = Callable[[Sequence[exp.Expression]], exp.Expression]


def _hash(values: Sequence[exp.Expression]) -> exp.Expression:
    return exp.Anonymous(this="hash", expressions=list(values))


def combinations(
    runner: Runner,
    table: Source,
    spec: SummarySpec,
    choices: Sequence[Mapping[str, int]],
    hashed: Hash = _hash,
) -> list[int]:
    """About how many cells the summary would have, for each choice of coarser levels (none: as the table is).

    With a unit, people are told apart too: that is the most that can be counted. `hashed` gives 64 bits for values.
    """
    [(rows,)] = runner.rows(sql.select([sql.count()], table.source()), table.parameters)
    share = max(1, rows // SAMPLE)
    wanted = sorted({(name, level) for choice in choices for name, level in choice.items()})
    by_name = {h.attribute: h for h in spec.attributes}
    coded = Labelled(
        table, tuple(name for name, _ in wanted), tuple(by_name[name].values for name, _ in wanted),
        tuple(level_texts(by_name[name], level) for name, level in wanted),
    )  # fmt: skip
    names = [*by_name, *(s.name for s in spec.sensitive), *([spec.unit] if spec.unit else [])]
    keys = []
    for choice in choices:
        parts = [coded.label(wanted.index((n, choice[n]))) if n in choice else table.raw(n) for n in names]
        keys.append(hashed(parts))
    rows_hashed = sql.select(
        [sql.alias(key, f"h{i}") for i, key in enumerate(keys)],
        table.source(), joins=coded.joins(), tables=coded.tables(),
    )  # fmt: skip
    counts = [_distinct(f"h{i}", share) for i in range(len(keys))]
    with runner.tables(coded.content()):
        [found] = runner.rows(sql.select(counts, rows_hashed.subquery("q", copy=False)), table.parameters)
    return [int(n) * share for n in found]


def _distinct(name: str, share: int) -> exp.Expression:
    """How many different hashes are in the sample."""
    rest = exp.Mod(this=sql.column(name), expression=sql.integer(share))
    chosen = sql.case((sql.equal(rest, sql.integer(0)), sql.column(name)), otherwise=exp.null())
    return exp.Count(this=exp.Distinct(expressions=[chosen]))


def level_texts(hierarchy: Hierarchy, level: int) -> tuple[str | None, ...]:
    """The label of each value at a level."""
    at = hierarchy.levels[level]
    return tuple(at.labels[block] for block in at.blocks[1:].tolist())
