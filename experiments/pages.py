"""The pages of docs/papers/, from the records that the experiments left: printed claim, our figure, verdict."""

from __future__ import annotations

import json
from pathlib import Path

from experiments.common import Done

TITLES = {
    "minimality-attack": ("Minimality attack", "Minimality attack [Wong et al. 2007]"),
    "minimizing-minimality": ("Minimizing minimality", "Minimizing minimality [Cormode et al. 2010]"),
    "p-sensitivity": ("p-sensitive k-anonymity", "p-sensitive k-anonymity [Truta, Vinay 2006]"),
    "codip": ("CODIP", "CODIP [multiple sensitive attributes]"),
    "worst-case-knowledge": (
        "Worst-case background knowledge",
        "Worst-case background knowledge [Martin et al. 2007]",
    ),
}
HEAD = """# The five papers, reproduced

One page per paper: what is printed, what we find, and whether the claim holds. Every number on these pages comes from
the CSV files beside them, which `make experiments` writes anew; a test recomputes a sample of them. The claims that are
false as printed, with the smallest counterexample of each, are in [errata](../errata.md).

Where the text of a paper can be read in two ways, each reading is computed and has a verdict of its own. `make
experiments-quick` computes fewer points and finds the same verdicts, or the page says why not; no verdict is fixed in
the code (`tests/experiments/`).

"""


def records(folder: Path) -> list[Done]:
    found = [Done(**json.loads(p.read_text(encoding="utf-8"))) for p in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda d: (d.paper, d.name))


def write_pages(folder: Path) -> None:
    """One page per paper, and the index."""
    done = records(folder)
    lines = [HEAD, "| paper | figure or table | printed | verdict |\n| --- | --- | --- | --- |\n"]
    for page, (paper, title) in TITLES.items():
        own = [d for d in done if d.paper == paper]
        if not own:
            continue
        (folder / f"{page}.md").write_text(_page(title, own), encoding="utf-8")
        lines += [f"| [{paper}]({page}.md) | {d.where} | {d.claim} | **{d.verdict}** |\n" for d in own]
    (folder / "README.md").write_text("".join(lines), encoding="utf-8")


def _page(title: str, own: list[Done]) -> str:
    parts = [f"# {title}\n"]
    for d in own:
        parts.append(
            f"\n## {d.where}\n\n**Printed.** {d.claim}\n\n**Found.** {d.found}\n\n**Verdict: {d.verdict}.**\n"
        )
        parts += [f"\n![{d.where}: {d.claim}]({name})\n" for name in d.pictures]
        if d.differs:
            parts.append(f"\n*What differs.* {d.differs}\n")
        if d.quick:
            parts.append(f"\n*The quick version* may find another verdict: {d.quick}\n")
        parts.append(f"\nNumbers: [{d.name}.csv]({d.name}.csv). Computed in {d.seconds:.0f} s.\n")
    return "".join(parts)
