"""A job: what to publish, under which policy, and where to."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from maskwright.addresses import without_passwords
from maskwright.attacks import ATTACKS
from maskwright.domain.settings import did_you_mean
from maskwright.engines import engine_for, open_engine
from maskwright.engines.base import Engine
from maskwright.engines.readers.postgres import Postgres
from maskwright.errors import UsageError
from maskwright.metrics import METRICS
from maskwright.policy.policy import Policy
from maskwright.runtime.memory_budget import MemoryBudget

if TYPE_CHECKING:
    from maskwright.pipeline.sequence import Sequel

KeepPrivate = Literal["all", "report", "none"]  # of what a release keeps for its publisher


@dataclass(frozen=True)
class Job:
    """One run: what to publish, under which policy, and where to."""

    source: Any
    policy: Policy
    destination: Path | None = None
    overwrite: bool = False
    seed: int | None = None
    memory: str | None = None
    engine: str | None = None  # None: the one that the source belongs to
    master: str | None = None
    keep_private: KeepPrivate = "all"
    attacks: tuple[str, ...] = tuple(ATTACKS)
    into: Postgres | None = None
    metrics: tuple[str, ...] = ()  # the costly ones that are wanted too
    trial: bool = False  # only to compare: nothing will be published
    coarsen: Literal["auto"] | None = None  # what would not fit, before rows are grouped
    command: str | None = None  # that makes the release again; None: `maskwright anonymize`
    after: Path | None = None  # the release that this one follows in a sequence
    sequel: Sequel | None = None  # its place in that sequence, with the source as it is to be published

    @property
    def named_source(self) -> Any:
        """The source as it was given."""
        return self.source if self.sequel is None else self.sequel.source

    def __post_init__(self) -> None:
        MemoryBudget.of(self.memory)  # refused before anything is opened
        if self.coarsen not in (None, "auto"):
            raise UsageError(f"coarsen: {self.coarsen!r} is not known; write 'auto', or leave it out")
        if self.coarsen and self.after is not None:
            raise UsageError(
                "coarsen: a release that follows another one has its levels: name them in the policy, "
                "columns: {zip: {finest: 1}}"
            )


def input_files(source: Any, *policies: Policy) -> list[Path]:
    """The files that are read: the table (of a folder, also what is in it), policies, hierarchies, populations."""
    found = [path for policy in policies for path in policy.inputs]
    if isinstance(source, (str, Path)):
        table = Path(re.sub("^file:/+", "/", str(source)))
        folder = os.path.isdir(table)  # noqa: PTH112 - Path raises where a name is too long
        found += [table, *(table.iterdir() if folder else ())]
    return found


def engine_of(job: Job, spill: Path | None = None) -> Engine:
    """The engine that a job asks for, or that its source belongs to."""
    name = job.engine or engine_for(job.source)
    if name == "spark" and job.into is not None:
        raise UsageError("a release is written to a database by the DuckDB engine, not by Spark")
    memory = job.memory if name == "spark" else None  # DuckDB gets its part of the budget
    return open_engine(name, memory=memory, temp=spill, master=job.master)


def metrics_named(names: Sequence[str]) -> tuple[str, ...]:
    """Metrics by name; a name that is none is refused."""
    for name in names:
        if name not in METRICS:
            raise UsageError(f"there is no metric {name!r}; {did_you_mean(name, METRICS)}")
    return tuple(names)


def name_of(source: Any) -> str:
    """The name of a table for messages: a file's name, a database's address, or the type of a frame."""
    if isinstance(source, Postgres):
        return str(source)
    return (
        Path(without_passwords(str(source))).name
        if isinstance(source, (str, Path))
        else type(source).__name__
    )


def command_of(job: Job) -> str:
    """The command that makes the release again; the policy is kept beside the report."""
    if job.command is not None:
        return job.command
    seed = f" --seed {job.seed}" if job.seed is not None else ""
    engine = f" --engine {job.engine}" if job.engine is not None else ""
    after = "" if job.after is None else f" --after {job.after.name}"
    return f"maskwright anonymize {name_of(job.named_source)} -p policy.yaml -o release{after}{engine}{seed}"
