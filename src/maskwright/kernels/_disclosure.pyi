from typing import Any

from numpy.typing import NDArray

def rank(
    start: NDArray[Any],
    codes: NDArray[Any],
    counts: NDArray[Any],
    lo: int,
    hi: int,
    atoms: int,
    sizes: NDArray[Any],
    sums: NDArray[Any],
    target: NDArray[Any],
    hidden: NDArray[Any],
) -> None: ...
def minima(
    sizes: NDArray[Any], sums: NDArray[Any], atoms: int, narrow: NDArray[Any], wide: NDArray[Any]
) -> None: ...
