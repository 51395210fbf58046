"""The pipeline, top to bottom: summarise, group, check, recode, write, verify, attack, report, rename into place.

The API, the command line and the workbench all call `publish_release` and nothing else.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.domain.adversary import Target
from maskwright.domain.classes import Classes
from maskwright.domain.grouping import Grouping
from maskwright.domain.model import Model
from maskwright.domain.promise import Design
from maskwright.domain.references import References
from maskwright.domain.release import Part, Release
from maskwright.domain.verdict import Measured, Verdict
from maskwright.engines.base import Format, Reading, Table
from maskwright.engines.readers.postgres import refuse_address
from maskwright.engines.readers.postgres_release import Pending, staged
from maskwright.errors import DestinationError, PolicyNotMet, UsageError, is_interruption, system_refused
from maskwright.folder import store
from maskwright.kernels.randomness import derived_key, random_generator
from maskwright.metrics import METRICS
from maskwright.models.belief import BeliefAtMost
from maskwright.pipeline import history, room
from maskwright.pipeline.attacking import ADVERSARIES, attack_target
from maskwright.pipeline.belief_gates import INSTEAD, decide_beliefs, promises_of
from maskwright.pipeline.folder_contents import Contents, Written, write_words
from maskwright.pipeline.job import Job, KeepPrivate, command_of, input_files, name_of
from maskwright.pipeline.label_text import rendered_piece
from maskwright.pipeline.parts import MadePart, classes_of, make_part, models_for
from maskwright.pipeline.published_tables import Layout
from maskwright.pipeline.resource_checks import GATHERED, SHUFFLED, WORKED_ON
from maskwright.pipeline.session import Prepared, Session
from maskwright.policy.binding import Resolved, design_of
from maskwright.policy.calibration import in_words
from maskwright.policy.policy import Policy
from maskwright.runtime import disk
from maskwright.runtime.events import Event, Progress
from maskwright.verification.verify import reference_to, released_to

if TYPE_CHECKING:
    from maskwright.report.search import NearbySettings

EXAMPLES = 5  # rows before and after, in the private report


def publish_release(
    job: Job,
    on_event: Callable[[Event], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Release:
    """Make a release. Raises `PolicyNotMet` or `NotVerified`, and then nothing is published."""
    progress = Progress(on_event, cancelled)
    if job.engine != "spark":  # which reads from hdfs:// and the like
        refuse_address(job.source)
    with _plainly():
        return _run(job, progress)


@contextmanager
def _plainly() -> Iterator[None]:
    """What the system refuses, in words; and a Ctrl-C as such, wherever it came."""
    try:
        yield
    except OSError as problem:
        raise DestinationError(system_refused(problem)) from None
    except Exception as problem:
        if is_interruption(problem):
            raise KeyboardInterrupt from None
        raise


def _run(job: Job, progress: Progress) -> Release:
    if job.destination is None:
        return Run(job, progress, disk.scratch_folder()).in_memory()
    for line in store.recover_destination(job.destination):
        progress.note(line)
    inputs = input_files(job.source, job.policy)
    with store.Staging(job.destination, job.overwrite, inputs=inputs) as stage:
        this = Run(job, progress, stage.spill)
        try:
            return this.to_folder(stage, job.keep_private)
        finally:
            this.close()


class Run(Session):
    """The state of one run, so that each step below reads as one sentence."""

    looked = history.EarlierLooks()  # nothing, until `look`
    tight: Sequence[str] = ()  # bounds without room, until `make`

    # -- the two ways out ---------------------------------------------------------------------------------

    def in_memory(self) -> Release:
        """The release as a table in Python; it is recounted before it is handed over."""
        try:
            made = self.make()
            with self.step("recounting the table"):
                verdicts = self.recount(made, made.tables)
            release = self.finish(made, verdicts, made.tables, dict.fromkeys(made.tables))
            with self.in_database(made) as put:
                made.prepared.check_input()
                tables = {name: self.engine.hand_over(table) for name, table in made.tables.items()}
                release = replace(
                    release, parts=tuple(replace(p, table=tables[p.name]) for p in release.parts)
                )
                if self.job.into is not None:
                    self.progress.final("putting it in place")
                put()
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
        with self.in_database(made) as put, self.step("putting it in place", final=True):
            made.prepared.check_input()
            stage.commit()
            put()
        self.progress.emit(Event("done", f"published to {stage.destination}"))
        return replace(release, path=stage.destination)

    @contextmanager
    def in_database(self, made: _Made) -> Iterator[Callable[[], None]]:
        """The release in tables of a database too, recounted there; `put` makes them visible."""
        if self.job.into is None:
            yield lambda: None
            return
        with self.step("writing to the database"):
            self.spill.mkdir(exist_ok=True)
            with staged(self.engine, made.tables, self.job.into, self.job.overwrite, self.spill) as pending:
                self.recount(made, pending.tables)
                pending.swap()
                yield lambda: self.commit(pending)
        self.progress.note(f"written to {self.job.into}")

    def commit(self, pending: Pending) -> None:
        """Commit the rows in the database, and say so when that fails after the folder was put in place."""
        try:
            pending.commit()
        except DestinationError as problem:
            folder = self.job.destination
            there = f"; the folder {str(folder)!r} is the new release all the same" if folder else ""
            raise DestinationError(f"{problem}{there}") from None

    def save(
        self, made: _Made, path: Path, overwrite: bool = False, keep_private: KeepPrivate = "all"
    ) -> Path:
        """`Release.save`: write the table that was handed over."""
        store.recover_destination(path)
        inputs = input_files(self.job.source, self.job.policy)
        with _plainly(), store.Staging(path, overwrite, inputs=inputs) as stage:
            self.write(stage, made, keep_private)
            stage.commit()
            return stage.destination

    # -- the steps ----------------------------------------------------------------------------------------

    def look(self, fingerprint: str) -> None:
        """Find out what was tried on this input before, and remember this run."""
        settings = history.policy_hash(self.job.policy)
        self.looked = history.looked_at(fingerprint, settings, self.chance.name)
        if self.looked.chosen_by_looking and self.job.policy.sensitive and not self.job.trial:
            self.progress.note(self.looked.sentence())
        try:
            kind: history.Kind = "compared" if self.job.trial else "run"
            history.record_outcome(fingerprint, settings, kind, self.chance.name)
        except DestinationError as problem:
            if self.job.trial:
                raise
            self.progress.note(str(problem))

    def make(self, prepared: Prepared | None = None) -> _Made:
        """Everything up to the recoded, not yet written tables (of a trial: up to the groups)."""
        prepared = prepared or self.prepare()
        self.look(prepared.fingerprint)
        resolved = prepared.resolved
        with self.step("searching"):
            room.refuse_impossible(prepared.task, resolved.method, resolved.models)
            self.tight = room.room_warnings(prepared.task, resolved.method, resolved.models)
            for line in self.tight:
                self.progress.note(line)
            try:
                pieces = [rendered_piece(p, self.job.policy) for p in resolved.method.pieces(prepared.task)]
            except PolicyNotMet as problem:
                asked = in_words(resolved.models, resolved.method.for_one_table())
                raise PolicyNotMet("; ".join([str(problem), *asked]), problem.details) from None
        for piece in pieces:
            self.tell_gap(piece.grouping)
            models = models_for(piece, resolved)
            references = References.of(piece.grouping, piece.task.context)
            _gate(classes_of(piece, models), _counted(models, self.job.policy), references)
            self.tell_suppressed(piece.grouping, piece.name if len(pieces) > 1 else "")
        with self.step("recoding"):
            self.make_room(pieces, WORKED_ON, SHUFFLED * prepared.task.summary.n_rows)
            engine = None if self.job.trial else self.engine
            # group numbers are published: they must say nothing about what the method drew
            keys = prepared.keys
            secrets = derived_key(keys.order, "order").hex(), derived_key(keys.groups, "members").hex()
            numbers = random_generator(keys.order, "group numbers")
            parts = [
                make_part(engine, piece, resolved, piece is pieces[0], secrets, numbers) for piece in pieces
            ]
            if engine is not None and (self.job.destination is None or self.job.into is not None):
                parts = [part.kept(engine) for part in parts]
        made = _Made(prepared, parts, [])
        if self.job.trial:
            return made
        return replace(made, rows=self.engine.sample(prepared.opened, EXAMPLES, made.columns))

    def tell_gap(self, grouping: Grouping) -> None:
        """Note that the time of a search was up, and how much better the best release could be at most."""
        gap = grouping.search.get("gap")
        if isinstance(gap, float) and gap > 0:
            self.progress.note(
                f"the search ended with its time (budget_s), before the best was proven: another release could "
                f"lose up to {100 * gap:.1f} % less ({grouping.search.get('objective', 'information-loss')}); a larger "
                "budget_s looks on"
            )

    def tell_suppressed(self, grouping: Grouping, name: str) -> None:
        """Note how many rows were suppressed."""
        if grouping.suppressed_rows:
            what = "published as *" if grouping.starred is not None else "dropped"
            rows = f"{grouping.suppressed_rows} of {grouping.summary.n_rows}"
            self.progress.note(f"{name + ': ' if name else ''}rows suppressed ({what}): {rows}")

    def recount(self, made: _Made, tables: Mapping[str, Table]) -> tuple[Verdict, ...]:
        """Measure the tables of every part as they are; a part that is not what was asked is refused."""
        if len(made.parts) == 1:
            return made.parts[0].recount(self.engine, tables)
        return tuple(replace(v, part=p.name) for p in made.parts for v in p.recount(self.engine, tables))

    def target(self, made: _Made, tables: Mapping[str, Table]) -> Target:
        """What an attack looks at: the first table of the release, with the others beside it."""
        recoding = self.job.policy.recoding
        targets = []
        for p in made.parts:
            task, names = p.piece.task, tuple(p.grouping.summary.sensitive)
            targets.append(
                Target(
                    p.grouping, p.models, p.piece.method, task.context, task.census, recoding.exact,
                    weights=task.weights, levels=task.levels, joined=recoding.blocks(names, task.sets), name=p.name,
                    passing=p.passing(self.engine, tables), design=self.design(made),
                )
            )  # fmt: skip
        return replace(targets[0], beside=tuple(targets[1:]))

    def design(self, made: _Made) -> Design:
        """The ingredients of the policy and of this run that are neither method nor models."""
        facts = {
            "seeded": self.chance.seeded, "repeatable": self.repeatable, "looked": self.looked.sentence(),
        }  # fmt: skip
        return design_of(self.job.policy, made.resolved.method, facts)

    def finish(
        self,
        made: _Made,
        verdicts: tuple[Verdict, ...],
        tables: Mapping[str, Table],
        places: Mapping[str, Any],
    ) -> Release:
        """Attack the tables as they are, judge what was required of beliefs, and measure what is left of use."""
        with self.step("attacking"):
            singled = [line for part in made.parts if (line := part.singled_out(self.engine, tables))]
            target = self.target(made, tables)
            beliefs = tuple(attack_target(target, self.job.attacks, ADVERSARIES["knows-method"]))
            verdicts, promises = decide_beliefs(verdicts, target), promises_of(target)
            for verdict in verdicts:
                if not verdict.ok:
                    raise PolicyNotMet(f"{verdict.sentence()}; nothing was published")
        recoding = self.job.policy.recoding
        with self.step("measuring usefulness"):
            metrics = worst_of([self.useful(p.grouping, made.resolved.weights) for p in made.parts])
        parts = tuple(
            Part(layout.name, p.grouping, layout.columns, recoding.name, places[layout.name])
            for p in made.parts
            for layout in p.layouts
        )
        return Release(
            parts, self.job.policy, verdicts, beliefs, metrics, tuple(self.progress.notes),
            tuple(made.resolved.dropped), self.chance.seeded, self.repeatable, dict(self.timings), target=target,
            history=self.looked.as_dict(), promises=promises, tight=tuple(self.tight), singled_out=tuple(singled),
            repairs=made.resolved.source.repairs,
        )  # fmt: skip

    def useful(self, grouping: Grouping, weights: Mapping[str, Fraction]) -> dict[str, Measured]:
        """The cheap metrics, and those that were asked for; one that is not defined here is left out."""
        metrics = {}
        for name, metric in METRICS.items():
            if metric.on_request and name not in self.job.metrics:
                continue
            try:
                value = metric.measure(grouping, weights, self.job.policy.recoding.exact)
            except UsageError as reason:
                self.progress.note(f"{name} was not measured: {reason}")
                continue
            if value == value:
                metrics[name] = value
            elif metric.on_request:  # NaN
                self.progress.note(f"{name} was not measured: it is not defined for this release")
        return metrics

    def write(self, stage: store.Staging, made: _Made, keep_private: KeepPrivate) -> Release:
        """Fill the staging folder: the tables, then what was measured on them."""
        kind: Format = self.job.policy.output.format or made.resolved.source.format
        formulas = self.job.policy.output.formulas
        files = {layout.name: f"{layout.name}.{kind}" for layout in made.layouts}
        try:
            with self.step("writing"):
                self.make_room(made.parts, GATHERED)
                for name, table in made.tables.items():
                    self.engine.write(table, stage.public / files[name], kind, formulas)
            with self.step("verifying the bytes on disk"):
                reading_back = Reading.back(kind, kind == "csv" and formulas == "escape")
                written = {n: self.engine.open(stage.public / f, reading_back) for n, f in files.items()}
                if self.job.destination is not None and self.job.into is None:  # nobody reads them again
                    for table in made.tables.values():
                        self.engine.forget(table)
                self.make_room(made.parts, WORKED_ON)
                verdicts = self.recount(made, written)
            places = {name: stage.destination / store.PUBLIC / file for name, file in files.items()}
            release = self.finish(made, verdicts, written, places)
            around = self.look_around(made) if keep_private != "none" else None
            with self.step("reporting"):
                resolved, context = made.resolved, made.prepared.task.context
                contents = Contents(
                    release,
                    [
                        Written(p.name, p.grouping, p.layouts, p.recorded_classes(self.engine, written))
                        for p in made.parts
                    ],
                    files, kind, self.examples(made, written),
                    reference_to(resolved.spec.sensitive, context, resolved.hierarchies)
                    | {"released": {p.name: released_to(p.references) for p in made.parts}},
                    {"fingerprint": made.prepared.fingerprint, "source": name_of(self.job.source),
                     "command": command_of(self.job)},
                    around,
                )  # fmt: skip
                write_words(stage, contents, keep_private)
        except OSError as problem:
            raise DestinationError(
                f"cannot write the release to {str(stage.destination)!r}: {problem.strerror or problem}"
            ) from None
        return release

    def look_around(self, made: _Made) -> NearbySettings:
        """What a stricter or a looser policy would cost, for the private report."""
        from maskwright.report.search import try_nearby_settings

        with self.step("trying other settings"):
            pieces = [part.piece for part in made.parts]
            return try_nearby_settings(pieces, self.job.policy.recoding.exact, self.timings)

    def examples(self, made: _Made, written: Mapping[str, Table]) -> dict[str, list[dict[str, str | None]]]:
        """A few rows before and after, for the private report."""
        after = {layout.name: self.engine.sample(written[layout.name], EXAMPLES) for layout in made.layouts}
        if len(after) == 1:
            return {"before": made.rows, "after": next(iter(after.values()))}
        return {"before": made.rows} | {f"after: {name}": rows for name, rows in after.items()}


@dataclass(frozen=True, eq=False)
class _Made:
    """What `make` hands to the ways out: the parts of the release."""

    prepared: Prepared
    parts: list[MadePart]
    rows: list[dict[str, str | None]]  # a few, as they were: the input may be gone when the release is saved

    @property
    def resolved(self) -> Resolved:
        """The policy with its columns found in the table."""
        return self.prepared.resolved

    @property
    def layouts(self) -> list[Layout]:
        """The columns of every table that is written."""
        return [layout for part in self.parts for layout in part.layouts]

    @property
    def columns(self) -> list[str]:
        """What is published, each column once."""
        return list(dict.fromkeys(c for layout in self.layouts for c in layout.columns))

    @property
    def tables(self) -> dict[str, Table]:
        """Every table that is written, by its name."""
        return {name: table for part in self.parts for name, table in part.tables.items()}


def _counted(models: Sequence[Model], policy: Policy) -> Sequence[Model]:
    """The requirements that classes alone decide; beliefs about people with several rows are not among them."""
    return [m for m in models if not (policy.person_column and isinstance(m, BeliefAtMost))]


def _gate(classes: Classes, models: Sequence[Model], references: References) -> None:
    """Refuse before anything is written when a requirement does not hold for the grouping."""
    for model in models:
        verdict = references.check(model, classes)
        if verdict.ok:
            continue
        near = references.nearest(model, classes)
        remedy = f"; this release would satisfy {near}" if near else ""
        if isinstance(model, BeliefAtMost):
            remedy += f"; {INSTEAD}"
        elif model.use == "gate":
            remedy += (
                "; or let a method search for it (use: search): mondrian with cut: balanced gives nothing away by "
                "that, the choice of other methods then says something about the values"
            )
            if _has_room(references, model):
                remedy += (
                    ". Or require what is meant, a belief: {model: belief, max: 1/4} with that method chooses the "
                    "parameter and guarantees it"
                )
        raise PolicyNotMet(f"{verdict.sentence()}{remedy}; nothing was published")


def _has_room(references: References, model: Model) -> bool:
    """Whether no value of the model's attribute is held by more than a quarter of the table as it is."""
    counts = references.search.reference.get(model.attribute_name() or "")
    return counts is not None and 4 * int(counts.max(initial=0)) <= int(counts.sum())


def worst_of(parts: Sequence[Mapping[str, Measured]]) -> dict[str, Measured]:
    """The metrics of a release: those of its worst table."""
    names = [name for name in METRICS if all(name in part for part in parts)]
    return {n: (max if METRICS[n].better == "low" else min)(p[n] for p in parts) for n in names}
