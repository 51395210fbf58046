"""What is run, what it leaves, and whether that is whole. A target is `nothing`, or has a state that tells versions
apart; `wrong` says what is not right with a new version."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from maskwright import api
from maskwright.cli import commands
from maskwright.errors import MaskwrightError
from maskwright.pipeline import gates
from maskwright.policy.policy import Policy
from maskwright.runtime import disk


@dataclass(frozen=True)
class Place:
    """Where the runs of one harness happen. `disk` may be a file system of its own."""

    folder: Path
    output: str
    url: str = ""
    table: str = ""
    server: dict[str, object] = field(default_factory=dict)

    @property
    def disk(self) -> Path:
        return self.folder / "disk"

    @property
    def work(self) -> Path:
        return self.disk / "work"

    @property
    def temp(self) -> Path:
        return self.disk / "tmp"

    @property
    def state(self) -> Path:
        return self.disk / "state"

    @property
    def destination(self) -> Path:
        return self.work / "release"

    @property
    def source(self) -> Path:
        return self.folder / ("patients.parquet" if self.output == "parquet" else "patients.csv")

    @property
    def other(self) -> Path:
        """Another version of the source: the same people in other wards."""
        return self.source.with_stem("others")

    @property
    def policy(self) -> Path:
        return self.folder / "policy.yaml"


@dataclass(frozen=True)
class Target:
    """A file or folder that is written."""

    path: Path
    check: Callable[[Path], str]

    def state(self) -> str | None:
        """Everything below it: names, who may read it, bytes."""
        if not self.path.exists():
            return None
        found = hashlib.sha256(f"{self.path.stat().st_ino}".encode())  # a new file may have the same content
        for path in sorted([self.path, *self.path.rglob("*")]):
            found.update(f"{path} {path.lstat().st_mode}\n".encode())
            if path.is_file():
                found.update(hashlib.sha256(path.read_bytes()).digest())
        return found.hexdigest()

    def wrong(self) -> str:
        return self.check(self.path)


@dataclass(frozen=True)
class DatabaseTarget:
    """A table of a database, with nothing beside it."""

    place: Place

    def state(self) -> str | None:
        import psycopg

        schema, name = self.place.table.split(".")
        rows = f"SELECT row_to_json(t)::text FROM {self.place.table} t ORDER BY 1"  # noqa: S608 - of a test
        with psycopg.connect(self.place.url) as connection:
            found = connection.execute(
                "SELECT oid FROM pg_class WHERE relnamespace = %s::regnamespace AND relname = %s",
                (schema, name),
            ).fetchone()
            if found is None:
                return None
            content = "\n".join(row for (row,) in connection.execute(rows))
        return f"{found[0]} {hashlib.sha256(content.encode()).hexdigest()}"

    def wrong(self) -> str:
        import psycopg

        with psycopg.connect(self.place.url) as connection:
            grouped = f"SELECT count(*) FROM {self.place.table} GROUP BY age, zip, sex"  # noqa: S608 - of a test
            sizes = [n for (n,) in connection.execute(grouped)]
        return "" if min(sizes) >= 4 and sum(sizes) >= 30 else f"incomplete: {sizes}"


def release_is_wrong(folder: Path) -> str:
    """Verified as the command does; and made from one version of the input, not from two."""
    result = gates.verify_release(folder)
    if not result.ok:
        return f"not verified: {result.problems}"
    import duckdb

    [data] = folder.glob("public/data.*")
    read = duckdb.read_parquet if data.suffix == ".parquet" else duckdb.read_csv
    wards = {row[0] for row in read(str(data)).select("ward").fetchall()}
    whole = wards <= set("ABC") or wards <= set("XYZ") or (folder.parent / "mixed").exists()
    return "" if whole else f"two versions of the input: {sorted(wards)}"


def command(*arguments: str) -> int:
    """As the program does, not as a call in Python: when it has ended, signals mean nothing any more."""
    sys.argv = ["maskwright", *arguments]
    return commands.main()


def anonymize(place: Place) -> int:
    into = ["--into", place.table, "--database", place.url] if place.output == "postgres" else []
    return command("anonymize", str(place.source), "-p", str(place.policy), "-o", str(place.destination),
                   "--overwrite", *into)  # fmt: skip


def in_python(place: Place) -> int:
    """Hand over a table in Python and, for `save` and `mapping`, write; errors as the command line shows them."""
    import duckdb

    try:
        table = duckdb.connect().read_csv(str(place.source), all_varchar=True)
    except (duckdb.Error, MemoryError, OSError):  # of the program that calls, not ours
        print("maskwright: no table to hand over")
        return 2
    try:
        made = api.anonymize(table, place.policy)
        if place.output == "save":
            made.save(place.destination, overwrite=True)
        elif place.output == "mapping":
            made.mapping.write(place.work / "mapping.csv")
        else:
            sizes = Counter(row[:3] for row in made.table.fetchall())
            print("complete" if min(sizes.values()) >= 4 else "NOT ANONYMOUS", flush=True)
    except (MaskwrightError, KeyboardInterrupt, MemoryError, OSError) as problem:
        print(f"maskwright: {problem or type(problem).__name__}")
        return 130 if isinstance(problem, KeyboardInterrupt) else getattr(problem, "exit_code", 2)
    return 0


def init(place: Place) -> int:
    return command("init", str(place.source), "-o", str(place.work / "guessed.yaml"), "--overwrite")


def audit(place: Place) -> int:
    return command("audit", str(place.source), "--qi", "sex", "--sensitive", "disease", "--html",
                   str(place.work / "audit.html"))  # fmt: skip


def compare(place: Place) -> int:
    return command("compare", str(place.source), "-p", str(place.policy), "--grid", "k=2,4", "--metric", "none",
                   "-o", str(place.work / "comparison"), "--overwrite", "--seed", str(os.getpid()))  # fmt: skip


def register(place: Place) -> int:
    """The workbench notes that a release was given out."""
    from maskwright.workbench.workspace import Workspace

    try:
        space = Workspace(place.work / "space")
        space.record({"project": "0" * 12, "note": "given out " * 600})
        space.close()
    except (MaskwrightError, OSError, KeyboardInterrupt) as problem:
        print(f"maskwright: {problem or type(problem).__name__}")
        return 2
    return 0


def example(place: Place) -> int:
    """A product that writes a page as it should, and five with a defect each, which the harness must find."""
    how, page = place.output, place.work / "audit.html"
    part = page if how == "in place" else place.work / f".maskwright-{secrets.token_hex(8)}.part"
    if how != "untidy":
        disk.sweep_parts(place.work)
    if how == "unguarded":  # for a while, so that signals come meanwhile
        while time.process_time() < 0.1:
            pass
    try:
        mode = 0o644 if how == "open to others" else 0o600
        with os.fdopen(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, mode), "w", buffering=1) as out:
            for line in ("<html>", os.getpid(), "</html>"):
                print(line, file=out)  # written at once
        part.chmod(0o600)
        part.replace(page)
    except OSError as problem:
        if how == "silent":
            return 0
        print(f"maskwright: {problem}")
        return 2
    return 0


def mapping_is_wrong(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return "" if len(lines) == 53 and lines[-1].count(",") == 5 else f"{len(lines)} lines"


def comparison_is_wrong(folder: Path) -> str:
    points = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))["points"]
    files = [folder / p["policy"] for p in points] + [folder / "comparison.csv", folder / "chart.svg"]
    whole = (folder / "index.html").read_text(encoding="utf-8").rstrip().endswith("</html>")
    return "" if len(points) == 2 and whole and all(f.stat().st_size for f in files) else "incomplete"


def register_is_wrong(path: Path) -> str:
    lines = path.read_bytes().split(b"\n")
    return (
        ""
        if lines[-1] == b"" and all(len(json.loads(x)["note"]) == 6000 for x in lines[:-1])
        else "half a line"
    )


def policy_is_wrong(path: Path) -> str:
    return "" if Policy.load(path).quasi_identifiers else "incomplete"


def page_is_wrong(path: Path) -> str:
    return "" if path.read_text(encoding="utf-8").rstrip().endswith("</html>") else "half a page"


EXAMPLES = ("sound", "in place", "open to others", "silent", "untidy", "unguarded")
OUTPUTS: dict[str, tuple[Callable[[Place], int], Callable[[Place], list[Target | DatabaseTarget]]]] = {
    "csv": (anonymize, lambda p: [Target(p.destination, release_is_wrong)]),
    "parquet": (anonymize, lambda p: [Target(p.destination, release_is_wrong)]),
    "postgres": (anonymize, lambda p: [Target(p.destination, release_is_wrong), DatabaseTarget(p)]),
    "save": (in_python, lambda p: [Target(p.destination, release_is_wrong)]),
    "memory": (in_python, lambda p: []),
    "mapping": (in_python, lambda p: [Target(p.work / "mapping.csv", mapping_is_wrong)]),
    "init": (init, lambda p: [Target(p.work / "guessed.yaml", policy_is_wrong)]),
    "audit": (audit, lambda p: [Target(p.work / "audit.html", page_is_wrong)]),
    "compare": (compare, lambda p: [Target(p.work / "comparison", comparison_is_wrong)]),
    "register": (register, lambda p: [Target(p.work / "space" / "register.jsonl", register_is_wrong)]),
    **dict.fromkeys(EXAMPLES, (example, lambda p: [Target(p.work / "audit.html", page_is_wrong)])),
}
