"""Alternatives: what else would do, where a policy is refused or its release loses much; each was tried on the table.

Those that ask for the same come first, then those that ask for less, each by what they keep. Nothing is offered that
was not tried, and no requirement is left out. What was found is kept in the folder of the installation, readable by its
owner only, so that `maskwright anonymize --choose 2` takes one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from maskwright.domain.release import Release
from maskwright.engines import engine_for
from maskwright.errors import DestinationError, PolicyError, UsageError
from maskwright.methods import METHODS
from maskwright.pipeline.attempts import Attempt, Attempts
from maskwright.pipeline.history import policy_hash, private_folder, state_folder
from maskwright.pipeline.job import Job
from maskwright.pipeline.trials import Trials
from maskwright.policy.policy import Policy
from maskwright.runtime import disk

TRIED = ("mondrian", "local-recoding", "optimal-lattice")
MOST = 6  # that are told
BUDGET_S = 12.0  # of processor time
MOST_ROWS = 99.9  # per cent: a few rows that are left out are not worth a word
SLOW_S = 4.0  # for one of them
LOWER_L = (Fraction(2), Fraction(3, 2))
LOWER_K = (5, 3, 2)


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
        yield f"{self.basis}; the same command with --choose and a number takes one:"
        for number, attempt in enumerate(self.found, start=1):
            share = 100 * float(attempt.published)
            rows = "" if share > MOST_ROWS else f" in {share:.1f} % of the rows"
            asks = "asks for less: " if attempt.asks_less else ""
            yield f"  {number}  keeps {attempt.kept:>5} of the detail{rows}: {asks}{attempt.change}"
            yield from (f"     but {line}" for line in attempt.drawbacks)

    def as_list(self) -> list[dict[str, Any]]:
        """For JSON: each with its whole policy."""
        return [attempt.as_dict() for attempt in self.found]


def alternatives_to(
    job: Job, release: Release | None = None, cancelled: Callable[[], bool] | None = None
) -> Alternatives:
    """Try other settings than those of a job, and keep what does better than its release (None: it was refused)."""
    if (job.engine or engine_for(job.source)) != "duckdb":
        return Alternatives((), "other settings are tried with the DuckDB engine only")
    attempts = Attempts(job, cancelled, BUDGET_S)
    try:
        for change, asks_less, policy in _candidates(job.policy):
            if attempts.time_is_up:
                break
            attempts.attempt(policy, change, asks_less, SLOW_S)
        _without_the_worst_column(attempts, job.policy)
    finally:
        attempts.close()
    least = None if release is None else release.metrics["information-loss"]
    found = [a for a in attempts.tried if a.loss is not None and (least is None or a.loss < least)]
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
    for method in methods:
        words = method["name"]
        if method != base["method"]:
            yield f"method {words}", False, _changed(policy, method=method)
        if gates:
            searched = [{**r, "use": "search"} if "use" in r else r for r in base["require"]]
            change = f"method {words} searches for what was a gate"
            yield change, False, _changed(policy, method=method, require=searched)
    for name, words in policy.keep.items():
        kept = {other: level for other, level in policy.keep.items() if other != name}
        for method in methods:
            change = f"{name} may become coarser than `keep` says ({words}), method {method['name']}"
            yield change, False, _changed(policy, method=method, keep=kept)
    for method in methods[:2]:
        for change, require in _lowered(base["require"]):
            words = f"{change}, method {method['name']}"
            yield words, True, _changed(policy, method=method, require=require)


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
    """The requirements with a smaller l, which is then searched for; and with a smaller k."""
    ells = [Fraction(str(r["l"])) for r in require if "l" in r]
    for ell in (e for e in LOWER_L if ells and e < min(ells)):
        lower = [{**r, "l": str(ell), "use": "search"} if "l" in r else r for r in require]
        yield f"l = {ell} instead of {min(ells)}", lower
    ks = [int(r["k"]) for r in require if r["model"] == "k-anonymity"]
    for k in [k for k in LOWER_K if ks and k < ks[0]][:1]:
        searched = [{**r, "use": "search"} if r.get("use") == "gate" else r for r in require]
        lower = [{**r, "k": k} if r["model"] == "k-anonymity" else r for r in searched]
        yield f"k = {k} instead of {ks[0]}", lower


def _without_the_worst_column(attempts: Attempts, policy: Policy) -> None:
    """Try the best that asks for the same without the column whose coarsening costs most."""
    held = [a for a in attempts.tried if a.loss is not None and not a.asks_less]
    if attempts.time_is_up or not held or len(policy.quasi_identifiers) < 2:
        return
    best = min(held, key=lambda a: a.loss or 0)
    name, lost = best.worst_columns[0]
    columns = {**best.policy.to_dict()["columns"], name: "identifier"}
    change = f"{best.change}, without the column {name} ({100 * float(lost):.0f} % of it is lost otherwise)"
    found = attempts.attempt(_changed(best.policy, columns=columns), change, False, SLOW_S)
    if found.loss is not None:  # the column that is left out is lost
        weights = {q: policy.columns[q].weight for q in policy.quasi_identifiers}
        total = sum(weights.values())
        loss = (found.loss * (total - weights[name]) + weights[name]) / total if total else found.loss
        attempts.tried[-1] = replace(found, loss=loss)


def _changed(policy: Policy, **parts: Any) -> Policy:
    return Policy.of({**policy.to_dict(), **parts}, "policy").beside(policy)


# --- choosing one ----------------------------------------------------------------------------------------


def chosen_alternative(job: Job, number: int, cancelled: Callable[[], bool] | None = None) -> Policy:
    """The policy that was told under a number; the alternatives are tried again where they are not remembered."""
    path = _path(job.policy, Trials(job).fingerprint(job.policy))
    try:
        policies = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        policies = [a.policy.to_dict() for a in alternatives_to(job, None, cancelled).found]
    if not 1 <= number <= len(policies):
        there = f"there are {len(policies)}" if policies else "none was found"
        raise UsageError(f"--choose {number}: {there} for this table and this policy")
    try:
        return Policy.of(policies[number - 1], "policy").beside(job.policy)
    except PolicyError:
        path.unlink(missing_ok=True)
        raise UsageError(
            f"--choose {number}: what was remembered is damaged; run without --choose again"
        ) from None


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
