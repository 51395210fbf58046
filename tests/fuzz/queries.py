"""Bad workloads of COUNT queries, answered by releases of every recoding."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import yaml

import maskwright as mw
from maskwright.metrics.queries import MOST, Workload, query_errors
from tests.fuzz.harness import Target
from tests.fuzz.mangle import value
from tests.patients import POLICY, patients, write_csv

RECODINGS = ["generalise", "bucketize", "permute"]
WHOLE: list[Any] = [1, 2, 3, 8, 30, 600]
ODD: list[Any] = [
    0, -1, 2.0, 1.5, True, None, "5", "", [], {}, b"1", float("nan"), float("inf"), -0.0, 2**63, 10**5000, -(10**5000),
    MOST + 1, Fraction(1, 3), Decimal("0.1"), 1j, np.int64(4), np.float32(0.1), np.array([1]), "\ud800",
]  # fmt: skip
SHARES: list[Any] = [0.05, 0.4, 1, 1.0, 5e-324, 1e-9, 0.999999, Fraction(1, 3), np.float32(0.1)]


class Workloads(Target):
    """Workloads with odd settings; what is answered are as many numbers as queries."""

    name = "workload"

    def begin(self) -> None:
        table = write_csv(self.folder / "patients.csv", patients(24))
        asked = yaml.safe_load(POLICY) | {
            "require": [{"model": "k-anonymity", "k": 3}],
            "method": {"name": "mondrian"},
        }
        self.releases = [mw.anonymize(table, asked | {"recoding": {"name": name}}) for name in RECODINGS]
        columns = {
            **asked["columns"],
            "disease": {"role": "insensitive", "near_unique": "allow"},
            "ward": {"role": "insensitive", "near_unique": "allow"},
        }
        self.releases.append(mw.anonymize(table, asked | {"columns": columns}))  # nothing sensitive

    def make(self, rng: random.Random) -> tuple[int, bool, dict[str, Any]]:
        settings: dict[str, Any] = {"queries": rng.choice(WHOLE)}
        usual = {
            "dimension": rng.choice(WHOLE), "selectivity": rng.choice(SHARES),
            "sizes": rng.choice(["expected", "uniform"]),
            "attribute": rng.choice(["disease", None]), "seed": rng.choice([0, 1, 2**31, 2**64, 10**30]),
        }  # fmt: skip
        settings |= {name: usual[name] for name in usual if rng.random() < 0.6}
        for _ in range(rng.choice((0, 1, 1, 2))):
            odd = rng.choice(ODD) if rng.random() < 0.7 else value(rng)
            settings[rng.choice(["queries", *usual])] = odd
        return rng.randrange(4), rng.random() < 0.5, settings

    def feed(self, given: tuple[int, bool, dict[str, Any]]) -> None:
        which, exact, settings = given
        workload = Workload(**settings)
        found = query_errors(self.releases[which].grouping, workload, exact)
        assert len(found.actual) == len(found.estimate) == len(found.correlation)
        assert len(found.actual) + found.skipped == workload.queries
        assert (found.actual > 0).all() and (found.actual <= 24).all()
        assert np.isfinite(found.estimate).all() and (found.estimate >= 0).all()
        assert (np.abs(found.correlation) <= 1 + 1e-9).all()
        assert np.isfinite(found.mean) or not len(found.actual)
