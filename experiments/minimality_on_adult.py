"""Every method under every model on Adult: what the minimality attack says of the release, how surely, how soon.

Run as `python -m experiments.minimality_on_adult FOLDER [METHOD ...]`, with the bundled table (30,162 rows, five
quasi-identifiers, occupation sensitive); it leaves `minimality-on-adult.csv` in the folder, a row for each pair. Of a
pair that cannot be published, and of a belief that could not be narrowed down, the row says why. `make docs` makes
the table in the page of the attack.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

import maskwright as mw
from experiments.common import read_csv, write_csv
from experiments.fixed_labels import ADULT, bundled_policy
from experiments.four_risks import METHODS as FOUR
from experiments.four_risks import RARE
from maskwright.attacks.minimality import Minimality
from maskwright.domain.beliefs import Beliefs
from maskwright.errors import MaskwrightError
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release

NAME = "minimality-on-adult.csv"
METHODS: dict[str, dict[str, Any]] = {
    **{name: options for name, options in FOUR.items() if "labels" not in options},
    "mondrian, cut: relaxed": {"cut": "relaxed"}, "mondrian, cut: strict": {"cut": "strict"},
    "mondrian, cut: strict, dimensions: fallback": {"cut": "strict", "dimensions": "fallback"},
    "anatomy, by: ranges": {"by": "ranges"},
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {  # k-anonymity stands for all that look at quasi-identifiers alone
    "k-anonymity": {"k": 5}, "simple-l-diversity": {"l": 3}, "distinct-l-diversity": {"l": 3},
    "entropy-l-diversity": {"l": 3}, "recursive-cl-diversity": {"c": 2, "l": 3},
    "alpha-k-anonymity": {"alpha": "1/3", "k": 5}, "p-sensitive-k-anonymity": {"p": 3, "k": 5},
    "personalised-privacy": {"p": "1/2", "guarding": "guard", "unnamed": "unguarded"}, "t-closeness": {"t": "0.3"},
    "nt-closeness": {"n": 1000, "t": "0.3"}, "ke-anonymity": {"k": 5, "e": 10}, "ck-safety": {"c": "2/3", "k": 1},
    "m-confidentiality": {"m": 3, "sets": [RARE]}, "belief": {"max": "4/5"}, "delta-disclosure": {"delta": 2},
    "beta-likeness": {"beta": 2},
}  # fmt: skip
WITHOUT_K = (
    "anatomy",
    "greedy-grouping",
    "symmetric-grouping",
)  # their buckets are as small as the model allows
SECONDS = {
    "optimal-lattice": 10.0
}  # for drawing worlds; of other methods as many as the attack takes by itself


def policy_of(method: str, model: str, use: str) -> mw.Policy:
    """One model, beside k = 5, as the search or as a gate; numbers where the model or the method asks for them."""
    written = bundled_policy("occupation.yaml")
    column = "age" if model == "ke-anonymity" or method == "anatomy, by: ranges" else "occupation"
    if column == "age":
        written["columns"] |= {"age": "sensitive", "occupation": {"role": "quasi-identifier", "hierarchy": {
            "file": str(ADULT / "hierarchies" / "occupation.csv")}}}  # fmt: skip
    else:
        hierarchy = {"file": str(ADULT / "hierarchies" / "occupation.csv")}
        written["columns"]["occupation"] = {"role": "sensitive", "hierarchy": hierarchy}
    options = METHODS[method]
    if method == "codip":
        written["columns"]["education"] = "sensitive"
        options = options | {"plan": [[column], ["education"]]}
    if method == "mask" and column == "age":
        options = options | {"values": ["17", "18", "19"]}
    if method == "dp-sample":  # it takes one level for each column, chosen in advance
        options = options | {"total_epsilon": 100, "total_delta": "1/100"}  # of all these releases
        for name, entry in written["columns"].items():
            if isinstance(entry, dict) and entry["role"] == "quasi-identifier":
                entry["levels"] = ["level2" if name in ("age", "education") else "exact"]
    written["method"] = {"name": method.partition(",")[0], **options}
    sized = model == "k-anonymity" or method.partition(",")[0] in WITHOUT_K
    size = [] if sized else [{"model": "k-anonymity", "k": 5}]
    asked = {"model": model, **MODELS[model], "use": use}
    if method == "mask" and model in ("simple-l-diversity", "alpha-k-anonymity"):
        asked |= {"values": RARE, "attribute": column}  # it disguises one set of values
    written["require"] = [*size, asked]
    if method.startswith("anatomy"):
        written["recoding"] = "bucketize"
    return mw.Policy.model_validate(written)


def attacked_pair(method: str, model: str, source: Path) -> dict[str, float | str]:
    """What the attack says of one method under one model: searched for where the method can, otherwise as a gate."""
    found: dict[str, float | str] = {
        "method": method, "model": model, "use": "", "label": "", "shown": "", "low": "", "high": "", "seconds": "",
        "why": "",
    }  # fmt: skip
    seed = None if method == "dp-sample" else 1  # whoever guesses the seed knows which rows were kept
    for use in ("search", "gate"):
        try:
            release = publish_release(Job(source, policy_of(method, model, use), seed=seed, attacks=()))
        except MaskwrightError as refused:
            found["why"] = str(refused).splitlines()[0]
            continue
        start = time.process_time()
        try:
            beliefs = mw.attack(release, Minimality(draws=100_000, seconds=SECONDS.get(method, 3.0)))
        except MaskwrightError as unable:
            return found | {"use": use, "why": str(unable)}
        seconds = time.process_time() - start
        assert isinstance(beliefs, Beliefs)  # noqa: S101 - one attack
        shown = mw.attack(release, "homogeneity", adversary="neighbour")
        assert isinstance(shown, Beliefs)  # noqa: S101 - one attack
        worst = beliefs.worst
        low, high = worst.interval or (float(worst.after),) * 2
        why = (
            worst.why
            if high >= 1 > low or beliefs.kind == "not computed"
            else str(beliefs.measures.get("assumption", ""))
        )
        return found | {
            "use": use, "label": beliefs.kind, "shown": round(float(shown.worst.after), 3), "low": round(low, 3),
            "high": round(max(high, float(worst.upper)), 3), "seconds": round(seconds, 1), "why": why,
        }  # fmt: skip
    return found


def prepared(folder: Path) -> Path:
    """Adult with a column of guards: every third person guards the own occupation."""
    guard = "CASE WHEN row_number() OVER () % 3 = 0 THEN occupation END AS guard"
    table = duckdb.sql(f"SELECT *, {guard} FROM read_csv('{ADULT / 'adult.csv'}', all_varchar = true)")  # noqa: S608
    table.write_parquet(str(folder / "adult.parquet"))
    return folder / "adult.parquet"


def main(folder: Path, methods: Sequence[str]) -> None:
    """Write the table; rows of methods that are not named stay as they are."""
    file = folder / NAME
    known: dict[tuple[str, str], Mapping[str, Any]] = {}
    if file.exists():
        known = {(r["method"], r["model"]): r for r in read_csv(file)}
    with TemporaryDirectory() as name:
        source = prepared(Path(name))
        for method in methods:
            for model in MODELS:
                known[method, model] = attacked_pair(method, model, source)
                print(*known[method, model].values(), sep=",", flush=True)
            write_csv(file, [known[a, b] for a in METHODS for b in MODELS if (a, b) in known])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or tuple(METHODS))
