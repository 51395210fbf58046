"""Random whole policies on small tables: what is labelled guaranteed is true of every possible world."""

from __future__ import annotations

import pytest

from tests.promise.fuzzing import Examined, examined

CHUNK = 100
BRIEF = range(0, 300, CHUNK)
LONG = range(100_000, 120_000, CHUNK)


def examine_all(seeds: range, record_property: pytest.RecordProperty) -> list[Examined]:
    """Examine the policies of some seeds, and say how many were guaranteed; fails with every broken promise.

    At least a fifth must be guaranteed, and a third publish something: of fewer the fuzzer would test little. That is
    asked of every hundred, and so of the whole run.
    """
    found = [examined(seed) for seed in seeds]
    numbers = {name: sum(getattr(one, name) for one in found) for name in ("published", "guaranteed")}
    for name, number in {"policies": len(found), **numbers}.items():
        record_property(name, number)
    print(f"{len(found)} policies: {numbers['published']} published, {numbers['guaranteed']} guaranteed")
    broken = [one for one in found if one.broken]
    assert not broken, "\n\n".join(map(str, broken))
    assert numbers["published"] >= len(found) / 3
    assert numbers["guaranteed"] >= len(found) / 5
    return found


@pytest.mark.parametrize("first", BRIEF)
def test_promises_are_kept(first: int, record_property: pytest.RecordProperty) -> None:
    examine_all(range(first, first + CHUNK), record_property)


@pytest.mark.long
@pytest.mark.parametrize("first", LONG)
def test_promises_are_kept_by_many(first: int, record_property: pytest.RecordProperty) -> None:
    """20,000 policies."""
    examine_all(range(first, first + CHUNK), record_property)
