"""Routes for clusters, corrections and the map."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse

from clew.exceptions import DataError
from clew.session import Cluster, Grouping, Session
from clew.web import _models as take
from clew.web import _views as show
from clew.web._embedding import NeighbourMap, flat
from clew.web._worker import Worker

_BYTES: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}
_LATER: dict[int | str, dict[str, Any]] = {
    202: {"description": "The map is being computed. The event `jobs` tells when it is ready."}
}


def cluster_routes(worker: Worker) -> APIRouter:
    """Routes for clusters and the map."""
    router, session = APIRouter(tags=["clusters"]), worker.session
    chart = Chart(session)

    async def settle(wait: bool) -> None:
        if wait or not worker.fits.count:
            await worker.fresh()

    @router.get("/labels", response_model=dict[str, int])
    async def labels(wait: bool = True) -> Any:
        """Return the cluster id of each row. `wait=false` returns the current clusters without the latest answers."""
        await settle(wait)
        found = await worker.slow(session.labels, refit=False)
        return JSONResponse({str(row): cluster for row, cluster in found.items()})

    @router.get("/clusters", response_model=list[Cluster])
    async def clusters(wait: bool = True) -> Any:
        """List the clusters with their names, sizes, typical and borderline rows."""
        await settle(wait)
        return await worker.slow(session.clusters, refit=False)

    @router.get("/clusters/{cluster}/rows", response_model=list[Any])
    async def members(
        cluster: take.PathNumber,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=take.MOST_ROWS)] = 100,
    ) -> Any:
        """List the row ids of a cluster, most typical first."""
        await settle(False)
        return (await worker.slow(session.members, cluster))[offset : offset + limit]

    @router.patch("/clusters/{cluster}", response_model=list[Cluster])
    async def name(cluster: take.PathNumber, body: take.Named) -> Any:
        """Name a cluster. Returns all clusters."""
        await settle(False)
        await worker.quick(session.name_cluster, cluster, body.name, annotator=body.annotator)
        return await worker.slow(session.clusters, refit=False)

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

    @router.get("/map", response_class=Response, responses=_BYTES | _LATER)
    async def points(embedding: Literal["pca", "neighbours"] = "pca") -> Response:
        """Return the positions of all rows on the map: x and y as little-endian float32, from -1 to 1.

        `pca` uses principal components. `neighbours` uses t-SNE, which keeps near rows near. It is computed in the
        background, with status 202 until it is ready. The header `Clew-Rows` changes when rows are added. The ids and
        clusters of the map have the same header.
        """
        drawn = await worker.slow(chart.drawn)
        if embedding == "pca":
            return _bytes(drawn.points, drawn.version)
        made = await worker.slow(
            worker.jobs.look, "map", drawn.version, lambda: NeighbourMap.of(drawn.rows, drawn.random_state)
        )
        if made.key != drawn.version:
            return Response(status_code=202, headers={"Clew-Rows": str(drawn.version)})
        if made.problem is not None:
            raise DataError(made.problem)
        return _bytes(made.value, drawn.version)

    @router.get("/map/clusters", response_class=Response, responses=_BYTES)
    async def point_clusters() -> Response:
        """Return the cluster id of each point as little-endian int32; -1 if it has none yet."""
        await settle(False)
        drawn = await worker.slow(chart.drawn)
        return _bytes((await worker.slow(chart.clusters)).astype("<i4"), drawn.version)

    @router.get("/map/ids", response_model=list[Any])
    async def point_ids() -> Any:
        """Return the row id of each point."""
        drawn = await worker.slow(chart.drawn)
        return JSONResponse(drawn.ids, headers={"Clew-Rows": str(drawn.version)})

    return router


def _correct(session: Session, body: take.CorrectionBody) -> Any:
    given = body.arguments()
    if body.kind == "move":
        given = {"cluster": None} | given
    return getattr(session, body.kind)(**given, annotator=body.annotator)


def _bytes(array: npt.NDArray[Any], version: int) -> Response:
    return Response(array.tobytes(), media_type="application/octet-stream", headers={"Clew-Rows": str(version)})


@dataclass(frozen=True)
class Drawn:
    """The points of the map, and which rows they are."""

    version: int
    ids: list[Any]
    rows: Any
    random_state: int
    points: npt.NDArray[np.float32]


class Chart:
    """Positions of the rows on the map, computed once until rows change."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turn = threading.Lock()
        self._drawn: Drawn | None = None

    def drawn(self) -> Drawn:
        """The map of the current rows."""
        with self._turn:
            plan = self._session.plan_fit()
            if self._drawn is None or self._drawn.rows is not plan.X:
                points = flat(plan.X, plan.random_state)
                self._drawn = Drawn(plan.version, self._session.ids, plan.X, plan.random_state, points)
            return self._drawn

    def clusters(self) -> npt.NDArray[np.int64]:
        """The cluster of each point."""
        return self._session.plan_fit().current
