"""How long a run will still take: from what its steps cost per row when they were measured, and how fast this run is.

The measured costs only say how the steps compare; the pace comes from the steps that are done, and within a step from
what the engine says of the query that is running.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Outlook:
    """`share` of the current step that is done, and the seconds that the whole run will take from now on."""

    share: float
    left: float


class Forecast:
    """The steps of a run with the seconds each would take on the machine where they were measured."""

    def __init__(self, expected: Mapping[str, float]) -> None:
        self.expected = dict(expected)
        self.done: dict[str, float] = {}
        self.step, self.begin = "", 0.0

    def start(self, step: str, now: float) -> None:
        """A step begins, and the one before it ends."""
        if self.step:
            self.done[self.step] = self.done.get(self.step, 0.0) + now - self.begin
        self.step, self.begin = step, now

    @property
    def pace(self) -> float:
        """Seconds here for a second there."""
        both = [(t, self.expected[s]) for s, t in self.done.items() if self.expected.get(s, 0) > 0]
        there = sum(e for _, e in both)
        return sum(t for t, _ in both) / there if there else 1.0

    def look(self, now: float, query: float | None = None, since: float | None = None) -> Outlook | None:
        """None while nothing can be said.

        Args:
            query: the share done of the query that is running, where there is one and it is known,
            since: and when it began.
        """
        spent = now - self.begin
        in_query = 0.0
        if query and since is not None and query > 0.02:
            in_query = (now - since) * (1 - query) / query
        usual = self.expected.get(self.step, 0.0) * self.pace
        if not usual and not in_query:
            return None
        # a step that takes longer than usual is almost done for ever: say at least a tenth of what was spent
        here = max(usual - spent, in_query, spent / 10)
        later = [s for s in self.expected if s != self.step and s not in self.done]
        left = here + self.pace * sum(self.expected[s] for s in later)
        return Outlook(spent / (spent + here) if spent else 0.0, left)


def in_words(seconds: float) -> str:
    """About how long: rounded as a person would."""
    if seconds < 10:
        return "a few seconds left"
    if seconds < 55:
        return f"about {round(seconds / 10) * 10} s left"
    if seconds < 90 * 60:
        return f"about {max(1, round(seconds / 60))} min left"
    return f"about {seconds / 3600:.1f} h left"
