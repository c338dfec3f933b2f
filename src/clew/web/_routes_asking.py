"""Questions, answers, and second thoughts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, StreamingResponse

from clew.session import Conflict, Question, Record, Told
from clew.web import _models as take
from clew.web import _views as show
from clew.web._events import Latest, stream
from clew.web._worker import Worker


def asking_routes(worker: Worker) -> APIRouter:
    """The loop of asking and answering."""
    router, session = APIRouter(tags=["asking"]), worker.session

    @router.post("/questions/next", response_model=Question | list[Question] | None)
    async def next_question(body: take.Next) -> Any:
        """The next question, leased to this person, or null when nothing is left; with `n`, a list.

        A page says which questions it is `holding`; those of this person that it lost come back first.
        """
        found = await worker.write(worker.ahead.take, body.annotator, body.n or 1, body.holding)
        if found and body.n is None:
            worker.draw_ahead(body.annotator)
        if body.n is None:
            return found[0] if found else None
        return found

    @router.get("/questions", response_model=list[Question])
    async def pending() -> Any:
        """Questions that wait for an answer."""
        return await worker.quick(session.pending)

    @router.post("/questions/open", response_model=list[int])
    async def still_open(body: take.Held) -> Any:
        """Which of these questions wait for an answer that nothing implies yet; a page drops the others."""
        return await worker.quick(_still_open, worker, body.questions)

    @router.post("/answers", status_code=201, response_model=Told)
    async def answer(body: take.Answered) -> Any:
        """Record an answer; it is safe once this returns. The same answer again changes nothing."""
        return await worker.write(
            session.tell, body.question, body.answer, annotator=body.annotator, seconds=body.seconds,
            confidence=body.confidence, comment=body.comment, flag=body.flag,
        )  # fmt: skip

    @router.get("/answers", response_model=list[Record])
    async def answers(
        annotator: take.Annotator | None = None,
        after: take.PathNumber = 0,
        limit: Annotated[int, Query(ge=1, le=1_000_000)] = 1_000_000,
    ) -> Any:
        """Answers in effect, oldest first."""
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
        """Take back the last thing said, by anybody or by one person; `undone` is null if there is none."""
        return await worker.write(_undone, worker, None if body is None else body.annotator)

    @router.get("/progress", response_model=show.Status)
    async def progress() -> Any:
        """Where things stand, and whether it is time to stop."""
        return await worker.quick(show.status, worker)

    @router.get("/conflicts", response_model=list[Conflict])
    async def conflicts() -> Any:
        """What contradicts what, with the chain of answers; each waits to be resolved."""
        return await worker.slow(session.conflicts)

    @router.post("/conflicts/{conflict_id}/resolve", response_model=list[Conflict])
    async def resolve(conflict_id: take.PathNumber, body: take.Resolved) -> Any:
        """Settle a conflict: change one answer, keep all as preferences (soft), or unsure. Gives those left."""
        return await worker.write(
            session.resolve, conflict_id, body.how, answer_id=body.answer_id, answer=body.answer,
            annotator=body.annotator,
        )  # fmt: skip

    @router.post("/answers/{answer_id}/confirm", response_model=Record)
    async def confirm(answer_id: take.PathNumber, body: take.Confirmed) -> Any:
        """Keep an answer after a second look; it is not listed for review any more."""
        return await worker.write(session.confirm, answer_id, annotator=body.annotator)

    @router.get("/review", response_model=show.Reviewed)
    async def review(limit: Annotated[int, Query(ge=1, le=10_000)] = 200) -> Any:
        """Answers worth a second look, the most suspicious first; a quick list until all evidence is weighed."""
        return await worker.slow(_review, worker, limit)

    @router.get("/history", response_model=list[show.Deed])
    async def history(before: take.PathNumber | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> Any:
        """Everything that happened, newest first; `before` an event for the next page."""
        return await worker.slow(_history, worker, before, limit)

    @router.get("/agreement", response_model=show.Agreed)
    async def agreement() -> Any:
        """How people agree about pairs that were answered more than once."""
        return show.agreed(await worker.slow(session.agreement))

    latest = Latest(worker)

    @router.get("/events", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}})
    async def events() -> StreamingResponse:
        """Server-sent events: `progress` after every change, `clusters` after every fit, `errands` after long work."""
        return StreamingResponse(stream(worker, latest), media_type="text/event-stream")

    return router


def _still_open(worker: Worker, questions: list[int]) -> list[int]:
    pending = {one.id: one for one in worker.session.pending()}
    return [one for one in questions if one in pending and worker.session.worth_asking(pending[one])]


def _review(worker: Worker, limit: int) -> show.Reviewed:
    """The latest thorough list, without answers decided since, and with the quick one of those that came since."""
    session = worker.session
    quick = session.review(quick=True)
    made = worker.errands.look("review", session.said_version, session.plan_review)
    if made.value is None or made.key is None:
        return show.Reviewed(quick[:limit], False, made.working, made.problem)
    now = {record.id: record for record in session.answers()}
    kept = [one for one in made.value if one.answer_id in now and _is_open(now[one.answer_id], one.answer)]
    listed = {one.answer_id for one in kept}
    fresh = [one for one in quick if one.answer_id > made.key and one.answer_id not in listed]
    return show.Reviewed([*kept, *fresh][:limit], True, made.working, made.problem)


def _is_open(record: Record, answer: str) -> bool:
    """Whether nobody has decided about an answer since it was reviewed."""
    return record.answer == answer and record.confirmed is None


def _undone(worker: Worker, annotator: str | None) -> show.Undone:
    event = worker.session.undo(annotator)
    if event is None:
        return show.Undone(None, None)
    number = event.payload.get("question") if event.kind == "answer" else None
    again = next((one for one in worker.session.pending() if one.id == number), None)
    return show.Undone(show.deed(event, undone=True), again)


def _history(worker: Worker, before: int | None, limit: int) -> list[show.Deed]:
    events = worker.session.history()
    undone = {event.payload["undoes"] for event in events if event.kind == "undo"}
    chosen = [event for event in reversed(events) if before is None or event.seq < before]
    return [show.deed(event, event.seq in undone) for event in chosen[:limit]]
