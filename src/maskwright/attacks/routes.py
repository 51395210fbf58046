"""Which credibility of Wong et al. 2007 fits a release: local recoding, MASK, or a table of unknown origin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maskwright.attacks.disguised import disguised, mask_findings
from maskwright.attacks.findings import Finding
from maskwright.attacks.local_credibility import local_findings, recoded_locally, requirement_of
from maskwright.attacks.secrets import Secrets
from maskwright.core.adversary import Target

Route = Callable[[Target, Sequence[Secrets], int], tuple[list[Finding], dict[str, Any]]]
MINIMAL = "that the method generalises no more than the requirement forces it to"


def other_route(target: Target) -> Route | None:
    """The way to attack a release whose method is known by what it does to classes; None: other ways fit."""
    if disguised(target):
        return mask_findings
    if recoded_locally(target):
        return _local
    return None


def _local(target: Target, secrets: Sequence[Secrets], draws: int) -> tuple[list[Finding], dict[str, Any]]:
    found, measures = local_findings(target, secrets, requirement_of(target, draws))
    return found, measures | {"knowing": MINIMAL}
