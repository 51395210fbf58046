"""Who may call, and what every answer says to the browser.

A page of some other site, open in the same browser, is the attacker to think of: it can send requests to loopback
addresses, and it can rebind its own name to 127.0.0.1. Hence, in this order, for every request:

1. the Host header must be a name of this server (a rebound name is not);
2. an Origin header must be this server's own, and so must Sec-Fetch-Site where the browser sends it;
3. the caller shows the token (`Authorization: Bearer`), or a session cookie that the start address gave;
4. with a cookie, whatever changes something needs the page's CSRF token as well;
5. bodies are bounded.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import json
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any

SESSION_S = 12 * 3600
SAFE = ("GET", "HEAD", "OPTIONS")
BODY_LIMIT = 4 << 20  # of everything but uploads
UPLOADS = "/api/uploads"

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
class Keys:
    """The token of this start, and the key that signs sessions."""

    secret: bytes
    port: int
    hosts: frozenset[str]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    upload_limit: int = 2 << 30

    @property
    def cookie(self) -> str:
        """Cookies do not know ports: two workbenches of one user must not take each other's."""
        return f"maskwright_{self.port}"

    def is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())

    def new_session(self) -> str:
        body = f"{int(time.time()) + SESSION_S}.{secrets.token_hex(16)}"
        return f"{body}.{self._sign('session ' + body)}"

    def is_session(self, text: str) -> bool:
        body, _, signature = text.rpartition(".")
        ends = body.partition(".")[0]
        signed = hmac.compare_digest(signature.encode(), self._sign("session " + body).encode())
        return signed and ends.isdecimal() and int(ends) > time.time()

    def csrf(self, session: str) -> str:
        return self._sign("csrf " + session)

    def _sign(self, text: str) -> str:
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()

    def set_cookie(self) -> str:
        return f"{self.cookie}={self.new_session()}; Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_S}"


class Refused(Exception):  # noqa: N818 - an answer, not a failure
    """A request that goes no further."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Guard:
    """Stands before the application."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], keys: Keys) -> None:
        self.app, self.keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        begun = False

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message = {**message, "headers": _with_ours(message.get("headers", []))}
            await send(message)

        try:
            self.check(scope)
            await self.app(scope, self._bounded(scope, receive), answer)
        except Refused as problem:
            await _plain(scope, answer, problem.status, str(problem))
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
        if host not in self.keys.hosts:
            raise Refused(421, "this workbench does not answer to that host name")
        start = path == "/start" and not unsafe
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host}":
            raise Refused(403, "requests from other sites are refused")
        site = headers.get("sec-fetch-site", "same-origin")
        if not start and site not in ("same-origin", "none") and (unsafe or path.startswith("/api")):
            raise Refused(403, "requests from other sites are refused")
        session = self._session(headers.get("cookie", ""))
        scope["session"] = session
        scope["csrf"] = self.keys.csrf(session) if session else ""
        if start or path.startswith("/static/"):
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.keys.is_token(token.strip()):
            return  # no browser sends it by itself, so that no other site can use it
        if not session:
            raise Refused(401, "open the address that `maskwright ui` printed: it holds the token")
        if unsafe and not hmac.compare_digest(
            headers.get("x-csrf-token", "").encode(), scope["csrf"].encode()
        ):
            raise Refused(403, "the page is out of date; reload it")

    def _session(self, cookies: str) -> str:
        try:
            found = SimpleCookie(cookies).get(self.keys.cookie)
        except CookieError:
            return ""
        return found.value if found and self.keys.is_session(found.value) else ""

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        limit = self.keys.upload_limit if scope["path"] == UPLOADS else BODY_LIMIT
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if not said.isdigit() or len(said) > 20 or int(said) > limit:
            raise Refused(413, too_large(limit))
        seen = 0

        async def bounded() -> MutableMapping[str, Any]:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise Refused(413, too_large(limit))
            return message

        return bounded


def too_large(limit: int) -> str:
    size = f"{limit / (1 << 30):.3g} GiB" if limit >= 1 << 30 else f"{limit / (1 << 20):.3g} MiB"
    return f"too large: at most {size}; larger tables can be opened by their path"


def _with_ours(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The answer's headers, and ours where it has none of that name."""
    given = list(headers)
    names = {name.lower() for name, _ in given}
    return [*given, *((k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in names)]


async def _plain(scope: Scope, send: Send, status: int, text: str) -> None:
    """An error without the application: one sentence, as JSON or as a small page."""
    if scope["path"].startswith("/api"):
        body, kind = json.dumps({"error": text}), "application/json"
    else:
        page = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Maskwright</title>'
            '<link rel="stylesheet" href="/static/style.css"></head><body><main class="narrow">'
            f"<h1>This does not work</h1><p>{html.escape(text)}</p></main></body></html>"
        )
        body, kind = page, "text/html; charset=utf-8"
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body.encode())).encode())]
    if status == 413:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})
