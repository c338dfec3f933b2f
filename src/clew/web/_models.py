"""Models of request bodies. Every text, list and number has a limit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

# Largest numbers of row ids, rows and questions in one request.
MOST_ROWS = 10_000
MOST_SHOWN = 500
MOST_QUESTIONS = 50
# Ids of questions, answers and clusters are 32-bit integers in every database.
_MOST_ID = 2**31 - 1


def _printable(text: str) -> str:
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        raise ValueError("should not contain control characters")
    return text


def _text(text: str) -> str:
    if "\x00" in text:
        raise ValueError("should not contain the character 0")
    return text


Number = Annotated[int, Field(strict=True, ge=0, le=_MOST_ID)]
PathNumber = Annotated[int, Field(ge=0, le=_MOST_ID)]
Annotator = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200, pattern=r"\S"),
    AfterValidator(_printable),
    Field(examples=["ann"]),
]
RowId = (
    Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
    | Annotated[float, Field(strict=True, allow_inf_nan=False)]
    | Annotated[str, StringConstraints(max_length=1000, strict=True), AfterValidator(_text)]
)
Word = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_printable)]
Comment = Annotated[str, StringConstraints(max_length=10_000), AfterValidator(_text)]
Confidence = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class Body(BaseModel):
    """Base of request bodies; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Next(Body):
    """Request for questions: the annotator, the number of questions, and the questions on the screen."""

    annotator: Annotator = "me"
    n: Annotated[int, Field(strict=True, ge=1, le=MOST_QUESTIONS)] | None = None
    holding: Annotated[list[Number], Field(max_length=1000)] | None = None


class Visit(Body):
    """The annotator who opens the page, and a random text that identifies the browser."""

    annotator: Annotator
    browser: Word


class Held(Body):
    """Questions on the screen of a page."""

    questions: Annotated[list[Number], Field(max_length=1000)]


class AnswerBody(Body):
    """An answer to a question."""

    question: Number
    answer: RowId = Field(description='same, different or unsure; for a "which" question a row id, none or unsure')
    about: Annotated[list[RowId | None], Field(min_length=2, max_length=2)] | None = Field(
        None, description="left and right of the question as it was shown; a question about other rows is refused"
    )
    annotator: Annotator | None = None
    seconds: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    confidence: Confidence = 1.0
    comment: Comment | None = None
    flag: bool = False


class Revised(Body):
    """A new answer that replaces an earlier one."""

    answer: RowId
    annotator: Annotator = "me"
    confidence: Confidence | None = None
    comment: Comment | None = None


class Confirmed(Body):
    """The annotator who confirms an answer after a second look."""

    annotator: Annotator = "me"


class Undo(Body):
    """The annotator whose last action is undone; by default the last action of anybody."""

    annotator: Annotator | None = None


class Resolved(Body):
    """How to resolve a conflict."""

    how: Literal["change", "withdraw", "soft", "unsure", "repair"]
    answer_id: Number | None = None
    answer: RowId | None = None
    correction: Number | None = None
    annotator: Annotator = "me"


class Named(Body):
    """A name for a cluster; an empty text removes it."""

    name: Annotated[str, StringConstraints(max_length=200), AfterValidator(_printable)]
    annotator: Annotator = "me"


class NewGrouping(Body):
    """A name for another way to group the rows, and how many groups; by default as many as there are clusters."""

    name: Word | None = None
    n_clusters: Annotated[int, Field(strict=True, ge=2, le=1000)] | None = None
    annotator: Annotator = "me"


class GroupingName(Body):
    """The name of a kept grouping."""

    name: Word
    annotator: Annotator = "me"


class CorrectionBody(Body):
    """merge: cluster, other · split: cluster, rows · move: row, cluster or null · never: two clusters or two rows."""

    kind: Literal["merge", "split", "move", "never"]
    cluster: Number | None = None
    other: Number | None = None
    row: RowId | None = None
    rows: Annotated[list[RowId], Field(min_length=1, max_length=MOST_ROWS)] | None = None
    clusters: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    annotator: Annotator = "me"

    @model_validator(mode="after")
    def _check(self) -> CorrectionBody:
        needed = {"merge": ("cluster", "other"), "split": ("cluster", "rows"), "move": ("row",), "never": ()}[self.kind]
        allowed = {*needed, *{"move": ("cluster",), "never": ("clusters", "rows")}.get(self.kind, ())}
        given = set(self.arguments())
        missing = [name for name in needed if name not in given]
        if missing:
            raise ValueError(f"{self.kind} needs {' and '.join(missing)}")
        if given - allowed:
            raise ValueError(f"{self.kind} takes no {sorted(given - allowed)[0]}")
        if self.kind == "never" and len(given) != 1:
            raise ValueError("never needs two clusters, or two rows")
        return self

    def arguments(self) -> dict[str, Any]:
        """The arguments of the correction, by the names that `Session.preview` uses."""
        names = ("cluster", "other", "row", "rows", "clusters")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class Settings(Body):
    """Settings to change; all others keep their values."""

    n_clusters: Annotated[int, Field(strict=True, ge=1, le=_MOST_ID)] | None = None
    groups: Literal["auto", "large", "small"] | None = None
    method: Word | None = None
    strategy: Word | None = None
    metric: Literal["auto", "euclidean", "cosine"] = "auto"
    columns: Annotated[list[Word], Field(min_length=1, max_length=MOST_ROWS)] | None = None
    scale: Word = "auto"
    text: Word = "auto"
    overlap: Annotated[int, Field(strict=True, ge=1, le=100)] = 1
    lease_seconds: Annotated[float, Field(ge=1, le=1e7, allow_inf_nan=False)] = 600
    check_share: Annotated[float, Field(ge=0, le=0.05, allow_inf_nan=False)] | None = None
    error_rate: Annotated[float, Field(ge=0, lt=0.5, allow_inf_nan=False)] | None = None
    random_state: Number = 0
    annotator: Annotator = "me"
