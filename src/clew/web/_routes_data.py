"""Routes for rows, uploads, downloads and settings."""

from __future__ import annotations

import errno
import mimetypes
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from starlette.exceptions import HTTPException

from clew._tables import InputFile
from clew.datasets import check_size
from clew.datasets._images import confined
from clew.datasets._written import date_key, is_missing
from clew.exceptions import FileError, NotFoundError, StorageError, TooLargeError
from clew.session import GROUPS, METRICS, SCALES, TEXTS, Session, strategies
from clew.web import _models as take
from clew.web import _views as show
from clew.web._worker import Worker

_TYPES = {"csv": "text/csv", "jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet",
          "tsv": "text/tab-separated-values"}  # fmt: skip
# Largest memory of an uploaded file once it is read, and largest numbers of rows and answers in one upload.
MOST_READ = 256 << 20
MOST_NEW_ROWS, MOST_NEW_ANSWERS = 50_000, 10_000
# Bytes of a download that are in memory at once.
_PIECE = 1 << 20
_READABLE = (*_TYPES, "json", "ndjson")
# Files that a card can show or play. SVG is left out, because browsers can run scripts in it.
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
    Query(min_length=1, max_length=200, description="The name of the file. Its ending gives the format.",
          examples=["answers.csv"]),
]  # fmt: skip


def data_routes(worker: Worker) -> APIRouter:
    """Routes for rows, files and settings."""
    router, session = APIRouter(tags=["data"]), worker.session

    @router.get("/rows", response_model=list[show.Row])
    async def rows(ids: Annotated[list[str], Query(min_length=1, max_length=take.MOST_SHOWN)]) -> Any:
        """Return the values of some rows: `?ids=a&ids=b`."""
        return await worker.quick(_rows, session, ids)

    @router.post("/rows", status_code=201, response_model=show.Added, openapi_extra=_FILE_BODY)
    async def add_rows(request: Request, name: FileName, annotator: take.Annotator = "me") -> Any:
        """Add the rows of a csv, tsv, jsonl or parquet file with the columns of the project."""
        ids = await _uploaded(worker, request, name, partial(_added, session, annotator))
        return show.Added(len(ids), ids[: take.MOST_SHOWN])

    @router.post("/rows/rescan", status_code=201, response_model=show.Added)
    async def rescan(annotator: take.Annotator = "me") -> Any:
        """Add rows that were appended to the data file."""
        ids = await worker.take_in(session.add_rows, annotator=annotator)
        return show.Added(len(ids), ids[: take.MOST_SHOWN])

    @router.get("/rows/file", response_class=Response, responses={200: {"content": {"*/*": {}}}})
    async def row_file(
        id: Annotated[str, Query(max_length=1000)], column: Annotated[str, Query(max_length=1000)]
    ) -> FileResponse:
        """Return the image or sound that a cell names. It must be in the data folder."""
        path = await worker.quick(_file_of, session, id, column)
        return FileResponse(path, media_type=mimetypes.guess_type(path.name)[0], content_disposition_type="inline")

    @router.post("/answers/import", status_code=201, response_model=show.Imported, openapi_extra=_FILE_BODY)
    async def import_answers(request: Request, name: FileName, annotator: take.Annotator | None = None) -> Any:
        """Import answers from a csv, tsv, jsonl or parquet file: id_1, id_2, answer."""
        return show.Imported(await _uploaded(worker, request, name, partial(_imported, session, annotator)))

    @router.get("/export/{what}", response_class=Response, responses={200: {"content": {"*/*": {}}}})
    async def export(
        what: Literal["labels", "groupings", "golden", "constraints", "answers"],
        format: Literal["csv", "tsv", "jsonl", "parquet"] = "csv",
    ) -> Response:
        """Export labels, other groupings, golden records, constraints or answers.

        In csv and tsv, cells that a spreadsheet would run are escaped.
        """
        if what in ("labels", "groupings", "golden"):
            await worker.fresh()
        file, size = await worker.slow(_exported, session, what, format)
        headers = {"Content-Disposition": f'attachment; filename="{what}.{format}"', "Content-Length": str(size)}
        return StreamingResponse(_pieces(file), media_type=_TYPES[format], headers=headers)

    @router.get("/settings", response_model=show.Project)
    async def settings() -> Any:
        """Return the settings and their possible values."""
        return await worker.slow(_project, session)

    @router.put("/settings", response_model=show.Project)
    async def change_settings(body: take.Settings) -> Any:
        """Change settings. All others keep their values."""
        chosen = body.model_dump(exclude_unset=True)
        who = chosen.pop("annotator", "me")
        if chosen:
            await worker.slow(session.set, annotator=who, **chosen)  # may encode the columns again
        return await worker.slow(_project, session)

    return router


def _rows(session: Session, ids: list[str]) -> list[show.Row]:
    found = []
    for name in ids:
        values = show.plain(session.row(name))
        missing = [column for column, value in values.items() if is_missing(value)]
        dates = {column: key for column, value in values.items() if (key := date_key(value)) is not None}
        found.append(show.Row(name, values, missing, dates, session.cluster_of(name), session.probability_of(name)))
    return found


def _file_of(session: Session, row: str, column: str) -> Path:
    """The file that a cell names, if it can be shown and is in the data folder."""
    named, folder = session.row(row).get(column), session.folder
    if folder is None or not isinstance(named, str) or not named or "\x00" in named:
        raise NotFoundError(f"Row {row!r} names no file in column {column!r}.")
    try:
        path = confined(named, folder)
    except FileError:
        raise HTTPException(403, f"{named!r} is outside the data folder. Only files in it are shown.") from None
    if path.suffix.lower() not in _SHOWABLE or not path.is_file():
        raise NotFoundError(f"There is no image or sound {named!r} in the data folder.")
    return path


async def _uploaded(worker: Worker, request: Request, name: str, use: Callable[[InputFile], Any]) -> Any:
    """Store an upload in a temporary file and use it. Messages show the user's name of the file."""
    ending = name.rpartition(".")[2].lower()
    if ending not in _READABLE:
        raise FileError(f"{name!r} has no known ending. Expected .csv, .tsv, .jsonl or .parquet.")
    with tempfile.TemporaryDirectory(prefix="clew-") as where:
        path = Path(where) / f"upload.{ending}"
        try:
            with open(path, "wb") as file:
                async for piece in request.stream():
                    file.write(piece)
            return await worker.take_in(use, InputFile.called(name, path))
        except OSError as error:
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            why = "The disk is full" if is_full else error.strerror or str(error)
            raise StorageError(f"{name} cannot be stored in {tempfile.gettempdir()}: {why}.", is_full) from None


def _added(session: Session, annotator: str, file: InputFile) -> list[Any]:
    check_size(file, MOST_READ)
    table = session.read_rows(file)
    _check_count(file, table.n_rows, MOST_NEW_ROWS, "rows")
    return session.add_rows(table, annotator=annotator)


def _imported(session: Session, annotator: str | None, file: InputFile) -> int:
    check_size(file, MOST_READ)
    found = session.read_answers(file)
    _check_count(file, len(found), MOST_NEW_ANSWERS, "answers")
    return session.import_answers(found, annotator=annotator)


def _check_count(file: InputFile, count: int, most: int, things: str) -> None:
    """Refuse too many rows or answers in one upload, because other people wait while they are recorded."""
    if count > most:
        raise TooLargeError(
            f"{file.name} holds {count:,} {things}, and the server takes {most:,} at a time. Split the file, or use "
            "the shell: clew add, clew import."
        )


def _exported(session: Session, what: str, format: str) -> tuple[BinaryIO, int]:
    """A file that has lost its name, so that it goes when it is closed, however the download ends; and its size."""
    with tempfile.TemporaryDirectory(prefix="clew-") as where:
        path = Path(where) / f"{what}.{format}"
        session.export(what, path)
        return open(path, "rb"), path.stat().st_size


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE):
            yield piece


def _project(session: Session) -> show.Project:
    settings = session.settings
    strategy = settings.get("strategy")
    settings["strategy"] = strategy["name"] if strategy else None
    choices = {
        "method": session.methods, "strategy": list(strategies()), "metric": list(METRICS),
        "scale": list(SCALES), "text": list(TEXTS), "groups": list(GROUPS),
    }  # fmt: skip
    changes = session.changes
    return show.Project(
        session.name, len(session.ids), list(settings.pop("table_columns")), str(changes) if changes else None,
        session.has_small_groups, show.plain(settings), choices,
    )  # fmt: skip
