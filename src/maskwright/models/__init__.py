"""Every privacy model, by the name that policies use. A new model is a new file and a line here."""

from __future__ import annotations

from maskwright.core.model import Model
from maskwright.models.alpha_k_anonymity import AlphaKAnonymity
from maskwright.models.average_risk import AverageRisk
from maskwright.models.beta_likeness import BetaLikeness
from maskwright.models.ck_safety import CkSafety
from maskwright.models.delta_disclosure import DeltaDisclosure
from maskwright.models.delta_presence import DeltaPresence
from maskwright.models.distinct_l_diversity import DistinctLDiversity
from maskwright.models.entropy_l_diversity import EntropyLDiversity
from maskwright.models.highest_risk import HighestRisk
from maskwright.models.k_anonymity import KAnonymity
from maskwright.models.k_map import KMap
from maskwright.models.ke_anonymity import KeAnonymity
from maskwright.models.m_confidentiality import MConfidentiality
from maskwright.models.nt_closeness import NtCloseness
from maskwright.models.p_sensitive_k_anonymity import PSensitiveKAnonymity
from maskwright.models.recursive_cl_diversity import RecursiveClDiversity
from maskwright.models.simple_l_diversity import SimpleLDiversity
from maskwright.models.t_closeness import TCloseness

MODELS: dict[str, type[Model]] = {
    "k-anonymity": KAnonymity,
    "simple-l-diversity": SimpleLDiversity,
    "distinct-l-diversity": DistinctLDiversity,
    "entropy-l-diversity": EntropyLDiversity,
    "recursive-cl-diversity": RecursiveClDiversity,
    "alpha-k-anonymity": AlphaKAnonymity,
    "p-sensitive-k-anonymity": PSensitiveKAnonymity,
    "t-closeness": TCloseness,
    "nt-closeness": NtCloseness,
    "ke-anonymity": KeAnonymity,
    "ck-safety": CkSafety,
    "m-confidentiality": MConfidentiality,
    "delta-disclosure": DeltaDisclosure,
    "beta-likeness": BetaLikeness,
    "delta-presence": DeltaPresence,
    "k-map": KMap,
    "average-risk": AverageRisk,
    "highest-risk": HighestRisk,
}
