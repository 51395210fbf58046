"""`maskwright ui`: the workspace, the address with its token, and the server."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import json
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from maskwright.errors import UsageError
from maskwright.runtime.memory_budget import parsed_size
from maskwright.workbench.security import PROGRAMS, AccessKeys

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
    """Run the workbench until it is told to stop; runs that are going on go on."""
    from maskwright.workbench.app import create_app
    from maskwright.workbench.connections import server_of
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
        f"Maskwright workbench: {url}\nworkspace: {root}\nCtrl-C stops it; runs that are going on go on.",
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
