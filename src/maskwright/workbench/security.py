"""Who may call, and what every answer says to the browser.

Two attackers are thought of. A page of some other site, open in the same browser, can send requests to loopback
addresses, and can rebind its own name to 127.0.0.1. And another user of this machine can listen on another port of
127.0.0.1: browsers send the cookies of a host to every port of it. Hence browsers call the workbench by a host name
that is random and new at every start (`NAME.localhost`), which nobody else knows; and for every request, in this order:

1. the Host header must be a name of this server (a rebound name is not);
2. an Origin header must be this server's own, and so must Sec-Fetch-Site where the browser sends it;
3. the caller shows the token (`Authorization: Bearer`), or, under the browsers' name only, a session that the start
   address gave; sessions are kept in memory, so that they end with the server, and at the latest after `SESSION_S`;
4. with a session, whatever changes something needs the page's CSRF token as well;
5. bodies are bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import html
import json
import secrets
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any

SESSION_S = 12 * 3600
MOST_SESSIONS = 100  # the oldest ends when there are more
SAFE = ("GET", "HEAD", "OPTIONS")
BODY_LIMIT = 4 << 20  # of everything but uploads
LINGER_S = 2  # for which what is sent beyond the limit is still read, and thrown away
UPLOADS = "/api/uploads"
OPEN = (
    "/static/style.css",
    "/static/icon.svg",
)  # what the page of a refusal needs; small, and nothing private
NOT_LOGGED_IN = "open the address that `maskwright ui` printed: it holds the token"
START_AGAIN = "after a new start, open the address that it printed"

PROGRAMS = (
    "127.0.0.1",
    "localhost",
    "[::1]",
)  # names that every port of this machine has: the token, no session

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True)
class BrowserSession:
    """A browser that opened the start address.

    It ends by whichever clock is first: one can be set back, and the other stands still while the machine sleeps.
    """

    id: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    csrf: str = field(default_factory=lambda: secrets.token_hex(32))
    ends: float = field(default_factory=lambda: time.monotonic() + SESSION_S)
    ends_at: float = field(default_factory=lambda: time.time() + SESSION_S)

    @property
    def is_over(self) -> bool:
        """Has it ended, by either clock?"""
        return time.monotonic() >= self.ends or time.time() >= self.ends_at


@dataclass(frozen=True)
class AccessKeys:
    """Who may call this start of the workbench, by which names. No session is ever on disk.

    Attributes:
        port: where it listens.
        names: the host names by which browsers call it; a session is worth something there only.
        token: opens a session, and is what programs send.
        upload_limit: bytes of an uploaded table.
    """

    port: int
    names: frozenset[str]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    upload_limit: int = 2 << 30
    _sessions: dict[str, BrowserSession] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def cookie(self) -> str:
        """The name of the cookie: two workbenches under one name must not take each other's."""
        return f"maskwright_{self.port}"

    def is_for_browsers(self, host: str) -> bool:
        """Whether a Host header is one under which sessions count."""
        return host in {f"{name}:{self.port}" for name in self.names}

    def is_own(self, host: str) -> bool:
        """Whether a Host header names this server, for browsers or for programs."""
        return self.is_for_browsers(host) or host in {f"{name}:{self.port}" for name in PROGRAMS}

    def is_token(self, text: str) -> bool:
        """Is this the token? Takes as long for any text."""
        return hmac.compare_digest(text.encode(), self.token.encode())

    def open_session(self) -> BrowserSession:
        """Begin a session; those that ended, and the oldest of very many, are forgotten."""
        made = BrowserSession()
        with self._lock:
            going = [s for s in self._sessions.values() if not s.is_over][1 - MOST_SESSIONS :]
            self._sessions.clear()
            self._sessions.update({s.id: s for s in (*going, made)})
        return made

    def session(self, id_: str) -> BrowserSession | None:
        """The session that a cookie names, unless it ended."""
        found = self._sessions.get(id_)
        return None if found is None or found.is_over else found

    def close_session(self, id_: str) -> None:
        """Log out: the cookie is worth nothing afterwards, whoever has it."""
        with self._lock:
            self._sessions.pop(id_, None)

    def set_cookie(self, session: BrowserSession | None) -> str:
        """The header that gives a browser its session, or takes it away; without a date: it ends with the browser."""
        end = "" if session else "; Max-Age=0"
        return f"{self.cookie}={session.id if session else ''}; Path=/; HttpOnly; SameSite=Strict{end}"


class Refused(Exception):  # noqa: N818 - an answer, not a failure
    """A request that goes no further."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Guard:
    """Stands before the application."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], keys: AccessKeys) -> None:
        self.app, self.keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        begun = False

        async def answer(message: MutableMapping[str, Any]) -> None:
            """Send a message with the headers that protect every page."""
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message = {**message, "headers": _with_ours(message.get("headers", []))}
            await send(message)

        try:
            self.check(scope)
            await self.app(scope, self._bounded(scope, receive), answer)
        except Refused as problem:
            await _plain(scope, answer, problem.status, str(problem), receive)
        except Exception as problem:
            # Its text may hold values of the table: nothing but its kind is shown or logged.
            if begun:
                return
            where = traceback.extract_tb(problem.__traceback__)[-1]
            text = f"internal error: {type(problem).__name__} in {Path(where.filename).name}:{where.lineno}"
            await _plain(scope, answer, 500, text + "; this is a bug, please report it")

    def check(self, scope: Scope) -> None:
        """Refuse whoever may not call; what is allowed knows its session afterwards."""
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        path, unsafe = scope["path"], scope["method"] not in SAFE
        host = headers.get("host", "").lower()
        if not self.keys.is_own(host):
            raise Refused(421, "this workbench does not answer to that host name; " + START_AGAIN)
        start = path == "/start" and not unsafe
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host}":
            raise Refused(403, "requests from other sites are refused")
        site = headers.get("sec-fetch-site", "same-origin")
        if not start and site not in ("same-origin", "none") and (unsafe or path.startswith("/api")):
            raise Refused(403, "requests from other sites are refused")
        by_browser = self.keys.is_for_browsers(host)
        if start and not by_browser:
            raise Refused(421, "this address is for programs; " + NOT_LOGGED_IN)
        session = self._session(headers.get("cookie", "")) if by_browser else None
        scope["session"] = session
        if start or path in OPEN:
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.keys.is_token(token.strip()):
            return  # no browser sends it by itself, so that no other site can use it
        if session is None:
            raise Refused(401, NOT_LOGGED_IN)
        if unsafe and not hmac.compare_digest(
            headers.get("x-csrf-token", "").encode(), session.csrf.encode()
        ):
            raise Refused(403, "the page is out of date; reload it")

    def _session(self, cookies: str) -> BrowserSession | None:
        try:
            found = SimpleCookie(cookies).get(self.keys.cookie)
        except CookieError:
            return None
        return self.keys.session(found.value) if found else None

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        limit = self.keys.upload_limit if scope["path"] == UPLOADS else BODY_LIMIT
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if not said.isdigit() or len(said) > 20 or int(said) > limit:
            raise Refused(413, too_large(limit))
        seen = 0

        async def bounded() -> MutableMapping[str, Any]:
            """Receive a message, and refuse more than the limit."""
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise Refused(413, too_large(limit))
            return message

        return bounded


def too_large(limit: int) -> str:
    """The message about an upload beyond the limit."""
    size = f"{limit / (1 << 30):.3g} GiB" if limit >= 1 << 30 else f"{limit / (1 << 20):.3g} MiB"
    return f"too large: at most {size}; larger tables can be opened by their path"


def _with_ours(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The answer's headers, and ours where it has none of that name."""
    given = list(headers)
    names = {name.lower() for name, _ in given}
    return [*given, *((k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in names)]


async def _plain(scope: Scope, send: Send, status: int, text: str, receive: Receive | None = None) -> None:
    """An error without the application: one sentence, as JSON or as a small page.

    A body that is too large is read on for a moment: closing a connection with bytes unread resets it, and a client
    that is still sending would see the reset instead of the sentence.
    """
    if scope["path"].startswith("/api"):
        body, kind = json.dumps({"error": text}), "application/json"
    else:
        heading = "Not logged in" if status == 401 else "This does not work"
        # under a name that is not ours there are no static files either
        style = "" if status == 421 else '<link rel="stylesheet" href="/static/style.css">'
        page = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Maskwright</title>'
            f'{style}</head><body><main class="narrow">'
            f"<h1>{heading}</h1><p>{html.escape(text)}</p></main></body></html>"
        )
        body, kind = page, "text/html; charset=utf-8"
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body.encode())).encode())]
    if status == 413:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode(), "more_body": True})
    if status == 413 and receive is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while (await receive()).get("more_body", False):
                    pass
    await send({"type": "http.response.body", "body": b""})
