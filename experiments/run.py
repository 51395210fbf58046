"""Run the experiments: `python -m experiments.run [--quick] [--only NAME] [--out FOLDER]`.

Without `--out` the results go to docs/papers/, where they are committed, and the pages are written anew.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from pathlib import Path

from experiments.common import PAPERS, Done, Experiment, leave
from experiments.pages import write_pages

MODULES = (
    "codip", "cormode", "cormode_closeness", "cormode_queries", "martin", "truta", "wong_attack", "wong_mask",
)  # fmt: skip


def experiments() -> list[Experiment]:
    """All of them, paper by paper."""
    return [e for name in MODULES for e in import_module(f"experiments.{name}").EXPERIMENTS]


def one(name: str, quick: bool, folder: Path) -> Done:
    return leave(next(e for e in experiments() if e.name == name), quick, folder)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and points")
    parser.add_argument("--only", action="append", help="run only these (their names, or how they begin)")
    parser.add_argument("--out", type=Path, help="another folder for the results")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    chosen = parser.parse_args(arguments)
    if chosen.quick and chosen.out is None:
        parser.error("--quick needs --out: docs/papers/ holds the full results")
    folder = chosen.out or PAPERS
    names = [e.name for e in experiments()]
    if chosen.only:
        names = [n for n in names if any(n.startswith(o) for o in chosen.only)]
        if not names:
            parser.error(
                f"no experiment is called {chosen.only[0]!r}; there are {', '.join(e.name for e in experiments())}"
            )
    with ProcessPoolExecutor(chosen.jobs) as pool:
        waiting = [pool.submit(one, name, chosen.quick, folder) for name in names]
        for future in as_completed(waiting):
            done = future.result()
            print(f"{done.name}  {done.seconds:.0f} s  {done.verdict}: {done.found}", flush=True)
    write_pages(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
