"""Known items of UCI msweb: people who hold one, two or three values that fewer than five people hold together.

Run as `python -m experiments.known_items VISITS`, with a Parquet file of one row per visitor and area.
"""

from __future__ import annotations

import sys

import duckdb
import numpy as np

from maskwright.attacks.known_items import rare_sets
from maskwright.recode.rare_items import without_rare_items

FEWEST = 5


def exposed_people(path: str) -> list[tuple[int, int, int]]:
    """(values known, people who hold some set of at most so many that fewer than FEWEST hold, people)."""
    table = (
        duckdb.read_parquet(path)
        .filter("split = 'train'")
        .project("user_id, item_id")
        .distinct()
        .fetchnumpy()
    )
    person = np.unique(table["user_id"], return_inverse=True)[1].astype(np.int64)
    item = np.unique(table["item_id"], return_inverse=True)[1].astype(np.int64)
    people = int(person.max()) + 1
    return [(most, rare_sets(person, item, most, FEWEST).people, people) for most in (1, 2, 3)]


def suppressed_sets(path: str) -> list[tuple[int, int, int, int]]:
    """(values known, sets that are changed so that nothing rare is left, values before, values after)."""
    sets: dict[int, set[str]] = {}
    table = duckdb.read_parquet(path).filter("split = 'train'").project("user_id, item_id").distinct()
    for person, item in table.fetchall():
        sets.setdefault(person, set()).add(str(item))
    before = [frozenset(items) for items in sets.values()]
    found = []
    for most in (1, 2, 3):
        after = without_rare_items(before, FEWEST, most)
        changed = sum(x != y for x, y in zip(before, after, strict=True))
        found.append((most, changed, sum(map(len, before)), sum(map(len, after))))
    return found


if __name__ == "__main__":
    print("values_known,people_below_5,people")
    for line in exposed_people(sys.argv[1]):
        print(*line, sep=",", flush=True)
    print("values_known,sets_changed,values_before,values_after")
    for cost in suppressed_sets(sys.argv[1]):
        print(*cost, sep=",", flush=True)
