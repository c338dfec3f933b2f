"""The ASGI application: routes, error messages and access control."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from clew.exceptions import (
    AnsweredError,
    ClewError,
    MissingExtraError,
    NotFoundError,
    StorageError,
    StrategyError,
    TooLargeError,
    UnknownOutcomeError,
)

try:
    from fastapi import Depends, FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from fastapi.staticfiles import StaticFiles
    from starlette.exceptions import HTTPException
    from starlette.routing import Match
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
# A plain schema, because FastAPI would rebuild a model for every status of every route.
_PROBLEM = {
    "type": "object",
    "properties": {
        "error": {"type": "string", "description": "What happened, which input, and what to do."},
        "field": {"type": "string", "description": "The name of the wrong field, if there is one."},
    },
    "required": ["error"],
}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": sentence, "content": {"application/json": {"schema": _PROBLEM}}}
    for status, sentence in {
        400: "A value is not allowed.",
        401: "The token is missing.",
        403: "The request comes from another site or host name, or asks for a file outside the data folder.",
        404: "There is no such row, question, answer, cluster or file.",
        408: "The rest of the request did not arrive.",
        409: "The question has another answer already.",
        412: "The page that sent this belongs to another project.",
        413: "The request, or the content of a file, is too large.",
        422: "The request does not have the expected form.",
        503: "The database cannot be written at the moment. Nothing was recorded.",
        504: "It is unknown whether this was recorded. An answer can be sent again.",
        507: "The disk is full. Nothing was recorded.",
    }.items()
}


def create_app(session: Session, *, token: str, hosts: Iterable[str] = ()) -> FastAPI:
    """Make an ASGI application for a session; `serve` also runs it.

    Parameters
    ----------
    session : Session
        The session. It stays open when the application ends.
    token : str
        Secret that every client must send, as ``Authorization: Bearer TOKEN`` or once as ``/?token=TOKEN``.
    hosts : names, optional
        Host names of the server, in addition to localhost and IP addresses.

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
        # Matrices of a question are small, and idle BLAS threads take the cores from the threads that serve people.
        with threadpool_limits(1, user_api="blas"), _collecting_less():
            worker.open()
            beat = asyncio.create_task(worker.run())
            try:
                yield
            finally:
                beat.cancel()
                await asyncio.to_thread(worker.close)

    app = FastAPI(
        title="clew", version=__version__, summary="Clustering with constraints.", docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json", lifespan=lifespan, responses=_REFUSALS, redirect_slashes=False,
    )  # fmt: skip
    app.state.worker = worker
    for routes in (asking_routes(worker), cluster_routes(worker), data_routes(worker)):
        app.include_router(routes, prefix="/api", dependencies=[Depends(_same_project)])
    app.add_api_route("/api/health", _health, tags=["server"], response_model=dict[str, str])
    app.router.default = StaticFiles(
        directory=STATIC, html=True
    )  # with a mount, a wrong method of a route would give status 404
    _tell_errors(app)
    app.add_middleware(Guard, token=token, hosts=tuple(hosts))
    return app


@contextlib.contextmanager
def _collecting_less() -> Iterator[None]:
    """Leave everything that exists now out of garbage collections, because everybody waits for each of them."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def _same_project(request: Request) -> None:
    """Refuse requests of a page that belongs to another project, which was served here before."""
    worker: Worker = request.app.state.worker
    meant = request.headers.get("x-clew-project")
    if meant is not None and meant != worker.project:
        raise HTTPException(
            412,
            f'This page belongs to another project; "{worker.session.name}" is served here now. Load the page again.',
        )


async def _health() -> dict[str, str]:
    """Tell that the server is up. Needs no token."""
    return {"status": "ok"}


# -- errors ------------------------------------------------------------------------------------------------------------


def _tell_errors(app: FastAPI) -> None:
    """Answer every error with a sentence, never with a traceback."""

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
    async def failed(request: Request, error: HTTPException) -> JSONResponse:
        methods = _methods_of(app, request) if error.status_code == 405 else []
        if methods:
            allowed = ", ".join(methods)
            return _problem(405, f"{request.method} is not allowed here. Use {allowed}.", headers={"Allow": allowed})
        if error.status_code in (404, 405):
            return _problem(404, "There is nothing here.")
        return _problem(error.status_code, str(error.detail), headers=dict(error.headers or {}))


def _methods_of(app: FastAPI, request: Request) -> list[str]:
    """HTTP methods that are allowed for the path of a request. Files of the page are read-only."""
    if not request.url.path.startswith("/api/"):
        return ["GET", "HEAD"]
    scopes = [dict(request.scope) | {"method": method} for method in ("GET", "PATCH", "POST", "PUT")]
    return [one["method"] for one in scopes if any(route.matches(one)[0] is Match.FULL for route in app.routes)]


def _code_of(error: ClewError) -> int:
    if isinstance(error, UnknownOutcomeError):
        return 504
    if isinstance(error, StorageError):
        return 507 if error.is_full else 503
    codes = {NotFoundError: 404, AnsweredError: 409, TooLargeError: 413, StrategyError: 500}
    return next((code for kind, code in codes.items() if isinstance(error, kind)), 400)


def _problem(code: int, sentence: str, field: str | None = None, headers: dict[str, str] | None = None) -> JSONResponse:
    sentence = sentence.encode(
        "utf-8", "backslashreplace"
    ).decode()  # names from files may contain half of a surrogate pair
    body = {"error": sentence} if field is None else {"error": sentence, "field": field}
    return JSONResponse(body, code, headers)
