"""Every attack, by its name. A new attack is a new file and a line here."""

from __future__ import annotations

from maskwright.core.adversary import Attack
from maskwright.core.registry import Registry

ATTACKS: Registry[Attack] = Registry(
    __name__,
    {
        "linkage": "linkage:Linkage",
        "homogeneity": "homogeneity:Homogeneity",
        "skewness": "skewness:Skewness",
        "similarity": "similarity:Similarity",
        "background-knowledge": "background_knowledge:BackgroundKnowledge",
        "minimality": "minimality:Minimality",
        "absence": "absence:Absence",
    },
)


def __getattr__(name: str) -> type[Attack]:
    return ATTACKS.class_named(name)
