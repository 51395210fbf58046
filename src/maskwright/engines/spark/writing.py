"""Writing a published table: its rows are distributed over files, and ordered there, by a keyed hash of what they show.

So neither the number of files, nor their sizes, nor the order of the rows depend on anything but the published rows and
the key. The workers write; the driver gives the files plain names and removes what Spark puts beside them.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from maskwright.engines.recoding import derived_key
from maskwright.errors import DestinationError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BUFFER = 1 << 22


def ordered(frame: DataFrame, key: str) -> DataFrame:
    """The rows, distributed and ordered by a hash of their values; equal rows look equal, wherever they came from."""
    named = frame.columns
    # nulls do not change a hash, so the number of a column goes with each value
    content = [part for i, name in enumerate(named) for part in (F.col(name), F.lit(i))]
    place = F.xxhash64(F.lit(derived_key(key, "order on Spark")), *content)
    # the part of a partition that one task of the step before has made is never a file of its own: see session.CONF
    spread = frame.withColumn("order", place).hint("rebalance", F.col("order"))
    return spread.sortWithinPartitions("order").drop("order")


def named(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The columns under their own names, without the comments that columns of the source may have."""
    return frame.select([F.col(c).alias(n, metadata={}) for c, n in zip(frame.columns, names, strict=True)])


def write_parquet(frame: DataFrame, names: Sequence[str], path: Path) -> None:
    """One file, or a folder of files part-00000.parquet, … when there is much to write."""
    parts = _parts(named(frame, names), path, "parquet", {"compression": "zstd"})
    if len(parts) == 1:
        parts[0].rename(path)
    else:
        path.mkdir()
        for i, part in enumerate(parts):
            part.rename(path / f"part-{i:05}.parquet")
    shutil.rmtree(_beside(path))


def write_csv(frame: DataFrame, names: Sequence[str], path: Path) -> None:
    """One file: the lines that the workers wrote, below one header."""
    values = [_field(F.col(c)) for c in frame.columns]
    if len(values) == 1:  # a lone missing value would be an empty line, which readers skip
        values = [F.when(values[0] == "", F.lit('""')).otherwise(values[0])]
    parts = _parts(frame.select(F.concat_ws(",", *values).alias("line")), path, "text", {"lineSep": "\n"})
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(names)
    with path.open("wb") as out:
        out.write(header.getvalue().encode())
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, out, BUFFER)
            part.unlink()
    shutil.rmtree(_beside(path))


def _field(text: Column) -> Column:
    quoted = F.concat(F.lit('"'), F.replace(text, F.lit('"'), F.lit('""')), F.lit('"'))
    return F.coalesce(F.when(text.rlike('[",\r\n]'), quoted).otherwise(text), F.lit(""))


def _parts(frame: DataFrame, path: Path, format_: str, options: dict[str, Any]) -> list[Path]:
    """Let the workers write files beside a path."""
    beside = _beside(path)
    try:
        frame.write.format(format_).options(**options).save(f"file://{beside}")
    except (PySparkException, Py4JError):
        raise DestinationError(f"{path}: the workers cannot write here; {_SHARED}") from None
    parts = sorted(beside.glob("part-*"))
    if not parts:
        raise DestinationError(f"{path}: what the workers wrote is not here; {_SHARED}")
    return parts


_SHARED = (
    "the folder must be on a file system that the driver and all workers share and may write to. Or leave the "
    "destination out, and write release.table with Spark"
)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.parts")
