"""Time: seconds for something that may be given up, how many of them are spent, and what something took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TimeBudget:
    """Seconds from the moment when it is made.

    Attributes:
        seconds: how many there are.
        clock: what counts them. Usually the computing of this thread: what is found must not depend on what else the
            machine does. `time.process_time` counts other threads too, `time.monotonic` the waiting.
    """

    seconds: float
    clock: Callable[[], float] = time.thread_time
    began: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "began", self.clock())

    @property
    def spent(self) -> float:
        """The seconds so far."""
        return self.clock() - self.began

    @property
    def left(self) -> float:
        """The seconds that are left; negative when more were spent."""
        return self.seconds - self.spent

    @property
    def is_over(self) -> bool:
        """Whether all of them are spent."""
        return self.left <= 0


@dataclass(frozen=True)
class TimeTaken:
    """What something takes from the moment when this is made."""

    wall: TimeBudget = field(default_factory=lambda: TimeBudget(0, time.monotonic))
    cpu: TimeBudget = field(default_factory=lambda: TimeBudget(0, time.process_time))

    def as_dict(self) -> dict[str, float]:
        """The seconds so far, on the clock and of computing, as a search reports them."""
        return {"wall_s": self.wall.spent, "cpu_s": self.cpu.spent}
