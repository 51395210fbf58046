"""The search: what was looked at, which other minimal choices there are, what other settings would cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from maskwright.domain.exact import number_text
from maskwright.domain.release import Release
from maskwright.methods._lattice.nodes import MinimalNode
from maskwright.report.bars import as_percent
from maskwright.report.html import Markup, folded_details, html_table, page_section, tag
from maskwright.report.risk_and_usefulness import named_groupings


@dataclass(frozen=True)
class OtherSetting:
    """A release as it would be under another setting; `refused` says why there would be none."""

    setting: str
    loss: Fraction | None = None
    rows: int = 0
    classes: int = 0
    refused: str = ""


@dataclass(frozen=True)
class NearbySettings:
    """What lies around a release. `note` says what was not looked at, and what that would take."""

    others: Sequence[OtherSetting] = ()
    minimal: Sequence[MinimalNode] | None = None
    note: str = ""


ELSEWHERE = {
    "levels",
    "alternatives",
    "minimal_nodes",
    "frontier",
    "curve",
    "base",
    "note",
}  # shown in a way of their own
MOST = 50
ONLY_SEARCHED = (
    "Only the search was run again: nothing was written, and no attack was run. Whoever changes a setting because of "
    "these figures chooses it by looking at the data; where the search looks at sensitive values, an adversary may "
    "take that into account."
)


LESS_WHEN_STRICTER = (
    "A stricter setting loses less here, which is no mistake: with suppress: small-classes a class that fails because "
    "of its values is left out only where it has fewer than k people, so a larger k lets more of them go, and "
    "fewer have to be coarsened away. With suppress: failing-classes whatever fails is left out, and nothing is "
    "guaranteed."
)


def loses_less_when_stricter(others: Sequence[OtherSetting]) -> bool:
    """Whether a setting with a larger number loses less than one with a smaller number."""
    named = [
        (int(n[1]), o.loss) for o in others if o.loss is not None and (n := re.search(r"= (\d+)", o.setting))
    ]
    return any(a[0] < b[0] and a[1] > b[1] for a in named for b in named)


def search_section(release: Release, around: NearbySettings | None) -> Markup:
    """The section on how the method searched, and what other settings would have given."""
    parts: list[Markup] = []
    for name, grouping in named_groupings(release):
        search = grouping.search
        rows = [
            (key.replace("_", " "), _plain(value))
            for key, value in search.items()
            if key not in ELSEWHERE and value is not None
        ]
        caption = "What the method did" + (f" for {name}" if name else "")
        parts.append(html_table(("", "figure"), rows, caption=caption))
        if note := search.get("note"):
            parts.append(tag("p", note))
        parts += [*_curve(search), *_levels(search)]
    method = release.policy.method
    return page_section(
        "search", "The search",
        tag("p", f"Method {method.name}", *(f", {k} {v}" for k, v in method.parameters.items()), "."),
        *parts, *_minimal_choices(around), *_others(around),
    )  # fmt: skip


def _curve(search: Mapping[str, Any]) -> list[Markup]:
    """How the two ends of an anytime search came together."""
    points = search.get("curve")
    if not points:
        return []
    rows = [
        (f"{p['seconds']:.1f}", _plain(p["score"]), _plain(p["bound"]),
         as_percent((p["score"] - p["bound"]) / p["score"] if p["score"] else 0.0))
        for p in points
    ]  # fmt: skip
    heads = ("seconds", "best score", "proven at least", "gap")
    return [html_table(heads, rows, numbers=(0, 1, 2, 3), caption="How the search went on")]


def _levels(search: Mapping[str, Any]) -> list[Markup]:
    """The levels that were chosen, and those of the next best choices."""
    chosen, found = (
        search.get("levels"),
        list(search.get("alternatives") or search.get("minimal_nodes") or []),
    )
    if not isinstance(chosen, Mapping) or not found:
        return []
    caption = (
        "The next best choices of levels" if "alternatives" in search else "All minimal choices of levels"
    )
    rows = [("published", _score(search), *_levels_in(chosen, chosen))]
    rows += [(f"no. {i}", _score(x), *_levels_in(x["levels"], chosen)) for i, x in enumerate(found[:MOST], 2)]
    return [html_table(("", "score", *chosen), rows, numbers=(1,), caption=caption)]


def _levels_in(levels: Mapping[str, str], chosen: Mapping[str, str]) -> list[object]:
    """Level names in the order of the columns; those that differ from what was published stand out."""
    return [levels[c] if levels[c] == chosen[c] else tag("b", levels[c]) for c in chosen]


def _score(entry: Mapping[str, Any]) -> str:
    score = entry.get("score")
    return _plain(score) if score is not None else ""


def _minimal_choices(around: NearbySettings | None) -> list[Markup]:
    if around is None or not around.minimal:
        return []
    first = around.minimal[0].names
    rows = [
        (number_text(n.score), f"{n.suppressed:,}", *_levels_in(n.names, first))
        for n in around.minimal[:MOST]
    ]
    more = f"; the best {MOST} are shown" if len(around.minimal) > MOST else ""
    text = f"All minimal choices of levels: {len(around.minimal):,}{more}"
    caption = "Whatever else satisfies the policy is coarser than one of these"
    return [
        folded_details(
            text, html_table(("score", "rows suppressed", *first), rows, numbers=(1,), caption=caption)
        )
    ]


def _others(around: NearbySettings | None) -> list[Markup]:
    """What a stricter or a looser policy would cost."""
    if around is None:
        return []
    parts: list[Markup] = [tag("h3", "What a stricter or looser policy would cost")]
    if around.others:
        rows = [
            (o.setting, "" if o.loss is None else as_percent(float(o.loss)), _count(o.rows), _count(o.classes),
             o.refused or ("would be possible" if i else "published"))
            for i, o in enumerate(around.others)
        ]  # fmt: skip
        head = ("setting", "information loss", "rows published", "classes", "outcome")
        parts.append(
            html_table(head, rows, numbers=(1, 2, 3), caption="The same search with another setting")
        )
        parts.append(tag("p", ONLY_SEARCHED, class_="note"))
        if loses_less_when_stricter(around.others):
            parts.append(tag("p", LESS_WHEN_STRICTER))
    if around.note:
        parts.append(tag("p", around.note))
    return parts


def _count(n: int) -> str:
    return f"{n:,}" if n else ""


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {_plain(v)}" for k, v in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_plain(v) for v in value[:MOST])
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, str) and re.fullmatch(r"-?\d+/\d+", value):
        return number_text(Fraction(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
