"""Constraints on rows: their closure, conflicts and feasibility, and files of answers."""

from clew.constraints._answers import AnswerRecord, Answers, Said, read_answers, write_answers
from clew.constraints._closure import Closure, label_clusters
from clew.constraints._conflicts import Contradiction
from clew.constraints._constraints import Constraints
from clew.constraints._feasibility import Feasibility, require_coloring
from clew.constraints._files import read_records
from clew.constraints._near import NearNeighbours
from clew.constraints._records import answer_kind, key_of
from clew.constraints._repair import Repair
from clew.constraints._statements import Statement

__all__ = [
    "AnswerRecord",
    "Answers",
    "Closure",
    "Constraints",
    "Contradiction",
    "Feasibility",
    "NearNeighbours",
    "Repair",
    "Said",
    "Statement",
    "answer_kind",
    "key_of",
    "label_clusters",
    "read_answers",
    "read_records",
    "require_coloring",
    "write_answers",
]
