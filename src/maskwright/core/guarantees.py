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
from maskwright.core.rules import Rule, ShareAtMost
from maskwright.core.worlds.bounds import BOUNDS, least_l_for_belief

Options = Mapping[str, Any]
NAMED: Literal["the values that the models name"] = "the values that the models name"
# methods whose groups depend on quasi-identifiers only when no model of their search looks at sensitive values
BLIND = {
    "optimal-lattice", "samarati", "incognito", "mondrian", "greedy-grouping", "symmetric-grouping",
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
    """

    status: Literal["guaranteed", "measured"]
    bound: Fraction | None
    strict: bool
    why: str
    about: Literal["every value", "the values that the models name"] = "every value"


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


def l_for(method: str, options: Options, largest: Fraction) -> int | None:
    """The l to run a method with so that no belief exceeds `largest`, whatever the data; None: nothing is proven.

    The diversity model must then be the only one that looks at sensitive values (balanced: one of any number).
    """
    name = family(method, options)
    return None if name is None else least_l_for_belief(largest, name)


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
    looked = [m for m in models if m.use == "search" and m.about == "sensitive"]
    void = _voided(options, looked, search or {})
    if void:
        return Promise("measured", None, False, void)
    shown, everything = _largest_share(models, context, attribute)
    name = family(method, options)
    if not looked and method in BLIND:
        why = "the groups were made without looking at sensitive values: belief is what each group shows"
    elif name in ("balanced", "anatomy"):
        why = f"belief is what each group shows: {BOUNDS[name](1).conditions}"
        l = (search or {}).get("l")  # noqa: E741 - the literature's name
        if name == "anatomy" and l and (not everything or shown is None or shown * l > 1):
            shown, everything = Fraction(1, int(l)), True
    elif name is None:
        return Promise("measured", None, False, f"no bound is proven for {method} with these options")
    else:
        return _by_diversity(name, options, looked, context, attribute)
    return Promise("guaranteed", shown, False, why, "every value" if everything else NAMED)


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
    name: str, options: Options, looked: list[Model], context: Context, attribute: str
) -> Promise:
    """Bounds that hold for one diversity test on one set of values, when nothing else looks at values."""
    rules = [
        r for m in looked for r in (m.kernel(context) or (None,)) if r is None or hasattr(r, "attribute")
    ]
    only = rules[0] if len(rules) == 1 else None
    if not isinstance(only, ShareAtMost) or only.attribute != attribute:
        return Promise(
            "measured", None, False, "the proof needs one diversity model as the only look at values"
        )
    if only.sets is None or len(only.sets) != 1:
        return Promise(
            "measured", None, False,
            "the proof covers one set of values; for several nothing above the bound was found by enumeration, "
            "but that is no proof",
        )  # fmt: skip
    ell = 1 / only.share
    if name == "even-split":
        guard = options.get("min_child")
        if guard is not None and guard < ell:
            return Promise(
                "measured", None, False, f"the proof needs parts of at least {ell} rows (min_child)"
            )
    elif ell.denominator != 1 or ell < 2 or options.get("l") not in (None, int(ell)):
        return Promise("measured", None, False, "the proof needs a whole l, and buckets of l rows")
    bound = BOUNDS[name](ell if name == "even-split" else int(ell))  # type: ignore[arg-type]
    return Promise("guaranteed", bound.value, bound.strict, bound.conditions, NAMED)
