"""The JSON API of the workbench: everything that the pages do, for programs as well.

Send the token of the start address as `Authorization: Bearer TOKEN`. An error is `{"error": "one sentence"}`, with
status 401 or 403 (not allowed), 404, 409 (changed elsewhere, or in use), 413 (too large) or 422 (not valid). Changes of
a policy may carry the `revision` that was read before, as `If-Match`; then a change made meanwhile is not overwritten.
"""

from __future__ import annotations

from fastapi import APIRouter

from maskwright.workbench.api import browser_session, policies, projects, register, runs

router = APIRouter(prefix="/api")
for part in (projects, policies, runs, register, browser_session):
    router.include_router(part.router)
