"""The verdict in words: risk and usefulness side by side, in percent, and what no requirement bounds.

What stands at the head of a report, in a terminal and in the workbench is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from maskwright.attacks import ATTACKS
from maskwright.attacks._shared.secrets import threshold_of
from maskwright.domain.adversary import About, Target
from maskwright.domain.beliefs import NOT_COMPUTED, Beliefs
from maskwright.domain.exact import percent_text, share_text
from maskwright.domain.release import Release
from maskwright.domain.verdict import parsed_number


def headline_beliefs(release: Release) -> list[Beliefs]:
    """The beliefs that may head a report.

    One in a range of values is none in a value; what the same facts tell without the release, what concerns values that
    the policy does not protect, and what somebody finds who knows true sensitive values, is told below.
    """
    computed = [b for b in release.beliefs if b.kind != NOT_COMPUTED and "idle" not in b.measures]
    return [
        b
        for b in computed
        if ATTACKS[b.attack].about != "ranges" and ATTACKS[b.attack].takes != {"method", "values"}
    ]


def not_computed(release: Release, about: About | None = None) -> str:
    """What the head of a report leaves out because it was not computed, to end its sentence; empty: nothing.

    `about`: values or rows; None: both.
    """
    missing = [
        b.attack for b in release.beliefs
        if b.kind == NOT_COMPUTED and ATTACKS[b.attack].about in ({"values", "rows"} if about is None else {about})
    ]  # fmt: skip
    names = list(dict.fromkeys(missing))
    if not names:
        return ""
    return f"; not computed: {', '.join(names)}, which {'counts' if len(names) == 1 else 'count'} as 100 %"


def verdict_words(release: Release) -> Iterator[str]:
    """Sentences on what anybody can find or believe, and on what is left of the detail."""
    linkage = next((b for b in release.beliefs if b.attack == "linkage" and "after" in b.measures), None)
    if linkage is not None:
        before, after = linkage.measures["before"], linkage.measures["after"]
        highest = Fraction(str(after["highest"]))
        yield (
            f"Risk: nobody is found with more than a chance of {share_text(highest)}"
            f"{_found_otherwise(release, highest)}; "
            f"{before['unique']:,} people were alone in their class before, {after['unique']:,} are now"
            f"{not_computed(release, 'rows')}."
        )
    values = [b for b in headline_beliefs(release) if ATTACKS[b.attack].about == "values"]
    if values:
        worst = max(values, key=worst_first)
        yield (
            f"Risk: the most that anybody can believe about a person's value is {worst.at_most}"
            f"{share_text(worst.worst.upper)} ({worst.attack}; {share_text(worst.worst.before)} {worst.earlier}"
            f"{_of_draws(worst)}){_counted_exactly(values, worst)}{not_computed(release, 'values')}."
        )
        yield from reconciling_words(release, worst)
    elif missing := not_computed(release, "values"):
        yield f"Risk: nothing is known about what anybody can believe about a person's value{missing}."
    published = Fraction(release.grouping.published_rows, max(1, release.grouping.summary.n_input))
    kept = 1 - Fraction(release.metrics.get("information-loss", 0))
    yield (
        f"Usefulness: {percent_text(kept)} of the detail of the quasi-identifiers is kept, in "
        f"{percent_text(published)} of the rows."
    )


def _found_otherwise(release: Release, highest: Fraction) -> str:
    """What finds people with a larger chance than the quasi-identifiers alone do; empty: nothing."""
    rows = [b for b in headline_beliefs(release) if ATTACKS[b.attack].about == "rows"]
    worst = max(rows, key=worst_first, default=None)
    if worst is None or worst.worst.upper <= highest:
        return ""
    chance = share_text(worst.worst.upper)
    return f" by the quasi-identifiers alone, but with {chance} by more than these ({worst.attack})"


def worst_first(found: Beliefs) -> tuple[Fraction, bool, bool, Fraction]:
    """By what beliefs are ordered for the head: of equal ones those in a value, then those that are no mere bound."""
    about_values = ATTACKS[found.attack].about == "values"
    return (found.worst.upper, about_values, found.kind != "bounded", -found.worst.before)


def _of_draws(worst: Beliefs) -> str:
    """What was estimated, where the number before it is the upper end of an interval around that."""
    drawn = worst.worst
    return (
        f"; {share_text(drawn.after)} in what was drawn, of which this is the upper end"
        if drawn.interval
        else ""
    )


def _counted_exactly(values: Sequence[Beliefs], worst: Beliefs) -> str:
    """Beside a belief that is only bounded, the largest one that was counted exactly, if it is another number."""
    counted = [b for b in values if b.kind == "exact"] if worst.kind == "bounded" else []
    largest = max(counted, key=worst_first, default=None)
    if largest is None or largest.worst.upper >= worst.worst.upper:
        return ""
    return f"; what was counted exactly is {share_text(largest.worst.upper)} ({largest.attack})"


def reconciling_words(release: Release, worst: Beliefs) -> Iterator[str]:
    """How every requirement can hold although a belief is above what they ask; nothing where it is not above."""
    target = release.target
    if target is None or not release.ok or any(v.model == "belief" for v in release.verdicts):
        return
    names = list(target.grouping.summary.sensitive)
    bound = max((threshold_of(target.models, name, len(names) == 1) for name in names), default=Fraction(1))
    if worst.worst.upper <= bound:
        return
    if "earlier_releases" in worst.measures:  # requirements are about one release
        yield (
            "The requirements hold for this release; that belief is held by somebody who also has an earlier "
            "release of the same table. Publish if nobody has both, or hand out the earlier one again."
        )
        return
    yield (
        f"The requirements hold, and none of them bounds this belief ({worst.attack}: "
        f"{_in_a_sentence(ATTACKS[worst.attack].summary_line())}). Publish if that is acceptable"
        f"{_bounded_instead(target, worst, bound)}."
    )


def _bounded_instead(target: Target, worst: Beliefs, bound: Fraction) -> str:
    """What would bound a belief that no requirement bounds, and which the table as one class satisfies; else nothing.

    A bound below the table's own share cannot be met, and is no advice.
    """
    stored = worst.as_dict()  # a release that was loaded has its figures in this form only
    grouping, about = target.grouping, stored["measures"].get("attributes", {})
    whole = grouping.summary.totals()
    names = [n for n, m in about.items() if m.get("worst") == stored["worst"]] or list(whole.sensitive)
    unclear = len(names) != 1 or target.exact or target.passing or not grouping.summary.rows_are_people
    if unclear or worst.worst.before > bound:
        return ""
    [name] = names
    takes = ATTACKS[worst.attack].takes
    if takes == {"facts"} and parsed_number(about.get(name, {}).get("whole_table", 1)) < bound:
        rule = (
            f"{{model: ck-safety, c: {bound}, k: {worst.measures['facts']}, attribute: {name}, use: search}}"
        )
        return f", or bound it, for which more detail is lost: {rule}"
    if takes <= {"method"} and whole.sensitive[name].counts.max() <= bound * grouping.summary.n_rows:
        rule = f"{{model: belief, max: {bound}, attribute: {name}}}"
        return f", or bound it: {rule} with method: {{name: mondrian, cut: balanced}}"
    return ""


def _in_a_sentence(line: str) -> str:
    """A line as a part of a sentence."""
    return line[:1].lower() + line[1:].rstrip(".")
