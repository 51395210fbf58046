"""Trials: several policies on one table, to compare what they would give; nothing is published."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from maskwright.domain.release import Release
from maskwright.pipeline.job import Job, engine_of
from maskwright.pipeline.publish import Run
from maskwright.pipeline.session import Prepared
from maskwright.policy.binding import reading_options
from maskwright.policy.policy import Policy
from maskwright.runtime import disk
from maskwright.runtime.events import Event, Progress
from maskwright.runtime.memory_budget import MemoryBudget


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
        """What `run` would make under this policy, without its tables; raises what `run` would raise.

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
    parts = ("input", "missing", "unit", "population", "weight", "household", "columns")
    return json.dumps(
        [str(policy.folder.resolve()), {k: policy.to_dict().get(k) for k in parts}], default=str
    )
