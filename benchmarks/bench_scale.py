"""From file to file, beside DuckDB's plain copy of the same file: CPU per step, the ratio, and the peak of memory.

    python benchmarks/bench_scale.py                        1 and 10 million rows, all recodings
    python benchmarks/bench_scale.py --rows 100000000       another number of rows (100 million: 15 GB of disk)
    python benchmarks/bench_scale.py --pass-through         with three columns that pass through, so that rows are read
    python benchmarks/bench_scale.py --format csv           CSV in and out
    python benchmarks/bench_scale.py --fine                 every column drawn by itself: most rows are alone
    python benchmarks/bench_scale.py --few                  the people as they are: as many combinations for any rows
    python benchmarks/bench_scale.py --births               birth date, ZIP, age, 500 occupations: nearly all alone
    python benchmarks/bench_scale.py --tables FOLDER        keep the tables there, and use those that are there
    python benchmarks/bench_scale.py --times 1              no repetitions

Twelve columns: people of the Adult table, drawn with replacement, their age moved by up to two years, in one of 100
regions (eight quasi-identifiers, the occupation is sensitive), and three other columns, which are published with
--pass-through and dropped without. Two threads and a limit of 4 GiB for both. Every line is a process of its own.
"Pipeline" is what the limits are about: reading, summary, search, recoding, writing, verifying; attacks, measures and
the report are listed apart. The last lines show the cost of a row from the first number of rows to the last: what a run
takes beyond one of a thousand rows (the start of Python and of the engine, the questions asked of each column). Up to a
million rows the best of five runs counts (--times). With --few, where rows are all that changes, the cost of a row must
be flat.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.targets import Targets

ADULT = Path(__file__).parents[1] / "src/maskwright/data/adult/adult.csv"
OF_ADULT = {
    "age": "age", "sex": "sex", "race": "race", "marital": "marital-status", "education": "education",
    "country": "native-country", "workclass": "workclass", "occupation": "occupation",
}  # fmt: skip
QUASI = ("age", "region", "sex", "race", "marital", "education", "country", "workclass")
PASSED = ("visits", "cost", "hospital")
CASES = {
    "full-domain": (3, 5),
    "mondrian": (5, 6),
    "bucketized": (6, 7),
}  # limits without and with passing columns
BIRTHS = {
    "full-domain": 5.6,
    "mondrian": 8.4,
    "bucketized": 10.2,
}  # nearly every row is alone: twice the others
MEMORY = "4GiB"
FLAT = 1.3  # the cost of a row from the cheapest number of rows to the dearest
FEW = 1000  # rows of a run that has hardly any
TIMES = 5  # short runs are repeated
AFTER = ("attacking", "measuring usefulness", "trying other settings", "reporting", "putting it in place")


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def drawn(k: int, below: int, power: int = 1) -> str:
    """The k-th number of a row: a hash of its place, so that every run has the same file."""
    return (
        f"CAST(floor({below} * pow(hash(range * 16 + {k}) % 1000000007 / 1000000007.0, {power})) AS INTEGER)"
    )


def make(rows: int, path: Path, fine: bool = False, few: bool = False) -> None:
    """People of the Adult table in regions, as the options say."""
    import duckdb

    with duckdb.connect() as con:
        con.execute("SET threads = 2; SET memory_limit = '4GB'; SET preserve_insertion_order = false")
        con.execute("CREATE TABLE adult AS SELECT * FROM read_csv(?)", [str(ADULT)])
        [(people,)] = con.execute("SELECT count(*) FROM adult").fetchall()
        items = []
        for k, (name, column) in enumerate(OF_ADULT.items()):
            con.execute(f'SET VARIABLE {name} = (SELECT list("{column}") FROM adult)')  # noqa: S608
            items.append(f"getvariable('{name}')[1 + {drawn(6 + k if fine else 0, people)}] AS {name}")
        if few:
            items.insert(1, "10000 AS region")
        else:
            items[0] = items[0].replace(" AS age", f" + {drawn(1, 5)} - 2 AS age")
            items.insert(1, f"10000 + 100 * {drawn(2, 100, 2)} AS region")
        items += [f"{drawn(3, 20, 3)} AS visits", f"{drawn(4, 100_000, 4)} AS cost"]
        items.append(f"'hospital ' || {drawn(5, 50)} AS hospital")
        query = f"SELECT {', '.join(items)} FROM range({rows})"  # noqa: S608
        con.execute(f"COPY ({query}) TO '{path}' ({kind(path)})")


def make_births(rows: int, path: Path) -> None:
    """People with a birth date of 90 years, one of 3,000 ZIP codes and one of 500 occupations."""
    import duckdb

    with duckdb.connect() as con:
        con.execute("SET threads = 2; SET memory_limit = '4GB'; SET preserve_insertion_order = false")
        items = f"DATE '1936-01-01' + {drawn(1, 32_850)} AS birth, 10000 + 30 * {drawn(2, 3000)} AS zip"
        passed = f"{drawn(3, 20, 3)} AS visits, {drawn(4, 100_000, 4)} AS cost"
        passed += f", 'hospital ' || {drawn(5, 50)} AS hospital"
        query = f"""SELECT birth, zip, 2026 - year(birth) AS age, occupation, visits, cost, hospital FROM (
            SELECT {items}, 'occupation ' || {drawn(6, 500)} AS occupation, {passed} FROM range({rows}))"""  # noqa: S608
        con.execute(f"COPY ({query}) TO '{path}' ({kind(path)})")


def kind(path: Path) -> str:
    return "FORMAT parquet, COMPRESSION zstd" if path.suffix == ".parquet" else "FORMAT csv, HEADER"


def copy(source: Path, target: Path) -> None:
    import duckdb

    with duckdb.connect() as con:
        con.execute(f"SET threads = 2; SET memory_limit = '{MEMORY}'")
        con.execute(f"COPY (SELECT * FROM '{source}') TO '{target}' ({kind(target)})")  # noqa: S608


def policy(case: str, passes: bool, births: bool = False) -> dict[str, Any]:
    columns: dict[str, Any] = {} if births else dict.fromkeys(QUASI, "quasi-identifier")
    columns["age"] = {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}}
    columns["zip" if births else "region"] = {"role": "quasi-identifier", "hierarchy": {"mask": "right"}}
    if births:
        columns["birth"] = {"role": "quasi-identifier", "hierarchy": {"dates": ["month", "year", "decade"]}}
    columns["occupation"] = "sensitive"
    # what passes through singles many people out, which is measured here, not published
    passing = {"role": "insensitive", "near_unique": "allow"}
    columns |= dict.fromkeys(PASSED, passing if passes else "identifier")
    method = {"name": "mondrian", "cut": "balanced"}
    if case == "full-domain":
        method = {"name": "optimal-lattice", "suppression": "0.02"}
    whole: dict[str, Any] = {"version": 1, "unit": "none", "columns": columns, "method": method}
    whole["require"] = [{"model": "k-anonymity", "k": 5}]
    return whole | ({"recoding": "bucketize"} if case == "bucketized" else {})


def anonymized(source: Path, target: Path, case: str, passes: bool, births: bool) -> dict[str, Any]:
    import maskwright as mw

    steps: dict[str, float] = {}
    running: list[Any] = ["starting", cpu()]

    def on_event(event: Any) -> None:
        now = cpu()
        steps[running[0]] = steps.get(running[0], 0.0) + now - running[1]
        running[:] = [event.text if event.kind == "step" else running[0], now]

    release = mw.anonymize(source, policy(case, passes, births), target, memory=MEMORY, on_event=on_event)
    joint = release.grouping.summary.joint
    return {"steps": steps, "cells": 0 if joint is None else len(joint.rows)}


def alone(*arguments: str) -> dict[str, Any]:
    """This script again, as a process of its own."""
    command = [sys.executable, __file__, "--alone", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def best(times: int, *arguments: str) -> dict[str, Any]:
    """The run that took the least, with what its pipeline took; for a copy that is all."""
    found = []
    for _ in range(times):
        run = alone(*arguments)
        steps = run.get("steps", {"copying": run["cpu"]})
        found.append(run | {"pipeline": sum(t for name, t in steps.items() if name not in AFTER)})
        if arguments[0] != "copy":
            shutil.rmtree(arguments[2])
    return min(found, key=lambda run: run["pipeline"])


def measured(what: Callable[[], Any]) -> None:
    before = cpu()
    result = what() or {}
    # not ru_maxrss, which counts what the parent held when this process began
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) // 1024
    result |= {"cpu": cpu() - before, "mib": peak}
    print(json.dumps(result))


def table(given: argparse.Namespace, rows: int, folder: Path) -> Path:
    """The table of so many rows, made unless it is kept from an earlier run."""
    kind = next((name for name in ("fine", "few", "births") if getattr(given, name)), "people")
    path: Path = (given.tables or folder) / f"{kind}-{rows}.{given.format}"
    if not path.exists():
        made = path.with_name(f"making-{path.name}")
        make_births(rows, made) if given.births else make(rows, made, given.fine, given.few)
        made.rename(path)
    return path


def compare(given: argparse.Namespace, rows: int, folder: Path, targets: Targets) -> dict[str, float]:
    """Print a line for each case; gives the CPU seconds of each."""
    source = table(given, rows, folder)
    times, passes = given.times if rows <= 1_000_000 else 1, given.pass_through
    base = best(times, "copy", str(source), str(folder / f"copy.{given.format}"))
    print(f"{rows:,} rows, {given.format}: copy {base['cpu']:.2f} s, {base['mib']} MiB", flush=True)
    taken = {"copy": float(base["cpu"])}
    for case in given.case:
        found = best(times, *run_of(given, case, source, folder))
        taken[case] = pipeline = found["pipeline"]
        parts = ", ".join(f"{name} {t:.2f}" for name, t in found["steps"].items())
        what, ratio = f"{case}, {rows:,} rows", pipeline / base["cpu"]
        limited = rows >= 10_000_000 and given.format == "parquet" and not given.fine
        limit = (
            targets.met(what, ratio, BIRTHS[case] if given.births else CASES[case][passes], "x")
            if limited
            else "no limit"
        )
        memory = targets.met(what, found["mib"], 4096, "MiB")
        print(
            f"  {case}: pipeline {pipeline:.2f} s = {ratio:.1f} x the copy ({limit}), with attacks and report "
            f"{found['cpu']:.2f} s; {found['mib']} MiB ({memory}); {found['cells']:,} cells\n    {parts}",
            flush=True,
        )
    return taken


def run_of(given: argparse.Namespace, case: str, source: Path, folder: Path) -> list[str]:
    more = [f"--{name.replace('_', '-')}" for name in ("pass_through", "births") if getattr(given, name)]
    return [case, str(source), str(folder / f"out-{case}"), *more]


def cost_of_a_run(given: argparse.Namespace, folder: Path) -> dict[str, float]:
    """What each case takes for hardly any rows."""
    few = table(given, FEW, folder)
    fixed = {case: best(given.times, *run_of(given, case, few, folder))["pipeline"] for case in given.case}
    print(
        f"{FEW:,} rows: " + ", ".join(f"{case} {seconds:.2f} s" for case, seconds in fixed.items()),
        flush=True,
    )
    return {"copy": 0.0, **fixed}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--case", choices=list(CASES), nargs="+", default=list(CASES))
    parser.add_argument("--pass-through", action="store_true")
    people = parser.add_mutually_exclusive_group()
    for name in ("--fine", "--few", "--births"):
        people.add_argument(name, action="store_true")
    parser.add_argument("--format", choices=["parquet", "csv"], default="parquet")
    parser.add_argument("--tables", type=Path, metavar="FOLDER")
    parser.add_argument("--times", type=int, default=TIMES, help="how often short runs are repeated")
    parser.add_argument("--alone", nargs=3, metavar=("CASE", "SOURCE", "TARGET"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        case, source, target = given.alone[0], Path(given.alone[1]), Path(given.alone[2])
        if case == "copy":
            measured(lambda: copy(source, target))
        else:
            measured(lambda: anonymized(source, target, case, given.pass_through, given.births))
        return 0
    print("command:", " ".join(["python", *sys.argv]))
    curve, targets = {}, Targets()
    if given.tables:
        given.tables.mkdir(parents=True, exist_ok=True)
    for rows in given.rows:
        with tempfile.TemporaryDirectory(prefix="maskwright-bench-") as folder:
            curve[rows] = compare(given, rows, Path(folder), targets)
    with tempfile.TemporaryDirectory(prefix="maskwright-bench-") as folder:
        fixed = cost_of_a_run(given, Path(folder))
    for name in ["copy", *given.case]:
        costs = [1e6 * (each[name] - fixed[name]) / rows for rows, each in curve.items()]
        shown = ", ".join(f"{rows:,} rows {cost:.2f}" for rows, cost in zip(curve, costs, strict=True))
        flat = ""
        if given.few and name != "copy" and len(costs) > 1:
            ratio = max(costs) / min(costs) if min(costs) > 0 else float("inf")
            flat = (
                f"; largest to least {ratio:.2f} ({targets.met(f'{name}, cost of a row', ratio, FLAT, 'x')})"
            )
        print(f"seconds for a million rows, {name}: {shown}{flat}")
    return targets.end()


if __name__ == "__main__":
    sys.exit(main())
