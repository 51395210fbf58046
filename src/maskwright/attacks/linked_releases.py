"""Linked releases: where releases share stable pseudonyms, the rows of a person are joined, whatever each shows alone.

Somebody knows a person's quasi-identifiers, as each release shows them, and in which of the releases the person is. Who
has the same labels in all of them under one pseudonym fits; everything that any of the releases has under that
pseudonym is the person's. The belief in a secret is the share of those who fit who have it in some row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from maskwright.attacks._shared.secrets import NOTHING, Secrets, dropped_people, secrets_of
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, StableRows, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.errors import UsageError


class LinkedReleases(Attack):
    """The belief in a sensitive value from several releases that share stable pseudonyms."""

    name: ClassVar[str] = "linked-releases"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"releases"})
    linked: ClassVar[bool] = True

    def applies(self, target: Target) -> bool:
        """Whether this release and one beside it share pseudonyms."""
        return len(_sharing(target.tables)) > 1

    def unable(self, target: Target) -> str:
        """Why the attack cannot run: values were changed, so that those of the people are not what is published."""
        if target.stable is None or target.grouping.changes is None:
            return ""
        return "releases share pseudonyms, and values were changed: what they reveal together is not computed"

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief from releases that are beside each other."""
        found = self.over(target.tables, adversary)
        if found is None:
            raise UsageError("linked-releases needs several releases that share stable pseudonyms")
        return found

    def over(self, targets: Sequence[Target], adversary: Adversary) -> Beliefs | None:
        """The worst belief from these releases together; None: no two share a pseudonym."""
        tables = _sharing(targets)
        if len(tables) < 2 or any(self.unable(t) for t in tables):
            return None
        rows = [t.stable for t in tables if t.stable is not None]
        held = Counter(token for r in rows for token in r.shown)
        common = [token for token, releases in held.items() if releases > 1]
        fitting: defaultdict[tuple[object, ...], list[str]] = defaultdict(list)
        for token in common:
            fitting[tuple(r.shown.get(token) for r in rows)].append(token)
        secrets = {s.attribute: s for t in tables for s in secrets_of(t)}
        by_attribute = {name: _worst(s, rows, list(fitting.values())) for name, s in secrets.items()}
        sizes = [len(tokens) for tokens in fitting.values()]
        found = sum(size for size in sizes if size == 1)
        alone = Belief(
            Fraction(1, max(1, len(common))), Fraction(1, min(sizes)), "somebody who is in several releases",
            f"{_people(min(sizes))} at least the same labels in all of them",
        )  # fmt: skip
        worst = max(by_attribute.values(), key=lambda b: (b.after, -b.before), default=alone)
        measures = {
            "people_in_several_releases": len(common),
            "smallest_match": min(sizes),
            "people_found": found,
            "vulnerable_share": Fraction(found, max(1, len(common))),
            "attributes": {name: {"worst": b} for name, b in by_attribute.items()},
            "dropped_people": max(dropped_people(t.grouping) for t in tables),
            "values_not_flagged": sum(s.values_not_flagged for s in secrets.values()),
        }
        return Beliefs(self.name, adversary.name, "exact", worst, measures)


def _people(number: int) -> str:
    return "1 person has" if number == 1 else f"{number:,} people have"


def _sharing(targets: Sequence[Target]) -> list[Target]:
    """The tables some of whose stable pseudonyms are in another one, too."""
    tables = [t for t in targets if t.stable is not None]
    held = Counter(token for t in tables if t.stable is not None for token in t.stable.shown)
    return [t for t in tables if t.stable is not None and any(held[token] > 1 for token in t.stable.shown)]


def _worst(secrets: Secrets, rows: Sequence[StableRows], fitting: Sequence[Sequence[str]]) -> Belief:
    """The largest share of a secret among people who fit alike."""
    worst, values = NOTHING, defaultdict[str, set[str]](set)
    for release in rows:
        for token, found in release.values.get(secrets.attribute, {}).items():
            values[token] |= found
    for code, members in enumerate(secrets.sets, 1):
        wanted = set(members)
        for tokens in fitting:
            having = sum(not wanted.isdisjoint(values[token]) for token in tokens)
            share = Fraction(having, len(tokens))
            if share > worst.after:
                worst = Belief(
                    secrets.before(code), share, "somebody who is in several releases that share pseudonyms",
                    f"{_people(len(tokens))} the same labels in all of them, and {_people(having)} "
                    f"{secrets.name(code)} in some row",
                )  # fmt: skip
    return worst
