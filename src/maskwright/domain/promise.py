"""A promise: what is guaranteed about belief, or only measured, and which ingredients of the policy decide it.

The ingredients are the method, the models, and the design: what else of a policy and of its run matters.
"""

from __future__ import annotations

import math
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

    @staticmethod
    def of(stored: Mapping[str, Any]) -> Lemma:
        """What `as_dict` stored of a lemma."""
        name = str(stored["title"]).removeprefix("Lemma ").strip("()")
        return Lemma(name, "", tuple(map(str, stored["conditions"])), "", str(stored["proof"]))


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

    @staticmethod
    def of(stored: Mapping[str, Any]) -> Ingredient:
        """What `as_dict` stored of an ingredient."""
        lemma = Lemma.of(stored["lemma"]) if "lemma" in stored else None
        return Ingredient(
            stored["name"],
            stored["setting"],
            bool(stored["covered"]),
            stored["why"],
            stored.get("instead", ""),
            lemma,
        )


@dataclass(frozen=True)
class DifferentialPrivacy:
    """A bound on how much one row matters to a release, whatever anybody believed or knew before.

    Attributes:
        epsilon, delta: no set of releases is more than e^epsilon times as likely, and delta more, with a row than
            without it.
        keep: the probability with which each row was kept.
        k: the fewest rows of a class that is published.
        allowed: the epsilon and the delta that all releases of the table together may spend.
        spent: what earlier releases of the table, under other policies, have spent of that.
    """

    epsilon: Fraction
    delta: float
    keep: float
    k: int
    allowed: tuple[Fraction, float]
    spent: tuple[Fraction, float] = (Fraction(0), 0.0)

    @property
    def total(self) -> tuple[Fraction, float]:
        """What all releases of the table have spent with this one: differential privacy adds up."""
        return self.spent[0] + self.epsilon, self.spent[1] + self.delta

    @property
    def phrase(self) -> str:
        """The two numbers: ε = 1, δ = 1e-05."""
        found = f"ε = {text_of(self.epsilon)}, δ = {self.delta:.3g}"
        epsilon, delta = self.total
        together = f"; with earlier releases of the table ε = {text_of(epsilon)}, δ = {delta:.3g}"
        return found + (together if self.spent[0] else "")

    def sentence(self) -> str:
        """For people: what it means for one of them."""
        epsilon, delta = self.total
        times = math.exp(epsilon)
        belief = times / (9 + times)
        return (
            f"Differential privacy ({self.phrase}): with or without the row of any one person, no release is more than "
            f"{times:.3g} times as likely, apart from a probability of {delta:.3g}. So whatever somebody believed of a "
            f"person before with 10 % can rise to {100 * belief:.3g} % because this person's row was in the table, and "
            "to no more; that holds whatever else they know, and without assuming that all worlds are equally likely."
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON, and for readers: nothing of it follows from the data."""
        return {
            "epsilon": text_of(self.epsilon), "delta": self.delta, "keep": self.keep, "k": self.k,
            "allowed": [text_of(self.allowed[0]), self.allowed[1]],
            "spent": [text_of(self.spent[0]), self.spent[1]],
        }  # fmt: skip

    @staticmethod
    def of(stored: Mapping[str, Any]) -> DifferentialPrivacy:
        """What `as_dict` stored."""
        allowed, spent = ((Fraction(e), float(d)) for e, d in (stored["allowed"], stored["spent"]))
        return DifferentialPrivacy(
            Fraction(stored["epsilon"]), float(stored["delta"]), float(stored["keep"]), int(stored["k"]), allowed,
            spent,
        )  # fmt: skip


ANYBODY, EVERY_ROW = "anybody", "every row"  # whom, and what, differential privacy is about


@dataclass(frozen=True)
class Promise:
    """What a policy promises about the belief in the values of one sensitive attribute, or about every row.

    Attributes:
        attribute: the sensitive attribute.
        adversary: who is meant.
        bound: the largest belief that is proven in advance; None: belief is what each class shows, and no requirement
            bounds that for every value.
        strict: belief stays below the bound.
        ingredients: everything that was asked about, the method first.
        differential: how little one row matters; None: the promise is about beliefs, under random worlds.
    """

    attribute: str
    adversary: str
    bound: Fraction | None
    strict: bool
    ingredients: tuple[Ingredient, ...]
    differential: DifferentialPrivacy | None = None

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
            return "; ".join(_uncovered_in_words(i) for i in self.uncovered) or "nothing is known about it"
        if self.differential is not None:
            return self.differential.sentence()
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
        if self.differential is not None:
            return f"differentially private: {self.differential.phrase}, without random worlds"
        stays = f"proven to stay {self._stays}" if self._stays else "belief is what each class shows"
        return f"{LABELS['guaranteed']}: {stays}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "attribute": self.attribute,
            "adversary": self.adversary,
            "status": self.status,
            "assumption": ASSUMPTION if self.differential is None else "none",
            "label": self.label,
            "bound": None if self.bound is None else text_of(self.bound),
            "why": self.why,
            "ingredients": [i.as_dict() for i in self.ingredients],
            **({} if self.differential is None else {"differential": self.differential.as_dict()}),
        }

    @staticmethod
    def of(stored: Mapping[str, Any]) -> Promise:
        """What `as_dict` stored of a promise."""
        bound = None if stored["bound"] is None else Fraction(stored["bound"])
        ingredients = tuple(map(Ingredient.of, stored["ingredients"]))
        private = stored.get("differential")
        return Promise(
            stored["attribute"], stored["adversary"], bound, "below" in stored["label"], ingredients,
            None if private is None else DifferentialPrivacy.of(private),
        )  # fmt: skip


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
        rows_kept: the most rows that are kept of a person; None: all.
        linked: the visits of a person that somebody may know, where a pseudonym links them all; 0: nothing links them.
        known: the visits of a person that somebody may know, linked or not; 0: every row is a person.
        own: the quasi-identifiers that are published alike in all rows of a person.
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
        listed: the sensitive columns some values of which are refused: those that an order or a hierarchy does not
            list, or that do not fit how the column is prepared; and those that hold weights or households.
        unproven: settings of the policy that no proof names.
        follows: how many releases of a sequence came before this one.
        coarsened: the quasi-identifiers that were coarsened, before rows were grouped, so that their combinations fit.
        spent: the epsilon and delta of earlier differentially private releases of the table, under other policies.
    """

    unit: str | None = None
    rows_kept: int | None = None
    linked: int = 0
    known: int = 0
    own: tuple[str, ...] = ()
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
    listed: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    follows: int = 0
    coarsened: tuple[str, ...] = ()

    spent: tuple[Fraction, float] = (Fraction(0), 0.0)

    def as_dict(self) -> dict[str, Any]:
        """What cannot be read off the policy again, for `private/`."""
        found = {"seeded": self.seeded, "repeatable": self.repeatable, "looked": self.looked}
        found |= {"follows": self.follows} if self.follows else {}
        found |= {"coarsened": list(self.coarsened)} if self.coarsened else {}
        return found | ({"spent": [text_of(self.spent[0]), self.spent[1]]} if self.spent[0] else {})

    @staticmethod
    def facts(stored: Mapping[str, Any]) -> dict[str, Any]:
        """The facts of a run as they were stored; what is not there is taken to be the worst."""
        looked = stored.get("looked")
        unknown = "it is not recorded what was tried on this input before"
        epsilon, delta = stored.get("spent", (0, 0))
        return {
            "spent": (Fraction(epsilon), float(delta)),
            "seeded": bool(stored.get("seeded", True)),
            "repeatable": bool(stored.get("repeatable", False)),
            "looked": looked if isinstance(looked, str) else unknown,
            "follows": int(stored.get("follows", 0)),
            "coarsened": tuple(map(str, stored.get("coarsened", ()))),
        }
