"""Suggest a policy: profile a table, guess roles and hierarchies with reasons, and write them down with comments.

Everything is a guess, made from column names and counted values; the careful one where there is doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from maskwright.engines.base import Engine, Reading, Table
from maskwright.errors import InputError, MaskwrightError
from maskwright.pipeline.attempts import Attempt, Attempts
from maskwright.pipeline.job import Job
from maskwright.policy.policy import Policy
from maskwright.policy.yaml_text import load_yaml
from maskwright.suggest.hierarchy_guess import Coarsening, guess_hierarchy
from maskwright.suggest.mess import Mess, find_mess
from maskwright.suggest.presets import DEFAULT_K, PRESETS, Preset, find_preset
from maskwright.suggest.profile import ColumnProfile, Facts, look_at, look_at_all
from maskwright.suggest.roles import guess_role
from maskwright.suggest.sections import ELLS, Demand, Draft, how_unique, policy_text
from maskwright.suggest.topics import UNIT_KEYS
from maskwright.suggest.uniqueness import Uniqueness, measure_uniqueness

__all__ = ["PRESETS", "ColumnProfile", "Preset", "Suggestion", "Uniqueness", "suggest_for_table"]

OnColumn = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Suggestion:
    """A policy to start from; `text` is the same with comments, and parses to exactly `policy`."""

    policy: Policy
    text: str
    profiles: list[ColumnProfile]
    uniqueness: Uniqueness
    words: tuple[str, ...] = ()  # what was tried on the table, and why this policy was chosen
    tried: tuple[Attempt, ...] = ()

    def summary_lines(self) -> list[str]:
        """How unique people are now, what to check by hand, and what was tried."""
        notes = [f"{p.name}: {note}" for p in self.profiles for note in p.notes]
        return [how_unique(self.uniqueness), *notes, *self.words]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the guesses and the uniqueness, without the policy itself."""
        columns = [{**asdict(p), "unique_share": float(p.unique_share)} for p in self.profiles]
        uniqueness = {**asdict(self.uniqueness), "share": float(self.uniqueness.share)}
        tried = [attempt.as_dict() for attempt in self.tried]
        return {"preset": self.policy.preset, "columns": columns, "uniqueness": uniqueness, "tried": tried}


def suggest_for_table(
    engine: Engine,
    table: Table,
    preset: str | None = None,
    name: str = "the table",
    on_column: OnColumn | None = None,
    reading: Reading | None = None,
    source: Any = None,
) -> Suggestion:
    """Guess a policy for a table.

    Args:
        engine: what can count.
        table: opened by that engine.
        preset: a name from `PRESETS`; None: the settings for open data.
        name: what the comments call the table, usually its file name.
        on_column: called before each column with its name, its number from 0, and how many there are.
        reading: how the table was opened; what differs from the defaults is written into the policy.
        source: where the table was opened from: policies are tried on it, and one that keeps detail is chosen.
    """
    seen = profile_table(engine, table, preset, name, on_column)
    return suggest_from(engine, seen, preset, name, reading, source)


class Seen(NamedTuple):
    """What was seen of a table.

    Attributes:
        rows: how many.
        facts: of each column, after it was prepared.
        profiles: what is guessed from them.
        table: with its messy columns prepared.
        mess: what is wrong with which column.
    """

    rows: int
    facts: list[Facts]
    profiles: list[ColumnProfile]
    table: Table
    mess: list[Mess]


def profile_table(
    engine: Engine,
    table: Table,
    preset: str | None = None,
    name: str = "the table",
    on_column: OnColumn | None = None,
) -> Seen:
    """The rows of a table, what was seen of each column, and what is guessed from it; see `suggest_for_table`."""
    chosen = find_preset(preset)
    rows = engine.count(table)
    if not rows:
        raise InputError(f"{name}: the table has no rows, so that nothing can be guessed from it")
    facts, looked = [], look_at_all(engine, table, table.columns, rows)
    for number, column in enumerate(table.columns):
        if on_column is not None:
            on_column(column.name, number, len(table.columns))
        facts.append(next(looked))
    mess = [found for found in map(find_mess, facts) if found is not None]
    ready = engine.prepare(table, [(m.column, m.preparation) for m in mess])
    for number, column in enumerate(ready.columns):
        if any(m.column == column.name for m in mess):
            facts[number] = look_at(engine, ready, column, rows)
    notes = {m.column: m.notes for m in mess}
    profiles = [_profile(f, chosen) for f in facts]
    profiles = [replace(p, notes=(*notes.get(p.name, ()), *p.notes)) for p in profiles]
    return Seen(rows, facts, profiles, ready, mess)


def suggest_from(
    engine: Engine,
    seen: Seen,
    preset: str | None = None,
    name: str = "the table",
    reading: Reading | None = None,
    source: Any = None,
) -> Suggestion:
    """The policy that follows from a profile. See `suggest_for_table`."""
    rows, facts, profiles = seen.rows, seen.facts, seen.profiles
    known = [p.name for p in profiles if p.role == "quasi-identifier"]
    if not known:
        raise InputError(
            f"{name}: no column looks like something an attacker could know; write a policy by hand, and give at "
            "least one column the role quasi-identifier"
        )
    uniqueness = measure_uniqueness(engine, seen.table, known, rows)
    draft = Draft(
        name, rows, find_preset(preset), profiles, facts, uniqueness, _unit(profiles, rows), reading or Reading(),
        seen.mess, seen.table.repairs,
    )  # fmt: skip
    tried: tuple[Attempt, ...] = ()
    if source is not None:
        draft, tried = _tried(draft, source)
    text, words = policy_text(draft), draft.choice.words
    return Suggestion(_policy_of(draft), text, profiles, uniqueness, words, tried)


def _policy_of(draft: Draft) -> Policy:
    return Policy.of(load_yaml(policy_text(draft).encode(), "policy"), "policy")


SLOW_S = 8.0  # of processor time: an attempt that takes longer is given up
ALIKE = Fraction(21, 20)  # a simpler choice that loses so many times as much is as good
REMEMBERED = (
    "Each attempt is remembered as a look at this table: a release says *measured*, where settings fixed in advance "
    "could be *guaranteed*; init --untried writes a policy without looking."
)


def _tried(draft: Draft, source: Any) -> tuple[Draft, tuple[Attempt, ...]]:
    """The draft with the strictest choice that keeps detail, as tried on the table; and all that was tried."""
    try:
        attempts = Attempts(Job(source, _policy_of(draft)))
    except MaskwrightError as problem:
        untried = replace(draft.choice, words=(f"Not tried on the table: {problem}",))
        return replace(draft, choice=untried), ()
    found: dict[Demand, Attempt] = {}
    try:
        for ell in ELLS:
            for choice in _choices(ell):
                if not attempts.time_is_up:
                    drafted = replace(draft, choice=choice)
                    change = choice.in_words(drafted.protects)
                    found[choice] = attempts.attempt(_policy_of(drafted), change, most_s=SLOW_S)
            if not draft.protects or any(a.useful for c, a in found.items() if c.ell == ell):
                break
    finally:
        attempts.close()
    chosen = _chosen(found)
    if chosen is None:
        reasons = "; ".join(f"{a.change}: {a.refusal}" for a in found.values())
        refused = f"! Nothing that was tried on {attempts.basis()} could be published: {reasons}"
        return replace(draft, choice=replace(draft.choice, words=(refused,))), tuple(found.values())
    words = _what_was_tried(found, chosen, attempts.basis())
    return replace(draft, choice=replace(chosen, words=words)), tuple(found.values())


def _choices(ell: Fraction) -> list[Demand]:
    """What to try with this l: quick and simple methods first."""
    return [Demand("optimal-lattice", ell, "gate"), Demand("mondrian", ell), Demand("local-recoding", ell)]


def _chosen(found: dict[Demand, Attempt]) -> Demand | None:
    """The strictest l with a useful release, else one that loses hardly more than the least; then the least loss."""
    losses = {choice: a.loss for choice, a in found.items() if a.loss is not None}
    if not losses:
        return None
    useful = {c.ell for c in losses if found[c].useful}
    near = {c.ell for c, loss in losses.items() if loss <= ALIKE * min(losses.values())}
    ell = max(useful or near)
    here = {c: loss for c, loss in losses.items() if c.ell == ell and (found[c].useful or ell not in useful)}
    least = min(here.values())
    return next(c for c, loss in here.items() if loss <= ALIKE * least)


def _what_was_tried(found: dict[Demand, Attempt], chosen: Demand, basis: str) -> tuple[str, ...]:
    best = found[chosen]
    lines = [f"Tried on {basis}; chosen: {best.change}, which keeps {best.kept} of the detail."]
    for choice, attempt in found.items():
        if attempt.loss is None:
            lines.append(f"- {attempt.change}: {attempt.refusal.split(';')[0]}")
        elif choice != chosen:
            less = f"; {'; '.join(attempt.drawbacks)}" if attempt.drawbacks else ""
            lines.append(f"- {attempt.change}: keeps {attempt.kept}{less}")
    stricter = sorted({c.ell for c in found if c.ell > chosen.ell}, reverse=True)
    if stricter:
        lines.append(
            f"l = {chosen.ell}, not {stricter[0]}, because nothing that was tried with l = "
            f"{' or '.join(map(str, stricter))} keeps half of the detail and something of every column."
        )
    lines += [f"! {drawback}" for drawback in best.drawbacks]
    return (*lines, REMEMBERED)


def _profile(facts: Facts, chosen: Preset | None) -> ColumnProfile:
    found = guess_role(facts)
    suggestion: Coarsening | None = None
    if found.role == "quasi-identifier":
        suggestion = guess_hierarchy(facts, found.topic, chosen.k if chosen else DEFAULT_K)
    if chosen is not None:
        found, suggestion = chosen.adjust(facts, found, suggestion)
    ranged = facts.complete and found.role != "identifier" and found.topic != "postcode"
    numbers = facts.numbers if ranged else None
    return ColumnProfile(
        name=facts.name,
        kind=facts.kind,
        distinct=facts.distinct,
        missing=facts.missing,
        unique_share=facts.unique_share,
        minimum=facts.values[numbers.index(min(numbers))] if numbers else None,
        maximum=facts.values[numbers.index(max(numbers))] if numbers else None,
        role=found.role,
        reason=found.reason,
        hierarchy=suggestion.hierarchy if suggestion else None,
        levels=suggestion.levels if suggestion else None,
        notes=found.notes + (suggestion.notes if suggestion else ()),
        topic=found.topic,
    )


def _unit(profiles: Sequence[ColumnProfile], rows: int) -> str | None:
    """The column that tells persons apart, where some have several rows."""
    several = [p for p in profiles if p.topic in UNIT_KEYS and not p.missing and 1 < p.distinct < rows]
    return max(several, key=lambda p: p.distinct).name if several else None
