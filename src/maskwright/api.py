"""The Python surface: `anonymize`, `attack`, `audit`, `check`, `compare`, `suggest_policy`, `policy_schema` …"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from maskwright.attacks import ATTACKS
from maskwright.domain.adversary import Adversary, Attack, Target
from maskwright.domain.beliefs import Beliefs
from maskwright.domain.promise import Promise
from maskwright.domain.release import Release
from maskwright.domain.settings import Registered
from maskwright.domain.verdict import parsed_number
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.engines.readers.postgres import Postgres
from maskwright.errors import InputError, NotVerified, UsageError
from maskwright.folder.store import MANIFEST, PRIVATE, read_json
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.notebook import shown_progress
from maskwright.pipeline.attacking import (
    DAMAGED,
    adversary_named,
    attack_target,
    belief_bound,
    published_parts,
    target_of,
    targets_of,
)
from maskwright.pipeline.job import Job, KeepPrivate, input_files, metrics_named
from maskwright.pipeline.publish import publish_release
from maskwright.pipeline.session import prepared_run
from maskwright.pipeline.what_if import minimal_choices
from maskwright.policy.binding import reading_options as reading_of
from maskwright.policy.draft import PolicyDraft
from maskwright.policy.policy import AnyPolicy, Policy
from maskwright.runtime.events import Event

if TYPE_CHECKING:
    from maskwright.auditing import Audit
    from maskwright.auditing.table_check import TableCheck
    from maskwright.comparing import Comparison
    from maskwright.methods._lattice.nodes import MinimalNode
    from maskwright.notebook.result_frames import ReadRelease
    from maskwright.suggest import Suggestion
    from maskwright.suggest.advice import Answers
    from maskwright.verification.verify import Verification


def anonymize(
    source: Any,
    policy: AnyPolicy,
    destination: str | Path | None = None,
    *,
    overwrite: bool = False,
    seed: int | None = None,
    memory: str | None = None,
    engine: str | None = None,
    master: str | None = None,
    keep_private: KeepPrivate = "all",
    into: Postgres | None = None,
    metrics: Sequence[str] = (),
    after: str | Path | None = None,
    coarsen: Literal["auto"] | None = None,
    on_event: Callable[[Event], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Release:
    """Make a release of a table that satisfies a policy, or raise `PolicyNotMet`.

    Args:
        source: a path (CSV, Parquet, Excel, Stata, SPSS, SAS), a pandas, polars, pyarrow, DuckDB or PySpark table,
            anything that offers an Arrow stream, or a `Postgres` table or query.
        policy: a `Policy`, a mapping, or the path of a policy file.
        destination: a folder to publish to; without it the table is in `release.table`, of the caller's kind.
        overwrite: replace a release that is already there.
        seed: makes every random choice repeatable; for tests and experiments, and marked as such.
        memory: the limit of the whole process, e.g. "4GB" (default: 75 % of the machine); Spark: of the driver.
        engine: "duckdb" or "spark"; by default Spark for PySpark data frames, otherwise DuckDB.
        master: of a Spark cluster, e.g. "spark://host:7077"; by default the session that is running.
        keep_private: what stays in private/: "all", "report" or "none".
        into: also a table of a PostgreSQL database, recounted there and put in place in one transaction.
        metrics: costly ones to measure too ("query-error", "correlation-change", "predictive-utility").
        after: the folder of the release that this one follows, about people who come and go (docs/sequences.md).
        coarsen: "auto": coarsen quasi-identifiers before rows are grouped, where their combinations would not fit into
            the memory (docs/memory.md); otherwise such a table is refused.
        on_event: called with every `Event` while the run goes on.
        cancelled: asked now and then; return True to stop.
    """
    job = Job(
        source=source,
        policy=Policy.load(policy),
        destination=Path(destination) if destination is not None else None,
        overwrite=overwrite,
        seed=seed,
        memory=memory,
        engine=engine,
        master=master,
        keep_private=keep_private,
        into=into,
        metrics=metrics_named(metrics),
        after=None if after is None else Path(after),
        coarsen=coarsen,
    )
    with shown_progress(on_event) as shown:
        return publish_release(job, shown, cancelled)


def load(folder: str | Path) -> Release:
    """The release in a folder, as `anonymize` returned it: recounted first, refused where it is not what was promised.

    Args:
        folder: of a release that was made with `keep_private="all"`; `release.table` is the path of its file.
    """
    target, found, path = target_of(folder), verify(folder), Path(folder)
    if not found.ok:
        failed = [*found.problems, *(v.sentence() for v in found.verdicts if not v.ok)]
        raise NotVerified(f"{str(folder)!r} is not what was promised: {failed[0]}", "\n".join(failed[1:]))
    try:
        record = read_json(path / PRIVATE / MANIFEST)
        return Release(
            published_parts(path), Policy.load(path / PRIVATE / "policy.yaml"), found.verdicts,
            tuple(map(Beliefs.of, record["beliefs"])),
            {name: parsed_number(value) for name, value in record["metrics"].items()},
            tuple(record["notes"]), tuple(record["columns"]["dropped"]), bool(record["seeded"]),
            bool(record["repeatable"]), record["timings"], record["history"], path, target,
            tuple(map(Promise.of, record["promises"])),
        )  # fmt: skip
    except DAMAGED:
        raise InputError(f"{str(path / PRIVATE)!r} does not hold what was written there") from None


def read_release(folder: str | Path) -> ReadRelease:
    """The public part of a release as its readers get it: the table, and values drawn by its marginals.

    Args:
        folder: of a release, or a copy of its public/ part. `read.table()` is the published table, `read.draws()` one
            with a value in place of each label, `read.probabilities("age")` what a label may stand for.
    """
    from maskwright.notebook.result_frames import read_release_folder

    return read_release_folder(folder)


def verify(
    folder: str | Path, policy: AnyPolicy | None = None, *, recount_only: bool = False
) -> Verification:
    """Recount a release that was written earlier, and compare it with what was promised.

    Args:
        folder: of the release.
        policy: check the files against this policy alone, whatever the folder says about itself.
        recount_only: accept files that were rewritten (another order, another container) as long as they hold.
    """
    from maskwright.pipeline.gates import verify_release

    return verify_release(folder, recount_only, None if policy is None else Policy.load(policy))


def attack(
    release: Release | str | Path | Sequence[Release | str | Path],
    attack: Attack | str | None = None,
    *,
    adversary: str | Adversary = "knows-method",
    facts: int | None = None,
) -> Beliefs | list[Beliefs]:
    """Attack a release, in memory or in its folder: with one attack, or with every one that applies.

    Args:
        release: a `Release`, or the folder of one that kept its private/ part; or a list of releases about the same
            people, whose tables are then combined (`intersection`).
        attack: a name or an attack with its settings; without it all of them, the worst belief first.
        adversary: a preset ("neighbour", "journalist", "knows-method", "insider", "learns") or an `Adversary`.
        facts: how many facts about others the adversary knows.
    """
    who = adversary if isinstance(adversary, Adversary) else adversary_named(adversary, facts)
    if isinstance(release, (Release, str, Path)):
        target: Target | list[Target] = target_of(release)
    else:
        target = targets_of(release)
    if attack is None:
        return attack_target(target, list(ATTACKS), who)
    found = attack_target(target, [attack], who)
    if not found:
        raise UsageError(
            f"this attack does not apply to this release, or {who.name} does not know enough for it (facts=1 or more)"
        )
    return found[0]


def audit(
    table: Any,
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    *,
    policy: AnyPolicy | None = None,
    require: Sequence[Any] = (),
    original: Any = None,
    control: Any = None,
    sensitive_table: Any = None,
    group: str | None = None,
    unit: str | None = None,
    population: Any = None,
    max_belief: Any = None,
    adversary: str | Adversary | None = None,
    facts: int | None = None,
    reading: Reading | None = None,
) -> Audit:
    """Look at a table that some tool produced: what holds, what can be believed, what it gives away.

    Args:
        table: a path (CSV, Parquet) or a frame; for a bucketized release, the table of quasi-identifiers.
        quasi_identifiers: the columns an attacker could know; default: those of the policy.
        sensitive: the columns nobody should be able to infer; default: those of the policy.
        policy: roles, requirements and hierarchies; with `original`, its method is what the adversary knows.
        require: requirements, e.g. `{"model": "k-anonymity", "k": 5}` or `mw.models.KAnonymity(k=5)`.
        original: the raw table, if it is at hand.
        control: with the original, people like them, from whom the table was not made; both are attacked.
        sensitive_table: for a bucketized release, the table of sensitive values, joined by `group`.
        group: the column that says which rows belong together (bucketized and permuted releases).
        unit: the column that tells people apart, if they have several rows; "none": every row is a person.
        population: a table of everybody who could be in the data.
        max_belief: the largest belief allowed, e.g. "1/4".
        adversary: a preset or an `Adversary`; default: the neighbour (with a known method: knows-method).
        facts: how many facts about others the adversary knows.
        reading: how files are to be read, and what counts as missing.
    """
    from maskwright.auditing import Question, audit_table

    who = adversary if isinstance(adversary, Adversary) else None
    if who is None and (adversary is not None or facts is not None):
        who = adversary_named(str(adversary or "neighbour"), facts)
    loaded = None if policy is None else Policy.load(policy)
    bound = belief_bound(max_belief, "max_belief")
    question = Question(
        table, tuple(quasi_identifiers), tuple(sensitive), loaded, tuple(require), original, sensitive_table,
        group, unit, population, reading or (reading_of(loaded) if loaded else Reading()), bound, control,
    )  # fmt: skip
    return audit_table(question, who)


def minimal_nodes(
    source: Any,
    policy: AnyPolicy,
    *,
    memory: str | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> list[MinimalNode]:
    """Every minimal choice of levels that satisfies a policy, best first: not only the one that is published.

    A node is minimal when it satisfies the policy and no finer one does. The suppression limit and the objective
    are those of the policy's method.
    """
    return minimal_choices(Job(source, Policy.load(policy), memory=memory), on_event)


def plan_frontier(
    source: Any,
    policy: AnyPolicy,
    *,
    memory: str | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> dict[str, Any]:
    """The plans for several sensitive attributes that no other plan beats: association loss against exposure.

    The policy may have any method; the cap on discernibility of a codip policy bounds the closeness that is compared.
    `maskwright.report.plan_section.frontier_chart` draws the result, `frontier_csv` writes it as a table.
    """
    from maskwright.methods.codip import association_of, frontier_of

    job = Job(source, Policy.load(policy), memory=memory)
    with prepared_run(job, on_event) as ready:
        cap = getattr(ready.resolved.method, "discernibility", None)
        if len(ready.task.summary.sensitive) < 2 or ready.task.summary.joint is None:
            raise UsageError(
                "a plan is about at least two sensitive attributes, and about one row per person; codip itself takes "
                "people with several"
            )
        return frontier_of(ready.task, association_of(ready.task), cap)


def compare(
    source: Any,
    policies: AnyPolicy | Sequence[AnyPolicy],
    destination: str | Path | None = None,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    metrics: Sequence[str] = ("query-error",),
    utility: str = "information-loss",
    risk: str = "worst",
    candidates: Sequence[Any] = (),
    control: Any = None,
    overwrite: bool = False,
    seed: int | None = 0,
    memory: str | None = None,
    cache: bool | str | Path = True,
    on_event: Callable[[Event], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Comparison:
    """Run several policies on one table, publish nothing, and compare risk with usefulness.

    Args:
        source: as for `anonymize`.
        policies: one or several, each as for `anonymize`.
        destination: a folder for the table, the chart, and the policy of every point.
        grid: settings and their values, e.g. {"k": [2, 5, 10], "method": ["optimal-lattice", "mondrian"]}; every
            combination is compared. `k-anonymity.k` says which k is meant where several settings are called k.
        metrics: costly ones to measure too.
        utility: the metric on the chart.
        risk: "worst", the largest belief of any attack; or the name of one attack.
        candidates: tables that other tools made of the same people; they and the releases of the policies are attacked
            with a control half, which needs
        control: people like those of the source, who were not used for any of the tables.
        overwrite: replace a comparison that is already there.
        seed: of random choices, so that a comparison can be repeated; nothing is published with it.
        memory: the limit of the whole process.
        cache: reuse results of earlier comparisons; False, or a folder of its own.
        on_event: called with every `Event` while the comparison goes on.
        cancelled: asked now and then; return True to stop. What was finished is reused the next time.
    """
    from maskwright.comparing import compare_policies as run_all
    from maskwright.comparing.output import check_comparison_folder

    several = (
        [policies] if isinstance(policies, (Policy, PolicyDraft, Mapping, str, Path)) else list(policies)
    )
    if candidates and control is None:
        raise UsageError(
            "candidates are compared on people who were held out: name a table of them as control (--control)"
        )
    if destination is not None:
        check_comparison_folder(Path(destination), overwrite, input_files(source, *map(Policy.load, several)))
    with shown_progress(on_event) as shown:
        found = run_all(
            source, several, grid=grid, metrics=metrics, utility=utility, risk=risk, seed=seed, memory=memory,
            cache=cache if isinstance(cache, bool) else Path(cache), on_event=shown, cancelled=cancelled,
        )  # fmt: skip
        if candidates or control is not None:
            from maskwright.auditing.controlled import attacked_tables

            tables = attacked_tables(
                found,
                source,
                control,
                candidates,
                Policy.load(several[0]),
                seed,
                memory,
                shown,
            )
            read = (path for table in (*candidates, control) for path in input_files(table))
            found = replace(found, tables=tables, inputs=(*found.inputs, *read))
    if destination is not None:
        found.save(destination, overwrite)
    return found


def check(
    source: Any,
    quasi_identifiers: Sequence[str] = (),
    *,
    k: int | None = None,
    unit: str | None = None,
    policy: AnyPolicy | None = None,
    allow: Sequence[str] = (),
    preset: str | None = None,
    reading: Reading | None = None,
) -> TableCheck:
    """Whether a table may go out: direct identifiers in its columns, and how small its smallest class is.

    Args:
        source: as for `anonymize`.
        quasi_identifiers: the columns that an attacker could know; without them k is not assessed.
        k: the fewest people that a class may have (default: that of the policy, or 5).
        unit: the column that tells people apart, if they have several rows; "none": every row is a person.
        policy: names the quasi-identifiers, k, and the columns that are allowed to look like identifiers.
        allow: columns that look like direct identifiers but are not.
        preset: hipaa-safe-harbor, ema-clinical or gdpr-wp216: its guidance line by line.
        reading: how a file is to be read.
    """
    from maskwright.auditing.table_check import check_table

    engine = open_engine()
    try:
        name = Path(source).name if isinstance(source, (str, Path)) else "the table"
        asked = None if policy is None else Policy.load(policy)
        if reading is None and asked is not None:
            reading = reading_of(asked)
        return check_table(engine, source, name, quasi_identifiers, k, unit, asked, allow, preset, reading)
    finally:
        engine.close()


def suggest_policy(
    source: Any,
    preset: str | None = None,
    reading: Reading | None = None,
    *,
    tried: bool = True,
    answers: Answers | None = None,
) -> Suggestion:
    """Guess roles and hierarchies from the data, as a policy to be read and edited.

    Args:
        source: as for `anonymize`.
        preset: a name from `docs/presets.md`.
        reading: how a file is to be read.
        tried: try policies on the table and choose one that keeps detail; each is remembered as a look at it.
        answers: who gets the data, what they may know and what they need, which decide preset, methods and `tried`.
    """
    from maskwright.engines.readers.csv_files import found_reading
    from maskwright.suggest import suggest_for_table

    engine = open_engine()
    reading = reading or Reading()
    try:
        name = Path(source).name if isinstance(source, (str, Path)) else "the table"
        reading = found_reading(source, reading)
        table, tried_on = engine.open(source, reading), source if tried else None
        return suggest_for_table(
            engine, table, preset=preset, name=name, reading=reading, source=tried_on, answers=answers
        )
    finally:
        engine.close()


def policy_schema() -> dict[str, Any]:
    """The JSON schema of a policy file, for editors: every model and method with its own settings."""
    schema = Policy.model_json_schema(by_alias=True)
    definitions = schema.setdefault("$defs", {})
    properties = schema["properties"]
    properties["require"]["items"] = {"oneOf": [_choice(definitions, "model", c) for c in MODELS.values()]}
    properties["method"] = {
        "oneOf": [{"enum": sorted(METHODS)}, *(_choice(definitions, "name", c) for c in METHODS.values())]
    }
    columns = properties["columns"]["additionalProperties"]
    roles = {"enum": ["identifier", "quasi-identifier", "sensitive", "insensitive"]}
    properties["columns"]["additionalProperties"] = {"anyOf": [roles, columns]}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Maskwright policy"
    return schema


def _choice(definitions: dict[str, Any], key: str, cls: type[Registered]) -> dict[str, Any]:
    """The settings of one registered thing, with its name as a fixed key."""
    part = cls.model_json_schema(by_alias=True)
    definitions.update(part.pop("$defs", {}))
    part["properties"] = {key: {"const": cls.name}, **part.get("properties", {})}
    part["required"] = [key, *part.get("required", [])]
    part["description"] = cls.summary_line()
    return part
