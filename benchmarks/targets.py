"""Targets of benchmarks: each is compared where it is printed, and a script that missed one ends with 1."""

from __future__ import annotations


class Targets:
    """What was missed so far."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def met(self, what: str, value: float, limit: float | None, unit: str = "s") -> str:
        """The verdict to print; a limit of None is none."""
        if limit is None:
            return ""
        return self.right(what, value <= limit, f"limit {limit:g} {unit}")

    def right(self, what: str, ok: bool, text: str) -> str:
        """The same for whatever else must be so."""
        if not ok:
            self.missed.append(f"{what}: {text}")
        return f"{text}: {'met' if ok else 'MISSED'}"

    def end(self) -> int:
        """The exit code; says what was missed."""
        for line in self.missed:
            print(f"MISSED  {line}", flush=True)
        return 1 if self.missed else 0
