"""A session with one table: it is opened, read and summarised as a policy says, within its memory."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.method import Task
from maskwright.domain.model import Context
from maskwright.domain.sample import Sample, weight_totals
from maskwright.domain.summary import Owned, Summary
from maskwright.engines.base import Engine, SensitiveSpec, SummarySpec, Table
from maskwright.engines.readers.csv_files import Stamp
from maskwright.engines.readers.postgres_release import check_target
from maskwright.errors import InputError
from maskwright.kernels.randomness import random_generator
from maskwright.methods import METHODS
from maskwright.pipeline.job import Job, engine_of
from maskwright.pipeline.random_keys import Chance, Keys, content_hash
from maskwright.pipeline.resource_checks import (
    DiskOutput,
    check_disk,
    check_memory,
    usual_times,
    working_memory,
)
from maskwright.policy.binding import Resolved, flagged_of, reading_options, resolve_policy
from maskwright.policy.policy import Policy
from maskwright.prepare.repairs import repair_lines
from maskwright.runtime import disk
from maskwright.runtime.events import Event, Progress
from maskwright.runtime.memory_budget import MemoryBudget, held_bytes

if TYPE_CHECKING:
    pass


@contextmanager
def prepared_run(
    job: Job,
    on_event: Callable[[Event], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Iterator[Prepared]:
    """A table read and summarised as the policy says, with the task for a method; nothing is published."""
    this = Session(job, Progress(on_event, cancelled), disk.scratch_folder())
    try:
        yield this.prepare()
    finally:
        this.close()


class Session:
    """The engine within its memory, a place to spill, and steps that are told and timed."""

    def __init__(self, job: Job, progress: Progress, spill: Path, engine: Engine | None = None) -> None:
        self.job, self.progress, self.spill = job, progress, spill
        self.timings: dict[str, float] = {}
        with ExitStack() as undo:
            undo.callback(disk.remove_scratch, spill)
            self.chance = Chance.of(job.seed)
            self.budget = MemoryBudget.of(job.memory)
            self.engine: Engine = engine or engine_of(job, spill)
            undo.callback(self.engine.close)
            self.engine.allow(self.budget.engine())
            undo.pop_all()

    @property
    def repeatable(self) -> bool:
        """Does the same policy on the same input give the same release again? Not where no key could be kept."""
        return self.chance.repeatable

    def prepare(self) -> Prepared:
        """Read the table as the policy describes it, and summarise it."""
        job, engine = self.job, self.engine
        if job.into is not None:
            check_target(job.into, job.overwrite, _tables_of(job.policy), job.source)
        with self.step("reading"):
            self.check_disk()
            stamp = Stamp.of(job.source)
            opened = engine.open(job.source, reading_options(job.policy))
            for line in repair_lines(opened.repairs):
                self.progress.note(line)
            rows = engine.count(opened)
            self.check_disk(rows)
            self.progress.expect(usual_times(job.policy, rows))
            resolved = resolve_policy(job.policy, engine, opened, self.progress)
        with self.step("summarising"):
            arrays = check_memory(engine, resolved, self.budget, rows, self.progress)
            engine.allow(self.budget.engine(arrays))
            summary = engine.summarise(resolved.source, resolved.spec)
            engine.allow(self.budget.engine(working_memory(resolved, summary.n_cells, rows)))
            self.progress.expect(usual_times(job.policy, rows, summary.n_cells))
            self.check_disk(rows, summary)
            fingerprint = engine.fingerprint(opened)
            if summary.dropped_missing:
                self.progress.note(f"rows left out because a value is missing: {summary.dropped_missing}")
            if summary.n_rows == 0:
                raise InputError("no row is left: every row has a missing value and the policy drops those")
            census = None
            if resolved.census is not None:
                census = engine.summarise(resolved.census, SummarySpec(resolved.spec.attributes))
            summary, sample = with_survey_design(engine, resolved, summary, census)
            if sample is not None:
                self.progress.note(_told(sample))
            searched = any(m.use == "search" and "sample" in m.needs() for m in resolved.models)
            # weights that no search looks at are no way to draw again
            content = content_hash(summary if searched else replace(summary, weights=None), census)
        if not self.repeatable:
            self.progress.note(self.chance.note())
        keys = self.chance.keys(resolved, content, fingerprint)
        search, gates = ([m for m in resolved.models if m.use == use] for use in ("search", "gate"))
        task = Task(
            summary, search, _context(summary, resolved, sample), _of_method(keys), resolved.weights, resolved.levels,
            self.progress, census, gates, resolved.sets,
        )  # fmt: skip
        return Prepared(opened, resolved, stamp, fingerprint, content, keys, task)

    def check_disk(self, rows: int = 0, summary: Summary | None = None) -> None:
        """Refuse what would not fit on the disk."""
        job = self.job
        kept = job.keep_private == "all"
        output = DiskOutput(self.spill, job.destination is not None, job.policy.output.format, kept)
        check_disk(output, job.source, self.budget.engine(), rows, summary)

    def again(self, prepared: Prepared) -> Prepared:
        """The same table under a policy that reads it alike but asks for something else."""
        resolved = prepared.resolved.under(self.job.policy)
        search, gates = ([m for m in resolved.models if m.use == use] for use in ("search", "gate"))
        keys = self.chance.keys(resolved, prepared.content, prepared.fingerprint)
        rng = _of_method(keys)
        task = replace(
            prepared.task,
            search=search,
            gates=gates,
            rng=rng,
            levels=resolved.levels,
            progress=self.progress,
        )
        return replace(prepared, resolved=resolved, keys=keys, task=task)

    def make_room(self, things: object, share: float = 0, more: int = 0) -> None:
        """The engine may use what is left beside arrays that are held, and work on them: a share of them, and more."""
        self.engine.allow(self.budget.engine(int((1 + share) * held_bytes(things)) + more))

    @contextmanager
    def step(self, text: str, final: bool = False) -> Iterator[None]:
        """A step of the run: announced, watched for cancelling, and timed."""
        (self.progress.final if final else self.progress.step)(text)
        begin = time.perf_counter()
        with self.engine.watch(self.progress):
            yield
        self.timings[text] = self.timings.get(text, 0.0) + time.perf_counter() - begin

    def close(self) -> None:
        """Close the engine and remove what it wrote to disk."""
        self.engine.close()
        disk.remove_scratch(self.spill)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table that was read and summarised, and the task for a method.

    Attributes:
        opened: the table.
        resolved: what the policy says of it.
        stamp: of its file, so that a change is noticed.
        fingerprint: tells tables apart, whatever the policy reads of them.
        content: a hash of what a method sees of it.
        keys: behind the random choices of a release.
        task: for the method.
    """

    opened: Table
    resolved: Resolved
    stamp: Stamp
    fingerprint: str
    content: str
    keys: Keys
    task: Task

    def check_input(self) -> None:
        """Refuse an input that is no longer what was read."""
        if not self.stamp.still():
            raise InputError("the input changed while it was being read; nothing was published, run it again")


def _of_method(keys: Keys) -> np.random.Generator:
    return random_generator(keys.groups, "method")


def _context(summary: Summary, resolved: Resolved, sample: Sample | None) -> Context:
    whole = summary.totals()
    return Context(
        reference={name: vc.totals for name, vc in whole.sensitive.items()},
        n_people=summary.n_people,
        hierarchies=resolved.hierarchies,
        domains={s.name: s.values for s in resolved.spec.sensitive},
        flagged=flagged_of(resolved.policy, resolved.sets),
        sets=tuple(s.counted(summary) for s in resolved.sets),
        sample=sample,
    )


def _told(sample: Sample) -> str:
    how = "by survey weights" if sample.weighted else "each standing for as many"
    return f"{sample.people:,} people stand for a population of {sample.size:,}, {how}; risks in it are estimated"


def _tables_of(policy: Policy) -> list[str]:
    """The tables of a release, as far as they are known before it is made."""
    name = policy.method.name
    if name in METHODS and METHODS[name].several_tables:
        return []
    return ["quasi-identifiers", "sensitive"] if policy.recoding.name == "bucketize" else ["data"]


CHANGED = "the input changed while it was being read; nothing was published, run it again"


def with_survey_design(
    engine: Engine, resolved: Resolved, summary: Summary, census: Summary | None
) -> tuple[Summary, Sample | None]:
    """The summary with weights and households, and the population behind it; None: nothing is known of one."""
    policy = resolved.policy
    size = policy.population.size if policy.population is not None else None
    if census is not None:
        size = max(census.n_people, summary.n_people)  # whoever is in the table is one of them
    if size is not None and size < summary.n_people:
        raise InputError(
            f"population: a population of {size:,} cannot have {summary.n_people:,} people in the table; correct `size`"
        )
    if policy.weight is not None:
        weights = _weights(engine, resolved, policy.weight, summary)
        total = float(weights.sum())
        if size is None and total < summary.n_rows:
            raise InputError(
                f"weight: the weights of column {policy.weight!r} add up to {total:.6g}, less than the "
                f"{summary.n_rows:,} rows themselves, as if they were scaled; say how many people they stand for, "
                "population: {size: 100000} with the real number, to which they are then scaled"
            )
        size = size or round(total)
        summary = replace(summary, weights=weights * (size / total))
    if size is None:
        return summary, None
    if policy.household is not None:
        summary = replace(summary, households=_households(engine, resolved, policy.household, summary))
    wildcard = policy.missing.wildcard
    return summary, Sample(size, summary.n_people, policy.weight is not None, wildcard)


def _weights(engine: Engine, resolved: Resolved, column: str, summary: Summary) -> NDArray[np.float64]:
    """The sum of the weights of each tuple: distinct weights are counted like the values of a sensitive column."""
    domain = engine.domain(resolved.source, column)
    if domain.missing:
        raise InputError(
            f"weight: column {column!r} is missing in {domain.missing} rows; complete it or remove the rows"
        )
    values = np.array([_weight(text, column) for text in domain.values], dtype=np.float64)
    spec = SensitiveSpec(column, domain.values)
    found = engine.summarise(resolved.source, _spec(resolved, [spec]))
    counts = found.sensitive[column]
    amounts = counts.counts * values[counts.codes - 1]
    return weight_totals(counts.owner, amounts, found.n_tuples)[_places(summary, found)]


def _weight(text: str, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise InputError(
            f"weight: column {column!r} holds {text[:40]!r}, which is no weight; weights are numbers above 0"
        )
    return value


def _households(engine: Engine, resolved: Resolved, column: str, summary: Summary) -> Owned:
    """How many rows of each tuple are of which household."""
    if missing := engine.domain(resolved.source, column, limit=1).missing:
        raise InputError(
            f"household: column {column!r} is missing in {missing} rows; complete it or remove the rows"
        )
    found = engine.summarise(resolved.source, _spec(resolved, [], column))
    if found.owned is None:
        raise InputError(CHANGED)
    place = np.empty(found.n_tuples, dtype=np.int64)
    place[_places(summary, found)] = np.arange(summary.n_tuples)
    return replace(found.owned, tuples=place[found.owned.tuples], values={})


def _spec(resolved: Resolved, more: Sequence[SensitiveSpec], unit: str | None = None) -> SummarySpec:
    """What to count beside the summary: the same rows, so that those with missing values are left out as there."""
    drop = resolved.spec.drop_missing
    known = [s for s in resolved.spec.sensitive if drop and s.name not in {m.name for m in more}]
    return SummarySpec(resolved.spec.attributes, (*known, *more), unit, drop)


def _places(summary: Summary, found: Summary) -> NDArray[np.int64]:
    """For each tuple of a summary its place in another one of the same rows."""
    mine, theirs = np.lexsort(summary.codes), np.lexsort(found.codes)
    if not np.array_equal(summary.codes[:, mine], found.codes[:, theirs]):
        raise InputError(CHANGED)
    places = np.empty(summary.n_tuples, dtype=np.int64)
    places[mine] = theirs
    return places
