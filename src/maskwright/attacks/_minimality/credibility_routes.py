"""Which credibility of Wong et al. 2007 fits a release: local recoding, MASK, or a table of unknown origin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from maskwright.attacks._minimality.local_credibility import (
    local_findings,
    readable_thresholds,
    recoded_locally,
    requirement_of,
)
from maskwright.attacks._minimality.mask_credibility import made_by_mask, mask_findings
from maskwright.attacks._shared.findings import Finding
from maskwright.attacks._shared.original_classes import ClassSpread, cells_of
from maskwright.attacks._shared.secrets import Secrets
from maskwright.attacks._shared.thresholds import values_of
from maskwright.domain.adversary import Target
from maskwright.domain.exact import text_of

Route = Callable[[Target, Sequence[Secrets], int], tuple[list[Finding], dict[str, Any]]]
MINIMAL = "that the method generalises no more than the requirement forces it to"


def other_route(target: Target) -> Route | None:
    """The way to attack a release whose method is known by what it does to classes; None: other ways fit."""
    if made_by_mask(target):
        return mask_findings
    if recoded_locally(target):
        return _local
    if of_unknown_origin(target):
        return _inferred
    return None


def of_unknown_origin(target: Target) -> bool:
    """A table that somebody else made, whose original classes are known, some of them merged."""
    if target.method is not None or target.grouping.changes is not None:
        return False
    cells = cells_of(target)
    return cells is not None and bool(ClassSpread.of(cells).mixed.any())


def _inferred(target: Target, secrets: Sequence[Secrets], draws: int) -> tuple[list[Finding], dict[str, Any]]:
    """The requirement is read off the table where nobody states it; every release of a minimal method shows it."""
    needed = requirement_of(target, draws)
    known: dict[str, Any] = {"knowing": MINIMAL, "method assumed": True}
    if not needed.models:
        thresholds = readable_thresholds(target, secrets)
        needed = replace(needed, thresholds=thresholds)
        known["requirement read off the release"] = "; ".join(
            f"at most {text_of(t.share)} of a class have {t.attribute} {' or '.join(values_of(target, t))}"
            for t in thresholds
        )
    found, measures = local_findings(target, secrets, needed)
    if target.grouping.levels is not None:  # full-domain: a violation anywhere explains every class
        found = [Finding(m["belief"], m["kind"], m["vulnerable_people"]) for m in measures["whole release"]]
    return found, measures | known


def _local(target: Target, secrets: Sequence[Secrets], draws: int) -> tuple[list[Finding], dict[str, Any]]:
    found, measures = local_findings(target, secrets, requirement_of(target, draws))
    return found, measures | {"knowing": MINIMAL, "method assumed": True}
