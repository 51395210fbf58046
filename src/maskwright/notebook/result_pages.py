"""Results as HTML for the cell of a notebook: self-contained, without scripts, in light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import singledispatch

from maskwright.auditing.result import Audit
from maskwright.comparing import Comparison
from maskwright.comparing.output import comparison_chart
from maskwright.domain.beliefs import NOT_COMPUTED, Beliefs
from maskwright.domain.exact import number_text, share_text
from maskwright.domain.release import Release
from maskwright.metrics import METRICS
from maskwright.policy.draft import PolicyDraft
from maskwright.policy.policy import Policy
from maskwright.report import charts
from maskwright.report.details import detail_lines
from maskwright.report.html import Markup, bullet_list, folded_details, html_table, joined_markup, tag
from maskwright.report.risk_and_usefulness import column_pictures
from maskwright.report.verdict_words import verdict_words
from maskwright.suggest import Suggestion

STRESSED = re.compile(r"\*(\w+)\*")  # a single star is a label
LIGHT = f"{charts.LIGHT} --panel: #f4f6f9; --good: #176b3a; --bad: #a3231d; --warn: #7a4b00;"
DARK = f"{charts.DARK} --panel: #1d232d; --good: #7ddba2; --bad: #ff9c94; --warn: #ffcf87;"
# a notebook has a theme of its own, which need not be that of the system: JupyterLab and VS Code say which it is
THEMES = (
    '[data-jp-theme-light="false"] .maskwright, .vscode-dark .maskwright',
    '[data-jp-theme-light="true"] .maskwright, .vscode-light .maskwright',
)
# `&&` counts twice: JupyterLab aligns the cells of every table to the right, with a selector of two classes
RULES = """
font: 14px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 60rem;
& > strong { font-size: 1.15em; } & p { margin: .35em 0; max-width: 46rem; }
& ul { margin: .35em 0; padding-left: 1.2em; }
& .yes { color: var(--good); } & .no { color: var(--bad); } & .warn { color: var(--warn); }
& .scroll { overflow-x: auto; margin: .6em 0; } & table { border-collapse: collapse; font-size: .93em; color: inherit; }
& caption { text-align: left; font-weight: 600; color: inherit; padding: .2em 0; }
&& th, && td { text-align: left; padding: .25em .7em; vertical-align: top; color: inherit;
  border-bottom: 1px solid var(--line); background: transparent; } && thead th { color: var(--soft); }
&& .number { text-align: right; font-variant-numeric: tabular-nums; }
& summary { cursor: pointer; color: var(--soft); }
& pre { background: var(--panel); color: inherit; padding: .8em; overflow-x: auto; }
& .pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 0 1.4em; }
& figure { margin: .4em 0; }
& figcaption, & h3 span { color: var(--soft); font-weight: 400; } & h3 { font-size: 1em; margin: .8em 0 .2em; }
& svg { max-width: 100%; height: auto; }
"""


def _style() -> Markup:
    dark, light = THEMES
    nested = "\n".join(f"& {rule}" for rule in charts.RULES)
    return Markup(
        f"<style>.maskwright {{ {LIGHT} {RULES} {nested} }}\n"
        f"@media (prefers-color-scheme: dark) {{ .maskwright {{ {DARK} }} }}\n"
        f"{dark} {{ {DARK} }}\n{light} {{ {LIGHT} }}</style>"
    )


def notebook_page(result: object) -> str:
    """The result as HTML for a cell."""
    return str(joined_markup((_style(), tag("div", *_parts(result), class_="maskwright"))))


@singledispatch
def _parts(result: object) -> list[Markup]:
    return [tag("code", repr(result))]


@_parts.register
def _release(release: Release) -> list[Markup]:
    good = release.ok and not release.seeded
    title = "Every requirement holds" if release.ok else "A requirement does not hold"
    if release.seeded:
        title += "; made with a fixed seed, for tests and experiments only"
    warned = [tag("div", bullet_list(release.warnings), class_="warn")] if release.warnings else []
    asked = [
        (v.model, " in ".join(filter(None, (v.attribute, v.part))), v.bound,
         "" if v.worst is None else number_text(v.worst), _badge(v.ok))
        for v in release.verdicts
    ]  # fmt: skip
    metrics = [(name, number_text(value), METRICS[name].meaning) for name, value in release.metrics.items()]
    pictures = column_pictures(release)
    return [
        tag("strong", title, class_="yes" if good else "no"),
        *warned,
        *(tag("p", line) for line in verdict_words(release)),
        html_table(("requirement", "about", "asked", "worst", ""), asked, caption="Asked and measured"),
        _beliefs_table(release.beliefs),
        folded_details(f"Columns before and after ({len(pictures)})", *pictures),
        folded_details("Metrics", html_table(("metric", "value", "scale"), metrics, numbers=(1,))),
        folded_details("Policy", tag("pre", release.policy.to_yaml())),
    ]


def _badge(ok: bool) -> Markup:
    return tag("span", "holds" if ok else "fails", class_="yes" if ok else "no")


def _beliefs_table(beliefs: Iterable[Beliefs]) -> Markup:
    rows = [
        (b.attack, "1 (NOT COMPUTED)" if b.kind == NOT_COMPUTED else share_text(b.worst.upper),
         share_text(b.worst.before),
         b.kind, b.worst.whom if b.kind != NOT_COMPUTED else b.worst.why)
        for b in beliefs
    ]  # fmt: skip
    head = ("attack", "worst belief", "before", "kind", "whom")
    return (
        html_table(head, rows, caption="What anybody could believe")
        if rows
        else tag("p", "Nothing was attacked.")
    )


@_parts.register
def _attack(beliefs: Beliefs) -> list[Markup]:
    more = detail_lines(beliefs)
    return [
        tag("strong", f"{beliefs.attack}, adversary {beliefs.adversary}"),
        tag("p", beliefs.sentence()),
        *([folded_details("Figures", bullet_list(more))] if more else []),
    ]


@_parts.register
def _audit(audit: Audit) -> list[Markup]:
    worst = [(severity, text) for severity, text in audit.sentences()]
    return [
        tag("strong", audit.headline(), class_="no" if audit.alarming else "yes"),
        html_table(("", "what"), worst, caption="The worst first"),
        folded_details("Everything", tag("pre", "\n".join(audit.lines()))),
    ]


@_parts.register
def _comparison(comparison: Comparison) -> list[Markup]:
    front = {p.name for p in comparison.front}
    rows = [
        (number, p.name, p.status, "" if p.worst is None else share_text(p.worst),
         number_text(p.metrics[comparison.utility]) if comparison.utility in p.metrics else "",
         "not beaten" if p.name in front else p.reason)
        for number, p in enumerate(comparison.points, start=1)
    ]  # fmt: skip
    head = ("", "policy", "status", "worst belief", comparison.utility, "")
    return [
        tag("strong", comparison.headline()),
        *([tag("figure", comparison_chart(comparison).svg())] if comparison.shown else []),
        html_table(head, rows, numbers=(0, 3, 4)),
    ]


@_parts.register
def _suggestion(suggestion: Suggestion) -> list[Markup]:
    rows = [(p.name, p.role, p.reason) for p in suggestion.profiles]
    return [
        tag("strong", suggestion.headline()),
        bullet_list([STRESSED.sub(r"\1", line.removeprefix("- ")) for line in suggestion.summary_lines()]),
        html_table(("column", "role", "why"), rows, caption="Guessed roles"),
        folded_details("The policy, with comments", tag("pre", suggestion.text)),
    ]


@_parts.register(Policy)
@_parts.register(PolicyDraft)
def _policy(policy: Policy | PolicyDraft) -> list[Markup]:
    return [tag("strong", policy.headline()), tag("pre", policy.to_yaml())]
