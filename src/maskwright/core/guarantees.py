"""What is guaranteed before looking at the data, and to whom: the proven bounds, under exactly their conditions.

A bound on belief holds for an adversary who knows the quasi-identifiers of everybody, the release, the method and
its parameters. It is *guaranteed* when it is proven for the method with its parameters fixed in advance; everything
else is *measured* on the release at hand. Parameters that were chosen by looking at the outcome guarantee nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from maskwright.core.model import Context, Model
from maskwright.core.rules import Rule, ShareAtMost, SizeAtLeast
from maskwright.core.worlds.bounds import BOUNDS, least_l_for_belief

Options = Mapping[str, Any]
NAMED: Literal["the values that the models name"] = "the values that the models name"
# methods whose groups depend on quasi-identifiers only when no model of their search looks at sensitive values
BLIND = {
    "optimal-lattice", "samarati", "incognito", "local-recoding", "mondrian", "greedy-grouping",
    "symmetric-grouping",
}  # fmt: skip


@dataclass(frozen=True)
class Promise:
    """What can be said about belief in the values of one sensitive attribute.

    Attributes:
        status: guaranteed, or measured.
        bound: the largest belief, where one is known in advance; None: belief is what each group shows.
        strict: belief stays below the bound.
        why: the reason, in words.
        about: which values the bound is about.
        shown: belief is what each group shows, so that a bound on shares is a bound on beliefs.
        codes: of the values that the bound is about; None: of every value.
    """

    status: Literal["guaranteed", "measured"]
    bound: Fraction | None
    strict: bool
    why: str
    about: Literal["every value", "the values that the models name"] = "every value"
    shown: bool = False
    codes: frozenset[int] | None = None


def family(method: str, options: Options) -> str | None:
    """The bound (a name in `BOUNDS`) that covers a method with these options; None: none is proven."""
    if method == "mondrian" and options.get("cut", "balanced") == "balanced":
        return "balanced"
    widest = options.get("dimensions", "widest") == "widest"
    if method == "mondrian" and options.get("cut") == "relaxed" and widest:
        return "even-split"
    if method == "symmetric-grouping" and options.get("ways", 2) == 2:
        return "even-split"
    if method == "greedy-grouping":
        return "randomised-greedy" if options.get("extend") else "greedy"
    if method == "anatomy" and options.get("by", "frequency") == "frequency":
        return "anatomy"
    return None


def l_for(method: str, options: Options, largest: Fraction) -> Fraction | int | None:
    """The l to run a method with so that no belief exceeds `largest`, whatever the data; None: nothing is proven.

    The diversity model must then be the only one that looks at sensitive values (balanced: one of any number).
    Balanced cuts take any l, so that there it is exactly 1 ÷ `largest`; the others take the least whole one.
    """
    name = family(method, options)
    if name is None:
        return None
    return 1 / largest if name == "balanced" else least_l_for_belief(largest, name)


def worlds_alike(
    method: str, options: Options, models: Sequence[Model], search: Mapping[str, Any] | None = None
) -> bool:
    """Would the method decide the same however the values of each group were dealt?

    Then knowing the method adds nothing to any other knowledge. Of balanced cuts that is not true: there each person's
    belief is what the group shows, but who knows one person's value may learn another's from a refused cut.
    """
    looked = _looked(models)
    if _voided(options, looked, search or {}):
        return False
    return (not looked and method in BLIND) or family(method, options) == "anatomy"


def promise(
    method: str,
    options: Options,
    models: Sequence[Model],
    context: Context,
    attribute: str,
    search: Mapping[str, Any] | None = None,
) -> Promise:
    """What a release by this method, with these options and models, guarantees about `attribute`.

    Args:
        method: the registered name.
        options: the method's options that differ from their defaults.
        models: all requirements, searched for and gates.
        context: of the models.
        attribute: the sensitive attribute in question.
        search: what the method reported about its run.
    """
    looked = _looked(models)
    void = _voided(options, looked, search or {})
    if void:
        return _measured(void)
    shown, everything = _largest_share(models, context, attribute)
    name = family(method, options)
    if not looked and method in BLIND:
        why = "the groups were made without looking at sensitive values: belief is what each group shows"
    elif name in ("balanced", "anatomy"):
        why = f"belief is what each group shows: {BOUNDS[name](1).conditions}"
        made = (
            search or {}
        )  # Anatomy says which column its buckets are about, and with how many different values
        l = made.get("l") if made.get("attribute", attribute) == attribute else None  # noqa: E741
        if name == "anatomy" and l and (not everything or shown is None or shown * l > 1):
            shown, everything = Fraction(1, int(l)), True
    elif name is None:
        return _measured(f"no bound is proven for {method} with these options")
    else:
        return _by_diversity(name, options, models, context, attribute)
    return Promise("guaranteed", shown, False, why, "every value" if everything else NAMED, shown=True)


def _looked(models: Sequence[Model]) -> list[Model]:
    """The models that make a method look at sensitive values."""
    return [m for m in models if m.use == "search" and m.about == "sensitive"]


def _voided(options: Options, looked: list[Model], search: Mapping[str, Any]) -> str | None:
    """Why no bound can hold, if it cannot."""
    if options.get("anatomize") and looked:
        return "groups that were made by looking at sensitive values were anatomized"
    if options.get("suppress") == "failing-classes" and looked:
        return "rows may be suppressed because of their sensitive values"
    if search.get("dropped_for_their_values"):
        return "rows were dropped because of their sensitive values: their absence is information"
    return None


def _largest_share(models: Sequence[Model], context: Context, attribute: str) -> tuple[Fraction | None, bool]:
    """The largest share of a value that a published group can show, by the models; and: of every value?"""
    rules = [r for r in _rules(models, context) if isinstance(r, ShareAtMost) and r.attribute == attribute]
    whole = [r.share for r in rules if r.sets is None or _all_covered(r, context)]
    if whole or not rules:
        return min(whole, default=None), True
    return max(r.share for r in rules), False


def _all_covered(rule: ShareAtMost, context: Context) -> bool:
    codes = {code for members in rule.sets or () for code in members}
    return len(codes) == len(context.domains.get(rule.attribute, ())) > 0


def _rules(models: Sequence[Model], context: Context) -> list[Rule]:
    return [rule for model in models for rule in model.kernel(context) or ()]


def _by_diversity(
    name: str, options: Options, models: Sequence[Model], context: Context, attribute: str
) -> Promise:
    """Bounds that hold for one diversity test on one set of values, when nothing else looks at values."""
    only = _only_test(_looked(models), context)
    if only is None or only.attribute != attribute:
        return _measured("the proof needs one diversity model as the only look at values")
    if only.sets is None or len(only.sets) != 1:
        return _measured(
            "the proof covers one set of values; for several nothing above the bound was found by enumeration, "
            "but that is no proof"
        )
    ell = 1 / only.share
    if name == "even-split":
        guard = options.get("min_child")
        if guard is not None and guard < ell:
            return _measured(f"the proof needs parts of at least {ell} rows (min_child)")
    elif ell.denominator != 1 or ell < 2 or options.get("l") not in (None, int(ell)):
        return _measured("the proof needs a whole l, and buckets of l rows")
    elif not all(_implied_by_buckets(m, context, int(ell)) for m in models if m.use == "search"):
        return _measured("the proof needs buckets of l rows that are closed by the diversity test alone")
    bound = BOUNDS[name](ell if name == "even-split" else int(ell))  # type: ignore[arg-type]
    covered = frozenset(only.sets[0])
    return Promise("guaranteed", bound.value, bound.strict, bound.conditions, NAMED, codes=covered)


def _measured(why: str) -> Promise:
    return Promise("measured", None, False, why)


def _only_test(looked: Sequence[Model], context: Context) -> ShareAtMost | None:
    """The one test of sensitive values that the models come to; None where there are several, or another kind.

    The same test with different shares is one test: the strictest.
    """
    found: set[ShareAtMost] = set()
    for model in looked:
        for rule in model.kernel(context) or (None,):
            if isinstance(rule, SizeAtLeast):
                continue
            if not isinstance(rule, ShareAtMost):
                return None
            found.add(rule)
    if len({(rule.attribute, rule.sets) for rule in found}) != 1:
        return None
    return min(found, key=lambda rule: rule.share)


def _implied_by_buckets(model: Model, context: Context, bucket: int) -> bool:
    """Is a model about quasi-identifiers true of every group of whole buckets? (One about values is another matter.)"""
    if model.about == "sensitive":
        return model.least_size(context) <= bucket
    rules = model.kernel(context)
    return rules is not None and all(isinstance(r, SizeAtLeast) and r.k <= bucket for r in rules)
