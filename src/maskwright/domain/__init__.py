"""Frozen values: policy, hierarchy, summary, grouping, verdict, beliefs, release; exact arithmetic."""
