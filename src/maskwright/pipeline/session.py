"""A session with one table: it is opened, read and summarised as a policy says, within its memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from maskwright.domain.method import Task
from maskwright.domain.model import Context, Need
from maskwright.domain.sample import Sample
from maskwright.domain.summary import Summary
from maskwright.engines.base import Engine, Table
from maskwright.engines.readers.csv_files import Stamp
from maskwright.engines.readers.postgres_release import check_target
from maskwright.errors import InputError
from maskwright.identifiers.date_shifts import DateOffsets
from maskwright.identifiers.pseudonyms import Pseudonyms
from maskwright.kernels.randomness import keyed_digest, random_generator
from maskwright.methods import METHODS
from maskwright.perturb.publication import PerturbedFamily
from maskwright.pipeline.column_changes import drawn_families, in_a_note
from maskwright.pipeline.job import Job, engine_of
from maskwright.pipeline.privacy_budget import refuse_guessable
from maskwright.pipeline.random_keys import Chance, Keys, content_hash
from maskwright.pipeline.resource_checks import (
    DiskOutput,
    check_disk,
    check_memory,
    coarsened_to_fit,
    usual_times,
    working_memory,
)
from maskwright.pipeline.unpublished_columns import with_guards, with_survey_design
from maskwright.policy.binding import (
    Resolved,
    check_columns,
    flagged_of,
    method_of,
    reading_options,
    refuse_changing_columns,
    resolve_policy,
)
from maskwright.policy.policy import Policy
from maskwright.prepare.repairs import repair_lines
from maskwright.recode.rare_items import SetOwners, items_of, with_merged_items, without_rare_items
from maskwright.runtime import disk
from maskwright.runtime.events import Event, Progress
from maskwright.runtime.memory_budget import MemoryBudget, held_bytes


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

    coarsened: tuple[str, ...] = ()  # the columns that `prepare` coarsened so that they fit

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
        refuse_guessable(job, self.chance, method_of(job.policy))
        if job.into is not None:
            check_target(job.into, job.overwrite, _tables_of(job.policy), job.source)
        with self.step("reading"):
            self.check_disk()
            stamp = Stamp.of(job.source)
            opened = engine.open(job.source, reading_options(job.policy))
            for line in repair_lines(opened.repairs):
                self.progress.note(line)
            opened = self._with_moved_dates(opened)
            opened, left_out = self._with_few_rows(opened)
            for name in job.policy.known_items:
                opened = self._with_common_items(opened, name)
            rows = engine.count(opened)
            self.check_disk(rows)
            self.progress.expect(usual_times(job.policy, rows))
            resolved = resolve_policy(job.policy, engine, opened, self.progress)
        with self.step("summarising"):
            if job.coarsen:
                policy = coarsened_to_fit(engine, resolved, self.budget, rows, self.progress)
                if policy is not job.policy:  # as if it had said so
                    self.job = job = replace(job, policy=policy)
                    before = resolved.policy.columns
                    self.coarsened = tuple(
                        n for n, c in policy.columns.items() if c.finest != before[n].finest
                    )
                    resolved = resolve_policy(policy, engine, opened, Progress())
            arrays = check_memory(engine, resolved, self.budget, rows, self.progress)
            engine.allow(self.budget.engine(arrays))
            summary = engine.summarise(resolved.source, resolved.spec)
            engine.allow(self.budget.engine(working_memory(resolved, summary.n_cells, rows)))
            self.progress.expect(usual_times(job.policy, rows, summary.n_cells))
            self.check_disk(rows, summary)
            summary = replace(summary, dropped_per_person=left_out)
            fingerprint = engine.fingerprint(opened)
            refuse_changing_columns(summary, job.policy.people.own if job.policy.people else ())
            if summary.dropped_missing:
                self.progress.note(f"rows left out because a value is missing: {summary.dropped_missing}")
            if summary.n_rows == 0:
                raise InputError("no row is left: every row has a missing value and the policy drops those")
            census = None
            if resolved.census is not None:
                census = engine.summarise(resolved.census, resolved.census_spec())
            summary, sample = with_survey_design(engine, resolved, summary, census)
            summary = with_guards(engine, resolved, summary)
            if sample is not None:
                self.progress.note(_sample_in_words(sample))
            # what no search looks at is no way to draw again
            searched = frozenset[Need]().union(*(m.needs() for m in resolved.models if m.use == "search"))
            seen = replace(
                summary,
                weights=summary.weights if "sample" in searched else None,
                guards=summary.guards if "guards" in searched else None,
            )
            content = content_hash(seen, census)
            resolved, families = drawn_families(engine, resolved, self.chance, fingerprint)
            if families:
                self.progress.note(in_a_note(resolved))
        if not self.repeatable:
            self.progress.note(self.chance.note())
        keys = self.chance.keys(resolved, content, fingerprint)
        search, gates = ([m for m in resolved.models if m.use == use] for use in ("search", "gate"))
        task = Task(
            summary, search, _context(summary, resolved, sample), _of_method(keys), resolved.weights, resolved.levels,
            self.progress, census, gates, resolved.sets, job.policy.own_columns,
            {} if job.sequel is None else job.sequel.given,
        )  # fmt: skip
        return Prepared(opened, resolved, stamp, fingerprint, content, keys, task, families)

    @property
    def date_offsets(self) -> DateOffsets | None:
        """How the dates of each person are moved: by the key of the installation, in every release alike.

        Other offsets in another release would narrow each other down.
        """
        shift = self.job.policy.shift_dates
        if shift is None:
            return None
        key = keyed_digest(self.chance.secret, "maskwright date shift 1")
        return DateOffsets(Pseudonyms(key, "date shift", "people"), shift.within, shift.weekdays)

    def _with_moved_dates(self, opened: Table) -> Table:
        policy, offsets = self.job.policy, self.date_offsets
        if policy.shift_dates is None or offsets is None:
            return opened
        check_columns(policy, opened)
        return self.engine.shift_dates(opened, policy.shift_dates.columns, policy.shifting_person, offsets)

    def _with_few_rows(self, opened: Table) -> tuple[Table, int]:
        """The table with at most as many rows of each person as the policy keeps, and how many were left out.

        Drawn before anything is counted, by a key of the installation and the input alone: other settings on the same
        input keep the same rows, and a larger number keeps more of them.
        """
        people = self.job.policy.people
        if people is None or people.rows is None:
            return opened, 0
        check_columns(self.job.policy, opened)
        before = self.engine.count(opened)
        key = keyed_digest(
            self.chance.secret, "maskwright rows per person 1", self.engine.fingerprint(opened)
        )
        drawn = self.engine.draw_rows(
            opened, people.rows, people.column, Pseudonyms(key, "rows", people.column)
        )
        left_out = before - self.engine.count(drawn)
        self.progress.note(
            f"at most {people.rows} rows of each person are kept: {left_out:,} of {before:,} rows "
            f"({100 * left_out / before:.2g} %) are left out, drawn at random"
        )
        return drawn, left_out

    def _with_common_items(self, opened: Table, name: str) -> Table:
        """The table with the sets of a column as the policy wants rare combinations: some taken out, or merged."""
        column = self.job.policy.columns[name]
        asked = column.known_items
        if asked is None or asked.rare == "refuse":
            return opened
        check_columns(self.job.policy, opened)
        separator = str(column.multivalued)
        people = self.job.policy.people
        texts = self.engine.row_texts(opened, [name, *([people.column] if people else [])])[0]
        before = [items_of(text, separator, self.job.policy.missing.tokens) for text in texts[name].tolist()]
        owners = SetOwners()
        if people is not None:
            owners = SetOwners(texts[people.column].tolist(), linked=people.publish is not None)
        if asked.hierarchy is None:
            after = without_rare_items(before, asked.k, asked.m, owners)
        else:
            values = sorted(frozenset[str]().union(*before))
            built = asked.hierarchy.build(
                name, values, self.job.policy.folder, self.job.policy.missing.tokens
            )
            after = with_merged_items(before, asked.k, asked.m, built, owners)
        changed = sum(x != y for x, y in zip(before, after, strict=True))
        what = "with values taken out" if asked.hierarchy is None else "with values merged"
        self.progress.note(
            f"column {name!r}: {changed:,} of {len(before):,} sets are published {what}, so that at least "
            f"{asked.k} people hold any {asked.m} values"
        )
        if not changed:
            return opened
        joined = np.array([separator.join(sorted(items)) or None for items in after], dtype=object)
        fresh = f"{name} {len(opened.columns)}"
        while fresh in {c.name for c in opened.columns}:
            fresh += "'"
        wider = self.engine.add_columns(opened, {fresh: (name, joined)})
        return self.engine.shown_columns(
            wider, {c.name: fresh if c.name == name else c.name for c in opened.columns}
        )

    def check_disk(self, rows: int = 0, summary: Summary | None = None) -> None:
        """Refuse what would not fit on the disk."""
        job = self.job
        kept = job.keep_private == "all"
        output = DiskOutput(self.spill, job.destination is not None, job.policy.output.format, kept)
        check_disk(output, job.source, self.budget.engine(), rows, summary)

    def again(self, prepared: Prepared) -> Prepared:
        """The table under another policy that reads it in the same way and asks for something else."""
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
        families: the columns that are published with changes.
    """

    opened: Table
    resolved: Resolved
    stamp: Stamp
    fingerprint: str
    content: str
    keys: Keys
    task: Task
    families: tuple[PerturbedFamily, ...] = ()

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


def _sample_in_words(sample: Sample) -> str:
    how = "by survey weights" if sample.weighted else "each standing for as many"
    return f"{sample.people:,} people stand for a population of {sample.size:,}, {how}; risks in it are estimated"


def _tables_of(policy: Policy) -> list[str]:
    """The tables of a release, as far as they are known before it is made."""
    name = policy.method.name
    if name in METHODS and METHODS[name].several_tables:
        return []
    return ["quasi-identifiers", "sensitive"] if policy.recoding.name == "bucketize" else ["data"]
