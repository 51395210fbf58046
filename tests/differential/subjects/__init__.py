"""One function per registered thing: it draws a small table, asks the product, and compares with the oracle.

A subject returns the kind of case that it met; `SUBJECTS` says which kinds must turn up, so that no comparison is
empty.
"""

from __future__ import annotations

from collections import Counter
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
    weight: float = 1  # how many cases it gets for one of another; some have to list many worlds

    @property
    def id(self) -> str:
        return ":".join(x for x in (self.kind, self.name, self.detail) if x)


def compare(subject: Subject, first: int, cases: int) -> Counter[str]:
    """Run cases of a subject: how many of each kind there were. A difference says how to see it again."""
    kinds: Counter[str] = Counter()
    for number in range(first, first + cases):
        try:
            kinds[subject.case(Random(f"{subject.id}/{number}"))] += 1  # noqa: S311 - cases, not secrets
        except Exception as problem:
            again = f"python -m tests.differential {subject.id} {number}"
            raise AssertionError(
                f"{subject.id}, case {number} differs: {problem!r}\nsee it again: {again}"
            ) from problem
    return kinds


def every_subject() -> dict[str, Subject]:
    """All subjects by their id."""
    from tests.differential.subjects import attacks, lattices, metrics, models, partitions, worlds

    listed = [
        subject
        for module in (models, lattices, partitions, metrics, attacks, worlds)
        for subject in module.SUBJECTS
    ]
    found = {subject.id: subject for subject in listed}
    assert len(found) == len(listed), "two subjects have the same name"
    return found
