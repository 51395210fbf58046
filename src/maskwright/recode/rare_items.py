"""k^m-anonymous sets: values that go together in few sets are suppressed, or merged [Terrovitis et al. 2008].

A table of sets is k^m-anonymous when every combination of at most m values that somebody's set holds is held by at
least k people. *Suppressing* takes values out of the sets that hold a rare combination, the fewest of them one by one;
*merging* replaces the values of a whole branch of a hierarchy by its name, in all sets, until nothing rare is left.

Where a person has several rows, people are counted who hold a combination in some row of theirs; where a pseudonym
links the rows, all of a person's sets are known together.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.missing_values import missing_texts
from maskwright.errors import PolicyError

Items = frozenset[str]
MOST_COMBINATIONS = 20_000_000  # that are counted in one pass


@dataclass(frozen=True)
class SetOwners:
    """Whose each set is.

    Attributes:
        person: of each set; None: every set is another person's.
        linked: is it published which sets are one person's?
    """

    person: Sequence[Hashable] | None = None
    linked: bool = False

    def known(self, sets: Sequence[Items]) -> list[Items]:
        """What may be known together with each set: the set itself, or all that a pseudonym links to it."""
        if self.person is None or not self.linked:
            return list(sets)
        every: dict[Hashable, Items] = {}
        for person, items in zip(self.person, sets, strict=True):
            every[person] = every.get(person, frozenset()) | items
        return [every[person] for person in self.person]

    def people(self, known: Sequence[Items]) -> Counter[frozenset[Items]]:
        """How many people have each collection of different sets."""
        if self.person is None:
            return Counter({frozenset((items,)): n for items, n in Counter(known).items()})
        of: defaultdict[Hashable, set[Items]] = defaultdict(set)
        for person, items in zip(self.person, known, strict=True):
            of[person].add(items)
        return Counter(frozenset(sets) for sets in of.values())


ROWS_ARE_PEOPLE = SetOwners()


def items_of(text: str | None, separator: str, missing: Collection[str] = ()) -> Items:
    """The values of a set that is written as a text."""
    return frozenset(part.strip() for part in (text or "").split(separator)) - missing_texts(missing)


def rare_combinations(
    known: Sequence[Items], k: int, m: int, owners: SetOwners = ROWS_ARE_PEOPLE
) -> dict[tuple[str, ...], int]:
    """The smallest combinations of at most m values that fewer than k people hold, of one size, with these people."""
    people = owners.people(known)
    for size in range(1, m + 1):
        held: Counter[tuple[str, ...]] = Counter()
        for sets, many in people.items():
            for combination in {c for items in sets for c in itertools.combinations(sorted(items), size)}:
                held[combination] += many
            if len(held) > MOST_COMBINATIONS:
                raise PolicyError(
                    f"known_items: there are too many combinations of {size} values to count; take m: {size - 1}"
                )
        rare = {combination: many for combination, many in held.items() if many < k}
        if rare:
            return rare
    return {}


def without_rare_items(
    sets: Sequence[Items], k: int, m: int, owners: SetOwners = ROWS_ARE_PEOPLE
) -> list[Items]:
    """The sets with values taken out until no combination of at most m values is held by fewer than k people."""
    result = list(sets)
    while rare := rare_combinations(known := owners.known(result), k, m, owners):
        size = len(next(iter(rare)))
        everywhere = Counter(value for items in result for value in items)
        taken: dict[Items, set[str]] = {}
        for items in set(known):
            mine = [c for c in itertools.combinations(sorted(items), size) if c in rare]
            gone = set[str]()
            while mine:
                often = Counter(value for c in mine for value in c)
                worst = max(often, key=lambda value: (often[value], -everywhere[value], value))
                gone.add(worst)
                mine = [c for c in mine if worst not in c]
            taken[items] = gone
        result = [items - taken[whole] for items, whole in zip(result, known, strict=True)]
    return result


def with_merged_items(
    sets: Sequence[Items], k: int, m: int, hierarchy: Hierarchy, owners: SetOwners = ROWS_ARE_PEOPLE
) -> list[Items]:
    """The sets with branches of a hierarchy in place of their values until nothing rare is left.

    The value that takes part in most rare combinations goes up with its whole branch, so that a label stands for the
    same values in all sets. At the top everybody has the same.
    """
    level = dict.fromkeys(hierarchy.values, 0)

    def label(value: str) -> str:
        """What stands for a value now."""
        at = hierarchy.levels[level[value]]
        return str(at.labels[at.blocks[hierarchy.values.index(value) + 1]])

    while True:
        now = {value: label(value) for value in hierarchy.values}
        result = [frozenset(now[value] for value in items) for items in sets]
        rare = rare_combinations(owners.known(result), k, m, owners)
        often = Counter(shown for c, people in rare.items() for shown in c for _ in range(people))
        raisable = [v for v in hierarchy.values if now[v] in often and level[v] < hierarchy.top]
        if not raisable:
            return without_rare_items(result, k, m, owners)  # fewer than k people hold anything at all
        chosen = max(raisable, key=lambda value: (often[now[value]], -level[value], value))
        above = hierarchy.levels[level[chosen] + 1]
        branch = above.blocks[hierarchy.values.index(chosen) + 1]
        for i, value in enumerate(hierarchy.values):
            if above.blocks[i + 1] == branch:
                level[value] = max(level[value], level[chosen] + 1) if value != chosen else level[value]
        level[chosen] += 1
