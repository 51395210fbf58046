"""What statistical offices need, at its largest: microaggregation, individual risk, estimates for the population.

    python benchmarks/bench_survey.py

MDAV on 100,000 rows of 10 columns, k = 3 (60 s at most); the individual risk of a million rows, each in a class of its
own size (2 s); all estimators of population uniques together, on a sample of 400,000 classes (1 s). CPU seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from maskwright.perturb.microaggregation import mdav_groups
from maskwright.population.estimates import SampleCounts, uniqueness_estimates
from maskwright.population.individual import individual_risks


def measured(work: Callable[[], object]) -> float:
    """The CPU seconds that something takes."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main() -> int:
    rng = np.random.default_rng(6)
    points = rng.normal(size=(100_000, 10))
    f = rng.geometric(0.05, 1_000_000)
    weights = f / rng.uniform(1e-4, 1, len(f))
    sizes = np.minimum(rng.zipf(1.6, 400_000), 20_000)
    counts = SampleCounts.of(sizes, 10 * int(sizes.sum()))
    missed = 0
    for name, limit, work in (
        ("individual risk of 1,000,000 rows", 2, lambda: individual_risks(f, weights)),
        ("Pitman, Zayatz and SNB of 400,000 classes", 1, lambda: uniqueness_estimates(counts)),
        ("MDAV of 100,000 rows of 10 columns, k = 3", 60, lambda: mdav_groups(points, 3)),
    ):
        seconds = measured(work)
        missed += seconds > limit
        print(f"{name:45} {seconds:6.2f} s of {limit} s{'  MISSED' if seconds > limit else ''}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
