"""Personalised privacy: what classes must satisfy, by its definition; and the guarding column stays with its owner."""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.domain.grouping import Grouping
from maskwright.domain.model import Context
from maskwright.domain.references import furnished_classes
from maskwright.domain.settings import build_registered
from maskwright.errors import InputError, MaskwrightError, PolicyError, PolicyNotMet
from maskwright.models import MODELS
from maskwright.pipeline.job import Job
from maskwright.pipeline.session import prepared_run
from maskwright.verification.verify import verify_folder

TREE = {"infection": ["flu", "HIV"], "injury": ["burn", "cut"]}
UNDER = {node: set(leaves) for node, leaves in TREE.items()} | {v: {v} for vs in TREE.values() for v in vs}
DISEASES = ["flu", "HIV", "burn", "cut"]


def hashes_of(manifest: dict[str, Any]) -> str:
    """A manifest without the hashes and sizes of files: rows are in another order, drawn for another table."""
    return json.dumps({key: value for key, value in manifest.items() if key != "files"}, sort_keys=True)


def policy(p: str, method: Any = "optimal-lattice", k: int = 2, **model: Any) -> dict[str, Any]:
    asked = {"model": "personalised-privacy", "p": p, "guarding": "mind", **model}
    return {
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4]}},
            "zip": "quasi-identifier",
            "disease": {"role": "sensitive", "hierarchy": {"tree": TREE}},
        },
        "require": [{"model": "k-anonymity", "k": k}, asked],
        "method": method,
    }


def people(seed: int, n: int = 40) -> pd.DataFrame:
    rng = random.Random(seed)  # noqa: S311
    rows = [
        (str(rng.randint(20, 27)), rng.choice("12"), rng.choice(DISEASES), rng.choice(["", "", *UNDER]))
        for _ in range(n)
    ]
    return pd.DataFrame(rows, columns=["age", "zip", "disease", "mind"])


def grouped(table: pd.DataFrame, asked: dict[str, Any]) -> Grouping:
    """The groups alone, without recoding, attacks and report; gates are asked of them."""
    with prepared_run(Job(table, mw.Policy.load(asked))) as ready:
        grouping = ready.resolved.method.group(ready.task)
        for model in ready.task.gates:
            found = model.check(furnished_classes(grouping, model.needs(), None), ready.task.context)
            if not found.ok:
                raise PolicyNotMet(found.sentence())
        return grouping


def measured(grouping: Grouping, p: str) -> tuple[list[Any], bool]:
    """What the model says of the groups."""
    model = build_registered(
        MODELS, "model", "personalised-privacy", {"p": p, "guarding": "mind", "attribute": "disease"}, "here"
    )
    found = model.check(furnished_classes(grouping, model.needs(), None), Context())
    return list(found.values), found.ok


def shares(table: pd.DataFrame, grouping: Grouping) -> list[Fraction]:
    """By the definition, row by row: in each class the largest share under a node of somebody with its tuples."""
    nodes: dict[Any, set[str]] = defaultdict(set)
    for row in table.itertuples():
        nodes[row.age, row.zip] |= {row.mind} - {""}
    summary = grouping.summary
    names = [
        tuple(h.values[c - 1] for h, c in zip(summary.attributes, codes, strict=True))
        for codes in summary.codes.T.tolist()
    ]
    asked: dict[int, set[str]] = defaultdict(set)
    for t, g in zip(grouping.allocation.tuples.tolist(), grouping.allocation.groups.tolist(), strict=True):
        asked[g] |= nodes[names[t]]
    found = []
    for g in range(grouping.classes.n):
        held = grouping.classes.sensitive["disease"].of_class(g)
        largest = max((sum(n for v, n in held.items() if v in UNDER[node]) for node in asked[g]), default=0)
        found.append(Fraction(largest, int(grouping.classes.sizes[g])))
    return found


@pytest.mark.parametrize("use", ["search", "gate"])
@pytest.mark.parametrize(
    "method", ["optimal-lattice", "samarati", "incognito", "mondrian", "local-recoding", "symmetric-grouping"]
)
def test_by_its_definition(method: str, use: str) -> None:
    searches = method in ("optimal-lattice", "samarati", "incognito")
    for seed in range(3):
        table = people(seed)
        asked = policy("3/4", method, unnamed="unguarded", use=use)
        if use == "search" and not searches:
            with pytest.raises(PolicyError, match="write use: gate for personalised-privacy"):
                grouped(table, asked)
            continue
        free = grouped(table, policy("1", method, unnamed="unguarded", use="gate"))
        assert measured(free, "3/4") == (shares(table, free), max(shares(table, free)) <= Fraction(3, 4))
        try:
            found = grouped(table, asked)
        except PolicyNotMet:
            assert max(shares(table, free)) > Fraction(3, 4)
            assert use == "gate"
        else:
            assert measured(found, "3/4") == (shares(table, found), True)


def test_the_example_of_the_page() -> None:
    table = pd.DataFrame(
        {"age": ["20"] * 4, "zip": ["1"] * 4, "disease": ["flu", "flu", "HIV", "burn"],
         "mind": ["infection", "HIV", "burn", "burn"]}
    )  # fmt: skip
    assert measured(grouped(table, policy("1")), "1/2") == ([Fraction(3, 4)], False)
    table.loc[0, "mind"] = "HIV"
    assert measured(grouped(table, policy("1/2")), "1/2") == ([Fraction(1, 4)], True)


def test_minimality_against_every_world() -> None:
    """Each assignment of the published values, with the nodes where they are: in which is the same published?"""
    ages, mind = ["20", "21", "24", "25"], ["infection", "flu", "burn", "cut"]
    values = ["flu", "HIV", "burn", "cut"]

    def table(dealt: tuple[str, ...]) -> pd.DataFrame:
        return pd.DataFrame({"age": ages, "zip": ["1"] * 4, "disease": list(dealt), "mind": mind})

    def seen(dealt: tuple[str, ...]) -> list[Any]:
        made = grouped(table(dealt), asked)
        labels = [[x.texts[i] for i in x.of_group.tolist()] for x in made.labels]
        held = [
            sorted(map(str, made.classes.sensitive["disease"].of_class(g))) for g in range(made.classes.n)
        ]
        return sorted(zip(*labels, held, strict=True))

    asked = policy("1/2", k=2)
    real = seen(tuple(values))
    worlds = [dealt for dealt in itertools.permutations(values) if seen(dealt) == real]
    believed = max(Fraction(sum(w[i] == v for w in worlds), len(worlds)) for i in range(4) for v in values)
    release = mw.anonymize(table(tuple(values)), asked)
    found = next(b for b in release.beliefs if b.attack == "minimality")
    assert {p.status for p in release.promises} == {"measured"}
    assert len(worlds) < 24
    assert (found.worst.after, found.kind) == (believed, "estimated")
    assert "which nodes guard" in found.measures["assumption"]


def test_nothing_of_the_column_is_public_and_verify_recounts_by_it(tmp_path: Path) -> None:
    """Two tables that differ in it alone: the same is published."""
    table, shown = people(7), []
    for number, mind in enumerate(["burn", "HIV"]):
        asked = policy("1", use="gate", k=8) | {"output": {"format": "csv"}}
        mw.anonymize(table.assign(mind=mind), asked, tmp_path / str(number))
        public = tmp_path / str(number) / "public"
        files = {path.name: path.read_text() for path in public.iterdir() if path.name != "manifest.json"}
        files["data.csv"] = "\n".join(sorted(files["data.csv"].splitlines()))
        manifest = json.loads((public / "manifest.json").read_text())
        shown.append(files | {"manifest": hashes_of(manifest)})
    assert shown[0] == shown[1]
    file = tmp_path / "0" / "private" / "classes.json"
    assert verify_folder(tmp_path / "0").ok
    stored = json.loads(file.read_text())
    stored["guards"]["disease"]["nodes"] = [DISEASES]
    file.write_text(json.dumps(stored))
    changed = verify_folder(tmp_path / "0", recount_only=True)
    assert changed.verdicts[1].worst == 1


@pytest.mark.parametrize(
    ("mind", "model", "message"),
    [
        ("zebra", {}, "not a node of the hierarchy of 'disease'; its nodes are 'HIV', 'burn'"),
        ("", {}, "is empty for some people; name a node for everybody, or write unnamed: unguarded"),
        ("*", {}, "all values of 'disease' under it"),
        ("flu", {"guarding": "minds"}, "is not in the table; did you mean 'mind'"),
        ("flu", {"guarding": "zip"}, "would be published with its role"),
    ],
)
def test_what_is_refused(mind: str, model: dict[str, Any], message: str) -> None:
    table = people(1).assign(mind=mind)
    with pytest.raises(MaskwrightError) as refused:
        grouped(table, policy("1/2", **model))
    assert message in str(refused.value)
    assert "zebra" not in str(refused.value)
    assert isinstance(refused.value, (InputError, PolicyError))


def test_unguarded_people_and_values_without_a_hierarchy() -> None:
    table = people(3).assign(mind="")
    asked = policy("1/2", unnamed="unguarded")
    assert measured(grouped(table, asked), "1/2") == ([0] * grouped(table, asked).classes.n, True)
    asked["columns"]["disease"] = "sensitive"
    found = grouped(table.assign(mind="flu"), asked)
    assert max(shares(table.assign(mind="flu"), found)) <= Fraction(1, 2)
    with pytest.raises(InputError, match="not a node"):
        grouped(table.assign(mind="infection"), asked)


def test_audit_refuses_it(tmp_path: Path) -> None:
    people(1).to_csv(tmp_path / "t.csv", index=False)
    model = {"model": "personalised-privacy", "p": "1/2", "guarding": "mind"}
    with pytest.raises(PolicyError, match="guarding column is never published"):
        mw.audit(tmp_path / "t.csv", quasi_identifiers=["age"], sensitive=["disease"], require=[model])
