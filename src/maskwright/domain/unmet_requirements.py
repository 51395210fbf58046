"""Why a policy is not met: the requirement that failed, how close it came, and the nearest setting that would do."""

from __future__ import annotations

from maskwright.domain.classes import Classes
from maskwright.domain.model import Context, Model
from maskwright.domain.summary import Summary
from maskwright.domain.verdict import Verdict
from maskwright.errors import PolicyNotMet

NO_ROWS = "the table has no rows; there is nothing to publish"


def refuse_no_rows(summary: Summary) -> None:
    """Raise where there is nothing to group."""
    if summary.n_rows == 0:
        raise PolicyNotMet(NO_ROWS)


def unmet_requirement(
    model: Model, verdict: Verdict, classes: Classes, context: Context, where: str = ""
) -> PolicyNotMet:
    """What to raise where a model does not hold for these classes, and none that can be reached are better."""
    setting = model.nearest(classes, context)
    remedy = f"; {setting} would suffice" if setting else ""
    return PolicyNotMet((f"{where}, " if where else "") + verdict.sentence() + remedy)
