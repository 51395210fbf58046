"""Suggest a policy: profile a table, guess roles and hierarchies with reasons, and write them down with comments.

Everything is a guess, made from column names and counted values; the careful one where there is doubt.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from maskwright.domain.shown import Shown
from maskwright.engines.base import Engine, Reading, Table
from maskwright.errors import InputError, MaskwrightError, UsageError
from maskwright.pipeline.alternatives import FEWER, Attempt, Attempts, loss_with_columns
from maskwright.pipeline.job import Job
from maskwright.policy.policy import Policy, counted_roles
from maskwright.policy.yaml_text import load_yaml
from maskwright.suggest.advice import Answers
from maskwright.suggest.hierarchy_guess import (
    SUPPRESS,
    Coarsening,
    guess_hierarchy,
    may_be_codes,
    ready_hierarchy,
)
from maskwright.suggest.merged_values import FEWEST, IN_GROUPS, MOST, similar_values_merged
from maskwright.suggest.mess import Length, Mess, find_mess, lengths_on_offer
from maskwright.suggest.presets import DEFAULT_K, PRESETS, Preset, find_preset
from maskwright.suggest.profile import ColumnProfile, Facts, look_at, look_at_all
from maskwright.suggest.roles import guess_role
from maskwright.suggest.sections import ELLS, METHODS, Demand, Draft, how_unique, policy_text, yaml_flow
from maskwright.suggest.topics import OF_ONE_PERSON, UNIT_KEYS
from maskwright.suggest.uniqueness import Uniqueness, measure_uniqueness

__all__ = ["PRESETS", "Answers", "ColumnProfile", "Preset", "Suggestion", "Uniqueness", "suggest_for_table"]

TRIED = ("optimal-lattice", "mondrian", "local-recoding")  # quick and simple ones first
USES = {"optimal-lattice": "gate"}  # how the requirement on values is used; the others search for it
ALIKE_ROWS = 10_000  # that values are compared in
OnColumn = Callable[[str, int, int], None]


@dataclass(frozen=True, repr=False)
class Suggestion(Shown):
    """A policy to start from; `text` is the same with comments, and parses to exactly `policy`."""

    policy: Policy
    text: str
    profiles: list[ColumnProfile]
    uniqueness: Uniqueness
    words: tuple[str, ...] = ()  # what was tried on the table, and why this policy was chosen
    tried: tuple[Attempt, ...] = ()

    def headline(self) -> str:
        """How many columns have which role."""
        return counted_roles(Counter(p.role for p in self.profiles))

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
    answers: Answers | None = None,
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
        answers: who gets the data, what they may know and need: decides the preset, the methods, whether to try.
    """
    preset = preset or (answers.preset if answers else None)
    seen = profile_table(engine, table, preset, name, on_column)
    return suggest_from(engine, seen, preset, name, reading, source, answers)


class Seen(NamedTuple):
    """What was seen of a table.

    Attributes:
        rows: how many.
        facts: of each column, after it was prepared.
        profiles: what is guessed from them.
        table: with its messy columns prepared.
        mess: what is wrong with which column.
        lengths: that could be published in place of dates.
    """

    rows: int
    facts: list[Facts]
    profiles: list[ColumnProfile]
    table: Table
    mess: list[Mess]
    lengths: list[Length]


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
        raise InputError(f"{name}: the table has no rows, so nothing can be guessed from it")
    facts, looked = [], look_at_all(engine, table, table.columns, rows)
    for number, column in enumerate(table.columns):
        if on_column is not None:
            on_column(column.name, number, len(table.columns))
        facts.append(next(looked))
    found = {f.name: messy for f in facts if (messy := find_mess(f)) is not None}
    mess = [messy for messy in found.values() if messy.steps]
    ready = engine.prepare(table, [(m.column, m.preparation) for m in mess])
    for number, column in enumerate(ready.columns):
        if any(m.column == column.name for m in mess):
            facts[number] = look_at(engine, ready, column, rows)
    profiles = _with_similar_values(engine, ready, facts, [_profile(f, chosen) for f in facts])
    notes = {
        p.name: found[p.name].notes
        for p in profiles
        if p.name in found and (found[p.name].steps or p.role == "sensitive")
    }
    lengths = lengths_on_offer(profiles, facts)
    for offer in lengths:
        notes[offer.dates[-1]] = (*notes.get(offer.dates[-1], ()), offer.note)
    profiles = [replace(p, notes=(*notes.get(p.name, ()), *p.notes)) for p in profiles]
    return Seen(rows, facts, profiles, ready, mess, lengths)


def _with_similar_values(
    engine: Engine, table: Table, facts: Sequence[Facts], profiles: Sequence[ColumnProfile]
) -> list[ColumnProfile]:
    """The profiles; texts and codes without a hierarchy get groups of values whose people are alike."""
    known = {f.name: f for f, p in zip(facts, profiles, strict=True) if p.role == "quasi-identifier"}
    bare = [
        p.name
        for p in profiles
        if p.name in known and p.hierarchy == SUPPRESS and p.levels is None
        and FEWEST <= p.distinct <= MOST
        and (p.kind == "text" or may_be_codes(known[p.name], p.topic))
    ]  # fmt: skip
    if not bare or len(known) < 2:
        return list(profiles)
    try:
        drawn = engine.open(engine.sample_table(table, ALIKE_ROWS), Reading())
    except UsageError:  # only DuckDB draws samples
        return list(profiles)
    rows = engine.sample(drawn, ALIKE_ROWS, list(known))
    cells = {name: [row[name] for row in rows] for name in known}
    groups = {
        name: similar_values_merged(
            known[name], cells[name], {o: (f, cells[o]) for o, f in known.items() if o != name}
        )
        for name in bare
    }
    return [
        replace(p, hierarchy=found, notes=(*p.notes, IN_GROUPS)) if (found := groups.get(p.name)) else p
        for p in profiles
    ]


def suggest_from(
    engine: Engine,
    seen: Seen,
    preset: str | None = None,
    name: str = "the table",
    reading: Reading | None = None,
    source: Any = None,
    answers: Answers | None = None,
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
    unit = _unit(profiles, rows)
    draft = Draft(
        name, rows, find_preset(preset), profiles, facts, uniqueness, unit, reading or Reading(),
        seen.mess, seen.lengths, seen.table.repairs, advice=tuple(answers.reasons()) if answers else (),
        own=_same_for_each_person(engine, seen.table, unit, known),
    )  # fmt: skip
    tried: tuple[Attempt, ...] = ()
    if source is not None and (answers is None or answers.tried):
        draft, tried = _tried(draft, source, answers.methods if answers else TRIED)
    text, words = policy_text(draft), draft.choice.words
    return Suggestion(_policy_of(draft), text, profiles, uniqueness, words, tried)


def _policy_of(draft: Draft) -> Policy:
    return Policy.of(load_yaml(policy_text(draft).encode(), "policy"), "policy")


SLOW_S = {"optimal-lattice": 3.0}  # of processor time: an attempt that takes longer is given up
LONGEST_S = 8.0  # for the others
TRIED_SEED = 1  # of attempts, of which nothing is published: they are the same in every installation
LAST_S = 4.0  # are kept for a last attempt without the columns of which nothing is left
LONG_S = 60.0  # whoever waits longer is told before
PATIENCE_S = 300.0  # nobody is to wait longer for a first release where another one keeps nearly as much
NEARLY = Fraction(5, 4)  # times the loss
GROWS = {
    "local-recoding": 2
}  # the power of the rows by which the time of a method grows, where that is not 1
SURE_LOSS = Fraction(
    9, 20
)  # on a sample: on the whole table it may be a little more, and is to be less than half
SAME = Fraction(
    101, 100
)  # columns that are lost anyway are left out where no more than this is lost of the others
ALIKE = Fraction(21, 20)  # a simpler choice that loses so many times as much is as good
HOPELESS = Fraction(3, 4)  # what loses more than this of fewer rows is not useful on all of them
HARDLY = Fraction(11, 10)  # a weaker l has to save more of the loss than this where nothing is useful
REMEMBERED = (
    "Each attempt is remembered as a look at this table: a release says *measured*, where settings fixed in advance "
    "could be *guaranteed*; init --untried writes a policy without looking."
)


def _tried(draft: Draft, source: Any, methods: Sequence[str]) -> tuple[Draft, tuple[Attempt, ...]]:
    """The draft with the strictest choice that keeps detail, as tried on the table; and all that was tried."""
    try:
        attempts = Attempts(Job(source, _policy_of(draft), seed=TRIED_SEED))
    except MaskwrightError as problem:
        untried = replace(draft.choice, words=(f"Not tried on the table: {problem}",))
        return replace(draft, choice=untried), ()
    tried, sampled = _TriedChoices(draft, attempts), bool(attempts.sampled)
    found = tried.found
    try:
        for ell in ELLS:
            for choice in _choices(ell, methods):
                tried.attempt(choice)
            if not draft.protects or any(_enough(a, sampled) for c, a in found.items() if c.ell == ell):
                break
        best, times = _chosen(found, sampled), attempts.times(draft.uniqueness.combinations)
        chosen = None if best is None else _sooner(found, best, times, sampled)
        spared, sparing = (
            ((), None) if chosen is None else _without_lost_columns(draft, chosen, found, attempts)
        )
    finally:
        attempts.close()
    if chosen is None:
        reasons = "; ".join(f"{a.change}: {a.refusal}" for a in found.values())
        refused = f"! Nothing that was tried on {attempts.basis()} could be published: {reasons}"
        return replace(draft, choice=replace(draft.choice, words=(refused,))), tuple(attempts.tried)
    words = _what_was_tried(found, chosen, attempts.basis(), times, sparing)
    if sparing is not None:
        words = (_without_these(spared, sparing), *words)
    return replace(draft, choice=replace(chosen, words=words), left_out=spared), tuple(attempts.tried)


class _TriedChoices:
    """Choices tried one after the other while there is time; a slow method on fewer rows where all take too long."""

    def __init__(self, draft: Draft, attempts: Attempts) -> None:
        self.draft, self.attempts, self.found = draft, attempts, dict[Demand, Attempt]()
        self.longest = dict[
            tuple[str, bool], float
        ]()  # seconds of an attempt with each method, of all rows or fewer

    def attempt(self, choice: Demand) -> None:
        """Try a choice, if it can be finished."""
        method, drafted = choice.method, replace(self.draft, choice=choice)
        change, power = choice.in_words(drafted.protects), GROWS.get(method, 1)
        policy, most_s = _policy_of(drafted), SLOW_S.get(method, LONGEST_S)
        for few in (True, False) if power > 1 and self.attempts.times_fewer > 1 else (False,):
            # the time that is kept for a last attempt is spent where there would be nothing to improve by it
            kept_s = LAST_S if any(a.loss is not None for a in self.found.values()) else 0.0
            if self.longest.get((method, few), 0.0) > self.attempts.time.left - kept_s:
                break
            words = f"{change} (tried on {FEWER:,} rows)" if few else change
            tried = self.attempts.attempt(policy, words, most_s=most_s, fewer=few)
            # a lattice that is not finished is as large with another l
            given_up = choice.use == "gate" and not tried.finished
            self.longest[method, few] = math.inf if given_up else tried.seconds
            if not few:
                self.found[choice] = (
                    tried if tried.finished or choice not in self.found else self.found[choice]
                )
                break
            all_s = tried.seconds * self.attempts.times_fewer**power
            self.found[choice] = replace(tried, seconds=all_s)
            if all_s > min(most_s, self.attempts.time.left - kept_s) or (tried.loss or 0) > HOPELESS:
                break


def _without_lost_columns(
    draft: Draft, chosen: Demand, found: dict[Demand, Attempt], attempts: Attempts
) -> tuple[tuple[str, ...], Attempt | None]:
    """The columns of which the best attempt leaves nothing, and the best without them that loses no more; or none."""
    best, lost = found[chosen], tuple[str, ...]()
    kept: Attempt | None = None
    while not attempts.time.is_over:
        last = kept or best
        more = last.lost_columns(last.policy)
        if not more or last.loss is None:
            break
        policy = _policy_of(replace(draft, choice=chosen, left_out=(*lost, *more)))
        change = f"{best.change}, without {', '.join((*lost, *more))}"
        tried = attempts.attempt(policy, change, most_s=LONGEST_S, fewer=best.fewer)
        if tried.loss is None or loss_with_columns(tried.loss, last.policy, more) > last.loss * SAME:
            break
        lost, kept = (*lost, *more), tried
    return lost, kept


def _without_these(lost: Sequence[str], tried: Attempt) -> str:
    """What is said of columns that are left out."""
    it = "it" if len(lost) == 1 else "them"
    return (
        f"! Left out: {', '.join(lost)}. Beside the others nothing but * would be left of {it}; without {it} "
        f"{tried.kept} of the detail of the others is kept. To publish such a column, take away the mark before it, "
        "and leave out others."
    )


def _choices(ell: Fraction, methods: Sequence[str]) -> list[Demand]:
    """What to try with this l: quick and simple methods first."""
    return [Demand(name, ell, USES.get(name, "search")) for name in TRIED if name in methods]


def _enough(attempt: Attempt, sampled: bool) -> bool:
    """Whether a release is useful, and will be on the whole table although it was tried on a sample."""
    return attempt.useful and (not sampled or (attempt.loss or 0) <= SURE_LOSS)


def _chosen(found: dict[Demand, Attempt], sampled: bool) -> Demand | None:
    """The strictest l with a useful release, and with it the least loss.

    Where none is useful, the strictest l that loses hardly more than any other: a weaker one would buy nothing. With it
    those that leave something of the most columns come first.
    """
    losses = {choice: a.loss for choice, a in found.items() if a.loss is not None}
    if not losses:
        return None
    useful = {c: loss for c, loss in losses.items() if _enough(found[c], sampled)}
    useful = useful or {c: loss for c, loss in losses.items() if found[c].useful}
    ell = max(
        c.ell for c, loss in (useful or losses).items() if useful or loss <= HARDLY * min(losses.values())
    )
    here = {c: loss for c, loss in (useful or losses).items() if c.ell == ell}
    fewest = min(found[c].columns_lost for c in here)
    here = {c: loss for c, loss in here.items() if found[c].columns_lost == fewest}
    least = min(here.values())
    return next(c for c, loss in here.items() if loss <= ALIKE * least)


def _whole_table_s(choice: Demand, attempt: Attempt, times: float) -> float:
    """The seconds that an attempt would take on the whole table, which has so many times as many combinations."""
    return attempt.seconds * times ** GROWS.get(choice.method, 1)


def _sooner(found: dict[Demand, Attempt], best: Demand, times: float, sampled: bool) -> Demand:
    """The best choice; or one of the same l that keeps nearly as much, where the best would take very long."""
    most = NEARLY * (found[best].loss or 0)
    if _whole_table_s(best, found[best], times) <= PATIENCE_S:
        return best
    quick = {
        c: a.loss
        for c, a in found.items()
        if a.loss is not None and a.loss <= most and c.ell == best.ell and _enough(a, sampled)
        and _whole_table_s(c, a, times) <= PATIENCE_S
    }  # fmt: skip
    return min(quick, key=quick.__getitem__, default=best)


def _what_was_tried(
    found: dict[Demand, Attempt], chosen: Demand, basis: str, times: float, last: Attempt | None = None
) -> tuple[str, ...]:
    """What was tried, and why this was chosen; `last`: the choice as it was tried at the end, without some columns."""
    best = found[chosen]
    lines = [f"Tried on {basis}; chosen: {best.change}, which keeps {best.kept} of the detail."]
    for choice, attempt in found.items():
        if attempt.loss is None:
            lines.append(f"- {attempt.change}: {attempt.refusal.split(';')[0]}")
        elif choice != chosen:
            less = f"; {'; '.join(attempt.also_lost)}" if attempt.also_lost else ""
            lines.append(f"- {attempt.change}: keeps {attempt.kept}{less}")
    stricter = sorted({c.ell for c in found if c.ell > chosen.ell}, reverse=True)
    if stricter:
        sure = (
            f" (on this sample {100 * (1 - float(SURE_LOSS)):.0f} %, to be sure of the whole table)"
            if basis.startswith("a sample")
            else ""
        )
        lines.append(
            f"l = {chosen.ell}, not {stricter[0]}, because nothing that was tried with l = "
            f"{' or '.join(map(str, stricter))} keeps half of the detail{sure} and something of every column."
        )
    weaker = [a for c, a in found.items() if c.ell < chosen.ell and (a.loss or 1) < (best.loss or 0)]
    if weaker and not best.useful:
        least = min(weaker, key=lambda a: a.loss or 1)
        here = min(
            (a for c, a in found.items() if c.ell == chosen.ell and a.loss is not None),
            key=lambda a: a.loss or 0,
        )
        beside = "" if here is best else f", {here.change} {here.kept}"
        lines.append(
            "Nothing that was tried keeps half of the detail and something of every column, and a weaker requirement "
            f"hardly helps: {least.change} would keep {least.kept}{beside}."
        )
    for choice, attempt in found.items():
        seconds, better = _whole_table_s(choice, attempt, times), (attempt.loss or 1) < (best.loss or 0)
        if choice == chosen and seconds > LONG_S:
            lines.append(
                f"! {choice.method} takes long on all rows: perhaps {math.ceil(seconds / 60):,} minutes."
            )
        elif choice.ell == chosen.ell and better and seconds > PATIENCE_S:
            lines.append(_slower_and_better(chosen, choice, best, attempt, seconds))
    lines += [f"! {line}" for line in (*(last or best).drawbacks, *(last or best).reasons)]
    return (*lines, REMEMBERED)


def _slower_and_better(chosen: Demand, other: Demand, best: Attempt, attempt: Attempt, seconds: float) -> str:
    """What is said of a method that would keep more but take too long, and how to have it all the same."""
    use = "" if other.use == chosen.use else f", `use: {other.use}` in place of `use: {chosen.use}`"
    return (
        f"{chosen.method}, not {other.method}, which keeps {attempt.kept} of the detail, not {best.kept}, but would "
        f"take perhaps {math.ceil(seconds / 60):,} minutes on all rows. If that is worth the wait, write `method: "
        f"{' '.join(yaml_flow(METHODS[other.method]).split())}` in place of the policy's method{use}, and run "
        "maskwright anonymize."
    )


def _profile(facts: Facts, chosen: Preset | None) -> ColumnProfile:
    found = guess_role(facts)
    suggestion: Coarsening | None = None
    if found.role == "quasi-identifier":
        suggestion = guess_hierarchy(facts, found.topic, chosen.k if chosen else DEFAULT_K)
    elif found.role == "sensitive" and found.topic == "health":
        ready, why = ready_hierarchy(facts, found.topic)
        if ready is not None:
            use = f"with {{library: {ready}}} as its hierarchy, what its groups give away is measured, too"
            found = replace(found, notes=(*found.notes, f"{why[0]}; {use}"))
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


def _same_for_each_person(
    engine: Engine, table: Table, unit: str | None, columns: Sequence[str]
) -> tuple[str, ...]:
    """The columns that have one value in all rows of each person."""
    if unit is None:
        return ()
    people, _, _ = engine.uniqueness(table, [unit])
    return tuple(c for c in columns if engine.uniqueness(table, [unit, c])[0] == people)


def _unit(profiles: Sequence[ColumnProfile], rows: int) -> str | None:
    """The column that tells persons apart, where some have several rows."""
    for keys in (UNIT_KEYS, OF_ONE_PERSON):
        several = [p for p in profiles if p.topic in keys and not p.missing and 1 < p.distinct < rows]
        if several:
            return max(several, key=lambda p: p.distinct).name
    return None
