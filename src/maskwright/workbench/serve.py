"""`maskwright ui`: the workspace, the address with its token, and the server with its application.

Whoever can reach the port can open connections, with or without a token. They can neither keep others out nor fill the
memory or the disk: connections that wait give way to new ones, and all limits are stated here.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import json
import logging
import os
import re
import secrets
import socket
import sys
import time
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol

from maskwright.errors import MaskwrightError, UsageError
from maskwright.runtime.memory_budget import parsed_size
from maskwright.version import __version__
from maskwright.workbench import api, pages
from maskwright.workbench.jobs import Conflict
from maskwright.workbench.roots import Roots
from maskwright.workbench.security import PROGRAMS, AccessKeys, Guard
from maskwright.workbench.workspace import NotFound, Workspace

DEFAULT_PORT = 8765
TRIES = 20  # for a port that is free on both loopback addresses
LOOPBACK = ("127.0.0.1", "::1")
START_PAGE = "start.html"  # tells the browser the address; there while the server runs


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    paths: Sequence[Path] = ()
    workspace: Path | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    names: Sequence[str] = ()
    memory: str | None = None
    max_upload: str = "2GB"
    browser: bool = True
    as_json: bool = False


def default_workspace() -> Path:
    """The folder of projects where none was named."""
    base = os.environ.get("XDG_DATA_HOME") or (os.environ.get("LOCALAPPDATA") if os.name == "nt" else None)
    return (Path(base) if base else Path.home() / ".local" / "share") / "maskwright" / "workbench"


def serve_workbench(options: Options) -> int:
    """Run the workbench until it is told to stop; runs in progress continue."""
    from maskwright.workbench.roots import Roots
    from maskwright.workbench.workspace import Workspace

    os.umask(0o077)
    limit = parsed_size(options.max_upload, "--max-upload")
    roots = Roots.of(list(options.paths) or [Path.cwd()])
    with contextlib.ExitStack() as held:
        listeners = [held.enter_context(listener) for listener in _listening_sockets(options)]
        port = listeners[0].getsockname()[1]
        workspace = Workspace(options.workspace or default_workspace())
        held.callback(workspace.close)
        held.callback((workspace.root / START_PAGE).unlink, missing_ok=True)
        names = browser_names(options)
        keys = AccessKeys(port, frozenset(names), upload_limit=limit)
        app = create_app(workspace, keys, roots, options.memory)
        _announce(options, f"http://{names[0]}:{port}/start?token={keys.token}", keys, workspace.root)
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how it is meant to end
            server_of(app).run(sockets=listeners)
    return 0


def _listening_sockets(options: Options) -> list[socket.socket]:
    """Sockets that listen already, on one port: whoever connects from now on reaches this process, and nobody else can.

    On loopback there are two, because browsers try `::1` for names below localhost before 127.0.0.1.
    """
    addresses = _addresses(options)
    wanted = (
        [DEFAULT_PORT, *[0] * TRIES]
        if options.port is None
        else [options.port] * (1 if options.port else TRIES)
    )
    for port in wanted:
        with contextlib.suppress(OSError):
            return _listening(addresses, port)
    raise UsageError(f"port {options.port} cannot be used; choose another with --port, or leave it out")


def _addresses(options: Options) -> list[str]:
    try:
        address = ipaddress.ip_address("127.0.0.1" if options.host == "localhost" else options.host)
    except ValueError:
        raise UsageError(f"--host: {options.host!r} is not an address; write 127.0.0.1 or ::1") from None
    if str(address) in LOOPBACK:
        return list(LOOPBACK)
    if not options.names:
        raise UsageError(
            f"--host {options.host} lets other machines connect, without encryption. Prefer a tunnel (ssh -L); if it "
            "must be, say with --name under which name browsers will call it"
        )
    return [str(address)]


def _listening(addresses: Sequence[str], port: int) -> list[socket.socket]:
    """All addresses on one port, or an OSError; an address that this machine does not have is nobody's."""
    if not 0 <= port < 1 << 16:
        raise OSError(errno.EINVAL, "there is no such port")
    made: list[socket.socket] = []
    try:
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            try:
                made.append(socket.create_server((address, port), family=family))
            except OSError as problem:
                if not made or problem.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
            port = made[0].getsockname()[1]
    except BaseException:
        for listener in made:
            listener.close()
        raise
    return made


def browser_names(options: Options) -> list[str]:
    """Host names for browsers: one that nobody can guess, unless --name says another.

    Every port of 127.0.0.1 and of localhost would get the cookie of the workbench, and they may be somebody else's.
    """
    given = [_bracketed(name.lower()) for name in options.names]
    own = [name for name in given if name not in PROGRAMS]
    return own if own and len(own) == len(given) else [f"{secrets.token_hex(16)}.localhost", *own]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _announce(options: Options, url: str, keys: AccessKeys, root: Path) -> None:
    """Tell the address. Whoever connects to it reaches this process: its sockets listen already."""
    if options.as_json:
        told = {
            "url": url,
            "api": f"http://127.0.0.1:{keys.port}",
            "token": keys.token,
            "workspace": str(root),
        }
        print(json.dumps(told), flush=True)
        return
    print(
        f"Maskwright workbench: {url}\nworkspace: {root}\nCtrl-C stops it; runs in progress continue.",
        flush=True,
    )
    screen = (
        sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if options.browser and screen and sys.stdout.isatty():
        # through a file, because other users can read the arguments of a process
        page = root / START_PAGE
        page.write_text(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">', encoding="utf-8"
        )
        webbrowser.open(page.as_uri())


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


STATIC = Path(__file__).parent / "static"


class Assets(StaticFiles):
    """Static files: nothing private, so that a browser may keep them, and ask whether they changed."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """A file that browsers ask for again each time, so that an update is seen."""
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


def create_app(workspace: Workspace, keys: AccessKeys, roots: Roots, memory: str | None = None) -> FastAPI:
    """The workbench on a workspace. `keys` say who may call, `roots` which files may be opened by path."""
    app = FastAPI(
        title="Maskwright workbench",
        version=__version__,
        description=api.__doc__ or "",
        openapi_url="/api/openapi.json",
        docs_url=None,  # those pages load scripts from elsewhere
        redoc_url=None,
    )
    app.state.workspace, app.state.keys, app.state.roots, app.state.memory = workspace, keys, roots, memory
    app.add_middleware(Guard, keys=keys)
    app.mount("/static", Assets(directory=STATIC), name="static")
    app.include_router(api.router)
    app.include_router(pages.router)

    @app.exception_handler(MaskwrightError)
    def refused(request: Request, problem: MaskwrightError) -> Response:
        """The answer to a request that was refused."""
        status = 404 if isinstance(problem, NotFound) else 409 if isinstance(problem, Conflict) else 422
        return _error(request, status, str(problem))

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, problem: RequestValidationError) -> Response:
        """The answer to a request whose fields are not valid."""
        # pydantic's own text would repeat what was sent
        first = problem.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        return _error(request, 422, f"{where}: {first['type'].replace('_', ' ')}")

    @app.exception_handler(HTTPException)
    def unknown(request: Request, problem: HTTPException) -> Response:
        """The answer where there is no such page."""
        text = "there is no such page" if problem.status_code == 404 else str(problem.detail)
        return _error(request, problem.status_code, text)

    return app


def _error(request: Request, status: int, text: str) -> Response:
    if not request.url.path.startswith("/api"):
        return pages.error_page(request, status, text)
    content: dict[str, Any] = {"error": text}
    at = re.match(r"(require|method|columns)(?:\[(\d+)\])?(?:\.([\w-]+))?", text)
    if at and (at[2] or at[3]):  # where in the form it belongs
        content["at"] = {"section": at[1], "index": int(at[2]) if at[2] else None, "field": at[3]}
    return JSONResponse(content, status)
