"""What all experiments share: the data, the papers' hierarchies, preparing a table once, and leaving results."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from maskwright.domain.method import Task
from maskwright.pipeline.job import Job
from maskwright.pipeline.session import prepared_run
from maskwright.policy.policy import Policy
from maskwright.report.charts import Chart

HERE = Path(__file__).parent
ADULT = HERE / "data" / "adult_uci.parquet"
PAPERS = HERE.parent / "docs" / "papers"

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be decided"]


@dataclass(frozen=True)
class Outcome:
    """What one experiment found.

    Attributes:
        rows: the figure's numbers, one mapping per line of the CSV.
        charts: pictures by name ("" for the only one).
        found: our figure in one or two sentences.
        verdict: does the printed claim hold?
        differs: what differs from the paper's setting, and why.
    """

    rows: Sequence[Mapping[str, Any]]
    charts: Mapping[str, Chart]
    found: str
    verdict: Verdict
    differs: str = ""


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper.

    Attributes:
        name: of its files, e.g. "martin-fig5".
        paper: the short title, as in the docs.
        where: "Figure 5".
        claim: what is printed, in our words.
        run: computes it; `quick` takes fewer repetitions and points.
        again: recomputes a few rows of the committed CSV exactly or within a tolerance (for the tests);
            None where every row is random.
        quick: why the quick version finds another verdict; empty: it finds the same (a test compares).
    """

    name: str
    paper: str
    where: str
    claim: str
    run: Callable[[bool], Outcome]
    again: Callable[[], Sequence[Mapping[str, Any]]] | None = None
    quick: str = ""


@dataclass
class Done:
    """What is remembered of a run, for the pages."""

    name: str
    paper: str
    where: str
    claim: str
    found: str
    verdict: Verdict
    differs: str
    seconds: float
    pictures: list[str] = field(default_factory=list)
    quick: str = ""


def verdict_of(claims: Collection[bool], possible: bool = True) -> Verdict:
    """Whether all, some or none of several claims hold; none where our own figures cannot be."""
    if not possible or not any(claims):
        return "does not hold"
    return "holds" if all(claims) else "holds in part"


def leave(experiment: Experiment, quick: bool, folder: Path) -> Done:
    """Run one experiment and write its CSV, pictures and record."""
    begin = time.perf_counter()
    outcome = experiment.run(quick)
    seconds = time.perf_counter() - begin
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / f"{experiment.name}.csv", outcome.rows)
    pictures = []
    for part, chart in outcome.charts.items():
        pictures.append(f"{experiment.name}{'-' if part else ''}{part}.svg")
        (folder / pictures[-1]).write_text(chart.file(), encoding="utf-8")
    done = Done(
        experiment.name, experiment.paper, experiment.where, experiment.claim, outcome.found, outcome.verdict,
        outcome.differs, round(seconds, 1), pictures, experiment.quick,
    )  # fmt: skip
    (folder / f"{experiment.name}.json").write_text(
        json.dumps(asdict(done), indent=1) + "\n", encoding="utf-8"
    )
    return done


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: shown(v) for k, v in row.items()} for row in rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shown(value: Any) -> Any:
    """Floats with six digits: more would only be noise in a diff."""
    return f"{value:.6g}" if isinstance(value, float) else value


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and its standard error."""
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return mean, 0.0
    return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)


def median_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """The median, and half the distance between the quartiles: for times, which have outliers."""
    if len(values) < 2:
        return values[0], 0.0
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, (high - low) / 2


@contextmanager
def task(
    columns: Mapping[str, Any],
    source: Any = ADULT,
    seed: int = 0,
    require: Sequence[Mapping[str, Any]] = ({"model": "k-anonymity", "k": 2},),
    method: Any = "optimal-lattice",
) -> Iterator[Task]:
    """A table read and summarised, ready for any method: what `anonymize` hands to one.

    Random choices come from numpy's generator, so that a figure does not change with the source of chance of releases.
    """
    policy = Policy.load({"version": 1, "columns": dict(columns), "require": list(require), "method": method})
    with prepared_run(Job(source, policy, seed=seed)) as ready:
        secret = hashlib.sha256(f"maskwright seed {seed}".encode()).digest()
        entropy = int.from_bytes(hashlib.sha256(secret + b"method").digest())
        yield replace(ready.task, rng=np.random.default_rng(entropy))
