"""Advice: which model and which method, from three questions, and what cannot serve this table, with the reason.

Who gets the data decides k (by the presets' sources), what they may know decides which methods may look at sensitive
values, and what they need decides between labels that are as narrow as can be and labels that are the same everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from maskwright.domain.settings import Registered, did_you_mean, likely_settings
from maskwright.engines import open_engine
from maskwright.errors import MaskwrightError, PolicyError, UsageError
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.pipeline.job import Job
from maskwright.pipeline.what_if import Trials
from maskwright.policy.binding import reading_options
from maskwright.policy.policy import Policy
from maskwright.runtime.time_budget import TimeBudget
from maskwright.suggest.presets import PRESETS

FEW = 300  # rows on which methods and models are tried for whether they can serve a table at all
TURN_S = 4.0  # of processor time for each of these trials; `samarati` on many columns took minutes


@dataclass(frozen=True)
class PossibleAnswer:
    """One answer to a question: what it is called, what it says, and what follows from it."""

    name: str
    text: str
    reason: str


QUESTIONS: dict[str, tuple[str, tuple[PossibleAnswer, ...]]] = {
    "recipient": (
        "Who gets the data?",
        (
            PossibleAnswer(
                "anybody", "anybody may download it",
                "k = 11, as for open data: nobody is found with more than a chance of 1 in 11",
            ),
            PossibleAnswer(
                "researchers", "researchers who signed an agreement",
                "k = 5: the agreement forbids looking for people, and the setting hinders it",
            ),
            PossibleAnswer(
                "regulator", "it is published with a clinical report (EMA policy 0070)",
                "k = 12: the risk of being found may be at most 0.09, and 1/11 is more than that",
            ),
        ),
    ),
    "knows": (
        "What may they know?",
        (
            PossibleAnswer(
                "people", "who is in the table, and the quasi-identifiers of these people",
                "any method that keeps detail is tried: how the release was made is taken to be unknown",
            ),
            PossibleAnswer(
                "method", "these people, their quasi-identifiers, and how the release was made (the program is public)",
                "only methods whose choice says nothing about sensitive values are tried: balanced Mondrian, and the "
                "lattice with requirements as gates",
            ),
        ),
    ),
    "needs": (
        "What do they need?",
        (
            PossibleAnswer(
                "detail", "as much detail as can be; a value may be coarser here than there",
                "methods that label each group on its own keep most",
            ),
            PossibleAnswer(
                "same-labels", "tables: every column at one level, new rows recoded in the same way later",
                "only the lattice publishes every column at one level",
            ),
            PossibleAnswer(
                "guarantee", "a bound that is proven, not only measured on this release",
                "balanced Mondrian with settings that were fixed before anybody looked: nothing is tried on the table",
            ),
        ),
    ),
}  # fmt: skip
PRESET_OF = {"anybody": "open-data", "researchers": "research", "regulator": "ema-clinical"}


@dataclass(frozen=True)
class Answers:
    """The answers to the three questions, by their names."""

    recipient: str = "anybody"
    knows: str = "method"
    needs: str = "detail"

    def __post_init__(self) -> None:
        for question, (_, choices) in QUESTIONS.items():
            answer, names = getattr(self, question), [c.name for c in choices]
            if answer not in names:
                raise UsageError(f"{question}: there is no answer {answer!r}; {did_you_mean(answer, names)}")

    @property
    def preset(self) -> str:
        """The preset whose k the recipients call for."""
        return PRESETS[PRESET_OF[self.recipient]].name

    @property
    def tried(self) -> bool:
        """Whether policies may be tried on the table; a look at it ends every guarantee."""
        return self.needs != "guarantee"

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that come into question."""
        if self.needs == "same-labels":
            return ("optimal-lattice",)
        return ("optimal-lattice", "mondrian", *(("local-recoding",) if self.knows == "people" else ()))

    def reasons(self) -> list[str]:
        """What follows from each answer, in sentences."""
        found = []
        for question, (asked, choices) in QUESTIONS.items():
            chosen = next(c for c in choices if c.name == getattr(self, question))
            found.append(f"{asked} {chosen.text[0].upper()}{chosen.text[1:]}: {chosen.reason}.")
        return found


@dataclass(frozen=True)
class Unsuited:
    """Methods and models that cannot serve a table under a policy, each with the reason."""

    methods: Mapping[str, str]
    models: Mapping[str, str]

    def lines(self) -> Iterator[str]:
        """For people, one line each."""
        for what, found in (("method", self.methods), ("model", self.models)):
            yield from (f"  {what} {name}: {reason}" for name, reason in found.items())


def find_unsuited(source: Any, policy: Policy) -> Unsuited:
    """What refuses this policy's columns and recoding whatever the values are, found out on a few rows of the table."""
    engine = open_engine()
    try:
        table = engine.sample_table(engine.open(source, reading_options(policy)), FEW)
    finally:
        engine.close()
    trials = Trials(Job(table, policy, attacks=(), metrics=()))
    base = policy.to_dict()
    try:
        methods = {
            name: {"method": {"name": name, **_tried_settings(cls, policy)}} for name, cls in METHODS.items()
        }
        models = {
            name: {"require": [{"model": name, **_tried_settings(cls, policy)}]}
            for name, cls in MODELS.items()
        }
        return Unsuited(_refused(trials, base, policy, methods), _refused(trials, base, policy, models))
    finally:
        trials.close()


def _tried_settings(cls: type[Registered], policy: Policy) -> dict[str, Any]:
    """Settings with which something could serve: the first sensitive column, and requirements as gates."""
    gate = {"use": "gate"} if "use" in cls.model_fields else {}
    about = {"attribute": policy.sensitive[0]} if "attribute" in cls.model_fields and policy.sensitive else {}
    return {**likely_settings(cls), **about, **gate}


def _refused(
    trials: Trials, base: Mapping[str, Any], policy: Policy, changes: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """Those of some changes that are refused for what they are, at once, not for what few rows happen to hold."""
    found = {}
    for name, change in changes.items():
        turn = TimeBudget(TURN_S, time.process_time)
        trials.cancelled = partial(getattr, turn, "is_over")
        try:
            trials.release(Policy.of({**base, **change}, "policy").beside(policy))
        except (PolicyError, UsageError) as problem:
            reason = str(problem).removeprefix("require[0]: ").removeprefix("method ")
            found[name] = reason.removeprefix(f"{name}: ")
        except MaskwrightError:
            continue  # these rows do not satisfy it, or its time ended: others may satisfy it
    return found
