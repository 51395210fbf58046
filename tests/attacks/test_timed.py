"""What an attack costs: one time for all tables, and nothing where there is nothing to attack."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.attacks import ATTACKS, WITHOUT_VALUES
from maskwright.attacks._shared.timed import Timed
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.pipeline.attacking import adversary_named, target_of

FRAME = pd.DataFrame(
    {"town": list("aabbccddee") * 6, "age": [20 + i % 7 for i in range(60)], "job": list("xyz") * 20}
)


class Slow(Timed):
    """Takes a part of the time that it is given, and says so."""

    name = "slow"
    parts: tuple[float | None, ...]
    given: list[float] = []  # noqa: RUF012 (pydantic copies it)

    def run(self, target: Any, adversary: Any) -> Beliefs:
        part = self.parts[len(self.given)]
        self.given.append(self.seconds)
        measures = {} if part is None else {"looked at": {"seconds": part * self.seconds}}
        return Beliefs(
            self.name, adversary.name, "exact", Belief(Fraction(0), Fraction(1), "one", ""), measures
        )


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ((1, 1, 1), [1, 1, 1]),
        ((None, 1, 1), [1, 1.5, 1.5]),  # a table for which no worlds are drawn leaves its time to the others
        ((0.5, None, 0.1), [1, 1.25, 2.5]),
        ((9, 1, 1), [1, 1, 1]),  # one that could not stop takes nothing from the others
    ],
)
def test_tables_share_the_time(parts: tuple[float | None, ...], wanted: list[float]) -> None:
    attack = Slow(seconds=3, parts=parts)
    tables: Any = ["first", "second", "third"]
    found = attack.each(tables, adversary_named("knows-method"))
    assert [table for table, _ in found] == tables
    assert attack.given == pytest.approx(wanted)


@pytest.mark.parametrize(
    "method",
    [
        {"name": "optimal-lattice", "suppression": "0.1"},
        {"name": "optimal-lattice", "suppression": "0.1", "suppress": "failing-classes"},
        {"name": "mondrian"},
        {"name": "local-recoding"},
    ],
)
def test_without_sensitive_values_only_these_apply(method: dict[str, Any]) -> None:
    columns = {
        "town": "quasi-identifier",
        "age": "quasi-identifier",
        "job": {"role": "insensitive", "near_unique": "allow"},
    }
    policy = {
        "version": 1,
        "columns": columns,
        "require": [{"model": "k-anonymity", "k": 3}],
        "method": method,
    }
    tables = target_of(mw.anonymize(FRAME, policy)).tables
    assert not any(t.grouping.classes.sensitive for t in tables)
    for name in set(ATTACKS) - WITHOUT_VALUES:
        assert ATTACKS[name]().over(tables, adversary_named("insider")) is None, name


def test_attacks_on_values_are_not_imported_where_there_are_none() -> None:
    code = (
        "import sys, pandas as pd, maskwright as mw\n"
        "policy = {'version': 1, 'columns': {'town': 'quasi-identifier'}}\n"
        "policy['require'] = [{'model': 'k-anonymity', 'k': 2}]\n"
        "release = mw.anonymize(pd.DataFrame({'town': list('aabb')}), policy)\n"
        "assert [b.attack for b in release.beliefs] == ['linkage']\n"
        "print([m for m in sys.modules if m.endswith(('attacks.minimality', 'attacks.combined'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr[-1500:]
