"""What the pipeline tells while it runs, and how it is told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from maskwright.core.forecast import Forecast, in_words
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
    ) -> None:
        self._on_event = on_event
        self._cancelled = cancelled
        self._one_at_a_time = threading.RLock()
        self._forecast = Forecast({})
        self._begin = self._shared = self._reached = 0.0
        self.notes: list[str] = []
        self._final = False

    def expect(self, seconds: Mapping[str, float]) -> None:
        """What the steps usually take, compared with each other (see core/forecast.py)."""
        self._forecast.expected |= seconds

    def step(self, text: str, **data: Any) -> None:
        self._begin, self._reached = time.monotonic(), 0.0
        self._forecast.start(text, self._begin)
        self.emit(Event("step", text, data=data))

    def final(self, text: str) -> None:
        """The step that puts the release in place begins. Who was not heard by now comes too late."""
        self.step(text, final=True)
        self._final = True

    def share(self, done: float, text: str = "") -> None:
        self._shared = time.monotonic()
        self.emit(Event("progress", text, share=done))

    def pulse(self, query: float | None = None, since: float | None = None) -> None:
        """Called now and then by a thread of the engine: tell how far the step is, unless it does so itself."""
        now = time.monotonic()
        if now - self._begin < QUIET or now - self._shared < QUIET:
            return
        if (found := self._forecast.look(now, query, since)) is not None:
            self._reached = max(self._reached, found.share)  # what was said to be done is not taken back
            data = {"left": round(found.left, 1)}
            self._tell(Event("progress", in_words(found.left), share=self._reached, data=data))

    def note(self, text: str, **data: Any) -> None:
        self.notes.append(text)
        self.emit(Event("note", text, data=data))

    def emit(self, event: Event) -> None:
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
