"""Every method, by the name that policies use. A new method is a new file and a line here."""

from __future__ import annotations

from maskwright.core.method import Method
from maskwright.methods.optimal_lattice import OptimalLattice

METHODS: dict[str, type[Method]] = {
    "optimal-lattice": OptimalLattice,
}
