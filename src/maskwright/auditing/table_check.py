"""Check a table before it goes anywhere: direct identifiers in its columns, and how small its smallest class is.

Made for pipelines: one answer, an exit code, and no value of the table in it; what one pattern tells is also SQL, for
dbt. The lines of HIPAA Safe Harbor, EMA policy 0070 and WP216 are *met* or *not met* only where the table itself
answers them; what needs knowledge of the context, of a census or of law is *not assessed*, and says what would answer
it. Guidance is not legal advice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, Literal

from maskwright.auditing.published import ask_whose_rows
from maskwright.domain.settings import did_you_mean
from maskwright.engines.base import Engine, Reading, Table
from maskwright.errors import InputError, UsageError
from maskwright.identifiers.detection import VALUES, detect_inside, plain_patterns
from maskwright.models.k_anonymity import KAnonymity
from maskwright.policy.binding import models_of
from maskwright.policy.policy import ONE_ROW_EACH, Policy
from maskwright.suggest.presets import EMA_RISK, OLDEST
from maskwright.suggest.profile import Facts, is_date, look_at_all
from maskwright.suggest.roles import guess_role, looks_like_dates

Answer = Literal["met", "not met", "not assessed", "shown"]


@dataclass(frozen=True)
class GuidanceLine:
    """One line of a body of guidance, whether a table meets it, and what that rests on."""

    heading: str
    answer: Answer
    basis: str

    def as_dict(self) -> dict[str, str]:
        """For JSON."""
        return {"line": self.heading, "answer": self.answer, "basis": self.basis}


@dataclass(frozen=True)
class SeenTable:
    """What guidance is checked against.

    Attributes:
        rows: of the table.
        facts: what was seen of each column.
        quasi_identifiers: the columns whose classes were counted.
        smallest: people in the smallest class; None: not counted.
    """

    rows: int
    facts: Mapping[str, Facts]
    quasi_identifiers: Sequence[str]
    smallest: int | None


def guidance_lines(preset: str, seen: SeenTable) -> Iterator[GuidanceLine]:
    """The lines of a preset's guidance, checked against a table."""
    if preset not in GUIDANCE:
        raise UsageError(
            f"there is no guidance {preset!r} to check against; {did_you_mean(preset, GUIDANCE)}"
        )
    return GUIDANCE[preset](seen)


DEFAULT_K = 5


@dataclass(frozen=True)
class FlaggedColumn:
    """A column that looks like a direct identifier.

    Attributes:
        column: its name.
        kind: of identifier.
        reason: why, without a value.
        certain: by content; otherwise only its name suggests so, which is told and fails nothing.
    """

    column: str
    kind: str
    reason: str
    certain: bool


@dataclass(frozen=True)
class TableCheck:
    """The outcome of a check.

    Attributes:
        table: what was looked at, in words.
        rows: its rows.
        flagged: the columns that look like direct identifiers.
        quasi_identifiers: the columns whose classes were counted.
        k: the least that was asked for.
        smallest: people in the smallest class; None: no quasi-identifiers were named.
        below: people in classes of fewer than k.
        preset: whose guidance was gone through.
        guidance: its lines.
    """

    table: str
    rows: int
    flagged: tuple[FlaggedColumn, ...]
    quasi_identifiers: tuple[str, ...]
    k: int
    smallest: int | None
    below: int
    preset: str | None = None
    guidance: tuple[GuidanceLine, ...] = ()

    @property
    def ok(self) -> bool:
        """Is there no column of direct identifiers, no class below k, and no line of guidance that is not met?"""
        fine = not any(f.certain for f in self.flagged) and (self.smallest is None or self.smallest >= self.k)
        return fine and not any(line.answer == "not met" for line in self.guidance)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "ok": self.ok,
            "table": self.table,
            "rows": self.rows,
            "direct_identifiers": [
                {"column": f.column, "kind": f.kind, "reason": f.reason, "certain": f.certain} for f in self.flagged
            ],
            "quasi_identifiers": list(self.quasi_identifiers),
            "k": self.k,
            "smallest_class": self.smallest,
            "people_below_k": self.below,
            "preset": self.preset,
            "guidance": [line.as_dict() for line in self.guidance],
        }  # fmt: skip

    def sentences(self) -> list[str]:
        """What was found, a sentence each; a dash begins what fails the check."""
        lines = []
        for flag in self.flagged:
            mark, more = ("-", "") if flag.certain else ("?", "; look at it, or rename it")
            lines.append(f"{mark} column {flag.column!r}: {flag.reason}{more}")
        if not any(f.certain for f in self.flagged):
            lines.append("+ no column looks like a direct identifier by its content")
        by = ", ".join(self.quasi_identifiers)
        if self.smallest is None:
            lines.append(
                "? k was not assessed: name the columns that an attacker could know, --qi age,zip,sex"
            )
        elif self.smallest >= self.k:
            lines.append(
                f"+ every class of {by} has at least {self.smallest:,} people (k = {self.k} was asked for)"
            )
        else:
            people = "1 person" if self.smallest == 1 else f"{self.smallest:,} people"
            lines.append(
                f"- the smallest class of {by} has {people}, fewer than k = {self.k}; {self.below:,} people are in "
                "classes below it"
            )
        marks = {"met": "+", "not met": "-", "not assessed": "?", "shown": " "}
        lines += [
            f"{marks[x.answer]} {self.preset}, {x.heading}: {x.answer}: {x.basis}" for x in self.guidance
        ]
        return lines

    def __str__(self) -> str:
        verdict = "nothing was found that must not go out" if self.ok else "not ready to go out"
        return "\n".join([f"{self.table}: {self.rows:,} rows, {verdict}", *self.sentences()])


def check_table(
    engine: Engine,
    source: Any,
    name: str,
    quasi_identifiers: Sequence[str] = (),
    k: int | None = None,
    unit: str | None = None,
    policy: Policy | None = None,
    allow: Sequence[str] = (),
    preset: str | None = None,
    reading: Reading | None = None,
) -> TableCheck:
    """Look for direct identifiers and count classes; a policy says what it names, unless that is said otherwise."""
    table = engine.open(source, reading or Reading())
    there = [c.name for c in table.columns]
    known = tuple(dict.fromkeys(quasi_identifiers)) or tuple(policy.quasi_identifiers if policy else ())
    unit = _person_column(engine, table, unit, policy, known)
    for column in (*known, *allow, *([unit] if unit else ())):
        if column not in there:
            raise InputError(f"the table has no column {column!r}; {did_you_mean(column, there)}")
    if k is not None and k < 1:
        raise UsageError(f"k is a number of people, at least 1, not {k}")
    least = k if k is not None else _asked_k(policy)
    rows = engine.count(table)
    if not rows:
        raise InputError(f"{name}: the table has no rows, so nothing can be checked")
    allowed = (
        {*allow, *(n for n, c in policy.columns.items() if c.direct_identifiers == "allow")}
        if policy
        else {*allow}
    )
    facts = {f.name: f for f in look_at_all(engine, table, table.columns, rows)}
    if unit is not None and (nobody := facts[unit].missing):
        raise InputError(
            f"column {unit!r} is meant to tell persons apart, but is missing in {nobody:,} rows; complete it, or "
            "remove these rows"
        )
    flagged = tuple(
        flag
        for f in facts.values()
        if f.name not in allowed and f.name != unit
        if (flag := _flag(f)) is not None
    )
    smallest, below = (None, 0) if not known else _classes(engine, table, known, unit, least)
    lines: tuple[GuidanceLine, ...] = ()
    if preset is not None:
        lines = tuple(guidance_lines(preset, SeenTable(rows, facts, known, smallest)))
    return TableCheck(name, rows, flagged, known, least, smallest, below, preset, lines)


def _person_column(
    engine: Engine, table: Table, unit: str | None, policy: Policy | None, known: Sequence[str]
) -> str | None:
    """The column that tells persons apart; None: every row is a person. Asked only where people are to be counted."""
    if unit is not None:
        return None if unit == ONE_ROW_EACH else unit
    if policy is not None and policy.unit is not None:  # a release does not have the column any more
        return policy.person_column if policy.person_column in {c.name for c in table.columns} else None
    if known:
        ask_whose_rows(engine, table, known, policy)
    return None


def _asked_k(policy: Policy | None) -> int:
    asked = [m.k for m in models_of(policy) if isinstance(m, KAnonymity)] if policy else []
    return max(asked, default=DEFAULT_K)


def _flag(facts: Facts) -> FlaggedColumn | None:
    found = facts.identifier or detect_inside(facts.values)
    if found is not None:
        return FlaggedColumn(facts.name, found.kind.key, found.sentence(), True)
    guess = guess_role(facts)
    if guess.role == "identifier" and "its name suggests" in guess.reason:
        return FlaggedColumn(facts.name, guess.topic or "", guess.reason.partition(": dropped")[0], False)
    return None


def _classes(engine: Engine, table: Table, known: Sequence[str], unit: str | None, k: int) -> tuple[int, int]:
    people = engine.recount(table, tuple(known), (), unit).people
    return int(people.min()), int(people[people < k].sum())


# --- HIPAA Safe Harbor: 45 CFR 164.514(b)(2)(i) --------------------------------------------------------------

HIPAA = {
    "A": "names", "B": "places smaller than a state", "C": "dates but for the year, ages over 89",
    "D": "telephone numbers", "E": "fax numbers", "F": "e-mail addresses", "G": "social security numbers",
    "H": "medical record numbers", "I": "health plan numbers", "J": "account numbers",
    "K": "certificate and licence numbers", "L": "vehicles and number plates", "M": "device identifiers",
    "N": "web addresses", "O": "IP addresses", "P": "biometric identifiers", "Q": "full-face photographs",
    "R": "any other unique number or code",
}  # fmt: skip
_BY_NAME = {
    "name": "A", "address": "B", "coordinates": "B", "phone": "D", "email": "F", "official-number": "G",
    "record-number": "H", "person-number": "H", "case-number": "H", "insurance-number": "I", "account": "J",
    "network": "N", "biometric": "P", "number": "R", "free-text": "R", "keys or hashes": "R",
}  # fmt: skip


def _safe_harbor(seen: SeenTable) -> Iterator[GuidanceLine]:
    found: dict[str, list[str]] = {letter: [] for letter in HIPAA}
    for name, facts in seen.facts.items():
        if facts.identifier is not None:
            found[facts.identifier.kind.hipaa].append(name)
            continue
        guess = guess_role(facts)
        if guess.role == "identifier" and guess.topic is not None and guess.topic in _BY_NAME:
            found[_BY_NAME[guess.topic]].append(name)
        elif facts.near_unique and guess.role == "identifier":
            found["R"].append(name)
        elif guess.topic == "place" or (
            guess.topic == "postcode" and max(map(_digits_shown, facts.values)) > 3
        ):
            found["B"].append(name)
        elif _shows_days(facts) or _shows_old_age(guess.topic, facts):
            found["C"].append(name)
    for letter, what in HIPAA.items():
        heading = f"({letter}) {what}"
        if found[letter]:
            yield GuidanceLine(heading, "not met", f"found in {', '.join(map(repr, found[letter]))}")
        elif letter == "B" and (few := [n for n, f in seen.facts.items() if _shows_few_people(f)]):
            yield GuidanceLine(
                heading, "not met",
                f"{', '.join(map(repr, few))} shows three-digit ZIP areas that HHS lists as having 20,000 people or "
                "fewer (2000 census); they must become 000",
            )  # fmt: skip
        elif letter == "B" and any(guess_role(f).topic == "postcode" for f in seen.facts.values()):
            yield GuidanceLine(
                heading, "not assessed",
                "ZIP codes show three digits at most; whether each area has more than 20,000 people is in the census",
            )  # fmt: skip
        elif letter in "EKPQ":
            yield GuidanceLine(
                heading, "not assessed", "neither the content nor the name of a column points to them"
            )
        else:
            yield GuidanceLine(heading, "met", f"none found in {len(seen.facts)} columns")
    yield GuidanceLine(
        "(ii) no actual knowledge that the rest could identify somebody", "not assessed",
        "only the publisher can say",
    )  # fmt: skip


# Guidance of HHS on de-identification of 2012; a later census has others, so that their absence settles nothing
FEW_PEOPLE = frozenset(
    [
        "036",
        "059",
        "063",
        "102",
        "203",
        "556",
        "692",
        "790",
        "821",
        "823",
        "830",
        "831",
        "878",
        "879",
        "884",
        "890",
        "893",
    ]
)


def _shows_few_people(facts: Facts) -> bool:
    """Does a column of ZIP codes show an area that is known to have few people?"""
    return guess_role(facts).topic == "postcode" and any(v[:3] in FEW_PEOPLE for v in facts.values)


def _digits_shown(value: str) -> int:
    return sum(c.isdigit() for c in value)


def _shows_days(facts: Facts) -> bool:
    """Do any values show more of a date than its year?"""
    return looks_like_dates(facts) or any(map(is_date, facts.values))


def _shows_old_age(topic: str | None, facts: Facts) -> bool:
    if facts.numbers is None:
        return False
    if topic == "age":
        return any(n > OLDEST for n in facts.numbers)
    if topic in ("birth-year", "birth-date"):
        return any(n < date.today().year - OLDEST for n in facts.numbers)
    return False


# --- EMA policy 0070, and the three criteria of WP216 ---------------------------------------------------------


def _ema(seen: SeenTable) -> Iterator[GuidanceLine]:
    yield _no_identifiers(seen, "direct identifiers are removed")
    heading = "risk of re-identification at most 0.09"
    if seen.smallest is None:
        yield GuidanceLine(heading, "not assessed", "no quasi-identifiers were named")
    else:
        risk = Fraction(1, seen.smallest)
        answer: Answer = "met" if risk <= EMA_RISK else "not met"
        yield GuidanceLine(heading, answer, f"1/{seen.smallest} = {float(risk):.4f} in the smallest class")
    yield GuidanceLine(
        "the risk in context, and the usefulness that is left",
        "not assessed",
        "documents and contracts answer it",
    )


def _working_party(seen: SeenTable) -> Iterator[GuidanceLine]:
    if seen.smallest is None:
        yield GuidanceLine("singling out", "not assessed", "no quasi-identifiers were named")
    else:
        answer: Answer = "met" if seen.smallest >= 2 else "not met"
        yield GuidanceLine(
            "singling out", answer, f"{seen.smallest} people in the smallest class of the quasi-identifiers"
        )
    linkable = _no_identifiers(seen, "linkability")
    if linkable.answer == "met":
        linkable = GuidanceLine(
            "linkability", "not assessed",
            "no direct identifiers were found; whether other tables of the same people exist is not known",
        )  # fmt: skip
    yield linkable
    yield GuidanceLine(
        "inference", "not assessed", "`maskwright audit` attacks the table, `anonymize` also knows its method"
    )


def _no_identifiers(seen: SeenTable, heading: str) -> GuidanceLine:
    names = [name for name, facts in seen.facts.items() if facts.identifier is not None]
    if names:
        return GuidanceLine(heading, "not met", f"found in {', '.join(map(repr, names))}")
    return GuidanceLine(heading, "met", f"none found in {len(seen.facts)} columns")


GUIDANCE: dict[str, Callable[[SeenTable], Iterator[GuidanceLine]]] = {
    "hipaa-safe-harbor": _safe_harbor,
    "ema-clinical": _ema,
    "gdpr-wp216": _working_party,
}


# --- generic tests for dbt: shapes that one regular expression tells; the others need the command ----------------

DBT_FILE = "integrations/dbt/maskwright.sql"

_TEXT = """\
{# Generic tests of Maskwright for dbt. Copy this file into tests/generic/ of a dbt project:

     columns:
       - name: notes
         data_tests: [no_direct_identifiers]
     data_tests:
       - k_anonymous: {columns: [age_band, zip3, sex], k: 11}

   Made from the patterns of `maskwright check` by `make docs`; do not edit. The answer is a kind and two counts, never
   a value. Checksums, names of people and free text cannot be told in SQL: run `maskwright check` for them. #}

{% macro maskwright_matches(column, pattern) %}
{{- adapter.dispatch('maskwright_matches')(column, pattern) -}}
{% endmacro %}
{% macro default__maskwright_matches(column, pattern) %}regexp_matches({{ column }}, '{{ pattern }}'){% endmacro %}
{% macro postgres__maskwright_matches(column, pattern) %}({{ column }} ~ '{{ pattern }}'){% endmacro %}
{% macro redshift__maskwright_matches(column, pattern) %}({{ column }} ~ '{{ pattern }}'){% endmacro %}
{% macro bigquery__maskwright_matches(column, pattern) %}regexp_contains({{ column }}, r'{{ pattern }}'){% endmacro %}
{% macro snowflake__maskwright_matches(column, pattern) %}regexp_like({{ column }}, $${{ pattern }}$$){% endmacro %}

{% test no_direct_identifiers(model, column_name, share=0.95) %}
with looked_at as (
  select distinct cast({{ column_name }} as varchar) as v from {{ model }}
  where {{ column_name }} is not null limit @VALUES@
), counted as (
@COUNTS@
)
select kind, passing, looked_at from counted where looked_at >= least_values and passing >= {{ share }} * looked_at
{% endtest %}

{% test k_anonymous(model, columns, k=5) %}
select count(*) as people from {{ model }} group by {{ columns | join(', ') }} having count(*) < {{ k }}
{% endtest %}
"""
_COUNT = """\
  select '{kind}' as kind, {least} as least_values, count(*) as looked_at,
    coalesce(sum(case when {{{{ maskwright_matches('v', '^(?:{pattern})$') }}}} then 1 else 0 end), 0) as passing
  from looked_at"""


def dbt_macros() -> str:
    """The text of the file of generic tests."""
    counts = "\n  union all\n".join(
        _COUNT.format(kind=kind, least=least, pattern=pattern.replace("\\", "\\\\").replace("'", "''"))
        for kind, (pattern, least) in plain_patterns().items()
    )
    return _TEXT.replace("@VALUES@", str(VALUES)).replace("@COUNTS@", counts)
