"""`maskwright ui`: the workspace, the address with its token, and the server."""

from __future__ import annotations

import contextlib
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

DEFAULT_PORT = 8765
UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


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
    base = os.environ.get("XDG_DATA_HOME") or (os.environ.get("LOCALAPPDATA") if os.name == "nt" else None)
    return (Path(base) if base else Path.home() / ".local" / "share") / "maskwright" / "workbench"


def serve(options: Options) -> int:
    """Run the workbench until it is told to stop; runs that are going on go on."""
    import uvicorn

    from maskwright.workbench.app import create_app
    from maskwright.workbench.roots import Roots
    from maskwright.workbench.security import Keys
    from maskwright.workbench.workspace import Workspace

    os.umask(0o077)
    limit = size(options.max_upload)
    roots = Roots.of(list(options.paths) or [Path.cwd()])
    listener = _listen(options)
    port = listener.getsockname()[1]
    workspace = Workspace(options.workspace or default_workspace())
    try:
        keys = Keys(
            workspace.secret, port, _hosts(options, port), secrets.token_urlsafe(32), upload_limit=limit
        )
        app = create_app(workspace, keys, roots, options.memory)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, lifespan="off", ws="none"
        )
        shown = options.names[0] if options.names else _bracketed(options.host)
        _announce(options, f"http://{shown}:{port}/start?token={keys.token}", keys.token, workspace.root)
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how it is meant to end
            uvicorn.Server(config).run(sockets=[listener])
    finally:
        workspace.close()
        listener.close()
    return 0


def size(text: str) -> int:
    """'500MB' as bytes."""
    number, unit = text.strip().upper()[:-2], text.strip().upper()[-2:]
    if unit not in UNITS or not number.replace(".", "", 1).isdigit() or float(number) <= 0:
        raise UsageError(f"--max-upload: {text!r} is not a size; write 500MB or 2GB")
    return int(float(number) * UNITS[unit])


def _listen(options: Options) -> socket.socket:
    try:
        address = ipaddress.ip_address("127.0.0.1" if options.host == "localhost" else options.host)
    except ValueError:
        raise UsageError(f"--host: {options.host!r} is not an address; write 127.0.0.1 or ::1") from None
    if not address.is_loopback and not options.names:
        raise UsageError(
            f"--host {options.host} lets other machines connect, without encryption. Prefer a tunnel (ssh -L); if it "
            "must be, say with --name under which name browsers will call it"
        )
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    wanted = [DEFAULT_PORT, 0] if options.port is None else [options.port]
    for port in wanted:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((str(address), port))
        except (OSError, OverflowError):
            listener.close()
            continue
        return listener
    raise UsageError(f"port {options.port} cannot be used; choose another with --port, or leave it out")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _hosts(options: Options, port: int) -> frozenset[str]:
    names = ["127.0.0.1", "localhost", "[::1]", *(_bracketed(n.lower()) for n in options.names)]
    return frozenset(f"{name}:{port}" for name in names)


def _announce(options: Options, url: str, token: str, root: Path) -> None:
    if options.as_json:
        print(json.dumps({"url": url, "token": token, "workspace": str(root)}), flush=True)
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
        page = root / "start.html"
        page.write_text(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">', encoding="utf-8"
        )
        webbrowser.open(page.as_uri())
