"""What the pipeline tells while it runs, and how it is told to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from maskwright.errors import Cancelled


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    kind: "step" (a step of the pipeline begins), "progress" (share done, 0 to 1, of the current step),
    "note" (something the user should know, e.g. columns that were dropped), "done".
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
        self.notes: list[str] = []
        self._final = False

    def step(self, text: str, **data: Any) -> None:
        self.emit(Event("step", text, data=data))

    def final(self, text: str) -> None:
        """The step that puts the release in place begins. Who was not heard by now comes too late."""
        self.step(text, final=True)
        self._final = True

    def share(self, done: float, text: str = "") -> None:
        self.emit(Event("progress", text, share=done))

    def note(self, text: str, **data: Any) -> None:
        self.notes.append(text)
        self.emit(Event("note", text, data=data))

    def emit(self, event: Event) -> None:
        if self._on_event:
            self._on_event(event)
        self.check()

    def check(self) -> None:
        """Raise `Cancelled` when somebody asked to stop. Cheap enough for inner loops."""
        if self._cancelled and not self._final and self._cancelled():
            raise Cancelled("cancelled; nothing was published")
