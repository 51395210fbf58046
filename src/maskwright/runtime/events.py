"""What a run tells while it runs: its steps, how far it is and how long it will still take; and how it is told to stop.

The forecast compares what the steps cost when they were measured; the pace comes from the steps of this run that are
done, and within a step from what the engine says of the query that is running.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from maskwright.errors import Cancelled

QUIET = 1.0  # seconds: what a step that takes less has done is not worth a word


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    kind: "step" (a step of the pipeline begins), "progress" (share done, 0 to 1, of the current step; where it can be
    said, `data["left"]` are the seconds that the whole run will still take), "note" (something the user should know,
    e.g. columns that were dropped), "done". Progress may come from another thread, never two events at a time.
    """

    kind: str
    text: str
    share: float | None = None
    data: dict[str, Any] = field(default_factory=dict)
    at: float = field(default_factory=time.monotonic)


class Progress:
    """Handed down to whatever takes long: emit events, and stop when asked to."""

    def __init__(
        self,
        on_event: Callable[[Event], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        on_work: Callable[[float], None] | None = None,
    ) -> None:
        """`on_work` is told what methods count of their work; then no search ends by the clock."""
        self._on_event = on_event
        self._cancelled = cancelled
        self._on_work = on_work
        self._one_at_a_time = threading.RLock()
        self._forecast = Forecast({})
        self._begin = self._shared = self._reached = 0.0
        self.notes: list[str] = []
        self._final = False

    def expect(self, seconds: Mapping[str, float]) -> None:
        """What the steps usually take, compared with each other (see runtime/events.py)."""
        self._forecast.expected |= seconds

    def step(self, text: str, **data: Any) -> None:
        """Begin a step, and tell it."""
        self._begin, self._reached = time.monotonic(), 0.0
        self._forecast.start(text, self._begin)
        self.emit(Event("step", text, data=data))

    def final(self, text: str) -> None:
        """The step that puts the release in place begins. Who was not heard by now comes too late."""
        self.step(text, final=True)
        self._final = True

    def share(self, done: float, text: str = "") -> None:
        """Tell which share of the step is done, from 0 to 1; what was said to be done is not taken back."""
        self._shared, self._reached = time.monotonic(), max(self._reached, done)
        self.emit(Event("progress", text, share=self._reached))

    def pulse(self, query: float | None = None, since: float | None = None) -> None:
        """Called now and then by a thread of the engine: tell how far the step is, unless it does so itself."""
        now = time.monotonic()
        if now - self._begin < QUIET or now - self._shared < QUIET:
            return
        if (found := self._forecast.look(now, query, since)) is not None:
            self._reached = max(self._reached, found.share)  # what was said to be done is not taken back
            data = {} if found.left is None else {"left": round(found.left, 1)}
            self._tell(Event("progress", in_words(found.left), share=self._reached, data=data))

    @property
    def counts_work(self) -> bool:
        """Whether a search ends by the work that is counted, and not by the clock: the same one on every machine."""
        return self._on_work is not None

    def work(self, usual_s: float) -> None:
        """So much is done, counted and not measured: the seconds that it usually takes. Then stop if asked to."""
        if self._on_work is not None:
            self._on_work(usual_s)
            self.check()

    def note(self, text: str, **data: Any) -> None:
        """Tell something the user should know, and remember it."""
        self.notes.append(text)
        self.emit(Event("note", text, data=data))

    def emit(self, event: Event) -> None:
        """Tell an event, then stop if somebody asked for that."""
        self._tell(event)
        self.check()

    def _tell(self, event: Event) -> None:
        if self._on_event:
            with self._one_at_a_time:
                self._on_event(event)

    @property
    def stopping(self) -> bool:
        """Did somebody ask to stop, in time?"""
        return bool(self._cancelled and not self._final and self._cancelled())

    def check(self) -> None:
        """Raise `Cancelled` when somebody asked to stop. Cheap enough for inner loops."""
        if self.stopping:
            raise Cancelled("cancelled; nothing was published")


@dataclass(frozen=True)
class Outlook:
    """`share` of the current step that is done, and the seconds that the whole run will take from now on.

    None: nobody can tell, because the step takes longer than usual, or because nothing was measured here yet.
    """

    share: float
    left: float | None


LATE = 2  # times the usual time of a step: then no time is promised any more


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
        # a step that takes longer than usual is almost done for ever: its share is never all of it
        here = max(usual - spent, in_query, spent / 10)
        share = spent / (spent + here) if spent else 0.0
        measured = in_query or any(self.expected.get(s, 0) > 0 for s in self.done)
        if not measured or (not in_query and spent > LATE * usual):
            return Outlook(share, None)
        later = [s for s in self.expected if s != self.step and s not in self.done]
        return Outlook(share, here + self.pace * sum(self.expected[s] for s in later))


def in_words(seconds: float | None) -> str:
    """About how long: rounded as a person would; nothing where nobody can tell."""
    if seconds is None:
        return ""
    if seconds < 10:
        return "a few seconds left"
    if seconds < 55:
        return f"about {round(seconds / 10) * 10} s left"
    if seconds < 90 * 60:
        return f"about {max(1, round(seconds / 60))} min left"
    return f"about {seconds / 3600:.1f} h left"
