"""Will it fit? Memory and disk are looked at before the work begins, and refused in one line that says what to do."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.summary import Summary
from maskwright.engines.base import Engine, Format, SummarySpec
from maskwright.errors import DestinationError, UsageError
from maskwright.policy.binding import Resolved
from maskwright.policy.policy import Policy
from maskwright.runtime.events import Progress
from maskwright.runtime.memory_budget import MemoryBudget, size_text, summary_bytes

# measured (benchmarks/bench_scale.py): at its peak a run holds so many times the summary in arrays, and so many bytes
# of each row where rows are listed, which also grows with the number of groups
WORKING = 4
LISTED = 14
SHUFFLED = 12  # bytes of each row while the order is drawn in which rows are published
GATHERED = 0.1  # of all that is held: what a writer gathers outside the engine's own count
WORKED_ON = 0.7  # of all that is held, while it is recoded, compared with what was written, or attacked
MANY = 1_000_000  # combinations; below that nobody needs a hint
STEP = 50 * 10**6  # bytes to which an amount of memory that would suffice is rounded up
MOST = 10  # coarser versions to look at in one pass

Choice = Mapping[str, int]


def working_memory(resolved: Resolved, cells: int, rows: int) -> int:
    """What a run holds beside the engine for a summary of so many cells of so many rows."""
    spec = resolved.spec
    listed = 0 if resolved.method.whole_columns else LISTED * rows
    return WORKING * summary_bytes(cells, len(spec.attributes), len(spec.sensitive)) + listed


def check_memory(
    engine: Engine, resolved: Resolved, budget: MemoryBudget, rows: int, progress: Progress
) -> int:
    """Refuse a table whose summary would not fit, before rows are grouped; returns what is set apart for arrays.

    The rows, and the product of the domains, are bounds that cost nothing; only beyond them rows are looked at.
    """
    spec, taken = resolved.spec, _census_memory(engine, resolved, budget)
    most = working_memory(resolved, _bound(spec, rows), rows)
    if taken + most <= budget.arrays // 2:
        return taken + most
    [cells] = engine.combinations(resolved.source, spec, [{}])
    needed = taken + working_memory(resolved, cells, rows)
    if needed > budget.arrays:
        raise UsageError(_refusal(engine, resolved, budget, rows, cells, taken))
    if cells >= MANY and 10 * cells > 8 * rows:
        progress.note(
            f"there are about {_number(cells)} different combinations in {_number(rows)} rows, so the summary is "
            f"hardly smaller than the table; the finest column is {_finest(spec)}. It fits, but with a coarser one "
            "(`finest`) the run needs less time and memory"
        )
    elif 4 * needed > 3 * budget.arrays:
        progress.note(
            f"work on the summary needs up to {size_text(needed)} of the {size_text(budget.limit)} allowed; it fits, "
            "but closely"
        )
    return needed


def _census_memory(engine: Engine, resolved: Resolved, budget: MemoryBudget) -> int:
    """The summary of the population, which is held as it is."""
    if resolved.census is None:
        return 0
    spec = resolved.census_spec()
    cells = _bound(spec, engine.count(resolved.census))
    held = summary_bytes(cells, len(spec.attributes), 0)
    if 4 * held > budget.arrays:
        cells = engine.combinations(resolved.census, spec, [{}])[0]
        held = summary_bytes(cells, len(spec.attributes), 0)
    return held


def _bound(spec: SummarySpec, rows: int) -> int:
    """There cannot be more cells than this."""
    if spec.unit is not None:
        return rows
    bound = 1
    for values in [*(h.values for h in spec.attributes), *(s.values for s in spec.sensitive)]:
        bound *= len(values) + 1
        if bound >= rows:
            return rows
    return bound


def _refusal(
    engine: Engine, resolved: Resolved, budget: MemoryBudget, rows: int, cells: int, taken: int
) -> str:
    spec = resolved.spec
    held = summary_bytes(cells, len(spec.attributes), len(spec.sensitive))
    needed = taken + working_memory(resolved, cells, rows)
    enough = -(-(budget.limit + needed - budget.arrays) // STEP) * STEP
    return (
        f"there are about {_number(cells)} different combinations of quasi-identifiers and sensitive values in "
        f"{_number(rows)} rows: their summary takes {size_text(held)}, work on it up to {size_text(needed)}, and of "
        "the "
        f"{size_text(budget.limit)} allowed {size_text(max(0, budget.arrays))} are left for that. The finest column is "
        f"{_finest(spec)}. {_remedy(engine, resolved, budget, rows, taken)}; or allow {size_text(enough)} (--memory)"
    )


def _remedy(engine: Engine, resolved: Resolved, budget: MemoryBudget, rows: int, taken: int) -> str:
    """What would fit, or what came nearest to it."""
    fits, choice, cells = _coarser(engine, resolved, budget, rows, taken)
    if not choice:
        return "No column has a level between its values and `*`: give the finest ones a hierarchy"
    there = f"{_settings(resolved.spec.attributes, choice)} there would be at most about {_number(cells)}"
    if fits:
        return f"With {there}, which fits (--coarsen auto takes that)"
    return f"Even with {there}: name fewer quasi-identifiers, or give the finest ones coarser hierarchies"


def _coarser(
    engine: Engine, resolved: Resolved, budget: MemoryBudget, rows: int, taken: int
) -> tuple[bool, Choice, int]:
    """The least coarsening found that fits: of one column, or else of several; whether it does, and its cells at most.

    Looks at quasi-identifiers alone: people with the same ones may all have different sensitive values. So whoever
    knows the quasi-identifiers of everybody learns nothing from what was chosen.
    """
    spec = replace(resolved.spec, sensitive=())
    values = math.prod(len(s.values) + 1 for s in resolved.spec.sensitive)

    def counted(choices: Sequence[Choice]) -> list[tuple[int, bool]]:
        """The most cells of each choice, and whether they fit."""
        most = [min(rows, n * values) for n in engine.combinations(resolved.source, spec, choices)]
        return [(n, taken + working_memory(resolved, n, rows) <= budget.arrays) for n in most]

    usable = {
        h.attribute: _inner_levels(resolved, h) for h in sorted(spec.attributes, key=lambda h: -len(h.values))
    }
    inner = [(name, level) for name, levels in usable.items() for level in levels]
    single: list[Choice] = [{name: level} for name, level in inner[:MOST]]
    coarse = {name: levels[-1] for name, levels in usable.items() if levels}
    names = list(coarse)
    several: list[Choice] = [{n: coarse[n] for n in names[:i]} for i in range(2, min(len(names), MOST) + 1)]
    last: tuple[bool, Choice, int] = (False, {}, 0)
    for choices in (single, several):
        found = list(zip(counted(choices), choices, strict=True)) if choices else []
        fitting = [(cells, -i) for i, ((cells, fits), _) in enumerate(found) if fits]
        if fitting:
            cells, i = max(fitting)
            last = (True, choices[-i], cells)
            break
        if found:
            last = (False, choices[-1], found[-1][0][0])
    for _ in range(MOST if last[0] and len(last[1]) > 1 else 0):  # each column in turn finer, while that fits
        choice = last[1]
        finer: list[Choice] = [
            {**choice, name: usable[name][usable[name].index(level) - 1]}
            for name, level in choice.items()
            if level != usable[name][0]
        ]
        fitting = [(n, -i) for i, (n, fits) in enumerate(counted(finer) if finer else []) if fits]
        if not fitting:
            break
        cells, i = max(fitting)
        last = (True, finer[-i], cells)
    return last


def _inner_levels(resolved: Resolved, hierarchy: Hierarchy) -> list[int]:
    """The levels between the values and `*` from which one that the policy allows can still be reached."""
    allowed = resolved.levels.get(hierarchy.attribute, [hierarchy.top])
    return [
        level
        for level in range(1, hierarchy.top)
        if any(level == other or hierarchy.refines[level, other] for other in allowed)
    ]


def coarsened_to_fit(
    engine: Engine, resolved: Resolved, budget: MemoryBudget, rows: int, progress: Progress
) -> Policy:
    """The policy with the finest level of each column that has to be coarsened, before rows are grouped, to fit.

    Without any, where the rows, or the combinations of quasi-identifiers, cannot be too many.
    """
    policy, spec = resolved.policy, resolved.spec
    if resolved.method.privacy() is not None:
        raise UsageError(
            f"coarsen: {resolved.method.name} looks at nothing of the table but by its random draws, and what fits is "
            "counted without; name the levels in the policy, columns: {zip: {finest: 1}}"
        )
    taken = _census_memory(engine, resolved, budget)
    most = _bound(spec, rows)
    if taken + working_memory(resolved, most, rows) > budget.arrays:
        [found] = engine.combinations(resolved.source, replace(spec, sensitive=()), [{}])
        most = min(rows, found * math.prod(len(s.values) + 1 for s in spec.sensitive))
    if taken + working_memory(resolved, most, rows) <= budget.arrays:
        return policy
    fits, choice, _ = _coarser(engine, resolved, budget, rows, taken)
    if not fits:
        raise UsageError(_refusal(engine, resolved, budget, rows, most, taken))
    by_name = {h.attribute: h for h in spec.attributes}
    levels = ", ".join(f"{name} ({by_name[name].levels[level].name})" for name, level in choice.items())
    progress.note(
        f"coarsened so that a run fits into {size_text(budget.limit)} (coarsen: auto), by how many combinations of "
        f"quasi-identifiers there are, whatever the sensitive values: {levels}; what is lost by that is not measured",
        columns=list(choice),
    )
    asked = policy.to_dict()
    for name, level in choice.items():
        asked["columns"][name]["finest"] = str(by_name[name].numbers[level])
    return Policy.of(asked, "policy").beside(policy)


def _settings(attributes: Sequence[Hierarchy], choice: Choice) -> str:
    """As the policy would say it."""
    by_name = {h.attribute: h for h in attributes}
    parts = [f"{name}: {{finest: {by_name[name].numbers[level]}}}" for name, level in choice.items()]
    names = ", ".join(repr(by_name[name].levels[level].name) for name, level in choice.items())
    return f"columns: {{{', '.join(parts)}}} (level{'s' if len(parts) > 1 else ''} {names})"


def _finest(spec: SummarySpec) -> str:
    column = max(spec.attributes, key=lambda h: len(h.values))
    return f"{column.attribute!r} with {_number(len(column.values))} values"


def _number(n: int) -> str:
    """With two or three figures, as estimates deserve."""
    scale = 10 ** max(0, len(str(n)) - 3)
    return f"{round(n / scale) * scale:,}"


# --- disk -----------------------------------------------------------------------------------------------

HELD = {"csv": 1.3, "parquet": 0.0}  # of the file, in the engine: a Parquet file is read where it is
KEPT = 1.5  # of the summary, in private/: what later attacks need
GZIPPED = 4  # times, where a packed file does not say how long it was
PACKED = 24  # bytes of each row of what is shuffled and sorted on the way
WRITTEN = {
    ("csv", "csv"): 1.2,
    ("parquet", "parquet"): 1.2,
    ("csv", "parquet"): 0.5,
    ("parquet", "csv"): 12.0,
}


@dataclass(frozen=True)
class DiskOutput:
    """What a run will leave on disk: files of the release or a table in Python, and what later attacks need."""

    folder: Path  # where the release and the temporary files go
    files: bool
    format: Format | None  # None: that of the input
    private: bool


def check_disk(
    output: DiskOutput, source: Any, memory: int, rows: int = 0, summary: Summary | None = None
) -> None:
    """Refuse, before the work, a run that would fill the disk: what it writes, and what does not fit in memory.

    Asked as soon as something is known: the size of the input, then its rows, then the summary.

    Args:
        output: what the run leaves.
        source: the input; of what is no file only the rows are known.
        memory: what the engine may use before it spills.
        rows: of the input.
        summary: of the input.
    """
    length, copied, kind = 0, 0, "parquet"
    if isinstance(source, (str, os.PathLike)) and os.path.isfile(source):  # noqa: PTH113 - Path raises where a name is too long
        length = _unpacked(Path(source))
        copied = length if length != Path(source).stat().st_size else 0
        kind = "parquet" if Path(source).suffix.lower() in (".parquet", ".pq") else "csv"
    released = int(length * WRITTEN[kind, output.format or kind]) if output.files else 0
    if summary is not None and output.files and output.private:
        held = summary_bytes(summary.n_cells, len(summary.attributes), len(summary.sensitive))
        released += int(KEPT * held)
    spilled = copied + max(0, int(length * HELD[kind]) + PACKED * rows - memory)
    needed, free = released + spilled, shutil.disk_usage(output.folder).free
    if needed > free:
        raise DestinationError(
            f"the disk of {str(output.folder.parent)!r} has {size_text(free)} free, and about {size_text(needed)} "
            "are needed: "
            f"{size_text(released)} for the release and {size_text(spilled)} for temporary files; "
            "free some space, or publish to another disk"
        )


def _unpacked(path: Path) -> int:
    """The bytes of a file; of one that gzip packed, those that were packed: the last four tell how many (modulo 4 GB).

    Where they cannot be all (several packed parts in one file, more than 4 GB), a table counts as four times as long.
    """
    length = path.stat().st_size
    try:
        with path.open("rb") as file:
            if file.read(2) != b"\x1f\x8b":
                return length
            file.seek(-4, os.SEEK_END)
            told = int.from_bytes(file.read(4), "little")
    except OSError:  # whoever opens it will say so
        return length
    return told if told >= length else GZIPPED * length


# --- time -----------------------------------------------------------------------------------------------

# CPU seconds per million rows (first) and per million combinations, measured with benchmarks/bench_scale.py; only how
# they compare with each other matters. There, a million rows had 850,000 combinations.
BY_ROWS = {"reading": 0.2, "summarising": 0.8, "recoding": 0.4, "writing": 0.6}
BY_CELLS = {"searching": 0.6, "attacking": 3.8, "measuring usefulness": 0.6, "reporting": 0.9}
VERIFYING = {"generalise": 0.6, "bucketize": 2.4, "permute": 2.4}


def usual_times(policy: Policy, rows: int, cells: int | None = None) -> dict[str, float]:
    """The steps of a run to a folder, in their order, with what they usually cost; without cells: as there."""
    millions, of_cells = rows / 1e6, (0.85 * rows if cells is None else cells) / 1e6
    cost = {step: millions * c for step, c in BY_ROWS.items()}
    cost["verifying the bytes on disk"] = millions * VERIFYING[policy.recoding.name]
    cost |= {step: of_cells * c for step, c in BY_CELLS.items()}
    return cost | {"trying other settings": of_cells}
