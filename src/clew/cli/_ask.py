"""`clew ask`: questions in the terminal, answered with one key each."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from clew._words import without_password
from clew.cli import _cards, _conflict, _exits, _render
from clew.cli._keys import Keyboard, keyboard
from clew.cli._project import ProjectRequest, opened_or_begun
from clew.cli._words import event_words
from clew.exceptions import AnsweredError, ClewError

if TYPE_CHECKING:
    from clew import Session
    from clew.session import Conflict, FitResult, Question, Told

# Number of logged events (mostly answers) between two fits of the clusters.
_EVENTS_PER_FIT = 10

_ANSWERS = {
    **dict.fromkeys(("s", "same", "y", "yes", "right"), "same"),
    **dict.fromkeys(("d", "different", "n", "no", "left"), "different"),
    **dict.fromkeys(("space", "u", "unsure"), "unsure"),
}
_UNDO = ("z", "undo", "backspace")
_QUIT = ("q", "quit", None)
_ASKED = {
    "pair": "Are these two the same?",
    "which": "Which of these does it belong with?",
    "clusters": "Do these two clusters belong together?",
}
_HELP = (
    ("S or Y, →", "same: they belong together"),
    ("D or N, ←", "different: they never belong together"),
    ("Space or U", "unsure: this pair is not asked again and constrains nothing"),
    ("1 to 9", "if rows are numbered: the row belongs with that one (D: with none of them)"),
    ("Z, Backspace", "undo the last answer; press again to undo the one before"),
    ("F", "flag this question for a second look"),
    ("C", "add a comment to this question"),
    ("V", "show both rows in full"),
    ("Q, Ctrl-C", "stop; every answer is saved, and the same command continues"),
)


def run(request: ProjectRequest, annotator: str, most: int | None) -> None:
    """Ask until no question is left, `most` questions are answered, or the annotator stops."""
    with opened_or_begun(request) as session, keyboard() as keys:
        try:
            AskingLoop(session, keys, annotator, request, most).run()
        except KeyboardInterrupt:
            _exits.say(
                "stopped", f"every answer is saved in {without_password(request.place)}", "yellow", separator="; "
            )
            raise typer.Exit(_exits.INTERRUPTED) from None


@dataclass
class Draft:
    """The flag, the comment and the starting time of a question that is still unanswered."""

    started: float
    flag: bool = False
    comment: str | None = None


class AskingLoop:
    """One run of `clew ask`: shows questions to one annotator and records the answers."""

    def __init__(
        self, session: Session, keys: Keyboard, annotator: str, request: ProjectRequest, most: int | None = None
    ) -> None:
        self._session, self._keys, self._annotator, self._most = session, keys, annotator, most
        self._place, self._typed = without_password(request.place), request.typed
        self._console = _render.console()
        self._fits = BackgroundFits(session, wait=not keys.is_live)
        self._answered = 0
        self._told_to_stop = False
        # Ids of open questions to ask first: left open in an earlier run, or reopened by an undo.
        self._waiting = [question.id for question in session.pending() if question.annotator == annotator]

    def run(self) -> None:
        """Ask questions until the annotator stops, then print a summary."""
        self._greet()
        self._fits.refresh()
        while self._most is None or self._answered < self._most:
            question = self._next()
            if question is None:
                self._console.print(Text("Nothing is left to ask.", "bold green"))
                break
            if not self._settle(question):
                break
        self._leave()

    # -- one question ----------------------------------------------------------------------------------------------

    def _next(self) -> Question | None:
        pending = {question.id: question for question in self._session.pending()}
        while self._waiting:
            question = pending.get(self._waiting.pop(0))
            if question is not None and self._session.worth_asking(question):
                return question
        found: Question | None = self._session.ask(self._annotator)
        return found

    def _settle(self, question: Question) -> bool:
        """Show a question until it is answered or replaced by an undone one; False if the annotator stops."""
        self._show(question)
        draft = Draft(time.monotonic())
        while (key := self._keys.key()) not in _QUIT:
            answer = self._answer(question, key)
            if answer is not None:
                self._tell(question, answer, draft)
                return True
            if key not in _UNDO:
                self._aside(question, key, draft)
            elif self._undo(question):
                return True
        return False

    def _answer(self, question: Question, key: str | None) -> Any:
        """Translate a key into an answer; None if the key is not an answer."""
        if key is None or question.kind != "which":
            return _ANSWERS.get(key or "")
        if key.isdecimal():
            place = self._number(key, len(question.candidates))
            return question.candidates[place - 1] if 0 < place <= len(question.candidates) else None
        answer = _ANSWERS.get(key)
        return {"different": "none", "unsure": "unsure"}.get(answer or "")

    def _number(self, first: str, n_choices: int) -> int:
        """Read the number that starts with this digit; with ten or more choices, read on until Enter."""
        if not self._keys.is_live or n_choices < 10:
            return int(first)
        self._console.print(first, end="")
        while (key := self._keys.key()) is not None and key.isdecimal():
            first += key
            self._console.print(key, end="")
        self._console.print()
        return int(first) if key == "enter" else 0

    def _tell(self, question: Question, answer: Any, draft: Draft) -> None:
        seconds = round(time.monotonic() - draft.started, 2) if self._keys.is_live else None
        try:
            told = self._session.tell(
                question, answer, annotator=self._annotator, seconds=seconds, comment=draft.comment, flag=draft.flag
            )
        except AnsweredError as error:  # the same annotator answered it in another window
            self._console.print(Text(str(error), "yellow"))
            return
        self._answered += 1
        self._acknowledge(told, answer)

    def _acknowledge(self, told: Told, answer: Any) -> None:
        line = Text.assemble(("✓ ", "green"), (_cards.shown(answer), "bold"))
        if told.implied and told.conflict is None:
            more = _render.counted(told.implied, "more answer follows", "more answers follow")
            line.append(f" · {more} from this one")
        self._console.print(line)
        if told.note:
            self._console.print(Text(told.note, "yellow"))
        if told.conflict is not None:
            self._contradicted(told.conflict)
        self._fits.refresh()
        self._progress()

    def _contradicted(self, conflict: Conflict) -> None:
        """Ask how to resolve a conflict; a second opinion should not follow the first, so it is only mentioned."""
        if conflict.kind == "disagreement":
            sentence = "Somebody has said the opposite about this pair. Both answers are kept"
            self._console.print(Text(f"{sentence}: clew review {self._typed}", "yellow"), soft_wrap=True)
            return
        for one in self._session.conflicts():
            if one.id == conflict.id:
                _conflict.settle(self._session, one, self._keys, self._console, self._annotator)

    def _undo(self, question: Question) -> bool:
        """Undo the annotator's last event; True if this reopens a question, which then comes next."""
        undone = self._session.undo(self._annotator)
        if undone is None:
            self._console.print("There is nothing to undo.", style="yellow")
            return False
        self._console.print(Text(f"Undone: {event_words(undone)}.", "yellow"))
        reopened = undone.payload.get("question") if undone.kind == "answer" else None
        if reopened is None:
            return False
        self._answered = max(self._answered - 1, 0)
        self._waiting[:0] = [reopened, question.id]
        return True

    def _aside(self, question: Question, key: str | None, draft: Draft) -> None:
        """Handle the keys that leave the question open: flag, comment, view, help."""
        if key == "f":
            draft.flag = not draft.flag
            self._console.print("Flagged for a second look." if draft.flag else "No longer flagged.", style="yellow")
        elif key == "c":
            if self._keys.is_live:
                self._console.print("Comment (Enter ends it): ", end="")
            draft.comment = self._keys.line() or draft.comment
            self._console.print(Text(f"Comment: {_cards.shown(draft.comment)}", "yellow"))
        elif key == "v":
            self._show(question, full=True)
        elif key in ("?", "h", "help"):
            self._console.print(_render.facts(_HELP))
        elif key != "enter":
            wanted = "the number of a row" if question.kind == "which" else "S, D"
            self._console.print(f"Press {wanted} or Space; ? for help.", style="yellow")

    # -- output ---------------------------------------------------------------------------------------------

    def _show(self, question: Question, *, full: bool = False) -> None:
        console, row = self._console, self._session.row
        console.print()
        console.print(Rule(Text(_ASKED[question.kind], "bold"), align="left", style="dim"))
        console.print(Text(_cards.shown(question.why), "yellow" if question.check else "dim"))
        if question.kind == "which":
            names = [question.left, *question.candidates]
            marks = ["?", *map(str, range(1, len(names)))]
            console.print(_cards.list_card(marks, names, [row(name) for name in names]))
        elif question.rows is not None:
            console.print(_cards.groups_card(question.rows, [[row(name) for name in some] for some in question.rows]))
        else:
            names = [question.left, question.right]
            console.print(_cards.pair_card(names, [row(name) for name in names], console, full=full))
        console.print(self._keys_line(question))

    def _keys_line(self, question: Question) -> Table:
        first = [("S", "same"), ("D", "different")]
        if question.kind == "which":
            last = len(question.candidates)
            first = [("1" if last == 1 else f"1–{last}", "that one"), ("D", "none")]
        said = [
            *first,
            ("Space", "unsure"),
            ("Z", "undo"),
            ("F", "flag"),
            ("C", "comment"),
            ("?", "help"),
            ("Q", "quit"),
        ]
        line = Table.grid(padding=(0, 2))
        line.add_row(*(Text.assemble((key, "bold"), " ", (word, "dim")) for key, word in said))
        return line

    def _greet(self) -> None:
        now = self._session.progress()
        what = f"{_render.counted(now.n_rows, 'row')}, {_render.counted(now.answered, 'answer')} so far"
        self._console.print(Text.assemble((self._place, "bold"), f": {what}. Press ? for help."))
        if now.conflicts:
            sentence = (
                f"{_render.counted(now.conflicts, 'contradiction waits', 'contradictions wait')} to be resolved: "
            )
            self._console.print(Text(f"{sentence}clew review {self._typed}", "yellow"))
        for note in now.notes:
            self._console.print(Text(note, "yellow"))

    def _progress(self) -> None:
        now = self._session.progress()
        parts = [f"{now.answered:,} answered", f"{now.implied:,} implied"]
        if now.groups > 1:
            parts.append(f"at least {now.groups:,} clusters")
        if now.seconds is not None:
            parts.append(f"median {now.seconds:.1f} s")
        self._console.print(Text(" · ".join(parts), "dim"))
        if now.can_stop and not self._told_to_stop:
            self._console.print(Text(now.reason, "bold green"))
        self._told_to_stop = now.can_stop

    def _leave(self) -> None:
        now = self._session.progress()
        self._console.print()
        self._console.print(
            Text.assemble(
                (f"{_render.counted(self._answered, 'answer')} this time", "bold"),
                f", {now.answered:,} in all. Every answer is saved in {self._place}.",
            )
        )
        self._console.print(Text(f"The clusters: clew export {self._typed} -o labels.csv", "dim"), soft_wrap=True)


class BackgroundFits:
    """Refit the clusters every few answers: in a background thread, or in the foreground if `wait`."""

    def __init__(self, session: Session, *, wait: bool) -> None:
        self._session, self._wait = session, wait
        self._thread: threading.Thread | None = None
        self._result: FitResult | None = None
        self._failure: Exception | None = None
        self._told = ""
        self._version = -_EVENTS_PER_FIT

    def refresh(self) -> None:
        """Adopt a finished fit, and start a new one if enough events were logged since the last."""
        self._collect()
        version = self._session.version
        if self._thread is not None or version - self._version < _EVENTS_PER_FIT:
            return
        self._version = version
        plan = self._session.plan_fit()

        def fit() -> None:
            try:
                self._result = plan.run()
            except Exception as error:
                self._failure = error

        self._thread = threading.Thread(target=fit, daemon=True)
        self._thread.start()
        if self._wait:
            self._thread.join()
            self._collect()

    def _collect(self) -> None:
        if self._thread is None or self._thread.is_alive():
            return
        self._thread = None
        failure, self._failure = self._failure, None
        if failure is None:
            if self._result is not None:
                self._session.adopt(self._result)
        elif not isinstance(failure, ClewError):
            raise failure
        elif str(failure) != self._told:  # people can go on answering without clusters
            self._told = str(failure)
            _exits.say("warning", f"No clusters for now. {failure}", "yellow")
