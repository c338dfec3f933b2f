"""The vocabulary: what people know, what follows from it, whether it can hold, and its files."""

from clew.constraints._answers import AnswerRecord, Answers, read_answers, write_answers
from clew.constraints._closure import Closure
from clew.constraints._conflicts import Conflict
from clew.constraints._constraints import Constraints
from clew.constraints._feasibility import Feasibility, proof_sentence, unknown_sentence
from clew.constraints._files import read_records
from clew.constraints._records import answer_kind, key_of

__all__ = [
    "AnswerRecord",
    "Answers",
    "Closure",
    "Conflict",
    "Constraints",
    "Feasibility",
    "answer_kind",
    "key_of",
    "proof_sentence",
    "read_answers",
    "read_records",
    "unknown_sentence",
    "write_answers",
]
