"""Every privacy model, by the name that policies use. A new model is a new file and a line here."""

from __future__ import annotations

from maskwright.domain.model import Model
from maskwright.domain.registry import Registry

MODELS: Registry[Model] = Registry(
    __name__,
    {
        "k-anonymity": "k_anonymity:KAnonymity",
        "simple-l-diversity": "simple_l_diversity:SimpleLDiversity",
        "distinct-l-diversity": "distinct_l_diversity:DistinctLDiversity",
        "entropy-l-diversity": "entropy_l_diversity:EntropyLDiversity",
        "recursive-cl-diversity": "recursive_cl_diversity:RecursiveClDiversity",
        "alpha-k-anonymity": "alpha_k_anonymity:AlphaKAnonymity",
        "personalised-privacy": "personalised_privacy:PersonalisedPrivacy",
        "p-sensitive-k-anonymity": "p_sensitive_k_anonymity:PSensitiveKAnonymity",
        "t-closeness": "t_closeness:TCloseness",
        "nt-closeness": "nt_closeness:NtCloseness",
        "ke-anonymity": "ke_anonymity:KeAnonymity",
        "ck-safety": "ck_safety:CkSafety",
        "m-confidentiality": "m_confidentiality:MConfidentiality",
        "belief": "belief:BeliefAtMost",
        "delta-disclosure": "delta_disclosure:DeltaDisclosure",
        "beta-likeness": "beta_likeness:BetaLikeness",
        "delta-presence": "delta_presence:DeltaPresence",
        "k-map": "k_map:KMap",
        "average-risk": "average_risk:AverageRisk",
        "highest-risk": "highest_risk:HighestRisk",
        "individual-risk": "individual_risk:IndividualRisk",
        "population-uniqueness": "population_uniqueness:PopulationUniqueness",
    },
)


def __getattr__(name: str) -> type[Model]:
    return MODELS.class_named(name)
