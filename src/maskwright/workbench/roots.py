"""Which files may be opened by their path, and a list of them."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from maskwright.engines.readers.statistics_files import EXCEL, STATISTICS
from maskwright.errors import UsageError

TABLES = (".csv", ".tsv", ".txt", ".parquet", *EXCEL, *STATISTICS)
# The list of tables on the first page must not take long, wherever the workbench was started.
MOST_ENTRIES, MOST_FOLDERS = 1000, 20
NOT_FOR_TABLES = ("node_modules", "private", "public", "__pycache__")


@dataclass(frozen=True)
class Roots:
    """The files that may be opened by path: those named at the start, and tables below the folders named there."""

    files: tuple[Path, ...]
    folders: tuple[Path, ...]

    @staticmethod
    def of(paths: list[Path]) -> Roots:
        """Files and folders that may be opened; refuses a path that is not there."""
        for path in paths:
            if not path.exists():
                raise UsageError(f"there is no file or folder {str(path)!r}")
        found = [path.resolve() for path in paths]
        return Roots(tuple(p for p in found if p.is_file()), tuple(p for p in found if p.is_dir()))

    def check(self, text: str) -> Path:
        """The file that a user typed, if it may be opened. Links are followed before the check."""
        base = self.folders[0] if self.folders else Path.cwd()
        try:
            path = (base / Path(text.strip()).expanduser()).resolve()
            inside = path in self.files or any(path.is_relative_to(f) for f in self.folders)
            if inside and path.is_file() and (path in self.files or path.suffix.lower() in TABLES):
                return path
        except (OSError, ValueError, RuntimeError):
            pass
        # one answer for all reasons: whether a file exists elsewhere is nobody's business
        raise UsageError(
            "this file cannot be opened: it is not a table below the folders that the workbench was started with; "
            "upload it, or start `maskwright ui FOLDER`"
        )

    def check_release(self, text: str) -> Path:
        """The folder of a release that a user typed, if it lies below one of the folders that may be opened."""
        base = self.folders[0] if self.folders else Path.cwd()
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            path = (base / Path(text.strip()).expanduser()).resolve()
            if (
                any(path.is_relative_to(f) for f in self.folders)
                and (path / "public" / "manifest.json").is_file()
            ):
                return path
        raise UsageError(
            "this is not the folder of a release (with public/ and private/) below the folders that the workbench was "
            "started with; start `maskwright ui FOLDER` with one that holds it"
        )

    def tables(self, most: int = 200, depth: int = 3) -> Iterator[Path]:
        """Tables that can be opened, for the list on the first page."""
        yield from self.files
        found = (path for folder in self.folders for path in _below(folder, depth))
        yield from itertools.islice(found, most)


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """Tables in a folder and in those below it; folders of thousands of entries are looked at in part."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        some = [e for e in itertools.islice(entries, MOST_ENTRIES) if not e.name.startswith(".")]
        some = [e for e in some if not e.is_symlink()]
        for entry in sorted(some, key=lambda e: (e.is_dir(), e.name.casefold())):
            if entry.is_file() and Path(entry.name).suffix.lower() in TABLES:
                yield Path(entry.path)
        below = [e for e in some if e.is_dir() and e.name not in NOT_FOR_TABLES][:MOST_FOLDERS]
        for entry in below if depth > 1 else ():
            yield from _below(Path(entry.path), depth - 1)
