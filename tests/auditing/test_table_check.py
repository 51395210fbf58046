"""`maskwright check` and `mw.check`: direct identifiers and k in one answer, exit codes, and no value in any of it."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import jinja2
import pandas as pd
import pytest
import yaml

import maskwright as mw
from maskwright.auditing.table_check import DBT_FILE, GUIDANCE, HIPAA, dbt_macros
from maskwright.cli import main
from maskwright.errors import InputError, PolicyError, UsageError
from maskwright.identifiers.detection import detect_identifier, plain_patterns
from tests.identifiers.corpus import corpus_columns
from tests.support import ADULT, FARS

ROOT = Path(__file__).parents[2]
NAMES = [
    "Anna Meyer",
    "Peter Stone",
    "Maria Rossi",
    "Thomas Brown",
    "Julia Weber",
    "Paul Martin",
    "Eva Novak",
    "Ali Khan",
]


def people(rows: int = 16) -> pd.DataFrame:
    return pd.DataFrame({"sex": ["f", "m"] * (rows // 2), "age": [30, 30, 40, 40] * (rows // 4)})


def test_a_table_that_may_go_out() -> None:
    found = mw.check(people(), ["sex", "age"], k=4)
    assert found.ok
    assert (found.smallest, found.below, found.flagged) == (4, 0, ())
    assert "at least 4 people (k = 4" in str(found)


def test_a_class_that_is_too_small() -> None:
    frame = pd.concat([people(), pd.DataFrame({"sex": ["f"], "age": [99]})])
    found = mw.check(frame, ["sex", "age"], k=3)
    assert not found.ok
    assert (found.smallest, found.below) == (1, 1)
    assert mw.check(frame, ["sex"], k=3).ok
    assert mw.check(frame).ok  # k is not assessed, and that is said
    assert "not assessed" in str(mw.check(frame))


def test_people_are_counted_where_they_have_several_rows() -> None:
    frame = people(8).assign(person=[1, 2, 1, 2, 3, 4, 3, 4])
    assert mw.check(frame, ["sex"], k=3).smallest == 4
    found = mw.check(frame, ["sex"], k=3, unit="person")
    assert (found.smallest, found.ok) == (2, False)


def test_an_identifier_that_repeats_is_a_question_where_people_are_counted() -> None:
    """Of 20,000 visits of 10,510 patients, 17,810 are no people below k."""
    frame = people(8).assign(patient_id=[1, 2, 1, 2, 3, 4, 3, 4])
    with pytest.raises(UsageError, match=r"'patient_id'.* --unit patient_id, .* --unit none"):
        mw.check(frame, ["sex"], k=3)
    assert mw.check(frame).ok  # nobody is counted
    by_unit = {unit: mw.check(frame, ["sex"], k=3, unit=unit).smallest for unit in ("patient_id", "none")}
    assert by_unit == {"patient_id": 2, "none": 4}
    named = {"columns": {"sex": "quasi-identifier", "patient_id": "identifier"}, "unit": "patient_id",
             "require": [{"model": "k-anonymity", "k": 2}]}  # fmt: skip
    assert mw.check(frame, policy=named).smallest == 2


def test_direct_identifiers_fail_and_names_of_columns_do_not() -> None:
    frame = people().assign(contact=NAMES * 2, patient_id=range(16))
    found = mw.check(frame)
    assert [(f.column, f.kind, f.certain) for f in found.flagged] == [
        ("contact", "person-name", True), ("patient_id", "person-number", False),
    ]  # fmt: skip
    assert not found.ok
    assert mw.check(frame, allow=["contact"]).ok


def test_real_tables_raise_no_alarm() -> None:
    for path in (ADULT / "adult.csv", FARS / "fars.parquet"):
        assert not [f for f in mw.check(path).flagged if f.certain]


def test_a_policy_says_what_is_asked() -> None:
    policy = {
        "columns": {
            "sex": "quasi-identifier",
            "contact": {"role": "sensitive", "direct_identifiers": "allow"},
        },
        "require": [{"model": "k-anonymity", "k": 9}],
    }
    found = mw.check(people().assign(contact=NAMES * 2), policy=policy)
    assert (found.k, found.smallest, found.flagged, found.ok) == (9, 8, (), False)


def test_columns_named_twice_people_without_a_name_and_no_people_at_all() -> None:
    frame = people(8).assign(person=[1, 2, 1, 2, 3, 4, 3, None])
    assert mw.check(frame, ["sex", "age", "sex"], k=2).quasi_identifiers == ("sex", "age")
    assert mw.check(frame, ["sex"], k=3, unit="none").smallest == 4
    with pytest.raises(InputError, match="missing in 1 rows"):
        mw.check(frame, ["sex"], unit="person")
    wrong = {"columns": {"sex": "quasi-identifier"}, "require": [{"model": "k-anonymity", "k": "1/2"}]}
    with pytest.raises(PolicyError, match=r"require\[0\]\.k"):
        mw.check(frame, policy=wrong)


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"quasi_identifiers": ["sx"]}, InputError), ({"k": 0}, UsageError), ({"preset": "hippa"}, UsageError)],
)
def test_what_cannot_be_asked(options: dict[str, object], problem: type[Exception]) -> None:
    with pytest.raises(problem):
        mw.check(people(), **options)  # type: ignore[arg-type]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    people().to_csv(good, index=False)
    people().assign(contact=NAMES * 2).to_csv(bad, index=False)
    assert main(["check", str(good), "--qi", "sex,age", "-k", "4"]) == 0
    assert main(["check", str(good), "--qi", "sex,age"]) == 1
    assert main(["check", str(bad)]) == 1
    told = capsys.readouterr()
    assert "names of people" in told.out
    assert not any(part in told.out + told.err for name in NAMES for part in name.split())
    assert main(["check", str(good), str(bad), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert [t["ok"] for t in answer["tables"]] == [True, False]
    assert main(["check", str(tmp_path / "none.csv")]) == 2
    assert main(["check", str(bad), "--allow", "contact"]) == 0


def test_guidance_line_by_line() -> None:
    frame = people().assign(
        zip=["02139", "02138"] * 8, born=["1930-01-02"] * 16, mail=[f"p{i}@example.org" for i in range(16)]
    )
    frame.loc[0, "age"] = 93
    lines = {x.heading[1]: x for x in mw.check(frame, preset="hipaa-safe-harbor").guidance}
    assert [x for x in lines if lines[x].answer == "not met"] == ["B", "C", "F"]
    assert "'age'" in lines["C"].basis
    assert "'born'" in lines["C"].basis
    fine = people().assign(zip=["021", "022"] * 8)
    lines = {x.heading[1]: x for x in mw.check(fine, preset="hipaa-safe-harbor").guidance}
    assert set(HIPAA) <= set(lines)
    assert not [x for x in lines.values() if x.answer == "not met"]
    assert lines["B"].answer == "not assessed"  # the census is not at hand
    assert lines["A"].answer == "met"


def test_the_threshold_of_the_agency() -> None:
    for size, answer in ((11, "not met"), (12, "met")):  # 1/11 is more than 0.09
        frame = pd.DataFrame({"sex": ["f"] * size})
        [line] = [x for x in mw.check(frame, ["sex"], preset="ema-clinical").guidance if "0.09" in x.heading]
        assert line.answer == answer
    assert {x.answer for x in mw.check(people(), preset="gdpr-wp216").guidance} == {"not assessed"}
    assert mw.check(people(), ["sex"], preset="gdpr-wp216").guidance[0].answer == "met"
    assert len(GUIDANCE) == 3


def test_the_hook_and_the_action_call_the_command() -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "maskwright check"
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert any("maskwright check" in step.get("run", "") for step in action["runs"]["steps"])


def test_dbt_tests_are_made_from_the_same_patterns() -> None:
    assert (ROOT / DBT_FILE).read_text(encoding="utf-8") == dbt_macros()


def test_dbt_tests_find_what_the_patterns_find() -> None:
    environment = jinja2.Environment(extensions=["jinja2.ext.do"])  # noqa: S701 - SQL, not HTML
    text = dbt_macros()
    for name in ("no_direct_identifiers(model, column_name, share=0.95)", "k_anonymous(model, columns, k=5)"):
        text = text.replace(f"{{% test {name} %}}", f"{{% macro {name} %}}")
    text = text.replace("{% endtest %}", "{% endmacro %}")
    template = environment.from_string(
        text, globals={"adapter": type("A", (), {"dispatch": staticmethod(lambda name: module(name))})}
    )

    def module(name: str) -> object:
        return getattr(template.module, f"default__{name}")

    database = duckdb.connect()
    for column in corpus_columns(3, copies=1):
        values = pd.DataFrame({"v": column.values})  # noqa: F841 - DuckDB finds it by its name
        query = str(template.module.no_direct_identifiers("values", "v"))  # type: ignore[attr-defined]
        found = {kind for (kind, *_) in database.sql(query).fetchall()}
        expected = detect_identifier(column.values)
        wanted = {expected.kind.key} if expected and expected.kind.key in plain_patterns() else set()
        assert found == wanted, column.source
    frame = people()  # noqa: F841
    query = str(template.module.k_anonymous("frame", ["sex", "age"], 5))  # type: ignore[attr-defined]
    assert len(database.sql(query).fetchall()) == 4
    query = str(template.module.k_anonymous("frame", ["sex"], 5))  # type: ignore[attr-defined]
    assert database.sql(query).fetchall() == []
