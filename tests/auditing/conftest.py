"""The command line as a user has it."""

from pipeline.conftest import maskwright

__all__ = ["maskwright"]
