"""What if: what other policies, or other levels under one policy, would risk and keep; nothing is published.

For the report of a release the search is run again with the next usual k (or l) below and above, on the summary that is
at hand, as long as that stays a small part of the time that the release took. No random choice of the release depends
on it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Beliefs
from maskwright.domain.grouping import Grouping, exact_view
from maskwright.domain.method import Method, Part, Task
from maskwright.domain.model import Model
from maskwright.domain.references import References, furnished_classes
from maskwright.domain.release import Release
from maskwright.domain.verdict import Measured, Verdict, plain_number
from maskwright.errors import Cancelled, DestinationError, MaskwrightError, PolicyNotMet
from maskwright.metrics import METRICS
from maskwright.metrics.loss import information_loss
from maskwright.pipeline import history
from maskwright.pipeline.attacking import ADVERSARIES, attack_target
from maskwright.pipeline.job import Job, engine_of
from maskwright.pipeline.parts import needs_of
from maskwright.pipeline.publish import Run
from maskwright.pipeline.session import Prepared, prepared_run
from maskwright.policy.binding import method_of, reading_options
from maskwright.policy.policy import Policy
from maskwright.report.search import NearbySettings, OtherSetting
from maskwright.runtime import disk
from maskwright.runtime.events import Event, Progress
from maskwright.runtime.memory_budget import MemoryBudget
from maskwright.runtime.time_budget import TimeBudget

if TYPE_CHECKING:
    from maskwright.methods._lattice.nodes import MinimalNode


class Trials:
    """Several policies on one table, nothing published: policies that read the same columns share one summary."""

    def __init__(
        self,
        job: Job,
        on_event: Callable[[Event], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        on_work: Callable[[float], None] | None = None,
    ) -> None:
        self.job = replace(job, destination=None, trial=True)
        self.on_event, self.cancelled, self.on_work = on_event, cancelled, on_work
        self._open: dict[str, tuple[Run, Prepared]] = {}

    def fingerprint(self, policy: Policy) -> str:
        """Of the input, read as this policy says."""
        engine = engine_of(self.job)
        try:
            engine.allow(MemoryBudget.of(self.job.memory).engine())
            return engine.fingerprint(engine.open(self.job.source, reading_options(policy)))
        finally:
            engine.close()

    def release(self, policy: Policy) -> Release:
        """The release that this policy would give, without its tables; raises what `publish_release` would raise.

        Measured on the grouping: there is no table to recount. A release that is made later is recounted then.
        """
        job = replace(self.job, policy=policy)
        progress = Progress(self.on_event, self.cancelled, self.on_work)
        key = _read_alike(policy)
        if key not in self._open:
            first = Run(job, progress, disk.scratch_folder())
            try:
                self._open[key] = first, first.prepare()
            except BaseException:
                first.close()
                raise
            this, prepared = self._open[key]
        else:
            this, prepared = self._open[key]
            this = Run(job, progress, this.spill, this.engine)
            prepared = this.again(prepared)
        made = this.make(prepared)
        verdicts = tuple(
            replace(
                model.check(part.classes, part.task.context),
                part=part.name if len(made.parts) > 1 else None,
            )
            for part in made.parts
            for model in part.models
        )
        release = this.finish(made, verdicts, {}, {layout.name: None for layout in made.layouts})
        prepared.check_input()
        return release

    def close(self) -> None:
        """Close every session that is still open."""
        for this, _ in self._open.values():
            this.close()
        self._open.clear()


def _read_alike(policy: Policy) -> str:
    """Equal for policies under which a table is read and summarised alike."""
    parts = ("input", "missing", "prepare", "unit", "population", "weight", "household", "columns")
    alone = method_of(policy).privacy() is not None  # labels are made from each value alone
    return json.dumps(
        [str(policy.folder.resolve()), alone, {k: policy.to_dict().get(k) for k in parts}], default=str
    )


NODE_OPTIONS = (
    "objective",
    "suppression",
    "suppress",
    "suppressed_rows",
)  # of a method: what a node is worth
# The attacks that look at classes alone: exact, and fast enough to be run on every choice.
ATTACKS = ("linkage", "homogeneity")


@dataclass(frozen=True, eq=False)
class Choice:
    """A minimal node, measured on the grouping it makes.

    Attributes:
        node: its levels, height, suppressed rows and score.
        classes: how many classes there would be.
        metrics: usefulness, by name.
        beliefs: what the attacks on classes lead to.
        verdicts: of all requirements, the gates included.
    """

    node: MinimalNode
    classes: int
    metrics: dict[str, Measured]
    beliefs: tuple[Beliefs, ...]
    verdicts: tuple[Verdict, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "levels": self.node.names,
            "height": self.node.height,
            "suppressed": self.node.suppressed,
            "score": plain_number(self.node.score),
            "classes": self.classes,
            "metrics": {name: plain_number(value) for name, value in self.metrics.items()},
            "beliefs": [b.as_dict() for b in self.beliefs],
            "verdicts": [v.as_dict() for v in self.verdicts],
        }


def minimal_choices(job: Job, on_event: Callable[[Event], None] | None = None) -> list[MinimalNode]:
    """Every minimal node of a policy with a full-domain method, best first; nothing is published."""
    from maskwright.methods._lattice.minimal_nodes import minimal_nodes

    with prepared_run(job, on_event) as ready:
        with suppress(DestinationError):  # the levels that a search finds are an outcome too
            history.record_outcome(ready.fingerprint, history.policy_hash(job.policy), "run")
        return minimal_nodes(ready.task, **_node_options(job.policy))


def _node_options(policy: Policy) -> dict[str, Any]:
    """The settings of a policy's method that say what a node is worth."""
    return {k: v for k, v in policy.method.parameters.items() if k in NODE_OPTIONS}


def explore_choices(
    job: Job,
    most: int = 200,
    on_event: Callable[[Event], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[list[Choice], int]:
    """The `most` best minimal choices, measured; and how many there are. Nothing is published."""
    from maskwright.methods._lattice.minimal_nodes import minimal_nodes

    progress = Progress(on_event, cancelled)
    options = _node_options(job.policy)
    with prepared_run(job, on_event, cancelled) as ready:
        # whatever is published afterwards may have been chosen by what is seen here
        with suppress(DestinationError):
            history.record_outcome(ready.fingerprint, history.policy_hash(job.policy), "compared")
        progress.step("listing the minimal choices")
        nodes = minimal_nodes(ready.task, **options)
        progress.step("measuring them")
        chosen = []
        for i, node in enumerate(nodes[:most]):
            progress.share(i / min(most, len(nodes)), f"{i} of {min(most, len(nodes))} choices measured")
            chosen.append(_measured(ready, node, options))
        return chosen, len(nodes)


def _measured(ready: Prepared, node: MinimalNode, options: dict[str, Any]) -> Choice:
    from maskwright.methods.optimal_lattice import OptimalLattice

    resolved, task = ready.resolved, ready.task
    names = [h.attribute for h in task.summary.attributes]
    levels = {name: [level] for name, level in zip(names, node.levels, strict=True)}
    method = OptimalLattice(**options)
    grouping = method.group(replace(task, levels=levels))
    target = Target.of(Part("data", task, method, grouping, resolved.models))
    classes = furnished_classes(grouping, needs_of(resolved.models), task.census)
    measured = {
        name: m.measure(grouping, resolved.weights) for name, m in METRICS.items() if not m.on_request
    }
    return Choice(
        node,
        grouping.classes.n,
        {name: value for name, value in measured.items() if value == value},
        tuple(attack_target(target, ATTACKS, ADVERSARIES["neighbour"])),
        tuple(model.check(classes, task.context) for model in resolved.models),
    )


USUAL = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
SHARE = 0.2  # of the time spent so far
AT_LEAST_S = 0.5  # what the searches of a small table may take in any case
SMALL_LATTICE = 2_000  # nodes; the minimal ones of a larger lattice take longer than the release


def try_nearby_settings(parts: Sequence[Part], exact: bool, timings: Mapping[str, float]) -> NearbySettings:
    """Search again with other settings, within a small part of the time the release took."""
    if len(parts) != 1:
        return NearbySettings(
            note="Not looked at for a release of several tables: run it with another setting to see."
        )
    made, task = parts[0], parts[0].task
    clock = TimeBudget(max(AT_LEAST_S, SHARE * sum(timings.values())), time.perf_counter)
    one = timings.get("searching", 0.0)
    settings = nearby_settings(task)
    if not settings:
        return NearbySettings((), _minimal_of(made, clock), "The search has no k or l that could be varied.")
    if one * len(settings) > clock.seconds:
        seconds = f"{one:.0f} s" if one >= 1.5 else f"{one:.1f} s"
        which = " and ".join(name for name, _ in settings)
        note = f"Not looked at: for {which}, each takes another search of about {seconds}. Run it with that setting"
        return NearbySettings((), None, f"{note} in the policy and another output folder.")
    others = [_describe(made.grouping, replace(task, gates=()), exact, f"{_setting(task)} (this release)")]
    for name, search in settings:
        others.append(_tried(made.method, replace(task, search=search), exact, name, clock))
    return NearbySettings(others, _minimal_of(made, clock), "")


def nearby_settings(task: Task) -> list[tuple[str, list[Model]]]:
    """The next looser and the next stricter setting: (in words, the models of the search)."""
    name, value = _varied(task)
    if name is None:
        return []
    if name == "k":
        below = [u for u in USUAL if u < value][-1:]
        above = [u for u in USUAL if u > value][:1]
    else:
        below, above = [value - 1] if value > 2 else [], [value + 1]
    return [
        (f"{name} = {u}", [_changed(m, task, name, value, u) for m in task.search]) for u in (*below, *above)
    ]


def _setting(task: Task) -> str:
    name, value = _varied(task)
    return f"{name} = {value}"


def _varied(task: Task) -> tuple[str | None, int]:
    """The parameter that is varied: the k that classes must reach, or else an l."""
    sizes = [m.least_size(task.context) for m in task.search if _whole(m, "k") == m.least_size(task.context)]
    if max(sizes, default=1) > 1:
        return "k", max(sizes)
    values = [v for m in task.search if (v := _whole(m, "l"))]
    return ("l", max(values)) if values else (None, 0)


def _whole(model: Model, name: str) -> int | None:
    value = getattr(model, name, None)
    return int(value) if isinstance(value, (int, Fraction)) and value == int(value) else None


def _changed(model: Model, task: Task, name: str, value: int, to: int) -> Model:
    if _whole(model, name) != value or (name == "k" and model.least_size(task.context) != value):
        return model
    return model.model_copy(update={name: type(getattr(model, name))(to)})


def _within(clock: TimeBudget, outer: Progress) -> Progress:
    """Silent, and stopped when the time is over or the user says so."""

    def cancelled() -> bool:
        """Is the time over? Raises where the run itself was cancelled."""
        outer.check()
        return clock.is_over

    return Progress(None, cancelled)


def _quietly(task: Task, clock: TimeBudget) -> Task:
    # a fixed seed: nothing of this is published, and a report should be repeatable
    return replace(task, progress=_within(clock, task.progress), rng=np.random.default_rng(0))


def _tried(method: Method, task: Task, exact: bool, setting: str, clock: TimeBudget) -> OtherSetting:
    quiet = _quietly(task, clock)
    try:
        quiet.progress.check()
        return _describe(method.group(quiet), task, exact, setting)
    except Cancelled:
        task.progress.check()  # the user wants to stop, not the clock
        return OtherSetting(setting, refused="not looked at: the search took too long for a report")
    except PolicyNotMet:
        return OtherSetting(setting, refused="no release satisfies it")
    except MaskwrightError as problem:
        return OtherSetting(setting, refused=str(problem))


def _describe(found: Grouping, task: Task, exact: bool, setting: str) -> OtherSetting:
    shown = exact_view(found) if exact else found
    classes, references = found.published_classes, References.of(found, task.context)
    failing = [m.name for m in task.gates if not m.needs() and not references.check(m, classes).ok]
    refused = f"refused by the gate {' and '.join(failing)}" if failing else ""
    loss = information_loss(shown, task.weights)
    return OtherSetting(setting, loss, found.published_rows, found.classes.n, refused)


def _minimal_of(made: Part, clock: TimeBudget) -> list[MinimalNode] | None:
    """Every minimal choice of levels, where the lattice is small."""
    nodes, method, task = made.grouping.trace.nodes, made.method, made.task
    if not method.whole_columns or nodes is None or nodes > SMALL_LATTICE or clock.is_over:
        return None
    from maskwright.methods._lattice.minimal_nodes import minimal_nodes

    options = {k: v for k, v in method.options().items() if k in NODE_OPTIONS}
    try:
        return minimal_nodes(_quietly(task, clock), **options)
    except Cancelled:
        task.progress.check()
        return None
