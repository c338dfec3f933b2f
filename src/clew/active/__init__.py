"""What to ask next: strategies, the driver that asks, simulated answers, learning curves."""

from clew.active._answers import DIFFERENT, SAME, UNSURE, Answer, Pair, Which
from clew.active._explore_consolidate import ExploreConsolidate
from clew.active._oracle import BudgetSpentError, Oracle
from clew.active._questions import Answered, Progress, Questions, Strategy
from clew.active._view import Neighbourhood, View

__all__ = [
    "DIFFERENT",
    "SAME",
    "UNSURE",
    "Answer",
    "Answered",
    "BudgetSpentError",
    "ExploreConsolidate",
    "Neighbourhood",
    "Oracle",
    "Pair",
    "Progress",
    "Questions",
    "Strategy",
    "View",
    "Which",
]
