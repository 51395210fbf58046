from typing import Any

from numpy.typing import NDArray

def open(
    n: int,
    columns: tuple[Any, ...],
    rows: NDArray[Any],
    sizes: NDArray[Any],
    k: int,
    width: int,
    limit: int,
    full: int,
) -> object: ...
def neighbours(problem: object, lo: int, hi: int) -> None: ...
def agglomerate(problem: object, most: int) -> bool: ...
def move(problem: object, lo: int, hi: int) -> int: ...
def result(problem: object, of: NDArray[Any], lists: NDArray[Any]) -> None: ...
