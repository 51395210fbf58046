"""From the name of a case's function to a callable on its input: FUNCTIONS, collected from adapt_*.py beside it.

An adapter only translates: it calls the product's own code and returns the answer in the format of the case.
A new one is a new entry in the FUNCTIONS of an adapt_*.py file.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

FUNCTIONS: dict[str, Callable[[dict[str, Any]], object]] = {}


def _collect() -> None:
    for path in sorted(Path(__file__).parent.glob("adapt_*.py")):
        spec = importlib.util.spec_from_file_location(f"golden_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"cannot load {path}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, function in module.FUNCTIONS.items():
            if name in FUNCTIONS:
                raise ValueError(f"{name} has two adapters; the second is in {path.name}")
            FUNCTIONS[name] = function


_collect()
