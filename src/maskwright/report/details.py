"""The figures of an attack that a reader should see beside its worst belief, as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from maskwright.domain.beliefs import Beliefs
from maskwright.domain.exact import number_text


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
    if "links" in m:
        lines += link_lines(m["links"])
    if "estimated" in m:
        lines += estimate_lines(m["estimated"])
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
    if column["people_above"]:
        lines.append(
            f"{name}: {column['people_above']:,} people are believed above {number_text(column['threshold'])} to have "
            f"a sensitive value; of these beliefs {column['precision_above']:.1%} are true"
        )
    return lines


def estimate_lines(found: Mapping[str, Any]) -> list[str]:
    """Estimated risks in the population, after and before."""
    after, before = found["after"], found["before"]
    lines = [
        f"estimated for a population of {found['population']['size']:,}: highest risk {after['highest']:.4g} (before: "
        f"{before['highest']:.4g}), {after['expected_reidentifications']:.4g} people expected to be re-identified "
        f"({before['expected_reidentifications']:.4g})"
    ]
    if "households" in after:
        home, then = after["households"], before["households"]
        lines.append(f"  highest risk of a household: {home['highest']:.4g} (before: {then['highest']:.4g})")
    shares = [
        f"{name} {'no answer' if share is None else f'{share:.2%}'}"
        for name, share in after["population_uniques"].items()
    ]
    lines.append(f"  estimated share of population uniques: {', '.join(shares)}")
    return lines


def link_lines(links: Mapping[str, Any]) -> list[str]:
    """How well rows of two tables can be matched, the worst pairs first."""
    worst = sorted(links.items(), key=lambda item: -item[1]["best_guess"])
    return [
        f"rows of {pair}: two belong together with at most {link['best_guess']:.4g}; guessing restores "
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
