"""The first useful release of large tables: in time, without an edit, and hardly worse than the best of the methods."""

from __future__ import annotations

import random
import resource
from collections.abc import Callable
from datetime import date, timedelta
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

import maskwright as mw
from tests.prepare.messy import messy_table
from tests.suggest.test_suggest_tried import COMPARED, WITHIN

pytestmark = pytest.mark.long
ROWS = 20_000
MOST_S = 30.0  # of processor time for `init` and `anonymize` together, on 20,000 rows of 15 columns


@pytest.fixture(autouse=True)
def _own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_STATE", str(tmp_path / "state"))


def processor_s() -> float:
    """Seconds of processor time of this process and of those that it started, on all cores."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def clinic() -> pa.Table:
    """One row per person, nothing messy; 5,194 different amounts in the last of fifteen columns."""
    draw = random.Random(7)  # noqa: S311
    ages = [min(95, max(18, int(draw.gauss(52, 18)))) for _ in range(ROWS)]
    days = [date(2023, 1, 1) + timedelta(draw.randrange(365)) for _ in ages]
    diseases = ["I10", "E11.9", "J45.0", "F32.1", "C50.9", "K21.0", "M54.5"]
    return pa.table(
        {
            "patient_id": [f"P{i:06d}" for i in range(ROWS)],
            "age": ages,
            "sex": [draw.choice("FM") for _ in ages],
            "zip": [f"{draw.choice((21, 22, 23))}{draw.randrange(40):03}" for _ in ages],
            "ethnicity": draw.choices(["White", "Black", "Asian", "Hispanic", "Other"], [60, 18, 8, 12, 2], k=ROWS),
            "marital_status": ["single" if a < 30 else draw.choice(["married", "divorced", "widowed"]) for a in ages],
            "education": draw.choices(["school", "college", "bachelor", "master"], [40, 30, 20, 10], k=ROWS),
            "occupation": [draw.choice(["none", "clerk", "nurse", "driver"]) if a < 65 else "retired" for a in ages],
            "admitted": [d.isoformat() for d in days],
            "discharged": [(d + timedelta(draw.randrange(14))).isoformat() for d in days],
            "insurance": draw.choices(["public", "private", "none"], [60, 30, 10], k=ROWS),
            "smoker": [draw.choice(["yes", "no"]) for _ in ages],
            "height_cm": [int(draw.gauss(170, 10)) for _ in ages],
            "diagnosis": [draw.choice(diseases) for _ in ages],
            "charges": [round(draw.lognormvariate(7, 1)) for _ in ages],
        }
    )  # fmt: skip


def hospital_export() -> pa.Table:
    """Visits: nine columns of which most are messy, and others."""
    made, draw = messy_table(ROWS, seed=5), random.Random(5)  # noqa: S311
    columns = {name: [row[name] for row in made.cells] for name in made.cells[0]}
    return pa.table(
        {
            "patient_id": [f"P{draw.randrange(ROWS // 2):06d}" for _ in range(ROWS)],
            **columns,
            "ward": [draw.choice(["north", "south", "east", "west"]) for _ in range(ROWS)],
            "insurance": draw.choices(["public", "private", "none"], [60, 30, 10], k=ROWS),
            "emergency": [draw.choice(["yes", "no"]) for _ in range(ROWS)],
            "nights": [draw.randrange(20) for _ in range(ROWS)],
            "ethnicity": draw.choices(["White", "Black", "Asian", "Other"], [62, 20, 12, 6], k=ROWS),
        }
    )


def adult() -> pa.Table:
    """The bundled Adult table, all 30,162 rows."""
    return pyarrow.csv.read_csv(str(files("maskwright").joinpath("data", "adult", "adult.csv")))


@pytest.mark.parametrize("made", [clinic, hospital_export, adult])
def test_the_first_release_is_useful_and_in_time(made: Callable[[], pa.Table], tmp_path: Path) -> None:
    path, policy, table = tmp_path / "table.csv", tmp_path / "policy.yaml", made()
    assert (table.num_columns, table.num_rows) == (15, ROWS) or made is adult
    pyarrow.csv.write_csv(table, path)

    began = processor_s()
    found = mw.suggest_policy(path)
    policy.write_text(found.text, encoding="utf-8")
    release = mw.anonymize(path, policy)
    seconds = processor_s() - began

    assert release.ok
    words = " ".join(found.words)
    assert all(f"! {line}" in words for line in release.great_losses), "what is lost was said before"
    print(f"{made.__name__}: {seconds:.0f} s, loss {float(release.metrics['information-loss']):.2f}")
    assert release.metrics["information-loss"] < 0.5
    assert seconds < MOST_S


def test_the_first_release_of_all_of_adult_is_near_the_best(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(adult(), path)
    policy = mw.suggest_policy(path).policy
    loss = float(mw.anonymize(path, policy).metrics["information-loss"])
    best = mw.compare(path, policy, grid={"method": COMPARED}, metrics=(), seed=None, cache=False)
    losses = [float(p.metrics["information-loss"]) for p in best.points if p.status == "holds"]
    assert loss <= WITHIN * min(losses)
