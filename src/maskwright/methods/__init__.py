"""Every method, by the name that policies use. A new method is a new file and a line here."""

from __future__ import annotations

from maskwright.core.method import Method
from maskwright.methods.incognito import Incognito
from maskwright.methods.local_recoding import LocalRecoding
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.methods.samarati import Samarati

METHODS: dict[str, type[Method]] = {
    "optimal-lattice": OptimalLattice,
    "samarati": Samarati,
    "incognito": Incognito,
    "local-recoding": LocalRecoding,
}
