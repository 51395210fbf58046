"""A release: the published parts, what was measured on them, and what is needed to attack them.

Its applied mapping documents as what every value of a quasi-identifier was published. A full-domain recoding publishes
a value as one label everywhere. Where groups have labels of their own (Mondrian, local recoding …) a value may have
several: each is listed with its rows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import NOT_COMPUTED, Beliefs
from maskwright.domain.classes import Ints
from maskwright.domain.exact import number_text, percent_text
from maskwright.domain.grouping import Grouping, exact_view
from maskwright.domain.hierarchy import TOP
from maskwright.domain.method import Part
from maskwright.domain.promise import Promise, promise_labels
from maskwright.domain.shown import Shown
from maskwright.domain.spreadsheets import escape_row
from maskwright.domain.verdict import Measured, Verdict, plain_number
from maskwright.runtime.disk import write_whole

if TYPE_CHECKING:
    from maskwright.identifiers.date_shifts import DateShiftRisk
    from maskwright.policy.policy import Policy
    from maskwright.prepare import Repair

Fate = Literal["published", "starred", "dropped"]
HALF = Fraction(1, 2)
# promises hold where all worlds are equally likely; what somebody learns is a question of its own
LEARNS = (
    "learned: the beliefs of somebody who learns from the release how values depend on quasi-identifiers (maskwright "
    "attack RELEASE --adversary learns)"
)
GREAT_LOSS = HALF  # of the detail: a release that loses more is published with a warning
SHARE_LOST = "% of the detail of the quasi-identifiers is lost"  # how a sentence about it ends


@dataclass(frozen=True, eq=False, repr=False)
class Release(Shown):
    """What `anonymize` returns. Everything in it was measured on what is published."""

    parts: tuple[Part, ...]
    policy: Policy
    verdicts: tuple[Verdict, ...]
    beliefs: tuple[Beliefs, ...]
    metrics: Mapping[str, Measured]
    notes: tuple[str, ...] = ()
    dropped_columns: tuple[str, ...] = ()
    seeded: bool = False  # with a fixed seed: anybody can work out the random choices
    repeatable: bool = True  # the same policy on the same input gives it again; False: no key could be kept
    timings: Mapping[str, float] = field(default_factory=dict)
    history: Mapping[str, Any] = field(default_factory=dict)  # what was tried on the same input before
    path: Path | None = None
    target: Target | None = field(default=None, repr=False)
    promises: tuple[
        Promise, ...
    ] = ()  # what is promised of each sensitive attribute to somebody who knows the method
    repairs: tuple[Repair, ...] = ()  # what was found in the columns that were prepared
    tight: tuple[str, ...] = ()  # bounds that leave no room, as they were told before the search
    singled_out: tuple[str, ...] = ()  # how many people insensitive columns single out, where they do
    date_shift: DateShiftRisk | None = None  # what known events tell of dates that were moved
    saver: Callable[..., Path] | None = field(default=None, repr=False)

    @property
    def table(self) -> Any:
        """The published table, of the caller's own kind."""
        if len(self.parts) != 1:
            raise ValueError(f"this release has {len(self.parts)} tables; use release.tables")
        return self.parts[0].table

    @property
    def tables(self) -> dict[str, Any]:
        """The published tables by name."""
        return {part.name: part.table for part in self.parts}

    @property
    def grouping(self) -> Grouping:
        """The grouping of the release; of its first table, where codip made several."""
        return self.parts[0].grouping

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """One for each part of the release; a bucketized part has two tables and one grouping."""
        return tuple({id(part.grouping): part.grouping for part in self.parts}.values())

    @property
    def mapping(self) -> AppliedMapping:
        """As what every value of the quasi-identifiers was published. As sensitive as the input (see `reveals`)."""
        return applied_mapping(self._named_groupings(), self.policy.recoding.exact)

    def _named_groupings(self) -> dict[str, Grouping]:
        """Each grouping by its first table, which shows the quasi-identifiers."""
        groupings: dict[str, Grouping] = {}
        for part in self.parts:
            if not any(part.grouping is known for known in groupings.values()):
                groupings[part.name] = part.grouping
        return groupings

    @property
    def ok(self) -> bool:
        """Whether every requirement holds."""
        return all(v.ok for v in self.verdicts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a publisher must know although every requirement holds: little is left, and why."""
        return (*self.singled_out, *self.lone_values, *self.great_losses, *self.loss_reasons, *self.tight)

    @property
    def lone_values(self) -> tuple[str, ...]:
        """The sensitive columns of which most people have a value that nobody else has, as amounts to the cent are."""
        found = dict[str, str]()
        for grouping in self.groupings:
            for name, counts in grouping.published_classes.sensitive.items():
                if name not in self.policy.sensitive or name in self.policy.perturbed:
                    continue  # what is published of a changed column are other values
                there = counts.codes > 0
                people = np.bincount(counts.codes[there], weights=counts.counts[there])
                share = Fraction(int((people == 1).sum()), max(1, int(people.sum())))
                if share > HALF:
                    found[name] = (
                        f"{percent_text(share)} of the values of {name} occur once: whoever knows one finds its row, "
                        "and reads the rest of it; round them before, or make the column a quasi-identifier"
                    )
        return tuple(found.values())

    @property
    def great_losses(self) -> tuple[str, ...]:
        """Of what little is left: whole columns, telling people apart, half of the detail."""
        named = self._named_groupings()
        lines = [
            f"{name}: {line}" if len(named) > 1 else line
            for name, grouping in named.items()
            for line in little_left(grouping, self.policy.recoding.exact)
        ]
        loss = float(self.metrics.get("information-loss", 0))
        if loss > GREAT_LOSS and not any("one class" in line for line in lines):
            lines.append(f"{100 * loss:.0f} {SHARE_LOST}")
        return tuple(lines)

    @property
    def loss_reasons(self) -> tuple[str, ...]:
        """Why little is left, where little is: one level for all rows, or hardly any classes that there can be."""
        if self.tight or not self.great_losses:  # a bound that leaves no room is the reason
            return ()
        k = max((int(v.parameters["k"]) for v in self.verdicts if v.model == "k-anonymity"), default=1)
        named = self._named_groupings().values()
        return tuple(dict.fromkeys(why for g in named if (why := why_little_is_left(g, k))))

    @property
    def label(self) -> dict[str, Any]:
        """What a reader must know of the promises: each with its ingredients, earlier looks, what was not attacked."""
        tried = sum(int(self.history.get(kind, 0)) for kind in ("compared", "run", "draws"))
        looks = f"{tried} earlier look{'s' if tried != 1 else ''} at this input" if tried else ""
        if self.history.get("damaged"):
            looks = "whether this input was looked at before is not known"
        return {
            "promises": promise_labels(
                [p.as_dict() for p in self.promises], [v.as_dict() for v in self.verdicts]
            ),
            "earlier_looks": looks or "no earlier look at this input",
            "not_attacked": [
                *(f"{b.attack}: {b.worst.why}" for b in self.beliefs if b.kind == NOT_COMPUTED),
                *([LEARNS] if self.promises and not self._learned else []),
            ],
        }

    @property
    def _learned(self) -> bool:
        """Was this release attacked by somebody who learns from it?"""
        asked = any(dict(v.parameters).get("adversary") == "learns" for v in self.verdicts)
        return asked or any(b.attack == "learned" for b in self.beliefs)

    def save(self, destination: str | Path, **options: Any) -> Path:
        """Write the release (public/ and private/), recount the files, and rename them into place.

        Options: `overwrite`, `keep_private` ("all", "report", "none").
        """
        if self.saver is None:
            raise ValueError("this release was read from disk; copy its folder instead")
        return self.saver(Path(destination), **options)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what a machine wants to know."""
        grouping = self.grouping
        return {
            "ok": self.ok,
            "path": str(self.path) if self.path else None,
            "rows": {
                "input": grouping.summary.n_input,
                "published": grouping.published_rows,
                "suppressed": grouping.suppressed_rows,
                "dropped_missing": grouping.summary.dropped_missing,
                "dropped_per_person": grouping.summary.dropped_per_person,
            },
            "people": grouping.summary.n_people,
            "columns": {
                "published": list(dict.fromkeys(c for part in self.parts for c in part.columns)),
                "dropped": list(self.dropped_columns),
            },
            "tables": [
                {"name": p.name, "columns": list(p.columns), "rows": p.grouping.published_rows}
                for p in self.parts
            ],
            "verdicts": [v.as_dict() for v in self.verdicts],
            "beliefs": [b.as_dict() for b in self.beliefs],
            "promises": [p.as_dict() for p in self.promises],
            "label": self.label,
            "metrics": {name: plain_number(value) for name, value in self.metrics.items()},
            "search": json_value(grouping.search),
            "levels": level_names(grouping),
            "notes": list(self.notes),
            "singled_out": list(self.singled_out),
            "date_shift": None if self.date_shift is None else self.date_shift.as_dict(),
            "prepared": [asdict(repair) for repair in self.repairs],
            "warnings": list(self.warnings),
            "seeded": self.seeded,
            "repeatable": self.repeatable,
            "history": dict(self.history),
            "perturbed": dict(self.target.perturbed) if self.target else {},
            "passing": [p.as_dict() for t in self.target.tables for p in t.passing] if self.target else [],
            "run": self.target.design.as_dict() if self.target and self.target.design else {},
            "timings": dict(self.timings),
        }

    def headline(self) -> str:
        """Rows, requirements and the loss, in a line."""
        grouping = self.grouping
        words = [f"{grouping.published_rows:,} of {grouping.summary.n_input:,} rows published"]
        failing = sum(not v.ok for v in self.verdicts)
        words.append(f"{failing} requirements fail" if failing else "every requirement holds")
        if "information-loss" in self.metrics:
            words.append(f"{percent_text(self.metrics['information-loss'])} of the detail lost")
        return "; ".join(words)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Sequence[str]:
        """The release in a few lines for people."""
        g = self.grouping
        lines = [f"{g.published_rows} of {g.summary.n_input} rows published"]
        lines += self.warnings
        if len(self.groupings) > 1:
            lines += [f"{p.name}: {', '.join(p.columns)}" for p in self.parts]
        lines += [v.sentence() for v in self.verdicts]
        lines += [b.sentence() for b in self.beliefs]
        lines += [f"{name}: {number_text(value)}" for name, value in self.metrics.items()]
        return lines


def little_left(grouping: Grouping, exact: bool) -> list[str]:
    """Of what a grouping leaves nothing: of telling people apart, or of whole columns (`exact`: those are kept)."""
    rows = f"all {grouping.published_rows:,} published rows"
    if exact:
        return [f"{rows} are one group: nothing ties a value to anybody"] if grouping.classes.n == 1 else []
    shown = {
        labels.attribute: {labels.texts[i] for i in np.unique(labels.of_group).tolist()}
        for labels in grouping.published_labels
    }
    # groups whose labels are alike are one class to the reader
    one = all(len(texts) == 1 for texts in shown.values())
    lines = [f"{rows} are one class: nobody is told apart"] if one else []
    largest = int(grouping.classes.rows.argmax()) if grouping.classes.n else 0
    share = Fraction(int(grouping.classes.rows[largest]), max(1, grouping.published_rows))
    coarse = any(labels.coverage[labels.of_group[largest]] > 1 for labels in grouping.labels)
    if not one and coarse and share > HALF:
        lines.append(f"{100 * float(share):.0f} % of the published rows are one class")
    if stars := [name for name, texts in shown.items() if texts == {TOP}]:
        lines.append(f"nothing is left of these columns, which are {TOP} throughout: {', '.join(stars)}")
    return lines


def why_little_is_left(grouping: Grouping, k: int) -> str:
    """Why detail is lost, as far as it follows from the method and the size of the table; otherwise nothing."""
    summary = grouping.summary
    if grouping.levels is not None:
        return (
            "the reason is that this method publishes each column at one level in all rows, so the rarest "
            "combinations decide for everybody: one that labels every class by itself need not"
        )
    most = summary.n_people // k
    if summary.n_tuples <= most:
        return ""
    return (
        f"the reason is that {len(summary.attributes)} quasi-identifiers have {summary.n_tuples:,} different "
        f"combinations, and {summary.n_people:,} people make at most {most:,} classes of {k}: the fewer "
        "quasi-identifiers, the more is left of each"
    )


def level_names(grouping: Grouping) -> dict[str, str] | None:
    """Which level each attribute was published at, for full-domain releases."""
    if grouping.levels is None:
        return None
    if grouping.renderings is not None:
        return {r.labels.attribute: r.level or "" for r in grouping.renderings}
    return {
        h.attribute: h.levels[i].name
        for h, i in zip(grouping.summary.attributes, grouping.levels, strict=True)
    }


def json_value(value: Any) -> Any:
    """Search notes and the like as JSON can hold them."""
    if isinstance(value, Mapping):
        return {str(k): json_value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(v) for v in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if hasattr(value, "item"):
        return value.item()
    return str(value)


@dataclass(frozen=True)
class Mapped:
    """`rows` rows of the input have `value` in `column`, and show `label` there in `table` (None: missing).

    Of rows that were dropped nothing is shown. Where the policy coarsens a column before it is counted (`finest`),
    nobody knows how many rows have each of the values that became one: then `rows` is None.
    """

    table: str
    column: str
    value: str | None
    label: str | None
    rows: int | None
    fate: Fate = "published"


@dataclass(frozen=True)
class AppliedMapping:
    """All quasi-identifiers of a release.

    Attributes:
        entries: by table and column, then in the order of the hierarchy (missing first).
        full_domain: every published value has one label.
    """

    entries: tuple[Mapped, ...]
    full_domain: bool

    def __getitem__(self, column: str) -> dict[str | None, tuple[str | None, ...]]:
        """The labels of each published value of a column, in all tables."""
        found: dict[str | None, tuple[str | None, ...]] = {}
        known = False
        for entry in self.entries:
            known = known or entry.column == column
            if entry.column == column and entry.fate != "dropped":
                found[entry.value] = (*found.get(entry.value, ()), entry.label)
        if not known:
            raise KeyError(column)
        return found

    def __iter__(self) -> Iterator[Mapped]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def reveals(self) -> bool:
        """Does it say of any row what the release does not: a value that is coarsened, starred or dropped?"""
        return any(entry.fate != "published" or entry.label != entry.value for entry in self.entries)

    @property
    def of_published(self) -> AppliedMapping:
        """Without what was dropped: nobody is to see from it whether anything was."""
        kept = tuple(entry for entry in self.entries if entry.fate != "dropped")
        return AppliedMapping(kept, self.full_domain)

    def write(self, path: Path, rows: bool = True) -> None:
        """As CSV; missing is an empty field. `rows`: also how many rows of the input that are.

        What a spreadsheet would run is escaped, because people open it in one. Where it reveals something only its
        owner can read the file.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["table", "column", "value", "label", *(["rows", "fate"] if rows else [])])
        for e in self.entries:
            row = [e.table, e.column, e.value, e.label, *([e.rows, e.fate] if rows else [])]
            writer.writerow(escape_row(row))
        write_whole(path, text.getvalue(), mode=0o600 if self.reveals else None)


def applied_mapping(groupings: Mapping[str, Grouping], exact: bool = False) -> AppliedMapping:
    """What became of every value that occurs, by table.

    Args:
        groupings: of the tables that show quasi-identifiers (several only where a release has several parts).
        exact: the quasi-identifiers were published as they are.
    """
    shown = {table: exact_view(g) if exact else g for table, g in groupings.items()}
    entries = [e for table, g in shown.items() for a in range(len(g.labels)) for e in _column(table, g, a)]
    return AppliedMapping(tuple(entries), all(g.levels is not None for g in shown.values()))


def _column(table: str, grouping: Grouping, a: int) -> list[Mapped]:
    """The distinct (value, label) of one attribute, with their rows."""
    hierarchy, labels, allocation = (
        grouping.summary.attributes[a],
        grouping.published_labels[a],
        grouping.allocation,
    )
    radix = len(labels.texts) + 1
    code = grouping.summary.codes[a][allocation.tuples].astype(np.int64)
    shown = np.where(allocation.groups >= 0, labels.of_group[allocation.groups] + 1, 0)  # 0: dropped
    starred = allocation.groups == (-2 if grouping.starred is None else grouping.starred)
    keys, rows = _totals((code * 2 + starred) * radix + shown, allocation.rows)
    result = []
    for key, n in zip(keys.tolist(), rows.tolist(), strict=True):
        rest, label = divmod(key, radix)
        fate: Fate = "dropped" if label == 0 else "starred" if rest % 2 else "published"
        text = labels.texts[label - 1] if label else None
        values = hierarchy.members(rest // 2) or (None,)
        known = n if len(values) == 1 else None
        result += [Mapped(table, hierarchy.attribute, value, text, known, fate) for value in values]
    return result


def _totals(keys: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The distinct keys, ascending, and the sum of rows of each."""
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    first = (
        np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, dtype=np.int64)
    )
    return keys[first], np.add.reduceat(rows, first) if len(first) else rows
