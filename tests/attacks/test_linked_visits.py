"""Visits that a pseudonym links: what is found, against a count of the published table; names and keys stay private."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import maskwright as mw
from maskwright.cli.commands import main
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.policy.policy import Policy
from maskwright.verification.verify import verify_folder
from tests.amounts import amount, cases
from tests.hospital import hospital_visits

METHODS = ("optimal-lattice", "mondrian", "local-recoding")


def policy(k: int = 2, method: str = "optimal-lattice", more: tuple[Any, ...] = (), **unit: Any) -> Policy:
    """Visits that stay together."""
    return Policy.load(
        {
            "unit": {"column": "who", "publish": "pseudonym", **unit},
            "columns": {
                "who": "identifier",
                "age": "quasi-identifier",
                "ward": "quasi-identifier",
                "ill": "sensitive",
            },
            "require": [{"model": "k-anonymity", "k": k}, *more],
            "method": method,
        }
    )


def visits(seed: int) -> pd.DataFrame:
    """Fourteen people with up to four visits."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(14), rng.integers(1, 5, 14))
    return pd.DataFrame(
        {
            "who": [f"patient-{p:03d}" for p in who],
            "age": (30 + 10 * (who % 3)),
            "ward": rng.choice(list("AB"), len(who)),
            "ill": rng.choice(["flu", "HIV", "asthma"], len(who), p=[0.6, 0.1, 0.3]),
        }
    )


def counted(table: pd.DataFrame, events: int) -> tuple[int, int, Fraction]:
    """By brute force: the fewest who match, people found, and the largest share of an illness among those who match.

    The columns are who, age, ward and ill.
    """
    shown = {who: list(zip(rows["age"], rows["ward"], strict=True)) for who, rows in table.groupby("who")}
    ill = {who: set(rows["ill"]) for who, rows in table.groupby("who")}
    fewest, found, share = len(shown), set(), Fraction(0)
    for who, mine in shown.items():
        for size in range(1, events + 1):
            for known in {tuple(sorted(chosen)) for chosen in combinations(mine, size)}:
                match = [p for p, theirs in shown.items() if not Counter(known) - Counter(theirs)]
                fewest = min(fewest, len(match))
                if len(match) == 1 and size == events:
                    found.add(who)
                for value in ("flu", "HIV", "asthma"):
                    share = max(share, Fraction(sum(value in ill[p] for p in match), len(match)))
    return fewest, len(found), share


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("events", [1, 2])
def test_what_is_found_is_what_the_published_table_shows(method: str, events: int) -> None:
    made = 0
    for seed in range(amount(2, 4)):
        try:
            release = mw.anonymize(visits(seed), policy(1 + seed % 2, method, events=events))
        except PolicyNotMet:
            continue
        made += 1
        table = release.table
        fewest, found, share = counted(table.astype(str), events)
        attacks = {b.attack: b for b in release.beliefs}
        levels = {level["visits"]: level for level in attacks["linkage"].measures["known_visits"]}
        assert min(levels[v]["smallest_match"] for v in levels if v != "every") == fewest
        if events in levels:
            assert levels[events]["people_found"] == found
        assert attacks["linked-visits"].worst.after == share
        histories = Counter(
            tuple(sorted(zip(rows["age"], rows["ward"], strict=True)))
            for _, rows in table.astype(str).groupby("who")
        )
        assert levels["every"]["people_found"] == sum(n == 1 for n in histories.values())
        assert not {"homogeneity", "skewness"} & attacks.keys()
        assert (attacks["minimality"].kind, attacks["minimality"].worst.after) == ("exact", share)
        assert {p.status for p in release.promises} == {"measured"}
    assert made


def test_a_belief_can_be_required_of_visits_that_stay_together() -> None:
    """Where values decide nothing the method adds nothing; a requirement that counts them is not tried again."""
    who = np.repeat(np.arange(40), 2)
    ill = np.random.default_rng(1).choice(["flu", "HIV", "asthma", "ulcer", "cough"], 80)
    frame = pd.DataFrame({"who": who, "age": 30 + 10 * (who % 2), "ward": "A", "ill": ill})
    release = mw.anonymize(frame, policy(2, more=({"model": "belief", "max": "3/4"},)))
    worst = next(b for b in release.beliefs if b.attack == "linked-visits").worst.after
    assert next(v for v in release.verdicts if v.model == "belief").worst == worst < Fraction(3, 4)
    looked = mw.anonymize(frame, policy(2, more=({"model": "distinct-l-diversity", "l": 2},)))
    links = next(b for b in looked.beliefs if b.attack == "linked-visits").worst.after
    knowing = next(b for b in looked.beliefs if b.attack == "minimality")
    assert (knowing.kind, knowing.worst.after) == ("estimated", links)
    assert "nothing is known about a person but the classes of these visits" in knowing.worst.why


def test_too_few_who_match_are_refused_with_what_would_do() -> None:
    frame = hospital_visits(300, 150).rename(
        columns={"patient_id": "who", "birth_year": "age", "disease": "ill"}
    )
    with pytest.raises(
        PolicyNotMet, match=r"the people who match 3 known visits of somebody are \d, asked at least 5"
    ):
        mw.anonymize(frame, policy(5, events=3))
    alone = mw.anonymize(frame, policy(5, events=3, rows=1))  # the remedy that is named
    assert alone.ok and alone.table["who"].is_unique


@pytest.mark.parametrize("method", cases(METHODS, brief=["mondrian", "local-recoding"]))
def test_several_known_visits_without_a_pseudonym(method: str, tmp_path: Path) -> None:
    """The same people match as with one, and the same is refused; attacks on rows that nothing links go on."""
    made = refused = 0
    for seed in range(amount(3, 6)):
        asked = {"events": 2, "own": ["age"]}
        outcomes = []
        for unit in ({**asked, "publish": "pseudonym"}, {**asked, "publish": None}):
            try:
                outcomes.append(mw.anonymize(visits(seed), policy(1 + seed % 3, method, **unit)))
            except PolicyNotMet as problem:
                assert "keep fewer rows of each person" in str(problem)
                outcomes.append(None)
        if None in outcomes:
            assert outcomes == [None, None]
            refused += 1
            continue
        made += 1
        levels = [
            next(b for b in r.beliefs if b.attack == "linkage").measures["known_visits"] for r in outcomes
        ]
        assert levels[0] == levels[1]
        linked, apart = outcomes
        smallest = {level["visits"]: level["smallest_match"] for level in levels[0]}
        assert counted(linked.table.astype(str), 2)[0] == min(smallest[v] for v in smallest if v != "every")
        assert "who" not in apart.table.columns
        assert next(b for b in apart.beliefs if b.attack == "homogeneity").kind == "exact"
        assert {p.status for p in apart.promises} == {"measured"}
        apart.save(tmp_path / f"{seed}")
        checked = verify_folder(tmp_path / f"{seed}")
        assert checked.ok and any("several known visits" in note for note in checked.notes)
    assert made and refused


def test_names_and_keys_stay_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pseudonyms differ between policies, inputs and installations; no name is in public/."""
    frame, tokens = visits(1), []
    for k in (1, 2):
        release = mw.anonymize(frame, policy(k))
        release.save(tmp_path / str(k))
        tokens.append(set(release.table["who"]))
    again = mw.anonymize(frame, policy(1))
    assert set(again.table["who"]) == tokens[0] and not tokens[0] & tokens[1]
    assert len(tokens[0]) == frame["who"].nunique() and all(len(t) == 16 for t in tokens[0])
    assert (again.table["who"].value_counts().sort_values().tolist()
            == frame["who"].value_counts().sort_values().tolist())  # fmt: skip
    fewer = mw.anonymize(frame[frame["who"] != frame["who"].iloc[0]], policy(1))
    assert not tokens[0] & set(fewer.table["who"]), "another input"
    monkeypatch.setenv("MASKWRIGHT_STATE", str(tmp_path / "another installation"))
    assert not tokens[0] & set(mw.anonymize(frame, policy(1)).table["who"])
    for file in (p for p in (tmp_path / "1" / "public").rglob("*") if p.is_file()):
        assert b"patient-0" not in file.read_bytes(), file
    dictionary = json.loads((tmp_path / "1" / "public" / "data-dictionary.json").read_text())
    assert {"name": "who", "table": "data", "role": "pseudonym", "recoded": True} in dictionary["columns"]
    assert (
        "rows with the same one are one person" in (tmp_path / "1" / "public" / "data-card.html").read_text()
    )


def test_the_key_is_in_one_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.identifiers.pseudonyms import Pseudonyms
    from maskwright.pipeline import publish

    keys = list[bytes]()

    def kept(key: bytes, domain: str, group: str) -> Pseudonyms:
        keys.append(key)
        return Pseudonyms(key, domain, group)

    monkeypatch.setattr(publish, "Pseudonyms", kept)
    mw.anonymize(visits(1), policy(1)).save(tmp_path / "r")
    [key] = set(keys)
    holding = []
    for file in (p for p in (tmp_path / "r").rglob("*") if p.is_file()):
        content = file.read_bytes()
        if key in content or key.hex().encode() in content.lower():
            holding.append(file.relative_to(tmp_path / "r").as_posix())
    assert holding == ["private/pseudonyms.json"]


def test_linked_visits_are_counted_again_from_the_file(tmp_path: Path) -> None:
    """A table whose links were changed keeps its classes, and is found out by what is matched."""
    frame = pd.DataFrame(
        {"who": list("aabbccdd"), "age": [30] * 8, "ward": list("ABABABAB"), "ill": ["flu"] * 8}
    )
    mw.anonymize(frame, policy(4, events=2)).save(tmp_path / "r")
    assert verify_folder(tmp_path / "r").ok
    data = tmp_path / "r" / "public" / "data.parquet"
    table = pd.read_parquet(data)
    one, two = sorted(set(table["who"]))[:2]
    first, second = (
        table[(table["who"] == w) & (table["ward"] == v)].index[0] for w, v in ((one, "B"), (two, "A"))
    )
    table.loc[first, "who"], table.loc[second, "who"] = (
        two,
        one,
    )  # both wards of one are A now, of the other B
    table.to_parquet(data, index=False)
    checked = verify_folder(tmp_path / "r", recount_only=True)
    assert not checked.ok and any("match 2 known visits" in problem for problem in checked.problems)


@pytest.mark.parametrize(
    ("unit", "more", "message"),
    [
        ({"column": "who", "events": 2}, {"recoding": "permute"}, "use recoding: generalise, or events: 1"),
        ({"column": "who", "publish": "pseudonym", "events": 9}, {}, "less than or equal to 5"),
        ({"column": "who", "publish": "yes"}, {}, "unit.publish"),
        ({"column": "who", "publish": "pseudonym"}, {"recoding": "permute"}, "use recoding: generalise"),
    ],
)
def test_what_cannot_be_is_refused(unit: dict[str, Any], more: dict[str, Any], message: str) -> None:
    columns = {"who": "identifier", "age": "quasi-identifier", "ill": "sensitive"}
    with pytest.raises(PolicyError, match=message):
        Policy.load({"unit": unit, "columns": columns, "require": [{"model": "k-anonymity", "k": 2}], **more})


def test_several_tables_would_be_joined(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="a pseudonym would join them"):
        mw.anonymize(visits(1).assign(more="x"), policy(1, "codip"))


def test_a_bound_counts_what_links_tell() -> None:
    """Two of four people have HIV in some visit, one of two in each class of rows."""
    frame = pd.DataFrame(
        {
            "who": list("aabbccdd"), "age": [30] * 8, "ward": list("ABABABAB"),
            "ill": ["HIV", "flu", "flu", "HIV", "flu", "flu", "flu", "flu"],
        }
    )  # fmt: skip
    bound = {"model": "belief", "attribute": "ill", "adversary": "neighbour", "sets": [["HIV"]]}
    release = mw.anonymize(frame, policy(4, more=({**bound, "max": "1/2"},)))
    assert release.verdicts[-1].worst == Fraction(1, 2)
    with pytest.raises(PolicyNotMet, match="4 people match, and 2 of them have ill HIV in some visit"):
        mw.anonymize(frame, policy(4, more=({**bound, "max": "1/3"},)))


def test_attack_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mw.anonymize(visits(2), policy(1, events=2)).save(tmp_path / "r")
    assert main(["attack", str(tmp_path / "r")]) == 0
    told = capsys.readouterr().out
    assert "linked-visits (exact)" in told and "NOT COMPUTED" not in told
    assert main(["attack", str(tmp_path / "r"), "--adversary", "insider", "--facts", "1"]) == 0
    assert "background-knowledge (bounded)" in capsys.readouterr().out
    assert main(["attack", str(tmp_path / "r"), "--knowing", "Ed(age=30)\nEd.ill = flu"]) == 0
    assert "NOT COMPUTED" in capsys.readouterr().out
