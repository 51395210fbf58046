"""The JSON API of the workbench: everything that the pages do, for programs as well.

Send the token of the start address as `Authorization: Bearer TOKEN`. An error is `{"error": "one sentence"}`, with
status 401 or 403 (not allowed), 404, 409 (changed elsewhere, or in use), 413 (too large) or 422 (not valid). Changes of
a policy may carry the `revision` that was read before, as `If-Match`; then a change made meanwhile is not overwritten.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from maskwright.workbench.api import looking, policies, projects

router = APIRouter(prefix="/api")
for part in (projects, policies, looking):
    router.include_router(part.router)


@router.delete("/session")
def log_out(request: Request, response: Response) -> dict[str, Any]:
    """End the session of the browser that calls; the start address opens another as long as the server runs."""
    keys, session = request.app.state.keys, request.scope.get("session")
    if session is not None:
        keys.close_session(session.id)
    response.headers["set-cookie"] = keys.set_cookie(None)
    return {"ok": True}
