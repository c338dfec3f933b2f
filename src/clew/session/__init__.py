"""Sessions: ask, answer and correct clusters, with every event stored in a durable log.

Needs the extra ``app``.
"""

from clew.session._agreement import Agreement, PairAgreement, PersonAgreement
from clew.session._clustering import FitPlan, FitResult
from clew.session._events import Event
from clew.session._ledger import Record
from clew.session._results import Cluster, Conflict, Corrected, Grouping, Link, Progress, Question, ReviewItem, Told
from clew.session._session import Session
from clew.session._settings import GROUPS, METRICS, SCALES, TEXTS
from clew.session._strategies import default_strategy, strategies
from clew.session._table import Changes

__all__ = [
    "GROUPS",
    "METRICS",
    "SCALES",
    "TEXTS",
    "Agreement",
    "Changes",
    "Cluster",
    "Conflict",
    "Corrected",
    "Event",
    "FitPlan",
    "FitResult",
    "Grouping",
    "Link",
    "PairAgreement",
    "PersonAgreement",
    "Progress",
    "Question",
    "Record",
    "ReviewItem",
    "Session",
    "Told",
    "default_strategy",
    "strategies",
]
