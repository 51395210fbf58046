"""Presets: settings that guidance asks for, each with its source. Guidance is not legal advice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction

from maskwright.domain.settings import did_you_mean
from maskwright.errors import UsageError
from maskwright.suggest.hierarchy_guess import Coarsening, date_parts, fitting_or_suppressed, without_exact
from maskwright.suggest.profile import Facts
from maskwright.suggest.roles import Guess, looks_like_dates

DEFAULT_K = 11  # without a preset: as for open data
NOT_ADVICE = "This preset is guidance, not legal advice."
Adjusted = tuple[Guess, Coarsening | None]


def _as_guessed(facts: Facts, guess: Guess, suggestion: Coarsening | None) -> Adjusted:
    return guess, suggestion


@dataclass(frozen=True)
class Preset:
    """What a preset changes, and who says so.

    Attributes:
        name: what `--preset` takes.
        description: one line.
        source: the document it follows, and what that document is.
        k: the least number of people in a class.
        changes: how the policy differs from one without a preset, in words.
        adjust: what becomes of one column's guess.
    """

    name: str
    description: str
    source: str
    k: int
    changes: tuple[str, ...]
    adjust: Callable[[Facts, Guess, Coarsening | None], Adjusted] = _as_guessed


def least_k(risk: Fraction) -> int:
    """The smallest class in which nobody is found with more than this probability: least k with 1/k ≤ risk."""
    return -(-risk.denominator // risk.numerator)


def find_preset(name: str | None) -> Preset | None:
    """A preset by its name."""
    if name is None:
        return None
    if name not in PRESETS:
        raise UsageError(f"there is no preset {name!r}; {did_you_mean(name, PRESETS)}")
    return PRESETS[name]


# --- HIPAA Safe Harbor -------------------------------------------------------------------------------------

ZIP_NOTE = (
    "check by hand: three-digit ZIP areas with 20,000 people or fewer (current Census data) must become 000"
)
ACTUAL_KNOWLEDGE = (
    "the column rules only: the publisher must also have no actual knowledge that the rest could identify "
    "somebody, which no program can check"
)
OLDEST = 89


def _safe_harbor(facts: Facts, guess: Guess, suggestion: Coarsening | None) -> Adjusted:
    """45 CFR 164.514(b)(2)(i), column by column."""
    if guess.role == "identifier":
        return guess, None
    if guess.topic == "place":
        return _dropped(guess, "Safe Harbor (B): a place smaller than a state: dropped")
    if looks_like_dates(facts):
        return _year_only(facts, guess)
    if guess.topic == "postcode":
        return _three_digits(facts, guess)
    if guess.topic in ("age", "birth-year"):
        return _ninety_or_more(facts, guess, suggestion)
    return guess, suggestion


def _dropped(guess: Guess, reason: str) -> Adjusted:
    return replace(guess, role="identifier", reason=reason, notes=()), None


def _year_only(facts: Facts, guess: Guess) -> Adjusted:
    birth = guess.topic == "birth-date"
    suggestion = fitting_or_suppressed(facts, date_parts(facts, birth=birth, parts=("year", "decade")))
    reason = "Safe Harbor (C): of a date only the year may stay"
    notes = ("check by hand: a year of birth that shows an age over 89 may not stay either",) if birth else ()
    return replace(guess, reason=reason, notes=notes), without_exact(facts, suggestion)


def _three_digits(facts: Facts, guess: Guess) -> Adjusted:
    lengths = {len(value) for value in facts.values}
    if not lengths or len(lengths) > 1 or not all(v[:3].isdigit() for v in facts.values) or min(lengths) < 5:
        return _dropped(
            guess,
            "Safe Harbor (B): not ZIP codes of one length, so their first three digits cannot be kept: dropped",
        )
    hidden = lengths.pop() - 3
    suggestion = Coarsening({"mask": "right", "by": [str(hidden + i) for i in range(3)]}, notes=(ZIP_NOTE,))
    reason = "Safe Harbor (B): of a ZIP code only the first three digits may stay"
    return replace(guess, reason=reason), without_exact(facts, fitting_or_suppressed(facts, suggestion))


def _ninety_or_more(facts: Facts, guess: Guess, suggestion: Coarsening | None) -> Adjusted:
    if facts.numbers is None:
        note = "check by hand: ages over 89 must be one category, 90 or older"
        return replace(guess, notes=(*guess.notes, note)), suggestion
    spec: dict[str, object] = {"intervals": ["1", "5", "10", "20"]}
    this_year = date.today().year
    if guess.topic == "age":
        spec["above"], ends = str(OLDEST + 1), (0, 120)
    else:
        spec["below"], ends = str(this_year - OLDEST), (this_year - 120, this_year)
    if all(ends[0] <= n <= ends[1] and n == int(n) for n in facts.numbers):
        # With only one age over 89 in the data, single years and exact ages would be the same level.
        spec["domain"] = [str(end) for end in ends]
    reason = "Safe Harbor (C): ages over 89 (and years that show one) become one category, 90 or older"
    return replace(guess, reason=reason), without_exact(facts, fitting_or_suppressed(facts, Coarsening(spec)))


# -----------------------------------------------------------------------------------------------------------

EMA_RISK = Fraction(9, 100)
IOM = (
    "K. El Emam and B. Malin, Concepts and Methods for De-identifying Clinical Trial Data, Appendix B of: Institute "
    "of Medicine, Sharing Clinical Trial Data, National Academies Press 2015, doi:10.17226/18998 (a report that "
    "collects the thresholds in use)"
)

PRESETS: dict[str, Preset] = {
    p.name: p
    for p in (
        Preset(
            "open-data", "a file that anybody may download", f"{IOM}. {NOT_ADVICE}", 11,
            ("k = 11: nobody can be told apart from fewer than 11 people",),
        ),
        Preset(
            "research", "researchers who have signed an agreement", f"{IOM}. {NOT_ADVICE}", 5,
            ("k = 5, because the agreement forbids and the setting hinders re-identification",),
        ),
        Preset(
            "hipaa-safe-harbor", "the column rules of the HIPAA Safe Harbor method",
            "45 CFR 164.514(b)(2), the US Privacy Rule (law); US Department of Health and Human Services, Guidance "
            f"Regarding Methods for De-identification of Protected Health Information, 2012. {NOT_ADVICE}",
            5,
            (
                "columns of the 18 kinds of identifiers are dropped, places smaller than a state included",
                "ZIP codes keep three digits, dates the year, ages over 89 become 90 or older",
                "Safe Harbor itself asks for no k; k = 5 is added, because people stay unique without it",
                ACTUAL_KNOWLEDGE,
            ),
            _safe_harbor,
        ),
        Preset(
            "ema-clinical", "clinical reports published under EMA policy 0070: risk at most 0.09",
            "European Medicines Agency, External guidance on the implementation of the policy on the publication of "
            f"clinical data for medicinal products for human use, EMA/90915/2016 (regulator's guidance). {NOT_ADVICE}",
            least_k(EMA_RISK),
            (
                "k = 12: a class of 11 gives a risk of 1/11 = 0.0909, more than 0.09; 1/12 = 0.0833 is within it "
                "(many reports round, and use 11)",
            ),
        ),
        Preset(
            "small-cells-11", "no cell below 11, as CMS asks of tables made from its data",
            "US Centers for Medicare & Medicaid Services, Cell Size Suppression Policy (condition of its data use "
            f"agreements: no cell of 10 or less may be displayed). {NOT_ADVICE}",
            11,
            (
                "k = 11: every published combination of quasi-identifiers holds at least 11 people",
                "cells of a quasi-identifier by a sensitive value can still be smaller: check tables you derive",
            ),
        ),
    )
}  # fmt: skip
