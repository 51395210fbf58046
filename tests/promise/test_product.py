"""The small engine against DuckDB: the same policy on the same table makes the same things public."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maskwright.policy.policy import Policy
from maskwright.worlds.sampling.choices import Choices
from tests.patients import forget, write_csv
from tests.promise.draws import chance
from tests.promise.fuzzing import pilots
from tests.promise.policies import random_policy
from tests.promise.product import published, published_to
from tests.promise.tables import INSENSITIVE, random_case


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_the_same_as_the_usual_way(first: int, tmp_path: Path) -> None:
    """Seeded, so that both draw the same. What is only measured depends on how long an attack may take."""
    compared = 0
    for number in range(first, first + 10):
        draw = chance(number)
        case = random_case(draw, several=number % 4 == 0)
        policy = Policy.load(random_policy(draw, case))
        if INSENSITIVE in case.names:
            continue  # which of several rows alike goes where is drawn by the engine
        for world in pilots(case, draw)[:2]:
            table = case.table(world)
            mine = published(table, policy, Choices(), seed=3)
            forget()
            rows = [["" if cell is None else cell for cell in row] for row in table.rows]
            source = write_csv(tmp_path / "t.csv", rows, table.names)
            theirs = published_to(tmp_path / f"{number}-{world}", source, policy, seed=3)
            if "measured" in mine.why or "measured" in theirs.why:
                continue
            assert (theirs.public is None) == (mine.public is None), (number, world, mine.why, theirs.why)
            if mine.public is not None and theirs.public is not None:
                compared += 1
                assert theirs.public[0] == mine.public[0], (number, world)
                assert json.loads(theirs.public[1]) == json.loads(mine.public[1]), (number, world)
                assert theirs.public[2] == mine.public[2]
                assert theirs.bounds == mine.bounds
    assert compared > 1
