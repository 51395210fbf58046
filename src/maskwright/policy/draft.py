"""A policy written step by step in Python: `mw.Policy().quasi_identifier("age", mw.intervals(5, 10)).require(…)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from maskwright.domain.shown import Shown
from maskwright.policy.yaml_text import dump_yaml

if TYPE_CHECKING:
    from maskwright.domain.method import Method
    from maskwright.domain.model import Model
    from maskwright.hierarchies.builder import Builder
    from maskwright.policy.policy import Policy


@dataclass(frozen=True, repr=False)
class PolicyDraft(Shown):
    """A policy in the making: each step returns a new draft, and `build` checks the whole.

    It is taken wherever a policy is, and says the same as a policy file: `to_yaml()` writes that file.
    """

    values: Mapping[str, Any] = field(default_factory=dict)

    def identifier(self, *names: str) -> PolicyDraft:
        """Columns that name a person; they are never published as they are."""
        return self._with_columns(dict.fromkeys(names, "identifier"))

    def quasi_identifier(
        self, name: str, hierarchy: Builder | Mapping[str, Any] | str | None = None, *, keep: str | None = None,
        **settings: Any,
    ) -> PolicyDraft:  # fmt: skip
        """A column that an attacker could know about everybody.

        Args:
            name: the column.
            hierarchy: the ways to coarsen it: `mw.intervals(5, 10)`, `mw.mask("right")`, `mw.suppress()` …
            keep: the coarsest level that it may be published at.
            settings: `weight`, `levels`, `finest`, `order`, as in a policy file.
        """
        given = {} if hierarchy is None else {"hierarchy": _plain_hierarchy(hierarchy)}
        draft = self._with_columns({name: {"role": "quasi-identifier", **given, **settings}})
        return draft if keep is None else draft.set(keep={**self.values.get("keep", {}), name: keep})

    def sensitive(self, name: str, **settings: Any) -> PolicyDraft:
        """A column whose values nobody should be able to infer.

        Args:
            name: the column.
            settings: `hierarchy`, `order`, `sensitive_sets`, `multivalued`, as in a policy file.
        """
        if "hierarchy" in settings:
            settings["hierarchy"] = _plain_hierarchy(settings["hierarchy"])
        return self._with_columns({name: {"role": "sensitive", **settings}})

    def insensitive(self, *names: str, **settings: Any) -> PolicyDraft:
        """Columns that are published as they are; `near_unique="allow"` where they may single people out."""
        return self._with_columns({name: {"role": "insensitive", **settings} for name in names})

    def require(self, *models: Model | Mapping[str, Any], **settings: Any) -> PolicyDraft:
        """What must hold: `mw.KAnonymity(5)`, `mw.BeliefAtMost("1/4", adversary="knows-method")`.

        Args:
            models: one or several; each is added to those that are required already.
            settings: for all of these models, e.g. `use="gate"`.
        """
        added = [{"model": _named(m, "model"), **_settings(m), **settings} for m in models]
        return self.set(require=[*self.values.get("require", ()), *added])

    def method(self, method: Method | Mapping[str, Any] | str) -> PolicyDraft:
        """How groups are made: `mw.Mondrian()`, `mw.OptimalLattice(suppression="2%")`, or a name."""
        return self.set(method={"name": _named(method, "name"), **_settings(method)})

    def set(self, **sections: Any) -> PolicyDraft:
        """Any other section of a policy file: `unit="patient_id"`, `recoding="bucketize"`, `missing={"tokens": []}`."""
        return PolicyDraft({**self.values, **sections})

    def build(self) -> Policy:
        """The policy, checked; raises `PolicyError` with what is missing or wrong."""
        from maskwright.policy.policy import Policy

        return Policy.of(dict(self.values), "policy")

    def to_dict(self) -> dict[str, Any]:
        """What a policy file would say, as plain values."""
        return self.build().to_dict()

    def to_yaml(self) -> str:
        """The policy as the text of a file; of an unfinished draft what it says so far."""
        finished = {"columns", "require"} <= self.values.keys()
        return self.build().to_yaml() if finished else dump_yaml({"version": 1, **self.values})

    def headline(self) -> str:
        """The columns, requirements and method so far."""
        names = [f"{len(self.values.get('columns', {}))} columns"]
        names += [str(r["model"]) for r in self.values.get("require", ())]
        return ", ".join([*names, str(self.values.get("method", {}).get("name", "no method yet"))])

    def _with_columns(self, columns: Mapping[str, Any]) -> PolicyDraft:
        return self.set(columns={**self.values.get("columns", {}), **columns})


def _plain_hierarchy(hierarchy: Any) -> Any:
    """A hierarchy as a policy file writes it."""
    if not hasattr(hierarchy, "options"):
        return hierarchy
    return hierarchy.options() or "suppress"


def _named(thing: Any, key: str) -> str:
    if isinstance(thing, str):
        return thing
    if isinstance(thing, Mapping):
        return str(thing.get(key))
    from maskwright.domain.registry import is_outside, register_class

    if is_outside(thing):
        register_class(type(thing))
    return str(thing.name)


def _settings(thing: Any) -> dict[str, Any]:
    if isinstance(thing, str):
        return {}
    if isinstance(thing, Mapping):
        return {str(k): v for k, v in thing.items() if k not in ("model", "name")}
    options: dict[str, Any] = thing.options()
    return options
