"""The version, and whether the inner loops are compiled."""

from __future__ import annotations

__version__ = "0.1.0"
KERNELS = ("_chacha", "_disclosure", "_lattice", "_local", "_partition")


def version_text() -> str:
    """What `--version` says: without a compiler at installation, plain twins serve, with the same results."""
    from importlib.util import find_spec

    absent = [name for name in KERNELS if find_spec(f"maskwright.kernels.{name}") is None]
    if not absent:
        return f"maskwright {__version__} (compiled kernels)"
    return (
        f"maskwright {__version__} (plain kernels: there was no compiler at installation; same results, slower. "
        "Install a wheel, or a C compiler and install again)"
    )
