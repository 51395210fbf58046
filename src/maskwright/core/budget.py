"""The memory of a run: one limit for the whole process, of which the engine gets what arrays leave over."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path

import numpy as np

from maskwright.errors import UsageError

MB = 10**6
PYTHON = 200 * MB  # Python with the libraries that a run loads, and what malloc keeps
ENGINE = 100 * MB  # with less, an engine cannot even sort a table in parts
OVER = 1.07  # an engine holds a little more than it was allowed
SHARE = 0.75  # of the machine, when no limit was given

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


@dataclass(frozen=True)
class Budget:
    """`limit` bytes for the whole process."""

    limit: int

    @staticmethod
    def of(memory: str | None) -> Budget:
        """From "4GB", "500MB", "2GiB" or "50%" of the machine; by default three quarters of it."""
        if memory is None:
            return Budget(max(int(SHARE * machine()), PYTHON + ENGINE))
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([KMGT]I?)B|(%))", memory.strip(), re.IGNORECASE)
        if found is None:
            raise UsageError(f"memory {memory!r} is not an amount; write it as 4GB, 500MB or 50%")
        number, unit, percent = found.groups()
        asked = float(number) * (machine() / 100 if percent else _UNITS[unit.upper()])
        limit = int(min(asked, machine()))  # more than there is would be no limit at all
        if limit < PYTHON + ENGINE:
            raise UsageError(
                f"memory {memory!r} is too little: it is a limit for the whole process, of which Python with its "
                f"libraries takes {size(PYTHON)} and the engine at least {size(ENGINE)}; "
                f"allow {size(PYTHON + ENGINE)} or more"
            )
        return Budget(limit)

    def engine(self, arrays: int = 0) -> int:
        """What the engine may use while `arrays` bytes are held beside it."""
        return max(ENGINE, int((self.limit - PYTHON - arrays) / OVER))

    @property
    def arrays(self) -> int:
        """The most that arrays may take, so that the engine can still work."""
        return self.limit - PYTHON - int(ENGINE * OVER)


def summary_bytes(cells: int, attributes: int, sensitive: int) -> int:
    """At most this much is held of so many combinations (see core/summary.py: joint and single counts, and codes)."""
    return cells * (16 + 24 * sensitive + 4 * attributes + 8)


def held(*things: object) -> int:
    """The bytes of all arrays that data classes, sequences and mappings hold, each counted once."""
    waiting, seen, total = list(things), set[int](), 0
    while waiting:
        thing = waiting.pop()
        while isinstance(thing, np.ndarray) and isinstance(thing.base, np.ndarray):
            thing = thing.base  # a view holds all of it
        if isinstance(thing, (str, bytes, int, float)) or thing is None or id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            total += thing.nbytes
        elif isinstance(thing, Mapping):
            waiting += thing.values()
        elif isinstance(thing, (tuple, list)):
            waiting += [x for x in thing if not isinstance(x, (str, int))]
        elif is_dataclass(thing) and hasattr(thing, "__dict__"):
            waiting += vars(thing).values()
    return total


def machine() -> int:
    """The memory that this process can have: of the machine, or of its control group if that allows less."""
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    groups = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
    return min([pages * page, *_limits(groups)])


def _limits(files: Sequence[Path]) -> list[int]:
    found = []
    for file in files:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdigit():  # "max": there is no limit
            found.append(int(text))
    return found


def size(amount: float) -> str:
    """Bytes for people, with at most three figures: 2.5 GB, 350 MB."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if amount >= unit:
            return f"{amount / unit:.3g} {name}"
    return f"{max(1, round(amount / 1000))} kB" if amount > 0 else "nothing"
