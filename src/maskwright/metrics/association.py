"""Metrics of a plan of several tables: what is lost between them, what each gives away [CODIP].

They are about all sensitive attributes of the input, so a method that splits them records them with its groups; for
releases of one table they are not defined.
"""

from __future__ import annotations

import math

from maskwright.core.grouping import Grouping
from maskwright.core.metric import Weights


def association_loss(grouping: Grouping, weights: Weights) -> float:
    """Γα of codip: the share of the mutual information between sensitive attributes that the tables cut."""
    return float(grouping.search.get("association_loss", math.nan))


def information_exposure(grouping: Grouping, weights: Weights) -> float:
    """Γβ of codip: how much of the others somebody learns who knows one sensitive attribute of a person."""
    return float(grouping.search.get("information_exposure", math.nan))
