"""The memory of a run: one limit for the whole process, of which the engine gets what arrays leave over."""

from __future__ import annotations

import ctypes
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
UNKNOWN = 4000 * MB  # taken for the memory of a machine that does not tell

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


@dataclass(frozen=True)
class MemoryBudget:
    """`limit` bytes for the whole process."""

    limit: int

    @staticmethod
    def of(memory: str | None) -> MemoryBudget:
        """From "4GB", "500MB", "2GiB" or "50%" of the machine; by default three quarters of it."""
        if memory is None:
            return MemoryBudget(max(int(SHARE * machine_memory()), PYTHON + ENGINE))
        limit = memory_size(memory)
        if limit < PYTHON + ENGINE:
            raise UsageError(
                f"memory {memory!r} is too little: it is a limit for the whole process, of which Python with its "
                f"libraries takes {size_text(PYTHON)} and the engine at least {size_text(ENGINE)}; "
                f"allow {size_text(PYTHON + ENGINE)} or more"
            )
        return MemoryBudget(limit)

    def engine(self, arrays: int = 0) -> int:
        """What the engine may use while `arrays` bytes are held beside it."""
        return max(ENGINE, int((self.limit - PYTHON - arrays) / OVER))

    @property
    def arrays(self) -> int:
        """The most that arrays may take, so that the engine can still work."""
        return self.limit - PYTHON - int(ENGINE * OVER)


def memory_size(memory: str) -> int:
    """The bytes that "4GB", "500MB", "2GiB" or "50%" of the machine mean, and no more than it has."""
    return min(
        parsed_size(memory, "memory", machine_memory()), machine_memory()
    )  # more than there is would be no limit at all


def parsed_size(text: str, name: str, whole: int | None = None) -> int:
    """The bytes of a written size: 4GB is 4·10⁹ of them and 4GiB is 4·2³⁰, whoever reads it.

    Args:
        text: the size.
        name: what it is the size of, for the message.
        whole: what "50%" is a share of; None: shares are refused.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([KMGT]I?)B|(%))", text.strip(), re.IGNORECASE)
    number, unit, percent = found.groups() if found else ("0", "", None)
    if not float(number) or (percent and whole is None):
        also = "4GB, 500MB or 50%" if whole is not None else "4GB or 500MB"
        raise UsageError(f"{name} {text!r} is not an amount; write it as {also}")
    amount = float(number) * ((whole or 0) / 100 if percent else _UNITS[unit.upper()])
    return int(min(amount, 2**62))


def summary_bytes(cells: int, attributes: int, sensitive: int) -> int:
    """At most this much is held of so many combinations (see domain/summary.py: joint and single counts, and codes)."""
    return cells * (16 + 24 * sensitive + 4 * attributes + 8)


_PLAIN = {str, int, float, bool, type(None)}


def held_bytes(*things: object) -> int:
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
            if not set(map(type, thing)) <= _PLAIN:  # names of people may be very many
                waiting += thing
        elif is_dataclass(thing) and hasattr(thing, "__dict__"):
            waiting += vars(thing).values()
    return total


def machine_memory() -> int:
    """The memory that this process can have: of the machine, or of its control group if that allows less."""
    groups = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
    return min([_installed(), *_limits(groups)])


def _installed() -> int:
    """The memory of the machine; where it cannot be told (some virtual machines with Windows), a modest one."""
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    kilobytes, kernel = ctypes.c_ulonglong(), ctypes.windll.kernel32  # type: ignore[attr-defined]
    told = kernel.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes))
    return kilobytes.value * 1024 if told else UNKNOWN


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


def size_text(amount: float) -> str:
    """Bytes for people, with at most three figures: 2.5 GB, 350 MB."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if amount >= unit:
            return f"{amount / unit:.3g} {name}"
    return f"{max(1, round(amount / 1000))} kB" if amount > 0 else "nothing"
