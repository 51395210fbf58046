"""Attacks: one file each, one line here."""

from maskwright.attacks.linkage import Linkage
from maskwright.core.adversary import Attack

ATTACKS: dict[str, type[Attack]] = {
    "linkage": Linkage,
}
