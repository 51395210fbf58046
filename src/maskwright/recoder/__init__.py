"""Apply the full-domain recoding of a release to new rows, in the manner of scikit-learn's transformers.

New rows can break what the release promises, so they are checked: see docs/new-rows.md. A hierarchy that also knows the
values of new rows publishes the old ones exactly as before (`extend_recoding`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks import ATTACKS
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Beliefs
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.exact import number_text
from maskwright.domain.grouping import Allocation, Grouping, Labels, allocated_classes
from maskwright.domain.hierarchy import Hierarchy, Level
from maskwright.domain.model import Context, Model
from maskwright.domain.recoding_plan import ColumnMap, Plan
from maskwright.domain.references import References, context_of_rows
from maskwright.domain.release import Release
from maskwright.domain.settings import did_you_mean
from maskwright.domain.summary import Summary
from maskwright.domain.verdict import Verdict
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, SensitiveSpec, SummarySpec, Table
from maskwright.errors import HierarchyError, InputError, NotVerified, PolicyNotMet, UsageError
from maskwright.folder.store import PRIVATE
from maskwright.hierarchies.builder import Ladder
from maskwright.kernels.randomness import secret_key
from maskwright.models.belief import BeliefAtMost
from maskwright.pipeline.attacking import ADVERSARIES, attack_target, target_of
from maskwright.pipeline.label_text import published_codes, published_ladder
from maskwright.policy.binding import ladder_of, reading_options
from maskwright.policy.policy import Policy


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
            raise InputError(f"private/ of the release no longer describes column {name!r}; it was changed")
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


def new_rows_target(union: Union, applied: Sequence[Applied], kept: NDArray[np.bool_]) -> Target:
    """The new rows as a release of their own, for attacks: their classes hold nobody of the old release.

    Levels were fixed before any of them was seen, so that who knows the method knows no more by that.
    """
    group_of = np.full(union.new.n_tuples, -1, dtype=np.int64)
    _, first, number = np.unique(union.of_tuple[kept], return_index=True, return_inverse=True)
    group_of[kept] = number.reshape(-1)
    allocation = Allocation(np.arange(union.new.n_tuples), group_of, union.new.rows)
    tuples = np.flatnonzero(kept)[first]
    labels = []
    for part, codes in zip(applied, union.new.codes, strict=True):
        level = part.hierarchy.levels[part.level]
        of_group = level.blocks[codes[tuples]].astype(np.int32)
        labels.append(Labels(part.hierarchy.attribute, tuple(level.labels), level.leaves, of_group))
    classes = allocated_classes(union.new, allocation, len(first))
    levels = tuple(part.level for part in applied)
    grouping = Grouping(union.new, allocation, tuple(labels), classes, levels)
    return Target.of_groups(grouping, union.models, union.context)


Check = Literal["refuse", "suppress", "report"]
Order = Literal["shuffle", "keep"]
Published = Literal["together", "alone"]

__all__ = ["NewRows", "Recoder", "Violation"]


class Recoder:
    """A fitted full-domain recoding, for rows that were not there when the release was made.

    Make it with `Recoder.from_release`. After `transform` (or `fit`), `report_` says what was found, and `beliefs_`
    what can be believed by somebody who tells the new rows apart from the release: attacked as a release of their own.

    Args:
        release: a `Release`, or the folder of one that kept its private/ part.
        check: what happens when a class of the release with the new rows fails a requirement: "refuse" raises
            `PolicyNotMet`, "suppress" leaves the new rows of such classes out, "report" only says so in `report_`.
        order: "shuffle" draws the order of the rows, as for a release; "keep" keeps it, as pipelines need.
        published: "together" with the release as one table, or "alone" as a table of their own, whose classes
            must then be large enough by themselves.
    """

    def __init__(
        self,
        release: Release | str | Path,
        *,
        check: Check = "refuse",
        order: Order = "shuffle",
        published: Published = "together",
    ) -> None:
        self.release, self.check, self.order, self.published = release, check, order, published
        self.report_: NewRows | None = None
        self.beliefs_: tuple[Beliefs, ...] = ()

    @classmethod
    def from_release(cls, release: Release | str | Path, **options: Any) -> Recoder:
        """The recoding of a release, in memory or in its folder. Refuses one that is not full-domain."""
        recoder = cls(release, **options)
        recoder._recoding()
        return recoder

    # -- what scikit-learn calls ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Recoder:  # noqa: N803 - the name that pipelines use
        """Look whether these rows could be transformed. The recoding stays that of the release."""
        self._aligned(y)
        self._run(X, hand_over=False)
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """New rows as the release would publish them, as a table of the same kind."""
        return self._run(X, hand_over=True)

    def fit_transform(self, X: Any, y: Any = None) -> Any:  # noqa: N803
        """The rows as the release publishes them; nothing is fitted."""
        self._aligned(y)
        return self.transform(X)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters, as scikit-learn asks for them."""
        return {
            "release": self.release,
            "check": self.check,
            "order": self.order,
            "published": self.published,
        }

    def set_params(self, **parameters: Any) -> Recoder:
        """Set parameters of the constructor by name, and return the recoder."""
        for name, value in parameters.items():
            if name not in self.get_params():
                raise UsageError(
                    f"a Recoder has no parameter {name!r}; {did_you_mean(name, self.get_params())}"
                )
            setattr(self, name, value)
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The published columns, of those that go in (by default all of the policy)."""
        policy, _, _ = self._recoding()
        names = list(policy.columns) if input_features is None else list(input_features)
        return np.array(_published(policy, names), dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Recoder:
        return type(self)(**self.get_params())

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator  # asked for by scikit-learn, so it is there

        return BaseEstimator().__sklearn_tags__()

    def __repr__(self) -> str:
        settings = f"check={self.check!r}, order={self.order!r}, published={self.published!r}"
        return f"Recoder({settings})"

    # -- details --------------------------------------------------------------------------------------------

    def _aligned(self, y: Any) -> None:
        if y is not None and (self.order != "keep" or self.check == "suppress"):
            raise UsageError(
                "the rows must stay in line with y: use order='keep', and check='refuse' or 'report'"
            )

    def _settings(self) -> None:
        for name, kind in (("check", Check), ("order", Order), ("published", Published)):
            if (value := getattr(self, name)) not in get_args(kind):
                raise UsageError(f"{name}={value!r}: {did_you_mean(str(value), get_args(kind))}")

    def _recoding(self) -> tuple[Policy, Target, list[Applied]]:
        self._settings()
        target = target_of(self.release)
        if isinstance(self.release, Release):
            policy = self.release.policy
        else:
            policy = Policy.load(Path(self.release) / PRIVATE / "policy.yaml")
        grouping = target.grouping
        if grouping.levels is None or grouping.changes is not None or policy.recoding.name != "generalise":
            raise UsageError(
                "this release is not a full-domain recoding: its groups have labels of their own, which new rows do "
                "not fit into; only generalised releases of lattice methods can be applied to new rows"
            )
        if target.beside or any(column.multivalued for column in policy.columns.values()):
            raise UsageError(
                "this release has several tables, or columns of sets: new rows cannot be checked against those; make a "
                "new release of all rows"
            )
        if policy.perturbed:
            raise UsageError(
                f"this release publishes {', '.join(policy.perturbed)} with changes: new rows change "
                "groups and ranks, and errors that are drawn again average out; make a new release of all rows"
            )
        if policy.person_column:
            raise UsageError(
                "this release counts people by a unit: whether a new row belongs to somebody who is in it already "
                "is not known any more; make a new release of all rows"
            )
        if policy.shift_dates is not None:
            raise UsageError("this release has moved dates (shift_dates); make a new release of all rows")
        if policy.pseudonyms:
            raise UsageError(
                f"this release has pseudonyms in column {policy.pseudonyms[0]!r}: those of new rows would tell who is "
                "in it already; make a new release of all rows"
            )
        return policy, target, [applied_of(policy, grouping, a) for a in range(len(grouping.levels))]

    def _run(self, source: Any, hand_over: bool) -> Any:
        policy, target, applied = self._recoding()
        engine = open_engine()
        try:
            table = engine.open(source, reading_options(policy))
            names = [c.name for c in table.columns]
            for name in policy.quasi_identifiers:
                if name not in names:
                    raise InputError(f"the new rows have no column {name!r}; {did_you_mean(name, names)}")
            applied = [
                extend_recoding(a, policy, engine.domain(table, a.hierarchy.attribute).values)
                for a in applied
            ]
            specs, trees = _sensitive(engine, table, policy, target, names)
            drop = policy.missing.rows == "drop"
            spec = SummarySpec(tuple(a.hierarchy for a in applied), tuple(specs), None, drop)
            new = engine.summarise(table, spec)
            union = unite_releases(target, applied, new, trees, self.published == "alone")
            kept = self._decide(union)
            alone = new_rows_target(union, applied, kept)
            self.beliefs_ = tuple(attack_target(alone, list(ATTACKS), ADVERSARIES["neighbour"]))
            if not hand_over:
                return None
            drop_missing = [*policy.quasi_identifiers, *(s.name for s in specs)] if drop else []
            used = [np.unique(codes) for codes in new.codes[:, kept]]
            plan = Plan(
                _published(policy, names),
                [replace(a.map, used=u) for a, u in zip(applied, used, strict=True)],
                np.ascontiguousarray(new.codes[:, ~kept]),
                star=False,
                drop_missing=drop_missing,
                key=secret_key().hex() if self.order == "shuffle" else "",
            )
            recoded = engine.keep(engine.recode(table, plan))
            _recount(engine, recoded, union, kept)
            return engine.hand_over(recoded)
        finally:
            engine.close()

    def _decide(self, union: Union) -> NDArray[np.bool_]:
        """Which new tuples are published; sets `report_`."""
        rows = union.new.n_rows
        kept = np.ones(union.new.n_tuples, dtype=bool)
        violations, fails = union.violations(kept)
        self.report_ = NewRows(rows, 0, violations, union.unchecked)
        if self.check == "report":
            return kept
        if union.unchecked:
            raise PolicyNotMet(
                f"cannot be checked on new rows: {'; '.join(union.unchecked)}; nothing was published. Make a new "
                "release of all rows, or take responsibility with check='report'"
            )
        if self.check == "refuse" and violations:
            raise _refusal(violations)
        while fails.any():  # leaving rows out can change what is said of other classes
            out = fails[union.of_tuple] & kept
            if not out.any():
                raise _refusal(violations)
            kept &= ~out
            violations, fails = union.violations(kept)
        left_out = int(union.new.rows[~kept].sum())
        if left_out == rows:
            raise PolicyNotMet(f"all {rows} new rows are in classes that fail; nothing was published")
        self.report_ = NewRows(rows, left_out, self.report_.violations)
        return kept


def _refusal(violations: Sequence[Violation]) -> PolicyNotMet:
    shown = "; ".join(map(str, violations[:3]))
    more = f"; and {len(violations) - 3} more" if len(violations) > 3 else ""
    classes = len({tuple(v.labels.values()) for v in violations})
    return PolicyNotMet(
        f"with the new rows {classes} class{'es' if classes > 1 else ''} would fail: {shown}{more}; nothing was "
        "published. Use check='suppress' to leave these rows out, or wait until there are more of them",
        details="\n".join(map(str, violations)),
    )


def _published(policy: Policy, names: Sequence[str]) -> list[str]:
    return [n for n in names if n in policy.columns and policy.columns[n].role != "identifier"]


def _sensitive(
    engine: Engine, table: Table, policy: Policy, target: Target, names: Sequence[str]
) -> tuple[list[SensitiveSpec], dict[str, Hierarchy]]:
    """The sensitive columns that the new rows have, with the values of both; and their hierarchies."""
    specs, hierarchies = [], {}
    old = target.grouping.summary.sensitive
    for name in policy.sensitive:
        if name not in names:
            continue
        domain = engine.domain(table, name)
        if (hierarchy := target.context.hierarchies.get(name)) is not None:
            whole = extend_recoding(Applied(hierarchy, 0), policy, domain.values).hierarchy
            hierarchies[name] = whole
            specs.append(SensitiveSpec(name, whole.values, whole.ordered))
            continue
        unseen = [value for value in domain.values if value not in set(old[name].values)]
        ordered = old[name].ordered and (domain.numeric or not domain.values)
        values = sorted([*old[name].values, *unseen], key=float if ordered else str)
        specs.append(SensitiveSpec(name, tuple(values), ordered))
    return specs, hierarchies


def _recount(engine: Engine, recoded: Table, union: Union, kept: NDArray[np.bool_]) -> None:
    """The table must hold exactly the classes that were checked, row for row."""
    found = engine.recount(recoded, union.names)
    _, new = union.counts(kept)
    expected = Counter({labels: int(n) for labels, n in zip(union.labels, new, strict=True) if n})
    if Counter(dict(zip(found.labels, found.rows.tolist(), strict=True))) != expected:
        raise NotVerified("the recoded rows are not those that were checked; please report this")


@dataclass(frozen=True, eq=False)
class Applied:
    """One quasi-identifier: its hierarchy, and the level that the release has it at."""

    hierarchy: Hierarchy
    level: int

    @property
    def labels(self) -> tuple[str | None, ...]:
        """The labels of the level."""
        return self.hierarchy.levels[self.level].labels

    @property
    def map(self) -> ColumnMap:
        """The label of every value, for the engine."""
        level = self.hierarchy.levels[self.level]
        texts = tuple(level.labels[block] for block in level.blocks.tolist())
        return ColumnMap(self.hierarchy, texts, identity=self.level == 0)


def applied_of(policy: Policy, grouping: Grouping, a: int) -> Applied:
    """The recoding of one quasi-identifier: what the policy says of the published values, if that was published.

    Releases of versions that labelled groups by the values of the whole table are recoded by its hierarchy.
    """
    hierarchy, labels, allocation = (
        grouping.summary.attributes[a],
        grouping.published_labels[a],
        grouping.allocation,
    )
    codes = published_codes(grouping)[a]
    built = _whole(hierarchy.attribute, published_ladder(policy, hierarchy, codes))
    code = {value: i + 1 for i, value in enumerate(built.values)}
    shown = np.full(len(hierarchy.values) + 1, -1, dtype=np.int64)
    there = (
        allocation.groups >= 0
        if grouping.starred is None
        else (allocation.groups >= 0) & (allocation.groups != grouping.starred)
    )
    shown[grouping.summary.codes[a][allocation.tuples[there]]] = labels.of_group[allocation.groups[there]]
    published = [(value, labels.texts[shown[c]]) for c in codes.tolist() for value in hierarchy.members(c)]
    for number, level in enumerate(built.levels):
        if all(_label(level, code[value]) == text for value, text in published):
            return Applied(built, number)
    return Applied(*hierarchy.uncut((grouping.levels or ())[a]))


def _whole(attribute: str, ladder: Ladder) -> Hierarchy:
    """The hierarchy with every level that the policy names."""
    names = [name for name, _ in ladder.levels]
    return Hierarchy.of(
        attribute, ladder.ground, ladder.levels, chain=ladder.chain, ordered=ladder.ordered, kept=names
    )


def extend_recoding(applied: Applied, policy: Policy, values: Sequence[str]) -> Applied:
    """The recoding for more values: the policy's own builder is asked for them.

    Refuses a value that the builder does not know (it is not in the file, tree or groups), and one that would change
    how other values are published.
    """
    name = applied.hierarchy.attribute
    known = set(applied.hierarchy.values)
    unseen = [value for value in values if value not in known]
    if not unseen:
        return applied
    try:
        built = _whole(name, ladder_of(policy, name, [*applied.hierarchy.values, *unseen]))
    except HierarchyError:
        raise _refused(name, unseen, "the policy does not list it either") from None
    level = _same_level(applied, built)
    if level is None or not set(unseen) <= set(built.values):
        raise _refused(name, unseen, "with it the levels would not be those of the release")
    return Applied(built, level)


def _refused(name: str, unseen: Sequence[str], why: str) -> HierarchyError:
    more = f" and {len(unseen) - 3} more" if len(unseen) > 3 else ""
    return HierarchyError(
        f"column {name!r}: the hierarchy of the release does not know {', '.join(map(repr, unseen[:3]))}{more} "
        f"({why}); leave these rows out, or make a new release of all rows"
    )


def _same_level(applied: Applied, built: Hierarchy) -> int | None:
    """The level of the new hierarchy that publishes all old values under their old labels."""
    old = applied.hierarchy
    if applied.level in (0, old.top):
        return 0 if applied.level == 0 else built.top
    code = {value: i + 1 for i, value in enumerate(built.values)}
    places = [code.get(value, 0) for value in old.values]
    for number, level in enumerate(built.levels):
        if level.name == old.levels[applied.level].name and all(places):
            same = [_label(level, c) for c in places] == [
                _label(old.levels[applied.level], c) for c in range(1, len(old.values) + 1)
            ]
            return number if same else None
    return None


def _label(level: Level, code: int) -> str | None:
    return level.labels[int(level.blocks[code])]
