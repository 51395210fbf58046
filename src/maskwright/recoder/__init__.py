"""Apply the full-domain recoding of a release to new rows, in the manner of scikit-learn's transformers.

New rows can break what the release promises, so they are checked: see docs/new-rows.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.adversary import Target
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.recoding_plan import Plan
from maskwright.domain.release import Release
from maskwright.domain.settings import did_you_mean
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, SensitiveSpec, SummarySpec, Table
from maskwright.errors import InputError, NotVerified, PolicyNotMet, UsageError
from maskwright.folder.store import PRIVATE
from maskwright.kernels.randomness import secret_key
from maskwright.pipeline.attacking import target_of
from maskwright.policy.binding import reading_options
from maskwright.policy.policy import Policy
from maskwright.recoder.extended_hierarchy import Applied, applied_of, extend_recoding
from maskwright.recoder.union import NewRows, Union, Violation, unite_releases

Check = Literal["refuse", "suppress", "report"]
Order = Literal["shuffle", "keep"]
Published = Literal["together", "alone"]

__all__ = ["NewRows", "Recoder", "Violation"]


class Recoder:
    """A fitted full-domain recoding, for rows that were not there when the release was made.

    Make it with `Recoder.from_release`. After `transform` (or `fit`), `report_` says what was found.

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
        if policy.person_column:
            raise UsageError(
                "this release counts people by a unit: whether a new row belongs to somebody who is in it already "
                "is not known any more; make a new release of all rows"
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
