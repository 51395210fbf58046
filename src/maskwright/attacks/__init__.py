"""Attacks: one file each, one line here."""

from maskwright.attacks.background_knowledge import BackgroundKnowledge
from maskwright.attacks.homogeneity import Homogeneity
from maskwright.attacks.linkage import Linkage
from maskwright.core.adversary import Attack

ATTACKS: dict[str, type[Attack]] = {
    "linkage": Linkage,
    "homogeneity": Homogeneity,
    "background-knowledge": BackgroundKnowledge,
}
