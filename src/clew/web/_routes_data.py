"""Rows, files in and out, and settings."""

from __future__ import annotations

import mimetypes
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException

from clew._registry import by_method_name
from clew.datasets._images import confined
from clew.exceptions import ClewError, FileError, NotFoundError
from clew.session import SCALES, TEXTS, Session, strategies
from clew.web import _models as take
from clew.web import _views as show
from clew.web._worker import Worker

_TYPES = {"csv": "text/csv", "jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet",
          "tsv": "text/tab-separated-values"}  # fmt: skip
_READABLE = (*_TYPES, "json", "ndjson")
# Files a card can show or play; nothing that a browser could run, such as SVG.
_SHOWABLE = frozenset(
    {".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".avif", ".wav", ".mp3", ".ogg", ".flac", ".m4a"}
)
_FILE_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
FileName = Annotated[
    str,
    Query(min_length=1, max_length=200, description="The name of the file; its ending says the format.",
          examples=["answers.csv"]),
]  # fmt: skip


def data_routes(worker: Worker) -> APIRouter:
    """What goes in and out."""
    router, session = APIRouter(tags=["data"]), worker.session

    @router.get("/rows", response_model=list[show.Row])
    async def rows(ids: Annotated[list[str], Query(min_length=1, max_length=take.MOST_SHOWN)]) -> Any:
        """The values of some rows: `?ids=a&ids=b`."""
        return await worker.quick(_rows, session, ids)

    @router.post("/rows", status_code=201, response_model=show.Added, openapi_extra=_FILE_BODY)
    async def add_rows(request: Request, name: FileName, annotator: take.Annotator = "me") -> Any:
        """Take in new rows from a csv, tsv, jsonl or parquet file with the columns of the project."""
        ids = await _uploaded(worker, request, name, lambda path: session.add_rows(path, annotator=annotator))
        return show.Added(len(ids), ids[: take.MOST_SHOWN])

    @router.post("/rows/rescan", status_code=201, response_model=show.Added)
    async def rescan(annotator: take.Annotator = "me") -> Any:
        """Take in rows that were appended to the data file."""
        ids = await worker.slow(session.add_rows, annotator=annotator)
        return show.Added(len(ids), ids[: take.MOST_SHOWN])

    @router.get("/rows/file", response_class=Response, responses={200: {"content": {"*/*": {}}}})
    async def row_file(
        id: Annotated[str, Query(max_length=1000)], column: Annotated[str, Query(max_length=1000)]
    ) -> FileResponse:
        """The image or sound that a cell names; only from the folder of the data."""
        path = await worker.quick(_file_of, session, id, column)
        return FileResponse(path, media_type=mimetypes.guess_type(path.name)[0], content_disposition_type="inline")

    @router.post("/answers/import", status_code=201, response_model=show.Imported, openapi_extra=_FILE_BODY)
    async def import_answers(request: Request, name: FileName, annotator: take.Annotator | None = None) -> Any:
        """Take in answers from a csv, tsv, jsonl or parquet file: id_1, id_2, answer."""
        return show.Imported(
            await _uploaded(worker, request, name, lambda path: session.import_answers(path, annotator=annotator))
        )

    @router.get("/export/{what}", response_class=Response, responses={200: {"content": {"*/*": {}}}})
    async def export(
        what: Literal["labels", "constraints", "answers"],
        format: Literal["csv", "tsv", "jsonl", "parquet"] = "csv",
    ) -> Response:
        """Labels, constraints or answers as a file; in csv and tsv no cell can be run by a spreadsheet."""
        if what == "labels":
            await worker.fresh()
        content = await worker.slow(_exported, session, what, format)
        headers = {"Content-Disposition": f'attachment; filename="{what}.{format}"'}
        return Response(content, media_type=_TYPES[format], headers=headers)

    @router.get("/settings", response_model=show.Project)
    async def settings() -> Any:
        """The settings as they are, and what can be chosen."""
        return await worker.quick(_project, session)

    @router.put("/settings", response_model=show.Project)
    async def change_settings(body: take.Settings) -> Any:
        """Change settings; those left out stay as they are."""
        chosen = body.model_dump(exclude_unset=True)
        who = chosen.pop("annotator", "me")
        if chosen:
            await worker.quick(session.set, annotator=who, **chosen)
        return await worker.quick(_project, session)

    return router


def _rows(session: Session, ids: list[str]) -> list[show.Row]:
    found = []
    for name in ids:
        values = show.plain(session.row(name))
        found.append(show.Row(name, values, session.cluster_of(name)))
    return found


def _file_of(session: Session, row: str, column: str) -> Path:
    """The file a cell names, if it is one to show and lies in the folder of the data."""
    named, folder = session.row(row).get(column), session.folder
    if folder is None or not isinstance(named, str) or not named or "\x00" in named:
        raise NotFoundError(f"Row {row!r} names no file in column {column!r}.")
    try:
        path = confined(named, folder)
    except FileError:
        raise HTTPException(403, f"{named!r} is outside the folder of the data. Only files in it are shown.") from None
    if path.suffix.lower() not in _SHOWABLE or not path.is_file():
        raise NotFoundError(f"There is no image or sound {named!r} in the folder of the data.")
    return path


async def _uploaded(worker: Worker, request: Request, name: str, use: Callable[[Path], Any]) -> Any:
    """Keep an upload in a file while it is used; messages speak of it by the name it was given."""
    ending = name.rpartition(".")[2].lower()
    if ending not in _READABLE:
        raise FileError(f"{name!r} has no ending that tells its format. Expected .csv, .tsv, .jsonl or .parquet.")
    with tempfile.TemporaryDirectory(prefix="clew-") as where:
        path = Path(where) / f"upload.{ending}"
        with open(path, "wb") as file:
            async for piece in request.stream():
                file.write(piece)
        try:
            return await worker.slow(use, path)
        except ClewError as error:
            sentence = str(error).replace(str(path), name).replace(path.name, name)
            raise type(error)(sentence) from None


def _exported(session: Session, what: str, format: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="clew-") as where:
        path = Path(where) / f"{what}.{format}"
        session.export(what, path)
        return path.read_bytes()


def _project(session: Session) -> show.Project:
    settings = session.settings
    strategy = settings.get("strategy")
    settings["strategy"] = strategy["name"] if strategy else None
    choices = {
        "method": list(by_method_name()), "strategy": list(strategies()), "metric": ["euclidean", "cosine"],
        "scale": list(SCALES), "text": list(TEXTS),
    }  # fmt: skip
    changes = session.changes
    return show.Project(
        session.name, len(session.ids), list(settings.pop("table_columns")), str(changes) if changes else None,
        show.plain(settings), choices,
    )  # fmt: skip
