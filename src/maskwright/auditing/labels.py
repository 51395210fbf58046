"""Reading published labels: which values of the original does `20-29`, `130**` or `{flu, asthma}` stand for?

Read are: the value itself, `*`, masked characters (`130**`), ranges (`20-29`, `20..29`, `[20, 30)`, `<50`, `≥50`,
`50+`), lists (`{a, b}`, `a|b`), shortened dates (`2024-03` for 2024-03-15), and the labels of a hierarchy where one is
given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.exact import to_fraction
from maskwright.domain.hierarchy import Hierarchy

Bools = NDArray[np.bool_]
Number = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_BRACKETS = re.compile(
    rf"(?P<open>[\[(\]])\s*(?P<low>{Number})\s*(?:,|;|-|–|\.\.|to)\s*(?P<high>{Number})\s*(?P<close>[\])\[])"
)
_BARE = re.compile(rf"(?P<low>{Number})\s*(?:-|–|\.\.|\bto\b)\s*(?P<high>{Number})")
_ONE_SIDE = re.compile(rf"(?P<sign><=|>=|≤|≥|<|>)\s*(?P<end>{Number})|(?P<from>{Number})\s*\+")
_LIST = re.compile(r"\{(?P<inside>.*)\}", re.DOTALL)


def label_reader(label: str) -> Callable[[str], bool]:
    """What a label stands for, as a test of a value."""
    tests: list[Callable[[str], bool]] = [lambda value: value == label]
    if "*" in label:
        tests.append(_masked(label))
    numbers = _range(label)
    if numbers is not None:
        tests.append(numbers)
    listed = _LIST.fullmatch(label)
    parts = re.split(r"[,;]", listed["inside"]) if listed else label.split("|")
    if len(parts) > 1 or listed:
        inside = [label_reader(part.strip()) for part in parts if part.strip()]
        tests.append(lambda value: any(test(value) for test in inside))
    if re.fullmatch(r"\d{4}(-\d{2})?", label):
        tests.append(
            lambda value: re.match(r"\d{4}-\d{2}", value) is not None and value.startswith(f"{label}-")
        )
    return lambda value: any(test(value) for test in tests)


def _masked(label: str) -> Callable[[str], bool]:
    """Each star hides a character; a single one at the end may hide any number of them."""
    head = label.removesuffix("*")

    def fits(value: str) -> bool:
        """Is a value one that this mask can hide?"""
        if not label.strip("*"):
            return True
        if len(label) == len(value):
            return all(a in ("*", b) for a, b in zip(label, value, strict=True))
        return "*" not in head and label.endswith("*") and value.startswith(head)

    return fits


def _range(label: str) -> Callable[[str], bool] | None:
    low = high = None
    with_low = with_high = True
    if found := _BRACKETS.fullmatch(label) or _BARE.fullmatch(label):
        low, high = to_fraction(found["low"]), to_fraction(found["high"])
        ends = found.groupdict()
        with_low, with_high = ends.get("open", "[") == "[", ends.get("close", "]") == "]"
    elif found := _ONE_SIDE.fullmatch(label):
        if found["from"]:
            low = to_fraction(found["from"])
        elif found["sign"].startswith(("<", "≤")):
            high, with_high = to_fraction(found["end"]), found["sign"] != "<"
        else:
            low, with_low = to_fraction(found["end"]), found["sign"] != ">"
    if low is None and high is None:
        return None

    def inside(value: str) -> bool:
        """Is a value a number within the range?"""
        if not re.fullmatch(Number, value):
            return False
        x = to_fraction(value)
        above = low is None or x > low or (with_low and x == low)
        return above and (high is None or x < high or (with_high and x == high))

    return inside


def stands_for(
    labels: Sequence[str | None], values: Sequence[str], hierarchy: Hierarchy | None = None
) -> Bools:
    """`result[l, v]`: may label l stand for the value with code v (0: missing, i + 1: `values[i]`)?"""
    result = np.zeros((len(labels), len(values) + 1), dtype=bool)
    known: dict[str, set[str]] = {}
    if hierarchy is not None:
        for level in hierarchy.levels:
            for value, block in zip(hierarchy.values, level.blocks[1:].tolist(), strict=True):
                known.setdefault(str(level.labels[block]), set()).add(value)
    for i, label in enumerate(labels):
        if label is None:
            result[i, 0] = True
            continue
        if label in known:
            result[i, 1:] = [value in known[label] for value in values]
        else:
            result[i, 1:] = list(map(label_reader(label), values))
        result[i, 0] = not label.strip("*")  # `*` may be missing, too
    return result
