"""The classes of a release together with new rows, and what the requirements say about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.adversary import Target
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.exact import number_text
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.model import Context, Model
from maskwright.domain.references import References, context_of_rows
from maskwright.domain.summary import Summary
from maskwright.domain.verdict import Verdict
from maskwright.errors import InputError
from maskwright.models.belief import BeliefAtMost
from maskwright.recoder.extended_hierarchy import Applied


@dataclass(frozen=True)
class Violation:
    """A class that fails a requirement: its labels, its rows in the release, and the new ones."""

    labels: Mapping[str, str | None]
    released: int
    new: int
    requirement: str
    measured: str

    def __str__(self) -> str:
        what = ", ".join(f"{name} {label!r}" for name, label in self.labels.items())
        return f"{what} ({self.released} released, {self.new} new): {self.requirement}, {self.measured}"


@dataclass(frozen=True)
class NewRows:
    """What became of new rows.

    Attributes:
        rows: new rows that were handed in, without those that the policy drops because a value is missing.
        suppressed: new rows left out because their class fails a requirement.
        violations: the failing classes, as they were before any row was left out.
        unchecked: requirements that cannot be checked on new rows, in words.
    """

    rows: int
    suppressed: int
    violations: tuple[Violation, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def published(self) -> int:
        """The number of new rows that are published."""
        return self.rows - self.suppressed

    @property
    def ok(self) -> bool:
        """Were all requirements checked, and is none violated?"""
        return not self.violations and not self.unchecked

    def __str__(self) -> str:
        lines = [f"{self.published} of {self.rows} new rows published"]
        lines += [f"fails: {violation}" for violation in self.violations]
        return "\n".join([*lines, *(f"not checked: {text}" for text in self.unchecked)])


@dataclass(frozen=True, eq=False)
class Union:
    """The release and the new rows by class, as a reader of both sees them.

    Attributes:
        labels: per class the published text of each quasi-identifier.
        codes: the same as numbers, one row per quasi-identifier.
        names: the quasi-identifiers.
        released: the class of each group of the release; none when new rows are published on their own.
        of_tuple: the class of each distinct tuple of the new rows.
    """

    target: Target
    names: tuple[str, ...]
    labels: tuple[tuple[str | None, ...], ...]
    codes: NDArray[np.int32]
    released: Ints
    of_tuple: Ints
    new: Summary
    context: Context
    unchecked: tuple[str, ...] = ()
    models: Sequence[Model] = field(default=())

    @property
    def n(self) -> int:
        """The number of classes."""
        return len(self.labels)

    def counts(self, kept: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Rows per class: of the release, and new ones among the tuples that are kept."""
        before = np.zeros(self.n, dtype=np.int64)
        if len(self.released):
            np.add.at(before, self.released, self.target.grouping.classes.rows)
        after = np.zeros(self.n, dtype=np.int64)
        np.add.at(after, self.of_tuple[kept], self.new.rows[kept])
        return before, after

    def check(self, kept: NDArray[np.bool_]) -> tuple[list[Verdict], Ints]:
        """What every model says when only some of the new tuples are published; and which classes there are."""
        before, after = self.counts(kept)
        there = np.flatnonzero(before + after)
        classes = Classes(before + after, before + after, self._values(kept)).take(before + after > 0)
        classes = replace(classes, attributes=self.names, codes=self.codes[:, there])
        totals = {name: vc.totals for name, vc in classes.sensitive.items()}
        gates = context_of_rows(self.context, totals, int(classes.sizes.sum()))
        references = References(self.context, gates)
        return [references.check(model, classes) for model in self.models], there

    def _values(self, kept: NDArray[np.bool_]) -> dict[str, ValueCounts]:
        old = self.target.grouping.published_classes.sensitive
        found = {}
        for name, vc in self.new.sensitive.items():
            entry = kept[vc.owner]
            owner, codes, counts = self.of_tuple[vc.owner[entry]], vc.codes[entry], vc.counts[entry]
            if len(self.released):
                translate = _translation(old[name].values, vc.values)
                owner = np.concatenate([owner, self.released[old[name].owner]])
                codes = np.concatenate([codes, translate[old[name].codes]])
                counts = np.concatenate([counts, old[name].counts])
            found[name] = ValueCounts.collect(
                vc.values, self.n, owner, codes.astype(np.int64), counts, vc.ordered
            )
        return found

    def violations(self, kept: NDArray[np.bool_]) -> tuple[tuple[Violation, ...], NDArray[np.bool_]]:
        """The failing classes in words; and per class whether it fails."""
        verdicts, there = self.check(kept)
        before, after = self.counts(kept)
        fails = np.zeros(self.n, dtype=bool)
        found = []
        for verdict in verdicts:
            fails[there[verdict.failing]] = True
            about = f" of {verdict.attribute}" if verdict.attribute else ""
            for place in verdict.failing.tolist():
                c = int(there[place])
                measured = f"{verdict.quantity} {number_text(verdict.values[place])}"
                labels = dict(zip(self.names, self.labels[c], strict=True))
                asked = f"{verdict.model}{about} asks {verdict.bound}"
                found.append(Violation(labels, int(before[c]), int(after[c]), asked, measured))
        return tuple(found), fails


def unite_releases(
    target: Target, applied: Sequence[Applied], new: Summary, sensitive: Mapping[str, Hierarchy], alone: bool
) -> Union:
    """Find the classes by what is published: labels of groups, and labels of the new tuples."""
    grouping = target.grouping
    n_old = 0 if alone else grouping.classes.n
    columns, texts = [], []
    for a, (part, labels) in enumerate(zip(applied, grouping.published_labels, strict=True)):
        level = part.hierarchy.levels[part.level]
        place = {text: block for block, text in enumerate(level.labels)}
        star = len(level.labels)  # `*` of suppressed rows, where the level has no such label itself
        of_text = np.array([place.get(text, star) for text in labels.texts], dtype=np.int64)
        columns.append(np.concatenate([of_text[labels.of_group][:n_old], level.blocks[new.codes[a]]]))
        texts.append((*level.labels, "*"))
    distinct, number = np.unique(np.stack(columns), axis=1, return_inverse=True)
    number = number.ravel().astype(np.int64)
    published = tuple(
        tuple(text[i] for text, i in zip(texts, column, strict=True)) for column in distinct.T.tolist()
    )
    models, unchecked = _checkable(target.models, new)
    return Union(
        target, tuple(part.hierarchy.attribute for part in applied), published,
        distinct.astype(np.int32), number[:n_old], number[n_old:], new,
        _context(target, new, sensitive), unchecked, models,
    )  # fmt: skip


def _checkable(models: Sequence[Model], new: Summary) -> tuple[list[Model], tuple[str, ...]]:
    """The requirements that classes alone decide, and why the others cannot be checked."""
    able, unable = [], []
    for model in models:
        attribute = model.attribute_name()
        if isinstance(model, BeliefAtMost):
            unable.append(f"{model.name}: it needs attacks on the whole table")
        elif model.needs() - {"labels"}:
            unable.append(f"{model.name}: it needs more than the published rows show")
        elif model.about == "sensitive" and (attribute or "") not in new.sensitive and attribute is not None:
            unable.append(f"{model.name}: the new rows have no column {attribute!r}")
        elif model.about == "sensitive" and not new.sensitive:
            unable.append(f"{model.name}: the new rows have no sensitive column")
        else:
            able.append(model)
    return able, tuple(unable)


def _context(target: Target, new: Summary, sensitive: Mapping[str, Hierarchy]) -> Context:
    """Reference distributions of all rows: those that the release was made of, and the new ones."""
    old = target.context
    reference, domains = dict(old.reference), dict(old.domains)
    for name, vc in new.sensitive.items():
        total = vc.totals.copy()
        if name not in old.domains or name not in old.reference:
            raise InputError(
                f"private/ of the release says nothing of column {name!r} any more; it was changed"
            )
        np.add.at(total, _translation(old.domains[name], vc.values), old.reference[name])
        reference[name], domains[name] = total, vc.values
    return replace(
        old, reference=reference, domains=domains, n_people=old.n_people + new.n_people,
        hierarchies={**old.hierarchies, **sensitive},
    )  # fmt: skip


def _translation(old: tuple[str, ...], values: tuple[str, ...]) -> Ints:
    """From codes of the old domain to codes of the new one."""
    code = {value: i + 1 for i, value in enumerate(values)}
    return np.array([0, *(code[value] for value in old)], dtype=np.int64)
