"""The tables of a plan: each subset of the sensitive attributes is grouped by a method of its own choice, once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from maskwright.core.association import Subset
from maskwright.core.exact import show
from maskwright.core.grouping import Grouping
from maskwright.core.method import Method, Piece, Task
from maskwright.core.model import Need
from maskwright.core.population import furnished
from maskwright.core.projection import task_for
from maskwright.errors import PolicyNotMet


@dataclass(eq=False)
class Projections:
    """Makes the table of a subset of attributes, or says why it cannot be made. Every subset is tried once.

    Attributes:
        task: the whole table.
        base: the method that groups each table.
        cap: the largest discernibility allowed of a table.
        made, refused: what was tried so far.
    """

    task: Task
    base: Method
    cap: int | None = None
    made: dict[Subset, Piece] = field(default_factory=dict)
    refused: dict[Subset, PolicyNotMet] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.task.summary.sensitive)

    def good(self, subset: Subset) -> bool:
        """Can this table be made so that every requirement about it holds?"""
        if subset not in self.made and subset not in self.refused:
            self.task.progress.check()
            try:
                self.made[subset] = self._make(subset)
            except PolicyNotMet as reason:
                self.refused[subset] = reason
        return subset in self.made

    def _make(self, subset: Subset) -> Piece:
        task = task_for(self.task, [self.names[i] for i in subset])
        grouping = self.base.group(task)
        _refuse_failing_gates(task, grouping)
        if self.cap is not None and grouping.discernibility > self.cap:
            raise PolicyNotMet(
                f"discernibility is {grouping.discernibility}, asked at most {self.cap}"
                + ("; base: {objective: discernibility} may do better" if self.other_objective else "")
            )
        return Piece("data", task, self.base, grouping)

    @property
    def other_objective(self) -> bool:
        """Could the base method look for the least discernibility, but does not?"""
        return getattr(self.base, "objective", "discernibility") != "discernibility"

    def in_words(self, subset: Subset) -> str:
        return ", ".join(self.names[i] for i in subset)


def _refuse_failing_gates(task: Task, grouping: Grouping) -> None:
    needs = frozenset[Need]().union(*(model.needs() for model in task.gates))
    classes = furnished(grouping, needs, task.census)
    classes = replace(classes, sensitive=grouping.published_classes.sensitive)
    for model in task.gates:
        verdict = model.check(classes, task.context)
        if not verdict.ok:
            worst = "" if verdict.worst is None else f" (best reached: {show(verdict.worst)})"
            near = model.nearest(classes, task.context)
            raise PolicyNotMet(verdict.sentence() + (f"; {near} would do" if near else worst))
