"""What requests may say: every text, list and number has its limit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

# Row ids, rows and questions in one request.
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
    """A body without surprises: a misspelt field is refused."""

    model_config = ConfigDict(extra="forbid")


class Next(Body):
    """Who asks, how many questions, and which are on the screen."""

    annotator: Annotator = "me"
    n: Annotated[int, Field(strict=True, ge=1, le=MOST_QUESTIONS)] | None = None
    holding: Annotated[list[Number], Field(max_length=1000)] | None = None


class Held(Body):
    """Questions on the screen of a page."""

    questions: Annotated[list[Number], Field(max_length=1000)]


class Answered(Body):
    """An answer to a question."""

    question: Number
    answer: RowId = Field(description='same, different or unsure; for a "which" question a row id, none or unsure')
    annotator: Annotator | None = None
    seconds: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    confidence: Confidence = 1.0
    comment: Comment | None = None
    flag: bool = False


class Revised(Body):
    """Another answer instead of an earlier one."""

    answer: RowId
    annotator: Annotator = "me"
    confidence: Confidence | None = None
    comment: Comment | None = None


class Confirmed(Body):
    """Who looked at an answer again and kept it."""

    annotator: Annotator = "me"


class Undo(Body):
    """Whose last deed is taken back; anybody's unless given."""

    annotator: Annotator | None = None


class Resolved(Body):
    """How a conflict is settled."""

    how: Literal["change", "soft", "unsure"]
    answer_id: Number | None = None
    answer: RowId | None = None
    annotator: Annotator = "me"


class Named(Body):
    """A name for a cluster; an empty one takes it away."""

    name: Annotated[str, StringConstraints(max_length=200), AfterValidator(_printable)]
    annotator: Annotator = "me"


class Correction(Body):
    """merge: cluster, other · split: cluster, rows · move: row, cluster or null · never: two clusters or two rows."""

    kind: Literal["merge", "split", "move", "never"]
    cluster: Number | None = None
    other: Number | None = None
    row: RowId | None = None
    rows: Annotated[list[RowId], Field(min_length=1, max_length=MOST_ROWS)] | None = None
    clusters: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    annotator: Annotator = "me"

    @model_validator(mode="after")
    def _check(self) -> Correction:
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
        """What the correction is about, by the names `Session.preview` has for it."""
        names = ("cluster", "other", "row", "rows", "clusters")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class Settings(Body):
    """Settings to change; those left out stay."""

    n_clusters: Annotated[int, Field(strict=True, ge=1, le=_MOST_ID)] | None = None
    method: Word | None = None
    strategy: Word | None = None
    metric: Literal["euclidean", "cosine"] = "euclidean"
    columns: Annotated[list[Word], Field(min_length=1, max_length=MOST_ROWS)] | None = None
    scale: Word = "auto"
    text: Word = "auto"
    overlap: Annotated[int, Field(strict=True, ge=1, le=100)] = 1
    lease_seconds: Annotated[float, Field(ge=1, le=1e7, allow_inf_nan=False)] = 600
    check_share: Annotated[float, Field(ge=0, le=0.05, allow_inf_nan=False)] = 0.0
    random_state: Number = 0
    annotator: Annotator = "me"
