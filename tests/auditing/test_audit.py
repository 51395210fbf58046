"""The audit of a foreign table: what holds, what is believed, what it gives away."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import maskwright as mw
from maskwright.auditing.result import IMPOSSIBLE
from maskwright.cli.commands import main
from maskwright.domain.exact import to_fraction
from maskwright.errors import InputError, PolicyError, UsageError
from maskwright.models import MODELS
from tests.patients import POLICY, patients, write_csv

QI, SENSITIVE = ["zip", "age"], ["disease"]
HEADER = ["zip", "age", "disease"]
ROWS = [
    *[["130**", "20-29", d] for d in ("HIV", "HIV", "HIV")],
    *[["148**", "30-39", d] for d in ("flu", "flu", "HIV", "none")],
]


def shuffled(rows: list[list[str]], seed: int = 1) -> list[list[str]]:
    return random.Random(seed).sample(rows, len(rows))  # noqa: S311


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "published.csv", shuffled(ROWS), HEADER)


def kinds(audit: mw.auditing.Audit, kind: str) -> list[str]:  # type: ignore[name-defined]
    return [f.text for f in audit.findings if f.kind == kind]


def measured(audit: mw.auditing.Audit, model: str) -> list[dict[str, object]]:  # type: ignore[name-defined]
    return [v.parameters for v in audit.measured if v.model == model and v.ok]


def test_the_strongest_settings_by_hand(foreign: Path) -> None:
    audit = mw.audit(foreign, QI, SENSITIVE)
    assert measured(audit, "k-anonymity")[0]["k"] == 3
    assert measured(audit, "distinct-l-diversity")[0]["l"] == 1
    assert to_fraction(measured(audit, "simple-l-diversity")[0]["l"]) == 1
    assert to_fraction(measured(audit, "alpha-k-anonymity")[0]["alpha"]) == 1
    by_model = {v.model: v for v in audit.measured}
    assert by_model["t-closeness"].worst == Fraction(3, 7), "HIV: 1 in the class, 4/7 in the table"
    assert by_model["beta-likeness"].worst == Fraction(3, 4), "1 instead of 4/7"
    assert not by_model["recursive-cl-diversity"].ok, "no c makes a class with one value diverse"
    assert audit.ok, "nothing was asked for"


def test_every_strongest_setting_is_the_strongest(foreign: Path, tmp_path: Path) -> None:
    """What is reported holds, and the next stronger value of its first setting does not."""
    rows = shuffled([[z, a, d] for z in ("1*", "2*") for a in ("<30", "30+") for d in "xxyyyzzw" + z[0]])
    table = write_csv(tmp_path / "t.csv", rows, HEADER)
    audit = mw.audit(table, QI, SENSITIVE)
    stronger = {
        "k-anonymity": ("k", 1), "simple-l-diversity": ("l", "0.01"), "distinct-l-diversity": ("l", 1),
        "entropy-l-diversity": ("l", "0.01"), "recursive-cl-diversity": ("c", "-0.01"),
        "alpha-k-anonymity": ("alpha", "-0.01"), "p-sensitive-k-anonymity": ("p", 1), "t-closeness": ("t", "-0.01"),
        "ck-safety": ("k", 1), "delta-disclosure": ("delta", "-0.01"), "beta-likeness": ("beta", "-0.01"),
        "average-risk": ("max", "-0.001"), "highest-risk": ("max", "-0.001"),
    }  # fmt: skip
    for verdict in audit.measured:
        assert verdict.ok, verdict.model
        key, step = stronger[verdict.model]
        value = to_fraction(verdict.parameters[key]) + to_fraction(step)
        more = {**verdict.parameters, key: int(value) if isinstance(step, int) else str(value)}
        asked = {"model": verdict.model, **{k: v for k, v in more.items() if v is not None}}
        assert not mw.audit(table, QI, SENSITIVE, require=[asked]).ok, asked
    assert {v.model for v in audit.measured} == set(stronger)


def test_every_listed_model_is_registered() -> None:
    assert set(IMPOSSIBLE) <= set(MODELS)


def test_beliefs_are_those_of_the_attacks(foreign: Path) -> None:
    audit = mw.audit(foreign, QI, SENSITIVE)
    worst = {b.attack: b.worst for b in audit.beliefs}
    assert worst["homogeneity"].after == 1
    assert worst["homogeneity"].before == Fraction(4, 7)
    assert worst["linkage"].after == Fraction(1, 3)
    assert [b.worst.upper for b in audit.beliefs] == sorted(
        (b.worst.upper for b in audit.beliefs), reverse=True
    )


def test_bounds_and_requirements(foreign: Path) -> None:
    assert mw.audit(foreign, QI, require=["k-anonymity k=3"]).ok
    assert not mw.audit(foreign, QI, require=["k-anonymity k=4"]).ok
    assert not mw.audit(foreign, QI, SENSITIVE, max_belief="1/2").ok
    assert mw.audit(foreign, QI, max_belief="1/3").ok, "linkage alone"
    found = mw.audit(foreign, QI, SENSITIVE, require=["simple-l-diversity l=1.5 values=[flu, none]"])
    assert found.ok, "flu has half of its class, and HIV is not asked about"
    homogeneity = next(b for b in found.beliefs if b.attack == "homogeneity")
    assert homogeneity.worst.after == Fraction(1, 2)
    assert homogeneity.measures["values_not_flagged"] == 1, "and yet HIV is counted beside it"
    assert homogeneity.measures["worst_share_of_a_value_not_flagged"] == 1


def test_starred_rows_do_not_hide(tmp_path: Path) -> None:
    rows = shuffled([*ROWS, ["*", "*", "flu"], ["*", "*", "HIV"]])
    audit = mw.audit(write_csv(tmp_path / "t.csv", rows, HEADER), QI, SENSITIVE)
    assert measured(audit, "k-anonymity")[0]["k"] == 2, "the starred class is the smallest"
    [text] = kinds(audit, "rows")
    assert "2 of 9 people (22.2%)" in text
    assert "smallest class" in text
    partly = write_csv(tmp_path / "u.csv", shuffled([*ROWS, ["*", "20-29", "flu"]]), HEADER)
    [text] = kinds(mw.audit(partly, QI, SENSITIVE), "rows")
    assert "1 people have * in some" in text


def test_missing_is_a_value_of_its_own(tmp_path: Path) -> None:
    rows = shuffled([*ROWS, ["130**", "", "flu"]])
    audit = mw.audit(write_csv(tmp_path / "t.csv", rows, HEADER), QI, SENSITIVE)
    assert measured(audit, "k-anonymity")[0]["k"] == 1
    assert any("no value in some quasi-identifier" in t for t in kinds(audit, "rows"))


def test_identifiers_and_telling_columns(tmp_path: Path) -> None:
    rows = [[*row, f"p{i}@example.org", "AB"[i % 2]] for i, row in enumerate(ROWS)]
    table = write_csv(tmp_path / "t.csv", shuffled(rows), [*HEADER, "contact", "ward"])
    audit = mw.audit(table, QI, SENSITIVE)
    texts = kinds(audit, "columns")
    assert any("'contact' looks like a direct identifier" in t and "e-mail" in t for t in texts)
    assert any("'ward' was not named" in t and "single out 1 of 7 people (0 without it)" in t for t in texts)
    assert "example.org" not in str(audit), "an identifier is never shown"


def test_formulas(tmp_path: Path) -> None:
    rows = [*ROWS, ["130**", "20-29", '=HYPERLINK("http://x")'], ["130**", "20-29", "-5"]]
    audit = mw.audit(write_csv(tmp_path / "t.csv", shuffled(rows), HEADER), QI, SENSITIVE)
    [text] = kinds(audit, "cells")
    assert "'disease': 1 cells" in text, "a negative number is none"


def test_a_policy_gives_roles_and_requirements(foreign: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "columns: {zip: quasi-identifier, age: quasi-identifier, disease: sensitive}\n"
        "require: [{model: k-anonymity, k: 3}, {model: simple-l-diversity, l: 2}]\n",
        encoding="utf-8",
    )
    audit = mw.audit(foreign, policy=policy)
    assert [(v.model, v.ok) for v in audit.required] == [("k-anonymity", True), ("simple-l-diversity", False)]


def test_a_frame_and_its_index() -> None:
    frame = pd.DataFrame(shuffled(ROWS), columns=HEADER)
    assert not kinds(mw.audit(frame, QI, SENSITIVE), "container")
    frame["disease"] = pd.Categorical(frame["disease"], categories=["HIV", "flu", "none", "cancer"])
    texts = kinds(mw.audit(frame.sample(frac=1, random_state=1), QI, SENSITIVE), "container")
    assert any("index" in t for t in texts)
    assert any("'disease'" in t and "1 values that no row has" in t for t in texts)


def test_people_with_several_rows(tmp_path: Path) -> None:
    rows = [
        [*ROWS[0], "a"],
        [*ROWS[1], "a"],
        [*ROWS[2], "b"],
        *[[*r, f"c{i}"] for i, r in enumerate(ROWS[3:])],
    ]
    table = write_csv(tmp_path / "t.csv", shuffled(rows), [*HEADER, "pseudonym"])
    audit = mw.audit(table, QI, SENSITIVE, unit="pseudonym")
    assert measured(audit, "k-anonymity")[0]["k"] == 2
    rows = [[*row, "ab"[i % 2]] for i, row in enumerate(rows)]
    table = write_csv(tmp_path / "u.csv", shuffled(rows), [*HEADER, "pseudonym", "ward"])
    [text] = [t for t in kinds(mw.audit(table, QI, SENSITIVE, unit="pseudonym"), "columns") if "'ward'" in t]
    shown = {(*row[:2], row[4]) for row in rows}
    alone = sum(len({r[3] for r in rows if (*r[:2], r[4]) == c}) == 1 for c in shown)
    assert f"finds {alone} combinations of values that one person alone has (0 without it)" in text


@pytest.mark.parametrize("with_policy", [False, True])
def test_an_identifier_that_repeats_is_a_question(
    tmp_path: Path, with_policy: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody guesses whether rows that share an identifier are one person's; the policy or the command says so."""
    rows = [[*row, f"P{i // 2}"] for i, row in enumerate(ROWS)]
    table = write_csv(tmp_path / "t.csv", shuffled(rows), [*HEADER, "patient_id"])
    columns = {
        "zip": "quasi-identifier",
        "age": "quasi-identifier",
        "disease": "sensitive",
        "patient_id": "identifier",
    }
    required = [{"model": "k-anonymity", "k": 2}]
    policy = {"columns": columns, "require": required} if with_policy else None
    with pytest.raises(UsageError, match=r"'patient_id'.* --unit patient_id, .* --unit none"):
        mw.audit(table, QI, SENSITIVE, policy=policy)
    people, each = (mw.audit(table, QI, SENSITIVE, policy=policy, unit=u) for u in ("patient_id", "none"))
    assert measured(people, "k-anonymity")[0]["k"] == 2 and measured(each, "k-anonymity")[0]["k"] == 3
    if policy is not None:
        said = [mw.audit(table, policy={**policy, "unit": unit}) for unit in ("patient_id", "none")]
        assert [measured(audit, "k-anonymity")[0]["k"] for audit in said] == [2, 3]
    arguments = ["audit", str(table), "--qi", "zip,age", "--sensitive", "disease"]
    assert main(arguments) == 2 and "--unit patient_id" in capsys.readouterr().err
    assert main([*arguments, "--unit", "patient_id"]) in (0, 1) and main([*arguments, "--unit", "none"]) in (
        0,
        1,
    )


def test_an_identifier_of_the_original_that_repeats_is_a_question(tmp_path: Path) -> None:
    """The release does not have the column any more, and its rows are no people."""
    rows = [[*row, f"P{i // 2}"] for i, row in enumerate(ROWS)]
    original = write_csv(tmp_path / "o.csv", rows, [*HEADER, "patient_id"])
    table = write_csv(tmp_path / "t.csv", shuffled(ROWS), HEADER)
    with pytest.raises(UsageError, match=r"'patient_id' of the original .* write --unit none"):
        mw.audit(table, QI, SENSITIVE, original=original)
    with pytest.raises(InputError, match=r"no column 'patient_id', .* write --unit none"):
        mw.audit(table, QI, SENSITIVE, original=original, unit="patient_id")
    assert mw.audit(table, QI, SENSITIVE, original=original, unit="none").rows == len(ROWS)
    columns = dict.fromkeys(QI, "quasi-identifier") | {"disease": "sensitive", "patient_id": "identifier"}
    audit = mw.audit(table, original=original, policy={"unit": "patient_id", "columns": columns,
                                                        "require": [{"model": "k-anonymity", "k": 2}]})  # fmt: skip
    assert any("every figure counts rows" in f.text for f in audit.findings)


def test_two_tables_joined_by_a_group(tmp_path: Path) -> None:
    """Exact quasi-identifiers single everybody out; the groups hide who has what."""
    people = [["1", str(20 + i), f"130{i:02d}"] for i in range(4)] + [
        ["2", str(30 + i), "14850"] for i in range(3)
    ]
    values = [["1", d] for d in ("flu", "flu", "HIV", "none")] + [["2", d] for d in ("HIV", "HIV", "HIV")]
    qi = write_csv(tmp_path / "qi.csv", shuffled(people), ["group", "age", "zip"])
    secret = write_csv(tmp_path / "s.csv", shuffled(values), ["group", "disease"])
    audit = mw.audit(qi, ["age", "zip"], SENSITIVE, sensitive_table=secret, group="group")
    worst = {b.attack: b.worst for b in audit.beliefs}
    assert worst["linkage"].after == 1
    assert worst["homogeneity"].after == 1
    assert "group 2" in worst["homogeneity"].whom
    assert measured(audit, "k-anonymity")[0]["k"] == 1
    assert measured(audit, "distinct-l-diversity")[0]["l"] == 1
    write_csv(secret, values[:-1], ["group", "disease"])
    with pytest.raises(InputError, match=r"group '2' has 3 rows .* 2 in that of sensitive"):
        mw.audit(qi, ["age", "zip"], SENSITIVE, sensitive_table=secret, group="group")


def test_our_own_bucketized_release(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "p.csv", patients())
    policy = POLICY.replace("optimal-lattice, suppression: 5%", "anatomy, l: 4") + "recoding: bucketize\n"
    (tmp_path / "policy.yaml").write_text(policy, encoding="utf-8")
    mw.anonymize(source, tmp_path / "policy.yaml", tmp_path / "r")
    public = tmp_path / "r" / "public"
    audit = mw.audit(
        public / "quasi-identifiers.csv", ["age", "zip", "sex"], SENSITIVE,
        sensitive_table=public / "sensitive.csv", group="group", require=["simple-l-diversity l=2"],
    )  # fmt: skip
    assert audit.ok
    assert not kinds(audit, "order")


def test_a_population(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "t.csv", [["130**", "20-29"]] * 2 + [["148**", "30+"]] * 3, ["zip", "age"])
    town = [["13001", "20"], ["13002", "25"], ["13003", "29"], *[["14801", "31"]] * 6]
    everybody = write_csv(tmp_path / "town.csv", town, ["zip", "age"])
    audit = mw.audit(table, ["zip", "age"], population=everybody)
    assert measured(audit, "k-map")[0]["k"] == 3
    presence = measured(audit, "delta-presence")
    assert [to_fraction(p["delta_max"]) >= Fraction(2, 3) for p in presence] == [True, True]
    assert Fraction(499, 1000) < to_fraction(presence[1]["delta_min"]) <= Fraction(1, 2)
    [text] = [t for t in kinds(audit, "rows") if "journalist" in t]
    assert "1 in 3" in text
    assert str(Fraction(2 * Fraction(1, 3) + 3 * Fraction(1, 6)) / 5) in text


def test_a_label_that_fits_nobody_of_the_population(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "t.csv", [["Europe"]] * 4 + [["13***"]] * 4, ["zip"])
    town = write_csv(tmp_path / "town.csv", [["13001"]] * 9, ["zip"])
    audit = mw.audit(table, ["zip"], population=town, require=["k-map k=2"])
    assert not audit.ok, "what cannot be compared does not pass"
    assert any("'zip' fit nobody" in note for note in audit.notes)


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        ({"quasi_identifiers": []}, UsageError, "--qi"),
        ({"quasi_identifiers": ["zap"]}, InputError, "did you mean 'zip'"),
        ({"sensitive": ["diseases"]}, InputError, "did you mean 'disease'"),
        ({"sensitive": ["zip"]}, UsageError, "at once"),
        ({"require": ["k-anonymity"]}, PolicyError, "required"),
        ({"require": ["k-anonimity k=3"]}, PolicyError, "did you mean 'k-anonymity'"),
        ({"require": ["m-confidentiality m=2"]}, PolicyError, "raw classes"),
        ({"require": ["k-anonymity 5"]}, UsageError, "k-anonymity k=5"),
        ({"max_belief": "much"}, UsageError, "max_belief"),
        ({"sensitive_table": "x.csv"}, UsageError, "--group"),
        ({"adversary": "nobody"}, UsageError, "neighbour"),
        ({"original": "nothing.csv"}, InputError, "nothing.csv"),
    ],
)
def test_one_clear_error(
    foreign: Path, arguments: dict[str, object], error: type[Exception], word: str
) -> None:
    with pytest.raises(error, match=word.replace("(", r"\(")):
        mw.audit(foreign, **{"quasi_identifiers": QI, "sensitive": SENSITIVE, **arguments})  # type: ignore[arg-type]


def test_json_and_html(foreign: Path) -> None:
    import json

    audit = mw.audit(foreign, QI, SENSITIVE, require=["k-anonymity k=4"])
    found = json.loads(json.dumps(audit.as_dict()))
    assert found["ok"] is False
    assert {"required", "measured", "beliefs", "findings", "notes"} <= found.keys()
    page = audit.html()
    assert "NOT AS ASKED FOR" in page
    assert "130**" in page
    assert "http://" not in page.replace("http-equiv", "")


def test_the_worst_comes_first(foreign: Path) -> None:
    audit = mw.audit(foreign, QI, SENSITIVE, require=["k-anonymity k=4"], max_belief="0.9")
    said = [text for _, text in audit.sentences()]
    assert said[0].startswith("k-anonymity FAILS")
    assert said[1].startswith("above the bound")
    order = ["high", "warning", "note"]
    ranks = [order.index(severity) for severity, _ in audit.sentences()]
    assert ranks == sorted(ranks)


def test_a_large_table_is_measured_like_a_small_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.integers(0, 5, 20000), "b": rng.integers(0, 4, 20000), "s": rng.integers(0, 3, 20000)}
    )
    audit = mw.audit(frame, ["a", "b"], ["s"])
    sizes = frame.groupby(["a", "b"]).size()
    assert measured(audit, "k-anonymity")[0]["k"] == sizes.min()
    assert not kinds(audit, "order"), "random rows are in random order"
    assert any(v.parameters.get("distance") == "ordered" for v in audit.measured if v.model == "t-closeness")
    assert measured(audit, "ke-anonymity")[0]["e"] in ("2", 2)
