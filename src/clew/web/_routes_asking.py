"""Routes for questions, answers, conflicts and reviews."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException

from clew.session import Conflict, Question, Record, Told
from clew.web import _models as take
from clew.web import _views as show
from clew.web._events import MOST_STREAMS, Latest, stream
from clew.web._worker import Worker


def asking_routes(worker: Worker) -> APIRouter:
    """Routes for asking and answering."""
    router, session = APIRouter(tags=["asking"]), worker.session

    @router.post("/questions/next", response_model=Question | list[Question] | None)
    async def next_question(body: take.Next) -> Any:
        """The next question, leased to this person, or null when nothing is left; with `n`, a list.

        `holding` lists the questions on the screen. Other open questions of this person come back first.
        """
        found = await worker.write(worker.ahead.take, body.annotator, body.n or 1, body.holding)
        if found and body.n is None:
            worker.draw_ahead(body.annotator)
        if body.n is None:
            return found[0] if found else None
        return found

    @router.post("/visits", response_model=show.Welcome)
    async def visit(body: take.Visit) -> Any:
        """Register a person who opens the page. Returns the project, and whether somebody else may have this name."""
        return await worker.quick(_welcome, worker, body.annotator, body.browser)

    @router.get("/questions", response_model=list[Question])
    async def pending() -> Any:
        """List questions that wait for an answer."""
        return await worker.quick(session.pending)

    @router.post("/questions/open", response_model=list[int])
    async def still_open(body: take.Held) -> Any:
        """Return the questions that still need an answer. A page drops the others."""
        return await worker.quick(_still_open, worker, body.questions)

    @router.post("/answers", status_code=201, response_model=Told)
    async def answer(body: take.AnswerBody) -> Any:
        """Record an answer; it is stored when this returns. Sending the same answer again changes nothing."""
        return await worker.write(
            session.tell, body.question, body.answer, annotator=body.annotator, seconds=body.seconds,
            confidence=body.confidence, comment=body.comment, flag=body.flag, about=body.about,
        )  # fmt: skip

    @router.get("/answers", response_model=list[Record])
    async def answers(
        annotator: take.Annotator | None = None,
        after: take.PathNumber = 0,
        limit: Annotated[int, Query(ge=1, le=1_000_000)] = 1_000_000,
    ) -> Any:
        """List the answers in effect, oldest first."""
        found = await worker.slow(session.answers)
        chosen = [one for one in found if one.id > after and annotator in (None, one.annotator)]
        return JSONResponse(await worker.slow(show.plain, chosen[:limit]))

    @router.patch("/answers/{answer_id}", response_model=Told)
    async def revise(answer_id: take.PathNumber, body: take.Revised) -> Any:
        """Change an earlier answer; the log keeps both."""
        return await worker.write(
            session.revise, answer_id, body.answer, annotator=body.annotator, confidence=body.confidence,
            comment=body.comment,
        )  # fmt: skip

    @router.post("/undo", response_model=show.Undone)
    async def undo(body: take.Undo | None = None) -> Any:
        """Undo the last action, of anybody or of one person. `undone` is null if there is none."""
        return await worker.write(_undone, worker, None if body is None else body.annotator)

    @router.get("/progress", response_model=show.Status)
    async def progress() -> Any:
        """Return the progress, and whether to stop asking."""
        return await worker.quick(show.status, worker)

    @router.get("/conflicts", response_model=list[Conflict])
    async def conflicts() -> Any:
        """List the contradictions that wait to be resolved, each with its chain of answers."""
        return await worker.slow(session.conflicts)

    @router.post("/conflicts/{conflict_id}/resolve", response_model=list[Conflict])
    async def resolve(conflict_id: take.PathNumber, body: take.Resolved) -> Any:
        """Resolve a conflict: change an answer, withdraw a correction, keep preferences (soft), unsure, or repair.

        Returns the conflicts that are left.
        """
        return await worker.write(
            session.resolve, conflict_id, body.how, answer_id=body.answer_id, answer=body.answer,
            correction=body.correction, annotator=body.annotator,
        )  # fmt: skip

    @router.post("/answers/{answer_id}/confirm", response_model=Record)
    async def confirm(answer_id: take.PathNumber, body: take.Confirmed) -> Any:
        """Confirm an answer after a second look. It is not listed for review any more."""
        return await worker.write(session.confirm, answer_id, annotator=body.annotator)

    @router.get("/review", response_model=show.Reviewed)
    async def review(limit: Annotated[int, Query(ge=1, le=10_000)] = 200) -> Any:
        """List answers worth a second look, most suspicious first; a quick list until the full review is done."""
        return await worker.slow(_review, worker, limit)

    @router.get("/history", response_model=list[show.HistoryEntry])
    async def history(before: take.PathNumber | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> Any:
        """List all events, newest first. For the next page, pass the last event number as `before`."""
        return await worker.slow(_history, worker, before, limit)

    @router.get("/agreement", response_model=show.Agreed)
    async def agreement() -> Any:
        """Return the agreement of annotators on pairs that were answered more than once."""
        return show.agreed(await worker.slow(session.agreement))

    latest = Latest(worker)

    @router.get("/events", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}})
    async def events() -> StreamingResponse:
        """Server-sent events: `progress` after every change, `clusters` after every fit, `jobs` after long work."""
        if latest.n_streams >= MOST_STREAMS:
            raise HTTPException(429, f"{MOST_STREAMS} event streams are open already. Close some pages.")
        return StreamingResponse(stream(worker, latest), media_type="text/event-stream")

    return router


def _welcome(worker: Worker, annotator: str, browser: str) -> show.Welcome:
    """Register a visit. The name is taken if it was first used in another browser."""
    first = worker.visitors.setdefault(annotator, browser)
    if len(worker.visitors) > take.MOST_ROWS:
        worker.visitors.pop(next(iter(worker.visitors)))
    session = worker.session
    names = {event.annotator for event in session.history()} | {question.annotator for question in session.pending()}
    return show.Welcome(worker.project, first != browser or annotator in names)


def _still_open(worker: Worker, questions: list[int]) -> list[int]:
    pending = {one.id: one for one in worker.session.pending()}
    return [one for one in questions if one in pending and worker.session.worth_asking(pending[one])]


def _review(worker: Worker, limit: int) -> show.Reviewed:
    """The latest full review without answers decided since, plus quick items for answers that came since."""
    session = worker.session
    quick = session.review(quick=True)
    made = worker.jobs.look("review", session.said_version, session.plan_review)
    if made.value is None or made.key is None:
        return show.Reviewed(quick[:limit], False, made.working, made.problem)
    now = {record.id: record for record in session.answers()}
    kept = [one for one in made.value if one.answer_id in now and _is_open(now[one.answer_id], one.answer)]
    listed = {one.answer_id for one in kept}
    fresh = [one for one in quick if one.answer_id > made.key and one.answer_id not in listed]
    return show.Reviewed([*kept, *fresh][:limit], True, made.working, made.problem)


def _is_open(record: Record, answer: str) -> bool:
    """Whether an answer is undecided since its review."""
    return record.answer == answer and record.confirmed is None


def _undone(worker: Worker, annotator: str | None) -> show.Undone:
    event = worker.session.undo(annotator)
    if event is None:
        return show.Undone(None, None)
    number = event.payload.get("question") if event.kind == "answer" else None
    again = next((one for one in worker.session.pending() if one.id == number), None)
    return show.Undone(show.history_entry(event, undone=True), again)


def _history(worker: Worker, before: int | None, limit: int) -> list[show.HistoryEntry]:
    events = worker.session.history()
    undone = {event.payload["undoes"] for event in events if event.kind == "undo"}
    chosen = [event for event in reversed(events) if before is None or event.seq < before]
    return [show.history_entry(event, event.seq in undone) for event in chosen[:limit]]
