"""Clusters, corrections of them, and the map."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse

from clew.exceptions import DataError
from clew.session import Cluster, Session
from clew.web import _models as take
from clew.web import _views as show
from clew.web._embedding import NeighbourMap, flat
from clew.web._worker import Worker

_BYTES: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}
_LATER: dict[int | str, dict[str, Any]] = {
    202: {"description": "It is being made; an event `map` tells when it is there."}
}


def cluster_routes(worker: Worker) -> APIRouter:
    """What the answers make of the rows."""
    router, session = APIRouter(tags=["clusters"]), worker.session
    chart = Chart(session)

    async def settle(wait: bool) -> None:
        if wait or not worker.fits.count:
            await worker.fresh()

    @router.get("/labels", response_model=dict[str, int])
    async def labels(wait: bool = True) -> Any:
        """The cluster id of each row; `wait=false` takes the clusters as they are, without the latest answers."""
        await settle(wait)
        found = await worker.slow(session.labels, refit=False)
        return JSONResponse({str(row): cluster for row, cluster in found.items()})

    @router.get("/clusters", response_model=list[Cluster])
    async def clusters(wait: bool = True) -> Any:
        """The clusters by id, with their names, sizes, typical and borderline rows."""
        await settle(wait)
        return await worker.slow(session.clusters, refit=False)

    @router.get("/clusters/{cluster}/rows", response_model=list[Any])
    async def members(
        cluster: take.PathNumber,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=take.MOST_ROWS)] = 100,
    ) -> Any:
        """Ids of the rows of a cluster, the most typical first."""
        await settle(False)
        return (await worker.slow(session.members, cluster))[offset : offset + limit]

    @router.patch("/clusters/{cluster}", response_model=list[Cluster])
    async def name(cluster: take.PathNumber, body: take.Named) -> Any:
        """Give a cluster a name, which stays with its id. Gives all clusters."""
        await settle(False)
        await worker.quick(session.name_cluster, cluster, body.name, annotator=body.annotator)
        return await worker.slow(session.clusters, refit=False)

    @router.post("/corrections", status_code=201, response_model=show.Correction)
    async def correct(body: take.Correction) -> Any:
        """Merge, split, move or never join; holds in every later fit. `conflict` says what it contradicts."""
        await settle(False)
        return show.correction(await worker.slow(_correct, session, body))

    @router.post("/corrections/preview", response_model=show.Correction)
    async def preview(body: take.Correction) -> Any:
        """What a correction would change, without making it."""
        await settle(False)
        return show.correction(await worker.slow(session.preview, body.kind, **body.arguments()))

    @router.get("/map", response_class=Response, responses=_BYTES | _LATER)
    async def points(embedding: Literal["pca", "neighbours"] = "pca") -> Response:
        """All rows in two dimensions: x and y of each as float32, little-endian, from -1 to 1.

        `pca` shows what differs most, at once; `neighbours` keeps near rows near (t-SNE) and is made in the background:
        202 until it is there. The header `Clew-Rows` changes when rows are added; ids and clusters of the map carry the
        same one.
        """
        drawn = await worker.slow(chart.drawn)
        if embedding == "pca":
            return _bytes(drawn.points, drawn.version)
        made = await worker.slow(
            worker.errands.look, "map", drawn.version, lambda: NeighbourMap.of(drawn.rows, drawn.random_state)
        )
        if made.key != drawn.version:
            return Response(status_code=202, headers={"Clew-Rows": str(drawn.version)})
        if made.problem is not None:
            raise DataError(made.problem)
        return _bytes(made.value, drawn.version)

    @router.get("/map/clusters", response_class=Response, responses=_BYTES)
    async def point_clusters() -> Response:
        """The cluster id of each point as int32, little-endian; -1 for none yet."""
        await settle(False)
        drawn = await worker.slow(chart.drawn)
        return _bytes((await worker.slow(chart.clusters)).astype("<i4"), drawn.version)

    @router.get("/map/ids", response_model=list[Any])
    async def point_ids() -> Any:
        """The row id of each point."""
        drawn = await worker.slow(chart.drawn)
        return JSONResponse(drawn.ids, headers={"Clew-Rows": str(drawn.version)})

    return router


def _correct(session: Session, body: take.Correction) -> Any:
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
    """Where each row is on the map: worked out once for as long as the rows stay the same."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turn = threading.Lock()
        self._drawn: Drawn | None = None

    def drawn(self) -> Drawn:
        """The map of the present rows."""
        with self._turn:
            plan = self._session.plan_fit()
            if self._drawn is None or self._drawn.rows is not plan.X:
                points = flat(plan.X, plan.random_state)
                self._drawn = Drawn(plan.version, self._session.ids, plan.X, plan.random_state, points)
            return self._drawn

    def clusters(self) -> npt.NDArray[np.int64]:
        """The cluster of each point."""
        return self._session.plan_fit().current
