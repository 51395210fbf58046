"""The solution space: every minimal choice of levels under a policy, with what it risks and what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Beliefs
from maskwright.domain.model import Need
from maskwright.domain.references import furnished_classes
from maskwright.domain.verdict import Measured, Verdict, plain_number
from maskwright.errors import DestinationError
from maskwright.metrics import METRICS
from maskwright.pipeline import history
from maskwright.pipeline.attacking import ADVERSARIES, attack_target
from maskwright.pipeline.job import Job
from maskwright.pipeline.session import Prepared, node_options, prepared_run
from maskwright.runtime.events import Event, Progress

if TYPE_CHECKING:
    from maskwright.methods._lattice.nodes import MinimalNode

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


def explore_choices(
    job: Job,
    most: int = 200,
    on_event: Callable[[Event], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[list[Choice], int]:
    """The `most` best minimal choices, measured; and how many there are. Nothing is published."""
    from maskwright.methods._lattice.minimal_nodes import minimal_nodes

    progress = Progress(on_event, cancelled)
    options = node_options(job.policy)
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
    needs = frozenset[Need]().union(*(model.needs() for model in resolved.models))
    classes = furnished_classes(grouping, needs, task.census)
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
