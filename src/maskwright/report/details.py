"""The figures of an attack that a reader should see beside its worst belief, as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from maskwright.attacks.learned import OTHERS, OTHERS_ALONE
from maskwright.domain.beliefs import Beliefs
from maskwright.domain.exact import number_text, percent_text


def detail_lines(beliefs: Beliefs) -> list[str]:
    """The figures of an attack that a reader should see beside its worst belief."""
    m, lines = beliefs.measures, list[str]()
    columns = m.get("attributes", {})
    if "vulnerable_share" in m:
        lines.append(_vulnerable(m))
    for name, column in columns.items() if isinstance(columns, Mapping) else ():
        if "vulnerable_share" in column:
            lines.append(f"{name}: {_vulnerable(column)}")
        if "mean_belief_in_the_truth" in column:
            lines += learned_lines(name, column)
        curve = column.get("implications")
        if isinstance(curve, (list, tuple)):
            points = ", ".join(number_text(p) if isinstance(p, Fraction) else str(p) for p in curve)
            lines.append(f"{name}: belief with 0, 1, 2 … known facts: {points}")
    lines += single_number_lines(m)
    if dropped := m.get("dropped_people"):
        lines.append(f"people of whom nothing was published: {dropped:,}")
    if hidden := m.get("values_not_flagged"):
        share = number_text(m["worst_share_of_a_value_not_flagged"])
        lines.append(
            f"values that are not called sensitive: {hidden:,}; the commonest has a share of {share}"
        )
    if cells := m.get("generalised_cells"):
        share = m["determined_cells"] / cells
        lines.append(
            f"generalised cells whose labels tell how many rows of their class lie where: {m['determined_cells']:,} of "
            f"{cells:,} ({share:.1%})"
        )
    if "empty_boxes" in m:
        low, high = m["empty_share_interval"]
        lines.append(
            f"{m['empty_boxes']:,} of {m['classes_counted']:,} classes describe nobody of {m['control_people']:,} "
            f"people outside the release ({low:.1%} to {high:.1%}); one expects {m['expected_singled_out']:.1f} people "
            "to be singled out"
        )
    for name, column in m.get("sets", {}).items():
        if "by_sets_alone" in column:
            lines.append(
                f"{name}: people whom fewer than {m['k']} of their class match by what may be known of their sets: "
                f"{column['vulnerable_people']:,}; in the whole release, without the class: "
                f"{column['by_sets_alone']['people']:,}"
            )
    if "almost_certain_people" in m:
        own, every = m["expected_belief"].values()
        lines.append(
            f"people of whom one value is left for certain: {m['certain_people']:,}; with 99 % or more: "
            f"{m['almost_certain_people']:,}; mean belief in the truth by a person's own classes {own:.1%}, by "
            f"everybody's {every:.1%}"
        )
    if "links" in m:
        lines += link_lines(m["links"])
    if "estimated" in m:
        lines += estimate_lines(m["estimated"])
    if "perturbed" in m:
        lines += perturbed_lines(m["perturbed"])
    if "by_rows" in m:
        lines.append("how few attributes single somebody out is not counted where people have several rows")
    if "singled_out" in m:
        lines += unique_lines(m["singled_out"])
    return lines


def learned_lines(name: str, column: Mapping[str, Any]) -> list[str]:
    """What is believed of the true value on average, beside the same model on people outside of the release."""
    mean, guess = column["mean_belief_in_the_truth"], column["best_guess_is_true"]
    control = mean["people who are not in it"]
    outside = "-" if control is None else f"{control:.1%}"
    lines = [
        f"{name}: mean belief in the true value {mean['learned']:.1%}; under random worlds "
        f"{mean['random worlds']:.1%}; the same model on people who are not in the release {outside}",
        f"{name}: the likeliest value is true of {guess['learned']:.1%} of the people",
    ]
    if (known := mean.get(OTHERS)) is not None:
        lines.append(
            f"{name}: somebody who learned from other people, whose values were known, believes the true value with "
            f"{known:.1%}; without the release {mean[OTHERS_ALONE]:.1%}"
        )
    if column["people_above"]:
        true = column[
            "precision_above"
        ]  # of rows: none of them may be above where the rows of somebody together are
        lines.append(
            f"{name}: {column['people_above']:,} people are believed above {number_text(column['threshold'])} to have "
            f"a sensitive value{'' if true is None else f'; of these beliefs {true:.1%} are true'}"
        )
    return lines


def single_number_lines(measures: Mapping[str, Any]) -> list[str]:
    """Columns whose ranges of numbers near the truth are too many for an attack, which looked at single numbers."""
    return [
        f"{name}: what is stated is about each number by itself. The requirement asks about numbers within "
        f"{percent_text(Fraction(found['within']))} of the truth, and {found['ranges']:,} ranges of them are too many "
        "or too long to be attacked one by one; it is decided on all ranges, and what cannot be computed for them "
        "counts as 1"
        for name, found in measures.get("single_numbers", {}).items()
    ]


def estimate_lines(found: Mapping[str, Any]) -> list[str]:
    """Estimated risks in the population, after and before."""
    after, before = found["after"], found["before"]
    people, earlier = (number_text(side["expected_reidentifications"]) for side in (after, before))
    lines = [
        f"estimated for a population of {found['population']['size']:,}: highest risk {percent_text(after['highest'])} "
        f"(before: {percent_text(before['highest'])}), {people} people expected to be re-identified ({earlier})"
    ]
    if "households" in after:
        home, then = after["households"], before["households"]
        risks = f"{percent_text(home['highest'])} (before: {percent_text(then['highest'])})"
        lines.append(f"  highest risk of a household: {risks}")
    shares = [
        f"{name} {'no answer' if share is None else f'{share:.2%}'}"
        for name, share in after["population_uniques"].items()
    ]
    lines.append(f"  estimated share of population uniques: {', '.join(shares)}")
    return lines


def perturbed_lines(found: Mapping[str, Any]) -> list[str]:
    """How many people are found by true numbers that are published with changes."""
    lines = []
    for link in found["linkage"]:
        names = " and ".join(link["columns"])
        for key, who in (("in_class", "and the class"), ("alone", "alone")):
            m = link[key]
            lines.append(
                f"by the true {names} {who}: who knows the method believes in the right row with {m['truth']:.1%} on "
                f"average and guesses it for {m['right']:.1%} of the people, the nearest row is right for "
                f"{m['nearest']:.1%}; without them {m['before']:.2%}"
            )
    return lines


def link_lines(links: Mapping[str, Any]) -> list[str]:
    """How well rows of two tables can be matched, the worst pairs first."""
    worst = sorted(links.items(), key=lambda item: -item[1]["best_guess"])
    return [
        f"rows of {pair}: two belong together with at most {percent_text(link['best_guess'])}; guessing restores "
        f"{link['expected_share']:.2%} of them"
        for pair, link in worst[:3]
    ]


def _vulnerable(m: Mapping[str, Any]) -> str:
    bound = m.get("threshold")
    above = (
        f" (above {number_text(bound)})" if isinstance(bound, Fraction) else f" ({bound})" if bound else ""
    )
    share = f"{float(m['vulnerable_share']):.1%}"
    if "vulnerable_people" not in m:
        return f"at most {share} of the people are vulnerable{above}"
    return f"{m['vulnerable_people']:,} people are vulnerable{above}: {share}"


def unique_lines(found: Mapping[str, Any]) -> list[str]:
    """Minimal unique sets in words: of the published labels, and of the raw table where that was different."""
    lines = []
    for when, single in (("", found["after"]), (" before the release", found["before"])):
        if when and single == found["after"]:
            continue
        most = single["sets_up_to"]
        share = f"{single['people']:,} people ({float(single['share']):.1%})"
        lines.append(f"singled out{when} by at most {most} attribute{'' if most == 1 else 's'}: {share}")
        if single["sets"]:
            first = "; ".join(f"{' + '.join(s['attributes'])} ({s['people']:,})" for s in single["sets"][:3])
            parts = [f"{name} {float(share):.0%}" for name, share in single["contributions"].items() if share]
            lines.append(f"  the commonest minimal sets: {first}")
            lines.append(f"  what attributes contribute: {', '.join(parts[:5])}")
    return lines
