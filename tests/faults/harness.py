"""Makes one run after another go wrong, each at another moment, and says what is left. See table.py for the faults.

Runs in a process of its own, with shim.c loaded before libc. It imports everything once and forks a child per moment,
so that hundreds take seconds. The child runs the command as a user would, with a umask that protects nothing. This
process never starts the engine: its threads would not survive a fork.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import random
import shutil
import stat
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from maskwright import api, cli, disk, store, verify
from maskwright.errors import MaskwrightError

sys.path.insert(0, str(Path(__file__).parent))
from table import COUNT, KILL, KILL_AFTER, READ, WRITES, FAULTS, Fault

LIBC = ctypes.CDLL(None)
LIBC.fault_count.restype = ctypes.c_long
LIBC.fault_arm.argtypes = [ctypes.c_long] + [ctypes.c_int] * 5
LIBC.fault_timer.argtypes = [ctypes.c_long, ctypes.c_int]
LIBRARIES = ("maskwright", "numpy", "duckdb", "sqlglot", "psycopg", "pyarrow", "pydantic", "yaml", "_")
Arm = Callable[[], None]


@dataclass(frozen=True)
class Place:
    """Where the runs of this process happen."""

    folder: Path
    output: str
    url: str = ""
    table: str = ""

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def destination(self) -> Path:
        return self.work / "release"

    @property
    def source(self) -> Path:
        return self.folder / ("patients.parquet" if self.output == "parquet" else "patients.csv")

    @property
    def command(self) -> list[str]:
        into = ["--into", self.table, "--database", self.url] if self.output == "postgres" else []
        return ["anonymize", str(self.source), "-p", str(self.folder / "policy.yaml"), "-o", str(self.destination),
                "--overwrite", *into]  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """How a child ended: the signal that killed it or its exit code, and all it printed."""

    signal: int
    code: int
    text: str
    numbers: dict[str, float]

    @property
    def complaints(self) -> list[str]:
        """What no user should ever see, or miss."""
        found = [w for w in ("Traceback", "Exception ignored", "internal error", "terminate called") if w in self.text]
        lines = [line for line in self.text.splitlines() if line.startswith("maskwright: ")]
        if not self.signal and self.code and len(lines) != 1:
            found.append(f"{len(lines)} lines of error")
        if not self.signal and self.code not in (0, 2, 130):
            found.append(f"exit {self.code}")
        return [*found, self.text[-1500:]] if found else []


# --- one run ------------------------------------------------------------------------------------------


def in_memory(place: Place) -> int:
    """Hand over a table in Python and, for the output `save`, save it; errors as the command line shows them."""
    import duckdb

    try:
        table = duckdb.connect().read_csv(str(place.source), all_varchar=True)
        made = api.anonymize(table, place.folder / "policy.yaml")
        if place.output == "save":
            made.save(place.destination, overwrite=True)
        else:
            groups = Counter(row[:3] for row in made.table.fetchall())
            print("complete" if min(groups.values()) >= 4 else "NOT ANONYMOUS", flush=True)
    except (MaskwrightError, KeyboardInterrupt, MemoryError) as problem:
        print(f"maskwright: {problem or type(problem).__name__}")
        return 130 if isinstance(problem, KeyboardInterrupt) else getattr(problem, "exit_code", 2)
    return 0


def run(place: Place, arm: Arm) -> Ended:
    """Run in a child until it ends."""
    return ended(start(place, arm))


def start(place: Place, arm: Arm) -> tuple[int, int]:
    """Fork a child that runs, and a pipe of all that it prints."""
    out, into = os.pipe()
    child = os.fork()
    if child:
        os.close(into)
        return child, out
    code = 99
    try:
        os.dup2(into, 1)
        os.dup2(into, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        os.umask(0)
        arm()
        code = in_memory(place) if place.output in ("memory", "save") else cli.main(place.command)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        steps = LIBC.fault_count()
        LIBC.fault_arm(-1, COUNT, 0, 0, -1, -1)
        told = {"steps": steps, "cpu": time.process_time(), "modules": sorted(sys.modules)}
        os.write(into, b"\0" + json.dumps(told).encode())
        os._exit(code)


def ended(started: tuple[int, int]) -> Ended:
    child, out = started
    with os.fdopen(out, encoding="utf-8", errors="replace") as printed:
        text, _, numbers = printed.read().partition("\0")
    _, status = os.waitpid(child, 0)
    return Ended(os.WTERMSIG(status), os.waitstatus_to_exitcode(status) if not os.WTERMSIG(status) else 0, text,
                 json.loads(numbers) if numbers else {})  # fmt: skip


def warm(place: Place) -> dict[str, float]:
    """Import here what a run imports; returns its steps and its time."""
    first = run(place, lambda: None)
    for name in first.numbers.get("modules", []):
        if name.startswith(LIBRARIES) and name not in sys.modules:
            try:
                import_module(name)
            except Exception:
                continue
    again = run(place, lambda: LIBC.fault_arm(0, COUNT, 0, WRITES, -1, -1))
    if first.code or again.code or not again.numbers:
        sys.exit(f"the run fails even when nothing goes wrong:\n{first.text}\n{again.text}")
    return again.numbers


# --- what is left -------------------------------------------------------------------------------------


def digest(folder: Path) -> str | None:
    """Everything in a folder: names, who may read it, bytes."""
    if not folder.is_dir():
        return None
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(f"{path.relative_to(folder)} {path.lstat().st_mode}\n".encode())
        if path.is_file():
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def exposed(folder: Path, public: Path) -> list[str]:
    """Files that others could read: through folders that let them pass, not below `public`."""
    found = []
    for path in folder.iterdir():
        mode = path.lstat().st_mode
        if path == public:
            continue
        if stat.S_ISDIR(mode):
            if mode & 0o055:
                found += exposed(path, public)
        elif mode & 0o044 and path.stat().st_size:
            found.append(str(path))
    return found


def in_child(question: Callable[[], str]) -> str:
    """Ask something that needs the engine."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(into, question().encode())
        except BaseException as problem:
            os.write(into, f"broken: {problem}".encode())
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def verified(destination: Path) -> str:
    result = verify.verify(destination)
    return "new" if result.ok else f"not verified: {result.problems}"


def left(place: Place, old: str | None) -> str:
    """old, nothing, new or what is wrong: as the next start finds it."""
    open_ = [f for part in ("work", "tmp", "state") for f in exposed(place.folder / part, place.destination / "public")]
    if open_:
        return f"readable by others: {open_}"
    store.recover(place.destination)
    for folder in (place.folder / "state").rglob("*"):
        disk.sweep_parts(folder)
    names = [p.name for p in (place.work, place.folder / "tmp") for p in p.iterdir() if p != place.destination]
    names += [p.name for p in (place.folder / "state").rglob("*.part")]
    if names:
        return f"left behind: {names}"
    now = digest(place.destination)
    if now is None:
        return "nothing"
    return "old" if now == old else in_child(lambda: verified(place.destination))


def database(place: Place) -> str:
    """The release in the database: which it is, whether it is whole, and nothing beside it."""
    import psycopg

    def question() -> str:
        schema, name = place.table.split(".")
        for _ in range(150):  # the server notices a killed client a moment later, or is just starting
            try:
                with psycopg.connect(place.url) as connection:
                    rows = connection.execute(
                        "SELECT relname, oid FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'",
                        (schema,),
                    ).fetchall()
                    if not [r for r in rows if r[0] != name]:
                        break
            except psycopg.Error:
                rows = [("no server", 0)]
            time.sleep(0.1)
        found = [r for r in rows if r[0] == name]
        if len(rows) != len(found):
            return f"left behind: {rows}"
        if not found:
            return "nothing"
        with psycopg.connect(place.url) as connection:
            sizes = [r[0] for r in connection.execute(f"SELECT count(*) FROM {place.table} GROUP BY age, zip, sex")]
        return f"table {found[0][1]}" if min(sizes) >= 4 and 36 <= sum(sizes) <= 40 else f"incomplete: {sizes}"

    return in_child(question)


# --- many moments -------------------------------------------------------------------------------------


def moments(number: int, steps: int, chance: random.Random) -> list[int]:
    """Steps to go wrong at: all of them, or the last (when it is put in place) and some of the others."""
    every = list(range(1, steps + 1))
    if number >= steps:
        return every
    last = every[-min(number // 3, steps) :]
    return sorted(chance.sample(every[: steps - len(last)], number - len(last))) + last


def arming(fault: Fault, moment: int, cpu: float, chance: random.Random) -> Arm:
    if fault.timed:
        when = int(chance.uniform(0.001, 1.05 * cpu) * 1e9)
        gap = int(chance.uniform(0, 0.2 * cpu) * 1e9)

        def timed() -> None:
            LIBC.fault_timer(int(time.process_time() * 1e9) + when, fault.argument)
            if fault.twice:
                LIBC.fault_timer(int(time.process_time() * 1e9) + when + gap, fault.argument)

        return timed
    kind = KILL_AFTER if fault.kind == KILL and moment % 2 else fault.kind
    return lambda: LIBC.fault_arm(moment, kind, fault.argument, fault.classes, -1, -1)


def judge(place: Place, fault: Fault, end: Ended, state: str) -> str:
    """What came out, or what must not be."""
    if end.complaints:
        return f"complaint: {end.complaints}"
    if end.signal and fault.argument != end.signal and fault.kind != KILL:
        return f"died of signal {end.signal}: {end.text[-800:]}"
    if place.output == "memory":
        if end.code == 0 and not end.signal and "complete" not in end.text:
            return f"not complete: {end.text}"
        return state if state != "nothing" else ("new" if "complete" in end.text else "nothing")
    if not end.signal and (end.code == 0) != (state == "new") and place.output != "postgres":
        return f"exit {end.code}, but {state} is there: {end.text[-500:]}"
    return state


def prepare(place: Place, fresh: bool) -> tuple[str | None, str]:
    if fresh and place.destination.exists():
        shutil.rmtree(place.destination)
    return digest(place.destination), database(place) if place.output == "postgres" else ""


def main(settings: dict[str, Any]) -> None:
    place = Place(Path(settings["folder"]), settings["output"], settings.get("url", ""), settings.get("table", ""))
    fault, chance = FAULTS[settings["fault"]], random.Random(settings["seed"])  # noqa: S311 - moments of a test
    for name in ("work", "tmp", "state"):
        (place.folder / name).mkdir(exist_ok=True)
        (place.folder / name).chmod(0o755)  # so that only what the program does itself protects the files
    os.environ |= {"TMPDIR": str(place.folder / "tmp"), "MASKWRIGHT_STATE": str(place.folder / "state" / "own")}
    usual = warm(place)
    found: Counter[str] = Counter()
    number = settings["moments"]
    steps = [0] * number if fault.timed else moments(number, int(usual["steps"]), chance)
    for i, moment in enumerate(steps):
        old, before = prepare(place, fresh=i % 4 == 3)
        end = run(place, arming(fault, moment, usual["cpu"], chance))
        outcome = judge(place, fault, end, left(place, old))
        found[outcome] += 1
        if place.output == "postgres":
            now = database(place)
            in_database = "database old" if now == before else "database new" if now.startswith("table") else now
            found[in_database] += 1
            if not end.signal and (end.code == 0) != (in_database == "database new"):
                found[f"exit {end.code}, but {in_database}: {end.text[-500:]}"] += 1
    print(json.dumps({"found": found, "steps": usual["steps"], "moments": len(steps)}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
