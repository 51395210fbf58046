"""Why no node satisfies a policy: which requirement fails, how close it came, and what would work."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from maskwright.domain.exact import text_of
from maskwright.domain.method import Task
from maskwright.domain.model import Model
from maskwright.domain.unmet_requirements import unmet_requirement
from maskwright.errors import PolicyNotMet
from maskwright.methods._lattice.lattice import Lattice, Node
from maskwright.methods._lattice.node_evaluation import Evaluator, what_is_published


def sufficient_share(rows: int, total: int) -> str:
    """The shortest decimal share that allows `rows` of `total` rows."""
    for digits in range(1, 13):
        scale = 10**digits
        share = Fraction(-(-rows * scale // total), scale)
        if (digits >= 3 and share - Fraction(rows, total) <= Fraction(rows, 20 * total)) or digits == 12:
            return text_of(share)
    raise AssertionError("unreachable")


def too_much_suppressed(
    task: Task, lattice: Lattice, node: Node, suppressed: int, limit: int
) -> PolicyNotMet:
    """The models can be met, but only by suppressing more rows than allowed."""
    total = task.summary.n_rows
    percent = f"{100 * suppressed / total:.3g} %"
    allowed = (
        "no suppression"
        if limit == 0
        else f"suppression of at most {limit} rows ({100 * limit / total:.3g} %)"
    )
    models = ", ".join(_model_text(m) for m in task.search) or "the policy"
    return PolicyNotMet(
        f"{models} cannot be met with {allowed}: the best node suppresses {suppressed} rows ({percent}); "
        f"suppression: {sufficient_share(suppressed, total)} would suffice",
        f"levels of that node: {lattice.names(node)}",
    )


def no_node_error(task: Task, evaluator: Evaluator, lattice: Lattice) -> PolicyNotMet:
    """No node will do, whatever is suppressed: explain it where everything is generalised as far as allowed."""
    node = lattice.node(lattice.maximal[-1])
    found = evaluator.evaluate(node)
    problem = evaluator.problem
    everything = all(n == h.top for n, h in zip(node, lattice.attributes, strict=True))
    where = (
        "even with everything generalised"
        if everything
        else f"even at the coarsest allowed levels {list(node)}"
    )
    gone = found.outcome.suppressed if problem.by_size else np.zeros(found.classes.n, dtype=bool)
    classes = found.classes
    if gone.any() and not gone.all():
        published = np.where(gone, -1, 0)[found.group_of]
        classes = what_is_published(task, node, published, classes, gone, False)
    for model in task.search:
        verdict = model.check(classes, task.context)
        if verdict.ok:
            continue
        if model.name == "k-anonymity" and classes.n == 1:
            people = int(classes.sizes[0])
            return PolicyNotMet(
                f"{_model_text(model)}: {where} the table has {people} people; the largest k possible is {people}"
            )
        return unmet_requirement(model, verdict, classes, task.context, where)
    star = (
        " and the starred rows must satisfy the policy too; suppressed_rows: drop may help"
        if problem.star
        else ""
    )
    return PolicyNotMet(
        f"no combination of levels satisfies {', '.join(map(_model_text, task.search))}{star}"
    )


def _model_text(model: Model) -> str:
    """A model for people: "k-anonymity k=5"."""
    about = model.attribute_name()
    parts = [
        f"{k}={v}" for k, v in model.parameters().items() if v is not None and not isinstance(v, list | dict)
    ]
    return " ".join([model.name, *parts]) + (f" on {about}" if about else "")
