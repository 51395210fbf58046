"""Trials: what other policies, or other levels under one policy, would risk and keep; nothing is published."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Beliefs
from maskwright.domain.references import furnished_classes
from maskwright.domain.release import Release
from maskwright.domain.verdict import Measured, Verdict, plain_number
from maskwright.errors import DestinationError
from maskwright.metrics import METRICS
from maskwright.pipeline import history
from maskwright.pipeline.attacking import ADVERSARIES, attack_target
from maskwright.pipeline.job import Job, engine_of
from maskwright.pipeline.parts import needs_of
from maskwright.pipeline.publish import Run
from maskwright.pipeline.session import Prepared, prepared_run
from maskwright.policy.binding import reading_options
from maskwright.policy.policy import Policy
from maskwright.runtime import disk
from maskwright.runtime.events import Event, Progress
from maskwright.runtime.memory_budget import MemoryBudget

if TYPE_CHECKING:
    from maskwright.methods._lattice.nodes import MinimalNode


class Trials:
    """Several policies on one table, nothing published: policies that read the same columns share one summary."""

    def __init__(
        self,
        job: Job,
        on_event: Callable[[Event], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self.job = replace(job, destination=None, trial=True)
        self.on_event, self.cancelled = on_event, cancelled
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
        progress = Progress(self.on_event, self.cancelled)
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
                model.check(part.classes, part.piece.task.context),
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
    return json.dumps(
        [str(policy.folder.resolve()), {k: policy.to_dict().get(k) for k in parts}], default=str
    )


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
    known = ("objective", "suppression", "suppress", "suppressed_rows")
    return {k: v for k, v in policy.method.parameters.items() if k in known}


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
    target = Target(
        grouping, resolved.models, method, task.context, task.census, weights=task.weights, levels=task.levels
    )
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
