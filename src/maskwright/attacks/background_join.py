"""Background join: who knows some sensitive values of a person finds the rows of the class that match [CODIP].

Where a row shows several sensitive attributes, one that is known narrows the class down, and the others follow. That
is what splitting the attributes over several tables prevents.

Several rows per person: whatever is known of the known attributes, of any rows and of whomever, a row with the known
values v has the secret with its share among the rows of the class that hold v, because these are alike. So each row of
a person has it with at most the largest such share of its class, and some row with at most the sum of these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
    accompanying_figures,
    in_words,
    label_text,
    secrets_of,
    threshold_of,
)
from maskwright.attacks.homogeneity import OwnedRows, person_in_words
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount, numbered_values
from maskwright.domain.segments import Ratios
from maskwright.errors import UsageError

MOST_SETS = 2000  # sets of known attributes that are tried


class BackgroundJoin(Attack):
    """The belief of somebody who knows other sensitive values of the person, from the rows that match them.

    Attributes:
        known: the attributes that are known; without it every set of `size` attributes is tried, the worst counts.
        size: how many attributes are known.
    """

    name: ClassVar[str] = "background-join"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"values"})

    known: tuple[str, ...] | None = None
    size: int = Field(default=1, ge=1, le=20)

    def applies(self, target: Target) -> bool:
        """Whether some row shows several sensitive attributes together."""
        grouping = target.grouping
        if grouping.summary.cells is None or grouping.changes is not None:
            return False
        return any(len(names) > 1 for names in _joined(target))

    def unable(self, target: Target) -> str:
        """Why the attack cannot run though rows show several attributes together; otherwise nothing."""
        if not any(len(names) > 1 for names in _joined(target)):
            return ""
        if target.grouping.changes is not None and not target.grouping.summary.rows_are_people:
            return "people have several rows, and values were changed: it is not counted whose rows match what is known"
        return super().unable(target)

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief over all sets of known attributes."""
        rows = _PublishedRows.of(target)
        secrets = {s.attribute: s for s in secrets_of(target)}
        worst, certain, vulnerable, tried = NOTHING, 0, 0, 0
        by_known: dict[str, Any] = {}
        for names, known in self._sets(target):
            tried += 1
            match = rows.match(known)
            asked = [name for name in names if name in secrets and name not in known]
            join = rows.join if target.grouping.summary.rows_are_people else rows.people_join
            found = [f for name in asked if (f := join(known, match, secrets[name])) is not None]
            if not found:
                continue
            strongest = max(found, key=lambda f: f.share)
            revealed = max(f.certain for f in found)
            by_known[", ".join(known)] = {"belief": strongest.share, "certain_people": revealed}
            certain = max(certain, revealed)
            vulnerable = max(vulnerable, *(f.vulnerable for f in found))
            if strongest.share > worst.after:
                worst = strongest.belief(target, known)
        alone = target.grouping.summary.rows_are_people
        everybody = int(rows.rows.sum()) if alone else len(np.unique(rows.owned.person))
        return Beliefs(
            self.name, adversary.name, "exact" if alone else "bounded", worst,
            {
                "sets_tried": tried, "certain_people": certain, "vulnerable_people": vulnerable,
                "vulnerable_share": Fraction(vulnerable, max(1, everybody)), "known": by_known,
                **accompanying_figures(target, list(secrets.values())),
            },
        )  # fmt: skip

    def _sets(self, target: Target) -> Iterator[tuple[Sequence[str], tuple[str, ...]]]:
        """Attributes that a row shows together, with each set of them that may be known."""
        blocks = [names for names in _joined(target) if len(names) > 1]
        if self.known is not None:
            wanted = _attributes(target, self.known)
            for names in blocks:
                here = tuple(name for name in names if name in wanted)
                if here and len(here) < len(names):
                    yield names, here
            return
        total = sum(math.comb(len(names), min(self.size, len(names) - 1)) for names in blocks)
        if total > MOST_SETS:
            raise UsageError(
                f"background-join: {total} sets of {self.size} attributes are too many; name those that are known: "
                "known: [...]"
            )
        for names in blocks:
            for known in itertools.combinations(names, min(self.size, len(names) - 1)):
                yield names, known


def _joined(target: Target) -> Sequence[Sequence[str]]:
    every = tuple(target.grouping.summary.sensitive)
    return [every] if target.joined is None else target.joined


def _attributes(target: Target, names: Sequence[str]) -> set[str]:
    """Names of attributes; a column of sets stands for its bits."""
    bits = {s.name: s.bits for s in target.context.sets}
    wanted = {b for name in names for b in bits.get(name, (name,))}
    everywhere = set(target.grouping.summary.sensitive) | {b for parts in bits.values() for b in parts}
    for name in sorted(wanted - everywhere - set(target.context.domains)):
        raise UsageError(f"background-join: there is no sensitive attribute {name!r}")
    return wanted


@dataclass(frozen=True, eq=False)
class _LargestShare:
    """The largest share of a secret among the rows of a class that match what is known."""

    share: Fraction
    secrets: Secrets
    code: int
    group: int
    values: tuple[str | None, ...]
    matching: int
    certain: int  # people of whom everything that matches has the same secret
    vulnerable: int  # people for whom a belief is above the bound of the policy
    whose: str = ""  # the person, where people have several rows

    def belief(self, target: Target, known: Sequence[str]) -> Belief:
        """The belief in words."""
        facts = ", ".join(f"{n} {label_text(v)}" for n, v in zip(known, self.values, strict=True))
        if self.whose:
            return Belief(
                self.secrets.before(self.code), self.share, f"{self.whose}, of whom {' and '.join(known)} is known",
                f"in a class of theirs the rows with {facts} hold {self.secrets.name(self.code)} most often; each row "
                "of the person with at most that share of its class, some row with at most the sum",
            )  # fmt: skip
        secret = self.secrets.name(self.code)
        why = f"{self.matching} rows of the class match, and in this share of them they have {secret}"
        if self.matching == 1:
            why = f"only one row of the class matches, and it has {secret}"
        return Belief(
            before=self.secrets.before(self.code),
            after=self.share,
            whom=f"each of those with {in_words(target.grouping, self.group)} of whom it is known: {facts}",
            why=why,
        )


@dataclass(frozen=True, eq=False)
class _PublishedRows:
    """The published rows of a table, those alike counted together."""

    target: Target
    group: Ints
    values: dict[str, NDArray[np.int32]]
    rows: Ints

    @staticmethod
    def of(target: Target) -> _PublishedRows:
        """The published rows of a table."""
        grouping = target.grouping
        cells, groups, rows = grouping.cells
        joint = grouping.summary.cells
        assert joint is not None  # noqa: S101 - the attack does not apply otherwise
        values = {name: joint.values[i][cells] for i, name in enumerate(grouping.summary.sensitive)}
        return _PublishedRows(target, groups, values, rows)

    def match(self, known: Sequence[str]) -> Ints:
        """The number of the class and known values of each row: rows with the same cannot be told apart."""
        match = self.group
        for name in known:
            radix = len(self.target.grouping.summary.sensitive[name].values) + 1
            match = np.unique(match * radix + self.values[name], return_inverse=True)[1]
        return match

    def join(self, known: Sequence[str], match: Ints, secrets: Secrets) -> _LargestShare | None:
        """The worst case when these attributes are known and that one is in question."""
        sensitive = self.target.grouping.summary.sensitive
        sizes = exact_bincount(match, self.rows, int(match.max(initial=-1)) + 1)
        code = {value: i + 1 for i, value in enumerate(sensitive[secrets.attribute].values)}
        column = self.values[secrets.attribute]
        best: tuple[Fraction, int, int] | None = None
        certain, above = np.zeros((2, len(sizes)), dtype=bool)
        bound = threshold_of(self.target.models, secrets.attribute)
        for s, members in enumerate(secrets.sets):
            inside = np.isin(column, [code[v] for v in members if v in code])
            held = exact_bincount(match[inside], self.rows[inside], len(sizes))
            shares = Ratios(held, sizes)
            certain |= held == sizes
            above |= ~shares.at_most(bound)
            top = shares.argmax() or 0
            share = shares[top]
            if share and (best is None or share > best[0]):
                best = share, s + 1, top
        if best is None:
            return None
        share, number, top = best
        row = int(np.flatnonzero(match == top)[0])
        texts = tuple((None, *sensitive[name].values)[self.values[name][row]] for name in known)
        people = int(sizes[certain].sum()), int(sizes[above].sum())
        return _LargestShare(share, secrets, number, int(self.group[row]), texts, int(sizes[top]), *people)

    @cached_property
    def owned(self) -> OwnedRows:
        """Whose rows they are, where people have several."""
        return OwnedRows.of(self.target.grouping)

    def people_join(self, known: Sequence[str], match: Ints, secrets: Secrets) -> _LargestShare | None:
        """The same about people who have several rows: at most the sum over the rows of the largest share of each."""
        grouping, owned = self.target.grouping, self.owned
        sensitive, n = grouping.summary.sensitive, grouping.classes.n
        sizes = exact_bincount(match, self.rows, int(match.max(initial=-1)) + 1)
        group_of = np.zeros(len(sizes), dtype=np.int64)
        group_of[match] = self.group
        code = {value: i + 1 for i, value in enumerate(sensitive[secrets.attribute].values)}
        column, bound = self.values[secrets.attribute], threshold_of(self.target.models, secrets.attribute)
        whose = grouping.summary.personal
        assert whose is not None and whose.people is not None  # noqa: S101 - for the type checker
        certain, above = np.zeros(len(sizes), dtype=bool), np.zeros(len(owned.first), dtype=bool)
        best: tuple[Fraction, int, int] | None = None
        order = np.argsort(column, kind="stable")
        start = np.searchsorted(column[order], np.arange(len(code) + 2))
        share, largest = np.zeros(len(sizes)), np.zeros(n)
        for s, members in enumerate(secrets.sets):
            codes = [code[v] for v in members if v in code]
            inside = np.concatenate([order[start[c] : start[c + 1]] for c in codes] or [order[:0]])
            if not len(inside):
                continue
            there, among = numbered_values(match[inside])  # the matches with a value of the set
            held = exact_bincount(among, self.rows[inside], len(there))
            certain[there] |= held == sizes[there]
            share[:], largest[:] = 0, 0
            share[there] = held / sizes[there]
            np.maximum.at(largest, group_of[there], share[there])
            concerned = owned.people_of(np.unique(group_of[there]))
            entries, first = owned.entries_of(concerned)
            sums = np.add.reduceat(owned.rows[entries] * largest[owned.group[entries]], first)
            above[concerned] |= sums > float(bound) * (1 + 1e-12)
            top = int(sums.argmax())
            if sums[top] and (best is None or min(1.0, float(sums[top])) > best[0]):
                mine = owned.entries_of(concerned[top : top + 1])[0]
                tops = [self._top_match(group_of, share, int(owned.group[e])) for e in mine]
                parts = [
                    Fraction(int(self.rows[inside][match[inside] == m].sum()), int(sizes[m])) for m in tops
                ]
                exact = sum((int(owned.rows[e]) * b for e, b in zip(mine, parts, strict=True)), Fraction(0))
                best = min(Fraction(1), exact), s + 1, int(max(tops, key=lambda m: share[m]))
                person = person_in_words(grouping, owned, mine.tolist())
        if best is None:
            return None
        total, numbered, top = best
        row = int(np.flatnonzero(match == top)[0])
        texts = tuple((None, *sensitive[name].values)[self.values[name][row]] for name in known)
        cells = grouping.cells[0]
        revealed = len(np.unique(whose.people[cells[certain[match]]]))
        return _LargestShare(
            total,
            secrets,
            numbered,
            int(self.group[row]),
            texts,
            int(sizes[top]),
            revealed,
            int(above.sum()),
            person,
        )

    @staticmethod
    def _top_match(group_of: Ints, share: NDArray[np.float64], group: int) -> int:
        """The rows of a class that match, of those with the largest share."""
        there = np.flatnonzero(group_of == group)
        return int(there[share[there].argmax()])
