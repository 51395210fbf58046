"""A promise: what is guaranteed about belief, or only measured, and which ingredients of the policy decide it.

The ingredients are the method, the models, and the design: what else of a policy and of its run matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from maskwright.domain.exact import text_of

Status = Literal["guaranteed", "measured"]
ASSUMPTION = "under random worlds"
LABELS: dict[Status, str] = {"guaranteed": f"guaranteed {ASSUMPTION}", "measured": "measured"}


@dataclass(frozen=True)
class Lemma:
    """A proven statement about what an adversary who knows a method believes.

    Attributes:
        name: what it is called.
        says: the statement, in a sentence.
        conditions: all that it asks for.
        checked_by: the test that enumerates it.
        proof: the module that holds the proof.
        bound: the largest belief by the l of the one diversity test, and whether it is never reached; None: belief is
            what each group shows, whatever the models.
    """

    name: str
    says: str
    conditions: tuple[str, ...]
    checked_by: str
    proof: str = ""
    bound: Callable[[Fraction], tuple[Fraction, bool]] | None = field(default=None, compare=False, repr=False)

    @property
    def shown(self) -> bool:
        """Is belief what each published group shows?"""
        return self.bound is None

    @property
    def title(self) -> str:
        """As its proof calls it: Lemma B, Lemma (gates)."""
        return f"Lemma {self.name}" if len(self.name) == 1 else f"Lemma ({self.name})"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"title": self.title, "conditions": list(self.conditions), "proof": self.proof}


@dataclass(frozen=True)
class Ingredient:
    """One ingredient of a policy, and whether a proof names it.

    Attributes:
        name: of the ingredient: method, gates, suppression …
        setting: what the policy says about it, in words.
        covered: does a proof name it?
        why: the proof in a few words, or what is missing.
        instead: what would be covered, where there is such a thing.
        lemma: what covers it; None: nothing does, or it needs no proof.
    """

    name: str
    setting: str
    covered: bool
    why: str
    instead: str = ""
    lemma: Lemma | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        values = {"name": self.name, "setting": self.setting, "covered": self.covered, "why": self.why}
        more: dict[str, Any] = {"instead": self.instead} if self.instead else {}
        return values | more | ({"lemma": self.lemma.as_dict()} if self.lemma else {})


@dataclass(frozen=True)
class Promise:
    """What a policy promises about the belief in the values of one sensitive attribute.

    Attributes:
        attribute: the sensitive attribute.
        adversary: who is meant.
        bound: the largest belief that is proven in advance; None: belief is what each class shows, and no requirement
            bounds that for every value.
        strict: belief stays below the bound.
        ingredients: everything that was asked about, the method first.
    """

    attribute: str
    adversary: str
    bound: Fraction | None
    strict: bool
    ingredients: tuple[Ingredient, ...]

    @property
    def status(self) -> Status:
        """Guaranteed only where a proof names every ingredient."""
        return "guaranteed" if self.ingredients and not self.uncovered else "measured"

    @property
    def uncovered(self) -> tuple[Ingredient, ...]:
        """The ingredients that no proof names."""
        return tuple(i for i in self.ingredients if not i.covered)

    @property
    def why(self) -> str:
        """The reason in one sentence, without the status."""
        if self.status == "measured":
            return "; ".join(_uncovered_in_words(i) for i in self.uncovered) or "nothing is known of it"
        stays = f"proven to stay {self._stays}: " if self._stays else ""
        return f"{stays}{self.ingredients[0].why}"

    @property
    def _stays(self) -> str:
        if self.bound is None:
            return ""
        return f"{'below' if self.strict else 'at or below'} {text_of(self.bound)}"

    @property
    def label(self) -> str:
        """The promise in a few words, without the reasons."""
        if self.status == "measured":
            names = list(dict.fromkeys(i.name for i in self.uncovered))
            return f"{LABELS['measured']}: no proof covers {' and '.join(names) or 'it'}"
        stays = f"proven to stay {self._stays}" if self._stays else "belief is what each class shows"
        return f"{LABELS['guaranteed']}: {stays}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "attribute": self.attribute,
            "adversary": self.adversary,
            "status": self.status,
            "assumption": ASSUMPTION,
            "label": self.label,
            "bound": None if self.bound is None else text_of(self.bound),
            "why": self.why,
            "ingredients": [i.as_dict() for i in self.ingredients],
        }


def promise_labels(
    promises: Sequence[Mapping[str, Any]], verdicts: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Promises as a reader wants them, from what `as_dict` says: one for all attributes that it is the same for.

    What was promised of a requirement (in its verdict) stands for what is promised anyway.
    """
    in_turn = sorted(
        promises, key=lambda p: bool(p["status"] == "measured")
    )  # of several tables the weakest counts
    asked = [p for verdict in verdicts for p in verdict.get("promises", ())]
    which = {(p["attribute"], p["adversary"]): p for p in (*in_turn, *asked)}
    found: list[dict[str, Any]] = []
    for promise in which.values():
        rest = {k: v for k, v in promise.items() if k != "attribute"}
        same = next((f for f in found if f | rest == f), None)
        if same:
            same["attributes"].append(promise["attribute"])
        else:
            found.append({"attributes": [promise["attribute"]], **rest})
    return found


def _uncovered_in_words(ingredient: Ingredient) -> str:
    instead = f" (covered: {ingredient.instead})" if ingredient.instead else ""
    return f"{ingredient.name} ({ingredient.setting}) is not covered by a proof: {ingredient.why}{instead}"


@dataclass(frozen=True)
class Design:
    """The ingredients of a release that are neither its method nor its models.

    Attributes:
        unit: the column that tells persons apart, where a person may have several rows.
        insensitive: the columns that are published as they are.
        drops_missing: are rows left out because a value is missing?
        recoding: how groups become tables.
        weight: the column of survey weights, where the policy names one.
        plan: how the tables of a release were decided by looking at sensitive values; empty: they were not.
        seeded: were random choices made from a given seed?
        repeatable: does the same policy on the same input always make the same random choices?
        looked: why the settings may have been chosen by their outcome; empty: nothing else was tried on the input.
        population: is there a table of the population?
        prepared: the columns that are prepared, each from the cells of its own row.
        derived: those of them that are no secret and are computed from a sensitive column.
        unproven: settings of the policy that no proof names.
    """

    unit: str | None = None
    insensitive: tuple[str, ...] = ()
    drops_missing: bool = False
    recoding: str = "generalise"
    weight: str | None = None
    plan: str = ""
    seeded: bool = False
    repeatable: bool = True
    looked: str = ""
    population: bool = False
    prepared: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """What cannot be read off the policy again, for `private/`."""
        return {"seeded": self.seeded, "repeatable": self.repeatable, "looked": self.looked}

    @staticmethod
    def facts(stored: Mapping[str, Any]) -> dict[str, Any]:
        """The facts of a run as they were stored; what is not there is taken to be the worst."""
        looked = stored.get("looked")
        unknown = "it is not recorded what was tried on this input before"
        return {
            "seeded": bool(stored.get("seeded", True)),
            "repeatable": bool(stored.get("repeatable", False)),
            "looked": looked if isinstance(looked, str) else unknown,
        }
