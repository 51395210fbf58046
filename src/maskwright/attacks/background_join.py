"""Background join: who knows some sensitive values of a person finds the rows of the class that match [CODIP].

Where a row shows several sensitive attributes, one that is known narrows the class down, and the others follow. That
is what splitting the attributes over several tables prevents.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
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
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount
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
    by_rows: ClassVar[bool] = True

    known: tuple[str, ...] | None = None
    size: int = Field(default=1, ge=1, le=20)

    def applies(self, target: Target) -> bool:
        """Whether some row shows several sensitive attributes together."""
        grouping = target.grouping
        if grouping.summary.joint is None or grouping.changes is not None:
            return False
        return any(len(names) > 1 for names in _joined(target))

    def unable(self, target: Target) -> str:
        """Why the attack cannot run though rows show several attributes together; otherwise nothing."""
        return super().unable(target) if any(len(names) > 1 for names in _joined(target)) else ""

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
            joins = (rows.join(known, match, secrets[name]) for name in asked)
            found = [f for f in joins if f is not None]
            if not found:
                continue
            strongest = max(found, key=lambda f: f.share)
            revealed = max(f.certain for f in found)
            by_known[", ".join(known)] = {"belief": strongest.share, "certain_people": revealed}
            certain = max(certain, revealed)
            vulnerable = max(vulnerable, *(f.vulnerable for f in found))
            if strongest.share > worst.after:
                worst = strongest.belief(target, known)
        return Beliefs(
            self.name, adversary.name, "exact", worst,
            {
                "sets_tried": tried, "certain_people": certain, "vulnerable_people": vulnerable,
                "vulnerable_share": Fraction(vulnerable, max(1, int(rows.rows.sum()))), "known": by_known,
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

    def belief(self, target: Target, known: Sequence[str]) -> Belief:
        """The belief in words."""
        facts = ", ".join(f"{n} {label_text(v)}" for n, v in zip(known, self.values, strict=True))
        rows = "the only row of the class" if self.matching == 1 else f"{self.matching} rows of the class"
        return Belief(
            before=self.secrets.before(self.code),
            after=self.share,
            whom=f"each of those with {in_words(target.grouping, self.group)} of whom it is known: {facts}",
            why=f"{rows} match, and in this share of them they have {self.secrets.name(self.code)}",
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
        joint = grouping.summary.joint
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
