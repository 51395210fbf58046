"""Calls about the session of a browser."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

router = APIRouter()


@router.delete("/session")
def log_out(request: Request, response: Response) -> dict[str, Any]:
    """End the session of the browser that calls; the start address opens another as long as the server runs."""
    keys, session = request.app.state.keys, request.scope.get("session")
    if session is not None:
        keys.close_session(session.id)
    response.headers["set-cookie"] = keys.set_cookie(None)
    return {"ok": True}
