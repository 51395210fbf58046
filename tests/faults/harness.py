"""Makes one run after another go wrong, each at another moment, and says what is left.

Runs in a process of its own, with shim.c loaded before libc. It imports everything once and forks a child per moment,
so that hundreds take a minute. The child runs the command as a user would, with a umask that protects nothing. This
process never starts the engine: its threads would not survive a fork.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from maskwright.folder import store
from maskwright.runtime import disk

sys.path.insert(0, str(Path(__file__).parent))
from outputs import OUTPUTS, Place
from table import CLEANED, CLOCK_BACK, COUNT, DIED, FAULTS, GAVE_UP, PAUSE, READ, WRITE, YEARS, Fault

LIBC = ctypes.CDLL(None)
LIBC.fault_count.restype = ctypes.c_long
LIBC.fault_arm.argtypes = [ctypes.c_long] + [ctypes.c_int] * 5
LIBC.fault_timer.argtypes = [ctypes.c_long, ctypes.c_int]
LIBRARIES = ("maskwright", "numpy", "duckdb", "sqlglot", "psycopg", "pydantic", "yaml", "html", "json")
SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
PATIENCE = 300  # seconds; a run that takes longer hangs, and dies of SIGALRM
NEVER = ("Traceback", "Exception ignored", "internal error", "terminate called")  # in what a user reads
LAST_WORDS = {"terminate called", "Exception ignored"}  # of a library, or of Python, that has no memory
IN_PYTHON = ("memory", "save", "mapping")  # signals are the business of the program that calls
Arm = Callable[[int, int], None]  # with the ends of two pipes, to wait for somebody


@dataclass(frozen=True)
class Ended:
    """How a child ended: the signal that killed it or its exit code, all it printed, and what it measured."""

    signal: int
    code: int
    text: str
    measured: dict[str, Any]


# --- one run ------------------------------------------------------------------------------------------


def run(place: Place, arm: Arm, action: Callable[[], None] | None = None) -> Ended:
    """Run in a child until it ends; if it waits at a step, do `action` meanwhile."""
    (printed, into), (paused, pause), (go, start) = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(start)
        _child(place, into, lambda: arm(pause, go))
    for handle in (into, pause, go):
        os.close(handle)
    if os.read(paused, 1) and action is not None:
        action()
    os.close(start)  # wakes it
    os.close(paused)
    with os.fdopen(printed, encoding="utf-8", errors="replace") as out:
        text, _, measured = out.read().partition("\0")
    _, status = os.waitpid(child, 0)
    killed = os.WTERMSIG(status)
    return Ended(killed, 0 if killed else os.WEXITSTATUS(status), text, json.loads(measured or "{}"))


def _child(place: Place, into: int, arm: Callable[[], None]) -> None:
    code = 99
    try:
        os.dup2(into, 1)
        os.dup2(into, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        os.umask(0)
        signal.alarm(PATIENCE)
        arm()
        code = OUTPUTS[place.output][0](place)
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("maskwright: KeyboardInterrupt", flush=True)
        code = 130
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        told: dict[str, Any] = {
            "steps": LIBC.fault_count(),
            "cpu": time.process_time(),
            "peak": status("VmHWM"),
            "now": time.time(),
        }
        LIBC.fault_arm(-1, COUNT, 0, 0, -1, -1)
        told["modules"] = sorted(sys.modules) if resource.getrlimit(resource.RLIMIT_AS)[0] < 0 else []
        os.write(into, b"\0" + json.dumps(told).encode())
        os._exit(code)


def status(name: str, process: str | int = "self") -> int:
    """How much memory a process has or had, in KiB; 0 when it is gone."""
    try:
        text = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(text.partition(f"{name}:")[2].split()[0]) if f"{name}:" in text else 0


def kill_above(limit: int) -> None:
    """A process beside this one that kills it as soon as it has more than so many KiB of memory."""
    process = os.getpid()
    if os.fork():
        return
    while os.getppid() == process:
        if status("VmRSS", process) > limit:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.0005)
    os._exit(0)


def counting(classes: int) -> Arm:
    return lambda pause, go: LIBC.fault_arm(0, COUNT, 0, classes, -1, -1)


def warm(place: Place) -> None:
    """Import here what a run imports."""
    first = run(place, counting(WRITE))
    if first.code or first.signal:
        sys.exit(f"the run fails even when nothing goes wrong:\n{first.text}")
    if place.destination.exists():
        shutil.copytree(place.destination, place.folder / "kept")
    for name in first.measured["modules"]:
        if name.startswith(LIBRARIES) and name not in sys.modules:
            import_module(name)


def arming(fault: Fault, moment: float, rest: float) -> Arm:
    if fault.timed:

        def timed(pause: int, go: int) -> None:
            now = time.process_time()
            LIBC.fault_timer(int((now + moment) * 1e9), fault.argument)
            if fault.twice:
                LIBC.fault_timer(int((now + moment + rest) * 1e9), fault.argument)

        return timed
    if fault.limit == "memory":

        def limited(pause: int, go: int) -> None:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            limit = pages * resource.getpagesize() + int(moment)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        return limited
    if fault.limit == "resident":
        return lambda pause, go: kill_above(int(moment))
    return lambda pause, go: LIBC.fault_arm(int(moment), fault.kind, fault.argument, fault.classes, pause, go)


# --- what somebody else does meanwhile ----------------------------------------------------------------


def change(place: Place, how: str) -> None:
    """Change the input."""
    source, before = place.source, place.source.stat()
    if how == "append":
        (place.work / "mixed").touch()
        with source.open("ab") as file:
            file.writelines(place.other.read_bytes().splitlines(keepends=True)[1:9])
    elif how == "truncate":
        os.truncate(source, before.st_size * 2 // 3)
    elif how == "replace":
        shutil.copy(place.other, source.with_suffix(".new"))
        source.with_suffix(".new").replace(source)
    else:
        with source.open("r+b") as file:
            file.write(place.other.read_bytes())
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))


def restart(place: Place) -> None:
    """Stop the server without any care, and start it again."""
    tool = [*map(str, place.server["tool"])]  # type: ignore[call-overload]
    user = dict(place.server["user"])  # type: ignore[call-overload]
    for how in (["stop", "-m", "immediate"], ["start"]):
        subprocess.run([*tool, *how], check=True, stdout=subprocess.DEVNULL, cwd="/", **user)


def terminate(place: Place) -> None:
    import psycopg

    with psycopg.connect(place.url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'maskwright'"
        )


def action_of(place: Place, fault: Fault) -> Callable[[], None] | None:
    special = {"crash": restart, "terminate": terminate}
    if fault.action in special:
        return lambda: special[fault.action](place)
    return (lambda: change(place, fault.action)) if fault.action else None


def leave_free(place: Place, free: int) -> None:
    """Fill the disk so that only so many bytes are free."""
    filler = place.disk / "filler"
    filler.unlink(missing_ok=True)
    room = os.statvfs(place.disk)
    with filler.open("wb") as out:
        os.posix_fallocate(out.fileno(), 0, max(1, room.f_bavail * room.f_frsize - free))


# --- what is left -------------------------------------------------------------------------------------


def exposed(folder: Path, public: Path) -> list[str]:
    """Files that others could read: through folders that let them pass, and not published, now or before."""
    found = []
    for path in folder.iterdir():
        mode = path.lstat().st_mode
        if path == public or (path.name == "public" and path.parent.name.endswith(".old")):
            continue
        if stat.S_ISDIR(mode):
            if mode & 0o055:
                found += exposed(path, public)
        elif mode & 0o044 and path.stat().st_size and path.name != "filler":
            found.append(path.name)
    return found


def in_child(question: Callable[[], str]) -> str:
    """Ask something that needs the engine."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(into, question().encode())
        except BaseException as problem:
            os.write(into, f"broken: {type(problem).__name__} {problem}".encode())
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def next_start(place: Place) -> None:
    """What every command does before it begins."""
    store.recover_destination(place.destination)
    store.recover_destination(place.work / "comparison")
    for folder in [place.work, place.state, *place.state.rglob("*")]:
        disk.sweep_parts(folder)
    if place.output == "register":
        from maskwright.workbench.workspace import Workspace

        Workspace(place.work / "space").close()


def left_behind(place: Place) -> list[str]:
    kept = {"release", "comparison", "guessed.yaml", "audit.html", "mapping.csv", "space", "mixed"}
    names = [p.name for p in [*place.work.iterdir(), *place.temp.iterdir()] if p.name not in kept]
    return names + [p.name for p in place.disk.rglob("*.part")]


def outcomes(place: Place, before: list[str | None], end: Ended) -> list[str]:
    """For each target: old, nothing, new; or what is wrong."""
    shown = [] if place.output in ("init", "audit") else exposed(place.disk, place.destination / "public")
    next_start(place)
    found = [f"readable by others: {shown}"] if shown else []
    if rest := left_behind(place):
        found.append(f"left behind: {rest}")
    for old, target in zip(before, OUTPUTS[place.output][1](place), strict=True):
        now = target.state()
        found.append("nothing" if now is None else "old" if now == old else in_child(target.wrong) or "new")
    if place.output == "memory":
        found.append("new" if "complete" in end.text else "nothing")
    return found


def complaints(place: Place, fault: Fault, end: Ended, states: list[str]) -> list[str]:
    """What no user should see, and exit codes that do not fit what is there."""
    if place.output in IN_PYTHON and fault.argument == signal.SIGINT:
        return []  # Python itself says what becomes of a Ctrl-C, in a finalizer for instance
    found, known = [word for word in NEVER if word in end.text], []
    if fault.limit == "memory" and (end.signal not in (0, signal.SIGALRM) or end.code == 127):
        known = [GAVE_UP]  # it ends the process where it cannot get memory; so does the system
        found = [word for word in found if word not in LAST_WORDS]
    elif end.signal in SIGNALS and end.signal == fault.argument:
        known = (
            [] if place.output in IN_PYTHON else [DIED]
        )  # just before it listens to signals, or just after
    elif end.signal:
        if not end.signal == fault.argument == signal.SIGKILL:
            found.append(f"died of signal {end.signal}")
    else:
        lines = [line for line in end.text.splitlines() if line.startswith("maskwright: ")]
        if end.code not in (0, 2, 130) or len(lines) != (1 if end.code else 0):
            found.append(f"exit {end.code} with {len(lines)} lines")
        unsure = "all the same" in end.text or "it is not known whether" in end.text
        unsure |= end.code == 130 and place.output in IN_PYTHON  # Python was stopped after that
        if not unsure and any((state == "new") != (end.code == 0) for state in states):
            found.append(f"exit {end.code}, but {states}")
    return known + ([f"{found}: {end.text[-1500:]}"] if found else [])


# --- many moments -------------------------------------------------------------------------------------


def moments(fault: Fault, number: int, usual: dict[str, Any], chance: random.Random) -> list[float]:
    """When to go wrong: at all steps, or at the first, the last (when it is put in place) and some of the others.

    Of moments in time one is early: what a usual run takes was measured once, beside whatever else the machine does,
    and a run may well need only half of that.
    """
    if fault.timed:
        usual_time = usual["cpu"]
        early = chance.uniform(0.001, usual_time / 4)
        return [early, *(chance.uniform(0.001, 1.05 * usual_time) for _ in range(number - 1))]
    if fault.limit == "memory":
        return [float(2**18 + chance.randrange(400) * 2**20) for _ in range(number)]
    if fault.limit == "resident":
        before = status("VmRSS")
        return [chance.uniform(before, before + 1.05 * (usual["peak"] - before)) for _ in range(number)]
    if fault.limit == "disk":
        return [float(chance.randrange(120) * 4096) for _ in range(number)]
    steps = range(1, int(usual["steps"]) + 1)
    if number >= len(steps):
        return list(map(float, steps))
    ends = [] if fault.classes == READ else [1, *steps[len(steps) - number // 3 :]]
    others = [step for step in steps if step not in ends]
    return sorted(map(float, [*ends, *chance.sample(others, number - len(ends))]))


def attempt(place: Place, fault: Fault, moment: float, fresh: bool) -> list[str]:
    targets = OUTPUTS[place.output][1](place)
    if fresh and place.destination.exists():
        shutil.rmtree(place.destination)
    elif not fresh and not place.destination.exists() and (place.folder / "kept").exists():
        shutil.copytree(place.folder / "kept", place.destination)
    if fault.limit == "disk":
        leave_free(place, int(moment))
    before = [target.state() for target in targets]
    kept = place.source.read_bytes()
    end = run(place, arming(fault, moment, moment / 5), action_of(place, fault))
    if fault.limit == "disk":
        (place.disk / "filler").unlink()
    found = outcomes(place, before, end)
    found += complaints(place, fault, end, found)
    if fault.kind == CLOCK_BACK and end.measured.get("steps", 0) >= moment:
        found += ["the clock went on"] if time.time() - end.measured["now"] < YEARS / 2 else []
    if fault.kind == PAUSE:
        place.source.unlink()
        place.source.write_bytes(kept)
        (place.work / "mixed").unlink(missing_ok=True)
    return found


def again(place: Place, fault: Fault, moment: float) -> list[str]:
    """Killed, and started again as a user would: that alone, without `next_start`, removes what was left."""
    run(place, arming(fault, moment, 0))
    before = left_behind(place)
    end = run(place, counting(WRITE))
    wrong = [in_child(target.wrong) for target in OUTPUTS[place.output][1](place)]
    if end.signal or end.code or any(wrong) or left_behind(place):
        return [f"started again: {wrong}, {left_behind(place)} left behind: {end.text[-1500:]}"]
    return [CLEANED] if before else []


def main(settings: dict[str, Any]) -> None:
    place = Place(Path(settings["folder"]), settings["output"], *(settings.get(k, "") for k in ("url", "table")),
                  settings.get("server", {}))  # fmt: skip
    for folder in (place.disk, place.work, place.temp, place.state):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)  # so that only what the program does itself protects the files
    os.environ |= {"TMPDIR": str(place.temp), "MASKWRIGHT_STATE": str(place.state / "own")}
    for number in SIGNALS:  # in the background they would be ignored, and never come
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if settings.get("aside"):
        store._exchange = lambda a, b: False
    warm(place)
    chance = random.Random(settings["seed"])  # noqa: S311 - moments of a test, not secrets
    tried = itertools.count()
    counted: dict[
        int, dict[str, Any]
    ] = {}  # by the steps that are counted: what a run does when nothing goes wrong
    for name, number in settings["faults"].items():
        fault = FAULTS[name]
        next_start(place)  # which also finds out, once, where temporary files go: no step of the runs below
        if fault.classes not in counted:
            counted[fault.classes] = run(place, counting(fault.classes)).measured
        usual = counted[fault.classes]
        found: Counter[str] = Counter()
        when = moments(fault, number, usual, chance)
        for moment in when:
            found.update(attempt(place, fault, moment, fresh=next(tried) % 3 == 2))
        for moment in when[2::3] if name == "killed at a step" else ():
            found.update(again(place, fault, moment))
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = {
            "output": place.output,
            "fault": name,
            "asked": number,
            "moments": len(when),
            "steps": usual["steps"],
            "found": found,
        }
        print(json.dumps(told | {"cpu": round(used.ru_utime + used.ru_stime)}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
