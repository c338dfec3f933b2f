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
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from fastapi.staticfiles import StaticFiles
    from starlette.exceptions import HTTPException
except ImportError as error:
    raise MissingExtraError("The server needs FastAPI: pip install 'clew[app]'.") from error

from clew._version import __version__
from clew.session import Session
from clew.web._routes_asking import asking_routes
from clew.web._routes_clusters import cluster_routes
from clew.web._routes_data import data_routes
from clew.web._security import Guard, check_token
from clew.web._worker import Worker

STATIC = Path(__file__).with_name("static")
# Written out: as a model, FastAPI would build it anew for every status of every route.
_PROBLEM = {
    "type": "object",
    "properties": {
        "error": {"type": "string", "description": "What happened, which input, and what to do."},
        "field": {"type": "string", "description": "The field that is wrong, where it is one."},
    },
    "required": ["error"],
}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": sentence, "content": {"application/json": {"schema": _PROBLEM}}}
    for status, sentence in {
        400: "A value does not fit.",
        401: "The token is missing.",
        403: "Another site, another name, or a file outside the folder of the data.",
        404: "It is not there.",
        409: "The question was answered otherwise.",
        413: "The request is too large.",
        422: "The request is not of the form expected.",
        503: "The database cannot be written now. Nothing was recorded.",
        507: "The disk is full. Nothing was recorded.",
    }.items()
}


def create_app(session: Session, *, token: str, hosts: Iterable[str] = ()) -> FastAPI:
    """A session as an ASGI application; see `serve` for one that runs.

    Parameters
    ----------
    session : Session
        Stays open when the application ends.
    token : str
        Everybody needs it, as ``Authorization: Bearer TOKEN`` or once as ``/?token=TOKEN``.
    hosts : names, optional
        Names the server is reached by, beside localhost and addresses.

    Examples
    --------
    >>> from clew import Session
    >>> from clew.web import create_app
    >>> with Session.create("toy.clew", [[0.0], [0.1], [5.0], [5.1]], n_clusters=2) as session:
    ...     app = create_app(session, token="secret")
    >>> "/api/questions/next" in app.openapi()["paths"]
    True
    """
    check_token(token)
    worker = Worker(session)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        worker.open()
        beat = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            beat.cancel()
            await asyncio.to_thread(worker.close)

    app = FastAPI(
        title="clew", version=__version__, summary="Clustering with what people know.", docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json", lifespan=lifespan, responses=_REFUSALS,
    )  # fmt: skip
    app.state.worker = worker
    for routes in (asking_routes(worker), cluster_routes(worker), data_routes(worker)):
        app.include_router(routes, prefix="/api")
    app.add_api_route("/api/health", _health, tags=["server"], response_model=dict[str, str])
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


def _code_of(error: ClewError) -> int:
    if isinstance(error, StorageError):
        return 507 if error.is_full else 503
    if isinstance(error, NotFoundError):
        return 404
    return 409 if isinstance(error, AnsweredError) else 400


def _problem(code: int, sentence: str, field: str | None = None, headers: dict[str, str] | None = None) -> JSONResponse:
    body = {"error": sentence} if field is None else {"error": sentence, "field": field}
    return JSONResponse(body, code, headers)
