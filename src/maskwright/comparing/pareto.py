"""The Pareto front: the points that no other point beats in one thing without losing in the other."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Number = Fraction | float | int


def pareto_front(points: Sequence[tuple[Number, Number]]) -> list[int]:
    """The numbers of the points that no other is at least as low in both and lower in one. Equal points stay.

    Sorted by the first value; one sweep.
    """
    order = sorted(range(len(points)), key=lambda i: (points[i][0], points[i][1]))
    front: list[int] = []
    for i in order:
        x, y = points[i]
        last = points[front[-1]] if front else None
        if last is None or y < last[1] or (x, y) == last:
            front.append(i)
    return front
