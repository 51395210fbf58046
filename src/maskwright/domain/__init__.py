"""Frozen values: hierarchy, summary, grouping, verdict, beliefs, release; exact arithmetic."""
