"""Compare policies on one table: the worst belief against usefulness, so that a custodian can choose.

Nothing is published. Every look is remembered (`maskwright.pipeline.history`): a release that is made later on the same
input says that its settings may have been chosen by their outcome, and guarantees nothing that such a choice voids.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from maskwright.attacks import ATTACKS
from maskwright.comparing.points import Candidate, policy_candidates
from maskwright.domain.release import Release
from maskwright.domain.shown import Shown
from maskwright.domain.verdict import parsed_number, plain_number
from maskwright.errors import InputError, NotVerified, PolicyError, PolicyNotMet, UsageError
from maskwright.metrics import METRICS
from maskwright.pipeline import history
from maskwright.pipeline.history import policy_hash, private_folder, state_folder
from maskwright.pipeline.job import Job, input_files, metrics_named, name_of
from maskwright.pipeline.what_if import Trials
from maskwright.policy.binding import reading_options
from maskwright.policy.policy import AnyPolicy, Policy
from maskwright.runtime import disk
from maskwright.runtime.events import Event, Progress
from maskwright.version import __version__

Number = Fraction | float | int


def pareto_front(points: Sequence[tuple[Number, Number]]) -> list[int]:
    """The numbers of the points that no other is at least as low in both and lower in one. Equal points stay.

    Sorted by the first value; one sweep.
    """
    order = sorted(range(len(points)), key=lambda i: (points[i][0], points[i][1]))
    front: list[int] = []
    for i in order:
        x, y = points[i]
        last = points[front[-1]] if front else None
        if last is None or y < last[1] or (x, y) == last:
            front.append(i)
    return front


FORMAT = 1  # counts up when the meaning of a stored result changes


class Cache:
    """Results of earlier comparisons, found again by content: input, policy, seed, metrics and version.

    Only numbers are kept, beliefs and metrics of policies that hold: no row, no label, no witness. A policy that does
    not hold is run again, because the reason may name values. The folder is readable by its owner only; `Cache(None)`
    remembers nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = private_folder(folder) if folder is not None else None

    @staticmethod
    def usual() -> Path:
        """The folder in which comparisons are kept."""
        return private_folder(state_folder()) / "comparisons"

    def key(self, fingerprint: str, policy: Policy, seed: int | None, metrics: Sequence[str]) -> str:
        """The name under which a run is kept: a hash of all that decides its outcome."""
        parts = [FORMAT, __version__, fingerprint, policy_hash(policy), seed, sorted(metrics)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def get(self, key: str) -> dict[str, Any] | None:
        """A stored result; a file that is damaged counts as none."""
        if self.folder is None:
            return None
        try:
            found = disk.read_json(self.folder / f"{key}.json")
        except (OSError, InputError):
            return None
        return found if isinstance(found, dict) and found.get("key") == key else None

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Store a result; a kill in the middle leaves no half of it."""
        if self.folder is None:
            return
        disk.write_whole(self.folder / f"{key}.json", json.dumps({"key": key, **result}), mode=0o600)


Status = Literal["holds", "not met", "refused"]
WORST = "worst"


@dataclass(frozen=True)
class Point:
    """One policy and what came of it.

    Attributes:
        name: unique in the comparison.
        policy: can be run as it is.
        status: "holds"; "not met" (no release satisfies it); "refused" (the policy does not fit the table).
        reason: why not, in words.
        beliefs: by attack, the largest belief (the upper end where it is not exact).
        metrics: by name.
        rows: published, and suppressed.
        cached: taken from an earlier comparison.
    """

    name: str
    policy: Policy
    status: Status
    reason: str = ""
    beliefs: Mapping[str, Fraction] = field(default_factory=dict)
    metrics: Mapping[str, Fraction | float | int] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    cached: bool = False

    @property
    def worst(self) -> Fraction | None:
        """The largest belief that any attack leads to; a belief in a range of values is none in a value."""
        counted = (value for name, value in self.beliefs.items() if ATTACKS[name].about != "ranges")
        return max(counted, default=None)

    def risk(self, attack: str) -> Fraction | None:
        """The belief that one attack reaches, or the worst of all; None: it was not measured."""
        return self.worst if attack == WORST else self.beliefs.get(attack)

    def as_dict(self) -> dict[str, Any]:
        """The point as JSON."""
        return {
            "name": self.name,
            "status": self.status,
            "reason": self.reason,
            "worst_belief": plain_number(self.worst) if self.worst is not None else None,
            "beliefs": {name: plain_number(value) for name, value in self.beliefs.items()},
            "metrics": {name: plain_number(value) for name, value in self.metrics.items()},
            "rows": dict(self.rows),
            "notes": list(self.notes),
            "cached": self.cached,
        }


@dataclass(frozen=True)
class TablePoint:
    """A table, a policy's or a candidate from elsewhere, compared on people who were held out.

    Attributes:
        name: of the table.
        risks: by attack what it adds to what succeeds without it, with the ends of its interval.
        distance: of its pairs of values from the true ones (mean total variation); None: not measured.
        why: why it was not attacked.
    """

    name: str
    risks: Mapping[str, tuple[float, float, float]]
    distance: float | None
    why: str = ""

    @property
    def worst(self) -> tuple[float, float, float] | None:
        """The largest risk of any attack, with its interval."""
        return max(self.risks.values(), default=None)

    def as_dict(self) -> dict[str, Any]:
        """The point as JSON."""
        risks = {name: dict(zip(("risk", "low", "high"), r, strict=True)) for name, r in self.risks.items()}
        return {"name": self.name, "risks": risks, "pair_distance": self.distance, "reason": self.why}


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """What `compare` returns: every point, and which two of their values are held against each other."""

    points: tuple[Point, ...]
    utility: str = "information-loss"
    risk: str = WORST
    source: str = ""
    inputs: tuple[Path, ...] = ()  # what was read: it is never replaced by what is saved
    tables: tuple[TablePoint, ...] = ()  # of candidates and policies, compared on people who were held out

    @property
    def shown(self) -> list[Point]:
        """The points that have both values."""
        return [p for p in self.points if p.risk(self.risk) is not None and self.utility in p.metrics]

    @property
    def front(self) -> list[Point]:
        """The points that no other beats in one value without losing in the other, the least risk first."""
        sign = 1 if METRICS[self.utility].better == "low" else -1
        values = [(p.risk(self.risk) or Fraction(0), sign * p.metrics[self.utility]) for p in self.shown]
        return [self.shown[i] for i in pareto_front(values)]

    def headline(self) -> str:
        """How many policies there are, hold, and are not beaten."""
        hold = sum(p.status == "holds" for p in self.points)
        return f"{len(self.points)} policies, of which {hold} hold and {len(self.front)} are not beaten by another"

    @property
    def ok(self) -> bool:
        """Does at least one policy hold?"""
        return any(p.status == "holds" for p in self.points)

    def as_dict(self) -> dict[str, Any]:
        """The comparison as JSON, with the points that no other beats."""
        front = {p.name for p in self.front}
        return {
            "ok": self.ok,
            "utility": self.utility,
            "risk": self.risk,
            "points": [p.as_dict() | {"pareto": p.name in front} for p in self.points],
            **({"tables": [t.as_dict() for t in self.tables]} if self.tables else {}),
        }

    def save(self, destination: str | Path, overwrite: bool = False) -> Path:
        """Write comparison.csv, comparison.json, the chart, a page, and the policy of every point."""
        from maskwright.comparing.output import save_comparison

        return save_comparison(self, Path(destination), overwrite)


def compare_policies(
    source: Any,
    policies: Sequence[AnyPolicy],
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    metrics: Sequence[str] = (),
    utility: str = "information-loss",
    risk: str = WORST,
    seed: int | None = 0,
    memory: str | None = None,
    cache: bool | Path = True,
    on_event: Callable[[Event], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Comparison:
    """See `maskwright.api.compare`."""
    wanted = metrics_named([*metrics, *([utility] if utility not in metrics else [])])
    costly = tuple(name for name in wanted if METRICS[name].on_request)
    chosen = policy_candidates(policies, grid or {})
    progress = Progress(on_event, cancelled)

    def inside(event: Event) -> None:  # steps and notes of a run would drown those of the comparison
        """Pass on the progress of a run, and nothing else of it."""
        if event.kind == "progress" and on_event:
            on_event(event)

    job = Job(source, chosen[0].policy, seed=seed, memory=memory, metrics=costly)
    trials = Trials(job, inside, cancelled)
    kept = Cache(Cache.usual() if cache is True else Path(cache) if cache else None)
    prints: dict[Any, str] = {}
    points, problems = [], []
    try:
        for number, candidate in enumerate(chosen):
            progress.step(f"comparing {number + 1} of {len(chosen)}: {candidate.name}", point=candidate.name)
            progress.share(number / len(chosen))
            look = reading_options(candidate.policy)
            if look not in prints:
                prints[look] = trials.fingerprint(candidate.policy)
            key = kept.key(prints[look], candidate.policy, seed, costly)
            stored = kept.get(key)
            if stored is not None:
                history.record_outcome(prints[look], history.policy_hash(candidate.policy), "compared")
                points.append(_point(candidate, stored, cached=True))
                continue
            try:
                result = _result(trials.release(candidate.policy))
            except (PolicyNotMet, NotVerified) as problem:
                result = {"status": "not met", "reason": str(problem)}
            except (PolicyError, InputError, UsageError) as problem:
                problems.append(problem)
                result = {"status": "refused", "reason": str(problem)}
            else:
                kept.put(key, result)
            points.append(_point(candidate, result))
    finally:
        trials.close()
    if len(problems) == len(points):
        raise problems[0]
    name = name_of(source) if isinstance(source, (str, Path)) else ""
    inputs = input_files(source, *(candidate.policy for candidate in chosen))
    found = Comparison(tuple(points), utility, risk, name, tuple(inputs))
    _check_risk(found)
    progress.emit(Event("done", f"{len(points)} policies compared"))
    return found


def _check_risk(found: Comparison) -> None:
    known = {name for p in found.points for name in p.beliefs}
    if known and found.risk != WORST and found.risk not in known:
        raise UsageError(
            f"no attack {found.risk!r} ran on these releases; there are worst, {', '.join(sorted(known))}"
        )


def _result(release: Release) -> dict[str, Any]:
    """What is kept of a release: numbers, no words about anybody."""
    grouping = release.grouping
    return {
        "status": "holds",
        "reason": "",
        "beliefs": {b.attack: str(b.worst.upper) for b in release.beliefs},
        "metrics": {name: plain_number(value) for name, value in release.metrics.items()},
        "rows": {"published": grouping.published_rows, "suppressed": grouping.suppressed_rows},
        "notes": [*_private_words(release), *(n for n in release.notes if "was not measured" in n)],
    }


def _private_words(release: Release) -> list[str]:
    """What a differentially private release would promise; the beliefs beside it hold under random worlds."""
    privacy = release.parts[0].method.privacy()
    if privacy is None:
        return []
    return [
        f"differentially private where its settings are fixed in advance ({privacy.phrase}), whatever anybody knows"
    ]


def _point(candidate: Candidate, result: Mapping[str, Any], cached: bool = False) -> Point:
    return Point(
        candidate.name, candidate.policy, result["status"], result["reason"],
        {name: Fraction(value) for name, value in result.get("beliefs", {}).items()},
        {name: parsed_number(value) for name, value in result.get("metrics", {}).items()},
        result.get("rows", {}), (*candidate.notes, *result.get("notes", ())), cached,
    )  # fmt: skip


__all__ = ["Comparison", "Point", "TablePoint", "compare_policies", "pareto_front"]
