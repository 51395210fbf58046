"""One function per registered thing: it draws a small table, asks the product, and compares with the oracle.

A subject returns the kind of case that it met; `SUBJECTS` says which kinds must turn up, so that no comparison is
empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

Case = Callable[[Random], str]


@dataclass(frozen=True)
class Subject:
    """What is compared: the kind ("model" …), its registered name, more words, and the kinds of cases expected."""

    kind: str
    name: str
    case: Case
    expect: tuple[str, ...]
    detail: str = ""
    weight: int = 1  # how many cases it gets for one of another

    @property
    def id(self) -> str:
        return ":".join(x for x in (self.kind, self.name, self.detail) if x)


def every_subject() -> dict[str, Subject]:
    """All subjects by their id."""
    from tests.differential.subjects import attacks, lattices, metrics, models, partitions, pipeline, worlds

    listed = [
        subject
        for module in (models, lattices, partitions, metrics, attacks, worlds, pipeline)
        for subject in module.SUBJECTS
    ]
    found = {subject.id: subject for subject in listed}
    assert len(found) == len(listed), "two subjects have the same name"
    return found
