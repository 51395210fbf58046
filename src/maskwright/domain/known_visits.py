"""Known visits: who matches what somebody knows of a person's visits (k^m-anonymity [Terrovitis et al. 2008]).

Where the visits of a person stay together, a person is a multiset of classes, one for each published visit. Somebody
who knows up to m of them is left with the people who have all of these among theirs; somebody who knows every visit,
with those who have exactly the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from maskwright.domain.classes import Ints
from maskwright.errors import PolicyError

ENTRIES = 30_000_000  # people times sets of their visits that are listed at a time


@dataclass(frozen=True, eq=False)
class KnownVisits:
    """Everything of one size that may be known of somebody's visits.

    Attributes:
        visits: how many visits are known; 0: every one of them.
        person, known: who has which of the sets of visits, each pair once.
        matches: the people who have each set.
    """

    visits: int
    person: Ints
    known: Ints
    matches: Ints

    @property
    def fewest(self) -> int:
        """The fewest people who match a set."""
        return int(self.matches.min(initial=np.iinfo(np.int64).max))

    @property
    def found(self) -> int:
        """People whom nobody else matches on some set of theirs."""
        return len(np.unique(self.person[self.matches[self.known] == 1]))


def known_visits(person: Ints, group: Ints, rows: Ints, most: int) -> Iterator[KnownVisits]:
    """What may be known of one visit, of two … up to `most`; entry i: so many rows of a person are in a class.

    Refuses more sets than can be listed.
    """
    # the copies of a class are items of their own, and a set that has one of them has those before it
    copies = np.minimum(rows, most)
    total = int(copies.sum())
    first = np.cumsum(copies) - copies
    copy = np.arange(total) - np.repeat(first, copies)
    owner, item = np.repeat(person, copies), np.repeat(group, copies) * most + copy
    order = np.lexsort((item, owner))
    owner, item, copy = owner[order], item[order], copy[order]
    end = np.searchsorted(owner, owner, side="right")
    n_items = int(item.max(initial=0)) + 1
    last = np.flatnonzero(copy == 0)  # the place of the last item of each set
    known = np.unique(item[last], return_inverse=True)[1].reshape(-1)
    for visits in range(1, most + 1):
        if not len(last):
            return
        yield KnownVisits(visits, owner[last], known, np.bincount(known))
        if visits == most:
            return
        more = end[last] - last - 1
        if int(more.sum()) > ENTRIES:
            raise PolicyError(
                f"unit: {visits + 1} known visits are {int(more.sum()):,} sets, too many to count; keep fewer rows "
                f"of each person (unit: {{rows: …}}), or take events: {visits}"
            )
        begin = np.cumsum(more) - more
        parent = np.repeat(np.arange(len(last)), more)
        place = np.arange(int(more.sum())) - begin[parent] + last[parent] + 1
        closed = (copy[place] == 0) | (item[place] == item[last[parent]] + 1)
        parent, place = parent[closed], place[closed]
        known = np.unique(known[parent] * n_items + item[place], return_inverse=True)[1].reshape(-1)
        last = place


def every_visit(person: Ints, group: Ints, rows: Ints) -> KnownVisits:
    """What is known to somebody who knows every visit of a person: the whole history."""
    order = np.lexsort((group, person))
    person, pairs = person[order], np.stack([group[order], rows[order]], axis=1).astype("<i8")
    start = np.flatnonzero(np.diff(person, prepend=-1))
    content, width = pairs.tobytes(), 16
    bounds = [*(start * width).tolist(), len(content)]
    numbers: dict[bytes, int] = {}
    known = np.array(
        [numbers.setdefault(content[a:b], len(numbers)) for a, b in pairwise(bounds)],
        dtype=np.int64,
    )
    return KnownVisits(0, person[start], known, np.bincount(known))
