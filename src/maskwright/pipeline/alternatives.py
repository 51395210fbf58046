"""Alternatives: policies tried within a time budget, on a sample where the table is large; nothing is published.

`init` chooses its policy by them, and a refusal, or a release that loses much, comes with alternatives: what else would
do. Those that ask for the same come first, then those that ask for less, each by what they keep. Nothing is offered
that was not tried on the table, and no requirement is left out. What was found is kept in the folder of the
installation, readable by its owner only, so that `maskwright anonymize --choose 2` takes one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from maskwright.domain.exact import text_of
from maskwright.domain.release import SHARE_LOST, Release
from maskwright.engines import engine_for
from maskwright.errors import (
    Cancelled,
    DestinationError,
    InputError,
    NotVerified,
    PolicyError,
    PolicyNotMet,
    UsageError,
)
from maskwright.methods import METHODS
from maskwright.metrics.loss import attribute_losses
from maskwright.pipeline import history
from maskwright.pipeline.history import OUTCOME_FREE, policy_hash, private_folder, state_folder
from maskwright.pipeline.job import Job, engine_of
from maskwright.pipeline.what_if import Trials
from maskwright.policy.binding import reading_options
from maskwright.policy.policy import Policy
from maskwright.runtime import disk
from maskwright.runtime.memory_budget import MemoryBudget
from maskwright.runtime.time_budget import TimeBudget

SAMPLED = 20_000  # rows: of a larger table so many are drawn for attempts
FEWER = 8_000  # rows: so many are drawn for attempts with a slow method
# Seconds are counted, not measured: what a method does, times what that usually takes. So the same table gets the same
# policy on a busy machine, too. Only what takes many times as long, or counts nothing, is given up by the clock.
BUDGET_S = 16.0  # of usual processor time for all attempts on a table
BEGIN_S, CELL_S = 0.1, 1e-6  # usual seconds of every attempt, and of each of its cells
MARGIN = 5  # times the usual time may be taken


@dataclass(frozen=True, eq=False)
class Attempt:
    """A policy that was tried on a table, or on a sample of it, and what came of it.

    Attributes:
        policy: can be run as it is.
        change: how it differs from what was asked for first, in words.
        asks_less: it gives up some of the protection that was asked for.
        loss: the information loss; None: no release satisfies the policy, or the time was up.
        drawbacks: of what little is left, in sentences, and
        reasons: why.
        published: the share of the rows.
        worst_columns: quasi-identifiers by what is lost of them, the most first.
        refusal: why there is no release.
        finished: it was not given up for its time.
        seconds: of processor time that it usually takes.
        combinations: of the quasi-identifiers, in what it was tried on.
        fewer: it was tried on fewer rows than others, of which every method keeps less.
    """

    policy: Policy
    change: str
    asks_less: bool = False
    loss: Fraction | None = None
    drawbacks: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    published: Fraction = Fraction(0)
    worst_columns: tuple[tuple[str, Fraction], ...] = ()
    refusal: str = ""
    finished: bool = True
    seconds: float = 0.0
    combinations: int = 0
    fewer: bool = False

    @property
    def useful(self) -> bool:
        """Whether a release could be made that leaves something of every column, and half of the detail."""
        return self.loss is not None and not self.drawbacks

    @property
    def columns_lost(self) -> int:
        """The number of quasi-identifiers of which nothing is left."""
        return sum(lost == 1 for _, lost in self.worst_columns)

    def lost_columns(self, policy: Policy) -> tuple[str, ...]:
        """The quasi-identifiers of which nothing is left, and that need not stay; none where no other would be left."""
        lost = tuple(n for n, share in self.worst_columns if share == 1 and n not in policy.keep)
        return lost if len(lost) < len(self.worst_columns) else ()

    @property
    def kept(self) -> str:
        """What is kept of the detail of the quasi-identifiers, for people."""
        return "" if self.loss is None else f"{100 * (1 - float(self.loss)):.0f} %"

    @property
    def also_lost(self) -> tuple[str, ...]:
        """The drawbacks that do not follow from what is kept."""
        return tuple(line for line in self.drawbacks if not line.endswith(SHARE_LOST))

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with the whole policy."""
        return {
            "change": self.change,
            "asks_less": self.asks_less,
            "information_loss": None if self.loss is None else str(self.loss),
            "kept": self.kept,
            "published": str(self.published),
            "drawbacks": list(self.drawbacks),
            "policy": self.policy.to_dict(),
        }


class Attempts:
    """Policies tried one after the other within a time budget, on a sample where the table is large.

    Each is a look at the input, and is remembered as one. Classes are measured and nothing is attacked, unless the
    policy bounds a belief. Only the DuckDB engine can draw a sample, so that Spark tables are not tried.
    """

    def __init__(
        self, job: Job, cancelled: Callable[[], bool] | None = None, budget_s: float = BUDGET_S
    ) -> None:
        self.done = 0.0  # usual seconds
        self.time, self.stopped = TimeBudget(budget_s, lambda: self.done), cancelled
        self.rows, self.sampled, self.fingerprint, self.tried = 0, 0, "", list[Attempt]()
        self.job = replace(job, attacks=(), metrics=(), destination=None, into=None, overwrite=False)
        self._one, self._clock = (
            self.time,
            TimeBudget(budget_s, time.process_time),
        )  # of the attempt that goes on
        self.trials = Trials(self._on_sample(SAMPLED), None, self._is_over, self._work)
        self.on_fewer: Trials | None = None

    def _on_sample(self, most: int) -> Job:
        """The job on so many rows of the table; on all of them where a sample of nearly all would save nothing."""
        engine = engine_of(self.job)
        try:
            engine.allow(MemoryBudget.of(self.job.memory).engine())
            table = engine.open(self.job.source, reading_options(self.job.policy))
            self.rows, self.fingerprint = engine.count(table), engine.fingerprint(table)
            self.columns = len(table.columns)
            if self.rows <= most + most // 4:
                return self.job
            if most == SAMPLED:
                self.sampled = most
            return replace(self.job, source=engine.sample_table(table, most))
        finally:
            engine.close()

    @property
    def times_fewer(self) -> float:
        """How many times as many rows an attempt on a sample has as one on fewer rows; 1: all rows are tried."""
        return max(1.0, self.sampled / FEWER)

    def _is_over(self) -> bool:
        late = self._clock.spent > self._one.seconds + MARGIN * self._one.spent
        return self._one.is_over or late or bool(self.stopped and self.stopped())

    def _work(self, usual_s: float) -> None:
        self.done += usual_s

    def attempt(
        self,
        policy: Policy,
        change: str,
        asks_less: bool = False,
        most_s: float | None = None,
        fewer: bool = False,
    ) -> Attempt:
        """Try a policy, for at most so many usual seconds of processor time; `fewer`: on fewer rows than the others."""
        left = self.time.left
        self._one, self._clock = (
            TimeBudget(min(left, most_s or left), self.time.clock),
            TimeBudget(0, time.process_time),
        )
        fewer = fewer and self.times_fewer > 1
        self._work(BEGIN_S + CELL_S * self.columns * (FEWER if fewer else self.sampled or self.rows))
        found = Attempt(policy, change, asks_less, fewer=fewer)
        if fewer and self.on_fewer is None:
            self.on_fewer = Trials(self._on_sample(FEWER), None, self._is_over, self._work)
        trials = self.on_fewer if fewer and self.on_fewer is not None else self.trials
        try:
            found = _measured_attempt(found, trials.release(policy))
        except Cancelled:
            if self.stopped and self.stopped():
                raise
            found = replace(found, refusal="not finished in the time for attempts", finished=False)
        except (PolicyNotMet, NotVerified, PolicyError, InputError, UsageError) as problem:
            found = replace(found, refusal=str(problem))
        if self.sampled or fewer:
            history.record_outcome(self.fingerprint, history.policy_hash(policy), "compared")
        found = replace(found, seconds=self._one.spent)
        self.tried.append(found)
        return found

    def times(self, combinations: int) -> float:
        """How many times as many combinations of quasi-identifiers the table has as the sample that was tried."""
        seen = max((a.combinations for a in self.tried if not a.fewer), default=0)
        return max(1.0, combinations / seen) if self.sampled and seen else 1.0

    def basis(self) -> str:
        """What the attempts were made on, in words."""
        if self.sampled:
            return f"a sample of {self.sampled:,} of the {self.rows:,} rows"
        return f"all {self.rows:,} rows"

    def close(self) -> None:
        """Let go of the tables."""
        self.trials.close()
        if self.on_fewer is not None:
            self.on_fewer.close()


def _measured_attempt(attempt: Attempt, release: Release) -> Attempt:
    g = release.grouping
    lost = attribute_losses(g)
    return replace(
        attempt,
        loss=Fraction(release.metrics["information-loss"]),
        drawbacks=release.great_losses,
        reasons=release.loss_reasons,
        combinations=g.summary.n_tuples,
        published=Fraction(g.published_rows, max(1, g.summary.n_rows)),
        worst_columns=tuple(sorted(lost.items(), key=lambda item: -item[1])),
    )


TRIED = ("mondrian", "local-recoding", "optimal-lattice")
MOST = 6  # that are told
ALTERNATIVES_S = 12.0  # of processor time
MOST_ROWS = 99.9  # per cent: a few rows that are left out are not worth a word
SLOW_S = 4.0  # for one of them
LOWER_L = (Fraction(2), Fraction(3, 2))
LOWER_K = (5, 3, 2)
LOOSER = {
    "belief": ("max", (Fraction(1, 2), Fraction(2, 3), Fraction(9, 10))),
    "t-closeness": ("t", (Fraction(1, 5), Fraction(3, 10), Fraction(1, 2))),
}  # the setting of a model, and bounds that ask for less


@dataclass(frozen=True, eq=False)
class Alternatives:
    """What was found: the best first. `basis` says what was tried on what."""

    found: tuple[Attempt, ...]
    basis: str

    def lines(self) -> Iterator[str]:
        """For people: one line each, with its number."""
        if not self.found:
            yield f"{self.basis}: nothing that was tried does better"
            return
        yield f"{self.basis}; to take one, run the same command with --choose and its number:"
        for number, attempt in enumerate(self.found, start=1):
            share = 100 * float(attempt.published)
            rows = "" if share > MOST_ROWS else f" in {share:.1f} % of the rows"
            asks = "asks for less: " if attempt.asks_less else ""
            yield f"  {number}  keeps {attempt.kept:>5} of the detail{rows}: {asks}{attempt.change}"
            yield from (f"     but {line}" for line in attempt.also_lost)

    def as_list(self) -> list[dict[str, Any]]:
        """For JSON: each with its whole policy."""
        return [attempt.as_dict() for attempt in self.found]


def alternatives_to(
    job: Job, release: Release | None = None, cancelled: Callable[[], bool] | None = None
) -> Alternatives:
    """Try other settings than those of a job, and keep what does better than its release (None: it was refused)."""
    if (job.engine or engine_for(job.source)) != "duckdb":
        return Alternatives((), "other settings are tried with the DuckDB engine only")
    attempts = Attempts(job, cancelled, ALTERNATIVES_S)
    try:
        for change, asks_less, policy in _candidates(job.policy):
            if attempts.time.is_over:
                break
            attempts.attempt(policy, change, asks_less, SLOW_S)
        _without_the_worst_columns(attempts, job.policy)
    finally:
        attempts.close()
    least = None if release is None else release.metrics["information-loss"]
    most = 1 if least is None else least  # what keeps nothing is no alternative
    found = [a for a in attempts.tried if a.loss is not None and a.loss < most]
    found.sort(key=lambda a: (a.asks_less, a.loss))
    number = len(attempts.tried)
    basis = f"{number} other setting{'s' if number != 1 else ''} tried on {attempts.basis()}"
    result = Alternatives(tuple(found[:MOST]), basis)
    _remember(job.policy, attempts.fingerprint, result)
    return result


def _candidates(policy: Policy) -> Iterator[tuple[str, bool, Policy]]:
    """What to try: how it differs in words, whether it asks for less, and the policy."""
    base = policy.to_dict()
    methods = _methods(base) if policy.recoding.name == "generalise" else [base["method"]]
    gates = any(r.get("use") == "gate" for r in base["require"])
    for change, columns in _without_insensitive(policy):
        for method in sorted(methods, key=lambda m: m != base["method"]):
            words = change if method == base["method"] else f"{change}, method {method['name']}"
            yield words, False, _changed(policy, method=method, columns=columns)
    for method in methods:
        words = method["name"]
        if method != base["method"]:
            yield f"method {words}", False, _changed(policy, method=method)
        if gates:
            searched = [{**r, "use": "search"} if "use" in r else r for r in base["require"]]
            change = f"method {words} searches for what was a gate"
            yield change, False, _changed(policy, method=method, require=searched)
    yield from _more_left_out(policy)
    for name, words in policy.keep.items():
        kept = {other: level for other, level in policy.keep.items() if other != name}
        for method in methods:
            change = f"{name} may become coarser than `keep` says ({words}), method {method['name']}"
            yield change, False, _changed(policy, method=method, keep=kept)
    for method in methods[:2]:
        for change, require in _lowered(base["require"]):
            words = f"{change}, method {method['name']}"
            yield words, True, _changed(policy, method=method, require=require)


def _more_left_out(policy: Policy) -> Iterator[tuple[str, bool, Policy]]:
    """Where the search leaves out small classes only: a larger k, which then can lose less, and whatever fails."""
    base = policy.to_dict()
    method = METHODS.get(policy.method.name)
    options = (
        {k: f.default for k, f in method.model_fields.items()} | policy.method.parameters if method else {}
    )
    on_values = [r for r in base["require"] if r["model"] != "k-anonymity" and r.get("use") != "gate"]
    if options.get("suppress") != "small-classes" or not options.get("suppression") or not on_values:
        return
    for k in [int(r["k"]) for r in base["require"] if r["model"] == "k-anonymity"][:1]:
        larger = [{**r, "k": 2 * k} if r["model"] == "k-anonymity" else r for r in base["require"]]
        yield (
            f"k = {2 * k} instead of {k}, which lets more people be left out",
            False,
            _changed(policy, require=larger),
        )
    dropping = {**base["method"], "suppress": "failing-classes"}
    yield "whatever fails is left out (suppress: failing-classes)", False, _changed(policy, method=dropping)


def _without_insensitive(policy: Policy) -> Iterator[tuple[str, dict[str, Any]]]:
    """The columns without insensitive ones that may not single people out, and with those as quasi-identifiers."""
    columns = policy.to_dict()["columns"]
    asked = [c for c in policy.with_role("insensitive") if policy.columns[c].near_unique != "allow"]
    if asked:
        names = ", ".join(asked)
        yield f"without {names}", {name: entry for name, entry in columns.items() if name not in asked}
        yield f"{names} as quasi-identifier", {**columns, **dict.fromkeys(asked, "quasi-identifier")}


def _methods(base: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The methods to try, with what the policy says of its own that they know, too."""
    old = base["method"]
    if old["name"] not in METHODS or METHODS[old["name"]].several_tables:
        return [dict(old)]
    made = []
    for name in TRIED:
        known = METHODS[name].model_fields
        made.append(
            dict(old)
            if name == old["name"]
            else {k: v for k, v in old.items() if k in known} | {"name": name}
        )
    return made


def _lowered(require: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The requirements with a smaller l, which is then searched for; with a looser bound; and with a smaller k."""
    ells = [Fraction(str(r["l"])) for r in require if "l" in r]
    for ell in (e for e in LOWER_L if ells and e < min(ells)):
        lower = [{**r, "l": str(ell), "use": "search"} if "l" in r else r for r in require]
        yield f"l = {ell} instead of {min(ells)}", lower
    yield from _looser(require)
    ks = [int(r["k"]) for r in require if r["model"] == "k-anonymity"]
    for k in [k for k in LOWER_K if ks and k < ks[0]][:1]:
        searched = [{**r, "use": "search"} if r.get("use") == "gate" else r for r in require]
        lower = [{**r, "k": k} if r["model"] == "k-anonymity" else r for r in searched]
        yield f"k = {k} instead of {ks[0]}", lower


def _looser(require: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The requirements with a looser bound on beliefs or distances; what can be searched for is."""
    for model, (setting, bounds) in LOOSER.items():
        asked = [Fraction(str(r[setting])) for r in require if r["model"] == model]
        for bound in [b for b in bounds if asked and b > max(asked)][:2]:
            looser = [
                {**r, setting: text_of(bound)}
                | ({"use": "search"} if model != "belief" and "use" in r else {})
                if r["model"] == model
                else r
                for r in require
            ]
            yield f"{model} with {setting} = {text_of(bound)} instead of {text_of(max(asked))}", looser


def _without_the_worst_columns(attempts: Attempts, policy: Policy) -> None:
    """Try the best that asks for the same without the columns that are lost anyway, or the one that loses most."""
    held = [a for a in attempts.tried if a.loss is not None and not a.asks_less]
    if attempts.time.is_over or not held:
        return
    best = min(held, key=lambda a: a.loss or 0)
    may_go = {name: lost for name, lost in best.worst_columns if name not in policy.keep}
    names = best.lost_columns(policy) or tuple(may_go)[:1]
    if not names or len(best.worst_columns) <= len(names):
        return
    lost = (
        f"{100 * float(may_go[names[0]]):.0f} % of {'it is' if len(names) == 1 else 'them is'} lost otherwise"
    )
    change = f"{best.change}, without the column{'s' if len(names) > 1 else ''} {', '.join(names)} ({lost})"
    found = attempts.attempt(without_columns(best.policy, names), change, False, SLOW_S)
    if found.loss is not None:
        attempts.tried[-1] = replace(found, loss=loss_with_columns(found.loss, best.policy, names))


def without_columns(policy: Policy, names: Collection[str]) -> Policy:
    """A policy that does not publish some columns: it does not name them."""
    columns = {name: entry for name, entry in policy.to_dict()["columns"].items() if name not in names}
    return _changed(policy, columns=columns)


def loss_with_columns(loss: Fraction, policy: Policy, names: Collection[str]) -> Fraction:
    """The loss of a release, with some quasi-identifiers that it leaves out counted as lost."""
    weights = {q: policy.columns[q].weight for q in policy.quasi_identifiers}
    total, left_out = sum(weights.values()), sum(weights[name] for name in names)
    return (loss * (total - left_out) + left_out) / total if total else loss


def _changed(policy: Policy, **parts: Any) -> Policy:
    return Policy.of({**policy.to_dict(), **parts}, "policy").beside(policy)


# --- choosing one ----------------------------------------------------------------------------------------


def chosen_alternative(job: Job, number: int) -> Policy:
    """The policy that was told under a number for this table and this policy; nothing that nobody was told.

    What decides no outcome (where and how it is written, what is said about it) is taken from the policy as it is now.
    """
    path = _path(job.policy, Trials(job).fingerprint(job.policy))
    again = "run without --choose, which lists the numbers"
    damaged = UsageError(f"--choose {number}: what was remembered is damaged; {again}")
    try:
        policies = disk.read_json(path)
    except OSError:
        raise UsageError(
            f"--choose {number}: no alternatives were listed for this table and this policy; {again}"
        ) from None
    except InputError:
        policies = None
    if not isinstance(policies, list):
        path.unlink(missing_ok=True)
        raise damaged
    if not 1 <= number <= len(policies):
        there = f"there are {len(policies)}" if policies else "none was found"
        raise UsageError(f"--choose {number}: {there} for this table and this policy")
    now = job.policy.to_dict()
    try:
        told = {k: v for k, v in dict(policies[number - 1]).items() if k not in OUTCOME_FREE}
        return Policy.of(told | {k: now[k] for k in OUTCOME_FREE if k in now}, "policy").beside(job.policy)
    except (PolicyError, TypeError, ValueError):
        path.unlink(missing_ok=True)
        raise damaged from None


def _remember(policy: Policy, fingerprint: str, result: Alternatives) -> None:
    path = _path(policy, fingerprint)
    try:
        private_folder(path.parent.parent)
        private_folder(path.parent)
        disk.write_whole(path, json.dumps([a.policy.to_dict() for a in result.found]), mode=0o600)
    except (OSError, DestinationError):
        return  # they are tried again when one is chosen


def _path(policy: Policy, fingerprint: str) -> Any:
    name = hashlib.sha256(f"{fingerprint} {policy_hash(policy)}".encode()).hexdigest()
    return state_folder() / "alternatives" / f"{name}.json"
