"""Every attack, by its name. A new attack is a new file and a line here."""

from __future__ import annotations

from typing import Any

from maskwright.domain.adversary import Attack
from maskwright.domain.registry import Registry

ATTACKS: Registry[Attack] = Registry(
    __name__,
    {
        "linkage": "linkage:Linkage",
        "homogeneity": "homogeneity:Homogeneity",
        "skewness": "skewness:Skewness",
        "similarity": "similarity:Similarity",
        "background-knowledge": "background_knowledge:BackgroundKnowledge",
        "minimality": "minimality:Minimality",
        "combined": "combined:Combined",
        "absence": "absence:Absence",
        "background-join": "background_join:BackgroundJoin",
        "intersection": "intersection:Intersection",
        "linked-visits": "linked_visits:LinkedVisits",
        "linked-releases": "linked_releases:LinkedReleases",
        "passing-columns": "passing_columns:PassingColumns",
        "learned": "learned:Learned",
        "downcoding": "downcoding:Downcoding",
        "singling-out": "singling_out:SinglingOut",
        "known-items": "known_items:KnownItems",
        "perturbed-columns": "perturbed_columns:PerturbedColumns",
        "perturbed-numbers": "perturbed_numbers:PerturbedNumbers",
    },
)

# the others are about sensitive values: where there are none, they need not even be imported
WITHOUT_VALUES = frozenset(
    {"linkage", "intersection", "linked-releases", "downcoding", "singling-out", "perturbed-columns"}
)


def __getattr__(name: str) -> Any:
    if name == "possible_worlds":  # not an attack on a release: it takes rows and groups
        from maskwright.attacks._minimality.row_methods import possible_worlds

        return possible_worlds
    return ATTACKS.class_named(name)
