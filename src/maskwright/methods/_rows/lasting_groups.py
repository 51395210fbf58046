"""Groups that last: whoever was published once is published with the same set of values ever after [Xiao, Tao 2007].

The *signature* of a person is the set of values of the first group that the person was in. In every later release the
person is in a group with exactly these values, each once; a value that nobody in the group holds is a *counterfeit*.
So releases can be put together without learning more than one of them shows (`promise/lemmas/lasting_signatures.py`).
Newcomers make buckets of their own by Anatomy; or each of them gets a group alone, with counterfeits drawn at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from maskwright.domain.sequence_place import Signature
from maskwright.errors import PolicyNotMet
from maskwright.kernels.partition import Int32s
from maskwright.methods._rows.anatomize import bucket_rows, eligible_blocks
from maskwright.methods._rows.rows import Partition

Newcomers = Literal["buckets", "alone"]


@dataclass(frozen=True)
class LastingGroup:
    """A group of one release: its people by number, and its signature, each value of which is published once."""

    people: tuple[int, ...]
    signature: Signature

    @property
    def counterfeits(self) -> int:
        """How many of its values nobody in it holds."""
        return len(self.signature) - len(self.people)


def lasting_groups(
    values: Sequence[str],
    signatures: Sequence[Signature | None],
    l: int,  # noqa: E741 - the literature's name
    rng: np.random.Generator,
    newcomers: Newcomers = "buckets",
    domain: Sequence[str] = (),
) -> list[LastingGroup]:
    """The groups of a release; person i holds `values[i]` and has a signature, or None: then it is given one.

    `domain`: the values that counterfeits of newcomers are drawn from, where these are published alone.
    """
    found = list(signatures)
    fresh = [i for i, signature in enumerate(found) if signature is None]
    if fresh and newcomers == "alone":
        for i in fresh:
            found[i] = _drawn_signature(values[i], l, domain, rng)
    elif fresh:
        for bucket in _buckets([values[i] for i in fresh], l, rng, begun=len(fresh) < len(found)):
            signature = tuple(sorted(values[fresh[i]] for i in bucket))
            for i in bucket:
                found[fresh[i]] = signature
    members: dict[Signature, dict[str, list[int]]] = {}
    for i, given in enumerate(found):
        assert given is not None  # noqa: S101 - everybody has one by now
        members.setdefault(given, {}).setdefault(values[i], []).append(i)
    return [g for signature in sorted(members) for g in _dealt(signature, members[signature], rng)]


def _dealt(
    signature: Signature, holders: dict[str, list[int]], rng: np.random.Generator
) -> list[LastingGroup]:
    """As few groups as there can be: those who hold the same value are dealt to different ones at random."""
    groups: list[list[int]] = [[] for _ in range(max(map(len, holders.values())))]
    for value in signature:
        held = holders.get(value, [])
        for person, place in zip(held, rng.permutation(len(groups)).tolist(), strict=False):
            groups[place].append(person)
    return [LastingGroup(tuple(people), signature) for people in groups]


def _drawn_signature(value: str, l: int, domain: Sequence[str], rng: np.random.Generator) -> Signature:  # noqa: E741
    """The value with l − 1 others, every choice of them with the same chance."""
    others = sorted(set(domain) - {value})
    return tuple(sorted([value, *(others[i] for i in rng.permutation(len(others))[: l - 1].tolist())]))


def _buckets(values: Sequence[str], l: int, rng: np.random.Generator, begun: bool) -> list[list[int]]:  # noqa: E741
    """Anatomy among newcomers; refused where one value is too frequent among them."""
    texts, codes = np.unique(np.array(values, dtype=object), return_inverse=True)
    codes32: Int32s = codes.reshape(-1).astype(np.int32)
    whole = Partition(np.arange(len(values), dtype=np.int32), np.array([0, len(values)], dtype=np.int64))
    good, counts = eligible_blocks(codes32, len(texts), whole, l)
    if not good[0]:
        who = ("newcomer" if len(values) == 1 else "newcomers") if begun else "people"
        remedy = (
            "leave some of them out, chosen by chance, until there are others; or publish each newcomer in a group of "
            "its own with counterfeits: newcomers: alone"
            if begun
            else f"l: {len(values) // int(counts.max())} would suffice"
            if len(values) // int(counts.max()) > 1
            else "that is too often for any l above 1"
        )
        raise PolicyNotMet(
            f"the {len(values):,} {who} cannot be put into buckets of {l} different values: {int(counts.max()):,} of "
            f"them hold the same one, more than one in {l}; {remedy}"
        )
    made = bucket_rows(codes32, len(texts), whole, l, rng, counts=counts)
    return [made.order[a:b].tolist() for a, b in zip(made.start[:-1], made.start[1:], strict=True)]
