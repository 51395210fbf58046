"""What a release promises about belief, in the report: the label, and every ingredient of the policy with its proof."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maskwright.domain.release import Release
from maskwright.report.html import Markup, bullet_list, folded_details, html_table, page_section, tag

MEANS = (
    "Guaranteed: a proof names every ingredient of the policy, so that the bound holds for every table, against an "
    "adversary who knows the policy, the program and everybody's quasi-identifiers, and to whom every assignment of "
    "values to people that fits the release is equally likely (random worlds). Measured: some ingredient has no proof, "
    "and the figures are what the attacks found on this release."
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
            f"{i['why']}. Covered would be: {i['instead']}." if "instead" in i else f"{i['why']}.",
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
