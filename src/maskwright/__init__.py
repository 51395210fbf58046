"""Maskwright: publish microdata that holds even when the attacker knows exactly how you made it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from maskwright.version import __version__

if TYPE_CHECKING:
    from maskwright import attacks, methods, metrics, models
    from maskwright.api import (
        anonymize,
        attack,
        audit,
        compare,
        minimal_nodes,
        plan_frontier,
        policy_schema,
        suggest_policy,
    )
    from maskwright.core.policy import Policy
    from maskwright.core.release import Release
    from maskwright.engines.postgres import Postgres
    from maskwright.newrows import Recoder

# Names are imported when they are first used, so that `import maskwright` costs next to nothing.
_HOME = {
    "Policy": "maskwright.core.policy",
    "Postgres": "maskwright.engines.postgres",
    "Recoder": "maskwright.newrows",
    "Release": "maskwright.core.release",
    "anonymize": "maskwright.api",
    "attack": "maskwright.api",
    "audit": "maskwright.api",
    "compare": "maskwright.api",
    "minimal_nodes": "maskwright.api",
    "plan_frontier": "maskwright.api",
    "policy_schema": "maskwright.api",
    "suggest_policy": "maskwright.api",
}
_MODULES = ("attacks", "methods", "metrics", "models")

__all__ = [
    "Policy",
    "Postgres",
    "Recoder",
    "Release",
    "__version__",
    "anonymize",
    "attack",
    "attacks",
    "audit",
    "compare",
    "methods",
    "metrics",
    "minimal_nodes",
    "models",
    "plan_frontier",
    "policy_schema",
    "suggest_policy",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"maskwright.{name}")
    raise AttributeError(f"module 'maskwright' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
