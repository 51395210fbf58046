"""The application put together: guard, API, pages, static files, and errors as one clear sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from maskwright.errors import MaskwrightError
from maskwright.version import __version__
from maskwright.workbench import api, pages
from maskwright.workbench.jobs import Conflict
from maskwright.workbench.roots import Roots
from maskwright.workbench.security import AccessKeys, Guard
from maskwright.workbench.workspace import NotFound, Workspace

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
