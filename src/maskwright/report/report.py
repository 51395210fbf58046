"""The private report: may it be published, and what is the worst anybody could believe? Everything else is below.

It is made from the release object alone, so that the command line and the workbench show the same page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from maskwright.attacks import ATTACKS
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Beliefs
from maskwright.domain.exact import percent_text, share_text
from maskwright.domain.promise import LABELS, DifferentialPrivacy, Status
from maskwright.domain.release import Release
from maskwright.models import MODELS
from maskwright.report.glossary import GLOSSARY
from maskwright.report.html import (
    Markup,
    bullet_list,
    folded_details,
    html_page,
    html_table,
    joined_markup,
    page_section,
    tag,
)
from maskwright.report.plan_section import plan_section
from maskwright.report.risk_and_usefulness import (
    PERTURBED,
    examples_section,
    perturbed_section,
    risk_section,
    usefulness_section,
)
from maskwright.report.search import NearbySettings, search_section
from maskwright.report.verdict_words import headline_beliefs, not_computed, verdict_words, worst_first
from maskwright.version import __version__

Examples = Mapping[str, Sequence[Mapping[str, str | None]]]
CONTENTS = [
    ("answer", "Answer"), ("asked", "Asked and measured"), ("promised", "Promised"), ("risk", "Risk"),
    (PERTURBED, "Numbers"), ("usefulness", "Usefulness"), ("prepared", "Prepared"),
    ("examples", "Example rows"), ("search", "Search"),
    ("left-out", "Left out"), ("repeat", "To repeat it"),
]  # fmt: skip


def write_report(
    path: Path,
    release: Release,
    examples: Examples,
    source: Mapping[str, Any],
    around: NearbySettings | None = None,
) -> None:
    """Write the report to a file."""
    path.write_text(report_page(release, examples, source, around), encoding="utf-8")


def report_page(
    release: Release, examples: Examples, source: Mapping[str, Any], around: NearbySettings | None = None
) -> str:
    """The page. `source` names and fingerprints the input; `around` is what other settings would give."""
    return html_page(
        "Release report",
        tag("h1", "Release report"),
        tag("p", "Private: this report describes the original data. Do not hand it over.", class_="lead"),
        tag("div", _answer(release), _worst(release), _figures(release), id="answer"),
        _asked(release),
        promise_section(release),
        risk_section(release.beliefs),
        plan_section(release),
        perturbed_section(release.beliefs),
        usefulness_section(release),
        _prepared(release),
        examples_section(examples),
        search_section(release, around),
        _left_out(release),
        _repeat(release, source),
        _words_section(),
        contents=[c for c in CONTENTS if _there(release).get(c[0], True)],
    )  # fmt: skip


def _there(release: Release) -> dict[str, bool]:
    """The sections that not every report has."""
    return {
        "promised": bool(release.promises),
        "prepared": bool(release.repairs),
        PERTURBED: any(PERTURBED in b.measures for b in release.beliefs),
    }


def _answer(release: Release) -> Markup:
    yes = release.ok and not release.seeded
    text = "Yes, this may be published: every requirement holds" if yes else "No, do not publish this"
    lines = [tag("p", v.sentence()) for v in release.verdicts if not v.ok]
    if release.seeded:
        lines.append(
            tag("p", "It was made with a fixed seed, for tests and experiments only: whoever guesses the seed can undo "
                     "the random choices. Make it again without a seed.")
        )  # fmt: skip
    elif yes:
        lines.append(tag("p", "All of it was counted in the files as they are on disk."))
        lines += [tag("p", line) for line in verdict_words(release)]
    box = tag("div", tag("strong", text), *lines, class_="verdict " + ("yes" if yes else "no"))
    if not release.warnings:
        return box
    warned = [tag("strong", "But look at this first"), bullet_list(release.warnings)]
    return joined_markup((box, tag("div", *warned, class_="verdict warn")))


def _worst(release: Release) -> Markup:
    found, missing = worst_belief(release), not_computed(release)
    if found is None:
        return tag("p", f"No belief was computed{missing}.") if missing else Markup("")
    worst, attack = found.beliefs.worst, ATTACKS[found.beliefs.attack]
    what = "chance to find a person's row" if attack.about == "rows" else "belief that a person has a value"
    figure = tag(
        "p", f"{found.beliefs.at_most}{share_text(worst.upper)}", tag("span", what),
        tag("span", f"{found.beliefs.earlier}: {share_text(worst.before)}"), class_="figure",
    )  # fmt: skip
    status = LABELS[found.status] if attack.about == "values" else found.status
    badge = tag("span", status, class_=f"badge {'good' if found.status == 'guaranteed' else 'warn'}")
    between = ""
    if worst.interval is not None:
        between = f"; it lies between {percent_text(worst.interval[0])} and {percent_text(worst.interval[1])}"
    words = tag(
        "div",
        tag("h2", f"The most that anybody can believe about anybody{missing}"),
        tag("p", tag("b", "Whom: "), f"{worst.whom}."),
        tag(
            "p",
            tag("b", "Why: "),
            f"{worst.why}. (Attack: {attack.name}, {found.beliefs.kind}{between}.)",
        ),
        tag("p", badge, f" {found.basis}."),
    )
    return tag("div", figure, words, class_="worst")


def _figures(release: Release) -> Markup:
    parts, first = release.groupings, release.grouping
    left_out = first.summary.dropped_per_person
    facts = [
        *([(str(len(parts)), "tables that cannot be joined")] if len(parts) > 1 else []),
        (
            f"{first.published_rows:,}",
            f"rows published of {first.summary.n_input:,}",
        ),
        *(
            [(f"{left_out:,}", "rows left out at random, of people who have more than are kept of anybody")]
            if left_out
            else []
        ),
        (f"{sum(g.suppressed_rows for g in parts):,}", "rows suppressed"),
        (f"{sum(g.classes.n for g in parts):,}", "classes of people with the same quasi-identifiers"),
        (percent_text(release.metrics["information-loss"]), "information loss (0 % = nothing lost)"),
    ]
    return tag(
        "div",
        *(tag("div", tag("b", n), tag("span", t), class_="card") for n, t in facts),
        class_="cards",
    )


def _asked(release: Release) -> Markup:
    rows = [
        (v.model, " in ".join(filter(None, (v.attribute, v.part))), v.bound,
         v.measured_text(), v.quantity, v.use,
         tag("span", "holds" if v.ok else "fails", class_=f"badge {'good' if v.ok else 'bad'}"))
        for v in release.verdicts
    ]  # fmt: skip
    head = ("requirement", "about", "asked", "worst measured", "quantity", "used as", "verdict")
    beliefs = [
        tag("p", tag("b", f"{v.model}, {LABELS[v.status]}: "), v.why) for v in release.verdicts if v.status
    ]
    meanings = [
        tag("li", tag("b", name), f": {MODELS[name].summary_line()}")
        for name in dict.fromkeys(v.model for v in release.verdicts)
    ]
    return page_section(
        "asked", "What was asked, and what was measured",
        tag("p", "Each requirement, and the worst class that was found when the written files were counted again."),
        html_table(head, rows, caption="Requirements and what was measured on the bytes on disk"),
        *beliefs, tag("ul", *meanings),
        tag("p", "Used as “search”: the method looked for groups that satisfy it. Used as “gate”: publish or refuse; "
                 "the method did not look at it.", class_="note"),
    )  # fmt: skip


def _prepared(release: Release) -> Markup:
    """What was found in messy columns, and what became of it."""
    if not release.repairs:
        return Markup("")
    became = {"": "the plain value", "missing": "missing", "kept": "kept as it was"}
    rows = [(r.column, r.what, f"{r.rows:,}", f"{r.values:,}", became[r.became]) for r in release.repairs]
    return page_section(
        "prepared", "What was prepared",
        tag("p", "Before anything else read these columns, the policy's `prepare` cleaned them. What became of a "
                 "cell follows from its own row and the policy; nothing was guessed from other rows."),
        html_table(("column", "what was found", "rows", "different texts", "became"), rows, numbers=(2, 3),
              caption="What was found in messy columns, and what became of it"),
    )  # fmt: skip


def _words_section() -> Markup:
    """The ten words that a data steward meets."""
    pairs = [part for word, meaning in GLOSSARY.items() for part in (tag("dt", word), tag("dd", meaning))]
    return folded_details("What the words mean", tag("dl", *pairs))


def _left_out(release: Release) -> Markup:
    lines = list(release.notes)
    if (why := release.history.get("why")) and why not in lines:
        lines.append(why)
    if release.dropped_columns:
        lines.append(f"columns that are not published: {', '.join(release.dropped_columns)}")
    return page_section(
        "left-out",
        "What was left out, and other notes",
        bullet_list(lines) if lines else tag("p", "Nothing."),
    )


def _repeat(release: Release, source: Mapping[str, Any]) -> Markup:
    seeded = "a fixed seed, so the same release comes out again"
    same = "from the installation key, the input and the policy: here the same release comes out again"
    fresh = "256 random bits of the operating system, not kept: groups chosen at random and the row order will differ"
    facts = [
        ("version", f"maskwright {__version__}"),
        ("input", source.get("source", "")),
        ("fingerprint of the input", tag("code", source.get("fingerprint", ""))),
        ("random choices", seeded if release.seeded else same if release.repeatable else fresh),
    ]
    if source.get("command"):
        facts.insert(0, ("command", tag("code", source["command"])))
    times = [(name, f"{seconds:.2f} s") for name, seconds in release.timings.items()]
    times.append(("in all, up to this report", f"{sum(release.timings.values()):.2f} s"))
    policy = tag("pre", release.policy.to_yaml(), tabindex=0)
    return page_section(
        "repeat", "To repeat it",
        html_table(("", "what"), facts, caption="How this release was made"),
        html_table(("step", "time"), times, numbers=(1,), caption="How long each step took"),
        folded_details("The policy (also in private/policy.yaml)", policy),
    )  # fmt: skip


@dataclass(frozen=True)
class Headline:
    """The worst belief of all attacks on values and rows; `status` is explained by `basis`."""

    beliefs: Beliefs
    status: Status
    basis: str


def worst_belief(release: Release) -> Headline | None:
    """The worst belief; one in a range of values is none in a value, so that it is no headline."""
    counted = headline_beliefs(release)
    if not counted:
        return None
    worst = max(counted, key=worst_first)
    status, basis = _basis(release, worst)
    return Headline(worst, status, basis)


def _basis(release: Release, found: Beliefs) -> tuple[Status, str]:
    if release.target is None:
        return "measured", "how the release was made is not known here"
    if ATTACKS[found.attack].about == "rows":
        return _of_rows(release.target, found)
    return _of_values(release, found)


def _of_rows(target: Target, found: Beliefs) -> tuple[Status, str]:
    """A class shows how many people may be meant, however it was made."""
    k = max((model.least_size(target.context) for model in target.models), default=1)
    if target.exact:
        return (
            "measured",
            "the quasi-identifiers are published as they are, so people can be found by them",
        )
    if k > 1 and found.worst.upper <= Fraction(1, k):
        return (
            "guaranteed",
            f"at least {k} people in every class were required, and counted in what was written",
        )
    return "measured", "no least number of people in a class was required"


def _of_values(release: Release, found: Beliefs) -> tuple[Status, str]:
    """What the promises of the whole policy say about the belief in a value."""
    for promise in release.promises:
        if promise.status == "measured":
            return "measured", promise.why
    target = release.target
    if target is not None and ATTACKS[found.attack].takes & {"facts", "values"}:
        if target.worlds_alike:
            return "measured", "the worst facts for this release; knowing the method adds nothing to them"
        return "measured", "no bound is proven for somebody who knows the method and facts"
    bounds = [promise.bound for promise in release.promises]
    largest = max((b for b in bounds if b is not None), default=None)
    why = release.promises[0].why if release.promises else ""
    if largest is not None and None not in bounds and found.worst.upper <= largest:
        return "guaranteed", why
    return "measured", f"counted in this release; {why}" if why else "no sensitive column was declared"


MEANS = (
    "Guaranteed: a proof names every ingredient of the policy, so the bound holds for every table, against an "
    "adversary who knows the policy, the program and everybody's quasi-identifiers, and to whom every assignment of "
    "values to people that fits the release is equally likely (random worlds). Differentially private: proven as "
    "well, against anybody, whatever they know or believe. Measured: some ingredient has no proof, and the figures "
    "are what the attacks found on this release."
)


def promise_section(release: Release) -> Markup:
    """The promises with their ingredients, earlier looks at the input, and what was not attacked."""
    label = release.label
    if not label["promises"]:
        return Markup("")
    looks = tag("p", f"{label['earlier_looks'].capitalize()}.")
    missed = label["not_attacked"]
    attacked = [tag("p", tag("b", "Not attacked: "), "" if missed else "nothing that concerns this release.")]
    return page_section(
        "promised", "What is promised about belief",
        tag("p", MEANS),
        *(part for promise in label["promises"] for part in _promise(promise)),
        looks, *attacked, *([bullet_list(missed)] if missed else []),
    )  # fmt: skip


def _promise(promise: Mapping[str, Any]) -> list[Markup]:
    good = promise["status"] == "guaranteed"
    badge = tag("span", promise["label"], class_=f"badge {'good' if good else 'warn'}")
    names = ", ".join(promise["attributes"])
    private = promise.get("differential")
    words = [] if private is None or not good else [tag("p", DifferentialPrivacy.of(private).sentence())]
    ingredients = promise["ingredients"]
    rows = [
        (
            i["name"],
            i["setting"],
            tag(
                "span",
                "covered" if i["covered"] else "not covered",
                class_=f"badge {'good' if i['covered'] else 'warn'}",
            ),
            i["lemma"]["title"] if "lemma" in i else "",
            f"{i['why']}. What would be covered: {i['instead']}." if "instead" in i else f"{i['why']}.",
        )
        for i in ingredients
    ]
    lemmas = {i["lemma"]["title"]: i["lemma"] for i in ingredients if "lemma" in i}
    proofs = [
        tag(
            "li",
            tag("b", title),
            f": {'; '.join(x['conditions'])}. Proof: ",
            tag("code", x["proof"]),
            ".",
        )
        for title, x in lemmas.items()
    ]
    return [
        tag("h3", f"{names}, adversary {promise['adversary']}"),
        tag("p", badge),
        *words,
        html_table(
            ("ingredient", "setting", "", "by", "why"),
            rows,
            caption="Ingredients of the policy, and what covers each",
        ),
        *(
            [folded_details("What the lemmas ask for, and where they are proven", tag("ul", *proofs))]
            if proofs
            else []
        ),
    ]
