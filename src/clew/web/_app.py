"""The application: routes, errors as sentences, and the guard around it all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

from clew.exceptions import (
    AnsweredError,
    ClewError,
    MissingExtraError,
    NotFoundError,
    StorageError,
)

try:
    from fastapi import APIRouter, FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from fastapi.staticfiles import StaticFiles
    from starlette.exceptions import HTTPException
except ImportError as error:
    raise MissingExtraError("The server needs FastAPI: pip install 'clew[app]'.") from error

from clew._version import __version__
from clew.session import Session
from clew.web import _views as show
from clew.web._routes_asking import asking_routes
from clew.web._routes_clusters import cluster_routes
from clew.web._routes_data import data_routes
from clew.web._security import Guard
from clew.web._worker import Worker

STATIC = Path(__file__).with_name("static")
_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": show.Problem, "description": "A value does not fit."},
    401: {"model": show.Problem, "description": "The token is missing."},
    403: {"model": show.Problem, "description": "Another site, another name, or a file outside the data's folder."},
    404: {"model": show.Problem, "description": "It is not there."},
    409: {"model": show.Problem, "description": "The question was answered otherwise."},
    413: {"model": show.Problem, "description": "The request is too large."},
    422: {"model": show.Problem, "description": "The request is not of the form expected."},
    503: {"model": show.Problem, "description": "The database cannot be written now. Nothing was recorded."},
    507: {"model": show.Problem, "description": "The disk is full. Nothing was recorded."},
}


def create_app(session: Session, *, token: str, hosts: Iterable[str] = (), files: Path | None = None) -> FastAPI:
    """A session as an ASGI application; see `serve` for one that runs.

    Parameters
    ----------
    session : Session
        Stays open when the application ends.
    token : str
        Everybody needs it, as ``Authorization: Bearer TOKEN`` or once as ``/?token=TOKEN``.
    hosts : names, optional
        Names the server is reached by, beside localhost and addresses.
    files : path, optional
        The folder that images and sounds named in cells are in.

    Examples
    --------
    >>> from clew import Session
    >>> from clew.web import create_app
    >>> with Session.create("toy.clew", [[0.0], [0.1], [5.0], [5.1]], n_clusters=2) as session:
    ...     app = create_app(session, token="secret")
    >>> "/api/questions/next" in app.openapi()["paths"]
    True
    """
    worker = Worker(session)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        beat = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.closing = True
            beat.cancel()
            await asyncio.to_thread(worker.close)

    app = FastAPI(
        title="clew", version=__version__, summary="Clustering with what people know.", docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json", lifespan=lifespan,
    )  # fmt: skip
    app.state.worker = worker
    api = APIRouter(prefix="/api", responses=_REFUSALS)
    for routes in (asking_routes(worker), cluster_routes(worker), data_routes(worker, files)):
        api.include_router(routes)
    api.add_api_route("/health", _health, tags=["server"], response_model=dict[str, str])
    app.include_router(api)
    app.mount("/", StaticFiles(directory=STATIC, html=True), name="page")
    _tell_errors(app)
    app.add_middleware(Guard, token=token, hosts=tuple(hosts))
    return app


async def _health() -> dict[str, str]:
    """Whether the server is up; needs no token."""
    return {"status": "ok"}


# -- errors ------------------------------------------------------------------------------------------------------------


def _tell_errors(app: FastAPI) -> None:
    """Every error is a sentence; no traceback leaves the server."""

    @app.exception_handler(ClewError)
    async def refused(_: Request, error: ClewError) -> JSONResponse:
        return _problem(_code_of(error), str(error))

    @app.exception_handler(RequestValidationError)
    async def misformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = [str(part) for part in first["loc"][1:]] or ["body"]
        sentence = str(first["msg"]).removeprefix("Value error, ")
        if first["loc"] == ("body",):
            sentence += ". Send JSON, with Content-Type: application/json"
        return _problem(422, f"{'.'.join(where)}: {sentence}.", ".".join(where))

    @app.exception_handler(HTTPException)
    async def failed(_: Request, error: HTTPException) -> JSONResponse:
        sentence = "There is nothing here." if error.detail == "Not Found" else str(error.detail)
        return _problem(error.status_code, sentence, headers=dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> JSONResponse:
        return _problem(500, "This is a bug in clew; the terminal of the server shows more. Please report it.")


def _code_of(error: ClewError) -> int:
    if isinstance(error, StorageError):
        return 507 if error.is_full else 503
    if isinstance(error, NotFoundError):
        return 404
    return 409 if isinstance(error, AnsweredError) else 400


def _problem(code: int, sentence: str, field: str | None = None, headers: dict[str, str] | None = None) -> JSONResponse:
    body = {"error": sentence} if field is None else {"error": sentence, "field": field}
    return JSONResponse(body, code, headers)
