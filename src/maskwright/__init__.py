"""Maskwright: publish microdata that holds even when the attacker knows exactly how you made it."""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

from maskwright.version import __version__

if TYPE_CHECKING:
    from maskwright import attacks, errors, methods, metrics, models, plugins
    from maskwright.api import (
        anonymize,
        attack,
        audit,
        check,
        compare,
        load,
        minimal_nodes,
        plan_frontier,
        policy_schema,
        read_release,
        suggest_policy,
        verify,
    )
    from maskwright.domain.release import Release
    from maskwright.engines.readers.postgres import Postgres
    from maskwright.errors import (
        Cancelled,
        DestinationError,
        HierarchyError,
        InputError,
        MaskwrightError,
        NotVerified,
        PolicyError,
        PolicyNotMet,
        UsageError,
    )
    from maskwright.hierarchies import dates, file, groups, intervals, library, mask, suppress, tree
    from maskwright.methods.alpha_k_local import AlphaKLocal
    from maskwright.methods.anatomy import Anatomy
    from maskwright.methods.codip import Codip
    from maskwright.methods.dp_sample import DpSample
    from maskwright.methods.greedy_grouping import GreedyGrouping
    from maskwright.methods.incognito import Incognito
    from maskwright.methods.local_recoding import LocalRecoding
    from maskwright.methods.local_suppression import LocalSuppression
    from maskwright.methods.mask import Mask
    from maskwright.methods.mondrian import Mondrian
    from maskwright.methods.optimal_lattice import OptimalLattice
    from maskwright.methods.samarati import Samarati
    from maskwright.methods.symmetric_grouping import SymmetricGrouping
    from maskwright.models.alpha_k_anonymity import AlphaKAnonymity
    from maskwright.models.average_risk import AverageRisk
    from maskwright.models.belief import BeliefAtMost
    from maskwright.models.beta_likeness import BetaLikeness
    from maskwright.models.ck_safety import CkSafety
    from maskwright.models.delta_disclosure import DeltaDisclosure
    from maskwright.models.delta_presence import DeltaPresence
    from maskwright.models.distinct_l_diversity import DistinctLDiversity
    from maskwright.models.entropy_l_diversity import EntropyLDiversity
    from maskwright.models.highest_risk import HighestRisk
    from maskwright.models.individual_risk import IndividualRisk
    from maskwright.models.k_anonymity import KAnonymity
    from maskwright.models.k_map import KMap
    from maskwright.models.ke_anonymity import KeAnonymity
    from maskwright.models.m_confidentiality import MConfidentiality
    from maskwright.models.nt_closeness import NtCloseness
    from maskwright.models.p_sensitive_k_anonymity import PSensitiveKAnonymity
    from maskwright.models.population_uniqueness import PopulationUniqueness
    from maskwright.models.recursive_cl_diversity import RecursiveClDiversity
    from maskwright.models.simple_l_diversity import SimpleLDiversity
    from maskwright.models.t_closeness import TCloseness
    from maskwright.plugins import register
    from maskwright.policy.draft import PolicyDraft
    from maskwright.policy.policy import Policy
    from maskwright.recoder import Recoder

# Names are imported when they are first used, so that `import maskwright` costs next to nothing.
_HOME = {
    "Policy": "maskwright.policy.policy",
    "Postgres": "maskwright.engines.readers.postgres",
    "Recoder": "maskwright.recoder",
    "Release": "maskwright.domain.release",
    "anonymize": "maskwright.api",
    "attack": "maskwright.api",
    "audit": "maskwright.api",
    "check": "maskwright.api",
    "compare": "maskwright.api",
    "minimal_nodes": "maskwright.api",
    "plan_frontier": "maskwright.api",
    "policy_schema": "maskwright.api",
    "load": "maskwright.api",
    "read_release": "maskwright.api",
    "suggest_policy": "maskwright.api",
    "verify": "maskwright.api",
    "PolicyDraft": "maskwright.policy.draft",
    "register": "maskwright.plugins",
    **dict.fromkeys(
        ("dates", "file", "groups", "intervals", "library", "mask", "suppress", "tree"), "maskwright.hierarchies"
    ),
    **dict.fromkeys(
        (
            "Cancelled", "DestinationError", "HierarchyError", "InputError", "MaskwrightError", "NotVerified",
            "PolicyError", "PolicyNotMet", "UsageError",
        ),
        "maskwright.errors",
    ),
}  # fmt: skip
_MODULES = ("attacks", "errors", "methods", "metrics", "models", "plugins")
_REGISTRIES = (
    "models",
    "methods",
)  # whose classes are found here, too: mw.KAnonymity is mw.models.KAnonymity

__all__ = [
    "AlphaKAnonymity",
    "AlphaKLocal",
    "Anatomy",
    "AverageRisk",
    "BeliefAtMost",
    "BetaLikeness",
    "Cancelled",
    "CkSafety",
    "Codip",
    "DeltaDisclosure",
    "DeltaPresence",
    "DestinationError",
    "DistinctLDiversity",
    "DpSample",
    "EntropyLDiversity",
    "GreedyGrouping",
    "HierarchyError",
    "HighestRisk",
    "Incognito",
    "IndividualRisk",
    "InputError",
    "KAnonymity",
    "KMap",
    "KeAnonymity",
    "LocalRecoding",
    "LocalSuppression",
    "MConfidentiality",
    "Mask",
    "MaskwrightError",
    "Mondrian",
    "NotVerified",
    "NtCloseness",
    "OptimalLattice",
    "PSensitiveKAnonymity",
    "Policy",
    "PolicyDraft",
    "PolicyError",
    "PolicyNotMet",
    "PopulationUniqueness",
    "Postgres",
    "Recoder",
    "RecursiveClDiversity",
    "Release",
    "Samarati",
    "SimpleLDiversity",
    "SymmetricGrouping",
    "TCloseness",
    "UsageError",
    "__version__",
    "anonymize",
    "attack",
    "attacks",
    "audit",
    "check",
    "compare",
    "dates",
    "errors",
    "file",
    "groups",
    "intervals",
    "library",
    "load",
    "mask",
    "methods",
    "metrics",
    "minimal_nodes",
    "models",
    "plan_frontier",
    "plugins",
    "policy_schema",
    "read_release",
    "register",
    "suggest_policy",
    "suppress",
    "tree",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"maskwright.{name}")
    for registry in (
        _REGISTRIES if name[:1].isupper() else ()
    ):  # classes; `from maskwright import cli` asks here, too
        with contextlib.suppress(AttributeError):
            return import_module(f"maskwright.{registry}").__getattr__(name)
    raise AttributeError(f"module 'maskwright' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
