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
from maskwright.domain.beliefs import Beliefs
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Part
from maskwright.domain.promise import Design
from maskwright.domain.recoding_plan import Layout
from maskwright.domain.release import Release
from maskwright.domain.verdict import Measured, Verdict
from maskwright.engines.base import Format, Reading, Table
from maskwright.engines.readers.postgres import refuse_address
from maskwright.engines.readers.postgres_release import Pending, staged
from maskwright.errors import (
    DestinationError,
    InputError,
    PolicyNotMet,
    UsageError,
    is_interruption,
    system_refused,
)
from maskwright.folder import store
from maskwright.identifiers.date_shifts import DateShiftRisk
from maskwright.identifiers.detection import detect_identifier, detect_inside
from maskwright.identifiers.pseudonyms import Pseudonyms
from maskwright.kernels.randomness import derived_key, keyed_digest, random_generator
from maskwright.metrics import METRICS
from maskwright.pipeline import feasibility, history
from maskwright.pipeline import parts as stages
from maskwright.pipeline.attacking import ADVERSARIES, attack_target, attack_with_earlier
from maskwright.pipeline.folder_contents import Contents, for_readers, write_words
from maskwright.pipeline.gates import (
    decide_beliefs,
    decided_by_classes,
    promises_of,
    refuse_differing_labels,
    refuse_matching_visits,
    refuse_rare_items,
    refuse_unmet,
)
from maskwright.pipeline.job import Job, KeepPrivate, command_of, input_files, name_of
from maskwright.pipeline.label_text import rendered_part
from maskwright.pipeline.marginal_counts import with_marginals
from maskwright.pipeline.privacy_budget import PrivacyBudget
from maskwright.pipeline.random_keys import NAMED, Keys
from maskwright.pipeline.resource_checks import GATHERED, SHUFFLED, WORKED_ON
from maskwright.pipeline.sequence import in_sequence
from maskwright.pipeline.session import Prepared, Session
from maskwright.policy.binding import Resolved, design_of, method_of
from maskwright.policy.calibration import in_words
from maskwright.report.details import single_number_lines
from maskwright.runtime import disk
from maskwright.runtime.events import Event, Progress
from maskwright.verification.verify import reference_to, released_to

if TYPE_CHECKING:
    from maskwright.report.search import NearbySettings

EXAMPLES = 5  # rows before and after, in the private report
LOOKED_AT = 10_000  # published rows, in which direct identifiers are looked for


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
    inputs = [*input_files(job.source, job.policy), *([job.after] if job.after else [])]
    job = in_sequence(job, progress)
    if job.destination is None:
        return Run(job, progress, disk.scratch_folder()).in_memory()
    for line in store.recover_destination(job.destination):
        progress.note(line)
    with store.Staging(job.destination, job.overwrite, inputs=inputs) as stage:
        this = Run(job, progress, stage.spill)
        try:
            return this.to_folder(stage, job.keep_private)
        finally:
            this.close()


class Run(Session):
    """The state of one run, so that each step below reads as one sentence."""

    looked = history.EarlierLooks()  # nothing, until `look`
    spending = PrivacyBudget()  # nothing, until `look`
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
        self.remember(made.prepared.fingerprint, stage.destination)
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
        inputs = input_files(self.job.named_source, self.job.policy)
        with _plainly(), store.Staging(path, overwrite, inputs=inputs) as stage:
            self.write(stage, made, keep_private)
            stage.commit()
            self.remember(made.prepared.fingerprint, stage.destination)
            return stage.destination

    # -- the steps ----------------------------------------------------------------------------------------

    def look(self, fingerprint: str) -> None:
        """Find out what was tried on this input before, and remember this run."""
        settings, method = history.policy_hash(self.job.policy), method_of(self.job.policy)
        self.spending = PrivacyBudget.of(method, fingerprint, settings, self.chance.name)
        if not self.job.trial:
            self.spending.refuse_overspending(method)
        counted = self.spending.policies
        self.looked = history.looked_at(fingerprint, settings, self.chance.name, counted)
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
            feasibility.refuse_impossible(prepared.task, resolved.method, resolved.models)
            self.tight = feasibility.room_warnings(prepared.task, resolved.method, resolved.models)
            for line in self.tight:
                self.progress.note(line)
            try:
                parts = [rendered_part(p, self.job.policy) for p in resolved.method.parts(prepared.task)]
            except PolicyNotMet as problem:
                asked = in_words(resolved.models, resolved.method.for_one_table())
                raise PolicyNotMet("; ".join([str(problem), *asked]), problem.details) from None
        if self.job.sequel is not None and self.job.policy.publish.marginals:
            raise UsageError(
                "publish: marginals would count counterfeits with people in a release after another one (--after): "
                "remove `marginals`"
            )
        parts = with_marginals(parts, self.job.policy)
        for part in parts:
            self.tell_gap(part.grouping)
            models = stages.models_for(part, resolved)
            people = self.job.policy.person_column is not None
            counted, references = decided_by_classes(models, self.job.policy), stages.references_of(part)
            refuse_unmet(stages.classes_of(part, models), counted, references, people)
            refuse_matching_visits(part.grouping, models, self.job.policy.people)
            refuse_differing_labels(part.grouping, self.job.policy)
            refuse_rare_items(part, self.job.policy, len(parts))
            self.tell_suppressed(part.grouping, part.name if len(parts) > 1 else "")
            self.tell_larger_k(part)
        with self.step("recoding"):
            self.make_room(parts, WORKED_ON, SHUFFLED * prepared.task.summary.n_rows)
            engine = None if self.job.trial else self.engine
            # group numbers are published: they must say nothing about what the method drew
            keys = prepared.keys
            secrets = derived_key(keys.order, "order").hex(), derived_key(keys.groups, "members").hex()
            numbers = random_generator(keys.order, "group numbers")
            first, hidden = parts[0], self.pseudonyms(keys)
            parts = [
                stages.make_part(
                    engine, part, resolved, part is first, secrets, numbers, hidden, prepared.families
                )
                for part in parts
            ]
            if engine is not None and (self.job.destination is None or self.job.into is not None):
                parts = [stages.kept_tables(part, engine) for part in parts]
            for part in parts:
                stages.refuse_singling_out(part, resolved, self.engine)
        for name, many in parts[0].collisions.items():
            if many:
                self.progress.note(f"column {name!r}: {many:,} values share their pseudonym with another")
        made = _Made(prepared, parts, [], hidden)
        if self.job.trial:
            return made
        return replace(made, rows=self.engine.sample(prepared.opened, EXAMPLES, made.columns))

    def pseudonyms(self, keys: Keys) -> dict[str, Pseudonyms]:
        """What is published in place of the names of people, where the policy says so.

        The key belongs to this installation, input and policy: every release has other pseudonyms, unless they are
        `stable`. Then it belongs to the installation and the group of the column.
        """
        policy, found = self.job.policy, dict[str, Pseudonyms]()
        for name in policy.pseudonyms:
            column = policy.columns.get(name)
            if column is None or not column.stable:
                found[name] = Pseudonyms(derived_key(keys.order, "pseudonyms"), "release", name)
                continue
            if not self.repeatable:
                raise UsageError(
                    f"columns.{name}: stable pseudonyms need a key that lasts, and the installation key could not be "
                    f"kept ({self.chance.why_not_kept}); name a key file in {NAMED}, or remove stable: true"
                )
            group = column.group or name
            key = keyed_digest(self.chance.secret, "maskwright stable pseudonyms 1", group)
            found[name] = Pseudonyms(key, "project", group)
            self.progress.note(
                f"column {name!r} has the same pseudonyms in every release of this installation with the group "
                f"{group!r}: whoever has two of them knows which rows are one person's (linkability). Attack them "
                "together, `maskwright attack one/ two/`, before you hand out another"
            )
        return found

    def tell_gap(self, grouping: Grouping) -> None:
        """Note that the time of a search was up, and how much better the best release could be at most."""
        gap = grouping.search.get("gap")
        if isinstance(gap, float) and gap > 0:
            self.progress.note(
                f"the search ran out of time (budget_s) before the best was proven: another release could "
                f"lose up to {100 * gap:.1f} % less ({grouping.search.get('objective', 'information-loss')}); a "
                "larger budget_s continues the search"
            )

    def tell_larger_k(self, part: Part) -> None:
        """Note that a larger k can lose less, where the search may leave out small classes only."""
        small_only = getattr(part.method, "suppress", "") == "small-classes" and getattr(
            part.method, "suppression", 0
        )
        searched = [m for m in part.task.search if "attribute" in type(m).model_fields]
        if small_only and searched and part.grouping.levels is not None:
            names = " and ".join(dict.fromkeys(m.name for m in searched))
            self.progress.note(
                f"a class that fails {names} is left out only where it has fewer than k people (suppress: "
                "small-classes), and coarsened otherwise: a larger k can lose less, which is no mistake; with "
                "suppress: failing-classes whatever fails is left out, and nothing is guaranteed"
            )

    def tell_suppressed(self, grouping: Grouping, name: str) -> None:
        """Note how many rows were suppressed."""
        if grouping.suppressed_rows:
            what = "published as *" if grouping.starred is not None else "dropped"
            rows = f"{grouping.suppressed_rows} of {grouping.summary.n_rows}"
            self.progress.note(f"{name + ': ' if name else ''}rows suppressed ({what}): {rows}")

    def recount(self, made: _Made, tables: Mapping[str, Table]) -> tuple[Verdict, ...]:
        """Measure the tables of every part as they are; a part that is not what was asked is refused."""
        several = len(made.parts) > 1
        return tuple(
            replace(v, part=p.name) if several else v
            for p in made.parts
            for v in stages.recount_part(p, made.resolved, self.engine, tables)
        )

    def refuse_identifiers(self, made: _Made, tables: Mapping[str, Table]) -> None:
        """Refuse tables with a column of direct identifiers; what is decided follows from what is published alone."""
        columns = self.job.policy.columns
        shown, _ = for_readers(made.parts)  # without values of sets that only people hold who are left out
        for layout in (
            [layout for part in shown for layout in part.layouts] if tables else ()
        ):  # of a trial: none
            sets = {s.name: s.values for s in layout.sets}
            asked = [c for c in layout.columns if c in columns and columns[c].direct_identifiers == "refuse"]
            rows = self.engine.sample(tables[layout.name], LOOKED_AT, asked)
            for name in asked:
                cells = [cell for row in rows if (cell := row[name]) is not None]
                values = sets.get(name) or tuple(dict.fromkeys(cells))
                varied = 2 * len(values) >= len(cells)
                found = detect_identifier(values, varied) or detect_inside(values)
                if found is not None:
                    raise InputError(
                        f"column {name!r} is to be published as {columns[name].role}, but {found.sentence()}; make "
                        "it an identifier, so that it is not published, or, if they identify nobody, write "
                        "direct_identifiers: allow; nothing was published"
                    )

    def target(self, made: _Made, tables: Mapping[str, Table]) -> Target:
        """What an attack looks at: the first table of the release, with the others beside it."""
        recoding, design = self.job.policy.recoding, self.design(made)
        targets = []
        for p in made.parts:
            joined = recoding.blocks(tuple(p.grouping.summary.sensitive), p.task.sets)
            passing = stages.passing_beliefs(p, made.resolved, self.engine, tables)
            targets.append(Target.of(p, recoding.exact, joined, passing, design))
        place = self.job.sequel.place if self.job.sequel is not None else None
        return replace(targets[0], beside=tuple(targets[1:]), place=place)

    def design(self, made: _Made) -> Design:
        """The ingredients of the policy and of this run that are neither method nor models."""
        facts = {
            "seeded": self.chance.seeded, "repeatable": self.repeatable, "looked": self.looked.sentence(),
            "follows": self.job.sequel.place.register.releases - 1 if self.job.sequel is not None else 0,
            "spent": self.spending.spent, "coarsened": self.coarsened,
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
        with self.step("looking for direct identifiers"):
            self.refuse_identifiers(made, tables)
        with self.step("attacking"):
            found = (stages.singled_out_people(p, made.resolved, self.engine, tables) for p in made.parts)
            singled = [line for line in found if line]
            target = self.target(made, tables)
            beliefs = tuple(
                attack_target(target, self.job.attacks, ADVERSARIES["knows-method"], self.progress)
            )
            beliefs += self.composed(target, made.prepared.fingerprint)
            for line in dict.fromkeys(line for b in beliefs for line in single_number_lines(b.measures)):
                self.progress.note(line)
            verdicts, promises = decide_beliefs(verdicts, target), promises_of(target)
            for verdict in verdicts:
                if not verdict.ok:
                    raise PolicyNotMet(f"{verdict.sentence()}; nothing was published")
            moved = self.attack_dates(made) if tables else None
        with self.step("measuring usefulness"):
            metrics = worst_of([self.useful(p.grouping, made.resolved.weights) for p in made.parts])
        self.spend(made)
        recoding = self.job.policy.recoding.name
        parts = tuple(shown for p in made.parts for shown in p.published(recoding, places))
        return Release(
            parts, self.job.policy, verdicts, beliefs, metrics, tuple(self.progress.notes),
            tuple(made.resolved.dropped), self.chance.seeded, self.repeatable, dict(self.timings), target=target,
            history=self.looked.as_dict(), promises=promises, tight=tuple(self.tight), singled_out=tuple(singled),
            repairs=made.resolved.source.repairs, date_shift=moved,
        )  # fmt: skip

    def spend(self, made: _Made) -> None:
        """Remember what a differentially private release spends, before anybody has it."""
        privacy = made.resolved.method.privacy()
        if privacy is not None and not self.job.trial:
            settings, key = history.policy_hash(self.job.policy), self.chance.name
            table, method = made.prepared.fingerprint, made.resolved.method

            def check() -> None:
                """Refuse where another run spent something since this one looked."""
                if PrivacyBudget.of(method, table, settings, key).spent != self.spending.spent:
                    raise UsageError(
                        "another differentially private release of this table was made meanwhile, and what releases "
                        "reveal adds up; nothing was published, run it again"
                    )

            history.record_spending(table, settings, key, privacy, check)

    def composed(self, target: Target, fingerprint: str) -> tuple[Beliefs, ...]:
        """What this release tells together with the earlier ones of the same table that are known of."""
        if self.job.sequel is not None:
            return (self.job.sequel.beliefs,) if self.job.sequel.beliefs is not None else ()
        if "intersection" not in self.job.attacks:
            return ()
        settings = history.policy_hash(self.job.policy)
        known, gone = history.earlier_releases(fingerprint, settings, self.chance.name)
        replaced = [f for f in known if self.job.destination and f == self.job.destination.absolute()]
        known = [folder for folder in known if folder not in replaced]
        found = attack_with_earlier(target, known, fingerprint)
        if lost := gone + len(replaced) + found.missing:
            which = (
                "an earlier release of this table was"
                if lost == 1
                else f"{lost} earlier releases of this table were"
            )
            self.progress.note(
                f"{which} replaced, moved or written without what attacks need: what somebody who has both learns "
                "is NOT COMPUTED; keep the folder of every release that is handed out"
            )
        if found.attacked:
            names = ", ".join(repr(folder.name) for folder in found.attacked)
            self.progress.note(f"attacked together with earlier releases of this table: {names}")
        return found.beliefs

    def remember(self, fingerprint: str, folder: Path) -> None:
        """Note where the release lies, for those that come after it."""
        try:
            history.record_release(
                fingerprint, history.policy_hash(self.job.policy), self.chance.name, folder
            )
        except DestinationError as problem:
            self.progress.note(str(problem))

    def attack_dates(self, made: _Made) -> DateShiftRisk | None:
        """What known events tell of moved dates, which is told; None: none were moved."""
        if self.date_offsets is None:
            return None
        found = stages.date_shift_risk(made.parts[0], made.resolved, self.engine, self.date_offsets)
        said = ["moved dates: what known events tell is NOT COMPUTED, because values were changed besides"]
        for line in said if found is None else found.sentences():
            self.progress.note(line)
        return found

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
                        replace(p, recorded=stages.recorded_classes(p, resolved, self.engine, written))
                        for p in made.parts
                    ],
                    files, kind, self.examples(made, written),
                    reference_to(resolved.spec.sensitive, context, resolved.hierarchies)
                    | {"released": {p.name: released_to(stages.references_of(p)) for p in made.parts}},
                    {"fingerprint": made.prepared.fingerprint, "source": name_of(self.job.named_source),
                     "command": command_of(self.job)},
                    around, made.hidden, self.job.sequel,
                )  # fmt: skip
                write_words(stage, contents, keep_private)
        except OSError as problem:
            raise DestinationError(
                f"cannot write the release to {str(stage.destination)!r}: {problem.strerror or problem}"
            ) from None
        return release

    def look_around(self, made: _Made) -> NearbySettings:
        """What a stricter or a looser policy would cost, for the private report."""
        from maskwright.pipeline.what_if import try_nearby_settings

        with self.step("trying other settings"):
            return try_nearby_settings(made.parts, self.job.policy.recoding.exact, self.timings)

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
    parts: list[Part]
    rows: list[dict[str, str | None]]  # a few, as they were: the input may be gone when the release is saved
    hidden: Mapping[str, Pseudonyms]  # what makes pseudonyms, by column

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


def worst_of(parts: Sequence[Mapping[str, Measured]]) -> dict[str, Measured]:
    """The metrics of a release: those of its worst table."""
    names = [name for name in METRICS if all(name in part for part in parts)]
    return {n: (max if METRICS[n].better == "low" else min)(p[n] for p in parts) for n in names}
