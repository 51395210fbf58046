"""Feed inputs from the command line: `python -m tests.fuzz.run csv parquet --inputs 10000 --seed 1`.

Prints one line per target, and every kind of finding once, with the number that repeats it (`--show target number`).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.fuzz.custody import Commands, Custody
from tests.fuzz.frames import Damaged, Frames
from tests.fuzz.harness import Report, Target, run
from tests.fuzz.pipeline import FirstLooks, Identifiers, Releases, Statements
from tests.fuzz.policies import HierarchyFiles, Policies, Settings
from tests.fuzz.queries import Workloads
from tests.fuzz.tables import CsvFiles, ParquetFiles
from tests.fuzz.workbench import Requests

TARGETS: dict[str, type[Target]] = {
    target.name: target
    for target in (
        Policies,
        Settings,
        HierarchyFiles,
        CsvFiles,
        ParquetFiles,
        Damaged,
        Frames,
        Statements,
        FirstLooks,
        Identifiers,
        Releases,
        Custody,
        Commands,
        Requests,
        Workloads,
    )
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), choices=[*TARGETS, []])
    parser.add_argument("--inputs", type=int, default=1_000, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--log", type=Path, help="a file to which the state is written after each child")
    parser.add_argument(
        "--show", type=int, metavar="NUMBER", help="print this input of the target, and feed it"
    )
    options = parser.parse_args(arguments)
    bad = 0
    for name in options.targets:
        if options.show is not None:
            print(repr(TARGETS[name]().input(options.seed, options.show)))
            options.first, options.inputs = options.show, 1
        report = run(
            TARGETS[name](), options.inputs, options.seed, options.first, lambda r: log(options.log, r)
        )
        print(report.line(), dict(report.refused))
        for text in kinds(report):
            print(text)
        bad += len(report.findings)
    return 1 if bad else 0


def kinds(report: Report) -> list[str]:
    """Each kind of finding once: findings that end alike are of one kind."""
    seen: dict[str, list[dict[str, object]]] = {}
    for finding in report.findings:
        seen.setdefault(str(finding["what"])[-100:], []).append(finding)
    return [f"--- {len(all_)} ×, number {all_[0]['number']}: {all_[0]['what']}" for all_ in seen.values()]


def log(path: Path | None, report: Report) -> None:
    if path is not None:
        path.write_text(report.line() + "\n" + json.dumps(report.findings, indent=1), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
