"""The promise of a whole policy: guaranteed or measured, ingredient by ingredient, deny by default.

Every ingredient of a policy must be named by a proof. One that is not makes the promise *measured*, and the promise
says which one it is and what would be covered. Nothing here looks at a sensitive value: what is taken from a release
is only what everybody can see of it, such as whether somebody was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.exact import text_of
from maskwright.domain.grouping import Grouping, Trace
from maskwright.domain.method import Method
from maskwright.domain.model import Context, Model
from maskwright.domain.promise import ANYBODY, EVERY_ROW, Design, Ingredient, Promise
from maskwright.promise.lemmas.dropped_rows import DROPPING
from maskwright.promise.lemmas.lasting_signatures import LASTING
from maskwright.promise.lemmas.private_samples import PRIVATE_SAMPLES
from maskwright.promise.lemmas.published_gates import GATES
from maskwright.promise.lemmas.repeated_runs import REPETITION
from maskwright.promise.lemmas.rows_per_person import SEVERAL_ROWS
from maskwright.promise.method_promise import MethodPromise, promise_of_method


@dataclass(frozen=True)
class VisibleOutcome:
    """What everybody can see of a finished release that a proof may depend on.

    Attributes:
        dropped: rows that are not published, whatever the reason.
        dropped_missing: those of them that were left out because a value is missing.
        trace: what the run of the method left behind.
        partly: has somebody rows that are published and rows that are not?
    """

    dropped: int
    dropped_missing: int
    trace: Trace
    partly: bool = False

    @staticmethod
    def of(grouping: Grouping) -> VisibleOutcome:
        """The outcome of a grouping."""
        missing = grouping.summary.dropped_missing
        before = missing + grouping.summary.dropped_per_person
        return VisibleOutcome(
            grouping.dropped_rows + before, missing, grouping.trace, _partly_published(grouping)
        )


def _partly_published(grouping: Grouping) -> bool:
    """Is somebody published with some rows and left out with others? Follows from quasi-identifiers alone."""
    owned, allocation = grouping.summary.owned, grouping.allocation
    if owned is None or not grouping.dropped_rows:
        return False
    cells = grouping.summary.cells
    if allocation.cells is not None and cells is not None and cells.people is not None:
        out, people = allocation.groups < 0, cells.people[allocation.cells]
        return len(np.intersect1d(people[out], people[~out])) > 0
    out = np.isin(owned.tuples, allocation.tuples[allocation.groups < 0])
    return len(np.intersect1d(owned.people[out], owned.people[~out])) > 0


@dataclass(frozen=True, eq=False)
class PromiseQuestion:
    """About what a promise is asked: one attribute, one adversary, and the whole policy.

    Attributes:
        attribute, adversary: whose belief in what.
        secrets: the sets of values in question; None: each value of the attribute.
        largest: the bound that is asked for; None: whatever each class shows.
        method, models, context: how the groups of the attribute's table are made.
        design: the other ingredients; None: nothing is known of them.
        joined: the attributes that a row shows together, as lists; None: all of them.
        columns: the sensitive attributes of the table.
        sets: the column of sets that the attribute is a value of, or is.
        split: attributes and columns of sets that are in several tables.
        outcome: what can be seen of the release; None: there is none yet.
        within: the secret is a number, up to this share of the truth; None: values or sets of them.
    """

    attribute: str
    adversary: Adversary
    secrets: Sequence[Sequence[str]] | None
    largest: Fraction | None
    method: Method | None
    models: Sequence[Model]
    context: Context
    design: Design | None
    joined: Sequence[Sequence[str]] | None = None
    columns: Sequence[str] = ()
    sets: str | None = None
    split: frozenset[str] = frozenset()
    outcome: VisibleOutcome | None = None
    within: Fraction | None = None

    @property
    def looked(self) -> list[Model]:
        """The models that make the method look at sensitive values."""
        return [m for m in self.models if m.use == "search" and m.about == "sensitive"]

    @property
    def dealt_alike(self) -> bool:
        """Would the method decide the same however the values of each class were dealt?"""
        if not self.adversary.knows_method:
            return True
        return self.method is not None and self.method.deals_alike(self.models, self._trace)

    @property
    def _trace(self) -> Trace:
        return self.outcome.trace if self.outcome else Trace()

    def by_method(self) -> MethodPromise:
        """What the method alone promises."""
        if self.method is None:
            return MethodPromise(None, "the method is not known")
        return promise_of_method(self.method, self.models, self.context, self.attribute, self._trace)


def promise_of(
    target: Target,
    attribute: str,
    adversary: Adversary,
    secrets: Sequence[Sequence[str]] | None = None,
    largest: Fraction | None = None,
    within: Fraction | None = None,
) -> Promise:
    """The promise of a release about one attribute of one of its tables."""
    tables = target.tables
    where: dict[str, int] = {}
    for table in tables:
        mine = set(table.grouping.summary.sensitive)
        names = mine | {s.name for s in table.context.sets if mine & set(s.bits)}
        for name in names:
            where[name] = where.get(name, 0) + 1
    question = PromiseQuestion(
        attribute, adversary, secrets, largest, target.method, target.models, target.context, target.design,
        target.joined, tuple(target.grouping.summary.sensitive),
        next((s.name for s in target.context.sets if attribute in s.bits), None),
        frozenset(n for n, k in where.items() if k > 1), VisibleOutcome.of(target.grouping), within,
    )  # fmt: skip
    return answer_question(question)


def answer_question(question: PromiseQuestion) -> Promise:
    """The promise that answers a question."""
    found = question.by_method()
    every = question.within is None and (found.every_value or question.largest is not None)
    bound = found.bound if every else None
    ingredients = tuple(i for ask in INGREDIENTS for i in ask(question))
    return Promise(question.attribute, question.adversary.name, bound, found.strict, ingredients)


def promise_of_rows(method: Method, design: Design) -> Promise | None:
    """The promise of a method whose releases are differentially private; None: they are not.

    It is about every row and anybody. What would void it was refused before.
    """
    privacy = method.privacy()
    if privacy is None:
        return None
    privacy = replace(privacy, spent=design.spent)
    why = f"{PRIVATE_SAMPLES.says}; every row is kept with probability {privacy.keep:.4g}, and classes have at least "
    question = PromiseQuestion(
        EVERY_ROW, Adversary(ANYBODY), None, None, method, (), Context(reference={}, n_people=0), design
    )
    ingredients = (
        Ingredient("method", f"{method.name}, {privacy.phrase}", True, f"{why}{privacy.k} rows", lemma=PRIVATE_SAMPLES),
        Ingredient("columns", "all that are published", True, "they are the class of a row, at fixed levels"),
        *_run(question),
    )  # fmt: skip
    return Promise(EVERY_ROW, ANYBODY, None, False, ingredients, privacy)


Asked = Callable[[PromiseQuestion], Iterator[Ingredient]]


def _method(question: PromiseQuestion) -> Iterator[Ingredient]:
    """The method with its settings, and the models that it searches on."""
    adversary, method = question.adversary, question.method
    searched = list(dict.fromkeys(m.name for m in question.models if m.use == "search"))
    setting = f"{method.name}, searching on {' and '.join(searched) or 'nothing'}" if method else "not known"
    if not adversary.knows_method:
        why = "this adversary does not know the method, and believes what the class shows"
        yield Ingredient("method", setting, True, why)
        return
    found = question.by_method()
    people = question.design is not None and question.design.unit is not None
    if found.lemma is None:
        yield Ingredient("method", setting, False, found.why, BLIND_SEARCH if people else BALANCED)
        return
    if adversary.facts and not question.dealt_alike:
        why = "no bound is proven for somebody who knows the method and facts"
        yield Ingredient("method", setting, False, why, BLIND_SEARCH if people else BLIND)
        return
    short = _falls_short(question, found)
    if short:
        yield Ingredient("method", setting, False, short, BLIND_SEARCH if people else BALANCED)
        return
    yield Ingredient("method", setting, True, found.why, lemma=found.lemma)


def _falls_short(question: PromiseQuestion, found: MethodPromise) -> str:
    """Why a bound that is proven is not the one that was asked for; empty: it is."""
    if found.shown or question.largest is None:
        return ""
    values = question.context.domains.get(question.attribute, ())
    named = None if question.secrets is None else {v for members in question.secrets for v in members}
    codes = {i + 1 for i, v in enumerate(values) if named is None or v in named}
    if found.codes is not None and not codes <= found.codes:
        return "the proof covers fewer values than the requirement"
    if found.bound is None or found.bound > question.largest:
        shown = "none" if found.bound is None else text_of(found.bound)
        return f"the proven bound of the method with its parameters is {shown}, which is more"
    return ""


def _worlds(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Which worlds the adversary takes for likely: every proof rests on all of them being equally likely."""
    if question.adversary.learns:
        why = "this adversary learns from the release which worlds are likely; proofs take all for equally likely"
        yield Ingredient("adversary", question.adversary.name, False, why, "adversary: knows-method")


def _gates(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Requirements that are checked when the groups are made: safe as functions of what is published."""
    for model in question.models:
        if model.use != "gate" or model.about != "sensitive" or model.name == "belief":
            continue
        if question.design is not None and question.design.unit:
            why = "it counts people, and which rows of a class are whose is not published"
            yield Ingredient("gate", model.name, False, why, "a requirement on belief, which counts rows")
        elif model.needs():
            why = f"what it compares with ({', '.join(sorted(model.needs()))}) is not published"
            yield Ingredient("gate", model.name, False, why, "gates that look at the published classes alone")
        else:
            why = "it is a function of what is published"
            yield Ingredient("gate", model.name, True, why, lemma=GATES)


def _weights(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Survey weights that a requirement looks at: nobody knows them, and they may go with sensitive values."""
    column = question.design.weight if question.design else None
    asking = [m.name for m in question.models if "sample" in m.needs()]
    if column is not None and asking:
        why = f"{asking[0]} looks at survey weights, which no proof names"
        yield Ingredient("weights", column, False, why, "population: {size: …} without `weight`")


def _suppression(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Rows that are left out: by class size, at random, or because of their values."""
    method, outcome = question.method, question.outcome
    share = getattr(method, "suppression", 0)
    if outcome is not None and outcome.trace.dropped_for_values:
        gone = outcome.trace.dropped_for_values
        why = f"{gone} rows were dropped because of their values: absence is information"
        yield Ingredient("suppression", "by value", False, why, "dropping by class size, or at random")
    elif method is not None and method.decisions().drops_failing and question.looked:
        why = "classes are dropped because of their values: absence is information"
        yield Ingredient("suppression", "failing-classes", False, why, "suppress: small-classes")
    elif share:
        why = "classes are dropped by their size alone, which everybody knows"
        yield Ingredient("suppression", "small-classes", True, why, lemma=DROPPING)


def _missing(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Rows that are left out because a value is missing: it may be the sensitive one."""
    design, outcome = question.design, question.outcome
    if design is None or not design.drops_missing:
        return
    if outcome is not None and not outcome.dropped:
        yield Ingredient("missing rows", "dropped", True, "nobody was left out")
        return
    if outcome is not None and not outcome.dropped_missing:
        why = "that it was for another reason reveals that no value of those who are left out is missing"
    else:
        why = "somebody may be left out because a sensitive value is missing, and then class sizes tell of it"
    yield Ingredient("missing rows", "dropped", False, why, "missing: {rows: keep}")


def _people(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Several rows per person."""
    unit = question.design.unit if question.design else None
    if unit is None:
        return
    if question.adversary.facts:
        why = "no proof takes facts about people with several rows into account"
        yield Ingredient("unit", unit, False, why, "adversary: knows-method")
    elif question.design is not None and question.design.rows_kept is not None:
        yield Ingredient(
            "unit", f"{unit}, at most {question.design.rows_kept} rows", False, PARTLY, "unit without `rows`"
        )
    elif question.design is not None and question.design.own and not _one_level_for_all(question):
        why = "people are grouped first by columns of their own, and then their rows: no proof is about both together"
        yield Ingredient(
            "unit",
            f"{unit}, own columns {', '.join(question.design.own)}",
            False,
            why,
            "a method with one level for each column",
        )
    elif _may_be_partly_published(question):
        why = PARTLY
        suppresses = hasattr(question.method, "suppression")
        instead = "no suppression, or suppressed_rows: star" if suppresses else BLIND_SEARCH
        yield Ingredient("unit", unit, False, why, instead)
    elif question.adversary.knows_method and question.method is not None and question.method.buckets_people:
        why = "which rows can share a bucket of different people depends on whose values they are"
        yield Ingredient("unit", unit, False, why, BLIND_SEARCH)
    elif question.dealt_alike:
        why = "of a person with r of the N rows of a class, c of which hold a value, 1 − C(N−c, r)/C(N, r) is believed"
        yield Ingredient("unit", unit, True, why, lemma=SEVERAL_ROWS)
    else:
        yield Ingredient("unit", unit, False, "the bound of the method is about single rows", BLIND_SEARCH)


def _one_level_for_all(question: PromiseQuestion) -> bool:
    """Does the method publish a column at one level, and so alike in all rows of a person by itself?"""
    return question.method is not None and question.method.for_one_table().decisions().shape == "node"


def _may_be_partly_published(question: PromiseQuestion) -> bool:
    """Is somebody published in part? Before the run: may that come about?"""
    if question.outcome is not None:
        return question.outcome.partly
    method = question.method
    return bool(getattr(method, "suppression", 0)) and getattr(method, "suppressed_rows", None) != "star"


def _columns(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Sensitive attributes that a row shows together: one that is known gives the others away."""
    if len(question.columns) < 2:
        return
    setting = f"{len(question.columns)} sensitive attributes"
    blocks = [tuple(question.columns)] if question.joined is None else question.joined
    beside = [n for names in blocks if question.attribute in names for n in names if n != question.attribute]
    if question.adversary.facts and beside:
        why = f"a fact about {beside[0]} of the same row narrows the rows of a person down"
        instead = "columns that no row shows together (recoding: bucketize or permute without `together`)"
        yield Ingredient("columns", setting, False, why, instead)
    else:
        lemma = question.by_method().lemma if question.adversary.knows_method else None
        yield Ingredient("columns", setting, True, "values of a row are dealt together", lemma=lemma)


def _secrets(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Sets of several values that must not be inferred by somebody who knows facts."""
    several = [members for members in question.secrets or () if len(members) > 1]
    if question.adversary.facts and several:
        why = "facts reveal more about a set of values than about each of them"
        yield Ingredient("secrets", " or ".join(several[0]), False, why, "secrets of one value each")


def _near_numbers(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Numbers near the truth: the belief in a range is the sum over its numbers, where each group shows that."""
    if question.within is None:
        return
    outcome, setting = question.outcome, f"within {text_of(question.within)} of the truth"
    if question.adversary.facts:
        why = "facts reveal more about a range of numbers than about each of them"
        yield Ingredient("numbers", setting, False, why, "secrets of one value each")
    elif question.adversary.knows_method and not question.by_method().shown:
        why = "the bound of the method is about values, not about ranges of numbers"
        yield Ingredient("numbers", setting, False, why, BALANCED)
    elif outcome is None or outcome.dropped:
        why = "a value that is no number is refused: being published reveals something about those who are left out"
        yield Ingredient("numbers", setting, False, why, "no suppression")
    else:
        why = "the belief in a range is the sum over its numbers, and nobody is left out"
        yield Ingredient("numbers", setting, True, why)


def _sets(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Multi-valued columns: which values there are is read off everybody, published or not."""
    column, outcome = question.sets, question.outcome
    if column is None:
        return
    if outcome is not None and not outcome.dropped:
        yield Ingredient(
            "sets", column, True, "each value is an attribute of its own, and nobody is left out"
        )
        return
    why = "which values occur in the sets is read off everybody, and somebody may be left out"
    yield Ingredient("sets", column, False, why, "no suppression")


def _listed_values(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Orders, hierarchies and preparations of sensitive columns: a table with a value that does not fit is refused."""
    design, outcome = question.design, question.outcome
    if design is None or not design.listed:
        return
    setting = ", ".join(design.listed)
    if outcome is not None and not outcome.dropped:
        yield Ingredient("listed values", setting, True, "nobody is left out, so every value is published")
        return
    why = (
        "a value that is not listed, or does not fit, is refused: being published reveals something about those who "
        "are left out"
    )
    instead = (
        "no suppression, or no order, hierarchy and preparation of a sensitive column that refuses values"
    )
    yield Ingredient("listed values", setting, False, why, instead)


def _tables(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Several tables: how they were decided, and what they tell together."""
    design = question.design
    if design is not None and design.plan:
        yield Ingredient("plan", "several tables", False, design.plan, "a given plan, without alpha and beta")
    together = question.split & {question.attribute, question.sets or ""}
    if together:
        why = f"{min(together)} is in several tables, which reveal more together than each does alone"
        yield Ingredient("tables", "several tables", False, why, "a plan that keeps it in one table")


def _insensitive(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Columns that are published as they are."""
    names = question.design.insensitive if question.design else ()
    if names:
        why = "what it reveals about sensitive values is measured, and nothing is proven about it"
        instead = "a quasi-identifier, or a column that is not published"
        yield Ingredient("insensitive columns", ", ".join(names), False, why, instead)


def _population(question: PromiseQuestion) -> Iterator[Ingredient]:
    """A table of the population, which says who could be in the table and nothing about anybody's values."""
    if question.design is not None and question.design.population:
        why = (
            "it holds quasi-identifiers alone, which the adversary knows: it says nothing of sensitive values"
        )
        yield Ingredient("population", "a table", True, why)


def _preparing(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Columns that are prepared before anything reads them: each cell from its own row and the policy."""
    design = question.design
    if design is None or not design.prepared:
        return
    if design.derived:
        why = f"{design.derived[0]} is computed from a sensitive column, and reveals something about it"
        yield Ingredient(
            "prepare", ", ".join(design.derived), False, why, "lengths of columns that are not sensitive"
        )
        return
    why = (
        "what becomes of a cell follows from its own row and the policy, never from other rows: the table is as if it "
        "had been collected so"
    )
    yield Ingredient("prepare", ", ".join(design.prepared), True, why)


def _coarsening(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Columns that were coarsened so that the table fits: by what follows from quasi-identifiers."""
    names = question.design.coarsened if question.design else ()
    if not names:
        return
    if question.outcome is not None and not question.outcome.dropped:
        why = (
            "the levels follow from the memory, the number of rows, how many combinations of quasi-identifiers there "
            "are and how many sensitive values: they are the same whoever has which"
        )
        yield Ingredient("coarsened to fit", ", ".join(names), True, why)
        return
    why = "how many sensitive values there are is read off everybody, and somebody may be left out"
    yield Ingredient(
        "coarsened to fit", ", ".join(names), False, why, "no suppression, or `finest` in the policy"
    )


def _sequence(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Releases of the same sequence that came before."""
    many = question.design.follows if question.design else 0
    if not many:
        return
    if question.adversary.facts:
        why = "nothing is proven about what facts about others reveal beside several releases"
        yield Ingredient("earlier releases", f"{many} of the sequence", False, why, "adversary: knows-method")
    else:
        why = "everybody's group shows the same values in all of them, each once"
        yield Ingredient("earlier releases", f"{many} of the sequence", True, why, lemma=LASTING)


def _other_settings(question: PromiseQuestion) -> Iterator[Ingredient]:
    """Settings that nothing above asks about: what no proof names is not promised."""
    for name in question.design.unproven if question.design else ():
        yield Ingredient("setting", name, False, "no proof names it", f"a policy without {name}")


def _run(question: PromiseQuestion) -> Iterator[Ingredient]:
    """The run: its random choices, and what was tried before."""
    design = question.design
    if design is None:
        yield Ingredient("policy", "not known", False, "how the release was made is not known")
        return
    if design.seeded:
        why = "whoever guesses the seed can repeat the random choices"
        yield Ingredient("seed", "given", False, why, "a run without a seed")
    if not design.repeatable:
        why = "the installation key could not be kept, so the same policy may have been run with other draws"
        yield Ingredient("earlier runs", "not known", False, why, "a state folder that can be written to")
    if design.looked:
        yield Ingredient("earlier runs", "other settings", False, design.looked, "settings fixed in advance")
    if not (design.seeded or not design.repeatable or design.looked):
        why = "the same policy on the same input makes the same release, and no other was tried"
        yield Ingredient("earlier runs", "none", True, why, lemma=REPETITION)


PARTLY = "both kinds of rows reveal something about somebody who is published with some rows and left out with others"
BALANCED = "mondrian with cut: balanced, for any models and any number of columns"
BLIND_SEARCH = "a method whose search does not look at sensitive values"
BLIND = f"{BLIND_SEARCH}, or anatomy"
INGREDIENTS: tuple[Asked, ...] = (
    _method, _worlds, _gates, _weights, _suppression, _missing, _people, _columns, _secrets, _near_numbers, _sets,
    _listed_values, _tables, _insensitive, _population, _preparing, _coarsening, _sequence, _other_settings, _run,
)  # fmt: skip
