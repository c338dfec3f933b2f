"""Routes for clusters, corrections and the map."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Query, Response
from fastapi import Path as PathParameter
from fastapi.responses import JSONResponse
from pydantic import Field

from clew.exceptions import DataError, NotFoundError
from clew.session import Grouping, Session
from clew.web import _models as take
from clew.web import _views as show
from clew.web._embedding import NeighbourMap, flat
from clew.web._tiles import DEEPEST, DensityTiles
from clew.web._worker import Worker

_BYTES: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}
_LATER: dict[int | str, dict[str, Any]] = {
    202: {"description": "The map is being computed. The event `jobs` tells when it is ready."}
}
_LATER_RESPONSE = Response(status_code=202)
Embedding = Literal["pca", "neighbours"]
Box = Annotated[list[Annotated[float, Field(allow_inf_nan=False)]] | None, Query(min_length=4, max_length=4)]
Level = Annotated[int, PathParameter(ge=0, le=DEEPEST)]
TilePlace = Annotated[int, PathParameter(ge=0, lt=2**DEEPEST)]


def cluster_routes(worker: Worker) -> APIRouter:
    """Routes for clusters and the map."""
    router, session = APIRouter(tags=["clusters"]), worker.session
    chart = Chart(session)

    async def settle(wait: bool) -> None:
        """Wait for a fit with all answers. With ``wait=False``, only if there are no clusters yet."""
        if wait or not (worker.fits.count or await worker.slow(chart.has_clusters)):
            await worker.fresh()

    @router.get("/labels", response_model=dict[str, int])
    async def labels(wait: bool = True) -> Any:
        """Return the cluster id of each row. `wait=false` returns the current clusters without the latest answers."""
        await settle(wait)
        found = await worker.slow(session.labels, refit=False)
        return JSONResponse({str(row): cluster for row, cluster in found.items()})

    @router.get("/clusters", response_model=list[show.ClusterView])
    async def clusters(wait: bool = True) -> Any:
        """List the clusters with their names, titles, sizes, typical and borderline rows."""
        await settle(wait)
        return await worker.slow(show.clusters, session)

    @router.get("/clusters/{cluster}/rows", response_model=list[Any])
    async def members(
        cluster: take.PathNumber,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=take.MOST_ROWS)] = 100,
    ) -> Any:
        """List the row ids of a cluster, most typical first."""
        await settle(False)
        return (await worker.slow(session.members, cluster))[offset : offset + limit]

    @router.patch("/clusters/{cluster}", response_model=list[show.ClusterView])
    async def name(cluster: take.PathNumber, body: take.Named) -> Any:
        """Name a cluster. Returns all clusters."""
        await settle(False)
        await worker.quick(session.name_cluster, cluster, body.name, annotator=body.annotator)
        return await worker.slow(show.clusters, session)

    @router.get("/groupings", response_model=list[Grouping])
    async def groupings() -> Any:
        """List the stored alternative groupings of the rows, oldest first."""
        await settle(False)
        return await worker.slow(session.groupings)

    @router.post("/groupings", status_code=201, response_model=Grouping)
    async def regroup(body: take.NewGrouping) -> Any:
        """Find another way to group the rows, unlike the clusters, and keep it under a name. Clusters do not change."""
        await worker.fresh()
        return await worker.slow(
            session.regroup, body.name, n_clusters=body.n_clusters, annotator=body.annotator, refit=False
        )

    @router.post("/groupings/remove", response_model=list[Grouping])
    async def remove_grouping(body: take.GroupingName) -> Any:
        """Remove a grouping. Undo brings it back. Returns the others."""
        await worker.quick(session.remove_grouping, body.name, annotator=body.annotator)
        return await worker.slow(session.groupings)

    @router.get("/groupings/labels", response_model=dict[str, int])
    async def grouping_labels(name: take.Word) -> Any:
        """Return the group of each row by a kept grouping; rows that were added later are left out."""
        found = await worker.slow(session.grouping_labels, name)
        return JSONResponse({str(row): group for row, group in found.items()})

    @router.post("/corrections", status_code=201, response_model=show.CorrectionView)
    async def correct(body: take.CorrectionBody) -> Any:
        """Merge, split, move or never join, in this and every later fit. `conflict` lists contradictions."""
        await settle(False)
        return show.correction(await worker.slow(_correct, session, body))

    @router.post("/corrections/preview", response_model=show.CorrectionView)
    async def preview(body: take.CorrectionBody) -> Any:
        """Return the changes that a correction would make, without recording it."""
        await settle(False)
        return show.correction(await worker.slow(session.preview, body.kind, **body.arguments()))

    async def located(embedding: Embedding) -> Located | None:
        """The map by an embedding. None while it is being computed."""
        drawn = await worker.slow(chart.drawn)
        if embedding == "pca":
            return chart.located(drawn, embedding, drawn.points)
        made = await worker.slow(
            worker.jobs.look, "map", drawn.version, lambda: NeighbourMap.of(drawn.rows, drawn.random_state)
        )
        if made.key != drawn.version:
            return None
        if made.problem is not None:
            raise DataError(made.problem)
        return chart.located(drawn, embedding, made.value)

    @router.get("/map", response_class=Response, responses=_BYTES | _LATER)
    async def points(embedding: Embedding = "pca", box: Box = None) -> Response:
        """Return the positions of all rows on the map: x and y as little-endian float32, from -1 to 1.

        `pca` uses principal components. `neighbours` uses t-SNE, which keeps near rows near. It is computed in the
        background, with status 202 until it is ready. `box` is left, bottom, right and top of a part of the map, and
        only its rows are returned: `?box=-1&box=-1&box=0&box=0`. The header `Clew-Rows` changes when rows are added.
        The ids and clusters of the map have the same header.
        """
        found = await located(embedding)
        return _LATER_RESPONSE if found is None else _bytes(found.points[found.inside(box)], found.drawn.version)

    @router.get("/map/clusters", response_class=Response, responses=_BYTES | _LATER)
    async def point_clusters(embedding: Embedding = "pca", box: Box = None) -> Response:
        """Return the cluster id of each point as little-endian int32; -1 if it has none yet."""
        await settle(False)
        found = await located(embedding)
        if found is None:
            return _LATER_RESPONSE
        clusters = (await worker.slow(chart.clusters)).astype("<i4")
        return _bytes(clusters[found.inside(box)], found.drawn.version)

    @router.get("/map/ids", response_model=list[Any], responses=_LATER)
    async def point_ids(embedding: Embedding = "pca", box: Box = None) -> Any:
        """Return the row id of each point."""
        found = await located(embedding)
        if found is None:
            return _LATER_RESPONSE
        return JSONResponse(
            found.drawn.ids[found.inside(box)].tolist(), headers={"Clew-Rows": str(found.drawn.version)}
        )

    @router.get("/map/tiles/{level}/{column}/{row}", response_class=Response, responses=_BYTES | _LATER)
    async def tile(level: Level, column: TilePlace, row: TilePlace, embedding: Embedding = "pca") -> Response:
        """Return how many points are in each bin of a tile of the map, and their most frequent cluster.

        Level z has 2^z × 2^z tiles, counted from the lower left, and a tile has 256 × 256 bins. Of the n bins that hold
        points, the response has n counts (uint32), n clusters (int32) and n bins (uint16, 256 y + x), little-endian.
        """
        if max(column, row) >= 2**level:
            raise NotFoundError(f"Level {level} of the map has {2**level} columns and rows of tiles, from 0.")
        await settle(False)
        found = await located(embedding)
        if found is None:
            return _LATER_RESPONSE
        clusters = await worker.slow(chart.clusters)
        content = (await worker.slow(found.tiles.tile, level, column, row, clusters)).packed()
        return _octets(content, found.drawn.version)

    return router


def _correct(session: Session, body: take.CorrectionBody) -> Any:
    given = body.arguments()
    if body.kind == "move":
        given = {"cluster": None} | given
    return getattr(session, body.kind)(**given, annotator=body.annotator)


def _bytes(array: npt.NDArray[Any], version: int) -> Response:
    return _octets(array.tobytes(), version)


def _octets(content: bytes, version: int) -> Response:
    return Response(content, media_type="application/octet-stream", headers={"Clew-Rows": str(version)})


@dataclass(frozen=True)
class Drawn:
    """The points of the map by principal components, and which rows they are."""

    version: int
    ids: npt.NDArray[np.object_]
    rows: Any
    random_state: int
    points: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Located:
    """The points of the map by one embedding."""

    drawn: Drawn
    points: npt.NDArray[np.float32]

    @cached_property
    def tiles(self) -> DensityTiles:
        """The density of the points."""
        return DensityTiles(self.points)

    def inside(self, box: list[float] | None) -> npt.NDArray[np.bool_] | slice:
        """Which points are in a box, borders included. Without a box, all of them."""
        if box is None:
            return slice(None)
        low, high = np.array(box[:2]), np.array(box[2:])
        return np.asarray(((self.points >= low) & (self.points <= high)).all(axis=1))


def _objects(values: list[Any]) -> npt.NDArray[np.object_]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


class Chart:
    """Positions of the rows on the map, computed once until rows change."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turn = threading.Lock()
        self._drawn: Drawn | None = None
        self._located: dict[str, Located] = {}

    def drawn(self) -> Drawn:
        """The map of the current rows."""
        with self._turn:
            rows = self._session.placed_rows()
            if self._drawn is None or self._drawn.rows is not rows.X:
                points = flat(rows.X, rows.random_state)
                self._drawn = Drawn(rows.version, _objects(self._session.ids), rows.X, rows.random_state, points)
                self._located = {}
            return self._drawn

    def located(self, drawn: Drawn, embedding: str, points: npt.NDArray[np.float32]) -> Located:
        """The map by one embedding, kept until rows change."""
        with self._turn:
            kept = self._located.get(embedding)
            if kept is None or kept.points is not points:
                kept = self._located[embedding] = Located(drawn, points)
            return kept

    def clusters(self) -> npt.NDArray[np.int64]:
        """The cluster of each point."""
        return self._session.placed_rows().clusters

    def has_clusters(self) -> bool:
        """Whether any row is in a cluster. The clusters may be from before the latest answers."""
        return bool((self.clusters() >= 0).any())
