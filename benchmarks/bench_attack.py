"""The minimality attack: credibility of every class of the paper's release, and counting worlds of very many classes.

    python benchmarks/bench_attack.py          everything
    python benchmarks/bench_attack.py quick    without the release for m = 10, which takes minutes to *make*

The release is that of Wong et al. 2007: Adult, 45,222 rows, eight quasi-identifiers, education as the sensitive column,
of which the 1,566 rows below the 9th grade are the sensitive set; (α,k) by top-down local recoding with α = 1/m, k = 1.
The paper's attack took 173 s (m = 2) and 239 s (m = 10) on its machine. Targets here: under a second for each, and
about a second for 40,000 classes with 100,000 sensitive rows in floats. CPU seconds; making the release is apart.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from experiments.common import ADULT, task
from maskwright.attacks._minimality.local_credibility import local_findings, requirement_of
from maskwright.attacks._shared.secrets import secrets_of
from maskwright.domain.adversary import Target
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.worlds.counting.credibility import credibility_global

HIERARCHIES = Path(__file__).parents[1] / "src" / "maskwright" / "data" / "adult" / "hierarchies"
QI = ["age", "workclass", "marital-status", "occupation", "race", "sex", "native-country", "salary-class"]
LOW = ["Preschool", "1st-4th", "5th-6th", "7th-8th"]


def release(m: int) -> tuple[Target, float]:
    """The release for one m, and the CPU seconds to make it."""
    columns: dict[str, Any] = {
        name: {"role": "quasi-identifier", "hierarchy": {"file": str(HIERARCHIES / f"{name}.csv")}}
        for name in QI
    }
    columns["education"] = "sensitive"
    method = METHODS["alpha-k-local"]()
    model = MODELS["simple-l-diversity"](l=m, attribute="education", sets=[LOW])
    require = [{"model": "simple-l-diversity", "l": m, "attribute": "education", "sets": [LOW]}]
    with task(columns, ADULT, require=require, method="alpha-k-local") as ready:
        before = time.process_time()
        grouping = method.group(ready)
        return Target(grouping, [model], method, ready.context), time.process_time() - before


def credibility(m: int) -> bool:
    target, made = release(m)
    times = []
    for _ in range(3):
        before = time.process_time()
        found, measures = local_findings(target, secrets_of(target), requirement_of(target, 2000))
        times.append(time.process_time() - before)
    problematic = measures["problematic"][0]
    print(
        f"m = {m:2}: {measures['generalised classes']} generalised classes of {target.grouping.classes.n}, "
        f"{measures['original classes in them']} original classes in them, {measures['sampled classes']} sampled; "
        f"{problematic['sensitive_rows']} problematic sensitive rows, worst {float(found[0].belief.after):.3f}"
    )
    print(f"        attack {min(times):.2f} s CPU (making the release: {made:.0f} s)", flush=True)
    return min(times) < 1


def counting() -> bool:
    """40,000 classes that hold 100,000 sensitive rows together."""
    rng = random.Random(1)  # noqa: S311 - made-up class sizes
    sizes = [rng.randint(1, 60) for _ in range(40_000)]
    before = time.process_time()
    found = credibility_global(sizes, 100_000, 2)
    seconds = time.process_time() - before
    if found is None:
        raise ValueError("some class can violate")
    print(
        f"40,000 classes, 100,000 sensitive rows of {sum(sizes):,}: {seconds:.2f} s CPU, {found.sentence()}",
        flush=True,
    )
    return seconds < 2


def main() -> int:
    met = [counting(), credibility(2)]
    if "quick" not in sys.argv[1:]:
        met.append(credibility(10))
    print(f"targets: {'met' if all(met) else 'NOT met'}")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
