"""Audit: how safe is a table that some tool produced? With or without the original, whoever made it.

The table is taken as it is: equal labels make a class, `*` and missing are values like others. The models say what
holds and by how much, the attacks what can be believed, and the rest what the rows, their order and the file give away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.attacks import ATTACKS
from maskwright.attacks.linkage import matching_risks
from maskwright.auditing import leaks
from maskwright.auditing.controlled import ControlledRisk, controlled_risks
from maskwright.auditing.original import Linked, changed_classes, link_original, order_kept, rebuilt_grouping
from maskwright.auditing.published import (
    AuditedTable,
    Question,
    context_of,
    open_published,
    require_columns,
    stated_models,
)
from maskwright.auditing.result import Audit, AuditFinding, strongest_verdicts, unmeasured_models
from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.beliefs import Beliefs
from maskwright.domain.classes import Classes, Ints
from maskwright.domain.exact import number_text
from maskwright.domain.model import Context, Model
from maskwright.domain.verdict import Verdict
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Table
from maskwright.errors import PolicyError, UsageError
from maskwright.pipeline.attacking import ADVERSARIES, attack_target
from maskwright.policy.binding import method_of

__all__ = ["Audit", "AuditFinding", "Question", "audit_table"]

SINGLE = frozenset({"linkage"})  # attacks on what quasi-identifiers show, not on sensitive values


def audit_table(question: Question, adversary: Adversary | None = None) -> Audit:
    """Look at a published table from every side."""
    engine = open_engine()
    try:
        return _Auditor(engine, question).run(adversary)
    finally:
        engine.close()


class _Auditor:
    """The state of one audit, so that each step reads as one sentence."""

    def __init__(self, engine: Engine, question: Question) -> None:
        self.engine, self.question = engine, question
        self.original: Table | None = None
        if question.original is not None:
            self.original = engine.open(question.original, question.reading)
        self.published = open_published(engine, question, self.original)
        self.linked: Linked | None = None
        if self.original is not None:
            self.linked = link_original(engine, self.published, self.original)
        self.notes: list[str] = []

    def run(self, adversary: Adversary | None) -> Audit:
        """The audit: requirements judged, beliefs of the adversary, and what else gives people away."""
        published, context = self.published, self.context()
        models = stated_models(published)
        for model in models:
            model.refuse_unknown({s.name: s.values for s in published.specs})
            if published.question.unit is not None and (unfit := model.unfit_for_people()):
                raise PolicyError(f"people have several rows (`--unit`), and {unfit}")
        shown, classes = published.shown.classes, published.classes.classes
        if self.question.population is not None:
            shown = replace(shown, population=self.population())
        shown, classes = _labelled(published, shown), _labelled(published, classes)
        if classes.n == shown.n and self.question.group is None:
            classes = shown
        required = [
            _required(m, shown if m.about == "quasi-identifiers" else classes, context) for m in models
        ]
        several = published.question.unit is not None
        if several and classes.sensitive:
            self.notes += unmeasured_models()
        measured = strongest_verdicts(shown, classes, context, several)
        beliefs = self.attacks(models, context, adversary)
        controlled = tuple(self.controlled())
        findings = sorted(self.findings(shown), key=lambda f: ("high", "warning", "note").index(f.severity))
        return Audit(
            _name(self.question.table), published.rows, published.shown.classes.n, tuple(required),
            tuple(measured), tuple(beliefs), tuple(findings), tuple(self.notes), self.question.max_belief,
            self.linked is not None, controlled,
        )  # fmt: skip

    def context(self) -> Context:
        """Distributions of the original where it is known, otherwise of the table itself."""
        if self.linked is not None:
            whole = self.linked.summary.totals().sensitive
            reference = {name: counts.totals for name, counts in whole.items()}
            if self.published.sensitive:
                self.notes.append("distributions are compared with those of the original")
            return context_of(self.published, reference, self.linked.summary.n_people)
        if self.published.sensitive:
            self.notes.append(
                "the original is not known, so distributions are compared with those of the published table itself"
            )
        return context_of(self.published, None, None)

    def attacks(self, models: list[Model], context: Context, who: Adversary | None) -> list[Beliefs]:
        """Everything that applies; with the original and a policy that names its method, also what the method tells."""
        published, policy = self.published, self.question.policy
        method = None
        if policy is not None and "method" in policy.model_fields_set:
            method = method_of(policy)
        target, made = Target.of_groups(published.classes, models, context), None
        if self.linked is not None:
            made = rebuilt_grouping(published, self.linked)
            if made is None:
                self.notes.append(
                    "the labels do not show who in the original is in which class, so the attacks look at the "
                    "published table alone"
                )
        if made is not None:
            weights = {q: policy.columns[q].weight for q in policy.quasi_identifiers} if policy else None
            known = method if policy is not None and set(policy.quasi_identifiers) == set(
                published.quasi_identifiers) else None  # fmt: skip
            target = replace(
                target, grouping=made, method=known, weights=weights, levels={} if known else None
            )
            if known is not None:
                self.notes.append(f"the adversary knows that the table was made by {known.name}")
        elif method is not None:
            self.notes.append("what the policy's method tells can be worked out only with the original")
        who = who or ADVERSARIES["knows-method" if target.method is not None else "neighbour"]
        shown = replace(target, grouping=published.shown) if self.question.group else target
        names = [name for name in ATTACKS if name not in SINGLE]
        found = attack_target(shown, sorted(SINGLE), who) + attack_target(target, names, who)
        return sorted(found, key=lambda b: b.worst.upper, reverse=True)

    def controlled(self) -> list[ControlledRisk]:
        """Controlled attacks, where there is a control half."""
        question, published = self.question, self.published
        if question.control is None:
            return []
        if self.original is None:
            raise UsageError("a control is compared with the original: name it, too (--original)")
        known, secret = published.quasi_identifiers, published.sensitive
        if published.values is not published.table:
            self.notes.append("controlled attacks look at the quasi-identifiers: values are in another table")
            secret = ()
        control = self.engine.open(question.control, question.reading)
        tables = [published.table, self.original, control]
        for table, what in zip(tables[1:], ("the original", "the control"), strict=True):
            require_columns(table, (*known, *secret), what)
        texts = [
            {n: t.tolist() for n, t in self.engine.row_texts(x, [*known, *secret])[0].items()} for x in tables
        ]
        risks, distance = controlled_risks(texts[0], texts[1], texts[2], known, secret)
        if all(risk.attack != "singling out" for risk in risks):
            self.notes.append(
                "no attempt was made to single anybody out: no description by three columns fits exactly one row"
            )
        self.notes.append(
            f"pairs of values are {distance:.3f} from those of the original (mean total variation, labels spread "
            "evenly)"
        )
        return risks

    def population(self) -> Ints:
        """How many people of the population fit each class, in the order of the classes."""
        table = self.engine.open(self.question.population, self.question.reading)
        bare = replace(self.published, specs=())
        found = link_original(self.engine, bare, table, population=True)
        if found.left_out:
            names = ", ".join(map(repr, found.left_out))
            self.notes.append(f"some labels of {names} fit nobody in the population, or cannot be read")
        return found.people

    def findings(self, shown: Classes) -> Iterator[AuditFinding]:
        """Every leak that was found in the published table."""
        engine, published, policy = self.engine, self.published, self.question.policy
        if policy is not None and policy.people is not None and published.question.unit is None:
            yield AuditFinding(
                "rows", "warning",
                f"people have several rows (unit: {policy.person_column}), and the published table does not show "
                "whose: every figure counts rows, and there are fewer people",
                {"unit": policy.person_column},
            )  # fmt: skip
        yield from leaks.starred_rows(published)
        yield from leaks.identifying_columns(engine, published)
        yield from leaks.row_order(engine, published)
        yield from leaks.file_contents(published)
        yield from leaks.formula_cells(published)
        if shown.population is not None:
            yield _journalist(shown.sizes, shown.population)
        if self.linked is not None and self.original is not None:
            yield from _beside(published, self.linked)
            kept = order_kept(engine, published, self.original, self.linked, leaks.LIMIT)
            if kept is not None and kept.kept:
                figures = {
                    "correlation": kept.correlation,
                    "same_rows": kept.same_rows,
                    "placed": kept.placed,
                }
                yield AuditFinding("order", "high", kept.sentence(), figures)


def _beside(published: AuditedTable, linked: Linked) -> Iterator[AuditFinding]:
    """What the comparison with the original shows."""
    summary, rows = linked.summary, published.shown.classes.sizes
    if linked.left_out:
        yield AuditFinding(
            "original", "note",
            f"the labels of {', '.join(map(repr, linked.left_out))} cannot be read, so the column is left out of "
            "the linking; a policy with its hierarchy (-p) would help",
            {"columns": list(linked.left_out)},
        )  # fmt: skip
    if not linked.complete:
        yield AuditFinding(
            "original", "note", "there are very many classes: only some were compared with the original"
        )
    highest, average, alone = linked.found
    if highest:
        people = int(summary.tuple_sizes[linked.candidates > 0].sum())
        yield AuditFinding(
            "original", "high" if alone else "note",
            f"record linkage: of {people:,} people of the original whom a published label fits, {alone:,} fit a single "
            f"row; the highest chance to pick the right row is {number_text(highest)}, the average "
            f"{number_text(average)}",
            {"people": people, "single": alone, "highest": highest, "average": average},
        )  # fmt: skip
    if linked.complete:
        extra = int((rows - linked.people).clip(min=0).sum())
        if extra:
            yield AuditFinding(
                "original", "warning",
                f"{extra:,} rows cannot be explained by the original: quasi-identifiers were invented or distorted",
                {"rows": extra},
            )  # fmt: skip
    if wrong := changed_classes(published, linked):
        yield AuditFinding(
            "original", "warning",
            f"in {wrong:,} classes the sensitive values are not those of the people behind them: values were changed",
            {"classes": wrong},
        )  # fmt: skip
    missing = summary.n_people - published.shown.summary.n_people
    if missing:
        word = "fewer" if missing > 0 else "more"
        yield AuditFinding(
            "original",
            "note",
            f"the table has {abs(missing):,} people {word} than the original",
            {"people": missing},
        )


def _journalist(sizes: Ints, population: Ints) -> AuditFinding:
    found = matching_risks(sizes, np.maximum(population, sizes))
    return AuditFinding(
        "rows", "high" if found["highest"] == 1 else "note",
        f"journalist: at least {found['smallest_match']:,} people of the population fit each class, so somebody is "
        f"found with a chance of at most {number_text(found['highest'])}; a marketer links "
        f"{number_text(found['marketer'])} correctly",
        found,
    )  # fmt: skip


def _labelled(published: AuditedTable, classes: Classes) -> Classes:
    """Classes with their published labels, which some models ask for."""
    grouping = published.shown if classes.n == published.shown.classes.n else published.classes
    codes = np.array([x.of_group for x in grouping.labels], dtype=np.int32).reshape(len(grouping.labels), -1)
    return replace(classes, attributes=tuple(x.attribute for x in grouping.labels), codes=codes)


def _required(model: Model, classes: Classes, context: Context) -> Verdict:
    if "originals" in model.needs():
        raise PolicyError(f"{model.name} cannot be checked in a published table: it needs the raw classes")
    return model.check(classes, context)


def _name(table: Any) -> str:
    return (
        Path(table).name
        if isinstance(table, (str, Path))
        else f"the {type(table).__module__.split('.')[0]} table"
    )
