"""A simulated hospital: visits of patients, most with one visit, some with many; written by a fixed seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

DISEASES = ("flu", "asthma", "ulcer", "cough", "diabetes", "HIV", "fracture", "migraine")
SHARES = (0.18, 0.16, 0.13, 0.15, 0.14, 0.04, 0.11, 0.09)


def hospital_visits(visits: int = 20_000, patients: int = 10_510) -> pd.DataFrame:
    """So many visits of so many patients: who came, the own columns of the patient, and those of the visit."""
    rng = np.random.default_rng(19)
    eager = rng.exponential(size=patients) ** 1.5
    more = rng.choice(patients, visits - patients, p=eager / eager.sum())
    who = np.concatenate([np.arange(patients), more])
    rng.shuffle(who)
    born, sex = rng.integers(1930, 2020, patients), rng.choice(["f", "m"], patients)
    town, chronic = rng.integers(10, 30, patients), rng.choice(len(DISEASES), patients, p=SHARES)
    disease = np.where(rng.random(visits) < 0.5, chronic[who], rng.choice(len(DISEASES), visits, p=SHARES))
    return pd.DataFrame(
        {
            "patient_id": [f"P{i:05d}" for i in who],
            "birth_year": born[who],
            "sex": sex[who],
            "zip": [f"{t}{d}" for t, d in zip(town[who], rng.integers(0, 5, visits), strict=True)],
            "month": rng.integers(1, 13, visits),
            "ward": rng.choice(["A", "B", "C", "D"], visits),
            "stay": rng.choice(["short", "long", "day"], visits),
            "disease": np.array(DISEASES)[disease],
        }
    )


def write_hospital(path: Path, visits: int, patients: int) -> Path:
    """The table as a CSV file."""
    hospital_visits(visits, patients).to_csv(path, index=False)
    return path
