"""placeholder"""
from __future__ import annotations

Anatomize = int | None
def anatomized(task, rows, parts, l, labels, grouping):
    return grouping
