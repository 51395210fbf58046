"""Guarding nodes: what people do not want to be known of them, each by a node of the sensitive column's hierarchy.

A node is kept as the set of values under it, and nobody's name with it: who guards what is known of a tuple or a class
only. People with the same quasi-identifiers share their nodes, since nobody can tell which of them is in which class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.exact import exact_bincount, sorted_distinct

if TYPE_CHECKING:
    from maskwright.domain.classes import ValueCounts

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Guards:
    """The nodes that guard somebody of each tuple, or of each class.

    Attributes:
        nodes: the sensitive values under each node.
        owner: the tuple, or class, of each entry, and
        node: the number of its node; every pair once, ascending.
    """

    nodes: tuple[frozenset[str], ...]
    owner: Ints
    node: Ints

    @staticmethod
    def of(nodes: Sequence[frozenset[str]], owner: Ints, node: Ints) -> Guards:
        """From pairs that may occur more than once."""
        radix = max(1, len(nodes))
        pairs = sorted_distinct(owner.astype(np.int64) * radix + node)
        return Guards(tuple(nodes), pairs // radix, pairs % radix)

    def merged(self, class_of: Ints) -> Guards:
        """The guards of classes, given the class of each owner (negative: in none)."""
        there = class_of[self.owner] >= 0
        return Guards.of(self.nodes, class_of[self.owner[there]], self.node[there])

    def largest_held(self, counts: ValueCounts) -> Ints:
        """Per class the most people whose value lies under one node that guards somebody of the class."""
        largest = np.zeros(counts.n_classes, dtype=np.int64)
        for number in np.unique(self.node).tolist():
            under = np.array([False, *(value in self.nodes[number] for value in counts.values)])
            inside = under[counts.codes]
            held = exact_bincount(counts.owner[inside], counts.counts[inside], counts.n_classes)
            owner = self.owner[self.node == number]
            largest[owner] = np.maximum(largest[owner], held[owner])
        return largest

    def as_dict(self) -> dict[str, Any]:
        """For `private/`: the values under each node, and no text of the guarding column."""
        return {
            "nodes": [sorted(members) for members in self.nodes],
            "owner": self.owner.tolist(),
            "node": self.node.tolist(),
        }

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Guards:
        """What `as_dict` wrote."""
        owner, node = (np.array(stored[key], dtype=np.int64) for key in ("owner", "node"))
        nodes = tuple(frozenset(map(str, members)) for members in stored["nodes"])
        if len(owner) != len(node) or (len(node) and not 0 <= node.min() <= node.max() < len(nodes)):
            raise ValueError("a guard of no node")
        return Guards.of(nodes, owner, node)


def merged_guards(guards: Mapping[str, Guards] | None, class_of: Ints) -> dict[str, Guards] | None:
    """The guards of classes by sensitive attribute, given the class of each tuple or smaller class."""
    return None if guards is None else {name: one.merged(class_of) for name, one in guards.items()}
