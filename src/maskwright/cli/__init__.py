"""The command line: commands, what a terminal shows, signals and streams."""

from __future__ import annotations


def main(arguments: list[str] | None = None) -> int:
    """Run one command of `maskwright` and return its exit code."""
    from maskwright.cli.commands import main as run_command

    return run_command(arguments)
