"""How many may connect, for how long without asking anything, and how much is logged.

Whoever can reach the port can open connections, with or without a token. They can neither keep others out nor fill
the memory or the disk: connections that wait give way to new ones, and all limits are stated here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 512
FILES_WANTED = 4 * MOST_CONNECTIONS  # file descriptors: connections take at most half of those that there are
REQUEST_S = 10.0  # until the head of a request has arrived, from the connection or from the answer before it
STALLED_S = 30.0  # of somebody who does not read what they asked for
BACKLOG = 128
LINES_A_MINUTE = 20
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Connection(H11Protocol):
    """An HTTP connection that is given up when it asks nothing in time, or when another one needs its place."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waits_since = time.monotonic()
        self._request_timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; where there are too many, the one that has waited longest is closed."""
        super().connection_made(transport)
        self._wait_for_request()
        if len(self.connections) <= most_connections():
            return
        others = [c for c in self.connections if isinstance(c, Connection) and c is not self and c.waits]
        if others:
            oldest = min(others, key=lambda c: c._waits_since)
            oldest.connections.discard(oldest)
            oldest.transport.abort()
        else:
            transport.write(TOO_MANY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks of a connection that ended."""
        _stop(self._request_timer)
        _stop(self._reading_timer)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Stop the clock once the head of a request is there."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:  # the head of a request is there
            _stop(self._request_timer)

    def on_response_complete(self) -> None:
        """Start the clock for the next request."""
        self._wait_for_request()
        super().on_response_complete()

    def _wait_for_request(self) -> None:
        _stop(self._request_timer)
        self._waits_since = time.monotonic()
        self._request_timer = self.loop.call_later(REQUEST_S, self.transport.abort)

    def pause_writing(self) -> None:
        """Start the clock of a reader who does not read."""
        super().pause_writing()
        self._reading_timer = self.loop.call_later(STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the clock of a reader who reads again."""
        super().resume_writing()
        _stop(self._reading_timer)


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class Rationed(logging.Filter):
    """Lets through a few messages a minute, and then says how many it did not."""

    def __init__(self) -> None:
        super().__init__()
        self._since, self._let, self._left = time.monotonic(), 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """May this message be logged? Only so many a minute may."""
        now = time.monotonic()
        if now - self._since >= 60:
            if self._left:
                record.msg, record.args = f"{record.getMessage()} ({self._left} messages were left out)", None
            self._since, self._let, self._left = now, 0, 0
        self._let += 1
        self._left += self._let > LINES_A_MINUTE
        return self._let <= LINES_A_MINUTE


def most_connections() -> int:
    """Connections at a time: at most half of the files that this process may open, where that is less."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        return min(MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
    return MOST_CONNECTIONS


def _more_files() -> None:
    """Ask for as many files as are wanted; some systems begin with 256."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < FILES_WANTED:
            possible = FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, FILES_WANTED)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, possible), hard))


def server_of(app: Any) -> uvicorn.Server:
    """A server of the application within these limits."""
    _more_files()
    config = uvicorn.Config(
        app, http=Connection, loop="asyncio", ws="none", lifespan="off", backlog=BACKLOG,
        log_level="warning", access_log=False, server_header=False,
    )  # fmt: skip
    ration = Rationed()
    for name in ("uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        for old in [f for f in logger.filters if isinstance(f, Rationed)]:
            logger.removeFilter(old)
        logger.addFilter(ration)
    return uvicorn.Server(config)
