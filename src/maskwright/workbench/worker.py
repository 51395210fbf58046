"""What a run of the workbench executes, in a process of its own: `python -m maskwright.workbench.worker FOLDER`.

Every kind of run goes through the same functions as the command line. Whatever happens, `outcome.json` is written
last, and says what happened in one sentence.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.domain.hierarchy import TOP
from maskwright.domain.release import Release
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.engines.readers.csv_files import found_reading
from maskwright.errors import Cancelled, MaskwrightError, PolicyNotMet, system_refused
from maskwright.policy.binding import reading_options
from maskwright.runtime.events import Event, Progress
from maskwright.workbench.turns import Turns
from maskwright.workbench.workspace import read_json, write_json, write_text

if TYPE_CHECKING:
    from maskwright.pipeline.alternatives import Alternatives
    from maskwright.policy.policy import Policy
    from maskwright.suggest.profile import Facts


GRACE = 4.0  # seconds that a run gets to stop by itself; then it ends in the middle of whatever it does
KINDS: dict[str, Callable[[WorkerRun], dict[str, Any]]]


class WorkerRun:
    """The folder of a run, while it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.request: dict[str, Any] = read_json(folder / "request.json")
        self._events = os.open(folder / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._asked = self._told = 0.0
        self.alternatives: Alternatives | None = None  # to what was refused, or loses much
        self.progress = Progress(self.tell, self.cancelled)

    @property
    def source(self) -> str:
        """The path of the table."""
        return str(self.request["source"])

    def tell(self, event: Event) -> None:
        """One line per event; shares of progress only a few times a second."""
        if event.kind == "progress":
            if event.at - self._told < 0.2:
                return
            self._told = event.at
        line = {"kind": event.kind, "text": event.text, "share": event.share, "at": round(time.time(), 3)}
        with contextlib.suppress(OSError):  # a full disk: what matters is whether the release can be written
            os.write(self._events, (json.dumps(line, ensure_ascii=False) + "\n").encode())

    def say_that_it_waits(self) -> None:
        """Tell the page that other runs come first."""
        self.tell(Event("step", "waiting for other runs of this workbench"))

    def cancelled(self) -> bool:
        """Asked in inner loops, so that the file is looked for only now and then."""
        if time.monotonic() - self._asked < 0.05:
            return False
        self._asked = time.monotonic()
        return (self.folder / "cancel").exists()

    def finish(self, result: dict[str, Any] | None = None, **outcome: Any) -> None:
        """Write the result and how the run ended."""
        if result is not None:
            write_json(self.folder / "result.json", result)
        if self.alternatives is not None:
            others = self.alternatives
            outcome["alternatives"] = {"basis": others.basis, "found": others.as_list()}
        write_json(self.folder / "outcome.json", {"ended": time.time(), **outcome})

    def watch(self) -> None:
        """End this process when it was asked to stop and does not (a query cannot be asked)."""
        while not (self.folder / "cancel").exists():
            time.sleep(0.25)
        time.sleep(GRACE)
        self.finish(ok=False, cancelled=True, error="cancelled; nothing was published")
        os._exit(130)


def _profile(run: WorkerRun) -> dict[str, Any]:
    """Look at every column, guess a policy, and keep what was seen for the pages."""
    from maskwright.engines import open_engine
    from maskwright.policy.policy import Policy
    from maskwright.policy.yaml_text import load_yaml
    from maskwright.runtime.memory_budget import MemoryBudget
    from maskwright.suggest import Answers, profile_table, suggest_from
    from maskwright.suggest.advice import find_unsuited
    from maskwright.workbench.columns import reading_of

    project = run.folder.parents[1]
    options = run.request["reading"]
    reading = reading_of(options)
    # empty and repeated names are repaired, and the policy says so; another encoding is for the user to choose
    reading = replace(reading, names=found_reading(run.source, reading).names)
    said = run.request.get("answers") or {}
    answers = Answers(**said) if said else None
    name, preset = (
        str(run.request["name"]),
        run.request.get("preset") or (answers.preset if answers else None),
    )

    def on_column(column: str, number: int, of: int) -> None:
        """Tell how far it is; raises where the run was cancelled."""
        run.tell(Event("progress", f"column {number + 1} of {of}", number / of))
        if run.cancelled():
            raise Cancelled("cancelled")

    run.tell(Event("step", "reading"))
    engine = open_engine()
    try:
        engine.allow(MemoryBudget.of(run.request.get("memory")).engine())
        table = engine.open(run.source, reading)
        run.tell(Event("step", "looking at the columns"))
        seen = profile_table(engine, table, preset, name, on_column)
        shutil.rmtree(project / "values", ignore_errors=True)
        profiles = [{**asdict(p), "unique_share": float(p.unique_share)} for p in seen[2]]
        found: dict[str, Any] = {"rows": seen[0], "columns": profiles, "reading": options, "preset": preset}
        found["mess"] = {
            m.column: {
                "steps": m.steps,
                "found": [r.text for r in seen.table.repairs if r.column == m.column],
            }
            for m in seen.mess
        }
        run.tell(Event("step", "guessing a policy"))
        if answers is not None:
            run.tell(Event("step", "trying policies on the table"))
        try:
            tried_on = run.source if answers is not None else None
            suggestion = suggest_from(engine, seen, preset, name, reading, tried_on, answers)
        except MaskwrightError as problem:
            found["problem"] = str(problem)
            (project / "policy.yaml").unlink(missing_ok=True)
        else:
            found["uniqueness"] = suggestion.summary_lines()[0]
            found |= {
                "answers": said,
                "reasons": answers.reasons() if answers else [],
                "words": suggestion.words,
            }
            # the bundled example comes with a policy of its own
            text = str(run.request.get("policy") or suggestion.text)
            _keep_values(project, Policy.of(load_yaml(text.encode(), "policy"), "policy"), seen[1])
            write_text(project / "policy.yaml", text)
            if answers is not None:
                run.tell(Event("step", "looking which methods and models can serve this table"))
                found["unsuited"] = asdict(find_unsuited(run.source, suggestion.policy))
        write_json(project / "profile.json", found)
    finally:
        engine.close()
    return {"rows": seen[0], "columns": len(profiles)}


def _keep_values(project: Path, policy: Policy, seen: list[Facts]) -> None:
    """Keep what the editor of hierarchies needs: values of columns that are coarsened."""
    from maskwright.workbench.columns import is_coarsened, values_of

    (project / "values").mkdir(mode=0o700)
    for i, facts in enumerate(seen):
        if is_coarsened(policy, facts.name):
            write_json(project / "values" / f"{i}.json", values_of(facts))


def _release(run: WorkerRun) -> dict[str, Any]:
    """Publish, and keep a few rows to look at."""
    from maskwright.api import anonymize
    from maskwright.pipeline.alternatives import alternatives_to
    from maskwright.pipeline.job import Job
    from maskwright.policy.policy import Policy
    from maskwright.report.verdict_words import verdict_words

    policy = Policy.load(run.request["policy"])
    destination = Path(run.request["destination"])
    job = Job(run.source, policy, memory=run.request.get("memory"))

    def look_for_others(release: Release | None) -> Alternatives | None:
        """What else would work, tried on the table."""
        run.tell(Event("step", "trying other settings"))
        with contextlib.suppress(MaskwrightError):
            return alternatives_to(job, release, run.cancelled)
        return None

    try:
        made = anonymize(
            run.source, policy, destination, memory=run.request.get("memory"), on_event=run.tell,
            cancelled=run.cancelled,
        )  # fmt: skip
    except PolicyNotMet as problem:
        problem.alternatives = look_for_others(None)
        raise
    others = look_for_others(made) if made.great_losses else None
    run.alternatives = others
    examples = rows_before_and_after(run.source, made)
    return {"release": made.as_dict(), "examples": examples, "words": list(verdict_words(made))}


def _choices(run: WorkerRun) -> dict[str, Any]:
    """All minimal choices of levels, measured."""
    from maskwright.pipeline.job import Job
    from maskwright.pipeline.what_if import explore_choices
    from maskwright.policy.policy import Policy

    job = Job(run.source, Policy.load(run.request["policy"]), memory=run.request.get("memory"))
    choices, number = explore_choices(job, on_event=run.tell, cancelled=run.cancelled)
    return {"choices": [c.as_dict() for c in choices], "number": number}


def _compare(run: WorkerRun) -> dict[str, Any]:
    """A comparison of several methods under the same requirements; where one refuses, the others go on."""
    from maskwright.api import compare as compare_policies
    from maskwright.policy.policy import Named, Policy

    policy = Policy.load(run.request["policy"])
    policies = []
    for choice in run.request["methods"]:
        method = Named(name=choice["name"], parameters={k: v for k, v in choice.items() if k != "name"})
        policies.append(policy.model_copy(update={"method": method}))
    found = compare_policies(
        run.source, policies, metrics=(), memory=run.request.get("memory"), cache=run.folder.parents[1] / "compared",
        on_event=run.tell, cancelled=run.cancelled,
    )  # fmt: skip
    points = zip(found.points, found.as_dict()["points"], strict=True)
    return {
        "points": [
            {**shown, "name": point.policy.method.name, "method": point.policy.to_dict()["method"]}
            for point, shown in points
        ]
    }


def _attack(run: WorkerRun) -> dict[str, Any]:
    """Every attack that applies to a release, for a chosen adversary."""
    from maskwright.attacks import ATTACKS
    from maskwright.pipeline.attacking import adversary_named, attack_target, target_of

    run.tell(Event("step", "attacking"))
    who = adversary_named(run.request["adversary"], run.request.get("facts"))
    found = attack_target(target_of(run.request["release"]), list(ATTACKS), who, run.progress)
    return {"beliefs": [b.as_dict() for b in found]}


def _predict(run: WorkerRun) -> dict[str, Any]:
    """How well a model learns from a release what it would learn from the table."""
    from maskwright.metrics.prediction import measure_prediction
    from maskwright.pipeline.attacking import published_parts
    from maskwright.policy.policy import Policy

    run.tell(Event("step", "training a model on the release, and one on the table"))
    target = run.request.get("target")
    folder = Path(run.request["release"])
    parts, exact = published_parts(folder), Policy.load(folder / "private" / "policy.yaml").recoding.exact
    part = next((p for p in parts if target in p.grouping.summary.sensitive), parts[0])
    found = measure_prediction(part.grouping, target, exact=exact, progress=run.progress)
    return asdict(found)


def _intersection(run: WorkerRun) -> dict[str, Any]:
    """What somebody learns who has several releases of the same people."""
    from maskwright.api import attack as attack_releases

    run.tell(Event("step", "attacking the releases together"))
    found = attack_releases([Path(r) for r in run.request["releases"]], "intersection")
    return {"beliefs": [b.as_dict() for b in (found if isinstance(found, list) else [found])]}


KINDS = {
    "profile": _profile,
    "release": _release,
    "space": _choices,
    "compare": _compare,
    "attack": _attack,
    "predict": _predict,
    "intersection": _intersection,
}


def main(folder: Path) -> int:
    """Do the job in a folder, with less priority than the pages."""
    os.umask(0o077)
    with contextlib.suppress(AttributeError, OSError):
        os.nice(10)  # the pages come first
    run = WorkerRun(folder)
    threading.Thread(target=run.watch, daemon=True).start()
    execute_job(run)
    return 0


def execute_job(run: WorkerRun) -> None:
    """Do what was asked for, and write how it ended."""
    try:
        with Turns(Path(run.request["turns"])).turn(run.cancelled, run.say_that_it_waits):
            result = KINDS[run.request["kind"]](run)
        run.finish(result, ok=True)
    except Cancelled as problem:
        run.finish(ok=False, cancelled=True, error=str(problem))
    except MaskwrightError as problem:
        run.alternatives = getattr(problem, "alternatives", None) or run.alternatives
        run.finish(ok=False, error=str(problem), exit=problem.exit_code)
    except MemoryError:
        run.finish(
            ok=False, error="out of memory; nothing was published. Start with --memory, or use fewer columns"
        )
    except OSError as problem:
        run.finish(ok=False, error=system_refused(problem), exit=2)
    except Exception as problem:
        # Its text may hold values of the table, so only its kind is kept.
        import traceback

        where = traceback.extract_tb(problem.__traceback__)[-1]
        kind = f"internal error: {type(problem).__name__} in {Path(where.filename).name}:{where.lineno}"
        run.finish(ok=False, error=f"{kind}; this is a bug, please report it")


ROWS = 12


def rows_before_and_after(source: str, release: Release) -> dict[str, Any]:
    """Rows of the table with what became of them; of releases that are not full-domain, rows of either side."""
    columns = [c for part in release.parts for c in part.columns if c in release.policy.columns]
    columns = list(dict.fromkeys(columns))
    engine = open_engine()
    try:
        before = [
            {c: row[c] for c in columns}
            for row in engine.sample(engine.open(source, reading_options(release.policy)), ROWS, columns)
        ]
        after = {
            part.name: engine.sample(engine.open(part.table, Reading(format=_format(part.table))), ROWS)
            for part in release.parts
        }
    finally:
        engine.close()
    pairs = _paired(before, release) if len(release.parts) == 1 else None
    return {"columns": columns, "before": before, "after": after, "pairs": pairs}


def _format(path: Path) -> Any:
    return path.suffix.lstrip(".")


def _paired(before: list[dict[str, str | None]], release: Release) -> list[dict[str, Any]] | None:
    """What each row became: its labels at the published levels, or None where its class was suppressed."""
    grouping = release.grouping
    if grouping.levels is None or release.policy.recoding.name != "generalise":
        return None
    published = {
        tuple(labels.texts[labels.of_group[g]] for labels in grouping.published_labels)
        for g in range(grouping.classes.n)
        if g != grouping.starred
    }
    maps = {}
    for hierarchy, level in zip(grouping.summary.attributes, grouping.levels, strict=True):
        chosen = hierarchy.levels[level]
        texts: dict[str | None, str | None] = {None: chosen.labels[chosen.blocks[0]]}
        texts |= {v: chosen.labels[chosen.blocks[i + 1]] for i, v in enumerate(hierarchy.values)}
        maps[hierarchy.attribute] = texts
    result = []
    for row in before:
        labels = {name: values.get(row[name], TOP) for name, values in maps.items()}
        kept = tuple(labels.values()) in published
        result.append({"before": row, "after": {**row, **labels} if kept else None})
    return result


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
