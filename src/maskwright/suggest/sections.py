"""The suggested policy as commented YAML, its sections in the order in which a publisher reads them.

Whatever a column is called, the text parses back to the same policy.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import yaml

from maskwright.domain.exact import percent_text
from maskwright.engines.base import Reading
from maskwright.policy.policy import ONE_ROW_EACH
from maskwright.prepare import Repair
from maskwright.prepare.repairs import MISSING
from maskwright.suggest.mess import Length, Mess
from maskwright.suggest.presets import DEFAULT_K, Preset
from maskwright.suggest.profile import ColumnProfile, Facts
from maskwright.suggest.topics import OF_ONE_PERSON, UNIT_KEYS
from maskwright.suggest.uniqueness import MOST_LEFT_OUT, Uniqueness

WIDTH = 108
# YAML readers stop looking for the colon of a one-line key after 1024 characters.
LONGEST_KEY = 1000
_WORD = re.compile(r"[^\W\d_][\w./]*(?:[ -][\w./]+)*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_RESOLVER = yaml.SafeLoader("")


TEXTS = (
    "values",
    "missing",
    "spellings",
    "groups",
)  # settings that hold texts of the data, also where they read as numbers


def yaml_scalar(text: str, *, numbers: bool = False) -> str:
    """A text as YAML: bare where every YAML reader takes it for that text, quoted otherwise."""
    if numbers and _NUMBER.fullmatch(text):
        return text
    if text.isprintable() and _WORD.fullmatch(text) and text.casefold() not in ("y", "n"):
        tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        if tag == "tag:yaml.org,2002:str":
            return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _on_one_line(text: str) -> str:
    """A text that stays on its line of a comment."""
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


LONGEST_KEY = 1000  # characters


def yaml_flow(value: Any, *, numbers: bool = True, indent: int = 6) -> str:
    """A value on one line; a long list breaks after its commas."""
    if isinstance(value, Mapping):
        pairs = [
            f"{_key(str(k))}: {yaml_flow(v, numbers=numbers and k not in TEXTS, indent=indent)}"
            for k, v in value.items()
        ]
        return "{" + _broken(pairs, indent) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + _broken([yaml_flow(v, numbers=numbers, indent=indent) for v in value], indent) + "]"
    return yaml_scalar(str(value), numbers=numbers)


def _key(text: str) -> str:
    """A key of a mapping; YAML reads one of more than 1,024 characters only where a question mark announces it."""
    written = yaml_scalar(text)
    return written if len(written) <= LONGEST_KEY else f"? {written} "


def _broken(items: list[str], indent: int) -> str:
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) > WIDTH - indent:
            lines.append(line + ",")
            line = item
        else:
            line = f"{line}, {item}" if line else item
    return ("\n" + " " * indent).join([*lines, line])


def comment_lines(text: str, indent: int = 0, hanging: str = "") -> list[str]:
    """Comment lines of a paragraph; further lines begin with `hanging`."""
    start = " " * indent + "# "
    return textwrap.wrap(
        _on_one_line(text), WIDTH, initial_indent=start, subsequent_indent=start + hanging,
        break_long_words=True, break_on_hyphens=False,
    ) or [start.rstrip()]  # fmt: skip


def column_lines(profile: ColumnProfile, entry: str | Mapping[str, Any]) -> list[str]:
    """One column: the reason above it, then its role."""
    lines = comment_lines(f"{_counts(profile)}; {profile.reason}", indent=2, hanging="  ")
    for note in profile.notes:
        lines += comment_lines(f"! {note}", indent=2, hanging="  ")
    key, value = yaml_scalar(profile.name), yaml_flow(entry)
    if len(key) > LONGEST_KEY:
        return [*lines, f"  ? {key}", f"  : {value}"]
    return [*lines, f"  {key}: {value}"]


def _counts(profile: ColumnProfile) -> str:
    """Distinct values, range and missing rows in a few words."""
    text = f"{profile.distinct:,} value{'' if profile.distinct == 1 else 's'}"
    if profile.minimum is not None:
        text += f" from {profile.minimum} to {profile.maximum}"
    return text + (f", {profile.missing:,} missing" if profile.missing else "")


def anonymize_command(name: str) -> str:
    """The command that publishes the table with this policy."""
    return f"maskwright anonymize {shlex.quote(_on_one_line(name))} -p policy.yaml -o release/"


def joined_sections(paragraphs: Sequence[Sequence[str]]) -> str:
    """Sections, with an empty line between them."""
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines) + "\n"


ELLS = (
    Fraction(3),
    Fraction(2),
    Fraction(3, 2),
    Fraction(10, 9),
)  # of simple l-diversity, the strictest first
SHARES = {
    Fraction(3): "one in three",
    Fraction(2): "one in two",
    Fraction(3, 2): "two in three",
    Fraction(10, 9): "nine in ten",
}
SUPPRESSION = "0.02"
METHODS: dict[str, dict[str, Any]] = {
    "mondrian": {"name": "mondrian", "cut": "balanced"},
    "local-recoding": {"name": "local-recoding", "suppression": SUPPRESSION},
    "optimal-lattice": {
        "name": "optimal-lattice", "objective": "information-loss", "suppression": SUPPRESSION,
        "suppress": "small-classes", "suppressed_rows": "drop", "budget_s": 60,
    },
}  # fmt: skip
# Beyond so many quasi-identifiers almost everything has to be generalised away.
MANY = 12
# At most so many sensitive values are listed in a requirement.
MOST_LISTED = 200


@dataclass(frozen=True)
class Demand:
    """What is asked of sensitive values, and of which method; `words` say what was tried, and why this was chosen."""

    method: str = "mondrian"
    ell: Fraction = ELLS[0]
    use: str = "search"
    words: tuple[str, ...] = ()

    def in_words(self, protects: bool) -> str:
        """The choice in a few words."""
        how = {"search": "searched for", "gate": "as a gate"}[self.use]
        return f"{self.method}, l = {self.ell} {how}" if protects else self.method


@dataclass(frozen=True)
class Draft:
    """Everything there is to say. `unit` names the column that tells people apart, if they have several rows."""

    name: str
    rows: int
    preset: Preset | None
    profiles: Sequence[ColumnProfile]
    facts: Sequence[Facts]
    uniqueness: Uniqueness
    unit: str | None
    reading: Reading
    mess: Sequence[Mess] = ()
    lengths: Sequence[Length] = ()
    repairs: Sequence[Repair] = ()
    choice: Demand = field(default_factory=Demand)
    advice: Sequence[str] = ()
    own: Sequence[str] = ()
    left_out: Sequence[str] = ()  # quasi-identifiers of which nothing would be left beside the others

    @property
    def k(self) -> int:
        """The least class size that the preset asks for."""
        return self.preset.k if self.preset else DEFAULT_K

    @property
    def people(self) -> int:
        """The number of persons, who may have several rows each."""
        return next((p.distinct for p in self.profiles if p.name == self.unit), self.rows)

    @property
    def protects(self) -> bool:
        """Whether anything is required of a sensitive column."""
        pairs = zip(self.profiles, self.facts, strict=True)
        return any(p.role == "sensitive" and _protected(f, self.choice.ell) is not None for p, f in pairs)

    def with_role(self, role: str) -> list[ColumnProfile]:
        """The columns that were guessed to have a role."""
        return [p for p in self.profiles if p.role == role]


def policy_text(draft: Draft) -> str:
    """The whole policy file."""
    return joined_sections(
        [
            _heading(draft),
            ["version: 1", *_preset(draft)],
            _input(draft),
            _unit(draft),
            _missing(draft),
            _prepare(draft),
            _columns(draft),
            _require(draft),
            _method(draft),
        ]
    )


def _heading(draft: Draft) -> list[str]:
    n = len(draft.profiles)
    return [
        *comment_lines(
            f"A policy for {draft.name}, guessed from its {draft.rows:,} row{'s' if draft.rows != 1 else ''} and "
            f"{n} column{'s' if n != 1 else ''} (names and counted values). "
            "Read every line, change what is wrong, then run"
        ),
        *comment_lines("  " + anonymize_command(draft.name)),
        "#",
        *comment_lines(how_unique(draft.uniqueness)),
        *(line for reason in draft.advice for line in comment_lines(reason, hanging="  ")),
    ]


def how_unique(found: Uniqueness) -> str:
    """The uniqueness of a table in a sentence."""
    columns = f"the {len(found.columns)} guessed quasi-identifiers"
    if len(found.columns) == 1:
        columns = "the only guessed quasi-identifier"
    if not found.unique_rows:
        least = f"{found.smallest_class:,} rows"
        return f"As it is now, no row is unique on {columns}; the rarest combination has {least}."
    text = f"As it is now, {percent_text(found.share)} of the rows are unique on {columns}"
    if len(found.columns) == 1:
        return text + "."
    if found.adds_most is None:
        return text + (
            "; no column alone makes a difference." if len(found.columns) <= MOST_LEFT_OUT else "."
        )
    return (
        f"{text}; {found.adds_most} adds most "
        f"(without it: {percent_text(Fraction(found.without_it, found.rows))})."
    )  # fmt: skip


def _preset(draft: Draft) -> list[str]:
    if draft.preset is None:
        return []
    lines = ["", *comment_lines(f"Preset {draft.preset.name}: {draft.preset.description}.")]
    for change in draft.preset.changes:
        lines += comment_lines(f"- {change}", hanging="  ")
    lines += comment_lines(f"Source: {draft.preset.source}", hanging="  ")
    return [*lines, f"preset: {draft.preset.name}"]


def _input(draft: Draft) -> list[str]:
    """How the file was read, where that was said and not found out."""
    reading, usual = draft.reading, Reading()
    said = {
        key: getattr(reading, key)
        for key in ("format", "delimiter", "quote", "encoding", "header", "names", "sheet", "labels")
        if getattr(reading, key) != getattr(usual, key)
    }
    if not said:
        return []
    for key in ("header", "labels"):
        if key in said:
            said[key] = str(said[key]).lower()
    checks: list[str] = []
    if "encoding" in said:
        checks += comment_lines(f"! Read as {said['encoding']}: check letters with accents in the release.")
    if "names" in said:
        checks += comment_lines(
            f"! Names of columns were empty or occurred twice: they are now called {', '.join(_repaired(draft))}."
        )
    return [
        "# How to read the file; what is not said here is detected.",
        *checks,
        f"input: {yaml_flow(said)}",
    ]


def _repaired(draft: Draft) -> list[str]:
    """The columns whose names were made: column3 for an empty one, zip_2 for a second zip."""
    names = [p.name for p in draft.profiles]
    return [
        name for i, name in enumerate(names, start=1)
        if re.fullmatch(rf"column{i}(_[0-9]+)?", name) or re.sub("_[0-9]+$", "", name) in names[: i - 1]
    ]  # fmt: skip


def _unit(draft: Draft) -> list[str]:
    shared = [p for p in draft.with_role("identifier") if p.topic not in UNIT_KEYS | OF_ONE_PERSON]
    repeated = [p.name for p in shared if 0 < p.distinct < draft.rows - p.missing]
    if draft.unit is None and repeated:
        why = (
            f"! Every row is taken for a person of its own, although values of {', '.join(repeated)} occur in several "
            "rows: if one of these columns tells people apart, write its name here, and k counts people."
        )
        return [*comment_lines(why, hanging="  "), f"unit: {ONE_ROW_EACH}"]
    if draft.unit is None:
        return []
    why = "Several rows can belong to one person, whom this column tells apart: k counts people, not rows."
    if draft.own:
        same = yaml_flow({"column": draft.unit, "publish": "pseudonym", "own": list(draft.own)})
        why += f" To keep the rows of a person together, write unit: {' '.join(same.split())}."
    return [*comment_lines(why), f"unit: {yaml_scalar(draft.unit)}"]


def _missing(draft: Draft) -> list[str]:
    used = [f for p, f in zip(draft.profiles, draft.facts, strict=True) if p.role != "identifier"]
    found = (
        *(token for f in used for token in f.tokens),
        *(token for m in _repaired_columns(draft) for token in m.tokens),
    )
    tokens = list(dict.fromkeys((*draft.reading.missing, *found)))
    lines: list[str] = []
    if tokens:
        lines += comment_lines(
            "Texts in the data that mean missing. Missing is a value of its own (rows: keep)."
        )
    for f in used:
        both = [value for value in f.perhaps if value in tokens]
        if both:
            lines += comment_lines(
                f"! {_names(both)} may be a real value in column {f.name}, and becomes missing there too"
            )
    perhaps = [f for f in used if set(f.perhaps) - set(tokens)]
    if perhaps:
        where = "; ".join(f"{_names([v for v in f.perhaps if v not in tokens])} in {f.name}" for f in perhaps)
        lines += comment_lines(f"These may mean missing as well; if so, add them to missing.tokens: {where}")
    if tokens:
        lines.append(f"missing: {{tokens: {yaml_flow(tokens, numbers=False, indent=2)}, rows: keep}}")
    return lines


def _repaired_columns(draft: Draft) -> list[Mess]:
    """The messy columns that are published."""
    role = {p.name: p.role for p in draft.profiles}
    return [m for m in draft.mess if role[m.column] != "identifier"]


def _prepare(draft: Draft) -> list[str]:
    """What is done to messy columns, with the rows of each kind; and what could be published in place of dates."""
    mess = [(m, steps) for m in _repaired_columns(draft) if (steps := m.written)]
    lines: list[str] = []
    if mess:
        lines += comment_lines(
            "Messy columns, cleaned before anything else reads them. What fits nothing counts as missing; with "
            "`otherwise: refuse` in place of `missing` the table is refused instead."
        )
        lines.append("prepare:")
    elif draft.lengths:
        lines += [
            "# Nothing is messy. If you want one of these columns, take away the # before prepare, too.",
            "# prepare:",
        ]
    for m, steps in mess:
        found = [
            replace(r, rows=m.gone).text if r.what == MISSING else r.text
            for r in draft.repairs
            if r.column == m.column and (r.what != MISSING or m.gone)
        ]
        lines += comment_lines("; ".join(found) or "nothing to repair", 2, "  ")
        lines.append(f"  {yaml_scalar(m.column)}: {yaml_flow(steps)}")
    for offer in draft.lengths:
        lines += comment_lines(offer.note, 2, "  ")
        lines.append(f"  # {offer.column}: {yaml_flow({'between': offer.between, 'otherwise': 'missing'})}")
    return lines


def _names(values: Sequence[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _columns(draft: Draft) -> list[str]:
    lines = [
        "# Roles: identifier (dropped), quasi-identifier (others may know it: generalised), sensitive (nobody may",
        "# infer it: published), insensitive (published as it is). A column that is not named is dropped.",
        *_too_many(draft),
        "columns:",
    ]
    for profile in draft.profiles:
        found = column_lines(profile, _entry(profile))
        if profile.name in draft.left_out:
            first = next(i for i, line in enumerate(found) if not line.lstrip().startswith("#"))
            found = [*found[:first], *comment_lines(LEFT_OUT, 2, "  "), *_commented(found[first:])]
        lines += found
        for offer in draft.lengths:
            if offer.dates[-1] == profile.name:
                entry = {"role": "quasi-identifier", "hierarchy": {"intervals": list(offer.widths)}}
                lines.append(f"  # {offer.column}: {yaml_flow(entry)}")
    return lines


LEFT_OUT = (
    "! Left out: beside the other columns nothing would be left of it but *, as was tried. To publish it, take away "
    "the mark in front of the next line, and leave out others."
)


def _commented(lines: Sequence[str]) -> list[str]:
    """The lines of a column as a comment that can be taken away."""
    return [f"  # {line.removeprefix('  ')}" for entry in lines for line in entry.split("\n")]


def _entry(profile: ColumnProfile) -> str | dict[str, Any]:
    if profile.hierarchy is None:
        return profile.role
    entry: dict[str, Any] = {"role": profile.role, "hierarchy": profile.hierarchy}
    if profile.levels is not None:
        entry["levels"] = list(profile.levels)
    return entry


def _too_many(draft: Draft) -> list[str]:
    """With many quasi-identifiers, which to give up: what is unknown first, then what has most values."""
    known = draft.with_role("quasi-identifier")
    if len(known) <= MANY:
        return []
    least = sorted(known, key=lambda p: (p.topic is not None, -p.distinct))[: len(known) - MANY]
    return comment_lines(
        f"! {len(known)} quasi-identifiers are many: little is left when all of them are generalised together. Make "
        "columns that are not needed identifiers, and columns that no attacker can know insensitive; to look at "
        f"first: {', '.join(p.name for p in least)}",
        hanging="  ",
    )


def _require(draft: Draft) -> list[str]:
    people = "people" if draft.unit else "people (one row each)"
    lines = [
        *(line for words in draft.choice.words for line in comment_lines(words, hanging="  ")),
        "# What every release must satisfy, or nothing is published.",
        "require:",
        *comment_lines(
            f"Nobody can be told apart from fewer than {draft.k} {people} by the quasi-identifiers.", 2
        ),
    ]
    if draft.preset is None:
        lines += comment_lines(
            "11 suits data that anybody can get; 5 is usual for researchers under an agreement.", 2
        )
    if draft.people < draft.k:
        lines += comment_lines(f"! The table has only {draft.people} people: no release can satisfy this.", 2)
    lines.append(f"  - {yaml_flow({'model': 'k-anonymity', 'k': draft.k})}")
    for profile, facts in zip(draft.profiles, draft.facts, strict=True):
        if profile.role == "sensitive":
            lines += _diversity(facts, draft.choice)
    if not draft.with_role("sensitive"):
        lines += comment_lines(
            "No column looks sensitive. To protect one, give it the role sensitive above, and add:", 2
        )
        rule = f"- {{model: simple-l-diversity, l: {draft.choice.ell}, attribute: <its name>, use: search}}"
        lines += comment_lines(rule, 2)
    return lines


def _protected(facts: Facts, ell: Fraction) -> list[str] | None:
    """The values rare enough that no class needs to hold more of them than l allows; None: nothing can be required."""
    rare = [v for v, n in zip(facts.values, facts.counts, strict=True) if n * ell <= facts.rows]
    some = len(rare) < len(facts.values)
    if not rare or (some and (not facts.complete or len(rare) > MOST_LISTED)):
        return None
    return rare


def _diversity(facts: Facts, choice: Demand) -> list[str]:
    """Simple ℓ-diversity for one attribute, on the values that are rare enough for it to be possible at all."""
    ell, share = choice.ell, SHARES[choice.ell]
    rule: dict[str, Any] = {"model": "simple-l-diversity", "l": str(ell), "attribute": facts.name}
    lines = comment_lines(f"In no class may more than {share} hold the same value of {facts.name}.", 2)
    rare = _protected(facts, ell)
    if rare is None and all(n * ell > facts.rows for n in facts.counts):
        return comment_lines(
            f"! No requirement on {facts.name}: all its values are too common for {share}. Who is known to be "
            "in the table is known to have one of them.", 2, "  ",
        )  # fmt: skip
    if rare is None:
        return comment_lines(
            f"! No requirement on {facts.name} yet: one value is held by more than {share} rows. List the values to "
            f"protect, and add: - {{model: simple-l-diversity, l: {ell}, attribute: ..., values: [...], use: search}}",
            2, "  ",
        )  # fmt: skip
    if common := len(facts.values) - len(rare):
        lines += comment_lines(
            f"Only these values are protected: {'another one is' if common == 1 else f'{common} others are'} "
            f"held by more than {share} rows, so no release could satisfy it.", 2,
        )  # fmt: skip
        rule["values"] = rare
    return [*lines, f"  - {yaml_flow({**rule, 'use': choice.use})}"]


LABELS = "each group gets the narrowest labels that cover it, so that a value can be coarser here than there"
HOW: Mapping[str, str] = {
    "mondrian": f"Rows are cut into groups of equal size, as long as each satisfies what is required; {LABELS}.",
    "local-recoding": f"Similar rows are grouped, and {LABELS}. Up to 2 % of the rows are left out.",
    "optimal-lattice": "Every column is published at one level, the best choice of levels. Up to 2 % of "
    "the rows, in classes that are too small, are left out.",
}
BALANCED = "Balanced cuts give nothing away about sensitive values to somebody who knows the method."
SEARCHED = (
    "The groups depend on sensitive values, and somebody who knows the method can reason backwards from them: how far "
    "is measured when it is published (minimality)."
)
GATED = "The search looks at class sizes alone, so its choice says nothing about sensitive values."


def _method(draft: Draft) -> list[str]:
    choice = draft.choice
    why = [HOW[choice.method]]
    balanced = choice.method == "mondrian" and draft.unit is None  # proven of single rows
    if balanced:
        why.append(BALANCED)
    if draft.protects and choice.use == "gate":
        why.append(GATED)
    elif draft.protects and not balanced:
        why.append(SEARCHED)
    return [
        *comment_lines(" ".join(why)),
        f"method: {yaml_flow(METHODS[choice.method], indent=9)}",
        "recoding: generalise",
    ]
