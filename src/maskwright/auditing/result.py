"""What an audit found: verdicts, beliefs, findings; as sentences, the worst first, and as JSON and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from maskwright.auditing.controlled import ControlledRisk
from maskwright.domain.beliefs import Beliefs
from maskwright.domain.classes import Classes
from maskwright.domain.exact import belief_text, number_text
from maskwright.domain.model import Context, Model
from maskwright.domain.release import json_value
from maskwright.domain.settings import build_registered
from maskwright.domain.shown import Shown
from maskwright.domain.verdict import Verdict
from maskwright.errors import InputError, PolicyError
from maskwright.models import MODELS
from maskwright.pipeline.attacking import beliefs_above
from maskwright.report.details import detail_lines
from maskwright.report.html import Markup, html_page, html_table, joined_markup, tag

Severity = Literal["high", "warning", "note"]
RANK: dict[Severity, int] = {"high": 0, "warning": 1, "note": 2}
HALF = Fraction(1, 2)


@dataclass(frozen=True)
class AuditFinding:
    """One thing that the table gives away, in a sentence.

    Attributes:
        kind: "rows", "columns", "order", "container", "cells" or "original".
        severity: "high" (somebody is found, or something unpublished is in the file), "warning" (depends on what
            else is known), "note" (good to know).
        text: the sentence.
        measures: the figures in it.
    """

    kind: str
    severity: Severity
    text: str
    measures: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The finding as JSON."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "text": self.text,
            "measures": json_value(self.measures),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Shown):
    """The outcome.

    Attributes:
        table: what was looked at, in words.
        rows: its rows.
        classes: its classes of equal quasi-identifiers.
        required: what was asked for, and whether it holds.
        measured: per model the strongest setting that holds (or one that fails, where none holds).
        beliefs: what each attack leads to, the worst first.
        findings: everything else, the worst first.
        notes: how it was looked at.
        max_belief: the largest belief allowed, where one was stated.
        controlled: attacks with a control half, where there is one.
        original: was the original at hand? If not, "before" is the published table as a whole.
    """

    table: str
    rows: int
    classes: int
    required: tuple[Verdict, ...]
    measured: tuple[Verdict, ...]
    beliefs: tuple[Beliefs, ...]
    findings: tuple[AuditFinding, ...]
    notes: tuple[str, ...] = ()
    max_belief: Fraction | None = None
    original: bool = False
    controlled: tuple[ControlledRisk, ...] = ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What was asked for, then what was measured."""
        return self.required + self.measured

    @property
    def above(self) -> tuple[Beliefs, ...]:
        """The attacks whose worst belief is above the stated bound."""
        return tuple(beliefs_above(self.beliefs, self.max_belief))

    @property
    def ok(self) -> bool:
        """Does everything hold that was asked for? (True when nothing was.)"""
        return not self.above and all(v.ok for v in self.required)

    @property
    def alarming(self) -> bool:
        """Does something fail that was asked for, or is a finding serious?"""
        return not self.ok or any(severity == "high" for severity, _ in self.sentences())

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "ok": self.ok,
            "table": self.table,
            "rows": self.rows,
            "classes": self.classes,
            "max_belief": None if self.max_belief is None else str(self.max_belief),
            "above_the_bound": [b.attack for b in self.above],
            "required": [v.as_dict() for v in self.required],
            "measured": [v.as_dict() for v in self.measured],
            "beliefs": [b.as_dict() for b in self.beliefs],
            "findings": [f.as_dict() for f in self.findings],
            "controlled": [risk.as_dict() for risk in self.controlled],
            "notes": list(self.notes),
        }

    def sentences(self) -> list[tuple[Severity, str]]:
        """Everything bad in one sentence each, the worst first."""
        said: list[tuple[int, Severity, str]] = []
        said += [(0, "high", v.sentence()) for v in self.required if not v.ok]
        for b in self.beliefs:
            idle = b.measures.get("idle")
            text = b.sentence() if self.original or idle else _without_original(b)
            if b in self.above:
                bound = number_text(self.max_belief or Fraction(0))
                said.append((1, "high", f"above the bound of {bound}: {text}"))
            else:
                worst = b.worst.upper
                severity: Severity = (
                    "note" if idle else "high" if worst == 1 else "warning" if worst >= HALF else "note"
                )
                said.append((2, severity, text))
        said += [(2, f.severity, f.text) for f in self.findings]
        said.sort(key=lambda item: (RANK[item[1]], item[0]))
        return [(severity, text) for _, severity, text in said]

    def lines(self) -> list[str]:
        """For a terminal: what is wrong, then what holds, then how it was looked at."""
        lines = [f"{self.table}: {self.rows:,} rows in {self.classes:,} classes", self.headline(), ""]
        lines += [f"  {severity.upper():8} {text}" for severity, text in self.sentences()]
        if self.required:
            lines += ["", "Asked for:"]
            lines += [f"  {v.sentence()}" for v in self.required]
        if self.measured:
            lines += ["", "The strongest setting of each model that holds:"]
            lines += [f"  {line}" for line in _aligned(map(_strength_cells, self.measured))]
        for beliefs in self.beliefs:
            more = detail_lines(beliefs)
            if more:
                lines += ["", f"{beliefs.attack} ({beliefs.kind}):", *(f"  {line}" for line in more)]
        if self.controlled:
            lines += ["", "Attacks with a control (what the table adds):"]
            lines += [f"  {risk.sentence()}" for risk in self.controlled]
        if self.notes:
            lines += ["", *(f"note: {note}" for note in self.notes)]
        return lines

    def headline(self) -> str:
        """Whether what was asked for holds, and how many findings are serious."""
        if not self.ok:
            return "NOT AS ASKED FOR."
        high = sum(severity == "high" for severity, _ in self.sentences())
        asked = "Everything that was asked for holds" if self.required or self.max_belief is not None else ""
        if high:
            serious = f"{high} serious {'finding' if high == 1 else 'findings'}"
            return f"{asked}, but there {'is' if high == 1 else 'are'} {serious}." if asked else f"{serious}."
        return f"{asked or 'No serious finding'}."

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def html(self) -> str:
        """A page of its own; nothing is loaded from anywhere."""
        worst = [(severity, text) for severity, text in self.sentences()]
        measured = [_strength_cells(v) for v in self.measured]
        parts: list[object] = [
            tag("h1", f"Audit of {self.table}"),
            tag(
                "section", tag("strong", self.headline()),
                tag("p", f"{self.rows:,} rows in {self.classes:,} classes"),
                class_="verdict " + ("no" if self.alarming else "yes"),
            ),
            tag("h2", "The worst first"), html_table(("", "what"), worst),
        ]  # fmt: skip
        if self.required:
            rows = [(v.model, v.attribute or "", v.sentence()) for v in self.required]
            parts += [tag("h2", "Asked for"), html_table(("model", "column", "verdict"), rows)]
        parts += [
            tag("h2", "What holds"),
            html_table(("model", "column", "strongest setting", "measured"), measured),
        ]
        for beliefs in self.beliefs:
            parts += [tag("h3", f"{beliefs.attack} ({beliefs.kind})"), _listed(detail_lines(beliefs))]
        if self.controlled:
            parts += [
                tag("h2", "Attacks with a control (what the table adds)"),
                _listed([r.sentence() for r in self.controlled]),
            ]
        parts += [tag("h2", "How it was looked at"), _listed(self.notes)]
        return html_page(f"Audit of {self.table}", joined_markup(parts))


def _without_original(beliefs: Beliefs) -> str:
    """The sentence of an attack where nothing is known of the time before the release."""
    worst = beliefs.worst
    before_release = "" if beliefs.attack == "linkage" else "in the whole table"
    when = beliefs.earlier if beliefs.earlier != "before the release" else before_release
    before = f" ({when}: {belief_text(worst.before)})" if when else ""
    return f"{beliefs.attack}: at worst {belief_text(worst.after)}{before} for {worst.whom}; {worst.why}"


def _listed(lines: Sequence[str]) -> Markup:
    return tag("ul", *(tag("li", line) for line in lines)) if lines else tag("p", "Nothing more.")


def _strength_cells(verdict: Verdict) -> tuple[str, str, str, str]:
    """Model, column, strongest setting, what was measured."""
    shown = {
        k: v
        for k, v in verdict.parameters.items()
        if v is not None and v not in ("equal", "prosecutor", False)
    }
    setting = ", ".join(f"{k} = {v}" for k, v in shown.items()) if verdict.ok else "none holds"
    worst = "" if verdict.worst is None else f"{verdict.quantity} {number_text(verdict.worst)}"
    return verdict.model, verdict.attribute or "", setting, worst


def _aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows of words as columns."""
    found = list(rows)
    widths = [max((len(row[i]) for row in found), default=0) for i in range(len(found[0]) if found else 0)]
    return ["  ".join(f"{cell:{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in found]


MUCH, LITTLE = 10**9, "1e-9"
FACTS = 20  # how many known facts (c,k)-safety is asked to withstand

# What no table satisfies, per model; a model that is not listed needs more than a table to be measured.
IMPOSSIBLE: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "k-anonymity": [{"k": MUCH}],
    "simple-l-diversity": [{"l": MUCH}],
    "distinct-l-diversity": [{"l": MUCH}],
    "entropy-l-diversity": [{"l": MUCH}],
    "recursive-cl-diversity": [{"c": LITTLE, "l": 2}, {"c": LITTLE, "l": 3}],
    "alpha-k-anonymity": [{"alpha": LITTLE, "k": MUCH}],
    "p-sensitive-k-anonymity": [{"p": MUCH, "k": MUCH}],
    "t-closeness": [{"t": 0, "distance": d} for d in ("equal", "ordered", "hierarchical")],
    "ke-anonymity": [{"k": MUCH, "e": MUCH}],
    "ck-safety": [{"c": 1, "k": FACTS}],
    "delta-disclosure": [{"delta": LITTLE}],
    "beta-likeness": [{"beta": LITTLE}],
    "delta-presence": [{"delta_min": 0, "delta_max": LITTLE}, {"delta_min": 1, "delta_max": 1}],
    "k-map": [{"k": MUCH}],
    "average-risk": [{"max": LITTLE}],
    "highest-risk": [{"max": LITTLE}],
}


def unmeasured_models() -> list[str]:
    """Per model that cannot be asked of people with several rows, the reason."""
    asked = [(name, settings[0]) for name, settings in IMPOSSIBLE.items()] + [("m-confidentiality", {"m": 2})]
    return [f"not measured: {why.split(';')[0]}" for name, values in asked if (why := _unfit(name, values))]


def _unfit(name: str, values: Mapping[str, Any]) -> str:
    return _built(name, values).unfit_for_people()


def strongest_verdicts(
    shown: Classes, classes: Classes, context: Context, people: bool = False
) -> list[Verdict]:
    """The strongest verdicts that hold, and those that fail for every setting.

    Each model is first asked for the impossible; its own `nearest` then says what these classes would satisfy, and the
    model with that setting measures them. So a figure here is decided by the code that decides about releases.

    Args:
        shown: classes of equal published quasi-identifiers.
        classes: classes whose sensitive values are published together.
        context: what distributions are compared with.
        people: do people have several rows? Models that take a row for a person are not asked then.
    """
    found = []
    for name, settings in IMPOSSIBLE.items():
        if people and _unfit(name, settings[0]):
            continue
        about = MODELS[name].about
        where = shown if about == "quasi-identifiers" else classes
        for values in settings:
            attributes = list(classes.sensitive) if "attribute" in MODELS[name].model_fields else [None]
            if about == "sensitive" and not classes.sensitive:
                continue
            for attribute in attributes:
                if _makes_sense(name, values, attribute, where, context):
                    verdict = _strongest(name, values, attribute, where, context)
                    found += [verdict] if verdict is not None else []
    return found


def _makes_sense(
    name: str, values: Mapping[str, Any], attribute: str | None, classes: Classes, context: Context
) -> bool:
    if name in ("k-map", "delta-presence"):
        return classes.population is not None
    ordered = attribute is not None and classes.sensitive[attribute].ordered
    distance = values.get("distance", "equal")
    if name == "ke-anonymity" or distance == "ordered":
        return ordered
    return distance != "hierarchical" or attribute in context.hierarchies


def _strongest(
    name: str, values: Mapping[str, Any], attribute: str | None, classes: Classes, context: Context
) -> Verdict | None:
    about = {"attribute": attribute} if attribute else {}
    try:
        impossible = _built(name, {**values, **about})
        near = impossible.nearest(classes, context)
        if near is None:
            return impossible.check(classes, context)
        return _built(name, {**values, **about, **_settings(near)}).check(classes, context)
    except (
        PolicyError,
        InputError,
    ):  # the table does not fit the model: several values per person, no numbers …
        return None


def _built(name: str, values: Mapping[str, Any]) -> Model:
    return build_registered(MODELS, "model", name, values, name)


def _settings(near: str) -> dict[str, str]:
    """`k: 3, e: 2` as the settings it names."""
    return dict(part.split(": ", 1) for part in near.split(", "))
