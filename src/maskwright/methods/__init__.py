"""Every method, by the name that policies use. A new method is a new file and a line here."""

from __future__ import annotations

from maskwright.domain.method import Method
from maskwright.domain.registry import Registry

METHODS: Registry[Method] = Registry(
    __name__,
    {
        "optimal-lattice": "optimal_lattice:OptimalLattice",
        "samarati": "samarati:Samarati",
        "incognito": "incognito:Incognito",
        "local-recoding": "local_recoding:LocalRecoding",
        "local-suppression": "local_suppression:LocalSuppression",
        "mondrian": "mondrian:Mondrian",
        "greedy-grouping": "greedy_grouping:GreedyGrouping",
        "symmetric-grouping": "symmetric_grouping:SymmetricGrouping",
        "anatomy": "anatomy:Anatomy",
        "alpha-k-local": "alpha_k_local:AlphaKLocal",
        "mask": "mask:Mask",
        "codip": "codip:Codip",
        "dp-sample": "dp_sample:DpSample",
    },
)


def __getattr__(name: str) -> type[Method]:
    return METHODS.class_named(name)
