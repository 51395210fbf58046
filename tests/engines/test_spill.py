"""Spill files are raw data. Why they are not encrypted: what this file shows, and docs/threat-model.md says."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

MARKER = b"MARKERSECRET"
ROWS = "CREATE TABLE t AS SELECT 'MARKERSECRET' || hash(range) || hash(range + 7) AS v FROM range(1500000)"


def spilling(folder: Path, *settings: str) -> int:
    """How often the marker is in the spill files of a table that does not fit into memory."""
    config = {
        "temp_directory": str(folder),
        "memory_limit": "60MB",
        "threads": 1,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    with duckdb.connect(config=config) as connection:
        for setting in settings:
            connection.execute(f"SET {setting} = true")
        connection.execute(ROWS)
        files = [p for p in folder.iterdir() if p.is_file() and p.stat().st_size > 1 << 20]
        assert files, "nothing was spilt"
        return sum(p.read_bytes().count(MARKER) for p in files)


def test_spill_files_are_raw_data(tmp_path: Path) -> None:
    assert spilling(tmp_path) > 0


def test_the_engine_cannot_encrypt_them_without_a_network_library(tmp_path: Path) -> None:
    """When this fails, the engine has learned it: switch `temp_file_encryption` on in engines/duckdb/database.py."""
    with pytest.raises(duckdb.Error, match="httpfs"):
        spilling(tmp_path, "temp_file_encryption")
