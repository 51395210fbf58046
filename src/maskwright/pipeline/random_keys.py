"""Where the random choices of a run come from: a key for this input under this policy (docs/decisions/0006).

The same policy on the same input draws the same, so that nothing is learned from a second run, and nobody can try again
until a draw pleases. Who comes into which group depends on what a method sees of the policy and of the input, and on
nothing else: another gate, recoding or file format is no way to draw again. The order of rows and the numbers of groups
depend on all of the policy: two releases must not have their rows in the same order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from maskwright.domain.settings import Registered
from maskwright.kernels.randomness import derived, keyed, secret_key
from maskwright.pipeline import history
from maskwright.pipeline.installation_key import installation_key
from maskwright.policy.binding import Resolved, flagged_of
from maskwright.policy.policy import Policy


@dataclass(frozen=True)
class Keys:
    """The keys of a release: behind its groups (and who of equals is in them), and behind order and numbers."""

    groups: bytes
    order: bytes


@dataclass(frozen=True)
class Chance:
    """The source of a run's keys.

    Attributes:
        secret: the installation key, or what a seed stands for.
        seeded: it is a seed: anybody can work out every choice.
        why_not_kept: why the key is not that of other runs; empty where it is.
    """

    secret: bytes
    seeded: bool = False
    why_not_kept: str = ""

    @staticmethod
    def of(seed: int | None) -> Chance:
        """The key that a seed gives, or that of this installation."""
        if seed is not None:
            return Chance(secret_key(seed), seeded=True)
        key = installation_key()
        return Chance(key.secret, why_not_kept=key.why_not_kept)

    @property
    def repeatable(self) -> bool:
        """Does the same policy on the same input draw the same in the next run?"""
        return not self.why_not_kept

    @cached_property
    def name(self) -> str:
        """Tells sources apart, and nothing about the key."""
        return derived(self.secret, "the name of this key").hex()[:16]

    def keys(self, resolved: Resolved, content: str, fingerprint: str) -> Keys:
        """For a policy and an input: `content` is what a method sees of it, `fingerprint` tells tables apart."""
        if self.seeded:
            return Keys(self.secret, self.secret)
        whole = history.policy_hash(resolved.policy)
        return Keys(
            keyed(self.secret, "maskwright groups 1", content, seen_by_method(resolved)),
            keyed(self.secret, "maskwright order 1", fingerprint, content, whole),
        )

    def note(self) -> str:
        """For people: the key was not kept."""
        return (
            f"the installation key could not be kept ({self.why_not_kept}), so this run drew one of its own: the same "
            "policy on the same input will draw something else in the next run"
        )


def seen_by_method(resolved: Resolved) -> str:
    """What a method sees of a policy besides the summary, in one way of writing it."""
    policy: Policy = resolved.policy
    return json.dumps(
        {
            "method": _written(resolved.method),
            "search": sorted(_written(m) for m in resolved.models if m.use == "search"),
            "weights": {name: str(weight) for name, weight in resolved.weights.items()},
            "levels": resolved.levels,
            "flagged": flagged_of(policy, resolved.sets),
        },
        sort_keys=True,
    )


def _written(thing: Registered) -> str:
    return json.dumps([thing.name, thing.options()], sort_keys=True, default=str)
