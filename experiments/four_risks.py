"""One table, every method: risk under random worlds, learned, composed and downcoded, against what is kept.

Run as `python -m experiments.four_risks FOLDER [METHOD ...]`, with the bundled Adult table (30,162 rows, five
quasi-identifiers, occupation sensitive, no value above 1/3 of a class); it leaves `four-risks.csv` and `.svg` in the
folder. Of a figure that no attack computes the CSV says why.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import maskwright as mw
from experiments.common import read_csv, write_csv
from experiments.fixed_labels import ADULT, bundled_policy
from maskwright.domain.beliefs import Beliefs
from maskwright.errors import MaskwrightError
from maskwright.metrics.queries import Workload, query_errors
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from maskwright.report.charts import Chart, Series

SUPPRESSION = {"suppression": "2%"}
RARE = ["Armed-Forces", "Priv-house-serv", "Protective-serv"]
METHODS: dict[str, dict[str, Any]] = {
    "optimal-lattice": SUPPRESSION, "samarati": SUPPRESSION, "incognito": SUPPRESSION, "local-recoding": SUPPRESSION,
    "local-recoding, labels: fixed": SUPPRESSION | {"labels": "fixed"}, "local-suppression": {}, "alpha-k-local": {},
    "mondrian": {}, "mondrian, labels: fixed": {"labels": "fixed"}, "greedy-grouping": {}, "symmetric-grouping": {},
    "anatomy": {"l": 3}, "mask": {"base": "mondrian", "l": 3, "values": RARE},
    "codip": {"base": "mondrian", "plan": [["occupation"]]}, "dp-sample": {"epsilon": 1},
}  # fmt: skip
FIGURES = ("random worlds", "learned", "composed", "downcoded")


def policy_of(name: str) -> mw.Policy:
    """3-diversity of every occupation by one method; of a set of rare ones for mask, which disguises one set."""
    written = bundled_policy("occupation.yaml")
    wanted: dict[str, Any] = {"model": "simple-l-diversity", "l": 3}
    written["require"] = [wanted | {"values": RARE, "attribute": "occupation"} if name == "mask" else wanted]
    if name in ("mask", "dp-sample"):  # they ask for a size, too
        written["require"].append({"model": "k-anonymity", "k": 3})
    written["method"] = {"name": name.partition(",")[0], **METHODS[name]}
    if name == "anatomy":
        written["recoding"] = "bucketize"
    return mw.Policy.model_validate(written)


def four_risks(name: str) -> dict[str, float | str]:
    """Mean belief in the truth by random worlds, by who learns, and by who has two releases (drawn with two keys); the
    largest belief in a finer value that a label alone gives; the share of detail that is kept; the error of queries."""
    found: dict[str, float | str] = {
        "method": name,
        **dict.fromkeys((*FIGURES, "kept", "query error", "why not"), ""),
    }
    try:
        policy = policy_of(name)
        made = [publish_release(Job(ADULT / "adult.csv", policy, seed=seed, attacks=())) for seed in (1, 2)]
    except MaskwrightError as refused:
        return found | {"why not": str(refused)}
    grouping, bare = made[0].grouping, policy.recoding.name != "generalise"
    learned = attacked(found, lambda: mw.attack(made[0], "learned", adversary="learns"))
    if learned is not None:
        mean = learned.measures["attributes"]["occupation"]["mean_belief_in_the_truth"]
        found |= {"random worlds": mean["random worlds"], "learned": mean["learned"]}
    composed = attacked(found, lambda: mw.attack(made, "intersection"))
    if composed is not None:
        found["composed"] = composed.measures["expected_belief"]["by everybody's"]
    found["downcoded"] = 0.0  # labels that do not follow the rows tell nothing
    if grouping.labelling not in ("levels", "fixed") and not bare:
        finer = attacked(found, lambda: mw.attack(made[0], "downcoding"))
        found["downcoded"] = "" if finer is None else float(finer.worst.after)
    found["kept"] = 1 - float(made[0].metrics["information-loss"])
    found["query error"] = query_errors(grouping, Workload(), exact=bare).mean
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in found.items()}


def attacked(found: dict[str, float | str], attack: Callable[[], Any]) -> Beliefs | None:
    """What an attack finds; None where it cannot run, and the reason beside the figures."""
    try:
        beliefs = attack()
    except MaskwrightError as refused:
        found["why not"] = f"{found['why not']} {refused}".strip()
        return None
    assert isinstance(beliefs, Beliefs)  # noqa: S101 - one attack
    return beliefs


def four_risks_chart(rows: Sequence[Mapping[str, Any]]) -> Chart:
    """The risks of every method, beside the detail that it keeps: from the least to the most of it."""
    drawn = sorted((r for r in rows if r["kept"] != ""), key=lambda r: float(r["kept"]))
    series = [
        Series(
            figure,
            [(float(i), float(r[figure])) for i, r in enumerate(drawn) if r[figure] != ""],
            texts=[f"{r['method']}: {r[figure]}" for r in drawn if r[figure] != ""],
            join=figure == "kept",
        )
        for figure in (*FIGURES, "kept")
    ]
    title = f"Four risks of the releases of {len(drawn)} methods, and the detail that each keeps"
    names = [letter_of(rows, r) for r in drawn]
    return Chart(
        title, "method (a letter of the table)", "risk; detail kept", series, x_names=names, span=(0.0, 1.0)
    )


def letter_of(rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> str:
    """A for the first method of the table, and so on."""
    return chr(ord("A") + [r["method"] for r in rows].index(row["method"]))


def main(folder: Path, names: Sequence[str]) -> None:
    """Write the table and the picture; the rows of methods that are not named stay as they are."""
    file = folder / "four-risks.csv"
    known: dict[str, Mapping[str, Any]] = {r["method"]: r for r in read_csv(file)} if file.exists() else {}
    for name in names:
        known[name] = four_risks(name)
        print(*known[name].values(), sep=",", flush=True)
    rows = [known[name] for name in METHODS if name in known]
    write_csv(file, rows)
    (folder / "four-risks.svg").write_text(four_risks_chart(rows).file(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or tuple(METHODS))
