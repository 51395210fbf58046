"""Maximum disclosure of a million buckets, and of the same after a few of them change.

    python benchmarks/bench_disclosure.py [buckets]

CPU seconds, the best of three. "float scan": reading all counts once, the physical limit of any method.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from experiments.live_disclosure import LiveDisclosure
from maskwright.domain.classes import ValueCounts
from maskwright.kernels import max_disclosure as kernel
from maskwright.kernels.max_disclosure import max_disclosure


def cpu(work: Callable[[], object], repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def drawn(buckets: int, values: int, rng: np.random.Generator) -> ValueCounts:
    """25 to 49 people each, values drawn uniformly."""
    sizes = rng.integers(25, 50, buckets)
    owner = np.repeat(np.arange(buckets), sizes)
    codes = rng.integers(1, values + 1, len(owner))
    ones = np.ones(len(owner), np.int64)
    return ValueCounts.collect(tuple(map(str, range(values))), buckets, owner, codes, ones)


def full(table: np.ndarray) -> ValueCounts:
    buckets, width = table.shape
    codes = np.tile(np.arange(1, width + 1, dtype=np.int32), buckets)
    return ValueCounts(
        tuple(map(str, range(width))), np.arange(0, table.size + 1, width), codes, table.ravel()
    )


def tied(buckets: int, rng: np.random.Generator) -> ValueCounts:
    """Equal size and top count, all tails different: every bucket is a candidate for the worst."""
    tails = rng.integers(50, 90, (buckets, 20))
    return full(np.column_stack([np.full(buckets, 2000), tails, 2000 - tails.sum(axis=1)]).astype(np.int64))


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rng = np.random.default_rng(1)
    tables = {
        "drawn": drawn(n, 60, rng),
        "large": full(rng.integers(50, 1000, (n, 20)).astype(np.int64)),
        "tied": tied(n, rng),
    }
    print(f"{n} buckets; CPU seconds")
    print(f"{'table':8} {'k':>3} {'compiled':>9} {'numpy':>7} {'float scan':>11}  disclosure")
    for name, counts in tables.items():
        for k in (4, 8, 12):
            compiled = cpu(lambda c=counts, k=k: max_disclosure(c, k)) if kernel.compiled else float("nan")
            twin = cpu(lambda c=counts, k=k: max_disclosure(c, k, None), 1)
            scan = cpu(lambda c=counts: np.add.reduceat(c.counts, c.start[:-1]))
            belief = float(max_disclosure(counts, k).implications[k])
            print(f"{name:8} {k:3} {compiled:9.2f} {twin:7.2f} {scan:11.3f}  {belief:.4f}")
    start = time.process_time()
    live = LiveDisclosure(tables["drawn"], 12)
    print(f"live, k = 12: built in {time.process_time() - start:.2f} s", end="; ")
    start = time.process_time()
    for i in range(100):
        live.merge([2 * i, 2 * i + 1])
        live.disclosure()
    print(f"one merge and the new answer {(time.process_time() - start) * 10:.2f} ms", end="; ")
    start = time.process_time()
    for i in range(20):
        worst = [bucket for bucket, _ in live.disclosure().plans[12]]
        live.merge([*worst, 1000 + i])
        live.disclosure()
    print(f"of the worst bucket {(time.process_time() - start) * 50:.2f} ms")


if __name__ == "__main__":
    main()
