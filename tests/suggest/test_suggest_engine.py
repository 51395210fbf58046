"""With the real engine: the bundled Adult table, a German export, and what a suggested policy needs to run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Reading
from maskwright.policy.policy import Policy
from maskwright.suggest import PRESETS, Suggestion, suggest_for_table

ADULT = Path(str(files("maskwright") / "data" / "adult" / "adult.csv"))


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    opened = open_engine()
    yield opened
    opened.close()


def suggested(engine: Engine, source: Any, **options: Any) -> Suggestion:
    return suggest_for_table(engine, engine.open(source, Reading()), **options)


def usable(engine: Engine, source: Any, found: Suggestion, folder: Path) -> None:
    """The text loads from a file as the policy, and every hierarchy knows every value that is not missing."""
    path = folder / "policy.yaml"
    path.write_text(found.text, encoding="utf-8")
    policy = Policy.load(path)
    assert policy.to_dict() == found.policy.to_dict()
    table = engine.open(source, Reading(missing=policy.missing.tokens))
    for name in policy.quasi_identifiers:
        column = policy.columns[name]
        assert column.hierarchy is not None
        values = engine.domain(table, name).values
        hierarchy = column.hierarchy.build(name, values, path.parent, policy.missing.tokens, column.order)
        assert set(hierarchy.values) >= set(values)
        for level in column.levels or ():
            hierarchy.level_of(level)


@pytest.mark.parametrize("preset", [None, *PRESETS])
def test_adult(engine: Engine, tmp_path: Path, preset: str | None) -> None:
    found = suggested(engine, ADULT, preset=preset, name="adult.csv")
    assert found.policy.quasi_identifiers == [
        "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation",
    ]  # fmt: skip
    assert found.policy.sensitive == ["salary-class"]
    profile = next(p for p in found.profiles if p.name == "age")
    assert (profile.distinct, profile.minimum, profile.maximum) == (72, "17", "90")
    assert found.uniqueness.rows == 30162
    assert found.uniqueness.adds_most == "age"
    assert 0 < found.uniqueness.share < 1
    usable(engine, ADULT, found, tmp_path)


def german(folder: Path) -> Path:
    rng = random.Random(7)  # noqa: S311 - test data
    lines = [
        "Patienten-Nr;Nachname;Geschlecht;Geburtsdatum;PLZ;Familienstand;Aufnahme;Größe;Diagnose;Bemerkung"
    ]
    for i in range(400):
        day = f"{rng.randint(1, 28):02}.{rng.randint(1, 12):02}"
        lines.append(
            f"{5000 + i // 2};Müller{i};{rng.choice('mwd')};{day}.{rng.randint(1930, 2010)};0{rng.randint(1000, 1060)};"
            f"{rng.choice(['ledig', 'verheiratet', '?'])};{day}.2023;{rng.randint(150, 199)};"
            f"{rng.choice(['Grippe', 'HIV', 'Asthma', 'Krebs'])};"
            f"Der Patient Müller{i} klagt seit einigen Tagen über Schmerzen im Rücken und im Bein"
        )
    path = folder / "Fälle 2023.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("preset", [None, "hipaa-safe-harbor"])
def test_a_german_export(engine: Engine, tmp_path: Path, preset: str | None) -> None:
    source = german(tmp_path)
    found = suggested(engine, source, preset=preset, name=source.name)
    roles = {p.name: p.role for p in found.profiles}
    assert [name for name, role in roles.items() if role == "identifier"] == [
        "Patienten-Nr",
        "Nachname",
        "Bemerkung",
    ]
    assert found.policy.sensitive == ["Diagnose"]
    assert found.policy.unit == "Patienten-Nr"
    assert found.policy.missing.tokens == ("?",)
    hierarchies = {p.name: p.hierarchy for p in found.profiles}
    assert hierarchies["Geburtsdatum"]["format"] == "%d.%m.%Y"
    assert hierarchies["PLZ"]["mask"] == "right"
    assert hierarchies["Größe"]["intervals"] == ["5", "10", "20"]
    assert "Müller" not in found.text
    assert "'Fälle 2023.csv'" in found.text
    usable(engine, source, found, tmp_path)


def test_a_frame_with_types_of_its_own(engine: Engine, tmp_path: Path) -> None:
    import pandas as pd

    n = 300
    frame = pd.DataFrame(
        {
            "admitted": pd.date_range("2020-01-01", periods=n, freq="36h"),
            "age": [float(20 + i % 60) if i % 50 else None for i in range(n)],
            "weight": [50 + (i % 90) / 2 for i in range(n)],
            "smoker": [i % 3 == 0 for i in range(n)],
            "score": [i % 7 for i in range(n)],
            "key": range(n),
        }
    )
    found = suggested(engine, frame)
    assert {p.name: p.role for p in found.profiles} == {
        "admitted": "quasi-identifier", "age": "quasi-identifier", "weight": "quasi-identifier",
        "smoker": "quasi-identifier", "score": "sensitive", "key": "identifier",
    }  # fmt: skip
    assert {p.name: p.missing for p in found.profiles}["age"] == 6
    usable(engine, frame, found, tmp_path)


def test_many_distinct_values(engine: Engine, tmp_path: Path) -> None:
    """More values than are listed: the counts still are those of the whole column."""
    rows = ["born,sex,code"]
    rows += [f"{1900 + i % 110}-{1 + i % 12:02}-{1 + i % 28:02},{'FM'[i % 2]},{i}" for i in range(13000)]
    source = tmp_path / "many.csv"
    source.write_text("\n".join(rows) + "\n")
    found = suggested(engine, source)
    born, _, code = found.profiles
    assert code.role == "identifier"
    assert (code.distinct, code.unique_share) == (13000, 1)
    assert born.hierarchy == {"dates": ["month", "quarter", "year", "decade"]}
    usable(engine, source, found, tmp_path)
