"""Counting possible worlds exactly, or in floating point with a stated error."""
