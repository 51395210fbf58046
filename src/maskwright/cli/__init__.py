"""The command line: commands, what a terminal shows, signals and streams."""

from __future__ import annotations

import gc

UNCOLLECTED = 100_000  # objects between two searches for unreachable ones: a tenth of a short command


def main(arguments: list[str] | None = None) -> int:
    """Run one command of `maskwright` and return its exit code."""
    gc.set_threshold(UNCOLLECTED, *gc.get_threshold()[1:])
    from maskwright.cli.commands import main as run_command

    return run_command(arguments)
