"""The search: what was looked at, which other minimal choices there are, what other settings would cost.

The search is run again with the next usual k (or l) below and above, on the summary that is at hand, as long as that
stays a small part of the time that the release took. Nothing is published by it, and no random choice of the release
depends on it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.domain.exact import number_text
from maskwright.domain.grouping import Grouping, exact_view
from maskwright.domain.method import Method, Piece, Task
from maskwright.domain.model import Model
from maskwright.domain.references import References
from maskwright.domain.release import Release
from maskwright.errors import Cancelled, MaskwrightError, PolicyNotMet
from maskwright.methods._lattice.minimal_nodes import minimal_nodes
from maskwright.methods._lattice.nodes import MinimalNode
from maskwright.metrics.loss import information_loss
from maskwright.report.bars import as_percent
from maskwright.report.html import Markup, folded_details, html_table, page_section, tag
from maskwright.report.risk_and_usefulness import named_groupings
from maskwright.runtime.events import Progress

USUAL = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
SHARE = 0.2  # of the time spent so far
AT_LEAST_S = 0.5  # what the searches of a small table may take in any case
SMALL_LATTICE = 2_000  # nodes; the minimal ones of a larger lattice take longer than the release


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


@dataclass
class SearchTime:
    """So much time may be spent."""

    seconds: float
    began: float = field(default_factory=time.perf_counter)

    def left(self) -> float:
        """The seconds that are left."""
        return self.seconds - (time.perf_counter() - self.began)

    def over(self) -> bool:
        """Is the time used up?"""
        return self.left() <= 0


def try_nearby_settings(pieces: Sequence[Piece], exact: bool, timings: Mapping[str, float]) -> NearbySettings:
    """Search again with other settings, within a small part of the time the release took."""
    if len(pieces) != 1:
        return NearbySettings(
            note="Not looked at for a release of several tables: run it with another setting to see."
        )
    made, task = pieces[0], pieces[0].task
    clock = SearchTime(max(AT_LEAST_S, SHARE * sum(timings.values())))
    one = timings.get("searching", 0.0)
    settings = nearby_settings(task)
    if not settings:
        return NearbySettings((), _minimal(made, clock), "The search has no k or l that could be varied.")
    if one * len(settings) > clock.seconds:
        seconds = f"{one:.0f} s" if one >= 1.5 else f"{one:.1f} s"
        which = " and ".join(name for name, _ in settings)
        note = f"Not looked at: for {which}, each takes another search of about {seconds}. Run it with that setting"
        return NearbySettings((), None, f"{note} in the policy and another output folder.")
    others = [_describe(made.grouping, replace(task, gates=()), exact, f"{_setting(task)} (this release)")]
    for name, search in settings:
        others.append(_tried(made.method, replace(task, search=search), exact, name, clock))
    return NearbySettings(others, _minimal(made, clock), "")


def nearby_settings(task: Task) -> list[tuple[str, list[Model]]]:
    """The next looser and the next stricter setting: (in words, the models of the search)."""
    name, value = _varied(task)
    if name is None:
        return []
    if name == "k":
        below = [u for u in USUAL if u < value][-1:]
        above = [u for u in USUAL if u > value][:1]
    else:
        below, above = [value - 1] if value > 2 else [], [value + 1]
    return [
        (f"{name} = {u}", [_changed(m, task, name, value, u) for m in task.search]) for u in (*below, *above)
    ]


def _setting(task: Task) -> str:
    name, value = _varied(task)
    return f"{name} = {value}"


def _varied(task: Task) -> tuple[str | None, int]:
    """The parameter that is varied: the k that classes must reach, or else an l."""
    sizes = [m.least_size(task.context) for m in task.search if _whole(m, "k") == m.least_size(task.context)]
    if max(sizes, default=1) > 1:
        return "k", max(sizes)
    values = [v for m in task.search if (v := _whole(m, "l"))]
    return ("l", max(values)) if values else (None, 0)


def _whole(model: Model, name: str) -> int | None:
    value = getattr(model, name, None)
    return int(value) if isinstance(value, (int, Fraction)) and value == int(value) else None


def _changed(model: Model, task: Task, name: str, value: int, to: int) -> Model:
    if _whole(model, name) != value or (name == "k" and model.least_size(task.context) != value):
        return model
    return model.model_copy(update={name: type(getattr(model, name))(to)})


def _within(clock: SearchTime, outer: Progress) -> Progress:
    """Silent, and stopped when the time is over or the user says so."""

    def cancelled() -> bool:
        """Is the time over? Raises where the run itself was cancelled."""
        outer.check()
        return clock.over()

    return Progress(None, cancelled)


def _quietly(task: Task, clock: SearchTime) -> Task:
    # a fixed seed: nothing of this is published, and a report should be repeatable
    return replace(task, progress=_within(clock, task.progress), rng=np.random.default_rng(0))


def _tried(method: Method, task: Task, exact: bool, setting: str, clock: SearchTime) -> OtherSetting:
    quiet = _quietly(task, clock)
    try:
        quiet.progress.check()
        return _describe(method.group(quiet), task, exact, setting)
    except Cancelled:
        task.progress.check()  # the user wants to stop, not the clock
        return OtherSetting(setting, refused="not looked at: the search took too long for a report")
    except PolicyNotMet:
        return OtherSetting(setting, refused="no release satisfies it")
    except MaskwrightError as problem:
        return OtherSetting(setting, refused=str(problem))


def _describe(found: Grouping, task: Task, exact: bool, setting: str) -> OtherSetting:
    shown = exact_view(found) if exact else found
    classes, references = found.published_classes, References.of(found, task.context)
    failing = [m.name for m in task.gates if not m.needs() and not references.check(m, classes).ok]
    refused = f"refused by the gate {' and '.join(failing)}" if failing else ""
    loss = information_loss(shown, task.weights)
    return OtherSetting(setting, loss, found.published_rows, found.classes.n, refused)


def _minimal(made: Piece, clock: SearchTime) -> list[MinimalNode] | None:
    """Every minimal choice of levels, where the lattice is small."""
    nodes, method, task = made.grouping.trace.nodes, made.method, made.task
    if not method.whole_columns or nodes is None or nodes > SMALL_LATTICE or clock.over():
        return None
    known = ("objective", "suppression", "suppress", "suppressed_rows")
    options = {k: v for k, v in method.options().items() if k in known}
    try:
        return minimal_nodes(_quietly(task, clock), **options)
    except Cancelled:
        task.progress.check()
        return None


ELSEWHERE = {
    "levels",
    "alternatives",
    "minimal_nodes",
    "frontier",
    "base",
    "note",
}  # shown in a way of their own
MOST = 50
ONLY_SEARCHED = (
    "Only the search was run again: nothing was written, and no attack was run. Whoever changes a setting because of "
    "these figures chooses it by looking at the data; where the search looks at sensitive values, an adversary may "
    "take that into account."
)


def search_section(release: Release, around: NearbySettings | None) -> Markup:
    """The section on how the method searched, and what other settings would have given."""
    parts: list[Markup] = []
    for name, grouping in named_groupings(release):
        search = grouping.search
        rows = [
            (key.replace("_", " "), _plain(value)) for key, value in search.items() if key not in ELSEWHERE
        ]
        caption = "What the method did" + (f" for {name}" if name else "")
        parts.append(html_table(("", "figure"), rows, caption=caption))
        if note := search.get("note"):
            parts.append(tag("p", note))
        parts += _levels(search)
    method = release.policy.method
    return page_section(
        "search", "The search",
        tag("p", f"Method {method.name}", *(f", {k} {v}" for k, v in method.parameters.items()), "."),
        *parts, *_minimal_choices(around), *_others(around),
    )  # fmt: skip


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
    return f"{value:.6g}" if isinstance(value, float) else str(value)
