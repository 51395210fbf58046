"""The place of a release in a sequence: who is in it, and with which values everybody was ever published."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Signature = tuple[str, ...]
Texts = tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class Register:
    """What must be known of everybody who was ever published; as sensitive as the input.

    Attributes:
        releases: how many there were.
        column: the sensitive one.
        people: by person the value and the signature.
    """

    releases: int
    column: str
    people: Mapping[str, tuple[str, Signature]]


@dataclass(frozen=True, eq=False)
class SequencePlace:
    """A release of a sequence. All other rows of it are counterfeits.

    Attributes:
        register: of everybody, this release included.
        people: who is in it, each with the quasi-identifiers.
        names: of these quasi-identifiers.
    """

    register: Register
    people: Sequence[tuple[str, Texts]]
    names: Sequence[str]

    def listed(self, number: int) -> Iterator[dict[str, str]]:
        """Who is in it, as `intersection` takes them, where it is release `number` of several."""
        for person, texts in self.people:
            row = dict(zip(self.names, texts, strict=True))
            yield {"person": person, "release": str(number)} | {n: t or "" for n, t in row.items()}


def one_sequence(places: Sequence[SequencePlace]) -> bool:
    """Whether releases are of one sequence: what each has registered, all later ones have, too."""
    registers = sorted((p.register for p in places), key=lambda r: r.releases)
    return all(
        a.releases < b.releases and a.column == b.column and a.people.items() <= b.people.items()
        for a, b in itertools.pairwise(registers)
    )
