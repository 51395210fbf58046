"""Attempts: policies tried within a time budget, on a sample where the table is large; nothing is published.

`init` chooses its policy by them, and a refusal comes with what else would do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from maskwright.domain.release import Release
from maskwright.errors import Cancelled, InputError, NotVerified, PolicyError, PolicyNotMet, UsageError
from maskwright.metrics.loss import attribute_losses
from maskwright.pipeline import history
from maskwright.pipeline.job import Job, engine_of
from maskwright.pipeline.trials import Trials
from maskwright.policy.binding import reading_options
from maskwright.policy.policy import Policy
from maskwright.runtime.memory_budget import MemoryBudget

SAMPLED = 20_000  # rows: of a larger table so many are drawn for attempts
BUDGET_S = 20.0  # of processor time for all attempts on a table


@dataclass(frozen=True, eq=False)
class Attempt:
    """A policy that was tried on a table, or on a sample of it, and what came of it.

    Attributes:
        policy: can be run as it is.
        change: how it differs from what was asked for first, in words.
        asks_less: it gives up some of the protection that was asked for.
        loss: the information loss; None: no release satisfies the policy, or the time was up.
        drawbacks: of what little is left, in sentences.
        published: the share of the rows.
        worst_columns: quasi-identifiers by what is lost of them, the most first.
        refusal: why there is no release.
    """

    policy: Policy
    change: str
    asks_less: bool = False
    loss: Fraction | None = None
    drawbacks: tuple[str, ...] = ()
    published: Fraction = Fraction(0)
    worst_columns: tuple[tuple[str, Fraction], ...] = ()
    refusal: str = ""

    @property
    def useful(self) -> bool:
        """Whether a release could be made that leaves something of every column, and half of the detail."""
        return self.loss is not None and not self.drawbacks

    @property
    def kept(self) -> str:
        """What is kept of the detail of the quasi-identifiers, for people."""
        return "" if self.loss is None else f"{100 * (1 - float(self.loss)):.0f} %"

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with the whole policy."""
        return {
            "change": self.change,
            "asks_less": self.asks_less,
            "information_loss": None if self.loss is None else str(self.loss),
            "kept": self.kept,
            "published": str(self.published),
            "drawbacks": list(self.drawbacks),
            "policy": self.policy.to_dict(),
        }


class Attempts:
    """Policies tried one after the other within a time budget, on a sample where the table is large.

    Each is a look at the input, and is remembered as one. Classes are measured and nothing is attacked, unless the
    policy bounds a belief. Only the DuckDB engine can draw a sample, so that Spark tables are not tried.
    """

    def __init__(
        self, job: Job, cancelled: Callable[[], bool] | None = None, budget_s: float = BUDGET_S
    ) -> None:
        self.begin, self.budget_s, self.stopped = time.process_time(), budget_s, cancelled
        self.rows, self.sampled, self.fingerprint, self.tried = 0, 0, "", list[Attempt]()
        job = replace(job, attacks=(), metrics=(), destination=None, into=None, overwrite=False)
        self.trials = Trials(self._on_sample(job), cancelled=self._is_over)
        self._until = self.begin + budget_s

    def _on_sample(self, job: Job) -> Job:
        engine = engine_of(job)
        try:
            engine.allow(MemoryBudget.of(job.memory).engine())
            table = engine.open(job.source, reading_options(job.policy))
            self.rows, self.fingerprint = engine.count(table), engine.fingerprint(table)
            if self.rows <= SAMPLED:
                return job
            self.sampled = SAMPLED
            return replace(job, source=engine.sample_table(table, SAMPLED))
        finally:
            engine.close()

    @property
    def seconds(self) -> float:
        """Processor time since the first attempt began."""
        return time.process_time() - self.begin

    @property
    def time_is_up(self) -> bool:
        """Whether no further attempt should begin."""
        return self.seconds >= self.budget_s

    def _is_over(self) -> bool:
        return time.process_time() >= self._until or bool(self.stopped and self.stopped())

    def attempt(
        self, policy: Policy, change: str, asks_less: bool = False, most_s: float | None = None
    ) -> Attempt:
        """Try a policy, for at most so many seconds of processor time."""
        left = self.budget_s - self.seconds
        self._until = time.process_time() + min(left, most_s or left)
        found = Attempt(policy, change, asks_less)
        try:
            found = _measured_attempt(found, self.trials.release(policy))
        except Cancelled:
            if self.stopped and self.stopped():
                raise
            found = replace(found, refusal="not finished in the time for attempts")
        except (PolicyNotMet, NotVerified, PolicyError, InputError, UsageError) as problem:
            found = replace(found, refusal=str(problem))
        if self.sampled:
            history.record_outcome(self.fingerprint, history.policy_hash(policy), "compared")
        self.tried.append(found)
        return found

    def basis(self) -> str:
        """What the attempts were made on, in words."""
        if self.sampled:
            return f"a sample of {self.sampled:,} of the {self.rows:,} rows"
        return f"all {self.rows:,} rows"

    def close(self) -> None:
        """Let go of the tables."""
        self.trials.close()


def _measured_attempt(attempt: Attempt, release: Release) -> Attempt:
    g = release.grouping
    lost = attribute_losses(g)
    return replace(
        attempt,
        loss=Fraction(release.metrics["information-loss"]),
        drawbacks=release.great_losses,
        published=Fraction(g.published_rows, max(1, g.summary.n_rows)),
        worst_columns=tuple(sorted(lost.items(), key=lambda item: -item[1])),
    )
