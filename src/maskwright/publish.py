"""The pipeline, top to bottom: summarise, group, check, recode, write, verify, attack, report, rename into place.

The API, the command line and the workbench all call `run` and nothing else.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright import store
from maskwright.attacking import ADVERSARIES, attack_target
from maskwright.attacks import ATTACKS
from maskwright.calibrate import in_words
from maskwright.core.adversary import Target
from maskwright.core.classes import Classes, Originals
from maskwright.core.events import Event, Progress
from maskwright.core.grouping import Grouping, exact_view
from maskwright.core.method import Task
from maskwright.core.model import Context, Model, Need
from maskwright.core.plan import GroupPlan, Plan
from maskwright.core.policy import Policy
from maskwright.core.population import furnished
from maskwright.core.release import Part, Release
from maskwright.core.summary import Summary
from maskwright.core.verdict import Verdict
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Format, Reading, Recount, SummarySpec, Table
from maskwright.errors import DestinationError, InputError, NotVerified, PolicyError, PolicyNotMet
from maskwright.folder import Contents, KeepPrivate, write_words
from maskwright.judge import INSTEAD, judged
from maskwright.metrics import METRICS
from maskwright.models.belief import BeliefAtMost
from maskwright.resolve import Resolved, reading, resolve
from maskwright.tables import (
    Layout,
    check_members,
    class_names,
    compare,
    labels_of,
    make_tables,
    plan_tables,
    planned,
    recounted,
)
from maskwright.verify import classes_from, measure, reference_to

if TYPE_CHECKING:
    from maskwright.methods.nodes import MinimalNode


@dataclass(frozen=True)
class Job:
    """One run: what to publish, under which policy, and where to."""

    source: Any
    policy: Policy
    destination: Path | None = None
    overwrite: bool = False
    seed: int | None = None
    memory: str | None = None
    engine: str = "duckdb"
    keep_private: KeepPrivate = "all"
    attacks: tuple[str, ...] = tuple(ATTACKS)


def run(
    job: Job,
    on_event: Callable[[Event], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Release:
    """Make a release. Raises `PolicyNotMet` or `NotVerified`, and then nothing is published."""
    progress = Progress(on_event, cancelled)
    if job.destination is None:
        return _Run(job, progress, Path(tempfile.mkdtemp(prefix="maskwright-"))).in_memory()
    for line in store.recover(job.destination):
        progress.note(line)
    with store.Staging(job.destination, job.overwrite) as stage:
        this = _Run(job, progress, stage.spill)
        try:
            return this.to_folder(stage, job.keep_private)
        finally:
            this.close()


@contextmanager
def prepared(job: Job, on_event: Callable[[Event], None] | None = None) -> Iterator[Prepared]:
    """A table read and summarised as the policy says, with the task for a method; nothing is published."""
    this = _Run(job, Progress(on_event), Path(tempfile.mkdtemp(prefix="maskwright-")))
    try:
        yield this.prepare()
    finally:
        this.close()


def minimal_choices(job: Job, on_event: Callable[[Event], None] | None = None) -> list[MinimalNode]:
    """Every minimal node of a policy with a full-domain method, best first; nothing is published."""
    from maskwright.methods.minimal import minimal_nodes

    known = ("objective", "suppression", "suppress", "suppressed_rows")
    options = {k: v for k, v in job.policy.method.parameters.items() if k in known}
    with prepared(job, on_event) as ready:
        return minimal_nodes(ready.task, **options)


class _Run:
    """The state of one run, so that each step below reads as one sentence."""

    def __init__(self, job: Job, progress: Progress, spill: Path) -> None:
        self.job, self.progress, self.spill = job, progress, spill
        self.timings: dict[str, float] = {}
        secret = secrets.token_bytes(32) if job.seed is None else _seeded(job.seed)
        self.order_key = hashlib.sha256(secret + b"order").hexdigest()
        self.rng = np.random.default_rng(int.from_bytes(hashlib.sha256(secret + b"method").digest()))
        self.engine: Engine = open_engine(job.engine, memory=job.memory, temp=spill)

    # -- the two ways out ---------------------------------------------------------------------------------

    def in_memory(self) -> Release:
        """The release as a table in Python; it is recounted before it is handed over."""
        try:
            made = self.make()
            with self.step("recounting the table"):
                verdicts = self.recount(made, made.tables)
            tables = {name: self.engine.hand_over(table) for name, table in made.tables.items()}
            release = self.finish(made, verdicts, tables)
        except BaseException:
            self.close()
            raise
        self.progress.emit(Event("done", "recounted and ready"))
        final = replace(release, saver=lambda path, **options: self.save(made, path, **options))
        weakref.finalize(final, self.close)  # the engine is kept for `save`, and goes with the release
        return final

    def to_folder(self, stage: store.Staging, keep_private: KeepPrivate) -> Release:
        """The release as a folder; it is recounted from the bytes on disk before it is put in place."""
        made = self.make()
        release = self.write(stage, made, keep_private)
        with self.step("putting it in place"):
            made.prepared.stamp.check()
            stage.commit()
        self.progress.emit(Event("done", f"published to {stage.destination}"))
        return replace(release, path=stage.destination)

    def save(
        self, made: _Made, path: Path, overwrite: bool = False, keep_private: KeepPrivate = "all"
    ) -> Path:
        """`Release.save`: write the table that was handed over."""
        store.recover(path)
        with store.Staging(path, overwrite) as stage:
            self.write(stage, made, keep_private)
            stage.commit()
            return stage.destination

    # -- the steps ----------------------------------------------------------------------------------------

    def prepare(self) -> Prepared:
        """Read the table as the policy describes it, and summarise it."""
        job, engine = self.job, self.engine
        with self.step("reading"):
            stamp = _Stamp.of(job.source)
            source = engine.open(job.source, reading(job.policy))
            resolved = resolve(job.policy, engine, source, self.progress)
        with self.step("summarising"):
            summary = engine.summarise(source, resolved.spec)
            fingerprint = engine.fingerprint(source)
            if summary.dropped_missing:
                self.progress.note(f"rows left out because a value is missing: {summary.dropped_missing}")
            if summary.n_rows == 0:
                raise InputError("no row is left: every row has a missing value and the policy drops those")
            census = None
            if resolved.census is not None:
                census = engine.summarise(resolved.census, SummarySpec(resolved.spec.attributes))
        task = Task(
            summary, [m for m in resolved.models if m.use == "search"], _context(summary, resolved), self.rng,
            resolved.weights, resolved.levels, self.progress, census,
        )  # fmt: skip
        return Prepared(resolved, source, stamp, fingerprint, task)

    def make(self) -> _Made:
        """Everything up to the recoded, not yet written table."""
        prepared = self.prepare()
        resolved, task = prepared.resolved, prepared.task
        with self.step("searching"):
            try:
                grouping = resolved.method.group(task)
            except PolicyNotMet as problem:
                asked = in_words(resolved.models, resolved.method)
                raise PolicyNotMet("; ".join([str(problem), *asked]), problem.details) from None
        needs = frozenset[Need]().union(*(model.needs() for model in resolved.models))
        classes = furnished(grouping, needs, task.census)
        classes = replace(
            classes, sensitive=grouping.published_classes.sensitive
        )  # a method may distort values
        _gate(classes, resolved.models, task.context)
        if grouping.suppressed_rows:
            what = "published as *" if grouping.starred is not None else "dropped"
            self.progress.note(
                f"rows suppressed ({what}): {grouping.suppressed_rows} of {task.summary.n_rows}"
            )
        with self.step("recoding"):
            policy = self.job.policy
            drop = [*policy.quasi_identifiers, *policy.sensitive] if resolved.spec.drop_missing else []
            plan, layouts = plan_tables(grouping, policy, resolved.published, drop, self.order_key, self.rng)
            tables = make_tables(self.engine, prepared.source, plan, layouts)
        return _Made(prepared, grouping, classes, needs, plan, layouts, tables, policy.recoding.name)

    def recount(self, made: _Made, tables: Mapping[str, Table]) -> tuple[Verdict, ...]:
        """Measure tables as they are, and refuse them unless they are exactly what was planned and asked."""
        policy = self.job.policy
        found = recounted(self.engine, tables, made.layouts)
        compare(planned(made.grouping, made.plan, policy.recoding.name), found)
        check_members(self.engine, tables, made.layouts, made.plan)
        if policy.unit:
            found = self.people(made)
        classes = classes_from(found, made.layouts[0].classes_by, made.resolved.spec.sensitive)
        verdicts = measure(made.furnish(classes, found), made.resolved.models, made.context)
        for verdict in verdicts:
            if not verdict.ok:
                raise NotVerified(f"the recounted table does not satisfy the policy: {verdict.sentence()}")
        return verdicts

    def people(self, made: _Made) -> Recount:
        """Count people per class: recode once more with the unit column, which is never published."""
        policy, unit = self.job.policy, self.job.policy.unit or ""
        plan = replace(made.plan, columns=(*made.plan.columns, unit))
        with_unit = self.engine.recode(made.source, plan)
        return self.engine.recount(with_unit, policy.quasi_identifiers, policy.sensitive, unit)

    def recorded_classes(self, made: _Made) -> dict[str, Any] | None:
        """What nobody can count in the public table, for a later `verify`."""
        kept = made.needs & {"population", "originals"} or (
            "ancestors" in made.needs and made.grouping.ancestors
        )
        if not self.job.policy.unit and not kept:
            return None
        unit = self.job.policy.unit
        found = self.people(made) if unit else recounted(self.engine, made.tables, made.layouts)
        classes = made.furnish(Classes(found.people, found.rows), found)
        record: dict[str, Any] = {"labels": found.labels}
        record |= {"rows": found.rows.tolist(), "people": found.people.tolist()}
        record["values"] = {name: found.entries(name) for name in found.values} if unit else {}
        if classes.population is not None:
            record["population"] = classes.population.tolist()
        if classes.originals is not None:
            record["originals"] = [classes.originals.start.tolist(), classes.originals.sizes.tolist()]
        if classes.ancestors is not None:
            record["ancestors"] = classes.ancestors.parent.tolist()
        return record

    def target(self, made: _Made) -> Target:
        task, resolved = made.prepared.task, made.resolved
        return Target(
            made.grouping, resolved.models, resolved.method, task.context, task.census,
            self.job.policy.recoding.exact, weights=task.weights, levels=task.levels,
        )  # fmt: skip

    def finish(self, made: _Made, verdicts: tuple[Verdict, ...], tables: Mapping[str, Any]) -> Release:
        with self.step("attacking"):
            target = self.target(made)
            beliefs = tuple(attack_target(target, self.job.attacks, ADVERSARIES["knows-method"]))
            verdicts = judged(verdicts, target)
            for verdict in verdicts:
                if not verdict.ok:
                    raise PolicyNotMet(f"{verdict.sentence()}; nothing was published")
        recoding = self.job.policy.recoding
        shown = exact_view(made.grouping) if recoding.exact else made.grouping
        measured = {name: m.function(shown, made.resolved.weights) for name, m in METRICS.items()}
        metrics = {
            name: value for name, value in measured.items() if value == value
        }  # NaN: not defined for it
        parts = tuple(
            Part(layout.name, made.grouping, layout.columns, recoding.name, tables[layout.name])
            for layout in made.layouts
        )
        return Release(
            parts, self.job.policy, verdicts, beliefs, metrics, tuple(self.progress.notes),
            tuple(made.resolved.dropped), self.job.seed is not None, dict(self.timings), target=target,
        )  # fmt: skip

    def write(self, stage: store.Staging, made: _Made, keep_private: KeepPrivate) -> Release:
        """Fill the staging folder: the tables, then what was measured on them."""
        kind: Format = self.job.policy.output.format or made.source.format
        files = {layout.name: f"{layout.name}.{kind}" for layout in made.layouts}
        try:
            with self.step("writing"):
                for name, table in made.tables.items():
                    self.engine.write(table, stage.public / files[name], kind)
            with self.step("verifying the bytes on disk"):
                reading_back = Reading(format=kind)
                written = {n: self.engine.open(stage.public / f, reading_back) for n, f in files.items()}
                verdicts = self.recount(made, written)
            places = {name: stage.destination / store.PUBLIC / file for name, file in files.items()}
            release = self.finish(made, verdicts, places)
            with self.step("reporting"):
                contents = Contents(
                    release, made.layouts, files, kind, self.examples(made, written),
                    reference_to(made.resolved.spec.sensitive, made.context, made.resolved.hierarchies),
                    self.recorded_classes(made),
                    {"fingerprint": made.prepared.fingerprint, "source": _name(self.job.source)},
                )  # fmt: skip
                write_words(stage, contents, keep_private)
        except OSError as problem:
            raise DestinationError(
                f"cannot write the release to {str(stage.destination)!r}: {problem.strerror or problem}"
            ) from None
        return release

    def examples(self, made: _Made, written: Mapping[str, Table]) -> dict[str, list[dict[str, str | None]]]:
        """A few rows before and after, for the private report."""
        columns = made.plan.columns
        before = [{c: row[c] for c in columns} for row in self.engine.sample(made.source, 5)]
        after = {layout.name: self.engine.sample(written[layout.name], 5) for layout in made.layouts}
        if len(after) == 1:
            return {"before": before, "after": next(iter(after.values()))}
        return {"before": before} | {f"after: {name}": rows for name, rows in after.items()}

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        self.progress.step(text)
        begin = time.perf_counter()
        yield
        self.timings[text] = self.timings.get(text, 0.0) + time.perf_counter() - begin

    def close(self) -> None:
        self.engine.close()
        shutil.rmtree(self.spill, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table that was read and summarised, and the task for a method."""

    resolved: Resolved
    source: Table
    stamp: _Stamp
    fingerprint: str
    task: Task


@dataclass(frozen=True, eq=False)
class _Made:
    """What `make` hands to the ways out."""

    prepared: Prepared
    grouping: Grouping
    classes: Classes  # of the grouping, with what the models need to know of them
    needs: frozenset[Need]
    plan: Plan | GroupPlan
    layouts: list[Layout]
    tables: dict[str, Table]
    recoding: str

    @property
    def resolved(self) -> Resolved:
        return self.prepared.resolved

    @property
    def source(self) -> Table:
        return self.prepared.source

    @property
    def context(self) -> Context:
        return self.prepared.task.context

    def furnish(self, classes: Classes, found: Recount) -> Classes:
        """Add to recounted classes what the models need to know of them and no table shows."""
        classes = self._with_ancestors(classes, found)
        if not self.needs & {"population", "originals"}:
            return classes
        if self.layouts[0].classes_by != tuple(x.attribute for x in self.grouping.labels):
            raise PolicyError("population tables and m-confidentiality need recoding: generalise")
        group = {labels_of(self.grouping, g): g for g in range(self.grouping.classes.n)}
        order = np.array([group[labels] for labels in found.labels])
        planned, changes = self.classes, dict[str, Any]()
        if planned.population is not None:
            changes["population"] = planned.population[order]
        if planned.originals is not None:
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            class_of = np.repeat(place, np.diff(planned.originals.start))
            changes["originals"] = Originals.of(class_of, planned.originals.sizes, len(order))
        return replace(classes, **changes)

    def _with_ancestors(self, classes: Classes, found: Recount) -> Classes:
        """The groups that classes were split from; groups that share their labels are one class."""
        if "ancestors" not in self.needs or self.grouping.ancestors is None:
            return classes
        place = {labels: c for c, labels in enumerate(found.labels)}
        names = class_names(self.grouping, self.plan, self.recoding)
        class_of = np.array([place[labels] for labels in names], dtype=np.int64)
        return replace(classes, ancestors=self.grouping.ancestors.merged(class_of, classes.n))


@dataclass(frozen=True)
class _Stamp:
    """Size, time and identity of an input file: if they change while it is read, two versions could mix."""

    path: Path | None = None
    values: tuple[int, ...] = ()

    @staticmethod
    def of(source: Any) -> _Stamp:
        if not isinstance(source, (str, Path)):
            return _Stamp()
        try:
            stat = Path(source).stat()
        except OSError:
            return _Stamp(Path(source))
        return _Stamp(Path(source), (stat.st_size, stat.st_mtime_ns, stat.st_ino))

    def check(self) -> None:
        if self.path is not None and _Stamp.of(self.path) != self:
            raise InputError("the input changed while it was being read; nothing was published, run it again")


def _gate(classes: Classes, models: Sequence[Model], context: Context) -> None:
    """Refuse before anything is written when a requirement does not hold for the grouping."""
    for model in models:
        verdict = model.check(classes, context)
        if verdict.ok:
            continue
        near = model.nearest(classes, context)
        remedy = f"; this release would satisfy {near}" if near else ""
        if isinstance(model, BeliefAtMost):
            remedy += f"; {INSTEAD}"
        elif model.use == "gate":
            remedy += (
                "; or let a method search for it (use: search): mondrian with cut: balanced gives nothing away by "
                "that, the choice of other methods then says something about the values. Or require what is meant, a "
                "belief: {model: belief, max: 1/4} with that method chooses the parameter and guarantees it"
            )
        raise PolicyNotMet(f"{verdict.sentence()}{remedy}; nothing was published")


def _context(summary: Summary, resolved: Resolved) -> Context:
    whole = summary.totals()
    return Context(
        reference={name: vc.totals for name, vc in whole.sensitive.items()},
        n_people=summary.n_people,
        hierarchies=resolved.hierarchies,
        domains={s.name: s.values for s in resolved.spec.sensitive},
    )


def _seeded(seed: int) -> bytes:
    return hashlib.sha256(f"maskwright seed {seed}".encode()).digest()


def _name(source: Any) -> str:
    return Path(source).name if isinstance(source, (str, Path)) else type(source).__name__
