"""What people see in a terminal: progress while it runs, and results in a few lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from maskwright.domain.beliefs import NOT_COMPUTED, Beliefs
from maskwright.domain.exact import belief_text, percent_text, share_text
from maskwright.domain.metric import metric_text
from maskwright.domain.release import Release
from maskwright.metrics import METRICS
from maskwright.pipeline.attacking import beliefs_above
from maskwright.report.details import detail_lines
from maskwright.report.verdict_words import verdict_words
from maskwright.runtime.events import Event

if TYPE_CHECKING:
    from maskwright.comparing import Comparison
    from maskwright.suggest import Suggestion
    from maskwright.verification.verify import Verification


class Display:
    """Progress on one line of a terminal; on a file or pipe only with `verbose`, one line per step."""

    def __init__(self, quiet: bool = False, verbose: bool = False) -> None:
        self.live = sys.stderr.isatty() and not quiet and os.environ.get("TERM") != "dumb"
        self.verbose = verbose
        self.quiet = quiet
        self.step, self.begin, self.last = "", time.monotonic(), 0.0

    def show(self, event: Event) -> None:
        """Show an event, if the terminal is still there."""
        with suppress(OSError):  # the terminal may be gone: that is no reason to stop
            self._show(event)

    def _show(self, event: Event) -> None:
        if event.kind == "step":
            self.step, self.begin = event.text, time.monotonic()
            self._line(f"{self.step} …")
            if self.verbose and not self.live:
                print(f"{self.step} …", file=sys.stderr)
        elif event.kind == "progress" and time.monotonic() - self.last > 0.1:
            self.last = time.monotonic()
            share = f" {event.share * 100:.0f} %" if event.share is not None else ""
            text = f" · {event.text}" if event.text else ""
            self._line(f"{self.step} …{share}{text} ({self.last - self.begin:.0f} s)")
        elif event.kind == "note" and not self.quiet:
            self._line("")
            print(f"note: {event.text}", file=sys.stderr)

    def _line(self, text: str) -> None:
        if self.live:
            width = os.get_terminal_size(sys.stderr.fileno()).columns - 1
            print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Display:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._line("")


def release_lines(release: Release) -> Iterable[str]:
    """The verdict, the risk before and after, what was lost, and where everything is."""
    g = release.grouping
    yield "MAY BE PUBLISHED: every requirement holds." if release.ok else "MUST NOT BE PUBLISHED."
    if release.seeded:
        yield "But it was made with a fixed seed: use it for tests and experiments only."
    yield from (f"{'and' if i else 'But'} {line}" for i, line in enumerate(release.warnings))
    yield from verdict_words(release)
    yield ""
    yield from (f"  {verdict.result()}" for verdict in release.verdicts)
    yield ""
    yield from promise_lines(release)
    yield from risk_lines(release)
    yield ""
    for part in release.parts if len(release.groupings) > 1 else ():
        yield f"  {part.name:30}{part.grouping.published_rows:>12,} rows: {', '.join(part.columns)}"
    yield f"  {'rows published':30}{g.published_rows:>12,} of {g.summary.n_input:,}"
    if left_out := g.summary.dropped_per_person:
        share = f"{100 * left_out / g.summary.n_input:.2g} %"
        yield f"  {'left out at random':30}{left_out:>12,} rows ({share}) of people who have more than are kept"
    for name in ("information-loss", "granularity"):
        if name in release.metrics:
            yield f"  {name:30}{percent_text(release.metrics[name]):>12}"
    for name in ("association-loss", "information-exposure"):
        if name in release.metrics:
            yield f"  {name:30}{float(release.metrics[name]):>12.4f}"
    if release.metrics.get("sensitive-distortion"):
        yield f"  {'sensitive-distortion':30}{float(release.metrics['sensitive-distortion']):>12.4f}"
    for name in (name for name in release.metrics if METRICS[name].on_request):
        yield f"  {name:30}{float(release.metrics[name]):>12.4f}"
    if g.search.get("objective", "information-loss") != "information-loss" and "score" in g.search:
        yield f"  {'best ' + str(g.search['objective']):30}{float(Fraction(g.search['score'])):>12.6f}"
    if release.path:
        yield ""
        yield f"  release  {release.path / 'public'}{os.sep}   (hand this over as it is)"
        if (release.path / "private").exists():
            yield f"  report   {release.path / 'private' / 'report.html'}   (keep this)"


def promise_lines(release: Release) -> Iterable[str]:
    """The label: what is promised about belief and why, earlier looks, and what was not attacked."""
    label = release.label
    for promise in label["promises"]:
        names, more = promise["attributes"][:3], len(promise["attributes"]) - 3
        about = ", ".join(names) + (f" and {more} more" if more > 0 else "")
        because = ", because" if promise["status"] == "guaranteed" else ""
        yield f"  promised about {about}, adversary {promise['adversary']}"
        yield f"  {promise['label']}{because}"
        for i in promise["ingredients"]:
            by = f"{i['lemma']['title']}: " if "lemma" in i else ""
            if i["covered"] and promise["status"] == "guaranteed":
                yield f"    {i['name']} ({i['setting']}): {by}{i['why']}"
            elif not i["covered"]:
                instead = f" (covered: {i['instead']})" if "instead" in i else ""
                yield f"    {i['name']} ({i['setting']}) is not covered: {i['why']}{instead}"
    if label["promises"]:
        missed = "; ".join(label["not_attacked"]) or "nothing that concerns it"
        yield f"  {label['earlier_looks']}; not attacked: {missed}"
        yield ""


def risk_lines(release: Release) -> Iterable[str]:
    """Lines on the risk of each attack, before and after."""
    for beliefs in release.beliefs:
        before, after = beliefs.measures.get("before"), beliefs.measures.get("after")
        if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
            yield f"  {beliefs.sentence()}"
            continue
        yield f"  {'risk: ' + beliefs.attack:30}{'before':>12}{'after':>16}"
        yield f"  {'people alone in their class':30}{before['unique']:>12,}{after['unique']:>16,}"
        yield f"  {'smallest class':30}{before['smallest_class']:>12,}{after['smallest_class']:>16,}"
        yield f"  {'highest chance to be found':30}{_chance(before['highest']):>12}{_chance(after['highest']):>16}"
        if (by_rows := beliefs.measures.get("by_rows")) is not None:
            sides = [_chance(by_rows[side]) for side in ("before", "after")]
            yield f"  {'the same by rows':30}{sides[0]:>12}{sides[1]:>16}"
        for level in beliefs.measures.get("known_visits", ()):
            known = f"{level['visits']} visit{'' if level['visits'] in (1, 'every') else 's'}"
            yield f"  {'fewest who match ' + known:30}{'':>12}{level['smallest_match']:>16,}"
            yield f"  {'people found by ' + known:30}{'':>12}{level['people_found']:>16,}"
        averages = [percent_text(Fraction(str(side["average"]))) for side in (before, after)]
        yield f"  {'average chance to be found':30}{averages[0]:>12}{averages[1]:>16}"


def _chance(value: Fraction | str) -> str:
    return share_text(Fraction(str(value)))


def belief_lines(found: Sequence[Beliefs], bound: Fraction | None) -> Iterable[str]:
    """One sentence per attack, the worst first; then the figures of each."""
    if not found:
        yield "No attack applies to this release: nothing is known about it."
    above = beliefs_above(found, bound)
    for beliefs in found:
        mark = "  ABOVE THE BOUND" if beliefs in above else ""
        if beliefs.kind == NOT_COMPUTED:
            yield f"{'NOT COMPUTED':>16}  {beliefs.attack}: {beliefs.worst.why} (counts as 1){mark}"
            continue
        yield f"{belief_text(beliefs.worst.after):>16}  {beliefs.attack} ({beliefs.kind}){mark}"
        yield f"{'':18}{beliefs.worst.whom}: {beliefs.worst.why}"
    for beliefs in (b for b in found if b.kind != NOT_COMPUTED):
        yield ""
        yield f"{beliefs.attack}, adversary {beliefs.adversary}:"
        without, after = belief_text(beliefs.worst.before), belief_text(beliefs.worst.after)
        yield f"  {beliefs.earlier}: {without}; {'after it' if 'release' in beliefs.earlier else 'with it'}: {after}"
        if beliefs.worst.interval is not None:
            low, high = beliefs.worst.interval
            yield f"  it lies between {percent_text(low)} and {percent_text(high)}; decisions use the upper end"
        yield from (f"  {line}" for line in detail_lines(beliefs))


def comparison_lines(found: Comparison, folder: Path) -> Iterable[str]:
    """One line per policy, the Pareto front marked; then those that do not hold, and why."""
    front = {p.name for p in found.front}
    width = max(6, *(len(p.name) for p in found.points))
    risk = "worst belief" if found.risk == "worst" else found.risk
    extra = [m for m in ("query-error",) if m != found.utility and any(m in p.metrics for p in found.points)]
    yield f"  {'':>3} {'policy':{width}} {risk:>14} {found.utility:>18}" + "".join(f" {m:>12}" for m in extra)
    for number, point in enumerate(found.points, start=1):
        if point.status != "holds":
            continue
        mark = "*" if point.name in front else " "
        belief, useful = point.risk(found.risk), point.metrics.get(found.utility)
        numbers = [float(point.metrics[m]) if m in point.metrics else None for m in extra]
        yield (
            f"{mark} {number:>3} {point.name:{width}} {'' if belief is None else share_text(belief):>14} "
            f"{'' if useful is None else metric_text(found.utility, useful):>18}"
            + "".join(f" {'' if n is None else f'{n:.4g}':>12}" for n in numbers)
        )
    for number, point in enumerate(found.points, start=1):
        if point.status != "holds":
            yield f"  {number:>3} {point.name:{width}} {point.status}: {point.reason}"
    told: dict[str, list[str]] = {}
    for number, point in enumerate(found.points, start=1):
        if point.status == "holds" and point.notes:
            told.setdefault("; ".join(point.notes), []).append(str(number))
    yield from ([""] if told else [])
    yield from (f"  {', '.join(numbers)}: {note}" for note, numbers in told.items())
    if found.tables:
        from maskwright.comparing.output import table_rows

        rows = table_rows(found.tables)
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        yield ""
        yield "Tables compared on people who were held out (risk: what a table adds, with 95 %):"
        yield from (
            "  " + "  ".join(f"{c:{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in rows
        )
    yield ""
    yield "* on the Pareto front: no other policy is better in one thing without being worse in the other."
    yield "A policy that is chosen by looking at these outcomes guarantees nothing; its release will say so."
    yield ""
    yield f"  page      {folder / 'index.html'}   (private: keep this)"
    yield f"  policies  {folder / 'policies'}{os.sep}   (each can be run: maskwright anonymize … -p …)"


def verification_lines(result: Verification) -> Iterable[str]:
    """Lines on whether a release was verified."""
    yield "VERIFIED: the release is what it promises." if result.ok else "NOT VERIFIED."
    yield f"  {result.rows:,} rows in {result.classes:,} classes"
    yield from (f"  {verdict.sentence()}" for verdict in result.verdicts)
    yield from (f"  problem: {problem}" for problem in result.problems)
    yield from (f"  note: {note}" for note in result.notes)


def suggestion_lines(suggestion: Suggestion, source: str, output: Path) -> Iterable[str]:
    """What `init` found, as a table, and what to do next."""
    width = max([6, *(len(p.name) for p in suggestion.profiles)])
    yield f"{'column':{width}}  {'role':17} {'distinct':>9} {'missing':>8}  reason"
    for p in suggestion.profiles:
        yield f"{p.name:{width}}  {p.role:17} {p.distinct:>9,} {p.missing:>8,}  {p.reason}"
    yield ""
    yield from suggestion.summary_lines()
    yield ""
    yield f"Read and edit {output}, then: maskwright anonymize {source} -p {output} -o release/"
