"""Every method, by the name that policies use. A new method is a new file and a line here."""

from __future__ import annotations

from maskwright.core.method import Method
from maskwright.methods.alpha_k_local import AlphaKLocal
from maskwright.methods.anatomy import Anatomy
from maskwright.methods.greedy_grouping import GreedyGrouping
from maskwright.methods.incognito import Incognito
from maskwright.methods.local_recoding import LocalRecoding
from maskwright.methods.mask import Mask
from maskwright.methods.mondrian import Mondrian
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.methods.samarati import Samarati
from maskwright.methods.symmetric_grouping import SymmetricGrouping

METHODS: dict[str, type[Method]] = {
    "optimal-lattice": OptimalLattice,
    "samarati": Samarati,
    "incognito": Incognito,
    "local-recoding": LocalRecoding,
    "mondrian": Mondrian,
    "greedy-grouping": GreedyGrouping,
    "symmetric-grouping": SymmetricGrouping,
    "anatomy": Anatomy,
    "alpha-k-local": AlphaKLocal,
    "mask": Mask,
}
