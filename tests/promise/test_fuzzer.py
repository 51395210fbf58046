"""Random whole policies on small tables: what is labelled guaranteed is true of every possible world."""

from __future__ import annotations

import pytest

from tests.promise.fuzzing import Examined, examined

CHUNK = 50
BRIEF = range(0, 300, CHUNK)
LONG = range(100_000, 120_000, CHUNK * 10)


def examine_all(seeds: range, record_property: pytest.RecordProperty) -> list[Examined]:
    """Examine the policies of some seeds, and say how many were guaranteed; fails with every broken promise."""
    found = [examined(seed) for seed in seeds]
    numbers = {name: sum(getattr(one, name) for one in found) for name in ("published", "guaranteed")}
    for name, number in {"policies": len(found), **numbers}.items():
        record_property(name, number)
    print(f"{len(found)} policies: {numbers['published']} published, {numbers['guaranteed']} guaranteed")
    broken = [one for one in found if one.broken]
    assert not broken, "\n\n".join(map(str, broken))
    return found


@pytest.mark.parametrize("first", BRIEF)
def test_promises_are_kept(first: int, record_property: pytest.RecordProperty) -> None:
    found = examine_all(range(first, first + CHUNK), record_property)
    # a fifth of them on the whole; of so few policies hardly fewer than a twentieth
    assert sum(one.guaranteed for one in found) >= len(found) / 20


@pytest.mark.long
@pytest.mark.parametrize("first", LONG)
def test_promises_are_kept_by_many(first: int, record_property: pytest.RecordProperty) -> None:
    """20,000 policies, of which about a fifth are guaranteed; of each 500 at least a sixth, less would test little."""
    found = examine_all(range(first, first + LONG.step), record_property)
    assert sum(one.guaranteed for one in found) >= len(found) / 6
